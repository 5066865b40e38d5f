/*
 * Many tasks quickly. Tasks whose windows have the same sizes share a *screen*: two pictures that
 * stay mapped, one for each pattern, at addresses of their own, far from everything else. Between
 * two tasks the pictures hold nothing but their patterns, so that a task finds exactly its inputs
 * there, and stray writes can wait to be noticed until the end of the batch.
 *
 * A screen only says that a task is clean. All others are asked again, alone, at the addresses of
 * the run.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "replay/worker/pattern.h"
#include "replay/worker/rows.h"
#include "replay/worker/worker.h"

enum { MAX_SCREENS = 24 };
/* A larger task would fill the caches with patterns. */
#define MAX_SCREEN_BYTES (UINT64_C(16) << 20)

/* Addresses of screens: half of those that chips have, without the one of the run. A gap is wider
 * than the distance of two tiles, and no round number. */
#define SLOT_BYTES (UINT64_C(32) << 30)
#define FIRST_SLOT UINT64_C(0x7e9000000000)
#define REGION_BYTES (6 * SLOT_BYTES)
#define GAP_BYTES ((UINT64_C(1) << 30) + 13 * (uint64_t)GBX_PICTURE_PAGE)

typedef struct screen {
    gbx_picture pictures[GBX_PATTERNS];
    gbx_order *placed;      /* the task whose rows still lie in the pictures; NULL: none */
    const gbx_order *clean; /* the last task, if its inputs are still in the pictures; else NULL */
    uint32_t tasks[GBX_BATCH_TASKS]; /* of this batch */
    uint32_t task_count;
} screen;

struct gbx_screens {
    screen *items[MAX_SCREENS];
    uint32_t count;
    uint64_t region; /* the first address */
    uint64_t next;   /* free address */
};

gbx_screens *gbx_screens_create(void) {
    return calloc(1, sizeof(gbx_screens));
}

/* --- screens --- */

/* Room for tensors at any offset in a page. */
static uint64_t room_of(const gbx_window *window, const gbx_order *order,
                        const gbx_picture *picture, uint32_t number) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        int64_t begin, end;
        if (picture->window_of[i] != (int32_t)number)
            continue;
        gbx_tensor_extent(&arguments[i].tensor, &begin, &end);
        uint64_t from = arguments[i].tensor.data + (uint64_t)begin - window->start;
        uint64_t to = arguments[i].tensor.data + (uint64_t)end - window->start;
        first = from < first ? from : first;
        last = to > last ? to : last;
    }
    uint64_t pages = (last - first + GBX_PICTURE_PAGE - 1) / GBX_PICTURE_PAGE;
    return (pages + 3) * GBX_PICTURE_PAGE;
}

static bool has_windows(const screen *s, const gbx_picture *wanted) {
    const gbx_picture *own = &s->pictures[0];
    if (own->window_count != wanted->window_count)
        return false;
    for (uint32_t i = 0; i < own->window_count; ++i)
        if (own->windows[i].bytes != wanted->windows[i].bytes ||
            own->windows[i].flavour != wanted->windows[i].flavour)
            return false;
    return true;
}

static void destroy(screen *s) {
    for (int p = 0; p < GBX_PATTERNS; ++p)
        gbx_picture_close(&s->pictures[p]);
    free(s->placed);
    free(s);
}

static void destroy_all(gbx_screens *screens) {
    while (screens->count > 0)
        destroy(screens->items[--screens->count]);
    screens->next = screens->region;
}

