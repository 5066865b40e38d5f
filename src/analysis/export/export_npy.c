#include "analysis/export/export_npy.h"

#include <string.h>

#include <glassbox/tensor.h>

#include "tensor/npy.h"

enum { PIECE_BYTES = 1 << 18, PIECE_ELEMENTS = 8192 };

/* The bytes as they lie in the dump are those of the file. */
static bool is_as_stored(const gbx_export_source *source) {
    return source->elements.dtype == source->values.elements.dtype && !source->values.is_scalar;
}

/* Bytes of an element in the file; of packed int4 it is that of the bytes. */
static uint64_t element_bytes(uint32_t dtype) {
    uint32_t bits = gbx_dtype_bits(dtype);
    return bits < 8 ? 1 : bits / 8;
}

/* Of the elements in the file. */
static uint64_t data_bytes(const gbx_export_source *source) {
    const gbx_elements *elements = &source->elements;
    if (is_as_stored(source) && elements->dtype == GBX_INT4)
        return source->values.bytes;
    return elements->stored * element_bytes(elements->dtype);
}

static size_t format_header(const gbx_export_source *source, unsigned char *out_bytes) {
    const gbx_elements *elements = &source->elements;
    if (!gbx_export_source_is_cut(source))
        return gbx_npy_format_header(elements->dtype, elements->ndims, elements->shape, out_bytes);
    uint32_t dtype = elements->dtype == GBX_INT4 ? GBX_UINT8 : elements->dtype;
    int64_t count = (int64_t)(data_bytes(source) / element_bytes(dtype));
    return gbx_npy_format_header(dtype, 1, &count, out_bytes);
}

static void make_zero_or_one(unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
        bytes[i] = bytes[i] != 0;
}

static gbx_status copy_bytes(const gbx_export_source *source, FILE *to) {
    unsigned char bytes[PIECE_BYTES];
    uint64_t size = data_bytes(source);
    for (uint64_t at = 0; at < size && !ferror(to);) {
        size_t piece = (size_t)(size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
        GBX_TRY(gbx_signals_check(source->signals));
        GBX_TRY(gbx_reader_read_payload(source->values.reader, source->values.offset + at, bytes,
                                        piece));
        if (source->elements.dtype == GBX_BOOL)
            make_zero_or_one(bytes, piece);
        fwrite(bytes, 1, piece, to);
        at += piece;
    }
    return NULL;
}

/* The low `size` bytes of each word, back to back. */
static void pack(const uint64_t *words, size_t count, size_t size, unsigned char *out_bytes) {
    for (size_t i = 0; i < count; ++i)
        memcpy(out_bytes + i * size, &words[i], size);
}

static gbx_status write_elements(const gbx_export_source *source, FILE *to) {
    const gbx_elements *elements = &source->elements;
    uint64_t words[PIECE_ELEMENTS];
    unsigned char bytes[PIECE_ELEMENTS * sizeof(uint64_t)];
    size_t size = (size_t)element_bytes(elements->dtype);
    for (uint64_t at = 0; at < elements->stored && !ferror(to);) {
        uint64_t left = elements->stored - at;
        size_t count = (size_t)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS);
        GBX_TRY(gbx_elements_read(elements, at, count, words));
        pack(words, count, size, bytes);
        if (elements->dtype == GBX_BOOL)
            make_zero_or_one(bytes, count);
        fwrite(bytes, size, count, to);
        at += count;
    }
    return NULL;
}

/* Whole bytes of numbers that a double holds: they go through one in arrays. */
static bool is_convertible_in_arrays(const gbx_export_source *source) {
    uint32_t from = source->values.elements.dtype;
    return !source->values.is_scalar && from != GBX_INT4 && from != GBX_INT64 && from != GBX_UINT64;
}

static gbx_status convert_bytes(const gbx_export_source *source, FILE *to) {
    const gbx_elements *elements = &source->elements;
    double numbers[PIECE_ELEMENTS];
    unsigned char bytes[PIECE_ELEMENTS * sizeof(double)];
    uint32_t from = source->values.elements.dtype;
    uint64_t from_bytes = element_bytes(from);
    for (uint64_t at = 0; at < elements->stored && !ferror(to);) {
        uint64_t left = elements->stored - at;
        size_t count = (size_t)(left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS);
        GBX_TRY(gbx_signals_check(source->signals));
        GBX_TRY(gbx_reader_read_payload(source->values.reader,
                                        source->values.offset + at * from_bytes, bytes,
                                        count * (size_t)from_bytes));
        gbx_dtype_array_to_f64(from, bytes, count, numbers);
        gbx_dtype_array_from_f64(elements->dtype, numbers, count, bytes);
        fwrite(bytes, (size_t)element_bytes(elements->dtype), count, to);
        at += count;
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
        return copy_bytes(source, to);
    return is_convertible_in_arrays(source) ? convert_bytes(source, to)
                                            : write_elements(source, to);
}
