/* A request as the file that glassbox-call reads. */
#ifndef GBX_REPLAY_ENGINE_ENGINE_CALL_H
#define GBX_REPLAY_ENGINE_ENGINE_CALL_H

#include "replay/engine/engine.h"
#include "replay/engine/engine_memory.h"

/* GBX_INVALID_ARGUMENT where the request asks for what the task does not have. */
GBX_MUST_USE gbx_status gbx_replay_request_check(const gbx_replay_request *request);

/* How many dispatches a request makes, and which of the task's the first one is. */
uint32_t gbx_replay_request_count(const gbx_replay_request *request);
uint32_t gbx_replay_request_first(const gbx_replay_request *request);

/* The head of the call, and its dispatches, which the caller frees, without what memory holds. */
GBX_MUST_USE gbx_status gbx_replay_request_describe(const gbx_replay_request *request,
                                                    const gbx_replay_layout *layout,
                                                    uint32_t chip_blocks, gbx_call_file *out_file,
                                                    gbx_call_dispatch **out_dispatches);

/*
 * Writes the call, from the file's start on; `memory` holds what it begins with, or NULL where the
 * child has it already. The file gets the length of it.
 */
GBX_MUST_USE gbx_status gbx_replay_request_write(const gbx_replay_request *request,
                                                 const gbx_replay_layout *layout,
                                                 uint32_t chip_blocks,
                                                 const gbx_replay_memory *memory, int fd);

#endif
