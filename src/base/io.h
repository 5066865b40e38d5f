/*
 * Reading and writing all of it: calls that go on after signals and after transfers that were cut
 * short. Each returns 0 or the errno of what failed, so that callers word their own sentences. And
 * file descriptors: waiting on them, and keeping them away from the standard streams.
 */
#ifndef GBX_BASE_IO_H
#define GBX_BASE_IO_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

/* One read or write that signals do not end; what the system call returns. */
ssize_t gbx_read_some(int fd, void *to, size_t size);
ssize_t gbx_write_some(int fd, const void *from, size_t size);

/* Reads until `size` bytes are there or the file ends: *out_size is less than `size` only at the
 * end of the file, or after a failure. */
GBX_MUST_USE int gbx_read_all(int fd, void *to, size_t size, size_t *out_size);
GBX_MUST_USE int gbx_pread_all(int fd, void *to, size_t size, uint64_t offset, size_t *out_size);

/* EIO where the system makes no progress and gives no reason. */
GBX_MUST_USE int gbx_write_all(int fd, const void *from, size_t size);
GBX_MUST_USE int gbx_pwrite_all(int fd, const void *from, size_t size, uint64_t offset,
                                size_t *out_written);

/* fdatasync that signals do not end. */
GBX_MUST_USE int gbx_sync_data(int fd);

/*
 * A whole regular file of at most `max_bytes`, zero terminated; *out_bytes is freed by the caller.
 * Never waits for a pipe. Fails with GBX_NOT_FOUND where there is none, GBX_OUT_OF_RANGE where it
 * is too large, else GBX_IO or GBX_EXHAUSTED, with a sentence that names the path.
 */
GBX_MUST_USE gbx_status gbx_read_file(const char *path, size_t max_bytes, char **out_bytes,
                                      size_t *out_size);

/* poll that signals neither end nor prolong. Returns what poll does: 0 when the time is over. */
int gbx_poll(struct pollfd *watched, nfds_t count, int64_t timeout_ns);

/*
 * Moves a descriptor that took the place of a closed standard stream above 2, close-on-exec, so
 * that nothing that is printed ends up in it. Others, and -1, are given back as they are. Returns
 * -1, with errno set and the descriptor closed, when it cannot.
 */
int gbx_above_standard_streams(int fd);

#endif
