/*
 * Thousands of random graphs on all three runtimes, each compared with a plain model: the tasks one
 * after the other, in the order of submission, on arrays of this test. GLASSBOX_SEED reruns one
 * graph.
 */
#include "chip_support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/random_graph.h"
#include "toolchain/kernel_compiler.h"

enum {
    MAX_ELEMENTS = 96,
    MAX_EDGES = RANDOM_MAX_TASKS * RANDOM_MAX_TASKS,
    MAX_NEW_OUTPUTS = 64,
    NEW_OUTPUT_BYTES = 512, /* at most */
    HELD_OUTPUTS = 20,      /* of an outermost scope, at most */
    HEAP_BYTES = 32 << 10,
    TASK_WORDS = (RANDOM_MAX_TASKS + 63) / 64,
};

static const uint32_t buffer_bytes[RANDOM_BUFFERS] = {512, 768, 256, 1024};

/* All bytes of a graph in one range: the buffers, then the new outputs. */
enum { BUFFERS_END = 512 + 768 + 256 + 1024 };
enum { SPACE_BYTES = BUFFERS_END + MAX_NEW_OUTPUTS * NEW_OUTPUT_BYTES };

/* A graph, and where its bytes are in the model. */
typedef struct graph {
    uint64_t seed;
    random_plan plan;
    random_edge edges[MAX_EDGES];
    uint32_t places[RANDOM_MAX_TASKS][RANDOM_MAX_ARGS]; /* of the complete tensor, in that range */
    uint32_t new_count;
    uint32_t window;
    uint64_t dispatch_count;
    uint8_t initial[BUFFERS_END];
    uint8_t space[SPACE_BYTES];
} graph;

typedef struct task_set {
    uint64_t words[TASK_WORDS];
} task_set;

static graph current;

/* --- random --- */

static uint64_t random_state = 1;

static uint32_t below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state * UINT64_C(2685821657736338717) >> 33) % n);
}

static bool one_in(uint32_t n) {
    return below(n) == 0;
}

/* --- random views of `bytes` bytes --- */

static gbx_tensor line_view(int64_t count) {
    gbx_tensor view = {.ndims = 1};
    int64_t step = one_in(3) ? 2 + below(4) : 1;
    int64_t most = (count + step - 1) / step;
    most = most > MAX_ELEMENTS ? MAX_ELEMENTS : most;
    view.shape[0] = 1 + below((uint32_t)most);
    int64_t last = (view.shape[0] - 1) * step;
    view.start_offset = below((uint32_t)(count - last));
    view.strides[0] = step;
    if (one_in(4)) {
        view.start_offset += last;
        view.strides[0] = -step;
    }
    return view;
}

/* A tile of the buffer as a matrix, transposed or not. */
static gbx_tensor tile_view(int64_t count) {
    gbx_tensor view = {.ndims = 2};
    int64_t columns = INT64_C(4) << below(3);
    int64_t rows = count / columns;
    if (rows == 0)
        return line_view(count);
    view.shape[0] = 1 + below((uint32_t)(rows > 6 ? 6 : rows));
    view.shape[1] = 1 + below((uint32_t)columns);
    if (one_in(2)) /* aligned, so that tiles meet again */
        view.shape[0] = rows < 4 ? 1 : 2, view.shape[1] = columns / 2;
    int64_t row = below((uint32_t)(rows - view.shape[0] + 1)) / view.shape[0] * view.shape[0];
    int64_t column = below((uint32_t)(columns - view.shape[1] + 1)) / view.shape[1] * view.shape[1];
    view.start_offset = row * columns + column;
    view.strides[0] = columns;
    view.strides[1] = 1;
    return one_in(3) ? gbx_view_transpose(&view, 0, 1) : view;
}

/* Overlapping windows; elements occur several times. */
static gbx_tensor sliding_view(int64_t count) {
    gbx_tensor view = {.ndims = 2};
    int64_t width = 2 + below(6), step = below(3), windows = 2 + below(5);
    if (width + (windows - 1) * step > count)
        return line_view(count);
    view.shape[0] = windows;
    view.shape[1] = width;
    view.strides[0] = step;
    view.strides[1] = 1;
    view.start_offset = below((uint32_t)(count - (width + (windows - 1) * step) + 1));
    return view;
}

