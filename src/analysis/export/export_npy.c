/* The elements of an entry, converted on request and written as a numpy array. */
#include <string.h>

#include <glassbox/tensor.h>

#include "analysis/export/export.h"
#include "analysis/export/internal.h"
#include "base/numbers.h"
#include "tensor/npy.h"

enum { PIECE_ELEMENTS = 8192 };

/* --- converting --- */

bool gbx_export_is_target(uint32_t dtype) {
    return gbx_dtype_is_valid(dtype) && !gbx_npy_is_raw(dtype);
}

/* A 64-bit integer, signed or unsigned. */
typedef struct wide {
    bool is_negative;
    uint64_t magnitude;
} wide;

static wide wide_of(uint32_t dtype, uint64_t bits) {
    bool is_negative = dtype == GBX_INT64 && bits >> 63;
    return (wide){is_negative, is_negative ? -bits : bits};
}

/* The cast rounds only once. Narrower floats cannot hold values beyond 2^53 at all. */
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
    if (from == GBX_INT64 || from == GBX_UINT64) {
        for (size_t i = 0; i < count; ++i)
            bits[i] = convert_wide(wide_of(from, bits[i]), to);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        bits[i] = gbx_dtype_from_f64(to, gbx_dtype_to_f64(from, bits[i]));
}

/* --- the elements of an entry --- */

static gbx_status read_converted(const void *context, uint64_t first, size_t count,
                                 uint64_t *out_bits) {
    const gbx_export_source *source = context;
    GBX_TRY(gbx_signals_check(source->signals));
    GBX_TRY(gbx_elements_read(&source->values.elements, first, count, out_bits));
    gbx_export_convert(source->values.elements.dtype, source->elements.dtype, out_bits, count);
    return NULL;
}

gbx_status gbx_export_source_open(const gbx_entry *entry, const gbx_reader *reader, uint32_t as,
                                  const gbx_held_signals *signals, gbx_export_source *out_source) {
    GBX_TRY(gbx_entry_values_open(entry, reader, &out_source->values));
    out_source->signals = signals;
    out_source->elements = out_source->values.elements;
    out_source->elements.read = read_converted;
    out_source->elements.context = out_source;
    if (as != GBX_DTYPE_NONE && entry->dtype != GBX_DTYPE_NONE)
        out_source->elements.dtype = as;
    /* Only the bits of the dtype count in a scalar's word. */
    if (out_source->values.is_scalar)
        out_source->values.scalar_bits &=
            UINT64_MAX >> (64 - gbx_dtype_bits(out_source->values.elements.dtype));
    return NULL;
}

/* --- numpy --- */

/* Whether the file gets the bytes of the dump unchanged. */
static bool is_as_stored(const gbx_export_source *source) {
    return source->elements.dtype == source->values.elements.dtype && !source->values.is_scalar;
}

/* Bytes of an element in the file; 1 for packed ones. */
static uint64_t element_bytes(uint32_t dtype) {
    uint32_t bits = gbx_dtype_bits(dtype);
    return bits < 8 ? 1 : bits / 8;
}

/* Bytes of all elements in the file. */
static uint64_t data_bytes(const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    if (is_as_stored(source) && gbx_dtype_is_packed(elements->dtype))
        return source->values.bytes;
    return elements->stored * element_bytes(elements->dtype);
}

static size_t format_header(const gbx_export_source *source, unsigned char *out_bytes) {
    const gbx_elements *elements = &source->elements;
    if (!gbx_export_source_is_cut(source))
        return gbx_npy_format_header(elements->dtype, elements->ndims, elements->shape, out_bytes);
    uint32_t dtype = gbx_dtype_is_packed(elements->dtype) ? GBX_UINT8 : elements->dtype;
    int64_t count = (int64_t)(data_bytes(source) / element_bytes(dtype));
    return gbx_npy_format_header(dtype, 1, &count, out_bytes);
}

static void make_zero_or_one(unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
        bytes[i] = bytes[i] != 0;
}

static gbx_status write_elements(const gbx_export_source *source, FILE *to) {
    const gbx_elements *elements = &source->elements;
    uint64_t words[PIECE_ELEMENTS];
    unsigned char bytes[PIECE_ELEMENTS * sizeof(uint64_t)];
    size_t size = (size_t)element_bytes(elements->dtype);
    for (uint64_t at = 0; at < elements->stored && !ferror(to); at += PIECE_ELEMENTS) {
        size_t count = (size_t)gbx_min_u64(elements->stored - at, PIECE_ELEMENTS);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        /* The low `size` bytes of each word, back to back. */
        for (size_t i = 0; i < count; ++i)
            memcpy(bytes + i * size, &words[i], size);
        if (elements->dtype == GBX_BOOL)
            make_zero_or_one(bytes, count);
        fwrite(bytes, size, count, to);
    }
    return NULL;
}

/* Whether elements are complete bytes and exact as a double: then arrays are converted at once. */
static bool is_convertible_in_arrays(const gbx_export_source *source) {
    uint32_t from = source->values.elements.dtype;
    return !source->values.is_scalar && !gbx_dtype_is_packed(from) && from != GBX_INT64 &&
           from != GBX_UINT64;
}

static gbx_status convert_bytes(const gbx_export_source *source, FILE *to) {
    const gbx_elements *elements = &source->elements;
    double numbers[PIECE_ELEMENTS];
    unsigned char bytes[PIECE_ELEMENTS * sizeof(double)];
    uint32_t from = source->values.elements.dtype;
    uint64_t from_bytes = element_bytes(from);
    for (uint64_t at = 0; at < elements->stored && !ferror(to); at += PIECE_ELEMENTS) {
        size_t count = (size_t)gbx_min_u64(elements->stored - at, PIECE_ELEMENTS);
        GBX_TRY(gbx_signals_check(source->signals));
        GBX_TRY(gbx_reader_read_payload(source->values.reader,
                                        source->values.offset + at * from_bytes, bytes,
                                        count * (size_t)from_bytes));
        gbx_dtype_array_to_f64(from, bytes, count, numbers);
        gbx_dtype_array_from_f64(elements->dtype, numbers, count, bytes);
        fwrite(bytes, (size_t)element_bytes(elements->dtype), count, to);
    }
    return NULL;
}

uint64_t gbx_export_npy_bytes(const gbx_export_source *source) {
    unsigned char header[GBX_NPY_HEADER_BYTES];
    return format_header(source, header) + data_bytes(source);
}

gbx_status gbx_export_npy(const gbx_export_source *source, FILE *to) {
    unsigned char header[GBX_NPY_HEADER_BYTES];
    fwrite(header, 1, format_header(source, header), to);
    if (is_as_stored(source))
        return gbx_payload_copy(source->values.reader, source->values.offset, data_bytes(source),
                                source->signals,
                                source->elements.dtype == GBX_BOOL ? make_zero_or_one : NULL, to);
    return is_convertible_in_arrays(source) ? convert_bytes(source, to)
                                            : write_elements(source, to);
}
