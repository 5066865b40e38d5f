#include <stdio.h>
#include <string.h>

#include "chip/device/device.h"

static bool is_stopping(gbx_device *device) {
    return atomic_load_explicit(&device->is_stopping, memory_order_acquire);
}

/* Sleeps until a program wakes this worker; false when the chip stops. */
static bool await_call(gbx_worker *worker) {
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&worker->bell);
        if (!worker->device->programs.is_parked(worker->device->program_state, worker->id))
            return true;
        if (is_stopping(worker->device))
            return false;
        gbx_doorbell_wait(&worker->bell, seen, GBX_FOREVER);
    }
}

/* Runs when a kernel calls pthread_exit: its dispatch will never complete. */
static void on_thread_end(void *device) {
    gbx_fault_record_thread_end(device);
}

static void *worker_main(void *argument) {
    gbx_worker *worker = argument;
    gbx_device *device = worker->device;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", worker->id);
    pthread_setname_np(pthread_self(), name);
    void *signal_stack = gbx_fault_stack_create();
    pthread_cleanup_push(on_thread_end, device);
    while (await_call(worker)) {
        atomic_store_explicit(&worker->is_inside, true, memory_order_relaxed);
        device->program->work(device, worker->id);
        atomic_store_explicit(&worker->is_inside, false, memory_order_release);
    }
    pthread_cleanup_pop(0);
    gbx_fault_stack_destroy(signal_stack);
    return NULL;
}

gbx_status gbx_worker_start(gbx_worker *worker) {
    worker->device->programs.park_first(worker->device->program_state, worker->id);
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error)
        return gbx_fail(GBX_EXHAUSTED,
                        "starting the thread of core %u of %u: %s; open fewer blocks, or raise the "
                        "limits on memory and threads (ulimit)",
                        worker->id + 1, worker->device->core_count, strerror(error));
    worker->has_thread = true;
    return NULL;
}

/* --- the orchestrator --- */

bool gbx_orchestrator_is_inside(gbx_device *device) {
    gbx_orchestrator *orchestrator = &device->orchestrator;
    /* Pairs with the release at its end. */
    return atomic_load_explicit(&orchestrator->asked, memory_order_relaxed) !=
           atomic_load_explicit(&orchestrator->served, memory_order_acquire);
}

void gbx_orchestrator_call(gbx_device *device) {
    /* Pairs with the acquire in orchestrator_main: the launch is filled in. */
    atomic_fetch_add_explicit(&device->orchestrator.asked, 1, memory_order_release);
    gbx_doorbell_ring(&device->orchestrator.bell);
}

static void *orchestrator_main(void *argument) {
    gbx_device *device = argument;
    gbx_orchestrator *orchestrator = &device->orchestrator;
    pthread_setname_np(pthread_self(), "orchestrator");
    void *signal_stack = gbx_fault_stack_create();
    pthread_cleanup_push(on_thread_end, device);
    for (;;) {
        uint32_t seen = gbx_doorbell_read(&orchestrator->bell);
        uint32_t asked = atomic_load_explicit(&orchestrator->asked, memory_order_acquire);
        if (asked != atomic_load_explicit(&orchestrator->served, memory_order_relaxed)) {
            device->program->orchestrate(device);
            atomic_store_explicit(&orchestrator->served, asked, memory_order_release);
        } else if (is_stopping(device)) {
            break;
        } else {
            gbx_doorbell_wait(&orchestrator->bell, seen, GBX_FOREVER);
        }
    }
    pthread_cleanup_pop(0);
    gbx_fault_stack_destroy(signal_stack);
    return NULL;
}

gbx_status gbx_orchestrator_start(gbx_device *device) {
    int error = pthread_create(&device->orchestrator.thread, NULL, orchestrator_main, device);
    if (error)
        return gbx_fail(GBX_EXHAUSTED, "starting the orchestrator thread: %s", strerror(error));
    device->orchestrator.has_thread = true;
    return NULL;
}
