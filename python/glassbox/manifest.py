"""Manifests: tensor_dump.json of glassbox, and manifests of other tools in the same form."""
from __future__ import annotations

import contextlib
import gc
import os
import pathlib
from typing import Any, Iterator, Sequence

import numpy as np

from . import json_text, manifest_entry
from .columns import NO_KERNEL, Columns
from .dtypes import BY_NAME
from .errors import DumpError
from .files import open_regular, reason
from .manifest_entry import ROLES, STAGES, SUBTASKS, Entry
from .manifest_fields import Faulty, shorten
from .manifest_head import Head
from .manifest_kernels import Kernels
from .manifest_tasks import Task, Tasks

_STAGE_ORDER = {stage: position for position, stage in enumerate(STAGES)}
_COUNT_END = 1 << 64


class ManifestEntries:
    """The entries of a manifest, in its order, with those fields that both glassbox writes and the manifest has."""

    checksums_verified = False
    journal = None
    tasks = None

    def __init__(self, path: pathlib.Path, directory_name: str) -> None:
        self.path = path
        try:
            with _uncollected():
                self._read(json_text.load(path), directory_name)
        except Faulty as faulty:
            raise DumpError(f"{path}{faulty}") from None
        except RecursionError:
            raise DumpError(f"{path}: values are nested too deeply") from None

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, indices: Sequence[int] | np.ndarray) -> Iterator[dict[str, Any]]:
        for index in np.asarray(indices).tolist():
            yield dict(self._entries[index])

    def arg_names(self) -> tuple[list[str | None], np.ndarray]:
        """The distinct names of arguments, and for each record the index of its name."""
        names: dict[str | None, int] = {}
        which = [names.setdefault(entry.get("arg_name"), len(names)) for entry in self._entries]
        return list(names), np.array(which, np.int64)

    def _read(self, document: dict[str, Any], directory_name: str) -> None:
        head = Head(document)
        kernels, tasks, extents = Kernels(), Tasks(), _Extents()
        given = document[head.array]
        rows: list[tuple[dict[str, Any], Task]] = []
        for position in range(len(given)):
            try:
                rows.append(_take(given[position], kernels, tasks, extents))
            except Faulty as faulty:
                raise Faulty(f": {head.array}[{position}]{faulty}; {position} records before it are readable") from None
            given[position] = None  # frees memory: there may be a million
        head.kernels(kernels)
        self.kernel_names: dict[int, str | None] = dict(kernels.names)
        self._finish(rows, kernels, tasks)
        self.columns = self._columns()
        of_results = _Extents()
        of_results.seen = extents.seen
        for result, has_payload in head.results:
            if has_payload:
                of_results.add(result["bin_offset"], result["bin_size"], result["in_flight"])
        self._check_payload(head, max(extents.end, of_results.end))
        self.info = self._info(head, kernels, tasks, extents, of_results, directory_name)
        self.wrong_totals = head.wrong_totals(self.info)

    def _finish(self, rows: list[tuple[dict[str, Any], Task]], kernels: Kernels, tasks: Tasks) -> None:
        """Sorts entries as glassbox does, and adds what is known about their tasks."""
        tasks.number()
        rows.sort(key=lambda row: (row[1].number, _STAGE_ORDER[row[0]["stage"]], row[0]["arg_index"]))
        self._entries = [fields for fields, _ in rows]
        has_names = bool(kernels.table)
        slot_names: dict[tuple[Any, int], str | None] = {}
        for index, (fields, task) in enumerate(rows):
            fields["index"], fields["task_id"], fields["task_seq"] = index, task.id_text, task.number
            functions = fields["func_id"] = [function for function in task.functions if function != NO_KERNEL]
            slot = task.functions, fields["arg_index"]
            if slot not in slot_names:
                slot_names[slot] = kernels.slot_name(functions, fields["arg_index"])
            fields["arg_name"] = slot_names[slot]
            if fields["arg_name"] is None:
                del fields["arg_name"]
            if has_names:
                fields["kernel"] = [kernels.names.get(function) for function in functions]
            else:
                del fields["kernel"]
            if "subtasks" in fields:
                fields["block_num"] = task.block_num if task.id is not None else None
                fields["subtasks"] = [name for name, function in zip(SUBTASKS, task.functions) if function != NO_KERNEL]
        for names in (("buffer_addr",), ("time_ns", "thread"), ("block_num", "subtasks"),
                      ("start_ns", "end_ns", "cores")):
            _drop_unless_all(self._entries, names)

    def _columns(self) -> Columns:
        entries = self._entries
        functions = [(entry["func_id"] + [NO_KERNEL] * 3)[:3] for entry in entries]
        ids = [entry["task_id"] for entry in entries]
        roles = {role: position for position, role in enumerate(ROLES)}
        codes = {name: dtype.code for name, dtype in BY_NAME.items()}
        return Columns(np.array([entry["task_seq"] for entry in entries], np.int64),
                       np.array([int(text or "0", 16) for text in ids], np.uint64),
                       np.array([text is not None for text in ids], bool),
                       np.array(functions, np.int64).reshape(len(entries), 3),
                       np.array([entry["arg_index"] for entry in entries], np.int64),
                       np.array([roles[entry["role"]] for entry in entries], np.int64),
                       np.array([_STAGE_ORDER[entry["stage"]] for entry in entries], np.int64),
                       np.array([entry["kind"] == "scalar" for entry in entries], bool),
                       np.array([codes[entry["dtype"]] for entry in entries], np.int64))

    def _check_payload(self, head: Head, payload_end: int) -> None:
        if payload_end == 0:
            return
        if head.bin_file is None:
            raise Faulty(': "bin_file" is missing, but entries have payload')
        path = self.path.parent / head.bin_file
        try:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else error
            raise DumpError(f"cannot read {path}: {why}; it holds the payload of tensors") from None
        for entry in [*self._entries, *(result for result, _ in head.results)] if payload_end > size else ():
            begin, end = entry["bin_offset"], entry["bin_offset"] + entry["bin_size"]
            if end > size:
                what = f"record {entry['index']} (task {entry['task_seq']}, arg {entry['arg_index']})" \
                    if "task_seq" in entry else f"result {entry['index']} (argument {entry['arg_index']} of the run)"
                raise Faulty(f": {what} has {end - begin} bytes at offset {begin}, but {shorten(head.bin_file)} ends at "
                             f"{size}: the file is cut off or belongs to another dump")

    def _info(self, head: Head, kernels: Kernels, tasks: Tasks, extents: "_Extents", of_results: "_Extents",
              directory_name: str) -> dict[str, Any]:
        task_ids = tasks.ids()
        losses, skipped = head.losses(task_ids), head.skipped(task_ids, kernels)
        counted = [entry for entry in self._entries if not entry["in_flight"]]
        dropped = min(sum(loss["count"] for loss in losses), _COUNT_END - 1)
        is_complete, status = head.ending(dropped)
        is_killed = is_complete is False and status == "killed"
        return {"schema_version": 1, "generator": head.generator, "run": head.run,
                "run_dir": head.run_dir or directory_name, "bin_file": head.bin_file,
                "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
                "dump_level": head.level,
                "complete": is_complete, "status": status, "total_tensors": len(counted),
                **_counts(counted, "stage", STAGES, ""), **_counts(counted, "role", ROLES, "_tensors"),
                "in_flight_tensors": len(self._entries) - len(counted),
                "truncated_tensors": sum(entry["truncated"] for entry in counted),
                "dropped_records": dropped, "dropped_overwrite": 0,
                "deduplicated_tensors": extents.duplicates, "payload_bytes": min(extents.bytes, _COUNT_END - 1),
                "stored_bytes": min(extents.stored_bytes, _COUNT_END - 1),
                "stall_ns": 0 if is_killed else head.totals.get("stall_ns", 0),
                "total_results": len(head.results), "result_payload_bytes": min(of_results.bytes, _COUNT_END - 1),
                "result_stored_bytes": min(of_results.stored_bytes, _COUNT_END - 1), "kernels": kernels.table,
                "losses": losses, "skipped": skipped, **head.findings,
                "results": [result for result, _ in head.results]}


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pauses garbage collection: searching millions of live objects again and again would take half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Extents:
    """Counts payload bytes; payload that entries share is stored once."""

    def __init__(self) -> None:
        self.end = self.bytes = self.stored_bytes = self.duplicates = 0
        self.seen: set[tuple[int, int]] = set()

    def add(self, offset: int, size: int, is_in_flight: bool) -> None:
        self.end = max(self.end, offset + size)
        self.bytes += size
        place = offset, size
        if size and not is_in_flight and place in self.seen:
            self.duplicates += 1
            return
        self.stored_bytes += size
        if size and not is_in_flight:
            self.seen.add(place)


