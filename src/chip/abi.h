/*
 * What host and chip agree on inside global memory. The host writes payloads before a launch and
 * reads the control block after it; it trusts nothing there, because a wild kernel may have
 * overwritten it. Identical on all platforms.
 */
#ifndef GBX_CHIP_ABI_H
#define GBX_CHIP_ABI_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>
#include <glassbox/kernel.h>

#include "tensor/signature.h"

#define GBX_CORES_PER_BLOCK GBX_SUBTASK_COUNT
#define GBX_MAX_CORES (GBX_MAX_BLOCKS * GBX_CORES_PER_BLOCK)
#define GBX_NO_CORE UINT32_MAX
#define GBX_CONTROL_MAGIC UINT64_C(0x30524c5443584247) /* "GBXCTLR0" */

/* What a launch can name: an entry of the chip itself, or a program (program.h). */
enum { GBX_ENTRY_LOAD_KERNEL = 1, GBX_ENTRY_FIRST_PROGRAM = 2 };

typedef enum gbx_fault_kind {
    GBX_FAULT_NONE = 0,
    GBX_FAULT_SIGNAL = 1,             /* a fatal signal in a kernel */
    GBX_FAULT_HANG = 2,               /* a kernel that made no progress */
    GBX_FAULT_LOADING = 3,            /* a fatal signal while a kernel's shared object was loaded */
    GBX_FAULT_OUTSIDE = 4,            /* a fatal signal on a thread that is not a core */
    GBX_FAULT_THREAD = 5,             /* a kernel ended the thread of its core */
    GBX_FAULT_LINK = 6,               /* a kernel closed the link to the host */
    GBX_FAULT_ORCHESTRATION = 7,      /* a fatal signal in an orchestration */
    GBX_FAULT_ORCHESTRATION_HANG = 8, /* an orchestration that made no progress */
    GBX_FAULT_GUARD = 9               /* a guard found a write outside of a buffer */
} gbx_fault_kind;

typedef enum gbx_address_kind {
    GBX_ADDRESS_NONE = 0,      /* a signal that was sent, for example by abort */
    GBX_ADDRESS_KNOWN = 1,     /* reported by the processor */
    GBX_ADDRESS_IMPOSSIBLE = 2 /* one that cannot exist; the processor does not report it */
} gbx_address_kind;

/* Written at most once per launch, by the first thread of the chip that has a fault. */
typedef struct gbx_fault {
    _Atomic uint32_t kind; /* gbx_fault_kind; set last */
    uint32_t signal;
    uint64_t address; /* where address_kind is GBX_ADDRESS_KNOWN */
    uint32_t core_id; /* GBX_NO_CORE: not on a core */
    uint32_t func_id;
    uint32_t block_idx;
    uint32_t block_num;
    uint32_t other_cores;  /* hang: how many more cores were busy */
    int64_t running_ns;    /* how long the kernel had run */
    uint32_t address_kind; /* gbx_address_kind */
    uint32_t reserved;
    uint64_t task_id;
} gbx_fault;
_Static_assert(sizeof(gbx_fault) == 64, "a fault is one cache line");

/* What a core is doing; the core writes it. Shows what was running when a chip process is gone. */
typedef struct gbx_core_activity {
    _Atomic uint32_t is_running;
    _Atomic uint32_t func_id;
    _Atomic uint32_t block_idx;
    _Atomic uint32_t block_num;
    _Atomic uint64_t task_id;
    uint64_t padding[5];
} gbx_core_activity;
_Static_assert(sizeof(gbx_core_activity) == 64, "an activity is one cache line");

/* What one dispatch hands to kernel_entry; written by the AICPU before it posts the dispatch. */
typedef struct gbx_dispatch_payload {
    _Alignas(64) uint64_t args[GBX_ARG_SLOTS];
    gbx_local_context local;
} gbx_dispatch_payload;
_Static_assert(sizeof(gbx_dispatch_payload) == 576, "a dispatch payload is nine cache lines");

/* How a launch ended. */
typedef struct gbx_control_header {
    uint64_t magic;                   /* host, once */
    _Atomic uint64_t finished_launch; /* chip, last: the launch that the rest is about */
    uint32_t code;                    /* chip: gbx_code of that launch */
    uint32_t reserved;
    int64_t device_ns;       /* chip: how long the launch took */
    uint64_t task_count;     /* chip: completed in it */
    uint64_t dispatch_count; /* chip: dispatches of these tasks */
} gbx_control_header;

typedef struct gbx_control_block {
    gbx_control_header header;
    _Alignas(64) _Atomic uint64_t heartbeat; /* chip: counts while a launch runs */
    _Atomic uint64_t tasks_so_far;           /* chip: completed; written with the heartbeat */
    _Alignas(64) gbx_fault fault;            /* chip; the host clears it before a launch */
    char message[8192]; /* chip: why a launch failed, in the form of its entry */
    gbx_core_activity cores[GBX_MAX_CORES]; /* each core its own */
    gbx_dispatch_payload dispatches[GBX_MAX_CORES];
} gbx_control_block;
_Static_assert(offsetof(gbx_control_block, heartbeat) == 64, "layout of the control block");
_Static_assert(offsetof(gbx_control_block, fault) == 128, "layout of the control block");
_Static_assert(offsetof(gbx_control_block, message) == 192, "layout of the control block");
_Static_assert(offsetof(gbx_control_block, cores) == 8384, "layout of the control block");
_Static_assert(offsetof(gbx_control_block, dispatches) == 8384 + 64 * GBX_MAX_CORES,
               "layout of the control block");

/* Payload of GBX_ENTRY_LOAD_KERNEL. */
typedef struct gbx_load_block {
    uint32_t func_id;
    uint32_t core;     /* gbx_core_type */
    uint64_t function; /* address in this process, or 0 */
    gbx_signature signature;
    char path[4096]; /* absolute path of a shared object, where there is no function */
} gbx_load_block;
_Static_assert(sizeof(gbx_signature) == 248 && sizeof(gbx_load_block) == 4360,
               "layout of the load payload");

/* The largest payload of a launch. */
enum { GBX_MAX_PAYLOAD_BYTES = 32768 };

#endif
