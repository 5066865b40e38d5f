#!/usr/bin/python3
"""What glassbox replay finds when it calls blocks one at a time: counters and what hides behind them, styles that are right, blocks that fail
alone, and what it says about questions that it could not ask.

usage: replay_findings_order_test.py GLASSBOX EXAMPLES

What is wrong with each kernel is planted; the rest is right if its additions are atomic.
"""
import sys

import numpy as np

from command_support import check, check_in, glassbox
from replay_findings_support import ANY, Scene, kinds, write_kernel
from replay_support import run_parts

MANY = 96  # more blocks than run at a time: the last begin when the first have returned
ADD = "__atomic_fetch_add(%s, %s, __ATOMIC_SEQ_CST)"


def counter(s, name, shape=(1,), dtype="int32", value=0):
    return s.tensor(name, shape, dtype, "inout", fill="constant", value=value)


def text_of(run, task, *options):
    return glassbox("replay", run.dump, "--task", task, *options).stdout


# --- stores that look like counters, counters that hide stores ---


def check_stores():
    s = Scene("stores")
    x = s.tensor("x", (4,))

    def add(name, args, body, *views, blocks):
        s.once(name, f"in x, {args}", body, x, *views, blocks=blocks)

    add("behind", "inout int32_t c", "for (int i = 0; i < 64; ++i) " + ADD % ("&c[i]", "1") + "; for (int i = 64; i < 128; ++i) c[i] = 100 + block;",
        counter(s, "c_behind", (128,)), blocks=4)
    add("flagged", "inout int32_t c", "c[0] = block == 1;", counter(s, "c_flagged"), blocks=3)
    add("in_turn", "inout int32_t c", "c[0] = block != 1;", counter(s, "c_turn"), blocks=3)
    add("in_turn_odd", "inout int64_t c", "c[1] = block % 2 == 0 ? 7 : 2;", counter(s, "c_odd", (2,), "int64", 2), blocks=7)
    # A race of reads: each block reads its neighbour. The store is no counter, and must not hide it.
    add("neighbours", "out y, inout int32_t c", "c[0] = block == 1; y[block] = 1; y[4 + block] = y[(block + 1) % 3];", s.output("y_neighbours", (8,)),
        counter(s, "c_neighbours"), blocks=3)
    add("same_value", "out y, inout int32_t c", ADD % ("&c[0]", "1") + "; y[block] = x[block]; if (block != 1) y[4] = 3;", s.output("y_same", (5,)),
        counter(s, "c_same"), blocks=4)
    run = s.run()
    run.replay_all(code=1)
    run.found("same_value", "write_race", notes=["counter"], verdict="bit_exact", arg=1, element=(4,), blocks=[(0, "aiv0"), (3, "aiv0")])
    found = run.found("behind", "write_race", others=["not_deterministic"], notes=["counter"], arg=1, element=(64,), blocks=ANY)
    if found:
        check("behind: elements", (found["elements"], run.documents["behind"]["notes"][0]["elements"]), (64, 64))
    for name, element in (("flagged", (0,)), ("in_turn", (0,)), ("in_turn_odd", (1,))):
        run.found(name, "write_race", others=["not_deterministic"], arg=1, element=element, blocks=ANY)
    check("neighbours: both races", {"write_race", "read_race"} - set(kinds(run.documents["neighbours"])), set())
    check("stores: asked", {document["order"] for document in run.documents.values()}, {"asked"})


# --- styles that are right ---


