#!/usr/bin/python3
"""Compares the texts and histograms of arrays with numpy, byte for byte.

    array_text_numpy_test.py PATH_OF_array_text_table

numpy lacks bfloat16 and the two float8: their digits come from exact arithmetic here, and numpy
makes the layout.
"""
import io
import subprocess
import sys
from fractions import Fraction
from unittest import mock

import numpy as np
from numpy.core import arrayprint

from dtype_numpy_test import FORMATS, definition

SEED = 20260802
SHOWN_FAILURES = 5
EDGE_ITEMS, THRESHOLD = 3, 1000
END = b"\1\n"

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
NARROW = ("bfloat16", "float8_e4m3", "float8_e5m2")


class Table:
    """Collects requests and their expected results, runs all at once and compares."""

    def __init__(self, program):
        self.program = program
        self.requests = io.BytesIO()
        self.expected = []
        self.counts = {}
        self.failed = 0

    def ask(self, name, line, data, expected):
        self.requests.write(line.encode() + b"\n" + data)
        self.expected.append((name, line, expected))

    def run(self):
        done = subprocess.run([self.program], input=self.requests.getvalue(),
                              stdout=subprocess.PIPE, check=True)
        output, at = done.stdout, 0
        for name, line, expected in self.expected:
            got = output[at:at + len(expected)]
            if got != expected and expected.endswith(END):
                got = output[at:output.index(END, at) + len(END)]
            elif got != expected:
                lines = output[at:].splitlines(keepends=True)[:expected.count(b"\n")]
                got = b"".join(lines)
            self.compare(name, line, got, expected)
            at += len(got)
        if at != len(output):
            raise SystemExit(f"{len(output) - at} bytes more than expected")

    def compare(self, name, line, got, expected):
        self.counts[name] = self.counts.get(name, 0) + 1
        if got == expected:
            return
        self.failed += 1
        if self.failed > SHOWN_FAILURES:
            return
        if not expected.endswith(END):
            pairs = zip(got.splitlines(), expected.splitlines())
            got, expected = next(((g, e) for g, e in pairs if g != e), (got, expected))
        print(f"{name}: {line}\ngot\n{got.decode()}\nexpected\n{expected.decode()}\n")

    def array(self, name, data, shape, text, *, dtype, is_full, width, stored=None):
        count = int(np.prod(shape, dtype=np.int64))
        line = f"array {dtype} {int(is_full)} {width} {count if stored is None else stored}"
        line += "".join(f" {n}" for n in (len(shape), *shape))
        self.ask(name, line, data.tobytes(), text.encode() + b"\n" + END)

    def elements(self, dtype, codes, texts):
        lines = "".join(f"{text}\n" for text in texts)
        self.ask("element", f"element {dtype} {len(codes)}", codes.tobytes(), lines.encode())


# --- values ---


def special_floats(rng, values):
    """Puts some of the special values in some places."""
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    chosen = specials[rng.random(len(specials)) < 0.4]
    if len(chosen) and values.size:
        places = rng.random(values.shape) < rng.choice([0.1, 0.5, 1.0])
        values = np.where(places, rng.choice(chosen, values.shape), values)
    return values


def float_values(rng, shape, dtype):
    """Values of one random kind; each kind shows a different rule of the layout."""
    kind = rng.integers(0, 9)
    normal = rng.standard_normal(shape)
    if kind == 0:
        values = normal
    elif kind == 1:
        values = normal * 10.0 ** rng.integers(-12, 14)
    elif kind == 2:
        values = np.ldexp(normal, rng.integers(-30, 30, shape))
    elif kind == 3:
        values = np.rint(normal * 10.0 ** rng.integers(0, 9))
    elif kind == 4:
        values = np.round(normal * 10.0 ** rng.integers(0, 5), rng.integers(0, 8))
    elif kind == 5:
        values = np.ldexp(np.where(normal < 0, -1.0, 1.0), rng.integers(-13, 27, shape))
    elif kind == 6:
        # around the limits of the exponential layout, and ratios of about 1000
        limits = [1e-4, 0.1, 1.0, 100.0, 1000.0, 0.99999999, 9999999.9, 99999999.0, 1e8]
        base = rng.choice(limits, shape) * (1 + rng.integers(-2, 3, shape) * 2.0**-24)
        values = np.where(rng.random(shape) < 0.5, base, rng.choice(limits))
    elif kind == 7:
        bits = rng.integers(0, 1 << 64, shape, dtype=np.uint64)
        return bits.astype(f"uint{8 * dtype.itemsize}").view(dtype)
    else:
        low = 10.0 ** rng.uniform(-4, 5)
        values = low * 1000.0 ** rng.random(shape)
    if rng.random() < 0.5:
        values = np.abs(values)
    if rng.random() < 0.4:
        values = special_floats(rng, values)
    return np.asarray(values).astype(dtype)


