#!/usr/bin/python3
"""Results: the output and in-out tensors of a run as they were at its end, in its dump.

usage: results_test.py GLASSBOX

The expected bytes are computed here with numpy. The scene writes a row that no task declares; on host_build_graph a
tensor comes back in pieces, one of which overwrites another, and a part of it never comes back.
"""
import ctypes
import json
import pathlib
import sys

import numpy as np

from command_support import PLATFORMS, RUNTIMES, check, check_in, glassbox
from run_support import make, root, run, run_json, run_tests

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import glassbox as reader  # noqa: E402

ROWS, COLUMNS, LONG = 8, 16, 300_000  # LONG floats are more than one step of the copy

SPILL = """#include <string.h>
#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *out = gbx_arg_tensor(args, 1);
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *y = gbx_tensor_f32(out);
    int64_t count = gbx_tensor_numel(out);
    for (int64_t i = 0; i < count; ++i) y[i] = 2 * x[i];
    y[count + 1] = 99; /* beyond the view that the task declares */
    memset((void *)(uintptr_t)gbx_arg_tensor(args, 2)->data, 0xff, 9); /* the half byte after each row, too */
}
"""
TWICE = """#include <signal.h>
#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    float *z = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int64_t count = gbx_tensor_numel(gbx_arg_tensor(args, 1));
    for (int64_t i = 0; i < count; ++i) {
        if (i == 1000) { %s }
        z[i] *= 2;
    }
}
"""
ON_CHIP = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor half = run->tensors[1];
    half.shape[0] = 4;
    gbx_args first = gbx_args_begin(), second = gbx_args_begin();
    gbx_args_add_input(&first, &run->tensors[0]);
    gbx_args_add_inout(&first, &half);
    gbx_args_add_output(&first, &run->tensors[3]);
    gbx_args_add_input(&second, &half);
    gbx_args_add_inout(&second, &run->tensors[2]);
    %s
    return 0;
}
"""
SUBMIT = "gbx_submit_task(o, gbx_aiv(0), &first); gbx_submit_task(o, gbx_aiv(1), &second);"
ADD = """gbx_task one = gbx_add_task_with_args(o, gbx_aiv(0), &first); gbx_publish_task(o, one);
    gbx_task two = gbx_add_task_with_args(o, gbx_aiv(1), &second); gbx_add_successor_conditional(o, one, two);
    gbx_publish_task(o, two);"""
ON_HOST = """#include <glassbox/orchestration.h>
static gbx_tensor copied(gbx_orchestration *o, const gbx_tensor *host, uint64_t bytes) {
    gbx_tensor made = *host;
    made.buffer_bytes = bytes;
    made.data = gbx_device_malloc(o, bytes);
    gbx_copy_to_device(o, made.data, (const void *)(uintptr_t)host->data, bytes);
    return made;
}
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    enum { ROW = 16 * 4 };
    gbx_tensor x = copied(o, &run->tensors[0], 8 * ROW), y = copied(o, &run->tensors[1], 8 * ROW);
    gbx_tensor z = copied(o, &run->tensors[2], 300000 * 4), p = copied(o, &run->tensors[3], 9), half = y;
    half.shape[0] = 4;
    const uint64_t first[] = {gbx_device_tensor(o, &x), gbx_device_tensor(o, &half), gbx_device_tensor(o, &p)};
    const uint64_t second[] = {first[1], gbx_device_tensor(o, &z)};
    const gbx_tensor_info of_first[] = {{0, GBX_ROLE_INPUT, x}, {1, GBX_ROLE_INOUT, half}, {2, GBX_ROLE_OUTPUT, p}};
    const gbx_tensor_info of_second[] = {{0, GBX_ROLE_INPUT, half}, {1, GBX_ROLE_INOUT, z}};
    gbx_task one = gbx_add_task_with_tensor_info(o, gbx_aiv(0), first, 3, of_first, 3);
    gbx_task two = gbx_add_task_with_tensor_info(o, gbx_aiv(1), second, 2, of_second, 2);
    gbx_add_successor(o, one, two);
    char *to = (char *)(uintptr_t)run->tensors[1].data;
    for (int row = 0; row < 5; ++row) /* rows 5 to 7 stay on the chip */
        gbx_return_to_host(o, to + row * ROW, y.data + (uint64_t)row * ROW, ROW);
    gbx_return_to_host(o, to + 2 * ROW, x.data + 2 * ROW, ROW); /* over row 2 */
    gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[2].data, z.data, 300000 * 4);
    gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[3].data, p.data, 9);
    return 0;
}
"""
SCENE = {
    "name": "results",
    "kernels": [{"func_id": 0, "name": "spill", "source": "kernels/spill.c", "core": "aiv",
                 "signature": ["in", "inout", "out"]},
                {"func_id": 1, "name": "twice", "source": "kernels/twice.c", "core": "aiv", "signature": ["in", "inout"]}],
    "orchestrations": {"tensormap_and_ringbuffer": {"source": "submit.c"}, "aicpu_build_graph": {"source": "add.c"},
                       "host_build_graph": {"source": "host.c"}},
    "args": [{"name": "x", "dtype": "float32", "shape": [ROWS, COLUMNS], "role": "in", "fill": "arange"},
             {"name": "y", "dtype": "float32", "shape": [ROWS, COLUMNS], "role": "out", "fill": "constant", "value": -3},
             {"name": "z", "dtype": "float32", "shape": [LONG], "role": "inout", "fill": "arange"},
             {"name": "p", "dtype": "int4", "shape": [3, 5], "role": "out", "fill": "constant", "value": 1}],
}
FILES = {"kernels/spill.c": SPILL, "kernels/twice.c": TWICE % "", "submit.c": ON_CHIP % SUBMIT, "add.c": ON_CHIP % ADD,
         "host.c": ON_HOST}
VARIANTS = [(platform, runtime) for platform in PLATFORMS for runtime in RUNTIMES]


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_128bits.restype, xxhash.XXH3_128bits.argtypes = Hash128, [ctypes.c_char_p, ctypes.c_size_t]


def hash_of(data):
    value = xxhash.XXH3_128bits(data, len(data))
    return f"{value.high:016x}{value.low:016x}"


def expected(runtime, doubled=LONG):
    """The bytes of y, z and p at the end; `doubled` elements of z were reached."""
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    y = np.full((ROWS, COLUMNS), -3, np.float32)
    y[:4] = 2 * x[:4]
    y[4, 1] = 99
    if runtime == "host_build_graph":
        y[2] = x[2]
    z = np.arange(LONG, dtype=np.float32)
    z[:doubled] *= 2
    return {"y": y.tobytes(), "z": z.tobytes(), "p": b"\xff\xff\x0f" * 3}


def dump(name, variant, *options, files=None, code=0):
    platform, runtime = variant
    where = root / f"dump_{name}_{platform}_{runtime}"
    case = run_json(make("results_scene", SCENE, {**FILES, **(files or {})}), "-p", platform, "--runtime", runtime,
                    "--no-golden", "-o", str(where), *options, code=code)["cases"][0]
    return where, case


def manifest_of(where):
    return json.loads((where / "tensor_dump" / "tensor_dump.json").read_text())


def stored(where):
    """The results by name, and their bytes in the file."""
    payload = (where / "tensor_dump" / "tensor_dump.bin").read_bytes()
    results = {result["name"]: result for result in manifest_of(where)["results"]}
    return results, {name: payload[one["bin_offset"]:one["bin_offset"] + one["bin_size"]] for name, one in results.items()}


def check_good(what, where, code=0):
    verified = glassbox("verify", where)
    check(f"{what}: verify", (verified.returncode, verified.stdout[:5]), (code, "good:" if code == 0 else "bad: "))
    opened = reader.open(where)
    check(f"{what}: the Python reader has the manifest", opened.to_dict() == manifest_of(where), True)
    check(f"{what}: and finds nothing wrong", opened.verify(), [])
    return opened


def test_values():
    for variant in VARIANTS:
        for options in ((), ("--no-dedup",)):
            what = f"{variant} {options}"
            where, case = dump("values" + "".join(options), variant, "--dump-tensor", *options)
            results, data = stored(where)
            wanted = expected(variant[1])
            check(f"{what}: which", [(one["arg_index"], one["name"], one["role"], one["dtype"], one["shape"], one["numel"])
                                     for one in manifest_of(where)["results"]],
                  [(1, "y", "output", "float32", [ROWS, COLUMNS], 128), (2, "z", "inout", "float32", [LONG], LONG),
                   (3, "p", "output", "int4", [3, 5], 15)])
            for name in "yzp":
                check(f"{what}: bytes of {name}", data[name] == wanted[name], True)
                check(f"{what}: hash of {name}", results[name]["hash"], hash_of(wanted[name]))
                check(f"{what}: flags of {name}", (results[name]["truncated"], results[name]["in_flight"], "stats" in
                                                   results[name]), (False, False, False))
            outputs = {output["name"]: output["hash"] for output in case["outputs"]}
            check(f"{what}: as the host got them", (outputs["y"], outputs["z"]), (results["y"]["hash"], results["z"]["hash"]))
            check_pieces(what, variant[1], results)
            totals = case["dump_totals"]
            shared = 0 if options else len(wanted["z"]) + len(wanted["p"])
            check(f"{what}: totals", (totals["results"], totals["result_payload_bytes"], totals["result_stored_bytes"]),
                  (3, sum(map(len, wanted.values())), sum(map(len, wanted.values())) - shared))
            opened = check_good(what, where)
            check(f"{what}: array", opened.results[1].array().tobytes() == wanted["z"], True)
            check(f"{what}: int4 array", opened.results[2].array(np.int8).tolist(), [[-1] * 5] * 3)


def check_pieces(what, runtime, results):
    """z lies where its task wrote it. On the host's runtime y comes from two buffers, and its last rows from none."""
    row = COLUMNS * 4
    for name in "yz":
        pieces, one = results[name]["pieces"], results[name]
        addresses = [int(piece["address"], 16) for piece in pieces]
        ranges = [(piece["offset"], piece["bytes"]) for piece in pieces]
        if name == "y" and runtime == "host_build_graph":
            check(f"{what}: pieces", (ranges, one["buffer_addr"]), ([(0, 2 * row), (2 * row, row), (3 * row, 2 * row)], None))
            check(f"{what}: of one buffer", addresses[2] - addresses[0], 3 * row)
        else:
            check(f"{what}: one piece", (ranges, one["buffer_addr"]), ([(0, one["bin_size"])], pieces[0]["address"]))


