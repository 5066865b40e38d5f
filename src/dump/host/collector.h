/*
 * Takes what the device wrote (dump/abi.h) and hands it to the store. Nothing read from global
 * memory is trusted: what does not hold is a loss. One thread.
 *
 * A buffer is planned (its records checked, its payload given places in the file), then settled
 * (payload written, records journaled). Where the host maps global memory payload goes out of the
 * arena as it lies and the room is given back once it is written; elsewhere it is copied first and
 * the room given back at once.
 */
#ifndef GBX_DUMP_HOST_COLLECTOR_H
#define GBX_DUMP_HOST_COLLECTOR_H

#include "dump/host/region.h"
#include "store/writer.h"

typedef struct gbx_collector gbx_collector;

/* `region` and `store` are borrowed. */
GBX_MUST_USE gbx_status gbx_collector_create(const gbx_dump_region *region, gbx_store *store,
                                             bool is_deduplicated, gbx_collector **out_collector);
void gbx_collector_destroy(gbx_collector *collector);

/*
 * Takes a piece of memory from the system that payload will lie in, so that it need not wait for it
 * then: first touch is slow. False when all of it is there. For times when nothing else is to do.
 */
bool gbx_collector_touch_ahead(gbx_collector *collector);

/* Where the host maps: one buffer of each lane that has one; false when there was none. */
bool gbx_collector_drain(gbx_collector *collector);

/* ...and what there is of the buffers that the device is filling, for times when nothing else
 * comes; false when there was nothing new. */
bool gbx_collector_drain_open(gbx_collector *collector);

/* Where it does not: whether the device waits for a copy (any thread), and the copy. */
bool gbx_collector_is_asked(const gbx_collector *collector);
void gbx_collector_copy(gbx_collector *collector);

/* The device has ended, one way or another: everything that is left, also in buffers that it had
 * not handed over, and what its lanes counted. */
void gbx_collector_finish(gbx_collector *collector);

/* What the dump holds so far; `filter_hits` counts over all lanes once it is finished. */
typedef struct gbx_collector_totals {
    gbx_dump_totals dump;
    uint64_t tasks;
    uint64_t filter_hits[GBX_MAX_DUMP_FILTERS];
    bool has_ended; /* every lane told its end */
} gbx_collector_totals;

const gbx_collector_totals *gbx_collector_totals_of(const gbx_collector *collector);

#endif
