/* args_dump.json: what the orchestration was called with. */
#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "store/manifest/manifest_parts.h"

static char *put_tensor(char *at, const gbx_record_run_arg *record) {
    at = GBX_PUT(at, ",\"ndims\":");
    at = gbx_put_u64(at, record->head.ndims);
    at = GBX_PUT(at, ",\"shape\":");
    at = gbx_put_numbers(at, gbx_record_run_arg_shape(record), record->head.ndims);
    at = GBX_PUT(at, ",\"data_ptr\":");
    at = gbx_put_hex(at, record->bits);
    *at++ = '}';
    return at;
}

static char *put_scalar(char *at, gbx_float_cache *floats, uint32_t dtype, uint64_t bits) {
    at = GBX_PUT(at, ",\"ndims\":0,\"shape\":[],\"scalar_value\":");
    at = gbx_put_value(at, floats, GBX_UINT64, bits);
    at = GBX_PUT(at, ",\"value\":");
    at = gbx_put_value(at, floats, dtype, bits);
    at = GBX_PUT(at, ",\"bits\":");
    at = gbx_put_hex(at, bits);
    *at++ = '}';
    return at;
}

static char *put_name(char *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

static gbx_status put_argument(gbx_manifest *manifest, gbx_manifest_file *file, uint64_t position) {
    const gbx_run_info *run = gbx_reader_run(manifest->reader);
    const gbx_record *head = NULL;
    GBX_TRY(gbx_reader_list_at(manifest->reader, GBX_LIST_RUN_ARGS, position, &head));
    const gbx_record_run_arg *record = (const gbx_record_run_arg *)head;
    if (record->is_tensor && !gbx_are_exact(gbx_record_run_arg_shape(record), head->ndims))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "writing the manifest: the shape of argument %u of the orchestration "
                        "reaches 2^53, and readers of JSON are not exact from there on",
                        head->arg_index);
    bool is_known = head->arg_index < run->argument_count;
    gbx_quoted name = {0};
    GBX_TRY(gbx_quote(is_known ? run->arguments[head->arg_index].name : NULL, &name));
    uint32_t dtype = record->is_tensor ? head->dtype : gbx_record_scalar_dtype(head->dtype);
    gbx_manifest_file_room(file);
    char *at = gbx_put_separator(file->at, position);
    at = GBX_PUT(at, "{\"arg_index\":");
    at = gbx_put_u64(at, head->arg_index);
    at = GBX_PUT(at, ",\"name\":");
    at = gbx_put_text(file, at, name.text, name.size);
    free(name.text);
    at = record->is_tensor ? GBX_PUT(at, ",\"type\":\"tensor\",\"dtype\":\"")
                           : GBX_PUT(at, ",\"type\":\"scalar\",\"dtype\":\"");
    at = put_name(at, gbx_dtype_name(dtype));
    *at++ = '"';
    file->at = record->is_tensor ? put_tensor(at, record)
                                 : put_scalar(at, &manifest->floats, dtype, record->bits);
    return NULL;
}

gbx_status gbx_manifest_put_arguments(gbx_manifest *manifest, gbx_manifest_file *file) {
    uint64_t count = gbx_reader_list_count(manifest->reader, GBX_LIST_RUN_ARGS);
    GBX_MEMBER(file, "{\n\"schema_version\": 1,");
    GBX_TRY(gbx_manifest_member_run(file, gbx_reader_run(manifest->reader)));
    GBX_TRY(gbx_manifest_member_number(file, "total_args", count));
    GBX_MEMBER(file, "\n\"args\": [");
    for (uint64_t i = 0; i < count; ++i)
        GBX_TRY(put_argument(manifest, file, i));
    gbx_manifest_file_room(file);
    GBX_MEMBER(file, "\n]\n}\n");
    return NULL;
}
