/*
 * Blocks whose order shows, but that do not race. A replay takes atomic operations other than
 * additions of integers for races; the thread sanitizer knows them from others. Sums of floats
 * depend on the order of additions, and so do lists to which blocks append.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "base/memory.h"
#include "diagnose/internal.h"

enum {
    CALLS = 4,          /* of a task whose sums differ */
    CALLS_MAX = 32,     /* until one differs */
    SUMS_OF_KERNEL = 16 /* tasks that stand for the others */
};
#define SUMS_NS (60 * GBX_NS_PER_SECOND) /* what is not called by then stays a finding */
#define ROUNDING 1e-3                    /* of the largest value */

#define LIST_MAX (UINT64_C(1) << 22) /* elements */

static const char doing[] = "comparing sums";

/* Whether the thread sanitizer has seen all blocks of a task at once until they ended, and no race.
 */
static bool has_no_race(const gbx_diagnosis_line *line, uint32_t chip_blocks) {
    const gbx_sanitize_asked *asked = &line->report.asked[GBX_SANITIZE_THREAD];
    if (!asked->was_asked || !asked->did_return || line->task.dispatch_count < 2 ||
        line->task.block_num > chip_blocks)
        return false;
    for (size_t i = 0; i < line->report.finding_count; ++i) {
        const gbx_sanitize_finding *finding = &line->report.findings[i];
        if (finding->kind == GBX_SANITIZE_RACE ||
            (finding->sanitizer == GBX_SANITIZE_THREAD && finding->kind == GBX_SANITIZE_CRASH))
            return false;
    }
    return true;
}

static bool is_race(const gbx_clue *clue) {
    return clue->kind == GBX_DIAGNOSIS_WRITE_RACE || clue->kind == GBX_DIAGNOSIS_READ_RACE;
}

/* Where the golden accepts the results. */
static bool may_be_sum(const gbx_diagnosis *d, const gbx_clue *clue) {
    bool is_right = d->asked[GBX_ASKED_GOLDEN].tasks > 0 && !d->golden;
    bool differs = clue->kind == GBX_DIAGNOSIS_NOT_DETERMINISTIC ||
                   (clue->kind == GBX_DIAGNOSIS_NOT_REPEATED && !clue->is_assigned);
    return is_right && differs;
}

static bool is_accused_of_race(const gbx_inquiry *q, uint64_t task, uint32_t slot) {
    for (size_t i = 0; i < q->clue_count; ++i)
        if (q->clues[i].task == task && q->clues[i].slot == slot && is_race(&q->clues[i]))
            return true;
    return false;
}

/* By what was said of the task itself, or else of one with the same kernels: of a race, one that is
 * accused of a race, too. */
static bool is_atomic(const gbx_inquiry *q, const gbx_clue *clue, uint32_t chip_blocks) {
    const gbx_diagnosis *d = q->d;
    gbx_diagnosis_finding about;
    gbx_status status = gbx_clue_describe(q, clue, &about);
    bool is_known = !status, is_any = false;
    gbx_status_free(status);
    for (size_t i = 0; i < d->line_count && is_known; ++i) {
        const gbx_diagnosis_line *line = &d->lines[i];
        if (line->task.task == clue->task)
            return has_no_race(line, chip_blocks);
        is_any |= memcmp(line->task.func_ids, about.func_ids, sizeof about.func_ids) == 0 &&
                  has_no_race(line, chip_blocks) &&
                  (!is_race(clue) || is_accused_of_race(q, line->task.task, clue->slot));
    }
    return is_any;
}

/* --- sums --- */

static double largest_of(const gbx_tensor *tensor, const unsigned char *payload) {
    double largest = 0;
    for (uint64_t i = 0; i < (uint64_t)gbx_tensor_numel(tensor); ++i) {
        double value = fabs(gbx_dtype_to_f64(tensor->dtype, gbx_bits_element(tensor, payload, i)));
        largest = value > largest ? value : largest;
    }
    return largest;
}

