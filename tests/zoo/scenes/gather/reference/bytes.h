/* Elements of one, two and four bytes, for references. */
#ifndef GATHER_REFERENCE_BYTES_H
#define GATHER_REFERENCE_BYTES_H

#include "../../element.h"

static inline int8_t *i8(const uint64_t *args, unsigned slot, int64_t i, int64_t j) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    return (int8_t *)gbx_tensor_origin(tensor, 1) + i * tensor->strides[0] + j * tensor->strides[1];
}

static inline uint16_t *u16(const uint64_t *args, unsigned slot, int64_t i, int64_t j) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    uint16_t *origin = gbx_tensor_origin(tensor, sizeof *origin);
    return origin + i * tensor->strides[0] + (tensor->ndims > 1 ? j * tensor->strides[1] : 0);
}

static inline int32_t *i32(const uint64_t *args, unsigned slot, int64_t i) {
    return (int32_t *)gbx_tensor_origin(gbx_arg_tensor(args, slot), sizeof(int32_t)) + i;
}

#endif
