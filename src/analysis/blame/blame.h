/*
 * Who wrote an element last, by what the tasks of a dump declared: an element of an argument of the
 * run, at its end; or of an argument of a task, as that task read or left it.
 *
 * A task wrote an element if one of its outputs covers it. Of two tasks that did, the later one
 * counts: one that was dispatched after the other had completed, or that waited for it. Where
 * neither is known to be later, both are named.
 */
#ifndef GBX_ANALYSIS_BLAME_BLAME_H
#define GBX_ANALYSIS_BLAME_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "analysis/audit/audit.h"
#include "analysis/entries.h"
#include "analysis/graph.h"
#include "base/status.h"

typedef struct gbx_blame gbx_blame;

/* The reader must be open with GBX_INDEX_GRAPH and ARGUMENTS, and its payload too; everything is
 * borrowed. Fails with GBX_BAD_FORMAT if the dump lacks addresses or times. */
GBX_MUST_USE gbx_status gbx_blame_create(gbx_entries *entries, const gbx_task_graph *graph,
                                         gbx_blame **out_blame);
void gbx_blame_destroy(gbx_blame *blame); /* takes NULL */

/* --- which element --- */

enum { GBX_BLAME_NAME_BYTES = 256 };

typedef struct gbx_blame_element {
    char name[GBX_BLAME_NAME_BYTES]; /* as given: "out", "task:7/x" */
    gbx_tensor tensor;               /* its dtype and shape */
    uint64_t number;                 /* row-major */
    bool is_placed;                  /* it lay in the chip's memory: */
    uint64_t address;                /* of its first byte */
    uint32_t first_bit;              /* in that byte */
    bool is_of_task;                 /* as a task read or left it; else at the end of the run: */
    uint64_t task;                   /* task_seq */
    uint64_t entry;
    bool is_left;    /* the task left it */
    bool has_result; /* of the run: its result is in the dump, at this position */
    uint64_t result;
} gbx_blame_element;

/*
 * Finds an element by its text: NAME[I,J...] for an argument of the run, task:N/ARG[I,J...] for an
 * argument of a task, by its name or slot. Fails with GBX_INVALID_ARGUMENT, and says which names
 * there are or what the shape is.
 */
GBX_MUST_USE gbx_status gbx_blame_find(gbx_blame *blame, const char *text,
                                       gbx_blame_element *out_element);

/* --- who wrote it --- */

typedef struct gbx_blame_writer {
    uint64_t task;    /* task_seq */
    uint64_t entry;   /* its argument, after completion */
    uint64_t element; /* of the argument, row-major: the first that shares a bit */
    bool is_whole;    /* it covers all bits of the element that was asked for */
    bool has_value;   /* the dump has what it left there: */
    uint32_t dtype;
    uint64_t bits;
} gbx_blame_writer;

enum { GBX_BLAME_WRITERS = 8 };

typedef struct gbx_blame_answer {
    gbx_blame_writer writers[GBX_BLAME_WRITERS]; /* the one that completed last comes first */
    uint64_t writer_count; /* of those that may be the last, or wrote a part of it last */
    bool is_order_unknown; /* some of them wrote the same bits, and none is known to be later */
    uint64_t earlier;      /* tasks that wrote it before them, as far as they were looked at */

    bool has_found; /* what it holds, at the end of the run or as the task had it, is known: */
    uint64_t found;
    bool is_changed;        /* that is not what any of the writers left, which is known */
    uint64_t suspect_count; /* then: tasks that ran since; the likeliest first */
    gbx_audit_suspect suspects[GBX_AUDIT_SUSPECTS];

    uint64_t undecided;     /* outputs whose views have too many pieces to tell */
    uint64_t missing_tasks; /* tasks that may have written it last, and whose outputs the dump may
                               lack; UINT64_MAX: maybe all */
    uint64_t in_flight; /* outputs that cover it, of tasks that did not complete: written or not */
    uint64_t in_flight_task; /* the first of these */
    uint64_t in_flight_entry;
} gbx_blame_answer;

GBX_MUST_USE gbx_status gbx_blame_ask(gbx_blame *blame, const gbx_blame_element *element,
                                      gbx_blame_answer *out_answer);

/* --- and from what --- */

/* One task that wrote a part of what another read. */
typedef struct gbx_blame_source {
    uint64_t task;
    uint64_t entry;
    uint64_t bytes;     /* of the input that it wrote last */
    bool is_concurrent; /* both ran at the same time: unclear what the reader saw */
} gbx_blame_source;

enum { GBX_BLAME_SOURCES = 4, GBX_BLAME_INPUTS_MAX = 4096 };

/* One input of a task, and who wrote it. */
typedef struct gbx_blame_input {
    uint32_t depth; /* 1: an input of a writer of the element */
    uint64_t task;  /* that read it */
    uint64_t entry; /* before dispatch */
    uint64_t bytes;
    uint64_t unwritten; /* of these: no task wrote them before */
    bool is_unknown;    /* its view has too many pieces */
    uint64_t source_count;
    gbx_blame_source sources[GBX_BLAME_SOURCES]; /* those of most bytes */
    bool has_counts;                             /* its values are known: */
    uint64_t nan_count;
    uint64_t inf_count;
} gbx_blame_input;

typedef struct gbx_blame_inputs {
    gbx_blame_input *inputs; /* depth by depth; those of a task together, each task once */
    size_t count;
    bool has_more; /* than GBX_BLAME_INPUTS_MAX */
} gbx_blame_inputs;

typedef void (*gbx_blame_progress)(void *context, uint64_t done, uint64_t all);

/* The inputs of a task, of the tasks that wrote these, and so on, `depth` times. */
GBX_MUST_USE gbx_status gbx_blame_trace(gbx_blame *blame, const uint64_t *tasks, size_t task_count,
                                        uint32_t depth, gbx_blame_progress progress, void *context,
                                        gbx_blame_inputs *out_inputs);
void gbx_blame_inputs_free(gbx_blame_inputs *inputs);

#endif
