#!/usr/bin/python3
"""glassbox diff of dumps made by hand: verdicts, metrics, causes and the first difference, all compared with numpy.

usage: diff_test.py GLASSBOX

Expected results come only from the encoder (dump_encoder.py) and the payload (diff_support.py).
"""
import json
import math
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

from command_support import ENVIRONMENT, GLASSBOX, check, glassbox, report
from diff_support import TOLERANCES, Source, check_diff, diff, first_lines
from dump_encoder import DTYPES, EDGES, IN_FLIGHT, NONE, PACKED, Dump, record
from view_support import decode, element_bytes

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler"


# --- dumps made by hand ---

KERNELS = [{"func_id": 0, "name": "add", "core_type": "aiv", "signature": ["in", "out", "scalar:float32"],
            "arg_names": ["x", "y", "s"]},
           {"func_id": 1, "name": "mul", "core_type": "aiv", "signature": ["in", "out"]}]


def make(root, name, kernels=KERNELS, level="full"):
    return Dump(root / name, kernels, level)


def finish(dump, is_whole=True, *end):
    dump.end(*end)
    return Source.of_encoder(dump.write(), is_whole)


def pack_int4(values, shape):
    rows = np.asarray(values, np.int64).reshape(-1, shape[-1]) & 15
    if shape[-1] % 2:
        rows = np.concatenate([rows, np.full((len(rows), 1), 9)], axis=1)
    return (rows[:, 0::2] | rows[:, 1::2] << 4).astype(np.uint8).tobytes()


def random_bytes(rng, name, shape):
    if name in PACKED:
        return pack_int4(rng.integers(-8, 8, int(np.prod(shape))), shape)
    data = rng.integers(0, 256, int(np.prod(shape)) * element_bytes(name), dtype=np.uint8)
    return (data % 2 if name == "bool" else data).tobytes()


def nudge(rng, name, data, share, bits):
    """Changes the low bits of some elements."""
    if name in PACKED:
        codes = np.frombuffer(data, np.uint8).copy()
        codes[rng.random(len(codes)) < share] ^= 1
        return codes.tobytes()
    codes = np.frombuffer(data, f"u{element_bytes(name)}").copy()
    is_hit = rng.random(len(codes)) < share
    codes[is_hit] ^= np.asarray(rng.integers(0, 1 if name == "bool" else bits, len(codes)) + 1, codes.dtype)[is_hit]
    if name == "bool":
        codes &= 1
    return codes.tobytes()


def test_dtypes(root):
    rng = np.random.default_rng(7)
    a, b = make(root, "dtypes_a"), make(root, "dtypes_b")
    for task, name in enumerate(DTYPES[1:]):
        for dump in (a, b):
            dump.task(task, (None, 0, None))
        for arg, (shape, share, bits) in enumerate((([7, 33], 0, 1), ([5, 41], 0.02, 1), ([3, 2, 9], 0.5, 3),
                                                    ([4000], 0.001, 3), ([1], 1, 1), ([0, 4], 0, 1))):
            data = random_bytes(rng, name, shape)
            a.tensor(task, arg, name, shape, data, stage=arg % 2, role=arg % 2)
            b.tensor(task, arg, name, shape, nudge(rng, name, data, share, bits), stage=arg % 2, role=arg % 2)
        for arg in range(32, 36):
            word = int(rng.integers(0, 2**63)) if name != "bool" else 1
            for dump, other in ((a, word), (b, word ^ (arg % 2 and 1) ^ (1 << 63 if arg == 34 and name != "none" else 0))):
                dump.scalar(task, arg, name, other, None)
    a, b = finish(a), finish(b)
    check_diff("every dtype", a, b)
    check_diff("every dtype with itself", a, a)
    check_diff("every dtype, strict NaN", a, b, "--strict-nan", options={"strict": True})
    check_diff("every dtype with itself, strict NaN", a, a, "--strict-nan", options={"strict": True})
    check_diff("every dtype, steps", a, b, "--ulp", "1", options={"ulp": 1})
    check_diff("every dtype, absolute", a, b, "--atol", "2", options={"atol": 2.0})
    check_diff("every dtype, all", a, b, "--atol", "0.5", "--rtol", "0.01", "--ulp", "2", "--strict-nan",
               options={"atol": 0.5, "rtol": 0.01, "ulp": 2, "strict": True})
    check_diff("one dtype", a, b, "--dtype", "int4", is_selected=lambda e: e["dtype"] == "int4")


