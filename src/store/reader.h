/*
 * Reads a dump: its records and their payload.
 *
 * Records come from the journal, DIR/tensor_dump/tensor_dump.rec (format.h). Without a journal they
 * come from a manifest, ours or that of another tool that writes the same JSON: it is converted
 * into a journal in memory (store/import/import.h) and then read like one.
 *
 * All of it is untrusted input. Opening a journal walks over it once and checks the checksum of
 * every block and the sizes of every record, up to the first place that is wrong. Everything before
 * that place can be read; gbx_reader_get_extent says what is wrong there. Records of unknown types
 * are counted, and skipped by all functions below. A reader keeps 16 bytes for each indexed record
 * and a few MiB besides, whatever the journal's size. gbx_reader_open_tasks reads less.
 *
 * One thread uses a reader. Records handed out are complete and checked: the fixed part of their
 * type and all words that ndims, flags and counts announce lie inside `words`. They stay in the
 * reader's memory until the next call.
 */
#ifndef GBX_STORE_READER_H
#define GBX_STORE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/orchestration.h>

#include "base/status.h"
#include "store/import/import.h"
#include "store/journal/format.h"
#include "store/journal/record.h"
#include "store/payload/payload.h"
#include "store/run/run_info.h"

typedef struct gbx_reader gbx_reader;

/* What the index of gbx_reader_at holds; TASK records are in it unless it is empty. */
enum {
    GBX_INDEX_NOTHING = 0,
    GBX_INDEX_ARGUMENTS = 1u << 0,  /* SCALAR, TENSOR */
    GBX_INDEX_DISPATCHES = 1u << 1, /* DISPATCH */
    GBX_INDEX_GRAPH = 1u << 2,      /* EDGES, DONE */
    GBX_INDEX_EXECUTIONS = 1u << 3, /* EXECUTION */
    GBX_INDEX_SAMPLES = 1u << 4     /* SAMPLE: GBX_LIST_SAMPLES is empty without it */
};

/*
 * `directory` is what gbx_dump_path_find returns. Fails with GBX_NOT_FOUND when it holds neither
 * journal nor manifest, GBX_IO when the system refuses, GBX_UNSUPPORTED when only a newer version
 * can read it (a newer journal, or an unknown record that must not be skipped), and GBX_BAD_FORMAT
 * when it is not a journal or its first block, with the RUN record, cannot be read; for a manifest,
 * when anything in it is wrong, naming entry and field.
 */
GBX_MUST_USE gbx_status gbx_reader_open(const char *directory, unsigned indexed,
                                        gbx_reader **out_reader);

/*
 * The same for callers that need only the tasks from `first` to `last`. Blocks that cannot hold a
 * record of these are passed over: of each, only the head and the RANGE record are read and
 * checked. A journal of an older version and a manifest are read in full.
 *
 * The index has only records of these tasks; entries (analysis/entries.h) are numbered among them.
 * Lists, END, what was run, the number of lost and of newer records, and whether the dump is
 * complete are the same as for a reader of all tasks, with one exception: it does not notice damage
 * inside a block that it passed over, nor a RANGE that is false, which only `glassbox verify` does.
 * There are no totals (gbx_reader_get_totals).
 */
GBX_MUST_USE gbx_status gbx_reader_open_tasks(const char *directory, unsigned indexed,
                                              uint64_t first, uint64_t last,
                                              gbx_reader **out_reader);

/* False for gbx_reader_open_tasks. */
bool gbx_reader_has_all_tasks(const gbx_reader *reader);

void gbx_reader_close(gbx_reader *reader); /* takes NULL */

/* --- where it comes from --- */

