/*
 * Compares the manifests of a dump with its journal: the writer puts the journal's entries one by
 * one; where the file has the same bytes, nothing is parsed. Otherwise the values of the fields are
 * compared.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "store/dump_path.h"
#include "store/manifest/manifest.h"
#include "store/verify/internal.h"
#include "text/json_scan.h"

/* One file against the journal. */
typedef struct manifest_check {
    gbx_reader *reader;
    gbx_findings *findings;
    const gbx_verify_observer *observer;
    gbx_manifest_pieces *pieces;
    gbx_manifest_kind kind;
    const char *name;
    gbx_json_file file;
    uint64_t file_bytes;
    bool is_missing; /* this file or an earlier one */
} manifest_check;

/* What an object is compared with: the members of the top or of a list entry. */
typedef struct object_check {
    const gbx_manifest_field *fields;
    size_t field_count;
    const char *list;  /* the list it is an entry of; NULL for the top */
    uint64_t position; /* in it */
    bool has_place;    /* it is about an argument */
    gbx_manifest_place place;
    uint64_t older;  /* a bit per field of rule LATER: the version that wrote the file lacks it */
    bool is_decided; /* an entry has decided `older` */
    char *text;      /* of an entry without those fields; the caller frees it */
    uint64_t capacity;
} object_check;

static gbx_status fail_memory(void) {
    return gbx_fail_memory("comparing a manifest");
}

/* --- values --- */

/* Ignores unexpected members of objects; a whole number equals itself with a fraction of 0. */
static bool equals(const json_t *wanted, const json_t *got) {
    if (json_is_number(wanted) && json_is_number(got)) {
        if (json_is_integer(wanted) && json_is_integer(got))
            return json_integer_value(wanted) == json_integer_value(got);
        double value = json_number_value(wanted);
        return value == json_number_value(got) && signbit(value) == signbit(json_number_value(got));
    }
    if (json_typeof(wanted) != json_typeof(got))
        return false;
    if (json_is_array(wanted)) {
        bool is_same = json_array_size(wanted) == json_array_size(got);
        for (size_t i = 0; is_same && i < json_array_size(wanted); ++i)
            is_same = equals(json_array_get(wanted, i), json_array_get(got, i));
        return is_same;
    }
    if (!json_is_object(wanted))
        return json_equal(wanted, got);
    void *at = json_object_iter((json_t *)(uintptr_t)wanted);
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)wanted, at)) {
        const json_t *found = json_object_get(got, json_object_iter_key(at));
        if (!found || !equals(json_object_iter_value(at), found))
            return false;
    }
    return true;
}

static char *text_of(const json_t *value) {
    return value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17))
                 : strdup("nothing");
}

static gbx_status add_difference(manifest_check *check, const object_check *object,
                                 const char *name, const json_t *wanted, const json_t *got) {
    char where[64] = "", what[192];
    const gbx_manifest_place *at = object->has_place ? &object->place : NULL;
    char *wanted_text = text_of(wanted);
    char *got_text = text_of(got);
    if (object->list)
        snprintf(where, sizeof where, "%s[%" PRIu64 "].", object->list, object->position);
    snprintf(what, sizeof what, "%s: %s%s", check->name, where, name);
    gbx_status status = wanted_text && got_text
                            ? gbx_findings_add_at(check->findings, GBX_FINDING_MANIFEST,
                                                  check->reader, at, what, wanted_text, got_text)
                            : fail_memory();
    free(wanted_text);
    free(got_text);
    return status;
}

/* Whether the version that wrote the file may lack the field, by its rule. */
static bool may_lack(object_check *object, size_t field) {
    uint64_t bit = UINT64_C(1) << field;
    if (object->fields[field].rule == GBX_RULE_LATER && !object->is_decided)
        object->older |= bit;
    return (object->older & bit) != 0;
}

/* Compares every expected field; others may be present, too. */
static gbx_status compare_fields(manifest_check *check, object_check *object, json_t *wanted,
                                 json_t *got) {
    for (size_t i = 0; i < object->field_count; ++i) {
        const gbx_manifest_field *field = &object->fields[i];
        const json_t *value = json_object_get(wanted, field->name);
        const json_t *found = json_object_get(got, field->name);
        bool is_compared = field->rule == GBX_RULE_ENDED ? gbx_reader_end(check->reader) != NULL
                                                         : field->rule != GBX_RULE_NEVER;
        if (!value || !is_compared || (found && equals(value, found)))
            continue;
        if (found || !may_lack(object, i))
            GBX_TRY(add_difference(check, object, field->name, value, found));
    }
    object->is_decided = true;
    return NULL;
}

static gbx_status parse(const char *text, size_t size, json_t **out_value) {
    *out_value = json_loadb(text, size, 0, NULL);
    return *out_value ? NULL : fail_memory();
}

/* --- lists --- */

