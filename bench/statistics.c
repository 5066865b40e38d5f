/*
 * Statistics and hash of 16 MiB payloads in pieces of 16 KiB, as in a capture, compared with memcpy
 * of as many bytes, from and to memory that is not in a cache: every measured pass takes the next
 * slot of a pool that is larger than any cache. The pools are shared memory, like global memory.
 *
 *     bench_statistics [plain|avx2|avx512]
 *
 * Measures the named level of instructions, or all that the processor has. The hash always uses the
 * widest instructions.
 *
 * Times are those of the processor, so that other programs count little.
 *
 * Exits 1 only when a result is wrong: timing is printed, never asserted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/hash.h"
#include "tensor/statistics/statistics_kernels.h"

#define PAYLOAD_BYTES ((size_t)16 << 20)
#define PIECE_BYTES ((size_t)16 << 10)
#define SLOTS 32
#define REPETITIONS 11
#define TARGET 0.6 /* of memcpy */

/* What is measured, side by side for each dtype. */
typedef enum bench_kind { BENCH_MEMCPY, BENCH_HASH, BENCH_STATISTICS, BENCH_BOTH } bench_kind;
#define KINDS 4

typedef struct bench_results {
    gbx_hash128 hash;
    gbx_statistics statistics;
} bench_results;

static const char *const level_names[GBX_CPU_LEVELS] = {"plain", "avx2", "avx512"};
static const uint32_t targets[] = {GBX_FLOAT32, GBX_BFLOAT16, GBX_FLOAT16, GBX_INT32, GBX_INT8};

static int64_t times_ns[KINDS][GBX_DTYPE_COUNT][REPETITIONS];

/* Words that are usual numbers as elements of every float. */
static unsigned char *make_pool(const char *name) {
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, SLOTS * PAYLOAD_BYTES) != 0)
        return NULL;
    void *pool = mmap(NULL, SLOTS * PAYLOAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (pool == MAP_FAILED)
        return NULL;
    uint32_t *words = pool;
    for (size_t i = 0; i < SLOTS * PAYLOAD_BYTES / sizeof *words; ++i) {
        uint32_t mixed = (uint32_t)i * UINT32_C(2654435761);
        words[i] = ((mixed ^ mixed >> 15) & UINT32_C(0x83bf83bf)) | UINT32_C(0x3c003c00);
    }
    return pool;
}

static void run(bench_kind kind, gbx_cpu_level level, uint32_t dtype, const unsigned char *payload,
                bench_results *out_results) {
    gbx_hash_state hash;
    gbx_statistics_state statistics;
    gbx_hash_begin(&hash);
    gbx_statistics_begin(&statistics, dtype);
    for (size_t at = 0; at < PAYLOAD_BYTES; at += PIECE_BYTES) {
        if (kind != BENCH_HASH)
            gbx_statistics_update_at(level, &statistics, payload + at, PIECE_BYTES, 4096);
        if (kind != BENCH_STATISTICS)
            gbx_hash_update(&hash, payload + at, PIECE_BYTES);
    }
    out_results->hash = gbx_hash_end(&hash);
    gbx_statistics_end(&statistics, &out_results->statistics);
}

/* Bit for bit, so that NaN equals NaN. */
static bool are_equal(const bench_results *a, const bench_results *b) {
    const gbx_statistics *left = &a->statistics;
    const gbx_statistics *right = &b->statistics;
    return a->hash.low == b->hash.low && a->hash.high == b->hash.high &&
           left->min_bits == right->min_bits && left->max_bits == right->max_bits &&
           gbx_word_f64(left->mean) == gbx_word_f64(right->mean) &&
           left->nan_count == right->nan_count && left->inf_count == right->inf_count &&
           left->zero_count == right->zero_count && left->subnormal_count == right->subnormal_count;
}

