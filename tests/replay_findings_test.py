#!/usr/bin/python3
"""What glassbox replay finds in one kernel alone: stray writes, reads of what it was not given, elements that it forgets, chance.

usage: replay_findings_test.py GLASSBOX EXAMPLES

Each bad kernel has a good twin. Extents, elements and owners are computed from the manifest.
"""
import sys

import numpy as np

from command_support import PLATFORMS, RUNTIMES, check
from replay_findings_support import ANY, N, Scene, check_text, kinds, replayed
from replay_support import run_parts

TWICE = "for (int i = 0; i < n; ++i) y[i] = 2 * x[i];"
COPY = "for (int i = 0; i < n; ++i) y[i] = x[i];"
# A sample: every platform, every runtime, both devices.
VARIANTS = [("-p", "a2a3sim", "--runtime", "tensormap_and_ringbuffer"), ("-p", "a5sim", "--runtime", "host_build_graph"),
            ("-p", "a2a3sim", "--runtime", "aicpu_build_graph", "--device", "thread")]


def runs_of(scene, code):
    """The scene in all variants, each with all tasks replayed; single replays of the first."""
    for i, options in enumerate(VARIANTS):
        check(f"{scene.name} {options}: known names", (options[1] in PLATFORMS, options[3] in RUNTIMES), (True, True))
        run = scene.run(*options, name=f"{scene.name}-{i}")
        run.replay_all(code=code)
        if i == 0:
            run.compare_singles()
        yield run


def changed_bytes(old, new):
    return sum(a != b for a, b in zip(old.tobytes(), new.tobytes()))


# --- stray writes ---


def make_strays():
    s = Scene("strays")
    x = s.tensor("x")
    args = "in x, out y"
    s.once("good", args, TWICE, x, s.output("y_good"))
    s.once("end1", args, TWICE + " y[n] = 3 * x[0];", x, s.output("y_end1"))
    s.once("end5", args, TWICE + " for (int i = 0; i < 5; ++i) y[n + i] = x[i];", x, s.output("y_end5"))
    s.once("begin1", args, TWICE + " y[-1] = x[1];", x, s.output("y_begin1"))
    s.once("begin3", args, TWICE + " for (int i = 1; i <= 3; ++i) y[-i] = x[i];", x, s.output("y_begin3"))
    s.once("near", args, TWICE + " y[n + 7] = x[0];", x, s.output("y_near"))
    rows = "for (int i = 0; i %s 8; ++i) for (int j = 0; j < 16; ++j) y[i * 16 + j] = x[(i * 16 + j) %% 64];"
    s.once("rows", args, rows % "<", x, s.output("y_rows", (8, 16)))
    s.once("one_row_more", args, rows % "<=", x, s.output("y_row", (8, 16)))
    s.once("input", args, TWICE + " x[3] = 77.0f;", s.tensor("x_input"), s.output("y_input"))
    left = "for (int i = 0; i < 8; ++i) for (int j = 0; j < 8; ++j) y[i * Y->strides[0] + j] = x[i * 8 + j];"
    gap = left + " y[2 * 16 + 8] = x[0]; y[2 * 16 + 9] = x[1];"
    s.once("left", args, left, x, s.output("y_left", (8, 16))[:, :8])
    s.once("gap", args, gap, x, s.output("y_gap", (8, 16))[:, :8])
    halves = s.output("y_halves", (8, 16))
    s.kernel("into_right", args, gap)
    s.task("into_right", x, halves[:, :8])
    s.task("left", x, halves[:, 8:], name="right")
    make_tiles(s, x)
    return s


def make_tiles(s, x):
    args = "in x, out y"
    tiles, others = s.output("tiles", (4, N)), s.output("others", (4, N))
    s.kernel("tile", args, TWICE)
    s.kernel("and_next", args, TWICE + " for (int i = 0; i < 16; ++i) y[n + i] = x[i];")
    s.kernel("only_next", args, "for (int i = 0; i < n; ++i) y[n + i] = 2 * x[i];")
    for i in range(4):
        s.task("and_next" if i == 1 else "tile", x, tiles[i], name=f"tile{i}")
    for i in range(4):
        s.task("only_next" if i == 1 else "tile", x, others[i], name=f"other{i}")


