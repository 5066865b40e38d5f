/* A RANGE that is not true is found, whatever else is right. */
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "scratch.h"
#include "store/verify/verify.h"
#include "store_sample.h"

#define PATH "dump/tensor_dump/tensor_dump.rec"

enum { TASKS = 3000, FIRST_AT = 16, LAST_AT = 32, TYPES_AT = 40, CHECK_AT = 48 };

static int enter(void **state) {
    (void)state;
    const gbx_store_config config = {
        .directory = "dump", .run_json = sample_run_json, .has_tensors = true};
    const gbx_record_end end = {.head = {.flags = GBX_FLAG_COMPLETE}};
    gbx_store *store = NULL;
    if (!scratch_enter(NULL))
        return -1;
    assert_ok(gbx_store_create(&config, &store));
    for (uint64_t i = 0; i < TASKS; ++i)
        assert_true(sample_write_task(store, i));
    assert_ok(gbx_store_finish(store, &end, "ok", NULL));
    gbx_store_destroy(store);
    return 0;
}

static int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

/* Adds to a word of the RANGE of a block; all checksums are right afterwards, except that of the
 * RANGE itself if it is changed. */
static void change(size_t number, size_t at, uint64_t more) {
    parsed_journal journal;
    journal_parse(PATH, &journal);
    const parsed_block *block = &journal.blocks[number];
    unsigned char *head = journal.file + block->offset, *range = head + 32;
    uint64_t word = journal_u64(range + at) + more;
    assert_true(block->has_range);
    memcpy(range + at, &word, 8);
    uint64_t check = XXH3_64bits(range, CHECK_AT);
    if (at != CHECK_AT)
        memcpy(range + CHECK_AT, &check, 8);
    uint64_t checksum = XXH3_64bits(range, block->record_bytes);
    memcpy(head + 16, &checksum, 8);
    checksum = XXH3_64bits(head, 24);
    memcpy(head + 24, &checksum, 8);
    scratch_write(PATH, journal.file, journal.file_bytes);
    journal_parse_free(&journal);
}

/* How many findings there are about RANGE; the first is *out_what. The sample has others: END does
 * not count its records. */
static size_t count_findings(char out_what[80]) {
    gbx_verification found;
    size_t count = 0;
    assert_ok(gbx_dump_verify("dump", NULL, &found));
    for (size_t i = 0; i < found.findings.count; ++i) {
        const gbx_finding *finding = &found.findings.items[i];
        if (!strstr(finding->what, "RANGE"))
            continue;
        assert_int_equal(finding->kind, GBX_FINDING_RECORD);
        assert_string_not_equal(finding->expected, finding->got);
        if (count++ == 0)
            snprintf(out_what, 80, "%s", finding->what);
    }
    gbx_verification_free(&found);
    return count;
}

static void true_ranges_are_good(void **state) {
    (void)state;
    char what[80];
    assert_int_equal(count_findings(what), 0);
}

static void false_range_is_found(void **state) {
    (void)state;
    static const struct {
        size_t block;
        size_t at;
        uint64_t more;
        const char *what;
    } lies[] = {{1, FIRST_AT, 1, "first task in the RANGE of block 1"},
                {2, FIRST_AT, (uint64_t)-1, "first task in the RANGE of block 2"},
                {2, LAST_AT, (uint64_t)-1, "last task in the RANGE of block 2"},
                {2, LAST_AT, 1, "last task in the RANGE of block 2"},
                {1, TYPES_AT, 1, "types in the RANGE of block 1"},
                {1, TYPES_AT, (uint64_t)-8, "types in the RANGE of block 1"},
                {1, CHECK_AT, 1, "check in the RANGE of block 1"}};
    size_t size;
    unsigned char *good = scratch_read(PATH, &size);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; ++i) {
        char what[80] = "";
        scratch_write(PATH, good, size);
        change(lies[i].block, lies[i].at, lies[i].more);
        assert_int_equal(count_findings(what), 1);
        assert_string_equal(what, lies[i].what);
    }
    free(good);
}

/* The last block has only END: no record about a task. */
static void range_without_tasks_must_not_claim_one(void **state) {
    (void)state;
    char what[80] = "";
    parsed_journal journal;
    journal_parse(PATH, &journal);
    size_t last = journal.block_count - 1;
    const unsigned char *range = journal.file + journal.blocks[last].offset + 32;
    uint64_t first = journal_u64(range + FIRST_AT), end = journal_u64(range + LAST_AT);
    journal_parse_free(&journal);
    assert_true(first > end);
    change(last, LAST_AT, first - end - 1); /* still none */
    assert_int_equal(count_findings(what), 0);
    change(last, LAST_AT, 1);
    assert_int_equal(count_findings(what), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(true_ranges_are_good, enter, leave),
        cmocka_unit_test_setup_teardown(false_range_is_found, enter, leave),
        cmocka_unit_test_setup_teardown(range_without_tasks_must_not_claim_one, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
