#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 2, 0); ++i)
        *at1(args, 2, i) = (float)((double)*at1(args, 0, i) - *at1(args, 1, i));
}