def test_pieces(root):
    """Tensors that are read or mapped in several pieces; rows of int4 cross the ends of pieces."""
    rng = np.random.default_rng(8)
    a, b = make(root, "pieces_a"), make(root, "pieces_b")
    for task, (name, shape) in enumerate((("float32", [3, 30001]), ("int4", [1300, 205]), ("int4", [2, 270001]),
                                          ("int4", [1300, 206]), ("bfloat16", [70001]), ("float64", [20000]),
                                          ("float32", [550, 1001]), ("int4", [3000, 1501]), ("uint8", [2500001]))):
        data = random_bytes(rng, name, shape)
        last = bytearray(data)
        last[-1 if name == "int4" else -element_bytes(name)] ^= 1  # only one bit of the last element
        for dump, *stored in ((a, data, data), (b, nudge(rng, name, data, 0.01, 2), bytes(last))):
            dump.task(task, (None, 0, None))
            for arg, elements in enumerate(stored):
                dump.tensor(task, arg, name, shape, elements, stage=1, role=1)
    check_diff("pieces", finish(a), finish(b))


def floats(*values):
    return np.array(values, np.float32).tobytes()


def last_code_within(name, limit):
    """The bits of the largest number of the dtype that is not greater."""
    low, high = 0, 1 << (8 * element_bytes(name) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        is_within = decode(name, middle.to_bytes(element_bytes(name), "little"))[0] <= limit
        low, high = (middle, high) if is_within else (low, middle)
    return low


def test_tolerances(root):
    """A value exactly at the tolerance is near; the next number is not."""
    a, b = make(root, "defaults_a"), make(root, "defaults_b")
    tested = {name: atol for name, (_, atol) in TOLERANCES.items() if name not in PACKED}  # 0.5 is the first after 0 there
    for task, (name, atol) in enumerate(tested.items()):
        width = element_bytes(name)
        for dump in (a, b):
            dump.task(task, (None, 0, None))
            for arg in (0, 1):
                code = last_code_within(name, atol) + arg if dump is a else 0
                dump.tensor(task, arg, name, [1], code.to_bytes(width, "little"), stage=1, role=1)
    got = check_diff("defaults", finish(a), finish(b))
    check("defaults: verdicts", [r["verdict"] for r in got["records"]], ["within", "different"] * len(tested))
    a, b = make(root, "given_a"), make(root, "given_b")
    for dump, value in ((a, 1.25), (b, 1.0)):
        dump.task(0, (None, 0, None))
        dump.tensor(0, 1, "float32", [2], floats(value, math.inf), stage=1, role=1)
    a, b = finish(a), finish(b)
    for is_near, options in ((True, {"atol": "0.25"}), (True, {"atol": "0x1p-2"}), (False, {"atol": "0.24999999999999997"}),
                             (True, {"rtol": "0.25"}), (False, {"rtol": "0.24999999999999997"}), (True, {"ulp": "2097152"}),
                             (False, {"ulp": "2097151"}), (False, {"atol": "0"}), (False, {"atol": "-0"}), (False, {"ulp": "0"}),
                             (True, {"atol": "1e308", "rtol": "1e308"}), (True, {"ulp": "18446744073709551614"}),
                             (True, {"atol": "0.125", "rtol": "0.125"}), (False, {"atol": "1e-400"})):
        given = {key: int(text) if key == "ulp" else float.fromhex(text) if "x" in text else float(text)
                 for key, text in options.items()}
        got = check_diff(f"given {options}", a, b, *[word for key in options for word in (f"--{key}", options[key])], options=given)
        check(f"given {options}: near", got["within"] == 1, is_near)
    check("near: lines", [line.split() for line in first_lines(a.directory, b.directory, "--atol", "1", count=3)], [
        "equal within tolerance: 1 entry compared, 0 equal, 1 near".split(),
        "TASK KERNEL STAGE ARG DTYPE SHAPE BAD MAX_ABS MAX_REL MAX_ULP RMSE COSINE NOTE".split(),
        "0 add after 1 y float32 [2] 0/2 0.25 0.25 2097152 0.25 1 1 near".split()])


def test_nan(root):
    a, b = make(root, "nan_a"), make(root, "nan_b")
    nan, inf = math.nan, math.inf
    cases = [((1, nan, 3), (1, nan, 3)), ((1, nan), (1, 2)), ((inf, -inf), (inf, inf)), ((0.0, 1), (-0.0, 1)), ((inf, 1), (1, 1)),
             ((nan,), (nan,)), ((3e38,), (-3e38,)), ((0, 0), (0, 0)), ((0, 0), (1, 2))]
    for task, (left, right) in enumerate(cases):
        for dump, values in ((a, left), (b, right)):
            dump.task(task, (None, 0, None))
            dump.tensor(task, 1, "float32", [len(values)], floats(*values), stage=1, role=1, is_hashed=task != 5)
    a, b = finish(a), finish(b)
    plain = check_diff("NaN", a, b)
    check("NaN: verdicts", [r["task_seq"] for r in plain["records"]], [1, 2, 4, 6, 8])
    strict = check_diff("strict NaN", a, b, "--strict-nan", options={"strict": True})
    check("strict NaN: equal hashes do not hide NaN", [r["task_seq"] for r in strict["records"]], [0, 1, 2, 4, 5, 6, 8])


def test_causes(root):
    """One task for each cause; if nothing is known, nothing is claimed."""
    x, y, z = floats(1, 2), floats(1, 3), floats(5, 6)
    near = floats(1, 2.000001)

    def dumps(name, tasks, level="full"):
        made = make(root, f"{name}_a", level=level), make(root, f"{name}_b", level=level)
        for task, records in enumerate(tasks):
            for side, dump in enumerate(made):
                dump.task(task, (None, 0, None))
                for arg, (stage, data, address) in records.items():
                    if data[side] is not None:
                        dump.tensor(task, arg, "float32", [2], data[side], stage=stage, role=stage, address=address)
        return [finish(dump, level == "full") for dump in made]

    def why(pair):
        got = check_diff(pair[0].directory.name, *pair)
        return got["first"]["cause"], got["first"]["why"]

    introduced = dumps("introduced", [{0: (0, (x, x), 0x1000), 1: (1, (y, z), 0x2000)}, {0: (0, (y, z), 0x2000)}])
    check("introduced", why(introduced), ("introduced", "introduced here (its inputs are equal)"))
    check("introduced, near", why(dumps("near", [{0: (0, (x, near), 0x1000), 1: (1, (y, z), 0x2000)}])),
          ("introduced", "introduced here (its inputs are equal within tolerance)"))
    check("no inputs", why(dumps("no_inputs", [{1: (1, (y, z), 0x2000)}])),
          ("introduced", "introduced here (the task has no inputs)"))
    argument = dumps("argument", [{0: (0, (x, x), 0x1000), 1: (1, (x, x), 0x2000)}, {0: (0, (y, z), 0x3000), 1: (1, (y, y), 0x4000)}])
    check("an argument of the run", why(argument),
          ("inherited", "no task in the dump wrote it: the arguments of the run differ"))
    check("an argument of the run: first line", first_lines(argument[0].directory, argument[1].directory), [
        "first difference: task 1, kernel add, arg 0 x, before_dispatch: no task in the dump wrote it: the arguments of the "
        "run differ"])
    check("changed on the way", why(dumps("changed", [{1: (1, (x, x), 0x1000)}, {0: (0, (y, z), 0x1000)}])), (
        "inherited", "it changed after its last writer, task 0, kernel add, arg 1 y, left it equal: run glassbox audit"))
    # Task 2 reads a tensor that was written in two parts; the last part is equal.
    part = dumps("part", [{1: (1, (y, z), 0x1008)}, {1: (1, (x, x), 0x1000)}, {0: (0, (y, z), 0x1004)}])
    got = check_diff("a part", *part, "--stage", "before", is_selected=lambda e: e["stage"] == "before_dispatch")
    check("a part", got["first"]["why"],
          "its last writer, task 1, kernel add, arg 1 y, may have written only a part of it, and left that equal")
    check("an input in only one dump", why(dumps("alone", [{0: (0, (x, None), 0x1000), 1: (1, (y, z), 0x2000)}])), (
        None, "unclear whether introduced or inherited: its input arg 0 x was not compared"))
    check("an input that may be missing", why(dumps("partial", [{1: (1, (y, z), 0x2000)}], "partial")), (
        None, "unclear whether introduced or inherited: the dumps may lack some of its inputs"))
    scalar = [make(root, "scalar_a"), make(root, "scalar_b")]
    for dump, value in zip(scalar, (0x3F800000, 0x40000000)):
        dump.task(0, (None, 0, None))
        dump.scalar(0, 2, "float32", value, None)
        dump.tensor(0, 1, "float32", [2], floats(value, 0), stage=1, role=1)
    scalar = [finish(dump) for dump in scalar]
    check("a scalar", why(scalar), ("inherited", "the orchestration passed another value"))
    lines = first_lines(scalar[0].directory, scalar[1].directory, count=4)
    check("a scalar: lines", (lines[1], lines[3].split("  ")[-1].strip()), ("  1.0 in A, 2.0 in B", "input, 1.0 in A, 2.0 in B"))


def test_writers(root):
    """Who wrote an input that differs is looked up in both dumps: tasks are given as {arg: (stage, data, address)} a side."""
    x, y, z = floats(1, 2), floats(1, 3), floats(5, 6)

    def why(name, tasks, *options, strip=()):
        made = make(root, f"{name}_a"), make(root, f"{name}_b")
        for task, sides in enumerate(tasks):
            for dump, (func, records) in zip(made, sides):
                if records:
                    dump.task(task, (None, func, None))
                for arg, (stage, data, address) in records.items():
                    dump.tensor(task, arg, "float32", [2], data, stage=stage, role=stage, address=address)
        directories = [finish(dump).directory for dump in made]
        for side in strip:  # like another tool's, without addresses
            directories[side] = without_addresses(directories[side])
        first = diff(*directories, *options, code=1)["first"]
        return first["cause"], first["why"]

    def both(func, records_a, records_b=None):
        return (func, records_a), (func, records_b or records_a)

    read = both(0, {0: (0, y, 0x1000)}, {0: (0, z, 0x1000)})
    left = both(0, {1: (1, x, 0x1000)})
    more = (0, {}), (1, {1: (1, z, 0x1000)})
    check("a writer only in B", why("writer_b", [more, read]), (
        "inherited", "inherited: last written by no task in A and by task 0, kernel mul, arg 1 in B"))
    check("a writer only in A", why("writer_a", [more[::-1], read]), (
        "inherited", "inherited: last written by task 0, kernel mul, arg 1 in A and by no task in B"))
    check("one more writer in B", why("more_b", [left, more, read]), (
        "inherited", "inherited: last written by task 0, kernel add, arg 1 y in A and by task 1, kernel mul, arg 1 in B"))
    check("another writer", why("other_kernel", [left, ((0, {1: (1, y, 0x1000)}), (1, {1: (1, z, 0x1000)})), read]), (
        "inherited", "inherited: last written by task 1, kernel add, arg 1 y in A and by task 1, kernel mul, arg 1 in B"))
    written = both(0, {1: (1, y, 0x1000)}, {1: (1, z, 0x1000)})
    for strip in ((), (0,), (1,)):  # one dump with addresses is enough
        check(f"hidden by filters, no addresses in {strip}", why(f"strip{strip}", [written, read], "--stage", "before", strip=strip), (
            "inherited", "inherited from task 0, kernel add, arg 1 y, which the filters exclude"))
    check("no addresses", why("no_addresses", [written, read], "--stage", "before", strip=(0, 1)), (
        "inherited", "inherited: the dumps do not say which task wrote it"))


def without_addresses(directory):
    """The same dump as a manifest without addresses."""
    other = directory.with_name(directory.name + "_bare")
    check("export", glassbox("export", directory, "--format", "simpler", "-o", other).returncode, 0)
    manifest = next(other.glob("**/*.json"))
    document = json.loads(manifest.read_text())
    for entry in document["args" if "args" in document else "tensors"]:
        entry.pop("buffer_addr", None)
    manifest.write_text(json.dumps(document))
    return other


def test_order(root):
    """Task 0 waits for task 1: the first in graph order is task 1."""
    made = make(root, "order_a"), make(root, "order_b")
    for side, dump in enumerate(made):
        for task in (0, 1, 2):
            dump.task(task, (None, 0, None))
            dump.tensor(task, 1, "float32", [1], floats(task + side), stage=1, role=1)
        if side == 0:
            dump.records.append(record(EDGES, 0, NONE, arg=NONE, body=struct.pack("<Q", 1)))
    a, b = [finish(dump) for dump in made]
    check_diff("order of A's edges", a, b, order=[1, 0, 2])
    check_diff("order of B's edges", b, a, order=[1, 0, 2])
    # A has only a record of task 1, which waits for task 2.
    made = make(root, "bare_a"), make(root, "bare_b")
    for side, dump in enumerate(made):
        for task in (0, 1, 2):
            dump.task(task, (None, 0, None))
            if side or task == 1:
                dump.tensor(task, 1, "float32", [1], floats(task + side), stage=1, role=1)
    made[0].records.append(record(EDGES, 1, NONE, arg=NONE, body=struct.pack("<Q", 2)))
    check_diff("order of tasks without records", *[finish(dump) for dump in made], order=[0, 2, 1])


def test_graphs(root):
    made = make(root, "graphs_a"), make(root, "graphs_b")
    for side, dump in enumerate(made):
        for task in range(4 + side):
            func = 1 if side and task == 2 else 0
            dump.task(task, (None, func, None))
            dump.tensor(task, 0, "float32", [2], floats(task, 1), address=0x1000)
            dump.tensor(task, 1, "float32", [2], floats(task, 2 + (side and task == 3)), stage=1, role=1)
    a, b = [finish(dump) for dump in made]
    got = check_diff("other kernels", a, b)
    check("other kernels: sentence", got["graphs_differ"], "the graphs differ from task 2 on: it is kernel add in A and mul in B")
    check("other kernels: lines", first_lines(a.directory, b.directory, count=2), [
        "the graphs differ from task 2 on: it is kernel add in A and mul in B",
        "first difference: task 3, kernel add, arg 1 y, after_completion: introduced here (its inputs are equal)"])
    longer = check_diff("a task more", a, b, "--task", "4", is_selected=lambda e: e["task_seq"] == 4)
    check("a task more", longer["graphs_differ"], "the graphs differ from task 4 on: it is only in B, kernel add")
    forms = make(root, "forms_a"), make(root, "forms_b")
    for side, dump in enumerate(forms):
        dump.task(0, (0, None, 1))
        dump.tensor(0, 0, ("float32", "int32")[side], [2], floats(1, 2))
        dump.tensor(0, 1, "float32", ([2, 3], [3, 2])[side], floats(*range(6)))
        if side:
            dump.scalar(0, 2, "float32", 0, None)
        else:
            dump.tensor(0, 2, "float32", [], floats(0))
        for i in range(3 - side):  # the same argument several times: in order
            dump.tensor(0, 3, "float32", [1], floats(i * (1 + side)))
    a, b = [finish(dump) for dump in forms]
    got = check_diff("other forms", a, b)
    check("other forms: why", got["first"]["why"], "the orchestration passed another kind, dtype or shape")
    notes = [line[line.find("input"):] for line in first_lines(a.directory, b.directory, count=5)[3:]]
    check("other forms: notes", notes, ["input, dtype float32 in A, int32 in B", "input, shape [2, 3] in A, [3, 2] in B"])


def corrupt(source):
    """The same records over other bytes."""
    path = source.directory / "tensor_dump" / "tensor_dump.bin"
    path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))


