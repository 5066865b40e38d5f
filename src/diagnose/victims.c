/* Who was hurt by a finding, and which findings may only follow from another. */
#include <stdlib.h>
#include <string.h>

#include "analysis/downstream.h"
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

/* What a task does with wrong inputs may be right: an index from them leads anywhere, and what
 * nobody wrote is NaN, which a kernel need not treat as its reference does. */
static bool may_follow(const gbx_diagnosis_finding *finding, const gbx_diagnosis_finding *from) {
    switch (finding->kind) {
    case GBX_DIAGNOSIS_WRONG_RESULT:
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
void gbx_diagnosis_find_consequences(gbx_diagnosis *d) {
    for (size_t k = 0; k < d->finding_count; ++k) {
        const gbx_diagnosis_finding *from = &d->findings[k];
        for (size_t i = k + 1; i < d->finding_count && from->victim_count > 0; ++i)
            if (d->findings[i].follows < 0 && d->findings[i].task != GBX_DIAGNOSIS_NOBODY &&
                may_follow(&d->findings[i], from) &&
                gbx_has_number(from->victims, from->victim_count, d->findings[i].task))
                d->findings[i].follows = (int64_t)k;
    }
}
