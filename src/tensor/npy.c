#include "tensor/npy.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "tensor/dtype_table.h"

enum { MAGIC_BYTES = 6, ALIGNMENT = 64, HEADER_BYTES_MAX = 65536, SHAPE_TEXT_BYTES = 256 };
enum { CONVERTED_ELEMENTS = 4096 };

static const unsigned char magic[MAGIC_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* What numpy calls the elements of a file, as in "<f4". */
typedef struct descr_text {
    char text[4];
} descr_text;

static descr_text descr_of(uint32_t dtype) {
    static const char letters[] = {[GBX_CLASS_FLOAT] = 'f',
                                   [GBX_CLASS_SIGNED] = 'i',
                                   [GBX_CLASS_UNSIGNED] = 'u',
                                   [GBX_CLASS_BOOL] = 'b'};
    const gbx_dtype_info *stored = gbx_dtype_info_of(gbx_dtype_info_of(dtype)->stored_as);
    return (descr_text){
        {stored->bits > 8 ? '<' : '|', letters[stored->class], (char)('0' + stored->bits / 8)}};
}

bool gbx_npy_is_raw(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->stored_as != dtype;
}

uint32_t gbx_npy_stored_dtype(uint32_t dtype) {
    return gbx_dtype_info_of(dtype)->stored_as;
}

uint32_t gbx_npy_number_dtype(uint32_t dtype) {
    if (!gbx_npy_is_raw(dtype))
        return dtype;
    if (gbx_dtype_is_float(dtype))
        return GBX_FLOAT32;
    return gbx_dtype_is_signed(dtype) ? GBX_INT8 : GBX_UINT8;
}

/* The numpy array that holds a tensor: packed elements are two a byte. */
static void stored_shape(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                         int64_t out_shape[GBX_MAX_DIMS]) {
    for (uint32_t d = 0; d < ndims; ++d)
        out_shape[d] = shape[d];
    if (gbx_dtype_is_packed(dtype) && ndims > 0)
        out_shape[ndims - 1] = out_shape[ndims - 1] / 2 + out_shape[ndims - 1] % 2;
}

/* "(3, 4)", "(3,)", "()" */
static void format_shape(const int64_t *shape, uint32_t ndims, char out_text[SHAPE_TEXT_BYTES]) {
    size_t used = 1;
    out_text[0] = '(';
    for (uint32_t d = 0; d < ndims; ++d)
        used += (size_t)snprintf(out_text + used, SHAPE_TEXT_BYTES - used, "%s%" PRId64,
                                 d ? ", " : "", shape[d]);
    snprintf(out_text + used, SHAPE_TEXT_BYTES - used, ndims == 1 ? ",)" : ")");
}

/* --- the header: a Python dictionary with three entries --- */

typedef struct header_text {
    const char *path;
    const char *at;
} header_text;

static gbx_status fail_header(const header_text *text) {
    return gbx_fail(GBX_BAD_FORMAT,
                    "%s: the header of this .npy file is not a dictionary of descr, fortran_order "
                    "and shape; it is wrong from \"%.20s\" on",
                    text->path, text->at);
}

static void skip_blanks(header_text *text) {
    while (isspace((unsigned char)*text->at))
        ++text->at;
}

static bool take(header_text *text, const char *token) {
    skip_blanks(text);
    size_t length = strlen(token);
    if (strncmp(text->at, token, length) != 0)
        return false;
    text->at += length;
    return true;
}

static gbx_status take_string(header_text *text, char *out_text, size_t capacity) {
    skip_blanks(text);
    const char quote = *text->at;
    const char *end = quote == '\'' || quote == '"' ? strchr(text->at + 1, quote) : NULL;
    if (!end)
        return fail_header(text);
    size_t length = (size_t)(end - text->at - 1);
    if (length >= capacity)
        return fail_header(text);
    memcpy(out_text, text->at + 1, length);
    out_text[length] = '\0';
    text->at = end + 1;
    return NULL;
}

static gbx_status take_descr(header_text *text, gbx_npy_header *header) {
    skip_blanks(text);
    if (*text->at == '[')
        return gbx_fail(GBX_BAD_FORMAT, "%s: an array of records; expected an array of numbers",
                        text->path);
    GBX_TRY(take_string(text, header->descr, sizeof header->descr));
    if (header->descr[0] == '>')
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: the elements are big-endian (%s); expected little-endian: "
                        "save array.astype(array.dtype.newbyteorder('<'))",
                        text->path, header->descr);
    return NULL;
}

static gbx_status take_order(header_text *text) {
    if (take(text, "False"))
        return NULL;
    if (!take(text, "True"))
        return fail_header(text);
    return gbx_fail(GBX_BAD_FORMAT,
                    "%s: the elements are in Fortran order; expected C order: save "
                    "numpy.ascontiguousarray(array)",
                    text->path);
}

