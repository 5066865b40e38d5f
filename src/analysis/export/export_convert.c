#include "analysis/export/export_convert.h"

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/npy.h"

bool gbx_export_is_target(uint32_t dtype) {
    return gbx_dtype_is_valid(dtype) && !gbx_npy_is_raw(dtype);
}

static bool is_wide_integer(uint32_t dtype) {
    return dtype == GBX_INT64 || dtype == GBX_UINT64;
}

/* Of a 64-bit integer: its sign apart, so that both kinds fit. */
typedef struct wide {
    bool is_negative;
    uint64_t magnitude;
} wide;

static wide wide_of(uint32_t dtype, uint64_t bits) {
    bool is_negative = dtype == GBX_INT64 && bits >> 63;
    return (wide){is_negative, is_negative ? -bits : bits};
}

/* The cast rounds once. What is beyond 2^53 is beyond the range of narrower floats. */
static uint64_t wide_to_float(wide value, uint32_t to) {
    if (to == GBX_FLOAT32) {
        float number = (float)value.magnitude;
        return gbx_f32_bits(value.is_negative ? -number : number);
    }
    double number = (double)value.magnitude;
    return gbx_dtype_from_f64(to, value.is_negative ? -number : number);
}

static uint64_t wide_to_integer(wide value, uint32_t to) {
    uint32_t bits = gbx_dtype_bits(to);
    bool is_signed = gbx_dtype_is_signed(to);
    uint64_t largest = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
    if (value.is_negative && !is_signed)
        return 0;
    if (value.is_negative)
        largest += 1;
    uint64_t magnitude = value.magnitude < largest ? value.magnitude : largest;
    return (value.is_negative ? -magnitude : magnitude) & UINT64_MAX >> (64 - bits);
}

static uint64_t convert_wide(wide value, uint32_t to) {
    if (to == GBX_BOOL)
        return value.magnitude != 0;
    return gbx_dtype_is_float(to) ? wide_to_float(value, to) : wide_to_integer(value, to);
}

void gbx_export_convert(uint32_t from, uint32_t to, uint64_t *bits, size_t count) {
    if (from == to)
        return;
    if (is_wide_integer(from)) {
        for (size_t i = 0; i < count; ++i)
            bits[i] = convert_wide(wide_of(from, bits[i]), to);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        bits[i] = gbx_dtype_from_f64(to, gbx_dtype_to_f64(from, bits[i]));
}
