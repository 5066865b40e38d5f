#include "runtime/tensormap_and_ringbuffer/window.h"

#include "base/numbers.h"

enum {
    EDGES_PER_TASK = 4,
    MIN_EDGES = 4096,
    TENSORS_PER_TASK = 4,
    MIN_TENSORS = 1024,
    RETIRE_BATCH = 64,
    LARGEST_ARGUMENT_BYTES = 8192, /* the most that the end of a ring can waste */
    /* How much of each ring is used while tasks complete as fast as they come: stays in cache. */
    SOFT_TASKS = 1024,
    SOFT_EDGES = 2048,
    SOFT_ARGUMENT_BYTES = 512 << 10,
    SOFT_HEAP_BYTES = 16 << 20,
};

/* Words of a task's storage: positions of the rings after it, and the rest. */
enum { ARGUMENTS_END = 0, HEAP_END = 1, EDGES_END = 2, DETAILS = 3 };

static gbx_ring ring_of(uint64_t base, uint64_t bytes, uint64_t soft_bytes) {
    return (gbx_ring){.base = base, .bytes = bytes, .soft_bytes = soft_bytes};
}

/* In the low half of the details; the high half is the depth of the scope. */
enum { HAS_NEW = 1u << 0, HAS_TENSORS = 1u << 1 };

static uint64_t at_least(uint64_t value, uint64_t least) {
    return value > least ? value : least;
}

static uint64_t align(uint64_t bytes) {
    return (bytes + 63) & ~UINT64_C(63);
}

/* --- memory --- */

typedef struct layout {
    uint32_t capacity;
    uint32_t edge_capacity;
    uint32_t access_capacity;
    uint64_t tasks_at;
    uint64_t cells_at;
    uint64_t marks_at;
    uint64_t edges_at;
    uint64_t map_at;
    uint64_t bytes;
} layout;

static layout layout_of(uint32_t size) {
    layout at = {.capacity = gbx_power_of_two_from(size)};
    at.edge_capacity = gbx_power_of_two_from(at_least((uint64_t)size * EDGES_PER_TASK, MIN_EDGES));
    at.access_capacity = (uint32_t)at_least((uint64_t)size * TENSORS_PER_TASK, MIN_TENSORS);
    /* First the map, because it begins with its hash tables, which are touched everywhere. */
    at.map_at = align(sizeof(gbx_window));
    at.tasks_at = align(at.map_at + gbx_tensor_map_bytes(at.access_capacity, size));
    at.cells_at = at.tasks_at + at.capacity * sizeof(gbx_sched_task);
    at.marks_at =
        align(at.cells_at + (uint64_t)at.capacity * GBX_CLASS_COUNT * sizeof(gbx_ready_cell));
    at.edges_at = align(at.marks_at + at.capacity * sizeof(uint64_t));
    at.bytes = at.edges_at + at.edge_capacity * sizeof(gbx_sched_edge);
    return at;
}

uint64_t gbx_window_bytes(uint32_t size) {
    return layout_of(size).bytes;
}

static void begin_map(gbx_window *window, const layout *at, char *memory) {
    const gbx_graph_launch *launch = window->graph->launch;
    window->map = gbx_tensor_map_init(memory + at->map_at, at->access_capacity, launch->window);
    for (uint32_t i = 0; i < launch->tensor_count; ++i)
        gbx_tensor_map_add_buffer(window->map, launch->tensors[i].data,
                                  launch->tensors[i].buffer_bytes);
    gbx_tensor_map_set_heap(window->map, launch->heap,
                            launch->heap_bytes + launch->heap_spare_bytes);
}

