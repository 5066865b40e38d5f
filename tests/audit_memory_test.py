#!/usr/bin/python3
"""glassbox audit on dumps that are made byte by byte (dump_encoder.py): the findings are known.

usage: audit_memory_test.py GLASSBOX EXAMPLES

Random tasks read and write views of one memory; audit_model.py says what must be found.
"""
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np

from audit_model import Memory, Tasks, all_paths, expected_pair, random_view
from audit_support import AFTER, BEFORE, audit, audit_text, place
from command_support import check, glassbox, report
from dump_encoder import DONE, EDGES, IN_FLIGHT, NONE, PAYLOAD, Dump, record

# --- dumps ---

FUNCTIONS = [{"func_id": 0, "name": "k", "core_type": "aiv", "signature": ["in", "out"], "arg_names": ["a", "out"]}]


class Recorded:
    """A dump of tasks one after the other, each with the bytes that it read and wrote."""

    def __init__(self, directory, runtime="tensormap_and_ringbuffer", **more):
        self.dump = Dump(directory, FUNCTIONS, runtime=runtime, **more)
        self.directory, self.time = directory, 0

    def begin(self, task):
        self.time += 10
        self.dump.task(task, (None, 0, None), time=self.time)

    def read(self, task, arg, name, shape, data, address, **more):
        self.dump.tensor(task, arg, name, shape, data, address=address, time=self.time, **more)

    def write(self, task, arg, name, shape, data, address, **more):
        self.dump.tensor(task, arg, name, shape, data, address=address, time=self.time + 5, role=1, stage=1, **more)

    def done(self, task):
        self.dump.records.append(record(DONE, task, 1, arg=NONE, time=self.time + 5))

    def edges(self, task, *predecessors):
        self.dump.records.append(record(EDGES, task, NONE, arg=NONE, body=struct.pack(f"<{len(predecessors)}Q", *predecessors)))

    def finish(self, code, end={}):
        if end is not None:
            self.dump.end(**end)
        self.dump.write()
        return audit(self.directory, code)

    def without_payload(self):
        """Removes the bytes of the last record, not its hash."""
        last = bytearray(self.dump.records[-1])
        flags = struct.unpack_from("<H", last, 6)[0] & ~PAYLOAD
        struct.pack_into("<H", last, 6, flags)
        struct.pack_into("<2Q", last, 40, 0, 0)
        self.dump.records[-1] = bytes(last)


def one_after_other(directory, written, read, name="float32", keep=None, has_only_hashes=False, **more):
    """Task 0 writes a vector, task 1 reads it."""
    made = Recorded(directory, **more)
    count = len(written) * 2 if name == "int4" else len(written) // np.dtype(name).itemsize
    made.begin(0)
    made.write(0, 1, name, (count,), written, 0x1000, keep=keep)
    if has_only_hashes:
        made.without_payload()
    made.done(0)
    made.begin(1)
    made.read(1, 0, name, (count,), read, 0x1000, keep=keep)
    if has_only_hashes:
        made.without_payload()
    made.done(1)
    return made


def elements(got):
    return [each["element"] for each in got["findings"]]


def ranges(got):
    return [(each["range"]["begin"], each["range"]["end"]) for each in got["findings"]]


