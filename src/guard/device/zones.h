/*
 * Red zones: every buffer has one behind it, and what lies before a buffer is the zone behind
 * another, or behind a buffer of 0 bytes that exists for its zone. Which buffer owns an address is
 * looked up in a table by granules of 512 bytes. All of it is in memory that kernels cannot reach.
 */
#ifndef GBX_GUARD_DEVICE_ZONES_H
#define GBX_GUARD_DEVICE_ZONES_H

#include "guard/device/guard.h"

/* A buffer and the zone behind it; the place in the array is its first granule. */
typedef struct gbx_zone {
    _Atomic uint64_t first; /* the zone's bytes; none where first == end */
    _Atomic uint64_t end;
    _Atomic uint64_t clean;      /* moment at which it was last known to be whole */
    _Atomic uint32_t is_claimed; /* by the thread that repairs it or gives its memory away */
    /* The buffer, for those who hold the claim. */
    uint32_t place;
    uint32_t index;
    uint32_t owner_func;
    uint64_t owner_task;
    _Atomic uint64_t address; /* everybody reads it */
    uint64_t bytes;
} gbx_zone;
static_assert(sizeof(gbx_zone) == 64, "a zone is one cache line");

/* Granules that buffers of the chip's own allocations reach. */
typedef struct gbx_zone_range {
    uint64_t first;
    uint64_t end;
} gbx_zone_range;

typedef struct gbx_zones {
    uint64_t gm_base;
    uint64_t granule_count;
    /* Of each granule: 1 + the first granule of its buffer; 0: none. The builder writes them while
     * others look up neighbours of what they check. */
    _Atomic uint32_t *owners;
    gbx_zone *zones;
    uint32_t *fixed; /* first granules of the host's buffers, and of those before them */
    uint32_t fixed_count;
    gbx_zone_range ranges[2]; /* of GBX_PLACE_DEVICE_MALLOC, and of GBX_PLACE_OUTPUT */
    gbx_history *history;
    const gbx_finding_sink *sink;
    _Atomic uint64_t work; /* counts, so that a watchdog sees progress */
    const gbx_probe_request *request;
} gbx_zones;

/* Memory that the tables need. */
uint64_t gbx_zones_bytes(uint64_t gm_bytes);

/* Lays out zeroed memory. All pointers are kept. */
void gbx_zones_init(gbx_zones *zones, void *memory, const gbx_probe_request *request,
                    gbx_history *history, const gbx_finding_sink *sink);

/* The buffers of the host, which lie in ascending order: fills zones and poisons new memory. False
 * where one is invalid. Before anything runs. */
bool gbx_zones_add_fixed(gbx_zones *zones, const gbx_guard_buffer *buffers, uint32_t count);

/* A buffer that the builder has made; what lay there before is free. Builder's thread. */
void gbx_zones_add(gbx_zones *zones, const gbx_probe_buffer *buffer);

/* Fetches what gbx_zones_check_task will read of the tables, while the task's kernels run. */
void gbx_zones_fetch_task(const gbx_zones *zones, const gbx_sched_task *task);

/* Checks the zones of all buffers that a task has arguments in; reports and repairs. */
void gbx_zones_check_task(gbx_zones *zones, const gbx_sched_task *task);

/* Checks all. */
void gbx_zones_check_all(gbx_zones *zones);

#endif
