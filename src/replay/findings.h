/* What calling a task again can find, as plain data. docs/replay.md describes each kind. */
#ifndef GBX_REPLAY_FINDINGS_H
#define GBX_REPLAY_FINDINGS_H

#include <stdint.h>

typedef enum gbx_finding_of {
    GBX_STRAY_WRITE = 0,     /* a byte outside the outputs changed */
    GBX_UNDECLARED_READ = 1, /* an output depends on bytes that the task was not given */
    GBX_UNWRITTEN_READ = 2,  /* a later task or a result reads output that was not written */
    GBX_NOT_DETERMINISTIC = 3,
    GBX_WRITE_RACE = 4,    /* two dispatches write one byte */
    GBX_READ_RACE = 5,     /* a dispatch reads what another writes */
    GBX_ENDLESS_WAIT = 6,  /* no dispatch satisfies a wait */
    GBX_STALE_FLAG = 7,    /* an earlier task's value satisfies a wait for this task's own flag */
    GBX_FIRST_NOTE = 8,    /* from here on not wrong by itself */
    GBX_UNWRITTEN = 8,     /* output that is not written, and that nothing reads */
    GBX_COUNTER = 9,       /* several dispatches add to an integer: an atomic counter, or a race */
    GBX_EARLIER_FLAG = 10, /* an earlier task's value satisfies a wait; this task never sets it */
    GBX_FINDING_KINDS = 11
} gbx_finding_of;

#define GBX_NO_ARGUMENT UINT32_MAX
#define GBX_NO_ELEMENT UINT64_MAX
#define GBX_NO_PARTY UINT32_MAX
enum {
    GBX_TASK_FINDINGS = 16,
    GBX_WRITTEN_GAPS = 256,
    GBX_CALL_WAITING = 64,
    GBX_STRAY_RANGES = 32
};

/* Indices count the arguments of the task, elements are row-major numbers. */
typedef struct gbx_task_finding {
    uint32_t kind;       /* gbx_finding_of */
    uint32_t argument;   /* or GBX_NO_ARGUMENT */
    uint64_t element;    /* of that argument, or GBX_NO_ELEMENT */
    uint64_t last;       /* the last such element, where there is a first */
    uint64_t address;    /* of the first byte; 0: unknown */
    uint64_t end;        /* one past the last byte; 0: unknown */
    uint64_t bytes;      /* that changed or differ; 0: unknown */
    uint64_t elements;   /* of outputs: how many are concerned */
    uint64_t value;      /* of a flag: what it holds; of a read race without an argument, see
                            gbx_failing */
    uint32_t parties[2]; /* dispatches of the task, or GBX_NO_PARTY */
} gbx_task_finding;

/* A read race that shows only because the first party fails, with this in `value`. */
typedef enum gbx_failing {
    GBX_FAILS_BEFORE = 0, /* it fails if the second has not run before it */
    GBX_FAILS_AFTER = 1   /* it fails if the second has */
} gbx_failing;

/* Bytes without a gap that changed outside of outputs. */
typedef struct gbx_stray_range {
    uint64_t address;
    uint64_t bytes;
} gbx_stray_range;

/* Elements of an output that were not written: `count` of them in a row, `times` over, each `step`
 * elements after the one before. So are columns of a matrix, and every second element. */
typedef struct gbx_written_gap {
    uint32_t argument;
    uint32_t reserved;
    uint64_t first; /* element */
    uint64_t count;
    uint64_t step;
    uint64_t times;
} gbx_written_gap;

/* Whether dispatches of a task were called one at a time, in both orders. */
typedef enum gbx_order_state {
    GBX_ORDER_SINGLE = 0,    /* it has one dispatch */
    GBX_ORDER_ASKED = 1,     /* both orders were compared */
    GBX_ORDER_WAITS = 2,     /* they wait for each other */
    GBX_ORDER_SPINS = 3,     /* one alone does not return and does not yield */
    GBX_ORDER_TOO_LARGE = 4, /* comparing after each dispatch would take too long */
    GBX_ORDER_FAILS = 5,     /* one alone crashes or exits */
    GBX_ORDER_NO_MEMORY = 6, /* the host lacks memory, or cannot start a process */
    GBX_ORDER_NOT_ASKED = 7  /* of one dispatch, a failed call, a task in flight */
} gbx_order_state;

/* A dispatch that waits for a flag forever. */
typedef struct gbx_call_wait {
    uint32_t dispatch;
    uint32_t has_address;
    uint64_t address; /* of the flag */
} gbx_call_wait;

#endif
