#!/usr/bin/python3
"""Dumps of glassbox run on small scenes: places, options, selection, failures; values compared with numpy.

usage: run_dump_test.py GLASSBOX
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

from command_support import GLASSBOX, check, check_in
from run_support import (ADD, GOLDEN_C, ORCHESTRATION, TENSORMAP, changed, make, root, run, run_json, run_tests, uniform)

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
        check("dump", (case["status"], case["error"], case["dump"]), ("ok", None, str(where)))
        totals = case["dump_totals"]
        got = {key: totals[key] for key in totals if key not in ("stall_ns", "longest_capture_ns", "stored_bytes")}
        check("totals", got, {"records": 3, "tensors": 2, "dispatches": 1, "payload_bytes": 256, "deduplicated": 0,
                               "truncated": 0, "in_flight": 0, "dropped": 0, "skipped": 0, "unmatched_filters": 0,
                               "results": 1, "result_payload_bytes": 128, "result_stored_bytes": 0})
        manifest, payload = dump_of(where)
        check("records", named(manifest), sorted(ALL_RECORDS))
        check("x", payload["x", "before_dispatch"], x.tobytes())
        check("y", payload["y", "after_completion"], (x + np.float32(1.5)).tobytes())
        check("addend", [t["value"] for t in manifest["tensors"] if t["kind"] == "scalar"], [1.5])
        about = manifest["run"]
        check("about", (about["scene"], about["case"], about["platform"], about["runtime"]),
               ("adder", "default", platform, TENSORMAP))
        document = json.loads((where / "run.json").read_text())
        check_in("command", f"glassbox run {directory} --json --dump-tensor --dump-args -o {where}", json.dumps(document))
        kept = list((where / "kernels").rglob("*"))
        check("kernels", [any(k.read_bytes() == ADD.encode() for k in kept if k.is_file())], [True])
    out, err = run(directory, "--dump-tensor", "-o", str(root / "text"))
    check("dump line", out.splitlines()[-1], f"dump  {root}/text: 3 entries, 256 bytes")
    check("dump stderr", err, "")
    out, err = run(directory, "--dump-tensor", "-o", str(root / "text"), code=2)
    check_in("a dump is not written over", str(root / "text"), err)
    check("an existing dump is not reported as this run's", out, "default  failed\n")
    _, payload = dump_of(root / "text")
    check("the dump that was there", payload["x", "before_dispatch"], x.tobytes())
    climbing = make("climbing", changed((["kernels", 0, "name"], "../../up/add")))
    where = root / "deep" / "climbing_dump"  # two levels, so that everything that it could reach is ours
    where.parent.mkdir()
    run(climbing, "--dump-tensor", "-o", str(where))
    document = json.loads((where / "run.json").read_text())
    check("the kernel's copy stays inside", [(where / document["kernels"][0][key]).read_bytes()[:4]
                                              for key in ("object", "source")], [b"\x7fELF", ADD.encode()[:4]])
    check("nothing outside", [str(path) for path in root.rglob("up")], [])


def test_dump_options():
    """Options that change how much is kept: checks the dump and the printed line."""
    same = ORCHESTRATION.replace("gbx_submit_task(o, gbx_aiv(0), &args);",
                                 "for (int i = 0; i < 3; ++i) gbx_submit_task(o, gbx_aiv(0), &args);")
    directory = make("same", files={"orchestration.c": same})
    x = inputs_of()

    def line(name, *arguments):
        out, err = run(directory, *arguments, "-o", str(root / name))
        check(f"{name}: stderr", err, "")
        return re.sub(r"; waited .*", "", out.splitlines()[-1]).replace(f"dump  {root / name}: ", "")

    check("only args", line("only_args", "--dump-args"), "3 dispatches")
    check("only args: files", sorted(p.name for p in (root / "only_args/tensor_dump").glob("*.json")),
           ["args_dump.json", "kernel_args_dump.json"])
    check("both", line("both", "--dump-args", "--dump-tensor=stats"), "9 entries, 0 bytes, 3 dispatches")
    check("stored once", line("once", "--dump-tensor"), "9 entries, 768 bytes (256 bytes stored)")
    check("stored each time", line("each", "--dump-tensor", "--no-dedup"), "9 entries, 768 bytes")
    check("cut off", line("cut", "--dump-tensor", "--dump-max-tensor", "40", "--no-dedup"),
           "9 entries, 240 bytes; 6 tensors truncated")
    check("cut off: bytes", dump_of(root / "cut")[1]["x", "before_dispatch"], x.tobytes()[:40])
    line("little_room", "--dump-tensor", "--dump-arena", "64K", "--dump-buffers", "2", "--dump-stall-timeout", "600")
    check("little room", dump_of(root / "little_room")[1], dump_of(root / "once")[1])
    line("statistics", "--dump-tensor", "--dump-stats")
    stats = [t["stats"] for t in dump_of(root / "statistics")[0]["tensors"] if t["arg_name"] == "x"]
    check("statistics", [(np.float32(s["min"]), np.float32(s["max"]), s["nan"]) for s in stats],
           [(x.min(), x.max(), 0)] * 3)


def test_small_payloads_after_large_ones():
    """Large tensors, duplicates, then small ones: each kind is written in a different way, at the same time."""
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
            check(f"{platform}: task {t['task_seq']}, {t['arg_name']}", got == wanted, True)
        check(f"{platform}: all", len(manifest["tensors"]), 5 * 3)


def test_dump_places():
    directory = make("adder", changed((["cases"], {"one": {}, "two": {"args": {"addend": {"value": 2}}}})))
    where = root / "places"
    where.mkdir()
    pattern = re.compile(r"outputs/adder_one_\d{8}_\d{6}(_\d)?$")
    paths = [run_json(directory, "--dump-tensor", cwd=where)["cases"][0]["dump"] for _ in range(3)]
    check("names", [bool(pattern.match(p)) for p in paths], [True] * 3)
    check("no two alike", len(set(paths)), 3)
    check("latest", (where / "outputs" / "latest").resolve(), (where / paths[2]).resolve())
    check("latest is relative", os.readlink(where / "outputs" / "latest"), pathlib.Path(paths[2]).name)
    cases = run_json(directory, "--dump-tensor=stats", "--case", "all", "--rounds", "2", cwd=where)["cases"]
    ends = [c["dump"].split("/")[1] for c in cases]
    check("each its own", [(e[:10], e[-3:]) for e in ends],
           [("adder_one_", "_r1"), ("adder_one_", "_r2"), ("adder_two_", "_r1"), ("adder_two_", "_r2")])
    check("rounds", [dump_of(where / c["dump"])[0]["run"]["round"] for c in cases], [1, 2, 1, 2])
    cases = run_json(directory, "--dump-tensor", "--case", "all", "-o", "mine/", cwd=where)["cases"]
    check("chosen", [c["dump"] for c in cases], ["mine/one", "mine/two"])
    values = [[t["value"] for t in dump_of(where / c["dump"])[0]["tensors"] if t["kind"] == "scalar"] for c in cases]
    check("of its own case", values, [[1.5], [2.0]])
    cases = run_json(directory, "--dump-tensor", "--rounds", "2", "-o", "mine", cwd=where)["cases"]
    check("chosen rounds", [c["dump"] for c in cases], ["mine/one_r1", "mine/one_r2"])
    check("link stays", os.readlink(where / "outputs" / "latest"), ends[3])


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
        check(f"{name}: records", named(manifest), sorted(records))
        check(f"{name}: payload", got, payload)
        check(f"{name}: counted", case["dump_totals"]["records"], len(records))
    for filters, says in ((["task=99"], 'the dump filter "task=99" matched nothing'),
                          (["task=99", "arg=0", "dtype=int8"], "2 of the 3 dump filters matched nothing")):
        arguments = [word for text in filters for word in ("--dump-filter", text)]
        where = root / f"unmatched_{len(filters)}"
        out, err = run(directory, "--dump-tensor", *arguments, "-o", str(where), code=1)
        check("unmatched", err, f"glassbox run: case default: {says}\n")
        check_in("unmatched, and compared", " ok\n", out)
    for level in ("partial", "hybrid"):
        _, err = run(make("unmarked"), f"--dump-tensor={level}", "-o", str(root / f"unmarked_{level}"))
        check_in("nothing is marked", "no tensor of any task is marked for the dump", err)
        check("nothing is marked, once", err.count("\n"), 1)
    host = ORCHESTRATION_ON_HOST
    directory = make("marked_host", changed((["orchestrations"], {"host_build_graph": {"source": "orchestration.c"}})),
                     {"orchestration.c": host})
    where = root / "select_host"
    run(directory, "--runtime", "host_build_graph", "--dump-tensor=partial", "-o", str(where))
    manifest, got = dump_of(where)
    check("words that are marked", named(manifest), [("addend", "before_dispatch"), ("y", "after_completion")])
    check("words: payload", got, {only_y[0]: y})


def test_dumps_that_fail():
    crash = ADD.replace("float *y =", "*(volatile int *)8 = 1;\n    float *y =")
    where = root / "crash_dump"
    case = run_json(make("crash_dump_scene", files={"kernels/add.c": crash}), "--dump-tensor", "-o", str(where),
                    code=3)["cases"][0]
    check("crash", (case["status"], case["dump"]), ("failed", str(where)))
    check("crash: in flight", case["dump_totals"]["in_flight"], 1)
    check("crash: input", dump_of(where)[1]["x", "before_dispatch"], inputs_of().tobytes())
    # A file that may not grow: the run ends and is compared, the dump is incomplete.
    many = ORCHESTRATION.replace("gbx_submit_task(o, gbx_aiv(0), &args);",
                                 "for (int i = 0; i < 12; ++i) gbx_submit_task(o, gbx_aiv(0), &args);")
    shape = [2 << 20]
    scene = changed((["args", 0, "shape"], shape), (["args", 1, "shape"], shape))
    where = root / "full_dump"
    arguments = ["--dump-tensor", "--no-dedup", "--gm", "96M", "--dump-arena", "1M", "-o", str(where)]
    out, err = run(make("full_scene", scene, {"orchestration.c": many}), *arguments, code=4, limit_bytes=96 << 20)
    check_in("lost: compared", " ok\n", out)
    check_in("lost: printed", "LOST", out)
    check_in("lost: what the disk said", "File too large", err.splitlines()[0])
    # Global memory is such a file: no addresses are left for zones, and the run says so.
    check_in("lost: no zones", " buffers have no zones, because there was no room for them", err.splitlines()[1])
    check_in("lost: one sentence", "glassbox run: case default: ", err.splitlines()[2])
    manifest, _ = dump_of(where)
    dropped = manifest["dropped_records"]
    check("lost: all is accounted for", (dropped > 0, len(manifest["tensors"]) + len(manifest["results"]) + dropped), (True, 12 * 3 + 1))
    check("lost: itemised", (sum(l["count"] for l in manifest["losses"]), {l["cause"] for l in manifest["losses"]}),
           (dropped, {"disk"}))
    check_in("lost: as many", f" {dropped} records LOST", out)
    wrong = GOLDEN_C.replace("x[i] + addend", "0")
    shutil.rmtree(where)
    run(make("full_wrong", scene, {"orchestration.c": many, "golden.c": wrong}), *arguments, code=4, limit_bytes=96 << 20)


def test_full_disk():
    """A disk that is full, payload and journal: everything that is not there is counted, and view says why."""
    script = """mount -t tmpfs -o size="$2" tmpfs "$1" || exit 99
