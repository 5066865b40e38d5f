#!/usr/bin/python3
"""glassbox view --export and glassbox export, compared with the files of the dump.

usage: export_test.py GLASSBOX EXAMPLES
"""
import json
import math
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

from dump_encoder import DTYPES, IN_FLIGHT, PACKED, STAGES, TRUNCATED, record, xxhash
from export_support import (RAW, SHORT, SIMPLER_FIELDS, Dump, as_numpy, check, converted, counts, glassbox, leftovers,
                            other_dump, other_entry, reads_back, same, values)

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures/simpler"
EXAMPLES = pathlib.Path(sys.argv[2]).resolve()


# --- reading exports ---

def read_csv(path):
    lines = path.read_text().splitlines()
    return lines[0], [cell for line in lines[1:] for cell in line.split(",")], [line.count(",") + 1 for line in lines[1:]]


def read_txt(path):
    """The head as a dictionary, the overview, and the elements as (index, text)."""
    head, overview, elements = re.fullmatch(r"(.*?)\n\n# overview\n(.*?)\n\n# elements\n(.*)", path.read_text(),
                                            re.DOTALL).groups()
    pairs = [re.fullmatch(r"\[(.*)\] (\S+)", line).groups() for line in elements.splitlines()]
    return dict(line[2:].split(": ", 1) for line in head.splitlines()), overview, [
        (tuple(int(x) for x in index.split(", ") if x), text) for index, text in pairs]


def to_numbers(texts, exact):
    if exact.dtype.kind == "f":
        return [float(text) for text in texts]
    return [{"True": 1, "False": 0}.get(text, text) for text in texts]


def check_exports(directory, entries, has_text=True):
    """`entries` are (name, dtype, shape, bytes): every format holds exactly these values."""
    names = sorted(name for name, *_ in entries)
    for form in ("npy", "csv", "txt") if has_text else ("npy",):
        report = glassbox("view", directory, "--export", "--format", form).stdout
        files = sorted((directory / form).iterdir())
        check(f"names in {directory / form}", [f.stem for f in files] == names and {f.suffix for f in files} == {"." + form})
        size = sum(f.stat().st_size for f in files)
        unit = f"{size} bytes" if size < 1024 else f"{size / 1024:.1f} KiB" if size < 1023.95 * 1024 else f"{size / 2**20:.1f} MiB"
        check("the report", report.startswith(f"wrote {len(files)} files, {unit}, to {directory / form}\n"), report)
    archive = directory / "all.npz"
    glassbox("export", directory, "--format", "npz", "-o", archive)
    members = np.load(archive)
    check(f"members of {archive}", sorted(members.files) == names)
    for name, dtype, shape, raw in entries:
        exact, stored = values(dtype, raw, shape), as_numpy(dtype, raw, shape)
        check(f"{name}.npy", same(np.load(directory / f"npy/{name}.npy"), stored))
        check(f"{name} of npz", same(members[name], stored))
        if has_text:
            check_texts(directory, name, dtype, shape, exact)
    check("nothing is left behind", not leftovers(directory), leftovers(directory))


def check_texts(directory, name, dtype, shape, exact):
    first, cells, columns = read_csv(directory / f"csv/{name}.csv")
    check(f"{name}.csv", first == f"# shape {tuple(shape)}, {dtype}" and len(cells) == exact.size and
          reads_back(to_numbers(cells, exact), exact, dtype) and
          set(columns) <= {shape[-1] if len(shape) > 1 else 1}, first)
    head, overview, elements = read_txt(directory / f"txt/{name}.txt")
    check(f"{name}.txt", [i for i, _ in elements] == list(np.ndindex(*shape)) and head["dtype"] == dtype and
          reads_back(to_numbers([t for _, t in elements], exact), exact, dtype), head)
    check(f"overview of {name}", (("..." in overview) == (exact.size > 1000)) and not overview.endswith("\n"))
    if 0 < exact.size <= 1000 and exact.dtype.kind != "f":
        check(f"overview of {name} is numpy's", overview == np.array2string(
            exact, max_line_width=100 if exact.ndim < 2 else 1 << 24), overview)


# --- dumps of examples ---

