/*
 * One dump around one run: prepares the chip's memory and the directory, collects while the run
 * lasts, and finishes the files after it. Nothing outlives the session.
 */
#ifndef GBX_DUMP_HOST_SESSION_H
#define GBX_DUMP_HOST_SESSION_H

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "hal/hal.h"
#include "store/run/run_info.h"
#include "store/writer.h"

typedef struct gbx_dump_session gbx_dump_session;

/* All but the lists of `run` is borrowed for the life of the session. */
typedef struct gbx_dump_session_config {
    gbx_hal *hal;
    gbx_dump_level level; /* GBX_DUMP_OFF: dispatches alone */
    bool has_args;
    bool has_orchestration; /* gbx_dump_session_receive will be called before the launch */
    const gbx_dump_options *options;
    /* Runtime, device, blocks, threads, kernels and arguments; the session fills in the rest. Its
     * lists, from malloc, are the session's from the begin on, also where that fails. */
    gbx_run_info run;
} gbx_dump_session_config;

/* Fails when the options cannot be meant, the directory cannot be made or the chip has no room. */
GBX_MUST_USE gbx_status gbx_dump_session_begin(const gbx_dump_session_config *config,
                                               gbx_dump_session **out_session);

/* What goes with the launch. */
uint64_t gbx_dump_session_data_base(const gbx_dump_session *session);
uint32_t gbx_dump_session_flags(const gbx_dump_session *session);

/* What the orchestration is called with; on the thread that began. */
GBX_MUST_USE gbx_status gbx_dump_session_receive(gbx_dump_session *session,
                                                 const gbx_run_args *run);

/* Now and then while the launch lasts, and whenever the chip rings. */
void gbx_dump_session_attend(gbx_dump_session *session);

/* How the run ended, for the files. */
typedef struct gbx_dump_ending {
    const char *error;          /* NULL: well */
    bool is_lost;               /* the chip ended in the middle */
    gbx_record_outcome outcome; /* of a failure: all but `ending` */
    uint64_t tasks;
    uint64_t dispatches;
    int64_t device_ns;
} gbx_dump_ending;

/* The run has ended: takes the rest, writes the files, and frees the session. GBX_LOST when
 * something is missing in the dump. */
GBX_MUST_USE gbx_status gbx_dump_session_end(gbx_dump_session *session,
                                             const gbx_dump_ending *ending,
                                             gbx_dump_totals *out_totals);

#endif
