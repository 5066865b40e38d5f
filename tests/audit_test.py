#!/usr/bin/python3
"""glassbox audit: nothing found in good runs, and every planted bug found and named.

usage: audit_test.py GLASSBOX EXAMPLES

The examples run on every runtime and platform; one planted bug runs on every runtime, the others on one that has them, or
with GLASSBOX_STRESS on all and both platforms.

Bugs are planted in scenes that are written here, with kernels whose results are known, and in dumps that are made byte
by byte (dump_encoder.py), where a model of memory, a byte at a time, says what has to be found.
"""
import json
import os
import pathlib
import shlex
import struct
import sys
import tempfile

import numpy as np

from command_support import PLATFORMS, RUNTIMES, STRESS, check, glassbox, report
from dump_encoder import DONE, EDGES, IN_FLIGHT, NONE, PAYLOAD, Dump, record, row_major
from view_support import element_bytes

EXPLICIT = RUNTIMES[:2]
BEFORE, AFTER = "before_dispatch", "after_completion"
EXAMPLES = ("vector_example", "bgemm", "mix_spmd", "paged_attention", "dump_tensor_example", "broken_softmax")


def audit(directory, code):
    result = glassbox("audit", directory, "--json")
    if not check(f"audit {directory.name}: exit code and stderr", (result.returncode, result.stderr), (code, "")):
        return {"findings": []}
    return json.loads(result.stdout)


def first_line(directory, code):
    result = glassbox("audit", directory)
    check(f"audit {directory.name}: exit code and stderr", (result.returncode, result.stderr), (code, ""))
    return result.stdout.split("\n")[0], result.stdout


# --- good runs ---


def run_scene(scene, directory, platform, runtime):
    run = glassbox("run", scene, "--dump-tensor", "--no-golden", "-p", platform, "--runtime", runtime, "--blocks", "2", "-o",
                   directory)
    check(f"run {scene.name} {platform} {runtime}", (run.returncode, run.stderr), (0, ""))
    return json.loads((directory / "tensor_dump" / "tensor_dump.json").read_text())


def addresses(entry):
    """Of all bytes of a view of whole bytes."""
    bits = element_bytes(entry["dtype"])
    return place((np.dtype(f"V{bits}"), entry["shape"], entry["strides"], entry["start_offset"], int(entry["buffer_addr"], 16)))


def count_first_reads(tensors):
    """Inputs of whose memory nothing was known when they were read, by addresses and times alone."""
    base = min(int(entry["buffer_addr"], 16) for entry in tensors)
    places = [addresses(entry) - base for entry in tensors]
    known, first = np.zeros(max(int(at.max(initial=0)) for at in places) + 1, bool), 0
    for at, entry in sorted(zip(places, tensors), key=lambda pair: (pair[1]["time_ns"], pair[1]["stage"] == BEFORE)):
        first += entry["stage"] == BEFORE and not known[at].any()
        known[at] = True
    return first


def test_examples(root, examples):
    """Nothing is found, and all inputs were compared but those that are the first to read their memory."""
    for example in EXAMPLES:
        for runtime in RUNTIMES:
            for platform in PLATFORMS:
                directory = root / f"{example}_{runtime}_{platform}"
                manifest = run_scene(pathlib.Path(examples) / example, directory, platform, runtime)
                tensors = [entry for entry in manifest["tensors"] if entry["kind"] == "tensor"]
                reads = sum(entry["stage"] == BEFORE for entry in tensors)
                first_reads = count_first_reads(tensors)
                got = audit(directory, 0)
                check(f"{directory.name}: findings", got["findings"], [])
                check(f"{directory.name}: counts", [got[key] for key in ("tasks", "records", "inputs", "compared",
                                                                         "first_reads", "raced", "order")],
                      [len({entry["task_seq"] for entry in manifest["tensors"]}), len(tensors), reads, reads - first_reads,
                       first_reads, 0, "edges" if runtime in EXPLICIT else "times"])


# --- planted bugs ---


def combinations(chosen, runtimes=RUNTIMES):
    """Of runtimes and platforms: the chosen runtimes, one platform each; with GLASSBOX_STRESS all."""
    every = [(runtime, platform) for runtime in runtimes for platform in PLATFORMS]
    return every if STRESS else [(runtime, PLATFORMS[RUNTIMES.index(runtime) % 2]) for runtime in chosen]


