"""Finding dumps, sequences, filters and tasks."""
import os
import unittest

import glassbox
import journal_writer as jw
import support


class Locate(unittest.TestCase):
    def setUp(self):
        self.root = support.scratch(self.id())
        self.dump = jw.write(self.root / "outputs" / "one", jw.journal([jw.run()], [jw.scalar(0, 1, 9)]))

    def test_finds_dumps_as_the_command_does(self):
        outputs = self.root / "outputs"
        for path in (self.dump, str(self.dump), self.dump / "tensor_dump", outputs):
            self.assertEqual(glassbox.open(path).path, self.dump)
        two = jw.write(outputs / "two", jw.journal([jw.run()], [jw.end()]))
        with self.assertRaisesRegex(glassbox.DumpError, r"outputs holds 2 dumps \(one, two\) but no latest"):
            glassbox.open(outputs)
        (outputs / "latest").symlink_to("two")
        for path in (outputs, outputs / "latest"):
            dump = glassbox.open(path)
            self.assertEqual((dump.path.resolve(), dump.info["run_dir"]), (two, "two"))
        before = os.getcwd()
        try:
            os.chdir(self.root)
            self.assertEqual(glassbox.open().path.resolve(), two)
            os.chdir(self.dump / "tensor_dump")
            self.assertEqual(len(glassbox.open(".")), 1)
            with self.assertRaisesRegex(glassbox.DumpError,
                                        "no dump at outputs/latest below the current directory; name one, or make one with"):
                glassbox.open()
        finally:
            os.chdir(before)

    def test_refuses_paths_without_a_dump(self):
        (self.root / "empty" / "tensor_dump").mkdir(parents=True)
        for path, sentence in ((self.root / "nowhere",
                                "nowhere: No such file or directory; make one with: glassbox run SCENE --dump-tensor"),
                               (self.dump / "tensor_dump" / "tensor_dump.rec", "it is not a directory"),
                               (self.root, "no dump found: it has no tensor_dump/, no latest"),
                               (self.root / "empty", "cannot open the journal .*: it does not exist, and there is no manifest")):
            if path == self.root:
                (self.root / "empty" / "tensor_dump").rename(self.root / "empty" / "other")
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                glassbox.open(path)
            if path == self.root:
                (self.root / "empty" / "other").rename(self.root / "empty" / "tensor_dump")


