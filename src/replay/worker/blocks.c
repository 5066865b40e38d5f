/*
 * Races inside a task. Its dispatches are called one at a time, forward and backward, and after
 * each of them the outputs are compared with what they were. Independent dispatches write the same
 * bytes, each its own, and leave the same values in both orders.
 */
#include <stdlib.h>
#include <string.h>

#include "replay/worker/pattern.h"
#include "replay/worker/worker.h"

enum { PIECE_BYTES = 4096, MAX_OUTPUT_BYTES = 32 << 20, MAX_ELEMENTS = 64 };
#define MAX_WORK_BYTES (UINT64_C(4) << 30)
#define MAX_COUNTER_BYTES (UINT64_C(1) << 30)
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
    pass passes[2]; /* forward, backward */
    bool has_counter;
} ordering;

/* --- memory --- */

static bool reserve(ordering *o) {
    o->now = malloc(o->bytes + 1);
    bool is_there = o->now != NULL;
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

/* False if a dispatch waits for others. */
static bool make_pass(const ordering *o, const pass *p, int pattern, bool is_backward) {
    uint32_t count = o->e->order->dispatch_count;
    gbx_examining_prepare(o->e, pattern);
    memset(p->writers, 0xff, (o->bytes + 1) * sizeof *p->writers);
    memset(p->first_writer, 0xff, (o->bytes + 1) * sizeof *p->first_writer);
    gather(o, p->left);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t dispatch = is_backward ? count - 1 - i : i;
        if (!call_one(o, dispatch))
            return false;
        gather(o, o->now);
        note_writes(o, p, dispatch);
    }
    return true;
}

/* --- elements --- */

/* The element of an output that a byte of its payload belongs to. */
static uint64_t element_of(const gbx_tensor *tensor, uint64_t byte) {
    uint32_t bits = gbx_dtype_bits(tensor->dtype);
    if (bits >= 8)
        return byte / (bits / 8);
    uint64_t row = tensor->ndims > 0 ? (uint64_t)tensor->shape[tensor->ndims - 1] : 1;
    uint64_t row_bytes = (row + 1) / 2;
    return byte / row_bytes * row + byte % row_bytes * 2;
}

static uint64_t value_of(const ordering *o, uint32_t argument, uint64_t element) {
    gather(o, o->now);
    return gbx_bits_element(&o->e->arguments[argument].tensor, o->now + o->offsets[argument],
                            element);
}

static bool is_integer(uint32_t dtype) {
    return dtype == GBX_INT32 || dtype == GBX_UINT32 || dtype == GBX_INT64 || dtype == GBX_UINT64;
}

/* Whether every dispatch adds the same to an integer in both orders. The one that is called last
 * may put back what was there at first, as the last to arrive does. */
static bool is_counter(const ordering *o, uint32_t argument, uint64_t element) {
    uint32_t count = o->e->order->dispatch_count;
    uint32_t dtype = o->e->arguments[argument].tensor.dtype;
    uint64_t mask = gbx_dtype_bits(dtype) == 32 ? UINT32_MAX : UINT64_MAX;
    uint64_t *added = is_integer(dtype) ? calloc(count, sizeof *added) : NULL;
    bool is_equal = added != NULL;
    bool is_reset[2] = {false, false};
    for (int is_backward = 0; is_equal && is_backward < 2; ++is_backward) {
        gbx_examining_prepare(o->e, GBX_PATTERN_FIRST);
        uint64_t first = value_of(o, argument, element), before = first;
        for (uint32_t i = 0; i < count && is_equal; ++i) {
            uint32_t dispatch = is_backward ? count - 1 - i : i;
            is_equal = call_one(o, dispatch);
            uint64_t after = value_of(o, argument, element);
            uint64_t difference = (after - before) & mask;
            is_reset[is_backward] = i == count - 1 && after == first && difference != 0;
            bool is_free = is_reset[is_backward] || (is_reset[0] && dispatch == count - 1);
            if (is_backward && !is_free)
                is_equal &= added[dispatch] == difference;
            added[dispatch] = difference;
            before = after;
        }
    }
    free(added);
    return is_equal && is_reset[0] == is_reset[1];
}

/* --- findings --- */

/* What is known of one output; elements are counted once. */
typedef struct sightings {
    uint64_t elements[MAX_ELEMENTS];
    uint32_t parties[MAX_ELEMENTS][2];
    uint32_t kept;
    uint64_t count;
    uint64_t last;    /* element */
    bool are_by_last; /* each by the dispatch that was called last, in both orders */
} sightings;

static void see(sightings *s, uint64_t element, uint32_t one, uint32_t other) {
    if (s->count > 0 && s->last == element)
        return;
    s->last = element;
    s->count++;
    if (s->kept == MAX_ELEMENTS)
        return;
    s->elements[s->kept] = element;
    s->parties[s->kept][0] = one < other ? one : other;
    s->parties[s->kept][1] = one < other ? other : one;
    s->kept++;
}

