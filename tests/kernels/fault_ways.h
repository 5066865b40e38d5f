/* Shared by fault.c and its tests. */
#ifndef GBX_TESTS_FAULT_WAYS_H
#define GBX_TESTS_FAULT_WAYS_H

/* The ways to fail; 0 is none. */
enum {
    FAIL_STORE = 1,
    FAIL_BUS,
    FAIL_DIVIDE,
    FAIL_INSTRUCTION,
    FAIL_ABORT,
    FAIL_STACK,
    FAIL_HANG,
    FAIL_EXIT,
    FAIL_THREAD,
    FAIL_CONTROL,
    FAIL_KILL,
    FAIL_FREE,
    FAIL_SLEEP,
    FAIL_NOT_CANONICAL,
    FAIL_SCRIBBLE_CALL,
    FAIL_FORK,
    FAIL_HEAP,
    FAIL_THREAD_EXIT,
    FAIL_ERASE,
    FAIL_CLOSE,
    FAIL_RAISE,
    FAIL_SIGNALLED_HANG, /* these two send SIGUSR1 to the host first */
    FAIL_SIGNALLED_SLEEP
};

/* Where the kernel reports on which core it runs and which address will fault. */
enum { CORE_AT = 8, ADDRESS_AT = 9, OUTPUTS = 10 };

#endif
