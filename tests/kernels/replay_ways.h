/* What kernel replay.c does, by the scalar in slot 3; slot 4 is a number for it. */
#ifndef GBX_TESTS_REPLAY_WAYS_H
#define GBX_TESTS_REPLAY_WAYS_H

enum replay_way {
    WAY_AFFINE = 0,      /* y = 2 x + number, z += x, element by element; a block takes its rows */
    WAY_NOTHING = 1,     /* writes nothing */
    WAY_REPORT = 2,      /* y[block, subtask] = what the contexts say */
    WAY_MEET = 3,        /* all blocks and subtasks wait for each other, then count */
    WAY_HALVES = 4,      /* int4: y = x + number, modulo 16 */
    WAY_STORE = 5,       /* stores to the address `number`; of several, block 1 on aiv0 does */
    WAY_HANG = 6,        /* of several, block 1 */
    WAY_EXIT = 7,        /* exit(number) */
    WAY_ABORT = 8,       /* abort() */
    WAY_OVERFLOW = 9,    /* of the stack */
    WAY_THREAD_END = 10, /* pthread_exit */
    WAY_DIVIDE = 11,     /* by zero */
    WAY_STRAY = 12,      /* as AFFINE, and a byte at the address `number` */
    WAY_INPUT = 13,      /* as AFFINE, and x[0] changes */
    WAY_OTHER_THREAD = 14, /* a thread that it starts crashes */
    WAY_DESCRIPTOR = 15,   /* as AFFINE, and then its own tensors are scribbled over */
    WAY_PRINT = 16,        /* as AFFINE, and prints to stdout */
    WAY_ADD = 17,          /* as AFFINE, and what y held before is added to it */
    WAY_GROW = 18,         /* as AFFINE, and the file of memory gets a byte at `number` */
    WAY_END = 19           /* as MEET, then _exit(5); of several, block 1 on aiv0 does */
};

#endif
