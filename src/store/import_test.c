#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "hand_made_dump.h"
#include "store/manifest.h"
#include "store/reader.h"
#include "store_sample.h"

static int enter(void **state) {
    (void)state;
    return scratch_enter(NULL) ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

/* --- manifests made up here --- */

enum { TEXT_BYTES = 1 << 16, PAYLOAD_BYTES = 4096 };

static unsigned char payload_byte(size_t at) {
    return (unsigned char)(at * 7 + at / 256);
}

static void write_manifest(const char *name, const char *text) {
    char path[64];
    unsigned char bytes[PAYLOAD_BYTES];
    (void)mkdir("d", 0777);
    snprintf(path, sizeof path, "d/%s", name);
    scratch_write(path, text, strlen(text));
    for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = payload_byte(i);
    scratch_write("d/b.bin", bytes, sizeof bytes);
}

static void write_entries(const char *entries) {
    static char text[TEXT_BYTES];
    snprintf(text, sizeof text, "{\"bin_file\": \"b.bin\", \"tensors\": [%s]}", entries);
    write_manifest("tensor_dump.json", text);
}

static gbx_reader *open_dump(const char *directory) {
    gbx_reader *reader = NULL;
    assert_ok(gbx_reader_open(directory, GBX_INDEX_ARGUMENTS, &reader));
    assert_int_equal(gbx_reader_get_extent(reader)->stop, GBX_STOP_END);
    return reader;
}

static gbx_reader *open_entries(const char *entries) {
    write_entries(entries);
    return open_dump("d");
}

/* The argument number `index`, copied: the reader forgets its own. */
static const gbx_record *argument_at(gbx_reader *reader, uint64_t index) {
    static uint64_t copy[64];
    for (uint64_t i = 0; i < gbx_reader_count(reader); ++i) {
        const gbx_record *record = NULL;
        if (gbx_reader_kind(reader, i) != GBX_INDEX_ARGUMENTS || index-- > 0)
            continue;
        assert_ok(gbx_reader_at(reader, i, &record));
        assert_true(record->words <= sizeof copy / 8);
        memcpy(copy, record, (size_t)record->words * 8);
        return (const gbx_record *)copy;
    }
    fail_msg("there is no argument of that index");
    return NULL;
}

static const gbx_record_tensor *tensor_at(gbx_reader *reader, uint64_t index) {
    const gbx_record *record = argument_at(reader, index);
    assert_int_equal(record->type, GBX_RECORD_TENSOR);
    return (const gbx_record_tensor *)record;
}

static uint64_t scalar_bits(gbx_reader *reader, uint64_t index) {
    const gbx_record *record = argument_at(reader, index);
    assert_int_equal(record->type, GBX_RECORD_SCALAR);
    return ((const gbx_record_scalar *)record)->bits;
}

/* --- dumps that another tool wrote --- */

static void open_fixture(const char *name, gbx_reader **out_reader) {
    char directory[512];
    const char *kernels = getenv("GLASSBOX_TEST_KERNELS");
    assert_non_null(kernels);
    snprintf(directory, sizeof directory, "%s/../fixtures/simpler/%s", kernels, name);
    assert_ok(gbx_reader_open(directory, GBX_INDEX_ARGUMENTS, out_reader));
    assert_ok(gbx_reader_open_payload(*out_reader));
}

enum { FLOATS = 16384 };

/* All elements of an argument are one number; NAN for one that has no bytes in the dump. */
static float read_constant(gbx_reader *reader, uint64_t index) {
    static float values[FLOATS];
    const gbx_record_tensor *tensor = tensor_at(reader, index);
    assert_int_equal(tensor->head.dtype, GBX_FLOAT32);
    assert_int_equal(tensor->head.ndims, 1);
    assert_int_equal(gbx_record_shape(tensor)[0], FLOATS);
    assert_int_equal(gbx_record_strides(tensor)[0], 1);
    if (!(tensor->head.flags & GBX_FLAG_HAS_PAYLOAD))
        return NAN;
    assert_int_equal(tensor->bin_size, sizeof values);
    memset(values, 0xff, sizeof values);
    assert_ok(gbx_reader_read_payload(reader, tensor->bin_offset, values, sizeof values));
    for (size_t i = 1; i < FLOATS; ++i)
        assert_true(values[i] == values[0]);
    return values[0];
}

/* f = (a + b + 1) * (a + b + 2) + (a + b), task by task, from a = 2 and b = 3. */
static void a_dump_of_another_tool_holds_what_its_kernels_computed(void **state) {
    (void)state;
    static const uint64_t ids[] = {0, UINT64_C(0x100000000), UINT64_C(0x100000001),
                                   UINT64_C(0x100000002), UINT64_C(0x100000003)};
    static const uint32_t functions[] = {0, 1, 1, 2, 0};
    gbx_reader *reader = NULL;
    open_fixture("vector_example", &reader);
    assert_int_equal(gbx_reader_get_origin(reader)->told, 0);
    assert_false(gbx_reader_get_origin(reader)->is_journal);
    assert_int_equal(gbx_reader_get_totals(reader)->records, 18);
    assert_int_equal(gbx_reader_get_totals(reader)->payload_bytes, 851968);
    for (uint64_t i = 0; i < 5; ++i) {
        gbx_record_task task;
        bool is_found = false;
        assert_ok(gbx_reader_find_task(reader, i, &task, &is_found));
        assert_true(is_found && task.task_id == ids[i]);
        assert_int_equal(task.func_ids[0], functions[i]);
        assert_int_equal(task.func_ids[1], UINT32_MAX);
    }
    float a = read_constant(reader, 0), b = read_constant(reader, 1);
    float sum = read_constant(reader, 2);
    assert_true(a == 2 && b == 3 && sum == a + b);
    float one = gbx_f32_of_bits((uint32_t)scalar_bits(reader, 4));
    float two = gbx_f32_of_bits((uint32_t)scalar_bits(reader, 8));
    assert_true(one == 1 && two == 2 && scalar_bits(reader, 5) == 3);
    assert_true(read_constant(reader, 3) == sum && read_constant(reader, 7) == sum);
    float d = read_constant(reader, 6), e = read_constant(reader, 10);
    assert_true(d == sum + one && e == sum + two);
    assert_true(read_constant(reader, 11) == d && read_constant(reader, 12) == e);
    assert_int_equal(scalar_bits(reader, 13), 3);
    float g = read_constant(reader, 14);
    assert_true(g == d * e && read_constant(reader, 15) == g && read_constant(reader, 16) == sum);
    assert_true(read_constant(reader, 17) == g + sum);
    assert_string_equal(gbx_reader_run(reader)->dump_level, "full");
    assert_null(gbx_reader_run(reader)->generator);
    gbx_reader_close(reader);
}

static void payload_that_was_not_kept_is_not_there(void **state) {
    (void)state;
    static const float expected[] = {NAN, NAN, NAN, 5, 0, 0,  6,  NAN, 0, 0,
                                     NAN, 6,   NAN, 0, 0, 42, 42, 5,   47};
    gbx_reader *reader = NULL;
    open_fixture("partial_level3", &reader);
    assert_int_equal(gbx_reader_get_totals(reader)->records, 19);
    for (uint64_t i = 0; i < 19; ++i) {
        if (argument_at(reader, i)->type == GBX_RECORD_SCALAR) {
            assert_true(expected[i] == 0);
            continue;
        }
        float value = read_constant(reader, i);
        assert_true(isnan(expected[i]) ? isnan(value) : value == expected[i]);
    }
    assert_string_equal(gbx_reader_run(reader)->dump_level, "hybrid");
    gbx_reader_close(reader);
}

/* --- our own manifest says what the journal says --- */

static void compare_tensors(const gbx_record_tensor *a, const gbx_record_tensor *b) {
    assert_int_equal(a->buffer_addr, b->buffer_addr);
    assert_int_equal(a->bin_offset, b->bin_offset);
    assert_int_equal(a->bin_size, b->bin_size);
    assert_int_equal(a->hash_low, b->hash_low);
    assert_int_equal(a->hash_high, b->hash_high);
    assert_int_equal(a->start_offset, b->start_offset);
    assert_memory_equal(gbx_record_shape(a), gbx_record_shape(b), a->head.ndims * (size_t)16);
    const gbx_record_stats *stats = gbx_record_statistics(a);
    if (stats)
        assert_memory_equal(stats, gbx_record_statistics(b), sizeof *stats);
}

/* A manifest has no times of tasks and no predecessors; a scalar without dtype is a uint64 there.
 */
static void compare_records(const gbx_record *a, const gbx_record *b) {
    unsigned flags = 0xffffu & ~(unsigned)GBX_FLAG_PIECES;
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->task, b->task);
    if (a->type == GBX_RECORD_TASK) {
        const gbx_record_task *left = (const gbx_record_task *)a;
        const gbx_record_task *right = (const gbx_record_task *)b;
        assert_int_equal(left->task_id, right->task_id);
        assert_int_equal(left->block_num, right->block_num);
        assert_memory_equal(left->func_ids, right->func_ids, sizeof left->func_ids);
        return;
    }
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->role, b->role);
    assert_int_equal(a->arg_index, b->arg_index);
    assert_int_equal(a->ndims, b->ndims);
    assert_int_equal(a->flags & flags, b->flags & flags);
    assert_int_equal(a->thread, b->thread);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->words, b->words);
    if (a->type == GBX_RECORD_SCALAR) {
        assert_int_equal(gbx_record_scalar_dtype(a->dtype), b->dtype);
        assert_int_equal(((const gbx_record_scalar *)a)->bits,
                         ((const gbx_record_scalar *)b)->bits);
        return;
    }
    assert_int_equal(a->dtype, b->dtype);
    compare_tensors((const gbx_record_tensor *)a, (const gbx_record_tensor *)b);
}

