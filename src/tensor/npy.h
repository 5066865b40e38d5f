/*
 * Arrays in numpy's .npy files: versions 1.0 and 2.0, little-endian, C order. Anything else is
 * refused with a message that names the file and what was expected.
 */
#ifndef GBX_TENSOR_NPY_H
#define GBX_TENSOR_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/tensor.h>

#include "base/status.h"

enum { GBX_NPY_DESCR_BYTES = 16, GBX_NPY_HEADER_BYTES = 512 };

typedef struct gbx_npy_header {
    char descr[GBX_NPY_DESCR_BYTES]; /* "<f4", "|u1"... */
    uint32_t ndims;
    int64_t shape[GBX_MAX_DIMS];
    uint64_t data_offset; /* of the elements in the file */
    uint64_t data_bytes;
} gbx_npy_header;

/*
 * Reads a file's elements into `bytes`, which holds gbx_tensor_payload_bytes. Its dtype and shape
 * must be the tensor's. Dtypes that numpy lacks come as raw integers (gbx_npy_stored_dtype; or
 * opaque V2, V1), elements of 4 bits packed: the last dimension has half as many bytes.
 */
GBX_MUST_USE gbx_status gbx_npy_read(const char *path, const gbx_tensor *tensor, void *bytes);

/*
 * The same for an array of any number that numpy has, converted to the tensor's dtype and rounded
 * once. Elements of 4 bits come one a number here.
 */
GBX_MUST_USE gbx_status gbx_npy_read_converted(const char *path, const gbx_tensor *tensor,
                                               void *bytes);

/* Whether gbx_npy_read would read a file. */
GBX_MUST_USE gbx_status gbx_npy_check(const char *path, const gbx_tensor *tensor);

/* Writes a row-major tensor as numbers of gbx_npy_number_dtype. */
GBX_MUST_USE gbx_status gbx_npy_write_numbers(const char *path, const gbx_tensor *tensor,
                                              const void *bytes);

/*
 * The header of such a file, for callers that write the elements piece by piece after it, row-
 * major, as gbx_npy_read expects them. Returns its length, a multiple of 64.
 */
size_t gbx_npy_format_header(uint32_t dtype, uint32_t ndims, const int64_t *shape,
                             unsigned char out_bytes[GBX_NPY_HEADER_BYTES]);

/* Whether numpy lacks the dtype: files hold its raw bits, as elements of gbx_npy_stored_dtype. */
bool gbx_npy_is_raw(uint32_t dtype);
uint32_t gbx_npy_stored_dtype(uint32_t dtype);

/* The dtype of numpy that holds the values exactly: itself, or float32, int8 or uint8. */
uint32_t gbx_npy_number_dtype(uint32_t dtype);

#endif
