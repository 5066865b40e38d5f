/* y = centred / sqrt(mean of squares + eps), of a part of the block's elements. */
#ifndef REDUCE_SCALE_H
#define REDUCE_SCALE_H

#include <math.h>

#include "share.h"

static inline void scale_part(const uint64_t *args, int64_t begin, int64_t end) {
    const float *centred = gbx_tensor_f32(gbx_arg_tensor(args, MIX_CENTRED));
    float *y = gbx_tensor_f32(gbx_arg_tensor(args, MIX_Y));
    int64_t length = gbx_arg_tensor(args, MIX_X)->shape[0];
    float count = (float)(share_end(args, length) - share_begin(args, length));
    float squares = gbx_tensor_f32(gbx_arg_tensor(args, MIX_SQUARES))[gbx_local(args)->block_idx];
    float factor = 1.0f / sqrtf(squares / count + gbx_arg_f32(args, MIX_EPS));
    for (int64_t i = begin; i < end; ++i)
        y[i] = centred[i] * factor;
}

#endif