static void compare_lists(gbx_reader *journal, gbx_reader *manifest) {
    const gbx_record *a = NULL, *b = NULL;
    uint64_t losses = gbx_reader_list_count(journal, GBX_LIST_LOSSES);
    uint64_t skipped = gbx_reader_list_count(journal, GBX_LIST_SKIPPED);
    assert_int_equal(losses, gbx_reader_list_count(manifest, GBX_LIST_LOSSES));
    assert_int_equal(skipped, gbx_reader_list_count(manifest, GBX_LIST_SKIPPED));
    for (uint64_t i = 0; i < losses; ++i) {
        assert_ok(gbx_reader_list_at(journal, GBX_LIST_LOSSES, i, &a));
        assert_ok(gbx_reader_list_at(manifest, GBX_LIST_LOSSES, i, &b));
        assert_int_equal(a->task, b->task);
        assert_int_equal(a->stage, b->stage);
        assert_int_equal(a->arg_index, b->arg_index);
        assert_int_equal(((const gbx_record_loss *)a)->cause, ((const gbx_record_loss *)b)->cause);
        assert_int_equal(((const gbx_record_loss *)a)->count, ((const gbx_record_loss *)b)->count);
    }
    for (uint64_t i = 0; i < skipped; ++i) {
        assert_ok(gbx_reader_list_at(journal, GBX_LIST_SKIPPED, i, &a));
        assert_ok(gbx_reader_list_at(manifest, GBX_LIST_SKIPPED, i, &b));
        const gbx_record_skipped *left = (const gbx_record_skipped *)a;
        const gbx_record_skipped *right = (const gbx_record_skipped *)b;
        assert_int_equal(a->task, b->task);
        assert_int_equal(a->arg_index, b->arg_index);
        assert_int_equal(left->reason, right->reason);
        assert_int_equal(left->func_id, right->func_id);
    }
}

static void compare_runs(const gbx_run_info *a, const gbx_run_info *b) {
    assert_string_equal(a->generator, b->generator);
    assert_string_equal(a->run_id, b->run_id);
    assert_string_equal(a->scene, b->scene);
    assert_string_equal(a->case_name, b->case_name);
    assert_string_equal(a->platform, b->platform);
    assert_string_equal(a->runtime, b->runtime);
    assert_string_equal(a->started_at, b->started_at);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->round, b->round);
    assert_string_equal(a->dump_level, b->dump_level);
    assert_int_equal(a->kernel_count, b->kernel_count);
    for (size_t i = 0; i < a->kernel_count; ++i) {
        const gbx_run_kernel *left = &a->kernels[i], *right = &b->kernels[i];
        assert_int_equal(left->func_id, right->func_id);
        assert_string_equal(left->name, right->name);
        assert_string_equal(left->core_type, right->core_type);
        assert_int_equal(left->signature_count, right->signature_count);
        for (size_t k = 0; k < left->signature_count; ++k)
            assert_string_equal(left->signature[k], right->signature[k]);
    }
}

static void compare_totals(const gbx_reader_totals *a, const gbx_reader_totals *b) {
    gbx_reader_totals expected = *a;
    expected.dispatches = expected.dispatch_args = expected.run_args = 0;
    assert_memory_equal(&expected, b, sizeof expected);
}

