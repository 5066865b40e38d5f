#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "dump/device/writer.h"

/* Records do not stay with the device for longer than this while tasks go on. */
#define PUBLISH_NS (50 * GBX_NS_PER_MS)

/* --- metadata --- */

static void *next_line(const gbx_lane *lane) {
    return lane->mine + (size_t)lane->used * GBX_DUMP_LINE_BYTES;
}

static bool has_buffer(gbx_lane *lane) {
    uint32_t buffer_count = lane->writer->setup.buffer_count;
    if (lane->lines)
        return true;
    /* Acquire pairs with the host's release: it has read the lines. A count that it cannot have
     * reached was overwritten. It begins with all buffers. */
    uint64_t given =
        atomic_load_explicit(&lane->shared->free.tail, memory_order_acquire) - buffer_count;
    if (given > lane->given_back && given <= lane->handed_over)
        lane->given_back = given;
    if (lane->turn - lane->given_back >= buffer_count)
        return false;
    lane->buffer = lane->turn % buffer_count;
    lane->lines =
        lane->buffers + (size_t)lane->buffer * GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES;
    lane->used = 0;
    lane->check = gbx_dump_check_of_turn(++lane->turn);
    return true;
}

static void show_open(gbx_lane *lane) {
    uint64_t item =
        lane->lines ? gbx_dump_item(lane->buffer, lane->used, lane->turn) : GBX_DUMP_NO_ITEM;
    atomic_store_explicit(&lane->shared->open_check, lane->check, memory_order_relaxed);
    /* Release: the lines are there before they are counted, also for a host that reads what a dead
     * chip left. */
    atomic_store_explicit(&lane->shared->open_item, item, memory_order_release);
}

/* With each buffer, so that they are known even if the chip dies. */
static void show_counts(gbx_lane *lane) {
    lane->shared->counts = lane->counts;
    lane->shared->counts_check = gbx_dump_check(0, &lane->counts, sizeof lane->counts);
}

static void restore_words(uint64_t *shared, const uint64_t *own, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
        if (shared[i] != own[i])
            shared[i] = own[i];
}

void gbx_lane_restore(gbx_lane *lane) {
    gbx_dump_lane *shared = lane->shared;
    uint64_t count = lane->writer->setup.buffer_count;
    if (lane->handed_over < count)
        count = lane->handed_over;
    restore_words(shared->ready_slots, lane->ready_slots, count);
    restore_words(shared->ready_checks, lane->ready_checks, count);
    restore_words(shared->ready_ends, lane->ready_ends, count);
    if (atomic_load_explicit(&shared->ready.tail, memory_order_relaxed) != lane->handed_over)
        atomic_store_explicit(&shared->ready.tail, lane->handed_over, memory_order_release);
    show_open(lane);
}

/* Lines that a kernel overwrote since they were committed are written again. */
static void restore_lines(unsigned char *lines, const unsigned char *mine, size_t bytes) {
    if (memcmp(lines, mine, bytes) != 0)
        memcpy(lines, mine, bytes);
}

void gbx_lane_publish(gbx_lane *lane) {
    gbx_dump_lane *shared = lane->shared;
    uint64_t used = gbx_lane_arena_used(lane);
    if (used > lane->most_used)
        lane->most_used = used;
    lane->published = lane->tail;
    lane->published_ns = lane->hook_ns;
    show_counts(lane);
    if (!lane->lines || lane->used == 0)
        return;
    restore_lines(lane->lines, lane->mine, (size_t)lane->used * GBX_DUMP_LINE_BYTES);
    uint64_t cell = lane->handed_over % lane->writer->setup.buffer_count;
    shared->ready_checks[cell] = lane->ready_checks[cell] = lane->check;
    shared->ready_ends[cell] = lane->ready_ends[cell] = lane->tail;
    shared->ready_slots[cell] = lane->ready_slots[cell] =
        gbx_dump_item(lane->buffer, lane->used, lane->turn);
    /* Release: the host finds the lines, and the cells filled in. The queue has as many cells as
     * there are buffers: it is never full. */
    atomic_store_explicit(&shared->ready.tail, ++lane->handed_over, memory_order_release);
    lane->lines = NULL;
    show_open(lane);
}

static bool has_lines(gbx_lane *lane, uint32_t count) {
    if (lane->lines && lane->used + count > GBX_DUMP_BUFFER_LINES)
        gbx_lane_publish(lane);
    return gbx_lane_await(lane, GBX_ROOM_LINES, 0);
}