def check_strays():
    for run in runs_of(make_strays(), 1):
        x = run.values("good", 0, "before_dispatch")
        check("strays: recorded", run.values("good", 1).tobytes(), (2 * x).tobytes())
        check("strays: recorded tile that nobody wrote", np.isnan(run.values("other1", 1)).all(), True)
        check("strays: recorded tile with too much", run.values("tile1", 1).tobytes(), (2 * x).tobytes())
        run.good("good", "rows", "left", "right", "tile0", "tile2", "tile3", "other0", "other2", "other3")
        for name, first, count in (("end1", N, 1), ("end5", N, 5), ("begin1", -1, 1), ("begin3", -3, 3), ("near", N + 7, 1)):
            run.found(name, "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address(name, 1, (first,)), size=4 * count,
                      span=4 * count, owner=None)
        found = run.found("one_row_more", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("one_row_more", 1, (8, 0)),
                          size=64, span=64)
        check_text(run, "one_row_more", found)
        check_input(run)
        run.found("gap", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("gap", 1, (2, 8)), size=8, span=8, owner=None)
        run.found("into_right", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("right", 1, (2, 0)), size=8, span=8,
                  owner=run.owner("right", 1, (2, 0)))
        run.found("tile1", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("tile2", 1, (0,)), size=64, span=64,
                  owner=run.owner("tile2", 1, (0,)))
        check_wrong_tile(run)


def check_input(run):
    old = run.values("input", 0, "before_dispatch")[3]
    run.found("input", "stray_write", verdict="bit_exact", arg=0, element=(3,), owner=run.owner("input", 0, (3,)),
              address=(run.address("input", 0, (3,)), run.address("input", 0, (3,)) + 3), size=changed_bytes(old, np.float32(77)), span=(1, 4))


def check_wrong_tile(run):
    """The next tile instead of its own: a stray write, and its own tile is missing in the result."""
    run.found("other1", "stray_write", others=["unwritten_read"], verdict="nothing_written", arg=1, element=None, size=4 * N, span=4 * N,
              address=run.address("other2", 1, (0,)), owner=run.owner("other2", 1, (0,)))
    run.found("other1", "unwritten_read", others=["stray_write"], arg=1, element=(0,), size=4 * N, span=4 * N,
              address=run.address("other1", 1, (0,)), owner=run.result_owner("others", (1, 0)))


# --- far away ---


def check_far():
    """Several pages away may be found by poison or by a fault, far away only by a fault."""
    s = Scene("far")
    x, big = s.tensor("x"), s.output("big", (1024, 1024))
    args = "in x, out y"
    s.kernel("row", args, "for (int i = 0; i < n; ++i) y[i] = x[i % 64];")
    s.kernel("pages_away", args, "for (int i = 0; i < n; ++i) y[i] = x[i % 64]; for (int i = 0; i < 4; ++i) y[5 * 1024 + i] = x[i];")
    s.kernel("far_away", args, "for (int i = 0; i < n; ++i) y[i] = x[i % 64]; for (int i = 0; i < 4; ++i) y[900 * 1024 + i] = x[i];")
    s.kernel("reads_far", args, "for (int i = 0; i < n; ++i) y[i] = y[i % 64 - 700 * 1024];")
    s.task("pages_away", x, big[20])
    s.task("row", x, big[25], name="row25")
    s.task("far_away", x, big[21])
    s.task("row", x, big[921], name="row921")
    s.task("reads_far", x, big[750])
    s.task("row", x, big[50], name="row50")
    for options in VARIANTS[:2]:
        run = s.run(*options, name=f"far-{options[1]}")
        document = run.replay_all(code=3)
        check("far: verdicts", {v: n for v, n in document["verdicts"].items() if n},
              {"bit_exact": 4 - (run.documents["pages_away"]["verdict"] == "fault"), "fault": 2 + (run.documents["pages_away"]["verdict"] == "fault")})
        run.good("row25", "row921", "row50")
        size = None if run.documents["pages_away"]["verdict"] == "fault" else 16
        run.found("pages_away", "stray_write", arg=1, element=None, size=size, address=run.address("row25", 1, (0,)), owner=run.owner("row25", 1, (0,)))
        found = run.found("far_away", "stray_write", verdict="fault", arg=1, element=None, address=run.address("row921", 1, (0,)),
                          owner=run.owner("row921", 1, (0,)))
        check("far: bytes are not known", found and found["extent"]["bytes"], None)
        fault = run.documents["far_away"]["fault"]
        check("far: fault", (fault and fault["signal"], fault and int(fault["address"], 16)), (11, run.address("row921", 1, (0,))))
        found = run.found("reads_far", "undeclared_read", verdict="fault", address=run.address("row50", 1, (0,)))
        check("far: bytes that were read", found and found["extent"]["bytes"], None)
        run.compare_singles()


