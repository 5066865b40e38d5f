#!/usr/bin/python3
"""glassbox check: every verdict is compared with what numpy makes of the inputs and outputs in the dump.

usage: check_test.py GLASSBOX EXAMPLES

Each example that is right on one platform and runtime, and JSON alone where text says the same; with GLASSBOX_STRESS all.
"""
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile

import numpy as np

import terminals
from command_support import PLATFORMS, RUNTIMES, STRESS, check, check_in, glassbox, on_terminal, report

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
COMBINATIONS = list(itertools.product(PLATFORMS, RUNTIMES))
TENSORMAP = "tensormap_and_ringbuffer"

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-check-test-"))


# --- running ---


def record(scene, name, *options, code=0):
    """Runs a scene; the directory of its dump."""
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    if not any(str(option).startswith("--dump-tensor") for option in options):
        options += ("--dump-tensor",)
    done = glassbox("run", scene, "-o", directory, *options)
    check(f"run {scene} {options}: exit code ({done.stderr})", done.returncode, code)
    return directory


def checked(dump, *options, code):
    """The document of a check; with GLASSBOX_STRESS its text says the same."""
    if STRESS:
        return checked_twice(dump, *options, code=code)[1]
    done = glassbox("check", dump, "--json", *options)
    check(f"check {dump} {options}: exit code ({done.stderr})", done.returncode, code)
    return parse(f"check {dump} {options}", done.stdout)


def parse(what, printed):
    """A document, whose numbers are those of its tasks."""
    document = json.loads(printed)
    verdicts = [task["verdict"] for task in document["tasks"]]
    check(f"{what}: counts", [document[key] for key in ("checked", "right", "introduced", "not_checked")],
          [len(verdicts) - verdicts.count("not_checked"), *map(verdicts.count, ("right", "introduced", "not_checked"))])
    check(f"{what}: first", document["first"] and document["first"]["task_seq"],
          next((t["task_seq"] for t in document["tasks"] if t["verdict"] == "introduced"), None))
    return document


def checked_twice(dump, *options, code):
    """The text of a check, and its document: both say the same."""
    text = glassbox("check", dump, *options)
    document = glassbox("check", dump, "--json", *options)
    what = f"check {dump} {options}"
    check(f"{what}: exit codes ({text.stderr})", (text.returncode, document.returncode), (code, code))
    check(f"{what}: stderr of both", text.stderr, document.stderr)
    parsed = parse(what, document.stdout)
    check_in(what, f"\n{parsed['checked']:,} checked: {parsed['introduced']:,} introduced, {parsed['right']:,} right; "
             f"{parsed['not_checked']:,} not checked", text.stdout)
    check_kernels(what, parsed, text.stdout)
    return text.stdout, parsed


def check_kernels(what, document, text):
    """The groups of JSON and the table of text are those of the tasks."""
    groups = {}
    for task in document["tasks"]:
        groups.setdefault(task["kernel"], []).append(task["verdict"])
    wanted = [(kernel, len(v), v.count("introduced"), v.count("not_checked")) for kernel, v in groups.items()]
    check(f"{what}: kernels", [(k["kernel"], k["tasks"], k["introduced"], k["not_checked"]) for k in document["kernels"]], wanted)
    for kernel, *numbers in wanted:
        pattern = re.escape(kernel) + "".join(rf" +{number:,}" for number in numbers) + " "
        check(f"{what}: line of {kernel} in the table", bool(re.search(f"^{pattern}", text, re.MULTILINE)), True)


def refuse(dump, *options, code=2):
    """The one sentence of a check that is not possible; with GLASSBOX_STRESS with --json, too."""
    for more in ((), ("--json",)) if STRESS else ((),):
        done = glassbox("check", dump, *options, *more)
        check(f"check {dump} {options}: exit code and stdout", (done.returncode, done.stdout), (code, ""))
    check(f"check {dump} {options}: name of the command", done.stderr.startswith("glassbox check: "), True)
    return done.stderr


def verdicts_of(document):
    return {task["task_seq"]: task["verdict"] for task in document["tasks"]}


def reasons_of(document):
    return {task["task_seq"]: task["reason"] for task in document["tasks"] if task["verdict"] == "not_checked"}


def introduced_of(document):
    return [task["task_seq"] for task in document["tasks"] if task["verdict"] == "introduced"]


# --- dumps, read by json and numpy alone ---


def decode(dtype, data):
    if dtype == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.frombuffer(data, np.bool_ if dtype == "bool" else dtype)


