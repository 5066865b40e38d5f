"""The planted bugs of the zoo: what is edited in a good scene, and what a diagnosis must say of it.

What is expected follows from the graph, which each orchestration describes at its top, and from the edit; it is never taken from what a
tool prints. Numbers of tasks are those of submission.
"""
import dataclasses

HOST, AICPU, TENSORMAP = "host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"

# What happens when the edited scene runs.
DIAGNOSIS = "diagnosis"  # the run ends, or fails in some way; the dump tells who is guilty
REFUSED = "refused"  # the graph is refused with a sentence that names task and kernel: there is nothing to diagnose
REPORTED = "reported"  # the run itself stops with a fault and names task and kernel; a diagnosis names them, too


@dataclasses.dataclass(frozen=True)
class Bug:
    name: str
    group: str  # the class of bug
    scene: str
    edits: tuple  # of (file, old text, which is there once, new text)
    tasks: frozenset  # any of them may be accused
    kernel: str  # or None where several are equally right
    args: frozenset  # names of arguments, any of them; empty where no argument is to blame
    lines: tuple = ()  # texts, each of one line of the edited source, any of which may be accused; empty where no line is
    others: frozenset = frozenset()  # for bugs between two tasks: the other one
    expected: str = DIAGNOSIS
    runtime: str = TENSORMAP
    platform: str = "a2a3sim"
    case: str = None
    golden_is_right: bool = False  # nobody sees the bug in the results
    is_missing: bool = False  # a task is missing: nobody is accused, and one of `tasks` is named as the nearest
    may_be_refused: bool = False  # a runtime that refuses the graph, and says why, is as good as a diagnosis


def bug(name, group, scene, edits, tasks, kernel, args="", lines=(), others=(), **more):
    edits = tuple(edits) if isinstance(edits, list) else (edits,)
    lines = (lines,) if isinstance(lines, str) else tuple(lines)
    return Bug(name, group, scene, edits, frozenset(tasks), kernel, frozenset(args.split()), lines, frozenset(others), **more)


# --- attention: 0..3 layer_norm, 4..39 matmul, then scores, softmax, matmul, residual, blend for each tile of rows ---

NORMS, PRODUCTS = range(4), range(4, 40)
SCORES, SOFTMAXES, WEIGHINGS, RESIDUALS, BLENDS = (range(first, 60, 5) for first in range(40, 45))
MATMULS = [*PRODUCTS, *WEIGHINGS]
ATTENTION = [
    bug("norm-one-column-too-many", "overrun behind", "attention",
        ("kernels/layer_norm.c", "j < columns; ++j)\n            to[j]", "j <= columns; ++j)\n            to[j]"),
        NORMS, "layer_norm", "h gamma beta x", "to[j] = gamma[j]", golden_is_right=True),
    bug("matmul-sum-uninitialised", "uninitialised local", "attention", ("kernels/matmul.c", "float sum = 0.0f;", "float sum;"),
        MATMULS, "matmul", "", ("sum += row[k]", "float sum;", "to[j] = sum;"), runtime=HOST),
    bug("norm-variance-uninitialised", "uninitialised local", "attention", ("kernels/layer_norm.c", "float variance = 0.0f;", "float variance;"),
        NORMS, "layer_norm", "", ("sqrtf(variance", "variance += (from[j]", "float variance;", "* scale + beta[j]"), platform="a5sim", runtime=AICPU),
    bug("scores-added-to-new-memory", "uninitialised output", "attention",
        ("kernels/scores.c", "        for (int64_t j = 0; j < k->shape[0]; ++j)\n            to[j] = 0.0f;\n", ""),
        SCORES, "scores", "s", "to[j] += scale", platform="a5sim"),
    bug("residual-gets-scale", "wrong scalar", "attention", ("orchestration.c", "f32(&residual, alpha)", "f32(&residual, scale)"),
        RESIDUALS, "residual", "alpha"),
    bug("softmax-first-row-is-a-tile", "wrong scalar", "attention",
        ("orchestration.c", "i32(&softmax, (int32_t)row)", "i32(&softmax, (int32_t)(row / ROWS))"),
        SOFTMAXES[1:], "softmax", "first_row", platform="a5sim", runtime=AICPU),
    bug("softmax-mask-off-by-one", "wrong logic", "attention", ("kernels/softmax.c", "first_row + i + 1;", "first_row + i;"),
        SOFTMAXES, "softmax", "p", runtime=AICPU),
    bug("scores-of-values", "wrong view", "attention", ("orchestration.c", "in(&scores, k)", "in(&scores, v)"),
        SCORES, "scores", "k", others=range(28, 40), runtime=HOST),
    bug("one-product-of-first-columns", "wrong view", "attention", ("orchestration.c", "in(&t, tile(&w, 0, a->depth, column, columns));",
        "in(&t, tile(&w, 0, a->depth, which == 1 && row == ROWS && column == COLUMNS ? 0 : column, columns));"),
        [20], "matmul", "b", platform="a5sim"),
    bug("first-blend-missing", "missing task", "attention", ("orchestration.c", "    add(&blend);", "    if (row > 0)\n        add(&blend);"),
        [48], "blend", "y", runtime=HOST, is_missing=True),
    bug("residual-for-blend", "wrong func id", "attention", ("orchestration.c", "gbx_aiv(BLEND)", "gbx_aiv(RESIDUAL)"), BLENDS, "residual"),
    bug("matmul-on-vector-core", "wrong func id", "attention", ("orchestration.c", "task weigh = begin_task(g, gbx_aic(MATMUL))",
        "task weigh = begin_task(g, gbx_aiv(MATMUL))"), [42], "matmul", expected=REFUSED, runtime=HOST),
    bug("matmul-one-too-deep", "reading past an input", "attention", ("kernels/matmul.c", "k < depth", "k <= depth"),
        MATMULS, "matmul", "a b", "sum += row[k]", platform="a5sim", runtime=AICPU),
    bug("norm-gamma-of-row", "wrong logic", "attention", ("kernels/layer_norm.c", "to[j] = gamma[j]", "to[j] = gamma[i]"), NORMS, "layer_norm", "h"),
    bug("residual-swapped", "wrong logic", "attention", ("kernels/residual.c", "*x = gbx_arg_tensor(args, 0), *o = gbx_arg_tensor(args, 1)",
        "*o = gbx_arg_tensor(args, 0), *x = gbx_arg_tensor(args, 1)"), RESIDUALS, "residual", "y", platform="a5sim", runtime=HOST),
    bug("norm-scalar-as-tensor", "crash", "attention", ("kernels/layer_norm.c", "*beta = gbx_tensor_f32(gbx_arg_tensor(args, 2))",
        "*beta = gbx_tensor_f32(gbx_arg_tensor(args, 4))"), NORMS, "layer_norm", "", "gbx_arg_tensor(args, 4)", expected=REPORTED),
    bug("softmax-never-advances", "endless loop", "attention",
        ("kernels/softmax.c", "for (int64_t j = 1; j < seen; ++j)\n            largest = from[j] > largest ? from[j] : largest;",
         "for (int64_t j = 1; j < seen;)\n            if (from[j] > largest)\n                largest = from[j++];"),
        SOFTMAXES, "softmax", expected=REPORTED, platform="a5sim"),
    bug("weigh-without-values", "missing edge", "attention", ("orchestration.c", "    after_products(&weigh, a, 2);\n", ""),
        WEIGHINGS, "matmul", "b c", others=range(28, 40), runtime=AICPU),
    bug("products-clamped-tile", "double writer", "attention", ("orchestration.c", "tile(&product, row, rows, column, columns)",
        "tile(&product, row, rows, column > COLUMNS ? a->depth - COLUMNS : column, columns)"),
        PRODUCTS, "matmul", "c", others=PRODUCTS, runtime=HOST),
]

