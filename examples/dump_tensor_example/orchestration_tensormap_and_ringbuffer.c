/*
 * The graph on tensormap_and_ringbuffer: this function runs on the chip, and says only what each
 * task reads and writes. The runtime finds the edges, and allocates what lies between the tasks.
 */
#include "graph.h"

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor *f = &run->tensors[F];

    /* Task 0: s = a + b. The submit gives s its memory. */
    gbx_tensor s = gbx_new_tensor(GBX_FLOAT32, f->ndims, f->shape);
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, &run->tensors[A]);
    gbx_args_add_input(&args, &run->tensors[B]);
    gbx_args_add_new_output(&args, &s);
    gbx_args_dump(&args, 2); /* s: --dump-tensor=partial keeps only what is marked */
    gbx_submit_aiv_task(o, ADD, &args);

    /* Task 1: f = s + 1. It reads what task 0 writes, so it runs after it. */
    gbx_args_clear(&args);
    gbx_args_add_input(&args, &s);
    gbx_args_add_output(&args, f);
    gbx_args_add_f32(&args, ADDEND);
    gbx_args_dump_all(&args);
    gbx_submit_aiv_task(o, ADD_SCALAR, &args);
    return 0;
}
