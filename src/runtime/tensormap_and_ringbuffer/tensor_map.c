/*
 * An access is an entry of a ring, in order of submission. Entries of the same region hang on one
 * cell: one writer, and a queue of readers whose oldest is the first to be retired. Cells are
 * hashed by group and home tile. A group is all cells of one form in one buffer; it lives as long
 * as the ring holds an entry that was made for it, so it is never freed while a task is added.
 * Index 0 means none everywhere; buffer 0 is the one of strays, whose base is address 0.
 */
#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

#include <string.h>

#include "runtime/tensormap_and_ringbuffer/region.h"

#define LINE_BYTES 64
#define STRAYS 0
#define FIRST_HEAP_BUFFER (1 + GBX_TENSOR_MAP_MAX_BUFFERS)
/* Up to so many cells are gone through without asking which tiles could matter. */
#define FEW_CELLS 4

enum { WRITERS = 0, READERS = 1, LISTS = 2 };

typedef struct entry {
    uint64_t task;
    uint32_t cell; /* 0 once it is covered by a later write */
    uint32_t group;
    uint32_t next; /* the next younger reader of the cell */
} entry;

typedef struct cell {
    _Alignas(LINE_BYTES) uint64_t first; /* offset in the buffer */
    uint64_t home;                       /* of its tile; `first` where the group is no grid */
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

typedef struct buffer {
    uint64_t base;
    uint64_t end;
    uint32_t groups; /* the first of the list */
    uint32_t recent; /* the group that was found last */
} buffer;

struct gbx_tensor_map {
    entry *entries; /* ring; from `oldest` on `entry_count` are used */
    cell *cells;
    group *groups;
    buffer *buffers; /* strays, fixed ones, ring of the heap's */
    uint32_t *cell_buckets;
    uint32_t *group_buckets;
    uint32_t *address_cache; /* by tensor.data: the buffer that it was found in */
    uint32_t bucket_mask;    /* of both hash tables */
    uint32_t cache_shift;
    uint32_t capacity;
    uint32_t oldest;
    uint32_t entry_count;
    uint32_t free_cell, used_cells; /* a list of those given back, then those never used */
    uint32_t free_group, used_groups;
    uint32_t heap_capacity, heap_oldest, heap_count;
    uint64_t heap_base, heap_bytes;
    uint32_t fixed_count;
    uint32_t fixed[GBX_TENSOR_MAP_MAX_BUFFERS]; /* numbers of buffers by ascending base */
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

typedef struct lookup {
    gbx_tensor_map *map;
    const access *access;
    uint64_t first;  /* of the access: an offset, or where it is foreign an address */
    uint64_t origin; /* what makes the same of a cell's offset */
    bool is_foreign; /* the access is kept in another buffer than the one that is looked at */
    bool forgets;    /* the access will be kept: what it covers goes */
    gbx_tensor_map_found *found;
    void *context;
} lookup;

/* --- memory --- */

static uint32_t power_of_two_from(uint32_t value) {
    uint32_t power = 1;
    while (power < value && power < UINT32_C(1) << 31)
        power *= 2;
    return power;
}

static uint32_t bucket_count(uint32_t access_capacity) {
    return power_of_two_from(access_capacity);
}

static uint32_t cache_count(uint32_t heap_capacity) {
    return 2 * power_of_two_from(heap_capacity + GBX_TENSOR_MAP_MAX_BUFFERS);
}

/* Takes the next part of the block; with `memory` NULL it only counts. */
static void *take(char *memory, size_t *used, size_t count, size_t bytes) {
    void *part = memory ? memory + *used : NULL;
    *used += (count * bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return part;
}

static size_t lay_out(gbx_tensor_map *map, char *memory, uint32_t access_capacity,
                      uint32_t heap_capacity) {
    size_t used = 0, capacity = access_capacity;
    (void)take(memory, &used, 1, sizeof *map);
    map->cell_buckets = take(memory, &used, bucket_count(access_capacity), sizeof(uint32_t));
    map->group_buckets = take(memory, &used, bucket_count(access_capacity), sizeof(uint32_t));
    map->address_cache = take(memory, &used, cache_count(heap_capacity), sizeof(uint32_t));
    map->buffers = take(memory, &used, FIRST_HEAP_BUFFER + (size_t)heap_capacity, sizeof(buffer));
    map->entries = take(memory, &used, capacity + 1, sizeof(entry));
    map->cells = take(memory, &used, capacity + 1, sizeof(cell));
    map->groups = take(memory, &used, capacity + 1, sizeof(group));
    return used;
}

size_t gbx_tensor_map_bytes(uint32_t access_capacity, uint32_t heap_capacity) {
    gbx_tensor_map map;
    return lay_out(&map, NULL, access_capacity, heap_capacity);
}

gbx_tensor_map *gbx_tensor_map_init(void *memory, uint32_t access_capacity,
                                    uint32_t heap_capacity) {
    gbx_tensor_map *map = memory;
    lay_out(map, memory, access_capacity, heap_capacity);
    map->bucket_mask = bucket_count(access_capacity) - 1;
    map->cache_shift = 64 - (uint32_t)__builtin_ctz(cache_count(heap_capacity));
    map->capacity = access_capacity;
    map->heap_capacity = heap_capacity;
    map->oldest = 1;
    map->buffers[STRAYS].end = UINT64_MAX;
    return map;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* --- cells and the lists they are in --- */

static uint32_t cell_bucket(const gbx_tensor_map *map, uint32_t group_index, uint64_t home) {
    return (uint32_t)mix(group_index * UINT64_C(0xd6e8feb86659fd93), home) & map->bucket_mask;
}

static void list_cell(gbx_tensor_map *map, uint32_t index, int list) {
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

static void unlist_cell(gbx_tensor_map *map, uint32_t index, int list) {
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

static uint32_t find_cell(const gbx_tensor_map *map, uint32_t bucket, uint32_t group_index,
                          uint64_t first) {
    uint32_t index = map->cell_buckets[bucket];
    while (index && (map->cells[index].first != first || map->cells[index].group != group_index))
        index = map->cells[index].chain;
    return index;
}

static uint32_t make_cell(gbx_tensor_map *map, const access *a) {
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
static void free_if_empty(gbx_tensor_map *map, uint32_t index) {
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

static void remove_writer(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    map->entries[c->writer].cell = 0;
    c->writer = 0;
    unlist_cell(map, index, WRITERS);
}

static void remove_readers(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    for (uint32_t e = c->oldest_reader; e; e = map->entries[e].next)
        map->entries[e].cell = 0;
    c->oldest_reader = c->youngest_reader = 0;
    unlist_cell(map, index, READERS);
}

static void remove_oldest_reader(gbx_tensor_map *map, uint32_t index) {
    cell *c = &map->cells[index];
    c->oldest_reader = map->entries[c->oldest_reader].next;
    if (c->oldest_reader)
        return;
    c->youngest_reader = 0;
    unlist_cell(map, index, READERS);
}

/* --- groups --- */

static uint32_t group_hash(const access *a) {
    const gbx_region_form *form = &a->region.form;
    uint64_t hash = mix(a->buffer * UINT64_C(4) + a->is_grid, form->run);
    for (uint32_t k = 0; k < form->dim_count; ++k)
        hash = mix(mix(hash, form->dims[k].stride), form->dims[k].count);
    return (uint32_t)hash;
}

static bool is_group_of(const group *g, const access *a) {
    return g->buffer == a->buffer && g->is_grid == a->is_grid &&
           gbx_region_form_equals(&g->form, &a->region.form);
}

static uint32_t find_group(gbx_tensor_map *map, access *a) {
    uint32_t index = map->buffers[a->buffer].recent;
    if (index && is_group_of(&map->groups[index], a))
        return index;
    a->hash = group_hash(a);
    index = map->group_buckets[a->hash & map->bucket_mask];
    while (index && !(map->groups[index].hash == a->hash && is_group_of(&map->groups[index], a)))
        index = map->groups[index].chain;
    if (index)
        map->buffers[a->buffer].recent = index;
    return index;
}

static uint32_t make_group(gbx_tensor_map *map, const access *a) {
    uint32_t index = map->free_group;
    if (index)
        map->free_group = map->groups[index].chain;
    else
        index = ++map->used_groups;
    group *g = &map->groups[index];
    buffer *b = &map->buffers[a->buffer];
    uint32_t *bucket = &map->group_buckets[a->hash & map->bucket_mask];
    const gbx_region_form *form = &a->region.form;
    memset(g, 0, offsetof(group, form));
    memcpy(&g->form, form, offsetof(gbx_region_form, dims) + form->dim_count * sizeof *form->dims);
    g->buffer = a->buffer;
    g->hash = a->hash;
    g->is_grid = a->is_grid;
    g->chain = *bucket;
    *bucket = index;
    g->next = b->groups;
    if (g->next)
        map->groups[g->next].prev = index;
    b->groups = b->recent = index;
    return index;
}

/* Takes a group out of its buffer and the hash table. */
static void detach_group(gbx_tensor_map *map, uint32_t index) {
    group *g = &map->groups[index];
    buffer *b = &map->buffers[g->buffer];
    uint32_t *link = &map->group_buckets[g->hash & map->bucket_mask];
    while (*link != index)
        link = &map->groups[*link].chain;
    *link = g->chain;
    if (g->prev)
        map->groups[g->prev].next = g->next;
    else
        b->groups = g->next;
    if (g->next)
        map->groups[g->next].prev = g->prev;
    if (b->recent == index)
        b->recent = b->groups;
    g->is_detached = true;
}

static void drop_entry_of_group(gbx_tensor_map *map, uint32_t index) {
    group *g = &map->groups[index];
    if (--g->entry_count > 0)
        return;
    if (!g->is_detached)
        detach_group(map, index);
    g->chain = map->free_group;
    map->free_group = index;
}

static void forget_cells(gbx_tensor_map *map, group *g) {
    for (uint32_t c; (c = g->cells[WRITERS]) != 0; free_if_empty(map, c))
        remove_writer(map, c);
    for (uint32_t c; (c = g->cells[READERS]) != 0; free_if_empty(map, c))
        remove_readers(map, c);
}

/* --- buffers --- */

static void forget_buffer(gbx_tensor_map *map, buffer *b) {
    while (b->groups) {
        forget_cells(map, &map->groups[b->groups]);
        detach_group(map, b->groups);
    }
    *b = (buffer){0};
}

uint32_t gbx_tensor_map_add_buffer(gbx_tensor_map *map, uint64_t base, uint64_t bytes) {
    uint32_t number = 1, at = map->fixed_count;
    if (bytes == 0 || at == GBX_TENSOR_MAP_MAX_BUFFERS)
        return 0;
    while (map->buffers[number].end)
        ++number;
    map->buffers[number] = (buffer){.base = base, .end = base + bytes};
    for (; at > 0 && map->buffers[map->fixed[at - 1]].base > base; --at)
        map->fixed[at] = map->fixed[at - 1];
    map->fixed[at] = number;
    ++map->fixed_count;
    return number;
}

void gbx_tensor_map_drop_buffer(gbx_tensor_map *map, uint32_t number) {
    uint32_t at = 0;
    while (at < map->fixed_count && map->fixed[at] != number)
        ++at;
    if (at == map->fixed_count)
        return;
    forget_buffer(map, &map->buffers[number]);
    for (--map->fixed_count; at < map->fixed_count; ++at)
        map->fixed[at] = map->fixed[at + 1];
}

void gbx_tensor_map_set_heap(gbx_tensor_map *map, uint64_t base, uint64_t bytes) {
    map->heap_base = base;
    map->heap_bytes = bytes;
}

/* The number of the allocation that is the n-th oldest. */
static uint32_t heap_buffer(const gbx_tensor_map *map, uint32_t n) {
    uint32_t at = map->heap_oldest + n;
    return FIRST_HEAP_BUFFER + (at < map->heap_capacity ? at : at - map->heap_capacity);
}

static uint32_t *cache_slot(const gbx_tensor_map *map, uint64_t data) {
    return &map->address_cache[data * UINT64_C(0x9e3779b97f4a7c15) >> map->cache_shift];
}

bool gbx_tensor_map_heap_push(gbx_tensor_map *map, uint64_t address, uint64_t bytes) {
    if (map->heap_count == map->heap_capacity)
        return false;
    uint32_t number = heap_buffer(map, map->heap_count++);
    map->buffers[number] = (buffer){.base = address, .end = address + bytes};
    *cache_slot(map, address) = number;
    return true;
}

void gbx_tensor_map_heap_pop(gbx_tensor_map *map) {
    if (map->heap_count == 0)
        return;
    forget_buffer(map, &map->buffers[heap_buffer(map, 0)]);
    --map->heap_count;
    if (++map->heap_oldest == map->heap_capacity)
        map->heap_oldest = 0;
}

gbx_tensor gbx_tensor_map_heap_oldest(const gbx_tensor_map *map) {
    const buffer *b = &map->buffers[heap_buffer(map, 0)];
    gbx_tensor tensor = {.data = b->base, .dtype = GBX_UINT8, .ndims = 1};
    tensor.shape[0] = (int64_t)(b->end - b->base);
    tensor.strides[0] = 1;
    return tensor;
}

/* The last buffer that begins at or before an address. */
static uint32_t search_fixed(const gbx_tensor_map *map, uint64_t address) {
    uint32_t low = 0, high = map->fixed_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (map->buffers[map->fixed[middle]].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? map->fixed[low - 1] : STRAYS;
}

/* Likewise of the heap: counted from the oldest allocation on, round the heap, bases ascend. */
static uint32_t search_heap(const gbx_tensor_map *map, uint64_t address) {
    uint64_t oldest = map->heap_count ? map->buffers[heap_buffer(map, 0)].base : 0;
    uint64_t wanted = address - oldest + (address < oldest ? map->heap_bytes : 0);
    uint32_t low = 0, high = map->heap_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t base = map->buffers[heap_buffer(map, middle)].base;
        if (base - oldest + (base < oldest ? map->heap_bytes : 0) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? heap_buffer(map, low - 1) : STRAYS;
}

/* The buffer that holds all of [first, end), or that of strays. */
static uint32_t find_buffer(gbx_tensor_map *map, uint64_t data, uint64_t first, uint64_t end) {
    uint32_t *slot = cache_slot(map, data);
    const buffer *cached = &map->buffers[*slot];
    if (*slot && first >= cached->base && end <= cached->end)
        return *slot;
    bool is_heap = first - map->heap_base < map->heap_bytes;
    uint32_t number = is_heap ? search_heap(map, first) : search_fixed(map, first);
    if (first < map->buffers[number].base || end > map->buffers[number].end)
        return STRAYS;
    *slot = number;
    return number;
}

/* --- looking up --- */

static void report_writer(const lookup *find, const cell *c) {
    find->found(find->context, find->map->entries[c->writer].task);
}

static void report_readers(const lookup *find, const cell *c) {
    const entry *entries = find->map->entries;
    for (uint32_t e = c->oldest_reader; e; e = entries[e].next)
        find->found(find->context, entries[e].task);
}

static bool is_overlapping(const lookup *find, const group *g, const cell *c) {
    return gbx_region_overlaps(find->first, &find->access->region.form, find->origin + c->first,
                               &g->form);
}

/* Whether the access will take the place of all that hangs on a cell which it overlaps. */
static bool covers(const lookup *find, const group *g, const cell *c) {
    const access *a = find->access;
    uint64_t first = find->origin + c->first;
    if (!find->forgets || !a->is_write)
        return false;
    if (a->region.form.dim_count == 0 && find->first <= first &&
        first + g->form.span <= find->first + a->region.form.span)
        return true;
    return !find->is_foreign && c->group == a->group && c->first == find->first;
}

/* One list of a cell that the access overlaps: what counts for it, and what it puts an end to. */
static void visit_list(const lookup *find, const group *g, uint32_t index, int list) {
    const cell *c = &find->map->cells[index];
    if (list == WRITERS)
        report_writer(find, c);
    else
        report_readers(find, c);
    if (!covers(find, g, c))
        return;
    if (list == WRITERS)
        remove_writer(find->map, index);
    else
        remove_readers(find->map, index);
    free_if_empty(find->map, index);
}

static void visit_cell(const lookup *find, const group *g, uint32_t index) {
    const cell *c = &find->map->cells[index];
    bool has_readers = c->oldest_reader && find->access->is_write;
    if ((!c->writer && !has_readers) || !is_overlapping(find, g, c))
        return;
    /* Readers first: a cell with a writer is still there then. */
    bool has_writer = c->writer != 0;
    if (has_readers)
        visit_list(find, g, index, READERS);
    if (has_writer)
        visit_list(find, g, index, WRITERS);
}

static void visit_home(const lookup *find, uint32_t group_index, uint64_t home) {
    gbx_tensor_map *map = find->map;
    const group *g = &map->groups[group_index];
    uint32_t index = map->cell_buckets[cell_bucket(map, group_index, home)];
    while (index) {
        const cell *c = &map->cells[index];
        uint32_t next = c->chain;
        if (c->group == group_index && c->home == home)
            visit_cell(find, g, index);
        index = next;
    }
}

static void visit_tiles(const lookup *find, uint32_t group_index, const gbx_region_tiles *tiles) {
    uint64_t at[GBX_MAX_DIMS + 1], home = 0;
    for (uint32_t level = 0; level < tiles->level_count; ++level) {
        at[level] = tiles->low[level];
        home += at[level] * tiles->bytes[level];
    }
    for (;;) {
        visit_home(find, group_index, home);
        uint32_t level = 0;
        for (; level < tiles->level_count && at[level] == tiles->high[level]; ++level) {
            home -= (at[level] - tiles->low[level]) * tiles->bytes[level];
            at[level] = tiles->low[level];
        }
        if (level == tiles->level_count)
            return;
        ++at[level];
        home += tiles->bytes[level];
    }
}

static void scan_list(const lookup *find, const group *g, int list) {
    const cell *cells = find->map->cells;
    for (uint32_t index = g->cells[list], next; index; index = next) {
        next = cells[index].next[list];
        if (is_overlapping(find, g, &cells[index]))
            visit_list(find, g, index, list);
    }
}

/* All cells of a group that the access may overlap. */
static void visit_group(const lookup *find, uint32_t group_index) {
    const group *g = &find->map->groups[group_index];
    const access *a = find->access;
    uint32_t count = g->counts[WRITERS] + (a->is_write ? g->counts[READERS] : 0);
    gbx_region_tiles tiles;
    if (count == 0)
        return;
    if (!find->is_foreign &&
        (g->high <= find->first || find->first + a->region.form.span <= g->low))
        return;
    if (count > FEW_CELLS && g->is_grid && !find->is_foreign &&
        gbx_region_find_tiles(&g->form, g->loose_count == 0, find->first, &a->region.form,
                              count / 2, &tiles)) {
        visit_tiles(find, group_index, &tiles);
        return;
    }
    scan_list(find, g, WRITERS);
    if (a->is_write)
        scan_list(find, g, READERS);
}

/* The group of the access's own form. In a grid of tiles, its own tile is the only one that counts;
 * a write leaves the cell and its place in the list to the entry that is to come. */
static void visit_own_group(const lookup *find) {
    gbx_tensor_map *map = find->map;
    const access *a = find->access;
    if (!a->is_grid || a->home != a->region.first || map->groups[a->group].loose_count > 0) {
        visit_group(find, a->group);
        return;
    }
    uint32_t index = find_cell(map, a->bucket, a->group, a->region.first);
    if (index == 0)
        return;
    const cell *c = &map->cells[index];
    if (c->writer)
        report_writer(find, c);
    if (!a->is_write || !c->oldest_reader)
        return;
    report_readers(find, c);
    if (find->forgets)
        remove_readers(map, index);
}

static void visit_buffer(lookup *find, uint32_t number) {
    gbx_tensor_map *map = find->map;
    const access *a = find->access;
    find->is_foreign = number != a->buffer;
    find->first = a->region.first + (find->is_foreign ? map->buffers[a->buffer].base : 0);
    find->origin = find->is_foreign ? map->buffers[number].base : 0;
    for (uint32_t index = map->buffers[number].groups; index; index = map->groups[index].next)
        if (index != a->group)
            visit_group(find, index);
}

/* Every buffer that a stray reaches into. */
static void visit_all_buffers(lookup *find) {
    const gbx_tensor_map *map = find->map;
    uint64_t first = find->access->region.first;
    uint64_t end = first + find->access->region.form.span;
    for (uint32_t k = 0; k < map->fixed_count + map->heap_count; ++k) {
        uint32_t number =
            k < map->fixed_count ? map->fixed[k] : heap_buffer(map, k - map->fixed_count);
        if (first < map->buffers[number].end && map->buffers[number].base < end)
            visit_buffer(find, number);
    }
}

static void find_dependencies(lookup *find) {
    gbx_tensor_map *map = find->map;
    const access *a = find->access;
    find->first = a->region.first;
    find->origin = 0;
    find->is_foreign = false;
    if (a->group)
        visit_own_group(find);
    if (map->buffers[a->buffer].groups != a->group || map->groups[a->group].next)
        visit_buffer(find, a->buffer);
    if (a->buffer == STRAYS)
        visit_all_buffers(find);
    else if (map->buffers[STRAYS].groups)
        visit_buffer(find, STRAYS);
}

/* --- tasks --- */

/* False when the tensor is empty. */
static bool resolve(gbx_tensor_map *map, const gbx_tensor *tensor, bool is_write, access *a) {
    if (!gbx_region_of_tensor(tensor, &a->region))
        return false;
    uint64_t first = a->region.first;
    a->is_write = is_write;
    a->buffer = find_buffer(map, tensor->data, first, first + a->region.form.span);
    a->region.first = first - map->buffers[a->buffer].base;
    a->is_grid = gbx_region_place(&a->region.form, a->region.first, &a->home);
    if (!a->is_grid)
        a->home = a->region.first;
    a->group = find_group(map, a);
    if (a->group) {
        a->bucket = cell_bucket(map, a->group, a->home);
        __builtin_prefetch(&map->cell_buckets[a->bucket]);
    }
    return true;
}

static uint32_t make_entry(gbx_tensor_map *map, uint64_t task, uint32_t group_index) {
    uint32_t index = map->oldest + map->entry_count++;
    if (index > map->capacity)
        index -= map->capacity;
    map->entries[index] = (entry){.task = task, .group = group_index};
    ++map->groups[group_index].entry_count;
    return index;
}

static void keep_writer(gbx_tensor_map *map, uint32_t entry_index, uint32_t cell_index) {
    cell *c = &map->cells[cell_index];
    if (c->writer)
        map->entries[c->writer].cell = 0;
    else
        list_cell(map, cell_index, WRITERS);
    c->writer = entry_index;
}

static void keep_reader(gbx_tensor_map *map, uint32_t entry_index, uint32_t cell_index) {
    cell *c = &map->cells[cell_index];
    if (c->youngest_reader)
        map->entries[c->youngest_reader].next = entry_index;
    else
        c->oldest_reader = entry_index;
    if (c->oldest_reader == entry_index)
        list_cell(map, cell_index, READERS);
    c->youngest_reader = entry_index;
}

static void keep(gbx_tensor_map *map, access *a, uint64_t task) {
    if (!a->group) {
        /* Another tensor of the task may have made it meanwhile. */
        a->group = find_group(map, a);
        if (!a->group)
            a->group = make_group(map, a);
        a->bucket = cell_bucket(map, a->group, a->home);
    }
    uint32_t cell_index = find_cell(map, a->bucket, a->group, a->region.first);
    if (!cell_index)
        cell_index = make_cell(map, a);
    uint32_t entry_index = make_entry(map, task, a->group);
    map->entries[entry_index].cell = cell_index;
    if (a->is_write)
        keep_writer(map, entry_index, cell_index);
    else
        keep_reader(map, entry_index, cell_index);
}

void gbx_tensor_map_add_task(gbx_tensor_map *map, uint64_t task, const gbx_tensor *const *tensors,
                             const uint8_t *roles, uint32_t count, gbx_tensor_map_found *found,
                             void *context) {
    access accesses[GBX_MAX_TENSOR_ARGS];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count; ++k)
        kept += resolve(map, tensors[k], roles[k] != GBX_ROLE_INPUT, &accesses[kept]);
    for (uint32_t k = 0; k < kept; ++k) {
        lookup find = {.map = map, .access = &accesses[k], .forgets = true};
        find.found = found;
        find.context = context;
        find_dependencies(&find);
    }
    for (uint32_t k = 0; k < kept; ++k)
        keep(map, &accesses[k], task);
}

void gbx_tensor_map_find(gbx_tensor_map *map, const gbx_tensor *tensor, bool is_write,
                         gbx_tensor_map_found *found, void *context) {
    access a;
    lookup find = {.map = map, .access = &a, .found = found, .context = context};
    if (resolve(map, tensor, is_write, &a))
        find_dependencies(&find);
}

uint32_t gbx_tensor_map_room(const gbx_tensor_map *map) {
    return map->capacity - map->entry_count;
}

void gbx_tensor_map_retire(gbx_tensor_map *map, uint64_t task) {
    while (map->entry_count > 0 && map->entries[map->oldest].task == task) {
        uint32_t index = map->oldest;
        const entry *e = &map->entries[index];
        uint32_t c = e->cell;
        if (c) {
            if (map->cells[c].writer == index)
                remove_writer(map, c);
            else
                remove_oldest_reader(map, c);
            free_if_empty(map, c);
        }
        drop_entry_of_group(map, e->group);
        map->oldest = index == map->capacity ? 1 : index + 1;
        --map->entry_count;
    }
}
