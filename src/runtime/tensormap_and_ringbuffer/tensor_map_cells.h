/*
 * The data of the tensor map, inline for tensor_map.c.
 *
 * An access is an entry of a ring, in order of submission. Entries of the same region hang on one
 * cell: one writer, and a queue of readers whose oldest is the first to be retired. Cells are
 * hashed by group and home tile. Index 0 means none everywhere.
 */
#ifndef GBX_RUNTIME_TENSOR_MAP_CELLS_H
#define GBX_RUNTIME_TENSOR_MAP_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/tensormap_and_ringbuffer/buffer_table.h"
#include "runtime/tensormap_and_ringbuffer/region.h"
#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

#define LINE_BYTES 64

enum { WRITERS = 0, READERS = 1, LISTS = 2 };

typedef struct entry {
    uint64_t task;
    uint32_t cell; /* 0 once it is covered by a later write */
    uint32_t group;
    uint32_t next; /* the next younger reader of the cell */
} entry;

typedef struct cell {
    _Alignas(LINE_BYTES) uint64_t first; /* offset in the buffer */
    uint64_t home;                       /* of its tile; `first` where the group is not a grid */
    uint32_t group;
    uint32_t chain; /* next of the same hash, or next free cell */
    uint32_t writer;
    uint32_t oldest_reader;
    uint32_t youngest_reader;
    uint32_t next[LISTS]; /* in the group's lists of cells with a writer, with readers */
    uint32_t prev[LISTS];
} cell;

typedef struct group {
    _Alignas(LINE_BYTES) uint64_t low; /* offsets in the buffer that all its cells lie between */
    uint64_t high;
    uint32_t buffer;
    uint32_t chain; /* next of the same hash, or next free group */
    uint32_t next;  /* in the buffer */
    uint32_t prev;
    uint32_t cells[LISTS];
    uint32_t counts[LISTS];
    uint32_t loose_count; /* cells that do not begin where a tile begins */
    uint32_t entry_count;
    uint32_t hash;
    bool is_grid; /* its regions are nested and do not wrap */
    bool is_detached;
    gbx_region_form form;
} group;

struct gbx_tensor_map {
    entry *entries; /* ring; from `oldest` on `entry_count` are used */
    cell *cells;
    group *groups;
    uint32_t *cell_buckets;
    uint32_t *group_buckets;
    uint32_t bucket_mask; /* of both hash tables */
    uint32_t capacity;
    uint32_t oldest;
    uint32_t entry_count;
    uint32_t free_cell, used_cells; /* free: list of cells given back; used: cells ever taken */
    uint32_t free_group, used_groups;
    gbx_buffer_table table;
};

/* One tensor of a task on its way into the map. */
typedef struct access {
    gbx_region region; /* `first` is the offset in the buffer */
    uint64_t home;
    uint32_t buffer;
    uint32_t group; /* 0 when there is none yet */
    uint32_t hash;  /* of the group */
    uint32_t bucket;
    bool is_write;
    bool is_grid;
} access;

static inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* --- cells and the lists they are in --- */

static inline uint32_t cell_bucket(const gbx_tensor_map *map, uint32_t group_index, uint64_t home) {
    return (uint32_t)mix(group_index * UINT64_C(0xd6e8feb86659fd93), home) & map->bucket_mask;
}

static inline void list_cell(gbx_tensor_map *map, uint32_t index, int list) {
    cell *c = &map->cells[index];
    group *g = &map->groups[c->group];
    uint64_t end = c->first + g->form.span;
    bool is_only = g->counts[WRITERS] + g->counts[READERS] == 0;
    g->low = is_only || c->first < g->low ? c->first : g->low;
    g->high = is_only || end > g->high ? end : g->high;
    c->prev[list] = 0;
    c->next[list] = g->cells[list];
    if (c->next[list])
        map->cells[c->next[list]].prev[list] = index;
    g->cells[list] = index;
    ++g->counts[list];
}

static inline void unlist_cell(gbx_tensor_map *map, uint32_t index, int list) {
    cell *c = &map->cells[index];
    group *g = &map->groups[c->group];
    if (c->prev[list])
        map->cells[c->prev[list]].next[list] = c->next[list];
    else
        g->cells[list] = c->next[list];
    if (c->next[list])
        map->cells[c->next[list]].prev[list] = c->prev[list];
    --g->counts[list];
}

static inline uint32_t find_cell(const gbx_tensor_map *map, uint32_t bucket, uint32_t group_index,
                                 uint64_t first) {
    uint32_t index = map->cell_buckets[bucket];
    while (index && (map->cells[index].first != first || map->cells[index].group != group_index))
        index = map->cells[index].chain;
    return index;
}

static inline uint32_t make_cell(gbx_tensor_map *map, const access *a) {
    uint32_t index = map->free_cell;
    if (index)
        map->free_cell = map->cells[index].chain;
    else
        index = ++map->used_cells;
    cell *c = &map->cells[index];
    group *g = &map->groups[a->group];
    *c = (cell){.first = a->region.first, .home = a->home, .group = a->group};
    c->chain = map->cell_buckets[a->bucket];
    map->cell_buckets[a->bucket] = index;
    g->loose_count += c->home != c->first;
    return index;
}

/* Gives a cell back once it has neither writer nor readers. */
static inline void free_if_empty(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    if (c->writer || c->oldest_reader)
        return;
    uint32_t *link = &map->cell_buckets[cell_bucket(map, c->group, c->home)];
    while (*link != index)
        link = &map->cells[*link].chain;
    *link = c->chain;
    map->groups[c->group].loose_count -= c->home != c->first;
    c->group = 0;
    c->chain = map->free_cell;
    map->free_cell = index;
}

static inline void remove_writer(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    map->entries[c->writer].cell = 0;
    c->writer = 0;
    unlist_cell(map, index, WRITERS);
}

static inline void remove_readers(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    for (uint32_t e = c->oldest_reader; e; e = map->entries[e].next)
        map->entries[e].cell = 0;
    c->oldest_reader = c->youngest_reader = 0;
    unlist_cell(map, index, READERS);
}

static inline void remove_oldest_reader(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    c->oldest_reader = map->entries[c->oldest_reader].next;
    if (c->oldest_reader)
        return;
    c->youngest_reader = 0;
    unlist_cell(map, index, READERS);
}

#endif
