#!/usr/bin/python3
"""glassbox diagnose: runs that crashed, hung or were killed, padded tiles and new memory in them.

usage: diagnose_failed_test.py GLASSBOX EXAMPLES

Sentences are compared in their parts only.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from command_support import ENVIRONMENT, GLASSBOX, check, check_in, glassbox
from diagnose_support import ARGS, asked, COPY, named, question, recorded
from replay_findings_support import N, Scene
from replay_support import root, run_parts


# --- runs that failed ---

WAYS = {"crashes": "int *volatile bad = (int *)16; y[0] = x[0]; *bad = n;", "hangs": "for (y[0] = x[0]; n > 0;) usleep(1000);"}


def make_failing(name, body, waits_for=None):
    s = Scene(name)
    a, b, c, d = s.tensor("a"), s.output("b"), s.output("c"), s.output("d")
    s.once("copy", ARGS, COPY, a, b)
    s.once(name, ARGS, body, b, c, head="#include <unistd.h>\n#include <stdio.h>")
    s.task("copy", c, d, name="last")
    return s


def check_failed_runs():
    for name, kind in (("crashes", "crash"), ("hangs", "hang")):
        dump = recorded(make_failing(name, WAYS[name]), name, "--timeout", "1", code=3)
        document = asked(dump, "--timeout", "1", code=1)
        first = document["findings"][0]
        check(f"{name}: first", (first["kind"], first["kernel"], first["tasks"]), (kind, name, [1]))
        check(f"{name}: nobody else", len(document["findings"]), 1)
        check(f"{name}: evidence of calling it again", len(first["evidence"]) >= 1, True)
    check_two_hung()
    check_killed()


def check_two_hung():
    """Two tasks of one kernel hang: it is called again once."""
    s = Scene("two-hung", in_order=False)
    x = s.tensor("x")
    s.kernel("hangs", ARGS, WAYS["hangs"], head="#include <unistd.h>")
    for name in "yz":
        s.task("hangs", x, s.output(name), name=name)
    document = asked(recorded(s, "two-hung", "--timeout", "1", code=3), "--timeout", "1", code=1)
    first = document["findings"][0]
    check("two hung: first", (first["kind"], first["kernel"]), ("hang", "hangs"))
    check_in("two hung: the other", "its kernel hung when task 0 was called again", question(document, "replay")["why"] or "")


def kill_chips(run, started):
    """Kills the processes of a run's chips once a kernel has made a file; the run must fail."""
    while not started.exists() and run.poll() is None:
        time.sleep(0.02)
    chips = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    check("killed: a chip runs", len(chips) >= 1, True)
    for chip in chips:
        os.kill(int(chip), signal.SIGKILL)
    run.communicate()
    check("killed: exit code of the run", run.returncode, 3)


