/*
 * What the hooks of the scheduler cost without a dump: instructions per task of the same graph,
 * with a scheduler that has hooks and one that was built without, under valgrind's callgrind. The
 * cost of a task is the difference between a graph and one of twice as many tasks, so that what
 * happens once does not count. One processor, one AICPU thread: the graph of host_build_graph is
 * counted exactly; on the others builder and worker take turns, which moves the count by some
 * instructions per task. usage: bench_hooks
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks.h"

enum {
    TASKS = 8000,
    HOOKS_A_TASK = 4,
    INSTRUCTIONS_A_HOOK = 3,
    PATH_BYTES = 4096,
    NO_PROGRAM = 127
};
#define TURNS 0.5 /* how much taking turns may move the count */

typedef struct place {
    char programs[PATH_BYTES];
    char scratch[64];
} place;

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

/* The exit code; -1 when a signal killed it. */
static int run(char *const *arguments) {
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(arguments[0], arguments);
        _exit(errno == ENOENT ? NO_PROGRAM : 126);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_valgrind(void) {
    char *arguments[] = {"sh", "-c", "command -v valgrind >/dev/null", NULL};
    return run(arguments) == 0;
}

/* One run under callgrind; `dump` is a directory for one, or NULL. */
static bool count(const place *where, const char *program, const char *runtime, const char *graph,
                  int tasks, char *dump, counts *out_counts) {
    char path[128], out[160], number[16], executable[PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/counts", where->scratch);
    snprintf(out, sizeof out, "--callgrind-out-file=%s", path);
    snprintf(number, sizeof number, "%d", tasks);
    snprintf(executable, sizeof executable, "%s/%s", where->programs, program);
    char *arguments[] = {"valgrind",    "-q",       "--tool=callgrind",
                         out,           executable, (char *)runtime,
                         (char *)graph, number,     dump,
                         NULL};
    int code = run(arguments);
    if (code == 0 && counts_read(path, out_counts))
        return true;
    fprintf(stderr, "bench_hooks: valgrind %s %s %s %d failed (%d)\n", program, runtime, graph,
            tasks, code);
    return false;
}

/* Instructions a task. */
typedef struct slope {
    double scheduler;
    double program;
} slope;

static bool measure(const place *where, const char *program, const char *runtime, const char *graph,
                    slope *out_slope) {
    counts once, twice;
    if (!count(where, program, runtime, graph, TASKS, NULL, &once) ||
        !count(where, program, runtime, graph, 2 * TASKS, NULL, &twice))
        return false;
    out_slope->scheduler = (double)(int64_t)(twice.scheduler - once.scheduler) / TASKS;
    out_slope->program = (double)(int64_t)(twice.program - once.program) / TASKS;
    return true;
}

static bool print_graph(const place *where, const char *runtime, const char *graph) {
    slope with, without;
    if (!measure(where, "hooks_with", runtime, graph, &with) ||
        !measure(where, "hooks_without", runtime, graph, &without))
        return false;
    double goal = HOOKS_A_TASK * INSTRUCTIONS_A_HOOK;
    double more = with.scheduler - without.scheduler;
    printf("%-25s %-12s %9.2f %9.2f %7.2f %6.0f  %-6s %9.2f\n", runtime, graph, with.scheduler,
           without.scheduler, more, goal, more <= goal + TURNS ? "ok" : "BELOW",
           with.program - without.program);
    return true;
}

/* Without a dump no probe is made; a run with a dump shows that the count would see one. */
static bool print_memory(const place *where) {
    counts off, none, on;
    char dump[128];
    snprintf(dump, sizeof dump, "%s/dump", where->scratch);
    const char *runtime = "host_build_graph";
    if (!count(where, "hooks_with", runtime, "chain", TASKS, NULL, &off) ||
        !count(where, "hooks_without", runtime, "chain", TASKS, NULL, &none) ||
        !count(where, "hooks_with", runtime, "chain", TASKS, dump, &on))
        return false;
    bool is_nothing = off.attach_calls == 0 && off.mmap_calls == none.mmap_calls;
    bool is_seen = on.attach_calls == 1 && on.mmap_calls > off.mmap_calls;
    printf("calls of attach_writer and mmap: without hooks %llu, %llu; off %llu, %llu: %s "
           "(with a dump %llu, %llu)\n",
           (unsigned long long)none.attach_calls, (unsigned long long)none.mmap_calls,
           (unsigned long long)off.attach_calls, (unsigned long long)off.mmap_calls,
           is_nothing && is_seen ? "ok" : "BELOW", (unsigned long long)on.attach_calls,
           (unsigned long long)on.mmap_calls);
    return true;
}

static bool print_all(const place *where) {
    static const char *const runtimes[] = {"host_build_graph", "aicpu_build_graph",
                                           "tensormap_and_ringbuffer"};
    static const char *const graphs[] = {"chain", "independent"};
    bool is_right = true;
    printf("instructions a task of src/sched, no dump: built with hooks and without, 1 block, 1 "
           "AICPU thread, %d tasks\n%-25s %-12s %9s %9s %7s %6s  %-6s %9s\n",
           TASKS, "runtime", "graph", "hooks", "none", "more", "goal", "", "program");
    for (int r = 0; r < 3; ++r)
        for (int g = 0; g < 2; ++g)
            is_right &= print_graph(where, runtimes[r], graphs[g]);
    return print_memory(where) && is_right;
}

int main(void) {
    place where = {.scratch = "/tmp/glassbox-bench-hooks-XXXXXX"};
    ssize_t length = readlink("/proc/self/exe", where.programs, sizeof where.programs - 1);
    char *slash = length > 0 ? strrchr(where.programs, '/') : NULL;
#ifdef GBX_BENCH_SANITIZED
    printf("hooks without a dump: skipped, valgrind does not run programs with sanitizers\n");
    return 0;
#endif
    if (!has_valgrind()) {
        printf("hooks without a dump: skipped, valgrind is not installed\n");
        return 0;
    }
    if (!slash || !mkdtemp(where.scratch)) {
        perror("bench_hooks: cannot create a directory in /tmp");
        return 2;
    }
    *slash = '\0';
    bool is_right = print_all(&where);
    nftw(where.scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return is_right ? 0 : 2;
}
