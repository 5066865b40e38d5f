/*
 * Sums whose last bits depend on the order of atomic additions, and no bug. Part p of the rows is
 * tasks 2 p and 2 p + 1:
 *
 *     0  clear      y_p = 0
 *     1  sum_rows   4 blocks: y_p += the rows of part p
 */
#include "../graph.h"

enum { CLEAR, SUM_ROWS };
enum { X = 0, Y = 1 };
enum { BLOCKS = 4 };

static int build(graph g) {
    const gbx_tensor *x = &g.tensors[X];
    int64_t parts = g.tensors[Y].shape[0], rows = x->shape[0] / parts;
    for (int64_t p = 0; p < parts; ++p) {
        const gbx_tensor y = gbx_view_select(&g.tensors[Y], 0, p);

        task clear = begin_task(&g, gbx_aiv(CLEAR));
        out(&clear, y);
        gbx_task cleared = add(&clear);

        task sum = begin_task(&g, gbx_spmd(gbx_aiv(SUM_ROWS), BLOCKS));
        in(&sum, slice(x, p * rows, rows));
        inout(&sum, y);
        after(&sum, cleared);
        add(&sum);
    }
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << Y, 0));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
