#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/internal.h"

#define SILENT_NS (2 * GBX_NS_PER_SECOND)
#define REDRAW_NS (GBX_NS_PER_SECOND / 4)

struct gbx_progress {
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool is_over;
    bool is_shown;
    int64_t start_ns;
    uint64_t tasks;
    char text[160];
};

static void hide(gbx_progress *progress) {
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = false;
}

static void draw(gbx_progress *progress) {
    int64_t elapsed_ns = gbx_clock_ns() - progress->start_ns;
    if (elapsed_ns < SILENT_NS || !progress->text[0])
        return;
    fprintf(stderr, "\r\033[K%s", progress->text);
    if (progress->tasks)
        fprintf(stderr, ", %" PRIu64 " tasks done", progress->tasks);
    fprintf(stderr, " (%" PRId64 " s)", elapsed_ns / GBX_NS_PER_SECOND);
    fflush(stderr);
    progress->is_shown = true;
}

static void *draw_until_over(void *context) {
    gbx_progress *progress = context;
    pthread_mutex_lock(&progress->lock);
    while (!progress->is_over) {
        struct timespec until = gbx_timespec_of_ns(gbx_clock_ns() + REDRAW_NS);
        pthread_cond_timedwait(&progress->changed, &progress->lock, &until);
        if (!progress->is_over)
            draw(progress);
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

gbx_progress *gbx_progress_start(void) {
    gbx_progress *progress = isatty(STDERR_FILENO) ? calloc(1, sizeof *progress) : NULL;
    if (!progress)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* as gbx_clock_ns counts */
    pthread_cond_init(&progress->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&progress->lock, NULL);
    progress->start_ns = gbx_clock_ns();
    if (pthread_create(&progress->thread, NULL, draw_until_over, progress) == 0)
        return progress;
    free(progress);
    return NULL;
}

void gbx_progress_stop(gbx_progress *progress) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->is_over = true;
    hide(progress);
    pthread_cond_signal(&progress->changed);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}

void gbx_progress_phase(gbx_progress *progress, const char *of_case, const char *what) {
    if (!progress)
        return;
    char text[sizeof progress->text];
    snprintf(text, sizeof text, "%s%s%s", of_case ? of_case : "", of_case ? ": " : "", what);
    pthread_mutex_lock(&progress->lock);
    gbx_terminal_escape(text, progress->text, sizeof progress->text);
    progress->tasks = 0;
    pthread_mutex_unlock(&progress->lock);
}

void gbx_progress_tasks(gbx_progress *progress, uint64_t tasks) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->tasks = tasks;
    pthread_mutex_unlock(&progress->lock);
}

void gbx_progress_hide(gbx_progress *progress) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    hide(progress);
    fflush(stderr);
    pthread_mutex_unlock(&progress->lock);
}
