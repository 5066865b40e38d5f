/*
 * The shortest decimal text that reads back as the same float. Of several texts of that length, the
 * nearest to the value; formatted like Python's repr(float): "1.0", "0.1", "1e+300", "5e-324",
 * "-0.0". Finite values give valid JSON numbers; the rest gives "nan" (of any sign), "inf" and
 * "-inf", which the caller must quote in JSON.
 */
#ifndef GBX_TEXT_FLOAT_TEXT_H
#define GBX_TEXT_FLOAT_TEXT_H

#include <stddef.h>

#define GBX_FLOAT_TEXT_BYTES 32 /* the longest text, "-1.2345678901234567e-308", and the end */

/*
 * Both return the length without the terminating zero. Any thread; the decimal point is a point
 * in every locale; errno is kept. Takes 0.05 us, and up to 3 us far from 1.
 */
size_t gbx_f64_format(double value, char out_text[GBX_FLOAT_TEXT_BYTES]);

/* Shortest for a reader of float32: 0.1f gives "0.1", not the "0.10000000149011612" of float64. */
size_t gbx_f32_format(float value, char out_text[GBX_FLOAT_TEXT_BYTES]);

#endif