static bool is_older(const object_check *object, const gbx_scan_value *key) {
    for (size_t i = 0; i < object->field_count; ++i)
        if (object->older >> i & 1 &&
            gbx_scan_is(key, object->fields[i].name, strlen(object->fields[i].name)))
            return true;
    return false;
}

/* Removes the fields that an older version lacks, so that most entries have the same bytes
 * again. */
static gbx_status leave_out_older(object_check *object, const char **text, size_t *size) {
    gbx_scan scan = gbx_scan_start(*text, *size);
    gbx_scan_value key, value;
    bool has_one = true;
    size_t used = 0;
    GBX_TRY(gbx_array_reserve(&object->text, &object->capacity, *size + 1, "comparing a manifest"));
    if (!gbx_scan_begin(&scan, '{'))
        return gbx_fail(GBX_INTERNAL, "an entry as it was written is not an object; report this");
    while (gbx_scan_next_member(&scan, &key, &value, &has_one) && has_one) {
        if (is_older(object, &key))
            continue;
        const char *from = key.text - 1; /* its quote */
        object->text[used] = used ? ',' : '{';
        ++used;
        memcpy(object->text + used, from, (size_t)(scan.at - from));
        used += (size_t)(scan.at - from);
    }
    object->text[used++] = '}';
    *text = object->text;
    *size = used;
    return NULL;
}

/* Compares the next entry of the file with `text`. */
static gbx_status compare_entry(manifest_check *check, object_check *object, const char *text,
                                size_t size) {
    json_t *wanted = NULL, *got = NULL;
    bool is_same = false;
    const char *same_text = text;
    size_t same_size = size;
    if (object->older)
        GBX_TRY(leave_out_older(object, &same_text, &same_size));
    GBX_TRY(gbx_json_file_take_same(&check->file, same_text, same_size, &is_same));
    if (is_same) {
        object->is_decided = true;
        return NULL;
    }
    GBX_TRY(gbx_json_file_document(&check->file, &got));
    gbx_status status = parse(text, size, &wanted);
    if (!status)
        status = compare_fields(check, object, wanted, got);
    json_decref(wanted);
    json_decref(got);
    return status;
}

static void report_progress(const manifest_check *check) {
    if (check->observer && check->observer->on_progress)
        check->observer->on_progress(check->observer->context, check->name,
                                     gbx_json_file_offset(&check->file), check->file_bytes);
}

/* Compares entries while both have some, then counts the rest of either. */
static gbx_status compare_entries(manifest_check *check, gbx_manifest_list list,
                                  object_check *object, uint64_t *out_wanted, uint64_t *out_got) {
    object->has_place = list == GBX_MANIFEST_TENSORS;
    for (bool is_more = true; is_more;) {
        const char *text = NULL;
        size_t size = 0;
        bool has_one = false;
        if (*out_wanted >= *out_got)
            GBX_TRY(gbx_manifest_pieces_next(check->pieces, list, &text, &size, &object->place));
        if (*out_wanted <= *out_got)
            GBX_TRY(gbx_json_file_next_element(&check->file, &has_one));
        if (text && has_one) {
            object->position = *out_got;
            GBX_TRY(compare_entry(check, object, text, size));
        } else if (has_one) {
            gbx_scan_value ignored;
            GBX_TRY(gbx_json_file_take(&check->file, &ignored));
        }
        *out_wanted += text != NULL;
        *out_got += has_one;
        is_more = text || has_one;
        if (*out_got % 1024 == 0)
            report_progress(check);
    }
    return NULL;
}

static gbx_status compare_list(manifest_check *check, const char *name, gbx_manifest_list list) {
    object_check object = {.list = name};
    uint64_t wanted = 0, got = 0;
    char what[96];
    object.fields = gbx_manifest_list_fields(list, &object.field_count);
    GBX_TRY(gbx_json_file_begin(&check->file, '['));
    gbx_status status = compare_entries(check, list, &object, &wanted, &got);
    free(object.text);
    GBX_TRY(status);
    snprintf(what, sizeof what, "%s: entries of %s", check->name, name);
    gbx_findings_compare(check->findings, GBX_FINDING_MANIFEST, what, wanted, got);
    return NULL;
}

/* --- files --- */

/* Whether a field of the top is a list that is compared entry by entry. */
static bool is_walked(const gbx_manifest_field *field) {
    return field->list != GBX_MANIFEST_LIST_COUNT && field->list != GBX_MANIFEST_KERNELS;
}

static const gbx_manifest_field *find_list(const object_check *top, const char *key) {
    for (size_t i = 0; i < top->field_count; ++i)
        if (is_walked(&top->fields[i]) && strcmp(top->fields[i].name, key) == 0)
            return &top->fields[i];
    return NULL;
}

