/* Elements as words: single ones, and in the format that all elements of an array share. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/internal.h"
#include "base/float_bits.h"
#include "tensor/dtype_table.h"
#include "text/decimal.h"
#include "text/float_text.h"

enum {
    BOOL_WIDTH = 5,
    F64_SURE_DIGITS = 15, /* decimals of up to this many digits are distinct as normal float64 */
    DIGITS_TEXT_BYTES = 24
};

_Static_assert(GBX_ELEMENT_TEXT_BYTES >= GBX_FLOAT_TEXT_BYTES, "every float fits");

/* --- integers --- */

typedef struct integer {
    bool is_negative;
    uint64_t magnitude;
} integer;

/* `bits` is an element of an integer dtype. */
static integer integer_of(uint32_t dtype, uint64_t bits) {
    const unsigned width = gbx_dtype_bits(dtype);
    const uint64_t mask = UINT64_MAX >> (64 - width);
    integer result = {.magnitude = bits & mask};
    result.is_negative = gbx_dtype_is_signed(dtype) && result.magnitude >> (width - 1) != 0;
    if (result.is_negative)
        result.magnitude = -result.magnitude & mask;
    return result;
}

static size_t integer_format(integer number, char out_text[DIGITS_TEXT_BYTES]) {
    char *end = out_text + number.is_negative + gbx_digits_count(number.magnitude);
    out_text[0] = '-'; /* a digit overwrites it, unless the number is negative */
    gbx_digits_before(end, number.magnitude);
    *end = '\0';
    return (size_t)(end - out_text);
}

static bool is_true(uint64_t bits) {
    return (bits & 0xff) != 0;
}

/* --- one element --- */

static size_t copy_text(const char *text, char *out_text) {
    const size_t length = strlen(text);
    memcpy(out_text, text, length + 1);
    return length;
}

size_t gbx_element_format(uint32_t dtype, uint64_t bits, char out_text[GBX_ELEMENT_TEXT_BYTES]) {
    if (!gbx_dtype_is_valid(dtype))
        return copy_text("?", out_text);
    if (dtype == GBX_BOOL)
        return copy_text(is_true(bits) ? "True" : "False", out_text);
    if (dtype == GBX_FLOAT64)
        return gbx_f64_format(gbx_f64_of_bits(bits), out_text);
    if (gbx_dtype_is_float(dtype))
        return gbx_f32_format((float)gbx_dtype_to_f64(dtype, bits), out_text);
    return integer_format(integer_of(dtype, bits), out_text);
}

/* --- the digits of a finite float, of any sign --- */

static uint64_t magnitude_bits(uint32_t dtype, uint64_t bits) {
    return bits & (UINT64_MAX >> (64 - gbx_dtype_bits(dtype))) & ~gbx_float_codes_of(dtype).sign;
}

static bool is_zero(uint32_t dtype, uint64_t magnitude) {
    return gbx_dtype_to_f64(dtype, magnitude) == 0.0;
}

/*
 * For a dtype narrower than float32, from the neighbours of the element: the step between two is a
 * power of two, and an element is a multiple of its step. With at most one bit of fraction they are
 * so far apart that 0.125 would print as 0.1: such an element prints as a float32.
 */
static gbx_binary binary_of_narrow(uint32_t dtype, uint64_t bits) {
    const double value = gbx_dtype_to_f64(dtype, bits);
    if (gbx_dtype_info_of(dtype)->format.fraction_bits <= 1)
        return gbx_binary_of_f32(gbx_f32_bits((float)value));
    const double next = gbx_dtype_to_f64(dtype, bits + 1); /* infinity or NaN past the largest */
    const double below = value - gbx_dtype_to_f64(dtype, bits - 1);
    const double above = isfinite(next) ? next - value : below;
    return (gbx_binary){.fraction = (uint64_t)(value / above),
                        .exponent = ilogb(above),
                        .is_below_near = above != below};
}