KERNEL_HEAD = """#include <glassbox/kernel.h>
#include <sched.h>
#define X(i) gbx_tensor_f32(gbx_arg_tensor(args, 0))[i]
#define Y(i) gbx_tensor_f32(gbx_arg_tensor(args, 1))[i]
#define Z(i) gbx_tensor_f32(gbx_arg_tensor(args, 2))[i]
#define COUNT(k) gbx_tensor_numel(gbx_arg_tensor(args, k))
#define FLAG(k) ((int *)(uintptr_t)gbx_arg_u64(args, k))
void kernel_entry(const uint64_t *args) {
"""
PLUS = "for (int64_t i = 0; i < COUNT(1); ++i) Y(i) = X(i) + 1.0f;\n"
JOIN = "for (int64_t i = 0; i < COUNT(2); ++i) Z(i) = X(i) + Y(i);\n"
WAIT = "while (!__atomic_load_n(FLAG(2), __ATOMIC_ACQUIRE)) sched_yield();\n"
KERNELS = {
    "plus": (1, PLUS),
    "join": (2, JOIN),
    "poke": (1, PLUS + "float *to = (float *)(uintptr_t)gbx_arg_u64(args, 2);\n"
                       "for (int i = 0; i < 3; ++i) to[i] = 100.5f + (float)i;\n"),
    "overflow": (1, PLUS + "for (uint64_t i = 0; i < gbx_arg_u64(args, 2); ++i) Y(COUNT(1) + (int64_t)i) = -7.25f;\n"),
    "spoil": (1, PLUS + "X(gbx_arg_u64(args, 2)) = 55.0f;\n"),
    "wait_plus": (1, WAIT + PLUS),
    "plus_tell": (1, PLUS + "__atomic_store_n(FLAG(2), 1, __ATOMIC_RELEASE);\n"),
    "tell_join": (2, "__atomic_store_n(FLAG(3), 1, __ATOMIC_RELEASE);\n" + JOIN),
    "tile": (1, "const gbx_tensor *y = gbx_arg_tensor(args, 1);\n"
                "for (int64_t i = 0; i < y->shape[0]; ++i)\n"
                "  for (int64_t k = 0; k < y->shape[1]; ++k)\n"
                "    Y(i * y->strides[0] + k * y->strides[1]) = (float)gbx_arg_u64(args, 2) + X(0);\n"),
}
NAMES = list(KERNELS)

ORCHESTRATION_HEAD = """#include <glassbox/orchestration.h>
#include <string.h>
#if defined HOST
static gbx_tensor on_chip(gbx_orchestration *o, const gbx_tensor *tensor) {
    gbx_tensor made = *tensor;
    made.buffer_bytes = (uint64_t)gbx_tensor_numel(tensor) * 4;
    made.data = gbx_device_malloc(o, made.buffer_bytes);
    gbx_copy_to_device(o, made.data, gbx_tensor_f32(tensor), made.buffer_bytes);
    return made;
}
static gbx_task add(gbx_orchestration *o, uint32_t kernel, const gbx_tensor *tensors, uint32_t inputs, uint64_t scalar) {
    uint64_t words[4];
    gbx_tensor_info infos[3];
    for (uint32_t i = 0; i <= inputs; ++i) {
        words[i] = gbx_device_tensor(o, &tensors[i]);
        infos[i] = (gbx_tensor_info){i, i < inputs ? GBX_ROLE_INPUT : GBX_ROLE_OUTPUT, tensors[i]};
    }
    words[inputs + 1] = scalar;
    return gbx_add_task_with_tensor_info(o, gbx_aiv(kernel), words, inputs + 2, infos, inputs + 1);
}
#define ORDER(from, to) gbx_add_successor(o, from, to)
#define PUBLISH(task) (void)(task)
#else
#define on_chip(o, tensor) (*(tensor))
static gbx_task add(gbx_orchestration *o, uint32_t kernel, const gbx_tensor *tensors, uint32_t inputs, uint64_t scalar) {
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < inputs; ++i)
        gbx_args_add_input(&args, &tensors[i]);
    gbx_args_add_output(&args, &tensors[inputs]);
    gbx_args_add_u64(&args, scalar);
#if defined AICPU
    return gbx_add_task_with_args(o, gbx_aiv(kernel), &args);
#else
    return gbx_submit_aiv_task(o, kernel, &args);
#endif
}
#if defined AICPU
#define ORDER(from, to) gbx_add_successor_conditional(o, from, to)
#define PUBLISH(task) gbx_publish_task(o, task)
#else
#define ORDER(from, to) (void)0
#define PUBLISH(task) (void)(task)
#endif
#endif
static inline gbx_tensor slice(gbx_tensor tensor, uint32_t dim, int64_t start, int64_t end) {
    return gbx_view_slice(&tensor, dim, start, end - start);
}
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    enum { x, s, t, u, f, pool, matrix, flag, BUFFERS };
    gbx_tensor b[BUFFERS];
    for (int i = 0; i < BUFFERS; ++i)
        b[i] = on_chip(o, &run->tensors[i]);
"""
BUFFERS = (("x", "in", [32]), ("s", "inout", [32]), ("t", "inout", [32]), ("u", "inout", [32]), ("f", "inout", [32]),
           ("pool", "inout", [64]), ("matrix", "inout", [16, 16]), ("flag", "inout", [1]))
X = np.arange(32, dtype=np.float32)


def tensor_text(name):
    """A whole buffer, a slice `pool[32:64]`, a tile `matrix[4:12,4:12]`."""
    if "[" not in name:
        return f"b[{name}]"
    buffer, inside = name[:-1].split("[")
    text = f"b[{buffer}]"
    for dim, part in enumerate(inside.split(",")):
        start, end = part.split(":")
        text = f"slice({text}, {dim}, {start}, {end})"
    return text


def write_kernels(directory):
    """Those of all scenes lie in one directory: each is compiled once."""
    if directory.exists():
        return
    directory.mkdir(parents=True)
    for name, (_, body) in KERNELS.items():
        (directory / f"{name}.c").write_text(KERNEL_HEAD + body + "}\n")


