#include "replay/worker/pattern.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#include <glassbox/tensor.h>

/* More than a period of the pattern. */
enum { BYTES = 300 * 1000 };

static unsigned char patterns[GBX_PATTERNS][BYTES];

static void fill(gbx_pattern_flavour flavour, uint32_t salt) {
    for (int i = 0; i < GBX_PATTERNS; ++i)
        gbx_pattern_fill(i, flavour, salt, patterns[i], BYTES);
}

/* Of a byte and of each of its halves, because an element may have 4 bits. */
static void nothing_is_the_same_in_both(void **state) {
    (void)state;
    for (uint32_t salt = 0; salt < 8; ++salt) {
        fill((gbx_pattern_flavour)(salt % GBX_FLAVOURS), salt);
        for (size_t i = 0; i < BYTES; ++i) {
            unsigned different = patterns[0][i] ^ patterns[1][i];
            if ((different & 0x0fu) == 0 || (different & 0xf0u) == 0)
                fail_msg("salt %u, byte %zu: 0x%02x and 0x%02x", (unsigned)salt, i, patterns[0][i],
                         patterns[1][i]);
        }
    }
}

static double value_at(uint32_t dtype, const unsigned char *bytes) {
    uint64_t bits = 0;
    memcpy(&bits, bytes, gbx_dtype_bits(dtype) / 8);
    return gbx_dtype_to_f64(dtype, bits);
}

/* In memory with elements of its width: of ordinary size, so that sums are not lost in rounding. */
static void as_floats_they_are_ordinary_with_opposite_signs(void **state) {
    static const struct {
        uint32_t dtype;
        gbx_pattern_flavour flavour;
        double least, most;
    } kinds[] = {{GBX_FLOAT16, GBX_FLAVOUR_2, 1.7, 3.5},
                 {GBX_BFLOAT16, GBX_FLAVOUR_2, 0.5, 128},
                 {GBX_FLOAT32, GBX_FLAVOUR_2, 0.5, 128},
                 {GBX_FLOAT32, GBX_FLAVOUR_4, 0.5, 128},
                 {GBX_FLOAT64, GBX_FLAVOUR_2, 1.0 / 65536, 0x1p49},
                 {GBX_FLOAT64, GBX_FLAVOUR_4, 1.0 / 65536, 0x1p49},
                 {GBX_FLOAT64, GBX_FLAVOUR_8, 1.0 / 65536, 0x1p49}};
    (void)state;
    for (size_t k = 0; k < 5 * (sizeof kinds / sizeof kinds[0]); ++k) {
        size_t d = k / 5;
        uint32_t salt = (uint32_t)(k % 5);
        size_t width = gbx_dtype_bits(kinds[d].dtype) / 8;
        size_t large = 0, zeros = 0;
        fill(kinds[d].flavour, salt);
        for (size_t i = 0; i + width <= BYTES; i += width) {
            double one = value_at(kinds[d].dtype, patterns[0] + i);
            double other = value_at(kinds[d].dtype, patterns[1] + i);
            bool is_large = fabs(one) >= 0x1p13 && isfinite(one), is_zero = other == 0;
            bool is_good =
                ((fabs(one) >= kinds[d].least && fabs(one) < kinds[d].most) || is_large) &&
                ((fabs(other) >= kinds[d].least && fabs(other) < kinds[d].most) || is_zero) &&
                (is_zero || signbit(one) != signbit(other));
            large += is_large;
            zeros += is_zero;
            if (!is_good)
                fail_msg("%s, salt %u, byte %zu: %g and %g", gbx_dtype_name(kinds[d].dtype),
                         (unsigned)salt, i, one, other);
        }
        assert_in_range(zeros, BYTES / width * 2 / 5, BYTES / width * 3 / 5);
        if (kinds[d].dtype != GBX_FLOAT64) /* whose ordinary numbers are that large, too */
            assert_in_range(large, BYTES / width / 10, BYTES / width / 6);
    }
}