# --- stencil: n blur, 20 + n blur, 40 + n column_sums, 60 + j combine, 64 + n roughness ---

BLURS, SUMS, COMBINES, ROUGHS = range(40), range(40, 60), range(60, 64), range(64, 84)
STENCIL = [
    bug("blur-whole-tile-in-tail", "overrun by stride", "stencil", ("kernels/blur.c", "j < y->shape[1]", "j < 32"),
        range(3, 40, 4), "blur", "y x", ("to[j] = (1.0f", "float around")),
    bug("blur-one-row-more", "overrun into the next tile", "stencil", ("kernels/blur.c", "i < y->shape[0]", "i <= y->shape[0]"),
        BLURS, "blur", "y x", ("to[j] = (1.0f", "float around"), runtime=HOST),
    bug("blur-one-column-early", "overrun before", "stencil", ("kernels/blur.c", "for (int64_t j = 0;", "for (int64_t j = -1;"),
        BLURS, "blur", "y x", ("to[j] = (1.0f", "float around"), platform="a5sim", runtime=AICPU),
    bug("blur-stride-of-input", "overrun by stride", "stencil", ("kernels/blur.c", "i * y->strides[0]", "i * step"),
        BLURS, "blur", "y", "to[j] = (1.0f"),
    bug("combine-without-rest", "output not fully written", "stencil",
        ("kernels/combine.c", "    for (int64_t j = whole; j < length; ++j) {\n        to[j] = 0.0f;\n"
         "        for (unsigned part = 0; part < PARTS; ++part)\n            to[j] += gbx_tensor_f32(gbx_arg_tensor(args, part))[j];\n    }\n", ""),
        [63], "combine", "sum", platform="a5sim"),
    bug("combine-rest-ends-early", "tail off by one", "stencil", ("kernels/combine.c", "j < length; ++j", "j < length - 1; ++j"),
        [63], "combine", "sum", runtime=AICPU),
    bug("combine-lanes-past-end", "overrun behind", "stencil", ("kernels/combine.c", "whole = length / LANES * LANES",
        "whole = (length + LANES - 1) / LANES * LANES"), [63], "combine", "sum a b c d e", ("memcpy(to + j, lanes", "lanes[lane] +="), runtime=HOST,
        golden_is_right=True),
    bug("column-sums-not-cleared", "uninitialised temporary", "stencil",
        ("kernels/column_sums.c", "    for (int64_t j = 0; j < sums->shape[0]; ++j)\n        to[j] = 0.0f;\n", ""),
        SUMS, "column_sums", "sums", "to[j] += from[j]", platform="a5sim", runtime=HOST),
    bug("sweep-without-right-neighbour", "missing edge", "stencil",
        ("orchestration.c", "            if (j + 1 < ACROSS)\n                after(&t, before[n + 1]);\n", ""),
        range(20, 40), "blur", "x y", others=range(20), runtime=HOST),
    bug("sweep-in-place", "aliasing views", "stencil", ("orchestration.c", "add_sweep(&g, NEXT, SMOOTH,", "add_sweep(&g, NEXT, NEXT,"),
        range(20, 40), "blur", "x y"),
    bug("sweep-in-place-without-edges", "aliasing views", "stencil", ("orchestration.c", "add_sweep(&g, NEXT, SMOOTH,", "add_sweep(&g, NEXT, NEXT,"),
        range(20, 40), "blur", "x y", runtime=HOST, platform="a5sim"),
    bug("combine-slices-overlap", "double writer", "stencil", ("orchestration.c", "slice(&g->tensors[COLUMNS], p.column - HALO, p.columns)",
        "slice(&g->tensors[COLUMNS], j * (TILE_COLUMNS - HALO), p.columns)"), COMBINES, "combine", "sum", others=COMBINES, runtime=AICPU),
    bug("roughness-into-transposed-cell", "wrong view", "stencil", ("orchestration.c", "tile(&g.tensors[ROUGH], n / ACROSS, 1, n % ACROSS, 1)",
        "tile(&g.tensors[ROUGH], n % DOWN, 1, n / DOWN, 1)"), range(65, 83), "roughness", "rough"),
    bug("roughness-short-array", "stack overrun", "stencil", ("kernels/roughness.c", "LONGEST = 32", "LONGEST = 24"),
        [n for n in ROUGHS if n % 4 != 3], "roughness", "", ("squares[j] = (from[j + 1]", "total += squares[j]"), platform="a5sim"),
    bug("second-sweep-other-weight", "wrong scalar", "stencil", ("orchestration.c", "f32(&t, gbx_arg_f32(g->run->scalars, 0));",
        "f32(&t, before ? 1.0f - gbx_arg_f32(g->run->scalars, 0) : gbx_arg_f32(g->run->scalars, 0));"), range(20, 40), "blur", "weight"),
    bug("combine-of-wrong-tiles", "wrong view", "stencil", ("orchestration.c", "in(&t, sums[i * ACROSS + j]);", "in(&t, sums[j * DOWN + i]);"),
        COMBINES, "combine", "a b c d e", runtime=HOST),
    bug("blur-two-to-the-left", "reading before an input", "stencil", ("kernels/blur.c", "middle[j - 1]", "middle[j - 2]"),
        BLURS, "blur", "x", "float around", platform="a5sim"),
]

