#include <math.h>

#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 0, 0); ++i) {
        int64_t last = gbx_arg_i32(args, 2) + i;
        double largest = -INFINITY, sum = 0.0;
        for (int64_t j = 0; j <= last; ++j)
            largest = fmax(largest, *at(args, 0, i, j));
        for (int64_t j = 0; j <= last; ++j)
            sum += exp(*at(args, 0, i, j) - largest);
        for (int64_t j = 0; j < extent(args, 0, 1); ++j)
            *at(args, 1, i, j) = j <= last ? (float)(exp(*at(args, 0, i, j) - largest) / sum) : 0;
    }
}