/* Maps a picture and fills it with its pattern; false if the system refuses. */
static bool map_picture(gbx_screens *screens, gbx_picture *picture, int pattern,
                        const gbx_picture *wanted) {
    picture->bytes = wanted->bytes;
    picture->window_count = 0;
    picture->mirror = malloc(wanted->bytes + 1);
    if (!picture->mirror)
        return false;
    uint64_t offset = 0;
    char error[GBX_CALL_ERROR_BYTES];
    for (uint32_t i = 0; i < wanted->window_count; ++i) {
        gbx_window *window = &picture->windows[i];
        *window = (gbx_window){.bytes = wanted->windows[i].bytes,
                               .address = screens->next,
                               .offset = offset,
                               .flavour = wanted->windows[i].flavour};
        if (gbx_window_map(window, error))
            return false;
        picture->window_count++;
        screens->next += window->bytes + GAP_BYTES;
        offset += window->bytes;
        gbx_pattern_fill(pattern, window->flavour, i, picture->mirror + window->offset,
                         window->bytes);
        memcpy((void *)(uintptr_t)window->address, picture->mirror + window->offset, window->bytes);
    }
    return true;
}

static screen *make_screen(gbx_screens *screens, const gbx_picture *wanted) {
    screen *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    for (int p = 0; p < GBX_PATTERNS; ++p)
        if (!map_picture(screens, &s->pictures[p], p, wanted)) {
            destroy(s);
            return NULL;
        }
    screens->items[screens->count++] = s;
    return s;
}

/* NULL where there is no room before the batch ends: then the task is asked alone. */
static screen *find_screen(gbx_screens *screens, const gbx_order *order,
                           const gbx_picture *wanted) {
    uint64_t slot = (order->gm_base - FIRST_SLOT) / SLOT_BYTES;
    uint64_t region = slot < 6 ? FIRST_SLOT + 7 * SLOT_BYTES : FIRST_SLOT;
    uint64_t needed = 2 * (wanted->bytes + wanted->window_count * GAP_BYTES);
    for (uint32_t i = 0; screens->region != region && i < screens->count; ++i)
        if (screens->items[i]->task_count > 0)
            return NULL; /* another chip's memory in the same batch */
    if (screens->region != region) {
        screens->region = region;
        destroy_all(screens);
    }
    for (uint32_t i = 0; i < screens->count; ++i)
        if (has_windows(screens->items[i], wanted))
            return screens->items[i];
    bool is_full = screens->count == MAX_SCREENS || screens->next + needed > region + REGION_BYTES;
    return is_full ? NULL : make_screen(screens, wanted);
}

/* --- the content of pictures --- */

/* What was placed for a task becomes pattern again. */
static void clear(screen *s, void *scratch) {
    const gbx_order *order = s->placed;
    for (uint32_t i = 0; order && i < order->argument_count; ++i)
        for (int p = 0; p < GBX_PATTERNS; ++p)
            if (gbx_order_arguments(order)[i].kind == GBX_CALL_TENSOR &&
                s->pictures[p].window_of[i] >= 0)
                gbx_rows_copy(&s->pictures[p].tensors[i], gbx_picture_mirrored(&s->pictures[p], i),
                              gbx_picture_buffer(&s->pictures[p], i), scratch);
    free(s->placed);
    s->placed = NULL;
    s->clean = NULL;
}

/* Whether the tensors of a task lie where those of the one before lay. */
static bool is_placed_alike(const screen *s, const gbx_order *order, const gbx_picture *wanted) {
    if (!s->placed || s->placed->argument_count != order->argument_count)
        return false;
    const gbx_order_argument *new = gbx_order_arguments(order);
    const gbx_order_argument *old = gbx_order_arguments(s->placed);
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        if (new[i].kind != old[i].kind || new[i].role != old[i].role)
            return false;
        if (new[i].kind != GBX_CALL_TENSOR)
            continue;
        gbx_tensor moved = new[i].tensor;
        int32_t window = wanted->window_of[i];
        if (window < 0 || window != s->pictures[0].window_of[i])
            return false;
        moved.data += s->pictures[0].windows[window].address - wanted->windows[window].start;
        if (memcmp(&moved, &s->pictures[0].tensors[i], sizeof moved) != 0)
            return false;
    }
    return true;
}

