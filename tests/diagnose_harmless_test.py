#!/usr/bin/python3
"""glassbox diagnose: what only looks like a bug is no finding, and the bug beside it is.

usage: diagnose_harmless_test.py GLASSBOX EXAMPLES

Sentences are compared in their parts only.
"""
import re
import shutil
import sys

from command_support import ENVIRONMENT, check, check_in, glassbox
from diagnose_support import ARGS, asked, COPY, named, question, QUESTIONS, recorded, text_of, TWICE, with_golden
from replay_findings_support import N, Scene, write_kernel
from replay_support import root, run_parts


def check_habits():
    """Kernels of unusual habits that are right: nobody is accused, whatever new memory holds."""
    s = Scene("habits")
    x, wide, one = s.tensor("x", (4, N)), s.tensor("wide", (4, N)), s.tensor("one", ())
    scratch, rows, y, z = s.temporary("scratch", (4, 2 * N)), s.output("rows", (4, N)), s.output("y", (4, N)), s.output("z", (4, N))
    s.kernel("scratch", "in x, out t, out y", f"float *m = t + block * {2 * N}; for (int i = 0; i < {N}; ++i) m[i] = x[block * {N} + i] + 1;"
             f" for (int i = 0; i < {N}; ++i) y[block * {N} + i] = m[{N - 1} - i];")
    s.task("scratch", x, scratch, rows, blocks=4)  # half of its scratch memory stays as it was
    counter = s.tensor("counter", (1,), "int32", "inout", fill="constant", value=0)
    s.kernel("tiles", "in x, inout int32_t c, out y", "for (int t; (t = __atomic_fetch_add(c, 1, __ATOMIC_ACQ_REL)) < 4;)"
             f" for (int i = 0; i < {N}; ++i) y[t * {N} + i] = 2 * x[t * {N} + i];")
    s.task("tiles", rows, counter, y, blocks=6)  # more blocks than work
    s.kernel("masked", ARGS, "for (int i = 0; i < n; ++i) y[i] = i % 5 ? x[i] : -__builtin_inff();")
    s.task("masked", y, z)
    parts, end, nothing = s.output("parts", (4, N)), s.output("end", (4, 60)), s.tensor("nothing", (0,))
    s.kernel("part", ARGS, "for (int i = 0; i < (int)Y->shape[0]; ++i) for (int j = 0; j < (int)Y->shape[1]; ++j)"
             " y[i * Y->strides[0] + j] = lut[i & 3] + x[i * X->strides[0] + j];", head="static const float lut[4] = {1, 2, 4, 8};")
    for i in range(4):
        s.task("part", wide[:, 16 * i:16 * i + 16], parts[:, 16 * i:16 * i + 16], name=f"part{i}")
    s.kernel("vectors", "in x, in empty, in one, out y", "for (int i = 0; i < 4; ++i) { float row[64]; memcpy(row, x + i * 64, i < 3 ? 256 : 240);"
             " for (int j = 0; j < 60; ++j) y[i * 60 + j] = row[j] + one[0]; }")
    s.task("vectors", parts[:, :60], nothing, one, end)  # whole vectors: the gap between rows comes along
    dump = recorded(s, "habits")
    document = asked(dump, code=0)
    check("habits: findings", (document["findings"], [one["findings"] for one in document["asked"]]), ([], [0] * len(QUESTIONS)))
    check("habits: all tasks were called", [question(document, name)["tasks"] for name in ("audit", "replay", "races")], [len(s.tasks)] * 3)


# Blocks whose order shows, in the last digits: any result is accepted.
LAST = "y[0] = x[0] + x[1] + x[2] + x[3] + block * 1e-6f;"
SUMS = {"plain": (LAST, ""),
        "fenced": (f"__sync_synchronize(); {LAST} __sync_synchronize();", ""),
        "largest": ("int32_t o = __atomic_load_n(y, 0); __sync_synchronize(); while (o < x[block] && !__atomic_compare_exchange_n(y, &o, x[block], 1, 0, 0))"
                    ' __asm__ volatile("pause");', ""),
        "locked": ("mtx_lock(&lock); y[0] += x[block]; mtx_unlock(&lock);", "#include <threads.h>\nstatic mtx_t lock;")}


