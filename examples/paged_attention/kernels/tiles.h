/*
 * Tiles: up to 16 rows of up to TILE_COLUMNS columns of a 2-dimensional tensor as float32, in the
 * kernel's own memory. Tensors may have any strides; rows without gaps are copied as vectors.
 */
#ifndef PAGED_ATTENTION_TILES_H
#define PAGED_ATTENTION_TILES_H

#include "vectors.h"

enum { TILE_COLUMNS = 256 };

typedef struct tile {
    _Alignas(64) float at[LANES][TILE_COLUMNS];
} tile;

/* A part of a tensor: rows and columns that a tile has room for. */
typedef struct region {
    int64_t row;
    int64_t rows;
    int64_t column;
    int64_t columns;
} region;

VECTOR_INLINE int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

VECTOR_INLINE region region_at(const gbx_tensor *tensor, int64_t row, int64_t column,
                               int64_t column_limit) {
    region part = {row, smaller(tensor->shape[0] - row, LANES), column,
                   smaller(tensor->shape[1] - column, column_limit)};
    return part;
}

/* Columns of a region, rounded up to full vectors. */
VECTOR_INLINE int64_t padded(int64_t columns) {
    return (columns + LANES - 1) / LANES * LANES;
}

/* `count` elements of a row and zeros behind them, up to 16. */
VECTOR_INLINE u16x16 load_few_u16(const uint16_t *from, int64_t stride, int64_t count) {
    u16x16 value = {0};
    for (int64_t i = 0; i < count; ++i)
        value[i] = from[i * stride];
    return value;
}

VECTOR_INLINE void widen_row(const uint16_t *from, int64_t stride, int64_t count, uint32_t dtype,
                             float *to) {
    int64_t column = 0;
    if (stride == 1)
        for (; column + LANES <= count; column += LANES)
            store_f32x16(to + column, widen(load_u16x16(from + column), dtype));
    for (; column < count; column += LANES) {
        int64_t left = smaller(count - column, LANES);
        store_f32x16(to + column, widen(load_few_u16(from + column * stride, stride, left), dtype));
    }
}

/* Prefetches a row that is read soon. */
VECTOR_INLINE void prefetch_row(const uint16_t *from, int64_t count) {
    for (int64_t column = 0; column < count; column += 64 / (int64_t)sizeof *from)
        __builtin_prefetch(from + column);
}

/*
 * Loads a region of a float16 or bfloat16 tensor, with zeros up to full vectors and up to 16 rows.
 * The rest of the tile is not touched.
 */
VECTOR_INLINE void load_tile(const gbx_tensor *tensor, region part, tile *to) {
    const uint16_t *base = (const uint16_t *)gbx_tensor_origin(tensor, sizeof *base) +
                           part.row * tensor->strides[0] + part.column * tensor->strides[1];
    for (int64_t row = 0; row < part.rows; ++row) {
        if (tensor->strides[1] == 1 && part.row + row + LANES < tensor->shape[0])
            prefetch_row(base + (row + LANES) * tensor->strides[0], part.columns);
        widen_row(base + row * tensor->strides[0], tensor->strides[1], part.columns, tensor->dtype,
                  to->at[row]);
    }
    for (int64_t row = part.rows; row < LANES; ++row)
        memset(to->at[row], 0, (size_t)padded(part.columns) * sizeof(float));
}

/* A region of a float32 tensor. */
VECTOR_INLINE void store_tile(const tile *from, const gbx_tensor *tensor, region part) {
    int64_t stride = tensor->strides[1];
    float *base =
        gbx_tensor_f32(tensor) + part.row * tensor->strides[0] + part.column * tensor->strides[1];
    for (int64_t row = 0; row < part.rows; ++row) {
        float *to = base + row * tensor->strides[0];
        if (stride == 1)
            memcpy(to, from->at[row], (size_t)part.columns * sizeof(float));
        else
            for (int64_t column = 0; column < part.columns; ++column)
                to[column * stride] = from->at[row][column];
    }
}

#endif
