/* Shared by the files of src/replay. */
#ifndef GBX_REPLAY_INTERNAL_H
#define GBX_REPLAY_INTERNAL_H

#include "replay/task.h"
#include "store/run/kept_run.h"

/* --- session.c --- */

/* Reads run.json of a dump; *out_kept is NULL if it has none, as dumps of other tools do. */
GBX_MUST_USE gbx_status gbx_replay_read_kept(const char *directory, gbx_kept_run **out_kept);

/* --- task.c, task_missing.c --- */

/* What a dump records about one slot of args[] of a task. */
typedef struct gbx_task_slot {
    bool is_known; /* a record, dispatch or signature says that the kernel gets it */
    bool is_tensor;
    uint32_t role;
    uint32_t dtype;
    bool has_view; /* of a tensor: */
    gbx_tensor view;
    bool has_bits; /* of a scalar: */
    uint64_t bits;
    bool has_before;       /* it has a record before dispatch: */
    uint64_t before;       /* its entry */
    uint16_t before_flags; /* of the record */
    uint64_t before_bytes; /* of payload */
    uint64_t before_offset;
    bool is_before_complete; /* the payload is complete */
    uint64_t after;          /* the entry after completion with complete payload, or NO_ENTRY */
    uint64_t after_offset;
    bool is_lost; /* a LOSS record names it: */
    uint32_t loss_cause;
    bool is_mismatched;  /* a SKIPPED record says that it is misdescribed */
    bool is_undescribed; /* the kernel's signature calls it a tensor, but it was never described */
} gbx_task_slot;

typedef struct gbx_task_slots {
    gbx_entries *entries;
    gbx_reader *reader;
    gbx_replay_task *task;
    bool has_task;
    bool is_skipped; /* its tensors are undescribed */
    bool has_done;
    bool has_in_flight;
    bool has_dispatches;
    bool has_signature;
    bool has_unnamed_losses;                       /* losses that do not name their task */
    bool has_early_losses;                         /* such losses before the end of the run */
    uint32_t count;                                /* one past the last known slot */
    gbx_task_slot slots[GBX_REPLAY_MAX_ARGUMENTS]; /* `count` of them are initialized */
} gbx_task_slots;

/* GBX_NOT_FOUND with a list of all that is missing; NULL if the task can be called. */
GBX_MUST_USE gbx_status gbx_task_slots_check(const gbx_task_slots *slots);

#endif