class Dump:
    def __init__(self, directory):
        self.directory = directory
        self.manifest = json.loads((directory / "tensor_dump/tensor_dump.json").read_text())
        self.payload = (directory / "tensor_dump/tensor_dump.bin").read_bytes()
        self.entries = {(e["task_seq"], e["arg_index"], e["stage"]): e for e in self.manifest["tensors"]}
        self.tasks = sorted({e["task_seq"] for e in self.manifest["tensors"]})

    def kernel(self, task):
        return next("+".join(e["kernel"]) for e in self.manifest["tensors"] if e["task_seq"] == task)

    def values(self, task, slot, stage="before_dispatch"):
        entry = self.entries[task, slot, stage]
        if entry["kind"] == "scalar":
            return entry["value"]
        data = self.payload[entry["bin_offset"]:entry["bin_offset"] + entry["bin_size"]]
        return decode(entry["dtype"], data).reshape(entry["shape"])

    def outputs(self):
        """Entries of all outputs and inouts after completion, in the order of tasks."""
        return [e for e in self.manifest["tensors"] if e["stage"] == "after_completion" and e["kind"] == "tensor"]


def excess(got, want, rtol, atol):
    """How many times the tolerance two arrays are apart; above 1 is wrong. Of exact zeros 0."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    difference, allowed = np.abs(got - want), atol + rtol * np.abs(want)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / allowed)


# --- the example that is wrong ---


def softmax(dump, task):
    """What weights, block_max and block_sum of a task have to be."""
    scores, scale, valid = dump.values(task, 0), np.float64(np.float32(dump.values(task, 4))), dump.values(task, 5)
    scaled = scores.astype(np.float64) * scale
    maximum = scaled[:, :valid].max(axis=1)
    weights = np.zeros(scores.shape, np.float16)
    weights[:, :valid] = np.exp(scaled[:, :valid] - maximum[:, None]).astype(np.float16)
    return weights, maximum.astype(np.float32), weights.astype(np.float64).sum(axis=1).astype(np.float32)


def wrong_softmax(dump):
    """{task: (slot of the first wrong output, its excess, what is expected, what is there)}"""
    wrong = {}
    for task in dump.tasks:
        if dump.kernel(task) != "softmax_prepare":
            continue
        for slot, want in enumerate(softmax(dump, task), 1):
            got = dump.values(task, slot, "after_completion").reshape(want.shape)
            apart = excess(got, want, 1e-3, 1e-7)
            if (apart > 1).any():
                wrong[task] = (slot, apart, want, got)
                break
    return wrong


def float_text(value):
    """The shortest that reads back as the same float32, with a point or an exponent."""
    return repr(float(repr(np.float32(value))))


def test_broken_softmax():
    for number, (platform, runtime) in enumerate(COMBINATIONS):
        directory = record(EXAMPLES / "broken_softmax", f"broken softmax '{number}'", "-p", platform, "--runtime", runtime,
                           code=1)
        dump = Dump(directory)
        wrong = wrong_softmax(dump)
        check("tasks that numpy finds wrong", (len(wrong), min(wrong)), (6, 29))
        text, document = checked_twice(directory, code=1) if number == 0 else (None, checked(directory, code=1))
        what = f"broken_softmax {platform} {runtime}"
        check(f"{what}: introduced", introduced_of(document), sorted(wrong))
        check(f"{what}: kernels of them", {t["kernel"] for t in document["tasks"] if t["verdict"] == "introduced"},
              {"softmax_prepare"})
        check(f"{what}: tasks that are right", document["right"], 250)
        for task in document["tasks"]:
            if task["task_seq"] in wrong:
                compare_wrong(f"{what} task {task['task_seq']}", task["outputs"], *wrong[task["task_seq"]])
        compare_first(what, document["first"], wrong[29])
        if text:
            compare_text(what, directory, text, document, wrong[29])


def compare_wrong(what, outputs, slot, apart, want, got):
    output = next(o for o in outputs if o["mismatches"] > 0)
    worst = np.unravel_index(np.argmax(apart), apart.shape)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    check(f"{what}: output", [output[key] for key in ("arg_index", "elements", "mismatches", "max_abs", "not_written")],
          [slot, apart.size, int((apart > 1).sum()), float(difference.max()), 0])
    check(f"{what}: worst", output["worst"], {"element": [int(i) for i in worst], "expected": float(float_text(want[worst])),
                                              "got": float(float_text(got[worst]))})


def compare_first(what, first, wrong):
    slot, apart, want, got = wrong
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    check(f"{what}: first", {key: first[key] for key in ("task_seq", "kernel", "arg_index", "arg_name", "element")},
          {"task_seq": 29, "kernel": "softmax_prepare", "arg_index": slot, "arg_name": "weights", "element": list(worst)})
    check(f"{what}: values of first", (first["expected"], first["got"]), (float(want[worst]), float(got[worst])))


def compare_text(what, directory, text, document, wrong):
    slot, apart, want, got = wrong
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    replay = ["glassbox", "replay", str(directory), "--task", "29"]
    lines, first = text.split("\n"), document["first"]
    start = (f"task 29, kernel softmax_prepare, is the first that is wrong for its own inputs: weights{list(worst)} is "
             f"{float_text(got[worst])}, expected {float_text(want[worst])} (rtol 0.001, atol 1e-07); "
             f"{int((apart > 1).sum())} of {apart.size} elements are wrong")
    check(f"{what}: first line", lines[0][:len(start)], start)
    check(f"{what}: line that replays, as a shell reads it", shlex.split(lines[1]), replay)
    check(f"{what}: replay", first["replay"], lines[1])
    check(f"{what}: counts", lines[2], "256 checked: 6 introduced, 250 right; 0 not checked")
    cells = re.split("  +", next(line for line in lines if line.lstrip().startswith("29 ")).strip())
    wrong_outputs = sum(o["mismatches"] > 0 for o in document["tasks"][29]["outputs"])
    check(f"{what}: line of task 29", cells,
          ["29", "softmax_prepare", f"{slot} weights +{wrong_outputs - 1}", f"{int((apart > 1).sum())} of {apart.size}",
           str(list(worst)), float_text(want[worst]), float_text(got[worst])])
    entry = next(e for e in Dump(directory).manifest["tensors"] if e["task_seq"] == 29)
    check(f"{what}: task_id", first["task_id"], entry["task_id"])


def test_replay_line():
    """The dump as it was named, from where it was named; of the latest the name that it has now."""
    here = root / "working here"
    here.mkdir()
    scene = plant("line", [Planted(WRONG)])
    done = glassbox("run", scene, "--dump-tensor", cwd=here)
    check(f"line: run ({done.stderr})", done.returncode, 0)
    name = os.readlink(here / "outputs/latest")
    os.symlink(here / "outputs" / name, here / "-it's")
    cases = [((), f"outputs/{name}"), (("outputs",), f"outputs/{name}"), (("./outputs/latest/",), f"./outputs/{name}"),
             ((f"outputs/{name}",), f"outputs/{name}"), (("outputs/latest/tensor_dump",), "outputs/latest/tensor_dump"),
             (("--", "-it's"), "./-it's"), ((here / "outputs" / name,), str(here / "outputs" / name))]
    for arguments, shown in cases:
        words = shlex.split(glassbox("check", *arguments, cwd=here).stdout.split("\n")[1])
        check(f"line of {arguments}", words, ["glassbox", "replay", shown, "--task", "3"])
        check(f"line of {arguments}: what it names", (here / shown).resolve() in (here / "outputs" / name,
                                                                               here / "outputs" / name / "tensor_dump"), True)


# --- the examples that are right ---

GOOD = {"dump_tensor_example": "default", "vector_example": "default", "bgemm": "small", "mix_spmd": "default",
        "paged_attention": "small"}


def test_good_examples():
    """All right; and not right any more once a value in the dump is another one."""
    for number, (example, case) in enumerate(GOOD.items()):
        combinations = COMBINATIONS if STRESS else [COMBINATIONS[number % 6]]
        for platform, runtime in combinations:
            directory = record(EXAMPLES / example, f"good_{example}", "--case", case, "-p", platform, "--runtime", runtime,
                               "--no-dedup")
            dump = Dump(directory)
            document = checked(directory, code=0)
            what = f"{example} {platform} {runtime}"
            check(f"{what}: verdicts", verdicts_of(document), {task: "right" for task in dump.tasks})
            compared = [(t["task_seq"], o["arg_index"], o["elements"] + o["not_written"]) for t in document["tasks"]
                        for o in t["outputs"]]
            check(f"{what}: what was compared", sorted(compared),
                  sorted((e["task_seq"], e["arg_index"], e["numel"]) for e in dump.outputs()))
            check(f"{what}: elements that were not written", sum(k["not_written"] for k in document["kernels"]), 0)
            check(f"{what}: stray bytes", sum(t["stray_bytes"] for t in document["tasks"]), 0)
        spoil(example, dump)


def spoil(example, dump):
    """The last output of each kernel gets another value in one element: exactly these are named."""
    last = {dump.kernel(e["task_seq"]): e for e in dump.outputs()}
    payload = bytearray(dump.payload)
    wanted = {}
    for entry in last.values():
        place = entry["numel"] * 2 // 3
        width = entry["bin_size"] // entry["numel"]
        at = entry["bin_offset"] + place * width
        payload[at:at + width] = bytes([payload[at] ^ 1, *payload[at + 1:at + width - 1], payload[at + width - 1] ^ 0x40])
        wanted[entry["task_seq"]] = (entry["arg_index"], [int(i) for i in np.unravel_index(place, entry["shape"])])
    (dump.directory / "tensor_dump/tensor_dump.bin").write_bytes(payload)
    document = checked(dump.directory, code=1)
    found = {t["task_seq"]: [(o["arg_index"], o["worst"]["element"]) for o in t["outputs"] if o["mismatches"] > 0]
             for t in document["tasks"] if t["verdict"] == "introduced"}
    is_input = {t: v for t, v in found.items() if t not in wanted}
    check(f"{example}: tasks that are wrong but not spoiled", is_input, {})
    check(f"{example}: spoiled outputs", found, {task: [place] for task, place in wanted.items()})


# --- scenes with planted errors ---

COUNT = 8  # tasks of a planted scene
WIDTH = 6  # elements of each
KERNEL = """#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <glassbox/kernel.h>
typedef %s element;
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *from = gbx_arg_tensor(args, 0), *to = gbx_arg_tensor(args, 1);
    const element *x = gbx_tensor_origin(from, sizeof *x);
    element *y = gbx_tensor_origin(to, sizeof *y);
    int number = gbx_arg_i32(args, 2);
    (void)number; (void)x;
    for (int i = 0; i < (int)to->shape[0]; ++i) y[i] = %s;
    %s
}
"""
# Each task reads the row that the task before it wrote.
ORCHESTRATION = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    for (int i = 0; i < %d; ++i) {
        gbx_args args = gbx_args_begin();
        gbx_tensor x = i ? gbx_view_select(&run->tensors[1], 0, i - 1) : run->tensors[0];
        gbx_tensor y = gbx_view_select(&run->tensors[1], 0, i);
        gbx_args_add_input(&args, &x);
        gbx_args_add_tensor(&args, &y, %s);
        gbx_args_add_i32(&args, i);
        gbx_submit_task(o, gbx_aiv((uint32_t)i %% %d), &args);
    }
    return 0;
}
"""