def write_scene(root, scene_name, tasks, edges):
    """`tasks` are of kernel, inputs, output, text of the scalar."""
    directory = root / "planted"
    write_kernels(directory / "kernels")
    names = list(dict.fromkeys(task[0] for task in tasks))
    kernels = [{"func_id": NAMES.index(name), "name": name, "source": f"kernels/{name}.c", "core": "aiv",
                "signature": ["in"] * KERNELS[name][0] + ["out", "scalar:uint64"],
                "arg_names": ["a", "b"][:KERNELS[name][0]] + ["out", "number"]} for name in names]
    body = ORCHESTRATION_HEAD
    for i, (kernel, inputs, output, scalar) in enumerate(tasks):
        tensors = ", ".join(tensor_text(name) for name in [*inputs, output])
        body += f"    const gbx_tensor tensors{i}[] = {{{tensors}}};\n"
        body += f"    gbx_task task{i} = add(o, {NAMES.index(kernel)}, tensors{i}, {len(inputs)}, {scalar});\n"
        body += "".join(f"    ORDER(task{a}, task{b});\n" for a, b in edges if b == i)
        body += f"    PUBLISH(task{i});\n"
    for name, word in zip(RUNTIMES, ("HOST", "AICPU", "TENSORMAP")):
        (directory / f"{scene_name}_{name}.c").write_text(f"#define {word}\n{body}    return 0;\n}}\n")
    scene = {"name": scene_name, "kernels": kernels,
             "orchestrations": {name: {"source": f"{scene_name}_{name}.c"} for name in RUNTIMES},
             "args": [{"name": name, "dtype": "float32", "shape": shape, "role": role,
                       **({"fill": "arange"} if name == "x" else {"fill": "constant", "value": 0.0})}
                      for name, role, shape in BUFFERS]}
    path = directory / f"{scene_name}.json"
    path.write_text(json.dumps(scene))
    return path


def entry_of(manifest, task, stage, arg):
    return next(entry for entry in manifest["tensors"] if entry["kind"] == "tensor" and
                (entry["task_seq"], entry["stage"], entry["arg_index"]) == (task, stage, arg))


def side(manifest, task, stage, arg, begin, end):
    """What a finding says of one of its tasks; begin and end relative to the buffer."""
    entry = entry_of(manifest, task, stage, arg)
    return {"task_seq": task, "task_id": entry["task_id"], "kernel": "+".join(entry["kernel"]), "index": entry["index"],
            "arg_index": arg, "arg_name": entry["arg_name"], "stage": stage, "buffer_addr": entry["buffer_addr"],
            "begin": begin, "end": end}


def finding(manifest, kind, first, second, begin, end, element):
    """`first` and `second` are of task, stage, argument; of the element index, expected, found."""
    address = int(entry_of(manifest, *second)["buffer_addr"], 16) + begin
    shift = address - begin - int(entry_of(manifest, *first)["buffer_addr"], 16)
    return {"kind": kind, "first": side(manifest, *first, begin + shift, end + shift),
            "second": side(manifest, *second, begin, end),
            "range": {"address": f"0x{address:016x}", "bytes": end - begin, "begin": begin, "end": end},
            "element": element and {"index": element[0], "dtype": "float32", "expected": element[1], "found": element[2]}}


def compare_one(what, got, expected, **more):
    """The one finding, and members of it that are told apart."""
    if not check(f"{what}: number of findings", len(got["findings"]), 1):
        return
    found = got["findings"][0]
    check(what, {key: found[key] for key in expected}, expected)
    check(f"{what}: how", {key: found[key] for key in more}, more)


def suspects_of(got):
    return [(each["task_seq"], each["kernel"], each["reason"], each.get("arg_name"), each.get("distance"))
            for each in got["findings"][0]["suspects"]] if got["findings"] else None


def test_wild_write(root):
    """Task 2 writes into the tensor of task 0, by an address that it has as a number."""
    scene = write_scene(root, "wild", [("plus", ["x"], "s", "0"), ("plus", ["s"], "u", "0"),
                                        ("poke", ["u"], "t", "b[s].data + 5 * 4"), ("join", ["s", "t"], "f", "0")],
                        [(0, 1), (1, 2), (0, 3), (2, 3)])
    for runtime, platform in combinations(RUNTIMES):
        directory = root / f"wild_{runtime}_{platform}"
        manifest = run_scene(scene, directory, platform, runtime)
        got = audit(directory, 1)
        expected = finding(manifest, "undeclared_write", (0, AFTER, 1), (3, BEFORE, 0), 20, 32, ([5], 6.0, 100.5))
        compare_one(directory.name, got, expected, compared=True, concurrent=False, no_path=False, seen=False)
        check(f"{directory.name}: suspects", sorted(task for task, *_ in suspects_of(got)), [1, 2])
    line, text = first_line(directory, 1)
    check("text: first line", line, "1 finding in 9 records of 4 tasks; the first:")
    address = int(expected["range"]["address"], 16)
    check("text: finding", text.split("\n")[1:4],
          ["undeclared write: task 3 (join), argument 0 a, does not hold what task 0 (plus), argument 1 out, left there",
           f"  within 12 bytes at 0x{address:x}: bytes 20 to 31 of the buffer of argument 0 a of task 3",
           "  first element that differs: [5], expected 6.0, found 100.5"])
    # Which lies nearer is up to the allocator.
    replayed = suspects_of(got)[0][0]
    check("text: suspects", sorted(line[:17] for line in text.split("\n")[5:7]), ["    task 1 (plus)", "    task 2 (poke)"])
    check("text: replay", text.split("\n")[4:9:3],
          ["  tasks that ran meanwhile, the likeliest to have written it first:",
           "  a replay shows what the first of them writes outside of its outputs:"])
    check("text: the line", text.split("\n")[8], f"    glassbox replay {directory} --task {replayed}")


