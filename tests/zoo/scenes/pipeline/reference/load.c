#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 1, 0); ++i)
        *at1(args, 1, i) = (float)((double)gbx_arg_f32(args, 2) * *at1(args, 0, i));
}
