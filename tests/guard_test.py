#!/usr/bin/python3
"""Red zones and poison: bugs planted in kernels of an example, and what `glassbox run` says of them."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

from command_support import PLATFORMS, RUNTIMES, check, check_in, glassbox, report

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
BYTES = 128 * 128 * 4  # of every tensor of the scene
TASKS = 5  # 0 add (s = a + b), 1 and 2 add_scalar (u, v), 3 mul (p = u * v), 4 add (f = p + s)

# In mul, which is task 3; its output p is a temporary.
BEHIND = "product[count] = 1.5f;"
ROW = "for (int i = 0; i < 128; ++i) product[count + i] = 0.0f;"
SAME = "for (int i = 0; i < 16; ++i) product[count + i] = product[count - 16 + i];"
BYTE = "((unsigned char *)product)[count * 4] = 0;"
POISON = "for (int i = 0; i < 8; ++i) ((unsigned short *)(product + count))[i] = 0x7fff;"
BEFORE = "product[-1] = 0.0f;"
ZONE = "for (int i = 0; i < 140; ++i) product[count + i] = 0.0f;"
FAR = "product[count + 40] = 3.0f;"
INPUT = "((float *)(uintptr_t)x)[count] = 3.0f;"
CRASH = BEHIND + " __builtin_trap();"
LONG = 512 + BYTES + 100
PLANTS = {  # what: code, kind, first byte, bytes, argument
    "an element past the end": (BEHIND, "overrun", BYTES, 4, 2),
    "a row past the end": (ROW, "overrun", BYTES, 512, 2),
    "a row of its own data past the end": (SAME, "overrun", BYTES, 64, 2),
    "a byte past the end": (BYTE, "overrun", BYTES, 1, 2),
    "poison past the end": (POISON, "overrun", BYTES, 16, 2),
    "a zone and more": (ZONE, "overrun", BYTES, 512, 2),
    "an element before the start": (BEFORE, "underrun", -4, 4, 2),
    "an element far behind": (FAR, "stray", BYTES + 160, 4, 2),
    "an element past the end of an input": (INPUT, "overrun", BYTES, 4, 0),
}


def planted(directory, kernel, code):
    """The example, with code at the end of a kernel."""
    scene = pathlib.Path(directory) / "scene"
    if scene.exists():
        shutil.rmtree(scene)
    shutil.copytree(EXAMPLES / "vector_example", scene)
    source = scene / "kernels" / f"{kernel}.c"
    text = source.read_text()
    end = text.rindex("}")
    source.write_text("#include <stdio.h>\n#include <stdlib.h>\n" + text[:end] + f"    {code}\n}}\n")
    return scene


def run(scene, *options):
    """The exit code, the one case of --json, and stderr."""
    done = glassbox("run", scene, "--json", *options)
    return done.returncode, json.loads(done.stdout)["cases"][0] if done.stdout else None, done.stderr


def plain(text):
    """Whether other tasks ran since a zone was whole depends on time."""
    return text.replace("probably wrote", "wrote")


def check_plant(directory, what, runtime, platform):
    code, kind, first, size, arg = PLANTS[what]
    name = f"{what}, {runtime} on {platform}"
    exit_code, case, errors = run(planted(directory, "mul", code), "--guard", "--runtime", runtime, "-p", platform)
    check(f"{name}: exit code ({errors})", exit_code, 1)
    check(f"{name}: outputs are right", case["status"], "ok")
    if not check(f"{name}: findings", [f["kind"] for f in case["findings"]], [kind]):
        return
    found = case["findings"][0]
    check(f"{name}: count", case["finding_count"], 1)
    check(f"{name}: first byte", found["first_byte"], first)
    check(f"{name}: bytes", found["span_bytes"], size)
    check(f"{name}: finder", found["finder_seq"], 3)
    check(f"{name}: of the buffer", found["buffer_bytes"], BYTES)
    check(f"{name}: task", found["candidate"]["task_seq"], 3)
    check(f"{name}: argument", found["candidate"]["arg_index"], arg)
    check_in(name, "mul", found["text"])
    if kind != "stray":
        check_in(name, f"argument {arg} ({'product' if arg == 2 else 'x'})", found["text"])
    if size == 512:
        check_in(name, "wrote at least 512 bytes", found["text"])
    place = {"host_build_graph": "allocation", "aicpu_build_graph": "device_malloc"}.get(runtime, "output")
    check(f"{name}: place", found["place"], place)


def check_run_arguments(directory, runtime, platform):
    """The output of the run, and the input that the kernel reads."""
    name = f"arguments of the run, {runtime} on {platform}"
    exit_code, case, _ = run(planted(directory, "add", "sum[count] = 7.0f;"), "--guard", "--runtime", runtime, "-p", platform)
    check(f"{name}: exit code", exit_code, 1)
    check(f"{name}: tasks", [f["candidate"]["task_seq"] for f in case["findings"]], [0, 4])
    last = case["findings"][-1]
    check(f"{name}: place", (last["place"], last["place_index"]), ("run_argument", 2))
    check_in(name, "task 4, kernel add, wrote 4 bytes past the end of its argument 2 (sum), the run's tensor f", plain(last["text"]))
    exit_code, case, _ = run(planted(directory, "add", "((float *)(uintptr_t)x)[-2] = 7.0f;"), "--guard", "--runtime", runtime, "-p", platform)
    check(f"{name}: input: exit code", exit_code, 1)
    first = case["findings"][0]
    check(f"{name}: input", (first["kind"], first["first_byte"]), ("stray" if first["kind"] == "stray" else "underrun", -8))
    check(f"{name}: input: task", first["candidate"]["task_seq"], 0)


def check_long(directory, runtime, platform):
    """A write that passes over the next buffer and its zone is one finding, of the task that did it: 0, whose output is the first temporary."""
    name = f"long, {runtime} on {platform}"
    scene = planted(directory, "add", f"static int calls; if (calls++ == 0) for (int i = 0; i < {LONG // 4}; ++i) sum[count + i] = 0.0f;")
    options = ("--build", "sequential") if runtime == "aicpu_build_graph" else ()
    exit_code, case, errors = run(scene, "--guard", "--runtime", runtime, "-p", platform, *options)
    check(f"{name}: exit code ({errors})", exit_code, 1)
    # On the heap ring the next buffer may be made only after the write.
    found = [(f["kind"], f["candidate"]["task_seq"], f["first_byte"], f["span_bytes"]) for f in case["findings"]]
    check(f"{name}: finding", found[0][:3], ("overrun", 0, BYTES))
    if runtime != "tensormap_and_ringbuffer":
        check(f"{name}: one", found, [("overrun", 0, BYTES, LONG)])
        check_in(name, f"wrote 612 of {LONG} bytes past the end of its argument 2 (sum)", plain(case["findings"][0]["text"]))


def check_modes(directory, platform):
    scene = planted(directory, "mul", BEHIND)
    dump = pathlib.Path(directory) / f"dump_{platform}"
    for options, exit_code, count in (((), 0, 0), (("--guard=off",), 0, 0), (("--guard=report",), 1, 1)):
        got, case, _ = run(scene, "-p", platform, *options)
        check(f"{platform} {options}", (got, case["finding_count"]), (exit_code, count))
    for i, (options, exit_code, count) in enumerate(((("--dump-tensor",), 1, 1), (("--dump-args",), 1, 1), (("--dump-tensor", "--guard=off"), 0, 0))):
        got, case, _ = run(scene, "-p", platform, *options, "-o", f"{dump}_{i}")
        check(f"{platform} {options}", (got, case["finding_count"], case["status"]), (exit_code, count, "ok"))
        check(f"{platform} {options}: verify", glassbox("verify", f"{dump}_{i}").returncode, 0)
    manifest = json.loads(pathlib.Path(f"{dump}_0/tensor_dump/tensor_dump.json").read_text())
    check(f"{platform}: manifest", (manifest["finding_count"], manifest["complete"], len(manifest["findings"])), (1, True, 1))
    found = manifest["findings"][0]
    check(f"{platform}: finding", (found["kind"], found["owner_seq"], found["owner_kernel"], found["first_byte"], found["changed_bytes"]),
          ("overrun", 3, "mul", BYTES, 4))
    check(f"{platform}: candidate", found["candidates"][0], {"task_seq": 3, "func_id": 2, "kernel": "mul", "arg_index": 2})
    view = glassbox("view", f"{dump}_0").stdout.split("\n")
    check_in(f"{platform}: view", "; 1 finding", view[0])
    check(f"{platform}: view", view[1], "finding: " + found["text"])
    check(f"{platform}: no findings", json.loads(pathlib.Path(f"{dump}_2/tensor_dump/tensor_dump.json").read_text())["findings"], [])


def check_stop(directory, runtime, platform):
    name = f"stop, {runtime} on {platform}"
    dump = pathlib.Path(directory) / f"stopped_{runtime}_{platform}"
    exit_code, case, errors = run(planted(directory, "mul", BEHIND), "--guard=stop", "--dump-tensor", "-o", dump, "--runtime", runtime, "-p", platform)
    check(f"{name}: exit code", (exit_code, case["status"], case["finding_count"]), (3, "failed", 1))
    check_in(name, "task 3, kernel mul, wrote 4 bytes past the end of its argument 2 (product)", plain(errors))
    check_in(name, "the run was stopped (--guard=stop)", errors)
    manifest = json.loads((dump / "tensor_dump/tensor_dump.json").read_text())
    check(f"{name}: no successor ran", sorted({e["task_seq"] for e in manifest["tensors"]}), [0, 1, 2, 3])
    check(f"{name}: records of the task", sum(e["task_seq"] == 3 for e in manifest["tensors"]), 3)
    check(f"{name}: findings", [f["kind"] for f in manifest["findings"]], ["overrun"])
    check(f"{name}: verify", glassbox("verify", dump).returncode, 0)


def check_crash(directory, platform):
    """A kernel that writes past its output and then crashes: both are named."""
    exit_code, case, errors = run(planted(directory, "mul", CRASH), "--guard", "-p", platform)
    check(f"crash on {platform}", (exit_code, case["status"]), (3, "failed"))
    check_in(f"crash on {platform}", "SIG", errors)
    check(f"crash on {platform}: finding", [(f["kind"], f["candidate"]["task_seq"]) for f in case["findings"]], [("overrun", 3)])


def check_candidates(directory, runtime, platform):
    """mul writes behind `a`, which is none of its arguments, and nobody reads after task 0: found at the end."""
    name = f"candidates, {runtime} on {platform}"
    scene = planted(directory, "mul", 'const char *a = getenv("GUARD_TEST_A"); ((char *)(uintptr_t)strtoull(a, NULL, 16))[100] = 1;')
    source = scene / "kernels/add.c"
    text = source.read_text()
    end = text.rindex("}")
    source.write_text("#include <stdio.h>\n#include <stdlib.h>\n" + text[:end]
                      + '    if (getenv("GUARD_TEST_A")) return;\n    char address[32];\n'
                      '    snprintf(address, sizeof address, "%llx", (unsigned long long)(uintptr_t)(x + count));\n'
                      '    setenv("GUARD_TEST_A", address, 1);\n}\n')
    exit_code, case, errors = run(scene, "--guard", "--runtime", runtime, "-p", platform)
    check(f"{name}: exit code {errors}", exit_code, 1)
    found = case["findings"][0]
    check(f"{name}: finding", (found["kind"], found["first_byte"], found["span_bytes"], found["certainty"]), ("stray", BYTES + 100, 1, "open"))
    check(f"{name}: candidates", found["candidate_count"] in (4, 5), True)
    check(f"{name}: at the end", found["finder_seq"], None)
    check_in(name, "kernel mul", found["text"])
    check(f"{name}: place", (found["place"], found["place_index"]), ("run_argument", 0))


def check_poison(directory, runtime, platform):
    """`+=` into a temporary that nobody has written: NaN, and the same bits in every run."""
    name = f"poison, {runtime} on {platform}"
    scene = planted(directory, "add", "")
    source = scene / "kernels/add.c"
    source.write_text(source.read_text().replace("sum[i] =", "sum[i] +="))
    hashes = set()
    for _ in range(2):
        done = glassbox("run", scene, "--json", "--guard", "--rounds", "3", "--runtime", runtime, "-p", platform)
        check(f"{name}: exit code", done.returncode, 1)
        for case in json.loads(done.stdout)["cases"]:
            check(f"{name}: status", (case["status"], case["finding_count"]), ("differs", 0))
            check(f"{name}: all are wrong", case["outputs"][0]["mismatches"], BYTES // 4)
            hashes.add(case["outputs"][0]["hash"])
    check(f"{name}: the same bits in every run", len(hashes), 1)
    text = glassbox("run", scene, "--guard", "--runtime", runtime, "-p", platform).stdout
    check_in(name, "got nan", text.lower())


def check_good(runtime, platform):
    """Good scenes: no finding, and the same results as without a guard."""
    for example in ("vector_example", "paged_attention"):
        hashes = []
        for mode in ("--guard=off", "--guard=report", "--guard=stop"):
            exit_code, case, errors = run(EXAMPLES / example, mode, "--runtime", runtime, "-p", platform)
            check(f"{example} {mode} {runtime} {platform} ({errors})", (exit_code, case["finding_count"], case["findings"]), (0, 0, []))
            hashes.append([o["hash"] for o in case["outputs"]])
        check(f"{example} {runtime} {platform}: same bits", hashes[1:], hashes[:1] * 2)


def check_without_room(directory, platform):
    """Buffers of the orchestration that no zone fits behind are counted; those before them have theirs."""
    name = f"without room on {platform}"
    scene = planted(directory, "mul", BEHIND)
    source = scene / "orchestration_aicpu_build_graph.c"
    # The orchestration counts them itself: behind a buffer without a zone, the next one is nearer than buffer and zone.
    source.write_text("#include <stdio.h>\n" + source.read_text().replace("    gbx_task sum =", """
    uint64_t before = gbx_device_malloc(o, 1);
    int near_count = 0;
    for (int i = 0; i < 60000; ++i) {
        uint64_t next = gbx_device_malloc(o, 1);
        near_count += next - before < 1024;
        before = next;
    }
    fprintf(stderr, "near: %d\\n", near_count);
    gbx_task sum ="""))
    exit_code, case, errors = run(scene, "--guard", "--runtime", "aicpu_build_graph", "-p", platform, "--gm", "64M")
    check(f"{name}: exit code ({errors})", exit_code, 1)
    check(f"{name}: finding", [(f["kind"], f["candidate"]["task_seq"]) for f in case["findings"]], [("overrun", 3)])
    count = re.search(r"(\d+) buffers have no zones, because there was no room for them", errors)
    near = re.search(r"near: (\d+)", errors)
    check(f"{name}: some are", 0 < int(near[1]) < 60000, True)
    check(f"{name}: all of them, and the last one", int(count[1]), int(near[1]) + 1)


def check_usage():
    done = glassbox("run", EXAMPLES / "vector_example", "--guard=maybe")
    check("--guard=maybe", done.returncode, 2)
    check_in("--guard=maybe", "off, report or stop" if "off, report or stop" in done.stderr else "report", done.stderr)
    done = glassbox("run", "--guard", "stop", EXAMPLES / "vector_example")
    check("--guard stop", done.returncode, 2)
    check_in("--guard stop", "write --guard=stop", done.stderr)


def main():
    with tempfile.TemporaryDirectory(prefix="guard_test_") as directory:
        for i, runtime in enumerate(RUNTIMES):
            for k, platform in enumerate(PLATFORMS):
                for n, what in enumerate(PLANTS):
                    if n < 2 or (n + i + k) % 2 == 0:
                        check_plant(directory, what, runtime, platform)
                check_run_arguments(directory, runtime, platform)
                check_long(directory, runtime, platform)
                check_stop(directory, runtime, platform)
                check_candidates(directory, runtime, platform)
                check_poison(directory, runtime, platform)
                check_good(runtime, platform)
        for platform in PLATFORMS:
            check_modes(directory, platform)
            check_crash(directory, platform)
            check_without_room(directory, platform)
        check_usage()
    return report()


if __name__ == "__main__":
    sys.exit(main())
