#include "analysis/blame/blame.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/blame/internal.h"
#include "analysis/view_find.h"
#include "base/memory.h"

enum { WIDENED_MAX = 1024 }; /* elements beside the one that is asked for, on each side */

gbx_status gbx_blame_create(gbx_entries *entries, const gbx_task_graph *graph,
                            gbx_blame **out_blame) {
    gbx_reader *reader = gbx_entries_reader(entries);
    unsigned needed = GBX_KNOWN_ADDRESSES | GBX_KNOWN_TIMES;
    if ((gbx_reader_get_origin(reader)->known & needed) != needed)
        return gbx_fail(GBX_BAD_FORMAT,
                        "looking for writers in %s: its records lack addresses or times",
                        gbx_reader_get_origin(reader)->records_path);
    gbx_blame *blame = calloc(1, sizeof *blame);
    if (!blame)
        return gbx_fail_memory("looking for writers");
    blame->state = (gbx_audit_state){.entries = entries, .graph = graph, .audit = &blame->audit};
    gbx_status status = gbx_audit_gather(&blame->state);
    if (status)
        gbx_blame_destroy(blame);
    else
        *out_blame = blame;
    return status;
}

void gbx_blame_destroy(gbx_blame *blame) {
    if (!blame)
        return;
    free(blame->state.tasks);
    free(blame->state.accesses);
    free(blame);
}

bool gbx_blame_is_before(const gbx_blame *blame, uint64_t first, uint64_t second) {
    const gbx_audit_task *earlier = &blame->state.tasks[first];
    const gbx_audit_task *later = &blame->state.tasks[second];
    if (earlier->end_ns <= later->begin_ns)
        return true;
    if (later->end_ns <= earlier->begin_ns)
        return false;
    return gbx_task_graph_is_before(blame->state.graph, earlier->number, later->number);
}

/* --- whether an output covers the element --- */

/* The bits of the element that a view covers, one of a mask for each. */
typedef struct cover {
    gbx_view_found found;
    uint64_t mask;
    uint64_t element; /* the first that shares one */
} cover;

static uint64_t mask_of(uint32_t first, uint32_t end) {
    return (end - first >= 64 ? UINT64_MAX : (UINT64_C(1) << (end - first)) - 1) << first;
}

static uint32_t element_bits(const gbx_blame_element *element) {
    return gbx_dtype_bits(element->tensor.dtype);
}

static cover cover_element(const gbx_tensor *view, const gbx_blame_element *element) {
    cover c = {.found = GBX_VIEW_LACKS_IT};
    uint32_t bits = element_bits(element);
    int64_t begin = (int64_t)(element->address - view->data) * 8 + (int64_t)element->first_bit;
    /* Smaller elements cover it one after the other. */
    for (uint32_t at = 0; at < bits;) {
        gbx_view_element one;
        gbx_view_found found =
            gbx_view_find(view, begin + (int64_t)at, begin + (int64_t)at + 4, &one);
        if (found == GBX_VIEW_UNDECIDED) {
            c.found = found;
            return c;
        }
        if (found == GBX_VIEW_LACKS_IT) {
            at += 4;
            continue;
        }
        if (c.mask == 0)
            c.element = one.number;
        c.found = found;
        int64_t end = one.end_bit - begin;
        uint32_t covered = end < (int64_t)bits ? (uint32_t)end : bits;
        int64_t first = one.begin_bit - begin;
        c.mask |= mask_of(first > (int64_t)at ? (uint32_t)first : at, covered);
        at = covered;
    }
    return c;
}

static bool is_near(const gbx_access *access, const gbx_blame_element *element) {
    uint64_t end = element->address + (element->first_bit + element_bits(element) + 7) / 8;
    return access->begin < end && element->address < access->end;
}

/* --- writers --- */

typedef struct writer {
    uint64_t access;
    uint64_t mask;
    uint64_t element;
} writer;

typedef struct writers {
    writer *items;
    uint64_t count;
    uint64_t capacity;
} writers;

/* Whether a task may have written before the one that the element belongs to read or left it. */
static bool may_count(const gbx_blame *blame, const gbx_blame_element *element, uint64_t task) {
    if (!element->is_of_task)
        return true;
    uint64_t own = gbx_task_graph_place(blame->state.graph, element->task);
    if (task == own)
        return element->is_left;
    return !gbx_blame_is_before(blame, own, task);
}