static int compare_words(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The elements that a call wrote, sorted; freed by the caller, NULL without memory. */
static uint64_t *sorted(const gbx_tensor *tensor, const gbx_bits_payloads *written,
                        const unsigned char *from, uint64_t *out_count) {
    uint64_t elements = (uint64_t)gbx_tensor_numel(tensor), count = 0;
    uint64_t *words = malloc((elements + 1) * sizeof *words);
    for (uint64_t i = 0; words && i < elements; ++i)
        if (gbx_bits_is_written(tensor, written, i))
            words[count++] = gbx_bits_element(tensor, from, i);
    if (words && count > 0)
        qsort(words, count, sizeof *words, compare_words);
    *out_count = count;
    return words;
}

static gbx_bits_payloads payloads_of(const gbx_replay_compared *output,
                                     const gbx_replay_payloads *payloads) {
    uint32_t i = output->argument;
    return (gbx_bits_payloads){.replay = payloads->kept[GBX_KEPT_FIRST][i],
                               .other = payloads->kept[GBX_KEPT_OTHER][i],
                               .start = payloads->kept[GBX_KEPT_START][i],
                               .other_start = payloads->kept[GBX_KEPT_OTHER_START][i]};
}

/* Whether a call left the elements that something else has in another order. */
static bool is_reordered(const gbx_tensor *tensor, const gbx_bits_payloads *written,
                         const unsigned char *other) {
    uint64_t counts[2] = {0, 0};
    if (!other || !written->replay || (uint64_t)gbx_tensor_numel(tensor) > LIST_MAX)
        return false;
    uint64_t *before = sorted(tensor, written, other, &counts[0]);
    uint64_t *call = sorted(tensor, written, written->replay, &counts[1]);
    bool is_same = before && call && memcmp(before, call, counts[0] * sizeof *before) == 0;
    free(before);
    free(call);
    return is_same;
}

/* Whether the two calls of a replay left the same but for rounding. */
static bool are_close(const gbx_tensor *tensor, const gbx_bits_payloads *written,
                      double tolerance) {
    bool are = written->replay && written->other;
    for (uint64_t i = 0; are && i < (uint64_t)gbx_tensor_numel(tensor); ++i) {
        uint64_t a = gbx_bits_element(tensor, written->replay, i);
        uint64_t b = gbx_bits_element(tensor, written->other, i);
        are = a == b || !gbx_bits_is_written(tensor, written, i) ||
              fabs(gbx_dtype_to_f64(tensor->dtype, a) - gbx_dtype_to_f64(tensor->dtype, b)) <=
                  tolerance;
    }
    return are;
}

/* What the calls of a task showed. */
typedef struct calls {
    bool are_explained; /* by no more than the order of blocks */
    bool differ;        /* from the run, or from each other */
    bool are_reordered; /* one has the elements of the run in another order */
    double tolerance;   /* of the outputs that differed before */
} calls;

static void explain(bool is_small, const gbx_tensor *tensor, const gbx_bits_payloads *written,
                    const unsigned char *other, calls *all) {
    bool is_order = !is_small && is_reordered(tensor, written, other);
    all->differ = true;
    all->are_reordered |= is_order;
    all->are_explained &= is_small || is_order;
}

static void look_at(const gbx_replay_compared *output, const gbx_replay_payloads *payloads,
                    uint64_t differed, calls *all) {
    const unsigned char *dump = payloads->dump[output->argument];
    double tolerance = gbx_dtype_is_float(output->tensor.dtype) && dump
                           ? ROUNDING * largest_of(&output->tensor, dump)
                           : -1;
    bool has_differed = output->slot >= 64 || differed >> output->slot & 1;
    if (output->is_compared && has_differed && tolerance < all->tolerance)
        all->tolerance = tolerance;
    const gbx_bits_payloads written = payloads_of(output, payloads);
    if (output->is_compared && output->bits.mismatches > 0)
        explain(output->bits.max_abs <= tolerance, &output->tensor, &written, dump, all);
    if (output->bits.unstable > 0)
        explain(are_close(&output->tensor, &written, tolerance), &output->tensor, &written,
                written.other, all);
}

static gbx_status call_once(gbx_replay_session *session, const gbx_replay_task *task,
                            uint64_t differed, calls *all) {
    gbx_replay_job job;
    gbx_replay_result result = {0};
    gbx_replay_payloads payloads = {0};
    gbx_status status = gbx_replay_session_job(session, task, &job);
    if (!status)
        status = gbx_replay_execute(&job, &payloads, &result);
    all->are_explained &= !status && !result.fault;
    for (size_t i = 0; i < result.output_count && all->are_explained; ++i)
        look_at(&result.outputs[i], &payloads, differed, all);
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    return status;
}

/* Whether what differed before is explained, too: calls that leave what the run left explain
 * nothing. If it differed only between two calls, so must these. */
static bool is_explained(const calls *all, const gbx_check_kernels *before) {
    bool is_small = before->mismatches > 0 ? before->max_abs <= all->tolerance : all->differ;
    return all->are_explained && (is_small || all->are_reordered);
}

/* Whether a task has several blocks or subtasks, and what it leaves depends on their order only. */
static gbx_status is_sum(gbx_replay_session *session, const gbx_inquiry *q,
                         const gbx_check_line *line, double *out_tolerance, bool *out_is) {
    gbx_replay_task task;
    calls all = {.are_explained = true, .tolerance = INFINITY};
    gbx_status status = gbx_replay_task_read(q->request->entries, line->task, &task);
    *out_is = !status && task.dispatch_count > 1;
    for (int i = 0; i < CALLS_MAX && *out_is && !status && all.are_explained; ++i)
        if (i < CALLS || (line->kernels.mismatches == 0 && !all.differ))
            status = call_once(session, &task, line->kernels.slots, &all);
    *out_is &= !status && is_explained(&all, &line->kernels);
    *out_tolerance = all.tolerance;
    gbx_replay_task_free(&task);
    if (!status || !gbx_replay_is_of_task(status))
        return status;
    *out_is = false;
    gbx_status_free(status);
    return NULL;
}

/* --- sums of many tasks --- */

/* What was found out about the tasks of a kernel or mix. */
typedef struct summing {
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint32_t called;
    bool are_sums;    /* all that were called */
    double tolerance; /* of that with the least; infinite: none differed from the run */
} summing;

typedef struct sums {
    summing *kernels;
    size_t count;
    uint64_t capacity;
    int64_t deadline_ns;
    uint64_t left_out; /* tasks */
} sums;

static gbx_status find_summing(const gbx_inquiry *q, const gbx_clue *clue, sums *all,
                               summing **out_kernel) {
    gbx_diagnosis_finding about;
    GBX_TRY(gbx_clue_describe(q, clue, &about));
    for (size_t i = 0; i < all->count; ++i) {
        *out_kernel = &all->kernels[i];
        if (memcmp(all->kernels[i].func_ids, about.func_ids, sizeof about.func_ids) == 0)
            return NULL;
    }
    GBX_TRY(gbx_array_reserve(&all->kernels, &all->capacity, all->count + 1, doing));
    *out_kernel = &all->kernels[all->count++];
    **out_kernel = (summing){.are_sums = true, .tolerance = INFINITY};
    memcpy((*out_kernel)->func_ids, about.func_ids, sizeof about.func_ids);
    return NULL;
}

/* The first tasks of a kernel stand for others that differ as little, if all of them leave sums. */
static gbx_status ask_sum(const gbx_inquiry *q, gbx_replay_session *session, const gbx_clue *clue,
                          sums *all, bool *out_is) {
    const gbx_check_line *line = gbx_inquiry_find_line(q, clue->task);
    summing *kernel;
    double tolerance;
    *out_is = false;
    if (!line)
        return NULL;
    GBX_TRY(find_summing(q, clue, all, &kernel));
    bool is_as_small = line->kernels.mismatches == 0 ||
                       (isfinite(kernel->tolerance) && line->kernels.max_abs <= kernel->tolerance);
    *out_is = kernel->are_sums && kernel->called >= SUMS_OF_KERNEL && is_as_small;
    if (*out_is)
        return NULL;
    if (gbx_clock_ns() > all->deadline_ns) {
        ++all->left_out;
        return NULL;
    }
    GBX_TRY(is_sum(session, q, line, &tolerance, out_is));
    ++kernel->called;
    kernel->are_sums &= *out_is;
    kernel->tolerance = tolerance < kernel->tolerance ? tolerance : kernel->tolerance;
    return NULL;
}

/* --- clues --- */

/* What was dropped. Clues are sorted: those about one task lie together. */
typedef struct dropped {
    size_t races;
    size_t sums;
    size_t tasks; /* with sums */
    uint64_t last;
} dropped;

static void count_dropped(const gbx_clue *clue, dropped *all) {
    if (is_race(clue)) {
        ++all->races;
        return;
    }
    ++all->sums;
    all->tasks += all->sums == 1 || clue->task != all->last;
    all->last = clue->task;
}

static gbx_status report_dropped(gbx_inquiry *q, const dropped *all) {
    q->d->asked[GBX_ASKED_RACES].findings -= all->races;
    q->d->asked[GBX_ASKED_REPLAY].findings -= all->sums;
    if (all->races > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_RACES,
            "%zu %s on the order of blocks, and %s atomic, says the thread sanitizer", all->races,
            all->races == 1 ? "access depends" : "accesses depend",
            all->races == 1 ? "is" : "are"));
    if (all->sums > 0)
        GBX_TRY(gbx_inquiry_note_harmless(
            q, GBX_ASKED_REPLAY,
            "%zu %s values that differ in each call by rounding, or by "
            "their order, without a race, says the thread sanitizer, and the "
            "golden accepts them",
            all->tasks, all->tasks == 1 ? "task leaves" : "tasks leave"));
    return NULL;
}

