"""Takes the README's pictures: python tools/frontends/screenshot.py FOLDER.

quickstart.png is the router's heat map in the light theme, completion.png a generation and the figures of it in the
dark one."""

import json
import os
import pathlib
import shutil
import sys
import tempfile

from playwright.sync_api import expect

# Jupyter's files are of this run alone; session.py and lab.py read where they are.
home = pathlib.Path(tempfile.mkdtemp(prefix="deltafin screenshot "))
os.environ.update({
    "JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data"),
    "JUPYTER_RUNTIME_DIR": str(home / "runtime"), "DELTAFIN_STATE": str(home / "state"),
    "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
})

from lab import Notebook, browser, drawn, server
from session import QUICKSTART

GENERATION = ('n := IntSlider("MaxTokens", 1, 64, 23)\nn',
              'g := Generate("The capital of France is", Params{MaxTokens: n.Value()})\ng',
              "Tokenize(g.Text)",
              "")


def main(folder):
    work = home / "notebooks"
    work.mkdir()
    shutil.copy(QUICKSTART, work)
    with server(home, work) as (url, token), browser(home, 1140, 815) as page:
        page.goto(f"{url}lab?token={token}")
        expect(page.locator("#jp-main-statusbar")).to_be_visible()

        quickstart = Notebook(page, work, QUICKSTART.name)
        page.locator('.jp-SideBar.jp-mod-left [data-id="filebrowser"]').click()  # out of the picture, like the bars
        for side in ("left", "right"):
            quickstart.command("application:toggle-side-tabbar", side=side)
        quickstart.run_all()
        codes = sum(cell["cell_type"] == "code" for cell in json.loads(QUICKSTART.read_text())["cells"])
        expect(quickstart.panel.locator(".jp-InputPrompt", has_text=f"[{codes}]:")).to_be_visible()
        quickstart.idle()
        quickstart.save()
        drawn(quickstart.panel.locator(".jp-RenderedVegaCommon5").first)
        quickstart.panel.get_by_role("heading", name="Which experts").evaluate("e => e.scrollIntoView({block: 'start'})")
        saved = page.get_by_text("Saving completed")
        expect(saved).to_have_count(0)
        page.screenshot(path=str(folder / "quickstart.png"))

        page.set_viewport_size({"width": 1140, "height": 705})
        quickstart.command("apputils:change-theme", theme="JupyterLab Dark")
        quickstart.leave()
        dark = Notebook(page, work, "generation.ipynb", *GENERATION)
        page.locator(".lm-TabBar-tab", has_text="Launcher").locator(".lm-TabBar-tabCloseIcon").click()
        for i in range(len(GENERATION) - 1):
            dark.run(i)
        expect(dark.cell(0).locator(".noUi-handle")).to_be_visible()
        dark.save()
        dark.focus(len(GENERATION) - 1)
        page.keyboard.type("g.Stats.")
        page.keyboard.press("Tab")
        expect(page.locator(".jp-Completer:visible")).to_contain_text("TTFTSeconds")
        expect(saved).to_have_count(0)
        dark.idle()
        page.screenshot(path=str(folder / "completion.png"))
    for picture in sorted(folder.glob("*.png")):
        print(f"{picture}: {picture.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    try:
        main(pathlib.Path(sys.argv[1]))
    finally:
        shutil.rmtree(home, ignore_errors=True)
