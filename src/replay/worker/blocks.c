/*
 * Races inside a task. Its dispatches are called one at a time, forward and backward, and after
 * each of them the outputs are compared with what they were. Independent dispatches write the same
 * bytes, each its own, and leave the same values in both orders. Integers that several dispatches
 * change may be counters, which order them: those are found first (tally.h).
 */
#include <stdlib.h>
#include <string.h>

#include "replay/worker/pattern.h"
#include "replay/worker/tally.h"
#include "replay/worker/worker.h"
#include "tensor/view.h"

enum {
    PIECE_BYTES = 4096,
    MAX_OUTPUT_BYTES = 32 << 20,
    MAX_TALLIES = 1 << 20, /* at a time; more take more passes */
    REPEATS = 3            /* of each order, before a dispatch is accused of reading */
};
#define MAX_WORK_BYTES (UINT64_C(4) << 30)
#define NOBODY UINT32_MAX

/* One pass over all dispatches. */
typedef struct pass {
    unsigned char *left;    /* the payloads of all outputs, one after the other */
    uint32_t *writers;      /* of each byte: the last that changed it */
    uint32_t *first_writer; /* the first, where there are several */
} pass;

typedef struct ordering {
    gbx_examining *e;
    uint64_t bytes;                   /* of the payloads of all outputs */
    uint64_t offsets[GBX_CALL_SLOTS]; /* of each output in them */
    unsigned char *now;
    unsigned char *start;    /* before the first dispatch */
    unsigned char *counters; /* 1 at the first byte of each counter */
    unsigned char *stores;   /* beside a counter, of bytes of floats: how many store it, up to 2 */
    unsigned char *seconds;  /* of each dispatch: 1 if it is `second` of a doubtful tally */
    pass passes[2];          /* forward, backward */
    bool has_counter;
    bool is_core_asked;   /* whether... */
    bool has_core_memory; /* dispatches on one core share memory of that core */
    uint32_t last[2];     /* with a counter: the last to change it, in each pass */
} ordering;

/* --- memory --- */

static bool reserve(ordering *o) {
    o->now = malloc(o->bytes + 1);
    o->start = malloc(o->bytes + 1);
    o->counters = calloc(1, o->bytes + 1);
    o->stores = calloc(1, o->bytes + 1);
    o->seconds = malloc(o->e->order->dispatch_count);
    bool is_there = o->now && o->start && o->counters && o->stores && o->seconds;
    for (int i = 0; i < 2; ++i) {
        o->passes[i].left = malloc(o->bytes + 1);
        o->passes[i].writers = malloc((o->bytes + 1) * sizeof(uint32_t));
        o->passes[i].first_writer = malloc((o->bytes + 1) * sizeof(uint32_t));
        is_there &= o->passes[i].left && o->passes[i].writers && o->passes[i].first_writer;
    }
    return is_there;
}

static void release(ordering *o) {
    free(o->now);
    free(o->start);
    free(o->counters);
    free(o->stores);
    free(o->seconds);
    for (int i = 0; i < 2; ++i) {
        free(o->passes[i].left);
        free(o->passes[i].writers);
        free(o->passes[i].first_writer);
    }
}

static void gather(const ordering *o, unsigned char *out_payloads) {
    for (uint32_t i = 0; i < o->e->order->argument_count; ++i)
        if (gbx_is_output(&o->e->arguments[i]))
            gbx_tensor_gather(&o->e->arguments[i].tensor, gbx_picture_buffer(&o->e->picture, i),
                              out_payloads + o->offsets[i]);
}

/* --- passes --- */

static void note_writes(const ordering *o, const pass *p, uint32_t dispatch) {
    for (uint64_t at = 0; at < o->bytes; at += PIECE_BYTES) {
        uint64_t size = o->bytes - at < PIECE_BYTES ? o->bytes - at : PIECE_BYTES;
        if (memcmp(o->now + at, p->left + at, size) == 0)
            continue;
        for (uint64_t i = at; i < at + size; ++i) {
            if (o->now[i] == p->left[i])
                continue;
            if (p->writers[i] == NOBODY)
                p->first_writer[i] = dispatch;
            p->writers[i] = dispatch;
        }
        memcpy(p->left + at, o->now + at, size);
    }
}

