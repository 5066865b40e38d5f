#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/fill.h"

enum { CAPACITY = 8 << 20 };

static unsigned char filled[CAPACITY];
static unsigned char wanted[CAPACITY];

static gbx_tensor tensor_of(gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    gbx_status status = gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor);
    assert_null(status);
    assert_true(gbx_tensor_payload_bytes(&tensor) <= CAPACITY);
    return tensor;
}

static void fill(const gbx_fill *how, const gbx_tensor *tensor) {
    memset(filled, 0xee, sizeof filled);
    gbx_status status = gbx_fill_tensor(how, tensor, filled);
    assert_string_equal(gbx_status_message(status), "");
}

/* splitmix64 as a sequence: the state is stepped, not computed from the index. */
static double next_uniform(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = z ^ (z >> 31);
    return ldexp((double)(z >> 11), -53);
}

/* One element at a time, by the definition; elements of full bytes. */
static void fill_plainly(const gbx_fill *how, const gbx_tensor *tensor) {
    uint64_t state = how->seed;
    size_t width = gbx_dtype_bits(tensor->dtype) / 8;
    memset(wanted, 0xee, sizeof wanted);
    for (int64_t i = 0; i < gbx_tensor_numel(tensor); ++i) {
        double u = next_uniform(&state);
        double scaled = u * (how->high - how->low);
        double value = gbx_dtype_is_float(tensor->dtype)
                           ? how->low + scaled
                           : how->low + floor(u * (how->high - how->low + 1.0));
        uint64_t bits = gbx_dtype_from_f64(tensor->dtype, value);
        memcpy(wanted + (size_t)i * width, &bits, width);
    }
}

static void check_random(gbx_dtype dtype, int64_t count, double low, double high, uint64_t seed) {
    gbx_fill how = {.kind = GBX_FILL_RANDOM, .low = low, .high = high, .seed = seed};
    gbx_tensor tensor = tensor_of(dtype, 1, &count);
    fill(&how, &tensor);
    fill_plainly(&how, &tensor);
    assert_memory_equal(filled, wanted, sizeof filled);
}

static void first_numbers_are_those_of_splitmix64(void **state) {
    (void)state;
    /* Published outputs of splitmix64 from seed 1234567, divided by 2^64, cut to 53 bits. */
    static const uint64_t outputs[] = {6457827717110365317u, 3203168211198807973u,
                                       9817491932198370423u, 4593380528125082431u,
                                       16408922859458223821u};
    int64_t count = 5;
    gbx_fill how = {.kind = GBX_FILL_RANDOM, .low = 0.0, .high = 1.0, .seed = 1234567};
    gbx_tensor tensor = tensor_of(GBX_FLOAT64, 1, &count);
    fill(&how, &tensor);
    for (size_t i = 0; i < 5; ++i) {
        double value;
        memcpy(&value, filled + i * sizeof value, sizeof value);
        assert_true(value == ldexp((double)(outputs[i] >> 11), -53));
    }
}

static void every_dtype_is_as_defined(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        if (gbx_dtype_is_packed(dtype))
            continue;
        bool is_float = gbx_dtype_is_float(dtype);
        check_random((gbx_dtype)dtype, 1237, is_float ? -1.0 : 0.0, 1.0, dtype);
        check_random((gbx_dtype)dtype, 1, 0.0, 1.0, 3);
        check_random((gbx_dtype)dtype, 0, 0.0, 1.0, 3);
    }
}

/* Ranges whose numbers are subnormal, overflow, or are all zero in the narrow formats. */
static void fast_paths_give_the_same_bits(void **state) {
    (void)state;
    static const gbx_dtype dtypes[] = {GBX_BFLOAT16, GBX_FLOAT16, GBX_FLOAT32};
    static const double ranges[][2] = {{-1.0, 1.0},    {0.0, 1e-4},     {-1e-7, 1e-7},
                                       {0.0, 0.0},     {-3e38, 3.5e38}, {-1e5, 1e5},
                                       {65500, 65540}, {-1e-40, 1e-40}, {1.0, 1.0},
                                       {1e-60, 2e-60}, {-1e300, 1e300}, {0.0, 1.2e-38}};
    for (size_t d = 0; d < 3; ++d)
        for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; ++r)
            check_random(dtypes[d], 5003, ranges[r][0], ranges[r][1], 10 * r + d);
}

