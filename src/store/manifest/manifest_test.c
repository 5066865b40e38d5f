#include "journal_test_builder.h"

#include <signal.h>
#include <sys/resource.h>

#include <jansson.h>

#include "store/manifest/manifest.h"

#define RUN_BEGIN                                                                                  \
    "{\"generator\": \"glassbox 0.1.0\", \"run\": {\"run_id\": \"r-1\", \"scene\": \"so\\\"ft\", " \
    "\"case\": \"sm\303\244ll\", \"platform\": \"a5sim\", \"runtime\": null, \"rank\": 2, "        \
    "\"round\": 1, \"started_at\": \"2026-01-02T03:04:05Z\"}, \"dump_level\": \"full\", "          \
    "\"has_args\": true, \"filters\": [], "

static const char run_json[] =
    RUN_BEGIN "\"kernels\": [{\"func_id\": 7, \"name\": \"add\", \"core_type\": \"aiv\", "
              "\"signature\": [\"in\", \"scalar:float32\", \"inout\"], \"arg_names\": [\"x\", "
              "\"alpha\", \"y\"]}, {\"func_id\": 3, \"name\": \"m\\\"ul\", \"core_type\": \"aic\", "
              "\"signature\": [\"in\", \"out\"], \"arg_names\": [null, \"z\"]}], \"run_args\": "
              "[{\"name\": \"x\", \"role\": \"input\"}, {\"name\": null, \"role\": \"output\"}, "
              "{\"name\": \"n\", \"role\": \"scalar\"}]}";

static const uint32_t aiv_only[3] = {UINT32_MAX, 7, UINT32_MAX};
static const uint32_t mixed[3] = {3, 7, UINT32_MAX};
static const uint64_t no_counts[8];

static char *read_text(const dump *d, const char *name) {
    char path[256];
    path_in(d, name, path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_int_equal(fread(text, 1, size, file), size);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void write_manifest(const dump *d, bool has_tensors, bool has_args) {
    gbx_status status = gbx_manifest_write(d->directory, has_tensors, has_args);
    assert_string_equal(gbx_status_message(status), "");
}

static json_t *load(const dump *d, const char *name) {
    char path[256];
    path_in(d, name, path);
    json_error_t error;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!document)
        fail_msg("%s: line %d: %s", name, error.line, error.text);
    return document;
}

static json_t *written_tensors(builder *b, const dump *d) {
    finish_journal(b, d);
    write_manifest(d, true, false);
    free(b->bytes);
    return load(d, "tensor_dump.json");
}

static int64_t integer(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_string(value));
    return json_string_value(value);
}

static bool boolean(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_boolean(value));
    return json_is_true(value);
}

/* --- complete files, byte by byte --- */

