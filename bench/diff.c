/*
 * How fast tensors are compared: first the comparison of buffers, relative to memcpy; then
 * `glassbox diff` of the same build, on one core and from the page cache, relative to plain reads
 * of both sides. GB/s count one side; as much is read of the other. Times are those of the
 * processor, so that other programs count little; for the command also those by the clock.
 *
 *     bench_diff [--quick] [--directory DIR]
 *
 * Exits 2 when something failed or a result is wrong: timing is printed, never asserted.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/clock.h"
#include "store/writer.h"
#include "tensor/compare/compare_kernels.h"

enum { PATH_BYTES = 4096, READ_BYTES = 1 << 20, ROUNDS = 5, NOISY_STEP = 64 };

#define MIB ((size_t)1 << 20)
#define GOAL 2.0 /* GB/s a side of the command */

typedef struct setting {
    const char *directory;
    bool is_quick;
    int rounds;
    size_t buffer_bytes[2];
    size_t dump_bytes;
    char work[PATH_BYTES / 2];
    char command[PATH_BYTES];
} setting;

static bool fail(const char *what) {
    fprintf(stderr, "bench_diff: %s: %s\n", what, strerror(errno));
    return false;
}

static double processor_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* --- values --- */

typedef enum data_kind { EQUAL, NOISY, OUTSIDE, KINDS } data_kind;
static const char *const kind_names[KINDS] = {"equal", "noisy", "outside"};

static double unit_of(uint64_t i) {
    uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)((mixed ^ mixed >> 29) >> 11) * 0x1p-53;
}

/* Floats from 1 to 2, of both signs; integers from 0 to 99, or to 2 where they have 4 bits. */
static double want_of(uint32_t dtype, uint64_t i) {
    if (dtype == GBX_BOOL)
        return (double)(i >> 2 & 1);
    if (gbx_dtype_is_float(dtype))
        return (1.0 + unit_of(i)) * (i & 4 ? -1.0 : 1.0);
    return floor(unit_of(i) * (gbx_dtype_is_packed(dtype) ? 3.0 : 100.0));
}

/* Noise of half of what is near for the dtype, or of more than ten times that. Of integers, which
 * are exact, one of NOISY_STEP is noisy. */
static double got_of(uint32_t dtype, uint64_t i, data_kind kind) {
    const double rtol = gbx_tolerance_default(dtype).rtol, want = want_of(dtype, i);
    bool is_off = kind == OUTSIDE || (kind == NOISY && i % NOISY_STEP == 0);
    if (!gbx_dtype_is_float(dtype))
        return !is_off ? want : dtype == GBX_BOOL ? 1.0 - want : want + 1.0 + (double)(i % 5);
    double noise = kind == NOISY ? rtol * (unit_of(i * 3) - 0.5) : 0.0;
    if (kind == OUTSIDE)
        noise = rtol * 10.0 * (1.0 + unit_of(i * 3));
    return want * (1.0 + noise);
}

static void fill(uint32_t dtype, data_kind kind, uint64_t first, void *out_elements, size_t count,
                 bool is_got) {
    const size_t bits = gbx_dtype_bits(dtype);
    double values[1024];
    for (size_t at = 0; at < count; at += 1024) {
        size_t some = count - at < 1024 ? count - at : 1024;
        for (size_t i = 0; i < some; ++i)
            values[i] =
                is_got ? got_of(dtype, first + at + i, kind) : want_of(dtype, first + at + i);
        gbx_dtype_array_from_f64(dtype, values, some,
                                 (unsigned char *)out_elements + at * bits / 8);
    }
}

/* --- only the comparison --- */

typedef struct buffers {
    unsigned char *got;
    unsigned char *want;
    size_t bytes;
    gbx_cpu_level level; /* that compares them */
} buffers;

static gbx_comparison compare(const buffers *b, uint32_t dtype) {
    const gbx_tolerance tolerance = gbx_tolerance_default(dtype);
    gbx_comparison result;
    gbx_comparison_begin(&result, dtype, &tolerance);
    gbx_comparison_add_at(b->level, &result, b->got, b->want, b->bytes * 8 / gbx_dtype_bits(dtype));
    return result;
}

static double measure_compare(const setting *how, const buffers *b, uint32_t dtype,
                              gbx_comparison *out_result) {
    double best = 0;
    const size_t passes = 1 + (how->is_quick ? 0 : 64 * MIB / b->bytes / 4);
    for (int round = 0; round < how->rounds; ++round) {
        double start_s = processor_s();
        for (size_t i = 0; i < passes; ++i)
            *out_result = compare(b, dtype);
        double speed = (double)(b->bytes * passes) * 1e-9 / (processor_s() - start_s);
        best = speed > best ? speed : best;
    }
    return best;
}

