#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    double sum = 0.0;
    for (int64_t i = 0; i < extent(args, 0, 0); ++i)
        sum += *at1(args, 0, i);
    *at1(args, 1, 0) = (float)(sum / gbx_arg_i32(args, 2));
}
