/* The largest absolute value. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *z = gbx_arg_tensor(args, 0);
    float largest = 0.0f;
    for (int64_t i = 0; i < z->shape[0]; ++i) {
        float value = gbx_tensor_f32(z)[i];
        value = value < 0.0f ? -value : value;
        largest = value > largest ? value : largest;
    }
    *gbx_tensor_f32(gbx_arg_tensor(args, 1)) = largest;
}
