/*
 * The arguments of a task compared with the signatures of its kernels: number of tensors and
 * scalars, direction, and dtype and rank where a signature has them. Every runtime makes these
 * checks before it takes a task. Device code: allocates nothing.
 */
#ifndef GBX_RUNTIME_CHECK_SIGNATURE_H
#define GBX_RUNTIME_CHECK_SIGNATURE_H

#include <string.h>

#include "runtime/check.h"

/* False where it takes a closer look. */
static inline bool gbx_signature_fits(const gbx_signature *signature, const gbx_args *args) {
    uint64_t counts = args->tensor_count | (uint64_t)args->scalar_count << 32;
    uint64_t roles, dtypes; /* what lies beyond the arguments is masked */
    memcpy(&roles, args->roles, sizeof roles);
    memcpy(&dtypes, args->scalar_dtypes, sizeof dtypes);
    return (counts & signature->count_mask) == signature->counts &&
           (roles & signature->role_mask) == signature->roles &&
           (dtypes & signature->dtype_mask) == signature->dtypes;
}

/* gbx_check_signatures without the quick look. */
bool gbx_compare_signatures(const gbx_graph_limits *limits, uint64_t task,
                            const gbx_task_kernels *kernels, const gbx_args *args,
                            gbx_graph_error *error);

/*
 * Checks arguments that gbx_check_args accepts against each kernel that gbx_check_kernels accepts.
 * Where a signature does not hold: false with the error, or, where limits->warnings is set, true
 * with warnings.
 */
static inline bool gbx_check_signatures(const gbx_graph_limits *limits, uint64_t task,
                                        const gbx_task_kernels *kernels, const gbx_args *args,
                                        gbx_graph_error *error) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = kernels->func_ids[s];
        if (func_id != GBX_NO_KERNEL && !gbx_signature_fits(&limits->signatures[func_id], args))
            return gbx_compare_signatures(limits, task, kernels, args, error);
    }
    return true;
}

/* If it lists no scalar, more words may follow. */
static inline bool gbx_signature_fits_words(const gbx_signature *signature, uint32_t word_count) {
    uint32_t expected = (uint32_t)signature->tensor_count + signature->scalar_count;
    return word_count == expected || (word_count > expected && signature->scalar_count == 0);
}

bool gbx_compare_word_count(const gbx_graph_limits *limits, uint64_t task,
                            const gbx_task_kernels *kernels, uint32_t word_count,
                            gbx_graph_error *error);

/* The same for raw words: how many there are... */
static inline bool gbx_check_word_count(const gbx_graph_limits *limits, uint64_t task,
                                        const gbx_task_kernels *kernels, uint32_t word_count,
                                        gbx_graph_error *error) {
    for (uint32_t s = 0; s < GBX_SUBTASK_COUNT; ++s) {
        uint32_t func_id = kernels->func_ids[s];
        if (func_id != GBX_NO_KERNEL &&
            !gbx_signature_fits_words(&limits->signatures[func_id], word_count))
            return gbx_compare_word_count(limits, task, kernels, word_count, error);
    }
    return true;
}

/* ...and which of them are tensors. A word without tensor info may be anything. */
bool gbx_check_infos(const gbx_graph_limits *limits, uint64_t task, const gbx_task_kernels *kernels,
                     const gbx_tensor_info *infos, uint32_t info_count, gbx_graph_error *error);

#endif
