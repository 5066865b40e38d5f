"""One entry of any tool's manifest, with the fields that glassbox writes, in the order of glassbox."""
from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from . import dtypes, manifest_geometry
from .dtypes import DType
from .json_text import INTEGERS, Repeated
from .manifest_fields import (WORD_END, Faulty, choice, either, integer, integers, missing, number, refuse, shorten, text,
                              truth, value_bits, word)

ROLES = ("input", "output", "inout")
STAGES = ("before_dispatch", "after_completion")
SUBTASKS = ("aic", "aiv0", "aiv1")
NO_FUNCTION = -1
ARGUMENTS_MAX = 64
TASK_END = 1 << 44
_KINDS = ("tensor", "scalar")
_TEXTS = frozenset([str, type(None)])
_NO_NAMES = (None,) * 3
_PLACES = (0, 1, 2)
_PLACES_OF_SUBTASKS = {tuple(SUBTASKS[i] for i in places): places
                       for count in range(4) for places in itertools.permutations(_PLACES, count)}
_FUNCTION_END = (1 << 32) - 1
_HASH_DIGITS = 32
_CORE_END, _CORES_MAX = 1024, 128
_FLOAT64 = dtypes.BY_NAME["float64"]
_STATS = ("min", "max", "mean", "nan", "inf", "zero", "subnormal")
_MEMBERS = frozenset(
    "index task_id task_seq func_id kernel arg_index arg_name role stage kind dtype value scalar_value bits shape "
    "strides raw_shape offsets start_offset numel is_contiguous buffer_addr bin_offset bin_size hash truncated "
    "overwritten in_flight time_ns thread block_num subtasks start_ns end_ns "
    "cores stats arg_index_ambiguous".split())


class Entry(NamedTuple):
    """`fields` of an element of `tensors`; the fields of its task are filled in when all entries are known."""

    fields: dict[str, Any]
    task_id: int | None
    task_seq: int | None
    functions: tuple[int, int, int]
    kernels: tuple[str | None, str | None, str | None]
    has_subtasks: bool
    block_num: int | None
    arg_name: str | None
    has_payload: bool


def read(given: Any) -> Entry:
    """Raises Faulty if a required field is missing or a field is invalid."""
    if not isinstance(given, dict):
        raise Faulty(": expected an object")
    if isinstance(given, Repeated):
        _check_repeated(given, _MEMBERS)
    task_id, task_seq = _task(given)
    functions, kernels = _kernels(given, task_id)
    integer(given, "index")
    dtype = dtype_of(given)
    fields: dict[str, Any] = {
        "index": 0, "task_id": None, "task_seq": 0, "func_id": None, "kernel": None, "arg_index": _argument(given),
        "arg_name": None, "role": choice(given, "role", ROLES), "stage": choice(given, "stage", STAGES),
        "kind": _kind(given), "dtype": dtype.name}
    has_payload = _add_scalar(fields, given, dtype) if fields["kind"] == "scalar" else add_tensor(fields, given, dtype)
    time, thread = integer(given, "time_ns"), integer(given, "thread", 0, 1 << 16)
    if time is not None and thread is not None:
        fields["time_ns"], fields["thread"] = time, thread
    block_num = integer(given, "block_num", 0, 1 << 32)
    has_subtasks = given.get("subtasks") is not None
    if has_subtasks and (block_num is not None or task_id is None):
        fields["block_num"], fields["subtasks"] = None, None
    span = _span(given)
    if all(name in given for name in span):
        fields |= span
    if fields["kind"] == "tensor" and given.get("stats") is not None:
        fields["stats"] = stats_of(given["stats"], dtype)
    return Entry(fields, task_id, task_seq, functions, kernels, has_subtasks, block_num, text(given, "arg_name"),
                 has_payload)


def _span(given: dict[str, Any]) -> dict[str, Any]:
    """Where and when the task ran; all three are None if unknown."""
    start, end = integer(given, "start_ns", 0, 1 << 53), integer(given, "end_ns", 0, 1 << 53)
    cores = integers(given, "cores", 0, _CORE_END, _CORES_MAX)
    if end is not None and end < (start or 0):
        raise Faulty(".end_ns: is before start_ns")
    if (start is not None) != bool(cores):
        raise Faulty(".cores: are given without start_ns" if cores else ".cores: are missing, but start_ns is given")
    return {"start_ns": start, "end_ns": end, "cores": sorted(set(cores)) if cores else None}


