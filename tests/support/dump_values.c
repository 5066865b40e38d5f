/* Values of elements by definition, for dump_expect.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump_expect.h"

typedef struct dtype_facts {
    const char *name;
    uint8_t bits;
    uint8_t exponent_bits; /* of a float */
    bool is_float;
    bool is_signed;
} dtype_facts;

static const dtype_facts dtypes[GBX_DTYPE_COUNT] = {
    [GBX_DTYPE_NONE] = {"unknown", 64, 0, false, false},
    [GBX_FLOAT32] = {"float32", 32, 8, true, true},
    [GBX_FLOAT16] = {"float16", 16, 5, true, true},
    [GBX_BFLOAT16] = {"bfloat16", 16, 8, true, true},
    [GBX_FLOAT64] = {"float64", 64, 11, true, true},
    [GBX_INT8] = {"int8", 8, 0, false, true},
    [GBX_UINT8] = {"uint8", 8, 0, false, false},
    [GBX_INT16] = {"int16", 16, 0, false, true},
    [GBX_UINT16] = {"uint16", 16, 0, false, false},
    [GBX_INT32] = {"int32", 32, 0, false, true},
    [GBX_UINT32] = {"uint32", 32, 0, false, false},
    [GBX_INT64] = {"int64", 64, 0, false, true},
    [GBX_UINT64] = {"uint64", 64, 0, false, false},
    [GBX_BOOL] = {"bool", 8, 0, false, false},
    [GBX_FLOAT8_E4M3] = {"float8_e4m3", 8, 4, true, true},
    [GBX_FLOAT8_E5M2] = {"float8_e5m2", 8, 5, true, true},
    [GBX_INT4] = {"int4", 4, 0, false, true},
    [GBX_FLOAT4_E2M1] = {"float4_e2m1", 4, 2, true, true},
    [GBX_FLOAT8_E8M0] = {"float8_e8m0", 8, 8, true, false},
};

uint32_t dump_element_bits(uint32_t dtype) {
    return dtypes[dtype].bits;
}

const char *dump_dtype_name(uint32_t dtype) {
    return dtypes[dtype].name;
}

/* --- views --- */

static uint64_t load_element(const gbx_tensor *tensor, int64_t element) {
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)tensor->data;
    uint32_t bits = dump_element_bits(tensor->dtype);
    uint64_t value = 0;
    if (bits == 4)
        return (uint64_t)bytes[element >> 1] >> (element & 1) * 4 & 15u;
    memcpy(&value, bytes + element * (int64_t)(bits / 8), bits / 8);
    return value;
}

/* Where the element with a row-major number is. */
static int64_t place_of(const gbx_tensor *tensor, int64_t number) {
    int64_t at = tensor->start_offset;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        at += number % tensor->shape[d] * tensor->strides[d];
        number /= tensor->shape[d];
    }
    return at;
}

static void gather_row(const gbx_tensor *tensor, int64_t first, int64_t length, uint8_t *row) {
    uint32_t bits = dump_element_bits(tensor->dtype);
    int64_t at = place_of(tensor, first);
    int64_t step = tensor->ndims ? tensor->strides[tensor->ndims - 1] : 0;
    for (int64_t i = 0; i < length; ++i, at += step) {
        uint64_t value = load_element(tensor, at);
        if (bits == 4)
            row[i / 2] |= (uint8_t)(value << (i & 1) * 4);
        else
            memcpy(row + i * (int64_t)(bits / 8), &value, bits / 8);
    }
}

uint8_t *dump_gather(const gbx_tensor *tensor, size_t *out_bytes) {
    int64_t count = gbx_tensor_numel(tensor);
    int64_t length = tensor->ndims ? tensor->shape[tensor->ndims - 1] : 1;
    size_t row_bytes = ((size_t)length * dump_element_bits(tensor->dtype) + 7) / 8;
    size_t rows = count ? (size_t)(count / length) : 0;
    uint8_t *payload = calloc(rows * row_bytes + 1, 1);
    assert_non_null(payload);
    for (size_t row = 0; row < rows; ++row)
        gather_row(tensor, (int64_t)row * length, length, payload + row * row_bytes);
    *out_bytes = rows * row_bytes;
    return payload;
}

/* Elements without gaps; rows of 4-bit elements begin at a byte. */
bool dump_is_contiguous(const gbx_tensor *tensor) {
    int64_t distance = 1;
    if (gbx_tensor_numel(tensor) == 0)
        return true;
    if (dump_element_bits(tensor->dtype) == 4 && tensor->start_offset % 2)
        return false;
    for (uint32_t d = tensor->ndims; d-- > 0;) {
        if (tensor->shape[d] != 1 && tensor->strides[d] != distance)
            return false;
        distance *= tensor->shape[d];
        if (dump_element_bits(tensor->dtype) == 4)
            distance += distance % 2;
    }
    return true;
}

