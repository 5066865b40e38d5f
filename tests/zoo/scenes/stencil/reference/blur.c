#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    double weight = gbx_arg_f32(args, 2);
    for (int64_t i = 0; i < extent(args, 1, 0); ++i)
        for (int64_t j = 0; j < extent(args, 1, 1); ++j) {
            double around = (double)*at(args, 0, i, j + 1) + *at(args, 0, i + 2, j + 1) +
                            *at(args, 0, i + 1, j) + *at(args, 0, i + 1, j + 2);
            *at(args, 1, i, j) =
                (float)((1.0 - weight) * *at(args, 0, i + 1, j + 1) + weight * around / 4.0);
        }
}