def _check_repeated(members: Repeated, known: Any) -> None:
    for name in sorted(members.names):
        if name in known:
            raise Faulty(f".{name}: appears twice")


def _task(given: dict[str, Any]) -> tuple[int | None, int | None]:
    """task_id and task_seq; at least one is required. A task whose record was lost has only task_seq."""
    task_seq = integer(given, "task_seq", 0, TASK_END)
    if type(given.get("task_id")) in INTEGERS:
        return integer(given, "task_id", 0, 1 << 64), task_seq
    task_id = word(given, "task_id")
    if task_id is None and task_seq is None:
        raise Faulty(': "task_id" and "task_seq" are missing')
    return task_id, task_seq


def _argument(given: dict[str, Any]) -> int:
    slot = integer(given, "arg_index", 0, ARGUMENTS_MAX)
    truth(given, "arg_index_ambiguous")
    if slot is None:
        raise missing("arg_index")
    return slot


# --- kernels ---

def _kernels(given: dict[str, Any], task_id: int | None) -> tuple[Any, Any]:
    """Functions and names by subtask; without subtasks, in the order of the arrays."""
    functions = _functions(given)
    names, subtasks = given.get("kernel"), given.get("subtasks")
    names = [names] if isinstance(names, str) else names
    for name, values in (("kernel", names), ("subtasks", subtasks)):
        if values is None:
            continue
        if not isinstance(values, list) or not _TEXTS.issuperset(map(type, values)):
            raise refuse(given, name, "an array of names")
        if len(values) != len(functions):
            raise Faulty(f'.{name}: has {len(values)} elements, but "func_id" has {len(functions)}')
    places = _PLACES if subtasks is None else _subtasks(given, tuple(subtasks))
    by_place, names_by_place = [NO_FUNCTION] * 3, [None] * 3
    for place, function, name in zip(places, functions, names or _NO_NAMES):
        if function != NO_FUNCTION:
            by_place[place], names_by_place[place] = function, name
    if task_id is None and by_place != [NO_FUNCTION] * 3:
        raise Faulty(".func_id: is given for a task without task_id")
    return tuple(by_place), tuple(names_by_place)


def _subtasks(given: dict[str, Any], names: tuple[str | None, ...]) -> tuple[int, ...]:
    places = _PLACES_OF_SUBTASKS.get(names)
    if places is None:
        raise refuse(given, "subtasks", "an array of aic, aiv0 and aiv1, each at most once")
    return places


def _functions(given: dict[str, Any]) -> list[int]:
    if type(given.get("func_id")) in INTEGERS:
        return [integer(given, "func_id", NO_FUNCTION, _FUNCTION_END)]
    return integers(given, "func_id", NO_FUNCTION, _FUNCTION_END, 3) or []


# --- values ---

def dtype_of(given: dict[str, Any]) -> DType:
    name = given.get("dtype")
    dtype = dtypes.find(name) if isinstance(name, str) else None
    if dtype is None:
        raise refuse(given, "dtype", f"the name of a dtype: {either(dtypes.BY_NAME)}")
    return dtype


def _kind(given: dict[str, Any]) -> str:
    """An entry without a kind is a scalar if it has a value and no bytes."""
    if given.get("kind") is not None:
        return choice(given, "kind", _KINDS)
    has_value = any(given.get(name) is not None for name in ("value", "scalar_value", "bits"))
    return _KINDS[has_value and not integer(given, "bin_size", default=0)]


def _add_scalar(fields: dict[str, Any], given: dict[str, Any], dtype: DType) -> bool:
    geometry = manifest_geometry.read(given, dtype)
    if any(length != 1 for length in geometry.shape):
        raise Faulty(f".shape: a scalar has one element, got {shorten(given['shape'])}")
    if integer(given, "bin_size", default=0):
        raise Faulty(f".bin_size: a scalar has no payload, got {given['bin_size']}")
    bits = _scalar_bits(given, dtype)
    fields.update(value=dtypes.json_value(dtypes.scalar_value(bits, dtype), dtype), bits=f"0x{bits:016x}", shape=[],
                  strides=[], start_offset=0, numel=1, is_contiguous=True, bin_offset=0, bin_size=0)
    _add_flags(fields, given)
    return False


