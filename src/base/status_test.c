#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/status.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define HAS_OWN_MALLOC 1
#    endif
#endif
#ifndef HAS_OWN_MALLOC
#    define HAS_OWN_MALLOC 0
#endif

static void success_is_null_and_taken_everywhere(void **state) {
    (void)state;
    assert_int_equal(gbx_status_code(NULL), GBX_OK);
    assert_string_equal(gbx_status_message(NULL), "");
    assert_string_equal(gbx_status_site(NULL), "");
    gbx_status_free(NULL);
    assert_null(gbx_status_annotate(NULL, "opening %s", "chip"));
    assert_null(gbx_status_first(NULL, NULL));
}

static void failure_has_code_message_and_site(void **state) {
    (void)state;
    int line = __LINE__ + 1;
    gbx_status status = gbx_fail(GBX_IO, "cannot open %s: %d", "a.bin", 13);
    char site[64];
    snprintf(site, sizeof site, "status_test.c:%d", line);
    assert_int_equal(gbx_status_code(status), GBX_IO);
    assert_string_equal(gbx_status_message(status), "cannot open a.bin: 13");
    assert_string_equal(gbx_status_site(status), site);
    gbx_status_free(status);
}

static void site_is_cut_to_the_file_name(void **state) {
    (void)state;
    gbx_status status = gbx_status_make("/a/very/deep/tree/x.c", 7, GBX_INTERNAL, "%s", "");
    assert_string_equal(gbx_status_site(status), "x.c:7");
    assert_string_equal(gbx_status_message(status), "");
    gbx_status_free(status);
}

static void message_of_any_length_is_complete(void **state) {
    (void)state;
    static char text[20001];
    memset(text, 'x', sizeof text - 1);
    gbx_status status = gbx_fail(GBX_BAD_FORMAT, "%s", text);
    assert_string_equal(gbx_status_message(status), text);
    gbx_status_free(status);
}

static void annotation_goes_in_front_and_keeps_code_and_site(void **state) {
    (void)state;
    gbx_status status = gbx_status_make("a.c", 5, GBX_NOT_FOUND, "no such file");
    status = gbx_status_annotate(status, "opening %s", "chip");
    status = gbx_status_annotate(status, "case %d", 2);
    assert_string_equal(gbx_status_message(status), "case 2: opening chip: no such file");
    assert_int_equal(gbx_status_code(status), GBX_NOT_FOUND);
    assert_string_equal(gbx_status_site(status), "a.c:5");
    gbx_status_free(status);
}

/* The message being annotated may be an argument of the annotation. */
static void annotation_may_quote_the_message(void **state) {
    (void)state;
    gbx_status status = gbx_status_make("a.c", 5, GBX_IO, "100%% of it");
    status = gbx_status_annotate(status, "(%s)", gbx_status_message(status));
    assert_string_equal(gbx_status_message(status), "(100% of it): 100% of it");
    gbx_status_free(status);
}

static void first_failure_is_kept(void **state) {
    (void)state;
    gbx_status kept = gbx_status_first(gbx_fail(GBX_IO, "one"), gbx_fail(GBX_INTERNAL, "two"));
    assert_string_equal(gbx_status_message(kept), "one");
    kept = gbx_status_first(kept, NULL);
    assert_string_equal(gbx_status_message(kept), "one");
    kept = gbx_status_first(NULL, kept);
    assert_string_equal(gbx_status_message(kept), "one");
    gbx_status_free(kept);
}

static gbx_status try_twice(gbx_status first, int *reached) {
    GBX_TRY(first);
    *reached = 1;
    return NULL;
}

static void try_returns_early_with_the_failure(void **state) {
    (void)state;
    int reached = 0;
    gbx_status status = try_twice(gbx_fail(GBX_IO, "stop"), &reached);
    assert_int_equal(reached, 0);
    assert_string_equal(gbx_status_message(status), "stop");
    gbx_status_free(status);
    assert_null(try_twice(NULL, &reached));
    assert_int_equal(reached, 1);
}

/* A message larger than the address space that is left; a sanitizer's malloc would abort. */
static void out_of_memory_is_a_status_too(void **state) {
    (void)state;
    if (HAS_OWN_MALLOC)
        skip();
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit tight = {.rlim_cur = 64u << 20, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    gbx_status status = gbx_fail(GBX_IO, "%*s", 256 << 20, "");
    gbx_status annotated = gbx_status_annotate(status, "opening %s", "chip");
    gbx_status small = gbx_status_annotate(gbx_fail(GBX_IO, "small"), "%*s", 256 << 20, "");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_ptr_equal(annotated, status);
    assert_int_equal(gbx_status_code(status), GBX_EXHAUSTED);
    assert_string_equal(gbx_status_message(status), "the host is out of memory");
    assert_int_equal(gbx_status_code(small), GBX_EXHAUSTED);
    gbx_status_free(status);
    gbx_status_free(annotated);
    gbx_status_free(small);
}

static void codes_have_names_and_exits(void **state) {
    (void)state;
    static const struct {
        gbx_code code;
        const char *name;
        int exit;
    } cases[] = {
        {GBX_OK, "ok", 0},
        {GBX_INVALID_ARGUMENT, "invalid argument", 2},
        {GBX_NOT_FOUND, "not found", 2},
        {GBX_OUT_OF_RANGE, "out of range", 2},
        {GBX_EXHAUSTED, "exhausted", 2},
        {GBX_UNSUPPORTED, "unsupported", 2},
        {GBX_BAD_KERNEL, "bad kernel", 2},
        {GBX_IO, "input or output failed", 2},
        {GBX_BAD_FORMAT, "bad format", 2},
        {GBX_DEVICE_FAULT, "device fault", 3},
        {GBX_DEVICE_HUNG, "device hung", 3},
        {GBX_DEVICE_LOST, "device lost", 3},
        {GBX_INTERNAL, "internal error", 2},
        {GBX_BAD_GRAPH, "bad graph", 2},
        {GBX_LOST, "records lost", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        assert_string_equal(gbx_code_name(cases[i].code), cases[i].name);
        assert_int_equal(gbx_code_exit(cases[i].code), cases[i].exit);
    }
    assert_string_equal(gbx_code_name((gbx_code)99), "unknown code");
}

/* Where several exit codes hold: 2, then 3, then 4, then 1, then 0, whichever came first. */
static void the_more_severe_exit_code_is_kept(void **state) {
    static const int by_severity[] = {2, 3, 4, 1, 0};
    (void)state;
    for (size_t i = 0; i < 5; ++i)
        for (size_t j = i; j < 5; ++j) {
            assert_int_equal(gbx_exit_worse(by_severity[i], by_severity[j]), by_severity[i]);
            assert_int_equal(gbx_exit_worse(by_severity[j], by_severity[i]), by_severity[i]);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_null_and_taken_everywhere),
        cmocka_unit_test(failure_has_code_message_and_site),
        cmocka_unit_test(site_is_cut_to_the_file_name),
        cmocka_unit_test(message_of_any_length_is_complete),
        cmocka_unit_test(annotation_goes_in_front_and_keeps_code_and_site),
        cmocka_unit_test(annotation_may_quote_the_message),
        cmocka_unit_test(first_failure_is_kept),
        cmocka_unit_test(try_returns_early_with_the_failure),
        cmocka_unit_test(out_of_memory_is_a_status_too),
        cmocka_unit_test(codes_have_names_and_exits),
        cmocka_unit_test(the_more_severe_exit_code_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