static gbx_tensor random_view(uint32_t bytes, bool is_written) {
    static const gbx_dtype dtypes[] = {GBX_UINT8, GBX_INT16, GBX_FLOAT32, GBX_INT64};
    gbx_tensor kind = {.dtype = (uint32_t)dtypes[below(4)]};
    int64_t count = bytes / random_element_bytes(&kind);
    gbx_tensor view;
    uint32_t which = below(12);
    if (which == 0)
        view = (gbx_tensor){.start_offset = below((uint32_t)count)};
    else if (which < 3 && !is_written)
        view = sliding_view(count);
    else
        view = which < 7 ? line_view(count) : tile_view(count);
    view.dtype = kind.dtype;
    view.buffer_bytes = bytes;
    return view;
}

/* --- the model: what a view touches, by counting through its indices --- */

typedef struct walk {
    const gbx_tensor *view;
    int64_t index[GBX_MAX_DIMS];
    int64_t element;
} walk;

static bool walk_on(walk *w) {
    for (uint32_t d = w->view->ndims; d-- > 0;) {
        w->element += w->view->strides[d];
        if (++w->index[d] < w->view->shape[d])
            return true;
        w->element -= w->view->strides[d] * w->index[d];
        w->index[d] = 0;
    }
    return false;
}

static walk walk_begin(const gbx_tensor *view) {
    return (walk){.view = view, .element = view->start_offset};
}

static uint8_t *bytes_at(graph *g, uint32_t task, uint32_t k, const walk *w) {
    return g->space + g->places[task][k] + w->element * random_element_bytes(w->view);
}

static uint64_t load_at(graph *g, uint32_t task, uint32_t k, const walk *w) {
    uint64_t value = 0;
    memcpy(&value, bytes_at(g, task, k, w), random_element_bytes(w->view));
    return value;
}

static void model_write(graph *g, uint32_t task, uint32_t k, uint64_t hash) {
    const random_arg *arg = &g->plan.tasks[task].args[k];
    walk w = walk_begin(&arg->view);
    uint64_t number = 0;
    do {
        uint64_t old = arg->role == GBX_ROLE_INOUT ? load_at(g, task, k, &w) : 0;
        uint64_t value = random_mix(random_mix(hash, number++), old);
        memcpy(bytes_at(g, task, k, &w), &value, random_element_bytes(&arg->view));
    } while (walk_on(&w));
}

static void model_run_task(graph *g, uint32_t number) {
    random_task *task = &g->plan.tasks[number];
    uint64_t hash = random_mix(1, number);
    walk first = walk_begin(&task->args[0].view);
    task->value = task->is_read ? load_at(g, number, 0, &first) : 0;
    for (uint32_t k = 0; k < task->arg_count; ++k) {
        walk w = walk_begin(&task->args[k].view);
        do
            if (task->args[k].role == GBX_ROLE_INPUT)
                hash = random_mix(hash, load_at(g, number, k, &w));
        while (walk_on(&w));
    }
    for (uint32_t k = 0; k < task->arg_count; ++k)
        if (task->args[k].role != GBX_ROLE_INPUT)
            model_write(g, number, k, random_mix(hash, k));
}

/* --- edges from bytes --- */

static uint16_t last_writer[SPACE_BYTES]; /* plus 1 */
static task_set readers[SPACE_BYTES];     /* since then */

static void add_to(task_set *set, uint32_t task) {
    set->words[task / 64] |= UINT64_C(1) << task % 64;
}

static bool has(const task_set *set, uint32_t task) {
    return set->words[task / 64] >> task % 64 & 1;
}

static void add_all(task_set *set, const task_set *other) {
    for (uint32_t i = 0; i < TASK_WORDS; ++i)
        set->words[i] |= other->words[i];
}

/* Calls `touch` for each byte that the task reads, or for each that it writes. */
static void over_bytes(graph *g, uint32_t number, bool is_write,
                       void (*touch)(uint32_t byte, uint32_t task, task_set *set), task_set *set) {
    const random_task *task = &g->plan.tasks[number];
    for (uint32_t k = 0; k < task->arg_count; ++k) {
        if ((task->args[k].role != GBX_ROLE_INPUT) != is_write)
            continue;
        walk w = walk_begin(&task->args[k].view);
        do
            for (uint32_t b = 0; b < random_element_bytes(w.view); ++b)
                touch((uint32_t)(bytes_at(g, number, k, &w) - g->space) + b, number, set);
        while (walk_on(&w));
    }
}

