/*
 * A simulated chip: open it, put tensors into its global memory (GM), register kernels, call them.
 *
 * One thread at a time may use a chip; different threads may use different chips. Any thread may
 * copy to and from a chip while another waits for a call to end.
 */
#ifndef GLASSBOX_CHIP_H
#define GLASSBOX_CHIP_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/dump.h>
#include <glassbox/finding.h>
#include <glassbox/kernel.h>
#include <glassbox/orchestration.h>
#include <glassbox/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GBX_DEFAULT_BLOCKS 8
#define GBX_MAX_BLOCKS 24
#define GBX_DEFAULT_AICPU_THREADS 2
#define GBX_MAX_AICPU_THREADS 8
#define GBX_DEFAULT_GM_BYTES (UINT64_C(8) << 30)
#define GBX_MAX_GM_BYTES (UINT64_C(32) << 30)
#define GBX_DEFAULT_TIMEOUT_MS 10000
#define GBX_DEFAULT_WINDOW 16384
#define GBX_MAX_WINDOW (1u << 24)
#define GBX_MAX_KERNELS 1024
#define GBX_MAX_KERNEL_NAME 63
#define GBX_MAX_BLOCK_NUM 65536
#define GBX_RESULT_FINDINGS 8

typedef struct gbx_chip gbx_chip;

typedef enum gbx_device_mode {
    GBX_DEVICE_PROCESS = 0, /* the chip is a process of its own, which may crash */
    GBX_DEVICE_THREAD = 1   /* threads of this process: for debuggers and function pointers */
} gbx_device_mode;

/* All zero means the defaults above, on a2a3sim, in a process. */
typedef struct gbx_chip_config {
    const char *platform; /* "a2a3sim", "a5sim"; NULL: a2a3sim */
    gbx_device_mode device;
    uint32_t blocks;        /* 1 to GBX_MAX_BLOCKS; 0: default */
    uint32_t aicpu_threads; /* 1 to GBX_MAX_AICPU_THREADS; 0: default */
    uint64_t gm_bytes;      /* 0: default; rounded up to 4 KiB; uses memory only as it is touched */
    const char *chip_program; /* glassbox-chip; NULL: $GLASSBOX_CHIP, else searched for */
} gbx_chip_config;

/* Starts a chip; `config` may be NULL for all defaults. The caller owns the chip and closes it with
 * gbx_chip_close. On failure *out_chip is NULL. */
GBX_API GBX_MUST_USE gbx_status gbx_chip_open(const gbx_chip_config *config, gbx_chip **out_chip);

/* Ends the chip, in any state, and frees all its memory. Takes NULL. */
GBX_API void gbx_chip_close(gbx_chip *chip);

/* Whether the device has failed: this chip then runs nothing more. */
GBX_API bool gbx_chip_has_failed(const gbx_chip *chip);

/* The name of the chip's platform. Names and descriptions of all platforms by index; NULL past the
 * last. */
GBX_API const char *gbx_chip_platform(const gbx_chip *chip);
GBX_API const char *gbx_platform_name(uint32_t index);
GBX_API const char *gbx_platform_description(uint32_t index);

/* Whether the host can map global memory (gbx_gm_map); false past the last. */
GBX_API bool gbx_platform_maps_memory(uint32_t index);

/* --- global memory --- */

/*
 * Addresses are device addresses, multiples of 512. The host must not use them as pointers; see
 * gbx_gm_map. Memory is not cleared when it is used again.
 */
GBX_API GBX_MUST_USE gbx_status gbx_gm_alloc(gbx_chip *chip, uint64_t bytes, uint64_t *out_address);
GBX_API GBX_MUST_USE gbx_status gbx_gm_free(gbx_chip *chip, uint64_t address);
GBX_API GBX_MUST_USE gbx_status gbx_gm_copy_in(gbx_chip *chip, uint64_t to, const void *from,
                                               size_t bytes);
GBX_API GBX_MUST_USE gbx_status gbx_gm_copy_out(gbx_chip *chip, void *to, uint64_t from,
                                                size_t bytes);

/* A host pointer to device memory, valid until that is freed; GBX_UNSUPPORTED on a5sim. */
GBX_API GBX_MUST_USE gbx_status gbx_gm_map(gbx_chip *chip, uint64_t address, uint64_t bytes,
                                           void **out_pointer);

/* --- kernels --- */

typedef void (*gbx_kernel_function)(const uint64_t *args);

/* Exactly one of source, shared_object and function is set. All strings are copied. */
typedef struct gbx_kernel {
    uint32_t func_id;             /* below GBX_MAX_KERNELS; registered once */
    const char *name;             /* what reports call it; up to GBX_MAX_KERNEL_NAME bytes */
    gbx_core_type core;           /* which cores it runs on */
    const char *source;           /* a C file, compiled with $CC (cc) and cached by content */
    const char *compile_flags;    /* further compiler flags, separated by blanks; may be NULL */
    const char *link_flags;       /* libraries besides -lm, separated by blanks; may be NULL */
    const char *shared_object;    /* a ready .so that defines kernel_entry */
    gbx_kernel_function function; /* of this program; needs GBX_DEVICE_THREAD */
    /* The rest is for dumps; each may be NULL. */
    const char *signature; /* "in,inout,out,scalar:float32" */
    const char *arg_names; /* "query,state,output,scale": a name for each word of the signature */
    const char *origin;    /* with shared_object: its source, compiled with the flags above */
} gbx_kernel;

