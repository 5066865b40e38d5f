/* Shared by the parts of the host's side of a dump. */
#ifndef GBX_DUMP_HOST_INTERNAL_H
#define GBX_DUMP_HOST_INTERNAL_H

#include <stdbool.h>

#include "dump/abi.h"
#include "hal/hal.h"
#include "store/writer.h"
#include "tensor/final_tensor.h"

/* --- session.c --- */

/* The memory of dump/abi.h in the global memory of a chip. */
typedef struct gbx_dump_region {
    gbx_hal *hal;
    uint64_t address;     /* of the setup; 0: there is none */
    gbx_dump_setup setup; /* as written */
} gbx_dump_region;

/* --- what a collector is --- */

/* What the dump holds so far; `filter_hits` counts over all lanes once it is finished. */
typedef struct gbx_collector_totals {
    gbx_dump_totals dump;
    gbx_record_sums sums;
    uint64_t skipped_arguments; /* of dump.skipped */
    gbx_dump_skipped first_skipped;
    uint64_t tasks;
    uint64_t filter_hits[GBX_MAX_DUMP_FILTERS];
    bool has_ended; /* every lane reported its end */
} gbx_collector_totals;

enum {
    GBX_COLLECTED_BYTES = GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES,
    /* Task numbers that the journal can sort. */
    GBX_COLLECTED_TASK_BITS = 44,
    GBX_MAX_ARGS = GBX_MAX_TENSOR_ARGS + GBX_MAX_SCALAR_ARGS,
    /* Manifests hold numbers below 2^53, the limit for exact JSON readers. */
    GBX_EXACT_BITS = 53,
    GBX_FAILED_RANGES = 64
};

/* What happens to one record. */
typedef enum gbx_plan_fate {
    GBX_FATE_JOURNAL,   /* only its lines */
    GBX_FATE_STORE,     /* with payload in a run of its buffer */
    GBX_FATE_DUPLICATE, /* with payload that is already stored */
    GBX_FATE_REPEATED,  /* ...that an earlier entry of the same buffer stores */
    GBX_FATE_PIECED,    /* ...that came in pieces */
    GBX_FATE_PIECE,     /* one of those pieces: not a record itself */
    GBX_FATE_LOST       /* it is invalid: GBX_LOSS_CORRUPT */
} gbx_plan_fate;

typedef struct gbx_plan_entry {
    uint16_t line;
    uint16_t fate;     /* gbx_plan_fate */
    uint16_t run;      /* of a stored one */
    uint16_t original; /* of a repeated one: the entry that stores it */
    uint64_t bin_offset;
    uint64_t bytes; /* of payload */
} gbx_plan_entry;

#define GBX_NOT_PLACED UINT64_MAX /* the run is too short: its payloads are packed */

/* Payload written with one call: contiguous in the arena and in the file. */
typedef struct gbx_plan_run {
    uint64_t first; /* positions in the arena */
    uint64_t end;
    uint64_t file_offset; /* of the page that contains `first` */
} gbx_plan_run;

struct gbx_lane_source;

/* One buffer being processed. */
typedef struct gbx_plan {
    struct gbx_lane_source *lane;
    uint32_t buffer;
    uint32_t entry_count;
    uint32_t run_count;
    uint64_t position;   /* the arena is free up to here once it is settled */
    uint32_t first_line; /* earlier lines were taken while the device still filled the buffer */
    uint32_t lines;
    bool is_open; /* the device is still filling it */
    _Alignas(64) unsigned char copy[GBX_COLLECTED_BYTES];
    gbx_plan_entry entries[GBX_DUMP_BUFFER_LINES];
    gbx_plan_run runs[GBX_DUMP_BUFFER_LINES];
    uint16_t by_hash[2 * GBX_DUMP_BUFFER_LINES]; /* 1 + entry, by hash; 0: none */
} gbx_plan;

