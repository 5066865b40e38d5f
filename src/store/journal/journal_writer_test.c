#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal_parse.h"
#include "scratch.h"
#include "store/journal/journal_writer.h"
#include "store/journal/record.h"

#define PATH "folder/tensor_dump.rec"

static int enter(void **state) {
    (void)state;
    return scratch_enter(NULL) && mkdir("folder", 0777) == 0 ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

static void open_journal(gbx_journal_writer *journal) {
    int folder_fd = open("folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder_fd >= 0);
    assert_ok(gbx_journal_writer_open(journal, folder_fd, "folder"));
    close(folder_fd);
}

static uint64_t mix(uint64_t number) {
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 27;
}

enum { TASK_AT = 2 }; /* the word with the task */

/* Word `at` of record `number`, except the type and words of its head. Task numbers have 44 bits.
 */
static uint64_t word_of(uint64_t number, size_t at) {
    uint64_t word = mix(number * 65599 + at);
    return at == TASK_AT ? word >> 20 : word;
}

/* Of every kind: about tasks or not, unknown, and beyond the bits of RANGE. */
static unsigned type_of(uint64_t number) {
    static const uint8_t others[] = {40, 63, 64, 100, 145, 255};
    uint64_t random = mix(number);
    return random % 500 < sizeof others ? others[random % 500] : 1 + (unsigned)(random % 15);
}

/* Mostly short, sometimes longer than a usual block. */
static uint32_t words_of(uint64_t number) {
    uint64_t random = mix(~number);
    if (random % 1000 == 0)
        return 30000 + (uint32_t)(random >> 20) % 60000;
    return 4 + (uint32_t)(random >> 20) % 40;
}

static void append(gbx_journal_writer *journal, uint64_t number) {
    uint32_t words = words_of(number);
    unsigned char *record =
        gbx_journal_writer_append(journal, (gbx_record_type)type_of(number), words);
    assert_non_null(record);
    unsigned char type = record[0];
    for (size_t i = 0; i < words; ++i) {
        uint64_t word = word_of(number, i);
        if (i == 1)
            memcpy(record + 12, &word, 4); /* beside head.words */
        else
            memcpy(record + 8 * i, &word, 8);
    }
    record[0] = type;
}

static void check_record(const unsigned char *record, uint64_t number) {
    assert_int_equal(journal_record_type(record), type_of(number));
    assert_int_equal(journal_record_bytes(record), words_of(number) * 8);
    assert_int_equal(journal_u64(record) >> 8, word_of(number, 0) >> 8);
    assert_int_equal(journal_u32(record + 12), (uint32_t)word_of(number, 1));
    for (size_t i = 2; i < words_of(number); ++i)
        assert_int_equal(journal_u64(record + 8 * i), word_of(number, i));
}

static void check_block_sizes(const parsed_journal *journal) {
    size_t long_count = 0;
    for (size_t i = 0; i < journal->block_count; ++i) {
        const parsed_block *block = &journal->blocks[i];
        assert_true(block->record_bytes > 0 && block->record_bytes <= GBX_BLOCK_MAX_BYTES);
        assert_int_equal(block->has_range, i > 0);
        if (block->record_bytes > GBX_JOURNAL_BLOCK_BYTES + sizeof(gbx_record_range)) {
            assert_int_equal(block->record_count, 1);
            ++long_count;
        }
    }
    assert_true(long_count > 5);
}

static void every_byte_of_every_record_is_in_the_file(void **state) {
    (void)state;
    enum { COUNT = 30000 };
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    for (uint64_t i = 0; i < COUNT; ++i) {
        append(&writer, i);
        if (i % 7919 == 0)
            assert_ok(gbx_journal_writer_flush(&writer));
    }
    assert_ok(gbx_journal_writer_sync(&writer));
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    assert_int_equal(journal.record_count, COUNT);
    for (uint64_t i = 0; i < COUNT; ++i)
        check_record(journal.records[i], i);
    check_block_sizes(&journal);
    journal_parse_free(&journal);
}

/* A block that has no record about a task, one of a single task, and the longest with a RANGE. */
static void range_says_what_its_block_holds(void **state) {
    (void)state;
    enum { LONGEST = (GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_range)) / 8 };
    static const uint32_t words[] = {4, 4, 4, LONGEST, LONGEST + 1};
    static const unsigned types[] = {1, 9, 5, 7, 7};
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    for (size_t i = 0; i < 5; ++i) {
        gbx_record *record =
            gbx_journal_writer_append(&writer, (gbx_record_type)types[i], words[i]);
        record->task = GBX_RECORD_TASK_END - 1;
        assert_ok(gbx_journal_writer_flush(&writer));
    }
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal); /* compares each RANGE with its block */
    assert_int_equal(journal.block_count, 5);
    for (size_t i = 0; i < 5; ++i)
        assert_int_equal(journal.blocks[i].has_range, i > 0 && i < 4);
    journal_parse_free(&journal);
}