static void find_for_read(uint32_t byte, uint32_t task, task_set *set) {
    (void)task;
    if (last_writer[byte])
        add_to(set, last_writer[byte] - 1u);
}

static void find_for_write(uint32_t byte, uint32_t task, task_set *set) {
    find_for_read(byte, task, set);
    add_all(set, &readers[byte]);
}

static void note_read(uint32_t byte, uint32_t task, task_set *set) {
    (void)set;
    add_to(&readers[byte], task);
}

static void note_write(uint32_t byte, uint32_t task, task_set *set) {
    (void)set;
    last_writer[byte] = (uint16_t)(task + 1);
    readers[byte] = (task_set){{0}};
}

static task_set reached[RANDOM_MAX_TASKS]; /* all tasks before each */

/* Nearest predecessors first: those that they wait for need no edge. */
static void add_edges_to(graph *g, uint32_t task, const task_set *inputs, bool is_reduced) {
    reached[task] = (task_set){{0}};
    for (uint32_t from = task; from-- > 0;) {
        bool is_extra = one_in(400);
        if (!(has(inputs, from) && !(is_reduced && has(&reached[task], from))) && !is_extra)
            continue;
        g->edges[g->plan.edge_count++] = (random_edge){from, task};
        add_to(&reached[task], from);
        add_all(&reached[task], &reached[from]);
    }
}

static void find_edges(graph *g) {
    bool is_reduced = one_in(2);
    memset(last_writer, 0, sizeof last_writer);
    memset(readers, 0, (BUFFERS_END + g->new_count * NEW_OUTPUT_BYTES) * sizeof readers[0]);
    g->plan.edge_count = 0;
    for (uint32_t i = 0; i < g->plan.task_count; ++i) {
        task_set inputs = {{0}};
        over_bytes(g, i, false, find_for_read, &inputs);
        over_bytes(g, i, true, find_for_write, &inputs);
        add_edges_to(g, i, &inputs, is_reduced);
        over_bytes(g, i, false, note_read, NULL);
        over_bytes(g, i, true, note_write, NULL);
    }
}

/* --- random graphs --- */

/* Open scopes while a graph is made: outputs can be read while their scope is open. */
typedef struct scopes {
    uint32_t depth;
    uint32_t first_output[8]; /* of `outputs`, by depth */
    uint32_t outermost_begin;
    uint32_t held;
    uint32_t output_count;
    uint16_t output_tasks[MAX_NEW_OUTPUTS];
    uint8_t output_args[MAX_NEW_OUTPUTS];
} scopes;

static void end_scope(scopes *s, uint32_t *ends) {
    s->output_count = s->first_output[s->depth--];
    ++*ends;
}

/* An outermost scope holds at most as many tasks as the window. */
static void move_scopes(graph *g, scopes *s, uint32_t number) {
    random_task *task = &g->plan.tasks[number];
    while (s->depth > 0 && (one_in(8) || number - s->outermost_begin >= g->window))
        end_scope(s, &task->scope_ends);
    while (s->depth < 6 && one_in(s->depth ? 12 : 3)) {
        if (s->depth == 0) {
            s->outermost_begin = number;
            s->held = 0;
        }
        s->first_output[++s->depth] = s->output_count;
        ++task->scope_begins;
    }
}

static void make_new_output(graph *g, scopes *s, uint32_t task, uint32_t k) {
    random_arg *arg = &g->plan.tasks[task].args[k];
    int64_t shape[2] = {1 + below(4), 8 + below(8)};
    arg->place = RANDOM_NEW;
    arg->role = GBX_ROLE_OUTPUT;
    arg->view = gbx_new_tensor(one_in(2) ? GBX_UINT8 : GBX_INT64, 2, shape);
    arg->view.buffer_bytes = (uint64_t)(shape[0] * shape[1]) * random_element_bytes(&arg->view);
    g->places[task][k] = BUFFERS_END + g->new_count++ * NEW_OUTPUT_BYTES;
    ++s->held;
}

