/*
 * Do two tasks without order really share memory? An audit knows what they declare: whole buffers,
 * perhaps, of which each writes its own rows. Their kernels are called again to see which bytes
 * they write, and whether a reader's outputs depend on them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diagnose/internal.h"
#include "diagnose/taint.h"

enum { CALLS_MAX = 4096 }; /* pairs that are not asked about then stay findings */
#define GAPS_KEPT (UINT64_C(1) << 22)

static const char doing[] = "comparing what tasks write";

/* What a task writes of one argument. */
typedef struct writer {
    uint64_t task;
    uint32_t slot;
    gbx_tensor view;
    bool is_asked;
    gbx_dependence gaps;
} writer;

typedef struct overlaps {
    gbx_inquiry *q;
    gbx_replay_session session;
    writer *writers; /* by task and slot */
    size_t count;
    uint64_t capacity;
    gbx_memory_map *first;  /* what one task writes: 1 */
    gbx_memory_map *second; /* and the other */
    uint64_t calls_left;
    uint64_t gaps_kept;
} overlaps;

/* --- writers --- */

static int compare_writers(const void *a, const void *b) {
    const writer *x = a, *y = b;
    int order = (x->task > y->task) - (x->task < y->task);
    return order != 0 ? order : (x->slot > y->slot) - (x->slot < y->slot);
}

static gbx_status read_side(const overlaps *o, const gbx_audit_side *side, writer *out_writer) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(o->q->request->entries, side->entry, &entry));
    *out_writer = (writer){.task = side->task, .slot = entry.head->arg_index};
    if (entry.tensor)
        gbx_record_view(entry.tensor, &out_writer->view);
    return NULL;
}

static gbx_status add_writer(overlaps *o, const gbx_audit_side *side) {
    GBX_TRY(gbx_array_reserve(&o->writers, &o->capacity, o->count + 1, doing));
    GBX_TRY(read_side(o, side, &o->writers[o->count]));
    ++o->count;
    return NULL;
}

static bool is_about_pair(const gbx_audit_finding *f) {
    return f->kind == GBX_AUDIT_READ_TOO_EARLY || f->kind == GBX_AUDIT_OVERLAPPING_WRITES;
}

static gbx_status gather(overlaps *o) {
    const gbx_audit *audit = &o->q->d->audit;
    size_t kept = 0;
    for (size_t i = 0; i < audit->finding_count; ++i) {
        const gbx_audit_finding *f = &audit->findings[i];
        if (is_about_pair(f))
            GBX_TRY(add_writer(o, &f->first));
        if (f->kind == GBX_AUDIT_OVERLAPPING_WRITES)
            GBX_TRY(add_writer(o, &f->second));
    }
    if (o->count > 0)
        qsort(o->writers, o->count, sizeof *o->writers, compare_writers);
    for (size_t i = 0; i < o->count; ++i)
        if (kept == 0 || compare_writers(&o->writers[kept - 1], &o->writers[i]) != 0)
            o->writers[kept++] = o->writers[i];
    o->count = kept;
    return NULL;
}

static bool is_known(const writer *w) {
    return (w->gaps.answer == GBX_DEPENDENCE_SOME || w->gaps.answer == GBX_DEPENDENCE_NONE) &&
           gbx_taint_can_follow(&w->view);
}

/* Its gaps stay as long as there is room. */
static gbx_status need_gaps(overlaps *o, writer *w) {
    if (w->is_asked)
        return NULL;
    gbx_dependence_free(&w->gaps);
    if (o->calls_left == 0)
        return NULL;
    --o->calls_left;
    GBX_TRY(gbx_dependence_find_kept(&o->session, w->task, w->slot, &w->gaps));
    w->is_asked = o->gaps_kept + w->gaps.kept.count <= GAPS_KEPT;
    o->gaps_kept += w->is_asked ? w->gaps.kept.count : 0;
    return NULL;
}

/* Puts what the task of a side writes into a map; *out_is_known is false if that is unknown. */
static gbx_status map_writes(overlaps *o, const gbx_audit_side *side, gbx_memory_map *map,
                             bool *out_is_known) {
    writer key;
    GBX_TRY(read_side(o, side, &key));
    writer *w = bsearch(&key, o->writers, o->count, sizeof key, compare_writers);
    *out_is_known = false;
    gbx_memory_map_clear(map);
    GBX_TRY(need_gaps(o, w));
    *out_is_known = is_known(w);
    if (!*out_is_known)
        return NULL;
    GBX_TRY(gbx_taint_write(map, &w->view, 1, NULL));
    for (size_t i = 0; i < w->gaps.kept.count; ++i) {
        const gbx_address_range *gap = &w->gaps.kept.items[i];
        GBX_TRY(gbx_memory_map_set(map, &(const gbx_memory_range){gap->begin, gap->end, 0, 0}));
    }
    return NULL;
}