/* What is known about the records: of a journal everything, of a manifest what every entry has. */
enum {
    GBX_KNOWN_TASK_SEQ = 1u << 0,   /* if not, tasks are numbered as they first appear */
    GBX_KNOWN_ADDRESSES = 1u << 1,  /* buffer_addr */
    GBX_KNOWN_TIMES = 1u << 2,      /* time_ns and thread */
    GBX_KNOWN_SUBTASKS = 1u << 3,   /* block_num, and which of func_ids is AIC, AIV0, AIV1; if not,
                                      they are the first of three */
    GBX_KNOWN_STATUS = 1u << 4,     /* how the run ended; if not, it counts as "ok" */
    GBX_KNOWN_SPANS = 1u << 5,      /* where and when each task ran, if it did */
    GBX_KNOWN_EXECUTIONS = 1u << 6, /* and each dispatch; if not, a task has an EXECUTION for each
                                       core it ran on, all with the task's start and end */
    GBX_KNOWN_ALL = 0x7f
};

typedef struct gbx_reader_origin {
    const char *records_path; /* of the journal or the manifest */
    const char *payload_path; /* of the file that bin_offset refers to; "" when a manifest has no
                                 payload and names no file */
    bool is_journal;
    unsigned known;    /* GBX_KNOWN_... */
    bool has_findings; /* those of the run are known, if there are any */
} gbx_reader_origin;

/* Borrowed until gbx_reader_close, like everything below. */
const gbx_reader_origin *gbx_reader_get_origin(const gbx_reader *reader);

/* --- how much of it is good --- */

typedef enum gbx_reader_stop {
    GBX_STOP_END = 0,          /* the file ends after a complete block: nothing is wrong */
    GBX_STOP_CUT = 1,          /* the file ends inside a block, or zeros follow */
    GBX_STOP_BAD_MAGIC = 2,    /* no block begins where one must */
    GBX_STOP_BAD_CHECKSUM = 3, /* a block's head or records are not what was written */
    GBX_STOP_BAD_BLOCK = 4,    /* checksums match, but sizes or counts are invalid */
    GBX_STOP_BAD_RECORD = 5,   /* checksums match, but a record is invalid */
    GBX_STOP_AFTER_END = 6,    /* records follow the END record */
    GBX_STOP_NEWER = 7, /* a record of unknown type must not be skipped; no reader is opened then */
    GBX_STOP_BAD_SEQUENCE = 8 /* a block is missing or repeated */
} gbx_reader_stop;

enum { GBX_STOP_TEXT_BYTES = 160 };

typedef struct gbx_reader_extent {
    uint64_t block_count;    /* complete blocks that can be read */
    uint64_t skipped_blocks; /* of them, passed over: gbx_reader_open_tasks */
    uint64_t record_count;   /* records in all of them, of all known types but RANGE */
    uint64_t newer_count;    /* records in them of unknown types, from a newer version */
    uint64_t good_bytes;     /* of the file: its header and these blocks */
    uint64_t file_bytes;     /* when it was opened */
    gbx_reader_stop stop;
    uint64_t stop_offset;                /* of the block or record that is wrong; good_bytes
                                            for GBX_STOP_END */
    char stop_text[GBX_STOP_TEXT_BYTES]; /* one sentence; "" for GBX_STOP_END */
} gbx_reader_extent;

const gbx_reader_extent *gbx_reader_get_extent(const gbx_reader *reader);

/*
 * Whether the journal is torn or damaged there, so that everything from there on can be cut off. If
 * not, the checksums match and only this version cannot read it: a newer one may, so all of it must
 * stay. False for GBX_STOP_END.
 */
bool gbx_reader_stop_is_damage(gbx_reader_stop stop);

/* --- what was run --- */

const gbx_run_info *gbx_reader_run(const gbx_reader *reader);

/* NULL when there is no END: the run was killed. The text is zero terminated. */
const gbx_record_end *gbx_reader_end(const gbx_reader *reader);
const char *gbx_reader_end_text(const gbx_reader *reader); /* "" when there is no END */

/* How the run ended, and in which kernel; NULL when END does not record it (older dumps, other
 * tools) or is missing. */
const gbx_record_outcome *gbx_reader_outcome(const gbx_reader *reader);

