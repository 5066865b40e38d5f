/*
 * Does it matter that a task left elements of an output unwritten? A view says only that a task may
 * read them: a kernel that is given a padded tile need not look at the padding. So values are
 * followed through the graph, with kernels called again on changed inputs: from the elements that
 * nobody wrote, over outputs that depend on them, to the results of the run.
 *
 * Many tasks are followed at a time: those of one kernel and argument first as one set, which is
 * divided only if anything reaches a result. Whatever cannot be followed counts as reaching one.
 *
 * What somebody wrote there before is no garbage: tasks may share a buffer, each with rows of its
 * own. But it may be stale: if a result is wrong, those whose unwritten elements reach its first
 * wrong element, garbage or not, are suspects where nothing else is found. Without a golden all of
 * it counts as garbage.
 *
 * In a run that failed nobody knows what would have reached a result. Then only that counts which
 * shows: a task that crashes with some values, and a task that ended the run and would not have
 * done so with other values.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/follow.h"

enum {
    PARTS = 4,  /* that a set is divided into */
    PASSES = 16 /* then a set that was not divided counts as a whole */
};
#define FOLLOW_NS (60 * GBX_NS_PER_SECOND) /* likewise; each of the two rounds */

static const char doing[] = GBX_FOLLOWING;

/* --- parts --- */

static gbx_status add_part(gbx_follow *f, const gbx_check_line *line, uint64_t result,
                           uint32_t item) {
    const gbx_replay_finding *finding = &f->q->d->check.results[result].findings[item];
    bool is_source = finding->is.kind == GBX_UNWRITTEN_READ;
    if (!is_source && finding->is.kind != GBX_UNWRITTEN)
        return NULL;
    GBX_TRY(gbx_array_reserve(&f->parts, &f->part_capacity, f->part_count + 1, doing));
    f->parts[f->part_count++] = (gbx_follow_part){.task = line->task,
                                                  .func_ids = line->func_ids,
                                                  .slot = finding->slot,
                                                  .set = GBX_FOLLOW_NO_SET,
                                                  .result = result,
                                                  .item = item,
                                                  .is_source = is_source};
    f->source_count += is_source;
    return NULL;
}

static gbx_status gather_parts(gbx_follow *f) {
    const gbx_check_report *check = &f->q->d->check;
    for (uint64_t i = 0; i < check->count; ++i) {
        int64_t result = check->lines[i].kernels.result;
        for (uint32_t k = 0; result >= 0 && k < check->results[result].finding_count; ++k)
            GBX_TRY(add_part(f, &check->lines[i], (uint64_t)result, k));
    }
    return NULL;
}

static int compare_kernels(const gbx_follow_part *a, const gbx_follow_part *b) {
    int order = memcmp(a->func_ids, b->func_ids, GBX_SUBTASK_COUNT * sizeof *a->func_ids);
    return order != 0 ? order : (a->slot > b->slot) - (a->slot < b->slot);
}

typedef gbx_follow_part *part_pointer;