def test_hashes(root):
    """Equal hashes are not read: bytes that differ under them are not seen; without hashes they are."""
    for is_hashed in (True, False):
        made = make(root, f"hashes_a{is_hashed}"), make(root, f"hashes_b{is_hashed}")
        for dump in made:
            dump.task(0, (None, 0, None))
            for arg in range(3):
                dump.tensor(0, arg, "float32", [64], floats(*range(arg, arg + 64)), is_hashed=is_hashed)
        a, b = [finish(dump) for dump in made]
        corrupt(b)
        got = diff(a.directory, b.directory, code=0 if is_hashed else 1)
        check(f"hashes {is_hashed}", (got["equal"], got["different"], got["equal_by_hash"], got["bytes_read"]),
              (3, 0, 3, 0) if is_hashed else (0, 3, 0, 768))


def test_truncated(root):
    made = make(root, "truncated_a"), make(root, "truncated_b")
    data = np.arange(30, dtype=np.float32)
    other = data.copy()
    other[7] += 1
    for side, dump in enumerate(made):
        dump.task(0, (None, 0, None))
        dump.tensor(0, 0, "float32", [30], data.tobytes(), keep=(50, 26)[side])  # 12 and 6 complete elements
        dump.tensor(0, 1, "float32", [30], (data, other)[side].tobytes(), keep=(None, 40)[side])
        dump.tensor(0, 2, "float32", [30], data.tobytes(), keep=(3, None)[side])
        dump.tensor(0, 3, "float32", [30], data.tobytes(), keep=44)
        dump.tensor(0, 4, "int4", [5, 3], pack_int4(np.arange(15) + side * (np.arange(15) == 9), [5, 3]), keep=(7, 9)[side])
        dump.tensor(0, 5, "int4", [5, 3], pack_int4(np.arange(15) + side * (np.arange(15) == 12), [5, 3]), keep=(8, 9)[side])
    got = check_diff("truncated", *[finish(dump) for dump in made])
    check("truncated: counted", (got["truncated"], got["not_compared"]), (5, 1))
    check("truncated: first line", first_lines(root / "truncated_a", root / "truncated_b", "--arg", "2..3"), [
        "equal: 1 entry compared, all the same; only the beginning of 1; 1 not compared"])


