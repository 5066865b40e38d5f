/* clang-format off */
/*
 * All that is known of the element types, once.
 *
 * To add a dtype: a line in gbx_dtype (include/glassbox/kernel.h) with the next number, a row here,
 * a row in python/glassbox/dtypes.py. Nothing else names it: names, sizes, conversions, statistics,
 * comparison, .npy files, exports and the journal follow from its row. A row that is missing or not
 * complete does not compile.
 *
 *     dtype       GBX_<dtype>
 *     name        in dumps, options and messages
 *     bits        of an element: 4 (two a byte: gbx_dtype_is_packed), 8, 16, 32 or 64
 *     class       FLOAT, SIGNED, UNSIGNED or BOOL
 *     format      of a float (sign bits, exponent bits, fraction bits, bias, specials);
 *                 GBX_NO_FLOAT for others
 *     stored as   the dtype of numpy that files hold: itself, or an integer for the raw bits
 *     simpler     its name in that project's dumps, and whether that project's tools know the name
 *     rtol, atol  what outputs may be off by where nothing is said
 *     statistics  the kernel in statistics/ (gbx_statistics_kind)
 *     compare     the kernel in compare/ (gbx_compare_kind)
 *     aliases     further names, as numpy, torch, ml_dtypes, ONNX, safetensors, MLIR and C use
 *                 them. A number counts bits. Not listed: numpy's codes, which count bytes ("i8" is
 *                 its int64), names that tools disagree on ("int", "long", "byte", "fp8"), names of
 *                 other formats ("fnuz"), and "float4_e2m1fn_x2" and simpler's "FP4E2M1", whose
 *                 element is two values.
 */
/* clang-format on */
#ifndef GBX_TENSOR_DTYPE_TABLE_H
#define GBX_TENSOR_DTYPE_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

/* clang-format off */
#define GBX_NO_FLOAT (0, 0, 0, 0, NONE)
#define GBX_DTYPES(X)                                                                                           \
    X(FLOAT32, "float32", 32, FLOAT, (1, 8, 23, 127, IEEE), FLOAT32, "FLOAT32", true, 1e-5, 1e-6,               \
      FLOAT32, FLOAT32, "float fp32 f32 single float32_t")                                                      \
    X(FLOAT16, "float16", 16, FLOAT, (1, 5, 10, 15, IEEE), FLOAT16, "FLOAT16", true, 1e-3, 1e-4,                \
      FLOAT16, FLOAT16, "half fp16 f16 float16_t")                                                              \
    X(BFLOAT16, "bfloat16", 16, FLOAT, (1, 8, 7, 127, IEEE), UINT16, "BFLOAT16", true, 1e-2, 1e-3,              \
      BFLOAT16, BFLOAT16, "bf16 bfloat bfloat16_t")                                                             \
    X(FLOAT64, "float64", 64, FLOAT, (1, 11, 52, 1023, IEEE), FLOAT64, "FLOAT64", false, 1e-12, 1e-14,          \
      FLOAT64, WIDE, "double fp64 f64 float64_t")                                                               \
    X(INT8, "int8", 8, SIGNED, GBX_NO_FLOAT, INT8, "INT8", true, 0, 0, INTEGERS, BYTES, "i8 s8 int8_t")         \
    X(UINT8, "uint8", 8, UNSIGNED, GBX_NO_FLOAT, UINT8, "UINT8", true, 0, 0, INTEGERS, BYTES, "u8 ui8 uint8_t") \
    X(INT16, "int16", 16, SIGNED, GBX_NO_FLOAT, INT16, "INT16", true, 0, 0,                                     \
      INTEGERS, INTEGER16, "i16 s16 int16_t")                                                                   \
    X(UINT16, "uint16", 16, UNSIGNED, GBX_NO_FLOAT, UINT16, "UINT16", true, 0, 0,                               \
      INTEGERS, INTEGER16, "u16 ui16 uint16_t")                                                                 \
    X(INT32, "int32", 32, SIGNED, GBX_NO_FLOAT, INT32, "INT32", true, 0, 0, INTEGERS, WIDE, "i32 s32 int32_t")  \
    X(UINT32, "uint32", 32, UNSIGNED, GBX_NO_FLOAT, UINT32, "UINT32", true, 0, 0,                               \
      INTEGERS, WIDE, "u32 ui32 uint32_t")                                                                      \
    X(INT64, "int64", 64, SIGNED, GBX_NO_FLOAT, INT64, "INT64", true, 0, 0, INTEGERS, WIDE, "i64 s64 int64_t")  \
    X(UINT64, "uint64", 64, UNSIGNED, GBX_NO_FLOAT, UINT64, "UINT64", true, 0, 0,                               \
      INTEGERS, WIDE, "u64 ui64 uint64_t")                                                                      \
    X(BOOL, "bool", 8, BOOL, GBX_NO_FLOAT, BOOL, "BOOL", true, 0, 0, BOOLS, BYTES, "bool_ bool8 boolean")       \
    X(FLOAT8_E4M3, "float8_e4m3", 8, FLOAT, (1, 4, 3, 7, NAN_LAST), UINT8, "FP8E4M3FN", true, 0.125, 0.0625,    \
      FLOAT8, FLOAT8_E4M3,                                                                                      \
      "float8_e4m3fn float8e4m3fn float8e4m3 fp8_e4m3fn fp8_e4m3 fp8e4m3fn fp8e4m3 "                            \
      "f8_e4m3fn f8_e4m3 f8e4m3fn f8e4m3 e4m3fn e4m3")                                                          \
    X(FLOAT8_E5M2, "float8_e5m2", 8, FLOAT, (1, 5, 2, 15, IEEE), UINT8, "FP8E5M2", true, 0.125, 0.0625,         \
      FLOAT8, FLOAT8_E5M2, "float8e5m2 fp8_e5m2 fp8e5m2 f8_e5m2 f8e5m2 e5m2")                                   \
    X(INT4, "int4", 4, SIGNED, GBX_NO_FLOAT, UINT8, "INT4", false, 0, 0, INTEGERS, BYTES, "i4 s4 int4_t")       \
    X(FLOAT4_E2M1, "float4_e2m1", 4, FLOAT, (1, 2, 1, 1, FINITE), UINT8, "FLOAT4E2M1", false, 0.25, 0.25,       \
      CODES, PLAIN,                                                                                             \
      "float4_e2m1fn float4e2m1fn float4e2m1 fp4_e2m1fn fp4_e2m1 fp4e2m1fn "                                    \
      "f4_e2m1fn f4_e2m1 f4e2m1fn f4e2m1 e2m1fn e2m1")                                                          \
    X(FLOAT8_E8M0, "float8_e8m0", 8, FLOAT, (0, 8, 0, 127, SCALE), UINT8, "FP8E8M0", true, 0, 0,                \
      CODES, PLAIN,                                                                                             \
      "float8_e8m0fnu float8e8m0fnu float8e8m0 fp8_e8m0fnu fp8_e8m0 fp8e8m0fnu fp8e8m0 "                        \
      "f8_e8m0fnu f8_e8m0 f8e8m0fnu f8e8m0 e8m0fnu e8m0 ue8m0")
