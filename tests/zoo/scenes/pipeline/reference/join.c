#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    double mix = gbx_arg_f32(args, 3);
    for (int64_t i = 0; i < extent(args, 2, 0); ++i)
        *at1(args, 2, i) = (float)(mix * *at1(args, 0, i) + (1.0 - mix) * *at1(args, 1, i));
}
