#include "report/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/sink.h"

#define SILENT_NS (2 * GBX_NS_PER_SECOND)
#define REDRAW_NS (GBX_NS_PER_SECOND / 4)

struct gbx_progress {
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool is_over;
    bool is_shown;
    int64_t start_ns;
    uint64_t done;
    uint64_t all;
    const char *unit;
    char what[160];
    gbx_texts texts;
};

static void hide(gbx_progress *progress) {
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = false;
}

static const char *amount_text(gbx_progress *progress) {
    gbx_texts *t = &progress->texts;
    uint64_t done = progress->done, all = progress->all;
    const char *unit = progress->unit;
    if (done == 0 && all == 0)
        return "";
    if (all == 0)
        return gbx_text_format(t, ", %s done",
                               unit ? gbx_text_counted(t, done, unit) : gbx_text_bytes(t, done));
    return gbx_text_format(t, ", %s of %s",
                           unit ? gbx_text_count(t, done) : gbx_text_bytes(t, done),
                           unit ? gbx_text_counted(t, all, unit) : gbx_text_bytes(t, all));
}

static void draw(gbx_progress *progress) {
    int64_t elapsed_ns = gbx_clock_ns() - progress->start_ns;
    if (elapsed_ns < SILENT_NS || !progress->what[0])
        return;
    fprintf(stderr, "\r\033[K%s%s (%" PRId64 " s)", progress->what, amount_text(progress),
            elapsed_ns / GBX_NS_PER_SECOND);
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

gbx_progress *gbx_progress_start(const char *what) {
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
    snprintf(progress->what, sizeof progress->what, "%s", what ? what : "");
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
    pthread_mutex_lock(&progress->lock);
    const char *name = of_case ? gbx_text_shown(&progress->texts, of_case) : "";
    snprintf(progress->what, sizeof progress->what, "%s%s%s", name, of_case ? ": " : "",
             gbx_text_shown(&progress->texts, what));
    progress->done = progress->all = 0;
    pthread_mutex_unlock(&progress->lock);
}

void gbx_progress_count(gbx_progress *progress, uint64_t done, uint64_t all, const char *unit) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->done = done;
    progress->all = all;
    progress->unit = unit;
    pthread_mutex_unlock(&progress->lock);
}

void gbx_progress_entries(void *context, uint64_t done, uint64_t all) {
    gbx_progress_count(context, done, all, "entry");
}

void gbx_progress_hide(gbx_progress *progress) {
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    hide(progress);
    fflush(stderr);
    pthread_mutex_unlock(&progress->lock);
}
