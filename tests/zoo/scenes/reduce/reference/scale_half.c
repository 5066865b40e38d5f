#include "mix.h"

void kernel_entry(const uint64_t *args) {
    int64_t block = gbx_local(args)->block_idx;
    int64_t begin = first(args, block), end = first(args, block + 1);
    write_y(args, (begin + end) / 2, end);
}
