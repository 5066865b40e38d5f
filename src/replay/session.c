#include "replay/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/held_signals.h"
#include "base/memory.h"
#include "base/program_path.h"
#include "replay/internal.h"
#include "replay/sanitize/sanitize.h"
#include "text/plain_text.h"

/* --- opening --- */

gbx_status gbx_replay_read_kept(const char *directory, gbx_kept_run **out_kept) {
    *out_kept = NULL;
    gbx_status status = gbx_kept_run_read(directory, out_kept);
    if (gbx_status_code(status) != GBX_NOT_FOUND)
        return status;
    gbx_status_free(status);
    return NULL;
}

gbx_status gbx_replay_session_open(const gbx_replay_session_config *config,
                                   gbx_replay_session *out_session) {
    gbx_replay_session *s = out_session;
    *s = (gbx_replay_session){
        .config = *config,
        .reader = gbx_entries_reader(config->entries),
        .memory = {.entries = config->entries, .directory = config->directory}};
    s->run_end = gbx_reader_has_ended_well(s->reader) ? "" : gbx_reader_end_text(s->reader);
    GBX_TRY(gbx_replay_read_kept(config->directory, &s->kept));
    GBX_TRY(gbx_replay_kernels_create(config->directory, s->kept, config->is_trusted,
                                      &s->config.kernels, &s->kernels));
    gbx_replay_engine_config engine = {.payload_path =
                                           gbx_reader_get_origin(s->reader)->payload_path,
                                       .timeout_ms = config->timeout_ms,
                                       .jobs = config->jobs,
                                       .is_silent = config->is_silent,
                                       .chip_blocks = s->kept ? s->kept->blocks : 0,
                                       .gm_bytes = s->kept ? s->kept->gm_bytes : 0};
    return gbx_replay_engine_open(&engine, &s->engine);
}

void gbx_replay_session_close(gbx_replay_session *session) {
    gbx_sanitize_cache_free(session->sanitized);
    gbx_replay_engine_close(session->engine);
    gbx_replay_memory_free(&session->memory);
    gbx_replay_kernels_destroy(session->kernels);
    gbx_kept_run_free(session->kept);
    *session = (gbx_replay_session){0};
}

/* --- which tasks --- */

/* The first task from `from` on; UINT64_MAX if there is none. */
static gbx_status next_task(const gbx_replay_session *s, uint64_t from, uint64_t *out_task) {
    uint64_t position = gbx_reader_find(s->reader, from);
    const gbx_record *record;
    *out_task = UINT64_MAX;
    if (position >= gbx_reader_count(s->reader))
        return NULL;
    GBX_TRY(gbx_reader_at(s->reader, position, &record));
    *out_task = record->task;
    return NULL;
}

gbx_status gbx_replay_session_find_id(const gbx_replay_session *session, uint64_t id,
                                      uint64_t *out_task) {
    uint64_t found_count = 0;
    for (uint64_t task = 0, from = 0;; from = task + 1) {
        gbx_record_task about;
        bool is_there;
        GBX_TRY(next_task(session, from, &task));
        if (task == UINT64_MAX)
            break;
        GBX_TRY(gbx_reader_find_task(session->reader, task, &about, &is_there));
        if (is_there && about.task_id == id && found_count++ == 0)
            *out_task = task;
    }
    if (found_count == 1)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE, "the dump has %s with this id; see glassbox view",
                    found_count ? "several tasks" : "no task");
}

/* --- one task --- */

gbx_status gbx_replay_session_check_dispatch(const gbx_replay_session *session,
                                             const gbx_replay_task *task) {
    if (session->config.dispatch < (int64_t)task->dispatch_count)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--dispatch %" PRId64 ": the last dispatch of this task is %" PRIu32,
                    session->config.dispatch, task->dispatch_count - 1);
}

gbx_status gbx_replay_session_job(gbx_replay_session *session, const gbx_replay_task *task,
                                  gbx_replay_job *out_job) {
    const gbx_replay_session_config *config = &session->config;
    *out_job = (gbx_replay_job){
        .engine = session->engine,
        .entries = config->entries,
        .memory = &session->memory,
        .request = {.task = task, .dispatch = config->dispatch, .runs = config->runs},
        .run_end = session->run_end};
    GBX_TRY(gbx_replay_session_check_dispatch(session, task));
    return gbx_replay_kernels_find(session->kernels, task, out_job->request.objects);
}

/* --- several tasks --- */

/* Consumes the status. The task may have been read only in part. */
static void refuse(const gbx_replay_task *task, gbx_status status, gbx_replay_result *result) {
    *result = (gbx_replay_result){.verdict = GBX_REPLAY_REFUSED,
                                  .task = task->task,
                                  .task_id = task->task_id,
                                  .order = GBX_ORDER_NOT_ASKED,
                                  .stray_argument = -1,
                                  .dispatch = -1};
    gbx_replay_result_name(result, task);
    result->refusal.code = gbx_status_code(status);
    result->refusal.lack = task->lack;
    result->refusal.reason = strdup(gbx_status_message(status));
    status = gbx_replay_task_explain(task, status, true);
    result->refusal.sentence = strdup(gbx_status_message(status));
    gbx_status_free(status);
}

