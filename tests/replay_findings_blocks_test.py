#!/usr/bin/python3
"""What glassbox replay finds between the blocks and subtasks of a task: races, counters, flags, waits that never end.

usage: replay_findings_blocks_test.py GLASSBOX EXAMPLES

Each bad kernel has a good twin. Which blocks meet is planted; addresses come from the manifest.
"""
import sys

import numpy as np

from command_support import check, check_in, glassbox
from replay_findings_support import ANY, SUBTASKS, Scene, check_text, kinds, write_kernel
from replay_support import run_parts

BLOCKS, ROWS, COLUMNS = 4, 8, 16  # two rows a block
ROW = 4 * COLUMNS
PATIENCE = 60  # seconds; a wait that nobody ends is found without them
VARIANTS = [("-p", "a5sim", "--runtime", "tensormap_and_ringbuffer"), ("-p", "a2a3sim", "--runtime", "host_build_graph", "--device", "thread"),
            ("-p", "a2a3sim", "--runtime", "tensormap_and_ringbuffer")]
OWN = "for (int i = 2 * block; i < 2 * block + 2; ++i) for (int j = 0; j < 16; ++j) "
COPY = OWN + "y[i * 16 + j] = x[i * 16 + j];"
MEET = "gbx_flag_add(flags, 1); gbx_flag_wait(flags, 4);"
# Each block reads the first row of the next one.
NEXT = OWN + "y[i * 16 + j] = t[(2 * block + 2) % 8 * 16 + j] + i;"
FILL = OWN + "t[i * 16 + j] = x[i * 16 + j];"


def pair(a, b, subtask="aiv0"):
    return [(a, subtask), (b, subtask)]


# --- blocks ---


def make_blocks():
    s = Scene("blocks")
    x, shape, args = s.tensor("x", (ROWS, COLUMNS)), (ROWS, COLUMNS), "in x, out y"
    row = " if (block == 2) for (int j = 0; j < 16; ++j) y[6 * 16 + j] = %s;"

    def add(name, body, args=args, *more, blocks=BLOCKS):
        s.once(name, args, body, x, *(more or (s.output(f"y_{name}", shape),)), blocks=blocks)

    add("disjoint", COPY)
    add("same_value", COPY + row % "x[6 * 16 + j]")
    add("other_value", COPY + row % "x[j] + 100")
    add("one_element", COPY + " if (block == 1) y[7 * 16 + 15] = 5;")
    add("row_more", OWN.replace("block + 2;", "block + 3;") + "y[i * 16 + j] = i;")
    add("last_strays", COPY + " if (block == 3) y[n + 1] = x[0];")
    add("second_forgets", COPY.replace("for (int i", "if (block != 1) for (int i"))
    add("reads_past", COPY + " if (block == 2) y[4 * 16 + 3] = x[8 * 16];")
    inout = "in x, inout z"
    z = s.tensor("z", shape, role="inout")
    add("neighbour", OWN + "z[i * 16 + j] += x[i * 16 + j]; if (block == 1) z[2 * 16 + 5] = z[4 * 16 + 5];", inout, z)
    add("own_rows", OWN + "z[i * 16 + j] += x[i * 16 + j];", inout, s.tensor("z_own", shape, role="inout"))
    add("still_rows", "for (int j = 0; j < 16; ++j) z[(2 * block + 1) * 16 + j] = x[j] + z[(2 * block + 2) % 8 * 16 + j];", inout,
        s.tensor("z_still", shape, role="inout"))
    add("float_sum", COPY + " z[0] += x[block];", "in x, out y, inout z", s.output("y_sum", shape), s.tensor("z_sum", (1,), role="inout"))
    add("many", "y[block] = 2 * x[block];", "in x, out y", s.output("y_many", (20,)), blocks=20)
    return s