/* A tensor that comes in pieces. */
typedef struct gbx_piece_series {
    bool is_open;
    gbx_dump_record first;
    uint64_t file_offset;
    uint64_t next;
    uint64_t total_bytes;
} gbx_piece_series;

typedef struct gbx_lane_source {
    uint32_t index;
    uint64_t address; /* of its gbx_dump_lane */
    uint64_t buffers;
    uint64_t arena;
    unsigned char *payload; /* the arena as the host sees it: mapped, or copies */
    uint64_t ready_head;
    uint64_t free_tail;
    uint64_t position; /* end of the planned payload */
    uint64_t given;    /* ...and of the payload given back */
    uint32_t last_turn;
    uint32_t open_turn; /* of a buffer taken in part, and how much of it was */
    uint32_t open_lines;
    bool is_broken; /* its rings are no longer valid */
    gbx_piece_series pieces;
    /* What its lines say, whatever happened to them: losses by cause, and records. */
    uint64_t recorded_losses[GBX_DUMP_CAUSES];
    uint64_t recorded_argument_losses[GBX_DUMP_CAUSES];
    uint64_t taken;
    uint64_t taken_arguments;
} gbx_lane_source;

/*
 * Isolated payloads, single or between duplicates, are copied together before they are written:
 * many small writes would be slower than the copies. Places are assigned when a buffer is planned;
 * the bytes follow in the same order when it is settled.
 */
typedef struct gbx_pack {
    uint64_t cursor; /* in the file: the next place, and the end of the reserved range */
    uint64_t limit;
    uint64_t base; /* offset in the file of the first byte of the buffer; a multiple of pages */
    uint64_t written;
    uint64_t end;
    unsigned char *bytes; /* GBX_PACK_BYTES, aligned to pages */
} gbx_pack;

enum { GBX_PACK_BYTES = 1 << 20, GBX_PACKED_BELOW_BYTES = 128 << 10 };

typedef struct gbx_collector {
    gbx_hal *hal;
    const gbx_dump_setup *setup;
    uint64_t address;  /* of the setup */
    uint64_t gm_bytes; /* no tensor is larger */
    gbx_store *store;
    bool is_mapped;
    bool is_deduplicated;
    bool is_finishing;    /* the device has ended: what is invalid now stays so */
    bool has_disk_failed; /* equal payload is no longer looked for */
    struct {
        uint64_t first;
        uint64_t end;
    } failed[GBX_FAILED_RANGES]; /* ranges of the file; the last one grows when there are more */
    uint32_t failed_count;
    gbx_lane_source lanes[GBX_MAX_AICPU_THREADS];
    uint64_t touched; /* of all arenas */
    gbx_pack pack;
    gbx_plan *plans;
    uint32_t plan_capacity;
    uint32_t plan_count;
    gbx_collector_totals totals;
    gbx_collector_totals written; /* of the records in blocks of the journal that are on disk */
    uint32_t written_blocks;
    uint64_t refused; /* entries and dispatches that the journal did not take */
} gbx_collector;

static inline gbx_dump_record gbx_plan_record(const gbx_plan *plan, uint32_t line) {
    return *(const gbx_dump_record *)(plan->copy + (size_t)line * GBX_DUMP_LINE_BYTES);
}

/* --- plan.c --- */

/* Checks every record of a buffer whose lines were copied, and assigns places to the payload. */
void gbx_plan_make(gbx_collector *collector, gbx_plan *plan);

/* The strides for the journal: one that is never used, because its dimension has length 1 or the
 * tensor is empty, and that JSON readers would not hold exactly, becomes 0. */
void gbx_keep_strides(uint32_t ndims, const uint64_t *shape, uint64_t *strides);

/* --- settle.c --- */

/* Whether equal payload may be looked for and found. */
static inline bool gbx_collector_is_shareable(const gbx_collector *collector, bool is_in_flight) {
    return collector->is_deduplicated && !collector->has_disk_failed && !is_in_flight;
}

/* Writes pages of payload; a failure is noted. */
void gbx_collector_write(gbx_collector *collector, uint64_t offset, const void *pages,
                         uint64_t bytes);

