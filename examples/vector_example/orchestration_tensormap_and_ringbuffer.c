/* The diamond on tensormap_and_ringbuffer: the runtime finds the edges and allocates s, u, v, p. */
#include "graph.h"

/* Submits `out` = x op y; the submit allocates `out` if it has no memory. */
static void submit_binary(gbx_orchestration *o, uint32_t kernel, const gbx_tensor *x,
                          const gbx_tensor *y, gbx_tensor *out) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_input(&args, y);
    if (out->data)
        gbx_args_add_output(&args, out);
    else
        gbx_args_add_new_output(&args, out);
    gbx_submit_aiv_task(o, kernel, &args);
}

static void submit_with_scalar(gbx_orchestration *o, const gbx_tensor *x, gbx_tensor *out,
                               float addend) {
    gbx_args args = gbx_args_begin();
    gbx_args_add_input(&args, x);
    gbx_args_add_new_output(&args, out);
    gbx_args_add_f32(&args, addend);
    gbx_submit_aiv_task(o, ADD_SCALAR, &args);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_tensor f = run->tensors[F];
    gbx_tensor s = gbx_new_tensor(GBX_FLOAT32, f.ndims, f.shape);
    gbx_tensor u = s, v = s, p = s;

    submit_binary(o, ADD, &run->tensors[A], &run->tensors[B], &s);
    /* In a scope: u, v and p are freed as soon as the last task that reads them is done. */
    gbx_scope_begin(o);
    submit_with_scalar(o, &s, &u, 1.0f);
    submit_with_scalar(o, &s, &v, 2.0f);
    submit_binary(o, MUL, &u, &v, &p);
    submit_binary(o, ADD, &p, &s, &f);
    gbx_scope_end(o);
    return 0;
}
