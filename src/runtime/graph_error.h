/*
 * An error in a task graph, found on the chip or on the host. The host makes one sentence of it,
 * the same on every runtime. The chip leaves it as the message of the launch.
 */
#ifndef GBX_RUNTIME_GRAPH_ERROR_H
#define GBX_RUNTIME_GRAPH_ERROR_H

#include <stdatomic.h>

#include <glassbox/chip.h>
#include <glassbox/orchestration.h>

#include "base/status.h"

/* The index of a tensor that is not an argument of a task. */
#define GBX_NO_ARGUMENT UINT32_MAX

typedef enum gbx_graph_error_kind {
    GBX_GRAPH_OK = 0,
    GBX_GRAPH_NO_KERNEL,      /* none of the subtasks names one */
    GBX_GRAPH_NOT_REGISTERED, /* func_id */
    GBX_GRAPH_CORE_TYPE,      /* func_id; values: the subtask */
    GBX_GRAPH_BLOCKS,         /* values: block_num */
    GBX_GRAPH_SYNC_BLOCKS,    /* values: block_num, blocks of the chip */
    GBX_GRAPH_TOO_MANY_ARGS,  /* values: tensors, scalars (or words and -1) */
    GBX_GRAPH_NULL_TENSOR,    /* values: index */
    GBX_GRAPH_BAD_TENSOR,     /* values: index; tensor */
    GBX_GRAPH_OUTSIDE,        /* values: index; tensor */
    GBX_GRAPH_TENSOR_INDEX,   /* values: arg_index, words; beyond the words, or twice */
    GBX_GRAPH_ROLE,           /* values: index, role */
    GBX_GRAPH_MARK,           /* values: index, arguments; marked for the dump, but missing */
    GBX_GRAPH_UNKNOWN_TASK,   /* values: the task, how many there are */
    GBX_GRAPH_SELF_EDGE,      /* a task that waits for itself */
    GBX_GRAPH_CYCLE,          /* values: another task of the cycle, its length */
    GBX_GRAPH_PUBLISHED,      /* an edge to a task that is published already */
    GBX_GRAPH_PUBLISHED_TWICE,
    GBX_GRAPH_NEVER_PUBLISHED, /* values: how many others */
    GBX_GRAPH_TOO_MANY_TASKS,  /* values: how many fit */
    GBX_GRAPH_TOO_MANY_EDGES,  /* values: how many fit */
    GBX_GRAPH_NO_MEMORY,       /* values: bytes needed, bytes left */
    GBX_GRAPH_WINDOW,          /* values: window, tasks that the scope keeps, window needed */
    GBX_GRAPH_HEAP,            /* values: heap bytes, bytes that the scope keeps */
    GBX_GRAPH_HEAP_TENSOR,     /* values: index, bytes needed, heap bytes */
    GBX_GRAPH_NEW_OUTPUT,      /* values: index; the runtime has no heap */
    GBX_GRAPH_SCOPE_END,       /* an end without a begin */
    GBX_GRAPH_SCOPE_LEFT,      /* values: how many are open at the end */
    GBX_GRAPH_SCOPE_DEPTH,     /* values: the deepest possible */
    GBX_GRAPH_SCOPE_OVER,      /* values: index; its memory belongs to a scope that has ended */
    GBX_GRAPH_INDEX,           /* values: dimension, index, size */
    GBX_GRAPH_REFUSED,         /* text: a call that this runtime does not have */
    GBX_GRAPH_FAILED,          /* text: from the orchestration */
    GBX_GRAPH_RETURNED,        /* values: what it returned */
    GBX_GRAPH_SIGNATURE        /* values: slot, gbx_mismatch_kind, what was given */
} gbx_graph_error_kind;

typedef struct gbx_graph_error {
    uint32_t kind;    /* gbx_graph_error_kind; 0: none */
    uint32_t func_id; /* a kernel of the task, or GBX_NO_KERNEL */
    uint64_t task;    /* the task, or GBX_NO_TASK */
    int64_t values[4];
    gbx_tensor tensor;
    char text[256];
} gbx_graph_error;

/* How an argument differs from the signature of its kernel. */
typedef enum gbx_mismatch_kind {
    GBX_MISMATCH_NONE = 0,
    GBX_MISMATCH_TENSORS, /* too few or too many; given: how many */
    GBX_MISMATCH_SCALARS, /* likewise */
    GBX_MISMATCH_WORDS,   /* likewise, tensors and scalars together */
    GBX_MISMATCH_KIND,    /* a tensor where the signature has a scalar, or nothing */
    GBX_MISMATCH_ROLE,    /* given: gbx_role */
    GBX_MISMATCH_DTYPE,   /* given: gbx_dtype */
    GBX_MISMATCH_NDIMS    /* given: how many dimensions */
} gbx_mismatch_kind;

typedef struct gbx_mismatch {
    uint64_t task;
    uint32_t func_id; /* the kernel whose signature does not hold */
    uint16_t kind;    /* gbx_mismatch_kind */
    uint16_t slot;    /* the argument: of too few the first that is missing */
    uint32_t given;
    uint32_t reserved;
} gbx_mismatch;

/* With loose signatures: how often one did not hold, and the first of each sort. */
typedef struct gbx_signature_warnings {
    _Atomic uint64_t total;
    _Atomic uint32_t kept;
    uint32_t reserved;
    gbx_mismatch first[GBX_MAX_SIGNATURE_SENTENCES];
} gbx_signature_warnings;

/* What the chip leaves as the message of a launch. */
typedef struct gbx_graph_message {
    gbx_graph_error error;
    gbx_signature_warnings warnings; /* only with loose signatures */
} gbx_graph_message;

/* Any thread, while another adds to `from`. */
void gbx_signature_warnings_copy(gbx_signature_warnings *from, gbx_signature_warnings *to);

/* Host: puts the warnings into the result of a run, as sentences. Trusts nothing in them. */
void gbx_signature_warnings_report(const gbx_chip *chip, gbx_signature_warnings *warnings,
                                   gbx_call_result *result);

/* Host: the sentence, with names of kernels. `runtime` is the name of the runtime. */
GBX_MUST_USE gbx_status gbx_graph_error_status(const gbx_chip *chip, const char *runtime,
                                               const gbx_graph_error *error);

#endif
