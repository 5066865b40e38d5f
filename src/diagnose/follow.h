/*
 * Shared by the files of follow: the outputs of which tasks leave elements unwritten, and the map
 * of what depends on these elements.
 */
#ifndef GBX_DIAGNOSE_FOLLOW_H
#define GBX_DIAGNOSE_FOLLOW_H

#include "analysis/accesses.h"
#include "analysis/memory_map.h"
#include "diagnose/internal.h"
#include "replay/dependence.h"

#define GBX_FOLLOWING "following unwritten elements"

enum {
    GBX_FOLLOW_SETS = 31, /* that are followed in one pass over the graph */
    GBX_FOLLOW_NO_SET =
        GBX_FOLLOW_SETS /* its bits are those of all other sources: they may hide what is asked */
};

/* In the map: what nobody wrote, and what was computed from it. */
#define GBX_DIRECT(set) (UINT64_C(1) << (set))
#define GBX_COMPUTED(set) (GBX_DIRECT(set) << GBX_COMPUTED_SHIFT)
#define GBX_COMPUTED_SHIFT 32
#define GBX_DIRECT_MASK UINT64_C(0xffffffff)

/* The sets of some bits. */
static inline uint64_t gbx_follow_sets_of(uint64_t bits) {
    return (bits | bits >> GBX_COMPUTED_SHIFT) & GBX_DIRECT_MASK;
}

/* What comes out of an output that is not completely written. */
typedef enum gbx_follow_outcome {
    GBX_FOLLOW_MATTERS,  /* or cannot be followed */
    GBX_FOLLOW_HARMLESS, /* changes no result */
    GBX_FOLLOW_LATE,     /* not known: a call with other values did not return in time */
    GBX_FOLLOW_UNSEEN,   /* not known: the run failed, or a task that reads it fails in any case */
    GBX_FOLLOW_ENDS      /* a task that ended the run does not fail with other values there */
} gbx_follow_outcome;

/* An output of which a task leaves elements as they were; in order of tasks. */
typedef struct gbx_follow_part {
    uint64_t task;
    const uint32_t *func_ids;
    uint32_t slot;
    uint32_t set;    /* in this pass; GBX_FOLLOW_NO_SET */
    uint64_t result; /* of the check, with this finding: a source; or a note */
    uint32_t item;
    bool is_source;
    gbx_follow_outcome outcome;
    uint64_t ended_task; /* GBX_FOLLOW_ENDS */
    bool is_far;         /* does not reach the first wrong element, not even as stale values */
    bool has_begun;      /* in this pass: the view of the output is known */
    bool has_gaps;       /* were asked for, and are kept */
    gbx_dependence gaps;
} gbx_follow_part;

/* Sources from `first` on in f->sources. */
typedef struct gbx_follow_set {
    size_t first;
    size_t count;
    bool is_exact; /* is followed by itself; else what depends on any set that a task reads counts
                      as depending on all of them, which takes one question */
    gbx_follow_outcome otherwise; /* if it is not followed */
} gbx_follow_set;

/* The first task whose outputs depend on what a set left unwritten. */
typedef struct gbx_follow_user {
    bool is_known;
    gbx_tensor_access access; /* its input, and the first such element of it */
} gbx_follow_user;

typedef struct gbx_follow {
    gbx_inquiry *q;
    gbx_entries *entries;
    gbx_replay_session session;
    gbx_follow_part *parts;
    size_t part_count;
    uint64_t part_capacity;
    gbx_follow_part **sources; /* by kernel and slot */
    size_t source_count;
    gbx_follow_set *queue;
    size_t queue_count;
    uint64_t queue_capacity;
    gbx_memory_map *taint;
    gbx_memory_map *written;             /* owner 1: by a task */
    bool is_exact;                       /* this pass, see gbx_follow_set */
    uint64_t asked;                      /* sets in this pass, as in GBX_DIRECT */
    uint64_t reached;                    /* a result, or cannot be followed; likewise: */
    uint64_t late;                       /* a call that did not return in time */
    uint64_t unseen;                     /* what was not known because the run failed */
    uint64_t ending;                     /* a task that did not complete, and then does */
    uint64_t ended[GBX_FOLLOW_SETS + 1]; /* this task, of each set */
    gbx_follow_user users[GBX_FOLLOW_SETS + 1];
    int64_t deadline_ns;
    uint64_t gaps_kept;
    bool has_been_late; /* in this round */
    bool has_failed;    /* the run */
    bool has_golden;    /* of the run; and */
    bool has_passed;    /* it is satisfied */
    bool is_second;     /* asks for suspects among harmless sources */
} gbx_follow;

/* Sets that cannot be followed further. */
static inline void gbx_follow_give_up(gbx_follow *f, uint64_t sets) {
    *(f->has_failed ? &f->unseen : &f->reached) |= sets;
}

/* --- follow_task.c --- */

/* What one task makes of the map: asks what depends on what it reads, and adds what it leaves
 * unwritten. `line` is NULL if it was not asked by the check; `parts` are its own. */
GBX_MUST_USE gbx_status gbx_follow_task(gbx_follow *f, const gbx_graph_task *task,
                                        const gbx_check_line *line, gbx_follow_part *parts,
                                        size_t part_count);

/* --- follow_results.c --- */

/* Which sets reach a result of the run, or, the second time, its first wrong element. */
GBX_MUST_USE gbx_status gbx_follow_look_at_results(gbx_follow *f);

#endif
