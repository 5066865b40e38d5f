/* tensor_dump.json up to its entries: what was run, totals, kernels, and what is missing. */
#include <inttypes.h>

#include "store/manifest/manifest_parts.h"

static const char *const loss_causes[GBX_LOSS_CAUSE_COUNT] = {
    [GBX_LOSS_STALL] = "stall",   [GBX_LOSS_DISK] = "disk",       [GBX_LOSS_CORRUPT] = "corrupt",
    [GBX_LOSS_DEVICE] = "device", [GBX_LOSS_UNTOLD] = "not told",
};

static const char *const skip_reasons[GBX_SKIP_REASON_COUNT] = {
    [GBX_SKIP_NOT_DESCRIBED] = "nobody told which words of the task are tensors",
    [GBX_SKIP_MISMATCH] = "what was told of the argument is not what the kernel gets",
};

static gbx_status put_origin(gbx_manifest *manifest, gbx_manifest_file *file) {
    const gbx_run_info *run = gbx_reader_run(manifest->reader);
    bool is_killed = !gbx_reader_end(manifest->reader);
    GBX_MEMBER(file, "{\n\"schema_version\": 1,");
    GBX_TRY(gbx_manifest_member_string(file, "generator", run->generator));
    GBX_TRY(gbx_manifest_member_run(file, run));
    GBX_TRY(gbx_manifest_member_string(file, "run_dir", manifest->run_directory));
    const char *payload = gbx_reader_get_origin(manifest->reader)->payload_path;
    const char *slash = strrchr(payload, '/');
    GBX_TRY(gbx_manifest_member_string(file, "bin_file", slash ? slash + 1 : NULL));
    GBX_MEMBER(file, "\n\"bin_format\": "
                     "{\"type\":\"logical_contiguous\",\"byte_order\":\"little_endian\"},");
    GBX_TRY(gbx_manifest_member_string(file, "dump_level", run->dump_level));
    if (!(gbx_reader_get_origin(manifest->reader)->told & GBX_TOLD_STATUS))
        return NULL;
    gbx_manifest_member_bool(file, "complete", gbx_reader_is_complete(manifest->reader));
    return gbx_manifest_member_string(file, "status",
                                      is_killed ? "killed" : gbx_reader_end_text(manifest->reader));
}

static gbx_status put_totals(gbx_manifest *manifest, gbx_manifest_file *file) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(manifest->reader);
    const gbx_record_end *end = gbx_reader_end(manifest->reader);
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"total_tensors", totals->records},
        {"before_dispatch", totals->before_dispatch},
        {"after_completion", totals->after_completion},
        {"input_tensors", totals->inputs},
        {"output_tensors", totals->outputs},
        {"inout_tensors", totals->inouts},
        {"in_flight_tensors", totals->in_flight},
        {"truncated_tensors", totals->truncated},
        {"dropped_records", totals->dropped},
        {"dropped_overwrite", 0},
        {"deduplicated_tensors", totals->deduplicated},
        {"payload_bytes", totals->payload_bytes},
        {"stored_bytes", totals->stored_bytes},
        {"stall_ns", end ? end->stall_ns : 0},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; ++i)
        GBX_TRY(gbx_manifest_member_number(file, members[i].key, members[i].value));
    return NULL;
}

static char *put_quoted(char *at, const char *text) {
    size_t size = strlen(text);
    *at++ = '"';
    memcpy(at, text, size);
    at += size;
    *at++ = '"';
    return at;
}

static void put_kernel(gbx_manifest_file *file, const gbx_run_kernel *kernel, gbx_quoted name,
                       uint64_t position) {
    char *at = gbx_put_separator(file->at, position);
    at = GBX_PUT(at, "{\"func_id\":");
    at = gbx_put_u64(at, kernel->func_id);
    at = GBX_PUT(at, ",\"name\":");
    at = gbx_put_text(file, at, name.text, name.size);
    at = GBX_PUT(at, ",\"core_type\":");
    at = kernel->core_type ? put_quoted(at, kernel->core_type) : GBX_PUT(at, "null");
    file->at = GBX_PUT(at, ",\"signature\":[");
    for (size_t i = 0; i < kernel->signature_count; ++i) {
        gbx_manifest_file_put(file, i ? ",\"" : "\"", i ? 2 : 1);
        gbx_manifest_file_put(file, kernel->signature[i], strlen(kernel->signature[i]));
        GBX_MEMBER(file, "\"");
    }
    GBX_MEMBER(file, "]}");
}

