/* Hints: what is odd about the arguments of the graph, as far as it can explain the results. */
#include <math.h>
#include <stdlib.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "diagnose/internal.h"
#include "diagnose/taint.h"

/* --- what can explain the results --- */

static bool is_upstream(const gbx_diagnosis *d, uint64_t task) {
    if (d->blame.writers[0].task == task)
        return true;
    for (size_t i = 0; i < d->upstream_count; ++i)
        if (d->upstream[i].task == task)
            return true;
    return false;
}

/* Whether an output may lie in the wrong place: then no task has written the right one. */
static bool may_miss(const gbx_odd_argument *odd) {
    return odd->kind == GBX_ODD_LOST_WRITE ||
           (odd->is_output && (odd->kind == GBX_ODD_VIEW || odd->kind == GBX_ODD_RELATION));
}

/* New memory holds NaN: only a result that is NaN can come from it. */
static bool is_nan(const gbx_diagnosis *d) {
    return d->has_blame && d->blame.has_found && gbx_dtype_is_float(d->blamed.tensor.dtype) &&
           isnan(gbx_dtype_to_f64(d->blamed.tensor.dtype, d->blame.found));
}

/* An argument of a task from which the wrong element does not come explains nothing; nor does a
 * scalar that is only unusual, if a task before the element was not compared with a reference. */
static bool can_explain(const gbx_diagnosis *d, const gbx_odd_argument *odd) {
    bool is_unusual = odd->kind == GBX_ODD_NEAR_SCALAR || odd->kind == GBX_ODD_LOOSE_SCALAR;
    if (d->has_blame && d->blame.writer_count == 0)
        return may_miss(odd) || odd->kind == GBX_ODD_ALIAS;
    if (is_unusual && d->unchecked.task != GBX_DIAGNOSIS_NOBODY)
        return false;
    if (odd->kind == GBX_ODD_UNWRITTEN && !is_nan(d))
        return false;
    bool is_known = d->has_blame && d->blame.writer_count == 1 && d->is_upstream_known;
    /* Where another kernel left what a task reads, a task between the two may be missing. */
    bool may_lack = odd->kind == GBX_ODD_SOURCE && is_known && is_upstream(d, odd->other);
    return !is_known || is_upstream(d, odd->task) || may_lack || may_miss(odd);
}

/* --- writes over what was never read --- */

/* What the task of an output really writes in it, in a new map; false if nobody knows. */
static gbx_status map_written(gbx_inquiry *q, gbx_replay_session *session, uint64_t number,
                              gbx_memory_map *map, bool *out_is_known) {
    gbx_entry entry;
    gbx_tensor view;
    gbx_dependence gaps;
    gbx_memory_map_clear(map);
    GBX_TRY(gbx_entries_at(q->request->entries, number, &entry));
    gbx_record_view(entry.tensor, &view);
    uint64_t task = entry.head->task;
    gbx_status status = gbx_dependence_find_kept(session, task, entry.head->arg_index, &gaps);
    *out_is_known = gbx_taint_can_follow(&view) &&
                    (gaps.answer == GBX_DEPENDENCE_SOME || gaps.answer == GBX_DEPENDENCE_NONE);
    if (!status && *out_is_known)
        status = gbx_taint_write(map, &view, 1, &gaps.kept);
    gbx_dependence_free(&gaps);
    return status;
}

static bool have_common(const gbx_memory_map *a, const gbx_memory_map *b) {
    gbx_memory_range found;
    for (uint64_t at = 0; gbx_memory_map_find(a, at, &found); at = found.end)
        if (found.owner != 0 && gbx_taint_of_range(b, found.begin, found.end) != 0)
            return true;
    return false;
}

