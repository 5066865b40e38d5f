#!/usr/bin/python3
"""glassbox diff of complete and partial runs of the examples, and of dumps of another tool, compared with json and numpy.

usage: diff_runs_test.py GLASSBOX EXAMPLES

Expected results come only from the manifests and the payload (diff_support.py).
"""
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np

import terminals
from command_support import check, glassbox, on_terminal, report
from diff_support import Source, check_diff, diff, first_lines
from dump_encoder import number
from view_support import text_width

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures" / "simpler"


# --- runs of examples ---


def run(root, examples, example, platform, runtime, name=None, *options):
    directory = root / (name or f"{example}_{platform}_{runtime}")
    result = glassbox("run", pathlib.Path(examples) / example, "--dump-tensor", "--no-golden", "-p", platform, "--runtime",
                      runtime, "-o", directory, *options)
    check(f"run {example}", result.returncode, 0)
    return directory


def test_runtimes(root, examples):
    for example in ("paged_attention", "bgemm", "mix_spmd"):
        runs = [run(root, examples, example, platform, runtime) for platform, runtime in (
            ("a2a3sim", "tensormap_and_ringbuffer"), ("a5sim", "host_build_graph"), ("a2a3sim", "aicpu_build_graph"))]
        sources = [Source.of_files(directory) for directory in runs]
        for other in sources[1:]:
            got = check_diff(f"{example} {other.directory.name}", sources[0], other)
            check(f"{example}: all are equal", (got["equal"], got["records"]), (len(sources[0].entries), []))
        check(f"{example}: first line", first_lines(runs[0], runs[1]),
              [f"equal: {len(sources[0].entries):,} entries compared, all the same"])


def test_broken_softmax(root, examples):
    good = Source.of_files(root / "paged_attention_a2a3sim_tensormap_and_ringbuffer")
    bad = Source.of_files(run(root, examples, "broken_softmax", "a5sim", "aicpu_build_graph"))
    got = check_diff("broken_softmax", bad, good)
    check("broken_softmax: first", [got["first"][key] for key in ("task_seq", "kernel", "arg_name", "stage", "cause")],
          [29, "softmax_prepare", "weights", "after_completion", "introduced"])
    introduced = {r["kernel"] for r in got["records"] if r["cause"] == "introduced"}
    check("broken_softmax: introduced by one kernel", introduced, {"softmax_prepare"})
    check("broken_softmax: tasks", (got["tasks_different"], got["tasks_introduced"], got["tasks_unknown"]),
          (len({r["task_seq"] for r in got["records"]}),
           len({r["task_seq"] for r in got["records"] if r["cause"] == "introduced"}), 0))
    check("broken_softmax: first line", first_lines(bad.directory, good.directory), [
        "first difference: task 29, kernel softmax_prepare, arg 1 weights, after_completion: introduced here (its inputs are "
        "equal)"])
    check("broken_softmax: the other way round", first_lines(good.directory, bad.directory)[0].split(":")[1:],
          first_lines(bad.directory, good.directory)[0].split(":")[1:])
    check_diff("broken_softmax, given tolerances", bad, good, "--rtol", "0.25", "--atol", "0.125",
               options={"rtol": 0.25, "atol": 0.125})
    check_diff("broken_softmax, steps", bad, good, "--ulp", "4000000", options={"ulp": 4000000})
    test_filters(bad, good)
    test_table(bad, good)


def test_filters(bad, good):
    outputs = check_diff("only outputs", bad, good, "--stage", "after", "--kernel", "pv*",
                         is_selected=lambda e: e["stage"] == "after_completion" and e["kernel"] == ["pv_matmul"])
    check("only outputs: inherited from hidden inputs", {r["cause"] for r in outputs["records"]}, {"inherited"})
    check("only outputs: why", outputs["first"]["why"], "inherited (its input arg 0 weights differs)")
    inputs = check_diff("only inputs", bad, good, "--stage", "before", is_selected=lambda e: e["stage"] == "before_dispatch")
    check("only inputs: why", inputs["first"]["why"],
          "inherited from task 29, kernel softmax_prepare, arg 1 weights, which the filters exclude")
    result = glassbox("diff", bad.directory, good.directory, "--kernel", "nothing")
    check("a filter that leaves nothing", (result.returncode, result.stdout, result.stderr), (
        1, "", f"glassbox diff: none of the 1,436 entries of {bad.directory} and the 1,436 of {good.directory} matches the "
        'filters: no kernel matches "nothing"; there are online_update, softmax_prepare, qk_matmul, pv_matmul\n'))
    empty = diff(bad.directory, good.directory, "--kernel", "nothing", code=1, stderr=None)
    check("nothing in JSON", (empty["compared"], empty["records"], empty["first"]), (0, [], None))


