#include "bytes.h"

void kernel_entry(const uint64_t *args) {
    for (int64_t i = 0; i < extent(args, 2, 0); ++i)
        for (int64_t j = 0; j < extent(args, 2, 1); ++j)
            *i8(args, 2, i, j) = *i8(args, 0, *i32(args, 1, i), j);
}
