#include "replay/replay_bits.h"

#include <math.h>
#include <string.h>

/* How elements lie in a payload. */
typedef struct layout {
    uint32_t element_bytes; /* 0 for int4 */
    uint64_t row_elements;  /* of int4, whose rows begin with a byte */
    uint64_t row_bytes;
} layout;

static layout layout_of(const gbx_tensor *tensor) {
    layout l = {.element_bytes = gbx_dtype_bits(tensor->dtype) / 8};
    l.row_elements = tensor->ndims > 0 ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    l.row_bytes = (l.row_elements + 1) / 2;
    return l;
}

/* Where half an element lies, and how far its bits in the byte. */
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

/* The bits of an element that nobody wrote. */
static uint64_t poison_of(const layout *l, uint64_t number, uint8_t poison) {
    if (l->element_bytes == 0)
        return number % l->row_elements % 2 ? poison >> 4 : poison & 15u;
    return (UINT64_MAX >> (64 - 8 * l->element_bytes)) & (0x0101010101010101u * poison);
}

static bool is_written(const layout *l, const gbx_bits_payloads *p, uint64_t i, uint64_t bits) {
    if (p->before && bits == element(l, p->before, i))
        return false;
    if (!p->is_poisoned || bits != poison_of(l, i, GBX_REPLAY_POISON))
        return true;
    return p->other && element(l, p->other, i) != poison_of(l, i, GBX_REPLAY_OTHER_POISON);
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
        c.unstable += p->other && element(&l, p->other, i) != bits;
        uint64_t dump = p->dump ? element(&l, p->dump, i) : bits;
        if (dump != bits) {
            if (c.mismatches++ == 0) {
                c.first_bad = i;
                c.dump_bits = dump;
                c.replay_bits = bits;
            }
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

/* --- poison --- */

bool gbx_bits_is_poison(const gbx_tensor *tensor, uint64_t number, uint64_t bits) {
    layout l = layout_of(tensor);
    return bits == poison_of(&l, number, GBX_REPLAY_POISON) ||
           bits == poison_of(&l, number, GBX_REPLAY_OTHER_POISON);
}

/* An element of several bytes that holds it has it in its first byte. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    if (l.element_bytes > 0 && !memchr(payload, poison, count * l.element_bytes))
        return false;
    for (uint64_t i = 0; i < count; ++i)
        if (element(&l, payload, i) == poison_of(&l, i, poison))
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
                               const unsigned char poisons[2], void *got) {
    layout l = layout_of(tensor);
    uint64_t count = (uint64_t)gbx_tensor_numel(tensor);
    uint64_t cleared = 0;
    for (uint64_t i = 0; i < count; ++i) {
        if (element(&l, want, i) != poison_of(&l, i, poisons[0]) ||
            element(&l, again, i) != poison_of(&l, i, poisons[1]))
            continue;
        clear(&l, want, i);
        clear(&l, again, i);
        clear(&l, got, i);
        ++cleared;
    }
    return cleared;
}
