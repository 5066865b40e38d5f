#include "dump/host/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/memory.h"

/* --- global memory --- */

static bool read_at(const gbx_collector *c, uint64_t address, void *to, uint64_t bytes) {
    gbx_status status = c->hal->ops->copy_out(c->hal, to, address, bytes);
    bool is_read = status == NULL;
    if (status)
        gbx_log_error("reading a dump from the chip: %s", gbx_status_message(status));
    gbx_status_free(status);
    return is_read;
}

static uint64_t read_word(const gbx_collector *c, uint64_t address) {
    uint64_t word = 0;
    return read_at(c, address, &word, sizeof word) ? word : 0;
}

/* A release where the host maps; elsewhere one call, after all earlier ones. */
static void write_word(const gbx_collector *c, uint64_t address, uint64_t word) {
    gbx_status status = c->hal->ops->copy_in(c->hal, address, &word, sizeof word);
    if (status)
        gbx_log_error("writing to the chip: %s", gbx_status_message(status));
    gbx_status_free(status);
}

#define LANE_FIELD(lane, field) ((lane)->address + offsetof(gbx_dump_lane, field))

/* --- making one --- */

static gbx_status map_arena(gbx_collector *c, gbx_lane_source *lane) {
    uint64_t bytes = c->setup->arena_bytes;
    void *memory;
    if (c->is_mapped)
        GBX_TRY(c->hal->ops->map(c->hal, lane->arena, bytes, &memory));
    else
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return gbx_fail(
            GBX_EXHAUSTED,
            "preparing a dump: the host is out of memory for copies of an arena; use a smaller "
            "one (--dump-arena)");
    lane->payload = memory;
    return NULL;
}

static gbx_status init_lanes(gbx_collector *c) {
    const gbx_dump_setup *setup = c->setup;
    for (uint32_t i = 0; i < setup->lane_count; ++i) {
        gbx_lane_source *lane = &c->lanes[i];
        *lane = (gbx_lane_source){.index = i,
                                  .address = setup->lanes + i * sizeof(gbx_dump_lane),
                                  .buffers = setup->buffers + (uint64_t)i * setup->buffer_count *
                                                                  GBX_COLLECTED_BYTES,
                                  .arena = setup->arenas + i * setup->arena_bytes,
                                  .free_tail = setup->buffer_count};
        GBX_TRY(map_arena(c, lane));
    }
    return NULL;
}

gbx_status gbx_collector_create(const gbx_dump_region *region, gbx_store *store,
                                bool is_deduplicated, gbx_collector **out_collector) {
    gbx_collector *c = calloc(1, sizeof *c);
    *out_collector = c;
    if (!c)
        return gbx_fail_memory("preparing a dump");
    c->hal = region->hal;
    c->setup = &region->setup;
    c->address = region->address;
    c->store = store;
    c->is_deduplicated = is_deduplicated;
    c->is_mapped = region->hal->ops->map != NULL;
    gbx_hal_caps caps;
    region->hal->ops->caps(region->hal, &caps);
    c->gm_bytes = caps.gm_space;
    c->plan_capacity = c->is_mapped ? 1 : c->setup->lane_count * c->setup->buffer_count;
    c->plans = aligned_alloc(64, c->plan_capacity * sizeof *c->plans);
    c->pack.bytes = aligned_alloc(GBX_DUMP_PAGE_BYTES, GBX_PACK_BYTES);
    if (c->pack.bytes)
        memset(c->pack.bytes, 0, GBX_PACK_BYTES);
    c->pack.base = c->pack.written = c->pack.end = GBX_NOT_PLACED;
    gbx_status status =
        c->plans && c->pack.bytes ? init_lanes(c) : gbx_fail_memory("preparing a dump");
    if (status) {
        gbx_collector_destroy(c);
        *out_collector = NULL;
    }
    return status;
}

void gbx_collector_destroy(gbx_collector *c) {
    if (!c)
        return;
    for (uint32_t i = 0; i < GBX_MAX_AICPU_THREADS && !c->is_mapped; ++i)
        if (c->lanes[i].payload)
            munmap(c->lanes[i].payload, c->setup->arena_bytes);
    free(c->plans);
    free(c->pack.bytes);
    free(c);
}

