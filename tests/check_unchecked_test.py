#!/usr/bin/python3
"""glassbox check: tasks that cannot be checked are counted, named with the reason, and never called right.

usage: check_unchecked_test.py GLASSBOX EXAMPLES
"""
import json
import pathlib
import shlex
import shutil
import sys

from check_support import (COUNT, EXAMPLES, KERNEL, STRESS, WRONG, Dump, Planted, check, check_in, checked, checked_twice, first_of,
                           glassbox, introduced_of, plant, reasons_of, record, refuse, root, run_tests, verdicts_of)

# --- references ---


def test_references():
    """References that are missing, crash or hang: each has its reason, and the rest is checked."""
    kernels = [Planted("if (number == 4) y[1] = 7;"), Planted(has_reference=False),
               Planted(reference=("x[i]", "__builtin_abort();")), Planted(reference=("x[i] * 2 + 1", "for (;;) sched_yield();"))]
    directory = record(plant("references", kernels), "references")
    text, document = checked_twice(directory, "--task", "0..2", "--task", "4..6", code=1)
    check("references: verdicts", verdicts_of(document), {0: "right", 4: "introduced", **{t: "not_checked" for t in (1, 2, 5, 6)}})
    check("references: reasons", reasons_of(document), {
        **dict.fromkeys((1, 5), "kernel kernel1 has no reference in scene.json"),
        **dict.fromkeys((2, 6), "the reference of kernel kernel2 crashed with SIGABRT")})
    for line in ("not checked: 2 tasks of kernel kernel1 (tasks 1, 5): kernel kernel1 has no reference in scene.json",
                 "not checked: 2 tasks of kernel kernel2 (tasks 2, 6): the reference of kernel kernel2 crashed with SIGABRT"):
        check(f"references: {line}", line in text.split("\n"), True)
    check("references: no differences where nothing was compared", [line.split()[-2:] for line in text.split("\n") if line.startswith("kernel1 ")],
          [["-", "-"]])
    hung = checked(directory, "--task", "3", "--task", "7", "--timeout", "0.1", code=1)  # everything that runs here hangs
    check("references that hang: reasons", reasons_of(hung), {
        3: "the reference of kernel kernel3 hung: it took longer than --timeout",
        7: "the reference of kernel kernel3 hung in an earlier task and was not run again"})
    done = glassbox("check", directory, "--task", "0..2")
    check("references: some not checked", (done.returncode, done.stdout.split("\n")[0]),
          (0, "1 of 3 chosen tasks is right for its own inputs, 2 were not checked"))


def test_references_that_are_not_steady():
    """A reference that adds to its output, or that does not write half of an element, proves nothing."""
    adding = KERNEL.replace("y[i] = %s;", "y[i] += %s;") % ("float", "x[i] * 2 + 1", "")
    halving = KERNEL.replace("y[i] = %s;", "((short *)&y[i])[1] = %s;") % ("float", "0x3f80", "")
    directory = record(plant("unsteady", [Planted(reference=adding), Planted(good="1", reference=halving)]), "unsteady")
    dump = Dump(directory)
    check("not steady: what kernels left", [(dump.values(t, 1, "after_completion") == (1 if t % 2 else dump.values(t, 0) * 2 + 1)).all()
                                            for t in dump.tasks], [True] * COUNT)
    document = checked(directory, code=1)
    check("not steady: reasons", [r.split(":")[0] for r in reasons_of(document).values()],
          ["its reference gives different results each time"] * COUNT)
    check("not steady: nothing was compared", [(k["max_abs"], k["not_written"]) for k in document["kernels"]], [(0.0, 0)] * 2)


def test_bad_references():
    directory = record(plant("compile", [Planted(), Planted()]), "compile")
    good = KERNEL % ("float", "x[i] * 2 + 1", "")
    plant("compile", [Planted(), Planted(reference=good.replace("kernel_entry(", "kernel_entry(no_such_type a, "))])
    sentence = refuse(directory)
    check("does not compile", sentence.startswith("glassbox check: the reference of kernel kernel1: compiling "), True)
    check_in("does not compile", "no_such_type", sentence)
    plant("compile", [Planted(), Planted(reference=good.replace("kernel_entry(", "another_entry("))])
    check_in("has no entry", "kernel_entry", refuse(directory))


def test_flags():
    """A reference gets the flags of its kernel, except those that relax arithmetic or flush small numbers to 0."""
    guard = "#ifdef __FAST_MATH__\n#error fast\n#endif\n"
    reference = guard + KERNEL % ("float", "i == 5 ? SMALL * factor : x[i] + 3", "")
    reference = reference.replace("int number", "volatile float factor = 0x1p-40f; int number")
    scene = plant("flags", [Planted("y[5] = 0x1p-140f; if (number == 2) y[0] = 0;", "x[i] + 3", reference, rtol=0,
                                    compile_flags="-DSMALL=0x1p-100f -Ofast -w", link_flags="-ffast-math")])
    directory = record(scene, "flags")
    document = checked(directory, code=1)
    check("flags: first", first_of(document), [2, [0], float(Dump(directory).values(2, 0)[0]) + 3, 0.0])
    check("flags: introduced", introduced_of(document), [2])


