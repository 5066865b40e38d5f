#!/usr/bin/python3
"""glassbox view on dumps that cannot be shown: one sentence on stderr, exit code 2, nothing on stdout, never a crash.

usage: view_damage_test.py GLASSBOX
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

from command_support import check, glassbox, report
from dump_encoder import CONTIGUOUS, HEADER, NONE, PAYLOAD, TENSOR, Dump, record
from view_support import view

KERNELS = [{"func_id": 7, "name": "softmax", "core_type": "aiv", "signature": ["in", "out"], "arg_names": ["x", "y"]}]
USAGE = "\nTry `glassbox view --help' or `glassbox view --usage' for more information.\n"
TASKS, ENTRIES = 24, 48


def refused(arguments, *parts, cwd=None, usage=False, code=2):
    """The sentence contains `parts`, in this order."""
    result = glassbox("view", *arguments, cwd=cwd)
    name = f"view {' '.join(map(str, arguments))}"
    check(f"{name}: exit code and stdout", (result.returncode, result.stdout), (code, ""))
    sentence = result.stderr.removesuffix(USAGE if usage else "\n")
    check(f"{name}: one sentence", (result.stderr != sentence, sentence.count("\n")), (True, 0))
    check(f"{name}: who says it", sentence.startswith("glassbox view: "), True)
    is_there = bool(re.search(".*".join(map(re.escape, map(str, parts))), sentence))
    check(f"{name}: {parts} in {sentence!r}", is_there, True)
    return result.stderr


def make_dump(root, name):
    """Tasks with an input and an output each, in blocks of six records."""
    dump = Dump(root / name, KERNELS)
    for task in range(TASKS):
        dump.task(task, (None, 7, None))
        values = np.arange(16, dtype=np.float32) + 100 * task
        dump.tensor(task, 0, "float32", (4, 4), values.tobytes())
        dump.tensor(task, 1, "float32", (16,), (values + 0.5).tobytes(), role=1, stage=1)
    dump.end()
    return dump.write(6)


# --- paths without a dump ---


def test_no_dump(root):
    empty = root / "nothing"
    empty.mkdir()
    refused([root / "nowhere"], "looking for a dump at", "nowhere: No such file", "glassbox run SCENE --dump-tensor")
    refused([empty], "nothing: no dump found", "glassbox run SCENE --dump-tensor")
    refused([], "no dump at outputs/latest", cwd=empty)
    (empty / "tensor_dump").mkdir()
    refused([empty], empty / "tensor_dump", "it does not exist, and there is no manifest")
    (empty / "tensor_dump" / "tensor_dump.bin").write_bytes(b"1234")
    refused([empty], empty / "tensor_dump", "it does not exist, and there is no manifest")
    text = root / "text"
    text.write_text("no dump")
    refused([text], "text: it is not a directory")
    (root / "two" / "a" / "tensor_dump").mkdir(parents=True)
    (root / "two" / "b" / "tensor_dump").mkdir(parents=True)
    refused([root / "two"], "holds 2 dumps (a, b) but no latest", "name one of them")


def test_controls(root):
    """Names inside do not reach the terminal raw, whichever command prints them."""
    parent = root / "controls"
    for name in ("c\x1b[31m\n\u009b\u00e9", "d"):
        (parent / name / "tensor_dump").mkdir(parents=True)
    for command, *more in (["audit"], ["check"], ["diff", parent], ["export", "--format", "npz", "-o", root / "out"],
                           ["recover"], ["replay", "--task", "0"], ["verify"], ["view"]):
        result = glassbox(command, parent, *more)
        check(f"{command}: exit code, stdout, lines", (result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
        check(f"{command}: names", result.stderr.split(" but no latest")[0],
              f"glassbox {command}: {parent} holds 2 dumps (c\\x1b[31m\\x0a\\xc2\\x9b\u00e9, d)")


def test_latest(root, dump):
    (root / "work" / "outputs").mkdir(parents=True)
    os.symlink(dump.directory, root / "work" / "outputs" / "latest")
    whole = view(dump.directory)
    check("outputs/latest", view(cwd=root / "work"), whole)
    check("its parent", view("outputs", cwd=root / "work"), whole)
    check("its inside", view(dump.inner), whole)
    os.remove(root / "work" / "outputs" / "latest")
    os.symlink(root / "gone", root / "work" / "outputs" / "latest")
    refused([], "no dump at outputs/latest", cwd=root / "work")


def test_files(root, dump):
    """Files that are directories, missing, unreadable."""
    for name in ("tensor_dump.rec", "tensor_dump.bin"):
        directory = root / f"directory_{name}"
        shutil.copytree(dump.directory, directory)
        (directory / "tensor_dump" / name).unlink()
        (directory / "tensor_dump" / name).mkdir()
        refused([directory], directory / "tensor_dump")
        (directory / "tensor_dump" / name).rmdir()
        (directory / "tensor_dump" / name).write_bytes(b"")
        refused([directory], name)
        if os.geteuid() != 0:
            os.chmod(directory / "tensor_dump" / name, 0)
            refused([directory], name, "Permission denied")
        (directory / "tensor_dump" / name).unlink()
        refused([directory], name, "it does not exist" if name == "tensor_dump.rec" else "No such file or directory")
    path = root / "directory_tensor_dump.bin" / "tensor_dump" / "tensor_dump.bin"
    for size in (0, 1, 64, len(dump.payload) - 1):
        path.write_bytes(dump.payload[:size])
        first = size // 64  # the first entry with missing bytes
        refused([path.parent], f"entry {first} (task {first // 2}, argument {first % 2}) has 64 bytes at offset {64 * first}",
                f"tensor_dump.bin ends at {size}")
    path.write_bytes(dump.payload)
    check("it is complete again", view(path.parent).count("\n"), ENTRIES + 2)


# --- the command line ---


def test_options(dump):
    d = dump.directory
    for arguments, part in (
            (["--index", "abc"], '--index: "abc" is not an integer'), (["--index", "-1"], '--index: "-1" is not an integer'),
            (["--index", "1.5"], "--index"), (["--index", ""], "--index"), (["--index", str(2**64)], "--index"),
            (["--limit", "0"], '--limit: "0" is not an integer from 1'), (["--limit", "-3"], "--limit"),
            (["--limit", "x"], "--limit"),
            (["--sort", "size"], '--sort: unknown value "size"; expected index, task, kernel'), (["--sort", "-"], "--sort"),
            (["--sort", "--task"], "--sort"), (["--role", "inn"], '--role: unknown value "inn"; expected input, output or inout'),
            (["--stage", "during"], '--stage: unknown value "during"; expected before_dispatch'), (["--kind", "x"], "--kind"),
            (["--dtype", "float99"], '--dtype: unknown dtype "float99"'), (["--dtype", ""], "--dtype"), (["--func", "softmax"], "--func"),
            (["--func", "3..1"], '--func: unknown value "3..1"'), (["--task", "a"], '--task: unknown value "a"'), (["--task", "0xg"], "--task"),
            (["--task", "1..2..3"], "--task"), (["--task", "-1"], "--task"), (["--task", str(2**64)], "--task"),
            (["--arg", "1x"], '--arg: unknown value "1x"'), (["--nothing"], "unrecognized option '--nothing'"),
            (["--as", "float32"], "--as needs --export"), (["--format", "npy"], "--format needs --export"),
            (["--full", "--json"], "--full cannot be combined with --json"),
            (["--full", "--export"], "--full cannot be combined with --export"),
            (["--export", "--json"], "--export cannot be combined with --json"),
            ([d], f'unexpected argument "{d}": view takes one dump'),
            (["--kernel"], "option '--kernel' requires an argument")):
        refused([d, *arguments], part, usage=True)
    refused([d, "--index", ENTRIES], f"--index {ENTRIES}: the dump has {ENTRIES} entries, 0 to {ENTRIES - 1}")
    refused([d, "--index", 2**64 - 2], f"--index {2**64 - 2}: the dump has {ENTRIES} entries")
    refused([d, "--full"], f"--full prints the values of one entry, but {ENTRIES} are selected")
    refused([d, "--full", "--task", "1"], "--full", "2 are selected")
    refused([d, *["--task", "1"] * 257], "--task: more than 256 values", usage=True)
    refused([d, *["--kernel", "a"] * 257], "--kernel: more than 256 values", usage=True)
    check("256 values", view(d, *["--task", "1"] * 256).count("\n"), 2 + 2 + 1)


def test_output(dump):
    """stdout that is full or closed."""
    large = Dump(dump.directory.parent / "large")
    large.task(0)
    large.tensor(0, 0, "uint8", [65536], bytes(65536))
    large.end()
    large.write()
    for directory, *arguments in ([dump.directory], [dump.directory, "--json"], [dump.directory, "--index", "0"],
                                  [dump.directory, "--stats"], [large.directory, "--index", "0", "--full"]):
        for redirection, error in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            command = f'"$@" {redirection}'
            result = glassbox_in_shell(command, ["view", directory, *arguments])
            check(f"view {arguments} {redirection}", (result.returncode, error in result.stderr, result.stderr.count("\n")),
                  (2, True, 1))


def glassbox_in_shell(command, arguments):
    return subprocess.run(["sh", "-c", command, "sh", os.path.abspath(sys.argv[1]), *map(str, arguments)],
                          capture_output=True, text=True, timeout=600)


# --- journals ---


def entries_before(dump, block_count):
    """How many entries the first blocks hold: the first holds the run, the others six records, of them four entries."""
    return min(4 * (block_count - 1), ENTRIES) if block_count else 0


def check_broken(dump, journal, readable, is_recovered=True, has_end=False):
    """View says how many entries are readable; recover, which is slow because it syncs, keeps exactly these, and view opens them."""
    path = dump.inner / "tensor_dump.rec"
    path.write_bytes(journal)
    (dump.inner / "tensor_dump.json").unlink(missing_ok=True)
    count = f"the {readable} record{'' if readable == 1 else 's'} before it"
    refused([dump.directory], "tensor_dump.rec: at offset", f"of {len(journal)}", count,
            f"glassbox recover {dump.directory}")
    if not is_recovered:
        return
    refused([dump.directory, "--json"], count)
    result = glassbox("recover", dump.directory)
    check("recover", result.returncode, 0)
    got = json.loads(view(dump.directory, "--json"))
    expected = dump.manifest()["tensors"][:readable]
    check(f"after recover: {readable} records", got["tensors"], expected)
    check("it is complete", (got["complete"], "; not complete: " in view(dump.directory).split("\n")[0]),
          (has_end, not has_end))
    if readable:
        index = readable - 1
        values = np.frombuffer(dump.payload, np.float32, 16, expected[index]["bin_offset"])
        check("the last one's values", str(values[0]) in view(dump.directory, "--index", index), True)


def test_broken_blocks(root):
    dump = make_dump(root, "broken")
    whole = dump.journal()
    starts = [len(HEADER)]
    for part in dump.blocks:
        starts.append(starts[-1] + len(part))
    for number in (1, 6, len(dump.blocks) - 1):
        for offset, bits in ((0, 1), (4, 8), (12, 1), (16, 1), (24, 128), (32, 255), (len(dump.blocks[number]) - 1, 2)):
            journal = bytearray(whole)
            journal[starts[number] + offset] ^= bits
            check_broken(dump, bytes(journal), entries_before(dump, number), offset == 32)
    for number in (1, 2, 7, len(dump.blocks) - 1):
        for cut in (1, 31, 32, 33, len(dump.blocks[number]) - 1):
            check_broken(dump, whole[:starts[number] + cut], entries_before(dump, number), cut == 33)
    check_broken(dump, whole + bytes(100), ENTRIES, has_end=True)
    check_broken(dump, whole[:starts[3]] + bytes(64), entries_before(dump, 3))
    check_broken(dump, whole + dump.blocks[1], ENTRIES, has_end=True)


def test_unreadable_journals(root):
    """Not even the first block."""
    dump = make_dump(root, "unreadable")
    path, whole = dump.inner / "tensor_dump.rec", dump.journal()
    first = len(HEADER) + len(dump.blocks[0])
    for journal in (b"", whole[:1], whole[:63], whole[:64], whole[:80], whole[:first - 1], b"X" + whole[1:],
                    whole[:8] + b"\3" + whole[9:], bytes(len(whole)), whole[:first - 9] + b"\xff" + whole[first - 8:]):
        path.write_bytes(journal)
        refused([dump.directory], "tensor_dump.rec")


def one_block_dump(root, name, records):
    """The journal of a run of these records, all checksums right."""
    dump = Dump(root / name, KERNELS)
    dump.records = records
    dump.payload = bytearray(4096)
    return dump.write(1000)


def tensor_record(dtype=1, shape=(4,), size=16, offset=0, flags=PAYLOAD, ndims=None, **head):
    body = struct.pack("<5Qq", 0, offset, size, 0, 0, 0) + struct.pack(f"<{2 * len(shape)}q", *shape, *[1] * len(shape))
    return record(TENSOR, dtype=dtype, ndims=len(shape) if ndims is None else ndims, flags=flags, body=body, **head)


def test_wrong_records(root):
    """Checksums are right, but the records are invalid."""
    huge = 2**62
    for name, arguments, part in (
            ("negative", {"shape": (-1,)}, "a dimension of its shape is negative"),
            ("dtype", {"dtype": 99}, "its dtype is unknown"), ("no_dtype", {"dtype": 0}, "its dtype is unknown"),
            ("nine", {"shape": (1,) * 9}, "its shape has more than 8 dimensions"),
            ("short", {"shape": (1,), "ndims": 4}, "it is too short for its shape"),
            ("stage", {"stage": 2}, "its stage"), ("role", {"role": 3}, "its role"), ("arg", {"arg": 64}, "its arg_index"),
            ("task", {"task": 2**44}, "its task number"), ("end", {"offset": 2**64 - 8}, "its payload ends beyond 64 bits")):
        dump = one_block_dump(root, name, [tensor_record(**arguments)])
        sentence = refused([dump.directory], "record", part, "it was written like this: a newer glassbox may read it")
        check(f"{name}: no advice that would lose records", "recover" in sentence, False)
    for name, arguments in (("beyond", {"offset": 4096}), ("long", {"size": 4097}), ("far", {"offset": 2**60, "size": 16})):
        dump = one_block_dump(root, name, [tensor_record(), tensor_record(arg=1, **arguments)])
        refused([dump.directory], "entry 1 (task 0, argument 1) has", "tensor_dump.bin ends at 4096")
    for name, arguments in (("overflow", {"shape": (huge, huge)}), ("wide", {"shape": (2**40, 2**40, 3)}),
                            ("small", {"shape": (5,)}), ("large", {"shape": (3,)}), ("odd", {"dtype": 16, "shape": (3, 3)}),
                            ("none", {"shape": (0, huge, huge)}), ("more", {"shape": (3,), "flags": PAYLOAD | 8})):
        dump = one_block_dump(root, name, [tensor_record(**arguments), tensor_record(arg=1)])
        for arguments in (["--index", "0"], ["--task", "0", "--arg", "0"], ["--sort", "max"], ["--json", "--stats"]):
            refused([dump.directory, *arguments], "entry 0 of the dump")
        result = glassbox("view", dump.directory, "--stats")  # what was printed before stays
        check(f"{name} --stats", (result.returncode, result.stderr.count("\n"), "entry 0 of the dump" in result.stderr),
              (2, 1, True))
        check(f"{name}: the rest is shown", "[0. 0. 0. 0.]" in view(dump.directory, "--index", "1"), True)
    dump = one_block_dump(root, "no_dimension", [tensor_record(shape=(), size=4, flags=PAYLOAD | CONTIGUOUS)])
    check("0-d", "float32 [], 4 bytes" in view(dump.directory, "--index", "0"), True)
    nothing = one_block_dump(root, "nothing_but_run", [record(5, stage=NONE)])
    check("no entries", json.loads(view(nothing.directory, "--json"))["tensors"], [])
    refused([nothing.directory, "--index", "0"], "--index 0: the dump has no entries")


# --- manifests without a journal ---


def test_manifests(root, dump):
    directory = root / "manifest"
    inner = directory / "tensor_dump"
    inner.mkdir(parents=True)
    path = inner / "tensor_dump.json"
    (inner / "tensor_dump.bin").write_bytes(dump.payload)
    text = json.dumps({**dump.manifest(), "run_dir": "manifest"}, separators=(",", ":"))
    path.write_text(text)
    check("only the manifest", json.loads(view(directory, "--json")), json.loads(text))
    for cut in sorted({0, 1, 2, 17, len(text) - 1, *range(100, len(text) - 1, 97)}):
        path.write_text(text[:cut])
        refused([directory], "tensor_dump.json")
    for old, new, part in (
            ('"shape":[4,4]', '"shape":[-4,4]', "tensors[0].shape"),
            ('"shape":[4,4]', f'"shape":[{2**62},{2**62}]', "tensors[0]"),
            ('"shape":[4,4]', '"shape":[4.5,4]', "tensors[0].shape"), ('"shape":[4,4]', '"shape":"x"', "tensors[0].shape"),
            ('"shape":[4,4]', f'"shape":[{2**64},4]', "tensors[0].shape"),
            ('"dtype":"float32"', '"dtype":"float31"', "tensors[0].dtype"),
            ('"dtype":"float32"', '"dtype":7', "tensors[0].dtype"),
            ('"stage":"before_dispatch"', '"stage":"x"', "tensors[0].stage"),
            ('"role":"input"', '"role":null', "tensors[0]"), ('"bin_offset":64,', '"bin_offset":-64,', "tensors[1].bin_offset"),
            ('"bin_offset":64,', '"bin_offset":99999999,', "tensor_dump.bin"), ('"bin_size":64', '"bin_size":63', "tensors[0]"),
            ('"numel":16', '"numel":17', "tensors[0].numel"), ('"tensors":[', '"tensors":{"a":', "tensor_dump.json"),
            ('"tensors":', '"others":', "tensor_dump.json"), ('"bin_file":"tensor_dump.bin"', '"bin_file":"../x"', "bin_file"),
            ('"bin_file":"tensor_dump.bin"', '"bin_file":"gone.bin"', "gone.bin"),
            ('"arg_index":1', '"arg_index":64', "arg_index"),
            ('"task_id":"0x0000000000000100"', '"task_id":"zz"', "task_id"), (text, "[]", "tensor_dump.json"),
            (text, "null", "tensor_dump.json"), (text, '{"tensors":[[]]}', "tensors[0]"),
            (text, "[" * 5000, "tensor_dump.json")):
        check(f"{old:.40} is there", old in text, True)
        path.write_text(text.replace(old, new, 1))
        refused([directory], part)
    path.unlink()
    path.mkdir()
    refused([directory], str(inner))


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        dump = make_dump(root, "good")
        check("the dump is good", json.loads(view(dump.directory, "--json")), dump.manifest())
        test_no_dump(root)
        test_controls(root)
        test_latest(root, dump)
        test_files(root, dump)
        test_options(dump)
        test_output(dump)
        test_broken_blocks(root)
        test_unreadable_journals(root)
        test_wrong_records(root)
        test_manifests(root, dump)
    return report()


if __name__ == "__main__":
    sys.exit(main())
