/*
 * The graph on host_build_graph: this function runs on the host. It allocates memory on the chip,
 * copies the inputs there and requests the outputs back; the tasks run after it has returned.
 *
 * A task gets raw words here. To dump it, the runtime needs tensor info, which describes the words
 * that are tensors. There are two ways to give it, and this example shows both.
 */
#include "graph.h"

/* The same tensor on the chip: its memory there, without contents. */
static gbx_tensor on_device(gbx_orchestration *o, const gbx_tensor *host) {
    gbx_tensor device = *host;
    device.buffer_bytes = (uint64_t)gbx_tensor_numel(host) * sizeof(float);
    device.data = gbx_device_malloc(o, device.buffer_bytes);
    return device;
}

static gbx_tensor input_on_device(gbx_orchestration *o, const gbx_tensor *host) {
    gbx_tensor device = on_device(o, host);
    gbx_copy_to_device(o, device.data, gbx_tensor_f32(host), device.buffer_bytes);
    return device;
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    const gbx_tensor a = input_on_device(o, &run->tensors[A]);
    const gbx_tensor b = input_on_device(o, &run->tensors[B]);
    const gbx_tensor s = on_device(o, &run->tensors[F]);
    const gbx_tensor f = on_device(o, &run->tensors[F]);

    /* A kernel finds a tensor through its description, which lies on the chip too. */
    const uint64_t s_word = gbx_device_tensor(o, &s);

    /* Task 0, s = a + b: added first, described afterwards. */
    const uint64_t add_words[] = {gbx_device_tensor(o, &a), gbx_device_tensor(o, &b), s_word};
    const gbx_tensor_info add_infos[] = {
        {0, GBX_ROLE_INPUT, a}, {1, GBX_ROLE_INPUT, b}, {2, GBX_ROLE_OUTPUT, s}};
    gbx_task add = gbx_add_task(o, gbx_aiv(ADD), add_words, 3);
    gbx_set_tensor_info_to_task(o, add, add_infos, 3);
    gbx_dump_task_words(o, add, 1u << 2); /* s: --dump-tensor=partial keeps only what is marked */

    /* Task 1, f = s + 1: both in one call. Word 2 has no tensor info: it is a scalar. */
    const uint64_t scalar_words[] = {s_word, gbx_device_tensor(o, &f), gbx_word_f32(ADDEND)};
    const gbx_tensor_info scalar_infos[] = {{0, GBX_ROLE_INPUT, s}, {1, GBX_ROLE_OUTPUT, f}};
    gbx_task add_scalar =
        gbx_add_task_with_tensor_info(o, gbx_aiv(ADD_SCALAR), scalar_words, 3, scalar_infos, 2);

    gbx_dump_task_words(o, add_scalar, UINT64_MAX);

    gbx_add_successor(o, add, add_scalar);
    gbx_return_to_host(o, gbx_tensor_f32(&run->tensors[F]), f.data, f.buffer_bytes);
    return 0;
}
