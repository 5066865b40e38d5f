#include "scratch.h"

#include <unistd.h>

#include <glassbox/tensor.h>

#include "store/import/import_test_dump.h"

/* --- what may be missing, or be written in another way --- */

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
        {"\"dtype\": \"Unknown\", \"bits\": \"0xbdcccccd\"", 0xbdcccccd},
        {"\"dtype\": \"unknown\", \"bits\": \"0x9\", \"scalar_value\": \"9\"", 9},
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
        "{" TASK ", " SHAPED ", \"strides\": [-7, 2], \"start_offset\": 70, \"raw_shape\": null},"
        "{" TASK ", " SHAPED ", \"strides\": [8, 1], \"start_offset\": 37, \"raw_shape\": [10, 8],"
        " \"offsets\": [4, 5], \"is_contiguous\": false},"
        "{" TASK ", " SHAPED ", \"strides\": [8, 1], \"raw_shape\": [10, 8], \"offsets\": [4, 5]},"
        "{" TASK ", \"dtype\": \"int8\", \"shape\": [1, 3], \"strides\": [99, 1],"
        " \"raw_shape\": [2, 8], \"offsets\": [0, 0], \"is_contiguous\": true}");
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
    for (uint64_t i = 3; i < 5; ++i) { /* strides and window at once */
        const gbx_record_tensor *both = tensor_at(reader, i);
        assert_int_equal(both->start_offset, 37);
        assert_int_equal(gbx_record_strides(both)[0], 8);
        assert_false(both->head.flags & GBX_FLAG_CONTIGUOUS);
    }
    const gbx_record_tensor *row = tensor_at(reader, 5); /* steps of one row do not count */
    assert_int_equal(gbx_record_strides(row)[0], 99);
    assert_true(row->head.flags & GBX_FLAG_CONTIGUOUS);
    gbx_reader_close(reader);
}

/* Records cannot say that arg_index is ambiguous: such entries are counted. */
static void what_another_tool_says_of_an_entry_is_kept(void **state) {
    (void)state;
#define NUMBER TASK ", \"dtype\": \"int8\", \"value\": 3, \"scalar_value\": \"3\""
    gbx_reader *reader = open_entries(
        "{" NUMBER ", \"truncated\": true, \"arg_index_ambiguous\": true},"
        "{" NUMBER ", \"overwritten\": true, \"arg_index_ambiguous\": false},"
        "{" NUMBER ", \"truncated\": true, \"in_flight\": true},"
        "{" TASK ", " SHAPED ", " STORED ", \"overwritten\": true, \"arg_index_ambiguous\": true}");
    static const unsigned flags[] = {
        GBX_FLAG_TRUNCATED, GBX_FLAG_OVERWRITTEN, GBX_FLAG_TRUNCATED | GBX_FLAG_IN_FLIGHT,
        GBX_FLAG_CONTIGUOUS | GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_OVERWRITTEN};
    for (uint64_t i = 0; i < 4; ++i)
        assert_int_equal(argument_at(reader, i)->flags, flags[i]);
    assert_int_equal(scalar_bits(reader, 0), 3);
    assert_int_equal(gbx_reader_get_totals(reader)->truncated, 1);
    assert_int_equal(gbx_reader_get_totals(reader)->in_flight, 1);
    assert_int_equal(gbx_reader_get_import_totals(reader)->ambiguous, 2);
    gbx_reader_close(reader);
}

static void expect_skipped(gbx_reader *reader, uint64_t position, uint32_t func_id) {
    const gbx_record *record = NULL;
    assert_ok(gbx_reader_list_at(reader, GBX_LIST_SKIPPED, position, &record));
    assert_int_equal(((const gbx_record_skipped *)record)->func_id, func_id);
}

/* A name belongs to a kernel of the table or of the entries; an ambiguous name belongs to none. */
static void kernels_that_were_skipped_are_found_by_name(void **state) {
    (void)state;
#define SKIPPED(name)                                                                              \
    "{\"task_seq\": 1, \"arg_index\": null, \"kernel\": " name                                     \
    ", \"reason\": \"nobody told which words of the task are tensors\"}"
    write_manifest(
        "tensor_dump.json",
        "{\"kernels\": [{\"func_id\": 9, \"name\": \"b\"}, {\"func_id\": 4, \"name\": "
        "\"twice\"}, {\"func_id\": 0, \"name\": \"c\"}, {\"func_id\": 5, \"name\": "
        "\"twice\"}, {\"func_id\": 9, \"name\": \"b\"}], \"tensors\": [{" TASK ", " SHAPED
        ", \"func_id\": 3, \"kernel\": \"a\"}], \"skipped\": [" SKIPPED("\"a\"") "," SKIPPED("\"b\"") "," SKIPPED(
            "\"c\"") "," SKIPPED("\"twice\"") "," SKIPPED("\"d\"") "," SKIPPED("\"\"") "," SKIPPED("null") "]}");
    gbx_reader *reader = open_dump("d");
    static const uint32_t func_ids[] = {3, 9, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_SKIPPED), 7);
    for (uint64_t i = 0; i < 7; ++i)
        expect_skipped(reader, i, func_ids[i]);
    gbx_reader_close(reader);
}

