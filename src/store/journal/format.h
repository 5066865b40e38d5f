/*
 * tensor_dump.rec, the journal of a dump, byte by byte. Little-endian; every record is a whole
 * number of 8-byte words. docs/format.md says the same in prose.
 *
 *     header (64 bytes or more), then blocks: block header (32 bytes), then records, back to back
 *
 * How it grows: a new type of record gets an unused number, with GBX_RECORD_MUST_UNDERSTAND set if
 * a reader that skips such records would report something wrong. A new field goes to the end of its
 * records, after the parts of variable length (gbx_record_tail in record.h). Fields never move, and
 * numbers are never used again.
 *
 * A block is written with one call, after all payload of its records is in the file, and has a
 * checksum, so that a journal cut anywhere is good up to its last complete block.
 */
#ifndef GBX_STORE_JOURNAL_FORMAT_H
#define GBX_STORE_JOURNAL_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/finding.h>

#include "text/names.h" /* the numbers of stages, causes of loss and reasons to skip */

#define GBX_JOURNAL_MAGIC "GBXJRNL1"
#define GBX_JOURNAL_VERSION 2u        /* the version written */
#define GBX_JOURNAL_OLDEST_VERSION 1u /* the oldest version read */
#define GBX_JOURNAL_HEADER_MAX_BYTES 4096u
#define GBX_BLOCK_MAGIC UINT32_C(0x42584247) /* "GBXB" */
#define GBX_BLOCK_MAX_BYTES (1u << 20)       /* of the records of one block */
#define GBX_PAYLOAD_ALIGNMENT 64u            /* of bin_offset */

typedef struct gbx_journal_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* blocks begin there. Written as 64; version 1 has only that, version 2
                              any multiple of 8 up to GBX_JOURNAL_HEADER_MAX_BYTES */
    uint64_t reserved[6];  /* zero */
} gbx_journal_header;
static_assert(sizeof(gbx_journal_header) == 64, "layout of the journal");

typedef struct gbx_block_header {
    uint32_t magic;
    uint32_t record_bytes; /* of all records in the block */
    uint32_t record_count;
    uint32_t sequence;   /* 0 for the first block, then counting up */
    uint64_t checksum;   /* XXH3-64 of the records */
    uint64_t head_check; /* XXH3-64 of the 24 bytes before */
} gbx_block_header;
static_assert(sizeof(gbx_block_header) == 32, "layout of the journal");

/*
 * A bit in the type of a record: a reader that does not know the type refuses the journal. Records
 * of other unknown types are skipped and counted. The bit is part of the number: 7 and 0x87 are two
 * types.
 */
#define GBX_RECORD_MUST_UNDERSTAND 0x80u

/*
 * A dtype from GBX_RECORD_FIRST_DTYPE on is announced before the first record that uses it, by a
 * record that is only a head, of type GBX_RECORD_OF_DTYPE: readers that do not know the dtype
 * refuse the journal. Older dtypes are not announced.
 */
#define GBX_RECORD_FIRST_DTYPE 17u
#define GBX_RECORD_END_DTYPE 64u /* the types of dtypes below it are kept for them */
#define GBX_RECORD_OF_DTYPE(dtype) (GBX_RECORD_MUST_UNDERSTAND + (dtype))

typedef enum gbx_record_type {
    GBX_RECORD_RUN = 1,        /* the first record: what was run, as JSON */
    GBX_RECORD_RUN_ARG = 2,    /* one argument of the orchestration */
    GBX_RECORD_TASK = 3,       /* a task, at its first dispatch */
    GBX_RECORD_EDGES = 4,      /* predecessors of a task */
    GBX_RECORD_DONE = 5,       /* a task has completed */
    GBX_RECORD_SCALAR = 6,     /* an argument of a task */
    GBX_RECORD_TENSOR = 7,     /* an argument of a task, too */
    GBX_RECORD_DISPATCH = 8,   /* what kernel_entry was called with */
    GBX_RECORD_LOSS = 9,       /* what is missing */
    GBX_RECORD_SKIPPED = 10,   /* what could not be described */
    GBX_RECORD_END = 11,       /* the last record: totals; missing when the run was killed */
    GBX_RECORD_EXECUTION = 12, /* a dispatch ran: where, and from when to when */
    GBX_RECORD_SAMPLE = 13,    /* an AICPU thread waited for room, or has ended */
    GBX_RECORD_FINDING = 14,   /* a kernel wrote where it must not */
    GBX_RECORD_RESULT = 15,    /* an output or in-out tensor of the run, as it was at the end */
    GBX_RECORD_RANGE = 16      /* what its block holds */
} gbx_record_type;

