#!/usr/bin/python3
"""Dumps of other versions: those in fixtures/format, from older versions, and those that a newer version may write.

usage: format_versions_test.py GLASSBOX SOURCE_ROOT

The contents of old dumps are computed here from their scene; those of newer ones come from dump_encoder.py.
"""
import hashlib
import json
import pathlib
import shutil
import struct
import sys
import tempfile

import numpy as np

from command_support import check, check_in, glassbox, report
from dump_encoder import DISPATCH, DONE, HEADER, LOSS, NONE, RUN, RUN_ARG, SAMPLE, Dump, record, text_record, with_tail

SOURCE_ROOT = pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE_ROOT / "python"))
sys.dont_write_bytecode = True
import glassbox as reader  # noqa: E402

FIXTURES = SOURCE_ROOT / "tests" / "fixtures" / "format"
OLD = FIXTURES / "0.1.0"
NUMPY = {"float32": np.float32, "int32": np.int32}
KILLED = "killed before the dump was complete; recovered"


def run_json(*arguments, code=0, stderr=""):
    result = glassbox(*arguments, "--json")
    check(f"{' '.join(map(str, arguments))}: exit code and stderr", (result.returncode, result.stderr), (code, stderr))
    return json.loads(result.stdout or "null")


def tree(directory):
    """Names and hashes of all files."""
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(directory.rglob("*")) if path.is_file()}


# --- old dumps ---


def ledger(deed=0, in_flight=False):
    """What the scene computes, by task, stage and argument."""
    a, b = np.arange(32, dtype=np.float32).reshape(4, 8), (np.arange(32, dtype=np.float32) - 7).reshape(8, 4)
    marks, counts, weight = np.arange(16, dtype=np.int32) - 3, 100 + 10 * np.arange(16, dtype=np.int32), -5
    t, u = 3 * a, b.T / 2
    after = counts + weight * marks
    if in_flight:
        after[8:] = counts[8:]  # it crashed there
    values = {(0, 0, 0): a, (0, 0, 2): np.float32(3), (0, 1, 1): t, (1, 0, 0): b.T, (1, 0, 2): np.float32(0.5), (1, 1, 1): u,
              (2, 0, 0): t, (2, 0, 1): u, (2, 1, 2): t + u, (3, 0, 0): marks, (3, 0, 1): counts, (3, 0, 2): np.int32(weight),
              (3, 0, 3): np.int32(deed), (3, 1, 1): after}
    return {key: np.asarray(value) for key, value in sorted(values.items())}


NAMES = {0: ("scale", ("x", "y", "factor")), 1: ("scale", ("x", "y", "factor")), 2: ("add", ("x", "y", "sum")),
         3: ("tally", ("marks", "counts", "weight", "deed"))}
ALL = ledger()
WITHOUT_LAST = {key: value for key, value in ledger(2).items() if key != (3, 1, 1)}
# What each dump holds: values, members of the head, and how many bytes of a tensor were kept.
HELD = {
    "a2a3sim_tensormap": (ALL, {"platform": "a2a3sim", "runtime": "tensormap_and_ringbuffer", "complete": True}, 128),
    "a5sim_tensormap": (ALL, {"platform": "a5sim", "runtime": "tensormap_and_ringbuffer", "complete": True}, 128),
    "a2a3sim_aicpu_stats": (ALL, {"platform": "a2a3sim", "runtime": "aicpu_build_graph", "complete": True}, 0),
    "a5sim_aicpu": (ALL, {"platform": "a5sim", "runtime": "aicpu_build_graph", "complete": True}, 128),
    "a2a3sim_host_truncated": (ALL, {"platform": "a2a3sim", "runtime": "host_build_graph", "complete": True}, 64),
    "a5sim_host": (ALL, {"platform": "a5sim", "runtime": "host_build_graph", "complete": True}, 128),
    "crashed": (ledger(1, True), {"platform": "a2a3sim", "runtime": "tensormap_and_ringbuffer", "complete": True}, 128),
    "lost": (WITHOUT_LAST, {"platform": "a2a3sim", "runtime": "tensormap_and_ringbuffer", "complete": False}, 128),
    "killed": (WITHOUT_LAST, {"platform": "a2a3sim", "runtime": "aicpu_build_graph", "complete": False}, 128),
    "recovered": (WITHOUT_LAST, {"platform": "a2a3sim", "runtime": "aicpu_build_graph", "complete": False}, 128),
}
WHOLE = [name for name, (values, _, kept) in HELD.items() if kept == 128 and name != "crashed"]


