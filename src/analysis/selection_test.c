#include "journal_test_builder.h"

#include <glassbox/kernel.h>

#include "analysis/entry_order.h"
#include "analysis/selection.h"
#include "text/names.h"

static const char named_run[] =
    "{\"generator\":\"test\",\"run\":{\"scene\":\"s\"},\"dump_level\":\"full\",\"kernels\":["
    "{\"func_id\":4,\"name\":\"softmax\",\"core_type\":\"aic\",\"signature\":[\"scalar\"]},"
    "{\"func_id\":7,\"name\":\"add\",\"core_type\":\"aiv\",\"signature\":[\"scalar\"]}]}";
static const char nameless_run[] =
    "{\"generator\":\"test\",\"run\":{\"scene\":\"s\"},\"dump_level\":\"full\",\"kernels\":[]}";

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

typedef struct fixture {
    dump d;
    gbx_reader *reader;
    gbx_entries *entries;
} fixture;

/* Task 0 (id 100) is softmax, 1 (id 101) add, 2 (id 102) both. Entries in order: the task, the
 * slot and the value of each are 0 0 5, 0 1 -2, 1 0 7, 2 0 5, 2 3 1. */
static void open_dump(fixture *f, const char *run) {
    static const uint32_t func_ids[][3] = {
        {4, UINT32_MAX, UINT32_MAX}, {UINT32_MAX, 7, UINT32_MAX}, {4, 7, UINT32_MAX}};
    static const struct {
        uint64_t task;
        unsigned slot;
        uint32_t dtype;
        uint64_t bits;
    } scalars[] = {{0, 0, GBX_INT32, 5},
                   {0, 1, GBX_INT64, (uint64_t)-2},
                   {1, 0, GBX_INT32, 7},
                   {2, 0, GBX_INT32, 5},
                   {2, 3, GBX_UINT8, 1}};
    builder b;
    make_dump(&f->d);
    begin_journal(&b);
    add_run(&b, run);
    for (uint64_t task = 0; task < 3; ++task) {
        add_task(&b, task, 100 + task, func_ids[task], 1);
        for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; ++i)
            if (scalars[i].task == task)
                add_scalar(
                    &b,
                    (head){.task = task, .arg_index = scalars[i].slot, .dtype = scalars[i].dtype},
                    scalars[i].bits);
    }
    finish_journal(&b, &f->d);
    free(b.bytes);
    check_good(gbx_reader_open(f->d.directory, GBX_INDEX_ARGUMENTS, &f->reader));
    check_good(gbx_entries_create(f->reader, &f->entries));
}

static void close_dump(fixture *f) {
    gbx_entries_destroy(f->entries);
    gbx_reader_close(f->reader);
    remove_dump(&f->d);
}

/* `expected` has one digit per entry. */
static void check_indices(const uint64_t *indices, uint64_t count, const char *expected) {
    char text[16] = "";
    for (uint64_t i = 0; i < count && i < sizeof text - 1; ++i)
        text[i] = (char)('0' + indices[i]);
    assert_string_equal(text, expected);
}

static void check_selected(fixture *f, const gbx_selection *selection, const char *expected) {
    gbx_selected selected;
    check_good(gbx_selection_apply(selection, f->entries, &selected));
    check_indices(selected.indices, selected.count, expected);
    free(selected.indices);
}

static void keys_narrow_and_values_widen(void **state) {
    (void)state;
    fixture f;
    open_dump(&f, named_run);
    gbx_selection s = {0};
    assert_false(gbx_selection_is_given(&s));
    check_selected(&f, &s, "01234");
    s.kernels = (gbx_selection_names){.items = {"soft*"}, .count = 1};
    assert_true(gbx_selection_is_given(&s));
    check_selected(&f, &s, "0134");
    s.kernels = (gbx_selection_names){.items = {"soft*", "a?d"}, .count = 2};
    check_selected(&f, &s, "01234");
    s.args = (gbx_selection_ranges){.items = {{1, 3}}, .count = 1};
    check_selected(&f, &s, "14");
    s.dtypes = 1u << GBX_INT64;
    check_selected(&f, &s, "1");
    s.kinds = 1u << GBX_KIND_TENSOR;
    check_selected(&f, &s, "");
    close_dump(&f);
}