/* Flags of a record. */
enum {
    GBX_FLAG_HAS_PAYLOAD = 1u << 0, /* tensor: bin_offset and bin_size are valid */
    GBX_FLAG_HAS_HASH = 1u << 1,    /* tensor: hash is valid */
    GBX_FLAG_HAS_STATS = 1u << 2,   /* tensor: seven words of statistics follow */
    GBX_FLAG_TRUNCATED = 1u << 3,   /* tensor: only part was kept; scalar: another tool says so */
    GBX_FLAG_IN_FLIGHT = 1u << 4,   /* of a task, or result of a run, that did not complete */
    GBX_FLAG_DUPLICATE = 1u << 5,   /* tensor: an earlier record stored the bytes */
    GBX_FLAG_CONTIGUOUS = 1u << 6,  /* tensor: the view was row-major without gaps */
    GBX_FLAG_PIECES = 1u << 7,      /* tensor: went through the arena in pieces */
    GBX_FLAG_COMPLETE = 1u << 8,    /* end: the run ended by itself, and nothing was lost */
    GBX_FLAG_OVERWRITTEN = 1u << 9  /* according to another tool; never in a journal of ours */
};

typedef struct gbx_record {
    uint8_t type;  /* gbx_record_type */
    uint8_t stage; /* GBX_STAGE_... */
    uint8_t role;  /* gbx_role */
    uint8_t arg_index;
    uint8_t dtype; /* gbx_dtype */
    uint8_t ndims;
    uint16_t flags;
    uint32_t words;      /* of the complete record, including this head */
    uint16_t thread;     /* AICPU thread */
    uint16_t tail_words; /* EDGES: this many words at its end are not predecessors; else 0 */
    uint64_t task;       /* task_seq; 0 when there is none */
    uint64_t time_ns;    /* since the start of the run */
} gbx_record;
static_assert(sizeof(gbx_record) == 32, "layout of the journal");
static_assert(offsetof(gbx_record, words) == 8, "layout of the journal");
static_assert(offsetof(gbx_record, task) == 16, "layout of the journal");

/* RUN: `bytes` of JSON text follow, zero padded. */
typedef struct gbx_record_run {
    gbx_record head;
    uint64_t bytes;
} gbx_record_run;
static_assert(sizeof(gbx_record_run) == 40, "layout of the journal");

/*
 * RUN_ARG: head.arg_index is its place among all arguments of the orchestration (tensors first,
 * then scalars), head.dtype its dtype. For a tensor (is_tensor) `bits` is its address, and ndims
 * words of shape follow; for a scalar `bits` is its raw word. The name is in the RUN record.
 */
typedef struct gbx_record_run_arg {
    gbx_record head;
    uint64_t is_tensor;
    uint64_t bits;
} gbx_record_run_arg;
static_assert(sizeof(gbx_record_run_arg) == 48, "layout of the journal");

/* TASK: head.time_ns is when the device writer began to capture its inputs, before the first
 * dispatch; its EXECUTION records say when its kernels ran. */
typedef struct gbx_record_task {
    gbx_record head;
    uint64_t task_id;
    uint32_t func_ids[3]; /* AIC, AIV0, AIV1; UINT32_MAX for none */
    uint32_t block_num;
    uint32_t predecessor_count; /* in all EDGES records of the task together */
    uint32_t reserved;
} gbx_record_task;
static_assert(sizeof(gbx_record_task) == 64, "layout of the journal");

/* After TASK: how many of its arguments are recorded or skipped at each stage, unless they are
 * lost. Glassbox 0.1.0 does not write it. */