/* `bits` is not zero and has no sign bit. */
static gbx_binary binary_of(uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_FLOAT64)
        return gbx_binary_of_f64(bits);
    return dtype == GBX_FLOAT32 ? gbx_binary_of_f32((uint32_t)bits) : binary_of_narrow(dtype, bits);
}

static int decimal_places(gbx_decimal decimal) {
    const int places = decimal.count - 1 - decimal.exponent;
    return places > 0 ? places : 0;
}

/*
 * The shortest form if it has at most `count` digits, otherwise the value rounded to that many;
 * without trailing zeros. If a decimal of 15 digits or fewer reads back as the float64, it is the
 * nearest one, up to trailing zeros: then the shortest form is not needed.
 */
static gbx_decimal shorten(const gbx_binary *value, int count) {
    gbx_decimal result;
    if (!value->is_f64 || count > F64_SURE_DIGITS) {
        result = gbx_decimal_shortest(value);
        if (result.count <= count)
            return result;
    }
    result = gbx_decimal_round(value, count);
    for (; result.count > 1 && result.digits % 10 == 0; --result.count)
        result.digits /= 10;
    return result;
}

/* How many digits a value from 1e-4 to 1e8 has before the point: 0 for 0.1, -1 for 0.01. */
static int whole_digits(double magnitude) {
    static const double bounds[] = {1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    const int count = (int)(sizeof bounds / sizeof bounds[0]);
    int passed = 0;
    while (passed < count && magnitude >= bounds[passed])
        ++passed;
    return passed - 3;
}

/* With at most GBX_ARRAY_PLACES_MAX digits after the point of either layout; zero is one digit. */
static gbx_decimal decimal_of(uint32_t dtype, uint64_t bits, bool is_scientific) {
    const uint64_t magnitude = magnitude_bits(dtype, bits);
    if (is_zero(dtype, magnitude))
        return (gbx_decimal){.count = 1};
    const gbx_binary value = binary_of(dtype, magnitude);
    const int whole = is_scientific ? 1 : whole_digits(gbx_dtype_to_f64(dtype, magnitude));
    return shorten(&value, whole + GBX_ARRAY_PLACES_MAX);
}

/* --- the first pass: integers --- */

static int integer_width(const gbx_array_format *format) {
    const int positive_width = gbx_digits_count(format->longest[0]);
    const int negative_width = format->longest[1] ? 1 + gbx_digits_count(format->longest[1]) : 0;
    return positive_width > negative_width ? positive_width : negative_width;
}

/* --- the first pass: floats --- */

/* numpy divides in the dtype of the array; for dtypes that numpy lacks, in float64. */
static double ratio_of(const gbx_array_format *format) {
    const double ratio = format->largest / format->smallest;
    if (format->dtype == GBX_FLOAT32)
        return (double)((float)format->largest / (float)format->smallest);
    if (format->dtype == GBX_FLOAT16)
        return gbx_dtype_to_f64(GBX_FLOAT16, gbx_dtype_from_f64(GBX_FLOAT16, ratio));
    return ratio;
}

/* Once true, it stays true with more elements. */
static bool needs_exponent(const gbx_array_format *format) {
    return format->largest >= 1e8 || format->smallest < 1e-4 || ratio_of(format) > 1000.0;
}

static void note_range(gbx_array_format *format, double magnitude, uint64_t bits) {
    if (magnitude > format->largest) {
        format->largest = magnitude;
        format->largest_bits = bits;
    } else if (magnitude >= format->smallest) {
        return;
    }
    if (magnitude < format->smallest) {
        format->smallest = magnitude;
        format->smallest_bits = bits;
    }
    format->is_scientific = needs_exponent(format);
}

static void note_float(gbx_array_format *format, uint64_t bits) {
    const double value = gbx_dtype_to_f64(format->dtype, bits);
    if (!isfinite(value)) {
        format->has_other = true;
        format->has_negative_infinity |= isinf(value) && value < 0.0;
        return;
    }
    const double magnitude = fabs(value);
    gbx_farthest *farthest = &format->farthest[signbit(value) != 0];
    if (!farthest->is_any || magnitude > farthest->value)
        *farthest = (gbx_farthest){.is_any = true, .value = magnitude, .bits = bits};
    if (magnitude == 0.0)
        return;
    note_range(format, magnitude, bits);
    /* Digits are counted only in layouts that are still possible and not at their maximum. */
    if (!format->is_scientific && format->fixed_places < GBX_ARRAY_PLACES_MAX) {
        const int places = decimal_places(decimal_of(format->dtype, bits, false));
        if (places > format->fixed_places)
            format->fixed_places = places;
    }
    if (format->scientific_places < GBX_ARRAY_PLACES_MAX) {
        const int places = decimal_of(format->dtype, bits, true).count - 1;
        if (places > format->scientific_places)
            format->scientific_places = places;
    }
}

/* --- the format --- */

/* numpy writes two digits or three. */
static int exponent_digits_of(const gbx_array_format *format, uint64_t bits) {
    return abs(decimal_of(format->dtype, bits, true).exponent) < 100 ? 2 : 3;
}

/* Characters before the point of the longest number with this sign. */
static int whole_width(const gbx_array_format *format, bool is_negative) {
    const gbx_farthest *farthest = &format->farthest[is_negative];
    if (!farthest->is_any)
        return 0;
    const int exponent = decimal_of(format->dtype, farthest->bits, false).exponent;
    return is_negative + (exponent > 0 ? exponent : 0) + 1;
}

static void end_float(gbx_array_format *format) {
    if (format->is_scientific) {
        const int of_largest = exponent_digits_of(format, format->largest_bits);
        const int of_smallest = exponent_digits_of(format, format->smallest_bits);
        format->exponent_digits = of_largest > of_smallest ? of_largest : of_smallest;
        format->left = 1 + format->farthest[1].is_any;
        format->right = format->scientific_places + 2 + format->exponent_digits;
    } else {
        const int positive = whole_width(format, false);
        const int negative = whole_width(format, true);
        format->left = positive > negative ? positive : negative;
        format->right = format->fixed_places;
    }
    if (format->has_other) {
        const int needed = (int)strlen("inf") + format->has_negative_infinity - format->right - 1;
        format->left = format->left > needed ? format->left : needed;
    }
    format->width = format->left + 1 + format->right;
}

void gbx_array_format_begin(gbx_array_format *format, uint32_t dtype, bool is_scalar) {
    *format = (gbx_array_format){
        .dtype = dtype,
        .is_float = gbx_dtype_is_float(dtype),
        .is_scalar = is_scalar,
        .smallest = INFINITY,
    };
}

void gbx_array_format_note(gbx_array_format *format, uint64_t bits) {
    if (format->is_float) {
        note_float(format, bits);
    } else {
        const integer number = integer_of(format->dtype, bits);
        uint64_t *longest = &format->longest[number.is_negative];
        if (number.magnitude > *longest)
            *longest = number.magnitude;
    }
}

void gbx_array_format_end(gbx_array_format *format) {
    if (format->is_float)
        end_float(format);
    else if (format->dtype == GBX_BOOL)
        format->width = format->is_scalar ? 0 : BOOL_WIDTH;
    else
        format->width = integer_width(format);
}

/* --- the words --- */

static char *put_text(char *at, const char *text, int count) {
    memcpy(at, text, (size_t)count);
    return at + count;
}

/* None if the count is negative. */
static char *put_many(char *at, char character, int count) {
    for (int i = 0; i < count; ++i)
        *at++ = character;
    return at;
}

static size_t put_right(const gbx_array_format *format, const char *text, size_t length,
                        char *out_word) {
    char *at = put_many(out_word, ' ', format->width - (int)length);
    return (size_t)(put_text(at, text, (int)length) - out_word);
}

/* `width` is at least the number of digits. */
static char *put_exponent(char *at, int exponent, int width) {
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    at = put_many(at, '0', width);
    gbx_digits_before(at, (uint64_t)abs(exponent));
    return at;
}

static size_t write_scientific(const gbx_array_format *format, bool is_negative, uint64_t magnitude,
                               char *out_word) {
    const int places = format->scientific_places;
    gbx_decimal decimal = {.count = 1};
    const bool is_number = !is_zero(format->dtype, magnitude);
    if (is_number) {
        const gbx_binary value = binary_of(format->dtype, magnitude);
        decimal = gbx_decimal_round(&value, places + 1);
    }
    char text[DIGITS_TEXT_BYTES];
    const char *digits = gbx_digits_before(text + sizeof text, decimal.digits);
    char *at = put_many(out_word, ' ', format->left - 1 - is_negative);
    if (is_negative)
        *at++ = '-';
    *at++ = digits[0];
    *at++ = '.';
    at = is_number ? put_text(at, digits + 1, places) : put_many(at, '0', places);
    return (size_t)(put_exponent(at, decimal.exponent, format->exponent_digits) - out_word);
}

/* The digits, and the zeros that place them: 1200. is 12 and two zeros, 0.0012 two zeros and 12. */
static char *put_number(char *at, gbx_decimal decimal) {
    char text[DIGITS_TEXT_BYTES];
    const char *digits = gbx_digits_before(text + sizeof text, decimal.digits);
    const int whole = decimal.exponent + 1;
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        return put_text(put_many(at, '0', -whole), digits, decimal.count);
    }
    const int taken = whole < decimal.count ? whole : decimal.count;
    at = put_many(put_text(at, digits, taken), '0', whole - taken);
    *at++ = '.';
    return put_text(at, digits + taken, decimal.count - taken);
}

