/* What f and the flags must be, computed in double without the kernels. */
#include <stdlib.h>

#include <glassbox/orchestration.h>

#include "layer.h"

/* y = relu((scale * x) . w + bias), rows x size. */
static void compute_layer(const gbx_run_args *run, int64_t layer, const double *x, double *y) {
    int64_t rows = run->tensors[0].shape[0], size = run->tensors[0].shape[1];
    const float *w = gbx_tensor_f32(&run->tensors[2]) + layer * size * size;
    const float *bias = gbx_tensor_f32(&run->tensors[3]) + layer * size;
    double scale = gbx_arg_f32(run->scalars, 0);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < size; ++j) {
            double sum = bias[j];
            for (int64_t k = 0; k < size; ++k)
                sum += scale * x[i * size + k] * w[k * size + j];
            y[i * size + j] = sum > 0.0 ? sum : 0.0;
        }
}

static void compute(const gbx_run_args *run, double *x, double *h, double *u, double *g) {
    int64_t count = gbx_tensor_numel(&run->tensors[0]);
    const float *a = gbx_tensor_f32(&run->tensors[0]);
    const float *b = gbx_tensor_f32(&run->tensors[1]);
    float *f = gbx_tensor_f32(&run->tensors[5]);
    for (int64_t i = 0; i < count; ++i)
        x[i] = (double)a[i] + (double)b[i];
    compute_layer(run, 0, x, h);
    compute_layer(run, 1, x, u);
    compute_layer(run, 2, h, g);
    for (int64_t i = 0; i < count; ++i)
        f[i] = (float)(g[i] + u[i]);
}

int golden(const gbx_run_args *run) {
    int64_t count = gbx_tensor_numel(&run->tensors[0]);
    double *values = calloc((size_t)(4 * count), sizeof *values);
    if (!values)
        return 1;
    compute(run, values, values + count, values + 2 * count, values + 3 * count);
    free(values);
    uint32_t *flags = (uint32_t *)gbx_tensor_origin(&run->tensors[4], sizeof(uint32_t));
    for (int64_t block = 0; block < LAYERS * BLOCKS; ++block)
        flags[block * FLAGS_PER_BLOCK + PREPARED] = flags[block * FLAGS_PER_BLOCK + MULTIPLIED] = 1;
    return 0;
}
