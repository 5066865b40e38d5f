/*
 * Frames that go through two sets of buffers, with all edges given: frame f uses set f % 2, so what
 * writes a buffer waits for the readers of frame f - 2. Frame f is tasks 6 f to 6 f + 5:
 *
 *     0  load        raw = gain_f * frame_f         after high_pass(f - 2)
 *     1  low_pass    low of raw                     after 0, join(f - 2)
 *     2  high_pass   high = raw - low               after 1, score(f - 2)
 *     3  join        out_f = mix * low + (1 - mix) * high   after 2
 *     4  accumulate  state = decay * state + out_f  after 3, accumulate and score(f - 1)
 *     5  score       score_f = high . state         after 2, 4
 */
#include "../graph.h"

enum { LOAD = 0, LOW_PASS = 1, HIGH_PASS = 2, JOIN = 3, ACCUMULATE = 4, SCORE = 5 };
enum { FRAMES = 0, GAINS = 1, STATE = 2, OUT = 3, SCORES = 4 };
enum { MIX = 0, DECAY = 1 };
enum { SETS = 2, MAX_FRAMES = 8 };

typedef struct frame_tasks {
    gbx_task load, low, high, join, accumulate, score;
} frame_tasks;

typedef struct buffers {
    gbx_tensor raw, low, high;
} buffers;

static gbx_tensor allocated(graph *g, gbx_tensor tensor) {
    tensor.buffer_bytes = buffer_bytes(&tensor);
    tensor.data = gbx_device_malloc(g->o, tensor.buffer_bytes);
    return tensor;
}

static void add_filters(graph *g, buffers *b, int64_t f, frame_tasks *all) {
    const gbx_tensor frame = gbx_view_select(&g->tensors[FRAMES], 0, f);
    const frame_tasks *before = f >= SETS ? &all[f - SETS] : NULL;

    task load = begin_task(g, gbx_aiv(LOAD));
    in(&load, frame);
    out(&load, b->raw);
    f32(&load, gbx_tensor_f32(&g->run->tensors[GAINS])[f]);
    if (before)
        after(&load, before->high);
    all[f].load = add(&load);

    task low = begin_task(g, gbx_aiv(LOW_PASS));
    in(&low, b->raw);
    out(&low, b->low);
    after(&low, all[f].load);
    if (before)
        after(&low, before->join);
    all[f].low = add(&low);

    task high = begin_task(g, gbx_aiv(HIGH_PASS));
    in(&high, b->raw);
    in(&high, b->low);
    out(&high, b->high);
    after(&high, all[f].low);
    if (before)
        after(&high, before->score);
    all[f].high = add(&high);
}

static void add_results(graph *g, buffers *b, int64_t f, frame_tasks *all) {
    const gbx_tensor joined = gbx_view_select(&g->tensors[OUT], 0, f);

    task join = begin_task(g, gbx_aiv(JOIN));
    in(&join, b->low);
    in(&join, b->high);
    out(&join, joined);
    f32(&join, gbx_arg_f32(g->run->scalars, MIX));
    after(&join, all[f].high);
    all[f].join = add(&join);

    task accumulate = begin_task(g, gbx_aiv(ACCUMULATE));
    in(&accumulate, joined);
    inout(&accumulate, g->tensors[STATE]);
    f32(&accumulate, gbx_arg_f32(g->run->scalars, DECAY));
    after(&accumulate, all[f].join);
    if (f > 0) {
        after(&accumulate, all[f - 1].accumulate);
        after(&accumulate, all[f - 1].score);
    }
    all[f].accumulate = add(&accumulate);

    task score = begin_task(g, gbx_aiv(SCORE));
    in(&score, b->high);
    in(&score, g->tensors[STATE]);
    out(&score, slice(&g->tensors[SCORES], f, 1));
    after(&score, all[f].high);
    after(&score, all[f].accumulate);
    all[f].score = add(&score);
}

static int build(graph g) {
    frame_tasks all[MAX_FRAMES];
    buffers sets[SETS];
    const gbx_tensor frame = vector_of(GBX_FLOAT32, g.tensors[FRAMES].shape[1]);
    for (int i = 0; i < SETS; ++i) {
        sets[i].raw = allocated(&g, frame);
        sets[i].low = allocated(&g, frame);
        sets[i].high = allocated(&g, frame);
    }
    for (int64_t f = 0; f < g.tensors[FRAMES].shape[0]; ++f) {
        add_filters(&g, &sets[f % SETS], f, all);
        add_results(&g, &sets[f % SETS], f, all);
    }
    return 0;
}

int on_host(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_host(o, run, 1u << OUT | 1u << SCORES, 1u << STATE));
}

int on_aicpu(gbx_orchestration *o, const gbx_run_args *run) {
    return build(graph_on_chip(o, run, ON_AICPU));
}
