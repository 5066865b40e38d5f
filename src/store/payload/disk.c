#include "store/payload/disk.h"

#include <errno.h>
#include <unistd.h>

int gbx_disk_write(int fd, const void *bytes, size_t size, uint64_t offset, size_t *out_written) {
    *out_written = 0;
    while (*out_written < size) {
        ssize_t count = pwrite(fd, (const char *)bytes + *out_written, size - *out_written,
                               (off_t)(offset + *out_written));
        if (count > 0)
            *out_written += (size_t)count;
        else if (count == 0)
            return EIO; /* neither progress nor a reason: waiting for one would not end */
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int gbx_disk_sync(int fd) {
    while (fdatasync(fd) != 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

const char *gbx_disk_advice(int error) {
    switch (error) {
    case ENOSPC:
        return "make room on the disk, or choose a directory on another one";
    case EDQUOT:
        return "make room within the disk quota, or choose a directory on another disk";
    case EFBIG:
        return "raise the limit on the size of files (ulimit -f), or choose a directory on a file "
               "system that holds larger ones";
    case EIO:
        return "the disk is failing: look at the log of the kernel, and choose a directory on "
               "another disk";
    default:
        return "choose another directory";
    }
}
