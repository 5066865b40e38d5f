#include "replay/session.h"

#include <errno.h>
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
#include "text/plain_text.h"

enum { MAX_WORDS = 48, COMMAND_BYTES = 2 * PATH_MAX + 64 };

/* The command line of gdb. */
typedef struct command {
    char *words[MAX_WORDS];
    size_t count;
    char texts[GBX_SUBTASK_COUNT][COMMAND_BYTES]; /* where sources are */
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

/* Can stand between quotes in a command of gdb. */
static bool is_quotable(const char *path) {
    return gbx_text_is_plain(path) && !strpbrk(path, "\"'\\");
}

/* Takes the parts at the end away that are the same in both, as long as the names are: what
 * includes lie beside is then found, too. */
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
        gbx_status status = gbx_fail(GBX_IO, "making the directory %s for gdb: %s", line->directory,
                                     strerror(error));
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
    /* Ctrl-C is gdb's: it goes to all that runs on the terminal. */
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
                        "starting gdb: it is not on PATH; install it (apt install gdb)");
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
    /* The line it stops at may be an inlined one of a header: this tells the kernel's own. */
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
