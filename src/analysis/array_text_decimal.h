/* The decimal digits of an element that is a finite float: exact rounding and shortest form. */
#ifndef GBX_ANALYSIS_ARRAY_TEXT_DECIMAL_H
#define GBX_ANALYSIS_ARRAY_TEXT_DECIMAL_H

#include <stdint.h>

/* d.ddd * 10^exponent, where `digits` is all of the `count` digits as one integer. Zero is one
 * digit with exponent 0. Without a sign. */
typedef struct gbx_decimal {
    uint64_t digits;
    int count;
    int exponent;
} gbx_decimal;

/* A finite float without its sign. */
typedef struct gbx_magnitude {
    uint32_t dtype;
    uint64_t bits;
    double value;
} gbx_magnitude;

/* `bits` is a finite element of a float dtype, of any sign. */
gbx_magnitude gbx_magnitude_of(uint32_t dtype, uint64_t bits);

/*
 * The decimal of `count` digits (1 to 17) nearest to the value, ties to the even digit. Just above
 * a power of two floats are twice as far apart as below it: where of the decimals on both sides of
 * it only the upper one reads back as the element, that one.
 */
gbx_decimal gbx_decimal_round(const gbx_magnitude *magnitude, int count);

/*
 * The shortest form if it has at most `places` (up to 8) digits after the point, otherwise the
 * value rounded to that many; without zeros at the end. Fixed is for values from 1e-4 to 1e8.
 */
gbx_decimal gbx_decimal_fixed(const gbx_magnitude *magnitude, int places);
gbx_decimal gbx_decimal_scientific(const gbx_magnitude *magnitude, int places);

/* As gbx_decimal_fixed, but with the value's own digits down to the units: 65504 of float16, whose
 * shortest form is 65500. */
gbx_decimal gbx_decimal_fixed_units(const gbx_magnitude *magnitude, int places);

/* Digits after the point, written without an exponent. */
int gbx_decimal_places(gbx_decimal decimal);

#endif
