/* Running sums: each block sums its own, waits for the carry of the block before and adds it. */
#include "share.h"

void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *z = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    float *carry = gbx_tensor_f32(gbx_arg_tensor(args, 2));
    uint32_t *flags = flags_of(args, 3), block = gbx_local(args)->block_idx;
    int64_t begin = share_begin(args, gbx_arg_tensor(args, 0)->shape[0]);
    int64_t end = share_end(args, gbx_arg_tensor(args, 0)->shape[0]);
    float sum = 0.0f, before = 0.0f;
    for (int64_t i = begin; i < end; ++i)
        z[i] = sum += x[i];
    if (block > 0) {
        gbx_flag_wait(&flags[block - 1], 1);
        before = carry[block - 1];
    }
    carry[block] = before + sum;
    gbx_flag_set(&flags[block], 1);
    for (int64_t i = begin; i < end; ++i)
        z[i] += before;
}
