#include "checks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "journal_parse.h"
#include "scratch.h"
#include "store/writer.h"
#include "store_sample.h"

static int enter(void **state) {
    (void)state;
    return scratch_enter(NULL) ? 0 : -1;
}

static int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

static gbx_store *create_sample(const char *directory) {
    gbx_store_config config = {.directory = directory,
                               .run_json = sample_run_json,
                               .has_tensors = true,
                               .is_deduplicated = true};
    gbx_store *store;
    assert_ok(gbx_store_create(&config, &store));
    return store;
}

static void append_losses(gbx_store *store, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        gbx_record_loss *loss = gbx_store_append(store, GBX_RECORD_LOSS, sizeof *loss / 8);
        assert_non_null(loss);
        loss->head.stage = GBX_STAGE_NONE;
        loss->head.arg_index = GBX_ARG_NONE;
        loss->cause = GBX_LOSS_DISK;
        loss->count = i + 1;
    }
}

static void check_losses(const parsed_journal *journal, size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const unsigned char *record = journal->records[first + i];
        assert_int_equal(journal_record_type(record), 9);
        assert_int_equal(journal_u32(record + 32), 1);
        assert_int_equal(journal_u64(record + 40), i + 1);
    }
}

/* Half a MiB of losses still fits when no payload does. */
static void full_disk_keeps_room_for_the_journal(void **state) {
    (void)state;
    enum { LOSSES = (512 << 10) / 48 };
    if (!scratch_mount("tmpfs", "disk", "size=8m"))
        skip();
    static const char filler[4 << 20];
    scratch_write("disk/filler", filler, sizeof filler);
    gbx_store *store = create_sample("disk/dump");
    uint64_t tasks = 0;
    while (sample_write_task(store, tasks))
        ++tasks;
    assert_true(tasks > 20);
    assert_int_equal(gbx_status_code(gbx_store_failure(store)), GBX_LOST);
    assert_non_null(strstr(gbx_status_message(gbx_store_failure(store)), "No space left"));
    append_losses(store, LOSSES);
    assert_ok(gbx_store_flush(store));
    assert_int_equal(unlink("disk/filler"), 0);
    gbx_record_end end = {.head = {.stage = GBX_STAGE_NONE}, .dropped = LOSSES};
    assert_ok(gbx_store_finish(store, &end, "records were lost", NULL));
    gbx_store_destroy(store);
    parsed_journal journal;
    size_t duplicates;
    journal_parse("disk/dump/tensor_dump/tensor_dump.rec", &journal);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    size_t at = sample_check("disk/dump", &journal, &duplicates);
    assert_int_equal(at, 1 + SAMPLE_RECORDS_PER_TASK * tasks);
    check_losses(&journal, at, LOSSES);
    assert_int_equal(journal.record_count, at + LOSSES + 1);
    journal_parse_free(&journal);
    scratch_unmount("disk");
}

static uint64_t count_records(const parsed_journal *journal, uint32_t type) {
    uint64_t count = 0;
    for (size_t i = 0; i < journal->record_count; ++i)
        count += journal_record_type(journal->records[i]) == type;
    return count;
}

