/* c += a . b by its definition, summed in double. */
#include <glassbox/kernel.h>

static double element(const gbx_tensor *tensor, int64_t row, int64_t column) {
    const uint16_t *elements = (const uint16_t *)gbx_tensor_origin(tensor, sizeof(uint16_t));
    return gbx_f16_to_f32(elements[row * tensor->strides[0] + column * tensor->strides[1]]);
}

static float *c_element(const gbx_tensor *c, int64_t row, int64_t column) {
    return gbx_tensor_f32(c) + row * c->strides[0] + column * c->strides[1];
}

void kernel_entry(const uint64_t *args) {
    const gbx_tensor *a = gbx_arg_tensor(args, 0);
    const gbx_tensor *b = gbx_arg_tensor(args, 1);
    const gbx_tensor *c = gbx_arg_tensor(args, 2);
    for (int64_t i = 0; i < c->shape[0]; ++i)
        for (int64_t j = 0; j < c->shape[1]; ++j) {
            double sum = *c_element(c, i, j);
            for (int64_t k = 0; k < a->shape[1]; ++k)
                sum += element(a, i, k) * element(b, k, j);
            *c_element(c, i, j) = (float)sum;
        }
}
