#include "runtime/check.h"

#include <string.h>

#include <glassbox/tensor.h>

#include "tensor/view.h"

uint32_t gbx_first_kernel(const gbx_task_kernels *kernels) {
    for (uint32_t s = 0; kernels && s < GBX_SUBTASK_COUNT; ++s)
        if (kernels->func_ids[s] != GBX_NO_KERNEL)
            return kernels->func_ids[s];
    return GBX_NO_KERNEL;
}

static bool fail(gbx_graph_error *error, gbx_graph_error_kind kind, uint64_t task, uint32_t func_id,
                 int64_t value, int64_t other) {
    *error = (gbx_graph_error){
        .kind = (uint32_t)kind, .func_id = func_id, .task = task, .values = {value, other}};
    return false;
}

bool gbx_check_kernels(const gbx_graph_limits *limits, uint64_t task,
                       const gbx_task_kernels *kernels, gbx_graph_error *error) {
    uint32_t first = gbx_first_kernel(kernels);
    if (first == GBX_NO_KERNEL)
        return fail(error, GBX_GRAPH_NO_KERNEL, task, first, 0, 0);
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = kernels->func_ids[s];
        uint32_t wanted = 1 + (s == GBX_SUBTASK_AIC ? GBX_CORE_AIC : GBX_CORE_AIV);
        if (func_id == GBX_NO_KERNEL)
            continue;
        if (func_id >= GBX_MAX_KERNELS || limits->kernel_cores[func_id] == 0)
            return fail(error, GBX_GRAPH_NOT_REGISTERED, task, func_id, 0, 0);
        if (limits->kernel_cores[func_id] != wanted)
            return fail(error, GBX_GRAPH_CORE_TYPE, task, func_id, s, 0);
    }
    if (kernels->block_num == 0 || kernels->block_num > GBX_MAX_BLOCK_NUM)
        return fail(error, GBX_GRAPH_BLOCKS, task, first, kernels->block_num, 0);
    if (kernels->flags & GBX_TASK_SYNC_BLOCKS && kernels->block_num > limits->blocks)
        return fail(error, GBX_GRAPH_SYNC_BLOCKS, task, first, kernels->block_num, limits->blocks);
    return true;
}

static bool is_inside(const gbx_graph_limits *limits, const gbx_tensor *tensor, int64_t first,
                      int64_t end) {
    uint64_t begin_offset = tensor->data + (uint64_t)first - limits->gm_base;
    uint64_t end_offset = tensor->data + (uint64_t)end - limits->gm_base;
    return tensor->data >= limits->gm_base && begin_offset <= end_offset &&
           end_offset <= limits->gm_bytes;
}

bool gbx_check_tensor(const gbx_graph_limits *limits, uint64_t task,
                      const gbx_task_kernels *kernels, uint32_t index, const gbx_tensor *tensor,
                      bool is_new, gbx_graph_error *error) {
    int64_t first, end;
    gbx_graph_error_kind kind = GBX_GRAPH_OK;
    if (!tensor)
        return fail(error, GBX_GRAPH_NULL_TENSOR, task, gbx_first_kernel(kernels), index, 0);
    if (!gbx_tensor_is_valid(tensor, &first, &end))
        kind = GBX_GRAPH_BAD_TENSOR;
    else if (first != end && !is_new) /* a tensor without elements may be anywhere */
        kind = tensor->data == 0                       ? GBX_GRAPH_NULL_TENSOR
               : is_inside(limits, tensor, first, end) ? GBX_GRAPH_OK
                                                       : GBX_GRAPH_OUTSIDE;
    if (kind == GBX_GRAPH_OK)
        return true;
    fail(error, kind, task, gbx_first_kernel(kernels), index, 0);
    error->tensor = *tensor;
    return false;
}

