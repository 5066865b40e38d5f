#!/usr/bin/python3
"""Compares the element types of glassbox with numpy and with exact arithmetic.

    dtype_numpy_test.py PATH_OF_dtype_table

float16, float32, float64, bool and the integers are compared with numpy; bfloat16 and the two
float8, which numpy lacks, with their definition in fractions (float16 with both).
"""
import bisect
import subprocess
import sys
from fractions import Fraction

import numpy as np

SEED = 20260801
SHOWN_FAILURES = 5
EXACT_COUNT = 20_000  # of random values where a comparison takes microseconds

# name: exponent bits, fraction bits, bias, whether the top exponent is infinity and NaN
FORMATS = {
    "float16": (5, 10, 15, True),
    "bfloat16": (8, 7, 127, True),
    "float8_e4m3": (4, 3, 7, False),
    "float8_e5m2": (5, 2, 15, True),
}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


class Table:
    """Runs the conversions under test and counts what was compared."""

    def __init__(self, program):
        self.program = program
        self.counts = {}
        self.failed = 0

    def run(self, direction, name, data, out_type):
        command = [self.program, direction, name]
        done = subprocess.run(command, input=data.tobytes(), stdout=subprocess.PIPE, check=True)
        return np.frombuffer(done.stdout, dtype=out_type)

    def compare(self, name, what, inputs, got, expected):
        """Bit for bit; `got` and `expected` are unsigned."""
        if len(got) != len(expected):
            raise SystemExit(f"{name}: {what}: {len(got)} results for {len(expected)} inputs")
        wrong = np.flatnonzero(got != expected)
        for i in wrong[:SHOWN_FAILURES]:
            print(f"{name}: {what} {inputs[i]!r}: {int(got[i]):#x}, expected {int(expected[i]):#x}")
        counts = self.counts.setdefault(name, {})
        counts[what] = counts.get(what, 0) + len(got)
        self.failed += len(wrong)

    def decode(self, name, codes, expected):
        got = self.run("decode", name, codes, np.float64)
        self.compare(name, "decode", codes, plain_nan(got), plain_nan(expected))

    def encode(self, name, values, expected):
        got = self.run("encode", name, values, expected.dtype)
        self.compare(name, "encode", values, got, expected)


def plain_nan(values):
    """The bits of float64 values, with a NaN reduced to its sign."""
    bits = values.view(np.uint64)
    sign = bits & np.uint64(1 << 63)
    return np.where(np.isnan(values), sign | np.uint64(0x7FF8 << 48), bits)


def around(values):
    """Each value, its two neighbours in float64, and the negatives of all three."""
    near = np.concatenate([values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)])
    return np.concatenate([near, -near])


def general_values(count=100_000):
    """Values of all magnitudes, and the special ones. NaN is of both signs, quiet and not."""
    rng = np.random.default_rng(SEED)
    random_bits = rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    random_bits = random_bits[~np.isnan(random_bits)]
    wide = np.ldexp(rng.standard_normal(count), rng.integers(-160, 140, count))
    narrow = rng.standard_normal(count) * 300
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    nans = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (0xFFF0 << 48) + 1],
                    dtype=np.uint64).view(np.float64)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.finfo(np.float64).max])
    return np.concatenate([special, nans, random_bits, wide, narrow, around(powers)])


def definition(form):
    """Every code's value as a Fraction, "inf" or "nan", without the sign."""
    exponent_bits, fraction_bits, bias, is_ieee = form
    values = []
    for code in range(1 << (exponent_bits + fraction_bits)):
        exponent, fraction = divmod(code, 1 << fraction_bits)
        is_top = exponent == (1 << exponent_bits) - 1
        if is_top and is_ieee:
            values.append("nan" if fraction else "inf")
        elif is_top and fraction == (1 << fraction_bits) - 1:
            values.append("nan")
        else:
            significand = Fraction(fraction, 1 << fraction_bits) + (1 if exponent else 0)
            values.append(significand * Fraction(2) ** (max(exponent, 1) - bias))
    return values


