#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "scene/internal.h"

/* Large pages where the system has them, because touching fresh memory is slow. */
static gbx_status allocate(const char *name, const gbx_tensor *like, gbx_tensor *out_tensor) {
    uint64_t bytes = gbx_tensor_payload_bytes(like);
    void *memory =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return gbx_fail_memory("allocating %" PRIu64 " bytes for argument %s", bytes, name);
    madvise(memory, bytes, MADV_HUGEPAGE);
    *out_tensor = *like;
    out_tensor->data = (uint64_t)(uintptr_t)memory;
    out_tensor->buffer_bytes = bytes;
    return NULL;
}

static void *memory_of(const gbx_tensor *tensor) {
    return (void *)(uintptr_t)tensor->data;
}

static void release(gbx_tensor *tensor) {
    if (tensor->data)
        munmap(memory_of(tensor), tensor->buffer_bytes ? tensor->buffer_bytes : 1);
    tensor->data = 0;
}

static gbx_status fill(const gbx_scene_arg *arg, const gbx_tensor *tensor) {
    return gbx_status_annotate(gbx_fill_tensor(&arg->fill, tensor, memory_of(tensor)),
                               "filling argument %s", arg->name);
}

static gbx_status add_tensor(gbx_case_data *data, const gbx_scene_arg *arg) {
    uint32_t index = data->tensor_count++;
    gbx_run_tensor *tensor = &data->tensors[index];
    data->args[index] = arg;
    tensor->name = arg->name;
    tensor->role = (gbx_role)arg->role; /* outputs go to the chip, too: with their poison */
    GBX_TRY(allocate(arg->name, &arg->tensor, &tensor->tensor));
    if (arg->role != GBX_ROLE_INPUT)
        return NULL;
    GBX_TRY(fill(arg, &tensor->tensor));
    mprotect(memory_of(&tensor->tensor), tensor->tensor.buffer_bytes, PROT_READ);
    return NULL;
}

static void add_scalar(gbx_case_data *data, const gbx_scene_arg *arg) {
    uint32_t index = data->scalar_count++;
    data->scalars[index] = arg->fill.value_bits;
    data->scalar_names[index] = arg->name;
    data->scalar_dtypes[index] = (gbx_dtype)arg->tensor.dtype;
}

gbx_status gbx_case_data_create(const gbx_scene *scene, const gbx_scene_case *one,
                                gbx_case_data *out_data) {
    memset(out_data, 0, sizeof *out_data);
    out_data->source = one;
    for (size_t i = 0; i < scene->arg_count; ++i) {
        const gbx_scene_arg *arg = &one->args[i];
        if (arg->role == GBX_PARAMETER_SCALAR)
            add_scalar(out_data, arg);
        else
            GBX_TRY(add_tensor(out_data, arg));
    }
    return NULL;
}

gbx_status gbx_case_data_restore(gbx_case_data *data) {
    for (uint32_t i = 0; i < data->tensor_count; ++i)
        if (gbx_case_data_is_output(data, i))
            GBX_TRY(fill(data->args[i], &data->tensors[i].tensor));
    return NULL;
}

gbx_status gbx_case_data_add_golden(gbx_case_data *data) {
    data->has_golden = true;
    for (uint32_t i = 0; i < data->tensor_count; ++i) {
        const gbx_scene_arg *arg = data->args[i];
        if (!gbx_case_data_is_output(data, i)) {
            data->golden[i] = data->tensors[i].tensor;
            continue;
        }
        GBX_TRY(allocate(arg->name, &arg->tensor, &data->golden[i]));
        if (arg->fill.kind == GBX_FILL_NONE)
            gbx_poison_tensor(GBX_POISON_GOLDEN, &arg->tensor, memory_of(&data->golden[i]));
        else
            GBX_TRY(fill(arg, &data->golden[i]));
    }
    return NULL;
}

void gbx_case_data_free(gbx_case_data *data) {
    for (uint32_t i = 0; i < data->tensor_count; ++i) {
        if (data->has_golden && gbx_case_data_is_output(data, i))
            release(&data->golden[i]);
        release(&data->tensors[i].tensor);
    }
    data->tensor_count = 0;
}
