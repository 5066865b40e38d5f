"""What `glassbox diff` has to say of two dumps, from their manifests and payload with json and numpy alone.

Records are matched, compared and judged here once more: model() gives the records and the counts, check_diff() compares
a document of `glassbox diff --json` with them.
"""
import json
import math

import numpy as np

from command_support import check, glassbox
from dump_encoder import PACKED, STAGES, number
from view_support import decode, decode_packed, element_bytes, is_float, unpack

TOLERANCES = {"float32": (1e-5, 1e-6), "float16": (1e-3, 1e-4), "bfloat16": (1e-2, 1e-3), "float64": (1e-12, 1e-14),
              "float8_e4m3": (0.125, 0.0625), "float8_e5m2": (0.125, 0.0625), "float4_e2m1": (0.25, 0.25)}


class Source:
    """A dump as its manifest has it; `has_payload` of entries is the journal's flag."""

    def __init__(self, directory, entries, payload, is_whole=True):
        self.directory, self.entries, self.payload, self.is_whole = directory, entries, payload, is_whole

    @staticmethod
    def of_files(directory, manifest="tensor_dump/tensor_dump.json", payload="tensor_dump/tensor_dump.bin"):
        entries = json.loads((directory / manifest).read_text())["tensors"]
        for entry in entries:
            entry["has_payload"] = entry["kind"] == "tensor" and (entry["bin_size"] > 0 or entry["numel"] == 0)
        return Source(directory, entries, (directory / payload).read_bytes())

    @staticmethod
    def of_encoder(dump, is_whole=True):
        return Source(dump.directory, dump.shown(), bytes(dump.payload), is_whole)

    def codes(self, entry):
        """Raw elements that are stored, as unsigned integers; int4 as the values."""
        name = entry["dtype"]
        data = self.payload[entry["bin_offset"]:entry["bin_offset"] + entry["bin_size"]]
        if entry["kind"] == "scalar":
            data = int(entry["bits"], 16).to_bytes(8, "little")[:element_bytes(name)]
        if name == "int4":
            return decode_packed(name, data, entry["shape"])[:entry["numel"]]
        if name in PACKED:
            return unpack(data, entry["shape"])[:entry["numel"]]
        width = element_bytes(name)
        return np.frombuffer(data[:len(data) // width * width], f"u{width}")


def values_of(name, codes):
    return codes if name == "int4" else decode(name, codes.tobytes())


def steps(name, a, b):
    """Values of the dtype from one to the other; of integers the difference."""
    kind = object if element_bytes(name) == 8 else np.int64
    if not is_float(name):
        return np.abs(values_of(name, a).astype(kind) - values_of(name, b).astype(kind))
    if name == "float8_e8m0":
        return np.abs(a.astype(kind) - b.astype(kind))
    sign = 8 if name in PACKED else 1 << (8 * a.itemsize - 1)
    keys = [np.where(codes & sign, -1, 1).astype(kind) * (codes & (sign - 1)).astype(kind) for codes in (a, b)]
    return np.abs(keys[0] - keys[1])


def tolerance_of(name, options):
    given = {key: options[key] for key in ("atol", "rtol", "ulp") if key in options}
    if not given:
        rtol, atol = TOLERANCES.get(name, (0.0, 0.0))
        return rtol, atol, 0
    if not is_float(name):
        return 0.0, 0.0 if name == "bool" else given.get("atol", 0.0), 0
    return given.get("rtol", 0.0), given.get("atol", 0.0), given.get("ulp", 0)


def metrics(name, a, b, options):
    """All of a comparison of raw elements; numbers of sums are near, all others exact."""
    rtol, atol, ulp = tolerance_of(name, options)
    x, y = values_of(name, a), values_of(name, b)
    distances = steps(name, a, b)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    is_nan = np.isnan(wide_x) | np.isnan(wide_y)
    finite = np.isfinite(wide_x) & np.isfinite(wide_y)
    if is_float(name):
        equal = (wide_x == wide_y) | (np.isnan(wide_x) & np.isnan(wide_y) & ("strict" not in options))
        off = np.where(equal, 0.0, np.where(finite, np.abs(wide_x - wide_y), np.inf))
    else:
        equal, off = x == y, distances.astype(np.float64)
    allowed = atol + rtol * np.abs(wide_y)
    near = equal | (finite & ((off <= allowed) | (distances <= ulp)))
    ratio = np.where(equal | (wide_y == 0), 0.0, np.where(np.isfinite(off), off / np.abs(wide_y), np.inf))
    excess = np.where(near, -1.0, np.where(finite, off / allowed if atol or rtol else off, np.inf))
    bad = np.flatnonzero(~near)
    got, want = wide_x[finite].astype(np.longdouble), wide_y[finite].astype(np.longdouble)  # squares need the range
    apart = np.abs(got - want) if is_float(name) else off[finite].astype(np.longdouble)
    sums = [v.sum() for v in (apart * apart, got * got, want * want, got * want)]
    zeros = int(sums[1] == 0) + int(sums[2] == 0)
    cosine = (1.0, 0.0)[zeros == 1] if zeros else float(sums[3] / np.sqrt(sums[1]) / np.sqrt(sums[2]))
    return {"elements": len(x), "unequal": int((~equal).sum()), "mismatches": len(bad), "max_abs": float(off.max(initial=0)),
            "max_rel": float(ratio.max(initial=0)), "rmse": float(np.sqrt(sums[0] / len(got))) if len(got) else math.nan,
            "cosine": cosine if len(got) else math.nan, "atol": atol, "rtol": rtol, "ulp": ulp, "bad": bad, "excess": excess,
            "max_ulp": None if (is_nan & ~equal).any() else int(distances[~equal].max(initial=0))}


def has_hash(entry):
    return "hash" in entry


def hashed_part(entry):
    return entry["bin_size"] if entry["has_payload"] and entry["truncated"] else None


def form_reason(a, b):
    if a["in_flight"] or b["in_flight"]:
        return "not_compared", "in_flight"
    for key in ("kind", "dtype", "shape"):
        if a[key] != b[key]:
            return "different", key
    if a["overwritten"] or b["overwritten"]:
        return "not_compared", "overwritten"
    return None


def compare(source_a, a, source_b, b, options):
    """verdict, reason, metrics or None, and whether the beginning alone was compared."""
    decided = form_reason(a, b)
    if decided:
        return *decided, None, False
    if a["kind"] == "tensor":
        if a["numel"] == 0:
            return "equal", "values", None, False
        may_hold_nan = "strict" in options and is_float(a["dtype"]) and a.get("stats", {"nan": 1})["nan"] > 0
        has_hashes = has_hash(a) and has_hash(b) and hashed_part(a) == hashed_part(b)
        is_same = has_hashes and a["hash"] == b["hash"]
        if is_same and not may_hold_nan:
            return "equal", "values", None, hashed_part(a) is not None
        if not (a["has_payload"] and b["has_payload"]):
            if has_hashes and not is_same:
                return "different", "hash", None, False
            return "not_compared", "nan_unknown" if is_same else "no_payload", None, False
    codes_a, codes_b = source_a.codes(a), source_b.codes(b)
    count = min(len(codes_a), len(codes_b))
    if count == 0:
        return "not_compared", "truncated", None, True
    m = metrics(a["dtype"], codes_a[:count], codes_b[:count], options)
    verdict = "different" if m["mismatches"] else "within" if m["unequal"] else "equal"
    return verdict, "values", m, count < a["numel"]


def key_of(entry):
    return STAGES.index(entry["stage"]), entry["arg_index"]


def pair_up(entries_a, entries_b):
    """The i-th of a key with the i-th."""
    pairs, left = [], list(entries_b)
    for a in entries_a:
        b = next((b for b in left if key_of(b) == key_of(a)), None)
        if b is not None:
            left.remove(b)
        pairs.append((a, b))
    pairs += [(None, b) for b in left]
    return sorted(pairs, key=lambda pair: key_of(pair[0] or pair[1]))


def names_of(entries):
    names = entries[0]["kernel"]
    return sorted(names) if names and None not in names else None


def task_records(source_a, source_b, of_a, of_b, options):
    """(a, b, verdict, reason, metrics, is_truncated) of each pair."""
    if of_a and of_b:
        named = names_of(of_a), names_of(of_b)
        if None not in named and named[0] != named[1]:
            return [(a, None, "only_a", "kernels", None, False) for a in of_a] + \
                   [(None, b, "only_b", "kernels", None, False) for b in of_b]
    alone = "record" if of_a and of_b else "task"
    result = []
    for a, b in pair_up(of_a, of_b):
        if a and b:
            result.append((a, b, *compare(source_a, a, source_b, b, options)))
        else:
            result.append((a, b, "only_a" if a else "only_b", alone, None, False))
    return result


def cause_of(records, is_whole):
    """Of the outputs of a task."""
    inputs = [r for r in records if (r[0] or r[1])["stage"] == "before_dispatch"]
    if any(verdict == "different" for _, _, verdict, *_ in inputs):
        return "inherited"
    if any(verdict not in ("equal", "within") or is_truncated for _, _, verdict, _, _, is_truncated in inputs) or not is_whole:
        return None
    return "introduced"


def model(source_a, source_b, options=None, order=None, is_selected=lambda entry: True):
    """The records that are not equal, in graph order, and the counts."""
    options = options or {}
    tasks = sorted({e["task_seq"] for source in (source_a, source_b) for e in source.entries})
    total = dict.fromkeys(("equal", "within", "different", "only_a", "only_b", "not_compared"), 0)
    shown = []
    for task in order or tasks:
        of = [[e for e in source.entries if e["task_seq"] == task] for source in (source_a, source_b)]
        records = task_records(source_a, source_b, *of, options)
        cause = cause_of(records, source_a.is_whole or source_b.is_whole)
        for a, b, verdict, reason, m, is_truncated in records:
            if not any(e and is_selected(e) for e in (a, b)):
                continue
            total[verdict] += 1
            is_input = (a or b)["stage"] == "before_dispatch"
            shown_cause = None if verdict != "different" else "inherited" if is_input else cause
            if verdict != "equal":
                shown.append({"a": a, "b": b, "verdict": verdict, "reason": reason, "cause": shown_cause, "metrics": m,
                              "truncated": is_truncated})
    return shown, total


# --- what diff says ---


def diff(a, b, *options, code=None, stderr=""):
    result = glassbox("diff", a, b, "--json", *options)
    if stderr is not None:
        check(f"diff {a} {b} {options}: stderr", result.stderr, stderr)
    if code is not None:
        check(f"diff {a} {b} {options}: exit code", result.returncode, code)
    return json.loads(result.stdout)


def read_number(value):
    return float(value) if isinstance(value, str) else value


def is_near(got, expected):
    if got is None or expected is None or math.isnan(expected) or math.isinf(expected):
        return got == expected or (got is not None and expected is not None and math.isnan(got) and math.isnan(expected))
    return abs(got - expected) <= 1e-9 * abs(expected)


def place_of(entry, index):
    return [int(i) for i in np.unravel_index(index, entry["shape"])] if entry["shape"] else []


def value_of(entry, codes, index):
    return number(values_of(entry["dtype"], codes[index:index + 1])[0], entry["dtype"])


def check_metrics(what, got, expected, source_a, source_b):
    m, a, b = expected["metrics"], expected["a"], expected["b"]
    if m is None:
        check(f"{what}: no metrics", [got[key] for key in ("elements", "max_abs", "rmse", "max_ulp", "first_bad")], [None] * 5)
        return
    for key in ("elements", "unequal", "mismatches", "atol", "rtol"):
        check(f"{what}: {key}", got[key], m[key])
    check(f"{what}: ulp", int(got["ulp"]), m["ulp"])
    for key in ("max_abs", "max_rel"):
        check(f"{what}: {key}", read_number(got[key]), m[key])
    check(f"{what}: max_ulp", None if got["max_ulp"] is None else int(got["max_ulp"]), m["max_ulp"])
    for key in ("rmse", "cosine"):
        check(f"{what}: {key} {got[key]} {m[key]}", is_near(read_number(got[key]), m[key]), True)
    if not m["mismatches"]:
        check(f"{what}: nothing is bad", (got["first_bad"], got["worst"]), (None, None))
        return
    codes = source_a.codes(a), source_b.codes(b)
    first = int(m["bad"][0])
    check(f"{what}: first_bad", got["first_bad"], place_of(a, first))
    check(f"{what}: first_bad_a", got["first_bad_a"], value_of(a, codes[0], first))
    check(f"{what}: first_bad_b", got["first_bad_b"], value_of(b, codes[1], first))
    worst = int(np.ravel_multi_index(got["worst"], a["shape"])) if a["shape"] else 0
    check(f"{what}: worst", m["excess"][worst] >= m["excess"].max() * (1 - 1e-12), True)
    check(f"{what}: worst_a", got["worst_a"], value_of(a, codes[0], worst))
    check(f"{what}: worst_b", got["worst_b"], value_of(b, codes[1], worst))


def check_record(what, got, expected, source_a, source_b):
    a, b = expected["a"], expected["b"]
    for key in ("verdict", "reason", "cause", "truncated"):
        check(f"{what}: {key}", got[key], expected[key])
    check(f"{what}: indices", (got["index_a"], got["index_b"]), (a and a["index"], b and b["index"]))
    entry = a or b
    for key in ("task_seq", "task_id", "arg_index", "role", "stage", "kind", "dtype", "shape"):
        check(f"{what}: {key}", got[key], entry[key])
    check(f"{what}: kernel", got["kernel"], "+".join(n or f"func {f}" for n, f in zip(entry["kernel"], entry["func_id"])) or None)
    check(f"{what}: arg_name", got["arg_name"], entry.get("arg_name"))
    if expected["reason"] in ("kind", "dtype", "shape"):
        check(f"{what}: the other form", [got[f"{key}_b"] for key in ("kind", "dtype", "shape")],
              [b[key] for key in ("kind", "dtype", "shape")])
    check_metrics(what, got, expected, source_a, source_b)


def check_diff(what, source_a, source_b, *arguments, options=None, order=None, is_selected=lambda entry: True):
    """The whole document against the model; returns it."""
    shown, total = model(source_a, source_b, options, order, is_selected)
    compared = total["equal"] + total["within"] + total["different"]
    is_alike = compared > 0 and total["different"] + total["only_a"] + total["only_b"] == 0
    got = diff(source_a.directory, source_b.directory, *arguments, code=0 if is_alike else 1)
    check(f"{what}: counts", {key: got[key] for key in total}, total)
    check(f"{what}: compared", got["compared"], compared)
    check(f"{what}: records", len(got["records"]), len(shown))
    for i, (record_got, expected) in enumerate(zip(got["records"], shown)):
        check_record(f"{what}: record {i}", record_got, expected, source_a, source_b)
    first = next((e for e in shown if e["verdict"] == "different"), None)
    if first is None:
        check(f"{what}: first", got["first"], None)
        return got
    check(f"{what}: first", [got["first"][key] for key in ("task_seq", "arg_index", "stage", "cause", "index_a", "index_b")],
          [first["a"]["task_seq"], first["a"]["arg_index"], first["a"]["stage"], first["cause"], first["a"]["index"],
           first["b"]["index"]])
    reasons = {key: sum(e["verdict"] == "not_compared" and e["reason"] == key for e in shown)
               for key in got["not_compared_reasons"]}
    check(f"{what}: reasons", got["not_compared_reasons"], reasons)
    return got


def first_lines(a, b, *options, count=1):
    return glassbox("diff", a, b, *options).stdout.split("\n")[:count]
