/*
 * How fast `glassbox replay`, `check` and `diagnose` are, beside a bare loop over the same tasks.
 * Prints goals, what was reached and whether they are met; the exit code says whether everything
 * ran and the outputs were right.
 */
#include <argp.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"

enum { OPTION_QUICK = 1, OPTION_LOOP, OPTION_GOAL, OPTION_DIRECTORY, OPTION_SCENES };
enum { MAX_DUMPS = 16 };

#define SINGLE_GOAL_S 0.030
#define CHECK_GOAL 1.5   /* times replay, plus the loop with references */
#define DIAGNOSE_GOAL 10 /* times the loop, plus that with references */

static const struct argp_option options[] = {
    {"quick", OPTION_QUICK, NULL, 0, "Everything once", 0},
    {"loop", OPTION_LOOP, NULL, 0, "Only the loop with kernels, not the commands", 0},
    {"goal", OPTION_GOAL, "X", 0, "Goal of replay --task all: X times the loop", 0},
    {"directory", OPTION_DIRECTORY, "DIR", 0, "Where dumps go (default: here)", 0},
    {"scenes", OPTION_SCENES, "DIR", 0, "Where the scenes are (default: examples)", 0},
    {0}};

typedef struct arguments {
    const char *dumps[MAX_DUMPS];
    size_t dump_count;
    const char *directory;
    const char *scenes;
    double goal; /* 0: that of the workload, if it has one */
    bool is_quick;
    bool is_only_loop;
    char command[PATH_BYTES];  /* glassbox, beside this program */
    char work[PATH_BYTES / 2]; /* a temporary directory, removed at the end */
} arguments;

/* A dump that this program makes, and how fast its replay must be. */
typedef struct workload {
    const char *scene;
    const char *case_name;
    double goal; /* times the loop */
} workload;

static const workload workloads[] = {{"paged_attention", "large", 4.5}, {"bgemm", "medium", 6}};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number) {
    is_interrupted = number;
}

