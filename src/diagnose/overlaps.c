/*
 * Do tasks without order really share memory? An audit knows what they declare: whole buffers,
 * perhaps, of which each writes its own rows. Kernels are called again to see which bytes they
 * write, and whether what they leave depends on bytes that a task without order writes. A buffer of
 * which nobody does is *apart*, whatever its tasks declare. Of any other those pairs are findings
 * that share a byte. An audit does not list every pair: what it leaves out is found here.
 *
 * What a task leaves of a buffer that is apart holds rows of others, which may change without
 * anything being wrong.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/internal.h"
#include "diagnose/taint.h"

enum { TASKS_MAX = 2048 }; /* of a buffer */
#define OVERLAPS_NS                                                                                \
    (60 * GBX_NS_PER_SECOND)            /* buffers that are not looked at by then are not apart */
#define RANGES_KEPT (UINT64_C(1) << 22) /* that tasks write, all together */
#define CHANGE_MAX (UINT64_C(1) << 26)  /* bytes */

static const char doing[] = "comparing what tasks write";

/* A task reads or writes a view of a buffer. */
typedef struct touch {
    uint64_t base; /* of the buffer */
    uint64_t place;
    uint64_t task;
    uint64_t entry;
    uint32_t slot;
    bool is_write;
    gbx_tensor view;
    gbx_address_ranges written; /* really */
} touch;

typedef struct buffer {
    uint64_t base;
    size_t first; /* in o->accesses */
    size_t count;
    bool is_known; /* what its users write, and their order */
    bool is_apart;
    size_t sharing; /* pairs that share a byte, among the findings */
} buffer;

/* All accesses of one task to a buffer. */
typedef struct user {
    size_t first;
    size_t count;
} user;

typedef struct overlaps {
    gbx_inquiry *q;
    gbx_replay_session session;
    buffer *buffers; /* by base */
    size_t buffer_count;
    uint64_t buffer_capacity;
    touch *accesses; /* by buffer, then in graph order */
    size_t access_count;
    uint64_t access_capacity;
    user *users;  /* of one buffer */
    bool *before; /* TASKS_MAX for each: whether it waits for another user */
    gbx_memory_map *map;
    int64_t deadline_ns;
    uint64_t ranges_kept;
} overlaps;

/* --- which buffers --- */

static bool is_about_pair(const gbx_audit_finding *f) {
    return f->kind == GBX_AUDIT_READ_TOO_EARLY || f->kind == GBX_AUDIT_OVERLAPPING_WRITES;
}

/* Memory does not hold what its last writer left there. */
static bool is_about_change(const gbx_audit_finding *f) {
    return !is_about_pair(f) && !f->is_seen;
}

static gbx_status view_of(const overlaps *o, const gbx_audit_side *side, gbx_tensor *out_view) {
    gbx_entry entry;
    *out_view = (gbx_tensor){0};
    GBX_TRY(gbx_entries_at(o->q->request->entries, side->entry, &entry));
    if (entry.tensor)
        gbx_record_view(entry.tensor, out_view);
    return NULL;
}