# --- reduce: row r is 6 r row_sum, + 1 mix, + 2 prefix, + 3 bins, + 4 merge, + 5 peak ---

ROW_SUMS, MIXES, PREFIXES, BINS, MERGES, PEAKS = (range(first, 30, 6) for first in range(6))
REDUCE = [
    bug("counter-not-atomic", "race between blocks", "reduce", ("kernels/row_sum.c", "gbx_flag_add(counter, 1)", "++*counter"),
        ROW_SUMS, "row_sum", "counter", "++*counter"),
    bug("partials-of-half-the-blocks", "race between blocks", "reduce",
        ("kernels/row_sum.c", "partials[local->block_idx] = sum", "partials[local->block_idx % 4] = sum"),
        ROW_SUMS, "row_sum", "partials", "partials[local->block_idx % 4] = sum", runtime=HOST),
    bug("centre-one-element-more", "overrun behind", "reduce", ("kernels/centre.c", "end = share_end(args, length);",
        "end = share_end(args, length) + 1;"), MIXES, "centre", "centred x y", ("centred[i] = x[i] - mean", "y[i] = centred[i] * factor"),
        platform="a5sim", golden_is_right=True),
    bug("prefix-does-not-wait", "race between blocks", "reduce", ("kernels/prefix.c", "        gbx_flag_wait(&flags[block - 1], 1);\n", ""),
        PREFIXES, "prefix", "carry z", ("before = carry[block - 1]", "carry[block] = before + sum"), runtime=AICPU),
    bug("carry-announced-early", "race between blocks", "reduce", ("kernels/prefix.c", "    carry[block] = before + sum;\n",
        "    gbx_flag_set(&flags[block], 1);\n    carry[block] = before + sum;\n"), PREFIXES, "prefix", "carry",
        ("before = carry[block - 1]", "carry[block] = before + sum")),
    bug("prefix-first-carry-uninitialised", "uninitialised local", "reduce", ("kernels/prefix.c", "float sum = 0.0f, before = 0.0f;",
        "float sum = 0.0f, before;"), PREFIXES, "prefix", "", ("carry[block] = before + sum", "z[i] += before", "0.0f, before;"), platform="a5sim"),
    bug("second-half-does-not-wait", "race between subtasks", "reduce",
        ("kernels/scale_half.c", "    gbx_flag_wait(mix_flag(args, SQUARED), 1);\n", ""),
        MIXES, "scale_half", "centred squares y", ("y[i] = centred[i] * factor", "float squares =", "centred[i] = x[i] - mean",
        "gbx_tensor_f32(gbx_arg_tensor(args, MIX_SQUARES))[gbx_local(args)->block_idx] = sum"), platform="a5sim", runtime=HOST),
    bug("squares-never-announced", "flag never set", "reduce", ("kernels/squares.c", "    gbx_flag_set(mix_flag(args, SQUARED), 1);\n", ""),
        MIXES, None, "flags", expected=REPORTED),
    bug("prefix-flag-is-block", "wrong flag value", "reduce", ("kernels/prefix.c", "gbx_flag_set(&flags[block], 1)",
        "gbx_flag_set(&flags[block], block)"), PREFIXES, "prefix", "flags", expected=REPORTED, runtime=HOST),
    bug("mix-flags-of-first-row", "stale flag", "reduce", ("orchestration.c", "row_of(g, MIX_FLAGS, r)", "row_of(g, MIX_FLAGS, 0)"),
        MIXES[1:], None, "flags"),
    bug("centred-announced-early", "race between subtasks", "reduce", [("kernels/centre.c", "    for (int64_t i = begin; i < end; ++i)\n",
        "    gbx_flag_set(mix_flag(args, CENTRED), 1);\n    for (int64_t i = begin; i < end; ++i)\n"), ("kernels/centre.c",
        "- mean;\n    gbx_flag_set(mix_flag(args, CENTRED), 1);\n", "- mean;\n")], MIXES, None, "centred squares y", ("centred[i] = x[i] - mean",
        "sum += centred[i] * centred[i]", "y[i] = centred[i] * factor")),
    bug("bins-on-two-blocks", "output not fully written", "reduce", ("orchestration.c", "gbx_spmd(gbx_aiv(BINS), BIN_BLOCKS)",
        "gbx_spmd(gbx_aiv(BINS), BIN_BLOCKS - 1)"), BINS, "bins", "counts", platform="a5sim", runtime=AICPU),
    bug("mix-centre-twice", "wrong func id", "reduce", ("orchestration.c", "gbx_mix(SQUARES, CENTRE, SCALE_HALF)",
        "gbx_mix(SQUARES, CENTRE, CENTRE)"), MIXES, "centre", "y centred"),
    bug("shares-lose-the-rest", "tail off by one", "reduce",
        [("kernels/share.h", "return length * gbx_local(args)->block_idx / gbx_local(args)->block_num;",
          "return length / gbx_local(args)->block_num * gbx_local(args)->block_idx;"),
         ("kernels/share.h", "return length * (gbx_local(args)->block_idx + 1) / gbx_local(args)->block_num;",
          "return length / gbx_local(args)->block_num * (gbx_local(args)->block_idx + 1);")],
        [*ROW_SUMS, *MIXES, *PREFIXES, *BINS], None, "partials total y centred z squares counts", runtime=HOST),
    bug("peak-of-all-rows", "race between tasks", "reduce", ("kernels/peak.c", "float largest = 0.0f;", "static float largest = 0.0f;"),
        PEAKS, "peak", "", ("static float largest", "largest = value > largest", "gbx_arg_tensor(args, 1)) = largest")),
    bug("bins-share-a-row", "race between blocks", "reduce",
        ("kernels/bins.c", "    mine += gbx_local(args)->block_idx * counts->strides[0];\n", ""),
        BINS, "bins", "counts", ("mine[level] = 0", "mine[level] += 1"), platform="a5sim"),
    bug("peak-largest-uninitialised", "uninitialised local", "reduce", ("kernels/peak.c", "float largest = 0.0f;", "float largest;"),
        PEAKS, "peak", "", ("largest = value > largest", "float largest;", "gbx_arg_tensor(args, 1)) = largest"), runtime=AICPU),
    bug("merge-over-levels", "wrong logic", "reduce", ("kernels/merge.c", "from[block * counts->strides[0] + level]",
        "from[level * counts->shape[0] + block]"), MERGES, "merge", "merged"),
    bug("peak-does-not-wait", "missing edge", "reduce", ("orchestration.c", "    after(&peak, scanned);\n", ""),
        PEAKS, "peak", "z", others=PREFIXES, runtime=HOST),
    bug("counter-of-first-row", "stale flag", "reduce", ("orchestration.c", "slice(&g->tensors[COUNTERS], r, 1)",
        "slice(&g->tensors[COUNTERS], 0, 1)"), ROW_SUMS[1:], "row_sum", "counter total"),
]

