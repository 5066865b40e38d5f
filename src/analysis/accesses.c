/*
 * Arguments with the same view share a place, and each place lists its uses in the order of tasks.
 * There are far fewer places than arguments, because buffers are used again and again; a query
 * looks at each place once, however often it was used. Places are sorted by their beginning, as a
 * balanced tree in an array: the root of [low, high) is in the middle.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/accesses_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "tensor/view.h"

#define REACH_MAX (INT64_C(1) << 56)       /* so that offsets in bits fit */
#define USES_MAX ((UINT64_C(1) << 30) - 1) /* twice as many slots fit in 32 bits */

static const char creating[] = "listing who used which address";

/* --- creating: finding places --- */

typedef struct table {
    uint32_t *slots; /* 1 + index of a place; 0: free */
    uint64_t mask;
    uint32_t *place_of; /* of each use */
    uint64_t place_capacity;
    uint64_t task;     /* whose arguments are being added */
    uint64_t added[4]; /* a bit for each arg_index */
} table;

static uint64_t slot_of(const table *t, uint64_t begin, uint64_t end, uint64_t form) {
    uint64_t mixed = (begin ^ form) * UINT64_C(0x9e3779b97f4a7c15) + (end - begin);
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (mixed ^ mixed >> 32) & t->mask;
}

static gbx_status find_place(gbx_accesses *accesses, table *t, uint64_t begin, uint64_t end,
                             uint64_t form, uint32_t *out_place) {
    uint64_t slot = slot_of(t, begin, end, form);
    for (; t->slots[slot]; slot = (slot + 1) & t->mask) {
        const gbx_place *p = &accesses->places[t->slots[slot] - 1];
        if (p->begin == begin && p->end == end && p->form == form) {
            *out_place = t->slots[slot] - 1;
            return NULL;
        }
    }
    GBX_TRY(gbx_array_reserve(&accesses->places, &t->place_capacity, accesses->place_count + 1,
                              creating));
    *out_place = (uint32_t)accesses->place_count++;
    accesses->places[*out_place] = (gbx_place){.begin = begin, .end = end, .form = form};
    t->slots[slot] = *out_place + 1;
    return NULL;
}

static gbx_status add_use(gbx_accesses *accesses, table *t, uint64_t begin, uint64_t end,
                          uint64_t form, gbx_use added) {
    uint32_t *to = &t->place_of[accesses->use_count];
    GBX_TRY(find_place(accesses, t, begin, end, form, to));
    ++accesses->places[*to].count;
    accesses->uses[accesses->use_count++] = added;
    return NULL;
}

/* Whether the argument of a record has been added, perhaps as it was at the other stage. */
static bool is_added(table *t, const gbx_record *record) {
    if (record->task != t->task) {
        memset(t->added, 0, sizeof t->added);
        t->task = record->task;
    }
    return t->added[record->arg_index / 64] >> record->arg_index % 64 & 1u;
}

static uint64_t form_of(const gbx_tensor *view) {
    if (gbx_tensor_is_contiguous(view))
        return GBX_FORM_WHOLE;
    uint64_t hash = gbx_hash_bytes(view, sizeof *view).low;
    return hash < GBX_FORM_COUNT ? GBX_FORM_COUNT : hash;
}

static gbx_status add_entry(gbx_accesses *accesses, table *t, uint64_t index) {
    const gbx_record *record = NULL;
    gbx_tensor view;
    int64_t first, end;
    GBX_TRY(
        gbx_reader_at(accesses->reader, gbx_entries_position(accesses->entries, index), &record));
    if (record->type != GBX_RECORD_TENSOR || is_added(t, record))
        return NULL;
    gbx_record_view((const gbx_record_tensor *)record, &view);
    if (!gbx_tensor_is_valid(&view, &first, &end) || first == end || end > REACH_MAX)
        return NULL;
    t->added[record->arg_index / 64] |= UINT64_C(1) << record->arg_index % 64;
    return add_use(
        accesses, t, view.data + (uint64_t)first, view.data + (uint64_t)end, form_of(&view),
        (gbx_use){.task = record->task, .entry = (uint32_t)index, .detail = record->role});
}

