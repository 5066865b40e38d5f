#include "analysis/array_text_format.h"

#include <math.h>
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text_decimal.h"
#include "analysis/array_text_integer.h"

enum { EXPONENT_DIGITS_MIN = 2, BOOL_WIDTH = 5 };

static void note_integer(gbx_array_format *format, uint64_t bits) {
    const gbx_integer integer = gbx_integer_of(format->dtype, bits);
    uint64_t *longest = &format->longest[integer.is_negative];
    if (integer.magnitude > *longest)
        *longest = integer.magnitude;
}

static int integer_width(const gbx_array_format *format) {
    const gbx_integer positive = {.magnitude = format->longest[0]};
    const gbx_integer negative = {.is_negative = true, .magnitude = format->longest[1]};
    char text[GBX_INTEGER_TEXT_BYTES];
    const size_t positive_width = gbx_integer_format(positive, text);
    if (negative.magnitude == 0)
        return (int)positive_width;
    const size_t negative_width = gbx_integer_format(negative, text);
    return (int)(positive_width > negative_width ? positive_width : negative_width);
}

/* --- what is noted of floats --- */

/* numpy divides in the dtype of the array; the dtypes that it lacks are divided in float64. */
static double ratio_of(const gbx_array_format *format) {
    const double ratio = format->largest / format->smallest;
    if (format->dtype == GBX_FLOAT32)
        return (double)((float)format->largest / (float)format->smallest);
    if (format->dtype == GBX_FLOAT16)
        return gbx_dtype_to_f64(GBX_FLOAT16, gbx_dtype_from_f64(GBX_FLOAT16, ratio));
    return ratio;
}

/* What it says of some elements stays true with more of them. */
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

/* Digits are counted for as long as they can still be more, in the layouts still possible. */
static void note_places(gbx_array_format *format, uint64_t bits) {
    const bool is_fixed_open =
        !format->is_scientific && format->fixed_places < GBX_ARRAY_PLACES_MAX;
    if (!is_fixed_open && format->scientific_places == GBX_ARRAY_PLACES_MAX)
        return;
    const gbx_magnitude magnitude = gbx_magnitude_of(format->dtype, bits);
    if (is_fixed_open) {
        const int places = gbx_decimal_places(gbx_decimal_fixed(&magnitude, GBX_ARRAY_PLACES_MAX));
        if (places > format->fixed_places)
            format->fixed_places = places;
    }
    if (format->scientific_places < GBX_ARRAY_PLACES_MAX) {
        const int places = gbx_decimal_scientific(&magnitude, GBX_ARRAY_PLACES_MAX).count - 1;
        if (places > format->scientific_places)
            format->scientific_places = places;
    }
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
    note_places(format, bits);
}

/* --- the format --- */

static int digits_of(int number) {
    int count = 1;
    for (; number >= 10 || number <= -10; number /= 10)
        ++count;
    return count;
}

static int exponent_digits_of(const gbx_array_format *format, uint64_t bits) {
    const gbx_magnitude magnitude = gbx_magnitude_of(format->dtype, bits);
    const int count = digits_of(gbx_decimal_scientific(&magnitude, GBX_ARRAY_PLACES_MAX).exponent);
    return count > EXPONENT_DIGITS_MIN ? count : EXPONENT_DIGITS_MIN;
}

/* Characters before the point of the longest number of a sign. */
static int whole_width(const gbx_array_format *format, bool is_negative) {
    const gbx_farthest *farthest = &format->farthest[is_negative];
    if (!farthest->is_any)
        return 0;
    const gbx_magnitude magnitude = gbx_magnitude_of(format->dtype, farthest->bits);
    const int exponent = gbx_decimal_fixed(&magnitude, GBX_ARRAY_PLACES_MAX).exponent;
    return is_negative + (exponent > 0 ? exponent : 0) + 1;
}

static void end_scientific(gbx_array_format *format) {
    const int of_largest = exponent_digits_of(format, format->largest_bits);
    const int of_smallest = exponent_digits_of(format, format->smallest_bits);
    format->exponent_digits = of_largest > of_smallest ? of_largest : of_smallest;
    format->left = 1 + format->farthest[1].is_any;
    format->right = format->scientific_places + 2 + format->exponent_digits;
}

static void end_fixed(gbx_array_format *format) {
    const int positive = whole_width(format, false);
    const int negative = whole_width(format, true);
    format->left = positive > negative ? positive : negative;
    format->right = format->fixed_places;
}

static void end_float(gbx_array_format *format) {
    if (format->is_scientific)
        end_scientific(format);
    else
        end_fixed(format);
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
    if (format->is_float)
        note_float(format, bits);
    else
        note_integer(format, bits);
}

void gbx_array_format_end(gbx_array_format *format) {
    if (format->is_float)
        end_float(format);
    else if (format->dtype == GBX_BOOL)
        format->width = format->is_scalar ? 0 : BOOL_WIDTH;
    else
        format->width = integer_width(format);
}
