#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "diagnose/odd.h"

enum { VALUES_MAX = 512 };

#define COUNT(values) (sizeof(values) / sizeof(values)[0])

/* At most three nested loops: value[i][j][k] = start + i * steps[0] + j * steps[1] + k * steps[2].
 */
typedef struct loops {
    size_t lengths[3];
    uint64_t steps[3];
    uint64_t start;
} loops;

static size_t run(const loops *l, uint64_t *values) {
    size_t count = 0;
    for (size_t i = 0; i < l->lengths[0]; ++i)
        for (size_t j = 0; j < l->lengths[1]; ++j)
            for (size_t k = 0; k < l->lengths[2]; ++k)
                values[count++] = l->start + i * l->steps[0] + j * l->steps[1] + k * l->steps[2];
    return count;
}

static void check_none(const uint64_t *values, size_t count) {
    size_t position;
    uint64_t expected;
    if (gbx_odd_one(values, count, &position, &expected))
        fail_msg("value %zu of %zu is odd: expected %lld", position, count, (long long)expected);
}

static void check_odd(const uint64_t *values, size_t count, size_t at, uint64_t wanted) {
    size_t position = SIZE_MAX;
    uint64_t expected = 0;
    if (!gbx_odd_one(values, count, &position, &expected) || position != at || expected != wanted)
        fail_msg("%zu values: odd is %zd, expected %lld there; it is %zu, %lld", count,
                 (ssize_t)position, (long long)expected, at, (long long)wanted);
}

/* Breaks each value from `first` to before `end`, and mends it again. */
static void check_each(const loops *l, size_t first, size_t end, uint64_t by) {
    uint64_t values[VALUES_MAX];
    size_t count = run(l, values);
    check_none(values, count);
    for (size_t at = first; at < end; ++at) {
        values[at] += by;
        check_odd(values, count, at, values[at] - by);
        values[at] -= by;
    }
}

static void test_constant(void **state) {
    (void)state;
    for (uint64_t value = 0; value < 3; ++value)
        for (size_t count = 4; count < 12; ++count) {
            const loops same = {{count, 1, 1}, {0, 0, 0}, value - 1};
            check_each(&same, 0, count, 1);
            check_each(&same, 0, count, UINT64_C(1) << 63);
        }
}

static void test_arithmetic(void **state) {
    (void)state;
    static const uint64_t steps[] = {1, 8, 4096, (uint64_t)-3, UINT64_C(1) << 62};
    for (size_t i = 0; i < COUNT(steps); ++i)
        for (size_t count = 7; count < 20; ++count) {
            const loops rising = {{count, 1, 1}, {steps[i], 0, 0}, 1000};
            check_each(&rising, 1, count - 1, 5);
            check_each(&rising, 1, count - 1, (uint64_t)-5);
        }
}

/* Sums wrap around: addresses at the end, and scalars that are negative. */
static void test_wrap_around(void **state) {
    (void)state;
    const loops over = {{10, 1, 1}, {8, 0, 0}, (uint64_t)-40};
    const loops nested = {{6, 4, 1}, {UINT64_C(1) << 61, 8, 0}, (uint64_t)-16};
    check_each(&over, 1, 9, 3);
    check_each(&nested, 4, 20, 3);
}

/* Values in the first and the last turn of the outer loop have no partner on one side. */
static void test_nested(void **state) {
    (void)state;
    for (size_t inner = 2; inner < 9; ++inner)
        for (size_t outer = 5; outer < 9; ++outer) {
            const loops two = {{outer, inner, 1}, {1000, 8, 0}, 77};
            check_each(&two, inner, (outer - 1) * inner, 3);
            const loops back = {{outer, inner, 1}, {(uint64_t)-64, 8, 0}, 77};
            check_each(&back, inner, (outer - 1) * inner, 4096);
            const loops again = {{outer, inner, 1}, {0, 8, 0}, 5}; /* the same values each turn */
            check_each(&again, inner, (outer - 1) * inner, 1);
        }
    for (size_t middle = 2; middle < 5; ++middle)
        for (size_t inner = 2; inner < 5; ++inner) {
            const loops three = {{6, middle, inner}, {100000, 1000, 8}, 3};
            size_t turn = middle * inner;
            check_each(&three, turn, 5 * turn, 3);
            check_each(&three, turn, 5 * turn, 1000);
        }
}

