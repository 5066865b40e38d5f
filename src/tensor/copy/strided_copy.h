/*
 * The one engine behind gather and scatter: copies an array of elements from one strided layout to
 * another. No allocation, no locks, no state: also device code. Any thread.
 */
#ifndef GBX_TENSOR_COPY_STRIDED_COPY_H
#define GBX_TENSOR_COPY_STRIDED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/* Bytes of a cache line: what a tile writes at once and what streaming stores fill. */
#define GBX_LINE_BYTES 64

/* Copies of at least so many bytes go past the cache where they fill whole lines. Smaller ones stay
 * in it: a payload is hashed right after it was gathered. */
#define GBX_STREAM_BYTES (UINT64_C(4) << 20)

/* What the processor can do; each level includes those before it. */
typedef enum gbx_cpu_level {
    GBX_CPU_PLAIN = 0,
    GBX_CPU_AVX2 = 1,
    GBX_CPU_AVX512 = 2, /* with the byte and vector length extensions */
    GBX_CPU_LEVELS = 3
} gbx_cpu_level;

/* The highest level of this processor. Costs a few loads. */
gbx_cpu_level gbx_cpu_level_detect(void);

/* Strides are in bytes and may be negative or 0. The two sides do not overlap each other. */
typedef struct gbx_strided_copy {
    unsigned char *dst;
    const unsigned char *src;
    uint32_t element_bytes; /* 1, 2, 4 or 8 */
    uint32_t ndims;         /* 0 to GBX_MAX_DIMS */
    int64_t shape[GBX_MAX_DIMS];
    int64_t dst_strides[GBX_MAX_DIMS];
    int64_t src_strides[GBX_MAX_DIMS];
} gbx_strided_copy;

/*
 * Copies. Elements of dst that lie on top of each other keep the last one in row-major order; bytes
 * between elements of dst are never written. `level` is at most what the processor can do.
 */
void gbx_strided_copy_run(const gbx_strided_copy *copy, gbx_cpu_level level);

/* gbx_tensor_gather and gbx_tensor_scatter with the instructions of one level. */
void gbx_tensor_gather_at(gbx_cpu_level level, const gbx_tensor *tensor, const void *buffer,
                          void *payload);
void gbx_tensor_scatter_at(gbx_cpu_level level, const gbx_tensor *tensor, const void *payload,
                           void *buffer);

/* --- between the files of the engine --- */

/* Two dimensions of a copy: what a kernel works on. Strides in bytes. */
typedef struct gbx_copy_plane {
    unsigned char *dst;
    const unsigned char *src;
    int64_t outer_count, outer_dst, outer_src;
    int64_t inner_count, inner_dst, inner_src;
    uint32_t element_bytes;
    bool is_streaming; /* the copy is large and no two elements of dst share a byte */
} gbx_copy_plane;

/*
 * Transposes one square tile of 64 bytes a side: element j of the line at src + i * src_row goes to
 * element i of the line at dst + j * dst_row. With `is_streaming`, dst and dst_row are multiples of
 * the line.
 */
typedef void gbx_copy_tile(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                           int64_t src_row, bool is_streaming);

/* The kernels of a level. All copy rows (the outer dimension) in ascending order. */
typedef struct gbx_copy_ops {
    /* One run of bytes past the cache; NULL where memcpy is as good. */
    void (*stream)(unsigned char *dst, const unsigned char *src, size_t size);
    /* Both inner strides are the element: each row is one run of bytes. */
    void (*rows)(const gbx_copy_plane *plane);
    /* Any strides. */
    void (*step)(const gbx_copy_plane *plane);
    /* By the logarithm of the element's bytes; NULL where there is none. */
    gbx_copy_tile *tiles[4];
} gbx_copy_ops;

extern const gbx_copy_ops gbx_copy_plain;
extern const gbx_copy_ops gbx_copy_avx2;
extern const gbx_copy_ops gbx_copy_avx512;

/* Rows in any order, in tiles that keep the lines of both sides in the cache. */
void gbx_copy_transpose(const gbx_copy_plane *plane, const gbx_copy_ops *ops);

/* Before a loop over an array of vectors: only when it is unrolled do they live in registers. */
#if defined(__clang__)
#    define GBX_UNROLL _Pragma("unroll")
#else
#    define GBX_UNROLL _Pragma("GCC unroll 16")
#endif

/* One element, as one load and one store where the compiler knows `bytes`. */
static inline void gbx_copy_element(unsigned char *dst, const unsigned char *src, uint32_t bytes) {
    __builtin_memcpy(dst, src, bytes);
}

#endif
