/* Findings from clues: those about one task belong together, and so do tasks of one kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "diagnose/internal.h"

static const char doing[] = "diagnosing";

/* --- findings --- */

static gbx_status add_clue(gbx_diagnosis_finding *finding, const gbx_clue *clue) {
    GBX_TRY(gbx_array_reserve(&finding->clues, &finding->clue_capacity, finding->clue_count + 1,
                              doing));
    finding->clues[finding->clue_count++] = *clue;
    return NULL;
}

/* What is asked as a last resort is no evidence: an odd scalar or a swapped argument is. */
static bool is_evidence(const gbx_diagnosis *d, const gbx_clue *clue) {
    return clue->source != GBX_CLUE_GOLDEN && clue->source != GBX_CLUE_NAN &&
           (clue->source != GBX_CLUE_ODD || d->odd.items[clue->index].kind <= GBX_ODD_SWAPPED);
}

static gbx_status add_task(gbx_diagnosis_finding *finding, uint64_t task) {
    GBX_TRY(gbx_array_reserve(&finding->tasks, &finding->task_capacity, finding->task_count + 1,
                              doing));
    finding->tasks[finding->task_count++] = task;
    return NULL;
}

/* The clues are about one task, or one is about nobody. */
static gbx_status make_finding(gbx_inquiry *q, const gbx_clue *clues, size_t count,
                               gbx_diagnosis_finding *out_finding) {
    GBX_TRY(gbx_clue_describe(q, &clues[0], out_finding));
    if (clues[0].task != GBX_DIAGNOSIS_NOBODY)
        GBX_TRY(add_task(out_finding, clues[0].task));
    for (size_t i = 0; i < count; ++i)
        if (i == 0 || is_evidence(q->d, &clues[i]))
            GBX_TRY(add_clue(out_finding, &clues[i]));
    return NULL;
}

static void free_finding(gbx_diagnosis_finding *finding) {
    free(finding->clues);
    free(finding->tasks);
    free(finding->victims);
    free(finding->variable);
    free(finding->variable_file);
    *finding = (gbx_diagnosis_finding){0};
}

/* Whether two findings say the same of two tasks: what is said of the second is known of the first,
 * of which sanitizers may have said more. */
static bool is_same_bug(const gbx_diagnosis_finding *a, const gbx_diagnosis_finding *b) {
    if (a->task == GBX_DIAGNOSIS_NOBODY || b->task == GBX_DIAGNOSIS_NOBODY ||
        memcmp(a->func_ids, b->func_ids, sizeof a->func_ids) != 0)
        return false;
    /* Of many wrong tasks, a check keeps only what is wrong with the first ones. */
    bool is_unknown = b->kind == GBX_DIAGNOSIS_WRONG_RESULT && b->slot == GBX_NO_ARGUMENT;
    for (size_t i = 0; i < a->clue_count; ++i)
        if (a->clues[i].kind == b->kind && (is_unknown || a->clues[i].slot == b->clues[0].slot))
            return true;
    return false;
}

/* Takes the finding. */
static gbx_status keep_finding(gbx_inquiry *q, gbx_diagnosis_finding *finding) {
    gbx_diagnosis *d = q->d;
    bool has_task = finding->task != GBX_DIAGNOSIS_NOBODY;
    for (size_t i = 0; i < d->finding_count && has_task; ++i)
        if (is_same_bug(&d->findings[i], finding)) {
            gbx_status status = add_task(&d->findings[i], finding->task);
            free_finding(finding);
            return status;
        }
    gbx_status status =
        gbx_array_reserve(&d->findings, &d->finding_capacity, d->finding_count + 1, doing);
    if (status)
        free_finding(finding);
    else
        d->findings[d->finding_count++] = *finding;
    return status;
}

static gbx_status find(gbx_inquiry *q, const gbx_clue *clues, size_t count) {
    gbx_diagnosis_finding finding;
    gbx_status status = make_finding(q, clues, count, &finding);
    if (!status)
        return keep_finding(q, &finding);
    free_finding(&finding);
    return status;
}

/* --- what is said only if nothing else is --- */

static bool is_last_resort(const gbx_clue *clue) {
    return clue->kind >= GBX_DIAGNOSIS_ODD_MEMORY || clue->is_weak;
}

static gbx_status find_named(gbx_inquiry *q, size_t named, bool is_last) {
    for (size_t first = 0, end; first < named; first = end) {
        for (end = first + 1; end < named && q->clues[end].task == q->clues[first].task; ++end)
            ;
        if (is_last_resort(&q->clues[first]) == is_last)
            GBX_TRY(find(q, &q->clues[first], end - first));
    }
    return NULL;
}

/* Without anything better: the oddest argument, if results are wrong, else the first NaN, else who
 * wrote the result. */
