/*
 * A task as the scheduler and its probe see it. The runtime that builds the graph fills it in and
 * releases it; from then on only the scheduler changes it, until it has completed.
 */
#ifndef GBX_SCHED_TASK_H
#define GBX_SCHED_TASK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/orchestration.h>

#define GBX_MAX_WORDS (GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS)

/* What a word of a task is: a tensor with its role, or a scalar with its dtype. */
#define GBX_WORD_TENSOR 0x80u
#define GBX_WORD_ROLE 0x03u  /* of a tensor: gbx_role */
#define GBX_WORD_DTYPE 0x1fu /* of a scalar: gbx_dtype; GBX_DTYPE_NONE: undeclared */
static_assert(GBX_DTYPE_COUNT <= GBX_WORD_DTYPE + 1,
              "a dtype fits a word's kind and a 32-bit mask");

/*
 * The arguments of a task; written by the builder before the task can run. The words follow
 * directly, and the tensors at the next multiple of 64 bytes, in the order of the words that are
 * tensors. Kernels read the tensors in global memory. With a probe there is a second copy in
 * private memory, with the same words: scheduler and probe read only that one, because a kernel can
 * overwrite global memory. Without a probe there is one copy, of which the scheduler reads the
 * words.
 */
typedef struct gbx_task_arguments {
    uint32_t word_count;
    uint32_t tensor_count; /* tensors that follow */
    uint32_t is_described; /* 0: which words are tensors is unknown */
    uint32_t reserved;
    uint64_t dumped_words; /* a bit for each word that the orchestration marked for the dump */
    uint64_t
        misdescribed_words; /* private copy: a bit for each tensor word that did not lead to its
                               description when the graph was built; there is nothing to dump */
    uint8_t kinds[GBX_MAX_WORDS]; /* of each word, as above */
    uint64_t words[];
} gbx_task_arguments;
_Static_assert(offsetof(gbx_task_arguments, words) == 96, "layout of a task's arguments");
_Static_assert(sizeof(gbx_tensor) % 64 == 0, "arguments that follow others are aligned");

static inline uint64_t gbx_task_arguments_tensors_offset(uint32_t word_count) {
    uint64_t end = offsetof(gbx_task_arguments, words) + (uint64_t)word_count * sizeof(uint64_t);
    return (end + 63) & ~UINT64_C(63);
}

/* A multiple of 64. */
static inline uint64_t gbx_task_arguments_bytes(uint32_t word_count, uint32_t tensor_count) {
    return gbx_task_arguments_tensors_offset(word_count) + tensor_count * sizeof(gbx_tensor);
}

static inline gbx_tensor *gbx_task_arguments_tensors(const gbx_task_arguments *arguments) {
    return (gbx_tensor *)((uintptr_t)arguments +
                          gbx_task_arguments_tensors_offset(arguments->word_count));
}

typedef struct gbx_sched_task gbx_sched_task;

/* A task that waits for another. The memory belongs to the successor and lives as long. */
typedef struct gbx_sched_edge gbx_sched_edge;
struct gbx_sched_edge {
    gbx_sched_edge *next;       /* of the same predecessor; scheduler */
    gbx_sched_edge *next_input; /* of the same successor; builder */
    gbx_sched_task *successor;
    uint64_t predecessor; /* its number */
};

/* Which queue a task waits in: a gang is a task of more than one dispatch. */
typedef enum gbx_sched_class {
    GBX_CLASS_AIC = 0,
    GBX_CLASS_AIV = 1,
    GBX_CLASS_GANG = 2,
    GBX_CLASS_COUNT = 3
} gbx_sched_class;

enum { GBX_INLINE_WORDS = 8 };

struct gbx_sched_task {
    /* One cache line for all that a worker needs. */
    _Alignas(64) _Atomic uint32_t pending; /* predecessors to complete, and one for the builder */
    _Atomic uint32_t left;                 /* dispatches to complete */
    _Atomic(gbx_sched_edge *) successors;  /* GBX_SCHED_COMPLETED once it has completed */
    uint64_t id;                           /* its number in order of submission */
    const uint64_t *words;                 /* inline_words, or those of the arguments */
    uint32_t func_ids[GBX_SUBTASK_COUNT];  /* GBX_NO_KERNEL for none */
    uint32_t block_num;
    uint32_t next_block; /* of a gang: the first block not dispatched yet */
    uint8_t word_count;
    uint8_t class_of;      /* gbx_sched_class */
    uint8_t first_subtask; /* the only one, except in a mix */
    uint8_t subtask_count;
    /* One for the words, where they fit. */
    _Alignas(64) uint64_t inline_words[GBX_INLINE_WORDS];
    /* The rest is for probes and builders. */
    _Alignas(64) const gbx_task_arguments *arguments; /* with a probe: the private copy */
    gbx_sched_edge *inputs;                           /* the edges to its predecessors; builder */
    uint64_t storage[4];                              /* for the builder */
    /* With a probe: a moment (gbx_finding_sink) at which its arguments in global memory were right.
     * The builder, then the probe. */
    uint64_t right_at;
};
_Static_assert(sizeof(gbx_sched_task) == 192, "a task is three cache lines");

#define GBX_SCHED_COMPLETED ((gbx_sched_edge *)(uintptr_t)1)

/* Pairs with the exchange that completes a task: what its kernels wrote is visible. */
static inline bool gbx_sched_task_is_completed(gbx_sched_task *task) {
    return atomic_load_explicit(&task->successors, memory_order_seq_cst) == GBX_SCHED_COMPLETED;
}

#endif