static int compare_sources(const void *a, const void *b) {
    const gbx_follow_part *x = *(gbx_follow_part *const *)a, *y = *(gbx_follow_part *const *)b;
    int order = compare_kernels(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

static gbx_status add_set(gbx_follow *f, gbx_follow_set set) {
    GBX_TRY(gbx_array_reserve(&f->queue, &f->queue_capacity, f->queue_count + 1, doing));
    f->queue[f->queue_count++] = set;
    return NULL;
}

/* One set for each kernel and slot. */
static gbx_status make_sets(gbx_follow *f) {
    f->source_count = 0;
    f->queue_count = 0;
    for (size_t i = 0; i < f->part_count; ++i)
        if (f->parts[i].is_source && (!f->is_second || f->parts[i].outcome != GBX_FOLLOW_MATTERS))
            f->sources[f->source_count++] = &f->parts[i];
    qsort(f->sources, f->source_count, sizeof(part_pointer), compare_sources);
    for (size_t first = 0, end; first < f->source_count; first = end) {
        for (end = first + 1;
             end < f->source_count && compare_kernels(f->sources[first], f->sources[end]) == 0;
             ++end)
            ;
        GBX_TRY(add_set(f, (gbx_follow_set){.first = first, .count = end - first}));
    }
    return NULL;
}

/* --- a pass over the graph --- */

static gbx_status follow_graph(gbx_follow *f) {
    const gbx_check_report *check = &f->q->d->check;
    uint64_t line = 0;
    size_t next = 0;
    for (uint64_t i = 0; i < gbx_task_graph_count(f->q->graph) && f->asked & ~f->reached; ++i) {
        const gbx_graph_task *task = gbx_task_graph_at(f->q->graph, i);
        bool has_line = line < check->count && check->lines[line].task == task->task;
        size_t first = next;
        while (next < f->part_count && f->parts[next].task == task->task)
            ++next;
        GBX_TRY(gbx_follow_task(f, task, has_line ? &check->lines[line] : NULL, &f->parts[first],
                                next - first));
        line += has_line;
    }
    return gbx_follow_look_at_results(f);
}

static void mark(gbx_follow *f, const gbx_follow_set *sets, size_t count, bool is_begin) {
    for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < sets[i].count; ++k)
            f->sources[sets[i].first + k]->set = is_begin ? (uint32_t)i : GBX_FOLLOW_NO_SET;
}

/* Memory that is cut into too many ranges cannot be followed. */
static gbx_status pass(gbx_follow *f, const gbx_follow_set *sets, size_t count) {
    gbx_memory_map_clear(f->taint);
    gbx_memory_map_clear(f->written);
    f->asked = GBX_DIRECT(count) - 1;
    f->reached = f->late = f->unseen = f->ending = 0;
    memset(f->users, 0, sizeof f->users);
    mark(f, sets, count, true);
    gbx_status status = follow_graph(f);
    mark(f, sets, count, false);
    if (gbx_status_code(status) != GBX_EXHAUSTED)
        return status;
    gbx_status_free(status);
    gbx_follow_give_up(f, GBX_DIRECT_MASK);
    return NULL;
}

/* What comes out of a set that reaches no result; the second time only whether it is far. */
static void settle(gbx_follow *f, const gbx_follow_set *done, gbx_follow_outcome outcome,
                   uint64_t ended_task) {
    for (size_t i = 0; i < done->count; ++i) {
        gbx_follow_part *p = f->sources[done->first + i];
        if (f->is_second) {
            p->is_far = outcome == GBX_FOLLOW_HARMLESS;
        } else {
            p->outcome = outcome;
            p->ended_task = ended_task;
        }
    }
}

static bool is_one(const gbx_follow_set *set) {
    return set->is_exact && set->count == 1;
}

/* Of one task that was followed by itself, who uses what it left is known. */
static void name_user(gbx_follow *f, const gbx_follow_set *done, const gbx_follow_user *user) {
    const gbx_follow_part *p = f->sources[done->first];
    if (!is_one(done) || !user->is_known)
        return;
    gbx_replay_finding *finding = &f->q->d->check.results[p->result].findings[p->item];
    finding->has_owner = true;
    finding->owner = user->access;
}

static gbx_status divide(gbx_follow *f, gbx_follow_set set, gbx_follow_outcome otherwise) {
    size_t end = set.first + set.count, step = (set.count + PARTS - 1) / PARTS;
    if (is_one(&set))
        return NULL;
    if (!set.is_exact)
        step = set.count;
    for (size_t at = set.first; at < end; at += step)
        GBX_TRY(add_set(f, (gbx_follow_set){.first = at,
                                            .count = end - at < step ? end - at : step,
                                            .is_exact = true,
                                            .otherwise = otherwise}));
    return NULL;
}

/* The next sets that are followed alike. */
static size_t take_sets(const gbx_follow *f, size_t first, gbx_follow_set sets[GBX_FOLLOW_SETS]) {
    size_t count = 0;
    for (; count < GBX_FOLLOW_SETS && first + count < f->queue_count; ++count) {
        if (f->queue[first + count].is_exact != f->is_exact)
            break;
        sets[count] = f->queue[first + count];
    }
    return count;
}

/* Of a set of several that reach something it is not known which of them does. */
static gbx_status conclude(gbx_follow *f, const gbx_follow_set *set, uint32_t number) {
    uint64_t bit = GBX_DIRECT(number);
    bool is_reaching = f->reached & bit, is_ending = f->ending & bit, is_late = f->late & bit;
    if (is_reaching || is_ending)
        name_user(f, set, &f->users[number]);
    if (is_reaching)
        return divide(f, *set, f->has_failed ? GBX_FOLLOW_UNSEEN : GBX_FOLLOW_MATTERS);
    if ((is_ending || is_late) && !is_one(set))
        return divide(f, *set, is_ending ? GBX_FOLLOW_UNSEEN : GBX_FOLLOW_LATE);
    settle(f, set,
           is_ending                ? GBX_FOLLOW_ENDS
           : is_late                ? GBX_FOLLOW_LATE
           : (f->unseen & bit) != 0 ? GBX_FOLLOW_UNSEEN
                                    : GBX_FOLLOW_HARMLESS,
           f->ended[number]);
    return NULL;
}

static gbx_status follow_sets(gbx_follow *f) {
    size_t first = 0;
    for (int passes = 0; first < f->queue_count && passes < PASSES; ++passes) {
        gbx_follow_set sets[GBX_FOLLOW_SETS];
        f->is_exact = f->queue[first].is_exact;
        size_t count = take_sets(f, first, sets);
        first += count;
        GBX_TRY(pass(f, sets, count));
        for (uint32_t i = 0; i < count; ++i)
            GBX_TRY(conclude(f, &sets[i], i));
    }
    for (; first < f->queue_count; ++first)
        settle(f, &f->queue[first], f->queue[first].otherwise, 0);
    return NULL;
}

/* --- clues --- */

static const gbx_follow_part *find_clue(const gbx_follow *f, const gbx_clue *clue) {
    size_t low = 0, high = f->part_count;
    if (clue->source != GBX_CLUE_REPLAY || clue->kind != GBX_DIAGNOSIS_UNWRITTEN_READ)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const gbx_follow_part *p = &f->parts[middle];
        if (p->result < clue->index || (p->result == clue->index && p->item < clue->item))
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < f->part_count && f->parts[low].result == clue->index &&
                    f->parts[low].item == clue->item;
    return is_found ? &f->parts[low] : NULL;
}

static gbx_status report_lack(gbx_inquiry *q, size_t count, const char *why) {
    if (count == 0)
        return NULL;
    return gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                            "%zu %s not completely written, and whether that matters is not "
                            "known: %s",
                            count, count == 1 ? "output is" : "outputs are", why);
}