static gbx_status find_last_resort(gbx_inquiry *q) {
    const gbx_clue *best = NULL;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue *clue = &q->clues[i];
        bool is_better = !best || (clue->source == GBX_CLUE_ODD && best->source == GBX_CLUE_ODD
                                       ? clue->index < best->index
                                       : clue->kind < best->kind);
        bool is_hint = clue->source == GBX_CLUE_ODD && !q->d->golden;
        if (is_last_resort(clue) && !is_hint && is_better)
            best = clue;
    }
    return best ? find(q, best, 1) : NULL;
}

/* --- all of it --- */

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_findings(const void *a, const void *b) {
    const gbx_diagnosis_finding *x = a, *y = b;
    int order = compare_numbers(x->place, y->place);
    return order != 0 ? order : compare_numbers(x->kind, y->kind);
}

enum { FINDINGS_WITH_VICTIMS = 32 };

/* Of the chosen tasks: a pair may accuse another one. */
static gbx_status count_accused(const gbx_inquiry *q, uint64_t *out_count) {
    *out_count = 0;
    for (size_t i = 0; i < q->d->finding_count; ++i)
        for (size_t k = 0; k < q->d->findings[i].task_count; ++k) {
            bool is_chosen;
            GBX_TRY(gbx_inquiry_chooses(q, q->d->findings[i].tasks[k], &is_chosen));
            *out_count += is_chosen;
        }
    return NULL;
}

void gbx_diagnosis_findings_free(gbx_diagnosis *d) {
    for (size_t i = 0; i < d->finding_count; ++i)
        free_finding(&d->findings[i]);
    free(d->findings);
    d->findings = NULL;
    d->finding_count = 0;
    d->finding_capacity = 0;
}

gbx_status gbx_inquiry_group(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    gbx_diagnosis_findings_free(d);
    size_t named;
    GBX_TRY(gbx_inquiry_assign(q, &named));
    GBX_TRY(find_named(q, named, false));
    for (size_t i = named; i < q->clue_count; ++i)
        if (!is_last_resort(&q->clues[i]))
            GBX_TRY(find(q, &q->clues[i], 1));
    if (d->finding_count == 0)
        GBX_TRY(find_last_resort(q));
    if (d->finding_count > 0)
        qsort(d->findings, d->finding_count, sizeof *d->findings, compare_findings);
    return NULL;
}

/* --- what no finding explains --- */

bool gbx_diagnosis_explains(const gbx_diagnosis *d, uint64_t task) {
    for (size_t i = 0; i < d->finding_count; ++i) {
        const gbx_diagnosis_finding *f = &d->findings[i];
        if (gbx_has_number(f->tasks, f->task_count, task) ||
            gbx_has_number(f->victims, f->victim_count, task))
            return true;
    }
    return false;
}

static gbx_status add_finding(gbx_inquiry *q, const gbx_clue *clue) {
    gbx_diagnosis *d = q->d;
    size_t count = d->finding_count;
    GBX_TRY(find(q, clue, 1));
    if (d->finding_count > count)
        GBX_TRY(gbx_finding_find_victims(q, &d->findings[count]));
    qsort(d->findings, d->finding_count, sizeof *d->findings, compare_findings);
    return NULL;
}

static gbx_status find_other_nan(gbx_inquiry *q) {
    for (size_t i = 0; i < q->clue_count && q->d->golden; ++i)
        if (q->clues[i].source == GBX_CLUE_NAN && !gbx_diagnosis_explains(q->d, q->clues[i].task))
            return add_finding(q, &q->clues[i]);
    return NULL;
}

/* Whether all that a finding has changed is in the outputs of its tasks, and known. */
static bool is_confined(const gbx_diagnosis *d, const gbx_diagnosis_finding *f) {
    const gbx_odd_argument *odd =
        f->clues[0].source == GBX_CLUE_ODD ? &d->odd.items[f->clues[0].index] : NULL;
    switch (f->kind) {
    case GBX_DIAGNOSIS_ODD_MEMORY:
    case GBX_DIAGNOSIS_ODD_SCALAR:
        return f->are_victims_known;
    case GBX_DIAGNOSIS_ODD_VIEW: /* an output in the wrong place is missing in the right one */
        return f->are_victims_known && odd && !odd->is_output;
    case GBX_DIAGNOSIS_WRITE_RACE:
    case GBX_DIAGNOSIS_READ_RACE:
    case GBX_DIAGNOSIS_DATA_RACE:
    case GBX_DIAGNOSIS_OUT_OF_BOUNDS_READ:
    case GBX_DIAGNOSIS_UNINITIALISED:
    case GBX_DIAGNOSIS_UNDECLARED_READ:
    case GBX_DIAGNOSIS_UNWRITTEN_READ:
    case GBX_DIAGNOSIS_NOT_DETERMINISTIC:
    case GBX_DIAGNOSIS_UNDEFINED:
    case GBX_DIAGNOSIS_WRONG_RESULT:
    case GBX_DIAGNOSIS_NAN:
        return f->are_victims_known;
    default:
        return false;
    }
}

