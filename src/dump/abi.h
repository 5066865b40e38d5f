/*
 * What host and device agree on for a dump: the memory at dump_data_base. Identical on all
 * platforms.
 *
 *     setup | lane 0 | lane 1 | ... | buffers of lane 0 | ... | arena of lane 0 | ...
 *
 * Each AICPU thread has a lane: a ring of metadata buffers, which the device fills with lines and
 * the host empties, and a circular arena for payload. Positions in an arena count up and never
 * wrap; a position modulo arena_bytes is its place. The host trusts nothing it reads here, and the
 * device only its copy of the setup from the start of the run.
 */
#ifndef GBX_DUMP_ABI_H
#define GBX_DUMP_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>
#include <glassbox/dump.h>

#include "base/spsc_ring.h"
#include "dump/select.h"
#include "text/names.h"

#define GBX_DUMP_MAGIC UINT64_C(0x31504d5544584247) /* "GBXDUMP1" */
#define GBX_DUMP_PAGE_BYTES 4096u
#define GBX_DUMP_LINE_BYTES 64u
#define GBX_DUMP_LINE_WORDS 8u
#define GBX_DUMP_BUFFER_LINES 1024u

enum { GBX_DUMP_CAUSES = GBX_LOSS_UNKNOWN }; /* causes of loss that a run can have */

/* Flags of the setup. */
enum {
    GBX_DUMP_HAS_TENSORS = 1u << 0, /* arguments are captured */
    GBX_DUMP_HAS_ARGS = 1u << 1,    /* dispatches are captured */
    GBX_DUMP_HAS_STATS = 1u << 2,
    GBX_DUMP_BY_BATCH = 1u << 3 /* the host reads only while the device does not write */
};

/* What the signature of a kernel says of the words it gets; all zero where there is none. */
typedef struct gbx_dump_signature {
    uint8_t tensor_count;                       /* these words are tensors, the rest scalars */
    uint8_t scalar_dtypes[GBX_MAX_SCALAR_ARGS]; /* GBX_DTYPE_NONE where it gives none */
} gbx_dump_signature;
static_assert(sizeof(gbx_dump_signature) == 33, "layout shared by host and device");

/* Written by the host before the launch; `asked` and `done` change during the run. */
typedef struct gbx_dump_setup {
    uint64_t magic;
    uint32_t flags;
    uint32_t level; /* gbx_dump_level */
    uint32_t lane_count;
    uint32_t buffer_count;     /* of each lane; a power of two */
    uint64_t lanes;            /* address of gbx_dump_lane[lane_count] */
    uint64_t buffers;          /* address; each GBX_DUMP_BUFFER_LINES lines */
    uint64_t arenas;           /* address, aligned to pages */
    uint64_t arena_bytes;      /* of each lane; a multiple of pages */
    uint64_t max_tensor_bytes; /* 0: no limit */
    uint64_t stall_timeout_ns;
    uint64_t signatures; /* address of gbx_dump_signature[GBX_MAX_KERNELS] */
    uint32_t filter_count;
    uint32_t reserved;
    gbx_dump_filter filters[GBX_MAX_DUMP_FILTERS];
    /* BY_BATCH: the device asks for a copy by incrementing `asked`, and rings; the host copies and
     * then sets `done` to the value it saw. */
    _Alignas(64) _Atomic uint64_t asked; /* device */
    _Alignas(64) _Atomic uint64_t done;  /* host */
} gbx_dump_setup;
static_assert(offsetof(gbx_dump_setup, lanes) == 24, "layout shared by host and device");
static_assert(offsetof(gbx_dump_setup, filters) == 88, "layout shared by host and device");
static_assert(offsetof(gbx_dump_setup, asked) == 13184, "layout shared by host and device");
static_assert(sizeof(gbx_dump_setup) == 13312, "layout shared by host and device");

/* A buffer in a queue: its number, how many lines it has, and its place among all buffers
 * that the lane ever filled. */
static inline uint64_t gbx_dump_item(uint32_t buffer, uint32_t lines, uint32_t turn) {
    return (uint64_t)turn << 32 | (uint64_t)lines << 16 | buffer;
}

static inline uint32_t gbx_dump_item_buffer(uint64_t item) {
    return item & 0xffff;
}

static inline uint32_t gbx_dump_item_lines(uint64_t item) {
    return item >> 16 & 0xffff;
}

static inline uint32_t gbx_dump_item_turn(uint64_t item) {
    return (uint32_t)(item >> 32);
}