static gbx_status add_buffer(overlaps *o, const gbx_audit_side *side) {
    gbx_tensor view;
    GBX_TRY(view_of(o, side, &view));
    GBX_TRY(gbx_array_reserve(&o->buffers, &o->buffer_capacity, o->buffer_count + 1, doing));
    o->buffers[o->buffer_count++] = (buffer){.base = view.data};
    return NULL;
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_buffers(const void *a, const void *b) {
    const buffer *x = a, *y = b;
    return compare_numbers(x->base, y->base);
}

static gbx_status find_buffers(overlaps *o) {
    const gbx_audit *audit = &o->q->d->audit;
    size_t kept = 0;
    for (size_t i = 0; i < audit->finding_count; ++i)
        if (is_about_pair(&audit->findings[i]) || is_about_change(&audit->findings[i]))
            GBX_TRY(add_buffer(o, &audit->findings[i].first));
    if (o->buffer_count > 0)
        qsort(o->buffers, o->buffer_count, sizeof *o->buffers, compare_buffers);
    for (size_t i = 0; i < o->buffer_count; ++i)
        if (kept == 0 || o->buffers[kept - 1].base != o->buffers[i].base)
            o->buffers[kept++] = o->buffers[i];
    o->buffer_count = kept;
    return NULL;
}

static buffer *find_buffer(const overlaps *o, uint64_t base) {
    const buffer key = {.base = base};
    return o->buffer_count == 0
               ? NULL
               : bsearch(&key, o->buffers, o->buffer_count, sizeof key, compare_buffers);
}

/* --- who uses them --- */

static gbx_status add_access(overlaps *o, const gbx_entry *entry, uint64_t place) {
    touch made = {.place = place,
                  .task = entry->head->task,
                  .entry = entry->index,
                  .slot = entry->head->arg_index,
                  .is_write = entry->head->stage != GBX_STAGE_BEFORE};
    if (!entry->tensor)
        return NULL;
    gbx_record_view(entry->tensor, &made.view);
    made.base = made.view.data;
    if (!find_buffer(o, made.base))
        return NULL;
    GBX_TRY(gbx_array_reserve(&o->accesses, &o->access_capacity, o->access_count + 1, doing));
    o->accesses[o->access_count++] = made;
    return NULL;
}

static int compare_accesses(const void *a, const void *b) {
    const touch *x = a, *y = b;
    int order = compare_numbers(x->base, y->base);
    return order != 0 ? order : compare_numbers(x->place, y->place);
}

static gbx_status find_accesses(overlaps *o) {
    gbx_entries *entries = o->q->request->entries;
    gbx_entry entry;
    for (uint64_t i = 0; i < gbx_entries_count(entries); ++i) {
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        uint64_t place = gbx_task_graph_place(o->q->graph, entry.head->task);
        GBX_TRY(add_access(o, &entry, place));
    }
    if (o->access_count > 0)
        qsort(o->accesses, o->access_count, sizeof *o->accesses, compare_accesses);
    for (size_t i = 0; i < o->access_count; ++i) {
        buffer *b = find_buffer(o, o->accesses[i].base);
        b->first = b->count++ == 0 ? i : b->first;
    }
    return NULL;
}

/* --- what they write --- */

static bool is_late(const overlaps *o) {
    return gbx_clock_ns() > o->deadline_ns;
}

/* The ranges of the map that have an owner. */
static gbx_status take_ranges(overlaps *o, gbx_address_ranges *out_ranges) {
    gbx_memory_range found;
    for (uint64_t at = 0; gbx_memory_map_find(o->map, at, &found); at = found.end) {
        if (found.owner == 0)
            continue;
        GBX_TRY(gbx_array_reserve(&out_ranges->items, &out_ranges->capacity, out_ranges->count + 1,
                                  doing));
        out_ranges->items[out_ranges->count++] = (gbx_address_range){found.begin, found.end};
    }
    return NULL;
}

/* *out_is_known is false if nobody knows what the task writes. */
static gbx_status find_written(overlaps *o, touch *a, bool *out_is_known) {
    gbx_dependence gaps;
    *out_is_known = false;
    if (is_late(o) || a->place == UINT64_MAX || !gbx_taint_can_follow(&a->view))
        return NULL;
    gbx_status status = gbx_dependence_find_kept(&o->session, a->task, a->slot, &gaps);
    bool is_known = gaps.answer == GBX_DEPENDENCE_SOME || gaps.answer == GBX_DEPENDENCE_NONE;
    gbx_memory_map_clear(o->map);
    if (!status && is_known)
        status = gbx_taint_write(o->map, &a->view, 1, &gaps.kept);
    if (!status && is_known)
        status = take_ranges(o, &a->written);
    gbx_dependence_free(&gaps);
    o->ranges_kept += a->written.count;
    *out_is_known = is_known && o->ranges_kept <= RANGES_KEPT;
    return status;
}

/* --- order --- */

static bool is_ordered_by_time(const gbx_graph_task *a, const gbx_graph_task *b) {
    return a->end_ns <= b->begin_ns || b->end_ns <= a->begin_ns;
}

/* Whether one of two users waits for the other; `earlier` comes first in graph order. */
static bool is_ordered(const overlaps *o, const user *earlier, const user *later) {
    const touch *a = &o->accesses[earlier->first], *b = &o->accesses[later->first];
    if (o->q->d->audit.counts.has_edges)
        return gbx_task_graph_is_before(o->q->graph, a->task, b->task);
    return is_ordered_by_time(gbx_task_graph_at(o->q->graph, a->place),
                              gbx_task_graph_at(o->q->graph, b->place));
}

/* The users of a buffer, and their order; false if there are too many. */
static bool find_users(overlaps *o, const buffer *b, size_t *out_count) {
    size_t count = 0, end = b->first + b->count;
    for (size_t first = b->first, next; first < end; first = next, ++count) {
        for (next = first + 1; next < end && o->accesses[next].place == o->accesses[first].place;
             ++next)
            ;
        if (count == TASKS_MAX)
            return false;
        o->users[count] = (user){first, next - first};
    }
    for (size_t later = 0; later < count; ++later)
        for (size_t earlier = 0; earlier < later; ++earlier)
            o->before[later * TASKS_MAX + earlier] =
                is_ordered(o, &o->users[earlier], &o->users[later]);
    *out_count = count;
    return true;
}

static bool are_ordered(const overlaps *o, size_t a, size_t b) {
    return a < b ? o->before[b * TASKS_MAX + a] : o->before[a * TASKS_MAX + b];
}

/* --- buffers that are apart --- */

/* Adds what a user writes to the map. */
static gbx_status map_user(overlaps *o, const user *u) {
    for (size_t i = 0; i < u->count; ++i) {
        const gbx_address_ranges *written = &o->accesses[u->first + i].written;
        for (size_t k = 0; k < written->count; ++k)
            GBX_TRY(
                gbx_memory_map_set(o->map, &(const gbx_memory_range){written->items[k].begin,
                                                                     written->items[k].end, 1, 0}));
    }
    return NULL;
}

/* Maps what all users write that are not ordered with one. */
static gbx_status map_others(overlaps *o, size_t one, size_t count) {
    gbx_memory_map_clear(o->map);
    for (size_t other = 0; other < count; ++other)
        if (other != one && !are_ordered(o, one, other))
            GBX_TRY(map_user(o, &o->users[other]));
    return NULL;
}

/* Whether a task neither writes nor depends on what the map has. */
static gbx_status is_user_apart(overlaps *o, const user *u, bool *out_is_apart) {
    bool may_read = false;
    gbx_dependence answer = {.answer = GBX_DEPENDENCE_NONE};
    *out_is_apart = true;
    for (size_t i = 0; i < u->count; ++i) {
        const touch *a = &o->accesses[u->first + i];
        for (size_t k = 0; k < a->written.count && *out_is_apart; ++k)
            *out_is_apart =
                gbx_taint_of_range(o->map, a->written.items[k].begin, a->written.items[k].end) == 0;
        may_read |= !a->is_write && gbx_taint_of_view(o->map, &a->view) != 0;
    }
    if (!*out_is_apart || !may_read)
        return NULL;
    gbx_status status =
        gbx_dependence_ask(&o->session, o->accesses[u->first].task, o->map, 1, 0, &answer);
    *out_is_apart = !status && answer.answer == GBX_DEPENDENCE_NONE;
    gbx_dependence_free(&answer);
    return status;
}

/* --- pairs that share --- */

/* The bytes that both a user's writes and the map have; false if there are none. */
static bool share_writes(const overlaps *o, const user *u, gbx_audit_side *range) {
    bool is_any = false;
    for (size_t i = 0; i < u->count; ++i) {
        const touch *a = &o->accesses[u->first + i];
        gbx_memory_range found;
        for (size_t k = 0; k < a->written.count; ++k) {
            const gbx_address_range *w = &a->written.items[k];
            if (!gbx_memory_map_find(o->map, w->begin, &found) || found.begin >= w->end)
                continue;
            uint64_t begin = found.begin > w->begin ? found.begin : w->begin;
            uint64_t end = found.end < w->end ? found.end : w->end;
            range->begin = is_any ? range->begin : (int64_t)(begin - a->base);
            range->end = (int64_t)(end - a->base);
            is_any = true;
        }
    }
    return is_any;
}

/* The argument of a user that reads or writes. */
static gbx_audit_side side_of(const overlaps *o, const user *u, bool is_write) {
    const touch *found = &o->accesses[u->first];
    for (size_t i = 0; i < u->count; ++i)
        if (o->accesses[u->first + i].is_write == is_write &&
            (found->is_write != is_write || (is_write && found->written.count == 0)))
            found = &o->accesses[u->first + i];
    return (gbx_audit_side){.task = found->task, .entry = found->entry};
}

/* All that a user writes. */
static gbx_audit_side range_of(const overlaps *o, const user *u) {
    gbx_audit_side all = {.begin = INT64_MAX, .end = 0};
    for (size_t i = 0; i < u->count; ++i) {
        const touch *a = &o->accesses[u->first + i];
        for (size_t k = 0; k < a->written.count; ++k) {
            int64_t begin = (int64_t)(a->written.items[k].begin - a->base);
            int64_t end = (int64_t)(a->written.items[k].end - a->base);
            all.begin = begin < all.begin ? begin : all.begin;
            all.end = end > all.end ? end : all.end;
        }
    }
    return all;
}

static void set_finding(const overlaps *o, const buffer *b, gbx_audit_kind kind, const user *first,
                        const user *second, gbx_audit_side range, gbx_audit_finding *out_finding) {
    bool is_read = kind == GBX_AUDIT_READ_TOO_EARLY;
    *out_finding =
        (gbx_audit_finding){.kind = kind,
                            .first = side_of(o, first, true),
                            .second = side_of(o, second, !is_read),
                            .address = b->base + (uint64_t)range.begin,
                            .bytes = (uint64_t)(range.end - range.begin),
                            .has_no_path = o->q->d->audit.counts.has_edges,
                            .is_concurrent = !is_ordered_by_time(
                                gbx_task_graph_at(o->q->graph, o->accesses[first->first].place),
                                gbx_task_graph_at(o->q->graph, o->accesses[second->first].place)),
                            .is_read_first = is_read && second->first < first->first};
    out_finding->first.begin = out_finding->second.begin = range.begin;
    out_finding->first.end = out_finding->second.end = range.end;
}

/* Whether two users without order share bytes, and how; `later` comes second in graph order. */
static gbx_status compare_users(overlaps *o, const buffer *b, const user *earlier,
                                const user *later, gbx_audit_finding *out_finding, bool *out_do) {
    gbx_audit_side range;
    bool is_apart;
    gbx_memory_map_clear(o->map);
    GBX_TRY(map_user(o, earlier));
    *out_do = true;
    if (share_writes(o, later, &range)) {
        set_finding(o, b, GBX_AUDIT_OVERLAPPING_WRITES, earlier, later, range, out_finding);
        return NULL;
    }
    GBX_TRY(is_user_apart(o, later, &is_apart));
    if (!is_apart) {
        set_finding(o, b, GBX_AUDIT_READ_TOO_EARLY, earlier, later, range_of(o, earlier),
                    out_finding);
        return NULL;
    }
    gbx_memory_map_clear(o->map);
    GBX_TRY(map_user(o, later));
    GBX_TRY(is_user_apart(o, earlier, &is_apart));
    *out_do = !is_apart;
    if (!is_apart)
        set_finding(o, b, GBX_AUDIT_READ_TOO_EARLY, later, earlier, range_of(o, later),
                    out_finding);
    return NULL;
}

static bool is_listed(const gbx_audit *audit, const gbx_audit_finding *f) {
    for (size_t i = 0; i < audit->finding_count; ++i) {
        const gbx_audit_finding *other = &audit->findings[i];
        bool is_same = other->first.task == f->first.task && other->second.task == f->second.task;
        bool is_turned = other->first.task == f->second.task && other->second.task == f->first.task;
        if (is_about_pair(other) && (is_same || is_turned))
            return true;
    }
    return false;
}

static gbx_status add_finding(overlaps *o, const gbx_audit_finding *f) {
    gbx_audit *audit = &o->q->d->audit;
    if (is_listed(audit, f))
        return NULL;
    gbx_audit_finding *grown = realloc(audit->findings, (audit->finding_count + 1) * sizeof *grown);
    if (!grown)
        return gbx_fail_memory("%s", doing);
    audit->findings = grown;
    grown[audit->finding_count++] = *f;
    return gbx_inquiry_add_audit(o->q, audit->finding_count - 1);
}

/* The first user without order that shares bytes with one. */
static gbx_status find_partner(overlaps *o, buffer *b, size_t one, size_t count) {
    for (size_t other = 0; other < count && !is_late(o); ++other) {
        const user *earlier = &o->users[one < other ? one : other];
        const user *later = &o->users[one < other ? other : one];
        gbx_audit_finding finding;
        bool do_share;
        if (other == one || are_ordered(o, one, other))
            continue;
        GBX_TRY(compare_users(o, b, earlier, later, &finding, &do_share));
        if (!do_share)
            continue;
        ++b->sharing;
        return add_finding(o, &finding);
    }
    return NULL;
}

static gbx_status ask_buffer(overlaps *o, buffer *b) {
    size_t count;
    bool is_known = true;
    for (size_t i = b->first; i < b->first + b->count && is_known; ++i)
        if (o->accesses[i].is_write)
            GBX_TRY(find_written(o, &o->accesses[i], &is_known));
    if (!is_known || b->base == 0 || !find_users(o, b, &count))
        return NULL;
    b->is_known = b->is_apart = true;
    for (size_t i = 0; i < count && b->is_known; ++i) {
        bool is_apart;
        GBX_TRY(map_others(o, i, count));
        GBX_TRY(is_user_apart(o, &o->users[i], &is_apart));
        if (!is_apart)
            GBX_TRY(find_partner(o, b, i, count));
        b->is_known = !is_late(o);
        b->is_apart &= is_apart && b->is_known;
    }
    return NULL;
}

/* Memory that is cut into too many ranges cannot be compared. */
static gbx_status ask_buffers(overlaps *o) {
    for (size_t i = 0; i < o->buffer_count; ++i) {
        gbx_status status = ask_buffer(o, &o->buffers[i]);
        if (status && gbx_status_code(status) != GBX_EXHAUSTED)
            return status;
        o->buffers[i].is_apart &= !status;
        gbx_status_free(status);
    }
    return NULL;
}

/* --- changes --- */

/* Copies what an entry holds of the memory from `begin` on; what it does not have stays. */
static gbx_status copy_bytes(const overlaps *o, uint64_t entry, uint64_t begin, uint64_t size,
                             unsigned char *bytes) {
    gbx_entry found;
    gbx_tensor view;
    gbx_byte_runs runs;
    gbx_byte_run run;
    GBX_TRY(gbx_entries_at(o->q->request->entries, entry, &found));
    if (!found.tensor || !gbx_entry_has_values(&found))
        return NULL;
    gbx_record_view(found.tensor, &view);
    uint64_t at = found.tensor->bin_offset, stored = gbx_entry_stored_bytes(&found);
    gbx_byte_runs_begin(&view, &runs);
    while (gbx_byte_runs_next(&runs, &run)) {
        uint64_t first = run.begin > begin ? run.begin : begin;
        uint64_t end = run.end < begin + size ? run.end : begin + size;
        uint64_t offset = run.offset + (first - run.begin);
        if (first < end && offset <= stored && end - first <= stored - offset)
            GBX_TRY(gbx_reader_read_payload(o->q->reader, at + offset, bytes + (first - begin),
                                            end - first));
    }
    return NULL;
}

/* Whether all bytes of a range that the writer really wrote are as it left them. */
static gbx_status are_equal(const overlaps *o, const gbx_audit_finding *f, const touch *writer,
                            uint64_t begin, uint64_t size, bool *out_are) {
    unsigned char *left = calloc(2, size), *read = left ? left + size : NULL;
    if (!left)
        return gbx_fail_memory("%s", doing);
    memset(read, 1, size); /* what either does not have differs */
    gbx_status status = copy_bytes(o, f->first.entry, begin, size, left);
    if (!status)
        status = copy_bytes(o, f->second.entry, begin, size, read);
    *out_are = !status;
    for (size_t i = 0; i < writer->written.count && *out_are; ++i) {
        gbx_address_range range = writer->written.items[i];
        uint64_t from = range.begin > begin ? range.begin : begin;
        uint64_t end = range.end < begin + size ? range.end : begin + size;
        *out_are =
            from >= end || memcmp(left + (from - begin), read + (from - begin), end - from) == 0;
    }
    free(left);
    return status;
}

static const touch *find_writer(const overlaps *o, const buffer *b, const gbx_audit_side *side) {
    gbx_entry entry;
    gbx_status status = gbx_entries_at(o->q->request->entries, side->entry, &entry);
    uint32_t slot = status ? GBX_NO_ARGUMENT : entry.head->arg_index;
    gbx_status_free(status);
    for (size_t i = b->first; i < b->first + b->count; ++i) {
        const touch *a = &o->accesses[i];
        if (a->is_write && a->task == side->task && a->slot == slot)
            return a;
    }
    return NULL;
}

/* Whether the bytes that changed are none that the last writer, by its view, really wrote. */
static gbx_status are_of_others(const overlaps *o, const buffer *b, const gbx_audit_finding *f,
                                bool *out_are) {
    const touch *writer = find_writer(o, b, &f->first);
    uint64_t begin = b->base + (uint64_t)f->first.begin, end = b->base + (uint64_t)f->first.end;
    bool is_inside = false;
    *out_are = false;
    if (!writer || begin >= end || gbx_dtype_is_packed(writer->view.dtype))
        return NULL;
    for (size_t i = 0; i < writer->written.count; ++i)
        is_inside |= writer->written.items[i].begin < end && writer->written.items[i].end > begin;
    *out_are = !is_inside;
    if (!is_inside || f->is_result || end - begin > CHANGE_MAX)
        return NULL;
    return are_equal(o, f, writer, begin, end - begin, out_are);
}

/* --- pairs --- */

static user find_user(const overlaps *o, const buffer *b, uint64_t task) {
    uint64_t place = gbx_task_graph_place(o->q->graph, task);
    size_t low = b->first, high = b->first + b->count, end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->accesses[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < b->first + b->count && o->accesses[end].task == task; ++end)
        ;
    return (user){low, end - low};
}

static gbx_status is_pair_apart(overlaps *o, buffer *b, const gbx_audit_finding *f, bool *out_is) {
    gbx_tensor second;
    GBX_TRY(view_of(o, &f->second, &second));
    *out_is = second.data == b->base;
    if (b->is_apart || !*out_is)
        return NULL;
    user one = find_user(o, b, f->first.task), other = find_user(o, b, f->second.task);
    gbx_audit_finding ignored;
    bool do_share = true, is_turned = one.first > other.first;
    if (one.count > 0 && other.count > 0 && !is_late(o))
        GBX_TRY(compare_users(o, b, is_turned ? &other : &one, is_turned ? &one : &other, &ignored,
                              &do_share));
    *out_is = !do_share;
    b->sharing += do_share;
    return NULL;
}

/* --- clues --- */

static gbx_status judge(overlaps *o, const gbx_audit_finding *f, bool *out_is_harmless) {
    gbx_tensor first;
    *out_is_harmless = false;
    GBX_TRY(view_of(o, &f->first, &first));
    buffer *b = find_buffer(o, first.data);
    if (!b || !b->is_known)
        return NULL;
    if (is_about_pair(f))
        return is_pair_apart(o, b, f, out_is_harmless);
    return b->is_apart ? are_of_others(o, b, f, out_is_harmless) : NULL;
}

static gbx_status report_dropped(gbx_inquiry *q, size_t pairs, size_t changes) {
    q->d->asked[GBX_ASKED_AUDIT].findings -= pairs + changes;
    if (pairs > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_AUDIT, "%zu %s without order %s the same memory, and %s no byte of it",
            pairs, pairs == 1 ? "pair of tasks" : "pairs of tasks",
            pairs == 1 ? "declares" : "declare", pairs == 1 ? "shares" : "share"));
    if (changes > 0)
        GBX_TRY(gbx_inquiry_note_harmless(q, GBX_ASKED_AUDIT,
                                          "%zu %s of bytes that the task which declares to write "
                                          "them leaves to others",
                                          changes, changes == 1 ? "change" : "changes"));
    return NULL;
}

