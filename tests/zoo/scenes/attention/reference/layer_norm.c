#include <math.h>

#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    int64_t columns = extent(args, 0, 1);
    for (int64_t i = 0; i < extent(args, 0, 0); ++i) {
        double mean = 0.0, variance = 0.0;
        for (int64_t j = 0; j < columns; ++j)
            mean += *at(args, 0, i, j) / (double)columns;
        for (int64_t j = 0; j < columns; ++j)
            variance += pow(*at(args, 0, i, j) - mean, 2.0) / (double)columns;
        for (int64_t j = 0; j < columns; ++j)
            *at(args, 3, i, j) = (float)(*at1(args, 1, j) * (*at(args, 0, i, j) - mean) /
                                             sqrt(variance + gbx_arg_f32(args, 4)) +
                                         *at1(args, 2, j));
    }
}
