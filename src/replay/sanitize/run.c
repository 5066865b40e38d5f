#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/process.h"
#include "replay/sanitize/internal.h"

enum { MAX_TEXT_BYTES = 8 << 20, END_TEXT_BYTES = 1 << 20, OPTION_BYTES = 8192 };

/* --- options of the runtimes --- */

/* Their variables, and what only they know. In a loop, the memory sanitizer remembers each line a
 * few times as a store of an uninitialised value, so that there is room for those after the loop.
 * Kernels are several objects whose globals may have the same names. */
static const struct {
    const char *variable;
    const char *own;
} runtimes[] = {{"ASAN_OPTIONS", "detect_odr_violation=0"},
                {"UBSAN_OPTIONS", "print_stacktrace=1"},
                {"MSAN_OPTIONS", "origin_history_size=7:origin_history_per_stack_limit=2"},
                {"TSAN_OPTIONS", "report_thread_leaks=0:report_signal_unsafe=0:history_size=7"}};
enum { VARIABLE_COUNT = sizeof runtimes / sizeof runtimes[0] };

/* What all know; frames in the form that reports.c reads. Leaks are those of the program. */
static const char options[] =
    "%s=%s:halt_on_error=0:exitcode=0:detect_leaks=0:handle_segv=1:handle_abort=1:handle_sigill=1:"
    "handle_sigfpe=1:color=never:verify_asan_link_order=0:allow_addr2line=1:%s%s%s"
    "stack_trace_format=\"    #%%n %%p in %%f %%s:%%l:%%c (%%m+%%o)\"";

typedef struct environment {
    char **items; /* last NULL */
    char texts[VARIABLE_COUNT][OPTION_BYTES];
} environment;

/* Options of the user would change the reports. */
static bool is_kept(const char *entry) {
    size_t length = strcspn(entry, "=");
    const char *const ends[] = {"SAN_OPTIONS", "SAN_SYMBOLIZER_PATH"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; ++i)
        if (length >= strlen(ends[i]) &&
            strncmp(entry + length - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return false;
    return strncmp(entry, "LD_PRELOAD=", 11) != 0;
}

static bool make_environment(const char *symbolizer, environment *made) {
    size_t count = 0;
    for (char **at = environ; *at; ++at)
        ++count;
    made->items = calloc(count + VARIABLE_COUNT + 1, sizeof *made->items);
    if (!made->items)
        return false;
    count = 0;
    for (char **at = environ; *at; ++at)
        if (is_kept(*at))
            made->items[count++] = *at;
    for (size_t i = 0; i < VARIABLE_COUNT; ++i) {
        snprintf(made->texts[i], OPTION_BYTES, options, runtimes[i].variable, runtimes[i].own,
                 symbolizer ? "external_symbolizer_path=" : "", symbolizer ? symbolizer : "",
                 symbolizer ? ":" : "");
        made->items[count++] = made->texts[i];
    }
    return true;
}

/* --- the process --- */

/* Runtimes expect some addresses to be free: without random addresses they are. */
static int spawn_at_fixed_addresses(const gbx_spawn_order *order, pid_t *out_pid) {
    int before = personality(0xffffffff);
    if (before >= 0)
        personality((unsigned long)before | ADDR_NO_RANDOMIZE);
    int error = gbx_spawn(order, out_pid);
    if (before >= 0)
        personality((unsigned long)before);
    return error;
}

/* Its group: kernels may have started processes. */
static void await(pid_t pid, uint32_t timeout_ms, gbx_sanitize_run *out_run) {
    int ended = 0;
    int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd watched = {.fd = handle, .events = POLLIN};
    out_run->is_late = handle >= 0 && gbx_poll(&watched, 1, (int64_t)timeout_ms * 1000000) == 0;
    if (handle < 0 || out_run->is_late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    kill(-pid, SIGKILL);
    if (handle >= 0)
        close(handle);
    out_run->exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    out_run->signal = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
}

/* Of very much, the beginning and the end. */
static gbx_status read_text(int fd, gbx_sanitize_run *out_run) {
    off_t end = lseek(fd, 0, SEEK_END);
    size_t size = end < 0 ? 0 : (size_t)end, first = size, last = 0;
    size_t first_count = 0, last_count = 0;
    if (size > MAX_TEXT_BYTES) {
        last = END_TEXT_BYTES;
        first = MAX_TEXT_BYTES - last;
        out_run->left_out_bytes = size - MAX_TEXT_BYTES;
    }
    out_run->text = malloc(first + last + 2);
    if (!out_run->text)
        return gbx_fail_memory("reading the reports of a sanitizer");
    char *at = out_run->text;
    int error = gbx_pread_all(fd, at, first, 0, &first_count);
    at += first_count;
    if (last > 0)
        *at++ = '\n';
    if (last > 0 && !error)
        error = gbx_pread_all(fd, at, last, size - last, &last_count);
    at[last_count] = '\0';
    for (char *byte = out_run->text; byte < at + last_count; ++byte)
        if (*byte == '\0')
            *byte = ' ';
    return error ? gbx_fail(GBX_IO, "reading the reports of a sanitizer: %s", strerror(error))
                 : NULL;
}

gbx_status gbx_sanitize_start(const gbx_sanitize_built *built, int call_fd, int plan_fd,
                              uint32_t timeout_ms, gbx_sanitize_run *out_run) {
    char call[32], plan[32], limit[16];
    timeout_ms = timeout_ms ? timeout_ms : GBX_SANITIZE_TIMEOUT_MS;
    snprintf(call, sizeof call, "/proc/self/fd/%d", GBX_SPAWN_FIRST_FD);
    snprintf(plan, sizeof plan, "/proc/self/fd/%d", GBX_SPAWN_FIRST_FD + 1);
    snprintf(limit, sizeof limit, "%" PRIu32, timeout_ms);
    char *words[] = {(char *)(uintptr_t)built->program, call, plan, limit, NULL};
    const int descriptors[] = {call_fd, plan_fd};
    pid_t pid;
    *out_run = (gbx_sanitize_run){0};
    int text_fd = gbx_above_standard_streams(memfd_create("glassbox-sanitize", MFD_CLOEXEC));
    if (text_fd < 0)
        return gbx_fail(GBX_IO, "running kernels under a sanitizer: %s", strerror(errno));
    environment *made = calloc(1, sizeof *made);
    if (!made || !make_environment(built->symbolizer, made)) {
        free(made);
        close(text_fd);
        return gbx_fail_memory("running kernels under a sanitizer");
    }
    const gbx_spawn_order order = {.path = built->program,
                                   .arguments = words,
                                   .descriptors = descriptors,
                                   .descriptor_count = 2,
                                   .is_output_ours = true,
                                   .error_fd = &text_fd,
                                   .environment = made->items};
    int error = spawn_at_fixed_addresses(&order, &pid);
    if (!error)
        await(pid, timeout_ms, out_run);
    gbx_status status = error ? gbx_fail(GBX_IO, "starting %s: %s", built->program, strerror(error))
                              : read_text(text_fd, out_run);
    free(made->items);
    free(made);
    close(text_fd);
    return status;
}
