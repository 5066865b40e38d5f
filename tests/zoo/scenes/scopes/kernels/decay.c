/* d = b / 2^shift */
#include <math.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *b = gbx_arg_tensor(args, 0), *d = gbx_arg_tensor(args, 1);
    const float *from = gbx_tensor_f32(b);
    float *to = gbx_tensor_f32(d);
    int32_t shift = gbx_arg_i32(args, 2);
    for (int64_t i = 0; i < d->shape[0]; ++i) {
        float value = ldexpf(from[i], -shift);
        to[i] = value;
    }
}
