/* In float like the kernel: an element at the edge of a level must fall on the same side. */
#include "../../element.h"

void kernel_entry(const uint64_t *args) {
    int64_t length = extent(args, 0, 0), block = gbx_local(args)->block_idx;
    int64_t blocks = gbx_local(args)->block_num, levels = extent(args, 1, 1);
    int32_t *counts = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *counts);
    for (int64_t level = 0; level < levels; ++level) {
        int32_t count = 0;
        for (int64_t i = length * block / blocks; i < length * (block + 1) / blocks; ++i) {
            float range = gbx_arg_f32(args, 2);
            float place = (*at1(args, 0, i) + range) / (2.0f * range) * (float)levels;
            int is_above = level == 0 || place >= (float)level;
            int is_below = place < (float)(level + 1);
            count += level == levels - 1 ? !(place < (float)level) : is_above && is_below;
        }
        counts[block * levels + level] = count;
    }
}