/* Whether a finding is about the kernels of a task. */
static gbx_status is_of_known_kernel(const gbx_inquiry *q, const gbx_clue *clue, bool *out_is) {
    gbx_diagnosis_finding about;
    *out_is = false;
    GBX_TRY(gbx_clue_describe(q, clue, &about));
    for (size_t i = 0; i < q->d->finding_count; ++i)
        *out_is |= memcmp(q->d->findings[i].func_ids, about.func_ids, sizeof about.func_ids) == 0;
    return NULL;
}

static gbx_status is_of_hinted_kernel(const gbx_inquiry *q, uint64_t task, bool *out_is) {
    gbx_record_task record;
    bool is_found;
    GBX_TRY(gbx_reader_find_task(q->reader, task, &record, &is_found));
    for (size_t i = 0; i < q->d->finding_count && is_found; ++i) {
        const gbx_diagnosis_finding *f = &q->d->findings[i];
        *out_is |= f->kind >= GBX_DIAGNOSIS_ODD_MEMORY &&
                   memcmp(f->func_ids, record.func_ids, sizeof f->func_ids) == 0;
    }
    return NULL;
}

/* Whether the wrong element comes from a kernel that a hint, or the first NaN, is about: these name
 * only the first of its tasks. */
static gbx_status comes_from_hinted_kernel(const gbx_inquiry *q, bool *out_does) {
    const gbx_diagnosis *d = q->d;
    *out_does = false;
    if (d->blame.writer_count == 1)
        GBX_TRY(is_of_hinted_kernel(q, d->blame.writers[0].task, out_does));
    for (size_t i = 0; i < d->upstream_count && !*out_does; ++i)
        GBX_TRY(is_of_hinted_kernel(q, d->upstream[i].task, out_does));
    return NULL;
}

/* The first hint that can explain it, and is about a task that no finding explains. */
static gbx_status find_hint(gbx_inquiry *q, bool *out_is_found) {
    gbx_diagnosis *d = q->d;
    *out_is_found = false;
    GBX_TRY(gbx_inquiry_choose_hints(q));
    for (size_t i = 0; i < d->odd.count && !*out_is_found; ++i) {
        if (!d->odd.items[i].is_needed || gbx_diagnosis_explains(d, d->odd.items[i].task))
            continue;
        size_t count = q->clue_count;
        GBX_TRY(gbx_inquiry_add_odd(q, i));
        *out_is_found = q->clue_count > count; /* else --task has not chosen it */
    }
    return NULL;
}

/* A wrong output that does not come from any of them is another bug, if it is not one of the same
 * kernel. */
static gbx_status find_unexplained(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    bool is_any = d->golden && d->has_blame && d->finding_count > 0, is_hint = false, is_same;
    for (size_t i = 0; i < d->finding_count && is_any; ++i)
        is_any = is_confined(d, &d->findings[i]);
    if (is_any)
        GBX_TRY(gbx_inquiry_ask_unexplained(q, &is_any));
    if (!is_any)
        return NULL;
    GBX_TRY(comes_from_hinted_kernel(q, &is_same));
    if (is_same)
        return NULL;
    GBX_TRY(find_hint(q, &is_hint));
    if (!is_hint)
        GBX_TRY(gbx_inquiry_add_golden(q));
    const gbx_clue clue = q->clues[q->clue_count - 1];
    bool is_known = !is_hint && clue.source != GBX_CLUE_GOLDEN; /* --task has not chosen it */
    if (!is_known && !is_hint)
        GBX_TRY(is_of_known_kernel(q, &clue, &is_known));
    return is_known ? NULL : add_finding(q, &clue);
}

gbx_status gbx_inquiry_conclude(gbx_inquiry *q) {
    gbx_diagnosis *d = q->d;
    GBX_TRY(gbx_inquiry_group(q));
    for (size_t i = 0; i < d->finding_count; ++i)
        GBX_TRY(gbx_inquiry_find_variable(q, &d->findings[i]));
    for (size_t i = 0; i < d->finding_count && i < FINDINGS_WITH_VICTIMS; ++i)
        GBX_TRY(gbx_finding_find_victims(q, &d->findings[i]));
    GBX_TRY(find_other_nan(q));
    GBX_TRY(find_unexplained(q));
    GBX_TRY(gbx_inquiry_find_consequences(q));
    uint64_t accused;
    GBX_TRY(count_accused(q, &accused));
    d->innocent = d->chosen - gbx_min_u64(accused, d->chosen);
    return NULL;
}
