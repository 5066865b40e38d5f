/* bgemm on aicpu_build_graph: the chain of each tile is explicit. */
#include "graph.h"

static gbx_task add_product(gbx_orchestration *o, const product *p) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &p->a);
    gbx_args_add_input(&args, &p->b);
    gbx_args_add_tensor(&args, &p->c, p->is_first ? GBX_ROLE_OUTPUT : GBX_ROLE_INOUT);
    return gbx_add_task_with_args(o, gbx_aic(p->is_first ? MATMUL : MATMUL_ADD), &args);
}

static void add_row(gbx_orchestration *o, const tiling *t, int64_t batch, int64_t row) {
    for (int64_t k = 0; k < t->depth; ++k)
        for (int64_t column = 0; column < t->columns; ++column) {
            product p = product_at(t, batch, row, k, column);
            gbx_task task = add_product(o, &p);
            if (!p.is_first)
                gbx_add_successor_conditional(o, previous_of(t, task), task);
            gbx_publish_task(o, task);
        }
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    if (tile_is_wrong(o, run))
        return 0;
    const tiling t = tiling_of(&run->tensors[A], &run->tensors[B], &run->tensors[C],
                               gbx_arg_i32(run->scalars, TILE));
    for (int64_t batch = 0; batch < t.batches; ++batch)
        for (int64_t row = 0; row < t.rows; ++row)
            add_row(o, &t, batch, row);
    return 0;
}