/* Records the losses so far, now that there is a buffer; those without room keep waiting. */
static void record_losses(gbx_lane *lane) {
    uint32_t recorded = 0;
    while (recorded < lane->loss_count && lane->lines && lane->used < GBX_DUMP_BUFFER_LINES) {
        const gbx_writer_loss *loss = &lane->losses[recorded++];
        gbx_dump_loss *line = next_line(lane);
        *line = (gbx_dump_loss){.head = loss->first,
                                .cause = loss->cause,
                                .count = loss->count,
                                .argument_count = loss->argument_count};
        line->head.kind = GBX_DUMP_LOSS;
        line->head.lines = 1;
        gbx_lane_commit(lane);
    }
    lane->loss_count -= recorded;
    memmove(lane->losses, lane->losses + recorded, lane->loss_count * sizeof lane->losses[0]);
}

void *gbx_lane_begin(gbx_lane *lane, gbx_dump_kind kind, uint32_t words,
                     const gbx_dump_record *head) {
    uint32_t count = gbx_dump_lines_of(words);
    if (!has_lines(lane, count + lane->loss_count)) {
        if (kind != GBX_DUMP_PIECE) /* its tensor is what is lost */
            gbx_lane_lose(lane, kind, head, GBX_LOSS_STALL);
        return NULL;
    }
    if (lane->loss_count)
        record_losses(lane);
    gbx_dump_record *record = next_line(lane);
    *record = *head;
    record->kind = (uint8_t)kind;
    record->lines = (uint8_t)count;
    record->time_ns = lane->time_ns;
    return record;
}

void gbx_lane_commit(gbx_lane *lane) {
    const gbx_dump_record *record = next_line(lane);
    size_t bytes = (size_t)record->lines * GBX_DUMP_LINE_BYTES;
    memcpy(lane->lines + (size_t)lane->used * GBX_DUMP_LINE_BYTES, record, bytes);
    lane->check = gbx_dump_check(lane->check, record, bytes);
    lane->used += record->lines;
    ++lane->counts.committed;
    lane->counts.committed_arguments += gbx_dump_is_argument(record->kind, record->arg_index);
    show_open(lane);
}

/* --- payload --- */

uint64_t gbx_lane_arena_used(gbx_lane *lane) {
    /* Acquire pairs with the host's release: it has read everything below. A head beyond what was
     * written is invalid. */
    uint64_t head = atomic_load_explicit(&lane->shared->arena_head, memory_order_acquire);
    if (head > lane->seen_head && head <= lane->tail)
        lane->seen_head = head;
    return lane->tail - lane->seen_head;
}

bool gbx_lane_has_room(gbx_lane *lane, gbx_lane_room room, uint64_t end) {
    if (room == GBX_ROOM_LINES)
        return has_buffer(lane);
    uint64_t arena_bytes = lane->writer->setup.arena_bytes;
    if (end - lane->seen_head > arena_bytes)
        gbx_lane_arena_used(lane);
    return end - lane->seen_head <= arena_bytes;
}

/* The first touch of memory is slow and comes page by page, so ask for larger pieces before the
 * copy. */
static void touch_ahead(gbx_lane *lane, uint64_t end) {
    uint64_t arena_bytes = lane->writer->setup.arena_bytes;
    uint64_t wanted =
        (end + GBX_WRITER_TOUCHED_BYTES - 1) & ~(uint64_t)(GBX_WRITER_TOUCHED_BYTES - 1);
    if (wanted > arena_bytes)
        wanted = arena_bytes;
    if (lane->touched >= wanted)
        return;
    /* Best effort. */
    (void)madvise(lane->arena + lane->touched, wanted - lane->touched, MADV_POPULATE_WRITE);
    lane->touched = wanted;
}

bool gbx_lane_reserve(gbx_lane *lane, uint64_t bytes, uint64_t alignment, uint64_t *out_position) {
    uint64_t arena_bytes = lane->writer->setup.arena_bytes;
    uint64_t position = (lane->tail + alignment - 1) & ~(alignment - 1);
    uint64_t at = position % arena_bytes;
    /* Payload stays in one piece: if it does not fit before the end of the arena, it goes to the
     * start. */
    *out_position = at + bytes > arena_bytes ? position + (arena_bytes - at) : position;
    touch_ahead(lane, *out_position + bytes);
    return gbx_lane_await(lane, GBX_ROOM_ARENA, *out_position + bytes);
}