def make_right():
    s = Scene("right")
    x = s.tensor("x", (32,))
    row = "for (int j = 0; j < 4; ++j) y[t * 4 + j] = 2 * x[t * 4 + j];"

    def add(name, args, body, *views, blocks=4):
        s.once(name, f"in x, {args}", body, x, *views, blocks=blocks)

    tiles = "int t; while ((t = %s) < 8) { %s }" % (ADD % ("&c[0]", "1"), row)
    add("tiles", "out y, inout int32_t c", tiles, s.output("y_tiles", (32,)), counter(s, "c_tiles"))
    add("tiles_then_reset", "out y, inout int32_t c", tiles + " if (" + ADD % ("&c[1]", "1") + " == 3) c[0] = c[1] = 0;", s.output("y_reset", (32,)),
        counter(s, "c_reset", (2,)))
    add("by_ticket", "out y, inout int32_t c", "int t = %s; for (; t < 8; t += 4) { %s }" % (ADD % ("&c[0]", "1"), row), s.output("y_ticket", (32,)),
        counter(s, "c_ticket"))
    # Whoever arrives last sums up what all have left, in order of the blocks, and puts the counter back.
    last = "t[block] = x[block]; if (%s == 3) { y[0] = t[0] + t[1] + t[2] + t[3]; c[0] = 0; }" % (ADD % ("&c[0]", "1"))
    add("last_sums", "out t, out y, inout int32_t c", last, s.output("t_last", (4,)), s.output("y_last", (1,)), counter(s, "c_last"))
    add("last_sums_first", "inout int32_t c, out t, out y", last, counter(s, "c_first"), s.output("t_first", (4,)), s.output("y_first", (1,)))
    # Only three of five have work.
    add("some_arrive", "out t, out y, inout int32_t c", "if (block >= 3) return; t[block] = x[block]; if (%s == 2) { y[0] = t[0] + t[1] + t[2]; c[0] = 0; }"
        % (ADD % ("&c[0]", "1")), s.output("t_some", (3,)), s.output("y_some", (1,)), counter(s, "c_some"), blocks=5)
    # Items are counted too, and a block may have none: the last takes the sum, and puts back both.
    add("items", "out int32_t y, inout int32_t c", ADD % ("&c[1]", "block % 2 ? 3 : 0") + "; if (" + ADD % ("&c[0]", "1")
        + " == 3) { y[0] = c[1]; c[0] = c[1] = 0; }", s.output("y_items", (1,), "int32"), counter(s, "c_items", (2,)))
    add("signed", "inout int64_t c", "for (int i = 0; i < 8; ++i) " + ADD % ("&c[i]", "(block % 3 - 1) * (i - 3)") + ";",
        counter(s, "c_signed", (8,), "int64"), blocks=5)
    add("up_down_up", "inout int32_t c", ADD % ("&c[0]", "block == 1 ? -1 : 1") + ";", counter(s, "c_up"), blocks=3)
    # One counter for each pair of blocks: the second of a pair adds up.
    pairs = "t[block] = 2 * x[block]; if (%s == 1) { y[block / 2] = t[block / 2 * 2] + t[block / 2 * 2 + 1];%s }"
    for name, reset in (("pairs", ""), ("pairs_reset", " c[block / 2] = 0;")):
        add(name, "out t, out y, inout int32_t c", pairs % (ADD % ("&c[block / 2]", "1"), reset), s.output(f"t_{name}", (8,)), s.output(f"y_{name}", (4,)),
            counter(s, f"c_{name}", (4,)), blocks=8)
    # Whoever arrives last changes what all have left, where it is.
    add("in_place", "out y, inout int32_t c", "for (int j = 0; j < 4; ++j) y[block * 4 + j] = x[block * 4 + j]; if (%s == 7) for (int j = 0; j < 32; ++j) y[j] *= 2;"
        % (ADD % ("&c[0]", "1")), s.output("y_in_place", (32,)), counter(s, "c_in_place"), blocks=8)
    return s


