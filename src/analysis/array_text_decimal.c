/*
 * Powers of ten up to 10^22 are exact float64s. A product or a quotient of two exact float64s is
 * rounded once, and that once can be undone where it matters; so most numbers need no more than
 * one multiplication a try. The rest, and what is in doubt, goes through the C library, whose
 * conversions are exact.
 */
#include "analysis/array_text_decimal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "text/float_text.h"

enum {
    EXACT_POWER_MAX = 22,
    EXACT_DIGITS_MAX = 15, /* so many digits are an exact float64, with bits left below them */
    F64_BIAS = 1023,
    F64_FRACTION_BITS = 52,
    F32_FRACTION_BITS = 23,
    F32_SURE_DIGITS = 6, /* a normal float32 keeps every decimal of so many digits apart */
    TEXT_BYTES = 64
};

static const double powers[EXACT_POWER_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_exact_power(int power) {
    return power >= -EXACT_POWER_MAX && power <= EXACT_POWER_MAX;
}

gbx_magnitude gbx_magnitude_of(uint32_t dtype, uint64_t bits) {
    const uint64_t below_sign = (UINT64_C(1) << (gbx_dtype_bits(dtype) - 1)) - 1;
    gbx_magnitude result = {.dtype = dtype, .bits = bits & below_sign};
    result.value = gbx_dtype_to_f64(dtype, result.bits);
    return result;
}

/* The same number without zeros at the end. */
static gbx_decimal trim(gbx_decimal decimal) {
    while (decimal.count > 1 && decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        --decimal.count;
    }
    return decimal;
}

/* The text has no decimal point, which would depend on the locale. */
static void write_decimal(gbx_decimal decimal, char text[TEXT_BYTES]) {
    snprintf(text, TEXT_BYTES, "%" PRIu64 "e%d", decimal.digits,
             decimal.exponent - decimal.count + 1);
}

/* `text` is a number above zero, with an exponent or without; what is no digit before the exponent
 * is its decimal point. */
static gbx_decimal parse_decimal(const char *text) {
    gbx_decimal result = {.exponent = -1};
    int is_fraction = 0;
    for (; *text && *text != 'e'; ++text) {
        if (*text < '0' || *text > '9') {
            is_fraction = 1;
        } else if (result.digits == 0 && *text == '0') { /* leading */
            result.exponent -= is_fraction;
        } else {
            result.digits = result.digits * 10 + (uint64_t)(*text - '0');
            ++result.count;
            result.exponent += 1 - is_fraction;
        }
    }
    if (*text == 'e')
        result.exponent += (int)strtol(text + 1, NULL, 10);
    return result;
}

int gbx_decimal_places(gbx_decimal decimal) {
    const int places = decimal.count - 1 - decimal.exponent;
    return places > 0 ? places : 0;
}

/* The float64 nearest to the decimal. */
static double value_of(gbx_decimal decimal) {
    const int power = decimal.exponent - decimal.count + 1;
    if (decimal.count <= EXACT_DIGITS_MAX && is_exact_power(power)) {
        const double digits = (double)decimal.digits;
        return power < 0 ? digits / powers[-power] : digits * powers[power];
    }
    char text[TEXT_BYTES];
    write_decimal(decimal, text);
    const int saved_errno = errno; /* strtod reports the underflow of every subnormal */
    const double value = strtod(text, NULL);
    errno = saved_errno;
    return value;
}

/* float32 rounded from the text at once, not by way of float64. */
static bool reads_back_as_f32(gbx_decimal decimal, uint64_t bits) {
    char text[TEXT_BYTES];
    write_decimal(decimal, text);
    const int saved_errno = errno;
    const float value = strtof(text, NULL);
    errno = saved_errno;
    return gbx_f32_bits(value) == bits;
}

/*
 * By way of float64, which may hide on which side of the middle between two elements a decimal
 * lies only if it lands on that middle. float32 is looked at more closely then; that it changes no
 * element of the narrower dtypes is known from a test of each of them.
 */
static bool reads_back(gbx_decimal decimal, const gbx_magnitude *magnitude) {
    const double value = value_of(decimal);
    if (magnitude->dtype == GBX_FLOAT32) {
        const unsigned dropped = F64_FRACTION_BITS - F32_FRACTION_BITS;
        const uint64_t below = gbx_f64_bits(value) & ((UINT64_C(1) << dropped) - 1);
        const bool is_normal = magnitude->bits >> F32_FRACTION_BITS != 0;
        if (!is_normal || below == UINT64_C(1) << (dropped - 1))
            return reads_back_as_f32(decimal, magnitude->bits);
        return gbx_f32_bits((float)value) == magnitude->bits;
    }
    return gbx_dtype_from_f64(magnitude->dtype, value) == magnitude->bits;
}

/* floor(log10(value)) of a normal value from 1e-22 to 1e22. */
static int exponent_of(double value) {
    const int binary = (int)(gbx_f64_bits(value) >> F64_FRACTION_BITS) - F64_BIAS;
    const int exponent = (binary * 1233) >> 12; /* log10(2) is 1233 / 4096; exact or one less */
    const int next = exponent + 1;
    if (!is_exact_power(next))
        return exponent;
    const double power = next < 0 ? 1.0 / powers[-next] : powers[next];
    return value >= power ? next : exponent;
}

/*
 * value * 10^power, rounded to an integer, ties to even, as if there were no rounding before. A
 * scaled value that does not end in exactly one half is on the right side of it whatever its own
 * rounding was.
 */
static double round_scaled(double value, int power) {
    const double by = powers[abs(power)];
    const double scaled = power < 0 ? value / by : value * by;
    const double rounded = rint(scaled);
    const double rest = scaled - rounded;
    if (fabs(rest) != 0.5)
        return rounded;
    const double lost = power < 0 ? -fma(scaled, by, -value) : fma(value, by, -scaled);
    if (lost > 0.0)
        return floor(scaled) + 1.0;
    return lost < 0.0 ? floor(scaled) : rounded;
}

/* Rounded up, 9.99 is 10.00, which has a digit too many. */
static gbx_decimal drop_carry(gbx_decimal decimal) {
    if (decimal.digits == (uint64_t)powers[decimal.count]) {
        decimal.digits /= 10;
        ++decimal.exponent;
    }
    return decimal;
}

static gbx_decimal round_by_text(double value, int count) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    return parse_decimal(text);
}

