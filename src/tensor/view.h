/* What device code needs to know of views, beside the public functions. */
#ifndef GBX_TENSOR_VIEW_H
#define GBX_TENSOR_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/*
 * Whether gbx_tensor_validate would accept a tensor; if so, the bytes that the view touches,
 * relative to `data`, both 0 if it is empty. Unlike a status, allocates nothing.
 */
bool gbx_tensor_is_valid(const gbx_tensor *tensor, int64_t *out_first_byte, int64_t *out_end_byte);

/* "[6, 4]"; of any tensor, even one that is not valid. */
enum { GBX_SHAPE_BYTES = GBX_MAX_DIMS * 22 + 3 };
void gbx_shape_write(const gbx_tensor *tensor, char out_text[GBX_SHAPE_BYTES]);

/* Whether both describe the same elements of the same buffer. */
bool gbx_tensor_is_alike(const gbx_tensor *a, const gbx_tensor *b);

/* The first element with a bit of a byte of a payload, in which packed rows begin with a byte. */
static inline uint64_t gbx_tensor_element_at(const gbx_tensor *tensor, uint64_t byte) {
    if (!gbx_dtype_is_packed(tensor->dtype))
        return byte / (gbx_dtype_bits(tensor->dtype) / 8);
    uint64_t length = tensor->ndims ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    uint64_t row_bytes = (length + 1) / 2;
    return byte / row_bytes * length + byte % row_bytes * 2;
}

#endif
