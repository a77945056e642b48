"""What the front-end tests share: the installed kernel and a place of their own."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = "deltafin"
QUICKSTART = ROOT / "notebooks" / "01-quickstart.ipynb"


class FrontEndTest(unittest.TestCase):
    """Runs with Jupyter's and deltafin's files in a directory that is thrown away."""

    @classmethod
    def setUpClass(cls):
        cls._dir = tempfile.TemporaryDirectory(prefix="deltafin frontends ", ignore_cleanup_errors=True)
        cls.dir = pathlib.Path(cls._dir.name)
        cls.environ = {
            "JUPYTER_CONFIG_DIR": str(cls.dir / "config"),
            "JUPYTER_DATA_DIR": str(cls.dir / "data"),
            "JUPYTER_RUNTIME_DIR": str(cls.dir / "runtime"),
            "IPYTHONDIR": str(cls.dir / "ipython"),
            "DELTAFIN_STATE": str(cls.dir / "state"),
            "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
        }
        os.environ.update(cls.environ)

    @classmethod
    def tearDownClass(cls):
        cls._dir.cleanup()

    def jupyter(self, *args, timeout=300):
        """Runs python -m jupyter… and returns its standard output."""
        done = subprocess.run(
            [sys.executable, "-m", *args],
            cwd=self.dir, text=True, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.assertEqual(done.returncode, 0, f"{args} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout
