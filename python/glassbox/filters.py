"""Filters, with the same keys and values as in the command."""
from __future__ import annotations

import fnmatch
from typing import Any, Mapping, Sequence

import numpy as np

from . import dtypes
from .columns import Columns
from .errors import FilterError
from .manifest_fields import either

KEYS = ("kernel", "func", "task", "arg", "role", "stage", "kind", "dtype")
_ROLES = {"input": 0, "output": 1, "inout": 2, "in": 0, "out": 1}
_STAGES = {"before_dispatch": 0, "after_completion": 1, "before": 0, "after": 1}
_KINDS = {"tensor": 0, "scalar": 1}


def matching(filters: Mapping[str, Any], source: Any) -> np.ndarray:
    """Which records match all keys. A list, tuple or set matches if one of its members does."""
    unknown = [key for key in filters if key not in KEYS]
    if unknown:
        raise FilterError(f'unknown key "{unknown[0]}"; expected {either(KEYS)}')
    given = {key: list(values) if isinstance(values, (list, tuple, set, frozenset)) else [values]
             for key, values in filters.items() if values is not None}
    mask = _match_functions(given.pop("kernel", None), given.pop("func", None), source)
    for key, values in given.items():
        mask &= np.logical_or.reduce([_match(key, value, source) for value in values] or [np.zeros(len(mask), bool)])
    return mask


def _match_functions(kernels: list[Any] | None, functions: list[Any] | None, source: Any) -> np.ndarray:
    """Tasks with a kernel that has one of these names and one of these func_ids."""
    columns: Columns = source.columns
    if kernels is None and functions is None:
        return np.ones(len(columns.task), bool)
    matches = np.ones(columns.functions.shape, bool)
    if kernels is not None:
        _check_globs(kernels)
        named = [function for function, name in source.kernel_names.items() if _is_named(name, kernels)]
        matches &= np.isin(columns.functions, np.array(named, np.int64))
    if functions is not None:
        expected = "a func_id such as 3 or a range such as 0..3"
        ranges = [_range(value, "func", expected, 1 << 32) for value in functions]
        matches &= _within(columns.functions, ranges)
    return matches.any(axis=1)


def _within(column: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    mask = np.zeros(column.shape, bool)
    for low, high in ranges:
        mask |= (column >= low) & (column <= high)
    return mask


def _check_globs(globs: list[Any]) -> None:
    for glob in globs:
        if not isinstance(glob, str) or not glob:
            raise FilterError(f'kernel {glob!r} is not a name or a glob such as "softmax*"')


def _is_named(name: str | None, globs: list[str]) -> bool:
    return name is not None and any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _match(key: str, value: Any, source: Any) -> np.ndarray:
    columns: Columns = source.columns
    if key == "task":
        return _match_task(value, columns)
    if key == "arg":
        return _match_argument(value, source)
    if key == "dtype":
        dtype = dtypes.find(value) if isinstance(value, str) else None
        if dtype is None:
            raise FilterError(f"unknown dtype {value!r}; expected {either(dtypes.BY_NAME)}")
        return columns.dtype == dtype.code
    names, column = {"role": (_ROLES, columns.role), "stage": (_STAGES, columns.stage),
                     "kind": (_KINDS, columns.is_scalar)}[key]
    if not isinstance(value, str) or value not in names:
        raise FilterError(f"unknown {key} {value!r}; expected {either(names)}")
    return column == names[value]


def _match_argument(value: Any, source: Any) -> np.ndarray:
    if isinstance(value, str) and value and not value[0].isdigit():
        names, which = source.arg_names()
        is_match = [name is not None and fnmatch.fnmatchcase(name, value) for name in names]
        return np.array(is_match, bool)[which] if names else np.zeros(0, bool)
    expected = "a slot from 0 to 63, a range such as 0..3, or a name or glob"
    return _within(source.columns.arg, [_range(value, "arg", expected, 64)])


def _match_task(value: Any, columns: Columns) -> np.ndarray:
    low, high = _range(value, "task", "a number such as 17 or 0x11, or a range such as 10..20", 1 << 64)
    if isinstance(value, str) and value[:2].lower() == "0x":
        return columns.has_task_id & (columns.task_id >= np.uint64(low)) & (columns.task_id <= np.uint64(high))
    return (columns.task >= min(low, 1 << 62)) & (columns.task <= min(high, 1 << 62))


def _range(value: Any, key: str, expected: str, limit: int) -> tuple[int, int]:
    """First and last number of a number, a range such as "10..20", or a Python range."""
    if isinstance(value, range) and len(value) and value.step == 1:
        low, high = value[0], value[-1]
    elif isinstance(value, str):
        first, dots, last = value.partition("..")
        low = _number(first)
        high = _number(last) if dots else low
    else:
        low = high = int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else -1
    if not 0 <= low <= high < limit:
        raise FilterError(f"{key} {value!r} is not {expected}")
    return low, high


def _number(text: str) -> int:
    """Decimal, or hexadecimal after 0x; -1 if neither."""
    digits, base = (text[2:], 16) if text[:2].lower() == "0x" else (text, 10)
    try:
        return int(digits, base) if digits.isascii() and digits.isalnum() else -1
    except ValueError:
        return -1
