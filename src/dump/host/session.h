/*
 * The dump of one run: prepares the chip's memory and the directory, collects during the run, and
 * finishes the files after it. Nothing outlives the session.
 */
#ifndef GBX_DUMP_HOST_SESSION_H
#define GBX_DUMP_HOST_SESSION_H

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "hal/hal.h"
#include "store/run/run_info.h"
#include "store/writer.h"

typedef struct gbx_dump_session gbx_dump_session;

/* Everything but the lists of `run` is borrowed for the life of the session. */
typedef struct gbx_dump_session_config {
    gbx_hal *hal;
    gbx_dump_level level; /* GBX_DUMP_OFF: only dispatches */
    bool has_args;
    bool has_orchestration; /* gbx_dump_session_receive will be called before the launch */
    const gbx_dump_options *options;
    /* Runtime, device, blocks, threads, kernels and arguments; the session fills in the rest. The
     * session owns its lists, from malloc, from the begin on, even if that fails. */
    gbx_run_info run;
} gbx_dump_session_config;

/* Fails when the options are invalid, the directory cannot be created or the chip has no room. */
GBX_MUST_USE gbx_status gbx_dump_session_begin(const gbx_dump_session_config *config,
                                               gbx_dump_session **out_session);

/* For the launch. */
uint64_t gbx_dump_session_data_base(const gbx_dump_session *session);
uint32_t gbx_dump_session_flags(const gbx_dump_session *session);

/* What the orchestration is called with; on the thread that began. */
GBX_MUST_USE gbx_status gbx_dump_session_receive(gbx_dump_session *session,
                                                 const gbx_run_args *run);

/* Call it now and then during the launch, and whenever the chip rings. */
void gbx_dump_session_attend(gbx_dump_session *session);

/* What the guard found, before the end. */
void gbx_dump_session_add_findings(gbx_dump_session *session, const gbx_run_finding *findings,
                                   uint32_t count);

/* How the run ended, for the files. */
typedef struct gbx_dump_ending {
    const char *error;          /* NULL: well */
    bool is_lost;               /* the chip ended in the middle of the run */
    gbx_record_outcome outcome; /* of a failure: all but `ending` */
    uint64_t tasks;
    uint64_t dispatches;
    int64_t device_ns;
} gbx_dump_ending;

/* After the run: takes the rest, writes the files, and frees the session. GBX_LOST when something
 * is missing from the dump. */
GBX_MUST_USE gbx_status gbx_dump_session_end(gbx_dump_session *session,
                                             const gbx_dump_ending *ending,
                                             gbx_dump_totals *out_totals);

#endif
