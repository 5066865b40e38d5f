#include "analysis/array_text_integer.h"

#include <string.h>

#include <glassbox/tensor.h>

gbx_integer gbx_integer_of(uint32_t dtype, uint64_t bits) {
    const unsigned width = gbx_dtype_bits(dtype);
    const uint64_t mask = UINT64_MAX >> (64 - width);
    gbx_integer result = {.magnitude = bits & mask};
    result.is_negative = gbx_dtype_is_signed(dtype) && result.magnitude >> (width - 1) != 0;
    if (result.is_negative)
        result.magnitude = -result.magnitude & mask;
    return result;
}

char *gbx_digits_write(uint64_t digits, char *end) {
    do {
        *--end = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits != 0);
    return end;
}

size_t gbx_integer_format(gbx_integer integer, char out_text[GBX_INTEGER_TEXT_BYTES]) {
    char text[GBX_INTEGER_TEXT_BYTES];
    char *end = text + sizeof text;
    char *start = gbx_digits_write(integer.magnitude, end);
    if (integer.is_negative)
        *--start = '-';
    const size_t length = (size_t)(end - start);
    memcpy(out_text, start, length);
    out_text[length] = '\0';
    return length;
}
