/* The comparison, at every level of the processor, against a plain loop over elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"
#include "tensor/compare/compare_kernels.h"

enum { MAX_COUNT = 3 * GBX_COMPARISON_STEP + 37 };

static uint64_t random_state = 1;

static uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(2685821657736338717);
}

static uint64_t random_below(uint64_t end) {
    return (random_u64() >> 16) % end;
}

static double random_unit(void) {
    return (double)(random_u64() >> 11) * 0x1p-53;
}

/* --- elements --- */

typedef struct elements {
    uint32_t dtype;
    size_t count;
    uint64_t got[MAX_COUNT];
    uint64_t want[MAX_COUNT];
} elements;

static elements data;

static uint64_t all_bits(uint32_t dtype) {
    return UINT64_MAX >> (64 - gbx_dtype_bits(dtype));
}

static uint64_t random_special(uint32_t dtype) {
    static const double values[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0, 2.0};
    const uint64_t sign = random_u64() % 2 << (gbx_dtype_bits(dtype) - 1);
    switch (random_below(4)) {
    case 0: /* subnormal, or small */
        return random_below(4) | sign;
    case 1: /* near the largest number, beyond it, NaN */
        return (gbx_dtype_from_f64(dtype, INFINITY) - 2 + random_below(4)) & all_bits(dtype);
    case 2:
        return random_u64() & all_bits(dtype);
    default:
        return gbx_dtype_from_f64(dtype, values[random_below(8)]);
    }
}

static uint64_t random_usual(uint32_t dtype) {
    double value = (random_unit() - 0.5) * (gbx_dtype_is_float(dtype) ? 4.0 : 300.0);
    return gbx_dtype_from_f64(dtype, value);
}

typedef void make_pair(uint32_t dtype, uint64_t *out_got, uint64_t *out_want);

static void make_usual(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    *out_got = random_usual(dtype);
    *out_want = random_usual(dtype);
}

static void make_near(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    *out_want = random_usual(dtype);
    *out_got = (*out_want + random_below(5) - 2) & all_bits(dtype);
}

static void make_equal(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    *out_got = *out_want = random_usual(dtype);
}

static void make_special(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    *out_got = random_special(dtype);
    *out_want = random_below(3) == 0 ? *out_got : random_special(dtype);
}

static void make_mixed(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    static make_pair *const makers[] = {make_usual, make_near, make_near, make_equal};
    if (random_below(40) == 0)
        make_special(dtype, out_got, out_want);
    else
        makers[random_below(4)](dtype, out_got, out_want);
}

/* Every quotient the same: the first is the worst. */
static void make_double(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    double value = (double)(random_below(7) + 1) * (random_u64() % 2 ? 1 : -1);
    *out_want = gbx_dtype_from_f64(dtype, value * 0.5);
    *out_got = gbx_dtype_from_f64(dtype, value);
}

/* Quotients that differ in the last bits of a double, or not. */
static void make_close_quotients(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    int exponent = gbx_dtype_bits(dtype) > 16 || dtype == GBX_BFLOAT16 ? 50 : 13;
    double small = ldexp(1.0 + (double)random_below(3) * 0.25, -(int)random_below(5) - exponent);
    *out_got = gbx_dtype_from_f64(dtype, random_below(9) ? 1.0 : 1.25);
    *out_want = gbx_dtype_from_f64(dtype, random_u64() % 2 ? small : -small);
}

/* About the smallest number that is not subnormal, and a few steps apart. */
static void make_small(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    const uint64_t normal = dtype == GBX_FLOAT32 ? UINT64_C(1) << 23 : 128;
    const uint64_t sign = random_u64() % 2 << (gbx_dtype_bits(dtype) - 1);
    const uint64_t code = normal / 2 * (random_below(2) + 1) + random_below(40);
    *out_want = (code | sign) & all_bits(dtype);
    *out_got = (*out_want + random_below(7)) & all_bits(dtype);
}

/* Far below 1 and far above subnormal numbers, some of them equal. */
static void make_tiny(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    double want = ldexp(random_unit() - 0.5, -58 - (int)random_below(4));
    *out_want = gbx_dtype_from_f64(dtype, want);
    *out_got = gbx_dtype_from_f64(dtype, want * (1.0 + 0.25 * (double)random_below(4)));
}

