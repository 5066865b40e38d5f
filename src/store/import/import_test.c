#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "hand_made_dump.h"
#include "store/import/import_test_dump.h"
#include "store/manifest/manifest.h"
#include "store_sample.h"

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

/* All elements of an argument equal one number; NAN for an argument without bytes in the dump. */
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
    assert_int_equal(gbx_reader_get_origin(reader)->known, 0);
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

/* A manifest has no times of tasks and no predecessors; it shows a scalar without dtype as
 * uint64. */
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
        assert_int_equal(a->dtype, b->dtype);
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

/* Reads a dump from its journal, then, after removing it, from its manifest. */
static void compare_with_manifest(const char *directory, bool is_killed) {
    char path[160], away[160];
    gbx_reader *journal = open_dump(directory);
    assert_true(gbx_reader_get_origin(journal)->is_journal);
    assert_int_equal(gbx_reader_get_origin(journal)->known, GBX_KNOWN_ALL);
    assert_ok(gbx_manifest_write(directory, true, false));
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.rec", directory);
    snprintf(away, sizeof away, "%s/tensor_dump/away", directory);
    assert_int_equal(rename(path, away), 0);
    gbx_reader *manifest = open_dump(directory);
    assert_false(gbx_reader_get_origin(manifest)->is_journal);
    assert_int_equal(gbx_reader_get_origin(manifest)->known, GBX_KNOWN_ALL & ~GBX_KNOWN_EXECUTIONS);
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
    assert_ok(gbx_store_finish(store, &end, "ok", NULL));
    gbx_store_destroy(store);
    compare_with_manifest("sample", false);
}

static made_dump made;

/* A record of every kind that a manifest has: losses, skipped arguments, statistics, in flight, a
 * task without its record, a scalar without dtype. */
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

/* --- payload of a journal --- */

static void payload_of_a_journal_is_read_and_checked(void **state) {
    (void)state;
    unsigned char bytes[24];
    made_good(&made);
    made_write(&made);
    gbx_reader *reader = open_dump(made.directory);
    assert_int_equal(gbx_reader_get_totals(reader)->payload_end, MADE_TRUNCATED_AT + 64);
    assert_ok(gbx_reader_open_payload(reader));
    assert_ok(gbx_reader_read_payload(reader, MADE_OUTPUT_AT, bytes, sizeof bytes));
    assert_memory_equal(bytes, made.payload + MADE_OUTPUT_AT, sizeof bytes);
    made_cut(&made, "tensor_dump.bin", MADE_OUTPUT_AT + 23);
    assert_fails(gbx_reader_read_payload(reader, MADE_OUTPUT_AT, bytes, sizeof bytes), GBX_IO,
                 "tensor_dump.bin", "became shorter");
    gbx_reader_close(reader);
    reader = open_dump(made.directory);
    assert_fails(gbx_reader_open_payload(reader), GBX_BAD_FORMAT,
                 "entry 2 (task 0, argument 1) has 24 bytes at offset 64",
                 "tensor_dump.bin ends at 87");
    gbx_reader_close(reader);
    char path[160];
    made_path(&made, "tensor_dump.bin", path);
    assert_int_equal(unlink(path), 0);
    reader = open_dump(made.directory);
    assert_fails(gbx_reader_open_payload(reader), GBX_NOT_FOUND, "tensor_dump.bin");
    gbx_reader_close(reader);
    made_remove(&made);
}

/* --- where the manifest is found --- */

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
                 "and there is no manifest");
    scratch_write("d/args_dump.json", ours, strlen(ours));
    scratch_write("d/tensor_dump/args_dump.json", ours, strlen(ours));
    assert_fails(gbx_reader_open("d", 0, &reader), GBX_NOT_FOUND, "and there is no manifest");
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
        cmocka_unit_test(payload_of_a_journal_is_read_and_checked),
        cmocka_unit_test_setup_teardown(manifests_are_found_in_their_places, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
