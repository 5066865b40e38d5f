"""The contents of a journal, in the form of the manifest."""
from __future__ import annotations

import functools
import math
import struct
from typing import Any, Iterator, Sequence

import numpy as np

from . import run_info
from .columns import NO_KERNEL, Columns, TaskTable
from .dtypes import BY_CODE, json_float, json_scalar, json_value, scalar_value
from .journal import Journal
from .manifest_entry import ROLES, STAGES
from .record_checks import tail_words
from .record_heads import (COMPLETE, CONTIGUOUS, DONE, DUPLICATE, EDGES, END, EXECUTION, FINDING, HASH, IN_FLIGHT, LOSS, NONE,
                           PAYLOAD, RESULT, SCALAR,
                           SKIPPED, STATS, TASK, TENSOR, TRUNCATED)

_CAUSES = ("stall", "disk", "corrupt", "device")
REASONS = ("the tensors of the task were never described",
           "the description of the argument does not match what the kernel gets",
           "the signature calls the argument a tensor, but it was never described")
REASON_CODES = ("undescribed", "misdescribed", "undescribed_tensor")
_CHUNK = 16384
_ENDINGS = {1: "well", 2: "records_lost", 3: "failed"}
_OUTCOME = struct.Struct("<4IQ4IQ2I")
_SUMS, _SUMS_EXACT = struct.Struct("<I4x2Q"), 1
_NO_END = 2**64 - 1
_NO_TASK = 2**64 - 1
# kind, place, time, finder, address, bytes, first, span, changed, index, owner_func, owner_task, certainty,
# candidate_count, candidate_total, run_total, three words, eight candidates (task, func_id, arg_index).
_FINDING = struct.Struct("<2I4Qq2Q2IQ2I5Q" + "Q2I" * 8)
_FINDING_KINDS = (None, "overrun", "underrun", "stray", "arguments_overwritten")
_FINDING_PLACES = (None, "run_argument", "allocation", "device_malloc", "output", "arguments", "own")
_CERTAINTIES = ("open", "likely", "sure")


