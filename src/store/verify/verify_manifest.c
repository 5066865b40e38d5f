#include "store/verify/verify_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/dump_path.h"
#include "store/import/json_pull.h"
#include "store/verify/verify_expected.h"

enum { KERNEL_TEXT_BYTES = 256 };

/* One file against the journal. */
typedef struct manifest_check {
    gbx_reader *reader;
    gbx_findings *findings;
    const gbx_verify_observer *observer;
    const char *name;
    gbx_json_pull pull;
    uint64_t file_bytes;
    bool is_missing; /* this file, or one before */
} manifest_check;

/* What an array of a manifest has to hold: entry after entry. */
typedef struct expected_array {
    const char *key;
    gbx_status (*next)(gbx_expected *expected, json_t **out_entry); /* NULL entry at the end */
} expected_array;

static gbx_status fail_memory(void) {
    return gbx_fail(GBX_EXHAUSTED, "comparing a manifest: the host is out of memory");
}

/* --- values --- */

static char *text_of(const json_t *value) {
    return value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17))
                 : strdup("nothing");
}

static gbx_status add_difference(manifest_check *check, const gbx_expected *expected,
                                 const char *where, const char *key, const json_t *wanted,
                                 const json_t *got) {
    char what[192];
    char *wanted_text = text_of(wanted);
    char *got_text = text_of(got);
    snprintf(what, sizeof what, "%s: %s%s%s", check->name, where, where[0] ? "." : "", key);
    gbx_status status = wanted_text && got_text ? NULL : fail_memory();
    bool has_place = expected && expected->has_place;
    char kernel[KERNEL_TEXT_BYTES] = "";
    if (!status && has_place)
        status = gbx_finding_kernel(check->reader, expected->place.task, kernel, sizeof kernel);
    if (!status)
        gbx_findings_add(check->findings, GBX_FINDING_MANIFEST, has_place ? &expected->place : NULL,
                         kernel, what, wanted_text, got_text);
    free(wanted_text);
    free(got_text);
    return status;
}

/* Every member that is expected; others may be there as well. */
static gbx_status compare_members(manifest_check *check, const gbx_expected *expected,
                                  const char *where, json_t *wanted, json_t *got) {
    const char *key;
    json_t *value;
    json_object_foreach(wanted, key, value) {
        json_t *found = json_object_get(got, key);
        if (!found || !gbx_expected_equals(value, found))
            GBX_TRY(add_difference(check, expected, where, key, value, found));
    }
    return NULL;
}

/* --- arrays --- */

/* Gives nothing to free when it fails. */
static gbx_status next_expected(const expected_array *array, gbx_expected *expected,
                                json_t **out_entry) {
    gbx_status status = array->next(expected, out_entry);
    if (status) {
        json_decref(*out_entry);
        *out_entry = NULL;
    }
    return status;
}

static gbx_status compare_entry(manifest_check *check, gbx_expected *expected, const char *key,
                                uint64_t position, json_t *wanted) {
    char where[64];
    json_t *got;
    if (expected->is_same)
        return NULL;
    GBX_TRY(gbx_json_pull_parse(&check->pull, &got));
    snprintf(where, sizeof where, "%s[%llu]", key, (unsigned long long)position);
    gbx_status status = compare_members(check, expected, where, wanted, got);
    json_decref(got);
    return status;
}

/* From the entry on whose text was taken. */
static gbx_status skip_rest(manifest_check *check, uint64_t *count) {
    bool has_one = true;
    while (has_one) {
        json_t *value;
        GBX_TRY(gbx_json_pull_parse(&check->pull, &value));
        json_decref(value);
        ++*count;
        GBX_TRY(gbx_json_pull_next_element(&check->pull, &has_one));
        if (has_one)
            GBX_TRY(gbx_json_pull_text(&check->pull));
    }
    return NULL;
}

static uint64_t count_left(gbx_expected *expected, const expected_array *array,
                           gbx_status *out_status) {
    uint64_t count = 0;
    json_t *wanted = NULL;
    while (!(*out_status = next_expected(array, expected, &wanted)) && wanted) {
        json_decref(wanted);
        ++count;
    }
    return count;
}

static void tell_progress(const manifest_check *check) {
    if (check->observer && check->observer->on_progress)
        check->observer->on_progress(check->observer->context, check->name,
                                     gbx_json_pull_offset(&check->pull), check->file_bytes);
}

/* Entries of both, as long as both have some; then how many one has beyond the other. */
static gbx_status compare_entries(manifest_check *check, const expected_array *array,
                                  uint64_t *out_wanted, uint64_t *out_got) {
    gbx_expected expected = {.reader = check->reader};
    for (uint64_t position = 0;; ++position) {
        json_t *wanted = NULL;
        bool has_one;
        GBX_TRY(gbx_json_pull_next_element(&check->pull, &has_one));
        if (has_one)
            GBX_TRY(gbx_json_pull_text(&check->pull));
        expected.text = has_one ? check->pull.text : NULL;
        expected.text_size = check->pull.size;
        GBX_TRY(next_expected(array, &expected, &wanted));
        *out_wanted = *out_got = position;
        if (has_one && !wanted)
            return skip_rest(check, out_got);
        if (!wanted)
            return NULL;
        gbx_status status = NULL;
        if (has_one)
            status = compare_entry(check, &expected, array->key, position, wanted);
        else
            *out_wanted += 1 + count_left(&expected, array, &status);
        json_decref(wanted);
        if (status || !has_one)
            return status;
        if (position % 1024 == 0)
            tell_progress(check);
    }
}