static gbx_status add_result(gbx_accesses *accesses, table *t, uint64_t position) {
    gbx_result result;
    gbx_tensor view;
    int64_t first, end;
    GBX_TRY(gbx_reader_result(accesses->reader, position, &result));
    gbx_record_view(result.record, &view);
    view.data = 0; /* the pieces say where it lay */
    uint64_t whole = gbx_tensor_is_valid(&view, &first, &end) ? gbx_tensor_payload_bytes(&view) : 0;
    for (uint64_t i = 0; i < result.piece_count; ++i) {
        const gbx_record_piece *piece = &result.pieces[i];
        if (piece->offset >= whole || piece->bytes > whole - piece->offset)
            continue;
        GBX_TRY(add_use(
            accesses, t, piece->address, piece->address + piece->bytes, GBX_FORM_PIECE,
            (gbx_use){.task = UINT64_MAX, .entry = (uint32_t)position, .detail = (uint32_t)i}));
    }
    return NULL;
}

static gbx_status count_uses(gbx_accesses *accesses, uint64_t *out_count) {
    *out_count = gbx_entries_count(accesses->entries);
    uint64_t results = gbx_reader_result_count(accesses->reader);
    for (uint64_t i = 0; i < results; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(accesses->reader, i, &result));
        *out_count += result.piece_count;
    }
    if (*out_count > USES_MAX)
        return gbx_fail(GBX_UNSUPPORTED,
                        "%s: the dump has %" PRIu64 " arguments, expected at most %" PRIu64,
                        creating, *out_count, USES_MAX);
    return NULL;
}

static gbx_status add_all(gbx_accesses *accesses, table *t) {
    uint64_t count = gbx_entries_count(accesses->entries);
    uint64_t results = gbx_reader_result_count(accesses->reader);
    for (uint64_t i = 0; i < count; ++i)
        GBX_TRY(add_entry(accesses, t, i));
    accesses->task_use_count = accesses->use_count;
    for (uint64_t i = 0; i < results; ++i)
        GBX_TRY(add_result(accesses, t, i));
    return NULL;
}

/* --- creating: from places and uses to the index --- */

static void order_uses(gbx_accesses *accesses, const table *t) {
    uint32_t first = 0;
    for (uint64_t i = 0; i < accesses->place_count; ++i) {
        accesses->places[i].first = first;
        first += accesses->places[i].count;
        accesses->places[i].count = 0;
    }
    for (uint32_t i = 0; i < accesses->use_count; ++i) {
        gbx_place *p = &accesses->places[t->place_of[i]];
        accesses->order[p->first + p->count++] = i;
    }
}

static int compare_places(const void *a, const void *b) {
    const gbx_place *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->first > right->first) - (left->first < right->first);
}

static uint64_t set_reach(gbx_place *places, uint64_t low, uint64_t high) {
    if (low == high)
        return 0;
    uint64_t middle = low + (high - low) / 2;
    uint64_t before = set_reach(places, low, middle);
    uint64_t after = set_reach(places, middle + 1, high);
    uint64_t reach = before > after ? before : after;
    if (reach < places[middle].end)
        reach = places[middle].end;
    places[middle].reach = reach;
    return reach;
}

