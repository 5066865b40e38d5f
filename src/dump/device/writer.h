/*
 * The device writer: listens to the scheduler and writes into the memory of dump/abi.h. Device
 * code: no malloc, no stdio, no locks. Private to the chip.
 */
#ifndef GBX_DUMP_DEVICE_WRITER_H
#define GBX_DUMP_DEVICE_WRITER_H

#include <stdbool.h>

#include "dump/abi.h"
#include "sched/probe.h"

enum { GBX_WRITER_MAX_LANES = GBX_MAX_AICPU_THREADS };
/* Copies and hashes go in steps that stay in the cache. Views that are gathered only to be hashed
 * or counted go in larger steps, because complete tiles are faster to gather. */
enum {
    GBX_WRITER_STEP_BYTES = 16 << 10,
    GBX_WRITER_VIEW_STEP_BYTES = 256 << 10,
    GBX_WRITER_GATHER_BYTES = 4 << 20, /* views gathered into the arena at a time */
    GBX_WRITER_LIFE_BYTES = 1 << 20,   /* bytes copied between two signs of life */
    GBX_WRITER_TOUCHED_BYTES = 1 << 20 /* bytes of the arena taken from the system at a time */
};

typedef struct gbx_writer gbx_writer;

/* State of a lane on a batch platform, which copies only while no lane writes. */
enum { GBX_LANE_OUTSIDE = 0, GBX_LANE_INSIDE = 1, GBX_LANE_PARKED = 2 };

/* The clock of dispatches and the system's, read together. */
typedef struct gbx_ticks_pair {
    uint64_t ticks;
    int64_t ns;
} gbx_ticks_pair;

/* A loss that waits for room to be recorded. */
typedef struct gbx_writer_loss {
    gbx_dump_record first;
    uint32_t cause;
    uint64_t count;
    uint64_t argument_count;
} gbx_writer_loss;

enum { GBX_WRITER_LOSSES = 16 };

typedef struct gbx_lane gbx_lane;

/* What a lane may wait for. */
typedef enum gbx_lane_room {
    GBX_ROOM_LINES = 0, /* a buffer to write a record into */
    GBX_ROOM_ARENA = 1, /* the arena up to a position */
    GBX_ROOM_COUNT = 2
} gbx_lane_room;

/* What one AICPU thread writes into; one caller at a time. */
struct gbx_lane {
    _Alignas(64) gbx_writer *writer;
    gbx_dump_lane *shared;
    unsigned char *buffers;
    unsigned char *arena;
    /* The buffer being filled; NULL for none. Its lines are made in `mine`, which kernels cannot
     * reach, and copied as they are committed. */
    unsigned char *lines;
    unsigned char *mine;
    uint32_t buffer;
    uint32_t used;        /* lines */
    uint32_t turn;        /* buffers taken; the next one is this modulo their number */
    uint64_t check;       /* of the lines */
    uint64_t given_back;  /* buffers that the host is known to have given back */
    uint64_t handed_over; /* buffers */
    /* What is in the queue of ready buffers. */
    uint64_t ready_slots[GBX_MAX_DUMP_BUFFERS];
    uint64_t ready_checks[GBX_MAX_DUMP_BUFFERS];
    uint64_t ready_ends[GBX_MAX_DUMP_BUFFERS];
    /* Positions in the arena. */
    uint64_t tail;
    uint64_t seen_head;
    uint64_t published;
    uint64_t touched; /* of the arena, from its start */
    int64_t published_ns;
    /* Of the current hook. */
    int64_t hook_ns;
    uint64_t time_ns;
    /* Turns ticks into time: a recent pair, and the rate since the start. */
    gbx_ticks_pair anchor;
    uint64_t reach; /* ticks after the anchor for which the rate is valid */
    double ns_per_tick;
    /* Waits not recorded yet, and the most bytes the arena held. */
    gbx_dump_sample waits;
    uint64_t most_used;
    gbx_dump_counts counts;
    gbx_writer_loss losses[GBX_WRITER_LOSSES];
    uint32_t loss_count;
    /* A wait timed out: no further wait until the host has given something back. */
    bool is_dropping[GBX_ROOM_COUNT];
    uint64_t dropped_at[GBX_ROOM_COUNT]; /* how much it had given back by then */
    _Atomic bool
        has_ended; /* hooks do nothing any more; the holder of a role may notice this late */
    _Alignas(64) _Atomic uint64_t heartbeat;
    _Atomic uint32_t inside; /* GBX_LANE_... */
    unsigned char *scratch;  /* GBX_WRITER_VIEW_STEP_BYTES */
};

