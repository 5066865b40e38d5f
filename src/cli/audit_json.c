#include <stdlib.h>

#include "cli/internal.h"

/* task_id and kernels; a task whose record is missing has none. */
static void write_task(gbx_json_writer *json, const gbx_reader *reader,
                       const gbx_record_task *task) {
    char kernel[GBX_VIEW_KERNEL_BYTES];
    if (task)
        gbx_json_put_hex_text(json, "task_id", task->task_id);
    else
        gbx_json_put_null(json, "task_id");
    gbx_view_kernel_text(reader, task, kernel);
    gbx_json_put_string(json, "kernel", task ? kernel : NULL);
}

static gbx_status write_side(gbx_json_writer *json, const gbx_opened_dump *dump, const char *key,
                             const gbx_audit_side *side) {
    gbx_entry entry;
    GBX_TRY(gbx_entries_at(dump->entries, side->entry, &entry));
    gbx_json_key(json, key);
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "task_seq", side->task);
    write_task(json, dump->reader, entry.task);
    gbx_json_put_u64(json, "index", side->entry);
    gbx_json_put_u64(json, "arg_index", entry.head->arg_index);
    gbx_json_put_string(json, "arg_name", entry.arg_name);
    gbx_json_put_string(json, "stage", gbx_name_of(&gbx_stages, entry.head->stage));
    gbx_json_put_hex_text(json, "buffer_addr", entry.tensor->buffer_addr);
    gbx_json_put_i64(json, "begin", side->begin);
    gbx_json_put_i64(json, "end", side->end);
    gbx_json_end_object(json);
    return NULL;
}

static gbx_status write_element(gbx_json_writer *json, const gbx_opened_dump *dump,
                                const gbx_audit_finding *finding) {
    gbx_entry entry;
    int64_t index[GBX_MAX_DIMS];
    gbx_json_key(json, "element");
    if (!finding->has_element) {
        gbx_json_null(json);
        return NULL;
    }
    GBX_TRY(gbx_entries_at(dump->entries, finding->second.entry, &entry));
    gbx_entry_index(&entry, finding->element, index);
    gbx_json_begin_object_inline(json);
    gbx_json_put_numbers(json, "index", index, entry.head->ndims);
    gbx_json_put_string(json, "dtype", gbx_dtype_name(finding->dtype));
    gbx_json_put_value(json, "expected", finding->dtype, finding->expected);
    gbx_json_put_value(json, "found", finding->dtype, finding->found);
    gbx_json_end_object(json);
    return NULL;
}

static gbx_status write_suspect(gbx_json_writer *json, const gbx_opened_dump *dump,
                                const char *given, const gbx_audit_suspect *suspect) {
    gbx_record_task task;
    bool is_found = false;
    bool has_entry = suspect->reason != GBX_SUSPECT_RAN;
    gbx_entry entry;
    char *replay;
    GBX_TRY(gbx_reader_find_task(dump->reader, suspect->task, &task, &is_found));
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "task_seq", suspect->task);
    write_task(json, dump->reader, is_found ? &task : NULL);
    gbx_json_put_string(json, "reason", gbx_name_of(&gbx_audit_reasons, suspect->reason));
    if (has_entry) {
        GBX_TRY(gbx_entries_at(dump->entries, suspect->entry, &entry));
        gbx_json_put_u64(json, "arg_index", entry.head->arg_index);
        gbx_json_put_string(json, "arg_name", entry.arg_name);
        gbx_json_put_u64(json, "distance", suspect->distance);
    }
    GBX_TRY(gbx_audit_replay_line(dump, given, suspect->task, &replay));
    gbx_json_put_string(json, "replay", replay);
    free(replay);
    gbx_json_end_object(json);
    return NULL;
}

