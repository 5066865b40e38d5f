/*
 * Blocks whose order shows, but that do not race. A replay takes atomic operations other than
 * additions of integers for races, and what locks guard; the thread sanitizer knows them from
 * others, if it can be asked. Sums of floats
 * depend on the order of additions, and so do lists to which blocks append.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "base/memory.h"
#include "diagnose/internal.h"

enum { CALLS = 4 };   /* of a task whose sums differ */
#define ROUNDING 1e-3 /* of the largest value */

#define LIST_MAX (UINT64_C(1) << 22) /* elements */

static const char doing[] = "comparing sums";

/* Whether the thread sanitizer has seen all blocks of a task at once until they ended, and no race.
 */
static bool has_no_race(const gbx_diagnosis_line *line, uint32_t chip_blocks) {
    if (!line->report.asked[GBX_SANITIZE_THREAD].was_asked || line->task.dispatch_count < 2 ||
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

/* Whether a call left the elements of the run in another order. */
static bool is_reordered(const gbx_replay_compared *output, const gbx_replay_payloads *payloads) {
    uint32_t i = output->argument;
    const gbx_bits_payloads written = {.replay = payloads->kept[GBX_KEPT_FIRST][i],
                                       .other = payloads->kept[GBX_KEPT_OTHER][i],
                                       .start = payloads->kept[GBX_KEPT_START][i],
                                       .other_start = payloads->kept[GBX_KEPT_OTHER_START][i]};
    uint64_t counts[2] = {0, 0};
    if (!payloads->dump[i] || !written.replay ||
        (uint64_t)gbx_tensor_numel(&output->tensor) > LIST_MAX)
        return false;
    uint64_t *run = sorted(&output->tensor, &written, payloads->dump[i], &counts[0]);
    uint64_t *call = sorted(&output->tensor, &written, written.replay, &counts[1]);
    bool is_same = run && call && memcmp(run, call, counts[0] * sizeof *run) == 0;
    free(run);
    free(call);
    return is_same;
}

/* Whether an output differs from that of the run by no more than the order of blocks explains. */
static bool is_explained(const gbx_replay_compared *output, const gbx_replay_payloads *payloads) {
    if (!output->is_compared || output->is_exact || output->bits.mismatches == 0)
        return true;
    const unsigned char *dump = payloads->dump[output->argument];
    bool is_small = gbx_dtype_is_float(output->tensor.dtype) && dump &&
                    output->bits.max_abs <= ROUNDING * largest_of(&output->tensor, dump);
    return is_small || is_reordered(output, payloads);
}

static gbx_status call_once(gbx_replay_session *session, const gbx_replay_task *task,
                            bool *is_small) {
    gbx_replay_job job;
    gbx_replay_result result = {0};
    gbx_replay_payloads payloads = {0};
    gbx_status status = gbx_replay_session_job(session, task, &job);
    if (!status)
        status = gbx_replay_execute(&job, &payloads, &result);
    *is_small &= !status && !result.fault;
    for (size_t i = 0; i < result.output_count && *is_small; ++i)
        *is_small = is_explained(&result.outputs[i], &payloads);
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    return status;
}

/* Whether a task has several blocks or subtasks, and what it leaves depends on their order only. */
static gbx_status is_sum(const gbx_inquiry *q, gbx_replay_session *session, uint64_t number,
                         bool *out_is) {
    gbx_replay_task task;
    gbx_status status = gbx_replay_task_read(q->request->entries, number, &task);
    *out_is = !status && task.dispatch_count > 1;
    for (int i = 0; i < CALLS && *out_is; ++i)
        status = call_once(session, &task, out_is);
    gbx_replay_task_free(&task);
    if (!status || !gbx_replay_is_of_task(status))
        return status;
    *out_is = false;
    gbx_status_free(status);
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
static gbx_status judge(gbx_inquiry *q, gbx_replay_session *session, verdict *verdicts,
                        dropped *all) {
    uint32_t chip_blocks = session->kept && session->kept->blocks ? session->kept->blocks : 1;
    const bool is_right = q->d->asked[GBX_ASKED_GOLDEN].tasks > 0 && !q->d->golden;
    uint64_t last = GBX_DIAGNOSIS_NOBODY;
    bool is_small = false;
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
        if (clue->task != last)
            GBX_TRY(is_sum(q, session, clue->task, &is_small));
        last = clue->task;
        if (!is_small)
            continue;
        verdicts[i] = found == ORDER_ATOMIC ? VERDICT_HARMLESS : VERDICT_UNKNOWN;
        if (found == ORDER_UNKNOWN && !all->why)
            all->why = line->report.asked[GBX_SANITIZE_THREAD].why_not;
    }
    return NULL;
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
