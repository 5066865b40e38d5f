#!/usr/bin/python3
"""glassbox blame against models: random graphs whose last writer of every element is known, planted spills, NaN and
wrong results; --first-nan of view and check.

usage: blame_test.py GLASSBOX EXAMPLES

Random graphs run on every runtime and platform. With GLASSBOX_STRESS there are more of them, and all elements are asked for.
"""
import json
import os
import pathlib
import random
import sys
import tempfile

import numpy as np

from audit_support import AFTER, BEFORE, audit, place
from command_support import PLATFORMS, RUNTIMES, STRESS, check, check_in, glassbox, report
from view_support import element_bytes

COMBINATIONS = [(runtime, platform) for runtime in RUNTIMES for platform in PLATFORMS]


def blame(directory, *arguments, code=0):
    result = glassbox("blame", directory, *arguments, "--json")
    if not check(f"blame {directory.name} {arguments}: exit code and stderr", (result.returncode, result.stderr), (code, "")):
        return None
    return json.loads(result.stdout)


def blame_lines(directory, *arguments, code=0):
    result = glassbox("blame", directory, *arguments)
    check(f"blame {directory.name} {arguments}: exit code and stderr", (result.returncode, result.stderr), (code, ""))
    return result.stdout.splitlines()


def refused(what, *arguments):
    """The sentence of a command line that is wrong."""
    result = glassbox("blame", *arguments)
    check(f"{what}: exit code and stdout", (result.returncode, result.stdout), (2, ""))
    return result.stderr


def exact(value):
    """A float32 of a document, whose text is the shortest that reads back as the same."""
    return float(np.float32(value)) if isinstance(value, float) else value


# --- scenes: buffers of the run, and tasks that write views of them ---

KERNEL_HEAD = """#include <glassbox/kernel.h>
#include <math.h>
#include <sched.h>
#define NUMBER gbx_arg_u64(args, 2)
#define FLAG ((int *)(uintptr_t)NUMBER)
/* The element of a view, by its row-major number. */
static inline int64_t at(const gbx_tensor *t, int64_t number) {
    int64_t position = 0;
    for (uint32_t d = t->ndims; d-- > 0; number /= t->shape[d])
        position += number % t->shape[d] * t->strides[d];
    return position;
}
#define X(i) gbx_tensor_f32(x)[at(x, i)]
#define Y(i) gbx_tensor_f32(y)[at(y, i)]
#define EACH for (int64_t i = 0; i < gbx_tensor_numel(y); ++i)
"""
ENTRY = "void kernel_entry(const uint64_t *args) {\n    const gbx_tensor *x = gbx_arg_tensor(args, 0), *y = gbx_arg_tensor(args, 1);\n    (void)x;\n"
STAMP = "EACH Y(i) = (float)NUMBER + (float)i / 1024.0f;\n"
KERNELS = {  # name: (role of y, body)
    "stamp": ("out", STAMP),
    "bump": ("inout", "EACH Y(i) += 2048.0f;\n"),
    "nibble": ("out", "EACH { int64_t p = y->start_offset + i; unsigned char *b = (unsigned char *)(uintptr_t)y->data + p / 2;\n"
                      "*b = (unsigned char)(p % 2 ? (*b & 15) | (NUMBER & 15) << 4 : (*b & 240) | (NUMBER & 15)); }\n"),
    "copy": ("out", "EACH Y(i) = X(i) + 1.0f;\n"),
    "spill": ("out", STAMP + "const int64_t last = y->shape[0] - 1;\n"
                     "for (int64_t k = 0; k < 3; ++k) gbx_tensor_f32(y)[last * y->strides[0] + y->shape[1] + k] = -7.25f;\n"),
    "make_inf": ("out", STAMP + "Y(2) = -INFINITY;\n"),
    "make_nan": ("out", "EACH Y(i) = X(i) - X(i);\n"),
    "plant_nan": ("out", STAMP + "Y(5) = NAN;\n"),
    "crash": ("out", "EACH Y(i) = 9.0f;\n*(volatile int *)FLAG = 1;\n"),
    "wait_stamp": ("out", "while (!__atomic_load_n(FLAG, __ATOMIC_ACQUIRE)) sched_yield();\nEACH Y(i) = 5.0f;\n"),
    "tell_stamp": ("out", "EACH Y(i) = 6.0f;\n__atomic_store_n(FLAG, 1, __ATOMIC_RELEASE);\n"),
}
NAMES = list(KERNELS)
BUFFERS = {"x": ("float32", [64], "in"), "out": ("float32", [12, 20], "inout"), "mid": ("float32", [240], "inout"),
           "nib": ("int4", [5, 10], "inout"), "flag": ("float32", [1], "inout")}

