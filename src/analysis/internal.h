/* Shared by the files of src/analysis. */
#ifndef GBX_ANALYSIS_INTERNAL_H
#define GBX_ANALYSIS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* For qsort, of structs that begin with two numbers: ascending, the first number counts first. */
static inline int gbx_compare_pairs(const void *a, const void *b) {
    uint64_t left[2], right[2];
    memcpy(left, a, sizeof left);
    memcpy(right, b, sizeof right);
    const int which = left[0] == right[0];
    return (left[which] > right[which]) - (left[which] < right[which]);
}

/*
 * --- array_words.c: the format that all elements of an array share, chosen as numpy does. A first
 * pass notes every shown element, then each is written with the same width and number of digits.
 * ---
 */

enum {
    GBX_ARRAY_PLACES_MAX = 8, /* numpy's precision: digits after the point */
    GBX_ARRAY_WORD_BYTES = 48 /* the widest word has 20 characters */
};

/* The element with the largest magnitude among those of one sign. */
typedef struct gbx_farthest {
    bool is_any;
    double value; /* magnitude */
    uint64_t bits;
} gbx_farthest;

typedef struct gbx_array_format {
    uint32_t dtype;
    bool is_float;
    bool is_scalar; /* an array without dimensions: nothing to align with */

    /* Noted for floats; places are digits after the point, in either layout. */
    bool has_other; /* NaN or an infinity */
    bool has_negative_infinity;
    gbx_farthest farthest[2]; /* finite elements: positive, negative */
    double largest;           /* magnitudes of finite elements other than zero */
    double smallest;
    uint64_t largest_bits;
    uint64_t smallest_bits;
    bool is_scientific; /* set as soon as an element needs it */
    int fixed_places;
    int scientific_places;

    uint64_t longest[2]; /* noted for integers, the largest magnitudes: positive, negative */

    /* Decided at the end. */
    int exponent_digits;
    int left;  /* characters before the point of a float */
    int right; /* characters after it, with the exponent */
    int width; /* of a word */
} gbx_array_format;

void gbx_array_format_begin(gbx_array_format *format, uint32_t dtype, bool is_scalar);
void gbx_array_format_note(gbx_array_format *format, uint64_t bits);
void gbx_array_format_end(gbx_array_format *format);

/* Both return the length of the word, which is not zero terminated. */
size_t gbx_array_format_write(const gbx_array_format *format, uint64_t bits,
                              char out_word[GBX_ARRAY_WORD_BYTES]);
size_t gbx_array_format_write_missing(const gbx_array_format *format,
                                      char out_word[GBX_ARRAY_WORD_BYTES]);

#endif