typedef struct gbx_record_announced {
    uint32_t before; /* dispatch */
    uint32_t after;  /* completion */
} gbx_record_announced;
static_assert(sizeof(gbx_record_announced) == 8, "layout of the journal");

/* EDGES: the numbers (task_seq) of predecessors follow, a word each, up to the last head.tail_words
 * words. DONE: only the head. */

typedef struct gbx_record_scalar {
    gbx_record head;
    uint64_t bits; /* the raw word */
} gbx_record_scalar;
static_assert(sizeof(gbx_record_scalar) == 40, "layout of the journal");

/*
 * TENSOR: ndims words of shape, ndims words of strides (signed, in elements) follow, then, with
 * GBX_FLAG_HAS_STATS, gbx_record_stats.
 */
typedef struct gbx_record_tensor {
    gbx_record head;
    uint64_t buffer_addr;
    uint64_t bin_offset; /* of the first byte in tensor_dump.bin */
    uint64_t bin_size;   /* bytes that were kept */
    uint64_t hash_low;   /* XXH3-128 of the bin_size bytes, or of all where none were kept */
    uint64_t hash_high;
    int64_t start_offset; /* in elements */
} gbx_record_tensor;
static_assert(sizeof(gbx_record_tensor) == 80, "layout of the journal");

/* min and max: a double for floats, a signed or unsigned number for integers and bool, by dtype.
 * NaNs count only in `nan`, infinities in min and max but not in the mean. */
typedef struct gbx_record_stats {
    uint64_t min_bits;
    uint64_t max_bits;
    double mean;
    uint64_t nan_count;
    uint64_t inf_count;
    uint64_t zero_count;
    uint64_t subnormal_count;
} gbx_record_stats;
static_assert(sizeof(gbx_record_stats) == 56, "layout of the journal");

/*
 * DISPATCH: slot_count times gbx_record_slot follow, in the order of args[]; after each tensor slot
 * its address, start_offset, ndims words of shape and of strides.
 */
typedef struct gbx_record_dispatch {
    gbx_record head;
    uint64_t task_id;
    uint32_t func_id;
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t block_num;
    uint32_t subtask; /* 0 aic, 1 aiv0, 2 aiv1 */
    uint32_t slot_count;
    uint64_t local_context; /* the raw words of the two context slots */
    uint64_t global_context;
} gbx_record_dispatch;
static_assert(sizeof(gbx_record_dispatch) == 80, "layout of the journal");

typedef struct gbx_record_slot {
    uint8_t arg_index;
    uint8_t is_tensor;
    uint8_t role;
    uint8_t dtype;
    uint8_t ndims;
    uint8_t is_word; /* 1: whether it is a tensor or a scalar is unknown; is_tensor, role and dtype
                        are 0 */
    uint8_t reserved[2];
    uint64_t bits; /* the raw word */
} gbx_record_slot;
static_assert(sizeof(gbx_record_slot) == 16, "layout of the journal");

/*
 * RESULT: gbx_record_tensor with all that follows it, about an argument of the run: head.arg_index
 * is that of RUN_ARG, head.stage GBX_STAGE_NONE, head.task 0. Then a word with the number of
 * pieces, and these, ascending and disjoint: where each byte of the tensor lay in global memory.
 * Bytes of no piece were never copied from there. buffer_addr is the address of the only piece if
 * that is the whole tensor, else 0.
 */
typedef struct gbx_record_piece {
    uint64_t offset;  /* of its first byte in the tensor */
    uint64_t address; /* in global memory */
    uint64_t bytes;   /* not 0 */
} gbx_record_piece;
static_assert(sizeof(gbx_record_piece) == 24, "layout of the journal");

/* Of a record: a tensor in more pieces has none listed. */
#define GBX_RECORD_MAX_PIECES 4096u

/* LOSS: head.task, arg_index and stage of the first lost record; neither of a lost RESULT. */
typedef struct gbx_record_loss {
    gbx_record head;
    uint32_t cause;    /* gbx_loss_cause */
    uint32_t is_least; /* 1: how many more there were is unknown */
    uint64_t count;    /* how many records */
} gbx_record_loss;
static_assert(sizeof(gbx_record_loss) == 48, "layout of the journal");