enum { TOUCHED_BYTES = 1 << 20 };

/* Goes round the arenas: each is used from its start. */
bool gbx_collector_touch_ahead(gbx_collector *c) {
    uint32_t lane_count = c->setup->lane_count;
    uint64_t at = c->touched / lane_count / TOUCHED_BYTES * TOUCHED_BYTES;
    if (at >= c->setup->arena_bytes)
        return false;
    uint64_t left = c->setup->arena_bytes - at;
    unsigned char *payload = c->lanes[c->touched / TOUCHED_BYTES % lane_count].payload;
    /* Best effort: otherwise pages come as they are touched. */
    (void)madvise(payload + at, left < TOUCHED_BYTES ? left : TOUCHED_BYTES, MADV_POPULATE_WRITE);
    c->touched += TOUCHED_BYTES;
    return true;
}

/* --- one buffer --- */

static void break_lane(gbx_lane_source *lane) {
    if (!lane->is_broken)
        gbx_log_warning("dumping: thread %" PRIu32
                        " of the chip hands over invalid data; the rest of its data is lost",
                        lane->index);
    lane->is_broken = true;
}

/* Copies the lines first: what is checked is what is used. False when they cannot be read, or the
 * item is not the next one. */
static bool copy_lines(gbx_collector *c, gbx_lane_source *lane, uint64_t item, gbx_plan *plan) {
    uint32_t turn = gbx_dump_item_turn(item);
    plan->lane = lane;
    plan->buffer = gbx_dump_item_buffer(item);
    plan->lines = gbx_dump_item_lines(item);
    plan->first_line = turn == lane->open_turn ? lane->open_lines : 0;
    return plan->buffer == lane->last_turn % c->setup->buffer_count &&
           plan->lines <= GBX_DUMP_BUFFER_LINES && plan->first_line <= plan->lines &&
           turn == lane->last_turn + 1 &&
           read_at(c, lane->buffers + (uint64_t)plan->buffer * GBX_COLLECTED_BYTES, plan->copy,
                   (uint64_t)plan->lines * GBX_DUMP_LINE_BYTES);
}

static bool are_lines_right(const gbx_plan *plan, uint32_t turn, uint64_t check) {
    return gbx_dump_check(gbx_dump_check_of_turn(turn), plan->copy,
                          (size_t)plan->lines * GBX_DUMP_LINE_BYTES) == check;
}

static uint64_t read_cell(const gbx_collector *c, uint64_t cells, uint64_t position) {
    return read_word(c, cells + position % c->setup->buffer_count * sizeof(uint64_t));
}

/*
 * Plans the next buffer of a lane; false when there is none. A queue that a kernel overwrote has
 * none either: the device writes it again when it waits, and when it ends.
 */
static bool take_ready(gbx_collector *c, gbx_lane_source *lane) {
    uint64_t ready = read_word(c, LANE_FIELD(lane, ready.tail)) - lane->ready_head;
    if (lane->is_broken || ready == 0)
        return false;
    uint64_t item = read_cell(c, LANE_FIELD(lane, ready_slots), lane->ready_head);
    uint64_t check = read_cell(c, LANE_FIELD(lane, ready_checks), lane->ready_head);
    uint64_t end = read_cell(c, LANE_FIELD(lane, ready_ends), lane->ready_head);
    gbx_plan *plan = &c->plans[c->plan_count];
    if (ready > c->setup->buffer_count || !copy_lines(c, lane, item, plan)) {
        if (c->is_finishing)
            break_lane(lane);
        return false;
    }
    ++lane->ready_head;
    ++lane->last_turn;
    /* Overwritten lines are dropped; the device reports at the end how many there were. */
    if (!are_lines_right(plan, lane->last_turn, check))
        plan->lines = plan->first_line = 0;
    plan->is_open = false;
    gbx_plan_make(c, plan);
    ++c->plan_count;
    if (end > lane->position && end - lane->given <= c->setup->arena_bytes)
        plan->position = lane->position = end;
    return true;
}

