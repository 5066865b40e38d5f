/*
 * What the three orchestrations share. The tasks, by number, and what they write:
 *
 *                   +--> 1: u = s + 1 --+
 *     0: s = a + b -+                   +--> 3: p = u * v --> 4: f = p + s
 *           |       +--> 2: v = s + 2 --+                     |
 *           +-------------------------------------------------+
 */
#ifndef VECTOR_EXAMPLE_GRAPH_H
#define VECTOR_EXAMPLE_GRAPH_H

#include <glassbox/orchestration.h>

/* Kernels, by func_id. */
enum { ADD = 0, ADD_SCALAR = 1, MUL = 2 };

/* Tensors of the run, in the order of the scene's arguments. */
enum { A = 0, B = 1, F = 2 };

#endif
