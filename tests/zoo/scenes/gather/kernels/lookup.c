/* rows[i] = table[ids[i]] */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *table = gbx_arg_tensor(args, 0), *rows = gbx_arg_tensor(args, 2);
    const int32_t *ids = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *ids);
    for (int64_t i = 0; i < rows->shape[0]; ++i) {
        const int8_t *from = gbx_tensor_origin(table, sizeof *from);
        int8_t *to = gbx_tensor_origin(rows, sizeof *to);
        memcpy(to + i * rows->strides[0], from + ids[i] * table->strides[0],
               (size_t)table->shape[1]);
    }
}
