#!/usr/bin/python3
"""glassbox replay --save and --gdb: the saved program does not need glassbox, and gdb stops where it should.

usage: replay_save_test.py GLASSBOX EXAMPLES
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

from command_support import ENVIRONMENT, STRESS, check, check_in, glassbox, report
from disk_support import build_disk

EXAMPLES = pathlib.Path(sys.argv[2]).resolve()
ROOT = EXAMPLES.parent
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}  # no glassbox, no cache

root = pathlib.Path(tempfile.mkdtemp(prefix="glassbox-save-test-"))

# y = 2 x of a transposed view into every other column; inouts add; int4 is copied, and the half of a byte that no element
# has at the end of a row is written, too; nothing is contiguous. One output is not written, one has no elements, one is a single element of no dimensions, and its input has negative strides.
KERNEL = """#include <glassbox/kernel.h>
#include "parts/factor.h"
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *q = gbx_arg_tensor(args, 1);
    const gbx_tensor *y = gbx_arg_tensor(args, 2), *r = gbx_arg_tensor(args, 3), *t = gbx_arg_tensor(args, 4);
    const gbx_tensor *last = gbx_arg_tensor(args, 7), *back = gbx_arg_tensor(args, 8);
    gbx_tensor_f32(last)[0] = gbx_tensor_f32(back)[back->strides[0]];
    for (int64_t i = 0; i < x->shape[0]; ++i)
        for (int64_t j = 0; j < x->shape[1]; ++j)
            gbx_tensor_f32(y)[i * y->strides[0] + j * y->strides[1]] =
                FACTOR * gbx_tensor_f32(x)[i * x->strides[0] + j * x->strides[1]];
    for (int64_t i = 1; i < t->shape[0]; ++i)
        ((int16_t *)(uintptr_t)t->data)[i] += gbx_arg_i32(args, 9);
    for (int64_t i = 0; i < q->shape[0] * ((q->shape[1] + 1) / 2); ++i)
        ((uint8_t *)(uintptr_t)r->data)[i] = (uint8_t)(((uint8_t *)(uintptr_t)q->data)[i] | (i % 3 == 2 ? 0x70 : 0));
}
"""
ORCHESTRATION = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor x = run->tensors[0], y = run->tensors[2];
    x.shape[0] = 6; x.shape[1] = 4; x.strides[0] = 1; x.strides[1] = 6;
    y.shape[0] = 6; y.shape[1] = 4; y.strides[0] = 16; y.strides[1] = 2; y.start_offset = 3;
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &x);
    gbx_args_add_input(&args, &run->tensors[1]);
    gbx_args_add_output(&args, &y);
    gbx_args_add_output(&args, &run->tensors[3]);
    gbx_args_add_inout(&args, &run->tensors[4]);
    gbx_tensor none = run->tensors[5], last = run->tensors[6], back = run->tensors[7];
    none.shape[0] = 0;
    last.ndims = 0; last.start_offset = 2;
    back.start_offset = 23; back.strides[0] = -6; back.strides[1] = -1;
    gbx_args_add_output(&args, &run->tensors[5]);
    gbx_args_add_output(&args, &none);
    gbx_args_add_output(&args, &last);
    gbx_args_add_input(&args, &back);
    gbx_args_add_i32(&args, 7);
    gbx_submit_task(o, gbx_aiv(0), &args);
    return 0;
}
"""


def record(scene, name, *options, code=0):
    done = glassbox("run", scene, "-o", root / name, "--no-golden", "--dump-tensor", *options)
    check(f"run {scene}: exit code ({done.stderr})", done.returncode, code)
    return root / name


def save(dump, task, name, *options):
    done = glassbox("replay", dump, "--task", task, "--save", root / name, *options)
    check(f"save {name}: exit code and stderr", (done.returncode, done.stderr), (0, ""))
    check_in(f"save {name}", f": saved as a program; make -C {shlex.quote(str(root / name))} run\n", done.stdout)
    return root / name, done.stdout


