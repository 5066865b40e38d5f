"""XXH3, from the module xxhash if it is installed, else from libxxhash, which glassbox itself needs, if that is."""
from __future__ import annotations

import ctypes
from typing import Any, Callable

import numpy as np

from .errors import NoHashing

Hash = Callable[[np.ndarray], int]


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def _from_module() -> tuple[Hash, Hash]:
    import xxhash  # type: ignore[import-not-found]

    return (lambda data: xxhash.xxh3_64_intdigest(data), lambda data: xxhash.xxh3_128_intdigest(data))


def _from_library() -> tuple[Hash, Hash]:
    library = ctypes.CDLL("libxxhash.so.0")
    hash64: Any = library.XXH3_64bits
    hash64.restype, hash64.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_size_t]
    hash128: Any = library.XXH3_128bits
    hash128.restype, hash128.argtypes = _Hash128, [ctypes.c_void_p, ctypes.c_size_t]

    def digest128(data: np.ndarray) -> int:
        value = hash128(data.ctypes.data, data.nbytes)
        return value.high << 64 | value.low

    return (lambda data: hash64(data.ctypes.data, data.nbytes)), digest128


def _find() -> tuple[Hash, Hash] | None:
    for source in (_from_module, _from_library):
        try:
            return source()
        except (ImportError, OSError, AttributeError):
            continue
    return None


_functions = _find()


def is_available() -> bool:
    return _functions is not None


def xxh3_64(data: np.ndarray) -> int:
    """The hash of contiguous bytes."""
    return _use()[0](data)


def xxh3_128(data: np.ndarray) -> int:
    """The hash of contiguous bytes; the high half comes first, as in the 32 digits of a record's hash."""
    return _use()[1](data)


def _use() -> tuple[Hash, Hash]:
    if _functions is None:
        raise NoHashing("cannot compute hashes: neither the Python module xxhash nor the library libxxhash.so.0 is "
                        "installed; install one of them (Debian: python3-xxhash or libxxhash0)")
    return _functions
