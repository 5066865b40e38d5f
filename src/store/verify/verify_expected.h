/*
 * What the manifests of a dump have to say, worked out from the journal with none of the code that
 * writes them.
 */
#ifndef GBX_STORE_VERIFY_VERIFY_EXPECTED_H
#define GBX_STORE_VERIFY_VERIFY_EXPECTED_H

#include <jansson.h>

#include "store/reader.h"
#include "store/verify/findings.h"

/* Goes through the entries of one array; zero but for the reader before its first use. */
typedef struct gbx_expected {
    gbx_reader *reader; /* arguments and dispatches are indexed */
    uint64_t position;  /* in the reader's index or list */
    uint64_t index;     /* of the next entry */
    bool has_task;
    gbx_record_task task; /* the last one that came by */

    const char *text; /* of the entry in the file, set by the caller; NULL where there is none */
    size_t text_size;
    bool is_same; /* the text is as expected to the letter: the entry is not worked out */

    bool has_place; /* the entry is an argument */
    gbx_finding_place place;
} gbx_expected;

/* The members that the top of a file has to have, but for its arrays; NULL when memory is out. */
json_t *gbx_expected_tensors_head(gbx_reader *reader);
json_t *gbx_expected_arguments_head(gbx_reader *reader);
json_t *gbx_expected_dispatches_head(gbx_reader *reader);

/* The members that the next entry has to have; the caller json_decrefs them. NULL at the end; of
 * an entry with is_same, any value. */
GBX_MUST_USE gbx_status gbx_expected_next_argument(gbx_expected *expected, json_t **out_entry);
GBX_MUST_USE gbx_status gbx_expected_next_loss(gbx_expected *expected, json_t **out_entry);
GBX_MUST_USE gbx_status gbx_expected_next_skipped(gbx_expected *expected, json_t **out_entry);
GBX_MUST_USE gbx_status gbx_expected_next_run_arg(gbx_expected *expected, json_t **out_entry);
GBX_MUST_USE gbx_status gbx_expected_next_dispatch(gbx_expected *expected, json_t **out_entry);

/* Whether `got` says what is expected: members of objects that are not expected do not count, and
 * a whole number is the same with and without a fraction. */
bool gbx_expected_equals(const json_t *wanted, const json_t *got);

#endif
