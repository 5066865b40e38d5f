/*
 * Which tasks of a dump read and wrote an address, by the views of their arguments.
 *
 * Bytes are counted whole: an argument has a byte if one of its elements has a bit of it. Tasks are
 * in the order of submission, which is that of task_seq; what ran at the same time is not looked
 * at. Views that are invalid or end more than 2^56 bytes after their buffer's address are left out,
 * and so are those with so many overlapping dimensions that gbx_view_find gives up on an address.
 */
#ifndef GBX_ANALYSIS_ACCESSES_H
#define GBX_ANALYSIS_ACCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "analysis/entries.h"
#include "base/status.h"

typedef struct gbx_accesses gbx_accesses;

/* An argument of a task, or a result of the run, with elements in a range of addresses. */
typedef struct gbx_tensor_access {
    bool is_result;                       /* an output of the run as it was at the end: no task */
    uint64_t task;                        /* task_seq; 0 for a result, as is task_id */
    uint64_t task_id;                     /* 0 if the record of the task was lost */
    uint32_t func_ids[GBX_SUBTASK_COUNT]; /* UINT32_MAX for none, a result or a lost record */
    uint32_t arg_index;                   /* of the task or, for a result, of the run */
    uint32_t role;                        /* gbx_role */
    const char *name;                     /* NULL if it has none; the reader's */
    gbx_tensor tensor; /* data: address in the run. A result in pieces: where it would begin if all
                          of it lay like the piece with `element`. */
    uint64_t element;  /* the first, row-major, that shares a byte with the range */
} gbx_tensor_access;

/*
 * Indexes the tensors of all arguments, in-flight ones too, and of the results: each argument of a
 * task once, by its first record. Takes about 20 bytes per argument and 40 per different view; up
 * to 20 more per entry while it is created. A dump without addresses gives an empty index.
 *
 * Results have addresses if their records list pieces (gbx_result). If the dump has no results, or
 * they lay in too many pieces to be listed, they are not found.
 *
 * Everything is borrowed; the reader must be open with GBX_INDEX_ARGUMENTS, for all tasks. One
 * thread at a time uses an index, its entries and the reader.
 */
GBX_MUST_USE gbx_status gbx_accesses_create(gbx_entries *entries, gbx_accesses **out_accesses);
void gbx_accesses_destroy(gbx_accesses *accesses); /* takes NULL */

/*
 * The tensor of another task than `task` that an address belongs to: of those that have its byte,
 * that of the task with the nearest number; of equally near ones the one with the smallest extent,
 * then output before inout before input, then the first. If there is none, *out_access is
 * untouched.
 */
GBX_MUST_USE gbx_status gbx_accesses_owner(gbx_accesses *accesses, uint64_t task, uint64_t address,
                                           gbx_tensor_access *out_access, bool *out_is_found);

/*
 * Who reads [address, address + bytes) next, as `task` left it: the first task after it with an
 * input or inout that has a byte of it which no task in between has as output; else, after the last
 * task, the first result of the run that has one. out_access->element is the first with such a
 * byte. If nobody does, *out_access is untouched.
 *
 * An output that covers the range in more than 16384 pieces counts as not written.
 */
GBX_MUST_USE gbx_status gbx_accesses_next_read(gbx_accesses *accesses, uint64_t task,
                                               uint64_t address, uint64_t bytes,
                                               gbx_tensor_access *out_access, bool *out_is_found);

#endif
