/*
 * The host's own memory: RssAnon and RssFile of /proc/self/status, read every few milliseconds.
 * RssShmem does not count: it is global memory with the arenas, which the host maps on a2a3sim, and
 * the source of this program.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "capture.h"

enum { LOOK_NS = 5000000 };

struct memory_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_stopping;
    uint64_t peak_bytes;
};

static uint64_t own_bytes(void) {
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0 || strncmp(line, "RssFile:", 8) == 0)
            kib += strtoull(line + 8, NULL, 10);
    fclose(file);
    return kib * KIB;
}

static void look(memory_watch *watch) {
    uint64_t bytes = own_bytes();
    if (bytes > watch->peak_bytes)
        watch->peak_bytes = bytes;
}

static void *watch_memory(void *context) {
    memory_watch *watch = context;
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_stopping) {
        look(watch);
        next.tv_nsec += LOOK_NS;
        next.tv_sec += next.tv_nsec / GBX_NS_PER_SECOND;
        next.tv_nsec %= GBX_NS_PER_SECOND;
        pthread_cond_timedwait(&watch->change, &watch->lock, &next);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

memory_watch *memory_watch_start(void) {
    memory_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->change, NULL);
    if (pthread_create(&watch->thread, NULL, watch_memory, watch) == 0)
        return watch;
    free(watch);
    return NULL;
}

uint64_t memory_watch_stop(memory_watch *watch) {
    if (!watch)
        return 0;
    pthread_mutex_lock(&watch->lock);
    watch->is_stopping = true;
    pthread_cond_signal(&watch->change);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    uint64_t peak_bytes = watch->peak_bytes;
    free(watch);
    return peak_bytes;
}
