#include "analysis/downstream.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "analysis/memory_map.h"
#include "base/memory.h"
#include "tensor/view.h"

typedef struct downstream {
    gbx_entries *entries;
    const uint64_t *guilty; /* sorted */
    size_t guilty_count;
    gbx_memory_map *map; /* owner 1: downstream, or read upstream; 0: written again since */
    uint64_t *found;
    uint64_t found_count;
    uint64_t capacity;
    bool is_complete;
} downstream;

static int compare_numbers(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool is_guilty(const downstream *d, uint64_t task) {
    return bsearch(&task, d->guilty, d->guilty_count, sizeof task, compare_numbers) != NULL;
}

static bool is_downstream(const gbx_memory_map *map, const gbx_byte_run *run) {
    gbx_memory_range range;
    for (uint64_t at = run->begin; gbx_memory_map_find(map, at, &range) && range.begin < run->end;
         at = range.end)
        if (range.owner == 1)
            return true;
    return false;
}

/* False if its view cannot be followed, or there is nothing to follow. */
static bool begin(downstream *d, const gbx_record_tensor *record, gbx_byte_runs *out_runs) {
    gbx_tensor view;
    int64_t first, end;
    gbx_record_view(record, &view);
    for (uint32_t axis = 0; axis < view.ndims; ++axis)
        if (view.shape[axis] == 0)
            return false;
    if (view.data == 0 || !gbx_tensor_is_valid(&view, &first, &end)) {
        d->is_complete = false;
        return false;
    }
    gbx_byte_runs_begin(&view, out_runs);
    d->is_complete &= out_runs->left <= GBX_FOLLOWED_PIECES;
    return out_runs->left <= GBX_FOLLOWED_PIECES;
}

static bool reads_it(downstream *d, const gbx_record_tensor *record) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    if (gbx_memory_map_count(d->map) == 0 || !begin(d, record, &runs))
        return false;
    while (gbx_byte_runs_next(&runs, &run))
        if (is_downstream(d->map, &run))
            return true;
    return false;
}

static gbx_status write_it(downstream *d, const gbx_record_tensor *record, bool is_bad) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    if (!begin(d, record, &runs))
        return NULL;
    if (!gbx_memory_map_has_room(d->map, runs.left)) {
        d->is_complete = false;
        return NULL;
    }
    while (gbx_byte_runs_next(&runs, &run))
        if (is_bad || is_downstream(d->map, &run))
            GBX_TRY(gbx_memory_map_set(
                d->map, &(const gbx_memory_range){run.begin, run.end, is_bad, run.offset}));
    return NULL;
}

/* Inputs come before outputs. */
static gbx_status follow(downstream *d, uint64_t task) {
    bool is_bad = is_guilty(d, task), is_victim = false;
    gbx_entry entry;
    for (uint64_t i = gbx_entries_find(d->entries, task); i < gbx_entries_count(d->entries); ++i) {
        GBX_TRY(gbx_entries_at(d->entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (!entry.tensor)
            continue;
        if (entry.head->stage == GBX_STAGE_BEFORE)
            is_victim |= !is_bad && reads_it(d, entry.tensor);
        else
            GBX_TRY(write_it(d, entry.tensor, is_bad || is_victim));
    }
    if (!is_victim)
        return NULL;
    GBX_TRY(gbx_array_reserve(&d->found, &d->capacity, d->found_count + 1, "following memory"));
    d->found[d->found_count++] = task;
    return NULL;
}

static gbx_status follow_all(downstream *d, const gbx_task_graph *graph) {
    bool has_begun = false;
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &d->map));
    for (uint64_t i = 0; i < gbx_task_graph_count(graph); ++i) {
        uint64_t task = gbx_task_graph_at(graph, i)->task;
        has_begun |= is_guilty(d, task);
        if (has_begun)
            GBX_TRY(follow(d, task));
    }
    return NULL;
}

gbx_status gbx_downstream_find(gbx_entries *entries, const gbx_task_graph *graph,
                               const uint64_t *tasks, size_t count, uint64_t **out_tasks,
                               size_t *out_count, bool *out_is_complete) {
    downstream d = {.entries = entries, .guilty_count = count, .is_complete = true};
    uint64_t *guilty = malloc((count + 1) * sizeof *guilty);
    *out_tasks = NULL;
    *out_count = 0;
    if (!guilty)
        return gbx_fail_memory("following memory");
    if (count > 0)
        memcpy(guilty, tasks, count * sizeof *guilty);
    qsort(guilty, count, sizeof *guilty, compare_numbers);
    d.guilty = guilty;
    gbx_status status = follow_all(&d, graph);
    gbx_memory_map_destroy(d.map);
    free(guilty);
    if (status) {
        free(d.found);
        return status;
    }
    *out_tasks = d.found;
    *out_count = d.found_count;
    *out_is_complete = d.is_complete;
    return NULL;
}

/* --- upstream: the graph is walked backwards, with what has been read in the map --- */

typedef struct upstream {
    downstream d;
    gbx_upstream *found;
    size_t found_count;
    uint64_t capacity;
} upstream;

/* The first output of a task of which a byte is read later; UINT64_MAX for none. */
static gbx_status find_output(upstream *u, uint64_t task, uint64_t *out_entry) {
    gbx_entries *entries = u->d.entries;
    gbx_entry entry;
    *out_entry = UINT64_MAX;
    for (uint64_t i = gbx_entries_find(entries, task);
         i < gbx_entries_count(entries) && *out_entry == UINT64_MAX; ++i) {
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (entry.tensor && entry.head->stage != GBX_STAGE_BEFORE && reads_it(&u->d, entry.tensor))
            *out_entry = i;
    }
    return NULL;
}

/* Takes what a task left out of the map, or adds what it read. */
static gbx_status replace(upstream *u, uint64_t task, bool is_read) {
    gbx_entries *entries = u->d.entries;
    gbx_entry entry;
    for (uint64_t i = gbx_entries_find(entries, task); i < gbx_entries_count(entries); ++i) {
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (entry.tensor && (entry.head->stage == GBX_STAGE_BEFORE) == is_read)
            GBX_TRY(write_it(&u->d, entry.tensor, is_read));
    }
    return NULL;
}

static gbx_status walk_back(upstream *u, const gbx_task_graph *graph, uint64_t from) {
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &u->d.map));
    uint64_t place = gbx_task_graph_place(graph, from);
    GBX_TRY(replace(u, from, true));
    while (place != UINT64_MAX && place-- > 0) {
        uint64_t task = gbx_task_graph_at(graph, place)->task, entry;
        GBX_TRY(find_output(u, task, &entry));
        if (entry == UINT64_MAX)
            continue;
        GBX_TRY(gbx_array_reserve(&u->found, &u->capacity, u->found_count + 1, "following memory"));
        u->found[u->found_count++] = (gbx_upstream){task, entry};
        GBX_TRY(replace(u, task, false));
        GBX_TRY(replace(u, task, true));
    }
    return NULL;
}

gbx_status gbx_upstream_find(gbx_entries *entries, const gbx_task_graph *graph, uint64_t task,
                             gbx_upstream **out_tasks, size_t *out_count, bool *out_is_complete) {
    upstream u = {.d = {.entries = entries, .is_complete = true}};
    gbx_status status = walk_back(&u, graph, task);
    gbx_memory_map_destroy(u.d.map);
    if (status)
        free(u.found);
    *out_tasks = status ? NULL : u.found;
    *out_count = status ? 0 : u.found_count;
    *out_is_complete = u.d.is_complete;
    return status;
}
