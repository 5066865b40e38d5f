/*
 * A quantised embedding: rows of an int8 table by index, dequantised, projected with int4 weights
 * and quantised again, 8 tokens at a time, the last 4.
 *
 *     0            unpack      w = step * weights
 *     1 + 6 t      lookup      rows_t = table[ids_t]
 *     2 + 6 t      dequantise  x_t = scales[ids_t] * (rows_t - zero_point)
 *     3 + 6 t      project     y_t = x_t . w
 *     4 + 6 t      quantise    codes_t = y_t / out_step, rounded, from -128 to 127
 *     5 + 6 t      count       counts[ids_t] += 1
 *     6 + 6 t      mark        marks_t = hash of each id, with a seed and a shift out of record t
 */
#include "../graph.h"

enum { UNPACK = 0, LOOKUP = 1, DEQUANTISE = 2, PROJECT = 3, QUANTISE = 4, COUNT = 5, MARK = 6 };
enum {
    IDS = 0,
    TABLE = 1,
    SCALES = 2,
    WEIGHTS = 3,
    RECORDS = 4,
    Y = 5,
    CODES = 6,
    COUNTS = 7,
    MARKS = 8
};
enum { ZERO_POINT = 0, STEP = 1, OUT_STEP = 2 };
enum { TOKENS = 8 };

static gbx_task add_unpack(graph *g, gbx_tensor *w) {
    task unpack = begin_task(g, gbx_aiv(UNPACK));
    in(&unpack, g->tensors[WEIGHTS]);
    fresh(&unpack, w);
    f32(&unpack, gbx_arg_f32(g->run->scalars, STEP));
    return add(&unpack);
}

/* Returns the task that counts: the next one adds to the same counts. */
static gbx_task add_tokens(graph *g, int64_t start, const gbx_tensor *w, gbx_task unpacked,
                           gbx_task counted) {
    const int64_t tokens = part_of(g->tensors[IDS].shape[0], start, TOKENS);
    const gbx_tensor ids = slice(&g->tensors[IDS], start, tokens);
    const gbx_tensor y = slice(&g->tensors[Y], start, tokens);
    gbx_tensor rows = matrix_of(GBX_INT8, tokens, g->tensors[TABLE].shape[1]);
    gbx_tensor x = matrix_of(GBX_FLOAT16, tokens, g->tensors[TABLE].shape[1]);

    task lookup = begin_task(g, gbx_aiv(LOOKUP));
    in(&lookup, g->tensors[TABLE]);
    in(&lookup, ids);
    fresh(&lookup, &rows);
    gbx_task last = add(&lookup);

    task dequantise = begin_task(g, gbx_aiv(DEQUANTISE));
    in(&dequantise, rows);
    in(&dequantise, g->tensors[SCALES]);
    in(&dequantise, ids);
    fresh(&dequantise, &x);
    i32(&dequantise, gbx_arg_i32(g->run->scalars, ZERO_POINT));
    after(&dequantise, last);
    last = add(&dequantise);

    task project = begin_task(g, gbx_aic(PROJECT));
    in(&project, x);
    in(&project, *w);
    out(&project, y);
    after(&project, last);
    after(&project, unpacked);
    last = add(&project);

    task quantise = begin_task(g, gbx_aiv(QUANTISE));
    in(&quantise, y);
    out(&quantise, slice(&g->tensors[CODES], start, tokens));
    f32(&quantise, gbx_arg_f32(g->run->scalars, OUT_STEP));
    after(&quantise, last);
    add(&quantise);

    task count = begin_task(g, gbx_aiv(COUNT));
    in(&count, ids);
    inout(&count, g->tensors[COUNTS]);
    if (counted != GBX_NO_TASK)
        after(&count, counted);
    counted = add(&count);

    task mark = begin_task(g, gbx_aiv(MARK));
    in(&mark, ids);
    in(&mark, gbx_view_select(&g->tensors[RECORDS], 0, start / TOKENS));
    out(&mark, slice(&g->tensors[MARKS], start, tokens));
    add(&mark);
    return counted;
}

static int build(graph g) {
    gbx_tensor w = matrix_of(GBX_FLOAT16, g.tensors[WEIGHTS].shape[0], g.tensors[WEIGHTS].shape[1]);
    gbx_task unpacked = add_unpack(&g, &w), counted = GBX_NO_TASK;
    for (int64_t start = 0; start < g.tensors[IDS].shape[0]; start += TOKENS)
        counted = add_tokens(&g, start, &w, unpacked, counted);
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << Y | 1u << CODES | 1u << MARKS, 1u << COUNTS));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