static double measure_copy(const setting *how, const buffers *b) {
    double best = 0;
    for (int round = 0; round < how->rounds; ++round) {
        double start_s = processor_s();
        memcpy(b->got, b->want, b->bytes);
        double speed = (double)b->bytes * 1e-9 / (processor_s() - start_s);
        best = speed > best ? speed : best;
    }
    return best;
}

static bool is_right(const gbx_comparison *c, data_kind kind) {
    const bool is_float = gbx_dtype_is_float(c->dtype);
    const uint64_t noisy = kind == NOISY && !is_float ? c->elements / NOISY_STEP : 0;
    const uint64_t mismatches = kind == OUTSIDE ? c->elements : noisy;
    bool holds = c->mismatches == mismatches && (c->unequal > 0) == (kind != EQUAL);
    if (!holds)
        fprintf(stderr, "bench_diff: %s %s: %llu of %llu elements do not match\n",
                gbx_dtype_name(c->dtype), kind_names[kind], (unsigned long long)c->mismatches,
                (unsigned long long)c->elements);
    return holds;
}

static bool print_dtype(const setting *how, const buffers *b, uint32_t dtype) {
    const size_t count = b->bytes * 8 / gbx_dtype_bits(dtype);
    bool holds = true;
    printf("%8zu KiB  %-11s", b->bytes >> 10, gbx_dtype_name(dtype));
    fill(dtype, EQUAL, 0, b->want, count, false);
    for (data_kind kind = EQUAL; kind < KINDS; ++kind) {
        gbx_comparison result = {0};
        fill(dtype, kind, 0, b->got, count, true);
        printf("  %9.2f", measure_compare(how, b, dtype, &result));
        holds &= is_right(&result, kind);
    }
    printf("  %9.2f\n", measure_copy(how, b));
    fflush(stdout);
    return holds;
}

static void *map_buffer(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool print_buffers(const setting *how, size_t bytes, gbx_cpu_level level) {
    static const uint32_t dtypes[] = {GBX_FLOAT32, GBX_BFLOAT16,    GBX_FLOAT16, GBX_FLOAT64,
                                      GBX_INT8,    GBX_INT16,       GBX_INT32,   GBX_INT64,
                                      GBX_BOOL,    GBX_FLOAT8_E4M3, GBX_INT4};
    buffers b = {map_buffer(bytes), map_buffer(bytes), bytes, level};
    bool holds = true;
    if (b.got == MAP_FAILED || b.want == MAP_FAILED)
        return fail("no memory for a buffer");
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; ++i)
        holds &= print_dtype(how, &b, dtypes[i]);
    munmap(b.got, b.bytes);
    munmap(b.want, b.bytes);
    return holds;
}

/* Buffers of both sizes at the level of this processor, then small ones at those below. */
static bool print_comparison(const setting *how) {
    static const char *const names[GBX_CPU_LEVELS] = {"plain", "avx2", "avx512"};
    bool holds = true;
    const gbx_cpu_level best = gbx_compare_level_detect();
    for (int level = (int)best; level >= 0; --level) {
        printf("%sOnly the comparison (%s), GB/s a side\n%12s  %-11s  %9s  %9s  %9s  %9s\n",
               level < (int)best ? "\n" : "", names[level], "buffers", "dtype", kind_names[EQUAL],
               kind_names[NOISY], kind_names[OUTSIDE], "memcpy");
        for (size_t i = 0; i < (level == (int)best ? 2 : 1); ++i)
            holds &= print_buffers(how, how->buffer_bytes[i], (gbx_cpu_level)level);
    }
    return holds;
}

/* --- two dumps --- */

static const char run_text[] =
    "{\"generator\":\"bench_diff\",\"run\":{\"run_id\":\"bench\",\"scene\":\"tensors\",\"case\":"
    "\"large\",\"platform\":\"a2a3sim\",\"runtime\":\"host_build_graph\",\"rank\":0,\"round\":0,"
    "\"started_at\":\"2026-01-02T03:04:05Z\"},\"dump_level\":\"full\",\"has_args\":false,"
    "\"filters\":[],\"kernels\":[{\"func_id\":0,\"name\":\"read\",\"core_type\":\"aiv\","
    "\"signature\":[\"in\"],\"arg_names\":[\"x\"]}],\"run_args\":[]}";

/* Tensor i of float32 is the only argument of task i, and lies at i times `bytes`. */
typedef struct maker {
    gbx_store *store;
    uint64_t count;
    uint64_t bytes; /* of a tensor */
    bool is_got;
} maker;

