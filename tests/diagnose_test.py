#!/usr/bin/python3
"""glassbox diagnose: what it says of whole runs, what it could not ask, and the document that it keeps.

usage: diagnose_test.py GLASSBOX EXAMPLES

Who reads what a task left is computed here from the views of the graph, element by element. Sentences are compared in their parts only.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from command_support import ENVIRONMENT, GLASSBOX, check, check_in, glassbox
from dump_encoder import xxhash
from replay_findings_support import N, Scene, write_kernel
from replay_support import EXAMPLES, entries_of, manifest, root, run_parts

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
COPY = "for (int i = 0; i < n; ++i) y[i] = x[i];"
TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
ARGS = "in x, out y"
QUESTIONS = ["dump", "run", "audit", "replay", "races", "references", "sanitizers", "nan", "golden", "graph"]
OF_CODE = {"replay", "races", "references", "sanitizers"}
WHOLE, TEXT, LIST = int, str, list
FINDING = {"kind": TEXT, "sentence": TEXT, "task_seq": (WHOLE, None), "task_id": (TEXT, None), "kernel": (TEXT, None),
           "arg_index": (WHOLE, None), "arg_name": (TEXT, None), "element": (LIST, None), "bytes": (WHOLE, None), "blocks": LIST,
           "source": (dict, None), "other_task_seq": (WHOLE, None), "tasks": LIST, "evidence": LIST, "victims": LIST,
           "victims_known": bool, "follows": (WHOLE, None), "command": TEXT}


# --- running and asking ---


def recorded(scene, name, *options, code=0):
    """A dump of a scene, which keeps nothing of an earlier one."""
    dump = root / name
    shutil.rmtree(dump, ignore_errors=True)
    folder = scene.write() if isinstance(scene, Scene) else scene
    if not any(str(option).startswith("--dump-tensor") for option in options):
        options += ("--dump-tensor",)
    done = glassbox("run", folder, "-o", dump, "--guard=off", *options)
    check(f"run {name} {options}: exit code ({done.stderr})", done.returncode, code)
    return dump


def asked(dump, *options, code, stderr="", environment=ENVIRONMENT):
    """The document of a diagnosis, after looking at its form and at the one that is kept."""
    done = glassbox("diagnose", dump, "--json", *options, environment=environment)
    what = f"diagnose {pathlib.Path(dump).name} {options}"
    check(f"{what}: exit code and stderr", (done.returncode, done.stderr), (code, stderr))
    document = json.loads(done.stdout or '{"findings": [], "asked": [], "tasks": 0, "left_out": 0, "dump": {}}')
    check_form(what, document)
    if "--no-save" not in options and "--task" not in options:
        check(f"{what}: what is kept", (pathlib.Path(dump) / "diagnosis.json").read_text(), done.stdout)
    return document


def text_of(dump, *options, code):
    done = glassbox("diagnose", dump, "--no-save", *options)
    check(f"diagnose {pathlib.Path(dump).name} {options}: exit code and stderr of the text", (done.returncode, done.stderr), (code, ""))
    return done.stdout


def told(dump, *options, code):
    """The text of a diagnosis, and the document that it keeps."""
    done = glassbox("diagnose", dump, *options)
    what = f"diagnose {dump.name} {options}"
    check(f"{what}: exit code and stderr of the text", (done.returncode, done.stderr), (code, ""))
    document = json.loads((dump / "diagnosis.json").read_text())
    check_form(what, document)
    return done.stdout, document


def refused(dump, *options):
    done = glassbox("diagnose", dump, *options)
    check(f"diagnose {pathlib.Path(dump).name} {options}: refused", (done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
    check(f"diagnose {pathlib.Path(dump).name} {options}: name of the command", done.stderr.startswith("glassbox diagnose: "), True)
    return done.stderr


def is_of(value, wanted):
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    return (value is None and None in kinds) or type(value) in [kind for kind in kinds if kind is not None]


def check_form(what, document):
    check(f"{what}: members", list(document), ["schema_version", "generator", "dump", "tasks", "left_out", "findings", "asked"])
    check(f"{what}: schema", document["schema_version"], 1)
    check(f"{what}: members of dump", list(document["dump"]), ["run_id", "records", "hash"])
    check(f"{what}: hash {document['dump']['hash']}", bool(re.fullmatch("[0-9a-f]{32}", document["dump"]["hash"])), True)
    check(f"{what}: questions", [one["question"] for one in document["asked"]], QUESTIONS)
    for one in document["asked"]:
        check(f"{what}: members of asked", list(one), ["question", "tasks", "findings", "not_asked", "why", "harmless"])
        check(f"{what}: types of {one}", [is_of(one[key], kind) for key, kind in
                                          (("tasks", WHOLE), ("findings", WHOLE), ("not_asked", WHOLE), ("why", (TEXT, None)),
                                           ("harmless", (TEXT, None)))], [True] * 5)
        check(f"{what}: {one['question']}: a reason for what was not asked", one["not_asked"] == 0 or bool(one["why"]), True)
        check(f"{what}: {one['question']}: no more tasks than there are", one["tasks"] + one["not_asked"] <= document["tasks"], True)
    for number, finding in enumerate(document["findings"]):
        check_finding(f"{what}: finding {number}", finding, number)
    accused = [task for finding in document["findings"] for task in finding["tasks"]]
    check(f"{what}: a task of two findings", sorted(set(accused)), sorted(accused))


def check_finding(what, finding, number):
    check(f"{what}: members", list(finding), list(FINDING))
    check(f"{what}: types", [key for key, kind in FINDING.items() if not is_of(finding.get(key), kind)], [])
    check(f"{what}: sentence", (finding["sentence"].count("\n"), finding["sentence"].strip()), (0, finding["sentence"]))
    check(f"{what}: the first of its tasks", finding["tasks"][:1], [] if finding["task_seq"] is None else [finding["task_seq"]])
    check(f"{what}: no task hurts itself", set(finding["tasks"]) & set(finding["victims"]), set())
    check(f"{what}: lists are of tasks, once each", [sorted(set(finding[key])) == sorted(finding[key]) for key in ("tasks", "victims")], [True] * 2)
    check(f"{what}: follows an earlier one", finding["follows"] is None or finding["follows"] < number, True)
    check(f"{what}: command", finding["command"].startswith("glassbox "), True)
    if finding["task_seq"] is not None:
        check_in(what, f"task {finding['task_seq']}", finding["sentence"])
        check_in(what, finding["kernel"], finding["sentence"])
    if finding["source"]:
        check(f"{what}: members of source", list(finding["source"]), ["file", "line"])


def question(document, name):
    return next(one for one in document["asked"] if one["question"] == name)


def of_code(document, key):
    """Of the questions for which kernels are called."""
    return {one["question"]: one[key] for one in document["asked"] if one["question"] in OF_CODE}


def named(document):
    """What each finding accuses."""
    return [(f["kind"], f["kernel"], f["arg_name"], f["tasks"]) for f in document["findings"]]


# --- who reads what: element by element ---


def elements(view):
    """The numbers of a view's elements in its tensor."""
    at = np.array(view.offset)
    for length, stride in zip(view.shape, view.strides):
        at = np.add.outer(at, np.arange(length) * stride)
    return {(view.tensor, int(i)) for i in at.reshape(-1)}


def victims_of(scene, guilty):
    """Tasks that read what the guilty ones left, or what somebody made of it; tasks run in the order of their numbers."""
    bad, found = set(), []
    for task, (kernels, views, _) in enumerate(scene.tasks):
        roles = scene.kernels[next(iter(kernels.values()))]["signature"]
        read = set().union(*(elements(v) for v, role in zip(views, roles) if role != "out"))
        written = set().union(*(elements(v) for v, role in zip(views, roles) if role != "in"))
        is_hurt = task not in guilty and bool(read & bad)
        found += [task] * is_hurt
        bad = bad | written if is_hurt or task in guilty else bad - written
    return found


# --- several bugs in one run ---

STRAYS = {"pairs": 3, "twofold": 13}  # tasks that write outside of their output