def make(folder, *options, code=0):
    # The comparison needs no optimizer: kernels have their own flags.
    done = subprocess.run(["make", "-C", folder, "run", "CFLAGS=-O0 -Wall -Wextra", *options], capture_output=True, text=True, env=BARE, timeout=600)
    check(f"make -C {folder} {options}: exit code ({done.stderr}{done.stdout if done.returncode != code else ''})", done.returncode, code)
    check(f"make -C {folder}: no warnings", "warning" in done.stderr, False)
    return done.stdout


def make_scene(name, kernel=KERNEL, **more):
    folder = root / "scenes" / name
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "factor.h").write_text("#define FACTOR 2.0f\n")
    (folder / "odd.c").write_text(kernel)
    (folder / "orchestration.c").write_text(ORCHESTRATION)

    def arg(name, dtype, shape, role, **fill):
        return {"name": name, "dtype": dtype, "shape": shape, "role": role, **fill}
    arguments = [arg("x", "float32", [4, 6], "in", fill="random", low=-4, high=4, seed=3),
                 arg("q", "int4", [3, 5], "in", fill="random", low=-8, high=7, seed=4),
                 arg("y", "float32", [6, 16], "out"), arg("r", "int4", [3, 5], "out"),
                 arg("t", "int16", [9], "inout", fill="arange"), arg("untouched", "float32", [4], "out"),
                 arg("last", "float32", [4], "out"), arg("back", "float32", [4, 6], "in", fill="arange")]
    (folder / "scene.json").write_text(json.dumps({
        "name": name, "args": arguments, "cases": {"default": {}},
        "kernels": [{"func_id": 3, "name": "odd", "source": "odd.c", "core": "aiv", "arg_names": ["x", "q", "y", "r", "t", "untouched", "none", "last", "back", "step"],
                     "signature": ["in", "in", "out", "out", "inout", "out", "out", "out", "in", "scalar:int32"], **more}],
        "orchestrations": {"tensormap_and_ringbuffer": {"source": "orchestration.c"}}}).replace("gbx_aiv(0)", "gbx_aiv(3)"))
    source = folder / "orchestration.c"
    source.write_text(source.read_text().replace("gbx_aiv(0)", "gbx_aiv(3)"))
    return folder


def payloads(dump, task):
    """{name of the file in data/: bytes}, only from the manifest."""
    document = json.loads((dump / "tensor_dump" / "tensor_dump.json").read_text())
    data = (dump / "tensor_dump" / "tensor_dump.bin").read_bytes()
    return {f"{e['arg_index']:02}_{e['arg_name']}_{e['stage'].split('_')[0]}.bin": data[e["bin_offset"]:e["bin_offset"] + e["bin_size"]]
            for e in document["tensors"] if e["task_seq"] == task and e["kind"] == "tensor"}


# --- saved programs ---


def check_odd():
    """Strides, halves of bytes, an inout and a scalar; the folder is moved, and some bytes are wrong."""
    dump = record(make_scene("odd"), "odd-dump")
    folder, _ = save(dump, 0, "odd")
    wanted = payloads(dump, 0)
    check("odd: data", {path.name: path.read_bytes() for path in (folder / "data").iterdir()}, wanted)
    x = np.frombuffer(wanted["00_x_before.bin"], np.float32)
    check("odd: the run was right", wanted["02_y_after.bin"], (2 * x).tobytes())
    check("odd: last", wanted["07_last_after.bin"], np.float32(23 - 6).tobytes())
    check("odd: inout", np.frombuffer(wanted["04_t_after.bin"], np.int16).tolist(), [0, *range(8, 16)])
    halves = ["%02x" % (byte & (0x0f if i % 3 == 2 else 0xff)) for i, byte in enumerate(wanted["01_q_before.bin"])]
    check("odd: int4", wanted["03_r_after.bin"].hex(), "".join(halves))
    document = json.loads(glassbox("replay", dump, "--task", 0, "--json").stdout)
    check("odd: nothing is written elsewhere", (document["verdict"], document["stray_bytes"]), ("equal_where_written", 0))
    check_quoted(dump)
    moved = root / "far away" / "program"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    text = make(moved)
    for line in ("argument 2 y: bit exact (24 of 24 elements changed)\n", "argument 3 r: bit exact (15 of 15 elements changed)\n",
                 "argument 4 t: bit exact (8 of 9 elements changed)\n", "argument 5 untouched: not compared: it was not written\n",
                 "argument 6 none: bit exact (0 of 0 elements changed)\n", "argument 7 last: bit exact (1 of 1 elements changed)\n", "task 0: bit exact in all it writes\n"):
        check_in("odd: run", line, text)
    if shutil.which("clang"):
        subprocess.run(["make", "-C", moved, "clean"], check=True, env=BARE, capture_output=True)
        check_in("odd: clang", "bit exact in all it writes", make(moved, "CC=clang"))
    else:
        print("clang is not installed: not tested")
    check_wrong_data(moved, wanted)
    text = (moved / "Makefile").read_text().replace("\\\n", " ")
    documented = re.search(r"\n    (-std=gnu11.*?)\n\n", (ROOT / "docs" / "kernels.md").read_text(), re.DOTALL).group(1)
    check("flags of the Makefile", re.search("KERNEL_FLAGS = (.*)", text).group(1).split(), documented.split())
    for name, part in (("replay/call.c", "src/replay/call.c"), ("replay/call.h", "src/replay/call.h"), ("glassbox/kernel.h", "include/glassbox/kernel.h")):
        check(f"odd: {name}", (moved / name).read_bytes(), (ROOT / part).read_bytes())
    check("odd: README.txt", (moved / "README.txt").read_text().count("\n"), 3)