/* After a stray write: any of the tasks since the last verification may have done it. */
static void restore_patterns(screen *s, const gbx_batch *batch) {
    for (int p = 0; p < GBX_PATTERNS; ++p) {
        const gbx_picture *picture = &s->pictures[p];
        for (uint32_t i = 0; i < picture->window_count; ++i)
            memcpy((void *)(uintptr_t)picture->windows[i].address,
                   picture->mirror + picture->windows[i].offset, picture->windows[i].bytes);
    }
    for (uint32_t i = 0; i < s->task_count; ++i) {
        gbx_answer *answer = gbx_batch_answer(batch, s->tasks[i]);
        if (atomic_load_explicit(&answer->state, memory_order_relaxed) == GBX_ANSWER_CLEAN)
            atomic_store_explicit(&answer->state, GBX_ANSWER_LOOK, memory_order_release);
    }
    s->task_count = 0;
}

/* Whether a task finds only patterns where its tensors will lie. If it does not, a task before it
 * has strayed there, and that must not be painted over. */
static bool finds_patterns(const screen *s, const gbx_order *order) {
    for (int p = 0; p < GBX_PATTERNS; ++p)
        for (uint32_t i = 0; i < order->argument_count; ++i)
            if (gbx_order_arguments(order)[i].kind == GBX_CALL_TENSOR &&
                s->pictures[p].window_of[i] >= 0 &&
                !gbx_rows_same(&s->pictures[p].tensors[i], gbx_picture_buffer(&s->pictures[p], i),
                               gbx_picture_mirrored(&s->pictures[p], i)))
                return false;
    return true;
}

static bool place(screen *s, const gbx_order *order, const gbx_picture *wanted,
                  const gbx_batch *batch, void *scratch) {
    if (is_placed_alike(s, order, wanted))
        return true;
    clear(s, scratch);
    size_t bytes = sizeof *order + order->argument_count * sizeof(gbx_order_argument);
    s->placed = malloc(bytes);
    if (!s->placed)
        return false;
    memcpy(s->placed, order, bytes);
    for (int p = 0; p < GBX_PATTERNS; ++p) {
        gbx_picture *picture = &s->pictures[p];
        picture->pattern = p;
        memcpy(picture->window_of, wanted->window_of, sizeof picture->window_of);
        for (uint32_t i = 0; i < picture->window_count; ++i)
            picture->windows[i].start = wanted->windows[i].start;
        gbx_picture_place(picture, order);
    }
    if (!finds_patterns(s, order))
        restore_patterns(s, batch);
    return true;
}

/* Inputs, which stay until another task is placed, and everything that the call before changed. */
static void prepare(gbx_worker *worker, const gbx_order *order, const gbx_picture *picture,
                    bool has_inputs) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        void *buffer = gbx_picture_buffer(picture, i);
        if (arguments[i].kind != GBX_CALL_TENSOR || picture->window_of[i] < 0)
            continue;
        if (arguments[i].role == GBX_ROLE_OUTPUT)
            gbx_rows_copy(&picture->tensors[i], gbx_picture_mirrored(picture, i), buffer,
                          worker->scratch);
        else if (arguments[i].role == GBX_ROLE_INOUT || !has_inputs)
            gbx_tensor_scatter(&picture->tensors[i],
                               gbx_payload_before(&worker->payloads, &arguments[i]), buffer);
    }
}

static bool are_inputs_intact(gbx_worker *worker, const gbx_order *order,
                              const gbx_picture *picture) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; i < order->argument_count; ++i)
        if (arguments[i].kind == GBX_CALL_TENSOR && arguments[i].role == GBX_ROLE_INPUT &&
            picture->window_of[i] >= 0 &&
            !gbx_rows_equal(&picture->tensors[i], gbx_picture_buffer(picture, i),
                            gbx_payload_before(&worker->payloads, &arguments[i]), worker->scratch))
            return false;
    return true;
}

static bool are_outputs_exact(gbx_worker *worker, const gbx_order *order,
                              const gbx_picture *picture) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; i < order->argument_count; ++i)
        if (gbx_is_output(&arguments[i]) && picture->window_of[i] >= 0 &&
            !gbx_rows_equal(&picture->tensors[i], gbx_picture_buffer(picture, i),
                            gbx_payload_after(&worker->payloads, &arguments[i]), worker->scratch))
            return false;
    return true;
}

