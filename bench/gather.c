/*
 * Gather and scatter of 16 MiB payloads compared with memcpy of as many bytes, from and to memory
 * that is not in a cache: every measured copy takes the next slots of two pools that are larger
 * than any cache. The pools are shared memory, like global memory.
 *
 *     bench_gather [plain|avx2|avx512]
 *
 * The level of instructions is the argument, or the highest that the processor has.
 *
 * Exits 1 only when a copy gives wrong values: timing is printed, never asserted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "tensor/copy/strided_copy.h"

#define PAYLOAD_BYTES ((size_t)16 << 20)
#define SLOT_BYTES (2 * PAYLOAD_BYTES)
#define SLOTS 40
#define REPETITIONS 41

typedef enum bench_kind { BENCH_MEMCPY, BENCH_GATHER, BENCH_SCATTER } bench_kind;

typedef struct bench_case {
    const char *name;
    bench_kind kind;
    uint32_t dtype;
    int64_t shape[2];
    int64_t strides[2];
    double target; /* relative to memcpy; 0: no target */
} bench_case;

static const bench_case cases[] = {
    {"memcpy", BENCH_MEMCPY, GBX_FLOAT32, {2048, 2048}, {2048, 1}, 0},
    {"gather contiguous", BENCH_GATHER, GBX_FLOAT32, {2048, 2048}, {2048, 1}, 0.95},
    {"gather rows of 256 of 512 bytes", BENCH_GATHER, GBX_FLOAT32, {65536, 64}, {128, 1}, 0.7},
    {"gather every other float32", BENCH_GATHER, GBX_FLOAT32, {1, 4194304}, {0, 2}, 0.4},
    {"gather transposed float32", BENCH_GATHER, GBX_FLOAT32, {2048, 2048}, {1, 2048}, 0.3},
    {"gather every other float16", BENCH_GATHER, GBX_FLOAT16, {1, 8388608}, {0, 2}, 0},
    {"gather transposed float16", BENCH_GATHER, GBX_FLOAT16, {2048, 4096}, {1, 2048}, 0},
    {"scatter contiguous", BENCH_SCATTER, GBX_FLOAT32, {2048, 2048}, {2048, 1}, 0},
    {"scatter rows of 256 of 512 bytes", BENCH_SCATTER, GBX_FLOAT32, {65536, 64}, {128, 1}, 0},
    {"scatter every other float32", BENCH_SCATTER, GBX_FLOAT32, {1, 4194304}, {0, 2}, 0},
    {"scatter transposed float32", BENCH_SCATTER, GBX_FLOAT32, {2048, 2048}, {1, 2048}, 0},
    {"scatter every other float16", BENCH_SCATTER, GBX_FLOAT16, {1, 8388608}, {0, 2}, 0},
    {"scatter transposed float16", BENCH_SCATTER, GBX_FLOAT16, {2048, 4096}, {1, 2048}, 0},
};
#define CASES (sizeof cases / sizeof cases[0])

static int64_t times_ns[CASES][REPETITIONS];

static unsigned char *make_pool(const char *name) {
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, SLOTS * SLOT_BYTES) != 0)
        return NULL;
    void *pool = mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (pool == MAP_FAILED)
        return NULL;
    uint32_t *words = pool;
    for (size_t i = 0; i < SLOTS * SLOT_BYTES / sizeof *words; ++i)
        words[i] = (uint32_t)i * UINT32_C(2654435761);
    return pool;
}

static gbx_tensor tensor_of_case(const bench_case *one) {
    gbx_tensor tensor = {.dtype = one->dtype, .ndims = 2};
    memcpy(tensor.shape, one->shape, sizeof one->shape);
    memcpy(tensor.strides, one->strides, sizeof one->strides);
    return tensor;
}

