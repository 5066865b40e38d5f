/*
 * Waits that an earlier task's value satisfies. A dispatch that waits only after a 32-bit integer
 * of its inputs is cleared did not wait for this task.
 */
#include <string.h>

#include "replay/worker/pattern.h"
#include "replay/worker/worker.h"

enum { MAX_FLAGS = 65536, MIN_CALLS = 9 * GBX_CALL_MAX_BLOCKS, CALL_BYTES = 64 << 10 };
#define MAX_WORK_BYTES (UINT64_C(32) << 30)

typedef struct asking {
    gbx_examining *e;
    uint32_t argument; /* whose elements may be flags */
    uint64_t count;
    uint64_t calls; /* that are left for the argument: more would take too long */
} asking;

static bool may_hold_flags(const gbx_examining *e, uint32_t i) {
    const gbx_order_argument *argument = &e->arguments[i];
    const unsigned char *before = gbx_payload_before(&e->worker->payloads, argument);
    if (!e->worker->may_wait || argument->kind != GBX_CALL_TENSOR ||
        argument->role == GBX_ROLE_OUTPUT || !before ||
        (argument->tensor.dtype != GBX_INT32 && argument->tensor.dtype != GBX_UINT32))
        return false;
    uint64_t count = (uint64_t)gbx_tensor_numel(&argument->tensor);
    uint32_t value = 0;
    for (uint64_t k = 0; k < count && count <= MAX_FLAGS && value == 0; ++k)
        memcpy(&value, before + k * sizeof value, sizeof value);
    return value != 0;
}

/* Memory as before the dispatch, but with some elements of the argument cleared. */
static void prepare(const asking *a, uint64_t first, uint64_t end) {
    gbx_examining *e = a->e;
    const gbx_tensor *tensor = &e->arguments[a->argument].tensor;
    unsigned char *payload = e->worker->scratch;
    gbx_examining_prepare(e, GBX_PATTERN_FIRST);
    memcpy(payload, gbx_payload_before(&e->worker->payloads, &e->arguments[a->argument]),
           gbx_tensor_payload_bytes(tensor));
    memset(payload + first * 4, 0, (end - first) * 4);
    gbx_tensor_scatter(tensor, payload, gbx_picture_buffer(&e->picture, a->argument));
}

static bool returns(const asking *a, uint32_t dispatch) {
    return gbx_worker_call_one(a->e->worker, a->e->order, &a->e->picture, GBX_STEP_FLAGS, dispatch);
}

/* The element without which the dispatch waits. */
static uint64_t find_flag(const asking *a, uint32_t dispatch) {
    uint64_t first = 0, end = a->count;
    while (end - first > 1) {
        uint64_t middle = first + (end - first) / 2;
        prepare(a, first, middle);
        if (returns(a, dispatch))
            first = middle;
        else
            end = middle;
    }
    return first;
}

static uint32_t value_now(const asking *a, uint64_t element) {
    const gbx_tensor *tensor = &a->e->arguments[a->argument].tensor;
    uint32_t value;
    gbx_tensor_gather(tensor, gbx_picture_buffer(&a->e->picture, a->argument),
                      a->e->worker->scratch);
    memcpy(&value, a->e->worker->scratch + element * 4, sizeof value);
    return value;
}

/* False if no more calls are left; then none is. */
static bool take_calls(asking *a, uint64_t count) {
    bool is_enough = a->calls >= count;
    a->calls = is_enough ? a->calls - count : 0;
    return is_enough;
}

/* Another dispatch that sets the flag; GBX_NO_PARTY for none, or if calls ran out. */
static uint32_t find_setter(asking *a, uint32_t waiting, uint64_t element) {
    for (uint32_t i = 0; i < a->e->order->dispatch_count; ++i) {
        if (i == waiting)
            continue;
        if (!take_calls(a, 1))
            return GBX_NO_PARTY;
        prepare(a, element, element + 1);
        (void)returns(a, i); /* what it did before it waited counts, too */
        if (value_now(a, element) != 0)
            return i;
    }
    return GBX_NO_PARTY;
}

static void report(const asking *a, uint32_t waiting, uint64_t element, uint32_t setter) {
    uint32_t value;
    memcpy(&value,
           gbx_payload_before(&a->e->worker->payloads, &a->e->arguments[a->argument]) + element * 4,
           sizeof value);
    const gbx_task_finding finding = {.kind = setter == GBX_NO_PARTY ? GBX_EARLIER_FLAG
                                                                     : GBX_STALE_FLAG,
                                      .argument = a->argument,
                                      .element = element,
                                      .last = element,
                                      .elements = 1,
                                      .value = value,
                                      .parties = {waiting, setter}};
    gbx_examining_add(a->e, &finding);
}

/* One finding an argument: the dispatches of a task wait in the same way. False if calls ran out.
 */
static bool ask(asking *a) {
    for (uint32_t i = 0; i < a->e->order->dispatch_count; ++i) {
        if (!take_calls(a, 2))
            return false;
        gbx_examining_prepare(a->e, GBX_PATTERN_FIRST);
        if (!returns(a, i))
            continue;
        prepare(a, 0, a->count);
        if (returns(a, i))
            continue;
        uint64_t element = find_flag(a, i);
        uint32_t setter = find_setter(a, i, element);
        if (setter == GBX_NO_PARTY && a->calls == 0)
            return false;
        report(a, i, element, setter);
        return true;
    }
    return true;
}

static uint64_t count_calls(const gbx_examining *e) {
    uint64_t calls = MAX_WORK_BYTES / (e->picture.bytes + CALL_BYTES);
    return calls > MIN_CALLS ? calls : MIN_CALLS;
}

bool gbx_may_wait_for_flags(const gbx_examining *e) {
    for (uint32_t i = 0; i < e->order->argument_count; ++i)
        if (may_hold_flags(e, i))
            return true;
    return false;
}

void gbx_examine_flags(gbx_examining *e) {
    bool is_all_asked = true;
    if (e->order->skips & GBX_SKIP_FLAGS)
        return;
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        if (!may_hold_flags(e, i))
            continue;
        asking a = {.e = e,
                    .argument = i,
                    .count = (uint64_t)gbx_tensor_numel(&e->arguments[i].tensor),
                    .calls = count_calls(e)};
        is_all_asked &= ask(&a);
    }
    if (is_all_asked)
        e->answer->flags_are_unknown = 0;
}
