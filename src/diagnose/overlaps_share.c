/* Which bytes of a buffer its tasks really write and depend on, and who shares them. */
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "diagnose/overlaps.h"
#include "diagnose/taint.h"

#define RANGES_KEPT (UINT64_C(1) << 22) /* that tasks write, all together */

static const char doing[] = GBX_COMPARING;

/* --- what they write --- */

/* The ranges of the map that have an owner. */
static gbx_status take_ranges(gbx_overlaps *o, gbx_address_ranges *out_ranges) {
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
static gbx_status find_written(gbx_overlaps *o, gbx_touch *a, bool *out_is_known) {
    gbx_dependence gaps;
    *out_is_known = false;
    if (gbx_overlaps_are_late(o) || a->place == UINT64_MAX || !gbx_taint_can_follow(&a->view))
        return NULL;
    gbx_status status = gbx_dependence_find_kept(&o->session, a->task, a->slot, &gaps);
    bool is_known = gbx_dependence_is_known(&gaps);
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
static bool is_ordered(const gbx_overlaps *o, const gbx_buffer_user *earlier,
                       const gbx_buffer_user *later) {
    const gbx_touch *a = &o->accesses[earlier->first], *b = &o->accesses[later->first];
    if (o->q->d->audit.counts.has_edges)
        return gbx_task_graph_is_before(o->q->graph, a->task, b->task);
    return is_ordered_by_time(gbx_task_graph_at(o->q->graph, a->place),
                              gbx_task_graph_at(o->q->graph, b->place));
}

/* The users of a buffer, and their order; false if there are too many. */
static bool find_users(gbx_overlaps *o, const gbx_shared_buffer *b, size_t *out_count) {
    size_t count = 0, end = b->first + b->count;
    for (size_t first = b->first, next; first < end; first = next, ++count) {
        for (next = first + 1; next < end && o->accesses[next].place == o->accesses[first].place;
             ++next)
            ;
        if (count == GBX_BUFFER_TASKS_MAX)
            return false;
        o->users[count] = (gbx_buffer_user){first, next - first};
    }
    for (size_t later = 0; later < count; ++later)
        for (size_t earlier = 0; earlier < later; ++earlier)
            o->before[later * GBX_BUFFER_TASKS_MAX + earlier] =
                is_ordered(o, &o->users[earlier], &o->users[later]);
    *out_count = count;
    return true;
}

static bool are_ordered(const gbx_overlaps *o, size_t a, size_t b) {
    return a < b ? o->before[b * GBX_BUFFER_TASKS_MAX + a]
                 : o->before[a * GBX_BUFFER_TASKS_MAX + b];
}

/* --- buffers that are apart --- */

/* Adds what a user writes to the map. */
static gbx_status map_user(gbx_overlaps *o, const gbx_buffer_user *u) {
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
static gbx_status map_others(gbx_overlaps *o, size_t one, size_t count) {
    gbx_memory_map_clear(o->map);
    for (size_t other = 0; other < count; ++other)
        if (other != one && !are_ordered(o, one, other))
            GBX_TRY(map_user(o, &o->users[other]));
    return NULL;
}

enum { SHARED = 1, HIDING = 2 }; /* bits in the map */

/* Adds what a task reads and is NaN: whatever else it reads would change nothing. */
static gbx_status map_nan(gbx_overlaps *o, uint64_t task) {
    gbx_entries *entries = o->q->request->entries;
    for (uint64_t i = gbx_entries_find(entries, task); i < gbx_entries_count(entries); ++i) {
        gbx_entry entry;
        gbx_tensor view;
        gbx_statistics statistics;
        bool is_known;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (!entry.tensor || entry.head->stage != GBX_STAGE_BEFORE)
            continue;
        GBX_TRY(gbx_entry_statistics(&entry, o->q->reader, &statistics, &is_known));
        gbx_record_view(entry.tensor, &view);
        if (is_known && statistics.nan_count > 0)
            GBX_TRY(gbx_taint_add_view(o->map, &view, HIDING));
    }
    return NULL;
}

/* Whether a task neither writes nor depends on what the map has; the map is used up. */
static gbx_status is_user_apart(gbx_overlaps *o, const gbx_buffer_user *u, bool *out_is_apart) {
    bool may_read = false;
    gbx_dependence answer = {.answer = GBX_DEPENDENCE_NONE};
    *out_is_apart = true;
    for (size_t i = 0; i < u->count; ++i) {
        const gbx_touch *a = &o->accesses[u->first + i];
        for (size_t k = 0; k < a->written.count && *out_is_apart; ++k)
            *out_is_apart =
                gbx_taint_of_range(o->map, a->written.items[k].begin, a->written.items[k].end) == 0;
        may_read |= !a->is_write && gbx_taint_of_view(o->map, &a->view) != 0;
    }
    if (!*out_is_apart || !may_read)
        return NULL;
    GBX_TRY(map_nan(o, o->accesses[u->first].task));
    gbx_status status = gbx_dependence_ask(&o->session, o->accesses[u->first].task, o->map, SHARED,
                                           HIDING, &answer);
    *out_is_apart = !status && answer.answer == GBX_DEPENDENCE_NONE;
    gbx_dependence_free(&answer);
    return status;
}

/* --- pairs that share --- */

/* The bytes that both a user's writes and the map have; false if there are none. */
static bool share_writes(const gbx_overlaps *o, const gbx_buffer_user *u, gbx_audit_side *range) {
    bool is_any = false;
    for (size_t i = 0; i < u->count; ++i) {
        const gbx_touch *a = &o->accesses[u->first + i];
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
static gbx_audit_side side_of(const gbx_overlaps *o, const gbx_buffer_user *u, bool is_write) {
    const gbx_touch *found = &o->accesses[u->first];
    for (size_t i = 0; i < u->count; ++i)
        if (o->accesses[u->first + i].is_write == is_write &&
            (found->is_write != is_write || (is_write && found->written.count == 0)))
            found = &o->accesses[u->first + i];
    return (gbx_audit_side){.task = found->task, .entry = found->entry};
}

/* All that a user writes. */
static gbx_audit_side range_of(const gbx_overlaps *o, const gbx_buffer_user *u) {
    gbx_audit_side all = {.begin = INT64_MAX, .end = 0};
    for (size_t i = 0; i < u->count; ++i) {
        const gbx_touch *a = &o->accesses[u->first + i];
        for (size_t k = 0; k < a->written.count; ++k) {
            int64_t begin = (int64_t)(a->written.items[k].begin - a->base);
            int64_t end = (int64_t)(a->written.items[k].end - a->base);
            all.begin = begin < all.begin ? begin : all.begin;
            all.end = end > all.end ? end : all.end;
        }
    }
    return all;
}

static void set_finding(const gbx_overlaps *o, const gbx_shared_buffer *b, gbx_audit_kind kind,
                        const gbx_buffer_user *first, const gbx_buffer_user *second,
                        gbx_audit_side range, gbx_audit_finding *out_finding) {
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
gbx_status gbx_overlaps_compare(gbx_overlaps *o, const gbx_shared_buffer *b,
                                const gbx_buffer_user *earlier, const gbx_buffer_user *later,
                                gbx_audit_finding *out_finding, bool *out_do) {
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
        if (gbx_audit_is_about_pair(other) && (is_same || is_turned))
            return true;
    }
    return false;
}

static gbx_status add_finding(gbx_overlaps *o, const gbx_audit_finding *f) {
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
static gbx_status find_partner(gbx_overlaps *o, gbx_shared_buffer *b, size_t one, size_t count) {
    for (size_t other = 0; other < count && !gbx_overlaps_are_late(o); ++other) {
        const gbx_buffer_user *earlier = &o->users[one < other ? one : other];
        const gbx_buffer_user *later = &o->users[one < other ? other : one];
        gbx_audit_finding finding;
        bool do_share;
        if (other == one || are_ordered(o, one, other))
            continue;
        GBX_TRY(gbx_overlaps_compare(o, b, earlier, later, &finding, &do_share));
        if (!do_share)
            continue;
        ++b->sharing;
        return add_finding(o, &finding);
    }
    return NULL;
}

static gbx_status ask_buffer(gbx_overlaps *o, gbx_shared_buffer *b) {
    size_t count;
    bool is_known = b->count > 0;
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
        b->is_known = !gbx_overlaps_are_late(o);
        b->is_apart &= is_apart && b->is_known;
    }
    return NULL;
}

/* Memory that is cut into too many ranges cannot be compared. */
gbx_status gbx_overlaps_ask(gbx_overlaps *o) {
    for (size_t i = 0; i < o->buffer_count; ++i) {
        gbx_status status = ask_buffer(o, &o->buffers[i]);
        if (status && gbx_status_code(status) != GBX_EXHAUSTED)
            return status;
        o->buffers[i].is_apart &= !status;
        gbx_status_free(status);
    }
    return NULL;
}