def manifest_entries(directory):
    manifest = json.loads((directory / "tensor_dump/tensor_dump.json").read_text())
    payload = (directory / "tensor_dump/tensor_dump.bin").read_bytes()
    for t in manifest["tensors"]:
        name = f"task_{t['task_id']}_{SHORT[t['stage']]}_{SHORT[t['role']]}{t['arg_index']}"
        raw = payload[t["bin_offset"]:t["bin_offset"] + t["bin_size"]]
        if t["kind"] == "scalar":
            bits = int(t["bits"], 16) & (15 if t["dtype"] in PACKED else -1)
            raw = struct.pack("<Q", bits)[:np.dtype(RAW.get(t["dtype"], t["dtype"])).itemsize]
        yield t, (name, t["dtype"], tuple(t["shape"]), raw)


def example(root, name):
    directory = root / name
    glassbox("run", EXAMPLES / name, "--dump-tensor", "-o", directory, cwd=root)
    entries = [entry for _, entry in manifest_entries(directory)]
    check(f"{name} has values", any(any(raw) for *_, raw in entries))
    check_exports(directory, entries)
    check_simpler(root, directory, f"{name}_simpler")
    return directory


def check_simpler(root, directory, name):
    """Every field of every entry, the totals, and every byte; and the same when read back."""
    out = root / name
    glassbox("export", directory, "--format", "simpler", "-o", out)
    written = json.loads((out / "args_dump.json").read_text())
    payload = (out / "args.bin").read_bytes()
    mine = list(manifest_entries(directory))
    kept = [key for key in SIMPLER_FIELDS if key != "bin_offset"]
    for (t, (_, _, _, raw)), a in zip(mine, written["args"]):
        expected = {k: t[k] for k in kept if k in t}
        if t["kind"] == "scalar" and t["dtype"] in ("int64", "uint64"):
            expected["value"] = int(t["value"])
        check("a dtype in upper case", a["dtype"].isupper())
        named = {"FP8E4M3FN": "float8_e4m3", "FP8E5M2": "float8_e5m2", "FLOAT4E2M1": "float4_e2m1", "FP8E8M0": "float8_e8m0"}.get(a["dtype"], a["dtype"].lower())
        got = {**{k: v for k, v in a.items() if k != "bin_offset"}, "dtype": named}
        check("an entry of args", got == expected, f"{got} {expected}")
        check("order of the fields", [k for k in a if k != "bin_offset"] == [k for k in kept if k in a], list(a))
        if t["kind"] == "tensor":
            check("the bytes of an entry", payload[a["bin_offset"]:a["bin_offset"] + a["bin_size"]] == raw)
    kinds = {(t["bin_offset"], t["bin_size"]) for t, _ in mine if t["bin_size"]}
    check("args.bin has each payload once", len(payload) == sum(size for _, size in kinds), len(payload))
    count = lambda key, value: sum(t[key] == value for t, _ in mine)
    check("the head of args_dump.json", {k: v for k, v in written.items() if k != "args"} == {
        "run_dir": name, "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"}, "dump_args_level": 2,
        "total_args": len(mine), "before_dispatch": count("stage", STAGES[0]), "after_completion": count("stage", STAGES[1]),
        "input_args": count("role", "input"), "output_args": count("role", "output"), "inout_args": count("role", "inout"),
        "truncated_args": 0, "dropped_records": 0, "dropped_overwrite": 0, "bin_file": "args.bin"}, written.keys())
    check("order of the head", list(written) == ["run_dir", "bin_format", "dump_args_level", "total_args",
          "before_dispatch", "after_completion", "input_args", "output_args", "inout_args", "truncated_args",
          "dropped_records", "dropped_overwrite", "bin_file", "args"], list(written))
    check_exports(out, [entry for _, entry in mine], has_text=False)  # through our own reader of that layout
    again = json.loads(glassbox("view", out, "--json").stdout)["tensors"]
    for (t, _), a in zip(mine, again):
        wanted = ["index", "task_seq", *kept]
        check("an entry that was read back", {k: a.get(k) for k in wanted} == {k: t.get(k) for k in wanted}, f"{a} {t}")
    check("entries that were read back", len(again) == len(mine))
    glassbox("export", directory, "--format", "simpler", "-o", out, code=2)
    check("a directory with files is not touched", (out / "args.bin").read_bytes() == payload)


