"""An opened dump."""
from __future__ import annotations

import functools
import os
import pathlib
from typing import Any

import numpy as np

from . import arguments, journal, locate
from .errors import NoHashing
from .hashing import is_available
from .journal_entries import JournalEntries
from .manifest import ManifestEntries
from .payload import Payload
from .records import Record, Records, Result
from .tasks import Task, TaskIndex, Tasks


class Dump(Records):
    """The records of a dump, a sequence in the order of the manifest, and what is known about its run."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path: pathlib.Path = locate.find(path)
        records = locate.records_of(self.path)
        self._inner = records.parent
        self._source: JournalEntries | ManifestEntries = _read(self.path, records)
        self._payload = Payload(self._inner / (self._source.info["bin_file"] or "tensor_dump.bin"))
        self._indices = np.arange(len(self._source))
        self.result: dict[str, Any] | None = None

    @property
    def _dump(self) -> "Dump":  # type: ignore[override]
        # A reference to itself would keep a temporary dump until the next garbage collection.
        return self

    @property
    def records(self) -> Records:
        """All records: the dump itself."""
        return self

    @property
    def tasks(self) -> Tasks:
        return Tasks(self, self._task_index)

    @functools.cached_property
    def _task_index(self) -> TaskIndex:
        return TaskIndex(self._source.columns, self._source.tasks)

    def task(self, which: int | str) -> Task:
        """The task with this number in the order of submission, or with this id such as "0x11"."""
        return self.tasks.find(which)

    @property
    def info(self) -> dict[str, Any]:
        """The manifest without `tensors`."""
        return dict(self._source.info)

    @property
    def run(self) -> dict[str, Any]:
        """run_id, scene, case, platform, runtime, rank, round, started_at."""
        return dict(self._source.info["run"] or {})

    @property
    def kernels(self) -> list[dict[str, Any]]:
        return list(self._source.info["kernels"] or [])

    @property
    def losses(self) -> list[dict[str, Any]]:
        """Records that were lost, by cause."""
        return list(self._source.info["losses"] or [])

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Tasks and arguments that were not captured: undescribed or misdescribed."""
        return list(self._source.info["skipped"] or [])

    @property
    def results(self) -> list[Result]:
        """The output and in-out tensors of the run at its end; empty in older dumps and where they were not kept."""
        return [Result(self, entry) for entry in self._source.info["results"]]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What kernels wrote outside of their buffers, or over the arguments of tasks (docs/guard.md)."""
        return list(self._source.info.get("findings") or [])

    @property
    def totals(self) -> dict[str, int]:
        """The counts of the manifest."""
        return {name: value for name, value in self._source.info.items()
                if type(value) is int and name != "schema_version"}

    @property
    def complete(self) -> bool | None:
        """Whether the run ended by itself and nothing was lost; None if the dump does not say."""
        return self._source.info["complete"]

    @property
    def status(self) -> str | None:
        """ok, or why the run failed."""
        return self._source.info["status"]

    @property
    def outcome(self) -> dict[str, Any] | None:
        """How the run ended, as numbers (docs/format.md, END); None if the dump does not say."""
        return self._source.outcome() if self._source.journal is not None else None

    @property
    def announced(self) -> int | None:
        """Arguments that tasks announced: recorded, skipped or lost. None if the dump does not say."""
        return self._source.announced() if self._source.journal is not None else None

    @property
    def level(self) -> str | None:
        """full, partial, hybrid or stats; None without --dump-tensor."""
        return self._source.info["dump_level"]

    @property
    def is_from_journal(self) -> bool:
        """Whether the dump was read from its journal, not from a manifest."""
        return self._source.journal is not None

    @property
    def checksums_verified(self) -> bool:
        """Whether every block of the journal was checked against its checksum; that needs xxhash or libxxhash."""
        return self._source.checksums_verified

    @property
    def newer_records(self) -> int:
        """How many records were skipped because their types are newer than this reader; 0 for a manifest."""
        return self._source.journal.newer_records if self._source.journal is not None else 0

    @property
    def wrong_totals(self) -> list[str]:
        """One sentence for each total of a manifest that does not match its entries; empty for a journal."""
        return list(self._source.wrong_totals)

    @functools.cached_property
    def arguments(self) -> list[dict[str, Any]]:
        """What the orchestration was called with (--dump-args): `args` of args_dump.json."""
        return arguments.of_run(self._source, self._inner)

    @functools.cached_property
    def dispatches(self) -> list[dict[str, Any]]:
        """What every dispatch was called with (--dump-args): `dispatches` of kernel_args_dump.json."""
        return arguments.of_dispatches(self._source, self._inner)

    @functools.cached_property
    def executions(self) -> list[dict[str, Any]]:
        """Where and when each dispatch ran; `end_ns` is None if it crashed or was running when the run ended."""
        return arguments.of_executions(self._source)

    def to_dict(self) -> dict[str, Any]:
        """The manifest: what tensor_dump.json holds."""
        return {**self.info, "tensors": self.to_dicts()}

    def verify(self) -> list[Record]:
        """Computes every hash again; returns the records and results whose payload does not match."""
        if not is_available():
            raise NoHashing("cannot compute hashes without the module xxhash or libxxhash; run glassbox verify instead")
        seen: dict[tuple[int, int, str], bool] = {}
        return [record for record in (*self, *self.results) if not _is_right(record, seen)]

    def __repr__(self) -> str:
        run = self.run
        return f"<dump {self.path}: {run.get('scene')} {run.get('case')}, {len(self)} records, {self.status}>"


def _is_right(record: Record, seen: dict[tuple[int, int, str], bool]) -> bool:
    if record.hash is None or record.bin_size == 0:
        return True
    key = (record.bin_offset, record.bin_size, record.hash)
    if key not in seen:
        seen[key] = record.verify()
    return seen[key]


def _read(directory: pathlib.Path, records: pathlib.Path) -> JournalEntries | ManifestEntries:
    name = directory.resolve().name
    if records.suffix == ".rec":
        return JournalEntries(journal.read(records, f"glassbox recover {directory} keeps them"), name)
    return ManifestEntries(records, name)


def open(path: str | os.PathLike[str] | None = None) -> Dump:
    """Opens a dump: its directory, its tensor_dump/, or a directory with `latest` or one dump; by default outputs/latest."""
    return Dump(path)
