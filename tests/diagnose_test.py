#!/usr/bin/python3
"""glassbox diagnose: what it says of whole runs, what it could not ask, and the document that it keeps.

usage: diagnose_test.py GLASSBOX EXAMPLES

Sentences are compared in their parts only.
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

from command_support import ENVIRONMENT, GLASSBOX, check, check_in, glassbox
from diagnose_support import ARGS, asked, COPY, FIXTURES, named, OF_CODE, of_code, question, QUESTIONS, recorded, refused, text_of, told, TWICE, victims_of, with_golden
from dump_encoder import xxhash
from replay_findings_support import N, Scene, write_kernel
from replay_support import EXAMPLES, entries_of, manifest, root, run_parts


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


# --- glassbox run ---

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
    right = Scene("right")
    right.once("twice", ARGS, TWICE, right.tensor("x"), right.output("y"))
    good = glassbox("run", right.write(), "--dump-tensor", "-o", root / "right", "--diagnose")
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
    sys.exit(run_parts(check_several, check_second_of_many, check_trust, check_levels, check_old_dumps, check_overrun, check_consequences,
                       check_wrong_for_wrong, check_run, check_unchecked, check_far, check_good, check_usage))
