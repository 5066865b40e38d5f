#include "guard/device/zones.h"

#include <sched.h>

#include "guard/device/pattern.h"
#include "tensor/view.h"

enum { GRANULE = GBX_PROBE_GRANULE, SEEN_ZONES = 16 };

/* How much of new memory is poisoned between two signs of life. */
#define POISON_STEP (UINT64_C(16) << 20)

static uint64_t table_bytes(uint64_t granules, uint64_t element_bytes) {
    return (granules * element_bytes + 4095) & ~UINT64_C(4095);
}

uint64_t gbx_zones_bytes(uint64_t gm_bytes) {
    uint64_t granules = gm_bytes / GRANULE + 1;
    return table_bytes(granules, sizeof(gbx_zone)) + table_bytes(granules, sizeof(uint32_t)) +
           table_bytes(2 * (uint64_t)GBX_GUARD_MAX_BUFFERS, sizeof(uint32_t));
}

void gbx_zones_init(gbx_zones *zones, void *memory, const gbx_probe_request *request,
                    gbx_history *history, const gbx_finding_sink *sink) {
    uint64_t granules = request->gm_bytes / GRANULE + 1;
    char *at = memory;
    zones->gm_base = request->gm_base;
    zones->granule_count = granules;
    zones->zones = (gbx_zone *)at;
    at += table_bytes(granules, sizeof(gbx_zone));
    zones->owners = (_Atomic uint32_t *)at;
    at += table_bytes(granules, sizeof(uint32_t));
    zones->fixed = (uint32_t *)at;
    zones->history = history;
    zones->sink = sink;
    zones->request = request;
}

static uint64_t granule_of(const gbx_zones *zones, uint64_t address) {
    return (address - zones->gm_base) / GRANULE;
}

static uint32_t owner_of(const gbx_zones *zones, uint64_t granule) {
    return atomic_load_explicit(&zones->owners[granule], memory_order_relaxed);
}

/* The zone of the buffer that owns an address, as data or as zone; NULL where none does. */
static gbx_zone *zone_at(const gbx_zones *zones, uint64_t address) {
    if (address < zones->gm_base || granule_of(zones, address) >= zones->granule_count)
        return NULL;
    uint32_t owner = owner_of(zones, granule_of(zones, address));
    return owner ? &zones->zones[owner - 1] : NULL;
}

static uint64_t address_of(const gbx_zone *zone) {
    return atomic_load_explicit(&zone->address, memory_order_relaxed);
}

static void count_work(gbx_zones *zones) {
    atomic_fetch_add_explicit(&zones->work, 1, memory_order_relaxed);
}

static void poison(gbx_zones *zones, uint64_t first, uint64_t end, uint32_t number) {
    for (; end - first > POISON_STEP; first += POISON_STEP) {
        gbx_poison_write(first, first + POISON_STEP, number);
        count_work(zones);
        zones->request->show_life(zones->request->machine);
    }
    gbx_poison_write(first, end, number);
}

/* --- claims: only where a zone is broken, or memory changes hands --- */

static void claim(gbx_zone *zone) {
    while (atomic_exchange_explicit(&zone->is_claimed, 1, memory_order_acquire))
        sched_yield();
}

static void release(gbx_zone *zone) {
    atomic_store_explicit(&zone->is_claimed, 0, memory_order_release);
}

/* --- buffers --- */

/* With the claim: others see all of the old zone, or all of the new one. */
static void set_zone(gbx_zones *zones, const gbx_probe_buffer *buffer) {
    uint64_t granule = granule_of(zones, buffer->address);
    gbx_zone *zone = &zones->zones[granule];
    uint64_t first = buffer->address + buffer->bytes;
    /* Before the pattern: who writes over it ends later. */
    uint64_t moment = gbx_history_moment(zones->history);
    gbx_pattern_write(first, buffer->zone_end);
    claim(zone);
    zone->place = buffer->place;
    zone->index = buffer->index;
    zone->owner_func = buffer->owner_func;
    zone->owner_task = buffer->owner_task;
    atomic_store_explicit(&zone->address, buffer->address, memory_order_relaxed);
    zone->bytes = buffer->bytes;
    atomic_store_explicit(&zone->clean, moment, memory_order_relaxed);
    atomic_store_explicit(&zone->first, first, memory_order_relaxed);
    /* Pairs with the acquire in check_zone: the pattern is written. */
    atomic_store_explicit(&zone->end, buffer->zone_end, memory_order_release);
    release(zone);
    uint64_t end = granule_of(zones, buffer->zone_end);
    for (uint64_t g = granule; g < end; ++g)
        atomic_store_explicit(&zones->owners[g], (uint32_t)granule + 1, memory_order_relaxed);
}

