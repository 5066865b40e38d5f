/*
 * Values as text. Arrays are laid out as numpy prints them: brackets, aligned columns, and, above
 * 1000 elements, the edges of each dimension with an ellipsis between.
 */
#ifndef GBX_ANALYSIS_ARRAY_TEXT_H
#define GBX_ANALYSIS_ARRAY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/elements.h"
#include "base/status.h"

enum { GBX_ELEMENT_TEXT_BYTES = 40 };

/*
 * One element by its raw bits, as in the manifest: a float as Python's repr prints it, with the
 * fewest digits that read back as the same float64 or, for all narrower dtypes, the same float32;
 * "nan", "inf", "-inf"; "True" and "False" for bool. Returns its length.
 */
size_t gbx_element_format(uint32_t dtype, uint64_t bits, char out_text[GBX_ELEMENT_TEXT_BYTES]);

typedef struct gbx_array_text_options {
    bool is_full;      /* all elements, however many */
    size_t line_width; /* numpy's default is 75 */
} gbx_array_text_options;

/*
 * Prints what numpy.array2string returns for the array, and a newline. Missing elements of a
 * truncated tensor show as "?". Memory does not grow with the tensor: a first pass finds the
 * widths, a second one prints.
 */
GBX_MUST_USE gbx_status gbx_array_print(FILE *to, const gbx_elements *elements,
                                        const gbx_array_text_options *options);

#endif
