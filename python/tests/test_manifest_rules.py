"""The rules of docs/format.md for manifests, one small manifest each: this reader and the command agree on it."""
import json
import os
import unittest

import glassbox
import support

TENSOR = {"task_id": "0x11", "func_id": [3], "arg_index": 0, "role": "input", "stage": "before_dispatch",
          "kind": "tensor", "dtype": "FLOAT32", "shape": [2], "bin_offset": 0, "bin_size": 8}
SCALAR = {"task_id": "0x11", "func_id": [3], "arg_index": 0, "role": "input", "stage": "before_dispatch",
          "kind": "scalar", "dtype": "FLOAT32", "value": 1.5}
STATS = {"min": -1, "max": 2.5, "mean": 0.1, "nan": 1, "inf": 2, "zero": 3}
WORDS = "the tensors of the task were never described"
OLD_WORDS = "nobody told which words of the task are tensors"
ABSENT = ...


def made(base, changes):
    return {name: value for name, value in {**base, **changes}.items() if value is not ABSENT}


def tensor(**changes):
    return made(TENSOR, changes)


def scalar(dtype="FLOAT32", **changes):
    return made(SCALAR, {"dtype": dtype, **changes})


def view(shape, strides=ABSENT, size=ABSENT, **changes):
    """A tensor of this shape; without a size it has no payload."""
    return tensor(shape=shape, strides=strides, bin_size=0 if size is ABSENT else size, **changes)


