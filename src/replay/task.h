/* One task of a dump as a call that can be repeated: its arguments and its results. */
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
    gbx_tensor tensor; /* data: the address in the run; 0 if the dump does not have it */
    uint64_t bits;     /* of a scalar: its raw word */
    uint32_t dtype;
    const char *name;       /* NULL if it has none; lives as long as the reader */
    uint64_t before;        /* of an input or inout: the entry before dispatch, with all bytes */
    uint64_t after;         /* of an output or inout: the entry after completion, with all bytes;
                               GBX_REPLAY_NO_ENTRY if the dump does not have it: then it is not compared */
    uint64_t before_offset; /* of a tensor's payload, where there is such an entry */
    uint64_t after_offset;
} gbx_replay_argument;

/* One call of kernel_entry. */
typedef struct gbx_replay_dispatch {
    uint32_t subtask; /* gbx_subtask */
    uint32_t block_idx;
    uint32_t core_id; /* of the run (--dump-args), or GBX_REPLAY_NO_CORE */
} gbx_replay_dispatch;

/* What a dump lacks to call a task again. */
typedef enum gbx_replay_lack {
    GBX_REPLAY_LACKS_NOTHING = 0,     /* or the obstacle is not the dump */
    GBX_REPLAY_LACKS_TASK = 1,        /* it has no such task */
    GBX_REPLAY_LACKS_DESCRIPTION = 2, /* the run skipped it: its tensors are undescribed */
    GBX_REPLAY_LACKS_RECORD = 3,      /* the record of the task was lost */
    GBX_REPLAY_LACKS_SUBTASKS = 4,    /* another tool's dump: cores and blocks are unknown */
    GBX_REPLAY_LACKS_SIGNATURE = 5,   /* its arguments are unknown */
    GBX_REPLAY_LACKS_OUTPUTS = 6,     /* the run ended before they were recorded */
    GBX_REPLAY_LACKS_ARGUMENTS = 7    /* the sentence lists those that are not complete */
} gbx_replay_lack;

typedef struct gbx_replay_task {
    uint64_t task; /* task_seq */
    uint64_t task_id;
    uint32_t func_ids[GBX_SUBTASK_COUNT];        /* UINT32_MAX for none */
    const char *kernel_names[GBX_SUBTASK_COUNT]; /* NULL for none; "func 3" without name */
    uint32_t block_num;
    bool did_complete;              /* false: it crashed, hung, or was running when the run ended */
    gbx_replay_argument *arguments; /* by slot */
    uint32_t argument_count;
    gbx_replay_dispatch *dispatches; /* by block, then subtask */
    uint32_t dispatch_count;         /* block_num times the number of kernels */
    bool has_addresses;              /* all tensors have one */
    gbx_replay_lack lack;            /* why it could not be read */
    char name_texts[GBX_SUBTASK_COUNT][24];
} gbx_replay_task;

/*
 * Fails with GBX_OUT_OF_RANGE if the dump has no such task. Fails with GBX_NOT_FOUND if an argument
 * that the kernel reads is missing or incomplete: the sentence names each one (slot, name), why (no
 * payload at this level, truncated, overwritten, lost, skipped, filtered) and what to do (run again
 * with --dump-tensor=full); and if the run ended before the outputs were recorded, so that their
 * addresses are unknown without --dump-args. Arguments are known from DISPATCH records or else the
 * signatures of the kernels or else argument records. The reader must be open with ARGUMENTS |
 * DISPATCHES | GRAPH.
 *
 * If out_task->lack is set, the sentence names neither the task nor the lack, which
 * gbx_replay_task_explain adds; names and numbers in out_task are then valid.
 */
GBX_MUST_USE gbx_status gbx_replay_task_read(gbx_entries *entries, uint64_t task,
                                             gbx_replay_task *out_task);
void gbx_replay_task_free(gbx_replay_task *task);

/* Consumes a failure of gbx_replay_task_read and returns the complete sentence; without title it is
 * the same for all tasks with the same lack. */
GBX_MUST_USE gbx_status gbx_replay_task_explain(const gbx_replay_task *task, gbx_status status,
                                                bool has_title);

/* "task 29, kernel softmax_prepare", "task 3, kernels multiply, prepare_finish, finish", or "task
 * 5" if its kernels are unknown. */
enum { GBX_REPLAY_TITLE_BYTES = 320 };
const char *gbx_replay_task_title(const gbx_replay_task *task,
                                  char out_text[GBX_REPLAY_TITLE_BYTES]);

#endif
