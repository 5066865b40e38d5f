/*
 * What the three orchestrations share: which tile is multiplied when. c[batch] is cut into tiles,
 * and each tile is a chain of tasks over the depth: the first writes it, the others add to it.
 *
 *     for batch, row of tiles:  for k:  for column of tiles:  one task
 *
 * so that the tiles of a row make progress side by side. Tiles at the edges may be smaller.
 */
#ifndef BGEMM_GRAPH_H
#define BGEMM_GRAPH_H

#include <glassbox/orchestration.h>

/* Kernels, by func_id. */
enum { MATMUL = 0, MATMUL_ADD = 1 };

/* Arguments of the run, in the order of the scene: a [batch, m, k], b [batch, k, n],
 * c [batch, m, n]. */
enum { A = 0, B = 1, C = 2 };
enum { TILE = 0 };

/* One task: views of the matrices, on the host or on the chip. */
typedef struct product {
    gbx_tensor a, b, c;
    int is_first; /* of its tile: writes c; else c is both read and written */
} product;

typedef struct tiling {
    gbx_tensor a, b, c;
    int64_t tile;
    int64_t batches, rows, columns, depth; /* in tiles, but for batches */
} tiling;

static inline int64_t tiles_of(int64_t length, int64_t tile) {
    return (length + tile - 1) / tile;
}

static inline tiling tiling_of(const gbx_tensor *a, const gbx_tensor *b, const gbx_tensor *c,
                               int64_t tile) {
    tiling made = {*a, *b, *c, tile, c->shape[0], 0, 0, 0};
    made.rows = tiles_of(c->shape[1], tile);
    made.columns = tiles_of(c->shape[2], tile);
    made.depth = tiles_of(a->shape[2], tile);
    return made;
}

/* Whether the tile size, which comes from the scene, cannot be used. */
static inline int tile_is_wrong(gbx_orchestration *o, const gbx_run_args *run) {
    if (gbx_arg_i32(run->scalars, TILE) > 0)
        return 0;
    gbx_orchestration_fail(o, "the argument \"tile\" must be 1 or more");
    return 1;
}

static inline gbx_tensor slice_tile(const gbx_tensor *matrix, uint32_t dim, int64_t index,
                                    int64_t tile) {
    int64_t left = matrix->shape[dim] - index * tile;
    return gbx_view_slice(matrix, dim, index * tile, left < tile ? left : tile);
}

static inline gbx_tensor tile_of(const gbx_tensor *matrices, int64_t batch, int64_t row,
                                 int64_t column, int64_t tile) {
    gbx_tensor matrix = gbx_view_select(matrices, 0, batch);
    gbx_tensor rows = slice_tile(&matrix, 0, row, tile);
    return slice_tile(&rows, 1, column, tile);
}

/* The tiles of the task at (batch, row, k, column). */
static inline product product_at(const tiling *t, int64_t batch, int64_t row, int64_t k,
                                 int64_t column) {
    product made = {tile_of(&t->a, batch, row, k, t->tile),
                    tile_of(&t->b, batch, k, column, t->tile),
                    tile_of(&t->c, batch, row, column, t->tile), k == 0};
    return made;
}

/* The task before `task` in the chain of its tile: a row of tiles earlier. */
static inline gbx_task previous_of(const tiling *t, gbx_task task) {
    return task - (gbx_task)t->columns;
}

#endif