# --- pipeline: frame f is 6 f load, + 1 low_pass, + 2 high_pass, + 3 join, + 4 accumulate, + 5 score ---

LOADS, LOWS, HIGHS, JOINS, ACCUMULATES, FRAME_SCORES = (range(first, 48, 6) for first in range(6))
PIPELINE = [
    bug("join-without-filters", "missing edge", "pipeline", ("orchestration.c", "    after(&join, all[f].high);\n", ""),
        JOINS, "join", "low high", others=[*LOWS, *HIGHS], runtime=HOST),
    bug("high-before-old-score", "missing edge", "pipeline", ("orchestration.c", "    if (before)\n        after(&high, before->score);\n", ""),
        [*HIGHS, *FRAME_SCORES], None, "high", others=[*HIGHS, *FRAME_SCORES], runtime=AICPU),
    bug("load-before-old-filters", "missing edge", "pipeline", ("orchestration.c", "    if (before)\n        after(&load, before->high);\n", ""),
        [*LOADS, *LOWS, *HIGHS], None, "raw", others=[*LOADS, *LOWS, *HIGHS], runtime=HOST, platform="a5sim"),
    bug("low-after-old-load", "wrong edge", "pipeline", ("orchestration.c", "after(&low, before->join)", "after(&low, before->load)"),
        [*LOWS, *JOINS], None, "low", others=[*LOWS, *JOINS], runtime=HOST),
    bug("accumulate-before-score", "missing edge", "pipeline", ("orchestration.c", "        after(&accumulate, all[f - 1].score);\n", ""),
        [*ACCUMULATES, *FRAME_SCORES], None, "state", others=[*ACCUMULATES, *FRAME_SCORES], runtime=AICPU, platform="a5sim"),
    bug("score-after-old-accumulate", "wrong edge", "pipeline",
        ("orchestration.c", "after(&score, all[f].accumulate)", "after(&score, all[f ? f - 1 : f].accumulate)"),
        [*ACCUMULATES, *FRAME_SCORES], None, "state", others=[*ACCUMULATES, *FRAME_SCORES], runtime=AICPU),
    bug("high-into-low-buffer", "wrong view", "pipeline", ("orchestration.c", "out(&high, b->high)", "out(&high, b->low)"),
        HIGHS, "high_pass", "high low", runtime=HOST),
    bug("results-of-first-set", "wrong view", "pipeline", ("orchestration.c", "add_results(&g, &sets[f % SETS], f, all)",
        "add_results(&g, &sets[0], f, all)"), [*JOINS[1::2], *FRAME_SCORES[1::2]], None, "low high", others=[*LOWS[::2], *HIGHS[::2]], runtime=AICPU),
    bug("accumulate-gets-mix", "wrong scalar", "pipeline", ("orchestration.c", "gbx_arg_f32(g->run->scalars, DECAY)",
        "gbx_arg_f32(g->run->scalars, MIX)"), ACCUMULATES, "accumulate", "decay", runtime=HOST),
    bug("state-not-copied", "missing copy", "pipeline", ("orchestration.c", "1u << OUT | 1u << SCORES, 1u << STATE",
        "1u << OUT | 1u << SCORES | 1u << STATE, 0"), ACCUMULATES[:1], "accumulate", "state", runtime=HOST, platform="a5sim"),
    bug("accumulate-twice", "task done twice", "pipeline", ("orchestration.c", "all[f].accumulate = add(&accumulate);",
        "all[f].accumulate = add(&accumulate);\n    if (f == 1) {\n        after(&accumulate, all[f].accumulate);\n"
        "        all[f].accumulate = add(&accumulate);\n    }"), [11], "accumulate", "", others=[10], runtime=AICPU),
    bug("high-pass-swapped", "wrong view", "pipeline", ("orchestration.c", "in(&high, b->raw);\n    in(&high, b->low);",
        "in(&high, b->low);\n    in(&high, b->raw);"), HIGHS, "high_pass", "raw low", runtime=HOST),
    bug("state-is-output", "wrong role", "pipeline", ("orchestration.c", "inout(&accumulate, g->tensors[STATE])",
        "out(&accumulate, g->tensors[STATE])"), ACCUMULATES, "accumulate", "state", runtime=HOST, platform="a5sim", golden_is_right=True),
    bug("load-counts-down-for-ever", "crash", "pipeline", ("kernels/load.c", "for (int64_t i = 0; i < raw->shape[0]; ++i)",
        "for (size_t i = (size_t)raw->shape[0] - 1; i >= 0; --i)"), LOADS, "load", "", "gbx_tensor_f32(raw)[i] = gain", expected=REPORTED,
        runtime=AICPU),
    bug("low-pass-before-first", "reading before an input", "pipeline",
        ("kernels/low_pass.c", "    y[0] = (2.0f * x[0] + x[1]) / 3.0f;\n    for (int64_t i = 1;", "    for (int64_t i = 0;"),
        LOWS, "low_pass", "raw", "y[i] = (x[i - 1]", runtime=AICPU, platform="a5sim"),
    bug("low-pass-past-last", "reading past an input", "pipeline", ("kernels/low_pass.c", "i < last", "i <= last"),
        LOWS, "low_pass", "raw", "y[i] = (x[i - 1]", runtime=HOST, golden_is_right=True),
    bug("two-frames-one-row", "double writer", "pipeline", ("orchestration.c", "gbx_view_select(&g->tensors[OUT], 0, f)",
        "gbx_view_select(&g->tensors[OUT], 0, f / SETS)"), [*JOINS, *ACCUMULATES], None, "joined", others=[*JOINS, *ACCUMULATES], runtime=HOST),
]