#define GBX_DUMP_NO_ITEM UINT64_MAX

/* How much of a payload is kept: complete elements of any dtype. */
static inline uint64_t gbx_dump_kept_bytes(uint64_t payload_bytes, uint64_t max_tensor_bytes) {
    if (max_tensor_bytes == 0 || payload_bytes <= max_tensor_bytes)
        return payload_bytes;
    return max_tensor_bytes & ~UINT64_C(7);
}

/* The most bytes that go through an arena in one piece. */
static inline uint64_t gbx_dump_piece_bytes(uint64_t arena_bytes) {
    return (arena_bytes / 4) & ~(uint64_t)(GBX_DUMP_PAGE_BYTES - 1);
}

/* What a lane counted, all of it in private memory. */
typedef struct gbx_dump_counts {
    uint64_t stall_ns;
    uint64_t longest_capture_ns;
    uint64_t lost[GBX_DUMP_CAUSES];           /* records, by cause... */
    uint64_t lost_arguments[GBX_DUMP_CAUSES]; /* ...and how many of them are arguments of tasks */
    uint64_t committed;                       /* records of all kinds in its buffers... */
    uint64_t committed_arguments;             /* ...and arguments of tasks */
    uint64_t has_ended;                       /* 1 when the thread has flushed */
    uint64_t filter_hits[GBX_MAX_DUMP_FILTERS];
} gbx_dump_counts;

/*
 * A lane. The device keeps all that it writes here in private memory, too, and writes it again when
 * it waits and at the end of its thread, in case a kernel overwrote it; so does the host. Buffers
 * are used in order: the host gives them back in the order in which it got them, and only counts
 * them. The device does not read free_slots.
 */
typedef struct gbx_dump_lane {
    gbx_spsc_ring free;  /* host to device: numbers of buffers */
    gbx_spsc_ring ready; /* device to host: gbx_dump_item */
    uint64_t free_slots[GBX_MAX_DUMP_BUFFERS];
    uint64_t ready_slots[GBX_MAX_DUMP_BUFFERS];
    /* For each ready buffer: gbx_dump_check of its lines, and where its payload ends in the arena,
     * so that the room can be given back even if a kernel wrote over the lines. */
    uint64_t ready_checks[GBX_MAX_DUMP_BUFFERS];
    uint64_t ready_ends[GBX_MAX_DUMP_BUFFERS];
    /* Device: the buffer it is filling, or GBX_DUMP_NO_ITEM, for the host to find if the chip
     * dies. */
    _Alignas(64) _Atomic uint64_t open_item;
    _Atomic uint64_t open_check; /* of its lines; may belong to a later open_item */
    /* Device, with each buffer it hands over and at the end of the thread. */
    gbx_dump_counts counts;
    uint64_t counts_check; /* gbx_dump_check of them */
    /* Host: positions below it are free again. */
    _Alignas(64) _Atomic uint64_t arena_head;
} gbx_dump_lane;
static_assert(offsetof(gbx_dump_lane, ready) == 256, "layout shared by host and device");
static_assert(offsetof(gbx_dump_lane, free_slots) == 512, "layout shared by host and device");
static_assert(offsetof(gbx_dump_lane, open_item) == 2560, "layout shared by host and device");
static_assert(offsetof(gbx_dump_lane, arena_head) == 2944, "layout shared by host and device");
static_assert(sizeof(gbx_dump_lane) == 3072, "layout shared by host and device");

__extension__ typedef unsigned __int128 gbx_dump_wide;

