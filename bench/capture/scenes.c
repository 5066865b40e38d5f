/*
 * Paged attention as a user runs it: with the command, from its start to its end, without golden.
 * bench_statistics compares statistics and hash with memcpy.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture.h"

enum { REPEATS = 5 };

/* The results of a run of the command. */
typedef struct report {
    double wall_s;      /* of the command */
    double processor_s; /* of the command and its chip */
    double device_s;    /* of the graph on the chip */
    double tasks;
    double payload_bytes;
    double stored_bytes;
    double records;
    double dropped;
} report;

/* Options of the command, each in one word, or NULL. */
typedef struct options {
    const char *level; /* dumps */
    const char *guard;
    const char *runtime;
} options;

/* The exit code of the command, which prints to a file; -1 when a signal killed it. */
static int run_command(const setting *how, const char *name, options with, const char *output,
                       double *out_processor_s) {
    char command[PATH_BYTES + 16], scene[PATH_BYTES + 32], dump[PATH_BYTES + 16];
    snprintf(command, sizeof command, "%s/glassbox", how->beside);
    snprintf(scene, sizeof scene, "%s/paged_attention", how->scenes);
    snprintf(dump, sizeof dump, "%s/dump", how->work);
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(fd, STDOUT_FILENO);
        const char *words[16] = {command, "run", scene, "--case", name, "--no-golden", "--json"};
        size_t count = 7;
        if (with.runtime)
            words[count++] = with.runtime;
        if (with.guard)
            words[count++] = with.guard;
        if (with.level) {
            words[count++] = with.level;
            words[count++] = "-o";
            words[count++] = dump;
        }
        execv(command, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    struct rusage used = {0};
    while (pid > 0 && wait4(pid, &status, 0, &used) != pid)
        if (errno != EINTR)
            return -1;
    *out_processor_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static bool read_report(const char *path, report *out_report) {
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    const json_t *run = json_array_get(json_object_get(root, "cases"), 0);
    const json_t *totals = json_object_get(run, "dump_totals");
    out_report->device_s = number(run, "seconds");
    out_report->tasks = number(run, "tasks");
    out_report->payload_bytes = number(totals, "payload_bytes");
    out_report->stored_bytes = number(totals, "stored_bytes");
    out_report->records = number(totals, "records");
    out_report->dropped = number(totals, "dropped");
    bool is_read = out_report->device_s > 0;
    json_decref(root);
    return is_read;
}

static bool run_scene(const setting *how, const char *name, options with, report *out_report) {
    char output[PATH_BYTES + 16];
    snprintf(output, sizeof output, "%s/output", how->work);
    int64_t start_ns = gbx_clock_ns();
    int code = run_command(how, name, with, output, &out_report->processor_s);
    out_report->wall_s = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    bool is_right = code == 0 && read_report(output, out_report);
    empty_work(how);
    if (!is_right)
        fprintf(stderr,
                "bench_capture: glassbox run %s/paged_attention --case %s %s %s %s ended with "
                "%d\n",
                how->scenes, name, with.runtime ? with.runtime : "", with.guard ? with.guard : "",
                with.level ? with.level : "", code);
    return is_right;
}

/* Also printed, without a goal: what the dump adds to the command, relative to the chip's time. */
static bool print_statistics(const setting *how) {
    double walls[2][REPEATS], devices[2][REPEATS];
    static const options levels[2] = {{.level = NULL}, {.level = "--dump-tensor=stats"}};
    report of = {0};
    if (!run_scene(how, "medium", levels[0], &of)) /* compiles */
        return false;
    for (int i = 0; i < REPEATS; ++i)
        for (int l = 0; l < 2; ++l) {
            if (!run_scene(how, "medium", levels[l], &of))
                return false;
            walls[l][i] = of.wall_s;
            devices[l][i] = of.device_s;
        }
    double wall[2] = {median(walls[0], REPEATS), median(walls[1], REPEATS)};
    double device[2] = {median(devices[0], REPEATS), median(devices[1], REPEATS)};
    printf("paged_attention medium, level stats, %.0f records, medians of %d: command %.0f ms, "
           "without dump %.0f; chip %.0f ms, %.0f\n",
           of.records, REPEATS, wall[1] * 1e3, wall[0] * 1e3, device[1] * 1e3, device[0] * 1e3);
    print_goal("stats: the command, relative to one without dump", wall[1] / wall[0], false, 2.0,
               "");
    print_goal("stats: the chip, relative to one without dump", device[1] / device[0], false, 2.0,
               "");
    printf("stats: on the chip and all that the dump adds to the command: %.2f times the chip "
           "without dump\n",
           (device[0] + wall[1] - wall[0]) / device[0]);
    return true;
}

static bool print_large(const setting *how) {
    report first, plain, full;
    const options none = {.level = NULL}, dump = {.level = "--dump-tensor"};
    double disk = measure_disk(how);
    if (disk == 0 || !run_scene(how, "large", none, &first) ||
        !run_scene(how, "large", dump, &full) || !run_scene(how, "large", none, &plain))
        return false;
    if (first.wall_s < plain.wall_s)
        plain = first; /* the faster one: the harder goal */
    double allowed = plain.wall_s + 1.2 * full.stored_bytes * 1e-9 / disk +
                     full.payload_bytes * 1e-9 / 4 + full.records * 1e-6;
    printf("paged_attention large, full: %.0f records, %.1f GB of payload, %.1f GB stored, %.0f "
           "dropped; command %.1f s, without dump %.1f; chip %.1f s, %.1f; disk %.2f GB/s\n",
           full.records, full.payload_bytes * 1e-9, full.stored_bytes * 1e-9, full.dropped,
           full.wall_s, plain.wall_s, full.device_s, plain.device_s, disk);
    print_goal("large: the command, by the formula", full.wall_s, false, allowed, "s");
    return full.dropped == 0;
}

/* --- the guard --- */

enum { MOST_ROUNDS = 31 };

/* Medians of runs without and with a guard, which take turns: what else the machine does falls on
 * both. The shortest times differ by more than the limit between two such measurements. Poison is
 * part of a guard and cannot be left out. */
static bool print_guard_row(const setting *how, const char *runtime, const char *level,
                            uint32_t rounds) {
    static const char *const guards[2] = {"--guard=off", "--guard=report"};
    double devices[2][MOST_ROUNDS], processors[2][MOST_ROUNDS], tasks = 1;
    char option[64], name[96];
    snprintf(option, sizeof option, "--runtime=%s", runtime);
    for (uint32_t i = 0; i <= rounds; ++i)
        for (int g = 0; g < 2; ++g) {
            report of;
            options with = {.level = level, .guard = guards[g], .runtime = option};
            if (!run_scene(how, "medium", with, &of))
                return false;
            if (i == 0) /* compiles */
                continue;
            devices[g][i - 1] = of.device_s;
            processors[g][i - 1] = of.processor_s;
            tasks = of.tasks;
        }
    double device[2] = {median(devices[0], rounds), median(devices[1], rounds)};
    double processor[2] = {median(processors[0], rounds), median(processors[1], rounds)};
    snprintf(name, sizeof name, "guard, %s, %s", runtime, level ? "full dump" : "no dump");
    if (level)
        print_goal(name, device[1] / device[0], false, 1.05, "");
    else
        printf("%-52s %9.3g\n", name, device[1] / device[0]);
    printf("    chip %.1f ms, without a guard %.1f; processor time of the command %.2f us a task "
           "more, %.3g times\n",
           device[1] * 1e3, device[0] * 1e3, (processor[1] - processor[0]) * 1e6 / tasks,
           processor[1] / processor[0]);
    return true;
}

static bool has_scene(const setting *how) {
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/paged_attention/scene.json", how->scenes);
    if (access(path, R_OK) == 0)
        return true;
    printf("paged_attention: skipped, %s is missing; name its directory with --scenes\n", path);
    return false;
}

bool print_guard(const setting *how, uint32_t rounds) {
    static const char *const runtimes[] = {"tensormap_and_ringbuffer", "aicpu_build_graph",
                                           "host_build_graph"};
    if (!has_scene(how))
        return true;
    printf(
        "paged_attention medium with a guard, times the chip without one; medians of %u rounds\n",
        rounds);
    for (size_t r = 0; r < 3; ++r)
        if (!print_guard_row(how, runtimes[r], NULL, rounds) ||
            !print_guard_row(how, runtimes[r], "--dump-tensor=full", rounds))
            return false;
    printf("\n");
    return true;
}

bool print_scenes(const setting *how) {
    if (!has_scene(how))
        return true;
    bool is_right = print_statistics(how);
    if (how->has_large)
        is_right &= print_large(how);
    else
        printf("paged_attention large: skipped without --large\n");
    return is_right;
}