/* A task that is asked about, or its refusal. */
typedef struct asked {
    gbx_replay_task task;
    gbx_replay_job job;
    gbx_status refusal;
} asked;

/* All that are asked about, in order: a ring. */
enum { MAX_ASKED = 1024 };

typedef struct asking {
    gbx_replay_session *session;
    gbx_replay_on_result on_result;
    void *context;
    asked *items[MAX_ASKED];
    uint32_t first;
    uint32_t count;
} asking;

static void free_asked(asked *one) {
    gbx_replay_task_free(&one->task);
    gbx_status_free(one->refusal);
    free(one);
}

/* The task stays with the session until its outcome is taken. */
static gbx_status ask(asking *a, uint64_t number) {
    asked *one = calloc(1, sizeof *one);
    if (!one)
        return gbx_fail_memory("replaying tasks");
    a->items[(a->first + a->count++) % MAX_ASKED] = one;
    one->refusal = gbx_replay_task_read(a->session->config.entries, number, &one->task);
    if (!one->refusal)
        one->refusal = gbx_replay_session_job(a->session, &one->task, &one->job);
    if (!one->refusal) {
        gbx_status status = gbx_replay_submit(a->session->engine, &one->job.request);
        if (status && !gbx_replay_is_of_task(status))
            return status;
        one->refusal = status;
    }
    return NULL;
}

static gbx_status hand_over(asking *a, asked *one, gbx_replay_taken *taken) {
    gbx_replay_result result = {0};
    gbx_status refusal = one->refusal ? one->refusal : taken->status;
    gbx_status status = NULL;
    one->refusal = NULL;
    if (refusal)
        refuse(&one->task, refusal, &result);
    else
        status = gbx_replay_result_make(&one->job, &taken->outcome, &result);
    gbx_replay_outcome_free(&taken->outcome);
    if (!status)
        status = a->on_result(a->context, &result);
    gbx_replay_result_free(&result);
    return status;
}

/* Hands over what is done; waits for the first task if there is no room for more. */
static gbx_status collect(asking *a, bool waits) {
    while (a->count > 0) {
        asked *one = a->items[a->first];
        gbx_replay_taken taken = {0};
        bool is_there = one->refusal != NULL;
        if (!is_there)
            GBX_TRY(gbx_replay_take(a->session->engine, waits, &taken, &is_there));
        if (!is_there)
            return NULL;
        if (taken.status && !gbx_replay_is_of_task(taken.status)) {
            gbx_replay_outcome_free(&taken.outcome);
            return taken.status;
        }
        a->first = (a->first + 1) % MAX_ASKED;
        a->count--;
        gbx_status status = hand_over(a, one, &taken);
        free_asked(one);
        GBX_TRY(status);
        waits &= a->count == MAX_ASKED; /* one place is enough */
    }
    return NULL;
}

static gbx_status ask_all(asking *a, uint64_t first, uint64_t last, bool *out_is_any) {
    *out_is_any = false;
    for (uint64_t number, from = first; from <= last; from = number + 1) {
        GBX_TRY(next_task(a->session, from, &number));
        if (number > last || number == UINT64_MAX)
            break;
        *out_is_any = true;
        GBX_TRY(ask(a, number));
        GBX_TRY(collect(a, a->count == MAX_ASKED));
    }
    while (a->count > 0)
        GBX_TRY(collect(a, true));
    return NULL;
}

gbx_status gbx_replay_session_run(gbx_replay_session *session, uint64_t first, uint64_t last,
                                  gbx_replay_on_result on_result, void *context) {
    asking *a = calloc(1, sizeof *a);
    bool is_any;
    if (!a)
        return gbx_fail_memory("replaying tasks");
    a->session = session;
    a->on_result = on_result;
    a->context = context;
    gbx_status status = ask_all(a, first, last, &is_any);
    for (; a->count > 0; --a->count, a->first = (a->first + 1) % MAX_ASKED)
        free_asked(a->items[a->first]);
    free(a);
    if (!status && !is_any)
        status = gbx_fail(GBX_OUT_OF_RANGE, "the dump has none of these tasks");
    return status;
}

/* --- under a debugger --- */

enum { MAX_WORDS = 48, COMMAND_BYTES = 2 * PATH_MAX + 64 };

/* The command line of gdb. */
typedef struct command {
    char *words[MAX_WORDS];
    size_t count;
    char texts[GBX_SUBTASK_COUNT][COMMAND_BYTES]; /* that locate sources */
    size_t text_count;
    char directory[PATH_MAX]; /* of the temporary file */
    char file[PATH_MAX + 16];
    char program[PATH_MAX];
} command;

