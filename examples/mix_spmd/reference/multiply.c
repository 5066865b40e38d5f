/* AIC: the product. */
#include "definition.h"

void kernel_entry(const uint64_t *args) {
    int64_t end = first_row(args, gbx_local(args)->block_idx + 1);
    for (int64_t i = first_row(args, gbx_local(args)->block_idx); i < end; ++i)
        for (int64_t j = 0; j < gbx_arg_tensor(args, LAYER_PRODUCT)->shape[1]; ++j)
            *element(args, LAYER_PRODUCT, i, j) = (float)product_at(args, i, j);
    set_flag(args, MULTIPLIED);
}
