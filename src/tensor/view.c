#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/status.h"
#include "tensor/view.h"

static bool is_empty(const gbx_tensor *tensor) {
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        if (tensor->shape[d] == 0)
            return true;
    return false;
}

/* Elements from one row of a payload to the next: rows of packed elements start at a byte. */
static uint64_t row_elements(uint32_t dtype, uint64_t last_dim) {
    return gbx_dtype_is_packed(dtype) ? last_dim + last_dim % 2 : last_dim;
}

/* False if the payload, or its elements with those that fill up rows, are more than int64_t holds.
 */
static bool checked_payload_bytes(const gbx_tensor *tensor, uint64_t *out_bytes) {
    uint32_t bits = gbx_dtype_bits(tensor->dtype);
    uint64_t elements = 1;
    *out_bytes = 0;
    if (is_empty(tensor))
        return true;
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        uint64_t count = (uint64_t)tensor->shape[d];
        if (d + 1 == tensor->ndims)
            count = row_elements(tensor->dtype, count);
        if (!gbx_checked_mul_u64(elements, count, &elements))
            return false;
    }
    if (elements > INT64_MAX)
        return false;
    if (gbx_dtype_is_packed(tensor->dtype))
        *out_bytes = (elements + 1) / 2;
    else if (!gbx_checked_mul_u64(elements, bits / 8, out_bytes))
        return false;
    return *out_bytes <= INT64_MAX;
}

/* The first and the last position of an element of a view that is not empty, in elements after
 * `data`. False if one does not fit. */
static bool checked_reach(const gbx_tensor *tensor, int64_t *out_first, int64_t *out_last) {
    *out_first = *out_last = tensor->start_offset;
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        int64_t reach;
        if (!gbx_checked_mul_i64(tensor->shape[d] - 1, tensor->strides[d], &reach))
            return false;
        int64_t *bound = reach < 0 ? out_first : out_last;
        if (!gbx_checked_add_i64(*bound, reach, bound))
            return false;
    }
    return true;
}

/* The bytes of the elements from `first` to `last`. False when they do not fit. */
static bool checked_bytes(uint32_t dtype, int64_t first, int64_t last, int64_t *out_first_byte,
                          int64_t *out_end_byte) {
    if (gbx_dtype_is_packed(dtype)) {
        *out_first_byte = first >> 1;
        *out_end_byte = (last >> 1) + 1;
        return true;
    }
    int64_t bytes = gbx_dtype_bits(dtype) / 8;
    return gbx_checked_mul_i64(first, bytes, out_first_byte) &&
           gbx_checked_add_i64(last, 1, out_end_byte) &&
           gbx_checked_mul_i64(*out_end_byte, bytes, out_end_byte);
}

void gbx_shape_write(const gbx_tensor *tensor, char out_text[GBX_SHAPE_BYTES]) {
    uint32_t ndims = tensor->ndims <= GBX_MAX_DIMS ? tensor->ndims : GBX_MAX_DIMS;
    int used = snprintf(out_text, GBX_SHAPE_BYTES, "[");
    for (uint32_t d = 0; d < ndims; ++d)
        used += snprintf(out_text + used, GBX_SHAPE_BYTES - (size_t)used, "%s%" PRId64,
                         d ? ", " : "", tensor->shape[d]);
    snprintf(out_text + used, GBX_SHAPE_BYTES - (size_t)used, "]");
}