def _take(given: Any, kernels: Kernels, tasks: Tasks, extents: _Extents) -> tuple[dict[str, Any], Task]:
    entry: Entry = manifest_entry.read(given)
    fields = entry.fields
    for function, name in zip(entry.functions, entry.kernels):
        if name is not None:
            kernels.learn_name(function, name)
    functions = [function for function in entry.functions if function != NO_KERNEL]
    if entry.arg_name is None:
        kernels.learn_nameless(functions, fields["arg_index"])
    else:
        kernels.learn_slot(functions, fields["arg_index"], entry.arg_name)
    if entry.has_payload:
        extents.add(fields["bin_offset"], fields["bin_size"], fields["in_flight"])
    return fields, tasks.join(entry)


def _drop_unless_all(entries: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Drops fields that only some entries have: a table has no holes. Scalars never have an address."""
    expected = [entry for entry in entries if names[0] != "buffer_addr" or entry["kind"] == "tensor"]
    if all(names[0] in entry for entry in expected):
        return
    for entry in expected:
        for name in names:
            entry.pop(name, None)


def _counts(entries: list[dict[str, Any]], field: str, values: Sequence[str], suffix: str) -> dict[str, int]:
    counts = dict.fromkeys(values, 0)
    for entry in entries:
        counts[entry[field]] += 1
    return {value + suffix: count for value, count in counts.items()}
