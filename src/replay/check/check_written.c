#include "replay/check/internal.h"

#include <string.h>

/* Elements of whole bytes, or halves of bytes in rows. */
typedef struct layout {
    uint64_t elements;
    size_t width; /* bytes of an element; 0 for int4 */
    uint64_t row; /* elements of a row of int4 */
} layout;

static layout layout_of(const gbx_tensor *tensor) {
    layout l = {(uint64_t)gbx_tensor_numel(tensor), gbx_dtype_bits(tensor->dtype) / 8, 1};
    if (tensor->ndims > 0)
        l.row = (uint64_t)tensor->shape[tensor->ndims - 1];
    return l;
}

/* Where half an element lies, and which half of its byte. */
static uint64_t half_byte(const layout *l, uint64_t element, unsigned *out_shift) {
    uint64_t in_row = element % l->row;
    *out_shift = in_row % 2 ? 4 : 0;
    return element / l->row * ((l->row + 1) / 2) + in_row / 2;
}

static bool holds(const layout *l, const unsigned char *payload, uint64_t element,
                  unsigned char poison) {
    if (l->width == 0) {
        unsigned shift;
        uint64_t byte = half_byte(l, element, &shift);
        return ((payload[byte] ^ poison) >> shift & 0xf) == 0;
    }
    const unsigned char *bytes = payload + element * l->width;
    for (size_t i = 0; i < l->width; ++i)
        if (bytes[i] != poison)
            return false;
    return true;
}

static void clear(const layout *l, unsigned char *payload, uint64_t element) {
    if (l->width == 0) {
        unsigned shift;
        uint64_t byte = half_byte(l, element, &shift);
        payload[byte] &= (unsigned char)(0xf0 >> shift);
        return;
    }
    memset(payload + element * l->width, 0, l->width);
}

/* An element of several bytes that holds it has it in its first byte. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison) {
    const unsigned char *bytes = payload;
    layout l = layout_of(tensor);
    if (l.width > 0 && !memchr(bytes, poison, l.elements * l.width))
        return false;
    for (uint64_t i = 0; i < l.elements; ++i)
        if (holds(&l, bytes, i, poison))
            return true;
    return false;
}

uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const unsigned char poisons[2], void *got) {
    layout l = layout_of(tensor);
    uint64_t count = 0;
    for (uint64_t i = 0; i < l.elements; ++i) {
        if (!holds(&l, want, i, poisons[0]) || !holds(&l, again, i, poisons[1]))
            continue;
        clear(&l, want, i);
        clear(&l, again, i);
        clear(&l, got, i);
        ++count;
    }
    return count;
}