/* What was asked of a tensor that does not have it. */
static gbx_status fail_view(const gbx_tensor *view) {
    static const char *const calls[] = {[GBX_VIEW_SLICE] = "gbx_view_slice",
                                        [GBX_VIEW_SELECT] = "gbx_view_select",
                                        [GBX_VIEW_TRANSPOSE] = "gbx_view_transpose"};
    uint64_t call = view->reserved[0];
    uint64_t dim = view->reserved[1];
    char shape[GBX_SHAPE_BYTES];
    if (call < GBX_VIEW_SLICE || call > GBX_VIEW_TRANSPOSE)
        return gbx_fail(GBX_INVALID_ARGUMENT, "tensor: dtype is %" PRIu32 ", expected 1 to %d",
                        view->dtype, GBX_DTYPE_COUNT - 1);
    gbx_shape_write(view, shape);
    if (dim >= view->ndims || call == GBX_VIEW_TRANSPOSE)
        return gbx_fail(GBX_OUT_OF_RANGE, "%s: a tensor of shape %s has no dimension %" PRIu64,
                        calls[call], shape, dim);
    if (call == GBX_VIEW_SELECT)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "%s: index %" PRId64 " is outside dimension %" PRIu64
                        " of a tensor of shape %s",
                        calls[call], (int64_t)view->reserved[2], dim, shape);
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "%s: start %" PRId64 " with length %" PRId64 " is outside dimension %" PRIu64
                    " of a tensor of shape %s",
                    calls[call], (int64_t)view->reserved[2], (int64_t)view->reserved[3], dim,
                    shape);
}

static gbx_status check_form(const gbx_tensor *tensor) {
    if (tensor->dtype & GBX_IMPOSSIBLE_VIEW)
        return fail_view(tensor);
    if (!gbx_dtype_is_valid(tensor->dtype))
        return gbx_fail(GBX_INVALID_ARGUMENT, "tensor: dtype is %" PRIu32 ", expected 1 to %d",
                        tensor->dtype, GBX_DTYPE_COUNT - 1);
    if (tensor->ndims > GBX_MAX_DIMS)
        return gbx_fail(GBX_INVALID_ARGUMENT, "tensor: ndims is %" PRIu32 ", expected at most %d",
                        tensor->ndims, GBX_MAX_DIMS);
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        if (tensor->shape[d] < 0)
            return gbx_fail(GBX_INVALID_ARGUMENT,
                            "tensor: shape[%" PRIu32 "] is %" PRId64 ", expected 0 or more", d,
                            tensor->shape[d]);
    return NULL;
}

static gbx_status check_payload(const gbx_tensor *tensor) {
    uint64_t bytes;
    if (!checked_payload_bytes(tensor, &bytes))
        return gbx_fail(GBX_OUT_OF_RANGE, "tensor: shape has more %s elements than 2^63 bytes hold",
                        gbx_dtype_name(tensor->dtype));
    return NULL;
}

static gbx_status check_reach(const gbx_tensor *tensor) {
    int64_t first, last, first_byte, end_byte;
    uint64_t end_address;
    if (!checked_reach(tensor, &first, &last) ||
        !checked_bytes(tensor->dtype, first, last, &first_byte, &end_byte))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "tensor: shape, strides and start_offset reach beyond 2^63 bytes");
    if (first < 0)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "tensor: strides reach element %" PRId64 ", expected none before data",
                        first);
    if (tensor->buffer_bytes != 0 && (uint64_t)end_byte > tensor->buffer_bytes)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "tensor: elements end at byte %" PRId64 ", expected at most %" PRIu64
                        " (buffer_bytes)",
                        end_byte, tensor->buffer_bytes);
    if (!gbx_checked_add_u64(tensor->data, (uint64_t)end_byte, &end_address))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "tensor: data is 0x%" PRIx64 " and elements end %" PRId64
                        " bytes after it, expected an address below 2^64",
                        tensor->data, end_byte);
    return NULL;
}

gbx_status gbx_tensor_validate(const gbx_tensor *tensor) {
    GBX_TRY(check_form(tensor));
    if (tensor->start_offset < 0)
        return gbx_fail(GBX_OUT_OF_RANGE, "tensor: start_offset is %" PRId64 ", expected 0 or more",
                        tensor->start_offset);
    GBX_TRY(check_payload(tensor));
    return is_empty(tensor) ? NULL : check_reach(tensor);
}

