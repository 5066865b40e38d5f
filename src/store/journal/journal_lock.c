#include "store/journal/journal_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "store/dump_path.h"

static gbx_status fail_open(const char *path, int error) {
    if (error == ENOENT)
        return gbx_fail(GBX_NOT_FOUND,
                        "%s is missing: a dump keeps its records there; nothing can be told "
                        "without it",
                        path);
    return gbx_fail(GBX_IO, "opening %s: %s", path, strerror(error));
}

static gbx_status fail_busy(const char *path, gbx_journal_use use) {
    if (use == GBX_JOURNAL_READS)
        return gbx_fail(GBX_UNSUPPORTED,
                        "%s is being written: the run is going on, or glassbox recover is at it; "
                        "wait until it has ended",
                        path);
    return gbx_fail(GBX_UNSUPPORTED,
                    "%s is in use: the run is going on, or another glassbox reads it; wait until "
                    "it has ended",
                    path);
}

gbx_status gbx_journal_lock(const char *directory, gbx_journal_use use, int *out_fd) {
    *out_fd = -1;
    char *path = gbx_dump_path_join(directory, "tensor_dump/tensor_dump.rec");
    if (!path)
        return gbx_fail(GBX_EXHAUSTED, "opening a journal: the host is out of memory");
    int access = use == GBX_JOURNAL_READS ? O_RDONLY : O_RDWR;
    /* Not blocking: who reads it refuses a pipe, and does not wait for one. */
    int fd = gbx_above_standard_streams(open(path, access | O_CLOEXEC | O_NONBLOCK));
    int operation = use == GBX_JOURNAL_READS ? LOCK_SH : LOCK_EX;
    gbx_status status = NULL;
    if (fd < 0)
        status = fail_open(path, errno);
    else if (flock(fd, operation | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = fail_busy(path, use);
    if (status && fd >= 0)
        close(fd);
    else
        *out_fd = fd;
    free(path);
    return status;
}