static void make_arg(graph *g, scopes *s, uint32_t task, uint32_t k) {
    random_arg *arg = &g->plan.tasks[task].args[k];
    arg->role = below(3);
    if (s->depth > 0 && s->held < HELD_OUTPUTS && g->new_count < MAX_NEW_OUTPUTS && one_in(4)) {
        make_new_output(g, s, task, k);
        return;
    }
    if (s->output_count > 0 && one_in(2)) {
        uint32_t which = below(s->output_count);
        arg->place = RANDOM_OF_TASK;
        arg->from = s->output_tasks[which];
        arg->from_arg = s->output_args[which];
        const random_arg *source = &g->plan.tasks[arg->from].args[arg->from_arg];
        arg->view = random_view((uint32_t)source->view.buffer_bytes, arg->role != GBX_ROLE_INPUT);
        g->places[task][k] = g->places[arg->from][arg->from_arg];
        return;
    }
    arg->place = RANDOM_IN_BUFFER;
    arg->from = below(RANDOM_BUFFERS);
    arg->view = random_view(buffer_bytes[arg->from], arg->role != GBX_ROLE_INPUT);
    for (uint32_t b = 0; b < arg->from; ++b)
        g->places[task][k] += buffer_bytes[b];
}

static uint8_t touched[SPACE_BYTES];

static void count_touch(uint32_t byte, uint32_t task, task_set *set) {
    (void)task;
    (void)set;
    touched[byte] = touched[byte] < 200 ? (uint8_t)(touched[byte] + 1) : 200;
}

static bool is_overlapping;

static void note_overlap(uint32_t byte, uint32_t task, task_set *set) {
    (void)task;
    (void)set;
    is_overlapping |= touched[byte] > 1;
}

/* Whether the task writes a byte that it also touches through another argument. */
static bool overlaps_itself(graph *g, uint32_t number) {
    is_overlapping = false;
    memset(touched, 0, BUFFERS_END + g->new_count * NEW_OUTPUT_BYTES);
    over_bytes(g, number, false, count_touch, NULL);
    over_bytes(g, number, true, count_touch, NULL);
    over_bytes(g, number, true, note_overlap, NULL);
    return is_overlapping;
}

/* Several dispatches write at the same time: only if no two arguments overlap. */
static void choose_kernels(graph *g, uint32_t number) {
    static const uint8_t mixes[] = {3, 5, 6, 7};
    random_task *task = &g->plan.tasks[number];
    uint32_t kind = below(12);
    task->block_num = 1;
    task->subtasks = kind < 5 ? 1 : kind < 9 ? 2 : kind == 9 ? 4 : mixes[below(4)];
    if (one_in(4))
        task->block_num = 1 + below(6);
    if ((kind > 9 || task->block_num > 1) && overlaps_itself(g, number)) {
        task->subtasks = 1u << below(3);
        task->block_num = 1;
    }
    g->dispatch_count += (uint64_t)__builtin_popcount(task->subtasks) * task->block_num;
    task->delay = one_in(2) ? 0 : one_in(8) ? below(10000) : below(300);
}

static void make_task(graph *g, scopes *s, uint32_t number) {
    random_task *task = &g->plan.tasks[number];
    memset(task, 0, sizeof *task);
    memset(g->places[number], 0, sizeof g->places[number]);
    move_scopes(g, s, number);
    task->arg_count = 1 + below(RANDOM_MAX_ARGS);
    for (uint32_t k = 0; k < task->arg_count; ++k)
        make_arg(g, s, number, k);
    task->is_read = one_in(40) && task->args[0].place != RANDOM_NEW;
    for (uint32_t k = 0; k < task->arg_count; ++k)
        if (task->args[k].place == RANDOM_NEW) {
            s->output_tasks[s->output_count] = (uint16_t)number;
            s->output_args[s->output_count++] = (uint8_t)k;
        }
    choose_kernels(g, number);
}

static void make_graph(graph *g, uint64_t seed) {
    scopes s = {0};
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (uint32_t i = 0; i < 4; ++i)
        below(2);
    g->seed = seed;
    g->new_count = 0;
    g->dispatch_count = 0;
    g->window = 2 + (one_in(2) ? below(6) : below(63));
    g->plan.task_count = one_in(12) ? 5 + below(RANDOM_MAX_TASKS - 4) : 5 + below(36);
    g->plan.publishes_late = one_in(3);
    g->plan.scope_ends = 0;
    for (uint32_t i = 0; i < g->plan.task_count; ++i)
        make_task(g, &s, i);
    while (s.depth > 0)
        end_scope(&s, &g->plan.scope_ends);
    find_edges(g);
    for (uint32_t i = 0; i < BUFFERS_END; ++i)
        g->space[i] = g->initial[i] = (uint8_t)below(256);
    for (uint32_t i = 0; i < g->plan.task_count; ++i)
        model_run_task(g, i);
}

