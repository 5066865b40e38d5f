/* The next reader of a range of addresses. */
#include <stdlib.h>

#include "analysis/accesses_internal.h"
#include "analysis/view_find.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "tensor/view.h"

enum { STEPS_MAX = 1 << 14 }; /* to remove what one output covers from a range */

typedef struct ranges {
    gbx_addresses *items;
    uint64_t count;
    uint64_t capacity;
} ranges;

/* A place, and its next use in a search for readers. */
typedef struct candidate {
    uint32_t place;
    uint32_t use;
    uint64_t task;
    bool is_write;
} candidate;

/* Kept from one search to the next only for its memory. */
typedef struct gbx_readers_scratch {
    candidate *candidates;
    uint64_t candidate_count;
    uint64_t candidate_capacity;
    ranges left; /* what nobody has overwritten yet */
    ranges kept;
    ranges pending;
} gbx_readers_scratch;

static const char searching[] = "looking for readers";

static gbx_status need_scratch(gbx_accesses *accesses) {
    if (!accesses->scratch)
        accesses->scratch = calloc(1, sizeof *accesses->scratch);
    return accesses->scratch ? NULL : gbx_fail_memory("%s", searching);
}

void gbx_readers_scratch_free(gbx_readers_scratch *scratch) {
    if (!scratch)
        return;
    free(scratch->candidates);
    free(scratch->left.items);
    free(scratch->kept.items);
    free(scratch->pending.items);
    free(scratch);
}

/* --- ranges --- */

/* The part of a range that lies in the extent of a place. */
static bool clip(const gbx_place *p, const gbx_addresses *r, gbx_addresses *out_part) {
    out_part->begin = r->begin > p->begin ? r->begin : p->begin;
    out_part->end = gbx_min_u64(r->end, p->end);
    return out_part->begin < out_part->end;
}

static gbx_status push(ranges *list, uint64_t begin, uint64_t end) {
    if (begin >= end)
        return NULL;
    GBX_TRY(gbx_array_reserve(&list->items, &list->capacity, list->count + 1, searching));
    list->items[list->count++] = (gbx_addresses){begin, end};
    return NULL;
}

/* --- candidates --- */

static bool is_read(const gbx_use *u) {
    return u->detail != GBX_ROLE_OUTPUT;
}

/* The use of a place by its next task from `number` on: a read, if that task has one. */
static candidate make_candidate(const gbx_accesses *accesses, uint64_t place_number,
                                uint32_t number) {
    const gbx_place *p = &accesses->places[place_number];
    uint64_t task = gbx_accesses_use_at(accesses, p, number)->task;
    uint32_t chosen = number;
    for (uint32_t i = number; p->form != GBX_FORM_PIECE && i < p->count; ++i) {
        const gbx_use *u = gbx_accesses_use_at(accesses, p, i);
        if (u->task != task)
            break;
        if (is_read(u)) {
            chosen = i;
            break;
        }
    }
    return (candidate){.place = (uint32_t)place_number,
                       .use = accesses->order[p->first + chosen],
                       .task = task,
                       .is_write = p->form != GBX_FORM_PIECE &&
                                   !is_read(gbx_accesses_use_at(accesses, p, chosen))};
}

/* `context` is the first use after the task. */
static gbx_status visit_candidate(gbx_accesses *accesses, uint64_t number, void *context) {
    const gbx_place *p = &accesses->places[number];
    uint32_t next = gbx_accesses_count_before(accesses, p, *(const uint64_t *)context);
    if (next == p->count)
        return NULL;
    GBX_TRY(gbx_array_reserve(&accesses->scratch->candidates,
                              &accesses->scratch->candidate_capacity,
                              accesses->scratch->candidate_count + 1, searching));
    accesses->scratch->candidates[accesses->scratch->candidate_count++] =
        make_candidate(accesses, number, next);
    return NULL;
}

/* By task, what it reads before what it writes. */
static int compare_candidates(const void *a, const void *b) {
    const candidate *left = a, *right = b;
    if (left->task != right->task)
        return left->task < right->task ? -1 : 1;
    if (left->is_write != right->is_write)
        return left->is_write ? 1 : -1;
    return (left->use > right->use) - (left->use < right->use);
}

static void sort_candidates(gbx_accesses *accesses, uint64_t first) {
    if (accesses->scratch->candidate_count > first)
        qsort(accesses->scratch->candidates + first, accesses->scratch->candidate_count - first,
              sizeof *accesses->scratch->candidates, compare_candidates);
}

/* --- reads and writes --- */

static gbx_status fill_result(gbx_accesses *accesses, const gbx_use *u, uint64_t address,
                              gbx_tensor_access *out_access) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(accesses->reader, u->entry, &result));
    if (u->detail >= result.piece_count)
        return gbx_accesses_fail_changed();
    const gbx_record_piece *piece = &result.pieces[u->detail];
    *out_access = (gbx_tensor_access){.is_result = true,
                                      .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                      .arg_index = result.arg_index,
                                      .role = (uint32_t)result.role,
                                      .name = result.name};
    gbx_record_view(result.record, &out_access->tensor);
    out_access->tensor.data = piece->address - piece->offset;
    out_access->element =
        gbx_tensor_element_at(&out_access->tensor, piece->offset + (address - piece->address));
    return NULL;
}

/* The lowest address of what is left that a piece of a result has. */
static gbx_status read_piece(gbx_accesses *accesses, const candidate *c,
                             gbx_tensor_access *out_access, bool *out_is_found) {
    const gbx_place *p = &accesses->places[c->place];
    uint64_t address = UINT64_MAX;
    gbx_addresses part;
    for (uint64_t i = 0; i < accesses->scratch->left.count; ++i)
        if (clip(p, &accesses->scratch->left.items[i], &part))
            address = gbx_min_u64(address, part.begin);
    *out_is_found = address != UINT64_MAX;
    return *out_is_found ? fill_result(accesses, &accesses->uses[c->use], address, out_access)
                         : NULL;
}

