#include "guard/device/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { BYTES = 4096 };
static _Alignas(64) unsigned char memory[BYTES];

static uint64_t at(uint64_t offset) {
    return (uint64_t)(uintptr_t)memory + offset;
}

/* Any range is written, and nothing beside it. */
static void test_any_range(void **state) {
    (void)state;
    for (uint64_t first = 0; first < 200; first += 7)
        for (uint64_t end = first; end < 700; end += 13) {
            memset(memory, 0, sizeof memory);
            gbx_pattern_write(at(first), at(end));
            for (uint64_t i = 0; i < 800; ++i)
                assert_int_equal(memory[i] != 0, i >= first && i < end);
            uint64_t lines = end / 64 * 64;
            assert_true(lines < first || gbx_pattern_is_whole(at(first), at(lines)));
        }
}

/* Every byte that changes is found, alone. */
static void test_every_byte_counts(void **state) {
    (void)state;
    gbx_pattern_damage damage;
    const uint64_t first = 37, end = 1024;
    gbx_pattern_write(at(first), at(end));
    assert_false(gbx_pattern_find_damage(at(first), at(end), &damage));
    for (uint64_t i = first; i < end; ++i) {
        unsigned char was = memory[i];
        memory[i] = 0;
        assert_false(gbx_pattern_is_whole(at(first), at(end)));
        assert_true(gbx_pattern_find_damage(at(first), at(end), &damage));
        assert_true(damage.first == at(i) && damage.end == at(i + 1) && damage.bytes == 1);
        memory[i] = was;
    }
    memory[100] ^= 1;
    memory[300] ^= 1;
    memory[301] ^= 1;
    assert_true(gbx_pattern_find_damage(at(first), at(end), &damage));
    assert_true(damage.first == at(100) && damage.end == at(302) && damage.bytes == 3);
}

/* What kernels write is not among the bytes, and no line is like one near it. */
static void test_not_by_chance(void **state) {
    (void)state;
    gbx_pattern_write(at(0), at(BYTES));
    static const unsigned char often[] = {0x00, 0x3f, 0x40, 0x41, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (uint64_t i = 0; i < BYTES; ++i)
        for (size_t k = 0; k < sizeof often; ++k)
            assert_int_not_equal(memory[i], often[k]);
    for (uint64_t a = 0; a < BYTES; a += 8)
        for (uint64_t b = a + 8; b < BYTES; b += 8)
            assert_memory_not_equal(memory + a, memory + b, 8);
}

static void test_poison_is_nan(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 4; ++number)
        for (uint64_t bytes = 0; bytes < 100; ++bytes) {
            memset(memory, 0, sizeof memory);
            gbx_poison_write(at(64), at(64 + bytes), number);
            for (uint64_t i = 0; i < 200; ++i) {
                bool is_inside = i >= 64 && i < 64 + bytes;
                unsigned expected = (i & 1) && !(number & 1) ? 0x7f : 0xff;
                assert_int_equal(memory[i], is_inside ? expected : 0);
            }
            float single;
            double wide;
            memcpy(&single, memory + 64, sizeof single);
            memcpy(&wide, memory + 64, sizeof wide);
            assert_true(bytes < sizeof single || isnan(single));
            assert_true(bytes < sizeof wide || isnan(wide));
            if (bytes >= sizeof single)
                assert_int_equal(!!signbit(single), number & 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_range),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_not_by_chance),
        cmocka_unit_test(test_poison_is_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
