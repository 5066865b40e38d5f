/* AIC of a layer: multiplies the block's rows once AIV0 has scaled them. */
#include "rows.h"

void kernel_entry(const uint64_t *args) {
    row_range rows = rows_of_block(args);
    int64_t depth = gbx_arg_tensor(args, LAYER_W)->shape[0];
    int64_t columns = gbx_arg_tensor(args, LAYER_W)->shape[1];
    gbx_flag_wait(flag_of(args, PREPARED), 1);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float *scaled = row_of(args, LAYER_SCALED, i);
        float *product = row_of(args, LAYER_PRODUCT, i);
        for (int64_t j = 0; j < columns; ++j)
            product[j] = 0.0f;
        for (int64_t k = 0; k < depth; ++k) {
            const float *w = row_of(args, LAYER_W, k);
            for (int64_t j = 0; j < columns; ++j)
                product[j] += scaled[k] * w[j];
        }
    }
    gbx_flag_set(flag_of(args, MULTIPLIED), 1);
}
