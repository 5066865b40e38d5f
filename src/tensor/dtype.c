/*
 * Element types: names, widths, and the value of an element to and from float64.
 *
 * float16, bfloat16 and the two float8 go through one encoder and one decoder, driven by the format
 * in `dtypes`. float32 is left to the compiler's conversion, which is a single instruction, rounds
 * once, and gives infinity beyond the range (IEC 60559). The array functions hand a constant dtype
 * to an inlined element function, so that each dtype gets a loop of its own.
 */
#include <math.h>
#include <strings.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are stored little-endian");

#define ALWAYS_INLINE inline __attribute__((always_inline))

#define F64_FRACTION_BITS 52
#define F64_BIAS 1023
#define F64_LEADING_ONE (UINT64_C(1) << F64_FRACTION_BITS)
#define F64_SIGN (UINT64_C(1) << 63)
#define F64_INFINITY (UINT64_C(0x7ff) << F64_FRACTION_BITS)
#define F64_QUIET (UINT64_C(1) << (F64_FRACTION_BITS - 1))

/* A sign bit, then these. Without infinity the top exponent is one more range of numbers, whose
 * last code is NaN. */
typedef struct float_format {
    uint8_t exponent_bits;
    uint8_t fraction_bits;
    uint8_t bias;
    bool has_infinity;
} float_format;

typedef enum dtype_class { CLASS_NONE, CLASS_FLOAT, CLASS_SIGNED, CLASS_UNSIGNED } dtype_class;

typedef struct dtype_info {
    const char *name;
    uint8_t bits;
    uint8_t class;       /* dtype_class */
    float_format format; /* of the floats narrower than float32 */
} dtype_info;

static const dtype_info dtypes[GBX_DTYPE_COUNT] = {
    [GBX_DTYPE_NONE] = {"invalid", 0, CLASS_NONE, {0}},
    [GBX_FLOAT32] = {"float32", 32, CLASS_FLOAT, {0}},
    [GBX_FLOAT16] = {"float16", 16, CLASS_FLOAT, {5, 10, 15, true}},
    [GBX_BFLOAT16] = {"bfloat16", 16, CLASS_FLOAT, {8, 7, 127, true}},
    [GBX_FLOAT64] = {"float64", 64, CLASS_FLOAT, {0}},
    [GBX_INT8] = {"int8", 8, CLASS_SIGNED, {0}},
    [GBX_UINT8] = {"uint8", 8, CLASS_UNSIGNED, {0}},
    [GBX_INT16] = {"int16", 16, CLASS_SIGNED, {0}},
    [GBX_UINT16] = {"uint16", 16, CLASS_UNSIGNED, {0}},
    [GBX_INT32] = {"int32", 32, CLASS_SIGNED, {0}},
    [GBX_UINT32] = {"uint32", 32, CLASS_UNSIGNED, {0}},
    [GBX_INT64] = {"int64", 64, CLASS_SIGNED, {0}},
    [GBX_UINT64] = {"uint64", 64, CLASS_UNSIGNED, {0}},
    [GBX_BOOL] = {"bool", 8, CLASS_UNSIGNED, {0}},
    [GBX_FLOAT8_E4M3] = {"float8_e4m3", 8, CLASS_FLOAT, {4, 3, 7, false}},
    [GBX_FLOAT8_E5M2] = {"float8_e5m2", 8, CLASS_FLOAT, {5, 2, 15, true}},
    [GBX_INT4] = {"int4", 4, CLASS_SIGNED, {0}},
};

/*
 * Further names, as numpy, torch, ONNX, safetensors, MLIR and C have them. A number counts bits:
 * numpy's codes, which count bytes ("i8" is its int64), are not known here. Nor are names that
 * tools disagree on ("int", "long", "byte", "fp8"), nor the "fnuz" forms, which are other formats.
 */
