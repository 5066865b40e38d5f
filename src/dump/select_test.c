#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "dump/select.h"

static const uint32_t mix[GBX_SUBTASK_COUNT] = {0, GBX_NO_KERNEL, 130};
static const gbx_dump_candidate output_after = {.arg_index = 3,
                                                .kind = GBX_KIND_TENSOR,
                                                .role = GBX_ROLE_OUTPUT,
                                                .stage = 1,
                                                .dtype = GBX_BFLOAT16};

static void add_func(gbx_dump_filter *filter, uint32_t func_id) {
    filter->keys |= GBX_FILTER_FUNC;
    filter->funcs[func_id / 64] |= UINT64_C(1) << func_id % 64;
}

static void a_filter_without_keys_matches_all(void **state) {
    (void)state;
    gbx_dump_filter filter = {0};
    assert_true(gbx_dump_filter_matches_task(&filter, 0, mix));
    assert_true(gbx_dump_filter_matches_task(&filter, UINT64_MAX, mix));
    assert_true(gbx_dump_filter_matches_argument(&filter, &output_after));
}

static void any_kernel_of_a_mix_may_match(void **state) {
    (void)state;
    static const struct {
        uint32_t func_id;
        bool is_match;
    } cases[] = {{0, true}, {130, true}, {1, false}, {2, false}, {66, false}, {1023, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        gbx_dump_filter filter = {0};
        add_func(&filter, cases[i].func_id);
        assert_int_equal(gbx_dump_filter_matches_task(&filter, 5, mix), cases[i].is_match);
    }
}

/* No bit stands for "none", nor for invalid numbers that a kernel left. */
static void no_kernel_matches_no_func(void **state) {
    (void)state;
    static const uint32_t none[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, GBX_MAX_KERNELS, 5000};
    gbx_dump_filter filter = {.keys = GBX_FILTER_FUNC};
    memset(filter.funcs, 0xff, sizeof filter.funcs);
    assert_false(gbx_dump_filter_matches_task(&filter, 5, none));
    assert_true(gbx_dump_filter_matches_task(&filter, 5, mix));
}

static void tasks_match_by_ranges_with_both_ends(void **state) {
    (void)state;
    gbx_dump_filter filter = {.keys = GBX_FILTER_TASK, .range_count = 2};
    filter.tasks[0].first = filter.tasks[0].last = 3;
    filter.tasks[1].first = 10;
    filter.tasks[1].last = 20;
    filter.tasks[2].first = filter.tasks[2].last = 100; /* beyond the count */
    static const uint64_t inside[] = {3, 10, 15, 20};
    static const uint64_t outside[] = {0, 2, 4, 9, 21, 100, UINT64_MAX};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; ++i)
        assert_true(gbx_dump_filter_matches_task(&filter, inside[i], mix));
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; ++i)
        assert_false(gbx_dump_filter_matches_task(&filter, outside[i], mix));
    add_func(&filter, 7);
    assert_false(gbx_dump_filter_matches_task(&filter, 3, mix));
}

static void a_count_beyond_the_ranges_stays_inside(void **state) {
    (void)state;
    gbx_dump_filter filter = {.keys = GBX_FILTER_TASK, .range_count = UINT32_MAX};
    for (size_t i = 0; i < GBX_FILTER_RANGES; ++i)
        filter.tasks[i].first = filter.tasks[i].last = i;
    assert_true(gbx_dump_filter_matches_task(&filter, GBX_FILTER_RANGES - 1, mix));
    assert_false(gbx_dump_filter_matches_task(&filter, GBX_FILTER_RANGES, mix));
}

/* Each key by itself, with the bit that matches and with all others. */
static void each_key_of_an_argument_decides(void **state) {
    (void)state;
    const gbx_dump_filter rights[] = {
        {.keys = GBX_FILTER_ARG, .args = 1u << 3},
        {.keys = GBX_FILTER_ROLE, .roles = 1u << GBX_ROLE_OUTPUT},
        {.keys = GBX_FILTER_STAGE, .stages = 1u << 1},
        {.keys = GBX_FILTER_KIND, .kinds = 1u << GBX_KIND_TENSOR},
        {.keys = GBX_FILTER_DTYPE, .dtypes = 1u << GBX_BFLOAT16},
    };
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; ++i) {
        gbx_dump_filter wrong = {.keys = rights[i].keys,
                                 .args = ~rights[i].args,
                                 .dtypes = ~rights[i].dtypes,
                                 .roles = (uint8_t)~rights[i].roles,
                                 .stages = (uint8_t)~rights[i].stages,
                                 .kinds = (uint8_t)~rights[i].kinds};
        assert_true(gbx_dump_filter_matches_argument(&rights[i], &output_after));
        assert_false(gbx_dump_filter_matches_argument(&wrong, &output_after));
    }
}

static void all_keys_must_match(void **state) {
    (void)state;
    gbx_dump_filter filter = {
        .keys = GBX_FILTER_ARG | GBX_FILTER_ROLE, .args = 1u << 3, .roles = 1u << GBX_ROLE_OUTPUT};
    gbx_dump_candidate candidate = output_after;
    assert_true(gbx_dump_filter_matches_argument(&filter, &candidate));
    candidate.arg_index = 2;
    assert_false(gbx_dump_filter_matches_argument(&filter, &candidate));
    candidate = output_after;
    candidate.role = GBX_ROLE_INOUT;
    assert_false(gbx_dump_filter_matches_argument(&filter, &candidate));
}

static void the_last_slot_and_no_slot_beyond_it(void **state) {
    (void)state;
    gbx_dump_filter filter = {.keys = GBX_FILTER_ARG, .args = UINT64_C(1) << 63};
    gbx_dump_candidate candidate = output_after;
    candidate.arg_index = 63;
    assert_true(gbx_dump_filter_matches_argument(&filter, &candidate));
    filter.args = UINT64_MAX;
    candidate.arg_index = 64;
    assert_false(gbx_dump_filter_matches_argument(&filter, &candidate));
}

static void an_undeclared_scalar_has_no_dtype(void **state) {
    (void)state;
    gbx_dump_filter filter = {.keys = GBX_FILTER_DTYPE, .dtypes = 1u << GBX_DTYPE_NONE};
    gbx_dump_candidate scalar = {.kind = GBX_KIND_SCALAR, .dtype = GBX_DTYPE_NONE};
    assert_true(gbx_dump_filter_matches_argument(&filter, &scalar));
    filter.dtypes = ~filter.dtypes;
    assert_false(gbx_dump_filter_matches_argument(&filter, &scalar));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_without_keys_matches_all),
        cmocka_unit_test(any_kernel_of_a_mix_may_match),
        cmocka_unit_test(no_kernel_matches_no_func),
        cmocka_unit_test(tasks_match_by_ranges_with_both_ends),
        cmocka_unit_test(a_count_beyond_the_ranges_stays_inside),
        cmocka_unit_test(each_key_of_an_argument_decides),
        cmocka_unit_test(all_keys_must_match),
        cmocka_unit_test(the_last_slot_and_no_slot_beyond_it),
        cmocka_unit_test(an_undeclared_scalar_has_no_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
