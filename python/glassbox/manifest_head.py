"""The members of a manifest besides its entries: its form, the run, totals, and what is missing."""
from __future__ import annotations

import collections
import json
import unicodedata
from typing import Any, Callable

from . import manifest_results
from .journal_entries import REASON_CODES, REASONS
from .json_text import Repeated, is_text, wrong_inside
from .manifest_entry import ARGUMENTS_MAX, STAGES, TASK_END
from .manifest_fields import Faulty, choice, integer, missing, refuse, shorten, text, truth
from .manifest_kernels import Kernels
from .run_info import RUN_MEMBERS

# The name of each total in glassbox, and in the other form of manifests.
_TOTALS = {"total_tensors": "total_args", "before_dispatch": None, "after_completion": None,
           "input_tensors": "input_args", "output_tensors": "output_args", "inout_tensors": "inout_args",
           "in_flight_tensors": None, "truncated_tensors": "truncated_args", "deduplicated_tensors": None,
           "payload_bytes": None, "stored_bytes": None, "dropped_records": None, "dropped_overwrite": None,
           "stall_ns": None, "total_results": None, "result_payload_bytes": None, "result_stored_bytes": None}
# Totals that cannot be counted from the entries.
_UNCOUNTED = ("dropped_records", "dropped_overwrite", "stall_ns")
_KNOWN = frozenset(["schema_version", "generator", "run", "bin_file", "bin_format", "dump_level", "dump_args_level",
                    "complete", "status", "kernels", "losses", "skipped", "finding_count", "findings", "results",
                    "tensors", "args", *_TOTALS,
                    *filter(None, _TOTALS.values())])
_LEVELS = ("full", "partial", "hybrid", "stats")
_NUMBERED_LEVELS = (None, "partial", "full", "hybrid")
_CAUSES = ("stall", "disk", "corrupt", "device", "not told")
_OLD_REASONS = ("nobody told which words of the task are tensors",  # of 0.1.0
                "what was told of the argument is not what the kernel gets")
_RUN_NUMBERS = ("rank", "round")
# The limits of a journal's record: the command turns a manifest into a journal.
_RUN_BYTES_MAX = (1 << 20) - 40
_STATUS_BYTES_MAX = (1 << 20) - 104


