/*
 * Submits a graph that is given as a table: scalar 0 is the number of tasks, tensor 0 an int32 row
 * for each (-1: no input), tensor 1 the memory of the tensors, a row each. Task i takes row
 * i % rows.
 */
#include <glassbox/orchestration.h>

enum { NO_OP = 0, MAX_INPUTS = 2 };

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor *memory = &run->tensors[1];
    int64_t rows = memory->shape[0];
    const int32_t *inputs = (const int32_t *)gbx_tensor_origin(&run->tensors[0], sizeof *inputs);
    /* Views of one row, which differ only in where they start. */
    gbx_tensor own = gbx_view_select(memory, 0, 0);
    gbx_tensor read[MAX_INPUTS] = {own, own};
    gbx_args args = gbx_args_begin();
    int64_t row = 0;
    for (uint64_t i = 0; i < run->scalars[0]; ++i) {
        gbx_args_clear(&args);
        for (int k = 0; k < MAX_INPUTS && inputs[row * MAX_INPUTS + k] >= 0; ++k) {
            read[k].start_offset = inputs[row * MAX_INPUTS + k] * memory->strides[0];
            gbx_args_add_input(&args, &read[k]);
        }
        own.start_offset = row * memory->strides[0];
        gbx_args_add_output(&args, &own);
        gbx_submit_aiv_task(o, NO_OP, &args);
        row = row + 1 < rows ? row + 1 : 0;
    }
    return 0;
}
