/*
 * What a run finds out about its kernels while it runs: a write outside of a buffer, or over the
 * arguments of a task. The same bytes in global memory, in results and in a dump's journal.
 */
#ifndef GLASSBOX_FINDING_H
#define GLASSBOX_FINDING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are on disk: they are never used again. */
typedef enum gbx_run_finding_kind {
    GBX_RUN_FINDING_OVERRUN = 1,  /* bytes behind the end of a buffer were written */
    GBX_RUN_FINDING_UNDERRUN = 2, /* bytes before the start of a buffer were written */
    GBX_RUN_FINDING_STRAY = 3,    /* bytes near a buffer were written, but not next to it */
    GBX_RUN_FINDING_ARGUMENTS = 4 /* the arguments of a task were overwritten */
} gbx_run_finding_kind;

/* What the victim is. */
typedef enum gbx_run_finding_place {
    GBX_PLACE_RUN_ARGUMENT = 1,  /* of the run; `index` is its number among the run's tensors */
    GBX_PLACE_ALLOCATION = 2,    /* of the host; `index` is its number in order of allocation */
    GBX_PLACE_DEVICE_MALLOC = 3, /* of the orchestration on the chip; `index` as above */
    GBX_PLACE_OUTPUT = 4,        /* of the heap ring; `index` is an argument of owner_task */
    GBX_PLACE_ARGUMENTS = 5,     /* of owner_task */
    GBX_PLACE_OWN = 6            /* memory of glassbox itself */
} gbx_run_finding_place;

/* How sure the first candidate is. */
typedef enum gbx_run_finding_certainty {
    GBX_CERTAINTY_OPEN = 0,   /* any of the candidates */
    GBX_CERTAINTY_LIKELY = 1, /* of all that ran, only the first has an argument that ends there */
    GBX_CERTAINTY_SURE = 2    /* no other task ran */
} gbx_run_finding_certainty;

#define GBX_FINDING_CANDIDATES 8
#define GBX_FINDING_NO_TASK UINT64_MAX
#define GBX_FINDING_NO_ARGUMENT UINT32_MAX
#define GBX_FINDING_NO_KERNEL UINT32_MAX

/* A task that may have done it. */
typedef struct gbx_run_finding_task {
    uint64_t task;
    uint32_t func_id;   /* its first kernel */
    uint32_t arg_index; /* the argument next to the bytes; GBX_FINDING_NO_ARGUMENT: unknown */
} gbx_run_finding_task;

typedef struct gbx_run_finding {
    uint32_t kind;       /* gbx_run_finding_kind */
    uint32_t place;      /* gbx_run_finding_place */
    uint64_t time_ns;    /* since the start of the run */
    uint64_t finder;     /* when this task had completed; GBX_FINDING_NO_TASK: at the end */
    uint64_t address;    /* of the victim */
    uint64_t bytes;      /* of the victim */
    int64_t first;       /* the first changed byte, counted from `address` */
    uint64_t span;       /* bytes from the first changed one to the last */
    uint64_t changed;    /* how many of them changed */
    uint32_t index;      /* of the victim, see `place` */
    uint32_t owner_func; /* first kernel of owner_task; GBX_FINDING_NO_KERNEL: none */
    uint64_t owner_task; /* GBX_FINDING_NO_TASK: none */
    uint32_t certainty;  /* gbx_run_finding_certainty */
    uint32_t candidate_count;
    uint64_t candidate_total; /* how many there are; more than candidate_count: not all are kept */
    uint64_t run_total;       /* findings of the run; more than are listed: not all are kept */
    uint64_t reserved[3];     /* 0 */
    gbx_run_finding_task candidates[GBX_FINDING_CANDIDATES];
} gbx_run_finding;

#ifdef __cplusplus
}
#endif
#endif