# --- reads ---


def make_reads():
    s = Scene("reads")
    x, whole = s.tensor("x"), s.tensor("whole", (8, 16))
    ints = s.tensor("ints", dtype="int32")
    zero = {"fill": "constant", "value": 0}
    args = "in x, out y"
    s.once("shifted", args, "for (int i = 0; i < n; ++i) y[i] = x[i + 1];", x, s.output("y_shifted"))
    s.once("not_shifted", args, "for (int i = 0; i < n; ++i) y[i] = x[i + 1 < n ? i + 1 : i];", x, s.output("y_not_shifted"))
    s.once("from_before", args, "for (int i = 0; i < n; ++i) y[i] = x[i - 1];", x, s.output("y_from_before"))
    s.once("looks", args, "volatile float seen = x[n]; (void)seen; " + COPY, x, s.output("y_looks"))
    square = "for (int i = 0; i < 8; ++i) for (int j = 0; j < 8; ++j) y[i * 8 + j] = x[i * 16 + j%s];"
    s.once("columns", args, square % "", whole[:, :8], s.output("y_columns", (8, 8)))
    s.once("column_more", args, square % " + (i == 2 && j == 7)", whole[:, :8], s.output("y_column", (8, 8)))
    s.once("adds", args, "for (int i = 0; i < n; ++i) y[i] += x[i];", ints, s.output("y_adds", dtype="int32", **zero), dtype="int32")
    s.once("adds_floats", args, "for (int i = 0; i < n; ++i) y[i] += x[i];", x, s.output("y_floats", **zero))
    s.once("adds_one", args, COPY + " y[17] += x[0];", ints, s.output("y_one", dtype="int32"), dtype="int32")
    s.once("adds_late", args, "y[17] ^= x[0]; for (int i = 0; i < n; ++i) if (i != 17) y[i] = x[i];", ints, s.output("y_late", dtype="int32", **zero), dtype="int32")
    s.once("adds_inout", "in x, inout y", "for (int i = 0; i < n; ++i) y[i] += x[i];", ints, s.tensor("y_inout", dtype="int32", role="inout"), dtype="int32")
    s.once("other_output", "in x, out y, out z", "for (int i = 0; i < n; ++i) { z[i] = y[i]; y[i] = x[i]; }", ints, s.output("y_two", dtype="int32", **zero),
           s.output("z_two", dtype="int32"), dtype="int32")
    s.once("own_output", "in x, out y, out z", "for (int i = 0; i < n; ++i) { y[i] = x[i]; z[i] = y[i]; }", ints, s.output("y_own", dtype="int32"),
           s.output("z_own", dtype="int32"), dtype="int32")
    fresh = s.temporary("fresh", dtype="int32")
    s.kernel("adds_to_fresh", args, "for (int i = 0; i < n; ++i) y[i] += x[i];", dtype="int32")
    s.task("adds_to_fresh", ints, fresh)
    s.once("reads_fresh", args, COPY, fresh, s.output("y_fresh", dtype="int32"), dtype="int32")
    make_chance(s, x)
    return s


