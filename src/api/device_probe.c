#include "api/device_probe.h"

#include "dump/device/probe_source.h"
#include "guard/device/probe_source.h"

/*
 * Two probes as one. Before a kernel runs the dump comes first, and the guard last: it then sees
 * exactly the kernel's time. After it the guard comes first: it restores a zone before anything
 * else reads memory, and its findings precede the records of the task.
 */
typedef struct both {
    gbx_probe probe;
    const gbx_probe *dump;
    const gbx_probe *guard;
} both;

static void before_dispatch(void *context, uint32_t thread, const gbx_sched_task *task) {
    const both *b = context;
    b->dump->before_dispatch(b->dump->context, thread, task);
    b->guard->before_dispatch(b->guard->context, thread, task);
}

static void at_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    const both *b = context;
    b->dump->at_dispatch(b->dump->context, thread, dispatch);
    b->guard->at_dispatch(b->guard->context, thread, dispatch);
}

static void after_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch,
                           gbx_sched_span span) {
    const both *b = context;
    b->guard->after_dispatch(b->guard->context, thread, dispatch, span);
    b->dump->after_dispatch(b->dump->context, thread, dispatch, span);
}

static void after_completion(void *context, uint32_t thread, const gbx_sched_task *task) {
    const both *b = context;
    b->guard->after_completion(b->guard->context, thread, task);
    b->dump->after_completion(b->dump->context, thread, task);
}

static void end_of_thread(void *context, uint32_t thread) {
    const both *b = context;
    b->guard->end_of_thread(b->guard->context, thread);
    b->dump->end_of_thread(b->dump->context, thread);
}

static void on_fault(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    const both *b = context;
    b->guard->on_fault(b->guard->context, thread, dispatch);
    b->dump->on_fault(b->dump->context, thread, dispatch);
}

static uint64_t progress(void *context) {
    const both *b = context;
    return b->guard->progress(b->guard->context) + b->dump->progress(b->dump->context);
}

static void new_buffer(void *context, const gbx_probe_buffer *buffer) {
    const both *b = context;
    b->guard->new_buffer(b->guard->context, buffer);
}

static uint64_t align(uint64_t bytes) {
    return (bytes + 4095) & ~UINT64_C(4095);
}

static uint64_t dump_bytes(const gbx_probe_request *request) {
    return request->data_base ? align(gbx_dump_probe_source.state_bytes(request)) : 0;
}

static uint64_t guard_bytes(const gbx_probe_request *request) {
    return request->guard_base ? align(gbx_guard_probe_source.state_bytes(request)) : 0;
}

static uint64_t state_bytes(const gbx_probe_request *request) {
    return align(sizeof(both)) + dump_bytes(request) + guard_bytes(request);
}

/* The guard first: the dump reports through its sink of findings. */
static const gbx_probe *attach(void *state, gbx_probe_request *request) {
    both *b = state;
    char *dump_state = (char *)state + align(sizeof *b);
    char *guard_state = dump_state + dump_bytes(request);
    if (request->guard_base) {
        b->guard = gbx_guard_probe_source.attach(guard_state, request);
        if (!b->guard)
            return NULL;
    }
    if (!request->data_base)
        return b->guard;
    b->dump = gbx_dump_probe_source.attach(dump_state, request);
    if (!b->dump || !b->guard)
        return b->dump;
    b->probe = (gbx_probe){.context = b,
                           .ticks = b->dump->ticks,
                           .before_dispatch = before_dispatch,
                           .at_dispatch = at_dispatch,
                           .after_dispatch = after_dispatch,
                           .after_completion = after_completion,
                           .end_of_thread = end_of_thread,
                           .on_fault = on_fault,
                           .progress = progress,
                           .new_buffer = b->guard->new_buffer ? new_buffer : NULL};
    return &b->probe;
}

const gbx_probe_source gbx_device_probe_source = {.state_bytes = state_bytes, .attach = attach};
