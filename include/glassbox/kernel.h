/*
 * All that a kernel needs to include: the arguments of kernel_entry and how to read them.
 *
 *     #include <glassbox/kernel.h>
 *     void kernel_entry(const uint64_t *args) {
 *         const gbx_tensor *x = gbx_arg_tensor(args, 0);
 *         ...
 *     }
 *
 * Every layout here is the same on every platform and every runtime.
 */
#ifndef GLASSBOX_KERNEL_H
#define GLASSBOX_KERNEL_H

#include <sched.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GBX_MAX_DIMS 8
#define GBX_MAX_TENSOR_ARGS 32
#define GBX_MAX_SCALAR_ARGS 32

/* Slots of args[]: tensors first, scalars after them, the two contexts at fixed indices. */
#define GBX_ARG_LOCAL_CONTEXT 64
#define GBX_ARG_GLOBAL_CONTEXT 65
#define GBX_ARG_SLOTS 66

typedef enum gbx_dtype {
    GBX_DTYPE_NONE = 0, /* unknown: an undeclared scalar; never valid in a tensor */
    GBX_FLOAT32 = 1,
    GBX_FLOAT16 = 2,
    GBX_BFLOAT16 = 3,
    GBX_FLOAT64 = 4,
    GBX_INT8 = 5,
    GBX_UINT8 = 6,
    GBX_INT16 = 7,
    GBX_UINT16 = 8,
    GBX_INT32 = 9,
    GBX_UINT32 = 10,
    GBX_INT64 = 11,
    GBX_UINT64 = 12,
    GBX_BOOL = 13,        /* one byte, zero or not */
    GBX_FLOAT8_E4M3 = 14, /* finite only ("fn"): no infinities, 0x7f and 0xff are NaN */
    GBX_FLOAT8_E5M2 = 15,
    GBX_INT4 = 16,        /* two a byte, low half first; rows start at a byte */
    GBX_FLOAT4_E2M1 = 17, /* likewise; neither infinity nor NaN */
    GBX_FLOAT8_E8M0 = 18, /* 2^(code - 127), a scale: no sign, no zero; 0xff is NaN */
    GBX_DTYPE_COUNT = 19  /* one past the last */
} gbx_dtype;

/*
 * A view of a buffer. Element (i0, i1, ...) lies start_offset + i0*strides[0] + i1*strides[1] + ...
 * elements after `data`. A tensor of 0 dimensions holds one element.
 */
typedef struct gbx_tensor {
    uint64_t data;         /* address of the buffer in global memory */
    uint64_t buffer_bytes; /* size of the buffer; 0: unknown */
    uint32_t dtype;        /* gbx_dtype */
    uint32_t ndims;        /* 0 to GBX_MAX_DIMS */
    int64_t start_offset;  /* in elements */
    int64_t shape[GBX_MAX_DIMS];
    int64_t strides[GBX_MAX_DIMS]; /* in elements; may be 0 or negative */
    uint64_t reserved[4];          /* zero, except in an impossible view */
} gbx_tensor;

/*
 * In `dtype`: a view that cannot be made, such as a slice past the end of its dimension. The rest
 * is the tensor that it was asked of, and `reserved` says what was asked: the call, the dimension,
 * and start (or index) and length. No task takes such a view; the message names the argument.
 */
#define GBX_IMPOSSIBLE_VIEW 0x80000000u
enum { GBX_VIEW_SLICE = 1, GBX_VIEW_SELECT = 2, GBX_VIEW_TRANSPOSE = 3 };

typedef enum gbx_core_type { GBX_CORE_AIC = 0, GBX_CORE_AIV = 1 } gbx_core_type;

/* A task has up to three subtasks, which run together on the cores of one block. */
typedef enum gbx_subtask {
    GBX_SUBTASK_AIC = 0,
    GBX_SUBTASK_AIV0 = 1,
    GBX_SUBTASK_AIV1 = 2
} gbx_subtask;
#define GBX_SUBTASK_COUNT 3

/* What differs from one dispatch of a task to the next. */
typedef struct gbx_local_context {
    uint32_t block_idx; /* 0 to block_num - 1 */
    uint32_t block_num; /* how many blocks the task runs as */
    uint32_t subtask;   /* gbx_subtask */
    uint32_t core_id;   /* the core it runs on: 3 * block of the chip + 0 (AIC), 1, 2 (AIV) */
} gbx_local_context;

/* What is the same for all dispatches of a run. */
typedef struct gbx_global_context {
    uint64_t gm_base;  /* first address of global memory */
    uint64_t gm_bytes; /* size of global memory; red zones are addresses beyond it */
    uint32_t blocks;   /* blocks of this chip */
    uint32_t reserved;
} gbx_global_context;