static void compare_ends(gbx_reader *journal, gbx_reader *manifest) {
    const gbx_record_end *a = gbx_reader_end(journal), *b = gbx_reader_end(manifest);
    assert_int_equal(gbx_reader_is_complete(journal), gbx_reader_is_complete(manifest));
    assert_string_equal(gbx_reader_end_text(journal), gbx_reader_end_text(manifest));
    assert_int_equal(a != NULL, b != NULL);
    if (!a)
        return;
    assert_int_equal(a->record_count, b->record_count);
    assert_int_equal(a->task_count, b->task_count);
    assert_int_equal(a->payload_bytes, b->payload_bytes);
    assert_int_equal(a->stored_bytes, b->stored_bytes);
    assert_int_equal(a->deduplicated, b->deduplicated);
    assert_int_equal(a->dropped, b->dropped);
    assert_int_equal(a->stall_ns, b->stall_ns);
}

/* Reads a dump by its journal, then, with that taken away, by its manifest. */
static void compare_with_manifest(const char *directory, bool is_killed) {
    char path[160], away[160];
    gbx_reader *journal = open_dump(directory);
    assert_true(gbx_reader_get_origin(journal)->is_journal);
    assert_int_equal(gbx_reader_get_origin(journal)->told, GBX_TOLD_ALL);
    assert_ok(gbx_manifest_write(directory, true, false));
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.rec", directory);
    snprintf(away, sizeof away, "%s/tensor_dump/away", directory);
    assert_int_equal(rename(path, away), 0);
    gbx_reader *manifest = open_dump(directory);
    assert_false(gbx_reader_get_origin(manifest)->is_journal);
    assert_int_equal(gbx_reader_get_origin(manifest)->told, GBX_TOLD_ALL);
    assert_string_equal(gbx_reader_get_origin(manifest)->payload_path,
                        gbx_reader_get_origin(journal)->payload_path);
    assert_int_equal(gbx_reader_count(journal), gbx_reader_count(manifest));
    for (uint64_t i = 0; i < gbx_reader_count(journal); ++i) {
        const gbx_record *a = NULL, *b = NULL;
        assert_ok(gbx_reader_at(journal, i, &a));
        assert_ok(gbx_reader_at(manifest, i, &b));
        compare_records(a, b);
    }
    compare_lists(journal, manifest);
    compare_runs(gbx_reader_run(journal), gbx_reader_run(manifest));
    compare_totals(gbx_reader_get_totals(journal), gbx_reader_get_totals(manifest));
    compare_ends(journal, manifest);
    assert_int_equal(gbx_reader_end(manifest) == NULL, is_killed);
    gbx_reader_close(journal);
    gbx_reader_close(manifest);
}

static void a_sample_reads_the_same_without_its_journal(void **state) {
    (void)state;
    gbx_store *store = NULL;
    const gbx_store_config config = {.directory = "sample",
                                     .run_json = sample_run_json,
                                     .has_tensors = true,
                                     .is_deduplicated = true};
    gbx_record_end end = {.head = {.flags = GBX_FLAG_COMPLETE}};
    assert_ok(gbx_store_create(&config, &store));
    for (uint64_t task = 0; task < 200; ++task)
        assert_true(sample_write_task(store, task));
    gbx_reader_totals counted = {0};
    assert_ok(gbx_store_flush(store));
    gbx_reader *reader = open_dump("sample");
    counted = *gbx_reader_get_totals(reader);
    gbx_reader_close(reader);
    assert_int_equal(counted.deduplicated, 40);
    end.record_count = counted.records;
    end.task_count = counted.tasks;
    end.payload_bytes = counted.payload_bytes;
    end.stored_bytes = counted.stored_bytes;
    end.deduplicated = counted.deduplicated;
    assert_ok(gbx_store_finish(store, &end, "ok"));
    gbx_store_destroy(store);
    compare_with_manifest("sample", false);
}

static made_dump made;

/* A record of every kind that a manifest has: losses, what was skipped, statistics, in flight,
 * a task without its record, a scalar without dtype. */
static void add_all_kinds(bool has_end) {
    static const int64_t shape[] = {3};
    gbx_record_end end = {.record_count = 10,
                          .task_count = 2,
                          .payload_bytes = 140 + 12,
                          .stored_bytes = 116 + 12,
                          .deduplicated = 1,
                          .dropped = 15,
                          .stall_ns = 77};
    made_good(&made);
    made.count = MADE_END;
    made.used = made.starts[MADE_END];
    --made.block_count;
    gbx_record_tensor *flying =
        made_tensor(&made, 9, 1, GBX_STAGE_AFTER, GBX_ROLE_OUTPUT, GBX_FLOAT32, 1, shape);
    made_payload(&made, flying, 64 * 100, 12, 9);
    flying->head.flags |= GBX_FLAG_IN_FLIGHT;
    flying->head.thread = 6;
    flying->start_offset = 5;
    gbx_record_tensor *counted = made_append(&made, GBX_RECORD_TENSOR, sizeof *counted, 16 + 56);
    memcpy(counted, flying, sizeof *counted + 16);
    counted->head.words = (uint32_t)(sizeof *counted + 16 + 56) / 8;
    counted->head.task = 0;
    counted->head.arg_index = 5;
    counted->head.flags = GBX_FLAG_HAS_HASH | GBX_FLAG_HAS_STATS | GBX_FLAG_CONTIGUOUS;
    counted->bin_offset = counted->bin_size = 0;
    const gbx_record_stats stats = {
        gbx_f64_bits((double)-0.1f), gbx_f64_bits(INFINITY), 1.0 / 3, 1, 2, 3, 4};
    memcpy((char *)counted + sizeof *counted + 16, &stats, sizeof stats);
    gbx_record_scalar *scalar = made_append(&made, GBX_RECORD_SCALAR, sizeof *scalar, 0);
    scalar->head.task = 1;
    scalar->head.arg_index = 7;
    scalar->bits = UINT64_C(0xfedcba9876543210);
    gbx_record_loss *loss = made_append(&made, GBX_RECORD_LOSS, sizeof *loss, 0);
    loss->head.task = 1;
    loss->head.stage = GBX_STAGE_AFTER;
    loss->head.arg_index = 3;
    loss->cause = GBX_LOSS_DISK;
    loss->count = 11;
    loss = made_append(&made, GBX_RECORD_LOSS, sizeof *loss, 0);
    loss->head.stage = GBX_STAGE_NONE;
    loss->head.arg_index = GBX_ARG_NONE;
    loss->cause = GBX_LOSS_DEVICE;
    loss->count = 4;
    gbx_record_skipped *skipped = made_append(&made, GBX_RECORD_SKIPPED, sizeof *skipped, 0);
    skipped->head.task = 1;
    skipped->head.stage = GBX_STAGE_NONE;
    skipped->head.arg_index = 2;
    skipped->reason = GBX_SKIP_MISMATCH;
    skipped->func_id = 1;
    if (has_end)
        made_end(&made, &end, "kernel fold \"crashed\"");
    made_end_block(&made);
    made_write(&made);
}