"$0" run "$3" --dump-tensor --no-dedup -o "$1/dump" --json >"$1.run"; echo $? >"$1.code"
"$0" view "$1/dump" --json >"$1.view"; "$0" view "$1/dump" --limit 1 | head -n 1 >"$1.head"; "$0" verify "$1/dump" >"$1.verify"
exit 0"""
    tasks = 3000
    many = ORCHESTRATION.replace("gbx_submit_task(o, gbx_aiv(0), &args);",
                                 f"for (int i = 0; i < {tasks}; ++i) gbx_submit_task(o, gbx_aiv(0), &args);")
    scene = make("full_disk", files={"orchestration.c": many})
    for size in ("128k", "300k", "600k", "1m"):
        disk = root / f"disk_{size}"
        disk.mkdir()
        result = subprocess.run(["unshare", "-rm", "sh", "-c", script, GLASSBOX, disk, size, scene], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"skipped: cannot mount a tmpfs here: {result.stderr.strip()}")
            return
        check(f"{size}: exit code", disk.with_suffix(".code").read_text(), "4\n")
        case = json.loads(disk.with_suffix(".run").read_text())["cases"][0]
        manifest = json.loads(disk.with_suffix(".view").read_text())
        kept = len(manifest["tensors"])
        known = kept + len(manifest["results"]) + manifest["dropped_records"]
        check(f"{size}: all is accounted for", (known, manifest["complete"]), (3 * tasks + 1, False))
        check(f"{size}: itemised", (sum(l["count"] for l in manifest["losses"]), {l["cause"] for l in manifest["losses"]}),
              (manifest["dropped_records"], {"disk"}))
        check(f"{size}: the run says the same", (case["dump_totals"]["records"], case["dump_totals"]["dropped"]),
              (kept, manifest["dropped_records"]))
        head = disk.with_suffix(".head").read_text()
        check_in(f"{size}: view", f"{manifest['dropped_records']:,} lost; ", head)
        check_in(f"{size}: view", "not complete: done, but records were lost: No space left on device\n", head)
        check(f"{size}: values", {t["value"] for t in manifest["tensors"] if t["kind"] == "scalar"} <= {1.5}, True)
        check_in(f"{size}: verify", "the disk failed or was full\n", disk.with_suffix(".verify").read_text())


if __name__ == "__main__":
    sys.exit(run_tests(test_dumps, test_dump_options, test_small_payloads_after_large_ones, test_dump_places, test_dump_selection,
                       test_dumps_that_fail, test_full_disk))