def same_graph(root, directory):
    """The same graph on another platform: equal texts, and equal archives, to the byte."""
    other = root / "other_platform"
    glassbox("run", EXAMPLES / directory.name, "-p", "a5sim", "--dump-tensor", "-o", other, cwd=root)
    glassbox("view", other, "--export")
    glassbox("export", other, "--format", "npz", "-o", other / "all.npz")
    files = sorted((directory / "txt").iterdir())
    check("equal texts of two runs", len(files) > 10 and all(
        f.read_bytes() == (other / "txt" / f.name).read_bytes() for f in files))
    check("equal archives of two runs", (other / "all.npz").read_bytes() == (directory / "all.npz").read_bytes())


def fixtures(root):
    """A dump of the other tool comes back byte for byte, with its values."""
    for name in ("vector_example", "partial_level3"):
        source, directory, out = FIXTURES / name, root / f"{name}_fixture", root / f"{name}_again" / "args_dump"
        shutil.copytree(source, directory)
        out.parent.mkdir()
        report = glassbox("export", directory, "--format", "simpler", "-o", out).stdout
        text = (source / "args_dump.json").read_text()
        count, text = text.count("ambiguous"), text.replace(', "arg_index_ambiguous": true', "")
        check("what is lost of it", report.splitlines()[1:] == [
            f"{count} entry with an uncertain arg_index written without the mark arg_index_ambiguous"] * count,
            report)
        check(f"args_dump.json of {name}", (out / "args_dump.json").read_text() == text)
        check(f"args.bin of {name}", (out / "args.bin").read_bytes() == (source / "args.bin").read_bytes())
        glassbox("view", directory, "--export", "--format", "npy")
        payload = (source / "args.bin").read_bytes()
        for a in json.loads(text)["args"]:
            file = directory / f"npy/task_{a['task_id']}_{SHORT[a['stage']]}_{SHORT[a['role']]}{a['arg_index']}.npy"
            if a["kind"] == "scalar":
                wanted = np.array(a["value"], a["dtype"].lower())
            elif a["bin_size"] == 0:
                check("no file without payload", not file.exists())
                continue
            else:
                raw = payload[a["bin_offset"]:a["bin_offset"] + a["bin_size"]]
                wanted = np.frombuffer(raw, a["dtype"].lower()).reshape(a["shape"])
            check(f"{file.name} of {name}", same(np.load(file), wanted))


# --- dumps of other tools ---

def overwritten(root):
    """Overwritten bytes are not exported as values, and stay as they are in a dump of the same layout."""
    payload = struct.pack("<6f", 1, 2, 30, 40, 5, 6)
    entries = [other_entry(0, 0, bin_offset=0, bin_size=8), other_entry(0, 1, bin_offset=8, bin_size=8, overwritten=True),
               other_entry(0, 2, bin_offset=16, bin_size=4, truncated=True),
               other_entry(0, 3, bin_offset=20, bin_size=4, truncated=True, overwritten=True),
               other_entry(1, 0, value=1.5, truncated=True), other_entry(1, 1, value=2.5, overwritten=True)]
    d = other_dump(root / "overwritten/args_dump", entries, payload, dump_args_level=None, dropped_records=2,
                   dropped_overwrite=3)
    note = "skipped: 2 tensors whose bytes were overwritten before they were captured: " \
           "task_0x0000000000000000_before_in1, task_0x0000000000000000_before_in3"
    for form in ("npy", "csv", "txt"):
        report = glassbox("view", d, "--export", "--format", form).stdout
        check(f"{form}: overwritten ones are named", report.startswith("wrote 4 files") and note in report.splitlines(), report)
        names = sorted(f.stem for f in (d / form).iterdir())
        check(f"{form}: no file of them", names == [f"task_0x{t:016x}_before_in{a}" for t, a in ((0, 0), (0, 2), (1, 0), (1, 1))],
              names)
    report = glassbox("export", d, "--format", "npz", "-o", root / "overwritten.npz").stdout
    members = np.load(root / "overwritten.npz")
    check("npz: overwritten ones are named", note in report.splitlines(), report)
    check("npz: the others", len(members.files) == 4 and members["task_0x0000000000000000_before_in0"].tolist() == [1, 2])
    shown = glassbox("view", d, "--index", 1).stdout.splitlines()
    check("view says why there are no values", shown[-1] == "the bytes were overwritten before they were captured" and
          "30" not in " ".join(shown[2:]), shown)
    rows = [line.split() for line in glassbox("view", d, "--stats").stdout.splitlines()[2:]]
    check("no statistics of them", [row[11:16] == ["-"] * 5 if "[2]" in row else None for row in rows] ==
          [False, True, False, True, None, None], rows)
    out = root / "overwritten_again/args_dump"
    out.parent.mkdir()
    report = glassbox("export", d, "--format", "simpler", "-o", out).stdout.splitlines()
    check("the same layout: what is left out is reported", report[1:] ==
          ["left out dump_args_level: the level of the dump is unknown"], report)
    check("the same layout: json", json.loads((out / "args_dump.json").read_text()) ==
          json.loads((d / "args_dump.json").read_text()), (out / "args_dump.json").read_text())
    check("the same layout: bytes", (out / "args.bin").read_bytes() == payload)
    for level in (0, 1, 2, 3):
        d = other_dump(root / f"level{level}/args_dump", entries[:1], payload[:8], dump_args_level=level)
        glassbox("export", d, "--format", "simpler", "-o", root / f"level{level}/out")
        written = json.loads((root / f"level{level}/out/args_dump.json").read_text())
        check(f"level {level}", written.get("dump_args_level") == (level or None), written)


