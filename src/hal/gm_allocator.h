/*
 * Who owns which part of global memory. Best fit, neighbours joined again when freed; every call is
 * O(log n) of the live and free spans. Any thread.
 */
#ifndef GBX_HAL_GM_ALLOCATOR_H
#define GBX_HAL_GM_ALLOCATOR_H

#include <stdint.h>

#include "base/status.h"

typedef struct gbx_gm_allocator gbx_gm_allocator;

/* `base` is a multiple of the page size. */
GBX_MUST_USE gbx_status gbx_gm_allocator_create(uint64_t base, uint64_t bytes,
                                                gbx_gm_allocator **out_allocator);
void gbx_gm_allocator_destroy(gbx_gm_allocator *allocator);

/*
 * GBX_EXHAUSTED says how much was asked, how much is free and how much of that in one piece.
 * `alignment` is a power of two. 0 bytes get an address of their own, of which none may be used.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_alloc(gbx_gm_allocator *allocator, uint64_t bytes,
                                               uint64_t alignment, uint64_t *out_address);

/*
 * GBX_NOT_FOUND for an address that is not the start of a live allocation, a double free too;
 * GBX_OUT_OF_RANGE for one that is not in global memory at all.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_free(gbx_gm_allocator *allocator, uint64_t address);

/* Whether [address, address + bytes) lies inside one live allocation; `doing` begins the message.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_check(gbx_gm_allocator *allocator, const char *doing,
                                               uint64_t address, uint64_t bytes);

uint64_t gbx_gm_allocator_free_bytes(gbx_gm_allocator *allocator);

/* The most that is free in one piece. */
uint64_t gbx_gm_allocator_largest_piece(gbx_gm_allocator *allocator);

#endif