static inline uint64_t gbx_dump_check_pair(uint64_t first, uint64_t second) {
    gbx_dump_wide product = (gbx_dump_wide)first * second;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t gbx_dump_check_word(uint64_t check, uint64_t word) {
    check = (check ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return check ^ check >> 29;
}

/* Continues a check over more words. It finds damage by kernels, not by an adversary. The words of
 * a line do not wait for each other; each has a key of its own, so that order counts. */
static inline uint64_t gbx_dump_check(uint64_t check, const void *from, size_t bytes) {
    const uint64_t *words = from;
    size_t count = bytes / sizeof *words;
    for (; count >= 8; count -= 8, words += 8)
        check = gbx_dump_check_word(
            check, gbx_dump_check_pair(words[0] ^ UINT64_C(0xd1b54a32d192ed03),
                                       words[1] ^ UINT64_C(0xabc98388fb8fac03)) +
                       gbx_dump_check_pair(words[2] ^ UINT64_C(0x8cb92ba72f3d8dd7),
                                           words[3] ^ UINT64_C(0xdb4f0b9175ae2165)) +
                       gbx_dump_check_pair(words[4] ^ UINT64_C(0xbbe0563303a4615f),
                                           words[5] ^ UINT64_C(0xa0f2ec75a1fe1575)) +
                       gbx_dump_check_pair(words[6] ^ UINT64_C(0x89e182857d9ed689),
                                           words[7] ^ UINT64_C(0xc2b2ae3d27d4eb4f)));
    for (; count > 0; --count)
        check = gbx_dump_check_word(check, *words++);
    return check;
}

/* What the check of the lines of a buffer begins with. */
static inline uint64_t gbx_dump_check_of_turn(uint32_t turn) {
    return turn * UINT64_C(0xc2b2ae3d27d4eb4f) + 1;
}

/* --- records: one or more lines in a buffer, never across its end --- */

typedef enum gbx_dump_kind {
    GBX_DUMP_TASK = 1,
    GBX_DUMP_EDGES = 2,
    GBX_DUMP_DONE = 3,
    GBX_DUMP_SCALAR = 4,
    GBX_DUMP_TENSOR = 5,
    GBX_DUMP_PIECE = 6, /* bytes of a tensor too large for the arena; its TENSOR follows */
    GBX_DUMP_DISPATCH = 7,
    GBX_DUMP_LOSS = 8,
    GBX_DUMP_SKIPPED = 9,
    GBX_DUMP_EXECUTION = 10,
    GBX_DUMP_SAMPLE = 11
} gbx_dump_kind;

/* Flags of a record. */
enum {
    GBX_DUMP_PAYLOAD = 1u << 0,
    GBX_DUMP_STATISTICS = 1u << 1,
    GBX_DUMP_TRUNCATED = 1u << 2,
    GBX_DUMP_IN_FLIGHT = 1u << 3,
    GBX_DUMP_PIECES = 1u << 4,
    GBX_DUMP_HASH = 1u << 5
};

/* Words of a record beyond its first line, by what it holds. */
enum { GBX_DUMP_STATISTICS_WORDS = 7 };

static inline uint32_t gbx_dump_tensor_words(uint32_t ndims, uint32_t flags) {
    return 2 * ndims + (flags & GBX_DUMP_STATISTICS ? GBX_DUMP_STATISTICS_WORDS : 0);
}

/* A slot of a dispatch: gbx_dump_slot, and for a tensor also data, start_offset, shape, strides. */
enum { GBX_DUMP_SLOT_WORDS = 2 };

static inline uint32_t gbx_dump_slot_words(uint32_t is_tensor, uint32_t ndims) {
    return GBX_DUMP_SLOT_WORDS + (is_tensor ? 2 + 2 * ndims : 0);
}

static inline uint32_t gbx_dump_lines_of(uint32_t words) {
    return 1 + (words + GBX_DUMP_LINE_WORDS - 1) / GBX_DUMP_LINE_WORDS;
}

typedef struct gbx_dump_record {
    uint8_t kind;  /* gbx_dump_kind */
    uint8_t lines; /* of the complete record */
    uint8_t stage; /* GBX_STAGE_... */
    uint8_t role;
    uint8_t arg_index;
    uint8_t dtype;
    uint8_t ndims;
    uint8_t flags; /* GBX_DUMP_... */
    uint64_t task;
    uint64_t time_ns; /* of the hook, since the start of the run */
} gbx_dump_record;
static_assert(sizeof(gbx_dump_record) == 24, "layout shared by host and device");

/* Whether it is one of those that its task announces: an argument, recorded or skipped. */
static inline bool gbx_dump_is_argument(uint32_t kind, uint32_t arg_index) {
    return kind == GBX_DUMP_TENSOR || kind == GBX_DUMP_SCALAR ||
           (kind == GBX_DUMP_SKIPPED && arg_index != GBX_ARG_NONE);
}

typedef struct gbx_dump_task {
    gbx_dump_record head;
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    uint32_t block_num;
    uint64_t predecessor_count;
    uint32_t
        announced_before; /* arguments that are recorded or skipped before it is dispatched... */
    uint32_t announced_after; /* ...and after it has completed */
    uint64_t reserved;
} gbx_dump_task;
static_assert(sizeof(gbx_dump_task) == 64, "layout shared by host and device");

enum { GBX_DUMP_EDGES_MAX = 5 };
typedef struct gbx_dump_edges {
    gbx_dump_record head; /* arg_index: how many */
    uint64_t predecessors[GBX_DUMP_EDGES_MAX];
} gbx_dump_edges;
static_assert(sizeof(gbx_dump_edges) == 64, "layout shared by host and device");

/* DONE is only the head. */
typedef struct gbx_dump_scalar {
    gbx_dump_record head; /* dtype: GBX_DTYPE_NONE where neither call nor signature has it */
    uint64_t bits;
    uint64_t reserved[4];
} gbx_dump_scalar;
static_assert(sizeof(gbx_dump_scalar) == 64, "layout shared by host and device");

/* `words` continue over further lines: shape, strides, then with STATISTICS seven words. */
typedef struct gbx_dump_tensor {
    gbx_dump_record head;
    uint64_t data;
    uint64_t position; /* in the arena, where it has PAYLOAD and no PIECES */
    uint64_t hash_low;
    uint64_t hash_high;
    int64_t start_offset;
    uint64_t words[];
} gbx_dump_tensor;
static_assert(sizeof(gbx_dump_tensor) == 64, "layout shared by host and device");

typedef struct gbx_dump_piece {
    gbx_dump_record head;
    uint64_t position; /* a multiple of pages */
    uint64_t bytes;    /* a multiple of pages, except for the last piece */
    uint64_t offset;   /* in the payload of the tensor */
    uint64_t total_bytes;
    uint64_t reserved;
} gbx_dump_piece;
static_assert(sizeof(gbx_dump_piece) == 64, "layout shared by host and device");

/* `words` continue over further lines: a gbx_dump_slot for each slot, and after that of a tensor
 * data, start_offset, shape, strides. */
typedef struct gbx_dump_dispatch {
    gbx_dump_record head; /* arg_index: how many slots */
    uint32_t func_id;
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t block_num;
    uint32_t subtask;
    uint32_t word_count; /* of `words` */
    uint64_t local_context;
    uint64_t global_context;
    uint64_t words[];
} gbx_dump_dispatch;
static_assert(sizeof(gbx_dump_dispatch) == 64, "layout shared by host and device");

typedef struct gbx_dump_slot {
    uint8_t is_tensor;
    uint8_t role;
    uint8_t dtype;
    uint8_t ndims;
    uint8_t is_word; /* whether it is a tensor or a scalar is unknown; is_tensor is 0 */
    uint8_t reserved[3];
    uint64_t bits;
} gbx_dump_slot;
static_assert(sizeof(gbx_dump_slot) == 16, "layout shared by host and device");

#define GBX_DUMP_NO_END UINT64_MAX

/* A dispatch ran, whether its arguments were captured or not. Its time is when the kernel was
 * called. */
typedef struct gbx_dump_execution {
    gbx_dump_record head;
    uint64_t end_ns; /* GBX_DUMP_NO_END: it crashed or did not end */
    uint32_t core_id;
    uint32_t block_idx;
    uint32_t subtask;
    uint32_t func_id;
    uint64_t reserved[2];
} gbx_dump_execution;
static_assert(sizeof(gbx_dump_execution) == 64, "layout shared by host and device");

/* The waits of one call of the device writer, from the first one on; and one sample at the end of a
 * thread. */
typedef struct gbx_dump_sample {
    gbx_dump_record head;
    uint64_t waited_ns; /* in all */
    uint64_t used;      /* bytes of the arena when the first wait began; at the end: the maximum */
    uint32_t wait_count;
    uint32_t causes; /* GBX_WAITED_...; 0: the end of the thread */
    uint64_t reserved[2];
} gbx_dump_sample;
static_assert(sizeof(gbx_dump_sample) == 64, "layout shared by host and device");

typedef struct gbx_dump_loss {
    gbx_dump_record head; /* of the first lost record */
    uint64_t cause;       /* gbx_loss_cause, below GBX_DUMP_CAUSES */
    uint64_t count;
    uint64_t argument_count; /* how many of them gbx_dump_is_argument */
    uint64_t reserved[2];
} gbx_dump_loss;
static_assert(sizeof(gbx_dump_loss) == 64, "layout shared by host and device");

typedef struct gbx_dump_skipped {
    gbx_dump_record head; /* arg_index: GBX_ARG_NONE for the complete task */
    uint64_t reason;      /* as in the journal */
    uint64_t func_id;
    uint64_t reserved[3];
} gbx_dump_skipped;
static_assert(sizeof(gbx_dump_skipped) == 64, "layout shared by host and device");

#endif
