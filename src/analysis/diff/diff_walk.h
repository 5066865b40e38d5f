/* What a comparison of two dumps keeps while it goes from task to task. */
#ifndef GBX_ANALYSIS_DIFF_DIFF_WALK_H
#define GBX_ANALYSIS_DIFF_DIFF_WALK_H

#include "analysis/diff/diff.h"
#include "analysis/diff/diff_pair.h"
#include "analysis/diff/diff_tasks.h"

/* Entries of a task that are left in both dumps, in the order of stage and arg_index. */
typedef struct gbx_diff_cursor {
    uint64_t a;
    uint64_t end_a;
    uint64_t b;
    uint64_t end_b;
} gbx_diff_cursor;

/* What is known of the inputs of the task at hand. */
typedef struct gbx_diff_inputs {
    bool has_any;
    bool has_within;
    bool has_hidden;      /* some are not selected, and not compared yet */
    uint64_t differing;   /* the first that is different: an entry of A; GBX_DIFF_NONE */
    uint64_t uncompared;  /* the first that was not compared whole, or is in one dump alone */
    bool uncompared_is_b; /* it is an entry of B */
    bool has_beginning;   /* its beginning was compared */
} gbx_diff_inputs;

typedef struct gbx_diff_walk {
    gbx_diff_side a;
    gbx_diff_side b;
    gbx_reader *reader_a;
    gbx_reader *reader_b;
    const gbx_diff_options *options;
    const gbx_diff_observer *observer;
    gbx_diff_result *result;
    gbx_diff_tasks tasks;
    uint64_t place; /* of the task at hand, in `tasks` */
    gbx_diff_inputs inputs;
    bool is_different;    /* the task at hand is counted so */
    bool is_introduced;   /* likewise */
    bool is_unknown;      /* likewise */
    bool is_whole;        /* both dumps have every task */
    bool has_whole_tasks; /* one of them has all arguments of the tasks that it has */
    uint64_t first_place; /* of the task of the first record that differs */
    unsigned char *pieces;
    gbx_entry entry_a; /* of the record at hand */
    gbx_entry entry_b;
} gbx_diff_walk;

gbx_diff_cursor gbx_diff_walk_open(const gbx_diff_walk *walk, uint64_t place);

/* The next record; its entries are the walk's, until the next call. False after the last. */
GBX_MUST_USE gbx_status gbx_diff_walk_next(gbx_diff_walk *walk, gbx_diff_cursor *cursor,
                                           gbx_diff_record *out_record, bool *out_is_there);

/* Compares the two entries of a record. */
GBX_MUST_USE gbx_status gbx_diff_walk_compare(gbx_diff_walk *walk, gbx_diff_record *record,
                                              bool *out_is_hashed);

/* Where the first record that differs, an input, comes from: fills `origin` and the writers. */
GBX_MUST_USE gbx_status gbx_diff_walk_find_origin(gbx_diff_walk *walk);

/* Whether the dump has a record of every argument of every task that was run. */
bool gbx_diff_has_whole_graph(gbx_reader *reader);

/* Whether the dump has a record of every argument of the tasks that it has records of. */
bool gbx_diff_has_whole_tasks(gbx_reader *reader);

#endif
