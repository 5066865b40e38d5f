/* The file of a dump's payload, for reading. */
#ifndef GBX_STORE_PAYLOAD_PAYLOAD_FILE_H
#define GBX_STORE_PAYLOAD_PAYLOAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

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
