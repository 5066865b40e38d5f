/* What went wrong in a call that did not come back, in a sentence. */
#ifndef GBX_REPLAY_ENGINE_ENGINE_FAULT_H
#define GBX_REPLAY_ENGINE_ENGINE_FAULT_H

#include "replay/engine/engine_child.h"

/* The reply is no answer. Fails with GBX_BAD_KERNEL where a kernel was being loaded. */
GBX_MUST_USE gbx_status gbx_replay_fault_tell(const gbx_replay_request *request,
                                              const gbx_replay_child *child,
                                              const gbx_replay_reply *reply, int64_t timeout_ns,
                                              gbx_replay_fault *out_fault);

#endif