static bool is_sound(const gbx_zones *zones, const gbx_guard_buffer *buffer, uint64_t after) {
    uint64_t gm_end = zones->gm_base + (zones->granule_count - 1) * GRANULE;
    return buffer->address >= after && buffer->address % GRANULE == 0 &&
           buffer->zone_end % GRANULE == 0 && buffer->zone_end <= gm_end &&
           buffer->address < buffer->zone_end &&
           buffer->bytes <= buffer->zone_end - buffer->address &&
           buffer->kept_first <= buffer->kept_end && buffer->kept_end <= buffer->bytes;
}

/* A zone of its own before a buffer that has none there. */
static void add_lead(gbx_zones *zones, uint64_t address) {
    gbx_probe_buffer lead = {.address = address - GBX_GUARD_ZONE_BYTES,
                             .zone_end = address,
                             .place = GBX_PLACE_OWN,
                             .owner_task = GBX_NO_TASK,
                             .owner_func = GBX_NO_KERNEL};
    set_zone(zones, &lead);
    zones->fixed[zones->fixed_count++] = (uint32_t)granule_of(zones, lead.address);
}

bool gbx_zones_add_fixed(gbx_zones *zones, const gbx_guard_buffer *buffers, uint32_t count) {
    uint64_t after = zones->gm_base;
    for (uint32_t i = 0; i < count; ++i) {
        gbx_guard_buffer from = buffers[i];
        if (!is_sound(zones, &from, after))
            return false;
        if (from.address - after >= GBX_GUARD_ZONE_BYTES)
            add_lead(zones, from.address);
        /* Of a region, in which the chip puts buffers, only the zone behind it counts. */
        uint64_t region = from.is_region ? from.zone_end - GBX_GUARD_ZONE_BYTES - from.address : 0;
        gbx_probe_buffer buffer = {.address = from.address + region,
                                   .bytes = from.is_region ? 0 : from.bytes,
                                   .zone_end = from.zone_end,
                                   .place = from.place,
                                   .index = from.index,
                                   .owner_task = GBX_NO_TASK,
                                   .owner_func = GBX_NO_KERNEL};
        set_zone(zones, &buffer);
        zones->fixed[zones->fixed_count++] = (uint32_t)granule_of(zones, buffer.address);
        if (!from.is_region && from.place != GBX_PLACE_OWN) {
            poison(zones, from.address, from.address + from.kept_first, from.number);
            poison(zones, from.address + from.kept_end, from.address + from.bytes, from.number);
        }
        after = from.zone_end;
    }
    return true;
}

/*
 * The memory of a buffer is used again. A zone of it that stays where it is still guards its
 * neighbour; a zone that lies inside the new buffer ends.
 */
static void give_up(gbx_zone *zone, uint64_t first, uint64_t end) {
    claim(zone);
    uint64_t zone_end = atomic_load_explicit(&zone->end, memory_order_relaxed);
    uint64_t start = zone_end - GBX_GUARD_ZONE_BYTES;
    bool is_inside = zone_end == 0 || (start < end && zone_end > first);
    atomic_store_explicit(&zone->first, is_inside ? zone_end : start, memory_order_relaxed);
    if (!is_inside) {
        atomic_store_explicit(&zone->address, start, memory_order_relaxed);
        zone->bytes = 0;
        zone->place = GBX_PLACE_OWN;
    }
    release(zone);
}

