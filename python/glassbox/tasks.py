"""A dump by its tasks."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, overload

import numpy as np

from .columns import Columns, TaskTable
from .errors import DumpError
from .records import Records

if TYPE_CHECKING:
    from .dump import Dump


class Arguments(Records):
    """The records of one task at one stage; [name] or [slot in args[]] gives one of them."""

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return super().__getitem__(which)
        field = "arg_name" if isinstance(which, str) else "arg_index"
        for record in self:
            if getattr(record, field) == which:
                return record
        known = ", ".join(f"{record.arg_index}" + (f" {record.arg_name}" if record.arg_name else "") for record in self)
        raise DumpError(f"{self._dump.path}: no argument {which!r} here; there are: {known or 'none'}")

    def __contains__(self, which: object) -> bool:
        return any(which in (record.arg_name, record.arg_index) for record in self if which is not None)


class Task:
    """What is known about a task, and its records."""

    def __init__(self, dump: "Dump", group: int, indices: np.ndarray) -> None:
        self._dump = dump
        self._group = group
        self.records = Records(dump, indices)
        table = dump._source.tasks
        row = int(table.rows(np.array([group]))[0]) if table is not None else -1
        names = dump._source.kernel_names
        if row >= 0:
            self.task_id, functions, subtasks, self.block_num = table.describe(row)
            self.func_ids, self.subtasks = tuple(functions), tuple(subtasks)
            self.kernels = tuple(names.get(function) for function in functions)
        else:
            first = self.records[0]
            self.task_id, self.func_ids, self.kernels = first.task_id, first.func_ids, first.kernels
            self.subtasks, self.block_num = first.subtasks, first.block_num
        self.task_seq = group

    @property
    def predecessors(self) -> tuple[int, ...] | None:
        """Numbers of the tasks that it waits for; None without a journal."""
        table = self._dump._source.tasks
        return None if table is None else tuple(table.predecessors_of(self._group))

    @property
    def dispatched_ns(self) -> int | None:
        """Time of its first dispatch since the start of the run; None if unknown."""
        table = self._dump._source.tasks
        return None if table is None else table.times_of(self._group)[0]

    @property
    def completed_ns(self) -> int | None:
        """Time of its completion; None if it did not complete, or if unknown."""
        table = self._dump._source.tasks
        return None if table is None else table.times_of(self._group)[1]

    @property
    def inputs(self) -> Arguments:
        """What it read: inputs, inouts and scalars before dispatch."""
        return Arguments(self._dump, self.records.filter(stage="before_dispatch")._indices)

    @property
    def outputs(self) -> Arguments:
        """What it left: outputs and inouts after completion; in flight if it did not complete."""
        return Arguments(self._dump, self.records.filter(stage="after_completion")._indices)

    def __repr__(self) -> str:
        name = "+".join(kernel or f"func {function}" for kernel, function in zip(self.kernels,
            self.func_ids)) or "unknown"
        return f"<task {self.task_seq}: {name}, {len(self.records)} records>"


class TaskIndex:
    """Which records belong to which task."""

    def __init__(self, columns: Columns, table: TaskTable | None) -> None:
        self.order = np.argsort(columns.task, kind="stable")
        self.sorted = columns.task[self.order]
        self.groups = np.unique(self.sorted if table is None else np.concatenate([self.sorted, table.numbers]))


class Tasks(Sequence[Task]):
    """Tasks in order of submission; for a dump of another tool, in order of appearance."""

    def __init__(self, dump: "Dump", index: TaskIndex) -> None:
        self._dump = dump
        self._index = index
        self._groups = index.groups

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, which: int) -> Task: ...

    @overload
    def __getitem__(self, which: slice) -> list[Task]: ...

    def __getitem__(self, which: int | slice) -> Task | list[Task]:
        if isinstance(which, slice):
            return [self._make(int(group)) for group in self._groups[which]]
        if not -len(self) <= which < len(self):
            raise IndexError(f"index {which} is out of range: there are {len(self)} tasks")
        return self._make(int(self._groups[which]))

    def find(self, which: int | str) -> Task:
        """Finds a task by its number in order of submission, or by its id such as "0x11"."""
        if isinstance(which, str):
            return self._find_id(which)
        position = int(np.searchsorted(self._groups, which))
        if position == len(self._groups) or self._groups[position] != which:
            raise DumpError(f"{self._dump.path}: no task {which} in this dump; it has {len(self)} tasks")
        return self[position]

    def _find_id(self, which: str) -> Task:
        columns, table = self._dump._source.columns, self._dump._source.tasks
        try:
            wanted = int(which, 16) if which[:2].lower() == "0x" else -1
        except ValueError:
            wanted = -1
        found = [int(group) for group in columns.task[columns.has_task_id & (columns.task_id == wanted)][:1]]
        if not found and table is not None:
            found = [int(group) for group in table.numbers[table.ids == wanted][:1]]
        if not found or wanted < 0:
            raise DumpError(f'{self._dump.path}: no task {which!r} in this dump; an id looks like "0x11"')
        return self._make(found[0])

    def _make(self, group: int) -> Task:
        low, high = np.searchsorted(self._index.sorted, [group, group + 1])
        return Task(self._dump, group, self._index.order[low:high])