/* Views may be larger than what their tasks write. */
static gbx_status is_write_lost(gbx_inquiry *q, gbx_replay_session *session,
                                gbx_memory_map *maps[2], const gbx_odd_argument *odd,
                                bool *out_is) {
    bool are_known[2];
    GBX_TRY(map_written(q, session, odd->other_entry, maps[0], &are_known[0]));
    GBX_TRY(map_written(q, session, odd->entry, maps[1], &are_known[1]));
    *out_is = !are_known[0] || !are_known[1] || have_common(maps[0], maps[1]);
    return NULL;
}

/* --- all of them --- */

/* Whether the outputs of a task depend on bytes that were never written. */
static gbx_status is_new_used(gbx_replay_session *session, gbx_memory_map *map,
                              const gbx_odd_argument *odd, bool *out_is) {
    gbx_dependence answer;
    gbx_memory_map_clear(map);
    GBX_TRY(gbx_taint_add(map, odd->found, odd->expected, 1));
    gbx_status status = gbx_dependence_ask(session, odd->task, map, 1, UINT64_MAX, &answer);
    *out_is = answer.answer == GBX_DEPENDENCE_SOME;
    gbx_dependence_free(&answer);
    return status;
}

enum { LOOKED_AT_MAX = 64 }; /* of those that take calls; others are no hints */

/* Hints come with the oddest first, and only one is said. */
static gbx_status choose(gbx_inquiry *q, gbx_replay_session *session, gbx_memory_map *maps[2]) {
    gbx_odd *odd = &q->d->odd;
    size_t lost = 0, unwritten = 0;
    bool is_aliased = false;
    for (size_t i = 0; i < odd->count; ++i) {
        gbx_odd_argument *item = &odd->items[i];
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(q->request->entries, item->entry, &entry));
        item->is_output = entry.tensor && entry.head->role != GBX_ROLE_INPUT;
        item->is_needed = can_explain(q->d, item);
        if (item->is_needed && item->kind == GBX_ODD_LOST_WRITE) {
            item->is_needed = ++lost <= LOOKED_AT_MAX;
            if (item->is_needed)
                GBX_TRY(is_write_lost(q, session, maps, item, &item->is_needed));
        } else if (item->is_needed && item->kind == GBX_ODD_UNWRITTEN) {
            item->is_needed = ++unwritten <= LOOKED_AT_MAX;
            if (item->is_needed)
                GBX_TRY(is_new_used(session, maps[0], item, &item->is_needed));
        }
        is_aliased |= item->is_needed && item->kind == GBX_ODD_ALIAS;
    }
    /* What lies over an input is missing where it should be. */
    for (size_t i = 0; i < odd->count && is_aliased; ++i)
        odd->items[i].is_needed &= odd->items[i].kind != GBX_ODD_UNWRITTEN;
    return NULL;
}

gbx_status gbx_inquiry_choose_hints(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    for (size_t i = 0; i < d->odd.count; ++i)
        d->odd.items[i].is_needed = true;
    if (!d->golden || d->odd.count == 0)
        return NULL;
    gbx_replay_session session;
    gbx_memory_map *maps[2] = {NULL, NULL};
    gbx_status status = gbx_inquiry_open_session(q, &session);
    for (size_t i = 0; i < 2 && !status; ++i)
        status = gbx_memory_map_create(GBX_OFFSETS_STAY, &maps[i]);
    if (!status)
        status = choose(q, &session, maps);
    gbx_memory_map_destroy(maps[0]);
    gbx_memory_map_destroy(maps[1]);
    gbx_replay_session_close(&session);
    return status;
}

gbx_status gbx_inquiry_find_hints(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    if (!d->golden && q->clue_count == 0) {
        d->asked[GBX_ASKED_GRAPH].not_asked = d->tasks;
        return gbx_inquiry_lack(q, GBX_ASKED_GRAPH,
                                "nothing says that results of the run are wrong");
    }
    d->asked[GBX_ASKED_GRAPH].tasks = d->tasks;
    GBX_TRY(gbx_odd_find(q->request->entries, q->graph, &d->odd));
    return gbx_inquiry_choose_hints(q);
}
