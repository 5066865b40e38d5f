/* AIV1: scales the second half of the block's elements. */
#include "scale.h"

void kernel_entry(const uint64_t *args) {
    int64_t length = gbx_arg_tensor(args, MIX_X)->shape[0];
    int64_t begin = share_begin(args, length), end = share_end(args, length);
    gbx_flag_wait(mix_flag(args, SQUARED), 1);
    scale_part(args, (begin + end) / 2, end);
}
