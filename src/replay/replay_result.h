/* Runs one task again and compares it with the dump: the data for reports. */
#ifndef GBX_REPLAY_REPLAY_RESULT_H
#define GBX_REPLAY_REPLAY_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>

#include "analysis/accesses.h"
#include "replay/bits.h"
#include "replay/engine/engine.h"

/* --- the result --- */

typedef enum gbx_replay_verdict {
    GBX_REPLAY_EXACT = 0,   /* all outputs that the dump has are equal, bit for bit */
    GBX_REPLAY_PARTLY = 1,  /* so are all elements that it writes, but not all are written */
    GBX_REPLAY_DIFFERS = 2, /* some written elements differ */
    GBX_REPLAY_NOTHING_WRITTEN = 3, /* it writes no element of any output */
    GBX_REPLAY_NOT_COMPARED = 4,    /* it ran, but the dump has no outputs to compare with */
    GBX_REPLAY_FAULT = 5,           /* it crashed, hung or ended the process */
    GBX_REPLAY_REFUSED = 6,         /* it did not run; only when several tasks are replayed */
    GBX_REPLAY_VERDICT_COUNT = 7
} gbx_replay_verdict;

enum { GBX_REPLAY_KERNEL_BYTES = GBX_SUBTASK_COUNT * (GBX_MAX_KERNEL_NAME + 2) };

/* One output or inout. */
typedef struct gbx_replay_compared {
    uint32_t argument; /* of the task */
    uint32_t slot;
    const char *name; /* NULL; lives as long as the reader */
    gbx_tensor tensor;
    bool is_compared; /* false: the dump does not have it, or it was in flight */
    bool is_exact;
    bool is_unchanged; /* exact, but the same as before the call: maybe not written */
    gbx_bits_comparison bits;
} gbx_replay_compared;

typedef struct gbx_replay_times {
    uint64_t runs;
    uint64_t min_ns;
    uint64_t median_ns;
    uint64_t max_ns;
    uint64_t different; /* runs whose result differs from that of the first */
} gbx_replay_times;

/* Why a task did not run. */
typedef struct gbx_replay_refusal {
    gbx_code code;
    gbx_replay_lack lack;
    char
        *reason; /* to print after the task's name and lack; NULL if out of memory, like the next */
    char *sentence; /* the same as a complete sentence */
} gbx_replay_refusal;

/* Something that is wrong with a task, or a note; docs/replay.md describes each kind. */
typedef struct gbx_replay_finding {
    gbx_task_finding is; /* `argument` counts the task's arguments */
    uint32_t slot;       /* of that argument; GBX_NO_ARGUMENT for none */
    const char *name;    /* NULL; lives as long as the reader */
    gbx_tensor tensor;   /* of that argument */
    int64_t distance;    /* of a stray write: bytes before (negative) or behind the argument; 0:
                            inside its extent */
    bool is_fault;       /* known from an access that faulted */
    bool has_address;    /* `is.address` is one of the run */
    bool has_owner;      /* `owner` is the tensor that lies there, or the reader */
    bool is_followed;    /* of unwritten elements: a reader of any would have been found */
    gbx_tensor_access owner;
    gbx_replay_dispatch parties[2]; /* of is.parties, where they are set */
} gbx_replay_finding;

static inline bool gbx_replay_is_note(const gbx_replay_finding *finding) {
    return finding->is.kind >= GBX_FIRST_NOTE;
}

