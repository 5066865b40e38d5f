"""Makes good and bad journals byte by byte, as in docs/format.md."""
from __future__ import annotations

import ctypes
import json
import pathlib
import struct

RUN, RUN_ARG, TASK, EDGES, DONE, SCALAR, TENSOR, DISPATCH, LOSS, SKIPPED, END, EXECUTION, SAMPLE = range(1, 14)
RANGE = 16
PAYLOAD, HASH, STATS, TRUNCATED, IN_FLIGHT, DUPLICATE, CONTIGUOUS, IN_PIECES, COMPLETE = (1 << i for i in range(9))
NONE = 0xFFFFFFFF


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_library = ctypes.CDLL("libxxhash.so.0")
_library.XXH3_64bits.restype = ctypes.c_uint64
_library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_library.XXH3_128bits.restype = Hash128
_library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def hash64(data: bytes) -> int:
    return _library.XXH3_64bits(data, len(data))


def hash128(data: bytes) -> tuple[int, int]:
    value = _library.XXH3_128bits(data, len(data))
    return value.low, value.high


def record(kind, body=b"", task=0, stage=0, role=0, arg=0, dtype=0, ndims=0, flags=0, time=0, thread=0, words=None,
           reserved=0):
    body += bytes(-len(body) % 8)
    words = 4 + len(body) // 8 if words is None else words
    return struct.pack("<6BHI2H2Q", kind, stage, role, arg, dtype, ndims, flags, words, thread, reserved, task,
                       time) + body


def run(text=None, **members):
    document = {"generator": "hand", "run": {"run_id": "1", "scene": "s", "case": None, "platform": "a2a3sim",
                                             "runtime": "host_build_graph", "rank": 0, "round": 0, "started_at": None},
                "dump_level": "full", "has_args": False, "filters": [],
                "kernels": [{"func_id": 7, "name": "softmax", "core_type": "aiv", "signature": ["in", "scalar", "out"],
                             "arg_names": ["x", "scale", "y"]}], "run_args": [], **members}
    text = json.dumps(document).encode() if text is None else text
    return record(RUN, struct.pack("<Q", len(text)) + text, stage=255, arg=255)


def task(number, task_id=None, kernels=(NONE, 7, NONE), blocks=1, predecessors=0, **head):
    task_id = number + 256 if task_id is None else task_id
    return record(TASK, struct.pack("<Q6I", task_id, *kernels, blocks, predecessors, 0), task=number,
                  **{"stage": 255, "arg": 255, **head})


def edges(number, predecessors):
    return record(EDGES, struct.pack(f"<{len(predecessors)}Q", *predecessors), task=number, stage=255, arg=255)


def done(number, time=0):
    return record(DONE, task=number, stage=255, arg=255, time=time)


def scalar(number, bits, dtype, **head):
    return record(SCALAR, struct.pack("<Q", bits), task=number, dtype=dtype, **head)


def tensor(number, shape, dtype=1, strides=None, offset=0, size=0, hash_=(0, 0), start=0, address=0x7E9000000000,
           stats=b"", flags=0, **head):
    if strides is None:
        strides = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    body = struct.pack("<5Qq", address, offset, size, *hash_, start)
    body += struct.pack(f"<{2 * len(shape)}q", *shape, *strides) + stats
    return record(TENSOR, body, task=number, dtype=dtype, ndims=len(shape), flags=flags, **head)


def end(records=0, tasks=0, dispatches=0, payload=0, stored=0, duplicates=0, dropped=0, stall=0, status="ok",
        flags=COMPLETE, tail=b""):
    text = status.encode()
    return record(END, struct.pack("<9Q", records, tasks, dispatches, payload, stored, duplicates, dropped, stall,
                                   len(text)) + text + bytes(-len(text) % 8) + tail, stage=255, arg=255, flags=flags)


def execution(number, end, core=1, block=0, subtask=1, function=7, **head):
    return record(EXECUTION, struct.pack("<Q4I", end, core, block, subtask, function), task=number, stage=255, arg=255, **head)


def sample(waited, used, arena, times=1, causes=2, **head):
    return record(SAMPLE, struct.pack("<3Q2I", waited, used, arena, times, causes), stage=255, arg=255, **head)


def header(magic=b"GBXJRNL1", version=1, length=64, rest=bytes(48)):
    return struct.pack("<8s2I", magic, version, length) + rest


def block(sequence, records, count=None, magic=0x42584247):
    body = b"".join(records)
    head = struct.pack("<4IQ", magic, len(body), len(records) if count is None else count, sequence, hash64(body))
    return head + struct.pack("<Q", hash64(head)) + body


def journal(*blocks):
    return header() + b"".join(block(i, records) for i, records in enumerate(blocks))


def newer(data: bytes, *types: int) -> tuple[bytes, int]:
    """The same journal as a newer version may write it, and its number of records of unknown types. The header is
    longer, every record has two more words, and each record but the first of a block follows one of the `types`."""
    made, at, sequence, count = header(version=2, length=200, rest=b"\xee" * 184), 64, 0, 0
    while at < len(data):
        end, at, records = at + 32 + struct.unpack_from("<I", data, at + 4)[0], at + 32, []
        while at < end:
            words = struct.unpack_from("<I", data, at + 8)[0]
            one = bytearray(data[at:at + 8 * words] + b"\xff" * 16)
            struct.pack_into("<I", one, 8, words + 2)
            if one[0] == EDGES:
                struct.pack_into("<H", one, 14, 2)
            if records:
                records.append(record(types[count % len(types)], bytes(count % 40), task=2**64 - 1, stage=9, role=9))
                count += 1
            records.append(bytes(one))
            at += 8 * words
        made, sequence = made + block(sequence, records), sequence + 1
    return made, count


def ranged(data: bytes) -> bytes:
    """The same journal with a RANGE in every block but the first."""
    made, at, sequence = data[:64], 64, 0
    while at < len(data):
        end = at + 32 + struct.unpack_from("<I", data, at + 4)[0]
        count, records = struct.unpack_from("<I", data, at + 8)[0], [data[at + 32:end]]
        if sequence:
            body = record(RANGE, struct.pack("<2Q", 0, 0), task=1, stage=255, arg=255, words=7)
            records.insert(0, body + struct.pack("<Q", hash64(body)))
        made += block(sequence, records, count=count + len(records) - 1)
        at, sequence = end, sequence + 1
    return made


def write(directory: pathlib.Path, data: bytes, payload: bytes | None = b"") -> pathlib.Path:
    inner = pathlib.Path(directory) / "tensor_dump"
    inner.mkdir(parents=True, exist_ok=True)
    (inner / "tensor_dump.rec").write_bytes(data)
    if payload is not None:
        (inner / "tensor_dump.bin").write_bytes(payload)
    return pathlib.Path(directory)