/* The function that every kernel defines; visible with any compiler flags. */
__attribute__((visibility("default"))) void kernel_entry(const uint64_t *args);

static inline const gbx_tensor *gbx_arg_tensor(const uint64_t *args, unsigned index) {
    return (const gbx_tensor *)(uintptr_t)args[index];
}

/* Address of the element at index (0, 0, ...) of a tensor whose elements take full bytes. */
static inline void *gbx_tensor_origin(const gbx_tensor *tensor, size_t element_bytes) {
    return (char *)(uintptr_t)tensor->data + tensor->start_offset * (int64_t)element_bytes;
}

static inline float *gbx_tensor_f32(const gbx_tensor *tensor) {
    return (float *)gbx_tensor_origin(tensor, sizeof(float));
}

/* Number of elements; 0 when a dimension is 0. */
static inline int64_t gbx_tensor_numel(const gbx_tensor *tensor) {
    uint64_t count = 1; /* unsigned: next to a 0, other dimensions may overflow */
    for (uint32_t d = 0; d < tensor->ndims; ++d)
        count *= (uint64_t)tensor->shape[d];
    return (int64_t)count;
}

/* Scalars: the low bits of the slot, read as the type that the caller passed. */
static inline float gbx_arg_f32(const uint64_t *args, unsigned index) {
    float value;
    memcpy(&value, &args[index], sizeof value);
    return value;
}

static inline double gbx_arg_f64(const uint64_t *args, unsigned index) {
    double value;
    memcpy(&value, &args[index], sizeof value);
    return value;
}

static inline int32_t gbx_arg_i32(const uint64_t *args, unsigned index) {
    return (int32_t)(uint32_t)args[index];
}

static inline uint32_t gbx_arg_u32(const uint64_t *args, unsigned index) {
    return (uint32_t)args[index];
}

static inline int64_t gbx_arg_i64(const uint64_t *args, unsigned index) {
    return (int64_t)args[index];
}

static inline uint64_t gbx_arg_u64(const uint64_t *args, unsigned index) {
    return args[index];
}

/* float16 and bfloat16 elements by their bits. Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint32_t gbx_f32_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float gbx_f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float gbx_bf16_to_f32(uint16_t bits) {
    return gbx_f32_of_bits((uint32_t)bits << 16);
}

static inline uint16_t gbx_f32_to_bf16(float value) {
    uint32_t bits = gbx_f32_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float gbx_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(bits & 0x7fffu) << 13;
    if ((bits & 0x7c00u) == 0x7c00u)
        return gbx_f32_of_bits(sign | 0x7f800000u | rest);
    /* The exponents differ by 112: times 2^112 is exact, for subnormals too. */
    float scaled = gbx_f32_of_bits(rest) * gbx_f32_of_bits(0x77800000u);
    return gbx_f32_of_bits(sign | gbx_f32_bits(scaled));
}

static inline uint16_t gbx_f32_to_f16(float value) {
    uint32_t bits = gbx_f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (rest >> 13 & 0x1ffu));
    if (rest >= 0x477ff000u) /* from 65520 on, half a step beyond the largest */
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) /* subnormal: the addition rounds to multiples of 2^-24 */
        return (uint16_t)(sign | (gbx_f32_bits(gbx_f32_of_bits(rest) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13));
}

static inline const gbx_local_context *gbx_local(const uint64_t *args) {
    return (const gbx_local_context *)(uintptr_t)args[GBX_ARG_LOCAL_CONTEXT];
}

static inline const gbx_global_context *gbx_global(const uint64_t *args) {
    return (const gbx_global_context *)(uintptr_t)args[GBX_ARG_GLOBAL_CONTEXT];
}

/*
 * Flags in global memory, for subtasks and blocks that wait for each other. A wait sees everything
 * that was written before the matching set, and yields the processor while it waits. Flags only
 * grow: a wait ends when the flag is at least the value, and so misses none.
 */
static inline void gbx_flag_set(uint32_t *flag, uint32_t value) {
    __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

/* Adds to a flag that several dispatches count up; returns the new value. */
static inline uint32_t gbx_flag_add(uint32_t *flag, uint32_t value) {
    return __atomic_add_fetch(flag, value, __ATOMIC_ACQ_REL);
}

static inline void gbx_flag_wait(const uint32_t *flag, uint32_t value) {
    for (unsigned spins = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) < value; ++spins)
        if (spins >= 16)
            sched_yield();
}

#ifdef __cplusplus
}
#endif
#endif
