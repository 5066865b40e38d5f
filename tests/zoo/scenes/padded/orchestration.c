/*
 * Buffers that are larger than what is written to them, and no bug: readers use only what was
 * written. The tiles go through two sets of buffers, and the last has fewer rows than its buffer.
 * Tile t is tasks 8 t to 8 t + 7:
 *
 *     0  bias    b, if t is odd; else nothing is written   after crop(t - 2)
 *     1  load    a = x_t, without padding                  after scale(t - 2)
 *     2  scale   c = factor * a, with padding              after 1, crop(t - 2)
 *     3  crop    y_t = c without padding, + b if t is odd  after 0, 2
 *     4  put     row t of all, which is declared as whole  after 3
 *     5  prefix  p_t = sum of the rows of all up to t      after 4, prefix(t - 1)
 *     6  pack    the positive elements of y_t, and count   after 3, sum(t - 2)
 *     7  sum     s_t = sum of these                        after 6
 */
#include "../graph.h"

enum { BIAS, LOAD, SCALE, CROP, PUT, PREFIX, PACK, SUM };
enum { X = 0, Y = 1, P = 2, S = 3 };
enum { FACTOR = 0 };
enum { ROWS = 8, SETS = 2, MAX_TILES = 8 };

typedef struct tile_tasks {
    gbx_task bias, load, scale, crop, put, prefix, pack, sum;
} tile_tasks;

typedef struct buffers {
    gbx_tensor a, b, c, packed, count;
} buffers;

/* New memory for the first task that writes it. */
static void out_of_set(task *t, gbx_tensor *tensor) {
    if (tensor->data)
        out(t, *tensor);
    else
        fresh(t, tensor);
}

static void add_scaled(graph *g, buffers *b, int64_t t, tile_tasks *all) {
    const gbx_tensor *x = &g->tensors[X];
    const tile_tasks *before = t >= SETS ? &all[t - SETS] : NULL;
    int64_t row = t * ROWS, rows = part_of(x->shape[0], row, ROWS);

    task bias = begin_task(g, gbx_aiv(BIAS));
    out_of_set(&bias, &b->b);
    i32(&bias, t % 2);
    if (before)
        after(&bias, before->crop);
    all[t].bias = add(&bias);

    task load = begin_task(g, gbx_aiv(LOAD));
    in(&load, slice(x, row, rows));
    out_of_set(&load, &b->a);
    if (before)
        after(&load, before->scale);
    all[t].load = add(&load);

    task scale = begin_task(g, gbx_aiv(SCALE));
    in(&scale, b->a);
    out_of_set(&scale, &b->c);
    f32(&scale, gbx_arg_f32(g->run->scalars, FACTOR));
    after(&scale, all[t].load);
    if (before)
        after(&scale, before->crop);
    all[t].scale = add(&scale);

    task crop = begin_task(g, gbx_aiv(CROP));
    in(&crop, b->c);
    in(&crop, b->b);
    out(&crop, slice(&g->tensors[Y], row, rows));
    i32(&crop, t % 2);
    after(&crop, all[t].bias);
    after(&crop, all[t].scale);
    all[t].crop = add(&crop);
}

static void add_sums(graph *g, buffers *b, gbx_tensor *sums, int64_t t, tile_tasks *all) {
    const gbx_tensor *y = &g->tensors[Y];
    const gbx_tensor part = slice(y, t * ROWS, part_of(y->shape[0], t * ROWS, ROWS));

    task put = begin_task(g, gbx_aiv(PUT));
    in(&put, part);
    out_of_set(&put, sums);
    i32(&put, (int32_t)t);
    after(&put, all[t].crop);
    all[t].put = add(&put);

    task prefix = begin_task(g, gbx_aiv(PREFIX));
    in(&prefix, *sums);
    out(&prefix, gbx_view_select(&g->tensors[P], 0, t));
    i32(&prefix, (int32_t)t);
    after(&prefix, all[t].put);
    if (t > 0)
        after(&prefix, all[t - 1].prefix);
    all[t].prefix = add(&prefix);

    task pack = begin_task(g, gbx_aiv(PACK));
    in(&pack, part);
    out_of_set(&pack, &b->packed);
    out_of_set(&pack, &b->count);
    after(&pack, all[t].crop);
    if (t >= SETS)
        after(&pack, all[t - SETS].sum);
    all[t].pack = add(&pack);

    task sum = begin_task(g, gbx_aiv(SUM));
    in(&sum, b->packed);
    in(&sum, b->count);
    out(&sum, slice(&g->tensors[S], t, 1));
    after(&sum, all[t].pack);
    all[t].sum = add(&sum);
}

static int build(graph g) {
    tile_tasks all[MAX_TILES];
    buffers sets[SETS];
    const gbx_tensor *x = &g.tensors[X];
    gbx_tensor sums = matrix_of(GBX_FLOAT32, g.tensors[S].shape[0], x->shape[1]);
    for (int i = 0; i < SETS; ++i)
        sets[i] = (buffers){.a = matrix_of(GBX_FLOAT32, ROWS, x->shape[1]),
                            .b = vector_of(GBX_FLOAT32, x->shape[1]),
                            .c = matrix_of(GBX_FLOAT32, ROWS, x->shape[1]),
                            .packed = vector_of(GBX_FLOAT32, ROWS * x->shape[1]),
                            .count = vector_of(GBX_INT32, 1)};
    for (int64_t t = 0; t < g.tensors[S].shape[0]; ++t) {
        add_scaled(&g, &sets[t % SETS], t, all);
        add_sums(&g, &sets[t % SETS], &sums, t, all);
    }
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << Y | 1u << P | 1u << S, 0));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