def integer_values(rng, shape, dtype):
    info = np.iinfo(dtype)
    whole = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    kind = rng.integers(0, 3)
    if kind == 0:
        return whole
    if kind == 1:
        return whole >> dtype.type(rng.integers(0, 8 * dtype.itemsize))
    low, high = sorted(rng.integers(max(info.min, -1200), min(info.max, 1200), 2))
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def random_values(rng, shape, dtype):
    if dtype == np.bool_:
        return rng.random(shape) < rng.choice([0.0, 0.5, 1.0])
    if dtype.kind == "f":
        return float_values(rng, shape, dtype)
    return integer_values(rng, shape, dtype)


def random_shape(rng):
    """A small shape, or a large one that is summarized."""
    kind = rng.integers(0, 12)
    if kind == 0:
        return tuple(int(n) for n in rng.integers(0, 3, rng.integers(1, 9)))
    if kind == 1:
        return (int(rng.choice([999, 1000, 1001, 5000])),)
    if kind == 2:
        return tuple(int(n) for n in rng.choice([(1, 1001), (167, 6), (144, 7), (501, 2)]))
    if kind == 3:
        return tuple(int(n) for n in rng.choice([(11, 10, 10), (2, 7, 80), (1, 300, 4)]))
    if kind == 4:
        return tuple(int(n) for n in rng.permutation([1, 2, 1, 1, 9, 60, 1]))
    ndims = int(rng.choice([0, 1, 1, 2, 2, 3, 4]))
    longest = {0: 1, 1: 40, 2: 8, 3: 4, 4: 3}[ndims]
    return tuple(int(n) for n in rng.integers(1, longest + 1, ndims))


def is_quick(shape, is_full):
    """Few elements: numpy takes 20 us for each."""
    return not is_full or np.prod(shape) <= 200


# --- arrays ---


def numpy_text(values, is_full, width):
    return np.array2string(values, max_line_width=width, precision=8, suppress_small=False,
                           threshold=sys.maxsize if is_full else THRESHOLD,
                           edgeitems=EDGE_ITEMS, floatmode="maxprec", separator=" ")


def random_options(rng, shape):
    is_full = bool(rng.random() < 0.3)
    width = int(rng.choice([75, 75, 75, 1, 10, 20, 40, 80, 120, 200]))
    return {"is_full": is_full and is_quick(shape, True), "width": width}


def test_arrays(table, name, count):
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        shape = random_shape(rng)
        options = random_options(rng, shape)
        values = random_values(rng, shape, np.dtype(name))
        table.array(name, values, shape, numpy_text(values, **options), dtype=name, **options)


def test_full(table):
    """Longer than one window of elements."""
    values = (np.arange(10_000) * 7919 % 10_007 - 5000).astype(np.int16).reshape(2, 50, 100)
    options = {"is_full": True, "width": 75}
    table.array("full", values, values.shape, numpy_text(values, **options), dtype="int16",
                **options)


def test_int4(table):
    """As numpy prints the same values in int8; the upper half of a byte means nothing."""
    rng = np.random.default_rng(SEED)
    for _ in range(50):
        shape = random_shape(rng)
        options = random_options(rng, shape)
        values = rng.integers(-8 if rng.random() < 0.5 else 0, 8, shape, dtype=np.int8)
        data = (values & 15) | (rng.integers(0, 2, shape, dtype=np.int8) << 4)
        table.array("int4", data.astype(np.int8), shape, numpy_text(values, **options),
                    dtype="int4", **options)


def truncated_text(values, stored, is_full, width):
    """numpy's layout of the elements' numbers; the format is that of the stored ones it shows."""
    numbers = np.arange(values.size).reshape(values.shape)
    is_summary = not is_full and values.size > THRESHOLD
    shown = arrayprint._leading_trailing(numbers, EDGE_ITEMS) if is_summary else numbers
    known = values.ravel()[shown[shown < stored]]
    options = dict(arrayprint._format_options, precision=8, floatmode="maxprec", suppress=False)
    words = arrayprint._get_format_function(known, **options)
    length = len(words(known[0])) if len(known) else 5 if values.dtype == np.bool_ else 1

    def word(number):
        return words(values.ravel()[number]) if number < stored else "?".rjust(length)

    return arrayprint._formatArray(numbers, word, width, " ", " ", EDGE_ITEMS,
                                   "..." if is_summary else "", options["legacy"])


