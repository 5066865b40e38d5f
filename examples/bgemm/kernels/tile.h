/*
 * c = a . b, or c += a . b, of tiles: float16 in, float32 out, any strides.
 *
 * Every element of c is one chain of fused multiply-adds in the order of k: its bits depend neither
 * on how the tile is cut up here, nor on the instructions of the machine.
 */
#ifndef BGEMM_KERNELS_TILE_H
#define BGEMM_KERNELS_TILE_H

#include <glassbox/kernel.h>

#ifdef __AVX512F__
#    include <immintrin.h>
#endif

enum {
    LANES = 16,
    PANEL_ROWS = 8,     /* of c in registers at a time ... */
    PANEL_COLUMNS = 32, /* ... as two vectors each */
    CHUNK_ROWS = 64,    /* of a, converted at a time */
    CHUNK_DEPTH = 128
};

/* What one pass works on, in float32 and padded with zeros. */
typedef struct workspace {
    _Alignas(64) float a[CHUNK_ROWS][CHUNK_DEPTH];
    _Alignas(64) float b[CHUNK_DEPTH][PANEL_COLUMNS];
    _Alignas(64) float c[PANEL_ROWS][PANEL_COLUMNS];
} workspace;

static inline int64_t smaller(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static inline void convert_row(const uint16_t *from, int64_t stride, int64_t count, float *to) {
    int64_t i = 0;
#ifdef __AVX512F__
    if (stride == 1)
        for (; i + LANES <= count; i += LANES)
            _mm512_store_ps(to + i,
                            _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
    for (; i < count; ++i)
        to[i] = gbx_f16_to_f32(from[i * stride]);
}

static inline void multiply_panel(const float (*a)[CHUNK_DEPTH], const workspace *w, int64_t depth,
                                  float (*c)[PANEL_COLUMNS]) {
#ifdef __AVX512F__
    __m512 sums[PANEL_ROWS][2];
    for (int r = 0; r < PANEL_ROWS; ++r)
        for (int v = 0; v < 2; ++v)
            sums[r][v] = _mm512_load_ps(&c[r][v * LANES]);
    for (int64_t k = 0; k < depth; ++k) {
        __m512 low = _mm512_load_ps(&w->b[k][0]), high = _mm512_load_ps(&w->b[k][LANES]);
#    pragma GCC unroll 8
        for (int r = 0; r < PANEL_ROWS; ++r) {
            __m512 factor = _mm512_set1_ps(a[r][k]);
            sums[r][0] = _mm512_fmadd_ps(factor, low, sums[r][0]);
            sums[r][1] = _mm512_fmadd_ps(factor, high, sums[r][1]);
        }
    }
    for (int r = 0; r < PANEL_ROWS; ++r)
        for (int v = 0; v < 2; ++v)
            _mm512_store_ps(&c[r][v * LANES], sums[r][v]);
#else
    for (int r = 0; r < PANEL_ROWS; ++r)
        for (int64_t k = 0; k < depth; ++k)
            for (int j = 0; j < PANEL_COLUMNS; ++j)
                c[r][j] = __builtin_fmaf(a[r][k], w->b[k][j], c[r][j]);
#endif
}

static inline void load_panel(const gbx_tensor *c, int64_t row, int64_t column, int64_t rows,
                              int64_t columns, workspace *w) {
    memset(w->c, 0, sizeof w->c);
    for (int64_t r = 0; r < rows; ++r) {
        const float *from = gbx_tensor_f32(c) + (row + r) * c->strides[0] + column * c->strides[1];
        for (int64_t j = 0; j < columns; ++j)
            w->c[r][j] = from[j * c->strides[1]];
    }
}

static inline void store_panel(const gbx_tensor *c, int64_t row, int64_t column, int64_t rows,
                               int64_t columns, const workspace *w) {
    for (int64_t r = 0; r < rows; ++r) {
        float *to = gbx_tensor_f32(c) + (row + r) * c->strides[0] + column * c->strides[1];
        for (int64_t j = 0; j < columns; ++j)
            to[j * c->strides[1]] = w->c[r][j];
    }
}

/* Rows [row, row + rows) of c, with a part of the depth; both parts of a and b are in `w` then. */
static inline void multiply_rows(const gbx_tensor *b, const gbx_tensor *c, int64_t row,
                                 int64_t rows, int64_t first, int64_t depth, int reads_c,
                                 workspace *w) {
    const uint16_t *elements = (const uint16_t *)gbx_tensor_origin(b, sizeof(uint16_t));
    for (int64_t column = 0; column < c->shape[1]; column += PANEL_COLUMNS) {
        int64_t columns = smaller(PANEL_COLUMNS, c->shape[1] - column);
        memset(w->b, 0, sizeof w->b);
        for (int64_t k = 0; k < depth; ++k)
            convert_row(elements + (first + k) * b->strides[0] + column * b->strides[1],
                        b->strides[1], columns, w->b[k]);
        for (int64_t r = 0; r < rows; r += PANEL_ROWS) {
            int64_t panel_rows = smaller(PANEL_ROWS, rows - r);
            load_panel(c, row + r, column, reads_c ? panel_rows : 0, columns, w);
            multiply_panel((const float(*)[CHUNK_DEPTH]) & w->a[r], w, depth, w->c);
            store_panel(c, row + r, column, panel_rows, columns, w);
        }
    }
}

/* c = a . b; c += a . b where it `accumulates`. */
static inline void multiply_tile(const gbx_tensor *a, const gbx_tensor *b, const gbx_tensor *c,
                                 int accumulates) {
    const uint16_t *elements = (const uint16_t *)gbx_tensor_origin(a, sizeof(uint16_t));
    workspace w;
    for (int64_t row = 0; row < c->shape[0]; row += CHUNK_ROWS) {
        int64_t rows = smaller(CHUNK_ROWS, c->shape[0] - row);
        for (int64_t k = 0; k < a->shape[1]; k += CHUNK_DEPTH) {
            int64_t depth = smaller(CHUNK_DEPTH, a->shape[1] - k);
            memset(w.a, 0, sizeof w.a);
            for (int64_t r = 0; r < rows; ++r)
                convert_row(elements + (row + r) * a->strides[0] + k * a->strides[1], a->strides[1],
                            depth, w.a[r]);
            multiply_rows(b, c, row, rows, k, depth, accumulates || k > 0, &w);
        }
    }
}

#endif
