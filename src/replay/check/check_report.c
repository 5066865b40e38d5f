#include "replay/check/check_report.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "base/memory.h"
#include "replay/check/internal.h"

enum { RECENT_REASONS = 16 };
static const char doing[] = "reporting on the dump's tasks";

/* --- tasks --- */

/* Thousands of tasks share a few reasons: only the last few are searched. */
gbx_status gbx_check_report_keep(gbx_check_report *report, const char *text,
                                 const char **out_reason) {
    uint64_t count = report->reason_count;
    for (uint64_t i = 0; i < RECENT_REASONS && i < count; ++i)
        if (strcmp(report->reasons[count - 1 - i], text) == 0) {
            *out_reason = report->reasons[count - 1 - i];
            return NULL;
        }
    GBX_TRY(gbx_array_reserve(&report->reasons, &report->reason_capacity, count + 1, doing));
    char *copy = strdup(text);
    if (!copy)
        return gbx_fail_memory("%s", doing);
    report->reasons[report->reason_count++] = copy;
    *out_reason = copy;
    return NULL;
}

/* Counts a wrong task of a kernel that stays wrong; *out_before is how many there were. */
static gbx_status count_steady(gbx_check_report *report, const gbx_check_line *line,
                               uint64_t *out_before) {
    uint64_t i = 0;
    while (i < report->steady_count &&
           memcmp(report->steady[i].func_ids, line->func_ids, sizeof line->func_ids) != 0)
        ++i;
    GBX_TRY(gbx_array_reserve(&report->steady, &report->steady_capacity, i + 1, doing));
    if (i == report->steady_count) {
        report->steady[report->steady_count++] = (gbx_check_steady){0};
        memcpy(report->steady[i].func_ids, line->func_ids, sizeof line->func_ids);
    }
    *out_before = report->steady[i].tasks++;
    return NULL;
}

/* Only a task that may be a victim may turn out not to be wrong; so the first tasks of each kernel
 * in the final list are among these. */
static gbx_status keeps_outputs(gbx_check_report *report, const gbx_check_line *line,
                                bool *out_keeps) {
    uint64_t before = 0;
    *out_keeps = line->verdict == GBX_CHECK_INTRODUCED;
    if (*out_keeps && !gbx_check_may_be_victim(&line->kernels))
        GBX_TRY(count_steady(report, line, &before));
    *out_keeps = report->keeps_all || (*out_keeps && before < GBX_CHECK_LINES_MAX);
    return NULL;
}

/* A task that could not be read may still have a record. */
static gbx_status complete_identity(const gbx_check_report *report, const gbx_replay_task *task,
                                    gbx_check_line *line) {
    gbx_record_task record;
    bool is_found = false;
    if (task->dispatch_count > 0)
        return NULL;
    GBX_TRY(gbx_reader_find_task(report->reader, task->task, &record, &is_found));
    if (is_found) {
        line->task_id = record.task_id;
        memcpy(line->func_ids, record.func_ids, sizeof line->func_ids);
    }
    return NULL;
}

static gbx_status fill_line(gbx_check_report *report, const gbx_replay_task *task,
                            const gbx_check_result *result, const gbx_check_kernels *kernels,
                            gbx_check_line *line) {
    *line = (gbx_check_line){.task = task->task,
                             .culprit = UINT64_MAX,
                             .task_id = task->task_id,
                             .verdict = result->verdict,
                             .worst_output = result->worst_output,
                             .missing_outputs = result->missing_outputs,
                             .stray_bytes = result->stray_bytes,
                             .stray_address = result->stray_address,
                             .stray_is_unknown = result->stray_is_unknown,
                             .kernels = *kernels};
    memcpy(line->func_ids, task->func_ids, sizeof line->func_ids);
    GBX_TRY(complete_identity(report, task, line));
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const gbx_comparison *comparison = &result->outputs[i].comparison;
        line->not_written += result->outputs[i].not_written;
        line->wrong_outputs += comparison->mismatches > 0;
        line->max_abs = comparison->max_abs > line->max_abs ? comparison->max_abs : line->max_abs;
        line->max_rel = comparison->max_rel > line->max_rel ? comparison->max_rel : line->max_rel;
    }
    if (result->verdict == GBX_CHECK_NOT_CHECKED)
        GBX_TRY(gbx_check_report_keep(report, result->reason, &line->reason));
    bool keeps;
    GBX_TRY(keeps_outputs(report, line, &keeps));
    if (result->output_count == 0 || !keeps)
        return NULL;
    size_t bytes = result->output_count * sizeof *line->outputs;
    line->outputs = malloc(bytes);
    if (!line->outputs)
        return gbx_fail_memory("%s", doing);
    memcpy(line->outputs, result->outputs, bytes);
    line->output_count = result->output_count;
    return NULL;
}