static gbx_status compare_array(manifest_check *check, const expected_array *array) {
    uint64_t wanted, got;
    char what[96];
    GBX_TRY(gbx_json_pull_begin(&check->pull, '['));
    GBX_TRY(compare_entries(check, array, &wanted, &got));
    snprintf(what, sizeof what, "%s: entries of %s", check->name, array->key);
    gbx_findings_compare(check->findings, GBX_FINDING_MANIFEST, NULL, NULL, what, wanted, got);
    return NULL;
}

/* --- files --- */

static const expected_array *find_array(const expected_array *arrays, const char *key) {
    for (; arrays->key; ++arrays)
        if (strcmp(arrays->key, key) == 0)
            return arrays;
    return NULL;
}

/* One member of the top; `seen` gathers those that are compared whole. */
static gbx_status take_member(manifest_check *check, const expected_array *arrays, const char *key,
                              json_t *seen) {
    const expected_array *array = find_array(arrays, key);
    if (array) {
        GBX_TRY(compare_array(check, array));
        return json_object_set_new(seen, key, json_true()) == 0 ? NULL : fail_memory();
    }
    json_t *value;
    GBX_TRY(gbx_json_pull_value(&check->pull, &value));
    return json_object_set_new(seen, key, value) == 0 ? NULL : fail_memory();
}

static gbx_status take_members(manifest_check *check, const expected_array *arrays, json_t *seen) {
    char key[GBX_JSON_PULL_KEY_BYTES];
    bool has_one;
    GBX_TRY(gbx_json_pull_begin(&check->pull, '{'));
    for (;;) {
        GBX_TRY(gbx_json_pull_next_key(&check->pull, key, &has_one));
        if (!has_one)
            return gbx_json_pull_end(&check->pull);
        if (json_object_get(seen, key)) {
            char what[160];
            snprintf(what, sizeof what, "%s: %s is there twice", check->name, key);
            gbx_findings_add(check->findings, GBX_FINDING_MANIFEST, NULL, NULL, what, NULL, NULL);
        }
        GBX_TRY(take_member(check, arrays, key, seen));
    }
}

static gbx_status compare_top(manifest_check *check, const expected_array *arrays, json_t *wanted) {
    json_t *seen = json_object();
    if (!seen || !wanted) {
        json_decref(seen);
        return fail_memory();
    }
    gbx_status status = take_members(check, arrays, seen);
    if (!status)
        status = compare_members(check, NULL, "", wanted, seen);
    for (; !status && arrays->key; ++arrays)
        if (!json_object_get(seen, arrays->key))
            status = add_difference(check, NULL, "", arrays->key, NULL, NULL);
    json_decref(seen);
    return status;
}

static void add_broken(manifest_check *check, const char *what) {
    gbx_findings_add(check->findings, GBX_FINDING_MANIFEST, NULL, NULL, what, NULL, NULL);
}

/* `wanted` is consumed. */
static gbx_status compare_file(const char *directory, manifest_check *check,
                               const expected_array *arrays, json_t *wanted) {
    char name[96], what[128];
    bool is_there = false;
    snprintf(name, sizeof name, "tensor_dump/%s", check->name);
    char *path = gbx_dump_path_join(directory, name);
    gbx_status status =
        path ? gbx_json_pull_open(&check->pull, path, check->name, &is_there) : fail_memory();
    if (!status && !is_there) {
        check->is_missing = true;
        snprintf(what, sizeof what, "%s is missing", check->name);
        gbx_findings_add(check->findings, GBX_FINDING_FILE, NULL, NULL, what, NULL, NULL);
    } else if (!status) {
        check->file_bytes = gbx_json_pull_size(&check->pull);
        status = compare_top(check, arrays, wanted);
    }
    if (status && gbx_status_code(status) == GBX_BAD_FORMAT) {
        add_broken(check, gbx_status_message(status));
        gbx_status_free(status);
        status = NULL;
    }
    gbx_json_pull_close(&check->pull);
    json_decref(wanted);
    free(path);
    return status;
}

static gbx_status compare_files(const char *directory, manifest_check *check) {
    static const expected_array tensors[] = {{"tensors", gbx_expected_next_argument},
                                             {"losses", gbx_expected_next_loss},
                                             {"skipped", gbx_expected_next_skipped},
                                             {0}};
    static const expected_array arguments[] = {{"args", gbx_expected_next_run_arg}, {0}};
    static const expected_array dispatches[] = {{"dispatches", gbx_expected_next_dispatch}, {0}};
    gbx_reader *reader = check->reader;
    if (gbx_reader_run(reader)->dump_level) {
        check->name = "tensor_dump.json";
        GBX_TRY(compare_file(directory, check, tensors, gbx_expected_tensors_head(reader)));
    }
    if (!gbx_reader_run(reader)->has_args)
        return NULL;
    check->name = "args_dump.json";
    GBX_TRY(compare_file(directory, check, arguments, gbx_expected_arguments_head(reader)));
    check->name = "kernel_args_dump.json";
    return compare_file(directory, check, dispatches, gbx_expected_dispatches_head(reader));
}

gbx_status gbx_verify_manifests(const char *directory, gbx_reader *reader, gbx_findings *findings,
                                const gbx_verify_observer *observer, bool *out_is_missing) {
    manifest_check check = {.reader = reader, .findings = findings, .observer = observer};
    gbx_status status = compare_files(directory, &check);
    *out_is_missing = check.is_missing;
    return status;
}