static bool call_one(const ordering *o, uint32_t dispatch) {
    return gbx_worker_call_one(o->e->worker, o->e->order, &o->e->picture, GBX_STEP_ORDERED,
                               dispatch);
}

static uint32_t nth(const ordering *o, uint32_t i, bool is_backward) {
    return is_backward ? o->e->order->dispatch_count - 1 - i : i;
}

/* False if a dispatch waits for others. */
static bool make_pass(const ordering *o, const pass *p, int pattern, bool is_backward) {
    uint32_t count = o->e->order->dispatch_count;
    gbx_examining_prepare(o->e, pattern);
    memset(p->writers, 0xff, (o->bytes + 1) * sizeof *p->writers);
    memset(p->first_writer, 0xff, (o->bytes + 1) * sizeof *p->first_writer);
    gather(o, p->left);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t dispatch = nth(o, i, is_backward);
        if (!call_one(o, dispatch))
            return false;
        gather(o, o->now);
        note_writes(o, p, dispatch);
    }
    return true;
}

/* --- elements --- */

static uint64_t value_of(const ordering *o, uint32_t argument, uint64_t element) {
    gather(o, o->now);
    return gbx_bits_element(&o->e->arguments[argument].tensor, o->now + o->offsets[argument],
                            element);
}

static bool is_integer(uint32_t dtype) {
    return dtype == GBX_INT32 || dtype == GBX_UINT32 || dtype == GBX_INT64 || dtype == GBX_UINT64;
}

/* Two writers of a byte: in one pass, or a different one in each. */
static bool find_writers(const ordering *o, uint64_t byte, uint32_t *out_one, uint32_t *out_other) {
    for (int i = 0; i < 2; ++i) {
        const pass *p = &o->passes[i];
        if (p->first_writer[byte] != p->writers[byte]) {
            *out_one = p->first_writer[byte];
            *out_other = p->writers[byte];
            return true;
        }
    }
    *out_one = o->passes[0].writers[byte];
    *out_other = o->passes[1].writers[byte];
    return *out_one != *out_other && *out_one != NOBODY && *out_other != NOBODY;
}

static bool has_several_writers(const ordering *o, uint64_t at, uint64_t bytes) {
    uint32_t one, other;
    for (uint64_t i = at; i < at + bytes; ++i)
        if (find_writers(o, i, &one, &other))
            return true;
    return false;
}

/* --- counters --- */

static uint64_t value_at(const ordering *o, const gbx_tally *tally) {
    uint64_t value = 0; /* little-endian */
    memcpy(&value, o->now + tally->at, tally->mask == UINT32_MAX ? 4 : 8);
    return value;
}

/* False if a dispatch waits for others; likewise the next two. */
static bool tally_pass(const ordering *o, gbx_tally *tallies, uint64_t count, bool is_backward) {
    gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
    gather(o, o->now);
    for (uint64_t k = 0; k < count; ++k)
        gbx_tally_begin(&tallies[k], is_backward, value_at(o, &tallies[k]));
    for (uint32_t i = 0; i < o->e->order->dispatch_count; ++i) {
        uint32_t dispatch = nth(o, i, is_backward);
        if (!call_one(o, dispatch))
            return false;
        gather(o, o->now);
        for (uint64_t k = 0; k < count; ++k)
            gbx_tally_see(&tallies[k], dispatch, value_at(o, &tallies[k]));
    }
    for (uint64_t k = 0; k < count; ++k)
        gbx_tally_end(&tallies[k]);
    return true;
}

static bool is_doubtful(const gbx_tally *tally) {
    return gbx_tally_is_counter(tally) && gbx_tally_is_doubtful(tally);
}

/* Calls first of all what would then store what is there. Afterwards, tallies of stores are no
 * counters. */
