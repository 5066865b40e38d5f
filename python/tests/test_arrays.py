"""Arrays and scalars of every dtype, compared with values that numpy computes."""
import math
import struct
import unittest

import numpy as np

import glassbox
import journal_writer as jw
import support
from journal_writer import CONTIGUOUS, PAYLOAD, TRUNCATED

CODES = {"float32": 1, "float16": 2, "bfloat16": 3, "float64": 4, "int8": 5, "uint8": 6, "int16": 7, "uint16": 8,
         "int32": 9,
         "uint32": 10, "int64": 11, "uint64": 12, "bool": 13, "float8_e4m3": 14, "float8_e5m2": 15, "int4": 16,
         "float4_e2m1": 17, "float8_e8m0": 18}
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]  # by code, from the OCP MX specification


class Arrays(unittest.TestCase):
    def record(self, dtype, shape, data, flags=PAYLOAD | CONTIGUOUS):
        directory = support.scratch(f"{self.id()}-{dtype}-{shape}-{flags}")
        record = jw.tensor(0, shape, CODES[dtype], size=len(data), flags=flags)
        return glassbox.open(jw.write(directory, jw.journal([jw.run()], [record]), data))[0]

    def test_dtypes_of_numpy(self):
        for name in ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                     "uint64"):
            expected = (np.arange(24).reshape(2, 3, 4) * 5 % 127 - (0 if name[0] == "u" else 60)).astype(name)
            record = self.record(name, [2, 3, 4], expected.tobytes())
            got = record.array()
            self.assertEqual(got.dtype, np.dtype(name))
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(record.float32(), expected.astype(np.float32))
            self.assertEqual(record.array(as_type="int64").dtype, np.int64)
            with self.assertRaises(ValueError):
                got[0, 0, 0] = 1

    def test_bfloat16(self):
        values = np.array([0, -0.0, 1, -2.5, 3.3895314e38, 9.1835e-41, np.inf, -np.inf, np.nan], np.float32)
        stored = (values.view(np.uint32) >> 16).astype("<u2")
        record = self.record("bfloat16", [3, 3], stored.tobytes())
        np.testing.assert_array_equal(record.array(), stored.reshape(3, 3))
        self.assertEqual(record.array().dtype, np.uint16)
        expected = (stored.astype(np.uint32) << 16).view(np.float32).reshape(3, 3)
        np.testing.assert_array_equal(record.float32().view(np.uint32), expected.view(np.uint32))

    def test_float8(self):
        every = bytes(range(256))
        e4m3, e5m2 = (self.record(name, [16, 16], every) for name in ("float8_e4m3", "float8_e5m2"))
        self.assertEqual(e4m3.array().dtype, np.uint8)
        got = e4m3.float32().ravel()
        self.assertEqual([float(got[i]) for i in (0, 1, 8, 0x38, 0x3B, 0x7E, 0xB8, 0xFE)],
                         [0, 2**-9, 2**-6, 1, 1.375, 448, -1, -448])
        self.assertEqual(np.flatnonzero(np.isnan(got)).tolist(), [0x7F, 0xFF])
        # float8_e5m2 is the upper half of a float16.
        np.testing.assert_array_equal(e5m2.float32().ravel(),
                                      (np.arange(256) << 8).astype("<u2").view("<f2").astype("f4"))

    def test_int4_rows_begin_at_a_byte(self):
        record = self.record("int4", [2, 3], bytes([0x21, 0xF8, 0x7F, 0x09]))
        np.testing.assert_array_equal(record.array(), [[0x21, 0xF8], [0x7F, 0x09]])
        np.testing.assert_array_equal(record.array(as_type="int8"), [[1, 2, -8], [-1, 7, -7]])
        self.assertEqual(float(self.record("int4", [], b"\x0d").float32()), -3)
        cut = self.record("int4", [2, 3], bytes([0x21, 0xF8, 0x7F]), PAYLOAD | TRUNCATED)
        np.testing.assert_array_equal(cut.float32(allow_truncated=True), [1, 2, -8, -1, 7])

    def test_float4_e2m1_rows_begin_at_a_byte(self):
        every = self.record("float4_e2m1", [16, 2, 16], bytes(range(256)))
        expected = [[E2M1[code & 15], E2M1[code >> 4]] for code in range(256)]
        self.assertEqual(every.array().shape, (16, 2, 8))
        np.testing.assert_array_equal(every.float32().ravel(), np.ravel(expected).astype("f4"))
        np.testing.assert_array_equal(np.signbit(every.float32()).ravel(), np.signbit(np.ravel(expected)))
        odd = self.record("float4_e2m1", [2, 3], bytes([0x21, 0xF8, 0x7F, 0x09]))
        np.testing.assert_array_equal(odd.float32(), [[0.5, 1, -0.0], [-6, 6, -0.5]])
        cut = self.record("float4_e2m1", [2, 3], bytes([0x21, 0xF8, 0x7F]), PAYLOAD | TRUNCATED)
        np.testing.assert_array_equal(cut.float32(allow_truncated=True), [0.5, 1, -0.0, -6, 6])
        self.assertEqual(float(self.record("float4_e2m1", [], b"\x0d").float32()), -3)

    def test_float8_e8m0(self):
        record = self.record("float8_e8m0", [16, 16], bytes(range(256)))
        self.assertEqual((record.array().dtype, record.array().shape), (np.uint8, (16, 16)))
        np.testing.assert_array_equal(record.float32().ravel()[:255], [2.0**(code - 127) for code in range(255)])
        self.assertTrue(np.isnan(record.float32()[15, 15]))

    def test_bool_is_true_for_any_nonzero_byte(self):
        plain = self.record("bool", [3], bytes([0, 1, 1])).array()
        self.assertEqual((plain.dtype, plain.tolist(), plain.flags.owndata), (np.bool_, [False, True, True], False))
        odd = self.record("bool", [4], bytes([0, 1, 2, 255]))
        self.assertEqual((int(odd.array().sum()), odd.float32().tolist()), (3, [0, 1, 1, 1]))
        self.assertEqual(odd.raw().tolist(), [0, 1, 2, 255])

    def test_truncated(self):
        data = struct.pack("<5f", *range(1, 6)) + b"\x00\x00"
        record = self.record("float32", [4, 4], data, PAYLOAD | TRUNCATED)
        with self.assertRaisesRegex(glassbox.NoPayload, "22 bytes of 64 were kept.*allow_truncated=True"):
            record.array()
        np.testing.assert_array_equal(record.array(allow_truncated=True), [1, 2, 3, 4, 5])
        self.assertEqual((record.shape, record.numel, record.raw().nbytes), ((4, 4), 16, 22))

    def test_no_dimensions_and_no_elements(self):
        self.assertEqual(self.record("float64", [], struct.pack("<d", 2.5)).array(), 2.5)
        empty = self.record("bfloat16", [0, 3], b"")
        self.assertEqual((empty.array().shape, empty.float32().shape), ((0, 3), (0, 3)))
        self.assertEqual(self.record("int4", [3, 0], b"").array(as_type="int8").shape, (3, 0))

    def test_scalars(self):
        cases = [("float32", 0xFFFFFFFF3DCCCCCD, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
                 ("float16", 0x3C01, 1 + 2**-10),
                 ("bfloat16", 0xC020, -2.5), ("float64", 0x8000000000000000, -0.0), ("int8", 0x180, -128),
                 ("uint8", 0x180, 128), ("int16", 0xFFFF, -1), ("uint32", 0xFFFFFFFF, 2**32 - 1),
                 ("int64", 2**63, -(2**63)),
                 ("uint64", 2**64 - 1, 2**64 - 1), ("bool", 2, True), ("bool", 0x100, False),
                 ("float8_e4m3", 0x3B, 1.375),
                 ("float8_e5m2", 0xFC, -math.inf), ("int4", 0x1F, -1), ("float4_e2m1", 0xFF, -6.0),
                 ("float4_e2m1", 0x13, 1.5), ("float8_e8m0", 0x100, 2.0**-127), ("float8_e8m0", 0xFE, 2.0**127),
                 ("float8_e8m0", 0x7C, 0.125)]
        records = [jw.scalar(0, bits, CODES[name], arg=i) for i, (name, bits, _) in enumerate(cases)]
        dump = glassbox.open(jw.write(support.scratch(self.id()), jw.journal([jw.run()], records)))
        for record, (name, bits, value) in zip(dump, cases):
            self.assertEqual((record.dtype, record.bits, repr(record.value)), (name, bits, repr(value)))
            self.assertEqual(float(record.float32()), float(np.float32(value)))
            self.assertEqual(record.array().shape, ())
            with self.assertRaisesRegex(glassbox.NoPayload, "a scalar has no payload"):
                record.raw()
        with self.assertRaisesRegex(glassbox.DumpError, "it is a tensor and has no value"):
            self.record("float32", [1], bytes(4)).value


if __name__ == "__main__":
    unittest.main()
