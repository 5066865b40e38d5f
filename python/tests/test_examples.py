"""A dump of every example: the reader agrees with the manifest, the command and numpy."""
import functools
import unittest

import numpy as np

import glassbox
import support


def add(task):
    return {"sum": task.inputs["x"].array() + task.inputs["y"].array()}


def add_scalar(task):
    return {"sum": task.inputs["x"].array() + np.float32(task.inputs["addend"].value)}


def mul(task):
    return {"product": task.inputs["x"].array() * task.inputs["y"].array()}


def matmul(task):
    return {"c": task.inputs["a"].float32() @ task.inputs["b"].float32()}


def matmul_add(task):
    return {"c": task.inputs["c"].array() + matmul(task)["c"]}


def layer(task):
    scaled = task.inputs["x"].array() * np.float32(task.inputs["scale"].value)
    product = scaled @ task.inputs["w"].array()
    return {"scaled": scaled, "product": product, "y": np.maximum(product + task.inputs["bias"].array(), 0)}


def qk_matmul(task):
    return {"scores": task.inputs["query"].float32() @ task.inputs["key"].float32().T}


def softmax_prepare(task):
    scores = task.inputs["scores"].array() * np.float32(task.inputs["scale"].value)
    valid = task.inputs["valid"].value
    highest = scores[:, :valid].max(axis=1, keepdims=True)
    weights = np.exp(scores - highest)
    weights[:, valid:] = 0
    return {"weights": weights.astype(np.float16)}


def pv_matmul(task):
    return {"partial": task.inputs["weights"].float32() @ task.inputs["value"].float32()}


KERNELS = {function.__name__: function for function in
           (add, add_scalar, mul, matmul, matmul_add, qk_matmul, softmax_prepare, pv_matmul)} | {"multiply": layer}
EXACT = ("add", "add_scalar", "mul")


def for_each_example(test):
    @functools.wraps(test)
    def run(self):
        for name in support.EXAMPLES:
            with self.subTest(example=name):
                test(self, support.example(name))

    return run


class Examples(unittest.TestCase):
    @for_each_example
    def test_matches_the_manifest(self, dump):
        files = dump.path / "tensor_dump"
        self.assertTrue(dump.is_from_journal and dump.checksums_verified and dump.complete)
        self.assertEqual(support.ordered(dump.to_dict()), support.ordered(support.load(files / "tensor_dump.json")))
        self.assertEqual(support.ordered(dump.arguments),
                         support.ordered(support.load(files / "args_dump.json")["args"]))
        self.assertEqual(support.ordered(dump.dispatches),
                         support.ordered(support.load(files / "kernel_args_dump.json")["dispatches"]))

    @for_each_example
    def test_matches_view(self, dump):
        if not support.has_command("view"):
            self.skipTest("this glassbox has no view")
        done = support.command("view", dump.path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(support.ordered(dump.to_dict()), support.ordered(support.json.loads(done.stdout)))

    def test_filters_match_those_of_view(self):
        if not support.has_command("view"):
            self.skipTest("this glassbox has no view")
        dump = support.example("paged_attention")
        for keys in ({"kernel": "*matmul", "stage": "after_completion"}, {"func": "1..2"}, {"task": "10..20"},
                     {"task": "7", "arg": "0..2"}, {"role": "inout", "stage": "before_dispatch"}, {"kind": "scalar"},
                     {"dtype": "bfloat16"}, {"task": dump[100].task_id}, {"arg": "running_*"},
                     {"kernel": "softmax*", "func": "0..2"}, {"arg": "s*", "task": "3..9"}):
            done = support.command("view", dump.path, "--json", *(f"--{key}={value}" for key, value in keys.items()))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(dump.filter(**keys).to_dicts(), support.json.loads(done.stdout)["tensors"], keys)

    @for_each_example
    def test_reads_the_same_from_the_manifest_only(self, dump):
        copy = support.scratch(f"manifest-{dump.run['scene']}")
        for name in ("tensor_dump.json", "tensor_dump.bin", "args_dump.json", "kernel_args_dump.json"):
            (copy / name).symlink_to(dump.path / "tensor_dump" / name)
        other = glassbox.open(copy)
        self.assertFalse(other.is_from_journal or other.checksums_verified)
        self.assertEqual(support.ordered(other.to_dict()), support.ordered(dump.to_dict()))
        self.assertEqual((other.arguments, other.dispatches), (dump.arguments, dump.dispatches))
        self.assertEqual([task.task_id for task in other.tasks], [task.task_id for task in dump.tasks])
        for one, same in zip(dump, other):
            if one.is_scalar:
                self.assertEqual((one.value, one.bits), (same.value, same.bits))
            else:
                np.testing.assert_array_equal(one.array(), same.array())

    @for_each_example
    def test_arrays_are_the_bytes_of_the_file(self, dump):
        widths = {"float32": "<f4", "float16": "<f2", "bfloat16": "<u2", "uint32": "<u4", "int32": "<i4"}
        path = dump.path / "tensor_dump" / "tensor_dump.bin"
        for entry in support.load(dump.path / "tensor_dump" / "tensor_dump.json")["tensors"]:
            if entry["kind"] == "tensor":
                expected = np.fromfile(path, widths[entry["dtype"]], entry["numel"], offset=entry["bin_offset"])
                got = dump[entry["index"]].array()
                np.testing.assert_array_equal(got, expected.reshape(entry["shape"]))
                self.assertFalse(got.flags.owndata or got.flags.writeable)

    @for_each_example
    def test_values_are_what_the_kernels_compute(self, dump):
        compared = 0
        for task in dump.tasks:
            function = KERNELS.get(task.kernels[0])
            for name, expected in (function(task) if function else {}).items():
                got = task.outputs[name].array()
                self.assertGreater(np.abs(got.astype(np.float64)).max(), 0, task)
                if task.kernels[0] in EXACT:
                    np.testing.assert_array_equal(got, expected)
                else:
                    np.testing.assert_allclose(got.astype(np.float32), expected, rtol=2e-3, atol=1e-4)
                compared += 1
        self.assertGreaterEqual(compared, len(dump.tasks) / 2)

    def test_a_tensor_is_read_as_it_was_written(self):
        """A task reads what its predecessor left."""
        dump = support.example("vector_example")
        self.assertEqual([task.predecessors for task in dump.tasks[:3]], [(), (0,), (0,)])
        self.assertEqual([sorted(task.predecessors) for task in dump.tasks[3:]], [[1, 2], [0, 3]])
        for task in dump.tasks:
            self.assertLess(task.dispatched_ns, task.completed_ns)
            for number in task.predecessors:
                self.assertLessEqual(dump.task(number).completed_ns, task.dispatched_ns)
        s = dump.task(0).outputs["sum"]
        for number, name in ((1, "x"), (2, "x"), (4, "y")):
            np.testing.assert_array_equal(dump.task(number).inputs[name].array(), s.array())
            self.assertEqual(dump.task(number).inputs[name].hash, s.hash)
        self.assertEqual([task.inputs["addend"].value for task in dump.tasks[1:3]], [1.0, 2.0])

    @for_each_example
    def test_hashes_match(self, dump):
        self.assertEqual(dump.verify(), [])
        self.assertTrue(all(record.verify() for record in dump if record.hash))


if __name__ == "__main__":
    unittest.main()