ORCHESTRATION_HEAD = """#include <glassbox/orchestration.h>
#if defined HOST
static gbx_tensor on_chip(gbx_orchestration *o, const gbx_tensor *tensor, uint64_t bytes, uint64_t returned) {
    gbx_tensor made = *tensor;
    char *host = (char *)(uintptr_t)tensor->data;
    made.buffer_bytes = bytes;
    made.data = gbx_device_malloc(o, bytes);
    gbx_copy_to_device(o, made.data, host, bytes);
    if (returned > 0) { /* in two pieces */
        uint64_t half = returned / 2;
        gbx_return_to_host(o, host + half, made.data + half, returned - half);
        gbx_return_to_host(o, host, made.data, half);
    }
    return made;
}
static gbx_task add(gbx_orchestration *o, uint32_t kernel, gbx_role role, gbx_tensor from, gbx_tensor to, uint64_t number) {
    uint64_t words[] = {gbx_device_tensor(o, &from), gbx_device_tensor(o, &to), number};
    gbx_tensor_info infos[] = {{0, GBX_ROLE_INPUT, from}, {1, role, to}};
    return gbx_add_task_with_tensor_info(o, gbx_aiv(kernel), words, 3, infos, 2);
}
#define ORDER(from, to) gbx_add_successor(o, from, to)
#define PUBLISH(task) (void)(task)
#else
#define on_chip(o, tensor, bytes, returned) (*(tensor))
static gbx_task add(gbx_orchestration *o, uint32_t kernel, gbx_role role, gbx_tensor from, gbx_tensor to, uint64_t number) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &from);
    gbx_args_add_tensor(&args, &to, role);
    gbx_args_add_u64(&args, number);
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
"""


def payload_bytes(name):
    dtype, shape, _ = BUFFERS[name]
    return int(np.prod(shape)) // 2 if dtype == "int4" else int(np.prod(shape)) * 4


def returned_bytes(name):
    """What the orchestration on host_build_graph copies back: of mid not the last 20 elements."""
    if BUFFERS[name][2] == "in":
        return 0
    return payload_bytes(name) - (80 if name == "mid" else 0)


def view_text(view):
    """A view is (buffer, shape, strides, start)."""
    name, shape, strides, start = view
    members = "".join(f"v.shape[{d}] = {n}; v.strides[{d}] = {s}; " for d, (n, s) in enumerate(zip(shape, strides)))
    return f"({{ gbx_tensor v = b[{list(BUFFERS).index(name)}]; v.ndims = {len(shape)}; v.start_offset = {start}; {members}v; }})"


def whole(name):
    shape = BUFFERS[name][1]
    return (name, shape, [int(np.prod(shape[d + 1:])) for d in range(len(shape))], 0)


def tile(rows, columns):
    """Of out."""
    width = BUFFERS["out"][1][1]
    return ("out", [rows[1] - rows[0], columns[1] - columns[0]], [width, 1], rows[0] * width + columns[0])


def positions(view):
    """The elements of the buffer that a view consists of, row-major."""
    _, shape, strides, start = view
    index = np.indices(shape).reshape(len(shape), -1)
    return start + np.tensordot(np.array(strides), index, 1)


