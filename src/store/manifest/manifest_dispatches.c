/* kernel_args_dump.json: what kernel_entry was called with, each time. */
#include <inttypes.h>

#include <glassbox/tensor.h>

#include "store/manifest/manifest_parts.h"

static char *put_word(char *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

static gbx_status fail_inexact(const gbx_record_dispatch *record, const char *what) {
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "writing the manifest: %s of a dispatch of task %" PRIu64 " reaches 2^53, and "
                    "readers of JSON are not exact from there on",
                    what, record->head.task);
}

static void put_front(gbx_manifest *manifest, gbx_manifest_file *file,
                      const gbx_record_dispatch *record, uint64_t position) {
    gbx_quoted kernel = gbx_manifest_kernel_name(&manifest->names, record->func_id);
    gbx_manifest_file_room(file);
    char *at = gbx_put_separator(file->at, position);
    at = GBX_PUT(at, "{\"dispatch_id\":");
    at = gbx_put_u64(at, position);
    at = GBX_PUT(at, ",\"task_id\":");
    at = gbx_put_hex(at, record->task_id);
    at = GBX_PUT(at, ",\"task_seq\":");
    at = gbx_put_u64(at, record->head.task);
    at = GBX_PUT(at, ",\"func_id\":");
    at = gbx_put_u64(at, record->func_id);
    at = GBX_PUT(at, ",\"kernel\":");
    at = gbx_put_text(file, at, kernel.text, kernel.size);
    at = GBX_PUT(at, ",\"subtask_id\":");
    at = gbx_put_u64(at, record->subtask);
    at = record->subtask == GBX_SUBTASK_AIC ? GBX_PUT(at, ",\"core_type\":\"aic\"")
                                            : GBX_PUT(at, ",\"core_type\":\"aiv\"");
    at = GBX_PUT(at, ",\"core_id\":");
    at = gbx_put_u64(at, record->core_id);
    at = GBX_PUT(at, ",\"block_idx\":");
    at = gbx_put_u64(at, record->block_idx);
    at = GBX_PUT(at, ",\"block_num\":");
    at = gbx_put_u64(at, record->block_num);
    at = GBX_PUT(at, ",\"stage\":\"before_dispatch\",\"time_ns\":");
    at = gbx_put_u64(at, record->head.time_ns);
    file->at = GBX_PUT(at, ",\"args\":[");
}

static char *put_tensor(char *at, const gbx_slot_view *view) {
    at = GBX_PUT(at, "\",\"ndims\":");
    at = gbx_put_u64(at, view->slot->ndims);
    at = GBX_PUT(at, ",\"shape\":");
    at = gbx_put_numbers(at, view->shape, view->slot->ndims);
    at = GBX_PUT(at, ",\"strides\":");
    at = gbx_put_numbers(at, view->strides, view->slot->ndims);
    at = GBX_PUT(at, ",\"start_offset\":");
    at = gbx_put_i64(at, view->start_offset);
    at = GBX_PUT(at, ",\"data_ptr\":");
    return gbx_put_hex(at, view->data);
}

static char *put_scalar(char *at, gbx_float_cache *floats, uint32_t dtype, uint64_t bits) {
    at = GBX_PUT(at, "\",\"ndims\":0,\"shape\":[],\"strides\":[],\"start_offset\":0,\"value\":");
    return gbx_put_value(at, floats, dtype, bits);
}

static void put_slot(gbx_manifest *manifest, gbx_manifest_file *file, const gbx_slot_view *view,
                     uint32_t position) {
    const gbx_record_slot *slot = view->slot;
    uint32_t dtype = slot->is_tensor ? slot->dtype : gbx_record_scalar_dtype(slot->dtype);
    gbx_manifest_file_room(file);
    char *at =
        position ? GBX_PUT(file->at, ",{\"arg_index\":") : GBX_PUT(file->at, "{\"arg_index\":");
    at = gbx_put_u64(at, slot->arg_index);
    at = slot->is_tensor ? GBX_PUT(at, ",\"kind\":\"tensor\",\"role\":\"")
                         : GBX_PUT(at, ",\"kind\":\"scalar\",\"role\":\"");
    at = put_word(at, gbx_manifest_role(slot->role));
    at = GBX_PUT(at, "\",\"dtype\":\"");
    at = put_word(at, gbx_dtype_name(dtype));
    at = slot->is_tensor ? put_tensor(at, view)
                         : put_scalar(at, &manifest->floats, dtype, slot->bits);
    at = GBX_PUT(at, ",\"bits\":");
    at = gbx_put_hex(at, slot->bits);
    *at++ = '}';
    file->at = at;
}

static void put_contexts(gbx_manifest_file *file, const gbx_record_dispatch *record) {
    gbx_manifest_file_room(file);
    char *at = GBX_PUT(file->at, "],\"contexts\":[{\"arg_index\":");
    at = gbx_put_u64(at, GBX_ARG_LOCAL_CONTEXT);
    at = GBX_PUT(at, ",\"name\":\"local_context\",\"bits\":");
    at = gbx_put_hex(at, record->local_context);
    at = GBX_PUT(at, "},{\"arg_index\":");
    at = gbx_put_u64(at, GBX_ARG_GLOBAL_CONTEXT);
    at = GBX_PUT(at, ",\"name\":\"global_context\",\"bits\":");
    at = gbx_put_hex(at, record->global_context);
    file->at = GBX_PUT(at, "}]}");
}

static gbx_status put_dispatch(gbx_manifest *manifest, gbx_manifest_file *file,
                               const gbx_record_dispatch *record, uint64_t position) {
    if (!gbx_is_exact(record->head.time_ns))
        return fail_inexact(record, "the time");
    put_front(manifest, file, record, position);
    const void *next = record + 1;
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        gbx_slot_view view;
        next = gbx_record_next_slot(next, &view);
        uint32_t ndims = view.slot->is_tensor ? view.slot->ndims : 0;
        if (!gbx_are_exact(view.shape, ndims) || !gbx_are_exact(view.strides, ndims) ||
            !gbx_is_exact_signed(view.start_offset))
            return fail_inexact(record, "the geometry of a slot");
        put_slot(manifest, file, &view, i);
    }
    put_contexts(file, record);
    return NULL;
}

gbx_status gbx_manifest_put_dispatches(gbx_manifest *manifest, gbx_manifest_file *file) {
    gbx_reader *reader = manifest->reader;
    const gbx_reader_totals *totals = gbx_reader_get_totals(reader);
    GBX_MEMBER(file, "{\n\"schema_version\": 1,");
    GBX_TRY(gbx_manifest_member_run(file, gbx_reader_run(reader)));
    GBX_TRY(gbx_manifest_member_number(file, "total_dispatches", totals->dispatches));
    GBX_TRY(gbx_manifest_member_number(file, "total_args", totals->dispatch_args));
    GBX_MEMBER(file, "\n\"dispatches\": [");
    uint64_t count = gbx_reader_count(reader);
    uint64_t position = 0;
    for (uint64_t i = 0; i < count; ++i) {
        if (gbx_reader_kind(reader, i) != GBX_INDEX_DISPATCHES)
            continue;
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_at(reader, i, &record));
        GBX_TRY(put_dispatch(manifest, file, (const gbx_record_dispatch *)record, position++));
    }
    gbx_manifest_file_room(file);
    GBX_MEMBER(file, "\n]\n}\n");
    return NULL;
}
