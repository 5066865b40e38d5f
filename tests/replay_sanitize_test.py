#!/usr/bin/python3
"""What glassbox replay --sanitize names: kind, file, line, argument and element of planted bugs, and nothing in good kernels.

usage: replay_sanitize_test.py GLASSBOX EXAMPLES

The line of a bug is that with the word BUG in the kernel's source, that of the other half of a race the one with OTHER. With
GLASSBOX_STRESS all tasks of the examples are asked, else one of each kernel.
"""
import json
import os
import pathlib
import re
import shutil
import sys

from command_support import ENVIRONMENT, STRESS, check, check_in, glassbox
from replay_findings_support import N, Scene
from replay_support import EXAMPLES, manifest, record, root, run_parts

ALL = "access,address,memory,thread"
COMPILERS = [None] + (["clang"] if shutil.which("clang") else [])
TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
MEMBERS = {"kind", "sanitizer", "task_seq", "kernel", "what", "arg_index", "arg_name", "element", "elements", "distance", "is_write",
           "bytes", "address", "blocks", "at", "other", "count", "sentence"}


def sanitize(dump, task, kinds=ALL, *options, code, environment=ENVIRONMENT):
    done = glassbox("replay", dump, "--task", task, f"--sanitize={kinds}", "--json", *options, environment=environment)
    what = f"replay {dump} {task} --sanitize={kinds} {options}"
    check(f"{what}: exit code and stderr ({done.stdout[:3000]})", (done.returncode, done.stderr), (code, ""))
    document = json.loads(done.stdout) if done.stdout else {"findings": [], "notes": [], "asked": {}}
    for one in document["findings"] + document["notes"]:
        check(f"{what}: members", set(one), MEMBERS)
        check(f"{what}: sentence {one['sentence']!r}", ("\n" in one["sentence"], f"task {task}, " in one["sentence"]), (False, True))
    return document


def line_of(source, mark):
    return next((i for i, line in enumerate(pathlib.Path(source).read_text().split("\n"), 1) if mark in line), None)


class Planted:
    """Kernels with one bug each, and what is to be found."""

    def __init__(self, name):
        self.scene, self.expected = Scene(name), {}

    def plant(self, name, kind, args, body, *views, sanitizers="address", blocks=1, arg=None, element=None, more=None, **fields):
        self.scene.once(name, args, body, *views, blocks=blocks, **fields)
        self.expected[name] = (kind, sanitizers, arg, element, more or {})

    def check(self, compiler=None):
        """With a compiler as $CC, or the usual one."""
        run = self.scene.run()
        environment = {**ENVIRONMENT, **({"CC": compiler} if compiler else {})}
        for name, (kind, sanitizers, arg, element, more) in self.expected.items():
            source = self.scene.kernels[name]["source"]
            document = sanitize(run.dump, run.numbers[name], sanitizers, code=1, environment=environment)
            findings = document["findings"]
            what = f"{name} {compiler or ''}: {[f['sentence'] for f in findings]}"
            check(f"{what}: asked", [a["was_asked"] for a in document["asked"].values()], [True] * len(sanitizers.split(",")))
            check(what, [f["kind"] for f in findings], [kind])
            if not findings:
                continue
            found = findings[0]
            check(f"{what}: line", found["at"] and (found["at"]["file"], found["at"]["line"]), (os.path.realpath(source), line_of(source, "BUG")))
            check(f"{what}: argument and element", (found["arg_index"], found["element"]), (arg, element))
            check(f"{what}: kernel", found["kernel"], name)
            if line_of(source, "OTHER"):
                check(f"{what}: other line", found["other"] and found["other"]["line"], line_of(source, "OTHER"))
            for key, value in more.items():
                check(f"{what}: {key}", found[key], value)
        done = glassbox("replay", run.dump, "--task", run.numbers[name], f"--sanitize={sanitizers}", environment=environment)
        said = f"finding: {found['sentence']}\n"
        if kind == "data_race":  # chance decides which of two accesses is seen first
            check(f"{name}: text", done.stdout.partition(":")[2].split(": block")[0], said.partition(":")[2].split(": block")[0])
        else:
            check(f"{name}: text", done.stdout, said)


# --- memory of no argument ---


def outside():
    p = Planted("outside")
    s = p.scene
    x = s.tensor("x")
    args = "in x, out y"
    p.plant("read_past", "out_of_bounds_read", args, "for (int i = 0; i < n; ++i)\n        y[i] = x[i] + x[i + 1]; /* BUG */", x, s.output("y0"),
            arg=0, element=[N - 1], more={"bytes": 4, "distance": 1, "is_write": False})
    p.plant("read_before", "out_of_bounds_read", args, TWICE + "\n    y[0] = x[-2]; /* BUG */", x, s.output("y1"),
            arg=0, element=[0], more={"distance": -8, "bytes": 4})
    p.plant("write_before", "out_of_bounds_write", args, TWICE + "\n    y[-1] = x[0]; /* BUG */", x, s.output("y2"),
            arg=1, element=[0], more={"distance": -4, "bytes": 4, "is_write": True})
    p.plant("write_past", "out_of_bounds_write", args, TWICE + "\n    y[n + 2] = x[0]; /* BUG */", x, s.output("y3"),
            arg=1, element=[N - 1], more={"distance": 9, "bytes": 4})
    wide = s.tensor("wide", (8, 16))
    p.plant("gap", "out_of_bounds_read", args,
            "for (int i = 0; i < 8; ++i)\n        for (int j = 0; j < 8; ++j)\n"
            "            y[i * 8 + j] = x[i * X->strides[0] + j + (i == 2 && j == 7)]; /* BUG */", wide[:, :8], s.output("y4"),
            arg=0, element=[2, 7], more={"distance": 0})
    tiles = s.output("tiles", (4, N))
    p.plant("next_tile", "out_of_bounds_write", args, "for (int i = 0; i <= n; ++i)\n        y[i] = x[i % n]; /* BUG */", x, tiles[1],
            arg=1, element=[N - 1], more={"distance": 1})
    p.plant("by_memcpy", "out_of_bounds_read", args, "memcpy(y, x, (size_t)n * 4); /* BUG */", x, s.output("y5", (N + 2,)),
            arg=0, element=[N - 1], more={"bytes": 4 * N + 8, "distance": 1})
    p.plant("far", "out_of_bounds_write", args, TWICE + "\n    y[1 << 24] = x[0]; /* BUG */", x, s.output("y6"), arg=1, element=[N - 1])
    p.plant("negative", "out_of_bounds_read", args, "for (int i = 0; i < n; ++i)\n        y[i] = x[i * X->strides[0] - (i == n - 1)]; /* BUG */",
            x[::-1], s.output("y7"), arg=0, element=[N - 1], more={"distance": -4})
    half = s.tensor("half", (N,), "float16")
    p.plant("half", "out_of_bounds_read", args, "for (int i = 0; i < n; ++i)\n        y[i] = x[i + 4]; /* BUG */", half, s.output("y8", dtype="float16"),
            dtype="float16", arg=0, element=[N - 1], more={"distance": 1, "bytes": 2})
    p.check()