/* Relative differences beyond the range of floats. */
static void make_vast(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    *out_want = random_below(7);
    *out_got = gbx_dtype_from_f64(dtype, ldexp(1.0 + random_unit(), 126 - (int)random_below(3)));
}

/* Equal stretches between others. */
static void make_stretches(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    static uint64_t left;
    static bool is_equal;
    if (left-- == 0) {
        left = random_below(400);
        is_equal = !is_equal;
    }
    (is_equal ? make_equal : make_mixed)(dtype, out_got, out_want);
}

/* Squares beyond the range of doubles, above or below. */
static void make_extreme(uint32_t dtype, uint64_t *out_got, uint64_t *out_want) {
    int exponent = (int)random_below(3) * 850 - 900;
    *out_got = gbx_dtype_from_f64(dtype, ldexp(random_unit() - 0.5, exponent));
    *out_want = gbx_dtype_from_f64(dtype, ldexp(random_unit() - 0.5, exponent));
}

static make_pair *const makers[] = {make_mixed,   make_usual,  make_near,      make_equal,
                                    make_special, make_double, make_stretches, make_close_quotients,
                                    make_small,   make_tiny,   make_vast,      make_extreme};
enum { MAKERS = sizeof makers / sizeof makers[0] };

static void make_elements(uint32_t dtype, size_t count, make_pair *make) {
    data.dtype = dtype;
    data.count = count;
    for (size_t i = 0; i < count; ++i)
        make(dtype, &data.got[i], &data.want[i]);
}

/* A row that ends with its heap block, so that address sanitizer sees a byte too far. */
typedef struct row {
    unsigned char *block;
    unsigned char *bytes;
} row;

static row row_make(const uint64_t *bits, size_t shift) {
    const size_t width = gbx_dtype_bits(data.dtype);
    const size_t size = (data.count * width + 7) / 8;
    row made = {.block = malloc(size + shift > 0 ? size + shift : 1)};
    assert_non_null(made.block);
    made.bytes = made.block + shift;
    for (size_t i = 0; i < data.count; ++i) {
        if (width > 4)
            memcpy(made.bytes + i * width / 8, &bits[i], width / 8);
        else if (i % 2 == 0)
            made.bytes[i / 2] =
                (unsigned char)(bits[i] | 0xa0); /* the other half is not an element */
        else
            made.bytes[i / 2] = (unsigned char)((made.bytes[i / 2] & 0xf) | bits[i] << 4);
    }
    return made;
}

/* --- the reference --- */

typedef struct expectation {
    gbx_comparison exact; /* all but the sums */
    long double sums[GBX_COMPARE_SUMS];
    long double magnitudes[GBX_COMPARE_SUMS]; /* sums of the magnitudes of all terms */
} expectation;

/* Numbers the values of a dtype from 0 on, in ascending order, with infinity last. */
static int64_t rank_of(uint32_t dtype, double value) {
    static const struct {
        int fraction_bits;
        int least_exponent; /* of a normal number */
        int end_exponent;   /* of infinity */
    } formats[GBX_DTYPE_COUNT] = {
        [GBX_FLOAT32] = {23, -126, 128},   [GBX_FLOAT16] = {10, -14, 16},
        [GBX_BFLOAT16] = {7, -126, 128},   [GBX_FLOAT64] = {52, -1022, 1024},
        [GBX_FLOAT8_E4M3] = {3, -6, 1000}, [GBX_FLOAT8_E5M2] = {2, -14, 16},
        [GBX_FLOAT4_E2M1] = {1, 0, 1000},  [GBX_FLOAT8_E8M0] = {0, -127, 1000},
    };
    const int bits = formats[dtype].fraction_bits, least = formats[dtype].least_exponent;
    double magnitude = fabs(value);
    int exponent = isinf(value) ? formats[dtype].end_exponent : least;
    if (!isinf(value) && magnitude >= ldexp(1.0, least))
        exponent = ilogb(magnitude);
    /* Values below this exponent, then those with it. */
    int64_t below = (int64_t)(exponent - least) << bits;
    int64_t within = INT64_C(1) << bits;
    if (!isinf(value))
        within = (int64_t)scalbn(magnitude, bits - exponent);
    return signbit(value) ? -(below + within) : below + within;
}

