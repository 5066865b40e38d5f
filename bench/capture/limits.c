/* How fast the disk and the memory are on their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture.h"

enum { COPIES = 5 };

static bool write_all(const setting *how, int fd, uint64_t write_bytes) {
    for (uint64_t at = 0; at < how->total_bytes; at += write_bytes)
        if (pwrite(fd, how->source + at % how->source_bytes, write_bytes, (off_t)at) !=
            (ssize_t)write_bytes)
            return false;
    return fsync(fd) == 0;
}

static double measure_writes(const setting *how, uint64_t write_bytes) {
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/direct", how->work);
    int64_t start_ns = gbx_clock_ns();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0666);
    bool is_written = fd >= 0 && write_all(how, fd, write_bytes);
    int error = errno;
    double seconds = (double)(gbx_clock_ns() - start_ns) * 1e-9;
    if (fd >= 0)
        close(fd);
    unlink(path);
    if (is_written)
        return (double)how->total_bytes * 1e-9 / seconds;
    fprintf(stderr, "bench_capture: writing %s directly: %s; choose a --directory on a disk\n",
            path, strerror(error));
    return 0;
}

/* The better of two sizes, which depends on the disk and its load. */
double measure_disk(const setting *how) {
    double small = measure_writes(how, MIB);
    double large = small > 0 ? measure_writes(how, 8 * MIB) : 0;
    return small > large ? small : large;
}

double measure_memcpy(const setting *how) {
    uint64_t bytes = how->source_bytes;
    unsigned char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    double best = 0;
    if (copy == MAP_FAILED) {
        fprintf(stderr, "bench_capture: no memory for a copy of the source\n");
        return 0;
    }
    for (int i = 0; i < COPIES; ++i) {
        int64_t start_ns = gbx_clock_ns();
        memcpy(copy, how->source, bytes);
        double speed = (double)bytes / (double)(gbx_clock_ns() - start_ns);
        best = speed > best ? speed : best;
    }
    munmap(copy, bytes);
    return best;
}
