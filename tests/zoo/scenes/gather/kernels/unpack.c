/* w = step * weights: int4, two a byte, the low half first; each row begins at a byte. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *packed = gbx_arg_tensor(args, 0), *w = gbx_arg_tensor(args, 1);
    float step = gbx_arg_f32(args, 2);
    int64_t columns = packed->shape[1];
    for (int64_t i = 0; i < packed->shape[0]; ++i) {
        const uint8_t *from = (const uint8_t *)(uintptr_t)packed->data + i * packed->strides[0] / 2;
        uint16_t *to = (uint16_t *)gbx_tensor_origin(w, sizeof *to) + i * w->strides[0];
        for (int64_t j = 0; j < columns; ++j) {
            int half = from[j / 2] >> (j % 2 * 4) & 15;
            int value = half < 8 ? half : half - 16;
            to[j] = gbx_f32_to_f16(step * (float)value);
        }
    }
}
