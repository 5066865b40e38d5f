/* The values of an entry: its elements out of the payload. */
#include <inttypes.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/entries.h"
#include "tensor/compare/compare.h"

enum { READ_BYTES = 4096 }; /* at a time, of elements that are asked for */

static uint64_t minimum(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- elements --- */

static uint64_t row_elements(const gbx_elements *elements) {
    return elements->ndims ? (uint64_t)elements->shape[elements->ndims - 1] : 1;
}

/* An element of `bytes` bytes, little-endian. */
static uint64_t load_element(const unsigned char *at, uint32_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    return bits;
}

static gbx_status read_whole(const gbx_entry_values *values, uint64_t first, size_t count,
                             uint64_t *out_bits) {
    unsigned char bytes[READ_BYTES];
    uint32_t size = gbx_dtype_bits(values->elements.dtype) / 8;
    while (count > 0) {
        size_t taken = (size_t)minimum(count, READ_BYTES / size);
        GBX_TRY(gbx_reader_read_payload(values->reader, values->offset + first * size, bytes,
                                        taken * size));
        for (size_t i = 0; i < taken; ++i)
            out_bits[i] = load_element(bytes + i * size, size);
        out_bits += taken;
        first += taken;
        count -= taken;
    }
    return NULL;
}

/* Two elements a byte, the first in the low half; every row begins with a byte. */
static gbx_status read_halves(const gbx_entry_values *values, uint64_t first, size_t count,
                              uint64_t *out_bits) {
    unsigned char bytes[READ_BYTES];
    uint64_t length = row_elements(&values->elements);
    while (count > 0) {
        uint64_t column = first % length;
        size_t taken = (size_t)minimum(minimum(count, length - column), READ_BYTES);
        uint64_t byte = first / length * values->row_bytes + column / 2;
        GBX_TRY(gbx_reader_read_payload(values->reader, values->offset + byte, bytes,
                                        (size_t)((column % 2 + taken + 1) / 2)));
        for (size_t i = 0; i < taken; ++i) {
            uint64_t half = column % 2 + i;
            out_bits[i] = (uint64_t)bytes[half / 2] >> half % 2 * 4 & 0xfu;
        }
        out_bits += taken;
        first += taken;
        count -= taken;
    }
    return NULL;
}

static gbx_status read_elements(const void *context, uint64_t first, size_t count,
                                uint64_t *out_bits) {
    const gbx_entry_values *values = context;
    if (values->is_scalar) {
        if (count > 0)
            out_bits[0] = values->scalar_bits;
        return NULL;
    }
    return gbx_dtype_bits(values->elements.dtype) == 4 ? read_halves(values, first, count, out_bits)
                                                       : read_whole(values, first, count, out_bits);
}

static uint64_t count_stored(const gbx_entry_values *values) {
    const gbx_elements *elements = &values->elements;
    uint32_t bits = gbx_dtype_bits(elements->dtype);
    uint64_t stored = values->bytes / (bits < 8 ? 1 : bits / 8);
    if (bits == 4 && values->row_bytes > 0)
        stored = values->bytes / values->row_bytes * row_elements(elements) +
                 minimum(values->bytes % values->row_bytes * 2, row_elements(elements));
    return minimum(stored, elements->count);
}

/* --- opening --- */

static gbx_status fail_size(const gbx_entry *entry, uint64_t whole) {
    return gbx_fail(GBX_BAD_FORMAT,
                    "reading entry %" PRIu64 " of the dump: it has %" PRIu64
                    " bytes of payload, and its shape and dtype need %s%" PRIu64
                    "; glassbox verify tells more",
                    entry->index, entry->tensor->bin_size,
                    entry->head->flags & GBX_FLAG_TRUNCATED ? "at most " : "", whole);
}

static gbx_status open_tensor(const gbx_entry *entry, gbx_entry_values *values) {
    gbx_elements *elements = &values->elements;
    gbx_tensor view;
    gbx_record_view(entry->tensor, &view);
    gbx_status status = gbx_tensor_contiguous(0, view.dtype, view.ndims, view.shape, &view);
    if (status) {
        gbx_status failure = gbx_fail(GBX_BAD_FORMAT, "reading entry %" PRIu64 " of the dump: %s",
                                      entry->index, gbx_status_message(status));
        gbx_status_free(status);
        return failure;
    }
    uint64_t whole = gbx_tensor_payload_bytes(&view);
    values->offset = entry->tensor->bin_offset;
    values->bytes = gbx_entry_stored_bytes(entry);
    bool is_truncated = entry->head->flags & GBX_FLAG_TRUNCATED;
    if (is_truncated ? values->bytes > whole : values->bytes != whole)
        return fail_size(entry, whole);
    elements->ndims = view.ndims;
    memcpy(elements->shape, view.shape, sizeof view.shape);
    elements->count = gbx_entry_numel(entry);
    values->row_bytes = (row_elements(elements) * gbx_dtype_bits(view.dtype) + 7) / 8;
    elements->stored = count_stored(values);
    return NULL;
}

gbx_status gbx_entry_values_open(const gbx_entry *entry, const gbx_reader *reader,
                                 gbx_entry_values *out_values) {
    *out_values = (gbx_entry_values){
        .elements = {.dtype = entry->dtype, .read = read_elements, .context = out_values},
        .reader = reader,
        .is_scalar = entry->scalar != NULL,
    };
    if (!entry->scalar)
        return open_tensor(entry, out_values);
    out_values->elements.count = 1;
    out_values->elements.stored = 1;
    out_values->scalar_bits = entry->scalar->bits;
    return NULL;
}

void gbx_entry_index(const gbx_entry *entry, uint64_t element, int64_t out_index[GBX_MAX_DIMS]) {
    gbx_tensor view = {0};
    if (entry->tensor)
        gbx_record_view(entry->tensor, &view);
    gbx_compare_index(&view, element, out_index);
}