def check_locks():
    """Blocks whose order shows: with a fence, a race is found and a maximum is none; with locks that no sanitizer knows, nothing is said
    as long as a golden accepts the results."""
    s = Scene("locks")
    for name, (body, head) in SUMS.items():
        is_float = name in ("plain", "fenced", "locked")
        fill = {"fill": "constant", "value": 0}
        dtype = "float32" if is_float else "int32"
        s.once(name, "in x, inout y", body, s.tensor(f"x_{name}", (4,), dtype),
               s.tensor(f"y_{name}", (1,), dtype, "inout", **fill), blocks=4, dtype=dtype, head=head)
    golden = "def golden(args):\n    return {" + ", ".join(
        f"'y_{name}': args['x_{name}'].{'max' if name == 'largest' else 'sum'}().reshape(1)" for name in SUMS) + "}\n"
    dump = recorded(with_golden(s, golden=golden), "locks")
    document = asked(dump, code=1)
    check("locks: what is accused", sorted(named(document)), [("write_race", "fenced", "y", [1]), ("write_race", "plain", "y", [0])])
    races = question(document, "races")
    check("locks: what is no finding", races["harmless"], "1 access depends on the order of blocks, and is atomic, says the thread sanitizer")
    check_in("locks: what is not known", "what 1 task leaves depends on the order of its blocks, and whether they race is not known: kernel locked calls mtx_lock, "
             "which the thread sanitizer does not know", races["why"] or "")
    wrong = asked(recorded(with_golden(s, golden=golden.replace("'y_locked': ", "'y_locked': 1 + ")), "locks-wrong", code=1), code=1)
    check_in("locks: a golden that does not accept them", ("write_race", "locked", "y", [3]), named(wrong))


def check_sizes():
    """A kernel that reads the size of a buffer, which no dump has: not asked, by name; one that leaves other values for another reason is accused."""
    s = Scene("sizes")
    x = s.tensor("x")
    s.once("sized", ARGS, "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)X->buffer_bytes;", x, s.output("y"))
    s.once("kept", ARGS, "for (int i = 0; i < n; ++i) y[i] = x[i] + (float)getppid();", x, s.output("z"),
           head="#include <unistd.h>")
    s.once("copied", ARGS, COPY, x, s.output("copy"))
    document = asked(recorded(s, "sizes"), code=1)
    check("sizes: findings", named(document), [("not_repeated", "kept", None, [1])])
    replay = question(document, "replay")
    check("sizes: what was asked", (replay["tasks"], replay["findings"], replay["not_asked"]), (2, 1, 1))
    check_in("sizes: why not", "kernel sized reads buffer_bytes of a tensor, which the dump does not have, and leaves other values without it", replay["why"] or "")


def check_printing():
    """What kernels print is no part of a verdict, with or without a finding; replay shows it."""
    s = Scene("printing")
    words = 'printf("said %d\\n", block); fprintf(stderr, "cried %d\\n", block);'
    s.once("speaks", ARGS, TWICE + words, s.tensor("x"), s.output("y"), head="#include <stdio.h>")
    s.once("adds", ARGS, f"y[0] += x[block]; {words}", s.tensor("v"), s.tensor("z", role="inout"), blocks=2, head="#include <stdio.h>")
    s.kernels["adds"]["signature"] = ["in", "inout"]
    dump = recorded(s, "printing")
    check("printing: what is accused", [f["kind"] for f in asked(dump, code=1)["findings"]], ["write_race"])
    check_in("printing: in a replay", "said 0\n", glassbox("replay", dump, "--task", 0).stderr)


def check_compilers():
    """Sanitizers that a machine does not have: said once, as asked of no task."""
    s = Scene("compilers")
    for name in ("one", "two"):
        s.once(name, ARGS, TWICE, s.tensor(f"x_{name}"), s.output(f"y_{name}"), reference=str(write_kernel("compilers-twice", ARGS, TWICE)))
    dump, tools = recorded(s, "compilers"), root / "tools-without-clang"
    tools.mkdir()
    for name in ("cc", "gcc", "as", "ld"):
        (tools / name).symlink_to(shutil.which(name))
    environment = {**ENVIRONMENT, "PATH": str(tools)}
    environment.pop("CC", None)
    sanitizers = question(asked(dump, "--no-save", code=0, environment=environment), "sanitizers")
    check("without clang: asked", (sanitizers["tasks"], sanitizers["not_asked"]), (2, 0))
    check("without clang: why", sanitizers["why"], "memory was asked of no task: clang is not on PATH; install it (apt install clang libclang-rt-dev llvm)")
    broken = tools / "broken"
    broken.write_text('#!/bin/sh\necho "first\nx.c:1: error: the compiler is broken\nlast" >&2\nexit 1\n')
    broken.chmod(0o755)
    for compiler, said in (("false", ""), (str(broken), ": x.c:1: error: the compiler is broken")):
        document = asked(dump, "--no-save", code=0, environment={**ENVIRONMENT, "CC": compiler})
        check_in(f"CC={compiler}: references", f"compilers-twice.c: {compiler} failed with code 1{said}", question(document, "references")["why"] + "\n")
        check(f"CC={compiler}: one line each", [one["why"] for one in document["asked"] if "\n" in (one["why"] or "")], [])