static gbx_status list_writers(gbx_blame *blame, const gbx_blame_element *element,
                               writers *out_writers, gbx_blame_answer *answer) {
    gbx_audit_state *state = &blame->state;
    for (uint64_t i = 0; i < state->access_count; ++i) {
        const gbx_access *access = &state->accesses[i];
        gbx_tensor view;
        if (!access->is_write || !is_near(access, element) ||
            !may_count(blame, element, access->task))
            continue;
        GBX_TRY(gbx_access_view(state, access, &view));
        cover c = cover_element(&view, element);
        answer->undecided += c.found == GBX_VIEW_UNDECIDED;
        if (c.found != GBX_VIEW_HAS_IT)
            continue;
        GBX_TRY(gbx_array_reserve(&out_writers->items, &out_writers->capacity,
                                  out_writers->count + 1, "looking for writers"));
        out_writers->items[out_writers->count++] = (writer){i, c.mask, c.element};
    }
    return NULL;
}

/* Those of the task that completed last come first. */
static int compare_writers(const void *a, const void *b, void *context) {
    const gbx_audit_state *state = context;
    const gbx_access *left = &state->accesses[((const writer *)a)->access];
    const gbx_access *right = &state->accesses[((const writer *)b)->access];
    uint64_t left_end = state->tasks[left->task].end_ns;
    uint64_t right_end = state->tasks[right->task].end_ns;
    if (left_end != right_end)
        return left_end > right_end ? -1 : 1;
    return left > right ? -1 : left < right;
}

/*
 * Keeps those that may have written some bit last, at the beginning of the list. Order is
 * transitive: what a task that is not kept overwrote, those that are kept overwrote, too.
 */
static uint64_t keep_last(const gbx_blame *blame, writers *all, uint64_t whole,
                          gbx_blame_answer *answer) {
    const gbx_audit_state *state = &blame->state;
    uint64_t kept = 0, covered = 0, seen = 0, earliest = UINT64_MAX;
    for (; seen < all->count; ++seen) {
        writer w = all->items[seen];
        uint64_t task = state->accesses[w.access].task, shared = 0, live = w.mask;
        /* From here on, all completed before those that are kept began. */
        if (covered == whole && state->tasks[task].end_ns <= earliest)
            break;
        for (uint64_t i = 0; i < kept; ++i) {
            const writer *later = &all->items[i];
            uint64_t later_task = state->accesses[later->access].task;
            if (later_task != task && gbx_blame_is_before(blame, task, later_task))
                live &= ~later->mask;
            else
                shared |= later->mask;
        }
        if (live == 0)
            continue;
        answer->is_order_unknown |= (live & shared) != 0;
        all->items[kept++] = w;
        covered |= w.mask;
        if (state->tasks[task].begin_ns < earliest)
            earliest = state->tasks[task].begin_ns;
    }
    answer->earlier = all->count - kept;
    return kept;
}

static gbx_status read_value(gbx_entries *entries, const gbx_entry *entry, uint64_t element,
                             bool *out_has_value, uint64_t *out_bits) {
    gbx_entry_values values;
    *out_has_value = false;
    if (!gbx_entry_has_values(entry))
        return NULL;
    GBX_TRY(gbx_entry_values_open(entry, gbx_entries_reader(entries), &values));
    *out_has_value = element < values.elements.stored;
    return *out_has_value ? gbx_elements_read(&values.elements, element, 1, out_bits) : NULL;
}

static gbx_status fill_writers(gbx_blame *blame, const gbx_blame_element *element,
                               const writers *all, gbx_blame_answer *answer) {
    gbx_audit_state *state = &blame->state;
    uint64_t whole = mask_of(0, element_bits(element));
    for (uint64_t i = 0; i < answer->writer_count && i < GBX_BLAME_WRITERS; ++i) {
        const gbx_access *access = &state->accesses[all->items[i].access];
        gbx_blame_writer *to = &answer->writers[i];
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(state->entries, access->entry, &entry));
        *to = (gbx_blame_writer){.task = entry.head->task,
                                 .entry = access->entry,
                                 .element = all->items[i].element,
                                 .is_whole = all->items[i].mask == whole,
                                 .dtype = entry.dtype};
        GBX_TRY(read_value(state->entries, &entry, to->element, &to->has_value, &to->bits));
    }
    return NULL;
}

/* --- what it holds --- */

static gbx_status read_found(gbx_blame *blame, const gbx_blame_element *element,
                             gbx_blame_answer *answer) {
    gbx_entries *entries = blame->state.entries;
    gbx_entry entry;
    if (element->is_of_task) {
        GBX_TRY(gbx_entries_at(entries, element->entry, &entry));
        return read_value(entries, &entry, element->number, &answer->has_found, &answer->found);
    }
    gbx_result result;
    if (!element->has_result)
        return NULL;
    GBX_TRY(gbx_reader_result(gbx_entries_reader(entries), element->result, &result));
    entry = (gbx_entry){
        .head = &result.record->head, .tensor = result.record, .dtype = result.record->head.dtype};
    return read_value(entries, &entry, element->number, &answer->has_found, &answer->found);
}