def key_of(entry):
    return entry["task_seq"], int(entry["stage"] == "after_completion"), entry["arg_index"]


def check_entry(name, entry, value, kept, payload):
    what = f"{name}: {key_of(entry)}"
    kernel, arg_names = NAMES[entry["task_seq"]]
    check(f"{what}: names", (entry["kernel"], entry["arg_name"]), ([kernel], arg_names[entry["arg_index"]]))
    check(f"{what}: dtype", entry["dtype"], str(value.dtype))
    check(f"{what}: in flight", entry["in_flight"], name == "crashed" and key_of(entry) == (3, 1, 1))
    if entry["kind"] == "scalar":
        check(f"{what}: value", (entry["value"], value.shape), (value.item(), ()))
        return
    check(f"{what}: shape", tuple(entry["shape"]), value.shape)
    check(f"{what}: contiguous", entry["is_contiguous"], key_of(entry) != (1, 0, 0))
    size = min(kept, value.nbytes)
    check(f"{what}: bytes", (entry["bin_size"], entry["truncated"]), (size, 0 < kept < value.nbytes))
    data = payload[entry["bin_offset"]:entry["bin_offset"] + size]
    check(f"{what}: values", data, np.ascontiguousarray(value).tobytes()[:size])
    if "stats" in entry:
        value = np.ascontiguousarray(value).reshape(-1)[:size // 4] if size else value  # of what was kept
        check(f"{what}: statistics", [entry["stats"][key] for key in ("min", "max", "mean", "zero")],
              [value.min(), value.max(), value.mean(dtype=np.float64), np.count_nonzero(value == 0)])


def test_view(name, directory):
    values, head, kept = HELD[name]
    document = run_json("view", directory)
    entries = document["tensors"]
    check(f"{name}: entries", [key_of(entry) for entry in entries], list(values))
    check(f"{name}: head", {key: document["run"].get(key, document.get(key)) for key in head}, head)
    payload = (directory / "tensor_dump" / "tensor_dump.bin").read_bytes()
    for entry, value in zip(entries, values.values()):
        check_entry(name, entry, value, kept, payload)
    if kept == 128:  # computed from the bytes, not copied from the journal
        entries = run_json("view", directory, "--stats")["tensors"]
        tensors = sum(value.ndim > 0 for value in values.values())
        check(f"{name}: statistics of all", sum("stats" in entry for entry in entries), tensors)
        for entry, value in zip(entries, values.values()):
            check_entry(name, entry, value, kept, payload)
    skipped = [(entry["task_seq"], entry["kernel"]) for entry in document["skipped"]]
    check(f"{name}: skipped", skipped, [(4, "tally")] if "_host" in name else [])
    losses = [(loss["task_seq"], loss["arg_index"], loss["cause"], loss["count"]) for loss in document["losses"]]
    check(f"{name}: losses", losses, [(3, 1, "disk", 1)] if name == "lost" else [])


def test_python(name, directory):
    values, _, kept = HELD[name]
    dump = reader.open(directory)
    check(f"{name}: Python and view", dump.to_dicts(), run_json("view", directory)["tensors"])
    check(f"{name}: no record is newer", dump.newer_records, 0)
    check(f"{name}: has no executions", dump.executions, [])
    for entry, value in zip(dump, values.values()):
        if entry.is_scalar or kept == 128:
            check(f"{name}: Python: {entry!r}", entry.array().tolist(), value.tolist())
    check(f"{name}: predecessors", [sorted(dump.task(task).predecessors) for task in range(4)],
          [[], [], [0, 1], []])


def test_verify(name, directory):
    result = glassbox("verify", directory)
    if name == "killed":
        check(f"verify {name}", (result.returncode, result.stdout[:18]), (1, "bad: 2 problems in"))
        return
    tensors = [key for key, value in HELD[name][0].items() if value.ndim]
    check(f"verify {name}", (result.returncode, result.stdout[:5], result.stderr), (0, "good:", ""))
    document = run_json("verify", directory)
    hashed = 0 if name == "a2a3sim_aicpu_stats" else len(tensors)
    check(f"verify {name}: hashes", (document["hashed_records"], document["bad"], document["newer_records"]), (hashed, [], 0))


def test_check_and_replay(name, directory):
    tasks = 4 if HELD[name][0] is ALL else 3
    document = run_json("check", directory, "--scene", OLD / "scene")
    check(f"check {name}", [(task["task_seq"], task["verdict"]) for task in document["tasks"][:tasks]],
          [(task, "right") for task in range(tasks)])
    check(f"check {name}: right and wrong", (document["right"], document["introduced"]), (tasks, 0))
    for task in range(tasks):
        document = run_json("replay", directory, "--task", task, "--trust")
        check(f"replay {name} task {task}", (document["verdict"], len(document["outputs"])), ("bit_exact", 1))
        elements = [value.size for key, value in ALL.items() if key[:2] == (task, 1)]
        check(f"replay {name} task {task}: elements", [o["elements"] for o in document["outputs"]], elements)


def test_args(directory):
    dump = reader.open(directory)
    check(f"{directory.name}: arguments of the run", [(a["name"], a["type"], a["shape"]) for a in dump.arguments],
          [("a", "tensor", [4, 8]), ("b", "tensor", [8, 4]), ("marks", "tensor", [16]), ("counts", "tensor", [16]),
           ("c", "tensor", [4, 8]), ("weight", "scalar", []), ("deed", "scalar", [])])
    check(f"{directory.name}: weight", [a["value"] for a in dump.arguments[5:]], [-5, 0])
    check(f"{directory.name}: dispatches", [(d["task_seq"], d["kernel"], d["core_type"], len(d["args"]))
                                            for d in dump.dispatches],
          [(0, "scale", "aiv", 3), (1, "scale", "aiv", 3), (2, "add", "aic", 3), (3, "tally", "aiv", 4)])


def test_old_dumps(root):
    found = {path.name for path in OLD.iterdir() if path.is_dir()}
    check("fixtures of 0.1.0", found, {*HELD, "scene"})
    before = tree(OLD)
    for name in HELD:
        test_view(name, OLD / name)
        test_python(name, OLD / name)
        test_verify(name, OLD / name)
    for name in WHOLE:
        test_check_and_replay(name, OLD / name)
    for name in ("a2a3sim_tensormap", "a5sim_aicpu"):
        test_args(OLD / name)
    crashed = run_json("replay", OLD / "crashed", "--task", 3, "--trust", code=3)
    check("replay crashed", (crashed["verdict"], crashed["fault"]["signal"], crashed["fault"]["address"]),
          ("fault", 11, "0x0000000000000008"))
    for a, b in (("a2a3sim_tensormap", "a5sim_tensormap"), ("a5sim_host", "a5sim_aicpu"), ("killed", "recovered")):
        count = len(HELD[a][0])
        document = run_json("diff", OLD / a, OLD / b)
        check(f"diff {a} {b}", [document[key] for key in ("compared", "equal", "different", "only_a", "only_b")],
              [count, count, 0, 0, 0])
    document = run_json("diff", OLD / "a5sim_aicpu", OLD / "crashed", code=1)
    check("diff with the crashed one", [(r["task_seq"], r["arg_index"], r["verdict"], r["first_bad_a"], r["first_bad_b"])
                                        for r in document["records"]],
          [(3, 3, "different", 0, 1), (3, 1, "not_compared", None, None)])
    check("audit", run_json("audit", OLD / "a2a3sim_tensormap")["findings"], [])
    result = glassbox("export", OLD / "a5sim_aicpu", "--format", "npz", "-o", root / "old.npz")
    check("export", (result.returncode, result.stderr), (0, ""))
    with np.load(root / "old.npz") as arrays:
        check("exported", [arrays[name].tolist() for name in arrays], [value.tolist() for value in ALL.values()])
    check("old dumps are as they were", tree(OLD), before)


def test_old_recover(root):
    copy = root / "killed"
    shutil.copytree(OLD / "killed", copy)
    result = glassbox("recover", copy)
    check("recover killed", (result.returncode, result.stderr), (0, ""))
    check_in("recover killed", f"recovered {copy}: 13 entries of 4 tasks, 1.0 KiB of payload", result.stdout)
    result = glassbox("verify", copy)
    check("verify what was recovered", (result.returncode, result.stdout[:5]), (0, "good:"))
    document = run_json("view", copy)
    check("what was recovered", (document["complete"], document["status"]), (False, KILLED))
    check("values of what was recovered", run_json("view", OLD / "killed")["tensors"], document["tensors"])
    check("as 0.1.0 recovered it", document["tensors"], run_json("view", OLD / "recovered")["tensors"])
    check("its journal goes on", (copy / "tensor_dump" / "tensor_dump.rec").read_bytes().startswith(
        (OLD / "killed" / "tensor_dump" / "tensor_dump.rec").read_bytes()), True)
    check("run.json", json.loads((copy / "run.json").read_text())["result"]["status"], "killed")
    result = glassbox("recover", copy)
    check("once more", (result.returncode, result.stdout.startswith("nothing to recover")), (0, True))
    before = tree(OLD / "recovered")
    result = glassbox("recover", shutil.copytree(OLD / "recovered", root / "recovered"))
    check("recovered by 0.1.0", (result.returncode, tree(root / "recovered")), (0, before))


# --- dumps of the future ---

KERNELS = [{"func_id": 7, "name": "fold", "core_type": "aiv", "signature": ["in", "out", "scalar:int32"],
            "arg_names": ["x", "y", "n"], "vectorized": True}]
TASKS = 5
UNKNOWN = (100, 127)  # types that a reader may skip


def fill(dump):
    """Every type of record, and 15 entries."""
    dump.records.append(record(RUN_ARG, arg=0, dtype=1, ndims=1, body=struct.pack("<2Qq", 1, 0x2000, 16)))
    dump.records.append(record(RUN_ARG, arg=1, dtype=9, body=struct.pack("<2Q", 0, 6)))
    for task in range(TASKS):
        values = np.arange(16, dtype=np.float32) + 100 * task
        dump.task(task, (None, 7, None), predecessors=(task - 1,) if task else ())
        dump.scalar(task, 2, "int32", 6 + task, 6 + task)
        dump.tensor(task, 0, "float32", (4, 4), values.tobytes())
        slot = struct.pack("<8BQ", 0, 1, 0, 1, 1, 0, 0, 0, 0x5000) + struct.pack("<Qqqq", 0x6000, 0, 16, 1)
        dump.records.append(record(DISPATCH, task, body=struct.pack("<Q6I2Q", 0x100 + task, 7, 4, 0, 1, 1, 1, 0, 0) + slot))
        dump.dispatch_count += 1
        dump.tensor(task, 1, "float32", (16,), (values + 0.5).tobytes(), role=1, stage=1)
        dump.execution(task, 0, 1, 4, 5, 7, func_id=7)
        dump.records.append(record(DONE, task, NONE, arg=NONE, time=9))
    dump.records.append(record(SAMPLE, 0, NONE, arg=NONE, body=struct.pack("<3Q2I", 0, 64, 4096, 0, 0)))
    dump.loss(3, 1, 1, 1, 2)
    dump.skipped(4, NONE, 0, 7)
    dump.end(is_complete=False)
    return dump


class Later(Dump):
    """A dump of a version with a longer header, more fields in every record, and new records in between."""

    header = HEADER[:12] + struct.pack("<I", 128) + b"\xff" * (128 - 16)

    def run_record(self):
        run = {"generator": "hand", "run": {**self.run, "cluster": "east"}, "dump_level": self.level, "has_args": True,
               "kernels": list(self.kernels.values()), "mode": {"fast": True},
               "run_args": [{"name": "x", "role": "input", "unit": "m"}, {"name": "n", "role": "scalar"}]}
        return with_tail(text_record(RUN, b"", json.dumps(run)), 5, 6)

    def write(self, records_per_block=16):
        for number in range(len(self.records)):
            known = [0, 0] if self.records[2 * number][0] == LOSS else []  # fields of this version
            newer = record(UNKNOWN[number % 2], 2**63 + number, 9, 9, 99, 99, 99, 0xffff, body=bytes(range(8 * (number % 4))))
            self.records[2 * number:2 * number + 1] = [newer, with_tail(self.records[2 * number], *known, 2**64 - 1, number, 3)]
        return super().write(records_per_block)

    def manifest(self):
        """With unknown members at the end of each object."""
        manifest = super().manifest()
        for entry in manifest["tensors"]:
            entry |= {"energy_nj": 17, "lanes": [1, 2]}
        for loss in manifest["losses"]:
            loss["retries"] = 3
        return {**manifest, "total_moves": 4, "moves": [{"from": 1}]}


def skipped_sentence(directory, count):
    return f"glassbox: {directory}: skipped {count} record{'' if count == 1 else 's'} of types newer than this version\n"


def without_newer(manifest):
    """The manifest without those members."""
    known = {key: value for key, value in manifest.items() if key not in ("total_moves", "moves")}
    known["tensors"] = [{key: value for key, value in entry.items() if key not in ("energy_nj", "lanes")}
                        for entry in manifest["tensors"]]
    known["losses"] = [{key: value for key, value in loss.items() if key != "retries"} for loss in manifest["losses"]]
    return known


def test_future(root):
    dump = fill(Later(root / "future", KERNELS))
    newer = len(dump.records)
    dump.write()
    sentence = skipped_sentence(dump.directory, newer)
    (dump.inner / "tensor_dump.json").write_text(json.dumps(dump.manifest()))
    expected = without_newer(dump.manifest())
    check("the future: view", run_json("view", dump.directory, stderr=sentence), expected)
    shown = run_json("view", dump.directory, "--stats", "--task", "3", stderr=sentence)["tensors"]
    check("the future: computed", [entry["stats"]["max"] for entry in shown if "stats" in entry], [315.0, 315.5])
    opened = reader.open(dump.directory)
    check("the future: Python", (opened.to_dict(), opened.newer_records), (expected, newer))
    check("the future: predecessors", [task.predecessors for task in opened.tasks], [(), (0,), (1,), (2,), (3,)])
    check("the future: values", [entry.array().tolist() for entry in opened.filter(arg="y")],
          [(np.arange(16) + 100 * task + 0.5).tolist() for task in range(TASKS)])
    slots = [(dispatch["task_seq"], *dispatch["args"]) for dispatch in opened.dispatches]
    check("the future: dispatches", [(task, slot["shape"], slot["data_ptr"]) for task, slot in slots],
          [(task, [16], "0x0000000000006000") for task in range(TASKS)])
    check("the future: executions", [(e["task_seq"], e["core_id"], e["start_ns"], e["end_ns"]) for e in opened.executions],
          [(task, 4, 5, 7) for task in range(TASKS)])
    check("the future: arguments", [(a["name"], a["shape"], a.get("value")) for a in opened.arguments],
          [("x", [16], None), ("n", [], 6)])
    plain = fill(Dump(root / "plain", KERNELS)).write()
    document = run_json("diff", plain.directory, dump.directory, stderr=sentence)
    check("the future: diff", [document[key] for key in ("compared", "equal", "only_a", "only_b")], [15, 15, 0, 0])
    result = glassbox("export", dump.directory, "--format", "npz", "-o", root / "future.npz")
    check("the future: export", (result.returncode, result.stderr), (0, sentence))
    with np.load(root / "future.npz") as arrays:
        check("the future: exported", sorted(arrays[name].sum() for name in arrays),
              sorted(float(entry.array().sum()) for entry in opened))
    check("the future: audit", glassbox("audit", dump.directory).stderr, sentence)
    before = tree(dump.directory)
    result = glassbox("recover", dump.directory)
    check("the future: recover", (result.returncode, result.stderr), (0, ""))
    check_in("the future: recover", f"left {newer} records of types newer than this version unchanged", result.stdout)
    after = tree(dump.directory)
    check("the future: what was there", {name: after.get(name) for name in before}, before)
    check("the future: what recover added", set(after) - set(before), {f"tensor_dump/{name}_dump.json" for name in ("args",
          "kernel_args")})
    document = run_json("verify", dump.directory)
    check("the future: verify", (document["bad"], document["newer_records"], document["records"]), ([], newer, 15))


def test_one_unknown(root):
    """One record of an unknown type among fifteen entries in a block: all of them are read, and none is lost."""
    dump = Dump(root / "one", KERNELS)
    for task in range(TASKS):
        values = np.arange(16, dtype=np.float32) + 100 * task
        dump.task(task, (None, 7, None))
        dump.scalar(task, 2, "int32", 6 + task, 6 + task)
        dump.tensor(task, 0, "float32", (4, 4), values.tobytes())
        dump.tensor(task, 1, "float32", (16,), (values + 0.5).tobytes(), role=1, stage=1)
    dump.records[7:7] = [record(UNKNOWN[0], 3, body=b"12345678")]
    dump.records += [record(DONE, task, NONE, arg=NONE) for task in range(TASKS)]
    dump.end()
    dump.write(1000)
    (dump.inner / "tensor_dump.json").write_text(json.dumps(dump.manifest()))
    before = tree(dump.directory)
    sentence = skipped_sentence(dump.directory, 1)
    check("one unknown record: view", run_json("view", dump.directory, stderr=sentence), dump.manifest())
    result = glassbox("verify", dump.directory)
    check("one unknown record: verify", (result.returncode, result.stdout[:16], result.stderr), (0, "good: 15 entries", ""))
    check_in("one unknown record: verify", "not checked: 1 record of types newer than this version\n", result.stdout)
    result = glassbox("recover", dump.directory)
    check("one unknown record: recover", (result.returncode, result.stderr), (0, ""))
    check_in("one unknown record: recover", "nothing to recover", result.stdout)
    check("one unknown record: recover changes nothing", tree(dump.directory), before)
    check("one unknown record: Python", reader.open(dump.directory).newer_records, 1)

    # Killed: the last block is torn off. The journal keeps its records, and the manifest loses nothing.
    path = dump.inner / "tensor_dump.rec"
    path.write_bytes(dump.journal() + b"torn")
    result = glassbox("recover", dump.directory)
    check("with a torn end: recover", (result.returncode, result.stderr), (0, ""))
    check_in("with a torn end: recover", "left 1 record of types newer than this version unchanged", result.stdout)
    after = tree(dump.directory)
    check("with a torn end: what is there", {key: after.get(key) for key in before}, before)
    check("with a torn end: what was cut off", (dump.inner / "tensor_dump.rec.broken").read_bytes(), b"torn")


def refused_by_all(root, dump, part, kind, *more_commands):
    """Every command refuses it with one sentence, and recover leaves every byte as it is."""
    before = tree(dump.directory)
    for command, *more in (*more_commands, ["view"], ["view", "--json"], ["audit"], ["recover"],
                           ["check", "--scene", OLD / "scene"],
                           ["replay", "--task", "0", "--trust"], ["diff", dump.directory],
                           ["export", "--format", "npz", "-o", root / "refused.npz"]):
        result = glassbox(command, dump.directory, *more)
        check(f"{kind}: {command}", (result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
        check_in(f"{kind}: {command}", part, result.stderr)
        check(f"{kind}: {command} advises recover", "glassbox recover /" in result.stderr, False)
    check(f"{kind}: every byte is as it was", tree(dump.directory), before)
    check(f"{kind}: nothing was exported", (root / "refused.npz").exists(), False)
    try:
        reader.open(dump.directory)
        check(f"{kind}: Python", "opened", "refused")
    except reader.DumpError as error:
        check(f"{kind}: Python: {error}", ("newer" in str(error), "glassbox recover" in str(error)), (True, False))


def test_refused(root):
    for number, kind in enumerate((128, 128 + 7, 128 + 100, 255)):
        dump = fill(Later(root / f"must{kind}", KERNELS))
        dump.records[8 + 5 * number:8 + 5 * number] = [record(kind, 1, body=bytes(16))]
        dump.write()
        (dump.inner / "tensor_dump.json").write_text(json.dumps(dump.manifest()))
        refused_by_all(root, dump, "needs a newer glassbox", f"type {kind}", ["verify"])
    dump = fill(Later(root / "version3", KERNELS))
    dump.header = dump.header[:8] + struct.pack("<I", 3) + dump.header[12:]
    dump.write()
    (dump.inner / "tensor_dump.json").write_text(json.dumps(dump.manifest()))
    refused_by_all(root, dump, "version 3", "version 3", ["verify"])
    for kind in (128 + 16, 128 + 63):  # int4 is never announced, and there is no dtype 63
        dump = fill(Later(root / f"dtype-type{kind}", KERNELS))
        dump.records[4:4] = [record(kind)]
        dump.write()
        (dump.inner / "tensor_dump.json").write_text(json.dumps(dump.manifest()))
        refused_by_all(root, dump, "needs a newer glassbox", f"type {kind}", ["verify"])
    dump = Dump(root / "dtype60", KERNELS)  # not announced, and in a block with a valid checksum
    dump.task(0, (None, 7, None))
    dump.records.append(record(6, dtype=60, body=bytes(8)))
    dump.end()
    dump.write()
    refused_by_all(root, dump, "its dtype is unknown; the checksum of the block matches", "dtype 60")
    document = run_json("verify", dump.directory, code=1)
    check("dtype 60: verify", (document["can_be_recovered"], "its dtype is unknown" in document["bad"][0]["what"]), (False, True))


def test_poorer(root):
    """A journal with damage in the middle and an intact manifest: the manifest stays, and can be read."""
    dump = fill(Dump(root / "poorer", KERNELS)).write(6)
    text = json.dumps(dump.manifest())
    (dump.inner / "tensor_dump.json").write_text(text)
    journal = bytearray(dump.journal())
    journal[len(HEADER) + sum(map(len, dump.blocks[:2])) + 40] ^= 1
    path = dump.inner / "tensor_dump.rec"
    path.write_bytes(journal)
    result = glassbox("recover", dump.directory)
    check("damage amid: recover", (result.returncode, result.stderr), (1, ""))
    check_in("damage amid: recover", "kept tensor_dump.json: it has 15 entries, more than the journal", result.stdout)
    check("damage amid: the manifest", (dump.inner / "tensor_dump.json").read_text(), text)
    kept = path.read_bytes()
    cut = (dump.inner / "tensor_dump.rec.broken").read_bytes()
    check("damage amid: every byte of the journal", bytes(journal).startswith(kept[:len(journal) - len(cut)])
          and bytes(journal).endswith(cut), True)
    path.rename(root / "moved.rec")
    check("damage amid: read from the manifest", [key_of(entry) for entry in run_json("view", dump.directory)["tensors"]],
          [key_of(entry) for entry in dump.manifest()["tensors"]])


def main():
    with tempfile.TemporaryDirectory(prefix="glassbox-format-") as directory:
        root = pathlib.Path(directory)
        test_old_dumps(root)
        test_old_recover(root)
        test_future(root)
        test_one_unknown(root)
        test_refused(root)
        test_poorer(root)
    return report()


if __name__ == "__main__":
    sys.exit(main())
