/* Dump and guard around a run, where the run's configuration asks for them. */
#ifndef GBX_API_RUN_DUMP_H
#define GBX_API_RUN_DUMP_H

#include "chip/host/chip.h"
#include "dump/host/session.h"
#include "guard/host/session.h"
#include "runtime/runtimes.h"

typedef struct gbx_run_dump {
    gbx_dump_session *session; /* NULL: no dump is wanted */
    gbx_guard_session *guard;  /* NULL: neither dump nor guard */
    const gbx_chip *chip;
    const gbx_run *run;
    gbx_chip_listener listener;
} gbx_run_dump;

/* `request` is borrowed until the end, and gets the listener. */
GBX_MUST_USE gbx_status gbx_run_dump_begin(gbx_runtime_request *request, gbx_run_dump *dump);

/* Returns the status of the run, or that of the dump where only the dump failed; fills in
 * result->dump and the findings. */
GBX_MUST_USE gbx_status gbx_run_dump_end(gbx_run_dump *dump, gbx_status status,
                                         gbx_call_result *result);

#endif
