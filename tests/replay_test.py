#!/usr/bin/python3
"""glassbox replay: every task of every example bit for bit, and planted bugs are named.

usage: replay_test.py GLASSBOX EXAMPLES

Results are compared with what numpy computes from the payload in the dump.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import sys

import numpy as np

from command_support import PLATFORMS, RUNTIMES, check, check_in, glassbox, on_terminal
from outcome_support import NO_KERNEL, End
from replay_support import (BODIES, ELEMENTS, EXAMPLES, KERNEL, ORCHESTRATION, entries_of, floats, make_scene, manifest,
                            patched, record, refuse, replay, replay_text, root, run_parts, shared, words, x_of)

SCENES = ["bgemm", "broken_softmax", "dump_tensor_example", "mix_spmd", "paged_attention", "vector_example"]


# --- examples ---


def check_example(scene, platform, runtime):
    name = f"{scene}-{platform}-{runtime}"
    dump = record(EXAMPLES / scene, name, "--platform", platform, "--runtime", runtime)
    document, listed = replay(dump, "all"), manifest(dump)
    outputs = {}
    for entry in listed["tensors"]:
        if entry["stage"] == "after_completion":
            outputs.setdefault(entry["task_seq"], []).append((entry["arg_index"], entry["numel"], True, 0))
    check(f"{name}: tasks", [task["task_seq"] for task in document["tasks"]], sorted(outputs))
    check(f"{name}: verdicts", {task["verdict"] for task in document["tasks"]}, {"bit_exact"})
    check(f"{name}: counts", document["verdicts"]["bit_exact"], len(outputs))
    for task in document["tasks"]:
        got = [(o["arg_index"], o["elements"], o["bit_exact"], o["not_written"]) for o in task["outputs"]]
        check(f"{name}: task {task['task_seq']}: outputs", got, outputs[task["task_seq"]])
        check(f"{name}: task {task['task_seq']}: strays", (task["stray_bytes"], task["is_relocated"], task["fault"]), (0, False, None))
        kernels = next(e["kernel"] for e in listed["tensors"] if e["task_seq"] == task["task_seq"])
        check(f"{name}: task {task['task_seq']}: kernels", task["kernel"], "+".join(kernels))
    shutil.rmtree(dump)


def check_examples():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check_example, *each) for each in itertools.product(SCENES, PLATFORMS, RUNTIMES)]
        for job in jobs:
            job.result()


# --- payload that is not what the kernel gives ---


def check_flipped():
    """One flipped bit of an output, an output of zeros, a changed input: each is found at its place."""
    dump = record(EXAMPLES / "vector_example", "flip", "--no-dedup")
    listed = manifest(dump)
    out = entries_of(listed, 0, "after_completion")[2]
    x, y = (floats(dump, entries_of(listed, 0, "before_dispatch")[i]) for i in (0, 1))
    right = floats(dump, out)
    check("vector_example: what add left", (x + y).tobytes(), right.tobytes())
    bits = bytearray(right.tobytes())
    bits[4 * 1000 + 2] ^= 0x10
    copy = patched(dump, "flipped", out, bits)
    (output,) = replay(copy, 0, code=1)["outputs"]
    wrong = np.frombuffer(bytes(bits), np.float32)[1000]
    check("flipped: output", [output[key] for key in ("bit_exact", "mismatches", "not_written", "first_bad")],
          [False, 1, 0, [1000 // 128, 1000 % 128]])
    check("flipped: values", (np.float32(output["dump"]), np.float32(output["replay"])), (wrong, right[1000]))
    check("flipped: bits", [int(output[key], 16) for key in ("dump_bits", "replay_bits")],
          [int(np.float32(v).view(np.uint32)) for v in (wrong, right[1000])])
    check("flipped: max_abs", output["max_abs"], abs(float(wrong) - float(right[1000])))
    text = replay_text(copy, 0, code=1)
    check("flipped: first line", text.split("\n")[0], "task 0, kernel add: differs: 1 of 16,384 elements does not match "
          "the dump, the first in argument 2 sum at [7, 104]")
    check("flipped: all tasks", glassbox("replay", copy, "--task", "all").stdout.split("\n")[0], "5 tasks: 4 bit exact, 1 differs; the first that differs is task 0")
    (output,) = replay(patched(dump, "zeros", out, bytes(out["bin_size"])), 0, code=1)["outputs"]
    check("zeros: mismatches", output["mismatches"], int((right.view(np.uint32) != 0).sum()))
    changed = x.copy()
    changed[5] += 1
    (output,) = replay(patched(dump, "input", entries_of(listed, 0, "before_dispatch")[0], changed.tobytes()), 0, code=1)["outputs"]
    check("input changed: where", (output["first_bad"], output["mismatches"]), ([0, 5], 1))
    check("input changed: what comes out", np.float32(output["replay"]), changed[5] + y[5])
    nan = right.copy()
    nan[3] = np.nan
    nan.view(np.uint32)[3] |= 0x1234
    (output,) = replay(patched(dump, "nan", out, nan.tobytes()), 0, code=1)["outputs"]
    check("nan: first", (output["first_bad"], output["dump"], output["max_abs"]), ([0, 3], "nan", "inf"))


# --- planted kernels ---


def check_partly(dump, task):
    document = replay(dump, task, code=1)
    check("half: the result has what was there before", [f["kind"] for f in document["findings"]], ["unwritten_read"])
    (output,) = document["outputs"]
    check("half: output", [output[key] for key in ("bit_exact", "mismatches", "not_written", "unstable")], [False, 0, ELEMENTS // 2, 0])
    check("half: verdict", document["verdict"], "equal_where_written")
    text = replay_text(dump, task, code=1)
    check("half: first line", text.split("\n")[0], "task 1, kernel half: equal where written: 32 elements match the dump; "
          "the kernel does not write the other 32; 1 finding")
    check_in("half", "not compared: 32 elements that the kernel does not write; there the dump holds what was in memory before\n", text)
    x, y = words(dump, manifest(dump), task)
    y = y.copy()
    y[5], y[6] = 1e9, 1e9
    (output,) = replay(patched(dump, "half-wrong", entries_of(manifest(dump), task, "after_completion")[1], y.tobytes()), task, code=1)["outputs"]
    check("half: only what it writes is compared", (output["mismatches"], output["first_bad"], np.float32(output["replay"])), (1, [6], 3 * x[6]))


def check_planted():
    names = ["twice", "half", "nothing", "adds", "counts", "strays", "flaky"]
    dump = record(make_scene("planted", names), "planted", "--no-dedup")
    listed = manifest(dump)
    x, y = words(dump, listed, 0)
    check("twice: what it left", y.tobytes(), (2 * x).tobytes())
    text = replay_text(dump, 0)
    check("twice: first line", text.split("\n")[0],
          "task 0, kernel twice: bit exact: the replay matches the dump (1 output, 64 elements)")
    check_partly(dump, 1)
    document = replay(dump, 2, code=1)
    check("nothing: verdict", (document["verdict"], document["outputs"][0]["not_written"], document["outputs"][0]["bit_exact"]),
          ("nothing_written", ELEMENTS, False))
    document = replay(dump, 3, code=1)
    check("adds: output", (document["verdict"], document["outputs"][0]["unstable"]), ("differs", ELEMENTS))
    check_in("adds", f"finding: task 3, kernel adds, computes argument 1 y[0], and {ELEMENTS - 1} more elements from bytes that it was not given: "
             "it reads outside its inputs, an output before all of it is written, or an argument that it does not have\n", replay_text(dump, 3, code=1))
    check_counts(dump)
    document = replay(dump, 5, code=1)
    check("strays", (document["verdict"], document["stray_argument"]), ("bit_exact", 0))
    address = int(entries_of(listed, 5, "before_dispatch")[0]["buffer_addr"], 16)
    check("strays: the bytes that differ", (int(document["stray_address"], 16) // 4, document["stray_bytes"]),
          ((address + 12) // 4, changed_bytes(x_of(dump, listed, 5)[3], 77.0)))
    check_in("strays", f" outside its outputs, the first at {hex(int(document['stray_address'], 16))}, in its own input, argument 0 x[3]\n",
             replay_text(dump, 5, code=1))
    check("by id", replay(dump, entries_of(listed, 5, "before_dispatch")[0]["task_id"], code=1)["task_seq"], 5)
    check_in("no such id", "the dump has no task with this id", refuse(dump, "0x12345"))
    check_flaky(dump)
    check_narrow(dump)
    refuse(dump, 7)
    refuse(dump, "9..12")
    check("range", [t["task_seq"] for t in replay(dump, "0..1", code=1)["tasks"]], [0, 1])
    check_in("dispatch", "--dispatch 1: the last dispatch of this task is 0", refuse(dump, 0, "--dispatch", 1))


def check_flaky(dump):
    """It crashes when it is called for the sixth time in a process."""
    check("flaky: twice", replay(dump, 6, "--repeat", 2)["verdict"], "bit_exact")
    document = replay(dump, 6, "--repeat", 7, code=3)
    check("flaky: which run", (document["verdict"], document["fault"]["run"], document["fault"]["address"]), ("fault", 6, "0x0000000000000010"))
    check_in("flaky: which run", "SIGSEGV at 0x10, in run 6; in the recorded run it completed; 1 finding\n", replay_text(dump, 6, "--repeat", 7, code=3))


def check_narrow(dump):
    """A table fits the terminal, and cut cells are marked."""
    head, *lines = on_terminal(40, "replay", str(dump), "--task", "0..5", NO_COLOR="1")[0].rstrip().split("\n")
    check("narrow: first line", head.strip(), "6 tasks: 3 bit exact, 1 equal where written, 1 differs, 1 writes nothing; 5 with findings, the first is task 1; "
          "the first that differs is task 3")
    lines = lines[next(i for i, line in enumerate(lines) if line.split()[:1] == ["TASK"]):]
    check("narrow: widths", [line for line in lines if len(line.rstrip()) > 40], [])
    table, rest = lines[:7], " ".join(lines[7:])
    check("narrow: rows", [line.split()[:2] for line in table], [["TASK", "KERNEL"], *([str(i), name] for i, name in enumerate(["twice", "half", "nothing", "adds", "counts", "strays"]))])
    check("narrow: verdicts", [line.split()[2] for line in table], ["VERDICT", "bit", "equal", "writes", "differs", "bit", "bit"])
    (wide,) = [line for line in replay_text(dump, "0..5", code=1).split("\n") if line.startswith("TASK")]
    hidden = [word for word in ("OUTPUTS", "ELEMENTS", "MISMATCHES", "NOT WRITTEN", "FINDINGS", "TIME") if word in wide and word not in table[0]]
    check("narrow: what has no room", rest[:13 + len(", ".join(hidden))], "no room for: " + ", ".join(hidden))


def check_unchanged():
    """An output still holds its known earlier bytes: the kernel may not have written it."""
    both = (ORCHESTRATION % 2).replace("tensors[2 * i]", "tensors[2 * i + 1]")
    bodies = {"left": BODIES["nothing"], "some": "(void)x; for (int i = 0; i < n; i += 2) y[i] = (float)i;"}
    dump = record(make_scene("unchanged", list(bodies), bodies, shared("both.c", both)), "unchanged", "--no-dedup")
    for task, changed in enumerate((0, ELEMENTS // 2)):
        x, y = words(dump, manifest(dump), task)
        check(f"unchanged {task}: the run", int((x.view(np.uint32) != y.view(np.uint32)).sum()), changed)
        (output,) = replay(dump, task)["outputs"]
        check(f"unchanged {task}", [output[key] for key in ("bit_exact", "mismatches", "is_unchanged")], [True, 0, changed == 0])
    check("unchanged: first line", replay_text(dump, 0).split("\n")[0], "task 0, kernel left: bit exact: the replay matches the dump "
          "(1 output, 64 elements); 1 output unchanged by the call")


def check_rounding():
    """Subnormal numbers survive, whatever a kernel is linked with or leaves in the control register."""
    tiny = "const volatile float factor = 1e-40f;\n    for (int i = 0; i < n; ++i)\n        y[i] = x[i] * factor;\n    "
    flush = "__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);" if os.uname().machine == "x86_64" else ""
    for name, bodies in (("rounding", {"fast": tiny, "slow": tiny}), ("leaves", {"leaves": tiny + flush})):
        dump = record(make_scene(name, list(bodies), bodies, fast={"compile_flags": "-Ofast"}), name, "--no-dedup")
        for task in range(len(bodies)):
            x, y = words(dump, manifest(dump), task)
            check(f"{name} {task}: the run", y.tobytes(), (x * np.float32(1e-40)).tobytes())
        check(f"{name}: all", {t["verdict"] for t in replay(dump, "all")["tasks"]}, {"bit_exact"})
    check("leaves: again", replay(dump, 0, "--repeat", 3)["repeat"]["different"], 0)


def check_causes():
    """A kernel that reads what no dump has differs; possible reasons are listed, including a guessed core."""
    scene = make_scene("sizes", ["sizes"])
    for options, has_core_ids in (((), False), (("--dump-args",), True)):
        dump = record(scene, f"sizes{len(options)}", "--dump-tensor", *options)
        x, y = words(dump, manifest(dump), 0)
        check("sizes: the run", y.tobytes(), (x + np.float32(4 * ELEMENTS)).tobytes())
        document = replay(dump, 0, code=1)
        check("sizes", [document["outputs"][0]["mismatches"], document["outputs"][0]["unstable"], document["has_core_ids"]], [ELEMENTS, 0, has_core_ids])
        text = replay_text(dump, 0, code=1)
        check_in("sizes", "buffer_bytes of a tensor (0 here)", text)
        check("sizes: core_id", "core_id (a guess, because the run was without --dump-args)" in text, not has_core_ids)


def changed_bytes(old, new):
    return sum(a != b for a, b in zip(np.float32(old).tobytes(), np.float32(new).tobytes()))


def check_counts(dump):
    """A static variable: the first call in a process matches the recorded one, later calls do not."""
    document = replay(dump, 4, code=1)
    check("counts: once", (document["verdict"], [f["kind"] for f in document["findings"]]), ("bit_exact", ["not_deterministic"]))
    document = replay(dump, 4, "--repeat", 5, code=1)
    check("counts: repeated", [document["verdict"], *(document["repeat"][key] for key in ("runs", "different"))], ["bit_exact", 5, 4])
    text = replay_text(dump, 4, "--repeat", 5, code=1)
    check_in("counts: first line", "; in 4 of 5 runs it left other bits than in the first", text.split("\n")[0])
    check_in("counts", "; 4 left other bits than the first\n", text)
    check_in("counts: of several", "; the first that is not the same in all runs is task 4\n", replay_text(dump, "4..5", "--repeat", 3, code=1))
    document = replay(dump, 0, "--repeat", 4)
    times = document["repeat"]
    check("twice: repeated", (times["runs"], times["different"], document["ns_per_call"]), (4, 0, times["median_ns"]))
    check("twice: order of times", times["min_ns"] <= times["median_ns"] <= times["max_ns"], True)
    check_in("twice", "; all left the same bits\n", replay_text(dump, 0, "--repeat", 4))


def check_faults():
    for kernel, fault, options in (("crashes", "SIGSEGV at 0x10", ()), ("hangs", "did not return within 1 s", ("--timeout", 1))):
        dump = record(make_scene(kernel, ["twice", kernel], **{kernel: {"reference": "reference/twice.c"}}), kernel, *(("--timeout", "4") if kernel == "hangs" else ()), "--dump-tensor", code=3)
        text = replay_text(dump, 1, *options, code=3)
        check_in(kernel, f"task 1, kernel {kernel}: kernel {kernel} ", text.split("\n")[0])
        check_in(kernel, fault, text.split("\n")[0])
        check_in(kernel, "; as in the recorded run: ", text.split("\n")[0])
        check(f"{kernel}: the other", replay(dump, 0)["verdict"], "bit_exact")
        fixed = root / "fixed.c"
        fixed.write_text(KERNEL % BODIES["twice"])
        document = replay(dump, 1, "--kernel", fixed)
        check(f"{kernel}: fixed", [document[key] for key in ("judgement", "wrong", "did_complete")], ["fixed", 0, False])
        document = replay(dump, 1, "--kernel", root / "shared" / "half.c", code=1)
        check(f"{kernel}: half of it is written, and wrong", [document[key] for key in ("judgement", "wrong")], ["still_wrong", ELEMENTS])
    check_crash_json()
    check_calmed()
    check_picky()
    dump = root / "planted"
    for body in ("crashes", "ends"):
        other = root / f"{body}.c"
        other.write_text(KERNEL % BODIES[body])
        check_in(f"--kernel {body}", "; in the recorded run the old kernel completed", replay_text(dump, 0, "--kernel", other, code=3))


def check_crash_json():
    """The JSON of a crash; crashes of other tasks are not confused with it, and other tasks still run."""
    dump = root / "crashes"
    document = replay(dump, 1, code=3)
    check("crashes: fault", [document["fault"][key] for key in ("is_hang", "dispatch", "as_in_the_run", "address")], [False, 0, True, "0x0000000000000010"])
    check("crashes: outputs", document["outputs"], [])
    document = replay(dump, "all", code=3)
    check("crashes: all", [task["verdict"] for task in document["tasks"]], ["bit_exact", "fault"])
    check_outcomes(dump)


def task_id_of(dump, task):
    return next(int(entry["task_id"], 16) for entry in manifest(dump)["tensors"] if entry["task_seq"] == task)


def check_outcomes(dump):
    """The journal says in numbers how the run ended; these decide, whatever the sentence says."""
    task_id = task_id_of(dump, 1)
    outcome = End(dump).outcome()
    core = outcome.pop("core_id")
    check("crashes: core", core < 24, True)
    check("crashes: outcome", outcome, {
        "ending": 3, "code": 9, "fault": 1, "signal": 11, "task_id": task_id, "func_id": 1, "block_idx": 0, "block_num": 1,
        "address": 16, "address_kind": 1, "zero": 0})
    check("crashes: run.json", json.loads((dump / "run.json").read_text())["result"]["code"], "device fault")
    outcome = End(root / "hangs").outcome()
    check("hangs: outcome", [outcome[name] for name in ("ending", "code", "fault", "signal", "task_id", "func_id", "address_kind")],
          [3, 10, 2, 0, task_id_of(root / "hangs", 1), 1, 0])
    check("planted: outcome", End(root / "planted").outcome(), {
        "ending": 1, "code": 0, "fault": 0, "signal": 0, "task_id": 0, "func_id": NO_KERNEL, "core_id": 0, "block_idx": 0,
        "block_num": 0, "address": 0, "address_kind": 0, "zero": 0})
    check("planted: run.json", json.loads((root / "planted" / "run.json").read_text())["result"]["code"], None)
    check_lost_chips()
    outcome = End(dump).outcome()
    for name, changed, as_in_the_run in (
            ("another task", {**outcome, "task_id": task_id + 1}, False), ("no kernel", {**outcome, "func_id": NO_KERNEL}, False),
            ("an older version", None, None), ("a newer version", {**outcome, "ending": 99, "fault": 99, "code": 99}, True)):
        copy = root / f"crashes, {name}"
        shutil.copytree(dump, copy)
        End(copy).write(changed)
        check(f"crashes, {name}: outcome", End(copy).outcome(), changed)
        check(f"crashes, {name}: JSON", replay(copy, 1, code=3)["fault"]["as_in_the_run"], as_in_the_run)
        check_end(copy, name, as_in_the_run)
        check(f"crashes, {name}: verify", glassbox("verify", copy).returncode, 0)
    (copy / "tensor_dump" / "tensor_dump.rec").unlink()
    check_end(copy, "only the manifest", None)


def check_lost_chips():
    """The chip's process is gone: its memory shows what it ran."""
    bodies = {"exits": BODIES["ends"], "killed": "(void)x; (void)y; (void)n; raise(9);"}
    for kernel, signal in (("exits", 0), ("killed", 9)):
        scene = make_scene(f"{kernel} chip", [kernel], {kernel: bodies[kernel]})
        if signal:
            source = scene / f"{kernel}.c"
            source.write_text("#include <signal.h>\n" + source.read_text())
        dump = record(scene, f"{kernel} chip", code=3)
        outcome = End(dump).outcome()
        check(f"{kernel}: outcome", [outcome[name] for name in ("ending", "code", "fault", "signal", "task_id", "func_id", "block_idx", "block_num")],
              [3, 11, 0, signal, 0, 0, 0, 1])
        check(f"{kernel}: run.json", json.loads((dump / "run.json").read_text())["result"]["code"], "device lost")


