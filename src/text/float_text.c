#include "text/float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"
#include "text/decimal.h"

enum {
    DIGITS_MAX = 20,
    FIXED_EXPONENT_MIN = -4, /* below it and from FIXED_EXPONENT_END on, repr writes an exponent */
    FIXED_EXPONENT_END = 16
};

static char *put_digits(char *at, const char *digits, int count) {
    memcpy(at, digits, (size_t)count);
    return at + count;
}

static char *put_zeros(char *at, int count) {
    memset(at, '0', (size_t)count);
    return at + count;
}

/* "1.5e+05": the exponent has a sign and two digits or more. */
static char *put_scientific(char *at, const char *digits, const gbx_decimal *number) {
    *at++ = digits[0];
    if (number->count > 1) {
        *at++ = '.';
        at = put_digits(at, digits + 1, number->count - 1);
    }
    const int magnitude = abs(number->exponent);
    *at++ = 'e';
    *at++ = number->exponent < 0 ? '-' : '+';
    if (magnitude >= 100)
        *at++ = (char)('0' + magnitude / 100);
    *at++ = (char)('0' + magnitude / 10 % 10);
    *at++ = (char)('0' + magnitude % 10);
    return at;
}

static char *put_fixed(char *at, const char *digits, const gbx_decimal *number) {
    const int whole = number->exponent + 1; /* digits before the point */
    if (whole <= 0) {
        at = put_digits(at, "0.", 2);
        at = put_zeros(at, -whole);
        return put_digits(at, digits, number->count);
    }
    if (whole >= number->count) {
        at = put_digits(at, digits, number->count);
        at = put_zeros(at, whole - number->count);
        return put_digits(at, ".0", 2);
    }
    at = put_digits(at, digits, whole);
    *at++ = '.';
    return put_digits(at, digits + whole, number->count - whole);
}

/* The last digit goes before `end`; returns the first. */
static char *digits_before(char *end, uint64_t number) {
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return end;
}

static char *put_shortest(char *at, const gbx_binary *value) {
    const gbx_decimal number = gbx_decimal_shortest(value);
    char text[DIGITS_MAX];
    const char *digits = digits_before(text + DIGITS_MAX, number.digits);
    const bool is_fixed =
        number.exponent >= FIXED_EXPONENT_MIN && number.exponent < FIXED_EXPONENT_END;
    return is_fixed ? put_fixed(at, digits, &number) : put_scientific(at, digits, &number);
}

static char *put_whole(char *at, uint64_t number) {
    char text[DIGITS_MAX];
    char *end = text + DIGITS_MAX;
    const char *digits = digits_before(end, number);
    return put_digits(put_digits(at, digits, (int)(end - digits)), ".0", 2);
}

/* Of a value without its sign, which is `binary` if it is finite and not 0. Integers below
 * `whole_end`, which the format holds with all their neighbours, are their own shortest text. */
static size_t format(bool is_negative, double value, double whole_end, const gbx_binary *binary,
                     char *out_text) {
    char *at = out_text;
    if (is_negative && !isnan(value))
        *at++ = '-';
    if (!isfinite(value))
        at = put_digits(at, isnan(value) ? "nan" : "inf", 3);
    else if (value < whole_end && value == trunc(value) && (value >= 1.0 || binary->fraction == 0))
        at = put_whole(at, (uint64_t)value);
    else
        at = put_shortest(at, binary);
    *at = '\0';
    return (size_t)(at - out_text);
}

size_t gbx_f64_format(double value, char out_text[GBX_FLOAT_TEXT_BYTES]) {
    const gbx_binary binary = gbx_binary_of_f64(gbx_f64_bits(value) & INT64_MAX);
    return format(signbit(value) != 0, fabs(value), 0x1p53, &binary, out_text);
}

size_t gbx_f32_format(float value, char out_text[GBX_FLOAT_TEXT_BYTES]) {
    const gbx_binary binary = gbx_binary_of_f32(gbx_f32_bits(value) & INT32_MAX);
    return format(signbit(value) != 0, fabs((double)value), 0x1p24, &binary, out_text);
}