# A name, the entries of a manifest, and what is expected: a word of the sentence that refuses it, or for each entry, in
# order, some of its fields. None: the field is missing.
ENTRIES = [
    # tasks
    ("a task by number", [tensor(task_id=17)], [{"task_id": "0x0000000000000011"}]),
    ("the largest task id", [tensor(task_id=2**64 - 1)], [{"task_id": "0x" + "f" * 16}]),
    ("a task id of 65 bits", [tensor(task_id=2**64)], "task_id"),
    ("a negative task id", [tensor(task_id=-1)], "task_id"),
    ("a task id in capitals", [tensor(task_id="0xAb")], [{"task_id": "0x00000000000000ab"}]),
    ("digits without 0x", [tensor(task_id="17")], "task_id"),
    ("0X", [tensor(task_id="0X17")], "task_id"),
    ("17 hexadecimal digits", [tensor(task_id="0x1" + "0" * 16)], "task_id"),
    ("no digits", [tensor(task_id="0x")], "task_id"),
    ("a task id that is true", [tensor(task_id=True)], "task_id"),
    ("no task", [tensor(task_id=None)], "task_id"),
    ("only task_seq", [tensor(task_id=None, task_seq=4, func_id=[])], [{"task_seq": 4, "func_id": []}]),
    ("kernels of an unknown task", [tensor(task_id=None, task_seq=4)], "func_id"),
    ("task_seq in the second only", [tensor(), tensor(task_seq=1)], "task_seq"),
    ("task_seq in the first only", [tensor(task_seq=1), tensor()], "task_seq"),
    ("task_seq of 44 bits", [tensor(task_seq=2**44 - 1)], [{"task_seq": 2**44 - 1}]),
    ("task_seq of 45 bits", [tensor(task_seq=2**44)], "task_seq"),
    ("two ids of one task", [tensor(task_seq=1), tensor(task_seq=1, task_id="0x12")], "task_id"),
    ("an id that only one entry has", [tensor(task_seq=1), tensor(task_seq=1, task_id=None, func_id=[])], "task_id"),
    ("two tasks of one id", [tensor(task_seq=1), tensor(task_seq=0)], [{"task_seq": 0}, {"task_seq": 1}]),
    ("tasks as they first appear", [tensor(task_id=9), tensor(task_id=1), tensor(task_id=9, arg_index=1)],
     [{"task_id": "0x0000000000000009", "task_seq": 0}, {"arg_index": 1, "task_seq": 0},
      {"task_id": "0x0000000000000001", "task_seq": 1}]),
    ("sorted by stage, then slot", [tensor(stage="after_completion"), tensor(arg_index=2), tensor(arg_index=1)],
     [{"arg_index": 1, "index": 0}, {"arg_index": 2, "index": 1}, {"stage": "after_completion", "index": 2}]),
    ("equal ones stay in order", [tensor(bin_offset=8), tensor(bin_offset=0)], [{"bin_offset": 8}, {"bin_offset": 0}]),
    ("an index that is not the position", [tensor(index=5), tensor(index=3)], [{"index": 0}, {"index": 1}]),
    ("a negative index", [tensor(index=-1)], "index"),
    ("two numbers of blocks", [tensor(block_num=1), tensor(block_num=2)], "block_num"),
    ("a number of blocks that one entry has", [tensor(block_num=1), tensor()], "block_num"),
    ("a number of blocks of 33 bits", [tensor(block_num=2**32)], "block_num"),
    # kernels
    ("a kernel by number", [tensor(func_id=5)], [{"func_id": [5]}]),
    ("an unknown kernel", [tensor(func_id=-1)], [{"func_id": []}]),
    ("one of two is unknown", [tensor(func_id=[-1, 4])], [{"func_id": [4]}]),
    ("no kernels", [tensor(func_id=None)], [{"func_id": []}]),
    ("func_id -2", [tensor(func_id=-2)], "func_id"),
    ("four kernels", [tensor(func_id=[0, 1, 2, 3])], "func_id"),
    ("func_id of 32 bits", [tensor(func_id=2**32 - 2)], [{"func_id": [2**32 - 2]}]),
    ("the func_id that means none", [tensor(func_id=2**32 - 1)], "func_id"),
    ("func_id in a string", [tensor(func_id="3")], "func_id"),
    ("func_id that is true", [tensor(func_id=[True])], "func_id"),
    ("kernels are joined", [tensor(func_id=1), tensor(func_id=[2, 1], arg_index=1), tensor(func_id=0, arg_index=2)],
     [{"func_id": [1, 2, 0]}] * 3),
    ("four kernels in all", [tensor(func_id=[1, 2]), tensor(func_id=[3, 4])], "func_id"),
    ("kernels with subtasks are not joined", [tensor(subtasks=["aic"]), tensor(subtasks=["aic"], func_id=4)], "func_id"),
    ("subtasks give the order", [tensor(func_id=[7, 5], subtasks=["aiv1", "aic"], block_num=2)],
     [{"func_id": [5, 7], "subtasks": ["aic", "aiv1"], "block_num": 2}]),
    ("subtasks without blocks", [tensor(subtasks=["aic"])], [{"subtasks": None, "block_num": None}]),
    ("subtasks of some entries", [tensor(block_num=2, subtasks=["aic"]), tensor(block_num=2, arg_index=1)],
     [{"subtasks": None, "block_num": None}] * 2),
    ("a subtask twice", [tensor(func_id=[1, 2], subtasks=["aic", "aic"])], "subtasks"),
    ("an unknown subtask", [tensor(subtasks=["aiv"])], "subtasks"),
    ("too few subtasks", [tensor(subtasks=[])], "subtasks"),
    ("subtasks null", [tensor(subtasks=None)], [{"subtasks": None}]),
    ("a kernel's name", [tensor(kernel="k"), tensor(arg_index=1)], [{"kernel": ["k"]}] * 2),
    ("names in an array", [tensor(func_id=[3, 4], kernel=["k", None])], [{"kernel": ["k", None]}]),
    ("kernel null", [tensor(kernel=None)], [{"kernel": None}]),
    ("more names than kernels", [tensor(kernel=["a", "b"])], "kernel"),
    ("a name that is a number", [tensor(kernel=[5])], "kernel"),
    ("a name of an unknown kernel", [tensor(func_id=-1, kernel="k")], [{"func_id": [], "kernel": None}]),
    ("two names of a kernel", [tensor(kernel="a"), tensor(task_id=1, kernel="b")], "kernel"),
    ("a name of a large func_id", [tensor(func_id=1024, kernel="k")], "func_id"),
    ("half of a character in a name", [tensor(kernel="\ud800")], "kernel"),
    ("a NUL in a name", [tensor(kernel="a\0b")], "kernel"),
    ("a slot's name", [tensor(kernel="k", arg_name="x"), tensor(task_id=1, arg_name="x")], [{"arg_name": "x"}] * 2),
    ("a slot's name in some entries", [tensor(kernel="k", arg_name="x"), tensor(task_id=1), tensor(arg_name="x")],
     [{"arg_name": None}] * 3),
    ("a slot's name without a kernel's", [tensor(arg_name="x")], [{"arg_name": None}]),
    ("two names of a slot", [tensor(kernel="k", arg_name="x"), tensor(task_id=1, arg_name="y"),
                             tensor(task_id=2, arg_name="x")], [{"arg_name": None}] * 3),
    ("a slot's name that is the second kernel's", [tensor(func_id=4, kernel="b", arg_name="x"),
                                                   tensor(task_id=1, func_id=[3, 4], kernel=["a", "b"], arg_name="x")],
     [{"arg_name": "x"}] * 2),
    ("a slot's name that is a number", [tensor(arg_name=5)], "arg_name"),
    ("a slot's name of a large func_id", [tensor(func_id=1024, arg_name="x")], "func_id"),
    # arguments
    ("no slot", [tensor(arg_index=None)], "arg_index"),
    ("slot 63", [tensor(arg_index=63)], [{"arg_index": 63}]),
    ("slot 64", [tensor(arg_index=64)], "arg_index"),
    ("slot 1.0", [tensor(arg_index=1.0)], "arg_index"),
    ("an ambiguous slot", [tensor(arg_index_ambiguous=True)], [{"arg_index": 0}]),
    ("an ambiguous slot by a number", [tensor(arg_index_ambiguous=1)], "arg_index_ambiguous"),
    ("no role", [tensor(role=None)], "role"),
    ("an unknown role", [tensor(role="in")], "role"),
    ("no stage", [tensor(stage=None)], "stage"),
    ("an unknown stage", [tensor(stage="before")], "stage"),
    ("an unknown kind", [tensor(kind="Tensor")], "kind"),
    ("no dtype", [tensor(dtype=None)], "dtype"),
    ("an unknown dtype", [tensor(dtype="FLOAT24")], "dtype"),
    ("a dtype that is a number", [tensor(dtype=1)], "dtype"),
    *[(f"dtype {name}", [view([2], dtype=name)], [{"dtype": dtype}]) for name, dtype in (
        ("Float", "float32"), ("HALF", "float16"), ("bfloat", "bfloat16"), ("f64", "float64"), ("int8_t", "int8"),
        ("u8", "uint8"), ("FP8E4M3FN", "float8_e4m3"), ("e5m2", "float8_e5m2"), ("BOOL_", "bool"), ("s4", "int4"))],
    ("thread of 17 bits", [tensor(thread=65536)], "thread"),
    ("a negative time", [tensor(time_ns=-1)], "time_ns"),
    ("times of all entries", [tensor(time_ns=5, thread=1)], [{"time_ns": 5, "thread": 1}]),
    ("times of some entries", [tensor(time_ns=5, thread=1), tensor(arg_index=1)], [{"time_ns": None, "thread": None}] * 2),
    ("times without threads", [tensor(time_ns=5)], [{"time_ns": None}]),
    ("addresses of all tensors", [tensor(buffer_addr="0x40"), scalar(arg_index=1)],
     [{"buffer_addr": "0x0000000000000040"}, {"buffer_addr": None}]),
    ("addresses of some tensors", [tensor(buffer_addr="0x40"), tensor(arg_index=1)], [{"buffer_addr": None}] * 2),
    ("an address that is a number", [tensor(buffer_addr=64)], "buffer_addr"),
    ("an address null", [tensor(buffer_addr=None)], [{"buffer_addr": None}]),
    ("unknown members", [tensor(colour={"a": [1]}, more=None)], [{"colour": None}]),
    # kinds
    ("a value and no payload", [tensor(kind=None, value=1, shape=ABSENT, bin_size=0)], [{"kind": "scalar", "value": 1.0}]),
    ("a value and payload", [tensor(kind=None, value=1)], [{"kind": "tensor", "value": None}]),
    ("a value that is null", [tensor(kind=None, value=None)], [{"kind": "tensor"}]),
    ("only bits", [tensor(kind=None, bits="0x3f800000", shape=ABSENT, bin_size=0)],
     [{"kind": "scalar", "value": 1.0, "bits": "0x000000003f800000"}]),
    ("the older name of a value", [tensor(kind=None, scalar_value=2, shape=ABSENT, bin_size=0)], [{"value": 2.0}]),
    ("a value beside a tensor is not looked at", [tensor(value={})], [{"kind": "tensor"}]),
    ("neither value nor shape", [tensor(kind=None, shape=None, bin_size=0)], "shape"),
    # values of scalars
    ("a scalar without value", [scalar(value=None)], "value"),
    *[(f"{dtype} {value!r}", [scalar(dtype, value=value)], [{"value": got, "bits": f"0x{bits:016x}"}])
      for dtype, value, got, bits in (
        ("INT8", -1, -1, 0xFF), ("INT8", -128, -128, 0x80), ("UINT8", 255, 255, 0xFF), ("INT4", -8, -8, 8),
        ("INT64", "-9223372036854775808", str(-2**63), 2**63), ("INT64", 9007199254740993, "9007199254740993", 2**53 + 1),
        ("UINT64", str(2**64 - 1), str(2**64 - 1), 2**64 - 1), ("UINT64", 2**64 - 1, str(2**64 - 1), 2**64 - 1),
        ("INT32", "7", 7, 7), ("BOOL", True, True, 1), ("BOOL", 0, False, 0), ("BOOL", 1, True, 1),
        ("FLOAT32", 0.1, 0.1, 0x3DCCCCCD), ("FLOAT32", "NaN", "nan", 0x7FC00000), ("FLOAT32", "-INF", "-inf", 0xFF800000),
        ("FLOAT32", "Infinity", "inf", 0x7F800000), ("FLOAT32", 16777217, 16777216.0, 0x4B800000),
        ("FLOAT32", 3.4028235e38, 3.4028235e38, 0x7F7FFFFF), ("FLOAT32", 1e-46, 0.0, 0), ("FLOAT32", -0.0, -0.0, 2**31),
        ("FLOAT16", 65519, 65504.0, 0x7BFF), ("FLOAT16", 2**-25, 0.0, 0), ("FLOAT16", "nan", "nan", 0x7E00),
        ("BFLOAT16", 1.00390625, 1.0, 0x3F80), ("BFLOAT16", 1.01171875, 1.015625, 0x3F82), ("BFLOAT16", 0, 0.0, 0),
        ("BFLOAT16", "nan", "nan", 0x7FC0), ("BFLOAT16", -1e-45, -0.0, 0x8000), ("BFLOAT16", 9.2e-41, 9.1835e-41, 1),
        ("FP8E4M3FN", 1.0625, 1.0, 0x38), ("FP8E4M3FN", 1.1875, 1.25, 0x3A), ("FP8E4M3FN", 464, 448.0, 0x7E),
        ("FP8E4M3FN", -460, -448.0, 0xFE), ("FP8E4M3FN", 0.001953125, 0.001953125, 1), ("FP8E4M3FN", 0.0009765625, 0.0, 0),
        ("FP8E4M3FN", "nan", "nan", 0x7F), ("FP8E5M2", "nan", "nan", 0x7E), ("FP8E5M2", "inf", "inf", 0x7C),
        ("FP8E5M2", 61439, 57344.0, 0x7B), ("FLOAT64", 1 / 3, 1 / 3, 0x3FD5555555555555))],
    *[(f"{dtype} is not {value!r}", [scalar(dtype, value=value)], "value") for dtype, value in (
        ("INT8", 128), ("INT8", -129), ("UINT8", -1), ("UINT8", 256), ("INT4", 8), ("INT64", 2**63), ("INT64", "2^3"),
        ("INT32", 1.0), ("INT32", True), ("INT32", "+5"), ("INT32", "05"), ("INT32", " 5"), ("INT32", ""), ("INT32", []),
        ("UINT64", 2**64), ("UINT64", "-1"), ("BOOL", 2), ("BOOL", "true"), ("BOOL", "1"), ("BOOL", -1),
        ("FLOAT32", 1e39), ("FLOAT32", 3.4028236e38), ("FLOAT32", 10**400), ("FLOAT32", "1.5"), ("FLOAT32", True),
        ("FLOAT32", "0x3f800000"), ("FLOAT32", {}), ("FLOAT16", 65520), ("BFLOAT16", 3.4e38 * 1.0005),
        ("FP8E4M3FN", 464.5), ("FP8E4M3FN", "inf"), ("FP8E5M2", 61440))],
    ("value and bits agree", [scalar("INT8", value=-1, bits="0xabff")], [{"value": -1, "bits": "0x000000000000abff"}]),
    ("value and bits do not agree", [scalar("INT32", value=1, bits="0x2")], "bits"),
    ("value and older name agree", [scalar("INT32", value=1, scalar_value="1")], [{"value": 1}]),
    ("value and older name do not agree", [scalar("INT32", value=1, scalar_value=2)], "scalar_value"),
    ("older name and bits do not agree", [scalar("INT32", value=ABSENT, scalar_value=1, bits="0x2")], "scalar_value"),
    ("one of three differs", [scalar("INT32", value=1, scalar_value=3, bits="0x1")], "scalar_value"),
    ("any NaN matches", [scalar(value="nan", bits="0x7fc00001")], [{"value": "nan", "bits": "0x000000007fc00001"}]),
    ("zero is not minus zero", [scalar(value=0.0, bits="0x80000000")], "bits"),
    ("any nonzero bits are true", [scalar("BOOL", value=True, bits="0x40")], [{"value": True, "bits": "0x0000000000000040"}]),
    ("bits that are a number", [scalar(bits=5)], "bits"),
    ("a scalar with payload", [scalar(bin_size=4, bin_offset=0)], "bin_size"),
    ("a scalar of one element", [scalar(shape=[1, 1], strides=[9, 9], numel=1)], [{"shape": [], "strides": [], "numel": 1}]),
    ("a scalar of two elements", [scalar(shape=[2])], "shape"),
    ("a scalar that is not contiguous", [scalar(is_contiguous=False)], [{"is_contiguous": True}]),
    ("a scalar that is contiguous by a number", [scalar(is_contiguous=0)], "is_contiguous"),
    ("flags of scalars", [scalar(truncated=True, overwritten=True, in_flight=True)],
     [{"truncated": True, "overwritten": True, "in_flight": True}]),
    # geometry
    ("row-major", [view([2, 3, 4])], [{"strides": [12, 4, 1], "start_offset": 0, "numel": 24, "is_contiguous": True}]),
    ("no dimensions", [view([], size=4)], [{"shape": [], "numel": 1, "is_contiguous": True}]),
    ("eight dimensions", [view([1] * 8)], [{"numel": 1}]),
    ("nine dimensions", [view([1] * 9)], "shape"),
    ("a negative dimension", [view([-1])], "shape"),
    ("a dimension of 2.5", [view([2.5])], "shape"),
    ("a dimension that is true", [view([True])], "shape"),
    ("empty", [view([0, 5])], [{"strides": [5, 1], "numel": 0, "is_contiguous": True}]),
    ("empty, strides of one element", [view([3, 0, 2])], [{"strides": [2, 2, 1]}]),
    ("a shape beyond 64 bits", [view([2**40, 2**40])], "shape"),
    ("empty, with a shape beyond 64 bits", [view([0, 2**62, 4])], "shape"),
    ("numel of another shape", [view([2], numel=3)], "numel"),
    ("numel null", [view([2], numel=None)], [{"numel": 2}]),
    ("strides of another shape", [view([2], [1, 1])], "strides"),
    ("strides of 65 bits", [view([2], [2**63])], "strides"),
    ("backwards", [view([2], [-1], start_offset=1)], [{"strides": [-1], "is_contiguous": False}]),
    ("before the first element", [view([2], [-1])], "strides"),
    ("a negative start", [view([2], [1], start_offset=-1)], "start_offset"),
    ("beyond 64 bits", [view([2], [2**62])], "strides"),
    ("marked as not contiguous", [view([2], [1], is_contiguous=False)], [{"is_contiguous": True}]),
    ("wrongly marked as contiguous", [view([2], [7], is_contiguous=True)], "is_contiguous"),
    ("contiguous by a number", [view([2], is_contiguous=1)], "is_contiguous"),
    ("strides of one element do not matter", [view([1, 2], [99, 1], is_contiguous=True)], [{"strides": [99, 1]}]),
    ("int4 in rows of odd length", [view([3, 3], dtype="INT4", size=6)], [{"strides": [3, 1], "is_contiguous": False}]),
    ("int4 in padded rows", [view([3, 3], [4, 1], dtype="INT4", size=6)], [{"is_contiguous": True}]),
    ("int4 that begins within a byte", [view([2], [1], dtype="INT4", start_offset=1)], [{"is_contiguous": False}]),
    ("a window", [view([2, 3], raw_shape=[4, 5], offsets=[1, 2])],
     [{"strides": [5, 1], "start_offset": 7, "is_contiguous": False}]),
    ("a window without offsets", [view([2], raw_shape=[8])], "offsets"),
    ("offsets without a window", [view([2], offsets=[0])], "raw_shape"),
    ("a window that is too small", [view([2], raw_shape=[8], offsets=[7])], "offsets"),
    ("a window of another shape", [view([2], raw_shape=[8, 8], offsets=[0, 0])], "raw_shape"),
    ("offsets of another shape", [view([2], raw_shape=[8], offsets=[0, 0])], "offsets"),
    ("a window beside its strides", [view([2], [1], raw_shape=[8], offsets=[3], start_offset=3)], [{"start_offset": 3}]),
    ("a window that gives the start", [view([2], [1], raw_shape=[8], offsets=[3])], [{"start_offset": 3}]),
    ("a window beside other strides", [view([2], [2], raw_shape=[8], offsets=[3])], "raw_shape"),
    ("a window beside another start", [view([2], raw_shape=[8], offsets=[3], start_offset=4)], "raw_shape"),
    ("a window beyond 64 bits", [view([1, 1], raw_shape=[2**40, 2**40], offsets=[0, 0])], "raw_shape"),
    # payload
    ("no payload", [tensor(bin_size=0, bin_offset=5000)], [{"bin_size": 0, "bin_offset": 0}]),
    ("payload of another size", [tensor(bin_size=12)], "bin_size"),
    ("payload without a place", [tensor(bin_offset=None)], "bin_offset"),
    ("payload to the last byte", [tensor(bin_offset=120)], [{"bin_offset": 120}]),
    ("payload beyond the file", [tensor(bin_offset=121)], "has 8 bytes at offset 121, but \"args.bin\" ends at 128"),
    ("payload of no elements beyond the file", [view([0], size=0, bin_offset=129)], "has 0 bytes at offset 129"),
    ("payload beyond 64 bits", [tensor(bin_offset=2**63 - 2)], "bin_offset"),
    ("payload before the file", [tensor(bin_offset=-1)], "bin_offset"),
    ("a place in a string", [tensor(bin_offset="0")], "bin_offset"),
    ("truncated", [tensor(truncated=True, bin_size=6)], [{"truncated": True, "bin_size": 6}]),
    ("truncated to nothing", [tensor(truncated=True, bin_size=0, bin_offset=8)], [{"bin_size": 0, "bin_offset": 8}]),
    ("truncated to more than all", [tensor(truncated=True, bin_size=64)], "bin_size"),
    ("truncated by a number", [tensor(truncated=1)], "truncated"),
    ("overwritten", [tensor(overwritten=True)], [{"overwritten": True}]),
    ("a hash", [tensor(hash="AB" * 16)], [{"hash": "ab" * 16}]),
    ("a hash of another length", [tensor(hash="12")], "hash"),
    ("a hash that is not hexadecimal", [tensor(hash="g" * 32)], "hash"),
    ("a hash null", [tensor(hash=None)], [{"hash": None}]),
    # statistics
    ("statistics", [tensor(stats=STATS)], [{"stats": {**STATS, "min": -1.0, "subnormal": 0}}]),
    ("statistics null", [tensor(stats=None)], [{"stats": None}]),
    ("extremes are values of the dtype", [tensor(stats={**STATS, "max": "inf", "mean": "nan", "min": 0.1, "subnormal": 4})],
     [{"stats": {**STATS, "max": "inf", "mean": "nan", "min": 0.1, "subnormal": 4}}]),
    ("extremes of int64", [view([1], dtype="INT64", stats={**STATS, "min": "-5", "max": 2**62})],
     [{"stats": {**STATS, "min": "-5", "max": str(2**62), "subnormal": 0}}]),
    ("no element counts, of a dtype without NaN", [view([0], dtype="FLOAT4E2M1", stats={**STATS, "min": "nan", "max": "nan"})],
     [{"stats": {**STATS, "min": "nan", "max": "nan", "subnormal": 0}}]),
    ("an infinite extreme of a dtype without infinity", [view([1], dtype="FLOAT4E2M1", stats={**STATS, "max": "inf"})], "stats"),
    ("an extreme that the dtype cannot hold", [view([1], dtype="INT8", stats={**STATS, "max": 128})], "stats"),
    ("an extreme that is missing", [tensor(stats={"min": 1})], "stats"),
    ("a count that is negative", [tensor(stats={**STATS, "zero": -1})], "stats"),
    ("a mean in a string", [tensor(stats={**STATS, "mean": "0.1"})], "stats"),
    ("statistics that are a number", [tensor(stats=5)], "stats"),
    ("an entry that is a number", [7], "object"),
]