def check_end(dump, name, as_in_the_run):
    text = replay_text(dump, 1, code=3).split("\n")[0]
    check_in(f"crashes, {name}", "; as in the recorded run: " if as_in_the_run else "; in the recorded run it did not complete: ", text)
    check(f"crashes, {name}: what is not known", text.endswith(" (the dump does not record whether that was this task)"), as_in_the_run is None)


def check_calmed():
    """A crash that does not happen again."""
    flag = root / "crash-now"
    flag.touch()
    body = f'int *volatile bad = (int *)16;\n    if (access("{flag}", F_OK) == 0)\n        *bad = n;\n    y[0] = x[0];'
    dump = record(make_scene("calmed", ["twice"], {"twice": body}), "calmed", code=3)
    check_in("calmed: with it", "SIGSEGV at 0x10", replay_text(dump, 0, code=3))
    flag.unlink()
    text = replay_text(dump, 0, code=1)
    check_in("calmed: without it", "task 0, kernel twice: returned this time, not compared: it did not complete in the recorded run", text)
    check("calmed: output", [[o[key] for key in ("is_compared", "bit_exact", "mismatches", "max_abs")] for o in replay(dump, 0, code=1)["outputs"]],
          [[False, False, None, None]])


def check_picky():
    """A crash that comes with one of the two patterns only: their signs differ, or the other is zero."""
    bodies = {sign: f"if (((volatile float *)y)[1] {sign} 0) *(int *volatile){{(int *)16}} = 1; " + BODIES["half"] for sign in ("<=", ">=")}
    dumps = {sign: record(make_scene(f"picky{ord(sign[0])}", ["twice"], {"twice": body}), f"picky{ord(sign[0])}")
             for sign, body in bodies.items()}
    faults = {sign: replay(dump, 0, code=3)["fault"] for sign, dump in dumps.items()}
    check("picky: with the other only", sorted(fault["with_other_poison_only"] for fault in faults.values()), [False, True])
    (sign,) = [sign for sign, fault in faults.items() if fault["with_other_poison_only"]]
    check("picky: address", faults[sign]["address"], "0x0000000000000010")
    check_in("picky", "SIGSEGV at 0x10; only with the other pattern: it depends on bytes that it was not given; ", replay_text(dumps[sign], 0, code=3))


