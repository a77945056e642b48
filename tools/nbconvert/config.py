"""How nbconvert writes an executed notebook, for make lab-headless."""

import pathlib

c = get_config()  # noqa: F821, which nbconvert defines

# A generation streams in pieces; what a cell says becomes one output. Preprocessors
# named here run after the notebook's execution, those that are there by default before.
c.Exporter.preprocessors = ["nbconvert.preprocessors.CoalesceStreamsPreprocessor"]

c.HTMLExporter.extra_template_basedirs = [str(pathlib.Path(__file__).resolve().parent)]
c.HTMLExporter.template_name = "page"