def check_blocks():
    scene = make_blocks()
    for i, options in enumerate(VARIANTS):
        run = scene.run(*options, name=f"blocks-{i}")
        run.replay_all(code=1)
        x = run.values("disjoint", 0, "before_dispatch")
        for name in ("disjoint", "same_value", "last_strays"):
            check(f"blocks: {name} recorded", run.values(name, 1).tobytes(), x.tobytes())
        check("blocks: many recorded", run.values("many", 1).tobytes(), (2 * x.ravel()[:20]).tobytes())
        run.good("disjoint", "own_rows", "still_rows", "many")
        for name in ("same_value", "other_value"):
            at = run.address(name, 1, (6, 0))
            found = run.found(name, "write_race", others=["not_deterministic"] if name == "other_value" else [], arg=1, element=(6, 0), address=(at, at + 3),
                              size=(ROW - 8, ROW), span=(ROW - 7, ROW), owner=None, blocks=pair(2, 3))
        check("same value: verdict", run.documents["same_value"]["verdict"], "bit_exact")
        check_text(run, "other_value", found)
        at = run.address("one_element", 1, (7, 15))
        run.found("one_element", "write_race", others=["not_deterministic"], arg=1, element=(7, 15), address=(at, at + 3), size=(1, 4), blocks=pair(1, 3))
        check_alone(run)
        check_row_more(run)
        check_reads_of_blocks(run)
        if i == 0:
            run.compare_singles()


def check_alone(run):
    """What one block does wrong by itself is no race."""
    run.found("last_strays", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("last_strays", 1, (8, 1)), size=4, span=4, blocks=ANY)
    run.found("second_forgets", "unwritten_read", verdict="equal_where_written", arg=1, element=(2, 0), address=run.address("second_forgets", 1, (2, 0)),
              size=2 * ROW, span=2 * ROW, owner=run.result_owner("y_second_forgets", (2, 0)), blocks=ANY)
    at = run.address("reads_past", 1, (4, 3))
    run.found("reads_past", "undeclared_read", verdict="differs", arg=1, element=(4, 3), address=(at, at + 3), size=(1, 4), blocks=ANY)


def check_row_more(run):
    """Each block writes the first row of the next, the last one behind the end; values are the same."""
    at = run.address("row_more", 1, (2, 0))
    found = run.found("row_more", "write_race", others=["stray_write"], arg=1, element=(2, 0), address=(at, at + 3), blocks=ANY)
    if found:
        check("row_more: neighbours", sorted(b["block_idx"] for b in found["blocks"]), [0, 1])
    run.found("row_more", "stray_write", others=["write_race"], arg=1, element=None, address=run.address("row_more", 1, (8, 0)), size=ROW, span=ROW, blocks=ANY)


def check_reads_of_blocks(run):
    # The element that block 1 makes, or the one that it reads.
    found = run.found("neighbour", "read_race", others=["not_deterministic"], arg=1, blocks=pair(1, 2))
    if found:
        check("neighbour: element", found["element"] in ([2, 5], [4, 5]), True)
    got = set(kinds(run.documents["float_sum"]))
    check("float_sum: a race", (bool(got & {"write_race", "read_race"}), got - {"write_race", "read_race", "not_deterministic"}), (True, set()))
    check("float_sum: arguments", {f["arg_index"] for f in run.documents["float_sum"]["findings"]}, {2})
    check("float_sum: no counter", kinds(run.documents["float_sum"], "notes"), [])


# --- flags ---


def make_flags():
    s = Scene("flags")
    x, shape = s.tensor("x", (ROWS, COLUMNS)), (ROWS, COLUMNS)
    three, four = "in x, out y, inout uint32_t flags", "in x, out t, out y, inout uint32_t flags"

    def flags(name):
        return s.tensor(name, (4,), "uint32", "inout", fill="constant", value=0)

    def outputs(name, count=1):
        return [s.output(f"{letter}_{name}", shape) for letter in "ty"[2 - count:]]

    s.once("counts", three, COPY + " gbx_flag_add(&flags[2], 1);", x, *outputs("counts"), flags("f_counts"), blocks=BLOCKS)
    s.once("sums", three, COPY + " gbx_flag_add(&flags[1], (uint32_t)block);", x, *outputs("sums"), flags("f_sums"), blocks=BLOCKS)
    s.kernel("meets", three, COPY + MEET)
    barrier = flags("f_meets")
    s.task("meets", x, *outputs("meets"), barrier, blocks=BLOCKS)
    s.task("meets", x, *outputs("meets_again"), barrier, blocks=BLOCKS, name="meets_again")
    s.task("meets", x, *outputs("meets_fresh"), flags("f_fresh"), blocks=BLOCKS, name="meets_fresh")
    s.kernel("barrier", four, FILL + MEET + NEXT)
    stale = flags("f_barrier")
    s.task("barrier", x, *outputs("barrier", 2), stale, blocks=BLOCKS)
    s.task("barrier", x, *outputs("stale", 2), stale, blocks=BLOCKS, name="stale")
    s.once("no_barrier", four, FILL + NEXT, x, *outputs("no_barrier", 2), flags("f_none"), blocks=BLOCKS)
    s.once("one_barrier", four, FILL + MEET.replace("flags, 4", "flags, 3") + NEXT, x, *outputs("one_barrier", 2), flags("f_few"), blocks=BLOCKS)
    # A chain: block b waits for block b - 1, by a flag each.
    s.once("chain", three, "if (block) gbx_flag_wait(&flags[block - 1], 1); " + COPY + " if (block) y[2 * block * 16] = y[(2 * block - 2) * 16] + 1; "
           "gbx_flag_set(&flags[block], 1);", x, *outputs("chain"), flags("f_chain"), blocks=BLOCKS)
    earlier = flags("f_earlier")
    s.once("sets", three, COPY + " if (block == 0) gbx_flag_set(&flags[1], 1);", x, *outputs("sets"), earlier, blocks=BLOCKS)
    s.once("waits", "in x, out y, in uint32_t flags", "gbx_flag_wait(&flags[1], 1); " + COPY, x, *outputs("waits"), earlier, blocks=BLOCKS)
    return s