static const char golden[] =
    "{\n\"schema_version\": 1,\n\"generator\": \"glassbox 0.1.0\",\n\"run\": "
    "{\"run_id\":\"r-1\",\"scene\":\"so\\\"ft\",\"case\":\"sm\303\244ll\",\"platform\":\"a5sim\","
    "\"runtime\":null,\"rank\":2,\"round\":1,\"started_at\":\"2026-01-02T03:04:05Z\"},\n"
    "\"run_dir\": \"run_1\",\n\"bin_file\": \"tensor_dump.bin\",\n\"bin_format\": "
    "{\"type\":\"logical_contiguous\",\"byte_order\":\"little_endian\"},\n\"dump_level\": "
    "\"full\",\n\"complete\": true,\n\"status\": \"ok\",\n\"total_tensors\": 3,\n"
    "\"before_dispatch\": 2,\n\"after_completion\": 1,\n\"input_tensors\": 1,\n"
    "\"output_tensors\": 0,\n\"inout_tensors\": 2,\n\"in_flight_tensors\": 1,\n"
    "\"truncated_tensors\": 1,\n\"dropped_records\": 16,\n\"dropped_overwrite\": 0,\n"
    "\"deduplicated_tensors\": 1,\n\"payload_bytes\": 28,\n\"stored_bytes\": 20,\n\"stall_ns\": "
    "77,\n\"total_results\": 2,\n\"result_payload_bytes\": 24,\n\"result_stored_bytes\": 16,\n"
    "\"kernels\": [\n{\"func_id\":7,\"name\":\"add\",\"core_type\":\"aiv\",\"signature\":"
    "[\"in\",\"scalar:float32\",\"inout\"]},\n{\"func_id\":3,\"name\":\"m\\\"ul\",\"core_type\":"
    "\"aic\",\"signature\":[\"in\",\"out\"]}\n],\n\"losses\": [\n{\"task_id\":"
    "\"0x0000000000000102\",\"task_seq\":2,\"arg_index\":3,\"stage\":\"after_completion\","
    "\"cause\":\"disk\",\"count\":11,\"result\":null},\n{\"task_id\":null,\"task_seq\":null,\"arg_index\":null,"
    "\"stage\":null,\"cause\":\"device\",\"count\":4,\"result\":null},\n"
    "{\"task_id\":null,\"task_seq\":null,\"arg_index\":null,"
    "\"stage\":null,\"cause\":\"disk\",\"count\":1,\"result\":5}\n],\n\"skipped\": [\n{\"task_id\":"
    "\"0x0000000000000102\",\"task_seq\":2,\"arg_index\":null,\"kernel\":\"add\",\"reason\":"
    "\"the tensors of the task were never "
    "described\",\"reason_code\":\"undescribed\"}\n],\n\"finding_count\": 9,\n\"findings\": [\n"
    "{\"kind\":\"overrun\",\"text\":\"task 2, kernel add, probably wrote 60 of 64 bytes past the end of "
    "its argument 1 (y), argument 0 of task 1, kernel m\\\"ul: bytes 4096 to 4159 of a buffer of 4096 "
    "bytes (tasks 5 and 1 more also ran, but have no argument there)\",\"time_ns\":55,"
    "\"finder_seq\":2,\"place\":\"output\",\"place_index\":0,\"owner_seq\":1,\"owner_func_id\":3,\"owner_kernel\":"
    "\"m\\\"ul\",\"buffer_addr\":\"0x0000000000007000\",\"buffer_bytes\":4096,\"first_byte\":4096,"
    "\"span_bytes\":64,\"changed_bytes\":60,\"certainty\":\"likely\",\"candidate_count\":3,"
    "\"candidates\":[{\"task_seq\":2,\"func_id\":7,\"kernel\":\"add\",\"arg_index\":1},{\"task_seq\":"
    "5,\"func_id\":9,\"kernel\":null,\"arg_index\":null}]},\n"
    "{\"kind\":\"underrun\",\"text\":\"an unknown task wrote 1 byte before the start of the run's "
    "tensor 1: byte -1 of a buffer of 1 byte\",\"time_ns\":56,\"finder_seq\":null,\"place\":"
    "\"run_argument\",\"place_index\":1,\"owner_seq\":null,\"owner_func_id\":null,\"owner_kernel\":null,\"buffer_addr\":"
    "\"0x0000000000009000\",\"buffer_bytes\":1,\"first_byte\":-1,\"span_bytes\":1,\"changed_bytes\":1,"
    "\"certainty\":\"open\",\"candidate_count\":0,\"candidates\":[]}\n],\n\"results\": [\n"
    "{\"index\":0,\"arg_index\":0,\"name\":\"x\",\"role\":\"output\",\"dtype\":\"float32\",\"shape\":"
    "[2,2],\"numel\":4,\"buffer_addr\":\"0x0000000000002000\",\"pieces\":[{\"offset\":0,\"address\":"
    "\"0x0000000000002000\",\"bytes\":16}],\"bin_offset\":128,\"bin_size\":16,\"hash\":"
    "\"00000000000000040000000000000003\",\"truncated\":false,\"in_flight\":false,\"stats\":"
    "{\"min\":-1.5,\"max\":\"inf\",\"mean\":0.1,\"nan\":1,\"inf\":2,\"zero\":3,\"subnormal\":4}},\n"
    "{\"index\":1,\"arg_index\":3,\"name\":null,\"role\":\"inout\",\"dtype\":\"uint8\",\"shape\":[12],"
    "\"numel\":12,\"buffer_addr\":null,\"pieces\":[{\"offset\":0,\"address\":\"0x0000000000003000\","
    "\"bytes\":4},{\"offset\":8,\"address\":\"0x0000000000004000\",\"bytes\":4}],\"bin_offset\":64,"
    "\"bin_size\":8,\"hash\":\"00000000000000020000000000000001\",\"truncated\":true,\"in_flight\":true}\n"
    "],\n\"tensors\": [\n"
    "{\"index\":0,\"task_id\":\"0x0000000000000102\",\"task_seq\":2,\"func_id\":[3,7],\"kernel\":"
    "[\"m\\\"ul\",\"add\"],\"arg_index\":1,\"arg_name\":\"z\",\"role\":\"inout\",\"stage\":"
    "\"before_dispatch\",\"kind\":\"tensor\",\"dtype\":\"float32\",\"shape\":[2,3],\"strides\":"
    "[-3,1],\"start_offset\":3,\"numel\":6,\"is_contiguous\":false,\"buffer_addr\":"
    "\"0x0000000000001000\",\"bin_offset\":64,\"bin_size\":8,\"hash\":"
    "\"00000000000000020000000000000001\",\"truncated\":true,\"overwritten\":false,\"in_flight\":"
    "false,\"time_ns\":60,\"thread\":3,\"block_num\":2,\"subtasks\":[\"aic\",\"aiv0\"],"
    "\"start_ns\":900,\"end_ns\":3000,\"cores\":[3,70],\"stats\":"
    "{\"min\":-1.5,\"max\":\"inf\",\"mean\":0.1,\"nan\":1,\"inf\":2,\"zero\":3,\"subnormal\":4}},\n"
    "{\"index\":1,\"task_id\":\"0x0000000000000102\",\"task_seq\":2,\"func_id\":[3,7],\"kernel\":"
    "[\"m\\\"ul\",\"add\"],\"arg_index\":2,\"arg_name\":\"alpha\",\"role\":\"input\",\"stage\":"
    "\"before_dispatch\",\"kind\":\"scalar\",\"dtype\":\"float32\",\"value\":0.1,\"bits\":"
    "\"0x000000003dcccccd\",\"shape\":[],\"strides\":[],\"start_offset\":0,\"numel\":1,"
    "\"is_contiguous\":true,\"bin_offset\":0,\"bin_size\":0,\"truncated\":false,\"overwritten\":"
    "false,\"in_flight\":false,\"time_ns\":50,\"thread\":3,\"block_num\":2,\"subtasks\":"
    "[\"aic\",\"aiv0\"],\"start_ns\":900,\"end_ns\":3000,\"cores\":[3,70]},\n"
    "{\"index\":2,\"task_id\":\"0x0000000000000102\",\"task_seq\":2,\"func_id\":[3,7],\"kernel\":"
    "[\"m\\\"ul\",\"add\"],\"arg_index\":0,\"arg_name\":\"x\",\"role\":\"inout\",\"stage\":"
    "\"after_completion\",\"kind\":\"tensor\",\"dtype\":\"int4\",\"shape\":[],\"strides\":[],"
    "\"start_offset\":0,\"numel\":1,\"is_contiguous\":true,\"buffer_addr\":"
    "\"0xffffffffffffffff\",\"bin_offset\":0,\"bin_size\":8,\"truncated\":false,\"overwritten\":"
    "false,\"in_flight\":false,\"time_ns\":61,\"thread\":0,\"block_num\":2,\"subtasks\":"
    "[\"aic\",\"aiv0\"],\"start_ns\":900,\"end_ns\":3000,\"cores\":[3,70]},\n"
    "{\"index\":3,\"task_id\":null,\"task_seq\":3,\"func_id\":[],\"kernel\":[],\"arg_index\":1,"
    "\"role\":\"output\",\"stage\":\"after_completion\",\"kind\":\"tensor\",\"dtype\":\"bool\","
    "\"shape\":[0],\"strides\":[1],\"start_offset\":0,\"numel\":0,\"is_contiguous\":true,"
    "\"buffer_addr\":\"0x0000000000000000\",\"bin_offset\":4096,\"bin_size\":12,\"truncated\":"
    "false,\"overwritten\":false,\"in_flight\":true,\"time_ns\":62,\"thread\":0,\"block_num\":null,"
    "\"subtasks\":[],\"start_ns\":55,\"end_ns\":null,\"cores\":[1]}\n]\n}\n";