static void run_case(const bench_case *one, gbx_cpu_level level, unsigned char *dst,
                     const unsigned char *src) {
    gbx_tensor tensor = tensor_of_case(one);
    if (one->kind == BENCH_MEMCPY)
        memcpy(dst, src, PAYLOAD_BYTES);
    else if (one->kind == BENCH_GATHER)
        gbx_tensor_gather_at(level, &tensor, src, dst);
    else
        gbx_tensor_scatter_at(level, &tensor, src, dst);
}

/* Element by element; a scatter is checked at the elements it writes. */
static bool case_is_right(const bench_case *one, const unsigned char *dst,
                          const unsigned char *src) {
    size_t bytes = gbx_dtype_bits(one->dtype) / 8;
    for (int64_t i = 0; i < one->shape[0]; ++i)
        for (int64_t k = 0; k < one->shape[1]; ++k) {
            size_t row_major = (size_t)(i * one->shape[1] + k) * bytes;
            size_t in_view = (size_t)(i * one->strides[0] + k * one->strides[1]) * bytes;
            bool scatters = one->kind == BENCH_SCATTER;
            if (memcmp(dst + (scatters ? in_view : row_major),
                       src + (scatters ? row_major : in_view), bytes) != 0)
                return false;
        }
    return true;
}

static const char *const level_names[GBX_CPU_LEVELS] = {"plain", "avx2", "avx512"};

static int compare_times(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double median_gb_per_s(size_t which) {
    qsort(times_ns[which], REPETITIONS, sizeof times_ns[which][0], compare_times);
    int middle = REPETITIONS / 2;
    return (double)PAYLOAD_BYTES / (double)times_ns[which][middle];
}

static void print_table(gbx_cpu_level level) {
    double memcpy_speed = median_gb_per_s(0);
    printf("16 MiB of payload, in no cache, %s\n", level_names[level]);
    printf("%-34s %8s %8s %8s\n", "case", "GB/s", "/memcpy", "target");
    for (size_t c = 0; c < CASES; ++c) {
        double speed = median_gb_per_s(c);
        double ratio = speed / memcpy_speed;
        printf("%-34s %8.2f %8.2f", cases[c].name, speed, ratio);
        if (cases[c].target > 0)
            printf(" %8.2f  %s", cases[c].target, ratio >= cases[c].target ? "ok" : "BELOW");
        printf("\n");
    }
}

/* False when there is no such level, or the processor does not have it. */
static bool choose_level(const char *name, gbx_cpu_level *out_level) {
    *out_level = gbx_cpu_level_detect();
    if (!name)
        return true;
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level < GBX_CPU_LEVELS; ++level) {
        if (strcmp(name, level_names[level]) != 0)
            continue;
        bool is_there = level <= *out_level;
        *out_level = level;
        return is_there;
    }
    return false;
}

int main(int argc, char **argv) {
    gbx_cpu_level level;
    if (!choose_level(argc > 1 ? argv[1] : NULL, &level)) {
        fprintf(stderr, "bench_gather: \"%s\" is not a level of this processor\n", argv[1]);
        return 2;
    }
    unsigned char *sources = make_pool("sources"), *targets = make_pool("targets");
    if (!sources || !targets) {
        fprintf(stderr, "bench_gather: cannot map two pools of %zu bytes\n", SLOTS * SLOT_BYTES);
        return 2;
    }
    for (size_t c = 0; c < CASES; ++c) {
        run_case(&cases[c], level, targets, sources + SLOT_BYTES * c);
        if (!case_is_right(&cases[c], targets, sources + SLOT_BYTES * c)) {
            fprintf(stderr, "bench_gather: %s: wrong values\n", cases[c].name);
            return 1;
        }
    }
    size_t slot = 0;
    for (int r = 0; r < REPETITIONS; ++r)
        for (size_t c = 0; c < CASES; ++c, slot = (slot + 1) % SLOTS) {
            int64_t start_ns = gbx_clock_ns();
            run_case(&cases[c], level, targets + SLOT_BYTES * slot, sources + SLOT_BYTES * slot);
            times_ns[c][r] = gbx_clock_ns() - start_ns;
        }
    print_table(level);
    return 0;
}
