#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    double alpha = gbx_arg_f32(args, 3);
    for (int64_t i = 0; i < extent(args, 2, 0); ++i)
        for (int64_t j = 0; j < extent(args, 2, 1); ++j)
            *at(args, 2, i, j) = (float)(*at(args, 0, i, j) + alpha * *at(args, 1, i, j));
}
