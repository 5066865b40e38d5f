/*
 * Replays memory from the records of a dump only: whether every input holds what was last written
 * there, and whether tasks that share memory were ordered.
 *
 * An input is read at its task's first dispatch; an output is what memory holds at its task's
 * completion. If an input differs from what earlier records say, a task wrote there without
 * declaring it; the same goes for a result of the run at its end. If one task writes what another
 * reads or writes, the two must be ordered: by edges if the dump has all of them, else by time.
 */
#ifndef GBX_ANALYSIS_AUDIT_AUDIT_H
#define GBX_ANALYSIS_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/entries.h"
#include "analysis/graph.h"
#include "base/status.h"
#include "text/names.h"

typedef enum gbx_audit_kind {
    GBX_AUDIT_UNDECLARED_WRITE = 0,   /* first: the last writer; second: the reader */
    GBX_AUDIT_READ_TOO_EARLY = 1,     /* first: the writer; second: the reader */
    GBX_AUDIT_OVERLAPPING_WRITES = 2, /* in graph order */
    GBX_AUDIT_CHANGED_RESULT = 3,     /* first: the last writer; no second: a result of the run */
    GBX_AUDIT_KIND_COUNT = 4
} gbx_audit_kind;

extern const gbx_name_set gbx_audit_kinds; /* "undeclared_write" */

/* One of the two tasks of a finding; of a result, begin and end are those of its bytes, row-major.
 */
typedef struct gbx_audit_side {
    uint64_t task;  /* task_seq */
    uint64_t entry; /* its argument, an index of gbx_entries */
    int64_t begin;  /* the range of the finding, in bytes from the argument's buffer */
    int64_t end;
} gbx_audit_side;

typedef enum gbx_audit_reason {
    GBX_SUSPECT_HAS_IT = 0,       /* one of its arguments lies there, which it must not write */
    GBX_SUSPECT_ENDS_BEFORE = 1,  /* one of its outputs ends `distance` bytes before */
    GBX_SUSPECT_BEGINS_AFTER = 2, /* one of its outputs begins `distance` bytes after */
    GBX_SUSPECT_RAN = 3           /* it ran at the time; nothing else is known, and no entry */
} gbx_audit_reason;

extern const gbx_name_set gbx_audit_reasons; /* "argument_there" */

/* A task that ran when an undeclared write must have happened. */
typedef struct gbx_audit_suspect {
    uint64_t task;
    uint64_t entry;
    uint64_t distance;
    gbx_audit_reason reason;
} gbx_audit_suspect;

enum { GBX_AUDIT_SUSPECTS = 4 };

typedef struct gbx_audit_finding {
    gbx_audit_kind kind;
    gbx_audit_side first;
    gbx_audit_side second;
    uint64_t address; /* of the range: elements that differ, or bytes that both tasks access */
    uint64_t bytes;

    bool is_result;  /* there is no second task: */
    uint64_t result; /* position among the results of the reader */

    /* The first element of `second` in the range that differs from what `first` left; none if
     * nothing differs, or the dump lacks the bytes of one of them. */
    bool has_element;
    uint64_t element; /* row-major */
    uint32_t dtype;
    uint64_t expected; /* raw bits */
    uint64_t found;

    bool is_compared;   /* the bytes of both are known: without has_element they are equal */
    bool is_concurrent; /* by their times, both ran at once */
    bool has_no_path;   /* the dump has all edges, and none orders the two */
    bool is_seen;       /* `first` did not write it but read it: what it read is known */
    bool is_read_first; /* of a read: the reader comes first in graph order */
    bool is_read_late;  /* of those: by the times, the writer had completed before */

    bool has_suspects;      /* suspects were searched for */
    uint64_t suspect_count; /* of all; the likeliest ones are: */
    gbx_audit_suspect suspects[GBX_AUDIT_SUSPECTS];
} gbx_audit_finding;