def check_order():
    """Nothing orders two tasks of which one reads what the other writes: both are named, and the argument."""
    s = Scene("order", in_order=False)
    x, y, z = s.tensor("x"), s.output("y"), s.output("z")
    s.kernel("copy", ARGS, COPY)
    s.kernel("last", "in from, out to", "for (int i = 0; i < n; ++i) to[i] = from[i]; (void)to;".replace("n;", "(int)gbx_tensor_numel(TO);", 1))
    s.task("copy", x, y)
    s.task("last", y, z)
    for runtime in ("host_build_graph", "aicpu_build_graph"):
        document = asked(recorded(s, f"order-{runtime}", "--runtime", runtime), code=1)
        first = document["findings"][0]
        check(f"order {runtime}: first", (first["kind"], {first["task_seq"], first["other_task_seq"]}), ("read_too_early", {0, 1}))
        check(f"order {runtime}: one finding", len(document["findings"]), 1)
        for part in ("task 0", "task 1", "from"):
            check_in(f"order {runtime}", part, first["sentence"])
    check("order: derived edges", asked(recorded(s, "order-derived"), code=0)["findings"], [])


# --- what is harmless, and what only looks like it ---

# What a kernel leaves depends on how many processes have called it since the run: 1 in the run, 2 in those of
# a check, and 1 again.
CHANCE = """#include <stdio.h>
#include <unistd.h>
static float chance(void) {
    FILE *f = fopen("%s", "r+");
    int pid, count = 0, is_known = 0;
    if (!f) return 1;
    for (; fscanf(f, "%%d", &pid) == 1; ++count) is_known |= pid == getpid();
    if (!is_known) fprintf(f, "%%d\\n", getpid());
    fclose(f);
    return count + !is_known <= %d ? 2 : 1;
}"""


def constants(scene, **values):
    """Tensors of one number each."""
    return [scene.tensor(name, (1,), "int32", fill="constant", value=value) for name, value in values.items()]


def asked_by_chance(dump, name, code, *options):
    """Of a dump with kernels that begin to vary after the run."""
    (root / name).write_text("")
    return asked(dump, "--jobs", "1", *options, code=code)


def accused(document):
    return [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]]


def check_chance_in_shared_memory():
    """Tasks write halves of one buffer, which is harmless. A call of another task that happens to leave what the run left does not explain why
    an earlier one did not."""
    s = Scene("halves", in_order=False)
    x, w = s.tensor("x"), s.tensor("w", role="inout")
    s.kernel("low", "in x, inout y", f"for (int i = 0; i < {N // 2}; ++i) y[i] = 3 * x[i];")
    s.kernel("high", "in x, inout y", f"for (int i = {N // 2}; i < {N}; ++i) y[i] = 3 * x[i];")
    s.kernel("varies", ARGS, "float by = chance(); for (int i = 0; i < n; ++i) y[i] = by * x[i];", head=CHANCE % (root / "halves.calls", 2))
    s.task("low", x, w)
    s.task("high", x, w)
    s.task("varies", x, s.output("y"))
    dump = recorded(s, "halves", "--runtime", "host_build_graph")
    document = asked_by_chance(dump, "halves.calls", 1)
    check("halves: what is accused", accused(document), [("not_repeated", "varies", [2])])
    check("halves: tasks without order are harmless", question(document, "audit")["harmless"] is None, False)
    harmless = question(document, "replay")["harmless"]  # where the two halves were written at the same time
    check(f"halves: values that differ ({harmless})", harmless is None or bool(re.fullmatch(
        "[12] tasks? leaves? other values than the dump has, where (it does|they do) not write and another task did", harmless)), True)


def check_chance_in_sums():
    """Sums of several blocks may differ by rounding in each call. A task that once differed by more is no sum, whether later calls leave what the
    run left, or differ by rounding."""
    for name, noise, kind in (("sums", "0", "not_repeated"), ("noise", "1e-6f * (calls++ & 1)", "not_deterministic")):
        s = Scene(name)
        x = s.tensor("x")
        s.kernel("varies", ARGS, f"float by = block ? 1 : chance() + {noise}; for (int i = block * {N // 2}; i < (block + 1) * {N // 2}; ++i)"
                 " y[i] = by * x[i];", head=CHANCE % (root / f"{name}.calls", 2) + "\nstatic int calls;")
        s.task("varies", x, s.output("y"), blocks=2)
        dump = recorded(with_golden(s, golden="def golden(args):\n    return {'y': args['x']}\n"), name)
        document = asked_by_chance(dump, f"{name}.calls", 1)
        check(f"{name}: the golden accepts them", [question(document, "golden")[key] for key in ("tasks", "findings")], [1, 0])
        check(f"{name}: what is accused", accused(document), [(kind, "varies", [0])])


