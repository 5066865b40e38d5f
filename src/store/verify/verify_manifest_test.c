#include "hand_made_dump.h"

#include <math.h>
#include <sys/stat.h>

#include <jansson.h>

#include "store/manifest/manifest.h"
#include "store/verify/verify.h"

static made_dump dump;

static void make(void) {
    made_good(&dump);
    made_write(&dump);
    assert_ok(gbx_manifest_write(dump.directory, true, false));
}

static void print_findings(const gbx_findings *findings) {
    for (size_t i = 0; i < findings->count; ++i)
        print_message("%s: %s, expected %s, got %s\n",
                      gbx_name_of(&gbx_finding_kinds, findings->items[i].kind),
                      findings->items[i].what, findings->items[i].expected, findings->items[i].got);
}

static void check_text(const gbx_finding *finding, const char *text) {
    bool is_there = strstr(finding->what, text) ||
                    (finding->expected && strstr(finding->expected, text)) ||
                    (finding->got && strstr(finding->got, text));
    if (!is_there)
        fail_msg("\"%s\" is not in the finding", text);
}

/* Replaces the first occurrence of a text in tensor_dump.json by another of any length. */
static void edit(const made_dump *made, const char *name, const char *old,
                 const char *replacement) {
    static char text[1 << 16], edited[1 << 16];
    char path[160];
    made_path(made, name, path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    char *at = strstr(text, old);
    if (!at)
        fail_msg("%s is not in %s", old, name);
    int length = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, replacement,
                          at + strlen(old));
    made_write_file(made, name, edited, (size_t)length);
}

typedef struct edit_case {
    const char *old;
    const char *replacement;
    int index; /* of the record that the finding names; -1 for none */
    const char *texts[3];
} edit_case;