/*
 * Compiles a source, loads the kernel and checks it. On failure the message includes that of the
 * compiler or the loader.
 */
GBX_API GBX_MUST_USE gbx_status gbx_kernel_register(gbx_chip *chip, const gbx_kernel *kernel);

/* --- calls --- */

/*
 * One task: its kernels, blocks and arguments. Borrowed until the call returns. Make one with
 * gbx_call_mix, gbx_call_aic or gbx_call_aiv: all zero would name kernel 0 three times.
 */
typedef struct gbx_call {
    uint32_t kernels[GBX_SUBTASK_COUNT]; /* func_ids for AIC, AIV0, AIV1; GBX_NO_KERNEL for none */
    uint32_t block_num;                  /* 0: 1 */
    const gbx_tensor *tensors;
    uint32_t tensor_count; /* up to GBX_MAX_TENSOR_ARGS */
    const uint64_t *scalars;
    uint32_t scalar_count; /* up to GBX_MAX_SCALAR_ARGS */
} gbx_call;

typedef enum gbx_build_mode {
    GBX_BUILD_CONCURRENT = 0, /* tasks run as they are published */
    GBX_BUILD_SEQUENTIAL = 1  /* tasks run once the orchestration has returned */
} gbx_build_mode;

/* Red zones around buffers and poison in new memory: docs/guard.md. */
typedef enum gbx_guard_mode {
    GBX_GUARD_DEFAULT = 0, /* GBX_GUARD_REPORT with a dump, else GBX_GUARD_OFF */
    GBX_GUARD_OFF = 1,
    GBX_GUARD_REPORT = 2, /* the run goes on; gbx_call_result has the findings */
    GBX_GUARD_STOP = 3    /* the first finding ends the run with GBX_DEVICE_FAULT */
} gbx_guard_mode;

/* How to run a task or a graph. All zero means the defaults. */
typedef struct gbx_call_config {
    uint32_t timeout_ms;  /* the longest time without progress; 0: GBX_DEFAULT_TIMEOUT_MS */
    uint32_t window;      /* tensormap_and_ringbuffer: tasks in flight; 0: GBX_DEFAULT_WINDOW */
    uint64_t heap_bytes;  /* of its heap ring; 0: half of the free memory, at most 4 GiB */
    gbx_build_mode build; /* aicpu_build_graph */
    /* Each of the next two makes a dump of the run, in dump.directory. */
    gbx_dump_level enable_dump_tensor; /* GBX_DUMP_OFF: no tensors */
    bool enable_dump_args; /* the arguments of the orchestration and of every dispatch */
    gbx_dump_options dump;
    gbx_guard_mode guard;
    /* Called now and then during the run, on the thread that waits for it; may be NULL. */
    void (*progress)(void *context, uint64_t tasks_completed);
    void *progress_context;
} gbx_call_config;

/*
 * Checks dump filters before anything is compiled: GBX_INVALID_ARGUMENT where one is wrong or
 * matches none of the kernels. Only func_id and name of the kernels count.
 */
GBX_API GBX_MUST_USE gbx_status gbx_dump_filters_check(const gbx_dump_options *options,
                                                       const gbx_kernel *kernels,
                                                       size_t kernel_count);

typedef struct gbx_call_result {
    int64_t device_ns;   /* of the run on the chip, by its clock */
    uint64_t tasks;      /* tasks completed */
    uint64_t dispatches; /* their dispatches */
    gbx_dump_totals dump;
    /* What kernels did outside of their arguments; the first of them, also after a failure. */
    uint64_t finding_count;
    gbx_run_finding findings[GBX_RESULT_FINDINGS];
} gbx_call_result;

/* Calls of one block, without arguments: of a mix of kernels, of one on AIC, of one on AIV0. */
static inline gbx_call gbx_call_mix(uint32_t aic, uint32_t aiv0, uint32_t aiv1) {
    gbx_call call = {{aic, aiv0, aiv1}, 1, 0, 0, 0, 0};
    return call;
}

static inline gbx_call gbx_call_aic(uint32_t func_id) {
    return gbx_call_mix(func_id, GBX_NO_KERNEL, GBX_NO_KERNEL);
}

static inline gbx_call gbx_call_aiv(uint32_t func_id) {
    return gbx_call_mix(GBX_NO_KERNEL, func_id, GBX_NO_KERNEL);
}

/*
 * Runs one task and waits for its end. `config` and `out_result` may be NULL. The messages of
 * GBX_DEVICE_FAULT and GBX_DEVICE_HUNG name the kernel and the core. After these two and
 * GBX_DEVICE_LOST the chip runs nothing more, but its memory can still be copied out, and another
 * chip can be opened at once.
 */
GBX_API GBX_MUST_USE gbx_status gbx_chip_call(gbx_chip *chip, const gbx_call *call,
                                              const gbx_call_config *config,
                                              gbx_call_result *out_result);

#ifdef __cplusplus
}
#endif
#endif
