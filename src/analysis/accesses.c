/*
 * Arguments with the same view share a place, and each place lists its uses in the order of tasks.
 * There are far fewer places than arguments, because buffers are used again and again; a query
 * looks at each place once, however often it was used. Places are sorted by their beginning, as a
 * balanced tree in an array: the root of [low, high) is in the middle.
 */
#include "analysis/accesses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/view_find.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "tensor/view.h"

#define REACH_MAX (INT64_C(1) << 56)       /* so that offsets in bits fit */
#define USES_MAX ((UINT64_C(1) << 30) - 1) /* twice as many slots fit in 32 bits */
enum { STEPS_MAX = 1 << 14 };              /* to remove what one output covers from a range */

/* What a place is, in `form`; any other number is the hash of a view with gaps. */
enum {
    FORM_WHOLE = 0, /* the view has all bytes from begin to end */
    FORM_PIECE = 1, /* of a result, which has them, too */
    FORM_COUNT = 2
};

typedef struct place {
    uint64_t begin; /* all bytes of the view lie in [begin, end) */
    uint64_t end;
    uint64_t form;
    uint64_t reach; /* the largest end in its subtree */
    uint32_t first; /* of its uses, in `order` */
    uint32_t count;
} place;

typedef struct use {
    uint64_t task;   /* task_seq; UINT64_MAX for a piece of a result */
    uint32_t entry;  /* of a piece: the position of its result */
    uint32_t detail; /* gbx_role; of a piece: its number in the result */
} use;

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

typedef struct ranges {
    range *items;
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

struct gbx_accesses {
    gbx_entries *entries;
    gbx_reader *reader;
    place *places;
    uint64_t place_count;
    use *uses; /* in the order of entries, and so of tasks; then pieces of results */
    uint64_t use_count;
    uint64_t task_use_count; /* without pieces */
    uint32_t *order;         /* indices of uses, those of each place together and ascending */

    /* Kept from one search for readers to the next only for their memory. */
    candidate *candidates;
    uint64_t candidate_count;
    uint64_t candidate_capacity;
    ranges left; /* what nobody has overwritten yet */
    ranges kept;
    ranges pending;
};

static const char creating[] = "listing who used which address";
static const char searching[] = "looking for readers";

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
        const place *p = &accesses->places[t->slots[slot] - 1];
        if (p->begin == begin && p->end == end && p->form == form) {
            *out_place = t->slots[slot] - 1;
            return NULL;
        }
    }
    GBX_TRY(gbx_array_reserve(&accesses->places, &t->place_capacity, accesses->place_count + 1,
                              creating));
    *out_place = (uint32_t)accesses->place_count++;
    accesses->places[*out_place] = (place){.begin = begin, .end = end, .form = form};
    t->slots[slot] = *out_place + 1;
    return NULL;
}

static gbx_status add_use(gbx_accesses *accesses, table *t, uint64_t begin, uint64_t end,
                          uint64_t form, use added) {
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
        return FORM_WHOLE;
    uint64_t hash = gbx_hash_bytes(view, sizeof *view).low;
    return hash < FORM_COUNT ? FORM_COUNT : hash;
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
    return add_use(accesses, t, view.data + (uint64_t)first, view.data + (uint64_t)end,
                   form_of(&view),
                   (use){.task = record->task, .entry = (uint32_t)index, .detail = record->role});
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
        GBX_TRY(
            add_use(accesses, t, piece->address, piece->address + piece->bytes, FORM_PIECE,
                    (use){.task = UINT64_MAX, .entry = (uint32_t)position, .detail = (uint32_t)i}));
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
        place *p = &accesses->places[t->place_of[i]];
        accesses->order[p->first + p->count++] = i;
    }
}

static int compare_places(const void *a, const void *b) {
    const place *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->first > right->first) - (left->first < right->first);
}

static uint64_t set_reach(place *places, uint64_t low, uint64_t high) {
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
    free(accesses->candidates);
    free(accesses->left.items);
    free(accesses->kept.items);
    free(accesses->pending.items);
    free(accesses);
}

