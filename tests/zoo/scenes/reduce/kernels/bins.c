/* How many elements of the block's share are in each of the levels from -range to range. */
#include "share.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *z = gbx_arg_tensor(args, 0), *counts = gbx_arg_tensor(args, 1);
    float range = gbx_arg_f32(args, 2);
    int64_t levels = counts->shape[1], end = share_end(args, z->shape[0]);
    int32_t *mine = gbx_tensor_origin(counts, sizeof *mine);
    mine += gbx_local(args)->block_idx * counts->strides[0];
    for (int64_t level = 0; level < levels; ++level)
        mine[level] = 0;
    for (int64_t i = share_begin(args, z->shape[0]); i < end; ++i) {
        float place = (gbx_tensor_f32(z)[i] + range) / (2.0f * range) * (float)levels;
        int64_t level = levels - 1; /* also of NaN */
        if (place < (float)levels)
            level = place < 0.0f ? 0 : (int64_t)place;
        mine[level] += 1;
    }
}