static void every_kind_of_record_reads_the_same_without_its_journal(void **state) {
    (void)state;
    add_all_kinds(true);
    compare_with_manifest(made.directory, false);
    made_remove(&made);
    add_all_kinds(false);
    compare_with_manifest(made.directory, true);
    made_remove(&made);
}

/* --- what may be missing, or said in another way --- */

#define ARGUMENT "\"arg_index\": 1, \"role\": \"input\", \"stage\": \"before_dispatch\""
#define TASK "\"task_id\": \"0x1f\", " ARGUMENT
#define SHAPED "\"dtype\": \"float32\", \"shape\": [2, 3]"
#define STORED "\"bin_offset\": 128, \"bin_size\": 24"

static void the_least_that_an_entry_may_say_is_enough(void **state) {
    (void)state;
    gbx_reader *reader = open_entries("{" TASK ", " SHAPED "}, {" TASK ", " SHAPED ", " STORED "}");
    const gbx_record_tensor *bare = tensor_at(reader, 0);
    assert_int_equal(bare->head.flags, GBX_FLAG_CONTIGUOUS);
    assert_int_equal(bare->head.task, 0);
    assert_int_equal(bare->bin_size, 0);
    const gbx_record_tensor *stored = tensor_at(reader, 1);
    assert_int_equal(stored->head.flags, GBX_FLAG_CONTIGUOUS | GBX_FLAG_HAS_PAYLOAD);
    assert_int_equal(stored->bin_offset, 128);
    assert_int_equal(gbx_record_strides(stored)[0], 3);
    assert_int_equal(gbx_record_strides(stored)[1], 1);
    gbx_record_task task;
    bool is_found = false;
    assert_ok(gbx_reader_find_task(reader, 0, &task, &is_found));
    assert_true(is_found && task.task_id == 0x1f && task.func_ids[0] == UINT32_MAX);
    unsigned char bytes[24];
    assert_ok(gbx_reader_open_payload(reader));
    assert_ok(gbx_reader_read_payload(reader, 128, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; ++i)
        assert_int_equal(bytes[i], payload_byte(128 + i));
    assert_fails(gbx_reader_read_payload(reader, PAYLOAD_BYTES - 4, bytes, sizeof bytes), GBX_IO,
                 "b.bin", "shorter");
    assert_true(gbx_reader_is_complete(reader));
    gbx_reader_close(reader);
}

static void every_dtype_is_known_in_any_case(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint8_t dtype;
    } cases[] = {{"FLOAT32", GBX_FLOAT32},
                 {"FLOAT16", GBX_FLOAT16},
                 {"BFLOAT16", GBX_BFLOAT16},
                 {"FLOAT64", GBX_FLOAT64},
                 {"INT8", GBX_INT8},
                 {"UINT8", GBX_UINT8},
                 {"INT16", GBX_INT16},
                 {"UINT16", GBX_UINT16},
                 {"INT32", GBX_INT32},
                 {"UINT32", GBX_UINT32},
                 {"INT64", GBX_INT64},
                 {"UINT64", GBX_UINT64},
                 {"BOOL", GBX_BOOL},
                 {"FP8E4M3FN", GBX_FLOAT8_E4M3},
                 {"FP8E5M2", GBX_FLOAT8_E5M2},
                 {"INT4", GBX_INT4},
                 {"Float8_e4m3", GBX_FLOAT8_E4M3},
                 {"half", GBX_FLOAT16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char entry[256];
        snprintf(entry, sizeof entry, "{" TASK ", \"dtype\": \"%s\", \"shape\": [4]}",
                 cases[i].name);
        gbx_reader *reader = open_entries(entry);
        assert_int_equal(argument_at(reader, 0)->dtype, cases[i].dtype);
        gbx_reader_close(reader);
    }
}

static void scalars_are_read_by_their_dtype(void **state) {
    (void)state;
    static const struct {
        const char *members;
        uint64_t bits;
    } cases[] = {
        {"\"dtype\": \"FLOAT32\", \"value\": 1.0", 0x3f800000},
        {"\"dtype\": \"float32\", \"value\": 0.1", 0x3dcccccd},
        {"\"dtype\": \"float32\", \"value\": 3", 0x40400000},
        {"\"dtype\": \"float32\", \"value\": \"-inf\"", 0xff800000},
        {"\"dtype\": \"float32\", \"value\": \"NaN\", \"bits\": \"0x7fc00001\"", 0x7fc00001},
        {"\"dtype\": \"float16\", \"value\": -2.0", 0xc000},
        {"\"dtype\": \"fp8e4m3fn\", \"value\": 448.0", 0x7e},
        {"\"dtype\": \"float64\", \"value\": -0.0", UINT64_C(1) << 63},
        {"\"dtype\": \"int8\", \"value\": -128", 0x80},
        {"\"dtype\": \"int32\", \"value\": -1", 0xffffffff},
        {"\"dtype\": \"int32\", \"value\": -1, \"bits\": \"0xabcffffffff\"",
         UINT64_C(0xabcffffffff)},
        {"\"dtype\": \"int64\", \"value\": \"-9223372036854775808\"", UINT64_C(1) << 63},
        {"\"dtype\": \"uint64\", \"value\": \"18446744073709551615\"", UINT64_MAX},
        {"\"dtype\": \"uint64\", \"value\": 18446744073709551615", UINT64_MAX},
        {"\"dtype\": \"uint32\", \"scalar_value\": \"7\"", 7},
        {"\"dtype\": \"uint32\", \"kind\": \"scalar\", \"bits\": \"0x9\"", 9},
        {"\"dtype\": \"bool\", \"value\": true", 1},
        {"\"dtype\": \"bool\", \"value\": 0", 0},
        {"\"dtype\": \"bool\", \"value\": true, \"bits\": \"0x2\"", 2},
        {"\"dtype\": \"int4\", \"value\": -8, \"shape\": [1], \"numel\": 1", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char entry[256];
        snprintf(entry, sizeof entry, "{" TASK ", %s}", cases[i].members);
        gbx_reader *reader = open_entries(entry);
        assert_int_equal(scalar_bits(reader, 0), cases[i].bits);
        gbx_reader_close(reader);
    }
}

static void a_window_of_a_buffer_becomes_a_view(void **state) {
    (void)state;
    gbx_reader *reader = open_entries(
        "{" TASK ", " SHAPED ", \"raw_shape\": [10, 8], \"offsets\": [4, 5], " STORED "},"
        "{" TASK ", " SHAPED ", \"raw_shape\": [2, 3], \"offsets\": [0, 0]},"
        "{" TASK ", " SHAPED ", \"strides\": [-7, 2], \"start_offset\": 70, \"raw_shape\": 1}");
    const gbx_record_tensor *window = tensor_at(reader, 0);
    assert_int_equal(window->start_offset, 4 * 8 + 5);
    assert_int_equal(gbx_record_strides(window)[0], 8);
    assert_int_equal(gbx_record_strides(window)[1], 1);
    assert_false(window->head.flags & GBX_FLAG_CONTIGUOUS);
    const gbx_record_tensor *whole = tensor_at(reader, 1);
    assert_true(whole->head.flags & GBX_FLAG_CONTIGUOUS);
    const gbx_record_tensor *strided = tensor_at(reader, 2);
    assert_int_equal(strided->start_offset, 70);
    assert_int_equal(gbx_record_strides(strided)[0], -7);
    gbx_reader_close(reader);
}

/* Tasks are numbered as they first appear, entries sorted, kernels gathered from all entries. */
static void tasks_without_numbers_get_some(void **state) {
    (void)state;
    gbx_reader *reader = open_entries(
        "{\"task_id\": \"0xA0\", \"func_id\": 4, \"kernel\": \"mul\", " ARGUMENT ", " SHAPED "},"
        "{\"task_id\": 7, \"func_id\": [-1], " ARGUMENT ", " SHAPED "},"
        "{\"arg_index\": 0, \"role\": \"output\", \"stage\": \"after_completion\", " SHAPED
        ", \"func_id\": [5], \"kernel\": [null], \"task_id\": \"0xa0\", \"overwritten\": true},"
        "{\"task_id\": \"0xa0\", \"func_id\": [4], \"arg_index\": 0, \"arg_name\": \"sc\\u0061le\","
        " \"role\": \"inout\", \"stage\": \"before_dispatch\", \"dtype\": \"int8\", \"shape\": []}");
    assert_int_equal(gbx_reader_get_totals(reader)->tasks, 2);
    assert_int_equal(argument_at(reader, 0)->dtype, GBX_INT8);
    assert_int_equal(argument_at(reader, 1)->arg_index, 1);
    assert_int_equal(argument_at(reader, 2)->flags, GBX_FLAG_CONTIGUOUS | GBX_FLAG_OVERWRITTEN);
    assert_int_equal(argument_at(reader, 3)->task, 1);
    gbx_record_task task;
    bool is_found = false;
    assert_ok(gbx_reader_find_task(reader, 0, &task, &is_found));
    assert_true(is_found && task.task_id == 0xa0 && task.func_ids[0] == 4 && task.func_ids[1] == 5);
    assert_ok(gbx_reader_find_task(reader, 1, &task, &is_found));
    assert_true(is_found && task.task_id == 7 && task.func_ids[0] == UINT32_MAX);
    const gbx_run_info *run = gbx_reader_run(reader);
    assert_int_equal(run->kernel_count, 1);
    assert_string_equal(gbx_run_info_kernel(run, 4)->name, "mul");
    assert_null(run->kernels[0].core_type);
    assert_string_equal(run->kernels[0].slot_names[0], "scale");
    gbx_reader_close(reader);
}

/* Members stand in any order; those that are not known are passed over. */
static void the_order_of_members_does_not_matter(void **state) {
    (void)state;
    write_manifest("args_dump.json",
                   "{\"new\": {\"a\": [1, {\"b\": \"]\"}]}, \"args\": [{\"more\": [[1]], " STORED
                   ", " SHAPED ", " TASK ", \"func_id\": [3], \"truncated\": false}],"
                   " \"kernels\": [{\"func_id\": 3, \"name\": \"n\"}], \"total_args\": 1,"
                   " \"dropped_records\": 5, \"dropped_overwrite\": 2,"
                   " \"dump_args_level\": 1, \"bin_file\": \"b.bin\"}\n ");
    gbx_reader *reader = open_dump("d");
    const gbx_record *loss = NULL;
    assert_int_equal(tensor_at(reader, 0)->bin_offset, 128);
    assert_string_equal(gbx_reader_run(reader)->kernels[0].name, "n");
    assert_string_equal(gbx_reader_run(reader)->dump_level, "partial");
    assert_int_equal(gbx_reader_get_totals(reader)->dropped, 7);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_LOSSES), 2);
    assert_ok(gbx_reader_list_at(reader, GBX_LIST_LOSSES, 0, &loss));
    assert_int_equal(((const gbx_record_loss *)loss)->cause, GBX_LOSS_UNTOLD);
    assert_int_equal(((const gbx_record_loss *)loss)->count, 5);
    assert_false(gbx_reader_is_complete(reader));
    gbx_reader_close(reader);
}

