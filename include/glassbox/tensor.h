/*
 * Element types and views: what a tensor's bytes mean and where its elements lie.
 * All functions are pure, may be called from any thread and allocate nothing. They never follow
 * gbx_tensor.data, which is a device address; other pointers are host pointers.
 */
#ifndef GLASSBOX_TENSOR_H
#define GLASSBOX_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include <glassbox/kernel.h>
#include <glassbox/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- element types --- */

GBX_API bool gbx_dtype_is_valid(uint32_t dtype);

/* "float32", "float8_e4m3"...; "unknown" for GBX_DTYPE_NONE, "invalid" for a number that is not a
 * dtype. */
GBX_API const char *gbx_dtype_name(uint32_t dtype);

/* The dtype of a name in any case, with the names of other tools (FP8E4M3FN, fp16, half, bf16...);
 * GBX_DTYPE_NONE when no dtype has it. */
GBX_API gbx_dtype gbx_dtype_parse(const char *name);

GBX_API uint32_t gbx_dtype_bits(uint32_t dtype); /* 4, 8, 16, 32, 64; 0 when invalid */
/* Whether two elements share a byte, the first in its low half; every row starts at a byte. */
GBX_API bool gbx_dtype_is_packed(uint32_t dtype);
GBX_API bool gbx_dtype_is_float(uint32_t dtype);
GBX_API bool gbx_dtype_is_signed(uint32_t dtype); /* floats: all but float8_e8m0 */

/*
 * The value of an element given by its raw bits (in the low bits of `bits`). Exact for every dtype
 * but int64 and uint64 beyond 2^53, which round to nearest, ties to even. NaN stays NaN.
 */
GBX_API double gbx_dtype_to_f64(uint32_t dtype, uint64_t bits);

/*
 * The raw bits of the element nearest to a value, ties to even, rounded once. Beyond the range:
 * float16, bfloat16, float32, float8_e5m2 give infinity, floats without infinity and the integers
 * saturate. NaN gives a quiet NaN with the sign kept, 0 for integers and 6 for float4_e2m1; bool is
 * 1 for all but zero. float8_e8m0: ties go up, zero gives the smallest, a negative number NaN.
 */
GBX_API uint64_t gbx_dtype_from_f64(uint32_t dtype, double value);

/* Whole arrays: `count` elements packed as in a row of a tensor (4 bits: two a byte). */
GBX_API void gbx_dtype_array_to_f64(uint32_t dtype, const void *elements, size_t count,
                                    double *out_values);
GBX_API void gbx_dtype_array_from_f64(uint32_t dtype, const double *values, size_t count,
                                      void *out_elements);

/* --- views --- */

/*
 * A row-major contiguous tensor over a whole buffer at `data`. Fails with GBX_INVALID_ARGUMENT when
 * the dtype, ndims or a dimension is not valid, GBX_OUT_OF_RANGE when the size overflows.
 */
GBX_API GBX_MUST_USE gbx_status gbx_tensor_contiguous(uint64_t data, uint32_t dtype, uint32_t ndims,
                                                      const int64_t *shape, gbx_tensor *out_tensor);

/*
 * Fails where a tensor makes no sense: dtype, ndims, negative dimensions, sizes that overflow, or,
 * where buffer_bytes is known, an element outside the buffer.
 */
GBX_API GBX_MUST_USE gbx_status gbx_tensor_validate(const gbx_tensor *tensor);

/* Bytes of the elements as a row-major payload (4 bits: every row rounded up to a byte). */
GBX_API uint64_t gbx_tensor_payload_bytes(const gbx_tensor *tensor);

/* Whether the elements lie row-major without gaps; start_offset may be anything. */
GBX_API bool gbx_tensor_is_contiguous(const gbx_tensor *tensor);

/* The bytes that the view touches, relative to `data`: first, and one past the last. Both 0 when
 * empty. */
GBX_API void gbx_tensor_extent(const gbx_tensor *tensor, int64_t *out_first_byte,
                               int64_t *out_end_byte);

/*
 * Whether two views share a byte. Exact for tiles, slices and steps of common buffers, and for
 * other views as far as a bounded search decides it; else the answer is true.
 */
GBX_API bool gbx_tensor_overlaps(const gbx_tensor *a, const gbx_tensor *b);

/*
 * Copies the elements of a view, row-major, to `payload`, which holds gbx_tensor_payload_bytes.
 * `buffer` is the caller's pointer to what gbx_tensor.data names. The two must not overlap.
 */
GBX_API void gbx_tensor_gather(const gbx_tensor *tensor, const void *buffer, void *payload);

/* Copies a payload back into a view. Where elements share bytes, the last one (row-major) stays. */
GBX_API void gbx_tensor_scatter(const gbx_tensor *tensor, const void *payload, void *buffer);

#ifdef __cplusplus
}
#endif
#endif