/* How many arguments the tasks announced; NULL when END does not record it (older dumps, other
 * tools), when the chip could not say, or without END. */
const gbx_record_sums *gbx_reader_sums(const gbx_reader *reader);

/* Only how it ended, which is known for older dumps, too. GBX_ENDING_UNKNOWN without END. */
gbx_run_ending gbx_reader_ending(const gbx_reader *reader);
bool gbx_reader_has_ended_well(const gbx_reader *reader);

/* The END record exists and says so, and no block is broken. */
bool gbx_reader_is_complete(const gbx_reader *reader);

/* --- totals, counted from the records --- */

/* The first group leaves out in-flight records, which `in_flight` counts. Byte totals include all
 * records. Sums that overflow stay at UINT64_MAX. */
typedef struct gbx_reader_totals {
    uint64_t records; /* SCALAR and TENSOR */
    uint64_t tensors; /* of them, TENSOR */
    uint64_t before_dispatch;
    uint64_t after_completion;
    uint64_t inputs;
    uint64_t outputs;
    uint64_t inouts;
    uint64_t truncated;
    uint64_t deduplicated;

    uint64_t in_flight;
    uint64_t payload_bytes; /* bin_size of all, as if each were stored */
    uint64_t stored_bytes;  /* without duplicates */
    uint64_t tasks;         /* TASK records */
    uint64_t dispatches;
    uint64_t dispatch_args; /* slots of all dispatches */
    uint64_t executions;
    uint64_t samples;
    uint64_t run_args;
    uint64_t losses;   /* LOSS records */
    uint64_t dropped;  /* what they count */
    uint64_t skipped;  /* SKIPPED records */
    uint64_t findings; /* of the run, also those that have no FINDING record */
    uint64_t results;  /* RESULT records, which nothing above counts */
    uint64_t result_payload_bytes;
    uint64_t result_stored_bytes;
    uint64_t payload_end; /* the highest bin_offset + bin_size of a record with payload */
} gbx_reader_totals;

/* NULL for gbx_reader_open_tasks, which does not see all records. */
const gbx_reader_totals *gbx_reader_get_totals(const gbx_reader *reader);

/* gbx_reader_totals.dropped, for every reader. */
uint64_t gbx_reader_dropped(const gbx_reader *reader);

/* Counts a checked record, for code that makes records for a reader. */
void gbx_reader_totals_count(gbx_reader_totals *totals, const gbx_record *record);

/* The totals that a manifest states, right or not; NULL for a journal. */
const gbx_import_totals *gbx_reader_get_import_totals(const gbx_reader *reader);

/* --- records in the order of the journal --- */

/* Starts over at the first record. */
void gbx_reader_rewind(gbx_reader *reader);

/*
 * The next record of any known type but RANGE in the good blocks, and its offset in the file; NULL
 * after the last. These are the records of all tasks, whatever the reader was opened for. Fails
 * with GBX_BAD_FORMAT when the file has changed since it was opened, or a block that was passed
 * over is damaged.
 */
GBX_MUST_USE gbx_status gbx_reader_next(gbx_reader *reader, const gbx_record **out_record,
                                        uint64_t *out_offset);

/* --- records in the order of the manifest --- */

/*
 * The index, sorted by task, then TASK, then executions by block and subtask, then arguments by
 * stage and arg_index, then dispatches by block and subtask, then DONE, then EDGES; ties in the
 * journal's order.
 */
uint64_t gbx_reader_count(const gbx_reader *reader);
GBX_MUST_USE gbx_status gbx_reader_at(gbx_reader *reader, uint64_t position,
                                      const gbx_record **out_record);

/* The kind of a record in the index, without reading it: GBX_INDEX_..., 0 for TASK. */
unsigned gbx_reader_kind(const gbx_reader *reader, uint64_t position);

/* The position in the index of the first record of a task or, if it has none, of the next task. */
uint64_t gbx_reader_find(const gbx_reader *reader, uint64_t task);