/* --- tasks --- */

/* Whether a screen can answer for a task at all. */
static bool is_simple(const gbx_worker *worker, const gbx_order *order) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    bool has_outputs = false;
    if (order->dispatch_count != 1 || order->is_in_flight)
        return false;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        if (arguments[i].kind != GBX_CALL_TENSOR)
            continue;
        if (arguments[i].role != GBX_ROLE_OUTPUT &&
            !gbx_payload_before(&worker->payloads, &arguments[i]))
            return false;
        if (arguments[i].role == GBX_ROLE_INPUT)
            continue;
        has_outputs = true;
        uint32_t bits = gbx_dtype_bits(arguments[i].tensor.dtype);
        /* A small element that a reference did not write may be near by chance. */
        if (!gbx_payload_after(&worker->payloads, &arguments[i]) || bits < 8 ||
            (bits == 8 && order->question == GBX_ASK_SCREEN_WANT))
            return false;
        for (uint32_t k = 0; k < order->argument_count; ++k)
            if (k != i && arguments[k].kind == GBX_CALL_TENSOR &&
                gbx_tensor_overlaps(&arguments[i].tensor, &arguments[k].tensor))
                return false;
    }
    return has_outputs;
}

/* The same pattern twice, then the other: always what the dump has, and the inputs stay. */
static bool is_clean(gbx_worker *worker, const gbx_order *order, screen *s, gbx_answer *answer) {
    static const gbx_call_step steps[] = {GBX_STEP_RUN, GBX_STEP_AGAIN, GBX_STEP_OTHER};
    for (int i = 0; i < 3; ++i) {
        const gbx_picture *picture = &s->pictures[steps[i] == GBX_STEP_OTHER];
        prepare(worker, order, picture, steps[i] == GBX_STEP_AGAIN);
        if (!gbx_worker_call(worker, order, picture, steps[i], answer) ||
            !are_outputs_exact(worker, order, picture))
            return false;
        if (i == 0) {
            answer->runs = 1;
            answer->ns = answer->min_ns = answer->max_ns = worker->call.ns;
        } else if (!are_inputs_intact(worker, order, picture)) {
            return false;
        }
    }
    return true;
}

/* A bit an argument: an inout that the task left as it was. */
static uint64_t find_unchanged(const gbx_worker *worker, const gbx_order *order) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    uint64_t unchanged = 0;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        uint64_t bytes = gbx_tensor_payload_bytes(&arguments[i].tensor);
        if (arguments[i].kind != GBX_CALL_TENSOR || arguments[i].role != GBX_ROLE_INOUT ||
            bytes == 0)
            continue;
        if (arguments[i].before == arguments[i].after ||
            memcmp(gbx_payload_before(&worker->payloads, &arguments[i]),
                   gbx_payload_after(&worker->payloads, &arguments[i]), bytes) == 0)
            unchanged |= UINT64_C(1) << i;
    }
    return unchanged;
}

/* Whether the inputs of a task are in the pictures, because it is the same task as the one before:
 * kernels come before their references. */
static bool has_inputs(const screen *s, const gbx_order *order) {
    if (!s->clean)
        return false;
    const gbx_order_argument *new = gbx_order_arguments(order);
    const gbx_order_argument *old = gbx_order_arguments(s->clean);
    for (uint32_t i = 0; i < order->argument_count; ++i)
        if (new[i].kind == GBX_CALL_TENSOR &&new[i].role == GBX_ROLE_INPUT &&new[i].before !=
            old[i].before)
            return false;
    return true;
}

/* What lies in a tensor, row-major: in its place, or in the worker's scratch. */
static const void *payload_of(gbx_worker *worker, const gbx_tensor *tensor, const void *buffer) {
    if (gbx_tensor_is_contiguous(tensor))
        return (const char *)buffer +
               tensor->start_offset * (int64_t)(gbx_dtype_bits(tensor->dtype) / 8);
    gbx_tensor_gather(tensor, buffer, worker->scratch);
    return worker->scratch;
}

