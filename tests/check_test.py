#!/usr/bin/python3
"""glassbox check: every verdict is compared with what numpy computes from the inputs and outputs in the dump.

usage: check_test.py GLASSBOX EXAMPLES

Each good example runs on one platform and runtime, and some checks only in JSON; with GLASSBOX_STRESS all of them.
"""
import json
import os
import re
import shlex
import sys

import numpy as np

import terminals
from check_support import (BODY, COMBINATIONS, COUNT, EXAMPLES, STRESS, TENSORMAP, WIDTH, WRONG, Dump, Planted, check, check_in,
                           checked, checked_twice, excess, first_of, float_text, glassbox, introduced_of, plant, reasons_of,
                           record, root, run_tests, source, verdicts_of)
from command_support import on_terminal

# --- the example that is wrong ---


def softmax(dump, task):
    """The right weights, block_max and block_sum of a task."""
    scores, scale, valid = dump.values(task, 0), np.float64(np.float32(dump.values(task, 4))), dump.values(task, 5)
    scaled = scores.astype(np.float64) * scale
    maximum = scaled[:, :valid].max(axis=1)
    weights = np.zeros(scores.shape, np.float16)
    weights[:, :valid] = np.exp(scaled[:, :valid] - maximum[:, None]).astype(np.float16)
    return weights, maximum.astype(np.float32), weights.astype(np.float64).sum(axis=1).astype(np.float32)


def wrong_softmax(dump):
    """{task: (slot of the first wrong output, its excess, what is expected, what is there)}"""
    wrong = {}
    for task in dump.tasks:
        if dump.kernel(task) != "softmax_prepare":
            continue
        for slot, want in enumerate(softmax(dump, task), 1):
            got = dump.values(task, slot, "after_completion").reshape(want.shape)
            apart = excess(got, want, 1e-3, 1e-7)
            if (apart > 1).any():
                wrong[task] = (slot, apart, want, got)
                break
    return wrong


def test_broken_softmax():
    for number, (platform, runtime) in enumerate(COMBINATIONS):
        directory = record(EXAMPLES / "broken_softmax", f"broken softmax '{number}'", "-p", platform, "--runtime", runtime,
                           "--no-golden")
        dump = Dump(directory)
        wrong = wrong_softmax(dump)
        check("tasks that numpy finds wrong", (len(wrong), min(wrong)), (6, 29))
        text, document = checked_twice(directory, code=1) if number == 0 else (None, checked(directory, code=1))
        what = f"broken_softmax {platform} {runtime}"
        check(f"{what}: introduced", introduced_of(document), sorted(wrong))
        check(f"{what}: kernels of them", {t["kernel"] for t in document["tasks"] if t["verdict"] == "introduced"},
              {"softmax_prepare"})
        check(f"{what}: tasks that are right", document["right"], 250)
        for task in document["tasks"]:
            if task["task_seq"] in wrong:
                compare_wrong(f"{what} task {task['task_seq']}", task["outputs"], *wrong[task["task_seq"]])
        compare_first(what, document["first"], wrong[29])
        if text:
            compare_text(what, directory, text, document, wrong[29])


def compare_wrong(what, outputs, slot, apart, want, got):
    output = next(o for o in outputs if o["mismatches"] > 0)
    worst = np.unravel_index(np.argmax(apart), apart.shape)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    check(f"{what}: output", [output[key] for key in ("arg_index", "elements", "mismatches", "max_abs", "not_written")],
          [slot, apart.size, int((apart > 1).sum()), float(difference.max()), 0])
    check(f"{what}: worst", output["worst"], {"element": [int(i) for i in worst], "expected": float(float_text(want[worst])),
                                              "got": float(float_text(got[worst]))})


def compare_first(what, first, wrong):
    slot, apart, want, got = wrong
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    check(f"{what}: first", {key: first[key] for key in ("task_seq", "kernel", "arg_index", "arg_name", "element")},
          {"task_seq": 29, "kernel": "softmax_prepare", "arg_index": slot, "arg_name": "weights", "element": list(worst)})
    check(f"{what}: values of first", (first["expected"], first["got"]), (float(want[worst]), float(got[worst])))


