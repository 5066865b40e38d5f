#!/usr/bin/python3
"""The options that the documents name exist.

usage: docs_options_test.py GLASSBOX ROOT

An option after the name of a command (`glassbox view --stats`) belongs to that command, in every document. Others are
options of the commands that the document is about.
"""
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?![\w-]*\.\.\.)")  # not the `--dump-...` of a whole family
COMMAND = re.compile(r"\bglassbox ([a-z]+)\b")

# The commands that each document is about: it may name their options without the command.
ABOUT = {
    "docs/tensor-dump.md": ["run"],
    "docs/scenes.md": ["run"],
    "docs/runtimes.md": ["run"],
    "docs/format.md": ["run"],
    "docs/view.md": ["view"],
    "docs/export.md": ["export", "view"],
    "docs/check.md": ["check", "run"],
    "docs/replay.md": ["replay", "run"],
    "docs/diff.md": ["diff"],
    "docs/audit.md": ["audit", "run"],
}


def run(*arguments):
    return subprocess.run(arguments, text=True, capture_output=True, timeout=600)


def taken(text):
    """The options of a help text: each begins a line, maybe after a short option."""
    return set(re.findall(r"^ +(?:-\S, )?(--[a-z][a-z0-9-]*)", text.split("\nexit codes: ")[0], re.MULTILINE))


def named(lines):
    """(line number, command or None, option) of each option; a line that ends with a backslash goes on."""
    command = None
    for number, line in enumerate(lines, 1):
        for found in sorted([*COMMAND.finditer(line), *OPTION.finditer(line)], key=lambda match: match.start()):
            if found.re is COMMAND:
                command = found.group(1)
            else:
                yield number, command, found.group()
        if not line.rstrip().endswith("\\"):
            command = None


def check_document(path, name, helps, wrong):
    """The number of options of its own commands that it names."""
    count = 0
    own = ABOUT.get(name, [])
    for number, command, option in named(path.read_text().splitlines()):
        if command is None and not own:
            continue  # of whatever program
        count += 1
        if command is not None and command not in helps:
            wrong.append(f"{name}:{number}: glassbox {command}: unknown command")
        elif not any(option in helps[c] for c in ([command] if command else own)):
            wrong.append(f"{name}:{number}: glassbox {command or ' or '.join(own)} takes no {option}")
    return count


def main():
    glassbox, root = sys.argv[1], pathlib.Path(sys.argv[2])
    commands = re.findall(r"^  (\w+)  ", run(glassbox, "help").stdout, re.MULTILINE)
    helps = {command: taken(run(glassbox, command, "--help").stdout) for command in commands}
    wrong = []
    paths = sorted([root / "README.md", root / "CHANGELOG.md", *root.glob("docs/*.md")])
    counts = {str(path.relative_to(root)): check_document(path, str(path.relative_to(root)), helps, wrong) for path in paths}
    wrong += [f"{name}: no such document" for name in ABOUT if name not in counts]
    wrong += [f"{name}: names no option of {' or '.join(ABOUT[name])}" for name in ABOUT if counts.get(name) == 0]
    print("\n".join(wrong) or f"{len(counts)} documents name {sum(counts.values())} options, and all exist")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