def test_parts_of_tensors(root):
    """Payload that is truncated, only a hash, or packed."""
    old = np.arange(8, dtype=np.float32)
    new = old.copy()
    new[6] = 9
    got = one_after_other(root / "kept", old.tobytes(), new.tobytes()).finish(1)
    check("kept: element", elements(got), [{"index": [6], "dtype": "float32", "expected": 6.0, "found": 9.0}])
    got = one_after_other(root / "cut_before", old.tobytes(), new.tobytes(), keep=20).finish(0)
    check("cut before it: not audited", (got["not_audited"]["no_bytes"], got["compared"]), (1, 0))
    got = one_after_other(root / "cut_behind", old.tobytes(), new.tobytes(), keep=28).finish(1)
    check("cut behind it: element", elements(got), [{"index": [6], "dtype": "float32", "expected": 6.0, "found": 9.0}])
    got = one_after_other(root / "hashes", old.tobytes(), new.tobytes(), has_only_hashes=True, level="stats").finish(1)
    check("hashes that differ", (elements(got), ranges(got), got["findings"][0]["compared"]), ([None], [(0, 32)], False))
    got = one_after_other(root / "same_hashes", old.tobytes(), old.tobytes(), has_only_hashes=True, level="stats").finish(0)
    check("hashes that are equal", (got["compared"], got["findings"]), (1, []))
    halves = bytes(range(0x10, 0x18))
    changed = halves[:4] + bytes([halves[4] ^ 0x30]) + halves[5:]
    got = one_after_other(root / "halves", halves, changed, "int4").finish(1)
    check("int4: element", elements(got), [{"index": [9], "dtype": "int4", "expected": 1, "found": 2}])


def test_same_bytes(root):
    """Different dtypes over the same bytes, different bits with the same text, tasks that took no time."""
    old = np.arange(4, dtype=np.float32)
    for name, hashed in (("bytes", False), ("hashes", True)):
        for shape, dtype in (((4,), "int32"), ((16,), "uint8"), ((2, 4), "float16")):
            for change, code in ((0, 0), (1, 1)):
                made = Recorded(root / f"as_{dtype}_{name}_{code}", level="stats" if hashed else "full")
                made.begin(0)
                made.write(0, 1, "float32", (4,), old.tobytes(), 0x1000)
                if hashed:
                    made.without_payload()
                made.done(0)
                made.begin(1)
                made.read(1, 0, dtype, shape, (old + [0, 0, change, 0]).astype(np.float32).tobytes(), 0x1000)
                if hashed:
                    made.without_payload()
                made.done(1)
                got = made.finish(code)
                width = np.dtype(dtype).itemsize
                begin = 10 // width * width  # 2.0 and 3.0 differ in byte 2 of the element
                expected = [(0, 16) if hashed else (begin, begin + width)] if change else []
                check(f"{made.directory.name}: ranges", (ranges(got), got["compared"]), (expected, 1))
    nans = [np.array([0x7fc00000 + i], np.uint32).tobytes() for i in range(2)]
    one_after_other(root / "nans", *nans).finish(1)
    check("text: NaN and NaN", audit_text(root / "nans", 1)[3],
          "  first element that differs: [0], expected nan (0x7fc00000), found nan (0x7fc00001)")
    made = Recorded(root / "no_time")
    for task in range(3):
        made.time = 0
        made.begin(task)
        made.read(task, 0, "float32", (4,), (old + task).tobytes(), 0x1000, role=2)
        made.dump.tensor(task, 0, "float32", (4,), (old + task + 1).tobytes(), address=0x1000, time=made.time, role=2, stage=1)
        made.dump.records.append(record(DONE, task, 1, arg=NONE, time=made.time))
    got = made.finish(0)
    check("tasks that took no time", (got["findings"], got["compared"], got["first_reads"]), ([], 2, 1))