void gbx_window_begin(gbx_graph *graph) {
    const gbx_graph_launch *launch = graph->launch;
    layout at = layout_of(launch->window);
    char *memory = graph->memory;
    gbx_window *window = graph->memory;
    window->graph = graph;
    window->tasks = (gbx_sched_task *)(memory + at.tasks_at);
    window->size = launch->window;
    window->access_capacity = at.access_capacity;
    window->places = ring_of(0, at.capacity, SOFT_TASKS);
    window->marks = (uint64_t *)(memory + at.marks_at);
    window->edges = (gbx_sched_edge *)(memory + at.edges_at);
    window->edge_places = ring_of(0, at.edge_capacity, SOFT_EDGES);
    window->arguments = ring_of(launch->storage, launch->storage_bytes, SOFT_ARGUMENT_BYTES);
    window->heap =
        ring_of(launch->heap, launch->heap_bytes + launch->heap_spare_bytes, SOFT_HEAP_BYTES);
    window->zone_bytes = gbx_graph_has_zones(graph) ? GBX_PROBE_GRANULE : 0;
    begin_map(window, &at, memory);
    gbx_graph_begin_sched(graph, window->tasks, at.capacity,
                          (gbx_ready_cell *)(memory + at.cells_at), false);
}

/* --- giving back --- */

/* The oldest task follows the one retired last, or is the first of the ring. */
static uint64_t oldest_position(const gbx_window *window) {
    uint64_t position = window->places.tail;
    if (gbx_window_task(window, position)->id == window->next_id - window->in_flight)
        return position;
    return (position | (window->places.bytes - 1)) + 1;
}

static gbx_sched_task *oldest_task(const gbx_window *window) {
    return gbx_window_task(window, oldest_position(window));
}

/*
 * A task whose outputs the runtime has allocated stays while its scope is open. The open scope at
 * its depth is its own, unless that one has ended and another has begun since.
 */
static bool is_held(const gbx_window *window, const gbx_sched_task *task) {
    uint32_t depth = (uint32_t)(task->storage[DETAILS] >> 32);
    return task->storage[DETAILS] & HAS_NEW && depth <= window->depth &&
           window->scope_first[depth] <= task->id;
}

/* Whether a task still uses the outputs of the oldest; `awaits`: sleeps until it has completed. */
typedef struct use {
    gbx_window *window;
    bool awaits;
    bool is_used;
} use;

static void find_user(void *context, uint64_t position) {
    use *of = context;
    gbx_sched_task *user = gbx_window_task(of->window, position);
    if (of->awaits)
        gbx_sched_await(&of->window->graph->sched, user);
    of->is_used |= !gbx_sched_task_is_completed(user);
}

/* Whether a later task still uses the heap's oldest piece, which belongs to the oldest task. */
static bool is_used(gbx_window *window, const gbx_sched_task *oldest, bool awaits) {
    use of = {.window = window, .awaits = awaits};
    if (!(oldest->storage[DETAILS] & HAS_NEW))
        return false;
    gbx_tensor piece = gbx_tensor_map_heap_oldest(window->map);
    gbx_tensor_map_find(window->map, &piece, true, find_user, &of);
    return of.is_used;
}

static void retire_oldest(gbx_window *window, const gbx_sched_task *task) {
    uint64_t details = task->storage[DETAILS];
    uint64_t position = oldest_position(window);
    if (details & HAS_TENSORS)
        gbx_tensor_map_retire(window->map, position);
    if (details & HAS_NEW)
        gbx_tensor_map_heap_pop(window->map);
    gbx_ring_give(&window->arguments, task->storage[ARGUMENTS_END]);
    gbx_ring_give(&window->heap, task->storage[HEAP_END]);
    gbx_ring_give(&window->edge_places, task->storage[EDGES_END]);
    gbx_ring_give(&window->places, position + 1);
    --window->in_flight;
}

/* Retires completed tasks, oldest first; false when there were none. */
static bool retire(gbx_window *window) {
    uint64_t before = window->in_flight;
    while (window->in_flight > 0) {
        gbx_sched_task *task = oldest_task(window);
        if (!gbx_sched_task_is_completed(task) || is_held(window, task) ||
            is_used(window, task, false))
            break;
        retire_oldest(window, task);
    }
    return window->in_flight != before;
}

/* --- room --- */

