"""glassbox.run: runs scenes from Python, and its errors."""
import gc
import shutil
import unittest
import warnings

import numpy as np

import glassbox
import support

VECTOR = support.SOURCE_ROOT / "examples" / "vector_example"
BROKEN = support.SOURCE_ROOT / "examples" / "broken_softmax"


class Run(unittest.TestCase):
    def test_temporary_dump_is_removed_with_the_object(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dump = glassbox.run(VECTOR, case="constant")
            path = dump.path
            self.assertEqual(dump.result["cases"][0]["status"], "ok")
            array = dump.task(4).outputs["sum"].array()
            self.assertTrue(path.is_dir())
            del dump
            gc.collect()
        self.assertFalse(path.parent.exists())
        np.testing.assert_array_equal(array, np.full((128, 128), 47, np.float32))

    def test_options_reach_the_command(self):
        where = support.disk("options") / "dump"
        dump = glassbox.run(VECTOR, platform="a5sim", runtime="aicpu_build_graph", dump_tensor="hybrid", dump_args=True,
                            dump_filter=["task=3", "kernel=add_*,role=output"], output=where, threads=1,
                            dump_stats=True,
                            no_golden=True, blocks=3)
        self.assertEqual((dump.path, dump.level), (where, "hybrid"))
        self.assertEqual((dump.run["platform"], dump.run["runtime"]), ("a5sim", "aicpu_build_graph"))
        self.assertEqual((dump.result["blocks"], dump.result["threads"]), (3, 1))
        self.assertEqual([record.index for record in dump if record.bin_size], [5, 8, 9, 10, 11])
        self.assertTrue(all(record.stats for record in dump if not record.is_scalar and record.bin_size))
        self.assertEqual(len(dump.dispatches), 5)
        for record in dump.filter(kind="tensor", task=3):
            values = record.array().astype(np.float64)
            self.assertEqual((record.stats.min, record.stats.max), (values.min(), values.max()))
            self.assertAlmostEqual(record.stats.mean, values.mean(), 9)
        with self.assertRaisesRegex(glassbox.NoPayload,
                                    r"record 0 \(task 0, kernel add, arg 0.*no payload.*level hybrid"):
            dump[0].array()

    def test_several_cases_and_rounds(self):
        dumps = glassbox.run_all(VECTOR, case=["default", "constant"], rounds=2)
        self.assertEqual([(d.run["case"], d.path.name) for d in dumps],
                         [("default", "default_r1"), ("default", "default_r2"), ("constant", "constant_r1"),
                          ("constant", "constant_r2")])
        parent = dumps[0].path.parent
        del dumps[1:]
        self.assertTrue(parent.is_dir())
        del dumps
        self.assertFalse(parent.exists())
        with self.assertRaisesRegex(glassbox.RunError, "it made 2 dumps, but run returns only one; use glassbox.run_all"):
            glassbox.run(VECTOR, rounds=2)

    def test_a_wrong_result_raises(self):
        with self.assertRaisesRegex(glassbox.RunError,
                                    "elements of output out differ from the golden.*exit code 1") as caught:
            glassbox.run(BROKEN)
        self.assertEqual((caught.exception.exit_code, len(caught.exception.dump)), (1, 1436))
        dump = glassbox.run(BROKEN, check=False)
        self.assertEqual((dump.result["cases"][0]["status"], len(dump)), ("differs", 1436))

    def test_other_failures_always_raise(self):
        for options, sentence in (({"case": "nix"}, 'unknown case "nix"'), ({"platform": "moon"}, "moon"),
                                  ({"colour": 1}, "unrecognized option '--colour=1'"),
                                  ({"dump_filter": "task=99"}, "matched nothing"),
                                  ({"dump_filter": "foo=1"}, 'unknown key "foo"')):
            with self.assertRaisesRegex(glassbox.RunError, sentence):
                glassbox.run(VECTOR, check=False, **options)
        with self.assertRaisesRegex(glassbox.RunError, "not a program.*command="):
            glassbox.run(VECTOR, command="/nowhere/glassbox")
        with self.assertRaisesRegex(glassbox.RunError, "no dump to return"):
            glassbox.run(VECTOR, dump_tensor=False)

    def test_a_kernel_that_crashes(self):
        scene = support.disk("crash") / "scene"
        shutil.copytree(VECTOR, scene)
        (scene / "kernels" / "mul.c").write_text("#include <glassbox/kernel.h>\n#include <signal.h>\n"
                                                 "void kernel_entry(const uint64_t *args) { (void)args; raise(SIGILL); }\n")
        with self.assertRaisesRegex(glassbox.RunError, "exit code 3") as caught:
            glassbox.run(scene, runtime="host_build_graph", check=False)
        dump = caught.exception.dump
        self.assertNotEqual(dump.status, "ok")
        task = dump.task(3)
        self.assertEqual((task.kernels, task.completed_ns), (("mul",), None))
        np.testing.assert_array_equal(task.inputs["x"].array(), dump.task(1).outputs["sum"].array())
        self.assertTrue(task.outputs["product"].in_flight)
        self.assertEqual([record.index for record in dump if record.in_flight], [task.outputs["product"].index])
        self.assertEqual(dump.totals["in_flight_tensors"], 1)

    def test_only_arguments(self):
        dump = glassbox.run(VECTOR, dump_tensor=False, dump_args=True)
        self.assertEqual((len(dump), dump.level, len(dump.dispatches)), (0, None, 5))
        self.assertEqual([argument["name"] for argument in dump.arguments], ["a", "b", "f"])

    def test_the_example_of_the_manual(self):
        """docs/python.md shows the file in python/examples, and its tests pass."""
        path = support.SOURCE_ROOT / "python" / "examples" / "test_vector_example.py"
        manual = (support.SOURCE_ROOT / "docs" / "python.md").read_text()
        self.assertIn(path.read_text(), manual)
        scope = {"__file__": str(path), "__name__": "example"}
        exec(compile(path.read_text(), path, "exec"), scope)
        tests = [function for name, function in scope.items() if name.startswith("test_")]
        self.assertGreaterEqual(len(tests), 2)
        for function in tests:
            function()


if __name__ == "__main__":
    unittest.main()
