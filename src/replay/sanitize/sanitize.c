#include "replay/sanitize/sanitize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "replay/sanitize/internal.h"

static const gbx_name sanitizer_rows[GBX_SANITIZER_COUNT] = {
    [GBX_SANITIZE_ACCESS] = {"access", "access", NULL},
    [GBX_SANITIZE_ADDRESS] = {"address", "address",
                              "AddressSanitizer and UndefinedBehaviorSanitizer"},
    [GBX_SANITIZE_MEMORY] = {"memory", "memory", "MemorySanitizer"},
    [GBX_SANITIZE_THREAD] = {"thread", "thread", "ThreadSanitizer"}};
const gbx_name_set gbx_sanitizers = {sanitizer_rows, GBX_SANITIZER_COUNT};

static const gbx_name kind_rows[GBX_SANITIZE_KIND_COUNT] = {
    [GBX_SANITIZE_READ_OUTSIDE] = {"out_of_bounds_read", "out_of_bounds_read", NULL},
    [GBX_SANITIZE_WRITE_OUTSIDE] = {"out_of_bounds_write", "out_of_bounds_write", NULL},
    [GBX_SANITIZE_WRITES_INPUT] = {"writes_input", "writes_input", NULL},
    [GBX_SANITIZE_UNINITIALISED] = {"uninitialised_value", "uninitialised_value", NULL},
    [GBX_SANITIZE_UNDEFINED] = {"undefined_behaviour", "undefined_behaviour", NULL},
    [GBX_SANITIZE_RACE] = {"data_race", "data_race", NULL},
    [GBX_SANITIZE_STACK] = {"local_variable", "local_variable", NULL},
    [GBX_SANITIZE_GLOBAL] = {"global_variable", "global_variable", NULL},
    [GBX_SANITIZE_HEAP] = {"allocation", "allocation", NULL},
    [GBX_SANITIZE_CRASH] = {"crash", "crash", NULL},
    [GBX_SANITIZE_OTHER] = {"other", "other", NULL},
    [GBX_SANITIZE_UNWRITTEN] = {"unwritten", "unwritten", NULL}};
const gbx_name_set gbx_sanitize_kinds = {kind_rows, GBX_SANITIZE_KIND_COUNT};

/* --- one sanitizer, on a thread of its own --- */

typedef struct errand {
    const gbx_replay_session *session;
    const gbx_replay_task *task;
    gbx_sanitizer sanitizer;
    pthread_mutex_t *gate; /* of the session */
    pthread_t thread;
    bool has_thread;
    int call_fd; /* memory that is passed to the program as files */
    int plan_fd;
    gbx_call_file header; /* of the call */
    gbx_sanitize_built built;
    gbx_sanitize_run run;
    gbx_status status;
    uint64_t build_ns;
    uint64_t run_ns;
} errand;

static gbx_status fail_files(void) {
    return gbx_fail(GBX_IO, "running kernels under a sanitizer: %s", strerror(errno));
}

static gbx_status write_call(errand *e) {
    char path[32];
    gbx_replay_request request = {
        .task = e->task, .dispatch = e->session->config.dispatch, .runs = 1};
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        request.objects[i] = (char *)(uintptr_t)e->built.objects[i];
    snprintf(path, sizeof path, "/proc/self/fd/%d", e->call_fd);
    pthread_mutex_lock(e->gate);
    gbx_status status = gbx_replay_write_call(e->session->engine, &request, path);
    pthread_mutex_unlock(e->gate);
    return status;
}

static gbx_status write_files(errand *e) {
    size_t count;
    e->call_fd = gbx_above_standard_streams(memfd_create("glassbox-call", MFD_CLOEXEC));
    e->plan_fd = gbx_above_standard_streams(memfd_create("glassbox-plan", MFD_CLOEXEC));
    if (e->call_fd < 0 || e->plan_fd < 0)
        return fail_files();
    GBX_TRY(write_call(e));
    int error = gbx_pread_all(e->call_fd, &e->header, sizeof e->header, 0, &count);
    if (error) {
        errno = error;
        return fail_files();
    }
    return gbx_sanitize_write_plan(&e->header, e->plan_fd);
}

static gbx_status build_and_run(errand *e) {
    const int64_t start_ns = gbx_clock_ns();
    gbx_status status = gbx_sanitize_build(e->session, e->task, e->sanitizer, e->gate, &e->built);
    const int64_t built_ns = gbx_clock_ns();
    e->build_ns = (uint64_t)(built_ns - start_ns);
    if (!status)
        status = write_files(e);
    if (!status)
        status = gbx_sanitize_start(&e->built, e->call_fd, e->plan_fd,
                                    e->session->config.timeout_ms, &e->run);
    e->run_ns = (uint64_t)(gbx_clock_ns() - built_ns);
    return status;
}

