#!/usr/bin/python3
"""glassbox check and tasks that are wrong because of others: the culprit is named, its victims are not accused.

usage: check_victims_test.py GLASSBOX EXAMPLES

Each scene plants an overrun; what it left in the dump is computed here with numpy.
"""
import json
import sys

import numpy as np

from command_support import ENVIRONMENT, check, check_in, glassbox
from replay_findings_support import N, Scene, write_kernel
from replay_support import root, run_parts, shared

TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
ARGS = "in x, out y"
FINE = "if (block == 0) " + TWICE
WRONG = FINE + " if (block == 0) y[7] = 0;"
RUNNING = {**ENVIRONMENT, "GLASSBOX_TEST_TOGETHER": "1"}  # of the run; calls later do not have it
NEAR = "for (int i = 0; i < 5; ++i) y[n + i] = x[i] + 0.5f;"

# All kernels without a body are this file, so they share `victims` and `is_over`. The guilty task waits until all victims have written, and
# they wait for it; each task has two blocks, so that each gets a worker at once.
TOGETHER = """#include <glassbox/kernel.h>
#include <stdlib.h>
static int victims, is_over;
static void reach(const int *value, int wanted) { while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < wanted) sched_yield(); }
void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int n = (int)gbx_tensor_numel(gbx_arg_tensor(args, 1)), is_guilty = x[0] == GUILTY, waits = getenv("GLASSBOX_TEST_TOGETHER") != 0;
    if (gbx_local(args)->block_idx)
        return;
    for (int i = 0; i < n; ++i)
        y[i] = 2 * x[i];
    if (!is_guilty) {
        __atomic_add_fetch(&victims, 1, __ATOMIC_ACQ_REL);
        if (waits)
            reach(&is_over, 1);
        return;
    }
    if (waits)
        reach(&victims, VICTIMS);
    STRAYS
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}
"""


TWICE_ALL = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"


def start(task):
    return 100 * (task + 1)


def make_victims(name, bodies, strays=NEAR, guilty=0, rows=None, height=None):
    """Tasks without a body run at the same time: the guilty one overwrites what the others have written. Task i writes row rows[i]."""
    s = Scene(name, in_order=False)
    rows = rows or list(range(len(bodies)))
    tiles = s.output("tiles", (height or len(bodies), N))
    source = TOGETHER.replace("GUILTY", f"{start(guilty)}.0f").replace("VICTIMS", str(bodies.count(None) - 1)).replace("STRAYS", strays)
    reference = str(write_kernel("victim_reference", ARGS, FINE))
    for i, body in enumerate(bodies):
        x = s.tensor(f"x{i}", fill="arange", start=start(i))
        s.kernel(f"kernel{i}", ARGS, body or "", reference=reference)
        if body is None:
            s.kernels[f"kernel{i}"]["source"] = str(shared(f"{name}-together.c", source))
        s.task(f"kernel{i}", x, tiles[rows[i]], blocks=2, name=f"task{i}")
    return s


def twice(task):
    return 2 * (start(task) + np.arange(N, dtype=np.float32))


