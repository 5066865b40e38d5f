/* Takes one block into the running maximum, sum and output of each row. */
#include <math.h>

#include "elements.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *block_max = gbx_arg_tensor(args, 0), *block_sum = gbx_arg_tensor(args, 1);
    const gbx_tensor *partial = gbx_arg_tensor(args, 2);
    const gbx_tensor *running_max = gbx_arg_tensor(args, 3), *running_sum = gbx_arg_tensor(args, 4);
    const gbx_tensor *out = gbx_arg_tensor(args, 5);
    int is_first = gbx_arg_u32(args, 6) != 0, is_last = gbx_arg_u32(args, 7) != 0;
    for (int64_t row = 0; row < out->shape[0]; ++row) {
        double old_max = is_first ? -INFINITY : get(running_max, row, 0);
        double old_sum = is_first ? 0 : get(running_sum, row, 0);
        double max = fmax(old_max, get(block_max, row, 0));
        double old_part = exp(old_max - max), new_part = exp(get(block_max, row, 0) - max);
        double sum = old_part * old_sum + new_part * get(block_sum, row, 0);
        for (int64_t d = 0; d < out->shape[1]; ++d) {
            double old = is_first ? 0 : get(out, row, d);
            double value = old_part * old + new_part * get(partial, row, d);
            set(out, row, d, is_last ? value / sum : value);
        }
        set(running_max, row, 0, max);
        set(running_sum, row, 0, sum);
    }
}