static bool has_room(const gbx_window *window, const gbx_window_need *need) {
    return window->in_flight < window->size && gbx_ring_has_room(&window->places, 1) &&
           gbx_ring_has_room(&window->arguments, need->argument_bytes) &&
           (need->heap_bytes == 0 || gbx_ring_has_room(&window->heap, need->heap_bytes)) &&
           gbx_tensor_map_room(window->map) >= need->tensor_count;
}

/* The window that has room for all that the scope keeps; tasks with many tensors need more. */
static uint64_t enough_window(const gbx_window *window) {
    uint64_t for_tensors = window->wanted_tensors / TENSORS_PER_TASK + 1;
    uint64_t for_arguments =
        (window->wanted_argument_bytes + LARGEST_ARGUMENT_BYTES) / GBX_ARGUMENT_BYTES_PER_TASK + 1;
    uint64_t enough = window->wanted_tasks;
    if (window->wanted_tensors > MIN_TENSORS)
        enough = at_least(enough, for_tensors);
    if (window->wanted_argument_bytes > window->arguments.bytes)
        enough = at_least(enough, for_arguments);
    return enough;
}

/* An open scope keeps everything: waiting would never end. */
static void report_full(gbx_window *window, const gbx_window_need *need) {
    bool is_heap = need->heap_bytes != 0 && !gbx_ring_has_room(&window->heap, need->heap_bytes);
    uint64_t limit = is_heap ? window->graph->launch->heap_bytes : window->size;
    window->full_depth = (uint32_t)(oldest_task(window)->storage[DETAILS] >> 32);
    window->is_counting = true;
    window->wanted_tasks = window->in_flight;
    window->wanted_tensors = window->access_capacity - gbx_tensor_map_room(window->map);
    window->wanted_argument_bytes = window->arguments.head - window->arguments.tail;
    window->wanted_bytes = window->heap.head - window->heap.tail;
    gbx_graph_fail(window->graph, is_heap ? GBX_GRAPH_HEAP : GBX_GRAPH_WINDOW, window->next_id,
                   need->func_id, (int64_t)limit, 0);
    gbx_window_count_wanted(window, need);
}

void gbx_window_count_wanted(gbx_window *window, const gbx_window_need *need) {
    if (!window->is_counting)
        return;
    ++window->wanted_tasks;
    window->wanted_tensors += need->tensor_count;
    window->wanted_argument_bytes += need->argument_bytes;
    window->wanted_bytes += need->heap_bytes;
    gbx_graph_error *error = &window->graph->error;
    error->values[1] =
        (int64_t)(error->kind == GBX_GRAPH_HEAP ? window->wanted_bytes : window->wanted_tasks);
    error->values[2] = (int64_t)enough_window(window);
}

/* Sleeps until a quarter is done, to not wake up for every single task. */
static bool await_some(gbx_window *window) {
    gbx_sched *sched = &window->graph->sched;
    uint64_t quarter = oldest_position(window) + window->in_flight / 4;
    gbx_sched_task *task = gbx_window_task(window, quarter);
    /* Past the end of the ring lies a task that is no longer, or not yet, in flight. */
    bool is_in_flight = task->id >= window->next_id - window->in_flight;
    gbx_sched_task *oldest = oldest_task(window);
    if ((is_in_flight && !gbx_sched_await(sched, task)) || !gbx_sched_await(sched, oldest))
        return false;
    return is_held(window, oldest) || !is_used(window, oldest, true);
}

bool gbx_window_make_room(gbx_window *window, const gbx_window_need *need) {
    /* Now and then, for many at once, before room is needed. */
    if (window->next_id % RETIRE_BATCH == 0)
        retire(window);
    while (!has_room(window, need)) {
        if (retire(window))
            continue;
        gbx_sched_task *oldest = oldest_task(window);
        /* Completed and held: only the orchestration can release it, and that waits here. */
        if (window->in_flight == 0 ||
            (is_held(window, oldest) && gbx_sched_task_is_completed(oldest))) {
            report_full(window, need);
            return false;
        }
        if (!await_some(window))
            return false;
    }
    return true;
}

/* --- taking --- */