# What most scenes have: one element of one task.
WRONG = "if (number == 3) y[4] += 0.5f;"


class Planted:
    """One kernel of a planted scene: y = `good`, then `bad` is done to it; or all its text is given."""

    def __init__(self, bad="", good="x[i] * 2 + 1", reference=None, has_reference=True, text=None, **fields):
        self.bad, self.good, self.text, self.fields = bad, good, text, fields
        self.reference = (good, "") if reference is None else reference
        self.has_reference = has_reference


def source(text):
    """The path of a file with this text. Scenes share them, so that each is compiled once."""
    path = root / f"sources/{hashlib.sha256(text.encode()).hexdigest()[:16]}.c"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def plant(name, kernels, dtype="float32", ctype="float", fill=None, is_inout=False):
    """A scene with a chain of tasks that take turns at the kernels."""
    directory = root / f"scene_{name}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    described = []
    for number, kernel in enumerate(kernels):
        reference = KERNEL % (ctype, *kernel.reference) if isinstance(kernel.reference, tuple) else kernel.reference
        fields = {"func_id": number, "name": f"kernel{number}", "core": "aiv", "compile_flags": "-O0",  # which is quick
                  "source": source(kernel.text or KERNEL % (ctype, kernel.good, kernel.bad)),
                  "signature": ["in", "inout" if is_inout else "out", "scalar:int32"], "arg_names": ["x", "y", "number"]}
        if kernel.has_reference:
            fields["reference"] = source(reference)
        described.append({**fields, **kernel.fields})
    role = "GBX_ROLE_INOUT" if is_inout else "GBX_ROLE_OUTPUT"
    orchestration = source(ORCHESTRATION % (COUNT, role, len(kernels)))
    x = {"name": "x", "dtype": dtype, "shape": [WIDTH], "role": "in", **(fill or {"fill": "arange", "start": 1})}
    y = {"name": "y", "dtype": dtype, "shape": [COUNT, WIDTH], "role": "out", "fill": "constant", "value": 1}
    scene = {"name": name, "kernels": described, "orchestrations": {TENSORMAP: {"source": orchestration}}, "args": [x, y]}
    (directory / "scene.json").write_text(json.dumps(scene))
    return directory


