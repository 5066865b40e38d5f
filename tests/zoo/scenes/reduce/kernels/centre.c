/* AIV0: subtracts the mean of the row, then scales the first half once the squares are there. */
#include "scale.h"

void kernel_entry(const uint64_t *args) {
    const float *x = gbx_tensor_f32(gbx_arg_tensor(args, MIX_X));
    float *centred = gbx_tensor_f32(gbx_arg_tensor(args, MIX_CENTRED));
    int64_t length = gbx_arg_tensor(args, MIX_X)->shape[0];
    int64_t begin = share_begin(args, length), end = share_end(args, length);
    float mean = *gbx_tensor_f32(gbx_arg_tensor(args, MIX_TOTAL)) / (float)length;
    for (int64_t i = begin; i < end; ++i)
        centred[i] = x[i] - mean;
    gbx_flag_set(mix_flag(args, CENTRED), 1);
    gbx_flag_wait(mix_flag(args, SQUARED), 1);
    scale_part(args, begin, (begin + end) / 2);
}