KERNEL = {"func_id": 3, "name": "k"}
LOSS = {"task_seq": 0, "arg_index": 0, "stage": None, "cause": "stall", "count": 2}
SKIPPED = {"task_seq": 0, "arg_index": None, "kernel": "k", "reason": OLD_WORDS}
READ_SKIPPED = {"task_id": "0x0000000000000011", **SKIPPED, "reason": WORDS, "reason_code": "undescribed"}
OTHER_WORDS = "the description of the argument does not match what the kernel gets"
# A name, members at the top (in TEXTS the complete text), and a word of the sentence, or the members that are read.
HEADS = [
    ("nothing but entries", {}, {"losses": [], "skipped": [], "kernels": [], "total_tensors": 1}),
    ("schema_version 1", {"schema_version": 1}, {}),
    ("schema_version 2", {"schema_version": 2}, "schema_version"),
    ("schema_version 1.0", {"schema_version": 1.0}, "schema_version"),
    ("schema_version null", {"schema_version": None}, {}),
    ("another byte order", {"bin_format": {"byte_order": "big_endian"}}, "byte_order"),
    ("another type of payload", {"bin_format": {"type": "raw"}}, "type"),
    ("a form that is a string", {"bin_format": "raw"}, "bin_format"),
    ("half a form", {"bin_format": {"type": "logical_contiguous"}}, {}),
    ("both arrays", {"tensors": []}, "tensors"),
    ("no array", {"args": ABSENT}, "tensors"),
    ("an array that is an object", {"args": {}}, "arg"),
    ("an array that is null", {"args": None}, "arg"),
    *[(f"bin_file {name!r}", {"bin_file": name}, "bin_file") for name in (
        "../args.bin", "..", ".", "", "a/b", 5, "args.bin\n", "args\0.bin")],
    ("no bin_file", {"bin_file": None}, "bin_file"),
    ("a bin_file that is not there", {"bin_file": "nowhere.bin"}, "nowhere.bin"),
    ("a wrong total", {"total_args": 7}, {"total_tensors": 1}),
    ("a total under two names", {"total_args": 1, "total_tensors": 1}, "total_args"),
    ("a total that is negative", {"total_args": -1}, "total_args"),
    ("a total in a string", {"payload_bytes": "8"}, "payload_bytes"),
    ("level by name", {"dump_level": "stats"}, {"dump_level": "stats"}),
    *[(f"level {number}", {"dump_args_level": number}, {"dump_level": name})
      for number, name in ((0, None), (1, "partial"), (2, "full"), (3, "hybrid"))],
    ("level 4", {"dump_args_level": 4}, "dump_args_level"),
    ("an unknown level", {"dump_level": "most"}, "dump_level"),
    ("two levels that agree", {"dump_level": "full", "dump_args_level": 2}, {"dump_level": "full"}),
    ("two levels that do not agree", {"dump_level": "full", "dump_args_level": 1}, "dump_args_level"),
    ("how it ended", {"complete": False, "status": "disk full"}, {"complete": False, "status": "disk full"}),
    *[(f"only {members}", members, {"complete": complete, "status": status}) for members, complete, status in (
        ({"complete": True}, True, "ok"), ({"complete": False}, False, "not told"), ({"status": "ok"}, True, "ok"),
        ({"status": "killed"}, False, "killed"), ({"status": "bad"}, False, "bad"),
        ({"status": "ok", "dropped_records": 1}, False, "ok"), ({"complete": True, "status": "bad"}, True, "bad"),
        ({}, None, None))],
    ("complete in a string", {"complete": "x"}, "complete"),
    ("status that is a number", {"status": 3}, "status"),
    ("status of two megabytes", {"status": "x" * 2_000_000}, "status"),
    ("a generator that is an object", {"generator": {}}, "generator"),
    ("a run", {"run": {"scene": "s", "more": [1]}}, {}),
    ("a run that is an array", {"run": []}, "run"),
    ("a rank in a string", {"run": {"rank": "x"}}, "rank"),
    ("a rank of 33 bits", {"run": {"rank": 2**32}}, "rank"),
    ("a scene that is a number", {"run": {"scene": 5}}, "scene"),
    ("forms in a signature", {"kernels": [{**KERNEL, "signature": ["in:bfloat16", "out:half[2]", "inout:[0]", "scalar:bool"]}]},
     {"kernels": [{**KERNEL, "core_type": None, "signature": ["in:bfloat16", "out:half[2]", "inout:[0]", "scalar:bool"]}]}),
    ("kernels", {"kernels": [KERNEL]}, {"kernels": [{**KERNEL, "core_type": None, "signature": []}]}),
    ("all of a kernel", {"kernels": [{**KERNEL, "core_type": "aiv", "signature": ["scalar:half", "in"],
                                      "arg_names": ["s", "x"]}]},
     {"kernels": [{**KERNEL, "core_type": "aiv", "signature": ["scalar:half", "in"]}]}),
    ("kernels that are a number", {"kernels": 5}, "kernels"),
    ("a kernel that is a number", {"kernels": [5]}, "kernels[0]"),
    ("a kernel without a number", {"kernels": [{"name": "k"}]}, "func_id"),
    ("a kernel without a name", {"kernels": [{"func_id": 3}]}, "name"),
    ("kernel -1", {"kernels": [{"func_id": -1, "name": "k"}]}, "func_id"),
    ("kernel 1024", {"kernels": [{"func_id": 1024, "name": "k"}]}, "func_id"),
    ("1025 kernels", {"kernels": [KERNEL] * 1025}, "1024"),
    ("a kernel twice", {"kernels": [KERNEL, KERNEL]}, {}),
    ("two names of a kernel", {"kernels": [KERNEL, {**KERNEL, "name": "l"}]}, "name"),
    ("a name that entries do not give", {"kernels": [KERNEL], "args": [tensor(kernel="l")]}, "name"),
    ("an unknown core type", {"kernels": [{**KERNEL, "core_type": "gpu"}]}, "core_type"),
    ("an unknown word in a signature", {"kernels": [{**KERNEL, "signature": ["inn"]}]}, "signature"),
    *((f"a wrong form in a signature: {word}", {"kernels": [{**KERNEL, "signature": [word]}]}, "signature")
      for word in ("in:", "in:f33", "in[2]", "in:float32[9]", "in:float32[]", "in:float32[2]x", "scalar:float32[2]", "scalar:[0]")),
    ("more names than the signature", {"kernels": [{**KERNEL, "signature": ["in"], "arg_names": ["a", "b"]}]}, "arg_names"),
    ("names of five megabytes", {"kernels": [{**KERNEL, "name": "k" * 5_000_000}]}, "kernels"),
    ("losses", {"losses": [LOSS]}, {"losses": [{"task_id": "0x0000000000000011", **LOSS, "result": None}], "dropped_records": 2}),
    ("a loss without task and cause", {"losses": [{**LOSS, "arg_index": None, "cause": None}]},
     {"losses": [{"task_id": None, "task_seq": None, "arg_index": None, "stage": None, "cause": "not told", "count": 2, "result": None}]}),
    ("losses that are only counted", {"dropped_records": 2, "dropped_overwrite": 3},
     {"losses": [{"task_id": None, "task_seq": None, "arg_index": None, "stage": None, "cause": "not told", "count": count, "result": None}
                 for count in (2, 3)]}),
    ("losses that are listed and counted", {"dropped_records": 2, "losses": [LOSS]}, {"dropped_records": 2}),
    ("losses that are an object", {"losses": {}}, "losses"),
    ("a loss of -1", {"losses": [{**LOSS, "count": -1}]}, "count"),
    ("a loss without a stage", {"losses": [made(LOSS, {"stage": ABSENT})]}, "stage"),
    ("an unknown cause", {"losses": [{**LOSS, "cause": "greed"}]}, "cause"),
    ("skipped", {"skipped": [SKIPPED], "kernels": [KERNEL]}, {"skipped": [READ_SKIPPED]}),
    ("skipped, with an unknown name", {"skipped": [SKIPPED]},
     {"skipped": [{**READ_SKIPPED, "kernel": None}]}),
    ("skipped, with a name of two kernels", {"skipped": [SKIPPED], "kernels": [KERNEL, {**KERNEL, "func_id": 4}]},
     {"skipped": [{**READ_SKIPPED, "kernel": None}]}),
    ("an unknown reason", {"skipped": [{**SKIPPED, "reason": "x"}]}, "reason"),
    ("a reason by its code", {"skipped": [{**SKIPPED, "reason": "anything", "reason_code": "misdescribed"}]},
     {"skipped": [{**READ_SKIPPED, "kernel": None, "reason": OTHER_WORDS, "reason_code": "misdescribed"}]}),
    ("an unknown reason code", {"skipped": [{**SKIPPED, "reason_code": "x"}]}, "reason_code"),
    ("a reason code that is a number", {"skipped": [{**SKIPPED, "reason_code": 1}]}, "reason_code"),
    ("a reason code that is null", {"skipped": [{**SKIPPED, "reason_code": None}], "kernels": [KERNEL]}, {"skipped": [READ_SKIPPED]}),
]
WHOLE = json.dumps({"bin_file": "args.bin", "args": [tensor()]}).encode()