static const char *const aliases[GBX_DTYPE_COUNT] = {
    [GBX_DTYPE_NONE] = "",
    [GBX_FLOAT32] = "float fp32 f32 single float32_t",
    [GBX_FLOAT16] = "half fp16 f16 float16_t",
    [GBX_BFLOAT16] = "bf16 bfloat bfloat16_t",
    [GBX_FLOAT64] = "double fp64 f64 float64_t",
    [GBX_INT8] = "i8 s8 int8_t",
    [GBX_UINT8] = "u8 ui8 uint8_t",
    [GBX_INT16] = "i16 s16 int16_t",
    [GBX_UINT16] = "u16 ui16 uint16_t",
    [GBX_INT32] = "i32 s32 int32_t",
    [GBX_UINT32] = "u32 ui32 uint32_t",
    [GBX_INT64] = "i64 s64 int64_t",
    [GBX_UINT64] = "u64 ui64 uint64_t",
    [GBX_BOOL] = "bool_ bool8 boolean",
    [GBX_FLOAT8_E4M3] =
        ("float8_e4m3fn float8e4m3fn float8e4m3 fp8_e4m3fn fp8_e4m3 fp8e4m3fn fp8e4m3 "
         "f8_e4m3fn f8_e4m3 f8e4m3fn f8e4m3 e4m3fn e4m3"),
    [GBX_FLOAT8_E5M2] = "float8e5m2 fp8_e5m2 fp8e5m2 f8_e5m2 f8e5m2 e5m2",
    [GBX_INT4] = "i4 s4 int4_t",
};

static ALWAYS_INLINE const dtype_info *info_of(uint32_t dtype) {
    return &dtypes[dtype < GBX_DTYPE_COUNT ? dtype : GBX_DTYPE_NONE];
}

bool gbx_dtype_is_valid(uint32_t dtype) {
    return info_of(dtype)->class != CLASS_NONE;
}

const char *gbx_dtype_name(uint32_t dtype) {
    return info_of(dtype)->name;
}

uint32_t gbx_dtype_bits(uint32_t dtype) {
    return info_of(dtype)->bits;
}

bool gbx_dtype_is_float(uint32_t dtype) {
    return info_of(dtype)->class == CLASS_FLOAT;
}

bool gbx_dtype_is_signed(uint32_t dtype) {
    return info_of(dtype)->class == CLASS_FLOAT || info_of(dtype)->class == CLASS_SIGNED;
}

/* `words` are separated by spaces. */
static bool has_word(const char *words, const char *name) {
    const size_t length = strlen(name);
    for (const char *word = words; *word; word += strspn(word, " ")) {
        const size_t word_length = strcspn(word, " ");
        if (word_length == length && strncasecmp(word, name, length) == 0)
            return true;
        word += word_length;
    }
    return false;
}