class Sequences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dump = support.example("paged_attention")

    def test_is_a_sequence(self):
        dump = self.dump
        self.assertEqual(len(dump), 1436)
        self.assertEqual([record.index for record in dump], list(range(1436)))
        self.assertEqual((dump[3].index, dump[-1].index, dump[-1436].index), (3, 1435, 0))
        self.assertEqual([record.index for record in dump[10:20:3]], [10, 13, 16, 19])
        self.assertEqual([record.index for record in dump[10:20][-2:]], [18, 19])
        for which in (1436, -1437):
            with self.assertRaisesRegex(IndexError, "there are 1436 records"):
                dump[which]
        self.assertEqual(dump.records[7].to_dict(), dump.to_dicts()[7])
        dump[7].to_dict()["shape"].append(5)
        self.assertNotIn(5, dump[7].to_dict()["shape"])

    def test_filters(self):
        def indices(test):
            return [record.index for record in self.dump if test(record)]

        identity = self.dump[700].task_id
        for keys, test in (
                ({"kernel": "softmax*"}, lambda r: r.kernels == ("softmax_prepare",)),
                ({"kernel": ["qk_matmul", "pv*"]}, lambda r: r.kernels[0] in ("qk_matmul", "pv_matmul")),
                ({"kernel": "nothing"}, lambda r: False), ({"func": 2}, lambda r: r.func_ids == (2,)),
                ({"func": "0..1", "arg": 0}, lambda r: r.func_ids[0] < 2 and r.arg_index == 0),
                ({"task": 17}, lambda r: r.task_seq == 17), ({"task": "17"}, lambda r: r.task_seq == 17),
                ({"task": "10..20"}, lambda r: 10 <= r.task_seq <= 20),
                ({"task": range(10, 20)}, lambda r: 10 <= r.task_seq < 20),
                ({"task": identity}, lambda r: r.task_id == identity),
                ({"task": [3, "0x5", "9..9"]}, lambda r: r.task_seq in (3, 9) or int(r.task_id, 16) == 5),
                ({"arg": "1..2"}, lambda r: r.arg_index in (1, 2)), ({"role": "inout"}, lambda r: r.role == "inout"),
                ({"stage": "before"}, lambda r: r.stage == "before_dispatch"),
                ({"stage": "after_completion"}, lambda r: r.stage != "before_dispatch"),
                ({"kind": "scalar"}, lambda r: r.is_scalar), ({"dtype": "BFLOAT16"}, lambda r: r.dtype == "bfloat16"),
                ({"arg": "running_*"}, lambda r: str(r.arg_name).startswith("running_")),
                ({"arg": ["valid", 0]}, lambda r: r.arg_name == "valid" or r.arg_index == 0),
                ({"kernel": "softmax*", "func": 0}, lambda r: False), ({"kernel": []}, lambda r: False),
                ({"task": []}, lambda r: False),
                ({"kernel": None}, lambda r: True)):
            self.assertEqual([record.index for record in self.dump.filter(**keys)], indices(test), keys)
        chained = self.dump.filter(kernel="softmax*")[5:].filter(kind="scalar", dtype="int32")
        self.assertTrue(len(chained) > 10 and all(r.arg_name == "valid" and r.value <= 16 for r in chained))

    def test_filters_of_a_mix(self):
        dump = support.example("mix_spmd")
        self.assertEqual([record.index for record in dump.filter(kernel="finish")],
                         [r.index for r in dump if "finish" in r.kernels])
        self.assertEqual(len(dump.filter(func=3)), 27)
        self.assertEqual((len(dump.filter(func=3, kernel="multiply")), len(dump.filter(func=3, kernel="fin*"))),
                         (0, 27))

    def test_invalid_filters(self):
        for keys, sentence in (({"colour": 1},
                                'unknown key "colour"; expected kernel, func, task, arg, role, stage, kind or dtype'),
                               ({"task": "20..10"}, "task '20..10' is not a number such as 17 or 0x11, or a range such as 10..20"),
                               ({"task": -1}, "task -1"),
                               ({"task": "10.."}, "10.."), ({"task": True}, "True"), ({"task": 1.5}, "1.5"),
                               ({"arg": 64}, "from 0 to 63"),
                               ({"func": "x"}, "func_id"),
                               ({"role": "inn"}, "unknown role 'inn'; expected input, output, inout"),
                               ({"stage": 1}, "unknown stage 1; expected before_dispatch"), ({"kind": ""}, "kind"),
                               ({"dtype": "float24"}, "unknown dtype 'float24'; expected float32, float16"),
                               ({"kernel": 5}, "kernel 5 is not a name or a glob"), ({"task": "\u0665"}, "task")):
            with self.assertRaisesRegex(glassbox.FilterError, sentence):
                self.dump.filter(**keys)

    def test_tasks(self):
        dump = support.example("mix_spmd")
        self.assertEqual([task.task_seq for task in dump.tasks], [0, 1, 2, 3, 4])
        layer = dump.task(1)
        self.assertEqual((layer.kernels, layer.func_ids, layer.subtasks, layer.block_num),
                         (("multiply", "prepare_finish", "finish"), (1, 2, 3), ("aic", "aiv0", "aiv1"), 8))
        self.assertEqual([record.arg_name for record in layer.inputs], ["x", "w", "bias", "flags", "scale"])
        self.assertEqual([record.arg_name for record in layer.outputs], ["scaled", "product", "y", "flags"])
        self.assertEqual(layer.inputs["scale"].index, layer.inputs[7].index)
        self.assertEqual((int(layer.inputs["flags"].array().sum()), layer.outputs["flags"].array().any()), (0, True))
        self.assertTrue("w" in layer.inputs and 6 in layer.outputs and "w" not in layer.outputs and None not in layer.inputs)
        self.assertEqual(dump.task(layer.task_id).task_seq, 1)
        self.assertEqual([task.task_seq for task in dump.tasks[-2:]], [3, 4])
        for which, sentence in ((9, "no task 9"), ("0x99999", "no task '0x99999'"),
                                ("x", "an id looks like")):
            with self.assertRaisesRegex(glassbox.DumpError, sentence):
                dump.task(which)
        with self.assertRaisesRegex(glassbox.DumpError,
                                    "no argument 'z' here; there are: 3 scaled, 4 product, 5 y, 6 flags"):
            layer.outputs["z"]


if __name__ == "__main__":
    unittest.main()
