#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/export/internal.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/staging.h"

enum {
    WINDOW_BYTES = 1 << 18,
    RECORD_BYTES = 64, /* enough for the longest record without its name */
    CHECKSUM_AT = 14,  /* in a member's header */
    STREAM_BYTES = 1 << 18
};

/* Signatures. */
#define MEMBER_HEADER 0x04034b50u
#define DIRECTORY_ENTRY 0x02014b50u
#define LONG_END 0x06064b50u /* of the directory, with 64-bit numbers */
#define LONG_END_LOCATOR 0x07064b50u
#define END 0x06054b50u

#define LONG_EXTRA 1u                  /* the extra field that holds 64-bit numbers */
#define NEEDS_PLAIN 10u                /* the format version that a reader must support */
#define NEEDS_LONG 45u                 /* the version with 64-bit numbers */
#define MADE_BY (3u << 8 | NEEDS_LONG) /* Unix: entries hold its permissions */
#define PERMISSIONS (0100644u << 16)
#define NAME_IS_UTF8 (1u << 11)
#define FIRST_OF_1980 0x00210000u /* the earliest time of the format */
#define ELSEWHERE_16 0xffffu      /* the number is in a 64-bit form */
#define ELSEWHERE_32 0xffffffffu

typedef struct member {
    uint64_t offset; /* of its header */
    uint64_t bytes;
    uint32_t checksum;
    uint16_t name_bytes;
} member;

/* The window buffers the last bytes: small pieces are written together, and a small member gets its
 * checksum in its header before that is written. */
struct gbx_zip_writer {
    const char *name;
    const gbx_held_signals *signals;
    gbx_zip_limits limits;
    int fd;
    int error;        /* errno of the first failure; 0 */
    uint64_t start;   /* offset of the window in the file */
    size_t used;      /* bytes in the window */
    uint64_t written; /* bytes of the current member */
    member *members;
    size_t member_count;
    uint64_t member_room;
    char *names; /* of the members, one after the other */
    size_t name_bytes;
    uint64_t name_room;
    unsigned char window[WINDOW_BYTES];
};

/* --- the file --- */

static void write_at(gbx_zip_writer *zip, const unsigned char *bytes, size_t size,
                     uint64_t offset) {
    if (zip->error == 0 && zip->signals && gbx_signals_have_come(zip->signals))
        zip->error = EINTR;
    size_t written;
    if (zip->error == 0)
        zip->error = gbx_pwrite_all(zip->fd, bytes, size, offset, &written);
}

static void flush_window(gbx_zip_writer *zip) {
    write_at(zip, zip->window, zip->used, zip->start);
    zip->start += zip->used;
    zip->used = 0;
}

/* Never splits what fits into the window. */
static void append(gbx_zip_writer *zip, const void *bytes, size_t size) {
    if (size > WINDOW_BYTES - zip->used)
        flush_window(zip);
    if (size >= WINDOW_BYTES) {
        write_at(zip, bytes, size, zip->start);
        zip->start += size;
    } else if (size > 0) {
        memcpy(zip->window + zip->used, bytes, size);
        zip->used += size;
    }
}

static uint64_t position(const gbx_zip_writer *zip) {
    return zip->start + zip->used;
}

/* --- records --- */

typedef struct record {
    unsigned char bytes[RECORD_BYTES];
    size_t size;
} record;

static void put(record *to, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        to->bytes[to->size++] = (unsigned char)(number >> 8 * i);
}

/* `bytes` is a size, or an offset in the file. */
static bool is_long(const gbx_zip_writer *zip, uint64_t bytes) {
    return bytes >= zip->limits.bytes;
}

static void put_short(const gbx_zip_writer *zip, record *to, uint64_t bytes) {
    put(to, is_long(zip, bytes) ? ELSEWHERE_32 : bytes, 4);
}