static int64_t signed_of(uint32_t dtype, uint64_t bits) {
    const unsigned unused = 64 - gbx_dtype_bits(dtype);
    return (int64_t)(bits << unused) >> unused;
}

static uint64_t expect_ulp(uint32_t dtype, uint64_t got_bits, uint64_t want_bits) {
    __extension__ typedef __int128 wide;
    wide got = got_bits, want = want_bits;
    if (gbx_dtype_is_float(dtype)) {
        got = rank_of(dtype, gbx_dtype_to_f64(dtype, got_bits));
        want = rank_of(dtype, gbx_dtype_to_f64(dtype, want_bits));
    } else if (gbx_dtype_is_signed(dtype)) {
        got = signed_of(dtype, got_bits);
        want = signed_of(dtype, want_bits);
    } else if (dtype == GBX_BOOL) {
        got = got_bits != 0;
        want = want_bits != 0;
    }
    return (uint64_t)(got > want ? got - want : want - got);
}

static double usable(double value) {
    return value > DBL_MAX ? DBL_MAX : value > 0 ? value : 0;
}

/* If one is not finite and they are not equal. */
static void expect_apart(uint32_t dtype, size_t i, double got, double want, gbx_comparison *c) {
    bool has_nan = isnan(got) || isnan(want);
    uint64_t ulp = has_nan ? UINT64_MAX : expect_ulp(dtype, data.got[i], data.want[i]);
    c->unequal += 1;
    c->max_abs = INFINITY;
    if (want != 0)
        c->max_rel = INFINITY;
    c->max_ulp = ulp > c->max_ulp ? ulp : c->max_ulp;
}

/* Two finite numbers; returns whether they are near, and how far beyond the tolerance they are. */
static bool expect_finite(uint32_t dtype, size_t i, double got, double want, gbx_comparison *c,
                          double *out_excess) {
    double rtol = usable(c->tolerance.rtol), atol = usable(c->tolerance.atol);
    uint64_t ulp = expect_ulp(dtype, data.got[i], data.want[i]);
    double difference = gbx_dtype_is_float(dtype) ? fabs(got - want) : (double)ulp;
    double tolerance = atol + (want == 0 ? 0 : rtol * fabs(want));
    c->unequal += ulp != 0;
    c->max_abs = fmax(c->max_abs, difference);
    if (want != 0)
        c->max_rel = fmax(c->max_rel, difference / fabs(want));
    c->max_ulp = ulp > c->max_ulp ? ulp : c->max_ulp;
    *out_excess = rtol == 0 && atol == 0 ? difference : difference / tolerance;
    if (isnan(*out_excess) || *out_excess > DBL_MAX)
        *out_excess = DBL_MAX;
    return ulp == 0 || ulp <= c->tolerance.ulp || (isfinite(difference) && difference <= tolerance);
}

static void expect_sums(long double got, long double want, long double difference, expectation *e) {
    const long double products[GBX_COMPARE_SUMS] = {difference * difference, got * got, want * want,
                                                    got * want};
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i) {
        e->sums[i] += products[i];
        e->magnitudes[i] += fabsl(products[i]);
    }
}

static void expect_bad(size_t i, double excess, gbx_comparison *c) {
    gbx_compared_element bad = {i, data.got[i], data.want[i]};
    if (c->mismatches++ == 0)
        c->first_bad = bad;
    if (c->mismatches == 1 || excess > c->worst_excess) {
        c->worst = bad;
        c->worst_excess = excess;
    }
}

static void expect_element(size_t i, expectation *e) {
    gbx_comparison *c = &e->exact;
    double got = gbx_dtype_to_f64(data.dtype, data.got[i]);
    double want = gbx_dtype_to_f64(data.dtype, data.want[i]);
    double excess = INFINITY;
    bool is_near = true;
    if (isfinite(got) && isfinite(want)) {
        is_near = expect_finite(data.dtype, i, got, want, c, &excess);
        long double difference =
            gbx_dtype_is_float(data.dtype)
                ? (long double)got - want
                : (long double)expect_ulp(data.dtype, data.got[i], data.want[i]);
        expect_sums(got, want, difference, e);
    } else {
        c->not_finite += 1;
        is_near = got == want || (isnan(got) && isnan(want) && !c->tolerance.is_strict_nan);
        if (!is_near)
            expect_apart(data.dtype, i, got, want, c);
    }
    if (!is_near)
        expect_bad(i, excess, c);
}

