/* Where the tensors of a task lie when it is called again. */
#ifndef GBX_REPLAY_ENGINE_ENGINE_LAYOUT_H
#define GBX_REPLAY_ENGINE_ENGINE_LAYOUT_H

#include "replay/task.h"

typedef struct gbx_replay_layout {
    uint64_t gm_base;
    uint64_t gm_bytes;    /* whole pages */
    uint64_t touch_bytes; /* of memory that the elements of all tensors take, at most */
    bool is_relocated;
    uint32_t count;                               /* arguments of the task */
    gbx_tensor tensors[GBX_REPLAY_MAX_ARGUMENTS]; /* of those that are tensors */
    bool is_tensor[GBX_REPLAY_MAX_ARGUMENTS];
    uint32_t roles[GBX_REPLAY_MAX_ARGUMENTS];
} gbx_replay_layout;

/*
 * At the addresses of the run, where they lie in what a chip of ours can have; else anew, in its
 * first slot of addresses. Fails with GBX_OUT_OF_RANGE where they do not fit, and GBX_EXHAUSTED
 * where they take more memory than the machine has.
 */
GBX_MUST_USE gbx_status gbx_replay_layout_make(const gbx_replay_task *task, uint64_t gm_bytes,
                                               gbx_replay_layout *out_layout);

#endif
