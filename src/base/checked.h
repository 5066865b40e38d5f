/* Size arithmetic that reports overflow, for every size that comes from outside. */
#ifndef GBX_BASE_CHECKED_H
#define GBX_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false, with *out unspecified, when the result does not fit. */
static inline bool gbx_checked_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool gbx_checked_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool gbx_checked_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool gbx_checked_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* `alignment` is a power of two. */
static inline bool gbx_checked_align_up(uint64_t value, uint64_t alignment, uint64_t *out) {
    if (!gbx_checked_add_u64(value, alignment - 1, out))
        return false;
    *out &= ~(alignment - 1);
    return true;
}

/* Whether [offset, offset + length) lies inside [0, size). An empty range at the end does. */
static inline bool gbx_range_is_inside(uint64_t offset, uint64_t length, uint64_t size) {
    return offset <= size && length <= size - offset;
}

#endif
