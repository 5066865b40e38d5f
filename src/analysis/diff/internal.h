/* What the parts of a comparison of two dumps share. */
#ifndef GBX_ANALYSIS_DIFF_INTERNAL_H
#define GBX_ANALYSIS_DIFF_INTERNAL_H

#include "analysis/diff/diff.h"

/* --- diff_tasks.c: the tasks of two dumps, matched, in graph order --- */

/* Numbers (task_seq) of the task in both dumps; GBX_DIFF_NONE where one has no record of it. */
typedef struct gbx_diff_task {
    uint64_t a;
    uint64_t b;
    uint64_t place; /* what they are sorted by */
} gbx_diff_task;

typedef struct gbx_diff_tasks {
    gbx_diff_task *items;
    uint64_t count;
    gbx_diff_matching matching;
    uint64_t bad_edges;
} gbx_diff_tasks;

/* Graph order is that of A's edges or, where it has none, B's. Freed by gbx_diff_tasks_free. */
GBX_MUST_USE gbx_status gbx_diff_tasks_match(gbx_entries *a, gbx_entries *b,
                                             gbx_diff_tasks *out_tasks);
void gbx_diff_tasks_free(gbx_diff_tasks *tasks);

/* Whether the task can be the same in both: the names of its kernels, in any order, where both
 * tell them. The entries are of the task. */
bool gbx_diff_kernels_match(const gbx_reader *reader_a, const gbx_entry *a,
                            const gbx_reader *reader_b, const gbx_entry *b);

/* --- diff_pair.c: one record of each dump against the other --- */

enum { GBX_DIFF_PIECE_BYTES = 128 * 1024 }; /* of what is read: both stay in the cache */

typedef struct gbx_diff_pair {
    const gbx_entry *a;
    const gbx_entry *b;
    const gbx_reader *reader_a;
    const gbx_reader *reader_b;
    const gbx_diff_options *options;
    unsigned char *pieces;                          /* two of GBX_DIFF_PIECE_BYTES */
    void (*on_read)(void *context, uint64_t bytes); /* so many more of each; may be NULL */
    void *context;
    bool is_hashed;      /* out: equal by their hashes */
    uint64_t read_bytes; /* out: of each */
} gbx_diff_pair;

/* Fills verdict, reason, truncation and metrics; the rest of the record is left alone. */
GBX_MUST_USE gbx_status gbx_diff_pair_compare(gbx_diff_pair *pair, gbx_diff_record *record);

/* --- diff.c: what is kept from task to task --- */

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

/* --- diff_origin.c --- */

/* Where the first record that differs, an input, comes from: fills `origin` and the writers. */
GBX_MUST_USE gbx_status gbx_diff_walk_find_origin(gbx_diff_walk *walk);

#endif
