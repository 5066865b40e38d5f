#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check_report.h"
#include "cli/view_row.h"

const char *gbx_check_kernel_text(const gbx_check_report *report, const gbx_check_line *line,
                                  char *out_text) {
    gbx_record_task task = {0};
    memcpy(task.func_ids, line->func_ids, sizeof task.func_ids);
    gbx_view_kernel_text(report->dump->reader, &task, out_text);
    return out_text;
}

const char *gbx_check_task_text(const gbx_check_report *report, const gbx_check_line *line,
                                char out_text[GBX_CHECK_TASK_BYTES]) {
    bool has_number = gbx_reader_get_origin(report->dump->reader)->told & GBX_TOLD_TASK_SEQ;
    if (has_number)
        snprintf(out_text, GBX_CHECK_TASK_BYTES, "%" PRIu64, line->task);
    else
        snprintf(out_text, GBX_CHECK_TASK_BYTES, "0x%" PRIx64, line->task_id);
    return out_text;
}

const char *gbx_check_index_text(const gbx_check_output *output,
                                 char out_text[GBX_CHECK_INDEX_BYTES]) {
    int64_t index[GBX_MAX_DIMS];
    size_t used = 0;
    out_text[0] = '\0';
    gbx_compare_index(&output->tensor, output->comparison.worst.index, index);
    for (uint32_t d = 0; d < output->tensor.ndims && d < GBX_MAX_DIMS; ++d)
        used += (size_t)snprintf(out_text + used, GBX_CHECK_INDEX_BYTES - used, "%s%" PRId64,
                                 d == 0 ? "[" : ", ", index[d]);
    if (used > 0)
        snprintf(out_text + used, GBX_CHECK_INDEX_BYTES - used, "]");
    return out_text;
}

/* --- the command that replays --- */

static bool is_plain(const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+=:,@%";
    return text[0] && !text[strspn(text, plain)];
}

/* In single quotes, in which only they themselves need something. */
static char *quote(const char *text) {
    if (is_plain(text))
        return strdup(text);
    char *quoted = malloc(4 * strlen(text) + 3);
    char *at = quoted;
    if (!quoted)
        return NULL;
    *at++ = '\'';
    for (; *text; ++text) {
        if (*text == '\'')
            at = stpcpy(at, "'\\''");
        else
            *at++ = *text;
    }
    *at++ = '\'';
    *at = '\0';
    return quoted;
}

gbx_status gbx_check_replay_text(const gbx_check_report *report, const gbx_check_line *line,
                                 char **out_text) {
    char task[GBX_CHECK_TASK_BYTES];
    char *real = realpath(report->dump->directory, NULL);
    char *quoted = quote(real ? real : report->dump->directory);
    int length = quoted ? asprintf(out_text, "glassbox replay %s --task %s", quoted,
                                   gbx_check_task_text(report, line, task))
                        : -1;
    free(real);
    free(quoted);
    if (length >= 0)
        return NULL;
    *out_text = NULL;
    return gbx_fail(GBX_EXHAUSTED, "printing results: the host is out of memory");
}