/* --- values --- */

/* The two dtypes of OCP MX: sixteen values, and powers of two. */
static double mx_value(uint32_t dtype, uint64_t bits) {
    static const double halves[] = {0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                                    -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};
    if (dtype == GBX_FLOAT4_E2M1)
        return halves[bits];
    return bits == 0xff ? NAN : ldexp(1.0, (int)bits - 127);
}

static double float_value(uint32_t dtype, uint64_t bits) {
    if (dtype == GBX_FLOAT4_E2M1 || dtype == GBX_FLOAT8_E8M0)
        return mx_value(dtype, bits);
    const dtype_facts *facts = &dtypes[dtype];
    int fraction_bits = facts->bits - 1 - facts->exponent_bits;
    int64_t exponent = (int64_t)(bits >> fraction_bits & ((1u << facts->exponent_bits) - 1));
    uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
    int64_t top = (1 << facts->exponent_bits) - 1, bias = top >> 1;
    double sign = bits >> (facts->bits - 1) & 1 ? -1.0 : 1.0;
    bool is_special = exponent == top && (dtype != GBX_FLOAT8_E4M3 || fraction == 7);
    if (is_special)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)fraction, (int)(1 - bias - fraction_bits));
    fraction |= UINT64_C(1) << fraction_bits;
    return sign * ldexp((double)fraction, (int)(exponent - bias - fraction_bits));
}

static int64_t signed_value(uint32_t dtype, uint64_t bits) {
    uint32_t unused = 64 - dtypes[dtype].bits;
    return (int64_t)(bits << unused) >> unused;
}

static uint64_t unsigned_value(uint32_t dtype, uint64_t bits) {
    uint32_t unused = 64 - dtypes[dtype].bits;
    return bits << unused >> unused;
}

double dump_value_of(uint32_t dtype, uint64_t bits) {
    if (dtypes[dtype].is_float)
        return float_value(dtype, unsigned_value(dtype, bits));
    if (dtype == GBX_BOOL)
        return unsigned_value(dtype, bits) != 0;
    return dtypes[dtype].is_signed ? (double)signed_value(dtype, bits)
                                   : (double)unsigned_value(dtype, bits);
}

/* No other value of the dtype is nearer. */
static bool reads_back(double read, uint32_t dtype, uint64_t bits) {
    double value = dump_value_of(dtype, bits);
    if (dtype == GBX_FLOAT64)
        return read == value && signbit(read) == signbit(value);
    if (dtype == GBX_FLOAT32)
        return (float)read == (float)value && signbit(read) == signbit(value);
    double up = dump_value_of(dtype, bits + 1), down = dump_value_of(dtype, bits - 1);
    double distance = fabs(read - value);
    return signbit(read) == signbit(value) && !(fabs(read - up) <= distance) &&
           (value == 0 || !(fabs(read - down) <= distance));
}

static bool float_is(const json_t *value, uint32_t dtype, uint64_t bits) {
    double expected = dump_value_of(dtype, bits);
    const char *text = json_string_value(value);
    if (isnan(expected))
        return text && strcmp(text, "nan") == 0;
    if (isinf(expected))
        return text && strcmp(text, expected < 0 ? "-inf" : "inf") == 0;
    return json_is_number(value) &&
           reads_back(json_number_value(value), dtype, unsigned_value(dtype, bits));
}

/* 64-bit integers are strings. */
static bool wide_is(const json_t *value, uint32_t dtype, uint64_t bits) {
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || *text == '\0' || *text == '+' || *text == ' ')
        return false;
    bool is_same = dtype == GBX_INT64 ? strtoll(text, &end, 10) == (int64_t)bits
                                      : *text != '-' && strtoull(text, &end, 10) == bits;
    return is_same && *end == '\0';
}

bool dump_value_is(const json_t *value, uint32_t dtype, uint64_t bits) {
    if (dtypes[dtype].is_float)
        return float_is(value, dtype, bits);
    if (dtypes[dtype].bits == 64)
        return wide_is(value, dtype, bits);
    if (dtype == GBX_BOOL)
        return json_is_boolean(value) && json_is_true(value) == (dump_value_of(dtype, bits) != 0);
    return json_is_integer(value) &&
           (double)json_integer_value(value) == dump_value_of(dtype, bits);
}