/* Marks in `drops` which clues are no findings. */
static gbx_status judge_all(gbx_inquiry *q, gbx_replay_session *session, sums *all, bool *drops) {
    uint32_t chip_blocks = session->kept && session->kept->blocks ? session->kept->blocks : 1;
    uint64_t last = GBX_DIAGNOSIS_NOBODY;
    bool is_small = false;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue *clue = &q->clues[i];
        bool is_other = !is_race(clue) && !may_be_sum(q->d, clue);
        if (is_other || !is_atomic(q, clue, chip_blocks))
            continue;
        drops[i] = is_race(clue);
        if (drops[i])
            continue;
        if (clue->task != last)
            GBX_TRY(ask_sum(q, session, clue, all, &is_small));
        last = clue->task;
        drops[i] = is_small;
    }
    return NULL;
}

static gbx_status judge(gbx_inquiry *q, gbx_replay_session *session, bool *drops) {
    sums all = {.deadline_ns = gbx_clock_ns() + SUMS_NS};
    gbx_status status = judge_all(q, session, &all, drops);
    free(all.kernels);
    if (status || all.left_out == 0)
        return status;
    return gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                            "%" PRIu64 " %s other values were not looked at in time: they may "
                            "differ by the order of blocks",
                            all.left_out,
                            all.left_out == 1 ? "task that leaves" : "tasks that leave");
}

/* If a result is wrong, the order of atomic operations may be why: then nothing is dropped, but
 * everything else comes first. */
static void drop(gbx_inquiry *q, const bool *drops, dropped *all) {
    size_t kept = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        q->clues[i].is_weak |= drops[i] && q->d->golden;
        if (drops[i] && !q->d->golden)
            count_dropped(&q->clues[i], all);
        else
            q->clues[kept++] = q->clues[i];
    }
    q->clue_count = kept;
}

gbx_status gbx_inquiry_drop_atomic(gbx_inquiry *q, gbx_replay_session *session) {
    dropped all = {0};
    bool *drops = calloc(q->clue_count + 1, sizeof *drops);
    if (!drops)
        return gbx_fail_memory("%s", doing);
    gbx_status status = judge(q, session, drops);
    if (!status)
        drop(q, drops, &all);
    free(drops);
    return status ? status : report_dropped(q, &all);
}