def compare_text(what, directory, text, document, wrong):
    slot, apart, want, got = wrong
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    replay = ["glassbox", "replay", str(directory), "--task", "29"]
    lines, first = text.split("\n"), document["first"]
    start = (f"task 29, kernel softmax_prepare, is the first that is wrong for its own inputs: weights{list(worst)} is "
             f"{float_text(got[worst])}, expected {float_text(want[worst])} (rtol 0.001, atol 1e-07); "
             f"{int((apart > 1).sum())} of {apart.size} elements are wrong")
    check(f"{what}: first line", lines[0][:len(start)], start)
    check(f"{what}: line that replays, as a shell reads it", shlex.split(lines[1]), replay)
    check(f"{what}: replay", first["replay"], lines[1])
    check(f"{what}: counts", lines[2], "256 checked: 6 introduced, 250 right; 0 not checked")
    cells = re.split("  +", next(line for line in lines if line.lstrip().startswith("29 ")).strip())
    wrong_outputs = sum(o["mismatches"] > 0 for o in document["tasks"][29]["outputs"])
    check(f"{what}: line of task 29", cells,
          ["29", "softmax_prepare", f"{slot} weights +{wrong_outputs - 1}", f"{int((apart > 1).sum())} of {apart.size}",
           str(list(worst)), float_text(want[worst]), float_text(got[worst])])
    entry = next(e for e in Dump(directory).manifest["tensors"] if e["task_seq"] == 29)
    check(f"{what}: task_id", first["task_id"], entry["task_id"])


# --- the examples that are right ---

GOOD = {"dump_tensor_example": "default", "vector_example": "default", "bgemm": "small", "mix_spmd": "default",
        "paged_attention": "small"}


def test_good_examples():
    """All tasks are right; then a value in the dump is changed, and it is found. Large examples only do the latter."""
    for number, (example, case) in enumerate(GOOD.items()):
        combinations = COMBINATIONS if STRESS else [COMBINATIONS[number % 6]]
        for platform, runtime in combinations:
            directory = record(EXAMPLES / example, f"good_{example}", "--case", case, "-p", platform, "--runtime", runtime,
                               "--no-dedup")
            dump = Dump(directory)
            what = f"{example} {platform} {runtime}"
            if len(dump.tasks) < 10 or STRESS:
                document = checked(directory, code=0)
                check(f"{what}: verdicts", verdicts_of(document), {task: "right" for task in dump.tasks})
                compare_all(what, dump, document)
            check_spoiled(what, dump)


def compare_all(what, dump, document):
    """Every element of every output was compared, and no reference wrote anything else."""
    compared = [(t["task_seq"], o["arg_index"], o["elements"]) for t in document["tasks"] for o in t["outputs"]]
    check(f"{what}: what was compared", sorted(compared),
          sorted((e["task_seq"], e["arg_index"], e["numel"]) for e in dump.outputs()))
    check(f"{what}: elements that were not written", sum(k["not_written"] for k in document["kernels"]), 0)
    check(f"{what}: stray bytes", sum(t["stray_bytes"] for t in document["tasks"]), 0)


def check_spoiled(what, dump):
    """Changes one element in the last output of each kernel: check names exactly these, and does not blame the kernels."""
    last = {dump.kernel(e["task_seq"]): e for e in dump.outputs()}
    payload = bytearray(dump.payload)
    wanted = {}
    for entry in last.values():
        place = entry["numel"] * 2 // 3
        width = entry["bin_size"] // entry["numel"]
        at = entry["bin_offset"] + place * width
        payload[at:at + width] = bytes([payload[at] ^ 1, *payload[at + 1:at + width - 1], payload[at + width - 1] ^ 0x40])
        wanted[entry["task_seq"]] = (entry["arg_index"], [int(i) for i in np.unravel_index(place, entry["shape"])])
    write_again(dump, payload)
    document = checked(dump.directory, code=1)
    check(f"{what}, spoiled: verdicts", verdicts_of(document),
          {task: "not_repeated" if task in wanted else "right" for task in dump.tasks})
    found = {t["task_seq"]: [(o["arg_index"], o["mismatches"], o["worst"]["element"]) for o in t["outputs"] if o["worst"]]
             for t in document["tasks"] if t["verdict"] == "not_repeated"}
    check(f"{what}, spoiled: replays", {t["task_seq"] for t in document["tasks"] if t["replay"] == "differs"}, set(wanted))
    check(f"{what}, spoiled: outputs", found, {task: [(slot, 1, element)] for task, (slot, element) in wanted.items()})
    compare_all(f"{what}, spoiled", dump, document)


