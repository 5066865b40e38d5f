/* Runs one task again and compares it with the dump: the data for reports. */
#ifndef GBX_REPLAY_REPLAY_RESULT_H
#define GBX_REPLAY_REPLAY_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>

#include "replay/engine/engine.h"

/*
 * --- outputs of the replay and of the dump, compared bit for bit ---
 *
 * An output is filled with a poison before the kernel runs. An element that keeps it in two runs
 * with different poisons was not written. All functions of this part are pure.
 */

enum { GBX_REPLAY_POISON = 0xa5, GBX_REPLAY_OTHER_POISON = 0x5a };

/* Row-major payloads of one tensor; all but `replay` may be NULL. */
typedef struct gbx_bits_payloads {
    const unsigned char *dump;   /* to compare with */
    const unsigned char *replay; /* of the run with GBX_REPLAY_POISON */
    const unsigned char *other;  /* of the run with GBX_REPLAY_OTHER_POISON */
    const unsigned char *before; /* the run: an unchanged element counts as not written */
    bool is_poisoned;            /* false for an inout, which starts with its own bytes */
} gbx_bits_payloads;

typedef struct gbx_bits_comparison {
    uint64_t elements;
    uint64_t not_written; /* the rest is compared */
    uint64_t unstable;    /* written, and different in both runs */
    uint64_t mismatches;  /* written, and different from the dump */
    double max_abs;       /* of mismatches: |dump - replay|; infinite if one is not finite */
    uint64_t first_bad;   /* row-major number of the first mismatch */
    uint64_t dump_bits;   /* of the first mismatch */
    uint64_t replay_bits;
} gbx_bits_comparison;

gbx_bits_comparison gbx_bits_compare(const gbx_tensor *tensor, const gbx_bits_payloads *payloads);

/* Whether the kernel wrote an element; a poisoned output needs `other`. */
bool gbx_bits_is_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                         uint64_t number);

/* The raw bits of an element by its row-major number. */
uint64_t gbx_bits_element(const gbx_tensor *tensor, const unsigned char *payload, uint64_t number);

/* Whether bits equal either of the two poisons. */
bool gbx_bits_is_poison(const gbx_tensor *tensor, uint64_t number, uint64_t bits);

/* Whether any element of a row-major payload has all its bytes equal to `poison`. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison);

/*
 * `want` and `again` are results of the same calls with two poisons that differ in every bit. Sets
 * each element that still holds its poison in both to 0 in all three payloads, and counts them.
 */
uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const unsigned char poisons[2], void *got);

/* |a - b|: 0 for equal bits, otherwise infinite if one is not finite. */
double gbx_bits_distance(uint32_t dtype, uint64_t a, uint64_t b);

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

typedef struct gbx_replay_result {
    gbx_replay_verdict verdict;
    uint64_t task;
    uint64_t task_id;
    char title[GBX_REPLAY_TITLE_BYTES];   /* with the dispatch if there is only one */
    char kernel[GBX_REPLAY_KERNEL_BYTES]; /* "matmul+add" for a mix */
    int64_t dispatch;                     /* -1 for all */
    uint32_t dispatch_count;
    bool has_core_ids;   /* those of the run; else they are guessed */
    bool did_complete;   /* in the recorded run */
    bool is_end_of_run;  /* the recorded run ended in this task */
    bool is_end_unknown; /* the run failed, and an older dump does not record in which task */
    gbx_replay_outcome outcome;
    bool is_other_poison;   /* the fault came only with GBX_REPLAY_OTHER_POISON */
    uint64_t fault_run;     /* the run with the fault, from 1; 0 if there was only one run */
    int64_t stray_argument; /* slot that contains outcome.stray_address; -1 for none */
    const char *stray_name; /* of that argument; may be NULL */
    gbx_replay_compared *outputs;
    size_t output_count;
    gbx_replay_times times;
    gbx_replay_refusal refusal; /* of GBX_REPLAY_REFUSED */
} gbx_replay_result;

/* Payloads by argument of the task; NULL for none. */
typedef struct gbx_replay_payloads {
    unsigned char *dump[GBX_REPLAY_MAX_ARGUMENTS];
    unsigned char *replay[GBX_REPLAY_MAX_ARGUMENTS];
    unsigned char *other[GBX_REPLAY_MAX_ARGUMENTS];
    unsigned char *before[GBX_REPLAY_MAX_ARGUMENTS];
} gbx_replay_payloads;

typedef struct gbx_replay_job {
    gbx_replay_engine *engine;
    gbx_replay_request request; /* with GBX_REPLAY_POISON */
    const char *run_end;        /* how the recorded run ended; "" if well */
    uint64_t runs;              /* at least 1 */
} gbx_replay_job;

/*
 * Runs the task job->runs times, and once more with the other poison if the first run leaves
 * doubts. The caller frees both outputs, even after a failure.
 */
GBX_MUST_USE gbx_status gbx_replay_execute(const gbx_replay_job *job,
                                           gbx_replay_payloads *out_payloads,
                                           gbx_replay_result *out_result);

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
