#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "replay/engine/internal.h"

enum {
    LOOK_MS = 100,          /* how often hanging kernels are looked for */
    LONGEST_BETWEEN_S = 120 /* between two calls: comparing gigabytes takes a while */
};

/* --- tasks that are done --- */

static gbx_status take_answer(gbx_replay_pending *pending, const gbx_answer *answer) {
    gbx_replay_outcome *outcome = &pending->outcome;
    outcome->ns = answer->ns;
    outcome->unchanged = answer->unchanged;
    if (outcome->is_clean && !gbx_replay_is_of_references(pending))
        return NULL;
    size_t bytes = outcome->is_clean
                       ? offsetof(gbx_answer, outputs) +
                             pending->request.task->argument_count * sizeof(gbx_answer_output)
                       : sizeof *answer;
    gbx_answer *copy = malloc(bytes);
    if (!copy)
        return gbx_fail_memory("replaying task %" PRIu64, pending->request.task->task);
    outcome->answer = memcpy(copy, answer, bytes);
    if (copy->finding_count > GBX_TASK_FINDINGS)
        copy->finding_count = GBX_TASK_FINDINGS;
    if (copy->gap_count > GBX_WRITTEN_GAPS)
        copy->gap_count = GBX_WRITTEN_GAPS;
    if (pending->skips & GBX_SKIP_ORDER)
        copy->order = pending->order;
    return NULL;
}

/* Whether static variables of its kernels, which other tasks changed, may have had a part in it. */
static bool may_remember(const gbx_replay_pending *pending, const gbx_answer *answer) {
    if (pending->question != GBX_ASK_EXAMINE || pending->is_fresh)
        return false;
    for (uint32_t i = 0; i < answer->finding_count && i < GBX_TASK_FINDINGS; ++i)
        if (answer->findings[i].kind == GBX_NOT_DETERMINISTIC)
            return true;
    for (uint32_t i = 0; i < pending->request.task->argument_count; ++i) {
        const gbx_replay_argument *argument = &pending->request.task->arguments[i];
        if (argument->is_tensor && argument->role != GBX_ROLE_INPUT &&
            answer->outputs[i].bits.mismatches > 0)
            return true;
    }
    return false;
}

/* True if the task is done or has to be asked alone. */
static bool settle(gbx_replay_engine *engine, gbx_replay_pending *pending,
                   const gbx_answer *answer) {
    uint32_t state = atomic_load_explicit(&answer->state, memory_order_acquire);
    switch (state) {
    case GBX_ANSWER_CLEAN:
        pending->outcome.is_clean = true;
        pending->status = take_answer(pending, answer);
        break;
    case GBX_ANSWER_FULL:
        if (may_remember(pending, answer)) {
            pending->is_fresh = true;
            gbx_replay_ask_alone(engine, pending);
            return true;
        }
        pending->status = take_answer(pending, answer);
        break;
    case GBX_ANSWER_LOOK:
        gbx_replay_ask_alone(engine, pending);
        return true;
    case GBX_ANSWER_NOT_LOADED:
    case GBX_ANSWER_NOT_MADE:
        pending->status =
            gbx_fail(state == GBX_ANSWER_NOT_LOADED ? GBX_BAD_KERNEL : GBX_EXHAUSTED,
                     "calling kernels again: %.*s", (int)sizeof answer->error - 1, answer->error);
        break;
    default:
        return false;
    }
    gbx_replay_end_task(engine, pending);
    return true;
}

/* --- answers --- */

/* How long the tasks of a batch took, from when the process could begin with it. */
static void measure(gbx_replay_engine *engine, gbx_replay_worker *w, const gbx_replay_slot *s) {
    int64_t now = gbx_clock_ns();
    int64_t began = s->sent_ns > w->answered_ns ? s->sent_ns : w->answered_ns;
    int64_t task_ns = (now - began) / (int64_t)s->filling.task_count + 1;
    engine->task_ns = engine->task_ns > 0 ? (3 * engine->task_ns + task_ns) / 4 : task_ns;
    w->answered_ns = now;
}