def write_again(dump, payload):
    """Changes the payload as if it had been recorded so: without the journal and the hashes, which would show it."""
    manifest = {**dump.manifest, "tensors": [{k: v for k, v in e.items() if k != "hash"} for e in dump.manifest["tensors"]]}
    (dump.directory / "tensor_dump/tensor_dump.bin").write_bytes(payload)
    (dump.directory / "tensor_dump/tensor_dump.json").write_text(json.dumps(manifest))
    (dump.directory / "tensor_dump/tensor_dump.rec").unlink()


# --- scenes with planted errors ---


def test_one_element():
    """One element of one task is wrong; the tasks after it compute correctly from the wrong value."""
    scene = plant("one", [Planted(WRONG)])
    directory = record(scene, "one")
    dump = Dump(directory)
    want = dump.values(3, 0) * 2 + 1
    text, document = checked_twice(directory, code=1)
    check("one element: first", first_of(document), [3, [4], float(want[4]), float(want[4]) + 0.5])
    check("one element: introduced", introduced_of(document), [3])
    outputs = document["tasks"][3]["outputs"]
    check("one element: output", [(o["mismatches"], o["elements"], o["max_abs"]) for o in outputs], [(1, WIDTH, 0.5)])
    check("one element: default tolerance", (outputs[0]["rtol"], outputs[0]["atol"]), (1e-5, 1e-6))
    check("one element: first line", text.split("\n")[0],
          f"task 3, kernel kernel0, is the first that is wrong for its own inputs: y[4] is {float_text(want[4] + 0.5)}, "
          f"expected {float_text(want[4])} (rtol 1e-05, atol 1e-06); 1 of 6 elements is wrong")
    filters(directory)


def filters(directory):
    document = checked(directory, "--task", "0..2", code=0)
    check("--task: tasks and what is left out", (list(verdicts_of(document)), document["left_out"]), ([0, 1, 2], COUNT - 3))
    ident = next(t["task_id"] for t in document["tasks"] if t["task_seq"] == 2)
    text, document = checked_twice(directory, "--task", ident, "--task", "3", "--kernel", "ker*", code=1)
    check("--task ID: tasks", verdicts_of(document), {2: "right", 3: "introduced"})
    check_in("--task: left out", "; 6 left out by --kernel and --task\n", text)
    done = glassbox("check", directory, "--kernel", "kernle0")
    sentence = f"glassbox check: none of the {COUNT} tasks of {directory} matches the filters"
    check("--kernel of none", (done.returncode, done.stdout, done.stderr),
          (1, "", f'{sentence}: no kernel matches "kernle0"; there are kernel0\n'))
    done = glassbox("check", directory, "--task", "1000")
    check("--task of none", (done.returncode, done.stdout, done.stderr), (1, "", sentence + "\n"))
    other = directory.rename(directory.with_name("other\x1b[31m"))
    done = glassbox("check", other, "--task", "1000")
    check("--task of none, controls", done.stderr,
          f"glassbox check: none of the {COUNT} tasks of {directory.with_name('other')}\\x1b[31m matches the filters\n")
    other.rename(directory)
    for options, sentence in ((["--task", "x"], '--task: unknown value "x"; expected a number such as 17, a range such as 10..20, or an id such as 0x11\n'), (["--timeout", "-1"], '--timeout: "-1" is not a number of seconds from '),
                              (["more"], 'unexpected argument "more": check takes one dump\n')):
        done = glassbox("check", directory, *options)
        check(f"{options}: exit code", done.returncode, 2)
        check_in(f"{options}", sentence, done.stderr)


