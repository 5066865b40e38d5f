#include "cli/export_archive.h"

#include <errno.h>
#include <minizip/zip.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/staging.h"

enum { WINDOW_BYTES = 1 << 20, STREAM_BYTES = 1 << 18 };

#define ZIP64_BYTES UINT64_C(0xffffffff) /* from here on a size needs the 64-bit form */
#define UNIX_VERSION 45                  /* of the format: the one with 64-bit forms */
#define FIRST_OF_1980 0x00210000u /* the earliest date there is: archives of one dump are equal */

/* The library writes headers a few bytes at a time, and goes back to a member's header when its
 * checksum is known: what is in the window does not go to the system twice. */
struct gbx_archive {
    zipFile zip;
    FILE *stream; /* of the member */
    char *stream_buffer;
    const char *name;
    const gbx_held_signals *signals;
    int fd;
    int error;      /* errno of the first write that failed; 0 */
    uint64_t at;    /* where the next byte goes */
    uint64_t start; /* of the window in the file */
    size_t used;    /* of it */
    unsigned char window[WINDOW_BYTES];
};

/* --- the file --- */

static void write_at(gbx_archive *archive, const unsigned char *bytes, size_t size,
                     uint64_t offset) {
    if (archive->error == 0 && archive->signals && gbx_signals_have_come(archive->signals))
        archive->error = EINTR;
    while (size > 0 && archive->error == 0) {
        ssize_t written = pwrite(archive->fd, bytes, size, (off_t)offset);
        if (written < 0 && errno != EINTR)
            archive->error = errno;
        if (written < 0)
            continue;
        bytes += written;
        size -= (size_t)written;
        offset += (uint64_t)written;
    }
}

static void flush_window(gbx_archive *archive) {
    write_at(archive, archive->window, archive->used, archive->start);
    archive->start += archive->used;
    archive->used = 0;
}

static size_t minimum(uint64_t a, uint64_t b) {
    return (size_t)(a < b ? a : b);
}

/* As much as lies before the window, or in it; returns how much. */
static size_t put_some(gbx_archive *archive, const unsigned char *bytes, size_t size) {
    if (archive->at < archive->start) {
        size_t before = minimum(size, archive->start - archive->at);
        write_at(archive, bytes, before, archive->at);
        return before;
    }
    if (archive->at - archive->start == WINDOW_BYTES)
        flush_window(archive);
    size_t offset = (size_t)(archive->at - archive->start);
    size_t inside = minimum(size, WINDOW_BYTES - offset);
    memcpy(archive->window + offset, bytes, inside);
    if (offset + inside > archive->used)
        archive->used = offset + inside;
    return inside;
}

static uLong write_file(voidpf opaque, voidpf file, const void *bytes, uLong size) {
    gbx_archive *archive = file;
    (void)opaque;
    for (uLong done = 0; done < size && archive->error == 0;) {
        size_t put = put_some(archive, (const unsigned char *)bytes + done, size - done);
        archive->at += put;
        done += put;
    }
    return archive->error ? 0 : size;
}

static voidpf open_file(voidpf opaque, const void *name, int mode) {
    (void)name;
    (void)mode;
    return opaque;
}

/* Nothing is read back. */
static uLong read_file(voidpf opaque, voidpf file, void *bytes, uLong size) {
    (void)opaque;
    (void)file;
    (void)bytes;
    (void)size;
    return 0;
}

static ZPOS64_T tell_file(voidpf opaque, voidpf file) {
    (void)opaque;
    return ((const gbx_archive *)file)->at;
}

static long seek_file(voidpf opaque, voidpf file, ZPOS64_T offset, int origin) {
    gbx_archive *archive = file;
    (void)opaque;
    uint64_t end = archive->start + archive->used;
    uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                    : origin == ZLIB_FILEFUNC_SEEK_CUR ? archive->at
                                                       : end;
    if (from + offset > end)
        return -1;
    archive->at = from + offset;
    return 0;
}

static int close_file(voidpf opaque, voidpf file) {
    (void)opaque;
    flush_window(file);
    return ((const gbx_archive *)file)->error != 0;
}

