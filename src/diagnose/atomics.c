/*
 * Blocks whose order shows, but that do not race. A replay takes atomic operations other than
 * additions of integers for races, and what locks guard; the thread sanitizer knows them from
 * others, if it can be asked. Sums of floats depend on the order of additions, and so do lists to
 * which blocks append.
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

/* What is known of the order of a task's blocks. */
typedef enum order {
    ORDER_RACES,  /* or nothing says that they do not */
    ORDER_ATOMIC, /* the thread sanitizer has seen them, and no race */
    ORDER_UNKNOWN /* it could not be asked, and the sources have what may order them */
} order;

static order order_of(const gbx_replay_session *session, const gbx_diagnosis_line *line,
                      uint32_t chip_blocks) {
    if (has_no_race(line, chip_blocks))
        return ORDER_ATOMIC;
    for (size_t i = 0; i < line->report.finding_count; ++i)
        if (line->report.findings[i].kind == GBX_SANITIZE_RACE)
            return ORDER_RACES;
    const gbx_sanitize_asked *asked = &line->report.asked[GBX_SANITIZE_THREAD];
    return !asked->was_asked && asked->why_not &&
                   gbx_sanitize_look(session, &line->task).orders_blocks
               ? ORDER_UNKNOWN
               : ORDER_RACES;
}

/* By what was said of the task itself, or else of one with the same kernels: of a race, one that is
 * accused of a race, too. */