def test_where_tasks_wrote():
    """Addresses and shared bytes are those of the last write."""
    for variant in VARIANTS:
        manifest = manifest_of(root / f"dump_values_{variant[0]}_{variant[1]}")
        last = [entry for entry in manifest["tensors"] if entry["stage"] == "after_completion"][-1]
        z = manifest["results"][1]
        check(f"{variant}: z is that of its task", (z["buffer_addr"], z["bin_offset"], z["hash"]),
              (last["buffer_addr"], last["bin_offset"], last["hash"]))


def test_stats():
    for variant in (VARIANTS[0], VARIANTS[5]):
        for options, has_payload in ((["--dump-tensor=stats"], False), (["--dump-tensor", "--dump-stats"], True)):
            where, _ = dump(f"stats{has_payload}", variant, *options)
            wanted = expected(variant[1])
            for one in manifest_of(where)["results"]:
                data = wanted[one["name"]]
                what = f"{variant} {options} {one['name']}"
                check(f"{what}: hash", one["hash"], hash_of(data))
                check(f"{what}: payload", one["bin_size"], len(data) if has_payload else 0)
                values = np.full(15, -1) if one["name"] == "p" else np.frombuffer(data, np.float32)
                stats = one["stats"]
                check(f"{what}: min, max", (stats["min"], stats["max"]), (values.min(), values.max()))
                check(f"{what}: mean", abs(stats["mean"] - values.astype(np.float64).mean()) < 1e-6, True)
                check(f"{what}: zeros", stats["zero"], int((values == 0).sum()))
            check_good(f"{variant} {options}", where)


