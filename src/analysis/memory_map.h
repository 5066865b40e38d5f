/* Disjoint ranges of addresses, each with the owner of its bytes and the offset of the range in the
 * owner's payload. Setting a range cuts those that it covers in part. */
#ifndef GBX_ANALYSIS_MEMORY_MAP_H
#define GBX_ANALYSIS_MEMORY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gbx_memory_map gbx_memory_map;

typedef struct gbx_memory_range {
    uint64_t begin;
    uint64_t end; /* one past the last byte */
    uint64_t owner;
    uint64_t offset; /* of the byte at `begin` */
} gbx_memory_range;

/* The offset of a range that loses n bytes at its beginning */
typedef enum gbx_memory_offsets {
    GBX_OFFSETS_MOVE, /* grows by n */
    GBX_OFFSETS_STAY  /* stays */
} gbx_memory_offsets;

/* Takes about 40 bytes per range. */
GBX_MUST_USE gbx_status gbx_memory_map_create(gbx_memory_offsets offsets, gbx_memory_map **out_map);
void gbx_memory_map_destroy(gbx_memory_map *map); /* takes NULL */

/*
 * begin < end; replaces what was known there. Fails with GBX_EXHAUSTED when memory is out or there
 * are too many ranges; the map can then only be destroyed.
 */
GBX_MUST_USE gbx_status gbx_memory_map_set(gbx_memory_map *map, const gbx_memory_range *range);

/* The first range that ends after `address`; false if there is none. */
bool gbx_memory_map_find(const gbx_memory_map *map, uint64_t address, gbx_memory_range *out_range);

uint64_t gbx_memory_map_count(const gbx_memory_map *map);

/* Whether `count` more ranges, wherever they lie, leave room for contiguous tensors. */
bool gbx_memory_map_has_room(const gbx_memory_map *map, uint64_t count);

void gbx_memory_map_clear(gbx_memory_map *map);

#endif
