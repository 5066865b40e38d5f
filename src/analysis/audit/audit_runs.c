#include "analysis/audit/internal.h"

#include <glassbox/tensor.h>

#include "base/checked.h"

/* Pieces that pairs of accesses are compared by, in all: about a minute. */
#define PAIR_PIECES_MAX (UINT64_C(1) << 26)

/* Leaves out dimensions of one element; what is left of the innermost ones that lie row-major is
 * the length of a run, in elements. */
static int64_t fold(gbx_tensor *view) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < view->ndims; ++i) {
        if (view->shape[i] == 1)
            continue;
        view->shape[kept] = view->shape[i];
        view->strides[kept++] = view->strides[i];
    }
    view->ndims = kept;
    int64_t length = 1;
    while (view->ndims > 0 && view->strides[view->ndims - 1] == length) {
        length *= view->shape[view->ndims - 1];
        --view->ndims;
    }
    return length;
}

static uint64_t count_outer(const gbx_tensor *folded) {
    uint64_t count = 1;
    bool is_exact = true;
    for (uint32_t i = 0; i < folded->ndims; ++i)
        is_exact &= gbx_checked_mul_u64(count, (uint64_t)folded->shape[i], &count);
    return is_exact ? count : UINT64_MAX;
}

static bool is_empty(const gbx_tensor *view) {
    for (uint32_t i = 0; i < view->ndims; ++i)
        if (view->shape[i] == 0)
            return true;
    return false;
}

uint64_t gbx_runs_count(const gbx_tensor *view) {
    gbx_tensor folded = *view;
    if (is_empty(view))
        return 0;
    fold(&folded);
    return count_outer(&folded);
}

void gbx_runs_begin(const gbx_tensor *view, gbx_runs *out_runs) {
    *out_runs = (gbx_runs){.view = *view, .bits = gbx_dtype_bits(view->dtype)};
    if (is_empty(view))
        return;
    out_runs->run_bits = (uint64_t)fold(&out_runs->view) * out_runs->bits;
    out_runs->left = count_outer(&out_runs->view);
    out_runs->position = view->start_offset * (int64_t)out_runs->bits;
}

/* The next index, row-major. */
static void advance(gbx_runs *runs) {
    gbx_tensor *view = &runs->view;
    for (uint32_t i = view->ndims; i-- > 0;) {
        int64_t step = view->strides[i] * (int64_t)runs->bits;
        runs->position += step;
        if (++runs->index[i] < view->shape[i])
            return;
        runs->position -= step * view->shape[i];
        runs->index[i] = 0;
    }
}

bool gbx_runs_next(gbx_runs *runs, gbx_run *out_run) {
    if (runs->left == 0)
        return false;
    /* Half a byte at either end counts as a whole one. */
    int64_t end_bit = runs->position + (int64_t)runs->run_bits;
    out_run->begin = runs->view.data + (uint64_t)(runs->position >> 3);
    out_run->end = runs->view.data + (uint64_t)((end_bit + 7) >> 3);
    out_run->offset = runs->next_offset;
    runs->next_offset += runs->run_bits / 8;
    --runs->left;
    advance(runs);
    return true;
}

gbx_status gbx_access_view(gbx_audit_state *state, const gbx_access *access, gbx_tensor *out_view) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(state->entries, access->entry, &entry));
    gbx_record_view(entry.tensor, out_view);
    return NULL;
}

gbx_status gbx_access_runs(gbx_audit_state *state, const gbx_access *access, gbx_runs *out_runs) {
    if (access->is_contiguous) {
        *out_runs = (gbx_runs){.view = {.data = access->begin},
                               .bits = 8,
                               .run_bits = (access->end - access->begin) * 8,
                               .left = access->begin < access->end};
        return NULL;
    }
    gbx_tensor view;
    GBX_TRY(gbx_access_view(state, access, &view));
    gbx_runs_begin(&view, out_runs);
    return NULL;
}

gbx_status gbx_access_fit(gbx_audit_state *state, const gbx_memory_map *map, gbx_access *access) {
    gbx_runs runs;
    if (!access->is_followed || access->is_contiguous)
        return NULL;
    GBX_TRY(gbx_access_runs(state, access, &runs));
    if (gbx_memory_map_has_room(map, runs.left))
        return NULL;
    access->is_followed = false;
    state->audit->counts.unfollowed += access->is_write;
    return NULL;
}

gbx_status gbx_access_map_pair(gbx_audit_state *state, const gbx_access *first,
                               const gbx_access *second, gbx_memory_map *map, bool *out_is_made) {
    gbx_runs runs, others;
    gbx_run run;
    *out_is_made = false;
    if (!first->is_followed || !second->is_followed)
        return NULL;
    GBX_TRY(gbx_access_runs(state, first, &runs));
    GBX_TRY(gbx_access_runs(state, second, &others));
    state->pair_pieces += runs.left + others.left;
    if (state->pair_pieces > PAIR_PIECES_MAX)
        return NULL;
    gbx_memory_map_clear(map);
    while (gbx_runs_next(&runs, &run)) {
        gbx_memory_range range = {run.begin, run.end, (uint64_t)(first - state->accesses),
                                  run.offset};
        GBX_TRY(gbx_memory_map_set(map, &range));
    }
    *out_is_made = true;
    return NULL;
}
