#include "base/clock.h"
#include "dump/device/writer.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <x86intrin.h>
#endif

/* A pair whose two clocks were read further apart than this is read again: the thread was
 * preempted. */
enum { CLOSE_TICKS = 2000, MAX_READS = 8 };
/* For how many ticks (some milliseconds) a rate is trusted beyond the pair it comes from. */
enum { MAX_REACH_TICKS = 1 << 22 };

static uint64_t read_clock(void) {
    return (uint64_t)gbx_clock_ns();
}

#if defined(__x86_64__)
static uint64_t read_counter(void) {
    return __rdtsc();
}

/* Whether the counter runs at one rate on all processors, whatever they do to save power. */
static bool has_invariant_counter(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}
#endif

uint64_t (*gbx_ticks_source(void))(void) {
#if defined(__x86_64__)
    if (has_invariant_counter())
        return read_counter;
#endif
    return read_clock;
}

gbx_ticks_pair gbx_ticks_pair_read(uint64_t (*ticks)(void)) {
    gbx_ticks_pair best = {.ticks = 0};
    uint64_t best_apart = UINT64_MAX;
    for (uint32_t i = 0; i < MAX_READS && best_apart > CLOSE_TICKS; ++i) {
        uint64_t before = ticks();
        int64_t ns = gbx_clock_ns();
        uint64_t apart = ticks() - before;
        if (apart >= best_apart)
            continue;
        best = (gbx_ticks_pair){.ticks = before + apart / 2, .ns = ns};
        best_apart = apart;
    }
    return best;
}

/* Times between the start and the anchor are interpolated. Times after the anchor reach no further
 * than the span over which the rate was measured, so that the error of reading two clocks does not
 * grow. */
uint64_t gbx_ticks_to_time(gbx_lane *lane, uint64_t ticks) {
    const gbx_writer *writer = lane->writer;
    if ((int64_t)(ticks - lane->anchor.ticks) > (int64_t)lane->reach) {
        lane->anchor = gbx_ticks_pair_read(writer->probe.ticks);
        uint64_t elapsed = lane->anchor.ticks - writer->start.ticks;
        lane->reach = elapsed < MAX_REACH_TICKS ? elapsed : MAX_REACH_TICKS;
        lane->ns_per_tick =
            elapsed ? (double)(lane->anchor.ns - writer->start.ns) / (double)elapsed : 0;
    }
    double after_anchor = (double)(int64_t)(ticks - lane->anchor.ticks) * lane->ns_per_tick;
    int64_t since_start = lane->anchor.ns - writer->start_ns + (int64_t)after_anchor;
    return since_start > 0 ? (uint64_t)since_start : 0;
}