def make_several():
    s = Scene("several")
    x, pairs, square = s.tensor("x"), s.output("pairs", (2, N)), s.output("square", (4, N))
    a, b, c, d, raced, e, f, g, h, i, j, k, both = (s.output(name) for name in "a b c d raced e f g h i j k both".split())
    twice, copy = str(write_kernel("several-twice", ARGS, TWICE)), str(write_kernel("several-copy", ARGS, COPY))
    s.kernel("copy", ARGS, COPY, reference=copy)
    s.kernel("wrong", ARGS, TWICE + " y[5] += 1;", reference=twice)
    s.kernel("over", ARGS, TWICE + " y[n] = 3;")
    s.kernel("races", ARGS, TWICE + " y[block] += block; y[9] = x[9] + block;")
    s.kernel("twofold", ARGS, TWICE + " y[7] += 1; y[n + 1] = 3;", reference=twice)
    s.kernel("sums", "in x, in z, out y", "for (int i = 0; i < n; ++i) y[i] = x[i] + z[i];")
    s.task("copy", x, a)                        # 0
    s.task("wrong", a, b)                       # 1
    s.task("copy", b, c)                        # 2, hurt by 1
    s.task("over", a, pairs[0])                 # 3
    s.task("copy", a, pairs[1])                 # 4 writes over what 3 has written outside of its output
    s.task("races", a, raced, blocks=2)         # 5
    s.task("copy", raced, e)                    # 6, hurt by 5
    s.task("wrong", pairs[1], f)                # 7
    s.task("sums", f, raced, g)                 # 8, hurt by 7 and 5
    s.task("copy", pairs[0], h)                 # 9, hurt by 3
    s.task("copy", x, i)                        # 10
    s.task("copy", x, c)                        # 11 writes over what 2 has left
    s.task("copy", c, j)                        # 12: not hurt
    s.task("twofold", x, square[1])             # 13
    s.task("copy", square[0], k[:])             # 14 reads another row; what 13 wrote outside of its row lies in row 2
    s.task("sums", square[1, :], h, both)       # 15, hurt by 13 and 3
    s.task("copy", a, square[2])                # 16 writes over it
    s.task("copy", a, square[3])
    s.tensors[[t["name"] for t in s.tensors].index("square")] |= {"role": "inout", "fill": "constant", "value": 1}
    return s


def check_several():
    """Three kernels and three kinds: all are listed, by first appearance, each with its own tasks and victims."""
    scene = make_several()
    dump = recorded(scene, "several")
    document = asked(dump, code=1)
    check("several: what is accused", named(document), [("wrong_result", "wrong", "y", [1, 7]), ("stray_write", "over", "y", [3]),
                                                        ("write_race", "races", "y", [5]), ("stray_write", "twofold", "y", [13])])
    for finding in document["findings"]:
        check(f"several: victims of {finding['kernel']}", (finding["victims"], finding["victims_known"]),
              (victims_of(scene, finding["tasks"]), True))
    wrong, over, races, twofold = document["findings"] if len(document["findings"]) == 4 else [{}] * 4
    check("several: elements", (wrong.get("element"), races.get("element") in ([0], [1], [9])), ([5], True))
    check("several: blocks of the race", [b["block_idx"] for b in races.get("blocks", [])], [0, 1])
    check("several: bytes", (over.get("bytes"), twofold.get("bytes")), (4, 4))
    check("several: evidence of the second bug of a kernel", any("y[7]" in text for text in twofold.get("evidence", [])), True)
    for finding in (over, twofold):
        check_source(scene, finding, "y[n")
    check("several: numbers", (document["tasks"], document["left_out"]), (len(scene.tasks), 0))
    check_document(dump, document)
    check_text(dump, document)
    check_tasks(dump, scene)
    check_saving(dump)


def check_second_of_many():
    """A kernel that is wrong after many wrong tasks of another one is named with its argument and element, too."""
    s, many = Scene("second"), 25
    x, z = s.tensor("x"), s.output("z")
    rows = s.output("rows", (many, N))
    twice = str(write_kernel("second-twice", ARGS, TWICE))
    s.kernel("first", ARGS, TWICE + " y[5] += 1;", reference=twice)
    s.kernel("second", ARGS, TWICE + " y[3] += 1;", reference=twice)
    for i in range(many):
        s.task("first", x, rows[i])
    s.task("second", x, z)
    document = asked(recorded(s, "second"), code=1)
    check("second: what is accused", named(document), [("wrong_result", "first", "y", list(range(many))), ("wrong_result", "second", "y", [many])])
    check("second: elements", [f["element"] for f in document["findings"]], [[5], [3]])


def check_source(scene, finding, part):
    """The line of a stray write is the kernel's own."""
    source = finding.get("source") or {"file": "none", "line": 1}
    lines = pathlib.Path(scene.kernels[finding.get("kernel", "over")]["source"]).read_text().split("\n")
    check(f"{finding.get('kernel')}: file of the line", pathlib.Path(source["file"]).name, f"several-{finding.get('kernel')}.c")
    check_in(f"{finding.get('kernel')}: line {source['line']}", part, lines[source["line"] - 1])


def check_document(dump, document):
    journal = (dump / "tensor_dump/tensor_dump.rec").read_bytes()
    value = xxhash.XXH3_128bits(journal, len(journal))
    check("dump: hash", document["dump"]["hash"], f"{value.high:016x}{value.low:016x}")
    check("dump: records", document["dump"]["records"], len(manifest(dump)["tensors"]))
    check("dump: run", document["dump"]["run_id"], manifest(dump)["run"]["run_id"])


def check_text(dump, document):
    """The text begins with the first finding, has the others in order, and the same tasks and victims."""
    text = text_of(dump, code=1)
    check("text: first line", text.split("\n")[0], document["findings"][0]["sentence"])
    places = [text.find(f"\n{finding['sentence']}\n") for finding in document["findings"][1:]]
    check("text: the others in order", (min(places) > 0, places), (True, sorted(places)))
    for finding in document["findings"]:
        check_in(f"text: command of task {finding['task_seq']}", f"again: {finding['command']}\n", text)
        if len(finding["tasks"]) > 1:
            check_in("text: more tasks", f"1 more task of this kernel: {finding['tasks'][1]}\n", text)
    accused = sum(len(finding["tasks"]) for finding in document["findings"])
    check_in("text: the innocent", f"{document['tasks'] - accused} of {document['tasks']} tasks", text)
    again = glassbox(*document["findings"][1]["command"].split()[1:])
    check("text: the command shows it again", (again.returncode, "outside its outputs" in again.stdout), (1, True))


def check_tasks(dump, scene):
    """--task leaves out the others and what is known of them."""
    of_id = next(e["task_id"] for e in manifest(dump)["tensors"] if e["task_seq"] == 7)
    for options, code, kernels, chosen in ((("--task", of_id), 1, [("wrong", [7])], 1),
                                           (("--task", "1..4"), 1, [("wrong", [1]), ("over", [3])], 4), (("--task", "10", "--task", "0"), 0, [], 2)):
        before = (dump / "diagnosis.json").read_bytes()
        document = asked(dump, *options, code=code)
        check(f"{options}: the verdict about all tasks is kept", ((dump / "diagnosis.json").read_bytes() == before, json.loads(before)["left_out"]), (True, 0))
        check(f"{options}: what is accused", [(f["kernel"], f["tasks"]) for f in document["findings"]], kernels)
        check(f"{options}: numbers", (document["tasks"], document["left_out"]), (len(scene.tasks), len(scene.tasks) - chosen))
        for name in ("replay", "races", "references", "sanitizers"):
            check(f"{options}: {name} of no more tasks than chosen", question(document, name)["tasks"] <= chosen, True)
    check_in("--task of no task", "--task", refused(dump, "--task", "999"))
    check("--task of no task: nothing is kept", json.loads((dump / "diagnosis.json").read_text())["left_out"], 0)


def check_saving(dump):
    kept = dump / "diagnosis.json"
    kept.unlink()
    text_of(dump, "--task", "10", code=0)
    check("--no-save keeps nothing", (kept.exists(), sorted(p.name for p in dump.glob("*.tmp"))), (False, []))
    kept.mkdir()
    done = glassbox("diagnose", dump, "--json")
    check("cannot be kept: exit code, lines of stderr", (done.returncode, done.stderr.count("\n")), (1, 1))
    for part in ("glassbox diagnose: warning: ", str(kept), "--no-save"):
        check_in("cannot be kept", part, done.stderr)
    check("cannot be kept: is shown", json.loads(done.stdout)["findings"][0]["tasks"], [1, 7])
    check("cannot be kept: nothing is left", sorted(p.name for p in dump.glob("diagnosis.json*")), ["diagnosis.json"])
    kept.rmdir()
    elsewhere = root / "elsewhere"
    subprocess.run(["sh", "-c", 'ln -s "$2" "$1/diagnosis.json.$$.tmp" && exec "$0" diagnose "$1"', GLASSBOX, dump, elsewhere],
                   env=ENVIRONMENT, capture_output=True, timeout=300)
    check("a link where it is written: is not followed", (elsewhere.exists(), kept.is_file(), kept.is_symlink()), (False, True, False))
    text, document = told(dump, code=1)
    check("text keeps the document, too", document["findings"][0]["sentence"], text.split("\n")[0])
    kept.unlink()
    text = glassbox("diagnose", dump, "--task", "7").stdout
    check_in("--task: left out", f"{document['tasks'] - 1} tasks", text.split("left out", 1)[-1])
    check("--task: nothing is kept", kept.exists(), False)


