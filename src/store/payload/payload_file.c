#include "store/payload/payload_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/io.h"

enum { PAGE_BYTES = 4096 };

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
    size_t done = 0;
    int error =
        offset > INT64_MAX - size ? EOVERFLOW : gbx_pread_all(file->fd, bytes, size, offset, &done);
    if (!error && done == size)
        return NULL;
    return gbx_fail(GBX_IO, "cannot read %zu bytes at offset %" PRIu64 " of %s: %s", size - done,
                    offset + done, file->path,
                    error ? strerror(error) : "the file has become shorter since it was opened");
}

bool gbx_payload_file_map(const gbx_payload_file *file, uint64_t offset, size_t size,
                          gbx_payload_map *out_map) {
    size_t before = offset % PAGE_BYTES;
    if (!gbx_range_is_inside(offset, size, file->bytes))
        return false;
    void *pages =
        mmap(NULL, before + size, PROT_READ, MAP_SHARED, file->fd, (off_t)(offset - before));
    if (pages == MAP_FAILED)
        return false;
    *out_map = (gbx_payload_map){(const unsigned char *)pages + before, pages, before + size};
    return true;
}

void gbx_payload_map_release(const gbx_payload_map *map) {
    munmap(map->pages, map->page_bytes);
}
