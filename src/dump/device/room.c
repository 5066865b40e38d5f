#include "base/clock.h"
#include "dump/device/writer.h"

#define NAP_NS 50000

static void nap(gbx_lane *lane) {
    struct timespec duration = {.tv_nsec = NAP_NS};
    gbx_lane_show_life(lane);
    nanosleep(&duration, NULL);
}

/* Notes a wait that ended. All waits of a hook make one sample. */
static void note_wait(gbx_lane *lane, uint32_t cause, int64_t start_ns, uint64_t used) {
    int64_t duration_ns = gbx_clock_ns() - start_ns;
    if (lane->waits.wait_count++ == 0) {
        lane->waits.head.time_ns = (uint64_t)(start_ns - lane->writer->start_ns);
        lane->waits.used = used;
    }
    lane->waits.causes |= cause;
    if (duration_ns > 0) {
        lane->waits.waited_ns += (uint64_t)duration_ns;
        lane->counts.stall_ns += (uint64_t)duration_ns;
    }
    gbx_lane_note_duration(lane, duration_ns);
}

/* --- by batch: the host copies while no lane writes --- */

static bool is_by_batch(const gbx_lane *lane) {
    return lane->writer->setup.flags & GBX_DUMP_BY_BATCH;
}

static bool is_pausing(gbx_writer *writer) {
    return atomic_load_explicit(&writer->is_pausing, memory_order_seq_cst);
}

/* A lane first sets `inside`, then checks whether another lane wants all to stay out. That lane
 * first sets is_pausing, then checks who is inside. So at least one of them sees the other. */
static bool try_go_inside(gbx_lane *lane) {
    atomic_store_explicit(&lane->inside, GBX_LANE_INSIDE, memory_order_seq_cst);
    if (!is_pausing(lane->writer))
        return true;
    atomic_store_explicit(&lane->inside, GBX_LANE_PARKED, memory_order_seq_cst);
    while (is_pausing(lane->writer))
        nap(lane);
    return false;
}

void gbx_lane_go_inside(gbx_lane *lane) {
    if (!is_by_batch(lane))
        return;
    int64_t start_ns = is_pausing(lane->writer) ? gbx_clock_ns() : 0;
    while (!try_go_inside(lane))
        continue;
    if (start_ns)
        note_wait(lane, GBX_WAITED_COPY, start_ns, gbx_lane_arena_used(lane));
}

static bool is_another_inside(const gbx_lane *lane) {
    gbx_writer *writer = lane->writer;
    for (uint32_t i = 0; i < writer->setup.lane_count; ++i)
        if (&writer->lanes[i] != lane &&
            atomic_load_explicit(&writer->lanes[i].inside, memory_order_seq_cst) == GBX_LANE_INSIDE)
            return true;
    return false;
}

static bool is_past(int64_t deadline_ns) {
    return gbx_clock_ns() >= deadline_ns;
}

/* Stops the other lanes at the door, asks the host, and waits until it has copied; or waits while
 * another lane does. */
static void pause_for_host(gbx_lane *lane, int64_t deadline_ns) {
    gbx_writer *writer = lane->writer;
    uint32_t no_pause = 0;
    if (!atomic_compare_exchange_strong_explicit(&writer->is_pausing, &no_pause, 1,
                                                 memory_order_seq_cst, memory_order_seq_cst)) {
        while (!try_go_inside(lane))
            continue;
        return;
    }
    while (is_another_inside(lane) && !is_past(deadline_ns))
        nap(lane);
    /* Release: everything published before is visible to the host that sees the count. */
    uint64_t asked = atomic_fetch_add_explicit(&writer->shared->asked, 1, memory_order_release) + 1;
    writer->request.ring(writer->request.machine);
    /* Acquire pairs with the host's write: what it gave back can be used. */
    while (atomic_load_explicit(&writer->shared->done, memory_order_acquire) < asked &&
           !is_past(deadline_ns))
        nap(lane);
    atomic_store_explicit(&writer->is_pausing, 0, memory_order_seq_cst);
}

/* --- all platforms --- */

/* Grows with what the host gives back. */
static uint64_t given_back(gbx_lane *lane, gbx_lane_room room) {
    return room == GBX_ROOM_LINES
               ? atomic_load_explicit(&lane->shared->free.tail, memory_order_relaxed)
               : atomic_load_explicit(&lane->shared->arena_head, memory_order_relaxed);
}

bool gbx_lane_await(gbx_lane *lane, gbx_lane_room room, uint64_t end) {
    if (gbx_lane_has_room(lane, room, end))
        return true;
    if (lane->is_dropping[room] && given_back(lane, room) == lane->dropped_at[room])
        return false;
    /* The host may be waiting only for what this lane holds. */
    gbx_lane_publish(lane);
    uint64_t used = gbx_lane_arena_used(lane);
    int64_t start_ns = gbx_clock_ns();
    int64_t now_ns = start_ns;
    int64_t deadline_ns = start_ns + (int64_t)lane->writer->setup.stall_timeout_ns;
    bool is_there;
    while (!(is_there = gbx_lane_has_room(lane, room, end)) && now_ns < deadline_ns) {
        gbx_lane_restore(lane);
        if (is_by_batch(lane))
            pause_for_host(lane, deadline_ns);
        else
            nap(lane);
        now_ns = gbx_clock_ns();
    }
    note_wait(lane, room == GBX_ROOM_LINES ? GBX_WAITED_LINES : GBX_WAITED_ARENA, start_ns, used);
    lane->is_dropping[room] = !is_there;
    lane->dropped_at[room] = given_back(lane, room);
    return is_there;
}
