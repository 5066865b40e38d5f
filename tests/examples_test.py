"""Runs every example over platforms, runtimes, AICPU threads and blocks: outputs agree with golden and
are the same bytes everywhere.

usage: examples_test.py GLASSBOX EXAMPLES

A sample of the combinations, or with GLASSBOX_STRESS all of them and the large cases too.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

GLASSBOX, EXAMPLES = sys.argv[1:3]
PLATFORMS = ["a2a3sim", "a5sim"]
RUNTIMES = ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"]
THREADS = [1, 2, 4]
BLOCKS = [1, 8, 24]
STRESS = bool(os.environ.get("GLASSBOX_STRESS"))
SANITIZED = bool(os.environ.get("GLASSBOX_SANITIZE"))

# Example -> (cases of every combination, cases of the stress run, tasks of the first case, exit code).
SCENES = {
    "dump_tensor_example": (["default"], ["ramp"], 2, 0),
    "vector_example": (["default"], ["constant", "large"], 5, 0),
    "bgemm": (["small", "ragged"], ["medium", "large"], 24, 0),
    "paged_attention": (["small"], ["medium", "large"], 256, 0),
    "mix_spmd": (["default", "uneven"], ["wide"], 5, 0),
    "broken_softmax": (["small"], ["medium"], 256, 1),
}


def combinations():
    everything = list(itertools.product(PLATFORMS, RUNTIMES, THREADS, BLOCKS))
    if STRESS:
        return everything
    # Every platform with every runtime, and every number of threads and blocks at least once.
    sample = []
    for number, (platform, runtime) in enumerate(itertools.product(PLATFORMS, RUNTIMES)):
        sample.append((platform, runtime, THREADS[number % 3], BLOCKS[(number + number // 3) % 3]))
    assert {c[2] for c in sample} == set(THREADS) and {c[3] for c in sample} == set(BLOCKS)
    return sample


def run(example, cases, platform, runtime, threads, blocks, extra=()):
    command = [GLASSBOX, "run", os.path.join(EXAMPLES, example), "--json", "-p", platform, "--runtime", runtime]
    command += ["--threads", str(threads), "--blocks", str(blocks), "--timeout", "120", *extra]
    for case in cases:
        command += ["--case", case]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return command, done


def check(example, cases, tasks, exit_code, seen, combination, extra=()):
    command, done = run(example, cases, *combination, extra)
    where = " ".join(command)
    assert done.returncode == exit_code, f"{where}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stderr == "", f"{where}: stderr is not empty\n{done.stderr}"
    for result in json.loads(done.stdout)["cases"]:
        assert result["status"] == ("ok" if exit_code == 0 else "differs"), f"{where}: {result}"
        outputs = {output["name"]: output["hash"] for output in result["outputs"]}
        assert outputs, f"{where}: no outputs"
        key = example, result["name"]
        first = seen.setdefault(key, (outputs, result["tasks"], where))
        assert outputs == first[0], f"outputs differ in their bits:\n{where}\n{first[2]}"
        assert result["tasks"] == first[1], f"{where}: {result['tasks']} tasks, expected {first[1]}"
        if result["name"] == cases[0]:
            assert result["tasks"] == tasks, f"{where}: {result['tasks']} tasks, expected {tasks}"


def check_recorded(example, cases, exit_code, seen, combination):
    """With a full dump, guards and the arguments of every dispatch: no finding, nothing lost, the same bits."""
    for number in range(20 if STRESS else 1):
        with tempfile.TemporaryDirectory() as root:
            extra = ["--dump-tensor", "--dump-args", "-o", os.path.join(root, "dump")]
            command, done = run(example, cases[:1], *combination, extra)
            where = " ".join(command) + f" (run {number + 1})"
            assert done.returncode == exit_code and done.stderr == "", f"{where}: {done.returncode}\n{done.stderr}"
            result = json.loads(done.stdout)["cases"][0]
            assert result["finding_count"] == 0 and result["signature_warnings"] == 0, f"{where}: {result}"
            totals = result["dump_totals"]
            assert totals["records"] > 0 and totals["dropped"] == totals["skipped"] == 0, f"{where}: {totals}"
            outputs = {output["name"]: output["hash"] for output in result["outputs"]}
            assert outputs == seen[example, cases[0]][0], f"{where}: a dump changes the bits"
            # The results in the dump are those bits, too.
            with open(os.path.join(result["dump"], "tensor_dump", "tensor_dump.json")) as file:
                manifest = json.load(file)
            kept = {entry["name"]: entry["hash"] for entry in manifest["results"]}
            assert kept == outputs, f"{where}: results {kept}, outputs {outputs}"
            for question in ("verify", "audit"):
                answer = subprocess.run([GLASSBOX, question, result["dump"]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
                assert answer.returncode == 0, f"{where}: {question}\n{answer.stdout}"


def main():
    seen = {}
    count = 0
    for example, (cases, more_cases, tasks, exit_code) in SCENES.items():
        assert os.path.isdir(os.path.join(EXAMPLES, example)), example
        every_case = cases + (more_cases if STRESS else [])
        for combination in combinations():
            check(example, every_case, tasks, exit_code, seen, combination)
            count += 1
        for number, (platform, runtime) in enumerate(itertools.product(PLATFORMS, RUNTIMES)):
            check_recorded(example, cases, exit_code, seen, (platform, runtime, 1 + number % 2, 8))
            count += 1
        # Ways to run that must not change a bit either.
        others = [("aicpu_build_graph", ["--build", "sequential"]), ("tensormap_and_ringbuffer", ["--window", "600"])]
        if not SANITIZED:
            others.append(("tensormap_and_ringbuffer", ["--device", "thread"]))
        for runtime, extra in others:
            check(example, cases, tasks, exit_code, seen, ("a2a3sim", runtime, 2, 8), extra)
            count += 1
        check(example, cases, tasks, exit_code, seen, ("a2a3sim", "host_build_graph", 2, 8), ["--rounds", "3"])
    # Different examples have different bits: the comparison above can fail.
    hashes = [value for outputs, _, _ in seen.values() for value in outputs.values()]
    assert len(set(hashes)) > len(SCENES), hashes
    good = seen["paged_attention", "small"][0]
    assert good != seen["broken_softmax", "small"][0], "the broken kernel gives the right bits"
    print(f"{count} runs of {len(SCENES)} examples: the same bits on every platform and runtime")


if __name__ == "__main__":
    main()
