#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/check_report.h"
#include "cli/replay_line.h"
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

gbx_status gbx_check_replay_text(const gbx_check_report *report, const gbx_check_line *line,
                                 char **out_text) {
    char task[GBX_CHECK_TASK_BYTES];
    return gbx_replay_line(report->dump, report->given, gbx_check_task_text(report, line, task),
                           out_text);
}