# --- exact accesses ---


def plant_exact(s, p):
    """What a guard of 8 bytes at a time cannot see."""
    args = "in x, out y"
    halves = {"dtype": "int16", "sanitizers": "access"}
    p.plant("into_input", "writes_input", "in x, in counts, out y", TWICE + "\n    for (int i = 0; i < 3; ++i)\n        counts[5 + i] += 1; /* BUG */",
            s.tensor("x0", dtype="int32"), s.tensor("c0", dtype="int32"), s.output("y0", dtype="int32"), dtype="int32", sanitizers="access", arg=1, element=[5],
            more={"is_write": True, "bytes": 4, "count": 3, "distance": 0})
    p.plant("underrun", "out_of_bounds_write", args, TWICE + "\n    y[-1] = x[0]; /* BUG */", s.tensor("x1"), s.output("y1", (N + 1,))[1:], sanitizers="access",
            arg=1, element=[0], more={"distance": -4, "bytes": 4, "count": 1})
    steps = "for (int i = 0; i < n; ++i)\n        y[i * Y->strides[0]%s] = x[i * X->strides[0]%s]; /* BUG */"
    p.plant("reads_gap", "out_of_bounds_read", args, steps % ("", " + (i == 3)"), s.tensor("x2", (2 * N,), "int16")[::2], s.output("y2", dtype="int16"), **halves,
            arg=0, element=[3], more={"distance": 0, "bytes": 2, "count": 1})
    p.plant("writes_gap", "out_of_bounds_write", args, steps % (" + (i == 3)", ""), s.tensor("x3", dtype="int16"), s.output("y3", (2 * N,), "int16")[::2], **halves,
            arg=1, element=[3], more={"distance": 0, "bytes": 2})
    p.plant("copies_one_byte_more", "out_of_bounds_write", args, "memcpy(y, x, (size_t)n * 4 + 1); /* BUG */", s.tensor("x4", (N + 1,)), s.output("y4", (N + 2,))[:N],
            sanitizers="access", arg=1, element=[N - 1], more={"distance": 1, "bytes": 1})
    p.plant("sets_one_byte_before", "out_of_bounds_write", args, TWICE + "\n    memset((char *)y - 1, 0, 4); /* BUG */", s.tensor("x5"), s.output("y5", (N + 1,))[1:],
            sanitizers="access", arg=1, element=[0], more={"distance": -1, "bytes": 1})
    vector = "typedef float quad __attribute__((vector_size(16), aligned(4)));"
    p.plant("reads_half_a_vector", "out_of_bounds_read", args, "for (int i = 0; i < n; i += 4)\n        *(quad *)(y + i) = *(quad *)(x + i); /* BUG */", s.tensor("x6", (N,))[:N - 2],
            s.output("y6"), head=vector, sanitizers="access", arg=0, element=[N - 3], more={"distance": 1, "bytes": 8})
    wide = vector.replace("16", "32").replace("quad", "octet")
    p.plant("writes_part_of_a_vector", "out_of_bounds_write", args, TWICE + "\n    *(octet *)(y + n - 7) = *(octet *)x; /* BUG */", s.tensor("x7"), s.output("y7", (N + 2,))[:N],
            head=wide, sanitizers="access", arg=1, element=[N - 1], more={"distance": 1, "bytes": 4})
    p.plant("packed", "out_of_bounds_write", args, "for (int i = 0; i < 3; ++i)\n        for (int j = 0; j < 2 + (i == 1); ++j)\n"
            "            y[i * 4 + j] = x[i * 2 + j]; /* BUG */", s.tensor("x8", (3, 3), "int4"), s.output("y8", (3, 8), "int4")[:, :3], dtype="int4", sanitizers="access",
            arg=1, element=[1, 2], more={"bytes": 1, "distance": 0})
    p.plant("brain", "out_of_bounds_read", args, "for (int i = 0; i < n; ++i)\n        y[i] = x[i + 1]; /* BUG */", s.tensor("x9", (N + 1,), "bfloat16")[:N],
            s.output("y9", dtype="bfloat16"), dtype="bfloat16", sanitizers="access", arg=0, element=[N - 1], more={"distance": 1, "bytes": 2, "count": 1})
    p.plant("adds_atomically", "writes_input", "in counts, out y", "y[0] = 0;\n    __atomic_fetch_add(counts + 2, 1, __ATOMIC_RELAXED); /* BUG */",
            s.tensor("c10", dtype="int32"), s.output("y10", (1,), dtype="int32"), dtype="int32", sanitizers="access", arg=0, element=[2], more={"bytes": 4})
    p.plant("copies_a_struct", "out_of_bounds_read", args, "*(three *)y = *(three *)(x + 62); /* BUG */", s.tensor("x11", (N + 1,))[:N], s.output("y11", (3,)),
            head="typedef struct { float parts[3]; } three;", sanitizers="access", arg=0, element=[N - 1], more={"bytes": 4, "distance": 1})
    p.plant("both_see_it", "out_of_bounds_read", args, "for (int i = 0; i < n; ++i)\n        y[i] = x[i] + x[i + 1]; /* BUG */", s.tensor("x12"), s.output("y12"),
            sanitizers="access,address", arg=0, element=[N - 1], more={"sanitizer": "access", "count": 1})
    p.plant("far_away", "out_of_bounds_write", args, TWICE + "\n    y[1 << 20] = x[0]; /* BUG */", s.tensor("x13"), s.output("y13"), sanitizers="access",
            arg=1, element=[N - 1], more={"bytes": 4})


def exact():
    for compiler in COMPILERS:
        p = Planted(f"exact{compiler or ''}")
        plant_exact(p.scene, p)
        p.check(compiler)


