#include "store/payload_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

static gbx_status check_file(gbx_payload_file *file) {
    struct stat about;
    if (fstat(file->fd, &about) != 0)
        return gbx_fail(GBX_IO, "cannot read %s: %s", file->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return gbx_fail(GBX_IO, "cannot read %s: it is not a regular file", file->path);
    file->bytes = (uint64_t)about.st_size;
    return NULL;
}

gbx_status gbx_payload_file_open(gbx_payload_file *file, const char *path) {
    file->path = path;
    /* Not blocking: a pipe that nobody writes is refused, not waited for. */
    file->fd = gbx_above_standard_streams(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file->fd < 0)
        return gbx_fail(errno == ENOENT || errno == ENOTDIR ? GBX_NOT_FOUND : GBX_IO,
                        "cannot open the payload %s: %s", path, strerror(errno));
    gbx_status status = check_file(file);
    if (status)
        gbx_payload_file_close(file);
    return status;
}

void gbx_payload_file_close(gbx_payload_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

gbx_status gbx_payload_file_read(const gbx_payload_file *file, uint64_t offset, void *bytes,
                                 size_t size) {
    for (size_t done = 0; done < size;) {
        if (offset > INT64_MAX - done)
            return gbx_fail(GBX_IO, "cannot read %s at offset %" PRIu64 ": no file is that long",
                            file->path, offset);
        ssize_t got = pread(file->fd, (char *)bytes + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return gbx_fail(GBX_IO, "cannot read %zu bytes at offset %" PRIu64 " of %s: %s",
                            size - done, offset + done, file->path, strerror(errno));
        if (got == 0)
            return gbx_fail(GBX_IO,
                            "cannot read %zu bytes at offset %" PRIu64
                            " of %s: the file has become shorter since it was opened",
                            size - done, offset + done, file->path);
        done += (size_t)got;
    }
    return NULL;
}
