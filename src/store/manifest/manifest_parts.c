#include "store/manifest/manifest_parts.h"

#include <inttypes.h>
#include <stdlib.h>

static void put_key(gbx_manifest_file *file, const char *key) {
    GBX_MEMBER(file, "\n\"");
    gbx_manifest_file_put(file, key, strlen(key));
    GBX_MEMBER(file, "\": ");
}

static gbx_status put_string(gbx_manifest_file *file, const char *text) {
    gbx_quoted quoted = {0};
    GBX_TRY(gbx_quote(text, &quoted));
    gbx_manifest_file_put(file, quoted.text, quoted.size);
    free(quoted.text);
    return NULL;
}

gbx_status gbx_manifest_member_string(gbx_manifest_file *file, const char *key, const char *text) {
    put_key(file, key);
    GBX_TRY(put_string(file, text));
    GBX_MEMBER(file, ",");
    return NULL;
}

gbx_status gbx_manifest_member_number(gbx_manifest_file *file, const char *key, uint64_t value) {
    if (!gbx_is_exact(value))
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "writing the manifest: %s is %" PRIu64 ", and readers of JSON are not "
                        "exact from 2^53 on",
                        key, value);
    put_key(file, key);
    char text[GBX_VALUE_TEXT_BYTES];
    gbx_manifest_file_put(file, text, (size_t)(gbx_put_u64(text, value) - text));
    GBX_MEMBER(file, ",");
    return NULL;
}

void gbx_manifest_member_bool(gbx_manifest_file *file, const char *key, bool value) {
    put_key(file, key);
    char text[GBX_VALUE_TEXT_BYTES];
    gbx_manifest_file_put(file, text, (size_t)(gbx_put_bool(text, value) - text));
    GBX_MEMBER(file, ",");
}

static gbx_status put_run_string(gbx_manifest_file *file, const char *key, const char *text) {
    gbx_manifest_file_put(file, key, strlen(key));
    return put_string(file, text);
}

static void put_run_number(gbx_manifest_file *file, const char *key, int64_t value) {
    char text[GBX_VALUE_TEXT_BYTES];
    gbx_manifest_file_put(file, key, strlen(key));
    gbx_manifest_file_put(file, text, (size_t)(gbx_put_i64(text, value) - text));
}

gbx_status gbx_manifest_member_run(gbx_manifest_file *file, const gbx_run_info *run) {
    GBX_MEMBER(file, "\n\"run\": ");
    GBX_TRY(put_run_string(file, "{\"run_id\":", run->run_id));
    GBX_TRY(put_run_string(file, ",\"scene\":", run->scene));
    GBX_TRY(put_run_string(file, ",\"case\":", run->case_name));
    GBX_TRY(put_run_string(file, ",\"platform\":", run->platform));
    GBX_TRY(put_run_string(file, ",\"runtime\":", run->runtime));
    put_run_number(file, ",\"rank\":", run->rank);
    put_run_number(file, ",\"round\":", run->round);
    GBX_TRY(put_run_string(file, ",\"started_at\":", run->started_at));
    GBX_MEMBER(file, "},");
    return NULL;
}

const char *gbx_manifest_role(uint32_t role) {
    static const char *const names[] = {"input", "output", "inout"};
    return names[role];
}

const char *gbx_manifest_stage(uint32_t stage) {
    static const char *const names[] = {"before_dispatch", "after_completion"};
    return names[stage];
}
