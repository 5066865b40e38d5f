"""Reads shape, strides and start of a tensor from a manifest, and checks that they fit together."""
from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from . import dtypes
from .dtypes import DType
from .manifest_fields import WORD_END, Faulty, integer, integers, missing, shorten, truth

_NUMEL_MAX = (WORD_END - 1) // 8
_Numbers = tuple[int, ...]


class Geometry(NamedTuple):
    shape: _Numbers
    strides: _Numbers
    start_offset: int
    numel: int
    is_contiguous: bool
    whole_bytes: int


def read(entry: dict[str, Any], dtype: DType) -> Geometry:
    """Without a shape, the geometry of one element without dimensions."""
    shape, strides = integers(entry, "shape"), integers(entry, "strides", -WORD_END)
    raw_shape, offsets = integers(entry, "raw_shape"), integers(entry, "offsets")
    geometry = _make(dtype.name, tuple(shape or ()), None if raw_shape is None else tuple(raw_shape),
                     None if offsets is None else tuple(offsets), None if strides is None else tuple(strides),
                     integer(entry, "start_offset", -WORD_END))
    numel = integer(entry, "numel", default=geometry.numel)
    if numel != geometry.numel:
        raise Faulty(f".numel: {numel} differs from the {geometry.numel} elements of shape {shorten(list(geometry.shape))}")
    # Tools differ in what they call not contiguous: only true is checked.
    if truth(entry, "is_contiguous") and not geometry.is_contiguous:
        raise Faulty(f".is_contiguous: is true, but shape {shorten(list(geometry.shape))} and strides "
                     f"{shorten(list(geometry.strides))} are not those of a row-major tensor without gaps")
    return geometry


@functools.lru_cache(1 << 14)
def _make(dtype_name: str, shape: _Numbers, raw_shape: _Numbers | None, offsets: _Numbers | None,
          strides: _Numbers | None, start: int | None) -> Geometry:
    dtype = dtypes.BY_NAME[dtype_name]
    if math.prod(filter(None, shape)) > _NUMEL_MAX:
        raise Faulty(f".shape: the size of {shorten(list(shape))} overflows 64 bits")
    window = None if raw_shape is None and offsets is None else _window(shape, raw_shape, offsets)
    if strides is None:
        strides = window[0] if window else _row_major(shape)
    _check_length("strides", strides, shape)
    if start is None:
        start = window[1] if window else 0
    if window and not _is_same_view(shape, window, (strides, start)):
        raise Faulty(f".raw_shape: with offsets, it gives strides {list(window[0])} and start_offset {window[1]}, but the "
                     f"entry has {list(strides)} and {start}")
    _check_reach(dtype, shape, strides, start)
    return Geometry(shape, strides, start, math.prod(shape), _is_contiguous(dtype, shape, strides, start),
                    dtypes.row_bytes(dtype, shape))


def _check_length(name: str, numbers: _Numbers, shape: _Numbers) -> None:
    if len(numbers) != len(shape):
        raise Faulty(f'.{name}: has {len(numbers)} elements, but "shape" has {len(shape)}')


def _row_major(shape: _Numbers) -> _Numbers:
    """Row-major strides; an empty dimension counts as one element."""
    return tuple(math.prod(filter(None, shape[i + 1:])) for i in range(len(shape)))


def _window(shape: _Numbers, raw_shape: _Numbers | None, offsets: _Numbers | None) -> tuple[_Numbers, int]:
    """Strides and start of a view of this shape at `offsets` of a row-major buffer with `raw_shape`."""
    if raw_shape is None or offsets is None:
        raise missing("raw_shape" if raw_shape is None else "offsets")
    _check_length("raw_shape", raw_shape, shape)
    _check_length("offsets", offsets, shape)
    strides = _row_major(raw_shape)
    start = sum(offset * stride for offset, stride in zip(offsets, strides))
    if math.prod(filter(None, raw_shape)) >= WORD_END or start >= WORD_END:
        raise Faulty(f".raw_shape: the size of {shorten(list(raw_shape))} overflows 64 bits")
    for i, (offset, length, whole) in enumerate(zip(offsets, shape, raw_shape)):
        if offset + length > whole:
            raise Faulty(f".offsets: dimension {i}: {length} from {offset} on lie outside the {whole} of "
                         "raw_shape")
    return strides, start


def _is_same_view(shape: _Numbers, one: tuple[_Numbers, int], other: tuple[_Numbers, int]) -> bool:
    """Ignores the strides of dimensions with one element, and everything if a dimension is empty."""
    if 0 in shape:
        return True
    return one[1] == other[1] and all(length == 1 or a == b for length, a, b in zip(shape, one[0], other[0]))


def _check_reach(dtype: DType, shape: _Numbers, strides: _Numbers, start: int) -> None:
    if start < 0:
        raise Faulty(f".start_offset: expected 0 or more, got {start}")
    if 0 in shape:
        return
    steps = [(length - 1) * stride for length, stride in zip(shape, strides)]
    first = start + sum(step for step in steps if step < 0)
    last = start + sum(step for step in steps if step > 0)
    if first < 0:
        raise Faulty(f".strides: {shorten(list(strides))} reach element {first}, before the first one")
    if (last + 1) * max(dtype.bits // 8, 1) >= WORD_END or last >= WORD_END:
        raise Faulty(f".strides: {shorten(list(strides))} reach beyond 2^63 bytes")


def _is_contiguous(dtype: DType, shape: _Numbers, strides: _Numbers, start: int) -> bool:
    """Row-major like a payload: without gaps, except the padding after rows of packed elements."""
    if 0 in shape:
        return True
    if dtype.is_packed and start % 2:
        return False
    expected = 1
    for i in reversed(range(len(shape))):
        if shape[i] > 1 and strides[i] != expected:
            return False
        is_padded = dtype.is_packed and i + 1 == len(shape) and shape[i] % 2
        expected *= shape[i] + 1 if is_padded else shape[i]
    return True
