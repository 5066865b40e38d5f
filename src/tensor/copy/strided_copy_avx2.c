/* The kernels with 32-byte vectors. */
#if defined(__x86_64__)

#    include "tensor/copy/strided_copy.h"

#    include <immintrin.h>
#    include <string.h>

#    define AVX2 __attribute__((target("avx2")))
#    define AVX2_INLINE static inline __attribute__((always_inline, target("avx2")))

#    define LINE GBX_LINE_BYTES
#    define VECTOR 32

/* How far ahead of the loads src is fetched: a few hundred nanoseconds at the speed of memory. */
#    define AHEAD_BYTES 4096

/* Rows shorter than this stream only where every one of them is whole lines. */
#    define STREAM_ROW_BYTES 512

AVX2_INLINE __m256i load_32(const unsigned char *src) {
    return _mm256_loadu_si256((const __m256i *)(const void *)src);
}

AVX2_INLINE void store_32(unsigned char *dst, __m256i vector, bool is_streaming) {
    if (is_streaming)
        _mm256_stream_si256((__m256i *)(void *)dst, vector);
    else
        _mm256_storeu_si256((__m256i *)(void *)dst, vector);
}

AVX2_INLINE void fetch(const unsigned char *src, size_t size) {
    for (size_t at = 0; at < size; at += LINE)
        _mm_prefetch((const char *)src + at, _MM_HINT_T0);
}

AVX2_INLINE void stream_lines(unsigned char *dst, const unsigned char *src, size_t size) {
    for (size_t at = 0; at < size; at += LINE) {
        store_32(dst + at, load_32(src + at), true);
        store_32(dst + at + VECTOR, load_32(src + at + VECTOR), true);
    }
}

/* The parts of lines at both ends are stored the usual way: dst may have neighbours there. */
AVX2_INLINE void stream_row(unsigned char *dst, const unsigned char *src, size_t size) {
    size_t head = -(uintptr_t)dst % LINE;
    if (head > size)
        head = size;
    memcpy(dst, src, head);
    size_t whole = (size - head) / LINE * LINE;
    stream_lines(dst + head, src + head, whole);
    memcpy(dst + head + whole, src + head + whole, size - head - whole);
}

AVX2 static void avx2_stream(unsigned char *dst, const unsigned char *src, size_t size) {
    size_t at = -(uintptr_t)dst % LINE;
    if (at > size)
        at = size;
    memcpy(dst, src, at);
    for (; at + 4 * LINE <= size; at += 4 * LINE) {
        fetch(src + at + AHEAD_BYTES, 4 * LINE);
        stream_lines(dst + at, src + at, 4 * LINE);
    }
    stream_row(dst + at, src + at, size - at);
}

AVX2_INLINE bool rows_are_lines(const gbx_copy_plane *plane, size_t size) {
    return (size | (uintptr_t)plane->dst | (size_t)plane->outer_dst) % LINE == 0;
}

/* Short rows and those that stay in the cache are as fast without these vectors. */
AVX2 static void avx2_rows(const gbx_copy_plane *plane) {
    size_t size = (size_t)plane->inner_count * plane->element_bytes;
    if (!plane->is_streaming || (size < STREAM_ROW_BYTES && !rows_are_lines(plane, size))) {
        gbx_copy_plain.rows(plane);
        return;
    }
    int64_t ahead = 1 + (int64_t)(AHEAD_BYTES / size);
    for (int64_t row = 0; row < plane->outer_count; ++row) {
        const unsigned char *src = plane->src + row * plane->outer_src;
        unsigned char *dst = plane->dst + row * plane->outer_dst;
        if (size > AHEAD_BYTES) {
            avx2_stream(dst, src, size);
            continue;
        }
        fetch(src + ahead * plane->outer_src, size);
        stream_row(dst, src, size);
    }
}

/* --- steps --- */

