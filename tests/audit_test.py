#!/usr/bin/python3
"""glassbox audit on runs: nothing found in good ones, and every planted bug found and named.

usage: audit_test.py GLASSBOX EXAMPLES

The examples and one planted bug run on every runtime, the other bugs on one; with GLASSBOX_STRESS all run on all runtimes
and both platforms. Bugs are planted in scenes that are written here, with kernels whose results are known.
Dumps made byte by byte are in audit_memory_test.py.
"""
import json
import os
import pathlib
import shlex
import sys
import tempfile

import numpy as np

from audit_support import AFTER, BEFORE, audit, audit_text, place
from command_support import PLATFORMS, RUNTIMES, STRESS, check, glassbox, report
from view_support import element_bytes

EXPLICIT = RUNTIMES[:2]
EXAMPLES = ("vector_example", "bgemm", "mix_spmd", "paged_attention", "dump_tensor_example", "broken_softmax")


# --- good runs ---


def run_scene(scene, directory, platform, runtime):
    run = glassbox("run", scene, "--dump-tensor", "--no-golden", "-p", platform, "--runtime", runtime, "--blocks", "2", "-o",
                   directory)
    check(f"run {scene.name} {platform} {runtime}", (run.returncode, run.stderr), (0, ""))
    return json.loads((directory / "tensor_dump" / "tensor_dump.json").read_text())


def count_reads(tensors, results):
    """Inputs that read unknown memory; outputs that were overwritten before anything read them and that are no part of a
    result; bytes of results that no task wrote. Only from addresses and times."""
    views = [(f"V{element_bytes(entry['dtype'])}", entry["shape"], entry["strides"], entry["start_offset"],
              int(entry["buffer_addr"], 16)) for entry in tensors]
    pieces = [(int(piece["address"], 16), piece["bytes"]) for result in results for piece in result["pieces"]]
    base = min([view[-1] for view in views] + [address for address, _ in pieces])
    places = [place(view) - base for view in views]
    end = max([int(at.max(initial=0)) for at in places] + [address + size - base for address, size in pieces])
    last, first_reads, read = np.full(end + 1, -2), 0, set()
    order = sorted(range(len(tensors)), key=lambda i: (tensors[i]["time_ns"], tensors[i]["stage"] == BEFORE))
    for i in order:
        at, known = places[i], last[places[i]]
        if tensors[i]["stage"] == AFTER:
            last[at] = i
            continue
        first_reads += bool((known == -2).all())
        read.update(np.unique(known).tolist())
        last[at[known == -2]] = -1
    unwritten = 0
    for address, size in pieces:
        known = last[address - base:address - base + size]
        read.update(np.unique(known).tolist())
        unwritten += int((known < 0).sum())
    return first_reads, unwritten, sum(entry["stage"] == AFTER and i not in read for i, entry in enumerate(tensors))


def check_example(directory, runtime, manifest):
    """Nothing is found, and all inputs were compared, except those that read their memory first."""
    tensors = [entry for entry in manifest["tensors"] if entry["kind"] == "tensor"]
    inputs = sum(entry["stage"] == BEFORE for entry in tensors)
    results = manifest["results"]
    first_reads, unwritten, unread = count_reads(tensors, results)
    expected = {"tasks": len({entry["task_seq"] for entry in manifest["tensors"]}), "records": len(tensors),
                "inputs": inputs, "compared": inputs - first_reads, "first_reads": first_reads, "raced": 0,
                "outputs": len(tensors) - inputs, "unread_outputs": unread,
                "results": len(results), "results_compared": len(results), "results_incomplete": 0, "results_raced": 0,
                "result_bytes": sum(result["bin_size"] for result in results), "result_unwritten_bytes": unwritten,
                "order": "edges" if runtime in EXPLICIT else "times", "more_findings": False, "findings": []}
    got = audit(directory, 0)
    check(directory.name, {key: got.get(key) for key in expected}, expected)


def test_examples(root, examples):
    """Each on every runtime; both platforms with each example and with each runtime."""
    for i, example in enumerate(EXAMPLES):
        for k, runtime in enumerate(RUNTIMES):
            for platform in PLATFORMS if STRESS else [PLATFORMS[(i + k) % 2]]:
                directory = root / f"{example}_{runtime}_{platform}"
                check_example(directory, runtime, run_scene(pathlib.Path(examples) / example, directory, platform, runtime))


# --- planted bugs ---


def combinations(chosen, runtimes=RUNTIMES):
    """Pairs of runtime and platform: the chosen runtimes, one platform each; with GLASSBOX_STRESS all."""
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
    """A complete buffer, a slice `pool[32:64]`, or a tile `matrix[4:12,4:12]`."""
    if "[" not in name:
        return f"b[{name}]"
    buffer, inside = name[:-1].split("[")
    text = f"b[{buffer}]"
    for dim, part in enumerate(inside.split(",")):
        start, end = part.split(":")
        text = f"slice({text}, {dim}, {start}, {end})"
    return text