static expectation expect(const gbx_tolerance *tolerance) {
    expectation e = {
        .exact = {.dtype = data.dtype, .tolerance = *tolerance, .elements = data.count}};
    for (size_t i = 0; i < data.count; ++i)
        expect_element(i, &e);
    return e;
}

/* --- comparing with it --- */

static void assert_element(const gbx_compared_element *a, const gbx_compared_element *b) {
    assert_int_equal(a->index, b->index);
    assert_true(a->got_bits == b->got_bits && a->want_bits == b->want_bits);
}

static void assert_exact(const gbx_comparison *result, const gbx_comparison *expected) {
    assert_int_equal(result->elements, expected->elements);
    assert_int_equal(result->unequal, expected->unequal);
    assert_int_equal(result->mismatches, expected->mismatches);
    assert_int_equal(result->not_finite, expected->not_finite);
    assert_true(result->max_abs == expected->max_abs);
    assert_true(result->max_rel == expected->max_rel);
    assert_true(result->max_ulp == expected->max_ulp);
    assert_true(result->worst_excess == expected->worst_excess);
    assert_element(&result->first_bad, &expected->first_bad);
    assert_element(&result->worst, &expected->worst);
}

/* A product is lost in a sum if it is small compared with the squares. */
static void assert_sums(const gbx_comparison *result, const expectation *e) {
    const long double sums[] = {result->sum_square_difference, result->sum_square_got,
                                result->sum_square_want, result->sum_product};
    const long double *of = e->magnitudes;
    const long double magnitudes[] = {of[0], of[1], of[2], sqrtl(of[1]) * sqrtl(of[2])};
    for (int i = 0; i < GBX_COMPARE_SUMS; ++i) {
        long double tolerance = magnitudes[i] * DBL_EPSILON * (long double)(data.count + 4);
        assert_true(fabsl(sums[i] - e->sums[i]) <= tolerance);
    }
}

static void assert_same_sums(const gbx_comparison *a, const gbx_comparison *b) {
    assert_true(a->sum_square_difference == b->sum_square_difference);
    assert_true(a->sum_square_got == b->sum_square_got);
    assert_true(a->sum_square_want == b->sum_square_want);
    assert_true(a->sum_product == b->sum_product);
}

/* In pieces of `step`; 0: at once. */
static gbx_comparison compare_at(gbx_cpu_level level, const gbx_tolerance *tolerance, size_t step) {
    size_t got_shift = random_below(8), want_shift = random_below(8);
    row got = row_make(data.got, got_shift), want = row_make(data.want, want_shift);
    const size_t width = gbx_dtype_bits(data.dtype);
    gbx_comparison result;
    gbx_comparison_begin(&result, data.dtype, tolerance);
    for (size_t at = 0; at < data.count || at == 0;) {
        size_t count = step && data.count - at > step ? step : data.count - at;
        gbx_comparison_add_at(level, &result, got.bytes + at * width / 8,
                              want.bytes + at * width / 8, count);
        at += count > 0 ? count : 1;
    }
    free(got.block);
    free(want.block);
    return result;
}

/* Every level leaves the same bits, sums too. */
static void check(const gbx_tolerance *tolerance, size_t step) {
    expectation expected = expect(tolerance);
    gbx_comparison plain = compare_at(GBX_CPU_PLAIN, tolerance, step);
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= gbx_compare_level_detect(); ++level) {
        gbx_comparison result = compare_at(level, tolerance, step);
        assert_exact(&result, &expected.exact);
        assert_sums(&result, &expected);
        assert_same_sums(&result, &plain);
    }
}

static gbx_tolerance random_tolerance(void) {
    static const double values[] = {0,      0,     0,  1e-6,     1e-3,  0.1,   0.5, 1,
                                    1e-300, 1e300, -1, INFINITY, 3e-45, 1e-38, 0.02};
    static const uint64_t ulps[] = {0, 0, 0, 1, 2, 3, 100, UINT32_MAX, UINT64_MAX};
    return (gbx_tolerance){.rtol = values[random_below(15)],
                           .atol = values[random_below(15)],
                           .ulp = ulps[random_below(9)],
                           .is_strict_nan = random_u64() % 2};
}