static void what_is_told_is_told_of_every_entry(void **state) {
    (void)state;
#define NUMBERED "\"task_seq\": 4, " TASK ", " SHAPED
#define FULL                                                                                       \
    NUMBERED ", \"func_id\": [2], \"subtasks\": [\"aiv1\"], \"block_num\": 3, \"time_ns\": 5, "    \
             "\"thread\": 1, \"buffer_addr\": \"0x10\""
    static const struct {
        const char *entry;
        unsigned told;
    } cases[] = {
        {FULL, GBX_TOLD_ALL & ~(unsigned)GBX_TOLD_STATUS},
        {NUMBERED ", \"func_id\": [2], \"subtasks\": [\"aiv1\"], \"block_num\": 3",
         GBX_TOLD_TASK_SEQ | GBX_TOLD_SUBTASKS},
        {NUMBERED ", \"time_ns\": 5, \"block_num\": 3", GBX_TOLD_TASK_SEQ},
        {NUMBERED ", \"time_ns\": 5, \"thread\": 1, \"block_num\": 3",
         GBX_TOLD_TASK_SEQ | GBX_TOLD_TIMES},
        {NUMBERED ", \"buffer_addr\": \"0x10\", \"block_num\": 3",
         GBX_TOLD_TASK_SEQ | GBX_TOLD_ADDRESSES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char entries[2048];
        snprintf(entries, sizeof entries, "{" FULL "}, {%s}", cases[i].entry);
        gbx_reader *reader = open_entries(entries);
        gbx_record_task task;
        bool is_found = false;
        assert_int_equal(gbx_reader_get_origin(reader)->told, cases[i].told);
        assert_ok(gbx_reader_find_task(reader, 4, &task, &is_found));
        assert_true(is_found && task.func_ids[2] == 2 && task.func_ids[0] == UINT32_MAX);
        assert_int_equal(task.block_num, 3);
        gbx_reader_close(reader);
    }
}

static void bytes_that_entries_share_are_stored_once(void **state) {
    (void)state;
    gbx_reader *reader =
        open_entries("{" TASK ", " SHAPED ", " STORED "}, {" TASK ", " SHAPED ", " STORED "},"
                     "{" TASK ", " SHAPED ", \"bin_offset\": 129, \"bin_size\": 24}, {" TASK
                     ", " SHAPED ", " STORED ", \"in_flight\": true}");
    assert_int_equal(gbx_reader_get_totals(reader)->deduplicated, 1);
    assert_int_equal(gbx_reader_get_totals(reader)->stored_bytes, 72);
    assert_true(tensor_at(reader, 1)->head.flags & GBX_FLAG_DUPLICATE);
    assert_int_equal(gbx_reader_get_totals(reader)->payload_end, 153);
    gbx_reader_close(reader);
}

/* --- what is refused --- */

typedef struct bad_input {
    const char *text;
    const char *message;
} bad_input;

static const bad_input bad_entries[] = {
    {"3", "tensors[0]: expected an object"},
    {"{" TASK ", " SHAPED "}, {" TASK ", \"shape\": [2,]}", "line 1"},
    {"{" TASK ", " SHAPED ", \"role\": \"input\"}", "tensors[0].role: is there twice"},
    {"{" ARGUMENT ", " SHAPED "}", "tensors[0]: \"task_id\" is missing"},
    {"{\"task_id\": \"abc\", " ARGUMENT ", " SHAPED "}", "task_id: expected a string \"0x...\""},
    {"{\"task_id\": -1, " ARGUMENT ", " SHAPED "}", "task_id: expected an integer"},
    {"{\"task_id\": 1.5, " ARGUMENT ", " SHAPED "}", "task_id: expected an integer"},
    {"{\"task_seq\": 17592186044416, " ARGUMENT ", " SHAPED "}", "task_seq: expected an integer"},
    {"{\"task_seq\": 1, \"func_id\": [1], " ARGUMENT ", " SHAPED "}", "task without task_id"},
    {"{\"task_seq\": 0, " TASK ", " SHAPED "}, {" TASK ", " SHAPED "}",
     "tensors[1].task_seq: is missing"},
    {"{\"task_seq\": 0, " TASK ", " SHAPED "}, {\"task_seq\": 0, \"task_id\": 3, " ARGUMENT
     ", " SHAPED "}",
     "tensors[1].task_id: is not what an earlier entry"},
    {"{" TASK ", \"func_id\": [1, 2, 3, 4], " SHAPED "}", "func_id: has 4 kernels"},
    {"{" TASK ", \"func_id\": [1.5], " SHAPED "}", "func_id[0]: expected an integer"},
    {"{" TASK ", \"func_id\": [4294967295], " SHAPED "}", "func_id[0]: expected an integer"},
    {"{" TASK ", \"func_id\": \"1\", " SHAPED "}", "func_id: expected an array"},
    {"{" TASK ", \"func_id\": [1], \"kernel\": [\"a\", \"b\"], " SHAPED "}",
     "kernel: has 2 elements, but \"func_id\" has 1"},
    {"{" TASK ", \"func_id\": [1], \"kernel\": [1], " SHAPED "}", "kernel[0]: expected a string"},
    {"{" TASK ", \"func_id\": [2000], \"kernel\": [\"a\"], " SHAPED "}", "not below 1024"},
    {"{" TASK ", \"func_id\": [1], \"kernel\": [\"a\"], " SHAPED "}, {" TASK
     ", \"func_id\": [1], \"kernel\": [\"b\"], " SHAPED "}",
     "tensors[1].kernel: \"b\" is not the name \"a\""},
    {"{" TASK ", \"func_id\": [1], \"subtasks\": [\"x\"], " SHAPED "}", "subtasks[0]: expected"},
    {"{" TASK ", \"func_id\": [1, 2], \"subtasks\": [\"aic\", \"aic\"], " SHAPED "}",
     "subtasks[1]: expected"},
    {"{" TASK ", \"func_id\": [1], " SHAPED "}, {" TASK ", \"func_id\": [2, 3, 4], " SHAPED "}",
     "more than 3 kernels"},
    {"{" TASK ", \"block_num\": 1, " SHAPED "}, {" TASK ", \"block_num\": 2, " SHAPED "}",
     "tensors[1].block_num: 2 is not the 1"},
    {"{\"task_id\": 1, \"arg_index\": 64, \"role\": \"input\", \"stage\": \"before_dispatch\", " SHAPED
     "}",
     "arg_index: expected an integer from 0 to 63, got 64"},
    {"{\"task_id\": 1, \"role\": \"input\", \"stage\": \"before_dispatch\", " SHAPED "}",
     "\"arg_index\" is missing"},
    {"{\"task_id\": 1, \"arg_index\": 0, \"role\": \"in\", \"stage\": \"before_dispatch\", " SHAPED
     "}",
     "role: expected \"input\" or \"output\" or \"inout\", got \"in\""},
    {"{\"task_id\": 1, \"arg_index\": 0, \"role\": \"input\", \"stage\": 3, " SHAPED "}",
     "stage: expected \"before_dispatch\" or \"after_completion\", got 3"},
    {"{" TASK ", " SHAPED ", \"kind\": \"matrix\"}", "kind: expected \"scalar\" or \"tensor\""},
    {"{" TASK ", \"shape\": [1]}", "\"dtype\" is missing"},
    {"{" TASK ", \"dtype\": \"float31\", \"shape\": [1]}", "dtype: expected the name of a dtype"},
    {"{" TASK ", \"dtype\": 1, \"shape\": [1]}", "dtype: expected the name of a dtype"},
    {"{" TASK ", \"dtype\": \"int8\"}", "\"shape\" is missing"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": 4}", "shape: expected an array"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1, -2]}", "tensors[0].shape[1]: expected"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1, 2.0]}", "shape[1]: expected an integer"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1e3]}", "shape[0]: expected an integer"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [99999999999999999999]}", "shape[0]: expected"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1,1,1,1,1,1,1,1,1]}", "shape: has more than 8"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [4294967296, 4294967296]}", "shape: its size"},
    {"{" TASK ", \"dtype\": \"int64\", \"shape\": [9223372036854775807]}", "shape: its size"},
    {"{" TASK ", " SHAPED ", \"numel\": 7}", "numel: 7 is not the 6 elements"},
    {"{" TASK ", " SHAPED ", \"strides\": [1]}", "strides: has 1 elements, but \"shape\" has 2"},
    {"{" TASK ", " SHAPED ", \"strides\": [9223372036854775807, 9223372036854775807]}",
     "shape: with strides and start_offset it is no tensor"},
    {"{" TASK ", " SHAPED ", \"start_offset\": -1}", "it is no tensor"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10, 8]}", "\"offsets\" is missing"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10], \"offsets\": [0, 0]}", "raw_shape: has 1"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10, 8], \"offsets\": [0, 6]}",
     "offsets: dimension 1: 3 from 6 on do not lie inside of the 8"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [4611686018427387904, 8], \"offsets\": [3, 0]}",
     "overflow"},
    {"{" TASK ", " SHAPED ", \"bin_offset\": 0, \"bin_size\": 23}",
     "bin_size: 23 is not the 24 bytes of its shape and dtype"},
    {"{" TASK ", " SHAPED ", \"bin_offset\": 0, \"bin_size\": 25, \"truncated\": true}",
     "bin_size: 25 is more than the 24 bytes"},
    {"{" TASK ", " SHAPED ", \"bin_size\": 24}", "\"bin_offset\" is missing"},
    {"{" TASK ", " SHAPED ", \"bin_offset\": -1, \"bin_size\": 24}", "bin_offset: expected"},
    {"{" TASK ", " SHAPED ", \"bin_offset\": 9223372036854775800, \"bin_size\": 24}",
     "bin_offset: 9223372036854775800 and a bin_size of 24 overflow"},
    {"{" TASK ", " SHAPED ", \"hash\": \"12\"}", "hash: expected a string of 32"},
    {"{" TASK ", " SHAPED ", \"truncated\": 1}", "truncated: expected true or false, got 1"},
    {"{" TASK ", " SHAPED ", \"time_ns\": -5}", "time_ns: expected an integer"},
    {"{" TASK ", " SHAPED ", \"thread\": 70000}", "thread: expected an integer"},
    {"{" TASK ", " SHAPED ", \"buffer_addr\": 16}", "buffer_addr: expected a string"},
    {"{" TASK ", " SHAPED ", \"stats\": {\"min\": 1}}", "stats: \"max\" is missing"},
    {"{" TASK ", " SHAPED ", \"stats\": [1]}", "stats: expected an object"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1], \"stats\": {\"min\": 300, \"max\": 0,"
     " \"mean\": 0, \"nan\": 0, \"inf\": 0, \"zero\": 0}}",
     "stats: min: 300"},
    {"{" TASK ", \"dtype\": \"int8\", \"kind\": \"scalar\"}", "\"value\" is missing"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 128}", "value: expected an integer that int8"},
    {"{" TASK ", \"dtype\": \"uint8\", \"value\": -1}", "value: expected an integer that uint8"},
    {"{" TASK ", \"dtype\": \"uint8\", \"value\": 1.0}", "value: expected an integer that uint8"},
    {"{" TASK ", \"dtype\": \"uint64\", \"value\": 18446744073709551616}", "value: expected"},
    {"{" TASK ", \"dtype\": \"uint64\", \"value\": \"7 \"}", "value: expected an integer"},
    {"{" TASK ", \"dtype\": \"float16\", \"value\": 70000.0}", "value: expected a number"},
    {"{" TASK ", \"dtype\": \"fp8e4m3\", \"value\": 500}", "value: expected a number"},
    {"{" TASK ", \"dtype\": \"float32\", \"value\": \"1.0\"}", "value: expected a number"},
    {"{" TASK ", \"dtype\": \"bool\", \"value\": 2}", "value: expected true or false"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"bits\": \"0x2\"}",
     "bits: 0x2 is not the int8 1 of \"value\""},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"kind\": \"scalar\", \"bin_size\": 1,"
     " \"bin_offset\": 0}",
     "a scalar has no payload"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"shape\": [2]}", "a scalar has one element"},
};

