"""Manifests: of glassbox without a journal, of other tools, and bad ones."""
import copy
import json
import random
import unittest

import numpy as np

import glassbox
import support

ENTRY = {"task_id": "0x0000000000000011", "func_id": [3], "arg_index": 0, "role": "input", "stage": "before_dispatch",
         "kind": "tensor", "dtype": "FLOAT32", "is_contiguous": True, "shape": [2, 3], "strides": [3, 1],
         "start_offset": 0,
         "numel": 6, "bin_offset": 0, "bin_size": 24, "truncated": False, "overwritten": False}


class Manifests(unittest.TestCase):
    def setUp(self):
        self.directory = support.scratch(self.id())
        (self.directory / "args.bin").write_bytes(np.arange(32, dtype="<f4").tobytes())

    def opened(self, *entries, text=None, name="args_dump.json", **members):
        document = {"bin_file": "args.bin", "args": list(entries), **members}
        (self.directory / name).write_bytes(json.dumps(document).encode() if text is None else text)
        return glassbox.open(self.directory)

    def test_dumps_that_another_tool_wrote(self):
        """Computes f = (a + b + 1) * (a + b + 2) + (a + b) again from what the tasks read."""
        dump = glassbox.open(support.fixtures() / "vector_example")
        self.assertEqual((len(dump), dump.level, dump.status, dump.complete), (18, "full", None, None))
        self.assertEqual(dump.totals["payload_bytes"], 851968)
        document = support.load(support.fixtures() / "vector_example" / "args_dump.json")
        for entry, record in zip(document["args"], dump.to_dicts()):
            self.assertEqual(entry | {"dtype": entry["dtype"].lower()}, {name: record[name] for name in entry})
        compared = 0
        for task in dump.tasks:
            self.assertEqual((task.task_seq, task.predecessors, task.dispatched_ns), (compared, None, None))
            x = task.inputs[0].array()
            expected = {0: lambda: x + task.inputs[1].array(), 1: lambda: x + np.float32(task.inputs[2].value),
                        2: lambda: x * task.inputs[1].array()}[task.func_ids[0]]()
            got = task.outputs[1 if task.func_ids == (1,) else 2].array()
            self.assertGreater(np.abs(got).min(), 0)
            np.testing.assert_array_equal(got, expected)
            compared += 1
        self.assertEqual(compared, 5)
        self.assertEqual(len(dump.filter(task="0x100000001", kind="scalar", dtype="uint32")), 1)
        self.assertEqual([record.task_id for record in dump.filter(task=2)], ["0x0000000100000001"] * 4)
        self.assertEqual(dump.task("0x100000001").func_ids, (1,))

    def test_entries_match_view(self):
        if not support.has_command("view"):
            self.skipTest("this glassbox has no view")
        old = {"task_id": "0x22", "func_id": 3, "arg_index": 0, "role": "output", "stage": "after_completion",
               "dtype": "Float16",
               "shape": [2, 3], "raw_shape": [4, 5], "offsets": [1, 2], "bin_offset": 4, "bin_size": 12}
        self.opened({**ENTRY, "arg_index": 5}, old, ENTRY, {**ENTRY, "dtype": "INT4", "bin_size": 4, "arg_index": 3,
                                                            "is_contiguous": None},
                    {**old, "stage": "before_dispatch", "truncated": True, "bin_size": 3},
                    {**ENTRY, "overwritten": True, "arg_index": 6})
        for path in (support.fixtures() / "vector_example", support.fixtures() / "partial_level3", self.directory):
            done = support.command("view", path, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(support.ordered(glassbox.open(path).to_dicts()),
                             support.ordered(json.loads(done.stdout)["tensors"]))

    def test_payload_of_marked_tensors_only(self):
        dump = glassbox.open(support.fixtures() / "partial_level3")
        self.assertEqual((len(dump), dump.level), (19, "hybrid"))
        kept = [record.index for record in dump.filter(kind="tensor") if record.bin_size]
        self.assertEqual(len(kept), 7)
        for record in dump.filter(kind="tensor"):
            if record.bin_size:
                self.assertGreater(np.abs(record.array()).max(), 0)
            else:
                with self.assertRaisesRegex(glassbox.NoPayload, "no payload for it .level hybrid"):
                    record.array()

    def test_older_names(self):
        tensor = {"task_id": "0x11", "func_id": 3, "arg_index": 0, "role": "input", "stage": "before_dispatch",
                  "dtype": "float32", "shape": [2, 3], "raw_shape": [4, 5], "offsets": [1, 2], "bin_offset": 4,
                  "bin_size": 24}
        scalar = {"task_id": "0x11", "arg_index": 1, "role": "input", "stage": "before_dispatch", "dtype": "Float32",
                  "scalar_value": 0.1}
        (self.directory / "args.bin").rename(self.directory / "tensor_dump.bin")
        (self.directory / "tensor_dump.json").write_text(json.dumps({"bin_file": "tensor_dump.bin",
            "tensors": [tensor, scalar], "total_tensors": 2}))
        dump = glassbox.open(self.directory)
        first, second = dump
        self.assertEqual((first.strides, first.start_offset, first.is_contiguous, first.func_ids),
                         ((5, 1), 7, False, (3,)))
        np.testing.assert_array_equal(first.array(), np.arange(1, 7, dtype="f4").reshape(2, 3))
        self.assertEqual((second.kind, second.value, second.bits), ("scalar", float(np.float32(0.1)), 0x3DCCCCCD))
        self.assertEqual(second.to_dict()["value"], 0.1)

    def test_values_of_scalars(self):
        for dtype, value, expected in (("BFLOAT16", 0.1001, 0.10009765625), ("FP8E4M3FN", 448, 448.0),
                                       ("FLOAT16", "inf", float("inf")),
                                       ("FP8E5M2", "-inf", -float("inf")), ("INT64", "-5", -5), ("BOOL", True, True),
                                       ("UINT64", str(2**64 - 1), 2**64 - 1), ("INT4", -8, -8),
                                       ("FLOAT64", 1 / 3, 1 / 3)):
            entry = {**ENTRY, "kind": "scalar", "dtype": dtype, "value": value, "shape": [], "strides": [],
                     "numel": 1, "bin_size": 0}
            record = self.opened(entry)[0]
            self.assertEqual(repr(record.value), repr(expected))
            self.assertEqual(support.ordered(glassbox.open(self.directory)[0].to_dict()),
                             support.ordered(record.to_dict()))
        for dtype, value in (("INT8", 128), ("UINT8", -1), ("INT32", 1.5), ("FLOAT32", [1]), ("FLOAT32", "one"),
                             ("INT4", 8),
                             ("FP8E4M3FN", "inf"), ("UINT64", 2**64), ("BOOL", "yes"), ("INT32", {}),
                             ("INT32", 1.0), ("INT32", True), ("FLOAT32", True), ("FLOAT32", "0x3f800000"),
                             ("BOOL", 2), ("FLOAT32", None)):
            entry = {**ENTRY, "kind": "scalar", "dtype": dtype, "value": value, "shape": [], "strides": [], "numel": 1,
                     "bin_size": 0}
            with self.assertRaisesRegex(glassbox.DumpError, r'args\[0\](\.value: expected .* that .* holds, got|: "value" is missing)'):
                self.opened(entry)

    def test_scalars_of_unknown_dtype(self):
        entry = {**ENTRY, "kind": "scalar", "dtype": "Unknown", "bits": "0x00000000bdcccccd", "shape": [], "strides": [],
                 "numel": 1, "bin_size": 0}
        record = self.opened(entry)[0]
        self.assertEqual((record.dtype, record.value, record.bits), ("unknown", None, 0xBDCCCCCD))
        self.assertEqual((record.array().dtype, int(record.array())), (np.uint64, 0xBDCCCCCD))
        self.assertNotIn("value", record.to_dict())
        self.assertIn("unknown '0x00000000bdcccccd'", repr(record))
        self.assertEqual(len(glassbox.open(self.directory).filter(dtype="unknown")), 1)
        with self.assertRaisesRegex(glassbox.DumpError, "its dtype is unknown; use record.bits"):
            record.float32()
        for change, sentence in (({"value": 5}, r"\.value: a scalar of unknown dtype has bits and no value"),
                                 ({"bits": None}, '"bits" is missing|"value" is missing'),
                                 ({"kind": "tensor", "bits": None}, "dtype: expected the name of a dtype")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                self.opened({**entry, **change})

    def test_invalid_fields(self):
        for change, sentence in (
                ({"shape": [-1, 3]}, r"args\[1\]\.shape\[0\]: expected an integer from 0 to \d+, got -1; "
                                     "1 records before it are readable"),
                ({"shape": [1 << 40, 1 << 40]}, r"shape: the size of \[.*\] overflows 64 bits"),
                ({"shape": [1] * 9}, "shape: has more than 8 elements"),
                ({"shape": [2.5]}, r"shape\[0\]: expected an integer from 0 to \d+, got 2.5"),
                ({"shape": 5}, "shape: expected an array, got 5"), ({"shape": None}, r'args\[1\]: "shape" is missing'),
                ({"dtype": "FLOAT24"}, 'dtype: expected the name of a dtype: float32, float16, .* or float8_e8m0, got "FLOAT24"'),
                ({"dtype": 3}, "name of a dtype"),
                ({"numel": 7}, r"numel: 7 differs from the 6 elements of shape \[2, 3\]"),
                ({"strides": [1]}, 'strides: has 1 elements, but "shape" has 2'),
                ({"role": "inn"}, 'role: expected input, output or inout, got "inn"'),
                ({"stage": []}, r"stage: expected before_dispatch or after_completion, got \[\]"),
                ({"bin_size": 20}, r"bin_size: 20 is not the 24 bytes of its shape \[2, 3\] and dtype float32"),
                ({"bin_offset": -4}, "bin_offset: expected an integer from 0 to .*, got -4"),
                ({"bin_offset": "0"}, 'bin_offset: expected an integer from 0 to .*, got "0"'),
                ({"bin_size": 1 << 70}, "bin_size"),
                ({"task_id": "eleven"}, 'task_id: expected a string "0x..." of up to 16 hexadecimal digits, got "eleven"'), ({"task_id": "0x1" + "0" * 16}, "task_id"),
                ({"arg_index": None}, "arg_index"),
                ({"truncated": 1}, "true or false"), ({"hash": "12"}, "32 hexadecimal digits"),
                ({"index": -5}, "index: expected an integer from 0 to .*, got -5"),
                ({"stats": {"min": "low"}}, r"stats\.min"), ({"stats": 5}, "stats: expected an object, got 5"),
                ({"raw_shape": [4, 4], "offsets": [1]}, 'offsets: has 1 elements, but "shape" has 2'),
                ({"raw_shape": [1, 2, 3], "offsets": [0, 0], "strides": None}, 'raw_shape: has 3 elements, but "shape" has 2'), ({"kernel": 5}, "kernel"),
                ({"func_id": ["a"]}, "func_id")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                self.opened(ENTRY, {**ENTRY, **change})
        with self.assertRaisesRegex(glassbox.DumpError, r"args\[0\]: expected an object"):
            self.opened(7)

    def test_invalid_documents(self):
        for members, sentence in (({"args": {}}, 'not the manifest of a dump: "args" is not an array'),
                                  ({"bin_file": "../../etc/passwd"}, 'bin_file: "../../etc/passwd" is not the name of a file beside the manifest'),
                                  ({"bin_file": 5}, "bin_file"), ({"bin_file": ""}, "bin_file"),
                                  ({"dump_args_level": 9}, "dump_args_level: expected an integer from 0 to 3, got 9"),
                                  ({"dump_level": "most"}, 'dump_level: expected full, partial, hybrid or stats, got "most"'),
                                  ({"kernels": 5}, "kernels"), ({"losses": {}}, "losses"), ({"run": []}, "run")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                self.opened(**{"args": [ENTRY], **members})
        for text in (b"", b"[]", b"{", b"[" * 100000, b"\xff\xfe",
                     b'{"bin_file": "args.bin", "args": [' + b"9" * 5000 + b"]}"):
            with self.assertRaises(glassbox.DumpError):
                self.opened(text=text)
        with self.assertRaisesRegex(glassbox.DumpError, "has 24 bytes at offset 1000, but .* ends at 128"):
            self.opened({**ENTRY, "bin_offset": 1000})

    def test_cut_and_changed_anywhere(self):
        text = json.dumps({"bin_file": "args.bin", "total_args": 2, "args": [ENTRY, {**ENTRY, "hash": "0" * 32,
            "stats": {
            "min": 1, "max": 2, "mean": 1.5, "nan": 0, "inf": 0, "zero": 0}}]}).encode()
        self.assertEqual(len(self.opened(text=text)), 2)
        for length in range(0, len(text) - 1, 3):
            with self.assertRaises(glassbox.DumpError):
                self.opened(text=text[:length])
        chance = random.Random(3)
        for _ in range(700):
            changed = bytearray(text)
            changed[chance.randrange(len(text))] = chance.choice(b'09-"[]{},:.aeE\x00\xff')
            try:
                dump = self.opened(text=bytes(changed))
                dump.to_dict(), list(dump.tasks), [repr(record.stats) for record in dump]
                for record in dump:
                    record.float32()
            except glassbox.Error as error:
                self.assertNotIn("\n", str(error))

    def test_values_of_other_types_anywhere(self):
        for name in [*ENTRY, "hash", "stats", "index", "kernel", "task_seq", "time_ns", "subtasks", "bits",
                     "raw_shape"]:
            for value in (None, True, -1, 1.5, 1 << 80, "", "x", [], [None], {}, [[1]]):
                try:
                    dump = self.opened({**copy.deepcopy(ENTRY), name: value})
                    repr((dump.to_dict(), list(dump.tasks), dump[0].stats,
                          dump[0].value if dump[0].is_scalar else dump[0].array()))
                except glassbox.Error as error:
                    self.assertNotIn("\n", str(error))


if __name__ == "__main__":
    unittest.main()