def _scalar_bits(given: dict[str, Any], dtype: DType) -> int:
    """The raw word of a scalar, from `bits` if it is given; all given values must agree."""
    words = {}
    for name in ("value", "scalar_value"):
        if given.get(name) is not None:
            try:
                words[name] = value_bits(given[name], dtype)
            except ValueError:
                raise refuse(given, name, _values_of(dtype)) from None
    raw = word(given, "bits")
    if raw is not None:
        words["bits"] = raw
    if not words:
        raise missing("value")
    *others, (last, bits) = words.items()
    for name, other in others:
        if not _is_same(other, bits, dtype):
            raise Faulty(f'.{last}: {shorten(given[last])} does not match the {dtype.name} of "{name}", '
                         f"{shorten(given[name])}")
    return bits if raw is not None else next(iter(words.values()))


def _values_of(dtype: DType) -> str:
    kind = {"float": 'a number, "nan", "inf" or "-inf"', "bool": "true or false"}.get(dtype.kind, "an integer")
    return f"{kind} that {dtype.name} holds"


def _is_same(one: int, other: int, dtype: DType) -> bool:
    """Ignores bits beyond the dtype, and treats all NaNs as the same."""
    a, b = (dtypes.scalar_value(bits, dtype) for bits in (one, other))
    if dtype.kind == "float":
        return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)
    return a == b


# --- tensors ---

def add_tensor(fields: dict[str, Any], given: dict[str, Any], dtype: DType) -> bool:
    if given.get("shape") is None:
        raise missing("shape")
    shape, strides, start, numel, is_contiguous, whole = manifest_geometry.read(given, dtype)
    fields["shape"], fields["strides"] = [*shape], [*strides]
    fields["start_offset"], fields["numel"], fields["is_contiguous"] = start, numel, is_contiguous
    address = word(given, "buffer_addr")
    if address is not None:
        fields["buffer_addr"] = f"0x{address:016x}"
    offset, size = integer(given, "bin_offset"), integer(given, "bin_size", default=0)
    is_truncated = truth(given, "truncated")
    _check_payload(given, dtype, whole, is_truncated)
    has_payload = size > 0 or whole == 0 or is_truncated
    fields["bin_offset"], fields["bin_size"] = (offset or 0) if has_payload else 0, size
    if given.get("hash") is not None:
        fields["hash"] = _hash(given)
    _add_flags(fields, given)
    return has_payload


def _add_flags(fields: dict[str, Any], given: dict[str, Any]) -> None:
    fields["truncated"], fields["overwritten"] = truth(given, "truncated"), truth(given, "overwritten")
    fields["in_flight"] = truth(given, "in_flight")


def _check_payload(given: dict[str, Any], dtype: DType, whole: int, is_truncated: bool) -> None:
    size, offset = given.get("bin_size") or 0, given.get("bin_offset")
    if size and offset is None:
        raise missing("bin_offset")
    if (offset or 0) + size >= WORD_END:
        raise Faulty(f".bin_offset: {offset} and a bin_size of {size} overflow 64 bits")
    if size and size != whole and not (is_truncated and size < whole):
        raise Faulty(f".bin_size: {size} is {'more than' if is_truncated else 'not'} the {whole} bytes of its shape "
                     f"{shorten(given['shape'])} and dtype {dtype.name}")


def _hash(given: dict[str, Any]) -> str:
    value = given["hash"]
    if not isinstance(value, str) or len(value) != _HASH_DIGITS or value.strip("0123456789abcdefABCDEF"):
        raise refuse(given, "hash", "32 hexadecimal digits")
    return value.lower()


def stats_of(given: Any, dtype: DType) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Faulty(f".stats: expected an object, got {shorten(given)}")
    try:
        if isinstance(given, Repeated):
            _check_repeated(given, _STATS)
        checked = {name: _extreme(given, name, dtype) for name in ("min", "max")}
        checked["mean"] = dtypes.json_value(number(given, "mean"), _FLOAT64)
        for name in ("nan", "inf", "zero", "subnormal"):
            checked[name] = integer(given, name)
            if checked[name] is None and (name != "subnormal" or name in given):
                raise missing(name)
        return {**checked, "subnormal": checked["subnormal"] or 0}
    except Faulty as faulty:
        raise Faulty(f".stats{faulty}") from None


def _extreme(given: dict[str, Any], name: str, dtype: DType) -> Any:
    """NaN, also of a float dtype without NaN, says that no element counts."""
    try:
        value_dtype = _FLOAT64 if dtype.kind == "float" and str(given.get(name)).lower() == "nan" else dtype
        return dtypes.json_value(dtypes.scalar_value(value_bits(given.get(name), value_dtype), value_dtype), dtype)
    except ValueError:
        raise refuse(given, name, _values_of(dtype)) from None
