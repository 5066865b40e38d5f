#include "text/float_text.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"

enum {
    DIGITS_MAX = DBL_DECIMAL_DIG,
    FIXED_EXPONENT_MIN = -4, /* below it and from FIXED_EXPONENT_END on, repr writes an exponent */
    FIXED_EXPONENT_END = 16
};

/* d.ddd * 10^exponent, with `count` digits. */
typedef struct decimal {
    char digits[DIGITS_MAX + 1];
    int count;
    int exponent;
} decimal;

/*
 * A value without its sign, and what the search needs to know of its format. Told from its bits,
 * so that a host that takes subnormals for zero does not get them as zero.
 */
typedef struct target {
    double value;
    uint64_t bits; /* of the float32 where it is one */
    bool is_f32;
    bool is_normal;
    bool is_power_of_two;
    int sure_digits; /* a normal value keeps every decimal of so many digits apart */
    int most_digits; /* so many digits always read back */
} target;

static target target_of_f64(double value) {
    uint64_t bits = gbx_f64_bits(value);
    target result = {.value = value,
                     .bits = bits,
                     .is_normal = bits >> 52 != 0,
                     .is_power_of_two = (bits & ((UINT64_C(1) << 52) - 1)) == 0,
                     .sure_digits = DBL_DIG,
                     .most_digits = DBL_DECIMAL_DIG};
    return result;
}

static target target_of_f32(float value) {
    uint32_t bits = gbx_f32_bits(value);
    bool is_normal = bits >> 23 != 0;
    target result = {.value = is_normal ? (double)value : (double)bits * 0x1p-149,
                     .bits = bits,
                     .is_f32 = true,
                     .is_normal = is_normal,
                     .is_power_of_two = (bits & ((UINT32_C(1) << 23) - 1)) == 0,
                     .sure_digits = FLT_DIG,
                     .most_digits = FLT_DECIMAL_DIG};
    return result;
}

static char *put_digits(char *at, const char *digits, int count) {
    memcpy(at, digits, (size_t)count);
    return at + count;
}

static char *put_zeros(char *at, int count) {
    for (int i = 0; i < count; ++i)
        *at++ = '0';
    return at;
}

/* "e+05": a sign and two digits or more. */
static char *put_exponent(char *at, int exponent) {
    int magnitude = abs(exponent);
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (magnitude >= 100)
        *at++ = (char)('0' + magnitude / 100);
    *at++ = (char)('0' + magnitude / 10 % 10);
    *at++ = (char)('0' + magnitude % 10);
    return at;
}

/* Reads the digits past whatever the locale takes for a decimal point. */
static void round_to(double value, int count, decimal *out) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    const char *at = text;
    out->count = 0;
    for (; *at != 'e'; ++at) {
        if (*at >= '0' && *at <= '9')
            out->digits[out->count++] = *at;
    }
    out->exponent = (int)strtol(at + 1, NULL, 10);
}

/* The next decimal of as many digits. */
static void step_up(decimal *number) {
    int i = number->count - 1;
    while (i >= 0 && number->digits[i] == '9')
        number->digits[i--] = '0';
    if (i >= 0) {
        number->digits[i]++;
    } else {
        number->digits[0] = '1';
        number->exponent++;
    }
}

/* Written as an integer and an exponent, which has no decimal point for a locale to replace. */
static bool reads_back(const decimal *number, const target *wanted) {
    char text[64];
    char *end = put_digits(text, number->digits, number->count);
    *put_exponent(end, number->exponent - number->count + 1) = '\0';
    if (wanted->is_f32)
        return gbx_f32_bits(strtof(text, NULL)) == wanted->bits;
    return gbx_f64_bits(strtod(text, NULL)) == wanted->bits;
}

/*
 * Whether some decimal of `count` digits reads back. If one does, the nearest one does, but for
 * powers of two: their neighbour below is half as far as the one above, so that the nearest
 * decimal may miss from below where the next one up still reads back.
 */
static bool find_decimal(const target *wanted, int count, decimal *out) {
    round_to(wanted->value, count, out);
    if (reads_back(out, wanted))
        return true;
    if (!wanted->is_power_of_two)
        return false;
    step_up(out);
    return reads_back(out, wanted);
}

/*
 * A normal value has at most one decimal of `sure_digits` or fewer that reads back: rounding to
 * `sure_digits` finds it, padded with zeros. Subnormals have less precision and start at one digit.
 */
static void find_shortest(const target *wanted, decimal *out) {
    int count = wanted->is_normal ? wanted->sure_digits : 1;
    while (count < wanted->most_digits && !find_decimal(wanted, count, out))
        ++count;
    if (count == wanted->most_digits)
        round_to(wanted->value, count, out);
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        --out->count;
}

static char *put_scientific(char *at, const decimal *number) {
    *at++ = number->digits[0];
    if (number->count > 1) {
        *at++ = '.';
        at = put_digits(at, number->digits + 1, number->count - 1);
    }
    return put_exponent(at, number->exponent);
}

static char *put_fixed(char *at, const decimal *number) {
    int whole = number->exponent + 1; /* digits before the point */
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        at = put_zeros(at, -whole);
        return put_digits(at, number->digits, number->count);
    }
    if (whole >= number->count) {
        at = put_digits(at, number->digits, number->count);
        at = put_zeros(at, whole - number->count);
        *at++ = '.';
        *at++ = '0';
        return at;
    }
    at = put_digits(at, number->digits, whole);
    *at++ = '.';
    return put_digits(at, number->digits + whole, number->count - whole);
}

static char *put_finite(char *at, const target *wanted) {
    decimal number = {.digits = "0", .count = 1, .exponent = 0};
    if (wanted->bits != 0)
        find_shortest(wanted, &number);
    bool is_fixed = number.exponent >= FIXED_EXPONENT_MIN && number.exponent < FIXED_EXPONENT_END;
    return is_fixed ? put_fixed(at, &number) : put_scientific(at, &number);
}

static size_t format(bool is_negative, const target *wanted, char *out_text) {
    if (isnan(wanted->value)) {
        memcpy(out_text, "nan", 4);
        return 3;
    }
    char *at = out_text;
    if (is_negative)
        *at++ = '-';
    if (isinf(wanted->value)) {
        at = put_digits(at, "inf", 3);
    } else {
        int saved_errno = errno; /* strtod reports the underflow of every subnormal */
        at = put_finite(at, wanted);
        errno = saved_errno;
    }
    *at = '\0';
    return (size_t)(at - out_text);
}

size_t gbx_f64_format(double value, char out_text[GBX_FLOAT_TEXT_BYTES]) {
    target wanted = target_of_f64(fabs(value));
    return format(signbit(value) != 0, &wanted, out_text);
}

size_t gbx_f32_format(float value, char out_text[GBX_FLOAT_TEXT_BYTES]) {
    target wanted = target_of_f32(fabsf(value));
    return format(signbit(value) != 0, &wanted, out_text);
}
