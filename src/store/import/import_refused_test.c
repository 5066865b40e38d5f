#include "scratch.h"

#include <unistd.h>

#include <glassbox/chip.h>

#include "store/import/import_test_dump.h"

#define ARGUMENT "\"arg_index\": 1, \"role\": \"input\", \"stage\": \"before_dispatch\""
#define TASK "\"task_id\": \"0x1f\", " ARGUMENT
#define SHAPED "\"dtype\": \"float32\", \"shape\": [2, 3]"
#define STORED "\"bin_offset\": 128, \"bin_size\": 24"

typedef struct bad_input {
    const char *text;
    const char *message;
} bad_input;

static const bad_input bad_entries[] = {
    {"3", "tensors[0]: expected an object"},
    {"{" TASK ", " SHAPED "}, {" TASK ", \"shape\": [2,]}", "line 1"},
    {"{" TASK ", " SHAPED ", \"role\": \"input\"}", "tensors[0].role: appears twice"},
    {"{" ARGUMENT ", " SHAPED "}", "tensors[0]: \"task_id\" is missing"},
    {"{\"task_id\": \"abc\", " ARGUMENT ", " SHAPED "}", "task_id: expected a string \"0x...\""},
    {"{\"task_id\": -1, " ARGUMENT ", " SHAPED "}", "task_id: expected a 64-bit integer"},
    {"{\"task_id\": 1.5, " ARGUMENT ", " SHAPED "}", "task_id: expected a 64-bit integer"},
    {"{\"task_seq\": 17592186044416, " ARGUMENT ", " SHAPED "}", "task_seq: expected an integer"},
    {"{\"task_seq\": 1, \"func_id\": [1], " ARGUMENT ", " SHAPED "}", "task without task_id"},
    {"{\"task_seq\": 0, " TASK ", " SHAPED "}, {" TASK ", " SHAPED "}",
     "tensors[1].task_seq: is missing"},
    {"{\"task_seq\": 0, " TASK ", " SHAPED "}, {\"task_seq\": 0, \"task_id\": 3, " ARGUMENT
     ", " SHAPED "}",
     "tensors[1].task_id: differs from an earlier entry"},
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
     "tensors[1].kernel: \"b\" differs from \"a\", which an earlier entry gives"},
    {"{" TASK ", \"func_id\": [1], \"subtasks\": [\"x\"], " SHAPED "}", "subtasks[0]: expected"},
    {"{" TASK ", \"func_id\": [1, 2], \"subtasks\": [\"aic\", \"aic\"], " SHAPED "}",
     "subtasks[1]: expected"},
    {"{" TASK ", \"func_id\": [1], " SHAPED "}, {" TASK ", \"func_id\": [2, 3, 4], " SHAPED "}",
     "more than 3 kernels"},
    {"{" TASK ", \"block_num\": 1, " SHAPED "}, {" TASK ", \"block_num\": 2, " SHAPED "}",
     "tensors[1].block_num: 2 differs from the 1"},
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
    {"{" TASK ", " SHAPED ", \"kind\": \"matrix\"}", "kind: expected \"tensor\" or \"scalar\""},
    {"{" TASK ", \"shape\": [1]}", "\"dtype\" is missing"},
    {"{" TASK ", \"dtype\": \"float31\", \"shape\": [1]}", "dtype: expected the name of a dtype"},
    {"{" TASK ", \"dtype\": 1, \"shape\": [1]}", "dtype: expected the name of a dtype"},
    {"{" TASK ", \"dtype\": \"unknown\", \"shape\": [1]}", "dtype: expected the name of a dtype"},
    {"{" TASK ", \"dtype\": \"unknown\", \"kind\": \"scalar\"}", "\"bits\" is missing"},
    {"{" TASK ", \"dtype\": \"unknown\", \"value\": 5, \"bits\": \"0x5\"}",
     "value: a scalar of unknown dtype has bits and no value"},
    {"{" TASK ", \"dtype\": \"unknown\", \"bits\": \"0x5\", \"scalar_value\": \"6\"}",
     "scalar_value: \"6\" does not match"},
    {"{" TASK ", \"dtype\": \"int8\"}", "\"shape\" is missing"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": 4}", "shape: expected an array"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1, -2]}", "tensors[0].shape[1]: expected"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1, 2.0]}", "shape[1]: expected an integer"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1e3]}", "shape[0]: expected an integer"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [99999999999999999999]}", "shape[0]: expected"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1,1,1,1,1,1,1,1,1]}", "shape: has more than 8"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [4294967296, 4294967296]}", "shape: its size"},
    {"{" TASK ", \"dtype\": \"int64\", \"shape\": [9223372036854775807]}", "shape: its size"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [0, 4611686018427387904, 4]}", "shape: its size"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [4611686018427387904, 4, 0]}", "shape: its size"},
    {"{" TASK ", " SHAPED ", \"strides\": [7, 1], \"is_contiguous\": true}",
     "is_contiguous: is true, but shape and strides are not those"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10, 8], \"offsets\": [0, 0], \"is_contiguous\": true}",
     "is_contiguous: is true"},
    {"{" TASK ", " SHAPED ", \"is_contiguous\": 1}", "is_contiguous: expected true or false"},
    {"{" TASK ", " SHAPED ", \"numel\": 7}", "numel: 7 differs from the 6 elements"},
    {"{" TASK ", " SHAPED ", \"strides\": [1]}", "strides: has 1 elements, but \"shape\" has 2"},
    {"{" TASK ", " SHAPED ", \"strides\": [9223372036854775807, 9223372036854775807]}",
     "shape: with strides and start_offset, it is not a valid tensor"},
    {"{" TASK ", " SHAPED ", \"start_offset\": -1}", "it is not a valid tensor"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10, 8]}", "\"offsets\" is missing"},
    {"{" TASK ", " SHAPED ", \"offsets\": [0, 0]}", "\"raw_shape\" is missing"},
    {"{" TASK ", " SHAPED ", \"strides\": [3, 1], \"raw_shape\": [10, 8], \"offsets\": [0, 0]}",
     "raw_shape: with offsets, it does not match strides and start_offset"},
    {"{" TASK ", " SHAPED ", \"strides\": [8, 1], \"start_offset\": 8, \"raw_shape\": [10, 8],"
     " \"offsets\": [0, 0]}",
     "raw_shape: with offsets, it does not match"},
    {"{" TASK ", " SHAPED ", \"start_offset\": 8, \"raw_shape\": [10, 8], \"offsets\": [0, 0]}",
     "raw_shape: with offsets, it does not match"},
    {"{" TASK ", " SHAPED ", \"strides\": [3, 1], \"raw_shape\": 1}", "\"offsets\" is missing"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10], \"offsets\": [0, 0]}", "raw_shape: has 1"},
    {"{" TASK ", " SHAPED ", \"raw_shape\": [10, 8], \"offsets\": [0, 6]}",
     "offsets: dimension 1: 3 from 6 on lie outside the 8"},
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
    {"{" TASK ", " SHAPED ", \"arg_index_ambiguous\": 1}", "arg_index_ambiguous: expected true"},
    {"{" TASK ", " SHAPED ", \"new\": \"\xff\"}", "tensor_dump.json: line 1"},
    {"{" TASK ", " SHAPED ", \"n\xc3w\": 1}", "tensor_dump.json: line 1"},
    {"{" TASK ", " SHAPED ", \"new\": [{\"a\": \"\xed\xa0\x80\"}]}", "tensor_dump.json: line 1"},
    {"{" TASK ", " SHAPED ", \"truncated\": 1}", "truncated: expected true or false, got 1"},
    {"{" TASK ", " SHAPED ", \"time_ns\": -5}", "time_ns: expected an integer"},
    {"{" TASK ", " SHAPED ", \"thread\": 70000}", "thread: expected an integer"},
    {"{" TASK ", " SHAPED ", \"start_ns\": 9007199254740992}", "start_ns: expected an integer"},
    {"{" TASK ", " SHAPED ", \"start_ns\": 6, \"end_ns\": 5, \"cores\": [1]}",
     "end_ns: is before start_ns"},
    {"{" TASK ", " SHAPED ", \"start_ns\": 6, \"cores\": [1, 1024]}",
     "cores[1]: expected the number of a core, got 1024"},
    {"{" TASK ", " SHAPED ", \"start_ns\": 6, \"cores\": []}",
     "cores: are missing, but start_ns is given"},
    {"{" TASK ", " SHAPED ", \"cores\": [1]}", "cores: are given without start_ns"},
    {"{" TASK ", " SHAPED ", \"buffer_addr\": 16}", "buffer_addr: expected a string"},
    {"{" TASK ", " SHAPED ", \"stats\": {\"min\": 1}}", "stats: \"max\" is missing"},
    {"{" TASK ", " SHAPED ", \"stats\": [1]}", "stats: expected an object"},
    {"{" TASK ", \"dtype\": \"int8\", \"shape\": [1], \"stats\": {\"min\": 300, \"max\": 0,"
     " \"mean\": 0, \"nan\": 0, \"inf\": 0, \"zero\": 0}}",
     "stats: min: expected a value of the dtype, got 300"},
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
     "value: 1 does not match the int8 of \"bits\", 0x2"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"scalar_value\": 2}",
     "scalar_value: 2 does not match the int8 of \"value\", 0x1"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"bits\": \"0x1\", \"scalar_value\": 3}",
     "scalar_value: 3 does not match the int8 of \"bits\", 0x1"},
    {"{" TASK ", \"dtype\": \"int8\", \"value\": 1, \"scalar_value\": \"x\"}",
     "scalar_value: expected an integer"},
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
    {"", "expected an object"},
    {"[]", "expected an object"},
    {"{}", "neither \"tensors\" nor \"args\""},
    {"{\"tensors\": 3}", "expected an array"},
    {"{\"tensors\": [], \"args\": []}", "args: is a second array"},
    {"{\"tensors\": []} x", "expected the end of the file"},
    {"{\"tensors\": [" ENTRY "]}", "\"bin_file\" is missing"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"\"}", "bin_file: \"\" is not the name"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"../b.bin\"}", "bin_file: \"../b.bin\" is not"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"..\"}", "bin_file: \"..\" is not the name"},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": \"/etc/passwd\"}", "bin_file: \"/etc/passwd\""},
    {"{\"tensors\": [" ENTRY "], \"bin_file\": 1}", "bin_file: expected a string"},
    {"{\"tensors\": [], \"tensors\": []}", "is a second array"},
    {"{\"status\": \"a\", \"status\": \"b\", \"tensors\": []}", "status: appears twice"},
    {"{\"schema_version\": 2, \"tensors\": []}", "schema_version: 2 is outside 1 to 1"},
    {"{\"bin_format\": {\"byte_order\": \"big_endian\"}, \"tensors\": []}",
     "bin_format.byte_order: unknown value \"big_endian\"; expected little_endian"},
    {"{\"bin_format\": {\"type\": \"raw\"}, \"tensors\": []}", "bin_format.type: unknown value "
                                                               "\"raw\""},
    {"{\"bin_format\": 1, \"tensors\": []}", "bin_format: expected an object"},
    {"{\"total_tensors\": -1, \"tensors\": []}", "total_tensors: -1 is outside"},
    {"{\"total_tensors\": 1, \"total_args\": 1, \"tensors\": []}", "repeats \"total_tensors\""},
    {"{\"dropped_records\": 1.5, \"tensors\": []}", "dropped_records: expected an integer"},
    {"{\"run\": 1, \"tensors\": []}", "run: expected an object"},
    {"{\"generator\": 1, \"tensors\": []}", "generator: expected a string"},
    {"{\"complete\": 1, \"tensors\": []}", "complete: expected true or false"},
    {"{\"status\": 1, \"tensors\": []}", "status: expected a string"},
    {"{\"dump_args_level\": 4, \"tensors\": []}", "dump_args_level: 4 is outside"},
    {"{\"kernels\": [{\"func_id\": 3}], \"tensors\": []}", "kernels[0]: \"name\" is missing"},
    {"{\"kernels\": 3, \"tensors\": []}", "kernels: expected an array"},
    {"{\"kernels\": [{\"func_id\": 1, \"name\": \"a\"}], \"tensors\": [{" TASK ", " SHAPED
     ", \"func_id\": 1, \"kernel\": \"b\"}]}",
     "kernels[0].name: \"a\" differs from \"b\""},
    {"{\"losses\": [{}], \"tensors\": []}", "losses[0]: \"task_seq\" is missing"},
    {"{\"losses\": [{\"task_seq\": 1, \"arg_index\": 1, \"stage\": null, \"cause\": \"rain\","
     " \"count\": 1}], \"tensors\": []}",
     "losses[0].cause: unknown value \"rain\""},
    {"{\"skipped\": [{\"task_seq\": 1, \"arg_index\": 1, \"reason\": \"x\"}], \"tensors\": []}",
     "skipped[0].reason: unknown value \"x\""},
    {"{\"new\": [1,], \"tensors\": []}", "line 1"},
    {"{\"new\": \"\xc0\xaf\", \"tensors\": []}", "line 1"},
    {"{\"dump_level\": \"bogus\", \"tensors\": []}", "dump_level: unknown value \"bogus\"; "
                                                     "expected full"},
    {"{\"dump_level\": 2, \"tensors\": []}", "dump_level: expected a string"},
    {"{\"dump_args_level\": -1, \"tensors\": []}", "dump_args_level: -1 is outside"},
    {"{\"dump_level\": \"full\", \"dump_args_level\": 1, \"tensors\": []}",
     "dump_args_level: 1 does not match dump_level \"full\""},
    {"{\"kernels\": [{\"func_id\": 1024, \"name\": \"a\"}], \"tensors\": []}",
     "kernels[0].func_id: 1024 is outside 0 to 1023"},
    {"{\"kernels\": [{\"func_id\": -1, \"name\": \"a\"}], \"tensors\": []}",
     "kernels[0].func_id: -1 is outside"},
    {"{\"kernels\": [{\"func_id\": 1, \"name\": \"a\"}, {\"func_id\": 1, \"name\": \"b\"}],"
     " \"tensors\": []}",
     "kernels[1].name: \"b\" differs from \"a\", the name of an earlier kernel with func_id 1"},
    {"{\"kernels\": [{\"func_id\": 1, \"name\": \"a\\u001b\"}], \"tensors\": [{" TASK ", " SHAPED
     ", \"func_id\": 1, \"kernel\": \"b\\n\"}]}",
     "kernels[0].name: \"a?\" differs from \"b?\", which entries give func_id 1"},
    {"{\"kernels\": [3], \"tensors\": []}", "kernels[0]: expected an object"},
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