def test_truncated(table, count):
    rng = np.random.default_rng(SEED)
    names = ("bool", "int8", "int64", *FLOATS)
    for i in range(count):
        shape = random_shape(rng)
        if not shape or 0 in shape:
            continue
        options = random_options(rng, shape)
        values = random_values(rng, shape, np.dtype(names[i % len(names)]))
        stored = int(rng.integers(0, values.size + 1))
        text = truncated_text(values, stored, **options)
        table.array("truncated", values.ravel()[:stored], shape, text,
                    dtype=str(values.dtype), stored=stored, **options)


# --- digits of the dtypes that numpy lacks ---


class ExactDigits:
    """The exact digits of the finite values of a format, in place of numpy's. The unit is so small
    that every value and every decimal is an integer."""

    BITS, TENS = 136, 60

    def __init__(self, form):
        self.half = definition(form)
        finite = [value for value in self.half if isinstance(value, Fraction)]
        finite.append(2 * finite[-1] - finite[-2])  # as if the range continued
        self.numbers = [int(value * 2**self.BITS) * 10**self.TENS for value in finite]
        self.codes = {float(value): code for code, value in enumerate(finite)}
        half = [np.nan if value == "nan" else float(value) for value in self.half]
        self.values = np.array(half + [-value for value in half])  # of every code

    def limits(self, code):
        """Texts between these read back as the code; if it is even, these two do too."""
        below, value, above = self.numbers[code - 1:code + 2] if code else (0, 0, self.numbers[1])
        is_odd = code % 2
        return (below + value) // 2 + is_odd, (value + above) // 2 - is_odd

    def generate(self, magnitude, most, least):
        """(digits, place of the last digit). `most` and `least` get the place of the first digit and
        return the limits for the place of the last."""
        code = self.codes[magnitude]
        value, (start, end) = self.numbers[code], self.limits(code)
        place = first = len(str(value >> self.BITS)) - 1 - self.TENS
        while True:
            unit = 10 ** (place + self.TENS) << self.BITS
            digits, rest = divmod(value, unit)
            low, high = value - rest >= start, value - rest + unit <= end
            if ((low or high) and place <= least(first)) or place == most(first):
                break
            place -= 1
        if low != high:
            return digits + high, place
        return digits + (2 * rest > unit or (2 * rest == unit and digits % 2)), place

    def positional(self, x, *, precision, min_digits=None, pad_left=0, pad_right=0, **_):
        value, sign = abs(float(x)), "-" if np.signbit(x) else ""
        digits, place = (0, 0) if value == 0 else self.generate(
            value, lambda first: -precision,
            lambda first: first if min_digits is None else -min_digits)
        if place > 0:
            digits, place = digits * 10**place, 0
        text = str(digits).rjust(1 - place, "0")
        whole, fraction = text[:len(text) + place], text[len(text) + place:].rstrip("0")
        return f"{(sign + whole).rjust(pad_left)}.{fraction.ljust(pad_right)}"

    def scientific(self, x, *, precision, min_digits=0, pad_left=0, exp_digits=2, trim, **_):
        value, sign = abs(float(x)), "-" if np.signbit(x) else ""
        digits, place = (0, 0) if value == 0 else self.generate(
            value, lambda first: first - precision, lambda first: first - min_digits)
        text = str(digits)
        exponent = place + len(text) - 1
        fraction = text[1:].rstrip("0") if trim == "." else text[1:].ljust(precision, "0")
        mark = "-" if exponent < 0 else "+"
        return (f"{(sign + text[0]).rjust(pad_left)}.{fraction[:precision]}"
                f"e{mark}{str(abs(exponent)).rjust(max(exp_digits, 2), '0')}")

    def array_text(self, values, options):
        with mock.patch.object(arrayprint, "dragon4_positional", self.positional), \
                mock.patch.object(arrayprint, "dragon4_scientific", self.scientific):
            return numpy_text(values, **options)


def code_type(name):
    return np.uint8 if name.startswith("float8") else np.uint16


def narrow_codes(rng, shape, table_of_values):
    """Any codes, or those of values that are not far from each other."""
    if rng.random() < 0.3:
        return rng.integers(0, len(table_of_values), shape)
    with np.errstate(invalid="ignore"):
        size = np.abs(table_of_values)
        low = 10.0 ** rng.uniform(-4, 4)
        near = np.flatnonzero((size >= low) & (size <= low * 10.0 ** rng.uniform(0.5, 4)))
    return rng.choice(near, shape) if len(near) else rng.integers(0, 100, shape)


