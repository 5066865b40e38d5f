/* The parts of verify.h other than the journal's records: payload, RANGE, sums and manifests. */
#ifndef GBX_STORE_VERIFY_INTERNAL_H
#define GBX_STORE_VERIFY_INTERNAL_H

#include "base/hash.h"
#include "store/verify/findings.h"
#include "store/verify/verify.h"

/* --- verify_payload.c: checks alignment, place, overlap and hash of payload --- */

/* One record with payload. */
typedef struct gbx_verify_entry {
    uint64_t offset;
    uint64_t bytes;
    gbx_hash128 hash;
    uint64_t position; /* in the reader's index; of a result, its arg_index */
    uint64_t index : 61;
    uint64_t is_result : 1;
    uint64_t is_duplicate : 1;
    uint64_t has_hash : 1;
} gbx_verify_entry;

typedef struct gbx_verify_list {
    gbx_verify_entry *entries; /* the caller frees them */
    size_t count;
    uint64_t capacity;
} gbx_verify_list;

/*
 * Whether the records have our own form: payload is aligned, and bytes belong to one record or to
 * several that share all of them. Other tools promise neither.
 */
bool gbx_verify_is_own(const gbx_reader *reader);

/*
 * Checks every entry against the payload file and adds what is wrong to `findings`; sorts the list.
 * Shared bytes are read once. Keeps a few MiB of payload in memory. Fails with GBX_IO when the file
 * cannot be read.
 */
GBX_MUST_USE gbx_status gbx_verify_payload(gbx_reader *reader, gbx_verify_list *list,
                                           gbx_findings *findings,
                                           const gbx_verify_observer *observer,
                                           uint64_t *out_file_bytes);

/* --- verify_ranges.c --- */

/* Compares the RANGE of every good block of the journal with its records. Reads the journal again.
 * Fails with GBX_IO when that is refused, GBX_BAD_FORMAT when the journal has changed. */
GBX_MUST_USE gbx_status gbx_verify_ranges(int journal_fd, const gbx_reader *reader,
                                          gbx_findings *findings);

/* --- verify_sums.c: announced = recorded + skipped + lost --- */

/* A task that has more or fewer arguments than it announced. */
typedef struct gbx_sums_task {
    uint64_t task;
    uint64_t expected;
    uint64_t found;
} gbx_sums_task;

typedef struct gbx_sums_check {
    gbx_reader *reader;
    gbx_findings *findings;
    uint64_t *skipped; /* the task of each skipped argument, sorted */
    uint64_t skipped_count;
    uint64_t skipped_at; /* those of earlier tasks were counted */
    uint64_t lost;       /* arguments */
    bool is_loss_known;  /* every LOSS says exactly how many arguments */
    uint64_t missing;    /* of all tasks; the first one: */
    gbx_sums_task first;
    gbx_record_task first_about;
} gbx_sums_check;

/* Call gbx_sums_free, even if it fails. */
GBX_MUST_USE gbx_status gbx_sums_begin(gbx_sums_check *sums, gbx_reader *reader,
                                       gbx_findings *findings);
void gbx_sums_free(gbx_sums_check *sums);

/* A task with as many records of arguments at each stage; tasks come in order of their numbers. */
void gbx_sums_add_task(gbx_sums_check *sums, const gbx_record_task *about,
                       const gbx_record_announced *announced, uint64_t before, uint64_t after,
                       bool is_done, bool is_strict);

/* All tasks together. */
void gbx_sums_end(gbx_sums_check *sums);

/* --- verify_manifest.c --- */

/*
 * Compares every manifest that the run was asked for with the journal, entry by entry; differences
 * go to `findings`. Layout does not matter, nor do unknown members or members that the writing
 * version did not have. *out_is_missing: a file is missing. Fails with GBX_IO when one cannot be
 * read.
 */
GBX_MUST_USE gbx_status gbx_verify_manifests(const char *directory, gbx_reader *reader,
                                             gbx_findings *findings,
                                             const gbx_verify_observer *observer,
                                             bool *out_is_missing);

#endif
