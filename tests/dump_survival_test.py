#!/usr/bin/python3
"""Attacks on the dump from outside: the host or the chip is killed, the disk is full, fails or is slow. What is left
behind is compared with the dump of an undisturbed run, byte by byte.

usage: dump_survival_test.py GLASSBOX
"""
import concurrent.futures
import ctypes
import itertools
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from disk_support import build_disk

RUNTIMES = ("tensormap_and_ringbuffer", "aicpu_build_graph", "host_build_graph")
VARIANTS = [(platform, runtime) for runtime in RUNTIMES for platform in ("a2a3sim", "a5sim")]
SANITIZED = bool(os.environ.get("GLASSBOX_SANITIZE"))
TASKS, FATAL_TASK = 120, 77
IN_FLIGHT = 16  # a flag of the journal
LONGEST = 600  # seconds that anything waited for may take, on a machine that is busy

# SURVIVAL_SLOWER: multiplies the pause of runs that are interrupted.
MINGLE = """#include <glassbox/kernel.h>
#include <stdlib.h>
#include <time.h>
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *y_tensor = gbx_arg_tensor(args, 1);
    const uint32_t *x = (const uint32_t *)gbx_tensor_origin(gbx_arg_tensor(args, 0), 4);
    uint32_t *y = (uint32_t *)gbx_tensor_origin(y_tensor, 4);
    uint32_t *z = (uint32_t *)gbx_tensor_origin(gbx_arg_tensor(args, 2), 4);
    for (int64_t i = 0; i < gbx_tensor_numel(y_tensor); ++i) {
        y[i] = y[i] * 1664525u + x[i % 4096] + gbx_arg_u32(args, 3);
        z[i % 4096] = y[i] ^ gbx_arg_u32(args, 3);
    }
    const char *slower = getenv("SURVIVAL_SLOWER");
    struct timespec pause = {0, 1000 * (long)gbx_arg_u32(args, 4) * (slower ? atol(slower) : 1)};
    if (pause.tv_nsec) nanosleep(&pause, 0);
}
"""
# Chains of tasks on six parts of y and z; some of them on the large tensor as well.
GRAPH = """#include <glassbox/orchestration.h>
enum { CHAINS = 6, X = 0, Y = 1, Z = 2, LARGE = 3 };
static gbx_tensor tensors[4];
static gbx_tensor chosen[3];
static int is_large(uint64_t i) { return i % 16 == 7; }
static void choose(uint64_t i) {
    uint32_t chain = (uint32_t)(i % CHAINS);
    chosen[0] = i % 4 == 1 ? gbx_view_transpose(&tensors[X], 0, 1) : tensors[X];
    chosen[1] = is_large(i) ? tensors[LARGE] : gbx_view_select(&tensors[Y], 0, chain);
    chosen[2] = gbx_view_select(&tensors[Z], 0, chain);
}
"""
ON_CHIP = GRAPH + """
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_task last[CHAINS + 1];
    (void)last;
    for (int i = 0; i < 4; ++i) tensors[i] = run->tensors[i];
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        gbx_args args = gbx_args_begin();
        choose(i);
        gbx_args_add_input(&args, &chosen[0]);
        gbx_args_add_inout(&args, &chosen[1]);
        gbx_args_add_output(&args, &chosen[2]);
        gbx_args_add_u32(&args, (uint32_t)i);
        gbx_args_add_u32(&args, (uint32_t)run->scalars[1]);
        HAND_OVER
    }
    return 0;
}
"""
SUBMIT = "gbx_submit_task(o, gbx_aiv(0), &args);"
PUBLISH = """gbx_task task = gbx_add_task_with_args(o, gbx_aiv(0), &args);
        if (i >= CHAINS) gbx_add_successor_conditional(o, last[i % CHAINS], task);
        if (is_large(i) && i > 16) gbx_add_successor_conditional(o, last[CHAINS], task);
        last[i % CHAINS] = task;
        if (is_large(i)) last[CHAINS] = task;
        gbx_publish_task(o, task);"""
