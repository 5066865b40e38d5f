#include <stdlib.h>
#include <string.h>

#include "cli/check_report.h"

typedef const gbx_check_line *line_pointer;
typedef int (*comparison)(const void *, const void *);

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "no memory for groups of the dump's tasks");
}

/* --- order --- */

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
        return fail_memory();
    for (uint64_t i = 0; i < report->count; ++i)
        if (has_all || report->lines[i].verdict == GBX_CHECK_NOT_CHECKED)
            lines[(*out_count)++] = &report->lines[i];
    if (*out_count > 0)
        qsort(lines, *out_count, sizeof(line_pointer), compare);
    return NULL;
}

/* --- kernels --- */

static void add_to_kernel(gbx_check_kernel *kernel, line_pointer line) {
    ++kernel->tasks;
    ++kernel->verdicts[line->verdict];
    kernel->not_written += line->not_written;
    kernel->not_written_tasks += line->not_written > 0;
    kernel->stray_tasks += line->stray_bytes > 0;
    kernel->stray_unknown_tasks += line->stray_is_unknown;
    if (line->not_written > 0 && !kernel->first_not_written)
        kernel->first_not_written = line;
    if (line->stray_bytes > 0 && !kernel->first_stray)
        kernel->first_stray = line;
    kernel->max_abs = line->max_abs > kernel->max_abs ? line->max_abs : kernel->max_abs;
    kernel->max_rel = line->max_rel > kernel->max_rel ? line->max_rel : kernel->max_rel;
}

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
        add_to_kernel(&kernels[*out_count - 1], lines[i]);
    }
    free(lines);
    if (!kernels)
        return fail_memory();
    if (*out_count > 0)
        qsort(kernels, *out_count, sizeof *kernels, by_first);
    *out_kernels = kernels;
    return NULL;
}

/* --- what is not checked --- */

static void add_to_unchecked(gbx_check_unchecked *group, line_pointer line) {
    if (group->tasks < GBX_CHECK_EXAMPLES)
        group->examples[group->tasks] = line;
    ++group->tasks;
}

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
        add_to_unchecked(&groups[*out_count - 1], lines[i]);
    }
    free(lines);
    if (!groups)
        return fail_memory();
    if (*out_count > 0)
        qsort(groups, *out_count, sizeof *groups, by_example);
    *out_groups = groups;
    return NULL;
}