def test_what_is_missing(root):
    """A task between the two may have written it if the dump does not have all its outputs."""
    old, new = np.zeros(4, np.float32), np.ones(4, np.float32)

    def between(name, code, is_done=True, after=lambda made: None, end={}, found=new, **more):
        made = Recorded(root / name, **more)
        made.begin(0)
        made.write(0, 1, "float32", (4,), old.tobytes(), 0x1000)
        made.done(0)
        made.begin(1)
        if is_done:
            made.done(1)
        made.begin(2)
        made.read(2, 0, "float32", (4,), found.tobytes(), 0x1000)
        made.done(2)
        after(made)
        got = made.finish(code, end)
        return len(got["findings"]), got["not_audited"]["missing_outputs"], got["tasks_missing_outputs"]

    check("complete", between("complete", 1), (1, 0, 0))
    lost = {"text": "done, but records were lost", "is_complete": False}
    check("a loss", between("loss", 0, after=lambda made: made.dump.loss(1, 1, 1, 0, 1), end=lost), (0, 1, 1))
    check("a loss of an input", between("input_loss", 1, after=lambda made: made.dump.loss(1, 0, 0, 0, 1), end=lost), (1, 0, 0))
    check("losses of unknown arguments", between("losses", 0, after=lambda made: made.dump.loss(0, NONE, NONE, 3, 2), end=lost),
          (0, 1, None))
    check("killed", between("killed", 0, end=None), (0, 1, None))
    recovered = {"text": "killed before the dump was complete; recovered", "is_complete": False}
    check("killed and recovered", between("recovered", 0, end=recovered), (0, 1, None))
    check("recovered, and a loss too", between("recovered_loss", 0, after=lambda made: made.dump.loss(2, 0, 0, 0, 1), end=recovered),
          (0, 1, None))
    check("killed: first line", audit_text(root / "killed", 0)[0],
          "no findings, but 1 of 2 entries of 3 tasks could not be audited, and the dump is not complete")
    check("a skipped task", between("skipped", 0, after=lambda made: made.dump.skipped(1, NONE, 0, 0)), (0, 1, 1))
    check("no end", between("no_end", 0, is_done=False), (0, 1, 1))
    check("a loss of a task that came later", between("later", 1, after=lambda made: made.dump.loss(2, 1, 1, 0, 1)), (1, 0, 1))
    check("only marked arguments", between("partial", 0, level="partial"), (0, 1, None))
    for name, first_line in (("skipped", "the dump lacks outputs of some tasks"),
                             ("partial", "the dump may lack arguments of its tasks")):
        check(f"{name}: first line", audit_text(root / name, 0)[0],
              f"no findings, but 1 of 2 entries of 3 tasks could not be audited, and {first_line}")
    check("a skipped task, and all is equal",
          between("skipped_equal", 0, after=lambda made: made.dump.skipped(1, NONE, 0, 0), found=old), (0, 0, 1))
    text = audit_text(root / "skipped_equal", 0)
    check("a skipped task, and all is equal: first line", text[0],
          "no findings, but the dump lacks outputs of some tasks: 2 entries of 3 tasks do not contradict each other")
    check("a skipped task, and all is equal: how many", "left out: outputs of 1 task that the dump lacks" in text, True)

    def in_flight(made):
        made.dump.tensor(1, 1, "float32", (4,), new.tobytes(), address=0x1000, time=25, role=1, stage=1, flags=IN_FLIGHT)

    check("in flight takes no part", between("in_flight", 1, after=in_flight), (1, 0, 0))


def test_damage(root):
    """Bytes that a disk changed are not a task's write; other errors are still found."""
    values = np.arange(1, 9, dtype=np.float32)
    last = values.copy()
    last[6] = 0.5

    def recorded(name, damaged, code):
        made = Recorded(root / name)
        made.begin(0)
        made.write(0, 1, "float32", (8,), values.tobytes(), 0x1000)
        made.done(0)
        for task, data in ((1, values[:3]), (2, last[:6] if code == 0 else last)):
            made.begin(task)
            made.read(task, 0, "float32", data.shape, data.tobytes(), 0x1000)
            made.done(task)
        got = made.finish(code)
        check(f"{name}: undamaged", (got["damaged"], got["not_audited"]["no_bytes"], got["compared"]), (0, 0, 2))
        path = made.directory / "tensor_dump" / "tensor_dump.bin"
        payload = bytearray(path.read_bytes())
        offset = [e for e in made.dump.manifest()["tensors"] if e["task_seq"] == damaged][0]["bin_offset"]
        payload[offset + 4 * 2] ^= 1  # of element 2
        path.write_bytes(payload)
        return audit(made.directory, code)

    for name, damaged, no_bytes, compared in (("owner_damaged", 0, 2, 0), ("reader_damaged", 1, 1, 1)):
        got = recorded(name, damaged, 0)
        check(name, (got["findings"], got["damaged"], got["not_audited"]["no_bytes"], got["compared"]), ([], 1, no_bytes, compared))
        check(f"{name}: text", audit_text(root / name, 0)[0],
              f"no findings, but {no_bytes} of 3 entries of 3 tasks could not be audited")
    got = recorded("damaged_and_changed", 1, 1)
    check("damaged and changed", [(each["first"]["task_seq"], each["second"]["task_seq"], each["element"]) for each in got["findings"]],
          [(0, 2, {"index": [6], "dtype": "float32", "expected": 7.0, "found": 0.5})])
    check("damaged and changed: counts", (got["damaged"], got["not_audited"]["no_bytes"]), (1, 1))


