/*
 * What is odd about the arguments of a graph. None of it is wrong by itself: it is asked where the
 * results of a run are wrong although every task is right for its own inputs, because then the
 * graph is wrong.
 */
#ifndef GBX_DIAGNOSE_ODD_H
#define GBX_DIAGNOSE_ODD_H

#include "analysis/entries.h"
#include "analysis/graph.h"

/* The oddest first. */
typedef enum gbx_odd_kind {
    GBX_ODD_UNWRITTEN,    /* it holds what new memory holds: it was never written */
    GBX_ODD_NAMED_SCALAR, /* it has the name of a scalar of the run, and another value */
    GBX_ODD_SCALAR_BITS,  /* an integer has the bits of a float, or the other way round */
    GBX_ODD_SCALAR,       /* it breaks the pattern of all other tasks of the kernel */
    GBX_ODD_SWAPPED,     /* it gets what its producer calls like another argument, and vice versa */
    GBX_ODD_RELATION,    /* it does not lie where another argument of its task has it in all other
                            tasks of the kernel */
    GBX_ODD_READ_TWICE,  /* an input that another task has read in the same way, while nobody reads
                            what a sibling of its writer left */
    GBX_ODD_LOST_WRITE,  /* an output lies where `other` left one that was never read */
    GBX_ODD_ALIAS,       /* an output lies where an input of the same task is */
    GBX_ODD_VIEW,        /* it breaks the pattern of all other tasks of the kernel */
    GBX_ODD_LAYOUT,      /* it has another shape or strides than in all other tasks of the kernel */
    GBX_ODD_SOURCE,      /* another kernel left it than in all other tasks of the kernel */
    GBX_ODD_REPEATED,    /* all arguments are those of an earlier task of the kernel */
    GBX_ODD_NEAR_SCALAR, /* an integer close to the length of an argument, and not that */
    GBX_ODD_LOOSE_SCALAR /* an integer that varies, and is no length or offset of any tensor */
} gbx_odd_kind;

typedef struct gbx_odd_argument {
    gbx_odd_kind kind;
    bool is_size;         /* of a view: how many elements it has; else where it begins */
    bool is_output;       /* the task writes it, too; set by hints.c, like the next */
    bool is_needed;       /* it can explain what is wrong with the results */
    uint64_t task;        /* task_seq */
    uint64_t entry;       /* of gbx_entries */
    uint64_t other;       /* another task, with its entry; UINT64_MAX for none */
    uint64_t other_entry; /* may be one of the same task */
    uint64_t unread;      /* of READ_TWICE: the entry that is never read */
    uint64_t reader;      /* of READ_TWICE: the other entry that has read the same; of SOURCE: what
                             leaves the argument of other tasks */
    uint32_t dimension;   /* of RELATION, in both arguments; of a scalar, 0 */
    uint32_t other_dimension;
    uint64_t difference;     /* of RELATION: what `found` is more than `expected` in other tasks */
    uint64_t expected;       /* bits, an address, elements, or where a dimension begins */
    uint32_t expected_dtype; /* of bits with a name */
    uint64_t found;
    uint64_t element;  /* of UNWRITTEN: the first; its bytes are from `found` to `expected` */
    uint64_t siblings; /* tasks that make a pattern */
} gbx_odd_argument;

typedef struct gbx_odd {
    gbx_odd_argument *items; /* the oddest first */
    size_t count;
    uint64_t capacity;
} gbx_odd;

/* The reader must be open with ARGUMENTS | GRAPH. The caller frees the result, even after a
 * failure. */
GBX_MUST_USE gbx_status gbx_odd_find(gbx_entries *entries, const gbx_task_graph *graph,
                                     gbx_odd *out_odd);
void gbx_odd_free(gbx_odd *odd);

/*
 * The position in a sequence that breaks its pattern, and what would fit there. A pattern is a
 * value that all have, or a sequence of nested loops, in which values a fixed number of places
 * apart differ by the same amount. False if there is no pattern, or nothing breaks it, or more than
 * one place does.
 */
bool gbx_odd_one(const uint64_t *values, size_t count, size_t *out_position,
                 uint64_t *out_expected);

/* --- shared by the files of odd --- */

GBX_MUST_USE gbx_status gbx_odd_add(gbx_odd *odd, const gbx_odd_argument *argument);

/* Adds what is odd about who reads and writes what. */
GBX_MUST_USE gbx_status gbx_odd_find_flow(gbx_entries *entries, const gbx_task_graph *graph,
                                          gbx_odd *odd);

/* Adds what is odd about how the arguments of a task belong together. */
GBX_MUST_USE gbx_status gbx_odd_find_relations(gbx_entries *entries, const gbx_task_graph *graph,
                                               gbx_odd *odd);

#endif