def exact_and_clean():
    """What only looks like an access outside: the same buffer as input and output, atomic operations, copies, local and global variables, helpers."""
    s = Scene("clean")
    args = "in x, out y"
    whole = s.tensor("whole", (2 * N,), "int16", "inout")
    s.once("in_place", args, TWICE, whole[:N], whole[:N], dtype="int16")
    s.once("interleaved", args, "for (int i = 0; i < n; ++i) y[i * 2] = x[i * 2];", whole[::2], whole[1::2], dtype="int16")
    s.once("copies", args, "float tile[70];\n    memset(tile, 0, sizeof tile);\n    memcpy(tile, x, (size_t)n * 4);\n    memmove(y, tile, (size_t)n * 4);\n"
           "    memcpy(y, y, 0);", s.tensor("x0"), s.output("y0"))
    s.once("counts", "in x, inout counts", "for (int i = 0; i < 9; ++i) __atomic_fetch_add(counts + i, 1, __ATOMIC_SEQ_CST);\n    int e = 3;\n"
           "    __atomic_compare_exchange_n(counts + 1, &e, 4, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);\n    __atomic_store_n(counts + 2, __atomic_load_n(x, 0), 0);\n"
           "    __sync_fetch_and_or(counts + 3, 8);\n    __sync_synchronize();", s.tensor("x1", dtype="int32"), s.tensor("c1", dtype="int32", role="inout"), dtype="int32")
    s.once("last_half_byte", args, "for (int i = 0; i < 3; ++i) for (int j = 0; j < 2; ++j) y[i * 2 + j] = x[i * 2 + j];", s.tensor("x2", (3, 3), "int4"),
           s.output("y2", (3, 3), "int4"), dtype="int4")
    s.once("blocks", args, "for (int i = block; i < n; i += 8) y[i] = x[i];", s.tensor("x3"), s.output("y3"), blocks=8)
    s.once("descriptors", args, "gbx_tensor copy = *X;\n    static float kept[64];\n    for (int i = 0; i < n; ++i) kept[i] = x[i] + (float)copy.ndims;\n"
           "    for (int i = 0; i < n; ++i) y[i] = kept[i] + (float)gbx_local(args)->core_id * 0;", s.tensor("x4"), s.output("y4"))
    run = s.run("--runtime", "tensormap_and_ringbuffer")
    for compiler in COMPILERS:
        for name, number in run.numbers.items():
            document = sanitize(run.dump, number, "access", code=0, environment={**ENVIRONMENT, **({"CC": compiler} if compiler else {})})
            check(f"{name} {compiler}: findings", [f["sentence"] for f in document["findings"] + document["notes"]], [])


