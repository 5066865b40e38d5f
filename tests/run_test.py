#!/usr/bin/python3
"""glassbox run on small scenes of its own: results, fills, goldens, exit codes, and broken scenes.

usage: run_test.py GLASSBOX
"""
import copy
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy as np

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
ORCHESTRATION_ON_HOST = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor_info infos[2];
    uint64_t words[3] = {0, 0, run->scalars[0]};
    for (uint32_t i = 0; i < 2; ++i) {
        gbx_tensor_info info = {i, i ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT, run->tensors[i]};
        uint64_t bytes = (uint64_t)gbx_tensor_numel(&run->tensors[i]) * sizeof(float);
        info.tensor.data = gbx_device_malloc(o, bytes);
        gbx_copy_to_device(o, info.tensor.data, (void *)(uintptr_t)run->tensors[i].data, bytes);
        words[i] = gbx_device_tensor(o, &info.tensor);
        infos[i] = info;
        if (i) gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[i].data, info.tensor.data, bytes);
    }
    gbx_task task = gbx_add_task_with_tensor_info(o, gbx_aiv(0), words, 3, infos, 2);
    gbx_dump_task_words(o, task, 1u << 1);
    gbx_dump_task_words(o, task, 1u << 2);
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

failed = passed = 0
glassbox = os.path.abspath(sys.argv[1])
root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-run-test-"))


def expect(what, got, wanted):
    global failed, passed
    if got == wanted:
        passed += 1
        return
    failed += 1
    print(f"{what}: got\n{got!r}\nexpected\n{wanted!r}")


def expect_in(what, part, whole):
    expect(f"{what}: {part!r} in {whole!r}", part in whole, True)


def make(name, scene=SCENE, files=None):
    """A scene's directory; `files` are written over those of the usual one."""
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    for path, text in {**FILES, **(files or {}), "scene.json": scene}.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, np.ndarray):
            np.save(file, text)
        elif isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(text if isinstance(text, str) else json.dumps(text))
    return directory


def run(directory, *arguments, code=0, environment=None, cwd=None, limit_bytes=None):
    """`limit_bytes`: no file may grow beyond that, as if the disk were full."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    result = subprocess.run([glassbox, "run", str(directory), *arguments], text=True, capture_output=True, cwd=cwd,
                            timeout=120, env={**os.environ, **(environment or {})},
                            preexec_fn=limit if limit_bytes else None)
    what = f"glassbox run {directory.name} {' '.join(arguments)}"
    expect(f"{what}: exit code (stderr: {result.stderr.strip()})", result.returncode, code)
    return result.stdout, result.stderr


def run_json(directory, *arguments, **options):
    out, _ = run(directory, "--json", *arguments, **options)
    return json.loads(out) if out else None


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def hash_of(array):
    """XXH3-128 of an array's bytes as xxh128sum prints it, by the library itself."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_128bits.restype = Hash128
    raw = np.ascontiguousarray(array).tobytes()
    value = xxhash.XXH3_128bits(raw, ctypes.c_size_t(len(raw)))
    return f"{value.high:016x}{value.low:016x}"


def changed(*changes):
    """The usual scene with (path, value) set; a value of None takes the member away."""
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


def test_results():
    directory = make("adder")
    document = run_json(directory)
    first_hash = document["cases"][0]["outputs"][0].pop("hash")
    seconds = document["cases"][0].pop("seconds")
    expect("seconds", isinstance(seconds, float) and seconds > 0, True)
    expect("document", document, {
        "scene": "adder", "platform": "a2a3sim", "runtime": TENSORMAP, "blocks": 8, "threads": 2,
        "cases": [{"name": "default", "round": 1, "status": "ok", "error": None, "tasks": 1, "dump": None,
                   "dump_totals": None,
                   "outputs": [{"name": "y", "ok": True, "max_abs": 0.0, "max_rel": 0.0, "mismatches": 0,
                                "first_bad": None}]}]})
    out, err = run(directory / "scene.json", "-v", "--device", "thread")
    expect("lines", out.splitlines()[1:], ["  y: ok, max abs 0, max rel 0"])
    expect("words", [w for w in out.splitlines()[0].split() if w in ("default", "task", "tasks/s", "ok")],
           ["default", "task", "tasks/s", "ok"])
    expect("stderr", err, "")
    document = run_json(directory, "-p", "a5sim", "--blocks", "3", "--threads", "1", "--gm", "64MiB", "--window", "64",
                        "--timeout", "5", "--no-golden")
    expect("chosen", (document["platform"], document["blocks"], document["threads"]), ("a5sim", 3, 1))
    expect("not compared", [(c["status"], c["outputs"]) for c in document["cases"]], [("not_compared", [
        {"name": "y", "ok": None, "max_abs": None, "max_rel": None, "mismatches": None, "first_bad": None,
         "hash": first_hash}])])
    document = run_json(make("no_golden", changed((["golden"], None))))
    expect("no golden", document["cases"][0]["status"], "not_compared")