static void wrong_entries_are_refused_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_entries / sizeof bad_entries[0]; ++i) {
        gbx_reader *reader = NULL;
        write_entries(bad_entries[i].text);
        assert_fails(gbx_reader_open("d", GBX_INDEX_ARGUMENTS, &reader), GBX_BAD_FORMAT,
                     "d/tensor_dump.json: ", bad_entries[i].message);
        assert_null(reader);
    }
}

#define ENTRY "{" TASK ", " SHAPED ", " STORED "}"

static const bad_input bad_manifests[] = {
    {"", "an object is expected"},
    {"[]", "an object is expected"},
    {"{}", "neither \"tensors\" nor \"args\""},
    {"{\"tensors\": 3}", "an array is expected"},
    {"{\"tensors\": [], \"args\": []}", "args: is there beside another array"},
    {"{\"tensors\": []} x", "the end of the file is expected"},
    {"{\"tensors\": [" ENTRY "]}", "\"bin_file\" is missing"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"\"}", "bin_file: \"\" is not the name"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"../b.bin\"}", "bin_file: \"../b.bin\" is not"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"..\"}", "bin_file: \"..\" is not the name"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"/etc/passwd\"}", "bin_file: \"/etc/passwd\""},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": 1}", "bin_file: expected a string"},
    {"{\"tensors\": [], \"tensors\": []}", "beside another array"},
    {"{\"status\": \"a\", \"status\": \"b\", \"tensors\": []}", "status: is there twice"},
    {"{\"schema_version\": 2, \"tensors\": []}", "schema_version: 2 is not within 1 to 1"},
    {"{\"bin_format\": {\"byte_order\": \"big_endian\"}, \"tensors\": []}",
     "bin_format.byte_order: \"big_endian\" is none of little_endian"},
    {"{\"bin_format\": {\"type\": \"raw\"}, \"tensors\": []}", "bin_format.type: \"raw\" is none"},
    {"{\"bin_format\": 1, \"tensors\": []}", "bin_format: expected an object"},
    {"{\"total_tensors\": -1, \"tensors\": []}", "total_tensors: -1 is not within"},
    {"{\"total_tensors\": 1, \"total_args\": 1, \"tensors\": []}", "is there beside"},
    {"{\"dropped_records\": 1.5, \"tensors\": []}", "dropped_records: expected an integer"},
    {"{\"run\": 1, \"tensors\": []}", "run: expected an object"},
    {"{\"generator\": 1, \"tensors\": []}", "generator: expected a string"},
    {"{\"complete\": 1, \"tensors\": []}", "complete: expected true or false"},
    {"{\"status\": 1, \"tensors\": []}", "status: expected a string"},
    {"{\"dump_args_level\": 4, \"tensors\": []}", "dump_args_level: 4 is not within"},
    {"{\"kernels\": [{\"func_id\": 3}], \"tensors\": []}", "kernels[0]: \"name\" is missing"},
    {"{\"kernels\": 3, \"tensors\": []}", "kernels: expected an array"},
    {"{\"kernels\": [{\"func_id\": 1, \"name\": \"a\"}], \"tensors\": [{" TASK ", " SHAPED
     ", \"func_id\": 1, \"kernel\": \"b\"}]}",
     "kernels[0].name: \"a\" is not the \"b\""},
    {"{\"losses\": [{}], \"tensors\": []}", "losses[0]: \"task_seq\" is missing"},
    {"{\"losses\": [{\"task_seq\": 1, \"arg_index\": 1, \"stage\": null, \"cause\": \"rain\","
     " \"count\": 1}], \"tensors\": []}",
     "losses[0].cause: \"rain\" is none of"},
    {"{\"skipped\": [{\"task_seq\": 1, \"arg_index\": 1, \"reason\": \"x\"}], \"tensors\": []}",
     "skipped[0].reason: \"x\" is none of"},
    {"{\"new\": [1,], \"tensors\": []}", "line 1"},
};

