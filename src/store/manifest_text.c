#include "store/manifest_text.h"

#include <assert.h>
#include <math.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "base/float_text.h"

static_assert(sizeof(((gbx_float_cache *)0)->entries[0].text) >= GBX_FLOAT_TEXT_BYTES - 4,
              "the longest text, in quotes or not, fits");

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

char *gbx_put_u64(char *at, uint64_t value) {
    char digits[20];
    char *first = digits + sizeof digits;
    while (value >= 100) {
        first -= 2;
        memcpy(first, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        first -= 2;
        memcpy(first, pairs + value * 2, 2);
    } else {
        *--first = (char)('0' + value);
    }
    size_t count = (size_t)(digits + sizeof digits - first);
    memcpy(at, first, count);
    return at + count;
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

char *gbx_put_hex(char *at, uint64_t value) {
    uint64_t high = hex_digits((uint32_t)(value >> 32));
    uint64_t low = hex_digits((uint32_t)value);
    memcpy(at, "\"0x", 3);
    memcpy(at + 3, &high, 8);
    memcpy(at + 11, &low, 8);
    at[19] = '"';
    return at + 20;
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

static const double powers[] = {1e0, 1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,
                                1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17};

/* `number` is that many units of 10^-decimals: "12.5" of 1250 and 2. Zeros at the end go. */
static char *put_decimal(char *at, uint64_t number, unsigned decimals) {
    while (decimals > 0 && number % 10 == 0) {
        number /= 10;
        --decimals;
    }
    if (decimals == 0) {
        at = gbx_put_u64(at, number);
        return GBX_PUT(at, ".0");
    }
    uint64_t unit = (uint64_t)powers[decimals];
    at = gbx_put_u64(at, number / unit);
    *at++ = '.';
    uint64_t fraction = number % unit;
    for (unsigned i = decimals; i-- > 0;) {
        at[i] = (char)('0' + fraction % 10);
        fraction /= 10;
    }
    return at + decimals;
}

/* Digits before the point of a value from 0.001 to 1e7; 0 for 0.1..., -1 for 0.01... */
static int magnitude_of(double value) {
    static const double bounds[] = {0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7};
    int passed = 0;
    while (value >= bounds[passed])
        ++passed;
    return passed - 2;
}

/*
 * float32 from 0.001 to 1e7, the range of most values. The value times 10^decimals is exact in a
 * double: 24 bits and 5^11, of 26. Six digits, where they read back, are the only ones of six or
 * fewer that do; seven to nine are the nearest of their length, and the first length that reads
 * back is the shortest. Powers of two are left to the search, for the float below them is nearer
 * than the one above. Returns NULL where it does not know.
 */
static char *put_common_f32(char *at, float value) {
    double magnitude = fabs((double)value);
    uint32_t bits = gbx_f32_bits(value);
    if (!(magnitude >= 0.001 && magnitude < 1e7) || (bits & 0x7fffffu) == 0)
        return NULL;
    int whole = magnitude_of(magnitude);
    for (int count = 6; count <= 9; ++count) {
        int decimals = count - whole;
        if (decimals < 0)
            decimals = 0;
        double number = nearbyint(magnitude * powers[decimals]);
        double read = number / powers[decimals];
        /* Half way between two floats, the rounding of the division could have decided. */
        bool is_half_way = (gbx_f64_bits(read) & 0x1fffffffu) == 0x10000000u;
        if (is_half_way)
            return NULL;
        if ((double)(float)read == magnitude) {
            if (value < 0)
                *at++ = '-';
            return put_decimal(at, (uint64_t)number, (unsigned)decimals);
        }
    }
    return NULL;
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

/* float64 of up to 15 digits, from 0.001 to 1e7: the one decimal of so few that reads back. */
static char *put_short_f64(char *at, double value) {
    double magnitude = fabs(value);
    if (!(magnitude >= 0.001 && magnitude < 1e7))
        return NULL;
    int decimals = 15 - magnitude_of(magnitude);
    double number = nearbyint(magnitude * powers[decimals]);
    if (number / powers[decimals] != magnitude)
        return NULL;
    if (value < 0)
        *at++ = '-';
    return put_decimal(at, (uint64_t)number, (unsigned)decimals);
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
        end = put_short_f64(at, value);
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
