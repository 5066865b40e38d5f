/*
 * A file that is written from its beginning to its end, past the page cache where the file system
 * can, and appears under its name only when all of it is durable. Full chunks are written by a
 * thread of its own while the next one is filled. One thread fills a file. The same text can go to
 * a stream instead, chunk by chunk.
 */
#ifndef GBX_STORE_MANIFEST_MANIFEST_FILE_H
#define GBX_STORE_MANIFEST_MANIFEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"

/* What may be put between two calls of gbx_manifest_file_room. */
#define GBX_MANIFEST_ROOM_BYTES 65536u

typedef struct gbx_manifest_writer gbx_manifest_writer;

typedef struct gbx_manifest_file {
    char *at;    /* where the next byte goes: the caller's, within the room */
    char *limit; /* from here on the chunk is full, and the room begins */
    gbx_manifest_writer *writer;
} gbx_manifest_file;

/* Makes directory/name.tmp. */
GBX_MUST_USE gbx_status gbx_manifest_file_create(const char *directory, const char *name,
                                                 gbx_manifest_file *out_file);

/* Writes to a descriptor that is open, a pipe as well, and stays the caller's; `name` stands for it
 * in messages. */
GBX_MUST_USE gbx_status gbx_manifest_file_stream(int fd, const char *name,
                                                 gbx_manifest_file *out_file);

/* Whether a write has failed, for a long loop to stop early; gbx_manifest_file_finish tells it. Of
 * a stream alone: a file's writes may be under way. */
bool gbx_manifest_file_has_failed(const gbx_manifest_file *file);

/* Hands the chunk over and gives the next one, with what is beyond the chunk's end in it. */
void gbx_manifest_file_turn(gbx_manifest_file *file);

/* Room for GBX_MANIFEST_ROOM_BYTES at `at`. */
static inline void gbx_manifest_file_room(gbx_manifest_file *file) {
    if (__builtin_expect(file->at >= file->limit, 0))
        gbx_manifest_file_turn(file);
}

/* Text of any length. Leaves the whole room. */
void gbx_manifest_file_put(gbx_manifest_file *file, const char *text, size_t size);

/* Writes the rest, syncs, renames to its name; or, with a failure of the caller's or its own, takes
 * the temporary file away. Of a stream, writes the rest. Frees the file either way, and returns the
 * first failure. */
GBX_MUST_USE gbx_status gbx_manifest_file_finish(gbx_manifest_file *file, gbx_status status);

#endif
