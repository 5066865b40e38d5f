/*
 * Two graphs of independent tasks that do nothing.
 *
 * With tensors. Scalars of the run: 0 how many tensors, 1 bytes of each, 2 address of the buffer
 * that they are windows of, 3 its bytes, 4 how far the windows shift at each pass over it, 5 how
 * many a task has, 6 how long a kernel takes, in nanoseconds; a task then has one tensor.
 *
 * With scalars. Scalars of the run: 0 how many tasks, 1 how many scalars each. Scalar k of task t
 * is t << 8 | k.
 */
#include <glassbox/orchestration.h>

enum { NO_OP = 0, PAUSE = 1, MAX_TENSORS = 4, FLOAT_BYTES = 4 };

int orchestrate_tensors(gbx_orchestration *o, const gbx_run_args *run) {
    int64_t count = (int64_t)run->scalars[0];
    int64_t elements = (int64_t)run->scalars[1] / FLOAT_BYTES;
    int64_t in_pass = (int64_t)(run->scalars[3] / run->scalars[1]);
    int64_t in_task = (int64_t)run->scalars[5];
    uint64_t kernel_ns = run->scalars[6];
    int64_t shift = (int64_t)run->scalars[4] / FLOAT_BYTES;
    gbx_tensor windows[MAX_TENSORS];
    gbx_args args = gbx_args_begin();
    for (int64_t k = 0; k < in_task; ++k)
        windows[k] = gbx_tensor_at(run->scalars[2], GBX_FLOAT32, 1, &elements);
    for (int64_t i = 0; i < count; i += in_task) {
        gbx_args_clear(&args);
        for (int64_t k = 0; k < in_task; ++k) {
            windows[k].start_offset = (i + k) % in_pass * elements + (i + k) / in_pass * shift;
            gbx_args_add_input(&args, &windows[k]);
        }
        if (kernel_ns)
            gbx_args_add_u64(&args, kernel_ns);
        gbx_submit_aiv_task(o, kernel_ns ? PAUSE : NO_OP, &args);
    }
    return 0;
}

int orchestrate_scalars(gbx_orchestration *o, const gbx_run_args *run) {
    gbx_args args = gbx_args_begin();
    for (uint64_t task = 0; task < run->scalars[0]; ++task) {
        gbx_args_clear(&args);
        for (uint64_t k = 0; k < run->scalars[1]; ++k)
            gbx_args_add_u64(&args, task << 8 | k);
        gbx_submit_aiv_task(o, NO_OP, &args);
    }
    return 0;
}
