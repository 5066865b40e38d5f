#!/usr/bin/python3
"""float4_e2m1 and float8_e8m0 from scene.json to the screen: fills, goldens, dumps of both platforms, view, diff, exports.

    mx_dtypes_test.py GLASSBOX PYTHON_FOLDER

What is expected is computed from the tables of the OCP MX definition, which are written out here.
"""
import json
import math
import sys

import numpy as np

from command_support import PLATFORMS, check, check_in, glassbox
from run_support import TENSORMAP, make, root, run, run_tests, uniform

sys.path.insert(0, sys.argv[2])
import glassbox as reader  # noqa: E402

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])  # by code
E8M0 = np.array([math.ldexp(1, code - 127) for code in range(255)] + [math.nan])
SHAPE = (3, 5)  # rows of odd length: 3 bytes each

# y = -x, three columns of x at a step of two; t = 2 s.
KERNEL = """#include <glassbox/kernel.h>
static uint8_t *bytes_of(const gbx_tensor *t) { return (uint8_t *)(uintptr_t)t->data; }
static unsigned half(const gbx_tensor *t, int64_t i) { return bytes_of(t)[i / 2] >> i % 2 * 4 & 15; }
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *s = gbx_arg_tensor(args, 1), *step = gbx_arg_tensor(args, 2);
    const gbx_tensor *y = gbx_arg_tensor(args, 3), *t = gbx_arg_tensor(args, 4);
    for (int64_t row = 0; row < 3; ++row)
        for (int64_t column = 0; column < 6; column += 2) {
            unsigned low = half(x, row * 6 + column), high = column < 4 ? half(x, row * 6 + column + 1) ^ 8 : 0;
            bytes_of(y)[row * 3 + column / 2] = (uint8_t)((low ^ 8) | high << 4);
        }
    (void)step;
    for (int64_t i = 0; i < gbx_tensor_numel(s); ++i)
        bytes_of(t)[i] = bytes_of(s)[i] == 255 ? 255 : (uint8_t)(bytes_of(s)[i] + 1);
}
"""
ORCHESTRATION = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_tensor step = run->tensors[0];
    step.shape[1] = 3;
    step.strides[1] = 2;
    gbx_args_add_input(&args, &run->tensors[0]);
    gbx_args_add_input(&args, &run->tensors[1]);
    gbx_args_add_input(&args, &step);
    gbx_args_add_output(&args, &run->tensors[2]);
    gbx_args_add_output(&args, &run->tensors[3]);
    gbx_args_add_scalar(&args, GBX_FLOAT4_E2M1, run->scalars[0]);
    gbx_args_add_scalar(&args, GBX_FLOAT8_E8M0, run->scalars[1]);
    gbx_submit_task(o, gbx_aiv(0), &args);
    return 0;
}
"""
GOLDEN = """import numpy as np
def golden(args):
    assert args['x'].dtype == np.float32 and args['s'].dtype == np.float32
    assert (args['p'], args['q']) == (-1.5, 0.125) and type(args['p']) is np.float32, args
    return {'y': -args['x'], 't': 2 * args['s'].astype('f8')}