/* After LOSS. Glassbox 0.1.0 does not write it. */
typedef struct gbx_record_lost {
    uint64_t argument_count; /* how many of the records are arguments that TASK records announce */
    uint64_t result;         /* 1 + arg_index of a lost RESULT; 0: none */
} gbx_record_lost;
static_assert(sizeof(gbx_record_lost) == 16, "layout of the journal");

/* SKIPPED: head.arg_index is GBX_ARG_NONE for a complete task. */
typedef struct gbx_record_skipped {
    gbx_record head;
    uint32_t reason;  /* GBX_SKIP_NOT_DESCRIBED or GBX_SKIP_MISMATCH: see gbx_record_skip_reason */
    uint32_t func_id; /* the first kernel of the task */
} gbx_record_skipped;
static_assert(sizeof(gbx_record_skipped) == 40, "layout of the journal");

/* END: what the writer counted; `bytes` of text follow, zero padded: the status ("ok", or why the
 * run failed). Then gbx_record_outcome and gbx_record_sums. */
typedef struct gbx_record_end {
    gbx_record head;       /* GBX_FLAG_COMPLETE */
    uint64_t record_count; /* tensors and scalars */
    uint64_t task_count;
    uint64_t dispatch_count;
    uint64_t payload_bytes;
    uint64_t stored_bytes;
    uint64_t deduplicated;
    uint64_t dropped;
    uint64_t stall_ns;
    uint64_t bytes;
} gbx_record_end;
static_assert(sizeof(gbx_record_end) == 104, "layout of the journal");

/* How a run ended; a number that is not here is unknown. */
typedef enum gbx_run_ending {
    GBX_ENDING_UNKNOWN = 0,      /* not well: the text of END has what is known */
    GBX_ENDING_WELL = 1,         /* and nothing was lost */
    GBX_ENDING_RECORDS_LOST = 2, /* well, but records are missing; LOSS records name them */
    GBX_ENDING_FAILED = 3        /* gbx_record_outcome.code says with what */
} gbx_run_ending;

/* What went wrong on the device; other numbers come from a newer version. */
typedef enum gbx_outcome_fault {
    GBX_OUTCOME_NO_FAULT = 0, /* or the chip could not report it, as when its process was killed */
    GBX_OUTCOME_SIGNAL = 1,   /* a fatal signal in a kernel */
    GBX_OUTCOME_HANG = 2,     /* a kernel that made no progress */
    GBX_OUTCOME_LOADING = 3,  /* a fatal signal while a kernel was loaded */
    GBX_OUTCOME_OUTSIDE = 4,  /* a fatal signal on a thread that is not a core */
    GBX_OUTCOME_THREAD_END = 5,         /* a kernel ended its thread */
    GBX_OUTCOME_LINK = 6,               /* a kernel closed the link to the host */
    GBX_OUTCOME_ORCHESTRATION = 7,      /* a fatal signal in an orchestration */
    GBX_OUTCOME_ORCHESTRATION_HANG = 8, /* an orchestration that made no progress */
    GBX_OUTCOME_GUARD = 9               /* a guard found a write outside of a buffer */
} gbx_outcome_fault;

typedef enum gbx_outcome_address {
    GBX_OUTCOME_ADDRESS_NONE = 0,      /* the signal was sent, as by abort */
    GBX_OUTCOME_ADDRESS_KNOWN = 1,     /* reported by the processor */
    GBX_OUTCOME_ADDRESS_IMPOSSIBLE = 2 /* impossible, so the processor does not report it */
} gbx_outcome_address;

#define GBX_OUTCOME_NO_KERNEL UINT32_MAX

/* After the text of END. Journals of glassbox 0.1.0, and an END that `recover` appended, lack
 * it. */