def first_of(document):
    return [document["first"][key] for key in ("task_seq", "element", "expected", "got")]


def test_one_element():
    """One element of one task; what comes after it computes the right thing from what is wrong."""
    scene = plant("one", [Planted(WRONG)])
    directory = record(scene, "one")
    dump = Dump(directory)
    want = dump.values(3, 0) * 2 + 1
    text, document = checked_twice(directory, code=1)
    check("one element: first", first_of(document), [3, [4], float(want[4]), float(want[4]) + 0.5])
    check("one element: introduced", introduced_of(document), [3])
    outputs = document["tasks"][3]["outputs"]
    check("one element: output", [(o["mismatches"], o["elements"], o["max_abs"]) for o in outputs], [(1, WIDTH, 0.5)])
    check("one element: default tolerance", (outputs[0]["rtol"], outputs[0]["atol"]), (1e-5, 1e-6))
    check("one element: first line", text.split("\n")[0],
          f"task 3, kernel kernel0, is the first that is wrong for its own inputs: y[4] is {float_text(want[4] + 0.5)}, "
          f"expected {float_text(want[4])} (rtol 1e-05, atol 1e-06); 1 of 6 elements is wrong")
    filters(directory)


def filters(directory):
    document = checked(directory, "--task", "0..2", code=0)
    check("--task: tasks and what is left out", (list(verdicts_of(document)), document["left_out"]), ([0, 1, 2], COUNT - 3))
    ident = next(t["task_id"] for t in document["tasks"] if t["task_seq"] == 2)
    text, document = checked_twice(directory, "--task", ident, "--task", "3", "--kernel", "ker*", code=1)
    check("--task ID: tasks", verdicts_of(document), {2: "right", 3: "introduced"})
    check_in("--task: left out", "; 6 left out by --kernel and --task\n", text)
    done = glassbox("check", directory, "--kernel", "other")
    check("--kernel of none", (done.returncode, done.stdout, done.stderr),
          (1, "", f"glassbox check: none of the {COUNT} tasks of {directory} matches the filters\n"))
    for options, sentence in ((["--task", "x"], '--task: "x" is not expected'), (["--timeout", "-1"], "--timeout"),
                              (["more"], '"more" is not expected')):
        done = glassbox("check", directory, *options)
        check(f"{options}: exit code", done.returncode, 2)
        check_in(f"{options}", sentence, done.stderr)


