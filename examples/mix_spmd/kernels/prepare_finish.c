/* AIV0 of a layer: scales the block's rows for the AIC, then finishes the first half of them. */
#include "rows.h"

void kernel_entry(const uint64_t *args) {
    row_range rows = rows_of_block(args);
    int64_t depth = gbx_arg_tensor(args, LAYER_X)->shape[1];
    float scale = gbx_arg_f32(args, LAYER_SCALE);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float *x = row_of(args, LAYER_X, i);
        float *scaled = row_of(args, LAYER_SCALED, i);
        for (int64_t k = 0; k < depth; ++k)
            scaled[k] = x[k] * scale;
    }
    gbx_flag_set(flag_of(args, PREPARED), 1);
    rows.end = (rows.begin + rows.end) / 2;
    finish_rows(args, rows);
}
