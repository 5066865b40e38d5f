/*
 * The platform interface: what a host can do with a chip. Code above asks a platform what it can do
 * (an entry that is NULL, or its capabilities), never which one it is.
 */
#ifndef GBX_HAL_HAL_H
#define GBX_HAL_HAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>

#include "base/status.h"

/* --- the link --- */

/*
 * What travels between the host and the chip besides global memory: one boot message with the file
 * descriptors, one answer, then a message a launch. Sequenced packets over a socket pair; the host
 * ends the chip by closing its end. Results come back through global memory and the doorbell.
 */

#define GBX_LINK_MAGIC UINT32_C(0x4c584247) /* "GBXL" */
#define GBX_LINK_VERSION UINT32_C(3)
#define GBX_LINK_SOCKET_FD 3 /* where the chip process finds its end of the link */

/* The chip is a process of its own; else it is threads of the host, which has mapped GM. */
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

/* Chip to host, once: it runs, or why it cannot run. */
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
    uint64_t dump_data_base; /* where the chip writes what is dumped; 0: no dump */
    uint32_t dump_flags;     /* what to dump */
    uint32_t reserved;
    uint64_t guard_data_base; /* guard/abi.h; 0: neither dump nor guard */
} gbx_launch_args;
_Static_assert(sizeof(gbx_launch_args) == 64, "layout of the launch arguments");

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

/* --- platforms --- */

typedef struct gbx_hal gbx_hal;

typedef struct gbx_hal_config {
    gbx_device_mode device;
    uint32_t blocks; /* within the limits of chip.h, as all below */
    uint32_t aicpu_threads;
    uint64_t gm_bytes;        /* a multiple of 4 KiB */
    const char *chip_program; /* NULL: searched for */
    /*
     * The chip itself, for GBX_DEVICE_THREAD: runs on a thread of its own until the link closes.
     * Returns false when a kernel does not end: the memory that it uses must then stay.
     */
    bool (*device_main)(int link_socket);
} gbx_hal_config;

typedef struct gbx_hal_caps {
    uint64_t gm_base;    /* first device address */
    uint64_t gm_bytes;   /* size of global memory */
    uint64_t gm_space;   /* its addresses: more than its size, because of zones */
    uint64_t gm_free;    /* bytes that are not allocated */
    uint64_t gm_largest; /* the most of gm_free in one piece */
} gbx_hal_caps;

/* The zone that the platform leaves behind an allocation where it can. */
enum { GBX_HAL_ZONE_BYTES = 512 };

/* What an allocation is for. */
typedef enum gbx_hal_use {
    GBX_HAL_OWN = 0,    /* glassbox's own data */
    GBX_HAL_BUFFER = 1, /* a buffer of kernels */
    GBX_HAL_REGION = 2  /* memory in which the chip allocates buffers itself */
} gbx_hal_use;

typedef struct gbx_hal_memory {
    uint64_t bytes;
    uint64_t uncounted_bytes; /* so many of them do not count against the size of the memory */
    uint64_t alignment;       /* a power of two */
    uint64_t spare_bytes;     /* more behind them, which do not count; set to what was given */
    gbx_hal_use use;
} gbx_hal_memory;

/* An allocation that lives. */
typedef struct gbx_hal_live {
    uint64_t address;
    uint64_t bytes;
    uint64_t spare_bytes; /* given */
    uint64_t zone_end;    /* nothing else is allocated up to here */
    uint64_t kept_first;  /* of bytes that the host has not written since the allocation, or that */
    uint64_t kept_end;    /* were there when a program was launched: all outside of these offsets */
    uint64_t number;      /* counts allocations */
    gbx_hal_use use;
} gbx_hal_live;

typedef void (*gbx_hal_visit)(void *context, const gbx_hal_live *live);

typedef enum gbx_hal_event_kind {
    GBX_HAL_RUNG, /* the chip rang the doorbell */
    GBX_HAL_TIMED_OUT,
    GBX_HAL_LOST /* the chip process has ended */
} gbx_hal_event_kind;

typedef struct gbx_hal_event {
    gbx_hal_event_kind kind;
    int exit_signal; /* LOST: the signal that ended it, or 0 */
    int exit_code;   /* LOST: else its exit code, or -1 when unknown */
} gbx_hal_event;

typedef struct gbx_hal_ops {
    const char *name;
    const char *description;

    /* Starts a chip. The caller owns it until close. */
    gbx_status (*open)(const gbx_hal_config *config, gbx_hal **out_hal);
    /* Ends it, killing what does not end by itself. */
    void (*close)(gbx_hal *hal);

    /* `alignment` is a power of two. Any thread. The second form is for all but GBX_HAL_OWN. */
    gbx_status (*alloc)(gbx_hal *hal, uint64_t bytes, uint64_t alignment, uint64_t *out_address);
    gbx_status (*alloc_with)(gbx_hal *hal, gbx_hal_memory *wanted, uint64_t *out_address);
    gbx_status (*free)(gbx_hal *hal, uint64_t address);
    /* Before a launch: calls `visit` (may be NULL) for all allocations, in ascending order. None of
     * their bytes is new from then on. */
    void (*visit)(gbx_hal *hal, gbx_hal_visit visit, void *context);

    /*
     * The range must lie inside one allocation. Any thread, also after the chip has failed. An
     * aligned copy of 8 bytes is one acquire load, or one release store, where the host maps GM,
     * and one system call elsewhere.
     */
    gbx_status (*copy_in)(gbx_hal *hal, uint64_t to, const void *from, uint64_t bytes);
    gbx_status (*copy_out)(gbx_hal *hal, void *to, uint64_t from, uint64_t bytes);

    /* NULL where the host cannot read and write global memory in place, while kernels run. Same
     * range rule; valid until the memory is freed. */
    gbx_status (*map)(gbx_hal *hal, uint64_t address, uint64_t bytes, void **out_pointer);

    /* Hands launch arguments to the chip; does not wait. GBX_DEVICE_LOST when there is none. */
    gbx_status (*launch)(gbx_hal *hal, const gbx_launch_args *args);
    /* Sleeps until the chip rings, ends, or the time is over. */
    gbx_status (*wait)(gbx_hal *hal, int64_t timeout_ns, gbx_hal_event *out_event);

    void (*caps)(const gbx_hal *hal, gbx_hal_caps *out_caps);
} gbx_hal_ops;

struct gbx_hal {
    const gbx_hal_ops *ops;
};

/* All platforms, by index; NULL past the last. The first is the default. */
const gbx_hal_ops *gbx_hal_platform(uint32_t index);

/* GBX_NOT_FOUND for an unknown name; the message lists the known ones. */
GBX_MUST_USE gbx_status gbx_hal_find(const char *name, const gbx_hal_ops **out_ops);

#endif
