/*
 * A layer by its definition, one element at a time, in double. Each reference writes what its
 * kernel writes, but computes it from the inputs of the task, and waits for no other.
 */
#ifndef MIX_SPMD_REFERENCE_DEFINITION_H
#define MIX_SPMD_REFERENCE_DEFINITION_H

#include <glassbox/kernel.h>

#include "../layer.h"

static inline float *element(const uint64_t *args, unsigned slot, int64_t row, int64_t column) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    return gbx_tensor_f32(tensor) + row * tensor->strides[0] + column * tensor->strides[1];
}

static inline int64_t first_row(const uint64_t *args, uint32_t block) {
    return gbx_arg_tensor(args, LAYER_X)->shape[0] * block / gbx_local(args)->block_num;
}

static inline double scaled_at(const uint64_t *args, int64_t i, int64_t k) {
    return (double)*element(args, LAYER_X, i, k) * (double)gbx_arg_f32(args, LAYER_SCALE);
}

static inline double product_at(const uint64_t *args, int64_t i, int64_t j) {
    double sum = 0.0;
    for (int64_t k = 0; k < gbx_arg_tensor(args, LAYER_W)->shape[0]; ++k)
        sum += scaled_at(args, i, k) * (double)*element(args, LAYER_W, k, j);
    return sum;
}

static inline void write_y(const uint64_t *args, int64_t begin, int64_t end) {
    const gbx_tensor *bias = gbx_arg_tensor(args, LAYER_BIAS);
    for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < gbx_arg_tensor(args, LAYER_Y)->shape[1]; ++j) {
            double sum = product_at(args, i, j) + gbx_tensor_f32(bias)[j * bias->strides[0]];
            *element(args, LAYER_Y, i, j) = sum > 0.0 ? (float)sum : 0.0f;
        }
}

static inline void set_flag(const uint64_t *args, int64_t flag) {
    const gbx_tensor *flags = gbx_arg_tensor(args, LAYER_FLAGS);
    int64_t block = gbx_local(args)->block_idx;
    uint32_t *words = (uint32_t *)gbx_tensor_origin(flags, sizeof(uint32_t));
    words[block * flags->strides[0] + flag * flags->strides[1]] = 1;
}

#endif