# --- gather: 0 unpack; tile t is 1 + 6 t lookup, then dequantise, project, quantise, count, mark ---
# Of the records, which are 9 bytes, only the seed of tile 3 is aligned, and only that of tile 5 is too small to overflow.

LOOKUPS, DEQUANTISES, PROJECTS, QUANTISES, COUNTS, MARKS = (range(first, 37, 6) for first in range(1, 7))
GATHER = [
    bug("lookup-counts-from-one", "wrong logic", "gather", ("kernels/lookup.c", "ids[i] * table", "(ids[i] - 1) * table"), LOOKUPS, "lookup",
        "rows table"),
    bug("lookup-padded-rows", "overrun behind", "gather", ("kernels/lookup.c", "(size_t)table->shape[1]", "32"),
        LOOKUPS, "lookup", "rows table", ("memcpy(to + i", "32);"), runtime=HOST, golden_is_right=True),
    bug("dequantise-unsigned-rows", "dtype mix-up", "gather", ("kernels/dequantise.c", "const int8_t *from", "const uint8_t *from"),
        DEQUANTISES, "dequantise", "x"),
    bug("dequantise-scales-as-float16", "dtype mix-up", "gather", ("kernels/dequantise.c", "gbx_bf16_to_f32", "gbx_f16_to_f32"),
        DEQUANTISES, "dequantise", "x", platform="a5sim", runtime=AICPU),
    bug("unpack-without-sign", "dtype mix-up", "gather", ("kernels/unpack.c", "half < 8 ? half : half - 16", "half"), [0], "unpack", "w"),
    bug("unpack-high-half-first", "dtype mix-up", "gather", ("kernels/unpack.c", "(j % 2 * 4)", "((j + 1) % 2 * 4)"), [0], "unpack", "w",
        runtime=HOST),
    bug("unpack-rows-not-padded", "dtype mix-up", "gather", ("kernels/unpack.c", "i * packed->strides[0] / 2", "i * columns / 2"), [0], "unpack", "w",
        platform="a5sim"),
    bug("mark-unaligned-seed", "misaligned access", "gather", [("kernels/mark.c", "    uint32_t seed;\n", ""), ("kernels/mark.c",
        "memcpy(&seed, record + 1, sizeof seed);", "uint32_t seed = *(const uint32_t *)(record + 1);")], [6, 12, 18, 30, 36], "mark", "record",
        "seed = *(const uint32_t *)", golden_is_right=True),
    bug("mark-shifts-too-far", "undefined behaviour", "gather", ("kernels/mark.c", "record[0] % 32", "record[0]"),
        MARKS, "mark", "", ("1u << shift", "shift = record[0]"), runtime=AICPU, golden_is_right=True),
    bug("mark-signed-hash", "undefined behaviour", "gather", ("kernels/mark.c", "uint32_t hash = seed * 31 + (uint32_t)id[i];",
        "int32_t hash = (int32_t)seed * 31 + id[i];"), MARKS[:5], "mark", "", "int32_t hash =", platform="a5sim", golden_is_right=True),
    bug("quantise-divides-by-zero", "undefined behaviour", "gather", ("kernels/quantise.c", "float value = rintf(gbx_bf16_to_f32(from[i]) / step);",
        "float value = (float)((int32_t)gbx_bf16_to_f32(from[i]) / (int32_t)step);"), QUANTISES, "quantise", "", "(int32_t)step",
        expected=REPORTED),
    bug("quantise-wraps", "wrong logic", "gather", [("kernels/quantise.c", "        value = value < -128.0f ? -128.0f : value;\n", ""),
        ("kernels/quantise.c", "        value = value > 127.0f ? 127.0f : value;\n", ""), ("kernels/quantise.c", "(int8_t)value",
        "(int8_t)(int32_t)value")], QUANTISES, "quantise", "codes", runtime=HOST),
    bug("quantise-truncates", "wrong logic", "gather", ("kernels/quantise.c", "rintf(", "truncf("), QUANTISES, "quantise", "codes", platform="a5sim",
        golden_is_right=True),
    bug("counts-are-output", "wrong role", "gather", ("orchestration.c", "inout(&count, g->tensors[COUNTS])", "out(&count, g->tensors[COUNTS])"),
        COUNTS, "count", "counts", golden_is_right=True),
    bug("counts-are-input", "wrong role", "gather",
        [("orchestration.c", "inout(&count, g->tensors[COUNTS])", "in(&count, g->tensors[COUNTS])"),
         ("scene.json", '"signature": ["in:int32", "inout:int32"]', '"signature": ["in:int32", "in:int32"]')],
        COUNTS, "count", "counts", "counts[id[i]] += 1"),
    bug("dequantise-whole-tile", "overrun into the next tile", "gather", ("kernels/dequantise.c", "i < x->shape[0]", "i < 8"), DEQUANTISES[5:],
        "dequantise", "x rows ids scales", ("float scale = gbx_bf16_to_f32", "to[i * x->strides[0] + j] =", "int32_t value = from[i"), runtime=AICPU),
    bug("dequantise-negative-zero-point", "wrong scalar", "gather", ("orchestration.c", "i32(&dequantise, gbx_arg_i32",
        "i32(&dequantise, -gbx_arg_i32"), DEQUANTISES, "dequantise", "zero_point", platform="a5sim", runtime=HOST),
    bug("tail-without-zero-point", "wrong scalar", "gather", ("orchestration.c", "i32(&dequantise, gbx_arg_i32(g->run->scalars, ZERO_POINT))",
        "i32(&dequantise, tokens == TOKENS ? gbx_arg_i32(g->run->scalars, ZERO_POINT) : 0)"), [32], "dequantise", "zero_point", runtime=AICPU),
    bug("zero-point-as-float", "dtype mix-up", "gather", ("orchestration.c", "i32(&dequantise, gbx_arg_i32(g->run->scalars, ZERO_POINT))",
        "f32(&dequantise, (float)gbx_arg_i32(g->run->scalars, ZERO_POINT))"), [2], "dequantise", "zero_point", expected=REFUSED),
    bug("rows-as-unsigned", "dtype mix-up", "gather", ("orchestration.c", "matrix_of(GBX_INT8,", "matrix_of(GBX_UINT8,"), [1], "lookup", "rows",
        expected=REFUSED, runtime=AICPU),
    bug("ids-past-the-end", "wrong view", "gather", ("orchestration.c", "gbx_tensor ids = slice(&g->tensors[IDS], start, tokens)",
        "gbx_tensor ids = slice(&g->tensors[IDS], start, TOKENS)"), [31], "lookup", "ids", expected=REFUSED, runtime=HOST),
    bug("lookup-ids-as-int64", "dtype mix-up", "gather", ("kernels/lookup.c", "const int32_t *ids", "const int64_t *ids"),
        LOOKUPS, "lookup", "", ("memcpy(to + i", "(size_t)table->shape[1]"), expected=REPORTED, platform="a5sim"),
]