def test_not_written():
    """What the kernel leaves unwritten is wrong; what the reference leaves unwritten is not compared."""
    half = f"for (int i = 0; i < {WIDTH // 2}; ++i) y[i] = x[i] * 2 + 1;"
    scene = plant("halves", [Planted(text=BODY % ("float", half, "")),
                             Planted(reference=BODY % ("float", half, "if (number == 7) y[0] += 8;"))])
    directory = record(scene, "halves")
    dump = Dump(directory)
    text, document = checked_twice(directory, code=1)
    for task in document["tasks"]:
        number = task["task_seq"]
        want = dump.values(number, 0) * 2 + 1
        got = dump.values(number, 1, "after_completion")
        if number % 2 == 0:
            check(f"halves {number}: unwritten by the kernel", (task["verdict"], task["outputs"][0]["mismatches"],
                                                                task["outputs"][0]["not_written"]),
                  ("introduced", int((got != want).sum()), 0))
            check(f"halves {number}: the second half holds the fill", got[WIDTH // 2:].tolist(), [1.0] * (WIDTH // 2))
        else:
            wanted = "introduced" if number == 7 else "right"
            check(f"halves {number}: unwritten by the reference",
                  (task["verdict"], task["outputs"][0]["elements"], task["outputs"][0]["not_written"]),
                  (wanted, WIDTH // 2, WIDTH // 2))
    check("halves: introduced", introduced_of(document), [0, 2, 4, 6, 7])
    check_in("halves: text", f"not compared: {COUNT // 2 * WIDTH // 2} elements that the reference of kernel kernel1 does not "
             f"write, in {COUNT // 2} tasks, first in task 1\n", text)
    done = glassbox("check", directory, "--task", "1", "--task", "3", "--task", "5")
    check("halves: first line of those that are right", (done.returncode, done.stdout.split("\n")[0]),
          (0, f"all 3 chosen tasks are right for their own inputs; {3 * WIDTH // 2} elements of their outputs were not compared"))


def test_nothing_written():
    """A reference that writes nothing proves nothing; for an inout it means that nothing changes."""
    nothing = BODY % ("float", "", "")
    directory = record(plant("nothing", [Planted(reference=nothing)]), "nothing")
    text, document = checked_twice(directory, code=1)
    check("nothing written: verdicts", set(verdicts_of(document).values()), {"not_checked"})
    check("nothing written: reasons", set(reasons_of(document).values()), {"its reference writes no element of output y (argument 1)"})
    check("nothing written: first line", text.split("\n")[0],
          f"nothing was checked: {COUNT} tasks could not be compared with a reference")
    directory = record(plant("inout", [Planted(reference=nothing)], is_inout=True), "inout")
    document = checked(directory, code=1)
    dump = Dump(directory)
    changed = [t for t in dump.tasks if (dump.values(t, 1) != dump.values(t, 1, "after_completion")).any()]
    check("inout: tasks that change it", changed, list(range(COUNT)))
    check("inout: introduced", introduced_of(document), changed)
    check("inout: the expected value is the one before", document["first"]["expected"], 1.0)


def test_stray():
    """A reference that writes into its own input is reported."""
    directory = record(plant("stray", [Planted(reference=("x[i] * 2 + 1", "if (number == 2) ((float *)(uintptr_t)x)[1] = -3;"))]),
                       "stray")
    text, document = checked_twice(directory, code=0)
    strays = {t["task_seq"]: t["stray_bytes"] for t in document["tasks"] if t["stray_bytes"]}
    before = np.float32(Dump(directory).values(2, 0)[1]).tobytes()
    changed = sum(a != b for a, b in zip(before, np.float32(-3).tobytes()))
    check("stray: tasks and bytes", strays, {2: changed})
    check_in("stray: text", f"warning: the reference of kernel kernel0 writes outside its outputs in 1 task, first in task 2: {changed} bytes from 0x", text)


def test_tolerances():
    """Exactly at the tolerance is right, one float beyond is wrong; if only one of rtol and atol is given, the other is 0."""
    edge = np.float32(1) + np.float32(2 ** -10)
    beyond = np.nextafter(edge, np.float32(2))
    cases = [({"rtol": 2 ** -10}, edge, beyond), ({"atol": 2 ** -10}, edge, beyond),
             ({"rtol": 2 ** -11, "atol": 2 ** -11}, edge, beyond),
             ({"rtol": 0}, np.float32(1), np.nextafter(np.float32(1), np.float32(2)))]
    kernels = [Planted(f"y[2] = {float(near).hex()}f; if (number >= 4) y[2] = {float(far).hex()}f;", good="1", **fields)
               for fields, near, far in cases]
    directory = record(plant("tolerance", kernels), "tolerance")
    document = checked(directory, code=1)
    check("tolerances: introduced", introduced_of(document), [4, 5, 6, 7])
    for number, (fields, near, far) in enumerate(cases):
        right, wrong = document["tasks"][number]["outputs"][0], document["tasks"][number + 4]["outputs"][0]
        check(f"tolerance {fields}: max abs", (right["max_abs"], wrong["max_abs"]), (float(near) - 1, float(far) - 1))
        check(f"tolerance {fields}", (right["rtol"], right["atol"]), (fields.get("rtol", 0), fields.get("atol", 0)))
        check(f"tolerance {fields}: wrong", wrong["worst"], {"element": [2], "expected": 1.0, "got": float(float_text(far))})


def test_values():
    """NaN and infinities where numbers are expected, and the other way round; integers of 64 bits; bool."""
    bad = "if (number == 1) y[0] = __builtin_nanf(\"\"); if (number == 2) { y[0] = 1; y[3] = __builtin_inff(); }"
    directory = record(plant("nan", [Planted(bad, good="number == 2 && i == 0 ? __builtin_nanf(\"\") : 1", atol=1e30)]), "nan")
    text, document = checked_twice(directory, code=1)
    check("nan: introduced", introduced_of(document), [1, 2])
    check("nan: first", first_of(document), [1, [0], 1.0, "nan"])
    check_in("nan: text", "y[0] is nan, expected 1.0 (rtol 0.0, atol 1e+30)", text.split("\n")[0])
    check("nan: worst of task 2", document["tasks"][2]["outputs"][0]["worst"], {"element": [0], "expected": "nan", "got": 1.0})
    check("nan: max abs", document["tasks"][1]["outputs"][0]["max_abs"], "inf")
    directory = record(plant("wide", [Planted("if (number == 6) ++y[5];", good="x[i] + 1")], "int64", "int64_t",
                             {"fill": "constant", "value": "0x7000000000000000"}), "wide")
    document = checked(directory, code=1)
    want = int(Dump(directory).values(6, 0)[5]) + 1
    check("int64: first", first_of(document), [6, [5], str(want), str(want + 1)])
    directory = record(plant("truth", [Planted("if (number == 7) y[1] = !y[1];", good="!x[i]")], "bool", "unsigned char",
                             {"fill": "constant", "value": True}), "truth")
    document = checked(directory, code=1)
    want = not Dump(directory).values(7, 0)[1]
    check("bool: first", first_of(document), [7, [1], want, not want])


def test_bytes_that_look_like_poison():
    """Every value of a byte, and the values that poison outputs."""
    bad = "if (number >= 6) y[number - 6] ^= 1;"
    directory = record(plant("bytes", [Planted(bad, "(unsigned char)(x[i] + 32 * number + i)"), Planted(bad, "i % 2 ? 0xa5 : 0x5a")],
                             "uint8", "unsigned char"), "bytes")
    document = checked(directory, code=1)
    check("bytes: introduced", introduced_of(document), [6, 7])
    check("bytes: elements that were compared", [(t["outputs"][0]["elements"], t["outputs"][0]["not_written"])
                                                 for t in document["tasks"]], [(WIDTH, 0)] * COUNT)
    want = int(Dump(directory).values(6, 0)[0]) + 192 & 255
    check("bytes: first", first_of(document), [6, [0], want, want ^ 1])
    check("poison: worst", document["tasks"][7]["outputs"][0]["worst"], {"element": [1], "expected": 0xa5, "got": 0xa4})


# y = x ^ 9 for half bytes, by their places in the view; then `bad` changes y.
HALVES = """#include <glassbox/kernel.h>
static int64_t place(const gbx_tensor *t, int64_t number) {
    int64_t at = t->start_offset;
    for (int d = (int)t->ndims - 1; d >= 0; number /= t->shape[d--]) at += number %% t->shape[d] * t->strides[d];
    return at;
}
static void flip(const gbx_tensor *t, int64_t number, int bits) {
    int64_t at = place(t, number);
    ((unsigned char *)(uintptr_t)t->data)[at / 2] ^= (unsigned char)(bits << at %% 2 * 4);
}
static int get(const gbx_tensor *t, int64_t number) {
    int64_t at = place(t, number);
    return ((unsigned char *)(uintptr_t)t->data)[at / 2] >> at %% 2 * 4 & 15;
}
void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0), *y = gbx_arg_tensor(args, 1);
    int64_t count = gbx_tensor_numel(y);
    for (int64_t i = 0; i < count; ++i) flip(y, i, get(y, i) ^ get(x, i) ^ 9);
    %s
}
"""
# All; transposed; columns; one element; none; backwards; all rows in one place; rows.
VIEWS = """#include <glassbox/orchestration.h>
static gbx_tensor look(gbx_tensor t, int way) {
    gbx_tensor row = gbx_view_select(&t, 0, 2);
    switch (way) {
    case 1: return gbx_view_transpose(&t, 0, 1);
    case 2: return gbx_view_slice(&t, 1, 1, 3);
    case 3: return gbx_view_select(&row, 0, 3);
    case 4: return gbx_view_slice(&t, 0, 1, 0);
    case 5: t.start_offset += 5; t.strides[1] = -1; return t;
    case 6: t.strides[0] = 0; return t;
    case 7: return gbx_view_slice(&t, 0, 1, 2);
    default: return t;
    }
}
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    for (int i = 0; i < 8; ++i) {
        gbx_args args = gbx_args_begin();
        gbx_tensor x = look(run->tensors[0], i == 5 || i == 6 ? 0 : i), y = look(run->tensors[1], i);
        gbx_args_add_input(&args, &x);
        gbx_args_add_output(&args, &y);
        gbx_args_add_i32(&args, i);
        gbx_submit_task(o, gbx_aiv(0), &args);
    }
    return 0;
}
"""


def halves(dump, task, slot, stage):
    """The elements of a payload of int4, row by row."""
    entry = dump.entries[task, slot, stage]
    row = entry["shape"][-1] if entry["shape"] else 1
    data = np.frombuffer(dump.payload, np.uint8)[entry["bin_offset"]:entry["bin_offset"] + entry["bin_size"]]
    rows = np.stack([data & 15, data >> 4], axis=-1).reshape(-1, (row + 1) // 2 * 2)
    return rows[:, :row].reshape(entry["shape"])


def test_views():
    """Elements of half a byte in all kinds of views: check names the wrong one in each."""
    scene = plant("views", [Planted(text=HALVES % "if (count > 0 && gbx_arg_i32(args, 2) != 7) flip(y, count * 2 / 3, 5);",
                                    reference=HALVES % "")], "int4", fill={"fill": "constant", "value": 3})
    described = json.loads((scene / "scene.json").read_text())
    described["orchestrations"][TENSORMAP]["source"] = source(VIEWS)
    for argument in described["args"]:
        argument["shape"] = [4, WIDTH]
    (scene / "scene.json").write_text(json.dumps(described))
    directory = record(scene, "views")
    dump, document = Dump(directory), checked(directory, code=1)
    for task in document["tasks"]:
        number = task["task_seq"]
        got, want = halves(dump, number, 1, "after_completion"), halves(dump, number, 0, "before_dispatch") ^ 9
        wrong = [[int(i) for i in place] for place in zip(*np.nonzero(np.atleast_1d(got != want)))] if got.shape else [[]]
        verdict = "not_checked" if got.size == 0 else "introduced" if number != 7 else "right"
        output = task["outputs"][0]
        check(f"views {number}: verdict", (task["verdict"], output["elements"], output["not_written"]), (verdict, got.size, 0))
        check(f"views {number}: wrong", (output["mismatches"], output["worst"] and output["worst"]["element"]),
              (len(wrong), wrong[0] if wrong else None))
    check("views: of no elements", reasons_of(document), {4: "its outputs have no elements"})


# --- text ---


def test_replay_line():
    """The replay line names the dump as the user did; for latest it has the name that latest points to."""
    here = root / "working here"
    here.mkdir()
    scene = plant("line", [Planted(WRONG)])
    done = glassbox("run", scene, "--dump-tensor", cwd=here)
    check(f"line: run ({done.stderr})", done.returncode, 0)
    name = os.readlink(here / "outputs/latest")
    os.symlink(here / "outputs" / name, here / "-it's")
    cases = [((), f"outputs/{name}"), (("outputs",), f"outputs/{name}"), (("./outputs/latest/",), f"./outputs/{name}"),
             ((f"outputs/{name}",), f"outputs/{name}"), (("outputs/latest/tensor_dump",), "outputs/latest/tensor_dump"),
             (("--", "-it's"), "./-it's"), ((here / "outputs" / name,), str(here / "outputs" / name))]
    for arguments, shown in cases:
        words = shlex.split(glassbox("check", *arguments, cwd=here).stdout.split("\n")[1])
        check(f"line of {arguments}", words, ["glassbox", "replay", shown, "--task", "3"])
        check(f"line of {arguments}: what it names", (here / shown).resolve() in (here / "outputs" / name,
                                                                               here / "outputs" / name / "tensor_dump"), True)


def test_terminal():
    """Tables fit the terminal; names are cut, numbers are not, and control characters do not get there."""
    kernel = Planted("if (number == 2) y[1] = -7;", name="kernel_with_a_name_that_is_long", arg_names=["x", "output\x1b[31m", "n"])
    directory = record(plant("terminal", [kernel]), "terminal")
    if not terminals.are_there():
        return
    want = Dump(directory).values(2, 0)[1] * 2 + 1
    text, code = on_terminal(70, "check", directory)
    lines = text.split("\n")
    check("terminal: exit code", code, 1)
    check("terminal: controls", [line for line in lines if "\x1b" in line], [])
    check_in("terminal: first line", "output\\x1b[31m[1] is -7.0", lines[0])
    start = lines.index("") + 1
    table = lines[start:start + 2]
    check("terminal: widths", [line for line in table if len(line) > 70], [])
    check("terminal: task and values", (table[1].split()[0], table[1].split()[-3:]), ("2", ["[1]", float_text(want), "-7.0"]))
    check("terminal: the name is cut", "kernel_with_a_name_that_is_long" in table[1], False)
    narrow = on_terminal(40, "check", directory)[0].split("\n")
    tables = [line for line in narrow[narrow.index(""):] if not line.startswith("glassbox")]
    check("terminal of 40: widths", [line for line in tables if len(line) > 40], [])
    check("terminal of 40: columns, and those that are not there", (tables[1].split(), tables[3]),
          (["TASK", "KERNEL", "ARG", "EXPECTED", "GOT"], "no room for: WRONG, WORST"))
    check("terminal of 40: task and values", (tables[2].split()[0], tables[2].split()[-2:]), ("2", [float_text(want), "-7.0"]))
    check("terminal of 40: what is left out by kernel", tables[-2], "no room for: MAX ABS, MAX REL")
    wide = glassbox("check", directory).stdout.split("\n")
    check("pipe: the name is not cut", "kernel_with_a_name_that_is_long" in wide[start + 1], True)


def test_many():
    """A list of at most 20, and how many more."""
    directory = record(plant("many", [Planted("y[number % 6] += 1e30f;", good="x[i]")], count=50), "many")
    text, document = checked_twice(directory, code=1)
    check("many: introduced", introduced_of(document), list(range(50)))
    listed = [line for line in text.split("\n") if re.match(r" *\d+  kernel0 ", line)]
    check("many: listed", [int(line.split()[0]) for line in listed], list(range(20)))
    check_in("many", "\nand 30 more; --json lists all\n", text)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
