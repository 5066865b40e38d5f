#!/usr/bin/python3
"""glassbox replay: every task of every example bit for bit, what is planted is named, and code of a dump is not run.

usage: replay_test.py GLASSBOX EXAMPLES

What a replay finds is compared with what numpy makes of the payload in the dump.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from command_support import ENVIRONMENT, PLATFORMS, RUNTIMES, check, check_in, glassbox, on_terminal, report

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
SCENES = ["bgemm", "broken_softmax", "dump_tensor_example", "mix_spmd", "paged_attention", "vector_example"]
ELEMENTS = 64

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-replay-test-"))

# What cc -E says of a source is asked for by every run, and the same for all of them: examples do not change.
PREPROCESSOR = """#!/bin/sh
case " $* " in *" -E "*) ;; *) exec {compiler} "$@" ;; esac
kept={folder}/$(echo "$*" | cksum | tr ' ' _)
[ -e $kept ] || {{ {compiler} "$@" > $kept.$$ && mv $kept.$$ $kept; }} || exit 1
exec cat $kept
"""


def with_kept_preprocessor():
    """An environment whose cc does what cc does, but preprocesses a source once."""
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
    """The document of a replay; its text begins with the same verdict."""
    done = glassbox("replay", dump, "--task", task, "--json", *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return json.loads(done.stdout) if done.stdout else {}


def replay_text(dump, task, *options, code=0, environment=ENVIRONMENT):
    done = glassbox("replay", dump, "--task", task, *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return done.stdout


def refuse(dump, task, *options, code=2, environment=ENVIRONMENT):
    """The one sentence of a replay that is not possible."""
    done = glassbox("replay", dump, "--task", task, *options, environment=environment)
    check(f"replay {dump} {task} {options}: exit code and stdout ({done.stderr})", (done.returncode, done.stdout), (code, ""))
    check(f"replay {dump} {task} {options}: one sentence: {done.stderr!r}",
          (done.stderr.startswith("glassbox replay: "), done.stderr.count("\n")), (True, 1))
    return done.stderr


# --- dumps, read by json and numpy alone ---


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
    """A copy of a dump with other bytes in the place of an entry's payload."""
    copy = root / name
    shutil.copytree(dump, copy)
    with open(copy / "tensor_dump" / "tensor_dump.bin", "r+b") as file:
        file.seek(entry["bin_offset"])
        file.write(data)
    return copy


# --- examples ---

def check_example(scene, platform, runtime):
    name = f"{scene}-{platform}-{runtime}"
    dump = record(EXAMPLES / scene, name, "--platform", platform, "--runtime", runtime)
    document, told = replay(dump, "all"), manifest(dump)
    outputs = {}
    for entry in told["tensors"]:
        if entry["stage"] == "after_completion":
            outputs.setdefault(entry["task_seq"], []).append((entry["arg_index"], entry["numel"], True, 0))
    check(f"{name}: tasks", [task["task_seq"] for task in document["tasks"]], sorted(outputs))
    check(f"{name}: verdicts", {task["verdict"] for task in document["tasks"]}, {"bit_exact"})
    check(f"{name}: counts", document["verdicts"]["bit_exact"], len(outputs))
    for task in document["tasks"]:
        got = [(o["arg_index"], o["elements"], o["bit_exact"], o["not_written"]) for o in task["outputs"]]
        check(f"{name}: task {task['task_seq']}: outputs", got, outputs[task["task_seq"]])
        check(f"{name}: task {task['task_seq']}: strays", (task["stray_bytes"], task["is_relocated"], task["fault"]), (0, False, None))
        kernels = next(e["kernel"] for e in told["tensors"] if e["task_seq"] == task["task_seq"])
        check(f"{name}: task {task['task_seq']}: kernels", task["kernel"], "+".join(kernels))
    shutil.rmtree(dump)


def check_examples():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check_example, *each) for each in itertools.product(SCENES, PLATFORMS, RUNTIMES)]
        for job in jobs:
            job.result()


# --- payload that is not what the kernel gives ---


