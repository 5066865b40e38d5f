#!/usr/bin/python3
"""What replay and check say of many tasks and of processes that fail: nothing of one task reaches another.

usage: replay_engine_test.py GLASSBOX EXAMPLES

Elements, extents and readers are computed from the manifest and from how each kernel is written.
"""
import json
import os
import shutil
import sys

import numpy as np

from command_support import ENVIRONMENT, check, check_in, glassbox
from replay_findings_support import N, Scene, kinds, replayed, write_kernel
from replay_support import root, run_parts

ARGS = "in x, out y"
TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"


# --- elements that are not written ---


def make_unwritten():
    """Each kernel leaves more gaps than an answer has room for, or two outputs have some."""
    s = Scene("unwritten")
    x, wide = s.tensor("x", (2048,)), s.tensor("wide", (400, 64))
    half = "for (int i = 0; i < 2048; i += 2) y[i] = 2 * x[i];"
    copy = "for (int i = 0; i < n; ++i) y[i] = x[i * X->strides[0]];"
    rows = "for (int i = 0; i < (int)Y->shape[0]; ++i) for (int j = 0; j < (int)Y->shape[1]; ++j) y[i * %s + j] = x[i * %s + j];"
    s.kernel("half", ARGS, half)
    s.kernel("copy", ARGS, copy)
    every, odd = s.temporary("every", (2048,)), s.temporary("odd", (2048,))
    s.task("half", x, every, name="half")
    s.task("copy", every[1024:2048:2], s.output("of_even", (512,)), name="reads_even")
    s.task("half", x, odd, name="half_read")
    s.task("copy", odd[2047:2048], s.output("of_odd", (1,)), name="reads_odd")
    both, tail = s.temporary("both", (2048,)), s.temporary("tail", (N,))
    s.once("two", "in x, out y, out w", half + " for (int i = 0; i < 60; ++i) w[i] = x[i];", x, both, tail)
    s.once("reads_tail", ARGS, TWICE, tail, s.output("of_tail"))
    s.kernel("left", ARGS, "for (int i = 0; i < 400; ++i) for (int j = 0; j < 48; ++j) y[i * 64 + j] = x[i * 64 + j];")
    s.kernel("columns", ARGS, rows % ("Y->strides[0]", "X->strides[0]"))
    lefts, rights = s.temporary("lefts", (400, 64)), s.temporary("rights", (400, 64))
    s.task("left", wide, lefts, name="left")
    s.task("columns", lefts[:, :48], s.output("of_left", (400, 48)), name="reads_left")
    s.task("left", wide, rights, name="left_read")
    s.task("columns", rights[:, 47:49], s.output("of_right", (400, 2)), name="reads_right")
    # Irregular gaps: more of them than fit, so nobody may claim that there is no reader.
    s.kernel("odds", ARGS, "for (int i = 0; i < 2048; ++i) if ((i * i / 7) % 3) y[i] = x[i];")
    s.task("odds", x, s.temporary("odds", (2048,)), name="odds")
    # A transposed output: the first and the last element are not the lowest and the highest in memory.
    skip = "for (int i = 0; i < 8; ++i) for (int j = 0; j < 8; ++j) if (!((i == 0 && j > 4) || (i == 7 && j > 2))) y[i * Y->strides[0] + j * Y->strides[1]] = x[i * 8 + j];"
    s.once("transposed", ARGS, skip, s.tensor("square", (8, 8)), s.output("squared", (8, 8)).T)
    return s


