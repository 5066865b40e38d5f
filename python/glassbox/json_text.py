"""JSON as the command reads it: UTF-8, no member of meaning twice, no NaN or Infinity, -0 of its own."""
from __future__ import annotations

import json
import math
import pathlib
import re
from typing import Any

from .errors import DumpError
from .files import open_regular, reason

_MINUS_ZERO = re.compile(r"-0\s*[,}\]]")
_DIGITS_MAX = 4000
_WORD = 1 << 63


class MinusZero(int):
    """The text -0: an integer that is 0, and a float that is -0.0."""


INTEGERS = frozenset([int, MinusZero])


class Repeated(dict):
    """An object in which members are there twice: `names`. The last one of each is in it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.names = {name for name, _ in pairs if name in seen or seen.add(name)}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Repeated(pairs)


def _constant(text: str) -> Any:
    raise json.JSONDecodeError(f"{text} is not a JSON value", text, 0)


def _integer(text: str) -> Any:
    """Too many digits for an integer that anybody means are as a float that is too large."""
    if text == "-0":
        return MinusZero()
    return int(text) if len(text) < _DIGITS_MAX else math.copysign(math.inf, -1 if text[0] == "-" else 1)


def parse(data: bytes | str) -> Any:
    """ValueError or RecursionError where it is not valid JSON."""
    text = data if isinstance(data, str) else data.decode("utf-8")
    options: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _constant}
    if not _MINUS_ZERO.search(text):
        try:
            return json.loads(text, **options)
        except json.JSONDecodeError:
            raise
        except ValueError:
            pass  # an integer of thousands of digits, maybe in a member that is never asked for
    return json.loads(text, parse_int=_integer, **options)


def load(path: pathlib.Path) -> dict[str, Any]:
    """The object that a file holds."""
    try:
        with open_regular(path) as file:
            document = parse(file.read())
    except OSError as error:
        raise DumpError(f"reading {path}: {reason(error)}") from None
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{path} is not a complete JSON document: {error}") from None
    if not isinstance(document, dict):
        raise DumpError(f"{path}: expected an object")
    return document


def is_text(text: str) -> bool:
    """Whether it can be a name: no half of a character, and no NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def wrong_inside(value: Any) -> str:
    """What is wrong with a value that has to be right all through; "" where nothing is."""
    left = [value]
    while left:
        value = left.pop()
        wrong = _wrong(value)
        if wrong:
            return wrong
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
    return ""


def _wrong(value: Any) -> str:
    if isinstance(value, str):
        return "" if is_text(value) else "a string in it is not text"
    if isinstance(value, Repeated):
        return f"{min(value.names)!r} appears twice"
    if type(value) in INTEGERS:
        return "" if -_WORD <= value < _WORD else "an integer in it has more than 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number in it is too large"
    return ""