/* clang-format on */

typedef enum gbx_dtype_class {
    GBX_CLASS_NONE, /* of GBX_DTYPE_NONE */
    GBX_CLASS_FLOAT,
    GBX_CLASS_SIGNED,
    GBX_CLASS_UNSIGNED,
    GBX_CLASS_BOOL /* zero or not */
} gbx_dtype_class;

/* What the codes of a float stand for beside normal numbers. */
typedef enum gbx_float_specials {
    GBX_SPECIALS_NONE,     /* of dtypes that are not floats */
    GBX_SPECIALS_IEEE,     /* zero, subnormals; the top exponent: infinity, then NaNs */
    GBX_SPECIALS_NAN_LAST, /* zero, subnormals; no infinity; the last code is NaN ("fn") */
    GBX_SPECIALS_FINITE,   /* zero, subnormals; neither infinity nor NaN */
    GBX_SPECIALS_SCALE     /* neither zero, subnormals nor infinity; the last code is NaN */
} gbx_float_specials;

typedef struct gbx_float_format {
    uint8_t sign_bits; /* 0 or 1 */
    uint8_t exponent_bits;
    uint8_t fraction_bits;
    uint16_t bias;
    uint8_t specials; /* gbx_float_specials */
} gbx_float_format;

typedef enum gbx_statistics_kind {
    GBX_STATISTICS_FLOAT32,
    GBX_STATISTICS_FLOAT16,
    GBX_STATISTICS_BFLOAT16,
    GBX_STATISTICS_FLOAT64,
    GBX_STATISTICS_FLOAT8,   /* with a sign and 2 or 3 bits of fraction */
    GBX_STATISTICS_INTEGERS, /* of any width */
    GBX_STATISTICS_BOOLS,
    GBX_STATISTICS_CODES /* any float of at most 8 bits, by a table of its values */
} gbx_statistics_kind;

typedef enum gbx_compare_kind {
    GBX_COMPARE_FLOAT32, /* vectors of float32, the elements converted to it */
    GBX_COMPARE_FLOAT16,
    GBX_COMPARE_BFLOAT16,
    GBX_COMPARE_FLOAT8_E4M3,
    GBX_COMPARE_FLOAT8_E5M2,
    GBX_COMPARE_INTEGER16,
    GBX_COMPARE_WIDE,  /* vectors of float64: 32 and 64 bits */
    GBX_COMPARE_BYTES, /* vectors of int16: integers of at most 8 bits, bool */
    GBX_COMPARE_PLAIN  /* any dtype, one element after the other */
} gbx_compare_kind;

