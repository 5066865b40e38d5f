/* File descriptors: waiting on them, and keeping them away from the standard streams. */
#ifndef GBX_BASE_DESCRIPTOR_H
#define GBX_BASE_DESCRIPTOR_H

#include <poll.h>
#include <stdint.h>

/*
 * poll that signals do not prolong: the time is over when it is over. Returns what poll does, with
 * 0 for a time that is over.
 */
int gbx_poll(struct pollfd *watched, nfds_t count, int64_t timeout_ns);

/*
 * Moves a descriptor that took the place of a closed standard stream above 2, close-on-exec, so
 * that nothing that is printed ends up in it. Others, and -1, are given back as they are. Returns
 * -1, with errno set and the descriptor closed, when it cannot.
 */
int gbx_above_standard_streams(int fd);

#endif
