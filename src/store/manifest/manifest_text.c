#include "store/manifest/manifest_text.h"

#include <assert.h>
#include <math.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/dtype_table.h"
#include "text/float_text.h"

static_assert((int)GBX_VALUE_TEXT_BYTES >= (int)GBX_FLOAT_TEXT_BYTES, "every float fits");

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

/* Counts digits, four per step: most numbers are short. */
static size_t count_digits(uint64_t value) {
    size_t count = 1;
    for (; value >= 10000; value /= 10000)
        count += 4;
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

char *gbx_put_u64(char *at, uint64_t value) {
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    char *end = at + count_digits(value);
    char *next = end;
    for (; value >= 100; value /= 100) {
        next -= 2;
        memcpy(next, pairs + value % 100 * 2, 2);
    }
    if (value >= 10)
        memcpy(next - 2, pairs + value * 2, 2);
    else
        next[-1] = (char)('0' + value);
    return end;
}

char *gbx_put_i64(char *at, int64_t value) {
    if (value >= 0)
        return gbx_put_u64(at, (uint64_t)value);
    *at++ = '-';
    return gbx_put_u64(at, 0 - (uint64_t)value);
}

/* Eight digits at a time: a nibble to each byte, then to its character. */
static uint64_t hex_digits(uint32_t value) {
    uint64_t spread = value;
    spread = (spread << 16 | spread) & UINT64_C(0x0000ffff0000ffff);
    spread = (spread << 8 | spread) & UINT64_C(0x00ff00ff00ff00ff);
    spread = (spread << 4 | spread) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t is_letter =
        (spread + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    uint64_t characters = spread + UINT64_C(0x3030303030303030) + is_letter * ('a' - '0' - 10);
    return __builtin_bswap64(characters);
}

char *gbx_put_hex_digits(char *at, uint64_t value) {
    uint64_t high = hex_digits((uint32_t)(value >> 32));
    uint64_t low = hex_digits((uint32_t)value);
    memcpy(at, &high, 8);
    memcpy(at + 8, &low, 8);
    return at + 16;
}

char *gbx_put_hex(char *at, uint64_t value) {
    at = gbx_put_hex_digits(GBX_PUT(at, "\"0x"), value);
    *at++ = '"';
    return at;
}

char *gbx_put_numbers(char *at, const int64_t *numbers, uint32_t count) {
    *at++ = '[';
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0)
            *at++ = ',';
        at = gbx_put_i64(at, numbers[i]);
    }
    *at++ = ']';
    return at;
}

/* --- floats --- */

static char *put_quoted(char *at, const char *text, size_t size) {
    *at++ = '"';
    memcpy(at, text, size);
    at[size] = '"';
    return at + size + 1;
}

char *gbx_put_f64(char *at, double value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    if (isfinite(value))
        return at + gbx_f64_format(value, at);
    return put_quoted(at, text, gbx_f64_format(value, text));
}

char *gbx_put_f32(char *at, float value) {
    char text[GBX_FLOAT_TEXT_BYTES];
    if (isfinite(value))
        return at + gbx_f32_format(value, at);
    return put_quoted(at, text, gbx_f32_format(value, text));
}

/* --- values --- */

/* The low bits of a word, with the sign of their highest. */
static int64_t sign_extend(uint64_t bits, uint32_t width) {
    unsigned shift = 64 - width;
    return (int64_t)(bits << shift) >> shift;
}

char *gbx_put_value(char *at, uint32_t dtype, uint64_t bits) {
    const gbx_dtype_info *info = gbx_dtype_info_of(dtype);
    if (dtype == GBX_FLOAT32)
        return gbx_put_f32(at, gbx_f32_of_bits((uint32_t)bits));
    if (info->bits == 64)
        return gbx_put_extreme(at, dtype, bits);
    uint64_t low = bits & ((UINT64_C(1) << info->bits) - 1);
    if (info->class == GBX_CLASS_FLOAT)
        return gbx_put_f32(at, (float)gbx_dtype_to_f64(dtype, low));
    bool is_signed = info->class == GBX_CLASS_SIGNED;
    return gbx_put_extreme(at, dtype, is_signed ? (uint64_t)sign_extend(bits, info->bits) : low);
}

char *gbx_put_extreme(char *at, uint32_t dtype, uint64_t bits) {
    const gbx_dtype_info *info = gbx_dtype_info_of(dtype);
    if (dtype == GBX_FLOAT64)
        return gbx_put_f64(at, gbx_f64_of_bits(bits));
    if (info->class == GBX_CLASS_FLOAT)
        return gbx_put_f32(at, (float)gbx_f64_of_bits(bits));
    if (info->class == GBX_CLASS_BOOL)
        return gbx_put_bool(at, bits != 0);
    if (info->bits == 64)
        *at++ = '"';
    at = info->class == GBX_CLASS_SIGNED ? gbx_put_i64(at, (int64_t)bits) : gbx_put_u64(at, bits);
    if (info->bits == 64)
        *at++ = '"';
    return at;
}