static void add(command *line, const char *word) {
    if (line->count + 1 < MAX_WORDS)
        line->words[line->count++] = (char *)(uintptr_t)word;
}

static void add_command(command *line, const char *text) {
    add(line, "-ex");
    add(line, text);
}

/* --- sources --- */

/* Whether a path can be quoted in a gdb command. */
static bool is_quotable(const char *path) {
    return gbx_text_is_plain(path) && !strpbrk(path, "\"'\\");
}

/* Removes the trailing parts that both paths share: included files nearby are then found, too. */
static void strip_common(char *from, char *to) {
    for (;;) {
        char *left = strrchr(from, '/'), *right = strrchr(to, '/');
        if (!left || !right || left == from || right == to || strcmp(left, right) != 0)
            return;
        *left = '\0';
        *right = '\0';
    }
}

static void add_source(command *line, const gbx_kept_kernel *kernel) {
    char to[PATH_MAX];
    if (!kernel || !kernel->origin || !kernel->source || access(kernel->origin, R_OK) == 0 ||
        !realpath(kernel->source, to) || !is_quotable(kernel->origin) || !is_quotable(to))
        return;
    char *from = strdup(kernel->origin);
    if (!from)
        return;
    strip_common(from, to);
    char *text = line->texts[line->text_count];
    if (snprintf(text, COMMAND_BYTES, "set substitute-path \"%s\" \"%s\"", from, to) <
        COMMAND_BYTES) {
        add_command(line, text);
        line->text_count++;
    }
    free(from);
}

/* --- the temporary file --- */

static gbx_status make_file(const gbx_replay_job *job, command *line) {
    const char *parent = getenv("TMPDIR");
    snprintf(line->directory, sizeof line->directory, "%s/glassbox-replay-XXXXXX",
             parent && parent[0] == '/' ? parent : "/tmp");
    if (!mkdtemp(line->directory)) {
        int error = errno;
        gbx_status status =
            gbx_fail(GBX_IO, "creating directory %s for gdb: %s", line->directory, strerror(error));
        line->directory[0] = '\0';
        return status;
    }
    snprintf(line->file, sizeof line->file, "%s/call", line->directory);
    return gbx_replay_write_call(job->engine, &job->request, line->file);
}

/* --- gdb itself --- */

static gbx_status run(command *line, const gbx_held_signals *signals, int *out_exit_code) {
    pid_t pid;
    int ended = 0;
    fflush(stdout);
    /* Ctrl-C reaches all processes of the terminal, and must interrupt only gdb's program. */
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &signals->before);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(&pid, "gdb", NULL, &attributes, line->words, environ);
    posix_spawnattr_destroy(&attributes);
    if (error == ENOENT)
        return gbx_fail(GBX_NOT_FOUND,
                        "starting gdb: not found on PATH; install it (apt install gdb)");
    if (error)
        return gbx_fail(GBX_IO, "starting gdb: %s", strerror(error));
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    *out_exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    return NULL;
}

static gbx_status make_and_run(const gbx_replay_job *job, const gbx_kept_run *kept, command *line,
                               const gbx_held_signals *signals, int *out_exit_code) {
    const gbx_program_path_query name = {
        .program = "glassbox-call", .variable = "GLASSBOX_CALL", .doing = "starting gdb"};
    GBX_TRY(gbx_program_path_find(&name, line->program));
    GBX_TRY(make_file(job, line));
    add(line, "gdb");
    add(line, "-q");
    for (size_t i = 0; kept && i < GBX_SUBTASK_COUNT; ++i)
        if (job->request.task->func_ids[i] != UINT32_MAX)
            add_source(line, gbx_kept_run_kernel(kept, job->request.task->func_ids[i]));
    add_command(line, "set breakpoint pending on");
    add_command(line, "set print thread-events off");
    add_command(line, "break kernel_entry");
    add_command(line, "run");
    /* gdb may stop at an inlined line of a header: this shows the kernel's own file. */
    add_command(line, "info functions -q -n ^kernel_entry$");
    add(line, "--args");
    add(line, line->program);
    add(line, line->file);
    line->words[line->count] = NULL;
    return run(line, signals, out_exit_code);
}

gbx_status gbx_replay_gdb(const gbx_replay_job *job, const gbx_kept_run *kept, int *out_exit_code) {
    gbx_held_signals signals;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    command *line = calloc(1, sizeof *line);
    if (!line)
        return gbx_fail_memory("starting gdb");
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    gbx_signals_hold(&signals);
    gbx_status status = make_and_run(job, kept, line, &signals, out_exit_code);
    if (line->file[0])
        unlink(line->file);
    if (line->directory[0])
        rmdir(line->directory);
    gbx_signals_release(&signals);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    free(line);
    return status;
}
