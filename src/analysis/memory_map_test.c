#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/memory_map.h"

enum { BYTES = 4096, STEPS = 3000, NO_OWNER = 0 };

/* What is known of each single byte. */
typedef struct known_byte {
    uint64_t owner; /* NO_OWNER for none */
    uint64_t offset;
} known_byte;

static uint64_t random_below(uint64_t *seed, uint64_t end) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % end;
}

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

/* The map agrees with the array on every byte, and its ranges are sorted. */
static void compare(const gbx_memory_map *map, const known_byte *bytes, bool moves) {
    uint64_t at = 0, count = 0;
    gbx_memory_range range;
    while (gbx_memory_map_find(map, at, &range)) {
        assert_true(range.begin >= at && range.begin < range.end && range.end <= BYTES);
        for (; at < range.begin; ++at)
            assert_int_equal(bytes[at].owner, NO_OWNER);
        for (; at < range.end; ++at) {
            assert_int_equal(bytes[at].owner, range.owner);
            assert_int_equal(bytes[at].offset, range.offset + (moves ? at - range.begin : 0));
        }
        ++count;
    }
    for (; at < BYTES; ++at)
        assert_int_equal(bytes[at].owner, NO_OWNER);
    assert_int_equal(count, gbx_memory_map_count(map));
}

static void set_both(gbx_memory_map *map, known_byte *bytes, const gbx_memory_range *range,
                     bool moves) {
    check_good(gbx_memory_map_set(map, range));
    for (uint64_t i = range->begin; i < range->end; ++i)
        bytes[i] = (known_byte){range->owner, range->offset + (moves ? i - range->begin : 0)};
}

/* `reach` bounds the length of a range: short ranges add many, long ones remove many. */
static void run_random(bool moves, uint64_t reach, uint64_t seed) {
    gbx_memory_map *map = NULL;
    known_byte *bytes = calloc(BYTES, sizeof *bytes);
    assert_non_null(bytes);
    check_good(gbx_memory_map_create(moves ? GBX_OFFSETS_MOVE : GBX_OFFSETS_STAY, &map));
    for (uint64_t step = 1; step <= STEPS; ++step) {
        uint64_t begin = random_below(&seed, BYTES);
        uint64_t length = 1 + random_below(&seed, random_below(&seed, 50) == 0 ? BYTES : reach);
        uint64_t end = begin + length < BYTES ? begin + length : BYTES;
        set_both(map, bytes, &(gbx_memory_range){begin, end, step, random_below(&seed, 1000000)},
                 moves);
        if (step % 50 == 0 || step < 50)
            compare(map, bytes, moves);
    }
    gbx_memory_map_clear(map);
    memset(bytes, 0, BYTES * sizeof *bytes);
    compare(map, bytes, moves);
    gbx_memory_map_destroy(map);
    free(bytes);
}

static void test_random_ranges(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 4; ++i) {
        run_random(true, 3, i);
        run_random(false, 3, i);
        run_random(true, 40, i);
        run_random(false, 400, i);
    }
}

/* More ranges than a chunk holds, then one over all of them, at the end of all addresses. */
static void test_many_then_one(void **state) {
    (void)state;
    gbx_memory_map *map = NULL;
    gbx_memory_range found;
    check_good(gbx_memory_map_create(GBX_OFFSETS_MOVE, &map));
    assert_false(gbx_memory_map_find(map, 0, &found));
    for (uint64_t i = 0; i < 5000; ++i) {
        uint64_t begin = UINT64_MAX - 4 * (i * 2503 % 5000 + 1);
        check_good(gbx_memory_map_set(map, &(gbx_memory_range){begin, begin + 2, i, i}));
    }
    assert_int_equal(gbx_memory_map_count(map), 5000);
    assert_true(gbx_memory_map_find(map, UINT64_MAX - 4, &found));
    assert_int_equal(found.owner, 0);
    assert_false(gbx_memory_map_find(map, UINT64_MAX - 2, &found));
    check_good(gbx_memory_map_set(map, &(gbx_memory_range){100, UINT64_MAX, 77, 5}));
    assert_int_equal(gbx_memory_map_count(map), 1);
    assert_true(gbx_memory_map_find(map, 0, &found));
    assert_true(found.begin == 100 && found.end == UINT64_MAX && found.owner == 77);
    gbx_memory_map_destroy(map);
    gbx_memory_map_destroy(NULL);
}

/* An eighth of the 2^24 ranges is reserved; setting one may cut another in two. */
static void test_room(void **state) {
    (void)state;
    gbx_memory_map *map = NULL;
    uint64_t half = ((UINT64_C(1) << 24) - (UINT64_C(1) << 21)) / 2;
    check_good(gbx_memory_map_create(GBX_OFFSETS_MOVE, &map));
    assert_true(gbx_memory_map_has_room(map, half));
    assert_false(gbx_memory_map_has_room(map, half + 1));
    assert_false(gbx_memory_map_has_room(map, UINT64_MAX));
    check_good(gbx_memory_map_set(map, &(gbx_memory_range){10, 20, 1, 0}));
    check_good(gbx_memory_map_set(map, &(gbx_memory_range){14, 16, 2, 0}));
    assert_int_equal(gbx_memory_map_count(map), 3);
    assert_true(gbx_memory_map_has_room(map, half - 2));
    assert_false(gbx_memory_map_has_room(map, half - 1));
    gbx_memory_map_destroy(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_ranges),
        cmocka_unit_test(test_many_then_one),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
