/* partial = weights . value, one product after the other. */
#include "elements.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *weights = gbx_arg_tensor(args, 0);
    const gbx_tensor *value = gbx_arg_tensor(args, 1);
    const gbx_tensor *partial = gbx_arg_tensor(args, 2);
    for (int64_t row = 0; row < partial->shape[0]; ++row)
        for (int64_t d = 0; d < partial->shape[1]; ++d) {
            double sum = 0;
            for (int64_t token = 0; token < value->shape[0]; ++token)
                sum += get(weights, row, token) * get(value, token, d);
            set(partial, row, d, sum);
        }
}