def write_scene(root, name, tasks, edges):
    """`tasks` are (kernel, view that is read, view that is written, text of the number)."""
    directory = root / name
    (directory / "kernels").mkdir(parents=True)
    used = [kernel for kernel in NAMES if any(task[0] == kernel for task in tasks)]
    for kernel in used:
        text = KERNEL_HEAD + ENTRY + KERNELS[kernel][1] + "}\n"
        (directory / "kernels" / f"{kernel}.c").write_text(text)
    body = ORCHESTRATION_HEAD + f"int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {{\n    gbx_tensor b[{len(BUFFERS)}];\n"
    for i, name_of in enumerate(BUFFERS):
        body += f"    b[{i}] = on_chip(o, &run->tensors[{i}], {payload_bytes(name_of)}, {returned_bytes(name_of)});\n"
    for i, (kernel, source, target, number) in enumerate(tasks):
        role = "GBX_ROLE_INOUT" if KERNELS[kernel][0] == "inout" else "GBX_ROLE_OUTPUT"
        body += f"    gbx_task task{i} = add(o, {NAMES.index(kernel)}, {role}, {view_text(source)}, {view_text(target)}, {number});\n"
        body += "".join(f"    ORDER(task{a}, task{b});\n" for a, b in edges if b == i) + f"    PUBLISH(task{i});\n"
    for runtime, word in zip(RUNTIMES, ("HOST", "AICPU", "TENSORMAP")):
        (directory / f"{runtime}.c").write_text(f"#define {word}\n{body}    return 0;\n}}\n")
    scene = {"name": name,
             "kernels": [{"func_id": NAMES.index(kernel), "name": kernel, "source": f"kernels/{kernel}.c", "core": "aiv",
                          "signature": ["in", KERNELS[kernel][0], "scalar:uint64"], "arg_names": ["x", "y", "number"]}
                         for kernel in used],
             "orchestrations": {runtime: {"source": f"{runtime}.c"} for runtime in RUNTIMES},
             "args": [{"name": buffer, "dtype": dtype, "shape": shape, "role": role, "fill": "constant", "value": 0}
                      for buffer, (dtype, shape, role) in BUFFERS.items()]}
    (directory / "scene.json").write_text(json.dumps(scene))
    return directory


def run_scene(scene, directory, runtime, platform, *options, code=0):
    run = glassbox("run", scene, "-p", platform, "--runtime", runtime, "--blocks", "2", "-o", directory, *(options or ["--dump-tensor"]))
    check(f"run {directory.name}: exit code and stderr", (run.returncode, run.stderr), (code, ""))
    return run.stdout


# --- random graphs ---