static void an_edited_manifest_is_found(void **state) {
    (void)state;
    static const edit_case cases[] = {
        {"\"total_tensors\": 7", "\"total_tensors\": 6", -1, {"total_tensors", "7", "6"}},
        {"\"input_tensors\": 4", "\"input_tensors\": 3", -1, {"input_tensors", "4", "3"}},
        {"\"payload_bytes\": 140", "\"payload_bytes\": 1400", -1, {"payload_bytes", "140", "1400"}},
        {"\"complete\": true", "\"complete\": false", -1, {"complete", "true", "false"}},
        {"\"platform\":\"a2a3sim\"", "\"platform\":\"a5sim\"", -1, {"run", "a5sim"}},
        {"\"name\":\"fold\"", "\"name\":\"mold\"", -1, {"kernels", "mold"}},
        {"\"bin_offset\":8192",
         "\"bin_offset\":8256",
         6,
         {"tensors[6].bin_offset", "8192", "8256"}},
        {"\"bin_size\":64", "\"bin_size\":65", 6, {"bin_size", "64", "65"}},
        {"\"numel\":100", "\"numel\":101", 6, {"numel", "100", "101"}},
        {"\"shape\":[0,4]", "\"shape\":[4,0]", 5, {"shape", "[0,4]", "[4,0]"}},
        {"\"strides\":[10,1]", "\"strides\":[3,1]", 4, {"strides", "[10,1]", "[3,1]"}},
        {"\"value\":1.5", "\"value\":1.25", 1, {"value", "1.5", "1.25"}},
        {"\"bits\":\"0x000000003fc00000\"", "\"bits\":\"0x000000003fc00001\"", 1, {"bits"}},
        {"\"task_id\":\"0x0000000000000101\"",
         "\"task_id\":\"0x0000000000000100\"",
         3,
         {"task_id"}},
        {"\"kernel\":[\"fold\"]", "\"kernel\":[\"scale\"]", 3, {"kernel", "fold", "scale"}},
        {"\"stage\":\"after_completion\"", "\"stage\":\"before_dispatch\"", 2, {"stage"}},
        {"\"role\":\"inout\"", "\"role\":\"output\"", 4, {"role", "inout", "output"}},
        {"\"dtype\":\"int4\"", "\"dtype\":\"int8\"", 4, {"dtype", "int4", "int8"}},
        {"\"truncated\":true", "\"truncated\":false", 6, {"truncated", "true", "false"}},
        {"\"index\":3", "\"index\":4", 3, {"index", "3", "4"}},
        {"\"hash\":", "\"no_hash\":", 0, {"hash", "nothing"}},
        {"\"stored_bytes\": 116,", "", -1, {"stored_bytes", "nothing"}},
        {"\"tensors\":", "\"tensor\":", -1, {"tensors", "nothing"}},
        {"\"losses\": [", "\"losses\": [{}", -1, {"entries of losses", "0", "1"}},
        {"]\n}\n", ",{}]\n}\n", -1, {"entries of tensors", "7", "8"}},
        {"]\n}\n", "]\n", -1, {"line", "expected"}},
        {"]\n}\n", "]\n} more", -1, {"expected the end of the file"}},
        {"{\"index\":2", "{\"index\":2 2", -1, {"line"}},
        {"\"schema_version\": 1",
         "\"status\": \"ok\", \"schema_version\": 1",
         -1,
         {"status appears twice"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_verification found;
        make();
        edit(&dump, "tensor_dump.json", cases[i].old, cases[i].replacement);
        assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
        if (found.findings.count != 1)
            print_message("%s, %zu findings:\n", cases[i].old, found.findings.count);
        if (found.findings.count != 1)
            print_findings(&found.findings);
        assert_int_equal(found.findings.count, 1);
        const gbx_finding *finding = &found.findings.items[0];
        assert_int_equal(finding->kind, GBX_FINDING_MANIFEST);
        assert_int_equal(finding->has_place ? (int)finding->place.index : -1, cases[i].index);
        assert_non_null(strstr(finding->what, "tensor_dump.json"));
        for (size_t k = 0; k < 3 && cases[i].texts[k]; ++k)
            check_text(finding, cases[i].texts[k]);
        gbx_verification_free(&found);
        made_remove(&dump);
    }
}

static void remove_entry(made_dump *made) {
    static char text[1 << 16];
    char path[160];
    made_path(made, "tensor_dump.json", path);
    FILE *file = fopen(path, "r");
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    char *last = strstr(text, ",\n{\"index\":6");
    assert_non_null(last);
    memmove(last, "\n]\n}\n", 6);
    made_write_file(made, "tensor_dump.json", text, strlen(text));
}

static void remove_manifest(made_dump *made) {
    char path[160];
    made_path(made, "tensor_dump.json", path);
    assert_int_equal(unlink(path), 0);
}

static void check_lacks(void (*harm)(made_dump *), gbx_finding_kind kind, const char *text) {
    gbx_verification found;
    make();
    harm(&dump);
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    assert_int_equal(found.findings.count, 1);
    assert_int_equal(found.findings.items[0].kind, kind);
    check_text(&found.findings.items[0], text);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* A pipe without a writer is not a manifest; verify does not wait for it. */
static void make_pipe(made_dump *made) {
    char path[160];
    remove_manifest(made);
    made_path(made, "tensor_dump.json", path);
    assert_int_equal(mkfifo(path, 0666), 0);
}

static void a_manifest_that_lacks_something_is_found(void **state) {
    (void)state;
    check_lacks(make_pipe, GBX_FINDING_MANIFEST, "tensor_dump.json is not a regular file");
    check_lacks(remove_entry, GBX_FINDING_MANIFEST, "entries of tensors");
    check_lacks(remove_manifest, GBX_FINDING_FILE, "tensor_dump.json is missing");
}

/* Flags that only entries of other tools have: in journal and manifest, or only in the journal. */
static void flags_of_other_tools_are_compared(void **state) {
    (void)state;
    static const struct {
        const char *old;
        const char *replacement;
        size_t findings;
    } cases[] = {
        {"", "", 0},
        {"\"truncated\":true,\"overwritten\":true", "\"truncated\":false,\"overwritten\":true", 1},
        {"\"truncated\":true,\"overwritten\":true", "\"truncated\":true,\"overwritten\":false", 1},
        {"\"truncated\":false,\"overwritten\":true", "\"truncated\":false,\"overwritten\":false",
         1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_verification found;
        made_good(&dump);
        ((gbx_record *)made_record(&dump, MADE_SCALAR))->flags |=
            GBX_FLAG_TRUNCATED | GBX_FLAG_OVERWRITTEN;
        made_tensor_at(&dump, MADE_INPUT)->head.flags |= GBX_FLAG_OVERWRITTEN;
        made_write(&dump);
        assert_ok(gbx_manifest_write(dump.directory, true, false));
        edit(&dump, "tensor_dump.json", "\"truncated_tensors\": 2", "\"truncated_tensors\": 2");
        edit(&dump, "tensor_dump.json", cases[i].old, cases[i].replacement);
        assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
        print_findings(&found.findings);
        assert_int_equal(found.findings.count, cases[i].findings);
        gbx_verification_free(&found);
        made_remove(&dump);
    }
}

/* Another layout of the same JSON means the same. */
static void the_layout_of_a_manifest_does_not_matter(void **state) {
    (void)state;
    gbx_verification found;
    make();
    edit(&dump, "tensor_dump.json", "\"index\":0,", " \"new_member\" : [ {} ],\n \"index\" : 0 ,");
    edit(&dump, "tensor_dump.json", "\"generator\"",
         "\"more\": {\"a\": \"]}\\\"\"}, \"generator\"");
    edit(&dump, "tensor_dump.json", "\"value\":1.5", "\"value\": 15.0e-1");
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    print_findings(&found.findings);
    assert_int_equal(found.findings.count, 0);
    gbx_verification_free(&found);
    made_remove(&dump);
}

/* --- all fields of a manifest --- */

static const char full_run_json[] =
    "{\"generator\": \"hand\", \"run\": {\"scene\": \"s\"}, \"dump_level\": \"full\", "
    "\"has_args\": true, \"kernels\": [{\"func_id\": 3, \"name\": \"cube\", \"core_type\": "
    "\"aic\", \"signature\": [\"in\", \"scalar:float32\"], \"arg_names\": [\"x\", \"alpha\"]}, "
    "{\"func_id\": 4, \"name\": \"vector\", \"core_type\": \"aiv\", \"signature\": [\"in\", "
    "\"scalar:float32\"]}], \"run_args\": [{\"name\": \"x\", \"role\": \"input\"}, {\"name\": "
    "\"n\", \"role\": \"scalar\"}]}";

static void append_run_args(made_dump *made) {
    gbx_record_run_arg *tensor = made_append(made, GBX_RECORD_RUN_ARG, sizeof *tensor, 16);
    tensor->head.dtype = GBX_FLOAT16;
    tensor->head.ndims = 2;
    tensor->is_tensor = 1;
    tensor->bits = 0x7e9000002000;
    ((int64_t *)(void *)(tensor + 1))[0] = 5;
    ((int64_t *)(void *)(tensor + 1))[1] = 7;
    gbx_record_run_arg *scalar = made_append(made, GBX_RECORD_RUN_ARG, sizeof *scalar, 0);
    scalar->head.arg_index = 1;
    scalar->head.dtype = GBX_INT32;
    scalar->bits = 0xfffffffe;
}

static void append_dispatch(made_dump *made, uint32_t subtask, uint32_t block_idx) {
    gbx_record_dispatch *record =
        made_append(made, GBX_RECORD_DISPATCH, sizeof *record, 16 + 48 + 16);
    record->task_id = 0x100;
    record->func_id = subtask ? 4 : 3;
    record->core_id = 3 * block_idx + subtask;
    record->block_idx = block_idx;
    record->block_num = 2;
    record->subtask = subtask;
    record->slot_count = 2;
    record->local_context = 0x7e9000009000 + block_idx;
    record->global_context = UINT64_MAX;
    gbx_record_slot *tensor = (gbx_record_slot *)(void *)(record + 1);
    tensor->is_tensor = 1;
    tensor->dtype = GBX_FLOAT16;
    tensor->ndims = 2;
    tensor->bits = 0x7e9000008000;
    const int64_t geometry[] = {0x7e9000002000, 35, 5, 7, -7, 1};
    memcpy(tensor + 1, geometry, sizeof geometry);
    gbx_record_slot *scalar = (gbx_record_slot *)(void *)((char *)(tensor + 1) + sizeof geometry);
    scalar->arg_index = 1;
    scalar->dtype = GBX_FLOAT32;
    scalar->bits = 0x3dcccccd;
}

static uint32_t append_scalars(made_dump *made) {
    static const struct {
        gbx_dtype dtype;
        uint64_t bits;
    } scalars[] = {{GBX_FLOAT32, 0x3dcccccd},
                   {GBX_FLOAT32, 0xff800000},
                   {GBX_FLOAT32, 0x00000001},
                   {GBX_FLOAT32, 0x80000000},
                   {GBX_FLOAT64, 0x3fb999999999999a},
                   {GBX_FLOAT64, 0x7ff8000000000000},
                   {GBX_FLOAT16, 0x2e66},
                   {GBX_BFLOAT16, 0x3dcd},
                   {GBX_FLOAT8_E4M3, 0x39},
                   {GBX_FLOAT8_E5M2, 0x7c},
                   {GBX_INT8, 0x80},
                   {GBX_UINT8, 0xffffff80},
                   {GBX_INT16, 0x8000},
                   {GBX_UINT16, 0xffff},
                   {GBX_INT32, 0x80000000},
                   {GBX_UINT32, 0xffffffff},
                   {GBX_INT64, UINT64_C(1) << 63},
                   {GBX_UINT64, UINT64_MAX},
                   {GBX_BOOL, 1},
                   {GBX_INT4, 0xf},
                   {GBX_DTYPE_NONE, 0x20000000000001}};
    uint32_t count = sizeof scalars / sizeof scalars[0];
    for (uint32_t i = 0; i < count; ++i) {
        gbx_record_scalar *record = made_append(made, GBX_RECORD_SCALAR, sizeof *record, 0);
        record->head.arg_index = (uint8_t)(i + 1);
        record->head.dtype = (uint8_t)scalars[i].dtype;
        record->head.thread = 1;
        record->bits = scalars[i].bits;
    }
    return count;
}

static void append_statistics(made_dump *made) {
    gbx_record_tensor *tensor =
        made_append(made, GBX_RECORD_TENSOR, sizeof *tensor, 16 + sizeof(gbx_record_stats));
    tensor->head.dtype = GBX_FLOAT32;
    tensor->head.ndims = 1;
    tensor->head.flags = GBX_FLAG_CONTIGUOUS | GBX_FLAG_HAS_HASH | GBX_FLAG_HAS_STATS;
    ((int64_t *)(void *)(tensor + 1))[0] = 9;
    ((int64_t *)(void *)(tensor + 1))[1] = 1;
    gbx_record_stats *stats = (gbx_record_stats *)(void *)((char *)(tensor + 1) + 16);
    double low = (double)0.1f, high = HUGE_VAL;
    memcpy(&stats->min_bits, &low, 8);
    memcpy(&stats->max_bits, &high, 8);
    stats->mean = 1.0 / 3;
    stats->nan_count = 2;
    stats->inf_count = 1;
}

/* Also a task that did not complete, and skipped arguments. */
static void append_failures(made_dump *made) {
    static const int64_t shape[] = {4};
    made_task(made, 1, 4, 0);
    gbx_record_tensor *output =
        made_tensor(made, 1, 0, GBX_STAGE_AFTER, GBX_ROLE_OUTPUT, GBX_INT16, 1, shape);
    made_payload(made, output, 128, 8, 5);
    output->head.flags |= GBX_FLAG_IN_FLIGHT;
    gbx_record_skipped *skipped = made_append(made, GBX_RECORD_SKIPPED, sizeof *skipped, 0);
    skipped->head.task = 1;
    skipped->head.arg_index = GBX_ARG_NONE;
    skipped->head.stage = GBX_STAGE_NONE;
    skipped->func_id = 4;
}

static void make_full(void) {
    memset(&dump, 0, sizeof dump);
    made_run(&dump, full_run_json);
    append_run_args(&dump);
    made_task(&dump, 0, 4, 0);
    gbx_record_task *task = made_record(&dump, 3);
    task->func_ids[0] = 3;
    task->block_num = 2;
    for (uint32_t i = 0; i < 4; ++i)
        append_dispatch(&dump, i % 2, i / 2);
    uint32_t scalars = append_scalars(&dump);
    append_statistics(&dump);
    made_done(&dump, 0);
    made_end_block(&dump);
    append_failures(&dump);
    gbx_record_end end = {.record_count = scalars + 2,
                          .task_count = 2,
                          .dispatch_count = 4,
                          .payload_bytes = 8,
                          .stored_bytes = 8,
                          .stall_ns = 77};
    made_end(&dump, &end, "kernel vector crashed");
    made_end_block(&dump);
    made_write(&dump);
    assert_ok(gbx_manifest_write(dump.directory, true, true));
}

static void all_that_manifests_say_is_compared(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *old;
        const char *replacement;
        const char *text;
    } cases[] = {
        {"tensor_dump.json", "\"nan\":2", "\"nan\":3", "tensors[0].stats"},
        {"tensor_dump.json", "\"mean\":0.333", "\"mean\":0.334", "tensors[0].stats"},
        {"tensor_dump.json", "\"min\":0.1", "\"min\":0.2", "tensors[0].stats"},
        {"tensor_dump.json", "\"value\":\"-inf\"", "\"value\":\"inf\"", "tensors[2].value"},
        {"tensor_dump.json", "\"value\":\"nan\"", "\"value\":0.0", "tensors[6].value"},
        {"tensor_dump.json", "\"value\":\"18446744073709551615\"",
         "\"value\":\"18446744073709551614\"", "tensors[18].value"},
        {"tensor_dump.json", "\"value\":-0.0", "\"value\":0.0", "tensors[4].value"},
        {"tensor_dump.json", "\"arg_name\":\"alpha\"", "\"arg_name\":\"beta\"", "arg_name"},
        {"tensor_dump.json", "\"subtasks\":[\"aic\",\"aiv0\"]", "\"subtasks\":[\"aic\"]",
         "subtasks"},
        {"tensor_dump.json", "\"in_flight\":true", "\"in_flight\":false", "in_flight"},
        {"tensor_dump.json", "\"in_flight_tensors\": 1", "\"in_flight_tensors\": 0",
         "in_flight_tensors"},
        {"tensor_dump.json", "\"stall_ns\": 77", "\"stall_ns\": 0", "stall_ns"},
        {"tensor_dump.json", "crashed", "vanished", "status"},
        {"args_dump.json", "\"shape\":[5,7]", "\"shape\":[7,5]", "args[0].shape"},
        {"args_dump.json", "\"value\":-2", "\"value\":2", "args[1].value"},
        {"args_dump.json", "\"scalar_value\":\"4294967294\"", "\"scalar_value\":\"-2\"",
         "args[1].scalar_value"},
        {"args_dump.json", "\"total_args\": 2", "\"total_args\": 3", "total_args"},
        {"kernel_args_dump.json", "\"strides\":[-7,1]", "\"strides\":[7,1]", "dispatches[0].args"},
        {"kernel_args_dump.json", "\"value\":0.1", "\"value\":0.10000001", "dispatches[0].args"},
        {"kernel_args_dump.json", "\"core_id\":4", "\"core_id\":5", "dispatches[3].core_id"},
        {"kernel_args_dump.json", "\"bits\":\"0x00007e9000009001\"",
         "\"bits\":\"0x00007e9000009002\"", "dispatches[2].contexts"},
        {"kernel_args_dump.json", "\"total_args\": 8", "\"total_args\": 4", "total_args"},
        {"kernel_args_dump.json", "\"kernel\":\"cube\"", "\"kernel\":\"tube\"",
         "dispatches[0].kernel"},
    };
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; ++i) {
        gbx_verification found;
        bool is_edited = i < sizeof cases / sizeof cases[0];
        make_full();
        if (is_edited)
            edit(&dump, cases[i].name, cases[i].old, cases[i].replacement);
        assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
        if (found.findings.count != is_edited)
            print_findings(&found.findings);
        assert_int_equal(found.findings.count, is_edited);
        assert_int_equal(found.unhashed_tensors, 1);
        if (is_edited)
            check_text(&found.findings.items[0], cases[i].text);
        gbx_verification_free(&found);
        made_remove(&dump);
    }
}

/* --- manifests of other versions and other tools --- */

static size_t count_findings(const char *text) {
    gbx_verification found;
    assert_ok(gbx_dump_verify(dump.directory, NULL, &found));
    size_t count = found.findings.count;
    if (count > 0 && text)
        check_text(&found.findings.items[0], text);
    else
        print_findings(&found.findings);
    gbx_verification_free(&found);
    return count;
}

/* Sorted and indented, with everything in another place than the writer's. */
static void lay_out_again(const char *name) {
    char path[160];
    made_path(&dump, name, path);
    json_t *document = json_load_file(path, 0, NULL);
    assert_non_null(document);
    assert_int_equal(json_dump_file(document, path, JSON_INDENT(3) | JSON_SORT_KEYS), 0);
    json_decref(document);
}

static void manifests_may_be_laid_out_again(void **state) {
    (void)state;
    static const char *const names[] = {"tensor_dump.json", "args_dump.json",
                                        "kernel_args_dump.json"};
    make_full();
    for (size_t i = 0; i < 3; ++i)
        lay_out_again(names[i]);
    assert_int_equal(count_findings(NULL), 0);
    edit(&dump, "tensor_dump.json", "\"thread\": 1", "\"thread\": 2");
    assert_int_equal(count_findings("thread"), 1);
    edit(&dump, "kernel_args_dump.json", "\"block_idx\": 1", "\"block_idx\": 3");
    assert_int_equal(count_findings("thread"), 2);
    made_remove(&dump);
}

/* Three tasks were skipped. */
static void make_with_skipped(void) {
    static const uint32_t reasons[] = {GBX_SKIP_NOT_DESCRIBED, GBX_SKIP_MISMATCH,
                                       GBX_SKIP_NOT_DESCRIBED};
    memset(&dump, 0, sizeof dump);
    made_run(&dump, full_run_json);
    for (uint32_t i = 0; i < 3; ++i) {
        gbx_record_skipped *skipped = made_append(&dump, GBX_RECORD_SKIPPED, sizeof *skipped, 0);
        skipped->head.task = i;
        skipped->head.arg_index = GBX_ARG_NONE;
        skipped->head.stage = GBX_STAGE_NONE;
        skipped->func_id = 4;
        skipped->reason = reasons[i];
    }
    gbx_record_end end = {0};
    made_end(&dump, &end, "ok");
    made_end_block(&dump);
    made_write(&dump);
    assert_ok(gbx_manifest_write(dump.directory, true, true));
}

/* reason_code is newer than the first version, whose files have it in no entry. */
static void fields_that_the_writing_version_had_are_compared(void **state) {
    (void)state;
    static const char undescribed[] = ",\"reason_code\":\"undescribed\"}";
    static const char misdescribed[] = ",\"reason_code\":\"misdescribed\"}";
    make_with_skipped();
    assert_int_equal(count_findings(NULL), 0);
    edit(&dump, "tensor_dump.json", undescribed, "}");
    edit(&dump, "tensor_dump.json", misdescribed, "}");
    edit(&dump, "tensor_dump.json", undescribed, "}");
    assert_int_equal(count_findings(NULL), 0);
    edit(&dump, "tensor_dump.json", "\"task_seq\":2", "\"task_seq\":3");
    assert_int_equal(count_findings("skipped[2].task_seq"), 1);
    made_remove(&dump);

    make_with_skipped();
    edit(&dump, "tensor_dump.json", misdescribed, "}");
    assert_int_equal(count_findings("skipped[1].reason_code"), 1);
    made_remove(&dump);

    make_with_skipped();
    edit(&dump, "tensor_dump.json", misdescribed, undescribed);
    assert_int_equal(count_findings("skipped[1].reason_code"), 1);
    made_remove(&dump);

    make_with_skipped(); /* sentences are for people */
    edit(&dump, "tensor_dump.json", "the description", "whatever it says");
    assert_int_equal(count_findings(NULL), 0);
    edit(&dump, "tensor_dump.json", "\"task_seq\":1", "\"task_seq\":2");
    assert_int_equal(count_findings("skipped[1].task_seq"), 1);
    made_remove(&dump);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edited_manifest_is_found),
        cmocka_unit_test(a_manifest_that_lacks_something_is_found),
        cmocka_unit_test(flags_of_other_tools_are_compared),
        cmocka_unit_test(the_layout_of_a_manifest_does_not_matter),
        cmocka_unit_test(all_that_manifests_say_is_compared),
        cmocka_unit_test(manifests_may_be_laid_out_again),
        cmocka_unit_test(fields_that_the_writing_version_had_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