ON_HOST = GRAPH + """
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_task last[CHAINS + 1];
    for (int i = 0; i < 4; ++i) {
        tensors[i] = run->tensors[i];
        uint64_t bytes = (uint64_t)gbx_tensor_numel(&tensors[i]) * 4;
        void *on_host = (void *)(uintptr_t)run->tensors[i].data;
        tensors[i].data = gbx_device_malloc(o, bytes);
        gbx_copy_to_device(o, tensors[i].data, on_host, bytes);
        if (i != X) gbx_return_to_host(o, on_host, tensors[i].data, bytes);
    }
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        choose(i);
        gbx_tensor_info infos[3] = {{0, GBX_ROLE_INPUT, chosen[0]}, {1, GBX_ROLE_INOUT, chosen[1]},
                                    {2, GBX_ROLE_OUTPUT, chosen[2]}};
        uint64_t words[5] = {0, 0, 0, i, run->scalars[1]};
        for (int k = 0; k < 3; ++k) words[k] = gbx_device_tensor(o, &chosen[k]);
        gbx_task task = gbx_add_task_with_tensor_info(o, gbx_aiv(0), words, 5, infos, 3);
        if (i >= CHAINS) gbx_add_successor(o, last[i % CHAINS], task);
        if (is_large(i) && i > 16) gbx_add_successor(o, last[CHAINS], task);
        last[i % CHAINS] = task;
        if (is_large(i)) last[CHAINS] = task;
    }
    return 0;
}
"""

SCENE = {
    "name": "mingle",
    "kernels": [{"func_id": 0, "name": "mingle", "source": "mingle.c", "core": "aiv",
                 "signature": ["in", "inout", "out", "scalar:uint32", "scalar:uint32"]}],
    "orchestrations": {r: {"source": f"{r}.c"} for r in RUNTIMES},
    "args": [{"name": name, "dtype": "uint32", "shape": shape, "role": role, "fill": "random", "high": 1000000,
              "low": 0, "seed": seed}
             for name, shape, role, seed in (("x", [64, 64], "in", 1), ("y", [6, 64, 64], "inout", 2),
                                             ("z", [6, 64, 64], "inout", 3), ("large", [512, 512], "inout", 4))]
    + [{"name": "count", "dtype": "uint64", "role": "scalar", "value": TASKS},
       {"name": "pause_us", "dtype": "uint64", "role": "scalar", "value": 4000}],
    "cases": {"default": {}, "quick": {"args": {"count": {"value": 40}, "pause_us": {"value": 0}}}},
}
FILES = {"mingle.c": MINGLE, "tensormap_and_ringbuffer.c": ON_CHIP.replace("HAND_OVER", SUBMIT),
         "aicpu_build_graph.c": ON_CHIP.replace("HAND_OVER", PUBLISH), "host_build_graph.c": ON_HOST,
         "scene.json": json.dumps(SCENE)}

failed = passed = 0
glassbox = os.path.abspath(sys.argv[1])
root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-dump-survival-"))
numbers = itertools.count()


def expect(what, got, wanted):
    global failed, passed
    if got == wanted:
        passed += 1
        return
    failed += 1
    print(f"{what}: got\n{got!r}\nexpected\n{wanted!r}", flush=True)


def make_scene(name, **files):
    directory = root / name
    directory.mkdir()
    for path, text in {**FILES, **files}.items():
        (directory / path).write_text(text)
    return directory


# --- dumps, read with nothing but docs/format.md ---

xxhash = ctypes.CDLL("libxxhash.so.0")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


