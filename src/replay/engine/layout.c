#include "replay/engine/internal.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/chip.h>

#include "base/checked.h"

/* Address slots: each chip takes one. */
#define FIRST_SLOT UINT64_C(0x7e9000000000)
#define SLOT_BYTES GBX_MAX_GM_BYTES
enum { SLOT_COUNT = 13, PAGE_BYTES = 4096 };

/* The address range of a tensor. */
typedef struct hull {
    uint64_t start;
    uint64_t end; /* equal to start: no elements */
} hull;

/* False if the range overflows. */
static bool find_hull(const gbx_tensor *tensor, hull *out_hull) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    bool overflows = __builtin_add_overflow(tensor->data, first, &out_hull->start);
    overflows |= __builtin_add_overflow(tensor->data, end, &out_hull->end);
    return !overflows;
}

/* --- keeping addresses --- */

static bool fits_slot(const gbx_replay_layout *layout, const hull *hulls, uint64_t base,
                      uint64_t *out_end) {
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i] || hulls[i].start == hulls[i].end)
            continue;
        if (hulls[i].start < base || hulls[i].end > base + SLOT_BYTES)
            return false;
        if (hulls[i].end > *out_end)
            *out_end = hulls[i].end;
    }
    return true;
}

static void set_memory(gbx_replay_layout *layout, uint64_t base, uint64_t end, uint64_t gm_bytes) {
    uint64_t needed = end - base > gm_bytes ? end - base : gm_bytes;
    layout->gm_base = base;
    layout->gm_bytes = (needed + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool keep_addresses(gbx_replay_layout *layout, const hull *hulls, uint64_t gm_bytes) {
    for (uint64_t slot = 0; slot < SLOT_COUNT; ++slot) {
        uint64_t base = FIRST_SLOT + slot * SLOT_BYTES;
        uint64_t end = base;
        if (fits_slot(layout, hulls, base, &end)) {
            set_memory(layout, base, end, gm_bytes);
            return true;
        }
    }
    return false;
}

/* --- new addresses --- */

/* Groups of tensors that share a buffer, and move together. */
typedef struct grouping {
    hull hulls[GBX_REPLAY_MAX_ARGUMENTS];     /* of a group, at its first tensor */
    uint32_t group[GBX_REPLAY_MAX_ARGUMENTS]; /* the first tensor of each one's group */
} grouping;

static void join(grouping *g, const gbx_replay_layout *layout, uint32_t into, uint32_t from) {
    if (g->hulls[from].start < g->hulls[into].start)
        g->hulls[into].start = g->hulls[from].start;
    if (g->hulls[from].end > g->hulls[into].end)
        g->hulls[into].end = g->hulls[from].end;
    for (uint32_t i = 0; i < layout->count; ++i)
        if (g->group[i] == from)
            g->group[i] = into;
}

static bool has_elements(const grouping *g, const gbx_replay_layout *layout, uint32_t i) {
    return layout->is_tensor[i] && g->hulls[i].start < g->hulls[i].end;
}

/* Whether two tensors of different groups share a buffer, or their groups overlap. */
static bool belong_together(const grouping *g, const gbx_replay_layout *layout, uint32_t a,
                            uint32_t b) {
    if (g->group[a] == g->group[b] || !has_elements(g, layout, a) || !has_elements(g, layout, b))
        return false;
    const hull *of_a = &g->hulls[g->group[a]];
    const hull *of_b = &g->hulls[g->group[b]];
    return layout->tensors[a].data == layout->tensors[b].data ||
           (of_a->start < of_b->end && of_b->start < of_a->end);
}

/* Joins the first two groups that belong together; false if none do. */
static bool join_next(grouping *g, const gbx_replay_layout *layout) {
    for (uint32_t a = 0; a < layout->count; ++a)
        for (uint32_t b = a + 1; b < layout->count; ++b)
            if (belong_together(g, layout, a, b)) {
                uint32_t into = g->group[a] < g->group[b] ? g->group[a] : g->group[b];
                join(g, layout, into, g->group[a] + g->group[b] - into);
                return true;
            }
    return false;
}

/* A group keeps its offset in a page, and an empty page precedes it. */
static gbx_status place_groups(gbx_replay_layout *layout, const grouping *g, uint64_t gm_bytes) {
    uint64_t next = FIRST_SLOT + PAGE_BYTES;
    uint64_t end = next;
    for (uint32_t first = 0; first < layout->count; ++first) {
        const hull *old = &g->hulls[first];
        if (g->group[first] != first || !has_elements(g, layout, first))
            continue;
        if (old->end - old->start > FIRST_SLOT + SLOT_BYTES - next - 2 * (uint64_t)PAGE_BYTES)
            return gbx_fail(GBX_OUT_OF_RANGE,
                            "its tensors do not fit into %" PRIu64
                            " bytes, the most memory that a chip can have",
                            SLOT_BYTES);
        uint64_t move = next + old->start % PAGE_BYTES - old->start; /* may wrap around */
        for (uint32_t i = first; i < layout->count; ++i)
            if (g->group[i] == first)
                layout->tensors[i].data += move;
        end = old->end + move;
        next = (end + 2 * (uint64_t)PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        if (next + 3 * (uint64_t)PAGE_BYTES > FIRST_SLOT + SLOT_BYTES)
            next = FIRST_SLOT + SLOT_BYTES - 2 * (uint64_t)PAGE_BYTES;
    }
    set_memory(layout, FIRST_SLOT, end, gm_bytes);
    return NULL;
}

/* --- memory needed --- */

/* In a view with large strides, each element takes a page. */
static uint64_t touched_bytes(const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    uint64_t whole = (uint64_t)(end - first);
    uint64_t apart;
    if (!gbx_checked_mul_u64((uint64_t)gbx_tensor_numel(tensor), PAGE_BYTES, &apart))
        apart = UINT64_MAX;
    uint64_t touched = whole < apart ? whole : apart;
    uint64_t payload = gbx_tensor_payload_bytes(tensor);
    return touched > payload ? touched : payload;
}

/* Every machine has this much. Asking how much takes longer than all else here. */
#define SMALL_BYTES (UINT64_C(64) << 20)

/* Global memory, one payload at a time, and four copies of each output: two runs, and what was
 * there before each. */
static gbx_status check_size(gbx_replay_layout *layout) {
    uint64_t needed = 0, largest = 0;
    bool is_huge = false;
    for (uint32_t i = 0; i < layout->count; ++i) {
        if (!layout->is_tensor[i])
            continue;
        uint64_t touched = touched_bytes(&layout->tensors[i]);
        uint64_t payload = gbx_tensor_payload_bytes(&layout->tensors[i]);
        uint64_t kept;
        largest = payload > largest ? payload : largest;
        is_huge |=
            !gbx_checked_mul_u64(payload, layout->roles[i] == GBX_ROLE_INPUT ? 0 : 4, &kept) ||
            !gbx_checked_add_u64(needed, touched, &needed) ||
            !gbx_checked_add_u64(needed, kept, &needed);
        layout->touch_bytes += touched;
    }
    is_huge |= !gbx_checked_add_u64(needed, largest, &needed);
    if (!is_huge && needed <= SMALL_BYTES)
        return NULL;
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (!is_huge && needed <= there)
        return NULL;
    return gbx_fail(GBX_EXHAUSTED,
                    "its tensors and the copies to compare need more than the %" PRIu64
                    " bytes of memory of this machine",
                    there);
}

gbx_status gbx_replay_layout_make(const gbx_replay_task *task, uint64_t gm_bytes,
                                  gbx_replay_layout *out_layout) {
    /* Only what the arguments need is set: all of it is large. */
    out_layout->count = task->argument_count;
    out_layout->touch_bytes = 0;
    out_layout->is_relocated = false;
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        out_layout->tensors[i] = task->arguments[i].tensor;
        out_layout->is_tensor[i] = task->arguments[i].is_tensor;
        out_layout->roles[i] = task->arguments[i].role;
    }
    GBX_TRY(check_size(out_layout));
    grouping groups = {0};
    bool has_addresses = task->has_addresses;
    for (uint32_t i = 0; i < out_layout->count; ++i) {
        groups.group[i] = i;
        groups.hulls[i] = (hull){0};
        if (out_layout->is_tensor[i])
            has_addresses &= find_hull(&out_layout->tensors[i], &groups.hulls[i]);
    }
    if (has_addresses && keep_addresses(out_layout, groups.hulls, gm_bytes))
        return NULL;
    out_layout->is_relocated = true;
    if (!has_addresses) {
        /* Each tensor has its own buffer, at an address where offsets of either sign fit. */
        for (uint32_t i = 0; i < out_layout->count; ++i) {
            out_layout->tensors[i].data = UINT64_C(1) << 63;
            if (out_layout->is_tensor[i])
                (void)find_hull(&out_layout->tensors[i], &groups.hulls[i]);
        }
    } else {
        while (join_next(&groups, out_layout))
            ;
    }
    return place_groups(out_layout, &groups, gm_bytes);
}
