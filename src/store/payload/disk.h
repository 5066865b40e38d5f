/* Writing to files whose disk may fill up or fail. */
#ifndef GBX_STORE_PAYLOAD_DISK_H
#define GBX_STORE_PAYLOAD_DISK_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes all of `bytes` at `offset`; goes on after signals and after writes that were cut short.
 * Returns 0 or the errno of what failed, with *out_written bytes in the file by then.
 */
int gbx_disk_write(int fd, const void *bytes, size_t size, uint64_t offset, size_t *out_written);

/* fdatasync that signals do not end. Returns 0 or the errno. */
int gbx_disk_sync(int fd);

/* The end of a message about a write that failed: what its reader can do. Never NULL. */
const char *gbx_disk_advice(int error);

#endif
