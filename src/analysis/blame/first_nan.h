/*
 * The first output of a run, in the order in which tasks completed, that has a NaN or an infinity:
 * and the first of those whose task read none, so that it made them itself.
 */
#ifndef GBX_ANALYSIS_BLAME_FIRST_NAN_H
#define GBX_ANALYSIS_BLAME_FIRST_NAN_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "analysis/graph.h"
#include "analysis/selection.h"
#include "base/status.h"
#include "text/names.h"

/* What a task read before it left such an output. */
typedef enum gbx_nan_inputs {
    GBX_NAN_INPUTS_CLEAN = 0,
    GBX_NAN_INPUTS_HAVE_SOME = 1,
    GBX_NAN_INPUTS_UNKNOWN = 2, /* none is known, but the dump lacks values of some */
    GBX_NAN_INPUTS_COUNT = 3
} gbx_nan_inputs;

extern const gbx_name_set gbx_nan_inputs_names; /* "clean" */

typedef struct gbx_nan_output {
    uint64_t task;  /* task_seq */
    uint64_t entry; /* of gbx_entries */
    uint64_t nan_count;
    uint64_t inf_count;
    bool has_element; /* the dump has its bytes: the first such element, row-major */
    uint64_t element;
    uint32_t dtype;
    uint64_t bits;
    gbx_nan_inputs inputs;
    uint64_t input; /* the first input that has some, or is unknown; an entry */
    uint64_t input_nan_count;
    uint64_t input_inf_count;
} gbx_nan_output;

typedef struct gbx_first_nan {
    bool has_first;
    gbx_nan_output first; /* that has any */
    bool has_introduced;
    gbx_nan_output introduced; /* whose task read none */
    bool has_nan;
    gbx_nan_output nan; /* with a NaN, whose task read no NaN: infinities do not count */
    uint64_t outputs;   /* floats that were looked at, up to the answer */
    uint64_t unknown;   /* of these: the dump lacks their values, or some of them */
    uint64_t in_flight; /* outputs of tasks that did not complete, not looked at */
} gbx_first_nan;

/* The output to look at: the one that was introduced, else the first; NULL if there is none. */
static inline const gbx_nan_output *gbx_first_nan_answer(const gbx_first_nan *found) {
    if (found->has_introduced)
        return &found->introduced;
    return found->has_first ? &found->first : NULL;
}

/* All members may be NULL. */
typedef struct gbx_first_nan_request {
    const gbx_selected *only; /* the entries that may be the answer, ascending; NULL: all */
    void (*progress)(void *context, uint64_t done, uint64_t all);
    /* Whether the NaNs of an output do not count. */
    gbx_status (*passes_over)(void *context, const gbx_nan_output *output, bool *out_passes);
    void *context;
} gbx_first_nan_request;

/* The reader's payload must be open. */
GBX_MUST_USE gbx_status gbx_first_nan_find(gbx_entries *entries, const gbx_task_graph *graph,
                                           const gbx_first_nan_request *request,
                                           gbx_first_nan *out_first);

#endif