static gbx_status build_index(gbx_accesses *accesses, table *t) {
    uint64_t count = 0;
    GBX_TRY(count_uses(accesses, &count));
    t->mask = gbx_power_of_two_from(2 * count + 1) - 1;
    t->slots = calloc(t->mask + 1, sizeof *t->slots);
    t->place_of = malloc((count + 1) * sizeof *t->place_of);
    accesses->uses = malloc((count + 1) * sizeof *accesses->uses);
    accesses->order = malloc((count + 1) * sizeof *accesses->order);
    if (!t->slots || !t->place_of || !accesses->uses || !accesses->order)
        return gbx_fail_memory("%s", creating);
    GBX_TRY(add_all(accesses, t));
    order_uses(accesses, t);
    if (accesses->place_count > 0)
        qsort(accesses->places, accesses->place_count, sizeof *accesses->places, compare_places);
    set_reach(accesses->places, 0, accesses->place_count);
    return NULL;
}

gbx_status gbx_accesses_create(gbx_entries *entries, gbx_accesses **out_accesses) {
    gbx_accesses *accesses = calloc(1, sizeof *accesses);
    table t = {.task = UINT64_MAX};
    gbx_status status = NULL;
    if (!accesses)
        return gbx_fail_memory("%s", creating);
    accesses->entries = entries;
    accesses->reader = gbx_entries_reader(entries);
    if (gbx_reader_get_origin(accesses->reader)->known & GBX_KNOWN_ADDRESSES)
        status = build_index(accesses, &t);
    free(t.slots);
    free(t.place_of);
    if (status)
        gbx_accesses_destroy(accesses);
    else
        *out_accesses = accesses;
    return status;
}

void gbx_accesses_destroy(gbx_accesses *accesses) {
    if (!accesses)
        return;
    free(accesses->places);
    free(accesses->uses);
    free(accesses->order);
    gbx_readers_scratch_free(accesses->scratch);
    free(accesses);
}

/* --- places and their uses --- */

gbx_status gbx_accesses_visit(gbx_accesses *accesses, uint64_t low, uint64_t high,
                              gbx_addresses wanted, gbx_place_visitor visit, void *context) {
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const gbx_place *p = &accesses->places[middle];
        if (p->reach <= wanted.begin)
            return NULL;
        GBX_TRY(gbx_accesses_visit(accesses, low, middle, wanted, visit, context));
        if (p->begin >= wanted.end)
            return NULL;
        if (p->end > wanted.begin)
            GBX_TRY(visit(accesses, middle, context));
        low = middle + 1;
    }
    return NULL;
}

uint64_t gbx_accesses_find_use(const gbx_accesses *accesses, uint64_t task, bool is_after) {
    uint64_t low = 0;
    for (uint64_t high = accesses->task_use_count; low < high;) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t found = accesses->uses[middle].task;
        if (found < task || (is_after && found == task))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t gbx_accesses_count_before(const gbx_accesses *accesses, const gbx_place *p,
                                   uint64_t use_index) {
    uint32_t low = 0;
    for (uint32_t high = p->count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (accesses->order[p->first + middle] < use_index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

gbx_status gbx_accesses_read_view(const gbx_accesses *accesses, uint32_t use_index,
                                  gbx_tensor *out_view) {
    const gbx_record *record = NULL;
    uint64_t entry = accesses->uses[use_index].entry;
    GBX_TRY(
        gbx_reader_at(accesses->reader, gbx_entries_position(accesses->entries, entry), &record));
    if (record->type != GBX_RECORD_TENSOR)
        return gbx_accesses_fail_changed();
    gbx_record_view((const gbx_record_tensor *)record, out_view);
    return NULL;
}

gbx_status gbx_accesses_fill(gbx_accesses *accesses, const gbx_use *u, const gbx_tensor *view,
                             uint64_t element, gbx_tensor_access *out_access) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(accesses->entries, u->entry, &entry));
    *out_access = (gbx_tensor_access){.task = u->task,
                                      .task_id = entry.task ? entry.task->task_id : 0,
                                      .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                      .arg_index = entry.head->arg_index,
                                      .role = entry.head->role,
                                      .name = entry.arg_name,
                                      .tensor = *view,
                                      .element = element};
    if (entry.task)
        memcpy(out_access->func_ids, entry.task->func_ids, sizeof out_access->func_ids);
    return NULL;
}