def with_member(text, in_entry=False):
    """The manifest with this text added at its end, or at the end of its entry."""
    return WHOLE[:-3] + b", " + text + WHOLE[-3:] if in_entry else WHOLE[:-1] + b", " + text + b"}"


TEXTS = [
    ("as it is", WHOLE, {}), ("cut", WHOLE[:-20], "JSON"), ("nothing", b"", "no dump found"),
    ("an array", b"[]", "no dump found"), ("an array with bin_file", b'[{"bin_file": "x"}]', "an object"),
    ("more after it", WHOLE + b"x", "JSON"), ("a NUL after it", WHOLE + b"\0", "JSON"), ("spaces after it", WHOLE + b" \n", {}),
    ("a byte order mark", b"\xef\xbb\xbf" + WHOLE, "JSON"),
    ("a comma too many", with_member(b"")[:-1] + b"}", "JSON"),
    ("NaN", with_member(b'"x": NaN'), "NaN"), ("Infinity", with_member(b'"x": -Infinity', True), "Infinity"),
    ("a member of the top twice", with_member(b'"bin_file": "args.bin"'), "bin_file"),
    ("the array twice", with_member(b'"args": []'), "args"),
    ("another member twice", with_member(b'"x": 1, "x": 2'), {}),
    ("a member of an entry twice", with_member(b'"bin_offset": 8', True), "bin_offset"),
    ("a member twice, spelled differently", with_member(b'"bin_\\u006fffset": 8', True), "bin_offset"),
    ("another member of an entry twice", with_member(b'"x": 1, "x": 2', True), {}),
    ("a member of a kernel twice", with_member(b'"kernels": [{"func_id": 1, "name": "k", "x": 1, "x": 1}]'), "x"),
    ("a statistic twice", with_member(b'"stats": {"min": 1, "min": 1}', True), "stats"),
    ("not UTF-8", with_member(b'"x": "\xff"'), "JSON"), ("not UTF-8 in an entry", with_member(b'"x": "\xff"', True), "JSON"),
    ("half of a character that nobody reads", with_member(b'"x": "\\ud800"', True), {}),
    ("half of a character in a run", with_member(b'"run": {"scene": "\\ud800"}'), "run"),
    ("a line break in a string", with_member(b'"x": "a\nb"'), "JSON"),
    ("a number that is too long", with_member(b'"x": ' + b"9" * 5000), {}),
    ("an index that is too long", with_member(b'"index": ' + b"9" * 5000, True), "index"),
    ("minus zero", with_member(b'"index": -0', True), {}),
    ("a number with a zero in front", with_member(b'"x": 01'), "JSON"),
    ("nested too deeply", with_member(b'"x": ' + b"[" * 100000 + b"]" * 100000), "JSON"),
    ("a deep entry", with_member(b'"shape": ' + b"[" * 3000 + b"]" * 3000, True), ""),
]