def test_table(bad, good):
    """Twenty lines with the numbers of the JSON; they fit a terminal, and columns without room are named."""
    lines = glassbox("diff", bad.directory, good.directory).stdout.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("TASK "))
    records = diff(bad.directory, good.directory)["records"]
    for line, got in zip(lines[start + 1:start + 21], records):
        cause = "input" if got["stage"] == "before_dispatch" else got["cause"]
        shown = [f"{got['task_seq']} {got['kernel']} {got['stage'].split('_')[0]} {got['arg_index']} {got['arg_name']}", got["dtype"],
                 str(got["shape"]), f"{got['mismatches']}/{got['elements']}", f"{got['max_abs']:.5g} {got['max_rel']:.5g}",
                 str(got["max_ulp"]), f"{got['rmse']:.5g} {got['cosine']:.5g}", str(got["first_bad"]), cause]
        check("a line of the table", " ".join(line.split()), " ".join(shown))
    check("how many more", lines[start + 21], f"and {len(records) - 20} more; --json has all")
    for columns in (50, 80, 120) if terminals.are_there() else ():
        shown = on_terminal(columns, "diff", bad.directory, good.directory, NO_COLOR="1")[0].split("\n")
        start = next(i for i, line in enumerate(shown) if line.startswith("TASK "))
        check(f"{columns} columns", max(map(text_width, shown[start:start + 21])) <= columns, True)
        headings = shown[start].split()
        rest = " ".join(shown[start + 21:])
        named = [word for word in lines[2].split() if word not in headings]
        check(f"{columns} columns: what has no room", [word for word in named if word not in rest], [])


# --- levels ---


def test_levels(root, examples):
    full = Source.of_files(root / "paged_attention_a2a3sim_tensormap_and_ringbuffer")
    bad = Source.of_files(root / "broken_softmax_a5sim_aicpu_build_graph")
    stats = {}
    for example in ("paged_attention", "broken_softmax"):
        directory = run(root, examples, example, "a2a3sim", "host_build_graph", f"stats_{example}", "--dump-tensor=stats")
        stats[example] = Source.of_files(directory)
        for entry in stats[example].entries:
            entry["has_payload"] = False
    equal = check_diff("stats with full", stats["paged_attention"], full)
    check("stats with full: all by their hashes", (equal["different"], equal["bytes_read"]), (0, 0))
    check("stats: how they differ", first_lines(stats["broken_softmax"].directory, full.directory, count=2)[1:], [
        "  hashes differ, payload is missing in A: unknown by how much, or whether within tolerance"])
    for source_a, source_b in ((stats["broken_softmax"], full), (stats["broken_softmax"], stats["paged_attention"])):
        got = check_diff("stats", source_a, source_b)
        check("stats: first", [got["first"][key] for key in ("task_seq", "cause")], [29, "introduced"])
        check("stats: by hashes", {r["reason"] for r in got["records"] if r["kind"] == "tensor"}, {"hash"})
    for level in ("hybrid", "partial"):
        marked = Source.of_files(run(root, examples, "broken_softmax", "a2a3sim", "aicpu_build_graph", level,
                                     f"--dump-tensor={level}", "--dump-filter", "kernel=softmax_prepare"))
        got = check_diff(level, marked, full)
        check(f"{level}: first", [got["first"][key] for key in ("task_seq", "cause")], [29, "introduced"])
    check("partial: the rest is only in B", got["only_b"] > 0, True)
    lines = glassbox("diff", marked.directory, full.directory).stdout.split("\n")
    check("partial: what differs comes first", [line.split()[0] for line in lines[3:6]], ["29", "29", "29"])
    check("partial: the rest is counted", f"and {got['only_b']:,} in only one dump; --json has all" in lines, True)
    outputs_only = Source.of_files(run(root, examples, "broken_softmax", "a2a3sim", "aicpu_build_graph", "outputs",
                                "--dump-filter", "kernel=softmax_prepare,stage=after"))
    other = Source.of_files(run(root, examples, "paged_attention", "a5sim", "host_build_graph", "outputs_good",
                                "--dump-filter", "kernel=softmax_prepare,stage=after"))
    outputs_only.is_whole = other.is_whole = False
    got = check_diff("outputs without inputs", outputs_only, other)
    check("outputs without inputs: first", [got["first"][key] for key in ("task_seq", "cause")], [29, None])
    check_foreign(root, bad, full)


