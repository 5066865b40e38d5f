"""What the tests of exports share: running the command, values computed here, dumps made byte by byte."""
import fractions
import json
import math
import os
import struct
import subprocess
import sys

import numpy as np

from dump_encoder import (COMPLETE, CONTIGUOUS, DTYPES, HASH, HEADER, MX_VALUES, NO_KERNEL, PACKED, PAYLOAD, ROLES, STAGES, block, record,
                          text_record, xxhash)

GLASSBOX = os.path.abspath(sys.argv[1])
RAW = {"bfloat16": np.uint16, "float8_e4m3": np.uint8, "float8_e5m2": np.uint8, "int4": np.uint8,
       "float4_e2m1": np.uint8, "float8_e8m0": np.uint8}
SHORT = {"input": "in", "output": "out", "inout": "inout", "before_dispatch": "before", "after_completion": "after"}
SIMPLER_FIELDS = ["task_id", "func_id", "arg_index", "role", "stage", "kind", "dtype", "value", "is_contiguous", "shape",
                  "strides", "start_offset", "numel", "bin_offset", "bin_size", "truncated", "overwritten"]

counts = {"passed": 0, "failed": 0}


def check(what, is_so, shown=""):
    counts["passed" if is_so else "failed"] += 1
    if not is_so:
        print(f"not so: {what} {shown}")


def glassbox(*arguments, code=0, **more):
    result = subprocess.run([GLASSBOX, *map(str, arguments)], capture_output=True, text=True, **more)
    if result.returncode != code:
        check(f"glassbox {' '.join(map(str, arguments))} exits with {code}", False,
              f"but with {result.returncode}: {result.stdout}{result.stderr}")
    return result


# --- values, computed here ---

def float8(code, exponent_bits, fraction_bits, bias, has_infinity):
    sign = -1 if code >> 7 else 1
    exponent = code >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = code & ((1 << fraction_bits) - 1)
    if has_infinity and exponent == (1 << exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if not has_infinity and code & 0x7f == 0x7f:
        return math.nan
    if exponent == 0:
        return sign * float(fractions.Fraction(fraction, 1 << (bias - 1 + fraction_bits)))
    scale = fractions.Fraction(2) ** (exponent - bias - fraction_bits)
    return sign * float((fraction + (1 << fraction_bits)) * scale)


def unpacked(raw, shape):
    """Codes, two a byte, low half first; rows begin with a byte."""
    columns = shape[-1] if shape else 1
    rows = np.frombuffer(raw, np.uint8).reshape(-1, (columns + 1) // 2)
    return np.stack([rows & 15, rows >> 4], axis=-1).reshape(len(rows), -1)[:, :columns].reshape(shape)


def values(dtype, raw, shape):
    """The exact values, as float64, or as integers where the dtype is one."""
    if dtype in MX_VALUES:
        codes = unpacked(raw, shape) if dtype in PACKED else np.frombuffer(raw, np.uint8).reshape(shape)
        return MX_VALUES[dtype].astype(np.float64)[codes]
    if dtype == "int4":
        halves = unpacked(raw, shape).astype(np.int8)
        return np.where(halves > 7, halves - 16, halves).astype(np.int8)
    if dtype == "bfloat16":
        with np.errstate(invalid="ignore"):
            flat = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    elif dtype in ("float8_e4m3", "float8_e5m2"):
        form = (4, 3, 7, False) if dtype == "float8_e4m3" else (5, 2, 15, True)
        flat = np.array([float8(code, *form) for code in range(256)])[np.frombuffer(raw, np.uint8)]
    elif dtype == "bool":
        flat = np.frombuffer(raw, np.uint8) != 0
    else:
        flat = np.frombuffer(raw, dtype)
    return flat.reshape(shape)


def as_numpy(dtype, raw, shape):
    """What an .npy file of it holds."""
    if dtype not in RAW:
        return values(dtype, raw, shape)
    flat = np.frombuffer(raw, RAW[dtype])
    return flat.reshape([*shape[:-1], (shape[-1] + 1) // 2]) if dtype in PACKED and shape else flat.reshape(shape)


def converted(exact, dtype):
    """Rounded once, to nearest, ties to even; integers saturate; NaN to an integer is 0."""
    if dtype == "bool":
        return exact != 0
    if np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            return exact.astype(dtype)
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    whole = {math.inf: most, -math.inf: least}
    flat = [0 if x != x else whole[x] if x in whole else min(max(round(x), least), most) for x in exact.ravel().tolist()]
    return np.array(flat, object).astype(dtype).reshape(exact.shape)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") and (
        a.dtype.kind != "f" or np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)])))


def reads_back(numbers, exact, dtype):
    """Whether decimals read as elements of the dtype are the elements."""
    if exact.dtype.kind != "f":
        return [int(x) for x in numbers] == [int(x) for x in exact.ravel().tolist()]
    if dtype not in RAW:
        return same(np.array(numbers, np.float64).astype(dtype).reshape(exact.shape), exact)
    if dtype in MX_VALUES:
        return same(np.array(numbers, np.float32).reshape(exact.shape), exact.astype(np.float32))
    codes = np.arange(128 if RAW[dtype] == np.uint8 else 32768).astype(RAW[dtype])
    known = values(dtype, codes.tobytes(), codes.shape)
    known = known[np.isfinite(known)]  # positive, in the order of their codes
    got, wanted = np.array(numbers, np.float64), exact.ravel()
    finite = np.isfinite(wanted)
    middles, sizes = (known[1:] + known[:-1]) / 2, np.abs(got[finite])
    below = np.searchsorted(middles, sizes)
    is_tie = np.isin(sizes, middles)  # to even
    nearest = np.copysign(known[np.where(is_tie & (below % 2 == 1), below + 1, below)], got[finite])
    return np.array_equal(got[~finite], wanted[~finite], equal_nan=True) and same(nearest, wanted[finite])


