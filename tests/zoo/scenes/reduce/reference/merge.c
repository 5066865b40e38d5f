#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    const int32_t *counts = gbx_tensor_origin(gbx_arg_tensor(args, 0), sizeof *counts);
    int32_t *merged = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *merged);
    for (int64_t level = 0; level < extent(args, 1, 0); ++level) {
        merged[level] = 0;
        for (int64_t block = 0; block < extent(args, 0, 0); ++block)
            merged[level] += counts[block * extent(args, 0, 1) + level];
    }
}
