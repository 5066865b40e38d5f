/* One float at a time, for references. */
#ifndef ZOO_ELEMENT_H
#define ZOO_ELEMENT_H

#include <glassbox/kernel.h>

static inline float *at(const uint64_t *args, unsigned slot, int64_t i, int64_t j) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    return gbx_tensor_f32(tensor) + i * tensor->strides[0] + j * tensor->strides[1];
}

static inline float *at1(const uint64_t *args, unsigned slot, int64_t i) {
    const gbx_tensor *tensor = gbx_arg_tensor(args, slot);
    return gbx_tensor_f32(tensor) + i * tensor->strides[0];
}

static inline int64_t extent(const uint64_t *args, unsigned slot, int d) {
    return gbx_arg_tensor(args, slot)->shape[d];
}

#endif
