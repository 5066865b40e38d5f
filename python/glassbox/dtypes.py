"""Element types: their numbers in the journal, their numpy dtypes, and their values as in the manifest.

A new dtype is one more row of _ROWS.
"""
from __future__ import annotations

import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np


class Format(NamedTuple):
    """A float that numpy lacks: the bits of its parts, and which codes are not normal numbers.

    `specials`: "ieee": zero, subnormals, infinity, NaNs above. "nan_last": zero, subnormals; the last code is NaN.
    "finite": zero, subnormals. "scale": only normal numbers; the last code is NaN.
    """

    sign: int
    exponent: int
    fraction: int
    bias: int
    specials: str

    @property
    def last_finite(self) -> int:
        """Like all codes here, without the sign."""
        last = (1 << self.exponent + self.fraction) - 1
        return last - {"ieee": 1 << self.fraction, "finite": 0}.get(self.specials, 1)

    @property
    def nan(self) -> int:
        return self.last_finite + 1 + ((1 << self.fraction) // 2 if self.specials == "ieee" else 0)

    def value(self, code: int) -> float:
        """The value of a code without its sign."""
        exponent, fraction = code >> self.fraction, code & (1 << self.fraction) - 1
        if code > self.last_finite:
            return math.inf if self.specials == "ieee" and fraction == 0 else math.nan
        is_normal = exponent > 0 or self.specials == "scale"
        return math.ldexp((is_normal << self.fraction) + fraction, max(exponent, 1 - is_normal) - self.bias - self.fraction)


class DType(NamedTuple):
    """`storage` is the numpy dtype of a stored element, or of a pair of 4 bits each; `kind` is float, int, uint or bool."""

    code: int
    name: str
    bits: int
    kind: str
    storage: np.dtype
    format: Format | None

    @property
    def is_numpy(self) -> bool:
        return self.format is None and not self.is_packed

    @property
    def is_packed(self) -> bool:
        """Two elements per byte, the first in the low half; every row begins at a byte."""
        return self.bits < 8


# Name, bits, kind, stored as, format of a float that numpy lacks, and names that other tools use, in lower case. A number
# in a name counts bits; names that tools disagree on are left out. The first row has the number 1.
_ROWS = (
    ("float32", 32, "float", "<f4", None, "float fp32 f32 single float32_t"),
    ("float16", 16, "float", "<f2", None, "half fp16 f16 float16_t"),
    ("bfloat16", 16, "float", "<u2", Format(1, 8, 7, 127, "ieee"), "bf16 bfloat bfloat16_t"),
    ("float64", 64, "float", "<f8", None, "double fp64 f64 float64_t"),
    ("int8", 8, "int", "i1", None, "i8 s8 int8_t"),
    ("uint8", 8, "uint", "u1", None, "u8 ui8 uint8_t"),
    ("int16", 16, "int", "<i2", None, "i16 s16 int16_t"),
    ("uint16", 16, "uint", "<u2", None, "u16 ui16 uint16_t"),
    ("int32", 32, "int", "<i4", None, "i32 s32 int32_t"),
    ("uint32", 32, "uint", "<u4", None, "u32 ui32 uint32_t"),
    ("int64", 64, "int", "<i8", None, "i64 s64 int64_t"),
    ("uint64", 64, "uint", "<u8", None, "u64 ui64 uint64_t"),
    ("bool", 8, "bool", "?", None, "bool_ bool8 boolean"),
    ("float8_e4m3", 8, "float", "u1", Format(1, 4, 3, 7, "nan_last"),
     "float8_e4m3fn float8e4m3fn float8e4m3 fp8_e4m3fn fp8_e4m3 fp8e4m3fn fp8e4m3 f8_e4m3fn f8_e4m3 f8e4m3fn f8e4m3 e4m3fn "
     "e4m3"),
    ("float8_e5m2", 8, "float", "u1", Format(1, 5, 2, 15, "ieee"), "float8e5m2 fp8_e5m2 fp8e5m2 f8_e5m2 f8e5m2 e5m2"),
    ("int4", 4, "int", "u1", None, "i4 s4 int4_t"),
    ("float4_e2m1", 4, "float", "u1", Format(1, 2, 1, 1, "finite"),
     "float4_e2m1fn float4e2m1fn float4e2m1 fp4_e2m1fn fp4_e2m1 fp4e2m1fn f4_e2m1fn f4_e2m1 f4e2m1fn f4e2m1 e2m1fn "
     "e2m1"),
    ("float8_e8m0", 8, "float", "u1", Format(0, 8, 0, 127, "scale"),
     "float8_e8m0fnu float8e8m0fnu float8e8m0 fp8_e8m0fnu fp8_e8m0 fp8e8m0fnu fp8e8m0 f8_e8m0fnu f8_e8m0 f8e8m0fnu f8e8m0 "
     "e8m0fnu e8m0 ue8m0"),
)
DTYPES = tuple(DType(i, name, bits, kind, np.dtype(storage), form)
               for i, (name, bits, kind, storage, form, _) in enumerate(_ROWS, 1))
UNKNOWN = DType(0, "unknown", 64, "uint", np.dtype("<u8"), None)  # an undeclared scalar: a raw word without a value
BY_CODE = {dtype.code: dtype for dtype in (*DTYPES, UNKNOWN)}
BY_NAME = {dtype.name: dtype for dtype in (*DTYPES, UNKNOWN)}
ALIASES = {other: name for name, *_, others in _ROWS for other in others.split()}


def find(name: str) -> DType | None:
    """Finds a dtype by its name, in any case, or by a name that another tool uses; also "unknown"."""
    lower = name.lower()
    return BY_NAME.get(ALIASES.get(lower, lower))


@functools.cache
def _values(dtype: DType) -> np.ndarray:
    """The value of each code: float32, or for 4-bit integers int8 and uint8."""
    if dtype.format is None:
        low = 1 << dtype.bits - 1 if dtype.kind == "int" else 0
        return np.array([(code ^ low) - low for code in range(1 << dtype.bits)], np.int8 if low else np.uint8)
    magnitudes = [dtype.format.value(code) for code in range(1 << dtype.bits - dtype.format.sign)]
    return np.array(magnitudes + [-value for value in magnitudes] * dtype.format.sign, np.float32)


def row_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """The bytes that a tensor of this shape takes, row-major without gaps; every row of packed elements begins at a byte."""
    if dtype.is_packed:
        return math.prod(shape[:-1]) * ((shape[-1] + 1) // 2) if shape else 1
    return math.prod(shape) * (dtype.bits // 8)


def stored_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the stored elements: that of the tensor, or of its bytes if two elements share one."""
    return (*shape[:-1], (shape[-1] + 1) // 2) if dtype.is_packed and shape else shape


def decode(raw: np.ndarray, dtype: DType, columns: int = 1) -> np.ndarray:
    """The exact values of stored elements; `columns`: the length of a row of packed elements."""
    if dtype.is_packed:
        return _decode_pairs(raw, dtype, columns)
    if dtype.name == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32) if raw.ndim else decode(raw[None], dtype)[0]
    if dtype.format:
        return _values(dtype)[raw]
    if dtype.kind == "bool":
        return raw.view(np.uint8) != 0
    return raw


def _decode_pairs(raw: np.ndarray, dtype: DType, columns: int) -> np.ndarray:
    values = _values(dtype)[np.stack([raw & 15, raw >> 4], axis=-1)]
    if raw.ndim == 0:
        return values[0]
    return values.reshape(*raw.shape[:-1], 2 * raw.shape[-1])[..., :columns]


def decode_flat_pairs(raw: np.ndarray, dtype: DType, columns: int) -> np.ndarray:
    """The elements, in one dimension, of rows of `columns` packed elements; the last row may be cut off."""
    values = _decode_pairs(raw, dtype, 2 * len(raw))
    return values[np.arange(len(values)) % (columns + columns % 2) < columns] if columns else values


def scalar_value(bits: int, dtype: DType) -> Any:
    """The value of a raw word as a Python number; floats of any width are exact."""
    bits &= (1 << dtype.bits) - 1
    if dtype.kind == "bool":
        return bits != 0
    if dtype.kind == "uint":
        return bits
    if dtype.kind == "int":
        return bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits
    if dtype.format:
        sign = dtype.format.sign << dtype.bits - 1
        return dtype.format.value(bits & ~sign) * (-1 if bits & sign else 1)
    return float(np.frombuffer(bits.to_bytes(dtype.bits // 8, "little"), dtype.storage)[0])


_STRUCT = {"float16": "<e", "float32": "<f", "float64": "<d"}


def encode(value: float, dtype: DType) -> int:
    """The bits of the nearest float, ties to even; ValueError if the value is out of range."""
    form = dtype.format
    if form is None:
        try:
            return int.from_bytes(struct.pack(_STRUCT[dtype.name], value), "little")
        except OverflowError:
            raise ValueError(value) from None
    if math.isnan(value) and form.specials != "finite":
        return form.nan
    is_negative = math.copysign(1, value) < 0
    if math.isnan(value) or is_negative and not form.sign or math.isinf(value) and form.specials != "ieee":
        raise ValueError(value)
    sign = is_negative << dtype.bits - 1
    if math.isinf(value):
        return sign | form.last_finite + 1
    largest = form.value(form.last_finite)
    half_step = math.ldexp(1, math.frexp(largest)[1] - 2 - form.fraction)
    is_beyond = abs(value) >= largest + half_step if form.specials == "ieee" else abs(value) > largest + half_step
    if is_beyond or form.specials == "scale" and value < form.value(0) / 2:
        raise ValueError(value)
    # Counts steps of the last kept bit: exact, and rounded once. A carry raises the exponent.
    exponent = math.frexp(value)[1] - 1 + form.bias if value else 1
    if form.specials != "scale":
        exponent = max(exponent, 1)
    steps = round(math.ldexp(abs(value), form.fraction + form.bias - exponent))
    return sign | min(max(steps + (exponent - 1 << form.fraction), 0), form.last_finite)


def json_scalar(bits: int, dtype: DType) -> dict[str, Any]:
    """The members of a scalar as the manifest writes them: value and bits; without a dtype only the bits."""
    value = {} if dtype is UNKNOWN else {"value": json_value(scalar_value(bits, dtype), dtype)}
    return {**value, "bits": f"0x{bits:016x}"}


def json_value(value: Any, dtype: DType) -> Any:
    """A Python value as the manifest writes it."""
    if dtype.kind == "float":
        return json_float(value, dtype.bits < 64)
    if dtype.kind == "bool":
        return bool(value)
    return str(value) if dtype.bits == 64 else value


def json_float(value: float, is_single: bool) -> Any:
    """The number whose text is the shortest that reads back as the same float32 (or float64)."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(str(np.float32(value))) if is_single else value


def python_value(value: Any, dtype: DType) -> Any:
    """The reverse of json_value; exact for float32 and narrower dtypes."""
    if dtype.kind == "float":
        return float(np.float32(value)) if dtype.bits < 64 else float(value)
    return value if dtype.kind == "bool" else int(value)
