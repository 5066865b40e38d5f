#include "store/manifest/manifest_text.h"

#include <assert.h>
#include <math.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "text/float_text.h"

static_assert(sizeof(((gbx_float_cache *)0)->entries[0].text) >= GBX_FLOAT_TEXT_BYTES - 4,
              "the longest text, in quotes or not, fits");

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

/* How many digits: four at a time, for most numbers are short. */
static size_t count_digits(uint64_t value) {
    size_t count = 1;
    for (; value >= 10000; value /= 10000)
        count += 4;
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

char *gbx_put_u64(char *at, uint64_t value) {
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    char *end = at + count_digits(value);
    char *next = end;
    for (; value >= 100; value /= 100) {
        next -= 2;
        memcpy(next, pairs + value % 100 * 2, 2);
    }
    if (value >= 10)
        memcpy(next - 2, pairs + value * 2, 2);
    else
        next[-1] = (char)('0' + value);
    return end;
}

char *gbx_put_i64(char *at, int64_t value) {
    if (value >= 0)
        return gbx_put_u64(at, (uint64_t)value);
    *at++ = '-';
    return gbx_put_u64(at, 0 - (uint64_t)value);
}

/* Eight digits at a time: a nibble to each byte, then to its character. */
static uint64_t hex_digits(uint32_t value) {
    uint64_t spread = value;
    spread = (spread << 16 | spread) & UINT64_C(0x0000ffff0000ffff);
    spread = (spread << 8 | spread) & UINT64_C(0x00ff00ff00ff00ff);
    spread = (spread << 4 | spread) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t is_letter =
        (spread + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    uint64_t characters = spread + UINT64_C(0x3030303030303030) + is_letter * ('a' - '0' - 10);
    return __builtin_bswap64(characters);
}

char *gbx_put_hex_digits(char *at, uint64_t value) {
    uint64_t high = hex_digits((uint32_t)(value >> 32));
    uint64_t low = hex_digits((uint32_t)value);
    memcpy(at, &high, 8);
    memcpy(at + 8, &low, 8);
    return at + 16;
}

char *gbx_put_hex(char *at, uint64_t value) {
    at = gbx_put_hex_digits(GBX_PUT(at, "\"0x"), value);
    *at++ = '"';
    return at;
}

char *gbx_put_numbers(char *at, const int64_t *numbers, uint32_t count) {
    *at++ = '[';
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0)
            *at++ = ',';
        at = gbx_put_i64(at, numbers[i]);
    }
    *at++ = ']';
    return at;
}

/* --- floats --- */

/* `number` is that many units of 10^-decimals: "12.5" of 125 and 1. */
static char *put_decimal(char *at, uint64_t number, unsigned decimals) {
    char digits[GBX_VALUE_TEXT_BYTES];
    size_t count = (size_t)(gbx_put_u64(digits, number) - digits);
    if (decimals == 0) {
        memcpy(at, digits, count);
        return GBX_PUT(at + count, ".0");
    }
    if (count <= decimals) {
        size_t zeros = decimals - count;
        at = GBX_PUT(at, "0.");
        memset(at, '0', zeros);
        memcpy(at + zeros, digits, count);
        return at + decimals;
    }
    size_t whole = count - decimals;
    memcpy(at, digits, whole);
    at[whole] = '.';
    memcpy(at + whole + 1, digits + whole, decimals);
    return at + count + 1;
}

