/*
 * Files and directories that appear under their name only when complete: they are created beside
 * it, as NAME.partial-XXXXXX, and renamed or removed at the end. Nothing is synced: what is written
 * here can be written again.
 *
 * A failed write (usually a full disk) is GBX_LOST; a place that cannot be written at all is
 * GBX_IO. One thread.
 */
#ifndef GBX_BASE_STAGING_H
#define GBX_BASE_STAGING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/held_signals.h"
#include "base/status.h"

/* --- a file being written --- */

/*
 * The writer of `stream` need not check every call: the first failure is kept, and the close
 * returns it. Check ferror(stream) now and then to stop early. Writing also fails once a signal has
 * come.
 */
typedef struct gbx_output {
    FILE *stream;
    uint64_t bytes; /* written so far; all after the close */
    int fd;
    int error;                       /* errno of the first write that failed; 0 */
    const gbx_held_signals *signals; /* NULL where none is held */
    char *buffer;                    /* of the stream */
} gbx_output;

/* Takes ownership of the descriptor of an empty file. The output must not move until it is
 * closed. */
GBX_MUST_USE gbx_status gbx_output_open(gbx_output *output, int fd,
                                        const gbx_held_signals *signals);

/* `name` is the file's name in messages. Consumes `status`, the caller's own failure if any;
 * returns the write that failed, or else `status`. */
GBX_MUST_USE gbx_status gbx_output_close(gbx_output *output, const char *name, gbx_status status);

/* The failure for a write to `name` that failed with `error`. */
GBX_MUST_USE gbx_status gbx_output_fail(const char *name, int error);

/* --- staging --- */

typedef struct gbx_staging {
    char *path; /* its final path, without trailing slashes */
    char *temporary;
    int directory; /* -1 for a file */
} gbx_staging;

/* The caller owns the descriptor of the new file. A regular file already at `path` is replaced at
 * the end; through a link, its target is. Fails with GBX_IO. */
GBX_MUST_USE gbx_status gbx_staging_create_file(const char *path, gbx_staging *out_staging,
                                                int *out_fd);

/* Fails with GBX_IO, also when the directory exists and cannot be written. */
GBX_MUST_USE gbx_status gbx_staging_create_directory(const char *path, gbx_staging *out_staging);

/* Fails with GBX_IO when anything but an empty directory is at `path`: a new directory could not
 * replace it. */
GBX_MUST_USE gbx_status gbx_staging_check_free(const char *path);

/* A new file in the directory; fails with GBX_LOST. */
GBX_MUST_USE gbx_status gbx_staging_open(const gbx_staging *staging, const char *name, int *out_fd);

typedef enum gbx_publishing {
    GBX_PUBLISH_WHOLE, /* a file; a directory where there is none or an empty one */
    GBX_PUBLISH_MERGED /* a directory's files into an existing one, replacing files of the same name
                        */
} gbx_publishing;

/*
 * Renames it to its final path, or removes it when `status` or the rename failed, and returns that
 * failure. Frees the staging either way. Hold signals until it has returned.
 */
GBX_MUST_USE gbx_status gbx_staging_finish(gbx_staging *staging, gbx_publishing how,
                                           gbx_status status);

/* Removes it with its contents, and frees it. */
void gbx_staging_discard(gbx_staging *staging);

#endif