static void parts_of_threads_meet(void **state) {
    (void)state;
    check_random(GBX_BFLOAT16, 3 * (1 << 20) + 17, -1.0, 1.0, 5);
    check_random(GBX_UINT8, 7 * (1 << 20) + 1, 0.0, 255.0, 5);
}

static void integers_reach_both_ends(void **state) {
    (void)state;
    int64_t count = 4096;
    gbx_fill how = {.kind = GBX_FILL_RANDOM, .low = -2.0, .high = 3.0, .seed = 1};
    gbx_tensor tensor = tensor_of(GBX_INT8, 1, &count);
    bool seen[6] = {false};
    fill(&how, &tensor);
    for (int64_t i = 0; i < count; ++i) {
        int value = (signed char)filled[i];
        assert_in_range(value + 2, 0, 5);
        seen[value + 2] = true;
    }
    for (int i = 0; i < 6; ++i)
        assert_true(seen[i]);
}

static void rows_of_int4_start_at_a_byte(void **state) {
    (void)state;
    int64_t shape[] = {2, 3};
    gbx_fill how = {.kind = GBX_FILL_ARANGE, .start = -2.0, .step = 1.0};
    gbx_tensor tensor = tensor_of(GBX_INT4, 2, shape);
    fill(&how, &tensor);
    static const unsigned char expected[] = {0xfe, 0x00, 0x21, 0x03, 0xee};
    assert_memory_equal(filled, expected, sizeof expected);
    how = (gbx_fill){.kind = GBX_FILL_CONSTANT, .value_bits = 0xd};
    fill(&how, &tensor);
    static const unsigned char constant[] = {0xdd, 0x0d, 0xdd, 0x0d, 0xee};
    assert_memory_equal(filled, constant, sizeof constant);
}

static void constants_keep_their_bits(void **state) {
    (void)state;
    int64_t count = 1025;
    uint64_t bits[] = {0xfedcba9876543211u, 0x7f800001u};
    gbx_dtype dtypes[] = {GBX_UINT64, GBX_FLOAT32};
    for (size_t k = 0; k < 2; ++k) {
        gbx_fill how = {.kind = GBX_FILL_CONSTANT, .value_bits = bits[k]};
        gbx_tensor tensor = tensor_of(dtypes[k], 1, &count);
        size_t width = gbx_dtype_bits(dtypes[k]) / 8;
        fill(&how, &tensor);
        for (size_t i = 0; i < (size_t)count; ++i)
            assert_memory_equal(filled + i * width, &bits[k], width);
        assert_int_equal(filled[(size_t)count * width], 0xee);
    }
}

static void poison_differs_for_floats_and_goldens(void **state) {
    (void)state;
    int64_t count = 3;
    gbx_fill none = {.kind = GBX_FILL_NONE};
    gbx_tensor floats = tensor_of(GBX_BFLOAT16, 1, &count);
    gbx_tensor integers = tensor_of(GBX_INT16, 1, &count);
    fill(&none, &floats);
    assert_true(isnan(gbx_dtype_to_f64(GBX_BFLOAT16, filled[0] | (uint64_t)filled[1] << 8)));
    fill(&none, &integers);
    assert_int_equal(filled[5], 0xab);
    assert_int_equal(filled[6], 0xee);
    gbx_poison_tensor(GBX_POISON_GOLDEN, &floats, filled);
    assert_int_equal(filled[5], 0xab);
    gbx_poison_tensor(GBX_POISON_GOLDEN, &integers, filled);
    assert_int_equal(filled[5], 0xcd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_numbers_are_those_of_splitmix64),
        cmocka_unit_test(every_dtype_is_as_defined),
        cmocka_unit_test(fast_paths_give_the_same_bits),
        cmocka_unit_test(parts_of_threads_meet),
        cmocka_unit_test(integers_reach_both_ends),
        cmocka_unit_test(rows_of_int4_start_at_a_byte),
        cmocka_unit_test(constants_keep_their_bits),
        cmocka_unit_test(poison_differs_for_floats_and_goldens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