def check_manifest_only():
    """Another tool's dump has no journal, and may have no addresses."""
    dump = root / "manifest"
    shutil.copytree(root / "flip", dump)
    (dump / "tensor_dump" / "tensor_dump.rec").unlink()
    document = replay(dump, "all")
    check("manifest only: verdicts", [(t["verdict"], t["is_relocated"]) for t in document["tasks"]], [("bit_exact", False)] * 5)
    path = dump / "tensor_dump" / "tensor_dump.json"
    listed = json.loads(path.read_text())
    for entry in listed["tensors"]:
        entry.pop("buffer_addr", None)
    path.write_text(json.dumps(listed))
    document = replay(dump, "all")
    check("no addresses: verdicts", [(t["verdict"], t["is_relocated"]) for t in document["tasks"]], [("bit_exact", True)] * 5)
    (dump / "run.json").unlink()
    check_in("no run.json", "no run.json with copies of its kernels", refuse(dump, 0))
    add = EXAMPLES / "vector_example" / "kernels" / "add.c"
    check("no run.json, a kernel", [o["mismatches"] for o in replay(dump, 0, "--kernel", add)["outputs"]], [0])
    fixture = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler" / "vector_example"
    check_in("unknown blocks", "does not record which cores and how many blocks ran it", refuse(fixture, 0, "--kernel", add))


