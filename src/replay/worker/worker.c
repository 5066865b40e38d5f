#include "replay/worker/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "replay/worker/pattern.h"

void gbx_answer_fail(gbx_answer *answer, gbx_answer_state state, const char *what) {
    if (what != answer->error)
        snprintf(answer->error, sizeof answer->error, "%s", what);
    atomic_store_explicit(&answer->state, (uint32_t)state, memory_order_release);
}

/* --- kernels --- */

/* Whether a file has the name of sched_yield; true if it cannot be read. */
static bool names_yield(const char *path) {
    static const char name[] = "sched_yield";
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0)
        mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (mapped == MAP_FAILED)
        return true;
    bool is_there = memmem(mapped, (size_t)about.st_size, name, sizeof name) != NULL;
    munmap(mapped, (size_t)about.st_size);
    return is_there;
}

/* NULL, with a sentence in call.error, if it cannot be loaded. */
static gbx_loaded_object *load(gbx_worker *worker, const char *path) {
    for (uint32_t i = 0; i < worker->object_count; ++i)
        if (strcmp(worker->objects[i].path, path) == 0)
            return &worker->objects[i];
    gbx_kernel_call loading = {.kernels = {{.object = path}}};
    if (worker->object_count == GBX_BATCH_OBJECTS) {
        /* Kernels stay loaded; only the table begins again. */
        for (uint32_t i = 0; i < worker->object_count; ++i)
            free(worker->objects[i].path);
        worker->object_count = 0;
    }
    atomic_store(&worker->board->began_ns, (uint64_t)gbx_clock_ns());
    atomic_store(&worker->board->is_loading, 1);
    int result = gbx_kernel_call_load(&loading);
    atomic_store(&worker->board->is_loading, 0);
    atomic_store(&worker->board->began_ns, 0);
    char *copy = result ? NULL : strdup(path);
    if (!copy) {
        snprintf(worker->call.error, sizeof worker->call.error, "%s",
                 result ? loading.error : "out of memory");
        return NULL;
    }
    gbx_loaded_object *object = &worker->objects[worker->object_count++];
    *object = (gbx_loaded_object){copy, loading.kernels[0].entry, names_yield(path)};
    return object;
}

bool gbx_worker_load(gbx_worker *worker, const gbx_batch *batch, const gbx_order *order,
                     gbx_answer *answer) {
    gbx_kernel_call *call = &worker->call;
    worker->may_wait = false;
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        call->kernels[i] = (gbx_call_kernel){0};
        if (order->objects[i] >= batch->object_count)
            continue;
        const gbx_loaded_object *object = load(worker, batch->objects[order->objects[i]]);
        if (!object) {
            gbx_answer_fail(answer, GBX_ANSWER_NOT_LOADED, call->error);
            return false;
        }
        call->kernels[i].entry = object->entry;
        worker->may_wait |= object->may_wait;
    }
    call->gm_base = order->gm_base;
    call->gm_bytes = order->gm_bytes;
    call->chip_blocks = order->chip_blocks;
    call->block_num = order->block_num;
    call->dispatches = gbx_order_dispatches(order);
    call->dispatch_count = order->dispatch_count;
    call->states = worker->board->states;
    return true;
}

bool gbx_worker_reserve(gbx_worker *worker, const gbx_order *order, gbx_answer *answer) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        uint64_t bytes = arguments[i].kind == GBX_CALL_TENSOR
                             ? gbx_tensor_payload_bytes(&arguments[i].tensor)
                             : 0;
        largest = bytes > largest ? bytes : largest;
    }
    if (largest < worker->scratch_bytes)
        return true;
    free(worker->scratch);
    worker->scratch_bytes = largest + 1;
    worker->scratch = malloc(worker->scratch_bytes);
    if (worker->scratch)
        return true;
    worker->scratch_bytes = 0;
    gbx_answer_fail(answer, GBX_ANSWER_NOT_MADE, "out of memory");
    return false;
}

/* False, with the answer set, if the file has become shorter since the engine opened it. */
static bool has_payloads(const gbx_worker *worker, const gbx_order *order, gbx_answer *answer) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        bool is_before_there = gbx_payload_before(&worker->payloads, &arguments[i]) != NULL;
        bool is_after_there = gbx_payload_after(&worker->payloads, &arguments[i]) != NULL;
        if (gbx_tensor_payload_bytes(&arguments[i].tensor) == 0 ||
            ((arguments[i].before == GBX_NO_PAYLOAD || is_before_there) &&
             (arguments[i].after == GBX_NO_PAYLOAD || is_after_there)))
            continue;
        gbx_answer_fail(answer, GBX_ANSWER_NOT_MADE,
                        "the payload file has become shorter; run glassbox verify");
        return false;
    }
    return true;
}

/* --- calls --- */