/* `seen` gathers the members that are compared as one value. */
static gbx_status take_members(manifest_check *check, const object_check *top, json_t *seen) {
    char key[GBX_JSON_KEY_BYTES];
    bool has_one;
    GBX_TRY(gbx_json_file_begin(&check->file, '{'));
    for (;;) {
        GBX_TRY(gbx_json_file_next_key(&check->file, key, &has_one));
        if (!has_one)
            return gbx_json_file_end(&check->file);
        json_t *value = NULL;
        const gbx_manifest_field *list = find_list(top, key);
        if (json_object_get(seen, key)) {
            char what[160];
            snprintf(what, sizeof what, "%s: %s appears twice", check->name, key);
            gbx_findings_add(check->findings, GBX_FINDING_MANIFEST, what);
            list = NULL;
        }
        if (list)
            GBX_TRY(compare_list(check, list->name, list->list));
        else
            GBX_TRY(gbx_json_file_document(&check->file, &value));
        if (json_object_set_new(seen, key, list ? json_true() : value) != 0)
            return fail_memory();
    }
}

/* A list that older versions do not write may be missing where it has no entries. */
static gbx_status add_missing_list(manifest_check *check, const object_check *top,
                                   const gbx_manifest_field *field) {
    const char *text = NULL;
    size_t size = 0;
    gbx_manifest_place ignored;
    if (field->rule == GBX_RULE_LATER)
        GBX_TRY(gbx_manifest_pieces_next(check->pieces, field->list, &text, &size, &ignored));
    return field->rule == GBX_RULE_LATER && !text
               ? NULL
               : add_difference(check, top, field->name, NULL, NULL);
}

static gbx_status compare_top(manifest_check *check, json_t *seen) {
    object_check top = {0};
    const char *text = NULL;
    size_t size = 0;
    json_t *wanted = NULL;
    top.fields = gbx_manifest_head_fields(check->kind, &top.field_count);
    GBX_TRY(gbx_manifest_pieces_head(check->pieces, check->kind, &text, &size));
    GBX_TRY(parse(text, size, &wanted));
    gbx_status status = take_members(check, &top, seen);
    if (!status)
        status = compare_fields(check, &top, wanted, seen);
    for (size_t i = 0; !status && i < top.field_count; ++i)
        if (is_walked(&top.fields[i]) && !json_object_get(seen, top.fields[i].name))
            status = add_missing_list(check, &top, &top.fields[i]);
    json_decref(wanted);
    return status;
}

static gbx_status compare_open_file(manifest_check *check) {
    json_t *seen = json_object();
    if (!seen)
        return fail_memory();
    check->file_bytes = gbx_json_file_size(&check->file);
    gbx_status status = compare_top(check, seen);
    json_decref(seen);
    return status;
}

static gbx_status compare_file(const char *directory, manifest_check *check,
                               gbx_manifest_kind kind) {
    char name[96], what[128];
    bool is_there = false;
    check->kind = kind;
    check->name = gbx_manifest_name(kind);
    snprintf(name, sizeof name, "tensor_dump/%s", check->name);
    char *path = gbx_dump_path_join(directory, name);
    gbx_status status =
        path ? gbx_json_file_open(&check->file, path, check->name, &is_there) : fail_memory();
    if (!status && !is_there) {
        check->is_missing = true;
        snprintf(what, sizeof what, "%s is missing", check->name);
        gbx_findings_add(check->findings, GBX_FINDING_FILE, what);
    } else if (!status) {
        status = compare_open_file(check);
    }
    bool is_wrong = status && (gbx_status_code(status) == GBX_BAD_FORMAT ||
                               gbx_status_code(status) == GBX_OUT_OF_RANGE); /* for JSON */
    if (is_wrong) {
        gbx_findings_add(check->findings, GBX_FINDING_MANIFEST, gbx_status_message(status));
        gbx_status_free(status);
        status = NULL;
    }
    gbx_json_file_close(&check->file);
    free(path);
    return status;
}

gbx_status gbx_verify_manifests(const char *directory, gbx_reader *reader, gbx_findings *findings,
                                const gbx_verify_observer *observer, bool *out_is_missing) {
    manifest_check check = {.reader = reader, .findings = findings, .observer = observer};
    GBX_TRY(gbx_manifest_pieces_open(reader, &check.pieces));
    gbx_status status = NULL;
    if (gbx_reader_run(reader)->dump_level)
        status = compare_file(directory, &check, GBX_MANIFEST_FILE_TENSORS);
    if (!status && gbx_reader_run(reader)->has_args)
        status = compare_file(directory, &check, GBX_MANIFEST_FILE_ARGS);
    if (!status && gbx_reader_run(reader)->has_args)
        status = compare_file(directory, &check, GBX_MANIFEST_FILE_DISPATCHES);
    gbx_manifest_pieces_close(check.pieces);
    *out_is_missing = check.is_missing;
    return status;
}