/* The even words of 8, none of the others read. */
AVX2_INLINE __m256i load_even_words(const unsigned char *src) {
    return _mm256_maskload_epi32((const int *)(const void *)src,
                                 _mm256_setr_epi32(-1, 0, -1, 0, -1, 0, -1, 0));
}

/* Every other word of src to a run of dst. */
AVX2_INLINE void take_even_words(unsigned char *dst, const unsigned char *src, int64_t count,
                                 bool is_streaming) {
    int64_t i = 0;
    for (; i < count && (uintptr_t)(dst + 4 * i) % LINE >= 4; ++i)
        gbx_copy_element(dst + 4 * i, src + 8 * i, 4);
    bool streams = is_streaming && (uintptr_t)(dst + 4 * i) % LINE == 0;
    for (; i + 8 <= count; i += 8) {
        __m256 low = _mm256_castsi256_ps(load_even_words(src + 8 * i));
        __m256 high = _mm256_castsi256_ps(load_even_words(src + 8 * i + VECTOR));
        __m256i mixed = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
        if (is_streaming)
            fetch(src + 8 * i + AHEAD_BYTES, LINE);
        store_32(dst + 4 * i, _mm256_permute4x64_epi64(mixed, 0xd8), streams);
    }
    for (; i < count; ++i)
        gbx_copy_element(dst + 4 * i, src + 8 * i, 4);
}

/* A run of src to every other word of dst. */
AVX2_INLINE void put_even_words(unsigned char *dst, const unsigned char *src, int64_t count) {
    __m256i mask = _mm256_setr_epi32(-1, 0, -1, 0, -1, 0, -1, 0);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        __m128i words = _mm_loadu_si128((const __m128i *)(const void *)(src + 4 * i));
        _mm256_maskstore_epi32((int *)(void *)(dst + 8 * i), mask, _mm256_cvtepu32_epi64(words));
    }
    for (; i < count; ++i)
        gbx_copy_element(dst + 8 * i, src + 4 * i, 4);
}

AVX2 static void avx2_step(const gbx_copy_plane *plane) {
    bool takes_even = plane->inner_dst == 4 && plane->inner_src == 8;
    bool puts_even = plane->inner_dst == 8 && plane->inner_src == 4;
    if (plane->element_bytes != 4 || (!takes_even && !puts_even)) {
        gbx_copy_plain.step(plane);
        return;
    }
    for (int64_t row = 0; row < plane->outer_count; ++row) {
        unsigned char *dst = plane->dst + row * plane->outer_dst;
        const unsigned char *src = plane->src + row * plane->outer_src;
        if (takes_even)
            take_even_words(dst, src, plane->inner_count, plane->is_streaming);
        else
            put_even_words(dst, src, plane->inner_count);
    }
}

/* --- tiles --- */