static void add_execution(builder *b, uint64_t task, uint32_t core_id, uint32_t block_idx,
                          uint32_t subtask, uint64_t start_ns, uint64_t end_ns) {
    begin_record(b, (head){.type = 12, .task = task, .time_ns = start_ns});
    put_u64(b, end_ns);
    put_u32(b, core_id);
    put_u32(b, block_idx);
    put_u32(b, subtask);
    put_u32(b, 0);
}

static void add_golden_results(builder *b) {
    static const int64_t shape[] = {2, 2};
    static const int64_t strides[] = {2, 1};
    static const int64_t twelve[] = {12};
    static const int64_t one[] = {1};
    static const uint64_t stats[] = {
        0xbff8000000000000, 0x7ff0000000000000, 0x3fb999999999999a, 1, 2, 3, 4};
    static const uint64_t pieces[] = {0, 0x3000, 4, 8, 0x4000, 4};
    static const uint64_t whole[] = {0, 0x2000, 16};
    add_result(
        b,
        (head){
            .role = 2, .arg_index = 3, .dtype = 6, .ndims = 1, .flags = 1 | 2 | 8 | 16 | 32 | 64},
        (tensor_fields){.bin_offset = 64,
                        .bin_size = 8,
                        .hash_low = 1,
                        .hash_high = 2,
                        .shape = twelve,
                        .strides = one},
        NULL, pieces, 2);
    add_result(b, (head){.role = 1, .dtype = 1, .ndims = 2, .flags = 1 | 2 | 4 | 64},
               (tensor_fields){.buffer_addr = 0x2000,
                               .bin_offset = 128,
                               .bin_size = 16,
                               .hash_low = 3,
                               .hash_high = 4,
                               .shape = shape,
                               .strides = strides},
               stats, whole, 1);
}

/* FINDING, field by field as in docs/format.md. */
static void add_finding(builder *b, head h, const gbx_run_finding *f) {
    h.type = 14;
    begin_record(b, h);
    put_u32(b, f->kind);
    put_u32(b, f->place);
    const uint64_t words[] = {
        f->time_ns,         f->finder, f->address, f->bytes,
        (uint64_t)f->first, f->span,   f->changed, f->index | (uint64_t)f->owner_func << 32,
        f->owner_task};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i)
        put_u64(b, words[i]);
    put_u32(b, f->certainty);
    put_u32(b, f->candidate_count);
    put_u64(b, f->candidate_total);
    put_u64(b, f->run_total);
    for (int i = 0; i < 3; ++i)
        put_u64(b, 0);
    for (int i = 0; i < 8; ++i) {
        put_u64(b, f->candidates[i].task);
        put_u32(b, f->candidates[i].func_id);
        put_u32(b, f->candidates[i].arg_index);
    }
}

