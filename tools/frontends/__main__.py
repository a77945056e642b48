"""Runs the front-end tests: python tools/frontends [test_console …]."""

import pathlib
import sys
import unittest

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))

names = sys.argv[1:] or sorted(p.stem for p in here.glob("test_*.py"))
suite = unittest.defaultTestLoader.loadTestsFromNames(names)
result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
bad = len(result.failures) + len(result.errors)
passed = max(0, result.testsRun - bad - len(result.skipped))
print(f"{passed} passed, {bad} failed, {len(result.skipped)} skipped")
sys.exit(0 if passed and not bad else 1)
