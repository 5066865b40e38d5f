/* What device code needs to know of views, beside the public functions. */
#ifndef GBX_TENSOR_VIEW_H
#define GBX_TENSOR_VIEW_H

#include <stdbool.h>

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

#endif