def write_kernels(directory):
    """The kernels of all scenes lie in one directory: each is compiled once."""
    if directory.exists():
        return
    directory.mkdir(parents=True)
    for name, (_, body) in KERNELS.items():
        (directory / f"{name}.c").write_text(KERNEL_HEAD + body + "}\n")


def write_scene(root, scene_name, tasks, edges):
    """`tasks` are (kernel, inputs, output, text of the scalar)."""
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
    """One task of a finding; begin and end are relative to the buffer."""
    entry = entry_of(manifest, task, stage, arg)
    return {"task_seq": task, "task_id": entry["task_id"], "kernel": "+".join(entry["kernel"]), "index": entry["index"],
            "arg_index": arg, "arg_name": entry["arg_name"], "stage": stage, "buffer_addr": entry["buffer_addr"],
            "begin": begin, "end": end}


def finding(manifest, kind, first, second, begin, end, element):
    """`first` and `second` are (task, stage, argument); the element is (index, expected, found)."""
    address = int(entry_of(manifest, *second)["buffer_addr"], 16) + begin
    shift = address - begin - int(entry_of(manifest, *first)["buffer_addr"], 16)
    return {"kind": kind, "first": side(manifest, *first, begin + shift, end + shift),
            "second": side(manifest, *second, begin, end),
            "range": {"address": f"0x{address:016x}", "bytes": end - begin, "begin": begin, "end": end},
            "element": element and {"index": element[0], "dtype": "float32", "expected": element[1], "found": element[2]}}


def compare_one(what, got, expected, **more):
    """Checks that there is one finding, and compares its members one by one."""
    if not check(f"{what}: number of findings", len(got["findings"]), 1):
        return
    found = got["findings"][0]
    check(what, {key: found[key] for key in expected}, expected)
    check(f"{what}: how", {key: found[key] for key in more}, more)


def suspects_of(got):
    return [(each["task_seq"], each["kernel"], each["reason"], each.get("arg_name"), each.get("distance"))
            for each in got["findings"][0]["suspects"]] if got["findings"] else None


def test_wild_write(root):
    """Task 2 writes into the tensor of task 0, through an address that it got as a number."""
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
    text = audit_text(directory, 1)
    check("text: first line", text[0], "1 finding in 9 entries of 4 tasks; the first:")
    address = int(expected["range"]["address"], 16)
    check("text: finding", text[1:4],
          ["undeclared write: argument 0 a of task 3 (join) does not hold what argument 1 out of task 0 (plus) left there",
           f"  within 12 bytes at 0x{address:x}: bytes 20 to 31 of the buffer of argument 0 a of task 3",
           "  first element that differs: [5], expected 6.0, found 100.5"])
    # The allocator decides which is nearer.
    replayed = suspects_of(got)[0][0]
    check("text: suspects", sorted(line[:17] for line in text[5:7]), ["    task 1 (plus)", "    task 2 (poke)"])
    check("text: replay", text[4:9:3],
          ["  tasks that ran meanwhile, the likeliest writer first:",
           "  a replay shows what the first of them writes outside its outputs:"])
    check("text: the line", text[8], f"    glassbox replay {directory} --task {replayed}")


def test_spoiled_input(root):
    """Task 1 writes into its input."""
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
    text = audit_text(directory, 1)
    check("spoiled: text", (text[4], text[7]), ("  the only task that ran meanwhile:", f"    {line}"))
    replayed = glassbox(*shlex.split(line)[1:]).stdout
    check("spoiled: the replay shows it", [word for word in ("outside its outputs", "in its own input, argument 0 a[3]") if word not in replayed], [])


def test_overflow(root):
    """Task 2 writes two elements beyond its output, into the next tensor."""
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
    check("overflow: text", audit_text(directory, 1)[5],
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
    check("text: edge", audit_text(directory, 1)[3:6],
          ["  this time it read what was written in the end", "  missing: an edge from task 0 to task 2",
           "the missing edges that all findings name are enough to order everything that was audited"])
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
    check("text: edge of a late read", audit_text(directory, 1)[4], "  missing: an edge from task 0 to task 1")


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


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        os.environ.setdefault("GLASSBOX_CACHE", str(root / "cache"))
        for test in (test_wild_write, test_spoiled_input, test_overflow, test_missing_edges, test_tiles):
            test(root)
        test_examples(root, sys.argv[2])
    return report()


if __name__ == "__main__":
    sys.exit(main())