/* The first element of an argument that has a byte of what is left. */
static gbx_status read_argument(gbx_accesses *accesses, const candidate *c,
                                gbx_tensor_access *out_access, bool *out_is_found) {
    const gbx_place *p = &accesses->places[c->place];
    uint64_t element = UINT64_MAX, first;
    gbx_tensor view;
    gbx_addresses part;
    GBX_TRY(gbx_accesses_read_view(accesses, c->use, &view));
    for (uint64_t i = 0; i < accesses->scratch->left.count; ++i)
        if (clip(p, &accesses->scratch->left.items[i], &part) &&
            gbx_view_find_first(&view, part.begin, part.end, &first)) {
            element = gbx_min_u64(element, first);
            *out_is_found = true;
        }
    return *out_is_found
               ? gbx_accesses_fill(accesses, &accesses->uses[c->use], &view, element, out_access)
               : NULL;
}

/* Some bytes of the range that an output has, without a gap. */
static bool find_written(const gbx_place *p, const gbx_tensor *view, const gbx_addresses *r,
                         gbx_addresses *out_written) {
    gbx_view_element element;
    if (!clip(p, r, out_written))
        return false;
    if (p->form == GBX_FORM_WHOLE)
        return true;
    if (!gbx_view_find_bytes(view, out_written->begin, out_written->end, &element))
        return false;
    gbx_view_widen(view, &element);
    out_written->begin = view->data + (uint64_t)(element.begin_bit >> 3);
    out_written->end = view->data + (uint64_t)((element.end_bit + 7) >> 3);
    return true;
}

/* Removes what an output has from what is left. *out_is_done is false, and nothing changes, if that
 * takes too many steps. */
static gbx_status remove_written(gbx_accesses *accesses, const candidate *c, bool *out_is_done) {
    const gbx_place *p = &accesses->places[c->place];
    ranges *pending = &accesses->scratch->pending, *kept = &accesses->scratch->kept;
    gbx_tensor view = {0};
    if (p->form != GBX_FORM_WHOLE)
        GBX_TRY(gbx_accesses_read_view(accesses, c->use, &view));
    pending->count = kept->count = 0;
    for (uint64_t i = 0; i < accesses->scratch->left.count; ++i)
        GBX_TRY(push(pending, accesses->scratch->left.items[i].begin,
                     accesses->scratch->left.items[i].end));
    *out_is_done = false;
    for (uint64_t steps = 0; pending->count > 0; ++steps) {
        gbx_addresses r = pending->items[--pending->count], written;
        if (steps == STEPS_MAX + accesses->scratch->left.count)
            return NULL;
        if (!find_written(p, &view, &r, &written)) {
            GBX_TRY(push(kept, r.begin, r.end));
            continue;
        }
        GBX_TRY(push(pending, r.begin, written.begin));
        GBX_TRY(push(pending, written.end, r.end));
    }
    ranges old = accesses->scratch->left;
    accesses->scratch->left = *kept;
    *kept = old;
    *out_is_done = true;
    return NULL;
}

/* Replaces an output that could not be removed by the next use of its place that reads. */
static void skip_to_read(gbx_accesses *accesses, uint64_t at) {
    candidate *c = &accesses->scratch->candidates[at];
    const gbx_place *p = &accesses->places[c->place];
    uint32_t next = gbx_accesses_count_before(accesses, p, c->use);
    while (next < p->count && !is_read(gbx_accesses_use_at(accesses, p, next)))
        ++next;
    if (next < p->count)
        *c = make_candidate(accesses, c->place, next);
    else
        *c = accesses->scratch->candidates[--accesses->scratch->candidate_count];
    sort_candidates(accesses, at);
}

/* --- the search --- */

/* Each place counts once: after an output, nothing is left of it for a later task to read. */
static gbx_status find_reader(gbx_accesses *accesses, gbx_tensor_access *out_access,
                              bool *out_is_found) {
    sort_candidates(accesses, 0);
    for (uint64_t i = 0;
         i < accesses->scratch->candidate_count && accesses->scratch->left.count > 0;) {
        const candidate *c = &accesses->scratch->candidates[i];
        bool is_done = true;
        if (c->is_write)
            GBX_TRY(remove_written(accesses, c, &is_done));
        else if (accesses->places[c->place].form == GBX_FORM_PIECE)
            GBX_TRY(read_piece(accesses, c, out_access, out_is_found));
        else
            GBX_TRY(read_argument(accesses, c, out_access, out_is_found));
        if (*out_is_found)
            return NULL;
        if (is_done)
            ++i;
        else
            skip_to_read(accesses, i);
    }
    return NULL;
}

gbx_status gbx_accesses_next_read(gbx_accesses *accesses, uint64_t task, uint64_t address,
                                  uint64_t bytes, gbx_tensor_access *out_access,
                                  bool *out_is_found) {
    gbx_addresses wanted = {address, address + gbx_min_u64(bytes, UINT64_MAX - address)};
    uint64_t after = gbx_accesses_find_use(accesses, task, true);
    *out_is_found = false;
    GBX_TRY(need_scratch(accesses));
    accesses->scratch->candidate_count = accesses->scratch->left.count = 0;
    GBX_TRY(push(&accesses->scratch->left, wanted.begin, wanted.end));
    GBX_TRY(
        gbx_accesses_visit(accesses, 0, accesses->place_count, wanted, visit_candidate, &after));
    return find_reader(accesses, out_access, out_is_found);
}
