#!/usr/bin/python3
"""Runs the tests of the Python reader (python/tests).

usage: python_reader_test.py GLASSBOX SOURCE_ROOT [NAME...]

NAME: only these modules, classes or tests, such as test_journal or test_run.Run.
"""
import os
import pathlib
import sys
import unittest

GLASSBOX, SOURCE_ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()


def main():
    sys.dont_write_bytecode = True
    os.environ["GLASSBOX"] = os.path.abspath(GLASSBOX)
    sys.path[:0] = [str(SOURCE_ROOT / "python" / "tests"), str(SOURCE_ROOT / "python")]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(sys.argv[3:]) if sys.argv[3:] else loader.discover(str(SOURCE_ROOT / "python" / "tests"))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(tests)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