/* Records in the wrong order, a task whose record is missing, and every top-level member. */
static void build_golden(builder *b) {
    static const int64_t shape[] = {2, 3};
    static const int64_t strides[] = {-3, 1};
    static const int64_t zero[] = {0};
    static const int64_t one[] = {1};
    begin_journal(b);
    add_run(b, run_json);
    add_tensor(b,
               (head){.stage = 1,
                      .role = 1,
                      .arg_index = 1,
                      .dtype = 13,
                      .ndims = 1,
                      .flags = 1 | 16 | 64,
                      .task = 3,
                      .time_ns = 62},
               (tensor_fields){.bin_offset = 4096, .bin_size = 12, .shape = zero, .strides = one});
    add_tensor(
        b,
        (head){.stage = 1, .role = 2, .dtype = 16, .flags = 1 | 32 | 64, .task = 2, .time_ns = 61},
        (tensor_fields){.buffer_addr = UINT64_MAX, .bin_size = 8});
    end_block(b);
    add_scalar(b, (head){.arg_index = 2, .dtype = 1, .thread = 3, .task = 2, .time_ns = 50},
               0x3dcccccd);
    add_tensor(b,
               (head){.role = 2,
                      .arg_index = 1,
                      .dtype = 1,
                      .ndims = 2,
                      .thread = 3,
                      .flags = 1 | 2 | 4 | 8,
                      .task = 2,
                      .time_ns = 60},
               (tensor_fields){.buffer_addr = 0x1000,
                               .bin_offset = 64,
                               .bin_size = 8,
                               .hash_low = 1,
                               .hash_high = 2,
                               .start_offset = 3,
                               .shape = shape,
                               .strides = strides});
    put_double(b, -1.5);
    put_u64(b, UINT64_C(0x7ff0000000000000));
    put_double(b, 0.1);
    for (uint64_t i = 1; i <= 4; ++i)
        put_u64(b, i);
    add_execution(b, 2, 70, 1, 1, 1500, 1600);
    add_execution(b, 2, 3, 0, 0, 1000, 3000);
    add_execution(b, 2, 70, 0, 1, 900, 2000);
    add_execution(b, 3, 1, 0, 0, 55, UINT64_MAX);
    add_task(b, 2, 0x102, mixed, 2);
    add_loss(b, (head){.stage = 1, .arg_index = 3, .task = 2}, 1, 11);
    add_loss(b, (head){.stage = 255, .arg_index = 255, .task = 4}, 3, 4);
    add_loss(b, (head){.stage = 255, .arg_index = 255}, 1, 1);
    put_u64(b, 0);
    put_u64(b, 6); /* the result of argument 5 */
    add_skipped(b, (head){.stage = 255, .arg_index = 255, .task = 2}, 0, 7);
    const gbx_run_finding over = {.kind = GBX_RUN_FINDING_OVERRUN,
                                  .place = GBX_PLACE_OUTPUT,
                                  .time_ns = 55,
                                  .finder = 2,
                                  .address = 0x7000,
                                  .bytes = 4096,
                                  .first = 4096,
                                  .span = 64,
                                  .changed = 60,
                                  .owner_task = 1,
                                  .owner_func = 3,
                                  .certainty = GBX_CERTAINTY_LIKELY,
                                  .candidate_count = 2,
                                  .candidate_total = 3,
                                  .run_total = 9,
                                  .candidates = {{2, 7, 1}, {5, 9, GBX_FINDING_NO_ARGUMENT}}};
    const gbx_run_finding under = {.kind = GBX_RUN_FINDING_UNDERRUN,
                                   .place = GBX_PLACE_RUN_ARGUMENT,
                                   .time_ns = 56,
                                   .finder = GBX_FINDING_NO_TASK,
                                   .address = 0x9000,
                                   .bytes = 1,
                                   .first = -1,
                                   .span = 1,
                                   .changed = 1,
                                   .index = 1,
                                   .owner_task = GBX_FINDING_NO_TASK,
                                   .owner_func = GBX_FINDING_NO_KERNEL,
                                   .run_total = 9};
    add_finding(b, (head){.stage = 255, .arg_index = 255, .task = 2, .time_ns = 55}, &over);
    add_finding(b, (head){.stage = 255, .arg_index = 255, .time_ns = 56}, &under);
    add_golden_results(b);
    static const uint64_t counts[8] = {3, 1, 0, 28, 20, 1, 16, 77};
    add_end(b, 1u << 8, counts, "ok");
    end_block(b);
}

static void a_manifest_is_this_to_the_byte(void **state) {
    (void)state;
    dump d;
    builder b;
    make_dump(&d);
    build_golden(&b);
    finish_journal(&b, &d);
    write_manifest(&d, true, false);
    char *text = read_text(&d, "tensor_dump.json");
    assert_string_equal(text, golden);
    free(text);
    json_decref(load(&d, "tensor_dump.json"));
    char path[256];
    path_in(&d, "args_dump.json", path);
    assert_int_equal(access(path, F_OK), -1);
    path_in(&d, "kernel_args_dump.json", path);
    assert_int_equal(access(path, F_OK), -1);
    free(b.bytes);
    remove_dump(&d);
}

static void begin_dispatch(builder *b, uint64_t task, uint32_t func_id, uint32_t block_idx,
                           uint32_t subtask, uint32_t slot_count) {
    begin_record(b, (head){.type = 8, .task = task, .time_ns = 1000 + block_idx});
    put_u64(b, 0x100 + task);
    put_u32(b, func_id);
    put_u32(b, 4);
    put_u32(b, block_idx);
    put_u32(b, 2);
    put_u32(b, subtask);
    put_u32(b, slot_count);
    put_u64(b, 0xaaaa);
    put_u64(b, 0xbbbb);
}

#define MISSING                                                                                                 \
    "\"complete\": false,\n\"status\": \"done, but\",\n\"losses\": [\n{\"task_id\":null,\"task_seq\":"          \
    "1,\"arg_index\":null,\"stage\":\"before_dispatch\",\"cause\":\"stall\",\"count\":4,\"result\":null}\n],\n" \
    "\"skipped\": [\n{\"task_id\":null,\"task_seq\":1,\"arg_index\":2,\"kernel\":\"add\",\"reason\":"           \
    "\"the signature calls the argument a tensor, but it was never described\","                                \
    "\"reason_code\":\"undescribed_tensor\"}\n],\n"

