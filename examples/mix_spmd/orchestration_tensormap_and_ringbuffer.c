/* mix_spmd on tensormap_and_ringbuffer, which allocates x, h, u, g and the workspaces. */
#include "graph.h"

/* Submits sum = x + y; the submit allocates the sum if it has no memory. */
static void submit_sum(gbx_orchestration *o, const gbx_tensor *x, const gbx_tensor *y,
                       gbx_tensor *sum) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_input(&args, y);
    if (sum->data)
        gbx_args_add_output(&args, sum);
    else
        gbx_args_add_new_output(&args, sum);
    gbx_submit_aiv_task(o, ADD, &args);
}

/* Submits a layer; the submit allocates y. */
static void submit_layer(gbx_orchestration *o, const gbx_run_args *run, int64_t layer,
                         const gbx_tensor *x, gbx_tensor *y) {
    layer_tensors tensors = {{*x, gbx_view_select(&run->tensors[W], 0, layer),
                              gbx_view_select(&run->tensors[BIAS], 0, layer), *y, *y, *y,
                              gbx_view_select(&run->tensors[FLAGS], 0, layer)}};
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < LAYER_SCALE; ++i)
        if (layer_role(i) == GBX_ROLE_OUTPUT)
            gbx_args_add_new_output(&args, &tensors.slots[i]);
        else
            gbx_args_add_tensor(&args, &tensors.slots[i], layer_role(i));
    gbx_args_add_scalar(&args, GBX_FLOAT32, run->scalars[SCALE]);
    gbx_submit_mix_task(o, layer_kernels(), &args);
    *y = tensors.slots[LAYER_Y];
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor f = run->tensors[F];
    gbx_tensor x = gbx_new_tensor(GBX_FLOAT32, f.ndims, f.shape);
    gbx_tensor h = x, u = x, g = x;

    gbx_scope_begin(o);
    submit_sum(o, &run->tensors[A], &run->tensors[B], &x);
    submit_layer(o, run, 0, &x, &h);
    submit_layer(o, run, 1, &x, &u);
    submit_layer(o, run, 2, &h, &g);
    submit_sum(o, &g, &u, &f);
    gbx_scope_end(o);
    return 0;
}