# --- dumps of other tools ---


def check_foreign(root, bad, full):
    for name in ("vector_example", "partial_level3"):
        fixture, exported = FIXTURES / name, root / f"exported_{name}"
        check(f"export {name}", glassbox("export", fixture, "--format", "simpler", "-o", exported).returncode, 0)
        entries = json.loads(next(fixture.glob("*.json")).read_text())["args"]
        bare = sum(e.get("kind") == "tensor" and e["bin_size"] == 0 for e in entries)
        for other in (fixture, exported):
            got = diff(fixture, other, code=0)
            check(f"{name} and {other.name}", (got["compared"], got["equal"], got["not_compared"], got["tasks_matched_by"]),
                  (len(entries) - bare, len(entries) - bare, bare, "task_id"))
    # One byte of one tensor of the foreign payload.
    changed = root / "changed"
    shutil.copytree(FIXTURES / "vector_example", changed)
    entry = next(e for e in json.loads(next(changed.glob("*.json")).read_text())["args"] if e["role"] == "output")
    payload = next(changed.glob("*.bin"))
    data = bytearray(payload.read_bytes())
    before = np.frombuffer(data, np.float32, 16384, entry["bin_offset"])[5]
    data[entry["bin_offset"] + 5 * 4 + 3] ^= 1
    after = np.frombuffer(data, np.float32, 16384, entry["bin_offset"])[5]
    payload.write_bytes(data)
    got = diff(FIXTURES / "vector_example", changed, code=1)
    r = got["records"][0]
    check("a byte of a foreign dump", (r["first_bad"], r["mismatches"], r["first_bad_a"], r["first_bad_b"], r["max_abs"]),
          ([5], 1, number(before, "float32"), number(after, "float32"), abs(float(before) - float(after))))
    check("a byte of a foreign dump: first", (got["first"]["task_id"], got["first"]["cause"]), (entry["task_id"], "introduced"))
    # Ours against an export of ours: names and numbers are those of the dump that has them.
    exported = root / "exported_good"
    check("export", glassbox("export", full.directory, "--format", "simpler", "-o", exported).returncode, 0)
    check("ours and its export", diff(full.directory, exported, code=0)["equal"], len(full.entries))
    check("an export and ours: first line", first_lines(exported, bad.directory)[0].split(":")[1],
          " task 29, kernel softmax_prepare, arg 1 weights, after_completion")
    for filters in (("--kernel", "softmax*"), ("--arg", "weights")):  # only one of the two has names
        named, bare = diff(full.directory, bad.directory, *filters, code=1), diff(exported, bad.directory, *filters, code=1)
        check(f"{filters}: counts", [bare[key] for key in ("compared", "equal", "different", "only_a", "only_b")],
              [named[key] for key in ("compared", "equal", "different", "only_a", "only_b")])
        check(f"{filters}: records", *[[(r["task_id"], r["arg_name"], r["mismatches"], r["max_abs"]) for r in got["records"]]
                                       for got in (bare, named)])
    check_other_ids(root)
    check_overwritten(root)


def check_other_ids(root):
    directory = root / "other_ids"
    shutil.copytree(FIXTURES / "vector_example", directory)
    manifest = next(directory.glob("*.json"))
    document = json.loads(manifest.read_text())
    for entry in document["args"]:
        entry["task_id"] = hex(int(entry["task_id"], 16) + (1 << 40))
    manifest.write_text(json.dumps(document))
    got = diff(FIXTURES / "vector_example", directory, code=0)
    check("other ids", (got["equal"], got["tasks_matched_by"]), (len(document["args"]), "order"))
    check("other ids: said", "tasks are matched in the order in which they appear" in
          glassbox("diff", FIXTURES / "vector_example", directory).stdout, True)


def check_overwritten(root):
    directory = root / "overwritten"
    shutil.copytree(FIXTURES / "vector_example", directory)
    manifest = next(directory.glob("*.json"))
    document = json.loads(manifest.read_text())
    document["args"][2]["overwritten"] = True
    manifest.write_text(json.dumps(document))
    got = diff(FIXTURES / "vector_example", directory, code=0)
    check("overwritten", (got["compared"], got["not_compared_reasons"]["overwritten"]), (17, 1))


def main():
    np.seterr(all="ignore")  # infinities and NaN are meant
    with tempfile.TemporaryDirectory() as folder:
        root, examples = pathlib.Path(folder), sys.argv[2]
        test_runtimes(root, examples)
        test_broken_softmax(root, examples)
        test_levels(root, examples)
    return report()


if __name__ == "__main__":
    sys.exit(main())