class Rules(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.has_view = support.has_command("view")
        # A command with sanitizers is slow: it reads only every sixth manifest.
        cls.step = 6 if os.environ.get("GLASSBOX_SANITIZE") else 1

    def setUp(self):
        self.directory = support.scratch(self.id())
        (self.directory / "args.bin").write_bytes(bytes(range(128)))
        self.asked = 0

    def read(self, document):
        """The dump, and what view prints for it; or for each the sentence that refuses it."""
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        (self.directory / "args_dump.json").write_bytes(text)
        try:
            dump = glassbox.open(self.directory)
        except glassbox.DumpError as error:
            self.assertNotIn("\n", str(error))
            dump = str(error)
        self.asked += 1
        if not self.has_view or self.asked % self.step:
            return dump, None
        done = support.command("view", self.directory, "--json")
        self.assertIn(done.returncode, (0, 2), done.stderr)
        return dump, json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def check_refused(self, word, dump, printed):
        self.assertIsInstance(dump, str, "is read, but should be refused")
        self.assertIn(word, dump.replace(str(self.directory), ""))
        self.assertFalse(isinstance(printed, dict), "the command reads it")

    def check_equal(self, dump, printed):
        self.assertNotIsInstance(dump, str)
        if printed is not None:
            self.assertIsInstance(printed, dict, printed)
            self.assertEqual(support.ordered(dump.to_dicts()), support.ordered(printed["tensors"]))

    def test_entries(self):
        for name, entries, expected in ENTRIES:
            with self.subTest(name):
                dump, printed = self.read({"bin_file": "args.bin", "args": entries})
                if isinstance(expected, str):
                    self.check_refused(expected, dump, printed)
                    continue
                self.check_equal(dump, printed)
                got = [{field: entry.get(field) for field in fields} for entry, fields in zip(dump.to_dicts(), expected)]
                self.assertEqual((len(dump), support.ordered(got)), (len(expected), support.ordered(expected)))

    def test_members_of_the_top(self):
        documents = [(name, made({"bin_file": "args.bin", "args": [tensor()]}, members), expected)
                     for name, members, expected in HEADS]
        for name, document, expected in [*documents, *TEXTS]:
            with self.subTest(name):
                dump, printed = self.read(document)
                if isinstance(expected, str):
                    self.check_refused(expected, dump, printed)
                    continue
                self.check_equal(dump, printed)
                self.assertEqual({field: dump.info[field] for field in expected}, expected)
                for field in ("kernels", "losses", "skipped", "dump_level", *dump.totals) if printed else ():
                    self.assertEqual(dump.info[field], printed[field], field)
                for field in ("complete", "status") if printed else ():
                    self.assertEqual(dump.info[field], printed.get(field), field)

    def test_minus_zero_is_a_value(self):
        for text, bits in ((b"-0", "0x0000000080000000"), (b"0", "0x0000000000000000")):
            manifest = json.dumps({"bin_file": "args.bin", "args": [scalar(value=5)]}).encode()
            dump, printed = self.read(manifest.replace(b"5}", text + b"}"))
            self.check_equal(dump, printed)
            self.assertEqual(dump[0].to_dict()["bits"], bits)

    def test_wrong_totals_are_reported(self):
        dump, _ = self.read({"bin_file": "args.bin", "args": [tensor()], "total_args": 7, "payload_bytes": 8,
                             "stall_ns": 5})
        self.assertEqual(dump.wrong_totals, ["total_tensors: expected 1, got 7"])
        self.assertEqual((dump.totals["total_tensors"], dump.totals["stall_ns"]), (1, 5))
        dump, _ = self.read({"bin_file": "args.bin", "args": [tensor()], "losses": [LOSS], "dropped_records": 3})
        self.assertEqual(dump.wrong_totals, ["dropped_records: expected 2, got 3"])

    def test_overwritten_tensors_have_no_array(self):
        dump, _ = self.read({"bin_file": "args.bin", "args": [tensor(overwritten=True)]})
        for read in (dump[0].raw, dump[0].array, dump[0].float32):
            with self.assertRaisesRegex(glassbox.NoPayload, "its bytes were overwritten before they were kept"):
                read()

    def test_does_not_wait_for_pipes(self):
        manifest, payload = self.directory / "args_dump.json", self.directory / "args.bin"
        payload.unlink()
        os.mkfifo(payload)
        dump, printed = self.read({"bin_file": "args.bin", "args": [tensor()]})
        self.check_refused("not a regular file", dump, printed)
        manifest.unlink()
        os.mkfifo(manifest)
        with self.assertRaisesRegex(glassbox.DumpError, "no dump found"):
            glassbox.open(self.directory)
        for name, sentence in (("tensor_dump.rec", "not a regular file"),
                               ("tensor_dump.json", "it does not exist, and there is no manifest")):
            other = self.directory / name.replace(".", "-") / "tensor_dump"
            other.mkdir(parents=True)
            os.mkfifo(other / name)
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                glassbox.open(other.parent)


if __name__ == "__main__":
    unittest.main()
