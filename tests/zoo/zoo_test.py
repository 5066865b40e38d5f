#!/usr/bin/python3
"""The zoo: planted bugs in scenes of its own, and whether `glassbox diagnose` names the guilty one in its first line.

usage: zoo_test.py GLASSBOX [--only NAME]... [--list] [--table]

Without options: a sample of the bugs, one of each broad class, and some good scenes; with GLASSBOX_STRESS all of them. The table of
docs/diagnose.md must say what diagnose says. --only keeps what it made and prints its place. --table prints both tables.
"""
import argparse
import pathlib
import re
import shutil
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent), str(pathlib.Path(__file__).resolve().parent)]

import bugs
import peers
import zoo
from command_support import PLATFORMS, RUNTIMES, STRESS, check, report

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "diagnose.md"
SAMPLE = ("blur-one-column-early", "combine-rest-ends-early", "prefix-first-carry-uninitialised", "scores-added-to-new-memory", "counts-are-input",
          "residual-gets-scale", "high-before-old-score", "two-frames-one-row", "partials-of-half-the-blocks", "mix-flags-of-first-row",
          "mark-unaligned-seed", "load-rows-of-earlier-tile", "norm-scalar-as-tensor", "matmul-on-vector-core")
# Chance decides what is seen of them first: the document is not held to the words.
CHANCE = ("stale flag", "uninitialised local", "endless loop", "flag never set", "crash")
GOOD = (("attention", 0), ("stencil", 1), ("reduce", 3), ("pipeline", 2), ("gather", 5), ("scopes", 4), ("padded", 0), ("atomics", 5))


# --- tables ---


def row_of(bug, recorded, diagnosis):
    """A row of the table of bugs: what is said first, and which line is accused."""
    if recorded.code == 2:
        said, line = recorded.case.get("error") or recorded.error.strip(), ""
    else:
        first = diagnosis.findings[0] if diagnosis.findings else {"sentence": "no finding", "source": None}
        said, line = first["sentence"], ""
        if first.get("source"):
            line = f"`{pathlib.Path(first['source']['file']).name}:{first['source']['line']}`"
    return [bug.name, bug.group, said.replace(str(zoo.root), "").replace("|", "\\|"), line]


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def peers_table():
    rows = [[group, str(sum(bug.group == group for bug in bugs.BUGS)), *peers.ANSWERS[group]] for group in dict.fromkeys(b.group for b in bugs.BUGS)]
    return table(["class", "bugs", "compute-sanitizer", "msSanitizer"], rows)


def without_numbers(line):
    """Addresses, times and the task that a race hits first vary from run to run."""
    line = re.sub(r"0x[0-9a-f]+", "0", line)
    return re.sub(r"(?<![\w-])-?[\d,]*\.?\d+(e[+-]?\d+)?\b", "0", line)


def documented():
    """The rows of both tables in the document, between its two marks."""
    if not DOCUMENT.exists():
        return None
    parts = re.search(r"<!-- zoo -->\n(.*?)<!-- /zoo -->", DOCUMENT.read_text(), re.DOTALL)
    return parts.group(1).split("\n") if parts else None


def is_chance(row):
    """So it is of races, and of two tasks that nothing orders."""
    bug = next(bug for bug in bugs.BUGS if bug.name == row[0])
    return bug.group in CHANCE or bool(bug.others) or "race" in bug.group or " race" in row[2]


def check_document(rows):
    lines = documented()
    if not check("docs/diagnose.md has the tables of the zoo, between <!-- zoo --> and <!-- /zoo -->", lines is not None, True):
        return
    known = {line.split(" | ")[0].removeprefix("| "): without_numbers(line) for line in lines if line.startswith("| ")}
    for row in rows:
        line = without_numbers("| " + " | ".join(row) + " |")
        check(f"docs/diagnose.md: the row of {row[0]}", line if is_chance(row) and row[0] in known else known.get(row[0]), line)
    for line in peers_table():
        check(f"docs/diagnose.md: the class {line.split(' | ')[0]}", line in lines, True)


# --- the suite ---


def answer(bug):
    recorded = zoo.run(zoo.planted(bug), bug.name, bug.runtime, bug.platform, bug.case)
    return recorded, zoo.diagnose(recorded, with_text=bug.name in SAMPLE[:4])


def judge_bugs(chosen):
    """Judges all, prints what failed, and returns their rows."""
    rows, failed = [], []
    for bug in chosen:
        recorded, diagnosis = answer(bug)
        wrong = zoo.judge(bug, recorded, diagnosis)
        rows.append(row_of(bug, recorded, diagnosis))
        check(f"{bug.name} ({bug.group}, {bug.scene}, {bug.runtime}, {bug.platform}): {rows[-1][2]}", wrong, [])
        if wrong:
            failed.append([bug.name, bug.group, bug.scene, wrong[0]])
        if len(chosen) > 1:
            shutil.rmtree(recorded.dump, ignore_errors=True)
    if failed:
        print("\n".join(table(["bug", "class", "scene", "what is wrong"], failed)))
    print(f"{len(chosen) - len(failed)} of {len(chosen)} bugs named")
    return rows


def variants_of(scene):
    text = (zoo.SCENES / scene / "scene.json").read_text()
    return [(runtime, platform) for runtime in RUNTIMES for platform in PLATFORMS if f'"{runtime}"' in text]


def judge_good(chosen):
    for scene, runtime, platform in chosen:
        recorded = zoo.run(zoo.copied(scene), f"good-{scene}", runtime, platform)
        check(f"good {scene} {runtime} {platform}: the run ({recorded.error})", (recorded.code, recorded.case.get("status")), (0, "ok"))
        check(f"good {scene} {runtime} {platform}", zoo.judge_good(zoo.diagnose(recorded)), [])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("glassbox")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(table(["bug", "class", "scene", "runtime", "platform"],
                              [[bug.name, bug.group, bug.scene, bug.runtime, bug.platform] for bug in bugs.BUGS])))
        return 0
    if options.table:
        rows = [row_of(bug, *answer(bug)) for bug in bugs.BUGS]
        print("\n".join([*table(["bug", "class", "first line", "source"], rows), "", *peers_table()]))
        shutil.rmtree(zoo.root)
        return 0
    unknown = set(options.only) - {bug.name for bug in bugs.BUGS}
    if unknown:
        parser.error(f"unknown bug {', '.join(sorted(unknown))}; --list lists them")
    if options.only:
        judge_bugs([bug for bug in bugs.BUGS if bug.name in options.only])
        print(f"kept: {zoo.root}")
        return report()
    check_document(judge_bugs([bug for bug in bugs.BUGS if STRESS or bug.name in SAMPLE]))
    judge_good([(scene, *variant) for scene in dict.fromkeys(b.scene for b in bugs.BUGS) for variant in variants_of(scene)] if STRESS else
               [(scene, *variants_of(scene)[i % len(variants_of(scene))]) for scene, i in GOOD])
    shutil.rmtree(zoo.root)
    return report()


sys.exit(main())
