/* The kernels with 64-byte vectors: one register is one cache line. */
#if defined(__x86_64__)

#    include "tensor/copy/strided_copy.h"

#    include <immintrin.h>

#    define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#    define AVX512_INLINE                                                                          \
        static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl")))

#    define LINE GBX_LINE_BYTES
#    define PAGE 4096

/* How far ahead of the loads src is fetched: a few hundred nanoseconds at the speed of memory. */
#    define AHEAD_BYTES 4096

/* Rows shorter than this stream only where every one of them is whole lines. */
#    define STREAM_ROW_BYTES 512

AVX512_INLINE void store_line(unsigned char *dst, __m512i line, bool is_streaming) {
    if (is_streaming)
        _mm512_stream_si512((__m512i *)(void *)dst, line);
    else
        _mm512_storeu_si512(dst, line);
}

AVX512_INLINE __mmask64 first_bytes(size_t count) {
    return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* Up to one line. */
AVX512_INLINE void copy_part(unsigned char *dst, const unsigned char *src, size_t size) {
    __mmask64 mask = first_bytes(size);
    _mm512_mask_storeu_epi8(dst, mask, _mm512_maskz_loadu_epi8(mask, src));
}

AVX512_INLINE void fetch(const unsigned char *src, size_t size) {
    for (size_t at = 0; at < size; at += LINE)
        _mm_prefetch((const char *)src + at, _MM_HINT_T0);
}

AVX512_INLINE void copy_lines(unsigned char *dst, const unsigned char *src, size_t size,
                              bool is_streaming) {
    for (size_t at = 0; at < size; at += LINE)
        store_line(dst + at, _mm512_loadu_si512(src + at), is_streaming);
}

AVX512_INLINE void copy_row(unsigned char *dst, const unsigned char *src, size_t size) {
    size_t whole = size / LINE * LINE;
    copy_lines(dst, src, whole, false);
    if (whole < size)
        copy_part(dst + whole, src + whole, size - whole);
}

/* The parts of lines at both ends are stored the usual way: dst may have neighbours there. */
AVX512_INLINE void stream_row(unsigned char *dst, const unsigned char *src, size_t size) {
    size_t head = -(uintptr_t)dst % LINE;
    if (head > size)
        head = size;
    if (head > 0)
        copy_part(dst, src, head);
    size_t whole = (size - head) / LINE * LINE;
    copy_lines(dst + head, src + head, whole, true);
    if (head + whole < size)
        copy_part(dst + head + whole, src + head + whole, size - head - whole);
}

/* Four pages side by side: the processor fetches ahead within a page only, so that four streams
 * keep more of memory busy than one. */
AVX512 static void avx512_stream(unsigned char *dst, const unsigned char *src, size_t size) {
    size_t head = -(uintptr_t)dst % LINE;
    if (head > size)
        head = size;
    stream_row(dst, src, head);
    size_t at = head;
    for (; at + 4 * PAGE <= size; at += 4 * PAGE)
        for (size_t run = at; run < at + PAGE; run += 2 * LINE)
            for (size_t page = 0; page < 4 * PAGE; page += PAGE) {
                fetch(src + run + page + 4 * PAGE, 2 * LINE);
                copy_lines(dst + run + page, src + run + page, 2 * LINE, true);
            }
    stream_row(dst + at, src + at, size - at);
}

AVX512_INLINE bool rows_are_lines(const gbx_copy_plane *plane, size_t size) {
    return (size | (uintptr_t)plane->dst | (size_t)plane->outer_dst) % LINE == 0;
}

AVX512_INLINE void stream_rows(const gbx_copy_plane *plane, size_t size) {
    int64_t ahead = 1 + (int64_t)(AHEAD_BYTES / size);
    for (int64_t row = 0; row < plane->outer_count; ++row) {
        const unsigned char *src = plane->src + row * plane->outer_src;
        if (size <= AHEAD_BYTES)
            fetch(src + ahead * plane->outer_src, size);
        stream_row(plane->dst + row * plane->outer_dst, src, size);
    }
}

AVX512 static void avx512_rows(const gbx_copy_plane *plane) {
    size_t size = (size_t)plane->inner_count * plane->element_bytes;
    if (plane->is_streaming && (size >= STREAM_ROW_BYTES || rows_are_lines(plane, size))) {
        if (size < 4 * PAGE) {
            stream_rows(plane, size);
            return;
        }
        for (int64_t row = 0; row < plane->outer_count; ++row)
            avx512_stream(plane->dst + row * plane->outer_dst, plane->src + row * plane->outer_src,
                          size);
        return;
    }
    for (int64_t row = 0; row < plane->outer_count; ++row)
        copy_row(plane->dst + row * plane->outer_dst, plane->src + row * plane->outer_src, size);
}

/* --- steps --- */

/* Every lane, every other one, and every other one from the second, of elements of `bytes`. The
 * lanes in between are masked out of loads and stores: they belong to somebody else. */
AVX512_INLINE __mmask64 even_lanes(uint32_t bytes) {
    return bytes == 1   ? UINT64_C(0x5555555555555555)
           : bytes == 2 ? UINT64_C(0x3333333333333333)
           : bytes == 4 ? UINT64_C(0x0f0f0f0f0f0f0f0f)
                        : UINT64_C(0x00ff00ff00ff00ff);
}

/* The even elements of two lines as one line. */
AVX512_INLINE __m512i join_even(__m512i low, __m512i high, uint32_t bytes) {
    if (bytes == 1)
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(low)),
                                  _mm512_cvtepi16_epi8(high), 1);
    if (bytes == 2)
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)),
                                  _mm512_cvtepi32_epi16(high), 1);
    if (bytes == 4)
        return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)),
                                  _mm512_cvtepi64_epi32(high), 1);
    return _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), high);
}