def test_truncated_inputs(root):
    """A tensor of which only the beginning is known is not equal."""
    data = np.arange(8)
    made = make(root, "beginning_a"), make(root, "beginning_b")
    for side, dump in enumerate(made):
        dump.task(0, (None, 0, None))
        dump.tensor(0, 0, "float32", [8], floats(*data + side * (data > 3)), keep=8)
        dump.tensor(0, 1, "float32", [8], floats(*data + side), stage=1, role=1)
    first = check_diff("an input's beginning", *[finish(dump) for dump in made])["first"]
    check("an input's beginning: why", (first["cause"], first["why"]), (
        None, "unclear whether introduced or inherited: only the beginning of its input arg 0 x was compared"))
    made = make(root, "writer_beginning_a"), make(root, "writer_beginning_b")
    for side, dump in enumerate(made):
        written = floats(*data + side * (data > 3))
        for task in (0, 1):
            dump.task(task, (None, 0, None))
        dump.tensor(0, 1, "float32", [8], written, stage=1, role=1, address=0x1000, keep=8)
        dump.tensor(1, 0, "float32", [4], written[16:], address=0x1010)
    first = check_diff("a writer's beginning", *[finish(dump) for dump in made])["first"]
    check("a writer's beginning: why", (first["cause"], first["why"]), (
        "inherited", "its last writer, task 0, kernel add, arg 1 y, was not compared completely"))


