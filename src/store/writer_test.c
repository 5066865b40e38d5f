#include "checks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal_parse.h"
#include "scratch.h"
#include "store/reader.h"
#include "store/writer.h"
#include "store_sample.h"

#define JOURNAL "dump/tensor_dump/tensor_dump.rec"

static int enter(void **state) {
    (void)state;
    return scratch_enter(NULL) ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

static gbx_store_config sample_config(const char *directory) {
    return (gbx_store_config){.directory = directory,
                              .run_json = sample_run_json,
                              .has_tensors = true,
                              .has_args = true,
                              .is_deduplicated = true};
}

static gbx_store *create_sample(const char *directory) {
    gbx_store_config config = sample_config(directory);
    gbx_store *store;
    assert_ok(gbx_store_create(&config, &store));
    return store;
}

static gbx_record_end sample_end(void) {
    return (gbx_record_end){.head = {.stage = GBX_STAGE_NONE,
                                     .arg_index = GBX_ARG_NONE,
                                     .flags = GBX_FLAG_COMPLETE,
                                     .time_ns = 77},
                            .record_count = 2,
                            .task_count = 3,
                            .dispatch_count = 4,
                            .payload_bytes = 5,
                            .stored_bytes = 6,
                            .deduplicated = 7,
                            .dropped = 8,
                            .stall_ns = 9};
}

static void check_end(const unsigned char *record, const char *text) {
    static const unsigned char head[8] = {11, 0xff, 0, 0xff, 0, 0, 0, 1};
    size_t bytes = strlen(text);
    assert_memory_equal(record, head, 8);
    assert_int_equal(journal_record_bytes(record), (104 + bytes + 7) / 8 * 8);
    assert_int_equal(journal_u64(record + 16), 0);
    assert_int_equal(journal_u64(record + 24), 77);
    for (size_t i = 0; i < 8; ++i)
        assert_int_equal(journal_u64(record + 32 + 8 * i), 2 + i);
    assert_int_equal(journal_u64(record + 96), bytes);
    assert_memory_equal(record + 104, text, bytes);
    for (size_t i = 104 + bytes; i < journal_record_bytes(record); ++i)
        assert_int_equal(record[i], 0);
}

static size_t file_bytes(const char *path) {
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return (size_t)found.st_size;
}

static void dump_and_check(bool is_deduplicated) {
    enum { TASKS = 3000 };
    gbx_store_config config = sample_config("dump");
    config.is_deduplicated = is_deduplicated;
    gbx_store *store;
    parsed_journal journal;
    size_t duplicates;
    gbx_record_end end = sample_end();
    assert_ok(gbx_store_create(&config, &store));
    for (uint64_t task = 0; task < TASKS; ++task)
        assert_true(sample_write_task(store, task));
    assert_null(gbx_store_failure(store));
    uint64_t reserved_bytes = gbx_store_reserve(store, 1); /* never written */
    assert_ok(gbx_store_finish(store, &end, "kernel fold (func 3) crashed", NULL));
    gbx_store_destroy(store);
    journal_parse(JOURNAL, &journal);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    assert_int_equal(journal.record_count, 2 + SAMPLE_RECORDS_PER_TASK * TASKS);
    assert_int_equal(sample_check("dump", &journal, &duplicates), journal.record_count - 1);
    check_end(journal.records[journal.record_count - 1], "kernel fold (func 3) crashed");
    assert_int_equal(duplicates, is_deduplicated ? TASKS / 5 : 0);
    assert_int_equal(file_bytes("dump/tensor_dump/tensor_dump.bin"), reserved_bytes);
    journal_parse_free(&journal);
}

static void every_byte_of_records_and_payload_is_on_disk(void **state) {
    (void)state;
    dump_and_check(true);
}

static void without_deduplication_every_payload_is_stored(void **state) {
    (void)state;
    dump_and_check(false);
}

static void run_record_is_there_at_once(void **state) {
    (void)state;
    gbx_store *store = create_sample("dump");
    parsed_journal journal;
    size_t duplicates;
    journal_parse(JOURNAL, &journal);
    assert_int_equal(sample_check("dump", &journal, &duplicates), 1);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    journal_parse_free(&journal);
    gbx_store_destroy(store);
    journal_parse(JOURNAL, &journal);
    assert_int_equal(journal.record_count, 1);
    journal_parse_free(&journal);
    assert_false(scratch_exists("dump/tensor_dump/tensor_dump.json"));
}

static void finish_and_check_files(const char *directory, bool has_tensors, bool has_args) {
    static const char *const names[] = {"tensor_dump.rec", "tensor_dump.bin", "tensor_dump.json",
                                        "args_dump.json", "kernel_args_dump.json"};
    const bool expected[] = {true, has_tensors, has_tensors, has_args, has_args};
    gbx_store_config config = sample_config(directory);
    config.has_tensors = has_tensors;
    config.has_args = has_args;
    gbx_store *store;
    gbx_record_end end = {.head = {.flags = GBX_FLAG_COMPLETE}};
    assert_ok(gbx_store_create(&config, &store));
    assert_ok(gbx_store_finish(store, &end, "ok", NULL));
    gbx_store_destroy(store);
    for (size_t i = 0; i < 5; ++i) {
        char path[128];
        snprintf(path, sizeof path, "%s/tensor_dump/%s", directory, names[i]);
        assert_int_equal(scratch_exists(path), expected[i]);
    }
}

static void only_the_files_that_are_wanted_are_made(void **state) {
    (void)state;
    finish_and_check_files("tensors", true, false);
    finish_and_check_files("args", false, true);
    finish_and_check_files("both", true, true);
}

static void parents_are_made(void **state) {
    (void)state;
    gbx_store_destroy(create_sample("a/b//c/dump"));
    assert_true(scratch_exists("a/b/c/dump/tensor_dump/tensor_dump.bin"));
    gbx_store_destroy(create_sample("a/other/"));
    assert_true(scratch_exists("a/other/tensor_dump/tensor_dump.bin"));
    assert_int_equal(mkdir("empty", 0777), 0);
    gbx_store_destroy(create_sample("empty"));
    char *absolute = realpath("a", NULL);
    char path[256];
    snprintf(path, sizeof path, "%s/absolute", absolute);
    free(absolute);
    gbx_store_destroy(create_sample(path));
    assert_true(scratch_exists("a/absolute/tensor_dump/tensor_dump.rec"));
}

static void dump_that_is_there_is_not_touched(void **state) {
    (void)state;
    static const char *const names[] = {"tensor_dump.rec", "tensor_dump.bin", "tensor_dump.json",
                                        "args_dump.json", "kernel_args_dump.json"};
    size_t open_files = count_open_files();
    for (size_t i = 0; i < 5; ++i) {
        char directory[16], path[64];
        snprintf(directory, sizeof directory, "d%zu", i);
        snprintf(path, sizeof path, "%s/tensor_dump/%s", directory, names[i]);
        assert_int_equal(mkdir(directory, 0777), 0);
        snprintf(path, sizeof path, "%s/tensor_dump", directory);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof path, "%s/tensor_dump/%s", directory, names[i]);
        scratch_write(path, "precious", 8);
        gbx_store_config config = sample_config(directory);
        gbx_store *store;
        assert_fails(gbx_store_create(&config, &store), GBX_INVALID_ARGUMENT, path,
                     "already holds a dump; choose another directory");
        assert_null(store);
        size_t size;
        unsigned char *file = scratch_read(path, &size);
        assert_int_equal(size, 8);
        assert_memory_equal(file, "precious", 8);
        free(file);
        for (size_t k = 0; k < 5; ++k) {
            snprintf(path, sizeof path, "%s/tensor_dump/%s", directory, names[k]);
            assert_int_equal(scratch_exists(path), i == k);
        }
    }
    assert_int_equal(count_open_files(), open_files);
}