# --- what is missing ---


def check_missing():
    scene = EXAMPLES / "vector_example"
    for name, options, parts in (
            ("stats", ("--dump-tensor=stats",), ["0 (x)", "1 (y)", "has no payload at level stats"]),
            ("filtered", ("--dump-tensor", "--dump-filter", "kernel=add,arg=0"), ["1 (y)", "was excluded by the filters"]),
            ("cut", ("--dump-tensor", "--dump-max-tensor", "100"), ["0 (x)", "truncated to 96 of 65536 bytes", "--dump-tensor=full, without --dump-max-tensor"])):
        dump = record(scene, name, *options)
        text = refuse(dump, 0)
        for part in [*parts, "--dump-tensor=full"]:
            check_in(f"{name}: what is missing", part, text)
        done = glassbox("replay", dump, "--task", "all")
        head, reason = done.stdout.split("\n")[0].split("is task 0: ")
        check(f"{name}: all", (done.returncode, head), (2, "5 tasks: all not replayed; the first that is not replayed "))
        check_in(f"{name}: all, why", reason, text)
    dump = record(scene, "some", "--dump-tensor=hybrid", "--dump-filter", "task=1,role=input")
    done = glassbox("replay", dump, "--task", "1..2")
    check_in("outputs missing", "2 tasks: 1 not compared, 1 not replayed; the first that is not replayed is task 2: ", done.stdout.split("\n")[0])
    check("outputs missing: exit code", done.returncode, 2)
    check_some_missing()


