#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "dump/host/filter.h"

static const gbx_kernel kernels[] = {{.func_id = 0, .name = "add"},
                                     {.func_id = 1, .name = "softmax_rows"},
                                     {.func_id = 2, .name = "softmax_sum"},
                                     {.func_id = 64, .name = "matmul"},
                                     {.func_id = 1023, .name = "copy"}};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static gbx_dump_filter parse(const char *text) {
    gbx_dump_filter filter;
    gbx_status status = gbx_dump_filter_parse(text, kernels, KERNELS, &filter);
    if (status)
        fail_msg("%s", gbx_status_message(status));
    return filter;
}

/* Fails with GBX_INVALID_ARGUMENT and one sentence that quotes the text and has `part`. */
static void check_refused(const char *text, const char *part) {
    gbx_dump_filter filter;
    gbx_status status = gbx_dump_filter_parse(text, kernels, KERNELS, &filter);
    const char *message = gbx_status_message(status);
    char quoted[1024];
    snprintf(quoted, sizeof quoted, "\"%s\"", text);
    if (gbx_status_code(status) != GBX_INVALID_ARGUMENT || !strstr(message, part) ||
        !strstr(message, quoted) || strchr(message, '\n'))
        fail_msg("%s gives: %s", text, message);
    gbx_status_free(status);
}

static bool takes_func(const gbx_dump_filter *filter, uint32_t func_id) {
    uint32_t func_ids[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, func_id, GBX_NO_KERNEL};
    return gbx_dump_filter_matches_task(filter, 0, func_ids);
}

/* Bit i: whether kernels[i] matches. */
static unsigned taken_funcs(const char *text) {
    gbx_dump_filter filter = parse(text);
    unsigned taken = 0;
    for (unsigned i = 0; i < KERNELS; ++i)
        taken |= (unsigned)takes_func(&filter, kernels[i].func_id) << i;
    return taken;
}

static void kernels_by_glob_and_number(void **state) {
    (void)state;
    assert_int_equal(taken_funcs("kernel=softmax_*"), 0x6);
    assert_int_equal(taken_funcs("kernel=add"), 0x1);
    assert_int_equal(taken_funcs("kernel=*"), 0x1f);
    assert_int_equal(taken_funcs("kernel=???"), 0x1);
    assert_int_equal(taken_funcs("kernel=[am]*"), 0x9);
    assert_int_equal(taken_funcs("kernel=add,kernel=*sum"), 0x5);
    assert_int_equal(taken_funcs("func=64"), 0x8);
    assert_int_equal(taken_funcs("func=0x40"), 0x8);
    assert_int_equal(taken_funcs("func=1..64"), 0xe);
    assert_int_equal(taken_funcs("func=0,func=1023"), 0x11);
    assert_int_equal(taken_funcs("func=2..99999999999"), 0x1c);
}

static void kernel_and_func_are_one_kernel_that_is_both(void **state) {
    (void)state;
    assert_int_equal(taken_funcs("kernel=softmax*,func=2..64"), 0x4);
    check_refused("kernel=softmax*,func=0", "together match no kernel");
}

static bool takes_task(const gbx_dump_filter *filter, uint64_t task) {
    static const uint32_t func_ids[GBX_SUBTASK_COUNT] = {0, GBX_NO_KERNEL, GBX_NO_KERNEL};
    return gbx_dump_filter_matches_task(filter, task, func_ids);
}

static void tasks_by_number_range_and_id(void **state) {
    (void)state;
    gbx_dump_filter filter = parse("task=3,task=10..20,task=0x000000000000002a");
    static const uint64_t inside[] = {3, 10, 20, 42};
    static const uint64_t outside[] = {0, 2, 4, 9, 21, 41, 43};
    assert_int_equal(filter.range_count, 3);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; ++i)
        assert_true(takes_task(&filter, inside[i]));
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; ++i)
        assert_false(takes_task(&filter, outside[i]));
    filter = parse("task=0x10..0x1f");
    assert_true(takes_task(&filter, 16) && takes_task(&filter, 31));
    assert_false(takes_task(&filter, 15) || takes_task(&filter, 32) || takes_task(&filter, 10));
    filter = parse("task=18446744073709551615");
    assert_true(takes_task(&filter, UINT64_MAX));
    assert_false(takes_task(&filter, UINT64_MAX - 1));
}

