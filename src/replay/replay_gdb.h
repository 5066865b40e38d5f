/* One task under gdb. */
#ifndef GBX_REPLAY_REPLAY_GDB_H
#define GBX_REPLAY_REPLAY_GDB_H

#include "replay/replay_result.h"
#include "store/run/kept_run.h"

/*
 * Starts gdb on this terminal with the calls of the task, stopped at kernel_entry, and comes back
 * when it has ended. `kept` tells where sources are that are no longer where they were; NULL for
 * none. Fails with GBX_NOT_FOUND where there is no gdb.
 */
GBX_MUST_USE gbx_status gbx_replay_gdb(const gbx_replay_job *job, const gbx_kept_run *kept,
                                       int *out_exit_code);

#endif