static void directory_that_cannot_be_created_is_reported(void **state) {
    (void)state;
    gbx_store *store;
    scratch_write("file", "x", 1);
    gbx_store_config config = sample_config("file/dump");
    assert_fails(gbx_store_create(&config, &store), GBX_IO, "file", "choose another directory");
    config.directory = "file";
    assert_fails(gbx_store_create(&config, &store), GBX_IO, "creating the directory file",
                 "a file has that name");
    config.directory = "";
    assert_fails(gbx_store_create(&config, &store), GBX_INVALID_ARGUMENT, "no directory");
    config.directory = NULL;
    assert_fails(gbx_store_create(&config, &store), GBX_INVALID_ARGUMENT, "no directory");
}

static void description_of_the_run_may_fill_a_block(void **state) {
    (void)state;
    enum { MOST = (1 << 20) - 40 };
    char *json = malloc(MOST + 2);
    assert_non_null(json);
    for (size_t i = 0; i <= MOST; ++i)
        json[i] = (char)('a' + i % 23);
    json[MOST + 1] = '\0';
    gbx_store_config config = sample_config("dump");
    config.run_json = json;
    gbx_store *store;
    assert_fails(gbx_store_create(&config, &store), GBX_INVALID_ARGUMENT, "1048537 bytes",
                 "1048536");
    assert_false(scratch_exists(JOURNAL)); /* so that the directory can be used again */
    assert_false(scratch_exists("dump/tensor_dump/tensor_dump.bin"));
    json[MOST] = '\0';
    assert_ok(gbx_store_create(&config, &store));
    gbx_store_destroy(store);
    parsed_journal journal;
    journal_parse(JOURNAL, &journal);
    assert_int_equal(journal.record_count, 1);
    assert_int_equal(journal_u64(journal.records[0] + 32), MOST);
    assert_memory_equal(journal.records[0] + 40, json, MOST);
    journal_parse_free(&journal);
    free(json);
}