static error_t parse(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case OPTION_QUICK:
        a->is_quick = true;
        return 0;
    case OPTION_LOOP:
        a->is_only_loop = true;
        return 0;
    case OPTION_GOAL:
        a->goal = strtod(value, NULL);
        return 0;
    case OPTION_DIRECTORY:
        a->directory = value;
        return 0;
    case OPTION_SCENES:
        a->scenes = value;
        return 0;
    case ARGP_KEY_ARG:
        if (a->dump_count == MAX_DUMPS)
            argp_error(state, "more than %d dumps", MAX_DUMPS);
        a->dumps[a->dump_count++] = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- the table --- */

#define ROW "%-48s %12s %10s %8s %12s  %s\n"

/* What a row compares; `loop_s` and `goal` are 0 if it has none. */
typedef struct row {
    const char *work;
    double measured_s;
    double loop_s;
    double goal;
    bool is_goal_of_ratio; /* `goal` is times the loop, else it is seconds */
} row;

static void set_time(char *text, size_t size, double seconds) {
    if (seconds <= 0)
        text[0] = '\0';
    else if (seconds < 0.1)
        snprintf(text, size, "%.1f ms", seconds * 1e3);
    else
        snprintf(text, size, "%.2f s", seconds);
}

static void set_goal(char *text, size_t size, const row *r) {
    char allowed[32];
    set_time(allowed, sizeof allowed, r->goal);
    if (r->goal <= 0)
        text[0] = '\0';
    else if (r->is_goal_of_ratio)
        snprintf(text, size, "<= %.3g", r->goal);
    else
        snprintf(text, size, "<= %s", allowed);
}

static void print_row(const row *r) {
    char measured[32], loop[32], ratio[32] = "", goal[64];
    double reached = r->is_goal_of_ratio ? r->measured_s / r->loop_s : r->measured_s;
    set_time(measured, sizeof measured, r->measured_s);
    set_time(loop, sizeof loop, r->loop_s);
    set_goal(goal, sizeof goal, r);
    if (r->loop_s > 0)
        snprintf(ratio, sizeof ratio, "%.2f", r->measured_s / r->loop_s);
    printf(ROW, r->work, measured, loop, ratio, goal,
           r->goal <= 0         ? ""
           : reached <= r->goal ? "ok"
                                : "MISSED");
    fflush(stdout);
}

static void print_pace(const char *work, pace of) {
    char best[32];
    char text[64];
    set_time(best, sizeof best, of.best_s);
    snprintf(text, sizeof text, "%s (best %s)", work, best);
    print_row(&(row){.work = text, .measured_s = of.median_s});
}

static void print_loop(const loop_figures *loop) {
    printf("%s %s: %" PRIu64 " tasks, %" PRIu64 " calls, %.2f GB to restore, %u processes\n",
           loop->scene, loop->case_name, loop->task_count, loop->call_count,
           (double)loop->restored_bytes * 1e-9, loop->processes);
    printf(ROW, "work", "measured", "loop", "ratio", "goal", "verdict");
    print_pace("loop", loop->loop);
    print_pace("loop, calls alone", loop->calls);
    if (loop->has_references)
        print_pace("loop of references", loop->references);
}

/* The loop is only a limit if it computes what the run did. */
static bool print_outputs(const loop_figures *loop) {
    bool is_right = loop->output_count > 0 && loop->different_count == 0;
    char counts[64];
    snprintf(counts, sizeof counts, "%" PRIu64 " of %" PRIu64, loop->different_count,
             loop->output_count);
    printf(ROW, "outputs of the loop that differ", counts, "", "", "0", is_right ? "ok" : "WRONG");
    return is_right;
}

/* --- the commands --- */

static double goal_of(const arguments *a, const loop_figures *loop) {
    for (size_t i = 0; a->goal <= 0 && i < WORKLOADS; ++i)
        if (strcmp(workloads[i].scene, loop->scene) == 0 &&
            strcmp(workloads[i].case_name, loop->case_name) == 0)
            return workloads[i].goal;
    return a->goal;
}

static bool print_replay(const arguments *a, const char *dump, const loop_figures *loop,
                         outcome *out_all) {
    const char *const all[] = {a->command, "replay", dump, "--task", "all", NULL};
    if (!measure_program(all, a->is_quick ? 1 : 3, out_all))
        return false;
    print_row(&(row){.work = "replay --task all",
                     .measured_s = out_all->seconds,
                     .loop_s = loop->loop.median_s,
                     .goal = goal_of(a, loop),
                     .is_goal_of_ratio = true});
    return true;
}

static bool print_check(const arguments *a, const char *dump, const loop_figures *loop,
                        const outcome *replay) {
    const char *const check[] = {a->command, "check", dump, NULL};
    outcome of;
    if (!loop->has_references)
        return true;
    if (!measure_program(check, a->is_quick ? 1 : 3, &of))
        return false;
    print_row(&(row){.work = "check",
                     .measured_s = of.seconds,
                     .loop_s = loop->references.median_s,
                     .goal = CHECK_GOAL * replay->seconds + loop->references.median_s});
    return true;
}

static bool print_diagnose(const arguments *a, const char *dump, const loop_figures *loop,
                           outcome *out_diagnose) {
    const char *const diagnose[] = {a->command, "diagnose", dump, NULL};
    double references_s = loop->has_references ? loop->references.median_s : 0;
    if (!measure_program(diagnose, a->is_quick ? 1 : 3, out_diagnose))
        return false;
    print_row(&(row){.work = "diagnose",
                     .measured_s = out_diagnose->seconds,
                     .loop_s = loop->loop.median_s,
                     .goal = DIAGNOSE_GOAL * loop->loop.median_s + references_s});
    return true;
}

static bool print_single(const arguments *a, const char *dump, const loop_figures *loop) {
    char task[32], text[64];
    const char *const single[] = {a->command, "replay", dump, "--task", task, NULL};
    outcome of;
    snprintf(task, sizeof task, "%" PRIu64, loop->middle_task);
    snprintf(text, sizeof text, "replay --task %s", task);
    if (!measure_program(single, a->is_quick ? 1 : MAX_ROUNDS, &of))
        return false;
    print_row(&(row){.work = text, .measured_s = of.seconds, .goal = SINGLE_GOAL_S});
    return true;
}

static bool print_commands(const arguments *a, const char *dump, const loop_figures *loop) {
    outcome all, diagnose;
    if (!print_replay(a, dump, loop, &all) || !print_check(a, dump, loop, &all) ||
        !print_diagnose(a, dump, loop, &diagnose) || !print_single(a, dump, loop))
        return false;
    printf("%-48s %8.0f MiB\n", "replay --task all, peak memory", all.peak_mib);
    printf("%-48s %8.0f MiB\n", "diagnose, peak memory", diagnose.peak_mib);
    return true;
}

/* False when something failed or was wrong. */
static bool print_dump(const arguments *a, const char *dump) {
    loop_figures loop;
    if (!measure_loop(dump, a->is_quick ? 1 : 5, !a->is_only_loop, &loop))
        return false;
    print_loop(&loop);
    bool is_right = print_outputs(&loop);
    if (!a->is_only_loop)
        is_right &= print_commands(a, dump, &loop);
    printf("\n");
    return is_right;
}

/* --- dumps of this program --- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static bool print_workload(const arguments *a, const workload *w) {
    char scene[PATH_BYTES], file[PATH_BYTES + 16], dump[PATH_BYTES];
    snprintf(scene, sizeof scene, "%s/%s", a->scenes, w->scene);
    snprintf(file, sizeof file, "%s/scene.json", scene);
    snprintf(dump, sizeof dump, "%s/%s", a->work, w->scene);
    if (access(file, R_OK) != 0) {
        printf("%s: skipped, %s is missing; name its directory with --scenes\n", w->scene, file);
        return true;
    }
    const char *const run[] = {a->command,      "run",         scene, "--case", w->case_name,
                               "--dump-tensor", "--no-golden", "-o",  dump,     NULL};
    outcome ignored;
    bool is_right = measure_program(run, 1, &ignored) && print_dump(a, dump);
    nftw(dump, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return is_right;
}

static bool make_work(arguments *a) {
    snprintf(a->work, sizeof a->work, "%s/glassbox-bench-XXXXXX", a->directory);
    if (mkdtemp(a->work))
        return true;
    fprintf(stderr,
            "bench_replay: cannot create a directory in %s: %s; choose another --directory\n",
            a->directory, strerror(errno));
    return false;
}

static bool print_workloads(arguments *a) {
    bool is_right = true;
    if (!make_work(a))
        return false;
    for (size_t i = 0; i < WORKLOADS && !is_interrupted; ++i)
        is_right &= print_workload(a, &workloads[i]);
    nftw(a->work, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return is_right;
}

static bool print_all(arguments *a) {
    bool is_right = true;
    if (a->dump_count == 0)
        return print_workloads(a);
    for (size_t i = 0; i < a->dump_count && !is_interrupted; ++i)
        is_right &= print_dump(a, a->dumps[i]);
    return is_right;
}

static void find_command(arguments *a) {
    char beside[PATH_BYTES - 16] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 1);
    char *slash = length > 0 ? strrchr(beside, '/') : NULL;
    if (slash)
        *slash = '\0';
    snprintf(a->command, sizeof a->command, "%s/glassbox", beside);
}

int main(int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "[DUMP...]", "How fast tasks of a dump are called again.",
        NULL,    NULL,  NULL};
    static arguments a = {.directory = ".", .scenes = "examples"};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    find_command(&a);
    struct sigaction action = {.sa_handler = interrupt}; /* waits end, and clean up */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    bool is_right = print_all(&a);
    if (is_interrupted)
        return 128 + is_interrupted;
    return is_right ? 0 : 2;
}