static gbx_status put_task(const maker *m, uint64_t task) {
    gbx_record_task *record = gbx_store_append(m->store, GBX_RECORD_TASK, sizeof *record / 8);
    if (!record)
        return gbx_fail(GBX_LOST, "making a dump: the journal has failed");
    record->head.stage = GBX_STAGE_NONE;
    record->head.arg_index = GBX_ARG_NONE;
    record->head.task = task;
    record->task_id = task;
    record->func_ids[0] = UINT32_MAX;
    record->func_ids[2] = UINT32_MAX;
    record->block_num = 1;
    return NULL;
}

/* Without a hash: all bytes must be read. */
static gbx_status put_tensor(const maker *m, uint64_t task) {
    gbx_record_tensor *record =
        gbx_store_append(m->store, GBX_RECORD_TENSOR, sizeof *record / 8 + 4);
    if (!record)
        return gbx_fail(GBX_LOST, "making a dump: the journal has failed");
    record->head.role = GBX_ROLE_INPUT;
    record->head.dtype = GBX_FLOAT32;
    record->head.ndims = 2;
    record->head.flags = GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_CONTIGUOUS;
    record->head.task = task;
    record->bin_offset = task * m->bytes;
    record->bin_size = m->bytes;
    int64_t *shape = (int64_t *)(void *)(record + 1);
    shape[0] = (int64_t)(m->bytes / sizeof(float) / 64);
    shape[1] = 64;
    shape[2] = 64; /* the strides */
    shape[3] = 1;
    return NULL;
}

static gbx_status write_payload(const maker *m) {
    const size_t piece = READ_BYTES / sizeof(float);
    float *values = aligned_alloc(GBX_STORE_PAGE_BYTES, READ_BYTES);
    gbx_status status = values ? NULL : gbx_fail(GBX_EXHAUSTED, "making a dump: no memory");
    gbx_store_reserve(m->store, m->count * m->bytes);
    for (uint64_t at = 0; !status && at < m->count * m->bytes; at += READ_BYTES) {
        fill(GBX_FLOAT32, NOISY, at / sizeof(float), values, piece, m->is_got);
        status = gbx_store_write(m->store, at, values, READ_BYTES);
    }
    free(values);
    return status;
}

static gbx_status fill_dump(const maker *m) {
    GBX_TRY(write_payload(m));
    for (uint64_t i = 0; i < m->count; ++i) {
        GBX_TRY(put_task(m, i));
        GBX_TRY(put_tensor(m, i));
    }
    gbx_record_end end = {
        .head = {.stage = GBX_STAGE_NONE, .arg_index = GBX_ARG_NONE, .flags = GBX_FLAG_COMPLETE},
        .record_count = m->count,
        .task_count = m->count,
        .payload_bytes = m->count * m->bytes,
        .stored_bytes = m->count * m->bytes};
    return gbx_store_finish(m->store, &end, "ok", NULL);
}

static bool make_dump(const setting *how, const char *directory, uint64_t tensor_bytes,
                      bool is_got) {
    gbx_store_config config = {.directory = directory, .run_json = run_text, .has_tensors = true};
    maker m = {.count = how->dump_bytes / tensor_bytes, .bytes = tensor_bytes, .is_got = is_got};
    gbx_status status = gbx_store_create(&config, &m.store);
    if (!status) {
        status = fill_dump(&m);
        gbx_store_destroy(m.store);
    }
    if (!status)
        return true;
    fprintf(stderr, "bench_diff: %s\n", gbx_status_message(status));
    gbx_status_free(status);
    return false;
}

/* --- the command --- */

