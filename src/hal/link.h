/*
 * What travels between the host and the chip besides global memory: one boot message with the file
 * descriptors, one answer, then a message a launch. Sequenced packets over a socket pair; the host
 * ends the chip by closing its end. Results come back through global memory and the doorbell.
 */
#ifndef GBX_HAL_LINK_H
#define GBX_HAL_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define GBX_LINK_MAGIC UINT32_C(0x4c584247) /* "GBXL" */
#define GBX_LINK_VERSION UINT32_C(2)
#define GBX_LINK_SOCKET_FD 3 /* where the chip process finds its end of the link */

/* The chip is a process of its own; else it is threads of the host, where GM is mapped already. */
enum { GBX_BOOT_IS_PROCESS = 1u << 0 };

/* Host to chip, with two file descriptors: global memory, doorbell to the host. */
typedef struct gbx_link_boot {
    uint32_t magic;
    uint32_t version;
    uint64_t gm_base;
    uint64_t gm_bytes;
    uint32_t blocks;
    uint32_t aicpu_threads;
    uint32_t flags; /* GBX_BOOT_... */
    uint32_t log_level;
    uint32_t host_pid;
    uint32_t reserved;
} gbx_link_boot;
_Static_assert(sizeof(gbx_link_boot) == 48, "layout of the boot message");

/* Chip to host, once: it runs, or why it cannot. */
typedef struct gbx_link_ready {
    uint32_t magic;
    uint32_t version;
    uint32_t code; /* gbx_code */
    char message[244];
} gbx_link_ready;
_Static_assert(sizeof(gbx_link_ready) == 256, "layout of the answer");

/* Host to chip: run one of the chip's entries. All addresses lie in global memory. */
typedef struct gbx_launch_args {
    uint64_t launch_id;     /* counts up from 1 */
    uint64_t control_block; /* where the chip reports */
    uint64_t payload;       /* what the entry works on */
    uint64_t payload_bytes;
    uint32_t entry;          /* which program of the chip */
    uint32_t timeout_ms;     /* of the chip's watchdog */
    uint64_t dump_data_base; /* what the chip tells of the run goes there; 0: it tells nothing */
    uint32_t dump_flags;     /* what of it */
    uint32_t reserved;
} gbx_launch_args;
_Static_assert(sizeof(gbx_launch_args) == 56, "layout of the launch arguments");

/* Sends one message, with `fd_count` (up to 2) descriptors. */
GBX_MUST_USE gbx_status gbx_link_send(int socket, const void *message, size_t bytes, const int *fds,
                                      size_t fd_count);

/*
 * Receives one message of exactly `bytes`; descriptors land in `out_fds`, close-on-exec and owned
 * by the caller. GBX_DEVICE_LOST when the other side has closed, GBX_BAD_FORMAT for any other
 * message.
 */
GBX_MUST_USE gbx_status gbx_link_receive(int socket, void *out_message, size_t bytes, int *out_fds,
                                         size_t fd_count);

#endif
