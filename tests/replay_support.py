"""What the suites of glassbox replay share: runs, planted kernels, and dumps read only by json and numpy.

Arguments of a suite: GLASSBOX EXAMPLES
"""
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np

from command_support import ENVIRONMENT, check, glassbox, report

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
ELEMENTS = 64

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-replay-test-"))

# Every run preprocesses each source (cc -E) with the same result: examples do not change.
PREPROCESSOR = """#!/bin/sh
case " $* " in *" -E "*) ;; *) exec {compiler} "$@" ;; esac
kept={folder}/$(echo "$*" | cksum | tr ' ' _)
[ -e $kept ] || {{ {compiler} "$@" > $kept.$$ && mv $kept.$$ $kept; }} || exit 1
exec cat $kept
"""


def with_kept_preprocessor():
    """An environment whose cc preprocesses each source only once."""
    name = ENVIRONMENT.get("CC") or "cc"
    folder = root / "compiler"
    folder.mkdir()
    path = folder / name
    if path.parent != folder or not shutil.which(name):
        return ENVIRONMENT
    path.write_text(PREPROCESSOR.format(compiler=shutil.which(name), folder=folder))
    path.chmod(0o755)
    return {**ENVIRONMENT, "PATH": f"{folder}:{ENVIRONMENT['PATH']}"}


EXAMPLES_ENVIRONMENT = with_kept_preprocessor()


def record(scene, name, *options, code=0, environment=None):
    directory = root / name
    if not any(str(option).startswith("--dump-") for option in options):
        options += ("--dump-tensor",)
    environment = environment or (EXAMPLES_ENVIRONMENT if scene.parent == EXAMPLES else ENVIRONMENT)
    done = glassbox("run", scene, "-o", directory, "--no-golden", *options, environment=environment)
    check(f"run {scene} {options}: exit code ({done.stderr})", done.returncode, code)
    return directory


def replay(dump, task, *options, code=0, environment=ENVIRONMENT):
    """The JSON of a replay; its text begins with the same verdict."""
    done = glassbox("replay", dump, "--task", task, "--json", *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return json.loads(done.stdout) if done.stdout else {}


def replay_text(dump, task, *options, code=0, environment=ENVIRONMENT):
    done = glassbox("replay", dump, "--task", task, *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return done.stdout


def refuse(dump, task, *options, code=2, environment=ENVIRONMENT):
    """The error sentence of a replay that is refused."""
    done = glassbox("replay", dump, "--task", task, *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stdout ({done.stderr})", (done.returncode, done.stdout), (code, ""))
    check(f"replay {dump} {task} {options}: one sentence: {done.stderr!r}",
          (done.stderr.startswith("glassbox replay: "), done.stderr.count("\n")), (True, 1))
    return done.stderr


def run_parts(*parts):
    """The exit code of the suite."""
    try:
        for part in parts:
            part()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report()


# --- dumps ---


def manifest(dump):
    return json.loads((dump / "tensor_dump" / "tensor_dump.json").read_text())


def entries_of(document, task, stage):
    return {e["arg_index"]: e for e in document["tensors"] if (e["task_seq"], e["stage"], e["kind"]) == (task, stage, "tensor")}


def payload(dump, entry):
    with open(dump / "tensor_dump" / "tensor_dump.bin", "rb") as file:
        file.seek(entry["bin_offset"])
        return file.read(entry["bin_size"])


def floats(dump, entry):
    return np.frombuffer(payload(dump, entry), np.float32)


def patched(dump, name, entry, data):
    """A copy of a dump in which an entry's payload is replaced."""
    copy = root / name
    shutil.copytree(dump, copy)
    with open(copy / "tensor_dump" / "tensor_dump.bin", "r+b") as file:
        file.seek(entry["bin_offset"])
        file.write(data)
    return copy


# --- planted kernels ---

BODIES = {
    "twice": "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];",
    "half": "for (int i = 0; i < n; i += 2) y[i] = 3 * x[i];",
    "nothing": "(void)x; (void)y; (void)n;",
    "adds": "for (int i = 0; i < n; ++i) y[i] += x[i];",
    "counts": "static float calls; ++calls; for (int i = 0; i < n; ++i) y[i] = calls * x[i];",
    "strays": "for (int i = 0; i < n; ++i) y[i] = x[i]; ((volatile float *)x)[3] = 77.0f;",
    "crashes": "int *volatile bad = (int *)16;\n    for (int i = 0; i < n / 2; ++i)\n        y[i] = x[i];\n    *bad = n;",
    "hangs": "for (y[0] = x[0]; n > 0;) pause();",
    "flaky": "static int calls; for (int i = 0; i < n; ++i) y[i] = x[i]; if (++calls == 6) *(int *volatile){(int *)16} = 1;",
    "sizes": "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)gbx_arg_tensor(args, 1)->buffer_bytes;",
    "ends": "(void)x; (void)y; (void)n; _exit(7);",
}
KERNEL = """#include <glassbox/kernel.h>
#include <unistd.h>
void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int n = (int)gbx_tensor_numel(gbx_arg_tensor(args, 1));
    %s
}
"""
ORCHESTRATION = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    for (uint32_t i = 0; i < %d; ++i) {
        gbx_args args = gbx_args_begin();
        gbx_args_add_input(&args, &run->tensors[2 * i]);
        gbx_args_add_output(&args, &run->tensors[2 * i + 1]);
        gbx_submit_task(o, gbx_aiv(i), &args);
    }
    return 0;
}
"""


def shared(name, text):
    """A source that several scenes share: it is compiled once."""
    path = root / "shared" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def make_scene(name, kernels, bodies=None, orchestration=None, **more):
    """One task for each kernel, each with its own input x and output y."""
    folder = root / "scenes" / name
    (folder / "reference").mkdir(parents=True)
    args, sources = [], {}
    for i, kernel in enumerate(kernels):
        body = (bodies or BODIES)[kernel]
        if bodies:
            (folder / f"{kernel}.c").write_text(KERNEL % body)
        sources[kernel] = str(folder / f"{kernel}.c" if bodies else shared(f"{kernel}.c", KERNEL % body))
        args += [{"name": f"x{i}", "dtype": "float32", "shape": [ELEMENTS], "role": "in", "fill": "random", "low": 1, "high": 2,
                  "seed": i + 1},
                 {"name": f"y{i}", "dtype": "float32", "shape": [ELEMENTS], "role": "out"}]
    (folder / "reference" / "twice.c").write_text(KERNEL % BODIES["twice"])
    (folder / "scene.json").write_text(json.dumps({
        "name": name, "args": args, "cases": {"default": {}},
        "kernels": [{"func_id": i, "name": kernel, "source": sources[kernel], "core": "aiv", "signature": ["in", "out"],
                     "arg_names": ["x", "y"], "compile_flags": "-O0", **more.get(kernel, {})} for i, kernel in enumerate(kernels)],
        "orchestrations": {"tensormap_and_ringbuffer": {"source": str(orchestration or shared(f"orchestration{len(kernels)}.c", ORCHESTRATION % len(kernels)))}}}))
    return folder


def words(dump, listed, task):
    """The raw bits that a task read and left."""
    before, after = entries_of(listed, task, "before_dispatch")[0], entries_of(listed, task, "after_completion")[1]
    return floats(dump, before), floats(dump, after)


def x_of(dump, listed, task):
    return floats(dump, entries_of(listed, task, "before_dispatch")[0])