def test_spoiled_input(root):
    """Task 1 writes into what it said that it reads."""
    scene = write_scene(root, "spoiled", [("plus", ["x"], "s", "0"), ("spoil", ["s"], "u", "3"),
                                           ("join", ["s", "u"], "f", "0")], [(0, 1), (0, 2), (1, 2)])
    for runtime, platform in combinations(RUNTIMES[2:]):
        directory = root / f"spoiled_{runtime}_{platform}"
        manifest = run_scene(scene, directory, platform, runtime)
        got = audit(directory, 1)
        expected = finding(manifest, "undeclared_write", (0, AFTER, 1), (2, BEFORE, 0), 12, 16, ([3], 4.0, 55.0))
        compare_one(directory.name, got, expected)
        check(f"{directory.name}: suspects", suspects_of(got), [(1, "spoil", "argument_there", "a", 0)])
    line = got["findings"][0]["suspects"][0]["replay"]
    check("spoiled: the line that replays the suspect", line, f"glassbox replay {directory} --task 1")
    text = first_line(directory, 1)[1].split("\n")
    check("spoiled: text", (text[4], text[7]), ("  the only task that ran meanwhile:", f"    {line}"))
    replayed = glassbox(*shlex.split(line)[1:]).stdout
    check("spoiled: the replay shows it", [word for word in ("outside of its outputs", "in argument 0 a") if word not in replayed], [])


def test_overflow(root):
    """Task 2 writes two elements more than its output has, into the tensor behind it."""
    scene = write_scene(root, "overflow", [("plus", ["x"], "pool[32:64]", "0"), ("plus", ["pool[32:64]"], "u", "0"),
                                            ("overflow", ["u"], "pool[0:32]", "2"),
                                            ("join", ["pool[32:64]", "pool[0:32]"], "f", "0")],
                        [(0, 1), (1, 2), (0, 3), (2, 3)])
    for runtime, platform in combinations(RUNTIMES[1:2]):
        directory = root / f"overflow_{runtime}_{platform}"
        manifest = run_scene(scene, directory, platform, runtime)
        got = audit(directory, 1)
        expected = finding(manifest, "undeclared_write", (0, AFTER, 1), (3, BEFORE, 0), 128, 136, ([0], 1.0, -7.25))
        compare_one(directory.name, got, expected)
        check(f"{directory.name}: the one that ends there comes first", suspects_of(got),
              [(2, "overflow", "output_ends_before", "out", 0), (1, "plus", "argument_there", "a", 0)])
    check("overflow: text", first_line(directory, 1)[1].split("\n")[5],
          "    task 2 (overflow), whose argument 1 out ends right before")


def test_missing_edges(root):
    """Task 1 is dispatched while task 0 waits for it: it cannot have read what task 0 writes afterwards."""
    host, aicpu = EXPLICIT
    early = write_scene(root, "early", [("wait_plus", ["x"], "s", "b[flag].data"),
                                        ("tell_join", ["s", "x"], "f", "b[flag].data")], [])
    for runtime, platform in combinations([aicpu], EXPLICIT):
        directory = root / f"early_{runtime}_{platform}"
        manifest = run_scene(early, directory, platform, runtime)
        compare_one(directory.name, audit(directory, 1),
                    finding(manifest, "read_too_early", (0, AFTER, 1), (1, BEFORE, 0), 0, 128, ([0], 1.0, 0.0)),
                    no_path=True, compared=True, read_first=False)
    tasks = [("plus_tell", ["x"], "s", "b[flag].data"), ("wait_plus", ["x"], "u", "b[flag].data"),
             ("join", ["s", "u"], "f", "0")]
    lucky = write_scene(root, "lucky", tasks, [(1, 2)])
    for runtime, platform in combinations([host], EXPLICIT):
        directory = root / f"lucky_{runtime}_{platform}"
        manifest = run_scene(lucky, directory, platform, runtime)
        compare_one(directory.name, audit(directory, 1),
                    finding(manifest, "read_too_early", (0, AFTER, 1), (2, BEFORE, 0), 0, 128, None),
                    no_path=True, compared=True, read_first=False)
    check("text: edge", first_line(directory, 1)[1].split("\n")[3:5],
          ["  this time it read what was written in the end", "  missing: an edge from task 0 to task 2"])
    ordered = write_scene(root, "ordered", tasks, [(0, 2), (1, 2)])
    for runtime, platform in combinations([host], EXPLICIT):
        directory = root / f"ordered_{runtime}_{platform}"
        run_scene(ordered, directory, platform, runtime)
        check(f"{directory.name}: findings", audit(directory, 0)["findings"], [])
    late = write_scene(root, "late", [("join", ["s", "x"], "f", "0"), ("plus", ["x"], "s", "0")], [])
    for runtime, platform in combinations([aicpu], EXPLICIT):
        directory = root / f"late_{runtime}_{platform}"
        manifest = run_scene(late, directory, platform, runtime)
        compare_one(directory.name, audit(directory, 1),
                    finding(manifest, "read_too_early", (1, AFTER, 1), (0, BEFORE, 0), 0, 128, None),
                    no_path=True, read_first=True)
    check("text: edge of a late read", first_line(directory, 1)[1].split("\n")[4], "  missing: an edge from task 0 to task 1")