def check_sums():
    """Sums that differ by rounding in each call, of more tasks than are called again: nobody is accused but the last, which once differed by more."""
    s = Scene("rounding")
    x, right, wrong = s.tensor("x"), *constants(s, right=0, wrong=1)
    s.kernel("sums", "in x, in int32_t wrong, out y", f"float by = block ? 1 : 1 + 1e-6f * (calls++ % 3) + (*wrong ? chance() - 1 : 0);"
             f" for (int i = block * {N // 2}; i < (block + 1) * {N // 2}; ++i) y[i] = by * x[i];",
             head=CHANCE % (root / "rounding.calls", 3) + "\nstatic int calls;")
    y = s.output("y", (25, N))
    for i in range(25):
        s.task("sums", x, wrong if i == 24 else right, y[i], blocks=2, name=f"sums{i}")
    dump = recorded(with_golden(s, golden="def golden(args):\n    return {'y': [args['x']] * 25}\n"), "rounding")
    document = asked_by_chance(dump, "rounding.calls", 1)
    check("rounding: what is accused", accused(document), [("not_deterministic", "sums", [24])])
    check_in("rounding: the others", "24 tasks leave values that differ in each call by rounding", question(document, "replay")["harmless"] or "")


def check_chance_behind_missing_edge():
    """Two tasks that a missing edge leaves without order may leave other values where they overlap, and not elsewhere."""
    s = Scene("edges", in_order=False, edges=[(1, 2)])
    x, w, v = s.tensor("x"), s.tensor("w", role="inout"), s.tensor("v", role="inout")
    s.kernel("first", "in x, inout w", "w[0] = 5;")
    s.kernel("varies", "in x, inout w, inout v", "float by = chance(); w[0] = 7; for (int i = 0; i < n; ++i) v[i] = by * x[i];".replace("n;", f"{N};"),
             head=CHANCE % (root / "edges.calls", 2))
    s.task("first", x, w)
    s.task("first", x, w)
    s.task("varies", x, w, v)  # 2 waits for 1, and would for 0 if that waited for 1
    dump = recorded(s, "edges", "--runtime", "host_build_graph")
    document = asked_by_chance(dump, "edges.calls", 1)
    check("edges: what is accused", accused(document), [("overlapping_writes", "first", [1]), ("not_repeated", "varies", [2])])
    check_in("edges: the pair that follows", "1 more pair of tasks has no order", question(document, "audit")["harmless"] or "")


def check_chosen_of_pairs():
    """--task counts only what it has chosen, and takes no pair for a finding that is none without it."""
    s = Scene("chosen", in_order=False)
    x, y = s.tensor("x"), s.output("y")
    s.kernel("twice", ARGS, TWICE)
    s.kernel("copy", ARGS, COPY)
    for kernel in ("twice", "twice", "copy"):
        s.task(kernel, x, y)
    dump = recorded(s, "chosen", "--runtime", "host_build_graph")
    everything = asked(dump, "--no-save", code=1)
    check("chosen: all pairs", named(everything), [("overlapping_writes", "twice", "y", [1]), ("overlapping_writes", "copy", "y", [2])])
    for task, pairs in ((0, [(1, 0)]), (1, [(1, 0), (2, 1)]), (2, [(2, 1)])):
        text, document = text_of(dump, "--task", task, code=1), asked(dump, "--task", task, code=1)
        check(f"chosen {task}: pairs", [(f["task_seq"], f["other_task_seq"]) for f in document["findings"]], pairs)
        check(f"chosen {task}: no other evidence", [f["evidence"] for f in document["findings"]], [[]] * len(pairs))
        check(f"chosen {task}: numbers of tasks", [question(document, name)["tasks"] for name in ("audit", "replay", "sanitizers")], [1, 1, 1])
        check(f"chosen {task}: findings", question(document, "audit")["findings"], len(pairs))
        check_in(f"chosen {task}", f"not accused: {int(task == 0)} of 1 task;", text)


def check_crash_under_sanitizer():
    """The thread sanitizer says nothing of races if the task crashed under it, even where another sanitizer has said why."""
    s = Scene("crashing")
    x, y = s.tensor("x"), s.output("y", (1,))
    crash = "#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)\n    volatile int *nowhere = (int *)(uintptr_t)(n - 1); *nowhere = 1;\n#endif\n"
    s.kernel("last", ARGS, "float mine = block + 1; __atomic_store((float *)y, &mine, __ATOMIC_SEQ_CST);\n" + crash)
    s.task("last", x, y, blocks=2)
    document = asked(recorded(s, "crashing"), code=1)
    check("crashing: what is accused", accused(document), [("write_race", "last", [0])])
    check("crashing: nothing is harmless", question(document, "races")["harmless"], None)


if __name__ == "__main__":
    sys.exit(run_parts(check_habits, check_locks, check_sizes, check_printing, check_compilers, check_order, check_chance_in_shared_memory,
                       check_chance_in_sums, check_sums, check_chance_behind_missing_edge, check_chosen_of_pairs, check_crash_under_sanitizer))
