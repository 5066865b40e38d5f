/*
 * Ranges are sorted in chunks, and chunks in one array: a search is two binary searches, and an
 * insertion moves at most one chunk and, when it splits one, the array of slots.
 */
#include "analysis/memory_map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { CHUNK_RANGES = 256 };
#define MAKING_A_MAP "mapping the dump's memory"
#define RANGES_MAX (UINT64_C(1) << 24) /* 640 MiB of chunks */
#define RANGES_KEPT (RANGES_MAX / 8)   /* for contiguous tensors */

typedef struct chunk {
    uint32_t count; /* at least 1 */
    gbx_memory_range ranges[CHUNK_RANGES];
} chunk;

/* Ranges of the chunk begin at `first` or later; those of earlier chunks end there or before. */
typedef struct slot {
    uint64_t first;
    chunk *chunk;
} slot;

struct gbx_memory_map {
    slot *slots;
    size_t chunk_count;
    uint64_t capacity;
    uint64_t range_count;
    gbx_memory_offsets offsets;
};

/* The place of a range in the map; chunk_count and 0 after the last one. */
typedef struct place {
    size_t chunk;
    uint32_t range;
} place;

gbx_status gbx_memory_map_create(gbx_memory_offsets offsets, gbx_memory_map **out_map) {
    *out_map = calloc(1, sizeof **out_map);
    if (!*out_map)
        return gbx_fail_memory(MAKING_A_MAP);
    (*out_map)->offsets = offsets;
    return NULL;
}

void gbx_memory_map_clear(gbx_memory_map *map) {
    for (size_t i = 0; i < map->chunk_count; ++i)
        free(map->slots[i].chunk);
    map->chunk_count = 0;
    map->range_count = 0;
}

void gbx_memory_map_destroy(gbx_memory_map *map) {
    if (!map)
        return;
    gbx_memory_map_clear(map);
    free(map->slots);
    free(map);
}

uint64_t gbx_memory_map_count(const gbx_memory_map *map) {
    return map->range_count;
}

/* Setting a range cuts at most one other in two. */
bool gbx_memory_map_has_room(const gbx_memory_map *map, uint64_t count) {
    uint64_t room = RANGES_MAX - RANGES_KEPT;
    return map->range_count <= room && count <= (room - map->range_count) / 2;
}

/* --- places --- */

/* The last chunk that may have a range beginning at `address` or earlier; else the first chunk. */
static size_t find_chunk(const gbx_memory_map *map, uint64_t address) {
    size_t low = 0;
    for (size_t count = map->chunk_count; count > 1;) {
        size_t half = count / 2;
        low += map->slots[low + half].first <= address ? half : 0;
        count -= half;
    }
    return low;
}

/* The first range that ends after `address`. */
static place find_place(const gbx_memory_map *map, uint64_t address) {
    place at = {find_chunk(map, address), 0};
    if (at.chunk == map->chunk_count)
        return at;
    const chunk *c = map->slots[at.chunk].chunk;
    for (uint32_t count = c->count; count > 0;) {
        uint32_t half = (count + 1) / 2;
        at.range += c->ranges[at.range + half - 1].end <= address ? half : 0;
        count -= half;
    }
    return at.range < c->count ? at : (place){at.chunk + 1, 0};
}

static gbx_memory_range *range_at(const gbx_memory_map *map, place at) {
    if (at.chunk >= map->chunk_count)
        return NULL;
    chunk *c = map->slots[at.chunk].chunk;
    assert(c); /* every slot has one */
    return &c->ranges[at.range];
}

bool gbx_memory_map_find(const gbx_memory_map *map, uint64_t address, gbx_memory_range *out_range) {
    const gbx_memory_range *found = range_at(map, find_place(map, address));
    if (found)
        *out_range = *found;
    return found != NULL;
}

/* --- chunks --- */

/* Inserts an empty chunk into the array. */
static gbx_status add_chunk(gbx_memory_map *map, size_t at) {
    GBX_TRY(gbx_array_reserve(&map->slots, &map->capacity, map->chunk_count + 1, MAKING_A_MAP));
    chunk *made = malloc(sizeof *made);
    if (!made)
        return gbx_fail_memory(MAKING_A_MAP);
    made->count = 0;
    memmove(map->slots + at + 1, map->slots + at, (map->chunk_count - at) * sizeof *map->slots);
    map->slots[at] = (slot){0, made};
    ++map->chunk_count;
    return NULL;
}

