"""Dumps for tests, put together byte by byte from docs/format.md, each with the manifest that it has to have.

Nothing here is glassbox: what it says of such a dump can be compared with manifest() and with the payload.
"""
import ctypes
import json
import struct

import numpy as np

DTYPES = ("none", "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32",
          "int64", "uint64", "bool", "float8_e4m3", "float8_e5m2", "int4", "float4_e2m1", "float8_e8m0")
PACKED = ("int4", "float4_e2m1")
# Values by code, as OCP MX defines them; all are float32.
MX_VALUES = {"float4_e2m1": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32),
             "float8_e8m0": np.array([2.0**(code - 127) for code in range(255)] + [np.nan], np.float32)}
ROLES = ("input", "output", "inout")
STAGES = ("before_dispatch", "after_completion")
SUBTASKS = ("aic", "aiv0", "aiv1")
CAUSES = ("stall", "disk", "corrupt", "device")
REASONS = ("the tensors of the task were never described", "the description of the argument does not match what the kernel gets")
REASON_CODES = ("undescribed", "misdescribed")
RUN, RUN_ARG, TASK, EDGES, DONE, SCALAR, TENSOR, DISPATCH, LOSS, SKIPPED, END, EXECUTION, SAMPLE, FINDING = range(1, 15)
PAYLOAD, HASH, STATS, TRUNCATED, IN_FLIGHT, DUPLICATE, CONTIGUOUS, PIECES, COMPLETE = (1 << i for i in range(9))
NO_KERNEL, NONE, NO_END = 0xFFFFFFFF, 255, (1 << 64) - 1
HEADER = struct.pack("<8s2I", b"GBXJRNL1", 2, 64) + bytes(48)

xxhash = ctypes.CDLL("libxxhash.so.0")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def hash64(data):
    return xxhash.XXH3_64bits(bytes(data), len(data))


def record(kind, task=0, stage=0, role=0, arg=0, dtype=0, ndims=0, flags=0, thread=0, time=0, body=b""):
    body += bytes(-len(body) % 8)
    return struct.pack("<6BHI2H2Q", kind, stage, role, arg, dtype, ndims, flags, 4 + len(body) // 8, thread, 0, task,
                       time) + body


