/* Weights of one block against its own maximum; the tokens past `valid` weigh nothing. */
#include <math.h>

#include "elements.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *scores = gbx_arg_tensor(args, 0);
    const gbx_tensor *weights = gbx_arg_tensor(args, 1);
    const gbx_tensor *block_max = gbx_arg_tensor(args, 2);
    const gbx_tensor *block_sum = gbx_arg_tensor(args, 3);
    double scale = (double)gbx_arg_f32(args, 4);
    int64_t valid = gbx_arg_i32(args, 5);
    for (int64_t row = 0; row < scores->shape[0]; ++row) {
        double max = -INFINITY, sum = 0;
        for (int64_t token = 0; token < valid; ++token)
            max = fmax(max, get(scores, row, token) * scale);
        for (int64_t token = 0; token < scores->shape[1]; ++token) {
            double score = get(scores, row, token) * scale;
            set(weights, row, token, token < valid ? exp(score - max) : 0);
            sum += get(weights, row, token);
        }
        set(block_max, row, 0, max);
        set(block_sum, row, 0, sum);
    }
}
