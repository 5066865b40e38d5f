/*
 * How the arguments of a task belong together: a tile of c takes the row of a and the column of b
 * where c itself lies. A task in which this is not so, while it is in all others of its kernel, got
 * the wrong tile. Also tasks with another layout, and tasks that do again what another has done.
 */
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/hash.h"
#include "base/memory.h"
#include "diagnose/odd.h"

enum { FEATURES_MAX = 48, KERNELS_MAX = 256, LEAST_TASKS = 4 };

static const char doing[] = "comparing the arguments of tasks";

typedef enum feature_kind {
    SCALAR, /* its bits */
    BEGIN,  /* where a view begins in one dimension of its buffer */
    LAYOUT  /* a hash of dtype, shape and strides */
} feature_kind;

typedef struct feature {
    uint32_t kind;
    uint32_t slot;
    uint32_t dimension;
    uint32_t role;
    uint64_t nth; /* entry of the task */
} feature;

/* All tasks of a kernel or mix, in graph order. */
typedef struct kernel {
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    feature features[FEATURES_MAX];
    size_t feature_count;
    bool is_uneven;   /* its tasks have not all the same features: it is not judged */
    uint64_t *values; /* feature_count for each task */
    uint64_t value_capacity;
    uint64_t *tasks; /* number, first entry, two words of the hash of all arguments */
    uint64_t task_capacity;
    size_t count;
} kernel;

enum { TASK_WORDS = 4 };

typedef struct kernels {
    gbx_entries *entries;
    kernel *items[KERNELS_MAX]; /* tasks of further ones are left out */
    size_t count;
    gbx_odd *odd;
} kernels;

/* --- one task --- */

typedef struct description {
    feature features[FEATURES_MAX];
    uint64_t values[FEATURES_MAX];
    size_t count;
    gbx_hash_state hash; /* of all that the task was called with */
    bool has_output;
} description;

static void add_feature(description *to, const feature *f, uint64_t value) {
    if (to->count == FEATURES_MAX)
        return;
    to->features[to->count] = *f;
    to->values[to->count++] = value;
}

static void describe_view(description *to, feature *f, const gbx_tensor *view) {
    uint64_t words[2 + 2 * GBX_MAX_DIMS] = {view->dtype, view->ndims};
    int64_t rest = view->start_offset;
    for (uint32_t d = 0; d < view->ndims; ++d) {
        words[2 + 2 * d] = (uint64_t)view->shape[d];
        words[3 + 2 * d] = (uint64_t)view->strides[d];
    }
    f->kind = LAYOUT;
    add_feature(to, f, gbx_hash_bytes(words, sizeof words).low);
    gbx_hash_update(&to->hash, words, sizeof words);
    f->kind = BEGIN;
    for (f->dimension = 0; f->dimension < view->ndims; ++f->dimension) {
        int64_t stride = view->strides[f->dimension];
        if (stride <= 0 || rest < 0)
            continue;
        add_feature(to, f, (uint64_t)(rest / stride));
        rest %= stride;
    }
}

static void describe_entry(description *to, const gbx_entry *entry, uint64_t nth) {
    feature f = {.slot = entry->head->arg_index, .role = entry->head->role, .nth = nth};
    uint64_t words[3] = {entry->head->arg_index};
    gbx_tensor view;
    if (entry->scalar) {
        words[1] = entry->scalar->bits;
        gbx_hash_update(&to->hash, words, sizeof words);
        f.kind = SCALAR;
        add_feature(to, &f, entry->scalar->bits);
        return;
    }
    if (entry->head->role == GBX_ROLE_INOUT && entry->head->stage == GBX_STAGE_AFTER)
        return;
    to->has_output |= entry->head->role != GBX_ROLE_INPUT;
    gbx_record_view(entry->tensor, &view);
    words[1] = view.data;
    words[2] = (uint64_t)view.start_offset;
    gbx_hash_update(&to->hash, words, sizeof words);
    describe_view(to, &f, &view);
}

static kernel *find_kernel(kernels *all, const uint32_t *func_ids, const description *like) {
    for (size_t i = 0; i < all->count; ++i)
        if (memcmp(all->items[i]->func_ids, func_ids, sizeof all->items[i]->func_ids) == 0)
            return all->items[i];
    kernel *k = all->count < KERNELS_MAX ? calloc(1, sizeof *k) : NULL;
    if (!k)
        return NULL;
    memcpy(k->func_ids, func_ids, sizeof k->func_ids);
    memcpy(k->features, like->features, sizeof k->features);
    k->feature_count = like->count;
    all->items[all->count++] = k;
    return k;
}