bool gbx_tensor_is_valid(const gbx_tensor *tensor, int64_t *out_first_byte, int64_t *out_end_byte) {
    int64_t first, last;
    uint64_t bytes;
    *out_first_byte = *out_end_byte = 0;
    if (!gbx_dtype_is_valid(tensor->dtype) || tensor->ndims > GBX_MAX_DIMS ||
        tensor->start_offset < 0)
        return false;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        if (tensor->shape[d] < 0)
            return false;
    if (is_empty(tensor))
        return true;
    if (!checked_payload_bytes(tensor, &bytes) || !checked_reach(tensor, &first, &last) ||
        first < 0 || !checked_bytes(tensor->dtype, first, last, out_first_byte, out_end_byte))
        return false;
    return (tensor->buffer_bytes == 0 || (uint64_t)*out_end_byte <= tensor->buffer_bytes) &&
           tensor->data + (uint64_t)*out_end_byte >= tensor->data;
}

gbx_status gbx_tensor_contiguous(uint64_t data, uint32_t dtype, uint32_t ndims,
                                 const int64_t *shape, gbx_tensor *out_tensor) {
    gbx_tensor tensor = {.data = data, .dtype = dtype, .ndims = ndims};
    if (ndims <= GBX_MAX_DIMS && ndims > 0)
        memcpy(tensor.shape, shape, ndims * sizeof *shape);
    GBX_TRY(check_form(&tensor));
    GBX_TRY(check_payload(&tensor));
    /* A dimension of 0 counts as 1 in the strides of an empty tensor. */
    uint64_t stride = 1;
    for (uint32_t d = ndims; d-- > 0;) {
        uint64_t count = tensor.shape[d] > 1 ? (uint64_t)tensor.shape[d] : 1;
        tensor.strides[d] = (int64_t)stride;
        if (d + 1 == ndims)
            count = row_elements(dtype, count);
        if (!gbx_checked_mul_u64(stride, count, &stride) || stride > INT64_MAX)
            return gbx_fail(GBX_OUT_OF_RANGE,
                            "tensor: the stride of shape[%" PRIu32 "] is beyond 2^63 elements", d);
    }
    tensor.buffer_bytes = gbx_tensor_payload_bytes(&tensor);
    GBX_TRY(gbx_tensor_validate(&tensor));
    *out_tensor = tensor;
    return NULL;
}

uint64_t gbx_tensor_payload_bytes(const gbx_tensor *tensor) {
    uint64_t bytes;
    return checked_payload_bytes(tensor, &bytes) ? bytes : 0;
}

bool gbx_tensor_is_contiguous(const gbx_tensor *tensor) {
    uint64_t expected = 1;
    if (is_empty(tensor))
        return true;
    if (gbx_dtype_is_packed(tensor->dtype) && tensor->start_offset % 2 != 0)
        return false;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        uint64_t count = (uint64_t)tensor->shape[d];
        if (count > 1 && (uint64_t)tensor->strides[d] != expected)
            return false;
        expected *= d + 1 == tensor->ndims ? row_elements(tensor->dtype, count) : count;
    }
    return true;
}

void gbx_tensor_extent(const gbx_tensor *tensor, int64_t *out_first_byte, int64_t *out_end_byte) {
    int64_t first, last;
    if (!is_empty(tensor) && checked_reach(tensor, &first, &last) &&
        checked_bytes(tensor->dtype, first, last, out_first_byte, out_end_byte))
        return;
    *out_first_byte = 0;
    *out_end_byte = 0;
}

bool gbx_tensor_is_alike(const gbx_tensor *a, const gbx_tensor *b) {
    size_t dims_bytes = (a->ndims <= GBX_MAX_DIMS ? a->ndims : GBX_MAX_DIMS) * sizeof a->shape[0];
    return a->data == b->data && a->dtype == b->dtype && a->ndims == b->ndims &&
           a->start_offset == b->start_offset && !memcmp(a->shape, b->shape, dims_bytes) &&
           !memcmp(a->strides, b->strides, dims_bytes);
}
