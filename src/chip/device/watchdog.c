#include "base/clock.h"
#include "chip/device/device.h"

/* Looks are 50 ms apart, a little more on a busy machine. A longer gap means that the machine stood
 * still, and does not count as a hang. */
#define MOST_BETWEEN_LOOKS_NS (100 * GBX_NS_PER_MS)

void gbx_watchdog_begin(gbx_device *device) {
    device->progress_ns = device->looked_ns = gbx_clock_ns();
    device->seen_progress = 0;
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_core *core = &device->cores[i];
        core->seen_runs = atomic_load_explicit(&core->runs, memory_order_relaxed);
        core->seen_ns = device->progress_ns;
    }
}

/* Since when each core runs its kernel, as exactly as the interval between looks allows. */
static void note_cores(gbx_device *device, int64_t now_ns) {
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_core *core = &device->cores[i];
        uint64_t runs = atomic_load_explicit(&core->runs, memory_order_relaxed);
        if (runs == core->seen_runs)
            continue;
        core->seen_runs = runs;
        core->seen_ns = now_ns;
    }
}

static void report_hang(gbx_device *device, int64_t now_ns) {
    gbx_core *oldest = NULL;
    uint32_t busy_count = 0;
    for (uint32_t i = 0; i < device->core_count; ++i) {
        gbx_core *core = &device->cores[i];
        if (!gbx_core_is_busy(core))
            continue;
        ++busy_count;
        if (!oldest || core->seen_ns < oldest->seen_ns)
            oldest = core;
    }
    int64_t silent_ns = now_ns - device->progress_ns;
    if (oldest)
        gbx_fault_record_hang(device, GBX_FAULT_HANG, now_ns - oldest->seen_ns, oldest,
                              busy_count - 1);
    else if (gbx_orchestrator_is_inside(device))
        gbx_fault_record_hang(device, GBX_FAULT_ORCHESTRATION_HANG, silent_ns, NULL, 0);
    else if (device->program->awake(device) > 0 &&
             silent_ns > 2 * (int64_t)device->launch.timeout_ms * GBX_NS_PER_MS)
        gbx_fault_record_hang(device, GBX_FAULT_HANG, silent_ns, NULL, 0);
}

/* Time in which this thread did not run either, because the process was stopped, does not count. */
static void forgive_absence(gbx_device *device, int64_t now_ns) {
    int64_t away_ns = now_ns - device->looked_ns - MOST_BETWEEN_LOOKS_NS;
    device->looked_ns = now_ns;
    if (away_ns <= 0)
        return;
    device->progress_ns += away_ns;
    for (uint32_t i = 0; i < device->core_count; ++i)
        device->cores[i].seen_ns += away_ns;
}

void gbx_watchdog_look(gbx_device *device) {
    int64_t now_ns = gbx_clock_ns();
    forgive_absence(device, now_ns);
    uint64_t progress = device->program->progress(device);
    note_cores(device, now_ns);
    if (progress != device->seen_progress) {
        device->seen_progress = progress;
        device->progress_ns = now_ns;
    } else if (now_ns - device->progress_ns >= (int64_t)device->launch.timeout_ms * GBX_NS_PER_MS) {
        report_hang(device, now_ns);
    }
}