static gbx_status take_shape(header_text *text, gbx_npy_header *header) {
    if (!take(text, "("))
        return fail_header(text);
    while (!take(text, ")")) {
        char *end;
        errno = 0;
        int64_t dimension = strtoll(text->at, &end, 10);
        if (end == text->at || errno || dimension < 0)
            return fail_header(text);
        if (header->ndims == GBX_MAX_DIMS)
            return gbx_fail(GBX_BAD_FORMAT, "%s: more than %d dimensions", text->path,
                            GBX_MAX_DIMS);
        header->shape[header->ndims++] = dimension;
        text->at = end;
        take(text, ",");
    }
    return NULL;
}

static gbx_status parse_header(header_text *text, gbx_npy_header *header) {
    char key[20];
    bool has_descr = false;
    bool has_shape = false;
    bool has_order = false;
    if (!take(text, "{"))
        return fail_header(text);
    while (!take(text, "}")) {
        GBX_TRY(take_string(text, key, sizeof key));
        if (!take(text, ":"))
            return fail_header(text);
        if (strcmp(key, "descr") == 0 && !has_descr) {
            GBX_TRY(take_descr(text, header));
            has_descr = true;
        } else if (strcmp(key, "fortran_order") == 0 && !has_order) {
            GBX_TRY(take_order(text));
            has_order = true;
        } else if (strcmp(key, "shape") == 0 && !has_shape) {
            GBX_TRY(take_shape(text, header));
            has_shape = true;
        } else {
            return fail_header(text);
        }
        take(text, ",");
    }
    return has_descr && has_order && has_shape ? NULL : fail_header(text);
}

/* --- reading --- */

static gbx_status fail_read(const char *path, FILE *file) {
    if (ferror(file))
        return gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(errno));
    return gbx_fail(GBX_BAD_FORMAT, "%s: the file is cut short", path);
}

static gbx_status read_header_length(const char *path, FILE *file, size_t *out_length) {
    unsigned char start[MAGIC_BYTES + 2];
    unsigned char length[4] = {0};
    size_t got = fread(start, 1, sizeof start, file);
    if (ferror(file))
        return fail_read(path, file);
    if (got != sizeof start || memcmp(start, magic, sizeof magic) != 0)
        return gbx_fail(GBX_BAD_FORMAT, "%s: not a .npy file: it does not begin with \\x93NUMPY",
                        path);
    unsigned major = start[MAGIC_BYTES];
    if ((major != 1 && major != 2) || start[MAGIC_BYTES + 1] != 0)
        return gbx_fail(GBX_BAD_FORMAT, "%s: .npy version %u.%u; expected 1.0 or 2.0", path, major,
                        start[MAGIC_BYTES + 1]);
    if (fread(length, 1, major == 1 ? 2 : 4, file) != (major == 1 ? 2 : 4))
        return fail_read(path, file);
    *out_length = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
                  (size_t)length[3] << 24;
    if (*out_length > HEADER_BYTES_MAX)
        return gbx_fail(GBX_BAD_FORMAT, "%s: a header of %zu bytes; expected at most %d", path,
                        *out_length, HEADER_BYTES_MAX);
    return NULL;
}

/* Bytes of an element by the number in its descr: "<f4" has 4. */
static uint64_t element_bytes(const gbx_npy_header *header) {
    return header->descr[0] ? strtoull(header->descr + 2, NULL, 10) : 0;
}

static gbx_status measure(const char *path, FILE *file, gbx_npy_header *header) {
    uint64_t bytes = element_bytes(header);
    bool fits = true;
    for (uint32_t d = 0; d < header->ndims; ++d)
        fits = fits && gbx_checked_mul_u64(bytes, (uint64_t)header->shape[d], &bytes);
    header->data_offset = (uint64_t)ftello(file);
    header->data_bytes = bytes;
    if (fseeko(file, 0, SEEK_END) != 0)
        return gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(errno));
    uint64_t there = (uint64_t)ftello(file) - header->data_offset;
    if (!fits || bytes != there)
        return gbx_fail(GBX_BAD_FORMAT,
                        "%s: %" PRIu64 " bytes of elements, but its header says %" PRIu64, path,
                        there, fits ? bytes : UINT64_MAX);
    if (fseeko(file, (off_t)header->data_offset, SEEK_SET) != 0)
        return gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(errno));
    return NULL;
}

static gbx_status read_header(const char *path, FILE *file, gbx_npy_header *header) {
    size_t length = 0;
    GBX_TRY(read_header_length(path, file, &length));
    char *bytes = calloc(1, length + 1);
    if (!bytes)
        return gbx_fail_memory("reading %s", path);
    gbx_status status = NULL;
    if (fread(bytes, 1, length, file) != length)
        status = fail_read(path, file);
    header_text text = {path, bytes};
    if (!status)
        status = parse_header(&text, header);
    free(bytes);
    GBX_TRY(status);
    return measure(path, file, header);
}