"""


def scene(x, s):
    return {"name": "mx",
            "kernels": [{"func_id": 0, "name": "scale", "source": "kernels/scale.c", "core": "aiv",
                         "signature": ["in", "in", "in", "out", "out", "scalar:float4_e2m1", "scalar:FP8E8M0"],
                         "arg_names": ["x", "s", "step", "y", "t", "p", "q"]}],
            "orchestrations": {TENSORMAP: {"source": "mx.c"}},
            "args": [{"name": "x", "dtype": "float4_e2m1fn", "shape": SHAPE, "role": "in", **x},
                     {"name": "s", "dtype": "FP8E8M0", "shape": [6], "role": "in", **s},
                     {"name": "y", "dtype": "float4_e2m1", "shape": SHAPE, "role": "out"},
                     {"name": "t", "dtype": "float8_e8m0", "shape": [6], "role": "out"},
                     {"name": "p", "dtype": "float4_e2m1", "role": "scalar", "value": -1.4},
                     {"name": "q", "dtype": "float8_e8m0", "role": "scalar", "value": 0.13}],
            "golden": {"source": "mx.py"}}


FILES = {"kernels/scale.c": KERNEL, "mx.c": ORCHESTRATION, "mx.py": GOLDEN}
RANDOM = {"fill": "random", "low": -7, "high": 7, "seed": 3}, {"fill": "random", "low": 0.01, "high": 40, "seed": 4}


def nearest_e2m1(value):
    """Of two that are as near the one with the even code; beyond 6 it is 6."""
    codes = sorted(range(8), key=lambda code: (abs(E2M1[code] - abs(value)), code % 2))
    return codes[0] + (8 if math.copysign(1, value) < 0 else 0)


def nearest_e8m0(value):
    """Of two that are as near the larger one."""
    return min(range(255), key=lambda code: (abs(E8M0[code] - value), -code))


def packed(codes):
    """Rows of codes, two a byte, the first in the low half."""
    codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], codes.shape[-1] % 2), int)], axis=-1)
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def record_of(dump, name, stage=None):
    return next(r for r in dump if r.arg_name == name and (stage is None or r.stage == stage))


def codes_of_random():
    x = [nearest_e2m1(v) for v in -7 + uniform(3, 15) * 14]
    s = [nearest_e8m0(v) for v in 0.01 + uniform(4, 6) * (40 - 0.01)]
    return np.array(x).reshape(SHAPE), np.array(s)


def test_run():
    x, s = codes_of_random()
    for platform in PLATFORMS:
        directory = root / f"dump-{platform}"
        run(make("mx", scene(*RANDOM), FILES), "-p", platform, "--dump-tensor", "--dump-stats", "--dump-args", "-o", str(directory))
        dump = reader.open(directory)
        for name, codes, table in (("x", x, E2M1), ("y", x ^ 8, E2M1), ("s", s, E8M0), ("t", s + 1, E8M0),
                                   ("step", x[:, ::2], E2M1)):
            record = record_of(dump, name)
            raw = packed(codes) if table is E2M1 else codes.astype(np.uint8)
            check(f"{platform} {name}: bytes", record.raw().tobytes(), raw.tobytes())
            check(f"{platform} {name}: dtype", record.dtype, "float4_e2m1" if table is E2M1 else "float8_e8m0")
            check(f"{platform} {name}: values", record.float32().tolist(), table[codes].tolist())
            values, stats = table[codes], record.to_dict()["stats"]
            small = np.abs(values) < 1 if table is E2M1 else np.zeros(values.shape, bool)
            check(f"{platform} {name}: statistics",
                  [stats[key] for key in ("min", "max", "nan", "inf", "zero", "subnormal")],
                  [values.min(), values.max(), 0, 0, int((values == 0).sum()), int((small & (values != 0)).sum())])
            check(f"{platform} {name}: mean", math.isclose(stats["mean"], values.mean(), rel_tol=1e-15), True)
        check(f"{platform} scalars", [(record_of(dump, n).value, record_of(dump, n).bits) for n in "pq"], [(-1.5, 11), (0.125, 124)])
        check(f"{platform} is sound", glassbox("verify", directory).returncode, 0)
        check_announced(directory, platform)
    same = glassbox("diff", root / "dump-a2a3sim", root / "dump-a5sim")
    check("both platforms", (same.returncode, "all the same" in same.stdout), (0, True))


def check_announced(directory, platform):
    """The first record that uses a dtype from 17 on comes after the one that announces it."""
    data, at, types, used = (directory / "tensor_dump/tensor_dump.rec").read_bytes(), 64, [], []
    while at < len(data):
        size, at = int.from_bytes(data[at + 4:at + 8], "little"), at + 32
        end = at + size
        while at < end:
            kind, dtype = data[at], data[at + 4]
            if kind in (6, 7) and dtype >= 17 and 128 + dtype not in types:
                used.append(dtype)
            types.append(kind)
            at += 8 * int.from_bytes(data[at + 8:at + 12], "little")
    check(f"{platform}: announced before use", (used, types.count(145), types.count(146)), ([], 1, 1))


def test_fills():
    every = np.array([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE, 0xF], np.uint8).reshape(3, 3)
    for name, fills, x, s in (
            ("constant", ({"fill": "constant", "value": 2.5}, {"fill": "constant", "value": 3}), [2.0] * 15, [4.0] * 6),
            ("bits", ({"fill": "constant", "value": "0xf"}, {"fill": "constant", "value": "0x0"}), [-6.0] * 15, [2.0**-127] * 6),
            ("arange", ({"fill": "arange", "start": -4, "step": 0.5}, {"fill": "arange", "start": 1, "step": 1}),
             [E2M1[nearest_e2m1(-4 + i / 2)] for i in range(15)], [E8M0[nearest_e8m0(1 + i)] for i in range(6)]),
            ("random", ({"fill": "random"}, {"fill": "random"}),
             [E2M1[nearest_e2m1(v)] for v in -1 + uniform(1, 15) * 2], [E8M0[nearest_e8m0(v)] for v in uniform(2, 6)]),
            ("file", ({"fill": "file", "file": "x.npy"}, {"fill": "file", "file": "s.npy"}),
             [0, 0.5, 1, 1.5, 2, 4, 6, -0.0, -0.5, -1, -2, -3, -4, -6, -6], [2.0**-127, 1, 2, 2.0**126, 0.5, 0.25])):
        files = {**FILES, "x.npy": every, "s.npy": np.array([0, 127, 128, 253, 126, 125], np.uint8)}
        directory = root / f"fill-{name}"
        run(make("mx", scene(*fills), files), "--dump-tensor", "-o", str(directory))
        dump = reader.open(directory)
        check(f"{name}: x", record_of(dump, "x").float32().ravel().tolist(), [float(v) for v in x])
        check(f"{name}: s", record_of(dump, "s").float32().tolist(), [float(v) for v in s])
    wrong = GOLDEN.replace("-args['x']", "-args['x'] + np.eye(3, 5)")
    out = run(make("mx", scene(*RANDOM), {**FILES, "mx.py": wrong}), "--json", code=1)[0]
    check("a golden that differs", [(o["name"], o["ok"]) for o in json.loads(out)["cases"][0]["outputs"]], [("y", False), ("t", True)])


def test_view():
    x, s = codes_of_random()
    dump = root / "dump-a2a3sim"
    listed = glassbox("view", dump, "--dtype", "FP8E8M0", "--json").stdout
    check("filter", [t["arg_name"] for t in json.loads(listed)["tensors"]], ["s", "q", "t"])
    listed = glassbox("view", dump, "--dtype", "float4_e2m1fn", "--kind", "tensor", "--json").stdout
    check("filter", [t["arg_name"] for t in json.loads(listed)["tensors"]], ["x", "step", "y"])
    shown = glassbox("view", dump, "--arg", "x").stdout
    text = np.array2string(E2M1[x].astype(np.float32))
    check_in("view of x", text, shown)
    shown = glassbox("view", dump, "--arg", "s").stdout
    check_in("view of s", np.array2string(E8M0[s].astype(np.float32)), shown)
    check_in("statistics", f"{E2M1[x].min():g}", glassbox("view", dump, "--arg", "x", "--stats").stdout)


def test_diff():
    """One code further in y and t, and one NaN in t."""
    other = KERNEL.replace("(low ^ 8) |", "(row == 1 && column == 2 ? (low ^ 8) ^ 1 : low ^ 8) |").replace(
        "bytes_of(t)[i] =", "bytes_of(t)[i] = i == 5 ? 255 : i == 2 ? bytes_of(s)[i] + 4 :")
    x, s = codes_of_random()
    run(make("mx", scene(*RANDOM), {**FILES, "kernels/scale.c": other}), "--dump-tensor", "-o", str(root / "other"), code=1)
    result = json.loads(glassbox("diff", root / "dump-a2a3sim", root / "other", "--atol", "0", "--rtol", "0", "--json").stdout)
    y, t = (next(r for r in result["records"] if r["arg_name"] == name) for name in "yt")
    want, got = E2M1[x[1, 2] ^ 8], E2M1[x[1, 2] ^ 8 ^ 1]
    check("y", (y["mismatches"], y["max_abs"], y["max_ulp"], y["first_bad"]), (1, abs(want - got), 1, [1, 2]))
    rmse = math.sqrt((want - got)**2 / 15)
    check("y: rmse", math.isclose(y["rmse"], rmse, rel_tol=1e-12), True)
    check("t", (t["mismatches"], t["max_abs"], t["first_bad"]), (2, "inf", [2]))
    near = glassbox("diff", root / "dump-a2a3sim", root / "other", "--ulp", "1", "--arg", "y")
    check("y within one value", near.returncode, 0)
    far = glassbox("diff", root / "dump-a2a3sim", root / "other", "--ulp", "2", "--arg", "t")
    check("t beyond two values", far.returncode, 1)


def test_export():
    x, s = codes_of_random()
    dump = root / "dump-a5sim"
    said = glassbox("export", dump, "--format", "npz", "-o", root / "raw.npz").stdout
    check_in("raw", "float4_e2m1 tensors were written as raw uint8, two elements a byte; --as float32 converts", said)
    check_in("raw", "float8_e8m0 tensors were written as raw uint8; --as float32 converts", said)
    task = next(iter(reader.open(dump))).task_id
    names = {"x": f"task_{task}_before_in0", "s": f"task_{task}_before_in1", "step": f"task_{task}_before_in2"}
    raw = np.load(root / "raw.npz")
    for name, expected in (("x", packed(x)), ("s", s.astype(np.uint8)), ("step", packed(x[:, ::2]))):
        check(f"raw {name}", (raw[names[name]].dtype, raw[names[name]].tolist()), (np.dtype("u1"), expected.tolist()))
    glassbox("export", dump, "--as", "float32", "--format", "npz", "-o", root / "f32.npz")
    values = np.load(root / "f32.npz")
    for name, expected in (("x", E2M1[x]), ("s", E8M0[s]), ("step", E2M1[x[:, ::2]])):
        check(f"float32 {name}", (values[names[name]].dtype, values[names[name]].tolist()), (np.dtype("f4"), expected.tolist()))
    for form in ("csv", "txt", "npy"):
        check(form, glassbox("view", dump, "--export", "--format", form).returncode, 0)
    rows = [[float(v) for v in line.split(",")] for line in (dump / "csv" / f"{names['x']}.csv").read_text().splitlines()
            if line[0] != "#"]
    check("csv", rows, E2M1[x].tolist())
    check_in("txt", "# dtype: float4_e2m1", (dump / "txt" / f"{names['x']}.txt").read_text())
    check("npy", np.load(dump / "npy" / f"{names['x']}.npy").tolist(), packed(x).tolist())
    said = glassbox("export", dump, "--format", "simpler", "-o", root / "simpler").stdout
    check_in("simpler", "4 entries with a dtype that the tools of simpler", said)
    entries = json.loads((root / "simpler" / "args_dump.json").read_text())["args"]
    check("simpler: names", sorted({e["dtype"] for e in entries}), ["FLOAT4E2M1", "FP8E8M0"])
    back = {r.arg_index: r for r in reader.open(root / "simpler") if r.stage == "before_dispatch"}
    check("simpler: read again", (back[0].float32().tolist(), back[1].float32().tolist(), back[5].value, back[6].value),
          (E2M1[x].tolist(), E8M0[s].tolist(), -1.5, 0.125))
    check("simpler: the same", glassbox("diff", dump, root / "simpler").returncode, 0)


if __name__ == "__main__":
    sys.exit(run_tests(test_run, test_fills, test_view, test_diff, test_export))
