/*
 * What a dump costs, compared with the limits of the machine, which the same program measures.
 * Prints goals, what was reached and whether they are met; the exit code says whether all ran and
 * was right.
 */
#include <argp.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"

enum { OPTION_QUICK = 1, OPTION_LARGE, OPTION_DIRECTORY, OPTION_SCENES, OPTION_ONLY, PAGE = 4096 };

static const struct argp_option options[] = {
    {"quick", OPTION_QUICK, NULL, 0, "Dumps of 512 MiB instead of 4 GiB, each once", 0},
    {"large", OPTION_LARGE, NULL, 0, "Also paged_attention large, which takes minutes", 0},
    {"directory", OPTION_DIRECTORY, "DIR", 0, "Where dumps go (default: here)", 0},
    {"scenes", OPTION_SCENES, "DIR", 0, "Where paged_attention is (default: examples)", 0},
    {"only", OPTION_ONLY, "PART", 0, "One of tensors, holding, records, results, guard, scenes", 0},
    {0}};

typedef struct arguments {
    setting how;
    const char *directory;
    const char *only;
    bool is_quick;
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
    case OPTION_LARGE:
        a->how.has_large = true;
        return 0;
    case OPTION_DIRECTORY:
        a->directory = value;
        return 0;
    case OPTION_SCENES:
        a->how.scenes = value;
        return 0;
    case OPTION_ONLY:
        a->only = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --- the work directory --- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    return where->level == 0 ? 0 : remove(path);
}

void empty_work(const setting *how) {
    nftw(how->work, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static bool make_work(arguments *a) {
    ssize_t length = readlink("/proc/self/exe", a->how.beside, sizeof a->how.beside - 1);
    char *slash = length > 0 ? strrchr(a->how.beside, '/') : NULL;
    if (slash)
        *slash = '\0';
    snprintf(a->how.work, sizeof a->how.work, "%s/glassbox-bench-XXXXXX", a->directory);
    if (mkdtemp(a->how.work))
        return true;
    fprintf(stderr,
            "bench_capture: cannot create a directory in %s: %s; choose another --directory\n",
            a->directory, strerror(errno));
    return false;
}

/* Random words, the same each time; shared, so that no process has a copy. */
static bool make_source(setting *how) {
    uint64_t bytes = how->source_bytes + PAGE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "bench_capture: no memory for a source of %llu bytes\n",
                (unsigned long long)bytes);
        return false;
    }
    uint64_t *words = memory;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < bytes / sizeof *words; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
    how->source = memory;
    return true;
}

/* --- tables --- */

bool print_goal(const char *name, double reached, bool is_at_least, double goal, const char *unit) {
    bool holds = is_at_least ? reached >= goal : reached <= goal;
    printf("%-52s %9.3g %2s %7.4g %-12s %s\n", name, reached, is_at_least ? ">=" : "<=", goal, unit,
           holds ? "ok" : "BELOW");
    fflush(stdout);
    return holds;
}

typedef bool (*part_function)(const arguments *a);

typedef struct part {
    const char *name;
    part_function print;
} part;

static bool print_tensors(const arguments *a) {
    return print_tensor_table(&a->how, a->is_quick ? 1 : 3);
}

static bool print_holding(const arguments *a) {
    return print_holding_table(&a->how);
}

static bool print_records(const arguments *a) {
    return print_record_table(&a->how);
}

static bool print_results(const arguments *a) {
    return print_result_table(&a->how, a->is_quick ? 5 : 9);
}

static bool print_guard_part(const arguments *a) {
    return print_guard(&a->how, a->is_quick ? 7 : 31);
}

static bool print_scene_part(const arguments *a) {
    return print_scenes(&a->how);
}

static const part parts[] = {{"tensors", print_tensors},
                             {"holding", print_holding},
                             {"records", print_records},
                             {"results", print_results},
                             {"guard", print_guard_part},
                             {"scenes", print_scene_part},
                             {NULL, NULL}};

static bool print_parts(const arguments *a) {
    bool is_right = true;
    for (const part *p = parts; p->name && !is_interrupted; ++p)
        if (!a->only || strcmp(a->only, p->name) == 0)
            is_right &= p->print(a);
    return is_right;
}

int main(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, "What a dump costs.", NULL, NULL, NULL};
    static arguments a = {.directory = ".", .how = {.scenes = "examples"}};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    a.how.total_bytes = a.is_quick ? 512 * MIB : 4 * GIB;
    a.how.source_bytes = a.is_quick ? 256 * MIB : 512 * MIB;
    a.how.scalar_records = 1000000;
    struct sigaction action = {.sa_handler = interrupt}; /* waits end, and clean up */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    if (!make_source(&a.how) || !make_work(&a))
        return 2;
    bool is_right = print_parts(&a);
    empty_work(&a.how);
    rmdir(a.how.work);
    if (is_interrupted)
        return 128 + is_interrupted;
    return is_right ? 0 : 2;
}