static gbx_status open_npy(const char *path, FILE **out_file, gbx_npy_header *out_header) {
    *out_header = (gbx_npy_header){.descr = ""};
    *out_file = fopen(path, "rbe");
    if (!*out_file)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "cannot open %s: %s", path,
                        strerror(errno));
    gbx_status status = read_header(path, *out_file, out_header);
    if (status)
        fclose(*out_file);
    return status;
}

static gbx_status check_shape(const char *path, const gbx_npy_header *header, const int64_t *shape,
                              uint32_t ndims) {
    if (header->ndims == ndims && memcmp(header->shape, shape, ndims * sizeof *shape) == 0)
        return NULL;
    char got[SHAPE_TEXT_BYTES];
    char expected[SHAPE_TEXT_BYTES];
    format_shape(header->shape, header->ndims, got);
    format_shape(shape, ndims, expected);
    return gbx_fail(GBX_BAD_FORMAT, "%s: shape %s; expected %s", path, got, expected);
}

/* The first character, the byte order, says nothing about single bytes. */
static bool is_same_descr(const char *got, const char *expected) {
    bool is_byte = expected[2] == '1';
    return (is_byte || got[0] == expected[0]) && strcmp(got + 1, expected + 1) == 0;
}

static gbx_status check_descr(const char *path, const gbx_npy_header *header, uint32_t dtype) {
    const descr_text expected = descr_of(dtype);
    if (header->descr[0] && is_same_descr(header->descr, expected.text))
        return NULL;
    if (gbx_npy_is_raw(dtype) && header->descr[0] && header->descr[1] == 'V' &&
        strcmp(header->descr + 2, expected.text + 2) == 0)
        return NULL;
    return gbx_fail(GBX_BAD_FORMAT, "%s: elements of %s; expected %s%s for %s", path, header->descr,
                    expected.text, gbx_npy_is_raw(dtype) ? " (raw bits)" : "",
                    gbx_dtype_name(dtype));
}

static gbx_status check_fits(const char *path, const gbx_npy_header *header,
                             const gbx_tensor *tensor) {
    int64_t shape[GBX_MAX_DIMS];
    stored_shape(tensor->dtype, tensor->ndims, tensor->shape, shape);
    GBX_TRY(check_descr(path, header, tensor->dtype));
    return check_shape(path, header, shape, tensor->ndims);
}

gbx_status gbx_npy_check(const char *path, const gbx_tensor *tensor) {
    FILE *file;
    gbx_npy_header header;
    GBX_TRY(open_npy(path, &file, &header));
    fclose(file);
    return check_fits(path, &header, tensor);
}

gbx_status gbx_npy_read(const char *path, const gbx_tensor *tensor, void *bytes) {
    FILE *file;
    gbx_npy_header header;
    GBX_TRY(open_npy(path, &file, &header));
    gbx_status status = check_fits(path, &header, tensor);
    if (!status && fread(bytes, 1, header.data_bytes, file) != header.data_bytes)
        status = fail_read(path, file);
    fclose(file);
    return status;
}

/* --- converting --- */

/* The dtype of a file's numbers; never one that is stored as raw bits. */
static gbx_dtype number_dtype(const gbx_npy_header *header) {
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
        if (!gbx_npy_is_raw(dtype) && header->descr[0] &&
            is_same_descr(header->descr, descr_of(dtype).text))
            return (gbx_dtype)dtype;
    return GBX_DTYPE_NONE;
}

/* Rows of packed elements start at a byte: each row is converted by itself. Other tensors are one
 * row. */
static uint64_t row_of(const gbx_tensor *tensor, uint64_t total) {
    return tensor->ndims && gbx_dtype_is_packed(tensor->dtype)
               ? (uint64_t)tensor->shape[tensor->ndims - 1]
               : total;
}

static gbx_status read_rows(const char *path, FILE *file, gbx_dtype from, const gbx_tensor *tensor,
                            unsigned char *out) {
    static _Thread_local double values[CONVERTED_ELEMENTS];
    static _Thread_local unsigned char elements[CONVERTED_ELEMENTS * sizeof(double)];
    const size_t width = gbx_dtype_bits(from) / 8;
    const uint64_t total = (uint64_t)gbx_tensor_numel(tensor);
    const uint64_t row = row_of(tensor, total);
    for (uint64_t done = 0; done < total;) {
        uint64_t left = row - done % row;
        size_t count = left < CONVERTED_ELEMENTS ? (size_t)left : CONVERTED_ELEMENTS;
        if (fread(elements, width, count, file) != count)
            return fail_read(path, file);
        gbx_dtype_array_to_f64(from, elements, count, values);
        gbx_dtype_array_from_f64(tensor->dtype, values, count, out);
        out += (count * gbx_dtype_bits(tensor->dtype) + 7) / 8;
        done += count;
    }
    return NULL;
}