/* Half a line of elements, each in the lower half of twice its width. */
AVX512_INLINE __m512i spread_even(__m256i half, uint32_t bytes) {
    if (bytes == 1)
        return _mm512_cvtepu8_epi16(half);
    if (bytes == 2)
        return _mm512_cvtepu16_epi32(half);
    if (bytes == 4)
        return _mm512_cvtepu32_epi64(half);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3),
                                    _mm512_castsi256_si512(half));
}

AVX512_INLINE void step_elements(unsigned char *dst, int64_t dst_step, const unsigned char *src,
                                 int64_t src_step, int64_t count, uint32_t bytes) {
    for (int64_t i = 0; i < count; ++i)
        gbx_copy_element(dst + i * dst_step, src + i * src_step, bytes);
}

/* Elements before the first whole line of dst, at most `count`; none where dst is not aligned. */
AVX512_INLINE int64_t before_line(const unsigned char *dst, int64_t count, uint32_t bytes) {
    int64_t before = (int64_t)(-(uintptr_t)dst % LINE / bytes);
    return before < count ? before : count;
}

/* Every other element of src to a run of dst. */
AVX512_INLINE void take_even_row(unsigned char *dst, const unsigned char *src, int64_t count,
                                 uint32_t bytes, bool is_streaming) {
    int64_t side = LINE / (int64_t)bytes;
    __mmask64 mask = even_lanes(bytes);
    int64_t i = before_line(dst, count, bytes);
    step_elements(dst, bytes, src, 2 * bytes, i, bytes);
    bool streams = is_streaming && (uintptr_t)(dst + i * bytes) % LINE == 0;
    for (; i + side <= count; i += side) {
        const unsigned char *at = src + 2 * i * bytes;
        if (is_streaming)
            fetch(at + AHEAD_BYTES, 2 * LINE);
        store_line(dst + i * bytes,
                   join_even(_mm512_maskz_loadu_epi8(mask, at),
                             _mm512_maskz_loadu_epi8(mask, at + LINE), bytes),
                   streams);
    }
    step_elements(dst + i * bytes, bytes, src + 2 * i * bytes, 2 * bytes, count - i, bytes);
}

/* A run of src to every other element of dst. */
AVX512_INLINE void put_even_row(unsigned char *dst, const unsigned char *src, int64_t count,
                                uint32_t bytes) {
    int64_t half = LINE / 2 / (int64_t)bytes;
    __mmask64 mask = even_lanes(bytes);
    int64_t i = 0;
    for (; i + half <= count; i += half) {
        __m256i elements = _mm256_loadu_si256((const __m256i *)(const void *)(src + i * bytes));
        _mm512_mask_storeu_epi8(dst + 2 * i * bytes, mask, spread_even(elements, bytes));
    }
    step_elements(dst + 2 * i * bytes, 2 * bytes, src + i * bytes, bytes, count - i, bytes);
}

