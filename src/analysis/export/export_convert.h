/* Elements of one dtype as elements of another. */
#ifndef GBX_ANALYSIS_EXPORT_EXPORT_CONVERT_H
#define GBX_ANALYSIS_EXPORT_EXPORT_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GBX_EXPORT_TARGETS "float16, float32, float64, int8 to int64, uint8 to uint64 and bool"

/* Whether elements can be converted to it: the dtypes that numpy has. */
bool gbx_export_is_target(uint32_t dtype);

/*
 * Converts raw elements in place, each rounded once: to floats to nearest, ties to even, and beyond
 * the range to infinity; to integers likewise, and beyond the range to the nearest that there is;
 * NaN to an integer is 0; to bool everything but zero is true. Integers go to integers without a
 * float between them.
 */
void gbx_export_convert(uint32_t from, uint32_t to, uint64_t *bits, size_t count);

#endif
