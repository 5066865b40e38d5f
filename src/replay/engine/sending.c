#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "replay/engine/internal.h"

enum {
    ALONE_TASKS = 8,  /* of a batch of tasks that are asked alone */
    FIRST_TASKS = 16, /* of the first batches */
    BATCH_NS = 20 * GBX_NS_PER_MS
};

/* --- kernels that hang --- */

void gbx_replay_note_together(const gbx_replay_request *request, gbx_replay_together *together) {
    if (together->count < GBX_BATCH_OBJECTS && !gbx_replay_are_together(request, together))
        memcpy(together->objects[together->count++], request->objects, sizeof request->objects);
}

bool gbx_replay_are_together(const gbx_replay_request *request,
                             const gbx_replay_together *together) {
    for (uint32_t i = 0; i < together->count; ++i)
        if (memcmp(together->objects[i], request->objects, sizeof request->objects) == 0)
            return true;
    return false;
}

bool gbx_replay_has_hung(const gbx_replay_engine *engine, const gbx_replay_pending *pending) {
    return gbx_replay_is_of_references(pending) &&
           gbx_replay_are_together(&pending->request, &engine->hung);
}

/* Ends a task whose references hung in another one. */
gbx_status gbx_replay_end_hung(gbx_replay_pending *pending) {
    pending->outcome.fault = calloc(1, sizeof *pending->outcome.fault);
    if (!pending->outcome.fault)
        return gbx_fail_memory("replaying task %" PRIu64, pending->request.task->task);
    pending->outcome.fault->is_hang = true;
    pending->outcome.fault->is_known = true;
    pending->is_done = true;
    return NULL;
}

/* --- tasks that are asked alone --- */

static void release(gbx_replay_engine *engine, const gbx_replay_pending *pending) {
    if (engine->large == pending)
        engine->large = NULL;
}

void gbx_replay_end_task(gbx_replay_engine *engine, gbx_replay_pending *pending) {
    release(engine, pending);
    pending->is_done = true;
}

void gbx_replay_ask_alone(gbx_replay_engine *engine, gbx_replay_pending *pending) {
    gbx_replay_queue *alone = &engine->alone;
    release(engine, pending);
    pending->question = gbx_replay_is_of_references(pending) ? GBX_ASK_WANT : GBX_ASK_EXAMINE;
    alone->items[(alone->first + alone->count++) % GBX_REPLAY_PENDING] = pending;
}

/* --- batches --- */

static gbx_status send_slot(gbx_replay_engine *engine, gbx_replay_worker *w, gbx_replay_slot *s) {
    s->state = SLOT_SENT;
    s->sent_at = ++engine->sent;
    s->sent_ns = gbx_clock_ns();
    w->seen_ns = 0;
    return gbx_replay_child_order(&w->child, engine->child_program, engine->payload_fd,
                                  (uint32_t)(s - w->slots));
}

static bool is_idle(const gbx_replay_worker *w) {
    return w->slots[0].state == SLOT_FREE && w->slots[1].state == SLOT_FREE;
}

/* A free batch of the worker with the least to do; false if there is none. */
static bool find_free(gbx_replay_engine *engine, gbx_replay_worker **out_worker,
                      gbx_replay_slot **out_slot) {
    *out_worker = NULL;
    for (uint32_t i = 0; i < engine->worker_count; ++i) {
        gbx_replay_worker *w = &engine->workers[i];
        for (int k = 0; k < GBX_BATCH_SLOTS; ++k) {
            if (w->slots[k].state != SLOT_FREE || (*out_worker && !is_idle(w)))
                continue;
            *out_worker = w;
            *out_slot = &w->slots[k];
            if (is_idle(w))
                return true;
            break;
        }
    }
    return *out_worker != NULL;
}

static gbx_status begin_batch(gbx_replay_worker *w, gbx_replay_slot *s) {
    if (!w->child.board)
        GBX_TRY(gbx_replay_child_open(&w->child));
    gbx_replay_begin_batch(w->child.batches[s - w->slots], &s->filling);
    s->state = SLOT_FILLING;
    return NULL;
}

/* `layout` is that of the task. */
static gbx_status add(gbx_replay_engine *engine, gbx_replay_worker *w, gbx_replay_slot *s,
                      gbx_replay_pending *pending, const gbx_replay_layout *layout,
                      bool *out_is_added) {
    uint32_t place = s->filling.task_count;
    GBX_TRY(gbx_replay_add_order(w->child.batches[s - w->slots], &s->filling, pending, layout,
                                 engine->settings.chip_blocks, out_is_added));
    pending->outcome.is_relocated = layout->is_relocated;
    if (*out_is_added)
        s->tasks[place] = pending;
    return NULL;
}

static gbx_status write_kept(const gbx_replay_worker *w, const void *payload, uint64_t bytes,
                             uint64_t offset) {
    size_t written;
    int error = payload ? gbx_pwrite_all(w->child.kept_fd, payload, bytes, offset, &written) : 0;
    return error ? gbx_fail(GBX_IO, "keeping payloads of a call: %s", strerror(error)) : NULL;
}