gbx_status gbx_npy_read_converted(const char *path, const gbx_tensor *tensor, void *bytes) {
    FILE *file;
    gbx_npy_header header;
    GBX_TRY(open_npy(path, &file, &header));
    gbx_dtype from = number_dtype(&header);
    gbx_status status = check_shape(path, &header, tensor->shape, tensor->ndims);
    if (!status && from == GBX_DTYPE_NONE)
        status =
            gbx_fail(GBX_BAD_FORMAT, "%s: elements of %s; expected numbers", path, header.descr);
    /* The same dtype is taken as it is: 64-bit integers are not exact as float64. */
    if (!status && from == (gbx_dtype)tensor->dtype) {
        if (fread(bytes, 1, header.data_bytes, file) != header.data_bytes)
            status = fail_read(path, file);
    } else if (!status) {
        status = read_rows(path, file, from, tensor, bytes);
    }
    fclose(file);
    return status;
}

/* --- writing --- */

size_t gbx_npy_format_header(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                             unsigned char out_bytes[GBX_NPY_HEADER_BYTES]) {
    enum { START_BYTES = MAGIC_BYTES + 4 };
    static_assert(START_BYTES + SHAPE_TEXT_BYTES + 2 * ALIGNMENT <= GBX_NPY_HEADER_BYTES, "room");
    char shape_text[SHAPE_TEXT_BYTES];
    int64_t stored[GBX_MAX_DIMS] = {0};
    stored_shape(dtype, ndims, shape, stored);
    format_shape(stored, ndims, shape_text);
    char *text = (char *)out_bytes + START_BYTES;
    size_t used = (size_t)snprintf(text, GBX_NPY_HEADER_BYTES - START_BYTES,
                                   "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                                   descr_of(dtype).text, shape_text);
    while ((START_BYTES + used + 1) % ALIGNMENT != 0)
        text[used++] = ' ';
    text[used++] = '\n';
    memcpy(out_bytes, magic, sizeof magic);
    out_bytes[MAGIC_BYTES] = 1;
    out_bytes[MAGIC_BYTES + 1] = 0;
    out_bytes[MAGIC_BYTES + 2] = (unsigned char)used;
    out_bytes[MAGIC_BYTES + 3] = (unsigned char)(used >> 8);
    return START_BYTES + used;
}

/* Row by row: rows of packed elements start at a byte. */
static bool write_rows(FILE *file, uint32_t to, const gbx_tensor *tensor,
                       const unsigned char *bytes) {
    static _Thread_local double values[CONVERTED_ELEMENTS];
    static _Thread_local unsigned char elements[CONVERTED_ELEMENTS * sizeof(double)];
    const size_t width = gbx_dtype_bits(to) / 8;
    const uint64_t total = (uint64_t)gbx_tensor_numel(tensor);
    const uint64_t row = row_of(tensor, total);
    bool is_written = true;
    for (uint64_t done = 0; done < total && is_written;) {
        uint64_t left = row - done % row;
        size_t count = left < CONVERTED_ELEMENTS ? (size_t)left : CONVERTED_ELEMENTS;
        gbx_dtype_array_to_f64(tensor->dtype, bytes, count, values);
        gbx_dtype_array_from_f64(to, values, count, elements);
        is_written = fwrite(elements, width, count, file) == count;
        bytes += (count * gbx_dtype_bits(tensor->dtype) + 7) / 8;
        done += count;
    }
    return is_written;
}

gbx_status gbx_npy_write_numbers(const char *path, const gbx_tensor *tensor, const void *bytes) {
    const uint32_t to = gbx_npy_number_dtype(tensor->dtype);
    unsigned char header[GBX_NPY_HEADER_BYTES];
    size_t length = gbx_npy_format_header(to, tensor->ndims, tensor->shape, header);
    FILE *file = fopen(path, "wbe");
    if (!file)
        return gbx_fail(GBX_IO, "cannot write %s: %s", path, strerror(errno));
    uint64_t size = gbx_tensor_payload_bytes(tensor);
    bool is_written = fwrite(header, 1, length, file) == length &&
                      (to == tensor->dtype ? fwrite(bytes, 1, size, file) == size
                                           : write_rows(file, to, tensor, bytes));
    int error = errno;
    if (fclose(file) == 0 && is_written)
        return NULL;
    return gbx_fail(GBX_IO, "cannot write %s: %s", path, strerror(is_written ? errno : error));
}
