/*
 * For LD_PRELOAD: simulates a failing disk. Counts, from 1, the calls that write, sync, rename or
 * create a file whose path contains DUMP_DISK_FILE. Calls DUMP_DISK_FIRST to DUMP_DISK_LAST are
 * treated by DUMP_DISK_DEED: "kill" ends the process before the call, "half" after half of a write,
 * "full" and "broken" fail with ENOSPC and EIO, "slow" waits for DUMP_DISK_MS, "count" changes
 * nothing. If DUMP_DISK_COUNT names a file, the number of calls is written to it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Atomic long calls;

__attribute__((destructor)) static void leave_count(void) {
    const char *path = getenv("DUMP_DISK_COUNT");
    FILE *file = path && calls ? fopen(path, "w") : NULL;
    if (file)
        fprintf(file, "%ld\n", calls);
    if (file)
        fclose(file);
}

static long number_of(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static int is_meant(const char *path) {
    const char *part = getenv("DUMP_DISK_FILE");
    return part && path && strstr(path, part) != NULL;
}

static int is_meant_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    return is_meant(path);
}

/* The deed that applies to this call; "" for none. */
static const char *meet(void) {
    long number = ++calls;
    const char *deed = getenv("DUMP_DISK_DEED");
    if (!deed || number < number_of("DUMP_DISK_FIRST", 1) ||
        number > number_of("DUMP_DISK_LAST", 1L << 60))
        return "";
    if (!strcmp(deed, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(deed, "slow")) {
        long ms = number_of("DUMP_DISK_MS", 0);
        struct timespec time = {ms / 1000, ms % 1000 * 1000000};
        nanosleep(&time, NULL);
    }
    return deed;
}

static int fails(const char *deed) {
    if (strcmp(deed, "full") && strcmp(deed, "broken"))
        return 0;
    errno = deed[0] == 'f' ? ENOSPC : EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    const char *deed = is_meant_fd(fd) ? meet() : "";
    if (!strcmp(deed, "half")) {
        (void)!REAL(pwrite)(fd, bytes, size / 2 / 512 * 512, offset);
        kill(getpid(), SIGKILL);
    }
    return fails(deed) ? -1 : REAL(pwrite)(fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    return is_meant_fd(fd) && fails(meet()) ? -1 : REAL(write)(fd, bytes, size);
}

int fsync(int fd) {
    return is_meant_fd(fd) && fails(meet()) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return is_meant_fd(fd) && fails(meet()) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t size) {
    return is_meant_fd(fd) && fails(meet()) ? -1 : REAL(ftruncate)(fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t size) {
    return is_meant_fd(fd) && fails(meet()) ? -1 : REAL(fallocate)(fd, mode, offset, size);
}

int rename(const char *from, const char *to) {
    return is_meant(to) && fails(meet()) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    return is_meant(path) && fails(meet()) ? -1 : REAL(mkdir)(path, mode);
}

FILE *fopen(const char *path, const char *mode) {
    return mode[0] == 'w' && is_meant(path) && fails(meet()) ? NULL : REAL(fopen)(path, mode);
}

int fclose(FILE *file) {
    int fails_now = is_meant_fd(fileno(file)) && fails(meet());
    int error = errno;
    int result = REAL(fclose)(file);
    errno = fails_now ? error : errno;
    return fails_now ? EOF : result;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return flags & O_CREAT && is_meant(path) && fails(meet())
               ? -1
               : REAL(openat)(folder, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return flags & O_CREAT && is_meant(path) && fails(meet()) ? -1 : REAL(open)(path, flags, mode);
}
