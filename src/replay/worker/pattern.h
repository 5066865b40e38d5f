/*
 * Two patterns that stand for undeclared memory. Every byte depends on its place, so that a value
 * copied from elsewhere shows, and no half byte is the same in both at the same place.
 *
 * They come in flavours, for memory of elements with so many bytes. As floats they are of ordinary
 * size, from 1/65536 (float64) or 0.5 up, positive in one pattern and negative in the other: what a
 * kernel adds to them is not lost in rounding, and what it clamps differs. Some are special: half
 * are zero in the other pattern, and a few very large in the first, for kernels that only compare.
 * They hold neither NaN nor infinities.
 */
#ifndef GBX_REPLAY_WORKER_PATTERN_H
#define GBX_REPLAY_WORKER_PATTERN_H

#include <stdint.h>

enum { GBX_PATTERN_FIRST = 0, GBX_PATTERN_OTHER = 1, GBX_PATTERNS = 2 };

/* Elements of one byte, or less; of two bytes and others; of four and others; of eight. */
typedef enum gbx_pattern_flavour {
    GBX_FLAVOUR_BYTES = 0,
    GBX_FLAVOUR_2 = 1,
    GBX_FLAVOUR_4 = 2,
    GBX_FLAVOUR_8 = 3,
    GBX_FLAVOURS = 4
} gbx_pattern_flavour;

/* The flavour for a memory with elements of all widths, a bit each: 1 << bytes. */
gbx_pattern_flavour gbx_pattern_flavour_of(uint32_t widths);

/* One thread. The bytes of places 0 to `bytes`, where elements are aligned; `salt` tells memories
 * apart. */
void gbx_pattern_fill(int pattern, gbx_pattern_flavour flavour, uint32_t salt, void *out_bytes,
                      uint64_t bytes);

#endif