# --- whose code is run, and where references are ---


def make_wrong(name="plain"):
    """A copy and a wrong kernel with a reference, in this order; the second reads what the first left."""
    s = Scene(name)
    a, b, c = s.tensor("a"), s.output("b"), s.output("c")
    s.kernel("copy", ARGS, COPY, reference=str(write_kernel("several-copy", ARGS, COPY)))
    s.kernel("wrong", ARGS, TWICE + " y[5] += 1;", reference=str(write_kernel("several-twice", ARGS, TWICE)))
    s.task("copy", a, b)
    s.task("wrong", b, c)
    return s


def check_trust():
    """Kernels that came with a dump do not run: what needs no code is asked, the rest is counted, with the reason."""
    own = {**ENVIRONMENT, "GLASSBOX_CACHE": str(root / "own-cache")}
    scene = make_wrong("moved")
    folder, dump = scene.write(), root / "foreign"
    done = glassbox("run", folder, "-o", dump, "--dump-tensor", environment=own)
    check("foreign: run", done.returncode, 0)
    shutil.rmtree(root / "own-cache")
    hidden = {}
    for path in [pathlib.Path(kernel["source"]) for kernel in scene.kernels.values()]:
        hidden[path] = path.read_text()
        path.unlink()
    document = asked(dump, code=0, environment=own)
    check("foreign: what was asked", [(one["question"], one["tasks"]) for one in document["asked"] if one["question"] not in ("golden", "graph")],
          [(name, 0 if name in OF_CODE else 2) for name in QUESTIONS[:-2]])
    check("foreign: not asked", of_code(document, "not_asked"), dict.fromkeys(OF_CODE, 2))
    for name in ("replay", "races", "sanitizers"):
        check_in(f"foreign: {name}", "--trust", question(document, name)["why"])
    text = glassbox("diagnose", dump, "--no-save", environment=own).stdout
    check("foreign: nobody was called", [bool(re.search(rf"\b0 {what}", text)) for what in ("called again", "called with sanitizers")], [True, True])
    check_never_right("foreign", text)
    for path, text in hidden.items():
        path.write_text(text)
    trusted = asked(dump, "--trust", code=1, environment={**own, "GLASSBOX_CACHE": str(root / "other-cache")})
    check("trusted: what is accused", named(trusted), [("wrong_result", "wrong", "y", [1])])
    check("trusted: what was asked", of_code(trusted, "tasks"), dict.fromkeys(OF_CODE, 2))
    check_scene()


def check_scene():
    """Without its scene a dump is asked for everything but references."""
    scene = make_wrong()
    folder, dump = scene.write(), recorded(scene, "moved")
    away = folder.with_name("moved-away")
    folder.rename(away)
    document = asked(dump, code=0)
    check("scene gone: references", [question(document, "references")[key] for key in ("tasks", "not_asked")], [0, 2])
    check_in("scene gone: why", str(folder), question(document, "references")["why"])
    check("scene gone: the rest", [question(document, name)["tasks"] for name in ("replay", "races", "audit")], [2] * 3)
    check("scene named: what is accused", named(asked(dump, "--scene", away, code=1)), [("wrong_result", "wrong", "y", [1])])
    check_in("no such scene", "nowhere", refused(dump, "--scene", root / "nowhere"))
    other = Scene("other")
    other.once("else", ARGS, COPY, other.tensor("x"), other.output("y"))
    check_in("another scene", "scene", refused(dump, "--scene", other.write()))
    away.rename(folder)


# --- dumps that do not hold everything ---


def check_never_right(what, text):
    claim = re.search(r"(?i)\b(all right|all (\w+ ){0,3}(are|is) right|ok|no bugs?|correct)\b", text)
    check(f"{what}: never says that all is right", claim and claim.group(), None)


def check_levels():
    """What a dump does not hold is not asked, and nothing is claimed of it."""
    scene = make_wrong()
    for name, options in (("stats", ("--dump-tensor=stats",)), ("hybrid", ("--dump-tensor=hybrid", "--dump-filter", "arg=1")),
                          ("partial", ("--dump-tensor=partial", "--dump-filter", "task=1")), ("unmarked", ("--dump-tensor=partial",)),
                          ("filtered", ("--dump-filter", "role=output")), ("cut", ("--dump-max-tensor", 16))):
        dump = recorded(scene, name, *options)
        has_all_of_1 = name == "partial"
        text, document = told(dump, code=int(has_all_of_1))
        check(f"{name}: what is accused", named(document), [("wrong_result", "wrong", "y", [1])] if has_all_of_1 else [])
        count = document["tasks"]
        for one in ("replay", "references"):
            there = question(document, one)
            check(f"{name}: {one}", (there["tasks"], there["not_asked"]), (1, count - 1) if has_all_of_1 else (0, count))
        check_never_right(name, text)
        with_tensors, with_outputs = {"partial": (1, 1), "unmarked": (0, 0)}.get(name, (2, 2))
        for one, there in (("audit", with_tensors), ("nan", with_outputs)):
            check(f"{name}: {one}", [question(document, one)[key] for key in ("tasks", "not_asked")], [there, count - there])
        check_in(f"{name}: audited", f"{with_tensors} audited", text)
        if name != "cut" and not has_all_of_1:
            check(f"{name}: why no kernel was called", question(document, "replay")["why"], "the dump lacks data that the task needs")
        check(f"{name}: says what was not asked", (f"not asked of {count} task" in text or has_all_of_1, "run again" in text), (True, True))
    check_damage(scene)


def check_damage(scene):
    """One byte of payload is not what was recorded."""
    dump = recorded(scene, "damaged", "--no-dedup")
    with open(dump / "tensor_dump/tensor_dump.bin", "r+b") as file:
        at = entries_of(manifest(dump), 0, "after_completion")[1]["bin_offset"] + 9
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 64]))
    document = asked(dump, code=1)
    first = document["findings"][0]
    check("damaged: first", (first["kind"], first["task_seq"], question(document, "dump")["findings"]), ("damaged_dump", None, 1))
    for part in ("task 0", "argument 1", "damage"):
        check_in("damaged", part, first["sentence"])
    check_in("damaged: command", "glassbox verify", first["command"])
    check("damaged: an innocent task is not accused", [f["tasks"] for f in document["findings"] if 0 in f["tasks"]], [])


def check_old_dumps():
    """Dumps of older versions and of another tool: what is there is asked, nobody is accused without reason."""
    ended_in = {"crashed": ("task 3", "tally"), "killed": ("task 3", "tally"), "recovered": ("task 3", "tally")}
    places = [*sorted((FIXTURES / "format/0.1.0").iterdir()), *sorted((FIXTURES / "simpler").iterdir())]
    for place in (p for p in places if p.is_dir() and p.name != "scene"):
        guilty = ended_in.get(place.name)
        document = asked(place, "--no-save", code=int(bool(guilty)))
        accused = {task for finding in document["findings"] for task in finding["tasks"]}
        check(f"{place.name}: accused", accused, {3} if place.name == "crashed" else set())
        if guilty:
            check(f"{place.name}: a run that ended early is no damage", [f["kind"] for f in document["findings"] if f["kind"] == "damaged_dump"], [])
            check(f"{place.name}: sentence", any(all(part in f["sentence"] for part in guilty) for f in document["findings"]), True)
        check(f"{place.name}: nothing of it was called", of_code(document, "tasks"), dict.fromkeys(OF_CODE, 0))
        check_never_right(place.name, text_of(place, code=int(bool(guilty))))
    copy = root / "simpler"
    shutil.copytree(FIXTURES / "simpler/vector_example", copy)
    before = hashlib.sha256((copy / "args_dump.json").read_bytes()).hexdigest()
    asked(copy, code=0)
    check("another tool's dump: its manifest stays", hashlib.sha256((copy / "args_dump.json").read_bytes()).hexdigest(), before)
    (root / "empty").mkdir()
    check_in("no dump", "no dump found", refused(root / "empty"))


