/* The integers of all dtypes as text. */
#ifndef GBX_ANALYSIS_ARRAY_TEXT_INTEGER_H
#define GBX_ANALYSIS_ARRAY_TEXT_INTEGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GBX_INTEGER_TEXT_BYTES = 24 };

typedef struct gbx_integer {
    bool is_negative;
    uint64_t magnitude;
} gbx_integer;

/* `bits` is an element of an integer dtype or of bool. */
gbx_integer gbx_integer_of(uint32_t dtype, uint64_t bits);

/* Returns the length. */
size_t gbx_integer_format(gbx_integer integer, char out_text[GBX_INTEGER_TEXT_BYTES]);

/* Writes from right to left, the last digit before `end`, up to 20 of them; returns the first. */
char *gbx_digits_write(uint64_t digits, char *end);

static inline bool gbx_element_is_true(uint64_t bits) {
    return (bits & 0xff) != 0;
}

#endif