static void misuse_is_refused(void **state) {
    (void)state;
    _Alignas(4096) static unsigned char pages[2 * 4096];
    gbx_store *store = create_sample("dump");
    uint64_t offset = gbx_store_reserve(store, 4096);
    gbx_record_end end = sample_end();
    assert_fails(gbx_store_write(store, offset, pages + 64, 4096), GBX_INTERNAL,
                 "not complete pages");
    assert_fails(gbx_store_write(store, offset + 64, pages, 4096), GBX_INTERNAL,
                 "not complete pages");
    assert_fails(gbx_store_write(store, offset, pages, 100), GBX_INTERNAL, "not complete pages");
    assert_fails(gbx_store_write(store, offset, pages, 8192), GBX_INTERNAL, "reserved range");
    assert_fails(gbx_store_write(store, gbx_store_reserve(store, UINT64_MAX), pages, 4096),
                 GBX_INTERNAL, "reserved range");
    assert_int_equal(gbx_status_code(gbx_store_failure(store)), GBX_INTERNAL);
    assert_ok(gbx_store_write(store, offset, pages, 4096));
    assert_ok(gbx_store_write(store, offset, pages, 0));
    assert_ok(gbx_store_finish(store, &end, NULL, NULL));
    assert_fails(gbx_store_finish(store, &end, NULL, NULL), GBX_INTERNAL, "finished");
    gbx_store_destroy(store);
    gbx_store_destroy(NULL);
}