# --- runs that failed ---

WAYS = {"crashes": "int *volatile bad = (int *)16; y[0] = x[0]; *bad = n;", "hangs": "for (y[0] = x[0]; n > 0;) usleep(1000);"}


def make_failing(name, body, waits_for=None):
    s = Scene(name)
    a, b, c, d = s.tensor("a"), s.output("b"), s.output("c"), s.output("d")
    s.once("copy", ARGS, COPY, a, b)
    s.once(name, ARGS, body, b, c, head="#include <unistd.h>\n#include <stdio.h>")
    s.task("copy", c, d, name="last")
    return s


def check_failed_runs():
    for name, kind in (("crashes", "crash"), ("hangs", "hang")):
        dump = recorded(make_failing(name, WAYS[name]), name, "--timeout", "1", code=3)
        document = asked(dump, "--timeout", "1", code=1)
        first = document["findings"][0]
        check(f"{name}: first", (first["kind"], first["kernel"], first["tasks"]), (kind, name, [1]))
        check(f"{name}: nobody else", len(document["findings"]), 1)
        check(f"{name}: evidence of calling it again", len(first["evidence"]) >= 1, True)
    check_two_hung()
    check_killed()


def check_two_hung():
    """Two tasks of one kernel hang: it is called again once."""
    s = Scene("two-hung", in_order=False)
    x = s.tensor("x")
    s.kernel("hangs", ARGS, WAYS["hangs"], head="#include <unistd.h>")
    for name in "yz":
        s.task("hangs", x, s.output(name), name=name)
    document = asked(recorded(s, "two-hung", "--timeout", "1", code=3), "--timeout", "1", code=1)
    first = document["findings"][0]
    check("two hung: first", (first["kind"], first["kernel"]), ("hang", "hangs"))
    check_in("two hung: the other", "its kernel hung when task 0 was called again", question(document, "replay")["why"] or "")


def kill_chips(run, started):
    """Kills the processes of a run's chips once a kernel has made a file; the run must fail."""
    while not started.exists() and run.poll() is None:
        time.sleep(0.02)
    chips = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    check("killed: a chip runs", len(chips) >= 1, True)
    for chip in chips:
        os.kill(int(chip), signal.SIGKILL)
    run.communicate()
    check("killed: exit code of the run", run.returncode, 3)


