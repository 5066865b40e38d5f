/*
 * Element types: names, widths, and the value of an element to and from float64.
 *
 * All floats narrower than float32 go through one encoder and one decoder, driven by the format in
 * the table. float32 is left to the compiler's conversion, which is a single instruction, rounds
 * once, and gives infinity beyond the range (IEC 60559). The array functions hand a constant dtype
 * to an inlined element function, so that each dtype gets a loop of its own.
 */
#include <math.h>
#include <strings.h>

#include <glassbox/tensor.h>

#include "base/float_bits.h"
#include "tensor/dtype_table.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are stored little-endian");

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Of the elements that share a byte. */
#define PACKED_BITS 4

#define F64_FRACTION_BITS 52
#define F64_BIAS 1023
#define F64_LEADING_ONE (UINT64_C(1) << F64_FRACTION_BITS)
#define F64_SIGN (UINT64_C(1) << 63)
#define F64_INFINITY (UINT64_C(0x7ff) << F64_FRACTION_BITS)
#define F64_QUIET (UINT64_C(1) << (F64_FRACTION_BITS - 1))

/* --- what a row has to be; dtype_test.c checks that its kernels expect its format --- */

#define BITS_OF(sign, exponent, fraction, bias, specials) ((sign) + (exponent) + (fraction))
#define CHECK_ROW(dtype, name, bits, class, format, stored_as, simpler, is_simpler, rtol, atol,    \
                  statistics, compare, aliases)                                                    \
    _Static_assert((bits) == 4 || ((bits) >= 8 && (bits) <= 64 && ((bits) & ((bits)-1)) == 0),     \
                   name);                                                                          \
    _Static_assert(sizeof(name) > 1 && sizeof(simpler) > 1 && sizeof(aliases) > 1, name);          \
    _Static_assert(BITS_OF format == (GBX_CLASS_##class == GBX_CLASS_FLOAT ? (bits) : 0), name);
GBX_DTYPES(CHECK_ROW)

/* --- names --- */

bool gbx_dtype_is_valid(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->class != GBX_CLASS_NONE;
}

const char *gbx_dtype_name(uint32_t dtype) {
    return dtype < GBX_DTYPE_COUNT ? gbx_dtype_table[dtype].name : "invalid";
}

uint32_t gbx_dtype_bits(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->bits;
}

bool gbx_dtype_is_packed(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->bits == PACKED_BITS;
}

bool gbx_dtype_is_float(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->class == GBX_CLASS_FLOAT;
}

bool gbx_dtype_is_signed(uint32_t dtype) {
    const gbx_dtype_info *info = gbx_dtype_info_of(dtype);
    return info->class == GBX_CLASS_SIGNED || info->format.sign_bits > 0;
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
        if (strcasecmp(name, gbx_dtype_table[dtype].name) == 0 ||
            has_word(gbx_dtype_table[dtype].aliases, name))
            return (gbx_dtype)dtype;
    return GBX_DTYPE_NONE;
}

bool gbx_dtype_read(const char *name, uint32_t *out_dtype) {
    *out_dtype = gbx_dtype_parse(name);
    return *out_dtype != GBX_DTYPE_NONE || strcasecmp(name, gbx_dtype_name(GBX_DTYPE_NONE)) == 0;
}

/* --- one element --- */

/*
 * Every number of these formats, their subnormals too, is a normal float64, so no step here meets a
 * float64 subnormal, which processors are slow at.
 */
static ALWAYS_INLINE double decode_float(gbx_float_format f, uint64_t code) {
    const gbx_float_codes codes = gbx_float_codes_of_format(f);
    const uint64_t magnitude = code & ((UINT64_C(1) << (f.exponent_bits + f.fraction_bits)) - 1);
    const uint64_t rebias = (uint64_t)(F64_BIAS - f.bias) << F64_FRACTION_BITS;
    const uint64_t smallest_normal = rebias + F64_LEADING_ONE;
    const uint64_t shifted = magnitude << (F64_FRACTION_BITS - f.fraction_bits);
    uint64_t bits = shifted + rebias;
    /* A subnormal has the smallest exponent and no leading one: give it one, then subtract it. */
    if (magnitude < codes.first_normal)
        bits = gbx_f64_bits(gbx_f64_of_bits(shifted + smallest_normal) -
                            gbx_f64_of_bits(smallest_normal));
    if (magnitude > codes.infinity)
        bits = shifted | F64_INFINITY | F64_QUIET;
    else if (magnitude > codes.last_finite)
        bits = F64_INFINITY;
    return gbx_f64_of_bits(bits | (code & codes.sign ? F64_SIGN : 0));
}

/*
 * The fields are shifted to their place with the rounding added once, below the last bit kept: a
 * carry out of the fraction raises the exponent, and out of the largest number it is the overflow.
 * Without a fraction the leading one is the last bit kept: it is odd, so that ties go up.
 */
static ALWAYS_INLINE uint64_t encode_float(gbx_float_format f, double value) {
    const gbx_float_codes codes = gbx_float_codes_of_format(f);
    const uint64_t magnitude = gbx_f64_bits(value) & ~F64_SIGN;
    const uint64_t sign = gbx_f64_bits(value) & F64_SIGN ? codes.sign : 0;
    if (magnitude > F64_INFINITY)
        return codes.nan == codes.last_finite ? codes.nan : sign | codes.nan;
    if (f.sign_bits == 0 && value < 0.0)
        return codes.nan;
    const int exponent = (int)(magnitude >> F64_FRACTION_BITS) - F64_BIAS + f.bias;
    int shift = F64_FRACTION_BITS - f.fraction_bits;
    uint64_t fields = magnitude - ((uint64_t)(F64_BIAS - f.bias) << F64_FRACTION_BITS);
    if (codes.first_normal == 0 && exponent < 0)
        return 0; /* the smallest number: there is no zero */
    if (codes.first_normal > 0 && exponent <= 0) {
        /* A subnormal of the format, or less: the leading one is written out. From a shift of 54 on
         * all of it is less than half of the last bit, which covers zero and float64 subnormals. */
        fields = (magnitude & (F64_LEADING_ONE - 1)) | F64_LEADING_ONE;
        shift += 1 - exponent;
        shift = shift > F64_FRACTION_BITS + 2 ? F64_FRACTION_BITS + 2 : shift;
    }
    const uint64_t below_half = (UINT64_C(1) << (shift - 1)) - 1;
    const uint64_t is_odd = f.fraction_bits == 0 ? 1 : fields >> shift & 1;
    const uint64_t code = (fields + below_half + is_odd) >> shift;
    return sign | (code < codes.infinity ? code : codes.infinity);
}

bool gbx_dtype_holds_f64(uint32_t dtype, double value) {
    const gbx_float_format format = gbx_dtype_info_of(dtype)->format;
    const gbx_float_codes codes = gbx_float_codes_of_format(format);
    if (isnan(value))
        return codes.nan > codes.infinity;
    if (isinf(value))
        return codes.infinity > codes.last_finite;
    if (format.sign_bits == 0 && value < gbx_dtype_to_f64(dtype, 0) / 2)
        return false;
    /* Half a step beyond the largest is where the next number would be nearer. */
    const double largest = gbx_dtype_to_f64(dtype, codes.last_finite);
    const double step = ldexp(1.0, ilogb(largest) - format.fraction_bits);
    const double beyond = fabs(value) - largest;
    return codes.infinity > codes.last_finite ? beyond < step / 2 : beyond <= step / 2;
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

/* What is not a dtype has no values: NaN one way, 0 the other. */
static ALWAYS_INLINE double decode_element(uint32_t dtype, uint64_t bits) {
    const gbx_dtype_info info = *gbx_dtype_info_of(dtype);
    switch ((gbx_dtype_class)info.class) {
    case GBX_CLASS_SIGNED:
        return (double)decode_signed(info.bits, bits);
    case GBX_CLASS_UNSIGNED:
        return (double)decode_unsigned(info.bits, bits);
    case GBX_CLASS_BOOL:
        return decode_unsigned(info.bits, bits) != 0 ? 1.0 : 0.0;
    case GBX_CLASS_FLOAT:
        if (dtype == GBX_FLOAT64)
            return gbx_f64_of_bits(bits);
        return dtype == GBX_FLOAT32 ? (double)gbx_f32_of_bits((uint32_t)bits)
                                    : decode_float(info.format, bits);
    case GBX_CLASS_NONE:
        break;
    }
    return NAN;
}

static ALWAYS_INLINE uint64_t encode_element(uint32_t dtype, double value) {
    const gbx_dtype_info info = *gbx_dtype_info_of(dtype);
    switch ((gbx_dtype_class)info.class) {
    case GBX_CLASS_SIGNED:
        return decode_unsigned(info.bits, (uint64_t)encode_signed(info.bits, value));
    case GBX_CLASS_UNSIGNED:
        return encode_unsigned(info.bits, value);
    case GBX_CLASS_BOOL:
        return value != 0.0;
    case GBX_CLASS_FLOAT:
        if (dtype == GBX_FLOAT64)
            return gbx_f64_bits(value) | (isnan(value) ? F64_QUIET : 0);
        return dtype == GBX_FLOAT32 ? gbx_f32_bits((float)value) : encode_float(info.format, value);
    case GBX_CLASS_NONE:
        break;
    }
    return 0;
}

double gbx_dtype_to_f64(uint32_t dtype, uint64_t bits) {
    return decode_element(dtype, bits);
}

uint64_t gbx_dtype_from_f64(uint32_t dtype, double value) {
    return encode_element(dtype, value);
}

/* --- arrays --- */

/* Elements need not be aligned: a payload may start anywhere in a file. */
static ALWAYS_INLINE uint64_t load_bits(const unsigned char *elements, size_t bits, size_t index) {
    uint64_t code = 0;
    if (bits == PACKED_BITS)
        return (uint64_t)elements[index / 2] >> (index % 2 * PACKED_BITS);
    memcpy(&code, elements + index * (bits / 8), bits / 8);
    return code;
}

static ALWAYS_INLINE void decode_elements(uint32_t dtype, const unsigned char *elements,
                                          size_t count, double *out_values) {
    for (size_t i = 0; i < count; ++i)
        out_values[i] = decode_element(dtype, load_bits(elements, gbx_dtype_table[dtype].bits, i));
}

/* An odd count leaves half a byte at the end: it is written as zero, so that equal values are equal
 * bytes. */
static ALWAYS_INLINE void encode_pairs(uint32_t dtype, const double *values, size_t count,
                                       unsigned char *out_elements) {
    for (size_t i = 0; i < count; i += 2) {
        const uint64_t low = encode_element(dtype, values[i]);
        const uint64_t high = i + 1 < count ? encode_element(dtype, values[i + 1]) : 0;
        out_elements[i / 2] = (unsigned char)(low | high << PACKED_BITS);
    }
}

static ALWAYS_INLINE void encode_elements(uint32_t dtype, const double *values, size_t count,
                                          unsigned char *out_elements) {
    const size_t bytes = gbx_dtype_table[dtype].bits / 8;
    if (gbx_dtype_table[dtype].bits == PACKED_BITS) {
        encode_pairs(dtype, values, count, out_elements);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        const uint64_t bits = encode_element(dtype, values[i]);
        memcpy(out_elements + i * bytes, &bits, bytes);
    }
}

void gbx_dtype_array_to_f64(uint32_t dtype, const void *elements, size_t count,
                            double *out_values) {
    switch (dtype) {
#define DECODE_CASE(constant, ...)                                                                 \
    case GBX_##constant:                                                                           \
        decode_elements(GBX_##constant, elements, count, out_values);                              \
        break;
        GBX_DTYPES(DECODE_CASE)
    default:
        decode_elements(GBX_DTYPE_NONE, elements, count, out_values);
    }
}

void gbx_dtype_array_from_f64(uint32_t dtype, const double *values, size_t count,
                              void *out_elements) {
    switch (dtype) {
#define ENCODE_CASE(constant, ...)                                                                 \
    case GBX_##constant:                                                                           \
        encode_elements(GBX_##constant, values, count, out_elements);                              \
        break;
        GBX_DTYPES(ENCODE_CASE)
    default: /* not a dtype: no bytes to write */
        break;
    }
}
