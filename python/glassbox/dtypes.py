"""Element types: their numbers in the journal, their numpy dtypes, and values in the manifest's form."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np


class DType(NamedTuple):
    """`storage` is the numpy dtype of a stored element (of int4: of two); `kind` is one of float, int, uint, bool."""

    code: int
    name: str
    bits: int
    kind: str
    storage: np.dtype
    is_numpy: bool


def _table() -> tuple[DType, ...]:
    rows = [("float32", 32, "float", "<f4"), ("float16", 16, "float", "<f2"), ("bfloat16", 16, "float", "<u2"),
            ("float64", 64, "float", "<f8"), ("int8", 8, "int", "i1"), ("uint8", 8, "uint", "u1"),
            ("int16", 16, "int", "<i2"), ("uint16", 16, "uint", "<u2"), ("int32", 32, "int", "<i4"),
            ("uint32", 32, "uint", "<u4"), ("int64", 64, "int", "<i8"), ("uint64", 64, "uint", "<u8"),
            ("bool", 8, "bool", "?"), ("float8_e4m3", 8, "float", "u1"), ("float8_e5m2", 8, "float", "u1"),
            ("int4", 4, "int", "u1")]
    numpy_lacks = {"bfloat16", "float8_e4m3", "float8_e5m2", "int4"}
    return tuple(DType(i + 1, name, bits, kind, np.dtype(storage), name not in numpy_lacks)
                 for i, (name, bits, kind, storage) in enumerate(rows))


DTYPES = _table()
BY_CODE = {dtype.code: dtype for dtype in DTYPES}
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
# Names that other tools use, in lower case.
ALIASES = {"half": "float16", "double": "float64", "bf16": "bfloat16", "fp16": "float16", "fp32": "float32",
           "fp64": "float64",
           "fp8e4m3fn": "float8_e4m3", "fp8e4m3": "float8_e4m3", "float8_e4m3fn": "float8_e4m3",
           "float8e4m3fn": "float8_e4m3", "fp8e5m2": "float8_e5m2", "float8e5m2": "float8_e5m2"}
UINT64 = BY_NAME["uint64"]


def find(name: str) -> DType | None:
    """By a name in any case, also one that another tool uses."""
    lower = name.lower()
    return BY_NAME.get(ALIASES.get(lower, lower))


def _float8(exponent_bits: int, mantissa_bits: int, has_infinities: bool) -> np.ndarray:
    bias = (1 << (exponent_bits - 1)) - 1
    top, values = (1 << exponent_bits) - 1, np.empty(256, np.float32)
    for code in range(256):
        exponent, mantissa = code >> mantissa_bits & top, code & (1 << mantissa_bits) - 1
        fraction = mantissa / (1 << mantissa_bits)
        value = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
        if has_infinities and exponent == top:
            value = math.nan if mantissa else math.inf
        elif not has_infinities and code & 0x7F == 0x7F:
            value = math.nan
        values[code] = -value if code & 0x80 else value
    return values


_FLOAT8 = {"float8_e4m3": _float8(4, 3, False), "float8_e5m2": _float8(5, 2, True)}


def row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """Bytes of the elements of a shape, row-major without gaps; every row of int4 begins at a byte."""
    if dtype.bits == 4:
        return math.prod(shape[:-1]) * ((shape[-1] + 1) // 2) if shape else 1
    return math.prod(shape) * (dtype.bits // 8)


def stored_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the stored elements: that of the tensor, but for int4, which has two in a byte."""
    return (*shape[:-1], (shape[-1] + 1) // 2) if dtype.bits == 4 and shape else shape


def decode(raw: np.ndarray, dtype: DType, columns: int = 1) -> np.ndarray:
    """Stored elements as the values that they stand for, exactly; `columns`: of int4, elements of a row."""
    if dtype.name == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32) if raw.ndim else decode(raw[None], dtype)[0]
    if dtype.name in _FLOAT8:
        return _FLOAT8[dtype.name][raw]
    if dtype.bits == 4:
        return _decode_int4(raw, columns)
    if dtype.kind == "bool":
        return raw.view(np.uint8) != 0
    return raw


def _decode_int4(raw: np.ndarray, columns: int) -> np.ndarray:
    halves = np.stack([raw & 15, raw >> 4], axis=-1).astype(np.int8)
    values = (halves ^ 8) - 8
    if raw.ndim == 0:
        return values[0]
    return values.reshape(*raw.shape[:-1], 2 * raw.shape[-1])[..., :columns]


def decode_flat_int4(raw: np.ndarray, columns: int) -> np.ndarray:
    """Bytes of rows of so many elements, of which the last may be cut off, as the elements in one dimension."""
    values = _decode_int4(raw, 2 * len(raw))
    return values[np.arange(len(values)) % (columns + columns % 2) < columns] if columns else values


def scalar_value(bits: int, dtype: DType) -> Any:
    """The value of a raw word, as Python has it; floats of any width are exact."""
    bits &= (1 << dtype.bits) - 1
    if dtype.kind == "bool":
        return bits != 0
    if dtype.kind == "uint":
        return bits
    if dtype.kind == "int":
        return bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits
    raw = np.frombuffer(bits.to_bytes(dtype.bits // 8, "little"), dtype.storage)
    return float(decode(raw, dtype)[0])


def scalar_bits(value: Any, dtype: DType) -> int:
    """The raw word of a value, of a float the nearest one; OverflowError where it does not fit."""
    if dtype.kind == "float":
        return _float_bits(float(value), dtype)
    value = int(value)
    low, high = (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1)) if dtype.kind == "int" else (0, 1 << dtype.bits)
    if not low <= value < high:
        raise OverflowError(value)
    return value & (1 << dtype.bits) - 1


def _float_bits(value: float, dtype: DType) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.is_numpy:
            return int.from_bytes(np.array(value, dtype.storage).tobytes(), "little")
        codes = np.arange(1 << dtype.bits, dtype=dtype.storage)
        values = decode(codes, dtype).astype(np.float64)
    if np.isfinite(value):
        distance = np.where(np.isfinite(values), np.abs(values - value), np.inf)
        is_right_sign = np.signbit(values) == np.signbit(value)
        return int(np.argmin(np.where(is_right_sign, distance, np.inf)))
    found = np.flatnonzero(np.isnan(values) if np.isnan(value) else values == value)
    if len(found) == 0:
        raise OverflowError(value)
    return int(found[0])


def json_value(value: Any, dtype: DType) -> Any:
    """A Python value in the form of the manifest."""
    if dtype.kind == "float":
        return json_float(value, dtype.bits < 64)
    if dtype.kind == "bool":
        return bool(value)
    return str(value) if dtype.bits == 64 else value


def json_float(value: float, is_single: bool) -> Any:
    """The number that the shortest text that reads back as the same float32 (or float64) stands for."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(str(np.float32(value))) if is_single else value


def python_value(value: Any, dtype: DType) -> Any:
    """A value in the form of a manifest as Python has it; ValueError or TypeError where it is none."""
    if dtype.kind == "bool" and isinstance(value, bool):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(value)
    if dtype.kind == "float":
        if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
            raise ValueError(value)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.float32(value)) if dtype.bits < 64 else float(value)
    if isinstance(value, float):
        raise TypeError(value)
    number = int(value)
    if dtype.kind == "bool" and number not in (0, 1):
        raise ValueError(value)
    return bool(number) if dtype.kind == "bool" else number