/* The journal alone fills the disk: its last block still says so. */
static void journal_on_a_full_disk_has_an_end(void **state) {
    (void)state;
    enum { DONE = 5, LOSS = 9, END = 11 };
    static const char *const sizes[] = {"size=64k", "size=300k", "size=1m", "size=5m"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        char name[16], path[64];
        snprintf(name, sizeof name, "disk%zu", i);
        snprintf(path, sizeof path, "%s/dump", name);
        if (!scratch_mount("tmpfs", name, sizes[i]))
            skip();
        gbx_store *store = create_sample(path);
        uint64_t appended = 0, written = 0;
        uint32_t blocks = gbx_store_block_count(store);
        while (gbx_store_append(store, GBX_RECORD_DONE, 4)) {
            if (gbx_store_block_count(store) != blocks)
                written = appended;
            blocks = gbx_store_block_count(store);
            ++appended;
        }
        assert_true(appended > written);
        assert_int_equal(gbx_store_disk_error(store), ENOSPC);
        gbx_store_begin_last(store);
        append_losses(store, 1);
        gbx_record_end end = {.head = {.stage = GBX_STAGE_NONE}, .dropped = 1};
        assert_fails(gbx_store_finish(store, &end, "the disk is full", NULL), GBX_LOST,
                     "No space left");
        gbx_store_destroy(store);
        parsed_journal journal;
        strcat(path, "/tensor_dump/tensor_dump.rec");
        journal_parse(path, &journal);
        assert_int_equal(journal.good_bytes, journal.file_bytes);
        assert_int_equal(count_records(&journal, DONE), written);
        assert_int_equal(count_records(&journal, LOSS), 1);
        assert_int_equal(journal_record_type(journal.records[journal.record_count - 1]), END);
        journal_parse_free(&journal);
        scratch_unmount(name);
    }
}

/* A limit on file sizes that payload hits long before the journal does. */
static void failed_journal_is_reported_and_its_records_are_good(void **state) {
    (void)state;
    enum { LIMIT = 600 << 10 };
    gbx_store *store = create_sample("dump");
    scratch_limit_files(LIMIT);
    uint64_t tasks = 0;
    while (sample_write_task(store, tasks))
        ++tasks;
    size_t count = 0;
    while (gbx_store_append(store, GBX_RECORD_DONE, 4))
        ++count;
    assert_true(count > (LIMIT - (256 << 10)) / 32);
    assert_null(gbx_store_append(store, GBX_RECORD_DONE, 4));
    assert_fails(gbx_store_flush(store), GBX_LOST, "tensor_dump.rec", "File too large");
    gbx_record_end end = {.head = {.flags = GBX_FLAG_COMPLETE}};
    gbx_status status = gbx_store_finish(store, &end, "ok", NULL);
    scratch_limit_files(UINT64_MAX);
    assert_fails(status, GBX_LOST, "writing block 3", "the records before it are kept");
    gbx_store_destroy(store);
    parsed_journal journal;
    size_t duplicates;
    journal_parse("dump/tensor_dump/tensor_dump.rec", &journal);
    assert_int_equal(journal.good_bytes, journal.file_bytes);
    assert_int_equal(journal.block_count, 4);
    size_t at = sample_check("dump", &journal, &duplicates);
    assert_int_equal(at, 1 + SAMPLE_RECORDS_PER_TASK * tasks);
    for (; at + 1 < journal.record_count; ++at)
        assert_int_equal(journal_record_type(journal.records[at]), 5);
    assert_int_equal(journal_record_type(journal.records[at]), 11); /* END, not complete */
    assert_int_equal(journal_u32(journal.records[at] + 4) >> 16 & GBX_FLAG_COMPLETE, 0);
    journal_parse_free(&journal);
}

static void disk_that_is_full_from_the_start_is_reported(void **state) {
    (void)state;
    gbx_store_config config = {
        .directory = "dump", .run_json = sample_run_json, .has_tensors = true};
    gbx_store *store;
    scratch_limit_files(100);
    gbx_status status = gbx_store_create(&config, &store);
    scratch_limit_files(UINT64_MAX);
    assert_fails(status, GBX_IO, "dump/tensor_dump/tensor_dump.rec", "File too large");
    gbx_store_destroy(create_sample("dump")); /* nothing is left behind */
}

/* --- killed --- */

/* Reports how many tasks are flushed, until it is killed; it does not fill the disk before that. */
static void run_until_killed(int report_fd, uint64_t flush_every) {
    enum { MOST_TASKS = 2000 };
    gbx_store *store = create_sample("dump");
    for (uint64_t task = 0;; ++task) {
        if (task == MOST_TASKS)
            pause();
        if (!sample_write_task(store, task))
            _exit(1);
        if ((task + 1) % flush_every != 0)
            continue;
        gbx_status status = gbx_store_flush(store);
        uint64_t flushed = task + 1;
        if (status || write(report_fd, &flushed, sizeof flushed) != sizeof flushed)
            _exit(1);
    }
}

