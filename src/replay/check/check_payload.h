/* What a dump holds of the arguments of a task that is checked, and what it does not. */
#ifndef GBX_REPLAY_CHECK_CHECK_PAYLOAD_H
#define GBX_REPLAY_CHECK_CHECK_PAYLOAD_H

#include "replay/task.h"

/* Why the dump does not hold an output whole: "is truncated in the dump (--dump-max-tensor)". */
GBX_MUST_USE gbx_status gbx_check_missing_reason(gbx_entries *entries, uint64_t task, uint32_t slot,
                                                 const char **out_reason);

/* The first argument whose bytes before dispatch, or where `has_outputs` after completion, have not
 * the hash that was taken of them; NULL for none. What has no hash is taken as it is. */
GBX_MUST_USE gbx_status gbx_check_find_damage(gbx_entries *entries, const gbx_replay_task *task,
                                              bool has_outputs,
                                              const gbx_replay_argument **out_argument);

#endif
