#include <string.h>

#include <glassbox/tensor.h>

#include "tensor/copy/strided_copy.h"

/* Which way elements are copied between a view and its payload. */
typedef enum copy_direction { TO_PAYLOAD, FROM_PAYLOAD } copy_direction;

static bool is_empty(const gbx_tensor *tensor) {
    return gbx_tensor_numel(tensor) == 0;
}

/* Copies between a view whose strides and start are given in bytes and its row-major payload. */
static void copy_bytes(gbx_cpu_level level, copy_direction direction, const gbx_tensor *in_bytes,
                       uint32_t element_bytes, unsigned char *buffer, unsigned char *payload) {
    gbx_strided_copy copy = {.element_bytes = element_bytes, .ndims = in_bytes->ndims};
    bool gathers = direction == TO_PAYLOAD;
    int64_t *view_strides = gathers ? copy.src_strides : copy.dst_strides;
    int64_t *payload_strides = gathers ? copy.dst_strides : copy.src_strides;
    int64_t row_major = element_bytes;
    for (uint32_t d = copy.ndims; d-- > 0;) {
        copy.shape[d] = in_bytes->shape[d];
        view_strides[d] = in_bytes->strides[d];
        payload_strides[d] = row_major;
        row_major *= copy.shape[d];
    }
    buffer += in_bytes->start_offset;
    copy.dst = gathers ? payload : buffer;
    copy.src = gathers ? buffer : payload;
    gbx_strided_copy_run(&copy, level);
}

static void copy_whole_bytes(gbx_cpu_level level, copy_direction direction,
                             const gbx_tensor *tensor, unsigned char *buffer,
                             unsigned char *payload) {
    gbx_tensor in_bytes = *tensor;
    uint32_t bytes = gbx_dtype_bits(tensor->dtype) / 8;
    in_bytes.start_offset *= bytes;
    for (uint32_t d = 0; d < in_bytes.ndims; ++d)
        in_bytes.strides[d] = tensor->shape[d] > 1 ? tensor->strides[d] * bytes : 0;
    copy_bytes(level, direction, &in_bytes, bytes, buffer, payload);
}

/* --- packed elements: positions count halves of a byte, the low half first --- */

static unsigned get_half(const unsigned char *buffer, int64_t position) {
    unsigned byte = buffer[position >> 1];
    return position & 1 ? byte >> 4 : byte & 15;
}

static void put_half(unsigned char *buffer, int64_t position, unsigned value) {
    unsigned char *byte = &buffer[position >> 1];
    *byte = (unsigned char)(position & 1 ? (*byte & 0x0f) | value << 4 : (*byte & 0xf0) | value);
}

/* Whether the view consists of full bytes: two elements each, none cut in half. */
static bool has_whole_bytes(const gbx_tensor *tensor) {
    if (tensor->ndims == 0 || tensor->start_offset % 2 != 0)
        return false;
    uint32_t last = tensor->ndims - 1;
    if (tensor->shape[last] % 2 != 0 || tensor->strides[last] != 1)
        return false;
    for (uint32_t d = 0; d < last; ++d)
        if (tensor->shape[d] > 1 && tensor->strides[d] % 2 != 0)
            return false;
    return true;
}

static void copy_pairs(gbx_cpu_level level, copy_direction direction, const gbx_tensor *tensor,
                       unsigned char *buffer, unsigned char *payload) {
    gbx_tensor in_bytes = *tensor;
    uint32_t last = tensor->ndims - 1;
    in_bytes.start_offset /= 2;
    for (uint32_t d = 0; d < last; ++d)
        in_bytes.strides[d] = tensor->shape[d] > 1 ? tensor->strides[d] / 2 : 0;
    in_bytes.shape[last] /= 2;
    copy_bytes(level, direction, &in_bytes, 1, buffer, payload);
}

/* One row of a view; the half that fills up the last byte of a payload's row is 0. */
static void gather_row(const unsigned char *buffer, int64_t position, int64_t stride, int64_t count,
                       unsigned char *payload) {
    int64_t i = 0;
    if (stride == 1 && position % 2 == 0) {
        i = count / 2 * 2;
        memcpy(payload, buffer + position / 2, (size_t)(count / 2));
    }
    for (; i + 2 <= count; i += 2)
        payload[i / 2] = (unsigned char)(get_half(buffer, position + i * stride) |
                                         get_half(buffer, position + (i + 1) * stride) << 4);
    if (i < count)
        payload[i / 2] = (unsigned char)get_half(buffer, position + i * stride);
}

static void scatter_row(unsigned char *buffer, int64_t position, int64_t stride, int64_t count,
                        const unsigned char *payload) {
    int64_t i = 0;
    if (stride == 1 && position % 2 == 0) {
        i = count / 2 * 2;
        memcpy(buffer + position / 2, payload, (size_t)(count / 2));
    }
    for (; i < count; ++i)
        put_half(buffer, position + i * stride, get_half(payload, i));
}

/* Row by row, in row-major order. */
static void copy_halves(copy_direction direction, const gbx_tensor *tensor, unsigned char *buffer,
                        unsigned char *payload) {
    uint32_t outside = tensor->ndims > 0 ? tensor->ndims - 1 : 0;
    int64_t count = tensor->ndims > 0 ? tensor->shape[outside] : 1;
    int64_t stride = count > 1 ? tensor->strides[outside] : 0;
    int64_t position = tensor->start_offset;
    int64_t index[GBX_MAX_DIMS] = {0};
    for (;;) {
        if (direction == TO_PAYLOAD)
            gather_row(buffer, position, stride, count, payload);
        else
            scatter_row(buffer, position, stride, count, payload);
        payload += (count + 1) / 2;
        uint32_t d = outside;
        for (; d > 0; --d) {
            if (++index[d - 1] < tensor->shape[d - 1]) {
                position += tensor->strides[d - 1];
                break;
            }
            index[d - 1] = 0;
            if (tensor->shape[d - 1] > 1)
                position -= (tensor->shape[d - 1] - 1) * tensor->strides[d - 1];
        }
        if (d == 0)
            return;
    }
}

static void copy_view(gbx_cpu_level level, copy_direction direction, const gbx_tensor *tensor,
                      unsigned char *buffer, unsigned char *payload) {
    if (is_empty(tensor))
        return;
    if (!gbx_dtype_is_packed(tensor->dtype))
        copy_whole_bytes(level, direction, tensor, buffer, payload);
    else if (has_whole_bytes(tensor))
        copy_pairs(level, direction, tensor, buffer, payload);
    else
        copy_halves(direction, tensor, buffer, payload);
}

/* The side that is read loses its const here and is not written below. */
void gbx_tensor_gather_at(gbx_cpu_level level, const gbx_tensor *tensor, const void *buffer,
                          void *payload) {
    copy_view(level, TO_PAYLOAD, tensor, (unsigned char *)(uintptr_t)buffer, payload);
}

void gbx_tensor_scatter_at(gbx_cpu_level level, const gbx_tensor *tensor, const void *payload,
                           void *buffer) {
    copy_view(level, FROM_PAYLOAD, tensor, buffer, (unsigned char *)(uintptr_t)payload);
}

void gbx_tensor_gather(const gbx_tensor *tensor, const void *buffer, void *payload) {
    gbx_tensor_gather_at(gbx_cpu_level_detect(), tensor, buffer, payload);
}

void gbx_tensor_scatter(const gbx_tensor *tensor, const void *payload, void *buffer) {
    gbx_tensor_scatter_at(gbx_cpu_level_detect(), tensor, payload, buffer);
}
