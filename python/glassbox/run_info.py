"""The RUN record, the first in a journal."""
from __future__ import annotations

from typing import Any, Sequence

from . import json_text
from .errors import DumpError
from .journal import Journal

RUN_MEMBERS = ("run_id", "scene", "case", "platform", "runtime", "rank", "round", "started_at")


class RunInfo:
    """Kernels with the names of their slots, and what was run."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.generator = document.get("generator")
        self.run = {name: document["run"].get(name) for name in RUN_MEMBERS}
        self.dump_level = document.get("dump_level")
        self.has_args = document.get("has_args", False)
        self.filters = document.get("filters") or []
        self.run_args = document.get("run_args") or []
        given = document.get("kernels") or []
        self.kernels = [{"func_id": kernel["func_id"], "name": kernel["name"], "core_type": kernel["core_type"],
                         "signature": kernel.get("signature") or []} for kernel in given]
        self._names = {kernel["func_id"]: kernel["name"] for kernel in self.kernels}
        self._slots = {kernel["func_id"]: _slot_names(kernel.get("signature") or [], kernel.get("arg_names") or [])
                       for kernel in given}

    def kernel_name(self, function: int) -> str | None:
        return self._names.get(function)

    def slot_name(self, functions: Sequence[int], slot: int) -> str | None:
        """The name that the first of these kernels with one gives the slot."""
        for function in functions:
            names = self._slots.get(function, [])
            if slot < len(names) and names[slot] is not None:
                return names[slot]
        return None


def _slot_names(signature: Sequence[str], names: Sequence[str | None]) -> list[str | None]:
    """Slots hold all tensors first, then all scalars; the signature mixes them."""
    padded = [*names, *[None] * len(signature)]
    is_scalar = [kind.startswith("scalar") for kind in signature]
    return [padded[i] for wanted in (False, True) for i in range(len(signature)) if is_scalar[i] is wanted]


def parse(journal: Journal) -> RunInfo:
    try:
        document = json_text.parse(journal.text(int(journal.heads.at[0]), 4))
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{journal.path}: the RUN record is not valid JSON: {error}") from None
    wrong = json_text.wrong_inside(document) or _wrong_member(document)
    if wrong:
        raise DumpError(f"{journal.path}: the RUN record: {wrong}")
    return RunInfo(document)


def _wrong_member(document: Any) -> str:
    if not isinstance(document, dict):
        return "expected an object"
    for name, kind, text in (("generator", str, "a string"), ("run", dict, "an object")):
        if not isinstance(document.get(name), kind):
            return f'"{name}" is not {text}'
    if not isinstance(document.get("dump_level"), (str, type(None))):
        return '"dump_level" is not a string'
    for name, kind, text in (("kernels", dict, "objects"), ("run_args", dict, "objects"), ("filters", str, "strings")):
        if not _is_list_of(document.get(name), kind):
            return f'"{name}" is not an array of {text}'
    for position, kernel in enumerate(document.get("kernels") or []):
        wrong = _wrong_kernel(kernel)
        if wrong:
            return f"kernels[{position}].{wrong}"
    return ""


def _wrong_kernel(kernel: dict[str, Any]) -> str:
    if type(kernel.get("func_id")) is not int:
        return "func_id is not a number"
    if not isinstance(kernel.get("name"), str):
        return "name is not a string"
    if kernel.get("core_type") not in ("aic", "aiv"):
        return "core_type is not aic or aiv"
    if not _is_list_of(kernel.get("signature"), str):
        return "signature is not an array of strings"
    if not _is_list_of(kernel.get("arg_names"), (str, type(None))):
        return "arg_names is not an array of strings and nulls"
    return ""


def _is_list_of(value: Any, kinds: Any) -> bool:
    """A missing list is valid."""
    return value is None or isinstance(value, list) and all(isinstance(item, kinds) for item in value)
