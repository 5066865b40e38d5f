#include "checks.h"

#include <string.h>

#include <glassbox/dump.h>
#include <glassbox/orchestration.h>

#include "text/names.h"

static const gbx_name_set *const sets[] = {&gbx_roles,       &gbx_parameters,  &gbx_stages,
                                           &gbx_kinds,       &gbx_subtasks,    &gbx_core_types,
                                           &gbx_dump_levels, &gbx_loss_causes, &gbx_skip_reasons};
enum { SETS = sizeof sets / sizeof sets[0] };

static void a_name_and_its_number_find_each_other(void **state) {
    (void)state;
    for (size_t s = 0; s < SETS; ++s)
        for (uint32_t i = 0; i < sets[s]->count; ++i) {
            uint32_t number = 99;
            const char *name = gbx_name_of(sets[s], i);
            if (!name) {
                assert_ptr_equal(sets[s], &gbx_dump_levels);
                assert_int_equal(i, GBX_DUMP_OFF);
                continue;
            }
            assert_true(gbx_name_find(sets[s], name, &number));
            assert_int_equal(number, i);
            assert_true(gbx_name_find(sets[s], gbx_name_brief(sets[s], i), &number));
            assert_int_equal(number, i);
        }
}

static void files_rely_on_these(void **state) {
    (void)state;
    assert_string_equal(gbx_name_of(&gbx_roles, 0), "input");
    assert_string_equal(gbx_name_of(&gbx_roles, 1), "output");
    assert_string_equal(gbx_name_of(&gbx_roles, 2), "inout");
    assert_string_equal(gbx_name_brief(&gbx_parameters, 3), "scalar");
    assert_string_equal(gbx_name_of(&gbx_stages, 0), "before_dispatch");
    assert_string_equal(gbx_name_of(&gbx_stages, 1), "after_completion");
    assert_string_equal(gbx_name_of(&gbx_kinds, 0), "tensor");
    assert_string_equal(gbx_name_of(&gbx_subtasks, 1), "aiv0");
    assert_string_equal(gbx_name_of(&gbx_core_types, 1), "aiv");
    assert_string_equal(gbx_name_of(&gbx_dump_levels, 3), "hybrid");
    assert_string_equal(gbx_name_of(&gbx_loss_causes, 2), "corrupt");
    assert_string_equal(gbx_name_of(&gbx_skip_reasons, 0), "undescribed");
    assert_string_equal(gbx_name_of(&gbx_skip_reasons, 1), "misdescribed");
}

static void numbers_and_texts_outside_have_nothing(void **state) {
    (void)state;
    uint32_t number = 99;
    for (size_t s = 0; s < SETS; ++s) {
        assert_null(gbx_name_of(sets[s], sets[s]->count));
        assert_null(gbx_name_brief(sets[s], UINT32_MAX));
        assert_null(gbx_name_sentence(sets[s], 77));
        assert_false(gbx_name_find(sets[s], "", &number));
        assert_false(gbx_name_find(sets[s], "inpu", &number));
    }
    assert_false(gbx_name_find(&gbx_roles, "scalar", &number));
    assert_int_equal(number, 99);
}

static void a_list_has_every_word_once(void **state) {
    (void)state;
    char text[64];
    gbx_name_list(&gbx_roles, text, sizeof text);
    assert_string_equal(text, "input, output, inout, in, out");
    gbx_name_list(&gbx_dump_levels, text, sizeof text);
    assert_string_equal(text, "full, partial, hybrid, stats");
    gbx_name_list(&gbx_stages, text, 12);
    assert_string_equal(text, "before_disp");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_and_its_number_find_each_other),
        cmocka_unit_test(files_rely_on_these),
        cmocka_unit_test(numbers_and_texts_outside_have_nothing),
        cmocka_unit_test(a_list_has_every_word_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
