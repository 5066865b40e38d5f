/* The elements as words of the format. */
#include <math.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text_decimal.h"
#include "analysis/array_text_format.h"
#include "analysis/array_text_integer.h"

enum { DIGITS_TEXT_BYTES = 24 };

static char *put_blanks(char *at, int count) {
    for (int i = 0; i < count; ++i)
        *at++ = ' ';
    return at;
}

static char *put_text(char *at, const char *text, int count) {
    memcpy(at, text, (size_t)count);
    return at + count;
}

static char *put_zeros(char *at, int count) {
    for (int i = 0; i < count; ++i)
        *at++ = '0';
    return at;
}

static size_t put_right(const gbx_array_format *format, const char *text, size_t length,
                        char *out_word) {
    char *at = put_blanks(out_word, format->width - (int)length);
    return (size_t)(put_text(at, text, (int)length) - out_word);
}

/* Leaves the digits in `text` and returns where they start; they end with it. */
static const char *digits_text(gbx_decimal decimal, char text[DIGITS_TEXT_BYTES]) {
    return gbx_digits_write(decimal.digits, text + DIGITS_TEXT_BYTES);
}

static char *put_exponent(char *at, int exponent, int width) {
    char text[DIGITS_TEXT_BYTES];
    char *end = text + sizeof text;
    const char *digits = gbx_digits_write((uint64_t)(exponent < 0 ? -exponent : exponent), end);
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    at = put_zeros(at, width - (int)(end - digits));
    return put_text(at, digits, (int)(end - digits));
}

static size_t write_scientific(const gbx_array_format *format, bool is_negative,
                               const gbx_magnitude *magnitude, char *out_word) {
    const int places = format->scientific_places;
    const gbx_decimal decimal = gbx_decimal_round(magnitude, places + 1);
    char text[DIGITS_TEXT_BYTES];
    const char *digits = digits_text(decimal, text);
    char *at = put_blanks(out_word, format->left - 1 - is_negative);
    if (is_negative)
        *at++ = '-';
    *at++ = digits[0];
    *at++ = '.';
    at = magnitude->value == 0.0 ? put_zeros(at, places) : put_text(at, digits + 1, places);
    return (size_t)(put_exponent(at, decimal.exponent, format->exponent_digits) - out_word);
}

/* The digits and the zeros that place them: 1200 is 12 and two, 0.0012 is two and 12. */
static char *put_number(char *at, gbx_decimal decimal) {
    char text[DIGITS_TEXT_BYTES];
    const char *digits = digits_text(decimal, text);
    const int whole = decimal.exponent + 1;
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        return put_text(put_zeros(at, -whole), digits, decimal.count);
    }
    const int taken = whole < decimal.count ? whole : decimal.count;
    at = put_zeros(put_text(at, digits, taken), whole - taken);
    *at++ = '.';
    return put_text(at, digits + taken, decimal.count - taken);
}

static size_t write_fixed(const gbx_array_format *format, bool is_negative,
                          const gbx_magnitude *magnitude, char *out_word) {
    const gbx_decimal decimal = gbx_decimal_fixed_units(magnitude, GBX_ARRAY_PLACES_MAX);
    const int whole = decimal.exponent > 0 ? decimal.exponent + 1 : 1;
    char *at = put_blanks(out_word, format->left - whole - is_negative);
    if (is_negative)
        *at++ = '-';
    at = put_number(at, decimal);
    return (size_t)(put_blanks(at, format->right - gbx_decimal_places(decimal)) - out_word);
}

static size_t write_float(const gbx_array_format *format, uint64_t bits, char *out_word) {
    const double value = gbx_dtype_to_f64(format->dtype, bits);
    if (isnan(value))
        return put_right(format, "nan", 3, out_word);
    if (isinf(value))
        return value < 0.0 ? put_right(format, "-inf", 4, out_word)
                           : put_right(format, "inf", 3, out_word);
    const gbx_magnitude magnitude = gbx_magnitude_of(format->dtype, bits);
    const bool is_negative = signbit(value) != 0;
    return format->is_scientific ? write_scientific(format, is_negative, &magnitude, out_word)
                                 : write_fixed(format, is_negative, &magnitude, out_word);
}

size_t gbx_array_format_write(const gbx_array_format *format, uint64_t bits,
                              char out_word[GBX_ARRAY_WORD_BYTES]) {
    if (format->is_float)
        return write_float(format, bits, out_word);
    if (format->dtype == GBX_BOOL)
        return gbx_element_is_true(bits) ? put_right(format, "True", 4, out_word)
                                         : put_right(format, "False", 5, out_word);
    char text[GBX_INTEGER_TEXT_BYTES];
    const size_t length = gbx_integer_format(gbx_integer_of(format->dtype, bits), text);
    return put_right(format, text, length, out_word);
}

size_t gbx_array_format_write_missing(const gbx_array_format *format,
                                      char out_word[GBX_ARRAY_WORD_BYTES]) {
    return put_right(format, "?", 1, out_word);
}
