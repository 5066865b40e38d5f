/*
 * How a task is looked up and kept. A group is all cells of one form in one buffer. It lives as
 * long as the ring holds an entry that was made for it, and so is never freed while a task is
 * added.
 */
#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

#include <string.h>

#include "base/numbers.h"
#include "runtime/tensormap_and_ringbuffer/tensor_map_cells.h"

/* Up to this many cells are compared directly, without finding the tiles first. */
#define FEW_CELLS 4

typedef struct lookup {
    gbx_tensor_map *map;
    const access *access;
    uint64_t first;  /* of the access: an offset, or an address if it is foreign */
    uint64_t origin; /* added to a cell's offset, makes it comparable to `first` */
    bool is_foreign; /* the access is kept in another buffer than this one */
    bool forgets;    /* the access will be kept: forget what it covers */
    gbx_tensor_map_found *found;
    void *context;
} lookup;

/* --- memory --- */

static uint32_t cache_count(uint32_t heap_capacity) {
    return 2 * gbx_power_of_two_from(heap_capacity + GBX_TENSOR_MAP_MAX_BUFFERS);
}

/* Takes the next part of the block; with `memory` NULL it only counts. */
static void *take(char *memory, size_t *used, size_t count, size_t bytes) {
    void *part = memory ? memory + *used : NULL;
    *used += (count * bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return part;
}

static size_t lay_out(gbx_tensor_map *map, char *memory, uint32_t access_capacity,
                      uint32_t heap_capacity) {
    size_t used = 0, capacity = access_capacity, buckets = gbx_power_of_two_from(access_capacity);
    (void)take(memory, &used, 1, sizeof *map);
    map->cell_buckets = take(memory, &used, buckets, sizeof(uint32_t));
    map->group_buckets = take(memory, &used, buckets, sizeof(uint32_t));
    map->table.address_cache = take(memory, &used, cache_count(heap_capacity), sizeof(uint32_t));
    map->table.buffers =
        take(memory, &used, GBX_FIRST_HEAP_BUFFER + (size_t)heap_capacity, sizeof(gbx_buffer));
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
    map->bucket_mask = gbx_power_of_two_from(access_capacity) - 1;
    map->capacity = access_capacity;
    map->oldest = 1;
    gbx_buffer_table_init(&map->table, heap_capacity, cache_count(heap_capacity));
    return map;
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
    uint32_t index = map->table.buffers[a->buffer].recent;
    if (index && is_group_of(&map->groups[index], a))
        return index;
    a->hash = group_hash(a);
    index = map->group_buckets[a->hash & map->bucket_mask];
    while (index && !(map->groups[index].hash == a->hash && is_group_of(&map->groups[index], a)))
        index = map->groups[index].chain;
    if (index)
        map->table.buffers[a->buffer].recent = index;
    return index;
}

static uint32_t make_group(gbx_tensor_map *map, const access *a) {
    uint32_t index = map->free_group;
    if (index)
        map->free_group = map->groups[index].chain;
    else
        index = ++map->used_groups;
    group *g = &map->groups[index];
    gbx_buffer *b = &map->table.buffers[a->buffer];
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
    gbx_buffer *b = &map->table.buffers[g->buffer];
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

static void forget_groups(gbx_tensor_map *map, uint32_t number) {
    const gbx_buffer *b = &map->table.buffers[number];
    while (b->groups) {
        forget_cells(map, &map->groups[b->groups]);
        detach_group(map, b->groups);
    }
}

bool gbx_tensor_map_add_buffer(gbx_tensor_map *map, uint64_t base, uint64_t bytes) {
    return gbx_buffer_table_add(&map->table, base, bytes);
}

void gbx_tensor_map_set_heap(gbx_tensor_map *map, uint64_t base, uint64_t bytes) {
    map->table.heap_base = base;
    map->table.heap_bytes = bytes;
}

bool gbx_tensor_map_heap_push(gbx_tensor_map *map, uint64_t address, uint64_t bytes) {
    return gbx_buffer_table_push(&map->table, address, bytes);
}

void gbx_tensor_map_heap_pop(gbx_tensor_map *map) {
    if (map->table.heap_count > 0)
        forget_groups(map, gbx_buffer_table_pop(&map->table));
}

gbx_tensor gbx_tensor_map_heap_oldest(const gbx_tensor_map *map) {
    const gbx_buffer *b = &map->table.buffers[gbx_buffer_table_heap(&map->table, 0)];
    gbx_tensor tensor = {.data = b->base, .dtype = GBX_UINT8, .ndims = 1};
    tensor.shape[0] = (int64_t)(b->end - b->base);
    tensor.strides[0] = 1;
    return tensor;
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

/* Whether the access replaces all accesses of a cell that it overlaps. */
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

/* One list of a cell that the access overlaps: reports it, and removes what the access covers. */
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
    /* Readers first: the cell stays as long as it has a writer. */
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

/* The group of the access's own form. In a grid of tiles only its own tile counts; a write keeps
 * the cell, and its place in the list, for the entry that follows. */
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
    find->first = a->region.first + (find->is_foreign ? map->table.buffers[a->buffer].base : 0);
    find->origin = find->is_foreign ? map->table.buffers[number].base : 0;
    for (uint32_t index = map->table.buffers[number].groups; index; index = map->groups[index].next)
        if (index != a->group)
            visit_group(find, index);
}

/* Every buffer that a stray reaches into. */
static void visit_all_buffers(lookup *find) {
    const gbx_tensor_map *map = find->map;
    uint64_t first = find->access->region.first;
    uint64_t end = first + find->access->region.form.span;
    for (uint32_t k = 0; k < map->table.fixed_count + map->table.heap_count; ++k) {
        uint32_t number = k < map->table.fixed_count
                              ? map->table.fixed[k]
                              : gbx_buffer_table_heap(&map->table, k - map->table.fixed_count);
        if (first < map->table.buffers[number].end && map->table.buffers[number].base < end)
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
    if (map->table.buffers[a->buffer].groups != a->group || map->groups[a->group].next)
        visit_buffer(find, a->buffer);
    if (a->buffer == GBX_STRAYS)
        visit_all_buffers(find);
    else if (map->table.buffers[GBX_STRAYS].groups)
        visit_buffer(find, GBX_STRAYS);
}

/* --- tasks --- */

/* False when the tensor is empty. */
static bool resolve(gbx_tensor_map *map, const gbx_tensor *tensor, bool is_write, access *a) {
    if (!gbx_region_of_tensor(tensor, &a->region))
        return false;
    uint64_t first = a->region.first;
    a->is_write = is_write;
    a->buffer =
        gbx_buffer_table_find(&map->table, tensor->data, first, first + a->region.form.span);
    a->region.first = first - map->table.buffers[a->buffer].base;
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
        /* Another tensor of the task may have made the group meanwhile. */
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