/* Plans what there is of the buffer that the device is filling: it counts only complete lines.
 * False when there is nothing new, or the lines are not those that were checked. */
static bool take_open(gbx_collector *c, gbx_lane_source *lane) {
    uint64_t item = read_word(c, LANE_FIELD(lane, open_item));
    uint64_t check = read_word(c, LANE_FIELD(lane, open_check));
    uint32_t turn = gbx_dump_item_turn(item);
    gbx_plan *plan = &c->plans[c->plan_count];
    if (lane->is_broken || item == GBX_DUMP_NO_ITEM ||
        (turn == lane->open_turn && gbx_dump_item_lines(item) == lane->open_lines) ||
        !copy_lines(c, lane, item, plan) || !are_lines_right(plan, turn, check))
        return false;
    lane->open_turn = turn;
    lane->open_lines = plan->lines;
    plan->is_open = true;
    gbx_plan_make(c, plan);
    ++c->plan_count;
    return true;
}

/* The device may use the arena and the buffer again. */
static void give_back(gbx_collector *c, const gbx_plan *plan) {
    gbx_lane_source *lane = plan->lane;
    if (plan->position != lane->given)
        write_word(c, LANE_FIELD(lane, arena_head), plan->position);
    lane->given = plan->position;
    if (plan->is_open)
        return;
    write_word(c, LANE_FIELD(lane, ready.head), lane->ready_head);
    uint64_t cell = lane->free_tail % c->setup->buffer_count;
    write_word(c, LANE_FIELD(lane, free_slots) + cell * sizeof(uint64_t), plan->buffer);
    write_word(c, LANE_FIELD(lane, free.tail), ++lane->free_tail);
}

static void restore_word(const gbx_collector *c, uint64_t address, uint64_t word) {
    if (read_word(c, address) != word)
        write_word(c, address, word);
}

/* Writes again what a kernel may have overwritten of a lane: else the device would wait in vain. */
static void restore_lane(const gbx_collector *c, const gbx_lane_source *lane) {
    restore_word(c, LANE_FIELD(lane, arena_head), lane->given);
    restore_word(c, LANE_FIELD(lane, free.tail), lane->free_tail);
}

/* --- mapped --- */

static void settle_and_give_back(gbx_collector *c) {
    for (uint32_t i = 0; i < c->plan_count; ++i) {
        gbx_plan_settle(c, &c->plans[i]);
        give_back(c, &c->plans[i]);
    }
    c->plan_count = 0;
}

bool gbx_collector_drain(gbx_collector *c, bool is_open) {
    bool is_any = false;
    for (uint32_t i = 0; i < c->setup->lane_count; ++i) {
        is_any |= is_open ? take_open(c, &c->lanes[i]) : take_ready(c, &c->lanes[i]);
        settle_and_give_back(c);
    }
    for (uint32_t i = 0; i < c->setup->lane_count && !is_any; ++i)
        restore_lane(c, &c->lanes[i]);
    return is_any;
}

/* --- by batch --- */

bool gbx_collector_is_asked(const gbx_collector *c) {
    return read_word(c, c->address + offsetof(gbx_dump_setup, asked)) !=
           read_word(c, c->address + offsetof(gbx_dump_setup, done));
}

/* Payloads this close together are copied with the gap between them. */
enum { FETCHED_GAP_BYTES = 64 << 10 };

static bool fetch_pages(gbx_collector *c, gbx_lane_source *lane, uint64_t first, uint64_t end) {
    uint64_t page = GBX_DUMP_PAGE_BYTES;
    uint64_t start = first / page * page;
    uint64_t at = start % c->setup->arena_bytes;
    return end == first ||
           read_at(c, lane->arena + at, lane->payload + at, (end + page - 1) / page * page - start);
}