static gbx_status take_batch(gbx_replay_engine *engine, gbx_replay_worker *w, uint32_t number) {
    gbx_replay_slot *s = &w->slots[number];
    const gbx_batch *batch = w->child.batches[number];
    if (s->state != SLOT_SENT)
        return NULL;
    w->early_ends = 0;
    s->state = SLOT_FREE;
    measure(engine, w, s);
    for (uint32_t i = 0; i < s->filling.task_count; ++i) {
        gbx_replay_pending *pending = s->tasks[i];
        s->tasks[i] = NULL;
        if (pending && !settle(engine, pending, gbx_batch_answer(batch, i)))
            return gbx_fail(
                GBX_IO, "calling kernels: glassbox-call left task %" PRIu64 " without an answer",
                pending->request.task->task);
    }
    return NULL;
}

/* --- processes that end --- */

static bool is_screened(const gbx_replay_pending *pending) {
    return pending->question == GBX_ASK_SCREEN || pending->question == GBX_ASK_SCREEN_WANT;
}

/* What a task changed outside of its outputs before it crashed. */
static void take_strays(const gbx_answer *answer, gbx_replay_fault *fault) {
    fault->stray_bytes = answer->stray_bytes;
    fault->stray_address = answer->stray_address;
    fault->stray_end = answer->stray_end;
    if (fault->stray_end <= fault->stray_address ||
        fault->stray_bytes > fault->stray_end - fault->stray_address)
        fault->stray_bytes = 0; /* written by a kernel */
}

/* The task during which a process ended. */
static gbx_status take_end(gbx_replay_engine *engine, gbx_replay_worker *w,
                           gbx_replay_pending *pending, const gbx_answer *answer,
                           const gbx_replay_end *end) {
    if (gbx_replay_is_of_references(pending) && end->ending == GBX_REPLAY_SILENT)
        gbx_replay_note_together(&pending->request, &engine->hung);
    else if (is_screened(pending)) {
        gbx_replay_ask_alone(engine, pending);
        return NULL;
    }
    gbx_replay_fault *fault = calloc(1, sizeof *fault);
    if (!fault)
        return gbx_fail_memory("replaying task %" PRIu64, pending->request.task->task);
    pending->status =
        gbx_replay_fault_describe(&pending->request, &w->child, end, engine->timeout_ns, fault);
    uint32_t step = fault->step;
    if (!pending->status && fault->is_stuck && gbx_replay_is_of_references(pending))
        gbx_replay_note_together(&pending->request, &engine->hung);
    if (!pending->status && (step == GBX_STEP_ORDERED || step == GBX_STEP_FLAGS)) {
        /* Only calls one at a time do it: the task itself is asked without them. */
        bool spins = step == GBX_STEP_ORDERED && fault->is_hang;
        pending->order = spins ? GBX_ORDER_SPINS : GBX_ORDER_NOT_ASKED;
        pending->skips |=
            step == GBX_STEP_ORDERED ? GBX_SKIP_ORDER | GBX_SKIP_FLAGS : GBX_SKIP_FLAGS;
        if (spins)
            gbx_replay_note_together(&pending->request, &engine->spinning);
        free(fault);
        gbx_replay_ask_alone(engine, pending);
        return NULL;
    }
    if (!pending->status && !pending->is_fresh && !gbx_replay_is_of_references(pending)) {
        /* Static variables that other tasks changed may have had a part in it. */
        free(fault);
        pending->is_fresh = true;
        gbx_replay_ask_alone(engine, pending);
        return NULL;
    }
    take_strays(answer, fault);
    pending->outcome.fault = fault;
    gbx_replay_end_task(engine, pending);
    return NULL;
}

enum { NOBODY = UINT32_MAX };

