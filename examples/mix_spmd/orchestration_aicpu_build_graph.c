/* mix_spmd on aicpu_build_graph. */
#include "graph.h"

static gbx_tensor like(gbx_orchestration *o, const gbx_tensor *tensor) {
    gbx_tensor made = *tensor;
    made.buffer_bytes = (uint64_t)gbx_tensor_numel(tensor) * sizeof(float);
    made.data = gbx_device_malloc(o, made.buffer_bytes);
    return made;
}

static gbx_task add_sum(gbx_orchestration *o, const gbx_tensor *x, const gbx_tensor *y,
                        const gbx_tensor *sum) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_input(&args, y);
    gbx_args_add_output(&args, sum);
    return gbx_add_task_with_args(o, gbx_aiv(ADD), &args);
}

static gbx_task add_layer(gbx_orchestration *o, const gbx_run_args *run, int64_t layer,
                          const gbx_tensor *x, const gbx_tensor *y) {
    const layer_tensors tensors = {{*x, gbx_view_select(&run->tensors[W], 0, layer),
                                    gbx_view_select(&run->tensors[BIAS], 0, layer), like(o, x),
                                    like(o, y), *y,
                                    gbx_view_select(&run->tensors[FLAGS], 0, layer)}};
    gbx_args args = gbx_args_begin();
    for (uint32_t i = 0; i < LAYER_SCALE; ++i)
        gbx_args_add_tensor(&args, &tensors.slots[i], layer_role(i));
    gbx_args_add_scalar(&args, GBX_FLOAT32, run->scalars[SCALE]);
    return gbx_add_task_with_args(o, layer_kernels(), &args);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor *f = &run->tensors[F];
    const gbx_tensor x = like(o, f), h = like(o, f), u = like(o, f), g = like(o, f);

    gbx_task first = add_sum(o, &run->tensors[A], &run->tensors[B], &x);
    gbx_publish_task(o, first);

    gbx_task layer0 = add_layer(o, run, 0, &x, &h);
    gbx_add_successor_conditional(o, first, layer0);
    gbx_publish_task(o, layer0);

    gbx_task layer1 = add_layer(o, run, 1, &x, &u);
    gbx_add_successor_conditional(o, first, layer1);
    gbx_publish_task(o, layer1);

    gbx_task layer2 = add_layer(o, run, 2, &h, &g);
    gbx_add_successor_conditional(o, layer0, layer2);
    gbx_publish_task(o, layer2);

    gbx_task last = add_sum(o, &g, &u, f);
    gbx_add_successor_conditional(o, layer2, last);
    gbx_add_successor_conditional(o, layer1, last);
    gbx_publish_task(o, last);
    return 0;
}
