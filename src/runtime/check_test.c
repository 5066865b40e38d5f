#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/check.h"

/* Room for the most arguments possible. */
typedef union written {
    gbx_task_arguments arguments;
    _Alignas(64) char bytes[96 + 64 * 8 + 64 + 32 * sizeof(gbx_tensor)];
} written;

static const gbx_tensor cell = {.data = 4096, .dtype = GBX_FLOAT32, .ndims = 0};

static void add(gbx_args *args, int tensors, int scalars) {
    for (int i = 0; i < tensors; ++i)
        gbx_args_add_input(args, &cell);
    for (int i = 0; i < scalars; ++i)
        gbx_args_add_u64(args, 1);
}

static uint64_t marks_of(const gbx_args *args) {
    static written place;
    memset(&place, 0xa5, sizeof place);
    gbx_write_arguments(args, &place.arguments);
    assert_int_equal(place.arguments.word_count, args->tensor_count + args->scalar_count);
    return place.arguments.dumped_words;
}

static void without_marks_there_are_none(void **state) {
    (void)state;
    gbx_args args = gbx_args_begin();
    add(&args, 3, 2);
    assert_true(marks_of(&args) == 0);
}

static void slots_are_tensors_then_scalars(void **state) {
    (void)state;
    for (uint32_t index = 0; index < 5; ++index) {
        gbx_args args = gbx_args_begin();
        add(&args, 3, 2);
        gbx_args_dump(&args, index);
        assert_true(marks_of(&args) == UINT64_C(1) << index);
        assert_int_equal(args.wrong_mark_bound, 0);
    }
}

/* The scalar was at slot 1 when it was marked, and ends at slot 3. */
static void a_mark_stays_with_its_argument(void **state) {
    (void)state;
    gbx_args args = gbx_args_begin();
    add(&args, 1, 1);
    gbx_args_dump(&args, 1);
    add(&args, 2, 1);
    assert_true(marks_of(&args) == UINT64_C(1) << 3);
}

static void all_are_those_that_there_are(void **state) {
    (void)state;
    static const struct {
        int tensors;
        int scalars;
    } counts[] = {{0, 0}, {1, 0}, {0, 1}, {3, 2}, {32, 0}, {0, 32}, {32, 32}, {31, 32}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        int count = counts[i].tensors + counts[i].scalars;
        gbx_args args = gbx_args_begin();
        gbx_args_dump_all(&args);
        add(&args, counts[i].tensors, counts[i].scalars);
        assert_true(marks_of(&args) == (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1));
    }
}

static void the_last_slot_of_all(void **state) {
    (void)state;
    gbx_args args = gbx_args_begin();
    add(&args, 32, 32);
    gbx_args_dump(&args, 31);
    gbx_args_dump(&args, 63);
    assert_true(marks_of(&args) == (UINT64_C(1) << 31 | UINT64_C(1) << 63));
}

static void clearing_takes_marks_and_errors_away(void **state) {
    (void)state;
    gbx_args args = gbx_args_begin();
    add(&args, 1, 1);
    gbx_args_dump_all(&args);
    gbx_args_dump(&args, 7);
    assert_int_equal(args.wrong_mark, 7);
    assert_int_equal(args.wrong_mark_bound, 3);
    gbx_args_clear(&args);
    add(&args, 1, 1);
    assert_int_equal(args.wrong_mark_bound, 0);
    assert_true(marks_of(&args) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_marks_there_are_none),
        cmocka_unit_test(slots_are_tensors_then_scalars),
        cmocka_unit_test(a_mark_stays_with_its_argument),
        cmocka_unit_test(all_are_those_that_there_are),
        cmocka_unit_test(the_last_slot_of_all),
        cmocka_unit_test(clearing_takes_marks_and_errors_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
