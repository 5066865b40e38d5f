#!/usr/bin/python3
"""The options that docs/tensor-dump.md names are those that the commands take, and the other way round.

usage: docs_options_test.py GLASSBOX ROOT

An option on a line that names a command (`glassbox view --stats`) is that command's; all others are those of
glassbox run. Every option of glassbox run that stands under a heading of dumps in its help is in the document.
"""
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"\bglassbox ([a-z]+)\b")
DOCUMENT = "docs/tensor-dump.md"


def help_of(glassbox, command):
    result = subprocess.run([glassbox, command, "--help"], text=True, capture_output=True, timeout=60)
    return result.stdout if result.returncode == 0 else None


def taken(text):
    """The options of a help text: each begins a line, maybe after a letter of its own."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]*)", text, re.MULTILINE))


def dump_options(text):
    """Those of glassbox run from the first heading of dumps to the general ones at the end."""
    begin = text.index("\n Dumps:\n")
    return taken(text[begin:text.index("--help", begin)].rsplit("\n", 1)[0])


def named(lines):
    """(line number, command, option) of each option; a line that ends with a backslash goes on."""
    command = None
    for number, line in enumerate(lines, 1):
        found = COMMAND.search(line)
        command = found.group(1) if found else command
        for option in OPTION.findall(line):
            yield number, command or "run", option
        if not line.rstrip().endswith("\\"):
            command = None


def main():
    glassbox, root = sys.argv[1], pathlib.Path(sys.argv[2])
    run_help = help_of(glassbox, "run")
    helps = {"run": run_help}
    wrong = []
    in_document = set()
    for number, command, option in named((root / DOCUMENT).read_text().splitlines()):
        if command not in helps:
            helps[command] = help_of(glassbox, command)
        if helps[command] is None:
            wrong.append(f"{DOCUMENT}:{number}: glassbox {command}: there is no such command")
        elif option not in taken(helps[command]):
            wrong.append(f"{DOCUMENT}:{number}: glassbox {command} takes no {option}")
        elif command == "run":
            in_document.add(option)
    of_dumps = dump_options(run_help)
    if not {"--dump-tensor", "--dump-args", "--output", "--dump-stall-timeout"} <= of_dumps:
        wrong.append(f"glassbox run --help: its dump options read as {sorted(of_dumps)}")
    wrong += [f"{DOCUMENT}: {option} is not there" for option in sorted(of_dumps - in_document)]
    print("\n".join(wrong) or f"{len(of_dumps)} options of dumps, {len(in_document)} named")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