static void every_size_is_right(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (size_t count = 0; count <= 200; ++count)
            for (int i = 0; i < 4; ++i) {
                gbx_tolerance tolerance =
                    i == 0 ? gbx_tolerance_default(dtype) : random_tolerance();
                make_elements(dtype, count, makers[i == 0 ? 0 : random_below(MAKERS)]);
                check(&tolerance, 0);
            }
}

static void every_kind_is_right(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (size_t kind = 0; kind < MAKERS; ++kind)
            for (int i = 0; i < 12; ++i) {
                gbx_tolerance tolerance = random_tolerance();
                make_elements(dtype, 256 + random_below(64), makers[kind]);
                check(&tolerance, 2 * random_below(40));
            }
}

static void blocks_are_added_up(void **state) {
    (void)state;
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        for (size_t kind = 0; kind < MAKERS; ++kind) {
            gbx_tolerance tolerance = kind ? random_tolerance() : gbx_tolerance_default(dtype);
            make_elements(dtype, MAX_COUNT - random_below(100), makers[kind]);
            check(&tolerance, 0);
            gbx_comparison whole = compare_at(gbx_compare_level_detect(), &tolerance, 0);
            gbx_comparison cut =
                compare_at(gbx_compare_level_detect(), &tolerance, GBX_COMPARISON_STEP);
            assert_exact(&cut, &whole);
            assert_same_sums(&cut, &whole);
        }
}

/* One bad element among good ones, at every position. */
static void every_element_counts(void **state) {
    (void)state;
    static const uint32_t dtypes[] = {GBX_FLOAT32, GBX_BFLOAT16, GBX_FLOAT16, GBX_FLOAT64};
    static const double bads[] = {-7.0, NAN, INFINITY};
    for (size_t k = 0; k < 4; ++k)
        for (size_t place = 0; place < 70; ++place) {
            gbx_tolerance tolerance = gbx_tolerance_default(dtypes[k]);
            make_elements(dtypes[k], 70, make_equal);
            data.got[place] = gbx_dtype_from_f64(dtypes[k], bads[place % 3]);
            check(&tolerance, 0);
            gbx_comparison c = compare_at(gbx_compare_level_detect(), &tolerance, 0);
            assert_int_equal(c.mismatches, 1);
            assert_int_equal(c.worst.index, place);
        }
}

/* Differences that exceed their tolerance by so little that the quotient is nearly 1, after
 * tolerated ones with a greater relative difference. */
static void hardly_beyond_is_beyond(void **state) {
    (void)state;
    static const double differences[] = {1.0, 1.25, 1.5, 1.75, 1.9375};
    for (size_t k = 0; k < sizeof differences / sizeof differences[0]; ++k) {
        gbx_tolerance tolerance = {.atol = nextafter(differences[k], 0)};
        make_elements(GBX_FLOAT32, 64, make_equal);
        for (size_t i = 0; i < data.count; ++i) {
            double want = i < 16 ? 0x1p-10 : 4.0;
            double difference = i < 16 ? 0.5 : i % 5 == 0 ? differences[k] : 0.0;
            data.want[i] = gbx_dtype_from_f64(GBX_FLOAT32, want);
            data.got[i] = gbx_dtype_from_f64(GBX_FLOAT32, want + difference);
        }
        check(&tolerance, 0);
        assert_int_equal(expect(&tolerance).exact.mismatches, 9);
    }
}

/* --- by hand --- */

static gbx_tensor tensor_of(gbx_dtype dtype, uint32_t ndims, const int64_t *shape) {
    gbx_tensor tensor;
    gbx_status status = gbx_tensor_contiguous(0, dtype, ndims, shape, &tensor);
    assert_null(status);
    return tensor;
}

static gbx_comparison compare_f32(const float *got, const float *want, int64_t count, double rtol,
                                  double atol) {
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 1, &count);
    return gbx_compare(&tensor, got, want, &(gbx_tolerance){.rtol = rtol, .atol = atol});
}

