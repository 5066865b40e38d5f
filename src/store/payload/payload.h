/*
 * tensor_dump.bin while it is written. Pages go to the disk past the page cache (O_DIRECT), and
 * through it on file systems that refuse. One thread.
 *
 * One call after the other with nothing allocated ahead is as fast as any other way where it was
 * measured, provided that the calls are of 1 MiB and more: shorter ones lose, 256 KiB a third and
 * 64 KiB two thirds.
 */
#ifndef GBX_STORE_PAYLOAD_PAYLOAD_H
#define GBX_STORE_PAYLOAD_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define GBX_PAYLOAD_FILE "tensor_dump.bin"

/* The fields are the functions'. */
typedef struct gbx_payload {
    int fd;                  /* -1 when there is no file */
    bool is_direct;          /* past the page cache */
    uint64_t reserved_bytes; /* where the next range begins */
    const char *folder;      /* tensor_dump/, for messages; borrowed */
} gbx_payload;

/* No file: nothing can be written, the rest works. */
void gbx_payload_init(gbx_payload *payload);

/*
 * Makes the file in a folder that does not hold it. `folder` is the name of `folder_fd` and
 * outlives the payload. Fails with GBX_INVALID_ARGUMENT when it is there, GBX_IO when the system
 * refuses.
 */
GBX_MUST_USE gbx_status gbx_payload_open(gbx_payload *payload, int folder_fd, const char *folder);
void gbx_payload_close(gbx_payload *payload);

/* A range of the file: its offset. Room on the disk is taken by the write. */
uint64_t gbx_payload_reserve(gbx_payload *payload, uint64_t bytes);

/* Fails with GBX_LOST; later writes are tried nevertheless. */
GBX_MUST_USE gbx_status gbx_payload_write(gbx_payload *payload, uint64_t offset, const void *pages,
                                          uint64_t bytes);

/* All that was written is durable, or GBX_LOST. */
GBX_MUST_USE gbx_status gbx_payload_sync(gbx_payload *payload);

/* The end of a message about a write that failed: what its reader can do. Never NULL. */
const char *gbx_disk_advice(int error);

/* --- reading --- */

typedef struct gbx_payload_file {
    int fd; /* -1 where there is none */
    const char *path;
    uint64_t bytes; /* when it was opened */
} gbx_payload_file;

/* `path` is borrowed. GBX_NOT_FOUND where there is no such file, GBX_IO where it cannot be read or
 * is no regular file. */
GBX_MUST_USE gbx_status gbx_payload_file_open(gbx_payload_file *file, const char *path);

/* Takes one that is not open, with fd -1. */
void gbx_payload_file_close(gbx_payload_file *file);

/* `size` bytes from `offset` on. Any thread. GBX_IO where the system refuses or the file ends. */
GBX_MUST_USE gbx_status gbx_payload_file_read(const gbx_payload_file *file, uint64_t offset,
                                              void *bytes, size_t size);

/* A part of the file, mapped. */
typedef struct gbx_payload_map {
    const unsigned char *bytes;
    void *pages;
    size_t page_bytes;
} gbx_payload_map;

/*
 * `size` bytes from `offset` on, which lay in the file when it was opened, without a copy: half the
 * time of reading where each byte is looked at once. SIGBUS where the file has become shorter, or
 * the disk fails. False where the file system does not map; then they can be read.
 */
bool gbx_payload_file_map(const gbx_payload_file *file, uint64_t offset, size_t size,
                          gbx_payload_map *out_map);
void gbx_payload_map_release(const gbx_payload_map *map);

#endif