class Journal:
    """What the complete blocks of a journal hold; `arguments` by task, stage and argument."""

    def __init__(self, directory):
        path = directory / "tensor_dump" / "tensor_dump.rec"
        data = path.read_bytes() if path.exists() else b""
        self.arguments, self.dispatches, self.tasks, self.results = {}, set(), {}, {}
        self.done, self.losses, self.end, self.block_count = set(), [], None, 0
        at = 64
        while at + 32 <= len(data):
            magic, size, _, number, checksum, head_check = struct.unpack_from("<4I2Q", data, at)
            body = data[at + 32:at + 32 + size]
            if (magic != 0x42584247 or number != self.block_count or len(body) < size
                    or head_check != xxhash.XXH3_64bits(data[at:at + 24], 24)
                    or checksum != xxhash.XXH3_64bits(body, size)):
                break
            self.read_block(body)
            at, self.block_count = at + 32 + size, self.block_count + 1

    def read_block(self, body):
        at = 0
        while at < len(body):
            head = struct.unpack_from("<6BHI4xQ", body, at)
            kind, stage, role, arg, dtype, ndims, flags, words, task = head
            rest = body[at + 32:at + 8 * words]
            key = (task, stage, arg)
            if kind in (6, 7) and key in self.arguments:
                expect("an argument", f"{key} appears twice", "is there once")
            if kind == 6:
                self.arguments[key] = (role, dtype, flags & IN_FLIGHT, struct.unpack_from("<Q", rest)[0])
            elif kind == 7:
                _, offset, size, low, high, start = struct.unpack_from("<5Qq", rest)
                geometry = struct.unpack_from(f"<{2 * ndims}q", rest, 48)
                self.arguments[key] = (role, dtype, flags & IN_FLIGHT, geometry, start, size, (low, high), offset)
            elif kind == 15:
                _, offset, size, low, high, start = struct.unpack_from("<5Qq", rest)
                geometry = struct.unpack_from(f"<{2 * ndims}q", rest, 48)
                self.results[arg] = (role, dtype, flags & IN_FLIGHT, geometry, start, size, (low, high), offset)
            elif kind == 3:
                self.tasks[task] = rest[8:20]  # its kernels
            elif kind == 5:
                self.done.add(task)
            elif kind == 8:
                self.dispatches.add((task, *struct.unpack_from("<I4x3I", rest, 8)))
            elif kind == 9:
                self.losses.append((key, *struct.unpack_from("<I4xQ", rest)))
            elif kind == 11:
                self.end = bool(flags & 256)
            at += 8 * words

    def values(self, directory):
        """Every argument with its bytes, whose hash is right."""
        path = directory / "tensor_dump" / "tensor_dump.bin"
        payload = path.read_bytes() if path.exists() else b""
        result = {}
        for key, record in (*self.arguments.items(), *((("result", arg), r) for arg, r in self.results.items())):
            result[key] = record
            if len(record) == 4:
                continue
            *described, size, hashed, offset = record
            data = payload[offset:offset + size]
            real = xxhash.XXH3_128bits(data, len(data))
            if (real.low, real.high) != hashed:
                expect("a payload", f"{directory}: hash of {key} is wrong", "right")
            result[key] = (*described, data)
        return result


def manifest_of(directory, name="tensor_dump.json"):
    path = directory / "tensor_dump" / name
    return json.loads(path.read_text()) if path.exists() else None


def manifest_values(directory):
    """The same as Journal.values, but from the manifest."""
    document = manifest_of(directory)
    path = directory / "tensor_dump" / "tensor_dump.bin"
    payload = path.read_bytes() if path.exists() else b""
    roles = {"input": 0, "output": 1, "inout": 2}
    result = {}
    for e in document["results"]:
        data = payload[e["bin_offset"]:e["bin_offset"] + e["bin_size"]]
        strides = [math.prod(e["shape"][i + 1:]) for i in range(len(e["shape"]))]
        result["result", e["arg_index"]] = (roles[e["role"]], tuple(e["shape"] + strides), 0, data)
    for e in document["tensors"]:
        key = (e["task_seq"], int(e["stage"] == "after_completion"), e["arg_index"])
        data = payload[e["bin_offset"]:e["bin_offset"] + e["bin_size"]]
        result[key] = ((roles[e["role"]], int(e["bits"], 16)) if e["kind"] == "scalar" else
                       (roles[e["role"]], tuple(e["shape"] + e["strides"]), e["start_offset"], data))
    return result


def without_dtype(values):
    return {k: (v[0], *v[3:]) for k, v in values.items()}