static gbx_status keep(kernel *k, uint64_t task, uint64_t first, const description *d) {
    gbx_hash128 hash = gbx_hash_end(&d->hash);
    k->is_uneven |= d->count != k->feature_count || !d->has_output ||
                    memcmp(d->features, k->features, d->count * sizeof *d->features) != 0;
    if (k->is_uneven)
        return NULL;
    GBX_TRY(gbx_array_reserve(&k->values, &k->value_capacity, (k->count + 1) * k->feature_count + 1,
                              doing));
    GBX_TRY(gbx_array_reserve(&k->tasks, &k->task_capacity, (k->count + 1) * TASK_WORDS, doing));
    memcpy(&k->values[k->count * k->feature_count], d->values, d->count * sizeof *d->values);
    const uint64_t words[TASK_WORDS] = {task, first, hash.low, hash.high};
    memcpy(&k->tasks[k->count++ * TASK_WORDS], words, sizeof words);
    return NULL;
}

static gbx_status add_task(kernels *all, uint64_t task) {
    uint64_t first = gbx_entries_find(all->entries, task), i = first;
    description d = {.count = 0};
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    gbx_hash_begin(&d.hash);
    for (; i < gbx_entries_count(all->entries); ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(all->entries, i, &entry));
        if (entry.head->task != task)
            break;
        if (!entry.task || entry.head->flags & GBX_FLAG_IN_FLIGHT)
            return NULL;
        memcpy(func_ids, entry.task->func_ids, sizeof func_ids);
        describe_entry(&d, &entry, i - first);
    }
    kernel *k = i > first ? find_kernel(all, func_ids, &d) : NULL;
    return k ? keep(k, task, first, &d) : NULL;
}

/* --- one kernel --- */

static uint64_t value_of(const kernel *k, size_t task, size_t f) {
    return k->values[task * k->feature_count + f];
}

static gbx_odd_argument about(const kernel *k, size_t task, size_t f, gbx_odd_kind kind) {
    const uint64_t *of = &k->tasks[task * TASK_WORDS];
    return (gbx_odd_argument){.kind = kind,
                              .task = of[0],
                              .entry = of[1] + k->features[f].nth,
                              .other = UINT64_MAX,
                              .other_entry = UINT64_MAX,
                              .unread = UINT64_MAX,
                              .dimension = k->features[f].dimension,
                              .found = value_of(k, task, f),
                              .siblings = k->count - 1};
}

/* The layout of one task that is not like that of all others; tails are at the ends. */
static gbx_status judge_layout(const kernel *k, size_t f, gbx_odd *odd) {
    bool are_first_alike = value_of(k, 0, f) == value_of(k, 1, f);
    const uint64_t usual = value_of(k, are_first_alike ? 0 : 2, f);
    size_t others = 0, position = 0;
    for (size_t i = 0; i < k->count && others < 2; ++i)
        if (value_of(k, i, f) != usual) {
            position = i;
            ++others;
        }
    if (others != 1 || position == 0 || position + 1 == k->count)
        return NULL;
    gbx_odd_argument found = about(k, position, f, GBX_ODD_LAYOUT);
    found.other = k->tasks[0];
    found.other_entry = k->tasks[1] + k->features[f].nth;
    return gbx_odd_add(odd, &found);
}

/* A relation of two features that a task breaks. */
typedef struct broken {
    size_t x;
    size_t y;
    size_t task;
    uint64_t difference; /* y - x in all other tasks */
} broken;

static bool holds(const kernel *k, const broken *b, size_t task) {
    return value_of(k, task, b->y) - value_of(k, task, b->x) == b->difference;
}

/* Whether tasks lie at a border, where a neighbour is cut off: their value is the least or the
 * greatest of all, and no task with this value keeps the relation. */
static bool is_border(const kernel *k, const broken *b, size_t f) {
    const uint64_t own = value_of(k, b->task, f);
    bool is_least = true, is_greatest = true;
    for (size_t i = 0; i < k->count; ++i) {
        const uint64_t value = value_of(k, i, f);
        if (value == own && holds(k, b, i))
            return false;
        is_least &= value >= own;
        is_greatest &= value <= own;
    }
    return is_least || is_greatest;
}

/* At most a quarter of the tasks break it; the first is named. */
static bool breaks(const kernel *k, size_t x, size_t y, broken *out) {
    uint64_t first[3];
    size_t others = 0, changes = 0, last = SIZE_MAX;
    for (size_t i = 0; i < 3; ++i)
        first[i] = value_of(k, i, y) - value_of(k, i, x);
    *out = (broken){x, y, 0, first[0] == first[1] ? first[0] : first[2]};
    for (size_t i = 0; i < k->count; ++i) {
        if (!holds(k, out, i)) {
            out->task = others++ == 0 ? i : out->task;
            continue;
        }
        changes += last != SIZE_MAX && value_of(k, i, x) != value_of(k, last, x);
        last = i;
    }
    return others > 0 && (others == 1 || others * 4 <= k->count) && changes >= 2 &&
           !is_border(k, out, x) && !is_border(k, out, y);
}

/* How many broken relations of a task an argument takes part in. */
static size_t count_of(const kernel *k, const broken *all, size_t count, size_t task,
                       uint32_t slot) {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i)
        found += all[i].task == task &&
                 (k->features[all[i].x].slot == slot || k->features[all[i].y].slot == slot);
    return found;
}

