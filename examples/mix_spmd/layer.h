/*
 * What kernels, orchestrations and the golden computation agree on: the arguments of a layer, and
 * the flags by which its subtasks wait for each other.
 *
 * A layer is one task: y = relu((scale * x) . w + bias), a mix of three kernels run as BLOCKS
 * blocks. Each block has its share of the rows and needs no other block:
 *
 *     AIV0  scaled = scale * x, sets PREPARED -->  AIC  product = scaled . w, sets MULTIPLIED
 *                                                   |
 *     AIV0  waits, y = relu(product + bias) of the first half of the rows  <--+
 *     AIV1  waits, y = relu(product + bias) of the second half            <--+
 */
#ifndef MIX_SPMD_LAYER_H
#define MIX_SPMD_LAYER_H

enum { BLOCKS = 8, LAYERS = 3 };

/* Slots of args[], the same for the three kernels of a layer. */
enum {
    LAYER_X = 0,       /* in [rows, depth] */
    LAYER_W = 1,       /* in [depth, columns] */
    LAYER_BIAS = 2,    /* in [columns] */
    LAYER_SCALED = 3,  /* out [rows, depth] */
    LAYER_PRODUCT = 4, /* out [rows, columns] */
    LAYER_Y = 5,       /* out [rows, columns] */
    LAYER_FLAGS = 6,   /* inout [BLOCKS, FLAGS_PER_BLOCK], all 0 before the task */
    LAYER_SCALE = 7    /* scalar */
};

/* Flags of one block; a cache line apart from the next block's. Each ends at 1. */
enum { PREPARED = 0, MULTIPLIED = 1, FLAGS_PER_BLOCK = 16 };

#endif