static bool settle_doubts(const ordering *o, gbx_tally *tallies, uint64_t count) {
    memset(o->seconds, 0, o->e->order->dispatch_count);
    for (uint64_t k = 0; k < count; ++k)
        if (is_doubtful(&tallies[k]))
            o->seconds[tallies[k].second] = 1;
    for (uint32_t dispatch = 0; dispatch < o->e->order->dispatch_count; ++dispatch) {
        if (!o->seconds[dispatch])
            continue;
        gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
        if (!call_one(o, dispatch))
            return false;
        gather(o, o->now);
        for (uint64_t k = 0; k < count; ++k)
            if (is_doubtful(&tallies[k]) && tallies[k].second == dispatch &&
                value_at(o, &tallies[k]) == tallies[k].start)
                tallies[k].who = 1;
    }
    return true;
}

static bool judge_tallies(ordering *o, gbx_tally *tallies, uint64_t count) {
    if (count == 0)
        return true;
    if (!tally_pass(o, tallies, count, false) || !tally_pass(o, tallies, count, true) ||
        !settle_doubts(o, tallies, count))
        return false;
    for (uint64_t k = 0; k < count; ++k) {
        if (!gbx_tally_is_counter(&tallies[k]))
            continue;
        o->counters[tallies[k].at] = 1;
        for (int i = 0; i < 2 && !o->has_counter; ++i)
            o->last[i] = tallies[k].last[i];
        o->has_counter = true;
    }
    return true;
}

/* Of all integers that several dispatches change. */
static gbx_order_state find_counters(ordering *o) {
    uint64_t most = o->bytes / 4 + 1 < MAX_TALLIES ? o->bytes / 4 + 1 : MAX_TALLIES;
    gbx_tally *tallies = malloc(most * sizeof *tallies);
    uint64_t count = 0;
    bool returns = true;
    for (uint32_t i = 0; tallies && i < o->e->order->argument_count; ++i) {
        const gbx_tensor *tensor = &o->e->arguments[i].tensor;
        if (!gbx_is_output(&o->e->arguments[i]) || !is_integer(tensor->dtype))
            continue;
        uint32_t bits = gbx_dtype_bits(tensor->dtype);
        uint64_t end = o->offsets[i] + gbx_tensor_payload_bytes(tensor);
        for (uint64_t at = o->offsets[i]; returns && at < end; at += bits / 8) {
            if (has_several_writers(o, at, bits / 8))
                tallies[count++] = gbx_tally_of(at, bits);
            if (count == most) {
                returns = judge_tallies(o, tallies, count);
                count = 0;
            }
        }
    }
    returns = tallies && returns && judge_tallies(o, tallies, count);
    gbx_order_state state = returns   ? GBX_ORDER_ASKED
                            : tallies ? GBX_ORDER_WAITS
                                      : GBX_ORDER_NO_MEMORY;
    free(tallies);
    return state;
}

/* --- findings --- */

/* Elements of one output; each counts once. */
typedef struct sightings {
    uint64_t first; /* element */
    uint64_t last;
    uint64_t count;
    uint32_t parties[2]; /* of the first */
} sightings;

typedef struct output_sightings {
    sightings counters;
    sightings writes;
    sightings reads;
} output_sightings;

static void see(sightings *s, uint64_t element, uint32_t one, uint32_t other) {
    if (s->count > 0 && s->last == element)
        return;
    s->last = element;
    if (s->count++ > 0)
        return;
    s->first = element;
    s->parties[0] = one < other ? one : other;
    s->parties[1] = one < other ? other : one;
}

static void report(const ordering *o, gbx_finding_of kind, uint32_t argument, const sightings *s) {
    if (s->count == 0)
        return;
    const gbx_task_finding finding = {.kind = kind,
                                      .argument = argument,
                                      .element = s->first,
                                      .last = s->last,
                                      .elements = s->count,
                                      .parties = {s->parties[0], s->parties[1]}};
    gbx_examining_add(o->e, &finding);
}

