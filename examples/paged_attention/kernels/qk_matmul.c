/*
 * scores[i][j] = query[i] . key[j]: rows of the query against the tokens of a block.
 *
 * in query [group, head_dim], in key [tokens, head_dim]: bfloat16 or float16
 * out scores [group, tokens]: float32
 */
#include "tiles.h"

/* The transpose of a tile: a vector for each column, a row in each lane. */
typedef struct columns {
    f32x16 at[TILE_COLUMNS];
} columns;

static void columns_of_tile(const tile *from, int64_t count, columns *to) {
    for (int64_t column = 0; column < count; column += LANES) {
        f32x16 block[LANES];
        for (int i = 0; i < LANES; ++i)
            block[i] = load_f32x16(&from->at[i][column]);
        transpose_16x16(block);
        for (int i = 0; i < LANES; ++i)
            to->at[column + i] = block[i];
    }
}

static void tile_of_columns(const columns *from, int64_t count, tile *to) {
    for (int64_t column = 0; column < count; column += LANES) {
        f32x16 block[LANES];
        for (int i = 0; i < LANES; ++i)
            block[i] = from->at[column + i];
        transpose_16x16(block);
        for (int i = 0; i < LANES; ++i)
            store_f32x16(&to->at[i][column], block[i]);
    }
}

/* sums[j] += query . key[j] for ACCUMULATORS tokens and the rows of one register. */
VECTOR_INLINE void multiply_few(const float *query, const float (*key)[TILE_COLUMNS], int64_t depth,
                                float *sums) {
    f32xr sum[ACCUMULATORS];
    for (int j = 0; j < ACCUMULATORS; ++j)
        sum[j] = load_register(sums + j * LANES);
    for (int64_t d = 0; d < depth; ++d)
        for (int j = 0; j < ACCUMULATORS; ++j)
            sum[j] += load_register(query + d * LANES) * key[j][d];
    for (int j = 0; j < ACCUMULATORS; ++j)
        store_register(sums + j * LANES, sum[j]);
}

/* The same for the 16 tokens of a tile and 16 rows. */
VECTOR_INLINE void multiply(const columns *query, const tile *key, int64_t depth, f32x16 *sums) {
    for (int first = 0; first < LANES; first += ACCUMULATORS)
        for (int lane = 0; lane < LANES; lane += REGISTER_LANES)
            multiply_few((const float *)query->at + lane, key->at + first, depth,
                         (float *)(sums + first) + lane);
}

/* Adds one part of the depth to the sums of the tokens of a region of scores. */
static void add_depth(const gbx_tensor *query, const gbx_tensor *key, region target, int64_t depth,
                      columns *sums) {
    tile rows;
    columns transposed;
    region part = region_at(query, target.row, depth, TILE_COLUMNS);
    load_tile(query, part, &rows);
    columns_of_tile(&rows, part.columns, &transposed);
    for (int64_t token = 0; token < target.columns; token += LANES) {
        load_tile(key, region_at(key, target.column + token, depth, TILE_COLUMNS), &rows);
        multiply(&transposed, &rows, part.columns, sums->at + token);
    }
}

static void multiply_region(const gbx_tensor *query, const gbx_tensor *key,
                            const gbx_tensor *scores, region target) {
    tile result;
    columns sums;
    memset(&sums, 0, sizeof sums.at[0] * (size_t)padded(target.columns));
    for (int64_t depth = 0; depth < query->shape[1]; depth += TILE_COLUMNS)
        add_depth(query, key, target, depth, &sums);
    tile_of_columns(&sums, target.columns, &result);
    store_tile(&result, scores, target);
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *query = gbx_arg_tensor(args, 0);
    const gbx_tensor *key = gbx_arg_tensor(args, 1);
    const gbx_tensor *scores = gbx_arg_tensor(args, 2);
    for (int64_t row = 0; row < scores->shape[0]; row += LANES)
        for (int64_t token = 0; token < scores->shape[1]; token += TILE_COLUMNS)
            multiply_region(query, key, scores, region_at(scores, row, token, TILE_COLUMNS));
}
