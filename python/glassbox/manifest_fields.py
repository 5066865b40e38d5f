"""Reads members of an object by their types, or says what is wrong with them. null counts as missing."""
from __future__ import annotations

import json
import math
import re
from typing import Any, Iterable, Sequence

from .dtypes import DType, encode
from .json_text import INTEGERS, MinusZero

WORD_END = 1 << 63
_HEX = re.compile("0x[0-9a-fA-F]{1,16}")
_DECIMAL = re.compile("-?(0|[1-9][0-9]*)", re.ASCII)
_NUMBERS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_SHOWN_MAX = 40


class Faulty(Exception):
    """What is wrong; the sentence puts it after the place in the manifest."""


def shorten(value: Any) -> str:
    is_flat = not isinstance(value, list) or not any(isinstance(element, (dict, list)) for element in value)
    if isinstance(value, dict) or not is_flat:
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value[:_SHOWN_MAX] if isinstance(value, (list, str)) else value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX - 3] + "..."


def refuse(members: dict[str, Any], name: str, expected: str) -> Faulty:
    if members.get(name) is None:
        return missing(name)
    return Faulty(f".{name}: expected {expected}, got {shorten(members[name])}")


def missing(name: str) -> Faulty:
    return Faulty(f': "{name}" is missing')


def either(names: Iterable[str]) -> str:
    """"in, out or inout"."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _integer_from(low: int, end: int) -> str:
    return "a 64-bit integer" if low == -WORD_END else f"an integer from {low} to {end - 1}"


def integer(members: dict[str, Any], name: str, low: int = 0, end: int = WORD_END, default: Any = None) -> Any:
    value = members.get(name)
    if value is None:
        return default
    if type(value) not in INTEGERS or not low <= value < end:
        raise refuse(members, name, _integer_from(low, end))
    return value


def integers(members: dict[str, Any], name: str, low: int = 0, end: int = WORD_END, most: int = 8) -> list[int] | None:
    values = members.get(name)
    if values is None:
        return None
    if not isinstance(values, list):
        raise refuse(members, name, "an array")
    if len(values) > most:
        raise Faulty(f".{name}: has more than {most} elements")
    for position, value in enumerate(values):
        if type(value) not in INTEGERS or not low <= value < end:
            raise Faulty(f".{name}[{position}]: expected {_integer_from(low, end)}, got {shorten(value)}")
    return values


def truth(members: dict[str, Any], name: str, default: Any = False) -> Any:
    value = members.get(name)
    if value is None:
        return default
    if value is not True and value is not False:
        raise refuse(members, name, "true or false")
    return value


def text(members: dict[str, Any], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise refuse(members, name, "a string")
    return value


def choice(members: dict[str, Any], name: str, choices: Sequence[str], default: str | None = None) -> str:
    """Returns the member of `choices` itself: a million entries share it."""
    value = members.get(name, default)
    if value is None:
        value = default
    try:
        return choices[choices.index(value)]
    except ValueError:
        raise refuse(members, name, either(choices)) from None


def word(members: dict[str, Any], name: str) -> int | None:
    """A string such as "0x11", of up to 64 bits."""
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise refuse(members, name, 'a string "0x..." of up to 16 hexadecimal digits')
    return int(value, 16)


def value_bits(value: Any, dtype: DType) -> int:
    """The bits of a value from a manifest, rounded to the nearest float; ValueError if the dtype cannot hold it."""
    if dtype.kind == "float":
        return encode(_number(value), dtype)
    if dtype.kind == "bool" and isinstance(value, bool):
        return int(value)
    if dtype.kind != "bool" and isinstance(value, str) and _DECIMAL.fullmatch(value) and len(value) <= 20:
        value = int(value)
    if type(value) not in INTEGERS:
        raise ValueError(value)
    half = 1 << (dtype.bits - 1)
    low, end = {"int": (-half, half), "uint": (0, 2 * half), "bool": (0, 2)}[dtype.kind]
    if not low <= value < end:
        raise ValueError(value)
    return value & 2 * half - 1


def _number(value: Any) -> float:
    if isinstance(value, str):
        if value.lower() not in _NUMBERS:
            raise ValueError(value)
        return _NUMBERS[value.lower()]
    if type(value) is MinusZero:
        return -0.0
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise ValueError(value) from None
    if not isinstance(value, float) or math.isinf(value):
        raise ValueError(value)
    return value


def number(members: dict[str, Any], name: str) -> float:
    """A number, or one of the strings for NaN and the infinities."""
    try:
        return _number(members.get(name))
    except ValueError:
        raise refuse(members, name, "a number") from None