void gbx_worker_set_arguments(gbx_worker *worker, const gbx_order *order,
                              const gbx_tensor *tensors) {
    const gbx_order_argument *arguments = gbx_order_arguments(order);
    gbx_call_slot *slots = worker->call.slots;
    uint32_t used = 0;
    for (uint32_t i = 0; i < order->argument_count; ++i) {
        const gbx_order_argument *argument = &arguments[i];
        while (used < argument->slot)
            slots[used++].kind = GBX_CALL_EMPTY;
        gbx_call_slot *slot = &slots[used++];
        slot->kind = argument->kind;
        slot->role = argument->role;
        slot->bits = argument->bits;
        if (argument->kind == GBX_CALL_TENSOR)
            slot->tensor = tensors[i];
    }
    for (uint32_t i = used; i < worker->used_slots; ++i)
        slots[i].kind = GBX_CALL_EMPTY;
    worker->used_slots = used;
}

/* A slot that is read but not filled shows in results, as memory does: a pair of floats, or one
 * double, or a large integer. The first pattern is what a chip has that was never used. */
static uint64_t empty_of(const gbx_picture *picture) {
    return picture->pattern == GBX_PATTERN_FIRST ? 0 : UINT64_C(0x40490fdb40490fdb);
}

static void begin(gbx_worker *worker, const gbx_order *order, gbx_call_step step) {
    gbx_worker_board *board = worker->board;
    for (uint32_t i = 0; i < order->dispatch_count; ++i)
        atomic_store_explicit(&board->states[i], GBX_CALL_WAITS, memory_order_relaxed);
    atomic_store_explicit(&board->step, (uint32_t)step, memory_order_relaxed);
    atomic_store_explicit(&board->began_ns, (uint64_t)gbx_clock_ns(), memory_order_release);
}

static void end(gbx_worker *worker) {
    atomic_store_explicit(&worker->board->began_ns, 0, memory_order_release);
}

/* All subtasks of as many blocks as the chip has run at a time. */
static uint32_t wave_of(const gbx_order *order) {
    uint32_t kernels = 0;
    for (int i = 0; i < GBX_SUBTASK_COUNT; ++i)
        kernels += order->objects[i] != GBX_NO_OBJECT;
    uint32_t wave = order->is_one_dispatch ? 1 : kernels * order->chip_blocks;
    return wave > 0 ? wave : 1;
}

bool gbx_worker_call(gbx_worker *worker, const gbx_order *order, const gbx_picture *picture,
                     gbx_call_step step, gbx_answer *answer) {
    gbx_worker_set_arguments(worker, order, picture->tensors);
    worker->call.empty = empty_of(picture);
    begin(worker, order, step);
    gbx_waits_watch(worker->board, picture, order->dispatch_count, wave_of(order));
    int result = gbx_kernel_call_run(&worker->call);
    end(worker);
    if (result)
        gbx_answer_fail(answer, GBX_ANSWER_NOT_MADE, worker->call.error);
    return !result;
}

bool gbx_worker_call_one(gbx_worker *worker, const gbx_order *order, const gbx_picture *picture,
                         gbx_call_step step, uint32_t dispatch) {
    gbx_worker_set_arguments(worker, order, picture->tensors);
    worker->call.empty = empty_of(picture);
    begin(worker, order, step);
    int has_escaped = gbx_kernel_call_alone(&worker->call, dispatch);
    end(worker);
    return !has_escaped;
}

/* --- batches --- */

static void answer_one(gbx_worker *worker, const gbx_batch *batch, uint32_t task) {
    const gbx_order *order = gbx_batch_order(batch, task);
    gbx_answer *answer = gbx_batch_answer(batch, task);
    if (order->question == GBX_ASK_NOTHING || !has_payloads(worker, order, answer) ||
        !gbx_worker_reserve(worker, order, answer) ||
        !gbx_worker_load(worker, batch, order, answer))
        return;
    switch (order->question) {
    case GBX_ASK_EXAMINE:
        gbx_examine(worker, order, answer);
        break;
    case GBX_ASK_WANT:
        gbx_examine_want(worker, order, answer);
        break;
    default:
        gbx_screen(worker, batch, task);
        break;
    }
}

void gbx_worker_answer(gbx_worker *worker, const gbx_worker_message *message) {
    gbx_batch *batch = worker->batches[message->slot];
    atomic_store_explicit(&worker->board->slot, message->slot, memory_order_relaxed);
    for (uint32_t i = 0; i < batch->task_count; ++i) {
        atomic_store_explicit(&worker->board->task, i, memory_order_release);
        answer_one(worker, batch, i);
        if (getpid() != worker->pid)
            _exit(0); /* a kernel has forked, and this is the copy */
    }
    gbx_screens_verify(worker, batch);
    /* A process that ends between two batches is no task's fault. */
    atomic_store_explicit(&worker->board->slot, UINT32_MAX, memory_order_release);
    atomic_store_explicit(&batch->answered, message->number, memory_order_release);
}
