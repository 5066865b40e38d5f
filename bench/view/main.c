/*
 * How fast `glassbox view` is. Prints goals, what was reached and whether they are met; the exit
 * code says whether everything ran and the output was right.
 */
#include <argp.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

enum { OPTION_QUICK = 1, OPTION_DIRECTORY, OPTION_ONLY, OPTION_KEEP };

static const struct argp_option options[] = {
    {"quick", OPTION_QUICK, NULL, 0, "Small dumps, each command once", 0},
    {"directory", OPTION_DIRECTORY, "DIR", 0, "Where dumps go (default: here)", 0},
    {"only", OPTION_ONLY, "PART", 0, "One of records, sparse, statistics", 0},
    {"keep", OPTION_KEEP, NULL, 0, "Keep the dumps, and say where they are", 0},
    {0}};

typedef struct arguments {
    setting how;
    const char *directory;
    const char *only;
    bool is_quick;
    bool is_kept;
} arguments;

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
    case OPTION_DIRECTORY:
        a->directory = value;
        return 0;
    case OPTION_ONLY:
        a->only = value;
        return 0;
    case OPTION_KEEP:
        a->is_kept = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- what all parts use --- */

void print_goal(const char *name, double reached, bool is_at_least, double goal, const char *unit) {
    bool holds = is_at_least ? reached >= goal : reached <= goal;
    printf("%-52s %9.3g %2s %7.4g %-12s %s\n", name, reached, is_at_least ? ">=" : "<=", goal, unit,
           holds ? "ok" : "BELOW");
    fflush(stdout);
}

bool expect(bool is_true, const char *what) {
    if (!is_true)
        fprintf(stderr, "bench_view: this does not hold: %s\n", what);
    return is_true;
}

void set_path(const setting *how, const char *name, char out_path[PATH_BYTES]) {
    int length = snprintf(out_path, PATH_BYTES, "%s/%s", how->work, name);
    if (length < 0 || length >= PATH_BYTES)
        out_path[0] = '\0'; /* not a file: opening it fails with a message */
}

bool succeeded(gbx_status status) {
    if (!status)
        return true;
    fprintf(stderr, "bench_view: %s\n", gbx_status_message(status));
    gbx_status_free(status);
    return false;
}

/* --- the work directory --- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static bool make_work(arguments *a) {
    char beside[PATH_BYTES - 16] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 1);
    char *slash = length > 0 ? strrchr(beside, '/') : NULL;
    if (slash)
        *slash = '\0';
    snprintf(a->how.command, sizeof a->how.command, "%s/glassbox", beside);
    snprintf(a->how.work, sizeof a->how.work, "%s/glassbox-bench-XXXXXX", a->directory);
    if (mkdtemp(a->how.work))
        return true;
    fprintf(stderr, "bench_view: cannot create a directory in %s: %s; choose another --directory\n",
            a->directory, strerror(errno));
    return false;
}

static bool print_parts(const arguments *a) {
    static const struct {
        const char *name;
        bool (*print)(const setting *how);
    } parts[] = {
        {"records", print_records}, {"sparse", print_sparse}, {"statistics", print_statistics}};
    bool is_right = true;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !is_interrupted; ++i)
        if (!a->only || strcmp(a->only, parts[i].name) == 0)
            is_right &= parts[i].print(&a->how);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, "How fast glassbox view is.",
                                     NULL,    NULL,  NULL};
    static arguments a = {.directory = "."};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    a.how.record_count = a.is_quick ? 20000 : 1000000;
    a.how.sparse_count = a.is_quick ? 1024 : 100 * GIB / MIB;
    a.how.payload_bytes = a.is_quick ? 32 * MIB : 2 * GIB;
    a.how.memory_bytes = a.is_quick ? 64 * MIB : 512 * MIB;
    a.how.repeats = a.is_quick ? 1 : 5;
    struct sigaction action = {.sa_handler = interrupt}; /* waits end, and clean up */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    if (!make_work(&a))
        return 2;
    bool is_right = print_parts(&a);
    if (a.is_kept)
        printf("the dumps are in %s\n", a.how.work);
    else
        nftw(a.how.work, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (is_interrupted)
        return 128 + is_interrupted;
    return is_right ? 0 : 2;
}
