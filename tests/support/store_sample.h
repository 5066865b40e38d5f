/*
 * An artificial run for tests of the store: any number of tasks, each with a TASK, a SCALAR and a
 * TENSOR record and a payload, all computed from the task's number. Every fifth task has the same
 * payload as the task before it.
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

/* Writes payload, then records; the store deduplicates. False if the store refuses. */
bool sample_write_task(gbx_store *store, uint64_t task);

/*
 * Checks every byte of the RUN record, of the records of tasks that follow it, and of their payload
 * in the file beside the journal. Stops at the first record of another type, and returns the number
 * of records, including RUN. `out_duplicates` counts those flagged as duplicates.
 */
size_t sample_check(const char *directory, const parsed_journal *journal, size_t *out_duplicates);

#endif