/* Whether it is known that none of those who may have written it left what was found. */
static bool is_changed(const gbx_blame_element *element, const gbx_blame_answer *answer) {
    bool is_known = answer->has_found && answer->writer_count > 0 && answer->undecided == 0 &&
                    answer->missing_tasks == 0 && answer->in_flight == 0 &&
                    answer->writer_count <= GBX_BLAME_WRITERS;
    for (uint64_t i = 0; i < answer->writer_count && is_known; ++i) {
        const gbx_blame_writer *w = &answer->writers[i];
        is_known = w->has_value && w->is_whole &&
                   gbx_dtype_bits(w->dtype) == element_bits(element) && w->bits != answer->found;
    }
    return is_known;
}

/* --- who may have changed it --- */

/* What a view's entry holds at the place of an element, if the view has all of it as one element.
 */
static gbx_status read_at(gbx_blame *blame, uint64_t entry_index, const gbx_blame_element *element,
                          bool *out_has_value, uint64_t *out_bits) {
    gbx_entry entry;
    gbx_tensor view;
    *out_has_value = false;
    GBX_TRY(gbx_entries_at(blame->state.entries, entry_index, &entry));
    gbx_record_view(entry.tensor, &view);
    cover c = cover_element(&view, element);
    if (c.found != GBX_VIEW_HAS_IT || c.mask != mask_of(0, element_bits(element)) ||
        gbx_dtype_bits(view.dtype) != element_bits(element))
        return NULL;
    return read_value(blame->state.entries, &entry, c.element, out_has_value, out_bits);
}

/* Whether the element `by` further in memory was changed, too. */
static gbx_status is_changed_at(gbx_blame *blame, const gbx_blame_element *element, uint64_t entry,
                                int64_t by, bool *out_is_changed) {
    gbx_blame_element other = *element;
    gbx_blame_answer answer = {0};
    bool is_left = false;
    uint64_t left = 0;
    other.number += (uint64_t)by;
    other.address += (uint64_t)(by * (int64_t)(element_bits(element) / 8));
    *out_is_changed = false;
    GBX_TRY(read_at(blame, entry, &other, &is_left, &left));
    if (!is_left)
        return NULL;
    if (element->is_of_task)
        GBX_TRY(read_at(blame, element->entry, &other, &answer.has_found, &answer.found));
    else
        GBX_TRY(read_found(blame, &other, &answer));
    *out_is_changed = answer.has_found && answer.found != left;
    return NULL;
}

/* Widens the bytes to those beside the element that were changed, too: an overrun begins where
 * somebody's output ends. */
static gbx_status widen(gbx_blame *blame, const gbx_blame_element *element,
                        const gbx_blame_answer *answer, gbx_suspicion *suspicion) {
    uint64_t bytes = element_bits(element) / 8;
    bool is_more = bytes > 0;
    for (int64_t by = 1; is_more && by <= WIDENED_MAX; ++by) {
        if ((uint64_t)by > element->number && !element->is_of_task)
            break;
        GBX_TRY(is_changed_at(blame, element, answer->writers[0].entry, -by, &is_more));
        suspicion->begin -= is_more ? bytes : 0;
    }
    is_more = bytes > 0;
    for (int64_t by = 1; is_more && by <= WIDENED_MAX; ++by) {
        GBX_TRY(is_changed_at(blame, element, answer->writers[0].entry, by, &is_more));
        suspicion->end += is_more ? bytes : 0;
    }
    return NULL;
}

/* When a task last read what the writer had left. */
static gbx_status find_last_seen(gbx_blame *blame, const gbx_blame_element *element,
                                 const gbx_blame_answer *answer, gbx_suspicion *suspicion) {
    gbx_audit_state *state = &blame->state;
    for (uint64_t i = 0; answer->writer_count == 1 && i < state->access_count; ++i) {
        const gbx_access *access = &state->accesses[i];
        bool has_value = false;
        uint64_t bits = 0;
        if (access->is_write || !is_near(access, element) ||
            access->time_ns <= suspicion->after_ns || access->time_ns >= suspicion->before_ns)
            continue;
        GBX_TRY(read_at(blame, access->entry, element, &has_value, &bits));
        if (has_value && bits == answer->writers[0].bits)
            suspicion->after_ns = access->time_ns;
    }
    return NULL;
}

