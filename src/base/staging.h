/*
 * Files and directories that appear under their name only when they are whole: they are made beside
 * it, as NAME.partial-XXXXXX, and renamed at the end, or removed. Nothing is synced: what is made
 * here can be made again.
 *
 * A write that fails, for a full disk as a rule, is GBX_LOST; a place that cannot be written to at
 * all is GBX_IO. One thread.
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
 * Whoever fills `stream` need not look at every call: the first failure is kept, and the close
 * tells of it. It is good to look at ferror(stream) now and then, to stop early. Once a signal has
 * come, writing fails too.
 */
typedef struct gbx_output {
    FILE *stream;
    uint64_t bytes; /* that are written; all after the close */
    int fd;
    int error;                       /* errno of the first write that failed; 0 */
    const gbx_held_signals *signals; /* NULL where none is held */
    char *buffer;                    /* of the stream */
} gbx_output;

/* Takes the descriptor, of an empty file. The output must not move until it is closed. */
GBX_MUST_USE gbx_status gbx_output_open(gbx_output *output, int fd,
                                        const gbx_held_signals *signals);

/* `name` is what a message calls the file. Consumes `status`, what failed meanwhile, and returns
 * the write that failed, or else it. */
GBX_MUST_USE gbx_status gbx_output_close(gbx_output *output, const char *name, gbx_status status);

/* The sentence about a write to `name` that failed with `error`. */
GBX_MUST_USE gbx_status gbx_output_fail(const char *name, int error);

/* --- staging --- */

typedef struct gbx_staging {
    char *path; /* where it is going to be, without slashes at the end */
    char *temporary;
    int directory; /* -1 for a file */
} gbx_staging;

/* The descriptor of the new file is the caller's. What is at `path` already, a regular file, is
 * replaced in the end; where it is a link, what it leads to. Fails with GBX_IO. */
GBX_MUST_USE gbx_status gbx_staging_create_file(const char *path, gbx_staging *out_staging,
                                                int *out_fd);

/* Fails with GBX_IO, also where the directory is there and cannot be written to. */
GBX_MUST_USE gbx_status gbx_staging_create_directory(const char *path, gbx_staging *out_staging);

/* Fails with GBX_IO where something is at `path` that a new directory could not replace: anything
 * but an empty one. */
GBX_MUST_USE gbx_status gbx_staging_check_free(const char *path);

/* A new file in the directory; fails with GBX_LOST. */
GBX_MUST_USE gbx_status gbx_staging_open(const gbx_staging *staging, const char *name, int *out_fd);

typedef enum gbx_publishing {
    GBX_PUBLISH_WHOLE, /* a file; a directory where none is, or an empty one */
    GBX_PUBLISH_MERGED /* a directory's files into one that is there, replacing some of the same
                          name */
} gbx_publishing;

/*
 * Gives it its name; or, with a failure of the caller's, which is returned, or its own, removes it.
 * Frees the staging either way. Hold signals until it has returned.
 */
GBX_MUST_USE gbx_status gbx_staging_finish(gbx_staging *staging, gbx_publishing how,
                                           gbx_status status);

/* Removes it, with all that is in it, and frees it. */
void gbx_staging_discard(gbx_staging *staging);

#endif