/* The size twice, as packed and unpacked size, and the offset. */
static record extra_of(const gbx_zip_writer *zip, uint64_t bytes, uint64_t offset) {
    record extra = {.size = 0};
    size_t numbers = (is_long(zip, bytes) ? 2u : 0u) + (is_long(zip, offset) ? 1u : 0u);
    if (numbers > 0) {
        put(&extra, LONG_EXTRA, 2);
        put(&extra, 8 * numbers, 2);
    }
    for (size_t i = 0; is_long(zip, bytes) && i < 2; ++i)
        put(&extra, bytes, 8);
    if (is_long(zip, offset))
        put(&extra, offset, 8);
    return extra;
}

static bool is_ascii(const char *name, size_t size) {
    for (size_t i = 0; i < size; ++i)
        if ((unsigned char)name[i] > 127)
            return false;
    return true;
}

/* What a member's header and its entry in the directory have in common. */
static void put_member(const gbx_zip_writer *zip, record *to, const member *of, const char *name,
                       size_t extra_bytes) {
    put(to, extra_bytes > 0 ? NEEDS_LONG : NEEDS_PLAIN, 2);
    put(to, is_ascii(name, of->name_bytes) ? 0 : NAME_IS_UTF8, 2);
    put(to, 0, 2); /* stored */
    put(to, FIRST_OF_1980, 4);
    put(to, of->checksum, 4);
    put_short(zip, to, of->bytes);
    put_short(zip, to, of->bytes);
    put(to, of->name_bytes, 2);
    put(to, extra_bytes, 2);
}

static void append_directory_entry(gbx_zip_writer *zip, const member *of, const char *name) {
    record entry = {.size = 0};
    record extra = extra_of(zip, of->bytes, of->offset);
    put(&entry, DIRECTORY_ENTRY, 4);
    put(&entry, MADE_BY, 2);
    put_member(zip, &entry, of, name, extra.size);
    put(&entry, 0, 2); /* bytes of a comment */
    put(&entry, 0, 2); /* disk */
    put(&entry, 0, 2); /* not known to be text */
    put(&entry, PERMISSIONS, 4);
    put_short(zip, &entry, of->offset);
    append(zip, entry.bytes, entry.size);
    append(zip, name, of->name_bytes);
    append(zip, extra.bytes, extra.size);
}

static void append_long_end(gbx_zip_writer *zip, uint64_t start, uint64_t bytes) {
    uint64_t offset = position(zip);
    record end = {.size = 0};
    put(&end, LONG_END, 4);
    put(&end, 44, 8); /* the bytes that follow */
    put(&end, MADE_BY, 2);
    put(&end, NEEDS_LONG, 2);
    put(&end, 0, 8); /* this disk, and that of the directory */
    put(&end, zip->member_count, 8);
    put(&end, zip->member_count, 8);
    put(&end, bytes, 8);
    put(&end, start, 8);
    append(zip, end.bytes, end.size);
    record locator = {.size = 0};
    put(&locator, LONG_END_LOCATOR, 4);
    put(&locator, 0, 4); /* disk */
    put(&locator, offset, 8);
    put(&locator, 1, 4); /* disks */
    append(zip, locator.bytes, locator.size);
}

/* --- members --- */

gbx_zip_writer *gbx_zip_writer_create(int fd, const char *name, const gbx_held_signals *signals,
                                      gbx_zip_limits limits) {
    gbx_zip_writer *zip = calloc(1, sizeof *zip);
    if (zip) {
        zip->fd = fd;
        zip->name = name;
        zip->signals = signals;
        zip->limits = limits;
    }
    return zip;
}

void gbx_zip_writer_destroy(gbx_zip_writer *zip) {
    if (!zip)
        return;
    free(zip->members);
    free(zip->names);
    free(zip);
}

static gbx_status check_writes(const gbx_zip_writer *zip) {
    return zip->error == 0 ? NULL : gbx_output_fail(zip->name, zip->error);
}