def check_killed():
    """The chip's process is killed while a task runs: the task is named, and nothing crashes."""
    started = root / "killed-started"
    body = f'FILE *f = fopen("{started}", "w"); if (f) fclose(f); for (y[0] = x[0]; n > 0;) usleep(1000);'
    folder, dump = make_failing("killed", body).write(), root / "killed"
    run = subprocess.Popen([GLASSBOX, "run", folder, "-o", dump, "--dump-tensor", "--timeout", "100"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    kill_chips(run, started)
    document = asked(dump, "--timeout", "1", code=1)
    sentences = " ".join(finding["sentence"] for finding in document["findings"])
    check("killed: accused", {task for finding in document["findings"] for task in finding["tasks"]} <= {1}, True)
    check("killed: the run failed", "killed" in sentences or "died" in sentences or "SIGKILL" in sentences, True)


# --- elements that nobody writes ---

PAD = 4  # elements of a tile behind those that are written
CRASHES = "int *volatile bad = (int *)16; *bad = 1;"
WITHIN = " for (int i = 0; i < n; ++i) y[i] = x[i];"  # what is used of a tile


def padded(name, double="", crop=""):
    """A tile that is longer than what is loaded into it; all of it is doubled, and only what was loaded is used."""
    s = Scene(name)
    x, tile, twice, y = s.tensor("x"), s.temporary("tile", (N + PAD,)), s.temporary("twice", (N + PAD,)), s.output("y")
    head = "#include <unistd.h>\n#include <stdio.h>"
    s.once("load", "in x, out tile", f"for (int i = 0; i < {N}; ++i) tile[i] = x[i];", x, tile)
    s.once("double", "in tile, out twice", f"{double} for (int i = 0; i < n; ++i) twice[i] = 2 * tile[i];", tile, twice, head=head)
    s.once("crop", "in x, out y", crop + WITHIN, twice, y, head=head)
    return s


def check_padding():
    """Padding that nobody writes is no finding, also if nobody knows what would have reached a result."""
    document = asked(recorded(padded("padded"), "padded"), code=0)
    check_in("padded: harmless", "1 output is not completely written", question(document, "replay")["harmless"])
    for task, (name, more) in enumerate((("double", {"double": CRASHES}), ("crop", {"crop": CRASHES})), 1):
        document = asked(recorded(padded(f"padded-{name}", **more), f"padded-{name}", code=3), code=1)
        check(f"padded, {name} crashes: what is accused", [(f["kind"], f["kernel"], f["tasks"], f["follows"]) for f in document["findings"]],
              [("crash", name, [task], None)])
        check(f"padded, {name} crashes: the padding is no evidence", [text for text in document["findings"][0]["evidence"] if "load" in text], [])
        replay = question(document, "replay")
        check(f"padded, {name} crashes: numbers", [replay[key] for key in ("tasks", "findings", "not_asked")], [task, 1, 1])
        for part in ("the task did not complete", "1 output is not completely written", "the run failed"):
            check_in(f"padded, {name} crashes: not asked", part, replay["why"])
    check_padding_of_killed()
    check_padding_late()
    check_padding_of_broken()


def check_padding_of_killed():
    """The run of a correct program is killed while its last task runs."""
    started, hold, dump = root / "padded-started", root / "padded-hold", root / "padded-killed"
    wait = f'FILE *f = fopen("{started}", "w"); if (f) fclose(f); while (access("{hold}", F_OK) == 0) usleep(1000);'
    hold.touch()
    run = subprocess.Popen([GLASSBOX, "run", padded("padded-killed", crop=wait).write(), "-o", dump, "--dump-tensor", "--timeout", "100"],
                           env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    kill_chips(run, started)
    hold.unlink()
    document = asked(dump, code=1)
    check("padded, killed: the run", [f["tasks"] for f in document["findings"]], [[2]])
    check_in("padded, killed: the run", "SIGKILL", document["findings"][0]["sentence"])
    check_in("padded, killed: not asked", "1 output is not completely written", question(document, "replay")["why"] or "")


def check_padding_late():
    """A call that does not return in time is no evidence; that it was made is said."""
    late = f"if (tile[{N}] == tile[{N}] && tile[{N}] != 0) sleep(30);"  # new memory holds NaN, or 0
    document = asked(recorded(padded("padded-late", double=late), "padded-late"), "--timeout", "1", code=0)
    check_in("padded, late: why", "1 output is not completely written, and whether that matters is not known", question(document, "replay")["why"])
    check_in("padded, late: why", "--timeout", question(document, "replay")["why"])
    check("padded, late: numbers", [question(document, "replay")[key] for key in ("tasks", "findings", "harmless")], [3, 0, None])


def check_padding_of_broken():
    """A task that fails whatever it reads is accused, and not the one that left its padding."""
    marker = root / "padded-broken-now"
    dump = recorded(padded("padded-broken", double=f'if (access("{marker}", F_OK) == 0) {{ {CRASHES} }}'), "padded-broken")
    marker.touch()
    document = asked(dump, code=1)
    check("padded, broken: what is accused", [(f["kernel"], f["tasks"]) for f in document["findings"]], [("double", [1])])
    check_in("padded, broken: not asked", "a task that reads it fails, whatever it holds", question(document, "replay")["why"] or "")


def check_sharing_of_failed_runs():
    """A task crashes while another one writes its own row of a buffer that both declare: nobody knows which rows the first would have read."""
    folder = root / "scenes-sharing/padded"
    zoo = pathlib.Path(__file__).resolve().parent / "zoo/scenes"
    shutil.copytree(zoo / "padded", folder)
    shutil.copy(zoo / "graph.h", folder.parent)
    source = folder / "kernels/prefix.c"
    wait = ("    const float *next = gbx_tensor_f32(all) + 3 * all->strides[0];\n    float before;\n    memcpy(&before, next, sizeof before);\n"
            "    for (int i = 0; i < 1000 && memcmp(&before, next, sizeof before) == 0; ++i)\n        usleep(1000);\n")  # task 28 writes this row
    source.write_text("#include <string.h>\n#include <unistd.h>\n" + source.read_text().replace(
        "    for (int64_t j = 0;", f"    if (gbx_arg_i32(args, 2) == 2) {{\n{wait}    {CRASHES}\n    }}\n    for (int64_t j = 0;", 1))
    dump = recorded(folder, "sharing", "--runtime", "host_build_graph", code=3)
    document = asked(dump, code=1)
    check("sharing: what is accused", [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]], [("crash", "prefix", [21])])
    check("sharing: the pair is evidence", [text for text in document["findings"][0]["evidence"] if "task 28 (put)" in text] != [], True)


def check_nan_of_new_memory():
    """NaNs of new memory are none that a task made, also if no kernel may be called; other NaNs are a finding without any golden."""
    own = {**ENVIRONMENT, "GLASSBOX_CACHE": str(root / "nan-cache")}
    for name, made in (("new", ""), ("made", "tile[3] = x[3] / 0 - x[3] / 0;")):
        s = Scene(f"nan-{name}")
        x, tile, y = s.tensor("x"), s.temporary("tile", (N + PAD,)), s.output("y")
        s.once("load", "in x, out tile", f"for (int i = 0; i < {N}; ++i) tile[i] = x[i]; {made}", x, tile)
        s.once("crop", "in x, out y", WITHIN, tile, y)
        for level in ("full", "stats"):
            dump = root / f"nan-{name}-{level}"
            done = glassbox("run", s.write(), "-o", dump, f"--dump-tensor={level}", environment=own)
            check(f"{dump.name}: run", done.returncode, 0)
            padding = np.frombuffer((dump / "tensor_dump/tensor_dump.bin").read_bytes(), np.uint8)
            check(f"{dump.name}: new memory holds NaN", level == "stats" or b"\xff\x7f" * 2 * PAD in padding.tobytes(), True)
        sources = [pathlib.Path(kernel["source"]) for kernel in s.kernels.values()]
        shutil.rmtree(root / "nan-cache")
        for source in sources:
            source.unlink()
        is_made = name == "made"
        document = asked(root / f"nan-{name}-full", code=int(is_made), environment=own)
        check(f"nan {name}: what is accused", named(document), [("nan", "load", "tile", [0])] * is_made)
        check(f"nan {name}: no kernel was called", question(document, "replay")["tasks"], 0)
        document = asked(root / f"nan-{name}-stats", code=0, environment=own)
        check(f"nan {name}, statistics: asked", [question(document, "nan")[key] for key in ("tasks", "findings", "not_asked")], [2, 0, 0])
        check_in(f"nan {name}, statistics: why", "without their bits", question(document, "nan")["why"] or "")


def check_index_of_nobody():
    """A task crashes because of an element that nobody wrote: the crash comes first, and the element is evidence."""
    s = Scene("unwritten-index")
    x, where, y = s.tensor("x"), s.temporary("where", (N,), "int32"), s.output("y")
    s.once("index", "in x, out int32_t where", "for (int k = 0; k < n; ++k) if (k != 40) where[k] = k + 1;", x, where)  # they count from 1
    s.once("gather", "in x, in int32_t where, out y",
           f"for (int k = 0; k < n; ++k) {{ if (where[k] < 1 || where[k] > {N}) {{ {CRASHES} }} y[k] = x[where[k] - 1]; }}", x, where, y)
    document = asked(recorded(s, "unwritten-index", code=3), code=1)
    check("index of nobody: what is accused", [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]], [("crash", "gather", [1])])
    evidence = [text for text in document["findings"][0]["evidence"] if "does not write" in text]
    check("index of nobody: evidence", len(evidence), 1)
    for part in ("task 0", "does not write 1 element of argument 1 where", "[40]", "argument 1 where[40] of task 1 (gather)", "does not fail"):
        check_in("index of nobody: evidence", part, "".join(evidence))


# --- culprits and victims between tasks ---


def check_overrun():
    """A task writes into a tile that another task has filled already: the one is accused, the other is not."""
    s = Scene("overrun")
    x, tiles, end = s.tensor("x"), s.output("tiles", (3, N)), s.output("end")
    twice = str(write_kernel("several-twice", ARGS, TWICE))
    s.kernel("fine", ARGS, TWICE, reference=twice)
    s.kernel("over", ARGS, TWICE + " y[n] = 3; y[n + 1] = 4;", reference=twice)
    s.task("fine", x, tiles[1])
    s.task("over", x, tiles[0])
    s.task("fine", tiles[1], end)
    s.task("fine", x, tiles[2])
    document = asked(recorded(s, "overrun"), code=1)
    check("overrun: what is accused", named(document), [("stray_write", "over", "y", [1])])
    finding = document["findings"][0]
    check("overrun: bytes", finding["bytes"], 8)
    check("overrun: who read what lies outside of its output", finding["victims"], [2])
    check("overrun: the audit's finding is evidence, too", any("task 2" in text for text in finding["evidence"]), True)


def check_consequences():
    """An index from wrong inputs leads outside of a tensor: this may only follow, and the first finding is the other task."""
    s = Scene("consequences")
    x, where, y, z = s.tensor("x"), s.output("where", (N,), "int32"), s.output("y"), s.output("z")
    counts = "for (int k = 0; k < N; ++k) where[k] = N - 1 - k;".replace("N", str(N))
    s.once("index", "in x, out int32_t where", counts + " where[40] = 70;", x, where,
           reference=str(write_kernel("index-reference", "in x, out int32_t where", counts)))
    s.once("gather", "in x, in int32_t where, out y", "for (int k = 0; k < n; ++k) y[k] = x[where[k]];", x, where, y)
    s.once("copy", ARGS, COPY, y, z)
    document = asked(recorded(s, "consequences"), code=1)
    check("consequences: who", [(f["kernel"], f["tasks"], f["follows"]) for f in document["findings"]], [("index", [0], None), ("gather", [1], 0)])
    check("consequences: victims", [f["victims"] for f in document["findings"]], [[1, 2], [2]])
    check("consequences: element", document["findings"][0]["element"], [40])


def check_wrong_for_wrong():
    """A kernel that differs from its reference only for inputs that nobody expects may only follow; one that does for plain inputs is another bug."""
    for name, factor, half, follows in (("huge", "1e25f", "x[k] > 1e20f ? 0 : x[k] / 2", 0), ("plain", "3", "x[k] / 4", None)):
        s = Scene(f"wrong-for-wrong-{name}")
        x, y, z = s.tensor("x"), s.output("y"), s.output("z")
        each = "for (int k = 0; k < n; ++k) y[k] = %s;"
        s.once("scale", ARGS, each % f"x[k] * {factor}", x, y, reference=str(write_kernel(f"scale-{name}", ARGS, each % "x[k] * 2")))
        s.once("half", ARGS, each % half, y, z, reference=str(write_kernel(f"half-{name}", ARGS, each % "x[k] / 2")))
        findings = asked(recorded(s, f"wrong-for-wrong-{name}"), code=1)["findings"]
        check(f"{name}: who", [(f["kind"], f["kernel"], f["tasks"], f["follows"]) for f in findings],
              [("wrong_result", "scale", [0], None), ("wrong_result", "half", [1], follows)])


def check_habits():
    """Kernels of unusual habits that are right: nobody is accused, whatever new memory holds."""
    s = Scene("habits")
    x, wide, one = s.tensor("x", (4, N)), s.tensor("wide", (4, N)), s.tensor("one", ())
    scratch, rows, y, z = s.temporary("scratch", (4, 2 * N)), s.output("rows", (4, N)), s.output("y", (4, N)), s.output("z", (4, N))
    s.kernel("scratch", "in x, out t, out y", f"float *m = t + block * {2 * N}; for (int i = 0; i < {N}; ++i) m[i] = x[block * {N} + i] + 1;"
             f" for (int i = 0; i < {N}; ++i) y[block * {N} + i] = m[{N - 1} - i];")
    s.task("scratch", x, scratch, rows, blocks=4)  # half of its scratch memory stays as it was
    counter = s.tensor("counter", (1,), "int32", "inout", fill="constant", value=0)
    s.kernel("tiles", "in x, inout int32_t c, out y", "for (int t; (t = __atomic_fetch_add(c, 1, __ATOMIC_ACQ_REL)) < 4;)"
             f" for (int i = 0; i < {N}; ++i) y[t * {N} + i] = 2 * x[t * {N} + i];")
    s.task("tiles", rows, counter, y, blocks=6)  # more blocks than work
    s.kernel("masked", ARGS, "for (int i = 0; i < n; ++i) y[i] = i % 5 ? x[i] : -__builtin_inff();")
    s.task("masked", y, z)
    parts, end, nothing = s.output("parts", (4, N)), s.output("end", (4, 60)), s.tensor("nothing", (0,))
    s.kernel("part", ARGS, "for (int i = 0; i < (int)Y->shape[0]; ++i) for (int j = 0; j < (int)Y->shape[1]; ++j)"
             " y[i * Y->strides[0] + j] = lut[i & 3] + x[i * X->strides[0] + j];", head="static const float lut[4] = {1, 2, 4, 8};")
    for i in range(4):
        s.task("part", wide[:, 16 * i:16 * i + 16], parts[:, 16 * i:16 * i + 16], name=f"part{i}")
    s.kernel("vectors", "in x, in empty, in one, out y", "for (int i = 0; i < 4; ++i) { float row[64]; memcpy(row, x + i * 64, i < 3 ? 256 : 240);"
             " for (int j = 0; j < 60; ++j) y[i * 60 + j] = row[j] + one[0]; }")
    s.task("vectors", parts[:, :60], nothing, one, end)  # whole vectors: the gap between rows comes along
    dump = recorded(s, "habits")
    document = asked(dump, code=0)
    check("habits: findings", (document["findings"], [one["findings"] for one in document["asked"]]), ([], [0] * len(QUESTIONS)))
    check("habits: all tasks were called", [question(document, name)["tasks"] for name in ("audit", "replay", "races")], [len(s.tasks)] * 3)


# Blocks whose order shows, in the last digits: any result is accepted.
LAST = "y[0] = x[0] + x[1] + x[2] + x[3] + block * 1e-6f;"
SUMS = {"plain": (LAST, ""),
        "fenced": (f"__sync_synchronize(); {LAST} __sync_synchronize();", ""),
        "largest": ("int32_t o = __atomic_load_n(y, 0); __sync_synchronize(); while (o < x[block] && !__atomic_compare_exchange_n(y, &o, x[block], 1, 0, 0))"
                    ' __asm__ volatile("pause");', ""),
        "locked": ("mtx_lock(&lock); y[0] += x[block]; mtx_unlock(&lock);", "#include <threads.h>\nstatic mtx_t lock;")}


def check_locks():
    """Blocks whose order shows: with a fence, a race is found and a maximum is none; with locks that no sanitizer knows, nothing is said
    as long as a golden accepts the results."""
    s = Scene("locks")
    for name, (body, head) in SUMS.items():
        is_float = name in ("plain", "fenced", "locked")
        fill = {"fill": "constant", "value": 0}
        dtype = "float32" if is_float else "int32"
        s.once(name, "in x, inout y", body, s.tensor(f"x_{name}", (4,), dtype),
               s.tensor(f"y_{name}", (1,), dtype, "inout", **fill), blocks=4, dtype=dtype, head=head)
    golden = "def golden(args):\n    return {" + ", ".join(
        f"'y_{name}': args['x_{name}'].{'max' if name == 'largest' else 'sum'}().reshape(1)" for name in SUMS) + "}\n"
    dump = recorded(with_golden(s, golden=golden), "locks")
    document = asked(dump, code=1)
    check("locks: what is accused", sorted(named(document)), [("write_race", "fenced", "y", [1]), ("write_race", "plain", "y", [0])])
    races = question(document, "races")
    check("locks: what is no finding", races["harmless"], "1 access depends on the order of blocks, and is atomic, says the thread sanitizer")
    check_in("locks: what is not known", "what 1 task leaves depends on the order of its blocks, and whether they race is not known: kernel locked calls mtx_lock, "
             "which the thread sanitizer does not know", races["why"] or "")
    wrong = asked(recorded(with_golden(s, golden=golden.replace("'y_locked': ", "'y_locked': 1 + ")), "locks-wrong", code=1), code=1)
    check_in("locks: a golden that does not accept them", ("write_race", "locked", "y", [3]), named(wrong))


def check_sizes():
    """A kernel that reads the size of a buffer, which no dump has: not asked, by name; one that leaves other values for another reason is accused."""
    s = Scene("sizes")
    x = s.tensor("x")
    s.once("sized", ARGS, "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)X->buffer_bytes;", x, s.output("y"))
    s.once("kept", ARGS, "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)getppid();", x, s.output("z"),
           head="#include <unistd.h>")
    s.once("copied", ARGS, COPY, x, s.output("copy"))
    document = asked(recorded(s, "sizes"), code=1)
    check("sizes: findings", named(document), [("not_repeated", "kept", None, [1])])
    replay = question(document, "replay")
    check("sizes: what was asked", (replay["tasks"], replay["findings"], replay["not_asked"]), (2, 1, 1))
    check_in("sizes: why not", "kernel sized reads buffer_bytes of a tensor, which the dump does not have, and leaves other values without it", replay["why"] or "")


def check_printing():
    """What kernels print is no part of a verdict, with or without a finding; replay shows it."""
    s = Scene("printing")
    words = 'printf("said %d\\n", block); fprintf(stderr, "cried %d\\n", block);'
    s.once("speaks", ARGS, TWICE + words, s.tensor("x"), s.output("y"), head="#include <stdio.h>")
    s.once("adds", ARGS, f"y[0] += x[block]; {words}", s.tensor("v"), s.tensor("z", role="inout"), blocks=2, head="#include <stdio.h>")
    s.kernels["adds"]["signature"] = ["in", "inout"]
    dump = recorded(s, "printing")
    check("printing: what is accused", [f["kind"] for f in asked(dump, code=1)["findings"]], ["write_race"])
    check_in("printing: in a replay", "said 0\n", glassbox("replay", dump, "--task", 0).stderr)


def check_compilers():
    """Sanitizers that a machine does not have: said once, as asked of no task."""
    s = Scene("compilers")
    for name in ("one", "two"):
        s.once(name, ARGS, TWICE, s.tensor(f"x_{name}"), s.output(f"y_{name}"), reference=str(write_kernel("compilers-twice", ARGS, TWICE)))
    dump, tools = recorded(s, "compilers"), root / "tools-without-clang"
    tools.mkdir()
    for name in ("cc", "gcc", "as", "ld"):
        (tools / name).symlink_to(shutil.which(name))
    environment = {**ENVIRONMENT, "PATH": str(tools)}
    environment.pop("CC", None)
    sanitizers = question(asked(dump, "--no-save", code=0, environment=environment), "sanitizers")
    check("without clang: asked", (sanitizers["tasks"], sanitizers["not_asked"]), (2, 0))
    check("without clang: why", sanitizers["why"], "memory was asked of no task: clang is not on PATH; install it (apt install clang libclang-rt-dev llvm)")
    broken = tools / "broken"
    broken.write_text('#!/bin/sh\necho "first\nx.c:1: error: the compiler is broken\nlast" >&2\nexit 1\n')
    broken.chmod(0o755)
    for compiler, said in (("false", ""), (str(broken), ": x.c:1: error: the compiler is broken")):
        document = asked(dump, "--no-save", code=0, environment={**ENVIRONMENT, "CC": compiler})
        check_in(f"CC={compiler}: references", f"compilers-twice.c: {compiler} failed with code 1{said}", question(document, "references")["why"] + "\n")
        check(f"CC={compiler}: one line each", [one["why"] for one in document["asked"] if "\n" in (one["why"] or "")], [])


def check_order():
    """Nothing orders two tasks of which one reads what the other writes: both are named, and the argument."""
    s = Scene("order", in_order=False)
    x, y, z = s.tensor("x"), s.output("y"), s.output("z")
    s.kernel("copy", ARGS, COPY)
    s.kernel("last", "in from, out to", "for (int i = 0; i < n; ++i) to[i] = from[i]; (void)to;".replace("n;", "(int)gbx_tensor_numel(TO);", 1))
    s.task("copy", x, y)
    s.task("last", y, z)
    for runtime in ("host_build_graph", "aicpu_build_graph"):
        document = asked(recorded(s, f"order-{runtime}", "--runtime", runtime), code=1)
        first = document["findings"][0]
        check(f"order {runtime}: first", (first["kind"], {first["task_seq"], first["other_task_seq"]}), ("read_too_early", {0, 1}))
        check(f"order {runtime}: one finding", len(document["findings"]), 1)
        for part in ("task 0", "task 1", "from"):
            check_in(f"order {runtime}", part, first["sentence"])
    check("order: derived edges", asked(recorded(s, "order-derived"), code=0)["findings"], [])


# --- what is harmless, and what only looks like it ---

# What a kernel leaves depends on how many processes have called it since the run: 1 in the run, 2 in those of
# a check, and 1 again.
CHANCE = """#include <stdio.h>
#include <unistd.h>
static float chance(void) {
    FILE *f = fopen("%s", "r+");
    int pid, count = 0, is_known = 0;
    if (!f) return 1;
    for (; fscanf(f, "%%d", &pid) == 1; ++count) is_known |= pid == getpid();
    if (!is_known) fprintf(f, "%%d\\n", getpid());
    fclose(f);
    return count + !is_known <= %d ? 2 : 1;
}"""


def constants(scene, **values):
    """Tensors of one number each."""
    return [scene.tensor(name, (1,), "int32", fill="constant", value=value) for name, value in values.items()]


def asked_by_chance(dump, name, code, *options):
    """Of a dump with kernels that begin to vary after the run."""
    (root / name).write_text("")
    return asked(dump, "--jobs", "1", *options, code=code)


def accused(document):
    return [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]]