void gbx_lane_use(gbx_lane *lane, uint64_t position, uint64_t bytes) {
    lane->tail = position + bytes;
    /* Early enough that the host writes while this lane fills the rest of its arena. */
    if (lane->tail - lane->published >= lane->writer->setup.arena_bytes / 4)
        gbx_lane_publish(lane);
}

/* --- losses --- */

void gbx_lane_lose(gbx_lane *lane, gbx_dump_kind kind, const gbx_dump_record *head,
                   uint32_t cause) {
    uint32_t argument_count = gbx_dump_is_argument(kind, head->arg_index);
    ++lane->counts.lost[cause];
    lane->counts.lost_arguments[cause] += argument_count;
    uint32_t last = lane->loss_count;
    while (last > 0 && lane->losses[last - 1].cause != cause)
        --last;
    gbx_writer_loss *known = last > 0 ? &lane->losses[last - 1] : NULL;
    bool is_same = known && known->first.task == head->task && known->first.stage == head->stage &&
                   known->first.arg_index == head->arg_index;
    if (is_same || (known && lane->loss_count == GBX_WRITER_LOSSES)) {
        ++known->count;
        known->argument_count += argument_count;
    } else if (lane->loss_count < GBX_WRITER_LOSSES) {
        lane->losses[lane->loss_count] = (gbx_writer_loss){
            .first = *head, .cause = cause, .count = 1, .argument_count = argument_count};
        lane->losses[lane->loss_count++].first.time_ns = lane->time_ns;
    }
    /* Else the host finds the difference between the recorded losses and lost[]. */
}

/* --- samples --- */

/* Does not wait for room: without room, it is merged into the next sample. */
static void record_sample(gbx_lane *lane, const gbx_dump_sample *sample) {
    if (lane->lines && lane->used == GBX_DUMP_BUFFER_LINES)
        gbx_lane_publish(lane);
    if (!has_buffer(lane))
        return;
    gbx_dump_sample *line = next_line(lane);
    *line = *sample;
    line->head.kind = GBX_DUMP_SAMPLE;
    line->head.lines = 1;
    line->head.arg_index = GBX_ARG_NONE;
    gbx_lane_commit(lane);
    lane->waits = (gbx_dump_sample){.wait_count = 0};
}

/* --- hooks --- */

static bool go_in(gbx_lane *lane) {
    if (atomic_load_explicit(&lane->has_ended, memory_order_acquire))
        return false;
    gbx_lane_go_inside(lane);
    return true;
}

bool gbx_lane_enter(gbx_lane *lane) {
    if (!go_in(lane))
        return false;
    lane->hook_ns = gbx_clock_ns();
    int64_t since_start = lane->hook_ns - lane->writer->start_ns;
    lane->time_ns = since_start > 0 ? (uint64_t)since_start : 0;
    return true;
}

bool gbx_lane_enter_at(gbx_lane *lane, uint64_t start_ticks, uint64_t now_ticks) {
    if (!go_in(lane))
        return false;
    /* First, so that both times use one anchor. */
    lane->hook_ns = lane->writer->start_ns + (int64_t)gbx_ticks_to_time(lane, now_ticks);
    lane->time_ns = gbx_ticks_to_time(lane, start_ticks);
    return true;
}

void gbx_lane_leave(gbx_lane *lane) {
    if (lane->waits.wait_count)
        record_sample(lane, &lane->waits);
    if (lane->lines && lane->hook_ns - lane->published_ns > PUBLISH_NS)
        gbx_lane_publish(lane);
    if (lane->writer->setup.flags & GBX_DUMP_BY_BATCH)
        atomic_store_explicit(&lane->inside, GBX_LANE_OUTSIDE, memory_order_release);
}

void gbx_lane_end(gbx_lane *lane) {
    /* Losses are worth one more wait. */
    lane->is_dropping[GBX_ROOM_LINES] = false;
    if (lane->loss_count && has_lines(lane, lane->loss_count))
        record_losses(lane);
    if (lane->waits.wait_count)
        record_sample(lane, &lane->waits);
    if (lane->counts.committed) {
        gbx_dump_sample last = {.head.time_ns = lane->time_ns, .used = lane->most_used};
        uint64_t used = gbx_lane_arena_used(lane);
        last.used = used > last.used ? used : last.used;
        record_sample(lane, &last);
    }
    lane->counts.has_ended = 1;
    gbx_lane_publish(lane);
    gbx_lane_restore(lane);
    atomic_store_explicit(&lane->has_ended, true, memory_order_release);
}