def test_order(root):
    """Edges order tasks if the clock does not, but only if the dump has all edges."""
    data = np.zeros(4, np.float32).tobytes()

    def pair(name, code, *, time, runtime="host_build_graph", has_edge=False, has_loss=False, is_inout=False):
        """Task 0 writes from 10 to 15, task 1 reads at `time`."""
        made = Recorded(root / name, runtime=runtime)
        made.begin(0)
        made.write(0, 1, "float32", (4,), data, 0x1000)
        made.done(0)
        made.time = time - 10
        made.begin(1)
        made.read(1, 0, "float32", (2,), data[:8], 0x1004, role=2 if is_inout else 0)
        if is_inout:
            made.dump.tensor(1, 0, "float32", (2,), data[:8], address=0x1004, time=made.time + 5, role=2, stage=1)
        made.done(1)
        if has_edge:
            made.edges(1, 0)
        if has_loss:
            made.dump.loss(1, 0, 0, 0, 1)
        got = made.finish(code)["findings"]
        return [(each["kind"], each["first"]["task_seq"], each["second"]["task_seq"], each["range"]["begin"],
                 each["range"]["end"], each["concurrent"], each["no_path"]) for each in got]

    early = ("read_too_early", 0, 1, 0, 8)
    check("no edge, later", pair("no_edge", 1, time=30), [(*early, False, True)])
    check("no edge, at the same time", pair("no_edge_same", 1, time=12), [(*early, True, True)])
    check("an edge", pair("edge", 0, time=30, has_edge=True), [])
    check("an edge, at its end", pair("edge_end", 0, time=15, has_edge=True), [])
    check("edges may be lost", pair("lost_edge", 0, time=30, has_loss=True), [])
    check("derived edges, later", pair("derived", 0, time=15, runtime="tensormap_and_ringbuffer"), [])
    check("derived edges, at the same time", pair("derived_same", 1, time=14, runtime="tensormap_and_ringbuffer"),
          [(*early, True, False)])
    check("an inout is reported once", pair("inout", 1, time=12, is_inout=True), [(*early, True, True)])
    for name, times, sentence in (("before", (10, 30), "this time it was read before that was written"),
                                  ("after", (30, 10), "this time it was read after that had been written"),
                                  ("meanwhile", (10, 12), "unclear whether it read the old bytes")):
        made = Recorded(root / f"read_{name}", runtime="host_build_graph")
        for task, use in enumerate((made.read, made.write)):
            made.time = times[task] - 10
            made.begin(task)
            use(task, task, "float32", (4,), data, 0x1000)
            made.done(task)
        made.finish(1)
        check(f"an input that has to be read first, read {name}", audit_text(root / f"read_{name}", 1)[3], f"  {sentence}")


# --- random memories ---