static gbx_status find_suspects(gbx_blame *blame, const gbx_blame_element *element,
                                const writers *all, gbx_blame_answer *answer) {
    const gbx_audit_state *state = &blame->state;
    gbx_suspicion suspicion = {.begin = element->address,
                               .end = element->address + (element_bits(element) + 7) / 8,
                               .after_ns = UINT64_MAX,
                               .before_ns = UINT64_MAX,
                               .except = UINT64_MAX};
    for (uint64_t i = 0; all->items && i < answer->writer_count; ++i) {
        uint64_t left_ns = state->accesses[all->items[i].access].time_ns;
        suspicion.after_ns = left_ns < suspicion.after_ns ? left_ns : suspicion.after_ns;
    }
    if (element->is_of_task) {
        suspicion.except = gbx_task_graph_place(state->graph, element->task);
        suspicion.before_ns = state->tasks[suspicion.except].begin_ns;
    }
    GBX_TRY(find_last_seen(blame, element, answer, &suspicion));
    GBX_TRY(widen(blame, element, answer, &suspicion));
    return gbx_audit_find_suspects(&blame->state, &suspicion, answer->suspects,
                                   &answer->suspect_count);
}

/* --- what is not known --- */

/* Looks at the outputs of a task that did not complete: they may be written or not. */
static gbx_status look_in_flight(gbx_blame *blame, const gbx_blame_element *element, uint64_t task,
                                 bool *out_has_any, gbx_blame_answer *answer) {
    gbx_entries *entries = blame->state.entries;
    uint64_t count = gbx_entries_count(entries);
    *out_has_any = false;
    for (uint64_t i = gbx_entries_find(entries, task); i < count; ++i) {
        gbx_entry entry;
        gbx_tensor view;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (!entry.tensor || !(entry.head->flags & GBX_FLAG_IN_FLIGHT))
            continue;
        *out_has_any = true;
        gbx_record_view(entry.tensor, &view);
        if (cover_element(&view, element).found == GBX_VIEW_LACKS_IT)
            continue;
        if (answer->in_flight++ == 0) {
            answer->in_flight_task = task;
            answer->in_flight_entry = i;
        }
    }
    return NULL;
}

/* Whether a task is known to have come before one that wrote all of the element. */
static bool is_overwritten(const gbx_blame *blame, const writers *all, uint64_t kept,
                           uint64_t whole, uint64_t task) {
    for (uint64_t i = 0; all->items && i < kept; ++i) {
        uint64_t later = blame->state.accesses[all->items[i].access].task;
        if (all->items[i].mask == whole && later != task && gbx_blame_is_before(blame, task, later))
            return true;
    }
    return false;
}

/* Counts the tasks that may have written it last, and whose outputs the dump may lack. */
static gbx_status count_missing(gbx_blame *blame, const gbx_blame_element *element,
                                const writers *all, gbx_blame_answer *answer) {
    const gbx_audit_state *state = &blame->state;
    uint64_t whole = mask_of(0, element_bits(element));
    uint64_t missing = 0;
    for (uint64_t i = 0; i < state->task_count; ++i) {
        bool is_in_flight = false;
        if (!state->tasks[i].is_missing || !may_count(blame, element, i) ||
            is_overwritten(blame, all, answer->writer_count, whole, i))
            continue;
        GBX_TRY(look_in_flight(blame, element, state->tasks[i].number, &is_in_flight, answer));
        missing += !is_in_flight;
    }
    answer->missing_tasks = state->is_any_missing ? UINT64_MAX : missing;
    return NULL;
}

/* --- asking --- */

static gbx_status answer_from(gbx_blame *blame, const gbx_blame_element *element, writers *all,
                              gbx_blame_answer *answer) {
    gbx_audit_state *state = &blame->state;
    GBX_TRY(list_writers(blame, element, all, answer));
    if (all->count > 1)
        qsort_r(all->items, all->count, sizeof *all->items, compare_writers, state);
    answer->writer_count = keep_last(blame, all, mask_of(0, element_bits(element)), answer);
    GBX_TRY(fill_writers(blame, element, all, answer));
    GBX_TRY(read_found(blame, element, answer));
    GBX_TRY(count_missing(blame, element, all, answer));
    answer->is_changed = is_changed(element, answer);
    return answer->is_changed ? find_suspects(blame, element, all, answer) : NULL;
}

gbx_status gbx_blame_ask(gbx_blame *blame, const gbx_blame_element *element,
                         gbx_blame_answer *out_answer) {
    writers all = {0};
    *out_answer = (gbx_blame_answer){.missing_tasks = blame->audit.counts.missing_tasks};
    if (!element->is_placed)
        return read_found(blame, element, out_answer);
    gbx_status status = answer_from(blame, element, &all, out_answer);
    free(all.items);
    return status;
}