/* Digits before the point of a value from 0.0001 to 1e15; 0 for 0.1..., -1 for 0.01... */
static int magnitude_of(double value) {
    static const double bounds[] = {1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,  1e3,  1e4,  1e5, 1e6,
                                    1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int passed = 0;
    while (value >= bounds[passed])
        ++passed;
    return passed - 3;
}

static const uint64_t powers_of_five[] = {1,
                                          5,
                                          25,
                                          125,
                                          625,
                                          3125,
                                          15625,
                                          78125,
                                          390625,
                                          1953125,
                                          9765625,
                                          48828125,
                                          244140625,
                                          1220703125,
                                          6103515625,
                                          30517578125,
                                          152587890625,
                                          762939453125,
                                          3814697265625,
                                          19073486328125,
                                          95367431640625};

/* A float as fraction * 2^exponent, and how many digits always tell two of its format apart. */
typedef struct binary {
    uint64_t fraction;
    int exponent;
    int digits;
} binary;

/* The nearest whole number to value / unit, a power of ten; `rest` is what lies behind the units of
 * value, in 1/2^shift. False half way between two. */
static bool round_off(uint64_t value, unsigned __int128 rest, int shift, uint64_t unit,
                      uint64_t *out_number) {
    unsigned __int128 one = (unsigned __int128)1 << shift;
    unsigned __int128 behind = (unsigned __int128)(value % unit) << shift | rest;
    unsigned __int128 half = unit == 1 ? one >> 1 : one * (unit / 2);
    *out_number = value / unit + (behind > half);
    return behind != half;
}

/*
 * The shortest decimal between the two points half way to the neighbours, and of those the nearest
 * to the value, in whole numbers. All three are scaled by 10^decimals so that the value has as many
 * digits as its format ever takes: 2 * fraction * 5^decimals, below 2^102, over a power of two. The
 * numerators of the two points are odd: neither is a decimal of that many digits itself. Digits are
 * then dropped while a number is left between them. Powers of two, whose neighbours are not equally
 * far, and values outside of 0.0001 to 1e15 are left to the search: NULL.
 */
static char *put_shortest(char *at, double magnitude, const binary *value) {
    if (!(magnitude >= 1e-4 && magnitude < 1e15) || (value->fraction & (value->fraction - 1)) == 0)
        return NULL;
    int decimals = value->digits - magnitude_of(magnitude);
    if (decimals > -value->exponent)
        decimals = -value->exponent; /* the value is a decimal of so many */
    if (decimals < 0)
        return NULL;
    int shift = 1 - value->exponent - decimals;
    unsigned __int128 five = powers_of_five[decimals];
    unsigned __int128 scaled = 2 * value->fraction * five;
    uint64_t low = (uint64_t)((scaled - five) >> shift) + 1;
    uint64_t high = (uint64_t)((scaled + five) >> shift);
    uint64_t unit = 1;
    while (decimals > 0 && (low + 9) / 10 <= high / 10) {
        low = (low + 9) / 10;
        high /= 10;
        unit *= 10;
        --decimals;
    }
    uint64_t number = 0;
    unsigned __int128 rest = scaled & (((unsigned __int128)1 << shift) - 1);
    if (!round_off((uint64_t)(scaled >> shift), rest, shift, unit, &number) || number < low ||
        number > high)
        return NULL;
    return put_decimal(at, number, (unsigned)decimals);
}

static char *put_common_f32(char *at, float value) {
    uint32_t bits = gbx_f32_bits(value);
    int exponent = (int)(bits >> 23 & 0xff);
    binary parts = {(bits & 0x7fffff) | 0x800000, exponent - 150, 9};
    *at = '-';
    return put_shortest(at + (bits >> 31), fabs((double)value), &parts);
}

static char *put_common_f64(char *at, double value) {
    uint64_t bits = gbx_f64_bits(value);
    int exponent = (int)(bits >> 52 & 0x7ff);
    binary parts = {(bits & 0xfffffffffffff) | UINT64_C(1) << 52, exponent - 1075, 17};
    *at = '-';
    return put_shortest(at + (bits >> 63), fabs(value), &parts);
}

/* Whole numbers that a format holds with all their neighbours are their own shortest text. */
static char *put_whole(char *at, double value, double end) {
    double magnitude = fabs(value);
    if (!(magnitude < end) || magnitude != trunc(magnitude))
        return NULL;
    if (signbit(value))
        *at++ = '-';
    at = gbx_put_u64(at, (uint64_t)magnitude);
    return GBX_PUT(at, ".0");
}

/* Any float, by the search, which takes a while; or from the cache. */
static char *put_searched(char *at, gbx_float_cache *cache, double value, bool is_f64) {
    uint64_t bits = gbx_f64_bits(value);
    size_t place = (size_t)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 54) % GBX_FLOAT_CACHE_ENTRIES;
    char *text = cache->entries[place].text;
    if (cache->entries[place].size == 0 || cache->entries[place].bits != bits ||
        cache->entries[place].is_f64 != is_f64) {
        char found[GBX_FLOAT_TEXT_BYTES + 2] = "\"";
        size_t size =
            is_f64 ? gbx_f64_format(value, found + 1) : gbx_f32_format((float)value, found + 1);
        bool is_quoted = !isfinite(value);
        found[size + 1] = '"';
        size += is_quoted ? 2 : 0;
        memcpy(text, is_quoted ? found : found + 1, size);
        cache->entries[place].bits = bits;
        cache->entries[place].is_f64 = is_f64;
        cache->entries[place].size = (uint8_t)size;
    }
    memcpy(at, text, sizeof cache->entries[place].text);
    return at + cache->entries[place].size;
}

