/*
 * What dispatches do to one integer, called one at a time in both orders: do they add to it?
 *
 * An atomic counter and a plain store by several dispatches look alike in one order. In both orders
 * they do not: an addition adds the same whatever was there, a store does not. The rule is at
 * gbx_tally_is_counter. No correct atomic addition may be taken for a store.
 */
#ifndef GBX_REPLAY_WORKER_TALLY_H
#define GBX_REPLAY_WORKER_TALLY_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of hashes stand for lists: forward adds to them, backward subtracts, and equal lists leave
 * 0. */
typedef struct gbx_tally {
    uint64_t at;        /* of the caller: where the integer lies */
    uint64_t mask;      /* of its bits */
    uint64_t start;     /* its value before the pass, like the next of this pass */
    uint64_t value;     /* now */
    uint64_t last_hash; /* of the last that changed it, and by how much */
    uint64_t who;       /* which dispatches change it */
    uint64_t amounts;   /* by how much, by dispatch */
    uint64_t turns;     /* by how much, by turn: the first to change it, the second... */
    uint64_t ends;      /* the part of `amounts` of the first and the last to change it */
    uint64_t firsts[2]; /* forward: the amounts of the first and the second turn */
    uint64_t last_amount;
    uint32_t counts[2]; /* how often it changes, in each pass */
    uint32_t second;    /* forward: the second that changes it */
    uint32_t last[2];   /* the last that changes it, in each pass */
    bool is_backward;   /* the pass */
    bool alternates;    /* forward: by +a, -a, +a... */
    bool is_level;      /* forward: from the second turn on always by the same; a reset excepted */
    bool is_reset[2];   /* the value ends as it began, in each pass */
} gbx_tally;

/* An integer of 32 or 64 bits. */
gbx_tally gbx_tally_of(uint64_t at, uint32_t bits);

/* Two passes, forward first: the value before it, the value after each dispatch, the end. */
void gbx_tally_begin(gbx_tally *tally, bool is_backward, uint64_t value);
void gbx_tally_see(gbx_tally *tally, uint32_t dispatch, uint64_t value);
void gbx_tally_end(gbx_tally *tally);

/*
 * After both passes. Several dispatches change it, the same ones in both orders, and
 *   - each adds the same in both orders; or
 *   - likewise, but the last to change it puts back what was there at first, as the last to arrive
 *     does, in both orders; or
 *   - whoever comes first adds several times as much as each of the others (but for a last one that
 *     puts back): it takes all tiles of work, and the others find none.
 * Why a store by several is none of these: for the second, the one that stores the first value is
 * called first in one order, and changes nothing there. For the third, what grows in both orders is
 * constant. The first is met by stores of two values in turn, w v w, over v: see below.
 */
bool gbx_tally_is_counter(const gbx_tally *tally);

/* A counter that may be stores of two values in turn. It is one if the dispatch `second`, called
 * first of all, does not change it: it then stores what is there. */
bool gbx_tally_is_doubtful(const gbx_tally *tally);

#endif