/* Moves the upper half of a full chunk to a new one. */
static gbx_status split_chunk(gbx_memory_map *map, place *at) {
    GBX_TRY(add_chunk(map, at->chunk + 1));
    chunk *lower = map->slots[at->chunk].chunk;
    chunk *upper = map->slots[at->chunk + 1].chunk;
    uint32_t kept = lower->count / 2;
    upper->count = lower->count - kept;
    memcpy(upper->ranges, lower->ranges + kept, upper->count * sizeof upper->ranges[0]);
    lower->count = kept;
    map->slots[at->chunk + 1].first = upper->ranges[0].begin;
    if (at->range > kept) {
        ++at->chunk;
        at->range -= kept;
    }
    return NULL;
}

/* Inserts before the range at a place. */
static gbx_status insert(gbx_memory_map *map, place at, const gbx_memory_range *range) {
    if (map->range_count == RANGES_MAX)
        return gbx_fail(GBX_EXHAUSTED,
                        MAKING_A_MAP ": its views cut it into more than %" PRIu64
                                     " ranges, the most that are tracked",
                        RANGES_MAX);
    if (at.chunk == map->chunk_count && map->chunk_count > 0)
        at = (place){map->chunk_count - 1, map->slots[map->chunk_count - 1].chunk->count};
    if (map->chunk_count == 0)
        GBX_TRY(add_chunk(map, 0));
    if (map->slots[at.chunk].chunk->count == CHUNK_RANGES)
        GBX_TRY(split_chunk(map, &at));
    slot *s = &map->slots[at.chunk];
    chunk *c = s->chunk;
    if (range->begin < s->first)
        s->first = range->begin;
    memmove(c->ranges + at.range + 1, c->ranges + at.range,
            (c->count - at.range) * sizeof c->ranges[0]);
    c->ranges[at.range] = *range;
    ++c->count;
    ++map->range_count;
    return NULL;
}

/* --- setting --- */

/* Cuts a range that contains `address` in two. */
static gbx_status cut_at(gbx_memory_map *map, uint64_t address) {
    place at = find_place(map, address);
    gbx_memory_range *range = range_at(map, at);
    if (!range || range->begin >= address)
        return NULL;
    gbx_memory_range lower = *range;
    lower.end = address;
    if (map->offsets == GBX_OFFSETS_MOVE)
        range->offset += address - range->begin;
    range->begin = address;
    return insert(map, at, &lower);
}

/* Removes ranges of a chunk from a place on that begin before `end`. */
static void remove_from_chunk(gbx_memory_map *map, place at, uint64_t end) {
    chunk *c = map->slots[at.chunk].chunk;
    uint32_t count = 0;
    while (at.range + count < c->count && c->ranges[at.range + count].begin < end)
        ++count;
    c->count -= count;
    map->range_count -= count;
    memmove(c->ranges + at.range, c->ranges + at.range + count,
            (c->count - at.range) * sizeof c->ranges[0]);
}

/* Removes all ranges in [begin, end); none crosses its bounds. Chunks that are empty then lie
 * together. */
static void remove_inside(gbx_memory_map *map, uint64_t begin, uint64_t end) {
    place at = find_place(map, begin);
    size_t next = at.chunk, first_empty = SIZE_MAX, empty = 0;
    for (; next < map->chunk_count && map->slots[next].first < end; ++next) {
        remove_from_chunk(map, (place){next, next == at.chunk ? at.range : 0}, end);
        if (map->slots[next].chunk->count > 0)
            continue;
        free(map->slots[next].chunk);
        first_empty = empty++ == 0 ? next : first_empty;
    }
    if (empty == 0)
        return;
    size_t rest = map->chunk_count - first_empty - empty;
    memmove(map->slots + first_empty, map->slots + first_empty + empty, rest * sizeof *map->slots);
    map->chunk_count -= empty;
}

gbx_status gbx_memory_map_set(gbx_memory_map *map, const gbx_memory_range *range) {
    place at = find_place(map, range->begin);
    gbx_memory_range *old = range_at(map, at);
    if (old && old->begin == range->begin && old->end == range->end) {
        *old = *range;
        return NULL;
    }
    if (!old || old->begin >= range->end)
        return insert(map, at, range);
    GBX_TRY(cut_at(map, range->begin));
    GBX_TRY(cut_at(map, range->end));
    remove_inside(map, range->begin, range->end);
    return insert(map, find_place(map, range->begin), range);
}
