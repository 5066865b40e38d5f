/* x = scales[id] * (row - zero_point), as float16. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *rows = gbx_arg_tensor(args, 0), *x = gbx_arg_tensor(args, 3);
    const int8_t *from = gbx_tensor_origin(rows, sizeof *from);
    const uint16_t *scales = gbx_tensor_origin(gbx_arg_tensor(args, 1), sizeof *scales);
    const int32_t *ids = gbx_tensor_origin(gbx_arg_tensor(args, 2), sizeof *ids);
    uint16_t *to = gbx_tensor_origin(x, sizeof *to);
    int32_t zero_point = gbx_arg_i32(args, 4);
    for (int64_t i = 0; i < x->shape[0]; ++i) {
        float scale = gbx_bf16_to_f32(scales[ids[i]]);
        for (int64_t j = 0; j < x->shape[1]; ++j) {
            int32_t value = from[i * rows->strides[0] + j] - zero_point;
            to[i * x->strides[0] + j] = gbx_f32_to_f16(scale * (float)value);
        }
    }
}