def test_tiles(root):
    """Two tiles that share four rows of four elements; where the runtime finds the edges, they come in an order."""
    scene = write_scene(root, "tiles", [("tile", ["x"], "matrix[0:8,0:8]", "10"), ("tile", ["x"], "matrix[4:12,4:12]", "20"),
                                         ("plus", ["matrix[0:2,0:16]"], "f", "0")], [(0, 2), (1, 2)])
    for runtime, platform in combinations((RUNTIMES[0], RUNTIMES[2])):
        directory = root / f"tiles_{runtime}_{platform}"
        manifest = run_scene(scene, directory, platform, runtime)
        if runtime not in EXPLICIT:
            check(f"{directory.name}: findings", audit(directory, 0)["findings"], [])
            continue
        payload = (directory / "tensor_dump" / "tensor_dump.bin").read_bytes()
        tiles = [np.frombuffer(payload, np.float32, 64, entry_of(manifest, task, AFTER, 1)["bin_offset"]).reshape(8, 8)
                 for task in (0, 1)]
        differs = np.argwhere(tiles[0][4:, 4:] != tiles[1][:4, :4])
        element = None if len(differs) == 0 else (differs[0].tolist(), float(tiles[0][4:, 4:][tuple(differs[0])]),
                                                  float(tiles[1][:4, :4][tuple(differs[0])]))
        begin, end = (4 * 16 + 4) * 4, (7 * 16 + 8) * 4
        compare_one(directory.name, audit(directory, 1),
                    finding(manifest, "overlapping_writes", (0, AFTER, 1), (1, AFTER, 1), begin, end, element),
                    no_path=True, compared=True)
        check(f"{directory.name}: what tile 1 wrote", tiles[1][7, 7], 20.0)


# --- dumps made byte by byte ---

FUNCTIONS = [{"func_id": 0, "name": "k", "core_type": "aiv", "signature": ["in", "out"], "arg_names": ["a", "out"]}]


class Recorded:
    """A dump of tasks one after the other, each with the bytes that it read and wrote."""

    def __init__(self, directory, runtime="tensormap_and_ringbuffer", **more):
        self.dump = Dump(directory, FUNCTIONS, runtime=runtime, **more)
        self.directory, self.time = directory, 0

    def begin(self, task):
        self.time += 10
        self.dump.task(task, (None, 0, None), time=self.time)

    def read(self, task, arg, name, shape, data, address, **more):
        self.dump.tensor(task, arg, name, shape, data, address=address, time=self.time, **more)

    def write(self, task, arg, name, shape, data, address, **more):
        self.dump.tensor(task, arg, name, shape, data, address=address, time=self.time + 5, role=1, stage=1, **more)

    def done(self, task):
        self.dump.records.append(record(DONE, task, 1, arg=NONE, time=self.time + 5))

    def edges(self, task, *predecessors):
        self.dump.records.append(record(EDGES, task, NONE, arg=NONE, body=struct.pack(f"<{len(predecessors)}Q", *predecessors)))

    def finish(self, code, end={}):
        if end is not None:
            self.dump.end(**end)
        self.dump.write()
        return audit(self.directory, code)

    def without_payload(self):
        """Of the last record: its hash stays, its bytes go."""
        last = bytearray(self.dump.records[-1])
        flags = struct.unpack_from("<H", last, 6)[0] & ~PAYLOAD
        struct.pack_into("<H", last, 6, flags)
        struct.pack_into("<2Q", last, 40, 0, 0)
        self.dump.records[-1] = bytes(last)


def one_after_other(directory, written, read, name="float32", keep=None, is_hashed_alone=False, **more):
    """Task 0 writes a vector, task 1 reads it."""
    made = Recorded(directory, **more)
    count = len(written) * 2 if name == "int4" else len(written) // np.dtype(name).itemsize
    made.begin(0)
    made.write(0, 1, name, (count,), written, 0x1000, keep=keep)
    if is_hashed_alone:
        made.without_payload()
    made.done(0)
    made.begin(1)
    made.read(1, 0, name, (count,), read, 0x1000, keep=keep)
    if is_hashed_alone:
        made.without_payload()
    made.done(1)
    return made


def elements(got):
    return [each["element"] for each in got["findings"]]


def ranges(got):
    return [(each["range"]["begin"], each["range"]["end"]) for each in got["findings"]]


