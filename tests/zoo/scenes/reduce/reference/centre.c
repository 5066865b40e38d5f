#include "mix.h"

void kernel_entry(const uint64_t *args) {
    int64_t block = gbx_local(args)->block_idx;
    int64_t begin = first(args, block), end = first(args, block + 1);
    for (int64_t i = begin; i < end; ++i)
        *at1(args, 2, i) = (float)centred_at(args, i);
    set_flag(args, 0);
    write_y(args, begin, (begin + end) / 2);
}