/* The buffer is reused: fields that a caller leaves out do not keep their old bytes. */
static void room_is_zero_but_for_type_and_words(void **state) {
    (void)state;
    static const unsigned char zeros[72];
    gbx_journal_writer writer;
    open_journal(&writer);
    for (size_t round = 0; round < 3; ++round) {
        for (size_t i = 0; i < 200; ++i) {
            unsigned char *record = gbx_journal_writer_append(&writer, GBX_RECORD_TENSOR, 10);
            assert_int_equal(record[0], GBX_RECORD_TENSOR);
            assert_memory_equal(record + 1, zeros, 7);
            assert_int_equal(journal_u32(record + 8), 10);
            assert_memory_equal(record + 12, zeros, 68);
            memset(record + 12, 0xff, 68);
        }
        assert_ok(gbx_journal_writer_flush(&writer));
    }
    gbx_journal_writer_close(&writer);
}

static void records_are_in_the_file_after_a_flush_and_not_before(void **state) {
    (void)state;
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    append(&writer, 1);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.file_bytes, 64);
    journal_parse_free(&journal);
    for (size_t i = 0; i < 2; ++i) { /* the second one has nothing to write */
        assert_ok(gbx_journal_writer_flush(&writer));
        journal_parse(PATH, &journal);
        assert_int_equal(journal.block_count, 1);
        check_record(journal.records[0], 1);
        assert_int_equal(journal.good_bytes, journal.file_bytes);
        journal_parse_free(&journal);
    }
    append(&writer, 2);
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.record_count, 1);
    journal_parse_free(&journal);
}

static void record_as_long_as_a_block_goes_and_a_longer_one_fails(void **state) {
    (void)state;
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    append(&writer, 1);
    unsigned char *record =
        gbx_journal_writer_append(&writer, GBX_RECORD_RUN, GBX_BLOCK_MAX_BYTES / 8);
    assert_non_null(record);
    memset(record + 12, 0x5a, GBX_BLOCK_MAX_BYTES - 12);
    append(&writer, 2);
    assert_null(gbx_journal_writer_append(&writer, GBX_RECORD_RUN, GBX_BLOCK_MAX_BYTES / 8 + 1));
    assert_null(gbx_journal_writer_append(&writer, GBX_RECORD_RUN, UINT32_MAX));
    assert_null(gbx_journal_writer_append(&writer, GBX_RECORD_DONE, 4));
    assert_fails(gbx_journal_writer_flush(&writer), GBX_INTERNAL, "131073 words", PATH);
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.block_count, 2);
    assert_false(journal.blocks[1].has_range); /* it has no room */
    check_record(journal.records[0], 1);
    assert_int_equal(journal_record_bytes(journal.records[1]), GBX_BLOCK_MAX_BYTES);
    for (size_t i = 12; i < GBX_BLOCK_MAX_BYTES; ++i)
        assert_int_equal(journal.records[1][i], 0x5a);
    journal_parse_free(&journal);
}

/* The limit cuts the second block in two. */
static void failed_block_is_taken_away_and_the_failure_stays(void **state) {
    (void)state;
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    append(&writer, 1);
    assert_ok(gbx_journal_writer_flush(&writer));
    size_t good_bytes = (size_t)writer.file_bytes;
    scratch_limit_files(good_bytes + 48);
    append(&writer, 2);
    append(&writer, 3);
    gbx_status status = gbx_journal_writer_flush(&writer);
    scratch_limit_files(UINT64_MAX);
    assert_fails(status, GBX_LOST, "writing block 1, 2 records", PATH, "File too large",
                 "ulimit -f");
    assert_null(gbx_journal_writer_append(&writer, GBX_RECORD_DONE, 4));
    assert_fails(gbx_journal_writer_flush(&writer), GBX_LOST, "writing block 1");
    assert_fails(gbx_journal_writer_sync(&writer), GBX_LOST, "writing block 1");
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.file_bytes, good_bytes);
    assert_int_equal(journal.record_count, 1);
    check_record(journal.records[0], 1);
    journal_parse_free(&journal);
}