def strange_names(root):
    """Characters that change the direction of a text, or end its line, do not reach a terminal."""
    strange = ["\u202e", "\u202a", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u2028"]
    for character in strange:
        escaped = "".join(f"\\x{byte:02x}" for byte in character.encode())
        d = other_dump(root / f"strange{ord(character)}", [other_entry(0, 0, value=1.5), other_entry(1, 0, value=1.5)], b"",
                       kernels=[{"func_id": 0, "name": f"a{character}b"}], run={"scene": f"s{character}t"})
        for options in ([], ["--index", 0]):
            text = glassbox("view", d, *options, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout
            check(f"U+{ord(character):04X} is escaped", character not in text and f"a{escaped}b" in text and
                  f"s{escaped}t" in text, ascii(text))
        rows = glassbox("view", d, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.splitlines()[1:]
        check("columns are below each other", {row.index(w) for row, w in zip(rows, ("STAGE", "before", "before"))} ==
              {rows[0].index("STAGE")}, rows)
    d = other_dump(root / "backslash", [other_entry(0, 0, value=1.5)], b"", kernels=[{"func_id": 0, "name": "\\x41 é"}])
    rows = glassbox("view", d, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.splitlines()[1:]
    check("a name that looks escaped", "\\x5cx41 é" in rows[1] and rows[1].index("before") == rows[0].index("STAGE"), rows)


# --- dtypes ---

def all_codes(dtype):
    if dtype in PACKED:
        return bytes(range(256)) + bytes(range(40)), (8, 73)
    if dtype in ("float8_e4m3", "float8_e5m2", "float8_e8m0", "int8", "uint8"):
        return bytes(range(256)), (4, 8, 8)
    if dtype in ("bfloat16", "float16", "int16", "uint16"):
        return np.arange(65536, dtype=np.uint16).tobytes(), (64, 1024)
    if dtype == "bool":
        return bytes([0, 1, 1, 0, 2, 255]), (6,)
    if dtype == "float32":
        edges = [0.1, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, 0.5, 2.5, -2.5, 1e10, -1e30, 16777217, 127.5, 70000]
        return np.concatenate([np.array(edges, np.float32), np.random.default_rng(1).integers(
            0, 2**32, 5, np.uint32).view(np.float32)]).tobytes(), (5, 4)
    if dtype == "float64":
        return np.array([0.1, 1e300, 5e-324, -0.0, math.nan, math.inf, 1 + 2**-24 + 2**-53, 2.0**63, -2.0**64]).tobytes(), (9, 1)
    edges = [0, 1, 2**24 + 1, 2**31 - 1, 2**53 + 1, 2**63 - 1, 2**62 + 2**38 + 1, 2**63, 2**64 - 1, 2**63 + 2**39 + 1]
    bits = np.dtype(dtype).itemsize * 8
    return b"".join((e & (2**bits - 1)).to_bytes(bits // 8, "little") for e in edges), (2, 1, 5)


def odd_dtypes(root):
    dump = Dump(root, "odd")
    for arg, dtype in enumerate(DTYPES[1:]):
        raw, shape = all_codes(dtype)
        dump.add(0, arg, dtype, shape, raw)
        is_integer = "int" in dtype  # the last one is large; of floats the last one may be a NaN, the third infinite
        dump.scalar(1, arg, dtype, int.from_bytes(raw[-8:] if is_integer else raw[8:16] or raw[:8], "little"))
    dump.add(2, 0, "float32", (), struct.pack("<f", 1.5))
    dump.add(2, 1, "int32", (0, 4), b"")
    dump.add(2, 2, "int32", (2, 3, 4, 5), np.arange(120, dtype=np.int32).tobytes())
    dump.add(2, 3, "uint8", (1,), b"\x07")
    dump.add(2, 4, "int4", (3, 3), bytes([0x21, 0x03, 0x54, 0x06, 0x87, 0x09]))
    dump.write()
    check_exports(dump.directory, dump.entries)
    report = glassbox("view", dump.directory, "--export", "--format", "npy").stdout
    for line in ("2 bfloat16 tensors were written as raw uint16; --as float32 converts them",
                 "3 int4 tensors were written as raw uint8, two elements a byte; --as int8 converts them"):
        check(line, line in report.splitlines(), report)
    for target in ("float32", "float16", "float64", "int8", "int64", "uint64", "bool"):
        glassbox("view", dump.directory, "--export", "--format", "npy", "--as", target)
        for name, dtype, shape, raw in dump.entries:
            got = np.load(dump.directory / f"npy/{name}.npy")
            check(f"{dtype} as {target}", same(got, converted(values(dtype, raw, shape), target)), got)
    check_converted_text(dump)
    glassbox("recover", dump.directory)
    check_simpler(root, dump.directory, "odd_simpler")
    result = glassbox("view", dump.directory, "--export", "--format", "npy", "--as", "bfloat16", code=2)
    check("--as bfloat16 is refused", "float16, float32, float64" in result.stderr, result.stderr)


def check_converted_text(dump):
    glassbox("view", dump.directory, "--export", "--format", "csv", "--as", "float32", "--dtype", "bfloat16", "--dtype", "int4")
    glassbox("view", dump.directory, "--export", "--format", "txt", "--as", "int16", "--dtype", "float8_e4m3")
    glassbox("export", dump.directory, "--format", "npz", "--as", "float64", "-o", dump.directory / "as.npz")
    members = np.load(dump.directory / "as.npz")
    for name, dtype, shape, raw in dump.entries:
        exact = values(dtype, raw, shape)
        check(f"{name} of npz as float64", same(members[name], converted(exact, "float64")))
        if dtype in ("bfloat16", "int4"):
            got = np.loadtxt(dump.directory / f"csv/{name}.csv", delimiter=",", ndmin=max(len(shape), 1), dtype=np.float32)
            check(f"{name} of csv as float32", same(got.reshape(shape), converted(exact, "float32")))
        if dtype == "float8_e4m3":
            head, _, elements = read_txt(dump.directory / f"txt/{name}.txt")
            check(f"{name} of txt as int16", head["converted to"] == "int16" and
                  [int(t) for _, t in elements] == converted(exact, "int16").ravel().tolist())


# --- missing and repeated entries ---

def notes(root):
    dump = Dump(root, "notes")
    one = np.arange(1, 7, dtype=np.int16)
    dump.add(0, 0, "int16", (2, 3), one.tobytes())
    dump.add(0, 1, "int16", (2, 3), None)
    dump.add(0, 2, "int16", (100,), one.tobytes() + b"\x01", flags=TRUNCATED)
    dump.add(0, 3, "int4", (4, 5), b"\x21\x43\x05\x76", flags=TRUNCATED)
    dump.add(0, 4, "float32", (2,), struct.pack("<2f", 1, 2), role=1, stage=1)
    dump.add(0, 4, "float32", (2,), struct.pack("<2f", 3, 4), role=1, stage=1, flags=IN_FLIGHT,
             name="task_0x0000000100000000_after_out4_2")
    dump.add(7, 0, "uint8", (2,), b"\x05\x06", is_lost=True)
    dump.write()
    d, t = dump.directory, "task_0x0000000100000000"
    report = glassbox("view", d, "--export", "--format", "npy").stdout.splitlines()
    check("the report is complete", report[0].startswith("wrote 6 files, ") and report[1:] == [
        "1 int4 tensor was written as raw uint8, two elements a byte; --as int8 converts it",
        f"truncated: 2 tensors, written in one dimension with the elements that were kept: {t}_before_in2, {t}_before_in3",
        f"not completed: 1 tensor of tasks that crashed or hung: {t}_after_out4_2",
        f"skipped: 1 tensor without payload: {t}_before_in1"], report)
    npy = {f.stem: np.load(f) for f in (d / "npy").iterdir()}
    check("names", sorted(npy) == sorted([f"{t}_before_in0", f"{t}_before_in2", f"{t}_before_in3", f"{t}_after_out4",
                                         f"{t}_after_out4_2", "task_seq7_before_in0"]), sorted(npy))
    check("what is left of a tensor", same(npy[f"{t}_before_in2"], one) and
          same(npy[f"{t}_before_in3"], np.array([0x21, 0x43, 0x05, 0x76], np.uint8)))
    check("the second of one name", npy[f"{t}_after_out4"].tolist() == [1, 2] and npy[f"{t}_after_out4_2"].tolist() == [3, 4])
    glassbox("view", d, "--export", "--format", "csv")
    check("csv of a truncated one", (d / f"csv/{t}_before_in3.csv").read_text() ==
          "# shape (4, 5), int4; truncated: the first 7 of 20 elements\n1\n2\n3\n4\n5\n6\n7\n")
    glassbox("view", d, "--export")
    head, _, elements = read_txt(d / f"txt/{t}_before_in2.txt")
    check("txt of a truncated one", head["truncated"] == "the first 6 of 100 elements were kept" and len(elements) == 6)
    check("txt of one in flight", "in_flight" in read_txt(d / f"txt/{t}_after_out4_2.txt")[0])
    check("txt of a lost task", read_txt(d / "txt/task_seq7_before_in0.txt")[0] == {
        "index": "6", "task_seq": "7", "lost": "the record of this task", "arg_index": "0", "role": "input",
        "stage": "before_dispatch", "kind": "tensor", "dtype": "uint8", "shape": "[2]", "strides": "[1]",
        "start_offset": "0", "is_contiguous": "true", "hash": format_hash(b"\x05\x06")})
    check("the complete text", (d / f"txt/{t}_before_in0.txt").read_text() == f"""# index: 0
# task_id: 0x0000000100000000
# task_seq: 0
# kernel: odd (func_id 7)
# arg_index: 0
# role: input
# stage: before_dispatch
# kind: tensor
# dtype: int16
# shape: [2, 3]
# strides: [3, 1]
# start_offset: 0
# is_contiguous: true
# hash: {format_hash(one.tobytes())}

# overview
[[1 2 3]
 [4 5 6]]

# elements
[0, 0] 1
[0, 1] 2
[0, 2] 3
[1, 0] 4
[1, 1] 5
[1, 2] 6
""")
    empty_selections(root, d)
    simpler_of_notes(root, d)


def format_hash(raw):
    value = xxhash.XXH3_128bits(raw, len(raw))
    return f"{value.high:016x}{value.low:016x}"


def empty_selections(root, d):
    result = glassbox("view", d, "--export", "--format", "npy", "--index", 1, code=1)
    check("nothing to write is reported", result.stdout.startswith("wrote nothing: no selected entry has values in this dump"),
          result.stdout)
    out = root / "none.npz"
    glassbox("export", d, "--arg", 1, "--format", "npz", "-o", out, code=1)
    check("no archive of nothing", not out.exists() and not leftovers(root))
    (d / "npy/task_0x0000000100000000_before_in0.npy").write_text("old")
    (d / "npy/mine.npy").write_text("kept")
    glassbox("view", d, "--export", "--format", "npy", "--index", 0)
    check("an earlier file is replaced", np.load(d / "npy/task_0x0000000100000000_before_in0.npy").size == 6)
    check("other files stay", (d / "npy/mine.npy").read_text() == "kept" and len(list((d / "npy").iterdir())) == 7)


def simpler_of_notes(root, d):
    out = root / "notes_simpler"
    report = glassbox("export", d, "--format", "simpler", "-o", out).stdout
    for line in ("wrote 6 arguments, 39 bytes of payload, to ", "left out 1 entry of tasks that did not complete: ",
                 "1 entry with the id 0xffffffff00000000 + task_seq: the record of the task was lost",
                 "1 entry with a dtype that the tools of simpler show as bytes"):
        check(f"the report has {line!r}", line in report, report)
    written = json.loads((out / "args_dump.json").read_text())
    check("ids of lost tasks", [a["task_id"] for a in written["args"]][-1] == "0xffffffff00000007")
    check("truncated ones", written["truncated_args"] == 2 and [a["truncated"] for a in written["args"]] ==
          [False, False, True, True, False, False])
    os.mkdir(root / "empty_directory")
    glassbox("export", d, "--format", "simpler", "-o", f"{root}/empty_directory/")
    check("an empty directory is taken", (root / "empty_directory/args.bin").stat().st_size == 39)


# --- many ---

def check_end_records(archive, count):
    """The directory of an archive with many small members: zipfile itself does not check the count."""
    raw = archive.read_bytes()
    long_end, locator, end = raw[-98:-42], raw[-42:-22], raw[-22:]
    signature, size, made_by, needs, disks, here, total, bytes_, start = struct.unpack("<4sQHHQQQQQ", long_end)
    check("the 64-bit end record", (signature, size, made_by, needs, disks, here, total) ==
          (b"PK\6\6", 44, 3 << 8 | 45, 45, 0, count, count) and start + bytes_ == len(raw) - 98, long_end)
    check("its locator", struct.unpack("<4sIQI", locator) == (b"PK\6\7", 0, len(raw) - 98, 1), locator)
    check("the end record", struct.unpack("<4sIHHIIH", end) == (b"PK\5\6", 0, 0xffff, 0xffff, bytes_, start, 0), end)
    at, entries = start, 0
    while raw[at:at + 4] == b"PK\1\2":
        at += 46 + sum(struct.unpack_from("<3H", raw, at + 28))
        entries += 1
    check("the directory holds only its entries", at == start + bytes_ and entries == count, entries)
    if shutil.which("unzip"):
        result = subprocess.run(["unzip", "-tq", archive], capture_output=True, text=True)
        check("unzip finds nothing wrong", result.returncode == 0 and result.stderr == "", result.stdout + result.stderr)


def many(root):
    """More members than a zip directory of 16 bits counts."""
    dump = Dump(root, "many")
    for i in range(70000):
        dump.scalar(i // 50, i % 50, "int32", i)
    dump.write()
    archive = root / "many.npz"
    archive.write_text("an old file")
    report = glassbox("export", dump.directory, "--format", "npz", "-o", archive).stdout
    check("the report of many", report.startswith("wrote 70,000 arrays, "), report)
    check_end_records(archive, 70000)
    with zipfile.ZipFile(archive) as opened:
        check("zipfile finds nothing wrong", opened.testzip() is None and len(opened.infolist()) == 70000)
        check("members are stored", {i.compress_type for i in opened.infolist()} == {zipfile.ZIP_STORED})
    members = np.load(archive)
    for i in (0, 1, 49, 50, 65534, 65535, 65536, 69999):
        array = members[dump.entries[i][0]]
        check("a scalar of many", array.shape == () and array.dtype == np.int32 and int(array) == i)


def one_slot(root):
    """Many entries of one task, stage and slot: names differ by role, and finding them takes no time."""
    dump = Dump(root, "one_slot")
    for i in range(60000):
        dump.records.append(record(6, 0, arg=1, role=i % 3 % 2, dtype=DTYPES.index("int32"), body=struct.pack("<Q", i)))
    dump.task(0)
    dump.records.insert(0, dump.records.pop())
    dump.entries = [None] * 60000
    dump.write()
    seen, wanted = {}, []
    for i in range(60000):
        role = ("in", "out")[i % 3 % 2]
        seen[role] = seen.get(role, 0) + 1
        wanted.append(f"task_0x0000000100000000_before_{role}1" + (f"_{seen[role]}" if seen[role] > 1 else ""))
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    glassbox("export", dump.directory, "--format", "npz", "-o", root / "one_slot.npz", preexec_fn=limit)
    members = np.load(root / "one_slot.npz")
    check("names of one slot", members.files == wanted)
    check("values of one slot", all(int(members[wanted[i]]) == i for i in (0, 1, 2, 3, 1000, 59999)))
    glassbox("view", dump.directory, "--export", "--format", "npy", "--role", "out", "--sort", "-index", "--limit", 40)
    chosen = [i for i in range(60000) if i % 3 % 2 == 1][-40:]
    check("the same names in another order", {f.stem: int(np.load(f)) for f in (dump.directory / "npy").iterdir()} ==
          {wanted[i]: i for i in chosen})


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        odd_dtypes(root)
        notes(root)
        for name in ("vector_example", "dump_tensor_example", "mix_spmd"):
            example(root, name)
        same_graph(root, root / "vector_example")
        fixtures(root)
        overwritten(root)
        strange_names(root)
        one_slot(root)
        many(root)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
