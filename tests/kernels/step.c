/* Tensor 1 = 3 * tensor 0 + scalar 2 (int64), after scalar 3 microseconds. */
#define _GNU_SOURCE
#include <unistd.h>

#include <glassbox/kernel.h>

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *in = gbx_arg_tensor(args, 0);
    const gbx_tensor *out = gbx_arg_tensor(args, 1);
    const int64_t *from = (const int64_t *)gbx_tensor_origin(in, sizeof *from);
    int64_t *to = (int64_t *)gbx_tensor_origin(out, sizeof *to);
    if (args[3])
        usleep((useconds_t)args[3]);
    for (int64_t i = 0; i < out->shape[0]; ++i) {
        uint64_t before = (uint64_t)from[i * in->strides[0]];
        to[i * out->strides[0]] = (int64_t)(3 * before + args[2]);
    }
}
