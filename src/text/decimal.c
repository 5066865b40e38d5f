/*
 * With 128-bit integers: the value, and the two points half way to its neighbours, are multiplied
 * by a power of ten so that the value has the wanted number of digits. Where that does not fit, far
 * from 1, the C library's conversions find the same result more slowly.
 */
#include "text/decimal.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef unsigned __int128 u128;

enum {
    F64_FRACTION_BITS = 52,
    F32_FRACTION_BITS = 23,
    F64_LEAST_EXPONENT = -1074,
    F32_LEAST_EXPONENT = -149,
    F64_BIAS = 1075, /* of fraction * 2^exponent with a whole fraction */
    SPARE_BITS = 5,  /* above the scaled value: steps to its neighbours, and units of ten of it */
    POWERS = 28,
    SURE_FRACTION = 16, /* from here on, the points on both sides are so near that their numbers
                           have as many digits as the value, or are a power of ten */
    TEXT_BYTES = 64
};

/* clang-format off */
static const uint64_t powers_of_five[POWERS] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625,
    1220703125, 6103515625, 30517578125, 152587890625, 762939453125, 3814697265625,
    19073486328125, 95367431640625, 476837158203125, 2384185791015625, 11920928955078125,
    59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125,
};
/* clang-format on */

static ALWAYS_INLINE gbx_binary binary_of(uint64_t bits, int fraction_bits, int least_exponent) {
    const uint64_t hidden = UINT64_C(1) << fraction_bits;
    const uint64_t fraction = bits & (hidden - 1);
    const int biased = (int)(bits >> fraction_bits);
    gbx_binary result = {.fraction = fraction, .exponent = least_exponent};
    if (biased > 0) {
        result.fraction |= hidden;
        result.exponent = least_exponent + biased - 1;
        result.is_below_near = fraction == 0 && biased > 1;
    }
    return result;
}

gbx_binary gbx_binary_of_f32(uint32_t bits) {
    return binary_of(bits, F32_FRACTION_BITS, F32_LEAST_EXPONENT);
}

gbx_binary gbx_binary_of_f64(uint64_t bits) {
    gbx_binary result = binary_of(bits, F64_FRACTION_BITS, F64_LEAST_EXPONENT);
    result.is_f64 = true;
    return result;
}

static int bit_length(uint64_t number) {
    return 64 - __builtin_clzll(number);
}

/* The exponent of ten of the first digit, or one less. */
static int estimate_exponent(const gbx_binary *value) {
    const int binary = bit_length(value->fraction) - 1 + value->exponent;
    return binary * 315653 >> 20; /* log10(2): the floor of the product for all exponents */
}

/* From the length in bits: exact, or one less. */
int gbx_digits_count(uint64_t number) {
    const int least = bit_length(number | 1) * 1233 >> 12; /* log10(2) is 1233 / 4096 */
    return least + (number >= powers_of_five[least] << least || least == 0);
}

/* --- with integers --- */

/* value * 10^power is number / divisor, and divisor is factor << shift. */
typedef struct scaled {
    u128 number;
    u128 below; /* half way to the next float below is number - below */
    u128 above;
    u128 factor;
    int shift;
    int power;
} scaled;

/* False where it does not fit. The scaled value is at least 1. */
static ALWAYS_INLINE bool scale(const gbx_binary *value, int power, scaled *out) {
    const int fives = abs(power);
    if (fives >= 2 * POWERS - 1)
        return false;
    const u128 five = fives < POWERS
                          ? powers_of_five[fives]
                          : (u128)powers_of_five[POWERS - 1] * powers_of_five[fives - POWERS + 1];
    const int twos = value->exponent + power;
    if (twos > 127)
        return false;
    const int five_bits = fives * 2323 / 1000 + 1; /* log2(5) is 2.3219 */
    const int bits = bit_length(value->fraction) + 2 + SPARE_BITS + (power > 0 ? five_bits : 0) +
                     (twos > 0 ? twos : 0);
    if (bits > 128)
        return false;
    const u128 quarter = (power > 0 ? five : 1) << (twos > 0 ? twos : 0);
    *out = (scaled){.number = 4 * value->fraction * quarter,
                    .below = value->is_below_near ? quarter : 2 * quarter,
                    .above = 2 * quarter,
                    .factor = power < 0 ? five : 1,
                    .shift = twos < 0 ? 2 - twos : 2,
                    .power = power};
    return true;
}

static ALWAYS_INLINE u128 divide(const scaled *by, u128 number, u128 *out_rest) {
    if (by->factor == 1) {
        *out_rest = number & (((u128)1 << by->shift) - 1);
        return number >> by->shift;
    }
    const u128 divisor = by->factor << by->shift;
    *out_rest = number % divisor;
    return number / divisor;
}

