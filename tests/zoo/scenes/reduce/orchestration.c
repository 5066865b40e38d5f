/*
 * Statistics of each row of x, with blocks that share counters and subtasks that wait for flags.
 * Row r is tasks 6 r to 6 r + 5:
 *
 *     0  row_sum    8 blocks: partial sums; the last block that is done adds them up
 *     1  a mix      4 blocks: centred = x - mean (centre on AIV0), squares of the block (squares on
 *                   AIC), y scaled (one half by centre, the other by scale_half on AIV1)
 *     2  prefix     4 blocks: running sums of y; a block waits for the carry of the one before
 *     3  bins       3 blocks: counts of prefix sums, a row of counts for each block
 *     4  merge      the counts of all blocks together
 *     5  peak       the largest |prefix sum|
 */
#include "../graph.h"

enum {
    ROW_SUM = 0,
    SQUARES = 1,
    CENTRE = 2,
    SCALE_HALF = 3,
    PREFIX = 4,
    BINS = 5,
    MERGE = 6,
    PEAK = 7
};
enum {
    X = 0,
    TOTALS = 1,
    COUNTERS = 2,
    MIX_FLAGS = 3,
    SCAN_FLAGS = 4,
    Y = 5,
    HISTOGRAM = 6,
    PEAKS = 7
};
enum { SUM_BLOCKS = 8, MIX_BLOCKS = 4, SCAN_BLOCKS = 4, BIN_BLOCKS = 3, LEVELS = 8 };

static gbx_tensor row_of(graph *g, int tensor, int64_t r) {
    return gbx_view_select(&g->tensors[tensor], 0, r);
}

static void add_row(graph *g, int64_t r) {
    const int64_t length = g->tensors[X].shape[1];
    gbx_tensor partials = vector_of(GBX_FLOAT32, SUM_BLOCKS);
    gbx_tensor centred = vector_of(GBX_FLOAT32, length), z = centred;
    gbx_tensor squares = vector_of(GBX_FLOAT32, MIX_BLOCKS);
    gbx_tensor carry = vector_of(GBX_FLOAT32, SCAN_BLOCKS);
    gbx_tensor counts = matrix_of(GBX_INT32, BIN_BLOCKS, LEVELS);

    task sum = begin_task(g, gbx_spmd(gbx_aiv(ROW_SUM), SUM_BLOCKS));
    in(&sum, row_of(g, X, r));
    fresh(&sum, &partials);
    out(&sum, slice(&g->tensors[TOTALS], r, 1));
    inout(&sum, slice(&g->tensors[COUNTERS], r, 1));
    gbx_task summed = add(&sum);

    task mix = begin_task(g, gbx_spmd(gbx_mix(SQUARES, CENTRE, SCALE_HALF), MIX_BLOCKS));
    in(&mix, row_of(g, X, r));
    in(&mix, slice(&g->tensors[TOTALS], r, 1));
    fresh(&mix, &centred);
    fresh(&mix, &squares);
    out(&mix, row_of(g, Y, r));
    inout(&mix, row_of(g, MIX_FLAGS, r));
    f32(&mix, gbx_arg_f32(g->run->scalars, 0));
    after(&mix, summed);
    gbx_task scaled = add(&mix);

    gbx_task_kernels scan = gbx_spmd(gbx_aiv(PREFIX), SCAN_BLOCKS);
    scan.flags = GBX_TASK_SYNC_BLOCKS;
    task prefix = begin_task(g, scan);
    in(&prefix, row_of(g, Y, r));
    fresh(&prefix, &z);
    fresh(&prefix, &carry);
    inout(&prefix, row_of(g, SCAN_FLAGS, r));
    after(&prefix, scaled);
    gbx_task scanned = add(&prefix);

    task bins = begin_task(g, gbx_spmd(gbx_aiv(BINS), BIN_BLOCKS));
    in(&bins, z);
    fresh(&bins, &counts);
    f32(&bins, gbx_arg_f32(g->run->scalars, 1));
    after(&bins, scanned);
    gbx_task counted = add(&bins);

    task merge = begin_task(g, gbx_aiv(MERGE));
    in(&merge, counts);
    out(&merge, row_of(g, HISTOGRAM, r));
    after(&merge, counted);
    add(&merge);

    task peak = begin_task(g, gbx_aiv(PEAK));
    in(&peak, z);
    out(&peak, slice(&g->tensors[PEAKS], r, 1));
    after(&peak, scanned);
    add(&peak);
}

static int build(graph g) {
    for (int64_t r = 0; r < g.tensors[X].shape[0]; ++r)
        add_row(&g, r);
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << TOTALS | 1u << Y | 1u << HISTOGRAM | 1u << PEAKS,
                               1u << COUNTERS | 1u << MIX_FLAGS | 1u << SCAN_FLAGS));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
