"""Records and tasks as columns: filters test all records at once."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_KERNEL = -1
NO_TASK = -1
_SUBTASKS = ("aic", "aiv0", "aiv1")


class Columns(NamedTuple):
    """One row for each record. If the task is unknown, `task` is NO_TASK and `has_task_id` false."""

    task: np.ndarray
    task_id: np.ndarray
    has_task_id: np.ndarray
    functions: np.ndarray
    arg: np.ndarray
    role: np.ndarray
    stage: np.ndarray
    is_scalar: np.ndarray
    dtype: np.ndarray


class TaskTable:
    """Tasks by number; if a task has two records, the first counts."""

    def __init__(self, numbers: np.ndarray, ids: np.ndarray, functions: np.ndarray, block_nums: np.ndarray,
                 times: np.ndarray) -> None:
        self.numbers, first = np.unique(numbers, return_index=True)
        self.ids, self.functions = ids[first], functions[first]
        self.block_nums, self.times = block_nums[first], times[first]
        nothing = np.zeros(0, np.int64)
        self._done, self._done_times = nothing, nothing
        self._edge_tasks, self._edge_begins, self._edge_ends = nothing, nothing, nothing
        self._words = np.zeros(0, np.uint64)

    def set_completions(self, tasks: np.ndarray, times: np.ndarray) -> None:
        order = np.argsort(tasks, kind="stable")
        self._done, self._done_times = tasks[order], times[order]

    def set_edges(self, tasks: np.ndarray, begins: np.ndarray, ends: np.ndarray, words: np.ndarray) -> None:
        """The predecessors of each task are the journal's words from its `begins` up to its `ends`."""
        order = np.argsort(tasks, kind="stable")
        self._edge_tasks, self._edge_begins, self._edge_ends = tasks[order], begins[order], ends[order]
        self._words = words

    def rows(self, tasks: np.ndarray) -> np.ndarray:
        """The row of each task, or -1."""
        tasks = tasks.astype(np.int64)
        if len(self.numbers) == 0:
            return np.full(len(tasks), -1)
        row = np.minimum(np.searchsorted(self.numbers, tasks), len(self.numbers) - 1)
        return np.where(self.numbers[row] == tasks, row, -1)

    def gather(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For these rows: task ids, whether each is known, and functions."""
        if len(self.numbers) == 0:
            return np.zeros(len(rows), np.uint64), np.zeros(len(rows), bool), np.full((len(rows), 3), NO_KERNEL)
        is_known = rows >= 0
        return self.ids[rows], is_known, np.where(is_known[:, None], self.functions[rows], NO_KERNEL)

    def describe(self, row: int) -> tuple[str | None, list[int], list[str], int | None]:
        """Task id, functions, subtasks and number of blocks, as in the manifest."""
        if row < 0:
            return None, [], [], None
        functions = self.functions[row].tolist()
        active = [i for i in range(3) if functions[i] != NO_KERNEL]
        return (f"0x{int(self.ids[row]):016x}", [functions[i] for i in active], [_SUBTASKS[i] for i in active],
                int(self.block_nums[row]))

    def id_of(self, task: int) -> str | None:
        return self.describe(int(self.rows(np.array([task]))[0]))[0]

    def times_of(self, task: int) -> tuple[int | None, int | None]:
        """When the task was first dispatched and when it completed, in ns since the start of the run."""
        row = int(self.rows(np.array([task]))[0])
        low, high = np.searchsorted(self._done, [task, task + 1])
        return int(self.times[row]) if row >= 0 else None, int(self._done_times[low]) if low < high else None

    def predecessors_of(self, task: int) -> list[int]:
        low, high = np.searchsorted(self._edge_tasks, [task, task + 1])
        found: list[int] = []
        for begin, end in zip(self._edge_begins[low:high], self._edge_ends[low:high]):
            found += self._words[begin:end].tolist()
        return found
