#include "analysis/export/export_archive.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/export/zip_writer.h"
#include "base/staging.h"

enum { STREAM_BYTES = 1 << 18 };

struct gbx_archive {
    gbx_zip_writer *zip;
    FILE *stream; /* of the member */
    char *stream_buffer;
    const char *name;
    int fd;
    int error;      /* errno of the first write that failed; 0 */
    uLong checksum; /* of the member */
};

/* For fopencookie: anything but `size` is a failure. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
    gbx_archive *archive = cookie;
    archive->checksum = crc32_z(archive->checksum, (const Bytef *)bytes, size);
    archive->error = gbx_zip_writer_write(archive->zip, bytes, size);
    errno = archive->error;
    return archive->error ? 0 : (ssize_t)size;
}

/* Returns 0, or the errno of the close. */
static int free_archive(gbx_archive *archive) {
    if (archive->stream)
        fclose(archive->stream);
    free(archive->stream_buffer);
    gbx_zip_writer_destroy(archive->zip);
    int error = close(archive->fd) == 0 ? 0 : errno;
    free(archive);
    return error;
}

gbx_status gbx_archive_create(int fd, const char *name, const gbx_held_signals *signals,
                              gbx_archive **out_archive) {
    gbx_archive *archive = calloc(1, sizeof *archive);
    if (!archive) {
        close(fd);
        return gbx_fail(GBX_EXHAUSTED, "writing %s: the host is out of memory", name);
    }
    archive->fd = fd;
    archive->name = name;
    archive->zip = gbx_zip_writer_create(fd, name, signals, GBX_ZIP_LIMITS);
    archive->stream_buffer = malloc(STREAM_BYTES);
    archive->stream = fopencookie(archive, "w", (cookie_io_functions_t){.write = write_stream});
    if (!archive->zip || !archive->stream_buffer || !archive->stream) {
        free_archive(archive);
        return gbx_fail(GBX_EXHAUSTED, "writing %s: the host is out of memory", name);
    }
    setvbuf(archive->stream, archive->stream_buffer, _IOFBF, STREAM_BYTES);
    *out_archive = archive;
    return NULL;
}

gbx_status gbx_archive_begin(gbx_archive *archive, const char *name, uint64_t bytes,
                             FILE **out_stream) {
    archive->checksum = 0;
    *out_stream = archive->stream;
    return gbx_zip_writer_begin(archive->zip, name, bytes);
}

gbx_status gbx_archive_end(gbx_archive *archive, gbx_status status) {
    fflush(archive->stream);
    if (archive->error) {
        gbx_status_free(status);
        return gbx_output_fail(archive->name, archive->error);
    }
    return status ? status : gbx_zip_writer_end(archive->zip, (uint32_t)archive->checksum);
}

gbx_status gbx_archive_close(gbx_archive *archive, gbx_status status, uint64_t *out_bytes) {
    const char *name = archive->name;
    *out_bytes = 0;
    if (!status)
        status = gbx_zip_writer_finish(archive->zip, out_bytes);
    int error = free_archive(archive);
    return status || error == 0 ? status : gbx_output_fail(name, error);
}
