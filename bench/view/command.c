/* Other programs: how long they take, and how much memory. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "view.h"

enum { LOADS = 3 }; /* of a manifest by Python, at most */

static void become(const char *const *arguments, const char *output) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(126);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "bench_view: cannot run %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

/* Ends the child when this process must end. */
static bool wait_for(pid_t pid, int *out_status, struct rusage *out_usage) {
    bool is_ended = false;
    while (wait4(pid, out_status, 0, out_usage) != pid) {
        if (errno != EINTR)
            return false;
        kill(pid, SIGKILL);
        is_ended = true;
    }
    return !is_ended;
}

static bool report_end(const char *const *arguments, int status) {
    fprintf(stderr, "bench_view: ended by %s %d:", WIFSIGNALED(status) ? "signal" : "exit code",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    for (; *arguments; ++arguments)
        fprintf(stderr, " %s", *arguments);
    fputc('\n', stderr);
    return false;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

bool run_program(const char *const *arguments, const char *output, outcome *out_outcome) {
    struct rusage usage;
    int status = 0;
    fflush(stdout); /* else the child would print it, too */
    malloc_trim(0); /* memory of this process at the fork counts for the child */
    int64_t start_ns = gbx_clock_ns();
    pid_t pid = fork();
    if (pid == 0)
        become(arguments, output);
    if (pid < 0 || !wait_for(pid, &status, &usage))
        return false;
    out_outcome->seconds = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    out_outcome->processor_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    out_outcome->peak_mib = (double)usage.ru_maxrss / 1024;
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return is_good || report_end(arguments, status);
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, unsigned count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

bool measure_program(const setting *how, const char *const *arguments, const char *output,
                     outcome *out_outcome) {
    double seconds[MAX_REPEATS], processor_s[MAX_REPEATS];
    *out_outcome = (outcome){0};
    for (unsigned i = 0; i < how->repeats; ++i) {
        outcome one;
        if (!run_program(arguments, output, &one))
            return false;
        seconds[i] = one.seconds;
        processor_s[i] = one.processor_s;
        if (one.peak_mib > out_outcome->peak_mib)
            out_outcome->peak_mib = one.peak_mib;
    }
    out_outcome->seconds = median(seconds, how->repeats);
    out_outcome->processor_s = median(processor_s, how->repeats);
    return true;
}

bool measure_view(const setting *how, const char *directory, const char *const *options,
                  const char *output, outcome *out_outcome) {
    const char *arguments[MAX_OPTIONS + 4] = {how->command, "view", directory};
    for (size_t i = 0; i < MAX_OPTIONS && options[i]; ++i)
        arguments[3 + i] = options[i];
    return measure_program(how, arguments, output, out_outcome);
}

char *read_file(const char *path) {
    FILE *file = fopen(path, "rbe");
    char *text = NULL;
    size_t room = 0;
    ssize_t length = file ? getdelim(&text, &room, '\0', file) : -1;
    if (file)
        fclose(file);
    if (length >= 0)
        return text;
    fprintf(stderr, "bench_view: cannot read %s, or it is empty\n", path);
    free(text);
    return NULL;
}

static bool load_once(const char *path, const char *output, double *out_seconds,
                      double *out_processor_s) {
    static const char script[] = "import json, os, sys, time\n"
                                 "start, used = time.perf_counter(), time.process_time()\n"
                                 "with open(sys.argv[1]) as file:\n"
                                 "    document = json.load(file)\n"
                                 "print(time.perf_counter() - start, time.process_time() - used)\n"
                                 "sys.stdout.flush()\n"
                                 "os._exit(0 if len(document['tensors']) > 0 else 1)\n";
    const char *const arguments[] = {"/usr/bin/python3", "-c", script, path, NULL};
    outcome ignored;
    if (!run_program(arguments, output, &ignored))
        return false;
    char *text = read_file(output);
    char *end = NULL;
    *out_seconds = text ? strtod(text, &end) : 0;
    *out_processor_s = text ? strtod(end, NULL) : 0;
    free(text);
    return *out_seconds > 0;
}

bool measure_json_load(const setting *how, const char *path, outcome *out_outcome) {
    double seconds[LOADS], processor_s[LOADS];
    unsigned loads = how->repeats < LOADS ? how->repeats : LOADS;
    char output[PATH_BYTES];
    set_path(how, "seconds", output);
    for (unsigned i = 0; i < loads; ++i)
        if (!load_once(path, output, &seconds[i], &processor_s[i]))
            return false;
    *out_outcome =
        (outcome){.seconds = median(seconds, loads), .processor_s = median(processor_s, loads)};
    return true;
}
