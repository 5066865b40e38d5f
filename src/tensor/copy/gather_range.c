/*
 * A range of a row-major payload is cut into boxes: runs along one dimension that are complete in
 * all dimensions inside of it. There are at most two boxes for each dimension. Each is a view,
 * which gbx_tensor_gather copies.
 */
#include "tensor/copy/gather_range.h"

#include <stdbool.h>
#include <string.h>

#include <glassbox/tensor.h>

/* A view as its payload counts it: in units of an element, or of two where they share a byte. */
typedef struct unit_view {
    const gbx_tensor *tensor;
    uint32_t unit_bytes;
    int64_t unit_elements;
    uint32_t ndims;               /* at least 1 */
    uint64_t shape[GBX_MAX_DIMS]; /* in units */
    uint64_t inner[GBX_MAX_DIMS]; /* units inside of one step along the dimension */
} unit_view;

/* The view is not empty. A tensor of 0 dimensions counts as one dimension of one. */
static unit_view unit_view_of(const gbx_tensor *tensor) {
    bool is_packed = gbx_dtype_is_packed(tensor->dtype);
    unit_view view = {.tensor = tensor,
                      .unit_bytes = is_packed ? 1 : gbx_dtype_bits(tensor->dtype) / 8,
                      .unit_elements = is_packed ? 2 : 1,
                      .ndims = tensor->ndims > 0 ? tensor->ndims : 1};
    uint64_t inner = 1;
    for (uint32_t d = GBX_MAX_DIMS; d-- > 0;) {
        uint64_t count = d < tensor->ndims ? (uint64_t)tensor->shape[d] : 1;
        if (is_packed && d + 1 == view.ndims)
            count = (count + 1) / 2;
        view.shape[d] = count > 0 ? count : 1; /* an empty view has no range to look for */
        view.inner[d] = inner > 0 ? inner : 1;
        inner *= view.shape[d];
    }
    return view;
}

/* The outermost dimension along which a box may start at `at` and be no longer than `room`. */
static uint32_t box_dim(const unit_view *view, uint64_t at, uint64_t room) {
    uint32_t d = 0;
    while (d + 1 < view->ndims && (view->inner[d] > room || at % view->inner[d] != 0))
        ++d;
    return d;
}

/* The view of `count` steps along a dimension from `at` on, complete in the dimensions inside. */
static gbx_tensor box_of(const unit_view *view, uint64_t at, uint32_t dim, uint64_t count) {
    const gbx_tensor *tensor = view->tensor;
    gbx_tensor box = {.data = tensor->data,
                      .buffer_bytes = tensor->buffer_bytes,
                      .dtype = tensor->dtype,
                      .ndims = tensor->ndims > 0 ? tensor->ndims - dim : 0,
                      .start_offset = tensor->start_offset};
    for (uint32_t d = 0; d < tensor->ndims && d <= dim; ++d) {
        int64_t index = (int64_t)(at / view->inner[d] % view->shape[d]);
        int64_t step = d + 1 == tensor->ndims ? view->unit_elements : 1;
        if (index > 0)
            box.start_offset += index * step * tensor->strides[d];
        if (d < dim)
            continue;
        int64_t rest = tensor->shape[d] - index * step;
        box.shape[0] = (int64_t)count * step < rest ? (int64_t)count * step : rest;
        box.strides[0] = tensor->strides[d];
    }
    for (uint32_t d = dim + 1; d < tensor->ndims; ++d) {
        box.shape[d - dim] = tensor->shape[d];
        box.strides[d - dim] = tensor->strides[d];
    }
    return box;
}

static void gather_boxes(const unit_view *view, const void *buffer, uint64_t at, uint64_t end,
                         unsigned char *to) {
    while (at < end) {
        uint32_t dim = box_dim(view, at, end - at);
        uint64_t inner = view->inner[dim];
        uint64_t count = (end - at) / inner;
        uint64_t left = view->shape[dim] - at / inner % view->shape[dim];
        if (count > left)
            count = left;
        gbx_tensor box = box_of(view, at, dim, count);
        gbx_tensor_gather(&box, buffer, to);
        at += count * inner;
        to += count * inner * view->unit_bytes;
    }
}

/* Whether the payload lies in the buffer as it is. Rows that end in half a byte do not: the other
 * half is 0 only in the payload. */
static bool lies_as_payload(const gbx_tensor *tensor) {
    if (gbx_dtype_is_packed(tensor->dtype) &&
        (tensor->ndims == 0 || tensor->shape[tensor->ndims - 1] % 2 != 0))
        return false;
    return gbx_tensor_is_contiguous(tensor);
}

void gbx_tensor_gather_range(const gbx_tensor *tensor, const void *buffer, uint64_t first,
                             uint64_t bytes, void *to) {
    if (bytes == 0)
        return;
    if (lies_as_payload(tensor)) {
        int64_t start = gbx_dtype_is_packed(tensor->dtype)
                            ? tensor->start_offset / 2
                            : tensor->start_offset * (gbx_dtype_bits(tensor->dtype) / 8);
        memcpy(to, (const unsigned char *)buffer + start + first, (size_t)bytes);
        return;
    }
    unit_view view = unit_view_of(tensor);
    gather_boxes(&view, buffer, first / view.unit_bytes, (first + bytes) / view.unit_bytes, to);
}