static order judge_order(const gbx_inquiry *q, const gbx_replay_session *session,
                         const gbx_clue *clue, uint32_t chip_blocks,
                         const gbx_diagnosis_line **out_line) {
    const gbx_diagnosis *d = q->d;
    gbx_diagnosis_finding about;
    gbx_status status = gbx_clue_describe(q, clue, &about);
    bool is_known = !status;
    order best = ORDER_RACES;
    gbx_status_free(status);
    for (size_t i = 0; i < d->line_count && is_known; ++i) {
        const gbx_diagnosis_line *line = &d->lines[i];
        bool is_own = line->task.task == clue->task;
        if (!is_own && (best == ORDER_ATOMIC ||
                        memcmp(line->task.func_ids, about.func_ids, sizeof about.func_ids) != 0 ||
                        (is_race(clue) && !is_accused_of_race(q, line->task.task, clue->slot))))
            continue;
        order found = order_of(session, line, chip_blocks);
        if (is_own || found != ORDER_RACES) {
            best = found;
            *out_line = line;
        }
        if (is_own)
            break;
    }
    return best;
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

/* Whether a task has several blocks or subtasks, and what it leaves depends on their order only. Of
 * a race alone, nothing need differ. */
static gbx_status is_sum(gbx_replay_session *session, const gbx_inquiry *q,
                         const gbx_check_line *line, bool has_race, double *out_tolerance,
                         bool *out_is) {
    gbx_replay_task task;
    calls all = {.are_explained = true, .tolerance = INFINITY};
    gbx_status status = gbx_replay_task_read(q->request->entries, line->task, &task);
    *out_is = !status && task.dispatch_count > 1;
    for (int i = 0; i < CALLS_MAX && *out_is && !status && all.are_explained; ++i)
        if (i < CALLS || (!has_race && line->kernels.mismatches == 0 && !all.differ))
            status = call_once(session, &task, line->kernels.slots, &all);
    bool is_quiet = has_race && line->kernels.mismatches == 0 && all.are_explained;
    *out_is &= !status && (is_quiet || is_explained(&all, &line->kernels));
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
    GBX_TRY(is_sum(session, q, line, is_race(clue), &tolerance, out_is));
    ++kernel->called;
    kernel->are_sums &= *out_is;
    kernel->tolerance = tolerance < kernel->tolerance ? tolerance : kernel->tolerance;
    return NULL;
}

/* --- clues --- */

/* What becomes of a clue. */
typedef enum verdict {
    VERDICT_STAYS = 0,
    VERDICT_HARMLESS,
    VERDICT_UNKNOWN /* no finding, because nothing could tell */
} verdict;

/* What was dropped. Clues are sorted: those about one task lie together. */
typedef struct dropped {
    size_t races;
    size_t sums;
    size_t tasks; /* with sums */
    uint64_t last;
    size_t unknown_races;
    size_t unknown_others;
    size_t unknown_tasks; /* with any of these */
    uint64_t last_unknown;
    const char *why; /* the thread sanitizer could not be asked, of one of them */
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

static gbx_status report_harmless(gbx_inquiry *q, const dropped *all) {
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

static gbx_status report_dropped(gbx_inquiry *q, const dropped *all) {
    q->d->asked[GBX_ASKED_RACES].findings -= all->races + all->unknown_races;
    q->d->asked[GBX_ASKED_REPLAY].findings -= all->sums + all->unknown_others;
    GBX_TRY(report_harmless(q, all));
    if (all->unknown_tasks == 0)
        return NULL;
    return gbx_inquiry_lack(
        q, GBX_ASKED_RACES,
        "what %zu %s depends on the order of %s blocks, and whether they race is not known: %s",
        all->unknown_tasks, all->unknown_tasks == 1 ? "task leaves" : "tasks leave",
        all->unknown_tasks == 1 ? "its" : "their", all->why);
}

/* Where the sanitizer could not be asked, the results must be right each time, but for rounding. */
static gbx_status judge_all(gbx_inquiry *q, gbx_replay_session *session, sums *asked,
                            verdict *verdicts, dropped *all) {
    uint32_t chip_blocks = session->kept && session->kept->blocks ? session->kept->blocks : 1;
    const bool is_right = q->d->asked[GBX_ASKED_GOLDEN].tasks > 0 && !q->d->golden;
    uint64_t last = GBX_DIAGNOSIS_NOBODY;
    bool is_small = false, was_race = false;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue *clue = &q->clues[i];
        const gbx_diagnosis_line *line = NULL;
        if (!is_race(clue) && !may_be_sum(q->d, clue))
            continue;
        order found = judge_order(q, session, clue, chip_blocks, &line);
        if (found == ORDER_RACES || (found == ORDER_UNKNOWN && !is_right))
            continue;
        if (found == ORDER_ATOMIC && is_race(clue)) {
            verdicts[i] = VERDICT_HARMLESS;
            continue;
        }
        if (clue->task != last || is_race(clue) != was_race)
            GBX_TRY(ask_sum(q, session, clue, asked, &is_small));
        last = clue->task;
        was_race = is_race(clue);
        if (!is_small)
            continue;
        verdicts[i] = found == ORDER_ATOMIC ? VERDICT_HARMLESS : VERDICT_UNKNOWN;
        if (found == ORDER_UNKNOWN && !all->why)
            all->why = line->report.asked[GBX_SANITIZE_THREAD].why_not;
    }
    return NULL;
}

static gbx_status judge(gbx_inquiry *q, gbx_replay_session *session, verdict *verdicts,
                        dropped *all) {
    sums asked = {.deadline_ns = gbx_clock_ns() + SUMS_NS};
    gbx_status status = judge_all(q, session, &asked, verdicts, all);
    free(asked.kernels);
    if (status || asked.left_out == 0)
        return status;
    return gbx_inquiry_lack(q, GBX_ASKED_REPLAY,
                            "%" PRIu64 " %s other values were not looked at in time: they may "
                            "differ by the order of blocks",
                            asked.left_out,
                            asked.left_out == 1 ? "task that leaves" : "tasks that leave");
}

/* If a result is wrong, the order of atomic operations may be why: then nothing is dropped, but
 * everything else comes first. */
static void drop(gbx_inquiry *q, const verdict *verdicts, dropped *all) {
    size_t kept = 0;
    for (size_t i = 0; i < q->clue_count; ++i) {
        const gbx_clue *clue = &q->clues[i];
        q->clues[i].is_weak |= verdicts[i] == VERDICT_HARMLESS && q->d->golden;
        if (verdicts[i] == VERDICT_UNKNOWN) {
            all->unknown_races += is_race(clue);
            all->unknown_others += !is_race(clue);
            all->unknown_tasks += all->unknown_tasks == 0 || clue->task != all->last_unknown;
            all->last_unknown = clue->task;
        } else if (verdicts[i] == VERDICT_HARMLESS && !q->d->golden)
            count_dropped(clue, all);
        else
            q->clues[kept++] = *clue;
    }
    q->clue_count = kept;
}

gbx_status gbx_inquiry_drop_atomic(gbx_inquiry *q, gbx_replay_session *session) {
    dropped all = {0};
    verdict *verdicts = calloc(q->clue_count + 1, sizeof *verdicts);
    if (!verdicts)
        return gbx_fail_memory("%s", doing);
    gbx_status status = judge(q, session, verdicts, &all);
    if (!status)
        drop(q, verdicts, &all);
    free(verdicts);
    return status ? status : report_dropped(q, &all);
}
