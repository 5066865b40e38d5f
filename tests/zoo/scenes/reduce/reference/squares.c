#include "mix.h"

void kernel_entry(const uint64_t *args) {
    int64_t block = gbx_local(args)->block_idx;
    *at1(args, 3, block) = (float)squares_of(args, block);
    set_flag(args, 1);
}
