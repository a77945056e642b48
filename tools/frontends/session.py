"""What the front-end tests share: the installed kernel and a place of their own."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import psutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = "deltafin"
QUICKSTART = ROOT / "notebooks" / "01-quickstart.ipynb"

# A generation of minutes: whoever interrupts it comes in time. Its text goes on counting.
LONG = 'Generate("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", Params{MaxTokens: 20000})'


def until(condition, what, timeout=60):
    """Waits until condition() is true and returns its value; what names it in the failure."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"want {what} within {timeout} s")
        time.sleep(0.02)
    return value


def running(pid):
    """Says whether a process runs; one that has ended and waits for its parent doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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
