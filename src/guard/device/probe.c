#include "guard/device/probe_source.h"
#include "guard/device/zones.h"

#include <string.h>

/* The guard of a run. */
typedef struct guard {
    gbx_probe probe;
    gbx_probe_request request;
    gbx_guard_channel channel;
    gbx_arguments_check arguments;
    _Atomic uint32_t is_checked; /* all zones, at the end */
    bool has_zones;
    gbx_zones zones;
    gbx_history history;
} guard;

static uint64_t aligned_bytes(void) {
    return (sizeof(guard) + 4095) & ~UINT64_C(4095);
}

/* --- hooks --- */

static void before_dispatch(void *context, uint32_t thread, const gbx_sched_task *task) {
    (void)thread;
    guard *g = context;
    if (g->arguments.kept)
        gbx_arguments_check_task(&g->arguments, (gbx_sched_task *)(uintptr_t)task, false);
    if (g->has_zones)
        gbx_zones_fetch_task(&g->zones, task);
}

static void at_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    (void)thread;
    gbx_history_start(&((guard *)context)->history, dispatch);
}

static void after_dispatch(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch,
                           gbx_sched_span span) {
    if (span.end_ticks != 0) /* else its kernel has not returned */
        gbx_history_end(&((guard *)context)->history, thread, dispatch);
}

static void after_completion(void *context, uint32_t thread, const gbx_sched_task *task) {
    guard *g = context;
    if (g->arguments.kept)
        gbx_arguments_check_task(&g->arguments, (gbx_sched_task *)(uintptr_t)task, true);
    if (g->has_zones)
        gbx_zones_check_task(&g->zones, task);
    gbx_history_complete(&g->history, thread, task);
}

static void end_of_thread(void *context, uint32_t thread) {
    (void)thread;
    guard *g = context;
    if (g->has_zones && !atomic_exchange_explicit(&g->is_checked, 1, memory_order_relaxed))
        gbx_zones_check_all(&g->zones);
}

static void on_fault(void *context, uint32_t thread, const gbx_sched_dispatch *dispatch) {
    (void)thread;
    guard *g = context;
    if (g->has_zones && dispatch->task)
        gbx_zones_check_task(&g->zones, dispatch->task);
}

static uint64_t progress(void *context) {
    return atomic_load_explicit(&((guard *)context)->zones.work, memory_order_relaxed);
}

static void new_buffer(void *context, const gbx_probe_buffer *buffer) {
    guard *g = context;
    if (!buffer->zone_end)
        atomic_fetch_add_explicit(&g->channel.shared->unguarded, 1, memory_order_relaxed);
    gbx_zones_add(&g->zones, buffer);
}

/* Times of dispatches are not needed. */
static uint64_t no_ticks(void) {
    return 1;
}

/* --- the start --- */

static bool is_inside(const gbx_probe_request *request, uint64_t address, uint64_t bytes) {
    return address >= request->gm_base && address - request->gm_base <= request->gm_bytes &&
           bytes <= request->gm_bytes - (address - request->gm_base);
}

static bool is_setup_sound(const gbx_probe_request *request, const gbx_guard_setup *setup) {
    return setup->magic == GBX_GUARD_MAGIC && setup->action >= GBX_GUARD_ACTION_NONE &&
           setup->action <= GBX_GUARD_ACTION_STOP && setup->buffer_count <= GBX_GUARD_MAX_BUFFERS &&
           (setup->buffer_count == 0 ||
            is_inside(request, setup->buffers, setup->buffer_count * sizeof(gbx_guard_buffer)));
}

static uint64_t state_bytes(const gbx_probe_request *request) {
    return aligned_bytes() + gbx_zones_bytes(request->gm_bytes);
}

static const gbx_probe *attach(void *state, gbx_probe_request *request) {
    guard *g = state;
    if (!is_inside(request, request->guard_base, sizeof(gbx_guard_setup)) ||
        request->guard_base % _Alignof(gbx_guard_setup))
        return NULL;
    gbx_guard_setup *setup = (gbx_guard_setup *)(uintptr_t)request->guard_base;
    if (!is_setup_sound(request, setup))
        return NULL;
    g->request = *request;
    gbx_history_init(&g->history);
    gbx_guard_channel_init(&g->channel, &setup->findings, &g->history, &g->request,
                           setup->action == GBX_GUARD_ACTION_STOP);
    g->arguments = (gbx_arguments_check){
        .findings = &g->channel.sink, .shown = request->shown, .kept = request->kept};
    g->has_zones = setup->action != GBX_GUARD_ACTION_NONE;
    if (g->has_zones) {
        gbx_zones_init(&g->zones, (char *)state + aligned_bytes(), &g->request, &g->history,
                       &g->channel.sink);
        if (!gbx_zones_add_fixed(&g->zones, (const gbx_guard_buffer *)(uintptr_t)setup->buffers,
                                 setup->buffer_count))
            return NULL;
    }
    g->probe = (gbx_probe){.context = g,
                           .ticks = no_ticks,
                           .before_dispatch = before_dispatch,
                           .at_dispatch = at_dispatch,
                           .after_dispatch = after_dispatch,
                           .after_completion = after_completion,
                           .end_of_thread = end_of_thread,
                           .on_fault = on_fault,
                           .progress = progress,
                           .new_buffer = g->has_zones ? new_buffer : NULL};
    request->findings = &g->channel.sink;
    return &g->probe;
}

const gbx_probe_source gbx_guard_probe_source = {.state_bytes = state_bytes, .attach = attach};
