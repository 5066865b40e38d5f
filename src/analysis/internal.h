/*
 * The format that all elements of an array share, as numpy chooses it: every shown element is noted
 * first, then each is written with the same width and the same number of digits.
 */
#ifndef GBX_ANALYSIS_INTERNAL_H
#define GBX_ANALYSIS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GBX_ARRAY_PLACES_MAX = 8, /* numpy's precision: digits after the point */
    GBX_ARRAY_WORD_BYTES = 48 /* the widest word has 20 characters */
};

/* Of the elements of one sign, the one of the largest magnitude. */
typedef struct gbx_farthest {
    bool is_any;
    double value; /* magnitude */
    uint64_t bits;
} gbx_farthest;

typedef struct gbx_array_format {
    uint32_t dtype;
    bool is_float;
    bool is_scalar; /* of an array without dimensions: nothing to align with */

    /* Noted of floats; places are digits after the point, in either layout. */
    bool has_other; /* NaN or an infinity */
    bool has_negative_infinity;
    gbx_farthest farthest[2]; /* finite ones: positive, negative */
    double largest;           /* magnitudes of the finite ones that are not zero */
    double smallest;
    uint64_t largest_bits;
    uint64_t smallest_bits;
    bool is_scientific; /* known as soon as an element asks for it */
    int fixed_places;
    int scientific_places;

    uint64_t longest[2]; /* noted of integers: the largest magnitudes: positive, negative */

    /* Decided at the end. */
    int exponent_digits;
    int left;  /* characters before the point of a float */
    int right; /* and after it, with the exponent */
    int width; /* of a word */
} gbx_array_format;

void gbx_array_format_begin(gbx_array_format *format, uint32_t dtype, bool is_scalar);
void gbx_array_format_note(gbx_array_format *format, uint64_t bits);
void gbx_array_format_end(gbx_array_format *format);

/* Both return the length of the word; no zero ends it. */
size_t gbx_array_format_write(const gbx_array_format *format, uint64_t bits,
                              char out_word[GBX_ARRAY_WORD_BYTES]);
size_t gbx_array_format_write_missing(const gbx_array_format *format,
                                      char out_word[GBX_ARRAY_WORD_BYTES]);

#endif