static const char golden_args[] =
    "\"total_args\": 4,\n" MISSING
    "\"args\": [\n{\"arg_index\":0,\"name\":\"x\",\"type\":\"tensor\","
    "\"dtype\":\"float16\",\"ndims\":2,\"shape\":[4,5],\"data_ptr\":\"0x0000000000002000\"},\n"
    "{\"arg_index\":1,\"name\":null,\"type\":\"tensor\",\"dtype\":\"int8\",\"ndims\":0,\"shape\":"
    "[],\"data_ptr\":\"0x0000000000003000\"},\n{\"arg_index\":2,\"name\":\"n\",\"type\":"
    "\"scalar\",\"dtype\":\"int32\",\"ndims\":0,\"shape\":[],\"scalar_value\":\"4294967289\","
    "\"value\":-7,\"bits\":\"0x00000000fffffff9\"},\n{\"arg_index\":3,\"name\":null,\"type\":"
    "\"scalar\",\"dtype\":\"unknown\",\"ndims\":0,\"shape\":[],\"scalar_value\":\"3184315597\","
    "\"bits\":\"0x00000000bdcccccd\"}\n]\n}\n";

#define CONTEXTS                                                                                   \
    "\"contexts\":[{\"arg_index\":64,\"name\":\"local_context\",\"bits\":\"0x000000000000aaaa\"}," \
    "{\"arg_index\":65,\"name\":\"global_context\",\"bits\":\"0x000000000000bbbb\"}]}"

static const char golden_dispatches[] =
    "\"total_dispatches\": 3,\n\"total_args\": 3,\n" MISSING "\"dispatches\": [\n"
    "{\"dispatch_id\":0,\"task_id\":\"0x0000000000000101\",\"task_seq\":1,\"func_id\":3,"
    "\"kernel\":\"m\\\"ul\",\"subtask_id\":0,\"core_type\":\"aic\",\"core_id\":4,\"block_idx\":0,"
    "\"block_num\":2,\"stage\":\"before_dispatch\",\"time_ns\":1000,\"start_ns\":1100,"
    "\"end_ns\":1200,\"args\":[]," CONTEXTS ",\n"
    "{\"dispatch_id\":1,\"task_id\":\"0x0000000000000101\",\"task_seq\":1,\"func_id\":9,"
    "\"kernel\":null,\"subtask_id\":2,\"core_type\":\"aiv\",\"core_id\":4,\"block_idx\":0,"
    "\"block_num\":2,\"stage\":\"before_dispatch\",\"time_ns\":1000,\"start_ns\":null,"
    "\"end_ns\":null,\"args\":[]," CONTEXTS ",\n"
    "{\"dispatch_id\":2,\"task_id\":\"0x0000000000000101\",\"task_seq\":1,\"func_id\":7,"
    "\"kernel\":\"add\",\"subtask_id\":1,\"core_type\":\"aiv\",\"core_id\":4,\"block_idx\":1,"
    "\"block_num\":2,\"stage\":\"before_dispatch\",\"time_ns\":1001,\"start_ns\":1300,"
    "\"end_ns\":null,\"args\":[{\"arg_index\":0,"
    "\"kind\":\"tensor\",\"role\":\"inout\",\"dtype\":\"float32\",\"ndims\":2,\"shape\":[4,8],"
    "\"strides\":[16,-1],\"start_offset\":-3,\"data_ptr\":\"0x0000000000006000\",\"bits\":"
    "\"0x0000000000005000\"},{\"arg_index\":32,\"kind\":\"scalar\",\"role\":\"input\",\"dtype\":"
    "\"unknown\",\"ndims\":0,\"shape\":[],\"strides\":[],\"start_offset\":0,\"bits\":"
    "\"0xffffffffffffffff\"},{\"arg_index\":33,\"kind\":\"word\",\"role\":null,\"dtype\":"
    "\"unknown\",\"ndims\":0,\"shape\":[],\"strides\":[],\"start_offset\":0,\"bits\":"
    "\"0x0000000000005040\"}]," CONTEXTS "\n]\n}\n";

static void build_arguments(builder *b) {
    begin_journal(b);
    add_run(b, run_json);
    begin_record(b, (head){.type = 2, .arg_index = 2, .dtype = 9});
    put_u64(b, 0);
    put_u64(b, 0xfffffff9);
    begin_record(b, (head){.type = 2, .arg_index = 0, .dtype = 2, .ndims = 2});
    put_u64(b, 1);
    put_u64(b, 0x2000);
    put_u64(b, 4);
    put_u64(b, 5);
    begin_record(b, (head){.type = 2, .arg_index = 1, .dtype = 5});
    put_u64(b, 1);
    put_u64(b, 0x3000);
    begin_record(b, (head){.type = 2, .arg_index = 3, .dtype = 0});
    put_u64(b, 0);
    put_u64(b, 0xbdcccccd);
    begin_dispatch(b, 1, 7, 1, 1, 3);
    static const unsigned char tensor_slot[8] = {0, 1, 2, 1, 2};
    static const int64_t geometry[] = {0x6000, -3, 4, 8, 16, -1};
    put_bytes(b, tensor_slot, 8);
    put_u64(b, 0x5000);
    for (int i = 0; i < 6; ++i)
        put_u64(b, (uint64_t)geometry[i]);
    static const unsigned char scalar_slot[8] = {32, 0, 0, 0, 0}; /* without a declared dtype */
    put_bytes(b, scalar_slot, 8);
    put_u64(b, UINT64_MAX);
    static const unsigned char word_slot[8] = {33, 0, 0, 0, 0, 1};
    put_bytes(b, word_slot, 8);
    put_u64(b, 0x5040);
    begin_dispatch(b, 1, 9, 0, 2, 0);
    add_execution(b, 1, 4, 1, 1, 1300, UINT64_MAX);
    add_execution(b, 1, 4, 0, 0, 1100, 1200);
    add_execution(b, 0, 5, 0, 2, 1, 2); /* of another task */
    begin_dispatch(b, 1, 3, 0, 0, 0);
    add_loss(b, (head){.task = 1, .arg_index = 255, .stage = 0}, 0, 4);
    add_skipped(b, (head){.task = 1, .arg_index = 2}, 0, 7);
    add_end(b, 0, no_counts, "done, but");
}