/* How many clues were dropped, by outcome. */
static gbx_status report_dropped(const gbx_follow *f, const size_t dropped[GBX_FOLLOW_ENDS + 1]) {
    gbx_inquiry *q = f->q;
    size_t harmless = dropped[GBX_FOLLOW_HARMLESS];
    for (int i = 0; i <= GBX_FOLLOW_ENDS; ++i)
        q->d->asked[GBX_ASKED_REPLAY].findings -= dropped[i];
    GBX_TRY(report_lack(q, dropped[GBX_FOLLOW_UNSEEN],
                        f->has_failed ? "the run failed"
                                      : "a task that reads it fails, whatever it holds"));
    GBX_TRY(report_lack(q, dropped[GBX_FOLLOW_LATE],
                        "calls with other values there did not return in time; --timeout gives "
                        "them more"));
    if (harmless == 0)
        return NULL;
    return gbx_inquiry_note_harmless(
        q, GBX_ASKED_REPLAY,
        "%zu %s not completely written, and what nobody wrote changes no result", harmless,
        harmless == 1 ? "output is" : "outputs are");
}

/* Whether a task leaves just those elements of a wrong result unwritten that its reference does,
 * and a task before it was not compared with one: that may have led it there. */
static bool is_led(const gbx_follow *f, const gbx_follow_part *p) {
    const gbx_diagnosis *d = f->q->d;
    const gbx_check_line *line = gbx_inquiry_find_line(f->q, p->task);
    const gbx_replay_result *result = &d->check.results[p->result];
    uint64_t elements = 0;
    for (uint32_t i = 0; i < result->finding_count; ++i)
        if (result->findings[i].is.kind == GBX_UNWRITTEN ||
            result->findings[i].is.kind == GBX_UNWRITTEN_READ)
            elements += result->findings[i].is.elements;
    return line && line->verdict == GBX_CHECK_RIGHT && line->not_written == elements &&
           result->findings[p->item].owner.is_result && d->has_blame &&
           d->blame.writer_count == 1 && d->blame.writers[0].task == p->task &&
           d->unchecked.task != GBX_DIAGNOSIS_NOBODY && d->unchecked.task != p->task;
}