struct gbx_writer {
    gbx_probe probe;
    gbx_probe_request request;
    gbx_dump_setup *shared; /* in global memory */
    gbx_dump_setup setup;   /* copied at the start */
    int64_t start_ns;
    gbx_ticks_pair start;                           /* the same, with ticks */
    _Alignas(64) _Atomic uint32_t is_pausing;       /* a lane is waiting for the host to copy */
    gbx_dump_signature signatures[GBX_MAX_KERNELS]; /* copied at the start, too */
    gbx_lane lanes[GBX_WRITER_MAX_LANES];
    _Alignas(
        64) unsigned char lines[GBX_WRITER_MAX_LANES][GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES];
    _Alignas(64) unsigned char scratch[GBX_WRITER_MAX_LANES][GBX_WRITER_VIEW_STEP_BYTES];
};

/* --- lane.c --- */

/* Around every hook: one timestamp, and a wait while the host copies. False when the lane has ended
 * and nothing must be recorded. */
bool gbx_lane_enter(gbx_lane *lane);
void gbx_lane_leave(gbx_lane *lane);

/* The same for a hook that uses the time of a dispatch and takes no timestamp itself. */
bool gbx_lane_enter_at(gbx_lane *lane, uint64_t start_ticks, uint64_t now_ticks);

/*
 * Room for a record with `words` words beyond its first line; NULL when there is no room and the
 * record is lost. `head` has everything but kind, lines and time. The record counts once committed.
 */
void *gbx_lane_begin(gbx_lane *lane, gbx_dump_kind kind, uint32_t words,
                     const gbx_dump_record *head);
void gbx_lane_commit(gbx_lane *lane);

/* Hands the buffer over as it is. */
void gbx_lane_publish(gbx_lane *lane);

/* A place for `bytes` (at most gbx_dump_piece_bytes) in the arena, a multiple of `alignment`; false
 * when there was no room in time. It is taken only by gbx_lane_use. */
bool gbx_lane_reserve(gbx_lane *lane, uint64_t bytes, uint64_t alignment, uint64_t *out_position);
void gbx_lane_use(gbx_lane *lane, uint64_t position, uint64_t bytes);

static inline unsigned char *gbx_lane_at(const gbx_lane *lane, uint64_t position) {
    return lane->arena + position % lane->writer->setup.arena_bytes;
}

/* A record that cannot be kept: counted, and recorded as a loss when there is room. */
void gbx_lane_lose(gbx_lane *lane, gbx_dump_kind kind, const gbx_dump_record *head, uint32_t cause);

/* Writes again what a kernel may have overwritten of the lane in global memory. */
void gbx_lane_restore(gbx_lane *lane);

/* Nothing more will come. */
void gbx_lane_end(gbx_lane *lane);

/* For waits and long copies. */
static inline void gbx_lane_show_life(gbx_lane *lane) {
    atomic_store_explicit(&lane->heartbeat,
                          atomic_load_explicit(&lane->heartbeat, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    lane->writer->request.show_life(lane->writer->request.machine);
}

static inline void gbx_lane_note_duration(gbx_lane *lane, int64_t duration_ns) {
    if (duration_ns > 0 && (uint64_t)duration_ns > lane->counts.longest_capture_ns)
        lane->counts.longest_capture_ns = (uint64_t)duration_ns;
}

/* Whether there is room; for lines, takes a buffer if the lane has none. */
bool gbx_lane_has_room(gbx_lane *lane, gbx_lane_room room, uint64_t end);

/* Bytes of the arena that the host has not given back. */
uint64_t gbx_lane_arena_used(gbx_lane *lane);

/* --- ticks.c --- */

/* The clock of dispatches: the time stamp counter of the processor where it is invariant, else
 * the system's clock. */
uint64_t (*gbx_ticks_source(void))(void);

/* Reads both clocks. */
gbx_ticks_pair gbx_ticks_pair_read(uint64_t (*ticks)(void));

/* Nanoseconds since the start of the run, within about 100 ns of CLOCK_MONOTONIC. */
uint64_t gbx_ticks_to_time(gbx_lane *lane, uint64_t ticks);

/* --- room.c --- */

/* Waits until there is room (in the arena: up to `end`), at most for the stall timeout; false when
 * there is none. */
bool gbx_lane_await(gbx_lane *lane, gbx_lane_room room, uint64_t end);

/* Lets a batch platform's host copy: waits while another lane has asked for it. */
void gbx_lane_go_inside(gbx_lane *lane);

/* --- capture.c --- */

/* What to capture of a tensor besides its description. */
typedef struct gbx_capture_wish {
    bool payload;
    bool statistics;
} gbx_capture_wish;

/* Records a tensor; `head` has task, stage, role, arg_index and flags. */
void gbx_capture_tensor(gbx_lane *lane, const gbx_dump_record *head, const gbx_tensor *tensor,
                        gbx_capture_wish wish);

#endif
