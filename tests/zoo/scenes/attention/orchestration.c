/*
 * One head of causal attention over TOKENS tokens, in tiles of 8 rows and 8 columns, with tails.
 *
 *     0..3        layer_norm     h_i = norm(x_i)
 *     4..39       matmul         qkv[m]_ij = h_i . w[m]_j, m-major, then i, then j
 *     40 + 5 i    scores         s_i = scale * q_i . k^T
 *     41 + 5 i    softmax        p_i, causal
 *     42 + 5 i    matmul         o_i = p_i . v
 *     43 + 5 i    residual       r_i = x_i + alpha * o_i
 *     44 + 5 i    blend          y_i = (1 - alpha) * x_i + alpha * r_i
 */
#include "../graph.h"

enum { LAYER_NORM = 0, MATMUL = 1, SCORES = 2, SOFTMAX = 3, RESIDUAL = 4, BLEND = 5 };
enum { X = 0, GAMMA = 1, BETA = 2, W = 3, QKV = 4, Y = 5 };
enum { ROWS = 8, COLUMNS = 8, MAX_TILES = 4 };

typedef struct attention {
    int64_t tokens, depth;
    gbx_tensor h[MAX_TILES];
    gbx_task norms[MAX_TILES];
    gbx_task products[3][MAX_TILES * MAX_TILES];
    uint32_t product_count[3];
} attention;

static void add_norms(graph *g, attention *a) {
    for (int64_t row = 0, i = 0; row < a->tokens; row += ROWS, ++i) {
        int64_t rows = part_of(a->tokens, row, ROWS);
        a->h[i] = matrix_of(GBX_FLOAT32, rows, a->depth);
        task t = begin_task(g, gbx_aiv(LAYER_NORM));
        in(&t, slice(&g->tensors[X], row, rows));
        in(&t, g->tensors[GAMMA]);
        in(&t, g->tensors[BETA]);
        fresh(&t, &a->h[i]);
        f32(&t, 1e-5f);
        a->norms[i] = add(&t);
    }
}

static void add_products(graph *g, attention *a, int64_t which) {
    gbx_tensor w = gbx_view_select(&g->tensors[W], 0, which);
    gbx_tensor product = gbx_view_select(&g->tensors[QKV], 0, which);
    for (int64_t row = 0, i = 0; row < a->tokens; row += ROWS, ++i)
        for (int64_t column = 0; column < a->depth; column += COLUMNS) {
            int64_t rows = part_of(a->tokens, row, ROWS);
            int64_t columns = part_of(a->depth, column, COLUMNS);
            task t = begin_task(g, gbx_aic(MATMUL));
            in(&t, a->h[i]);
            in(&t, tile(&w, 0, a->depth, column, columns));
            out(&t, tile(&product, row, rows, column, columns));
            after(&t, a->norms[i]);
            a->products[which][a->product_count[which]++] = add(&t);
        }
}

static void after_products(task *t, const attention *a, int64_t which) {
    for (uint32_t i = 0; i < a->product_count[which]; ++i)
        after(t, a->products[which][i]);
}

static void add_rows(graph *g, attention *a, int64_t row) {
    const int64_t rows = part_of(a->tokens, row, ROWS);
    const gbx_tensor q = gbx_view_select(&g->tensors[QKV], 0, 0);
    const gbx_tensor k = gbx_view_select(&g->tensors[QKV], 0, 1);
    const gbx_tensor v = gbx_view_select(&g->tensors[QKV], 0, 2);
    const gbx_tensor x = slice(&g->tensors[X], row, rows);
    gbx_tensor s = matrix_of(GBX_FLOAT32, rows, a->tokens), p = s;
    gbx_tensor o = matrix_of(GBX_FLOAT32, rows, a->depth), r = o;
    float scale = gbx_arg_f32(g->run->scalars, 0), alpha = gbx_arg_f32(g->run->scalars, 1);

    task scores = begin_task(g, gbx_aic(SCORES));
    in(&scores, slice(&q, row, rows));
    in(&scores, k);
    fresh(&scores, &s);
    f32(&scores, scale);
    after_products(&scores, a, 0);
    after_products(&scores, a, 1);
    gbx_task last = add(&scores);

    task softmax = begin_task(g, gbx_aiv(SOFTMAX));
    in(&softmax, s);
    fresh(&softmax, &p);
    i32(&softmax, (int32_t)row);
    after(&softmax, last);
    last = add(&softmax);

    task weigh = begin_task(g, gbx_aic(MATMUL));
    in(&weigh, p);
    in(&weigh, v);
    fresh(&weigh, &o);
    after(&weigh, last);
    after_products(&weigh, a, 2);
    last = add(&weigh);

    task residual = begin_task(g, gbx_aiv(RESIDUAL));
    in(&residual, x);
    in(&residual, o);
    fresh(&residual, &r);
    f32(&residual, alpha);
    after(&residual, last);
    last = add(&residual);

    task blend = begin_task(g, gbx_aiv(BLEND));
    in(&blend, x);
    in(&blend, r);
    out(&blend, slice(&g->tensors[Y], row, rows));
    f32(&blend, alpha);
    after(&blend, last);
    add(&blend);
}

static int build(graph g) {
    attention a = {.tokens = g.tensors[X].shape[0], .depth = g.tensors[X].shape[1]};
    add_norms(&g, &a);
    for (int64_t which = 0; which < 3; ++which)
        add_products(&g, &a, which);
    for (int64_t row = 0; row < a.tokens; row += ROWS)
        add_rows(&g, &a, row);
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << QKV | 1u << Y, 0));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}

int on_tensormap(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_TENSORMAP));
}