def check_flags():
    scene = make_flags()
    for i, options in enumerate(VARIANTS):
        run = scene.run(*options, name=f"flags-{i}")
        run.replay_all(code=1)
        x = run.values("counts", 0, "before_dispatch")
        first = np.arange(2, 10, 2) % 8
        want = np.repeat(x[first], 2, axis=0) + np.arange(8, dtype=np.float32)[:, None]
        check("flags: barrier recorded", run.values("barrier", 2).tobytes(), want.astype(np.float32).tobytes())
        check("flags: chain recorded", run.values("chain", 1)[::2, 0].tobytes(), (x[0, 0] + np.arange(4, dtype=np.float32)).tobytes())
        check("flags: left", [run.values(name, slot).tolist() for name, slot in (("counts", 2), ("sums", 2), ("meets_again", 2), ("stale", 3))],
              [[0, 0, 4, 0], [0, 6, 0, 0], [8, 0, 0, 0], [8, 0, 0, 0]])
        if i == 0:
            run.compare_singles(["counts", "barrier", "chain", "meets_again", "sets", "waits"])
        check_good_flags(run)
        check_bad_flags(run)


def check_good_flags(run):
    run.noted("counts", "counter", arg=2, element=(2,), blocks=ANY)
    run.noted("sums", "counter", arg=2, element=(1,), blocks=ANY)
    for name in ("meets", "meets_fresh", "barrier", "chain", "sets"):
        document = run.documents[name]
        check(f"flags {name}: good", (document["verdict"], kinds(document), set(kinds(document, "notes")) - {"counter"}), ("bit_exact", [], set()))
        check(f"flags {name}: exit code", glassbox("replay", run.dump, "--task", run.numbers[name]).returncode, 0)
    note = run.noted("waits", "flag_of_earlier_task", arg=2, element=(1,), blocks=[(0, "aiv0")])
    check_text(run, "waits", note, code=0)


def check_bad_flags(run):
    for name, slot, others in (("meets_again", 2, []), ("stale", 3, ["read_race", "not_deterministic"])):
        document = run.documents[name]
        document["notes"] = [note for note in document["notes"] if note["kind"] != "counter"]
        found = run.found(name, "stale_flag", others=others, arg=slot, element=(0,), blocks=ANY)
        if found:
            check(f"flags {name}: who waits and who sets", (len(found["blocks"]), {b["subtask"] for b in found["blocks"]}), (2, {"aiv0"}))
    for name in ("no_barrier",):
        document = run.documents[name]
        document["notes"] = [note for note in document["notes"] if note["kind"] != "counter"]
        found = run.found(name, "read_race", others=["not_deterministic"], blocks=ANY)
        if found:
            a, b = sorted(b["block_idx"] for b in found["blocks"])
            check(f"flags {name}: neighbours {a} and {b}", b - a in (1, BLOCKS - 1), True)
            check(f"flags {name}: argument", found["arg_index"] in (1, 2), True)


# --- waits that never end ---


