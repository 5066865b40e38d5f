#!/usr/bin/python3
"""glassbox verify and glassbox recover as a user sees them, on dumps made here byte by byte.

usage: verify_test.py GLASSBOX
"""
import ctypes
import fcntl
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

FLOAT32, UINT64 = 1, 12
PAYLOAD, HASH, DUPLICATE, CONTIGUOUS, COMPLETE = 1, 2, 32, 64, 256
NO_KERNEL = 0xFFFFFFFF
SCALARS, TENSORS = 4, 40  # of the dump below

xxhash = ctypes.CDLL("libxxhash.so.0")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

failed = passed = 0


def record(kind, task=0, stage=0, role=0, arg=0, dtype=0, ndims=0, flags=0, body=b""):
    body += bytes(-len(body) % 8)
    return struct.pack("<6BHI2H2Q", kind, stage, role, arg, dtype, ndims, flags, 4 + len(body) // 8, 0, 0,
                       task, 10 * task) + body


def block(sequence, records):
    body = b"".join(records)
    head = struct.pack("<4IQ", 0x42584247, len(body), len(records), sequence, xxhash.XXH3_64bits(body, len(body)))
    return head + struct.pack("<Q", xxhash.XXH3_64bits(head, len(head))) + body


def text_record(kind, fixed, text, **more):
    text = text.encode()
    return record(kind, body=fixed + struct.pack("<Q", len(text)) + text, **more)


