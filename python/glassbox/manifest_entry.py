"""One entry of a manifest, whoever wrote it, with all fields that glassbox writes, in its order."""
from __future__ import annotations

import math
from typing import Any, Callable

from . import dtypes
from .dtypes import DType

ROLES = ("input", "output", "inout")
STAGES = ("before_dispatch", "after_completion")
_LIMIT = 1 << 63


class Faulty(Exception):
    """What is wrong with an entry, to be put after its place in the manifest."""


class _Fields:
    """The members of an entry by their checked types."""

    def __init__(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            raise Faulty(": an object is expected")
        self.entry = entry

    def get(self, name: str, is_right: Callable[[Any], bool], expected: str, *default: Any) -> Any:
        value = self.entry.get(name)
        if value is None and default:
            return default[0]
        if not is_right(value):
            what = "is missing" if name not in self.entry else f"is {_shorten(value)}"
            raise Faulty(f".{name} {what}; expected is {expected}")
        return value

    def number(self, name: str, *default: Any, lowest: int = 0) -> Any:
        return self.get(name, lambda v: type(v) is int and lowest <= v < _LIMIT, "a whole number", *default)

    def flag(self, name: str, default: bool) -> bool:
        return self.get(name, lambda v: isinstance(v, bool), "true or false", default)

    def choice(self, name: str, choices: tuple[str, ...], *default: str) -> str:
        return self.get(name, lambda v: v in choices if isinstance(v, str) else False, "one of " + ", ".join(choices),
                        *default)

    def numbers(self, name: str, *default: Any, lowest: int = 0) -> Any:
        def is_right(value: Any) -> bool:
            return isinstance(value, list) and all(type(v) is int and lowest <= v < _LIMIT for v in value)

        return self.get(name, is_right, "an array of whole numbers", *default)

    def texts(self, name: str, *default: Any) -> Any:
        return self.get(name, lambda v: isinstance(v, list) and all(isinstance(t, (str, type(None))) for t in v),
                        "an array of names", *default)

    def word(self, name: str, *default: Any) -> Any:
        """A hexadecimal string of up to 64 bits in the form of glassbox."""
        value = self.get(name, lambda v: isinstance(v, str) or type(v) is int, 'a string such as "0x11"', *default)
        if value is None:
            return None
        try:
            number = int(value, 16) if isinstance(value, str) else value
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 64:
            raise Faulty(f'.{name} is {_shorten(value)}; expected is a string such as "0x11"')
        return f"0x{number:016x}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def normalise(given: Any, position: int) -> dict[str, Any]:
    """Raises Faulty where a field is missing that a record cannot do without, or is none that it can have."""
    fields = _Fields(given)
    functions = _functions(fields)
    is_scalar = fields.choice("kind", ("tensor", "scalar"),
                              "scalar" if "value" in given or "scalar_value" in given else "tensor") == "scalar"
    dtype = _dtype(fields)
    entry: dict[str, Any] = {"index": fields.number("index", position), "task_id": _task_id(fields),
                             "task_seq": fields.number("task_seq", None), "func_id": functions}
    if entry["index"] != position:
        raise Faulty(f".index is {entry['index']}, not its position")
    if "kernel" in given:
        entry["kernel"] = fields.texts("kernel")
    entry["arg_index"] = fields.number("arg_index")
    name = fields.get("arg_name", lambda v: isinstance(v, str), "a string", None)
    if name is not None:
        entry["arg_name"] = name
    entry.update(role=fields.choice("role", ROLES), stage=fields.choice("stage", STAGES),
                 kind="scalar" if is_scalar else "tensor", dtype=dtype.name)
    if is_scalar:
        entry.update(_scalar(fields, dtype))
    entry.update(_geometry(fields, dtype, is_scalar))
    if "buffer_addr" in given:
        entry["buffer_addr"] = fields.word("buffer_addr")
    entry.update(bin_offset=fields.number("bin_offset", 0), bin_size=fields.number("bin_size", 0))
    _check_size(entry, dtype, fields.flag("truncated", False))
    if "hash" in given:
        entry["hash"] = fields.get("hash", _is_hash, "32 hexadecimal digits")
    entry.update({name: fields.flag(name, False) for name in ("truncated", "overwritten", "in_flight")})
    entry.update({name: fields.number(name, None) for name in ("time_ns", "thread", "block_num") if name in given})
    if "subtasks" in given:
        entry["subtasks"] = fields.texts("subtasks")
    if "stats" in given:
        entry["stats"] = _stats(fields, dtype)
    return entry


def _task_id(fields: _Fields) -> str | None:
    """A glassbox that has lost the record of a task knows its number alone."""
    return fields.word("task_id", *([None] if "task_seq" in fields.entry else []))


def _check_size(entry: dict[str, Any], dtype: DType, is_truncated: bool) -> None:
    whole = dtypes.row_bytes(dtype, tuple(entry["shape"])) if entry["kind"] == "tensor" else 0
    if entry["bin_size"] and not is_truncated and entry["bin_size"] != whole:
        raise Faulty(f".bin_size is {entry['bin_size']}, and {dtype.name} of shape {entry['shape']} has {whole} bytes")


def _functions(fields: _Fields) -> list[int]:
    if type(fields.entry.get("func_id")) is int:
        return [fields.number("func_id")]
    return fields.numbers("func_id", [])


def _dtype(fields: _Fields) -> DType:
    name = fields.get("dtype", lambda v: isinstance(v, str), "the name of a dtype")
    dtype = dtypes.find(name)
    if dtype is None:
        raise Faulty(f".dtype is {_shorten(name)}; expected is one of {', '.join(dtypes.BY_NAME)}")
    return dtype


def _scalar(fields: _Fields, dtype: DType) -> dict[str, Any]:
    bits = fields.word("bits", None)
    if bits is not None:
        value = dtypes.scalar_value(int(bits, 16), dtype)
        return {"value": dtypes.json_value(value, dtype), "bits": bits}
    given = fields.entry.get("value", fields.entry.get("scalar_value"))
    if given is None:
        raise Faulty(".value is missing, which a scalar has")
    try:
        word = dtypes.scalar_bits(dtypes.python_value(given, dtype), dtype)
    except (ValueError, TypeError, OverflowError):
        raise Faulty(f".value is {_shorten(given)}, which no {dtype.name} is") from None
    return {"value": dtypes.json_value(dtypes.scalar_value(word, dtype), dtype), "bits": f"0x{word:016x}"}


def _geometry(fields: _Fields, dtype: DType, is_scalar: bool) -> dict[str, Any]:
    shape = fields.numbers("shape", *([[]] if is_scalar else []))
    numel = math.prod(shape)
    if len(shape) > 8 or numel >= _LIMIT:
        raise Faulty(f".shape is {_shorten(shape)}, which is larger than any tensor")
    strides, start = _view(fields, shape)
    if len(strides) != len(shape):
        raise Faulty(f".strides has {len(strides)} numbers and shape {len(shape)}")
    if fields.number("numel", numel) != numel:
        raise Faulty(f".numel is {fields.entry['numel']}, and shape {_shorten(shape)} has {numel} elements")
    return {"shape": shape, "strides": strides, "start_offset": start, "numel": numel,
            "is_contiguous": fields.flag("is_contiguous", _is_contiguous(dtype, shape, strides))}


def _view(fields: _Fields, shape: list[int]) -> tuple[list[int], int]:
    """Strides and start. Older manifests have the shape of the whole buffer and where the view begins in it."""
    buffer = fields.numbers("raw_shape", shape)
    if len(buffer) != len(shape):
        raise Faulty(f".raw_shape has {len(buffer)} numbers and shape {len(shape)}")
    row_major = [math.prod(buffer[i + 1:]) for i in range(len(buffer))]
    begin = fields.numbers("offsets", [0] * len(shape))
    if len(begin) != len(shape):
        raise Faulty(f".offsets has {len(begin)} numbers and shape {len(shape)}")
    start = sum(offset * stride for offset, stride in zip(begin, row_major))
    return fields.numbers("strides", row_major, lowest=-_LIMIT), fields.number("start_offset", start, lowest=-_LIMIT)


def _is_contiguous(dtype: DType, shape: list[int], strides: list[int]) -> bool:
    """Row-major without gaps. Rows of int4 with an odd number of elements have gaps in a payload."""
    if 0 in shape:
        return True
    if dtype.bits == 4 and shape and shape[-1] % 2 and math.prod(shape[:-1]) > 1:
        return False
    return all(length == 1 or stride == math.prod(shape[i + 1:]) for i,
               (length, stride) in enumerate(zip(shape, strides)))


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 32 and not value.strip("0123456789abcdef")


def _stats(fields: _Fields, dtype: DType) -> dict[str, Any]:
    stats = fields.get("stats", lambda v: isinstance(v, dict), "an object")
    inner = _Fields(stats)
    checked: dict[str, Any] = {}
    for name in ("min", "max", "mean"):
        kind = dtypes.BY_NAME["float64"] if name == "mean" else dtype
        try:
            checked[name] = dtypes.json_value(dtypes.python_value(stats.get(name), kind), kind)
        except (ValueError, TypeError, OverflowError):
            raise Faulty(f".stats.{name} is {_shorten(stats.get(name))}, which no {kind.name} is") from None
    for name in ("nan", "inf", "zero", "subnormal"):
        checked[name] = inner.number(name, *([None] if name == "subnormal" else []))
    return checked
