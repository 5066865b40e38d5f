/*
 * Code of the user that runs in this process: a fatal signal there ends the process with code 3
 * and one sentence that says whose code it was.
 */
#ifndef GBX_SCENE_GUARD_H
#define GBX_SCENE_GUARD_H

#include <pthread.h>
#include <signal.h>

#include "base/status.h"

enum { GBX_GUARD_SIGNALS = 5, GBX_GUARD_TEXT_BYTES = 512, GBX_GUARD_EXIT_CODE = 3 };

/* The caller's, and in place, from begin to end; one at a time in a process. */
typedef struct gbx_guard {
    pthread_t thread;
    char text[GBX_GUARD_TEXT_BYTES]; /* "glassbox run: golden.c: golden() was ended by signal " */
    size_t text_size;
    struct sigaction previous[GBX_GUARD_SIGNALS];
    stack_t previous_stack;
    void *stack;
} gbx_guard;

/*
 * From now on, until the end, fatal signals of this thread are answered here; those of other
 * threads go where they went before. `what` names the code: "golden.c: golden()".
 */
GBX_MUST_USE gbx_status gbx_guard_begin(gbx_guard *guard, const char *what);
void gbx_guard_end(gbx_guard *guard);

#endif