def test_random_memory(root):
    """Tasks one after the other, with views of all kinds into one memory in which bytes change by themselves."""
    found_in_all = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        memory, made, numbers = Memory(rng), Recorded(root / f"random_{seed}"), {}
        for task in range(60):
            made.begin(task)
            for arg in range(int(rng.integers(0, 3))):
                view = random_view(rng)
                numbers[task, BEFORE, arg] = len(memory.views)
                made.read(task, arg, view[0], view[1], memory.read(view), view[4], strides=view[2], start=view[3])
            for arg in range(2, 2 + int(rng.integers(0, 2))):
                view = random_view(rng)
                numbers[task, AFTER, arg] = len(memory.views)
                made.write(task, arg, view[0], view[1], memory.write(view, rng), view[4], strides=view[2], start=view[3])
            made.done(task)
            if seed and rng.random() < 0.4:
                at = rng.integers(0, 1024, rng.integers(1, 5))
                memory.bytes[at] ^= np.uint8(1 << rng.integers(0, 8))
        got = made.finish(1 if memory.expected else 0)
        result = []
        for each in got["findings"]:
            sides = [numbers[each[key]["task_seq"], each[key]["stage"], each[key]["arg_index"]] for key in ("first", "second")]
            element = each["element"]
            values = [np.dtype(element["dtype"]).type(float(element[key])) for key in ("expected", "found")]
            begin = int(each["range"]["address"], 16)
            result.append((*sides, begin, begin + each["range"]["bytes"], element["index"], *values))
        in_order = sorted(memory.expected, key=str), sorted(result, key=str)
        check(f"random memory {seed}", str(in_order[1]), str(in_order[0]))
        check(f"random memory {seed}: all inputs", got["compared"] + got["first_reads"], got["inputs"])
        check(f"random memory {seed}: outputs, and unread outputs", (got["outputs"], got["unread_outputs"]),
              (memory.writes, memory.writes - len(memory.read_writers)))
        found_in_all += len(result)
    check("random memory: there was something to find", found_in_all > 100, True)


# --- random graphs ---


def write_tasks(tasks, directory, runtime):
    made = Recorded(directory, runtime=runtime)
    for task, (begin, end) in enumerate(tasks.times):
        made.dump.task(task, (None, 0, None), time=begin)
        for each in tasks.arguments[task]:
            name, shape, strides, start, base = each.view
            for stage, data, time in ((0, each.saw, begin), (1, each.left, end)):
                if data is not None:
                    made.dump.tensor(task, each.number, name, shape, data, address=base, strides=strides, start=start,
                                     role=each.role, stage=stage, time=time)
        made.dump.records.append(record(DONE, task, 1, arg=NONE, time=end))
        made.edges(task, *[a for a, b in tasks.edges if b == task])
    return made


def found_pair(finding):
    """A finding in the form of expected_pair(), with its two arguments as its key."""
    element = finding["element"]
    if element:
        kind = np.dtype(element["dtype"]).type
        element = (element["index"], *(str(kind(float(element[key]))) for key in ("expected", "found")))
    begin = int(finding["range"]["address"], 16)
    sides = [(finding[side]["task_seq"], finding[side]["arg_index"]) for side in ("first", "second")]
    for side in ("first", "second"):
        check("random tasks: range of a side", (finding[side]["begin"], finding[side]["end"]),
              tuple(at - int(finding[side]["buffer_addr"], 16) for at in (begin, begin + finding["range"]["bytes"])))
    return tuple(sorted(sides)), (finding["kind"], finding["read_first"], begin, begin + finding["range"]["bytes"], element)


def check_tasks(what, tasks, got, has_edges):
    count = len(tasks.times)
    paths = all_paths(count, tasks.edges)
    found = dict(found_pair(finding) for finding in got["findings"])
    how = {found_pair(finding)[0]: [finding[key] for key in ("concurrent", "no_path", "read_late")] for finding in got["findings"]}
    check(f"{what}: each pair once", len(found), len(got["findings"]))
    expected, expected_how, named = {}, {}, set()
    for a, first, b, second in tasks.conflicts():
        key = (a, first.number), (b, second.number)
        has_no_path = has_edges and not paths[a, b]
        if tasks.do_overlap(a, b) or (has_no_path and key in found):
            is_read_late = first.role == 0 and tasks.times[b][1] <= tasks.times[a][0]
            expected[key], expected_how[key] = expected_pair(a, first, b, second), [tasks.do_overlap(a, b), has_no_path, is_read_late]
        if key in found and has_no_path:
            named.add((a, b))
    check(f"{what}: pairs", found, expected)
    check(f"{what}: how", how, expected_how)
    closed = all_paths(count, tasks.edges | named)
    left = [(a, b) for a, _, b, _ in tasks.conflicts() if has_edges and not closed[a, b]]
    check(f"{what}: the named edges order all tasks", left, [])
    check(f"{what}: inputs", (got["compared"] + got["first_reads"], got["raced"]), (got["inputs"], 0))
    return len(found)


