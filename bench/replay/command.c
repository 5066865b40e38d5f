/* Other programs: how long they take, and how much memory. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "replay.h"

void begin_child(void) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

bool wait_for(int pid, int *out_status, struct rusage *out_usage) {
    bool is_ended = false;
    while (wait4(pid, out_status, 0, out_usage) != pid) {
        if (errno != EINTR)
            return false;
        kill(pid, SIGKILL);
        is_ended = true;
    }
    return !is_ended;
}

static void become(const char *const *arguments) {
    begin_child();
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(126);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "bench_replay: cannot run %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

static bool report_end(const char *const *arguments, int status) {
    fprintf(stderr, "bench_replay: ended by %s %d:", WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    for (; *arguments; ++arguments)
        fprintf(stderr, " %s", *arguments);
    fputc('\n', stderr);
    return false;
}

static bool run_program(const char *const *arguments, outcome *out_outcome) {
    struct rusage usage;
    int status = 0;
    fflush(stdout); /* else the child would print it, too */
    malloc_trim(0); /* memory of this process at the fork counts for the child */
    int64_t start_ns = gbx_clock_ns();
    pid_t pid = fork();
    if (pid == 0)
        become(arguments);
    if (pid < 0 || !wait_for(pid, &status, &usage))
        return false;
    out_outcome->seconds = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    out_outcome->peak_mib = (double)usage.ru_maxrss / 1024;
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return is_good || report_end(arguments, status);
}

bool measure_program(const char *const *arguments, unsigned rounds, outcome *out_outcome) {
    double seconds[MAX_ROUNDS];
    *out_outcome = (outcome){0};
    for (unsigned i = 0; i < rounds; ++i) {
        outcome one;
        if (!run_program(arguments, &one))
            return false;
        seconds[i] = one.seconds;
        if (one.peak_mib > out_outcome->peak_mib)
            out_outcome->peak_mib = one.peak_mib;
    }
    out_outcome->seconds = median(seconds, rounds);
    return true;
}