typedef struct gbx_dtype_info {
    const char *name;
    const char *aliases; /* separated by blanks */
    const char *simpler;
    double rtol;
    double atol;
    gbx_float_format format;
    uint8_t bits;
    uint8_t class;     /* gbx_dtype_class */
    uint8_t stored_as; /* gbx_dtype */
    bool is_simpler;
    uint8_t statistics; /* gbx_statistics_kind */
    uint8_t compare;    /* gbx_compare_kind */
} gbx_dtype_info;

#define GBX_FORMAT_OF(sign, exponent, fraction, bias, specials)                                    \
    { sign, exponent, fraction, bias, GBX_SPECIALS_##specials }
#define GBX_DTYPE_INFO(dtype, name, bits, class, format, stored_as, simpler, is_simpler, rtol,     \
                       atol, statistics, compare, aliases)                                         \
    [GBX_##dtype] = {name,                                                                         \
                     aliases,                                                                      \
                     simpler,                                                                      \
                     rtol,                                                                         \
                     atol,                                                                         \
                     GBX_FORMAT_OF format,                                                         \
                     bits,                                                                         \
                     GBX_CLASS_##class,                                                            \
                     GBX_##stored_as,                                                              \
                     is_simpler,                                                                   \
                     GBX_STATISTICS_##statistics,                                                  \
                     GBX_COMPARE_##compare},

/* By dtype. In a header, so that what is read of a constant dtype is a constant. */
static const gbx_dtype_info gbx_dtype_table[GBX_DTYPE_COUNT] = {
    [GBX_DTYPE_NONE] = {.name = "unknown", .aliases = ""}, GBX_DTYPES(GBX_DTYPE_INFO)};

#define GBX_DTYPE_ROW(dtype, ...) GBX_ROW_##dtype,
enum { GBX_DTYPES(GBX_DTYPE_ROW) GBX_DTYPE_ROW_COUNT };
static_assert(GBX_DTYPE_ROW_COUNT + 1 == GBX_DTYPE_COUNT,
              "every dtype of <glassbox/kernel.h> has a row in GBX_DTYPES");

/* "float32, float16, ..." for messages */
#define GBX_LISTED_NAME(dtype, name, ...) ", " name
#define GBX_DTYPE_NAMES (&(GBX_DTYPES(GBX_LISTED_NAME))[2])

/* Of any number: that of GBX_DTYPE_NONE where it is not a dtype. */
static inline __attribute__((always_inline)) const gbx_dtype_info *
gbx_dtype_info_of(uint32_t dtype) {
    return &gbx_dtype_table[dtype < GBX_DTYPE_COUNT ? dtype : GBX_DTYPE_NONE];
}

/* The dtype that a user or a manifest names, "unknown" for GBX_DTYPE_NONE; false for other names.
 */
bool gbx_dtype_read(const char *name, uint32_t *out_dtype);

/* The special codes of a float, without its sign. */
typedef struct gbx_float_codes {
    uint64_t sign;         /* the bit; 0 where there is none */
    uint64_t first_normal; /* zero and subnormals are below */
    uint64_t last_finite;
    uint64_t infinity; /* last_finite where there is none; NaNs are above */
    uint64_t nan;      /* the quiet one; last_finite where there is none */
} gbx_float_codes;

static inline __attribute__((always_inline)) gbx_float_codes
gbx_float_codes_of_format(gbx_float_format f) {
    const unsigned width = f.exponent_bits + f.fraction_bits;
    const uint64_t last = (UINT64_C(1) << width) - 1;
    const uint64_t leading = UINT64_C(1) << f.fraction_bits;
    gbx_float_codes codes = {.sign = (uint64_t)f.sign_bits << width,
                             .first_normal = f.specials == GBX_SPECIALS_SCALE ? 0 : leading,
                             .last_finite = last,
                             .infinity = last,
                             .nan = last};
    if (f.specials == GBX_SPECIALS_IEEE) {
        codes.infinity = last - leading + 1;
        codes.last_finite = codes.infinity - 1;
        codes.nan = codes.infinity | leading / 2;
    } else if (f.specials != GBX_SPECIALS_FINITE) {
        codes.last_finite = codes.infinity = last - 1;
    }
    return codes;
}

static inline __attribute__((always_inline)) gbx_float_codes gbx_float_codes_of(uint32_t dtype) {
    return gbx_float_codes_of_format(gbx_dtype_table[dtype].format);
}

/* Whether gbx_dtype_from_f64 only rounds a value to a float dtype: it is not beyond the range, has
 * a sign that the dtype has, and NaN and infinity only where the dtype has them. */
bool gbx_dtype_holds_f64(uint32_t dtype, double value);

#endif