/* Room for outputs to keep, and the payloads to begin and to compare with. */
static gbx_status prepare_kept(const gbx_replay_worker *w, const gbx_replay_pending *pending) {
    const gbx_replay_request *request = &pending->request;
    if (!pending->keeps)
        return NULL;
    if (ftruncate(w->child.kept_fd, (off_t)gbx_replay_kept_bytes(request)) != 0)
        return gbx_fail(GBX_IO, "keeping payloads of a call: %s", strerror(errno));
    for (uint32_t i = 0; i < request->task->argument_count; ++i) {
        uint64_t bytes = gbx_tensor_payload_bytes(&request->task->arguments[i].tensor);
        uint64_t kept = gbx_replay_kept_offset(request->task, i);
        if (request->got)
            GBX_TRY(write_kept(w, request->got[i], bytes, kept + GBX_KEPT_OTHER_START * bytes));
        if (request->start)
            GBX_TRY(write_kept(w, request->start[i], bytes, gbx_replay_start_offset(request, i)));
    }
    return NULL;
}

/* Puts a task into a batch; *out_is_added is false if there is no room, or if it is done: its
 * references hang, or it does not fit. */
static gbx_status add_alone(gbx_replay_engine *engine, gbx_replay_worker *w, gbx_replay_slot *s,
                            gbx_replay_pending *pending, bool *out_is_added) {
    gbx_replay_layout layout;
    *out_is_added = false;
    if (gbx_replay_has_hung(engine, pending))
        return gbx_replay_end_hung(pending);
    gbx_status status = prepare_kept(w, pending);
    if (!status)
        status = gbx_replay_layout_make(pending->request.task, engine->settings.gm_bytes, &layout);
    if (!status)
        status = add(engine, w, s, pending, &layout, out_is_added);
    if (status) {
        pending->status = status;
        pending->is_done = true;
    }
    return NULL;
}

static gbx_status send_alone(gbx_replay_engine *engine, gbx_replay_worker *w, gbx_replay_slot *s) {
    gbx_replay_queue *alone = &engine->alone;
    bool is_by_itself = false;
    GBX_TRY(begin_batch(w, s));
    for (int i = 0; i < ALONE_TASKS && alone->count > 0 && !is_by_itself; ++i) {
        gbx_replay_pending *pending = alone->items[alone->first];
        bool is_added;
        is_by_itself = pending->is_large || pending->is_fresh;
        if (is_by_itself && i > 0)
            break;
        GBX_TRY(add_alone(engine, w, s, pending, &is_added));
        if (!is_added && !pending->is_done)
            break;
        alone->first = (alone->first + 1) % GBX_REPLAY_PENDING;
        alone->count--;
        if (is_added && pending->is_large)
            engine->large = pending;
        if (is_added && pending->is_fresh)
            gbx_replay_child_reap(&w->child, NULL);
        pending->is_fresh |= i == 0 && w->child.pid == 0; /* its process is going to be new */
    }
    if (s->filling.task_count > 0)
        return send_slot(engine, w, s);
    s->state = SLOT_FREE;
    return NULL;
}

static bool is_all_idle(const gbx_replay_engine *engine) {
    for (uint32_t i = 0; i < engine->worker_count; ++i)
        for (int k = 0; k < GBX_BATCH_SLOTS; ++k)
            if (engine->workers[i].slots[k].state == SLOT_SENT)
                return false;
    return true;
}

/* A large task waits until nothing else is in memory, and everything else waits for it. */
gbx_status gbx_replay_send_waiting(gbx_replay_engine *engine) {
    gbx_replay_worker *w;
    gbx_replay_slot *s;
    while (engine->alone.count > 0 && !engine->large && find_free(engine, &w, &s)) {
        const gbx_replay_pending *next = engine->alone.items[engine->alone.first];
        if ((next->is_large && !is_all_idle(engine)) || (next->is_fresh && !is_idle(w)))
            return NULL;
        GBX_TRY(send_alone(engine, w, s));
    }
    return NULL;
}

gbx_status gbx_replay_flush(gbx_replay_engine *engine) {
    gbx_replay_worker *w = engine->filling;
    gbx_replay_slot *s = engine->filled;
    engine->filling = NULL;
    engine->filled = NULL;
    return w ? send_slot(engine, w, s) : NULL;
}

/* A batch with room; waits for one. */
static gbx_status find_batch(gbx_replay_engine *engine) {
    while (!engine->filling) {
        gbx_replay_worker *w;
        gbx_replay_slot *s;
        if (engine->large || !find_free(engine, &w, &s)) {
            GBX_TRY(gbx_replay_wait(engine));
            continue;
        }
        GBX_TRY(begin_batch(w, s));
        engine->filling = w;
        engine->filled = s;
    }
    return NULL;
}

/* Slow tasks come in small batches, so that all processes end at about the same time. */
static bool is_enough(const gbx_replay_engine *engine, const gbx_replay_slot *s) {
    int64_t most = engine->task_ns > 0 ? BATCH_NS / engine->task_ns : FIRST_TASKS;
    return s->filling.task_count == GBX_BATCH_TASKS || (int64_t)s->filling.task_count >= most;
}

gbx_status gbx_replay_screen(gbx_replay_engine *engine, gbx_replay_pending *pending,
                             const gbx_replay_layout *layout) {
    for (;;) {
        bool is_added;
        GBX_TRY(find_batch(engine));
        gbx_replay_worker *w = engine->filling;
        gbx_replay_slot *s = engine->filled;
        GBX_TRY(add(engine, w, s, pending, layout, &is_added));
        if (!is_added || is_enough(engine, s))
            GBX_TRY(gbx_replay_flush(engine));
        if (is_added)
            return NULL;
    }
}