/* Columns of 8 rows of 8 words. */
AVX2_INLINE void transpose_words(__m256i rows[8]) {
    __m256i pairs[8], quads[8];
    GBX_UNROLL
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    GBX_UNROLL
    for (int i = 0; i < 8; i += 4) {
        quads[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
        quads[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
        quads[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        quads[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    GBX_UNROLL
    for (int c = 0; c < 4; ++c) {
        rows[c] = _mm256_permute2x128_si256(quads[c], quads[c + 4], 0x20);
        rows[c + 4] = _mm256_permute2x128_si256(quads[c], quads[c + 4], 0x31);
    }
}

/* 8 words: the columns of 4 rows of 8 bytes. */
AVX2_INLINE __m256i words_of_bytes(const unsigned char *src, int64_t src_row) {
    __m128i rows[4];
    GBX_UNROLL
    for (int i = 0; i < 4; ++i)
        rows[i] = _mm_loadl_epi64((const __m128i *)(const void *)(src + i * src_row));
    __m128i ab = _mm_unpacklo_epi8(rows[0], rows[1]), cd = _mm_unpacklo_epi8(rows[2], rows[3]);
    return _mm256_set_m128i(_mm_unpackhi_epi16(ab, cd), _mm_unpacklo_epi16(ab, cd));
}

/* 8 words: the columns of 2 rows of 8 halves. */
AVX2_INLINE __m256i words_of_halves(const unsigned char *src, int64_t src_row) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + src_row));
    return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
}

/* Eight words of each column, from rows that hold them in elements of `bytes`. */
AVX2_INLINE void load_columns(__m256i columns[8], const unsigned char *src, int64_t src_row,
                              uint32_t bytes) {
    GBX_UNROLL
    for (int i = 0; i < 8; ++i)
        columns[i] = bytes == 1   ? words_of_bytes(src + 4 * i * src_row, src_row)
                     : bytes == 2 ? words_of_halves(src + 2 * i * src_row, src_row)
                                  : load_32(src + i * src_row);
    transpose_words(columns);
}

/* Both halves of a line of dst are stored one after the other: a streamed line must not wait. */
AVX2_INLINE void tile_of_words(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                               int64_t src_row, bool is_streaming, uint32_t bytes) {
    int64_t side = LINE / (int64_t)bytes;
    for (int64_t column = 0; column < side; column += 8) {
        __m256i low[8], high[8];
        load_columns(low, src + column * bytes, src_row, bytes);
        load_columns(high, src + side / 2 * src_row + column * bytes, src_row, bytes);
        GBX_UNROLL
        for (int i = 0; i < 8; ++i) {
            store_32(dst + (column + i) * dst_row, low[i], is_streaming);
            store_32(dst + (column + i) * dst_row + VECTOR, high[i], is_streaming);
        }
    }
}

AVX2 static void avx2_tile_1(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                             int64_t src_row, bool is_streaming) {
    tile_of_words(dst, dst_row, src, src_row, is_streaming, 1);
}

AVX2 static void avx2_tile_2(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                             int64_t src_row, bool is_streaming) {
    tile_of_words(dst, dst_row, src, src_row, is_streaming, 2);
}

AVX2 static void avx2_tile_4(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                             int64_t src_row, bool is_streaming) {
    tile_of_words(dst, dst_row, src, src_row, is_streaming, 4);
}

/* Columns of 4 rows of 4 double words. */
AVX2_INLINE void load_double_columns(__m256i columns[4], const unsigned char *src,
                                     int64_t src_row) {
    __m256i a = load_32(src), b = load_32(src + src_row);
    __m256i c = load_32(src + 2 * src_row), d = load_32(src + 3 * src_row);
    __m256i ab_even = _mm256_unpacklo_epi64(a, b), ab_odd = _mm256_unpackhi_epi64(a, b);
    __m256i cd_even = _mm256_unpacklo_epi64(c, d), cd_odd = _mm256_unpackhi_epi64(c, d);
    columns[0] = _mm256_permute2x128_si256(ab_even, cd_even, 0x20);
    columns[1] = _mm256_permute2x128_si256(ab_odd, cd_odd, 0x20);
    columns[2] = _mm256_permute2x128_si256(ab_even, cd_even, 0x31);
    columns[3] = _mm256_permute2x128_si256(ab_odd, cd_odd, 0x31);
}

AVX2 static void avx2_tile_8(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                             int64_t src_row, bool is_streaming) {
    for (int64_t column = 0; column < 8; column += 4) {
        __m256i low[4], high[4];
        load_double_columns(low, src + column * 8, src_row);
        load_double_columns(high, src + 4 * src_row + column * 8, src_row);
        GBX_UNROLL
        for (int i = 0; i < 4; ++i) {
            store_32(dst + (column + i) * dst_row, low[i], is_streaming);
            store_32(dst + (column + i) * dst_row + VECTOR, high[i], is_streaming);
        }
    }
}

const gbx_copy_ops gbx_copy_avx2 = {
    .stream = avx2_stream,
    .rows = avx2_rows,
    .step = avx2_step,
    .tiles = {avx2_tile_1, avx2_tile_2, avx2_tile_4, avx2_tile_8},
};

#else
typedef int gbx_no_avx2; /* C wants a declaration in every file */
#endif
