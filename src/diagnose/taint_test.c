#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "diagnose/taint.h"

enum { BYTES = 1024, STEPS = 4000, WIDTH = 4 };
#define BASE UINT64_C(0x7e9000001000)

static uint64_t random_below(uint64_t *seed, uint64_t end) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % end;
}

static void check_good(gbx_status status) {
    if (status)
        fail_msg("%s", gbx_status_message(status));
}

/* A view of up to 4 by 5 elements, of any strides that keep it inside the memory. */
static gbx_tensor random_view(uint64_t *seed) {
    gbx_tensor view = {.data = BASE, .buffer_bytes = BYTES, .dtype = GBX_FLOAT32, .ndims = 2};
    view.shape[0] = (int64_t)random_below(seed, 5);
    view.shape[1] = 1 + (int64_t)random_below(seed, 5);
    view.strides[0] = 1 + (int64_t)random_below(seed, 20);
    view.strides[1] = 1 + (int64_t)random_below(seed, 3);
    view.start_offset = (int64_t)random_below(seed, 100);
    return view;
}

/* Sets a mark for each byte of a view. */
static void mark_view(const gbx_tensor *view, bool *marks) {
    memset(marks, 0, BYTES);
    for (int64_t i = 0; i < view->shape[0]; ++i)
        for (int64_t j = 0; j < view->shape[1]; ++j) {
            int64_t element = view->start_offset + i * view->strides[0] + j * view->strides[1];
            memset(marks + element * WIDTH, 1, WIDTH);
        }
}

static void add_both(gbx_memory_map *map, uint64_t *bits, uint64_t *seed) {
    uint64_t begin = random_below(seed, BYTES), end = begin + random_below(seed, BYTES - begin);
    uint64_t bit = UINT64_C(1) << random_below(seed, 64);
    check_good(gbx_taint_add(map, BASE + begin, BASE + end, bit));
    for (uint64_t i = begin; i < end; ++i)
        bits[i] |= bit;
}

static void write_both(gbx_memory_map *map, uint64_t *bits, uint64_t *seed) {
    bool is_written[BYTES], is_kept[BYTES] = {0};
    gbx_address_range items[3];
    gbx_address_ranges kept = {.items = items};
    gbx_tensor view = random_view(seed);
    uint64_t set = random_below(seed, 3);
    for (uint64_t at = 0; kept.count < 3; ++kept.count) {
        uint64_t begin = at + random_below(seed, 150), end = begin + 1 + random_below(seed, 150);
        items[kept.count] = (gbx_address_range){BASE + begin, BASE + end};
        memset(is_kept + begin, 1, end - begin);
        at = end;
    }
    bool keeps = random_below(seed, 2);
    check_good(gbx_taint_write(map, &view, set, keeps ? &kept : NULL));
    mark_view(&view, is_written);
    for (uint64_t i = 0; i < BYTES; ++i)
        if (is_written[i] && !(keeps && is_kept[i]))
            bits[i] = set;
}

static void compare(const gbx_memory_map *map, const uint64_t *bits, uint64_t *seed) {
    bool is_read[BYTES];
    gbx_tensor view = random_view(seed);
    uint64_t begin = random_below(seed, BYTES), end = begin + random_below(seed, BYTES - begin);
    uint64_t of_range = 0, of_view = 0;
    bool has_all = true;
    mark_view(&view, is_read);
    for (uint64_t i = 0; i < BYTES; ++i) {
        of_range |= i >= begin && i < end ? bits[i] : 0;
        of_view |= is_read[i] ? bits[i] : 0;
        has_all &= !is_read[i] || bits[i] != 0;
    }
    assert_int_equal(gbx_taint_of_range(map, BASE + begin, BASE + end), of_range);
    assert_int_equal(gbx_taint_of_view(map, &view), of_view);
    assert_int_equal(gbx_taint_has_all(map, &view), has_all);
}

static void agrees_with_single_bytes(void **state) {
    (void)state;
    uint64_t bits[BYTES] = {0}, seed = 3;
    gbx_memory_map *map = NULL;
    check_good(gbx_memory_map_create(GBX_OFFSETS_STAY, &map));
    for (int i = 0; i < STEPS; ++i) {
        if (random_below(&seed, 8) == 0)
            add_both(map, bits, &seed);
        else
            write_both(map, bits, &seed);
        compare(map, bits, &seed);
    }
    gbx_memory_map_destroy(map);
}

/* A view with more pieces than are followed: what lies between its first and its last byte counts
 * as read, and nothing as written. */
static void takes_the_extent_of_scattered_views(void **state) {
    (void)state;
    enum { ELEMENTS = (1 << 20) + 1 };
    gbx_memory_map *map = NULL;
    gbx_tensor view = {.data = BASE,
                       .buffer_bytes = (uint64_t)ELEMENTS * 2 * WIDTH,
                       .dtype = GBX_FLOAT32,
                       .ndims = 1,
                       .shape = {ELEMENTS},
                       .strides = {2}};
    check_good(gbx_memory_map_create(GBX_OFFSETS_STAY, &map));
    check_good(gbx_taint_add(map, BASE + WIDTH, BASE + 2 * WIDTH, 4)); /* between two elements */
    assert_false(gbx_taint_can_follow(&view));
    assert_int_equal(gbx_taint_of_view(map, &view), 4);
    check_good(gbx_taint_write(map, &view, 0, NULL));
    assert_int_equal(gbx_taint_of_view(map, &view), 4);
    gbx_memory_map_destroy(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_single_bytes),
                                       cmocka_unit_test(takes_the_extent_of_scattered_views)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