# --- runs ---

def arguments_of(scene, variant, directory, *more):
    platform, runtime = variant
    return [glassbox, "run", str(scene), "--dump-tensor", "--dump-args", "-p", platform, "--runtime", runtime,
            "--gm", "256M", "-o", str(directory), *more]


def environment_of(**more):
    return {**os.environ, **more}


def start(scene, variant, directory, *more, **environment):
    return subprocess.Popen(arguments_of(scene, variant, directory, *more), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment_of(**environment))


def run(scene, variant, *more, **environment):
    """The directory of the dump, and how the run ended."""
    directory = root / f"dump{next(numbers)}"
    return directory, subprocess.run(arguments_of(scene, variant, directory, *more), capture_output=True, text=True,
                                     env=environment_of(**environment), timeout=LONGEST)


def tool(command, directory):
    return subprocess.run([glassbox, command, str(directory)], capture_output=True, text=True, timeout=LONGEST)


class Reference:
    """Undisturbed dumps: the bytes of every argument of a case, which are the same on all variants."""

    def __init__(self, scene):
        self.values, self.dispatches, self.seconds = {}, {}, {}
        for case in ("default", "quick"):
            for variant in VARIANTS if case == "default" else VARIANTS[:1]:
                start_s = time.monotonic()
                directory, result = run(scene, variant, "--case", case, "--dump-arena", "1M")
                self.seconds[variant] = time.monotonic() - start_s
                journal = Journal(directory)
                values = journal.values(directory)
                expect(f"undisturbed {variant}", (result.returncode, result.stderr, journal.end), (0, "", True))
                expect(f"{case}: {variant} records as all others", values == self.values.setdefault(case, values), True)
                dispatches = self.dispatches.setdefault(case, journal.dispatches)
                expect(f"{case}: {variant} dispatches", journal.dispatches == dispatches, True)
                shutil.rmtree(directory)
        arguments = [key for key in self.values["default"] if key[0] != "result"]
        expect("arguments", len(arguments), TASKS * 6)


def check_dump(what, directory, reference, case="default"):
    """Checks that a dump verifies and that everything in it is true; returns its journal."""
    verified = tool("verify", directory)
    expect(f"{what}: verify", (verified.returncode, verified.stdout[:5], verified.stderr), (0, "good:", ""))
    journal = Journal(directory)
    values = journal.values(directory)
    wanted = reference.values[case]
    wrong = [k for k, v in values.items() if v != wanted.get(k) and not v[2] & IN_FLIGHT]
    expect(f"{what}: arguments that are not those of the undisturbed run", wrong, [])
    expect(f"{what}: dispatches that are not", sorted(journal.dispatches - reference.dispatches[case]), [])
    expect(f"{what}: manifest and journal", manifest_values(directory) == without_dtype(values), True)
    dispatches = manifest_of(directory, "kernel_args_dump.json")["total_dispatches"]
    expect(f"{what}: dispatches in the manifest", dispatches, len(journal.dispatches))
    return journal


def check_itemised(what, directory, journal, reference, case, cause):
    """Missing records are counted with their cause, and the manifest has the counts."""
    document = manifest_of(directory)
    count = sum(key[0] != "result" for key in reference.values[case]) // 6
    others = 2 * count - len(journal.tasks) - len(journal.done)
    others += len(reference.dispatches[case]) - len(journal.dispatches)
    missing = set(reference.values[case]) - set(journal.arguments) - {("result", arg) for arg in journal.results}
    expect(f"{what}: something is missing", bool(missing), True)
    expect(f"{what}: dropped_records", document["dropped_records"], len(missing) + others)
    expect(f"{what}: causes", {loss["cause"] for loss in document["losses"]}, {cause})
    expect(f"{what}: sum of losses", sum(loss["count"] for loss in document["losses"]), len(missing) + others)
    expect(f"{what}: complete", document["complete"], False)
    lost = {key for key, _, _ in journal.losses}
    expect(f"{what}: both lost and present", sorted(lost & set(journal.arguments)), [])