def random_view(draw):
    """Of out or mid: a tile, a transposed tile, steps, backwards."""
    name = draw.choice(["out", "out", "mid"])
    dims = BUFFERS[name][1]
    strides = [int(np.prod(dims[d + 1:])) for d in range(len(dims))]
    shape, steps, start = [], [], 0
    for length, stride in zip(dims, strides):
        step = draw.choice([1, 1, 2, 3])
        count = draw.randint(1, max(1, min(8, (length + step - 1) // step)))
        first = draw.randint(0, length - 1 - (count - 1) * step)
        if draw.random() < 0.2:  # backwards
            first, step = first + (count - 1) * step, -step
        shape.append(count)
        steps.append(step * stride)
        start += first * stride
    order = list(range(len(shape)))
    draw.shuffle(order)
    return (name, [shape[d] for d in order], [steps[d] for d in order], start)


def random_tasks(draw, count):
    tasks = []
    for number in range(1, count + 1):
        kind = draw.choice(["stamp", "stamp", "stamp", "bump", "nibble"])
        if kind == "nibble":
            length = draw.randint(1, 9)
            target = ("nib", [length], [1], draw.randint(0, 50 - length))
        else:
            target = random_view(draw)
        tasks.append((kind, random_view(draw), target, str(number)))
    return tasks


def model_of(tasks):
    """For each buffer the value, the last writer and the element of its view; and the pairs that share memory."""
    values = {name: np.zeros(int(np.prod(shape)), np.float64) for name, (_, shape, _) in BUFFERS.items()}
    writers = {name: np.full(value.size, -1) for name, value in values.items()}
    elements = {name: np.full(value.size, -1) for name, value in values.items()}
    for i, (kernel, _, target, number) in enumerate(tasks):
        at = positions(target)
        if kernel == "stamp":
            values[target[0]][at] = np.float32(int(number)) + np.arange(at.size, dtype=np.float32) / np.float32(1024)
        elif kernel == "bump":
            values[target[0]][at] += 2048
        else:
            bits = int(number) & 15
            values[target[0]][at] = bits - 16 if bits > 7 else bits
        writers[target[0]][at] = i
        elements[target[0]][at] = np.arange(at.size)

    def touches(view):
        shift = 1 if view[0] == "nib" else 0
        return view[0], set((positions(view) >> shift).tolist())

    edges = []
    for b, (_, source_b, target_b, _) in enumerate(tasks):
        for a, (_, source_a, target_a, _) in enumerate(tasks[:b]):
            for one, other in ((target_a, source_b), (target_a, target_b), (source_a, target_b)):
                left, right = touches(one), touches(other)
                if left[0] == right[0] and left[1] & right[1]:
                    edges.append((a, b))
                    break
    return values, writers, elements, edges


def check_element(directory, name, index, tasks, model, is_returned):
    values, writers, elements, _ = model
    shape = BUFFERS[name][1]
    at = int(np.ravel_multi_index(index, shape))
    text = f"{name}[{','.join(map(str, index))}]"
    writer = int(writers[name][at])
    got = blame(directory, text, code=0 if writer >= 0 and is_returned else 1)
    if got is None:
        return
    if not is_returned or writer < 0:
        check(f"{directory.name} {text}: nobody", (got["writers"], got["writer_count"]), ([], 0))
        return
    kernel, _, target, _ = tasks[writer]
    element = [int(i) for i in np.unravel_index(int(elements[name][at]), target[1])]
    first = (got["writers"] or [{}])[0]
    check(f"{directory.name} {text}", {key: exact(first.get(key)) for key in ("task_seq", "kernel", "arg_index", "arg_name", "element", "value")},
          {"task_seq": writer, "kernel": kernel, "arg_index": 1, "arg_name": "y", "element": element, "value": values[name][at]})
    check(f"{directory.name} {text}: more",
          (got["writer_count"], got["order_unknown"], exact(got["found"]), got["changed"], got["tasks_missing_outputs"], first["whole"]),
          (1, False, values[name][at], False, 0, True))


def test_random_graphs(root):
    for seed in range(6 if STRESS else 2):
        draw = random.Random(seed)
        tasks = random_tasks(draw, 30)
        model = model_of(tasks)
        scene = write_scene(root, f"random{seed}", tasks, model[3])
        for runtime, platform in COMBINATIONS:
            directory = root / f"random{seed}_{runtime}_{platform}"
            run_scene(scene, directory, runtime, platform)
            check(f"{directory.name}: audit", audit(directory, 0)["findings"], [])
            every = [(name, index) for name in ("out", "mid", "nib") for index in np.ndindex(*BUFFERS[name][1])]
            for name, index in every if STRESS else draw.sample(every, 14):
                is_returned = runtime != RUNTIMES[0] or name != "mid" or index[0] < 220
                check_element(directory, name, index, tasks, model, is_returned)


# --- the same question for arguments of tasks, on the examples ---


def test_examples(root, examples):
    """The last writer of what a task read, by the addresses and times of the manifest, byte by byte."""
    for example, runtime, platform in (("paged_attention", RUNTIMES[2], PLATFORMS[0]), ("mix_spmd", RUNTIMES[1], PLATFORMS[1]),
                                       ("bgemm", RUNTIMES[0], PLATFORMS[0])):
        directory = root / f"example_{example}"
        run_scene(pathlib.Path(examples) / example, directory, runtime, platform, "--dump-tensor", "--no-golden")
        manifest = json.loads((directory / "tensor_dump" / "tensor_dump.json").read_text())
        tensors = [entry for entry in manifest["tensors"] if entry["kind"] == "tensor"]
        views = [(f"V{element_bytes(entry['dtype'])}", entry["shape"], entry["strides"], entry["start_offset"],
                  int(entry["buffer_addr"], 16)) for entry in tensors]
        base = min(view[-1] for view in views)
        places = [place(view) - base for view in views]
        last = np.full(max(int(at.max(initial=0)) for at in places) + 1, -1)
        asked = []
        for i in sorted(range(len(tensors)), key=lambda i: (tensors[i]["time_ns"], tensors[i]["stage"] == BEFORE)):
            if tensors[i]["stage"] == AFTER:
                last[places[i]] = i
            else:
                asked.append((i, last[places[i]].copy()))
        draw = random.Random(example)
        for i, owners in draw.sample(asked, min(len(asked), 200 if STRESS else 12)):
            entry, width = tensors[i], element_bytes(tensors[i]["dtype"])
            number = draw.randrange(len(owners) // width)
            if entry["role"] == "inout":
                continue  # there, what the task left counts
            index = ",".join(str(int(k)) for k in np.unravel_index(number, entry["shape"])) if entry["shape"] else ""
            text = f"task:{entry['task_seq']}/{entry['arg_index']}[{index}]"
            owner = int(owners[number * width])
            got = blame(directory, text, code=0 if owner >= 0 else 1)
            if got is not None:
                check(f"{example} {text}", [(w["task_seq"], w["arg_index"], w["index"]) for w in got["writers"]],
                      [(tensors[owner]["task_seq"], tensors[owner]["arg_index"], tensors[owner]["index"])] if owner >= 0 else [])
                check(f"{example} {text}: what was read is what was left", (got["changed"], got["writers"][:1] and got["writers"][0]["value"]),
                      (False, got["found"] if owner >= 0 else []))


# --- depth, text, errors ---


def test_depth_and_text(root):
    tasks = [("stamp", whole("x"), tile((0, 12), (0, 10)), "3"), ("stamp", whole("x"), tile((0, 12), (10, 20)), "4"),
             ("copy", whole("out"), whole("mid"), "0"), ("bump", whole("x"), whole("mid"), "0")]
    scene = write_scene(root, "depth", tasks, [(0, 2), (1, 2), (2, 3)])
    for runtime, platform in COMBINATIONS[2:6:3]:
        directory = root / f"depth_{runtime}_{platform}"
        run_scene(scene, directory, runtime, platform)
        got = blame(directory, "mid[27]", "--depth", "3")
        value = exact(3 + (1 * 10 + 7) / 1024 + 1 + 2048)
        check(f"{directory.name}: writer", [(w["task_seq"], exact(w["value"]), w["element"]) for w in got["writers"]], [(3, value, [27])])
        check(f"{directory.name}: earlier", got["earlier_writes"], 1)
        inputs = [(each["depth"], each["task_seq"], each["arg_index"], each["bytes"], each["unwritten_bytes"],
                   [(s["task_seq"], s["arg_index"], s["bytes"]) for s in each["sources"]]) for each in got["inputs"]]
        check(f"{directory.name}: inputs", inputs,
              [(1, 3, 0, 256, 256, []), (1, 3, 1, 960, 0, [(2, 1, 960)]),
               (2, 2, 0, 960, 0, [(0, 1, 480), (1, 1, 480)]),
               (3, 0, 0, 256, 256, []), (3, 1, 0, 256, 256, [])])
        lines = blame_lines(directory, "mid[27]", "--depth", "1")
        check(f"{directory.name}: text", lines,
              [f"mid[27] was last written by task 3 (bump), argument 1 y[27]: {str(np.float32(value))}, "
               "unchanged at the end of the run",
               "  task 3 (bump) read", "    argument 0 x [64], which no task wrote",
               "    argument 1 y [240] from argument 1 y of task 2 (copy)",
               f"next: glassbox replay {directory} --task 3"])
        check(f"{directory.name}: of a task", blame(directory, "task:2/x[1,17]")["writers"][0]["task_seq"], 1)
        check(f"{directory.name}: what a task left", [w["task_seq"] for w in blame(directory, "task:2/y[5]")["writers"]], [2])
    check_in("unknown name", "the run's tensors are x, out, mid, nib, flag", refused("unknown name", directory, "mod[3]"))
    check_in("out of range", '"mid[240]" is out of range: the shape of mid is [240]', refused("out of range", directory, "mid[240]"))
    check_in("indices", '"out[3]" names no element: the shape of out is [12, 20], which takes 2 indices',
             refused("indices", directory, "out[3]"))
    check_in("no index", "the shape of out is [12, 20]", refused("no index", directory, "out"))
    check_in("form", '"out[a]" does not name an element', refused("form", directory, "out[a]"))
    check_in("input", "x is an input of the run", refused("input", directory, "x[0]"))
    check_in("no task", "the dump has no task 77", refused("no task", directory, "task:77/x[0]"))
    check_in("no argument", "the dump has no tensor z of task 2; it has 0 x, 1 y", refused("no argument", directory, "task:2/z[0]"))
    check_in("no golden", "has no output that a golden found wrong", refused("no golden", directory))
    check_in("contradiction", "--nan looks at all elements", refused("contradiction", directory, "out[0,0]", "--nan"))


def test_unordered(root):
    """Two tasks that write the same elements at the same time: task 0 waits for task 1."""
    tasks = [("wait_stamp", whole("x"), tile((0, 2), (0, 20)), "b[4].data"), ("tell_stamp", whole("x"), tile((1, 4), (0, 20)), "b[4].data")]
    scene = write_scene(root, "unordered", tasks, [])
    for runtime, platform in COMBINATIONS[:4]:
        directory = root / f"unordered_{runtime}_{platform}"
        run_scene(scene, directory, runtime, platform)
        got = blame(directory, "out[1,3]")
        check(f"{directory.name}: candidates", (sorted((w["task_seq"], w["element"]) for w in got["writers"]), got["order_unknown"]),
              ([(0, [1, 3]), (1, [0, 3])], True))
        check(f"{directory.name}: only one", [w["task_seq"] for w in blame(directory, "out[0,3]")["writers"]], [0])
        check(f"{directory.name}: text", blame_lines(directory, "out[1,3]")[0].split(";")[0],
              "out[1,3] was last written by one of 2 tasks that nothing orders")


def test_in_flight(root):
    """A task that crashed may have written its output: that is not known, and no undeclared change."""
    scene = write_scene(root, "crash", [("stamp", whole("x"), tile((0, 4), (0, 20)), "1"),
                                        ("crash", tile((0, 4), (0, 20)), tile((2, 6), (0, 20)), "8")], [(0, 1)])
    for runtime, platform in COMBINATIONS[1::2]:
        directory = root / f"crash_{runtime}_{platform}"
        run = glassbox("run", scene, "-p", platform, "--runtime", runtime, "--dump-tensor", "-o", directory)
        check(f"{directory.name}: exit code", run.returncode, 3)
        check(f"{directory.name}: audit", audit(directory, 0)["findings"], [])
        for text, code, writers, in_flight in (("out[3,3]", 0, [0], 1), ("out[5,3]", 1, [], 1), ("out[0,3]", 0, [0], 0), ("out[9,9]", 1, [], 0)):
            if runtime == RUNTIMES[0]:
                continue  # there, nothing was returned to the host
            got = blame(directory, text, code=code)
            check(f"{directory.name} {text}", ([w["task_seq"] for w in got["writers"]], got["in_flight"], got["changed"], got["tasks_missing_outputs"]),
                  (writers, in_flight, False, 0))
    check_in("in flight: text", "not known: whether task 1 (crash), which did not complete, wrote it in argument 1 y",
             "\n".join(blame_lines(directory, "out[3,3]")))


# --- planted bugs ---


def test_spill(root):
    """A row that spills into the next tile of the same tensor: only the result shows it."""
    tasks = [("stamp", whole("x"), tile((0, 4), (8, 16)), "1"), ("copy", tile((0, 4), (8, 16)), ("mid", [32], [1], 0), "0"),
             ("spill", ("mid", [32], [1], 0), tile((0, 4), (0, 8)), "2"), ("stamp", whole("x"), tile((8, 12), (0, 20)), "3")]
    scene = write_scene(root, "spill", tasks, [(0, 1), (1, 2), (0, 3)])
    for runtime, platform in COMBINATIONS:
        directory = root / f"spill_{runtime}_{platform}"
        run_scene(scene, directory, runtime, platform)
        got = audit(directory, 1)
        if check(f"{directory.name}: findings", [f["kind"] for f in got["findings"]], ["changed_result"]):
            found = got["findings"][0]
            begin = (3 * 20 + 8) * 4
            check(f"{directory.name}: finding",
                  (found["first"]["task_seq"], found["second"], found["result"], found["range"]["begin"], found["range"]["bytes"], found["element"]),
                  (0, None, {"name": "out", "arg_index": 1, "role": "inout"}, begin, 12,
                   {"index": [3, 8], "dtype": "float32", "expected": 1.0234375, "found": -7.25}))
            check(f"{directory.name}: the spiller comes first",
                  [(s["task_seq"], s["kernel"], s["reason"], s.get("distance")) for s in found["suspects"]][:1],
                  [(2, "spill", "output_ends_before", 0)])
        got = blame(directory, "out[3,9]")
        check(f"{directory.name}: blame", (got["changed"], got["found"], got["writers"][0]["task_seq"], exact(got["writers"][0]["value"]),
                                           got["suspects"][0]["task_seq"], got["suspects"][0]["reason"], got["suspects"][0]["distance"]),
              (True, -7.25, 0, 1 + 25 / 1024, 2, "output_ends_before", 0))
        check(f"{directory.name}: beside it", blame(directory, "out[3,11]")["changed"], False)
    check("spill: text", blame_lines(directory, "out[3,8]")[:3],
          ["out[3,8] was changed by a task that does not declare it: it is -7.25, but the last that declares to write it is "
           "task 0 (stamp), argument 1 y[3,0]: 1.0234375",
           "  tasks that ran since, the likeliest writer first:",
           "    task 2 (spill), whose argument 1 y ends right before"])
    text = glassbox("audit", directory).stdout
    check_in("spill: audit", "changed result: at the end of the run, out does not hold what argument 1 y of task 0 (stamp) left there", text)
    check_in("spill: audit", "    task 2 (spill), whose argument 1 y ends right before", text)


def test_unwritten(root):
    """Bytes that no task declares to write are counted."""
    scene = write_scene(root, "unwritten", [("stamp", whole("x"), tile((0, 4), (0, 20)), "1")], [])
    for runtime, platform in COMBINATIONS[3:5]:
        directory = root / f"unwritten_{runtime}_{platform}"
        run_scene(scene, directory, runtime, platform)
        got = audit(directory, 0)
        sizes = sum(payload_bytes(name) for name, (_, _, role) in BUFFERS.items() if role != "in")
        check(f"{directory.name}: bytes", (got["results"], got["result_bytes"], got["result_unwritten_bytes"]), (4, sizes, sizes - 320))
        # They were filled with zeros: who did that is not known.
        check(f"{directory.name}: not what new memory holds", got["result_unfilled_bytes"], sizes - 320)
        got = blame(directory, "out[4,0]", code=1)
        check(f"{directory.name}: nobody wrote it", (got["writers"], got["found"]), ([], 0.0))
    check("unwritten: text", blame_lines(directory, "out[4,0]", code=1)[0], "no task wrote out[4,0]: no output covers it; at the end of the run it is 0.0")


def first_nan(directory, command, *arguments, code):
    result = glassbox(*command, directory, *arguments, "--json")
    check(f"{command} {directory.name}: exit code and stderr", (result.returncode, result.stderr), (code, ""))
    return json.loads(result.stdout)


def test_nan(root):
    mid = [("mid", [40], [1], 40 * i) for i in range(6)]
    tasks = [("stamp", whole("x"), mid[0], "1"), ("plant_nan", mid[0], mid[1], "2"), ("copy", mid[1], mid[2], "0"),
             ("copy", mid[2], mid[3], "0")]
    edges = [(i, i + 1) for i in range(len(tasks) - 1)]
    scene = write_scene(root, "nan", tasks, edges)
    for runtime, platform in COMBINATIONS:
        directory = root / f"nan_{runtime}_{platform}"
        run_scene(scene, directory, runtime, platform, "--dump-tensor", "--dump-stats")
        got = first_nan(directory, ["blame", "--nan"], code=0)
        expected = {"task_seq": 1, "kernel": "plant_nan", "arg_index": 1, "nan": 1, "inf": 0, "element": [5], "value": "nan", "inputs": "clean"}
        for key in ("introduced", "first", "first_nan"):
            check(f"{directory.name}: {key}", {name: (got[key] or {}).get(name) for name in expected}, expected)
        check(f"{directory.name}: check says the same", first_nan(directory, ["check", "--first-nan"], code=1), got)
        check(f"{directory.name}: view shows it", [entry["index"] for entry in first_nan(directory, ["view", "--first-nan"], code=0)["tensors"]],
              [got["first"]["index"]])
        later = first_nan(directory, ["check", "--first-nan", "--task", "2..3"], code=1)
        check(f"{directory.name}: only later tasks", (later["introduced"], later["first"]["task_seq"], later["first"]["inputs"], later["first"]["input"]["nan"]),
              (None, 2, "have_some", 1))
        check(f"{directory.name}: only earlier tasks", first_nan(directory, ["check", "--first-nan", "--task", "0"], code=0)["first"], None)
    lines = blame_lines(directory, "--nan")
    check("nan: text", lines[0].split(": nan")[0], "the first that made a NaN or Inf: argument 1 y of task 1 (plant_nan) has 1 NaN, the first at [5]")
    check("nan: next", lines[-1], f"next: glassbox replay {directory} --task 1")
    shown = glassbox("view", directory, "--first-nan")
    check_in("nan: view", "the first that made a NaN or Inf: argument 1 y of task 1 (plant_nan)", shown.stdout)
    stats = root / "nan_stats"
    run_scene(scene, stats, RUNTIMES[1], PLATFORMS[1], "--dump-tensor=stats")
    got = first_nan(stats, ["blame", "--nan"], code=0)
    check("nan: by statistics", (got["introduced"]["task_seq"], got["introduced"]["nan"], got["introduced"]["element"]), (1, 1, None))
    filtered = root / "nan_filtered"
    run_scene(scene, filtered, RUNTIMES[1], PLATFORMS[1], "--dump-tensor=hybrid", "--dump-filter", "stage=after_completion")
    got = first_nan(filtered, ["blame", "--nan"], code=0)
    check("nan: inputs unknown", (got["introduced"], got["first"]["task_seq"], got["first"]["inputs"]), (None, 1, "unknown"))
    check_in("nan: says so", "not known: whether its inputs have any", "\n".join(blame_lines(filtered, "--nan")))
    nothing = root / "nan_nothing"
    run_scene(scene, nothing, RUNTIMES[1], PLATFORMS[1], "--dump-tensor=hybrid", "--dump-filter", "task=0,stage=before_dispatch")
    check("nan: nothing is known", blame_lines(nothing, "--nan", code=1), ["not known: the dump has no values of outputs that are floats"])
    check("nan: that is no success", glassbox("check", nothing, "--first-nan").returncode, 1)


def test_inf(root):
    """An infinity that was meant, then NaN made of it."""
    mid = [("mid", [40], [1], 40 * i) for i in range(3)]
    scene = write_scene(root, "inf", [("make_inf", whole("x"), mid[0], "1"), ("make_nan", mid[0], mid[1], "0"), ("copy", mid[1], mid[2], "0")],
                        [(0, 1), (1, 2)])
    directory = root / "inf_dump"
    run_scene(scene, directory, RUNTIMES[2], PLATFORMS[0])
    got = first_nan(directory, ["blame", "--nan"], code=0)
    check("inf", [(got[key]["task_seq"], got[key]["nan"], got[key]["inf"], got[key]["element"]) for key in ("introduced", "first", "first_nan")],
          [(0, 0, 1, [2]), (0, 0, 1, [2]), (1, 1, 0, [2])])


# --- wrong results ---

def test_golden(root, examples):
    scene = pathlib.Path(examples) / "broken_softmax"
    directory = root / "golden"
    run = glassbox("run", scene, "--dump-tensor", "-o", directory)
    check("golden: exit code", run.returncode, 1)
    document = json.loads(glassbox("run", scene, "--dump-tensor", "-o", root / "golden_json", "--json").stdout)["cases"][0]
    index = document["outputs"][0]["first_bad"]
    text = f"out[{','.join(map(str, index))}]"
    got = blame(directory)
    check("golden: without an element", (got["element"]["name"], got["element"]["index"]), ("out", index))
    check("golden: the same when named", blame(directory, text), got)
    check("golden: in the document of run", [w["task_seq"] for w in document["blame"]["writers"]], [w["task_seq"] for w in got["writers"]])
    writer = got["writers"][0]
    line = next(line for line in run.stdout.splitlines() if " was last written by " in line)
    check("golden: the line of run", line.startswith(f"  {text} was last written by task {writer['task_seq']} ({writer['kernel']}), argument "), True)
    check_in("golden: the next command", f"; next: glassbox blame {directory} '{text}'", line)
    stored = json.loads((directory / "run.json").read_text())["golden"]["outputs"]
    check("golden: run.json", stored, [{"name": "out", "elements": 6144, "mismatches": document["outputs"][0]["mismatches"], "first_bad": index}])
    for level, words in ((["--dump-tensor=stats"], "what it left there is not in the dump"),
                         (["--dump-args"], "not known: who wrote"),
                         (["--dump-tensor", "--dump-filter", "task=0..3"], "run again with --dump-tensor and no filter")):
        run = glassbox("run", scene, *level, "-o", root / f"golden{len(level)}{level[0]}")
        check_in(f"golden: {level}", words, run.stdout)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        os.environ.setdefault("GLASSBOX_CACHE", str(root / "cache"))
        test_random_graphs(root)
        test_examples(root, sys.argv[2])
        for test in (test_depth_and_text, test_unordered, test_in_flight, test_spill, test_unwritten, test_nan, test_inf):
            test(root)
        test_golden(root, sys.argv[2])
    return report()


if __name__ == "__main__":
    sys.exit(main())
