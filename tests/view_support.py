"""What `glassbox view` has to print, computed from a manifest and its payload with json and numpy alone."""
import fnmatch
import math
import re
import unicodedata
from fractions import Fraction

import numpy as np

from array_text_numpy_test import ExactDigits, FORMATS, numpy_text, truncated_text
from command_support import ENVIRONMENT, check, glassbox, on_terminal
from dump_encoder import DTYPES, MX_VALUES, PACKED, integer_number, float_number

NARROW = ("bfloat16", "float8_e4m3", "float8_e5m2")
COLOUR = re.compile("\x1b\\[[0-9]*m")

exact_digits = {}


# --- running ---


def view(*arguments, code=0, cwd=None, environment=ENVIRONMENT):
    """stdout of a view that says nothing on stderr."""
    result = glassbox("view", *arguments, cwd=cwd, environment=environment)
    check(f"view {' '.join(map(str, arguments))}: exit code and stderr", (result.returncode, result.stderr), (code, ""))
    return result.stdout


def view_on_terminal(columns, *arguments, **environment):
    """What reaches a terminal of so many columns, and the exit code."""
    return on_terminal(columns, "view", *arguments, **environment)


# --- values ---


def digits_of(name):
    if name not in exact_digits:
        exact_digits[name] = ExactDigits(FORMATS[name])
    return exact_digits[name]


