#include "cli/check_report.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

enum { RECENT_REASONS = 16 };

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "no memory for what is found out of the dump's tasks");
}

/* --- tasks --- */

static gbx_status make_room(gbx_check_report *report) {
    if (report->count < report->capacity)
        return NULL;
    uint64_t wanted = report->capacity ? report->capacity * 2 : 256;
    gbx_check_line *larger = realloc(report->lines, wanted * sizeof *larger);
    if (!larger)
        return fail_memory();
    report->lines = larger;
    report->capacity = wanted;
    return NULL;
}

static gbx_status make_reason_room(gbx_check_report *report) {
    if (report->reason_count < report->reason_capacity)
        return NULL;
    size_t wanted = report->reason_capacity ? report->reason_capacity * 2 : 16;
    char **larger = realloc(report->reasons, wanted * sizeof *larger);
    if (!larger)
        return fail_memory();
    report->reasons = larger;
    report->reason_capacity = wanted;
    return NULL;
}

/* Thousands of tasks have the same few reasons: those that came last are looked through. */
static gbx_status keep_reason(gbx_check_report *report, const char *text, const char **out_reason) {
    size_t count = report->reason_count;
    for (size_t i = 0; i < RECENT_REASONS && i < count; ++i)
        if (strcmp(report->reasons[count - 1 - i], text) == 0) {
            *out_reason = report->reasons[count - 1 - i];
            return NULL;
        }
    GBX_TRY(make_reason_room(report));
    char *copy = strdup(text);
    if (!copy)
        return fail_memory();
    report->reasons[report->reason_count++] = copy;
    *out_reason = copy;
    return NULL;
}

static void sum_up(gbx_check_line *line, const gbx_check_result *result) {
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const gbx_comparison *comparison = &result->outputs[i].comparison;
        line->not_written += result->outputs[i].not_written;
        line->wrong_outputs += comparison->mismatches > 0;
        line->max_abs = comparison->max_abs > line->max_abs ? comparison->max_abs : line->max_abs;
        line->max_rel = comparison->max_rel > line->max_rel ? comparison->max_rel : line->max_rel;
    }
}

static gbx_status keep_outputs(gbx_check_report *report, gbx_check_line *line,
                               const gbx_check_result *result) {
    bool is_listed = result->verdict == GBX_CHECK_INTRODUCED &&
                     report->verdicts[GBX_CHECK_INTRODUCED] < GBX_CHECK_LINES_MAX;
    if (result->output_count == 0 || (!report->keeps_all && !is_listed))
        return NULL;
    size_t bytes = result->output_count * sizeof *line->outputs;
    line->outputs = malloc(bytes);
    if (!line->outputs)
        return fail_memory();
    memcpy(line->outputs, result->outputs, bytes);
    line->output_count = result->output_count;
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
    GBX_TRY(gbx_reader_find_task(report->dump->reader, task, &record, &is_found));
    if (is_found) {
        line->task_id = record.task_id;
        memcpy(line->func_ids, record.func_ids, sizeof line->func_ids);
    }
    sum_up(line, result);
    if (result->verdict == GBX_CHECK_NOT_CHECKED)
        GBX_TRY(keep_reason(report, result->reason, &line->reason));
    return keep_outputs(report, line, result);
}

gbx_status gbx_check_report_add(gbx_check_report *report, uint64_t task,
                                const gbx_check_result *result) {
    GBX_TRY(make_room(report));
    GBX_TRY(fill_line(report, task, result, &report->lines[report->count]));
    ++report->count;
    ++report->verdicts[result->verdict];
    return NULL;
}

void gbx_check_report_free(gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        free(report->lines[i].outputs);
    for (size_t i = 0; i < report->reason_count; ++i)
        free(report->reasons[i]);
    free(report->lines);
    free(report->reasons);
}

const gbx_check_line *gbx_check_report_first(const gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            return &report->lines[i];
    return NULL;
}
