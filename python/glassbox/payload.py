"""The payload file: mapped once, read-only."""
from __future__ import annotations

import pathlib

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import DumpError, NoPayload
from .files import map_bytes, reason


class Payload:
    """Arrays are views of the mapping, which lives as long as any of them."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._bytes: np.ndarray | None = None

    def bytes_at(self, offset: int, size: int, what: str) -> np.ndarray:
        if self._bytes is None:
            self._bytes = self._map()
        if offset + size > len(self._bytes):
            raise DumpError(f"{what} has {size} bytes at offset {offset}, but {self.path} ends at {len(self._bytes)}: "
                            "the file is cut off or belongs to another dump")
        return self._bytes[offset:offset + size]

    def _map(self) -> np.ndarray:
        try:
            return map_bytes(self.path)
        except OSError as error:
            raise DumpError(f"cannot read {self.path}: {reason(error)}; it holds the payload of tensors") from None


def shaped(raw: np.ndarray, dtype: DType, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Views bytes as the stored elements of a tensor."""
    if raw.nbytes != dtypes.row_bytes(dtype, shape):
        raise DumpError(f"{what}: its payload has {raw.nbytes} bytes, but {dtype.name} of shape {list(shape)} has "
                        f"{dtypes.row_bytes(dtype, shape)}")
    try:
        return np.ndarray(dtypes.stored_shape(dtype, shape), dtype.storage, raw)
    except ValueError as error:
        raise DumpError(f"{what}: numpy cannot make an array of shape {list(shape)}: {error}") from None


def flat(raw: np.ndarray, dtype: DType) -> np.ndarray:
    """Views bytes as a row of stored elements, without an incomplete last one."""
    width = dtype.storage.itemsize
    return raw[:len(raw) // width * width].view(dtype.storage)


def with_truth_values(array: np.ndarray) -> np.ndarray:
    """numpy expects bools of 0 and 1; if a kernel left other bytes, this returns a copy with 0 and 1."""
    stored = array.view(np.uint8)
    return stored != 0 if stored.size and stored.max() > 1 else array


def missing(what: str, why: str) -> NoPayload:
    return NoPayload(f"{what}: {why}")