static void check_tail(const dump *d, const char *name, const char *expected) {
    json_decref(load(d, name));
    char *text = read_text(d, name);
    const char *tail = strstr(text, "\"total_");
    assert_non_null(tail);
    assert_string_equal(tail, expected);
    free(text);
}

static void argument_files_are_this_to_the_byte(void **state) {
    (void)state;
    dump d;
    builder b;
    make_dump(&d);
    build_arguments(&b);
    finish_journal(&b, &d);
    write_manifest(&d, false, true);
    check_tail(&d, "args_dump.json", golden_args);
    check_tail(&d, "kernel_args_dump.json", golden_dispatches);
    char path[256];
    path_in(&d, "tensor_dump.json", path);
    assert_int_equal(access(path, F_OK), -1);
    free(b.bytes);
    remove_dump(&d);
}

/* --- values --- */

typedef struct scalar_case {
    unsigned dtype;
    uint64_t bits;
    const char *name;
    const char *value; /* as JSON; NULL for none */
} scalar_case;

/* Values from numpy. */
static const scalar_case scalars[] = {
    {1, 0x3f800000, "float32", "1.0"},
    {1, 0x7fc00000, "float32", "\"nan\""},
    {1, 0x80000000, "float32", "-0.0"},
    {2, 0x3555, "float16", "0.33325195"},
    {3, 0x4049, "bfloat16", "3.140625"},
    {4, UINT64_C(0x3fb999999999999a), "float64", "0.1"},
    {4, UINT64_C(0xfff0000000000000), "float64", "\"-inf\""},
    {5, 0xff, "int8", "-1"},
    {6, 0xff, "uint8", "255"},
    {7, 0x8000, "int16", "-32768"},
    {8, 0x8000, "uint16", "32768"},
    {9, 0x80000000, "int32", "-2147483648"},
    {10, 0xffffffff, "uint32", "4294967295"},
    {11, UINT64_C(0x8000000000000000), "int64", "\"-9223372036854775808\""},
    {12, UINT64_MAX, "uint64", "\"18446744073709551615\""},
    {13, 1, "bool", "true"},
    {13, 0, "bool", "false"},
    {14, 0x7e, "float8_e4m3", "448.0"},
    {14, 0xff, "float8_e4m3", "\"nan\""},
    {15, 0x3c, "float8_e5m2", "1.0"},
    {15, 0xfc, "float8_e5m2", "\"-inf\""},
    {16, 0xf, "int4", "-1"},
    {0, 5, "unknown", NULL}, /* undeclared */
};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

static void scalars_have_value_and_bits(void **state) {
    (void)state;
    dump d;
    builder b;
    make_dump(&d);
    begin_journal(&b);
    add_run(&b, run_json);
    add_task(&b, 0, 0x10, aiv_only, 1);
    for (unsigned i = SCALARS; i-- > 0;)
        add_scalar(&b, (head){.arg_index = i, .dtype = scalars[i].dtype}, scalars[i].bits);
    json_t *document = written_tensors(&b, &d);
    json_t *tensors = json_object_get(document, "tensors");
    assert_int_equal(json_array_size(tensors), SCALARS);
    for (size_t i = 0; i < SCALARS; ++i) {
        json_t *entry = json_array_get(tensors, i);
        assert_int_equal(integer(entry, "arg_index"), i);
        assert_string_equal(string(entry, "dtype"), scalars[i].name);
        assert_int_equal(strtoull(string(entry, "bits"), NULL, 16), scalars[i].bits);
        if (!scalars[i].value) {
            assert_null(json_object_get(entry, "value"));
            continue;
        }
        json_t *expected = json_loads(scalars[i].value, JSON_DECODE_ANY, NULL);
        assert_true(json_equal(json_object_get(entry, "value"), expected));
        json_decref(expected);
    }
    assert_false(boolean(document, "complete"));
    assert_string_equal(string(document, "status"), "killed");
    json_decref(document);
    remove_dump(&d);
}

/* --- many records, in any order --- */

enum { TASKS = 700, ARGS = 50, RECORDS = TASKS * ARGS };

