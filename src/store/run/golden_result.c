#include "store/run/golden_result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/memory.h"
#include "text/json_reader.h"

enum { PATH_BYTES = 4096 + 32, MAX_FILE_BYTES = 64 << 20 };

/* --- writing --- */

static json_t *make_output(const gbx_golden_output *output) {
    json_t *index = json_array();
    for (uint32_t i = 0; i < output->ndims; ++i)
        json_array_append_new(index, json_integer(output->first_bad[i]));
    return json_pack("{s:s, s:I, s:I, s:o}", "name", output->name, "elements",
                     (json_int_t)output->elements, "mismatches", (json_int_t)output->mismatches,
                     "first_bad", index);
}

static gbx_status put_file(const json_t *document, const char *path) {
    char temporary[PATH_BYTES + 4];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *to = fopen(temporary, "we");
    bool is_written = to &&
                      json_dumpf(document, to, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0 &&
                      fputc('\n', to) != EOF;
    is_written &= to && fclose(to) == 0;
    if (is_written && rename(temporary, path) == 0)
        return NULL;
    gbx_status status =
        gbx_fail(GBX_IO, "adding the golden's verdict to %s: %s", path, strerror(errno));
    unlink(temporary);
    return status;
}

gbx_status gbx_golden_result_write(const char *directory, const gbx_golden_output *outputs,
                                   size_t count) {
    char path[PATH_BYTES];
    json_t *document;
    snprintf(path, sizeof path, "%s/run.json", directory);
    GBX_TRY(gbx_json_load(path, MAX_FILE_BYTES, &document));
    json_t *list = json_array();
    for (size_t i = 0; i < count; ++i)
        json_array_append_new(list, make_output(&outputs[i]));
    bool is_made =
        json_array_size(list) == count &&
        json_object_set_new(document, "golden", json_pack("{s:o}", "outputs", list)) == 0;
    gbx_status status = is_made ? put_file(document, path) : gbx_fail_memory("writing %s", path);
    json_decref(document);
    return status;
}

/* --- reading --- */

static gbx_status read_output(const gbx_cursor *output, char **out_element) {
    gbx_cursor member, number;
    const char *name;
    size_t count, bytes;
    GBX_TRY(gbx_cursor_member(output, "name", &member));
    GBX_TRY(gbx_cursor_string(&member, &name));
    GBX_TRY(gbx_cursor_member(output, "first_bad", &member));
    GBX_TRY(gbx_cursor_count(&member, &count));
    FILE *to = open_memstream(out_element, &bytes);
    if (!to)
        return gbx_fail_memory("reading run.json");
    fputs(name, to);
    gbx_status status = NULL;
    for (size_t i = 0; i < count && !status; ++i) {
        int64_t index = 0;
        status = gbx_cursor_element(&member, i, &number);
        if (!status)
            status = gbx_cursor_integer(&number, 0, INT64_MAX, &index);
        fprintf(to, "%s%" PRId64, i ? "," : "[", index);
    }
    fputs(count ? "]" : "", to);
    if (fclose(to) == 0 && !status)
        return NULL;
    free(*out_element);
    *out_element = NULL;
    return status ? status : gbx_fail_memory("reading run.json");
}

static gbx_status read_golden(const gbx_cursor *root, gbx_golden_result *result) {
    gbx_cursor golden, outputs, output;
    size_t count = 0;
    GBX_TRY(gbx_cursor_optional(root, "golden", &golden));
    if (!golden.value)
        return NULL;
    GBX_TRY(gbx_cursor_member(&golden, "outputs", &outputs));
    GBX_TRY(gbx_cursor_count(&outputs, &count));
    result->is_known = true;
    result->elements = calloc(count + 1, sizeof(char *));
    if (!result->elements)
        return gbx_fail_memory("reading run.json");
    for (; result->count < count; ++result->count) {
        GBX_TRY(gbx_cursor_element(&outputs, result->count, &output));
        GBX_TRY(read_output(&output, &result->elements[result->count]));
    }
    return NULL;
}

gbx_status gbx_golden_result_read(const char *directory, gbx_golden_result *out_result) {
    char path[PATH_BYTES];
    json_t *document = NULL;
    *out_result = (gbx_golden_result){0};
    snprintf(path, sizeof path, "%s/run.json", directory);
    gbx_status status = gbx_json_load(path, MAX_FILE_BYTES, &document);
    if (gbx_status_code(status) == GBX_NOT_FOUND) {
        gbx_status_free(status);
        return NULL;
    }
    GBX_TRY(status);
    gbx_cursor root = gbx_cursor_root(document, path);
    status = read_golden(&root, out_result);
    json_decref(document);
    return status;
}

void gbx_golden_result_free(gbx_golden_result *result) {
    for (size_t i = 0; i < result->count; ++i)
        free(result->elements[i]);
    free(result->elements);
    *result = (gbx_golden_result){0};
}