static bool fetch_runs(gbx_collector *c, const gbx_plan *plan) {
    uint64_t arena_bytes = c->setup->arena_bytes;
    uint64_t first = 0;
    uint64_t end = 0;
    bool is_fetched = true;
    for (uint32_t i = 0; i < plan->run_count; ++i) {
        const gbx_plan_run *run = &plan->runs[i];
        if (end && run->first - end <= FETCHED_GAP_BYTES &&
            run->first / arena_bytes == first / arena_bytes) {
            end = run->end;
            continue;
        }
        is_fetched &= fetch_pages(c, plan->lane, first, end);
        first = run->first;
        end = run->end;
    }
    return is_fetched && fetch_pages(c, plan->lane, first, end);
}

static void fetch_payload(gbx_collector *c, gbx_plan *plan) {
    if (fetch_runs(c, plan))
        return;
    break_lane(plan->lane);
    plan->run_count = 0;
    plan->lane->pieces.is_open = false;
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        gbx_plan_entry *entry = &plan->entries[i];
        if (entry->fate != GBX_FATE_STORE && entry->fate != GBX_FATE_REPEATED &&
            entry->fate != GBX_FATE_PIECED)
            continue;
        /* Payload found equal to it has no bytes either. */
        gbx_collector_note_failure(c, entry->bin_offset, entry->bin_offset + entry->bytes);
        entry->fate = GBX_FATE_LOST;
    }
}

void gbx_collector_copy(gbx_collector *c) {
    uint64_t asked = read_word(c, c->address + offsetof(gbx_dump_setup, asked));
    for (uint32_t i = 0; i < c->setup->lane_count; ++i)
        while (c->plan_count < c->plan_capacity && take_ready(c, &c->lanes[i]))
            continue;
    for (uint32_t i = 0; i < c->plan_count; ++i) {
        fetch_payload(c, &c->plans[i]);
        give_back(c, &c->plans[i]);
    }
    for (uint32_t i = 0; i < c->setup->lane_count; ++i)
        restore_lane(c, &c->lanes[i]);
    write_word(c, c->address + offsetof(gbx_dump_setup, done), asked);
    /* The device continues while this goes to disk. */
    for (uint32_t i = 0; i < c->plan_count; ++i)
        gbx_plan_settle(c, &c->plans[i]);
    c->plan_count = 0;
}

/* --- the end --- */

/* Records that a lane counted and that are not known to the journal: `of_arguments` are arguments.
 */
static void lose_rest(gbx_collector *c, const gbx_lane_source *lane, uint32_t cause, uint64_t count,
                      uint64_t of_arguments) {
    gbx_collector_loss loss = {.cause = cause, .count = count, .argument_count = of_arguments};
    if (count > 0 || of_arguments > 0)
        gbx_collector_lose(c, &gbx_no_record, lane->index, &loss);
}

/* How many records are lost is unknown; at least one may be. */
static void lose_unknown(gbx_collector *c, const gbx_lane_source *lane, uint32_t cause) {
    gbx_collector_loss loss = {.cause = cause, .count = 1, .is_least = true};
    gbx_collector_lose(c, &gbx_no_record, lane->index, &loss);
    c->totals.sums.state = GBX_SUMS_UNKNOWN;
}

static uint64_t more_than(uint64_t counted, uint64_t known) {
    return counted > known ? counted - known : 0;
}

/* Losses that a lane counted but had no room to record, and records it handed over that did not
 * arrive. */
static void lose_unrecorded(gbx_collector *c, const gbx_lane_source *lane,
                            const gbx_dump_counts *counts) {
    for (uint32_t cause = 0; cause < GBX_DUMP_CAUSES; ++cause)
        lose_rest(c, lane, cause, more_than(counts->lost[cause], lane->recorded_losses[cause]),
                  more_than(counts->lost_arguments[cause], lane->recorded_argument_losses[cause]));
    lose_rest(c, lane, GBX_LOSS_CORRUPT, more_than(counts->committed, lane->taken),
              more_than(counts->committed_arguments, lane->taken_arguments));
}

static void add_counts(gbx_collector *c, const gbx_dump_counts *counts) {
    gbx_dump_totals *totals = &c->totals.dump;
    totals->stall_ns += counts->stall_ns;
    if (counts->longest_capture_ns > totals->longest_capture_ns)
        totals->longest_capture_ns = counts->longest_capture_ns;
    for (uint32_t i = 0; i < GBX_MAX_DUMP_FILTERS; ++i)
        c->totals.filter_hits[i] += counts->filter_hits[i];
    c->totals.sums.announced += counts->committed_arguments;
    for (uint32_t cause = 0; cause < GBX_DUMP_CAUSES; ++cause)
        c->totals.sums.announced += counts->lost_arguments[cause];
}

