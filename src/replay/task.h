/* One task of a dump as a call that can be made again: what its kernels got, and what they left. */
#ifndef GBX_REPLAY_TASK_H
#define GBX_REPLAY_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "analysis/entries.h"
#include "base/status.h"

#define GBX_REPLAY_NO_ENTRY UINT64_MAX
#define GBX_REPLAY_NO_CORE UINT32_MAX
enum { GBX_REPLAY_MAX_ARGUMENTS = GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS };

typedef struct gbx_replay_argument {
    uint32_t slot; /* in args[] */
    uint32_t role; /* gbx_role */
    bool is_tensor;
    gbx_tensor tensor; /* data: the address in the run; 0 where the dump does not tell */
    uint64_t bits;     /* of a scalar: its raw word */
    uint32_t dtype;
    const char *name; /* NULL where it has none; lives as long as the reader */
    uint64_t before; /* the entry with its bytes before dispatch, all of them; of an input, inout */
    uint64_t after;  /* the entry with its bytes after completion, all of them; of an output, inout.
                        GBX_REPLAY_NO_ENTRY where the dump does not have them: such an output runs
                        and is not compared */
} gbx_replay_argument;

/* One call of kernel_entry. */
typedef struct gbx_replay_dispatch {
    uint32_t subtask; /* gbx_subtask */
    uint32_t block_idx;
    uint32_t core_id; /* of the run, where the dump has it (--dump-args); else
                         GBX_REPLAY_NO_CORE */
} gbx_replay_dispatch;

/* What a dump lacks for a task to be called again. */
typedef enum gbx_replay_lack {
    GBX_REPLAY_LACKS_NOTHING = 0,     /* or it is not the dump that stops it */
    GBX_REPLAY_LACKS_TASK = 1,        /* it has no such task */
    GBX_REPLAY_LACKS_DESCRIPTION = 2, /* the run skipped it: which words are tensors is not known */
    GBX_REPLAY_LACKS_RECORD = 3,      /* the record of the task was lost */
    GBX_REPLAY_LACKS_SUBTASKS = 4,    /* another tool's: cores and blocks are not known */
    GBX_REPLAY_LACKS_SIGNATURE = 5,   /* which arguments it has is not known */
    GBX_REPLAY_LACKS_OUTPUTS = 6,     /* the run ended before they were known */
    GBX_REPLAY_LACKS_ARGUMENTS = 7    /* the sentence lists those that are not all there */
} gbx_replay_lack;

typedef struct gbx_replay_task {
    uint64_t task; /* task_seq */
    uint64_t task_id;
    uint32_t func_ids[GBX_SUBTASK_COUNT];        /* UINT32_MAX for none */
    const char *kernel_names[GBX_SUBTASK_COUNT]; /* NULL for none; "func 3" where not named */
    uint32_t block_num;
    bool did_complete; /* false: it crashed, hung, or was running when the run ended */
    gbx_replay_argument arguments[GBX_REPLAY_MAX_ARGUMENTS]; /* by slot */
    uint32_t argument_count;
    gbx_replay_dispatch *dispatches; /* by block, then subtask */
    uint32_t dispatch_count;         /* block_num times the number of kernels */
    bool has_addresses;              /* all tensors have one */
    gbx_replay_lack lack;            /* where it could not be read */
    char name_texts[GBX_SUBTASK_COUNT][24];
} gbx_replay_task;

/*
 * Fails with GBX_OUT_OF_RANGE where the dump has no such task, and with GBX_NOT_FOUND where an
 * argument that the kernel reads is not all in the dump: the sentence names every one that is
 * missing (slot, name) and why (no payload at this level, truncated, overwritten, lost, skipped,
 * filtered), and what to do (run again with --dump-tensor=full); or where the run ended before the
 * outputs were recorded and nothing tells where they lie (--dump-args does). Which arguments it has
 * is known from DISPATCH records, where there are some, else from the signatures of its kernels,
 * else from the records alone. The reader was opened with ARGUMENTS | DISPATCHES | GRAPH.
 *
 * Where out_task->lack says what the dump lacks, the sentence names neither the task nor the lack:
 * gbx_replay_task_explain does. Names and numbers of the task are there then, too.
 */
GBX_MUST_USE gbx_status gbx_replay_task_read(gbx_entries *entries, uint64_t task,
                                             gbx_replay_task *out_task);
void gbx_replay_task_free(gbx_replay_task *task);

/* Consumes what gbx_replay_task_read failed with and gives the whole sentence back; without a title
 * it is the same for all tasks that lack the same. */
GBX_MUST_USE gbx_status gbx_replay_task_explain(const gbx_replay_task *task, gbx_status status,
                                                bool has_title);

/* "task 29, kernel softmax_prepare", "task 3, kernels multiply, prepare_finish, finish",
 * "task 5" where its kernels are not known. */
enum { GBX_REPLAY_TITLE_BYTES = 320 };
const char *gbx_replay_task_title(const gbx_replay_task *task,
                                  char out_text[GBX_REPLAY_TITLE_BYTES]);

#endif