def check_killed():
    """The chip's process is killed while a task runs: the task is named, and nothing crashes."""
    started = root / "killed-started"
    body = f'FILE *f = fopen("{started}", "w"); if (f) fclose(f); for (y[0] = x[0]; n > 0;) usleep(1000);'
    folder, dump = make_failing("killed", body).write(), root / "killed"
    run = subprocess.Popen([GLASSBOX, "run", folder, "-o", dump, "--dump-tensor", "--timeout", "100"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    kill_chips(run, started)
    document = asked(dump, "--timeout", "1", code=1)
    sentences = " ".join(finding["sentence"] for finding in document["findings"])
    check("killed: accused", {task for finding in document["findings"] for task in finding["tasks"]} <= {1}, True)
    check("killed: the run failed", "killed" in sentences or "died" in sentences or "SIGKILL" in sentences, True)


# --- elements that nobody writes ---

PAD = 4  # elements of a tile behind those that are written
CRASHES = "int *volatile bad = (int *)16; *bad = 1;"
WITHIN = " for (int i = 0; i < n; ++i) y[i] = x[i];"  # what is used of a tile


def padded(name, double="", crop=""):
    """A tile that is longer than what is loaded into it; all of it is doubled, and only what was loaded is used."""
    s = Scene(name)
    x, tile, twice, y = s.tensor("x"), s.temporary("tile", (N + PAD,)), s.temporary("twice", (N + PAD,)), s.output("y")
    head = "#include <unistd.h>\n#include <stdio.h>"
    s.once("load", "in x, out tile", f"for (int i = 0; i < {N}; ++i) tile[i] = x[i];", x, tile)
    s.once("double", "in tile, out twice", f"{double} for (int i = 0; i < n; ++i) twice[i] = 2 * tile[i];", tile, twice, head=head)
    s.once("crop", "in x, out y", crop + WITHIN, twice, y, head=head)
    return s


def check_padding():
    """Padding that nobody writes is no finding, also if nobody knows what would have reached a result."""
    document = asked(recorded(padded("padded"), "padded"), code=0)
    check_in("padded: harmless", "1 output is not completely written", question(document, "replay")["harmless"])
    for task, (name, more) in enumerate((("double", {"double": CRASHES}), ("crop", {"crop": CRASHES})), 1):
        document = asked(recorded(padded(f"padded-{name}", **more), f"padded-{name}", code=3), code=1)
        check(f"padded, {name} crashes: what is accused", [(f["kind"], f["kernel"], f["tasks"], f["follows"]) for f in document["findings"]],
              [("crash", name, [task], None)])
        check(f"padded, {name} crashes: the padding is no evidence", [text for text in document["findings"][0]["evidence"] if "load" in text], [])
        replay = question(document, "replay")
        check(f"padded, {name} crashes: numbers", [replay[key] for key in ("tasks", "findings", "not_asked")], [task, 1, 1])
        for part in ("the task did not complete", "1 output is not completely written", "the run failed"):
            check_in(f"padded, {name} crashes: not asked", part, replay["why"])
    check_padding_of_killed()
    check_padding_late()
    check_padding_of_broken()


def check_padding_of_killed():
    """The run of a correct program is killed while its last task runs."""
    started, hold, dump = root / "padded-started", root / "padded-hold", root / "padded-killed"
    wait = f'FILE *f = fopen("{started}", "w"); if (f) fclose(f); while (access("{hold}", F_OK) == 0) usleep(1000);'
    hold.touch()
    run = subprocess.Popen([GLASSBOX, "run", padded("padded-killed", crop=wait).write(), "-o", dump, "--dump-tensor", "--timeout", "100"],
                           env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    kill_chips(run, started)
    hold.unlink()
    document = asked(dump, code=1)
    check("padded, killed: the run", [f["tasks"] for f in document["findings"]], [[2]])
    check_in("padded, killed: the run", "SIGKILL", document["findings"][0]["sentence"])
    check_in("padded, killed: not asked", "1 output is not completely written", question(document, "replay")["why"] or "")


def check_padding_late():
    """A call that does not return in time is no evidence; that it was made is said."""
    late = f"if (tile[{N}] == tile[{N}] && tile[{N}] != 0) sleep(30);"  # new memory holds NaN, or 0
    document = asked(recorded(padded("padded-late", double=late), "padded-late"), "--timeout", "1", code=0)
    check_in("padded, late: why", "1 output is not completely written, and whether that matters is not known", question(document, "replay")["why"])
    check_in("padded, late: why", "--timeout", question(document, "replay")["why"])
    check("padded, late: numbers", [question(document, "replay")[key] for key in ("tasks", "findings", "harmless")], [3, 0, None])


def check_padding_of_broken():
    """A task that fails whatever it reads is accused, and not the one that left its padding."""
    marker = root / "padded-broken-now"
    dump = recorded(padded("padded-broken", double=f'if (access("{marker}", F_OK) == 0) {{ {CRASHES} }}'), "padded-broken")
    marker.touch()
    document = asked(dump, code=1)
    check("padded, broken: what is accused", [(f["kernel"], f["tasks"]) for f in document["findings"]], [("double", [1])])
    check_in("padded, broken: not asked", "a task that reads it fails, whatever it holds", question(document, "replay")["why"] or "")


def check_sharing_of_failed_runs():
    """A task crashes while another one writes its own row of a buffer that both declare: nobody knows which rows the first would have read."""
    folder = root / "scenes-sharing/padded"
    zoo = pathlib.Path(__file__).resolve().parent / "zoo/scenes"
    shutil.copytree(zoo / "padded", folder)
    shutil.copy(zoo / "graph.h", folder.parent)
    source = folder / "kernels/prefix.c"
    wait = ("    const float *next = gbx_tensor_f32(all) + 3 * all->strides[0];\n    float before;\n    memcpy(&before, next, sizeof before);\n"
            "    for (int i = 0; i < 1000 && memcmp(&before, next, sizeof before) == 0; ++i)\n        usleep(1000);\n")  # task 28 writes this row
    source.write_text("#include <string.h>\n#include <unistd.h>\n" + source.read_text().replace(
        "    for (int64_t j = 0;", f"    if (gbx_arg_i32(args, 2) == 2) {{\n{wait}    {CRASHES}\n    }}\n    for (int64_t j = 0;", 1))
    dump = recorded(folder, "sharing", "--runtime", "host_build_graph", code=3)
    document = asked(dump, code=1)
    check("sharing: what is accused", [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]], [("crash", "prefix", [21])])
    check("sharing: the pair is evidence", [text for text in document["findings"][0]["evidence"] if "task 28 (put)" in text] != [], True)


def check_nan_of_new_memory():
    """NaNs of new memory are none that a task made, also if no kernel may be called; other NaNs are a finding without any golden."""
    own = {**ENVIRONMENT, "GLASSBOX_CACHE": str(root / "nan-cache")}
    for name, made in (("new", ""), ("made", "tile[3] = x[3] / 0 - x[3] / 0;")):
        s = Scene(f"nan-{name}")
        x, tile, y = s.tensor("x"), s.temporary("tile", (N + PAD,)), s.output("y")
        s.once("load", "in x, out tile", f"for (int i = 0; i < {N}; ++i) tile[i] = x[i]; {made}", x, tile)
        s.once("crop", "in x, out y", WITHIN, tile, y)
        for level in ("full", "stats"):
            dump = root / f"nan-{name}-{level}"
            done = glassbox("run", s.write(), "-o", dump, f"--dump-tensor={level}", environment=own)
            check(f"{dump.name}: run", done.returncode, 0)
            padding = np.frombuffer((dump / "tensor_dump/tensor_dump.bin").read_bytes(), np.uint8)
            check(f"{dump.name}: new memory holds NaN", level == "stats" or b"\xff\x7f" * 2 * PAD in padding.tobytes(), True)
        sources = [pathlib.Path(kernel["source"]) for kernel in s.kernels.values()]
        shutil.rmtree(root / "nan-cache")
        for source in sources:
            source.unlink()
        is_made = name == "made"
        document = asked(root / f"nan-{name}-full", code=int(is_made), environment=own)
        check(f"nan {name}: what is accused", named(document), [("nan", "load", "tile", [0])] * is_made)
        check(f"nan {name}: no kernel was called", question(document, "replay")["tasks"], 0)
        document = asked(root / f"nan-{name}-stats", code=0, environment=own)
        check(f"nan {name}, statistics: asked", [question(document, "nan")[key] for key in ("tasks", "findings", "not_asked")], [2, 0, 0])
        check_in(f"nan {name}, statistics: why", "without their bits", question(document, "nan")["why"] or "")


def check_index_of_nobody():
    """A task crashes because of an element that nobody wrote: the crash comes first, and the element is evidence."""
    s = Scene("unwritten-index")
    x, where, y = s.tensor("x"), s.temporary("where", (N,), "int32"), s.output("y")
    s.once("index", "in x, out int32_t where", "for (int k = 0; k < n; ++k) if (k != 40) where[k] = k + 1;", x, where)  # they count from 1
    s.once("gather", "in x, in int32_t where, out y",
           f"for (int k = 0; k < n; ++k) {{ if (where[k] < 1 || where[k] > {N}) {{ {CRASHES} }} y[k] = x[where[k] - 1]; }}", x, where, y)
    document = asked(recorded(s, "unwritten-index", code=3), code=1)
    check("index of nobody: what is accused", [(f["kind"], f["kernel"], f["tasks"]) for f in document["findings"]], [("crash", "gather", [1])])
    evidence = [text for text in document["findings"][0]["evidence"] if "does not write" in text]
    check("index of nobody: evidence", len(evidence), 1)
    for part in ("task 0", "does not write 1 element of argument 1 where", "[40]", "argument 1 where[40] of task 1 (gather)", "does not fail"):
        check_in("index of nobody: evidence", part, "".join(evidence))


if __name__ == "__main__":
    sys.exit(run_parts(check_failed_runs, check_padding, check_sharing_of_failed_runs, check_nan_of_new_memory, check_index_of_nobody))
