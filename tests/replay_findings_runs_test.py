#!/usr/bin/python3
"""Findings of glassbox replay in whole runs: good ones have none; other kernels; many tasks, processes and a crash.

usage: replay_findings_runs_test.py GLASSBOX EXAMPLES
"""
import itertools
import json
import pathlib
import re
import shutil
import sys

import numpy as np

from command_support import ENVIRONMENT, PLATFORMS, RUNTIMES, STRESS, check, check_in, glassbox
from replay_findings_support import N, Scene, kinds, replayed, write_kernel
from replay_support import EXAMPLES, record, root, run_parts, shared

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures" / "format" / "0.1.0"
SCENES = ["bgemm", "broken_softmax", "dump_tensor_example", "mix_spmd", "paged_attention", "vector_example"]
TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
ARGS = "in x, out y"


# --- good runs ---


def check_examples():
    for i, (scene, (platform, runtime)) in enumerate(itertools.product(SCENES, itertools.product(PLATFORMS, RUNTIMES))):
        if not STRESS and i % 5 not in (0, 3):
            continue
        device = ("--device", "thread") if i % 2 else ()
        dump = record(EXAMPLES / scene, f"{scene}-{platform}-{runtime}", "-p", platform, "--runtime", runtime, *device)
        document = replayed(dump, "all", code=0)
        check(f"{scene} {platform} {runtime}: findings and notes", (document["findings"], document["notes"]), ([], []))
        check(f"{scene} {platform} {runtime}: verdicts", {task["verdict"] for task in document["tasks"]}, {"bit_exact"})
        shutil.rmtree(dump)


def check_fixtures():
    """Dumps of older versions, which lack the results of the run."""
    for name, tasks in (("a2a3sim_tensormap", 4), ("a5sim_tensormap", 4), ("a5sim_aicpu", 4), ("a5sim_host", 4), ("crashed", 3), ("lost", 3), ("killed", 3),
                        ("recovered", 3)):
        for task in (f"0..{tasks - 1}", *range(tasks)):
            document = replayed(FIXTURES / name, task, "--trust", code=0)
            check(f"fixture {name} {task}: findings and notes", (document["findings"], document["notes"]), ([], []))
    document = replayed(FIXTURES / "crashed", 3, "--trust", code=3)
    check("fixture crashed: verdict", document["verdict"], "fault")


# --- another kernel ---


def check_kernels():
    """A candidate is asked the same questions as the kernel of the run."""
    s = Scene("candidates")
    s.once("wrong", ARGS, "for (int i = 0; i < n; ++i) y[i] = 2 * x[i] + (i == 5);", s.tensor("x"), s.output("y"),
           reference=str(write_kernel("reference", ARGS, TWICE)))
    run = s.run()
    run.replay_all(code=0)
    run.good("wrong")
    document = run.replay("wrong", "--kernel", write_kernel("fixed", ARGS, TWICE), code=0)
    check("fixed", (document["judgement"], document["findings"], document["notes"]), ("fixed", [], []))
    document = run.replay("wrong", "--kernel", write_kernel("strays", ARGS, TWICE + " y[n] = x[0];"), code=1)
    check("fixed, but strays: judgement", document["judgement"], "fixed")
    run.found("wrong", "stray_write", document=document, arg=1, element=None, address=run.address("wrong", 1, (N,)), size=4, span=4, owner=None)
    document = run.replay("wrong", "--kernel", write_kernel("spoils", ARGS, TWICE + " x[9] = -1.0f;"), code=1)
    run.found("wrong", "stray_write", document=document, arg=0, element=(9,), owner=run.owner("wrong", 0, (9,)))
    document = run.replay("wrong", "--kernel", write_kernel("forgets", ARGS, TWICE.replace("< n", "< n - 1")), code=1)
    run.found("wrong", "unwritten_read", document=document, arg=1, element=(N - 1,), size=4, owner=run.result_owner("y", (N - 1,)))
    document = run.replay("wrong", "--kernel", write_kernel("reads", ARGS, TWICE + " y[7] = x[n];"), code=1)
    at = run.address("wrong", 1, (7,))
    run.found("wrong", "undeclared_read", document=document, arg=1, element=(7,), address=(at, at + 3))
    document = run.replay("wrong", "--kernel", write_kernel("counts", ARGS, "static int calls; ++calls; " + TWICE.replace("2 *", "(calls + 1) *")), code=1)
    run.found("wrong", "not_deterministic", document=document, arg=1, element=(0,))
    text = glassbox("replay", run.dump, "--task", 0, "--kernel", root / "strays.c")
    check("fixed, but strays: exit code of the text", text.returncode, 1)
    # The kernel of the run is good all the same.
    check("the dump's own kernel", kinds(run.replay("wrong", code=0)), [])


# --- many tasks ---

MANY = 300
BAD = 150