def element_bytes(name):
    """1 for packed elements, too."""
    known = {"bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1, "int4": 1, "float4_e2m1": 1, "float8_e8m0": 1}
    return known.get(name) or np.dtype(name).itemsize


def decode(name, data):
    """Elements of bytes; bfloat16 and the MX floats as float32, float8 as float64. Of 4 bits a byte is one code."""
    if name in MX_VALUES:
        return MX_VALUES[name][np.frombuffer(data, np.uint8)]
    if name == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name.startswith("float8"):
        return digits_of(name).values[np.frombuffer(data, np.uint8)]
    if name == "bool":
        return np.frombuffer(data, np.uint8) != 0
    return np.frombuffer(data, name)


def unpack(data, shape):
    """Codes, two a byte, the low half first, rows of full bytes; what is stored of them."""
    codes = np.frombuffer(data, np.uint8)
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(-1)
    row = shape[-1] if shape else 1
    width = (row + 1) // 2 * 2
    kept = [halves[i:i + width][:row] for i in range(0, len(halves), width or 1)]
    return np.concatenate(kept) if kept else halves


def decode_packed(name, data, shape):
    codes = unpack(data, shape)
    if name in MX_VALUES:
        return MX_VALUES[name][codes]
    values = codes.astype(np.int8)
    return np.where(values > 7, values - 16, values).astype(np.int8)


def stored_values(entry, payload):
    """Of a tensor: the elements that are there whole, flat."""
    data = bytes(payload[entry["bin_offset"]:entry["bin_offset"] + entry["bin_size"]])
    if entry["dtype"] in PACKED:
        return decode_packed(entry["dtype"], data, entry["shape"])
    width = element_bytes(entry["dtype"])
    return decode(entry["dtype"], data[:len(data) // width * width])


def array_text(entry, values, is_full=False):
    """Of the elements that are stored."""
    options = {"is_full": is_full, "width": 75}
    shape, numel = entry["shape"], entry["numel"]
    if len(values) < numel:
        whole = np.zeros(numel, values.dtype)
        whole[:len(values)] = values
        return truncated_text(whole.reshape(shape), len(values), **options)
    if entry["dtype"] in NARROW:
        return digits_of(entry["dtype"]).array_text(values.astype(np.float64).reshape(shape), options)
    return numpy_text(values.reshape(shape), **options)


def scalar_array(entry):
    data = int(entry["bits"], 16).to_bytes(8, "little")[:element_bytes(entry["dtype"])]
    name = entry["dtype"]
    return decode_packed(name, data, ())[:1] if name in PACKED else decode(name, data)


def element_text(name, value):
    """The shortest that reads back as the same float64 or, of narrower ones, float32."""
    if name.startswith(("float", "bfloat")):
        return repr(float(repr(np.float64(value) if name == "float64" else np.float32(value))))
    return str(bool(value)) if name == "bool" else str(int(value))


# --- statistics ---


def is_float(name):
    return name.startswith(("float", "bfloat"))


def smallest_normal(name):
    """Below it are the subnormal numbers of a dtype."""
    if name in MX_VALUES:
        return {"float4_e2m1": 1, "float8_e8m0": 0}[name]
    if name in FORMATS:
        return 2.0 ** (1 - FORMATS[name][2])
    return float(np.finfo(name).tiny)


def sum_of_lanes(values):
    """32 lanes, each in ascending order, then halves onto halves (src/tensor/statistics/statistics.h)."""
    lanes = np.zeros(-(-len(values) // 32) * 32 or 32)
    lanes[:len(values)] = np.where(np.isfinite(values), values, 0)
    sums = np.cumsum(lanes.reshape(-1, 32), axis=0)[-1]
    for width in (16, 8, 4, 2, 1):
        sums = sums[:width] + sums[width:2 * width]
    return float(sums[0])


def mean_of(name, values, finite):
    if name in ("float8_e4m3", "float8_e5m2", "float4_e2m1"):
        return float(sum(map(Fraction, finite.tolist()), Fraction(0))) / len(finite)
    if is_float(name):
        return sum_of_lanes(values.astype(np.float64)) / len(finite)
    return float(sum(map(int, values.tolist()))) / len(values)


def lowest(values):
    """-0.0 is less than 0.0, which comparison does not tell."""
    low = values.min()
    return -0.0 if low == 0 and np.signbit(values[values == 0]).any() else low


def statistics(name, values):
    """min, max, mean as numbers, then the counts of NaN, infinities, zeros, subnormals."""
    if not is_float(name):
        empty = len(values) == 0
        return (0 if empty else int(values.min()), 0 if empty else int(values.max()),
                0.0 if empty else mean_of(name, values, values), 0, 0, int((values == 0).sum()), 0)
    wide = values.astype(np.float64)
    known, finite = wide[~np.isnan(wide)], wide[np.isfinite(wide)]
    size = np.abs(finite)
    low, high = (float(lowest(known)), -float(lowest(-known))) if len(known) else (math.nan, math.nan)
    return (low, high, mean_of(name, wide, finite) if len(finite) else math.nan, int(np.isnan(wide).sum()),
            int(np.isinf(wide).sum()), int((wide == 0).sum()), int(((size > 0) & (size < smallest_normal(name))).sum()))


def statistics_member(name, values):
    """As the manifest has them."""
    low, high, mean, *rest = statistics(name, values)
    extreme = float_number if is_float(name) else integer_number
    return {"min": extreme(low, name), "max": extreme(high, name), "mean": float_number(mean, "float64"),
            **dict(zip(("nan", "inf", "zero", "subnormal"), rest))}


def short_number(value):
    """Of min, max and mean in a table: in 12 characters, integers whole where they fit."""
    if isinstance(value, int) and len(str(value)) <= 12:
        return str(value)
    text = f"{float(value):.6g}"
    return text if len(text) <= 12 else f"{float(value):.5g}"


def statistics_line(name, values):
    low, high, mean, nan, inf, zero, subnormal = statistics(name, values)
    line = f"min {short_number(low)}  max {short_number(high)}  mean {short_number(mean)}  NaN {nan}  Inf {inf}  zero {zero}"
    return line + (f"  subnormal {subnormal}" if is_float(name) else "")


# --- filters ---


def range_of(text):
    first, _, last = text.partition("..")
    return int(first, 0), int(last or first, 0)


def is_inside(value, text):
    first, last = range_of(text)
    return value is not None and first <= value <= last


def has_kernel(entry, names, funcs):
    """One kernel of the task is of a name and of a func_id that were given."""
    return any((not names or any(name is not None and fnmatch.fnmatchcase(name, glob) for glob in names)) and
               (not funcs or any(is_inside(func_id, text) for text in funcs))
               for name, func_id in zip(entry["kernel"], entry["func_id"]))


def is_task(entry, text):
    if text.startswith("0x"):
        return entry["task_id"] is not None and is_inside(int(entry["task_id"], 16), text)
    return is_inside(entry["task_seq"], text)


def is_argument(entry, text):
    if text[0].isdigit():
        return is_inside(entry["arg_index"], text)
    return fnmatch.fnmatchcase(entry.get("arg_name") or "", text)


def matches(entry, filters):
    words = {"in": "input", "out": "output", "before": "before_dispatch", "after": "after_completion"}
    given = {key: [value for k, value in filters if k == key] for key, _ in filters}
    names, funcs = given.get("kernel", []), given.get("func", [])
    if (names or funcs) and not has_kernel(entry, names, funcs):
        return False
    if "task" in given and not any(is_task(entry, text) for text in given["task"]):
        return False
    if "arg" in given and not any(is_argument(entry, text) for text in given["arg"]):
        return False
    return all(entry[key] in [words.get(text, text) for text in given[key]]
               for key in ("role", "stage", "kind", "dtype") if key in given)


# --- order ---


def sort_value(key, entry, values):
    """None for an entry that has none: it is last, whatever the direction."""
    if key in ("min", "max", "mean", "nan", "inf"):
        if values is None:
            return None
        value = statistics(entry["dtype"], values)[("min", "max", "mean", "nan", "inf").index(key)]
        return None if math.isnan(value) else float(value)
    if key == "kernel":
        return entry["kernel"][0] if entry["kernel"] else None
    if key == "dtype":
        return DTYPES.index(entry["dtype"])
    return entry[{"index": "index", "task": "task_seq", "arg": "arg_index", "bytes": "bin_size", "elements": "numel",
                  "time": "time_ns"}[key]]


def sort_entries(entries, key, is_descending, values_of):
    valued = [(sort_value(key, entry, values_of(entry)), entry) for entry in entries]
    known = [pair for pair in valued if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=is_descending)  # equal ones stay as they are, either way
    return [entry for _, entry in known] + [entry for value, entry in valued if value is None]


# --- the table ---


def shown_text(text):
    """Bytes of control characters as the table shows them."""
    return "".join("".join(f"\\x{byte:02x}" for byte in c.encode()) if unicodedata.category(c) == "Cc" else c for c in text)


def text_width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut_text(text, width):
    if text_width(text) <= width:
        return text
    parts = re.findall(r"\\x[0-9a-f]{2}|.", text)  # what stands for a byte is not cut in two
    while text_width("".join(parts)) > width - 1:
        parts.pop()
    return "".join(parts) + "…"


def name_text(name):
    """Names of the dump are cut at 63 columns."""
    return cut_text(shown_text(name), 63)


def kernel_text(entry):
    names = [name or f"func {func_id}" for name, func_id in zip(entry["kernel"], entry["func_id"])]
    return "+".join(map(name_text, names)) or "unknown"


def note_text(entry):
    is_bare = entry["kind"] == "tensor" and not entry["has_payload"]
    notes = [(entry["in_flight"], "in flight"), (entry["truncated"], "truncated"),
             (entry["overwritten"], "overwritten"), (is_bare, "no payload")]
    return ", ".join(text for is_so, text in notes if is_so)


HEADINGS = {"INDEX": ">", "TASK": ">", "KERNEL": "<", "STAGE": "<", "ROLE": "<", "ARG": "<", "DTYPE": "<", "SHAPE": "<",
            "BYTES": ">", "HASH": "<", "NOTE": "<"}


def row_cells(entry):
    """`has_payload` is added to the manifest's fields: there an empty tensor looks like one without."""
    name = name_text(entry.get("arg_name", ""))
    is_tensor = entry["kind"] == "tensor"
    shape = f"[{', '.join(map(str, entry['shape']))}]"
    value = "" if is_tensor else "= " + element_text(entry["dtype"], scalar_array(entry)[0])
    return {"INDEX": str(entry["index"]), "TASK": entry.get("task", str(entry["task_seq"])), "KERNEL": kernel_text(entry),
            "STAGE": entry["stage"].split("_")[0], "ROLE": entry["role"].removesuffix("put"),
            "ARG": f"{entry['arg_index']} {name}".rstrip(), "DTYPE": entry["dtype"], "SHAPE": shape if is_tensor else value,
            "BYTES": str(entry["bin_size"]) if entry["has_payload"] else "-", "HASH": entry.get("hash", "-")[:8],
            "NOTE": note_text(entry)}


def pad(text, width, alignment):
    space = " " * (width - text_width(text))
    return space + text if alignment == ">" else text + space


def table_widths(rows):
    widths = {heading: max([text_width(row[heading]) for row in rows], default=0) for heading in HEADINGS}
    return {heading: max(width, len(heading)) for heading, width in widths.items() if width > 0}


def table_lines(entries):
    """All lines of the table where there is room, without spaces at their ends."""
    rows = [row_cells(entry) for entry in entries]
    widths = table_widths(rows)
    return [" ".join(pad(row[heading], width, HEADINGS[heading]) for heading, width in widths.items()).rstrip()
            for row in [{heading: heading for heading in widths}, *rows]]


# --- the head line ---


def bytes_text(size):
    if size < 1024:
        return f"{size} byte{'' if size == 1 else 's'}"
    units = ("KiB", "MiB", "GiB")
    value, unit = size / 1024, 0
    while value >= 1023.95 and unit + 1 < len(units):
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {units[unit]}"


def plural(count, word):
    return f"{count:,} {word if count == 1 else word[:-1] + 'ies' if word.endswith('y') else word + 's'}"


def head_line(manifest, task_count):
    run = manifest["run"]
    parts = [run["platform"], run["runtime"], manifest["dump_level"]]
    line = ", ".join([" ".join(filter(None, [run["scene"], run["case"]])), *filter(None, parts)])
    records = manifest["total_tensors"] + manifest["in_flight_tensors"]
    line += f": {plural(records, 'entry')} of {plural(task_count, 'task')}, {bytes_text(manifest['payload_bytes'])}"
    if manifest["stored_bytes"] != manifest["payload_bytes"]:
        line += f" ({bytes_text(manifest['stored_bytes'])} stored)"
    line += f"; {manifest['dropped_records']:,} lost; {len(manifest['skipped']):,} skipped"
    for key, word in (("truncated_tensors", "truncated"), ("in_flight_tensors", "in flight")):
        line += f"; {manifest[key]:,} {word}" if manifest[key] else ""
    line += f"; {plural(len(manifest['results']), 'result')}" if manifest["results"] else ""
    if not manifest["complete"]:
        line += f"; not complete: {manifest['status']}"
    elif manifest["status"] != "ok":
        line += f"; {manifest['status']}"
    return line
