#include "text/float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_bits.h"
#include "text/decimal.h"

enum {
    FIXED_EXPONENT_MIN = -4, /* below it and from FIXED_EXPONENT_END on, repr writes an exponent */
    FIXED_EXPONENT_END = 16
};

/* The digits of a number with a point after the first `whole` of them. */
static char *put_pointed(char *at, const gbx_decimal *number, int whole) {
    char *end = at + 1 + number->count;
    gbx_digits_before(end, number->digits);
    for (int i = 0; i < whole; ++i)
        at[i] = at[i + 1];
    at[whole] = '.';
    return end;
}

/* "1.5e+05": the exponent has a sign and two digits or more. */
static char *put_scientific(char *at, const gbx_decimal *number) {
    if (number->count > 1)
        at = put_pointed(at, number, 1);
    else
        *at++ = (char)('0' + number->digits);
    const int magnitude = abs(number->exponent);
    *at++ = 'e';
    *at++ = number->exponent < 0 ? '-' : '+';
    if (magnitude >= 100)
        *at++ = (char)('0' + magnitude / 100);
    *at++ = (char)('0' + magnitude / 10 % 10);
    *at++ = (char)('0' + magnitude % 10);
    return at;
}

static char *put_fixed(char *at, const gbx_decimal *number) {
    const int whole = number->exponent + 1; /* digits before the point */
    if (whole > 0 && whole < number->count)
        return put_pointed(at, number, whole);
    if (whole <= 0) {
        memcpy(at, "0.000", 5);
        at += 2 - whole + number->count;
        gbx_digits_before(at, number->digits);
        return at;
    }
    gbx_digits_before(at + number->count, number->digits);
    memset(at + number->count, '0', (size_t)(whole - number->count));
    memcpy(at + whole, ".0", 2);
    return at + whole + 2;
}

/* Formats a value whose magnitude is `binary` if it is finite and not 0. Integers below
 * `whole_end`, whose neighbours are all floats, too, are their own shortest text. */
static size_t format(bool is_negative, double value, double whole_end, const gbx_binary *binary,
                     char *out_text) {
    char *at = out_text;
    *at = '-';
    at += is_negative & !isnan(value); /* signs are unpredictable: no branch */
    if (!isfinite(value)) {
        memcpy(at, isnan(value) ? "nan" : "inf", 3);
        at += 3;
    } else if (value < whole_end && value == (double)(int64_t)value &&
               (value >= 1.0 || binary->fraction == 0)) {
        at += gbx_digits_count((uint64_t)value);
        gbx_digits_before(at, (uint64_t)value);
        memcpy(at, ".0", 2);
        at += 2;
    } else {
        const gbx_decimal number = gbx_decimal_shortest(binary);
        const bool is_fixed =
            number.exponent >= FIXED_EXPONENT_MIN && number.exponent < FIXED_EXPONENT_END;
        at = is_fixed ? put_fixed(at, &number) : put_scientific(at, &number);
    }
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
