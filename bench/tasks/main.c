/*
 * The cost of a task that does nothing: glassbox compared with OpenMP and StarPU on the same
 * graphs, and whether time and memory stay the same as the number of tasks grows. Times are
 * printed, not judged: the exit code only says whether everything ran. usage: bench_tasks [--quick]
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks.h"

enum { PEERS = 2, GRAPHS = 3, RING = 4096, MAX_SIZES = 3 };

/* What to run: everything, or a quick check that it runs. */
typedef struct plan {
    uint64_t tasks;
    uint32_t repeats;
    uint64_t sizes[MAX_SIZES]; /* of the growth table; 0 past the last */
} plan;

static const plan whole = {100000, 5, {100000, 1000000, 10000000}};
static const plan quick = {10000, 1, {10000, 100000}};

typedef struct peer {
    const char *name;
    measure_function measure; /* NULL: was missing when this was built */
    double targets[GRAPHS];   /* how many times faster glassbox should be */
} peer;

static const peer peers[PEERS] = {
#ifdef GBX_BENCH_OPENMP
    {"OpenMP", measure_openmp, {0.4, 1.0, 1.0}},
#else
    {"OpenMP", NULL, {0.4, 1.0, 1.0}},
#endif
#ifdef GBX_BENCH_STARPU
    {"StarPU", measure_starpu, {4.0, 4.0, 4.0}},
#else
    {"StarPU", NULL, {4.0, 4.0, 4.0}},
#endif
};

static bool print_peer(const peer *other, double target, const setting *how, const workload *work,
                       double own_ns) {
    timing its;
    if (!other->measure) {
        printf("  %32s", GBX_BENCH_MISSING);
        return true;
    }
    if (!measure_apart(other->measure, how, work, &its)) {
        printf("  %32s", "failed");
        return false;
    }
    double ratio = its.run_ns / own_ns;
    printf("  %9.1f %7.2f %6.2f %7s", its.run_ns / (double)work->tasks, ratio, target,
           ratio >= target ? "ok" : "below");
    return true;
}

/* False when anything failed to run; the row says what. */
static bool print_graph(const setting *how, const workload *work, int graph) {
    timing own;
    printf("%-12s", work->name);
    if (!measure_apart(measure_glassbox, how, work, &own)) {
        printf(" %20s\n", "failed");
        return false;
    }
    double tasks = (double)work->tasks;
    printf(" %9.1f %10.1f", own.run_ns / tasks, own.host_ns / tasks);
    bool is_right = true;
    for (int i = 0; i < PEERS; ++i)
        is_right &= print_peer(&peers[i], peers[i].targets[graph], how, work, own.run_ns);
    printf("\n");
    return is_right;
}

static bool print_graphs(const plan *what, const setting *how) {
    workload graphs[GRAPHS] = {workload_independent(what->tasks), workload_chain(what->tasks),
                               workload_dag("random DAG", what->tasks, (uint32_t)what->tasks)};
    printf("ns a task that does nothing: graphs of %llu tasks, median of %u, %ld CPUs; x: how many "
           "times faster glassbox is\n",
           (unsigned long long)what->tasks, what->repeats, sysconf(_SC_NPROCESSORS_ONLN));
    printf("%-12s %9s %10s", "graph", "glassbox", "with host");
    for (int i = 0; i < PEERS; ++i)
        printf("%*s %7s %6s", i == 0 ? 11 : 19, peers[i].name, "x", "target");
    printf("\n");
    bool is_right = true;
    for (int i = 0; i < GRAPHS; ++i) {
        is_right &= print_graph(how, &graphs[i], i);
        workload_free(&graphs[i]);
    }
    return is_right;
}

static bool print_growth(const plan *what, const setting *how) {
    printf("\ngrowth: two inputs a task, %d tensors used in turn, default window, median of %u; "
           "ratios to the first row\n"
           "%-12s %9s %7s %14s %7s\n",
           RING, how->repeats, "tasks", "ns a task", "ratio", "chip peak MiB", "ratio");
    double first_ns = 0;
    double first_mib = 0;
    for (int i = 0; i < MAX_SIZES && what->sizes[i]; ++i) {
        timing own;
        workload work = workload_dag("growth", what->sizes[i], RING);
        bool is_right = measure_apart(measure_glassbox, how, &work, &own);
        workload_free(&work);
        printf("%-12llu", (unsigned long long)what->sizes[i]);
        if (!is_right) {
            printf(" %9s\n", "failed");
            return false;
        }
        double task_ns = own.run_ns / (double)what->sizes[i];
        double mib = (double)own.peak_bytes / (1 << 20);
        first_ns = i == 0 ? task_ns : first_ns;
        first_mib = i == 0 ? mib : first_mib;
        printf(" %9.1f %7.2f %14.1f %7.2f\n", task_ns, task_ns / first_ns, mib, mib / first_mib);
    }
    return true;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

int main(int argc, char **argv) {
    bool is_quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !is_quick) {
        fprintf(stderr, "usage: bench_tasks [--quick]\n");
        return 2;
    }
    const plan *what = is_quick ? &quick : &whole;
    char scratch[] = "/tmp/glassbox-bench-tasks-XXXXXX";
    if (!mkdtemp(scratch)) {
        perror("bench_tasks: cannot create a directory in /tmp");
        return 2;
    }
    setting how = {.repeats = what->repeats, .scratch = scratch};
    bool is_right = print_graphs(what, &how);
    how.repeats = (what->repeats + 1) / 2;
    is_right &= print_growth(what, &how);
    nftw(scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return is_right ? 0 : 2;
}