gbx_dtype gbx_dtype_parse(const char *name) {
    if (!name)
        return GBX_DTYPE_NONE;
    for (uint32_t dtype = GBX_DTYPE_NONE + 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        if (strcasecmp(name, dtypes[dtype].name) == 0 || has_word(aliases[dtype], name))
            return (gbx_dtype)dtype;
    return GBX_DTYPE_NONE;
}

/* The first code, sign aside, of the top exponent: infinity in the formats that have it. */
static ALWAYS_INLINE uint64_t top_code(float_format f) {
    return ((UINT64_C(1) << f.exponent_bits) - 1) << f.fraction_bits;
}

static ALWAYS_INLINE uint64_t nan_code(float_format f) {
    const uint64_t quiet_bit = UINT64_C(1) << (f.fraction_bits - 1);
    return top_code(f) | (f.has_infinity ? quiet_bit : 2 * quiet_bit - 1);
}

/* What is beyond the range becomes: the code after the largest number, or the largest number. */
static ALWAYS_INLINE uint64_t overflow_code(float_format f) {
    return f.has_infinity ? top_code(f) : nan_code(f) - 1;
}

/*
 * Every number of these formats, their subnormals too, is a normal float64, so no step here meets a
 * float64 subnormal, which processors are slow at.
 */
static ALWAYS_INLINE double decode_float(float_format f, uint64_t code) {
    const unsigned sign_at = f.exponent_bits + f.fraction_bits;
    const uint64_t magnitude = code & ((UINT64_C(1) << sign_at) - 1);
    const uint64_t rebias = (uint64_t)(F64_BIAS - f.bias) << F64_FRACTION_BITS;
    const uint64_t smallest_normal = rebias + F64_LEADING_ONE;
    const uint64_t shifted = magnitude << (F64_FRACTION_BITS - f.fraction_bits);
    uint64_t bits = shifted + rebias;
    /* A subnormal has the smallest exponent and no leading one: give it one, then subtract it. */
    if (magnitude < UINT64_C(1) << f.fraction_bits)
        bits = gbx_f64_bits(gbx_f64_of_bits(shifted + smallest_normal) -
                            gbx_f64_of_bits(smallest_normal));
    if (magnitude > overflow_code(f))
        bits = shifted | F64_INFINITY | F64_QUIET;
    else if (f.has_infinity && magnitude == top_code(f))
        bits = F64_INFINITY;
    return gbx_f64_of_bits(bits | (code >> sign_at & 1) << 63);
}

/*
 * The fields are shifted to their place with the rounding added once, below the last bit kept: a
 * carry out of the fraction raises the exponent, and out of the largest number it is the overflow.
 */
static ALWAYS_INLINE uint64_t encode_float(float_format f, double value) {
    const uint64_t magnitude = gbx_f64_bits(value) & ~F64_SIGN;
    const uint64_t sign = gbx_f64_bits(value) >> 63 << (f.exponent_bits + f.fraction_bits);
    if (magnitude > F64_INFINITY)
        return sign | nan_code(f);
    const int exponent = (int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS + f.bias;
    int shift = F64_FRACTION_BITS - f.fraction_bits;
    uint64_t fields = magnitude - ((uint64_t)(F64_BIAS - f.bias) << F64_FRACTION_BITS);
    if (exponent <= 0) {
        /* A subnormal of the format, or less: the leading one is written out. From a shift of 54 on
         * all of it is less than half of the last bit, which covers zero and float64 subnormals. */
        fields = (magnitude & (F64_LEADING_ONE - 1)) | F64_LEADING_ONE;
        shift += 1 - exponent;
        shift = shift > F64_FRACTION_BITS + 2 ? F64_FRACTION_BITS + 2 : shift;
    }
    const uint64_t below_half = (UINT64_C(1) << (shift - 1)) - 1;
    const uint64_t is_odd = fields >> shift & 1;
    const uint64_t code = (fields + below_half + is_odd) >> shift;
    return sign | (code < overflow_code(f) ? code : overflow_code(f));
}

/* The comparisons come before the casts, which are undefined beyond the range. NaN fails both. */
static ALWAYS_INLINE int64_t encode_signed(unsigned width, double value) {
    const double end = (double)(UINT64_C(1) << (width - 1));
    const int64_t max = (int64_t)(UINT64_MAX >> (65 - width));
    const double rounded = rint(value);
    if (rounded >= end)
        return max;
    if (rounded < -end)
        return -max - 1;
    return isnan(rounded) ? 0 : (int64_t)rounded;
}

static ALWAYS_INLINE uint64_t encode_unsigned(unsigned width, double value) {
    const double end = 2.0 * (double)(UINT64_C(1) << (width - 1));
    const double rounded = rint(value);
    if (rounded >= end)
        return UINT64_MAX >> (64 - width);
    return rounded > 0.0 ? (uint64_t)rounded : 0;
}

static ALWAYS_INLINE int64_t decode_signed(unsigned width, uint64_t bits) {
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return (int64_t)(((bits & (sign | (sign - 1))) ^ sign) - sign);
}

static ALWAYS_INLINE uint64_t decode_unsigned(unsigned width, uint64_t bits) {
    return bits & (UINT64_MAX >> (64 - width));
}

/* A code that is no dtype has no values: NaN one way, 0 the other. */
static ALWAYS_INLINE double decode_element(uint32_t dtype, uint64_t bits) {
    const dtype_info info = *info_of(dtype);
    switch (info.class) {
    case CLASS_SIGNED:
        return (double)decode_signed(info.bits, bits);
    case CLASS_UNSIGNED:
        if (dtype == GBX_BOOL)
            return decode_unsigned(info.bits, bits) != 0 ? 1.0 : 0.0;
        return (double)decode_unsigned(info.bits, bits);
    case CLASS_FLOAT:
        if (dtype == GBX_FLOAT64)
            return gbx_f64_of_bits(bits);
        return dtype == GBX_FLOAT32 ? (double)gbx_f32_of_bits((uint32_t)bits)
                                    : decode_float(info.format, bits);
    default:
        return NAN;
    }
}

static ALWAYS_INLINE uint64_t encode_element(uint32_t dtype, double value) {
    const dtype_info info = *info_of(dtype);
    switch (info.class) {
    case CLASS_SIGNED:
        return decode_unsigned(info.bits, (uint64_t)encode_signed(info.bits, value));
    case CLASS_UNSIGNED:
        return dtype == GBX_BOOL ? value != 0.0 : encode_unsigned(info.bits, value);
    case CLASS_FLOAT:
        if (dtype == GBX_FLOAT64)
            return gbx_f64_bits(value) | (isnan(value) ? F64_QUIET : 0);
        return dtype == GBX_FLOAT32 ? gbx_f32_bits((float)value) : encode_float(info.format, value);
    default:
        return 0;
    }
}

double gbx_dtype_to_f64(uint32_t dtype, uint64_t bits) {
    return decode_element(dtype, bits);
}

uint64_t gbx_dtype_from_f64(uint32_t dtype, double value) {
    return encode_element(dtype, value);
}

/* Elements need not be aligned: a payload may start anywhere in a file. */
static ALWAYS_INLINE uint64_t load_bits(const unsigned char *element, size_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, element, bytes);
    return bits;
}

static ALWAYS_INLINE void decode_elements(uint32_t dtype, const unsigned char *elements,
                                          size_t count, double *out_values) {
    const size_t bytes = dtypes[dtype].bits / 8;
    for (size_t i = 0; i < count; ++i)
        out_values[i] = decode_element(dtype, load_bits(elements + i * bytes, bytes));
}

static ALWAYS_INLINE void encode_elements(uint32_t dtype, const double *values, size_t count,
                                          unsigned char *out_elements) {
    const size_t bytes = dtypes[dtype].bits / 8;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t bits = encode_element(dtype, values[i]);
        memcpy(out_elements + i * bytes, &bits, bytes);
    }
}

