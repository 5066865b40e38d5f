#include "store/payload/disk.h"

#include <errno.h>

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