/* Evidence of why the run ended in a task. */
static void give_to_end(const gbx_follow *f, const gbx_follow_part *p, gbx_clue *clue) {
    clue->other = clue->task;
    clue->task = p->ended_task;
    clue->place = gbx_task_graph_place(f->q->graph, clue->task);
    clue->is_assigned = true;
}

/* If a result is wrong, suspects are worth a word where nothing else is found. */
static gbx_status drop_clues(gbx_follow *f) {
    gbx_inquiry *q = f->q;
    size_t kept = 0, dropped[GBX_FOLLOW_ENDS + 1] = {0};
    for (size_t i = 0; i < q->clue_count; ++i) {
        gbx_clue clue = q->clues[i];
        const gbx_follow_part *p = find_clue(f, &clue);
        gbx_follow_outcome outcome = p ? p->outcome : GBX_FOLLOW_MATTERS;
        bool is_suspect = q->d->golden && !(p && p->is_far);
        if (p && is_led(f, p)) {
            ++dropped[GBX_FOLLOW_HARMLESS];
            continue;
        }
        if (outcome != GBX_FOLLOW_MATTERS)
            clue.kind = GBX_DIAGNOSIS_UNWRITTEN;
        if (outcome == GBX_FOLLOW_ENDS)
            give_to_end(f, p, &clue);
        if (outcome == GBX_FOLLOW_MATTERS || outcome == GBX_FOLLOW_ENDS || is_suspect)
            q->clues[kept++] = clue;
        else
            ++dropped[outcome];
    }
    q->clue_count = kept;
    return report_dropped(f, dropped);
}

/* All sources that may be harmless, or suspects. */
static gbx_status follow_round(gbx_follow *f) {
    f->deadline_ns = gbx_clock_ns() + FOLLOW_NS;
    f->has_been_late = false;
    GBX_TRY(make_sets(f));
    return follow_sets(f);
}

static gbx_status follow_all(gbx_follow *f) {
    GBX_TRY(gather_parts(f));
    if (f->source_count == 0)
        return NULL;
    f->sources = calloc(f->source_count, sizeof(part_pointer));
    if (!f->sources)
        return gbx_fail_memory("%s", doing);
    GBX_TRY(gbx_inquiry_open_session(f->q, &f->session));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->taint));
    GBX_TRY(gbx_memory_map_create(GBX_OFFSETS_STAY, &f->written));
    GBX_TRY(follow_round(f));
    f->is_second = true;
    if (f->q->d->golden && f->q->d->blamed.is_placed)
        GBX_TRY(follow_round(f));
    return drop_clues(f);
}

gbx_status gbx_inquiry_follow(gbx_inquiry *q) {
    const gbx_diagnosis *d = q->d;
    gbx_follow f = {
        .q = q, .entries = q->request->entries, .has_golden = d->asked[GBX_ASKED_GOLDEN].tasks > 0};
    f.has_passed = f.has_golden && !d->golden;
    f.has_failed = gbx_inquiry_has_failed(q);
    gbx_status status = follow_all(&f);
    gbx_replay_session_close(&f.session);
    gbx_memory_map_destroy(f.taint);
    gbx_memory_map_destroy(f.written);
    for (size_t i = 0; i < f.part_count; ++i)
        gbx_dependence_free(&f.parts[i].gaps);
    free(f.parts);
    free(f.sources);
    free(f.queue);
    return status;
}
