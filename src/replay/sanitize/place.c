#include <glassbox/tensor.h>

#include "analysis/view_find.h"
#include "replay/sanitize/internal.h"

/* Bytes of a tensor's extent. */
typedef struct hull {
    uint64_t begin;
    uint64_t end;
} hull;

static hull hull_of(const gbx_tensor *tensor) {
    int64_t first, end;
    gbx_tensor_extent(tensor, &first, &end);
    return (hull){tensor->data + (uint64_t)first, tensor->data + (uint64_t)end};
}

/* The first byte of an access that lies outside the extent, else the first of all. */
static uint64_t first_outside(const hull *h, uint64_t address, uint32_t bytes) {
    return address >= h->begin && address < h->end && bytes > h->end - address ? h->end : address;
}

static int64_t distance_to(const hull *h, uint64_t address) {
    if (address < h->begin)
        return (int64_t)(address - h->begin);
    return address < h->end ? 0 : (int64_t)(address - h->end) + 1;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* The element that lies at an address or, if it is in a gap, the nearest before it. */
static uint64_t nearest_element(const gbx_tensor *tensor, const hull *h, uint64_t address) {
    gbx_view_element found;
    address = address < h->begin ? h->begin : address >= h->end ? h->end - 1 : address;
    for (uint64_t width = 1;; width *= 2) {
        bool is_all = width > address - h->begin;
        uint64_t begin = is_all ? h->begin : address + 1 - width;
        if (gbx_view_find_bytes(tensor, begin, address + 1, &found)) {
            /* Several may lie there: the search goes on behind this one. */
            while (tensor->data + (uint64_t)((found.end_bit + 7) >> 3) <= address) {
                gbx_view_element later;
                begin = tensor->data + (uint64_t)((found.end_bit + 7) >> 3);
                if (!gbx_view_find_bytes(tensor, begin, address + 1, &later))
                    break;
                found = later;
            }
            return found.number;
        }
        if (is_all)
            return GBX_NO_ELEMENT;
    }
}

uint32_t gbx_sanitize_argument(const gbx_replay_task *task, uint32_t slot) {
    for (uint32_t i = 0; i < task->argument_count; ++i)
        if (task->arguments[i].slot == slot)
            return i;
    return GBX_NO_ARGUMENT;
}

void gbx_sanitize_place_in(const gbx_replay_task *task, const gbx_call_file *call,
                           uint32_t argument, gbx_sanitize_finding *finding) {
    const gbx_tensor *placed = &call->slots[task->arguments[argument].slot].tensor;
    const hull h = hull_of(placed);
    uint64_t at = first_outside(&h, finding->address, finding->bytes);
    finding->argument = argument;
    finding->element = nearest_element(placed, &h, at);
    finding->distance = distance_to(&h, at);
    finding->has_address = task->has_addresses;
    finding->address += task->arguments[argument].tensor.data - placed->data;
}

void gbx_sanitize_place(const gbx_replay_task *task, const gbx_call_file *call,
                        gbx_sanitize_finding *finding) {
    uint64_t nearest = UINT64_MAX, width = UINT64_MAX;
    const uint64_t address = finding->address;
    const bool is_ours =
        address >= call->gm_base && address - call->gm_base < GBX_CALL_MAX_GM_BYTES;
    uint32_t best = GBX_NO_ARGUMENT;
    for (uint32_t i = 0; finding->has_address && is_ours && i < task->argument_count; ++i) {
        const gbx_tensor *tensor = &call->slots[task->arguments[i].slot].tensor;
        if (!task->arguments[i].is_tensor || gbx_tensor_numel(tensor) == 0)
            continue;
        const hull h = hull_of(tensor);
        int64_t distance = distance_to(&h, address);
        uint64_t size = magnitude(distance);
        /* Of two as near, the one before the access, or the smaller one around it. */
        bool is_better =
            size < nearest || (size == nearest && (size ? distance > 0 : h.end - h.begin < width));
        if (!is_better)
            continue;
        best = i;
        nearest = size;
        width = h.end - h.begin;
    }
    if (best != GBX_NO_ARGUMENT)
        gbx_sanitize_place_in(task, call, best, finding);
    else if (is_ours)
        finding->has_address = false; /* the run may have had something else there */
}