def with_tail(made, *words):
    """The record with more words at its end, as a newer version may write it."""
    made = bytearray(made) + struct.pack(f"<{len(words)}Q", *words)
    struct.pack_into("<I", made, 8, len(made) // 8)
    if made[0] == EDGES:
        struct.pack_into("<H", made, 14, len(words))
    return bytes(made)


def text_record(kind, fixed, text, **more):
    text = text.encode()
    return record(kind, stage=NONE, arg=NONE, body=fixed + struct.pack("<Q", len(text)) + text, **more)


def block(sequence, records):
    body = b"".join(records)
    head = struct.pack("<4IQ", 0x42584247, len(body), len(records), sequence, hash64(body))
    return head + struct.pack("<Q", hash64(head)) + body


def float_number(value, name):
    """As JSON has it once it is parsed: the shortest text of a float32, for float64 of a float64."""
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return float(value) if name == "float64" else float(str(np.float32(value)))


def integer_number(value, name):
    if name == "bool":
        return bool(value)
    return str(int(value)) if name in ("int64", "uint64") else int(value)


def number(value, name):
    return float_number(value, name) if name.startswith(("float", "bfloat")) else integer_number(value, name)


def is_contiguous(name, shape, strides, start):
    """Row-major as a payload is, in which a row of 4-bit elements begins at a byte; strides of one element do not count."""
    if 0 in shape:
        return True
    padded = [*shape[:-1], shape[-1] + shape[-1] % 2] if name in PACKED and shape else shape
    is_aligned = name not in PACKED or start % 2 == 0
    return is_aligned and all(n == 1 or a == b for n, a, b in zip(shape, strides, row_major(padded)))


def row_major(shape):
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length or 1
    return strides


class Dump:
    """Records are added in any order; write() makes the files, manifest() what tensor_dump.json has to say."""

    header = HEADER

    def __init__(self, directory, kernels=(), level="full", **run):
        self.directory = directory
        self.inner = directory / "tensor_dump"
        self.kernels = {kernel["func_id"]: kernel for kernel in kernels}
        self.level = level
        known = {"run_id": "r1", "scene": "scene", "case": "case", "platform": "a2a3sim", "runtime": "host_build_graph",
                 "rank": 0, "round": 0, "started_at": "2026-01-02T03:04:05Z"}
        self.run = {**known, **run}
        self.records, self.entries, self.losses, self.skips = [], [], [], []
        self.tasks, self.executions, self.dispatch_count = {}, {}, 0
        self.payload, self.places, self.announced = bytearray(), {}, set()
        self.status, self.is_complete, self.has_end = "killed", False, False

    def task(self, number, func_ids=(None, None, None), task_id=None, blocks=1, time=0, predecessors=()):
        task_id = 0x100 + number if task_id is None else task_id
        self.tasks[number] = {"id": task_id, "func_ids": func_ids, "blocks": blocks}
        words = [NO_KERNEL if func_id is None else func_id for func_id in func_ids]
        self.records.append(record(TASK, number, NONE, arg=NONE, time=time,
                                   body=struct.pack("<Q6I", task_id, *words, blocks, len(predecessors), 0)))
        if predecessors:
            body = struct.pack(f"<{len(predecessors)}Q", *predecessors)
            self.records.append(record(EDGES, number, NONE, arg=NONE, body=body))

    def execution(self, task, block, subtask, core, start, end, func_id=0, thread=0):
        """`end` None: the kernel did not return."""
        body = struct.pack("<Q4I", NO_END if end is None else end, core, block, subtask, func_id)
        self.records.append(record(EXECUTION, task, NONE, arg=NONE, thread=thread, time=start, body=body))
        self.executions.setdefault(task, []).append((start, end, core))

    def tensor(self, task, arg, name, shape, data, *, role=0, stage=0, strides=None, start=0, keep=None, flags=0, stats=None,
               address=0x1000, time=0, thread=0, is_hashed=True):
        """`data` are all bytes of its elements, of which the first `keep` are stored; None for no payload. `stats` are
        the seven values of the record and what the manifest says of them."""
        strides = row_major(shape) if strides is None else strides
        kept = None if data is None else bytes(data[:keep])
        value = Hash128() if kept is None else xxhash.XXH3_128bits(kept, len(kept))
        offset, is_duplicate = self.store(kept, not flags & IN_FLIGHT)
        size = len(kept or b"")
        for flag, is_set in ((CONTIGUOUS, is_contiguous(name, shape, strides, start)), (PAYLOAD, kept is not None),
                             (HASH, kept is not None and is_hashed), (TRUNCATED, keep is not None),
                             (STATS, stats), (DUPLICATE, is_duplicate)):
            flags |= flag if is_set else 0
        body = struct.pack("<5Qq", address, offset, size, value.low, value.high, start)
        body += struct.pack(f"<{2 * len(shape)}q", *shape, *strides) + (stats[0] if stats else b"")
        self.announce(name)
        self.records.append(record(TENSOR, task, stage, role, arg, DTYPES.index(name), len(shape), flags, thread, time, body))
        entry = self.entry(task, arg, role, stage, "tensor", name)
        entry |= {"shape": list(shape), "strides": list(strides), "start_offset": start,
                  "numel": int(np.prod(shape, dtype=object)), "is_contiguous": bool(flags & CONTIGUOUS),
                  "buffer_addr": f"0x{address:016x}", "bin_offset": offset, "bin_size": size}
        if flags & HASH:
            entry["hash"] = f"{value.high:016x}{value.low:016x}"
        self.finish(entry, task, flags, time, thread)
        if stats:
            entry["stats"] = stats[1]

    def announce(self, name):
        """A dtype from 17 on has a record of type 128 + its number before the first that uses it."""
        if DTYPES.index(name) >= 17 and name not in self.announced:
            self.announced.add(name)
            self.records.append(record(128 + DTYPES.index(name)))

    def store(self, kept, is_shared):
        """Where the bytes lie, and whether they lay there before."""
        if kept is None:
            return 0, False
        if is_shared and kept in self.places:
            return self.places[kept], True
        self.payload += bytes(-len(self.payload) % 64)
        offset = len(self.payload)
        self.payload += kept
        if is_shared and kept:
            self.places[kept] = offset
        return offset, False

    def scalar(self, task, arg, name, bits, value, *, role=0, stage=0, flags=0, time=0, thread=0):
        """`value` is what the manifest says of the bits."""
        self.announce(name)
        self.records.append(record(SCALAR, task, stage, role, arg, DTYPES.index(name), 0, flags, thread, time,
                                   struct.pack("<Q", bits)))
        entry = self.entry(task, arg, role, stage, "scalar", "uint64" if name == "none" else name)
        entry |= {"value": value, "bits": f"0x{bits:016x}", "shape": [], "strides": [], "start_offset": 0, "numel": 1,
                  "is_contiguous": True, "bin_offset": 0, "bin_size": 0}
        self.finish(entry, task, flags, time, thread)

    def entry(self, task, arg, role, stage, kind, name):
        entry = {"task_seq": task, "arg_index": arg, "role": ROLES[role], "stage": STAGES[stage], "kind": kind, "dtype": name}
        self.entries.append(entry)
        return entry

    def finish(self, entry, task, flags, time, thread):
        entry |= {"truncated": bool(flags & TRUNCATED), "overwritten": False, "in_flight": bool(flags & IN_FLIGHT),
                  "time_ns": time, "thread": thread, "is_duplicate": bool(flags & DUPLICATE),
                  "has_payload": bool(flags & PAYLOAD)}

    def loss(self, task, arg, stage, cause, count):
        self.records.append(record(LOSS, task, stage, arg=arg, body=struct.pack("<2IQ", cause, 0, count)))
        self.losses.append((task, arg, stage, cause, count))

    def skipped(self, task, arg, reason, func_id):
        self.records.append(record(SKIPPED, task, NONE, arg=arg, body=struct.pack("<2I", reason, func_id)))
        self.skips.append((task, arg, reason, func_id))

    def end(self, text="ok", is_complete=True):
        counts = self.counts()
        body = struct.pack("<8Q", len(self.entries), len(self.tasks), self.dispatch_count, counts["payload_bytes"],
                           counts["stored_bytes"], counts["deduplicated_tensors"], counts["dropped_records"], 77)
        self.records.append(text_record(END, body, text, flags=COMPLETE if is_complete else 0))
        self.status, self.is_complete, self.has_end = text, is_complete, True

    def run_record(self):
        run = {"generator": "hand", "run": self.run, "dump_level": self.level, "kernels": list(self.kernels.values())}
        return text_record(RUN, b"", json.dumps(run))

    def write(self, records_per_block=16):
        groups = [[self.run_record()]]
        groups += [self.records[i:i + records_per_block] for i in range(0, len(self.records), records_per_block)]
        self.blocks = [block(i, group) for i, group in enumerate(groups)]
        self.records_in_blocks = [len(group) for group in groups]
        self.inner.mkdir(parents=True, exist_ok=True)
        (self.inner / "tensor_dump.rec").write_bytes(self.journal())
        (self.inner / "tensor_dump.bin").write_bytes(self.payload)
        return self

    def journal(self):
        return self.header + b"".join(self.blocks)

    # --- the manifest ---

    def kernel_names(self, func_ids):
        return [self.kernels[i]["name"] if i in self.kernels else None for i in func_ids]

    def arg_name(self, func_ids, arg):
        """`arg_names` has the order of the signature, slots have tensors first."""
        for func_id in func_ids:
            kernel = self.kernels.get(func_id, {})
            signature, names = kernel.get("signature", []), kernel.get("arg_names", [])
            slots = [i for i, word in enumerate(signature) if not word.startswith("scalar")]
            slots += [i for i, word in enumerate(signature) if word.startswith("scalar")]
            if arg < len(slots) and slots[arg] < len(names) and names[slots[arg]] is not None:
                return names[slots[arg]]
        return None

    def manifest_entry(self, index, entry):
        task = self.tasks.get(entry["task_seq"])
        subtasks = [i for i in range(3) if task and task["func_ids"][i] is not None]
        func_ids = [task["func_ids"][i] for i in subtasks]
        members = {**entry, "index": index, "task_id": f"0x{task['id']:016x}" if task else None, "func_id": func_ids,
                "kernel": self.kernel_names(func_ids), "block_num": task["blocks"] if task else None,
                "subtasks": [SUBTASKS[i] for i in subtasks], "start_ns": None, "end_ns": None, "cores": None}
        ran = self.executions.get(entry["task_seq"])
        if ran:
            ends = [end for _, end, _ in ran]
            members |= {"start_ns": min(start for start, _, _ in ran), "end_ns": None if None in ends else max(ends),
                     "cores": sorted({core for _, _, core in ran})}
        if self.arg_name(func_ids, entry["arg_index"]) is not None:
            members["arg_name"] = self.arg_name(func_ids, entry["arg_index"])
        return members

    def counts(self):
        settled = [entry for entry in self.entries if not entry["in_flight"]]
        counts = {"total_tensors": len(settled), "in_flight_tensors": len(self.entries) - len(settled)}
        counts |= {stage: sum(entry["stage"] == stage for entry in settled) for stage in STAGES}
        counts |= {f"{role}_tensors": sum(entry["role"] == role for entry in settled) for role in ROLES}
        counts["truncated_tensors"] = sum(entry["truncated"] for entry in settled)
        counts["deduplicated_tensors"] = sum(entry["is_duplicate"] for entry in settled)
        counts["dropped_records"] = sum(loss[4] for loss in self.losses)
        counts["payload_bytes"] = sum(entry["bin_size"] for entry in self.entries)
        counts["stored_bytes"] = sum(entry["bin_size"] for entry in self.entries if not entry["is_duplicate"])
        return counts

    def task_id(self, task):
        return f"0x{self.tasks[task]['id']:016x}" if task in self.tasks else None

    def shown(self):
        """The manifest's entries, each with `has_payload` and `is_duplicate`, which are flags of the journal alone."""
        ordered = sorted(self.entries, key=lambda e: (e["task_seq"], STAGES.index(e["stage"]), e["arg_index"]))
        return [self.manifest_entry(index, entry) for index, entry in enumerate(ordered)]

    def manifest(self):
        of_journal = ("has_payload", "is_duplicate")
        entries = [{key: value for key, value in entry.items() if key not in of_journal} for entry in self.shown()]
        # A loss of no argument and no stage is of no task that is known.
        losses = [{"task_id": None if (arg, stage) == (NONE, NONE) else self.task_id(task),
                   "task_seq": None if (arg, stage) == (NONE, NONE) else task, "arg_index": None if arg == NONE else arg,
                   "stage": None if stage == NONE else STAGES[stage], "cause": CAUSES[cause], "count": count}
                  for task, arg, stage, cause, count in self.losses]
        skipped = [{"task_id": self.task_id(task), "task_seq": task, "arg_index": None if arg == NONE else arg,
                    "kernel": self.kernel_names([func_id])[0], "reason": REASONS[reason],
                    "reason_code": REASON_CODES[reason]}
                   for task, arg, reason, func_id in self.skips]
        kernels = [{key: kernel.get(key) for key in ("func_id", "name", "core_type", "signature")}
                   for kernel in self.kernels.values()]
        return {"schema_version": 1, "generator": "hand", "run": self.run, "run_dir": self.directory.name,
                "bin_file": "tensor_dump.bin", "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
                "dump_level": self.level, "complete": self.is_complete, "status": self.status, **self.counts(),
                "dropped_overwrite": 0, "stall_ns": 77 if self.has_end else 0, "kernels": kernels, "losses": losses,
                "skipped": skipped, "finding_count": 0, "findings": [], "tensors": entries}