/* Tasks are numbered in order of appearance, entries sorted, kernels collected from all entries. */
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

/* Members may be in any order; unknown ones are ignored. */
static void the_order_of_members_does_not_matter(void **state) {
    (void)state;
    write_manifest(
        "args_dump.json",
        "{\"new\": {\"a\": [1, {\"b\": \"]\xe2\x82\xac\"}]}, \"args\": [{\"more\": [[1]], " STORED
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
    assert_int_equal(gbx_reader_get_import_totals(reader)->values[GBX_TOTAL_DROPPED], 5);
    assert_int_equal(gbx_reader_get_import_totals(reader)->values[GBX_TOTAL_OVERWRITTEN], 2);
    assert_int_equal(gbx_reader_list_count(reader, GBX_LIST_LOSSES), 2);
    assert_ok(gbx_reader_list_at(reader, GBX_LIST_LOSSES, 0, &loss));
    assert_int_equal(((const gbx_record_loss *)loss)->cause, GBX_LOSS_UNKNOWN);
    assert_int_equal(((const gbx_record_loss *)loss)->count, 5);
    assert_false(gbx_reader_is_complete(reader));
    gbx_reader_close(reader);
}

static void what_is_known_is_known_of_every_entry(void **state) {
    (void)state;
#define NUMBERED "\"task_seq\": 4, " TASK ", " SHAPED
#define FULL                                                                                       \
    NUMBERED ", \"func_id\": [2], \"subtasks\": [\"aiv1\"], \"block_num\": 3, \"time_ns\": 5, "    \
             "\"thread\": 1, \"buffer_addr\": \"0x10\", \"start_ns\": 7, \"end_ns\": null, "       \
             "\"cores\": [70, 3]"
    static const struct {
        const char *entry;
        unsigned known;
    } cases[] = {
        {FULL, GBX_KNOWN_ALL & ~(unsigned)(GBX_KNOWN_STATUS | GBX_KNOWN_EXECUTIONS)},
        {NUMBERED ", \"func_id\": [2], \"subtasks\": [\"aiv1\"], \"block_num\": 3",
         GBX_KNOWN_TASK_SEQ | GBX_KNOWN_SUBTASKS},
        {NUMBERED ", \"time_ns\": 5, \"block_num\": 3", GBX_KNOWN_TASK_SEQ},
        {NUMBERED ", \"time_ns\": 5, \"thread\": 1, \"block_num\": 3",
         GBX_KNOWN_TASK_SEQ | GBX_KNOWN_TIMES},
        {NUMBERED ", \"buffer_addr\": \"0x10\", \"block_num\": 3",
         GBX_KNOWN_TASK_SEQ | GBX_KNOWN_ADDRESSES},
        {NUMBERED ", \"start_ns\": null, \"end_ns\": null, \"cores\": null, \"block_num\": 3",
         GBX_KNOWN_TASK_SEQ | GBX_KNOWN_SPANS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char entries[2048];
        snprintf(entries, sizeof entries, "{" FULL "}, {%s}", cases[i].entry);
        gbx_reader *reader = open_entries(entries);
        gbx_record_task task;
        bool is_found = false;
        assert_int_equal(gbx_reader_get_origin(reader)->known, cases[i].known);
        assert_ok(gbx_reader_find_task(reader, 4, &task, &is_found));
        assert_true(is_found && task.func_ids[2] == 2 && task.func_ids[0] == UINT32_MAX);
        assert_int_equal(task.block_num, 3);
        for (uint64_t e = 0; e < 2; ++e) { /* of each core that the first entry names */
            const gbx_record *record = NULL;
            assert_int_equal(gbx_reader_kind(reader, 1 + e), GBX_INDEX_EXECUTIONS);
            assert_ok(gbx_reader_at(reader, 1 + e, &record));
            assert_int_equal(record->time_ns, 7);
            assert_int_equal(((const gbx_record_execution *)record)->core_id, e ? 70 : 3);
            assert_true(((const gbx_record_execution *)record)->end_ns == GBX_NO_END_NS);
        }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_that_an_entry_may_say_is_enough, enter, leave),
        cmocka_unit_test_setup_teardown(every_dtype_is_known_in_any_case, enter, leave),
        cmocka_unit_test_setup_teardown(scalars_are_read_by_their_dtype, enter, leave),
        cmocka_unit_test_setup_teardown(a_window_of_a_buffer_becomes_a_view, enter, leave),
        cmocka_unit_test_setup_teardown(what_another_tool_says_of_an_entry_is_kept, enter, leave),
        cmocka_unit_test_setup_teardown(kernels_that_were_skipped_are_found_by_name, enter, leave),
        cmocka_unit_test_setup_teardown(tasks_without_numbers_get_some, enter, leave),
        cmocka_unit_test_setup_teardown(the_order_of_members_does_not_matter, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_known_is_known_of_every_entry, enter, leave),
        cmocka_unit_test_setup_teardown(bytes_that_entries_share_are_stored_once, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