gbx_status gbx_zip_writer_begin(gbx_zip_writer *zip, const char *name, uint64_t bytes) {
    size_t name_bytes = strlen(name);
    if (name_bytes > UINT16_MAX)
        return gbx_fail(GBX_UNSUPPORTED,
                        "writing %s: the name of a member has %zu bytes; a zip archive allows %d",
                        zip->name, name_bytes, UINT16_MAX);
    GBX_TRY(gbx_array_reserve(&zip->members, &zip->member_room, zip->member_count + 1,
                              "writing the directory of a zip archive"));
    GBX_TRY(gbx_array_reserve(&zip->names, &zip->name_room, zip->name_bytes + name_bytes,
                              "writing the directory of a zip archive"));
    memcpy(zip->names + zip->name_bytes, name, name_bytes);
    zip->name_bytes += name_bytes;
    zip->members[zip->member_count++] =
        (member){.offset = position(zip), .bytes = bytes, .name_bytes = (uint16_t)name_bytes};
    zip->written = 0;
    const member *of = &zip->members[zip->member_count - 1];
    record header = {.size = 0};
    record extra = extra_of(zip, of->bytes, 0);
    put(&header, MEMBER_HEADER, 4);
    put_member(zip, &header, of, name, extra.size);
    append(zip, header.bytes, header.size);
    append(zip, name, of->name_bytes);
    append(zip, extra.bytes, extra.size);
    return check_writes(zip);
}

int gbx_zip_writer_write(gbx_zip_writer *zip, const void *bytes, size_t size) {
    zip->written += size;
    append(zip, bytes, size);
    return zip->error;
}

gbx_status gbx_zip_writer_end(gbx_zip_writer *zip, uint32_t checksum) {
    member *ended = &zip->members[zip->member_count - 1];
    record field = {.size = 0};
    uint64_t offset = ended->offset + CHECKSUM_AT;
    ended->checksum = checksum;
    put(&field, checksum, 4);
    if (offset < zip->start)
        write_at(zip, field.bytes, field.size, offset);
    else
        memcpy(zip->window + (offset - zip->start), field.bytes, field.size);
    GBX_TRY(check_writes(zip));
    if (zip->written == ended->bytes)
        return NULL;
    return gbx_fail(GBX_INTERNAL,
                    "writing %s: member %zu has %llu bytes instead of %llu; please report this bug "
                    "in glassbox",
                    zip->name, zip->member_count, (unsigned long long)zip->written,
                    (unsigned long long)ended->bytes);
}

gbx_status gbx_zip_writer_finish(gbx_zip_writer *zip, uint64_t *out_bytes) {
    uint64_t start = position(zip);
    const char *name = zip->names;
    for (size_t i = 0; i < zip->member_count && zip->error == 0; ++i) {
        append_directory_entry(zip, &zip->members[i], name);
        name += zip->members[i].name_bytes;
    }
    /* The directory has `bytes` from `start` on. */
    uint64_t bytes = position(zip) - start;
    bool has_many = zip->member_count >= zip->limits.members;
    uint64_t count = has_many ? ELSEWHERE_16 : zip->member_count;
    if (has_many || is_long(zip, start) || is_long(zip, bytes))
        append_long_end(zip, start, bytes);
    record end = {.size = 0};
    put(&end, END, 4);
    put(&end, 0, 4); /* this disk, and that of the directory */
    put(&end, count, 2);
    put(&end, count, 2);
    put_short(zip, &end, bytes);
    put_short(zip, &end, start);
    put(&end, 0, 2); /* bytes of a comment */
    append(zip, end.bytes, end.size);
    flush_window(zip);
    *out_bytes = position(zip);
    return check_writes(zip);
}

/* --- members as streams --- */

struct gbx_archive {
    gbx_zip_writer *zip;
    FILE *stream; /* of the member */
    char *stream_buffer;
    const char *name;
    int fd;
    int error;      /* errno of the first failed write, or 0 */
    uLong checksum; /* of the member */
};

/* For fopencookie: any return value but `size` is a failure. */
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
        return gbx_fail_memory("writing %s", name);
    }
    archive->fd = fd;
    archive->name = name;
    archive->zip = gbx_zip_writer_create(fd, name, signals, GBX_ZIP_LIMITS);
    archive->stream_buffer = malloc(STREAM_BYTES);
    archive->stream = fopencookie(archive, "w", (cookie_io_functions_t){.write = write_stream});
    if (!archive->zip || !archive->stream_buffer || !archive->stream) {
        free_archive(archive);
        return gbx_fail_memory("writing %s", name);
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