static void decode_int4s(const unsigned char *elements, size_t count, double *out_values) {
    for (size_t i = 0; i < count; ++i)
        out_values[i] = decode_element(GBX_INT4, (uint64_t)elements[i / 2] >> (i % 2 * 4));
}

/* An odd count leaves half a byte at the end: it is written as zero, so that equal values are equal
 * bytes. */
static void encode_int4s(const double *values, size_t count, unsigned char *out_elements) {
    for (size_t i = 0; i < count; i += 2) {
        const uint64_t low = encode_element(GBX_INT4, values[i]);
        const uint64_t high = i + 1 < count ? encode_element(GBX_INT4, values[i + 1]) : 0;
        out_elements[i / 2] = (unsigned char)(low | high << 4);
    }
}

/* Every dtype whose elements are whole bytes. */
#define FOR_EACH_BYTES_DTYPE(DO)                                                                   \
    DO(GBX_FLOAT32)                                                                                \
    DO(GBX_FLOAT16)                                                                                \
    DO(GBX_BFLOAT16)                                                                               \
    DO(GBX_FLOAT64)                                                                                \
    DO(GBX_INT8)                                                                                   \
    DO(GBX_UINT8)                                                                                  \
    DO(GBX_INT16)                                                                                  \
    DO(GBX_UINT16)                                                                                 \
    DO(GBX_INT32)                                                                                  \
    DO(GBX_UINT32)                                                                                 \
    DO(GBX_INT64)                                                                                  \
    DO(GBX_UINT64)                                                                                 \
    DO(GBX_BOOL)                                                                                   \
    DO(GBX_FLOAT8_E4M3)                                                                            \
    DO(GBX_FLOAT8_E5M2)

void gbx_dtype_array_to_f64(uint32_t dtype, const void *elements, size_t count,
                            double *out_values) {
    switch (dtype) {
#define DECODE_CASE(constant)                                                                      \
    case constant:                                                                                 \
        decode_elements(constant, elements, count, out_values);                                    \
        break;
        FOR_EACH_BYTES_DTYPE(DECODE_CASE)
    case GBX_INT4:
        decode_int4s(elements, count, out_values);
        break;
    default:
        decode_elements(GBX_DTYPE_NONE, elements, count, out_values);
    }
}

void gbx_dtype_array_from_f64(uint32_t dtype, const double *values, size_t count,
                              void *out_elements) {
    switch (dtype) {
#define ENCODE_CASE(constant)                                                                      \
    case constant:                                                                                 \
        encode_elements(constant, values, count, out_elements);                                    \
        break;
        FOR_EACH_BYTES_DTYPE(ENCODE_CASE)
    case GBX_INT4:
        encode_int4s(values, count, out_elements);
        break;
    default: /* no dtype, no bytes to write */
        break;
    }
}