def check_recovered(what, directory, reference, case="default"):
    """`glassbox recover` keeps everything whose block a killed host had written."""
    before = Journal(directory)
    recovered = tool("recover", directory)
    if before.block_count == 0:
        expect(f"{what}: recover has nothing", (recovered.returncode, recovered.stdout, recovered.stderr.count("\n")),
               (2, "", 1))
        return None
    expect(f"{what}: recover", (recovered.returncode, recovered.stderr), (0, ""))
    journal = check_dump(what, directory, reference, case)
    expect(f"{what}: arguments that were journaled", sorted(journal.arguments), sorted(before.arguments))
    expect(f"{what}: dispatches that were journaled", journal.dispatches, before.dispatches)
    expect(f"{what}: results that were journaled", journal.results, before.results)
    expect(f"{what}: complete", manifest_of(directory)["complete"], bool(before.end))
    expect(f"{what}: temporary files", [str(p) for p in directory.rglob("*.tmp")], [])
    again = tool("recover", directory)
    expect(f"{what}: recover again", (again.returncode, again.stdout[:18]), (0, "nothing to recover"))
    return journal


def adopt_orphans():
    """What a killed run leaves behind becomes a child of this process (PR_SET_CHILD_SUBREAPER)."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def processes_left():
    """The descendants of this process that still run: hosts, chips, compilers. A process that execs, whose environment
    and command line read as empty for a moment, counts as well."""
    parents, names = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if state not in "ZX":
                parents[int(path.name)] = int(parent)
                names[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except OSError:
            pass
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return [f"{child} {names.get(child)}" for child in found - {os.getpid()}]


def expect_no_processes():
    left = None

    def is_over():
        nonlocal left
        left = processes_left()
        return not left
    wait_until(is_over)
    expect("processes left", left, [])


def wait_until(condition):
    end = time.monotonic() + LONGEST
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.001)
    return found


def wait_for_journal(directory, size):
    path = directory / "tensor_dump" / "tensor_dump.rec"
    return wait_until(lambda: path.exists() and path.stat().st_size > size)


def at_once(function, items):
    """The results, in order; runs that mostly wait run in parallel."""
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


def chip_of(process):
    """The process id of its chip, as soon as there is one."""
    def find():
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[1]
                if int(parent) == process.pid and "glassbox-chip" in (path / "cmdline").read_text():
                    return int(path.name)
            except (OSError, IndexError):
                pass
        return None
    return wait_until(find)


# --- the host is killed ---

def test_host_killed(scene, reference):
    """At moments from before the launch to after the end, and when the journal reaches given sizes."""
    count = 6 if SANITIZED else 15
    some = 0
    for i in range(count):
        variant = VARIANTS[i % len(VARIANTS)]
        directory = root / f"dump{next(numbers)}"
        options = [[], ["--dump-arena", "64K", "--dump-buffers", "2"], ["--no-dedup"], ["--threads", "8"]][i % 4]
        slower = "20" if i % 4 == 1 else "1"
        process = start(scene, variant, directory, "--dump-arena", "1M", *options, SURVIVAL_SLOWER=slower)
        if i % 4 == 1:
            wait_for_journal(directory, 4096 * i)
        else:
            time.sleep(reference.seconds[variant] * (i + 0.5) / count)
        process.kill()
        process.communicate()
        expect_no_processes()
        journal = check_recovered(f"killed host {i} {variant} {options}", directory, reference)
        some += journal is not None and 0 < len(journal.arguments) < TASKS * 6
        shutil.rmtree(directory, ignore_errors=True)
    expect("runs that were killed amid their records", some > 0, True)


def test_host_interrupted(scene, reference):
    for variant, number in ((VARIANTS[0], signal.SIGINT), (VARIANTS[3], signal.SIGTERM)):
        directory = root / f"dump{next(numbers)}"
        process = start(scene, variant, directory, "--dump-arena", "64K", SURVIVAL_SLOWER="60")
        wait_for_journal(directory, 8192)
        process.send_signal(number)
        process.communicate()
        expect(f"{number}: ended by it", process.returncode, -number)
        kept = check_recovered(f"{number} {variant}", directory, reference)
        expect(f"{number}: records are kept", bool(kept and kept.arguments), True)
        expect_no_processes()


# --- the chip is killed ---

def test_chip_killed(scene, reference):
    for i, variant in enumerate(VARIANTS[:2] if SANITIZED else VARIANTS):
        directory = root / f"dump{next(numbers)}"
        process = start(scene, variant, directory, "--dump-arena", "1M", SURVIVAL_SLOWER="60")
        chip = chip_of(process)
        wait_until((directory / "run.json").exists)
        time.sleep(0.06 * i)  # the first one before anything is handed over
        os.kill(chip, signal.SIGKILL)
        _, errors = process.communicate()
        what = f"killed chip {variant}"
        expect(f"{what}: exit code", process.returncode, 3)
        expect(f"{what}: says so", "the chip process was killed by SIGKILL" in errors, True)
        journal = check_dump(what, directory, reference)
        expect(f"{what}: complete", manifest_of(directory)["complete"], False)
        gaps = [t for t in journal.done if sum(k[0] == t for k in journal.arguments) != 6]
        expect(f"{what}: tasks that are done have all arguments", gaps, [])


def test_chip_ends_itself(reference):
    """The outputs of all ancestors of the task that ended the run, and its inputs, were in global memory."""
    fatal = "#include <signal.h>\n" + MINGLE.replace(
        "    struct timespec", f"    if (gbx_arg_u32(args, 3) == {FATAL_TASK}) raise(SIGKILL);\n    struct timespec")
    scene = make_scene("fatal", **{"mingle.c": fatal})
    ancestors = range(FATAL_TASK % 6, FATAL_TASK, 6)
    for variant in VARIANTS:
        directory, result = run(scene, variant)
        what = f"chip that kills itself {variant}"
        expect(f"{what}: exit code", result.returncode, 3)
        expect(f"{what}: names the kernel", "SIGKILL while running kernel mingle" in result.stderr, True)
        journal = check_dump(what, directory, reference)
        expect(f"{what}: tasks before it", [t for t in ancestors if t not in journal.done], [])
        missing = [k for k in reference.values["default"] if k not in journal.arguments
                   and (k[0] in ancestors or (k[0] == FATAL_TASK and k[1] == 0))]
        expect(f"{what}: their arguments, and its own inputs", missing, [])
        expect(f"{what}: not its outputs", [k for k in journal.arguments if k[0] == FATAL_TASK and k[1] == 1], [])
        shutil.rmtree(directory)


# --- the disk fails or is slow (dump_disk.c) ---

class Disk:
    def __init__(self):
        self.library = build_disk(root)

    def run(self, scene, variant, deed, first, last, *more, file="/tensor_dump.", ms=0, case="quick"):
        """The calls on files whose path contains `file`."""
        count = root / f"calls{next(numbers)}"
        directory, result = run(scene, variant, "--case", case, "--dump-arena", "1M", *more,
                                LD_PRELOAD=str(self.library), DUMP_DISK_DEED=deed, DUMP_DISK_FIRST=str(first),
                                DUMP_DISK_LAST=str(last), DUMP_DISK_FILE=file, DUMP_DISK_MS=str(ms),
                                DUMP_DISK_COUNT=str(count))
        self.calls = int(count.read_text()) if count.exists() else 0
        return directory, result


def test_host_killed_at_every_kind_of_call(scene, reference, disk):
    """Before a call, or after half of a write: at the start, during the run, and at the end."""
    directory, _ = disk.run(scene, VARIANTS[0], "count", 1, 1, file="/dump")
    names = len(list(directory.rglob("*")))
    expect("calls", disk.calls > 3 * names, True)
    moments = [*range(1, 18, 2), *range(18, disk.calls - 24, 13), *range(disk.calls - 24, disk.calls + 2)]
    for i, number in enumerate(moments):
        variant = VARIANTS[i % len(VARIANTS)]
        deed = ("kill", "half")[i // 2 % 2]
        directory, result = disk.run(scene, variant, deed, number, number, file="/dump")
        check_recovered(f"{deed} at call {number} {variant}", directory, reference, "quick")
        shutil.rmtree(directory, ignore_errors=True)


def check_disk(what, directory, result, reference, code):
    expect(f"{what}: exit code ({result.stderr})", result.returncode, code)
    expect(f"{what}: says it in a sentence or two", 1 <= result.stderr.count("\n") <= 2, True)
    if code == 2:
        expect(f"{what}: leaves no dump", (directory / "tensor_dump" / "tensor_dump.rec").exists(), False)
        return None
    recovered = tool("recover", directory)
    expect(f"{what}: recover", (recovered.returncode, recovered.stderr), (0, ""))
    return check_dump(what, directory, reference, "quick")


def test_disk_that_fails(scene, reference, disk):
    forever = 1 << 40
    cases = [  # deed, first, last, file, exit code
        ("full", 1, forever, "/dump", 2),
        ("full", 1, 1, "tensor_dump.rec", 2),
        ("broken", 2, forever, "tensor_dump.rec", 2),
        ("full", 3, forever, "/tensor_dump", 2),
        ("full", 3, forever, "tensor_dump.bin", 4),
        ("broken", 5, 5, "tensor_dump.bin", 4),
        ("full", 9, 12, "tensor_dump.bin", 4),
        ("full", 5, forever, "tensor_dump.rec", 4),
        ("broken", 6, 6, "tensor_dump.rec", 4),
        ("full", 1, forever, "tensor_dump.json", 4),
        ("broken", 2, forever, "kernel_args_dump.json", 4),
        ("full", 5, forever, "run.json", 4),
    ]
    for i, (deed, first, last, file, code) in enumerate(cases):
        variant = VARIANTS[i % len(VARIANTS)]
        directory, result = disk.run(scene, variant, deed, first, last, file=file)
        what = f"{deed} from call {first} to {last} of {file} {variant}"
        journal = check_disk(what, directory, result, reference, code)
        if journal and file == "tensor_dump.bin":
            check_itemised(what, directory, journal, reference, "quick", "disk")
        shutil.rmtree(directory, ignore_errors=True)


def test_disk_that_is_slow(scene, reference, disk):
    """One write takes some seconds. With a long timeout nothing is lost and it is not called a hang; with a short one the
    losses are reported, and the device does not wait for each record. A stalled machine gets longer timeouts."""
    def run_with(variant, ms, *more):
        directory, result = disk.run(scene, variant, "slow", 12, 12, *more, file="tensor_dump.bin", ms=ms, case="default")
        return directory, result, (manifest_of(directory) or {"stall_ns": 0})["stall_ns"] * 1e-9

    def go(variant):
        for timeout in (1, 5, 20):
            patient = run_with(variant, 1000 * timeout + 1500, "--timeout", str(timeout))
            if patient[1].returncode == 0 and patient[2] > timeout:
                break
        for seconds in (2, 10, 40):
            hasty = run_with(variant, 1000 * seconds, "--dump-stall-timeout", "0.1")
            if hasty[1].returncode == 4 and hasty[2] < seconds:
                break
        return (*patient, timeout), (*hasty, seconds)

    variants = VARIANTS[:2] + VARIANTS[5:]
    for variant, runs in zip(variants, at_once(go, variants)):
        (patient, patient_result, waited, timeout), (hasty, hasty_result, stalled, seconds) = runs
        what = f"slow disk {variant}"
        expect(f"{what}: exit code", (patient_result.returncode, patient_result.stderr), (0, ""))
        journal = check_dump(what, patient, reference)
        expect(f"{what}: all arguments", len(journal.arguments), TASKS * 6)
        expect(f"{what}: waited for {waited} s", waited > timeout, True)
        what = f"slow disk, short timeout {variant}"
        expect(f"{what}: exit code", hasty_result.returncode, 4)
        journal = check_dump(what, hasty, reference)
        check_itemised(what, hasty, journal, reference, "default", "stall")
        # Two threads that wait once for each kind of room: 0.4 s; if they waited each time: much longer.
        expect(f"{what}: waited for {stalled} s", stalled < seconds, True)


# --- others ---

def test_stopped_host(scene, reference):
    """A host that is stopped for longer than the timeout of the watchdog; a stalled machine may use that up too."""
    def go(variant):
        for timeout in (1, 5, 20):
            directory = root / f"dump{next(numbers)}"
            process = start(scene, variant, directory, "--dump-arena", "1M", "--timeout", str(timeout))
            wait_until((directory / "run.json").exists)
            process.send_signal(signal.SIGSTOP)
            time.sleep(timeout + 1)
            process.send_signal(signal.SIGCONT)
            errors = process.communicate()[1]
            if process.returncode == 0:
                break
        return directory, errors, process.returncode

    for variant, (directory, errors, code) in zip(VARIANTS[:2], at_once(go, VARIANTS[:2])):
        what = f"stopped host {variant}"
        expect(f"{what}: exit code", (code, errors), (0, ""))
        journal = check_dump(what, directory, reference)
        expect(f"{what}: all arguments", len(journal.arguments), TASKS * 6)


def test_least_room(scene, reference):
    for variant in VARIANTS:
        directory, result = run(scene, variant, "--case", "quick", "--dump-arena", "64K", "--dump-buffers", "2",
                                "--threads", "8", "--blocks", "24")
        what = f"least room {variant}"
        expect(f"{what}: exit code", (result.returncode, result.stderr), (0, ""))
        journal = check_dump(what, directory, reference, "quick")
        expect(f"{what}: all of it", (len(journal.arguments), journal.end, journal.losses), (240, True, []))
        shutil.rmtree(directory)


def test_two_at_once(scene, reference):
    """Two runs into one directory: one gets it, complete; the other reports it."""
    directory = root / "both äöü"
    processes = [start(scene, VARIANTS[0], directory, "--case", "quick") for _ in range(2)]
    errors = [p.communicate()[1] for p in processes]
    expect("two at once: exit codes", sorted(p.returncode for p in processes), [0, 2])
    expect("two at once: says so", sum("already holds a dump" in e for e in errors), 1)
    journal = check_dump("two at once", directory, reference, "quick")
    expect("two at once: all arguments", len(journal.arguments), 240)


def test_dump_that_cannot_begin(scene, reference):
    """Leaves nothing: the same name can be used again."""
    directory, result = run(scene, VARIANTS[0], "--case", "quick", "--dump-arena", "1G")
    expect("no room on the chip: exit code", (result.returncode, "--dump-arena" in result.stderr), (2, True))
    again = subprocess.run(arguments_of(scene, VARIANTS[0], directory, "--case", "quick"), capture_output=True,
                           text=True)
    expect("the same directory again", (again.returncode, again.stderr), (0, ""))
    check_dump("the same directory again", directory, reference, "quick")


def main():
    for number in (signal.SIGINT, signal.SIGTERM):  # ignored where this runs in the background
        signal.signal(number, lambda *_: sys.exit(1))
    adopt_orphans()
    scene = make_scene("scene")
    try:
        reference = Reference(scene)
        tests = [test_host_killed, test_host_interrupted, test_chip_killed, test_stopped_host, test_least_room,
                 test_two_at_once, test_dump_that_cannot_begin]
        for test in tests:
            timed(test, scene, reference)
        timed(test_chip_ends_itself, reference)
        if not SANITIZED:  # whose libraries must be loaded first
            disk = Disk()
            for test in (test_host_killed_at_every_kind_of_call, test_disk_that_fails, test_disk_that_is_slow):
                timed(test, scene, reference, disk)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{passed} checks passed, {failed} failed")
    sys.exit(1 if failed else 0)


def timed(test, *arguments):
    start_s = time.monotonic()
    test(*arguments)
    print(f"{test.__name__}: {time.monotonic() - start_s:.1f} s", flush=True)


main()