/* Everything but the guilty task is asked again, unless it was asked alone and is answered. */
static gbx_status repeat_batch(gbx_replay_engine *engine, gbx_replay_worker *w, uint32_t number,
                               uint32_t guilty, const gbx_replay_end *end, bool *out_has_more) {
    gbx_replay_slot *s = &w->slots[number];
    gbx_batch *batch = w->child.batches[number];
    *out_has_more = false;
    for (uint32_t i = 0; i < s->filling.task_count; ++i) {
        gbx_replay_pending *pending = s->tasks[i];
        gbx_answer *answer = gbx_batch_answer(batch, i);
        if (!pending)
            continue;
        bool is_over = false;
        if (i == guilty) {
            GBX_TRY(take_end(engine, w, pending, answer, end));
            is_over = true;
        } else if (!is_screened(pending)) {
            is_over = settle(engine, pending, answer);
        }
        if (!is_over && gbx_replay_has_hung(engine, pending)) {
            GBX_TRY(gbx_replay_end_hung(pending));
            is_over = true;
        }
        if (is_over) {
            s->tasks[i] = NULL;
            ((gbx_order *)((char *)batch + s->filling.orders[i]))->question = GBX_ASK_NOTHING;
            continue;
        }
        memset(answer, 0, offsetof(gbx_answer, outputs));
        *out_has_more = true;
    }
    return NULL;
}

/* The batches of a process that has ended, in order. */
static gbx_status send_again(gbx_replay_engine *engine, gbx_replay_worker *w,
                             const bool has_more[]) {
    uint32_t first = w->slots[1].sent_at < w->slots[0].sent_at;
    for (uint32_t i = 0; i < GBX_BATCH_SLOTS; ++i) {
        uint32_t number = (first + i) % GBX_BATCH_SLOTS;
        gbx_replay_slot *s = &w->slots[number];
        if (s->state == SLOT_SENT && has_more[number])
            GBX_TRY(gbx_replay_child_order(&w->child, engine->child_program, engine->payload_fd,
                                           number));
        else if (s->state == SLOT_SENT)
            s->state = SLOT_FREE;
    }
    return NULL;
}

/* What a process does now. */
typedef struct doing {
    uint64_t call_ns; /* when the call that runs began; 0: none runs */
    uint64_t what;    /* batch, task, step and run */
} doing;

static doing look_at_board(const gbx_worker_board *board) {
    uint64_t slot = atomic_load_explicit(&board->slot, memory_order_relaxed);
    uint64_t task = atomic_load_explicit(&board->task, memory_order_relaxed);
    uint64_t step = atomic_load_explicit(&board->step, memory_order_relaxed);
    return (doing){.call_ns = atomic_load_explicit(&board->began_ns, memory_order_acquire),
                   .what = slot << 56 ^ task << 48 ^ step << 40 ^
                           atomic_load_explicit(&board->run, memory_order_relaxed)};
}

/* Ends a process that has ended itself (`ending` is 0), or that is ended because of what it did. */
static gbx_status take_death(gbx_replay_engine *engine, gbx_replay_worker *w,
                             gbx_replay_ending ending, doing late) {
    gbx_replay_end end = {0};
    bool has_more[GBX_BATCH_SLOTS];
    gbx_replay_child_reap(&w->child, &end);
    doing last = look_at_board(w->child.board);
    if (ending)
        end.ending = ending;
    /* A call that returned at the last moment is no task's fault, and the next one neither. */
    bool is_innocent = (ending == GBX_REPLAY_SILENT || ending == GBX_REPLAY_STUCK) &&
                       (last.call_ns != late.call_ns || last.what != late.what);
    /* A kernel may have closed the socket: its batch is answered all the same. */
    for (uint32_t i = 0; i < GBX_BATCH_SLOTS; ++i)
        if (atomic_load_explicit(&w->child.batches[i]->answered, memory_order_acquire) ==
            w->child.numbers[i])
            GBX_TRY(take_batch(engine, w, i));
    uint32_t running = atomic_load_explicit(&w->child.board->slot, memory_order_acquire);
    uint32_t guilty = atomic_load_explicit(&w->child.board->task, memory_order_acquire);
    bool is_known = running < GBX_BATCH_SLOTS && w->slots[running].state == SLOT_SENT &&
                    guilty < w->slots[running].filling.task_count &&
                    w->slots[running].tasks[guilty];
    if (!is_known && !is_innocent && ++w->early_ends > 2)
        return gbx_fail(GBX_IO, "calling kernels: glassbox-call exits at once; check that "
                                "GLASSBOX_CALL belongs to this build");
    for (uint32_t i = 0; i < GBX_BATCH_SLOTS; ++i) {
        has_more[i] = w->slots[i].state == SLOT_SENT;
        if (is_known && i == running)
            GBX_TRY(repeat_batch(engine, w, i, is_innocent ? NOBODY : guilty, &end, &has_more[i]));
    }
    return send_again(engine, w, has_more);
}

