/* What kernel replay.c does, selected by the scalar in slot 3; slot 4 is `number`. */
#ifndef GBX_TESTS_REPLAY_WAYS_H
#define GBX_TESTS_REPLAY_WAYS_H

enum replay_way {
    WAY_AFFINE = 0,  /* y = 2 x + number, z += x, element by element; a block takes its rows */
    WAY_NOTHING = 1, /* writes nothing */
    WAY_REPORT = 2,  /* saves the contexts in y, a row per block */
    WAY_MEET = 3,    /* all blocks and subtasks wait for each other, then write y */
    WAY_HALVES = 4,  /* int4: y = x + number, modulo 16 */
    WAY_STORE = 5, /* stores to the address `number`; of several dispatches, only block 1 on aiv0 */
    WAY_HANG = 6,  /* yields forever; of several dispatches, only block 1 on aiv0 */
    WAY_EXIT = 7,  /* exit(number) */
    WAY_ABORT = 8, /* abort() */
    WAY_OVERFLOW = 9,      /* of the stack */
    WAY_THREAD_END = 10,   /* pthread_exit */
    WAY_DIVIDE = 11,       /* by zero */
    WAY_STRAY = 12,        /* as AFFINE, and changes the byte at the address `number` */
    WAY_INPUT = 13,        /* as AFFINE, and changes x[0] */
    WAY_OTHER_THREAD = 14, /* a thread that it starts crashes */
    WAY_DESCRIPTOR = 15,   /* as AFFINE, and overwrites its description of x */
    WAY_PRINT = 16,        /* as AFFINE, and prints to stdout */
    WAY_ADD = 17,          /* as AFFINE, and adds the old value of y[0] */
    WAY_SPIN = 18,         /* as HANG, without yielding */
    WAY_END = 19,          /* as MEET, then _exit(5); of several dispatches, only block 1 on aiv0 */
    WAY_BESIDE = 20,       /* as AFFINE, and adds 1 to the byte before y */
    WAY_LOAD = 21,         /* as AFFINE, and loads from the address `number` */
    WAY_SIGN = 22, /* as AFFINE, but aborts if y[0] is negative (`number` 1) or not (0) before */
    WAY_MEET_SPIN = 23 /* as MEET, without yielding */
};

#endif
