#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t j = 0; j < extent(args, 1, 0); ++j) {
        double sum = 0.0;
        for (int64_t i = 0; i < extent(args, 0, 0); ++i)
            sum += *at(args, 0, i, j);
        *at1(args, 1, j) = (float)sum;
    }
}
