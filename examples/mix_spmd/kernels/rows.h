/* Rows of float32 matrices, and which of them a dispatch works on. */
#ifndef MIX_SPMD_KERNELS_ROWS_H
#define MIX_SPMD_KERNELS_ROWS_H

#include <glassbox/kernel.h>

#include "../layer.h"

typedef struct row_range {
    int64_t begin, end;
} row_range;

/* The rows of this dispatch's block. */
static inline row_range rows_of_block(const uint64_t *args) {
    const gbx_local_context *local = gbx_local(args);
    int64_t rows = gbx_arg_tensor(args, LAYER_X)->shape[0];
    row_range range = {rows * local->block_idx / local->block_num,
                       rows * (local->block_idx + 1) / local->block_num};
    return range;
}

/* Elements of a row lie side by side; rows may lie anywhere. */
static inline float *row_of(const uint64_t *args, unsigned slot, int64_t row) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    return gbx_tensor_f32(tensor) + row * tensor->strides[0];
}

/* A flag of this dispatch's block. */
static inline uint32_t *flag_of(const uint64_t *args, int64_t flag) {
    const gbx_tensor *flags = gbx_arg_tensor(args, LAYER_FLAGS);
    uint32_t *words = (uint32_t *)gbx_tensor_origin(flags, sizeof(uint32_t));
    return words + gbx_local(args)->block_idx * flags->strides[0] + flag * flags->strides[1];
}

/* y = relu(product + bias) of some rows, once the AIC has written the product. */
static inline void finish_rows(const uint64_t *args, row_range rows) {
    const float *bias = gbx_tensor_f32(gbx_arg_tensor(args, LAYER_BIAS));
    int64_t columns = gbx_arg_tensor(args, LAYER_Y)->shape[1];
    gbx_flag_wait(flag_of(args, MULTIPLIED), 1);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float *product = row_of(args, LAYER_PRODUCT, i);
        float *y = row_of(args, LAYER_Y, i);
        for (int64_t j = 0; j < columns; ++j) {
            float sum = product[j] + bias[j];
            y[j] = sum > 0.0f ? sum : 0.0f;
        }
    }
}

#endif
