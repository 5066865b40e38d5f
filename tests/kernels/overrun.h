/* What dump_overrun_test.c asks overrun.c to overwrite, and the graph of overrun_orchestration.c.
 */
#ifndef OVERRUN_H
#define OVERRUN_H

enum { OVERRUN_TASKS = 24, OVERRUN_ELEMENTS = 240, OVERRUN_ROW = 16 };

typedef enum overrun_way {
    OVERRUN_NOT,         /* what it computes, nothing else */
    OVERRUN_OUTPUT,      /* one row past its output: 64 bytes */
    OVERRUN_DESCRIPTION, /* the description of its output, when it has read it */
    OVERRUN_NEIGHBOURS,  /* 4 KiB around that: arguments of other tasks, too */
    OVERRUN_WAYS
} overrun_way;

/* Scalars of the run. */
enum { OVERRUN_ON, OVERRUN_WAY, OVERRUN_SCALARS };
enum { OVERRUN_ON_HOST, OVERRUN_ON_AICPU, OVERRUN_ON_TENSORMAP, OVERRUN_RUNTIMES };

#endif
