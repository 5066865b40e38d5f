#!/usr/bin/python3
"""glassbox view: its JSON, table, head line and values, each compared with a separate computation in Python.

usage: view_test.py GLASSBOX EXAMPLES

Dumps are those of the examples, and one made byte by byte (dump_encoder.py) that holds every dtype and every
oddity. Expected results come from the manifest or the encoder, and from the payload with numpy.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unicodedata

import numpy as np

import terminals
from command_support import ENVIRONMENT, check, counts, glassbox
from dump_encoder import DTYPES, IN_FLIGHT, PACKED, Dump, number
from view_support import (COLOUR, HEADINGS, array_text, bytes_text, cut_text, decode, decode_packed, element_bytes, head_line,
                          kernel_text, matches, name_text, note_text, pad, readings, row_cells, scalar_array, short_number, shown_text,
                          sort_entries, statistics, statistics_line, statistics_member, stored_values, table_lines,
                          table_widths, text_width, view, view_on_terminal)

RUNS = [("dump_tensor_example", "a2a3sim", "tensormap_and_ringbuffer"),
        ("dump_tensor_example", "a5sim", "host_build_graph"),
        ("vector_example", "a5sim", "tensormap_and_ringbuffer"), ("vector_example", "a2a3sim", "host_build_graph"),
        ("bgemm", "a2a3sim", "aicpu_build_graph"), ("bgemm", "a5sim", "tensormap_and_ringbuffer"),
        ("mix_spmd", "a2a3sim", "tensormap_and_ringbuffer"), ("mix_spmd", "a5sim", "host_build_graph"),
        ("paged_attention", "a5sim", "aicpu_build_graph"), ("paged_attention", "a2a3sim", "tensormap_and_ringbuffer"),
        ("broken_softmax", "a2a3sim", "tensormap_and_ringbuffer")]
SORT_KEYS = ("index", "task", "kernel", "arg", "dtype", "bytes", "elements", "time", "min", "max", "mean", "nan", "inf")


class Shown:
    """A dump, with what is known about it without glassbox view."""

    def __init__(self, directory, manifest, entries, payload, task_count):
        self.directory, self.manifest, self.entries = directory, manifest, entries
        self.payload, self.task_count = payload, task_count

    def values(self, entry):
        """The elements that statistics cover; None if there are none."""
        if entry["kind"] == "scalar":
            return None if entry["dtype"] == "unknown" else scalar_array(entry)
        return stored_values(entry, self.payload) if entry["has_payload"] else None


# --- dumps ---


def example_dump(root, examples, example, platform, runtime):
    directory = root / f"{example}_{platform}_{runtime}"
    run = glassbox("run", pathlib.Path(examples) / example, "--dump-tensor", "--no-golden", "-p", platform, "--runtime",
                   runtime, "-o", directory)
    check(f"run {example}", run.returncode, 0)
    manifest = json.loads((directory / "tensor_dump" / "tensor_dump.json").read_text())
    entries = [{**entry, "has_payload": entry["kind"] == "tensor"} for entry in manifest["tensors"]]
    task_count = len({entry["task_seq"] for entry in entries})
    return Shown(directory, manifest, entries, (directory / "tensor_dump" / "tensor_dump.bin").read_bytes(), task_count)


KERNELS = [
    {"func_id": 0, "name": "matmul", "core_type": "aic", "signature": ["in", "scalar:float32", "out"],
     "arg_names": ["left", "scale", "right"]},
    {"func_id": 3, "name": "softmax_prepare", "core_type": "aiv", "signature": ["in", "inout"], "arg_names": [None, "m"]},
    {"func_id": 4, "name": "softmax", "core_type": "aiv", "signature": ["in"]},
    {"func_id": 5, "name": "matmul", "core_type": "aiv", "signature": []},
    {"func_id": 9, "name": "Größe_日本\x1b[31m\x9b\x07", "core_type": "aiv", "signature": ["out"],
     "arg_names": ["weiß\n語"]},
]


def special_bytes(rng, name, count):
    """Elements of a dtype, among them the special ones, as bytes."""
    codes = rng.integers(0, 256, count * element_bytes(name), dtype=np.uint8)
    data = bytearray(codes.tobytes())
    if name in ("float16", "float32", "float64"):
        values = np.frombuffer(data, name).copy()
        normal = rng.standard_normal(count).astype(name)
        values = np.where(rng.random(count) < 0.8, normal, values)
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(name).smallest_subnormal], name)
        values[:len(special)] = special[:count]
        data = bytearray(values.astype(name).tobytes())
    return bytes(data)


def pack_int4(values):
    """Of a row-major array."""
    rows = values.reshape(-1, values.shape[-1]) & 15
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    return (rows[:, ::2] | rows[:, 1::2] << 4).astype(np.uint8).tobytes()


def add_dtypes(dump, rng):
    """One task for each dtype: two tensors and a scalar, whose word has bits beyond the dtype."""
    for task, name in enumerate(DTYPES[1:]):
        dump.task(task, (0, None, None), time=10 * task)
        if task % 3:
            dump.execution(task, 0, 0, task, 10 * task + 4, 10 * task + 9)
        if name in PACKED:
            data, small = pack_int4(rng.integers(-8, 8, (5, 7))), pack_int4(rng.integers(-8, 8, (1, 3)))
        else:
            data, small = special_bytes(rng, name, 35), special_bytes(rng, name, 3)
        dump.tensor(task, 0, name, (5, 7), data, time=1000 - task, thread=task % 4, address=0x7E9000000000 + task)
        dump.tensor(task, 1, name, (3,), small, role=1, stage=1, time=2000 - task)
        bits = int(rng.integers(0, 1 << 63)) * 2 + 1
        word = bits.to_bytes(8, "little")[:element_bytes(name)]
        value = decode_packed(name, word, ())[0] if name in PACKED else decode(name, word)[0]
        dump.scalar(task, 2, name, bits, number(value, name), time=500)


def add_shapes(dump, rng):
    """Tensors of one task: views, 0-d, empty, large, truncated, and without payload."""
    dump.task(20, (0, 3, 4), task_id=0xABCDEF, blocks=24)
    dump.execution(20, 1, 2, 71, 2600, 2900)
    dump.execution(20, 0, 1, 4, 2500, 2650)
    dump.execution(20, 0, 0, 3, 2700, 2800)
    dump.execution(20, 1, 1, 4, 2710, 2720)
    values = rng.standard_normal((4, 5, 90)).astype(np.float32)
    dump.tensor(20, 0, "float32", (4, 5, 90), values.tobytes(), strides=[-450, 90, 1], start=1350)
    dump.tensor(20, 1, "float32", (), np.float32(-0.0).tobytes(), role=2)
    dump.tensor(20, 2, "int16", (0, 4), b"", role=2)
    dump.tensor(20, 3, "bool", (2, 3, 0), b"", is_hashed=False)
    dump.tensor(20, 4, "float64", (70, 40), special_bytes(rng, "float64", 2800), keep=2003, role=1, stage=1)
    dump.tensor(20, 5, "int4", (9, 5), pack_int4(rng.integers(-8, 8, (9, 5))), keep=13, stage=1, role=1)
    dump.tensor(20, 6, "int4", (3, 1, 5), pack_int4(rng.integers(-8, 8, (3, 1, 5))))
    dump.tensor(20, 7, "float32", (3000,), bytes(12000))
    dump.tensor(20, 8, "float32", (3000,), bytes(12000), is_hashed=False)
    dump.tensor(20, 9, "float16", (1, 1, 1, 1, 1, 1, 2, 3), np.arange(6).astype(np.float16).tobytes())
    dump.tensor(20, 10, "float32", (4,), np.full(4, np.nan, np.float32).tobytes())
    dump.tensor(20, 11, "int32", (6,), np.full(6, 7, np.int32).tobytes(), keep=0)
    dump.tensor(20, 12, "bfloat16", (40, 40), special_bytes(rng, "bfloat16", 1600))
    dump.tensor(20, 13, "uint64", (3,), np.array([2**64 - 1, 0, 2**63], np.uint64).tobytes())
    dump.tensor(20, 14, "int64", (3,), np.array([-2**63, 2**63 - 1, 12345678901], np.int64).tobytes())


def recorded_statistics():
    words = struct.pack("<3d4Q", -1.5, float("inf"), 0.1, 3, 1, 2, 5)
    return words, {"min": -1.5, "max": "inf", "mean": 0.1, "nan": 3, "inf": 1, "zero": 2, "subnormal": 5}


def add_oddities(dump):
    """Unknown tasks, kernels without a name, odd names, and entries in flight, lost and skipped."""
    dump.task(30, (None, 9, None), task_id=2**64 - 1)
    dump.tensor(30, 0, "float32", (2,), np.array([1, 2], np.float32).tobytes(), role=1, stage=1)
    dump.task(31, (None, 77, 4))
    dump.tensor(31, 0, "float32", (2, 2), None, stats=recorded_statistics())
    dump.tensor(31, 1, "uint8", (2,), None)
    dump.task(32, (None, 3, None))
    dump.execution(32, 0, 1, 1, 3000, 3100)
    dump.execution(32, 1, 1, 2, 3050, None)
    dump.execution(33, 0, 1, 5, 3300, 3400)  # without a record of its task
    dump.tensor(32, 1, "float32", (2,), np.array([1, 2], np.float32).tobytes(), role=2, stage=1, flags=IN_FLIGHT)
    dump.scalar(32, 2, "unknown", 2**64 - 5, None, flags=IN_FLIGHT, stage=1)
    dump.scalar(32, 3, "unknown", 0xbdcccccd, None)
    dump.tensor(33, 63, "int8", (2,), b"\x80\x7f")  # its task has no record
    dump.scalar(33, 2, "uint64", 2**53 + 1, str(2**53 + 1))
    dump.task(34, (None, 5, None))  # another kernel of the same name
    dump.scalar(34, 0, "uint8", 200, 200)
    dump.task(35, (0, None, None))
    dump.scalar(35, 0, "uint8", 100, 100)
    dump.loss(5, 1, 1, 0, 12)
    dump.loss(33, 255, 255, 3, 1000)
    dump.skipped(31, 255, 0, 77)
    dump.skipped(30, 2, 1, 9)
    dump.skipped(31, 1, 0, 4)


def add_results(dump, rng):
    """Tensors of the run at its end, not in order: shared bytes, pieces, truncated, packed, without payload, one lost."""
    dump.result(5, "int4", (3, 5), pack_int4(rng.integers(-8, 8, (3, 5))), arg_name="pa\x1bcked", flags=IN_FLIGHT)
    dump.result(1, "float32", (2,), np.array([1, 2], np.float32).tobytes(), role=2, arg_name="y")
    dump.result(3, "float64", (70, 40), special_bytes(rng, "float64", 2800), keep=2003,
                pieces=[(0, 0x7E9000001000, 8000), (16000, 0x7E9000009000, 6400)])
    dump.result(4, "float32", (2, 2), None, pieces=[(0, 0x7E9000005000, 16)], stats=recorded_statistics(), arg_name="mean")
    dump.result(7, "uint8", (0, 4), b"", pieces=[])
    dump.lost_result(6, 1)


def hand_made_dump(root):
    rng = np.random.default_rng(20260901)
    dump = Dump(root / "hand", KERNELS, scene="Szene\x9b31m\x1b[31m")
    add_dtypes(dump, rng)
    add_shapes(dump, rng)
    add_oddities(dump)
    add_results(dump, rng)
    dump.end("a kernel crashed", is_complete=False)
    dump.write()
    return Shown(dump.directory, dump.manifest(), dump.shown(), bytes(dump.payload), len(dump.tasks))


def long_dump(root):
    """More rows than are printed at a time; the widest cells come late."""
    kernels = [{"func_id": i, "name": "k" * (3 if i < 3 else 60) + str(i), "core_type": "aiv", "signature": ["in"],
                "arg_names": ["n" * (2 if i < 3 else 90)]} for i in range(4)]
    dump = Dump(root / "long", kernels, scene="long", case=None, platform=None)
    for task in range(1200):
        is_wide = task == 1100
        dump.task(task, (None, 3 if is_wide else task % 3, 3 if is_wide else None))
        shape = (1, 1, 1, 1, 1, 1, 1, 2) if is_wide else (2,)
        dump.tensor(task, 0, "float32", shape, struct.pack("<2f", task, -task), time=task * 7919 % 1201)
    dump.end()
    dump.write(100)
    return Shown(dump.directory, dump.manifest(), dump.shown(), bytes(dump.payload), 1200)


# --- JSON ---


def document(dump, *arguments, code=0):
    return json.loads(view(dump.directory, "--json", *arguments, code=code))


def test_json(dump):
    check(f"{dump.directory.name}: --json is the manifest", document(dump), dump.manifest)


def test_json_text(dump):
    """For a manifest that a run wrote, --json is the same text, with the same order of members."""
    check(f"{dump.directory.name}: --json is the manifest's text", view(dump.directory, "--json"),
          (dump.directory / "tensor_dump" / "tensor_dump.json").read_text())


def options_of(filters):
    return [text for key, value in filters for text in (f"--{key}", value)]


def test_filter(dump, *filters):
    expected = [entry for entry in dump.manifest["tensors"] if matches(entry, filters)]
    name = f"{dump.directory.name} {options_of(filters)}"
    result = glassbox("view", dump.directory, "--json", *options_of(filters))
    got = json.loads(result.stdout)
    check(name, got, {**dump.manifest, "tensors": expected})
    check(f"{name}: exit code", (result.returncode, bool(result.stderr)), (0, False) if expected else (1, True))
    return len(expected)


def test_filters(dump):
    """Every key, several values of a key, several keys; every filter here matches some and not all."""
    some = [[("kernel", "softmax*")], [("kernel", "matmul")], [("kernel", "?atmul"), ("kernel", "softmax")], [("func", "4")],
            [("func", "1..3")], [("func", "0x9")], [("func", "3"), ("func", "77")],
            [("kernel", "softmax"), ("func", "3..4")],
            [("task", "3")], [("task", "0..4"), ("task", "20")], [("task", "0xabcdef")], [("task", "0x100..0x103")],
            [("task", "0xffffffffffffffff")], [("task", "0x101"), ("task", "7")], [("task", "30..99")],
            [("task", f"35..{2**64 - 1}")], [("task", "33"), ("task", "9..11"), ("task", "10..12")],
            [("arg", "2")], [("arg", "3..63")],
            [("arg", "right")], [("arg", "*ght"), ("arg", "0")], [("arg", "[lm]*")], [("role", "input")], [("role", "out")],
            [("role", "inout"), ("role", "output")], [("stage", "before")], [("stage", "after_completion")],
            [("kind", "scalar")], [("kind", "tensor")], [("dtype", "unknown")], [("dtype", "bfloat16")], [("dtype", "int4"), ("dtype", "bool")],
            [("kind", "scalar"), ("dtype", "float32")], [("kernel", "matmul"), ("stage", "after"), ("role", "out"),
                                                         ("kind", "tensor"), ("task", "2..5"), ("arg", "1")]]
    total = len(dump.entries)
    for filters in some:
        found = test_filter(dump, *filters)
        check(f"{filters} matches some entries, not all", 0 < found < total, True)
    for filters in ([("kernel", "soft")], [("task", "21..29")], [("kernel", "matmul"), ("func", "4")], [("arg", "Left")],
                    [("kind", "tensor"), ("role", "inout"), ("stage", "before"), ("dtype", "int8")]):
        check(f"{filters} matches nothing", test_filter(dump, *filters), 0)
        result = glassbox("view", dump.directory, *options_of(filters))
        check("nothing matches", (result.returncode, result.stdout, result.stderr.split(": no kernel")[0].rstrip("\n")), (
            1, "", f"glassbox view: none of the {total} entries of {dump.directory} matches the filters"))
        check("kernels that are there", ': no kernel matches "soft"; there are softmax_prepare, softmax, matmul, ' in result.stderr,
              filters == [("kernel", "soft")])
    check("all are selected", test_filter(dump, ("kind", "tensor"), ("kind", "scalar")), total)
    upper = [*options_of([("dtype", "FLOAT32"), ("dtype", "Int4")])]
    check("dtypes in any case", document(dump, *upper)["tensors"],
          [entry for entry in dump.manifest["tensors"] if entry["dtype"] in ("float32", "int4")])
    check("all tasks", test_filter(dump, ("task", f"0..{2**64 - 1}")), total)
    check("both stages", test_filter(dump, ("stage", "before_dispatch"), ("stage", "after")), total)


def test_sort(dump):
    """The columns of the list, and that ties stay in the order of the index whatever the direction."""
    known = {entry["index"]: dump.values(entry) for entry in dump.entries}
    for entry in dump.entries:
        if "stats" in entry:  # recorded statistics come from the record, not from the elements
            known[entry["index"]] = None
    entries = [entry for entry in dump.entries if "stats" not in entry]
    filters = ["--task", "0..30", "--task", "32..35"] if len(entries) < len(dump.entries) else []
    entries = [entry for entry in entries if not filters or entry["task_seq"] != 31]
    for key in SORT_KEYS:
        for is_descending in (False, True):
            expected = sort_entries(entries, key, is_descending, lambda entry: known[entry["index"]])
            order = f"--sort={'-' if is_descending else ''}{key}"
            got = document(dump, order, *filters)["tensors"]
            check(f"{dump.directory.name} {order}", [entry["index"] for entry in got], [entry["index"] for entry in expected])
    last = document(dump, "--sort", "-time", "--limit", "3")["tensors"]
    check("--sort and --limit", [entry["index"] for entry in last],
          [entry["index"] for entry in sort_entries(dump.entries, "time", True, lambda entry: None)[:3]])


def test_limit(dump):
    total = len(dump.entries)
    for limit in (1, 2, total - 1, total, total + 1, 2**64 - 2):
        check(f"--limit {limit}", document(dump, "--limit", limit)["tensors"], dump.manifest["tensors"][:limit])
    rest = view(dump.directory, "--limit", 3).splitlines()
    check("the list of --limit", rest[1:], [*table_lines(dump.entries[:3]), f"{total - 3:,} more not shown (--limit 3)"])


def test_statistics(dump):
    expected = []
    for entry, shown in zip(dump.manifest["tensors"], dump.entries):
        has_values = shown["kind"] == "tensor" and shown["has_payload"] and "stats" not in entry
        added = {"stats": statistics_member(entry["dtype"], dump.values(shown))} if has_values else {}
        expected.append({**entry, **added})
    got = document(dump, "--stats")
    check(f"{dump.directory.name}: --json --stats", repr_numbers(got), repr_numbers({**dump.manifest, "tensors": expected}))


def repr_numbers(value):
    """-0.0 and 0.0 are equal; their texts are not."""
    if isinstance(value, dict):
        return {key: repr_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [repr_numbers(item) for item in value]
    return repr(value) if isinstance(value, float) else value


# --- the list ---


def test_table(dump):
    lines = view(dump.directory).split("\n")
    check(f"{dump.directory.name}: head line", lines[0], shown_text(head_line(dump.manifest, dump.task_count)))
    check(f"{dump.directory.name}: table", [line.rstrip() for line in lines[1:-1]], table_lines(dump.entries))
    check("nothing reaches a terminal raw", [c for line in lines for c in line if unicodedata.category(c) == "Cc"], [])


def test_filtered_table(dump):
    chosen = [entry for entry in dump.entries if entry["role"] == "output"]
    lines = view(dump.directory, "--role", "output").split("\n")
    check("a filtered list", [line.rstrip() for line in lines[1:]],
          [*table_lines(chosen), f"{len(chosen)} of {len(dump.entries)} entries match", ""])


def statistics_cells(dump, entry):
    if "stats" in entry:
        stats = entry["stats"]
        return [f"{float(stats['min']):.6g}", f"{float(stats['max']):.6g}", f"{stats['mean']:.6g}", str(stats["nan"]),
                str(stats["inf"])]
    values = dump.values(entry)
    if values is None:
        return ["-"] * 5
    low, high, mean, nan, inf, _, _ = statistics(entry["dtype"], values)
    return [short_number(low), short_number(high), short_number(mean), str(nan), str(inf)]


def test_statistics_table(dump):
    """The columns of statistics stand between the others and the notes, aligned."""
    lines = [line for line in view(dump.directory, "--stats").split("\n")[1:-1]]
    widths = table_widths([row_cells(entry) for entry in dump.entries])
    front = sum(width + 1 for heading, width in widths.items() if heading != "NOTE")
    back = lines[0].index("NOTE") if "NOTE" in widths else None
    fronts = [line.ljust(front)[:front].rstrip() for line in table_lines([{**entry, "in_flight": False, "truncated": False,
              "has_note": False} for entry in dump.entries])]
    headings = ["MIN", "MAX", "MEAN", "NAN", "INF"]
    ends = [lines[0].index(f" {heading} ") + len(heading) + 1 if heading != "INF" or back
            else len(lines[0]) for heading in headings]
    for line, before, entry in zip(lines, fronts, [None, *dump.entries]):
        offset = len(line) - text_width(line)  # wide characters
        cells, at = [], front + offset
        for end in ends:
            cells.append(line[at:end + offset])
            at = end + offset
        expected = statistics_cells(dump, entry) if entry else headings
        check("statistics of a row", [cell.strip() for cell in cells], expected)
        check("columns end together", all(cell.endswith(text) for cell, text in zip(cells, expected)), True)
        check("the front of a row", line[:front + offset].rstrip(), before)
        if entry:
            check("the note", line[back + offset:].rstrip() if back else "", note_text(entry))


def test_plain_locale(dump):
    """Without UTF-8 the bytes of other characters are escaped, and bars are made of ASCII."""
    entry = next(e for e in dump.entries if e["shape"] == [4, 5, 90])
    lines = view(dump.directory, "--index", entry["index"], environment={**ENVIRONMENT, "LC_ALL": "C"}).split("\n")
    bars = next(line.split("|")[1] for line in lines if line.count("|") == 2)
    check("bars", (len(bars), set(bars) <= set(" .:-=+*#"), bars[0] != " " != bars[-1], "#" in bars), (48, True, True, True))
    out = view(dump.directory, environment={**ENVIRONMENT, "LC_ALL": "C"})
    check("ASCII but for the names", [line for line in out.splitlines() if not line.isascii()], [])
    check("the bytes are shown", "Gr\\xc3\\xb6\\xc3\\x9fe_\\xe6\\x97\\xa5\\xe6\\x9c\\xac\\x1b[31m" in out, True)


# --- terminals ---


def cut_lines(dump, heading_line, columns):
    """The table with the columns of a heading line, cut to the widths in it."""
    rows = [row_cells(entry) for entry in dump.entries]
    shown, whole = heading_line.split(), table_widths(rows)
    ends = {heading: heading_line.index(heading) + len(heading) for heading in shown}
    starts = [ends[heading] - (whole[heading] if HEADINGS[heading] == ">" else len(heading)) for heading in shown]
    widths = [after - 1 - start for start, after in zip(starts, [*starts[1:], columns + 1])]
    return [" ".join(pad(cut_text(row[heading], width), min(width, whole[heading]), HEADINGS[heading])
                     for heading, width in zip(shown, widths)).rstrip() for row in rows]


# What leaves a narrow terminal first; statistics come after --stats only.
LEAVING = "HASH BYTES DTYPE ROLE STAGE ARG KERNEL TASK NOTE SHAPE".split()
LEAVING_WITH_STATISTICS = "HASH BYTES DTYPE MEAN SHAPE INF ROLE STAGE ARG KERNEL TASK NOTE".split()


def check_leaving(name, heading_line, entries, options):
    order = LEAVING_WITH_STATISTICS if options else LEAVING
    there = [*table_widths([row_cells(e) for e in entries]), *(["MEAN", "INF"] if options else [])]
    order = [heading for heading in order if heading in there]
    hidden = [heading for heading in order if heading not in heading_line.split()]
    check(f"{name}: what matters least leaves", hidden, order[:len(hidden)])


def test_narrow_statistics(dump):
    """On the usual terminal, what tells entries apart stays beside the statistics."""
    text, _ = view_on_terminal(80, dump.directory, "--stats", "--kind", "tensor")
    check("80 columns", COLOUR.sub("", text).split("\n")[1].split(),
          ["INDEX", "TASK", "KERNEL", "STAGE", "ROLE", "ARG", "MIN", "MAX", "NAN", "INF"])


def test_terminal(dump, *options):
    for columns in (40, 60, 61, 79, 80, 100, 120, 160, 200):
        text, code = view_on_terminal(columns, dump.directory, *options)
        lines = COLOUR.sub("", text).split("\n")
        name = f"{dump.directory.name} {options} on {columns} columns"
        check(f"{name}: exit code", code, 0)
        wide = [line for line in lines[1:] if text_width(line) > columns]
        check(f"{name}: lines that are longer", wide[:3], [])
        rows, rest = lines[2:2 + len(dump.entries)], " ".join(lines[2 + len(dump.entries):])
        hidden = [heading for heading in table_widths([row_cells(e) for e in dump.entries]) if heading not in lines[1].split()]
        check(f"{name}: what is left out is named", "no room for: " + ", ".join(hidden) in rest if hidden else rest,
              bool(hidden) or "")
        check_leaving(name, lines[1], dump.entries, options)
        check(f"{name}: rows keep their index", [line.split()[0] for line in rows], [str(e["index"]) for e in dump.entries])
        if not options:
            check(f"{name}: cells", [line.rstrip() for line in rows], cut_lines(dump, lines[1], columns))


def test_wide_terminal(dump):
    """With enough room it is the same table as without a terminal."""
    text, _ = view_on_terminal(2000, dump.directory)
    check("a wide terminal", [line.rstrip() for line in COLOUR.sub("", text).split("\n")[1:]],
          [line.rstrip() for line in view(dump.directory).split("\n")[1:]])


def test_colour(coloured, plain):
    text, _ = view_on_terminal(300, coloured.directory)
    head = text.split("\n")[0]
    check("what is lost is red", "\x1b[31m1,013 lost\x1b[0m" in head, True)
    check("what was skipped is yellow", "\x1b[33m3 skipped\x1b[0m" in head, True)
    check("how it ended is red", head.endswith("; \x1b[31mnot complete: a kernel crashed\x1b[0m"), True)
    check("colours aside it is the head line", COLOUR.sub("", head),
          shown_text(head_line(coloured.manifest, coloured.task_count)))
    check("rows have none", "\x1b" in text.split("\n", 1)[1], False)
    check("none where nothing is lost", "\x1b" in view_on_terminal(300, plain.directory)[0], False)
    check("NO_COLOR", "\x1b" in view_on_terminal(300, coloured.directory, NO_COLOR="1")[0], False)
    check("an empty NO_COLOR is none", "\x1b[31m" in view_on_terminal(300, coloured.directory, NO_COLOR="")[0], True)
    check("no colour without a terminal", "\x1b" in view(coloured.directory), False)


def test_pipe(dump):
    """The reader goes away after a line."""
    for arguments in (["--json"], [], ["--index", "0", "--full"]):
        process = subprocess.Popen([os.path.abspath(sys.argv[1]), "view", dump.directory, *arguments], env=ENVIRONMENT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        code = process.wait(600)
        check(f"view {arguments} | head -1", (bool(line), err, code in (0, -13, 141)), (True, b"", True))


# --- one tensor ---


def place_line(entry):
    task_id = f" ({entry['task_id']})" if entry["task_id"] else ""
    arg = f"{entry['arg_index']} {name_text(entry.get('arg_name', ''))}".rstrip()
    return (f"entry {entry['index']}: task {entry['task_seq']}{task_id}, kernel {kernel_text(entry)}, {entry['stage']}, "
            f"{entry['role'].removesuffix('put')}, arg {arg}")


def form_line(entry):
    if entry["kind"] == "scalar":
        return f"{entry['dtype']} scalar, bits {entry['bits']}"
    line = f"{entry['dtype']} {entry['shape']}"
    if not entry["is_contiguous"]:
        line += f", strides {entry['strides']} from element {entry['start_offset']}"
    if entry["has_payload"]:
        line += f", {entry['bin_size']} byte{'' if entry['bin_size'] == 1 else 's'}"
    line += f", hash {entry['hash']}" if "hash" in entry else ""
    return line + (f"; {note_text(entry)}" if note_text(entry) else "")


def check_histogram(line, values):
    """Its ends are the least and the greatest finite value, between them is a bar for each of 48 bins."""
    finite = values.astype(np.float64)[np.isfinite(values.astype(np.float64))]
    if not check("a histogram has two ends", line.count("|"), 2):
        return
    low, bars, high = line.split("|")
    check("the ends of a histogram", (low, high), (f"{short_number(float(finite.min()))} ",
                                                      f" {short_number(float(finite.max()))}"))
    check("the length of a histogram", len(bars) in (1, 48), True)
    check("empty bins look empty", bars[0] != " " and bars[-1] != " ", True)


def test_tensor(dump, entry, *options):
    lines = view(dump.directory, *(options or ("--index", entry["index"]))).split("\n")
    values = dump.values(entry)
    is_tensor = entry["kind"] == "tensor"
    check("head line", lines[0], shown_text(head_line(dump.manifest, dump.task_count)))
    check("place and form", lines[1:3], [place_line(entry), form_line(entry)])
    if entry["dtype"] == "unknown":
        check("readings", lines[3:], [readings(entry), ""])
        return
    if values is None:
        recorded = ["min -1.5  max inf  mean 0.1  NaN 3  Inf 1  zero 2  subnormal 5"] if "stats" in entry else []
        check("no values", lines[3:], ["no payload was kept", *recorded, ""])
        return
    text = array_text(entry, values, "--full" in options).split("\n")
    check(f"values of {dump.directory.name} {entry['index']}", lines[3:3 + len(text)], text)
    rest = lines[3 + len(text):]
    if np.isfinite(values.astype(np.float64)).any() and len(values) > 1:
        check_histogram(rest.pop(0), values)
    check("statistics", rest, [statistics_line(entry["dtype"], values), ""] if is_tensor else [""])


def test_tensors(dump, step=1):
    for entry in dump.entries[::step]:
        test_tensor(dump, entry)


def test_one_that_is_left(dump):
    """A filter that leaves one entry shows it; --index counts in the complete list, not in the filtered one."""
    entry = next(e for e in dump.entries if e["task_seq"] == 20 and e["arg_index"] == 0)
    test_tensor(dump, entry, "--task", "20", "--arg", "0")
    test_tensor(dump, entry, "--task", "20", "--arg", "0", "--full")
    test_tensor(dump, entry, "--index", entry["index"], "--full", "--role", "input")
    for index in (entry["index"], 4):
        got = document(dump, "--index", index)
        check("--index --json", got, {**dump.manifest, "tensors": [dump.manifest["tensors"][index]]})
    cut = next(e for e in dump.entries if e["truncated"] and e["dtype"] == "float64")
    test_tensor(dump, cut, "--index", cut["index"], "--full")
    result = glassbox("view", dump.directory, "--index", entry["index"], "--role", "output")
    check("an index that does not match", (result.returncode, result.stdout, result.stderr), (
        1, "", f"glassbox view: entry {entry['index']} does not match the filters\n"))
    one = glassbox("view", dump.directory, "--limit", "1").stdout.split("\n")
    check("a list of one is a list", one[1].split()[:3], ["INDEX", "TASK", "KERNEL"])


# --- manifests without a journal ---


def test_manifest_only(dump, root):
    """Without a journal, view reads the manifest and shows the same."""
    directory = root / "alone" / dump.directory.name
    (directory / "tensor_dump").mkdir(parents=True)
    (directory / "tensor_dump" / "tensor_dump.json").write_text(json.dumps(dump.manifest))
    (directory / "tensor_dump" / "tensor_dump.bin").write_bytes(dump.payload)
    alone = Shown(directory, dump.manifest, dump.entries, dump.payload, dump.task_count)
    test_json(alone)
    test_statistics(alone)
    test_table(alone)


def other_entry(index, entry, tasks):
    """An entry of another tool in the form of ours."""
    number_of_task = tasks.setdefault(entry["task_id"], len(tasks))
    known = {**entry, "index": index, "dtype": entry["dtype"].lower(), "task_seq": number_of_task, "in_flight": False}
    known |= {"task": f"0x{int(entry['task_id'], 16):x}", "kernel": [None] * len(entry["func_id"])}
    known["has_payload"] = entry["bin_size"] > 0
    if entry["kind"] == "scalar":
        value = np.array([entry["value"]], known["dtype"]).tobytes()
        known["bits"] = f"0x{int.from_bytes(value, 'little'):016x}"
    return known


def test_other_tool(directory):
    """A dump that another tool wrote, as it is (tests/fixtures/simpler)."""
    manifest = json.loads((directory / "args_dump.json").read_text())
    tasks = {}
    entries = [other_entry(index, entry, tasks) for index, entry in enumerate(manifest["args"])]
    dump = Shown(directory, manifest, entries, (directory / "args.bin").read_bytes(), len(tasks))
    got = document(dump)["tensors"]
    check("as many entries", len(got), len(entries))
    for entry, shown in zip(entries, got):
        not_ours = ("task", "kernel", "has_payload", "arg_index_ambiguous")
        known = {key: value for key, value in entry.items() if key not in not_ours}
        check(f"{directory.name} {entry['index']}", shown, known)
    lines = view(directory).split("\n")
    size = sum(entry["bin_size"] for entry in entries)
    level = {2: "full", 3: "hybrid"}[manifest["dump_args_level"]]
    check("head line of another tool", lines[0], f"{directory}, {level}: {len(entries)} entries of {len(tasks)} tasks, "
          f"{bytes_text(size)}; 0 lost; 0 skipped")
    check("table of another tool", [line.rstrip() for line in lines[1:-1]], table_lines(entries))
    for entry in entries[::4]:
        if entry["kind"] == "tensor" and entry["has_payload"]:
            shown = view(directory, "--index", entry["index"]).split("\n")
            text = array_text(entry, dump.values(entry)).split("\n")
            check("values of another tool", shown[3:3 + len(text)], text)


# --- killed runs ---


def test_killed(root):
    """Blocks up to the end of the file, and no END."""
    dump = Dump(root / "killed", KERNELS)
    add_shapes(dump, np.random.default_rng(1))
    dump.write(4)
    shown = Shown(dump.directory, dump.manifest(), dump.shown(), bytes(dump.payload), 1)
    test_json(shown)
    test_table(shown)
    check("it was killed", "; not complete: killed" in view(dump.directory).split("\n")[0], True)


def test_empty(root):
    """A run without tasks."""
    dump = Dump(root / "empty")
    dump.end()
    dump.write()
    check("JSON of nothing", json.loads(view(dump.directory, "--json")), dump.manifest())
    out = view(dump.directory).split("\n")
    check("head line of nothing", out[0], head_line(dump.manifest(), 0))


def main():
    np.seterr(all="ignore")  # signalling NaNs are among the elements
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        hand, long = hand_made_dump(root), long_dump(root)
        runs = RUNS[::2] if os.environ.get("GLASSBOX_SANITIZE") else RUNS  # every example is there, either way
        examples = [example_dump(root, sys.argv[2], *run) for run in runs]
        mix = next(dump for dump in examples if dump.directory.name.startswith("mix"))
        for dump in (hand, long, *examples):
            test_json(dump)
            test_table(dump)
            test_statistics(dump)
        for dump in examples:
            test_json_text(dump)
        for dump in (hand, long, mix):
            test_statistics_table(dump)
            test_sort(dump)
            test_limit(dump)
        for dump in examples:
            test_tensors(dump, max(1, len(dump.entries) // 5))
        test_tensors(hand)
        test_filters(hand)
        test_filtered_table(mix)
        test_plain_locale(hand)
        has_terminals = terminals.are_there()
        if has_terminals:
            test_terminal(hand)
            test_terminal(long)
            test_terminal(mix, "--stats")
            test_narrow_statistics(mix)
            test_wide_terminal(hand)
            test_colour(hand, mix)
        test_pipe(long)
        test_one_that_is_left(hand)
        test_manifest_only(hand, root)
        test_manifest_only(mix, root)
        for name in ("vector_example", "partial_level3"):
            test_other_tool(pathlib.Path(__file__).parent / "fixtures" / "simpler" / name)
        test_killed(root)
        test_empty(root)
    print(f"{counts['passed']} passed, {counts['failed']} failed" + ("" if has_terminals else ", 5 skipped"))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
