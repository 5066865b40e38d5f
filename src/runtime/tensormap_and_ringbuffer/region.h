/*
 * The exact set of bytes that a view touches, in a normal form: dimensions of one element, strides
 * of 0, signs of strides and the order of dimensions do not matter, and dimensions that continue
 * each other are merged. Device code, pure, any thread.
 */
#ifndef GBX_RUNTIME_TENSORMAP_REGION_H
#define GBX_RUNTIME_TENSORMAP_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

typedef struct gbx_region_dim {
    uint64_t stride; /* in bytes, never 0; with `halves` in elements of 4 bits */
    uint64_t count;  /* 2 and up */
} gbx_region_dim;

/*
 * A region without its address. The small fields lie apart: side by side the compiler would compare
 * them with one load right after two separate stores, which stalls.
 */
typedef struct gbx_region_form {
    uint64_t run;       /* bytes without a gap, repeated at every step of the dimensions */
    uint32_t dim_count; /* 0: one run */
    uint32_t is_nested; /* every stride is at least the span of the dims before it */
    uint64_t span;      /* bytes from the first to past the last */
    uint32_t halves;    /* 0: bytes; 1, 2: elements of 4 bits from the low, high half on */
    uint32_t reserved;
    gbx_region_dim dims[GBX_MAX_DIMS]; /* strides ascend */
} gbx_region_form;

typedef struct gbx_region {
    uint64_t first; /* address of the first byte */
    gbx_region_form form;
} gbx_region;

/* The bytes of a valid tensor; false when it is empty. Of the form's dims, dim_count are set. */
bool gbx_region_of_tensor(const gbx_tensor *tensor, gbx_region *out_region);

bool gbx_region_form_equals(const gbx_region_form *a, const gbx_region_form *b);

/* Whether two regions, given by their first bytes and forms, share a byte; as exact as
 * gbx_tensor_overlaps. */
bool gbx_region_overlaps(uint64_t a_first, const gbx_region_form *a, uint64_t b_first,
                         const gbx_region_form *b);

/*
 * A nested form divides memory into a grid. An offset has digits: the quotients by the strides,
 * from the largest down to single bytes. The counts (and the run) cut the digits into tiles. A
 * region that does not wrap (no digit passes the next larger stride) is a box of digits: it begins
 * in one tile and reaches at most into the next one along each digit. A region that begins where a
 * tile begins fills that tile, and shares no byte with another such region.
 *
 * gbx_region_place finds the offset at which the region's tile begins (its home). False when there
 * is none: the region wraps, or its form is not nested.
 */
bool gbx_region_place(const gbx_region_form *form, uint64_t offset, uint64_t *out_home);

/* Tiles of a grid: along each digit those from low to high, `bytes` apart. */
typedef struct gbx_region_tiles {
    uint32_t level_count;
    uint64_t low[GBX_MAX_DIMS + 1];
    uint64_t high[GBX_MAX_DIMS + 1];
    uint64_t bytes[GBX_MAX_DIMS + 1];
} gbx_region_tiles;

/*
 * Tiles of the grid of `form`: all in which a region of that form can begin that shares a byte with
 * `region` (first byte `offset`), and possibly more. `is_aligned`: all such regions begin where a
 * tile begins. False when there are more than `limit`.
 */
bool gbx_region_find_tiles(const gbx_region_form *form, bool is_aligned, uint64_t offset,
                           const gbx_region_form *region, uint64_t limit,
                           gbx_region_tiles *out_tiles);

#endif