/* --- pairs --- */

static bool are_disjoint(const gbx_memory_map *a, const gbx_memory_map *b) {
    gbx_memory_range range;
    for (uint64_t at = 0; gbx_memory_map_find(a, at, &range); at = range.end)
        if (range.owner != 0 && gbx_taint_of_range(b, range.begin, range.end) != 0)
            return false;
    return true;
}

static gbx_status compare_writes(overlaps *o, const gbx_audit_finding *f, bool *out_are_apart) {
    bool is_first_known, is_second_known;
    GBX_TRY(map_writes(o, &f->first, o->first, &is_first_known));
    GBX_TRY(map_writes(o, &f->second, o->second, &is_second_known));
    *out_are_apart = is_first_known && is_second_known && are_disjoint(o->first, o->second);
    return NULL;
}

static gbx_status compare_read(overlaps *o, const gbx_audit_finding *f, bool *out_are_apart) {
    bool is_writer_known;
    gbx_dependence answer;
    GBX_TRY(map_writes(o, &f->first, o->first, &is_writer_known));
    if (!is_writer_known || o->calls_left == 0)
        return NULL;
    --o->calls_left;
    gbx_status status = gbx_dependence_ask(&o->session, f->second.task, o->first, 1, &answer);
    *out_are_apart = !status && answer.answer == GBX_DEPENDENCE_NONE;
    gbx_dependence_free(&answer);
    return status;
}

/* Memory that is cut into too many ranges cannot be compared. */
static gbx_status compare(overlaps *o, const gbx_audit_finding *f, bool *out_are_apart) {
    *out_are_apart = false;
    gbx_status status = f->kind == GBX_AUDIT_READ_TOO_EARLY ? compare_read(o, f, out_are_apart)
                                                            : compare_writes(o, f, out_are_apart);
    if (gbx_status_code(status) != GBX_EXHAUSTED)
        return status;
    gbx_status_free(status);
    gbx_memory_map_clear(o->first);
    gbx_memory_map_clear(o->second);
    return NULL;
}

/* --- clues --- */

static gbx_status drop_clues(overlaps *o) {
    gbx_inquiry *q = o->q;
    size_t kept = 0, dropped = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        bool are_apart = false;
        if (clue.source == GBX_CLUE_AUDIT && is_about_pair(&q->d->audit.findings[clue.index]))
            GBX_TRY(compare(o, &q->d->audit.findings[clue.index], &are_apart));
        dropped += are_apart;
        if (!are_apart)
            q->clues[kept++] = clue;
    }
    q->clue_count = kept;
    q->d->asked[GBX_ASKED_AUDIT].findings -= dropped;
    return dropped == 0 ? NULL
                        : gbx_inquiry_lack(q, GBX_ASKED_AUDIT,
                                           "%zu %s without order that %s the same memory %s no "
                                           "byte of it, and %s not called a finding",
                                           dropped, dropped == 1 ? "pair of tasks" : "pairs of tasks",
                                           dropped == 1 ? "declares" : "declare",
                                           dropped == 1 ? "shares" : "share",
                                           dropped == 1 ? "is" : "are");
}

static gbx_status compare_all(overlaps *o) {
    GBX_TRY(gather(o));
    if (o->count == 0)
        return NULL;
    GBX_TRY(gbx_inquiry_open_session(o->q, &o->session));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &o->first));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &o->second));
    return drop_clues(o);
}

gbx_status gbx_inquiry_compare_overlaps(gbx_inquiry *q) {
    overlaps o = {.q = q, .calls_left = CALLS_MAX};
    gbx_status status = compare_all(&o);
    gbx_replay_session_close(&o.session);
    gbx_memory_map_destroy(o.first);
    gbx_memory_map_destroy(o.second);
    for (size_t i = 0; i < o.count; ++i)
        gbx_dependence_free(&o.writers[i].gaps);
    free(o.writers);
    return status;
}