# --- a dump made byte by byte ---

class Dump:
    def __init__(self, root, name):
        self.directory = root / name
        (self.directory / "tensor_dump").mkdir(parents=True)
        self.records, self.payload, self.tasks, self.entries = [], bytearray(), set(), []

    def task(self, task):
        if task not in self.tasks:
            self.records.append(record(3, task, 255, body=struct.pack("<Q6I", (1 << 32) + task, NO_KERNEL, 7, NO_KERNEL,
                                                                      1, 0, 0)))
        self.tasks.add(task)
        return f"0x{(1 << 32) + task:016x}"

    def add(self, task, arg, dtype, shape, raw=None, role=0, stage=0, flags=0, is_lost=False, name=None):
        task_id = f"seq{task}" if is_lost else self.task(task)
        offset = len(self.payload)
        self.payload += (raw or b"") + bytes(-len(raw or b"") % 64)
        value = xxhash.XXH3_128bits(raw or b"", len(raw or b""))
        has_gaps = dtype in PACKED and len(shape) > 1 and shape[-1] % 2 == 1 and math.prod(shape[:-1]) > 1
        flags |= (0 if has_gaps else CONTIGUOUS) | (0 if raw is None else PAYLOAD | HASH)
        strides = [int(np.prod(shape[d + 1:], dtype=np.int64)) for d in range(len(shape))]
        body = struct.pack(f"<5Qq{2 * len(shape)}q", 0x7E9000000000, offset if raw else 0, len(raw or b""), value.low,
                           value.high, 0, *shape, *strides)
        self.records.append(record(7, task, stage, role, arg, DTYPES.index(dtype), len(shape), flags, body=body))
        name = name or f"task_{task_id}_{SHORT[STAGES[stage]]}_{SHORT[ROLES[role]]}{arg}"
        self.entries.append((name, dtype, tuple(shape), raw))

    def scalar(self, task, arg, dtype, bits):
        task_id = self.task(task)
        self.records.append(record(6, task, arg=arg, dtype=DTYPES.index(dtype), body=struct.pack("<Q", bits)))
        size = np.dtype(RAW.get(dtype, dtype)).itemsize
        bits &= 15 if dtype in PACKED else -1  # the rest of the word does not count
        self.entries.append((f"task_{task_id}_before_in{arg}", dtype, (), struct.pack("<Q", bits)[:size]))

    def write(self):
        run = {"generator": "hand", "run": {"scene": "s"}, "dump_level": "full",
               "kernels": [{"func_id": 7, "name": "odd", "core_type": "aiv", "signature": ["in"]}]}
        blocks = [block(0, [text_record(1, b"", json.dumps(run))])]
        for at in range(0, len(self.records), 2000):
            blocks.append(block(len(blocks), self.records[at:at + 2000]))
        end = struct.pack("<8Q", len(self.entries), len(self.tasks), 0, 0, 0, 0, 0, 0)
        blocks.append(block(len(blocks), [text_record(11, end, "ok", flags=COMPLETE)]))
        inner = self.directory / "tensor_dump"
        (inner / "tensor_dump.rec").write_bytes(HEADER + b"".join(blocks))
        (inner / "tensor_dump.bin").write_bytes(self.payload)
        return self


def leftovers(directory):
    return [p.name for p in directory.iterdir() if ".partial-" in p.name]


def other_entry(task, arg, **more):
    entry = {"task_id": f"0x{task:016x}", "func_id": [0], "arg_index": arg, "role": "input", "stage": "before_dispatch",
             "kind": "tensor", "dtype": "FLOAT32", "is_contiguous": True, "shape": [2], "strides": [1],
             "start_offset": 0, "numel": 2, "bin_offset": 0, "bin_size": 0, "truncated": False, "overwritten": False}
    entry |= more
    if "value" in more:
        entry |= {"kind": "scalar", "shape": [], "strides": [], "numel": 1}
    return {key: entry[key] for key in SIMPLER_FIELDS if key in entry}


def other_dump(directory, entries, payload, **head):
    """args_dump.json as that project writes it, but for what `head` adds, replaces or, by None, takes away."""
    count = lambda key, value: sum(e[key] == value for e in entries)
    whole = {"run_dir": directory.name, "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
             "dump_args_level": 2, "total_args": len(entries), "before_dispatch": count("stage", STAGES[0]),
             "after_completion": count("stage", STAGES[1]), "input_args": count("role", "input"),
             "output_args": count("role", "output"), "inout_args": count("role", "inout"),
             "truncated_args": count("truncated", True), "dropped_records": 0, "dropped_overwrite": 0,
             "bin_file": "args.bin", **head, "args": entries}
    directory.mkdir(parents=True)
    (directory / "args_dump.json").write_text(json.dumps({k: v for k, v in whole.items() if v is not None}))
    (directory / "args.bin").write_bytes(payload)
    return directory


def large(root):
    """16 tensors of 2 MiB."""
    dump = Dump(root, "large")
    numbers = np.random.default_rng(5)
    for arg in range(16):
        dump.add(arg // 4, arg % 4, "float32", (512, 1024), numbers.standard_normal(1 << 19, np.float32).tobytes())
    return dump.write()
