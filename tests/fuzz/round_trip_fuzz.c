/*
 * From a journal to manifests: the input is tensor_dump.rec. All that can be read is written as
 * manifests, which must be JSON and must agree with the journal when verified.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "dump_walk.h"
#include "store/manifest/manifest.h"
#include "store/verify/verify.h"
#include "target.h"
#include "text/json_reader.h"

static const char *const manifests[] = {"tensor_dump/tensor_dump.json",
                                        "tensor_dump/args_dump.json",
                                        "tensor_dump/kernel_args_dump.json"};

static json_t *load(const char *name) {
    char path[PATH_MAX + 64];
    json_t *document = NULL;
    snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
    gbx_status status = gbx_json_load(path, 256 << 20, &document);
    if (status)
        fprintf(stderr, "%s\n", gbx_status_message(status));
    FUZZ_CHECK(status == NULL);
    return document;
}

/* A count in a manifest must equal the number of items. */
static void check_count(const json_t *manifest, const char *number, const char *array) {
    const json_t *count = json_object_get(manifest, number);
    const json_t *elements = json_object_get(manifest, array);
    FUZZ_CHECK(json_is_integer(count) && json_is_array(elements));
    FUZZ_CHECK((uint64_t)json_integer_value(count) == json_array_size(elements));
}

static void check_manifests(void) {
    json_t *tensors = load(manifests[0]);
    FUZZ_CHECK(json_is_array(json_object_get(tensors, "tensors")));
    json_decref(tensors);
    json_t *args = load(manifests[1]);
    check_count(args, "total_args", "args");
    json_decref(args);
    json_t *dispatches = load(manifests[2]);
    check_count(dispatches, "total_dispatches", "dispatches");
    json_decref(dispatches);
}

static void check_finding(const gbx_finding *finding) {
    fuzz_touch_text(finding->expected);
    fuzz_touch_text(finding->got);
    if (finding->kind == GBX_FINDING_MANIFEST)
        fprintf(stderr, "%s: expected %s, got %s\n", finding->what,
                finding->expected ? finding->expected : "", finding->got ? finding->got : "");
    FUZZ_CHECK(finding->kind != GBX_FINDING_MANIFEST);
}

/* Returns the number of records that the journal has. */
static uint64_t check_verify(void) {
    gbx_verification verification;
    gbx_status failure = gbx_dump_verify(fuzz_directory(), NULL, &verification);
    FUZZ_CHECK(failure == NULL);
    for (size_t i = 0; i < verification.findings.count; ++i)
        check_finding(&verification.findings.items[i]);
    uint64_t records = gbx_reader_get_totals(verification.reader)->records;
    gbx_verification_free(&verification);
    return records;
}

/* Reads the manifest instead of the journal. It may be refused, because it can contradict itself
 * like the journal; else it has the same number of records. */
static void check_import(uint64_t records) {
    gbx_reader *reader = NULL;
    fuzz_remove_file("tensor_dump/tensor_dump.rec");
    gbx_status failure = gbx_reader_open(fuzz_directory(), FUZZ_INDEX_ALL, &reader);
    if (failure) {
        fuzz_check_failure(failure);
        return;
    }
    FUZZ_CHECK(gbx_reader_get_totals(reader)->records == records);
    fuzz_walk_dump(reader);
    gbx_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_prepare_dump();
    int descriptor = fuzz_next_descriptor();
    fuzz_write_file("tensor_dump/tensor_dump.rec", data, size);
    gbx_status failure = gbx_manifest_write(fuzz_directory(), true, true);
    if (failure) {
        fuzz_check_failure(failure);
    } else {
        check_manifests();
        check_import(check_verify());
    }
    for (size_t i = 0; i < sizeof manifests / sizeof manifests[0]; ++i)
        fuzz_remove_file(manifests[i]);
    FUZZ_CHECK(fuzz_next_descriptor() == descriptor);
    return 0;
}