def check_chance_in_shared_memory():
    """Tasks write halves of one buffer, which is harmless. A call of another task that happens to leave what the run left does not explain why
    an earlier one did not."""
    s = Scene("halves", in_order=False)
    x, w = s.tensor("x"), s.tensor("w", role="inout")
    s.kernel("low", "in x, inout y", f"for (int i = 0; i < {N // 2}; ++i) y[i] = 3 * x[i];")
    s.kernel("high", "in x, inout y", f"for (int i = {N // 2}; i < {N}; ++i) y[i] = 3 * x[i];")
    s.kernel("varies", ARGS, "float by = chance(); for (int i = 0; i < n; ++i) y[i] = by * x[i];", head=CHANCE % (root / "halves.calls", 2))
    s.task("low", x, w)
    s.task("high", x, w)
    s.task("varies", x, s.output("y"))
    dump = recorded(s, "halves", "--runtime", "host_build_graph")
    document = asked_by_chance(dump, "halves.calls", 1)
    check("halves: what is accused", accused(document), [("not_repeated", "varies", [2])])
    check("halves: what is harmless", [question(document, name)["harmless"] is None for name in ("audit", "replay")], [False, True])


def check_chance_in_sums():
    """Sums of several blocks may differ by rounding in each call. A task that once differed by more is no sum, whether later calls leave what the
    run left, or differ by rounding."""
    for name, noise, kind in (("sums", "0", "not_repeated"), ("noise", "1e-6f * (calls++ & 1)", "not_deterministic")):
        s = Scene(name)
        x = s.tensor("x")
        s.kernel("varies", ARGS, f"float by = block ? 1 : chance() + {noise}; for (int i = block * {N // 2}; i < (block + 1) * {N // 2}; ++i)"
                 " y[i] = by * x[i];", head=CHANCE % (root / f"{name}.calls", 2) + "\nstatic int calls;")
        s.task("varies", x, s.output("y"), blocks=2)
        dump = recorded(with_golden(s, golden="def golden(args):\n    return {'y': args['x']}\n"), name)
        document = asked_by_chance(dump, f"{name}.calls", 1)
        check(f"{name}: the golden accepts them", [question(document, "golden")[key] for key in ("tasks", "findings")], [1, 0])
        check(f"{name}: what is accused", accused(document), [(kind, "varies", [0])])


