/* How fast the memory is on its own, with buffers that are not in a cache. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "view.h"

enum { ROUNDS = 5, LANES = 8 };

typedef uint64_t vector __attribute__((vector_size(64)));

static void *map_buffer(uint64_t bytes) {
    void *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (buffer != MAP_FAILED)
        return buffer;
    fprintf(stderr, "bench_view: no memory for a buffer of %llu bytes\n",
            (unsigned long long)bytes);
    return NULL;
}

double measure_copy(const setting *how) {
    uint64_t bytes = how->memory_bytes;
    void *from = map_buffer(bytes);
    void *to = from ? map_buffer(bytes) : NULL;
    double best = 0;
    for (int i = 0; to && i < ROUNDS; ++i) {
        int64_t start_ns = gbx_clock_ns();
        memcpy(to, from, bytes);
        double speed = (double)bytes / (double)(gbx_clock_ns() - start_ns);
        best = speed > best ? speed : best;
    }
    if (from)
        munmap(from, bytes);
    if (to)
        munmap(to, bytes);
    return best;
}

static uint64_t add_all(const vector *words, size_t count) {
    vector sums[4] = {{0}};
    for (size_t i = 0; i < count; i += 4)
        for (size_t j = 0; j < 4; ++j)
            sums[j] += words[i + j];
    vector sum = sums[0] + sums[1] + sums[2] + sums[3];
    uint64_t total = 0;
    for (size_t i = 0; i < LANES; ++i)
        total += sum[i];
    return total;
}

double measure_reading(const setting *how) {
    uint64_t bytes = how->memory_bytes;
    uint64_t *buffer = map_buffer(bytes);
    double best = 0;
    if (!buffer)
        return 0;
    memset(buffer, 1, bytes); /* real pages: pages of zeros may all be the same */
    for (int i = 0; i < ROUNDS; ++i) {
        int64_t start_ns = gbx_clock_ns();
        uint64_t sum = add_all((const vector *)(const void *)buffer, bytes / sizeof(vector));
        double speed = (double)bytes / (double)(gbx_clock_ns() - start_ns);
        if (!expect(sum == bytes / 8 * UINT64_C(0x0101010101010101), "a sum of ones"))
            break;
        best = speed > best ? speed : best;
    }
    munmap(buffer, bytes);
    return best;
}