def check_quoted(dump):
    """The line has no control characters, and a shell reads it as the folder."""
    for name in ("it's \\x41", "a\x1b[31m\n'b", "turned \u202e"):
        text = glassbox("replay", dump, "--task", 0, "--save", root / name).stdout
        word = re.fullmatch("task 0, kernel odd: saved as a program; make -C (.*) run\n", text).group(1)
        check(f"{name!r}: controls", word.isascii() and word.isprintable(), True)
        done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, env=BARE)
        check(f"{name!r}: what a shell makes of it", done.stdout, str(root / name))


def check_wrong_data(folder, wanted):
    """One element of each output is wrong, then an input: each is named."""
    for name, place, sentence in (("02_y_after.bin", 4 * 13, "argument 2 y: differs in 1 of 24 elements, first in element 13\n"),
                              ("03_r_after.bin", 4, "argument 3 r: differs in 1 of 15 elements, first in element 8\n"),
                              ("04_t_after.bin", 2 * 8 + 1, "argument 4 t: differs in 1 of 9 elements, first in element 8\n"),
                              ("00_x_before.bin", 4 * 6 + 2, "argument 2 y: differs in 1 of 24 elements, first in element 6\n")):
        data = bytearray(wanted[name])
        data[place] ^= 0x10
        (folder / "data" / name).write_bytes(data)
        text = make(folder, code=2)
        check_in(f"wrong {name}", sentence, text)
        check_in(f"wrong {name}", "task 0: differs\n", text)
        (folder / "data" / name).write_bytes(wanted[name])
    (folder / "data" / "00_x_before.bin").write_bytes(b"")
    make(folder, code=2)
    (folder / "data" / "00_x_before.bin").write_bytes(wanted["00_x_before.bin"])


def check_examples():
    """A mix of three kernels in eight blocks, one dispatch of plain tasks, and kernels with headers of their own."""
    dump = record(EXAMPLES / "mix_spmd", "mix-dump")
    folder, _ = save(dump, 1, "the mix")
    check_in("mix", "task 1: bit exact in all it writes\n", make(folder))
    check("mix: dispatches", (folder / "task.h").read_text().count("{GBX_SUBTASK_AIV1, "), 8)
    folder, _ = save(dump, 0, "one", "--dispatch", 0)
    check_in("one", "task 0: bit exact in all it writes\n", make(folder))
    dump = record(EXAMPLES / "broken_softmax", "softmax-dump", "--platform", "a5sim")
    folder, _ = save(dump, 29, "softmax")
    check_in("softmax", "task 29: bit exact in all it writes\n", make(folder))
    headers = sorted(path.name for path in folder.rglob("*.h"))
    check("softmax: headers", headers, ["call.h", "kernel.h", "rows.h", "task.h", "vectors.h"])


