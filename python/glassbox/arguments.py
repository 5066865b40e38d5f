"""What --dump-args records: the arguments of the orchestration and of every dispatch; and where and when dispatches ran."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from . import json_text
from .dtypes import BY_CODE, json_scalar
from .errors import DumpError
from .files import reason
from .journal_entries import JournalEntries
from .locate import has_bin_file
from .manifest_entry import ROLES
from .record_heads import DISPATCH, RUN_ARG

Span = tuple["int | None", "int | None"]
_CONTEXTS = ((64, "local_context"), (65, "global_context"))


def of_run(source: Any, inner: pathlib.Path) -> list[dict[str, Any]]:
    if not isinstance(source, JournalEntries):
        return _from_file(inner / "args_dump.json", "args")
    heads = source.journal.of_type(RUN_ARG)
    heads = heads.take(np.argsort(heads.arg, kind="stable"))
    rows = zip(heads.at.tolist(), heads.arg.tolist(), heads.dtype.tolist(), heads.ndims.tolist())
    return [_run_argument(source, *row) for row in rows]


def of_dispatches(source: Any, inner: pathlib.Path) -> list[dict[str, Any]]:
    if not isinstance(source, JournalEntries):
        return _from_file(inner / "kernel_args_dump.json", "dispatches")
    words, heads = source.journal.words, source.journal.of_type(DISPATCH)
    block = words[heads.at + 6].astype(np.uint32)
    subtask = words[heads.at + 7].astype(np.uint32)
    heads = heads.take(np.lexsort((subtask, block, heads.task)))
    rows = enumerate(zip(heads.at.tolist(), heads.task.tolist(), heads.time.tolist()))
    spans: dict[tuple[int, int, int], Span] = {}
    for one in source.executions:
        spans.setdefault((one["task_seq"], one["block_idx"], one["subtask_id"]), (one["start_ns"], one["end_ns"]))
    return [_dispatch(source, spans, number, *row) for number, row in rows]


def of_executions(source: Any) -> list[dict[str, Any]]:
    """Sorted by task, block and subtask. Empty without a journal, and for a journal of glassbox 0.1.0."""
    return source.executions if isinstance(source, JournalEntries) else []


def _from_file(path: pathlib.Path, array: str) -> list[dict[str, Any]]:
    """Empty if the file does not exist or is the manifest of another tool."""
    try:
        if not path.is_file() or has_bin_file(path):
            return []
    except OSError as error:
        raise DumpError(f"cannot read {path}: {reason(error)}") from None
    document = json_text.load(path)
    if not isinstance(document.get(array), list):
        raise DumpError(f'{path}: expected an array "{array}"')
    return document[array]


def _run_argument(source: JournalEntries, at: int, arg: int, code: int, ndims: int) -> dict[str, Any]:
    words, dtype = source.journal.words, BY_CODE[code]
    names = source.run.run_args
    word = int(words[at + 5])
    is_tensor = bool(words[at + 4])
    shape = words[at + 6:at + 6 + ndims].view(np.int64).tolist() if is_tensor else []
    argument = {"arg_index": arg, "name": names[arg].get("name") if arg < len(names) else None,
                "type": "tensor" if is_tensor else "scalar", "dtype": dtype.name, "ndims": len(shape), "shape": shape}
    if is_tensor:
        return {**argument, "data_ptr": f"0x{word:016x}"}
    return {**argument, "scalar_value": str(word), **json_scalar(word, dtype)}


def _dispatch(source: JournalEntries, spans: dict[tuple[int, int, int], Span], number: int, at: int, task: int,
              time: int) -> dict[str, Any]:
    task_id, *pairs = source.journal.words[at + 4:at + 8].tolist()
    function, core, block, blocks, subtask, slots = (half for pair in pairs for half in (pair & 0xFFFFFFFF, pair >> 32))
    contexts = source.journal.words[at + 8:at + 10].tolist()
    start, end = spans.get((task, block, subtask), (None, None))
    return {"dispatch_id": number, "task_id": f"0x{task_id:016x}", "task_seq": task, "func_id": function,
            "kernel": source.run.kernel_name(function), "subtask_id": subtask, "core_type": "aiv" if subtask else "aic",
            "core_id": core, "block_idx": block, "block_num": blocks, "stage": "before_dispatch", "time_ns": time,
            "start_ns": start, "end_ns": end, "args": _slots(source.journal.words, at + 10, slots),
            "contexts": [{"arg_index": index, "name": name, "bits": f"0x{bits:016x}"}
                         for (index, name), bits in zip(_CONTEXTS, contexts)]}


def _slots(words: np.ndarray, at: int, count: int) -> list[dict[str, Any]]:
    slots = []
    for _ in range(count):
        head, bits = words[at:at + 2].tolist()
        arg, is_tensor, role, code, ndims, is_word = (head >> 8 * i & 255 for i in range(6))
        dtype = BY_CODE[code]
        slot = {"arg_index": arg, "kind": "tensor" if is_tensor else "word" if is_word else "scalar",
                "role": None if is_word else ROLES[role], "dtype": dtype.name}
        if is_tensor:
            start, *geometry = words[at + 3:at + 4 + 2 * ndims].view(np.int64).tolist()
            slot.update(ndims=ndims, shape=geometry[:ndims], strides=geometry[ndims:], start_offset=start,
                        data_ptr=f"0x{int(words[at + 2]):016x}", bits=f"0x{bits:016x}")
            at += 4 + 2 * ndims
        else:
            slot.update(ndims=0, shape=[], strides=[], start_offset=0, **json_scalar(bits, dtype))
            at += 2
        slots.append(slot)
    return slots
