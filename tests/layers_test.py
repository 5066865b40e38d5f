#!/usr/bin/python3
"""The check of layers passes on this tree and finds what is planted in a small one.

usage: layers_test.py CHECK_LAYERS SOURCE_ROOT
"""
import pathlib
import subprocess
import sys
import tempfile

# File, its text, and what the check must say of it (None: nothing).
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
    ("src/nowhere/file.c", "", "lies in no layer"),
    ("src/base/missing.c", '#include "ring.h"', "no path below src/"),
    ("include/glassbox/public.h", '#include "base/log.h"', "a public header includes"),
]


def run(check, root):
    return subprocess.run([check, str(root)], capture_output=True, text=True)


def main():
    check, source = sys.argv[1:]
    real = run(check, source)
    wrong = [f"the tree itself: {real.stdout}"] if real.returncode != 0 or real.stdout else []
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        planted = run(check, root)
        lines = {line.split(":")[0]: line for line in planted.stdout.splitlines()}
        wrong += [] if planted.returncode == 1 else [f"exit code {planted.returncode}"]
        for name, _, expected in PLANTED:
            line = lines.get(name)
            if (line is None) != (expected is None) or (expected and expected not in line):
                wrong.append(f"{name}: said {line!r}, expected {expected!r}")
    print("\n".join(wrong))
    print(f"{len(PLANTED) + 2 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
