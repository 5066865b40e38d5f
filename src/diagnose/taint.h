/* Bytes of global memory that hold something that matters, as bits: which bytes a view reads, and
 * what a task that writes a view leaves of them. */
#ifndef GBX_DIAGNOSE_TAINT_H
#define GBX_DIAGNOSE_TAINT_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "analysis/memory_map.h"
#include "replay/dependence.h"

/* Owners in the map are bits. */
uint64_t gbx_taint_of_range(const gbx_memory_map *map, uint64_t begin, uint64_t end);

/* Of all bytes of a view; of all bytes between its first and its last, if it has too many pieces.
 * The view is valid, or has no address: then 0. */
uint64_t gbx_taint_of_view(const gbx_memory_map *map, const gbx_tensor *view);

/* Whether every byte of a view has bits; false if the view has too many pieces. */
bool gbx_taint_has_all(const gbx_memory_map *map, const gbx_tensor *view);

/* Adds bits to what a range has. */
GBX_MUST_USE gbx_status gbx_taint_add(gbx_memory_map *map, uint64_t begin, uint64_t end,
                                      uint64_t bits);

/* The same for the bytes of a view; nothing for one with too many pieces. */
GBX_MUST_USE gbx_status gbx_taint_add_view(gbx_memory_map *map, const gbx_tensor *view,
                                           uint64_t bits);

/* Sets the bits of a view's bytes, but those in `kept`, which lie in the view: they keep theirs. A
 * view with too many pieces is left as it is. */
GBX_MUST_USE gbx_status gbx_taint_write(gbx_memory_map *map, const gbx_tensor *view, uint64_t bits,
                                        const gbx_address_ranges *kept);

/* Whether a view has few enough pieces. */
bool gbx_taint_can_follow(const gbx_tensor *view);

#endif
