/* Who was hurt by a finding, and which findings may only follow from another. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/downstream.h"
#include "base/float_bits.h"
#include "base/memory.h"
#include "diagnose/internal.h"

static const char doing[] = "diagnosing";

bool gbx_has_number(const uint64_t *numbers, size_t count, uint64_t number) {
    for (size_t i = 0; i < count; ++i)
        if (numbers[i] == number)
            return true;
    return false;
}

/* Tasks that an audit saw read what the accused ones wrote outside of their outputs. */
static gbx_status find_hit(const gbx_inquiry *q, const gbx_diagnosis_finding *finding,
                           uint64_t **hit, size_t *hit_count) {
    uint64_t capacity = 0;
    for (size_t i = 0; i < finding->clue_count; ++i) {
        const gbx_clue *clue = &finding->clues[i];
        if (clue->source != GBX_CLUE_AUDIT || !clue->is_assigned ||
            clue->kind != GBX_DIAGNOSIS_UNDECLARED_WRITE)
            continue;
        uint64_t task = q->d->audit.findings[clue->index].second.task;
        if (gbx_has_number(*hit, *hit_count, task) ||
            gbx_has_number(finding->tasks, finding->task_count, task))
            continue;
        GBX_TRY(gbx_array_reserve(hit, &capacity, *hit_count + 1, doing));
        (*hit)[(*hit_count)++] = task;
    }
    return NULL;
}

typedef struct placed_task {
    uint64_t place;
    uint64_t task;
} placed_task;

