/* A task of 31 tensors: tensor 1 = scalar 31 (int64). */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    *(int64_t *)gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof(int64_t)) = gbx_arg_i64(args, 31);
}
