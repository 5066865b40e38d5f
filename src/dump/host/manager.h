/*
 * The dump memory manager: a thread that takes what the device wrote while kernels run, or, where
 * the host cannot map global memory, whenever the device asks for it.
 */
#ifndef GBX_DUMP_HOST_MANAGER_H
#define GBX_DUMP_HOST_MANAGER_H

#include "dump/host/collector.h"

typedef struct gbx_dump_manager gbx_dump_manager;

/* Starts it; the collector and the store are its own until it is stopped. */
GBX_MUST_USE gbx_status gbx_dump_manager_start(gbx_collector *collector, gbx_store *store,
                                               bool is_by_batch, gbx_dump_manager **out_manager);

/* Looks whether the device asks for a copy. Any thread. */
void gbx_dump_manager_attend(gbx_dump_manager *manager);

/* The device has ended: takes everything that is left, and ends the thread. NULL is fine. */
void gbx_dump_manager_stop(gbx_dump_manager *manager);

#endif