def check_sums():
    """Sums that differ by rounding in each call, of more tasks than are called again: nobody is accused but the last, which once differed by more."""
    s = Scene("rounding")
    x, right, wrong = s.tensor("x"), *constants(s, right=0, wrong=1)
    s.kernel("sums", "in x, in int32_t wrong, out y", f"float by = block ? 1 : 1 + 1e-6f * (calls++ % 3) + (*wrong ? chance() - 1 : 0);"
             f" for (int i = block * {N // 2}; i < (block + 1) * {N // 2}; ++i) y[i] = by * x[i];",
             head=CHANCE % (root / "rounding.calls", 3) + "\nstatic int calls;")
    y = s.output("y", (25, N))
    for i in range(25):
        s.task("sums", x, wrong if i == 24 else right, y[i], blocks=2, name=f"sums{i}")
    dump = recorded(with_golden(s, golden="def golden(args):\n    return {'y': [args['x']] * 25}\n"), "rounding")
    document = asked_by_chance(dump, "rounding.calls", 1)
    check("rounding: what is accused", accused(document), [("not_deterministic", "sums", [24])])
    check_in("rounding: the others", "24 tasks leave values that differ in each call by rounding", question(document, "replay")["harmless"] or "")


def check_chance_behind_missing_edge():
    """Two tasks that a missing edge leaves without order may leave other values where they overlap, and not elsewhere."""
    s = Scene("edges", in_order=False, edges=[(1, 2)])
    x, w, v = s.tensor("x"), s.tensor("w", role="inout"), s.tensor("v", role="inout")
    s.kernel("first", "in x, inout w", "w[0] = 5;")
    s.kernel("varies", "in x, inout w, inout v", "float by = chance(); w[0] = 7; for (int i = 0; i < n; ++i) v[i] = by * x[i];".replace("n;", f"{N};"),
             head=CHANCE % (root / "edges.calls", 2))
    s.task("first", x, w)
    s.task("first", x, w)
    s.task("varies", x, w, v)  # 2 waits for 1, and would for 0 if that waited for 1
    dump = recorded(s, "edges", "--runtime", "host_build_graph")
    document = asked_by_chance(dump, "edges.calls", 1)
    check("edges: what is accused", accused(document), [("overlapping_writes", "first", [1]), ("not_repeated", "varies", [2])])
    check_in("edges: the pair that follows", "1 more pair of tasks has no order", question(document, "audit")["harmless"] or "")


def check_chosen_of_pairs():
    """--task counts only what it has chosen, and takes no pair for a finding that is none without it."""
    s = Scene("chosen", in_order=False)
    x, y = s.tensor("x"), s.output("y")
    s.kernel("twice", ARGS, TWICE)
    s.kernel("copy", ARGS, COPY)
    for kernel in ("twice", "twice", "copy"):
        s.task(kernel, x, y)
    dump = recorded(s, "chosen", "--runtime", "host_build_graph")
    everything = asked(dump, "--no-save", code=1)
    check("chosen: all pairs", named(everything), [("overlapping_writes", "twice", "y", [1]), ("overlapping_writes", "copy", "y", [2])])
    for task, pairs in ((0, [(1, 0)]), (1, [(1, 0), (2, 1)]), (2, [(2, 1)])):
        text, document = text_of(dump, "--task", task, code=1), asked(dump, "--task", task, code=1)
        check(f"chosen {task}: pairs", [(f["task_seq"], f["other_task_seq"]) for f in document["findings"]], pairs)
        check(f"chosen {task}: no other evidence", [f["evidence"] for f in document["findings"]], [[]] * len(pairs))
        check(f"chosen {task}: numbers of tasks", [question(document, name)["tasks"] for name in ("audit", "replay", "sanitizers")], [1, 1, 1])
        check(f"chosen {task}: findings", question(document, "audit")["findings"], len(pairs))
        check_in(f"chosen {task}", f"not accused: {int(task == 0)} of 1 task;", text)


def check_crash_under_sanitizer():
    """The thread sanitizer says nothing of races if the task crashed under it, even where another sanitizer has said why."""
    s = Scene("crashing")
    x, y = s.tensor("x"), s.output("y", (1,))
    crash = "#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)\n    volatile int *nowhere = (int *)(uintptr_t)(n - 1); *nowhere = 1;\n#endif\n"
    s.kernel("last", ARGS, "float mine = block + 1; __atomic_store((float *)y, &mine, __ATOMIC_SEQ_CST);\n" + crash)
    s.task("last", x, y, blocks=2)
    document = asked(recorded(s, "crashing"), code=1)
    check("crashing: what is accused", accused(document), [("write_race", "last", [0])])
    check("crashing: nothing is harmless", question(document, "races")["harmless"], None)