def test_ended_early(root):
    """A run that ended early does not count as a different graph."""
    for name, end, words in (("failed", ("kernel add crashed", True), "the run of A failed"),
                             ("lost", ("done, but records were lost", False), "A is not complete")):
        made = make(root, f"{name}_a"), make(root, f"{name}_b")
        for side, dump in enumerate(made):
            for task in range(1 + side):
                dump.task(task, (None, 0, None))
                dump.tensor(task, 1, "float32", [1], floats(task), stage=1, role=1)
        a, b = finish(made[0], True, *end), finish(made[1])
        check(f"{name}: no other graph", check_diff(name, a, b)["graphs_differ"], None)
        check(f"{name}: first line", first_lines(a.directory, b.directory), [
            f"unmatched entries: 0 only in A, 1 only in B; {words}; 1 compared, none differs"])
        check(f"{name}: nothing in common", first_lines(a.directory, b.directory, "--task", "1"), [
            f"unmatched entries: 0 only in A, 1 only in B; {words}; nothing was compared"])


def test_in_flight(root):
    made = make(root, "flight_a"), make(root, "flight_b")
    for side, dump in enumerate(made):
        for task in (0, 1):
            dump.task(task, (None, 0, None))
            dump.tensor(task, 0, "float32", [1], floats(1))
            dump.tensor(task, 1, "float32", [1], floats(task + side), stage=1, role=1, flags=IN_FLIGHT if task or side else 0)
    a, b = [finish(dump) for dump in made]
    got = check_diff("in flight", a, b)
    check("in flight: not compared", (got["compared"], got["not_compared_reasons"]["in_flight"]), (2, 2))
    outputs = diff(a.directory, b.directory, "--stage", "after", code=1)
    check("nothing was compared", (outputs["compared"], outputs["not_compared"]), (0, 2))
    check("nothing was compared: first line", first_lines(a.directory, b.directory, "--stage", "after"), ["nothing was compared"])


