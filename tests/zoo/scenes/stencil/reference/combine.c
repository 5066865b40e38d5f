#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t j = 0; j < extent(args, 5, 0); ++j) {
        double sum = 0.0;
        for (unsigned part = 0; part < 5; ++part)
            sum += *at1(args, part, j);
        *at1(args, 5, j) = (float)sum;
    }
}