def check_damaged():
    """Records of one task that contradict each other: the others are replayed."""
    copy = root / "damaged"
    shutil.copytree(root / "dispatches", copy)
    (copy / "tensor_dump" / "tensor_dump.rec").unlink()
    path = copy / "tensor_dump" / "tensor_dump.json"
    listed = json.loads(path.read_text())
    changed = next(e for e in listed["tensors"] if (e["role"], e["stage"]) == ("inout", "after_completion"))
    changed["buffer_addr"] = hex(int(changed["buffer_addr"], 16) + 512)
    path.write_text(json.dumps(listed))
    task, tasks = changed["task_seq"], sorted({e["task_seq"] for e in listed["tensors"]})
    document = replay(copy, "all", code=2)
    check("damaged: verdicts", [(t["task_seq"], t["verdict"]) for t in document["tasks"]],
          [(i, "not_replayed" if i == task else "bit_exact") for i in tasks])
    bad = document["tasks"][task]
    check("damaged: of what did not run", [bad[key] for key in ("outputs", "stray_bytes", "dispatches", "did_complete")], [[], None, None, None])
    check_in("damaged: why", bad["reason"], refuse(copy, task))
    check("damaged: first line", replay_text(copy, "all", code=2).split("\n")[0],
          f"{len(tasks)} tasks: {len(tasks) - 1} bit exact, 1 not replayed; the first that is not replayed is task {task}: {bad['reason']}")