# --- scopes: chunk c is 6 c square, + 1 smooth, + 2 decay, + 3 restore, + 4 finish, + 5 total; 48 average; 49 + c shift ---
# Only the last chunk has denormals, and only element 996 of the case `ramp`, in chunk 3, is zero.

SQUARES, SMOOTHS, DECAYS, RESTORES, FINISHES, TOTALS = (range(first, 48, 6) for first in range(6))
SCOPES = [
    bug("total-of-ended-scope", "stale pointer", "scopes", ("orchestration.c", "in(&total, b)", "in(&total, e)"), TOTALS, "total", "b",
        golden_is_right=True, may_be_refused=True),
    bug("finish-with-old-chunk", "stale pointer", "scopes",
        [("orchestration.c", "    in(&finish, b);\n", "    static gbx_tensor kept;\n    in(&finish, c ? kept : b);\n    kept = b;\n")],
        FINISHES[1:], "finish", "b", platform="a5sim", may_be_refused=True),
    bug("mean-of-ended-scope", "stale pointer", "scopes",
        [("orchestration.c", "    task average =", "    gbx_scope_begin(o);\n    task average ="),
         ("orchestration.c", "    add(&average);\n", "    add(&average);\n    gbx_scope_end(o);\n")],
        range(49, 57), "shift", "mean", golden_is_right=True, may_be_refused=True),
    bug("square-one-more", "overrun behind", "scopes", ("kernels/square.c", "i < a->shape[0]", "i <= a->shape[0]"),
        SQUARES, "square", "a x", "to[i] = from[i] * from[i]", golden_is_right=True),
    bug("smooth-begins-before", "overrun before", "scopes", ("kernels/smooth.c", "for (int64_t i = 0; i < length", "for (int64_t i = -1; i < length"),
        SMOOTHS, "smooth", "b a", ("to[i] = sum / count", "float sum = from[i]"), platform="a5sim", golden_is_right=True),
    bug("total-one-lane-more", "stack overrun", "scopes", ("kernels/total.c", "lanes[i % LANES]", "lanes[i % (LANES + 1)]"),
        TOTALS, "total", "", "lanes[i % (LANES + 1)]"),
    bug("total-lanes-uninitialised", "uninitialised local", "scopes", ("kernels/total.c", "float lanes[LANES] = {0};", "float lanes[LANES];"),
        TOTALS, "total", "", ("lanes[i % LANES] += from[i]", "sum += lanes[lane]", "float lanes[LANES];", "gbx_arg_tensor(args, 1)) = sum"),
        platform="a5sim"),
    bug("average-of-whole-chunks", "wrong scalar", "scopes", ("orchestration.c", "i32(&average, (int32_t)length)",
        "i32(&average, (int32_t)(length / CHUNK * CHUNK))"), [48], "average", "count"),
    bug("decay-flushes-denormals", "denormals flushed", "scopes", ("kernels/decay.c", "to[i] = value;",
        "to[i] = fabsf(value) < 1.17549435e-38f ? 0.0f : value;"), DECAYS[7:], "decay", "d"),
    bug("restore-reads-denormals-as-zero", "denormals flushed", "scopes", ("kernels/restore.c",
        "gbx_tensor_f32(e)[i] = ldexpf(gbx_tensor_f32(d)[i], shift);",
        "gbx_tensor_f32(e)[i] = fpclassify(gbx_tensor_f32(d)[i]) == FP_SUBNORMAL ? 0.0f : ldexpf(gbx_tensor_f32(d)[i], shift);"), RESTORES[7:],
        "restore", "e", platform="a5sim"),
    bug("square-by-sign", "NaN once in thousands", "scopes",
        [("kernels/square.c", "#include <glassbox", "#include <math.h>\n\n#include <glassbox"),
         ("kernels/square.c", "to[i] = from[i] * from[i];", "to[i] = from[i] / fabsf(from[i]) * from[i] * fabsf(from[i]);")],
        [18], "square", "a", case="ramp"),
    bug("shift-mean-at-offset", "reading past an input", "scopes", ("kernels/shift.c", "float mean = *gbx_tensor_f32(gbx_arg_tensor(args, 1));",
        "float mean = gbx_tensor_f32(gbx_arg_tensor(args, 1))[y->start_offset];"), range(50, 57), "shift", "mean", "float mean ="),
    bug("decay-by-integer-shift", "undefined behaviour", "scopes", ("kernels/decay.c", "ldexpf(from[i], -shift)", "from[i] / (float)(1 << shift)"),
        DECAYS[2:], "decay", "", "(float)(1 << shift)", platform="a5sim"),
    bug("finish-output-as-input", "wrong role", "scopes", ("orchestration.c", "out(&finish, slice(&g->tensors[Y], start, length))",
        "in(&finish, slice(&g->tensors[Y], start, length))"), [4], "finish", "y", expected=REFUSED),
]