/* Why an input could not be compared. An input counts once. */
typedef enum gbx_audit_gap {
    GBX_GAP_NO_BYTES = 0,        /* the dump lacks its bytes, or those written there before */
    GBX_GAP_MISSING_OUTPUTS = 1, /* it differs, but outputs of earlier tasks are missing */
    GBX_GAP_PIECES = 2,          /* its view has too many pieces */
    GBX_GAP_COUNT = 3
} gbx_audit_gap;

typedef struct gbx_audit_counts {
    uint64_t tasks;
    uint64_t records;     /* tensors, without those in flight */
    uint64_t inputs;      /* records before dispatch: */
    uint64_t compared;    /* all that was known of their memory was compared */
    uint64_t first_reads; /* nothing was known of their memory: arguments of the run */
    uint64_t raced;       /* they differ, as a finding of a read too early explains */
    uint64_t not_compared[GBX_GAP_COUNT];
    uint64_t missing_tasks; /* tasks whose outputs are missing; UINT64_MAX: maybe all */
    uint64_t unfollowed;    /* outputs whose views have too many pieces */
    uint64_t in_flight;     /* records, not audited */
    uint64_t damaged;       /* records whose hash does not match: treated as missing */
    uint64_t bad_edges;
    uint64_t outputs; /* records after completion: */
    uint64_t unread;  /* overwritten before any task read a byte of them, and of no result */
    uint64_t results; /* tensors of the run at its end: */
    uint64_t result_bytes;
    uint64_t results_compared;   /* all that was known of their memory was compared */
    uint64_t results_raced;      /* they differ, as a finding of overlapping writes explains */
    uint64_t results_incomplete; /* the dump lacks bytes of them, of what was written there, or
                                    outputs of tasks that may have written there */
    uint64_t result_unwritten;   /* bytes that no task declares to write */
    uint64_t result_unfilled; /* of these, those that no task read either, and that do not hold what
                                 new memory is filled with: who wrote them is not known */
    bool has_more;            /* there are findings that are not listed */
    bool has_edges;           /* order is by edges; else only by time */
    bool is_complete;         /* the run came to its end, even if it failed, and nothing was lost */
} gbx_audit_counts;

/* Records that were left out, completely or in part. */
uint64_t gbx_audit_left_out(const gbx_audit_counts *counts);

/* What the run did that the dump has no records of. */
typedef enum gbx_audit_lack {
    GBX_AUDIT_LACKS_NOTHING,
    GBX_AUDIT_LACKS_END,          /* the dump is not complete */
    GBX_AUDIT_LACKS_ARGUMENTS,    /* any task may have arguments that are not in the dump */
    GBX_AUDIT_LACKS_SOME_OUTPUTS, /* some tasks have outputs that are not in the dump */
} gbx_audit_lack;

gbx_audit_lack gbx_audit_find_lack(const gbx_audit_counts *counts);

/* The edge, task_seq to task_seq, that would order the two tasks of a finding without path; if both
 * write, the reverse edge would too. */
void gbx_audit_missing_edge(const gbx_audit_finding *finding, uint64_t *out_from, uint64_t *out_to);

typedef struct gbx_audit {
    gbx_audit_counts counts;
    gbx_audit_finding *findings; /* by the later of both tasks in graph order; 100,000 at most */
    size_t finding_count;
} gbx_audit;

/* May be NULL. */
typedef void (*gbx_audit_progress)(void *context, uint64_t done, uint64_t all);

/*
 * The reader must be open with GBX_INDEX_GRAPH and ARGUMENTS, and its payload too. Memory grows
 * with the number of records and of ranges that views cut memory into, not with the payload. Fails
 * with GBX_BAD_FORMAT if the dump lacks addresses or times.
 */
GBX_MUST_USE gbx_status gbx_audit_run(gbx_entries *entries, const gbx_task_graph *graph,
                                      gbx_audit_progress progress, void *context,
                                      gbx_audit *out_audit);
void gbx_audit_free(gbx_audit *audit);

#endif