/* Compares the level with the plain one, and pieces with all at once. */
static bool is_right(gbx_cpu_level level, uint32_t dtype, const unsigned char *payload) {
    bench_results results = {0}, plain = {0};
    run(BENCH_BOTH, level, dtype, payload, &results);
    run(BENCH_STATISTICS, GBX_CPU_PLAIN, dtype, payload, &plain);
    plain.hash = gbx_hash_bytes(payload, PAYLOAD_BYTES);
    return are_equal(&results, &plain);
}

static int64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void measure(gbx_cpu_level level, unsigned char *copies, const unsigned char *payloads) {
    size_t slot = 0;
    bench_results results;
    for (int r = 0; r < REPETITIONS; ++r)
        for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
            for (bench_kind kind = BENCH_MEMCPY; kind < KINDS; ++kind) {
                slot = (slot + 1) % SLOTS;
                const unsigned char *payload = payloads + PAYLOAD_BYTES * slot;
                int64_t start_ns = processor_ns();
                if (kind == BENCH_MEMCPY)
                    memcpy(copies + PAYLOAD_BYTES * slot, payload, PAYLOAD_BYTES);
                else
                    run(kind, level, dtype, payload, &results);
                times_ns[kind][dtype][r] = processor_ns() - start_ns;
            }
}

static int compare_times(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double median_gb_per_s(bench_kind kind, uint32_t dtype) {
    int64_t *times = times_ns[kind][dtype];
    qsort(times, REPETITIONS, sizeof *times, compare_times);
    size_t middle = REPETITIONS / 2;
    return (double)PAYLOAD_BYTES / (double)times[middle];
}

static bool has_target(uint32_t dtype) {
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; ++i)
        if (targets[i] == dtype)
            return true;
    return false;
}

/* The target is for the level that is in use. */
static void print_table(gbx_cpu_level level, bool is_in_use) {
    bool is_met = true;
    printf("16 MiB of payload in pieces of 16 KiB, in no cache, GB/s, %s\n", level_names[level]);
    printf("%-14s %10s %8s %8s %8s %8s\n", "dtype", "statistics", "hash", "both", "memcpy",
           "/memcpy");
    for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
        double both = median_gb_per_s(BENCH_BOTH, dtype);
        double memcpy_speed = median_gb_per_s(BENCH_MEMCPY, dtype);
        bool is_below = is_in_use && has_target(dtype) && both / memcpy_speed < TARGET;
        printf("%-14s %10.2f %8.2f %8.2f %8.2f %8.2f%s\n", gbx_dtype_name(dtype),
               median_gb_per_s(BENCH_STATISTICS, dtype), median_gb_per_s(BENCH_HASH, dtype), both,
               memcpy_speed, both / memcpy_speed, is_below ? "  BELOW" : "");
        is_met = is_met && !is_below;
    }
    if (is_in_use)
        printf(
            "statistics and hash together >= %.2f of memcpy for float32, bfloat16, float16, int32, "
            "int8: %s\n",
            TARGET, is_met ? "ok" : "BELOW");
}

int main(int argc, char **argv) {
    gbx_cpu_level highest = gbx_statistics_level_detect();
    unsigned char *payloads = make_pool("payloads"), *copies = make_pool("copies");
    if (!payloads || !copies) {
        fprintf(stderr, "bench_statistics: cannot map two pools of %zu bytes\n",
                SLOTS * PAYLOAD_BYTES);
        return 2;
    }
    int printed = 0;
    for (gbx_cpu_level level = GBX_CPU_PLAIN; level <= highest && level <= GBX_CPU_AVX512;
         ++level) {
        if (argc > 1 && strcmp(argv[1], level_names[level]) != 0)
            continue;
        for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype)
            if (!is_right(level, dtype, payloads)) {
                fprintf(stderr, "bench_statistics: %s, %s: wrong results\n", gbx_dtype_name(dtype),
                        level_names[level]);
                return 1;
            }
        measure(level, copies, payloads);
        print_table(level, level == highest);
        ++printed;
    }
    if (printed == 0)
        fprintf(stderr, "bench_statistics: \"%s\" is not a level of this processor\n", argv[1]);
    return printed > 0 ? 0 : 2;
}
