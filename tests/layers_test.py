#!/usr/bin/python3
"""The check of layers passes on this tree and its objects, and finds errors planted in a small tree.

usage: layers_test.py CHECK_LAYERS SOURCE_ROOT BUILD
"""
import pathlib
import subprocess
import sys
import tempfile

# File, its text, and what the check must say about it (None: nothing).
PLANTED = [
    ("src/base/ring.h", '#include "base/log.h"', None),
    ("src/base/log.h", "", None),
    ("src/base/low.c", '#include "tensor/view.h"', 'layer base may not include "tensor/view.h"'),
    ("src/tensor/view.h", '#include "base/ring.h"', None),
    ("src/hal/hal.h", "", None),
    ("src/hal/sim.h", "", None),
    ("src/hal/a5sim/a5sim.h", "", None),
    ("src/hal/platforms.c", '#include "hal/a5sim/a5sim.h"', None),
    ("src/hal/a2a3sim/a2a3sim.c", '#include "hal/a5sim/a5sim.h"', "may not include"),
    ("src/chip/good.c", '#include "hal/hal.h"\n#include "tensor/view.h"', None),
    ("src/chip/bad.c", '#include "hal/sim.h"', 'layer chip may not include "hal/sim.h"'),
    ("src/cli/bad.c", '#include "hal/a5sim/a5sim.h"', "layer cli may not include"),
    ("src/sched/probe.h", "", None),
    ("src/sched/bad.c", "void f(void) { void *p = malloc (1); }", "device code calls malloc"),
    ("src/runtime/one/one.h", "", None),
    ("src/runtime/one/one.c", '#include "runtime/one/one.h"\n#include "sched/probe.h"', None),
    ("src/runtime/two/two.c", '#include "runtime/one/one.h"', "layer runtime may not include"),
    ("src/runtime/shared.h", '#include "chip/good.h"\n#include "hal/hal.h"', None),
    ("src/chip/good.h", "", None),
    ("src/runtime/one/shares.c", '#include "runtime/shared.h"', None),
    ("src/runtime/names_one.c", '#include "runtime/one/one.h"', "layer runtime may not include"),
    ("src/runtime/names_platform.c", '#include "hal/a5sim/a5sim.h"', "layer runtime may not include"),
    ("src/sched/high.c", '#include "runtime/shared.h"', "layer sched may not include"),
    ("src/chip/device/high.c", '#include "runtime/shared.h"', "layer chip may not include"),
    ("src/runtime/tensormap_and_ringbuffer/bad.c", "int f(void) { return calloc(1, 1) != 0; }",
     "device code calls calloc"),
    ("src/runtime/tensormap_and_ringbuffer/good_test.c", "int f(void) { return calloc(1, 1) != 0; }", None),
    ("src/runtime/aicpu_build_graph/bad.c", "void f(void) { printf(0); }", "device code calls printf"),
    ("src/runtime/host_build_graph/builder.c", "void f(void) { free(0); }", "device code calls free"),
    ("src/runtime/host_build_graph/host.c", "void f(void) { free(0); }", None),
    ("src/runtime/check.c", "void f(void) { pthread_mutex_lock(0); }", "device code calls pthread_mutex_lock"),
    ("src/analysis/bad.c", '#include "sched/probe.h"', "layer analysis may not include"),
    ("src/nowhere/file.c", "", "belongs to no layer"),
    ("src/base/missing.c", '#include "ring.h"', "not a file below src/"),
    ("include/glassbox/public.h", '#include "base/log.h"', "a public header includes"),
]

