/* How often each id was seen. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *ids = gbx_arg_tensor(args, 0);
    const int32_t *id = gbx_tensor_origin(ids, sizeof *id);
    int32_t *counts = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *counts);
    for (int64_t i = 0; i < ids->shape[0]; ++i)
        counts[id[i]] += 1;
}
