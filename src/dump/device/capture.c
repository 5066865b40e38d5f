#include <string.h>

#include <glassbox/tensor.h>

#include "base/clock.h"
#include "base/hash.h"
#include "dump/device/writer.h"
#include "tensor/copy/gather_range.h"
#include "tensor/statistics/statistics.h"
#include "tensor/view.h"

/* Shorter captures are not worth measuring. */
enum { TIMED_BYTES = 65536 };
_Static_assert(sizeof(gbx_statistics) == GBX_DUMP_STATISTICS_WORDS * sizeof(uint64_t),
               "layout of a record");

/* One tensor being captured. */
typedef struct capture {
    gbx_lane *lane;
    gbx_dump_record head;
    const gbx_tensor *tensor;
    const void *buffer; /* its data */
    bool is_contiguous;
    bool is_in_place; /* the payload is the bytes of the buffer, unchanged */
    bool has_statistics;
    bool has_hash;
    bool is_hash_known; /* all of it was hashed in one step */
    uint64_t bytes;     /* all, or those that are kept */
    uint64_t position;
    uint64_t unseen_bytes; /* since the last sign of life */
    gbx_hash128 hash;
    gbx_hash_state hashing;
    gbx_statistics_state counting;
} capture;

/*
 * Kernels can overwrite the descriptions of tensors, so they are checked at every use. A tensor
 * does not lie in the dump's own memory, and a view does not repeat elements until they exceed
 * global memory.
 */
static bool is_sound(const gbx_lane *lane, const gbx_tensor *tensor) {
    const gbx_probe_request *request = &lane->writer->request;
    const gbx_dump_setup *setup = &lane->writer->setup;
    int64_t first;
    int64_t end;
    if (!gbx_tensor_is_valid(tensor, &first, &end) ||
        gbx_tensor_payload_bytes(tensor) > request->gm_bytes)
        return false;
    if (first == end)
        return true;
    uint64_t start = tensor->data + (uint64_t)first;
    uint64_t bytes = (uint64_t)(end - first);
    uint64_t offset = start - request->gm_base;
    uint64_t dump_end = setup->arenas + setup->lane_count * setup->arena_bytes;
    return offset < request->gm_bytes && bytes <= request->gm_bytes - offset &&
           (start >= dump_end || start + bytes <= request->data_base);
}

/* --- reading --- */

/* The bytes from `first` on, in place or gathered. */
static const void *fetch(const capture *c, uint64_t first, uint64_t bytes) {
    if (c->is_in_place) {
        uint64_t start = (uint64_t)c->tensor->start_offset * gbx_dtype_bits(c->tensor->dtype) / 8;
        return (const unsigned char *)c->buffer + start + first;
    }
    gbx_tensor_gather_range(c->tensor, c->buffer, first, bytes, c->lane->scratch);
    return c->lane->scratch;
}

static void look_at(capture *c, const void *bytes, uint64_t count) {
    uint32_t ndims = c->tensor->ndims;
    if (c->has_hash && count == c->bytes) {
        c->hash = gbx_hash_bytes(bytes, count);
        c->is_hash_known = true;
    } else if (c->has_hash) {
        gbx_hash_update(&c->hashing, bytes, count);
    }
    if (c->has_statistics)
        gbx_statistics_update(&c->counting, bytes, count,
                              ndims ? (uint64_t)c->tensor->shape[ndims - 1] : 1);
}

static void look_in_steps(capture *c, const unsigned char *bytes, uint64_t count) {
    for (uint64_t at = 0; at < count; at += GBX_WRITER_STEP_BYTES) {
        uint64_t left = count - at;
        look_at(c, bytes + at, left < GBX_WRITER_STEP_BYTES ? left : GBX_WRITER_STEP_BYTES);
    }
}

static void show_life(capture *c, uint64_t count) {
    c->unseen_bytes += count;
    if (c->unseen_bytes < GBX_WRITER_LIFE_BYTES)
        return;
    c->unseen_bytes = 0;
    gbx_lane_show_life(c->lane);
}

/* Reads bytes `first` to `end` in place. */
static void sweep(capture *c, uint64_t first, uint64_t end) {
    for (uint64_t at = first; at < end; at += GBX_WRITER_VIEW_STEP_BYTES) {
        uint64_t left = end - at;
        uint64_t count = left < GBX_WRITER_VIEW_STEP_BYTES ? left : GBX_WRITER_VIEW_STEP_BYTES;
        look_in_steps(c, fetch(c, at, count), count);
        show_life(c, count);
    }
}

/* The same, copied to `to`: contiguous bytes in steps that stay in the cache, others gathered in
 * large steps, because complete tiles are several times as fast. */
static void copy_out(capture *c, uint64_t first, uint64_t end, unsigned char *to) {
    uint64_t step = c->is_contiguous ? GBX_WRITER_STEP_BYTES : GBX_WRITER_GATHER_BYTES;
    for (uint64_t at = first; at < end; at += step) {
        uint64_t count = end - at < step ? end - at : step;
        unsigned char *place = to + (at - first);
        gbx_tensor_gather_range(c->tensor, c->buffer, at, count, place);
        look_in_steps(c, place, count);
        show_life(c, count);
    }
}

/* --- writing --- */