/* The references, once: everything written, and near. */
static bool is_near(gbx_worker *worker, const gbx_order *order, screen *s, gbx_answer *answer) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    const gbx_picture *picture = &s->pictures[GBX_PATTERN_FIRST];
    prepare(worker, order, picture, has_inputs(s, order));
    if (!gbx_worker_call(worker, order, picture, GBX_STEP_RUN, answer) ||
        !are_inputs_intact(worker, order, picture))
        return false;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        const gbx_tensor *tensor = &picture->tensors[i];
        answer->outputs[i] = (gbx_answer_output){0};
        if (!gbx_is_output(&arguments[i]) || picture->window_of[i] < 0)
            continue;
        gbx_comparison *comparison = &answer->outputs[i].comparison;
        *comparison = gbx_compare(tensor, gbx_payload_after(&worker->payloads, &arguments[i]),
                                  payload_of(worker, tensor, gbx_picture_buffer(picture, i)),
                                  &arguments[i].tolerance);
        /* An element that was not written holds a pattern, which is near only by chance. */
        if (comparison->mismatches > 0)
            return false;
    }
    return true;
}

static screen *find_place(gbx_worker *worker, const gbx_batch *batch, const gbx_order *order) {
    static gbx_picture wanted; /* too large for a stack */
    gbx_picture_find_windows(&wanted, order);
    if (wanted.window_count == 0)
        return NULL;
    wanted.bytes = 0;
    for (uint32_t i = 0; i < wanted.window_count; ++i) {
        uint64_t room = room_of(&wanted.windows[i], order, &wanted, i);
        wanted.windows[i].bytes = room;
        wanted.bytes += room;
    }
    screen *s =
        wanted.bytes <= MAX_SCREEN_BYTES ? find_screen(worker->screens, order, &wanted) : NULL;
    return s && place(s, order, &wanted, batch, worker->scratch) ? s : NULL;
}

void gbx_screen(gbx_worker *worker, const gbx_batch *batch, uint32_t task) {
    const gbx_order *order = gbx_batch_order(batch, task);
    gbx_answer *answer = gbx_batch_answer(batch, task);
    screen *s = is_simple(worker, order) ? find_place(worker, batch, order) : NULL;
    bool is_good = false;
    if (s) {
        s->tasks[s->task_count++] = task;
        if (order->question == GBX_ASK_SCREEN) {
            is_good = is_clean(worker, order, s, answer);
            answer->unchanged = is_good ? find_unchanged(worker, order) : 0;
        } else {
            is_good = is_near(worker, order, s, answer);
        }
        s->clean = is_good ? order : NULL;
    }
    if (atomic_load_explicit(&answer->state, memory_order_relaxed) == GBX_ANSWER_NONE)
        atomic_store_explicit(&answer->state, is_good ? GBX_ANSWER_CLEAN : GBX_ANSWER_LOOK,
                              memory_order_release);
}

/* --- verification --- */

static bool is_pattern(const gbx_picture *picture) {
    for (uint32_t i = 0; i < picture->window_count; ++i)
        if (memcmp((const void *)(uintptr_t)picture->windows[i].address,
                   picture->mirror + picture->windows[i].offset, picture->windows[i].bytes) != 0)
            return false;
    return true;
}

static void verify(gbx_worker *worker, screen *s, const gbx_batch *batch) {
    clear(s, worker->scratch);
    for (int p = 0; p < GBX_PATTERNS; ++p)
        if (!is_pattern(&s->pictures[p]))
            restore_patterns(s, batch);
    s->task_count = 0;
}

void gbx_screens_verify(gbx_worker *worker, const gbx_batch *batch) {
    gbx_screens *screens = worker->screens;
    for (uint32_t i = 0; i < screens->count; ++i)
        if (screens->items[i]->task_count > 0)
            verify(worker, screens->items[i], batch);
    /* Room for the screens that the next batch needs. */
    if (screens->count == MAX_SCREENS || screens->next > screens->region + REGION_BYTES / 2)
        destroy_all(screens);
}