static gbx_decimal round_nearest(double value, int count) {
    if (value < 1e-22 || value >= 1e22 || count > EXACT_DIGITS_MAX)
        return round_by_text(value, count);
    gbx_decimal result = {.count = count, .exponent = exponent_of(value)};
    const int power = count - 1 - result.exponent;
    if (!is_exact_power(power))
        return round_by_text(value, count);
    result.digits = (uint64_t)round_scaled(value, power);
    return drop_carry(result);
}

static bool is_power_of_two(double value) {
    return (gbx_f64_bits(value) & ((UINT64_C(1) << F64_FRACTION_BITS) - 1)) == 0;
}

gbx_decimal gbx_decimal_round(const gbx_magnitude *magnitude, int count) {
    gbx_decimal nearest = {.count = count};
    if (magnitude->value == 0.0)
        return nearest;
    nearest = round_nearest(magnitude->value, count);
    if (!is_power_of_two(magnitude->value) || reads_back(nearest, magnitude))
        return nearest;
    gbx_decimal above = nearest;
    ++above.digits;
    above = drop_carry(above);
    return reads_back(above, magnitude) ? above : nearest;
}

static gbx_decimal shortest_of_f64(double value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    gbx_f64_format(value, text);
    return trim(parse_decimal(text));
}

/* The decimal of the fewest digits that reads back as the element; of several the nearest. */
static gbx_decimal shortest_of(const gbx_magnitude *magnitude) {
    const gbx_decimal zero = {.count = 1};
    if (magnitude->value == 0.0)
        return zero;
    if (magnitude->dtype == GBX_FLOAT64)
        return shortest_of_f64(magnitude->value);
    const bool is_sure =
        magnitude->dtype == GBX_FLOAT32 && magnitude->bits >> F32_FRACTION_BITS != 0;
    int count = is_sure ? F32_SURE_DIGITS : 1;
    gbx_decimal result = gbx_decimal_round(magnitude, count);
    while (!reads_back(result, magnitude))
        result = gbx_decimal_round(magnitude, ++count);
    return trim(result);
}

/*
 * Of float64, decimals of 15 digits or fewer are farther apart than the values: if any of so many
 * digits reads back it is the nearest one, with zeros at the end, and the shortest form is not
 * needed.
 */
static gbx_decimal shorten(const gbx_magnitude *magnitude, int count) {
    if (magnitude->dtype != GBX_FLOAT64 || count > EXACT_DIGITS_MAX) {
        const gbx_decimal shortest = shortest_of(magnitude);
        if (shortest.count <= count)
            return shortest;
    }
    return trim(gbx_decimal_round(magnitude, count));
}

gbx_decimal gbx_decimal_fixed(const gbx_magnitude *magnitude, int places) {
    if (magnitude->value == 0.0)
        return shortest_of(magnitude);
    return shorten(magnitude, exponent_of(magnitude->value) + 1 + places);
}

gbx_decimal gbx_decimal_fixed_units(const gbx_magnitude *magnitude, int places) {
    const gbx_decimal decimal = gbx_decimal_fixed(magnitude, places);
    if (decimal.exponent < decimal.count)
        return decimal;
    return gbx_decimal_round(magnitude, exponent_of(magnitude->value) + 1);
}

gbx_decimal gbx_decimal_scientific(const gbx_magnitude *magnitude, int places) {
    if (magnitude->value == 0.0)
        return shortest_of(magnitude);
    return shorten(magnitude, places + 1);
}