class ExactEncoder:
    """The nearest code of a format, by the distances to the two codes around a value."""

    def __init__(self, form):
        self.form = form
        exact = definition(form)
        self.finite = [v for v in exact if isinstance(v, Fraction)]
        self.floats = [float(v) for v in self.finite]
        self.sign = len(exact)
        self.overflow = exact.index("inf") if "inf" in exact else len(self.finite) - 1
        # The quiet NaN of a format with infinity is its first with the top bit of the fraction.
        self.nan = self.overflow + (1 << (form[1] - 1)) if form[3] else exact.index("nan")
        # One more number at the same distance, as if the range went on.
        self.beyond = 2 * self.finite[-1] - self.finite[-2]

    def nearest(self, magnitude):
        if magnitude == np.inf:
            return self.overflow
        low = bisect.bisect_right(self.floats, magnitude) - 1
        exact = Fraction(magnitude)
        is_last = low == len(self.finite) - 1
        above = self.beyond if is_last else self.finite[low + 1]
        down, up = exact - self.finite[low], above - exact
        if down < up or (down == up and low % 2 == 0):
            return low
        return self.overflow if is_last else low + 1

    def encode(self, values, out_type):
        signs = np.signbit(values)
        codes = [self.nan if v != v else self.nearest(abs(v)) for v in values.tolist()]
        return (np.array(codes) + signs * self.sign).astype(out_type)


def midpoints(finite):
    """Halfway between every two neighbours and beyond the last, and next to it on both sides."""
    last = finite[-1] + (finite[-1] - finite[-2]) / 2
    return around(np.array([float((a + b) / 2) for a, b in zip(finite, finite[1:])] + [float(last)]))


def test_narrow_float(table, name):
    encoder = ExactEncoder(FORMATS[name])
    out_type = np.uint8 if encoder.sign == 1 << 7 else np.uint16
    exact = [np.nan if v == "nan" else float(v) for v in definition(FORMATS[name])]
    table.decode(name, np.arange(2 * encoder.sign, dtype=out_type),
                 np.array(exact + [np.copysign(v, -1.0) for v in exact]))
    numbers = np.array(encoder.floats)
    values = np.concatenate([numbers, -numbers, midpoints(encoder.finite),
                             general_values(EXACT_COUNT)])
    table.encode(name, values, encoder.encode(values, out_type))


def test_numpy_float16(table):
    codes = np.arange(1 << 16, dtype=np.uint16)
    table.decode("float16", codes, codes.view(np.float16).astype(np.float64))
    numbers = codes.view(np.float16).astype(np.float64)
    finite = np.sort(numbers[np.isfinite(numbers) & ~np.signbit(numbers)])
    values = np.concatenate([around((finite[1:] + finite[:-1]) / 2), general_values()])
    expected = values.astype(np.float16).view(np.uint16)
    # numpy keeps some of the payload of a NaN; glassbox promises its sign and that it is quiet.
    nan_code = np.where(np.signbit(values), np.uint16(0xFE00), np.uint16(0x7E00))
    table.encode("float16", values, np.where(np.isnan(values), nan_code, expected))


def test_float32(table):
    rng = np.random.default_rng(SEED)
    edges = np.array([0, 1, 2, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFE, 0x7F7FFFFF,
                      0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF], dtype=np.uint32)
    codes = np.concatenate([edges, edges | np.uint32(1 << 31),
                            rng.integers(0, 1 << 32, 1_000_000, dtype=np.uint32)])
    numbers = codes.view(np.float32).astype(np.float64)
    table.decode("float32", codes, numbers)
    low = codes[codes < 0x7F7FFFFF]
    above = (low + np.uint32(1)).view(np.float32).astype(np.float64)
    middles = (low.view(np.float32).astype(np.float64) + above) / 2
    top = np.array([float.fromhex("0x1.ffffffp127")])
    values = np.concatenate([numbers, around(middles), around(top), general_values()])
    expected = values.astype(np.float32).view(np.uint32)
    table.encode("float32", values, expected)