def check_objects():
    """A source with missing parts is saved as the object it was compiled to."""
    outside = root / "outside"
    outside.mkdir()
    (outside / "far.h").write_text("#define FACTOR 2.0f\n")
    scene = make_scene("far", KERNEL.replace('"parts/factor.h"', '"far.h"'), compile_flags=f"-I{outside}")
    dump = record(scene, "far-dump")
    folder, text = save(dump, 0, "far")
    check_in("far", "kernel odd_3 is saved as a shared object: its source includes files that the run did not keep\n", text)
    check_in("far", "task 0: bit exact in all it writes\n", make(folder))
    kept = json.loads((dump / "run.json").read_text())["kernels"][0]["object"]
    check("far: object", (folder / "kernels" / "odd_3.so").read_bytes(), (dump / kept).read_bytes())


def check_files_of_flags():
    """A kernel whose flags name files of its scene is saved as an object."""
    scene = make_scene("helped", KERNEL, link_flags="helper.c")
    (scene / "helper.c").write_text("int unused(void) { return 0; }\n")
    folder, text = save(record(scene, "helped-dump"), 0, "helped")
    check_in("helped", "kernel odd_3 is saved as a shared object: its flags name files that the run did not keep\n", text)
    check_in("helped", "task 0: bit exact in all it writes\n", make(folder))


def check_endless():
    """A source that includes an endless file is saved as an object: the preprocessor does not use up memory."""
    dump = root / "far-dump"
    kept = dump / json.loads((dump / "run.json").read_text())["kernels"][0]["source"]
    kept.write_text('#define ALL "/dev/zero"\n#include ALL\n')
    _, text = save(dump, 0, "endless")
    check_in("endless", "kernel odd_3 is saved as a shared object: ", text)


def check_crash():
    scene = make_scene("crash", KERNEL.replace("    for (int64_t i = 0; i < x->", "    *(int *volatile){(int *)16} = 1;\n    for (int64_t i = 0; i < x->", 1))
    dump = record(scene, "crash-dump", code=3)
    folder, _ = save(dump, 0, "crash")
    done = subprocess.run(["make", "-C", folder, "run", "CFLAGS=-O0"], capture_output=True, text=True, env=BARE, timeout=600)
    check("crash: it crashes again", (done.returncode, "Segmentation fault" in done.stderr), (2, True))


def refuse(what, code, *arguments, **more):
    done = glassbox("replay", *arguments, **more)
    check(f"{what}: exit code and stdout ({done.stderr})", (done.returncode, done.stdout), (code, ""))
    return done.stderr


def check_refused():
    dump = root / "odd-dump"
    taken = root / "taken"
    taken.mkdir()
    (taken / "file").write_text("mine")
    check_in("taken", "a directory with files is already there", refuse("taken", 2, dump, "--task", 0, "--save", taken))
    check("taken: untouched", [path.name for path in taken.iterdir()], ["file"])
    for flags in ("-DX=$(shell)", "-DX='a'", "-DX=a#b", "-DX=\\"):
        copy = root / "flags"
        shutil.copytree(dump, copy)
        document = json.loads((copy / "run.json").read_text())
        document["kernels"][0]["compile_flags"] = flags
        (copy / "run.json").write_text(json.dumps(document))
        check_in(f"flags {flags}", "a Makefile cannot contain", refuse(flags, 2, copy, "--task", 0, "--save", root / "never"))
        shutil.rmtree(copy)

    refuse("no such place", 2, dump, "--task", 0, "--save", root / "nowhere" / "never")
    check("nothing is left behind", [path.name for path in root.iterdir() if path.name.startswith("never")], [])
    (dump / "run.json").rename(root / "run.json")
    check_in("no run.json", "the dump has no copy of kernel odd", refuse("no run.json", 2, dump, "--task", 0, "--save", root / "never"))
    (root / "run.json").rename(dump / "run.json")