def check_flipped():
    """One bit of an output, all of it zero, one input changed: each is seen where it is."""
    dump = record(EXAMPLES / "vector_example", "flip", "--no-dedup")
    told = manifest(dump)
    out = entries_of(told, 0, "after_completion")[2]
    x, y = (floats(dump, entries_of(told, 0, "before_dispatch")[i]) for i in (0, 1))
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
    check("flipped: first line", text.split("\n")[0], "task 0, kernel add: differs: 1 of 16,384 elements is not what the "
          "dump holds, the first in argument 2 sum at [7, 104]")
    check("flipped: all tasks", glassbox("replay", copy, "--task", "all").stdout.split("\n")[0], "5 tasks: 4 bit exact, 1 differs; the first that differs is task 0")
    (output,) = replay(patched(dump, "zeros", out, bytes(out["bin_size"])), 0, code=1)["outputs"]
    check("zeros: mismatches", output["mismatches"], int((right.view(np.uint32) != 0).sum()))
    changed = x.copy()
    changed[5] += 1
    (output,) = replay(patched(dump, "input", entries_of(told, 0, "before_dispatch")[0], changed.tobytes()), 0, code=1)["outputs"]
    check("input changed: where", (output["first_bad"], output["mismatches"]), ([0, 5], 1))
    check("input changed: what comes out", np.float32(output["replay"]), changed[5] + y[5])
    nan = right.copy()
    nan[3] = np.nan
    nan.view(np.uint32)[3] |= 0x1234
    (output,) = replay(patched(dump, "nan", out, nan.tobytes()), 0, code=1)["outputs"]
    check("nan: first", (output["first_bad"], output["dump"], output["max_abs"]), ([0, 3], "nan", "inf"))


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
    "flaky": "static int calls; for (int i = 0; i < n; ++i) y[i] = x[i]; if (++calls == 3) *(int *volatile){(int *)16} = 1;",
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
    """A source of several scenes, which is compiled once."""
    path = root / "shared" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def make_scene(name, kernels, bodies=None, orchestration=None, **more):
    """One task a kernel, each with an input x and an output y of its own."""
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


def words(dump, told, task):
    """Raw bits of what a task read and left."""
    before, after = entries_of(told, task, "before_dispatch")[0], entries_of(told, task, "after_completion")[1]
    return floats(dump, before), floats(dump, after)