/* --- places and their uses --- */

typedef gbx_status (*place_visitor)(gbx_accesses *accesses, uint64_t place, void *context);

/* Visits the places in [low, high) whose extent shares a byte with the range. */
static gbx_status visit_places(gbx_accesses *accesses, uint64_t low, uint64_t high, range wanted,
                               place_visitor visit, void *context) {
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const place *p = &accesses->places[middle];
        if (p->reach <= wanted.begin)
            return NULL;
        GBX_TRY(visit_places(accesses, low, middle, wanted, visit, context));
        if (p->begin >= wanted.end)
            return NULL;
        if (p->end > wanted.begin)
            GBX_TRY(visit(accesses, middle, context));
        low = middle + 1;
    }
    return NULL;
}

/* The first use of a task from `task` on, or after it. */
static uint64_t find_use(const gbx_accesses *accesses, uint64_t task, bool is_after) {
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

/* How many uses of a place come before a use of any place. */
static uint32_t count_before(const gbx_accesses *accesses, const place *p, uint64_t use_index) {
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

static const use *use_at(const gbx_accesses *accesses, const place *p, uint32_t number) {
    return &accesses->uses[accesses->order[p->first + number]];
}

static gbx_status fail_changed(void) {
    return gbx_fail(GBX_BAD_FORMAT, "the dump changed while it was being read");
}

static gbx_status read_view(const gbx_accesses *accesses, uint32_t use_index,
                            gbx_tensor *out_view) {
    const gbx_record *record = NULL;
    uint64_t entry = accesses->uses[use_index].entry;
    GBX_TRY(
        gbx_reader_at(accesses->reader, gbx_entries_position(accesses->entries, entry), &record));
    if (record->type != GBX_RECORD_TENSOR)
        return fail_changed();
    gbx_record_view((const gbx_record_tensor *)record, out_view);
    return NULL;
}

/* --- elements of a view --- */

/* The part of a range that lies in the extent of a place. */
static bool clip(const place *p, const range *r, range *out_part) {
    out_part->begin = r->begin > p->begin ? r->begin : p->begin;
    out_part->end = gbx_min_u64(r->end, p->end);
    return out_part->begin < out_part->end;
}

/* The range lies in the extent of the view. */
static bool find_element(const gbx_tensor *view, const range *r, gbx_view_element *out_element) {
    int64_t begin = (int64_t)(r->begin - view->data) * 8, end = (int64_t)(r->end - view->data) * 8;
    return gbx_view_find(view, begin, end, out_element) == GBX_VIEW_HAS_IT;
}

static void set_index(const gbx_tensor *view, uint64_t number, int64_t *out_index) {
    for (uint32_t d = view->ndims; d-- > 0; number /= (uint64_t)view->shape[d])
        out_index[d] = (int64_t)(number % (uint64_t)view->shape[d]);
}

/*
 * The first element, row-major, that shares a byte with a range in the view's extent. Narrows the
 * view, dimension by dimension, to the least index with which there is one.
 */
static bool find_first(const gbx_tensor *view, const range *r, uint64_t *out_number) {
    gbx_tensor part = *view;
    gbx_view_element element;
    int64_t index[GBX_MAX_DIMS];
    if (!find_element(view, r, &element))
        return false;
    set_index(view, element.number, index);
    *out_number = 0;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        int64_t start = part.start_offset, low = 0, high = index[d];
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            part.start_offset = start + low * view->strides[d];
            part.shape[d] = middle - low + 1;
            if (find_element(&part, r, &element)) {
                set_index(&part, element.number, index);
                index[d] += low;
                high = index[d];
            } else {
                low = middle + 1;
            }
        }
        part.start_offset = start + high * view->strides[d];
        part.shape[d] = 1;
        *out_number = *out_number * (uint64_t)view->shape[d] + (uint64_t)high;
    }
    return true;
}

