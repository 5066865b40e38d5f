/* Small functions of numbers. */
#ifndef GBX_BASE_NUMBERS_H
#define GBX_BASE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gbx_min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The least power of two from `value` on, which is at most 2^31. */
static inline uint32_t gbx_power_of_two_from(uint64_t value) {
    uint32_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

/* Negative, 0 or positive, as the first is less, equal or greater. */
static inline int gbx_order_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* For qsort: ascending. */
static inline int gbx_compare_u64(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/*
 * The index of the first item of an array whose number is not below `value`; else `count`. The
 * array ascends by that number, which is a uint64_t `offset` bytes into each item.
 */
static inline uint64_t gbx_lower_bound_at(const void *items, uint64_t count, size_t item_bytes,
                                          size_t offset, uint64_t value) {
    uint64_t low = 0;
    for (uint64_t high = count; low < high;) {
        const uint64_t middle = low + (high - low) / 2;
        uint64_t number;
        memcpy(&number, (const char *)items + middle * item_bytes + offset, sizeof number);
        if (number < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same for plain numbers. */
static inline uint64_t gbx_lower_bound_u64(const uint64_t *numbers, uint64_t count,
                                           uint64_t value) {
    return gbx_lower_bound_at(numbers, count, sizeof *numbers, 0, value);
}

#endif