def check_endless():
    s = Scene("endless")
    x, args = s.tensor("x", (ROWS, COLUMNS)), "in x, out y, inout uint32_t flags"
    for blocks in (1, BLOCKS):
        flags = s.tensor(f"flags{blocks}", (4,), "uint32", "inout", fill="constant", value=0)
        s.kernel(f"fine{blocks}", args, COPY + f" gbx_flag_add(flags, 1); gbx_flag_wait(flags, {blocks});")
        s.task(f"fine{blocks}", x[:2 * blocks], s.output(f"y{blocks}", (2 * blocks, COLUMNS)), flags, blocks=blocks)
    run = s.run("-p", "a5sim")
    run.replay_all(code=0)
    check("endless: the run", (kinds(run.documents["fine1"]), kinds(run.documents[f"fine{BLOCKS}"])), ([], []))
    nobody = write_kernel("nobody", args, COPY + " gbx_flag_wait(&flags[3], 1);")
    too_many = write_kernel("too_many", args, COPY + f" gbx_flag_add(flags, 1); gbx_flag_wait(flags, {BLOCKS + 1});")
    last = write_kernel("last", args, COPY + " if (block == 2) gbx_flag_wait(&flags[1], 7); else gbx_flag_set(&flags[1], 6);")
    for name, file, element, waiting in (("fine1", nobody, (3,), {0}), (f"fine{BLOCKS}", nobody, (3,), set(range(BLOCKS))),
                                         (f"fine{BLOCKS}", too_many, (0,), set(range(BLOCKS))), (f"fine{BLOCKS}", last, (1,), {2})):
        document = run.replay(name, "--kernel", file, "--timeout", PATIENCE, code=3)
        check(f"endless {name} {file.stem}: verdict", document["verdict"], "fault")
        document["notes"] = []
        got = run.found(name, "endless_wait", document=document, others=["write_race"] if file is last else [], arg=2, element=element, blocks=ANY)
        if got:
            check(f"endless {name} {file.stem}: who waits", ([b["subtask"] for b in got["blocks"]], {b["block_idx"] for b in got["blocks"]} <= waiting), (["aiv0"], True))
    good = write_kernel("good", args, COPY + " if (block == 2) gbx_flag_wait(&flags[1], 1); if (block == 0) gbx_flag_set(&flags[1], 1);")
    document = run.replay(f"fine{BLOCKS}", "--kernel", good, code=1)  # 1: it leaves other flags, and nothing judges it
    check("endless: the good twin", (kinds(document), kinds(document, "notes")), ([], []))


# --- mixes ---


def mix(s, name, bodies, views, args, blocks=1):
    """A task of three kernels, one for each subtask."""
    kernels = {}
    for subtask, body in zip(SUBTASKS, bodies):
        kernels[subtask] = s.kernel(f"{name}_{subtask}", args, body, core=subtask[:3])
    s.task(kernels, *views, blocks=blocks, name=name)


def make_mixes():
    s = Scene("mixes")
    x, args = s.tensor("x", (3, COLUMNS)), "in x, out y"
    rows = [f"for (int j = 0; j < 16; ++j) y[{i} * 16 + j] = 2 * x[{i} * 16 + j];" for i in range(3)]

    def out(name):
        return s.output(name, (3, COLUMNS))

    mix(s, "disjoint", rows, (x, out("y_disjoint")), args)
    mix(s, "both", [rows[0] + " y[16] = x[0];", *rows[1:]], (x, out("y_both")), args)
    mix(s, "both_vectors", [rows[0], rows[1], rows[2] + " y[17] = 2 * x[17];"], (x, out("y_vectors")), args)
    mix(s, "strays", [rows[0], rows[1], rows[2] + " y[48] = x[0];"], (x, out("y_strays")), args)
    shared, flagged = "in x, out t, out y", "in x, out t, out y, inout uint32_t flags"
    fills = [f"for (int j = 0; j < 16; ++j) t[{i} * 16 + j] = x[{i} * 16 + j];" for i in range(3)]
    reads = "for (int j = 0; j < 16; ++j) y[j] = t[16 + j];"
    for row in (1, 2):
        reads += f" for (int j = 0; j < 16; ++j) y[{row} * 16 + j] = x[j];"
    mix(s, "reads_other", [fills[0] + reads, fills[1], fills[2]], (x, out("t_other"), out("y_other")), shared)
    mix(s, "reads_own", [fills[0] + reads.replace("t[16 + j]", "t[j]"), fills[1], fills[2]], (x, out("t_own"), out("y_own")), shared)
    flags = s.tensor("flags", (4,), "uint32", "inout", fill="constant", value=0)
    mix(s, "waits_other", [fills[0] + " gbx_flag_wait(flags, 1); " + reads, fills[1] + " gbx_flag_set(flags, 1);", fills[2]],
        (x, out("t_waits"), out("y_waits"), flags), flagged)
    many = ["for (int j = 0; j < 16; ++j) y[(block * 3 + %d) * 16 + j] = 2 * x[%d * 16 + j];" % (i, i) for i in range(3)]
    mix(s, "blocks", many, (x, s.output("y_blocks", (12, COLUMNS))), args, blocks=4)
    mix(s, "blocks_meet", [many[0] + " if (block == 1) y[8 * 16 + 3] = 9;", *many[1:]], (x, s.output("y_meet", (12, COLUMNS))), args, blocks=4)
    return s


