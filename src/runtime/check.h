/*
 * Checks of a task that every runtime makes before it takes the task, on the host or on the chip.
 * Device code: allocates nothing.
 */
#ifndef GBX_RUNTIME_CHECK_H
#define GBX_RUNTIME_CHECK_H

#include <stdbool.h>

#include <glassbox/chip.h>

#include "runtime/graph_error.h"
#include "sched/task.h"
#include "tensor/signature.h"

/* What a graph may refer to. */
typedef struct gbx_graph_limits {
    uint64_t gm_base;
    uint64_t gm_bytes;
    uint32_t blocks;
    uint8_t kernel_cores[GBX_MAX_KERNELS]; /* 0: not registered; else 1 + gbx_core_type */
    const gbx_signature *signatures;       /* by func_id */
    gbx_signature_warnings *warnings;      /* NULL: what breaks a signature is refused */
} gbx_graph_limits;

/* Each fills in the error, with the task's number, and returns false when something is wrong. */
bool gbx_check_kernels(const gbx_graph_limits *limits, uint64_t task,
                       const gbx_task_kernels *kernels, gbx_graph_error *error);

/* Checks arguments added with gbx_args_...; the addresses of new outputs are not checked. */
bool gbx_check_args(const gbx_graph_limits *limits, uint64_t task, const gbx_task_kernels *kernels,
                    const gbx_args *args, gbx_graph_error *error);

/* Checks one tensor: argument `index`, or GBX_NO_ARGUMENT and no kernels. `is_new`: it has no
 * memory yet. */
bool gbx_check_tensor(const gbx_graph_limits *limits, uint64_t task,
                      const gbx_task_kernels *kernels, uint32_t index, const gbx_tensor *tensor,
                      bool is_new, gbx_graph_error *error);

/* Writes the arguments of a task to `arguments`, which has gbx_task_arguments_bytes. */
void gbx_write_arguments(const gbx_args *args, gbx_task_arguments *arguments);

/* The first kernel of a task, for messages; GBX_NO_KERNEL for NULL. */
uint32_t gbx_first_kernel(const gbx_task_kernels *kernels);

/* Checks that the indices are in range. */
bool gbx_check_indices(uint64_t task, const gbx_tensor *tensor, const int64_t *indices,
                       gbx_graph_error *error);

/* The raw bits of one element; the indices are in range. */
uint64_t gbx_read_element(const gbx_tensor *tensor, const int64_t *indices);

#endif
