#!/usr/bin/python3
"""glassbox replay of one task reads only the blocks of the journal that hold it: what it says is the same.

usage: replay_blocks_test.py GLASSBOX EXAMPLES

The journal of a run is written again in small blocks, with a RANGE or without, byte by byte from docs/format.md.
"""
import shutil
import struct
import sys

from command_support import check, check_in, glassbox
from dump_encoder import HEADER, block, hash64, record as encode
from replay_support import EXAMPLES, manifest, record, refuse, replay, root, run_parts

RANGE, NEWER = 16, 99
OF_TASKS = (3, 4, 5, 6, 7, 8, 12)


# --- journals ---


def journal_of(dump):
    return dump / "tensor_dump" / "tensor_dump.rec"


def read_records(dump):
    """All records of a journal but RANGE."""
    data, at, records = journal_of(dump).read_bytes(), len(HEADER), []
    while at < len(data):
        end, at = at + 32 + struct.unpack_from("<I", data, at + 4)[0], at + 32
        while at < end:
            size = 8 * struct.unpack_from("<I", data, at + 8)[0]
            records.append(data[at:at + size])
            at += size
    return [one for one in records if one[0] != RANGE]


def task_of(one):
    return struct.unpack_from("<Q", one, 16)[0]


def range_of(records, more=0):
    """`more` is added to the last task: then it is false."""
    tasks = [task_of(one) for one in records if one[0] in OF_TASKS]
    types = 0
    for one in records:
        types |= 1 << (one[0] if one[0] < 64 else 0)
    body = struct.pack("<2Q", max(tasks, default=0) + more, types)
    made = bytearray(encode(RANGE, task=min(tasks, default=1), stage=255, arg=255, body=body + bytes(8)))
    struct.pack_into("<Q", made, 48, hash64(made[:48]))
    return bytes(made)


def write_blocks(dump, blocks, has_range=True, more=0):
    """Returns where each block begins."""
    made, starts = HEADER, []
    for i, records in enumerate(blocks):
        starts.append(len(made))
        made += block(i, [range_of(records, more)] + records if has_range and i else records)
    journal_of(dump).write_bytes(made)
    return starts


def in_blocks(records, size=3):
    return [records[:1]] + [records[i:i + size] for i in range(1, len(records), size)]


def copy_of(dump, name):
    copy = root / name
    shutil.copytree(dump, copy)
    return copy


# --- replays ---


def without_times(document):
    return {key: value for key, value in document.items() if key not in ("ns_per_call", "repeat")}


def outcome(dump, task):
    done = glassbox("replay", dump, "--task", task, "--json")
    check(f"{dump} {task}: exit code and stderr", (done.returncode, done.stderr), (0, ""))
    return without_times(replay(dump, task))


def check_same():
    """In the blocks of the run, in small ones, and in small ones that must all be read."""
    dump = record(EXAMPLES / "bgemm", "blocks")
    records = read_records(dump)
    tasks = sorted({e["task_seq"] for e in manifest(dump)["tensors"]})
    small, whole = copy_of(dump, "small"), copy_of(dump, "whole")
    write_blocks(small, in_blocks(records))
    write_blocks(whole, in_blocks(records), has_range=False)
    for task in tasks[::5] + tasks[-1:]:
        expected = outcome(dump, task)
        check(f"task {task}: what was replayed", (expected["task_seq"], expected["verdict"]), (task, "bit_exact"))
        for copy in (small, whole):
            check(f"{copy.name}: task {task}", outcome(copy, task), expected)
    for copy in (dump, small, whole):
        check(f"{copy.name}: verify", glassbox("verify", copy).returncode, 0)
        check_in(f"{copy.name}: no such task", "the dump has no such task; see glassbox view", refuse(copy, tasks[-1] + 1))
        check_in(f"{copy.name}: a huge number", "the dump has no such task; see glassbox view", refuse(copy, 2**60))


