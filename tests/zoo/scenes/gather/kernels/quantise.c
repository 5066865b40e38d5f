/* codes = y / step, rounded to the nearest and kept from -128 to 127. */
#include <math.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *y = gbx_arg_tensor(args, 0), *codes = gbx_arg_tensor(args, 1);
    const uint16_t *from = gbx_tensor_origin(y, sizeof *from);
    int8_t *to = gbx_tensor_origin(codes, sizeof *to);
    float step = gbx_arg_f32(args, 2);
    int64_t count = gbx_tensor_numel(codes);
    for (int64_t i = 0; i < count; ++i) {
        float value = rintf(gbx_bf16_to_f32(from[i]) / step);
        value = value < -128.0f ? -128.0f : value;
        value = value > 127.0f ? 127.0f : value;
        to[i] = (int8_t)value;
    }
}
