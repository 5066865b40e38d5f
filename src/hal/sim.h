/*
 * The simulated device that both platforms share: global memory in a memfd, the chip in a process
 * (or a thread) of its own, the link between. A platform adds what differs: whether the host maps
 * global memory, and how bytes are copied.
 */
#ifndef GBX_HAL_SIM_H
#define GBX_HAL_SIM_H

#include <pthread.h>
#include <sys/types.h>

#include "hal/gm_allocator.h"
#include "hal/hal.h"

typedef struct gbx_sim {
    gbx_hal hal;    /* first, so that a gbx_hal is a gbx_sim */
    bool is_mapped; /* the window holds global memory; else it is reserved and faults */
    gbx_device_mode device;

    int gm_fd;
    uint64_t gm_base;
    uint64_t gm_bytes;
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
GBX_MUST_USE gbx_status gbx_sim_free(gbx_hal *hal, uint64_t address);
GBX_MUST_USE gbx_status gbx_sim_launch(gbx_hal *hal, const gbx_launch_args *args);
GBX_MUST_USE gbx_status gbx_sim_wait(gbx_hal *hal, int64_t timeout_ns, gbx_hal_event *out_event);
void gbx_sim_caps(const gbx_hal *hal, gbx_hal_caps *out_caps);

/* Range check of a copy or a mapping. */
GBX_MUST_USE gbx_status gbx_sim_check_range(gbx_sim *sim, const char *doing, uint64_t address,
                                            uint64_t bytes);

/* The platforms. */
extern const gbx_hal_ops gbx_a2a3sim_ops;
extern const gbx_hal_ops gbx_a5sim_ops;

#endif