/* One block more, after the last that was written. */
static void last_block_follows_a_failure(void **state) {
    (void)state;
    gbx_journal_writer writer;
    parsed_journal journal;
    open_journal(&writer);
    append(&writer, 1);
    assert_ok(gbx_journal_writer_flush(&writer));
    scratch_limit_files((size_t)writer.file_bytes + 48);
    append(&writer, 2);
    append(&writer, 3);
    gbx_status status = gbx_journal_writer_flush(&writer);
    scratch_limit_files(UINT64_MAX);
    assert_fails(status, GBX_LOST, "writing block 1");
    assert_int_equal(writer.error, EFBIG);
    assert_fails(gbx_journal_writer_begin_last(&writer), GBX_LOST, "writing block 1");
    append(&writer, 4);
    assert_ok(gbx_journal_writer_sync(&writer));
    gbx_journal_writer_close(&writer);
    journal_parse(PATH, &journal);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    assert_int_equal(journal.record_count, 2);
    check_record(journal.records[0], 1);
    check_record(journal.records[1], 4);
    journal_parse_free(&journal);
}

static size_t disk_bytes(void) {
    struct stat found;
    assert_int_equal(stat(PATH, &found), 0);
    return (size_t)found.st_blocks * 512;
}

static void room_is_taken_ahead_and_given_back(void **state) {
    (void)state;
    gbx_journal_writer writer;
    open_journal(&writer);
    append(&writer, 1);
    assert_ok(gbx_journal_writer_flush(&writer));
    if (writer.taken_bytes == 0) {
        print_message("skipped: this file system cannot preallocate\n");
        gbx_journal_writer_close(&writer);
        skip();
    }
    for (uint64_t i = 0; i < 20000; ++i) {
        append(&writer, i);
        assert_true(disk_bytes() >= writer.file_bytes + (1 << 20));
    }
    assert_ok(gbx_journal_writer_sync(&writer));
    assert_true(disk_bytes() < writer.file_bytes + (64 << 10));
    gbx_journal_writer_close(&writer);
}

static bool can_lock(int operation) {
    int fd = open(PATH, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    bool is_locked = flock(fd, operation | LOCK_NB) == 0;
    close(fd);
    return is_locked;
}

static void file_is_locked_while_it_is_written(void **state) {
    (void)state;
    gbx_journal_writer writer;
    open_journal(&writer);
    assert_false(can_lock(LOCK_SH));
    assert_ok(gbx_journal_writer_sync(&writer));
    assert_true(can_lock(LOCK_SH));
    assert_false(can_lock(LOCK_EX));
    gbx_journal_writer_close(&writer);
    assert_true(can_lock(LOCK_EX));
}

static void file_that_is_there_is_not_touched(void **state) {
    (void)state;
    gbx_journal_writer writer;
    int folder_fd = open("folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    scratch_write(PATH, "precious", 8);
    assert_fails(gbx_journal_writer_open(&writer, folder_fd, "folder"), GBX_INVALID_ARGUMENT, PATH,
                 "already holds a dump; choose another directory");
    close(folder_fd);
    size_t size;
    unsigned char *file = scratch_read(PATH, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(file, "precious", 8);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_byte_of_every_record_is_in_the_file, enter, leave),
        cmocka_unit_test_setup_teardown(range_says_what_its_block_holds, enter, leave),
        cmocka_unit_test_setup_teardown(room_is_zero_but_for_type_and_words, enter, leave),
        cmocka_unit_test_setup_teardown(records_are_in_the_file_after_a_flush_and_not_before, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(record_as_long_as_a_block_goes_and_a_longer_one_fails,
                                        enter, leave),
        cmocka_unit_test_setup_teardown(failed_block_is_taken_away_and_the_failure_stays, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(last_block_follows_a_failure, enter, leave),
        cmocka_unit_test_setup_teardown(room_is_taken_ahead_and_given_back, enter, leave),
        cmocka_unit_test_setup_teardown(file_is_locked_while_it_is_written, enter, leave),
        cmocka_unit_test_setup_teardown(file_that_is_there_is_not_touched, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