/* The last number of flushed tasks that the child reported. */
static uint64_t run_and_kill(uint64_t flush_every, int64_t after_ns) {
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        run_until_killed(pipe_fds[1], flush_every);
    close(pipe_fds[1]);
    struct timespec pause = gbx_timespec_of_ns(after_ns);
    uint64_t flushed = 0, count;
    assert_int_equal(read(pipe_fds[0], &flushed, sizeof flushed), sizeof flushed);
    nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    while (read(pipe_fds[0], &count, sizeof count) == sizeof count)
        flushed = count;
    close(pipe_fds[0]);
    return flushed;
}

static void killed_run_leaves_complete_blocks(void **state) {
    (void)state;
    for (int64_t round = 0; round < 12; ++round) {
        uint64_t flush_every = round % 2 ? 7 : 300;
        uint64_t flushed = run_and_kill(flush_every, round * 3 * GBX_NS_PER_MS + 100000);
        parsed_journal journal;
        size_t duplicates;
        journal_parse("dump/tensor_dump/tensor_dump.rec", &journal);
        assert_true(flushed > 0);
        assert_true(journal.record_count >= 1 + SAMPLE_RECORDS_PER_TASK * flushed);
        assert_int_equal(sample_check("dump", &journal, &duplicates), journal.record_count);
        assert_true(duplicates > 0);
        journal_parse_free(&journal);
        assert_int_equal(system("rm -rf dump"), 0);
    }
}

/* --- memory --- */

#if defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define HAS_SANITIZER 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HAS_SANITIZER 1
#endif

/* Counted page by page: statm is off by some MiB on machines with many processors. */
static size_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[128];
    size_t kib = 0;
    assert_non_null(file);
    while (kib == 0 && fgets(line, sizeof line, file))
        sscanf(line, "Rss: %zu kB", &kib);
    fclose(file);
    assert_true(kib > 0);
    return kib << 10;
}

/* A million records, and more payloads than the table holds. */
static void memory_does_not_grow_with_the_dump(void **state) {
    (void)state;
    enum { RECORDS = 1000000, ALLOWED_BYTES = 12 << 20 };
    size_t before = resident_bytes();
    gbx_store *store = create_sample("dump");
    for (uint64_t i = 0; i < RECORDS; ++i) {
        gbx_record_scalar *scalar = gbx_store_append(store, GBX_RECORD_SCALAR, sizeof *scalar / 8);
        assert_non_null(scalar);
        scalar->bits = i;
        gbx_hash128 hash = {.low = i * UINT64_C(0x9e3779b97f4a7c15) >> 20, .high = i};
        gbx_store_remember(store, hash, 4096, i * 4096);
    }
    assert_ok(gbx_store_flush(store));
    size_t grown = resident_bytes() - before;
    gbx_store_destroy(store);
#ifdef HAS_SANITIZER
    print_message("sanitizers use memory themselves: %zu bytes not checked\n", grown);
#else
    assert_in_range(grown, 8 << 20, ALLOWED_BYTES);
#endif
    parsed_journal journal;
    journal_parse("dump/tensor_dump/tensor_dump.rec", &journal);
    assert_int_equal(journal.record_count, 1 + RECORDS);
    for (uint64_t i = 0; i < RECORDS; ++i)
        assert_int_equal(journal_u64(journal.records[1 + i] + 32), i);
    journal_parse_free(&journal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(full_disk_keeps_room_for_the_journal, enter, leave),
        cmocka_unit_test_setup_teardown(journal_on_a_full_disk_has_an_end, enter, leave),
        cmocka_unit_test_setup_teardown(failed_journal_is_reported_and_its_records_are_good, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(disk_that_is_full_from_the_start_is_reported, enter, leave),
        cmocka_unit_test_setup_teardown(killed_run_leaves_complete_blocks, enter, leave),
        cmocka_unit_test_setup_teardown(memory_does_not_grow_with_the_dump, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