static void give_up_all(gbx_zones *zones, uint64_t first, uint64_t end) {
    uint32_t last = 0;
    for (uint64_t g = granule_of(zones, first); g < granule_of(zones, end); ++g) {
        uint32_t owner = owner_of(zones, g);
        if (owner == 0 || owner == last)
            continue;
        last = owner;
        give_up(&zones->zones[owner - 1], first, end);
    }
}

void gbx_zones_add(gbx_zones *zones, const gbx_probe_buffer *buffer) {
    if (!buffer->zone_end) {
        poison(zones, buffer->address, buffer->address + buffer->bytes, buffer->number);
        return;
    }
    give_up_all(zones, buffer->address, buffer->zone_end);
    gbx_zone_range *range = &zones->ranges[buffer->place == GBX_PLACE_OUTPUT];
    uint64_t first = granule_of(zones, buffer->address);
    uint64_t end = granule_of(zones, buffer->zone_end);
    if (range->end == 0 || first < range->first)
        range->first = first;
    if (end > range->end)
        range->end = end;
    set_zone(zones, buffer);
    poison(zones, buffer->address, buffer->address + buffer->bytes, buffer->number);
}

/* --- who did it --- */

/* A buffer as it was at one moment. */
typedef struct victim {
    uint32_t place;
    uint32_t index;
    uint32_t owner_func;
    uint64_t owner_task;
    uint64_t address;
    uint64_t bytes;
} victim;

/* With the claim. */
static victim victim_of(const gbx_zone *zone) {
    return (victim){.place = zone->place,
                    .index = zone->index,
                    .owner_func = zone->owner_func,
                    .owner_task = zone->owner_task,
                    .address = address_of(zone),
                    .bytes = zone->bytes};
}

/* The argument of a task that ends, or starts, where the damage is; those that the task writes come
 * first. */
typedef struct neighbour {
    const victim *buffer;
    bool is_behind;    /* the damage lies behind the buffer */
    uint32_t touching; /* an argument in it; GBX_FINDING_NO_ARGUMENT: none */
    uint32_t adjacent; /* one that reaches the damaged edge */
    bool is_written;   /* the task writes it */
} neighbour;

static void look_at_argument(void *context, uint32_t index, uint32_t role,
                             const gbx_tensor *tensor) {
    neighbour *n = context;
    int64_t first, end;
    uint64_t low = n->buffer->address, high = low + n->buffer->bytes;
    if (!gbx_tensor_is_valid(tensor, &first, &end) || first == end)
        return;
    uint64_t from = tensor->data + (uint64_t)first, to = tensor->data + (uint64_t)end;
    if (from < low || to > high)
        return;
    if (n->touching == GBX_FINDING_NO_ARGUMENT)
        n->touching = index;
    bool is_adjacent = n->is_behind ? to == high : from == low;
    bool is_written = role != GBX_ROLE_INPUT;
    if (is_adjacent && (n->adjacent == GBX_FINDING_NO_ARGUMENT || (is_written && !n->is_written))) {
        n->adjacent = index;
        n->is_written = is_written;
    }
}

/* Called with the tensors of a task, one by one. */
typedef void (*visit_function)(void *context, uint32_t index, uint32_t role,
                               const gbx_tensor *tensor);

static bool is_in_gm(const gbx_zones *zones, uint64_t address) {
    return address % _Alignof(gbx_tensor) == 0 && address >= zones->gm_base &&
           granule_of(zones, address + sizeof(gbx_tensor)) < zones->granule_count;
}

static void visit_tensors(const gbx_zones *zones, const gbx_sched_task *task, visit_function visit,
                          void *context) {
    const gbx_task_arguments *arguments = task->arguments;
    const gbx_tensor *tensor =
        (const gbx_tensor *)((uintptr_t)arguments +
                             gbx_task_arguments_tensors_offset(task->word_count));
    for (uint32_t i = 0; i < task->word_count; ++i) {
        if (!arguments->is_described) {
            /* Any word may be a tensor: one that is not names no buffer. */
            if (is_in_gm(zones, task->words[i]))
                visit(context, i, GBX_ROLE_INOUT, (const gbx_tensor *)(uintptr_t)task->words[i]);
        } else if (arguments->kinds[i] & GBX_WORD_TENSOR) {
            visit(context, i, arguments->kinds[i] & GBX_WORD_ROLE, tensor++);
        }
    }
}