/* A new output gets exactly the bytes of its payload; its view must fit in them. */
static bool check_new_output(uint64_t task, const gbx_task_kernels *kernels, uint32_t index,
                             const gbx_tensor *tensor, gbx_graph_error *error) {
    int64_t first, end;
    gbx_tensor allocated = *tensor;
    allocated.buffer_bytes = gbx_tensor_payload_bytes(tensor);
    if (gbx_tensor_is_valid(&allocated, &first, &end))
        return true;
    fail(error, GBX_GRAPH_BAD_TENSOR, task, gbx_first_kernel(kernels), index, 0);
    error->tensor = allocated;
    return false;
}

bool gbx_check_args(const gbx_graph_limits *limits, uint64_t task, const gbx_task_kernels *kernels,
                    const gbx_args *args, gbx_graph_error *error) {
    if (args->tensor_count > GBX_MAX_TENSOR_ARGS || args->scalar_count > GBX_MAX_SCALAR_ARGS)
        return fail(error, GBX_GRAPH_TOO_MANY_ARGS, task, gbx_first_kernel(kernels),
                    args->tensor_count, args->scalar_count);
    if (args->wrong_mark_bound)
        return fail(error, GBX_GRAPH_MARK, task, gbx_first_kernel(kernels), args->wrong_mark,
                    args->wrong_mark_bound - 1);
    for (uint32_t i = 0; i < args->tensor_count; ++i) {
        if (args->roles[i] > GBX_ROLE_INOUT)
            return fail(error, GBX_GRAPH_ROLE, task, gbx_first_kernel(kernels), i, args->roles[i]);
        bool is_new = args->new_outputs >> i & 1;
        if (!gbx_check_tensor(limits, task, kernels, i, args->tensors[i], is_new, error) ||
            (is_new && !check_new_output(task, kernels, i, args->tensors[i], error)))
            return false;
    }
    return true;
}

/* Without the bits beyond the last argument, which marks of all arguments have. */
static uint64_t marked_words(const gbx_args *args) {
    uint64_t tensors = args->dumped_tensors & ((UINT64_C(1) << args->tensor_count) - 1);
    uint64_t scalars = args->dumped_scalars & ((UINT64_C(1) << args->scalar_count) - 1);
    return tensors | scalars << args->tensor_count;
}

void gbx_write_arguments(const gbx_args *args, gbx_task_arguments *arguments) {
    uint32_t tensor_count = args->tensor_count;
    arguments->word_count = tensor_count + args->scalar_count;
    arguments->tensor_count = tensor_count;
    arguments->is_described = 1;
    arguments->reserved = 0;
    arguments->misdescribed_words = 0;
    arguments->dumped_words = marked_words(args);
    gbx_tensor *tensors = gbx_task_arguments_tensors(arguments);
    for (uint32_t i = 0; i < tensor_count; ++i) {
        tensors[i] = *args->tensors[i];
        arguments->words[i] = (uint64_t)(uintptr_t)&tensors[i];
        arguments->kinds[i] = (uint8_t)(GBX_WORD_TENSOR | args->roles[i]);
    }
    for (uint32_t i = 0; i < args->scalar_count; ++i) {
        arguments->words[tensor_count + i] = args->scalars[i];
        arguments->kinds[tensor_count + i] = args->scalar_dtypes[i] & GBX_WORD_DTYPE;
    }
}

bool gbx_check_indices(uint64_t task, const gbx_tensor *tensor, const int64_t *indices,
                       gbx_graph_error *error) {
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        if (indices[d] >= 0 && indices[d] < tensor->shape[d])
            continue;
        fail(error, GBX_GRAPH_INDEX, task, GBX_NO_KERNEL, d, indices[d]);
        error->values[2] = tensor->shape[d];
        return false;
    }
    return true;
}

uint64_t gbx_read_element(const gbx_tensor *tensor, const int64_t *indices) {
    int64_t position = tensor->start_offset;
    uint64_t element = 0;
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        position += indices[d] * tensor->strides[d];
    uint32_t bits = gbx_dtype_bits(tensor->dtype);
    const uint8_t *data = (const uint8_t *)(uintptr_t)tensor->data;
    if (gbx_dtype_is_packed(tensor->dtype))
        return data[position / 2] >> (position & 1 ? 4 : 0) & 15;
    memcpy(&element, data + position * (int64_t)(bits / 8), bits / 8);
    return element;
}
