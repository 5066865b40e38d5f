#include "diagnose/taint.h"

#include <stdlib.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "base/memory.h"
#include "tensor/view.h"

static const char doing[] = "following memory";

/* False if nothing of the view is known to lie anywhere. */
static bool begin(const gbx_tensor *view, gbx_byte_runs *out_runs) {
    int64_t first, end;
    if (view->data == 0 || gbx_tensor_numel(view) == 0 || !gbx_tensor_is_valid(view, &first, &end))
        return false;
    gbx_byte_runs_begin(view, out_runs);
    return true;
}

bool gbx_taint_can_follow(const gbx_tensor *view) {
    gbx_byte_runs runs;
    return !begin(view, &runs) || runs.left <= GBX_FOLLOWED_PIECES;
}

uint64_t gbx_taint_of_range(const gbx_memory_map *map, uint64_t begin_at, uint64_t end) {
    gbx_memory_range found;
    uint64_t bits = 0;
    for (uint64_t at = begin_at;
         at < end && gbx_memory_map_find(map, at, &found) && found.begin < end; at = found.end)
        bits |= found.owner;
    return bits;
}

uint64_t gbx_taint_of_view(const gbx_memory_map *map, const gbx_tensor *view) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    uint64_t bits = 0;
    if (gbx_memory_map_count(map) == 0 || !begin(view, &runs))
        return 0;
    if (runs.left > GBX_FOLLOWED_PIECES) {
        int64_t first, end;
        gbx_tensor_extent(view, &first, &end);
        return gbx_taint_of_range(map, view->data + (uint64_t)first, view->data + (uint64_t)end);
    }
    while (gbx_byte_runs_next(&runs, &run))
        bits |= gbx_taint_of_range(map, run.begin, run.end);
    return bits;
}

bool gbx_taint_has_all(const gbx_memory_map *map, const gbx_tensor *view) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    gbx_memory_range found;
    if (!begin(view, &runs))
        return true;
    if (runs.left > GBX_FOLLOWED_PIECES)
        return false;
    while (gbx_byte_runs_next(&runs, &run))
        for (uint64_t at = run.begin; at < run.end; at = found.end)
            if (!gbx_memory_map_find(map, at, &found) || found.begin > at || found.owner == 0)
                return false;
    return true;
}

gbx_status gbx_taint_add(gbx_memory_map *map, uint64_t begin_at, uint64_t end, uint64_t bits) {
    gbx_memory_range found;
    for (uint64_t at = begin_at, next; at < end; at = next) {
        bool is_there = gbx_memory_map_find(map, at, &found) && found.begin < end;
        gbx_memory_range set = {at, end, bits, 0};
        if (is_there && found.begin > at) {
            set.end = found.begin;
        } else if (is_there) {
            set.end = found.end < end ? found.end : end;
            set.owner |= found.owner;
        }
        GBX_TRY(gbx_memory_map_set(map, &set));
        next = set.end;
    }
    return NULL;
}

gbx_status gbx_taint_add_view(gbx_memory_map *map, const gbx_tensor *view, uint64_t bits) {
    gbx_byte_runs runs;
    gbx_byte_run run;
    if (!begin(view, &runs) || runs.left > GBX_FOLLOWED_PIECES)
        return NULL;
    while (gbx_byte_runs_next(&runs, &run))
        GBX_TRY(gbx_taint_add(map, run.begin, run.end, bits));
    return NULL;
}

/* --- what a task leaves --- */

typedef struct retained {
    gbx_memory_range *items;
    uint64_t count;
    uint64_t capacity;
} retained;

static gbx_status retain(const gbx_memory_map *map, const gbx_address_range *range, retained *all) {
    gbx_memory_range found;
    for (uint64_t at = range->begin;
         at < range->end && gbx_memory_map_find(map, at, &found) && found.begin < range->end;
         at = found.end) {
        gbx_memory_range kept = {found.begin > at ? found.begin : at,
                                 found.end < range->end ? found.end : range->end, found.owner, 0};
        if (found.owner == 0)
            continue;
        GBX_TRY(gbx_array_reserve(&all->items, &all->capacity, all->count + 1, doing));
        all->items[all->count++] = kept;
    }
    return NULL;
}

static gbx_status write_runs(gbx_memory_map *map, gbx_byte_runs *runs, uint64_t bits,
                             const gbx_address_ranges *kept, const retained *all) {
    gbx_byte_run run;
    while (gbx_byte_runs_next(runs, &run))
        if (bits != 0 || gbx_taint_of_range(map, run.begin, run.end) != 0)
            GBX_TRY(
                gbx_memory_map_set(map, &(const gbx_memory_range){run.begin, run.end, bits, 0}));
    for (size_t i = 0; kept && bits != 0 && i < kept->count; ++i)
        GBX_TRY(gbx_memory_map_set(
            map, &(const gbx_memory_range){kept->items[i].begin, kept->items[i].end, 0, 0}));
    for (uint64_t i = 0; i < all->count; ++i)
        GBX_TRY(gbx_memory_map_set(map, &all->items[i]));
    return NULL;
}

gbx_status gbx_taint_write(gbx_memory_map *map, const gbx_tensor *view, uint64_t bits,
                           const gbx_address_ranges *kept) {
    gbx_byte_runs runs;
    retained all = {0};
    gbx_status status = NULL;
    if (!begin(view, &runs) || runs.left > GBX_FOLLOWED_PIECES)
        return NULL;
    for (size_t i = 0; kept && i < kept->count && !status; ++i)
        status = retain(map, &kept->items[i], &all);
    if (!status)
        status = write_runs(map, &runs, bits, kept, &all);
    free(all.items);
    return status;
}