static neighbour neighbour_of(const gbx_zones *zones, const gbx_sched_task *task,
                              const victim *buffer, bool is_behind) {
    neighbour n = {.buffer = buffer,
                   .is_behind = is_behind,
                   .touching = GBX_FINDING_NO_ARGUMENT,
                   .adjacent = GBX_FINDING_NO_ARGUMENT};
    visit_tensors(zones, task, look_at_argument, &n);
    return n;
}

/* Puts a task first among the candidates. */
static void put_first(gbx_run_finding *finding, uint64_t task, uint32_t func_id, uint32_t arg) {
    uint32_t count = finding->candidate_count;
    if (count == GBX_FINDING_CANDIDATES)
        --count;
    for (uint32_t i = count; i > 0; --i)
        finding->candidates[i] = finding->candidates[i - 1];
    finding->candidates[0] = (gbx_run_finding_task){task, func_id, arg};
    finding->candidate_count = count + 1;
}

static uint32_t first_kernel(const gbx_sched_task *task) {
    return task->func_ids[task->first_subtask];
}

/*
 * The finder and the tasks that run now are looked at: of all others, none that has an argument in
 * the buffer has completed since the zone was whole, because it checks the zone before. Puts them
 * first among the candidates, and returns how many have an argument at the damaged edge.
 */
static uint32_t add_neighbours(gbx_zones *zones, const gbx_sched_task *finder, const victim *buffer,
                               bool is_behind, gbx_run_finding *finding) {
    uint32_t adjacent = 0;
    if (finder) {
        neighbour n = neighbour_of(zones, finder, buffer, is_behind);
        adjacent += n.adjacent != GBX_FINDING_NO_ARGUMENT;
        put_first(finding, finder->id, first_kernel(finder), adjacent ? n.adjacent : n.touching);
    }
    for (uint32_t i = 0; i < GBX_SCHED_MAX_CORES; ++i) {
        uint64_t id;
        uint32_t func_id;
        const gbx_sched_task *task = gbx_history_running(zones->history, i, &id, &func_id);
        if (!task || (finder && id == finder->id))
            continue;
        neighbour n = neighbour_of(zones, task, buffer, is_behind);
        if (n.adjacent == GBX_FINDING_NO_ARGUMENT)
            continue;
        bool is_known = false;
        for (uint32_t c = 0; c < finding->candidate_count; ++c)
            is_known |= finding->candidates[c].task == id;
        if (is_known)
            continue; /* another block of it */
        ++adjacent;
        put_first(finding, id, func_id, n.adjacent);
    }
    return adjacent;
}

/* --- checking --- */

/* An element whose first bytes are those of the pattern by chance still counts as next to it. */
enum { NEAR_BYTES = 8 };

/* Damage in one zone, or in several that one write has passed over. */
typedef struct breach {
    victim left;    /* the buffer before the first zone */
    uint64_t first; /* of the first zone */
    uint64_t end;   /* of the last */
    uint64_t moment;
    gbx_pattern_damage damage;
} breach;

static bool reaches_start(const breach *b) {
    return b->damage.first - b->first < NEAR_BYTES;
}

static bool reaches_end(const breach *b) {
    return b->end - b->damage.end < NEAR_BYTES;
}

static gbx_run_finding describe(const breach *b, const victim *buffer, bool is_behind,
                                const gbx_sched_task *finder) {
    bool is_near = is_behind ? reaches_start(b) : reaches_end(b);
    return (gbx_run_finding){.kind = !is_near    ? GBX_RUN_FINDING_STRAY
                                     : is_behind ? GBX_RUN_FINDING_OVERRUN
                                                 : GBX_RUN_FINDING_UNDERRUN,
                             .place = buffer->place,
                             .finder = finder ? finder->id : GBX_NO_TASK,
                             .address = buffer->address,
                             .bytes = buffer->bytes,
                             .first = (int64_t)(b->damage.first - buffer->address),
                             .span = b->damage.end - b->damage.first,
                             .changed = b->damage.bytes,
                             .index = buffer->index,
                             .owner_func = buffer->owner_func,
                             .owner_task = buffer->owner_task};
}

