#!/usr/bin/python3
"""The options that the documents name are those that the commands take, and the other way round.

usage: docs_options_test.py GLASSBOX ROOT

An option after the name of a command (`glassbox view --stats`) is that command's, in every document. Others are
options of the commands that the document is about. Every option of a command that has documents is in one of them,
or the letter that stands for it.
"""
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?![\w-]*\.\.\.)")  # not the `--dump-...` of a whole family
COMMAND = re.compile(r"\bglassbox ([a-z]+)\b")
OF_ALL = {"--help", "--usage"}

# What a document is about; the options of its commands may stand there without a name before them.
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

# Where all options of a command are to be found.
WHERE = {
    "run": ["docs/scenes.md", "docs/tensor-dump.md"],
    "view": ["docs/view.md", "docs/export.md"],
    "export": ["docs/export.md", "docs/view.md"],
    "check": ["docs/check.md"],
    "replay": ["docs/replay.md"],
    "diff": ["docs/diff.md"],
    "audit": ["docs/audit.md"],
}


def run(*arguments):
    return subprocess.run(arguments, text=True, capture_output=True, timeout=600)


def taken(text):
    """The options of a help text: each begins a line, maybe after a letter of its own."""
    return set(re.findall(r"^ +(?:-\S, )?(--[a-z][a-z0-9-]*)", text.split("\nexit codes: ")[0], re.MULTILINE))


def letters(text):
    """{"-o": "--output"}"""
    return dict(re.findall(r"^ +(-[a-z]), (--[a-z][a-z0-9-]*)", text, re.MULTILINE))


def dump_options(text):
    """Those of glassbox run from the first heading of dumps to the general ones at the end."""
    begin = text.index("\n Dumps:\n")
    return taken(text[begin:text.index("--help", begin)].rsplit("\n", 1)[0])


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
    """The options that it names of its own commands."""
    in_document = set()
    own = ABOUT.get(name, [])
    for number, command, option in named(path.read_text().splitlines()):
        if command is None and not own:
            continue  # of whatever program
        if command is not None and command not in helps:
            wrong.append(f"{name}:{number}: glassbox {command}: there is no such command")
        elif not any(option in helps[c] for c in ([command] if command else own)):
            wrong.append(f"{name}:{number}: glassbox {command or ' or '.join(own)} takes no {option}")
        else:
            in_document.add(option)
    return in_document


def main():
    glassbox, root = sys.argv[1], pathlib.Path(sys.argv[2])
    commands = re.findall(r"^  (\w+)  ", run(glassbox, "help").stdout, re.MULTILINE)
    texts = {command: run(glassbox, command, "--help").stdout for command in commands}
    helps = {command: taken(text) for command, text in texts.items()}
    wrong = []
    found = {}
    for path in sorted([root / "README.md", *root.glob("docs/*.md")]):
        name = str(path.relative_to(root))
        found[name] = check_document(path, name, helps, wrong)
    wrong += [f"{name}: there is no such document" for name in ABOUT if name not in found]
    of_dumps = dump_options(texts["run"])
    if not {"--dump-tensor", "--dump-args", "--output", "--dump-stall-timeout"} <= of_dumps:
        wrong.append(f"glassbox run --help: its dump options read as {sorted(of_dumps)}")
    left = of_dumps - found["docs/tensor-dump.md"]
    wrong += [f"docs/tensor-dump.md: {option} is not there" for option in sorted(left)]
    for command, places in WHERE.items():
        documents = [name for name in places if name in found]
        in_them = set().union(*(found[name] for name in documents))
        for letter, option in letters(texts[command]).items():
            if any(re.search(rf"(?<![\w-]){letter}(?![\w-])", (root / name).read_text()) for name in documents):
                in_them.add(option)
        wrong += [f"{' and '.join(documents)}: {option} of glassbox {command} is in none of them"
                  for option in sorted(helps[command] - in_them - OF_ALL)]
    counts = ", ".join(f"{len(helps[command])} of {command}" for command in WHERE)
    print("\n".join(wrong) or f"{len(found)} documents; options: {counts}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
