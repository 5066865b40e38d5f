"""Running glassbox, whose path is the first argument of every suite, and comparing what it says."""
import os
import subprocess
import sys

import terminals

GLASSBOX = os.path.abspath(sys.argv[1])
PLATFORMS = ("a2a3sim", "a5sim")
RUNTIMES = ("host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer")
STRESS = bool(os.environ.get("GLASSBOX_STRESS"))
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}
ENVIRONMENT.pop("NO_COLOR", None)
SHOWN_FAILURES = 30
os.umask(0o022)  # some tests look at file permissions

counts = {"passed": 0, "failed": 0}


# --- comparing ---


def check(what, got, expected):
    is_so = got == expected
    counts["passed" if is_so else "failed"] += 1
    if not is_so and counts["failed"] <= SHOWN_FAILURES:
        print(f"{what}:\n  got      {first_difference(got, expected)}")
    return is_so


def check_in(what, part, whole):
    return check(f"{what}: {part!r} in {whole!r}", part in whole, True)


def first_difference(got, expected):
    """The first place where two long texts or lists differ."""
    if isinstance(got, str) and isinstance(expected, str) and "\n" in expected:
        got, expected = got.split("\n"), expected.split("\n")
    if isinstance(got, dict) and isinstance(expected, dict):
        for key in [*got, *expected]:
            if got.get(key) != expected.get(key):
                return f"[{key}] " + first_difference(got.get(key), expected.get(key))
    if isinstance(got, list) and isinstance(expected, list):
        for i, (left, right) in enumerate(zip(got, expected)):
            if left != right:
                return f"[{i}] " + first_difference(left, right)
        return f"{len(got)} elements\n  expected {len(expected)}"
    return f"{repr(got)[:400]}\n  expected {repr(expected)[:400]}"


def report():
    """Prints the counts and returns the exit code of the suite."""
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


# --- running ---


def glassbox(*arguments, environment=ENVIRONMENT, **more):
    return subprocess.run([GLASSBOX, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=600, **more)


def on_terminal(columns, *arguments, **environment):
    """What reaches a terminal of this many columns, and the exit code."""
    return terminals.run(columns, [GLASSBOX, *arguments], {**ENVIRONMENT, **environment})