/* The buffer that begins at an address; false where none does. */
static bool find_buffer(gbx_zones *zones, uint64_t address, victim *out) {
    gbx_zone *zone = zone_at(zones, address);
    if (!zone)
        return false;
    claim(zone);
    *out = victim_of(zone);
    release(zone);
    return out->address == address;
}

/* Damage from edge to edge may come from both sides: then tasks next to either may have done it. */
static void report(gbx_zones *zones, const breach *b, const gbx_sched_task *finder) {
    victim next;
    bool has_left = b->left.place != GBX_PLACE_OWN || b->left.bytes > 0;
    bool has_right = find_buffer(zones, b->end, &next);
    uint64_t before = b->damage.first - b->first, behind = b->end - b->damage.end;
    bool is_behind =
        has_left && (reaches_start(b) || !has_right || (!reaches_end(b) && before <= behind));
    if (!has_left && !has_right)
        is_behind = true;
    const victim *buffer = is_behind ? &b->left : &next;
    gbx_run_finding finding = describe(b, buffer, is_behind, finder);
    uint32_t adjacent = add_neighbours(zones, finder, buffer, is_behind, &finding);
    if (is_behind && reaches_start(b) && reaches_end(b) && has_right) {
        gbx_run_finding other = describe(b, &next, false, finder);
        uint32_t others = add_neighbours(zones, finder, &next, false, &other);
        if (adjacent == 0 && others > 0)
            finding = other;
        adjacent += others;
    }
    if (adjacent == 1 && finding.kind != GBX_RUN_FINDING_STRAY &&
        finding.candidates[0].arg_index != GBX_FINDING_NO_ARGUMENT)
        finding.certainty = GBX_CERTAINTY_LIKELY;
    zones->sink->report(zones->sink->context, &finding, b->moment);
}

/* Looks again with the claim: another thread may have repaired it, or its memory may be in other
 * hands. False where the zone is whole. */
static bool repair(gbx_zones *zones, gbx_zone *zone, breach *out) {
    claim(zone);
    uint64_t now = gbx_history_moment(zones->history);
    out->moment = atomic_load_explicit(&zone->clean, memory_order_relaxed);
    out->first = atomic_load_explicit(&zone->first, memory_order_relaxed);
    out->end = atomic_load_explicit(&zone->end, memory_order_relaxed);
    bool is_broken = gbx_pattern_find_damage(out->first, out->end, &out->damage);
    if (is_broken) {
        gbx_pattern_write(out->first, out->end);
        atomic_store_explicit(&zone->clean, now, memory_order_relaxed);
        out->left = victim_of(zone);
    }
    release(zone);
    return is_broken;
}

/* `b` goes on in the zone behind the next buffer. */
static void join(breach *b, const breach *more) {
    b->end = more->end;
    b->damage.end = more->damage.end;
    b->damage.bytes += more->damage.bytes;
    if (more->moment < b->moment)
        b->moment = more->moment;
}

/* A long write passes over whole zones: they are one breach, so that only tasks next to its ends
 * are suspected, and not those whose buffers it has passed over. */
static void repair_and_report(gbx_zones *zones, gbx_zone *zone, const gbx_sched_task *finder) {
    breach all, more;
    if (!repair(zones, zone, &all))
        return;
    while (reaches_start(&all)) {
        zone = zone_at(zones, all.left.address - 1);
        if (!zone || !repair(zones, zone, &more))
            break;
        if (!reaches_end(&more) || more.end != all.left.address) {
            report(zones, &more, finder);
            break;
        }
        join(&more, &all);
        all = more;
    }
    while (reaches_end(&all)) {
        zone = zone_at(zones, all.end);
        if (!zone || address_of(zone) != all.end || !repair(zones, zone, &more))
            break;
        if (!reaches_start(&more) || more.left.address != all.end) {
            report(zones, &more, finder);
            break;
        }
        join(&all, &more);
    }
    report(zones, &all, finder);
}