def test_none():
    """Other levels, and filters: the dump was asked for less."""
    for options in (["--dump-tensor", "--dump-filter", "kernel=twice"], ["--dump-tensor=partial"], ["--dump-tensor=hybrid"],
                    ["--dump-tensor=stats", "--dump-filter", "role=output"]):
        where, case = dump("none" + "_".join(options), VARIANTS[4], *options)
        check(f"{options}: none", (manifest_of(where)["results"], case["dump_totals"]["results"]), ([], 0))
        verified = glassbox("verify", where)
        check(f"{options}: verify", verified.returncode, 0)
        shown = glassbox("view", where, "--results")
        check(f"{options}: view", (shown.returncode, shown.stdout), (1, ""))
        check_in(f"{options}: view says why", "has no results of the run", shown.stderr)


def test_truncated():
    where, _ = dump("truncated", VARIANTS[3], "--dump-tensor", "--dump-max-tensor", "1K")
    results, data = stored(where)
    wanted = expected(VARIANTS[3][1])
    for name, kept in (("y", 512), ("z", 1024), ("p", 9)):
        check(f"truncated {name}", (data[name] == wanted[name][:kept], results[name]["truncated"], results[name]["hash"]),
              (True, name == "z", hash_of(wanted[name][:kept])))
    check_good("truncated", where)