def check_right():
    run = make_right().run()
    run.replay_all(code=0)
    x = run.values("tiles", 0, "before_dispatch")
    for name in ("tiles", "tiles_then_reset", "by_ticket", "in_place"):
        check(f"right: {name} recorded", run.values(name, 1).tobytes(), (2 * x).tobytes())
    check("right: sum recorded", run.values("last_sums", 2).tobytes(), (x[0] + x[1] + x[2] + x[3]).astype(np.float32).tobytes())
    check("right: counters recorded", [run.values(name, slot).tolist() for name, slot in (("tiles", 2), ("items", 1), ("items", 2), ("up_down_up", 1))],
          [[12], [6], [0, 0], [1]])
    for name in run.numbers:
        run.noted(name, "counter", blocks=ANY)
    run.compare_singles()


def check_cores():
    """Memory of a core is shared by the blocks that run there, one after the other; a slot by number is not."""
    s = Scene("cores")
    x = s.tensor("x", (32,))
    slot = "int c = %s; for (int j = 0; j < 4; ++j) w[c * 4 + j] = x[block] + j; for (int j = 0; j < 4; ++j) y[block * 4 + j] = w[c * 4 + j];"
    for name, index in (("by_core", "(int)gbx_local(args)->core_id"), ("by_number", "block % 8")):
        s.once(name, "in x, out y, inout w", slot % index, x, s.output(f"y_{name}", (32, 4)),
               s.tensor(f"w_{name}", (24, 4), role="inout", fill="constant", value=-1), blocks=32)
    # Without a step its loop has no end: a replay that clears integers to look for flags must not hang in it.
    steps = s.tensor("steps", (1,), "int32", fill="constant", value=4)
    s.once("steps", "in x, in int32_t k, out y", "for (int i = block; i < n; i += k[0]) y[i] = 2 * x[i];", x, steps, s.output("y_steps", (32,)), blocks=4)
    for options in ((), ("--dump-args",)):
        run = s.run(*options, name=f"cores{len(options)}")
        run.replay_all("--timeout", 5, code=1)
        x_values = run.values("by_core", 0, "before_dispatch")
        for name in ("by_core", "by_number"):
            check(f"cores: {name} recorded", run.values(name, 1).shape, (32, 4))
        check("cores: recorded", run.values("by_core", 1).tobytes(), (x_values[:, None] + np.arange(4, dtype=np.float32)).astype(np.float32).tobytes())
        run.good("steps")
        check("cores: flags were asked", run.documents["steps"]["flags_are_unknown"], False)
        check("cores: races of memory of a core", {"write_race", "read_race"} & set(kinds(run.documents["by_core"])), set())
        found = run.found("by_number", "write_race", others=["not_deterministic", "read_race"], arg=2, element=(0, 0), blocks=ANY)
        check("cores: blocks", sorted(block["block_idx"] % 8 for block in found["blocks"]) if found else None, [0, 0])


# --- the order of arguments, and chance ---


def check_chance():
    s = Scene("chance")
    x = s.tensor("x", (8, 16))
    ticket = "y[block] = %s;" % (ADD % ("&c[0]", "1"))
    s.once("before", "in x, out int32_t y, inout int32_t c", ticket, x, s.output("y_before", (4,), "int32"), counter(s, "c_before"), blocks=4)
    s.once("after", "in x, inout int32_t c, out int32_t y", ticket, x, counter(s, "c_after"), s.output("y_after", (4,), "int32"), blocks=4)
    s.once("floats", "in x, out y, inout int32_t c", ticket, x, s.output("y_floats", (4,)), counter(s, "c_floats"), blocks=4)
    # Each block writes its own rows; what it writes is never the same.
    own = "static unsigned seed = 1; for (int i = block * 32; i < block * 32 + 32; ++i) y[i] = x[i] + __atomic_fetch_add(&seed, 1, 0);"
    s.once("seeds", "in x, out y", own, x, s.output("y_seeds", (8, 16)), blocks=4)
    run = s.run()
    run.replay_all(code=1)
    for name in ("before", "after", "floats"):
        document = run.documents[name]
        check(f"ticket {name}", (set(kinds(document)) - {"not_deterministic"}, kinds(document, "notes")), (set(), ["counter"]))
    check("seeds", (kinds(run.documents["seeds"]), kinds(run.documents["seeds"], "notes")), (["not_deterministic"], []))


