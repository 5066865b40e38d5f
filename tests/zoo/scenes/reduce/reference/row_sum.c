/* Partial sums of this block; the first block computes the total by itself. */
#include "../../element.h"

static double sum_of(const uint64_t *args, int64_t begin, int64_t end) {
    double sum = 0.0;
    for (int64_t i = begin; i < end; ++i)
        sum += *at1(args, 0, i);
    return sum;
}

void kernel_entry(const uint64_t *args) {
    int64_t length = extent(args, 0, 0), block = gbx_local(args)->block_idx;
    int64_t blocks = gbx_local(args)->block_num;
    *at1(args, 1, block) =
        (float)sum_of(args, length * block / blocks, length * (block + 1) / blocks);
    uint32_t *counter = gbx_tensor_origin(gbx_arg_tensor(args, 3), sizeof *counter);
    gbx_flag_add(counter, 1);
    if (block == 0)
        *at1(args, 2, 0) = (float)sum_of(args, 0, length);
}