/*
 * The TASK record of a task; *out_is_found is false, and the task untouched, when it was lost or
 * nothing is indexed. Does not disturb gbx_reader_next.
 */
GBX_MUST_USE gbx_status gbx_reader_find_task(gbx_reader *reader, uint64_t task,
                                             gbx_record_task *out_task, bool *out_is_found);

/*
 * The EXECUTION record of the dispatch at a position in the index; *out_is_found is false, and the
 * record untouched, when it has none or GBX_INDEX_EXECUTIONS was not asked for. Does not disturb
 * gbx_reader_next.
 */
GBX_MUST_USE gbx_status gbx_reader_find_execution(gbx_reader *reader, uint64_t position,
                                                  gbx_record_execution *out_execution,
                                                  bool *out_is_found);

/* --- the few records that are not about an argument, in the order of the journal --- */

typedef enum gbx_reader_list {
    GBX_LIST_RUN_ARGS = 0, /* gbx_record_run_arg, sorted by arg_index */
    GBX_LIST_LOSSES = 1,   /* gbx_record_loss */
    GBX_LIST_SKIPPED = 2,  /* gbx_record_skipped */
    GBX_LIST_SAMPLES = 3,  /* gbx_record_sample */
    GBX_LIST_RESULTS = 4,  /* gbx_record_tensor, sorted by arg_index: see gbx_reader_result */
    GBX_LIST_FINDINGS = 5, /* gbx_record_finding */
    GBX_LIST_COUNT = 6
} gbx_reader_list;

uint64_t gbx_reader_list_count(const gbx_reader *reader, gbx_reader_list list);
GBX_MUST_USE gbx_status gbx_reader_list_at(gbx_reader *reader, gbx_reader_list list,
                                           uint64_t position, const gbx_record **out_record);

/* --- output and in-out tensors of the run, as they were at its end --- */

typedef struct gbx_result {
    const gbx_record_tensor *record; /* dtype, shape, flags, hash, payload as of a TENSOR; it stays
                                        until the next call of the reader, as do the pieces */
    const char *name;                /* of the argument; NULL: unknown */
    uint32_t arg_index;              /* of the run, as in RUN_ARG */
    gbx_role role;                   /* output or inout */
    bool is_in_flight;               /* the run did not end well: as it was when it stopped */
    /* Where its bytes lay in global memory: ascending and disjoint. Bytes outside of them were
     * never copied from there. 0 pieces: unknown, or there are no bytes. */
    const gbx_record_piece *pieces;
    uint64_t piece_count;
} gbx_result;

/* How many there are, in the order of arg_index; 0 in older dumps, at levels partial and hybrid,
 * with filters, and when the run was killed. */
uint64_t gbx_reader_result_count(const gbx_reader *reader);
GBX_MUST_USE gbx_status gbx_reader_result(gbx_reader *reader, uint64_t position,
                                          gbx_result *out_result);

/* --- payload --- */

/*
 * Opens the payload file and checks that it is as long as results and the records of the reader's
 * tasks say; needs GBX_INDEX_ARGUMENTS. Needs no file when no record has payload. Fails
 * with GBX_NOT_FOUND, GBX_IO, and GBX_BAD_FORMAT naming the first entry whose bytes lie beyond the
 * file's end. Call it at most once.
 */
GBX_MUST_USE gbx_status gbx_reader_open_payload(gbx_reader *reader);

/*
 * Reads `size` bytes of the payload file from `offset` on, after gbx_reader_open_payload. Any
 * thread. Fails with GBX_IO when the system refuses or the file became shorter.
 */
GBX_MUST_USE gbx_status gbx_reader_read_payload(const gbx_reader *reader, uint64_t offset,
                                                void *bytes, size_t size);

/* The same without a copy; release it with gbx_payload_map_release. The caller must handle SIGBUS,
 * which comes where a read would fail. False when it cannot be mapped; then read it. */
bool gbx_reader_map_payload(const gbx_reader *reader, uint64_t offset, size_t size,
                            gbx_payload_map *out_map);

#endif