# --- blocks that fail alone ---


def check_failing():
    s = Scene("failing")
    x, args = s.tensor("x", (MANY,)), "in x, out y"
    s.once("spmd", args, "y[block] = 2 * x[block];", x, s.output("y", (MANY,)), blocks=MANY)
    run = s.run()
    run.replay_all(code=0)
    last, own = MANY - 1, " y[block] = 2 * x[block];"
    for name, body, blocks, words in (
            ("needs", f"if (block == {last} && y[3] != 2 * x[3]) __builtin_trap();", [last, 3], "has not run before it"),
            ("needs_two", f"if (block == {last} && (y[3] != 2 * x[3] || y[5] != 2 * x[5])) __builtin_trap();", [last, 5], "has not run before it"),
            ("exits", f"if (block == {last} && y[3] != 2 * x[3]) _exit(0);", [last, 3], "has not run before it"),
            ("bears_not", f"if (block == 2 && y[{last}] == 2 * x[{last}]) __builtin_trap();", [2, last], "has run before it")):
        document = run.replay("spmd", "--kernel", write_kernel(name, args, body + own, head="#include <unistd.h>"), code=1)
        check(f"{name}: order", document["order"], "one_fails")
        found = run.found("spmd", "read_race", document=document, verdict="bit_exact", element=None, blocks=[(block, "aiv0") for block in blocks])
        if found:
            check(f"{name}: no argument", (found["arg_index"], found["extent"], found["elements"]), (None, None, 0))
            check(f"{name}: sentence", found["sentence"].split(", ", 2)[2],
                  f"has a race: block {blocks[0]} (aiv0) fails if block {blocks[1]} (aiv0) {words}")
    # Calls one at a time are made by a process that another one of its group has started.
    always = write_kernel("always", args, "if (block == 3 && getpid() != getpgrp()) __builtin_trap();" + own, head="#include <unistd.h>")
    document = run.replay("spmd", "--kernel", always, code=0)
    check("fails always, alone", (document["order"], kinds(document), kinds(document, "notes")), ("one_fails", [], []))
    done = glassbox("replay", run.dump, "--task", 0, "--kernel", always)
    check_in("fails always, alone: text", "not asked: whether its blocks race, because a block called alone fails\n", done.stdout)


def check_giving_up():
    """A block that waits without yielding, and gives up, is not accused; that it was not asked is said."""
    s = Scene("giving_up")
    x, args = s.tensor("x", (4, 16)), "in x, out y, out int32_t p"
    body = ("if (block == 0) __atomic_store_n(&p[0], 1, __ATOMIC_SEQ_CST); volatile int *q = (volatile int *)p; "
            "for (volatile int w = 0; w < 100000000 && *q != 1; ++w) ; if (*q != 1) __builtin_trap(); "
            "for (int i = 0; i < 16; ++i) y[block * 16 + i] = x[block * 16 + i];")
    s.once("spmd", args, body, x, s.output("y", (4, 16)), s.output("p", (1,), "int32"), blocks=4)
    s.once("plain", args, "p[block] = 0; for (int i = 0; i < 16; ++i) y[block * 16 + i] = x[block * 16 + i];", x, s.output("z", (4, 16)),
           s.output("q", (4,), "int32"), blocks=4)
    run = s.run()
    run.replay_all(code=0)
    check("giving up", [(run.documents[name]["order"], kinds(run.documents[name])) for name in ("spmd", "plain")], [("one_fails", []), ("asked", [])])
    text = text_of(run, "all")
    check_in("giving up: asked", "asked: 2 tasks called in memory with a pattern, again, and with another pattern; 1 block by block in both orders\n", text)
    check_in("giving up: not asked", "not asked: races in 1 task, because a block called alone fails\n", text)


# --- flags of many blocks ---