# --- glassbox run ---

GOLDEN = """def golden(args):
    twice = 2 * args["a"]
    return {"b": args["a"], "c": twice}
"""


def with_golden(scene, cases=("default",), golden=GOLDEN):
    folder = scene.write()
    (folder / "golden.py").write_text(golden)
    document = json.loads((folder / "scene.json").read_text())
    (folder / "scene.json").write_text(json.dumps({**document, "golden": {"source": "golden.py"}, "cases": {case: {} for case in cases}}))
    return folder


def check_run():
    folder, dump = with_golden(make_wrong("golden"), ("one", "two")), root / "golden"
    done = glassbox("run", folder, "--dump-tensor", "-o", dump)
    check("run: exit code", done.returncode, 1)
    check("run: its last line", done.stdout.rstrip("\n").split("\n")[-1], f"next: glassbox diagnose {dump}")
    shutil.rmtree(dump)
    done = glassbox("run", folder, "--dump-tensor", "-o", dump, "--json")
    check("run --json: diagnose", [case["diagnose"] for case in json.loads(done.stdout)["cases"]], [f"glassbox diagnose {dump}"])
    document = asked(dump, code=1)
    check("run: the golden was asked", [question(document, "golden")[key] for key in ("tasks", "findings")], [2, 1])
    check("run: what is accused", named(document), [("wrong_result", "wrong", "y", [1])])
    check_run_diagnose(folder)
    good = glassbox("run", folder.parent / "order", "--dump-tensor", "-o", root / "right", "--diagnose")
    check("run --diagnose of a right run", (good.returncode, "diagnose" in good.stdout, (root / "right/diagnosis.json").exists()), (0, False, False))


def check_unchecked():
    """A kernel without reference is wrong, and the task that made the wrong result of what it left is right: both are named."""
    s = Scene("unchecked")
    x, a, b, c, y, z = s.tensor("x"), s.output("a"), s.temporary("b", (N,)), s.output("c"), s.output("y"), s.output("z")
    copy = str(write_kernel("several-copy", ARGS, COPY))
    s.kernel("copy", ARGS, COPY, reference=copy)
    s.kernel("plain", ARGS, TWICE)
    s.kernel("wrong", ARGS, TWICE + " y[5] += 1;")
    s.task("plain", x, a)  # 0 is upstream, but not the nearest without reference
    s.task("wrong", a, b)  # 1
    s.task("plain", x, c)  # 2 has nothing to do with it
    s.task("copy", b, y)   # 3
    s.task("copy", y, z)   # 4: its output is wrong, too, and comes later
    golden = "def golden(args):\n    x = args['x']\n    return {'a': 2 * x, 'c': 2 * x, 'z': 4 * x, 'y': 4 * x}\n"
    dump = recorded(with_golden(s, golden=golden), "unchecked", code=1)
    first = (asked(dump, code=1)["findings"] or [{}])[0]
    check("unchecked: first", [first.get(key) for key in ("kind", "task_seq", "kernel", "arg_name", "other_task_seq")],
          ["wrong_output", 1, "wrong", "y", 3])
    for part in ("y[5]", "task 3", "reference"):
        check_in("unchecked", part, first.get("sentence", ""))


def check_far():
    """A task writes far outside of its output, where a replay cannot follow it: what changed there is evidence against it."""
    s = Scene("far")
    x, tiles, fine = s.tensor("x"), s.output("tiles", (4096, N)), s.output("fine", (24, N))
    ends = [s.output(f"end{i}") for i in range(2)]
    s.kernel("copy", ARGS, COPY)
    s.kernel("far", ARGS, TWICE + f" for (int i = 1; i < 4; ++i) y[i * 1000 * {N}] = 3;")
    s.task("copy", x, tiles[2000])
    s.task("copy", x, tiles[3000])
    s.task("far", x, tiles[0])
    for i in range(24):
        s.task("copy", x, fine[i])
    for i, end in enumerate(ends):
        s.task("copy", tiles[2000 + 1000 * i], end)
    document = asked(recorded(s, "far"), code=1)
    check("far: what is accused", named(document), [("stray_write", "far", "y", [2])])
    changes = [text for text in document["findings"][0]["evidence"] if "left there" in text]
    check("far: the changes are evidence", [f"task {27 + i}" in text for i, text in enumerate(changes)], [True, True])


def check_run_diagnose(folder):
    many = root / "many"
    done = glassbox("run", folder, "--diagnose", "--case", "all", "--rounds", 2, "-o", many, "--json")
    check("run --diagnose: exit code", done.returncode, 1)
    dumps = [case["dump"] for case in json.loads(done.stdout)["cases"]]
    check("run --diagnose: a dump for each round of each case", len(set(dumps)), 4)
    for dump in map(pathlib.Path, dumps):
        check(f"run --diagnose {dump.name}: kept", named(json.loads((dump / "diagnosis.json").read_text())), [("wrong_result", "wrong", "y", [1])])
    text = glassbox("run", folder, "--diagnose", "-o", root / "alone")
    check("run --diagnose: exit code of the text", text.returncode, 1)
    first = json.loads((root / "alone/diagnosis.json").read_text())["findings"][0]
    check_in("run --diagnose: the verdict is printed", f"\n{first['sentence']}\n", text.stdout)
    check("run --diagnose: needs no advice", "next: glassbox diagnose" in text.stdout, False)
    check_run_diagnose_little(folder)


def check_run_diagnose_little(folder):
    """--diagnose asks also a dump that holds nothing of a task, and that of a graph that was refused."""
    done = glassbox("run", folder, "--diagnose", "--dump-tensor=partial", "-o", root / "unmarked-golden")
    check("run --diagnose, no entries: exit code", done.returncode, 1)
    kept = json.loads((root / "unmarked-golden/diagnosis.json").read_text())
    check("run --diagnose, no entries: kept", [(f["kind"], f["task_seq"]) for f in kept["findings"]], [("wrong_output", None)])
    check_in("run --diagnose, no entries", f"\n{kept['findings'][0]['sentence']}\n", done.stdout)
    s = Scene("refused")
    s.once("copy", ARGS, COPY, s.tensor("x"), s.output("y"), core="aic")
    dump = root / "refused"
    done = glassbox("run", s.write(), "--diagnose", "-o", dump)
    check("run --diagnose, refused: exit code", done.returncode, 2)
    kept = (dump / "diagnosis.json").read_text()
    check("run --diagnose, refused: kept", [(f["kind"], f["task_seq"]) for f in json.loads(kept)["findings"]], [("failed_run", None)])
    check_in("run --diagnose, refused", "\nthe run failed: task 0 (kernel copy): ", done.stdout)
    (dump / "diagnosis.json").unlink()
    again = glassbox("run", s.write(), "--diagnose", "-o", dump)
    check("run --diagnose: the dump of an earlier run is not asked", (again.returncode, again.stdout.count("the run failed"), (dump / "diagnosis.json").exists()),
          (2, 0, False))


def check_good():
    """Nobody is accused in a good run, and nothing is called right."""
    dump = root / "good"
    check("good: run", glassbox("run", EXAMPLES / "mix_spmd", "--dump-tensor", "-o", dump).returncode, 0)
    text, document = told(dump, code=0)
    check_in("good", "no finding", text.split("\n")[0])
    check_never_right("good", text)
    check("good: findings", (document["findings"], [one["findings"] for one in document["asked"]]), ([], [0] * len(QUESTIONS)))


def check_usage():
    for options in (("--jobs", "0"), ("--timeout", "x"), ("--task", "x"), ("--unknown",)):
        done = glassbox("diagnose", root, *options)
        check(f"{options}: exit code and stdout", (done.returncode, done.stdout), (2, ""))


if __name__ == "__main__":
    sys.exit(run_parts(check_several, check_second_of_many, check_trust, check_levels, check_old_dumps, check_failed_runs, check_padding,
                       check_sharing_of_failed_runs, check_nan_of_new_memory, check_index_of_nobody, check_overrun, check_consequences, check_wrong_for_wrong, check_habits,
                       check_locks, check_sizes, check_printing, check_compilers, check_order, check_chance_in_shared_memory, check_chance_in_sums,
                       check_sums, check_chance_behind_missing_edge, check_chosen_of_pairs, check_crash_under_sanitizer, check_run, check_unchecked,
                       check_far, check_good, check_usage))