gbx_sched_task *gbx_window_take(gbx_window *window, uint64_t *out_position) {
    *out_position = gbx_ring_position(&window->places, 1);
    return &window->tasks[gbx_ring_take(&window->places, 1)];
}

/*
 * What an open scope keeps may fill the rings: while it is open no part is skipped. A part skipped
 * before is given back as soon as the tasks before it have completed.
 */
static void set_keeping(gbx_window *window, uint64_t scopes) {
    window->keeping_scopes = scopes;
    window->places.is_kept = window->arguments.is_kept = scopes != 0;
    window->heap.is_kept = window->edge_places.is_kept = scopes != 0;
}

void gbx_window_begin_scope(gbx_window *window) {
    window->scope_first[++window->depth] = window->next_id;
    window->scope_heap[window->depth] = window->heap.head;
}

/* Scopes inside of it have ended before, and are part of it. */
static void note_ended(gbx_window *window, gbx_ended_scope scope) {
    if (scope.begin == scope.end)
        return;
    while (window->ended_count > 0 && window->ended[window->ended_count - 1].begin >= scope.begin)
        --window->ended_count;
    if (window->ended_count > 0 && window->ended[window->ended_count - 1].end == scope.begin) {
        window->ended[window->ended_count - 1].end = scope.end;
        return;
    }
    if (window->ended_count == GBX_ENDED_SCOPES)
        memmove(window->ended, window->ended + 1, --window->ended_count * sizeof window->ended[0]);
    window->ended[window->ended_count++] = scope;
}

bool gbx_window_has_ended(const gbx_window *window, uint64_t address) {
    const gbx_ring *heap = &window->heap;
    uint64_t at = address - heap->base;
    if (at >= heap->bytes)
        return false;
    /* What lies behind the head is of the lap before; in the first lap nothing does. */
    bool is_of_this_lap = at < heap->head - heap->lap;
    if (!is_of_this_lap && heap->lap == 0)
        return false;
    uint64_t position = heap->lap + at - (is_of_this_lap ? 0 : heap->bytes);
    for (uint32_t i = window->ended_count; i-- > 0 && position < window->ended[i].end;)
        if (position >= window->ended[i].begin)
            return true;
    return position < heap->tail;
}

void gbx_window_end_scope(gbx_window *window) {
    note_ended(window, (gbx_ended_scope){window->scope_heap[window->depth], window->heap.head});
    if (window->depth == window->full_depth)
        window->is_counting = false;
    set_keeping(window, window->keeping_scopes & ~(UINT64_C(1) << window->depth));
    --window->depth;
}

void gbx_window_note(gbx_window *window, gbx_sched_task *task, const gbx_args *args) {
    task->storage[ARGUMENTS_END] = window->arguments.head;
    task->storage[HEAP_END] = window->heap.head;
    task->storage[EDGES_END] = window->edge_places.head;
    task->storage[DETAILS] = (uint64_t)window->depth << 32 | (args->new_outputs ? HAS_NEW : 0) |
                             (args->tensor_count ? HAS_TENSORS : 0);
    if (args->new_outputs)
        set_keeping(window, window->keeping_scopes | UINT64_C(1) << window->depth);
    ++window->next_id;
    ++window->in_flight;
}

void gbx_window_depend(gbx_window *window, gbx_sched_task *task, uint64_t position) {
    uint64_t *mark = &window->marks[position & (window->places.bytes - 1)];
    if (*mark == task->id + 1)
        return;
    *mark = task->id + 1;
    gbx_sched_task *before = gbx_window_task(window, position);
    if (gbx_sched_task_is_completed(before))
        return;
    if (!gbx_ring_has_room(&window->edge_places, 1)) {
        /* No room for the edge: waits here instead. */
        gbx_sched_await(&window->graph->sched, before);
        return;
    }
    gbx_sched_edge *edge = &window->edges[gbx_ring_take(&window->edge_places, 1)];
    *edge =
        (gbx_sched_edge){.next_input = task->inputs, .successor = task, .predecessor = before->id};
    task->inputs = edge;
    gbx_sched_link(before, edge);
}
