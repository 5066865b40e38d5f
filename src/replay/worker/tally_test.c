#include "replay/worker/tally.h"

#include "checks.h"

enum { DISPATCHES = 5, NOT_STORED = 3 };

/* What a dispatch makes of an integer; `left` counts those that have not been called before it. */
typedef uint64_t (*effect)(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                           uint32_t left);

typedef struct kernel {
    effect effect;
    int64_t numbers[DISPATCHES];
    uint32_t count;
    uint64_t start;
    uint32_t bits;
} kernel;

static uint64_t narrow(const kernel *k, uint64_t value) {
    return k->bits == 32 ? (uint32_t)value : value;
}

/* Both passes, and the call that settles a doubt. */
static bool is_counter(const kernel *k) {
    gbx_tally tally = gbx_tally_of(7, k->bits);
    for (int is_backward = 0; is_backward < 2; ++is_backward) {
        uint64_t value = narrow(k, k->start);
        gbx_tally_begin(&tally, is_backward, value);
        for (uint32_t i = 0; i < k->count; ++i) {
            uint32_t dispatch = is_backward ? k->count - 1 - i : i;
            value = narrow(k, k->effect(k->numbers, dispatch, value, k->count - i));
            gbx_tally_see(&tally, dispatch, value);
        }
        gbx_tally_end(&tally);
    }
    assert_int_equal(tally.at, 7);
    if (!gbx_tally_is_counter(&tally) || !gbx_tally_is_doubtful(&tally))
        return gbx_tally_is_counter(&tally);
    return narrow(k, k->effect(k->numbers, tally.second, k->start, k->count)) !=
           narrow(k, k->start);
}

static uint64_t store(const int64_t *numbers, uint32_t dispatch, uint64_t value, uint32_t left) {
    (void)left;
    return numbers[dispatch] == NOT_STORED ? value : (uint64_t)numbers[dispatch];
}

static uint64_t add(const int64_t *numbers, uint32_t dispatch, uint64_t value, uint32_t left) {
    (void)left;
    return value + (uint64_t)numbers[dispatch];
}

/* All of them arrive; the last one puts back 40. */
static uint64_t add_and_reset(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                              uint32_t left) {
    return left == 1 ? 40 : value + (uint64_t)numbers[dispatch];
}

/* The first three arrive, and the last of them puts back 0; the others do nothing. */
static uint64_t three_arrive(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                             uint32_t left) {
    (void)numbers;
    (void)left;
    if (dispatch >= 3)
        return value;
    return value == 2 ? 0 : value + 1;
}

/* Steps of numbers[0] until numbers[1] is reached. */
static uint64_t take_tiles(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                           uint32_t left) {
    (void)dispatch;
    (void)left;
    while ((int64_t)value < numbers[1])
        value += (uint64_t)numbers[0];
    return value + (uint64_t)numbers[0];
}

/* Likewise; the last one puts back 0. */
static uint64_t take_tiles_and_reset(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                                     uint32_t left) {
    return left == 1 ? 0 : take_tiles(numbers, dispatch, value, left);
}

static uint64_t twice_and_one(const int64_t *numbers, uint32_t dispatch, uint64_t value,
                              uint32_t left) {
    (void)numbers;
    (void)dispatch;
    (void)left;
    return 2 * value + 1;
}

static uint32_t digits(uint32_t count, uint32_t base) {
    uint32_t all = 1;
    for (uint32_t i = 0; i < count; ++i)
        all *= base;
    return all;
}

/* 0, 1, 2, or nothing, by each of two to five dispatches, over 0, 1 or 2. */
static void a_plain_store_is_no_counter(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= DISPATCHES; ++count)
        for (uint32_t code = 0; code < digits(count, 4); ++code)
            for (uint64_t start = 0; start < 3; ++start) {
                kernel k = {.effect = store, .count = count, .start = start, .bits = 32};
                for (uint32_t i = 0, rest = code; i < count; ++i, rest /= 4)
                    k.numbers[i] = rest % 4;
                if (is_counter(&k))
                    fail_msg("%u dispatches, code %u over %u", (unsigned)count, (unsigned)code,
                             (unsigned)start);
            }
}

/* -2 to 2 by each of two to five dispatches, two of which add something. */
static void additions_are_a_counter(void **state) {
    (void)state;
    for (uint32_t bits = 32; bits <= 64; bits += 32)
        for (uint32_t count = 2; count <= DISPATCHES; ++count)
            for (uint32_t code = 0; code < digits(count, 5); ++code) {
                kernel k = {.effect = add, .count = count, .start = 1, .bits = bits};
                uint32_t adding = 0;
                for (uint32_t i = 0, rest = code; i < count; ++i, rest /= 5) {
                    k.numbers[i] = (int64_t)(rest % 5) - 2;
                    adding += k.numbers[i] != 0;
                }
                if (is_counter(&k) != (adding >= 2))
                    fail_msg("%u dispatches, code %u", (unsigned)count, (unsigned)code);
            }
}

static void the_last_may_put_back_the_start(void **state) {
    (void)state;
    kernel k = {.effect = add_and_reset, .numbers = {1, 1, 1, 1, 1}, .start = 40, .bits = 32};
    for (k.count = 2; k.count <= DISPATCHES; ++k.count)
        assert_true(is_counter(&k));
    const kernel uneven = {
        .effect = add_and_reset, .numbers = {5, 1, 2, 9}, .count = 4, .start = 40, .bits = 64};
    assert_true(is_counter(&uneven));
    const kernel not_the_start = {
        .effect = add_and_reset, .numbers = {1, 1, 1}, .count = 3, .start = 7, .bits = 32};
    assert_false(is_counter(&not_the_start));
    const kernel some = {.effect = three_arrive, .count = 5, .bits = 32};
    assert_true(is_counter(&some));
}

static void the_first_may_take_all_tiles(void **state) {
    (void)state;
    for (int64_t step = 1; step <= 3; ++step)
        for (int64_t tiles = 1; tiles < 20; ++tiles)
            for (uint32_t count = 2; count <= DISPATCHES; ++count) {
                kernel k = {
                    .effect = take_tiles, .numbers = {step, tiles}, .count = count, .bits = 32};
                assert_true(is_counter(&k));
                k.effect = take_tiles_and_reset;
                assert_true(is_counter(&k));
            }
}

/* What is neither an addition nor a take. */
static void growth_is_no_counter(void **state) {
    (void)state;
    for (uint32_t count = 2; count <= DISPATCHES; ++count) {
        kernel k = {.effect = twice_and_one, .count = count, .bits = 64};
        assert_false(is_counter(&k));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_store_is_no_counter), cmocka_unit_test(additions_are_a_counter),
        cmocka_unit_test(the_last_may_put_back_the_start),
        cmocka_unit_test(the_first_may_take_all_tiles), cmocka_unit_test(growth_is_no_counter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