static gbx_status write_finding(gbx_json_writer *json, const gbx_opened_dump *dump,
                                const char *given, const gbx_audit_finding *finding) {
    gbx_json_begin_object(json);
    gbx_json_put_string(json, "kind", gbx_name_of(&gbx_audit_kinds, finding->kind));
    GBX_TRY(write_side(json, dump, "first", &finding->first));
    GBX_TRY(write_side(json, dump, "second", &finding->second));
    gbx_json_key(json, "range");
    gbx_json_begin_object_inline(json);
    gbx_json_put_hex_text(json, "address", finding->address);
    gbx_json_put_u64(json, "bytes", finding->bytes);
    gbx_json_put_i64(json, "begin", finding->second.begin);
    gbx_json_put_i64(json, "end", finding->second.end);
    gbx_json_end_object(json);
    GBX_TRY(write_element(json, dump, finding));
    gbx_json_put_bool(json, "compared", finding->is_compared);
    gbx_json_put_bool(json, "concurrent", finding->is_concurrent);
    gbx_json_put_bool(json, "no_path", finding->has_no_path);
    gbx_json_put_bool(json, "seen", finding->is_seen);
    gbx_json_put_bool(json, "read_first", finding->is_read_first);
    gbx_json_put_bool(json, "read_late", finding->is_read_late);
    gbx_json_put_u64(json, "suspect_count", finding->suspect_count);
    gbx_json_key(json, "suspects");
    gbx_json_begin_array(json);
    for (uint64_t i = 0; i < finding->suspect_count && i < GBX_AUDIT_SUSPECTS; ++i)
        GBX_TRY(write_suspect(json, dump, given, &finding->suspects[i]));
    gbx_json_end_array(json);
    gbx_json_end_object(json);
    return NULL;
}

static void write_counts(gbx_json_writer *json, const gbx_audit_counts *counts) {
    gbx_json_put_u64(json, "tasks", counts->tasks);
    gbx_json_put_u64(json, "records", counts->records);
    gbx_json_put_u64(json, "inputs", counts->inputs);
    gbx_json_put_u64(json, "compared", counts->compared);
    gbx_json_put_u64(json, "first_reads", counts->first_reads);
    gbx_json_put_u64(json, "raced", counts->raced);
    gbx_json_put_u64(json, "outputs", counts->outputs);
    gbx_json_put_u64(json, "unread_outputs", counts->unread);
    gbx_json_key(json, "not_audited");
    gbx_json_begin_object_inline(json);
    gbx_json_put_u64(json, "missing_outputs", counts->not_compared[GBX_GAP_MISSING_OUTPUTS]);
    gbx_json_put_u64(json, "no_bytes", counts->not_compared[GBX_GAP_NO_BYTES]);
    gbx_json_put_u64(json, "pieces", counts->not_compared[GBX_GAP_PIECES]);
    gbx_json_put_u64(json, "outputs_in_pieces", counts->unfollowed);
    gbx_json_end_object(json);
    gbx_json_put_known(json, "tasks_missing_outputs", counts->missing_tasks != UINT64_MAX,
                       counts->missing_tasks); /* null: it may be any */
    gbx_json_put_u64(json, "in_flight", counts->in_flight);
    gbx_json_put_u64(json, "damaged", counts->damaged);
    gbx_json_put_u64(json, "bad_edges", counts->bad_edges);
    gbx_json_put_bool(json, "complete", counts->is_complete);
    gbx_json_put_string(json, "order", counts->has_edges ? "edges" : "times");
    gbx_json_put_bool(json, "more_findings", counts->has_more);
}

gbx_status gbx_audit_print_json(const gbx_opened_dump *dump, const char *given,
                                const gbx_audit *audit) {
    static gbx_json_writer json; /* too large for a stack */
    gbx_status status = NULL;
    gbx_json_start_stdout(&json);
    gbx_json_put_string(&json, "dump", dump->directory);
    write_counts(&json, &audit->counts);
    gbx_json_key(&json, "findings");
    gbx_json_begin_array(&json);
    for (size_t i = 0; i < audit->finding_count && !status && !gbx_json_has_failed(&json); ++i)
        status = write_finding(&json, dump, given, &audit->findings[i]);
    if (!status)
        gbx_json_end_array(&json);
    return gbx_json_finish_stdout(&json, status);
}
