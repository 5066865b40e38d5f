"""Dumps of examples and of scenes with planted bugs, and what glassbox check says about them, for its suites.

Arguments of a suite: GLASSBOX EXAMPLES
"""
import hashlib
import itertools
import json
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np

from command_support import PLATFORMS, RUNTIMES, STRESS, check, check_in, glassbox, report

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
COMBINATIONS = list(itertools.product(PLATFORMS, RUNTIMES))
TENSORMAP = "tensormap_and_ringbuffer"

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-check-test-"))


# --- running ---


def record(scene, name, *options, code=0):
    """Runs a scene and returns the directory of its dump."""
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    if not any(str(option).startswith("--dump-tensor") for option in options):
        options += ("--dump-tensor",)
    done = glassbox("run", scene, "-o", directory, *options)
    check(f"run {scene} {options}: exit code ({done.stderr})", done.returncode, code)
    return directory


def checked(dump, *options, code):
    """The JSON of a check; with GLASSBOX_STRESS its text is compared with it."""
    if STRESS:
        return checked_twice(dump, *options, code=code)[1]
    done = glassbox("check", dump, "--json", *options)
    check(f"check {dump} {options}: exit code ({done.stderr})", done.returncode, code)
    return parse(f"check {dump} {options}", done.stdout)


def parse(what, printed):
    """The JSON of a check, after comparing its counts with its tasks."""
    document = json.loads(printed)
    verdicts = [task["verdict"] for task in document["tasks"]]
    check(f"{what}: counts", [document[key] for key in ("checked", "right", "introduced", "not_checked")],
          [len(verdicts) - verdicts.count("not_checked"), *map(verdicts.count, ("right", "introduced", "not_checked"))])
    check(f"{what}: first", document["first"] and document["first"]["task_seq"],
          next((t["task_seq"] for t in document["tasks"] if t["verdict"] == "introduced"), None))
    return document


def checked_twice(dump, *options, code):
    """The text and the JSON of a check, after comparing them."""
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
    """The groups of the JSON and the table of the text match the tasks."""
    groups = {}
    for task in document["tasks"]:
        groups.setdefault(task["kernel"], []).append(task["verdict"])
    wanted = [(kernel, len(v), v.count("introduced"), v.count("not_checked")) for kernel, v in groups.items()]
    check(f"{what}: kernels", [(k["kernel"], k["tasks"], k["introduced"], k["not_checked"]) for k in document["kernels"]], wanted)
    for kernel, *numbers in wanted:
        pattern = re.escape(kernel) + "".join(rf" +{number:,}" for number in numbers) + " "
        check(f"{what}: line of {kernel} in the table", bool(re.search(f"^{pattern}", text, re.MULTILINE)), True)


def refuse(dump, *options, code=2):
    """The error sentence of a check that is refused; with GLASSBOX_STRESS also with --json."""
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


# --- dumps, read only by json and numpy ---


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
    """The difference of two arrays in tolerances; above 1 is wrong. 0 if they are equal."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    difference, allowed = np.abs(got - want), atol + rtol * np.abs(want)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / allowed)


def float_text(value):
    """The shortest text that reads back as the same float32, with a point or an exponent."""
    return repr(float(repr(np.float32(value))))


# --- scenes with planted errors ---

COUNT = 8  # tasks of a planted scene
WIDTH = 6  # elements of each
# No more headers: compiling them would take longer than everything else.
KERNEL = """#include <glassbox/kernel.h>
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
# The same without the loop: the caller gives the complete body.
BODY = KERNEL.replace("for (int i = 0; i < (int)to->shape[0]; ++i) y[i] = %s;", "%s")
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


# The bug of most scenes: one element of one task.
WRONG = "if (number == 3) y[4] += 0.5f;"


class Planted:
    """One kernel of a planted scene: y = `good`, then `bad` changes it; or the complete text is given."""

    def __init__(self, bad="", good="x[i] * 2 + 1", reference=None, has_reference=True, text=None, **fields):
        self.bad, self.good, self.text, self.fields = bad, good, text, fields
        self.reference = (good, "") if reference is None else reference
        self.has_reference = has_reference


def source(text):
    """The path of a file with this text. Scenes share such files: each is compiled once."""
    path = root / f"sources/{hashlib.sha256(text.encode()).hexdigest()[:16]}.c"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def plant(name, kernels, dtype="float32", ctype="float", fill=None, is_inout=False, count=COUNT):
    """A scene with a chain of tasks that use the kernels in turn."""
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
    orchestration = source(ORCHESTRATION % (count, role, len(kernels)))
    x = {"name": "x", "dtype": dtype, "shape": [WIDTH], "role": "in", **(fill or {"fill": "arange", "start": 1})}
    y = {"name": "y", "dtype": dtype, "shape": [count, WIDTH], "role": "out", "fill": "constant", "value": 1}
    scene = {"name": name, "kernels": described, "orchestrations": {TENSORMAP: {"source": orchestration}}, "args": [x, y]}
    (directory / "scene.json").write_text(json.dumps(scene))
    return directory


def first_of(document):
    return [document["first"][key] for key in ("task_seq", "element", "expected", "got")]


def run_tests(tests):
    """Runs all functions test_... of a suite; returns its exit code."""
    try:
        for name, test in tests.items():
            if name.startswith("test_"):
                test()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report()
