/*
 * Chunks of 256 elements of x, the last 198, with temporaries in scopes. Chunk c is tasks 6 c to
 * 6 c + 5; `d` and `e` live in the inner scope, `a` and `b` in the outer one:
 *
 *     0  square   a = x * x
 *     1  smooth   b = the mean of each element of a and its neighbours
 *     2  decay    d = b / 2^shift_c, where shifts go far enough for denormals
 *     3  restore  e = d * 2^shift_c
 *     4  finish   y = (b + e) / 2
 *     5  total    totals_c = the sum of b
 *
 * and at the end, with `mean` in the outermost scope:
 *
 *     48          average  mean = the sum of totals / the number of elements
 *     49 + c      shift    z_c = y_c - mean
 */
#include "../graph.h"

enum {
    SQUARE = 0,
    SMOOTH = 1,
    DECAY = 2,
    RESTORE = 3,
    FINISH = 4,
    TOTAL = 5,
    AVERAGE = 6,
    SHIFT = 7
};
enum { X = 0, SHIFTS = 1, Y = 2, TOTALS = 3, Z = 4 };
enum { CHUNK = 256 };

/* A task with one input, one new output and maybe a number. */
static void add_step(graph *g, uint32_t kernel, const gbx_tensor *from, gbx_tensor *to,
                     const int32_t *number) {
    task t = begin_task(g, gbx_aiv(kernel));
    in(&t, *from);
    fresh(&t, to);
    if (number)
        i32(&t, *number);
    add(&t);
}

static void add_chunk(graph *g, int64_t c, int64_t start, int64_t length) {
    const gbx_tensor x = slice(&g->tensors[X], start, length);
    const int32_t shift = gbx_get_tensor_i32(g->o, &g->tensors[SHIFTS], &c);
    gbx_tensor a = vector_of(GBX_FLOAT32, length), b = a, d = a, e = a;

    gbx_scope_begin(g->o);
    add_step(g, SQUARE, &x, &a, NULL);
    add_step(g, SMOOTH, &a, &b, NULL);

    gbx_scope_begin(g->o);
    add_step(g, DECAY, &b, &d, &shift);
    add_step(g, RESTORE, &d, &e, &shift);
    task finish = begin_task(g, gbx_aiv(FINISH));
    in(&finish, b);
    in(&finish, e);
    out(&finish, slice(&g->tensors[Y], start, length));
    add(&finish);
    gbx_scope_end(g->o);

    task total = begin_task(g, gbx_aiv(TOTAL));
    in(&total, b);
    out(&total, slice(&g->tensors[TOTALS], c, 1));
    add(&total);
    gbx_scope_end(g->o);
}

int orchestrate(gbx_orchestration *o, const gbx_run_args *run) {
    graph g = graph_on_chip(o, run, ON_TENSORMAP);
    const int64_t length = g.tensors[X].shape[0];
    for (int64_t start = 0, c = 0; start < length; start += CHUNK, ++c)
        add_chunk(&g, c, start, part_of(length, start, CHUNK));

    gbx_tensor mean = vector_of(GBX_FLOAT32, 1);
    task average = begin_task(&g, gbx_aiv(AVERAGE));
    in(&average, g.tensors[TOTALS]);
    fresh(&average, &mean);
    i32(&average, (int32_t)length);
    add(&average);
    for (int64_t start = 0; start < length; start += CHUNK) {
        task shift = begin_task(&g, gbx_aiv(SHIFT));
        in(&shift, slice(&g.tensors[Y], start, part_of(length, start, CHUNK)));
        in(&shift, mean);
        out(&shift, slice(&g.tensors[Z], start, part_of(length, start, CHUNK)));
        add(&shift);
    }
    return 0;
}