def check_some_missing():
    """Only some outputs are in the dump: the others are not compared."""
    dump = record(EXAMPLES / "broken_softmax", "cut-output")
    (dump / "tensor_dump" / "tensor_dump.rec").unlink()
    path = dump / "tensor_dump" / "tensor_dump.json"
    listed = json.loads(path.read_text())
    entries_of(listed, 29, "after_completion")[1].update(truncated=True, bin_size=16)
    path.write_text(json.dumps(listed))
    document = replay(dump, 29)
    check("cut: outputs", [(o["is_compared"], o["bit_exact"], o["mismatches"]) for o in document["outputs"]],
          [(False, False, None), (True, True, 0), (True, True, 0)])
    check("cut: first line", replay_text(dump, 29).split("\n")[0], "task 29, kernel softmax_prepare: bit exact: the replay matches the "
          "dump (2 outputs, 16 elements); 1 output not compared, because the dump lacks it")
    check_in("cut: of several", "1 output not compared", replay_text(dump, "29..30"))


# --- dispatches ---


def check_dispatches():
    dump = record(EXAMPLES / "mix_spmd", "dispatches")
    entry = next(e for e in manifest(dump)["tensors"] if len(e["kernel"]) == 3)
    task = entry["task_seq"]
    prepare = next(i for i, subtask in enumerate(entry["subtasks"]) if subtask == "aiv0")
    document = replay(dump, task, "--dispatch", 0, "--timeout", 1, code=3)
    check("one dispatch waits for the others", document["fault"]["is_hang"], True)
    check("dispatches", (document["dispatches"], document["dispatch"], prepare), (24, 0, 1))
    refuse(dump, task, "--dispatch", 24)
    spmd = record(make_spmd(), "spmd", "--no-dedup")
    x, y = words(spmd, manifest(spmd), 0)
    check("spmd: what it left", y.tobytes(), (2 * x).tobytes())
    for block in range(4):
        (output,) = replay(spmd, 0, "--dispatch", block)["outputs"]
        check(f"spmd: block {block}", (output["mismatches"], output["not_written"]), (0, ELEMENTS - ELEMENTS // 4))
    bad = y.copy()
    bad[20] += 1  # of block 1
    copy = patched(spmd, "spmd-bad", entries_of(manifest(spmd), 0, "after_completion")[1], bad.tobytes())
    check("spmd: the block that is wrong", [replay(copy, 0, "--dispatch", block, code=block == 1)["outputs"][0]["mismatches"] for block in range(4)],
          [0, 1, 0, 0])
    other = root / "other.c"
    other.write_text((root / "scenes" / "spmd" / "twice.c").read_text().replace("2 * x[i]", "2 * x[i] + (i % 5 == 0)"))
    document = replay(spmd, 0, "--dispatch", 1, "--kernel", other, code=1)
    quarter = range(ELEMENTS // 4, ELEMENTS // 2)
    check("spmd: another kernel, one block", sorted((*e["index"], np.float32(e["new"])) for e in document["elements"]),
          [(i, 2 * x[i] + 1) for i in quarter if i % 5 == 0])
    check_damaged()


def make_spmd():
    body = {"twice": "int b = (int)gbx_local(args)->block_idx, m = n / (int)gbx_local(args)->block_num; "
                     "for (int i = b * m; i < (b + 1) * m; ++i) y[i] = 2 * x[i];"}
    return make_scene("spmd", ["twice"], body, shared("spmd.c", (ORCHESTRATION % 1).replace("gbx_aiv(i)", "gbx_spmd(gbx_aiv(i), 4)")))


# --- options ---


def check_options():
    dump, several = root / "flip", "cannot be combined with several tasks"
    for options, sentence in (
            ((), "missing --task: the task to replay; glassbox view lists tasks"),
            (("--task", "x"), '--task: unknown value "x"; expected a number such as 17, an id such as 0x11, a range such as 10..20, or all'),
            (("--task", "0x1..0x3"), '--task: unknown value "0x1..0x3"; expected '),
            (("--task", "1", "--gdb", "--save", root / "d"), "--gdb cannot be combined with --save"),
            (("--task", "1", "--save", root / "d", "--json"), "--save cannot be combined with --json"),
            (("--task", "1", "--save", root / "d", "--kernel", "a.c"), "--save cannot be combined with --kernel: it saves the kernel that ran"),
            (("--task", "all", "--gdb"), f"--gdb {several}"), (("--task", "all", "--kernel", "a.c"), f"--kernel {several}"),
            (("--task", "0..1", "--dispatch", "0"), f"--dispatch {several}"),
            (("--task", "1", "--repeat", "0"), '--repeat: "0" is not an integer from 1 to 1000000'),
            (("--task", "1", "--timeout", "0"), '--timeout: "0" is not a number of seconds from '),
            (("--task", "1", "a", "b"), 'unexpected argument "a": replay takes one dump')):
        done = glassbox("replay", dump, *options)
        check(f"options {options}", (done.returncode, done.stdout), (2, ""))
        check_in(f"options {options}", f"glassbox replay: {sentence}", done.stderr)
    check("nothing is saved", (root / "d").exists(), False)


if __name__ == "__main__":
    sys.exit(run_parts(check_examples, check_flipped, check_planted, check_unchanged, check_rounding, check_causes, check_faults,
                       check_missing, check_manifest_only, check_dispatches, check_options))