/* Who did it must not complete, with a zone that is whole again, before it has been looked at. */
static __attribute__((noinline, cold)) void repair_all(gbx_zones *zones, gbx_zone *zone,
                                                       const gbx_sched_task *finder) {
    gbx_history_hold(zones->history);
    repair_and_report(zones, zone, finder);
    gbx_history_let_go(zones->history);
}

static void check_zone(gbx_zones *zones, gbx_zone *zone, const gbx_sched_task *finder) {
    uint64_t moment = gbx_history_moment(zones->history);
    uint64_t end = atomic_load_explicit(&zone->end, memory_order_acquire);
    uint64_t first = atomic_load_explicit(&zone->first, memory_order_relaxed);
    if (first >= end)
        return;
    if (gbx_pattern_is_whole(first, end))
        atomic_store_explicit(&zone->clean, moment, memory_order_relaxed);
    else
        repair_all(zones, zone, finder);
}

/* The zones of a task, each once; more than fit are checked at once. */
typedef struct check {
    gbx_zones *zones;
    const gbx_sched_task *task;
    gbx_zone *seen[SEEN_ZONES];
    uint32_t seen_count;
} check;

static void add_zone(check *c, gbx_zone *zone) {
    for (uint32_t i = 0; i < c->seen_count; ++i)
        if (c->seen[i] == zone)
            return;
    if (c->seen_count == SEEN_ZONES) {
        check_zone(c->zones, zone, c->task);
        return;
    }
    c->seen[c->seen_count++] = zone;
    /* Another core wrote them: fetches all zones at the same time. */
    uint64_t first = atomic_load_explicit(&zone->first, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&zone->end, memory_order_relaxed);
    for (uint64_t line = first; line < end; line += GBX_PATTERN_LINE)
        __builtin_prefetch((const void *)(uintptr_t)line);
}

static void add_tensor(void *context, uint32_t index, uint32_t role, const gbx_tensor *tensor) {
    (void)index, (void)role;
    check *c = context;
    gbx_zone *zone = zone_at(c->zones, tensor->data);
    if (!zone)
        return;
    add_zone(c, zone);
    gbx_zone *before = zone_at(c->zones, address_of(zone) - 1);
    if (before)
        add_zone(c, before);
}

/* Its own zone, and the one before it where it begins a buffer. */
static void fetch_zones(void *context, uint32_t index, uint32_t role, const gbx_tensor *tensor) {
    (void)index, (void)role;
    const gbx_zones *zones = context;
    __builtin_prefetch(zone_at(zones, tensor->data));
    __builtin_prefetch(zone_at(zones, tensor->data - 1));
}

void gbx_zones_fetch_task(const gbx_zones *zones, const gbx_sched_task *task) {
    visit_tensors(zones, task, fetch_zones, (void *)(uintptr_t)zones);
}

void gbx_zones_check_task(gbx_zones *zones, const gbx_sched_task *task) {
    check c = {.zones = zones, .task = task};
    visit_tensors(zones, task, add_tensor, &c);
    for (uint32_t i = 0; i < c.seen_count; ++i)
        check_zone(zones, c.seen[i], task);
}

void gbx_zones_check_all(gbx_zones *zones) {
    for (uint32_t i = 0; i < zones->fixed_count; ++i) {
        check_zone(zones, &zones->zones[zones->fixed[i]], NULL);
        count_work(zones);
    }
    for (uint32_t r = 0; r < 2; ++r) {
        uint32_t last = 0;
        for (uint64_t g = zones->ranges[r].first; g < zones->ranges[r].end; ++g) {
            uint32_t owner = owner_of(zones, g);
            if (owner == 0 || owner == last)
                continue;
            last = owner;
            check_zone(zones, &zones->zones[owner - 1], NULL);
            count_work(zones);
        }
    }
}