def test_random_tasks(root):
    """Unordered pairs: all that overlapped in time, and of those without a path one for each missing edge."""
    found_in_all = 0
    for seed in range(16):
        rng = np.random.default_rng(1000 + seed)
        tasks, has_edges = Tasks(rng, 12), seed % 4 != 0
        made = write_tasks(tasks, root / f"tasks_{seed}", "host_build_graph" if has_edges else "tensormap_and_ringbuffer")
        made.dump.end()
        made.dump.write()
        result = glassbox("audit", made.directory, "--json")
        found_in_all += check_tasks(f"random tasks {seed}", tasks, json.loads(result.stdout), has_edges)
        check(f"random tasks {seed}: exit code", result.returncode, 1 if json.loads(result.stdout)["findings"] else 0)
    check("random tasks: there was something to find", found_in_all > 200, True)


def both_write(root, name, views):
    """Two tasks write a view each, of zeros and of ones, at the same time."""
    made = Recorded(root / name)
    for task, (shape, strides, start) in enumerate(views):
        made.dump.task(task, (None, 0, None), time=10 + task)
        made.dump.tensor(task, 0, "uint8", shape, bytes([task]) * int(np.prod(shape)), address=0x1000, strides=strides,
                         start=start, role=1, stage=1, time=20 + task)
        made.dump.records.append(record(DONE, task, 1, arg=NONE, time=20 + task))
    made.dump.end()
    made.dump.write()
    return glassbox("audit", made.directory, "--json")


def test_views_between_views(root):
    """Interleaved views share no bytes, even if that is hard to compute."""
    columns = [((16, 4), (16, 4), 0), ((16, 4), (16, 4), 1)]
    check("columns", both_write(root, "columns", columns).returncode, 0)
    # The last element of one is the first of the other.
    found = json.loads(both_write(root, "one_byte", [columns[0], ((16, 4), (16, 4), 252)]).stdout)["findings"]
    check("one byte", [(each["kind"], each["range"]["begin"], each["range"]["bytes"], each["element"]) for each in found],
          [("overlapping_writes", 252, 1, {"index": [0, 0], "dtype": "uint8", "expected": 0, "found": 1})])
    shared = set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = [((2,) * 8, tuple(map(int, rng.integers(20000, 30000, 8))), int(start)) for start in rng.integers(0, 999, 2)]
        do_share = np.intersect1d(*(place(("uint8", *view, 0)) for view in views)).size > 0
        check(f"sums {seed}", both_write(root, f"sums_{seed}", views).returncode, int(do_share))
        shared.add(do_share)
    check("sums: both kinds", shared, {False, True})


def test_many_findings(root):
    """More than are listed: 448 tasks that all write the same bytes at the same time are 100,128 pairs."""
    made = Recorded(root / "many")
    for task in range(448):
        made.dump.task(task, (None, 0, None), time=10)
        made.dump.tensor(task, 0, "uint8", (1,), bytes([task % 256]), address=0x1000, role=1, stage=1, time=20)
        made.dump.records.append(record(DONE, task, 1, arg=NONE, time=20))
    made.dump.end()
    made.dump.write()
    text = audit_text(root / "many", 1)
    check("many: first line", text[0], "more than 100,000 findings in 448 entries of 448 tasks; the first:")
    check("many: the first", text[1:4],
          ["overlapping writes: argument 0 a of task 0 (k) and argument 0 a of task 1 (k) were written at the same time",
           "  within 1 byte at 0x1000: byte 0 of the buffer of argument 0 a of task 1",
           "  first element that differs: [0], task 0 left 0, task 1 1"])
    check("many: the rest", text[61], "and 99,980 more overlapping writes (--json has these)")