/* The table of kernels comes first: an error in it is reported, not one in the list that names
 * them. */
static void a_table_of_too_many_kernels_is_refused_first(void **state) {
    (void)state;
    static char text[TEXT_BYTES];
    gbx_reader *reader = NULL;
    size_t used = (size_t)snprintf(text, sizeof text, "{\"kernels\": [");
    for (int i = 0; i < GBX_MAX_KERNELS + 1; ++i)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"func_id\": %d, \"name\": \"k\"}", i ? "," : "", i % 2);
    snprintf(text + used, sizeof text - used, "], \"skipped\": [3], \"tensors\": []}");
    write_manifest("tensor_dump.json", text);
    assert_fails(gbx_reader_open("d", GBX_INDEX_ARGUMENTS, &reader), GBX_BAD_FORMAT,
                 "d/tensor_dump.json: kernels: has 1025 kernels, more than 1024");
}

static void paths_that_are_not_files_are_refused_without_waiting(void **state) {
    (void)state;
    gbx_reader *reader = NULL;
    gbx_import import = {.fd = -1};
    size_t files = count_open_files();
    write_entries(ENTRY);
    assert_int_equal(unlink("d/b.bin"), 0);
    assert_int_equal(mkfifo("d/b.bin", 0666), 0);
    reader = open_dump("d");
    assert_fails(gbx_reader_open_payload(reader), GBX_IO, "d/b.bin: it is not a regular file");
    gbx_reader_close(reader);
    assert_int_equal(mkfifo("d/pipe.json", 0666), 0);
    snprintf(import.path, sizeof import.path, "d/pipe.json");
    assert_fails(gbx_import_read(&import), GBX_BAD_FORMAT, "d/pipe.json is not a regular file");
    snprintf(import.path, sizeof import.path, "/dev/zero");
    assert_fails(gbx_import_read(&import), GBX_BAD_FORMAT, "/dev/zero is not a regular file");
    snprintf(import.path, sizeof import.path, "d");
    assert_fails(gbx_import_read(&import), GBX_BAD_FORMAT, "d is not a regular file");
    assert_int_equal(count_open_files(), files);
}

/* Cut after any byte: no part is taken for a complete manifest. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_entries_are_refused_by_name, enter, leave),
        cmocka_unit_test_setup_teardown(wrong_manifests_are_refused_by_name, enter, leave),
        cmocka_unit_test_setup_teardown(a_table_of_too_many_kernels_is_refused_first, enter, leave),
        cmocka_unit_test_setup_teardown(paths_that_are_not_files_are_refused_without_waiting, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(a_manifest_that_is_cut_is_refused_wherever, enter, leave),
        cmocka_unit_test_setup_teardown(payload_beyond_its_file_is_refused_by_entry, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
