/*
 * Attention of every head over its whole context at once: all scores, their maximum, the softmax in
 * two passes, then the weighted sum of the values. In float32, nothing rounded in between.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <glassbox/orchestration.h>

enum { PARTIAL_SUMS = 16, MAX_THREADS = 16 };

typedef struct problem {
    const uint16_t *query, *key_cache, *value_cache; /* bfloat16 */
    const int32_t *block_table, *context_lens;
    float *out;
    float scale;
    int64_t batch, heads, kv_heads, head_dim, block_size, max_blocks;
} problem;

/* The batch entries first, first + step, ... */
typedef struct share {
    const problem *of;
    int64_t first, step;
    int has_failed;
    pthread_t thread;
} share;

/* What one share works in: queries and sums of a group of heads, a row of the cache, the scores. */
typedef struct scratch {
    float *query, *row, *scores;
} scratch;

static const void *tensor_bytes(const gbx_run_args *run, uint32_t index) {
    return (const void *)(uintptr_t)run->tensors[index].data;
}

static problem read_problem(const gbx_run_args *run) {
    const int64_t *query = run->tensors[0].shape, *cache = run->tensors[1].shape;
    problem p = {.query = tensor_bytes(run, 0),
                 .key_cache = tensor_bytes(run, 1),
                 .value_cache = tensor_bytes(run, 2),
                 .block_table = tensor_bytes(run, 3),
                 .context_lens = tensor_bytes(run, 4),
                 .out = gbx_tensor_f32(&run->tensors[5]),
                 .scale = gbx_arg_f32(run->scalars, 0),
                 .batch = query[0],
                 .heads = query[1],
                 .kv_heads = cache[2],
                 .head_dim = query[2],
                 .block_size = cache[1],
                 .max_blocks = run->tensors[3].shape[1]};
    return p;
}

static void widen(const uint16_t *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; ++i)
        to[i] = gbx_bf16_to_f32(from[i]);
}

/* The row of a token of a batch entry in a cache, as float32. */
static void widen_token(const problem *p, const uint16_t *cache, int64_t entry, int64_t kv_head,
                        int64_t token, float *to) {
    int64_t block = p->block_table[entry * p->max_blocks + token / p->block_size];
    int64_t slot = block * p->block_size + token % p->block_size;
    widen(cache + (slot * p->kv_heads + kv_head) * p->head_dim, p->head_dim, to);
}

/* In partial sums, which a compiler keeps in one vector. */
static float dot(const float *a, const float *b, int64_t count) {
    float sums[PARTIAL_SUMS] = {0};
    int64_t i = 0;
    for (; i + PARTIAL_SUMS <= count; i += PARTIAL_SUMS)
        for (int lane = 0; lane < PARTIAL_SUMS; ++lane)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < count; ++i)
        sums[0] += a[i] * b[i];
    float sum = 0;
    for (int lane = 0; lane < PARTIAL_SUMS; ++lane)
        sum += sums[lane];
    return sum;
}

static void softmax(float *row, int64_t count) {
    float max = row[0];
    double sum = 0;
    for (int64_t i = 1; i < count; ++i)
        max = fmaxf(max, row[i]);
    for (int64_t i = 0; i < count; ++i) {
        row[i] = expf(row[i] - max);
        sum += (double)row[i];
    }
    for (int64_t i = 0; i < count; ++i)
        row[i] = (float)((double)row[i] / sum);
}

/* All query heads that share one head of the caches. */
static void attend(const problem *p, int64_t entry, int64_t kv_head, const scratch *use) {
    int64_t group = p->heads / p->kv_heads, dim = p->head_dim, length = p->context_lens[entry];
    int64_t first = (entry * p->heads + kv_head * group) * dim;
    float *out = p->out + first;
    widen(p->query + first, group * dim, use->query);
    for (int64_t token = 0; token < length; ++token) {
        widen_token(p, p->key_cache, entry, kv_head, token, use->row);
        for (int64_t head = 0; head < group; ++head)
            use->scores[head * length + token] =
                dot(use->query + head * dim, use->row, dim) * p->scale;
    }
    for (int64_t head = 0; head < group; ++head)
        softmax(use->scores + head * length, length);
    memset(out, 0, (size_t)(group * dim) * sizeof *out);
    for (int64_t token = 0; token < length; ++token) {
        widen_token(p, p->value_cache, entry, kv_head, token, use->row);
        for (int64_t head = 0; head < group; ++head)
            for (int64_t d = 0; d < dim; ++d)
                out[head * dim + d] += use->scores[head * length + token] * use->row[d];
    }
}

static void *attend_share(void *context) {
    share *mine = context;
    const problem *p = mine->of;
    size_t group = (size_t)(p->heads / p->kv_heads), dim = (size_t)p->head_dim;
    size_t longest = (size_t)(p->max_blocks * p->block_size);
    scratch use = {calloc(group * dim, sizeof(float)), calloc(dim, sizeof(float)),
                   calloc(group * longest, sizeof(float))};
    mine->has_failed = !use.query || !use.row || !use.scores;
    for (int64_t entry = mine->first; entry < p->batch && !mine->has_failed; entry += mine->step)
        for (int64_t kv_head = 0; kv_head < p->kv_heads; ++kv_head)
            attend(p, entry, kv_head, &use);
    free(use.query);
    free(use.row);
    free(use.scores);
    return NULL;
}

/* A thread for each processor. One that cannot be started does its share here. */
int golden(const gbx_run_args *run) {
    problem p = read_problem(run);
    share shares[MAX_THREADS];
    int is_running[MAX_THREADS], has_failed = 0;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    count = count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
    for (long i = 0; i < count; ++i) {
        shares[i] = (share){.of = &p, .first = i, .step = count};
        is_running[i] = pthread_create(&shares[i].thread, NULL, attend_share, &shares[i]) == 0;
        if (!is_running[i])
            attend_share(&shares[i]);
    }
    for (long i = 0; i < count; ++i) {
        if (is_running[i])
            pthread_join(shares[i].thread, NULL);
        has_failed |= shares[i].has_failed;
    }
    return has_failed;
}