static const gbx_audit_finding *finding_of(const gbx_inquiry *q, const gbx_clue *clue) {
    const gbx_audit_finding *f =
        clue->source == GBX_CLUE_AUDIT ? &q->d->audit.findings[clue->index] : NULL;
    return f && (is_about_pair(f) || is_about_change(f)) ? f : NULL;
}

/* Marks in `drops` what is harmless. */
static gbx_status judge_clues(overlaps *o, bool *drops) {
    for (size_t i = 0; i < o->q->clue_count; ++i) {
        const gbx_audit_finding *f = finding_of(o->q, &o->q->clues[i]);
        if (f)
            GBX_TRY(judge(o, f, &drops[i]));
    }
    return NULL;
}

/* Tasks of the buffer share bytes, but no pair is known that does. */
static gbx_status is_needed(const overlaps *o, const gbx_audit_finding *f, bool *out_is) {
    gbx_tensor first;
    GBX_TRY(view_of(o, &f->first, &first));
    const buffer *b = find_buffer(o, first.data);
    *out_is = b && !b->is_apart && b->sharing == 0;
    return NULL;
}

static gbx_status drop_clues(overlaps *o, const bool *drops) {
    gbx_inquiry *q = o->q;
    size_t kept = 0, pairs = 0, changes = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        const gbx_audit_finding *f = drops[i] ? finding_of(q, &clue) : NULL;
        bool is_kept = !f;
        if (f)
            GBX_TRY(is_needed(o, f, &is_kept));
        pairs += !is_kept && is_about_pair(f);
        changes += !is_kept && is_about_change(f);
        if (is_kept)
            q->clues[kept++] = clue;
    }
    q->clue_count = kept;
    return report_dropped(q, pairs, changes);
}