static uint64_t value_of(uint64_t task, uint64_t arg_index) {
    return (task * 64 + arg_index) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Scalars in even slots, tensors in odd ones; slots of 40 and more after completion. */
static void add_argument(builder *b, uint64_t number) {
    uint64_t task = number / ARGS;
    unsigned arg_index = (unsigned)(number % ARGS);
    unsigned stage = arg_index >= 40;
    if (arg_index % 2 == 0) {
        add_scalar(b,
                   (head){.stage = stage,
                          .arg_index = arg_index,
                          .dtype = 12,
                          .task = task,
                          .time_ns = number * 3},
                   value_of(task, arg_index));
        return;
    }
    int64_t shape[] = {(int64_t)task, 3};
    add_tensor(b,
               (head){.stage = stage,
                      .role = 1,
                      .arg_index = arg_index,
                      .dtype = 9,
                      .ndims = 2,
                      .flags = 1 | 2,
                      .task = task,
                      .time_ns = number * 3},
               (tensor_fields){.buffer_addr = number,
                               .bin_offset = number * 64,
                               .bin_size = task * 12,
                               .hash_low = value_of(task, arg_index),
                               .hash_high = number,
                               .shape = shape,
                               .strides = shape});
}

static void check_argument(const json_t *entry, uint64_t number) {
    uint64_t task = number / ARGS;
    uint64_t arg_index = number % ARGS;
    assert_int_equal(integer(entry, "index"), number);
    assert_int_equal(integer(entry, "task_seq"), task);
    assert_int_equal(strtoull(string(entry, "task_id"), NULL, 16), task + 0x1000);
    assert_int_equal(integer(entry, "arg_index"), arg_index);
    assert_int_equal(integer(entry, "time_ns"), number * 3);
    assert_string_equal(string(entry, "stage"),
                        arg_index >= 40 ? "after_completion" : "before_dispatch");
    assert_string_equal(string(entry, "kind"), arg_index % 2 ? "tensor" : "scalar");
    assert_int_equal(json_array_size(json_object_get(entry, "kernel")), task % 2 ? 2 : 1);
    if (arg_index % 2 == 0) {
        assert_int_equal(strtoull(string(entry, "value"), NULL, 10), value_of(task, arg_index));
        return;
    }
    char hash[40];
    snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)number,
             (unsigned long long)value_of(task, arg_index));
    assert_string_equal(string(entry, "hash"), hash);
    assert_int_equal(integer(entry, "numel"), task * 3);
    assert_int_equal(integer(entry, "bin_offset"), number * 64);
    assert_int_equal(integer(entry, "bin_size"), task * 12);
}

