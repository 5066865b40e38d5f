#include "replay/check/check_report.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "base/memory.h"

enum { RECENT_REASONS = 16 };
static const char doing[] = "keeping what is found out of the dump's tasks";

/* --- tasks --- */

/* Thousands of tasks have the same few reasons: those that came last are looked through. */
static gbx_status keep_reason(gbx_check_report *report, const char *text, const char **out_reason) {
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

static gbx_status fill_line(gbx_check_report *report, uint64_t task, const gbx_check_result *result,
                            gbx_check_line *line) {
    gbx_record_task record;
    bool is_found = false;
    *line = (gbx_check_line){.task = task,
                             .func_ids = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL},
                             .verdict = result->verdict,
                             .worst_output = result->worst_output,
                             .missing_outputs = result->missing_outputs,
                             .stray_bytes = result->stray_bytes,
                             .stray_address = result->stray_address,
                             .stray_is_unknown = result->stray_is_unknown};
    GBX_TRY(gbx_reader_find_task(report->reader, task, &record, &is_found));
    if (is_found) {
        line->task_id = record.task_id;
        memcpy(line->func_ids, record.func_ids, sizeof line->func_ids);
    }
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const gbx_comparison *comparison = &result->outputs[i].comparison;
        line->not_written += result->outputs[i].not_written;
        line->wrong_outputs += comparison->mismatches > 0;
        line->max_abs = comparison->max_abs > line->max_abs ? comparison->max_abs : line->max_abs;
        line->max_rel = comparison->max_rel > line->max_rel ? comparison->max_rel : line->max_rel;
    }
    if (result->verdict == GBX_CHECK_NOT_CHECKED)
        GBX_TRY(keep_reason(report, result->reason, &line->reason));
    bool is_listed = result->verdict == GBX_CHECK_INTRODUCED &&
                     report->verdicts[GBX_CHECK_INTRODUCED] < GBX_CHECK_LINES_MAX;
    if (result->output_count == 0 || (!report->keeps_all && !is_listed))
        return NULL;
    size_t bytes = result->output_count * sizeof *line->outputs;
    line->outputs = malloc(bytes);
    if (!line->outputs)
        return gbx_fail_memory("%s", doing);
    memcpy(line->outputs, result->outputs, bytes);
    line->output_count = result->output_count;
    return NULL;
}

gbx_status gbx_check_report_add(gbx_check_report *report, uint64_t task,
                                const gbx_check_result *result) {
    GBX_TRY(gbx_array_reserve(&report->lines, &report->capacity, report->count + 1, doing));
    GBX_TRY(fill_line(report, task, result, &report->lines[report->count]));
    ++report->count;
    ++report->verdicts[result->verdict];
    return NULL;
}

void gbx_check_report_free(gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        free(report->lines[i].outputs);
    for (uint64_t i = 0; i < report->reason_count; ++i)
        free(report->reasons[i]);
    free(report->lines);
    free(report->reasons);
    free(report->scene);
}

const gbx_check_line *gbx_check_report_first(const gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            return &report->lines[i];
    return NULL;
}

/* --- groups: the order of tasks --- */

typedef const gbx_check_line *line_pointer;
typedef int (*comparison)(const void *, const void *);

static int compare_places(line_pointer a, line_pointer b) {
    return a < b ? -1 : a > b;
}

static int compare_functions(line_pointer a, line_pointer b) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (a->func_ids[i] != b->func_ids[i])
            return a->func_ids[i] < b->func_ids[i] ? -1 : 1;
    return 0;
}

static int compare_reasons(line_pointer a, line_pointer b) {
    int order = compare_functions(a, b);
    if (order == 0 && a->reason != b->reason)
        order = strcmp(a->reason, b->reason);
    return order;
}

static int by_function(const void *a, const void *b) {
    const line_pointer left = *(const line_pointer *)a;
    const line_pointer right = *(const line_pointer *)b;
    int order = compare_functions(left, right);
    return order ? order : compare_places(left, right);
}

static int by_reason(const void *a, const void *b) {
    const line_pointer left = *(const line_pointer *)a;
    const line_pointer right = *(const line_pointer *)b;
    int order = compare_reasons(left, right);
    return order ? order : compare_places(left, right);
}

