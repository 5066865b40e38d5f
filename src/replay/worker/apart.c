/*
 * Questions that call dispatches one at a time, in processes of their own: a dispatch that waits is
 * left in the middle of its work, one may crash, and what they leave in static variables, locks and
 * threads must not reach other tasks. The answer and the board are shared.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay/worker/pattern.h"
#include "replay/worker/worker.h"

/* What a dispatch may take longer alone than after all others, before it counts as one that waits
 * for them. */
enum { PATIENCE_US = 20 * 1000, WAITS_EXIT = 71 };

/* --- processes --- */

/* Like fork. A kernel that crashes in the child leaves no core file: that of the task is enough. */
static pid_t begin_apart(void) {
    const struct rlimit no_core = {0, 0};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        setrlimit(RLIMIT_CORE, &no_core);
    return pid;
}

static _Noreturn void end_apart(int code) {
    fflush(NULL);
    _exit(code);
}

static int64_t microseconds(const struct timeval *time) {
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

/* Returns the wait status. The engine must not take the end of a call for a hang. */
static int wait_for(const gbx_examining *e, pid_t pid, int64_t *out_worked_us) {
    struct rusage used = {0};
    int status = 0;
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    atomic_store_explicit(&e->worker->board->began_ns, 0, memory_order_release);
    *out_worked_us = microseconds(&used.ru_utime) + microseconds(&used.ru_stime);
    return status;
}

/* --- a dispatch that fails --- */

/* Others that are called before a dispatch: the first `count` of them, in one of the orders. */
typedef struct predecessors {
    uint32_t count;
    bool is_backward;
} predecessors;

static uint32_t nth_other(const gbx_examining *e, uint32_t dispatch, uint32_t i, bool is_backward) {
    uint32_t last = e->order->dispatch_count - 1;
    uint32_t skipped = is_backward ? last - dispatch : dispatch;
    uint32_t at = i + (i >= skipped);
    return is_backward ? last - at : at;
}

typedef enum trial_end { RETURNS, FAILS, UNKNOWN } trial_end;

typedef struct trial {
    trial_end end;
    int64_t worked_us;
} trial;

static bool call_one(const gbx_examining *e, uint32_t dispatch) {
    return gbx_worker_call_one(e->worker, e->order, &e->picture, GBX_STEP_ORDERED, dispatch);
}

static _Noreturn void call_after(gbx_examining *e, uint32_t dispatch, predecessors before) {
    gbx_examining_prepare(e, GBX_PATTERN_FIRST);
    bool returns = true;
    for (uint32_t i = 0; i < before.count && returns; ++i)
        returns = call_one(e, nth_other(e, dispatch, i, before.is_backward));
    end_apart(returns && call_one(e, dispatch) ? 0 : WAITS_EXIT);
}

static trial try_after(gbx_examining *e, uint32_t dispatch, predecessors before) {
    trial t = {.end = UNKNOWN};
    pid_t pid = begin_apart();
    if (pid == 0)
        call_after(e, dispatch, before);
    if (pid < 0)
        return t;
    int status = wait_for(e, pid, &t.worked_us);
    uint32_t state =
        atomic_load_explicit(&e->worker->board->states[dispatch], memory_order_acquire);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && state == GBX_CALL_ENDED)
        t.end = RETURNS;
    else if (state == GBX_CALL_RUNS && !(WIFEXITED(status) && WEXITSTATUS(status) == WAITS_EXIT))
        t.end = FAILS;
    return t;
}

/* The dispatch without which, or with which, the other one fails: the last of the fewest
 * predecessors that make a difference. */
static uint32_t find_peer(gbx_examining *e, uint32_t dispatch, predecessors all, trial_end alone) {
    uint32_t same = 0, other = all.count;
    while (other - same > 1) {
        uint32_t middle = same + (other - same) / 2;
        trial t = try_after(e, dispatch, (predecessors){middle, all.is_backward});
        if (t.end == UNKNOWN)
            return GBX_NO_PARTY;
        if (t.end == alone)
            same = middle;
        else
            other = middle;
    }
    return nth_other(e, dispatch, same, all.is_backward);
}

/*
 * A dispatch that fails in one order and returns in another depends on what others write: a race.
 * If it fails first of all, but only after more work than all of them take together, it may have
 * waited for the others and given up; then, and if it always fails, nothing is said.
 */
static void accuse_failing(gbx_examining *e, uint32_t dispatch) {
    trial alone = try_after(e, dispatch, (predecessors){0});
    for (int is_backward = 0; alone.end != UNKNOWN && is_backward < 2; ++is_backward) {
        const predecessors all = {e->order->dispatch_count - 1, is_backward};
        trial after = try_after(e, dispatch, all);
        if (after.end == UNKNOWN || after.end == alone.end)
            continue;
        if (alone.end == FAILS && alone.worked_us > after.worked_us + PATIENCE_US)
            return;
        const gbx_task_finding finding = {
            .kind = GBX_READ_RACE,
            .argument = GBX_NO_ARGUMENT,
            .element = GBX_NO_ELEMENT,
            .value = alone.end == FAILS ? GBX_FAILS_BEFORE : GBX_FAILS_AFTER,
            .parties = {dispatch, find_peer(e, dispatch, all, alone.end)}};
        gbx_examining_add(e, &finding);
        return;
    }
}

/* The dispatch that ran when the process ended; GBX_NO_PARTY for none. */
static uint32_t find_running(const gbx_examining *e) {
    for (uint32_t i = 0; i < e->order->dispatch_count; ++i)
        if (atomic_load_explicit(&e->worker->board->states[i], memory_order_acquire) ==
            GBX_CALL_RUNS)
            return i;
    return GBX_NO_PARTY;
}

/* --- questions --- */

/* All that is asked in the child is marked as not asked before, because it may end at any time. */
void gbx_examine_apart(gbx_examining *e) {
    gbx_answer *answer = e->answer;
    int64_t unused;
    answer->order = GBX_ORDER_NOT_ASKED;
    answer->flags_are_unknown = gbx_may_wait_for_flags(e);
    pid_t pid = begin_apart();
    if (pid == 0) {
        gbx_examine_blocks(e);
        gbx_examine_flags(e);
        end_apart(0);
    }
    if (pid < 0) {
        answer->order = GBX_ORDER_NO_MEMORY;
        return;
    }
    wait_for(e, pid, &unused);
    if (answer->order != GBX_ORDER_NOT_ASKED || (e->order->skips & GBX_SKIP_ORDER))
        return;
    answer->order = GBX_ORDER_FAILS;
    uint32_t failing = find_running(e);
    if (failing != GBX_NO_PARTY)
        accuse_failing(e, failing);
}
