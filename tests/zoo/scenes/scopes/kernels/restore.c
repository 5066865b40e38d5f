/* e = d * 2^shift */
#include <math.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *d = gbx_arg_tensor(args, 0), *e = gbx_arg_tensor(args, 1);
    int32_t shift = gbx_arg_i32(args, 2);
    for (int64_t i = 0; i < e->shape[0]; ++i)
        gbx_tensor_f32(e)[i] = ldexpf(gbx_tensor_f32(d)[i], shift);
}