static gbx_status compare_all(overlaps *o) {
    /* Findings that are not listed may be about these buffers, too. */
    if (o->q->d->audit.counts.has_more)
        return NULL;
    GBX_TRY(find_buffers(o));
    if (o->buffer_count == 0)
        return NULL;
    GBX_TRY(find_accesses(o));
    o->users = calloc(TASKS_MAX, sizeof *o->users);
    o->before = calloc((size_t)TASKS_MAX * TASKS_MAX, sizeof *o->before);
    if (!o->users || !o->before)
        return gbx_fail_memory("%s", doing);
    GBX_TRY(gbx_inquiry_open_session(o->q, &o->session));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &o->map));
    GBX_TRY(ask_buffers(o));
    bool *drops = calloc(o->q->clue_count + 1, sizeof *drops);
    if (!drops)
        return gbx_fail_memory("%s", doing);
    gbx_status status = judge_clues(o, drops);
    if (!status)
        status = drop_clues(o, drops);
    free(drops);
    return status;
}

gbx_status gbx_inquiry_compare_overlaps(gbx_inquiry *q) {
    overlaps o = {.q = q, .deadline_ns = gbx_clock_ns() + OVERLAPS_NS};
    gbx_status status = compare_all(&o);
    gbx_replay_session_close(&o.session);
    gbx_memory_map_destroy(o.map);
    for (size_t i = 0; i < o.access_count; ++i)
        free(o.accesses[i].written.items);
    free(o.accesses);
    free(o.buffers);
    free(o.users);
    free(o.before);
    return status;
}
