/* Adds `from` to `to`, and 1 to the element of `to` that the scalar names, inside of it or not. */
#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const float *from = gbx_tensor_f32(gbx_arg_tensor(args, 0));
    float *to = gbx_tensor_f32(gbx_arg_tensor(args, 1));
    int64_t count = gbx_tensor_numel(gbx_arg_tensor(args, 1));
    int64_t element = (int64_t)args[2];
    for (int64_t i = 0; i < count; ++i)
        to[i] += from[i];
    to[element] = element >= 0 && element < count ? to[element] + 1.0f : 1.0f;
}