def test_parts_of_tensors(root):
    """What is there in part, as a hash, or packed."""
    old = np.arange(8, dtype=np.float32)
    new = old.copy()
    new[6] = 9
    got = one_after_other(root / "kept", old.tobytes(), new.tobytes()).finish(1)
    check("kept: element", elements(got), [{"index": [6], "dtype": "float32", "expected": 6.0, "found": 9.0}])
    got = one_after_other(root / "cut_before", old.tobytes(), new.tobytes(), keep=20).finish(0)
    check("cut before it: not audited", (got["not_audited"]["no_bytes"], got["compared"]), (1, 0))
    got = one_after_other(root / "cut_behind", old.tobytes(), new.tobytes(), keep=28).finish(1)
    check("cut behind it: element", elements(got), [{"index": [6], "dtype": "float32", "expected": 6.0, "found": 9.0}])
    got = one_after_other(root / "hashes", old.tobytes(), new.tobytes(), is_hashed_alone=True, level="stats").finish(1)
    check("hashes that differ", (elements(got), ranges(got), got["findings"][0]["compared"]), ([None], [(0, 32)], False))
    got = one_after_other(root / "same_hashes", old.tobytes(), old.tobytes(), is_hashed_alone=True, level="stats").finish(0)
    check("hashes that are equal", (got["compared"], got["findings"]), (1, []))
    halves = bytes(range(0x10, 0x18))
    changed = halves[:4] + bytes([halves[4] ^ 0x30]) + halves[5:]
    got = one_after_other(root / "halves", halves, changed, "int4").finish(1)
    check("int4: element", elements(got), [{"index": [9], "dtype": "int4", "expected": 1, "found": 2}])


def test_same_bytes(root):
    """Other dtypes over the same bytes, bits that have the same text, tasks that took no time."""
    old = np.arange(4, dtype=np.float32)
    for name, hashed in (("bytes", False), ("hashes", True)):
        for shape, dtype in (((4,), "int32"), ((16,), "uint8"), ((2, 4), "float16")):
            for change, code in ((0, 0), (1, 1)):
                made = Recorded(root / f"as_{dtype}_{name}_{code}", level="stats" if hashed else "full")
                made.begin(0)
                made.write(0, 1, "float32", (4,), old.tobytes(), 0x1000)
                if hashed:
                    made.without_payload()
                made.done(0)
                made.begin(1)
                made.read(1, 0, dtype, shape, (old + [0, 0, change, 0]).astype(np.float32).tobytes(), 0x1000)
                if hashed:
                    made.without_payload()
                made.done(1)
                got = made.finish(code)
                width = np.dtype(dtype).itemsize
                begin = 10 // width * width  # 2.0 and 3.0 differ in byte 2 of the element
                expected = [(0, 16) if hashed else (begin, begin + width)] if change else []
                check(f"{made.directory.name}: ranges", (ranges(got), got["compared"]), (expected, 1))
    nans = [np.array([0x7fc00000 + i], np.uint32).tobytes() for i in range(2)]
    one_after_other(root / "nans", *nans).finish(1)
    check("text: NaN and NaN", first_line(root / "nans", 1)[1].split("\n")[3],
          "  first element that differs: [0], expected nan (0x7fc00000), found nan (0x7fc00001)")
    made = Recorded(root / "no_time")
    for task in range(3):
        made.time = 0
        made.begin(task)
        made.read(task, 0, "float32", (4,), (old + task).tobytes(), 0x1000, role=2)
        made.dump.tensor(task, 0, "float32", (4,), (old + task + 1).tobytes(), address=0x1000, time=made.time, role=2, stage=1)
        made.dump.records.append(record(DONE, task, 1, arg=NONE, time=made.time))
    got = made.finish(0)
    check("tasks that took no time", (got["findings"], got["compared"], got["first_reads"]), ([], 2, 1))


def test_what_is_missing(root):
    """A task between the two may have written it, had the dump all of its outputs."""
    old, new = np.zeros(4, np.float32), np.ones(4, np.float32)

    def between(name, code, is_done=True, after=lambda made: None, end={}, **more):
        made = Recorded(root / name, **more)
        made.begin(0)
        made.write(0, 1, "float32", (4,), old.tobytes(), 0x1000)
        made.done(0)
        made.begin(1)
        if is_done:
            made.done(1)
        made.begin(2)
        made.read(2, 0, "float32", (4,), new.tobytes(), 0x1000)
        made.done(2)
        after(made)
        got = made.finish(code, end)
        return len(got["findings"]), got["not_audited"]["missing_outputs"], got["tasks_missing_outputs"]

    check("all is there", between("whole", 1), (1, 0, 0))
    lost = {"text": "done, but records were lost", "is_complete": False}
    check("a loss", between("loss", 0, after=lambda made: made.dump.loss(1, 1, 1, 0, 1), end=lost), (0, 1, 1))
    check("a loss of an input", between("input_loss", 1, after=lambda made: made.dump.loss(1, 0, 0, 0, 1), end=lost), (1, 0, 0))
    check("losses that nobody knows", between("losses", 0, after=lambda made: made.dump.loss(0, NONE, NONE, 3, 2), end=lost),
          (0, 1, None))
    check("killed", between("killed", 0, end=None), (0, 1, None))
    recovered = {"text": "killed before the dump was complete; recovered", "is_complete": False}
    check("killed and recovered", between("recovered", 0, end=recovered), (0, 1, None))
    check("recovered, and a loss too", between("recovered_loss", 0, after=lambda made: made.dump.loss(2, 0, 0, 0, 1), end=recovered),
          (0, 1, None))
    check("killed: first line", first_line(root / "killed", 0)[0],
          "no findings, but 1 of 2 records of 3 tasks could not be audited, and the dump is not complete")
    check("a skipped task", between("skipped", 0, after=lambda made: made.dump.skipped(1, NONE, 0, 0)), (0, 1, 1))
    check("no end", between("no_end", 0, is_done=False), (0, 1, 1))
    check("a loss of a task that came later", between("later", 1, after=lambda made: made.dump.loss(2, 1, 1, 0, 1)), (1, 0, 1))
    check("marked arguments alone", between("partial", 0, level="partial"), (0, 1, None))

    def in_flight(made):
        made.dump.tensor(1, 1, "float32", (4,), new.tobytes(), address=0x1000, time=25, role=1, stage=1, flags=IN_FLIGHT)

    check("in flight takes no part", between("in_flight", 1, after=in_flight), (1, 0, 0))


