#include "base/clock.h"
#include "guard/device/guard.h"

static void stop_run(gbx_guard_channel *channel, const gbx_run_finding *finding) {
    if (atomic_exchange_explicit(&channel->is_stopped, true, memory_order_relaxed))
        return;
    const gbx_run_finding_task *first = &finding->candidates[0];
    bool is_known = finding->candidate_count > 0;
    channel->request.stop(channel->request.machine, is_known ? first->task : finding->finder,
                          is_known ? first->func_id : GBX_NO_KERNEL);
}

static void report(void *context, const gbx_run_finding *found, uint64_t moment) {
    gbx_guard_channel *channel = context;
    gbx_run_finding finding = *found;
    finding.time_ns = (uint64_t)(gbx_clock_ns() - channel->start_ns);
    gbx_history_add_candidates(channel->history, moment, &finding);
    if (finding.candidate_total == 1)
        finding.certainty = GBX_CERTAINTY_SURE;
    uint64_t number = atomic_fetch_add_explicit(&channel->count, 1, memory_order_relaxed);
    if (number < GBX_GUARD_FINDINGS) {
        gbx_run_finding *to = &channel->shared->records[number];
        uint32_t kind = finding.kind;
        finding.kind = 0;
        *to = finding;
        /* Last: a record of a chip that died meanwhile is complete where it has a kind. */
        atomic_thread_fence(memory_order_release);
        *(volatile uint32_t *)&to->kind = kind;
    }
    /* From the private count: a kernel can write over the one in global memory. */
    atomic_store_explicit(&channel->shared->count,
                          atomic_load_explicit(&channel->count, memory_order_relaxed),
                          memory_order_release);
    if (channel->stops)
        stop_run(channel, &finding);
}

static uint64_t moment_of(void *context) {
    return gbx_history_moment(((gbx_guard_channel *)context)->history);
}

void gbx_guard_channel_init(gbx_guard_channel *channel, gbx_guard_findings *shared,
                            gbx_history *history, const gbx_probe_request *request, bool stops) {
    channel->shared = shared;
    channel->history = history;
    channel->request = *request;
    channel->start_ns = gbx_clock_ns();
    channel->stops = stops;
    channel->sink = (gbx_finding_sink){.context = channel, .report = report, .moment = moment_of};
}