# The same for objects: what a file defines and uses.
LINKED = [
    ("src/base/log.c", "void gbx_log(void) {}", None),
    ("src/chip/device/core.c", "void gbx_log(void); void gbx_core(void) { gbx_log(); }", None),
    ("src/chip/device/high.c", "void gbx_program(void); void gbx_chip_open(void) { gbx_program(); }",
     "layer chip may not use gbx_program of src/runtime/graph.c"),
    ("src/runtime/graph.c", "void gbx_core(void); extern int gbx_one; void gbx_program(void) { gbx_one = 1; gbx_core(); }", None),
    ("src/runtime/high.c", "extern const int gbx_attach; int gbx_run(void) { return gbx_attach; }",
     "layer runtime may not use gbx_attach of src/dump/device/probe.c"),
    ("src/runtime/one/one.c", "int gbx_one; void gbx_program(void); void gbx_helper(void) { gbx_program(); }", None),
    ("src/runtime/two/two.c", "void gbx_helper(void); void gbx_two(void) { gbx_helper(); }",
     "layer runtime may not use gbx_helper of src/runtime/one/one.c"),
    ("src/dump/select.c", "int gbx_select(void) { return 1; }", None),
    ("src/dump/device/probe.c", "int gbx_select(void); const int gbx_attach = 1; int gbx_hook(void) { return gbx_select(); }", None),
    ("src/dump/host/session.c", "void gbx_session(void) {}", None),
    ("src/dump/device/high.c", "void gbx_session(void); void gbx_end(void) { gbx_session(); }",
     "layer dump/device may not use gbx_session of src/dump/host/session.c"),
    ("src/dump/device/fine_test.c", "void gbx_session(void); int main(void) { gbx_session(); }", None),
    ("src/store/run/run.c", "void gbx_run_file(void) {}", None),
    ("src/store/writer.c", "void gbx_write(void) {}", None),
    ("src/scene/runner.c", "void gbx_chip_open(void), gbx_run_file(void); void gbx_scene(void) { gbx_chip_open(); gbx_run_file(); }", None),
    ("src/scene/high.c", "void gbx_write(void); void gbx_bad(void) { gbx_write(); }",
     "layer scene may not use gbx_write of src/store/writer.c"),
    ("src/analysis/high.c", "void gbx_chip_open(void); void gbx_look(void) { gbx_chip_open(); }",
     "layer analysis may not use gbx_chip_open of src/chip/device/high.c"),
    ("src/base/gone.c", None, None),
]


def run(check, *arguments):
    return subprocess.run([check, *map(str, arguments)], capture_output=True, text=True)


def wrong_lines(checked, expectations):
    """Compares what the check says about the planted files with what it must say."""
    lines = {line.split(":")[0]: line for line in checked.stdout.splitlines()}
    if checked.returncode != 1:
        yield f"exit code {checked.returncode}"
    for name, _, expected in expectations:
        line = lines.get(name)
        if (line is None) != (expected is None) or (expected and expected not in line):
            yield f"{name}: said {line!r}, expected {expected!r}"


def plant(root, files):
    for name, text, _ in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def plant_objects(root):
    """Objects where CMake puts them; one is left over from a removed file."""
    plant(root, [(name, text or "void gbx_chip_open(void); void gbx_old(void) { gbx_chip_open(); }", expected)
                 for name, text, expected in LINKED])
    (root / "include/glassbox").mkdir(parents=True)
    (root / "include/glassbox/chip.h").write_text("void gbx_chip_open(void);")
    for name, text, _ in LINKED:
        target = root / "build/CMakeFiles/some.dir" / f"{name}.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", "-o", target, root / name], check=True)
        if text is None:
            (root / name).unlink()


def main():
    check, source, build = sys.argv[1:]
    wrong = []
    for real in (run(check, source), run(check, "--objects", build, source)):
        wrong += [f"the tree itself: {real.stdout}{real.stderr}"] if real.returncode != 0 or real.stdout else []
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        plant(root, PLANTED)
        wrong += wrong_lines(run(check, root), PLANTED)
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        plant_objects(root)
        wrong += wrong_lines(run(check, "--objects", root / "build", root), LINKED)
        nothing = run(check, "--objects", root / "src", root)
        wrong += [] if "no objects of src/; build first" in nothing.stdout else [f"of no objects it said {nothing.stdout!r}"]
    print("\n".join(wrong))
    print(f"{len(PLANTED) + len(LINKED) + 5 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