def make_chance(s, x):
    args = "in x, out y"
    s.once("counts", args, "static int calls; ++calls; for (int i = 0; i < n; ++i) y[i] = calls * x[i];", x, s.output("y_counts"))
    s.once("counts_late", args, "static int calls; ++calls; for (int i = 0; i < n; ++i) y[i] = i < 40 ? x[i] : calls * x[i];", x, s.output("y_counts_late"))
    s.once("keeps_table", args, "static int calls; if (calls++ == 0) { } " + TWICE, x, s.output("y_table"))
    s.once("unfilled", args, "for (int i = 0; i < n; ++i) y[i] = x[i] + gbx_arg_f32(args, 2);", x, s.output("y_unfilled"))
    s.once("chance", args, "for (int i = 0; i < n; ++i) y[i] = (float)rand();", x, s.output("y_chance"), head="#include <stdlib.h>")
    s.once("seeded", args, "srand(7); for (int i = 0; i < n; ++i) y[i] = (float)rand();", x, s.output("y_seeded"), head="#include <stdlib.h>")


def check_reads():
    for run in runs_of(make_reads(), 1):
        x, ints = run.values("shifted", 0, "before_dispatch"), run.values("adds", 0, "before_dispatch")
        check("reads: recorded", run.values("not_shifted", 1).tobytes(), np.append(x[1:], x[-1]).tobytes())
        for name, values in (("adds", ints), ("adds_floats", x), ("reads_fresh", ints), ("own_output", ints)):
            check(f"reads: {name} was right in the run", run.values(name, 1).tobytes(), values.tobytes())
        run.good("not_shifted", "looks", "columns", "adds_inout", "own_output", "reads_fresh", "keeps_table", "seeded")
        for name, slot, element in (("shifted", 1, (N - 1,)), ("from_before", 1, (0,)), ("column_more", 1, (2, 7)), ("adds_late", 1, (17,))):
            at = run.address(name, slot, element)
            found = run.found(name, "undeclared_read", verdict="differs", arg=slot, element=element, address=(at, at + 3), size=(1, 4), span=(1, 4), owner=None)
        check_text(run, "adds_late", found)
        run.good("adds_one")
        for name, slot in (("adds", 1), ("other_output", 2), ("adds_to_fresh", 1)):
            at = run.address(name, slot)
            run.found(name, "undeclared_read", verdict="differs", arg=slot, element=(0,), address=(at, at + 3), size=(3 * N, 4 * N),
                      span=(4 * N - 7, 4 * N), owner=None)
        run.found("adds_floats", "undeclared_read", verdict="differs", arg=1, element=ANY, address=(run.address("adds_floats", 1), run.address("adds_floats", 1, (N,))),
                  size=(N // 2, 4 * N), owner=None)
        run.found("unfilled", "undeclared_read", arg=1, element=ANY, address=(run.address("unfilled", 1), run.address("unfilled", 1, (N,))), size=(N, 4 * N), owner=None)
        run.found("counts", "not_deterministic", arg=1, element=(0,), size=(N, 4 * N), span=(4 * N - 7, 4 * N), owner=None)
        run.found("counts_late", "not_deterministic", arg=1, element=(40,), size=(24, 96), span=(96 - 7, 96), owner=None)
        run.found("chance", "not_deterministic", arg=1, element=ANY, owner=None)
        for name in ("counts", "counts_late"):
            check(f"{name}: the first call is that of the run", run.replay(name, code=1)["verdict"], "bit_exact")


# --- elements that are not written ---


def make_unwritten():
    s = Scene("unwritten")
    x, args = s.tensor("x"), "in x, out y"
    s.kernel("forgets", args, "for (int i = 0; i < n - 3; ++i) y[i] = 2 * x[i];")
    s.kernel("halves", args, "for (int i = 1; i < n; i += 2) y[i] = 2 * x[i];")
    s.kernel("nothing", args, "(void)x; (void)y;")
    s.kernel("copy", args, COPY)
    s.kernel("twice", args, TWICE)
    for name in ("read", "part", "unread", "not_there", "filled"):
        s.temporary(name)
        s.task("forgets", x, s_view(s, name), name=f"forgets_{name}")
    s.task("copy", s_view(s, "read"), s.output("y_read"), name="reads")
    s.task("copy", s_view(s, "part")[56:], s.output("y_part", (8,)), name="reads_part")
    s.task("copy", s_view(s, "not_there")[:61], s.output("y_not_there", (61,)), name="reads_not_there")
    s.task("copy", x[:3], s_view(s, "filled")[61:], name="fills")
    s.task("copy", s_view(s, "filled"), s.output("y_filled"), name="reads_filled")
    s.task("twice", x, s.temporary("complete"), name="complete")
    s.task("copy", s_view(s, "complete"), s.output("y_complete"), name="reads_complete")
    s.task("forgets", x, s.output("y_result"), name="result")
    s.task("halves", x, s.output("y_halves"), name="halves_result")
    s.task("nothing", x, s.output("y_nothing"), name="nothing_result")
    s.task("nothing", x, s.temporary("nobody"), name="nothing_unread")
    s.task("halves", x, s.output("y_matrix", (4, N))[1], name="row_of_result")
    s.once("inout", "in x, inout y", "for (int i = 1; i < n; i += 2) y[i] = 2 * x[i];", x, s.tensor("y_inout", role="inout"))
    return s


def s_view(scene, name):
    """All of a tensor that the scene has."""
    shape = next(tensor["shape"] for tensor in scene.tensors if tensor["name"] == name)
    return Scene("").tensor(name, shape)


def check_unwritten():
    for run in runs_of(make_unwritten(), 1):
        x = run.values("complete", 0, "before_dispatch")
        check("unwritten: recorded", run.values("forgets_read", 1)[:61].tobytes(), (2 * x)[:61].tobytes())
        check("unwritten: filled", run.values("reads_filled", 1).tobytes(), np.append((2 * x)[:61], x[:3]).tobytes())
        run.good("reads", "reads_part", "reads_not_there", "fills", "reads_filled", "complete", "reads_complete", "inout")
        last, written = {"arg": 1, "element": (61,), "size": 12, "span": 12}, "equal_where_written"
        found = run.found("forgets_read", "unwritten_read", verdict=written, address=run.address("forgets_read", 1, (61,)), owner=run.owner("reads", 0, (61,)), **last)
        check_text(run, "forgets_read", found)
        run.found("forgets_part", "unwritten_read", verdict=written, address=run.address("forgets_part", 1, (61,)), owner=run.owner("reads_part", 0, (5,)), **last)
        run.found("result", "unwritten_read", verdict=written, address=run.address("result", 1, (61,)), owner=run.result_owner("y_result", (61,)), **last)
        for name in ("forgets_unread", "forgets_not_there", "forgets_filled"):
            run.noted(name, "unwritten", verdict=written, address=run.address(name, 1, (61,)), owner=None, **last)
        every = {"arg": 1, "element": (0,), "size": 2 * N, "span": 4 * (N - 1)}
        run.found("halves_result", "unwritten_read", verdict=written, address=run.address("halves_result", 1), owner=run.result_owner("y_halves", (0,)), **every)
        run.found("row_of_result", "unwritten_read", verdict=written, address=run.address("row_of_result", 1), owner=run.result_owner("y_matrix", (1, 0)), **every)
        run.found("nothing_result", "unwritten_read", verdict="nothing_written", arg=1, element=(0,), size=4 * N, span=4 * N,
                  address=run.address("nothing_result", 1), owner=run.result_owner("y_nothing", (0,)))
        run.noted("nothing_unread", "unwritten", verdict="nothing_written", arg=1, element=(0,), size=4 * N, span=4 * N)
        replayed(run.dump, f"{run.numbers['reads']}..{run.numbers['reads_complete']}", code=0)
        check("unwritten: a note alone", kinds(run.replay("forgets_unread", code=0), "notes"), ["unwritten"])


# --- views and dtypes ---

GENERAL = """for (int64_t i = 0; i < Y->shape[0]; ++i) for (int64_t j = 0; j < Y->shape[1]; ++j)
        y[i * Y->strides[0] + j * Y->strides[1]] = x[i * X->strides[0] + j * X->strides[1]];"""
WIDTHS = {"float16": 2, "float32": 4, "int8": 1, "int64": 8}


def make_views():
    s = Scene("views")
    x, wide, row, args = s.tensor("x"), s.tensor("wide", (8, 16)), s.tensor("row", (16,)), "in x, out y"
    for dtype in WIDTHS:
        of_dtype = s.tensor(f"x_{dtype}", dtype=dtype)
        s.once(f"good_{dtype}", args, COPY, of_dtype, s.output(f"y_{dtype}", dtype=dtype), dtype=dtype)
        s.once(f"bad_{dtype}", args, COPY + " y[n] = x[0];", of_dtype, s.output(f"z_{dtype}", dtype=dtype), dtype=dtype)
        s.once(f"reads_{dtype}", args, "for (int i = 0; i < n; ++i) y[i] = x[i + 1];", of_dtype, s.output(f"r_{dtype}", dtype=dtype), dtype=dtype)
    s.kernel("general", args, GENERAL)
    s.kernel("row_more", args, "for (int64_t j = 0; j < Y->shape[1]; ++j) y[Y->shape[0] * Y->strides[0] + j * Y->strides[1]] = x[j]; " + GENERAL)
    s.kernel("ignores_strides", args, "for (int i = 0; i < n; ++i) y[i] = x[i];")
    s.kernel("backwards", args, "for (int64_t i = 0; i < n; ++i) y[i * Y->strides[0]] = x[i * X->strides[0]];")
    s.kernel("backwards_more", args, "for (int64_t i = 0; i <= n; ++i) y[i * Y->strides[0]] = x[i % n * X->strides[0]];")
    s.kernel("backwards_read", args, "for (int64_t i = 0; i < n; ++i) y[i] = x[(i + 1) * X->strides[0]];")
    s.task("general", wide[1::2, ::4], s.output("y_steps", (8, 16))[:4, ::4], name="steps")
    s.task("general", wide.T, s.output("y_transposed", (16, 8)), name="transposed")
    s.task("general", wide, s.output("y_into_transposed", (16, 8)).T, name="into_transposed")
    s.task("row_more", wide[:, :], s.output("y_transposed_more", (16, 8)).T, name="transposed_more")
    s.task("general", row.broadcast(8), s.output("y_broadcast", (8, 16)), name="broadcast")
    s.task("ignores_strides", row.broadcast(8), s.output("y_ignores", (8, 16)), name="not_broadcast")
    s.task("ignores_strides", wide[:, :8], s.output("y_ignores_gaps", (8, 8)), name="not_strided")
    s.task("backwards", x[::-1], s.output("y_backwards")[::-1], name="backwards")
    s.task("backwards_more", x[::-1], s.output("y_backwards_more")[::-1], name="backwards_more")
    s.task("backwards_read", x[::-1], s.output("y_backwards_read"), name="backwards_read")
    make_small(s, x)
    return s


def make_small(s, x):
    """int4, one element without dimensions, tensors without elements."""
    nibbles, args = s.tensor("nibbles", (3, 5), "int4"), "in x, out y"
    rows = "for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) y[i * 3 + j] = (uint8_t)(x[i * 3 + j] | (j == 2 ? 0x%s0 : 0));"
    s.once("int4_filled", args, rows % "f", nibbles, s.output("y_filled", (3, 5), "int4"), dtype="int4")
    s.once("int4_kept", args, (rows % "0").replace("| (j == 2", "| (j == 2 ? y[i * 3 + j] & 0xf0 : 0) | (0"), nibbles, s.output("y_kept", (3, 5), "int4"), dtype="int4")
    s.once("int4_more", args, rows % "0" + " y[9] = x[0]; y[10] = x[1];", nibbles, s.output("y_more", (3, 5), "int4"), dtype="int4")
    s.once("int4_forgets", args, (rows % "0").replace("j < 3", "j < (i == 1 ? 2 : 3)"), nibbles, s.output("y_forgets", (3, 5), "int4"), dtype="int4")
    s.once("int4_half_read", args, rows % "0" + " y[2] = (uint8_t)(x[2] >> 4);", nibbles, s.output("y_half", (3, 5), "int4"), dtype="int4")
    point, number = s.tensor("point", ()), s.tensor("number", (), "int32")
    s.once("point_good", args, "y[0] = 2 * x[0];", point, s.output("y_point", ()))
    s.once("point_more", args, "y[0] = 2 * x[0]; y[1] = x[0];", point, s.output("y_point_more", ()))
    s.once("point_adds", args, "y[0] += x[0];", number, s.output("y_point_adds", (), "int32", fill="constant", value=0), dtype="int32")
    s.once("point_forgets", args, "(void)y;", point, s.output("y_point_forgets", ()))
    empty = s.tensor("empty", (0, 4))
    s.once("empty_in", "in x, in e, out y", TWICE, x, empty, s.output("y_empty_in"))
    s.once("empty_out", "in x, out e, out y", TWICE, x, s.output("e_out", (0, 4)), s.output("y_empty_out"))
    s.once("empty_written", "in x, out e, out y", TWICE + " e[0] = x[0];", x, s.output("e_written", (0, 4)), s.output("y_empty_written"))


def check_dtypes(run):
    for dtype, width in WIDTHS.items():
        check(f"{dtype}: recorded", run.values(f"good_{dtype}", 1).tobytes(), run.values(f"good_{dtype}", 0, "before_dispatch").tobytes())
        run.good(f"good_{dtype}")
        run.found(f"bad_{dtype}", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address(f"bad_{dtype}", 1, (N,)), size=width, span=width)
        at = run.address(f"reads_{dtype}", 1, (N - 1,))
        run.found(f"reads_{dtype}", "undeclared_read", verdict="differs", arg=1, element=(N - 1,), address=(at, at + width - 1), size=(1, width), span=(1, width))


def check_views():
    for run in runs_of(make_views(), 1):
        wide, row = run.values("transposed", 0, "before_dispatch").T, run.values("broadcast", 0, "before_dispatch")
        for name, want in (("steps", wide[1::2, ::4]), ("transposed", wide.T), ("into_transposed", wide), ("transposed_more", wide), ("broadcast", row),
                           ("backwards", run.values("backwards", 0, "before_dispatch")), ("empty_out", None)):
            if want is not None:
                check(f"views: {name} recorded", run.values(name, 1).tolist(), want.tolist())
        check("views: the row that is broadcast", (row == row[0]).all(), True)
        check_dtypes(run)
        run.good("steps", "transposed", "into_transposed", "broadcast", "backwards", "int4_filled", "int4_kept", "point_good", "empty_in", "empty_out")
        # Of the row behind the last one, all but one element are elements of the transposed tensor.
        run.found("transposed_more", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("transposed_more", 1, (8, 15)), size=4, span=4)
        for name, element, size in (("not_broadcast", (1, 0), 112), ("not_strided", (1, 0), 56)):
            at = run.address(name, 1, element)
            run.found(name, "undeclared_read", verdict="differs", arg=1, element=element, address=(at, at + 3), size=(size // 4, 4 * size))
        run.found("backwards_more", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("backwards_more", 1, (N,)), size=4, span=4)
        at = run.address("backwards_read", 1, (N - 1,))
        run.found("backwards_read", "undeclared_read", verdict="differs", arg=1, element=(N - 1,), address=(at, at + 3), size=(1, 4))
        check_small(run)


def check_small(run):
    run.found("int4_more", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("int4_more", 1) + 9, size=2, span=2)
    run.found("int4_forgets", "unwritten_read", verdict="equal_where_written", arg=1, element=(1, 4), address=run.address("int4_forgets", 1) + 5, size=1,
              span=1, owner=run.result_owner("y_forgets", (1, 4)))
    at = run.address("int4_half_read", 1) + 2
    check("int4: address of a row", run.address("int4_half_read", 1, (1, 0)), at + 1)
    check("int4: kinds of a half byte that fills a row and is read", set(kinds(run.documents["int4_half_read"])) <= {"undeclared_read"}, True)
    run.found("point_more", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("point_more", 1) + 4, size=4, span=4)
    at = run.address("point_adds", 1)
    run.found("point_adds", "undeclared_read", verdict="differs", arg=1, element=(), address=(at, at + 3), size=(1, 4), owner=None)
    run.found("point_forgets", "unwritten_read", verdict="nothing_written", arg=1, element=(), address=run.address("point_forgets", 1), size=4, span=4,
              owner=run.result_owner("y_point_forgets", ()))
    check("empty: recorded", run.values("empty_out", 1).shape, (0, 4))
    run.found("empty_written", "stray_write", verdict="bit_exact", element=None, address=run.address("empty_written", 1), size=4, span=4)


if __name__ == "__main__":
    sys.exit(run_parts(check_strays, check_far, check_reads, check_unwritten, check_views))