/* --- on a chip --- */

#define KERNEL(n)                                                                                  \
    static void kernel_##n(const uint64_t *args) {                                                 \
        random_kernel(args, n);                                                                    \
    }
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)
KERNEL(5)

static void register_kernels(gbx_chip *chip, gbx_device_mode device) {
    static const gbx_kernel_function functions[] = {NULL,     kernel_1, kernel_2,
                                                    kernel_3, kernel_4, kernel_5};
    for (uint32_t n = 1; n <= RANDOM_MAX_ARGS; ++n) {
        char path[4096];
        char flags[32];
        gbx_kernel kernel = test_kernel(RANDOM_AIC + n, GBX_CORE_AIC, "random_kernel.c", path);
        snprintf(flags, sizeof flags, "-DTENSORS=%u", n);
        kernel.compile_flags = flags;
        if (device == GBX_DEVICE_THREAD) {
            kernel.source = kernel.compile_flags = NULL;
            kernel.function = functions[n];
        }
        assert_ok(gbx_kernel_register(chip, &kernel));
        kernel.func_id = RANDOM_AIV + n;
        kernel.core = GBX_CORE_AIV;
        assert_ok(gbx_kernel_register(chip, &kernel));
    }
}

static gbx_run_tensor run_tensor(const char *name, const void *bytes, uint64_t count,
                                 gbx_role role) {
    gbx_run_tensor tensor = {.name = name, .role = role};
    int64_t shape = (int64_t)count;
    assert_ok(
        gbx_tensor_contiguous((uint64_t)(uintptr_t)bytes, GBX_UINT8, 1, &shape, &tensor.tensor));
    return tensor;
}

typedef struct configuration {
    const char *platform;
    gbx_device_mode device;
    uint32_t blocks;
    uint32_t threads;
} configuration;

static void explain(const graph *g, const char *runtime, const configuration *c) {
    fprintf(stderr,
            "%s on %s %s, %u blocks, %u AICPU threads: %u tasks, window %u; GLASSBOX_SEED=%" PRIu64
            " runs it again\n",
            runtime, c->platform, c->device == GBX_DEVICE_THREAD ? "in a thread" : "in a process",
            c->blocks, c->threads, g->plan.task_count, g->window, g->seed);
}

static void check_bytes(const graph *g, const uint8_t *bytes, const char *runtime,
                        const configuration *c) {
    for (uint32_t i = 0; i < BUFFERS_END; ++i) {
        if (bytes[i] == g->space[i])
            continue;
        explain(g, runtime, c);
        fail_msg("byte %u of the buffers is %02x, one after the other gives %02x", i, bytes[i],
                 g->space[i]);
    }
}

/* Compiled once: each run would check again whether the source has changed. */
static char *orchestration_path;

static void compile_orchestration(void) {
    char path[4096];
    gbx_kernel source = test_kernel(0, GBX_CORE_AIC, "random_orchestration.c", path);
    assert_ok(gbx_kernel_compile(source.source, NULL, NULL, &orchestration_path));
}