# --- what is refused ---


def test_refused(root):
    dump = finish_simple(root, "refused")
    cut = root / "cut"
    shutil.copytree(dump, cut)
    journal = cut / "tensor_dump" / "tensor_dump.rec"
    journal.write_bytes(journal.read_bytes()[:-9])
    short = root / "short"
    shutil.copytree(dump, short)
    (short / "tensor_dump" / "tensor_dump.bin").write_bytes(b"")
    odd = make(root, "odd")
    odd.task(0, (None, 0, None))
    odd.tensor(0, 0, "float32", [3], floats(1, 2))
    finish(odd)
    for what, arguments, words in (
            *[(f"{len(given)} dumps", given, "missing argument: diff takes two dumps") for given in ((), (dump,))],
            ("three dumps", (dump, dump, dump), f'unexpected argument "{dump}": diff takes two dumps'),
            ("no such dump", (dump, root / "nowhere"), "looking for a dump at"),
            ("a journal that is cut", (dump, cut), "readable: glassbox recover"),
            ("a payload that is short", (short, dump), "tensor_dump.bin"),
            ("a size that does not fit", (dump, odd.directory), "its shape and dtype need 12"),
            *[("a tolerance", (dump, dump, option, text), f'{option}: "{text}" is not a finite number of 0 or more')
              for option, text in (("--atol", "-1"), ("--rtol", "nan"), ("--atol", "inf"), ("--rtol", "1e309"), ("--atol", "1x"))],
            ("steps", (dump, dump, "--ulp", "1.5"), '--ulp: "1.5" is not an integer from 0 to 18446744073709551614')):
        for more in ((), ("--json",)):
            result = glassbox("diff", *arguments, *more)
            check(f"{what}: exit code, stdout", (result.returncode, result.stdout), (2, ""))
            check(f"{what}: {result.stderr}", words in result.stderr and result.stderr.startswith("glassbox diff: "), True)
    strange = root / "a\x1b[31mb"
    shutil.copytree(dump, strange)
    result = glassbox("diff", strange, dump, "--kernel", "nothing")
    check("a name of a directory is escaped", (result.returncode, "a\\x1b[31mb and" in result.stderr), (1, True))
    check("kernels that are there", ': no kernel matches "nothing"; there are ' in result.stderr, True)
    result = glassbox("diff", FIXTURES / "vector_example", FIXTURES / "vector_example", "--kernel", "x")
    check("unknown names", (result.returncode, "has no names of kernels" in result.stderr), (2, True))