static int by_first(const void *a, const void *b) {
    return compare_places(((const gbx_check_kernel *)a)->first,
                          ((const gbx_check_kernel *)b)->first);
}

static int by_example(const void *a, const void *b) {
    return compare_places(((const gbx_check_unchecked *)a)->examples[0],
                          ((const gbx_check_unchecked *)b)->examples[0]);
}

/* The tasks, or those that are not checked, sorted. */
static gbx_status sort_lines(const gbx_check_report *report, bool has_all, comparison compare,
                             line_pointer **out_lines, uint64_t *out_count) {
    line_pointer *lines = malloc((report->count + 1) * sizeof(line_pointer));
    *out_count = 0;
    *out_lines = lines;
    if (!lines)
        return gbx_fail_memory("%s", doing);
    for (uint64_t i = 0; i < report->count; ++i)
        if (has_all || report->lines[i].verdict == GBX_CHECK_NOT_CHECKED)
            lines[(*out_count)++] = &report->lines[i];
    if (*out_count > 0)
        qsort(lines, *out_count, sizeof(line_pointer), compare);
    return NULL;
}

/* --- groups: kernels --- */

gbx_status gbx_check_report_kernels(const gbx_check_report *report, gbx_check_kernel **out_kernels,
                                    size_t *out_count) {
    line_pointer *lines;
    uint64_t count;
    *out_count = 0;
    *out_kernels = NULL;
    GBX_TRY(sort_lines(report, true, by_function, &lines, &count));
    gbx_check_kernel *kernels = calloc(count + 1, sizeof *kernels);
    for (uint64_t i = 0; kernels && i < count; ++i) {
        if (i == 0 || compare_functions(lines[i - 1], lines[i]) != 0)
            kernels[(*out_count)++].first = lines[i];
        gbx_check_kernel *kernel = &kernels[*out_count - 1];
        ++kernel->tasks;
        ++kernel->verdicts[lines[i]->verdict];
        kernel->not_written += lines[i]->not_written;
        kernel->not_written_tasks += lines[i]->not_written > 0;
        kernel->stray_tasks += lines[i]->stray_bytes > 0;
        kernel->stray_unknown_tasks += lines[i]->stray_is_unknown;
        if (lines[i]->not_written > 0 && !kernel->first_not_written)
            kernel->first_not_written = lines[i];
        if (lines[i]->stray_bytes > 0 && !kernel->first_stray)
            kernel->first_stray = lines[i];
        kernel->max_abs = lines[i]->max_abs > kernel->max_abs ? lines[i]->max_abs : kernel->max_abs;
        kernel->max_rel = lines[i]->max_rel > kernel->max_rel ? lines[i]->max_rel : kernel->max_rel;
    }
    free(lines);
    if (!kernels)
        return gbx_fail_memory("%s", doing);
    if (*out_count > 0)
        qsort(kernels, *out_count, sizeof *kernels, by_first);
    *out_kernels = kernels;
    return NULL;
}

/* --- groups: what is not checked --- */

gbx_status gbx_check_report_unchecked(const gbx_check_report *report,
                                      gbx_check_unchecked **out_groups, size_t *out_count) {
    line_pointer *lines;
    uint64_t count;
    *out_count = 0;
    *out_groups = NULL;
    GBX_TRY(sort_lines(report, false, by_reason, &lines, &count));
    gbx_check_unchecked *groups = calloc(count + 1, sizeof *groups);
    for (uint64_t i = 0; groups && i < count; ++i) {
        *out_count += i == 0 || compare_reasons(lines[i - 1], lines[i]) != 0;
        gbx_check_unchecked *group = &groups[*out_count - 1];
        if (group->tasks < GBX_CHECK_EXAMPLES)
            group->examples[group->tasks] = lines[i];
        ++group->tasks;
    }
    free(lines);
    if (!groups)
        return gbx_fail_memory("%s", doing);
    if (*out_count > 0)
        qsort(groups, *out_count, sizeof *groups, by_example);
    *out_groups = groups;
    return NULL;
}
