/*
 * partial[i] = sum over tokens t of weights[i][t] * value[t]: what one block adds to the output.
 *
 * in weights [group, tokens], in value [tokens, head_dim]: float16 or bfloat16
 * out partial [group, head_dim]: float32
 */
#include "tiles.h"

/* sums[i] += weights[i][t] * value[t] for ACCUMULATORS rows, 16 tokens and one register. */
VECTOR_INLINE void multiply_few(const float (*weights)[TILE_COLUMNS], const float *value,
                                float *sums) {
    f32xr sum[ACCUMULATORS];
    for (int i = 0; i < ACCUMULATORS; ++i)
        sum[i] = load_register(sums + i * TILE_COLUMNS);
    for (int t = 0; t < LANES; ++t)
        for (int i = 0; i < ACCUMULATORS; ++i)
            sum[i] += load_register(value + t * TILE_COLUMNS) * weights[i][t];
    for (int i = 0; i < ACCUMULATORS; ++i)
        store_register(sums + i * TILE_COLUMNS, sum[i]);
}

/* The same for 16 rows and all columns. */
VECTOR_INLINE void multiply(const tile *weights, const tile *value, int64_t columns, tile *sums) {
    for (int64_t column = 0; column < columns; column += REGISTER_LANES)
        for (int first = 0; first < LANES; first += ACCUMULATORS)
            multiply_few(weights->at + first, &value->at[0][column], &sums->at[first][column]);
}

static void multiply_region(const gbx_tensor *weights, const gbx_tensor *value,
                            const gbx_tensor *partial, region target) {
    tile sums, few_weights, tokens;
    memset(&sums, 0, sizeof sums);
    for (int64_t token = 0; token < value->shape[0]; token += LANES) {
        load_tile(weights, region_at(weights, target.row, token, LANES), &few_weights);
        load_tile(value, region_at(value, token, target.column, TILE_COLUMNS), &tokens);
        multiply(&few_weights, &tokens, target.columns, &sums);
    }
    store_tile(&sums, partial, target);
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *weights = gbx_arg_tensor(args, 0);
    const gbx_tensor *value = gbx_arg_tensor(args, 1);
    const gbx_tensor *partial = gbx_arg_tensor(args, 2);
    for (int64_t row = 0; row < partial->shape[0]; row += LANES)
        for (int64_t column = 0; column < partial->shape[1]; column += TILE_COLUMNS)
            multiply_region(weights, value, partial, region_at(partial, row, column, TILE_COLUMNS));
}