/* Rounds the scaled value, whole + rest / divisor, to units, of which it has `number` and a part;
 * ties go to the even one. */
static ALWAYS_INLINE uint64_t nearest(const scaled *value, uint64_t whole, u128 rest,
                                      uint64_t number, uint64_t unit) {
    const u128 behind = (((whole - number * unit) * value->factor) << value->shift) + rest;
    const u128 half = (unit * value->factor) << (value->shift - 1);
    return number + (behind > half || (behind == half && number % 2 == 1));
}

/* The integers between the two points; the points themselves read back as an even fraction. */
static ALWAYS_INLINE void limits(const scaled *value, bool is_even, uint64_t *out_low,
                                 uint64_t *out_high) {
    u128 rest;
    *out_low = (uint64_t)divide(value, value->number - value->below, &rest);
    *out_low += rest != 0 || !is_even;
    *out_high = (uint64_t)divide(value, value->number + value->above, &rest);
    *out_high -= rest == 0 && !is_even;
}

static gbx_decimal make_decimal(uint64_t digits, int power) {
    for (; digits % 10 == 0; --power)
        digits /= 10;
    const int count = gbx_digits_count(digits);
    return (gbx_decimal){.digits = digits, .count = count, .exponent = count - 1 - power};
}

/*
 * The same as find_shortest below for most floats, those from 1e-10 to 1e15 or so: one product of
 * 64 bits, and shifts. Both points have an odd numerator, so that neither is a number of that many
 * digits itself.
 */
static bool find_common(const gbx_binary *value, gbx_decimal *out) {
    const int digits = value->is_f64 ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG;
    int power = digits - 1 - estimate_exponent(value);
    power = power < -value->exponent ? power : -value->exponent;
    if (power < 0 || power >= POWERS || value->is_below_near || value->fraction < SURE_FRACTION)
        return false;
    const uint64_t five = powers_of_five[power];
    const u128 number = (u128)(2 * value->fraction) * five;
    const int shift = 1 - value->exponent - power;
    const uint64_t whole = (uint64_t)(number >> shift);
    uint64_t low = (uint64_t)((number - five) >> shift) + 1;
    uint64_t high = (uint64_t)((number + five) >> shift);
    uint64_t left = whole;
    uint64_t unit = 1;
    for (; low > 9 && (low + 9) / 10 <= high / 10; --power, unit *= 10) {
        low = (low + 9) / 10;
        high /= 10;
        left /= 10;
    }
    const u128 rest = number & (((u128)1 << shift) - 1);
    const u128 behind = (u128)(whole - left * unit) << shift | rest;
    const u128 half = (u128)unit << (shift - 1);
    left += (behind > half) | ((behind == half) & (left % 2)); /* unpredictable: no branches */
    *out = make_decimal(left, power);
    return true;
}

/*
 * Drops digits while a number is left between the limits and the value has another digit: 0.09 and
 * 0.1 have one each. The nearest number is the result, except where the next float below is half as
 * far away: there it may lie below the limits.
 */
static bool find_shortest(const gbx_binary *value, gbx_decimal *out) {
    const int digits = value->is_f64 ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG;
    const int power = digits - 1 - estimate_exponent(value);
    const int whole = value->exponent < 0 ? -value->exponent : 0; /* then the value is an integer */
    scaled by;
    if (!scale(value, power < whole ? power : whole, &by))
        return false;
    uint64_t low, high;
    limits(&by, value->fraction % 2 == 0, &low, &high);
    u128 rest;
    const uint64_t scaled_value = (uint64_t)divide(&by, by.number, &rest);
    uint64_t left = scaled_value;
    uint64_t unit = 1;
    int dropped = 0;
    for (; left >= 10 && (low + 9) / 10 <= high / 10; ++dropped, unit *= 10) {
        low = (low + 9) / 10;
        high /= 10;
        left /= 10;
    }
    const uint64_t number = nearest(&by, scaled_value, rest, left, unit);
    *out = make_decimal(number < low ? low : number, by.power - dropped);
    return true;
}

/* The estimated exponent gives `count` digits or one more; then again with one less. */
static bool find_rounded(const gbx_binary *value, int count, gbx_decimal *out) {
    int power = count - 1 - estimate_exponent(value);
    scaled by;
    u128 rest;
    do {
        if (!scale(value, power, &by))
            return false;
        out->digits = (uint64_t)divide(&by, by.number, &rest);
        --power;
    } while (gbx_digits_count(out->digits) > count);
    out->digits = nearest(&by, out->digits, rest, out->digits, 1);
    if (value->is_below_near) {
        uint64_t low, high;
        limits(&by, true, &low, &high);
        if (out->digits < low && low <= high)
            out->digits = low;
    }
    out->count = gbx_digits_count(out->digits);
    out->exponent = out->count - 1 - by.power;
    if (out->count > count) { /* 9.99 became 10.00 */
        out->digits /= 10;
        out->count = count;
    }
    return true;
}

