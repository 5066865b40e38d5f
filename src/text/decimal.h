/*
 * The decimal digits of a binary float, rounded correctly: the fewest that read back as the same
 * float, or as many as the caller wants. Any thread; independent of the locale; errno is kept.
 */
#ifndef GBX_TEXT_DECIMAL_H
#define GBX_TEXT_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* d.ddd * 10^exponent, where `digits` is all of the `count` digits as one integer. */
typedef struct gbx_decimal {
    uint64_t digits;
    int count;
    int exponent;
} gbx_decimal;

/* A finite float above zero: fraction * 2^exponent; the next float above it has fraction + 1. */
typedef struct gbx_binary {
    uint64_t fraction;
    int exponent;
    bool is_below_near; /* the next float below is half as far away: usually a power of two */
    bool is_f64;        /* else it has the range of float32, or less, and 24 bits or fewer */
} gbx_binary;

/* `bits` are those of a finite float above zero. */
gbx_binary gbx_binary_of_f32(uint32_t bits);
gbx_binary gbx_binary_of_f64(uint64_t bits);

/* The decimal with the fewest digits that reads back as the float; of several, the nearest; on a
 * tie, the even one. Takes 0.05 us, and up to 3 us far from 1. */
gbx_decimal gbx_decimal_shortest(const gbx_binary *value);

/*
 * The decimal of `count` digits (1 to 17) nearest to the value, ties to the even digit. Where the
 * next float below is half as far away, the nearest decimal may lie too low to read back while the
 * next one up does: then it is that one.
 */
gbx_decimal gbx_decimal_round(const gbx_binary *value, int count);

/* How many digits an integer has; 1 for 0. */
int gbx_digits_count(uint64_t number);

/* Writes an integer backwards, its last digit before `end`, at most 20 of them; returns the first.
 */
char *gbx_digits_before(char *end, uint64_t number);

#endif