class Head:
    """Raises Faulty if a member is invalid."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._check_members(document)
        self._document = document
        self.array = self._find_array()
        self._check_form()
        self.bin_file = self._bin_file()
        self.generator = self._get(text, "generator")
        self.run = self._run()
        self.run_dir = document.get("run_dir") if isinstance(document.get("run_dir"), str) else None
        self.level = self._level()
        self.complete, self.status = self._get(truth, "complete", None), self._status()
        self.totals = self._totals()
        self._losses, self._skipped = self._list("losses"), self._list("skipped")
        self.results = self._results()
        self.findings = self._findings()

    def _findings(self) -> dict[str, Any]:
        """finding_count and findings, as they are; nothing where the manifest has none of them. The sentences are left
        out: they are for people."""
        findings = self._list("findings")
        if findings is None:
            return {}
        if not all(isinstance(finding, dict) for finding in findings):
            raise Faulty(": findings: expected objects")
        return {"finding_count": self._get(integer, "finding_count", len(findings), 1 << 53),
                "findings": [{name: value for name, value in finding.items() if name != "text"} for finding in findings]}

    def _check_members(self, document: dict[str, Any]) -> None:
        for name in sorted(document.names if isinstance(document, Repeated) else ()):
            if name in _KNOWN:
                raise Faulty(f": {name}: appears twice")
        for name, value in document.items():
            if not is_text(name):
                raise Faulty(f": the member name {shorten(name)} is not UTF-8 text without zero bytes")
            wrong = wrong_inside(value) if name in _KNOWN and name not in ("tensors", "args") else ""
            if wrong:
                raise Faulty(f": {name}: {wrong}")

    def _get(self, getter: Callable[..., Any], name: str, *more: Any) -> Any:
        try:
            return getter(self._document, name, *more)
        except Faulty as faulty:
            raise Faulty(": " + str(faulty).lstrip(".: ")) from None

    def _find_array(self) -> str:
        found = [name for name in ("tensors", "args") if name in self._document]
        if len(found) != 1 or not isinstance(self._document[found[0]], list):
            what = ('it has both "tensors" and "args"' if len(found) == 2 else 'it has neither "tensors" nor "args"'
                    if not found else f'"{found[0]}" is not an array')
            raise Faulty(f": not the manifest of a dump: {what}")
        return found[0]

    def _check_form(self) -> None:
        self._get(integer, "schema_version", 1, 2)
        form = self._object("bin_format")
        for name, expected in (("type", "logical_contiguous"), ("byte_order", "little_endian")):
            if form.get(name) not in (None, expected):
                raise Faulty(f": bin_format{refuse(form, name, expected)}")

    def _object(self, name: str) -> dict[str, Any]:
        value = self._document.get(name)
        if value is not None and not isinstance(value, dict):
            raise Faulty(f": {name}: expected an object, got {shorten(value)}")
        return value or {}

    def _list(self, name: str) -> list[Any] | None:
        value = self._document.get(name)
        if value is not None and not isinstance(value, list):
            raise Faulty(f": {name}: expected an array, got {shorten(value)}")
        return value

    def _bin_file(self) -> str | None:
        name = self._get(text, "bin_file")
        is_plain = name is None or name not in ("", ".", "..") and "/" not in name
        if not is_plain or any(unicodedata.category(letter) == "Cc" for letter in name or ""):
            raise Faulty(f": bin_file: {shorten(name)} is not the name of a file beside the manifest")
        return name

    def _run(self) -> dict[str, Any]:
        run = self._object("run")
        try:
            known = {name: integer(run, name, 0, 1 << 32) if name in _RUN_NUMBERS else text(run, name)
                     for name in RUN_MEMBERS}
        except Faulty as faulty:
            raise Faulty(f": run{faulty}") from None
        return known if run else {}

    def _level(self) -> str | None:
        """The level, by name or by number; if both are given, they must agree."""
        number = self._get(integer, "dump_args_level", 0, len(_NUMBERED_LEVELS))
        level = _NUMBERED_LEVELS[number or 0]
        if self._document.get("dump_level") is None:
            return level
        name = self._get(choice, "dump_level", _LEVELS)
        if number is not None and name != level:
            raise Faulty(f': dump_args_level: {number} does not match dump_level "{name}"')
        return name

    def _status(self) -> str | None:
        status = self._get(text, "status")
        if status is not None and len(status.encode()) > _STATUS_BYTES_MAX:
            raise Faulty(f": status: has {len(status.encode())} bytes, more than the {_STATUS_BYTES_MAX} that a record holds")
        return status

    def _totals(self) -> dict[str, int]:
        """The given totals, by the names of glassbox."""
        totals = {}
        for name, other in _TOTALS.items():
            values = [self._get(integer, given) for given in (name, other) if given]
            present = [value for value in values if value is not None]
            if len(present) > 1:
                raise Faulty(f': {other}: repeats "{name}": only one of them may be given')
            if present:
                totals[name] = present[0]
        return totals

    def wrong_totals(self, counted: dict[str, Any]) -> list[str]:
        """One sentence for each total that does not match the entries."""
        given = {name: value for name, value in self.totals.items() if name not in _UNCOUNTED}
        if self._losses is not None and "dropped_records" in self.totals:
            given["dropped_records"] = self.totals["dropped_records"]
        return [f"{name}: expected {counted[name]}, got {value}" for name, value in given.items()
                if counted[name] != value]

    def ending(self, dropped: int) -> tuple[bool | None, str | None]:
        """Complete and status. If one is missing, it is derived from the other and from the losses."""
        if self.complete is None and self.status is None:
            return None, None
        is_complete = dropped == 0 if self.complete is None else self.complete
        status = self.status if self.status is not None else "ok" if is_complete else "not told"
        return is_complete and (self.complete is not None or status == "ok"), status

    def kernels(self, kernels: Kernels) -> None:
        """Merges the table of kernels with the names that the entries gave."""
        merged = kernels.merge(self._list("kernels") or [])
        run = {"generator": self.generator, "run": self._object("run"), "dump_level": self.level, "has_args": False,
                 "kernels": merged}
        if len(json.dumps(run, separators=(",", ":"))) > _RUN_BYTES_MAX:
            raise Faulty(f": kernels: their names take more than {_RUN_BYTES_MAX} bytes")

    def _results(self) -> list[tuple[dict[str, Any], bool]]:
        """The results of the run, by arg_index, each with whether it has payload."""
        results: dict[int, tuple[dict[str, Any], bool]] = {}
        for position, given in enumerate(self._list("results") or []):
            try:
                result, has_payload = manifest_results.read(given)
                if result["arg_index"] in results:
                    raise Faulty(f".arg_index: {result['arg_index']} appears twice")
            except Faulty as faulty:
                raise Faulty(f": results[{position}]{faulty}") from None
            results[result["arg_index"]] = result, has_payload
        ordered = [results[arg_index] for arg_index in sorted(results)]
        for index, (result, _) in enumerate(ordered):
            result["index"] = index
        return ordered

    # --- what is missing ---

    def losses(self, task_ids: dict[int, str]) -> list[dict[str, Any]]:
        """The listed losses, and those that are only counted."""
        losses = [self._place("losses", i, loss, task_ids, _loss) for i, loss in enumerate(self._losses or [])]
        counted = [] if self._losses is not None else [self.totals.get("dropped_records", 0)]
        return losses + [{"task_id": None, "task_seq": None, "arg_index": None, "stage": None, "cause": "not told",
                          "count": count, "result": None} for count in (*counted, self.totals.get("dropped_overwrite", 0)) if count]

    def skipped(self, task_ids: dict[int, str], kernels: Kernels) -> list[dict[str, Any]]:
        """The kernel is None if its name is unknown, or if two kernels have it."""
        names = collections.Counter(kernels.names.values())
        rows = [self._place("skipped", i, row, task_ids, _skipped) for i, row in enumerate(self._skipped or [])]
        return [{**row, "kernel": row["kernel"] if names[row["kernel"]] == 1 else None} for row in rows]

    @staticmethod
    def _place(name: str, position: int, given: Any, task_ids: dict[int, str],
               read: Callable[..., Any]) -> dict[str, Any]:
        try:
            if not isinstance(given, dict):
                raise Faulty(": expected an object")
            _require(given, "task_seq", "arg_index")
            task, slot = integer(given, "task_seq", 0, TASK_END, 0), integer(given, "arg_index", 0, ARGUMENTS_MAX)
            return read(given, {"task_id": task_ids.get(task), "task_seq": task, "arg_index": slot})
        except Faulty as faulty:
            raise Faulty(f": {name}[{position}]{faulty}") from None


def _require(given: dict[str, Any], *names: str) -> None:
    """null is allowed here."""
    for name in names:
        if name not in given:
            raise missing(name)


def _loss(given: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    _require(given, "stage", "cause", "count")
    stage = None if given["stage"] is None else choice(given, "stage", STAGES)
    if stage is None and place["arg_index"] is None:
        place = {**place, "task_id": None, "task_seq": None}
    count = integer(given, "count")
    if count is None:
        raise missing("count")
    least = {"is_least": True} if given.get("is_least") is True else {}
    return {**place, "stage": stage, "cause": choice(given, "cause", _CAUSES, "not told"), "count": count,
            "result": integer(given, "result", 0, ARGUMENTS_MAX), **least}


def _skipped(given: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    # Manifests of 0.1.0 have only the sentence.
    if given.get("reason_code") is None:
        reason = _OLD_REASONS.index(choice(given, "reason", _OLD_REASONS))
    else:
        reason = REASON_CODES.index(choice(given, "reason_code", REASON_CODES))
    return {**place, "kernel": text(given, "kernel"), "reason": REASONS[reason],
            "reason_code": REASON_CODES[reason]}