def test_narrow_arrays(table, name, exact, count):
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(0, 3)))
        options = random_options(rng, shape)
        codes = narrow_codes(rng, shape, exact.values)
        values = exact.values[codes]
        if name == "float16":
            text = numpy_text(values.astype(np.float16), **options)
            if exact.array_text(values, options) != text and not ratio_is_rounded(values):
                raise SystemExit(f"the exact digits are not numpy's for {values}")
        else:
            text = exact.array_text(values, options)
        table.array(name, np.asarray(codes).astype(code_type(name)), shape, text, dtype=name,
                    **options)


def ratio_is_rounded(values):
    """Whether float16 and float64 disagree on what is more than 1000 times as much."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    return size.size and 999 < size.max() / size.min() < 1001


# --- elements ---


def test_float_elements(table):
    rng = np.random.default_rng(SEED)
    codes = {
        "float16": np.arange(1 << 16, dtype=np.uint16),
        "float32": np.concatenate([rng.integers(0, 1 << 32, 20_000, dtype=np.uint32),
                                   np.arange(1, 255, dtype=np.uint32) << np.uint32(23),
                                   np.arange(0, 300, dtype=np.uint32)]),
        "float64": np.concatenate([rng.integers(0, 1 << 64, 5_000, dtype=np.uint64),
                                   np.arange(1, 2047, dtype=np.uint64) << np.uint64(52)]),
    }
    for name, bits in codes.items():
        # numpy's digits of the float32, in the layout of Python, which goes by them and not by the value
        values = bits.view(name)
        values = values.astype(np.float32) if name == "float16" else values
        texts = [repr(float(repr(value))) for value in values]
        table.elements(name, bits, texts)


def test_integer_elements(table):
    rng = np.random.default_rng(SEED)
    for name in INTEGERS:
        values = integer_values(rng, 500, np.dtype(name))
        ends = np.array([np.iinfo(name).min, np.iinfo(name).max, 0], dtype=name)
        values = np.concatenate([values, ends])
        table.elements(name, values, [str(int(value)) for value in values])
    table.elements("bool", np.array([0, 1, 2, 255], dtype=np.uint8), [False, True, True, True])
    table.elements("int4", np.arange(16, dtype=np.uint8), [*range(8), *range(-8, 0)])


def test_narrow_elements(table, name, exact):
    """Every code: each is a float32 and prints like it."""
    texts = [value if isinstance(value, str) else repr(float(repr(np.float32(float(value))))) for value in exact.half]
    texts += ["nan" if text == "nan" else "-" + text for text in texts]
    table.elements(name, np.arange(len(texts), dtype=code_type(name)), texts)


# --- histograms ---


def test_histograms(table, count):
    rng = np.random.default_rng(SEED)
    names = (*FLOATS, *INTEGERS, "bool")
    for i in range(count):
        dtype = np.dtype(names[i % len(names)])
        bins = int(rng.integers(1, 65))
        values = random_values(rng, (int(rng.integers(1, 2000)),), dtype)
        wide = values.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        if not len(finite) or finite.min() == finite.max():
            continue
        low, high = float(finite.min()), float(finite.max())
        if dtype.kind == "f":
            # on the edges and next to them
            with np.errstate(over="ignore"):
                edges = np.linspace(low, high, bins + 1).astype(dtype)
                around = [edges, np.nextafter(edges, dtype.type(np.inf)),
                          np.nextafter(edges, dtype.type(-np.inf))]
            values = np.concatenate([values, *around])
            wide = values.astype(np.float64)
            finite = wide[np.isfinite(wide)]
        if not 1e-290 < high - low < np.inf:
            continue  # numpy has no bins for these
        counts, _ = np.histogram(finite, bins=bins, range=(low, high))
        numbers = [*counts, counts.sum()]
        line = f"histogram {dtype} {len(values)} {bins} {low.hex()} {high.hex()}"
        table.ask("histogram", line, values.tobytes(),
                  (" ".join(str(n) for n in numbers) + "\n").encode())


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    np.seterr(all="ignore")  # overflow and signalling NaNs are among the inputs on purpose
    table = Table(sys.argv[1])
    for name in FLOATS:
        test_arrays(table, name, 600)
    for name in ("bool", *INTEGERS):
        test_arrays(table, name, 60)
    test_full(table)
    test_int4(table)
    test_truncated(table, 300)
    for name in ("float16", *NARROW):
        exact = ExactDigits(FORMATS[name])
        test_narrow_arrays(table, name, exact, 150)
        test_narrow_elements(table, name, exact)
    test_float_elements(table)
    test_integer_elements(table)
    test_histograms(table, 500)
    table.run()
    for name, count in table.counts.items():
        print(f"{name}: {count} compared")
    print(f"{sum(table.counts.values()) - table.failed} passed, {table.failed} failed")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
