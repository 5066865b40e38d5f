/*
 * The arguments of all tasks of a dump, one entry an argument and stage, numbered as the manifest
 * numbers them, each with what its task and its kernel say of it.
 */
#ifndef GBX_ANALYSIS_ENTRIES_H
#define GBX_ANALYSIS_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/elements.h"
#include "base/status.h"
#include "store/reader.h"
#include "tensor/statistics/statistics.h"

typedef struct gbx_entries gbx_entries;

/* What is pointed at lives until the next call with the same gbx_entries or its reader. */
typedef struct gbx_entry {
    uint64_t index;
    const gbx_record *head;          /* of one of these two: */
    const gbx_record_tensor *tensor; /* NULL for a scalar */
    const gbx_record_scalar *scalar; /* NULL for a tensor */
    const gbx_record_task *task;     /* NULL where it was lost */
    const char *arg_name;            /* NULL where it has none */
    uint32_t dtype;                  /* an undeclared scalar is a uint64 */
} gbx_entry;

/* The reader was opened with GBX_INDEX_ARGUMENTS, and is borrowed. Takes 8 bytes an entry. */
GBX_MUST_USE gbx_status gbx_entries_create(gbx_reader *reader, gbx_entries **out_entries);
void gbx_entries_destroy(gbx_entries *entries); /* takes NULL */

gbx_reader *gbx_entries_reader(const gbx_entries *entries);
uint64_t gbx_entries_count(const gbx_entries *entries);

/* `index` is below the count. Fastest in ascending order. */
GBX_MUST_USE gbx_status gbx_entries_at(gbx_entries *entries, uint64_t index, gbx_entry *out_entry);

/* The first entry of a task, or of the first one after it; the count where there is none. */
uint64_t gbx_entries_find(const gbx_entries *entries, uint64_t task);

/* Where an entry lies in the index of the reader. */
uint64_t gbx_entries_position(const gbx_entries *entries, uint64_t index);

/* --- what an entry holds --- */

/* Of the shape; 1 for a scalar. UINT64_MAX where it does not fit. */
uint64_t gbx_entry_numel(const gbx_entry *entry);

/* The index of an element, numbered row-major, along each dimension; nothing of a scalar. */
void gbx_entry_index(const gbx_entry *entry, uint64_t element, int64_t out_index[GBX_MAX_DIMS]);

/* Bytes of payload in the file, overwritten or not; 0 for a scalar, and where none was kept. */
uint64_t gbx_entry_stored_bytes(const gbx_entry *entry);

/* A tensor of another tool's dump whose bytes, if there are some, are not its own: its buffer was
 * written to again before they were taken. The value of a scalar lies in no buffer. */
bool gbx_entry_is_overwritten(const gbx_entry *entry);

/* A scalar, or a tensor of which payload was kept, if only the beginning, and not overwritten. An
 * empty tensor has values: none. */
bool gbx_entry_has_values(const gbx_entry *entry);

/* Reads the values of one entry, which gbx_entry_has_values, whatever is called meanwhile. */
typedef struct gbx_entry_values {
    gbx_elements elements; /* its context is this struct: it must not move */
    const gbx_reader *reader;
    uint64_t offset;    /* of the payload */
    uint64_t bytes;     /* of it */
    uint64_t row_bytes; /* of the last dimension: rows of packed elements begin with a byte */
    bool is_scalar;
    uint64_t scalar_bits;
} gbx_entry_values;

/* Fails with GBX_BAD_FORMAT where shape and size do not fit together. */
GBX_MUST_USE gbx_status gbx_entry_values_open(const gbx_entry *entry, const gbx_reader *reader,
                                              gbx_entry_values *out_values);

/*
 * The statistics of a tensor or scalar: those of the record, where it has them, or else computed
 * from its stored elements. *out_is_there false where it has neither.
 */
GBX_MUST_USE gbx_status gbx_entry_statistics(const gbx_entry *entry, const gbx_reader *reader,
                                             gbx_statistics *out_statistics, bool *out_is_there);

typedef struct gbx_entry_summary {
    gbx_statistics statistics; /* where they are there */
    bool is_there;
} gbx_entry_summary;

/*
 * The same of the first *out_count entries of `indices`, at least one and at most `count`: as many
 * as have about 256 MiB of payload, so that results come in time. Several threads read the payload,
 * and end before it returns.
 */
GBX_MUST_USE gbx_status gbx_entries_statistics(gbx_entries *entries, const uint64_t *indices,
                                               size_t count, gbx_entry_summary *out_summaries,
                                               size_t *out_count);

/* --- what a dump can be relied on to hold, from what it says of itself --- */

/* Whether the run was to record every argument of every task, filters or not, if only its form. */
bool gbx_run_has_all_metadata(const gbx_run_info *run);

/* Whether the dump has a record of every argument of the tasks that it has records of. */
bool gbx_dump_has_whole_tasks(gbx_reader *reader);

/* Whether it has a record of every argument of every task that was run. */
bool gbx_dump_has_whole_graph(gbx_reader *reader);

#endif
