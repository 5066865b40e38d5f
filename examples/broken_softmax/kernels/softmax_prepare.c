/*
 * The softmax of one block on its own: the maximum of the block, the weights relative to that
 * maximum, and their sum.
 *
 * in scores [group, tokens]: float32
 * out weights [group, tokens]: float16, e^(score * scale - block_max); 0 past the valid tokens
 * out block_max [group]: float32
 * out block_sum [group]: float32, the sum of the weights as rounded
 * scalar scale: float32
 * scalar valid: int32, how many tokens count, 1 and up
 */
#include <math.h>

#include "../../paged_attention/kernels/rows.h"

typedef struct row_result {
    float max;
    float sum;
} row_result;

/* Minus infinity past the valid tokens; two at a time, as two weights fill a word. */
VECTOR_INLINE f32x16 load_scores(const float *row, int64_t stride, int64_t token, int64_t valid,
                                 float scale) {
    int64_t pairs = (valid + 1) / 2;
    return load_row(row, stride, token, 2 * pairs, -INFINITY) * scale;
}

VECTOR_INLINE void store_weights(uint16_t *row, int64_t stride, int64_t token, int64_t tokens,
                                 u16x16 weights) {
    if (stride == 1 && token + LANES <= tokens) {
        memcpy(row + token, &weights, sizeof weights);
        return;
    }
    for (int64_t i = 0; i < LANES && token + i < tokens; ++i)
        row[(token + i) * stride] = weights[i];
}

static row_result prepare_row(const gbx_tensor *scores, const gbx_tensor *weights, int64_t row,
                              float scale, int64_t valid) {
    const float *from = gbx_tensor_f32(scores) + row * scores->strides[0];
    uint16_t *to = (uint16_t *)gbx_tensor_origin(weights, sizeof *to) + row * weights->strides[0];
    int64_t stride = scores->strides[1], tokens = scores->shape[1];
    f32x16 max = splat(-INFINITY), sum = splat(0);
    for (int64_t token = 0; token < valid; token += LANES)
        max = larger(max, load_scores(from, stride, token, valid, scale));
    row_result result = {lane_max(max), 0};
    for (int64_t token = 0; token < tokens; token += LANES) {
        f32x16 score = load_scores(from, stride, token, valid, scale);
        u16x16 rounded = narrow_f16_of_unit(exp_of_nonpositive(score - result.max));
        store_weights(to, weights->strides[1], token, tokens, rounded);
        sum += widen_f16(rounded);
    }
    result.sum = lane_sum(sum);
    return result;
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *scores = gbx_arg_tensor(args, 0);
    const gbx_tensor *weights = gbx_arg_tensor(args, 1);
    const gbx_tensor *block_max = gbx_arg_tensor(args, 2);
    const gbx_tensor *block_sum = gbx_arg_tensor(args, 3);
    float scale = gbx_arg_f32(args, 4);
    int64_t valid = gbx_arg_i32(args, 5);
    for (int64_t row = 0; row < scores->shape[0]; ++row) {
        row_result result = prepare_row(scores, weights, row, scale, valid);
        gbx_tensor_f32(block_max)[row * block_max->strides[0]] = result.max;
        gbx_tensor_f32(block_sum)[row * block_sum->strides[0]] = result.sum;
    }
}