# --- scenes ---


def test_scenes():
    """The scene is found where it was; if it is gone or changed, a sentence says what to do."""
    scene = plant("moved", [Planted(WRONG)])
    directory = record(scene, "moved")
    check("scene: introduced", introduced_of(checked(directory, code=1)), [3])
    scene.rename(root / "scene_elsewhere")
    check("scene that is gone", refuse(directory),
          f"glassbox check: the scene of the dump, {scene}, no longer exists; name it with --scene DIR\n")
    for given in (root / "scene_elsewhere", root / "scene_elsewhere/scene.json"):
        check("--scene: introduced", introduced_of(checked(directory, "--scene", given, code=1)), [3])
    other = EXAMPLES / "vector_example"
    check("another scene", refuse(directory, "--scene", other),
          f"glassbox check: {other}/scene.json is not the scene of the dump: func_id 0 is kernel add there but kernel0 in the "
          "dump; name another with --scene DIR\n")
    described = json.loads((root / "scene_elsewhere/scene.json").read_text())
    for signature in (["out", "in", "scalar:int32"], ["in", "in", "out", "scalar:int32"], ["in", "out"]):
        described["kernels"][0].update(signature=signature, arg_names=signature)
        (root / "scene_changed").mkdir(exist_ok=True)
        (root / "scene_changed/scene.json").write_text(json.dumps(described))
        check_in(f"scene with {signature}", "scene_changed/scene.json has changed since the run: kernel kernel0 has another signature",
                 refuse(directory, "--scene", root / "scene_changed"))
    check_in("no scene", "scene.json", refuse(directory, "--scene", root / "nowhere"))
    (directory / "run.json").unlink()
    check("no run.json", refuse(directory),
          f"glassbox check: {directory} has no run.json that names its scene; name it with --scene DIR\n")
    check("no run.json, --scene", introduced_of(checked(directory, "--scene", root / "scene_elsewhere", code=1)), [3])


def test_scene_inside():
    """Code inside a dump does not run unless the user names it."""
    scene = plant("inside", [Planted()])
    directory = record(scene, "inside")
    shutil.copytree(scene, directory / "scene")
    run = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**run, "scene_path": str(directory / "scene")}))
    check_in("scene inside", "lies inside the dump, belongs to another user, or is writable by everyone", refuse(directory))
    (directory / "run.json").write_text(json.dumps({**run, "scene_path": scene.name}))
    done = glassbox("check", directory, cwd=root)
    check("scene that happens to lie around", (done.returncode, done.stdout, done.stderr),
          (2, "", f"glassbox check: {directory}/run.json does not have the absolute path of the scene; name it with --scene DIR\n"))
    check("scene inside, named", checked(directory, "--scene", directory / "scene", code=0)["right"], COUNT)
    (directory / "run.json").write_text(json.dumps(run))
    (scene / "scene.json").chmod(0o646)
    check_in("scene that others can write", "belongs to another user, or is writable by everyone; if you trust it",
             refuse(directory))
    check("scene that others can write, named", checked(directory, "--scene", scene, code=0)["right"], COUNT)
    (scene / "scene.json").chmod(0o644)
    (scene / "scene.json").rename(scene / "gone.json")
    check_in("scene.json gone", f"{scene}/scene.json: No such file", refuse(directory))
    (scene / "gone.json").rename(scene / "scene.json")


# --- dumps ---


def test_manifest_only():
    """A dump without a journal, as other tools write it; without task_seq, ids name the tasks."""
    scene = plant("manifest", [Planted(WRONG)])
    directory = record(scene, "manifest")
    want = Dump(directory).values(3, 0)[4] * 2 + 1
    ident = Dump(directory).entries[3, 1, "after_completion"]["task_id"]
    for name in ("run.json", "tensor_dump/tensor_dump.rec"):
        (directory / name).unlink()
    for has_numbers in (True, False):
        text, document = checked_twice(directory, "--scene", scene, code=1)
        check("manifest only: first", first_of(document), [3, [4], float(want), float(want) + 0.5])
        check("manifest only: task of the line that replays", int(shlex.split(text.split("\n")[1])[-1], 0),
              3 if has_numbers else int(ident, 16))
        check_in("manifest only", "\nno journal: tasks are in order of submission, because the graph is unknown\n", text)
        manifest = json.loads((directory / "tensor_dump/tensor_dump.json").read_text())
        for entry in manifest["tensors"]:
            entry.pop("task_seq", None)
        (directory / "tensor_dump/tensor_dump.json").write_text(json.dumps(manifest))
    check_in("manifest only: --task", "give an id such as 0x11", refuse(directory, "--scene", scene, "--task", "3"))
    check("manifest only: --task ID", checked(directory, "--scene", scene, "--task", ident, code=1)["introduced"], 1)
    fixture = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler" / "vector_example"
    document = checked(fixture, "--scene", EXAMPLES / "vector_example", code=1)
    check("unknown blocks", (document["checked"], document["not_checked"]), (0, 5))