def test_differences():
    wrong = GOLDEN_C.replace("return 0;", "y[2 * 8 + 5] += 1.0f; y[3 * 8 + 7] = -y[3 * 8 + 7]; return 0;")
    wrong = wrong.replace("y[i] = x[i] + addend", "y[i] = 2.0f")
    directory = make("wrong", changed((["args", 0, "fill"], "constant"), (["args", 0, "value"], 0.5)),
                     {"golden.c": wrong})
    output = run_json(directory, code=1)["cases"][0]["outputs"][0]
    expect("difference", output, {"name": "y", "ok": False, "max_abs": 4.0, "max_rel": 2.0, "mismatches": 2,
                                  "first_bad": [2, 5], "hash": hash_of(np.full(32, 2.0, np.float32))})
    out, err = run(directory, "--rounds", "2", code=1)
    line = "  y: 2 of 32 elements differ, max abs 4, max rel 2, first at [2, 5]: got 2.0, want 3.0"
    expect("lines", [l for l in out.splitlines() if l.startswith(" ")], [line, line])
    expect("rounds", [l.split("  ")[1] for l in out.splitlines() if "DIFFERS" in l], ["round 1 of 2", "round 2 of 2"])
    expect("stderr", err, "")
    # Nothing written: what outputs were poisoned with is neither golden nor what the last round left.
    silent = changed((["cases"], {"good": {}, "bad": {}}))
    cases = run_json(make("silent", silent, {"kernels/add.c": FILL % ""}), "--rounds", "2", code=1)["cases"]
    expect("silent", [(c["name"], c["round"], c["status"], c["outputs"][0]["mismatches"], c["outputs"][0]["max_abs"])
                      for c in cases], [("good", 1, "differs", 32, "inf"), ("good", 2, "differs", 32, "inf")])
    both = run_json(make("both_silent", files={"kernels/add.c": FILL % "", "golden.c": GOLDEN_C.replace(
        "y[i] = x[i] + addend", "(void)y, (void)x, (void)addend")}), code=1)["cases"][0]["outputs"][0]
    expect("both silent", both["mismatches"], 32)
    within = GOLDEN_C.replace("x[i] + addend", "(x[i] + addend) * 1.001f")
    directory = make("within", changed((["args", 1, "rtol"], 0.01)), {"golden.c": within})
    expect("within", run_json(directory)["cases"][0]["outputs"][0]["ok"], True)
    directory = make("beyond", changed((["args", 1, "rtol"], 1e-4)), {"golden.c": within})
    expect("beyond", run_json(directory, code=1)["cases"][0]["outputs"][0]["ok"], False)


def test_cases_and_rounds():
    inout = ORCHESTRATION.replace("gbx_args_add_output", "gbx_args_add_inout")
    kernel = ADD.replace("y[i] = x[i]", "y[i] += x[i]")
    golden = "def golden(args):\n    return {'y': args['y'] + (args['x'] + args['addend'])}\n"
    scene = changed((["args", 1, "role"], "inout"), (["golden", "source"], "golden.py"), (["cases"], {
        "small": {"description": "as it is"},
        "large": {"args": {"x": {"shape": [300, 7]}, "y": {"shape": [300, 7], "fill": "arange", "step": 0.5},
                           "addend": {"value": -2}}},
        "exact": {"args": {"y": {"rtol": 0, "atol": 0, "shape": [8, 4]}, "x": {"shape": [8, 4]}}}}))
    directory = make("cases", scene, {"orchestration.c": inout, "kernels/add.c": kernel, "golden.py": golden})
    rows = [(c["name"], c["round"], c["status"]) for c in run_json(directory, "--rounds", "3")["cases"]]
    expect("first case", rows, [("small", 1, "ok"), ("small", 2, "ok"), ("small", 3, "ok")])
    document = run_json(directory, "--case", "large", "--case", "small")
    expect("chosen cases", [(c["name"], c["status"]) for c in document["cases"]], [("large", "ok"), ("small", "ok")])
    expect("all", [c["name"] for c in run_json(directory, "--case", "all")["cases"]], ["small", "large", "exact"])
    _, err = run(directory, "--case", "huge", code=2)
    expect("no case", err, f'glassbox run: {directory}/scene.json: there is no case "huge"; there are small, large, exact\n')


