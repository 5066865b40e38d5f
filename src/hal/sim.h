/*
 * The simulated device that both platforms share: global memory in a memfd, the chip in a process
 * (or a thread) of its own, the link between host and chip. A platform adds whether the host maps
 * global memory, and how bytes are copied.
 */
#ifndef GBX_HAL_SIM_H
#define GBX_HAL_SIM_H

#include <pthread.h>
#include <sys/types.h>

#include "hal/hal.h"

/* --- gm_allocator.c --- */

/*
 * Who owns which part of global memory. Best fit, neighbours joined again when freed; every call is
 * O(log n) of the live and free spans. Any thread.
 */
typedef struct gbx_gm_allocator gbx_gm_allocator;

/*
 * `base` is a multiple of the page size. `bytes` can be allocated at a time; the addresses are
 * `space_bytes`, at least as many. Where there are more, every allocation has a zone of
 * GBX_HAL_ZONE_BYTES behind it that is not allocated, as long as there is space.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_create(uint64_t base, uint64_t bytes, uint64_t space_bytes,
                                                gbx_gm_allocator **out_allocator);
void gbx_gm_allocator_destroy(gbx_gm_allocator *allocator);

/*
 * GBX_EXHAUSTED says how much was asked, how much is free and how much of that in one piece. 0
 * bytes get an address of their own; no byte of it may be used.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_alloc(gbx_gm_allocator *allocator, gbx_hal_memory *wanted,
                                               uint64_t *out_address);

/*
 * GBX_NOT_FOUND for an address that is not the start of a live allocation (a double free, too);
 * GBX_OUT_OF_RANGE for one outside global memory.
 */
GBX_MUST_USE gbx_status gbx_gm_allocator_free(gbx_gm_allocator *allocator, uint64_t address);

/* Fails unless [address, address + bytes) is in one live allocation; `doing` begins the message. */
GBX_MUST_USE gbx_status gbx_gm_allocator_check(gbx_gm_allocator *allocator, const char *doing,
                                               uint64_t address, uint64_t bytes);

/* The same for a write of the host: the bytes are no longer new. */
GBX_MUST_USE gbx_status gbx_gm_allocator_check_write(gbx_gm_allocator *allocator, const char *doing,
                                                     uint64_t address, uint64_t bytes);

/* As gbx_hal_ops.visit. */
void gbx_gm_allocator_visit(gbx_gm_allocator *allocator, gbx_hal_visit visit, void *context);

/* How much is free, and the most of it in one piece. */
void gbx_gm_allocator_room(gbx_gm_allocator *allocator, uint64_t *out_free, uint64_t *out_largest);

/* --- sim.c --- */

typedef struct gbx_sim {
    gbx_hal hal;    /* first: a gbx_hal is a gbx_sim */
    bool is_mapped; /* the window holds global memory; else it is reserved and faults */
    gbx_device_mode device;

    int gm_fd;
    uint64_t gm_base;
    uint64_t gm_bytes; /* that can be allocated */
    uint64_t gm_space; /* of the mapping: more, because of zones */
    gbx_gm_allocator *allocator;

    int link_socket;
    int doorbell_fd;
    pid_t pid; /* process: the chip's, 0 once it is reaped */
    int pid_fd;
    pthread_t thread; /* thread: the chip's first */
    bool has_thread;
    int device_socket;               /* thread: the chip's end of the link */
    bool (*device_main)(int socket); /* thread: the chip */
    gbx_hal_event ending;            /* LOST once the chip process has been seen to end */
} gbx_sim;

/* `maps_gm`: the host shares global memory at the chip's address. */
GBX_MUST_USE gbx_status gbx_sim_open(const gbx_hal_ops *ops, bool maps_gm,
                                     const gbx_hal_config *config, gbx_hal **out_hal);
void gbx_sim_close(gbx_hal *hal);

GBX_MUST_USE gbx_status gbx_sim_alloc(gbx_hal *hal, uint64_t bytes, uint64_t alignment,
                                      uint64_t *out_address);
GBX_MUST_USE gbx_status gbx_sim_alloc_with(gbx_hal *hal, gbx_hal_memory *wanted,
                                           uint64_t *out_address);
void gbx_sim_visit(gbx_hal *hal, gbx_hal_visit visit, void *context);
GBX_MUST_USE gbx_status gbx_sim_free(gbx_hal *hal, uint64_t address);
GBX_MUST_USE gbx_status gbx_sim_launch(gbx_hal *hal, const gbx_launch_args *args);
GBX_MUST_USE gbx_status gbx_sim_wait(gbx_hal *hal, int64_t timeout_ns, gbx_hal_event *out_event);
void gbx_sim_caps(const gbx_hal *hal, gbx_hal_caps *out_caps);

/* The platforms. */
extern const gbx_hal_ops gbx_a2a3sim_ops;
extern const gbx_hal_ops gbx_a5sim_ops;

#endif