def exact_words():
    """The sentence, the default, and a crash that two sanitizers see."""
    s = Scene("words")
    s.once("count", "in ids, in counts, out y", "for (int i = 0; i < n; ++i) y[i] = ids[i];\n    counts[1] += 1; /* BUG */", s.tensor("ids", dtype="int32"),
           s.tensor("counts", dtype="int32"), s.output("y", dtype="int32"), dtype="int32")
    s.once("past", "in x, out y", "for (int i = 0; i < n; ++i)\n        y[i] = x[i + 1]; /* BUG */", s.tensor("x1"), s.output("y1"))
    run = s.run()
    source = s.kernels["count"]["source"]
    sentence = f"task 0, kernel count, writes argument 1 counts[1], an input, at {os.path.realpath(source)}:{line_of(source, 'BUG')}"
    done = glassbox("replay", run.dump, "--task", 0, "--sanitize")
    check("an input: text", (done.returncode, done.stdout), (1, f"finding: {sentence}\n"))
    document = json.loads(glassbox("replay", run.dump, "--task", 1, "--sanitize", "--json").stdout)
    check("default", (sorted(document["asked"]), [f["sanitizer"] for f in document["findings"]]), (["access", "address"], ["access"]))
    order = [json.dumps({k: v for k, v in f.items() if k != "address"}) for _ in range(3)
             for f in sanitize(run.dump, 1, ALL, code=1)["findings"]]
    check("order", len(set(order)), len(order) // 3)
    crash = root / "crash.c"
    crash.write_text("#include <glassbox/kernel.h>\nvoid kernel_entry(const uint64_t *args) {\n    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));\n"
                     "    y[0] = *(volatile float *)(args[GBX_ARG_LOCAL_CONTEXT] * 0); /* BUG */\n}\n")
    for kinds in ("access", "access,address"):
        found = sanitize(run.dump, 1, kinds, "--kernel", crash, code=1)["findings"]
        check(f"{kinds}: crash", {(f["at"]["line"], f["kind"] in ("crash", "undefined_behaviour")) for f in found}, {(4, True)})


# --- unwritten memory ---


def uninitialised():
    p = Planted("uninitialised")
    s = p.scene
    x = s.tensor("x")
    args = "in x, out y"
    p.plant("adds", "uninitialised_value", args, "for (int i = 0; i < n; ++i)\n        y[i] += x[i]; /* BUG */", x, s.output("y0"),
            sanitizers="memory", arg=1, element=[0], more={"elements": N})
    p.plant("local", "uninitialised_value", args, "float sum;\n    for (int i = 0; i < n; ++i)\n        sum += x[i]; /* OTHER */\n" + TWICE +
            "\n    y[5] = sum; /* BUG */", x, s.output("y1"), sanitizers="memory", arg=1, element=[5],
            more={"elements": 1, "what": "local variable 'sum'"})
    p.plant("branch", "uninitialised_value", args, TWICE + "\n    float tile[4];\n    for (int i = 0; i < n; ++i)\n"
            "        if (tile[i % 4] > x[0]) /* BUG */\n            y[i] = 0;", x, s.output("y2"), sanitizers="memory")
    p.plant("static", "uninitialised_value", args, "for (int i = 0; i < n; ++i) y[i] = helper(x);", x, s.output("y3"), sanitizers="memory",
            arg=1, element=[0], head="static float helper(const float *x) {\n    float v[2];\n    v[0] = x[0];\n    return v[1];\n}",
            more={"elements": N})
    path = pathlib.Path(s.kernels["static"]["source"])
    path.write_text(path.read_text().replace("y[i] = helper(x);", "y[i] = helper(x); /* BUG */"))
    p.plant("root", "uninitialised_value", args, "float sum;\n    if (n > 99)\n        sum = x[0];\n    for (int i = 0; i < n; ++i)\n"
            "        y[i] = x[i] * expf(sum); /* BUG */", x, s.output("y4"), sanitizers="memory", head="#include <math.h>",
            more={"what": "local variable 'sum'"})
    p.plant("rounds", "uninitialised_value", args, "float scale[2];\n    scale[0] = x[0];\n    for (int i = 0; i < n; ++i)\n"
            "        y[i] = (float)lrintf(x[i] * scale[i % 2]); /* BUG */", x, s.output("y5"), sanitizers="memory", head="#include <math.h>",
            more={"what": "local variable 'scale'"})
    p.plant("sorts", "uninitialised_value", args, "float *all = malloc((size_t)n * sizeof *all);\n    for (int i = 0; i + 1 < n; ++i) all[i] = x[i];\n"
            "    qsort(all, (size_t)n, sizeof *all, by_value); /* BUG */\n    for (int i = 0; i < n; ++i) y[i] = all[i];\n    free(all);", x, s.output("y6"),
            sanitizers="memory", head="#include <stdlib.h>\nstatic int by_value(const void *a, const void *b) {\n"
            "    float u = *(const float *)a, v = *(const float *)b;\n    return (u > v) - (u < v);\n}")
    p.plant("updates", "uninitialised_value", args, TWICE + "\n    uint32_t bits;\n    if (n > 99)\n        bits = 1;\n    for (int i = 0; i < n; ++i)\n"
            "        __atomic_fetch_xor((uint32_t *)&y[i], bits, __ATOMIC_RELAXED); /* BUG */", x, s.output("y7"), sanitizers="memory",
            more={"what": "local variable 'bits'"})
    p.plant("swaps", "uninitialised_value", args, TWICE + "\n    float part;\n    if (n > 99)\n        part = 1;\n    _Atomic float *to = (_Atomic float *)y;\n"
            "    float old = atomic_load(to);\n    while (!atomic_compare_exchange_weak(to, &old, old + part)); /* BUG */", x, s.output("y8"),
            sanitizers="memory", head="#include <stdatomic.h>", more={"what": "local variable 'part'"})
    p.plant("counts", "uninitialised_value", args, "for (int i = 0; i < n; ++i)\n        __sync_fetch_and_add((uint32_t *)&y[i], (uint32_t)x[i]); /* BUG */",
            x, s.output("y9"), sanitizers="memory")
    p.check()


def initialised():
    """What is passed on is set, or is not used: structs with padding or unused members, results by pointer, sorted items with gaps."""
    s = Scene("initialised")
    args = "in x, out y"
    s.once("members", args, "pair p = {.a = x[0]}, q;\n    q.a = 1;\n    set(&q, x);\n    for (int i = 0; i < n; ++i) y[i] = first(p) + q.b;", s.tensor("x0"), s.output("y0"),
           head="typedef struct pair { char c; float a, b; double unused[4]; } pair;\nstatic float first(pair p) {\n    return p.a;\n}\n"
           "static void set(pair *p, const float *x) {\n    p->b = x[1];\n}")
    s.once("sorts", args, "item all[64];\n    for (int i = 0; i < n; ++i) {\n        all[i].key = (char)(i * 7 % 64);\n        all[i].value = x[i];\n    }\n"
           "    qsort(all, 64, sizeof *all, by_key);\n    for (int i = 0; i < n; ++i) y[i] = floorf(all[i].value) + sqrtf(fabsf(all[i].value));", s.tensor("x1"), s.output("y1"),
           head="#include <math.h>\n#include <stdlib.h>\ntypedef struct item { char key; float value, unused; } item;\n"
           "static int by_key(const void *a, const void *b) {\n    return ((const item *)a)->key - ((const item *)b)->key;\n}")
    s.once("saturates", args, "for (int i = 0; i < n; ++i) {\n        float v = x[i] * 1e30f;\n        y[i] = (float)(int32_t)(v > 127.0f ? 127.0f : v < -128.0f ? -128.0f : v) + 1.0f / (x[i] - x[i]);\n    }",
           s.tensor("x2"), s.output("y2"))
    s.once("updates", args, TWICE + "\n    uint32_t word, more[2] = {3, 0}, old = 0;\n    int *place = NULL;\n    _Atomic(int *) kept;\n    _Atomic pair both;\n"
           "    __atomic_store_n(&word, 5, __ATOMIC_RELAXED);\n    __atomic_fetch_add(&word, __sync_add_and_fetch(more, 2, 0), __ATOMIC_RELAXED);\n"
           "    __atomic_store_n(&place, 0, __ATOMIC_RELAXED);\n    __sync_lock_test_and_set(&more[1], word);\n    atomic_store(&kept, 0);\n"
           "    atomic_fetch_add(&kept, 1);\n    atomic_store(&both, ((pair){1, 2}));\n    while (!__atomic_compare_exchange(&word, &old, more, 0, 5, 5));\n"
           "    unsigned char byte = 3;\n    __sync_fetch_and_or(&byte, 4u);\n    pair got = atomic_exchange(&both, ((pair){3, 4}));\n"
           "    __sync_bool_compare_and_swap(&more[0], 5, 6, &old);\n    y[0] += (float)(word + more[0] + more[1]) + byte + got.a + (place == 0);",
           s.tensor("x3"), s.output("y3"), head="#include <stdatomic.h>\ntypedef struct pair { short a, b; } pair;")
    run = s.run()
    for number in run.numbers.values():
        document = sanitize(run.dump, number, "address,memory", code=0)
        check(f"initialised {number}", (document["findings"], document["notes"]), ([], []))


def unwritten():
    """Never written is not the same as computed from nothing."""
    s = Scene("unwritten")
    x = s.tensor("x")
    s.once("half", "in x, out y", "for (int i = 0; i < n; i += 2) y[i] = x[i];", x, s.output("y0"))
    s.once("packed", "in x, out y", "for (int i = 0; i < 3; ++i) { y[i * 2] = (uint8_t)(y[i * 2] & 0xf0) | 1; y[i * 2] = (uint8_t)(y[i * 2] & 0x0f) | 0x20;"
           " y[i * 2 + 1] = (uint8_t)((y[i * 2 + 1] & 0xf0) | 3); }", s.tensor("p", (3, 3), "int4"), s.output("q", (3, 3), "int4"), dtype="int4")
    run = s.run()
    document = sanitize(run.dump, 0, "memory", code=0)
    check("unwritten: findings", document["findings"], [])
    check("unwritten: notes", [(n["kind"], n["arg_index"], n["element"], n["elements"], n["at"]) for n in document["notes"]],
          [("unwritten", 1, [1], N // 2, None)])
    document = sanitize(run.dump, 1, "memory,address", code=0)
    check("packed rows", (document["findings"], document["notes"]), ([], []))


# --- undefined behaviour, the stack, crashes ---


def undefined():
    p = Planted("undefined")
    s = p.scene
    x = s.tensor("x", dtype="int32")
    args = "in x, out y"
    for i, (name, code, what) in enumerate([
            ("overflow", "y[0] = x[0] + (0x7fffffff - (x[0] == 99));", "signed integer overflow"),
            ("shift", "y[0] = x[0] << (n - 24);", "shift exponent 40 is too large"),
            ("cast", "y[0] = (int32_t)((float)x[0] * 0.0f + 4e9f);", "4e+09 is outside the range of representable values of type 'int'"),
            ("misaligned", "y[0] = *(const int *)((const char *)(x + 2) + 1);", "load of misaligned address")]):
        p.plant(name, "undefined_behaviour", args, f"for (int i = 0; i < n; ++i) y[i] = 0;\n    {code} /* BUG */", x, s.output(f"y{i}", dtype="int32"),
                dtype="int32", arg=0 if name == "misaligned" else None, element=[2] if name == "misaligned" else None)
    p.plant("copies", "local_variable", args, "int list[8];\n    memcpy(list, x, (size_t)(n - 24)); /* BUG */\n    for (int i = 0; i < n; ++i) y[i] = list[i % 8];", x,
            s.output("y6", dtype="int32"), dtype="int32", more={"what": "stack-buffer-overflow, variable 'list'", "bytes": 40})
    p.plant("stack", "local_variable", args, "volatile int tile[8], at = 9;\n    for (int i = 0; i < n; ++i) y[i] = x[i];\n"
            "    int *hidden = (int *)tile;\n    hidden[at] = 3; /* BUG */\n    y[0] = tile[0] * 0 + x[0];", x, s.output("y7", dtype="int32"),
            dtype="int32", more={"is_write": True})
    p.check()


def crashes():
    """Tasks that end the run are asked alone, with what the dump has of their inputs."""
    for name, kind, body, file_is_known in (
            ("division", "undefined_behaviour", "for (int i = 0; i < n; ++i) y[i] = x[i];\n    y[1] = x[0] / (n - 64); /* BUG */", True),
            ("null", "crash", "for (int i = 0; i < n; ++i) y[i] = x[i];\n    y[1] = *(volatile int *)(intptr_t)(n - 48); /* BUG */", True)):
        s = Scene(name)
        s.once(name, "in x, out y", body, s.tensor("x", dtype="int32"), s.output("y", dtype="int32"), dtype="int32")
        dump = record(s.write(), name, "--dump-tensor", "--dump-args", code=3)
        document = sanitize(dump, 0, "address", code=1)
        kinds = [f["kind"] for f in document["findings"]]
        check(f"{name}: {kinds}", kind in kinds and kinds[-1] in (kind, "undefined_behaviour", "crash"), True)
        for found in document["findings"]:
            check(f"{name}: line {found['sentence']}", found["at"]["line"], line_of(s.kernels[name]["source"], "BUG"))


def ends():
    """Kernels that exit or never return."""
    s = Scene("ends")
    s.once("good", "in x, out y", TWICE, s.tensor("x"), s.output("y"))
    run = s.run()
    for name, body, code in (("exits", "_exit(7);", 1), ("leaves", "exit(7);", 1), ("hangs", "for (volatile int k = 1; k;) y[0] = 1;", 2)):
        path = root / f"{name}.c"
        path.write_text("#include <glassbox/kernel.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid kernel_entry(const uint64_t *args) {\n"
                        f"    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));\n    y[0] = 1;\n    {body}\n}}\n")
        document = sanitize(run.dump, 0, "address", "--kernel", path, "--timeout", "2", code=code)
        if code == 1:
            check(f"{name}: {document['findings']}", [f["kind"] for f in document["findings"]], ["crash"])
        else:
            check_in(name, "did not end within 2 s", document["asked"]["address"]["why_not"])


def prints():
    """What a kernel prints is no report, even if it looks like one."""
    s = Scene("prints")
    s.once("printed", "in x, out y", TWICE + """
    const char *lines[] = {"kernel.c:3:1: runtime error: signed integer overflow", "==1==ERROR: AddressSanitizer: use-after-poison on address 0x7e9000000000 at pc 0x1",
                           "READ of size 4 at 0x7e9000000000 thread T0", "==1==WARNING: MemorySanitizer: use-of-uninitialized-value",
                           "WARNING: ThreadSanitizer: data race (pid=1)", "SUMMARY: x"};
    for (int i = 0; i < 6; ++i) {
        fprintf(i & 1 ? stdout : stderr, "%s\\n", lines[i]);
        fflush(NULL);
        perror(lines[i]);
        puts(lines[i]);
    }""", s.tensor("x"), s.output("y"), head="#include <stdio.h>")
    run = s.run()
    document = sanitize(run.dump, 0, code=0)
    check("prints", (document["findings"], document["notes"]), ([], []))


# --- races ---


def races():
    p = Planted("races")
    s = p.scene
    x = s.tensor("x")
    args = "in x, out y"
    p.plant("race", "data_race", args, "for (int i = block; i < n; i += 2)\n        if (i != 8) y[i] = x[i];\n    for (int k = 0; k < 1000; ++k)\n"
            "        y[8] = x[block]; /* BUG */", x, s.output("y0"), sanitizers="thread", blocks=2, arg=1, element=[8],
            more={"blocks": [{"block_idx": 0, "subtask": "aiv0"}, {"block_idx": 1, "subtask": "aiv0"}]})
    p.check()


FENCES = {"builtin": "__atomic_thread_fence(__ATOMIC_SEQ_CST);", "pause": '__asm__ volatile("pause\\n" ::: "memory");', "asm": '__asm__ __volatile__("mfence");'}


def fences():
    """A fence, or assembly that only waits, hides no race, and makes none of what it orders."""
    p = Planted("fences")
    for name, fence in FENCES.items():
        p.plant(f"race_{name}", "data_race", "in x, out y", f"{fence} for (int k = 0; k < 1000; ++k)\n        y[0] += x[block]; /* BUG */\n    {fence}",
                p.scene.tensor(f"x_{name}"), p.scene.output(f"y_{name}"), sanitizers="thread", blocks=2, arg=1, element=[0])
    p.check()
    s = Scene("fenced")
    largest = "int32_t v = x[block], o = __atomic_load_n(y, 0); while (o < v && !__atomic_compare_exchange_n(y, &o, v, 1, 0, 0)) "
    inout = "in x, inout int32_t y"
    for name, fence in FENCES.items():
        s.once(f"largest_{name}", inout, f"{fence} {largest} {{ {fence} }}", s.tensor(f"x_{name}", dtype="int32"),
               s.tensor(f"y_{name}", (1,), "int32", "inout", fill="constant", value=0), blocks=4, dtype="int32")
    s.once("last", "in x, out y, inout uint32_t c, out z", "y[block] = x[block]; __atomic_thread_fence(__ATOMIC_RELEASE);"
           " if (__atomic_fetch_add(c, 1, __ATOMIC_RELAXED) == 3) { __atomic_thread_fence(__ATOMIC_ACQUIRE);"
           " z[0] = 0; for (int i = 0; i < 4; ++i) z[0] += y[i]; }", s.tensor("x", (4,)), s.output("y", (4,)),
           s.tensor("c", (1,), "uint32", "inout", fill="constant", value=0), s.output("z", (1,)), blocks=4)
    s.once("locked", "in x, inout y", "while (__atomic_exchange_n(&lock, 1, __ATOMIC_RELAXED)); __atomic_thread_fence(__ATOMIC_ACQUIRE);"
           " y[0] += x[block]; __atomic_thread_fence(__ATOMIC_RELEASE); __atomic_store_n(&lock, 0, __ATOMIC_RELAXED);", s.tensor("x_lock"),
           s.tensor("y_lock", (1,), role="inout", fill="constant", value=0), blocks=4, head="static int lock;")
    s.once("kept", inout, f"volatile int32_t *v = y; {FENCES['builtin']} __atomic_fetch_add(v, x[block], 0);", s.tensor("x_kept", dtype="int32"),
           s.tensor("y_kept", (1,), "int32", "inout", fill="constant", value=0), blocks=4, dtype="int32")
    run = s.run()
    for name, number in run.numbers.items():
        document = sanitize(run.dump, number, "memory,thread", code=0)
        check(f"fenced {name}: findings", [f["sentence"] for f in document["findings"]], [])
        why = "kernel kept cannot be judged: it has fences and volatile variables, and the sanitizer does not understand the order of those"
        check(f"fenced {name}: asked", {k: a["why_not"] for k, a in document["asked"].items()}, {"memory": None, "thread": why if name == "kept" else None})


def foreign():
    """Functions that a sanitizer does not know are named; those that write nothing, and those that it knows, are not."""
    s = Scene("foreign")
    add = "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)(%s);"
    sums = "inout y"
    unknown = {
        "swapped": ("memory", "swab", "uint32_t a = 7, b; swab(&a, &b, 4); " + add % "b & 0", "#include <unistd.h>", 1),
        "core": ("memory", "getcpu", "unsigned c, m; getcpu(&c, &m); " + add % "c > 100000", "int getcpu(unsigned *, unsigned *);", 1),
        "rounded": ("memory", "fegetexceptflag", "fexcept_t f; fegetexceptflag(&f, FE_ALL_EXCEPT); " + add % "f == (fexcept_t)~0", "#include <fenv.h>", 1),
        "guarded": ("thread", "mtx_lock", "mtx_lock(&lock); y[0] += x[block]; mtx_unlock(&lock);", "#include <threads.h>\nstatic mtx_t lock;", 4),
        "started": ("thread", "thrd_", "thrd_t t; thrd_create(&t, run, y); thrd_join(t, 0); " + add % "0",
                    "#include <threads.h>\nstatic int run(void *y) { *(float *)y = 1; return 0; }", 1)}
    known = {
        "numbers": ("memory", "for (int i = 0; i < n; ++i) y[i] = sqrtf(expf(x[i])) + powf(x[i], 2) + (float)fmax(sin(x[i]), abs(i));", "#include <math.h>", 1),
        "texts": ("memory", 'for (int i = 0; i < n; ++i) { char t[40]; snprintf(t, sizeof t, "%.9g", x[i]); y[i] = strtof(t, NULL); }', "#include <stdio.h>\n#include <stdlib.h>", 1),
        "mutexes": ("memory,thread", "pthread_mutex_lock(&lock); y[0] += x[block]; pthread_mutex_unlock(&lock);",
                    "#include <pthread.h>\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;", 4)}
    for name, row in {**unknown, **known}.items():
        body, head, blocks = row[-3:]
        is_sum = blocks > 1
        s.once(name, "in x, " + (sums if is_sum else "out y"), body, s.tensor(f"x_{name}"),
               s.tensor(f"y_{name}", role="inout", fill="constant", value=0) if is_sum else s.output(f"y_{name}"), head=head, blocks=blocks)
    run = s.run()
    for name, (sanitizer, function, *_) in unknown.items():
        document = sanitize(run.dump, run.numbers[name], f"access,{sanitizer}", code=0)
        check(f"foreign {name}: findings", document["findings"], [])
        check(f"foreign {name}: access was asked", document["asked"]["access"]["was_asked"], True)
        why = document["asked"][sanitizer]["why_not"] or ""
        check(f"foreign {name}: {why}", bool(re.fullmatch(f"kernel {name} calls {function}[a-z]*, which the {sanitizer} sanitizer does not know", why)), True)
    for name, (sanitizers, *_) in known.items():
        document = sanitize(run.dump, run.numbers[name], sanitizers, code=0)
        check(f"foreign {name}", (document["findings"], [a["why_not"] for a in document["asked"].values()]), ([], [None] * len(document["asked"])))


def constructors():
    """A kernel that runs before it is called: what it stores is its own."""
    p = Planted("constructors")
    p.plant("made", "out_of_bounds_read", "in x, out y", "for (int i = 0; i < n; ++i)\n        y[i] = table[i & 7] + x[i + 1]; /* BUG */", p.scene.tensor("x"),
            p.scene.output("y"), sanitizers="access", head="static float table[8];\n__attribute__((constructor)) static void make(void) {\n"
            "    for (int i = 0; i < 8; ++i) table[i] = (float)i;\n}", arg=0, element=[N - 1])
    p.check()
    s = Scene("ending")
    s.once("ends", "in x, out y", TWICE, s.tensor("x"), s.output("y"), head="#include <stdlib.h>\n#include <unistd.h>\n"
           '__attribute__((constructor)) static void leave(void) { if (getenv("GLASSBOX_TEST_LEAVES")) _exit(9); }')
    run = s.run()
    document = sanitize(run.dump, 0, "access", code=2, environment={**ENVIRONMENT, "GLASSBOX_TEST_LEAVES": "1"})
    check("a kernel that ends before the first call", document["asked"]["access"]["why_not"],
          "the program that calls kernel ends ended before the first call: exit with code 9")


def schedules():
    """Races of blocks that wait for each other, which the schedule that happens does not show: the other block works long."""
    p = Planted("schedules")
    s = p.scene
    args = "in x, out y, inout uint32_t flag"
    slow = "    for (volatile int k = 0; k < 3000000; ++k)\n            ;\n"
    sum_all = "        float sum = 0;\n        for (int i = 1; i < n; ++i)\n            sum += y[i]; /* %s */\n        y[0] = sum;\n"
    fill = "        for (int i = 1; i < n; ++i)\n            y[i] = x[i]; /* %s */\n"

    def flag(name):
        return s.tensor(name, (1,), "uint32", "inout", fill="constant", value=0)

    p.plant("waits_one_less", "data_race", args, "if (block == 1) {\n    " + slow + "        gbx_flag_wait(flag, 0);\n" + sum_all % "OTHER" + "    } else {\n" +
            fill % "BUG" + "        gbx_flag_set(flag, 1);\n    }\n    gbx_flag_wait(flag, 1);", s.tensor("x0"), s.output("y0"), flag("f0"), sanitizers="thread", blocks=2, arg=1, element=[1])
    p.plant("sets_too_early", "data_race", args, "if (block == 1) {\n        gbx_flag_set(flag, 1);\n" + sum_all % "OTHER" + "        gbx_flag_set(flag, 1);\n    } else {\n    " +
            slow + "        gbx_flag_wait(flag, 1);\n" + fill % "BUG" + "    }", s.tensor("x1"), s.output("y1"), flag("f1"), sanitizers="thread", blocks=2, arg=1, element=[1])
    p.check()


def waits():
    """Blocks that wait for each other are called together, and flags order what they do."""
    s = Scene("waits")
    x, flag = s.tensor("x"), s.tensor("flag", (1,), "uint32", "inout", fill="constant", value=0)
    s.kernel("waits", "in x, out y, inout uint32_t flag",
             "int m = (int)gbx_tensor_numel(Y);\n    if (block == 1) gbx_flag_wait(flag, 1);\n    for (int i = block * m / 2; i < (block + 1) * m / 2; ++i) y[i] = block ? y[0] : x[i];\n"
             "    if (block == 0) gbx_flag_set(flag, 1);")
    s.task("waits", x, s.output("y"), flag, blocks=2)
    run = s.run()
    document = sanitize(run.dump, 0, code=0)
    check("waits", (document["findings"], document["notes"]), ([], []))


# --- several kernels, included files, other sources ---


def mixes():
    s = Scene("mixes")
    x = s.tensor("x")
    helper = "static float get(const float *p, int i) {\n    return p[i]; /* BUG */\n}"
    fine = "static float get(const float *p, int i) {\n    return p[i];\n}"
    body = "for (int i = %s; i < %s; ++i) y[i] = get(x, i%s);"
    s.kernel("left", "in x, out y", body % ("0", "n / 2", ""), core="aic", head=fine)
    s.kernel("right", "in x, out y", body % ("n / 2", "n", " + 1"), head=helper)
    s.task({"aic": "left", "aiv0": "right"}, x, s.output("y"), name="mix")
    run = s.run()
    found = sanitize(run.dump, 0, "address", code=1)["findings"]
    check("mix", [(f["kind"], f["kernel"], f["arg_index"], f["at"]["file"], f["at"]["line"], f["at"]["function"]) for f in found],
          [("out_of_bounds_read", "right", 0, os.path.realpath(s.kernels["right"]["source"]), line_of(s.kernels["right"]["source"], "BUG"), "get")])
    check_in("mix", "kernel right (aiv0)", found[0]["sentence"])


def scene_with_include():
    """A scene as users have it: kernels below its directory, a header beside them; two kernels in a chain."""
    folder = root / "own"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "shape.h").write_text("static inline float shape_get(const float *x, int i) {\n    return x[i + 1]; /* BUG */\n}\n")
    (folder / "kernels" / "scale.c").write_text(
        '#include <glassbox/kernel.h>\n#include "shape.h"\nvoid kernel_entry(const uint64_t *args) {\n'
        "    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));\n    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));\n"
        "    for (int i = 0; i < 64; ++i)\n        y[i] = shape_get(x, i);\n}\n")
    (folder / "graph.c").write_text(
        "#include <glassbox/orchestration.h>\nint orchestrate(gbx_orchestration *o, const gbx_run_args *run) {\n"
        "    gbx_args args = gbx_args_begin();\n    gbx_args_add_input(&args, &run->tensors[0]);\n"
        "    gbx_args_add_output(&args, &run->tensors[1]);\n    gbx_submit_task(o, gbx_aiv(0), &args);\n    return 0;\n}\n")
    (folder / "scene.json").write_text(json.dumps({
        "name": "own", "cases": {"default": {}},
        "args": [{"name": "x", "dtype": "float32", "shape": [64], "role": "in", "fill": "random"},
                 {"name": "y", "dtype": "float32", "shape": [64], "role": "out"}],
        "kernels": [{"func_id": 0, "name": "scale", "source": "kernels/scale.c", "core": "aiv", "signature": ["in", "out"], "arg_names": ["x", "y"],
                     "compile_flags": "-Ofast"}],
        "orchestrations": {"tensormap_and_ringbuffer": {"source": "graph.c"}}}))
    return folder


def sources():
    scene = scene_with_include()
    dump = record(scene, "own-dump")
    found = sanitize(dump, 0, "address", code=1)["findings"]
    expected = [("out_of_bounds_read", "kernels/shape.h", 2, 0, [63])]
    places = [(f["kind"], f["at"]["file"], f["at"]["line"], f["arg_index"], f["element"]) for f in found]
    check("a header beside the kernel", places, expected)
    check("its sentence", [f["sentence"] for f in found],
          ["task 0, kernel scale, reads 4 bytes right behind argument 0 x (element [64] of [64]) at kernels/shape.h:2"])
    done = glassbox("replay", dump, "--task", 0, "--sanitize", "-v")
    check_in("raw text", "AddressSanitizer: use-after-poison", done.stdout)
    done = glassbox("replay", dump, "--task", 0, "--sanitize")
    check("no raw text without -v", "AddressSanitizer:" in done.stdout, False)

    fixed = root / "fixed.c"
    fixed.write_text((scene / "kernels" / "scale.c").read_text().replace("shape_get(x, i)", "x[i]"))
    check("--kernel", sanitize(dump, 0, ALL, "--kernel", fixed, code=0)["findings"], [])

    # The source is gone: the copy in the dump is code of whoever made it.
    moved = root / "moved"
    shutil.move(scene, moved)
    why = sanitize(dump, 0, "address", code=2)["asked"]["address"]["why_not"]
    check_in("untrusted", "its original source no longer exists", why)
    check_in("untrusted", "--trust", why)
    found = sanitize(dump, 0, "address", "--trust", code=1)["findings"]
    check("from the copy", [(f["kind"], f["at"]["file"], f["at"]["line"], f["arg_index"], f["element"]) for f in found], expected)
    shutil.move(moved, scene)
    source = scene / "kernels" / "scale.c"
    source.write_text(source.read_text() + "\n")
    check_in("changed", "its original source, or the copy in the dump, has changed since the run; if you trust",
             sanitize(dump, 0, "address", code=2)["asked"]["address"]["why_not"])

    # The dump has lost its copy: --trust would not help.
    copy = next((dump / "kernels").rglob("scale*.c"))
    copy.rename(copy.with_suffix(".kept"))
    for options in ((), ("--trust",)):
        check(f"lost {options}", sanitize(dump, 0, "address", *options, code=2)["asked"]["address"]["why_not"],
              f"the dump has lost its copy of the source of kernel scale, {copy}: No such file or directory")
    copy.with_suffix(".kept").rename(copy)

    # A dump whose run did not keep the source.
    document = json.loads((dump / "run.json").read_text())
    document["kernels"][0]["source"] = None
    (dump / "run.json").write_text(json.dumps(document))
    check_in("no source", "has no source of kernel scale", sanitize(dump, 0, "address", code=2)["asked"]["address"]["why_not"])


def machines():
    """What a machine lacks is said, and the rest is asked."""
    s = Scene("machines")
    s.once("past", "in x, out y", "for (int i = 0; i < n; ++i)\n        y[i] = x[i + 1]; /* BUG */", s.tensor("x"), s.output("y"))
    s.kernel("inline", "in x, out y", TWICE + ' __asm__ volatile("nop; nop" : : : "memory");')
    s.task("inline", s.tensor("x2"), s.output("y2"))
    run = s.run()
    tools = root / "tools"
    tools.mkdir()
    for name in ("cc", "gcc", "as", "ld", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    environment = {**ENVIRONMENT, "PATH": str(tools)}
    environment.pop("CC", None)
    document = sanitize(run.dump, 0, "address,memory", code=1, environment=environment)
    check("without clang", [f["kind"] for f in document["findings"]], ["out_of_bounds_read"])
    check_in("without clang", "clang is not on PATH; install it", document["asked"]["memory"]["why_not"])
    compiler = tools / "broken"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-fsanitize*-rdynamic*) echo "ld: cannot find -lasan" >&2; exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    document = sanitize(run.dump, 0, "address", code=2, environment={**environment, "CC": str(compiler)})
    check_in("without the runtime", "cannot find -lasan", document["asked"]["address"]["why_not"])
    document = sanitize(run.dump, 1, "address,memory", code=0)
    check_in("inline assembly", "inline assembly", document["asked"]["memory"]["why_not"])
    for options, words in ((("--sanitize=leak",), 'unknown value "leak"'), (("--sanitize", "--gdb"), "--sanitize cannot be combined with --gdb"),
                           (("-v",), "--verbose needs --sanitize")):
        done = glassbox("replay", run.dump, "--task", 0, *options)
        check(f"{options}: exit code", done.returncode, 2)
        check_in(f"{options}", words, done.stderr)


# --- good kernels ---


def tasks_of(dump):
    """All tasks, or one of each kernel."""
    tasks = {}
    for entry in manifest(dump)["tensors"]:
        tasks.setdefault(entry["task_seq"], "+".join(entry["kernel"]))
    if STRESS:
        return sorted(tasks)
    first = {}
    for task in sorted(tasks, reverse=True):
        first[tasks[task]] = task
    return sorted(first.values())


def examples():
    scenes = sorted(path.parent for path in EXAMPLES.glob("*/scene.json") if path.parent.name != "broken_softmax")
    for scene in scenes:
        dump = record(scene, f"example-{scene.name}")
        for task in tasks_of(dump):
            for compiler in COMPILERS[1:]:
                document = sanitize(dump, task, "access", code=0, environment={**ENVIRONMENT, "CC": compiler})
                check(f"{scene.name} {task}: findings with {compiler}", [f["sentence"] for f in document["findings"]], [])
            document = sanitize(dump, task, code=0)
            check(f"{scene.name} {task}: findings", [f["sentence"] for f in document["findings"]], [])
            asked = {k: (a["was_asked"], None if "schedules were tried in time" in (a["why_not"] or "") else a["why_not"]) for k, a in document["asked"].items()}
            check(f"{scene.name} {task}: asked", asked, dict.fromkeys(ALL.split(","), (True, None)))


def odd_views():
    """Views that a guard of whole tensors would take for bugs."""
    s = Scene("odd")
    wide = s.tensor("wide", (6, 7))
    copy = "for (int i = 0; i < {0}; ++i) for (int j = 0; j < {1}; ++j) y[i * Y->strides[0] + j * Y->strides[1]] = x[i * X->strides[0] + j * X->strides[1]];"
    s.once("columns", "in x, out y", copy.format(6, 3), wide[:, 1:4], s.output("y0", (6, 7))[:, 2:5])
    s.once("transposed", "in x, out y", copy.format(7, 6), wide.T, s.output("y1", (7, 6)))
    s.once("steps", "in x, out y", copy.format(3, 4), wide[::2, ::2], s.output("y2", (3, 4)))
    s.once("backward", "in x, out y", "for (int i = 0; i < n; ++i) y[i] = x[i * X->strides[0]];", wide[2, ::-1], s.output("y3", (7,)))
    s.once("scalar", "in x, out y", "y[0] = x[0];", s.tensor("zero", ()), s.output("y4", ()))
    s.once("empty", "in x, out y", "(void)x; (void)y;", s.tensor("none", (0, 3)), s.output("y5", (0, 3)))
    s.once("halves", "in x, out y", "for (int i = 0; i < n; ++i) y[i] = x[i];", s.tensor("h", (9,), "float16")[1:8], s.output("y6", (9,), "float16")[2:9],
           dtype="float16")
    s.once("bytes", "in x, out y", "for (int i = 0; i < n; ++i) y[i] = x[i];", s.tensor("b", (13,), "int8")[3:10], s.output("y7", (13,), "int8")[5:12],
           dtype="int8")
    s.once("repeated", "in x, out y", copy.format(4, 7), wide[1].broadcast(4), s.output("y8", (4, 7)))
    run = s.run("--runtime", "tensormap_and_ringbuffer")
    for name, number in run.numbers.items():
        document = sanitize(run.dump, number, code=0)
        check(f"{name}: findings", [f["sentence"] for f in document["findings"] + document["notes"]], [])


if __name__ == "__main__":
    sys.exit(run_parts(outside, exact, exact_and_clean, exact_words, uninitialised, initialised, unwritten, undefined, crashes, ends, prints, races, schedules, fences, foreign, constructors, waits, mixes, sources,
                       machines, odd_views, examples))