def test_order(root):
    """Edges order where the clock does not, and only where the dump has all of them."""
    data = np.zeros(4, np.float32).tobytes()

    def pair(name, code, *, time, runtime="host_build_graph", has_edge=False, has_loss=False, is_inout=False):
        """Task 0 writes from 10 to 15, task 1 reads at `time`."""
        made = Recorded(root / name, runtime=runtime)
        made.begin(0)
        made.write(0, 1, "float32", (4,), data, 0x1000)
        made.done(0)
        made.time = time - 10
        made.begin(1)
        made.read(1, 0, "float32", (2,), data[:8], 0x1004, role=2 if is_inout else 0)
        if is_inout:
            made.dump.tensor(1, 0, "float32", (2,), data[:8], address=0x1004, time=made.time + 5, role=2, stage=1)
        made.done(1)
        if has_edge:
            made.edges(1, 0)
        if has_loss:
            made.dump.loss(1, 0, 0, 0, 1)
        got = made.finish(code)["findings"]
        return [(each["kind"], each["first"]["task_seq"], each["second"]["task_seq"], each["range"]["begin"],
                 each["range"]["end"], each["concurrent"], each["no_path"]) for each in got]

    early = ("read_too_early", 0, 1, 0, 8)
    check("no edge, later", pair("no_edge", 1, time=30), [(*early, False, True)])
    check("no edge, at the same time", pair("no_edge_same", 1, time=12), [(*early, True, True)])
    check("an edge", pair("edge", 0, time=30, has_edge=True), [])
    check("an edge, at its end", pair("edge_end", 0, time=15, has_edge=True), [])
    check("edges may be lost", pair("lost_edge", 0, time=30, has_loss=True), [])
    check("derived edges, later", pair("derived", 0, time=15, runtime="tensormap_and_ringbuffer"), [])
    check("derived edges, at the same time", pair("derived_same", 1, time=14, runtime="tensormap_and_ringbuffer"),
          [(*early, True, False)])
    check("an inout is told once", pair("inout", 1, time=12, is_inout=True), [(*early, True, True)])


def place(view):
    """Of every byte of a view its address and the element it is of, row-major."""
    name, shape, strides, start, base = view
    width = np.dtype(name).itemsize
    index = np.indices(shape).reshape(len(shape), -1)
    first = base + (start + np.tensordot(np.array(strides), index, 1)) * width
    return (first[:, None] + np.arange(width)).reshape(-1)


def random_view(rng):
    """Somewhere in the memory, which has 2048 bytes from 0x4000 on."""
    name = rng.choice(["uint8", "int16", "float32"])
    shape = [int(n) for n in rng.integers(1, 7, rng.integers(1, 4))]
    strides = row_major(shape)
    if rng.random() < 0.7:
        strides = [int(stride * rng.choice([1, 1, 2, -1, 0]) + rng.choice([0, 0, 1])) for stride in strides]
    least = sum(min(0, stride * (count - 1)) for stride, count in zip(strides, shape))
    base = 0x4000 + 4 * int(rng.integers(0, 64))
    return name, shape, strides, int(-least + rng.integers(0, 4)), base


class Memory:
    """A model of the audit: of each byte what it is, what it is thought to be, and by whom."""

    def __init__(self, rng):
        self.bytes = rng.integers(0, 256, 4096, np.uint8)
        self.thought, self.owner = np.zeros(4096, np.uint8), np.full(4096, -1)
        self.views, self.expected = [], []

    def write(self, view, rng):
        at = place(view) - 0x4000
        self.bytes[at] = rng.integers(0, 256, at.size, np.uint8)
        self.views.append(None)
        self.thought[at], self.owner[at] = self.bytes[at], len(self.views) - 1
        return self.bytes[at].tobytes()

    def read(self, view):
        at = place(view) - 0x4000
        self.views.append(view)
        number, width = len(self.views) - 1, np.dtype(view[0]).itemsize
        owner, thought, now = self.owner[at], self.thought[at], self.bytes[at]
        differs = (owner >= 0) & (thought != now)
        for other in dict.fromkeys(owner[differs].tolist()):
            places = np.flatnonzero(differs & (owner == other))
            element = int(places[0]) // width
            inside = slice(element * width, (element + 1) * width)
            left = np.where(owner[inside] >= 0, thought[inside], now[inside])
            values = [np.frombuffer(part.astype(np.uint8).tobytes(), view[0])[0] for part in (left, now[inside])]
            index = [int(i) for i in np.unravel_index(element, view[1])]
            bounds = [(int(at[i]) + 0x4000 - view[4]) // width * width + view[4]
                      for i in (places[at[places].argmin()], places[at[places].argmax()])]
            self.expected.append((other, number, bounds[0], bounds[1] + width, index, *values))
        taken = (owner < 0) | np.isin(owner, owner[differs])
        self.owner[at[taken]], self.thought[at[taken]] = number, now[taken]
        return now.tobytes()


