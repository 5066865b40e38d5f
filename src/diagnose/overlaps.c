/*
 * Do two tasks without order really share memory? An audit knows what they declare: whole buffers,
 * perhaps, of which each writes its own rows. Their kernels are called again to see which bytes
 * they write, and whether a reader's outputs depend on them. And what such a task leaves of a
 * buffer holds rows of others, which may change without anything being wrong.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/byte_runs.h"
#include "base/memory.h"
#include "diagnose/internal.h"
#include "diagnose/taint.h"

enum { CALLS_MAX = 4096 }; /* pairs that are not asked about then stay findings */
#define GAPS_KEPT (UINT64_C(1) << 22)
#define CHANGE_MAX (UINT64_C(1) << 26) /* bytes */

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

/* Memory does not hold what its last writer left there. */
static bool is_about_change(const gbx_audit_finding *f) {
    return !is_about_pair(f) && !f->is_seen;
}

static gbx_status gather(overlaps *o) {
    const gbx_audit *audit = &o->q->d->audit;
    size_t kept = 0;
    for (size_t i = 0; i < audit->finding_count; ++i) {
        const gbx_audit_finding *f = &audit->findings[i];
        if (is_about_pair(f) || is_about_change(f))
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
static gbx_status are_equal(const overlaps *o, const gbx_audit_finding *f, uint64_t begin,
                            uint64_t size, bool *out_are) {
    unsigned char *left = calloc(2, size), *read = left ? left + size : NULL;
    if (!left)
        return gbx_fail_memory("%s", doing);
    memset(read, 1, size); /* what either does not have differs */
    gbx_status status = copy_bytes(o, f->first.entry, begin, size, left);
    if (!status)
        status = copy_bytes(o, f->second.entry, begin, size, read);
    *out_are = !status;
    for (uint64_t i = 0; i < size && *out_are; ++i)
        *out_are =
            left[i] == read[i] || gbx_taint_of_range(o->first, begin + i, begin + i + 1) == 0;
    free(left);
    return status;
}

/* Whether the bytes that changed are none that the last writer, by its view, really wrote. */
static gbx_status compare_change(overlaps *o, const gbx_audit_finding *f, bool *out_are_apart) {
    bool is_known;
    writer side;
    GBX_TRY(read_side(o, &f->first, &side));
    GBX_TRY(map_writes(o, &f->first, o->first, &is_known));
    uint64_t begin = side.view.data + (uint64_t)f->first.begin;
    uint64_t end = side.view.data + (uint64_t)f->first.end;
    if (!is_known || begin >= end || gbx_dtype_is_packed(side.view.dtype))
        return NULL;
    *out_are_apart = gbx_taint_of_range(o->first, begin, end) == 0;
    if (*out_are_apart || f->is_result || end - begin > CHANGE_MAX)
        return NULL;
    return are_equal(o, f, begin, end - begin, out_are_apart);
}

/* Memory that is cut into too many ranges cannot be compared. */
static gbx_status compare(overlaps *o, const gbx_audit_finding *f, bool *out_are_apart) {
    *out_are_apart = false;
    gbx_status status = f->kind == GBX_AUDIT_READ_TOO_EARLY ? compare_read(o, f, out_are_apart)
                        : is_about_pair(f)                  ? compare_writes(o, f, out_are_apart)
                                                            : compare_change(o, f, out_are_apart);
    if (gbx_status_code(status) != GBX_EXHAUSTED)
        return status;
    gbx_status_free(status);
    gbx_memory_map_clear(o->first);
    gbx_memory_map_clear(o->second);
    return NULL;
}

/* --- clues --- */

static gbx_status report_dropped(gbx_inquiry *q, size_t pairs, size_t changes) {
    q->d->asked[GBX_ASKED_AUDIT].findings -= pairs + changes;
    if (pairs > 0)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_AUDIT,
                                 "%zu %s without order that %s the same memory %s no byte of it, "
                                 "and %s not called a finding",
                                 pairs, pairs == 1 ? "pair of tasks" : "pairs of tasks",
                                 pairs == 1 ? "declares" : "declare",
                                 pairs == 1 ? "shares" : "share", pairs == 1 ? "is" : "are"));
    if (changes > 0)
        GBX_TRY(gbx_inquiry_lack(q, GBX_ASKED_AUDIT,
                                 "%zu %s of bytes that the task which declares to write them "
                                 "leaves to others %s not called a finding",
                                 changes, changes == 1 ? "change" : "changes",
                                 changes == 1 ? "is" : "are"));
    return NULL;
}

static gbx_status drop_clues(overlaps *o) {
    gbx_inquiry *q = o->q;
    size_t kept = 0, pairs = 0, changes = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue clue = q->clues[i];
        const gbx_audit_finding *f =
            clue.source == GBX_CLUE_AUDIT ? &q->d->audit.findings[clue.index] : NULL;
        bool are_apart = false;
        if (f && (is_about_pair(f) || is_about_change(f)))
            GBX_TRY(compare(o, f, &are_apart));
        if (!are_apart)
            q->clues[kept++] = clue;
        else
            *(is_about_pair(f) ? &pairs : &changes) += 1;
    }
    q->clue_count = kept;
    return report_dropped(q, pairs, changes);
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