/* One dispatch changes a byte in each order, but not the same. */
static bool is_by_one(const ordering *o, uint64_t byte) {
    uint32_t writers[2];
    for (int i = 0; i < 2; ++i)
        if (o->passes[i].first_writer[byte] != o->passes[i].writers[byte])
            return false;
    return find_writers(o, byte, &writers[0], &writers[1]);
}

/* Whether a counter may decide who writes a byte: it ends the same in both orders, and one dispatch
 * writes it in each, such as the one that got a tile, or the last to arrive writes it at last. */
static bool is_ordered(const ordering *o, uint64_t byte) {
    const pass *forward = &o->passes[0], *backward = &o->passes[1];
    /* What it writes may be there already, by chance. */
    bool is_by_last = (forward->writers[byte] == o->last[0] || forward->writers[byte] == NOBODY) &&
                      (backward->writers[byte] == o->last[1] || backward->writers[byte] == NOBODY);
    return o->has_counter && forward->left[byte] == backward->left[byte] &&
           ((is_by_one(o, byte) && o->stores[byte] < 2) || is_by_last);
}

/* Puts back what a dispatch has stored in a float that others may store, too. */
static void undo_stores(const ordering *o, uint32_t argument) {
    const gbx_tensor *tensor = &o->e->arguments[argument].tensor;
    uint64_t first = o->offsets[argument], end = first + gbx_tensor_payload_bytes(tensor);
    bool is_undone = false;
    for (uint64_t byte = first; byte < end; ++byte) {
        if (o->now[byte] == o->start[byte] || !is_by_one(o, byte))
            continue;
        o->stores[byte] = o->stores[byte] == 0 ? 1 : 2;
        o->now[byte] = o->start[byte];
        is_undone = true;
    }
    if (is_undone)
        gbx_tensor_scatter(tensor, o->now + first, gbx_picture_buffer(&o->e->picture, argument));
}

/*
 * Beside a counter: several that store the same value look like one, because only the first changes
 * it. Forward once more, with such floats put back after each dispatch. Integers may be what
 * dispatches wait for or index with, and stay. A dispatch that then waits ends this.
 */
static void count_stores(const ordering *o) {
    gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
    gather(o, o->start);
    for (uint32_t i = 0; i < o->e->order->dispatch_count && call_one(o, i); ++i) {
        gather(o, o->now);
        for (uint32_t a = 0; a < o->e->order->argument_count; ++a)
            if (gbx_is_output(&o->e->arguments[a]) &&
                gbx_dtype_is_float(o->e->arguments[a].tensor.dtype))
                undo_stores(o, a);
    }
}

/* --- cores --- */

/* Another core for a dispatch, as some other dispatch of its subtask has it; NULL for none. */
static const gbx_call_dispatch *find_other_core(const ordering *o, uint32_t dispatch) {
    const gbx_call_dispatch *all = o->e->worker->call.dispatches;
    for (uint32_t i = 0; i < o->e->order->dispatch_count; ++i)
        if (all[i].subtask == all[dispatch].subtask && all[i].core_id != all[dispatch].core_id)
            return &all[i];
    return NULL;
}

/* Whether a dispatch changes a byte, if it runs on the core of another; NULL: on its own. */
static bool changes(const ordering *o, uint64_t byte, uint32_t dispatch,
                    const gbx_call_dispatch *other) {
    gbx_kernel_call *call = &o->e->worker->call;
    const gbx_call_dispatch *before = call->dispatches;
    size_t bytes = o->e->order->dispatch_count * sizeof *before;
    gbx_call_dispatch *moved = malloc(bytes);
    if (!moved)
        return true;
    memcpy(moved, before, bytes);
    if (other)
        moved[dispatch].core_id = other->core_id;
    gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
    gather(o, o->now);
    unsigned char start = o->now[byte];
    call->dispatches = moved;
    bool returns = call_one(o, dispatch);
    call->dispatches = before;
    free(moved);
    gather(o, o->now);
    return !returns || o->now[byte] != start;
}

/* Whether two dispatches that change a byte share it as they share a core: they run one after the
 * other, and on another core they do not touch it. Asked once: a kernel has such memory or not. */
