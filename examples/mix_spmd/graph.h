/*
 * What the three orchestrations share. The tasks, by number, and what they write:
 *
 *                      +--> 1: layer 0, h --> 3: layer 2, g --+
 *     0: add, x = a + b                                       +--> 4: add, f = g + u
 *                      +--> 2: layer 1, u --------------------+
 */
#ifndef MIX_SPMD_GRAPH_H
#define MIX_SPMD_GRAPH_H

#include <glassbox/orchestration.h>

#include "layer.h"

/* Kernels, by func_id. */
enum { ADD = 0, MULTIPLY = 1, PREPARE_FINISH = 2, FINISH = 3 };

/* Arguments of the run, in the order of the scene. Each layer has its part of w [LAYERS, size,
 * size], bias [LAYERS, size] and flags [LAYERS, BLOCKS, FLAGS_PER_BLOCK]. */
enum { A = 0, B = 1, W = 2, BIAS = 3, FLAGS = 4, F = 5 };
enum { SCALE = 0 };

static inline gbx_task_kernels layer_kernels(void) {
    return gbx_spmd(gbx_mix(MULTIPLY, PREPARE_FINISH, FINISH), BLOCKS);
}

/* The tensors of a layer's task, by slot. x, y and both workspaces have the same shape. */
typedef struct layer_tensors {
    gbx_tensor slots[LAYER_SCALE];
} layer_tensors;

static inline gbx_role layer_role(uint32_t slot) {
    if (slot == LAYER_FLAGS)
        return GBX_ROLE_INOUT;
    return slot >= LAYER_SCALED ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT;
}

#endif
