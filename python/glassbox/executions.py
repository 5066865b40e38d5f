"""Where and when dispatches ran."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .journal import Journal
from .record_heads import EXECUTION

NO_END = (1 << 64) - 1


class Execution(NamedTuple):
    """One subtask of one block of a task on a core. `end_ns` is None where its kernel did not return."""

    task: int
    block_idx: int
    subtask: int
    core_id: int
    func_id: int
    start_ns: int
    end_ns: int | None
    thread: int


def read(journal: Journal) -> list[Execution]:
    """All of a journal, in the order of tasks, blocks and subtasks; none in dumps of versions that had no such records."""
    heads, words = journal.of_type(EXECUTION), journal.words
    pairs = words[heads.at[:, None] + np.arange(5, 7)].astype("<u8").view("<u4").reshape(-1, 4)
    order = np.lexsort((pairs[:, 2], pairs[:, 1], heads.task))
    rows = zip(heads.task[order].tolist(), pairs[order].tolist(), heads.time[order].tolist(),
               words[heads.at[order] + 4].tolist(), heads.thread[order].tolist())
    return [Execution(task, block, subtask, core, function, start, None if end == NO_END else end, thread)
            for task, (core, block, subtask, function), start, end, thread in rows]


def by_task(executions: list[Execution]) -> dict[int, dict[str, Any]]:
    """`start_ns`, `end_ns` and `cores` of each task that has any, as the manifest has them."""
    of_task: dict[int, list[Execution]] = {}
    for execution in executions:
        of_task.setdefault(execution.task, []).append(execution)
    return {task: {"start_ns": min(e.start_ns for e in all_of_it),
                   "end_ns": None if any(e.end_ns is None for e in all_of_it) else max(e.end_ns or 0 for e in all_of_it),
                   "cores": sorted({e.core_id for e in all_of_it})} for task, all_of_it in of_task.items()}
