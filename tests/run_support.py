"""Small scenes, and glassbox run on them."""
import copy
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

import numpy as np

from command_support import GLASSBOX, check, report

ADD = """#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    for (int64_t i = 0; i < gbx_tensor_numel(gbx_arg_tensor(args, 0)); ++i) y[i] = x[i] + gbx_arg_f32(args, 2);
}
"""
FILL = "#include <glassbox/kernel.h>\nvoid kernel_entry(const uint64_t *args) { (void)args; %s }\n"
ORCHESTRATION = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &run->tensors[0]);
    gbx_args_add_output(&args, &run->tensors[1]);
    gbx_args_add_scalar(&args, GBX_FLOAT32, run->scalars[0]);
    gbx_submit_task(o, gbx_aiv(0), &args);
    return 0;
}
"""
NOTHING = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) { (void)o; (void)run; %s }
"""
GOLDEN_C = """#include <glassbox/orchestration.h>
int golden(const gbx_run_args *run) {
    const float *x = gbx_tensor_f32(&run->tensors[0]);
    float *y = gbx_tensor_f32(&run->tensors[1]);
    float addend = gbx_f32_of_bits((uint32_t)run->scalars[0]);
    for (int64_t i = 0; i < gbx_tensor_numel(&run->tensors[0]); ++i) y[i] = x[i] + addend;
    return 0;
}
"""
GOLDEN_PY = "def golden(args):\n    return {'y': args['x'] + args['addend']}\n"
TENSORMAP = "tensormap_and_ringbuffer"

SCENE = {
    "name": "adder",
    "kernels": [{"func_id": 0, "name": "add", "source": "kernels/add.c", "core": "aiv",
                 "signature": ["in", "out", "scalar:float32"], "arg_names": ["x", "y", "addend"]}],
    "orchestrations": {TENSORMAP: {"source": "orchestration.c"}},
    "args": [{"name": "x", "dtype": "float32", "shape": [4, 8], "role": "in"},
             {"name": "y", "dtype": "float32", "shape": [4, 8], "role": "out"},
             {"name": "addend", "dtype": "float32", "role": "scalar", "value": 1.5}],
    "golden": {"source": "golden.c"},
}
FILES = {"kernels/add.c": ADD, "orchestration.c": ORCHESTRATION, "golden.c": GOLDEN_C, "golden.py": GOLDEN_PY}

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-run-test-"))
TEMPORARY = root / "temporary"
TEMPORARY.mkdir()


def make(name, scene=SCENE, files=None):
    """A scene's directory, valid until the next is made; `files` replace those of the usual scene. All scenes are the
    same directory under different names: an unchanged source is compiled once."""
    directory, link = root / "scene", root / name
    shutil.rmtree(directory, ignore_errors=True)
    link.unlink(missing_ok=True)
    link.symlink_to("scene")
    for path, text in {**FILES, **(files or {}), "scene.json": scene}.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, np.ndarray):
            np.save(file, text)
        elif isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(text if isinstance(text, str) else json.dumps(text))
    return link


def run(directory, *arguments, code=0, environment=None, cwd=None, limit_bytes=None):
    """`limit_bytes`: no file may grow larger, as if the disk were full."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    result = subprocess.run([GLASSBOX, "run", str(directory), *arguments], text=True, capture_output=True, cwd=cwd,
                            timeout=600, env={**os.environ, "TMPDIR": str(TEMPORARY), **(environment or {})},
                            preexec_fn=limit if limit_bytes else None)
    what = f"glassbox run {directory.name} {' '.join(arguments)}"
    check(f"{what}: exit code (stderr: {result.stderr.strip()})", result.returncode, code)
    return result.stdout, result.stderr


def run_json(directory, *arguments, **options):
    out, _ = run(directory, "--json", *arguments, **options)
    return json.loads(out) if out else None


def changed(*changes):
    """The usual scene with (path, value) set; a value of None removes the member."""
    scene = copy.deepcopy(SCENE)
    for path, value in changes:
        at = scene
        for step in path[:-1]:
            at = at[step]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
    return scene


def uniform(seed, count):
    """Element i of seed s: output i of splitmix64 started at s, its upper 53 bits over 2^53."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def run_tests(*tests):
    """The exit code of the suite."""
    try:
        for test in tests:
            test()
        check("temporary files left", list(TEMPORARY.iterdir()), [])
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report()
