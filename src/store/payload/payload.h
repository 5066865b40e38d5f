/*
 * Writing tensor_dump.bin. Pages bypass the page cache (O_DIRECT), except on file systems that
 * refuse that. One thread.
 *
 * Sequential calls without allocation ahead are as fast as any other way measured, provided that
 * each writes 1 MiB or more: 256 KiB loses a third of the speed, 64 KiB two thirds.
 */
#ifndef GBX_STORE_PAYLOAD_PAYLOAD_H
#define GBX_STORE_PAYLOAD_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define GBX_PAYLOAD_FILE "tensor_dump.bin"

/* Private to the functions. */
typedef struct gbx_payload {
    int fd;                  /* -1 when there is no file */
    bool is_direct;          /* bypasses the page cache */
    uint64_t reserved_bytes; /* where the next range begins */
    const char *folder;      /* tensor_dump/, for messages; borrowed */
    int error;               /* errno of the first write that failed; 0 */
} gbx_payload;

/* Without a file: writes fail, the rest works. */
void gbx_payload_init(gbx_payload *payload);

/*
 * Creates the file. `folder` is the name of `folder_fd` and outlives the payload. Fails with
 * GBX_INVALID_ARGUMENT when the file exists, GBX_IO when the system refuses.
 */
GBX_MUST_USE gbx_status gbx_payload_open(gbx_payload *payload, int folder_fd, const char *folder);
void gbx_payload_close(gbx_payload *payload);

/* Reserves a range of the file and returns its offset. The write takes the disk space. */
uint64_t gbx_payload_reserve(gbx_payload *payload, uint64_t bytes);

/* Fails with GBX_LOST; later writes may still be tried. */
GBX_MUST_USE gbx_status gbx_payload_write(gbx_payload *payload, uint64_t offset, const void *pages,
                                          uint64_t bytes);

/* Makes everything written durable, or fails with GBX_LOST. */
GBX_MUST_USE gbx_status gbx_payload_sync(gbx_payload *payload);

/* The end of a message about a failed write: what the user can do. Never NULL. */
const char *gbx_disk_advice(int error);

/* --- reading --- */

typedef struct gbx_payload_file {
    int fd; /* -1 when there is none */
    const char *path;
    uint64_t bytes; /* when it was opened */
} gbx_payload_file;

/* `path` is borrowed. GBX_NOT_FOUND when there is no such file, GBX_IO when it cannot be read or is
 * not a regular file. */
GBX_MUST_USE gbx_status gbx_payload_file_open(gbx_payload_file *file, const char *path);

/* May be one that is not open, with fd -1. */
void gbx_payload_file_close(gbx_payload_file *file);

/* Reads `size` bytes from `offset` on. Any thread. GBX_IO when the system refuses or the file
 * ends. */
GBX_MUST_USE gbx_status gbx_payload_file_read(const gbx_payload_file *file, uint64_t offset,
                                              void *bytes, size_t size);

/* A part of the file, mapped. */
typedef struct gbx_payload_map {
    const unsigned char *bytes;
    void *pages;
    size_t page_bytes;
} gbx_payload_map;

/*
 * Maps `size` bytes from `offset` on, which were in the file when it was opened: half the time of
 * reading when each byte is used once. SIGBUS when the file became shorter or the disk fails. False
 * when the file system cannot map; then read them.
 */
bool gbx_payload_file_map(const gbx_payload_file *file, uint64_t offset, size_t size,
                          gbx_payload_map *out_map);
void gbx_payload_map_release(const gbx_payload_map *map);

#endif
