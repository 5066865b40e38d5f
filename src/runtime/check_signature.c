#include "runtime/check_signature.h"

#include <string.h>

/* --- one argument --- */

static bool is_tensor(const gbx_parameter *parameter) {
    return parameter->kind != GBX_PARAMETER_SCALAR;
}

/* What differs; `given` is a tensor, or a scalar where a scalar is expected. */
static gbx_mismatch_kind compare(const gbx_parameter *expected, const gbx_parameter *given) {
    bool is_read_only = expected->kind == GBX_ROLE_INPUT;
    if (is_tensor(expected) != is_tensor(given))
        return GBX_MISMATCH_KIND;
    /* A kernel that writes may get an output or an in-out, whichever of the two it declares. */
    if (is_tensor(expected) && is_read_only != (given->kind == GBX_ROLE_INPUT))
        return GBX_MISMATCH_ROLE;
    if (expected->dtype != GBX_DTYPE_NONE && given->dtype != GBX_DTYPE_NONE &&
        expected->dtype != given->dtype)
        return GBX_MISMATCH_DTYPE;
    if (expected->ndims != GBX_ANY_NDIMS && expected->ndims != given->ndims)
        return GBX_MISMATCH_NDIMS;
    return GBX_MISMATCH_NONE;
}

/* Of a tensor that is valid. */
static gbx_parameter tensor_parameter(uint32_t role, const gbx_tensor *tensor) {
    return (gbx_parameter){(uint8_t)role, (uint8_t)tensor->dtype, (uint8_t)tensor->ndims};
}

static uint32_t given_number(gbx_mismatch_kind kind, const gbx_parameter *given) {
    return kind == GBX_MISMATCH_DTYPE   ? given->dtype
           : kind == GBX_MISMATCH_NDIMS ? given->ndims
                                        : given->kind;
}

/* --- what to do about it --- */

static bool is_alike(const gbx_mismatch *a, const gbx_mismatch *b) {
    return a->func_id == b->func_id && a->kind == b->kind && a->slot == b->slot &&
           a->given == b->given;
}

/* Only the thread that builds the graph warns; others may read meanwhile. */
static void warn(gbx_signature_warnings *warnings, const gbx_mismatch *mismatch) {
    uint64_t total = atomic_load_explicit(&warnings->total, memory_order_relaxed);
    uint32_t kept = atomic_load_explicit(&warnings->kept, memory_order_relaxed);
    atomic_store_explicit(&warnings->total, total + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < kept; ++i)
        if (is_alike(&warnings->first[i], mismatch))
            return;
    if (kept == GBX_MAX_SIGNATURE_SENTENCES)
        return;
    warnings->first[kept] = *mismatch;
    /* Pairs with gbx_signature_warnings_copy. */
    atomic_store_explicit(&warnings->kept, kept + 1, memory_order_release);
}