def checked(dump, *options, code=1):
    done = glassbox("check", dump, "--json", *options)
    check(f"check {dump.name} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return json.loads(done.stdout)


def text_of(dump, *options, code=1):
    done = glassbox("check", dump, *options)
    check(f"check {dump.name} {options}: exit code and stderr of the text", (done.returncode, done.stderr), (code, ""))
    return done.stdout


def verdicts_of(document):
    return [task["verdict"] for task in sorted(document["tasks"], key=lambda task: task["task_seq"])]


def compare_acquitted(name, run, culprit, reasons):
    """The victims, and only they, are overwritten, each for its reason; the first line names the culprit."""
    document, text = checked(run.dump), text_of(run.dump)
    wanted = ["overwritten" if i in reasons else "right" for i in range(len(run.numbers))]
    reasons = {victim: f"task {culprit}, kernel kernel{culprit}, {reason}" for victim, reason in reasons.items()}
    check(f"{name}: verdicts", verdicts_of(document), wanted)
    check(f"{name}: introduced", (document["introduced"], document["first"]), (0, None))
    check(f"{name}: reasons", {task["task_seq"]: task["reason"] for task in document["tasks"] if task["reason"]}, reasons)
    check(f"{name}: nobody is accused", "is the first that is wrong" in text, False)
    check(f"{name}: first line", text.startswith(f"task {culprit}, kernel kernel{culprit}, "), True)
    for victim, reason in reasons.items():
        check_in(f"{name}: text", f"overwritten: task {victim}, kernel kernel{victim}, is wrong in the dump, but its kernel leaves the right values when "
                 f"it is called again: {reason}\n", text)
    return document


# --- overruns that a replay sees completely ---


def check_near():
    for name, bodies, options, verdicts in (
            ("victim", [None, None], ("-p", "a5sim"), ["right", "overwritten"]),
            ("victim-wrong", [None, None, WRONG, FINE], ("-p", "a2a3sim", "--runtime", "host_build_graph"), ["right", "overwritten", "introduced", "right"]),
            ("victim-thread", [None, None, FINE], ("--runtime", "aicpu_build_graph", "--device", "thread"), ["right", "overwritten", "right"])):
        run = make_victims(name, bodies).run(*options, environment=RUNNING)
        want = twice(1)
        want[:5] = start(0) + np.arange(5, dtype=np.float32) + np.float32(0.5)
        check(f"{name}: what the victim left", run.values("task1", 1).tobytes(), want.tobytes())
        check(f"{name}: what the guilty one left", run.values("task0", 1).tobytes(), twice(0).tobytes())
        document = checked(run.dump)
        check(f"{name}: verdicts", verdicts_of(document), verdicts)
        check(f"{name}: introduced", (document["introduced"], document["first"] and document["first"]["task_seq"]),
              (verdicts.count("introduced"), 2 if "introduced" in verdicts else None))
        check(f"{name}: reason", document["tasks"][1]["reason"], "task 0, kernel kernel0, wrote into its output")
        found = run.found("task0", "stray_write", document={"findings": document["findings"]}, arg=1, element=None, size=20, span=20,
                          address=run.address("task1", 1, (0,)), owner=run.owner("task1", 1, (0,)), blocks=[])
        text = text_of(run.dump)
        if found:
            check(f"{name}: first line", text.split("\n")[0], found["sentence"])
        document = run.replay("task1", code=1)
        check(f"{name}: replay of the victim", (document["verdict"], document["findings"], [o["mismatches"] for o in document["outputs"]]), ("differs", [], [5]))
        check_alone(name, run)


def check_alone(name, run):
    """Without the other tasks nobody can be named; the victim is not accused all the same."""
    for options in (("--task", 1), ("--kernel", "kernel1"), ("--kernel", "kernel1", "--task", "0..1")):
        flags = " and ".join(flag for flag in ("--task", "--kernel") if flag in options)
        reason = f"another task may have written there; run glassbox check without {flags}"
        document, text = checked(run.dump, *options), text_of(run.dump, *options)
        check(f"{name} {options}: verdict", [(task["task_seq"], task["verdict"], task["reason"]) for task in document["tasks"]], [(1, "not_repeated", reason)])
        check(f"{name} {options}: counts", [document[key] for key in ("checked", "introduced", "not_repeated", "first")], [1, 0, 1, None])
        check(f"{name} {options}: first line", text.split("\n")[0],
              f"task 1, kernel kernel1, is wrong in the dump, but its kernel leaves the right values when it is called again: {reason}")
        check(f"{name} {options}: said once", text.count(reason), 1)
    document = checked(run.dump, "--task", 0)
    check(f"{name}: the culprit alone", (verdicts_of(document), [f["kind"] for f in document["findings"]]), (["right"], ["stray_write"]))


def check_ranges():
    """40 strays of four bytes each: a replay lists 32. The victim is hit only by the others."""
    run = make_victims("ranges", [None, None], "for (int i = 0; i < 40; ++i) y[n + 2 * i] = 0.5f;", rows=[0, 2], height=3).run(environment=RUNNING)
    want = twice(1)
    want[:16:2] = 0.5
    check("ranges: what the victim left", run.values("task1", 1).tobytes(), want.tobytes())
    document = compare_acquitted("ranges", run, 0, {1: "wrote into its output"})
    check("ranges: bytes", [f["extent"]["bytes"] for f in document["findings"]], [160])


def check_input():
    """A stray write into what a task is about to read, after it was recorded."""
    s = Scene("input", in_order=False)
    body = "    for (int i = 0; i < n; ++i)\n        y[i] = 2 * x[i];\n"
    wait = "            reach(&is_over, 1);\n"
    source = TOGETHER.replace(body, "").replace(wait, wait + body).replace("STRAYS", body + "    ((float *)x)[n] = -1;")
    source = source.replace("GUILTY", f"{start(0)}.0f").replace("VICTIMS", "1")
    xs = s.tensor("xs", (2, N), fill="arange", start=start(0))
    reference = str(write_kernel("victim_reference", ARGS, FINE))
    for i in range(2):
        s.kernel(f"kernel{i}", ARGS, "", reference=reference)
        s.kernels[f"kernel{i}"]["source"] = str(shared("input-together.c", source))
        s.task(f"kernel{i}", xs[i], s.output(f"y{i}"), blocks=2, name=f"task{i}")
    run = s.run(environment=RUNNING)
    x = run.values("task1", 0, "before_dispatch")
    check("input: recorded", x.tolist(), (start(0) + N + np.arange(N)).tolist())
    want = 2 * x
    want[0] = -2
    check("input: what the victim left", run.values("task1", 1).tobytes(), want.tobytes())
    compare_acquitted("input", run, 0, {1: "wrote into its input while it ran"})


# --- overruns that end a replay ---


def check_far():
    """Behind its window a replay faults: how far the writes went is not known, and several tasks are hit."""
    near, far = "wrote into its output", "writes far outside its outputs, and may have written there"
    for name, count, guilty, rows, strays in (
            ("far", 8192, 0, [0, 1], "y[n + i]"),
            ("farther", 75 * 1024, 0, [0, 1, 100, 1100], "y[n + i]"),
            ("before", 8192, 1, [110, 180, 175], "y[-1 - i]"),
            ("between", 20000, 1, [600, 300, 301, 900, 302], "y[n + i]")):
        run = make_victims(name, [None] * len(rows), f"for (int i = 0; i < {count}; ++i) {strays} = 0.5f;", guilty, rows, 1300).run(
            "-p", "a5sim", environment=RUNNING)
        first = rows[guilty] + 1 if "n +" in strays else rows[guilty] - count // N
        hit = [i for i, row in enumerate(rows) if i != guilty and first <= row < first + count // N]
        for i in range(len(rows)):
            want = np.full(N, 0.5, np.float32) if i in hit else twice(i)
            check(f"{name}: what task {i} left", run.values(f"task{i}", 1).tobytes(), want.tobytes())
        # A call has at least a page on each side of a tensor, and a few at most.
        document = compare_acquitted(name, run, guilty, {i: near if abs(rows[i] - rows[guilty]) * 4 * N < 4096 else far for i in hit})
        check(f"{name}: replays", [t["replay"] for t in sorted(document["tasks"], key=lambda task: task["task_seq"])],
              ["fault" if i == guilty else "differs" if i in hit else "bit_exact" for i in range(len(rows))])
        check(f"{name}: findings", [(f["task_seq"], f["kind"]) for f in document["findings"]], [(guilty, "stray_write")])


def check_failing():
    """A victim whose kernel fails when it is called again: nobody knows what it leaves, so it is not accused. Without a culprit it is."""
    for name, strays, verdict in (("fails", NEAR, "not_repeated"), ("fails-alone", "x = 0;", "right")):
        s = make_victims(name, [None, None], strays)
        source = root / f"{name}.c"
        text = open(s.kernels["kernel1"]["source"]).read()
        source.write_text(text.replace("reach(&is_over, 1);", "reach(&is_over, 1);\n        else\n            __builtin_trap();"))
        for kernel in s.kernels.values():
            kernel["source"] = str(source)
        run = s.run("-p", "a5sim", environment=RUNNING)
        document, text = checked(run.dump), text_of(run.dump)
        check(f"{name}: verdicts", verdicts_of(document), ["right", verdict])
        check(f"{name}: replays", [t["replay"] for t in sorted(document["tasks"], key=lambda task: task["task_seq"])], ["bit_exact", "fault"])
        check(f"{name}: nobody is accused of wrong values", (document["introduced"], "is the first that is wrong" in text), (0, False))
        if verdict == "not_repeated":
            check_in(f"{name}: text", "not repeated: task 1, kernel kernel1, is wrong in the dump, but its kernel fails when it is called again, and may not "
                     "be to blame: task 0, kernel kernel0, wrote into its output\n", text)


def check_earlier():
    """A task that had completed before the victim began is not its culprit, although it writes there."""
    s = Scene("earlier")
    reference = str(write_kernel("earlier_reference", "in x, out y", TWICE_ALL))
    tiles = s.output("tiles", (2, N))
    s.kernel("strays", "in x, out y", TWICE_ALL + " for (int i = 0; i < 5; ++i) y[n + i] = 0.5f;", reference=reference)
    s.kernel("flaky", "in x, out y", TWICE_ALL + ' if (getenv("GLASSBOX_TEST_TOGETHER")) y[50] = -1;', head="#include <stdlib.h>", reference=reference)
    x = s.tensor("x", fill="arange", start=start(0))
    s.task("strays", x, tiles[0])
    s.task("flaky", x, tiles[1])
    run = s.run(environment=RUNNING)
    want = twice(0)
    want[50] = -1
    check("earlier: what the victim left", run.values("flaky", 1).tobytes(), want.tobytes())
    document = checked(run.dump)
    check("earlier: verdicts", verdicts_of(document), ["right", "not_repeated"])
    check("earlier: nobody is named", "strays" in [t for t in document["tasks"] if t["task_seq"] == 1][0]["reason"], False)
    check("earlier: findings", [(f["task_seq"], f["kind"]) for f in document["findings"]], [(0, "stray_write")])


# --- tasks that are wrong, and no other is guilty ---


def check_many():
    """A victim and 22 wrong tasks: the list has the first 20 of them."""
    run = make_victims("many", [None, None] + [WRONG] * 22).run("-p", "a5sim", environment=RUNNING)
    document, text = checked(run.dump), text_of(run.dump)
    check("many: verdicts", verdicts_of(document), ["right", "overwritten"] + ["introduced"] * 22)
    lines = [line.split() for line in text.split("\n") if "1 of 64" in line and "[7]" in line]
    check("many: listed", [(int(line[0]), float(line[-2]), float(line[-1])) for line in lines if line[0].isdigit()],
          [(i, float(twice(i)[7]), 0.0) for i in range(2, 22)])
    check_in("many: more", "\nand 2 more; --json lists all\n", text)


def check_nobody():
    """Wrong in the run only: by something that the dump does not have, or by a kernel whose values vary anyway."""
    s = Scene("nobody")
    x, reference = s.tensor("x"), str(write_kernel("nobody_reference", ARGS, TWICE))
    head = "#include <stdlib.h>"
    once = TWICE + ' if (getenv("GLASSBOX_TEST_TOGETHER")) y[3] = 0;'
    s.once("surprise", ARGS, once, x, s.output("y0"), reference=reference, head=head)
    s.once("varies", ARGS, once + " static int calls; y[5] *= 1 + 1e-6f * (++calls % 5);", x, s.output("y1"), reference=reference, head=head)
    s.once("fine", ARGS, TWICE, x, s.output("y2"), reference=reference)
    run = s.run(environment=RUNNING)
    for name in ("surprise", "varies"):
        check(f"nobody: {name} recorded", (run.values(name, 1)[3], run.values(name, 1)[4]), (0.0, 2 * run.values(name, 0, "before_dispatch")[4]))
    document = checked(run.dump)
    check("nobody: verdicts", verdicts_of(document), ["not_repeated", "introduced", "right"])
    check("nobody: reason", document["tasks"][0]["reason"],
          "something else wrote there, or its result depends on timing or on what the dump does not have")
    check("nobody: findings", [(f["task_seq"], f["kind"]) for f in document["findings"]], [(1, "not_deterministic")])
    text = text_of(run.dump)
    check_in("nobody: text", "\nnot repeated: task 0, kernel surprise, is wrong in the dump, but its kernel leaves the right values when it is called again: "
             "something else wrote there", text)
    check_in("nobody: counts", "\n3 checked: 1 introduced, 1 right; 0 not checked; 1 not repeated; 1 with findings\n", text)


# --- what was not asked, notes, and a broken installation ---


def check_not_asked():
    s = Scene("quiet")
    x = s.tensor("x", (4, 16))
    meet = "gbx_flag_add(f, 1); gbx_flag_wait(f, 4);"
    fill = "for (int i = block * 16; i < block * 16 + 16; ++i) y[i] = x[i]; "
    flags = s.tensor("f", (1,), "uint32", "inout", fill="constant", value=0)
    s.once("fine", ARGS, fill, x, s.output("y0", (4, 16)), blocks=4)
    s.once("meets", "in x, out y, inout uint32_t f", fill + meet, x, s.output("y1", (4, 16)), flags, blocks=4)
    s.once("forgets", ARGS, "if (block == 0) for (int i = 0; i < 16; ++i) y[i] = x[i];", x, s.temporary("t", (4, 16)))
    run = s.run()
    document, text = checked(run.dump), text_of(run.dump)
    check("quiet: notes", [(note["kind"], note["task_seq"], note["elements"]) for note in document["notes"]], [("unwritten", 2, 48)])
    check("quiet: findings", document["findings"], [])
    check("quiet: races that were not asked", document["races_not_asked"], 1)
    check_in("quiet: text", "\nnot asked: races of 1 task, the first is task 1: blocks wait for each other\n", text)
    check("quiet: only that", text.count("not asked:"), 1)
    (run.dump / "run.json").rename(root / "run.json.kept")
    text = text_of(run.dump, "--scene", root / "scenes" / "quiet")
    check_in("quiet: without kernels", "\nnot asked: stray writes, undeclared reads and races of 3 tasks, the first is task 0: ", text)
    (root / "run.json.kept").rename(run.dump / "run.json")


def check_differing():
    """No reference says which is right."""
    s = Scene("differing")
    x = s.tensor("x")
    s.once("surprise", ARGS, TWICE + ' if (getenv("GLASSBOX_TEST_TOGETHER")) y[3] = 0;', x, s.output("y0"), head="#include <stdlib.h>")
    run = s.run(environment=RUNNING)
    check_in("differing: text", "\ndiffers: when called again, the kernels of 1 task leave other values than the dump has; the first is task 0: "
             f"glassbox replay {run.dump} --task 0\n", text_of(run.dump))


def check_installation():
    """Without the program that calls kernels nothing can be checked, with or without references."""
    for name, fields in (("bare", {}), ("judged", {"reference": str(write_kernel("installed_reference", ARGS, TWICE))})):
        s = Scene(name)
        s.once("fine", ARGS, TWICE, s.tensor("x"), s.output("y"), **fields)
        run = s.run()
        done = glassbox("check", run.dump, environment={**ENVIRONMENT, "GLASSBOX_CALL": "/nonexistent"})
        check(f"installation, {name}: exit code and stdout", (done.returncode, done.stdout), (2, ""))
        check(f"installation, {name}: one sentence ({done.stderr})", (done.stderr.count("\n"), "/nonexistent" in done.stderr), (1, True))


# --- references that hang ---


def check_hung_reference():
    """Of a mix, only the reference that hangs is left out later; one that waits for a flag forever is left out, too."""
    s = Scene("hung")
    x, args = s.tensor("x"), "in x, out y, out z"
    for name, mine, body in (("good", "y", TWICE.replace("< n", "< 64")), ("spins", "z", "volatile int one = 1; while (one) ;"),
                             ("stuck", "z", "static uint32_t flag; gbx_flag_wait(&flag, 1);")):
        s.kernel(name, args, f"for (int i = 0; i < 64; ++i) {mine}[i] = 2 * x[i];",
                 reference=str(write_kernel(f"hung_{name}", args, body)))
    for i, other in enumerate([*["spins"] * 4, *["stuck"] * 4, None]):
        s.task({"aiv0": "good", "aiv1": other} if other else "good", x, s.output(f"y{i}"), s.output(f"z{i}"), name=f"task{i}")
    run = s.run()
    again = "its references hung together in an earlier task and were not run again"
    for name, tasks, reason, patience in (("spins", "0..3", "hung: it took longer than --timeout", 2),
                                          ("stuck", "4..7", "waits for a flag that nothing sets", 60)):
        reasons = [task["reason"] for task in checked(run.dump, "--task", tasks, "--jobs", 1, "--timeout", patience)["tasks"]]
        first = f"the reference of kernel {name} {reason}"
        check(f"hung, {name}: first and last", (reasons[0], reasons[-1]), (first, again))
        check(f"hung, {name}: one more at most", reasons.count(first) <= 2, True)
    document = checked(run.dump, "--task", 0, "--task", 8, "--jobs", 1, "--timeout", 2)
    check("hung: the other kernel of the mix", document["tasks"][1]["reason"], "its reference writes no element of output z (argument 2)")


if __name__ == "__main__":
    sys.exit(run_parts(check_near, check_ranges, check_input, check_far, check_failing, check_earlier, check_many, check_nobody, check_not_asked, check_differing,
                       check_installation, check_hung_reference))
