/* AIC: the sum of squares of the block's elements, once they are centred. */
#include "share.h"

void kernel_entry(const uint64_t *args) {
    const float *centred = gbx_tensor_f32(gbx_arg_tensor(args, MIX_CENTRED));
    int64_t length = gbx_arg_tensor(args, MIX_X)->shape[0];
    int64_t end = share_end(args, length);
    float sum = 0.0f;
    gbx_flag_wait(mix_flag(args, CENTRED), 1);
    for (int64_t i = share_begin(args, length); i < end; ++i)
        sum += centred[i] * centred[i];
    gbx_tensor_f32(gbx_arg_tensor(args, MIX_SQUARES))[gbx_local(args)->block_idx] = sum;
    gbx_flag_set(mix_flag(args, SQUARED), 1);
}