LARGE = 1 << 19  # elements of float32: enough to be mapped


def make_endless(root):
    """More JSON than a pipe and all buffers hold, then a task with a tensor of 2 MiB."""
    made = make(root, "shrinking_a"), make(root, "shrinking_b")
    for side, dump in enumerate(made):
        for task in range(400):
            dump.task(task, (None, 0, None))
            dump.tensor(task, 1, "float32", [2], floats(task, side), stage=1, role=1)
        dump.task(400, (None, 0, None))
        dump.tensor(400, 0, "float32", [16], np.arange(16, dtype=np.float32) + side)
        dump.tensor(400, 1, "float32", [LARGE], np.arange(LARGE, dtype=np.float32) + side, stage=1, role=1)
    return [finish(dump).directory for dump in made]


def test_shrinking(root):
    """The payload is cut while diff waits to write, before it reads the part cut off: one sentence, exit code 2."""
    a, b = make_endless(root)
    payload = b / "tensor_dump" / "tensor_dump.bin"
    size = payload.stat().st_size
    for what, kept, words in (("mapped", size - LARGE * 2, "has become shorter"), ("read", 64, "tensor_dump.bin")):
        with subprocess.Popen([GLASSBOX, "diff", a, b, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
                              bufsize=0) as process:
            begun = process.stdout.read(1)
            os.truncate(payload, kept)
            document = begun + process.stdout.read()
            error = process.stderr.read().decode()
        check(f"{what}: exit code", process.returncode, 2)
        check(f"{what}: {error}", error.startswith("glassbox diff: ") and words in error and error.count("\n") == 1, True)
        check(f"{what}: what was compared before", 0 < document.count(b'"verdict": "different"') < 402, True)
        os.truncate(payload, size)


def test_full_disk(root):
    """A JSON document that cannot be written completely is not a success."""
    a, b = root / "shrinking_a", root / "shrinking_b"
    whole = glassbox("diff", a, b, "--json").stdout.encode()
    with open(root / "document", "wb") as document:
        result = subprocess.run([GLASSBOX, "diff", a, b, "--json"], stdout=document, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000)))
    check("a full disk", (result.returncode, result.stderr), (2, "glassbox diff: writing to stdout: File too large\n"))
    check("a full disk: what there is room for", (root / "document").read_bytes(), whole[:50000])


def finish_simple(root, name):
    dump = make(root, name)
    dump.task(0, (None, 0, None))
    dump.tensor(0, 0, "float32", [3], floats(1, 2, 3))
    return finish(dump).directory


def main():
    np.seterr(all="ignore")  # infinities and NaN are meant
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        test_dtypes(root)
        test_pieces(root)
        test_tolerances(root)
        test_nan(root)
        test_causes(root)
        test_writers(root)
        test_order(root)
        test_graphs(root)
        test_hashes(root)
        test_truncated(root)
        test_truncated_inputs(root)
        test_ended_early(root)
        test_in_flight(root)
        test_refused(root)
        test_shrinking(root)
        test_full_disk(root)
    return report()


if __name__ == "__main__":
    sys.exit(main())