void gbx_signature_warnings_copy(gbx_signature_warnings *from, gbx_signature_warnings *to) {
    uint32_t kept = atomic_load_explicit(&from->kept, memory_order_acquire);
    memcpy(to->first, from->first, kept * sizeof from->first[0]);
    atomic_store_explicit(&to->total, atomic_load_explicit(&from->total, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->kept, kept, memory_order_relaxed);
}

/* What is compared: a task with one of its kernels. */
typedef struct pair {
    uint64_t task;
    uint32_t func_id;
} pair;

/* False when the task is refused. */
static bool object(const gbx_graph_limits *limits, pair of, gbx_mismatch_kind kind, uint32_t slot,
                   uint32_t given, gbx_graph_error *error) {
    gbx_mismatch mismatch = {.task = of.task,
                             .func_id = of.func_id,
                             .kind = (uint16_t)kind,
                             .slot = (uint16_t)slot,
                             .given = given};
    if (limits->warnings) {
        warn(limits->warnings, &mismatch);
        return true;
    }
    *error = (gbx_graph_error){.kind = GBX_GRAPH_SIGNATURE,
                               .func_id = of.func_id,
                               .task = of.task,
                               .values = {slot, kind, given}};
    return false;
}

/* The signature of a kernel; NULL where it says nothing, or another subtask has the same. */
static const gbx_signature *signature_of(const gbx_graph_limits *limits,
                                         const gbx_task_kernels *kernels, uint32_t subtask) {
    uint32_t func_id = kernels->func_ids[subtask];
    if (func_id == GBX_NO_KERNEL || (subtask > 0 && func_id == kernels->func_ids[subtask - 1]))
        return NULL;
    const gbx_signature *signature = &limits->signatures[func_id];
    return signature->tensor_count + signature->scalar_count > 0 ? signature : NULL;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* --- tensors and scalars --- */

static bool compare_args(const gbx_graph_limits *limits, pair of, const gbx_args *args,
                         gbx_graph_error *error) {
    const gbx_signature *signature = &limits->signatures[of.func_id];
    uint32_t tensors = signature->tensor_count;
    uint32_t scalars = signature->scalar_count;
    if (args->tensor_count != tensors)
        return object(limits, of, GBX_MISMATCH_TENSORS, smaller(args->tensor_count, tensors),
                      args->tensor_count, error);
    if (scalars && args->scalar_count != scalars)
        return object(limits, of, GBX_MISMATCH_SCALARS,
                      tensors + smaller(args->scalar_count, scalars), args->scalar_count, error);
    for (uint32_t i = 0; i < tensors + scalars; ++i) {
        gbx_parameter given =
            i < tensors ? tensor_parameter(args->roles[i], args->tensors[i])
                        : (gbx_parameter){GBX_PARAMETER_SCALAR, args->scalar_dtypes[i - tensors],
                                          GBX_ANY_NDIMS};
        gbx_mismatch_kind kind = compare(&signature->slots[i], &given);
        if (kind != GBX_MISMATCH_NONE &&
            !object(limits, of, kind, i, given_number(kind, &given), error))
            return false;
    }
    return true;
}

bool gbx_compare_signatures(const gbx_graph_limits *limits, uint64_t task,
                            const gbx_task_kernels *kernels, const gbx_args *args,
                            gbx_graph_error *error) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        pair of = {task, kernels->func_ids[s]};
        if (signature_of(limits, kernels, s) && !compare_args(limits, of, args, error))
            return false;
    }
    return true;
}

/* --- words --- */

bool gbx_compare_word_count(const gbx_graph_limits *limits, uint64_t task,
                            const gbx_task_kernels *kernels, uint32_t word_count,
                            gbx_graph_error *error) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        const gbx_signature *signature = signature_of(limits, kernels, s);
        if (!signature || gbx_signature_fits_words(signature, word_count))
            continue;
        uint32_t expected = (uint32_t)signature->tensor_count + signature->scalar_count;
        pair of = {task, kernels->func_ids[s]};
        if (!object(limits, of, GBX_MISMATCH_WORDS, smaller(word_count, expected), word_count,
                    error))
            return false;
    }
    return true;
}

static bool compare_infos(const gbx_graph_limits *limits, pair of, const gbx_tensor_info *infos,
                          uint32_t info_count, gbx_graph_error *error) {
    const gbx_signature *signature = &limits->signatures[of.func_id];
    uint32_t count = (uint32_t)signature->tensor_count + signature->scalar_count;
    for (uint32_t i = 0; i < info_count; ++i) {
        uint32_t slot = infos[i].arg_index;
        gbx_parameter given = tensor_parameter(infos[i].role, &infos[i].tensor);
        gbx_mismatch_kind kind =
            slot < count ? compare(&signature->slots[slot], &given) : GBX_MISMATCH_KIND;
        if (kind != GBX_MISMATCH_NONE &&
            !object(limits, of, kind, slot, given_number(kind, &given), error))
            return false;
    }
    return true;
}

bool gbx_check_infos(const gbx_graph_limits *limits, uint64_t task, const gbx_task_kernels *kernels,
                     const gbx_tensor_info *infos, uint32_t info_count, gbx_graph_error *error) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        pair of = {task, kernels->func_ids[s]};
        if (signature_of(limits, kernels, s) &&
            !compare_infos(limits, of, infos, info_count, error))
            return false;
    }
    return true;
}