typedef struct gbx_replay_result {
    gbx_replay_verdict verdict;
    uint64_t task;
    uint64_t task_id;
    char title[GBX_REPLAY_TITLE_BYTES];   /* with the dispatch if there is only one */
    char kernel[GBX_REPLAY_KERNEL_BYTES]; /* "matmul+add" for a mix */
    int64_t dispatch;                     /* -1 for all */
    uint32_t dispatch_count;
    bool has_core_ids;       /* those of the run; else they are guessed */
    bool did_complete;       /* in the recorded run */
    bool is_end_of_run;      /* the recorded run ended in this task */
    bool is_end_unknown;     /* the run failed, and an older dump does not record in which task */
    gbx_replay_fault *fault; /* NULL: all calls returned */
    bool is_other_poison;    /* it came only with the other pattern */
    uint64_t fault_run;      /* the run with the fault, from 1; 0 if there was only one run */
    bool is_relocated;       /* see gbx_replay_outcome */
    uint32_t order;          /* gbx_order_state */
    uint64_t stray_bytes;    /* that changed outside its outputs */
    uint64_t stray_address;
    gbx_stray_range *ranges; /* of stray bytes, in addresses of the run; maybe not all */
    uint32_t range_count;
    int64_t stray_argument; /* slot whose extent contains stray_address; -1 for none */
    bool stray_is_unknown;  /* tensors are too large to search */
    gbx_replay_finding *findings;
    uint32_t finding_count; /* notes among them */
    uint32_t note_count;
    uint32_t findings_left_out; /* there are more than an answer has places for, like the next */
    uint32_t notes_left_out;
    bool flags_are_unknown; /* see gbx_answer */
    gbx_replay_compared *outputs;
    size_t output_count;
    gbx_replay_times times;
    gbx_replay_refusal refusal; /* of GBX_REPLAY_REFUSED */
} gbx_replay_result;

/* Payloads by argument of the task; NULL for none. */
typedef struct gbx_replay_payloads {
    unsigned char *dump[GBX_REPLAY_MAX_ARGUMENTS];
    unsigned char *kept[GBX_KEPT_COUNT][GBX_REPLAY_MAX_ARGUMENTS];
} gbx_replay_payloads;

/*
 * Which tasks use which memory: made when a finding needs it. If `entries` are those of some tasks
 * only, the dump is then read in full. The first two are borrowed; the rest is zero before.
 */
typedef struct gbx_replay_memory {
    gbx_entries *entries;
    const char *directory; /* of the dump */
    gbx_reader *reader;    /* of all tasks, if it had to be opened */
    gbx_entries *all;      /* of that reader */
    gbx_accesses *accesses;
} gbx_replay_memory;

void gbx_replay_memory_free(gbx_replay_memory *memory);

typedef struct gbx_replay_job {
    gbx_replay_engine *engine;
    gbx_entries *entries;
    gbx_replay_memory *memory;
    gbx_replay_request request;
    const char *run_end; /* how the recorded run ended; "" if well */
} gbx_replay_job;

/* Runs the task alone. The caller frees both outputs, even after a failure. `out_payloads` may be
 * NULL. */
GBX_MUST_USE gbx_status gbx_replay_execute(const gbx_replay_job *job,
                                           gbx_replay_payloads *out_payloads,
                                           gbx_replay_result *out_result);

/* The result of a task whose outcome is there: takes what it needs of the outcome. */
GBX_MUST_USE gbx_status gbx_replay_result_make(const gbx_replay_job *job,
                                               gbx_replay_outcome *outcome,
                                               gbx_replay_result *out_result);

/* --- aftermath.c --- */

/* The findings of an outcome, with what they mean for other tasks. */
GBX_MUST_USE gbx_status gbx_replay_find_aftermath(const gbx_replay_job *job,
                                                  const gbx_replay_outcome *outcome,
                                                  gbx_replay_result *result);

/* Sets result->kernel. */
void gbx_replay_result_name(gbx_replay_result *result, const gbx_replay_task *task);

void gbx_replay_result_free(gbx_replay_result *result);
void gbx_replay_payloads_free(gbx_replay_payloads *payloads);

/* Over all compared outputs, unless noted. */
typedef struct gbx_replay_sums {
    uint64_t outputs;
    uint64_t not_compared; /* outputs */
    uint64_t unchanged;    /* outputs */
    uint64_t written;      /* elements of all outputs, like `unstable` */
    uint64_t elements;
    uint64_t not_written;
    uint64_t mismatches;
    uint64_t unstable;
} gbx_replay_sums;

gbx_replay_sums gbx_replay_result_sums(const gbx_replay_result *result);

#endif