def without_times(document):
    text = re.sub(r'"(ns_per_call|min_ns|median_ns|max_ns)":\s*[0-9.]+', r'"\1":0', json.dumps(document))
    return json.loads(text)


def check_jobs():
    """The number of processes changes nothing but times."""
    s = Scene("jobs")
    xs, ys = s.tensor("xs", (40, N)), s.output("ys", (40, N))
    s.kernel("fine", ARGS, TWICE)
    s.kernel("strays", ARGS, TWICE + " y[n + 2] = x[0];")
    s.kernel("forgets", ARGS, "for (int i = 1; i < n; ++i) y[i] = 2 * x[i];")
    s.kernel("reads", ARGS, TWICE + " y[0] = x[n];")
    for i in range(40):
        s.task(("fine", "strays", "forgets", "fine", "reads")[i % 5], xs[i], ys[i], name=f"task{i}")
    run = s.run()
    one = run.replay_all("--jobs", 1, code=1)
    check("jobs: kinds", [kinds(task) for task in one["tasks"]],
          [[], ["stray_write"], ["unwritten_read"], [], ["undeclared_read"]] * 8)
    check("jobs: addresses", [int(f["extent"]["address"], 16) for f in one["findings"] if f["kind"] == "stray_write"],
          [run.address(f"task{i}", 1, (N + 2,)) for i in range(1, 40, 5)])
    check("jobs: owners", [f["owner"] for f in one["findings"] if f["kind"] == "stray_write"],
          [run.owner(f"task{i + 1}", 1, (2,)) for i in range(1, 40, 5)])
    for jobs in (2, 5):
        check(f"jobs: {jobs} and 1", without_times(replayed(run.dump, "all", "--jobs", jobs, code=1)), without_times(one))
    check("jobs: as many as there are", without_times(replayed(run.dump, "all", code=1)), without_times(one))
    refused = glassbox("replay", run.dump, "--task", "all", "--jobs", "0")
    check("jobs: none", (refused.returncode, refused.stdout), (2, ""))
    dump = record(EXAMPLES / "paged_attention", "jobs-paged")
    check("jobs: an example", without_times(replayed(dump, "all", "--jobs", 2, code=0)), without_times(replayed(dump, "all", "--jobs", 1, code=0)))


def check_crash():
    """One of 300 tasks ends its process: the others are replayed all the same."""
    mark = root / "crash-now"
    ways = {"trap": "__builtin_trap();", "write": "*(int *volatile){(int *)16} = 1;", "exit": "_exit(7);", "read": "y[0] = *(float *volatile){(float *)16};"}
    body = TWICE + f' int way = 0; if (x[0] == {BAD * N}.0f) {{ FILE *file = fopen("{mark}", "r"); if (file) {{ way = getc(file); fclose(file); }} }}'
    body += "".join(f" if (way == '{way[0]}') {code}" for way, code in ways.items())
    s = Scene("crash")
    xs, ys = s.tensor("xs", (MANY, N), fill="arange"), s.output("ys", (MANY, N))
    s.kernel("sometimes", ARGS, body, head="#include <stdio.h>\n#include <unistd.h>")
    for i in range(MANY):
        s.task("sometimes", xs[i], ys[i], name=f"task{i}")
    run = s.run()
    check("crash: recorded", np.concatenate([run.values(f"task{i}", 1) for i in range(MANY)]).tolist(), (2.0 * np.arange(MANY * N)).tolist())
    document = run.replay_all(code=0)
    check("crash: without it", (document["verdicts"]["bit_exact"], document["findings"]), (MANY, []))
    for way, jobs in itertools.product(ways, (1, 2)):
        mark.write_text(way[0])
        document = run.replay_all("--jobs", jobs, code=3)
        what = f"crash by {way}, {jobs} processes"
        check(f"{what}: counts", {v: n for v, n in document["verdicts"].items() if n}, {"bit_exact": MANY - 1, "fault": 1})
        check(f"{what}: which", [task["task_seq"] for task in document["tasks"] if task["verdict"] != "bit_exact"], [BAD])
        check(f"{what}: order", [task["task_seq"] for task in document["tasks"]], list(range(MANY)))
        check(f"{what}: findings of others", [f["task_seq"] for f in document["findings"] if f["task_seq"] != BAD], [])
        wanted = {"write": ["stray_write"], "read": ["undeclared_read"]}.get(way, [])
        check(f"{what}: findings", [(f["kind"], int(f["extent"]["address"], 16), f["owner"]) for f in document["findings"]], [(kind, 16, None) for kind in wanted])
        head = glassbox("replay", run.dump, "--task", "all", "--jobs", jobs).stdout.split("\n")[0]
        check_in(what, f"task {BAD}", head)


if __name__ == "__main__":
    sys.exit(run_parts(check_kernels, check_jobs, check_crash, check_examples, check_fixtures))
