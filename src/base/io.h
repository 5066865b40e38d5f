/*
 * Complete reads and writes: they continue after signals and short transfers. Each returns 0 or an
 * errno, so that callers word their own messages. Also: waiting on file descriptors, and keeping
 * them away from the standard streams.
 */
#ifndef GBX_BASE_IO_H
#define GBX_BASE_IO_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

/* One read or write, retried after signals; returns what the system call returns. */
ssize_t gbx_read_some(int fd, void *to, size_t size);
ssize_t gbx_write_some(int fd, const void *from, size_t size);

/* Reads `size` bytes, or up to the end of the file: *out_size is less than `size` only at the end
 * of the file or after a failure. */
GBX_MUST_USE int gbx_read_all(int fd, void *to, size_t size, size_t *out_size);
GBX_MUST_USE int gbx_pread_all(int fd, void *to, size_t size, uint64_t offset, size_t *out_size);

/* EIO when the system makes no progress and gives no reason. */
GBX_MUST_USE int gbx_write_all(int fd, const void *from, size_t size);
GBX_MUST_USE int gbx_pwrite_all(int fd, const void *from, size_t size, uint64_t offset,
                                size_t *out_written);

/* fdatasync, retried after signals. */
GBX_MUST_USE int gbx_sync_data(int fd);

/*
 * Reads a regular file of at most `max_bytes`, zero terminated; the caller frees *out_bytes. Never
 * waits for a pipe. Fails with GBX_NOT_FOUND when there is no file, GBX_OUT_OF_RANGE when it is too
 * large, else GBX_IO or GBX_EXHAUSTED; the message names the path.
 */
GBX_MUST_USE gbx_status gbx_read_file(const char *path, size_t max_bytes, char **out_bytes,
                                      size_t *out_size);

/* poll, retried after signals without extending the timeout. Returns what poll returns. */
int gbx_poll(struct pollfd *watched, nfds_t count, int64_t timeout_ns);

/*
 * Moves a descriptor that took the place of a closed standard stream above 2, close-on-exec, so
 * that nothing printed ends up in it. Returns other descriptors, and -1, unchanged. Returns -1,
 * with errno set and the descriptor closed, when it fails.
 */
int gbx_above_standard_streams(int fd);

#endif