def find_blocks(blocks, is_wanted):
    return [i for i, records in enumerate(blocks) if i and all(is_wanted(one) for one in records)]


def check_damage():
    """Damage in the block of another task is not noticed; in a block that is read, it is as it always was."""
    dump, blocks = root / "small", in_blocks(read_records(root / "small"))
    harmed, whole = copy_of(dump, "harmed"), copy_of(dump, "harmed whole")
    starts = write_blocks(harmed, blocks)
    near = find_blocks(blocks, lambda one: one[0] in OF_TASKS and task_of(one) > 20)[0]
    other = task_of(blocks[near][0])
    data = bytearray(journal_of(harmed).read_bytes())
    data[starts[near] + 32 + 56 + 40] ^= 1
    journal_of(harmed).write_bytes(data)
    check("harmed: another task", outcome(harmed, 0), outcome(dump, 0))
    text = refuse(harmed, other)
    for part in (f"at offset {starts[near]} of {len(data)}", f"the records of block {near} do not match their checksum",
                 "glassbox recover"):
        check_in("harmed: its own task", part, text)
    check("harmed: all tasks", refuse(harmed, "all"), text)
    starts = write_blocks(whole, blocks, has_range=False)
    data = bytearray(journal_of(whole).read_bytes())
    data[starts[near] + 32 + 40] ^= 1
    journal_of(whole).write_bytes(data)
    check_in("harmed without RANGE", f"the records of block {near} do not match their checksum", refuse(whole, 0))


def check_torn():
    """The end of the journal is looked at, whatever the task."""
    dump, blocks = root / "small", in_blocks(read_records(root / "small"))
    for name, size in (("a head", 20), ("records", 100), ("no END", 0)):
        torn = copy_of(dump, f"torn {name}")
        starts = write_blocks(torn, blocks)
        with open(journal_of(torn), "r+b") as file:
            file.truncate(starts[-1] + size)
        if size:
            check_in(f"torn: {name}", "is cut off", refuse(torn, 0))
            check(f"torn: {name}: all tasks", refuse(torn, "all"), refuse(torn, 0))
        else:
            check("torn: no END", outcome(torn, 0), outcome(dump, 0))


def check_false():
    dump, blocks = root / "small", in_blocks(read_records(root / "small"))
    false = copy_of(dump, "false")
    write_blocks(false, blocks, more=1)
    done = glassbox("verify", false)
    check("false: verify", done.returncode, 1)
    check_in("false: what verify says", "last task in the RANGE of block 1: expected ", done.stdout)


def check_newer():
    """Records of a newer version are counted once, whether their block holds the task or not."""
    dump, records = root / "small", read_records(root / "small")
    newer = copy_of(dump, "newer")
    blocks = in_blocks(records[:-1] + [encode(NEWER), encode(NEWER)] + records[-1:], 1)
    write_blocks(newer, blocks)
    done = glassbox("replay", newer, "--task", 0)
    check("newer", (done.returncode, done.stderr),
          (0, f"glassbox: {newer}: skipped 2 records of types newer than this version\n"))


def check_payload():
    """A payload that ends too early is refused with the number of the entry in the dump."""
    dump = root / "small"
    entries = [e for e in manifest(dump)["tensors"] if e["bin_size"]]
    last = max(entries, key=lambda entry: entry["bin_offset"])
    cut = copy_of(dump, "cut")
    with open(cut / "tensor_dump" / "tensor_dump.bin", "r+b") as file:
        file.truncate(last["bin_offset"] + 1)
    text = refuse(cut, last["task_seq"])
    index = min(e["index"] for e in entries if e["bin_offset"] == last["bin_offset"])
    check_in("cut: its own task", f"entry {index} (task ", text)
    check("cut: all tasks", refuse(cut, "all"), text)


if __name__ == "__main__":
    sys.exit(run_parts(check_same, check_damage, check_torn, check_false, check_newer, check_payload))
