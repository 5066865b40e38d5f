/* bgemm on tensormap_and_ringbuffer: the runtime orders tasks that share a tile of c; all others
 * are independent, because their views do not overlap. */
#include "graph.h"

static void submit_product(gbx_orchestration *o, const product *p) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &p->a);
    gbx_args_add_input(&args, &p->b);
    gbx_args_add_tensor(&args, &p->c, p->is_first ? GBX_ROLE_OUTPUT : GBX_ROLE_INOUT);
    gbx_submit_aic_task(o, p->is_first ? MATMUL : MATMUL_ADD, &args);
}

static void submit_row(gbx_orchestration *o, const tiling *t, int64_t batch, int64_t row) {
    for (int64_t k = 0; k < t->depth; ++k)
        for (int64_t column = 0; column < t->columns; ++column) {
            product p = product_at(t, batch, row, k, column);
            submit_product(o, &p);
        }
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    if (tile_is_wrong(o, run))
        return 0;
    const tiling t = tiling_of(&run->tensors[A], &run->tensors[B], &run->tensors[C],
                               gbx_arg_i32(run->scalars, TILE));
    for (int64_t batch = 0; batch < t.batches; ++batch) {
        gbx_scope_begin(o);
        for (int64_t row = 0; row < t.rows; ++row)
            submit_row(o, &t, batch, row);
        gbx_scope_end(o);
    }
    return 0;
}