/* The argument that most of them have in common, an input rather than an output. */
static gbx_status name_broken(const kernel *k, const broken *all, size_t count, gbx_odd *odd) {
    const broken *best = NULL;
    bool is_x = false;
    size_t most = 0;
    for (size_t i = 0; i < count * 2; ++i) {
        const broken *b = &all[i / 2];
        const feature *own = &k->features[i % 2 == 0 ? b->x : b->y];
        size_t weight = 4 * count_of(k, all, count, b->task, own->slot);
        weight += own->role != GBX_ROLE_OUTPUT ? 2 : 0;
        weight += b->difference == 0 ? 1 : 0;
        if (weight <= most)
            continue;
        most = weight;
        best = b;
        is_x = i % 2 == 0;
    }
    if (!best)
        return NULL;
    size_t own = is_x ? best->x : best->y, other = is_x ? best->y : best->x;
    gbx_odd_argument found = about(k, best->task, own, GBX_ODD_RELATION);
    const gbx_odd_argument partner = about(k, best->task, other, GBX_ODD_RELATION);
    found.other = partner.task;
    found.other_entry = partner.entry;
    found.other_dimension = partner.dimension;
    found.expected = partner.found;
    found.difference = is_x ? 0 - best->difference : best->difference;
    found.siblings = 0;
    for (size_t i = 0; i < k->count; ++i)
        found.siblings += holds(k, best, i);
    return gbx_odd_add(odd, &found);
}

enum { BROKEN_MAX = 256 };

static gbx_status judge_relations(const kernel *k, gbx_odd *odd) {
    broken all[BROKEN_MAX];
    size_t count = 0;
    for (size_t x = 0; x < k->feature_count; ++x)
        for (size_t y = x + 1; y < k->feature_count && count < BROKEN_MAX; ++y) {
            const feature *a = &k->features[x], *b = &k->features[y];
            bool are_asked = a->kind != LAYOUT && b->kind != LAYOUT && a->slot != b->slot &&
                             (a->kind == BEGIN || b->kind == BEGIN);
            count += are_asked && breaks(k, x, y, &all[count]);
        }
    return name_broken(k, all, count, odd);
}

/* --- tasks that do again what another has done --- */

static int compare_hashes(const void *a, const void *b) {
    const uint64_t *const *x = a, *const *y = b;
    int order = ((*x)[2] > (*y)[2]) - ((*x)[2] < (*y)[2]);
    if (order == 0)
        order = ((*x)[3] > (*y)[3]) - ((*x)[3] < (*y)[3]);
    return order != 0 ? order : ((*x)[0] > (*y)[0]) - ((*x)[0] < (*y)[0]);
}

/* Of a kernel that does it once only: where it is a habit, it is meant. */
static gbx_status judge_repeated(const kernel *k, gbx_odd *odd) {
    const uint64_t **order = malloc(k->count * sizeof(const uint64_t *));
    size_t pairs = 0, position = 0;
    if (!order)
        return gbx_fail_memory("%s", doing);
    for (size_t i = 0; i < k->count; ++i)
        order[i] = &k->tasks[i * TASK_WORDS];
    qsort((void *)order, k->count, sizeof(const uint64_t *), compare_hashes);
    for (size_t i = 1; i < k->count; ++i)
        if (order[i][2] == order[i - 1][2] && order[i][3] == order[i - 1][3]) {
            position = i;
            ++pairs;
        }
    gbx_odd_argument found = {.kind = GBX_ODD_REPEATED, .unread = UINT64_MAX};
    if (pairs == 1) {
        found.task = order[position][0];
        found.entry = order[position][1];
        found.other = order[position - 1][0];
        found.other_entry = order[position - 1][1];
        found.siblings = k->count - 1;
    }
    free((void *)order);
    return pairs == 1 ? gbx_odd_add(odd, &found) : NULL;
}

/* --- all of it --- */

static gbx_status judge(const kernel *k, gbx_odd *odd) {
    if (k->is_uneven || k->count < LEAST_TASKS)
        return NULL;
    for (size_t f = 0; f < k->feature_count; ++f)
        if (k->features[f].kind == LAYOUT)
            GBX_TRY(judge_layout(k, f, odd));
    GBX_TRY(judge_relations(k, odd));
    return judge_repeated(k, odd);
}

static gbx_status judge_all(kernels *all, const gbx_task_graph *graph) {
    for (uint64_t i = 0; i < gbx_task_graph_count(graph); ++i)
        GBX_TRY(add_task(all, gbx_task_graph_at(graph, i)->task));
    for (size_t i = 0; i < all->count; ++i)
        GBX_TRY(judge(all->items[i], all->odd));
    return NULL;
}

gbx_status gbx_odd_find_relations(gbx_entries *entries, const gbx_task_graph *graph, gbx_odd *odd) {
    kernels all = {.entries = entries, .odd = odd};
    gbx_status status = judge_all(&all, graph);
    for (size_t i = 0; i < all.count; ++i) {
        free(all.items[i]->values);
        free(all.items[i]->tasks);
        free(all.items[i]);
    }
    return status;
}