static int error_of_file(voidpf opaque, voidpf file) {
    (void)opaque;
    return ((const gbx_archive *)file)->error != 0;
}

/* --- the stream of a member --- */

static ssize_t write_stream(void *cookie, const char *bytes, size_t size) {
    gbx_archive *archive = cookie;
    if (archive->error || zipWriteInFileInZip(archive->zip, bytes, (unsigned)size) != ZIP_OK) {
        if (archive->error == 0)
            archive->error = EIO;
        errno = archive->error;
        return 0;
    }
    return (ssize_t)size;
}

/* --- the archive --- */

static bool open_parts(gbx_archive *archive) {
    zlib_filefunc64_def functions = {.zopen64_file = open_file,
                                     .zread_file = read_file,
                                     .zwrite_file = write_file,
                                     .ztell64_file = tell_file,
                                     .zseek64_file = seek_file,
                                     .zclose_file = close_file,
                                     .zerror_file = error_of_file,
                                     .opaque = archive};
    archive->stream_buffer = malloc(STREAM_BYTES);
    archive->stream = fopencookie(archive, "w", (cookie_io_functions_t){.write = write_stream});
    if (archive->stream && archive->stream_buffer)
        setvbuf(archive->stream, archive->stream_buffer, _IOFBF, STREAM_BYTES);
    archive->zip = zipOpen2_64("", APPEND_STATUS_CREATE, NULL, &functions);
    return archive->stream && archive->stream_buffer && archive->zip;
}

/* Returns 0, or the errno of the close. */
static int free_archive(gbx_archive *archive) {
    if (archive->stream)
        fclose(archive->stream);
    free(archive->stream_buffer);
    int error = close(archive->fd) == 0 ? 0 : errno;
    free(archive);
    return error;
}

gbx_status gbx_archive_create(int fd, const char *name, const gbx_held_signals *signals,
                              gbx_archive **out_archive) {
    gbx_archive *archive = calloc(1, sizeof *archive);
    if (archive) {
        archive->fd = fd;
        archive->name = name;
        archive->signals = signals;
        if (open_parts(archive)) {
            *out_archive = archive;
            return NULL;
        }
        if (archive->zip)
            zipClose(archive->zip, NULL);
        free_archive(archive);
    } else {
        close(fd);
    }
    return gbx_fail(GBX_EXHAUSTED, "writing %s: the host is out of memory", name);
}

static gbx_status fail_archive(const gbx_archive *archive) {
    return gbx_output_fail(archive->name, archive->error ? archive->error : EIO);
}

gbx_status gbx_archive_begin(gbx_archive *archive, const char *name, uint64_t bytes,
                             FILE **out_stream) {
    const zip_fileinfo about = {.dosDate = FIRST_OF_1980, .external_fa = 0100644u << 16};
    int result = zipOpenNewFileInZip4_64(archive->zip, name, &about, NULL, 0, NULL, 0, NULL, 0, 0,
                                         0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0,
                                         3u << 8 | UNIX_VERSION, 0, bytes >= ZIP64_BYTES);
    *out_stream = archive->stream;
    return result == ZIP_OK && archive->error == 0 ? NULL : fail_archive(archive);
}

gbx_status gbx_archive_end(gbx_archive *archive, gbx_status status) {
    bool is_written = fflush(archive->stream) == 0;
    is_written = zipCloseFileInZip(archive->zip) == ZIP_OK && is_written;
    if (is_written && archive->error == 0)
        return status;
    gbx_status_free(status);
    return fail_archive(archive);
}

gbx_status gbx_archive_close(gbx_archive *archive, gbx_status status, uint64_t *out_bytes) {
    bool is_written = zipClose(archive->zip, NULL) == ZIP_OK && archive->error == 0;
    *out_bytes = archive->start;
    if (!status && !is_written)
        status = fail_archive(archive);
    const char *name = archive->name;
    int error = free_archive(archive);
    return status || error == 0 ? status : gbx_output_fail(name, error);
}
