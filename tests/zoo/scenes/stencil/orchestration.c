/*
 * Two sweeps of a five-point stencil over a field with a border of one element, in tiles of 16 x 32
 * with tails of 6 rows and 3 columns; then sums of columns and how rough each tile is. The three
 * buffers of fields have rows of different length. Tile n is row-major among 5 x 4.
 *
 *     n        blur          next_n    = blur(field_n and its neighbours)
 *     20 + n   blur          smooth_n  = blur(next_n and its neighbours)
 *     40 + n   column_sums   sums_n    of smooth_n
 *     60 + j   combine       columns_j = the five sums of tile column j, together
 *     64 + n   roughness     rough_n   = sqrt of the mean of squared steps in smooth_n
 */
#include "../graph.h"

enum { BLUR = 0, COLUMN_SUMS = 1, COMBINE = 2, ROUGHNESS = 3 };
enum { FIELD = 0, NEXT = 1, SMOOTH = 2, COLUMNS = 3, ROUGH = 4 };
enum { TILE_ROWS = 16, TILE_COLUMNS = 32, HALO = 1, DOWN = 5, ACROSS = 4 };

/* Rows and columns of a tile, in a field whose first inner element is at [1, 1]. */
typedef struct place {
    int64_t row, rows, column, columns;
} place;

static place place_of(graph *g, int64_t n) {
    const gbx_tensor *columns = &g->tensors[COLUMNS], *field = &g->tensors[FIELD];
    int64_t row = n / ACROSS * TILE_ROWS, column = n % ACROSS * TILE_COLUMNS;
    place p = {HALO + row, part_of(field->shape[0] - 2 * HALO, row, TILE_ROWS), HALO + column,
               part_of(columns->shape[0], column, TILE_COLUMNS)};
    return p;
}

static gbx_tensor inner(const gbx_tensor *field, place p) {
    return tile(field, p.row, p.rows, p.column, p.columns);
}

static gbx_tensor with_halo(const gbx_tensor *field, place p) {
    return tile(field, p.row - HALO, p.rows + 2 * HALO, p.column - HALO, p.columns + 2 * HALO);
}

/* `before` are the tasks of the sweep before, or NULL. */
static void add_sweep(graph *g, int from, int to, const gbx_task *before, gbx_task *tasks) {
    for (int64_t n = 0; n < DOWN * ACROSS; ++n) {
        place p = place_of(g, n);
        int64_t i = n / ACROSS, j = n % ACROSS;
        task t = begin_task(g, gbx_aiv(BLUR));
        in(&t, with_halo(&g->tensors[from], p));
        out(&t, inner(&g->tensors[to], p));
        f32(&t, gbx_arg_f32(g->run->scalars, 0));
        if (before) {
            after(&t, before[n]);
            if (i > 0)
                after(&t, before[n - ACROSS]);
            if (i + 1 < DOWN)
                after(&t, before[n + ACROSS]);
            if (j > 0)
                after(&t, before[n - 1]);
            if (j + 1 < ACROSS)
                after(&t, before[n + 1]);
            if (i > 0 && j > 0)
                after(&t, before[n - ACROSS - 1]);
            if (i > 0 && j + 1 < ACROSS)
                after(&t, before[n - ACROSS + 1]);
            if (i + 1 < DOWN && j > 0)
                after(&t, before[n + ACROSS - 1]);
            if (i + 1 < DOWN && j + 1 < ACROSS)
                after(&t, before[n + ACROSS + 1]);
        }
        tasks[n] = add(&t);
    }
}

static void add_columns(graph *g, const gbx_task *smoothed) {
    gbx_tensor sums[DOWN * ACROSS];
    gbx_task summed[DOWN * ACROSS];
    for (int64_t n = 0; n < DOWN * ACROSS; ++n) {
        place p = place_of(g, n);
        sums[n] = vector_of(GBX_FLOAT32, p.columns);
        task t = begin_task(g, gbx_aiv(COLUMN_SUMS));
        in(&t, inner(&g->tensors[SMOOTH], p));
        fresh(&t, &sums[n]);
        after(&t, smoothed[n]);
        summed[n] = add(&t);
    }
    for (int64_t j = 0; j < ACROSS; ++j) {
        place p = place_of(g, j);
        task t = begin_task(g, gbx_aiv(COMBINE));
        for (int64_t i = 0; i < DOWN; ++i) {
            in(&t, sums[i * ACROSS + j]);
            after(&t, summed[i * ACROSS + j]);
        }
        out(&t, slice(&g->tensors[COLUMNS], p.column - HALO, p.columns));
        add(&t);
    }
}

static int build(graph g) {
    gbx_task first[DOWN * ACROSS], second[DOWN * ACROSS];
    add_sweep(&g, FIELD, NEXT, NULL, first);
    add_sweep(&g, NEXT, SMOOTH, first, second);
    add_columns(&g, second);
    for (int64_t n = 0; n < DOWN * ACROSS; ++n) {
        task t = begin_task(&g, gbx_aiv(ROUGHNESS));
        in(&t, inner(&g.tensors[SMOOTH], place_of(&g, n)));
        out(&t, tile(&g.tensors[ROUGH], n / ACROSS, 1, n % ACROSS, 1));
        after(&t, second[n]);
        add(&t);
    }
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << COLUMNS | 1u << ROUGH, 1u << NEXT | 1u << SMOOTH));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
