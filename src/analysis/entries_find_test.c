#include "journal_test_builder.h"

#include <glassbox/kernel.h>

#include "analysis/entries.h"

static const char run_text[] =
    "{\"generator\":\"test\",\"run\":{\"scene\":\"s\"},\"dump_level\":\"full\",\"kernels\":["
    "{\"func_id\":4,\"name\":\"read\",\"core_type\":\"aic\",\"signature\":[\"scalar\"]}]}";

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

/* Tasks and how many arguments they have: the record of 5 was lost, 7 has none, 9 has two records.
 */
static void write_dump(dump *d) {
    static const uint32_t func_ids[3] = {4, UINT32_MAX, UINT32_MAX};
    static const uint32_t other_ids[3] = {UINT32_MAX, 4, UINT32_MAX};
    static const struct {
        uint64_t task;
        unsigned arguments;
    } tasks[] = {{9, 1}, {2, 2}, {5, 3}, {7, 0}};
    builder b;
    make_dump(d);
    begin_journal(&b);
    add_run(&b, run_text);
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; ++i) {
        uint64_t task = tasks[i].task;
        if (task != 5)
            add_task(&b, task, 100 + task, func_ids, 1);
        for (unsigned j = 0; j < tasks[i].arguments; ++j)
            add_scalar(&b, (head){.task = task, .arg_index = j, .dtype = GBX_INT32}, task * 10 + j);
    }
    add_task(&b, 9, 999, other_ids, 1);
    finish_journal(&b, d);
    free(b.bytes);
}

static void open_dump(dump *d, gbx_reader **out_reader, gbx_entries **out_entries) {
    write_dump(d);
    check_good(gbx_reader_open(d->directory, GBX_INDEX_ARGUMENTS, out_reader));
    check_good(gbx_entries_create(*out_reader, out_entries));
}

static void close_dump(dump *d, gbx_reader *reader, gbx_entries *entries) {
    gbx_entries_destroy(entries);
    gbx_reader_close(reader);
    remove_dump(d);
}

static void the_first_entry_of_a_task_is_found(void **state) {
    (void)state;
    /* By task: entries 0 and 1 belong to task 2, entries 2 to 4 to task 5, entry 5 to task 9. */
    static const uint64_t expected[] = {0, 0, 0, 2, 2, 2, 5, 5, 5, 5, 6, 6};
    dump d;
    gbx_reader *reader = NULL;
    gbx_entries *entries = NULL;
    open_dump(&d, &reader, &entries);
    assert_int_equal(gbx_entries_count(entries), 6);
    for (uint64_t task = 0; task < sizeof expected / sizeof expected[0]; ++task)
        assert_int_equal(gbx_entries_find(entries, task), expected[task]);
    assert_int_equal(gbx_entries_find(entries, UINT64_MAX), 6);
    close_dump(&d, reader, entries);
}

/* In any order: the record before an entry may be its task's, another task's, or a second one. */
static void every_entry_has_the_task_that_is_its_own(void **state) {
    (void)state;
    static const uint64_t orders[][6] = {
        {0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 4, 3}};
    static const uint64_t tasks[] = {2, 2, 5, 5, 5, 9};
    static const uint64_t values[] = {20, 21, 50, 51, 52, 90};
    dump d;
    gbx_reader *reader = NULL;
    gbx_entries *entries = NULL;
    open_dump(&d, &reader, &entries);
    for (size_t i = 0; i < 3 * 6; ++i) {
        uint64_t index = orders[i / 6][i % 6];
        gbx_entry entry;
        check_good(gbx_entries_at(entries, index, &entry));
        assert_int_equal(entry.head->task, tasks[index]);
        assert_int_equal(entry.scalar->bits, values[index]);
        if (tasks[index] == 5) {
            assert_null(entry.task);
            continue;
        }
        assert_non_null(entry.task);
        assert_int_equal(entry.task->task_id, 100 + tasks[index]); /* of two, the first */
        assert_int_equal(entry.task->func_ids[0], 4);
    }
    close_dump(&d, reader, entries);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_entry_of_a_task_is_found),
        cmocka_unit_test(every_entry_has_the_task_that_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