static void differences_are_measured(void **state) {
    (void)state;
    const float want[] = {1.0f, -2.0f, 4.0f, 0.0f};
    const float got[] = {1.0f, -2.5f, 4.25f, 0.125f};
    gbx_comparison c = compare_f32(got, want, 4, 0.0, 0.25);
    assert_int_equal(c.elements, 4);
    assert_int_equal(c.unequal, 3);
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad.index, 1);
    assert_true(c.max_abs == 0.5 && c.max_rel == 0.25 && c.worst_excess == 2.0);
    assert_int_equal(c.max_ulp, 0x3e000000);
    assert_int_equal(c.first_bad.got_bits, 0xc0200000);
    assert_int_equal(c.first_bad.want_bits, 0xc0000000);
    assert_true(c.sum_square_difference == 0.25 + 0.0625 + 0.015625);
    assert_true(c.sum_square_got == 1 + 6.25 + 18.0625 + 0.015625);
    assert_true(c.sum_square_want == 21 && c.sum_product == 1 + 5 + 17);
    assert_true(gbx_comparison_rmse(&c) == sqrt(0.328125 / 4));
    assert_true(fabs(gbx_comparison_cosine(&c) - 23 / sqrt(21 * 25.328125)) < 1e-15);
    assert_int_equal(compare_f32(got, want, 4, 0.25, 0.125).mismatches, 0);
    assert_int_equal(compare_f32(got, want, 4, 0.0, 0.0).mismatches, 3);
}

static void nan_and_infinity_equal_themselves(void **state) {
    (void)state;
    const float want[] = {NAN, INFINITY, -INFINITY, 1.0f, 1.0f, INFINITY, INFINITY, NAN, 0.0f};
    const float got[] = {-NAN, INFINITY, -INFINITY, NAN, INFINITY, 1.0f, -INFINITY, 1.0f, -0.0f};
    gbx_comparison c = compare_f32(got, want, 9, 0.5, 1e30);
    assert_int_equal(c.mismatches, 5);
    assert_int_equal(c.not_finite, 8);
    assert_int_equal(c.first_bad.index, 3);
    assert_true(isinf(c.max_abs) && isinf(c.max_rel) && isinf(c.worst_excess));
    assert_true(c.max_ulp == UINT64_MAX);
    c = compare_f32(got, want, 3, 0.0, 0.0);
    assert_int_equal(c.mismatches, 0);
    assert_true(c.max_abs == 0.0 && c.max_rel == 0.0 && c.max_ulp == 0);
    assert_true(isnan(gbx_comparison_rmse(&c)) && isnan(gbx_comparison_cosine(&c)));
}

/* Infinity is one step above the largest number, but no tolerance covers that step. */
static void distance_to_infinity(void **state) {
    (void)state;
    const float want = FLT_MAX, got = INFINITY;
    int64_t count = 1;
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 1, &count);
    gbx_comparison c = gbx_compare(&tensor, &got, &want, &(gbx_tolerance){.ulp = 5});
    assert_int_equal(c.max_ulp, 1);
    assert_int_equal(c.mismatches, 1);
}

static void wide_integers_are_exact(void **state) {
    (void)state;
    int64_t count = 3;
    const int64_t want[] = {INT64_MAX, INT64_MIN, 9007199254740993};
    const int64_t got[] = {INT64_MAX - 1, INT64_MAX, 9007199254740992};
    const gbx_tolerance none = {0}, one = {.atol = 1.0};
    gbx_tensor tensor = tensor_of(GBX_INT64, 1, &count);
    gbx_comparison c = gbx_compare(&tensor, got, want, &none);
    assert_int_equal(c.mismatches, 3);
    assert_true(c.max_abs == 0x1p64 && c.max_ulp == UINT64_MAX);
    assert_int_equal(c.worst.index, 1);
    tensor = tensor_of(GBX_UINT64, 1, &count);
    c = gbx_compare(&tensor, got, want, &one);
    assert_int_equal(c.mismatches, 0);
    assert_int_equal(c.max_ulp, 1);
}

static void halves_of_a_byte_beyond_a_row_do_not_count(void **state) {
    (void)state;
    int64_t shape[] = {2, 3};
    gbx_tensor tensor = tensor_of(GBX_INT4, 2, shape);
    const unsigned char want[] = {0x21, 0x03, 0x54, 0x06};
    const unsigned char got[] = {0x21, 0xf3, 0x54, 0xe7};
    gbx_comparison c = gbx_compare(&tensor, got, want, &(gbx_tolerance){0});
    assert_int_equal(c.mismatches, 1);
    assert_int_equal(c.first_bad.index, 5);
    assert_int_equal(c.first_bad.got_bits, 7);
}