typedef struct outcome {
    double clock_s;
    double processor_s;
    double peak_mib;
} outcome;

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* This process, and what it starts, has one core. */
static void keep_to_one_core(void) {
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (size_t i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &allowed)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static void become(const setting *how, const char *a, const char *b) {
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(126);
    execl(how->command, how->command, "diff", a, b, (char *)NULL);
    fail(how->command);
    _exit(127);
}

/* All elements are near: the command must say so. */
static bool run_diff(const setting *how, const char *a, const char *b, outcome *out_outcome) {
    struct rusage usage;
    int status = 0;
    fflush(stdout);
    malloc_trim(0); /* memory of this process at the fork counts for the child */
    int64_t start_ns = gbx_clock_ns();
    pid_t pid = fork();
    if (pid == 0)
        become(how, a, b);
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
        return fail("running glassbox diff");
    out_outcome->clock_s = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    out_outcome->processor_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    out_outcome->peak_mib = (double)usage.ru_maxrss / 1024;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    fprintf(stderr, "bench_diff: glassbox diff %s %s: status %d; expected 0\n", a, b, status);
    return false;
}

/* Both files, a piece of each in turn, into the same two buffers. */
static bool read_both(const char *const directories[2], double *out_seconds) {
    static _Alignas(4096) unsigned char pieces[2][READ_BYTES];
    int fds[2] = {-1, -1};
    ssize_t length = 1;
    double start_s = processor_s();
    for (int i = 0; i < 2; ++i) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.bin", directories[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    for (off_t at = 0; length > 0; at += READ_BYTES)
        for (int i = 0; i < 2; ++i)
            length = pread(fds[i], pieces[i], READ_BYTES, at);
    *out_seconds = processor_s() - start_s;
    for (int i = 0; i < 2; ++i)
        if (fds[i] >= 0)
            close(fds[i]);
    return length == 0 || fail("reading the dumps");
}

static bool measure_diff(const setting *how, const char *const directories[2]) {
    double read_s = INFINITY;
    outcome best = {.clock_s = INFINITY, .processor_s = INFINITY};
    if (!read_both(directories, &read_s)) /* into the page cache */
        return false;
    for (int i = 0; i < how->rounds; ++i) {
        outcome one = {0};
        double seconds = 0;
        if (!run_diff(how, directories[0], directories[1], &one) ||
            !read_both(directories, &seconds))
            return false;
        read_s = fmin(seconds, read_s);
        best.clock_s = fmin(one.clock_s, best.clock_s);
        best.processor_s = fmin(one.processor_s, best.processor_s);
        best.peak_mib = fmax(one.peak_mib, best.peak_mib);
    }
    const double giga = (double)how->dump_bytes * 1e-9, reached = giga / best.processor_s;
    printf("  %9.2f  %9.2f  %9.2f  %9.1f  %s\n", reached, giga / best.clock_s, giga / read_s,
           best.peak_mib, reached >= GOAL ? "ok" : "BELOW");
    return true;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static bool print_pair(const setting *how, const char *name, uint64_t tensor_bytes) {
    char paths[2][PATH_BYTES];
    const char *const directories[2] = {paths[0], paths[1]};
    bool holds = true;
    for (int i = 0; i < 2; ++i)
        snprintf(paths[i], PATH_BYTES, "%s/%s_%s", how->work, name, i == 0 ? "a" : "b");
    if (tensor_bytes < MIB) /* never true, but the analyzer does not see that */
        return false;
    printf("%6zu x %4zu MiB", how->dump_bytes / tensor_bytes, (size_t)tensor_bytes / MIB);
    fflush(stdout);
    for (int i = 0; i < 2; ++i)
        holds = holds && make_dump(how, directories[i], tensor_bytes, i == 0);
    holds = holds && measure_diff(how, directories);
    for (int i = 0; i < 2; ++i)
        nftw(directories[i], remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return holds;
}

static bool print_command(const setting *how) {
    printf("\n`glassbox diff` of noisy float32, one core, page cache, GB/s a side (goal: %g)\n"
           "%17s  %9s  %9s  %9s  %9s\n",
           GOAL, "tensors", "diff", "by clock", "pread", "peak MiB");
    bool is_good = print_pair(how, "large", how->dump_bytes);
    return print_pair(how, "small", MIB) && is_good;
}

/* --- the program --- */

enum { OPTION_QUICK = 1, OPTION_DIRECTORY };

static const struct argp_option options[] = {
    {"quick", OPTION_QUICK, NULL, 0, "Small buffers and dumps, each once", 0},
    {"directory", OPTION_DIRECTORY, "DIR", 0, "Where dumps go (default: here)", 0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
    setting *how = state->input;
    if (key == OPTION_QUICK)
        how->is_quick = true;
    else if (key == OPTION_DIRECTORY)
        how->directory = value;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static bool make_work(setting *how) {
    char beside[PATH_BYTES - 16] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 1);
    char *slash = length > 0 ? strrchr(beside, '/') : NULL;
    if (slash)
        *slash = '\0';
    snprintf(how->command, sizeof how->command, "%s/glassbox", beside);
    snprintf(how->work, sizeof how->work, "%s/glassbox-bench-XXXXXX", how->directory);
    return mkdtemp(how->work) || fail("creating a directory; choose another --directory");
}

int main(int argc, char **argv) {
    static const struct argp argp = {
        options, parse, NULL, "How fast tensors and dumps are compared.", NULL, NULL, NULL};
    static setting how = {.directory = "."};
    argp_parse(&argp, argc, argv, 0, NULL, &how);
    how.rounds = how.is_quick ? 1 : ROUNDS;
    how.buffer_bytes[0] = how.is_quick ? MIB / 4 : MIB;
    how.buffer_bytes[1] = how.is_quick ? MIB : 64 * MIB;
    how.dump_bytes = how.is_quick ? 8 * MIB : 512 * MIB;
    keep_to_one_core();
    bool is_good = print_comparison(&how);
    if (!make_work(&how))
        return 2;
    is_good &= print_command(&how);
    nftw(how.work, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return is_good ? 0 : 2;
}
