/* What device code needs of views, beside the public functions. */
#ifndef GBX_TENSOR_VIEW_H
#define GBX_TENSOR_VIEW_H

#include <stdbool.h>

#include <glassbox/tensor.h>

/*
 * Whether gbx_tensor_validate would find nothing wrong; if so, the bytes that the view touches,
 * relative to `data`, both 0 when it is empty. Allocates nothing, as a status would.
 */
bool gbx_tensor_is_valid(const gbx_tensor *tensor, int64_t *out_first_byte, int64_t *out_end_byte);

#endif
