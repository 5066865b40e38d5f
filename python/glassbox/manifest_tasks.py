"""Tasks of a manifest, from their entries, which must agree."""
from __future__ import annotations

from .manifest_entry import NO_FUNCTION, Entry
from .manifest_fields import Faulty

_NO_FUNCTIONS = (NO_FUNCTION,) * 3


class Task:
    __slots__ = ("id", "id_text", "number", "functions", "has_subtasks", "block_num")

    def __init__(self, entry: Entry) -> None:
        self.id = entry.task_id
        self.id_text = None if entry.task_id is None else f"0x{entry.task_id:016x}"
        self.number = 0 if entry.task_seq is None else entry.task_seq
        self.functions = _NO_FUNCTIONS
        self.has_subtasks = False
        self.block_num = entry.block_num or 0

    def join(self, entry: Entry) -> None:
        if self.id != entry.task_id:
            raise Faulty(f".task_id: differs from an earlier entry of task_seq {self.number}")
        if self.block_num != (entry.block_num or 0):
            raise Faulty(f".block_num: {entry.block_num or 0} differs from the {self.block_num} of an earlier entry of the same "
                         "task")
        if entry.functions == self.functions or entry.functions == _NO_FUNCTIONS:
            return
        if self.functions == _NO_FUNCTIONS:
            self.functions, self.has_subtasks = entry.functions, entry.has_subtasks
        elif self.has_subtasks or entry.has_subtasks:
            raise Faulty(".func_id: differs from an earlier entry of the same task")
        else:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        """Entries without subtasks may each name some of the kernels."""
        joined = list(self.functions)
        for function in entry.functions:
            if function == NO_FUNCTION:
                continue
            place = next((i for i, known in enumerate(joined) if known in (NO_FUNCTION, function)), None)
            if place is None:
                raise Faulty(f".func_id: {function} is one too many: the entries of the task name more than 3 kernels")
            joined[place] = function
        self.functions = tuple(joined)


class Tasks:
    """Tasks by task_seq, which all entries have or none; without it by task_id, numbered in order of appearance."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        self._is_numbered: bool | None = None

    def join(self, entry: Entry) -> Task:
        is_numbered = entry.task_seq is not None
        if self._is_numbered is None:
            self._is_numbered = is_numbered
        if self._is_numbered != is_numbered:
            raise Faulty(f".task_seq: is {'given' if is_numbered else 'missing'}, unlike in earlier entries")
        key = entry.task_seq if is_numbered else entry.task_id
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = Task(entry)
        task.join(entry)
        return task

    def number(self) -> None:
        for position, task in enumerate(self._tasks.values()):
            if not self._is_numbered:
                task.number = position

    def ids(self) -> dict[int, str]:
        return {task.number: task.id_text for task in self._tasks.values() if task.id_text is not None}