def test_levels():
    """Tasks whose values are not in the dump are not checked, and the reason says what to do."""
    scene = plant("levels", [Planted(WRONG), Planted()])
    only_outputs = ("--dump-filter", "task=2..3,role=output")
    for level, options in (("stats", ()), ("hybrid", only_outputs), ("partial", only_outputs))[:3 if STRESS else 2]:
        directory = record(scene, f"level_{level}", f"--dump-tensor={level}", *options)
        text, document = checked_twice(directory, code=1)
        check(f"{level}: verdicts", set(verdicts_of(document).values()), {"not_checked"})
        check(f"{level}: reasons that do not say what to do", [r for r in reasons_of(document).values() if "--dump-tensor=full" not in r], [])
        check(f"{level}: first line", text.startswith("nothing was checked: "), True)
        check_in(level, f"the dump's level is {level}: to check all tasks, run again with --dump-tensor=full\n", text)
    directory = record(scene, "truncated", "--dump-max-tensor", "8")
    document = checked(directory, code=1)
    check("truncated: verdicts", set(verdicts_of(document).values()), {"not_checked"})
    check("truncated: reasons", [r for r in reasons_of(document).values() if "truncated" not in r], [])


def test_output_missing():
    """A dump with only inputs cannot be checked."""
    scene = plant("inputs", [Planted(WRONG)])
    directory = record(scene, "inputs", "--dump-filter", "role=input", "--dump-filter", "task=3")
    document = checked(directory, code=1)
    check("inputs: introduced", introduced_of(document), [3])
    check("inputs: reasons", len(reasons_of(document)), COUNT - 1)
    check("inputs: that name the output", [r for r in reasons_of(document).values() if "y" not in r], [])


def test_damaged():
    """A bit that changed on disk is not a kernel's fault: the tasks that wrote and read it are not checked."""
    directory = record(plant("damaged", [Planted()]), "damaged")
    entry = Dump(directory).entries[2, 1, "after_completion"]
    payload = bytearray((directory / "tensor_dump/tensor_dump.bin").read_bytes())
    payload[entry["bin_offset"] + 6] ^= 0x40
    (directory / "tensor_dump/tensor_dump.bin").write_bytes(payload)
    dump = Dump(directory)
    wrong = [t for t in dump.tasks if (dump.values(t, 1, "after_completion") != dump.values(t, 0) * 2 + 1).any()]
    check("damaged: tasks that look wrong", wrong, [2, 3])
    document = checked(directory, code=0)
    sentence = "%s is damaged in the dump: its hash no longer matches; run glassbox verify"
    check("damaged: reasons", reasons_of(document), {2: sentence % "y (argument 1)", 3: sentence % "x (argument 0)"})
    check("damaged: right", document["right"], COUNT - 2)


def test_contradicting():
    """A task whose records contradict each other is not checked; the others are."""
    directory = record(plant("contradicting", [Planted("if (number == 5) y[2] = 0;")], is_inout=True), "contradicting")
    (directory / "tensor_dump/tensor_dump.rec").unlink()
    path = directory / "tensor_dump/tensor_dump.json"
    listed = json.loads(path.read_text())
    moved = next(e for e in listed["tensors"] if (e["task_seq"], e["role"], e["stage"]) == (2, "inout", "after_completion"))
    moved["buffer_addr"] = hex(int(moved["buffer_addr"], 16) + 512)
    path.write_text(json.dumps(listed))
    text, document = checked_twice(directory, code=1)
    check("contradicting: verdicts", verdicts_of(document),
          {t: {2: "not_checked", 5: "introduced"}.get(t, "right") for t in range(COUNT)})
    check_in("contradicting: reason", reasons_of(document)[2], text)
    check_in("contradicting: reason", "y", reasons_of(document)[2])


def test_crashed():
    """A task that crashed is not checked; those before it are."""
    scene = plant("crash", [Planted("if (number == 2) y[0] = 0; if (number == 5) __builtin_abort();")])
    directory = record(scene, "crash", code=3)
    text, document = checked_twice(directory, code=1)
    verdicts = verdicts_of(document)
    check("crash: verdicts", verdicts, {0: "right", 1: "right", 2: "introduced", 3: "right", 4: "right", 5: "not_checked"})
    check_in("crash: reason", "it did not complete", reasons_of(document)[5])
    check_in("crash: text", "the run failed: ", text)
    check("crash: first line of those before it", glassbox("check", directory, "--task", "0..1").stdout.split("\n")[0],
          "all 2 chosen tasks are right for their own inputs; the run failed")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