def check_flags():
    s = Scene("flags")
    x, args = s.tensor("x", (MANY,)), "in x, out y, inout uint32_t flags"
    own = " y[block] = x[block];"
    s.once("late", args, "if (block == 90) gbx_flag_wait(&flags[1], 1); if (block == 91) gbx_flag_set(&flags[1], 1);" + own, x,
           s.output("y_late", (MANY,)), counter(s, "f_late", (4,), "uint32", 1), blocks=MANY)
    s.once("needs", args, "if (block == 1 && flags[3] == 0) __builtin_trap(); gbx_flag_wait(&flags[3], 1);" + own, x, s.output("y_needs", (MANY,)), counter(s, "f_needs", (4,), "uint32", 1),
           blocks=MANY)
    s.once("none", args, own, x, s.output("y_none", (MANY,)), counter(s, "f_none", (4,), "uint32", 1), blocks=MANY)
    run = s.run()
    run.replay_all(code=1)
    run.found("late", "stale_flag", arg=2, element=(1,), blocks=[(90, "aiv0"), (91, "aiv0")])
    check("flags: unknown", {name: document["flags_are_unknown"] for name, document in run.documents.items()}, {"late": False, "needs": True, "none": False})
    check("flags: races asked", {document["order"] for document in run.documents.values()}, {"asked"})
    check("flags: needs", kinds(run.documents["needs"]), [])
    why = "because a block called alone fails, hangs or takes too long\n"
    check_in("flags: all", "not asked: whether flags of earlier tasks satisfy waits in 1 task, " + why, text_of(run, "all"))
    check_in("flags: one", "not asked: whether flags of earlier tasks satisfy its waits, " + why, text_of(run, run.numbers["needs"]))


# --- more than there are places for ---


def check_left_out():
    s = Scene("left_out")
    x, counters, raced = s.tensor("x", (4,)), 17, 20
    args = "in x, " + ", ".join(f"inout int32_t c{i}" for i in range(counters))
    body = " ".join(ADD % (f"c{i}", "1") + ";" for i in range(counters))
    a, b, d = counter(s, "a", (counters, 1)), counter(s, "b", (counters, 1)), counter(s, "d", (raced, 1))
    s.once("counts", args, body, x, *(a[i] for i in range(counters)), blocks=4)
    s.once("races", args + ", out y", body + " y[0] = x[block] + block;", x, *(b[i] for i in range(counters)), s.output("y", (1,)), blocks=4)
    s.once("many", "in x, " + ", ".join(f"inout int32_t c{i}" for i in range(raced)), " ".join(f"c{i}[0] = 100 + block;" for i in range(raced)), x,
           *(d[i] for i in range(raced)), blocks=4)
    run = s.run()
    run.replay_all(code=1)
    document = run.documents["counts"]
    check("left out: counts", (kinds(document), len(document["notes"]), document["findings_left_out"], document["notes_left_out"]), ([], 16, 0, 1))
    document = run.documents["races"]
    check("left out: races", "write_race" in kinds(document), True)
    check("left out: all places", (len(document["findings"]) + len(document["notes"]), document["findings_left_out"]), (16, 0))
    check("left out: notes", len(document["notes"]) + document["notes_left_out"], counters)
    document = run.documents["many"]
    check("left out: many", (len(document["findings"]), document["findings_left_out"] >= raced - 16, document["notes_left_out"]), (16, True, 0))
    check_in("left out: text of findings", "more findings\n", text_of(run, run.numbers["many"]))
    check_in("left out: text of a note", "not listed: 1 more note\n", text_of(run, run.numbers["counts"]))
    text = text_of(run, "all")
    check("left out: text of all", [word in text for word in ("more findings\n", "more notes\n")], [True, True])


if __name__ == "__main__":
    sys.exit(run_parts(check_stores, check_right, check_cores, check_chance, check_failing, check_giving_up, check_flags, check_left_out))