static bool is_of_core(ordering *o, uint64_t byte, uint32_t one, uint32_t other) {
    const gbx_call_dispatch *all = o->e->worker->call.dispatches;
    if (all[one].core_id != all[other].core_id)
        return false;
    if (o->is_core_asked)
        return o->has_core_memory;
    const gbx_call_dispatch *elsewhere = find_other_core(o, other);
    o->is_core_asked = true;
    o->has_core_memory =
        elsewhere && changes(o, byte, other, NULL) && !changes(o, byte, other, elsewhere);
    return o->has_core_memory;
}

static void compare_output(ordering *o, uint32_t argument, output_sightings *seen) {
    const gbx_tensor *tensor = &o->e->arguments[argument].tensor;
    uint64_t width = (gbx_dtype_bits(tensor->dtype) + 7) / 8;
    uint64_t first = o->offsets[argument];
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    for (uint64_t byte = first; byte < first + bytes; ++byte) {
        bool is_same = o->passes[0].left[byte] == o->passes[1].left[byte];
        uint32_t one = o->passes[0].writers[byte], other = o->passes[1].writers[byte];
        uint64_t element = gbx_tensor_element_at(tensor, byte - first);
        if (one == NOBODY && other == NOBODY)
            continue;
        if (!find_writers(o, byte, &one, &other)) {
            if (!is_same || (one == NOBODY) != (other == NOBODY))
                see(&seen->reads, element, one == NOBODY ? other : one, NOBODY);
        } else if (o->counters[byte - (byte - first) % width]) {
            see(&seen->counters, element, one, other);
        } else if (!is_ordered(o, byte) && !is_of_core(o, byte, one, other)) {
            see(&seen->writes, element, one, other);
        }
    }
}

/* Calls all dispatches. False if one waits for others. */
static bool call_all(const ordering *o, bool is_backward) {
    gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
    for (uint32_t i = 0; i < o->e->order->dispatch_count; ++i)
        if (!call_one(o, nth(o, i, is_backward)))
            return false;
    gather(o, o->now);
    return true;
}

/* Drops what is not the order's doing: outputs that differ although the order is the same. */
static bool drop_unsteady(const ordering *o, output_sightings *seen) {
    bool has_reads = false;
    for (uint32_t i = 0; i < o->e->order->argument_count; ++i)
        has_reads |= seen[i].reads.count > 0;
    for (int repeat = 0; has_reads && repeat < 2 * REPEATS; ++repeat) {
        if (!call_all(o, repeat % 2))
            return false;
        for (uint32_t i = 0; i < o->e->order->argument_count; ++i)
            if (seen[i].reads.count > 0 &&
                memcmp(o->now + o->offsets[i], o->passes[repeat % 2].left + o->offsets[i],
                       gbx_tensor_payload_bytes(&o->e->arguments[i].tensor)) != 0)
                seen[i].reads.count = 0;
    }
    return true;
}

/* The dispatch whose writes a reader's element depends on; NOBODY if no single one is enough. */
static uint32_t find_peer(const ordering *o, uint32_t reader, uint32_t argument, uint64_t element) {
    gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
    if (!call_one(o, reader))
        return NOBODY;
    uint64_t alone = value_of(o, argument, element);
    for (uint32_t i = 0; i < o->e->order->dispatch_count; ++i) {
        if (i == reader)
            continue;
        gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
        if (call_one(o, i) && call_one(o, reader) && value_of(o, argument, element) != alone)
            return i;
    }
    return NOBODY;
}

/* With a counter, what depends on the order may be what the counter is for. */
static void report_reads(const ordering *o, uint32_t argument, sightings *reads) {
    if (reads->count == 0 || o->has_counter)
        return;
    reads->parties[1] = find_peer(o, reads->parties[0], argument, reads->first);
    report(o, GBX_READ_RACE, argument, reads);
}