/* --- by the C library --- */

/* Made from bits, so that a host that flushes subnormals to zero keeps it. */
static double value_of(const gbx_binary *value) {
    const int shift = F64_FRACTION_BITS + 1 - bit_length(value->fraction);
    const int biased = value->exponent - shift + F64_BIAS;
    if (biased <= 0)
        return gbx_f64_of_bits(value->fraction);
    const uint64_t below_hidden = (UINT64_C(1) << F64_FRACTION_BITS) - 1;
    return gbx_f64_of_bits((uint64_t)biased << F64_FRACTION_BITS |
                           ((value->fraction << shift) & below_hidden));
}

/* Reads the digits around the locale's decimal point. */
static gbx_decimal print_rounded(const gbx_binary *value, int count) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%.*e", count - 1, value_of(value));
    gbx_decimal result = {.count = count};
    const char *at = text;
    for (; *at != 'e'; ++at)
        if (*at >= '0' && *at <= '9')
            result.digits = result.digits * 10 + (uint64_t)(*at - '0');
    result.exponent = (int)strtol(at + 1, NULL, 10);
    return result;
}

/* Written as an integer and an exponent, which has no decimal point for a locale to replace. */
static bool reads_back(gbx_decimal decimal, const gbx_binary *value) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%" PRIu64 "e%d", decimal.digits,
             decimal.exponent - decimal.count + 1);
    const gbx_binary back = value->is_f64 ? gbx_binary_of_f64(gbx_f64_bits(strtod(text, NULL)))
                                          : gbx_binary_of_f32(gbx_f32_bits(strtof(text, NULL)));
    return back.fraction == value->fraction && back.exponent == value->exponent;
}

static gbx_decimal search_rounded(const gbx_binary *value, int count) {
    const gbx_decimal nearest = print_rounded(value, count);
    if (!value->is_below_near || reads_back(nearest, value))
        return nearest;
    gbx_decimal above = nearest;
    if (gbx_digits_count(++above.digits) > count) {
        above.digits /= 10;
        ++above.exponent;
    }
    return reads_back(above, value) ? above : nearest;
}

/*
 * A normal value has at most one decimal of DBL_DIG or FLT_DIG digits, or fewer, that reads back:
 * rounding to so many finds it, with zeros at its end. Subnormals have less precision and start at
 * one digit.
 */
static gbx_decimal search_shortest(const gbx_binary *value) {
    const int most = value->is_f64 ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG;
    const bool is_normal =
        value->fraction >> (value->is_f64 ? F64_FRACTION_BITS : F32_FRACTION_BITS) != 0;
    int count = !is_normal ? 1 : value->is_f64 ? DBL_DIG : FLT_DIG;
    gbx_decimal result = search_rounded(value, count);
    while (count < most && !reads_back(result, value))
        result = search_rounded(value, ++count);
    for (; result.count > 1 && result.digits % 10 == 0; --result.count)
        result.digits /= 10;
    return result;
}

gbx_decimal gbx_decimal_shortest(const gbx_binary *value) {
    gbx_decimal result;
    if (!find_common(value, &result) && !find_shortest(value, &result)) {
        const int saved_errno = errno; /* strtod reports the underflow of every subnormal */
        result = search_shortest(value);
        errno = saved_errno;
    }
    return result;
}

gbx_decimal gbx_decimal_round(const gbx_binary *value, int count) {
    gbx_decimal result;
    if (!find_rounded(value, count, &result)) {
        const int saved_errno = errno;
        result = search_rounded(value, count);
        errno = saved_errno;
    }
    return result;
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

static void put_four(char *at, uint32_t number) {
    memcpy(at, pairs + number / 100 * 2, 2);
    memcpy(at + 2, pairs + number % 100 * 2, 2);
}

/* Eight digits at a time, independent of each other. */
char *gbx_digits_before(char *end, uint64_t number) {
    for (; number >= 100000000; number /= 100000000) {
        const uint32_t eight = (uint32_t)(number % 100000000);
        end -= 8;
        put_four(end, eight / 10000);
        put_four(end + 4, eight % 10000);
    }
    uint32_t rest = (uint32_t)number;
    for (; rest >= 100; rest /= 100) {
        end -= 2;
        memcpy(end, pairs + rest % 100 * 2, 2);
    }
    *--end = (char)('0' + rest % 10);
    if (rest >= 10)
        *--end = (char)('0' + rest / 10);
    return end;
}