static void arguments_by_slot_role_stage_kind_and_dtype(void **state) {
    (void)state;
    assert_int_equal(parse("arg=0").args, 1);
    assert_true(parse("arg=2..4,arg=63").args == (UINT64_C(0x1c) | UINT64_C(1) << 63));
    assert_true(parse("arg=0..63").args == UINT64_MAX);
    assert_int_equal(parse("role=input").roles, 1 << GBX_ROLE_INPUT);
    assert_int_equal(parse("role=out").roles, 1 << GBX_ROLE_OUTPUT);
    assert_int_equal(parse("role=in,role=inout").roles, 1 << GBX_ROLE_INPUT | 1 << GBX_ROLE_INOUT);
    assert_int_equal(parse("role=output").roles, 1 << GBX_ROLE_OUTPUT);
    assert_int_equal(parse("stage=before_dispatch").stages, 1);
    assert_int_equal(parse("stage=before").stages, 1);
    assert_int_equal(parse("stage=after_completion").stages, 2);
    assert_int_equal(parse("stage=after").stages, 2);
    assert_int_equal(parse("kind=tensor").kinds, 1 << GBX_KIND_TENSOR);
    assert_int_equal(parse("kind=scalar").kinds, 1 << GBX_KIND_SCALAR);
    assert_int_equal(parse("dtype=float32").dtypes, 1 << GBX_FLOAT32);
    assert_int_equal(parse("dtype=BF16,dtype=int4").dtypes, 1 << GBX_BFLOAT16 | 1 << GBX_INT4);
}

/* Only the key of each text is set, so that no other decides. */
static void only_keys_that_are_given_decide(void **state) {
    (void)state;
    assert_int_equal(parse("kernel=add").keys, GBX_FILTER_FUNC);
    assert_int_equal(parse("func=0").keys, GBX_FILTER_FUNC);
    assert_int_equal(parse("task=0").keys, GBX_FILTER_TASK);
    assert_int_equal(parse("arg=0").keys, GBX_FILTER_ARG);
    assert_int_equal(parse("role=in").keys, GBX_FILTER_ROLE);
    assert_int_equal(parse("stage=after").keys, GBX_FILTER_STAGE);
    assert_int_equal(parse("kind=tensor").keys, GBX_FILTER_KIND);
    assert_int_equal(parse("dtype=bool").keys, GBX_FILTER_DTYPE);
    assert_int_equal(parse(" kernel = add , stage = after ").keys,
                     GBX_FILTER_FUNC | GBX_FILTER_STAGE);
}

static void wrong_forms_are_refused(void **state) {
    (void)state;
    check_refused("", "KEY=VALUE");
    check_refused("kernel", "KEY=VALUE");
    check_refused("kernel=", "KEY=VALUE");
    check_refused("role=in,", "KEY=VALUE");
    check_refused("role=in,,stage=after", "KEY=VALUE");
    check_refused("kernl=add",
                  "unknown key \"kernl\"; expected kernel, func, task, arg, role, stage, "
                  "kind or dtype");
    check_refused("=add", "unknown key");
    check_refused("Kernel=add", "unknown key");
}

static void wrong_values_are_refused(void **state) {
    (void)state;
    check_refused("role=both", "unknown role \"both\"; expected one of input, output, inout, in, "
                               "out");
    check_refused("stage=middle", "unknown stage \"middle\"; expected one of before_dispatch, "
                                  "after_completion, before, after");
    check_refused("kind=vector", "unknown kind \"vector\"; expected one of tensor, scalar");
    check_refused("dtype=float33", "\"float33\"");
    check_refused("dtype=none", "\"none\"");
    check_refused("arg=64", "from 0 to 63");
    check_refused("arg=-1", "from 0 to 63");
    check_refused("arg=3..1", "from 0 to 63");
    check_refused("arg=0..64", "from 0 to 63");
    check_refused("arg=1..", "from 0 to 63");
    check_refused("arg=1...2", "from 0 to 63");
    check_refused("task=+1", "10..20");
    check_refused("task=x", "10..20");
    check_refused("task=0x", "10..20");
    check_refused("task=0x-1", "10..20");
    check_refused("task=1-2", "10..20");
    check_refused("task=20..10", "10..20");
    check_refused("task=18446744073709551616", "10..20");
    check_refused("func=one", "func_id");
}