def uniform(seed, count):
    """Element i of seed s: output i of splitmix64 started at s, its upper 53 bits over 2^53."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def to_bfloat16(values):
    """The nearest bfloat16, ties to even: truncated, and one step further where that is nearer."""
    down = (values.view(np.uint64) >> np.uint64(45)) << np.uint64(45)
    up = down + (np.uint64(1) << np.uint64(45))
    below, above = np.abs(values - down.view(np.float64)), np.abs(up.view(np.float64) - values)
    odd = (down >> np.uint64(45)) & np.uint64(1) == 1
    return np.where((above < below) | ((above == below) & odd), up, down).view(np.float64).astype(np.float32)


def test_fills():
    save = "import os, numpy\ndef golden(args):\n    numpy.savez(os.environ['SAVED'], **args)\n    return {}\n"
    shape, count = [7, 301], 7 * 301
    rows = np.arange(count, dtype=np.float32).reshape(shape)
    raw = (np.arange(count) % 65536).astype(np.uint16).reshape(shape)
    packed = np.arange(2 * 2, dtype=np.uint8).reshape(2, 2) + 0x70
    fills = {
        "f32": {"dtype": "float32"}, "f16": {"dtype": "float16", "seed": 77}, "f64": {"dtype": "float64"},
        "bf16": {"dtype": "bfloat16", "low": -3, "high": 5.5}, "i32": {"dtype": "int32", "low": -1000, "high": 1000},
        "u8": {"dtype": "uint8"}, "b": {"dtype": "bool"}, "i4": {"dtype": "int4", "low": -8, "shape": [3, 5]},
        "u64": {"dtype": "uint64", "fill": "constant", "value": "0xfedcba9876543210"},
        "i64": {"dtype": "int64", "fill": "constant", "value": -9007199254740993},
        "nan": {"dtype": "float32", "fill": "constant", "value": "nan"},
        "steps": {"dtype": "float32", "fill": "arange", "start": 1, "step": 0.25},
        "ints": {"dtype": "int16", "fill": "arange"},
        "array": {"dtype": "float32", "fill": "file", "file": "rows.npy"},
        "raw": {"dtype": "bfloat16", "fill": "file", "file": "raw.npy"},
        "packed": {"dtype": "int4", "fill": "file", "file": "packed.npy", "shape": [2, 3]},
        "point": {"dtype": "float64", "shape": []},
    }
    args = [{"name": name, "shape": shape, "role": "in", **fill} for name, fill in fills.items()]
    args += [{"name": "s_" + dtype, "dtype": dtype, "role": "scalar", "value": value} for dtype, value in
             (("float32", 0.1), ("float64", 0.1), ("bfloat16", 1.0), ("int8", -3), ("uint64", "0x8000000000000001"),
              ("bool", True), ("float8_e4m3", 448), ("float16", "inf"), ("int4", -8))]
    scene = changed((["args"], args), (["golden", "source"], "golden.py"))
    directory = make("fills", scene, {"golden.py": save, "orchestration.c": NOTHING % "return 0;", "rows.npy": rows,
                                      "raw.npy": raw, "packed.npy": packed})
    run_json(directory, environment={"SAVED": str(root / "saved.npz")})
    got = np.load(root / "saved.npz")
    seed = {name: i + 1 for i, name in enumerate(fills)}
    random = lambda name, low, high: low + uniform(seed[name], count) * (high - low)
    integer = lambda name, low, high, n=count: low + np.floor(uniform(seed[name], n) * (high - low + 1))
    expected = {
        "f32": random("f32", -1, 1).astype(np.float32), "f64": random("f64", -1, 1),
        "f16": (-1 + uniform(77, count) * 2.0).astype(np.float16), "bf16": to_bfloat16(random("bf16", -3, 5.5)),
        "i32": integer("i32", -1000, 1000).astype(np.int32), "u8": integer("u8", 0, 10).astype(np.uint8),
        "b": integer("b", 0, 1).astype(bool), "i4": integer("i4", -8, 7, 15).astype(np.int8).reshape(3, 5),
        "u64": np.full(count, 0xFEDCBA9876543210, np.uint64), "i64": np.full(count, -9007199254740993, np.int64),
        "nan": np.full(count, np.nan, np.float32), "steps": (1 + np.arange(count) * 0.25).astype(np.float32),
        "ints": np.arange(count, dtype=np.int16), "array": rows,
        "raw": (raw.astype(np.uint32) << 16).view(np.float32),
        "packed": np.array([[0, 7, 1], [2, 7, 3]], np.int8), "point": -1 + uniform(seed["point"], 1)[0] * 2.0,
    }
    for name, values in expected.items():
        values = np.asarray(values).reshape(fills[name].get("shape", shape))
        same = got[name].dtype == values.dtype and got[name].shape == values.shape and \
            np.array_equal(got[name], values, equal_nan=values.dtype.kind == "f")
        expect(f"fill {name}: {got[name].dtype} {got[name].flat[:4]}, {values.dtype} {values.flat[:4]}", same, True)
    scalars = [got["s_" + d][()] for d in ("float32", "float64", "bfloat16", "int8", "uint64", "bool", "float8_e4m3",
                                           "float16", "int4")]
    expect("scalars", scalars, [np.float32(0.1), 0.1, 1.0, -3, 2 ** 63 + 1, True, 448.0, np.inf, -8])


def test_golden_python():
    scene = changed((["golden"], {"source": "golden.py", "entry": "expected"}))

    def python(name, text, code=2):
        text = text if text.startswith("import") else "import numpy as np\n" + text
        return run(make(name, scene, {"golden.py": text}), code=code)[1]

    run(make("python", changed((["golden", "source"], "golden.py"))))
    body = "def expected(args):\n    "
    python("f64", body + "return {'y': args['x'].astype('f8') + 1.5}\n", 0)
    python("fortran", body + "return {'y': np.asfortranarray(args['x'] + args['addend'])}\n", 0)
    expect_in("printed", "hello", python("prints", body + "print('hello'); return {'y': args['x'] + 1.5}\n", 0))
    expect_in("raises", "in expected\n", python("raises", body + "raise ValueError('too bad')\n"))
    expect_in("raises", "ValueError: too bad", python("raises", body + "raise ValueError('too bad')\n"))
    expect_in("no output", 'golden.py: expected() returned no output "y"', python("missing", body + "return {}\n"))
    expect_in("shape", 'output "y" has shape [32]; [4, 8] is expected',
              python("shape", body + "return {'y': args['x'].ravel()}\n"))
    expect_in("other", "returned 'z', which is no output; the outputs are y",
              python("other", body + "return {'z': 1, 'y': args['x']}\n"))
    expect_in("no dict", "expected() returned ndarray; a dict of outputs is expected",
              python("no_dict", body + "return args['x']\n"))
    expect_in("no entry", "there is no function expected; def expected(args) is expected", python("no_entry", "x = 1\n"))
    expect_in("syntax", "SyntaxError", python("syntax", "def expected(:\n"))
    expect_in("no numpy", "has no numpy", run(make("no_numpy", scene, {"numpy.py": "raise ImportError('gone')\n"}), code=2,
              environment={"PYTHONPATH": str(root / "no_numpy")})[1])
    left = [p for p in pathlib.Path(tempfile.gettempdir()).glob("glassbox-golden-*") if p.stat().st_uid == os.getuid()]
    expect("directories left", left, [])


def test_failures():
    """What goes wrong while running: exit code 2 or 3, one sentence, and the rest still runs."""
    two = changed((["cases"], {"first": {}, "second": {"args": {"addend": {"value": 2}}}}))
    crash = ADD.replace("float *y =", "if (gbx_arg_f32(args, 2) == 1.5f) *(volatile int *)8 = 1;\n    float *y =")
    directory = make("crash", two, {"kernels/add.c": crash})
    cases = run_json(directory, "--case", "all", "--rounds", "2", code=3)["cases"]
    expect("after a crash", [(c["name"], c["round"], c["status"]) for c in cases],
           [("first", 1, "failed"), ("second", 1, "ok"), ("second", 2, "ok")])
    expect_in("crash", "add", cases[0]["error"])
    out, err = run(directory, code=3)
    expect("crash line", out.split()[-1], "failed")
    expect_in("crash sentence", "glassbox run: case first: ", err)
    hang = make("hang", files={"kernels/add.c": FILL % "for (volatile int i = 1; i;) {}"})
    expect("hang", run_json(hang, "--timeout", "0.3", code=3)["cases"][0]["status"], "failed")
    expect_in("does not compile", "kernels/add.c", run(make("compile", files={"kernels/add.c": "nonsense"}), code=2)[1])
    expect_in("golden compile", "golden.c", run(make("golden_compile", files={"golden.c": "nonsense"}), code=2)[1])
    expect_in("golden entry", "golden.c has no function golden",
              run(make("golden_entry", files={"golden.c": "int other;"}), code=2)[1])
    expect_in("golden result", "golden.c: golden() returned 7",
              run(make("golden_7", files={"golden.c": GOLDEN_C.replace("return 0", "return 7")}), code=2)[1])
    killed = make("golden_crash", files={"golden.c": GOLDEN_C.replace("return 0", "*(volatile int *)16 = 1; return 0")})
    expect_in("golden crash",
              f"glassbox run: {killed}/golden.c: golden() was ended by signal 11 (segmentation fault) at address 0x10\n",
              run(killed, code=3)[1])
    writes = make("golden_writes", files={"golden.c": GOLDEN_C.replace("return 0", "*(float *)x = 1; return 0")})
    expect_in("inputs are read-only", "golden.c: golden() was ended by signal 11", run(writes, code=3)[1])
    deep = make("golden_deep", files={"golden.c": GOLDEN_C.replace("int golden", """
        __attribute__((noinline)) static int sink(volatile int n) {
            volatile char a[4096]; a[n % 7] = 1; return sink(n + 1) + a[3];
        }
        int golden""").replace("return 0;", "return sink(0);")})
    expect_in("stack overflow", "golden.c: golden() was ended by signal 11", run(deep, code=3)[1])
    host = changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}}))
    abort = make("orchestration_abort", host, {"orchestration.c": NOTHING % "__builtin_trap(); return 0;"})
    expect("orchestration crash", run(abort, "--runtime", "host_build_graph", code=3)[1],
           f"glassbox run: {abort}/orchestration.c: orchestrate() was ended by signal 4 (illegal instruction)\n")
    returned = run_json(make("returned", files={"orchestration.c": NOTHING % "return 5;"}), code=2)["cases"][0]
    expect("orchestration's own error", returned["status"], "failed")
    # 2 before 3 before 1.
    mixed = changed((["cases"], {"a": {"args": {"addend": {"value": 2}}}, "b": {}}))
    wrong = GOLDEN_C.replace("x[i] + addend", "0")
    expect("3 before 1", [c["status"] for c in run_json(make("mixed", mixed, {"kernels/add.c": crash, "golden.c": wrong}),
           "--case", "all", code=3)["cases"]], ["differs", "failed"])


def broken_scenes():
    """(name, scene or text, what the sentence says after the file)"""
    kernel, arg = ["kernels", 0], ["args", 0]
    yield "json", "{", "line 1, column 1: "
    yield "twice", '{"name": 1, "name": 2}', "line 1, column "
    yield "array", "[]", "expected an object, got an array"
    yield "unknown", changed((["kernel"], 1)), '"kernel" is no member here; possible are name, description, kernels'
    yield "name", changed((["name"], None)), '"name" is missing'
    yield "empty_name", changed((["name"], "")), "name: an empty string; a name is expected"
    yield "no_kernels", changed((["kernels"], [])), "kernels: there is none; at least one kernel is expected"
    yield "member", changed((kernel + ["sorce"], "x")), 'kernels[0]: "sorce" is no member here; possible are func_id, name'
    yield "func_id", changed((kernel + ["func_id"], 1024)), "kernels[0].func_id: 1024 is not within 0 to 1023"
    yield "func_text", changed((kernel + ["func_id"], "0")), 'kernels[0].func_id: expected an integer, got "0"'
    yield "core", changed((kernel + ["core"], "aix")), 'kernels[0].core: "aix" is none of aic, aiv'
    yield "source", changed((kernel + ["source"], "kernels/no.c")), "kernels[0].source: DIR/kernels/no.c: No such file or directory"
    yield "folder", changed((kernel + ["source"], "kernels")), "kernels[0].source: DIR/kernels is no regular file"
    yield "reference", changed((kernel + ["reference"], "no.c")), "kernels[0].reference: DIR/no.c: No such file or directory"
    yield "signature", changed((kernel + ["signature", 1], "inn")), 'kernels[0].signature[1]: "inn" is none of in, out, inout, scalar'
    yield "scalar", changed((kernel + ["signature", 2], "scalar:f33")), 'kernels[0].signature[2]: "scalar:f33": "f33" is no dtype'
    yield "many", changed((kernel + ["signature"], ["in"] * 33), (kernel + ["arg_names"], None)), \
        "kernels[0].signature: 33 tensors and 0 scalars; at most 32 and 32 are possible"
    yield "arg_names", changed((kernel + ["arg_names"], ["x"])), "kernels[0].arg_names: 1 names; 3 are expected, one for each of the signature"
    yield "kernel_rtol", changed((kernel + ["rtol"], -1)), "kernels[0].rtol: a tolerance of -1; one of 0 or more is expected"
    yield "long", changed((kernel + ["name"], "k" * 64)), "kernels[0].name: 64 bytes; a name of at most 63 is expected"
    second = {**SCENE["kernels"][0], "name": "other"}
    yield "same_id", changed((["kernels"], SCENE["kernels"] + [second])), "kernels[1].func_id: 0 is that of kernels[0] already"
    second = {**SCENE["kernels"][0], "func_id": 1}
    yield "same_name", changed((["kernels"], SCENE["kernels"] + [second])), 'kernels[1].name: "add" is that of kernels[0] already'
    yield "runtime", changed((["orchestrations", "fast"], {})), 'orchestrations: "fast" is no member here; possible are '
    yield "no_runtime", changed((["orchestrations"], {})), "orchestrations: there is none; at least one runtime is expected"
    yield "entry", changed((["orchestrations", TENSORMAP, "entry"], 3)), f"orchestrations.{TENSORMAP}.entry: expected a string, got 3"
    yield "other_runtime", changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}})), \
        f"there is no orchestration for {TENSORMAP}; there is for host_build_graph"
    yield "dtype", changed((arg + ["dtype"], "float33")), 'args[0].dtype: "float33" is no dtype; known are float32'
    yield "role", changed((arg + ["role"], "input")), 'args[0].role: "input" is none of in, out, inout, scalar'
    yield "no_role", changed((arg + ["role"], None)), 'args[0]: "role" is missing'
    yield "shape", changed((arg + ["shape"], [4, -1])), "args[0].shape[1]: -1 is not within 0 to"
    yield "no_shape", changed((arg + ["shape"], None)), 'args[0]: "shape" is missing'
    yield "dims", changed((arg + ["shape"], [1] * 9)), "args[0].shape: 9 dimensions; at most 8 are possible"
    yield "size", changed((arg + ["shape"], [2 ** 40])), "args[0].shape: more than the 34359738368 bytes that a chip can have"
    yield "fill", changed((arg + ["fill"], "ones")), 'args[0].fill: "ones" is none of constant, random, arange, file'
    yield "no_value", changed((arg + ["fill"], "constant")), 'args[0]: "value" is missing'
    yield "stray", changed((arg + ["value"], 1)), 'args[0].value: only a fill of "constant" takes it, and here it is random'
    yield "stray_out", changed((["args", 1, "seed"], 1)), 'args[1].seed: only a fill of "random" takes it, and here it is none'
    yield "low", changed((arg + ["low"], 2)), "args[0].low: low is 2 and high 1; low <= high is expected"
    yield "high", changed((arg + ["dtype"], "int8"), (arg + ["high"], 300)), "args[0].high: 300; an integer from -128 to 127 is expected for int8"
    yield "value", changed((["args", 2, "dtype"], "int32")), "args[2].value: 1.5; an integer from -2147483648 to 2147483647 is expected for int32"
    yield "bits", changed((["args", 2, "value"], "0x100000000")), 'args[2].value: "0x100000000" has more than the 32 bits of float32'
    yield "scalar_shape", changed((["args", 2, "shape"], [1])), "args[2].shape: a scalar has no shape"
    yield "scalar_fill", changed((["args", 2, "fill"], "random")), "args[2].fill: a scalar has a value; it cannot be filled"
    yield "tolerance", changed((arg + ["rtol"], 1)), 'args[0].rtol: a tolerance belongs to an output, and this is "in"'
    yield "same_arg", changed((["args", 1, "name"], "x")), 'args[1].name: "x" is that of args[0] already'
    yield "case_arg", changed((["cases"], {"big": {"args": {"z": {}}}})), 'cases.big.args: "z" is no member here; possible are x, y, addend'
    yield "case_member", changed((["cases"], {"big": {"arg": 1}})), 'cases.big: "arg" is no member here; possible are description, args'
    yield "case_shape", changed((["cases"], {"a": {}, "big": {"args": {"x": {"shape": "4"}}}})), 'cases.big.args.x.shape: expected an array, got "4"'
    yield "case_name", changed((["cases"], {"big": {"args": {"x": {"name": "q"}}}})), 'cases.big.args.x: "name" is no member here'
    yield "golden", changed((["golden", "source"], "golden.cc")), "golden.source: DIR/golden.cc: No such file or directory"
    yield "golden_kind", changed((["golden", "source"], "scene.json")), "golden.source: scene.json is neither a .c nor a .py file"
    file = arg + ["file"]
    from_file = (arg + ["fill"], "file")
    yield "no_file", changed(from_file), 'args[0]: "file" is missing'
    yield "npy", changed(from_file, (file, "golden.c")), "args[0].file: DIR/golden.c: this is no .npy file"
    for name, says in (("fortran", "the elements are in Fortran order; C order is expected"),
                       ("big", "the elements are big-endian (>f4); little-endian ones are expected"),
                       ("shaped", "shape (8, 4); (4, 8) is expected"), ("typed", "elements of <f8; <f4 is expected for float32"),
                       ("short", "124 bytes of elements, but its header tells of 128"),
                       ("third", ".npy version 3.0; 1.0 or 2.0 is expected"),
                       ("records", "an array of records; one of numbers is expected")):
        yield "npy_" + name, changed(from_file, (file, name + ".npy")), f"args[0].file: DIR/{name}.npy: {says}"


def test_broken_scenes():
    plain = np.zeros((4, 8), np.float32)
    np.save(root / "plain.npy", plain)
    whole = (root / "plain.npy").read_bytes()
    arrays = {"fortran.npy": np.asfortranarray(plain), "big.npy": plain.astype(">f4"), "shaped.npy": plain.reshape(8, 4),
              "typed.npy": plain.astype("f8"), "short.npy": whole[:-4], "third.npy": whole[:6] + b"\3" + whole[7:],
              "records.npy": np.zeros((4, 8), [("a", "<f4")])}
    for name, scene, says in broken_scenes():
        directory = make("broken_" + name, scene, arrays)
        out, err = run(directory, "--json", code=2)
        says = f"glassbox run: {directory}/scene.json: " + says.replace("DIR", str(directory))
        expect(f"broken {name}", err[:len(says)], says)
        expect(f"broken {name}: one line", (err.count("\n"), out), (1, ""))
    _, err = run(root / "nowhere", code=2)
    expect_in("nowhere", "nowhere: No such file or directory; a directory with a scene.json, or the file itself", err)
    (root / "empty").mkdir()
    expect_in("empty", "empty/scene.json: No such file", run(root / "empty", code=2)[1])


def test_usage():
    directory = make("adder")
    for arguments, says in (
            (["--blocks", "25"], '--blocks: "25" is no integer from 1 to 24'),
            (["--threads", "0"], '--threads: "0" is no integer from 1 to 8'),
            (["--gm", "4X"], '--gm: "4X" is no size'), (["--gm", "64G"], '--gm: "64G" is no size'),
            (["-p", "a6sim"], '--platform: "a6sim" is none of a2a3sim, a5sim'),
            (["--runtime", "fast"], '--runtime: "fast" is none of tensormap_and_ringbuffer'),
            (["--device", "disk"], '--device: "disk" is none of process, thread'),
            (["--build", "later"], '--build: "later" is none of concurrent, sequential'),
            (["--rounds", "-1"], '--rounds: "-1" is no integer'), (["--timeout", "soon"], '--timeout: "soon" is no number of seconds'),
            (["another"], '"another" is not expected; one scene is run at a time')):
        expect_in("usage", says, run(directory, *arguments, code=2)[1])


def test_usage_of_dumps():
    directory = make("adder")
    tensor, nothing = ["--dump-tensor"], "means nothing without --dump-tensor"
    where = root / "usage"
    where.mkdir()
    for arguments, says in (
            (["--dump-tensor=all"], '--dump-tensor: "all" is none of full, partial, hybrid, stats'),
            (["--dump-tensor="], '--dump-tensor: "" is none of full'),
            (["--dump-filter", "kernel=add"], "--dump-filter " + nothing),
            (["--dump-filter", "kernel=add", "--dump-args"], "--dump-filter " + nothing),
            (["--dump-stats"], "--dump-stats " + nothing),
            (["--no-dedup", "--dump-args"], "--no-dedup " + nothing),
            (["--dump-max-tensor", "1K"], "--dump-max-tensor " + nothing),
            (["-o", "here"], "--output means nothing without --dump-tensor or --dump-args"),
            (["--dump-arena", "1M"], "--dump-arena means nothing without --dump-tensor or --dump-args"),
            (["--dump-buffers", "4"], "--dump-buffers means nothing without"),
            (["--dump-stall-timeout", "4"], "--dump-stall-timeout means nothing without"),
            (tensor + ["-o", ""], "--output: an empty name"),
            (tensor + ["--dump-arena", "63K"], '--dump-arena: "63K" is no size from 65536 to 4294967296 bytes'),
            (tensor + ["--dump-arena", "5G"], '--dump-arena: "5G" is no size'),
            (tensor + ["--dump-buffers", "1"], '--dump-buffers: "1" is no integer from 2 to 64'),
            (tensor + ["--dump-buffers", "65"], '--dump-buffers: "65" is no integer from 2 to 64'),
            (tensor + ["--dump-max-tensor", "0"], '--dump-max-tensor: "0" is no size from 1 to'),
            (tensor + ["--dump-stall-timeout", "0"], '--dump-stall-timeout: "0" is no number of seconds'),
            (tensor + ["--dump-filter", "task=1"] * 33, "--dump-filter: more than 32 filters"),
            (tensor + ["--dump-filter", "kernl=add"], 'dump filter "kernl=add": "kernl" is none of the keys kernel, func'),
            (tensor + ["--dump-filter", "role=in", "--dump-filter", "kernel=ad"],
             'dump filter "kernel=ad": kernel "ad" matches no kernel; registered are (func and name) 0 add')):
        out, err = run(directory, *arguments, code=2, cwd=where)
        expect_in("usage of dumps", says, err)
        expect("usage of dumps: nothing ran", out, "")
    expect("usage of dumps: nothing was made", list(where.iterdir()), [])
    (where / "file").write_text("")
    _, err = run(directory, *tensor, "-o", "file/below", code=2, cwd=where)
    expect_in("no directory", "making the directory file for a dump: Not a directory", err)


# --- dumps ---

ALL_RECORDS = [("x", "before_dispatch"), ("addend", "before_dispatch"), ("y", "after_completion")]


def dump_of(path):
    """The manifest of a dump, and the payload of each record by (arg_name, stage)."""
    inside = pathlib.Path(path) / "tensor_dump"
    manifest = json.loads((inside / "tensor_dump.json").read_text())
    raw = (inside / manifest["bin_file"]).read_bytes() if (inside / manifest["bin_file"]).exists() else b""
    return manifest, {(t["arg_name"], t["stage"]): raw[t["bin_offset"]:t["bin_offset"] + t["bin_size"]]
                      for t in manifest["tensors"] if t["kind"] == "tensor"}


def named(manifest):
    return sorted((t["arg_name"], t["stage"]) for t in manifest["tensors"])


def inputs_of(shape=(4, 8)):
    count = int(np.prod(shape))
    return (uniform(1, count) * 2 - 1).astype(np.float32).reshape(shape)


def test_dumps():
    directory = make("adder")
    x = inputs_of()
    for platform in ("a2a3sim", "a5sim"):
        where = root / ("dump_" + platform)
        case = run_json(directory, "--dump-tensor", "--dump-args", "-o", str(where), "-p", platform)["cases"][0]
        expect("dump", (case["status"], case["error"], case["dump"]), ("ok", None, str(where)))
        totals = case["dump_totals"]
        got = {key: totals[key] for key in totals if key not in ("stall_ns", "longest_capture_ns", "stored_bytes")}
        expect("totals", got, {"records": 3, "tensors": 2, "dispatches": 1, "payload_bytes": 256, "deduplicated": 0,
                               "truncated": 0, "in_flight": 0, "dropped": 0, "skipped": 0, "unmatched_filters": 0})
        manifest, payload = dump_of(where)
        expect("records", named(manifest), sorted(ALL_RECORDS))
        expect("x", payload["x", "before_dispatch"], x.tobytes())
        expect("y", payload["y", "after_completion"], (x + np.float32(1.5)).tobytes())
        expect("addend", [t["value"] for t in manifest["tensors"] if t["kind"] == "scalar"], [1.5])
        about = manifest["run"]
        expect("about", (about["scene"], about["case"], about["platform"], about["runtime"]),
               ("adder", "default", platform, TENSORMAP))
        document = json.loads((where / "run.json").read_text())
        expect_in("command", f"glassbox run {directory} --json --dump-tensor --dump-args -o {where}", json.dumps(document))
        kept = list((where / "kernels").rglob("*"))
        expect("kernels", [any(k.read_bytes() == ADD.encode() for k in kept if k.is_file())], [True])
    out, err = run(directory, "--dump-tensor", "-o", str(root / "text"))
    expect("dump line", out.splitlines()[-1], f"dump  {root}/text: 3 records, 256 bytes")
    expect("dump stderr", err, "")
    _, err = run(directory, "--dump-tensor", "-o", str(root / "text"), code=2)
    expect_in("a dump is not written over", str(root / "text"), err)
    _, payload = dump_of(root / "text")
    expect("the dump that was there", payload["x", "before_dispatch"], x.tobytes())
    climbing = make("climbing", changed((["kernels", 0, "name"], "../../up/add")))
    run(climbing, "--dump-tensor", "-o", str(root / "climbing_dump"))
    document = json.loads((root / "climbing_dump" / "run.json").read_text())
    expect("the kernel's copy stays inside", [(root / "climbing_dump" / document["kernels"][0][key]).read_bytes()[:4]
                                              for key in ("object", "source")], [b"\x7fELF", ADD.encode()[:4]])
    expect("nothing outside", (root / "up").exists() or (root.parent / "up").exists(), False)


def test_dump_options():
    """Those that change how much is kept, by what is in the dump and what the line says."""
    same = ORCHESTRATION.replace("gbx_submit_task(o, gbx_aiv(0), &args);",
                                 "for (int i = 0; i < 3; ++i) gbx_submit_task(o, gbx_aiv(0), &args);")
    directory = make("same", files={"orchestration.c": same})
    x = inputs_of()

    def line(name, *arguments):
        out, err = run(directory, *arguments, "-o", str(root / name))
        expect(f"{name}: stderr", err, "")
        return re.sub(r"; waited .*", "", out.splitlines()[-1]).replace(f"dump  {root / name}: ", "")

    expect("args alone", line("args_alone", "--dump-args"), "3 dispatches")
    expect("args alone: files", sorted(p.name for p in (root / "args_alone/tensor_dump").glob("*.json")),
           ["args_dump.json", "kernel_args_dump.json"])
    expect("both", line("both", "--dump-args", "--dump-tensor=stats"), "9 records, 0 bytes, 3 dispatches")
    expect("stored once", line("once", "--dump-tensor"), "9 records, 768 bytes (256 bytes stored)")
    expect("stored each time", line("each", "--dump-tensor", "--no-dedup"), "9 records, 768 bytes")
    expect("cut off", line("cut", "--dump-tensor", "--dump-max-tensor", "40", "--no-dedup"),
           "9 records, 240 bytes; 6 tensors cut off")
    expect("cut off: bytes", dump_of(root / "cut")[1]["x", "before_dispatch"], x.tobytes()[:40])
    line("little_room", "--dump-tensor", "--dump-arena", "64K", "--dump-buffers", "2", "--dump-stall-timeout", "60")
    expect("little room", dump_of(root / "little_room")[1], dump_of(root / "once")[1])
    line("statistics", "--dump-tensor", "--dump-stats")
    stats = [t["stats"] for t in dump_of(root / "statistics")[0]["tensors"] if t["arg_name"] == "x"]
    expect("statistics", [(np.float32(s["min"]), np.float32(s["max"]), s["nan"]) for s in stats],
           [(x.min(), x.max(), 0)] * 3)


def test_small_payloads_after_large_ones():
    """Large ones, duplicates, then small ones: they are written in different ways, beside each other."""
    more = ORCHESTRATION.replace("    return 0;", """    gbx_submit_task(o, gbx_aiv(0), &args);
    for (int64_t first = 0; first < 24; first += 8) {
        gbx_tensor in = gbx_view_slice(&run->tensors[0], 0, first, 8);
        gbx_tensor out = gbx_view_slice(&run->tensors[1], 0, first, 8);
        gbx_args_clear(&args);
        gbx_args_add_input(&args, &in);
        gbx_args_add_output(&args, &out);
        gbx_args_add_scalar(&args, GBX_FLOAT32, run->scalars[0]);
        gbx_submit_task(o, gbx_aiv(0), &args);
    }
    return 0;""")
    count = 1 << 16
    directory = make("sizes", changed((["args", 0, "shape"], [count]), (["args", 1, "shape"], [count])),
                     {"orchestration.c": more})
    x = inputs_of((count,))
    y = x + np.float32(1.5)
    for platform in ("a2a3sim", "a5sim"):
        where = root / ("sizes_" + platform)
        run(directory, "--dump-tensor", "-p", platform, "-o", str(where))
        manifest, _ = dump_of(where)
        raw = (where / "tensor_dump/tensor_dump.bin").read_bytes()
        for t in (t for t in manifest["tensors"] if t["kind"] == "tensor"):
            whole = x if t["arg_name"] == "x" else y
            wanted = whole[t["start_offset"]:t["start_offset"] + t["numel"]].tobytes()
            got = raw[t["bin_offset"]:t["bin_offset"] + t["bin_size"]]
            expect(f"{platform}: task {t['task_seq']}, {t['arg_name']}", got == wanted, True)
        expect(f"{platform}: all", len(manifest["tensors"]), 5 * 3)


def test_dump_places():
    directory = make("adder", changed((["cases"], {"one": {}, "two": {"args": {"addend": {"value": 2}}}})))
    where = root / "places"
    where.mkdir()
    pattern = re.compile(r"outputs/adder_one_\d{8}_\d{6}(_\d)?$")
    paths = [run_json(directory, "--dump-tensor", cwd=where)["cases"][0]["dump"] for _ in range(3)]
    expect("names", [bool(pattern.match(p)) for p in paths], [True] * 3)
    expect("no two alike", len(set(paths)), 3)
    expect("latest", (where / "outputs" / "latest").resolve(), (where / paths[2]).resolve())
    expect("latest is relative", os.readlink(where / "outputs" / "latest"), pathlib.Path(paths[2]).name)
    cases = run_json(directory, "--dump-tensor=stats", "--case", "all", "--rounds", "2", cwd=where)["cases"]
    ends = [c["dump"].split("/")[1] for c in cases]
    expect("each its own", [(e[:10], e[-3:]) for e in ends],
           [("adder_one_", "_r1"), ("adder_one_", "_r2"), ("adder_two_", "_r1"), ("adder_two_", "_r2")])
    expect("rounds", [dump_of(where / c["dump"])[0]["run"]["round"] for c in cases], [1, 2, 1, 2])
    cases = run_json(directory, "--dump-tensor", "--case", "all", "-o", "mine/", cwd=where)["cases"]
    expect("chosen", [c["dump"] for c in cases], ["mine/one", "mine/two"])
    values = [[t["value"] for t in dump_of(where / c["dump"])[0]["tensors"] if t["kind"] == "scalar"] for c in cases]
    expect("of its own case", values, [[1.5], [2.0]])
    cases = run_json(directory, "--dump-tensor", "--rounds", "2", "-o", "mine", cwd=where)["cases"]
    expect("chosen rounds", [c["dump"] for c in cases], ["mine/one_r1", "mine/one_r2"])
    expect("link stays", os.readlink(where / "outputs" / "latest"), ends[3])


def test_dump_selection():
    marked = ORCHESTRATION.replace("    gbx_submit", "    gbx_args_dump(&args, 1);\n    gbx_submit")
    directory = make("marked", files={"orchestration.c": marked})
    y = (inputs_of() + np.float32(1.5)).tobytes()
    only_y = [("y", "after_completion")]
    for name, arguments, records, payload in (
            ("marks partial", ["--dump-tensor=partial"], only_y, {only_y[0]: y}),
            ("marks hybrid", ["--dump-tensor=hybrid"], ALL_RECORDS, {("x", "before_dispatch"): b"", only_y[0]: y}),
            ("stats", ["--dump-tensor=stats"], ALL_RECORDS, {("x", "before_dispatch"): b"", only_y[0]: b""}),
            ("filter", ["--dump-tensor", "--dump-filter", "kernel=a*,role=output"], only_y, {only_y[0]: y}),
            ("either filter", ["--dump-tensor", "--dump-filter", "arg=1", "--dump-filter", "kind=scalar"],
             [("addend", "before_dispatch")] + only_y, {only_y[0]: y}),
            ("a filter replaces marks", ["--dump-tensor=partial", "--dump-filter", "arg=0"], [("x", "before_dispatch")],
             {("x", "before_dispatch"): inputs_of().tobytes()})):
        where = root / ("select_" + name.replace(" ", "_"))
        case = run_json(directory, *arguments, "-o", str(where))["cases"][0]
        manifest, got = dump_of(where)
        expect(f"{name}: records", named(manifest), sorted(records))
        expect(f"{name}: payload", got, payload)
        expect(f"{name}: counted", case["dump_totals"]["records"], len(records))
    for filters, says in ((["task=99"], 'the dump filter "task=99" matched nothing'),
                          (["task=99", "arg=0", "dtype=int8"], "2 of the 3 dump filters matched nothing")):
        arguments = [word for text in filters for word in ("--dump-filter", text)]
        where = root / f"unmatched_{len(filters)}"
        out, err = run(directory, "--dump-tensor", *arguments, "-o", str(where), code=1)
        expect("unmatched", err, f"glassbox run: case default: {says}\n")
        expect_in("unmatched, and compared", " ok\n", out)
    for level in ("partial", "hybrid"):
        _, err = run(make("unmarked"), f"--dump-tensor={level}", "-o", str(root / f"unmarked_{level}"))
        expect_in("nothing is marked", "no tensor that a task has is marked to be dumped", err)
        expect("nothing is marked, once", err.count("\n"), 1)
    host = ORCHESTRATION_ON_HOST
    directory = make("marked_host", changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}})),
                     {"orchestration.c": host})
    where = root / "select_host"
    run(directory, "--runtime", "host_build_graph", "--dump-tensor=partial", "-o", str(where))
    manifest, got = dump_of(where)
    expect("words that are marked", named(manifest), [("addend", "before_dispatch"), ("y", "after_completion")])
    expect("words: payload", got, {only_y[0]: y})


def test_dumps_that_fail():
    crash = ADD.replace("float *y =", "*(volatile int *)8 = 1;\n    float *y =")
    where = root / "crash_dump"
    case = run_json(make("crash_dump_scene", files={"kernels/add.c": crash}), "--dump-tensor", "-o", str(where),
                    code=3)["cases"][0]
    expect("crash", (case["status"], case["dump"]), ("failed", str(where)))
    expect("crash: in flight", case["dump_totals"]["in_flight"], 1)
    expect("crash: input", dump_of(where)[1]["x", "before_dispatch"], inputs_of().tobytes())
    # A file that may not grow: the run is done and compared, the dump is not whole.
    many = ORCHESTRATION.replace("gbx_submit_task(o, gbx_aiv(0), &args);",
                                 "for (int i = 0; i < 12; ++i) gbx_submit_task(o, gbx_aiv(0), &args);")
    shape = [2 << 20]
    scene = changed((["args", 0, "shape"], shape), (["args", 1, "shape"], shape))
    where = root / "full_dump"
    arguments = ["--dump-tensor", "--no-dedup", "--gm", "96M", "--dump-arena", "1M", "-o", str(where)]
    out, err = run(make("full_scene", scene, {"orchestration.c": many}), *arguments, code=4, limit_bytes=96 << 20)
    expect_in("lost: compared", " ok\n", out)
    expect_in("lost: told", "LOST", out)
    expect_in("lost: what the disk said", "File too large", err.splitlines()[0])
    expect_in("lost: one sentence", "glassbox run: case default: ", err.splitlines()[1])
    manifest, _ = dump_of(where)
    dropped = manifest["dropped_records"]
    expect("lost: all is accounted for", (dropped > 0, len(manifest["tensors"]) + dropped), (True, 12 * 3))
    expect("lost: itemised", (sum(l["count"] for l in manifest["losses"]), {l["cause"] for l in manifest["losses"]}),
           (dropped, {"disk"}))
    expect_in("lost: as many", f" {dropped} records LOST", out)
    wrong = GOLDEN_C.replace("x[i] + addend", "0")
    shutil.rmtree(where)
    run(make("full_wrong", scene, {"orchestration.c": many, "golden.c": wrong}), *arguments, code=4, limit_bytes=96 << 20)


def main():
    try:
        for test in (test_results, test_differences, test_cases_and_rounds, test_fills, test_golden_python, test_failures,
                     test_broken_scenes, test_usage, test_usage_of_dumps, test_dumps, test_dump_options,
                     test_small_payloads_after_large_ones, test_dump_places,
                     test_dump_selection, test_dumps_that_fail):
            test()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