def check_partly(dump, task):
    document = replay(dump, task)
    (output,) = document["outputs"]
    check("half: output", [output[key] for key in ("bit_exact", "mismatches", "not_written", "unstable")], [False, 0, ELEMENTS // 2, 0])
    check("half: verdict", document["verdict"], "equal_where_written")
    text = replay_text(dump, task)
    check("half: first line", text.split("\n")[0], "task 1, kernel half: equal where it writes: 32 elements have the dump's bits; "
          "32 are not written by the kernel")
    check_in("half", "32 elements of its outputs the kernel does not write: not compared", text)
    x, y = words(dump, manifest(dump), task)
    y = y.copy()
    y[5], y[6] = 1e9, 1e9
    (output,) = replay(patched(dump, "half-wrong", entries_of(manifest(dump), task, "after_completion")[1], y.tobytes()), task, code=1)["outputs"]
    check("half: only what it writes is compared", (output["mismatches"], output["first_bad"], np.float32(output["replay"])), (1, [6], 3 * x[6]))


def check_planted():
    names = ["twice", "half", "nothing", "adds", "counts", "strays", "flaky"]
    dump = record(make_scene("planted", names), "planted", "--no-dedup")
    told = manifest(dump)
    x, y = words(dump, told, 0)
    check("twice: what it left", y.tobytes(), (2 * x).tobytes())
    text = replay_text(dump, 0)
    check("twice: first line", text.split("\n")[0],
          "task 0, kernel twice: bit exact: the replay gives what the dump holds (1 output, 64 elements)")
    check_partly(dump, 1)
    document = replay(dump, 2, code=1)
    check("nothing: verdict", (document["verdict"], document["outputs"][0]["not_written"], document["outputs"][0]["bit_exact"]),
          ("nothing_written", ELEMENTS, False))
    document = replay(dump, 3, code=1)
    check("adds: output", (document["verdict"], document["outputs"][0]["unstable"]), ("differs", ELEMENTS))
    check_in("adds", "it reads its output before it writes it, or is not deterministic", replay_text(dump, 3, code=1))
    check_counts(dump)
    document = replay(dump, 5)
    check("strays", (document["verdict"], document["stray_argument"]), ("bit_exact", 0))
    address = int(entries_of(told, 5, "before_dispatch")[0]["buffer_addr"], 16)
    check("strays: the bytes that differ", (int(document["stray_address"], 16) // 4, document["stray_bytes"]),
          ((address + 12) // 4, changed_bytes(x_of(dump, told, 5)[3], 77.0)))
    check_in("strays", f" outside of its outputs, the first at {hex(int(document['stray_address'], 16))}, in argument 0 x\n",
             replay_text(dump, 5))
    check("by id", replay(dump, entries_of(told, 5, "before_dispatch")[0]["task_id"])["task_seq"], 5)
    check_in("no such id", "the dump has no task of this id", refuse(dump, "0x12345"))
    check_flaky(dump)
    check_narrow(dump)
    refuse(dump, 7)
    refuse(dump, "9..12")
    check("range", [t["task_seq"] for t in replay(dump, "0..1")["tasks"]], [0, 1])
    check_in("dispatch", "--dispatch 1: the last one of this task is 0", refuse(dump, 0, "--dispatch", 1))


def check_flaky(dump):
    """It crashes when it is called for the third time in a process."""
    check("flaky: twice", replay(dump, 6, "--repeat", 2)["verdict"], "bit_exact")
    document = replay(dump, 6, "--repeat", 5, code=3)
    check("flaky: which run", (document["verdict"], document["fault"]["run"], document["fault"]["address"]), ("fault", 3, "0x0000000000000010"))
    check_in("flaky: which run", "SIGSEGV at 0x10, in run 3; in the recorded run it completed\n", replay_text(dump, 6, "--repeat", 5, code=3))


def check_narrow(dump):
    """A table keeps to the terminal, and what is cut is marked."""
    head, *lines = on_terminal(40, "replay", str(dump), "--task", "0..5", NO_COLOR="1")[0].rstrip().split("\n")
    check("narrow: first line", head.strip(), "6 tasks: 3 bit exact, 1 equal where written, 1 differs, 1 writes nothing; the first that differs is task 3")
    check("narrow: widths", [line for line in lines if len(line.rstrip()) > 40], [])
    table, rest = lines[:7], " ".join(lines[7:])
    check("narrow: rows", [line.split()[:2] for line in table], [["TASK", "KERNEL"], *([str(i), name] for i, name in enumerate(["twice", "half", "nothing", "adds", "counts", "strays"]))])
    check("narrow: verdicts", [line.split()[2] for line in table], ["VERDICT", "bit", "equal", "writes", "differs", "bit", "bit"])
    wide = replay_text(dump, "0..5", code=1).split("\n")[1]
    hidden = [word for word in ("OUTPUTS", "ELEMENTS", "MISMATCHES", "NOT WRITTEN", "TIME") if word in wide and word not in table[0]]
    check("narrow: what has no room", rest[:13 + len(", ".join(hidden))], "no room for: " + ", ".join(hidden))


def check_unchanged():
    """What an output held before was known, and it still holds that: it may not have been written at all."""
    both = (ORCHESTRATION % 2).replace("tensors[2 * i]", "tensors[2 * i + 1]")
    bodies = {"left": BODIES["nothing"], "some": "(void)x; for (int i = 0; i < n; i += 2) y[i] = (float)i;"}
    dump = record(make_scene("unchanged", list(bodies), bodies, shared("both.c", both)), "unchanged", "--no-dedup")
    for task, changed in enumerate((0, ELEMENTS // 2)):
        x, y = words(dump, manifest(dump), task)
        check(f"unchanged {task}: the run", int((x.view(np.uint32) != y.view(np.uint32)).sum()), changed)
        (output,) = replay(dump, task)["outputs"]
        check(f"unchanged {task}", [output[key] for key in ("bit_exact", "mismatches", "is_unchanged")], [True, 0, changed == 0])
    check("unchanged: first line", replay_text(dump, 0).split("\n")[0], "task 0, kernel left: bit exact: the replay gives what the dump holds "
          "(1 output, 64 elements); 1 output holds what it held before")


def check_rounding():
    """Numbers below the normal ones stay what they are, whatever a kernel is linked with, or leaves to the next call."""
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
    """A kernel that looks at what no dump has differs; what it may be is said, a core that is guessed included."""
    scene = make_scene("sizes", ["sizes"])
    for options, has_core_ids in (((), False), (("--dump-args",), True)):
        dump = record(scene, f"sizes{len(options)}", "--dump-tensor", *options)
        x, y = words(dump, manifest(dump), 0)
        check("sizes: the run", y.tobytes(), (x + np.float32(4 * ELEMENTS)).tobytes())
        document = replay(dump, 0, code=1)
        check("sizes", [document["outputs"][0]["mismatches"], document["outputs"][0]["unstable"], document["has_core_ids"]], [ELEMENTS, 0, has_core_ids])
        text = replay_text(dump, 0, code=1)
        check_in("sizes", "buffer_bytes of a tensor (0 here)", text)
        check("sizes: core_id", "core_id (a guess, for the run was without --dump-args)" in text, not has_core_ids)


def x_of(dump, told, task):
    return floats(dump, entries_of(told, task, "before_dispatch")[0])


def changed_bytes(old, new):
    return sum(a != b for a, b in zip(np.float32(old).tobytes(), np.float32(new).tobytes()))


def check_counts(dump):
    """A static variable: the first call in a process is like the recorded one, further ones are not."""
    document = replay(dump, 4)
    check("counts: once", document["verdict"], "bit_exact")
    document = replay(dump, 4, "--repeat", 5)
    check("counts: repeated", (document["repeat"]["runs"], document["repeat"]["different"]), (5, 4))
    check_in("counts", "4 of them do not leave the bits of the first", replay_text(dump, 4, "--repeat", 5))
    document = replay(dump, 0, "--repeat", 4)
    times = document["repeat"]
    check("twice: repeated", (times["runs"], times["different"], document["ns_per_call"]), (4, 0, times["median_ns"]))
    check("twice: order of times", times["min_ns"] <= times["median_ns"] <= times["max_ns"], True)
    check_in("twice", "the same bits all 4 times", replay_text(dump, 0, "--repeat", 4))


def check_faults():
    for kernel, told, options in (("crashes", "SIGSEGV at 0x10", ()), ("hangs", "did not return within 1 s", ("--timeout", 1))):
        dump = record(make_scene(kernel, ["twice", kernel], **{kernel: {"reference": "reference/twice.c"}}), kernel, *(("--timeout", "1") if kernel == "hangs" else ()), "--dump-tensor", code=3)
        text = replay_text(dump, 1, *options, code=3)
        check_in(kernel, f"task 1, kernel {kernel}: kernel {kernel} ", text.split("\n")[0])
        check_in(kernel, told, text.split("\n")[0])
        check_in(kernel, "; as in the recorded run: ", text.split("\n")[0])
        check(f"{kernel}: the other", replay(dump, 0)["verdict"], "bit_exact")
        fixed = root / "fixed.c"
        fixed.write_text(KERNEL % BODIES["twice"])
        document = replay(dump, 1, "--kernel", fixed)
        check(f"{kernel}: fixed", [document[key] for key in ("judgement", "wrong", "did_complete")], ["fixed", 0, False])
        document = replay(dump, 1, "--kernel", root / "shared" / "half.c", code=1)
        check(f"{kernel}: half of it is written, and wrong", [document[key] for key in ("judgement", "wrong")], ["still_wrong", ELEMENTS])
    check_crash_told()
    check_calmed()
    dump = root / "planted"
    for body in ("crashes", "ends"):
        other = root / f"{body}.c"
        other.write_text(KERNEL % BODIES[body])
        check_in(f"--kernel {body}", "; in the recorded run it completed", replay_text(dump, 0, "--kernel", other, code=3))


def check_crash_told():
    """The JSON of a crash; what another task did is not taken for it; no task is kept from running by it."""
    dump = root / "crashes"
    document = replay(dump, 1, code=3)
    check("crashes: fault", [document["fault"][key] for key in ("is_hang", "dispatch", "as_in_the_run", "address")], [False, 0, True, "0x0000000000000010"])
    check("crashes: outputs", document["outputs"], [])
    document = replay(dump, "all", code=3)
    check("crashes: all", [task["verdict"] for task in document["tasks"]], ["bit_exact", "fault"])
    copy = root / "crashes-other"
    shutil.copytree(dump, copy)
    (copy / "tensor_dump" / "tensor_dump.rec").unlink()
    path = copy / "tensor_dump" / "tensor_dump.json"
    told = json.loads(path.read_text())
    told["status"] = told["status"].replace(" of task 1 on core ", " of task 0 on core ")
    path.write_text(json.dumps(told))
    check("crashes: another task ended the run", replay(copy, 1, code=3)["fault"]["as_in_the_run"], False)
    check_in("crashes: another task ended the run", "; in the recorded run it did not complete: ", replay_text(copy, 1, code=3))


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


def check_manifest_alone():
    """Another tool's dump has no journal, and may not tell addresses."""
    dump = root / "manifest"
    shutil.copytree(root / "flip", dump)
    (dump / "tensor_dump" / "tensor_dump.rec").unlink()
    document = replay(dump, "all")
    check("manifest alone: verdicts", [(t["verdict"], t["is_relocated"]) for t in document["tasks"]], [("bit_exact", False)] * 5)
    path = dump / "tensor_dump" / "tensor_dump.json"
    told = json.loads(path.read_text())
    for entry in told["tensors"]:
        entry.pop("buffer_addr", None)
    path.write_text(json.dumps(told))
    document = replay(dump, "all")
    check("no addresses: verdicts", [(t["verdict"], t["is_relocated"]) for t in document["tasks"]], [("bit_exact", True)] * 5)
    (dump / "run.json").unlink()
    check_in("no run.json", "no run.json, and so no copy of its kernels", refuse(dump, 0))
    add = EXAMPLES / "vector_example" / "kernels" / "add.c"
    check("no run.json, a kernel", [o["mismatches"] for o in replay(dump, 0, "--kernel", add)["outputs"]], [0])
    fixture = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler" / "vector_example"
    check_in("blocks that are not told", "does not tell which cores and how many blocks ran it", refuse(fixture, 0, "--kernel", add))


# --- another kernel ---


def check_swap():
    wrong = dict(BODIES, twice="for (int i = 0; i < n; ++i) y[i] = i == 9 || i == 20 ? 2 * x[i] + i : 2 * x[i];")
    reference = {"twice": {"reference": "reference/twice.c", "rtol": 1e-3, "atol": 1e-7}}
    scene = make_scene("swap", ["twice", "half"], wrong, **reference)
    dump = record(scene, "swap", "--no-dedup")
    x, y = words(dump, manifest(dump), 0)
    fixed = root / "right.c"
    fixed.write_text(KERNEL % BODIES["twice"])
    document = replay(dump, 0, "--kernel", fixed)
    (output,) = document["outputs"]
    check("fixed: judgement", [document[key] for key in ("judgement", "wrong", "rtol", "atol")], ["fixed", 0, 1e-3, 1e-7])
    check("fixed: changed", (output["mismatches"], output["first_bad"], output["max_abs"]), (2, [9], float(np.abs(y.astype(float) - 2 * x.astype(float)).max())))
    shown = [(e["arg_index"], e["index"], *(np.float32(e[key]) for key in ("old", "new", "expected"))) for e in document["elements"]]
    check("fixed: elements, the worst first", shown, [(1, [i], y[i], 2 * x[i], 2 * x[i]) for i in (20, 9)])
    text = replay_text(dump, 0, "--kernel", fixed)
    check("fixed: first line", text.split("\n")[0],
          f"task 0, kernel twice with {fixed}: fixed: right for its inputs by the reference (rtol 0.001, atol 1e-07)")
    check_in("by name", "fixed: right", replay_text(dump, 0, "--kernel", f"twice={fixed}"))
    same = replay(dump, 0, "--kernel", scene / "twice.c", code=1)
    check("the old one: judgement", (same["judgement"], same["wrong"], same["outputs"][0]["mismatches"]), ("still_wrong", 2, 0))
    check("the old one: elements", [(e["index"], np.float32(e["expected"])) for e in same["elements"]], [([i], 2 * x[i]) for i in (20, 9)])
    half = replay(dump, 1, "--kernel", fixed, code=1)
    check("no reference: judgement", (half["judgement"], half["outputs"][0]["mismatches"]), ("not_judged", ELEMENTS))
    check_in("no reference", "half has no reference", half["judgement_reason"])
    check("no reference, no change", replay(root / "planted", 0, "--kernel", fixed)["judgement"], "not_judged")
    check("no reference, not all written", replay(dump, 1, "--kernel", scene / "half.c", code=1)["judgement"], "not_judged")
    check_unknown(scene, fixed)
    nothing = root / "nothing.c"
    nothing.write_text(KERNEL % BODIES["half"].replace("3 *", "2 *"))
    document = replay(dump, 0, "--kernel", nothing, code=1)
    check("half is written: judgement", (document["judgement"], document["wrong"], document["outputs"][0]["not_written"]),
          ("still_wrong", ELEMENTS // 2, ELEMENTS // 2))
    check("half is written: elements", [(e["index"], e["new"], np.float32(e["expected"])) for e in document["elements"]],
          [([i], None, 2 * x[i]) for i in range(1, 21, 2)])
    check_swap_files(dump, scene)
    shutil.rmtree(scene)
    gone = replay(dump, 0, "--kernel", root / "made.so", code=1)
    check("scene gone: judgement", gone["judgement"], "not_judged")
    check("scene gone: why", gone["judgement_reason"], f"the scene of the dump was {scene}, which is not there any more")


def check_unknown(scene, fixed):
    """Of the old kernel nothing is known where the dump does not have what it left."""
    dump = record(scene, "unknown", "--dump-tensor=hybrid", "--dump-filter", "role=input")
    for kernel, judgement, wrong in ((fixed, "right", 0), (scene / "twice.c", "wrong", 2)):
        document = replay(dump, 0, "--kernel", kernel, code=int(wrong > 0))
        check(f"unknown: {judgement}", [document[key] for key in ("judgement", "wrong")], [judgement, wrong])


def check_poison_expected():
    """A reference that gives the bits of a poison is still what is expected."""
    one = "for (int i = 0; i < n; ++i) y[i] = x[i];"
    scene = make_scene("poison", ["twice"], {"twice": one}, twice={"reference": "reference/twice.c"})
    (scene / "reference" / "twice.c").write_text(KERNEL % (one + "\n    *(uint32_t *)&y[7] = 0x5a5a5a5au;"))
    dump = record(scene, "poison")
    document = replay(dump, 0, "--kernel", scene / "twice.c", code=1)
    check("poison: elements", [(e["index"], np.float32(e["expected"])) for e in document["elements"]], [([7], np.uint32(0x5a5a5a5a).view(np.float32))])


def check_swap_files(dump, scene):
    bad = root / "bad.c"
    bad.write_text("int kernel_entry(void) { return nothing_of_this_name; }\n")
    done = glassbox("replay", dump, "--task", 0, "--kernel", bad)
    check("bad kernel: exit code", done.returncode, 2)
    check_in("bad kernel: what the compiler said", "nothing_of_this_name", done.stderr)
    check_in("no file", "No such file", refuse(dump, 0, "--kernel", root / "none.c"))
    check_in("no kernel", "NAME=FILE", refuse(dump, 0, "--kernel", f"other={scene / 'twice.c'}"))
    made = root / "made.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{header_folder()}", "-o", made, scene / "reference" / "twice.c"], check=True)
    check("a shared object", replay(dump, 0, "--kernel", made)["judgement"], "fixed")
    for second in (made, f"twice={made}"):
        check_in("twice the same kernel", "are of the same kernel", refuse(dump, 0, "--kernel", scene / "twice.c", "--kernel", second))
    check_foreign_scene(dump, scene, made)


def check_foreign_scene(dump, scene, made):
    """References of a scene are code, too: those that everybody can write are not run; a group may write them."""
    for path in (scene / "scene.json", scene, scene / "reference", scene / "reference" / "twice.c"):
        mode = path.stat().st_mode & 0o777
        path.chmod(mode | 0o002)
        document = replay(dump, 0, "--kernel", made, code=1)
        check(f"everybody can write {path.name}: judgement", document["judgement"], "not_judged")
        check_in(f"everybody can write {path.name}", "give --trust", document["judgement_reason"])
        path.chmod(mode | 0o020)
        check(f"a group can write {path.name}", replay(dump, 0, "--kernel", made)["judgement"], "fixed")
        path.chmod(mode)
    (scene / "reference").chmod(0o777)
    check("others' scene, trusted", replay(dump, 0, "--kernel", made, "--trust")["judgement"], "fixed")
    (scene / "reference").chmod(0o755)
    check_linked_scene(dump, scene, made)


def check_linked_scene(dump, scene, made):
    """A directory of everybody's whose scene.json is a link to this user's: its references are those of everybody."""
    folder = root / "linked"
    shutil.copytree(scene / "reference", folder / "reference")
    (folder / "scene.json").symlink_to(scene / "scene.json")
    folder.chmod(0o777)
    copy = root / "of-linked"
    shutil.copytree(dump, copy)
    told = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**told, "scene_path": str(folder)}))
    check("linked scene", replay(copy, 0, "--kernel", made, code=1)["judgement"], "not_judged")
    folder.chmod(0o755)
    check("linked scene of this user", replay(copy, 0, "--kernel", made)["judgement"], "fixed")


def header_folder():
    """The folder with glassbox/kernel.h that the cache has."""
    cache = pathlib.Path(ENVIRONMENT.get("GLASSBOX_CACHE") or pathlib.Path.home() / ".cache" / "glassbox")
    return next((cache / "include").iterdir())


# --- what is missing ---


def check_missing():
    scene = EXAMPLES / "vector_example"
    for name, options, parts in (
            ("stats", ("--dump-tensor=stats",), ["0 (x)", "1 (y)", "without payload at level stats"]),
            ("filtered", ("--dump-tensor", "--dump-filter", "kernel=add,arg=0"), ["1 (y)", "left out by the filters"]),
            ("cut", ("--dump-tensor", "--dump-max-tensor", "100"), ["0 (x)", "truncated to 96 of 65536 bytes"])):
        dump = record(scene, name, *options)
        text = refuse(dump, 0)
        for part in [*parts, "--dump-tensor=full"]:
            check_in(f"{name}: what is missing", part, text)
        done = glassbox("replay", dump, "--task", "all")
        check(f"{name}: all", (done.returncode, done.stdout.split("\n")[0]), (2, "5 tasks: all not replayed"))
    dump = record(scene, "some", "--dump-tensor=hybrid", "--dump-filter", "task=1,role=input")
    done = glassbox("replay", dump, "--task", "1..2")
    check("outputs missing", done.stdout.split("\n")[0], "2 tasks: 1 not compared, 1 not replayed")
    check("outputs missing: exit code", done.returncode, 1)
    check_some_missing()


def check_some_missing():
    """Some outputs are in the dump: nothing is said of the others."""
    dump = record(EXAMPLES / "broken_softmax", "cut-output")
    (dump / "tensor_dump" / "tensor_dump.rec").unlink()
    path = dump / "tensor_dump" / "tensor_dump.json"
    told = json.loads(path.read_text())
    entries_of(told, 29, "after_completion")[1].update(truncated=True, bin_size=16)
    path.write_text(json.dumps(told))
    document = replay(dump, 29)
    check("cut: outputs", [(o["is_compared"], o["bit_exact"], o["mismatches"]) for o in document["outputs"]],
          [(False, False, None), (True, True, 0), (True, True, 0)])
    check("cut: first line", replay_text(dump, 29).split("\n")[0], "task 29, kernel softmax_prepare: bit exact: the replay gives what the "
          "dump holds (2 outputs, 16 elements); 1 output is not in the dump and not compared")
    check_in("cut: of several", "1 output not compared", replay_text(dump, "29..30"))


# --- code of a dump ---


def cache(name):
    return {**ENVIRONMENT, "GLASSBOX_CACHE": str(root / name)}


def check_trust():
    """Kept kernels run where the same bytes are this user's own, or with --trust; else nothing runs."""
    own, other = cache("cache"), cache("other-cache")
    marked = dict(BODIES, twice=f'FILE *f = fopen("{root}/ran", "a"); if (f) fclose(f); ' + BODIES["twice"],
                  half=BODIES["half"])
    scene = make_scene("trust", ["twice", "half"], marked)
    source = scene / "twice.c"
    source.write_text("#include <stdio.h>\n" + source.read_text())
    dump = record(scene, "trust", environment=own)
    ran = root / "ran"
    check("the run ran it", ran.exists(), True)

    def attempt(what, is_run, dump=dump, *options, environment=own):
        ran.unlink(missing_ok=True)
        if is_run:
            check(f"{what}: verdict", replay(dump, 0, *options, environment=environment)["verdict"], "bit_exact")
            text = ""
        else:
            text = refuse(dump, 0, *options, environment=environment)
        check(f"{what}: whether it ran", ran.exists(), is_run)
        return text

    attempt("in the cache", True)
    source.rename(scene / "away.c")
    for path in (root / "cache" / "kernels").iterdir():
        path.chmod(0o666)  # nobody else gets there
    attempt("in the cache, source gone", True)
    (root / "cache" / "kernels").chmod(0o777)
    attempt("in a cache of everybody's, source gone", False)
    (root / "cache" / "kernels").chmod(0o700)
    (scene / "away.c").rename(source)
    shutil.rmtree(root / "cache" / "kernels")
    scene.chmod(0o777)
    check_in("a directory of everybody's", "everybody, or another user, can write its source", attempt("cache lost, source of everybody's", False))
    scene.chmod(0o755)
    attempt("cache lost, source there", True)
    shutil.rmtree(root / "cache" / "kernels")
    copy = root / "elsewhere" / "dump"
    shutil.copytree(dump, copy)
    text = attempt("another cache", False, copy, environment=other)
    for part in ("replaying kernel twice would run ", str(copy / "kernels"), "code that came with the dump", "--trust"):
        check_in("another cache", part, text)
    attempt("another cache, trusted", True, copy, "--trust", environment=other)
    source.write_text(source.read_text().replace("2 * x", "4 * x"))
    check_in("source changed", "gives other code now", attempt("source changed", False))
    source.unlink()
    check_in("source gone", "is gone", attempt("source gone", False))
    attempt("source gone, trusted", True, dump, "--trust")
    check_hostile(dump, attempt)


def with_run_json(dump, name, change):
    copy = root / name
    shutil.copytree(dump, copy)
    document = json.loads((copy / "run.json").read_text())
    change(document["kernels"][0], copy)
    (copy / "run.json").write_text(json.dumps(document))
    return copy


def check_hostile(dump, attempt):
    """What run.json says is not believed."""
    def inside(kernel, copy):
        target = copy / "kernels" / "own.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel["origin"] = str(target)

    def flags(kernel, copy):
        target = root / "harmless.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel |= {"origin": str(target), "compile_flags": f"-fplugin={copy}/kernels/evil.so"}

    def replaced(kernel, copy):
        shutil.copy(copy / json.loads((copy / "run.json").read_text())["kernels"][1]["object"], copy / kernel["object"])

    def relative(kernel, copy):
        target = root / "relative.c"
        target.write_text(KERNEL % BODIES["twice"])
        kernel["origin"] = os.path.relpath(target)

    def set_to(**fields):
        return lambda kernel, copy: kernel.update(fields)

    for name, change, parts, is_final in (
            ("origin-inside", inside, ["its source lies in the dump"], False),
            ("flags", flags, ["compiler flags that could do more than compile"], False),
            ("replaced", replaced, ["is not the shared object that ran"], True),
            ("parent", set_to(object="../trust/kernels/x.so"), ["object", "inside of the dump"], True),
            ("absolute", set_to(object="/lib/x86_64-linux-gnu/libm.so.6"), ["object", "inside of the dump"], True),
            ("no-hash", set_to(object_hash=None), ["object_hash"], True),
            ("no-file", set_to(object="kernels/none.so"), ["none.so"], True),
            ("number", set_to(name=7), ["name"], True),
            ("relative", relative, ["is not named by its whole path"], False),
            ("controls", set_to(name="a\x1b[31m\nb", object="kernels/\x1b[31m\n.so"), ["a\\x1b[31m\\x0ab", "\\x1b[31m\\x0a.so"], True)):
        copy = with_run_json(dump, name, change)
        text = attempt(name, False, copy)
        for part in parts:
            check_in(name, part, text)
        if is_final:  # no --trust helps
            attempt(f"{name}, trusted", False, copy, "--trust")
    copy = with_run_json(dump, "kernel-flags", lambda kernel, copy: (flags(kernel, copy), kernel.update(name="a\x1b[31m\nb")))
    fixed = root / "right.c"
    check_in("flags of the dump", "they could do more than compile", refuse(copy, 0, "--kernel", fixed))
    flagged = record(make_scene("flagged", ["twice"], twice={"compile_flags": "-DUNUSED=1"}), "flagged")
    check("flags of the scene", replay(flagged, 0, "--kernel", fixed)["outputs"][0]["bit_exact"], True)
    copy = with_run_json(flagged, "flagged-other", set_to(compile_flags="-DUNUSED=2"))
    check_in("flags that the scene does not have", "-DUNUSED=2", refuse(copy, 0, "--kernel", fixed))
    check("flags that are trusted", replay(copy, 0, "--kernel", fixed, "--trust")["outputs"][0]["bit_exact"], True)
    copy = with_run_json(dump, "bare", lambda kernel, copy: None)
    (copy / "run.json").unlink()
    check_in("no run.json", "--kernel twice=FILE", attempt("no run.json", False, copy, "--trust"))
    check("no run.json, a kernel", replay(copy, 0, "--kernel", fixed)["outputs"][0]["bit_exact"], True)


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


def make_spmd():
    body = {"twice": "int b = (int)gbx_local(args)->block_idx, m = n / (int)gbx_local(args)->block_num; "
                     "for (int i = b * m; i < (b + 1) * m; ++i) y[i] = 2 * x[i];"}
    return make_scene("spmd", ["twice"], body, shared("spmd.c", (ORCHESTRATION % 1).replace("gbx_aiv(i)", "gbx_spmd(gbx_aiv(i), 4)")))


# --- options ---


def check_options():
    dump = root / "flip"
    for options in ((), ("--task", "x"), ("--task", "1", "--gdb", "--save", root / "d"), ("--task", "all", "--gdb"), ("--task", "0x1..0x3"),
                    ("--task", "1", "--save", root / "d", "--json"), ("--task", "all", "--kernel", "a.c"), ("--task", "1", "--repeat", "0"),
                    ("--task", "0..1", "--dispatch", "0"), ("--task", "1", "--timeout", "0"), ("--task", "1", "a", "b")):
        done = glassbox("replay", dump, *options)
        check(f"options {options}", (done.returncode, done.stdout), (2, ""))
    check("nothing is saved", (root / "d").exists(), False)


def main():
    try:
        for part in (check_examples, check_flipped, check_planted, check_unchanged, check_rounding, check_causes, check_faults, check_swap, check_poison_expected, check_missing, check_trust, check_manifest_alone,
                     check_dispatches, check_options):
            part()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report()


sys.exit(main())