static int compare_places(const void *a, const void *b) {
    const placed_task *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* Adds tasks to the victims, which stay in graph order. */
static gbx_status add_victims(const gbx_inquiry *q, gbx_diagnosis_finding *finding,
                              const uint64_t *tasks, size_t count) {
    size_t all = finding->victim_count + count;
    uint64_t *victims = realloc(finding->victims, (all + 1) * sizeof *victims);
    placed_task *placed = calloc(all + 1, sizeof *placed);
    if (victims)
        finding->victims = victims;
    if (!victims || !placed) {
        free(placed);
        return gbx_fail_memory("%s", doing);
    }
    for (size_t i = 0; i < all; ++i) {
        uint64_t task = i < count ? tasks[i] : victims[i - count];
        placed[i] = (placed_task){gbx_task_graph_place(q->graph, task), task};
    }
    qsort(placed, all, sizeof *placed, compare_places);
    for (size_t i = 0; i < all; ++i)
        victims[i] = placed[i].task;
    finding->victim_count = all;
    free(placed);
    return NULL;
}

/* Those who read what the accused tasks left, in their outputs or outside of them. */
gbx_status gbx_finding_find_victims(const gbx_inquiry *q, gbx_diagnosis_finding *finding) {
    uint64_t *hit = NULL, *guilty = NULL;
    size_t hit_count = 0, count = finding->task_count;
    gbx_status status = find_hit(q, finding, &hit, &hit_count);
    if (!status && !(guilty = malloc((count + hit_count + 1) * sizeof *guilty)))
        status = gbx_fail_memory("%s", doing);
    for (size_t i = 0; !status && i < count + hit_count; ++i)
        guilty[i] = i < count ? finding->tasks[i] : hit[i - count];
    if (!status)
        status = gbx_downstream_find(q->request->entries, q->graph, guilty, count + hit_count,
                                     &finding->victims, &finding->victim_count,
                                     &finding->are_victims_known);
    if (!status && hit_count > 0)
        status = add_victims(q, finding, hit, hit_count);
    free(guilty);
    free(hit);
    return status;
}

/* --- consequences --- */

/* NaN, infinities, and values whose square is infinite: a kernel need not treat them as its
 * reference does. */
static bool is_wild(const gbx_entry *entry, const gbx_statistics *statistics) {
    const double most = entry->dtype == GBX_FLOAT64 ? sqrt(DBL_MAX) : sqrt((double)FLT_MAX);
    return statistics->nan_count > 0 || statistics->inf_count > 0 ||
           fabs(gbx_f64_of_bits(statistics->min_bits)) > most ||
           fabs(gbx_f64_of_bits(statistics->max_bits)) > most;
}

static gbx_status has_wild_inputs(const gbx_inquiry *q, uint64_t task, bool *out_has) {
    gbx_entries *entries = q->request->entries;
    const uint64_t count = gbx_entries_count(entries);
    *out_has = false;
    for (uint64_t i = gbx_entries_find(entries, task); i < count && !*out_has; ++i) {
        gbx_entry entry;
        gbx_statistics statistics;
        bool is_there;
        GBX_TRY(gbx_entries_at(entries, i, &entry));
        if (entry.head->task != task)
            return NULL;
        if (entry.head->stage != GBX_STAGE_BEFORE || !gbx_dtype_is_float(entry.dtype))
            continue;
        GBX_TRY(gbx_entry_statistics(&entry, q->reader, &statistics, &is_there));
        *out_has = is_there && is_wild(&entry, &statistics);
    }
    return NULL;
}

/* Whether a reference has found a task of the same kernels right. */
static bool has_right_task(const gbx_inquiry *q, const gbx_diagnosis_finding *finding) {
    const gbx_check_report *check = &q->d->check;
    for (uint64_t i = 0; i < check->count; ++i)
        if (check->lines[i].verdict == GBX_CHECK_RIGHT &&
            memcmp(check->lines[i].func_ids, finding->func_ids, sizeof finding->func_ids) == 0)
            return true;
    return false;
}

static bool reads_from(const gbx_diagnosis_finding *from, uint64_t task) {
    return gbx_has_number(from->victims, from->victim_count, task);
}

static bool all_read_from(const gbx_diagnosis_finding *from, const gbx_diagnosis_finding *finding) {
    for (size_t i = 0; i < finding->task_count; ++i)
        if (!reads_from(from, finding->tasks[i]))
            return false;
    return true;
}

/* A kernel that is wrong for its inputs only where these are wrong, or such as nobody expects. */
static gbx_status is_wrong_for_wrong(const gbx_inquiry *q, const gbx_diagnosis_finding *finding,
                                     const gbx_diagnosis_finding *from, bool *out_is) {
    *out_is = false;
    if (!all_read_from(from, finding))
        return NULL;
    *out_is = has_right_task(q, finding);
    return *out_is ? NULL : has_wild_inputs(q, finding->task, out_is);
}

/* What a task does with wrong inputs may be right: an index from them leads anywhere, and what
 * nobody wrote is NaN, which a kernel need not treat as its reference does, another value each
 * time, and no flag. */
static bool may_follow(const gbx_diagnosis_finding *finding, const gbx_diagnosis_finding *from) {
    switch (finding->kind) {
    case GBX_DIAGNOSIS_WRONG_RESULT:
    case GBX_DIAGNOSIS_NOT_DETERMINISTIC:
    case GBX_DIAGNOSIS_NOT_REPEATED:
    case GBX_DIAGNOSIS_WRITE_RACE:
    case GBX_DIAGNOSIS_READ_RACE:
    case GBX_DIAGNOSIS_DATA_RACE:
        return from->kind == GBX_DIAGNOSIS_UNWRITTEN_READ ||
               from->kind == GBX_DIAGNOSIS_UNINITIALISED;
    case GBX_DIAGNOSIS_STRAY_WRITE:
    case GBX_DIAGNOSIS_OUT_OF_BOUNDS_READ:
    case GBX_DIAGNOSIS_OUT_OF_BOUNDS_WRITE:
    case GBX_DIAGNOSIS_UNDECLARED_READ:
    case GBX_DIAGNOSIS_OVERRUN:
    case GBX_DIAGNOSIS_UNDERRUN:
    case GBX_DIAGNOSIS_STRAY:
    case GBX_DIAGNOSIS_BAD_LOCAL:
    case GBX_DIAGNOSIS_UNDEFINED:
    case GBX_DIAGNOSIS_CRASH:
    case GBX_DIAGNOSIS_HANG:
    case GBX_DIAGNOSIS_FAILS_AGAIN:
    case GBX_DIAGNOSIS_ENDLESS_WAIT:
    case GBX_DIAGNOSIS_NAN:
        return true;
    default:
        return false;
    }
}

/* Few findings have victims; those that somebody is a victim of come first. */
gbx_status gbx_inquiry_find_consequences(const gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    for (size_t k = 0; k < d->finding_count; ++k) {
        const gbx_diagnosis_finding *from = &d->findings[k];
        for (size_t i = k + 1; i < d->finding_count && from->victim_count > 0; ++i) {
            gbx_diagnosis_finding *finding = &d->findings[i];
            if (finding->follows >= 0 || finding->task == GBX_DIAGNOSIS_NOBODY ||
                !reads_from(from, finding->task))
                continue;
            bool may = may_follow(finding, from);
            if (!may && finding->kind == GBX_DIAGNOSIS_WRONG_RESULT)
                GBX_TRY(is_wrong_for_wrong(q, finding, from, &may));
            if (may)
                finding->follows = (int64_t)k;
        }
    }
    return NULL;
}