class Dump:
    """A dump of TENSORS tasks with a tensor of 256 floats each, the last two of them equal."""

    def __init__(self, root, name):
        self.directory = root / name
        self.inner = self.directory / "tensor_dump"
        self.inner.mkdir(parents=True)
        self.payload = bytearray()
        run = {"generator": "hand", "run": {"scene": "s"}, "dump_level": "full",
               "kernels": [{"func_id": 7, "name": "softmax", "core_type": "aiv", "signature": ["in"]}]}
        self.blocks = [block(0, [text_record(1, b"", json.dumps(run))])]
        tasks = [self.task(i) for i in range(TENSORS)]
        self.blocks += [block(1 + i, sum(tasks[8 * i:8 * i + 8], [])) for i in range(TENSORS // 8)]
        self.end(TENSORS + SCALARS, TENSORS)

    def task(self, task):
        values = struct.pack("<256f", *[min(task, TENSORS - 2) * 1000 + i for i in range(256)])
        is_duplicate = task == TENSORS - 1
        offset = len(self.payload) - 1024 if is_duplicate else len(self.payload)
        self.payload += b"" if is_duplicate else values
        value = xxhash.XXH3_128bits(values, len(values))
        tensor = struct.pack("<5Qq2q", 0x7E9000000000 + 4096 * task, offset, 1024, value.low, value.high, 0, 256, 1)
        flags = PAYLOAD | HASH | CONTIGUOUS | (DUPLICATE if is_duplicate else 0)
        records = [record(3, task, 255, body=struct.pack("<Q6I", task + 256, NO_KERNEL, 7, NO_KERNEL, 1, 0, 0)),
                   record(7, task, arg=0, dtype=FLOAT32, ndims=1, flags=flags, body=tensor)]
        if task < SCALARS:
            records.append(record(6, task, arg=1, dtype=UINT64, body=struct.pack("<Q", task)))
        return records + [record(5, task)]

    def end(self, records, tasks, dropped=0, extra=()):
        body = struct.pack("<8Q", records, tasks, 0, 1024 * TENSORS, 1024 * (TENSORS - 1), 1, dropped, 0)
        self.blocks[TENSORS // 8 + 1:] = [block(TENSORS // 8 + 1, [*extra, text_record(11, body, "ok", flags=COMPLETE)])]

    def write(self, journal_bytes=None):
        header = struct.pack("<8s2I", b"GBXJRNL1", 1, 64) + bytes(48)
        self.journal = header + b"".join(self.blocks)
        (self.inner / "tensor_dump.rec").write_bytes(self.journal[:journal_bytes])
        (self.inner / "tensor_dump.bin").write_bytes(self.payload)
        return self


def flip(path, offset, bits=1):
    data = bytearray(path.read_bytes())
    data[offset] ^= bits
    path.write_bytes(data)


def check(arguments, code, out=None, err="", cwd=None):
    """`out` and `err` are the complete text, or lists of parts of it."""
    global failed, passed
    result = subprocess.run([os.path.abspath(sys.argv[1]), *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                            timeout=600)
    wrong = [] if result.returncode == code else [f"exit code {result.returncode}, expected {code}"]
    for name, got, expected in (("stdout", result.stdout, out), ("stderr", result.stderr, err)):
        if isinstance(expected, list):
            wrong += [f"{name} has no {part!r}:\n{got}" for part in expected if part not in got]
        elif expected is not None and got != expected:
            wrong.append(f"{name} is\n{got!r}\nexpected\n{expected!r}")
    for line in wrong:
        print(f"glassbox {' '.join(map(str, arguments))}: {line}")
    failed += bool(wrong)
    passed += not wrong
    return result.stdout


def check_that(what, is_so):
    global failed, passed
    failed += not is_so
    passed += bool(is_so)
    if not is_so:
        print(f"not so: {what}")


GOOD = "good: 44 entries, 40.0 KiB of payload, every hash, size and count holds\n"


def good_dump(root):
    dump = Dump(root, "good").write()
    d = dump.directory
    check(["verify", d], 1, [f"bad: 1 problem in {d}", "  file: tensor_dump.json is missing\n",
                             f"glassbox recover {d} keeps"])
    check(["recover", d], 0, f"recovered {d}: 44 entries of 40 tasks, 40.0 KiB of payload; the run had ended\n"
                             f"  wrote tensor_dump.json\nnext: glassbox verify {d}\n")
    check(["recover", d], 0, f"nothing to recover in {d}: 44 entries of 40 tasks, 40.0 KiB of payload; "
                             "the run had ended\n")
    for given in (d, dump.inner, root):
        check(["verify", given], 0, GOOD)
    document = json.loads(check(["verify", d, "--json"], 0))
    check_that("the JSON of a good dump", document == {
        "dump": str(d), "good": True, "complete": True, "status": "ok", "can_be_recovered": False, "records": 44,
        "bytes": 40960, "stored_bytes": 39936, "tasks": 40, "dispatches": 0, "results": 0, "hashed_records": 40,
        "tensors_without_payload": 0, "tensors_without_hash": 0, "newer_records": 0, "has_journal": True, "bad": [], "losses": [],
        "skipped": []})
    manifest = json.loads((dump.inner / "tensor_dump.json").read_text())
    check_that("the manifest has all records", len(manifest["tensors"]) == 44 and manifest["complete"] is True)
    return dump


def default_dump(root, dump):
    check(["verify"], 2, "", ["no dump at outputs/latest", "glassbox run SCENE --dump-tensor"], cwd=root)
    (root / "outputs").mkdir()
    os.symlink(dump.directory, root / "outputs" / "latest")
    check(["verify"], 0, GOOD, cwd=root)
    check(["verify", "outputs"], 0, GOOD, cwd=root)


def bad_payload(dump):
    d, payload = dump.directory, dump.inner / "tensor_dump.bin"
    flip(payload, 3 * 1024 + 5)
    check(["verify", d], 1, [f"bad: 1 problem in {d} (44 entries, 40.0 KiB of payload)\n",
                             "  entry 6: task 3, kernel softmax, arg 0, before_dispatch: hash of 1024 bytes at byte 3072: "
                             "expected "])
    bad = json.loads(check(["verify", "--json", d], 1))["bad"]
    check_that("the record is named", len(bad) == 1 and (bad[0]["kind"], bad[0]["index"], bad[0]["task_seq"],
               bad[0]["kernel"], bad[0]["arg_index"], bad[0]["stage"]) == ("hash", 6, 3, "softmax", 0, "before_dispatch"))
    values = struct.pack("<256f", *[3000 + i for i in range(256)])
    value = xxhash.XXH3_128bits(values, len(values))
    check_that("the hash is that of the bytes", bad[0]["expected"] == f"{value.high:016x}{value.low:016x}")
    payload.write_bytes(bytes(len(dump.payload)))
    out = check(["verify", d], 1, ["bad: 40 problems in", "  and 20 more; --json has all\n"])
    check_that("20 are listed", out.count("hash of 1024 bytes") == 20)
    check_that("all are in the JSON", len(json.loads(check(["verify", d, "--json"], 1))["bad"]) == 40)
    payload.unlink()
    check(["verify", d], 1, ["  file: tensor_dump.bin is missing: 40 records have 39936 bytes of payload there\n"])
    payload.write_bytes(dump.payload)
    check(["verify", d], 0, GOOD)


def bad_manifest(dump):
    path = dump.inner / "tensor_dump.json"
    text = path.read_text()
    path.write_text(text.replace('"bin_offset":5120,', '"bin_offset":5184,'))
    check(["verify", dump.directory], 1, ["entry 9: task 5, kernel softmax, arg 0, before_dispatch: "
                                          "tensor_dump.json: tensors[9].bin_offset: expected 5120, got 5184\n"])
    path.write_text(json.dumps(json.loads(text), indent=4))
    check(["verify", dump.directory], 0, GOOD)
    path.write_text(text)


def losses_are_reported(root):
    dump = Dump(root, "losses")
    loss = record(9, task=2, stage=1, arg=3, body=struct.pack("<2IQ", 0, 0, 5))
    skipped = record(10, task=4, stage=255, arg=255, body=struct.pack("<2I", 0, 7))
    dump.end(TENSORS + SCALARS, TENSORS, 5, [loss, skipped])
    dump.write()
    check(["recover", dump.directory], 0, ["wrote tensor_dump.json"])
    check(["verify", dump.directory], 0, GOOD + "lost: 5 records, the first of task 2, arg 3, after_completion: "
          "there was no room within the stall timeout\n"
          "skipped: task 4, kernel softmax: the tensors of the task were never described\n")
    document = json.loads(check(["verify", dump.directory, "--json"], 0))
    check_that("losses are in the JSON", document["losses"] == [
        {"task_seq": 2, "arg_index": 3, "stage": "after_completion", "cause": "stall", "count": 5, "result": None,
         "is_least": False}])


def killed(root):
    dump = Dump(root, "killed run")
    dump.write(64 + sum(map(len, dump.blocks[:4])) + 100)
    d = dump.directory
    check(["verify", d], 1, ["bad: ", "  journal: at byte ", "block 4 is cut off", "readable records of the journal before it: ",
                             ", readable blocks: 4\n", "there is no END record", f"glassbox recover '{d}' keeps what is readable"])
    out = check(["recover", d], 0, [f"recovered {d}: 28 entries of 24 tasks, 24.0 KiB of payload; "
                                    "the dump is not complete\n", "  cut 100 bytes off the journal (block 4 is cut off",
                                    f"kept in {dump.inner}/tensor_dump.rec.broken\n", "  ended the journal\n",
                                    "  wrote tensor_dump.json\n", f"next: glassbox verify '{d}'\n"])
    check_that("nothing of args is written", "args_dump" not in out and not (dump.inner / "args_dump.json").exists())
    check(["verify", d], 0, "good: 28 entries, 24.0 KiB of payload, every hash, size and count holds\n"
                            "not complete: killed before the dump was complete; recovered\n")
    check(["recover", d], 0, [f"nothing to recover in {d}: 28 entries of 24 tasks"])
    kept = (dump.inner / "tensor_dump.rec.broken").read_bytes()
    start = 64 + sum(map(len, dump.blocks[:4]))
    check_that("the tail is kept", kept == dump.journal[start:start + 100])
    check_that("complete blocks are as they were", (dump.inner / "tensor_dump.rec").read_bytes()[:start] == dump.journal[:start])
    manifest = json.loads((dump.inner / "tensor_dump.json").read_text())
    check_that("complete is false", manifest["complete"] is False and manifest["total_tensors"] == 28)
    check_that("bytes are where the manifest says", all(
        struct.unpack_from("<f", dump.payload, entry["bin_offset"])[0] == entry["task_seq"] * 1000
        for entry in manifest["tensors"] if entry["kind"] == "tensor"))


def without_journal(root):
    """Without the journal, our own manifest is checked as far, except for what only the journal has."""
    dump = Dump(root, "alone").write()
    d = dump.directory
    check(["recover", d], 0, ["wrote tensor_dump.json"])
    (dump.inner / "tensor_dump.rec").unlink()
    source = dump.inner / "tensor_dump.json"
    good = GOOD.replace("count holds", "count in the manifest holds") + f"no journal: read from {source}\n"
    check(["verify", d], 0, good)
    check(["recover", d], 2, "", [f"recovering {d}: it has no journal to recover from"])
    document = json.loads(check(["verify", d, "--json"], 0))
    check_that("the JSON says that there is no journal", (document["has_journal"], document["hashed_records"],
               document["records"], document["stored_bytes"]) == (False, 40, 44, 39936))
    (dump.inner / "kernel_args_dump.json").write_text("{}")
    check(["verify", d], 0, good + "not checked: kernel_args_dump.json and args_dump.json, because there is no "
                                   "journal to compare them with\n")
    flip(dump.inner / "tensor_dump.bin", 3 * 1024 + 5)
    check(["verify", d], 1, ["bad: 1 problem in", "  entry 6: task 3, kernel softmax, arg 0, before_dispatch: hash of"])
    source.write_text(source.read_text()[:-9])
    check(["verify", d], 2, "", [f"glassbox verify: {source}: line "])


def other_tools(root):
    """Dumps of another tool have no hashes: sizes, places and counts are checked, and verify says so."""
    fixtures = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler"
    for name, records, size, tensors, more in (
            ("vector_example", 18, "832.0 KiB", 13, ""),
            ("partial_level3", 19, "448.0 KiB", 7,
             "no payload: the hashes of 6 tensors were not checked\n")):
        d = fixtures / name
        check(["verify", d], 0, f"good: {records} entries, {size} of payload, every hash, size and count in the manifest "
              f"holds\nthe manifest does not say how the run ended\n{more}no journal: read from {d}/args_dump.json\n"
              f"no hashes: the bytes of {tensors} tensors were not checked\n")
    copy = root / "copy"
    copy.mkdir()
    text = (fixtures / "vector_example" / "args_dump.json").read_text()
    payload = (fixtures / "vector_example" / "args.bin").read_bytes()
    (copy / "args.bin").write_bytes(payload[:-4])
    (copy / "args_dump.json").write_text(text.replace('"before_dispatch": 13', '"before_dispatch": 12')
                                         .replace('"dropped_records": 0', '"dropped_records": 3'))
    check(["verify", copy], 1, ["bad: 2 problems in", "  count: before_dispatch: expected 13, got 12\n",
                                "entry 17: task 4, kernel #0, arg 2, after_completion: payload: expected inside the "
                                "851964 bytes of args.bin, got 65536 bytes at byte 786432\n",
                                "lost: 3 records: the dump does not say why\n"])
    losses = json.loads(check(["verify", copy, "--json"], 1))["losses"]
    check_that("a loss of no task", losses == [
        {"task_seq": None, "arg_index": None, "stage": None, "cause": "not told", "count": 3, "result": None,
         "is_least": False}])
    (copy / "args_dump.json").write_text(text.replace('"shape": [16384]', '"shape": [-16384]', 1))
    check(["verify", copy], 2, "", ["args_dump.json: args[0].shape[0]: expected an integer from 0 to"])
    check(["recover", copy], 2, "", ["it has no journal to recover from"])


def pipes(root):
    """Anything but a regular file is refused, without waiting for a writer."""
    fixture = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler" / "vector_example"
    other = root / "pipes"
    other.mkdir()
    (other / "args_dump.json").write_bytes((fixture / "args_dump.json").read_bytes())
    os.mkfifo(other / "args.bin")
    check(["verify", other], 2, "", [f"glassbox verify: cannot read {other}/args.bin: it is not a regular file"])
    dump = Dump(root / "pipes", "own").write()
    d = dump.directory
    check(["recover", d], 0, ["wrote tensor_dump.json"])
    check(["verify", d], 0, GOOD)
    manifest = dump.inner / "tensor_dump.json"
    text = manifest.read_bytes()
    manifest.unlink()
    os.mkfifo(manifest)
    check(["verify", d], 1, ["bad: 1 problem in", f"{manifest} is not a regular file"])
    manifest.unlink()
    manifest.write_bytes(text)
    for name in ("tensor_dump.bin", "tensor_dump.rec"):
        path = dump.inner / name
        path.unlink()
        os.mkfifo(path)
        check(["verify", d], 2, "", [f"cannot read {path}: it is not a regular file"])
    check(["recover", d], 2, "", [f"{dump.inner}/tensor_dump.rec: it is not a regular file"])


def flags_of_others(root):
    """Another tool's scalars count in its totals, and missing members are accepted."""
    directory = root / "flags"
    directory.mkdir()
    entry = {"task_id": 1, "arg_index": 0, "role": "input", "stage": "before_dispatch", "dtype": "int32", "value": 7}
    manifest = {"bin_file": None, "total_args": 3, "truncated_args": 2, "dropped_records": 2, "dropped_overwrite": 3,
                "args": [entry | {"truncated": True}, entry | {"arg_index": 1, "overwritten": True},
                         entry | {"arg_index": 2, "truncated": True, "arg_index_ambiguous": True}]}
    (directory / "args_dump.json").write_text(json.dumps(manifest))
    check(["verify", directory], 0, ["good: 3 entries", "lost: 2 records: the dump", "lost: 3 records: the dump"])
    (directory / "args_dump.json").write_text(json.dumps(manifest | {"truncated_args": 1}))
    check(["verify", directory], 1, ["count: truncated_args: expected 2, got 1\n"])


def odd_names(root):
    """Names in a dump do not reach the terminal raw."""
    directory = root / "odd"
    directory.mkdir()
    name = "k\x1b[31m\u009b\u00e9"
    (directory / "tensor_dump.json").write_text(json.dumps({
        "complete": False, "status": "bad\x1b[2J\nend", "kernels": [{"func_id": 1, "name": name}], "tensors": [],
        "skipped": [{"task_seq": 0, "arg_index": None, "kernel": name,
                     "reason": "nobody told which words of the task are tensors"}]}))
    check(["verify", directory], 0, ["not complete: bad\\x1b[2J\\x0aend\n", "kernel k\\x1b[31m\\xc2\\x9b\u00e9: the tensors"])


def many_kernels(root):
    """A table of too many kernels is refused before a list is matched with it, within the timeout."""
    directory = root / "many"
    directory.mkdir()
    reason = "nobody told which words of the task are tensors"
    names = [f"{'k' * 40}{i}" for i in range(60000)]
    manifest = {"kernels": [{"func_id": i, "name": name} for i, name in enumerate(names)], "tensors": [],
                "skipped": [{"task_seq": 0, "arg_index": None, "kernel": name, "reason": reason} for name in names]}
    source = directory / "tensor_dump.json"
    source.write_text(json.dumps(manifest))
    check(["verify", directory], 2, "", [f"{source}: kernels: has 60000 kernels, more than 1024"])
    manifest["kernels"] = manifest["kernels"][:1024]
    source.write_text(json.dumps(manifest))
    check(["verify", directory], 0, [f"skipped: task 0, kernel {names[1]}: the tensors of the task were never described\n", "skipped: and 59,980 more lines; --json has all\n"])


def refused(root, dump):
    with open(dump.inner / "tensor_dump.rec", "rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        check(["verify", dump.directory], 2, "", ["is being written: the run is still going on"])
        check(["recover", dump.directory], 2, "", ["is in use: the run is still going on"])
        check(["verify", "--json", dump.directory], 2, "", ["is being written"])
    empty = Dump(root / "more", "empty").write(64)
    check(["verify", empty.directory], 2, "", ["no readable block"])
    check(["recover", empty.directory], 2, "", ["no record can be kept"])
    (empty.inner / "tensor_dump.rec").unlink()
    check(["verify", empty.directory], 2, "", ["tensor_dump.rec is missing"])
    check(["verify", root / "nowhere"], 2, "", ["nowhere: No such file or directory", "--dump-tensor"])
    check(["recover", root / "nowhere"], 2, "", ["nowhere: No such file or directory"])
    check(["verify", root / "more", root], 2, "", [f'unexpected argument "{root}": verify takes one dump'])
    check(["recover"], 2, "", ["missing argument: recover takes one dump"])
    check(["verify", "--help"], 0, ["glassbox verify outputs --json"])
    check(["recover", "--help"], 0, ["glassbox recover outputs/latest"])


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        dump = good_dump(root / "one")
        default_dump(root, dump)
        bad_payload(dump)
        bad_manifest(dump)
        losses_are_reported(root)
        killed(root)
        without_journal(root / "alone")
        other_tools(root)
        pipes(root)
        flags_of_others(root)
        odd_names(root)
        many_kernels(root)
        refused(root, dump)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