static void *errand_main(void *argument) {
    errand *e = argument;
    e->status = build_and_run(e);
    return NULL;
}

/* --- what it found --- */

static gbx_status append_raw(gbx_sanitize_report *report, gbx_sanitizer sanitizer,
                             const char *text) {
    char *longer;
    if (asprintf(&longer, "%s--- %s ---\n%s", report->raw, gbx_name_of(&gbx_sanitizers, sanitizer),
                 text) < 0)
        return gbx_fail_memory("running kernels under a sanitizer");
    free(report->raw);
    report->raw = longer;
    return NULL;
}

static gbx_status report_errand(errand *e, gbx_sanitize_report *report) {
    const gbx_sanitize_context context = {e->session, e->task, &e->built, &e->header, e->sanitizer};
    gbx_status status = e->status;
    e->status = NULL;
    report->asked[e->sanitizer].build_ns = e->build_ns;
    report->asked[e->sanitizer].run_ns = e->run_ns;
    if (!status)
        status = gbx_sanitize_add(&context, &e->run, report);
    return status ? status : append_raw(report, e->sanitizer, e->run.text);
}

/* What concerns one sanitizer is no failure of the others. */
static gbx_status excuse(gbx_status status, gbx_sanitize_asked *asked) {
    if (!status || gbx_status_code(status) == GBX_IO)
        return status;
    free(asked->why_not);
    asked->was_asked = false;
    asked->why_not = strdup(gbx_status_message(status));
    gbx_status_free(status);
    return asked->why_not ? NULL : gbx_fail_memory("running kernels under a sanitizer");
}

/* --- all of them --- */

static void free_errand(errand *e) {
    if (e->call_fd >= 0)
        close(e->call_fd);
    if (e->plan_fd >= 0)
        close(e->plan_fd);
    free(e->run.text);
    gbx_status_free(e->status);
}

/* A thread that cannot be started is no failure: its errand is run on this one. */
static void run_errands(errand *errands, size_t count) {
    for (size_t i = 0; i + 1 < count; ++i)
        errands[i].has_thread =
            pthread_create(&errands[i].thread, NULL, errand_main, &errands[i]) == 0;
    for (size_t i = 0; i < count; ++i)
        if (!errands[i].has_thread)
            errand_main(&errands[i]);
    for (size_t i = 0; i < count; ++i)
        if (errands[i].has_thread)
            pthread_join(errands[i].thread, NULL);
}

static gbx_status ask(gbx_replay_session *session, const gbx_replay_task *task, unsigned sanitizers,
                      gbx_sanitize_report *report) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    size_t count = 0;
    errand *errands = calloc(GBX_SANITIZER_COUNT, sizeof *errands);
    if (!errands)
        return gbx_fail_memory("running kernels under a sanitizer");
    for (int i = 0; i < GBX_SANITIZER_COUNT; ++i)
        if (sanitizers & 1u << i)
            errands[count++] = (errand){.session = session,
                                        .task = task,
                                        .sanitizer = (gbx_sanitizer)i,
                                        .gate = &gate,
                                        .call_fd = -1,
                                        .plan_fd = -1};
    run_errands(errands, count);
    gbx_status status = NULL;
    for (size_t i = 0; i < count && !status; ++i)
        status = excuse(report_errand(&errands[i], report), &report->asked[errands[i].sanitizer]);
    for (size_t i = 0; i < count; ++i)
        free_errand(&errands[i]);
    free(errands);
    return status;
}

gbx_status gbx_sanitize_task(gbx_replay_session *session, const gbx_replay_task *task,
                             unsigned sanitizers, gbx_sanitize_report *out_report) {
    gbx_status status = gbx_replay_session_check_dispatch(session, task);
    *out_report = (gbx_sanitize_report){.raw = strdup("")};
    if (!status)
        status = gbx_replay_kernels_check(session->kernels, task);
    if (!status && !out_report->raw)
        status = gbx_fail_memory("running kernels under a sanitizer");
    if (!status)
        status = gbx_sanitize_cache_open(session);
    if (!status)
        status = ask(session, task, sanitizers, out_report);
    if (status)
        gbx_sanitize_report_free(out_report);
    return status;
}

void gbx_sanitize_report_free(gbx_sanitize_report *report) {
    for (int i = 0; i < GBX_SANITIZER_COUNT; ++i)
        free(report->asked[i].why_not);
    free(report->findings);
    free(report->raw);
    *report = (gbx_sanitize_report){0};
}
