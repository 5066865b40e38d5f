#include "replay/bits.h"

#include <math.h>
#include <string.h>

/* The layout of a payload. */
typedef struct layout {
    uint32_t element_bytes; /* 0 for 4 bits */
    uint64_t row_elements;  /* of 4 bits: rows begin with a byte */
    uint64_t row_bytes;
} layout;

static layout layout_of(const gbx_tensor *tensor) {
    layout l = {.element_bytes = gbx_dtype_bits(tensor->dtype) / 8};
    l.row_elements = tensor->ndims > 0 ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    l.row_bytes = (l.row_elements + 1) / 2;
    return l;
}

/* The byte of a half-byte element, and the shift of its bits in it. */
static uint64_t half_byte(const layout *l, uint64_t number, unsigned *out_shift) {
    uint64_t column = number % l->row_elements;
    *out_shift = column % 2 ? 4 : 0;
    return number / l->row_elements * l->row_bytes + column / 2;
}

static inline uint64_t element(const layout *l, const unsigned char *payload, uint64_t number) {
    unsigned shift;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (l->element_bytes) {
    case 1:
        return payload[number];
    case 2:
        memcpy(&two, payload + number * 2, sizeof two);
        return two;
    case 4:
        memcpy(&four, payload + number * 4, sizeof four);
        return four;
    case 8:
        memcpy(&eight, payload + number * 8, sizeof eight);
        return eight;
    default:
        number = half_byte(l, number, &shift);
        return payload[number] >> shift & 15u;
    }
}

static bool is_written(const layout *l, const gbx_bits_payloads *p, uint64_t i, uint64_t bits) {
    if (p->before && bits == element(l, p->before, i))
        return false;
    if (!p->start || bits != element(l, p->start, i))
        return true;
    if (!p->other || !p->other_start)
        return false;
    uint64_t other_start = element(l, p->other_start, i);
    return other_start == bits || element(l, p->other, i) != other_start;
}

double gbx_bits_distance(uint32_t dtype, uint64_t a, uint64_t b) {
    double distance = fabs(gbx_dtype_to_f64(dtype, a) - gbx_dtype_to_f64(dtype, b));
    if (a == b)
        return 0;
    return isnan(distance) ? INFINITY : distance;
}

gbx_bits_comparison gbx_bits_compare(const gbx_tensor *tensor, const gbx_bits_payloads *p) {
    layout l = layout_of(tensor);
    gbx_bits_comparison c = {.elements = (uint64_t)gbx_tensor_numel(tensor)};
    for (uint64_t i = 0; i < c.elements; ++i) {
        uint64_t bits = element(&l, p->replay, i);
        if (!is_written(&l, p, i, bits)) {
            c.not_written++;
            continue;
        }
        if (p->other && element(&l, p->other, i) != bits) {
            if (c.unstable++ == 0)
                c.first_unstable = i;
            c.last_unstable = i;
        }
        uint64_t dump = p->dump ? element(&l, p->dump, i) : bits;
        if (dump != bits) {
            if (c.mismatches++ == 0) {
                c.first_bad = i;
                c.dump_bits = dump;
                c.replay_bits = bits;
            }
            c.last_bad = i;
            double distance = gbx_bits_distance(tensor->dtype, dump, bits);
            c.max_abs = distance > c.max_abs ? distance : c.max_abs;
        }
    }
    return c;
}

uint64_t gbx_bits_element(const gbx_tensor *tensor, const unsigned char *payload, uint64_t number) {
    layout l = layout_of(tensor);
    return element(&l, payload, number);
}

bool gbx_bits_is_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                         uint64_t number) {
    layout l = layout_of(tensor);
    return is_written(&l, payloads, number, element(&l, payloads->replay, number));
}

/* --- elements that are not written --- */

bool gbx_bits_share_element(const gbx_tensor *tensor, const void *payload, const void *start) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    for (uint64_t i = 0; i < count; ++i)
        if (element(&l, payload, i) == element(&l, start, i))
            return true;
    return false;
}

static void clear(const layout *l, unsigned char *payload, uint64_t number) {
    unsigned shift;
    if (l->element_bytes > 0) {
        memset(payload + number * l->element_bytes, 0, l->element_bytes);
        return;
    }
    number = half_byte(l, number, &shift);
    payload[number] &= (unsigned char)(0xf0 >> shift);
}

uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const void *const starts[2], void *got) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    uint64_t cleared = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t start = element(&l, starts[0], i), other = element(&l, starts[1], i);
        if (start == other || element(&l, want, i) != start || element(&l, again, i) != other)
            continue;
        clear(&l, want, i);
        clear(&l, again, i);
        clear(&l, got, i);
        ++cleared;
    }
    return cleared;
}
