#!/usr/bin/python3
"""glassbox run on small scenes: results, fills, goldens, exit codes.

usage: run_test.py GLASSBOX
"""
import ctypes
import json
import sys

import numpy as np

from command_support import check, check_in
from run_support import (ADD, FILL, GOLDEN_C, NOTHING, ORCHESTRATION, TENSORMAP, changed, make, root, run, run_json,
                         run_tests, uniform)


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def hash_of(array):
    """XXH3-128 of an array's bytes as xxh128sum prints it, from the library itself."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_128bits.restype = Hash128
    raw = np.ascontiguousarray(array).tobytes()
    value = xxhash.XXH3_128bits(raw, ctypes.c_size_t(len(raw)))
    return f"{value.high:016x}{value.low:016x}"


def test_results():
    directory = make("adder")
    document = run_json(directory)
    first_hash = document["cases"][0]["outputs"][0].pop("hash")
    seconds = document["cases"][0].pop("seconds")
    check("seconds", isinstance(seconds, float) and seconds > 0, True)
    check("document", document, {
        "scene": "adder", "platform": "a2a3sim", "runtime": TENSORMAP, "blocks": 8, "threads": 2,
        "cases": [{"name": "default", "round": 1, "status": "ok", "error": None, "tasks": 1, "dump": None,
                   "dump_totals": None, "signature_warnings": 0, "signature_sentences": [],
                   "outputs": [{"name": "y", "ok": True, "max_abs": 0.0, "max_rel": 0.0, "mismatches": 0,
                                "first_bad": None}], "finding_count": 0, "findings": [], "blame": None, "diagnose": None}]})
    out, err = run(directory / "scene.json", "-v", "--device", "thread")
    check("lines", out.splitlines()[1:], ["  y: ok, max abs 0, max rel 0"])
    check("words", [w for w in out.splitlines()[0].split() if w in ("default", "task", "tasks/s", "ok")],
           ["default", "task", "tasks/s", "ok"])
    check("stderr", err, "")
    document = run_json(directory, "-p", "a5sim", "--blocks", "3", "--threads", "1", "--gm", "64MiB", "--window", "64",
                        "--timeout", "500", "--no-golden")
    check("chosen", (document["platform"], document["blocks"], document["threads"]), ("a5sim", 3, 1))
    check("not compared", [(c["status"], c["outputs"]) for c in document["cases"]], [("not_compared", [
        {"name": "y", "ok": None, "max_abs": None, "max_rel": None, "mismatches": None, "first_bad": None,
         "hash": first_hash}])])
    document = run_json(make("no_golden", changed((["golden"], None))))
    check("no golden", document["cases"][0]["status"], "not_compared")


def test_files_of_flags():
    """Paths in flags are relative to the scene, and what they name counts for the cache."""
    add = '#include <offset.h>\nfloat helper(void);\n' + ADD.replace("+ gbx_arg_f32(args, 2)",
                                                                      "+ gbx_arg_f32(args, 2) + OFFSET * helper()")
    scene = changed((["kernels", 0, "compile_flags"], "-Iinc"), (["kernels", 0, "link_flags"], "helper.c"))
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    for offset, factor in ((0, 1), (0.5, 1), (0.5, 3)):
        directory = make("flagged", scene, {"kernels/add.c": add, "inc/offset.h": f"#define OFFSET {float(offset)}f\n",
                                            "helper.c": f"float helper(void) {{ return {float(factor)}f; }}\n",
                                            "golden.c": GOLDEN_C.replace("+ addend", f"+ addend + {offset * factor:.1f}f")})
        for cwd in (directory, elsewhere):
            run(directory if cwd == elsewhere else directory / "scene.json", cwd=cwd)


def test_prints():
    """What kernels and orchestrations print arrives, also in a pipe and before a crash; --json has stdout for itself."""
    says = ADD.replace("#include", "#include <stdio.h>\n#include", 1).replace(
        "    float *y =", '    printf("one\\ntwo %g\\n", gbx_arg_f32(args, 2));\n    float *y =')
    open_end = says.replace("\n}\n", '\n    printf("an open end");\n}\n')
    crash = says.replace("    float *y =", "    *(volatile int *)8 = 1;\n    float *y =")
    orchestration = ORCHESTRATION.replace("#include", "#include <stdio.h>\n#include", 1).replace(
        "    gbx_args args", '    puts("built");\n    gbx_args args')
    files = {"kernels/add.c": open_end, "orchestration.c": orchestration}
    directory = make("printing", files=files)
    for platform in ("a2a3sim", "a5sim"):
        for device in ("process", "thread"):
            arguments = ("-p", platform, "--device", device)
            out, err = run(directory, *arguments)
            lines = out.replace("open end", "open end\n").splitlines()
            check("printed", (sorted(line for line in lines if not line.startswith("default")), err),
                  (["an open end", "built", "one", "two 1.5"], ""))
            out, err = run(directory, "--json", *arguments)
            check("json", json.loads(out)["cases"][0]["status"], "ok")
            check("json: printed", sorted(err.splitlines()), ["an open end", "built", "one", "two 1.5"])
    out, err = run(make("printing_crash", files={**files, "kernels/add.c": crash}), code=3)
    check_in("printed before a crash", "one\ntwo 1.5\n", out)


def test_differences():
    wrong = GOLDEN_C.replace("return 0;", "y[2 * 8 + 5] += 1.0f; y[3 * 8 + 7] = -y[3 * 8 + 7]; return 0;")
    wrong = wrong.replace("y[i] = x[i] + addend", "y[i] = 2.0f")
    directory = make("wrong", changed((["args", 0, "fill"], "constant"), (["args", 0, "value"], 0.5)),
                     {"golden.c": wrong})
    output = run_json(directory, code=1)["cases"][0]["outputs"][0]
    check("difference", output, {"name": "y", "ok": False, "max_abs": 4.0, "max_rel": 2.0, "mismatches": 2,
                                  "first_bad": [2, 5], "hash": hash_of(np.full(32, 2.0, np.float32))})
    out, err = run(directory, "--rounds", "2", code=1)
    line = "  y: 2 of 32 elements differ, max abs 4, max rel 2, first at [2, 5]: got 2.0, want 3.0"
    check("lines", [l for l in out.splitlines() if l.startswith(" ")], [line, line])
    check("rounds", [l.split("  ")[1] for l in out.splitlines() if "DIFFERS" in l], ["round 1 of 2", "round 2 of 2"])
    check("stderr", err, "")
    # Nothing written: the poison in outputs is neither the golden nor the result of the last round.
    silent = changed((["cases"], {"good": {}, "bad": {}}))
    cases = run_json(make("silent", silent, {"kernels/add.c": FILL % ""}), "--rounds", "2", code=1)["cases"]
    check("silent", [(c["name"], c["round"], c["status"], c["outputs"][0]["mismatches"], c["outputs"][0]["max_abs"])
                      for c in cases], [("good", 1, "differs", 32, "inf"), ("good", 2, "differs", 32, "inf")])
    both = run_json(make("both_silent", files={"kernels/add.c": FILL % "", "golden.c": GOLDEN_C.replace(
        "y[i] = x[i] + addend", "(void)y, (void)x, (void)addend")}), code=1)["cases"][0]["outputs"][0]
    check("both silent", both["mismatches"], 32)
    within = GOLDEN_C.replace("x[i] + addend", "(x[i] + addend) * 1.001f")
    directory = make("within", changed((["args", 1, "rtol"], 0.01)), {"golden.c": within})
    check("within", run_json(directory)["cases"][0]["outputs"][0]["ok"], True)
    directory = make("beyond", changed((["args", 1, "rtol"], 1e-4)), {"golden.c": within})
    check("beyond", run_json(directory, code=1)["cases"][0]["outputs"][0]["ok"], False)


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
    check("first case", rows, [("small", 1, "ok"), ("small", 2, "ok"), ("small", 3, "ok")])
    document = run_json(directory, "--case", "large", "--case", "small")
    check("chosen cases", [(c["name"], c["status"]) for c in document["cases"]], [("large", "ok"), ("small", "ok")])
    check("all", [c["name"] for c in run_json(directory, "--case", "all")["cases"]], ["small", "large", "exact"])
    _, err = run(directory, "--case", "huge", code=2)
    check("no case", err, f'glassbox run: {directory}/scene.json: unknown case "huge"; the scene has small, large, exact\n')


def to_bfloat16(values):
    """The nearest bfloat16, ties to even: truncated, and one step up if that is nearer."""
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
        check(f"fill {name}: {got[name].dtype} {got[name].flat[:4]}, {values.dtype} {values.flat[:4]}", same, True)
    scalars = [got["s_" + d][()] for d in ("float32", "float64", "bfloat16", "int8", "uint64", "bool", "float8_e4m3",
                                           "float16", "int4")]
    check("scalars", scalars, [np.float32(0.1), 0.1, 1.0, -3, 2 ** 63 + 1, True, 448.0, np.inf, -8])


def test_golden_python():
    scene = changed((["golden"], {"source": "golden.py", "entry": "expected"}))

    def python(name, text, code=2):
        text = text if text.startswith("import") else "import numpy as np\n" + text
        return run(make(name, scene, {"golden.py": text}), code=code)[1]

    run(make("python", changed((["golden", "source"], "golden.py"))))
    body = "def expected(args):\n    "
    python("f64", body + "return {'y': args['x'].astype('f8') + 1.5}\n", 0)
    python("fortran", body + "return {'y': np.asfortranarray(args['x'] + args['addend'])}\n", 0)
    check_in("printed", "hello", python("prints", body + "print('hello'); return {'y': args['x'] + 1.5}\n", 0))
    lines = python("raises", body + "raise ValueError('too bad')\n").splitlines()
    check("raises: only the steps of the golden", [line.split("/")[-1] for line in lines if "File" in line],
          ['golden.py", line 3, in expected'])
    check("raises", lines[-1], "ValueError: too bad")
    check_in("no output", 'golden.py: expected() returned no output "y"', python("missing", body + "return {}\n"))
    check_in("shape", 'output "y" has shape [32]; expected [4, 8]',
              python("shape", body + "return {'y': args['x'].ravel()}\n"))
    check_in("other", "returned 'z', which is not an output; expected y",
              python("other", body + "return {'z': 1, 'y': args['x']}\n"))
    check_in("no dict", "expected() returned ndarray; expected a dict of outputs",
              python("no_dict", body + "return args['x']\n"))
    check_in("no entry", "no function expected; expected def expected(args)", python("no_entry", "x = 1\n"))
    check_in("syntax", "SyntaxError", python("syntax", "def expected(:\n"))
    check_in("no numpy", "has no numpy", run(make("no_numpy", scene, {"numpy.py": "raise ImportError('gone')\n"}), code=2,
              environment={"PYTHONPATH": str(root / "no_numpy")})[1])


def test_failures():
    """What goes wrong while running: exit code 2 or 3, one sentence, and the rest still runs."""
    two = changed((["cases"], {"first": {}, "second": {"args": {"addend": {"value": 2}}}}))
    crash = ADD.replace("float *y =", "if (gbx_arg_f32(args, 2) == 1.5f) *(volatile int *)8 = 1;\n    float *y =")
    directory = make("crash", two, {"kernels/add.c": crash})
    cases = run_json(directory, "--case", "all", "--rounds", "2", code=3)["cases"]
    check("after a crash", [(c["name"], c["round"], c["status"]) for c in cases],
           [("first", 1, "failed"), ("second", 1, "ok"), ("second", 2, "ok")])
    check_in("crash", "add", cases[0]["error"])
    out, err = run(directory, code=3)
    check("crash line", out.splitlines()[0].split()[-1], "failed")
    check_in("crash sentence", "glassbox run: case first: ", err)
    hang = make("hang", files={"kernels/add.c": FILL % "for (volatile int i = 1; i;) {}"})
    check("hang", run_json(hang, "--timeout", "0.3", code=3)["cases"][0]["status"], "failed")
    check_in("does not compile", "kernels/add.c", run(make("compile", files={"kernels/add.c": "nonsense"}), code=2)[1])
    check_in("golden compile", "golden.c", run(make("golden_compile", files={"golden.c": "nonsense"}), code=2)[1])
    check_in("golden entry", "golden.c has no function golden",
              run(make("golden_entry", files={"golden.c": "int other;"}), code=2)[1])
    check_in("golden result", "golden.c: golden() returned 7",
              run(make("golden_7", files={"golden.c": GOLDEN_C.replace("return 0", "return 7")}), code=2)[1])
    killed = make("golden_crash", files={"golden.c": GOLDEN_C.replace("return 0", "*(volatile int *)16 = 1; return 0")})
    check_in("golden crash",
              f"glassbox run: {killed}/golden.c: golden() was killed by signal 11 (segmentation fault) at address 0x10\n",
              run(killed, code=3)[1])
    writes = make("golden_writes", files={"golden.c": GOLDEN_C.replace("return 0", "*(float *)x = 1; return 0")})
    check_in("inputs are read-only", "golden.c: golden() was killed by signal 11", run(writes, code=3)[1])
    deep = make("golden_deep", files={"golden.c": GOLDEN_C.replace("int golden", """
        __attribute__((noinline)) static int sink(volatile int n) {
            volatile char a[4096]; a[n % 7] = 1; return sink(n + 1) + a[3];
        }
        int golden""").replace("return 0;", "return sink(0);")})
    check_in("stack overflow", "golden.c: golden() was killed by signal 11", run(deep, code=3)[1])
    host = changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}}))
    abort = make("orchestration_abort", host, {"orchestration.c": NOTHING % "__builtin_trap(); return 0;"})
    check("orchestration crash", run(abort, "--runtime", "host_build_graph", code=3)[1],
           f"glassbox run: {abort}/orchestration.c: orchestrate() was killed by signal 4 (illegal instruction)\n")
    returned = run_json(make("returned", files={"orchestration.c": NOTHING % "return 5;"}), code=2)["cases"][0]
    check("orchestration's own error", returned["status"], "failed")
    # 2 before 3 before 1.
    mixed = changed((["cases"], {"a": {"args": {"addend": {"value": 2}}}, "b": {}}))
    wrong = GOLDEN_C.replace("x[i] + addend", "0")
    check("3 before 1", [c["status"] for c in run_json(make("mixed", mixed, {"kernels/add.c": crash, "golden.c": wrong}),
           "--case", "all", code=3)["cases"]], ["differs", "failed"])


def test_names():
    """Names of a scene, and what a compiler quotes, reach the terminal without control characters."""
    scene = changed((["cases"], {"red\x1b[31m \u00e9": {}, "x": {}}))
    lines = run(make("names", scene), "--case", "all", environment={"LC_ALL": "C.UTF-8"})[0].split("\n")
    check("names", [line.split("  ")[0].rstrip() for line in lines[:2]], ["red\\x1b[31m \u00e9", "x"])
    check("they stand in columns", len({line.index(" tasks") for line in lines[:2] if " tasks" in line}), 1)
    _, error = run(make("quoted", files={"kernels/add.c": ADD + "nonsense \x1b[31m;"}), code=2)
    check("quoted by the compiler", ("\x1b" in error, error.count("\n") > 2), (False, True))


if __name__ == "__main__":
    sys.exit(run_tests(test_results, test_files_of_flags, test_prints, test_differences, test_cases_and_rounds, test_fills,
                       test_golden_python, test_failures, test_names))
