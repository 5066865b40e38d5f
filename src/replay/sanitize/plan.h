/*
 * What the program that runs under a sanitizer is told beside the call file, and what it answers.
 * Both sides are made of the same build of glassbox. Needs only the C library.
 */
#ifndef GBX_REPLAY_SANITIZE_PLAN_H
#define GBX_REPLAY_SANITIZE_PLAN_H

#include <stdint.h>

/* A plan is an array of these: bytes of arguments without a gap, those of a slot one after the
 * other. */
typedef struct gbx_plan_range {
    uint64_t address;
    uint64_t bytes;
    uint64_t tested_bytes; /* of these, how many an output must initialise: not the half byte that
                              fills up a row of packed elements */
    uint32_t slot;
    uint16_t is_read; /* initialised before the call */
    uint16_t is_written;
} gbx_plan_range;

/* Lines of the program, which begin with the mark. */
#define GBX_PLAN_MARK "glassbox: "
#define GBX_PLAN_DISPATCH "dispatch"   /* N: what is reported next is of this dispatch */
#define GBX_PLAN_OUTPUT "output"       /* SLOT ADDRESS BYTES: not initialised; a report follows */
#define GBX_PLAN_UNWRITTEN "unwritten" /* SLOT ADDRESS BYTES: nobody has written them */
#define GBX_PLAN_EXITED "exited"       /* N: a kernel called exit */
#define GBX_PLAN_FAILED "failed"       /* SENTENCE: nothing was called */
#define GBX_PLAN_UNKNOWN "unknown" /* SUBTASK FUNCTION: nothing was called, because its kernel */
                                   /* calls this, and the sanitizer would judge wrongly */
#define GBX_PLAN_CALLS "calls"     /* the first call comes next */
/* KIND ADDRESS BYTES SLOT DISPATCH and SUBTASK+OFFSET of each frame: an access that breaks the
 * plan; ADDRESS is the first byte that does, SLOT that of the input or GBX_CALL_SLOTS */
#define GBX_PLAN_ACCESS "access"
#define GBX_PLAN_READS "reads" /* its kinds */
#define GBX_PLAN_WRITES "writes"
#define GBX_PLAN_WRITES_INPUT "input"
#define GBX_PLAN_TIMES "times" /* N COUNT: how often the access of the Nth such line, from 0 */
/* NAME ADDRESS HAS_ADDRESS DISPATCH and frames: a signal, in the address sanitizer's words */
#define GBX_PLAN_CRASHED "crashed"
#define GBX_PLAN_SCHEDULES "schedules" /* MADE WANTED: dispatches wait for each other */
#define GBX_PLAN_DONE "done"           /* all calls have returned */

#endif