static void wrong_manifests_are_refused_by_name(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_manifests / sizeof bad_manifests[0]; ++i) {
        gbx_reader *reader = NULL;
        write_manifest("tensor_dump.json", bad_manifests[i].text);
        assert_fails(gbx_reader_open("d", GBX_INDEX_ARGUMENTS, &reader), GBX_BAD_FORMAT,
                     "d/tensor_dump.json: ", bad_manifests[i].message);
    }
}

/* Cut after any byte: no part of a dump is taken for the whole. */
static void a_manifest_that_is_cut_is_refused_wherever(void **state) {
    (void)state;
    const char *text = "{\"bin_file\": \"b.bin\", \"tensors\": [" ENTRY ", {" TASK
                       ", \"dtype\": \"int8\", \"value\": 1}], \"complete\": true}";
    size_t files = count_open_files();
    for (size_t size = 0; size < strlen(text); ++size) {
        char cut[1024];
        gbx_reader *reader = NULL;
        snprintf(cut, sizeof cut, "%.*s", (int)size, text);
        write_manifest("tensor_dump.json", cut);
        assert_fails(gbx_reader_open("d", GBX_INDEX_ARGUMENTS, &reader), GBX_BAD_FORMAT,
                     "d/tensor_dump.json");
    }
    write_manifest("tensor_dump.json", text);
    gbx_reader_close(open_dump("d"));
    assert_int_equal(count_open_files(), files);
}