static bool copy_piece(capture *c, uint64_t offset, uint64_t bytes) {
    gbx_lane *lane = c->lane;
    uint64_t position;
    if (!gbx_lane_reserve(lane, bytes, GBX_DUMP_PAGE_BYTES, &position))
        return false;
    copy_out(c, offset, offset + bytes, gbx_lane_at(lane, position));
    gbx_dump_piece *piece = gbx_lane_begin(lane, GBX_DUMP_PIECE, 0, &c->head);
    if (!piece)
        return false;
    *piece = (gbx_dump_piece){.head = piece->head,
                              .position = position,
                              .bytes = bytes,
                              .offset = offset,
                              .total_bytes = c->bytes};
    gbx_lane_commit(lane);
    gbx_lane_use(lane, position, bytes);
    return true;
}

/* In one piece where it fits. */
static bool copy_payload(capture *c) {
    uint64_t most = gbx_dump_piece_bytes(c->lane->writer->setup.arena_bytes);
    if (c->bytes <= most) {
        if (!gbx_lane_reserve(c->lane, c->bytes, GBX_DUMP_LINE_BYTES, &c->position))
            return false;
        copy_out(c, 0, c->bytes, gbx_lane_at(c->lane, c->position));
        return true;
    }
    c->head.flags |= GBX_DUMP_PIECES;
    for (uint64_t at = 0; at < c->bytes; at += most)
        if (!copy_piece(c, at, c->bytes - at < most ? c->bytes - at : most))
            return false;
    return true;
}

static void record(capture *c) {
    gbx_lane *lane = c->lane;
    uint32_t ndims = c->tensor->ndims;
    uint32_t words = gbx_dump_tensor_words(ndims, c->head.flags);
    gbx_dump_tensor *to = gbx_lane_begin(lane, GBX_DUMP_TENSOR, words, &c->head);
    if (!to)
        return;
    to->data = c->tensor->data;
    to->position = c->position;
    to->hash_low = c->hash.low;
    to->hash_high = c->hash.high;
    to->start_offset = c->tensor->start_offset;
    memcpy(to->words, c->tensor->shape, ndims * sizeof(uint64_t));
    memcpy(to->words + ndims, c->tensor->strides, ndims * sizeof(uint64_t));
    if (c->has_statistics) {
        gbx_statistics statistics;
        gbx_statistics_end(&c->counting, &statistics);
        memcpy(to->words + 2 * (size_t)ndims, &statistics, sizeof statistics);
    }
    gbx_lane_commit(lane);
    if ((c->head.flags & (GBX_DUMP_PAYLOAD | GBX_DUMP_PIECES)) == GBX_DUMP_PAYLOAD)
        gbx_lane_use(lane, c->position, c->bytes);
}

static void describe(capture *c, gbx_capture_wish wish) {
    const gbx_tensor *tensor = c->tensor;
    uint64_t all_bytes = gbx_tensor_payload_bytes(tensor);
    c->head.dtype = (uint8_t)tensor->dtype;
    c->head.ndims = (uint8_t)tensor->ndims;
    c->buffer = (const void *)(uintptr_t)tensor->data;
    c->is_contiguous = gbx_tensor_is_contiguous(tensor);
    /* The half byte that pads a row of packed elements is 0 in a payload, anything in a buffer. */
    c->is_in_place = c->is_contiguous && !gbx_dtype_is_packed(tensor->dtype);
    c->has_statistics = wish.statistics;
    c->has_hash = wish.statistics || wish.payload;
    c->bytes = all_bytes;
    if (wish.payload)
        c->bytes = gbx_dump_kept_bytes(all_bytes, c->lane->writer->setup.max_tensor_bytes);
    if (c->bytes < all_bytes)
        c->head.flags |= GBX_DUMP_TRUNCATED;
    if (wish.payload && c->bytes > 0)
        c->head.flags |= GBX_DUMP_PAYLOAD;
    if (c->has_hash)
        c->head.flags |= GBX_DUMP_HASH;
    if (c->has_statistics)
        c->head.flags |= GBX_DUMP_STATISTICS;
}

void gbx_capture_tensor(gbx_lane *lane, const gbx_dump_record *head, const gbx_tensor *tensor,
                        gbx_capture_wish wish) {
    gbx_tensor seen = *tensor; /* a copy: what is checked is what is used */
    capture c;
    c.lane = lane;
    c.head = *head;
    c.tensor = &seen;
    c.position = c.unseen_bytes = 0;
    c.hash = (gbx_hash128){0};
    c.is_hash_known = false;
    if (!is_sound(lane, &seen)) {
        gbx_lane_lose(lane, GBX_DUMP_TENSOR, head, GBX_LOSS_CORRUPT);
        return;
    }
    describe(&c, wish);
    bool is_timed = c.has_hash && c.bytes >= TIMED_BYTES;
    int64_t start_ns = is_timed ? gbx_clock_ns() : 0;
    if (c.has_hash && c.bytes > GBX_WRITER_STEP_BYTES)
        gbx_hash_begin(&c.hashing);
    if (c.has_statistics)
        gbx_statistics_begin(&c.counting, seen.dtype);
    if (c.bytes == 0)
        look_at(&c, "", 0);
    bool is_whole = true;
    if (c.head.flags & GBX_DUMP_PAYLOAD)
        is_whole = copy_payload(&c);
    else if (c.has_hash)
        sweep(&c, 0, c.bytes);
    if (is_whole) {
        if (c.has_hash && !c.is_hash_known)
            c.hash = gbx_hash_end(&c.hashing);
        record(&c);
    } else {
        gbx_lane_lose(lane, GBX_DUMP_TENSOR, head, GBX_LOSS_STALL);
    }
    if (is_timed)
        gbx_lane_note_duration(lane, gbx_clock_ns() - start_ns);
}
