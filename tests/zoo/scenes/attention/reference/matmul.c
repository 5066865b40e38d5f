#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 2, 0); ++i)
        for (int64_t j = 0; j < extent(args, 2, 1); ++j) {
            double sum = 0.0;
            for (int64_t k = 0; k < extent(args, 0, 1); ++k)
                sum += (double)*at(args, 0, i, k) * *at(args, 1, k, j);
            *at(args, 2, i, j) = (float)sum;
        }
}