gbx_status gbx_check_report_add(gbx_check_report *report, const gbx_replay_task *task,
                                const gbx_check_result *result, const gbx_check_kernels *kernels) {
    GBX_TRY(gbx_array_reserve(&report->lines, &report->capacity, report->count + 1, doing));
    GBX_TRY(fill_line(report, task, result, kernels, &report->lines[report->count]));
    ++report->count;
    ++report->verdicts[result->verdict];
    report->accused += kernels->is_accused;
    report->not_called += !kernels->is_called;
    report->differing += kernels->differs;
    return NULL;
}

void gbx_check_report_free(gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        free(report->lines[i].outputs);
    for (uint64_t i = 0; i < report->reason_count; ++i)
        free(report->reasons[i]);
    for (uint64_t i = 0; i < report->result_count; ++i)
        gbx_replay_result_free(&report->results[i]);
    free(report->results);
    free(report->steady);
    free(report->lines);
    free(report->reasons);
    free(report->scene);
    free(report->why_no_scene);
}

const gbx_check_line *gbx_check_report_first(const gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            return &report->lines[i];
    return NULL;
}

/* --- groups --- */

typedef const gbx_check_line *line_pointer;

static int compare_places(line_pointer a, line_pointer b) {
    return a < b ? -1 : a > b;
}

/* 0 for tasks of one group. */
static int compare_groups(line_pointer a, line_pointer b, bool is_unchecked) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (a->func_ids[i] != b->func_ids[i])
            return a->func_ids[i] < b->func_ids[i] ? -1 : 1;
    return is_unchecked && a->reason != b->reason ? strcmp(a->reason, b->reason) : 0;
}

static int by_group(const void *a, const void *b, void *is_unchecked) {
    const line_pointer left = *(const line_pointer *)a;
    const line_pointer right = *(const line_pointer *)b;
    int order = compare_groups(left, right, *(const bool *)is_unchecked);
    return order ? order : compare_places(left, right);
}

static int by_first(const void *a, const void *b) {
    return compare_places(((const gbx_check_group *)a)->examples[0],
                          ((const gbx_check_group *)b)->examples[0]);
}

static void add_line(gbx_check_group *group, line_pointer line) {
    if (group->tasks < GBX_CHECK_EXAMPLES)
        group->examples[group->tasks] = line;
    ++group->tasks;
    ++group->verdicts[line->verdict];
    group->not_written += line->not_written;
    group->not_written_tasks += line->not_written > 0;
    group->stray_tasks += line->stray_bytes > 0;
    group->stray_unknown_tasks += line->stray_is_unknown;
    if (line->not_written > 0 && !group->first_not_written)
        group->first_not_written = line;
    if (line->stray_bytes > 0 && !group->first_stray)
        group->first_stray = line;
    group->max_abs = line->max_abs > group->max_abs ? line->max_abs : group->max_abs;
    group->max_rel = line->max_rel > group->max_rel ? line->max_rel : group->max_rel;
}

gbx_status gbx_check_report_group(const gbx_check_report *report, bool is_unchecked,
                                  gbx_check_group **out_groups, size_t *out_count) {
    line_pointer *lines = malloc((report->count + 1) * sizeof(line_pointer));
    gbx_check_group *groups = calloc(report->count + 1, sizeof *groups);
    uint64_t count = 0;
    *out_count = 0;
    if (!lines || !groups) {
        free(lines);
        free(groups);
        return gbx_fail_memory("%s", doing);
    }
    for (uint64_t i = 0; i < report->count; ++i)
        if (!is_unchecked || report->lines[i].verdict == GBX_CHECK_NOT_CHECKED)
            lines[count++] = &report->lines[i];
    qsort_r(lines, count, sizeof(line_pointer), by_group, &is_unchecked);
    for (uint64_t i = 0; i < count; ++i) {
        *out_count += i == 0 || compare_groups(lines[i - 1], lines[i], is_unchecked) != 0;
        add_line(&groups[*out_count - 1], lines[i]);
    }
    qsort(groups, *out_count, sizeof *groups, by_first);
    free(lines);
    *out_groups = groups;
    return NULL;
}
