/*
 * Ranges lie sorted in chunks, and chunks sorted in one array: finding is two binary searches, and
 * what an insertion moves is bounded by a chunk and, when one is split, by the array of pointers.
 */
#include "analysis/memory_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_RANGES = 256 };
#define RANGES_MAX (UINT64_C(1) << 24) /* 640 MiB of chunks */

typedef struct chunk {
    uint32_t count; /* at least 1 */
    gbx_memory_range ranges[CHUNK_RANGES];
} chunk;

struct gbx_memory_map {
    chunk **chunks;
    size_t chunk_count;
    size_t capacity;
    uint64_t range_count;
    gbx_memory_offsets offsets;
};

/* A range of the map; after the last one, chunk_count and 0. */
typedef struct place {
    size_t chunk;
    uint32_t range;
} place;

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "no memory for a map of the dump's memory");
}

gbx_status gbx_memory_map_create(gbx_memory_offsets offsets, gbx_memory_map **out_map) {
    *out_map = calloc(1, sizeof **out_map);
    if (!*out_map)
        return fail_memory();
    (*out_map)->offsets = offsets;
    return NULL;
}

void gbx_memory_map_clear(gbx_memory_map *map) {
    for (size_t i = 0; i < map->chunk_count; ++i)
        free(map->chunks[i]);
    map->chunk_count = 0;
    map->range_count = 0;
}

void gbx_memory_map_destroy(gbx_memory_map *map) {
    if (!map)
        return;
    gbx_memory_map_clear(map);
    free(map->chunks);
    free(map);
}

uint64_t gbx_memory_map_count(const gbx_memory_map *map) {
    return map->range_count;
}

/* --- places --- */

static uint64_t chunk_end(const chunk *c) {
    return c->ranges[c->count - 1].end;
}

/* The first range that ends after `address`. */
static place find_place(const gbx_memory_map *map, uint64_t address) {
    size_t low = 0;
    size_t high = map->chunk_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chunk_end(map->chunks[middle]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    place at = {low, 0};
    if (low == map->chunk_count)
        return at;
    uint32_t first = 0;
    uint32_t end = map->chunks[low]->count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (map->chunks[low]->ranges[middle].end <= address)
            first = middle + 1;
        else
            end = middle;
    }
    at.range = first;
    return at;
}

static gbx_memory_range *range_at(const gbx_memory_map *map, place at) {
    return at.chunk < map->chunk_count ? &map->chunks[at.chunk]->ranges[at.range] : NULL;
}

bool gbx_memory_map_find(const gbx_memory_map *map, uint64_t address, gbx_memory_range *out_range) {
    const gbx_memory_range *found = range_at(map, find_place(map, address));
    if (found)
        *out_range = *found;
    return found != NULL;
}

/* --- chunks --- */

/* A chunk more, empty, at a place of the array. */
static gbx_status add_chunk(gbx_memory_map *map, size_t at) {
    if (map->chunk_count == map->capacity) {
        size_t wanted = map->capacity ? map->capacity * 2 : 16;
        chunk **larger = realloc(map->chunks, wanted * sizeof(chunk *));
        if (!larger)
            return fail_memory();
        map->chunks = larger;
        map->capacity = wanted;
    }
    chunk *made = malloc(sizeof *made);
    if (!made)
        return fail_memory();
    made->count = 0;
    memmove(map->chunks + at + 1, map->chunks + at, (map->chunk_count - at) * sizeof(chunk *));
    map->chunks[at] = made;
    ++map->chunk_count;
    return NULL;
}

static void remove_chunk(gbx_memory_map *map, size_t at) {
    free(map->chunks[at]);
    --map->chunk_count;
    memmove(map->chunks + at, map->chunks + at + 1, (map->chunk_count - at) * sizeof(chunk *));
}

/* The upper half of a full chunk becomes one of its own. */
static gbx_status split_chunk(gbx_memory_map *map, place *at) {
    GBX_TRY(add_chunk(map, at->chunk + 1));
    chunk *lower = map->chunks[at->chunk];
    chunk *upper = map->chunks[at->chunk + 1];
    uint32_t kept = lower->count / 2;
    upper->count = lower->count - kept;
    memcpy(upper->ranges, lower->ranges + kept, upper->count * sizeof upper->ranges[0]);
    lower->count = kept;
    if (at->range > kept) {
        ++at->chunk;
        at->range -= kept;
    }
    return NULL;
}

/* Before the range at a place. */
static gbx_status insert(gbx_memory_map *map, place at, const gbx_memory_range *range) {
    if (map->range_count == RANGES_MAX)
        return gbx_fail(GBX_EXHAUSTED,
                        "the views of the dump cut its memory into more than %" PRIu64
                        " ranges, which is more than can be followed",
                        RANGES_MAX);
    if (at.chunk == map->chunk_count && map->chunk_count > 0)
        at = (place){map->chunk_count - 1, map->chunks[map->chunk_count - 1]->count};
    if (map->chunk_count == 0)
        GBX_TRY(add_chunk(map, 0));
    if (map->chunks[at.chunk]->count == CHUNK_RANGES)
        GBX_TRY(split_chunk(map, &at));
    chunk *c = map->chunks[at.chunk];
    memmove(c->ranges + at.range + 1, c->ranges + at.range,
            (c->count - at.range) * sizeof c->ranges[0]);
    c->ranges[at.range] = *range;
    ++c->count;
    ++map->range_count;
    return NULL;
}

/* Takes out `count` ranges of one chunk. */
static void remove_ranges(gbx_memory_map *map, place at, uint32_t count) {
    chunk *c = map->chunks[at.chunk];
    c->count -= count;
    map->range_count -= count;
    memmove(c->ranges + at.range, c->ranges + at.range + count,
            (c->count - at.range) * sizeof c->ranges[0]);
    if (c->count == 0)
        remove_chunk(map, at.chunk);
}

/* --- setting --- */

static void cut_beginning(const gbx_memory_map *map, gbx_memory_range *range, uint64_t begin) {
    if (map->offsets == GBX_OFFSETS_MOVE)
        range->offset += begin - range->begin;
    range->begin = begin;
}

/* Where a range lies across `address`, it becomes two that meet there. */
static gbx_status cut_at(gbx_memory_map *map, uint64_t address) {
    place at = find_place(map, address);
    gbx_memory_range *range = range_at(map, at);
    if (!range || range->begin >= address)
        return NULL;
    gbx_memory_range lower = *range;
    lower.end = address;
    cut_beginning(map, range, address);
    return insert(map, at, &lower);
}

/* Takes out all ranges that lie in [begin, end); none lies across its bounds. */
static void remove_inside(gbx_memory_map *map, uint64_t begin, uint64_t end) {
    for (;;) {
        place at = find_place(map, begin);
        if (at.chunk == map->chunk_count)
            return;
        const chunk *c = map->chunks[at.chunk];
        uint32_t count = 0;
        while (at.range + count < c->count && c->ranges[at.range + count].begin < end)
            ++count;
        if (count == 0)
            return;
        remove_ranges(map, at, count);
    }
}

gbx_status gbx_memory_map_set(gbx_memory_map *map, const gbx_memory_range *range) {
    place at = find_place(map, range->begin);
    gbx_memory_range *old = range_at(map, at);
    if (old && old->begin == range->begin && old->end == range->end) {
        *old = *range;
        return NULL;
    }
    GBX_TRY(cut_at(map, range->begin));
    GBX_TRY(cut_at(map, range->end));
    remove_inside(map, range->begin, range->end);
    return insert(map, find_place(map, range->begin), range);
}
