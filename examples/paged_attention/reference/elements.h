/* One element of a tensor of one or two dimensions as a double, whatever its strides. */
#ifndef PAGED_ATTENTION_ELEMENTS_H
#define PAGED_ATTENTION_ELEMENTS_H

#include <glassbox/kernel.h>

static inline int64_t position(const gbx_tensor *tensor, int64_t row, int64_t column) {
    int64_t offset = row * tensor->strides[0];
    return tensor->ndims > 1 ? offset + column * tensor->strides[1] : offset;
}

static inline double get(const gbx_tensor *tensor, int64_t row, int64_t column) {
    int64_t at = position(tensor, row, column);
    if (tensor->dtype == GBX_FLOAT32)
        return (double)gbx_tensor_f32(tensor)[at];
    uint16_t bits = ((const uint16_t *)gbx_tensor_origin(tensor, sizeof bits))[at];
    return (double)(tensor->dtype == GBX_BFLOAT16 ? gbx_bf16_to_f32(bits) : gbx_f16_to_f32(bits));
}

static inline void set(const gbx_tensor *tensor, int64_t row, int64_t column, double value) {
    int64_t at = position(tensor, row, column);
    if (tensor->dtype == GBX_FLOAT32)
        gbx_tensor_f32(tensor)[at] = (float)value;
    else
        ((uint16_t *)gbx_tensor_origin(tensor, sizeof(uint16_t)))[at] =
            tensor->dtype == GBX_BFLOAT16 ? gbx_f32_to_bf16((float)value)
                                          : gbx_f32_to_f16((float)value);
}

#endif