/* With all digits down to the units: the float16 65504, whose shortest form would be 65500. */
static size_t write_fixed(const gbx_array_format *format, bool is_negative, uint64_t magnitude,
                          char *out_word) {
    gbx_decimal decimal = decimal_of(format->dtype, magnitude, false);
    if (decimal.exponent >= decimal.count) {
        const gbx_binary value = binary_of(format->dtype, magnitude);
        decimal =
            gbx_decimal_round(&value, whole_digits(gbx_dtype_to_f64(format->dtype, magnitude)));
    }
    const int whole = decimal.exponent > 0 ? decimal.exponent + 1 : 1;
    char *at = put_many(out_word, ' ', format->left - whole - is_negative);
    if (is_negative)
        *at++ = '-';
    at = put_number(at, decimal);
    return (size_t)(put_many(at, ' ', format->right - decimal_places(decimal)) - out_word);
}

size_t gbx_array_format_write(const gbx_array_format *format, uint64_t bits,
                              char out_word[GBX_ARRAY_WORD_BYTES]) {
    if (format->is_float) {
        const double value = gbx_dtype_to_f64(format->dtype, bits);
        if (isnan(value))
            return put_right(format, "nan", 3, out_word);
        if (isinf(value))
            return value < 0.0 ? put_right(format, "-inf", 4, out_word)
                               : put_right(format, "inf", 3, out_word);
        const uint64_t magnitude = magnitude_bits(format->dtype, bits);
        const bool is_negative = signbit(value) != 0;
        return format->is_scientific ? write_scientific(format, is_negative, magnitude, out_word)
                                     : write_fixed(format, is_negative, magnitude, out_word);
    }
    if (format->dtype == GBX_BOOL)
        return is_true(bits) ? put_right(format, "True", 4, out_word)
                             : put_right(format, "False", 5, out_word);
    char text[DIGITS_TEXT_BYTES];
    const size_t length = integer_format(integer_of(format->dtype, bits), text);
    return put_right(format, text, length, out_word);
}

size_t gbx_array_format_write_missing(const gbx_array_format *format,
                                      char out_word[GBX_ARRAY_WORD_BYTES]) {
    return put_right(format, "?", 1, out_word);
}
