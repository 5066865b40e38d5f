"""Kernels of a manifest: its table, and the names that entries give to kernels and slots."""
from __future__ import annotations

import re
from typing import Any, Sequence

from . import dtypes
from .json_text import is_text
from .manifest_fields import Faulty, choice, integer, missing, refuse, shorten, text

KERNELS_MAX = 1024
_SLOTS_MAX = 64
_WORD = re.compile(r"(in|inout|out|scalar)(?::([^\[]*)(\[[0-8]\])?)?")


class Kernels:
    """First learns names from the entries, then merges the table."""

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self.names: dict[int, str] = {}
        self._slots: dict[int, dict[int, str | None]] = {}

    def learn_name(self, function: int, name: str) -> None:
        known = self.names.get(function)
        if known is None:
            _check_named(function)
            if not is_text(name):
                raise Faulty(f".kernel: expected UTF-8 text without zero bytes, got {shorten(name)}")
            self.names[function] = name
        elif known != name:
            raise Faulty(f".kernel: {shorten(name)} differs from {shorten(known)}, which an earlier entry gives func_id "
                         f"{function}")

    def learn_slot(self, functions: Sequence[int], slot: int, name: str) -> None:
        """The entry's first kernel gets the name unless another of its kernels has it; a slot with two names loses both."""
        slots = []
        for function in functions:
            _check_named(function)
            slots.append(self._slots.setdefault(function, {}))
            if slots[-1].get(slot) == name:
                return
        if slots and slot not in slots[0]:
            if not is_text(name):
                raise Faulty(f".arg_name: expected UTF-8 text without zero bytes, got {shorten(name)}")
            slots[0][slot] = name
        elif slots:
            slots[0][slot] = None

    def learn_nameless(self, functions: Sequence[int], slot: int) -> None:
        """An argument without a name: its slot has no name in any of its kernels."""
        for function in functions:
            if function < KERNELS_MAX:
                self._slots.setdefault(function, {})[slot] = None

    def slot_name(self, functions: Sequence[int], slot: int) -> str | None:
        """The name that the first of these kernels with one gives the slot."""
        for function in functions:
            name = self._slots.get(function, {}).get(slot) if function in self.names else None
            if name is not None:
                return name
        return None

    def merge(self, table: list[Any]) -> list[dict[str, Any]]:
        """The kernels with all that is known about them, as in the RUN record."""
        if len(table) > KERNELS_MAX:
            raise Faulty(f": kernels: has {len(table)} kernels, more than {KERNELS_MAX}")
        merged = []
        named: dict[int, str] = {}
        for position, kernel in enumerate(table):
            try:
                merged.append(self._merge_one(kernel, named))
            except Faulty as faulty:
                raise Faulty(f": kernels[{position}]{faulty}") from None
        added = [{"func_id": function, "name": self.names[function], "core_type": None}
                 for function in sorted(self.names) if function not in named]
        self.names |= named
        self.table += [{**kernel, "signature": []} for kernel in added]
        return merged + [{**kernel, "slot_names": self._names_by_slot(kernel["func_id"])} for kernel in added]

    def _merge_one(self, kernel: Any, named: dict[int, str]) -> dict[str, Any]:
        if not isinstance(kernel, dict):
            raise Faulty(": expected an object")
        function, name = integer(kernel, "func_id", 0, KERNELS_MAX), text(kernel, "name")
        if function is None or name is None:
            raise missing("func_id" if function is None else "name")
        for known, who in ((named.get(function), "an earlier kernel gives"), (self.names.get(function), "entries give")):
            if known is not None and known != name:
                raise Faulty(f".name: {shorten(name)} differs from {shorten(known)}, which {who} func_id {function}")
        core_type = None if kernel.get("core_type") is None else choice(kernel, "core_type", ("aic", "aiv"))
        signature = _signature(kernel)
        slots = {slot: given for slot, given in enumerate(_slot_names(kernel, signature)) if given is not None}
        learned = {slot: given for slot, given in self._slots.get(function, {}).items() if given is not None}
        if function not in named:
            self._slots[function] = slots | learned
        named[function] = name
        self.table.append({"func_id": function, "name": name, "core_type": core_type, "signature": signature})
        names = {"slot_names": self._names_by_slot(function, learned)}
        return {key: value for key, value in kernel.items() if key != "slot_names"} | {"core_type": core_type} | names

    def _names_by_slot(self, function: int, names: dict[int, str | None] | None = None) -> list[str | None]:
        slots = self._slots.get(function, {}) if names is None else names
        return [slots.get(slot) for slot in range(max(slots, default=-1) + 1)]


def _check_named(function: int) -> None:
    if function >= KERNELS_MAX:
        raise Faulty(f".func_id: {function} has a name, but is not below {KERNELS_MAX}")


def _strings(kernel: dict[str, Any], name: str, most: int, kinds: Any, expected: str) -> list[Any]:
    values = kernel.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) > most or not all(isinstance(value, kinds) for value in values):
        raise refuse(kernel, name, f"an array of at most {most} {expected}")
    return values


def _signature(kernel: dict[str, Any]) -> list[str]:
    words = _strings(kernel, "signature", _SLOTS_MAX, str, "strings")
    for word in words:
        if not _is_word(word):
            raise refuse(kernel, "signature", "an array of in, inout, out or scalar, alone or with :DTYPE, :[RANK] or :DTYPE[RANK]")
    return words


def _is_word(word: str) -> bool:
    """Whether a signature can have it: "in", "in:bfloat16", "in:[2]", "in:bfloat16[2]", "scalar:float32"."""
    parts = _WORD.fullmatch(word)
    if not parts:
        return False
    kind, dtype, rank = parts.groups()
    if rank and kind == "scalar":
        return False
    return dtype is None or dtypes.find(dtype) not in (None, dtypes.UNKNOWN) or (not dtype and rank is not None)


def _slot_names(kernel: dict[str, Any], signature: list[str]) -> list[str | None]:
    """Slots hold all tensors first, then all scalars; the signature mixes them."""
    names = _strings(kernel, "arg_names", len(signature), (str, type(None)), "strings and nulls")
    padded = [*names, *[None] * len(signature)]
    is_scalar = [word.startswith("scalar") for word in signature]
    return [padded[i] for wanted in (False, True) for i in range(len(signature)) if is_scalar[i] is wanted]