def check_full_disk():
    """The disk fails at any call: one line, the exit code of a disk error, and nothing is left behind."""
    library, count = build_disk(root), root / "calls"

    def save_with(deed, first):
        environment = {**ENVIRONMENT, "LD_PRELOAD": str(library), "DUMP_DISK_DEED": deed, "DUMP_DISK_FIRST": str(first),
                       "DUMP_DISK_FILE": "/fits", "DUMP_DISK_COUNT": str(count)}
        return glassbox("replay", root / "odd-dump", "--task", 0, "--save", root / "fits", environment=environment)

    check("a disk with room", save_with("count", 1).returncode, 0)
    calls, files = int(count.read_text()), sum(path.is_file() for path in (root / "fits").rglob("*"))
    check(f"calls for {files} files", calls >= files, True)
    shutil.rmtree(root / "fits")
    for first in range(1, calls + 1):
        done = save_with("full", first)
        what = f"full from call {first} of {calls} on"
        # If the directory cannot be made at all, the place is wrong.
        check(f"{what}: exit code ({done.stderr})", done.returncode, 2 if first == 1 else 4)
        check_in(what, ": No space left on device", done.stderr)
        check(f"{what}: lines", (done.stdout, done.stderr.count("\n")), ("", 1))
        check(f"{what}: left behind", [path.name for path in root.iterdir() if path.name.startswith("fits")], [])


# --- gdb ---


def gdb(commands, *arguments, **more):
    temporary = root / "temporary"
    temporary.mkdir(exist_ok=True)
    # The leak check does not work in a traced process.
    sanitizer = ":".join(filter(None, (ENVIRONMENT.get("ASAN_OPTIONS"), "detect_leaks=0")))
    environment = {**ENVIRONMENT, "TMPDIR": str(temporary), "HOME": str(temporary), "ASAN_OPTIONS": sanitizer}
    done = glassbox("replay", *arguments, "--gdb", environment=environment,
                    input="".join(f"{command}\n" for command in ("set confirm off", *commands)), **more)
    check("gdb: what it leaves", [path.name for path in temporary.iterdir() if path.name.startswith("glassbox")], [])
    return done


def check_gdb():
    dump = root / "odd-dump"
    done = glassbox("replay", dump, "--task", 0, "--gdb", environment={**ENVIRONMENT, "PATH": "/nowhere"})
    check("no gdb", (done.returncode, done.stderr),
          (2, "glassbox replay: starting gdb: not found on PATH; install it (apt install gdb)\n"))
    if not shutil.which("gdb"):
        print("gdb is not installed: not tested")
        return
    commands = ["p/x *(unsigned *)*(unsigned long *)args[0]", "p (int)args[9]", "bt 1", "list odd.c:1,4", "continue"]
    shutil.move(root / "scenes" / "odd", root / "scenes" / "gone")  # the sources are found in the dump
    done = gdb(commands, dump, "--task", 0)
    shutil.move(root / "scenes" / "gone", root / "scenes" / "odd")
    if "ptrace" in done.stderr and "Breakpoint 1, " not in done.stdout:
        print("gdb may not trace here: not tested")
        return
    check("gdb: exit code", done.returncode, 0)
    check_in("gdb: where it stops", 'Breakpoint 1, kernel_entry (args=', done.stdout)
    (first,) = struct.unpack("<I", payloads(dump, 0)["00_x_before.bin"][:4])
    check_in("gdb: the first element of x", f"$1 = {hex(first)}\n", done.stdout)
    check_in("gdb: the scalar", "$2 = 7\n", done.stdout)
    own = (root / "scenes" / "odd" / "odd.c").read_text().split("\n").index("void kernel_entry(const uint64_t *args) {") + 1
    check_in("gdb: the kernel's own line", f"odd.c:\n{own}:\tvoid kernel_entry(const uint64_t *);\n", done.stdout)
    check_in("gdb: the source", f"{own}\tvoid kernel_entry(const uint64_t *args) {{\n", done.stdout)
    check_in("gdb: the end", "exited normally", done.stdout)


def main():
    try:
        for part in (check_odd, check_examples, check_objects, check_files_of_flags, check_crash, check_refused, check_gdb):
            part()
        if not os.environ.get("GLASSBOX_SANITIZE"):
            check_full_disk()
        if STRESS:
            check_endless()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report()


sys.exit(main())
