/*
 * The guard of one run on the host: tells the chip which buffers there are, and reads what it
 * found. Also the way of findings for a run whose guard is off, but which has a dump.
 */
#ifndef GBX_GUARD_HOST_SESSION_H
#define GBX_GUARD_HOST_SESSION_H

#include <stdbool.h>

#include <glassbox/orchestration.h>

#include "guard/abi.h"
#include "hal/hal.h"

typedef struct gbx_guard_session gbx_guard_session;

/* `hal` is borrowed. Fails when the chip has no room. */
GBX_MUST_USE gbx_status gbx_guard_session_begin(gbx_hal *hal, gbx_guard_action action,
                                                gbx_guard_session **out_session);

/* For the launch. */
uint64_t gbx_guard_session_data_base(const gbx_guard_session *session);

/* The tensors of the run, in global memory or in the host's. They outlive the run. */
void gbx_guard_session_receive(gbx_guard_session *session, const gbx_run_args *run);

/* A copy between host and chip: a buffer that holds a tensor of the run gets its name. */
void gbx_guard_session_note_copy(gbx_guard_session *session, uint64_t device_address,
                                 const void *host_pointer);

/* The launch is next: lists all buffers. */
GBX_MUST_USE gbx_status gbx_guard_session_prepare(gbx_guard_session *session);

typedef struct gbx_guard_result {
    uint64_t count; /* all findings */
    uint32_t kept;
    gbx_run_finding findings[GBX_GUARD_FINDINGS];
} gbx_guard_result;

/* After the run, however it ended: reads and checks the findings; warns of buffers that were not
 * guarded. */
GBX_MUST_USE gbx_status gbx_guard_session_read(gbx_guard_session *session,
                                               gbx_guard_result *out_result);

GBX_MUST_USE gbx_status gbx_guard_session_end(gbx_guard_session *session);

#endif