static void run_on(gbx_chip *chip, graph *g, uint32_t runtime, const configuration *c) {
    static const char *const names[] = {"host_build_graph", "aicpu_build_graph",
                                        "tensormap_and_ringbuffer"};
    static uint8_t bytes[BUFFERS_END];
    gbx_call_config config = {.timeout_ms = 300 * 1000,
                              .window = g->window,
                              .heap_bytes = HEAP_BYTES,
                              .build = g->seed % 2 ? GBX_BUILD_SEQUENTIAL : GBX_BUILD_CONCURRENT};
    gbx_run_tensor tensors[RANDOM_FIRST_BUFFER + RANDOM_BUFFERS];
    gbx_call_result result;
    uint8_t *at = bytes;
    g->plan.runtime = runtime;
    memcpy(bytes, g->initial, sizeof bytes);
    tensors[RANDOM_PLAN] = run_tensor(
        "plan", &g->plan, offsetof(random_plan, tasks) + g->plan.task_count * sizeof(random_task),
        GBX_ROLE_INPUT);
    tensors[RANDOM_EDGES] = run_tensor(
        "edges", g->edges, (g->plan.edge_count + 1) * sizeof(random_edge), GBX_ROLE_INPUT);
    for (uint32_t b = 0; b < RANDOM_BUFFERS; at += buffer_bytes[b++])
        tensors[RANDOM_FIRST_BUFFER + b] =
            run_tensor("buffer", at, buffer_bytes[b], GBX_ROLE_INOUT);
    bool is_function = c->device == GBX_DEVICE_THREAD;
    gbx_run run = {.runtime = names[runtime],
                   .function = is_function ? random_orchestrate : NULL,
                   .shared_object = is_function ? NULL : orchestration_path,
                   .tensors = tensors,
                   .tensor_count = RANDOM_FIRST_BUFFER + RANDOM_BUFFERS};
    gbx_status status = gbx_chip_run(chip, &run, &config, &result);
    if (status)
        explain(g, names[runtime], c);
    assert_ok(status);
    check_bytes(g, bytes, names[runtime], c);
    assert_int_equal(result.tasks, g->plan.task_count);
    assert_int_equal(result.dispatches, g->dispatch_count);
}

/* --- how many --- */

static uint64_t first_seed;
static bool is_rerun;

static uint32_t graphs_per_chip(gbx_device_mode device) {
    uint32_t count = device == GBX_DEVICE_THREAD ? 420 : 240;
    if (is_rerun)
        return 50;
    if (getenv("GLASSBOX_STRESS"))
        return count * 50;
    return is_thread_sanitized() ? 40 : count;
}

static void test_configuration(void **state) {
    const configuration *c = *state;
    gbx_chip_config config = {.platform = c->platform,
                              .device = c->device,
                              .blocks = c->blocks,
                              .aicpu_threads = c->threads,
                              .gm_bytes = 64 << 20};
    gbx_chip *chip;
    assert_ok(gbx_chip_open(&config, &chip));
    register_kernels(chip, c->device);
    if (c->device == GBX_DEVICE_PROCESS && !orchestration_path)
        compile_orchestration();
    for (uint32_t i = 0; i < graphs_per_chip(c->device); ++i) {
        make_graph(&current, is_rerun ? first_seed : first_seed++);
        for (uint32_t runtime = 0; runtime <= RANDOM_TENSORMAP; ++runtime)
            run_on(chip, &current, runtime, c);
    }
    gbx_chip_close(chip);
}

int main(void) {
    static configuration all[] = {
        {"a2a3sim", GBX_DEVICE_THREAD, 1, 1},  {"a5sim", GBX_DEVICE_THREAD, 1, 4},
        {"a2a3sim", GBX_DEVICE_THREAD, 2, 2},  {"a5sim", GBX_DEVICE_THREAD, 2, 8},
        {"a2a3sim", GBX_DEVICE_THREAD, 8, 1},  {"a5sim", GBX_DEVICE_THREAD, 8, 2},
        {"a2a3sim", GBX_DEVICE_THREAD, 24, 4}, {"a5sim", GBX_DEVICE_THREAD, 24, 8},
        {"a2a3sim", GBX_DEVICE_PROCESS, 2, 1}, {"a2a3sim", GBX_DEVICE_PROCESS, 8, 2},
        {"a5sim", GBX_DEVICE_PROCESS, 1, 4},   {"a5sim", GBX_DEVICE_PROCESS, 24, 2},
    };
    enum { COUNT = sizeof all / sizeof all[0] };
    struct CMUnitTest tests[COUNT];
    static char names[COUNT][80];
    const char *given = getenv("GLASSBOX_SEED");
    is_rerun = given;
    first_seed = given ? strtoull(given, NULL, 0) : (uint64_t)gbx_clock_ns();
    for (size_t i = 0; i < COUNT; ++i) {
        snprintf(names[i], sizeof names[i], "%s in a %s, %u blocks, %u AICPU threads",
                 all[i].platform, all[i].device == GBX_DEVICE_THREAD ? "thread" : "process",
                 all[i].blocks, all[i].threads);
        tests[i] = (struct CMUnitTest){names[i], test_configuration, NULL, NULL, &all[i]};
    }
    int failed = cmocka_run_group_tests_name("random graphs", tests, NULL, NULL);
    free(orchestration_path);
    return failed;
}