/* Widens an element to all those beside it in a dimension without gaps. */
static void widen(const gbx_tensor *view, gbx_view_element *element) {
    int64_t bits = gbx_dtype_bits(view->dtype), index[GBX_MAX_DIMS];
    set_index(view, element->number, index);
    for (uint32_t d = 0; d < view->ndims; ++d) {
        if (view->strides[d] != 1 || view->shape[d] == 1)
            continue;
        element->begin_bit -= index[d] * bits;
        element->end_bit += (view->shape[d] - 1 - index[d]) * bits;
        return;
    }
}

/* --- answers --- */

static gbx_status fill_argument(gbx_accesses *accesses, const use *u, const gbx_tensor *view,
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

/* The first element with a bit of a byte of the payload, where rows begin with a byte. */
static uint64_t element_at(const gbx_tensor *tensor, uint64_t byte) {
    if (!gbx_dtype_is_packed(tensor->dtype))
        return byte / (gbx_dtype_bits(tensor->dtype) / 8);
    uint64_t length = tensor->ndims ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    uint64_t row_bytes = (length + 1) / 2;
    return byte / row_bytes * length + byte % row_bytes * 2;
}

static gbx_status fill_result(gbx_accesses *accesses, const use *u, uint64_t address,
                              gbx_tensor_access *out_access) {
    gbx_result result;
    GBX_TRY(gbx_reader_result(accesses->reader, u->entry, &result));
    if (u->detail >= result.piece_count)
        return fail_changed();
    const gbx_record_piece *piece = &result.pieces[u->detail];
    *out_access = (gbx_tensor_access){.is_result = true,
                                      .func_ids = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                      .arg_index = result.arg_index,
                                      .role = (uint32_t)result.role,
                                      .name = result.name};
    gbx_record_view(result.record, &out_access->tensor);
    out_access->tensor.data = piece->address - piece->offset;
    out_access->element =
        element_at(&out_access->tensor, piece->offset + (address - piece->address));
    return NULL;
}

/* --- the owner of an address --- */

typedef struct owner {
    bool is_found;
    uint64_t distance;
    uint64_t extent;
    uint32_t role_rank;
    uint32_t use;
} owner;

typedef struct owner_search {
    uint64_t task;
    range wanted;    /* one byte; none at UINT64_MAX, which no valid view has */
    uint64_t before; /* the first use of the task, and the first after it */
    uint64_t after;
    owner best;
} owner_search;

static bool is_better(const owner *a, const owner *b) {
    if (!b->is_found)
        return true;
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if (a->extent != b->extent)
        return a->extent < b->extent;
    if (a->role_rank != b->role_rank)
        return a->role_rank < b->role_rank;
    return a->use < b->use;
}

static void consider(const gbx_accesses *accesses, const owner_search *search, const place *p,
                     uint32_t number, owner *best) {
    static const uint32_t ranks[] = {
        [GBX_ROLE_OUTPUT] = 0, [GBX_ROLE_INOUT] = 1, [GBX_ROLE_INPUT] = 2};
    const use *u = use_at(accesses, p, number);
    owner o = {.is_found = true,
               .distance = u->task < search->task ? search->task - u->task : u->task - search->task,
               .extent = p->end - p->begin,
               .role_rank = ranks[u->detail],
               .use = accesses->order[p->first + number]};
    if (is_better(&o, best))
        *best = o;
}

/* The uses of the last task before, and of the first one after. */
static owner find_nearest(const gbx_accesses *accesses, const owner_search *search,
                          const place *p) {
    owner best = {0};
    uint32_t before = count_before(accesses, p, search->before);
    uint32_t after = count_before(accesses, p, search->after);
    uint64_t task = before > 0 ? use_at(accesses, p, before - 1)->task : 0;
    for (uint32_t i = before; i > 0 && use_at(accesses, p, i - 1)->task == task; --i)
        consider(accesses, search, p, i - 1, &best);
    task = after < p->count ? use_at(accesses, p, after)->task : 0;
    for (uint32_t i = after; i < p->count && use_at(accesses, p, i)->task == task; ++i)
        consider(accesses, search, p, i, &best);
    return best;
}

static gbx_status visit_owner(gbx_accesses *accesses, uint64_t number, void *context) {
    owner_search *search = context;
    const place *p = &accesses->places[number];
    if (p->form == FORM_PIECE)
        return NULL;
    owner nearest = find_nearest(accesses, search, p);
    if (!nearest.is_found || !is_better(&nearest, &search->best))
        return NULL;
    if (p->form != FORM_WHOLE) {
        gbx_tensor view;
        gbx_view_element element;
        GBX_TRY(read_view(accesses, nearest.use, &view));
        if (!find_element(&view, &search->wanted, &element))
            return NULL;
    }
    search->best = nearest;
    return NULL;
}

gbx_status gbx_accesses_owner(gbx_accesses *accesses, uint64_t task, uint64_t address,
                              gbx_tensor_access *out_access, bool *out_is_found) {
    owner_search search = {.task = task,
                           .wanted = {address, address + 1},
                           .before = find_use(accesses, task, false),
                           .after = find_use(accesses, task, true)};
    gbx_tensor view;
    uint64_t element = 0;
    *out_is_found = false;
    GBX_TRY(visit_places(accesses, 0, accesses->place_count, search.wanted, visit_owner, &search));
    if (!search.best.is_found)
        return NULL;
    GBX_TRY(read_view(accesses, search.best.use, &view));
    *out_is_found = find_first(&view, &search.wanted, &element);
    return *out_is_found ? fill_argument(accesses, &accesses->uses[search.best.use], &view, element,
                                         out_access)
                         : NULL;
}

/* --- the next reader of a range --- */

static gbx_status push(ranges *list, uint64_t begin, uint64_t end) {
    if (begin >= end)
        return NULL;
    GBX_TRY(gbx_array_reserve(&list->items, &list->capacity, list->count + 1, searching));
    list->items[list->count++] = (range){begin, end};
    return NULL;
}

static bool is_read(const use *u) {
    return u->detail != GBX_ROLE_OUTPUT;
}

/* The use of a place by its next task from `number` on: a read, if that task has one. */
static candidate make_candidate(const gbx_accesses *accesses, uint64_t place_number,
                                uint32_t number) {
    const place *p = &accesses->places[place_number];
    uint64_t task = use_at(accesses, p, number)->task;
    uint32_t chosen = number;
    for (uint32_t i = number; p->form != FORM_PIECE && i < p->count; ++i) {
        const use *u = use_at(accesses, p, i);
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
                       .is_write = p->form != FORM_PIECE && !is_read(use_at(accesses, p, chosen))};
}

/* `context` is the first use after the task. */
static gbx_status visit_candidate(gbx_accesses *accesses, uint64_t number, void *context) {
    const place *p = &accesses->places[number];
    uint32_t next = count_before(accesses, p, *(const uint64_t *)context);
    if (next == p->count)
        return NULL;
    GBX_TRY(gbx_array_reserve(&accesses->candidates, &accesses->candidate_capacity,
                              accesses->candidate_count + 1, searching));
    accesses->candidates[accesses->candidate_count++] = make_candidate(accesses, number, next);
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
    if (accesses->candidate_count > first)
        qsort(accesses->candidates + first, accesses->candidate_count - first,
              sizeof *accesses->candidates, compare_candidates);
}

/* The lowest address of what is left that a piece of a result has. */
static gbx_status read_piece(gbx_accesses *accesses, const candidate *c,
                             gbx_tensor_access *out_access, bool *out_is_found) {
    const place *p = &accesses->places[c->place];
    uint64_t address = UINT64_MAX;
    range part;
    for (uint64_t i = 0; i < accesses->left.count; ++i)
        if (clip(p, &accesses->left.items[i], &part))
            address = gbx_min_u64(address, part.begin);
    *out_is_found = address != UINT64_MAX;
    return *out_is_found ? fill_result(accesses, &accesses->uses[c->use], address, out_access)
                         : NULL;
}

/* The first element of an argument that has a byte of what is left. */
static gbx_status read_argument(gbx_accesses *accesses, const candidate *c,
                                gbx_tensor_access *out_access, bool *out_is_found) {
    const place *p = &accesses->places[c->place];
    uint64_t element = UINT64_MAX, first;
    gbx_tensor view;
    range part;
    GBX_TRY(read_view(accesses, c->use, &view));
    for (uint64_t i = 0; i < accesses->left.count; ++i)
        if (clip(p, &accesses->left.items[i], &part) && find_first(&view, &part, &first)) {
            element = gbx_min_u64(element, first);
            *out_is_found = true;
        }
    return *out_is_found
               ? fill_argument(accesses, &accesses->uses[c->use], &view, element, out_access)
               : NULL;
}

/* Some bytes of the range that an output has, without a gap. */
static bool find_written(const place *p, const gbx_tensor *view, const range *r,
                         range *out_written) {
    gbx_view_element element;
    if (!clip(p, r, out_written))
        return false;
    if (p->form == FORM_WHOLE)
        return true;
    if (!find_element(view, out_written, &element))
        return false;
    widen(view, &element);
    out_written->begin = view->data + (uint64_t)(element.begin_bit >> 3);
    out_written->end = view->data + (uint64_t)((element.end_bit + 7) >> 3);
    return true;
}

/* Removes what an output has from what is left. *out_is_done is false, and nothing changes, if that
 * takes too many steps. */
static gbx_status remove_written(gbx_accesses *accesses, const candidate *c, bool *out_is_done) {
    const place *p = &accesses->places[c->place];
    ranges *pending = &accesses->pending, *kept = &accesses->kept;
    gbx_tensor view = {0};
    if (p->form != FORM_WHOLE)
        GBX_TRY(read_view(accesses, c->use, &view));
    pending->count = kept->count = 0;
    for (uint64_t i = 0; i < accesses->left.count; ++i)
        GBX_TRY(push(pending, accesses->left.items[i].begin, accesses->left.items[i].end));
    *out_is_done = false;
    for (uint64_t steps = 0; pending->count > 0; ++steps) {
        range r = pending->items[--pending->count], written;
        if (steps == STEPS_MAX + accesses->left.count)
            return NULL;
        if (!find_written(p, &view, &r, &written)) {
            GBX_TRY(push(kept, r.begin, r.end));
            continue;
        }
        GBX_TRY(push(pending, r.begin, written.begin));
        GBX_TRY(push(pending, written.end, r.end));
    }
    ranges old = accesses->left;
    accesses->left = *kept;
    *kept = old;
    *out_is_done = true;
    return NULL;
}

/* Replaces an output that could not be removed by the next use of its place that reads. */
static void skip_to_read(gbx_accesses *accesses, uint64_t at) {
    candidate *c = &accesses->candidates[at];
    const place *p = &accesses->places[c->place];
    uint32_t next = count_before(accesses, p, c->use);
    while (next < p->count && !is_read(use_at(accesses, p, next)))
        ++next;
    if (next < p->count)
        *c = make_candidate(accesses, c->place, next);
    else
        *c = accesses->candidates[--accesses->candidate_count];
    sort_candidates(accesses, at);
}

/* Each place counts once: after an output, nothing is left of it for a later task to read. */
static gbx_status find_reader(gbx_accesses *accesses, gbx_tensor_access *out_access,
                              bool *out_is_found) {
    sort_candidates(accesses, 0);
    for (uint64_t i = 0; i < accesses->candidate_count && accesses->left.count > 0;) {
        const candidate *c = &accesses->candidates[i];
        bool is_done = true;
        if (c->is_write)
            GBX_TRY(remove_written(accesses, c, &is_done));
        else if (accesses->places[c->place].form == FORM_PIECE)
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
    range wanted = {address, address + gbx_min_u64(bytes, UINT64_MAX - address)};
    uint64_t after = find_use(accesses, task, true);
    *out_is_found = false;
    accesses->candidate_count = accesses->left.count = 0;
    GBX_TRY(push(&accesses->left, wanted.begin, wanted.end));
    GBX_TRY(visit_places(accesses, 0, accesses->place_count, wanted, visit_candidate, &after));
    return find_reader(accesses, out_access, out_is_found);
}
