#include "dump/host/internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/memory.h"

/* How long it sleeps when there was nothing: longer each time while nothing comes. */
#define SHORTEST_NAP_NS 50000
#define LONGEST_NAP_NS GBX_NS_PER_MS
/* After so many of the longest naps it also takes what the device has not handed over: a kernel may
 * hang, and the user may kill the host. */
enum { IDLE_NAPS = 50 };

struct gbx_dump_manager {
    gbx_collector *collector;
    _Atomic bool is_stopping;
    gbx_doorbell bell;
    pthread_t thread;
};

/* From here on, what was taken survives this process. The first failure is reported at the end. */
static void flush(gbx_dump_manager *manager) {
    gbx_status_free(gbx_store_flush(manager->collector->store));
}

static bool is_stopping(gbx_dump_manager *manager) {
    return atomic_load_explicit(&manager->is_stopping, memory_order_acquire);
}

static void drain_while_it_runs(gbx_dump_manager *manager) {
    int64_t nap_ns = SHORTEST_NAP_NS;
    uint32_t idle_naps = 0;
    while (!is_stopping(manager)) {
        uint32_t seen = gbx_doorbell_read(&manager->bell);
        if (gbx_collector_drain(manager->collector, false)) {
            nap_ns = SHORTEST_NAP_NS;
            continue;
        }
        if (gbx_collector_touch_ahead(manager->collector))
            continue;
        if (nap_ns == LONGEST_NAP_NS && ++idle_naps % IDLE_NAPS == 0)
            gbx_collector_drain(manager->collector, true);
        flush(manager);
        if (!is_stopping(manager))
            gbx_doorbell_wait(&manager->bell, seen, nap_ns);
        nap_ns = nap_ns * 2 < LONGEST_NAP_NS ? nap_ns * 2 : LONGEST_NAP_NS;
    }
}

static void copy_when_asked(gbx_dump_manager *manager) {
    while (!is_stopping(manager)) {
        uint32_t seen = gbx_doorbell_read(&manager->bell);
        if (gbx_collector_is_asked(manager->collector)) {
            gbx_collector_copy(manager->collector);
            flush(manager);
        } else if (!gbx_collector_touch_ahead(manager->collector) && !is_stopping(manager)) {
            gbx_doorbell_wait(&manager->bell, seen, GBX_FOREVER);
        }
    }
}

static void *manage(void *context) {
    gbx_dump_manager *manager = context;
    if (manager->collector->is_mapped)
        drain_while_it_runs(manager);
    else
        copy_when_asked(manager);
    gbx_collector_finish(manager->collector);
    flush(manager);
    return NULL;
}

gbx_status gbx_dump_manager_start(gbx_collector *collector, gbx_dump_manager **out_manager) {
    gbx_dump_manager *manager = calloc(1, sizeof *manager);
    *out_manager = NULL;
    if (!manager)
        return gbx_fail_memory("starting a dump");
    manager->collector = collector;
    /* The program's signals go to its own threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&manager->thread, NULL, manage, manager);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(manager);
        return gbx_fail(GBX_EXHAUSTED, "starting the thread of a dump: %s", strerror(error));
    }
    *out_manager = manager;
    return NULL;
}

void gbx_dump_manager_attend(gbx_dump_manager *manager) {
    if (!manager->collector->is_mapped && gbx_collector_is_asked(manager->collector))
        gbx_doorbell_ring(&manager->bell);
}

void gbx_dump_manager_stop(gbx_dump_manager *manager) {
    /* Release: the device has ended before this. */
    atomic_store_explicit(&manager->is_stopping, true, memory_order_release);
    gbx_doorbell_ring(&manager->bell);
    pthread_join(manager->thread, NULL);
    free(manager);
}
