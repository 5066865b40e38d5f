/* scores = query . key^T, one product after the other. */
#include "elements.h"

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *query = gbx_arg_tensor(args, 0);
    const gbx_tensor *key = gbx_arg_tensor(args, 1);
    const gbx_tensor *scores = gbx_arg_tensor(args, 2);
    for (int64_t row = 0; row < scores->shape[0]; ++row)
        for (int64_t token = 0; token < scores->shape[1]; ++token) {
            double sum = 0;
            for (int64_t d = 0; d < query->shape[1]; ++d)
                sum += get(query, row, d) * get(key, token, d);
            set(scores, row, token, sum);
        }
}
