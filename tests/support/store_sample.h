/*
 * A made-up run for tests of the store: any number of tasks, each with a TASK, a SCALAR and a
 * TENSOR record and a payload, all of which follow from the task's number. The payload of every
 * fifth task is that of the task before it.
 */
#ifndef GBX_TESTS_STORE_SAMPLE_H
#define GBX_TESTS_STORE_SAMPLE_H

#include "checks.h"

#include <stdbool.h>
#include <stdint.h>

#include "journal_parse.h"
#include <glassbox/kernel.h>

#include "store/writer.h"

extern const char sample_run_json[];

enum { SAMPLE_RECORDS_PER_TASK = 3, SAMPLE_PAYLOAD_MAX_BYTES = 32 << 10 };

/* Payload, then records; deduplicated as the store finds it. False when the store refuses. */
bool sample_write_task(gbx_store *store, uint64_t task);

/*
 * Every byte of the RUN record and of the records of tasks that follow it, and the payload of each
 * in the file beside the journal. Stops at the first record of another type, and returns how many
 * there were, RUN included. `out_duplicates` counts those flagged so.
 */
size_t sample_check(const char *directory, const parsed_journal *journal, size_t *out_duplicates);

#endif