/* The same kernel must match the name and the func_id. */
static void a_task_is_chosen_by_number_id_and_kernel(void **state) {
    (void)state;
    fixture f;
    open_dump(&f, named_run);
    gbx_selection numbers = {.task_numbers = {.items = {{2, UINT64_MAX}, {0, 0}}, .count = 2}};
    check_selected(&f, &numbers, "0134");
    gbx_selection ids = {.task_ids = {.items = {{101, 101}}, .count = 1}};
    check_selected(&f, &ids, "2");
    gbx_selection either = {.task_numbers = {.items = {{0, 0}}, .count = 1},
                            .task_ids = {.items = {{101, 101}}, .count = 1}};
    check_selected(&f, &either, "012");
    gbx_selection kernel = {.funcs = {.items = {{5, 9}}, .count = 1}};
    check_selected(&f, &kernel, "234");
    kernel.kernels = (gbx_selection_names){.items = {"softmax"}, .count = 1};
    check_selected(&f, &kernel, "");
    close_dump(&f);
}

static void names_missing_in_a_dump_are_lacking(void **state) {
    (void)state;
    const gbx_selection kernels = {.kernels = {.items = {"a"}, .count = 1}};
    const gbx_selection args = {.arg_names = {.items = {"a"}, .count = 1}};
    const gbx_selection numbers = {.args = {.items = {{0, 0}}, .count = 1}};
    fixture f;
    open_dump(&f, nameless_run);
    const gbx_run_info *run = gbx_reader_run(f.reader);
    assert_int_equal(gbx_selection_find_lack(&kernels, run), GBX_SELECTION_LACKS_KERNEL_NAMES);
    assert_int_equal(gbx_selection_find_lack(&args, run), GBX_SELECTION_LACKS_ARG_NAMES);
    assert_int_equal(gbx_selection_find_lack(&numbers, run), GBX_SELECTION_LACKS_NOTHING);
    check_selected(&f, &kernels, "");
    close_dump(&f);
    open_dump(&f, named_run);
    assert_int_equal(gbx_selection_find_lack(&kernels, gbx_reader_run(f.reader)),
                     GBX_SELECTION_LACKS_NOTHING);
    close_dump(&f);
}

static void check_order(fixture *f, gbx_order_key key, bool is_descending, const char *expected) {
    uint64_t indices[] = {0, 1, 2, 3, 4};
    check_good(gbx_entries_sort((gbx_entry_order){key, is_descending}, f->entries, indices, 5, NULL,
                                NULL));
    check_indices(indices, 5, expected);
}

/* Equal entries stay in order, in either direction. */
static void entries_are_sorted_by_each_key(void **state) {
    (void)state;
    fixture f;
    open_dump(&f, named_run);
    check_order(&f, GBX_ORDER_INDEX, false, "01234");
    check_order(&f, GBX_ORDER_INDEX, true, "43210");
    check_order(&f, GBX_ORDER_TASK, true, "34201");
    check_order(&f, GBX_ORDER_KERNEL, false, "20134"); /* add before softmax */
    check_order(&f, GBX_ORDER_ARG, false, "02314");
    check_order(&f, GBX_ORDER_MIN, false, "14032");
    check_order(&f, GBX_ORDER_MAX, true, "20341");
    check_order(&f, GBX_ORDER_NAN, true, "01234");
    close_dump(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_narrow_and_values_widen),
        cmocka_unit_test(a_task_is_chosen_by_number_id_and_kernel),
        cmocka_unit_test(names_missing_in_a_dump_are_lacking),
        cmocka_unit_test(entries_are_sorted_by_each_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