static void missing_kernels_are_named_with_the_registered_ones(void **state) {
    (void)state;
    check_refused("kernel=sofmax",
                  "kernel \"sofmax\" matches no kernel; the registered kernels are (func and "
                  "name) 1 softmax_rows, 2 softmax_sum, 64 matmul, 1023 copy, 0 add");
    check_refused("kernel=add,kernel=ADD", "\"ADD\"");
    check_refused("func=3..63", "0 add");
    check_refused("func=1024", "0 add");
    gbx_dump_filter filter;
    gbx_status status = gbx_dump_filter_parse("func=0", NULL, 0, &filter);
    assert_int_equal(gbx_status_code(status), GBX_INVALID_ARGUMENT);
    assert_non_null(strstr(gbx_status_message(status), "none is registered"));
    gbx_status_free(status);
}

/* What a program checks before it compiles anything. */
static void all_filters_of_a_dump_are_checked(void **state) {
    (void)state;
    static const char *const filters[] = {"kernel=add", "func=64", "kernel=none"};
    gbx_dump_options options = {.filters = filters, .filter_count = 2};
    assert_null(gbx_dump_filters_check(&options, kernels, KERNELS));
    options.filter_count = 3;
    gbx_status status = gbx_dump_filters_check(&options, kernels, KERNELS);
    assert_int_equal(gbx_status_code(status), GBX_INVALID_ARGUMENT);
    assert_non_null(strstr(gbx_status_message(status), "\"kernel=none\""));
    gbx_status_free(status);
}

/* The list of many kernels ends somewhere, and says how many it leaves out. */
static void of_many_kernels_the_first_are_listed(void **state) {
    (void)state;
    static gbx_kernel many[1000];
    static const char name[] = "a_kernel_whose_name_takes_all_the_room_that_there_is_for_a_name";
    assert_int_equal(strlen(name), GBX_MAX_KERNEL_NAME);
    for (uint32_t i = 0; i < 1000; ++i)
        many[i] = (gbx_kernel){.func_id = i, .name = name};
    gbx_dump_filter filter;
    gbx_status status = gbx_dump_filter_parse("kernel=b", many, 1000, &filter);
    const char *message = gbx_status_message(status);
    const char *rest = strstr(message, " and ");
    assert_non_null(strstr(message, "0 a_kernel"));
    assert_non_null(rest = strstr(message, "a_name and "));
    assert_non_null(strstr(rest, " more"));
    gbx_status_free(status);
}

static void as_many_tasks_as_there_is_room_for(void **state) {
    (void)state;
    char text[256] = "task=0";
    for (int i = 1; i < GBX_FILTER_RANGES; ++i)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",task=%d", 2 * i);
    gbx_dump_filter filter = parse(text);
    assert_int_equal(filter.range_count, GBX_FILTER_RANGES);
    assert_true(takes_task(&filter, 2 * (GBX_FILTER_RANGES - 1)));
    assert_false(takes_task(&filter, 2 * GBX_FILTER_RANGES - 1));
    strcat(text, ",task=99");
    check_refused(text, "more than 16 values of task");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_by_glob_and_number),
        cmocka_unit_test(kernel_and_func_are_one_kernel_that_is_both),
        cmocka_unit_test(tasks_by_number_range_and_id),
        cmocka_unit_test(arguments_by_slot_role_stage_kind_and_dtype),
        cmocka_unit_test(only_keys_that_are_given_decide),
        cmocka_unit_test(wrong_forms_are_refused),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(missing_kernels_are_named_with_the_registered_ones),
        cmocka_unit_test(all_filters_of_a_dump_are_checked),
        cmocka_unit_test(of_many_kernels_the_first_are_listed),
        cmocka_unit_test(as_many_tasks_as_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
