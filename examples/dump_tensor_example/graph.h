/*
 * What the three orchestrations share: the numbers that scene.json gives to kernels and arguments.
 *
 *     a ---+
 *          +--> task 0: add --> s --> task 1: add_scalar --> f
 *     b ---+                             addend = 1
 */
#ifndef DUMP_TENSOR_EXAMPLE_GRAPH_H
#define DUMP_TENSOR_EXAMPLE_GRAPH_H

#include <glassbox/orchestration.h>

/* Kernels, by func_id. */
enum { ADD = 0, ADD_SCALAR = 1 };

/* Tensors of the run, in the order of the scene's arguments. */
enum { A = 0, B = 1, F = 2 };

#define ADDEND 1.0f

#endif
