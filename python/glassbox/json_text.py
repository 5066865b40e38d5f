"""JSON as the command reads it: UTF-8, no known member twice, no NaN or Infinity, and -0 kept apart from 0."""
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
    """The text -0: as an integer 0, as a float -0.0."""


INTEGERS = frozenset([int, MinusZero])


class Repeated(dict):
    """An object with repeated members: `names`. It holds the last of each."""

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
    """An integer with thousands of digits counts as a float that is too large."""
    if text == "-0":
        return MinusZero()
    return int(text) if len(text) < _DIGITS_MAX else math.copysign(math.inf, -1 if text[0] == "-" else 1)


def parse(data: bytes | str) -> Any:
    """Raises ValueError or RecursionError if it is not valid JSON."""
    text = data if isinstance(data, str) else data.decode("utf-8")
    options: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _constant}
    if not _MINUS_ZERO.search(text):
        try:
            return json.loads(text, **options)
        except json.JSONDecodeError:
            raise
        except ValueError:
            pass  # an integer of thousands of digits, maybe in a member that nobody reads
    return json.loads(text, parse_int=_integer, **options)


def load(path: pathlib.Path) -> dict[str, Any]:
    """The object in a file."""
    try:
        with open_regular(path) as file:
            document = parse(file.read())
    except OSError as error:
        raise DumpError(f"cannot read {path}: {reason(error)}") from None
    except (ValueError, RecursionError) as error:
        raise DumpError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise DumpError(f"{path}: expected an object")
    return document


def is_text(text: str) -> bool:
    """Whether it can be a name: without half characters and zero bytes."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def wrong_inside(value: Any) -> str:
    """What is wrong anywhere inside a value; "" if nothing is."""
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
        return "" if is_text(value) else "a string is not UTF-8 text without zero bytes"
    if isinstance(value, Repeated):
        return f'"{min(value.names)}" appears twice'
    if type(value) in INTEGERS:
        return "" if -_WORD <= value < _WORD else "an integer has more than 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number is too large"
    return ""
