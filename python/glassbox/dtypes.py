"""Element types: their numbers in the journal, their numpy dtypes, and values in the manifest's form."""
from __future__ import annotations

import math
import struct
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
# Names that other tools use, in lower case. A number counts bits; names that tools disagree on are not among them.
_OTHER_NAMES = {
    "float32": "float fp32 f32 single float32_t", "float16": "half fp16 f16 float16_t",
    "bfloat16": "bf16 bfloat bfloat16_t", "float64": "double fp64 f64 float64_t", "int8": "i8 s8 int8_t",
    "uint8": "u8 ui8 uint8_t", "int16": "i16 s16 int16_t", "uint16": "u16 ui16 uint16_t", "int32": "i32 s32 int32_t",
    "uint32": "u32 ui32 uint32_t", "int64": "i64 s64 int64_t", "uint64": "u64 ui64 uint64_t",
    "bool": "bool_ bool8 boolean", "int4": "i4 s4 int4_t",
    "float8_e4m3": "float8_e4m3fn float8e4m3fn float8e4m3 fp8_e4m3fn fp8_e4m3 fp8e4m3fn fp8e4m3 f8_e4m3fn f8_e4m3 "
                   "f8e4m3fn f8e4m3 e4m3fn e4m3",
    "float8_e5m2": "float8e5m2 fp8_e5m2 fp8e5m2 f8_e5m2 f8e5m2 e5m2"}
ALIASES = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}
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


# Bits of the fraction, bias of the exponent, and the code after the largest number, of what struct does not know.
_SMALL_FLOATS = {"bfloat16": (7, 127, 0x7F80), "float8_e4m3": (3, 7, 0x7F), "float8_e5m2": (2, 15, 0x7C)}
_SMALL_NANS = {"bfloat16": 0x7FC0, "float8_e4m3": 0x7F, "float8_e5m2": 0x7E}
_STRUCT = {"float16": "<e", "float32": "<f", "float64": "<d"}
_E4M3_END = 464.0  # half a step beyond the largest number; there is no infinity


def encode(value: float, dtype: DType) -> int:
    """The bits of the float that is nearest to a value, of two of them the even one; ValueError beyond the range."""
    if dtype.name in _STRUCT:
        try:
            return int.from_bytes(struct.pack(_STRUCT[dtype.name], value), "little")
        except OverflowError:
            raise ValueError(value) from None
    if math.isnan(value):
        return _SMALL_NANS[dtype.name]
    if dtype.name == "float8_e4m3" and abs(value) > _E4M3_END:
        raise ValueError(value)
    fraction_bits, bias, end = _SMALL_FLOATS[dtype.name]
    sign = (1 << (dtype.bits - 1)) if math.copysign(1, value) < 0 else 0
    if math.isinf(value):
        return sign | end
    # In steps of the last bit that is kept: exact, and rounded once. A carry raises the exponent.
    exponent = max(math.frexp(value)[1] - 1 + bias, 1) if value else 1
    steps = round(math.ldexp(abs(value), fraction_bits + bias - exponent))
    code = steps + (exponent - 1 << fraction_bits)
    if dtype.name == "float8_e4m3":
        return sign | min(code, end - 1)
    if code >= end:
        raise ValueError(value)
    return sign | code


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
    """A value that json_value gave, as Python has it; of float32 and narrower ones exactly."""
    if dtype.kind == "float":
        return float(np.float32(value)) if dtype.bits < 64 else float(value)
    return value if dtype.kind == "bool" else int(value)