def test_in_flight():
    """What global memory held when a kernel crashed or the chip died: also what no task recorded."""
    ends = {"crash": "*(volatile int *)0 = 1;", "kill": "raise(SIGKILL);"}
    for number, variant in enumerate(VARIANTS):
        name = "kill" if number % 3 == 2 else "crash"
        where, case = dump(name, variant, "--dump-tensor", files={"kernels/twice.c": TWICE % ends[name]}, code=3)
        results, data = stored(where)
        wanted = expected(variant[1], doubled=1000)
        for one in "yzp":
            check(f"{name} {variant}: {one}", (data[one] == wanted[one], results[one]["in_flight"]), (True, True))
        check(f"{name} {variant}: the run", case["status"], "failed")
        check_good(f"{name} {variant}", where)


def test_damage():
    where, _ = dump("damage", VARIANTS[2], "--dump-tensor", "--no-dedup")
    payload, manifest = where / "tensor_dump" / "tensor_dump.bin", where / "tensor_dump" / "tensor_dump.json"
    results, _ = stored(where)
    good = payload.read_bytes(), manifest.read_text()
    spoiled = bytearray(good[0])
    spoiled[results["z"]["bin_offset"] + 5] ^= 1
    payload.write_bytes(spoiled)
    verified = glassbox("verify", where)
    check("a byte of z: verify", (verified.returncode, verified.stdout.count("hash of")), (1, 1))
    check_in("a byte of z: whose", "hash: result of argument 2: hash of 1200000 bytes", verified.stdout)
    check("a byte of z: the Python reader", [result.name for result in reader.open(where).verify()], ["z"])
    payload.write_bytes(good[0])
    for change, said in (((results["z"]["hash"], "0" * 32), "tensor_dump.json: results[1].hash"),
                         (('"total_results": 3', '"total_results": 2'), "tensor_dump.json: total_results"),
                         (('"results": [', '"resolts": ['), "tensor_dump.json: results")):
        manifest.write_text(good[1].replace(*change))
        verified = glassbox("verify", where)
        check(f"{said}: verify", verified.returncode, 1)
        check_in("what is wrong", said, verified.stdout)
    manifest.write_text(good[1])
    (where / "tensor_dump" / "tensor_dump.rec").unlink()
    alone = glassbox("view", where, "--json")
    check("without a journal", json.loads(alone.stdout)["results"], json.loads(good[1])["results"])
    check_good("without a journal", where)


