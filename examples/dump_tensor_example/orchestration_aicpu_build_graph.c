/*
 * The graph on aicpu_build_graph: this function runs on the chip, where the tensors of the run
 * already are. Tasks say what their arguments are; edges are explicit, and a task runs once it is
 * published and its predecessors are done.
 */
#include "graph.h"

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    /* s, between the tasks: in memory of its own, like f. */
    gbx_tensor s = run->tensors[F];
    s.buffer_bytes = (uint64_t)gbx_tensor_numel(&s) * sizeof(float);
    s.data = gbx_device_malloc(o, s.buffer_bytes);

    /* Task 0: s = a + b. */
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &run->tensors[A]);
    gbx_args_add_input(&args, &run->tensors[B]);
    gbx_args_add_output(&args, &s);
    gbx_args_dump(&args, 2); /* s: --dump-tensor=partial keeps only what is marked */
    gbx_task add = gbx_add_task_with_args(o, gbx_aiv(ADD), &args);
    gbx_publish_task(o, add);

    /* Task 1: f = s + 1. The first may be running already, or done. */
    gbx_args_clear(&args);
    gbx_args_add_input(&args, &s);
    gbx_args_add_output(&args, &run->tensors[F]);
    gbx_args_add_f32(&args, ADDEND);
    gbx_args_dump_all(&args);
    gbx_task add_scalar = gbx_add_task_with_args(o, gbx_aiv(ADD_SCALAR), &args);
    gbx_add_successor_conditional(o, add, add_scalar);
    gbx_publish_task(o, add_scalar);
    return 0;
}
