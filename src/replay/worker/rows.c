#include "replay/worker/rows.h"

#include <string.h>

enum { SHORT_ROW_BYTES = 32 }; /* a gather is faster below it */

/* A view as rows without gaps. */
typedef struct rows {
    uint64_t row_bytes;
    uint32_t outer; /* dimensions that are not part of a row */
    int64_t strides[GBX_MAX_DIMS];
    int64_t first; /* of the first row, from the buffer */
} rows;

/* False if elements do not take full bytes, or rows are shorter than `shortest` bytes. */
static bool find_rows(const gbx_tensor *tensor, int64_t shortest, rows *out_rows) {
    int64_t element = gbx_dtype_bits(tensor->dtype) / 8;
    int64_t row = element;
    uint32_t outer = tensor->ndims;
    if (element == 0)
        return false;
    for (; outer > 0 &&
           (tensor->shape[outer - 1] == 1 || tensor->strides[outer - 1] * element == row);
         --outer)
        row *= tensor->shape[outer - 1];
    if (outer > 0 && row < shortest)
        return false;
    out_rows->row_bytes = (uint64_t)row;
    out_rows->outer = outer;
    out_rows->first = tensor->start_offset * element;
    for (uint32_t i = 0; i < outer; ++i)
        out_rows->strides[i] = tensor->strides[i] * element;
    return true;
}

/* Advances an index; false after the last. */
static bool advance(const gbx_tensor *tensor, const rows *r, int64_t *index, int64_t *offset) {
    for (uint32_t d = r->outer; d-- > 0;) {
        *offset += r->strides[d];
        if (++index[d] < tensor->shape[d])
            return true;
        *offset -= r->strides[d] * tensor->shape[d];
        index[d] = 0;
    }
    return false;
}

void gbx_rows_copy(const gbx_tensor *tensor, const void *from, void *to, void *scratch) {
    rows r;
    int64_t index[GBX_MAX_DIMS] = {0};
    if (gbx_tensor_numel(tensor) == 0)
        return;
    if (!find_rows(tensor, SHORT_ROW_BYTES, &r)) {
        gbx_tensor_gather(tensor, from, scratch);
        gbx_tensor_scatter(tensor, scratch, to);
        return;
    }
    int64_t offset = r.first;
    do
        memcpy((char *)to + offset, (const char *)from + offset, r.row_bytes);
    while (advance(tensor, &r, index, &offset));
}

bool gbx_rows_equal(const gbx_tensor *tensor, const void *buffer, const void *payload,
                    void *scratch) {
    rows r;
    int64_t index[GBX_MAX_DIMS] = {0};
    const char *expected = payload;
    if (gbx_tensor_numel(tensor) == 0)
        return true;
    if (!find_rows(tensor, SHORT_ROW_BYTES, &r)) {
        gbx_tensor_gather(tensor, buffer, scratch);
        return memcmp(scratch, payload, gbx_tensor_payload_bytes(tensor)) == 0;
    }
    int64_t offset = r.first;
    do {
        if (memcmp((const char *)buffer + offset, expected, r.row_bytes) != 0)
            return false;
        expected += r.row_bytes;
    } while (advance(tensor, &r, index, &offset));
    return true;
}

bool gbx_rows_same(const gbx_tensor *tensor, const void *one, const void *other) {
    rows r;
    int64_t index[GBX_MAX_DIMS] = {0};
    int64_t first, end;
    if (gbx_tensor_numel(tensor) == 0)
        return true;
    if (!find_rows(tensor, 0, &r)) {
        gbx_tensor_extent(tensor, &first, &end);
        return memcmp((const char *)one + first, (const char *)other + first,
                      (size_t)(end - first)) == 0;
    }
    int64_t offset = r.first;
    do
        if (memcmp((const char *)one + offset, (const char *)other + offset, r.row_bytes) != 0)
            return false;
    while (advance(tensor, &r, index, &offset));
    return true;
}
