/* What f must be, computed on the host without the kernels: (a + b) + 1. */
#include <glassbox/orchestration.h>

int golden(const gbx_run_args *run) {
    const float *a = gbx_tensor_f32(&run->tensors[0]);
    const float *b = gbx_tensor_f32(&run->tensors[1]);
    float *f = gbx_tensor_f32(&run->tensors[2]);
    int64_t count = gbx_tensor_numel(&run->tensors[2]);
    for (int64_t i = 0; i < count; ++i)
        f[i] = (float)((double)a[i] + (double)b[i] + 1.0);
    return 0;
}