typedef struct gbx_record_outcome {
    uint32_t ending;  /* gbx_run_ending, never 0 */
    uint32_t code;    /* gbx_code of GBX_ENDING_FAILED; else 0 */
    uint32_t fault;   /* gbx_outcome_fault */
    uint32_t signal;  /* raised, or ended the chip's process; 0 for none */
    uint64_t task_id; /* of the kernel it happened in, or of the first of several, like all fields
                         up to block_num; 0 when func_id is GBX_OUTCOME_NO_KERNEL */
    uint32_t func_id;
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t block_num;
    uint64_t address;      /* of the signal, if address_kind is GBX_OUTCOME_ADDRESS_KNOWN; else 0 */
    uint32_t address_kind; /* gbx_outcome_address */
    uint32_t reserved;     /* 0 */
} gbx_record_outcome;
static_assert(sizeof(gbx_record_outcome) == 56, "layout of the journal");
static_assert(offsetof(gbx_record_outcome, task_id) == 16, "layout of the journal");
static_assert(offsetof(gbx_record_outcome, address) == 40, "layout of the journal");

/* Whether the sums of END are known; a number that is not here is unknown. */
typedef enum gbx_sums_state {
    GBX_SUMS_NONE = 0,   /* written by a version that does not count them */
    GBX_SUMS_EXACT = 1,  /* announced = arguments recorded + skipped + lost */
    GBX_SUMS_UNKNOWN = 2 /* the chip died, or a kernel overwrote what it counted: a loss with
                            is_least says so */
} gbx_sums_state;

/* After gbx_record_outcome: what the device counted in memory that kernels cannot reach. Glassbox
 * 0.1.0 does not write it. */
typedef struct gbx_record_sums {
    uint32_t state; /* gbx_sums_state */
    uint32_t reserved;
    uint64_t announced;      /* arguments of tasks that were to be recorded or skipped */
    uint64_t lost_arguments; /* of all LOSS records */
} gbx_record_sums;
static_assert(sizeof(gbx_record_sums) == 24, "layout of the journal");

#define GBX_NO_END_NS UINT64_MAX

/*
 * EXECUTION: head.time_ns is when the kernel of a dispatch was called, on the clock of all times in
 * the journal; if the dispatch also has a DISPATCH record, task, block_idx and subtask are the
 * same.
 */
typedef struct gbx_record_execution {
    gbx_record head;
    uint64_t end_ns; /* when it returned; GBX_NO_END_NS: it crashed, or had not returned when the
                        run ended */
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t subtask; /* 0 aic, 1 aiv0, 2 aiv1 */
    uint32_t func_id;
} gbx_record_execution;
static_assert(sizeof(gbx_record_execution) == 56, "layout of the journal");

/*
 * SAMPLE: the waits of one call of the device writer on head.thread; head.time_ns is when the first
 * began. At the end of a thread: the most of its arena that was in use.
 */
typedef struct gbx_record_sample {
    gbx_record head;
    uint64_t waited_ns;   /* in all */
    uint64_t used_bytes;  /* of the arena, when the first wait began; at the end: the maximum */
    uint64_t arena_bytes; /* of the thread */
    uint32_t wait_count;
    uint32_t causes; /* GBX_WAITED_...; 0: the thread has ended */
} gbx_record_sample;
static_assert(sizeof(gbx_record_sample) == 64, "layout of the journal");

/* FINDING: head.time_ns is when it was found; head.task is its finder, 0 at the end of the run.
 * There may be more than are kept: finding.run_total. */
typedef struct gbx_record_finding {
    gbx_record head;
    gbx_run_finding finding;
} gbx_record_finding;
static_assert(sizeof(gbx_record_finding) == 288, "layout of the journal");
static_assert(offsetof(gbx_run_finding, candidates) == 128, "layout of the journal");

/*
 * RANGE: what follows it in its block, so that a reader can pass over the block without reading it.
 * It counts only as the first record of a block, and the block of RUN has none. head.task is the
 * smallest number of a task that a record is about, by its type (block_range.h).
 */
typedef struct gbx_record_range {
    gbx_record head;
    uint64_t last_task; /* the largest such number; below head.task when there is none */
    uint64_t types;     /* of the records: bit n is type n, bit 0 any type from 64 on */
    uint64_t check;     /* XXH3-64 of the 48 bytes before */
} gbx_record_range;
static_assert(sizeof(gbx_record_range) == 56, "layout of the journal");

#endif