/* Counters of all arguments are known by now: they explain others. */
static gbx_order_state compare_passes(ordering *o) {
    static output_sightings seen[GBX_CALL_SLOTS]; /* too large for a stack */
    memset(seen, 0, sizeof seen);
    uint32_t count = o->e->order->argument_count;
    if (o->has_counter)
        count_stores(o);
    for (uint32_t i = 0; i < count; ++i) {
        if (!gbx_is_output(&o->e->arguments[i]))
            continue;
        compare_output(o, i, &seen[i]);
        report(o, GBX_COUNTER, i, &seen[i].counters);
        report(o, GBX_WRITE_RACE, i, &seen[i].writes);
    }
    if (!o->has_counter && !drop_unsteady(o, seen))
        return GBX_ORDER_WAITS;
    for (uint32_t i = 0; i < count; ++i)
        report_reads(o, i, &seen[i].reads);
    return GBX_ORDER_ASKED;
}

/* In a fixed order, what differs between the patterns is not a race: it was read without being
 * given. What depends on the order may be what another dispatch writes, and does not count. */
static gbx_order_state compare_patterns(ordering *o) {
    const gbx_examining *e = o->e;
    unsigned char *forward = o->passes[0].left, *backward = o->passes[1].left;
    /* Where the orders differ, the first pattern's result becomes that of the other pattern. */
    unsigned char *differs = calloc(1, o->bytes + 1);
    if (!differs)
        return GBX_ORDER_NO_MEMORY;
    for (uint32_t a = 0; a < e->order->argument_count; ++a) {
        const gbx_tensor *tensor = &e->arguments[a].tensor;
        uint64_t width = (gbx_dtype_bits(tensor->dtype) + 7) / 8;
        uint64_t end = o->offsets[a] + gbx_tensor_payload_bytes(tensor);
        for (uint64_t i = o->offsets[a]; gbx_is_output(&e->arguments[a]) && i < end; i += width)
            memset(differs + i, memcmp(forward + i, backward + i, width) != 0, width);
    }
    bool is_done = make_pass(o, &o->passes[1], GBX_PATTERN_OTHER, false);
    for (uint64_t i = 0; i < o->bytes; ++i)
        if (differs[i])
            forward[i] = backward[i];
    free(differs);
    for (uint32_t i = 0; is_done && i < e->order->argument_count; ++i) {
        if (!gbx_is_output(&e->arguments[i]))
            continue;
        const gbx_bits_payloads payloads = {.replay = forward + o->offsets[i],
                                            .other = backward + o->offsets[i],
                                            .start = e->start[i],
                                            .other_start = e->other_start[i]};
        gbx_bits_comparison bits = gbx_bits_compare(&e->arguments[i].tensor, &payloads);
        gbx_examining_add_unstable(o->e, i, &bits);
    }
    return is_done ? GBX_ORDER_ASKED : GBX_ORDER_WAITS;
}

static gbx_order_state examine(ordering *o) {
    if (!reserve(o))
        return GBX_ORDER_NO_MEMORY;
    if (!make_pass(o, &o->passes[0], GBX_PATTERN_FIRST, false) ||
        !make_pass(o, &o->passes[1], GBX_PATTERN_FIRST, true))
        return GBX_ORDER_WAITS;
    gbx_order_state state = find_counters(o);
    if (state == GBX_ORDER_ASKED)
        state = compare_passes(o);
    return state == GBX_ORDER_ASKED ? compare_patterns(o) : state;
}

void gbx_examine_blocks(gbx_examining *e) {
    ordering o = {.e = e};
    if (e->order->skips & GBX_SKIP_ORDER)
        return;
    for (uint32_t i = 0; i < e->order->argument_count; ++i) {
        o.offsets[i] = o.bytes;
        if (gbx_is_output(&e->arguments[i]))
            o.bytes += gbx_tensor_payload_bytes(&e->arguments[i].tensor);
    }
    if (o.bytes > MAX_OUTPUT_BYTES || o.bytes * e->order->dispatch_count > MAX_WORK_BYTES) {
        e->answer->order = GBX_ORDER_TOO_LARGE;
        return;
    }
    /* Only now: a dispatch may end the process. */
    e->answer->order = (uint32_t)examine(&o);
    release(&o);
}