static void number_becomes_an_index(void **state) {
    (void)state;
    int64_t shape[] = {3, 4, 5};
    int64_t index[GBX_MAX_DIMS];
    gbx_tensor tensor = tensor_of(GBX_FLOAT32, 3, shape);
    gbx_compare_index(&tensor, 2 * 20 + 3 * 5 + 4, index);
    assert_int_equal(index[0], 2);
    assert_int_equal(index[1], 3);
    assert_int_equal(index[2], 4);
}

static void empty_and_single_tensors(void **state) {
    (void)state;
    int64_t shape[] = {4, 0};
    const float one = 1.0f, two = 2.0f;
    const gbx_tolerance none = {0};
    gbx_tensor empty = tensor_of(GBX_FLOAT32, 2, shape);
    gbx_tensor single = tensor_of(GBX_FLOAT32, 0, NULL);
    assert_int_equal(gbx_compare(&empty, &one, &two, &none).mismatches, 0);
    assert_int_equal(gbx_compare(&single, &one, &two, &none).mismatches, 1);
    empty.dtype = GBX_INT4;
    assert_int_equal(gbx_compare(&empty, &one, &two, &none).elements, 0);
}

static void cosine_of_zeros(void **state) {
    (void)state;
    const float zeros[] = {0.0f, -0.0f}, some[] = {1e-30f, -1.0f}, less[] = {-1e-30f, 1.0f};
    gbx_comparison c = compare_f32(zeros, zeros, 2, 0.0, 0.0);
    assert_true(gbx_comparison_cosine(&c) == 1.0 && gbx_comparison_rmse(&c) == 0.0);
    c = compare_f32(zeros, some, 2, 0.0, 0.0);
    assert_true(gbx_comparison_cosine(&c) == 0.0);
    c = compare_f32(some, less, 2, 0.0, 0.0);
    assert_true(gbx_comparison_cosine(&c) == -1.0);
}

/* Numbers whose squares exceed a double. */
static void extreme_numbers_have_a_root_and_a_cosine(void **state) {
    (void)state;
    static const double units[] = {1e300, 1e-300, 5e-324};
    int64_t count = 2;
    gbx_tensor tensor = tensor_of(GBX_FLOAT64, 1, &count);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i) {
        const double got[] = {3 * units[i], 4 * units[i]}, want[] = {0, -3 * units[i]};
        gbx_comparison c = gbx_compare(&tensor, got, want, &(gbx_tolerance){0});
        double rmse = gbx_comparison_rmse(&c);
        assert_true(fabs(rmse / units[i] - (i == 2 ? 5 : sqrt(29))) < 1e-14);
        assert_true(fabs(gbx_comparison_cosine(&c) + 0.8) < 1e-14);
    }
}

static void default_tolerances(void **state) {
    (void)state;
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT + 3; ++dtype) {
        gbx_tolerance tolerance = gbx_tolerance_default(dtype);
        /* A scale whose code is off by one is off by a factor of two. */
        bool is_exact = !gbx_dtype_is_float(dtype) || dtype == GBX_FLOAT8_E8M0;
        assert_true((tolerance.rtol == 0) == is_exact);
        assert_true((tolerance.atol == 0) == is_exact);
        assert_true(tolerance.ulp == 0 && !tolerance.is_strict_nan);
    }
    assert_true(gbx_tolerance_default(GBX_FLOAT32).rtol == 1e-5);
    assert_true(gbx_tolerance_default(GBX_FLOAT32).atol == 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_right),
        cmocka_unit_test(every_kind_is_right),
        cmocka_unit_test(blocks_are_added_up),
        cmocka_unit_test(every_element_counts),
        cmocka_unit_test(hardly_beyond_is_beyond),
        cmocka_unit_test(differences_are_measured),
        cmocka_unit_test(nan_and_infinity_equal_themselves),
        cmocka_unit_test(distance_to_infinity),
        cmocka_unit_test(wide_integers_are_exact),
        cmocka_unit_test(halves_of_a_byte_beyond_a_row_do_not_count),
        cmocka_unit_test(number_becomes_an_index),
        cmocka_unit_test(empty_and_single_tensors),
        cmocka_unit_test(cosine_of_zeros),
        cmocka_unit_test(extreme_numbers_have_a_root_and_a_cosine),
        cmocka_unit_test(default_tolerances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
