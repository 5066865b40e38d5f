#!/usr/bin/python3
"""What nobody declared or described: scalars without a dtype, words that may be tensors, and runs of which only the arguments
were recorded. Values are those that the orchestration passes, and the words that a kernel finds in its args[].

usage: unknown_test.py GLASSBOX
"""
import json
import pathlib
import re
import shutil
import sys

import numpy as np

from command_support import PLATFORMS, RUNTIMES, check, check_in, glassbox
from dump_encoder import Dump
from run_support import FILL, make, root, run, run_tests

PLAIN, SCALE, COUNT = 0xbdcccccd, 0x40200000, 0xfffffff9  # -0.1f, 2.5f, -7
READINGS = "float32 -0.1, int32 -1110651699"

WORDS = """#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    uint64_t *seen = (uint64_t *)(uintptr_t)gbx_arg_tensor(args, 1)->data;
    for (int i = 0; i < 5; ++i) seen[i] = args[i];
}
"""
APPLY = """#include <glassbox/kernel.h>
void kernel_entry(const uint64_t *args) {
    float *y = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    y[0] = gbx_arg_f32(args, 1) * gbx_arg_f32(args, 2);
}
"""
TYPED = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &run->tensors[0]);
    gbx_args_add_output(&args, &run->tensors[1]);
    gbx_args_add_scalar(&args, GBX_DTYPE_NONE, PLAIN);
    gbx_args_add_scalar(&args, GBX_DTYPE_NONE, SCALE);
    gbx_args_add_scalar(&args, GBX_INT32, COUNT);
    SUBMIT(o, gbx_aiv(0), &args);
    args = gbx_args_begin();
    gbx_args_add_output(&args, &run->tensors[2]);
    gbx_args_add_scalar(&args, GBX_DTYPE_NONE, PLAIN);
    gbx_args_add_scalar(&args, GBX_DTYPE_NONE, SCALE);
    SUBMIT(o, gbx_aiv(1), &args);
    return 0;
}
"""
# DESCRIBED has a bit for each tensor of task 0 that is described; with NEVER, no call describes any task.
ON_HOST = """#include <glassbox/orchestration.h>
int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor_info infos[3];
    uint64_t at[3];
    for (uint32_t i = 0; i < 3; ++i) {
        gbx_tensor tensor = run->tensors[i];
        tensor.buffer_bytes = (uint64_t)gbx_tensor_numel(&tensor) * (i == 1 ? 8 : 4);
        tensor.data = gbx_device_malloc(o, tensor.buffer_bytes);
        gbx_copy_to_device(o, tensor.data, (void *)(uintptr_t)run->tensors[i].data, tensor.buffer_bytes);
        if (i) gbx_return_to_host(o, (void *)(uintptr_t)run->tensors[i].data, tensor.data, tensor.buffer_bytes);
        at[i] = gbx_device_tensor(o, &tensor);
        infos[i] = (gbx_tensor_info){i % 2, i ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT, tensor};
    }
    const uint64_t words[] = {at[0], at[1], PLAIN, SCALE, COUNT}, others[] = {at[2], PLAIN, SCALE};
    gbx_task first = gbx_add_task(o, gbx_aiv(0), words, 5), second = gbx_add_task(o, gbx_aiv(1), others, 3);
    if (!NEVER) {
        gbx_set_tensor_info_to_task(o, first, DESCRIBED & 1 ? infos : infos + 1, (DESCRIBED & 1) + (DESCRIBED >> 1));
        gbx_set_tensor_info_to_task(o, second, &infos[2], 1);
    }
    return 0;
}
"""
DEFINES = f"#define PLAIN {PLAIN:#x}u\n#define SCALE {SCALE:#x}u\n#define COUNT {COUNT:#x}u\n"
ARGS = [{"name": "x", "dtype": "float32", "shape": [4], "role": "in"}, {"name": "seen", "dtype": "uint64", "shape": [5], "role": "out"},
        {"name": "y", "dtype": "float32", "shape": [1], "role": "out"}]
SCENE = {"name": "unknown", "args": ARGS,
         "kernels": [{"func_id": 0, "name": "words", "source": "words.c", "core": "aiv",
                      "signature": ["in", "out", "scalar", "scalar:float32", "scalar"],
                      "arg_names": ["x", "seen", "plain", "scale", "count"]},
                     {"func_id": 1, "name": "apply", "source": "apply.c", "core": "aiv",
                      "signature": ["out", "scalar", "scalar:float32"], "arg_names": ["y", "plain", "scale"]}],
         "orchestrations": {"host_build_graph": {"source": "host.c"}, "aicpu_build_graph": {"source": "aicpu.c"},
                            "tensormap_and_ringbuffer": {"source": "tensormap.c"}}}


def scene_of(name, described=3, never=0, files=None):
    aicpu = "#define SUBMIT(o, kernels, args) gbx_publish_task((o), gbx_add_task_with_args((o), (kernels), (args)))\n"
    tensormap = "#define SUBMIT(o, kernels, args) gbx_submit_task((o), (kernels), (args))\n"
    flags = f"#define DESCRIBED {described}\n#define NEVER {never}\n"
    return make(name, SCENE, {"words.c": WORDS, "apply.c": APPLY, "host.c": DEFINES + flags + ON_HOST,
                              "aicpu.c": DEFINES + aicpu + TYPED, "tensormap.c": DEFINES + tensormap + TYPED, **(files or {})})


def recorded(scene, name, *options, code=0):
    """The directory of the dump of a run, and stderr."""
    directory = root / name
    shutil.rmtree(directory, ignore_errors=True)
    _, errors = run(scene, "--no-golden", "-o", str(directory), *options, code=code)
    return directory, errors


def files_of(directory):
    inside = directory / "tensor_dump"
    return {name: json.loads((inside / name).read_text()) if (inside / name).exists() else None
            for name in ("tensor_dump.json", "args_dump.json", "kernel_args_dump.json")}


def seen_words(directory, manifest):
    """The args[] that the kernel wrote into its output."""
    entry = next(t for t in manifest["tensors"] if t["arg_name"] == "seen" and t["stage"] == "after_completion")
    payload = (directory / "tensor_dump" / "tensor_dump.bin").read_bytes()
    return np.frombuffer(payload, np.uint64, 5, entry["bin_offset"]).tolist()


def table(*arguments, code=0):
    result = glassbox("view", *arguments)
    check(f"view {arguments}: exit code, {result.stderr}", result.returncode, code)
    return result.stdout.splitlines() if code == 0 else result.stderr


def document(*arguments, code=0):
    result = glassbox("view", *arguments, "--json")
    check(f"view {arguments} --json: exit code", result.returncode, code)
    return json.loads(result.stdout)


def is_good(directory):
    result = glassbox("verify", directory)
    check(f"verify {directory}: {result.stdout}", result.returncode, 0)


# --- scalars without a dtype ---


def check_scalars(directory, runtime):
    files = files_of(directory)
    entries = {(t["task_seq"], t["arg_name"]): t for t in files["tensor_dump.json"]["tensors"] if t["kind"] == "scalar"}
    slots = {(d["task_seq"], a["arg_index"]): a for d in files["kernel_args_dump.json"]["dispatches"] for a in d["args"]}
    words = seen_words(directory, files["tensor_dump.json"])
    check("what the kernel found", words[2:], [PLAIN, SCALE, COUNT])
    check("all words", [int(slots[0, i]["bits"], 16) for i in range(5)], words)
    count = ("unknown", None) if runtime == "host_build_graph" else ("int32", -7)
    for task, name, arg, bits, dtype, value in ((0, "plain", 2, PLAIN, "unknown", None), (0, "scale", 3, SCALE, "float32", 2.5),
                                                (0, "count", 4, COUNT, *count), (1, "plain", 1, PLAIN, "unknown", None)):
        for place in (entries[task, name], slots[task, arg]):
            check(f"{runtime} {name}", (place["kind"], place["role"], place["dtype"], int(place["bits"], 16), place.get("value")),
                  ("scalar", "input", dtype, bits, value))
            check("an unknown scalar has no value", "value" in place, dtype != "unknown")
    return [t["index"] for t in files["tensor_dump.json"]["tensors"] if t["dtype"] == "unknown"]


def check_views(directory, unknown):
    lines = [line for line in table(directory, "--arg", "plain") if " plain " in line]
    check("the list", [re.sub(" +", " ", line).split(" in ")[1] for line in lines],
          [f"{arg} plain unknown = {PLAIN:#x}, {READINGS} - -" for arg in (2, 1)])
    index = unknown[0]
    check("one entry", table(directory, "--index", index)[2:], [f"unknown scalar, bits 0x{PLAIN:016x}", READINGS])
    check("--dtype unknown", [t["index"] for t in document(directory, "--dtype", "unknown")["tensors"]], unknown)
    check("--stats", [line.split()[-5:] for line in table(directory, "--arg", "plain", "--stats") if " plain " in line],
          [["-"] * 5] * 2)
    check("--sort: last, whatever the order", [t["index"] for t in document(directory, "--sort", "-max", "--kind", "scalar")["tensors"]]
          [-len(unknown):], unknown)
    shown = [line for line in table(directory, "--dispatches", "--dtype", "unknown") if "plain" in line]
    check("dispatches", [line.split("; ")[-2 if "apply" in line else -3] for line in shown],
          [f"2 plain unknown = {PLAIN:#x}", f"1 plain unknown = {PLAIN:#x}"])


def check_uses(directory):
    """Other commands: replay passes the word, export writes it, verify and diff understand it."""
    is_good(directory)
    result = glassbox("replay", directory, "--task", "1")
    check(f"replay: {result.stdout}{result.stderr}", result.returncode, 0)
    archive = directory.parent / "values.npz"
    check("export", glassbox("export", directory, "--format", "npz", "-o", archive).returncode, 0)
    arrays = np.load(archive)
    values = [arrays[f"task_0x{task:016x}_before_in{arg}"] for task, arg in ((0, 2), (1, 1))]
    check("exported", [(str(v.dtype), v.shape, int(v)) for v in values], [("uint64", (), PLAIN)] * 2)
    same = glassbox("diff", directory, directory)
    check(f"diff with itself: {same.stdout}", same.returncode, 0)


def test_scalars():
    scene = scene_of("scalars")
    for platform in PLATFORMS:
        for runtime in RUNTIMES:
            directory, errors = recorded(scene, f"{platform}_{runtime}", "--dump-tensor", "--dump-args", "-p", platform,
                                         "--runtime", runtime)
            check(f"{platform} {runtime}: nothing to warn of", errors, "")
            unknown = check_scalars(directory, runtime)
            check_views(directory, unknown)
            check_uses(directory)
    filtered, _ = recorded(scene, "filtered", "--dump-tensor", "--dump-filter", "dtype=unknown", "--runtime", RUNTIMES[1])
    check("--dump-filter dtype=unknown", [(t["task_seq"], t["arg_name"]) for t in files_of(filtered)["tensor_dump.json"]["tensors"]],
          [(0, "plain"), (1, "plain")])


# --- words ---


def check_words(directory):
    """--dump-args alone: nothing is known of any word."""
    files = files_of(directory)
    check("only the files of --dump-args", files["tensor_dump.json"], None)
    dispatches = files["kernel_args_dump.json"]["dispatches"]
    for dispatch in dispatches:
        for slot in dispatch["args"]:
            check("a word", (slot["kind"], slot["role"], slot["dtype"], "value" in slot), ("word", None, "unknown", False))
    check("bits of scalars", [int(slot["bits"], 16) for slot in dispatches[0]["args"][2:]], [PLAIN, SCALE, COUNT])
    for name in ("args_dump.json", "kernel_args_dump.json"):
        check(f"{name}: skipped", [(s["task_seq"], s["arg_index"], s["kernel"], s["reason_code"]) for s in files[name]["skipped"]],
              [(0, None, "words", "undescribed"), (1, None, "apply", "undescribed")])
        check(f"{name}: ending", (files[name]["complete"], files[name]["status"], files[name]["losses"]), (True, "ok", []))
    lines = table(directory)
    check_in("head line", "2 dispatches of 2 tasks; 0 lost; 2 skipped", lines[0])
    check_in("words", f"2 plain word = {PLAIN:#x}; 3 scale word = {SCALE:#x}; 4 count word = {COUNT:#x}", lines[2])
    detail = table(directory, "--index", "0")
    check_in("readings of a word", f"= {PLAIN:#x}, {READINGS}", next(line for line in detail if line.startswith("2 plain")))
    check("--kind word", [d["dispatch_id"] for d in document(directory, "--kind", "word")["dispatches"]], [0, 1])
    check("a word has no role", document(directory, "--role", "in", code=1)["dispatches"], [])
    check("--json is the file", document(directory), files["kernel_args_dump.json"])
    check("--limit", document(directory, "--limit", "1"), {**files["kernel_args_dump.json"], "dispatches": dispatches[:1]})
    check("--kernel", [d["kernel"] for d in document(directory, "--kernel", "app*")["dispatches"]], ["apply"])
    check_in("entries are asked for", "has no entries, only dispatches", table(directory, "--stats", code=1))
    is_good(directory)
    result = glassbox("replay", directory, "--task", "0")
    check("replay of an undescribed task", result.returncode, 2)
    check_in("replay of an undescribed task", "undescribed", result.stderr)


def check_one_undescribed(directory, errors):
    """The signature calls argument 0 a tensor."""
    files = files_of(directory)
    words = seen_words(directory, files["tensor_dump.json"])
    slots = files["kernel_args_dump.json"]["dispatches"][0]["args"]
    check("words", [int(slot["bits"], 16) for slot in slots], words)
    check("kinds", [slot["kind"] for slot in slots], ["word", "tensor", "scalar", "scalar", "scalar"])
    check("recorded", [(t["arg_name"], t["dtype"]) for t in files["tensor_dump.json"]["tensors"] if t["task_seq"] == 0],
          [("plain", "unknown"), ("scale", "float32"), ("count", "unknown"), ("seen", "uint64")])
    for name, file in files.items():
        check(f"{name}: skipped", [(s["task_seq"], s["arg_index"], s["kernel"], s["reason_code"]) for s in file["skipped"]],
              [(0, 0, "words", "undescribed_tensor")])
    check_in("a warning", "skipped", errors)
    is_good(directory)
    result = glassbox("replay", directory, "--task", "0")
    check("replay", result.returncode, 2)
    check_in("replay names the argument", "argument 0 (x) was not described", result.stderr)
    result = glassbox("replay", directory, "--task", "1")
    check(f"replay of the other task: {result.stderr}", result.returncode, 0)


def test_words():
    for platform in PLATFORMS:
        options = ("-p", platform, "--runtime", "host_build_graph", "--dump-args")
        directory, _ = recorded(scene_of("never", never=1), f"never_{platform}", *options)
        check_words(directory)
        scene = scene_of("lacks_x", described=2)
        check_one_undescribed(*recorded(scene, f"lacks_{platform}", *options, "--dump-tensor"))
        only, errors = recorded(scene, f"lacks_args_{platform}", *options)
        check("--dump-args alone lists it, too", [(s["task_seq"], s["arg_index"]) for s in
                                                  files_of(only)["kernel_args_dump.json"]["skipped"]], [(0, 0)])
        check_in("and warns", '"skipped" in kernel_args_dump.json lists all', errors)


# --- how a run ended ---


def test_crash():
    scene = scene_of("crash", files={"words.c": FILL % "*(volatile int *)8 = 1;"})
    for platform in PLATFORMS:
        for runtime in RUNTIMES:
            directory, _ = recorded(scene, f"crash_{platform}_{runtime}", "--dump-args", "-p", platform, "--runtime", runtime, code=3)
            error = json.loads((directory / "run.json").read_text())["result"]["error"]
            check_in("the run failed", "kernel words", error)
            for name, file in files_of(directory).items():
                if file:
                    check(f"{name} of a crashed run", file["status"], error)
            check_in("view", error, table(directory)[0])
            is_good(directory)


def test_changed_ending():
    """verify compares the new members."""
    directory, _ = recorded(scene_of("changed"), "changed", "--dump-args", "--runtime", RUNTIMES[2])
    for name in ("args_dump.json", "kernel_args_dump.json"):
        path = directory / "tensor_dump" / name
        text = path.read_text()
        for old, new, what in (('"status": "ok"', '"status": "fine"', "status"), ('"complete": true', '"complete": false', "complete"),
                               ('"skipped": [\n]', '"skipped": [\n{"task_seq":0}\n]', "entries of skipped"),
                               ('"losses": [\n]', '"losses": [\n{"count":1}\n]', "entries of losses")):
            path.write_text(text.replace(old, new))
            result = glassbox("verify", directory)
            check(f"{name} with {new!r}: exit code", result.returncode, 1)
            check_in(f"{name} with {new!r}", f"{name}: {what}", result.stdout)
        older = re.sub(r'"complete": true,\n"status": "ok",\n"losses": \[\n\],\n"skipped": \[\n\],\n', "", text)
        check("all four are there", older != text, True)
        path.write_text(older)
        is_good(directory)  # as 0.1.0 wrote it
        path.write_text(text)


# --- dumps of older versions ---


def made_dump(name, dtype, bits):
    dump = Dump(root / name, [{"func_id": 0, "name": "k", "core_type": "aiv", "signature": ["scalar"]}])
    dump.task(0, (None, 0, None))
    dump.scalar(0, 0, dtype, bits, str(bits) if dtype == "uint64" else None)
    dump.end()
    return dump.write().directory


def test_diff():
    old, new, other = made_dump("old", "uint64", 5), made_dump("new", "unknown", 5), made_dump("other", "unknown", 6)
    for a, b, code in ((old, new, 0), (new, old, 0), (new, new, 0), (old, other, 1), (other, new, 1)):
        result = glassbox("diff", a, b)
        check(f"diff {a.name} {b.name}: {result.stdout}{result.stderr}", result.returncode, code)
    check_in("bits are shown", "0x6 in A, 0x5 in B", glassbox("diff", other, new).stdout)
    check("an old dump shows uint64", [t["dtype"] for t in document(old)["tensors"]], ["uint64"])


if __name__ == "__main__":
    sys.exit(run_tests(test_scalars, test_words, test_crash, test_changed_ending, test_diff))