def test_float64(table):
    values = general_values()
    table.decode("float64", values.view(np.uint64), values)
    quiet = np.where(np.isnan(values), np.uint64(1 << 51), np.uint64(0))
    table.encode("float64", values, values.view(np.uint64) | quiet)


def integer_values(low, high):
    """Around both ends of a range, and around the halves between small integers."""
    ends = np.array([float(low), float(high), 2.0**31, 2.0**32, 2.0**53, 2.0**63, 2.0**64])
    small = np.arange(-70_000, 70_000) / 2
    by_ends = (ends[:, None] + np.arange(-20, 21) / 2).ravel()
    return np.concatenate([around(small), around(by_ends), general_values()])


def encode_integers(values, low, high, out_type):
    """numpy's rounding and cast where the result fits; the ends of the range where it does not."""
    rounded = np.rint(values)
    fits = (rounded >= float(low)) & (rounded < float(high + 1))
    expected = np.zeros(len(values), dtype=out_type)
    expected[fits] = rounded[fits].astype(out_type)
    expected[rounded < float(low)] = low
    expected[rounded >= float(high + 1)] = high
    return expected


def test_integer(table, name):
    out_type = np.dtype(name)
    low, high = np.iinfo(out_type).min, np.iinfo(out_type).max
    unsigned = np.dtype(f"uint{8 * out_type.itemsize}")
    if out_type.itemsize <= 2:
        codes = np.arange(1 << (8 * out_type.itemsize)).astype(unsigned)
    else:
        rng = np.random.default_rng(SEED)
        codes = rng.integers(0, 1 << (8 * out_type.itemsize), 200_000, dtype=unsigned)
        codes = codes >> rng.integers(0, 8 * out_type.itemsize, len(codes), dtype=unsigned)
        codes = np.concatenate([codes, ~codes])
    table.decode(name, codes, codes.view(out_type).astype(np.float64))
    values = integer_values(low, high)
    table.encode(name, values, encode_integers(values, low, high, out_type).view(unsigned))


def test_bool(table):
    codes = np.arange(256, dtype=np.uint8)
    table.decode("bool", codes, (codes != 0).astype(np.float64))
    values = general_values()
    table.encode("bool", values, values.astype(np.bool_).view(np.uint8))


def test_int4(table):
    """Every byte of two; then an odd count, whose last byte has an empty half."""
    codes = np.arange(256, dtype=np.uint8)
    halves = np.stack([codes & 15, codes >> 4], axis=1).ravel().astype(np.float64)
    table.decode("int4", codes, np.where(halves > 7, halves - 16, halves))
    for values in (integer_values(-8, 7), integer_values(-8, 7)[1:]):
        nibbles = encode_integers(values, -8, 7, np.dtype("int8")).view(np.uint8) & 15
        if len(nibbles) % 2:
            nibbles = np.append(nibbles, np.uint8(0))
        got = table.run("encode", "int4", values, np.uint8)
        unpacked = np.stack([got & 15, got >> 4], axis=1).ravel()
        table.compare("int4", "encode", np.append(values, 0.0), unpacked, nibbles)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    # Overflow and signalling NaNs are among the inputs on purpose.
    np.seterr(all="ignore")
    table = Table(sys.argv[1])
    for name in FORMATS:
        test_narrow_float(table, name)
    test_numpy_float16(table)
    test_float32(table)
    test_float64(table)
    for name in INTEGERS:
        test_integer(table, name)
    test_bool(table)
    test_int4(table)
    for name, counts in table.counts.items():
        print(f"{name}: {counts['decode']} decoded, {counts['encode']} encoded")
    compared = sum(sum(counts.values()) for counts in table.counts.values())
    print(f"{compared - table.failed} passed, {table.failed} failed")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