static void add(const ordering *o, gbx_finding_of kind, uint32_t argument, uint64_t element,
                uint64_t last, uint64_t elements, const uint32_t parties[2]) {
    const gbx_task_finding finding = {.kind = kind,
                                      .argument = argument,
                                      .element = element,
                                      .last = last,
                                      .elements = elements,
                                      .parties = {parties[0], parties[1]}};
    gbx_examining_add(o->e, &finding);
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

/* Looks at as many elements as do not take long. */
static void report_writes(ordering *o, uint32_t argument, const sightings *writes) {
    uint64_t cost = 2 * o->bytes * o->e->order->dispatch_count;
    uint64_t counters = 0;
    int64_t raced = -1;
    for (uint32_t i = 0; i < writes->kept && (i < 2 || i * cost < MAX_COUNTER_BYTES); ++i) {
        if (!is_counter(o, argument, writes->elements[i])) {
            raced = raced < 0 ? i : raced;
            continue;
        }
        if (counters++ == 0)
            add(o, GBX_COUNTER, argument, writes->elements[i], writes->elements[i], 1,
                writes->parties[i]);
        o->has_counter = true;
    }
    if (raced >= 0)
        add(o, GBX_WRITE_RACE, argument, writes->elements[raced], writes->last,
            writes->count - counters, writes->parties[raced]);
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

static void report_reads(const ordering *o, uint32_t argument, const sightings *reads) {
    if (reads->count == 0)
        return;
    uint32_t reader = reads->parties[0][0];
    const uint32_t parties[2] = {reader, find_peer(o, reader, argument, reads->elements[0])};
    add(o, GBX_READ_RACE, argument, reads->elements[0], reads->last, reads->count, parties);
}

/* With a counter, the last dispatch may do what only one of them should: equal results are then
 * no race. */
static void compare_output(ordering *o, uint32_t argument, sightings *writes, sightings *reads) {
    const gbx_tensor *tensor = &o->e->arguments[argument].tensor;
    uint64_t first = o->offsets[argument];
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    for (uint64_t byte = first; byte < first + bytes; ++byte) {
        bool is_same = o->passes[0].left[byte] == o->passes[1].left[byte];
        uint32_t one = o->passes[0].writers[byte], other = o->passes[1].writers[byte];
        uint64_t element = element_of(tensor, byte - first);
        if (one == NOBODY && other == NOBODY)
            continue;
        if (find_writers(o, byte, &one, &other)) {
            writes->are_by_last &= o->passes[0].writers[byte] == o->e->order->dispatch_count - 1 &&
                                   o->passes[1].writers[byte] == 0;
            see(writes, element, one, other);
        } else if (!is_same || (one == NOBODY) != (other == NOBODY)) {
            see(reads, element, one == NOBODY ? other : one, NOBODY);
        }
    }
}

static bool is_equal_output(const ordering *o, uint32_t argument) {
    return memcmp(o->passes[0].left + o->offsets[argument],
                  o->passes[1].left + o->offsets[argument],
                  gbx_tensor_payload_bytes(&o->e->arguments[argument].tensor)) == 0;
}

static void compare_passes(ordering *o) {
    static sightings writes[GBX_CALL_SLOTS], reads[GBX_CALL_SLOTS];
    memset(writes, 0, sizeof writes);
    memset(reads, 0, sizeof reads);
    uint32_t count = o->e->order->argument_count;
    for (uint32_t i = 0; i < count; ++i)
        writes[i].are_by_last = true;
    for (uint32_t i = 0; i < count; ++i)
        if (gbx_is_output(&o->e->arguments[i]))
            compare_output(o, i, &writes[i], &reads[i]);
    /* Counters first: they explain others. Passes are not needed for what follows. */
    for (int has_integers = 1; has_integers >= 0; --has_integers)
        for (uint32_t i = 0; i < count; ++i) {
            if (!gbx_is_output(&o->e->arguments[i]) ||
                is_integer(o->e->arguments[i].tensor.dtype) != has_integers)
                continue;
            if (o->has_counter && is_equal_output(o, i) && writes[i].are_by_last)
                continue;
            report_writes(o, i, &writes[i]);
            if (!o->has_counter)
                report_reads(o, i, &reads[i]);
        }
}

/* In a fixed order, what differs between the patterns is not a race: it was read without being
 * given. What depends on the order may be what another dispatch writes, and does not count. */
static void compare_patterns(ordering *o) {
    const gbx_examining *e = o->e;
    unsigned char *forward = o->passes[0].left, *backward = o->passes[1].left;
    /* Where the orders differ, the first pattern's result becomes that of the other pattern. */
    unsigned char *differs = calloc(1, o->bytes + 1);
    if (!differs)
        return;
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
    if (reserve(&o)) {
        bool is_done = make_pass(&o, &o.passes[0], GBX_PATTERN_FIRST, false) &&
                       make_pass(&o, &o.passes[1], GBX_PATTERN_FIRST, true);
        e->answer->order = is_done ? GBX_ORDER_ASKED : GBX_ORDER_WAITS;
        if (is_done) {
            compare_passes(&o);
            compare_patterns(&o);
        }
    }
    release(&o);
}