def test_random_memory(root):
    """Tasks one after the other, with views of all kinds into one memory in which bytes change by themselves."""
    found_in_all = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        memory, made, numbers = Memory(rng), Recorded(root / f"random_{seed}"), {}
        for task in range(60):
            made.begin(task)
            for arg in range(int(rng.integers(0, 3))):
                view = random_view(rng)
                numbers[task, "before_dispatch", arg] = len(memory.views)
                made.read(task, arg, view[0], view[1], memory.read(view), view[4], strides=view[2], start=view[3])
            for arg in range(2, 2 + int(rng.integers(0, 2))):
                view = random_view(rng)
                numbers[task, "after_completion", arg] = len(memory.views)
                made.write(task, arg, view[0], view[1], memory.write(view, rng), view[4], strides=view[2], start=view[3])
            made.done(task)
            if seed and rng.random() < 0.4:
                at = rng.integers(0, 1024, rng.integers(1, 5))
                memory.bytes[at] ^= np.uint8(1 << rng.integers(0, 8))
        got = made.finish(1 if memory.expected else 0)
        result = []
        for each in got["findings"]:
            sides = [numbers[each[key]["task_seq"], each[key]["stage"], each[key]["arg_index"]] for key in ("first", "second")]
            element = each["element"]
            values = [np.dtype(element["dtype"]).type(float(element[key])) for key in ("expected", "found")]
            begin = int(each["range"]["address"], 16)
            result.append((*sides, begin, begin + each["range"]["bytes"], element["index"], *values))
        in_order = sorted(memory.expected, key=str), sorted(result, key=str)
        check(f"random memory {seed}", str(in_order[1]), str(in_order[0]))
        check(f"random memory {seed}: all inputs", got["compared"] + got["first_reads"], got["inputs"])
        found_in_all += len(result)
    check("random memory: there was something to find", found_in_all > 100, True)


def test_manifest_alone(root):
    """A dump of another tool has no journal: times are those of the records."""
    old, new = np.zeros(4, np.float32), np.ones(4, np.float32)
    for name, value, code in (("right", new, 0), ("wrong", old, 1), ("raced", old, 1)):
        made = Recorded(root / f"manifest_{name}")
        made.begin(0)
        made.read(0, 0, "float32", (4,), old.tobytes(), 0x2000)
        made.write(0, 1, "float32", (4,), new.tobytes(), 0x1000)
        made.done(0)
        made.time -= 7 if name == "raced" else 0
        made.begin(1)
        made.read(1, 0, "float32", (4,), value.tobytes(), 0x1000)
        made.write(1, 1, "float32", (4,), new.tobytes(), 0x3000)
        made.done(1)
        made.dump.end()
        made.dump.write()
        inner = root / f"manifest_{name}" / "tensor_dump"
        (inner / "tensor_dump.json").write_text(json.dumps(made.dump.manifest()))
        (inner / "tensor_dump.rec").unlink()
        got = audit(root / f"manifest_{name}", code)
        check(f"manifest alone, {name}", [(each["kind"], each["concurrent"]) for each in got["findings"]],
              {"right": [], "wrong": [("undeclared_write", False)],
               "raced": [("read_too_early", True)]}[name])


def test_refused(root):
    """What cannot be audited is no success."""
    result = glassbox("audit", root / "nowhere")
    check("no dump: exit code", (result.returncode, result.stdout), (2, ""))
    check("no tensors", (Recorded(root / "nothing").finish(1)["records"], first_line(root / "nothing", 1)[0]),
          (0, "nothing was audited: the dump has no tensors, or only those of tasks in flight"))
    check("two dumps: exit code", glassbox("audit", root, root).returncode, 2)
    other = root / "other" / "tensor_dump"
    other.mkdir(parents=True)
    (other / "tensor_dump.json").write_text(json.dumps(
        {"bin_file": "tensor_dump.bin", "tensors": [{"task_id": "0x1", "func_id": 0, "arg_index": 0, "role": "input", "stage": "before_dispatch",
                      "dtype": "float32", "shape": [1], "bin_offset": 0, "bin_size": 4}]}))
    (other / "tensor_dump.bin").write_bytes(bytes(4))
    result = glassbox("audit", root / "other")
    check("no addresses: exit code and output", (result.returncode, result.stdout), (2, ""))
    check("no addresses: why", "does not tell the address and the time of every record" in result.stderr, True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        os.environ.setdefault("GLASSBOX_CACHE", str(root / "cache"))
        for test in (test_parts_of_tensors, test_same_bytes, test_what_is_missing, test_order, test_random_memory, test_manifest_alone, test_refused,
                     test_wild_write, test_spoiled_input, test_overflow, test_missing_edges, test_tiles):
            test(root)
        test_examples(root, sys.argv[2])
    return report()


if __name__ == "__main__":
    sys.exit(main())
