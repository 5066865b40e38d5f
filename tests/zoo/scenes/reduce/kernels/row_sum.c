/* Partial sums by block; the last block that is done adds them up, always in the same order. */
#include "share.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *x = gbx_arg_tensor(args, 0);
    const gbx_local_context *local = gbx_local(args);
    float *partials = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    float *total = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    uint32_t *counter = flags_of(args, 3);
    int64_t end = share_end(args, x->shape[0]);
    float sum = 0.0f;
    for (int64_t i = share_begin(args, x->shape[0]); i < end; ++i)
        sum += gbx_tensor_f32(x)[i];
    partials[local->block_idx] = sum;
    if (gbx_flag_add(counter, 1) == local->block_num) {
        float all = 0.0f;
        for (uint32_t block = 0; block < local->block_num; ++block)
            all += partials[block];
        *total = all;
    }
}