static gbx_status put_kernels(gbx_manifest *manifest, gbx_manifest_file *file) {
    const gbx_run_info *run = gbx_reader_run(manifest->reader);
    GBX_MEMBER(file, "\n\"kernels\": [");
    for (size_t i = 0; i < run->kernel_count; ++i)
        put_kernel(file, &run->kernels[i], manifest->names.kernels[i].name, i);
    GBX_MEMBER(file, "\n],");
    return NULL;
}

/* "task_id":"0x...","task_seq":3 ; null for the id of a task without a TASK record, and both for
 * what is of no task that is known. */
static gbx_status put_task(gbx_manifest *manifest, gbx_manifest_file *file, const gbx_record *head,
                           uint64_t position) {
    gbx_record_task record = {0};
    bool is_found = false;
    bool is_known = head->type != GBX_RECORD_LOSS || head->arg_index != GBX_ARG_NONE ||
                    head->stage != GBX_STAGE_NONE;
    if (is_known)
        GBX_TRY(gbx_reader_find_task(manifest->reader, head->task, &record, &is_found));
    gbx_manifest_file_room(file);
    char *at = gbx_put_separator(file->at, position);
    at = GBX_PUT(at, "{\"task_id\":");
    at = is_found ? gbx_put_hex(at, record.task_id) : GBX_PUT(at, "null");
    at = GBX_PUT(at, ",\"task_seq\":");
    file->at = is_known ? gbx_put_u64(at, head->task) : GBX_PUT(at, "null");
    return NULL;
}

/* null for a record that is about no single argument. */
static char *put_arg_index(char *at, uint8_t arg_index) {
    at = GBX_PUT(at, ",\"arg_index\":");
    return arg_index == GBX_ARG_NONE ? GBX_PUT(at, "null") : gbx_put_u64(at, arg_index);
}

static gbx_status put_loss(gbx_manifest *manifest, gbx_manifest_file *file, uint64_t position) {
    const gbx_record *record = NULL;
    GBX_TRY(gbx_reader_list_at(manifest->reader, GBX_LIST_LOSSES, position, &record));
    const gbx_record_loss loss = *(const gbx_record_loss *)record;
    if (!gbx_is_exact(loss.count))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "writing the manifest: a loss counts %" PRIu64 " records, and readers of "
                        "JSON are not exact from 2^53 on",
                        loss.count);
    GBX_TRY(put_task(manifest, file, &loss.head, position));
    char *at = put_arg_index(file->at, loss.head.arg_index);
    at = GBX_PUT(at, ",\"stage\":");
    at = loss.head.stage == GBX_STAGE_NONE ? GBX_PUT(at, "null")
                                           : put_quoted(at, gbx_manifest_stage(loss.head.stage));
    at = GBX_PUT(at, ",\"cause\":");
    at = put_quoted(at, loss_causes[loss.cause]);
    at = GBX_PUT(at, ",\"count\":");
    at = gbx_put_u64(at, loss.count);
    *at++ = '}';
    file->at = at;
    return NULL;
}

static gbx_status put_skipped(gbx_manifest *manifest, gbx_manifest_file *file, uint64_t position) {
    const gbx_record *record = NULL;
    GBX_TRY(gbx_reader_list_at(manifest->reader, GBX_LIST_SKIPPED, position, &record));
    const gbx_record_skipped skipped = *(const gbx_record_skipped *)record;
    gbx_quoted kernel = gbx_manifest_kernel_name(&manifest->names, skipped.func_id);
    GBX_TRY(put_task(manifest, file, &skipped.head, position));
    char *at = put_arg_index(file->at, skipped.head.arg_index);
    at = GBX_PUT(at, ",\"kernel\":");
    at = gbx_put_text(file, at, kernel.text, kernel.size);
    at = GBX_PUT(at, ",\"reason\":");
    at = put_quoted(at, skip_reasons[skipped.reason]);
    *at++ = '}';
    file->at = at;
    return NULL;
}

gbx_status gbx_manifest_put_tensors_head(gbx_manifest *manifest, gbx_manifest_file *file) {
    uint64_t losses = gbx_reader_list_count(manifest->reader, GBX_LIST_LOSSES);
    uint64_t skipped = gbx_reader_list_count(manifest->reader, GBX_LIST_SKIPPED);
    GBX_TRY(put_origin(manifest, file));
    GBX_TRY(put_totals(manifest, file));
    GBX_TRY(put_kernels(manifest, file));
    GBX_MEMBER(file, "\n\"losses\": [");
    for (uint64_t i = 0; i < losses; ++i)
        GBX_TRY(put_loss(manifest, file, i));
    GBX_MEMBER(file, "\n],\n\"skipped\": [");
    for (uint64_t i = 0; i < skipped; ++i)
        GBX_TRY(put_skipped(manifest, file, i));
    GBX_MEMBER(file, "\n],");
    return NULL;
}