# --- dumps without a journal, and what cannot be audited ---


def audit_manifest(made, code):
    """Removes the journal, which dumps of other tools do not have."""
    made.dump.end()
    made.dump.write()
    inner = made.directory / "tensor_dump"
    (inner / "tensor_dump.json").write_text(json.dumps(made.dump.manifest()))
    (inner / "tensor_dump.rec").unlink()
    return audit(made.directory, code)


def test_manifest_only(root):
    """A dump of another tool has no journal: times are those of the records."""
    old, new = np.zeros(4, np.float32), np.ones(4, np.float32)
    for name, value, code in (("right", new, 0), ("wrong", old, 1), ("raced", old, 1)):
        made = Recorded(root / f"manifest_{name}")
        made.begin(0)
        made.read(0, 0, "float32", (4,), old.tobytes(), 0x2000)
        made.write(0, 1, "float32", (4,), new.tobytes(), 0x1000)
        made.done(0)
        made.time -= 7 if name == "raced" else 0
        made.begin(1)
        made.read(1, 0, "float32", (4,), value.tobytes(), 0x1000)
        made.write(1, 1, "float32", (4,), new.tobytes(), 0x3000)
        made.done(1)
        got = audit_manifest(made, code)
        check(f"manifest only, {name}", [(each["kind"], each["concurrent"]) for each in got["findings"]],
              {"right": [], "wrong": [("undeclared_write", False)],
               "raced": [("read_too_early", True)]}[name])
    for name, has_task, has_output, missing in (("complete", True, True, 0), ("no_output", True, False, 1), ("no_task", False, False, None)):
        made = Recorded(root / f"filtered_{name}")
        made.begin(0)
        made.write(0, 1, "float32", (4,), old.tobytes(), 0x1000)
        made.done(0)
        if has_task:
            made.begin(1)
            made.read(1, 0, "float32", (4,), old.tobytes(), 0x2000)
            if has_output:
                made.write(1, 1, "float32", (4,), new.tobytes(), 0x1000)
            made.done(1)
        made.time = 50
        made.begin(2)
        made.read(2, 0, "float32", (4,), new.tobytes(), 0x1000)
        made.write(2, 1, "float32", (4,), new.tobytes(), 0x3000)
        made.done(2)
        got = audit_manifest(made, 0)
        check(f"manifest only, without filters, {name}",
              (got["findings"], got["not_audited"]["missing_outputs"], got["tasks_missing_outputs"]), ([], missing != 0, missing))


def test_refused(root):
    """A dump that cannot be audited is not a success."""
    result = glassbox("audit", root / "nowhere")
    check("no dump: exit code", (result.returncode, result.stdout), (2, ""))
    check("no tensors", (Recorded(root / "nothing").finish(1)["records"], audit_text(root / "nothing", 1)[0]),
          (0, "nothing was audited: the dump has no tensors of completed tasks"))
    check("two dumps: exit code", glassbox("audit", root, root).returncode, 2)
    other = root / "other" / "tensor_dump"
    other.mkdir(parents=True)
    (other / "tensor_dump.json").write_text(json.dumps(
        {"bin_file": "tensor_dump.bin", "tensors": [{"task_id": "0x1", "func_id": 0, "arg_index": 0, "role": "input", "stage": "before_dispatch",
                      "dtype": "float32", "shape": [1], "bin_offset": 0, "bin_size": 4}]}))
    (other / "tensor_dump.bin").write_bytes(bytes(4))
    result = glassbox("audit", root / "other")
    check("no addresses: exit code and output", (result.returncode, result.stdout), (2, ""))
    check("no addresses: why", "its records lack addresses or times, which an audit needs" in result.stderr, True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for test in (test_parts_of_tensors, test_same_bytes, test_what_is_missing, test_damage, test_order, test_random_memory,
                     test_random_tasks, test_views_between_views, test_many_findings, test_manifest_only, test_refused):
            test(root)
    return report()


if __name__ == "__main__":
    sys.exit(main())
