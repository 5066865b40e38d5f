/*
 * Does what a task leaves depend on certain bytes that it is given? Calls it a few times, each time
 * with something else in these bytes, and compares what it leaves. A value that only has to be
 * larger than another, say, may not show.
 */
#ifndef GBX_REPLAY_DEPENDENCE_H
#define GBX_REPLAY_DEPENDENCE_H

#include "analysis/memory_map.h"
#include "replay/session.h"

typedef enum gbx_dependence_answer {
    GBX_DEPENDENCE_UNKNOWN = 0, /* the task cannot be called, its views cannot be followed, or its
                                   outputs are too large */
    GBX_DEPENDENCE_BROKEN = 1,  /* it did not complete, or fails with what the dump has, too */
    GBX_DEPENDENCE_LATE = 2,    /* a call did not return in time */
    GBX_DEPENDENCE_FAILS = 3,   /* the bytes decide whether it crashes, or waits forever */
    GBX_DEPENDENCE_NONE = 4,
    GBX_DEPENDENCE_SOME = 5
} gbx_dependence_answer;

/* Ranges of addresses of the run. */
typedef struct gbx_address_range {
    uint64_t begin;
    uint64_t end;
} gbx_address_range;

typedef struct gbx_address_ranges {
    gbx_address_range *items;
    size_t count;
    uint64_t capacity;
} gbx_address_ranges;

typedef struct gbx_dependence {
    gbx_dependence_answer answer;
    gbx_address_ranges depends; /* elements of outputs that depend on the bytes */
    gbx_address_ranges kept;    /* elements that hold what they held before */
} gbx_dependence;

/* Whether the task could be called, and did not fail. */
static inline bool gbx_dependence_is_known(const gbx_dependence *dependence) {
    return dependence->answer == GBX_DEPENDENCE_SOME || dependence->answer == GBX_DEPENDENCE_NONE;
}

/* Asks about the bytes whose owner in the map has a bit of `owners`. Those that only have a bit of
 * `others` are the same in each call, and no NaN, which would hide the rest. `kept` are elements of
 * inouts that were asked about. The caller frees the answer, in any case. */
GBX_MUST_USE gbx_status gbx_dependence_ask(gbx_replay_session *session, uint64_t task,
                                           const gbx_memory_map *map, uint64_t owners,
                                           uint64_t others, gbx_dependence *out_dependence);

/* Asks of a task that did not complete, and fails when it is called again, whether it returns with
 * 0 or 1 in the bytes whose owner has a bit of `owners`: FAILS, or NONE. UNKNOWN if it does not
 * fail with what the dump has. */
GBX_MUST_USE gbx_status gbx_dependence_ask_end(gbx_replay_session *session, uint64_t task,
                                               const gbx_memory_map *map, uint64_t owners,
                                               gbx_dependence *out_dependence);

/* Asks which elements of an output or inout a task does not write: `kept`; SOME if there are any.
 */
GBX_MUST_USE gbx_status gbx_dependence_find_kept(gbx_replay_session *session, uint64_t task,
                                                 uint32_t slot, gbx_dependence *out_dependence);
void gbx_dependence_free(gbx_dependence *dependence);

#endif