class JournalEntries:
    """Tensors and scalars in the order of the manifest; each entry is made when it is used."""

    wrong_totals: tuple[str, ...] = ()

    def __init__(self, journal: Journal, directory_name: str) -> None:
        self.journal = journal
        self.checksums_verified = journal.checksums_verified
        self.run = run_info.parse(journal)
        heads = journal.of_type(TENSOR, SCALAR)
        order = np.lexsort((heads.arg, heads.stage, heads.task))
        self.heads = heads.take(order)
        self.tasks = self._read_tasks()
        self._last_row, self._last_task = -1, self.tasks.describe(-1)
        self.row_of_entry = self.tasks.rows(self.heads.task)
        self.columns = self._columns()
        self.kernel_names = {kernel["func_id"]: kernel["name"] for kernel in self.run.kernels}
        self.info = self._info(directory_name)

    def __len__(self) -> int:
        return len(self.heads.at)

    def entries(self, indices: Sequence[int] | np.ndarray) -> Iterator[dict[str, Any]]:
        """The entries at these positions, in the form of tensor_dump.json."""
        indices = np.asarray(indices, np.int64)
        for begin in range(0, len(indices), _CHUNK):
            chunk = indices[begin:begin + _CHUNK]
            rows = self.row_of_entry[chunk].tolist()
            columns = [column.tolist() for column in self.heads.take(chunk)]
            for index, row, *head in zip(chunk.tolist(), rows, *columns):
                yield self._entry(index, row, *head)

    def arg_names(self) -> tuple[list[str | None], np.ndarray]:
        """The distinct names of arguments, and for each record the index of its name."""
        columns = self.columns
        pairs = np.column_stack([columns.functions, columns.arg.astype(np.int64)])
        different, which = np.unique(pairs, axis=0, return_inverse=True)
        names = [self.run.slot_name([f for f in row[:3] if f != NO_KERNEL], row[3]) for row in different.tolist()]
        return names, which.reshape(-1)

    def _entry(self, index: int, row: int, at: int, kind: int, stage: int, role: int, arg: int, code: int, ndims: int,
               flags: int, words: int, thread: int, task: int, time: int) -> dict[str, Any]:
        task_id, functions, subtasks, block_num, kernels = self._task(row)
        dtype = BY_CODE[code]
        entry: dict[str, Any] = {"index": index, "task_id": task_id, "task_seq": task, "func_id": functions,
                                 "kernel": kernels, "arg_index": arg}
        name = self.run.slot_name(functions, arg)
        if name is not None:
            entry["arg_name"] = name
        entry["role"], entry["stage"] = ROLES[role], STAGES[stage]
        entry["kind"], entry["dtype"] = "scalar" if kind == SCALAR else "tensor", dtype.name
        if kind == SCALAR:
            bits = int(self.journal.words[at + 4])
            entry |= {**json_scalar(bits, dtype), "shape": [], "strides": [], "start_offset": 0, "numel": 1,
                      "is_contiguous": True, "bin_offset": 0, "bin_size": 0}
        else:
            self._add_tensor(entry, at, ndims, flags)
        entry |= {"truncated": bool(flags & TRUNCATED), "overwritten": False, "in_flight": bool(flags & IN_FLIGHT),
                  "time_ns": time, "thread": thread, "block_num": block_num, "subtasks": subtasks, **self._span(task)}
        if flags & STATS and kind == TENSOR:
            entry["stats"] = self._stats(at + 10 + 2 * ndims, dtype)
        return entry

    @functools.cached_property
    def executions(self) -> list[dict[str, Any]]:
        """Where and when each dispatch ran, by task, block and subtask."""
        heads, words = self.journal.of_type(EXECUTION), self.journal.words
        executions = []
        for at, task, time in zip(heads.at.tolist(), heads.task.tolist(), heads.time.tolist()):
            end, *pairs = words[at + 4:at + 7].tolist()
            core, block, subtask, function = (half for pair in pairs for half in (pair & 0xFFFFFFFF, pair >> 32))
            executions.append({"task_seq": task, "func_id": function, "kernel": self.run.kernel_name(function),
                               "subtask_id": subtask, "core_id": core, "block_idx": block, "start_ns": time,
                               "end_ns": None if end == _NO_END else end})
        return sorted(executions, key=lambda one: (one["task_seq"], one["block_idx"], one["subtask_id"]))

    @functools.cached_property
    def _spans(self) -> dict[int, dict[str, Any]]:
        """`start_ns`, `end_ns` and `cores` of each task that ran."""
        spans: dict[int, dict[str, Any]] = {}
        for one in self.executions:
            span = spans.setdefault(one["task_seq"], {"start_ns": one["start_ns"], "end_ns": 0, "cores": set()})
            span["start_ns"] = min(span["start_ns"], one["start_ns"])
            has_end = span["end_ns"] is not None and one["end_ns"] is not None
            span["end_ns"] = max(span["end_ns"], one["end_ns"]) if has_end else None
            span["cores"].add(one["core_id"])
        return spans

    def _span(self, task: int) -> dict[str, Any]:
        span = self._spans.get(task)
        return {**span, "cores": sorted(span["cores"])} if span else {"start_ns": None, "end_ns": None, "cores": None}

    def _task(self, row: int) -> tuple[str | None, list[int], list[str], int | None, list[str | None]]:
        """The task in this row of the table; every record gets its own lists."""
        if row != self._last_row:
            self._last_row, self._last_task = row, self.tasks.describe(row)
        task_id, functions, subtasks, block_num = self._last_task
        return task_id, [*functions], [*subtasks], block_num, [self.kernel_names.get(function) for function in functions]

    def _add_tensor(self, entry: dict[str, Any], at: int, ndims: int, flags: int) -> None:
        body = self.journal.words[at + 4:at + 10 + 2 * ndims]
        address, offset, size, low, high = body[:5].tolist()
        start, *geometry = body[5:].view(np.int64).tolist()
        shape = geometry[:ndims]
        entry |= {"shape": shape, "strides": geometry[ndims:], "start_offset": start, "numel": math.prod(shape),
                  "is_contiguous": bool(flags & CONTIGUOUS), "buffer_addr": f"0x{address:016x}",
                  "bin_offset": offset if flags & PAYLOAD else 0, "bin_size": size if flags & PAYLOAD else 0}
        if flags & HASH:
            entry["hash"] = f"{high:016x}{low:016x}"

    def _stats(self, at: int, dtype: Any) -> dict[str, Any]:
        form = {"float": "d", "int": "q"}.get(dtype.kind, "Q")
        low, high, mean, *counts = struct.unpack(f"<2{form}d4Q", self.journal.words[at:at + 7].tobytes())
        return {"min": json_value(low, dtype), "max": json_value(high, dtype), "mean": json_float(mean, False),
                **dict(zip(("nan", "inf", "zero", "subnormal"), counts))}

    def _read_tasks(self) -> TaskTable:
        heads, words = self.journal.of_type(TASK), self.journal.words
        pairs = words[heads.at[:, None] + np.arange(5, 8)].astype("<u8").view("<u4").reshape(-1, 6).astype(np.int64)
        functions = np.where(pairs[:, :3] == 0xFFFFFFFF, NO_KERNEL, pairs[:, :3])
        done, edges = self.journal.of_type(DONE), self.journal.of_type(EDGES)
        table = TaskTable(heads.task.astype(np.int64), words[heads.at + 4], functions, pairs[:, 3],
                          heads.time.astype(np.int64))
        table.set_completions(done.task.astype(np.int64), done.time.astype(np.int64))
        begin = edges.at + 4
        end = edges.at + edges.words - tail_words(words, edges.at)
        table.set_edges(edges.task.astype(np.int64), begin, end, words)
        return table

    def _columns(self) -> Columns:
        heads = self.heads
        row = self.row_of_entry
        return Columns(heads.task.astype(np.int64), *self.tasks.gather(row), heads.arg, heads.role, heads.stage,
                       heads.type == SCALAR, heads.dtype)

    def _info(self, directory_name: str) -> dict[str, Any]:
        heads, words = self.heads, self.journal.words
        counted = heads.take((heads.flags & IN_FLIGHT) == 0)
        has_payload = (heads.type == TENSOR) & ((heads.flags & PAYLOAD) != 0)
        sizes = words[np.where(has_payload, heads.at + 6, 0)] * has_payload
        is_duplicate = (heads.flags & DUPLICATE) != 0
        is_complete, status, stall = self._end()
        losses, results = self._losses(), self._results()
        stored = self.journal.of_type(RESULT)
        stored = stored.take((stored.flags & (PAYLOAD | DUPLICATE)) == PAYLOAD)
        return {"schema_version": 1, "generator": self.run.generator, "run": self.run.run, "run_dir": directory_name,
                "bin_file": "tensor_dump.bin",
                "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
                "dump_level": self.run.dump_level, "complete": is_complete, "status": status,
                "total_tensors": len(counted.at), **_counts(STAGES, counted.stage),
                **_counts([f"{role}_tensors" for role in ROLES], counted.role),
                "in_flight_tensors": len(heads.at) - len(counted.at),
                "truncated_tensors": int(np.count_nonzero(counted.flags & TRUNCATED)),
                "dropped_records": sum(loss["count"] for loss in losses), "dropped_overwrite": 0,
                "deduplicated_tensors": int(np.count_nonzero(counted.flags & DUPLICATE)),
                "payload_bytes": int(sizes.sum()),
                "stored_bytes": int(sizes[~is_duplicate].sum()), "stall_ns": stall, "total_results": len(results),
                "result_payload_bytes": sum(result["bin_size"] for result in results),
                "result_stored_bytes": int(words[stored.at + 6].sum()),
                "kernels": self.run.kernels,
                "losses": losses, "skipped": self._skipped(),
                "finding_count": self._finding_count(), "findings": self._findings(), "results": results}

    def _results(self) -> list[dict[str, Any]]:
        """The output and in-out tensors of the run at its end."""
        heads, results = self.journal.of_type(RESULT), []
        heads = heads.take(np.argsort(heads.arg, kind="stable"))
        names = self.run.run_args
        for index, (at, role, arg, code, ndims, flags) in enumerate(zip(*(column.tolist() for column in (
                heads.at, heads.role, heads.arg, heads.dtype, heads.ndims, heads.flags)))):
            tensor: dict[str, Any] = {}
            self._add_tensor(tensor, at, ndims, flags)
            pieces = at + 10 + 2 * ndims + (7 if flags & STATS else 0)
            count = int(self.journal.words[pieces])
            where = self.journal.words[pieces + 1:pieces + 1 + 3 * count].reshape(-1, 3).tolist()
            result = {"index": index, "arg_index": arg, "name": names[arg].get("name") if arg < len(names) else None,
                      "role": ROLES[role], "dtype": BY_CODE[code].name, "shape": tensor["shape"],
                      "numel": tensor["numel"],
                      "buffer_addr": tensor["buffer_addr"] if int(tensor["buffer_addr"], 16) else None,
                      "pieces": [{"offset": offset, "address": f"0x{address:016x}", "bytes": size}
                                 for offset, address, size in where],
                      "bin_offset": tensor["bin_offset"], "bin_size": tensor["bin_size"]}
            if "hash" in tensor:
                result["hash"] = tensor["hash"]
            result |= {"truncated": bool(flags & TRUNCATED), "in_flight": bool(flags & IN_FLIGHT)}
            if flags & STATS:
                result["stats"] = self._stats(at + 10 + 2 * ndims, BY_CODE[code])
            results.append(result)
        return results

    def _end(self) -> tuple[bool, str, int]:
        ends = self.journal.of_type(END)
        if len(ends.at) == 0:
            return False, "killed", 0
        at = int(ends.at[0])
        status = self.journal.text(at, 12).decode("utf-8", "replace")
        return bool(ends.flags[0] & COMPLETE), status, int(self.journal.words[at + 11])

    def _tail_of_end(self) -> bytes:
        ends = self.journal.of_type(END)
        if len(ends.at) == 0:
            return b""
        at = int(ends.at[0])
        words = self.journal.words[at:at + (int(self.journal.words[at + 1]) & 0xffffffff)]
        return words[13 + (int(words[12]) + 7) // 8:].tobytes()

    def announced(self) -> int | None:
        """How many arguments the tasks announced; None if the writer could not say."""
        tail = self._tail_of_end()
        if len(tail) < _OUTCOME.size + _SUMS.size:
            return None
        state, announced, _ = _SUMS.unpack_from(tail, _OUTCOME.size)
        return announced if state == _SUMS_EXACT else None

    def outcome(self) -> dict[str, Any] | None:
        """How the run ended, as numbers; None without an END record or its tail."""
        tail = self._tail_of_end()
        if len(tail) < _OUTCOME.size:
            return None
        ending, code, fault, signal, task_id, func_id, core, block, blocks, address, kind, _ = _OUTCOME.unpack_from(tail)
        has_kernel = func_id != 2**32 - 1
        return None if ending == 0 else {
            "ending": _ENDINGS.get(ending), "code": code, "fault": fault, "signal": signal or None,
            "task_id": task_id if has_kernel else None, "func_id": func_id if has_kernel else None,
            "core_id": core if has_kernel else None, "block_idx": block if has_kernel else None,
            "block_num": blocks if has_kernel else None, "address": address if kind == 1 else None}

    def _losses(self) -> list[dict[str, Any]]:
        heads, losses = self.journal.of_type(LOSS), []
        for at, task, stage, arg in zip(heads.at.tolist(), heads.task.tolist(), heads.stage.tolist(),
                                        heads.arg.tolist()):
            # Without stage and argument, the task is unknown.
            is_of_task = stage != NONE or arg != NONE
            losses.append({"task_id": self.tasks.id_of(task) if is_of_task else None,
                           "task_seq": task if is_of_task else None, "arg_index": None if arg == NONE else arg,
                           "stage": None if stage == NONE else STAGES[stage],
                           "cause": _CAUSES[int(self.journal.words[at + 4]) & 0xFFFFFFFF],
                           "count": int(self.journal.words[at + 5]), "result": self._lost_result(at),
                           **({"is_least": True} if int(self.journal.words[at + 4]) >> 32 else {})})
        return losses

    def _lost_result(self, at: int) -> int | None:
        """The argument of the run whose result a LOSS counts."""
        has_tail = int(self.journal.words[at + 1]) & 0xFFFFFFFF > 7
        number = int(self.journal.words[at + 7]) if has_tail else 0
        return number - 1 if 0 < number <= 64 else None

    def _finding_bodies(self) -> list[tuple[int, ...]]:
        words = self.journal.words
        return [_FINDING.unpack(words[at + 4:at + 36].tobytes()) for at in self.journal.of_type(FINDING).at.tolist()]

    def _finding_count(self) -> int:
        """All of the run: the journal keeps the first of them."""
        count = 0
        for body in self._finding_bodies():
            count = body[15] if body[15] > count else count + (body[15] == 0)
        return count

    def _findings(self) -> list[dict[str, Any]]:
        findings = []
        for body in self._finding_bodies():
            (kind, place, time, finder, address, size, first, span, changed, index, owner_func, owner, certainty, kept,
             total) = body[:15]
            candidates = [{"task_seq": task, "func_id": _known(func_id, NO_KERNEL),
                           "kernel": self.run.kernel_name(func_id), "arg_index": _known(arg, NO_KERNEL)}
                          for task, func_id, arg in (body[i:i + 3] for i in range(19, 19 + 3 * kept, 3))]
            findings.append({"kind": _named(_FINDING_KINDS, kind), "time_ns": time, "finder_seq": _known(finder, _NO_TASK),
                             "place": _named(_FINDING_PLACES, place), "place_index": index,
                             "owner_seq": _known(owner, _NO_TASK), "owner_func_id": _known(owner_func, NO_KERNEL),
                             "owner_kernel": self.run.kernel_name(owner_func),
                             "buffer_addr": f"0x{address:016x}", "buffer_bytes": size, "first_byte": first,
                             "span_bytes": span, "changed_bytes": changed,
                             "certainty": _named(_CERTAINTIES, certainty), "candidate_count": total,
                             "candidates": candidates})
        return findings

    def _skipped(self) -> list[dict[str, Any]]:
        heads, skipped = self.journal.of_type(SKIPPED), []
        for at, task, arg in zip(heads.at.tolist(), heads.task.tolist(), heads.arg.tolist()):
            word = int(self.journal.words[at + 4])
            # The journal has one number for a task and for an argument that was never described.
            reason = word & 0xFFFFFFFF or (0 if arg == NONE else 2)
            skipped.append({"task_id": self.tasks.id_of(task), "task_seq": task,
                            "arg_index": None if arg == NONE else arg, "kernel": self.run.kernel_name(word >> 32),
                            "reason": REASONS[reason], "reason_code": REASON_CODES[reason]})
        return skipped


def _known(number: int, none: int) -> int | None:
    return None if number == none else number


def _named(names: Sequence[str | None], number: int) -> str | None:
    return names[number] if number < len(names) else None


def _counts(names: Sequence[str], codes: np.ndarray) -> dict[str, int]:
    return dict(zip(names, np.bincount(codes, minlength=len(names)).tolist()))