/* Elements of 4 or 8 bytes at any step of src, 16 or 8 at a time, to a run of dst. */
AVX512_INLINE void take_row(unsigned char *dst, const unsigned char *src, int64_t step,
                            int64_t count, uint32_t bytes, bool is_streaming) {
    int64_t side = LINE / (int64_t)bytes;
    int64_t i = before_line(dst, count, bytes);
    step_elements(dst, bytes, src, step, i, bytes);
    bool streams = is_streaming && (uintptr_t)(dst + i * bytes) % LINE == 0;
    __m512i ramp = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i at = _mm512_mullo_epi32(ramp, _mm512_set1_epi32((int)step));
    for (; i + side <= count; i += side) {
        const unsigned char *from = src + i * step;
        __m512i line = bytes == 4 ? _mm512_i32gather_epi32(at, from, 1)
                                  : _mm512_i32gather_epi64(_mm512_castsi512_si256(at), from, 1);
        store_line(dst + i * bytes, line, streams);
    }
    step_elements(dst + i * bytes, bytes, src + i * step, step, count - i, bytes);
}

AVX512_INLINE void step_rows(const gbx_copy_plane *plane, uint32_t bytes) {
    bool takes_even = plane->inner_src == 2 * (int64_t)bytes;
    bool puts_even = plane->inner_dst == 2 * (int64_t)bytes;
    for (int64_t row = 0; row < plane->outer_count; ++row) {
        unsigned char *dst = plane->dst + row * plane->outer_dst;
        const unsigned char *src = plane->src + row * plane->outer_src;
        if (puts_even)
            put_even_row(dst, src, plane->inner_count, bytes);
        else if (takes_even)
            take_even_row(dst, src, plane->inner_count, bytes, plane->is_streaming);
        else
            take_row(dst, src, plane->inner_src, plane->inner_count, bytes, plane->is_streaming);
    }
}

/* Whether one of the three rows above does it. The indices of take_row have 32 bits. */
static bool has_step(const gbx_copy_plane *plane) {
    int64_t bytes = plane->element_bytes;
    if (plane->inner_src == bytes)
        return plane->inner_dst == 2 * bytes;
    if (plane->inner_dst != bytes)
        return false;
    int64_t reach = INT32_MAX / 16;
    return plane->inner_src == 2 * bytes ||
           (bytes >= 4 && plane->inner_src > -reach && plane->inner_src < reach);
}

AVX512 static void avx512_step(const gbx_copy_plane *plane) {
    if (!has_step(plane))
        gbx_copy_plain.step(plane);
    else if (plane->element_bytes == 1)
        step_rows(plane, 1);
    else if (plane->element_bytes == 2)
        step_rows(plane, 2);
    else if (plane->element_bytes == 4)
        step_rows(plane, 4);
    else
        step_rows(plane, 8);
}

/* --- tiles --- */