static void without_tensors_no_payload_is_used(void **state) {
    (void)state;
    _Alignas(4096) static unsigned char pages[4096];
    gbx_store_config config = sample_config("dump");
    config.has_tensors = false;
    gbx_store *store;
    gbx_hash128 hash = {1, 2};
    uint64_t offset;
    assert_ok(gbx_store_create(&config, &store));
    offset = gbx_store_reserve(store, 4096);
    assert_fails(gbx_store_write(store, offset, pages, 4096), GBX_INTERNAL, "reserved range");
    gbx_store_remember(store, hash, 64, 128);
    assert_false(gbx_store_find(store, hash, 64, &offset));
    gbx_store_destroy(store);
    assert_false(scratch_exists("dump/tensor_dump/tensor_dump.bin"));
}

/* The outcome decides; for dumps of older versions, two texts do. */
static void the_end_says_how_the_run_ended(void **state) {
    (void)state;
    static const gbx_record_outcome failed = {.ending = GBX_ENDING_FAILED,
                                              .code = GBX_DEVICE_FAULT,
                                              .fault = GBX_OUTCOME_SIGNAL,
                                              .signal = 11,
                                              .task_id = UINT64_C(0x123456789abcdef0),
                                              .func_id = 3,
                                              .core_id = 4,
                                              .block_idx = 1,
                                              .block_num = 8,
                                              .address = 16,
                                              .address_kind = GBX_OUTCOME_ADDRESS_KNOWN};
    static const gbx_record_outcome newer = {.ending = 77, .func_id = GBX_OUTCOME_NO_KERNEL};
    static const struct {
        const char *text;
        const gbx_record_outcome *outcome;
        gbx_run_ending ending;
    } cases[] = {{"", &failed, GBX_ENDING_FAILED},
                 {"seven..", &failed, GBX_ENDING_FAILED},
                 {"eight...", &failed, GBX_ENDING_FAILED},
                 {"nine.....", &failed, GBX_ENDING_FAILED},
                 {"ok", &failed, GBX_ENDING_FAILED},
                 {"ok", &newer, GBX_ENDING_UNKNOWN},
                 {"ok", NULL, GBX_ENDING_WELL},
                 {"ok.", NULL, GBX_ENDING_UNKNOWN},
                 {"done, but records were lost", NULL, GBX_ENDING_RECORDS_LOST},
                 {"", NULL, GBX_ENDING_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char directory[16];
        gbx_reader *reader;
        gbx_record_end end = sample_end();
        snprintf(directory, sizeof directory, "dump%zu", i);
        gbx_store *store = create_sample(directory);
        assert_ok(gbx_store_finish(store, &end, cases[i].text, cases[i].outcome));
        gbx_store_destroy(store);
        assert_ok(gbx_reader_open(directory, GBX_INDEX_NOTHING, &reader));
        assert_string_equal(gbx_reader_end_text(reader), cases[i].text);
        assert_int_equal(gbx_reader_ending(reader), cases[i].ending);
        assert_int_equal(gbx_reader_has_ended_well(reader), cases[i].ending == GBX_ENDING_WELL);
        if (cases[i].outcome)
            assert_memory_equal(gbx_reader_outcome(reader), cases[i].outcome,
                                sizeof *cases[i].outcome);
        else
            assert_null(gbx_reader_outcome(reader));
        gbx_reader_close(reader);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_byte_of_records_and_payload_is_on_disk, enter, leave),
        cmocka_unit_test_setup_teardown(without_deduplication_every_payload_is_stored, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(run_record_is_there_at_once, enter, leave),
        cmocka_unit_test_setup_teardown(only_the_files_that_are_wanted_are_made, enter, leave),
        cmocka_unit_test_setup_teardown(parents_are_made, enter, leave),
        cmocka_unit_test_setup_teardown(dump_that_is_there_is_not_touched, enter, leave),
        cmocka_unit_test_setup_teardown(directory_that_cannot_be_created_is_reported, enter, leave),
        cmocka_unit_test_setup_teardown(description_of_the_run_may_fill_a_block, enter, leave),
        cmocka_unit_test_setup_teardown(misuse_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(without_tensors_no_payload_is_used, enter, leave),
        cmocka_unit_test_setup_teardown(the_end_says_how_the_run_ended, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