# --- padded: tile t is tasks 8 t to 8 t + 7: bias, load, scale, crop, put, prefix, pack, sum ---

BIASES, LOADS, SCALES, CROPS, PUTS, PREFIXES, PACKS, SUMS = (range(first, 40, 8) for first in range(8))
PADDED = [
    bug("load-one-row-short", "output not fully written", "padded", ("kernels/load.c", "i < x->shape[0];", "i < x->shape[0] - 1;"),
        LOADS, "load", "a"),
    bug("load-rows-of-earlier-tile", "output not fully written", "padded", ("kernels/load.c", "i < x->shape[0];",
        "i < x->shape[0] && (i < 4 || x->start_offset < 384);"), LOADS[2:], "load", "a", runtime=AICPU, platform="a5sim"),
    bug("pack-counts-one-too-many", "tail off by one", "padded", ("kernels/pack.c", "*count = found;", "*count = found + 1;"),
        PACKS, "pack", "packed", runtime=HOST),
    bug("put-without-last-column", "tail off by one", "padded", ("kernels/put.c", "j < y->shape[1]; ++j", "j + 1 < y->shape[1]; ++j"),
        PUTS, "put", "all", platform="a5sim"),
    bug("crop-adds-unused-bias", "uninitialised temporary", "padded", ("kernels/crop.c", "uses_bias ? b[j] : 0.0f", "b[j] * (float)uses_bias"),
        CROPS, "crop", "b", others=BIASES, platform="a5sim", runtime=HOST),
    bug("scale-to-the-power", "NaN once in thousands", "padded", [
        ("kernels/scale.c", "#include <glassbox/kernel.h>", "#include <math.h>\n\n#include <glassbox/kernel.h>"),
        ("kernels/scale.c", "factor * gbx_tensor_f32(a)[i * a->strides[0] + j]", "powf(gbx_tensor_f32(a)[i * a->strides[0] + j], factor)")],
        SCALES, "scale", "c"),
    bug("sum-skips-the-first", "wrong logic", "padded", ("kernels/sum.c", "for (int32_t i = 0;", "for (int32_t i = 1;"), SUMS, "sum", "s",
        runtime=AICPU),
    bug("prefix-without-earlier-rows", "race between tasks", "padded", ("orchestration.c", "after(&prefix, all[t - 1].prefix);", ";"),
        PREFIXES[1:], "prefix", "all", others=PUTS, runtime=AICPU),
    bug("crop-scalar-as-tensor", "crash", "padded", ("kernels/crop.c", "*b = gbx_tensor_f32(gbx_arg_tensor(args, 1))",
        "*b = gbx_tensor_f32(gbx_arg_tensor(args, 3))"), CROPS, "crop", "", "gbx_arg_tensor(args, 3)", expected=REPORTED),
]

# --- atomics: part p is tasks 2 p (clear) and 2 p + 1 (sum_rows, in blocks) ---

ATOMICS = [
    bug("sums-not-atomic", "race between blocks", "atomics", ("kernels/sum_rows.c", "            add(&gbx_tensor_f32(y)[j], ",
        "            gbx_tensor_f32(y)[j] += ("), range(1, 6, 2), "sum_rows", "y", "gbx_tensor_f32(y)[j] += ("),
    bug("clear-all-but-last", "output not fully written", "atomics", ("kernels/clear.c", "j < y->shape[0]", "j + 1 < y->shape[0]"),
        range(0, 6, 2), "clear", "y", runtime=AICPU, platform="a5sim"),
]

BUGS = ATTENTION + STENCIL + REDUCE + PIPELINE + GATHER + SCOPES + PADDED + ATOMICS