/* The last one, or the last of each row, may be shorter: that is no break. */
static void test_tails(void **state) {
    (void)state;
    static const uint64_t first[] = {3, 8, 16, 24, 32}, last[] = {0, 8, 16, 24, 30};
    check_none(first, COUNT(first));
    check_none(last, COUNT(last));
    uint64_t rows[24];
    for (size_t i = 0; i < COUNT(rows); ++i)
        rows[i] = i % 6 == 5 ? 20 : 32;
    check_none(rows, COUNT(rows));
    rows[9] = 31;
    check_odd(rows, COUNT(rows), 9, 32);
    rows[9] = 32;
    rows[11] = 32;
    check_odd(rows, COUNT(rows), 11, 20);
}

static void test_two_breaks(void **state) {
    (void)state;
    static const uint64_t constant[] = {7, 7, 1, 7, 7, 2, 7, 7};
    static const uint64_t same[] = {7, 7, 1, 7, 7, 1, 7, 7};
    static const uint64_t rising[] = {0, 8, 17, 24, 33, 40, 48, 56};
    static const uint64_t apart[] = {0, 8, 17, 24, 32, 40, 50, 56, 64, 72};
    static const uint64_t adjacent[] = {0, 8, 16, 99, 98, 40, 48, 56, 64};
    check_none(constant, COUNT(constant));
    check_none(same, COUNT(same));
    check_none(rising, COUNT(rising));
    check_none(apart, COUNT(apart));
    check_none(adjacent, COUNT(adjacent));
}

static void test_no_pattern(void **state) {
    (void)state;
    static const uint64_t few[] = {4, 4, 5};
    static const uint64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
    static const uint64_t powers[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    for (size_t count = 0; count <= COUNT(few); ++count)
        check_none(few, count);
    check_none(primes, COUNT(primes));
    check_none(powers, COUNT(powers));
    uint64_t random[VALUES_MAX], seed = 1;
    for (size_t round = 0; round < 200; ++round) {
        for (size_t i = 0; i < 40; ++i) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            random[i] = seed >> 40;
        }
        check_none(random, 40);
    }
}

/* As many as are looked at, in loops: takes a fraction of a second. */
static void test_many(void **state) {
    (void)state;
    enum { MANY = 1 << 16, INNER = 16 };
    uint64_t *values = malloc(MANY * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < MANY; ++i)
        values[i] = i / INNER * 1000 + i % INNER * 8;
    check_none(values, MANY);
    values[40000] += 8;
    check_odd(values, MANY, 40000, 40000 / INNER * 1000);
    free(values);
}

/* Of four values on a line, one that is not at an end. */
static void test_short_line(void **state) {
    (void)state;
    for (size_t odd = 1; odd < 3; ++odd) {
        uint64_t values[] = {7, 71, 135, 199}, expected;
        size_t position;
        const uint64_t right = values[odd];
        check_none(values, COUNT(values));
        values[odd] -= 4;
        assert_true(gbx_odd_one(values, COUNT(values), &position, &expected));
        assert_int_equal(position, odd);
        assert_int_equal(expected, right);
    }
    check_none((const uint64_t[]){8, 71, 135, 199}, 4);
    check_none((const uint64_t[]){7, 71, 135, 200}, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_line), cmocka_unit_test(test_constant),
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_wrap_around),
        cmocka_unit_test(test_nested),     cmocka_unit_test(test_tails),
        cmocka_unit_test(test_two_breaks), cmocka_unit_test(test_no_pattern),
        cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