static bool is_untouched(const gbx_dump_lane *end) {
    static const gbx_dump_counts none;
    return end->counts_check == 0 && !memcmp(&end->counts, &none, sizeof none);
}

static void take_counts(gbx_collector *c, const gbx_lane_source *lane) {
    gbx_dump_lane end;
    if (!read_at(c, lane->address, &end, sizeof end)) {
        lose_unknown(c, lane, GBX_LOSS_DEVICE);
        return;
    }
    bool is_used = lane->last_turn > 0 || lane->open_turn > 0;
    /* The device writes them with the first buffer that it hands over. */
    bool are_unwritten = lane->last_turn == 0 && is_untouched(&end);
    bool are_right =
        are_unwritten || end.counts_check == gbx_dump_check(0, &end.counts, sizeof end.counts);
    if (are_right) {
        lose_unrecorded(c, lane, &end.counts);
        add_counts(c, &end.counts);
    } else {
        lose_unknown(c, lane, GBX_LOSS_CORRUPT);
    }
    if (are_right && end.counts.has_ended == 1)
        return;
    c->totals.has_ended = false;
    c->totals.sums.state = GBX_SUMS_UNKNOWN;
    /* A thread that never reported its end: how much it had not handed over is unknown. */
    if (is_used)
        lose_unknown(c, lane, GBX_LOSS_DEVICE);
}

static uint64_t count_kept(const gbx_dump_totals *totals) {
    return totals->records + totals->in_flight + totals->dispatches;
}

/* After a failure of the journal: what its last blocks would have held is lost. The totals become
 * those of what is in the file, and a last block says how much is not. */
static void lose_unwritten(gbx_collector *c) {
    gbx_collector_totals all = c->totals;
    gbx_dump_totals *kept = &c->totals.dump;
    *kept = c->written.dump;
    c->totals.tasks = c->written.tasks;
    kept->skipped = all.dump.skipped;
    kept->stall_ns = all.dump.stall_ns;
    kept->longest_capture_ns = all.dump.longest_capture_ns;
    uint64_t lost =
        count_kept(&all.dump) + c->refused - count_kept(kept) + all.dump.dropped - kept->dropped;
    c->totals.skipped_arguments = c->written.skipped_arguments;
    c->totals.sums.lost_arguments = c->written.sums.lost_arguments;
    uint64_t known_arguments = kept->records + kept->in_flight + c->totals.skipped_arguments +
                               c->totals.sums.lost_arguments;
    gbx_store_begin_last(c->store);
    gbx_collector_loss loss = {.cause = GBX_LOSS_DISK,
                               .count = lost,
                               .argument_count =
                                   more_than(c->totals.sums.announced, known_arguments),
                               .is_least = c->totals.sums.state != GBX_SUMS_EXACT};
    if (lost > 0 || loss.argument_count > 0)
        gbx_collector_lose(c, &gbx_no_record, 0, &loss);
}

void gbx_collector_finish(gbx_collector *c) {
    c->totals.has_ended = c->is_finishing = true;
    c->totals.sums.state = GBX_SUMS_EXACT;
    if (c->is_mapped)
        while (gbx_collector_drain(c, false))
            continue;
    else
        gbx_collector_copy(c);
    for (uint32_t i = 0; i < c->setup->lane_count; ++i) {
        /* The buffer that the device was filling when it ended. */
        if (take_open(c, &c->lanes[i])) {
            if (!c->is_mapped)
                fetch_payload(c, &c->plans[0]);
            gbx_plan_settle(c, &c->plans[0]);
            c->plan_count = 0;
        }
        take_counts(c, &c->lanes[i]);
    }
    gbx_status status = gbx_store_flush(c->store);
    if (status)
        lose_unwritten(c);
    gbx_status_free(status); /* gbx_store_finish reports it */
}
