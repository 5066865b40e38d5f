/*
 * The entries of a dump: one for each argument of each task at each stage, numbered as in the
 * manifest, with its task and its name.
 */
#ifndef GBX_ANALYSIS_ENTRIES_H
#define GBX_ANALYSIS_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/elements.h"
#include "base/held_signals.h"
#include "base/status.h"
#include "store/reader.h"
#include "tensor/statistics/statistics.h"

typedef struct gbx_entries gbx_entries;

/* Its pointers are valid until the next call with the same gbx_entries or its reader. */
typedef struct gbx_entry {
    uint64_t index;                  /* among those that the reader was opened for */
    const gbx_record *head;          /* of `tensor` or `scalar` */
    const gbx_record_tensor *tensor; /* NULL for a scalar */
    const gbx_record_scalar *scalar; /* NULL for a tensor */
    const gbx_record_task *task;     /* NULL if it was lost */
    const char *arg_name;            /* NULL if it has none */
    uint32_t dtype;                  /* GBX_DTYPE_NONE: an undeclared scalar */
} gbx_entry;

/* The reader must be open with GBX_INDEX_ARGUMENTS, and is borrowed. Takes 8 bytes per entry. */
GBX_MUST_USE gbx_status gbx_entries_create(gbx_reader *reader, gbx_entries **out_entries);
void gbx_entries_destroy(gbx_entries *entries); /* takes NULL */

gbx_reader *gbx_entries_reader(const gbx_entries *entries);
uint64_t gbx_entries_count(const gbx_entries *entries);

/* `index` is below the count. Fastest in ascending order. */
GBX_MUST_USE gbx_status gbx_entries_at(gbx_entries *entries, uint64_t index, gbx_entry *out_entry);

/* The first entry of a task or, if it has none, of the next task; the count after the last. */
uint64_t gbx_entries_find(const gbx_entries *entries, uint64_t task);

/* The position of an entry in the reader's index. */
uint64_t gbx_entries_position(const gbx_entries *entries, uint64_t index);

/* --- what an entry holds --- */

/* Elements of the shape, 1 for a scalar; UINT64_MAX if the count overflows. */
uint64_t gbx_entry_numel(const gbx_entry *entry);

/* Bytes of payload in the file, overwritten or not; 0 for a scalar or without payload. */
uint64_t gbx_entry_stored_bytes(const gbx_entry *entry);

/* Whether it is a tensor, of another tool's dump, whose buffer was written to again before its
 * bytes were captured: they are not its values. */
bool gbx_entry_is_overwritten(const gbx_entry *entry);

/* Whether it is a scalar, or a tensor with payload, even truncated, that is not overwritten. */
bool gbx_entry_has_values(const gbx_entry *entry);

/* What its elements are read as: its dtype; for an undeclared scalar uint64, its raw word. */
uint32_t gbx_entry_element_dtype(const gbx_entry *entry);

/* Reads the values of one entry that has some; other calls in between do not matter. */
typedef struct gbx_entry_values {
    gbx_elements elements; /* its context is this struct: it must not move */
    const gbx_reader *reader;
    uint64_t offset;    /* of the payload */
    uint64_t bytes;     /* of the payload */
    uint64_t row_bytes; /* of the last dimension: rows of packed elements begin with a byte */
    bool is_scalar;
    uint64_t scalar_bits;
} gbx_entry_values;

/* Fails with GBX_BAD_FORMAT if shape and payload size contradict each other. */
GBX_MUST_USE gbx_status gbx_entry_values_open(const gbx_entry *entry, const gbx_reader *reader,
                                              gbx_entry_values *out_values);

/*
 * Copies `bytes` of payload to a stream, up to its first write error, which the caller reports.
 * `change` is applied to each piece. Fails once a signal has come. Both may be NULL.
 */
GBX_MUST_USE gbx_status gbx_payload_copy(const gbx_reader *reader, uint64_t offset, uint64_t bytes,
                                         const gbx_held_signals *signals,
                                         void (*change)(unsigned char *piece, size_t size),
                                         FILE *to);

/*
 * The statistics of a tensor or scalar: those in its record or, without these, computed from its
 * stored elements. *out_is_there is false if it has neither, or is an undeclared scalar.
 */
GBX_MUST_USE gbx_status gbx_entry_statistics(const gbx_entry *entry, const gbx_reader *reader,
                                             gbx_statistics *out_statistics, bool *out_is_there);

typedef struct gbx_entry_summary {
    gbx_statistics statistics; /* valid if is_there */
    bool is_there;
} gbx_entry_summary;

/*
 * The same for the first *out_count entries of `indices`: at least one, at most `count`, and only
 * about 256 MiB of payload, so that results come soon. Several threads read the payload, and end
 * before it returns.
 */
GBX_MUST_USE gbx_status gbx_entries_statistics(gbx_entries *entries, const uint64_t *indices,
                                               size_t count, gbx_entry_summary *out_summaries,
                                               size_t *out_count);

/* --- what a dump is sure to hold, by its own account --- */

/* Whether the run recorded at least the form of every argument of all tasks, despite filters. */
bool gbx_run_has_all_metadata(const gbx_run_info *run);

/* Whether the dump has a record of every argument of each task that it has any record of. */
bool gbx_dump_has_whole_tasks(gbx_reader *reader);

/* Whether the dump has a record of every argument of every task that ran. */
bool gbx_dump_has_whole_graph(gbx_reader *reader);

#endif
