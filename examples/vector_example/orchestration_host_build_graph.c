/* The diamond on host_build_graph: on the host, with explicit copies and explicit edges. */
#include "graph.h"

/* A tensor on the chip, with the word that a kernel finds it by. */
typedef struct device_tensor {
    gbx_tensor tensor;
    uint64_t word;
} device_tensor;

static device_tensor like(gbx_orchestration *o, const gbx_tensor *host) {
    device_tensor made = {*host, 0};
    made.tensor.buffer_bytes = (uint64_t)gbx_tensor_numel(host) * sizeof(float);
    made.tensor.data = gbx_device_malloc(o, made.tensor.buffer_bytes);
    made.word = gbx_device_tensor(o, &made.tensor);
    return made;
}

static device_tensor copied(gbx_orchestration *o, const gbx_tensor *host) {
    device_tensor made = like(o, host);
    gbx_copy_to_device(o, made.tensor.data, gbx_tensor_f32(host), made.tensor.buffer_bytes);
    return made;
}

static gbx_task add_binary(gbx_orchestration *o, uint32_t kernel, const device_tensor *x,
                           const device_tensor *y, const device_tensor *out) {
    const uint64_t words[] = {x->word, y->word, out->word};
    const gbx_tensor_info infos[] = {{0, GBX_ROLE_INPUT, x->tensor},
                                     {1, GBX_ROLE_INPUT, y->tensor},
                                     {2, GBX_ROLE_OUTPUT, out->tensor}};
    return gbx_add_task_with_tensor_info(o, gbx_aiv(kernel), words, 3, infos, 3);
}

static gbx_task add_with_scalar(gbx_orchestration *o, const device_tensor *x,
                                const device_tensor *out, float addend) {
    const uint64_t words[] = {x->word, out->word, gbx_word_f32(addend)};
    const gbx_tensor_info infos[] = {{0, GBX_ROLE_INPUT, x->tensor},
                                     {1, GBX_ROLE_OUTPUT, out->tensor}};
    return gbx_add_task_with_tensor_info(o, gbx_aiv(ADD_SCALAR), words, 3, infos, 2);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor *result = &run->tensors[F];
    const device_tensor a = copied(o, &run->tensors[A]), b = copied(o, &run->tensors[B]);
    const device_tensor s = like(o, result), u = like(o, result), v = like(o, result);
    const device_tensor p = like(o, result), f = like(o, result);

    gbx_task sum = add_binary(o, ADD, &a, &b, &s);
    gbx_task plus_one = add_with_scalar(o, &s, &u, 1.0f);
    gbx_task plus_two = add_with_scalar(o, &s, &v, 2.0f);
    gbx_task product = add_binary(o, MUL, &u, &v, &p);
    gbx_task last = add_binary(o, ADD, &p, &s, &f);

    gbx_add_successor(o, sum, plus_one);
    gbx_add_successor(o, sum, plus_two);
    gbx_add_successor(o, plus_one, product);
    gbx_add_successor(o, plus_two, product);
    gbx_add_successor(o, product, last);
    gbx_add_successor(o, sum, last);
    gbx_return_to_host(o, gbx_tensor_f32(result), f.tensor.data, f.tensor.buffer_bytes);
    return 0;
}
