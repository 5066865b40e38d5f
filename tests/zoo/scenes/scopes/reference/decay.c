#include <math.h>

#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 1, 0); ++i)
        *at1(args, 1, i) = (float)(*at1(args, 0, i) * pow(2.0, -gbx_arg_i32(args, 2)));
}