def test_not_written():
    """What the kernel leaves unwritten is wrong; what the reference leaves unwritten is not compared."""
    half = f"for (int i = 0; i < {WIDTH // 2}; ++i) y[i] = x[i] * 2 + 1;"
    body = KERNEL.replace("for (int i = 0; i < (int)to->shape[0]; ++i) y[i] = %s;", "%s")
    scene = plant("halves", [Planted(text=body % ("float", half, "")),
                             Planted(reference=body % ("float", half, "if (number == 7) y[0] += 8;"))])
    directory = record(scene, "halves")
    dump = Dump(directory)
    text, document = checked_twice(directory, code=1)
    for task in document["tasks"]:
        number = task["task_seq"]
        want = dump.values(number, 0) * 2 + 1
        got = dump.values(number, 1, "after_completion")
        if number % 2 == 0:
            check(f"halves {number}: unwritten by the kernel", (task["verdict"], task["outputs"][0]["mismatches"],
                                                                task["outputs"][0]["not_written"]),
                  ("introduced", int((got != want).sum()), 0))
            check(f"halves {number}: the second half holds the fill", got[WIDTH // 2:].tolist(), [1.0] * (WIDTH // 2))
        else:
            wanted = "introduced" if number == 7 else "right"
            check(f"halves {number}: unwritten by the reference",
                  (task["verdict"], task["outputs"][0]["elements"], task["outputs"][0]["not_written"]),
                  (wanted, WIDTH // 2, WIDTH // 2))
    check("halves: introduced", introduced_of(document), [0, 2, 4, 6, 7])
    check_in("halves: text", f"not compared: {COUNT // 2 * WIDTH // 2} elements of {COUNT // 2} tasks of kernel kernel1 that the "
             "reference does not write, first in task 1\n", text)


def test_nothing_written():
    """A reference that writes nothing proves nothing; of an inout it says that nothing changes."""
    nothing = KERNEL.replace("for (int i = 0; i < (int)to->shape[0]; ++i) y[i] = %s;", "%s") % ("float", "", "")
    directory = record(plant("nothing", [Planted(reference=nothing)]), "nothing")
    text, document = checked_twice(directory, code=1)
    check("nothing written: verdicts", set(verdicts_of(document).values()), {"not_checked"})
    check("nothing written: reasons", set(reasons_of(document).values()), {"its reference writes no element of its outputs"})
    check("nothing written: first line", text.split("\n")[0],
          f"nothing was checked: {COUNT} tasks, and none could be compared with a reference")
    directory = record(plant("inout", [Planted(reference=nothing)], is_inout=True), "inout")
    document = checked(directory, code=1)
    dump = Dump(directory)
    changed = [t for t in dump.tasks if (dump.values(t, 1) != dump.values(t, 1, "after_completion")).any()]
    check("inout: tasks that change it", changed, list(range(COUNT)))
    check("inout: introduced", introduced_of(document), changed)
    check("inout: expected is what was there before", document["first"]["expected"], 1.0)


def test_references():
    """One that is missing, crashes, hangs, writes elsewhere: of each kernel what is so, and the rest is checked."""
    kernels = [Planted("if (number == 4) y[1] = 7;"), Planted(has_reference=False), Planted(reference=("x[i]", "abort();")),
               Planted(reference=("x[i] * 2 + 1", "for (;;) pause();"))]
    directory = record(plant("references", kernels), "references")
    text, document = checked_twice(directory, "--timeout", "0.5", code=1)
    check("references: verdicts", verdicts_of(document), {0: "right", 4: "introduced", **{t: "not_checked" for t in
                                                                                       (1, 2, 3, 5, 6, 7)}})
    check("references: reasons", reasons_of(document), {
        **dict.fromkeys((1, 5), "kernel kernel1 has no reference in scene.json"),
        **dict.fromkeys((2, 6), "the reference of kernel kernel2 crashed with SIGABRT"),
        3: "the reference of kernel kernel3 hung",
        7: "the reference of kernel kernel3 hung in an earlier task, and was not run again"})
    for line in ("not checked: 2 tasks of kernel kernel1 (tasks 1, 5): kernel kernel1 has no reference in scene.json",
                 "not checked: 2 tasks of kernel kernel2 (tasks 2, 6): the reference of kernel kernel2 crashed with SIGABRT",
                 "not checked: 1 task of kernel kernel3 (task 3): the reference of kernel kernel3 hung"):
        check(f"references: {line}", line in text.split("\n"), True)
    done = glassbox("check", directory, "--task", "0..2")
    check("references: some not checked", (done.returncode, done.stdout.split("\n")[0]),
          (0, "1 of 3 chosen tasks is right for its own inputs, 2 were not checked"))


def test_stray():
    """A reference that writes into its own input is told of."""
    directory = record(plant("stray", [Planted(reference=("x[i] * 2 + 1", "if (number == 2) ((float *)(uintptr_t)x)[1] = -3;"))]),
                       "stray")
    text, document = checked_twice(directory, code=0)
    strays = {t["task_seq"]: t["stray_bytes"] for t in document["tasks"] if t["stray_bytes"]}
    before = np.float32(Dump(directory).values(2, 0)[1]).tobytes()
    changed = sum(a != b for a, b in zip(before, np.float32(-3).tobytes()))
    check("stray: tasks and bytes", strays, {2: changed})
    check_in("stray: text", "beware: the reference of kernel kernel0 writes outside of its outputs in 1 task, first ", text)


def test_tolerances():
    """Exactly at the edge is right, one float beyond it is not; where one of the two is given the other is 0."""
    edge = np.float32(1) + np.float32(2 ** -10)
    beyond = np.nextafter(edge, np.float32(2))
    cases = [({"rtol": 2 ** -10}, edge, beyond), ({"atol": 2 ** -10}, edge, beyond),
             ({"rtol": 2 ** -11, "atol": 2 ** -11}, edge, beyond),
             ({"rtol": 0}, np.float32(1), np.nextafter(np.float32(1), np.float32(2)))]
    kernels = [Planted(f"y[2] = {float(near).hex()}f; if (number >= 4) y[2] = {float(far).hex()}f;", good="1", **fields)
               for fields, near, far in cases]
    directory = record(plant("tolerance", kernels), "tolerance")
    document = checked(directory, code=1)
    check("tolerances: introduced", introduced_of(document), [4, 5, 6, 7])
    for number, (fields, near, far) in enumerate(cases):
        right, wrong = document["tasks"][number]["outputs"][0], document["tasks"][number + 4]["outputs"][0]
        check(f"tolerance {fields}: max abs", (right["max_abs"], wrong["max_abs"]), (float(near) - 1, float(far) - 1))
        check(f"tolerance {fields}", (right["rtol"], right["atol"]), (fields.get("rtol", 0), fields.get("atol", 0)))
        check(f"tolerance {fields}: wrong", wrong["worst"], {"element": [2], "expected": 1.0, "got": float(float_text(far))})


def test_values():
    """NaN and infinities where numbers are expected, and the other way round; integers of 64 bits; bool."""
    bad = "if (number == 1) y[0] = NAN; if (number == 2) { y[0] = 1; y[3] = INFINITY; }"
    directory = record(plant("nan", [Planted(bad, good="number == 2 && i == 0 ? NAN : 1", atol=1e30)]), "nan")
    text, document = checked_twice(directory, code=1)
    check("nan: introduced", introduced_of(document), [1, 2])
    check("nan: first", first_of(document), [1, [0], 1.0, "nan"])
    check_in("nan: text", "y[0] is nan, expected 1.0 (rtol 0, atol 1e+30)", text.split("\n")[0])
    check("nan: worst of task 2", document["tasks"][2]["outputs"][0]["worst"], {"element": [0], "expected": "nan", "got": 1.0})
    check("nan: max abs", document["tasks"][1]["outputs"][0]["max_abs"], "inf")
    directory = record(plant("wide", [Planted("if (number == 6) ++y[5];", good="x[i] + 1")], "int64", "int64_t",
                             {"fill": "constant", "value": "0x7000000000000000"}), "wide")
    document = checked(directory, code=1)
    want = int(Dump(directory).values(6, 0)[5]) + 1
    check("int64: first", first_of(document), [6, [5], str(want), str(want + 1)])
    directory = record(plant("truth", [Planted("if (number == 7) y[1] = !y[1];", good="!x[i]")], "bool", "unsigned char",
                             {"fill": "constant", "value": True}), "truth")
    document = checked(directory, code=1)
    want = not Dump(directory).values(7, 0)[1]
    check("bool: first", first_of(document), [7, [1], want, not want])


def test_bytes_that_look_like_poison():
    """Every value that a byte can have, among them those that outputs are poisoned with."""
    good = "(unsigned char)(x[i] + 32 * number + i)"
    directory = record(plant("bytes", [Planted("if (number == 5) y[0] ^= 1;", good=good)], "uint8", "unsigned char"), "bytes")
    document = checked(directory, code=1)
    check("bytes: introduced", introduced_of(document), [5])
    check("bytes: elements that were not written", [t["outputs"][0]["not_written"] for t in document["tasks"]], [0] * COUNT)
    constant = record(plant("poison", [Planted("if (number == 5) y[0] ^= 1;", good="i % 2 ? 0xa5 : 0x5a")], "uint8",
                            "unsigned char"), "poison")
    document = checked(constant, code=1)
    check("poison: introduced", introduced_of(document), [5])
    check("poison: values", first_of(document), [5, [0], 0x5a, 0x5b])
    check("poison: compared", {t["outputs"][0]["elements"] for t in document["tasks"]}, {WIDTH})


# --- what cannot be checked ---


def test_scenes():
    """The scene is found where it was; when it is gone, or another, a sentence says what to do."""
    scene = plant("moved", [Planted(WRONG)])
    directory = record(scene, "moved")
    check("scene: introduced", introduced_of(checked(directory, code=1)), [3])
    scene.rename(root / "scene_elsewhere")
    check("scene that is gone", refuse(directory),
          f"glassbox check: the scene of the dump was {scene}, which is not there any more; name it with --scene DIR\n")
    for given in (root / "scene_elsewhere", root / "scene_elsewhere/scene.json"):
        check("--scene: introduced", introduced_of(checked(directory, "--scene", given, code=1)), [3])
    other = EXAMPLES / "vector_example"
    check("another scene", refuse(directory, "--scene", other),
          f"glassbox check: {other}/scene.json is not the scene of the dump: func_id 0 is kernel add there, and kernel0 in the "
          "dump; --scene DIR names another\n")
    check_in("no scene", "scene.json", refuse(directory, "--scene", root / "nowhere"))
    (directory / "run.json").unlink()
    check("no run.json", refuse(directory),
          f"glassbox check: {directory} has no run.json that tells its scene; name it with --scene DIR\n")
    check("no run.json, --scene", introduced_of(checked(directory, "--scene", root / "scene_elsewhere", code=1)), [3])


def test_scene_inside():
    """Code that comes with a dump is not run unless it is named."""
    scene = plant("inside", [Planted()])
    directory = record(scene, "inside")
    shutil.copytree(scene, directory / "scene")
    run = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**run, "scene_path": str(directory / "scene")}))
    check_in("scene inside", "lies inside of the dump, is not this user's", refuse(directory))
    (directory / "run.json").write_text(json.dumps({**run, "scene_path": scene.name}))
    done = glassbox("check", directory, cwd=root)
    check("scene that happens to lie around", (done.returncode, done.stdout, done.stderr),
          (2, "", f"glassbox check: {directory}/run.json does not tell the whole path of the scene; name it with --scene DIR\n"))
    check("scene inside, named", checked(directory, "--scene", directory / "scene", code=0)["right"], COUNT)
    (directory / "run.json").write_text(json.dumps(run))
    (scene / "scene.json").chmod(0o646)
    check_in("scene that others can write", "can be written by everybody, and its references are code",
             refuse(directory))
    check("scene that others can write, named", checked(directory, "--scene", scene, code=0)["right"], COUNT)
    (scene / "scene.json").chmod(0o644)
    (scene / "scene.json").rename(scene / "gone.json")
    check_in("scene.json gone", f"{scene}/scene.json: No such file", refuse(directory))
    (scene / "gone.json").rename(scene / "scene.json")


def test_manifest_alone():
    """A dump without journal, as other tools write it; without task_seq tasks are told by their ids."""
    scene = plant("manifest", [Planted(WRONG)])
    directory = record(scene, "manifest")
    want = Dump(directory).values(3, 0)[4] * 2 + 1
    ident = Dump(directory).entries[3, 1, "after_completion"]["task_id"]
    for name in ("run.json", "tensor_dump/tensor_dump.rec"):
        (directory / name).unlink()
    for has_numbers in (True, False):
        text, document = checked_twice(directory, "--scene", scene, code=1)
        check("manifest alone: first", first_of(document), [3, [4], float(want), float(want) + 0.5])
        check("manifest alone: task of the line that replays", int(shlex.split(text.split("\n")[1])[-1], 0),
              3 if has_numbers else int(ident, 16))
        check_in("manifest alone", "\nno journal: tasks come in the order of submission, for the graph is not known\n", text)
        manifest = json.loads((directory / "tensor_dump/tensor_dump.json").read_text())
        for entry in manifest["tensors"]:
            entry.pop("task_seq", None)
        (directory / "tensor_dump/tensor_dump.json").write_text(json.dumps(manifest))
    check_in("manifest alone: --task", "take an id such as 0x11", refuse(directory, "--scene", scene, "--task", "3"))
    check("manifest alone: --task ID", checked(directory, "--scene", scene, "--task", ident, code=1)["introduced"], 1)


def test_bad_references():
    directory = record(plant("compile", [Planted(), Planted()]), "compile")
    good = KERNEL % ("float", "x[i] * 2 + 1", "")
    plant("compile", [Planted(), Planted(reference=good.replace("kernel_entry(", "kernel_entry(no_such_type a, "))])
    sentence = refuse(directory)
    check("does not compile", sentence.startswith("glassbox check: the reference of kernel kernel1: compiling "), True)
    check_in("does not compile", "no_such_type", sentence)
    plant("compile", [Planted(), Planted(reference=good.replace("kernel_entry(", "another_entry("))])
    check_in("has no entry", "kernel_entry", refuse(directory))


def test_flags():
    """A reference gets the flags of its kernel, but for those that loosen arithmetic."""
    guard = "#ifdef __FAST_MATH__\n#error fast\n#endif\n"
    reference = guard + KERNEL % ("float", "x[i] + ADDEND", "")
    scene = plant("flags", [Planted("if (number == 2) y[0] = 0;", "x[i] + ADDEND", reference,
                                    compile_flags="-DADDEND=3 -ffast-math -w")])
    directory = record(scene, "flags")
    check("flags: first", first_of(checked(directory, code=1)), [2, [0], float(Dump(directory).values(2, 0)[0]) + 3, 0.0])


def test_levels():
    """Tasks whose values are not in the dump are not checked, and it is said what to do."""
    scene = plant("levels", [Planted(WRONG), Planted()])
    outputs_alone = ("--dump-filter", "task=2..3,role=output")
    for level, options in (("stats", ()), ("hybrid", outputs_alone), ("partial", outputs_alone))[:3 if STRESS else 2]:
        directory = record(scene, f"level_{level}", f"--dump-tensor={level}", *options)
        text, document = checked_twice(directory, code=1)
        check(f"{level}: verdicts", set(verdicts_of(document).values()), {"not_checked"})
        check(f"{level}: reasons that tell what to do", [r for r in reasons_of(document).values() if "--dump-tensor=full" not in r], [])
        check(f"{level}: first line", text.startswith("nothing was checked: "), True)
        check_in(level, f"the dump's level is {level}: glassbox run --dump-tensor=full records what all tasks need\n", text)
    directory = record(scene, "truncated", "--dump-max-tensor", "8")
    document = checked(directory, code=1)
    check("truncated: verdicts", set(verdicts_of(document).values()), {"not_checked"})
    check("truncated: reasons", [r for r in reasons_of(document).values() if "truncated" not in r], [])


def test_output_missing():
    """Inputs alone do not make a check."""
    scene = plant("inputs", [Planted(WRONG)])
    directory = record(scene, "inputs", "--dump-filter", "role=input", "--dump-filter", "task=3")
    text, document = checked_twice(directory, code=1)
    check("inputs: introduced", introduced_of(document), [3])
    check("inputs: reasons", len(reasons_of(document)), COUNT - 1)
    check("inputs: that name the output", [r for r in reasons_of(document).values() if "y" not in r], [])


def test_crashed():
    """A task that crashed is not checked; those before it are."""
    scene = plant("crash", [Planted("if (number == 2) y[0] = 0; if (number == 5) abort();")])
    directory = record(scene, "crash", code=3)
    text, document = checked_twice(directory, code=1)
    verdicts = verdicts_of(document)
    check("crash: verdicts", verdicts, {0: "right", 1: "right", 2: "introduced", 3: "right", 4: "right", 5: "not_checked"})
    check_in("crash: reason", "it did not complete", reasons_of(document)[5])
    check_in("crash: text", "the run failed: ", text)


def test_terminal():
    """Tables fit the terminal; names are cut, numbers are not, and controls do not get there."""
    kernel = Planted("if (number == 2) y[1] = -7;", name="kernel_with_a_name_that_is_long", arg_names=["x", "output\x1b[31m", "n"])
    directory = record(plant("terminal", [kernel]), "terminal")
    if not terminals.are_there():
        return
    want = Dump(directory).values(2, 0)[1] * 2 + 1
    text, code = on_terminal(70, "check", directory)
    lines = text.split("\n")
    check("terminal: exit code", code, 1)
    check("terminal: controls", [line for line in lines if "\x1b" in line], [])
    check_in("terminal: first line", "output\\x1b[31m[1] is -7.0", lines[0])
    start = lines.index("") + 1
    table = lines[start:start + 2]
    check("terminal: widths", [line for line in table if len(line) > 70], [])
    check("terminal: task and values", (table[1].split()[0], table[1].split()[-3:]), ("2", ["[1]", float_text(want), "-7.0"]))
    check("terminal: the name is cut", "kernel_with_a_name_that_is_long" in table[1], False)
    wide = glassbox("check", directory).stdout.split("\n")
    check("pipe: the name is whole", "kernel_with_a_name_that_is_long" in wide[start + 1], True)


def test_many():
    """A list of at most 20, and how many more."""
    global COUNT
    COUNT = 50
    directory = record(plant("many", [Planted("y[number % 6] += 1e30f;", good="x[i]")]), "many")
    text, document = checked_twice(directory, code=1)
    check("many: introduced", introduced_of(document), list(range(50)))
    listed = [line for line in text.split("\n") if re.match(r" *\d+  kernel0 ", line)]
    check("many: listed", [int(line.split()[0]) for line in listed], list(range(20)))
    check_in("many", "\nand 30 more; --json lists all\n", text)
    COUNT = 8


def main():
    try:
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.exit(report())


if __name__ == "__main__":
    main()
