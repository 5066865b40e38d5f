/* The diamond on aicpu_build_graph: on the chip, with explicit edges; each task is published as
 * soon as its edges are there, while earlier ones may be running. */
#include "graph.h"

static gbx_tensor like(gbx_orchestration *o, const gbx_tensor *tensor) {
    gbx_tensor made = *tensor;
    made.buffer_bytes = (uint64_t)gbx_tensor_numel(tensor) * sizeof(float);
    made.data = gbx_device_malloc(o, made.buffer_bytes);
    return made;
}

static gbx_task add_binary(gbx_orchestration *o, uint32_t kernel, const gbx_tensor *x,
                           const gbx_tensor *y, const gbx_tensor *out) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_input(&args, y);
    gbx_args_add_output(&args, out);
    return gbx_add_task_with_args(o, gbx_aiv(kernel), &args);
}

static gbx_task add_with_scalar(gbx_orchestration *o, const gbx_tensor *x, const gbx_tensor *out,
                                float addend) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_output(&args, out);
    gbx_args_add_f32(&args, addend);
    return gbx_add_task_with_args(o, gbx_aiv(ADD_SCALAR), &args);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor *f = &run->tensors[F];
    const gbx_tensor s = like(o, f), u = like(o, f), v = like(o, f), p = like(o, f);

    gbx_task sum = add_binary(o, ADD, &run->tensors[A], &run->tensors[B], &s);
    gbx_publish_task(o, sum);

    gbx_task plus_one = add_with_scalar(o, &s, &u, 1.0f);
    gbx_add_successor_conditional(o, sum, plus_one);
    gbx_publish_task(o, plus_one);

    gbx_task plus_two = add_with_scalar(o, &s, &v, 2.0f);
    gbx_add_successor_conditional(o, sum, plus_two);
    gbx_publish_task(o, plus_two);

    gbx_task product = add_binary(o, MUL, &u, &v, &p);
    gbx_add_successor_conditional(o, plus_one, product);
    gbx_add_successor_conditional(o, plus_two, product);
    gbx_publish_task(o, product);

    gbx_task last = add_binary(o, ADD, &p, &s, f);
    gbx_add_successor_conditional(o, product, last);
    gbx_add_successor_conditional(o, sum, last);
    gbx_publish_task(o, last);
    return 0;
}
