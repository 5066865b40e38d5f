/*
 * Disjoint ranges of addresses, each with what is known of its bytes: who told it, and where in
 * what he told the range begins. Setting a range cuts those that it covers in part.
 */
#ifndef GBX_ANALYSIS_AUDIT_MEMORY_MAP_H
#define GBX_ANALYSIS_AUDIT_MEMORY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gbx_memory_map gbx_memory_map;

typedef struct gbx_memory_range {
    uint64_t begin;
    uint64_t end; /* one past the last byte */
    uint64_t owner;
    uint64_t offset; /* of the byte at `begin`; grows with it when the range is cut, unless the map
                        says otherwise */
} gbx_memory_range;

typedef enum gbx_memory_offsets {
    GBX_OFFSETS_MOVE, /* of a range that loses n bytes at its beginning, the offset grows by n */
    GBX_OFFSETS_STAY  /* it stays as it is */
} gbx_memory_offsets;

/* Takes about 40 bytes a range. */
GBX_MUST_USE gbx_status gbx_memory_map_create(gbx_memory_offsets offsets, gbx_memory_map **out_map);
void gbx_memory_map_destroy(gbx_memory_map *map); /* takes NULL */

/*
 * begin < end; what lay there before is forgotten. Fails with GBX_EXHAUSTED when memory is out or
 * there are too many ranges; the map is then good for gbx_memory_map_destroy alone.
 */
GBX_MUST_USE gbx_status gbx_memory_map_set(gbx_memory_map *map, const gbx_memory_range *range);

/* The first range that ends after `address`; false where there is none. */
bool gbx_memory_map_find(const gbx_memory_map *map, uint64_t address, gbx_memory_range *out_range);

uint64_t gbx_memory_map_count(const gbx_memory_map *map);

/* Whether `count` ranges more, wherever they lie, leave it room for whole tensors. */
bool gbx_memory_map_has_room(const gbx_memory_map *map, uint64_t count);

void gbx_memory_map_clear(gbx_memory_map *map);

#endif