def test_disk():
    """Results that did not fit on the disk are lost one by one, and named; what fitted is there."""
    platform, runtime = VARIANTS[5]
    where = root / "dump_disk"
    scene = json.loads(json.dumps(SCENE))
    scene["args"][2]["shape"] = [10_000_000]  # twice in the records of its task, and no room for the third time
    run(make("results_scene", scene, FILES), "-p", platform, "--runtime", runtime, "--no-golden", "--dump-tensor", "--no-dedup",
        "--gm", "96M", "--dump-arena", "1M", "-o", str(where), code=4, limit_bytes=96 << 20)
    manifest = manifest_of(where)
    check("disk: lost", [(loss["result"], loss["cause"], loss["count"], loss["task_seq"], loss["stage"], loss["arg_index"])
                         for loss in manifest["losses"]],
          [(2, "disk", 1, None, None, None), (3, "disk", 1, None, None, None)])
    check("disk: entries", (len(manifest["tensors"]), manifest["complete"], manifest["dropped_records"]), (7, False, 2))
    results, data = stored(where)
    check("disk: the rest", (list(results), data["y"] == expected(runtime)["y"]), (["y"], True))
    verified = check_good("disk", where)
    check("disk: losses in Python", [loss["result"] for loss in verified.losses], [2, 3])
    check_in("disk: verify names it", "lost: 1 record, the result of argument 2 of the run", glassbox("verify", where).stdout)
    (where / "tensor_dump" / "tensor_dump.rec").unlink()
    alone = json.loads(glassbox("view", where, "--json").stdout)
    check("disk: without a journal", (alone["losses"], alone["results"]), (manifest["losses"], manifest["results"]))


def test_killed():
    """A journal that ends before its last block, as that of a killed run: no results, and the rest is there."""
    where, _ = dump("killed", VARIANTS[1], "--dump-tensor")
    journal = where / "tensor_dump" / "tensor_dump.rec"
    data, at, ends = journal.read_bytes(), 64, [64]
    while at < len(data):
        at += 32 + int.from_bytes(data[at + 4:at + 8], "little")
        ends.append(at)
    journal.write_bytes(data[:ends[1]])
    (where / "tensor_dump" / "tensor_dump.json").unlink()
    check("recover", glassbox("recover", where).returncode, 0)
    check("no results", (manifest_of(where)["results"], reader.open(where).results), ([], []))
    check("opens", (glassbox("view", where).returncode, glassbox("verify", where).returncode), (0, 0))
    journal.write_bytes(data)
    (where / "tensor_dump" / "tensor_dump.json").unlink()
    check("recover all", glassbox("recover", where).returncode, 0)
    check("all results", len(manifest_of(where)["results"]), 3)
    check_good("recovered", where)


def test_old():
    for old in sorted((HERE / "fixtures" / "format" / "0.1.0").iterdir()):
        if (old / "tensor_dump").is_dir():
            shown = glassbox("view", old, "--json")
            if shown.returncode == 0:
                check(f"{old.name}: no results", json.loads(shown.stdout)["results"], [])
                check(f"{old.name}: nor in Python", reader.open(old).results, [])


def test_view():
    where = root / "dump_values_a2a3sim_host_build_graph"
    shown = glassbox("view", where, "--results", "--stats")
    lines = shown.stdout.splitlines()
    check_in("the head", "; 3 results", lines[0])
    check("headings", lines[1].split(), "INDEX ROLE ARG DTYPE SHAPE BYTES HASH MIN MAX MEAN NAN INF".split())
    check("a row", lines[2].split()[:8], ["0", "out", "1", "y", "float32", "[8,", "16]", "512"])
    y = np.frombuffer(expected("host_build_graph")["y"], np.float32)
    check("its statistics", [float(word) for word in lines[2].split()[9:11]], [y.min(), y.max()])
    one = glassbox("view", where, "--results", "--index", "2", "--full")
    check_in("one", "result 2: out, arg 3 p of the run\nint4 [3, 5], 9 bytes", one.stdout)
    check_in("its values", "[[-1 -1 -1 -1 -1]", one.stdout)
    beyond = glassbox("view", where, "--results", "--index", "3")
    check("beyond", (beyond.returncode, beyond.stderr),
          (2, "glassbox view: --index 3: the dump has 3 results, 0 to 2\n"))
    for option in ("--json", "--export"):
        check(option, glassbox("view", where, "--results", option).returncode, 2)


sys.exit(run_tests(test_values, test_where_tasks_wrote, test_stats, test_none, test_truncated, test_in_flight, test_damage,
                   test_disk, test_killed, test_old, test_view))