static void payload_beyond_its_file_is_refused_by_entry(void **state) {
    (void)state;
    gbx_reader *reader =
        open_entries(ENTRY ", {" TASK ", " SHAPED ", \"bin_offset\": 4080, \"bin_size\": 24}");
    assert_fails(gbx_reader_open_payload(reader), GBX_BAD_FORMAT,
                 "d/tensor_dump.json: entry 1 (task 0, argument 1) has 24 bytes at offset 4080",
                 "d/b.bin ends at 4096");
    gbx_reader_close(reader);
    write_entries(ENTRY);
    assert_int_equal(unlink("d/b.bin"), 0);
    reader = open_dump("d");
    assert_fails(gbx_reader_open_payload(reader), GBX_NOT_FOUND, "d/b.bin");
    gbx_reader_close(reader);
    write_manifest("tensor_dump.json",
                   "{\"bin_file\": null, \"tensors\": [{" TASK ", " SHAPED "}]}");
    assert_int_equal(unlink("d/b.bin"), 0);
    reader = open_dump("d");
    assert_string_equal(gbx_reader_get_origin(reader)->payload_path, "");
    assert_ok(gbx_reader_open_payload(reader));
    gbx_reader_close(reader);
}

/* --- where it is looked for --- */

static void check_source(const char *expected) {
    gbx_reader *reader = open_dump("d");
    assert_string_equal(gbx_reader_get_origin(reader)->records_path, expected);
    gbx_reader_close(reader);
}

static void manifests_are_found_in_their_places(void **state) {
    (void)state;
    gbx_reader *reader = NULL;
    const char *manifest = "{\"args\": [], \"bin_file\" : null}";
    const char *ours = "{\"schema_version\": 1, \"args\": [{\"name\": \"bin_file\"}]}";
    assert_int_equal(mkdir("d", 0777), 0);
    assert_int_equal(mkdir("d/tensor_dump", 0777), 0);
    assert_fails(gbx_reader_open("d", 0, &reader), GBX_NOT_FOUND, "d/tensor_dump/tensor_dump.rec",
                 "nor is there a manifest");
    scratch_write("d/args_dump.json", ours, strlen(ours));
    scratch_write("d/tensor_dump/args_dump.json", ours, strlen(ours));
    assert_fails(gbx_reader_open("d", 0, &reader), GBX_NOT_FOUND, "nor is there a manifest");
    scratch_write("d/tensor_dump/args_dump.json", manifest, strlen(manifest));
    check_source("d/tensor_dump/args_dump.json");
    scratch_write("d/args_dump.json", manifest, strlen(manifest));
    check_source("d/args_dump.json");
    scratch_write("d/tensor_dump.json", manifest, strlen(manifest));
    check_source("d/tensor_dump.json");
    scratch_write("d/tensor_dump/tensor_dump.json", manifest, strlen(manifest));
    check_source("d/tensor_dump/tensor_dump.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_of_another_tool_holds_what_its_kernels_computed),
        cmocka_unit_test(payload_that_was_not_kept_is_not_there),
        cmocka_unit_test_setup_teardown(a_sample_reads_the_same_without_its_journal, enter, leave),
        cmocka_unit_test_setup_teardown(every_kind_of_record_reads_the_same_without_its_journal,
                                        enter, leave),
        cmocka_unit_test_setup_teardown(the_least_that_an_entry_may_say_is_enough, enter, leave),
        cmocka_unit_test_setup_teardown(every_dtype_is_known_in_any_case, enter, leave),
        cmocka_unit_test_setup_teardown(scalars_are_read_by_their_dtype, enter, leave),
        cmocka_unit_test_setup_teardown(a_window_of_a_buffer_becomes_a_view, enter, leave),
        cmocka_unit_test_setup_teardown(tasks_without_numbers_get_some, enter, leave),
        cmocka_unit_test_setup_teardown(the_order_of_members_does_not_matter, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_told_is_told_of_every_entry, enter, leave),
        cmocka_unit_test_setup_teardown(bytes_that_entries_share_are_stored_once, enter, leave),
        cmocka_unit_test_setup_teardown(wrong_entries_are_refused_by_name, enter, leave),
        cmocka_unit_test_setup_teardown(wrong_manifests_are_refused_by_name, enter, leave),
        cmocka_unit_test_setup_teardown(a_manifest_that_is_cut_is_refused_wherever, enter, leave),
        cmocka_unit_test_setup_teardown(payload_beyond_its_file_is_refused_by_entry, enter, leave),
        cmocka_unit_test_setup_teardown(manifests_are_found_in_their_places, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