char *gbx_put_f64(char *at, gbx_float_cache *cache, double value) {
    char *end = put_whole(at, value, 0x1p53);
    if (!end)
        end = put_common_f64(at, value);
    return end ? end : put_searched(at, cache, value, true);
}

char *gbx_put_f32(char *at, gbx_float_cache *cache, float value) {
    char *end = put_whole(at, (double)value, 0x1p24);
    if (!end)
        end = put_common_f32(at, value);
    return end ? end : put_searched(at, cache, (double)value, false);
}

/* --- values --- */

static char *put_quoted_i64(char *at, int64_t value) {
    *at++ = '"';
    at = gbx_put_i64(at, value);
    *at++ = '"';
    return at;
}

static char *put_quoted_u64(char *at, uint64_t value) {
    *at++ = '"';
    at = gbx_put_u64(at, value);
    *at++ = '"';
    return at;
}

/* The low bits of a word, with the sign of their highest. */
static int64_t sign_extend(uint64_t bits, uint32_t width) {
    unsigned shift = 64 - width;
    return (int64_t)(bits << shift) >> shift;
}

char *gbx_put_value(char *at, gbx_float_cache *cache, uint32_t dtype, uint64_t bits) {
    switch (dtype) {
    case GBX_FLOAT64:
        return gbx_put_f64(at, cache, gbx_f64_of_bits(bits));
    case GBX_FLOAT32:
        return gbx_put_f32(at, cache, gbx_f32_of_bits((uint32_t)bits));
    case GBX_INT64:
        return put_quoted_i64(at, (int64_t)bits);
    case GBX_UINT64:
        return put_quoted_u64(at, bits);
    case GBX_BOOL:
        return gbx_put_bool(at, (bits & 0xff) != 0);
    default:
        break;
    }
    uint32_t width = gbx_dtype_bits(dtype);
    uint64_t low = bits & ((UINT64_C(1) << width) - 1);
    if (gbx_dtype_is_float(dtype))
        return gbx_put_f32(at, cache, (float)gbx_dtype_to_f64(dtype, low));
    return gbx_dtype_is_signed(dtype) ? gbx_put_i64(at, sign_extend(bits, width))
                                      : gbx_put_u64(at, low);
}

char *gbx_put_extreme(char *at, gbx_float_cache *cache, uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_FLOAT64)
        return gbx_put_f64(at, cache, gbx_f64_of_bits(bits));
    if (gbx_dtype_is_float(dtype))
        return gbx_put_f32(at, cache, (float)gbx_f64_of_bits(bits));
    if (dtype == GBX_INT64)
        return put_quoted_i64(at, (int64_t)bits);
    if (dtype == GBX_UINT64)
        return put_quoted_u64(at, bits);
    if (dtype == GBX_BOOL)
        return gbx_put_bool(at, bits != 0);
    return gbx_dtype_is_signed(dtype) ? gbx_put_i64(at, (int64_t)bits) : gbx_put_u64(at, bits);
}