static void a_memory_has_the_flavour_of_its_narrowest_floats(void **state) {
    (void)state;
    assert_int_equal(gbx_pattern_flavour_of(1u << 1), GBX_FLAVOUR_BYTES);
    assert_int_equal(gbx_pattern_flavour_of(1u << 1 | 1u << 8), GBX_FLAVOUR_8);
    assert_int_equal(gbx_pattern_flavour_of(1u << 4 | 1u << 8), GBX_FLAVOUR_4);
    assert_int_equal(gbx_pattern_flavour_of(1u << 4 | 1u << 2 | 1u << 1), GBX_FLAVOUR_2);
}

/* Both signs and many values are in each of them. */
static void values_vary(void **state) {
    (void)state;
    fill(GBX_FLAVOUR_4, 0);
    for (int p = 0; p < GBX_PATTERNS; ++p) {
        size_t counts[256] = {0};
        size_t negative = 0, used = 0;
        for (size_t i = 0; i < BYTES; ++i)
            counts[patterns[p][i]]++;
        for (size_t i = 3; i < BYTES; i += 4)
            negative += patterns[p][i] >> 7;
        for (int i = 0; i < 256; ++i)
            used += counts[i] > 0;
        /* Half of the other pattern is zero. */
        size_t signs = p == GBX_PATTERN_FIRST ? BYTES / 4 : BYTES / 8;
        assert_in_range(negative, signs * 2 / 5, signs * 3 / 5);
        assert_true(used >= 64);
    }
}

/* A shorter memory has the same bytes, and none behind it is touched. */
static void a_part_is_like_the_whole(void **state) {
    static unsigned char part[BYTES + 1];
    (void)state;
    srand(5);
    fill(GBX_FLAVOUR_2, 7);
    for (int round = 0; round < 500; ++round) {
        size_t bytes = (size_t)rand() % (round % 10 ? 200 : BYTES);
        int pattern = round % GBX_PATTERNS;
        part[bytes] = 0x3d;
        gbx_pattern_fill(pattern, GBX_FLAVOUR_2, 7, part, bytes);
        assert_memory_equal(part, patterns[pattern], bytes);
        assert_int_equal(part[bytes], 0x3d);
    }
}

/* So few bytes are equal by chance that a copied row shows. */
static size_t count_equal(const unsigned char *one, const unsigned char *other, size_t bytes) {
    size_t equal = 0;
    for (size_t i = 0; i < bytes; ++i)
        equal += one[i] == other[i];
    return equal;
}

static void other_salts_and_places_have_other_bytes(void **state) {
    enum { SHORT = 4096 };
    static unsigned char first[SHORT], second[SHORT];
    static const size_t distances[] = {8, 64, 512, 4096, 16384, 65536, 131072, 1 << 18};
    (void)state;
    for (int k = 0; k < GBX_PATTERNS * GBX_FLAVOURS; ++k) {
        int p = k % GBX_PATTERNS;
        gbx_pattern_flavour f = (gbx_pattern_flavour)(k / GBX_PATTERNS);
        fill(f, 0);
        gbx_pattern_fill(p, f, 0, first, SHORT);
        for (uint32_t salt = 1; salt < 64; ++salt) {
            gbx_pattern_fill(p, f, salt, second, SHORT);
            assert_true(count_equal(first, second, SHORT) < SHORT * 3 / 5);
        }
        for (size_t i = 0; i < sizeof distances / sizeof distances[0]; ++i)
            if (count_equal(first, patterns[p] + distances[i], SHORT) >= SHORT * 3 / 5)
                fail_msg("%zu equal bytes at distance %zu",
                         count_equal(first, patterns[p] + distances[i], SHORT), distances[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_the_same_in_both),
        cmocka_unit_test(as_floats_they_are_ordinary_with_opposite_signs),
        cmocka_unit_test(a_memory_has_the_flavour_of_its_narrowest_floats),
        cmocka_unit_test(values_vary),
        cmocka_unit_test(a_part_is_like_the_whole),
        cmocka_unit_test(other_salts_and_places_have_other_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
