#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

ssize_t gbx_read_some(int fd, void *to, size_t size) {
    return TEMP_FAILURE_RETRY(read(fd, to, size));
}

ssize_t gbx_write_some(int fd, const void *from, size_t size) {
    return TEMP_FAILURE_RETRY(write(fd, from, size));
}

int gbx_read_all(int fd, void *to, size_t size, size_t *out_size) {
    *out_size = 0;
    while (*out_size < size) {
        ssize_t got = gbx_read_some(fd, (char *)to + *out_size, size - *out_size);
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        *out_size += (size_t)got;
    }
    return 0;
}

int gbx_pread_all(int fd, void *to, size_t size, uint64_t offset, size_t *out_size) {
    *out_size = 0;
    while (*out_size < size) {
        ssize_t got = TEMP_FAILURE_RETRY(
            pread(fd, (char *)to + *out_size, size - *out_size, (off_t)(offset + *out_size)));
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        *out_size += (size_t)got;
    }
    return 0;
}

int gbx_write_all(int fd, const void *from, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t put = gbx_write_some(fd, (const char *)from + done, size - done);
        if (put <= 0)
            return put < 0 ? errno : EIO;
        done += (size_t)put;
    }
    return 0;
}

int gbx_pwrite_all(int fd, const void *from, size_t size, uint64_t offset, size_t *out_written) {
    *out_written = 0;
    while (*out_written < size) {
        ssize_t put =
            TEMP_FAILURE_RETRY(pwrite(fd, (const char *)from + *out_written, size - *out_written,
                                      (off_t)(offset + *out_written)));
        if (put <= 0)
            return put < 0 ? errno : EIO;
        *out_written += (size_t)put;
    }
    return 0;
}

int gbx_sync_data(int fd) {
    return TEMP_FAILURE_RETRY(fdatasync(fd)) == 0 ? 0 : errno;
}

static gbx_status read_open_file(int fd, const char *path, size_t max_bytes, char **out_bytes,
                                 size_t *out_size) {
    struct stat about;
    if (fstat(fd, &about) != 0)
        return gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return gbx_fail(GBX_IO, "cannot read %s: it is %s", path,
                        S_ISDIR(about.st_mode) ? "a directory" : "not a regular file");
    if ((uint64_t)about.st_size > max_bytes)
        return gbx_fail(GBX_OUT_OF_RANGE, "%s has %jd bytes; at most %zu are allowed", path,
                        (intmax_t)about.st_size, max_bytes);
    size_t capacity = (size_t)about.st_size;
    char *bytes = malloc(capacity + 1);
    if (!bytes)
        return gbx_fail_memory("reading the %zu bytes of %s", capacity, path);
    int error = gbx_read_all(fd, bytes, capacity, out_size);
    if (error) {
        free(bytes);
        return gbx_fail(GBX_IO, "cannot read %s: %s", path, strerror(error));
    }
    bytes[*out_size] = '\0';
    *out_bytes = bytes;
    return NULL;
}

gbx_status gbx_read_file(const char *path, size_t max_bytes, char **out_bytes, size_t *out_size) {
    /* Not blocking: a pipe without a writer is refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "cannot open %s: %s", path,
                        strerror(errno));
    gbx_status status = read_open_file(fd, path, max_bytes, out_bytes, out_size);
    close(fd);
    return status;
}

int gbx_poll(struct pollfd *watched, nfds_t count, int64_t timeout_ns) {
    int64_t start_ns = gbx_clock_ns();
    int ready;
    do {
        int64_t left_ns = timeout_ns - (gbx_clock_ns() - start_ns);
        int64_t left_ms = left_ns > 0 ? (left_ns - 1) / GBX_NS_PER_MS + 1 : 0;
        ready = poll(watched, count, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

int gbx_above_standard_streams(int fd) {
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}