def check_unwritten():
    run = make_unwritten().run()
    run.replay_all(code=1)
    run.compare_singles()
    run.noted("half", "unwritten", verdict="equal_where_written", arg=1, element=(1,), address=run.address("half", 1, (1,)), size=4096, span=8188, owner=None)
    run.found("half_read", "unwritten_read", verdict="equal_where_written", arg=1, element=(1,), owner=run.owner("reads_odd", 0, (0,)))
    document = run.documents["two"]
    check("two: kinds", (kinds(document), kinds(document, "notes")), (["unwritten_read"], ["unwritten"]))
    run.check_members("two", document["findings"][0], "two", arg=2, element=(60,), address=run.address("two", 2, (60,)), size=16, span=16,
                      owner=run.owner("reads_tail", 0, (60,)))
    run.check_members("two", document["notes"][0], "two", arg=1, element=(1,), size=4096, owner=None)
    run.noted("left", "unwritten", verdict="equal_where_written", arg=1, element=(0, 48), size=400 * 16 * 4, owner=None)
    run.found("left_read", "unwritten_read", verdict="equal_where_written", arg=1, element=(0, 48), owner=run.owner("reads_right", 0, (0, 1)))
    missing = [i for i in range(2048) if (i * i // 7) % 3 == 0]
    note = run.noted("odds", "unwritten", verdict="equal_where_written", arg=1, element=(missing[0],), size=4 * len(missing), owner=None,
                     span=4 * (missing[-1] - missing[0] + 1))
    check("odds: elements", note and note["elements"], len(missing))
    for name, followed in (("half", True), ("left", True), ("odds", False)):
        note = run.documents[name]["notes"][0]
        check(f"{name}: followed", note["followed"], followed)
        check_in(f"{name}: sentence", "no later task and no result reads them" if followed else "was not searched completely", note["sentence"])
    gone = [(0, 5), (0, 6), (0, 7), (7, 3), (7, 4), (7, 5), (7, 6), (7, 7)]
    at = [run.address("transposed", 1, element) for element in gone]
    run.found("transposed", "unwritten_read", verdict="equal_where_written", arg=1, element=(0, 5), address=min(at), size=4 * len(gone),
              span=max(at) + 4 - min(at), owner=run.result_owner("squared", (5, 0)))


# --- many tasks ---


def check_repeats():
    """A byte that strays counts once, however often the task runs."""
    s = Scene("repeats")
    x = s.tensor("x")
    s.once("end5", ARGS, TWICE + " for (int i = 0; i < 5; ++i) y[n + i] = x[i];", x, s.output("y"))
    run = s.run()
    for count in (1, 255, 256, 257, 300):
        document = run.replay("end5", "--repeat", count, code=1)
        run.found("end5", "stray_write", document=document, arg=1, element=None, address=run.address("end5", 1, (N,)), size=20, span=20)
        check(f"{count} runs: stray bytes", document["stray_bytes"], 20)


def checked(dump, *options, code):
    done = glassbox("check", dump, "--json", *options)
    check(f"check {dump.name} {options}: exit code and stderr", (done.returncode, done.stderr), (code, ""))
    return json.loads(done.stdout)


def check_empty_outputs():
    """An output without elements says nothing: not what an earlier task of the batch left."""
    s = Scene("empty", in_order=False)
    x, args = s.tensor("x"), "in x, out e, out y"
    s.kernel("wrong", ARGS, TWICE, reference=str(write_kernel("thrice", ARGS, "for (int i = 0; i < n; ++i) y[i] = 3 * x[i];")))
    s.kernel("right", args, TWICE, reference=str(write_kernel("twice", args, TWICE)))
    e, y = s.output("e", (4, N)), s.output("y", (200, N))
    for i in range(200):
        s.task(*(("wrong", x, y[i]) if i < 140 else ("right", x, e[0:0], y[i])), name=f"task{i}")
    run = s.run()
    for jobs in (1, 2):
        document = checked(run.dump, "--jobs", jobs, code=1)
        check(f"{jobs} jobs: verdicts", [task["verdict"] for task in sorted(document["tasks"], key=lambda task: task["task_seq"])],
              140 * ["introduced"] + 60 * ["right"])
        sizes = [output["elements"] for task in document["tasks"] if task["kernel"] == "right" for output in task["outputs"]]
        check(f"{jobs} jobs: elements", sorted(sizes), 60 * [0] + 60 * [N])


def check_hanging_mix():
    """A reference that hangs in a mix is not held against the other one of the mix."""
    s = Scene("mix", in_order=False)
    x, args = s.tensor("x"), "in x, out y, out z"
    first, second = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];", "for (int i = 0; i < n; ++i) z[i] = 3 * x[i];"
    s.kernel("first", args, first, reference=str(write_kernel("ref_first", args, first)))
    s.kernel("second", args, second, reference=str(write_kernel("ref_second", args, "for (volatile int i = 0; i == 0;) ;")))
    s.kernel("third", args, second, reference=str(write_kernel("ref_third", args, second)))
    s.kernel("both", args, first + second, reference=str(write_kernel("ref_both", args, first + second)))
    y, z = s.output("y", (40, N)), s.output("z", (40, N))
    s.task({"aiv0": "first", "aiv1": "second"}, x, y[0], z[0], name="mix")
    for i in range(1, 40):
        s.task({"aiv0": "first", "aiv1": "third"} if i % 2 else "both", x, y[i], z[i], name=f"task{i}")
    run = s.run()
    document = checked(run.dump, "--timeout", "1", "--jobs", "1", code=0)
    verdicts = [task["verdict"] for task in sorted(document["tasks"], key=lambda task: task["task_seq"])]
    check("mix: verdicts", verdicts, ["not_checked"] + 39 * ["right"])


# --- what fails outside of kernels ---


def check_program():
    """Without glassbox-call every command ends at once, with one sentence."""
    s = Scene("program", in_order=False)
    x, y = s.tensor("x"), s.output("y", (300, N))
    s.kernel("twice", ARGS, TWICE, reference=str(write_kernel("ref_twice", ARGS, TWICE)))
    for i in range(300):
        s.task("twice", x, y[i], name=f"task{i}")
    run = s.run()
    for command in (("replay", run.dump, "--task", "all"), ("replay", run.dump, "--task", "7"), ("check", run.dump)):
        done = glassbox(*command, environment={**ENVIRONMENT, "GLASSBOX_CALL": "/nowhere/glassbox-call"})
        check(f"{command[0]} {command[2:]}: exit code, lines", (done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        check_in(f"{command[0]} {command[2:]}", "/nowhere/glassbox-call, named by GLASSBOX_CALL", done.stderr)


def check_full_stack():
    """A recursion without an end crashes; it is no access to memory of others."""
    s = Scene("stack", in_order=False)
    x = s.tensor("x")
    head = "static volatile int deep; static int sink(int i) { volatile char frame[4096]; frame[0] = (char)i; return deep ? sink(i + 1) + frame[0] : frame[0]; }"
    s.once("good", ARGS, TWICE + " sink(0);", x, s.output("y"), head=head)
    run = s.run()
    bad = write_kernel("deep", ARGS, TWICE + " deep = 1; y[0] += sink(0);", head=head)
    document = run.replay("good", "--kernel", bad, code=3)
    check("stack: verdict and findings", (document["verdict"], kinds(document)), ("fault", []))
    check_in("stack: text", "its stack is full", document["fault"]["text"])


def check_long_overruns():
    """An overrun that leaves the memory around its tensors crashes; what it changed before is named from its first byte on."""
    s = Scene("long")
    x, tiles = s.tensor("x"), s.output("tiles", (400, N))
    s.kernel("tile", ARGS, TWICE)
    s.kernel("over", ARGS, TWICE + " for (int i = 0; i < 8192; ++i) y[n + i] = x[i % n];")
    s.kernel("under", ARGS, TWICE + " for (int i = 1; i < 8192; ++i) y[-i] = x[i % n];")
    for i in range(400):
        s.task({5: "over", 395: "under"}.get(i, "tile"), x, tiles[i], name=f"tile{i}")
    run = s.run()
    run.replay_all(code=3)
    run.compare_singles(["tile4", "tile5", "tile6", "tile395"])
    page = 4096
    first = run.address("tile5", 1, (N,))
    most = (first + page - 1) // page * page + page - first
    found = run.found("tile5", "stray_write", verdict="fault", arg=1, element=None, address=first, size=(most * 3 // 4, most), span=(most - 3, most),
                      owner=run.owner("tile6", 1, (0,)))
    check_in("over: sentence", "before it crashes, the first at", found["sentence"] if found else "")
    end = run.address("tile395", 1, (0,))
    least = end // page * page - page
    found = run.found("tile395", "stray_write", verdict="fault", arg=1, element=None, address=(least, least + 3), size=((end - least) * 3 // 4, end - least))
    check_in("under: sentence", "bytes before argument 1 y", found["sentence"] if found else "")
    run.good(*[f"tile{i}" for i in range(400) if i not in (5, 395)])


def check_shorter_payload():
    """A kernel cuts the payload of its dump: tasks whose bytes are gone are not replayed, and no kernel is blamed.

    The other kernel waits for the cut where there is something to cut, so that the tasks called before it are the same on a busy machine.
    """
    s = Scene("shorter", in_order=False)
    dump = root / "cut"
    payload = f"{dump}/tensor_dump/tensor_dump.bin"
    body = TWICE + f' extern int truncate(const char *, long); truncate("{payload}", 65536);'
    wait = ('extern int open(const char *, int, ...); extern long lseek(int, long, int); extern int close(int); extern int usleep(unsigned); '
            f'int file = open("{payload}", 0); for (int i = 0; file >= 0 && i < 5000 && lseek(file, 0, 2) > 65536; ++i) usleep(1000); '
            'if (file >= 0) close(file); ')
    x = s.tensor("x")
    s.once("cuts", ARGS, body, x, s.output("y"))
    s.kernel("twice", ARGS, wait + TWICE)
    large, out = s.tensor("large", (1 << 16,)), s.output("out", (40, 1 << 16))
    for i in range(40):
        s.task("twice", large, out[i], name=f"task{i}")
    run = s.run()
    for jobs in (1, 2):
        shutil.rmtree(dump, ignore_errors=True)
        shutil.copytree(run.dump, dump)
        entries = [entry for entry in run.listed["tensors"] if entry["task_seq"] > 0]
        check("shorter: payloads lie behind the cut", min(entry["bin_offset"] + entry["bin_size"] for entry in entries) > 65536, True)
        document = replayed(dump, "all", "--jobs", jobs, code=2)
        check(f"{jobs} jobs: size", os.path.getsize(dump / "tensor_dump" / "tensor_dump.bin"), 65536)
        own = max(entry["bin_offset"] + entry["bin_size"] for entry in run.listed["tensors"] if entry["task_seq"] == 0)
        check(f"{jobs} jobs: findings", kinds(document), [])
        check(f"{jobs} jobs: the first task", document["tasks"][0]["verdict"], "bit_exact" if own <= 65536 else "not_replayed")
        refused = [task for task in document["tasks"] if task["verdict"] == "not_replayed"]
        check(f"{jobs} jobs: tasks that are not replayed", len(refused) + sum(task["verdict"] == "bit_exact" for task in document["tasks"]), 41)
        check(f"{jobs} jobs: most are not", len(refused) >= 41 - 3 * jobs, True)
        for task in refused:
            check(f"{jobs} jobs: reason {task['reason']}", "has become shorter" in task["reason"], True)


if __name__ == "__main__":
    sys.exit(run_parts(check_unwritten, check_repeats, check_empty_outputs, check_hanging_mix, check_program, check_full_stack, check_long_overruns,
                       check_shorter_payload))
