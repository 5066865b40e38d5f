/* mix_spmd on host_build_graph. */
#include "graph.h"

/* All elements of this scene are 4 bytes. */
static gbx_tensor on_device(gbx_orchestration *o, const gbx_tensor *host) {
    gbx_tensor device = *host;
    device.buffer_bytes = (uint64_t)gbx_tensor_numel(host) * sizeof(float);
    device.data = gbx_device_malloc(o, device.buffer_bytes);
    return device;
}

static gbx_tensor input_on_device(gbx_orchestration *o, const gbx_tensor *host) {
    gbx_tensor device = on_device(o, host);
    gbx_copy_to_device(o, device.data, gbx_tensor_origin(host, sizeof(float)), device.buffer_bytes);
    return device;
}

static void return_to_host(gbx_orchestration *o, const gbx_tensor *host, const gbx_tensor *device) {
    gbx_return_to_host(o, gbx_tensor_origin(host, sizeof(float)), device->data,
                       device->buffer_bytes);
}

static gbx_task add_sum(gbx_orchestration *o, const gbx_tensor *x, const gbx_tensor *y,
                        const gbx_tensor *sum) {
    const uint64_t words[] = {gbx_device_tensor(o, x), gbx_device_tensor(o, y),
                              gbx_device_tensor(o, sum)};
    const gbx_tensor_info infos[] = {
        {0, GBX_ROLE_INPUT, *x}, {1, GBX_ROLE_INPUT, *y}, {2, GBX_ROLE_OUTPUT, *sum}};
    return gbx_add_task_with_tensor_info(o, gbx_aiv(ADD), words, 3, infos, 3);
}

/* What all layers share, on the chip. */
typedef struct parameters {
    gbx_tensor w, bias, flags;
    uint64_t scale;
} parameters;

static gbx_task add_layer(gbx_orchestration *o, const parameters *p, int64_t layer,
                          const gbx_tensor *x, const gbx_tensor *y) {
    const layer_tensors tensors = {{*x, gbx_view_select(&p->w, 0, layer),
                                    gbx_view_select(&p->bias, 0, layer), on_device(o, x),
                                    on_device(o, y), *y, gbx_view_select(&p->flags, 0, layer)}};
    uint64_t words[LAYER_SCALE + 1];
    gbx_tensor_info infos[LAYER_SCALE];
    for (uint32_t i = 0; i < LAYER_SCALE; ++i) {
        words[i] = gbx_device_tensor(o, &tensors.slots[i]);
        infos[i] = (gbx_tensor_info){i, layer_role(i), tensors.slots[i]};
    }
    words[LAYER_SCALE] = p->scale;
    return gbx_add_task_with_tensor_info(o, layer_kernels(), words, LAYER_SCALE + 1, infos,
                                         LAYER_SCALE);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor a = input_on_device(o, &run->tensors[A]);
    const gbx_tensor b = input_on_device(o, &run->tensors[B]);
    const parameters p = {input_on_device(o, &run->tensors[W]),
                          input_on_device(o, &run->tensors[BIAS]),
                          input_on_device(o, &run->tensors[FLAGS]), run->scalars[SCALE]};
    const gbx_tensor x = on_device(o, &a), h = on_device(o, &a), u = on_device(o, &a);
    const gbx_tensor g = on_device(o, &a), f = on_device(o, &a);

    gbx_task first = add_sum(o, &a, &b, &x);
    gbx_task layer0 = add_layer(o, &p, 0, &x, &h);
    gbx_task layer1 = add_layer(o, &p, 1, &x, &u);
    gbx_task layer2 = add_layer(o, &p, 2, &h, &g);
    gbx_task last = add_sum(o, &g, &u, &f);

    gbx_add_successor(o, first, layer0);
    gbx_add_successor(o, first, layer1);
    gbx_add_successor(o, layer0, layer2);
    gbx_add_successor(o, layer2, last);
    gbx_add_successor(o, layer1, last);
    return_to_host(o, &run->tensors[FLAGS], &p.flags);
    return_to_host(o, &run->tensors[F], &f);
    return 0;
}
