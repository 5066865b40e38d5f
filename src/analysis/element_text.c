#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/array_text.h"
#include "analysis/array_text_integer.h"
#include "base/float_bits.h"
#include "text/float_text.h"

_Static_assert(GBX_ELEMENT_TEXT_BYTES >= GBX_FLOAT_TEXT_BYTES, "every float fits");

static size_t copy_text(const char *text, char *out_text) {
    const size_t length = strlen(text);
    memcpy(out_text, text, length + 1);
    return length;
}

size_t gbx_element_format(uint32_t dtype, uint64_t bits, char out_text[GBX_ELEMENT_TEXT_BYTES]) {
    if (!gbx_dtype_is_valid(dtype))
        return copy_text("?", out_text);
    if (dtype == GBX_BOOL)
        return copy_text(gbx_element_is_true(bits) ? "True" : "False", out_text);
    if (dtype == GBX_FLOAT64)
        return gbx_f64_format(gbx_f64_of_bits(bits), out_text);
    if (gbx_dtype_is_float(dtype))
        return gbx_f32_format((float)gbx_dtype_to_f64(dtype, bits), out_text);
    return gbx_integer_format(gbx_integer_of(dtype, bits), out_text);
}