def check_mixes():
    scene = make_mixes()
    for i, options in enumerate(VARIANTS):
        run = scene.run(*options, name=f"mixes-{i}")
        run.replay_all(code=1)
        x = run.values("disjoint", 0, "before_dispatch")
        check("mixes: recorded", run.values("disjoint", 1).tobytes(), (2 * x).tobytes())
        check("mixes: recorded with a flag", run.values("waits_other", 2).tobytes(), np.stack([x[1], x[0], x[0]]).tobytes())
        run.good("disjoint", "reads_own", "waits_other", "blocks")
        for name, element, blocks in (("both", (1, 0), [(0, "aic"), (0, "aiv0")]), ("both_vectors", (1, 1), [(0, "aiv0"), (0, "aiv1")]),
                                      ("blocks_meet", (8, 3), [(1, "aic"), (2, "aiv1")])):
            at = run.address(name, 1, element)
            run.found(name, "write_race", others=["not_deterministic"], arg=1, element=element, address=(at, at + 3), size=(1, 4), span=(1, 4), blocks=blocks)
        check("both vectors: the same value", (kinds(run.documents["both_vectors"]), run.documents["both_vectors"]["verdict"]), (["write_race"], "bit_exact"))
        run.found("strays", "stray_write", verdict="bit_exact", arg=1, element=None, address=run.address("strays", 1, (3, 0)), size=4, span=4, blocks=ANY)
        found = run.found("reads_other", "read_race", others=["not_deterministic"], blocks=[(0, "aic"), (0, "aiv0")])
        if found:
            # What the reader makes of it, or what it reads.
            check("reads_other: element", (found["arg_index"], found["element"]) in ((2, [0, 0]), (1, [1, 0])), True)
        if i == 0:
            run.compare_singles()
            check_mix_kernels(run)


def check_mix_kernels(run):
    """In the place of one kernel of a mix: it forgets the flag, and the AIC waits for ever."""
    args = "in x, out t, out y, inout uint32_t flags"
    forgets = write_kernel("forgets_flag", args, "for (int j = 0; j < 16; ++j) t[16 + j] = x[16 + j];")
    document = run.replay("waits_other", "--kernel", f"waits_other_aiv0={forgets}", "--timeout", PATIENCE, code=3)
    check("mix, endless: verdict", document["verdict"], "fault")
    finding = next((f for f in document["findings"] if f["kind"] == "endless_wait"), None)
    if check("mix, endless: found", finding is not None, True):
        check("mix, endless: where", (finding["arg_index"], finding["arg_name"], finding["element"], finding["blocks"]),
              (3, "flags", [0], [{"block_idx": 0, "subtask": "aic"}]))
        check_in("mix, endless: sentence", "flags", finding["sentence"])
    races = write_kernel("races", "in x, out y", "for (int j = 0; j < 16; ++j) y[16 + j] = 2 * x[16 + j]; y[0] = 2 * x[0];")
    document = run.replay("disjoint", "--kernel", f"disjoint_aiv0={races}", code=1)
    check("mix, another kernel: race", [(f["kind"], f["element"]) for f in document["findings"]], [("write_race", [0, 0])])


if __name__ == "__main__":
    sys.exit(run_parts(check_blocks, check_flags, check_endless, check_mixes))
