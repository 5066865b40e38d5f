/*
 * The arguments of a task compared with the signatures of its kernels: number of tensors and
 * scalars, direction, and dtype and rank where a signature has them. Every runtime makes these
 * checks before it takes a task. Device code: allocates nothing.
 */
#ifndef GBX_RUNTIME_CHECK_SIGNATURE_H
#define GBX_RUNTIME_CHECK_SIGNATURE_H

#include "runtime/check.h"

/*
 * Checks arguments that gbx_check_args accepts against each kernel that gbx_check_kernels accepts.
 * Where a signature does not hold: false with the error, or, where limits->warnings is set, true
 * with warnings.
 */
bool gbx_check_signatures(const gbx_graph_limits *limits, uint64_t task,
                          const gbx_task_kernels *kernels, const gbx_args *args,
                          gbx_graph_error *error);

/* The same for raw words: how many there are... */
bool gbx_check_word_count(const gbx_graph_limits *limits, uint64_t task,
                          const gbx_task_kernels *kernels, uint32_t word_count,
                          gbx_graph_error *error);

/* ...and which of them are tensors. A word without tensor info may be anything. */
bool gbx_check_infos(const gbx_graph_limits *limits, uint64_t task, const gbx_task_kernels *kernels,
                     const gbx_tensor_info *infos, uint32_t info_count, gbx_graph_error *error);

#endif