/* --- waiting --- */

/* Whether a call takes too long, or the time between two calls; 0 if not. */
static gbx_replay_ending find_lateness(const gbx_replay_engine *engine, gbx_replay_worker *w,
                                       doing now) {
    int64_t now_ns = gbx_clock_ns();
    if (now.call_ns != 0) {
        w->seen_ns = 0;
        return now_ns - (int64_t)now.call_ns > engine->timeout_ns ? GBX_REPLAY_SILENT : 0;
    }
    if (w->seen_ns == 0 || w->seen != now.what) {
        w->seen = now.what;
        w->seen_ns = now_ns;
    }
    bool is_stuck = now_ns - w->seen_ns > LONGEST_BETWEEN_S * GBX_NS_PER_SECOND;
    return is_stuck ? GBX_REPLAY_STUCK : 0;
}

static int64_t next_look_ns(const gbx_replay_engine *engine) {
    return engine->timeout_ns / 4 < LOOK_MS * GBX_NS_PER_MS ? engine->timeout_ns / 4 + 1
                                                            : LOOK_MS * GBX_NS_PER_MS;
}

/* Looks at one worker. Answers that have arrived count, however late. */
static gbx_status look_at(gbx_replay_engine *engine, gbx_replay_worker *w, bool has_ended,
                          bool is_unlinked) {
    gbx_worker_message message;
    while (w->child.pid > 0 && gbx_replay_child_receive(&w->child, &message))
        if (message.number == w->child.numbers[message.slot]) /* else it is an old one */
            GBX_TRY(take_batch(engine, w, message.slot));
    if (w->slots[0].state != SLOT_SENT && w->slots[1].state != SLOT_SENT) {
        if (has_ended || is_unlinked)
            gbx_replay_child_reap(&w->child, NULL);
        return NULL;
    }
    doing now = look_at_board(w->child.board);
    gbx_replay_ending ending = is_unlinked ? GBX_REPLAY_UNLINKED : 0;
    if (!has_ended && !is_unlinked)
        ending = find_lateness(engine, w, now);
    return has_ended || ending ? take_death(engine, w, ending, now) : NULL;
}

gbx_status gbx_replay_wait(gbx_replay_engine *engine) {
    struct pollfd watched[2 * GBX_REPLAY_MAX_JOBS];
    for (uint32_t i = 0; i < engine->worker_count; ++i) {
        const gbx_replay_worker *w = &engine->workers[i];
        watched[2 * i] = (struct pollfd){.fd = w->child.socket, .events = POLLIN};
        watched[2 * i + 1] = (struct pollfd){.fd = w->child.pid_fd, .events = POLLIN};
    }
    if (gbx_poll(watched, 2 * engine->worker_count, next_look_ns(engine)) < 0)
        return gbx_fail(GBX_IO, "waiting for a call: %s", strerror(errno));
    for (uint32_t i = 0; i < engine->worker_count; ++i) {
        gbx_replay_worker *w = &engine->workers[i];
        if (w->child.pid == 0)
            continue;
        /* A process that ends closes its socket, too; so may a kernel. */
        bool has_hung_up = watched[2 * i].revents & (POLLHUP | POLLERR);
        if (has_hung_up && !watched[2 * i + 1].revents)
            gbx_poll(&watched[2 * i + 1], 1, GBX_NS_PER_SECOND);
        bool has_ended = watched[2 * i + 1].revents != 0;
        GBX_TRY(look_at(engine, w, has_ended, has_hung_up && !has_ended));
    }
    return gbx_replay_send_waiting(engine);
}
