"""Manifests: tensor_dump.json of glassbox, and those that other tools write in the same spirit."""
from __future__ import annotations

import json
import pathlib
from typing import Any, Iterator, Sequence

import numpy as np

from .columns import NO_KERNEL, Columns
from .dtypes import BY_NAME
from .errors import DumpError
from .manifest_entry import ROLES, STAGES, Faulty, normalise

# The numbers are those of other tools.
_LEVELS = {0: None, 1: "partial", 2: "full", 3: "hybrid", 4: "stats"}
_INFO = ("schema_version", "generator", "run", "run_dir", "bin_file", "bin_format", "dump_level", "complete", "status",
         "total_tensors", "before_dispatch", "after_completion", "input_tensors", "output_tensors", "inout_tensors",
         "in_flight_tensors", "truncated_tensors", "dropped_records", "dropped_overwrite", "deduplicated_tensors",
         "payload_bytes", "stored_bytes", "stall_ns", "kernels", "losses", "skipped")
_OBJECTS = {"run": dict, "bin_format": dict, "kernels": list, "losses": list, "skipped": list}


def load(path: pathlib.Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.load(file)
    except OSError as error:
        raise DumpError(f"reading {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{path} is no whole JSON document: {error}") from None
    if not isinstance(document, dict):
        raise DumpError(f"{path}: an object is expected, and it is none")
    return document


class ManifestEntries:
    """The entries of a manifest, in its order, each with all fields that glassbox writes."""

    checksums_verified = False
    journal = None
    tasks = None

    def __init__(self, path: pathlib.Path, directory_name: str) -> None:
        self.path = path
        document = load(path)
        found = [name for name in ("tensors", "args") if isinstance(document.get(name), list)]
        if not found:
            raise DumpError(f'{path} is not the manifest of a dump: it has neither an array "tensors" nor "args"')
        self._entries = self._normalise(found[0], document[found[0]])
        self._sort()
        self.columns = self._columns()
        self.kernel_names = self._kernel_names(document)
        self.info = self._info(document, directory_name)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, indices: Sequence[int] | np.ndarray) -> Iterator[dict[str, Any]]:
        for index in np.asarray(indices).tolist():
            yield dict(self._entries[index])

    def arg_names(self) -> tuple[list[str | None], np.ndarray]:
        """The different names of arguments, and for each record which of them it has."""
        names = [entry.get("arg_name") for entry in self._entries]
        different = list(dict.fromkeys(names))
        return different, np.array([different.index(name) for name in names], np.int64)

    def _normalise(self, array: str, given: list[Any]) -> list[dict[str, Any]]:
        entries = []
        for position, entry in enumerate(given):
            try:
                entries.append(normalise(entry, position))
            except Faulty as faulty:
                raise DumpError(f"{self.path}: {array}[{position}]{faulty}; {position} records before it are "
                                f"readable") from None
        return entries

    def _sort(self) -> None:
        """By task, stage and slot, like those of glassbox. Tasks without a number count as they first appear."""
        seen: dict[Any, int] = {}
        for entry in self._entries:
            if entry["task_seq"] is None:
                entry["task_seq"] = seen.setdefault(entry["task_id"], len(seen))
        self._entries.sort(key=lambda entry: (entry["task_seq"], STAGES.index(entry["stage"]), entry["arg_index"]))
        for index, entry in enumerate(self._entries):
            entry["index"] = index

    def _columns(self) -> Columns:
        entries = self._entries
        width = max([3, *(len(entry["func_id"]) for entry in entries)])
        functions = [[*entry["func_id"], *[NO_KERNEL] * (width - len(entry["func_id"]))] for entry in entries]
        ids = [entry["task_id"] for entry in entries]
        return Columns(np.array([entry["task_seq"] for entry in entries], np.int64),
                       np.array([int(text or "0", 16) for text in ids], np.uint64),
                       np.array([text is not None for text in ids], bool),
                       np.array(functions, np.int64).reshape(len(entries), width),
                       np.array([entry["arg_index"] for entry in entries], np.int64),
                       np.array([ROLES.index(entry["role"]) for entry in entries], np.int64),
                       np.array([STAGES.index(entry["stage"]) for entry in entries], np.int64),
                       np.array([entry["kind"] == "scalar" for entry in entries], bool),
                       np.array([BY_NAME[entry["dtype"]].code for entry in entries], np.int64))

    def _kernel_names(self, document: dict[str, Any]) -> dict[int, str | None]:
        kernels = document.get("kernels") or []
        if not isinstance(kernels, list):
            raise DumpError(f'{self.path}: "kernels" is not an array')
        names = {kernel.get("func_id"): kernel.get("name") for kernel in kernels if isinstance(kernel, dict)
                 and type(kernel.get("func_id")) is int and isinstance(kernel.get("name"), str)}
        for entry in self._entries:
            for function, name in zip(entry["func_id"], entry.get("kernel", [])):
                names.setdefault(function, name)
        return names

    def _info(self, document: dict[str, Any], directory_name: str) -> dict[str, Any]:
        computed = self._computed(directory_name)
        info = {}
        for name in _INFO:
            info[name] = document.get(name, document.get(name.replace("_tensors", "_args"), computed.get(name)))
            expected = _OBJECTS.get(name)
            if expected and info[name] is not None and not isinstance(info[name], expected):
                raise DumpError(f'{self.path}: "{name}" is not {"an object" if expected is dict else "an array"}')
        info["dump_level"] = self._level(document.get("dump_level", document.get("dump_args_level")))
        if info["total_tensors"] != computed["total_tensors"]:
            raise DumpError(f"{self.path} says that it has {info['total_tensors']} records and has "
                            f"{computed['total_tensors']}: it has been changed or is not whole")
        self._check_payload_file(info["bin_file"])
        return info

    def _check_payload_file(self, name: Any) -> None:
        if name is None and any(entry["bin_size"] for entry in self._entries):
            raise DumpError(f'{self.path}: "bin_file" is missing, and records have payload')
        if name is not None and (not isinstance(name, str) or not name or pathlib.PurePath(name).name != name):
            raise DumpError(f'{self.path}: "bin_file" is not the name of a file beside it')

    def _level(self, level: Any) -> str | None:
        if level in (None, *_LEVELS.values()) or type(level) is int and level in _LEVELS:
            return _LEVELS.get(level, level)
        raise DumpError(f"{self.path}: the level {level!r} is none of {', '.join(filter(None, _LEVELS.values()))} nor 0 to 3")

    def _computed(self, directory_name: str) -> dict[str, Any]:
        entries = [entry for entry in self._entries if not entry["in_flight"]]
        tensors = [entry for entry in self._entries if entry["bin_size"] > 0]
        stored = {(entry["bin_offset"], entry["bin_size"]) for entry in tensors}
        counts = {stage: sum(entry["stage"] == stage for entry in entries) for stage in STAGES}
        counts |= {f"{role}_tensors": sum(entry["role"] == role for entry in entries) for role in ROLES}
        return {**counts, "run": {}, "run_dir": directory_name, "total_tensors": len(entries),
                "in_flight_tensors": len(self._entries) - len(entries), "dropped_records": 0, "dropped_overwrite": 0,
                "truncated_tensors": sum(entry["truncated"] for entry in self._entries),
                "deduplicated_tensors": len(tensors) - len(stored),
                "payload_bytes": sum(entry["bin_size"] for entry in tensors),
                "stored_bytes": sum(size for _, size in stored), "kernels": [], "losses": [], "skipped": []}
