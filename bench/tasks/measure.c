/* Measuring in a process of its own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tasks.h"

static int compare(const void *a, const void *b) {
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

double median(double *times_ns, uint32_t count) {
    qsort(times_ns, count, sizeof *times_ns, compare);
    uint32_t middle = count / 2;
    return times_ns[middle];
}

/* True when the process has ended with exit code 0. */
static bool wait_for(pid_t pid) {
    int status;
    if (waitpid(pid, &status, 0) != pid)
        return false;
    if (WIFSIGNALED(status))
        fprintf(stderr, "bench_tasks: a measurement was killed by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool measure_apart(measure_function measure, const setting *how, const workload *work,
                   timing *out_timing) {
    timing *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("bench_tasks: mmap");
        return false;
    }
    fflush(stdout); /* else the child would print it, too */
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(measure(how, work, shared) ? 0 : 1);
    }
    if (pid < 0)
        perror("bench_tasks: fork");
    bool is_done = pid > 0 && wait_for(pid);
    *out_timing = *shared;
    munmap(shared, sizeof *shared);
    return is_done;
}
