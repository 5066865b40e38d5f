#include "checks.h"

#include <string.h>

#include "text/near_names.h"

static void distances_count_letters(void **state) {
    static const struct {
        const char *wanted, *name;
        size_t distance;
    } pairs[] = {{"", "", 0},
                 {"gelu", "gelu", 0},
                 {"gleu", "gelu", 2},
                 {"gel", "gelu", 1},
                 {"gelux", "gelu", 2},
                 {"gela", "gelu", 2},
                 {"", "add", 1},
                 {"matmul", "add", 10},
                 {"sofmax", "softmax", 2},
                 {"sofmax", "softmax_rows", 3},
                 {"abcd", "badc", 4},
                 {"kitten", "sitting", 5}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i)
        assert_int_equal(gbx_near_distance(pairs[i].wanted, pairs[i].name), pairs[i].distance);
}

static void only_the_beginning_of_a_long_name_counts(void **state) {
    char a[3 * GBX_NEAR_BYTES], b[3 * GBX_NEAR_BYTES];
    (void)state;
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    b[sizeof b - 2] = 'y';
    assert_int_equal(gbx_near_distance(a, b), 0);
    assert_int_equal(gbx_near_distance(a, ""), 2 * GBX_NEAR_BYTES);
}

static void the_nearest_come_first(void **state) {
    static const char *const names[] = {"matmul", "add", "gelu", "relu", "glu"};
    static const size_t expected[] = {2, 4, 3, 1, 0};
    size_t order[5];
    (void)state;
    gbx_near_sort("gleu", names, 5, order);
    assert_memory_equal(order, expected, sizeof order);
    gbx_near_sort("", names, 0, order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_letters),
        cmocka_unit_test(only_the_beginning_of_a_long_name_counts),
        cmocka_unit_test(the_nearest_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
