/*
 * Calls the kernels of one task: the memory they work on, the arguments of kernel_entry, and the
 * threads that call it. Needs only the C library and <glassbox/kernel.h>:
 *
 *     gbx_kernel_call call = {.gm_base = ..., .slots = ..., .dispatches = ...};
 *     if (gbx_kernel_call_map(&call, -1) || gbx_kernel_call_load(&call))
 *         puts(call.error);
 *     ... put the inputs where the tensors say ...
 *     if (gbx_kernel_call_run(&call))
 *         puts(call.error);
 *     ... read the outputs; call.ns is how long it took ...
 *
 * Each function returns 0, or -1 with one sentence in call.error. Only one thread uses a call.
 */
#ifndef GBX_REPLAY_CALL_H
#define GBX_REPLAY_CALL_H

#include <stdatomic.h>
#include <stdint.h>

#include <glassbox/kernel.h>

enum {
    GBX_CALL_SLOTS = GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS,
    GBX_CALL_ERROR_BYTES = 512,
    GBX_CALL_MAX_BLOCKS = 24 /* at a time */
};

typedef enum gbx_call_slot_kind {
    GBX_CALL_EMPTY = 0,  /* call->empty in args[] */
    GBX_CALL_SCALAR = 1, /* its raw word in args[] */
    GBX_CALL_TENSOR = 2  /* the address of its gbx_tensor in args[] */
} gbx_call_slot_kind;

/* One slot of args[]. */
typedef struct gbx_call_slot {
    gbx_tensor tensor; /* a kernel may write to it, as on the chip */
    uint64_t bits;
    uint32_t kind; /* gbx_call_slot_kind */
    uint32_t role; /* 0 input, 1 output, 2 inout */
} gbx_call_slot;

/* One call of kernel_entry. */
typedef struct gbx_call_dispatch {
    uint32_t subtask; /* gbx_subtask: which kernel */
    uint32_t block_idx;
    uint32_t core_id;
    uint32_t reserved;
} gbx_call_dispatch;

typedef struct gbx_call_kernel {
    const char *object;                  /* path of a shared object with kernel_entry */
    void (*entry)(const uint64_t *args); /* if NULL, _load finds it in `object` */
} gbx_call_kernel;

typedef enum gbx_call_state {
    GBX_CALL_WAITS = 0,
    GBX_CALL_RUNS = 1,
    GBX_CALL_ENDED = 2
} gbx_call_state;

typedef struct gbx_kernel_call {
    uint64_t gm_base; /* global memory: its first address, a multiple of the page size */
    uint64_t gm_bytes;
    uint32_t chip_blocks; /* how many blocks run at a time */
    uint32_t block_num;   /* of the task */
    uint64_t empty;       /* in slots of args[] that the task does not fill: on a chip, of an
                             earlier task */
    gbx_call_slot slots[GBX_CALL_SLOTS];
    gbx_call_kernel kernels[GBX_SUBTASK_COUNT];
    const gbx_call_dispatch *dispatches; /* by block, then subtask */
    uint32_t dispatch_count;
    _Atomic uint32_t *states; /* gbx_call_state of each dispatch; may be NULL */

    uint64_t ns; /* _run: from the start of the first kernel to the end of the last */
    char error[GBX_CALL_ERROR_BYTES];
} gbx_kernel_call;

/* Maps global memory at gm_base: the file `fd`, or new memory, all zero, for -1. Fails if the
 * address range is in use. */
int gbx_kernel_call_map(gbx_kernel_call *call, int fd);
void gbx_kernel_call_unmap(const gbx_kernel_call *call);

/* Loads the kernels without entry; they stay loaded. */
int gbx_kernel_call_load(gbx_kernel_call *call);

/*
 * Calls every dispatch on its own thread, the first on this one. All subtasks of up to chip_blocks
 * blocks run at a time, and may wait for each other; the next blocks start when all have returned.
 * It may be called again.
 */
int gbx_kernel_call_run(gbx_kernel_call *call);

/* How many dispatches _run calls at a time. */
uint32_t gbx_kernel_call_lanes(const gbx_kernel_call *call);

/*
 * Calls one dispatch, on this thread. Returns 1 if the kernel was left in the middle of its work by
 * gbx_kernel_call_escape, else 0.
 */
int gbx_kernel_call_alone(gbx_kernel_call *call, uint32_t dispatch);

/* Within a kernel that gbx_kernel_call_alone calls on this thread: does not return. Elsewhere it
 * returns at once. */
void gbx_kernel_call_escape(void);

/* The dispatch that this thread runs, or GBX_CALL_NO_DISPATCH. */
uint32_t gbx_kernel_call_current(void);

/* --- kernels that crash --- */

typedef enum gbx_call_fault_kind {
    GBX_CALL_NO_FAULT = 0,
    GBX_CALL_SIGNAL = 1,
    GBX_CALL_THREAD_END = 2, /* a kernel called pthread_exit */
    GBX_CALL_STUCK = 3       /* dispatches wait, and nothing will ever let them continue */
} gbx_call_fault_kind;

typedef enum gbx_call_access {
    GBX_CALL_ACCESS_UNKNOWN = 0,
    GBX_CALL_ACCESS_READ = 1,
    GBX_CALL_ACCESS_WRITE = 2,
    GBX_CALL_ACCESS_STACK = 3 /* near the stack pointer: the stack is full */
} gbx_call_access;

#define GBX_CALL_NO_DISPATCH UINT32_MAX
enum { GBX_CALL_FAULT_EXIT = 70 }; /* exit code of a process that has noted a fault */

/* A fault, in memory that outlives the process. */
typedef struct gbx_call_fault {
    _Atomic uint32_t kind; /* gbx_call_fault_kind; written last */
    uint32_t signal;
    uint32_t dispatch; /* where it happened; GBX_CALL_NO_DISPATCH on another thread */
    uint32_t has_address;
    uint64_t address; /* that the kernel accessed, or the instruction that failed */
    uint32_t access;  /* gbx_call_access, of SIGSEGV and SIGBUS */
    uint32_t reserved;
    _Atomic uint32_t exiting; /* the dispatch that called exit, from 1; 0 for none */
} gbx_call_fault;

/*
 * From now on a fatal signal in this process, or a kernel that ends its thread, is noted in
 * `fault`, and the process exits with GBX_CALL_FAULT_EXIT; without this call, signals have their
 * usual effect. A kernel that calls exit is noted, too. `first`, which may be NULL, sees the
 * address of each SIGSEGV before that, and need not return.
 */
void gbx_kernel_call_catch_faults(gbx_call_fault *fault, void (*first)(uint64_t address));

/* Notes a fault of another kind, and exits. */
_Noreturn void gbx_kernel_call_note(gbx_call_fault_kind kind);

#endif
