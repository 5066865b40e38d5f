/* Hints: what is odd about the arguments of the graph, as far as it can explain the results. */
#include <stdlib.h>

#include "diagnose/internal.h"
#include "diagnose/taint.h"

/* --- scalars --- */

static bool is_upstream(const gbx_diagnosis *d, uint64_t task) {
    if (d->blame.writers[0].task == task)
        return true;
    for (size_t i = 0; i < d->upstream_count; ++i)
        if (d->upstream[i].task == task)
            return true;
    return false;
}

/* A scalar of a task from which the wrong element does not come explains nothing; nor does one that
 * is only unusual, if a task before the element was not compared with a reference. */
static bool is_scalar_needed(const gbx_diagnosis *d, const gbx_odd_argument *odd) {
    bool is_known = d->has_blame && d->blame.writer_count == 1 && d->is_upstream_known;
    bool is_unusual = odd->kind == GBX_ODD_NEAR_SCALAR || odd->kind == GBX_ODD_LOOSE_SCALAR;
    if (is_unusual && d->unchecked.task != GBX_DIAGNOSIS_NOBODY)
        return false;
    return !is_known || is_upstream(d, odd->task);
}

/* --- writes over what nobody has read --- */

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

enum { LOST_MAX = 64 }; /* writes that are looked at; others are no hints */

/* Hints come with the oddest first, and only one is said. */
static gbx_status filter(gbx_inquiry *q, gbx_replay_session *session, gbx_memory_map *maps[2]) {
    gbx_odd *odd = &q->d->odd;
    size_t kept = 0, lost = 0;
    for (size_t i = 0; i < odd->count; ++i) {
        const gbx_odd_argument *item = &odd->items[i];
        bool is_lost = item->kind == GBX_ODD_LOST_WRITE, is_needed = true;
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(q->request->entries, item->entry, &entry));
        if (is_lost && ++lost > LOST_MAX)
            is_needed = false;
        else if (is_lost)
            GBX_TRY(is_write_lost(q, session, maps, item, &is_needed));
        else if (entry.scalar)
            is_needed = is_scalar_needed(q->d, item);
        if (is_needed)
            odd->items[kept++] = *item;
    }
    odd->count = kept;
    return NULL;
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
    if (!d->golden || d->odd.count == 0)
        return NULL;
    gbx_replay_session session;
    gbx_memory_map *maps[2] = {NULL, NULL};
    gbx_status status = gbx_inquiry_open_session(q, &session);
    for (size_t i = 0; i < 2 && !status; ++i)
        status = gbx_memory_map_create(GBX_OFFSETS_STAY, &maps[i]);
    if (!status)
        status = filter(q, &session, maps);
    gbx_memory_map_destroy(maps[0]);
    gbx_memory_map_destroy(maps[1]);
    gbx_replay_session_close(&session);
    return status;
}