/* Whether some of these bytes did not reach the file, now or when equal ones were stored. */
bool gbx_collector_has_failed(const gbx_collector *collector, uint64_t offset, uint64_t bytes);

/* Writes the payload and journals the records. */
void gbx_plan_settle(gbx_collector *collector, gbx_plan *plan);

/* Bytes `first` to `end` of the file do not hold what was planned for them. */
void gbx_collector_note_failure(gbx_collector *collector, uint64_t first, uint64_t end);

/* Stands for lost records of which nothing is known. */
extern const gbx_dump_record gbx_no_record;

/* Before and after each append: remembers the totals when the journal has written a block. */
void gbx_collector_note_written(gbx_collector *collector);

typedef struct gbx_collector_loss {
    uint32_t cause;
    uint64_t count;          /* records */
    uint64_t argument_count; /* how many of them are arguments of tasks */
    bool is_least;           /* how many more there were is unknown */
} gbx_collector_loss;

/* Journals a loss, and counts it. */
void gbx_collector_lose(gbx_collector *collector, const gbx_dump_record *first, uint32_t thread,
                        const gbx_collector_loss *loss);

/* --- collector.c --- */

/*
 * Takes what the device wrote (dump/abi.h) and hands it to the store. Nothing read from global
 * memory is trusted: what is invalid is a loss. One thread.
 *
 * A buffer is planned (its records checked, its payload given places in the file), then settled
 * (payload written, records journaled). Where the host maps global memory, payload is written
 * directly from the arena, and the room is given back after the write; elsewhere it is copied first
 * and the room is given back at once.
 */

/* `region` and `store` are borrowed. */
GBX_MUST_USE gbx_status gbx_collector_create(const gbx_dump_region *region, gbx_store *store,
                                             bool is_deduplicated, gbx_collector **out_collector);
void gbx_collector_destroy(gbx_collector *collector);

/*
 * Takes a piece of the arena's memory from the system ahead of time, because the first touch is
 * slow. False when all of it is there. For idle times.
 */
bool gbx_collector_touch_ahead(gbx_collector *collector);

/* Where the host maps: one buffer of each lane that has one or, if `is_open`, for idle times, what
 * there is of the buffers that the device is filling; false when there was nothing new. */
bool gbx_collector_drain(gbx_collector *collector, bool is_open);

/* Where the host does not map: whether the device waits for a copy (any thread), and the copy. */
bool gbx_collector_is_asked(const gbx_collector *collector);
void gbx_collector_copy(gbx_collector *collector);

/* After the device has ended in any way: takes everything that is left, also in buffers not handed
 * over, and what the lanes counted. */
void gbx_collector_finish(gbx_collector *collector);

/* --- results.c --- */

typedef struct gbx_result_wish {
    bool has_payload; /* if not, only a hash */
    bool has_statistics;
    bool is_in_flight;
} gbx_result_wish;

/*
 * Keeps the final tensors of a run, after the finish: RESULT records and their payload, read from
 * global memory piece by piece. What cannot be read or written is a loss.
 */
void gbx_collector_keep_results(gbx_collector *collector, const gbx_final_tensor *tensors,
                                size_t count, gbx_result_wish wish);

/* --- manager.c --- */

/*
 * The dump memory manager: a thread that takes what the device wrote while kernels run, or, where
 * the host cannot map global memory, whenever the device asks for it.
 */

typedef struct gbx_dump_manager gbx_dump_manager;

/* Starts the thread; it owns the collector and its store until it is stopped. */
GBX_MUST_USE gbx_status gbx_dump_manager_start(gbx_collector *collector,
                                               gbx_dump_manager **out_manager);

/* Checks whether the device asks for a copy. Any thread. */
void gbx_dump_manager_attend(gbx_dump_manager *manager);

/* The device has ended: takes everything that is left, and ends the thread. */
void gbx_dump_manager_stop(gbx_dump_manager *manager);

#endif
