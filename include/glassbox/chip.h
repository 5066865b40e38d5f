/*
 * A simulated chip: open it, put tensors into its global memory (GM), register kernels, call them.
 *
 * A chip is used by one thread at a time; different chips by different threads. The copies may be
 * called by any thread while another waits for a call to end.
 */
#ifndef GLASSBOX_CHIP_H
#define GLASSBOX_CHIP_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/dump.h>
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

typedef struct gbx_chip gbx_chip;

typedef enum gbx_device_mode {
    GBX_DEVICE_PROCESS = 0, /* the chip is a process of its own: what crashes there stays there */
    GBX_DEVICE_THREAD = 1   /* threads of this process: for debuggers and function pointers */
} gbx_device_mode;

/* All zero is a good configuration: the defaults above, a2a3sim, in a process. */
typedef struct gbx_chip_config {
    const char *platform; /* "a2a3sim", "a5sim"; NULL: a2a3sim */
    gbx_device_mode device;
    uint32_t blocks;          /* 1 to GBX_MAX_BLOCKS; 0: default */
    uint32_t aicpu_threads;   /* 1 to GBX_MAX_AICPU_THREADS; 0: default */
    uint64_t gm_bytes;        /* rounded up to 4 KiB; taken from the system as it is touched */
    const char *chip_program; /* path of glassbox-chip; NULL: $GLASSBOX_CHIP, else beside us */
} gbx_chip_config;

/* Starts a chip; NULL for all defaults. It is the caller's until gbx_chip_close; on failure
 * *out_chip is NULL. */
GBX_API GBX_MUST_USE gbx_status gbx_chip_open(const gbx_chip_config *config, gbx_chip **out_chip);

/* Ends the chip, whatever state it is in, and frees all its memory. NULL is fine. */
GBX_API void gbx_chip_close(gbx_chip *chip);

/* Whether the device has failed, so that this chip runs nothing more. */
GBX_API bool gbx_chip_has_failed(const gbx_chip *chip);

/* The name of the chip's platform, and of all platforms in turn (NULL past the last). */
GBX_API const char *gbx_chip_platform(const gbx_chip *chip);
GBX_API const char *gbx_platform_name(uint32_t index);
GBX_API const char *gbx_platform_description(uint32_t index);

/* Whether the host of such a chip reads and writes global memory in place; false past the last. */
GBX_API bool gbx_platform_maps_memory(uint32_t index);

/* --- global memory --- */

/*
 * Device addresses. On a2a3sim the host may follow one that gbx_gm_map gave back; on a5sim, of a
 * chip in a process, it faults. Memory is not cleared when it is used again. Addresses are
 * multiples of 512.
 */
GBX_API GBX_MUST_USE gbx_status gbx_gm_alloc(gbx_chip *chip, uint64_t bytes, uint64_t *out_address);
GBX_API GBX_MUST_USE gbx_status gbx_gm_free(gbx_chip *chip, uint64_t address);
GBX_API GBX_MUST_USE gbx_status gbx_gm_copy_in(gbx_chip *chip, uint64_t to, const void *from,
                                               size_t bytes);
GBX_API GBX_MUST_USE gbx_status gbx_gm_copy_out(gbx_chip *chip, void *to, uint64_t from,
                                                size_t bytes);

/* The host's view of device memory, valid until it is freed; GBX_UNSUPPORTED on a5sim. */
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
    const char *compile_flags;    /* further compiler flags, by blanks; may be NULL */
    const char *link_flags;       /* libraries, by blanks; may be NULL; -lm is there */
    const char *shared_object;    /* a ready .so that defines kernel_entry */
    gbx_kernel_function function; /* of this program; needs GBX_DEVICE_THREAD */
    /* For dumps; all may be NULL. Both lists are in the order of the signature. */
    const char *signature; /* "in,inout,out,scalar:float32": tells the dtypes of scalars */
    const char *arg_names; /* "query,state,output,scale" */
    const char *origin; /* with shared_object: the source that it was made of, by the flags above */
} gbx_kernel;

/*
 * Compiles (where it is a source), loads and checks a kernel. A compiler's own message, or the
 * loader's, is part of the failure's message.
 */
GBX_API GBX_MUST_USE gbx_status gbx_kernel_register(gbx_chip *chip, const gbx_kernel *kernel);

/* --- calls --- */

/*
 * One task: its kernels, how many blocks, its arguments. Borrowed until the call returns. Begin
 * with one of the functions below: all zero would name kernel 0 three times.
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

/* How to run it. All zero is a good configuration. */
typedef struct gbx_call_config {
    uint32_t timeout_ms; /* the longest time without progress; 0: GBX_DEFAULT_TIMEOUT_MS */
    uint32_t window;     /* tensormap_and_ringbuffer: tasks at a time; 0: GBX_DEFAULT_WINDOW */
    uint64_t heap_bytes; /* ...: its heap ring; 0: half of the memory that is free, at most 4 GiB */
    gbx_build_mode build; /* aicpu_build_graph */
    /* A dump of the run: either alone makes one, into dump.directory. */
    gbx_dump_level enable_dump_tensor; /* GBX_DUMP_OFF: no tensors */
    bool enable_dump_args; /* what the orchestration and every dispatch was called with */
    gbx_dump_options dump;
    /* Called now and then while the run lasts, on the thread that waits for it; may be NULL. */
    void (*progress)(void *context, uint64_t tasks_completed);
    void *progress_context;
} gbx_call_config;

/*
 * What a run would say of its filters, before anything is compiled: GBX_INVALID_ARGUMENT where one
 * is wrong, or means none of the kernels. Of them, func_id and name count.
 */
GBX_API GBX_MUST_USE gbx_status gbx_dump_filters_check(const gbx_dump_options *options,
                                                       const gbx_kernel *kernels,
                                                       size_t kernel_count);

typedef struct gbx_call_result {
    int64_t device_ns;   /* of the whole run on the chip, by its clock */
    uint64_t tasks;      /* that were completed */
    uint64_t dispatches; /* that they took */
    gbx_dump_totals dump;
} gbx_call_result;

/* A call of one block without arguments yet, of a kernel on AIC or on AIV0, or of a mix of three.
 */
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
 * Runs one task and waits for its end. `config` and `out_result` may be NULL. GBX_DEVICE_FAULT and
 * GBX_DEVICE_HUNG name the kernel and the core; after them and after GBX_DEVICE_LOST the chip runs
 * nothing more, its memory can still be copied out, and another chip can be opened at once.
 */
GBX_API GBX_MUST_USE gbx_status gbx_chip_call(gbx_chip *chip, const gbx_call *call,
                                              const gbx_call_config *config,
                                              gbx_call_result *out_result);

#ifdef __cplusplus
}
#endif
#endif
