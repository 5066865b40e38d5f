/* Shared by the files of overlaps: buffers, who uses them, and what they really write. */
#ifndef GBX_DIAGNOSE_OVERLAPS_H
#define GBX_DIAGNOSE_OVERLAPS_H

#include "analysis/memory_map.h"
#include "base/clock.h"
#include "diagnose/internal.h"
#include "replay/dependence.h"

#define GBX_COMPARING "comparing what tasks write"

enum { GBX_BUFFER_TASKS_MAX = 2048 };

/* A task reads or writes a view of a buffer. */
typedef struct gbx_touch {
    uint64_t base; /* of the buffer */
    uint64_t place;
    uint64_t task;
    uint64_t entry;
    uint32_t slot;
    bool is_write;
    gbx_tensor view;
    gbx_address_ranges written; /* really */
} gbx_touch;

typedef struct gbx_shared_buffer {
    uint64_t base;
    size_t first; /* in o->accesses */
    size_t count; /* 0: too many tasks use it */
    uint64_t users;
    uint64_t last_user;
    bool is_known; /* what its users write, and their order */
    bool is_apart;
    size_t sharing; /* pairs that share a byte, among the findings */
} gbx_shared_buffer;

/* All accesses of one task to a buffer. */
typedef struct gbx_buffer_user {
    size_t first;
    size_t count;
} gbx_buffer_user;

typedef struct gbx_overlaps {
    gbx_inquiry *q;
    gbx_replay_session session;
    gbx_shared_buffer *buffers; /* by base */
    size_t buffer_count;
    uint64_t buffer_capacity;
    gbx_touch *accesses; /* by buffer, then in graph order */
    size_t access_count;
    uint64_t access_capacity;
    gbx_buffer_user *users; /* of one buffer */
    bool *before;           /* GBX_BUFFER_TASKS_MAX for each: whether it waits for another user */
    gbx_memory_map *map;
    int64_t deadline_ns;
    uint64_t ranges_kept;
} gbx_overlaps;

static inline bool gbx_audit_is_about_pair(const gbx_audit_finding *f) {
    return f->kind == GBX_AUDIT_READ_TOO_EARLY || f->kind == GBX_AUDIT_OVERLAPPING_WRITES;
}

static inline bool gbx_overlaps_are_late(const gbx_overlaps *o) {
    return gbx_clock_ns() > o->deadline_ns;
}

/* --- overlaps_share.c --- */

/* Finds out which buffers are apart; of the others, adds pairs that share a byte to the audit. */
GBX_MUST_USE gbx_status gbx_overlaps_ask(gbx_overlaps *o);

/* Whether two users of a buffer without order share bytes, and how; `later` comes second in graph
 * order. */
GBX_MUST_USE gbx_status gbx_overlaps_compare(gbx_overlaps *o, const gbx_shared_buffer *b,
                                             const gbx_buffer_user *earlier,
                                             const gbx_buffer_user *later,
                                             gbx_audit_finding *out_finding, bool *out_do);

#endif