/* Fills all chunks of the writing thread several times, and bypasses the page cache. */
static void shuffled_records_come_out_in_order(void **state) {
    (void)state;
    dump d;
    builder b;
    make_dump_in(&d, "/tmp");
    begin_journal(&b);
    add_run(&b, run_json);
    static uint32_t order[RECORDS];
    uint64_t random = 88172645463325252u;
    for (uint32_t i = 0; i < RECORDS; ++i) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t other = (uint32_t)((random >> 33) % (i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < RECORDS; ++i) {
        add_argument(&b, order[i]);
        if (order[i] % ARGS == 0)
            add_task(&b, order[i] / ARGS, order[i] / ARGS + 0x1000,
                     order[i] / ARGS % 2 ? mixed : aiv_only, 1);
        if (i % 1000 == 0)
            end_block(&b);
    }
    json_t *document = written_tensors(&b, &d);
    json_t *tensors = json_object_get(document, "tensors");
    assert_int_equal(json_array_size(tensors), RECORDS);
    for (uint64_t i = 0; i < RECORDS; ++i)
        check_argument(json_array_get(tensors, i), i);
    assert_int_equal(integer(document, "total_tensors"), RECORDS);
    assert_int_equal(integer(document, "output_tensors"), RECORDS / 2);
    assert_int_equal(integer(document, "after_completion"), RECORDS / 5);
    json_decref(document);
    remove_dump(&d);
}

/* --- unusual dumps --- */

static void names_may_be_long(void **state) {
    (void)state;
    enum { LONG = 200000 };
    static char name[LONG + 1];
    static char json[LONG + 2000];
    memset(name, 'k', LONG);
    dump d;
    builder b;
    make_dump(&d);
    begin_journal(&b);
    snprintf(json, sizeof json,
             RUN_BEGIN "\"kernels\": [{\"func_id\": 7, \"name\": \"%s\", \"core_type\": \"aiv\", "
                       "\"signature\": [\"in\"]}]}",
             name);
    add_run(&b, json);
    end_block(&b);
    for (uint64_t task = 0; task < 50; ++task) {
        add_task(&b, task, task, aiv_only, 1);
        add_scalar(&b, (head){.dtype = 9, .task = task}, task);
    }
    json_t *document = written_tensors(&b, &d);
    json_t *tensors = json_object_get(document, "tensors");
    assert_int_equal(json_array_size(tensors), 50);
    for (size_t i = 0; i < 50; ++i) {
        json_t *entry = json_array_get(tensors, i);
        assert_int_equal(integer(entry, "value"), i);
        json_t *kernel = json_array_get(json_object_get(entry, "kernel"), 0);
        assert_string_equal(json_string_value(kernel), name);
    }
    json_decref(document);
    remove_dump(&d);
}

/* The status may be any bytes: invalid UTF-8 must not make the file unreadable. */
static void python_reads_all_files(void **state) {
    (void)state;
    dump d;
    builder b;
    make_dump(&d);
    begin_journal(&b);
    add_run(&b, run_json);
    add_scalar(&b, (head){.dtype = 4}, UINT64_C(0x7ff8000000000000));
    add_end(&b, 0, no_counts, "kernel \"a\" \n failed: \377\376 \303\244");
    finish_journal(&b, &d);
    free(b.bytes);
    write_manifest(&d, true, true);
    char command[1024];
    snprintf(
        command, sizeof command,
        "/usr/bin/python3 -c \"\nimport json\nd='%s/tensor_dump/'\nt=json.load(open(d+"
        "'tensor_dump.json'))\nassert t['tensors'][0]['value']=='nan' and len(t['tensors'])==1"
        "\nassert t['status'].startswith('kernel \\\"a\\\"') and t['status'].endswith(chr(0xe4))"
        "\nassert t['complete'] is False\njson.load(open(d+'args_dump.json'))\n"
        "json.load(open(d+'kernel_args_dump.json'))\n\"",
        d.directory);
    assert_int_equal(system(command), 0);
    remove_dump(&d);
}

static void check_refused(builder *b, const dump *d, const char *expected) {
    finish_journal(b, d);
    gbx_status status = gbx_manifest_write(d->directory, true, true);
    assert_int_equal(gbx_status_code(status), GBX_OUT_OF_RANGE);
    assert_non_null(strstr(gbx_status_message(status), expected));
    gbx_status_free(status);
    free(b->bytes);
}

static void begin_with_task(builder *b) {
    begin_journal(b);
    add_run(b, run_json);
    add_task(b, 0, 0, aiv_only, 1);
}

/* The existing manifest stays, and no temporary file does (remove_dump checks it). */
static void numbers_that_json_cannot_hold_are_refused(void **state) {
    (void)state;
    static const int64_t large[] = {INT64_C(1) << 53, INT64_C(1) << 30};
    static const int64_t product[] = {INT64_C(1) << 30, INT64_C(1) << 30};
    static const int64_t small[] = {1, 1};
    static const uint64_t stalled[8] = {0, 0, 0, 0, 0, 0, 0, UINT64_C(1) << 53};
    dump d;
    builder b;
    make_dump(&d);
    begin_with_task(&b);
    add_scalar(&b, (head){.dtype = 9, .time_ns = (UINT64_C(1) << 53) - 1}, 3);
    json_t *document = written_tensors(&b, &d);
    begin_with_task(&b);
    add_scalar(&b, (head){.dtype = 9, .time_ns = UINT64_C(1) << 53}, 1);
    check_refused(&b, &d, "time_ns of argument 0 of task 0");
    begin_with_task(&b);
    add_tensor(&b, (head){.dtype = 1, .ndims = 2},
               (tensor_fields){.shape = product, .strides = small});
    check_refused(&b, &d, "numel of argument 0");
    begin_with_task(&b);
    add_tensor(&b, (head){.dtype = 1, .ndims = 1},
               (tensor_fields){.shape = small, .strides = large});
    check_refused(&b, &d, "strides of argument 0");
    begin_with_task(&b);
    add_tensor(&b, (head){.dtype = 1, .flags = 1},
               (tensor_fields){.bin_offset = UINT64_C(1) << 53});
    check_refused(&b, &d, "bin_offset of argument 0");
    begin_with_task(&b);
    add_end(&b, 1u << 8, stalled, "ok");
    check_refused(&b, &d, "stall_ns of the run");
    json_t *again = load(&d, "tensor_dump.json");
    assert_true(json_equal(document, again));
    assert_int_equal(integer(json_array_get(json_object_get(again, "tensors"), 0), "time_ns"),
                     (INT64_C(1) << 53) - 1);
    json_decref(again);
    json_decref(document);
    remove_dump(&d);
}

/* The disk is full for the writing thread while entries are still being made. */
static void a_full_disk_is_reported(void **state) {
    (void)state;
    static const rlim_t limits[] = {0, 100 << 10, 5 << 20}; /* at the first, at once, in a chunk */
    dump d;
    builder b;
    make_dump_in(&d, "/tmp");
    begin_with_task(&b);
    for (uint64_t i = 0; i < 40000; ++i) {
        add_scalar(&b, (head){.arg_index = i % 64, .dtype = 9, .task = i / 64}, i);
        if (i % 10000 == 0)
            end_block(&b);
    }
    finish_journal(&b, &d);
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit whole;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
        struct rlimit limit = {limits[i], whole.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        gbx_status status = gbx_manifest_write(d.directory, true, false);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
        assert_int_equal(gbx_status_code(status), GBX_IO);
        assert_non_null(strstr(gbx_status_message(status), "tensor_dump.json.tmp"));
        gbx_status_free(status);
        char path[256];
        path_in(&d, "tensor_dump.json", path);
        assert_int_equal(access(path, F_OK), -1);
    }
    signal(SIGXFSZ, before);
    free(b.bytes);
    remove_dump(&d);
}

static void a_missing_journal_is_reported(void **state) {
    (void)state;
    gbx_status status = gbx_manifest_write("/nowhere/at/all", true, true);
    assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);
    gbx_status_free(status);
    dump d;
    make_dump(&d);
    status = gbx_manifest_write(d.directory, true, true);
    assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);
    gbx_status_free(status);
    remove_dump(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_this_to_the_byte),
        cmocka_unit_test(argument_files_are_this_to_the_byte),
        cmocka_unit_test(scalars_have_value_and_bits),
        cmocka_unit_test(shuffled_records_come_out_in_order),
        cmocka_unit_test(names_may_be_long),
        cmocka_unit_test(python_reads_all_files),
        cmocka_unit_test(numbers_that_json_cannot_hold_are_refused),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(a_missing_journal_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