/* Columns of 16 rows of 16 words. */
AVX512_INLINE void transpose_words(__m512i rows[16]) {
    __m512i pairs[16];
    GBX_UNROLL
    for (int i = 0; i < 16; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    /* rows[4 * g + c]: column c of each 4 x 4 block of rows 4 * g to 4 * g + 3. */
    GBX_UNROLL
    for (int i = 0; i < 16; i += 4) {
        rows[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    GBX_UNROLL
    for (int c = 0; c < 4; ++c) {
        __m512i even_low = _mm512_shuffle_i32x4(rows[c], rows[c + 4], 0x88);
        __m512i odd_low = _mm512_shuffle_i32x4(rows[c], rows[c + 4], 0xdd);
        __m512i even_high = _mm512_shuffle_i32x4(rows[c + 8], rows[c + 12], 0x88);
        __m512i odd_high = _mm512_shuffle_i32x4(rows[c + 8], rows[c + 12], 0xdd);
        rows[c] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
        rows[c + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
        rows[c + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
        rows[c + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
    }
}

/*
 * Transposes and stores 16 rows of words. Words are made of narrower elements within lanes of 16
 * bytes, so that four columns of words follow each other and the next four are `lane` columns on.
 */
AVX512_INLINE void store_words(unsigned char *dst, int64_t dst_row, __m512i rows[16], int64_t lane,
                               bool is_streaming) {
    transpose_words(rows);
    GBX_UNROLL
    for (int i = 0; i < 16; ++i)
        store_line(dst + (i / 4 * lane + i % 4) * dst_row, rows[i], is_streaming);
}

/* Four rows of bytes to words: the columns that start at 0, 4, 8 and 12 in each lane. */
AVX512_INLINE void words_of_bytes(__m512i words[4], const unsigned char *src, int64_t src_row) {
    __m512i a = _mm512_loadu_si512(src), b = _mm512_loadu_si512(src + src_row);
    __m512i c = _mm512_loadu_si512(src + 2 * src_row), d = _mm512_loadu_si512(src + 3 * src_row);
    __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    words[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
    words[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
    words[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
    words[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

AVX512 static void avx512_tile_1(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                                 int64_t src_row, bool is_streaming) {
    __m512i rows[4][16];
    for (int i = 0; i < 16; ++i) {
        __m512i words[4];
        words_of_bytes(words, src + 4 * i * src_row, src_row);
        for (int part = 0; part < 4; ++part)
            rows[part][i] = words[part];
    }
    for (int part = 0; part < 4; ++part)
        store_words(dst + 4 * part * dst_row, dst_row, rows[part], 16, is_streaming);
}

AVX512 static void avx512_tile_2(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                                 int64_t src_row, bool is_streaming) {
    __m512i low[16], high[16];
    GBX_UNROLL
    for (int i = 0; i < 16; ++i) {
        __m512i a = _mm512_loadu_si512(src + 2 * i * src_row);
        __m512i b = _mm512_loadu_si512(src + (2 * i + 1) * src_row);
        low[i] = _mm512_unpacklo_epi16(a, b);
        high[i] = _mm512_unpackhi_epi16(a, b);
    }
    store_words(dst, dst_row, low, 8, is_streaming);
    store_words(dst + 4 * dst_row, dst_row, high, 8, is_streaming);
}

AVX512 static void avx512_tile_4(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                                 int64_t src_row, bool is_streaming) {
    __m512i rows[16];
    GBX_UNROLL
    for (int i = 0; i < 16; ++i)
        rows[i] = _mm512_loadu_si512(src + i * src_row);
    store_words(dst, dst_row, rows, 4, is_streaming);
}

AVX512 static void avx512_tile_8(unsigned char *dst, int64_t dst_row, const unsigned char *src,
                                 int64_t src_row, bool is_streaming) {
    __m512i rows[8], columns[8];
    GBX_UNROLL
    for (int i = 0; i < 8; i += 2) {
        __m512i a = _mm512_loadu_si512(src + i * src_row);
        __m512i b = _mm512_loadu_si512(src + (i + 1) * src_row);
        rows[i] = _mm512_unpacklo_epi64(a, b);
        rows[i + 1] = _mm512_unpackhi_epi64(a, b);
    }
    GBX_UNROLL
    for (int c = 0; c < 2; ++c) {
        __m512i even_low = _mm512_shuffle_i64x2(rows[c], rows[c + 2], 0x88);
        __m512i odd_low = _mm512_shuffle_i64x2(rows[c], rows[c + 2], 0xdd);
        __m512i even_high = _mm512_shuffle_i64x2(rows[c + 4], rows[c + 6], 0x88);
        __m512i odd_high = _mm512_shuffle_i64x2(rows[c + 4], rows[c + 6], 0xdd);
        columns[c] = _mm512_shuffle_i64x2(even_low, even_high, 0x88);
        columns[c + 2] = _mm512_shuffle_i64x2(odd_low, odd_high, 0x88);
        columns[c + 4] = _mm512_shuffle_i64x2(even_low, even_high, 0xdd);
        columns[c + 6] = _mm512_shuffle_i64x2(odd_low, odd_high, 0xdd);
    }
    GBX_UNROLL
    for (int i = 0; i < 8; ++i)
        store_line(dst + i * dst_row, columns[i], is_streaming);
}

const gbx_copy_ops gbx_copy_avx512 = {
    .stream = avx512_stream,
    .rows = avx512_rows,
    .step = avx512_step,
    .tiles = {avx512_tile_1, avx512_tile_2, avx512_tile_4, avx512_tile_8},
};

#else
typedef int gbx_no_avx512; /* C wants a declaration in every file */
#endif
