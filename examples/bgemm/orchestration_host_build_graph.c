/* bgemm on host_build_graph: copies the matrices to the chip; tasks get views of them. */
#include "graph.h"

static gbx_tensor on_device(gbx_orchestration *o, const gbx_tensor *host, uint64_t element_bytes) {
    gbx_tensor device = *host;
    device.buffer_bytes = (uint64_t)gbx_tensor_numel(host) * element_bytes;
    device.data = gbx_device_malloc(o, device.buffer_bytes);
    return device;
}

static gbx_tensor input_on_device(gbx_orchestration *o, const gbx_tensor *host) {
    gbx_tensor device = on_device(o, host, sizeof(uint16_t));
    gbx_copy_to_device(o, device.data, gbx_tensor_origin(host, sizeof(uint16_t)),
                       device.buffer_bytes);
    return device;
}

static gbx_task add_product(gbx_orchestration *o, const product *p) {
    const uint64_t words[] = {gbx_device_tensor(o, &p->a), gbx_device_tensor(o, &p->b),
                              gbx_device_tensor(o, &p->c)};
    const gbx_tensor_info infos[] = {{0, GBX_ROLE_INPUT, p->a},
                                     {1, GBX_ROLE_INPUT, p->b},
                                     {2, p->is_first ? GBX_ROLE_OUTPUT : GBX_ROLE_INOUT, p->c}};
    gbx_task_kernels kernels = gbx_aic(p->is_first ? MATMUL : MATMUL_ADD);
    return gbx_add_task_with_tensor_info(o, kernels, words, 3, infos, 3);
}

static void add_row(gbx_orchestration *o, const tiling *t, int64_t batch, int64_t row) {
    for (int64_t k = 0; k < t->depth; ++k)
        for (int64_t column = 0; column < t->columns; ++column) {
            product p = product_at(t, batch, row, k, column);
            gbx_task task = add_product(o, &p);
            if (!p.is_first)
                gbx_add_successor(o, previous_of(t, task), task);
        }
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    if (tile_is_wrong(o, run))
        return 0;
    const gbx_tensor a = input_on_device(o, &run->tensors[A]);
    const gbx_tensor b = input_on_device(o, &run->tensors[B]);
    const gbx_tensor c = on_device(o, &run->tensors[C], sizeof(float));
    const tiling t = tiling_of(&a, &b, &c, gbx_arg_i32(run->scalars, TILE));
    for (int64_t batch = 0; batch < t.batches; ++batch)
        for (int64_t row = 0; row < t.rows; ++row)
            add_row(o, &t, batch, row);
    gbx_return_to_host(o, gbx_tensor_f32(&run->tensors[C]), c.data, c.buffer_bytes);
    return 0;
}
