#include "replay/sanitize/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "base/io.h"
#include "base/memory.h"
#include "replay/sanitize/internal.h"

/* A view with more pieces than this would take longer to guard than to search by other means. */
enum { MAX_RANGES = 1 << 22 };

typedef struct plan {
    gbx_plan_range *items;
    uint64_t count;
    uint64_t capacity;
} plan;

/* The elements of a view as rows without gaps, in any order. */
typedef struct rows {
    int64_t first;  /* element, from `data` */
    int64_t length; /* elements */
    uint32_t ndims; /* over which rows repeat */
    int64_t shape[GBX_MAX_DIMS];
    int64_t strides[GBX_MAX_DIMS]; /* positive, rising */
} rows;

/* Each dimension forward, without those that repeat the same elements, small strides first. */
static void sort_dimensions(const gbx_tensor *tensor, rows *r) {
    r->first = tensor->start_offset;
    r->ndims = 0;
    for (uint32_t d = 0; d < tensor->ndims; ++d) {
        int64_t stride = tensor->strides[d];
        if (stride < 0)
            r->first += (tensor->shape[d] - 1) * stride;
        stride = stride < 0 ? -stride : stride;
        if (stride == 0 || tensor->shape[d] == 1)
            continue;
        uint32_t at = r->ndims++;
        for (; at > 0 && r->strides[at - 1] > stride; --at) {
            r->strides[at] = r->strides[at - 1];
            r->shape[at] = r->shape[at - 1];
        }
        r->strides[at] = stride;
        r->shape[at] = tensor->shape[d];
    }
}

static void find_rows(const gbx_tensor *tensor, rows *r) {
    uint32_t joined = 0;
    sort_dimensions(tensor, r);
    for (r->length = 1; joined < r->ndims && r->strides[joined] <= r->length; ++joined)
        r->length += (r->shape[joined] - 1) * r->strides[joined];
    r->ndims -= joined;
    memmove(r->shape, r->shape + joined, r->ndims * sizeof r->shape[0]);
    memmove(r->strides, r->strides + joined, r->ndims * sizeof r->strides[0]);
}

static gbx_status add_row(plan *p, uint32_t slot, const gbx_call_slot *of, int64_t first,
                          int64_t length) {
    int64_t bits = gbx_dtype_bits(of->tensor.dtype);
    int64_t begin = first * bits >> 3, end = ((first + length) * bits + 7) >> 3;
    if (p->count == MAX_RANGES)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "argument %u has more than %d pieces of memory that would be guarded each "
                        "by itself",
                        slot, MAX_RANGES);
    GBX_TRY(gbx_array_reserve(&p->items, &p->capacity, p->count + 1, "planning a call"));
    p->items[p->count++] =
        (gbx_plan_range){.address = of->tensor.data + (uint64_t)begin,
                         .bytes = (uint64_t)(end - begin),
                         .tested_bytes = (uint64_t)(((first + length) * bits >> 3) - begin),
                         .slot = slot,
                         .is_read = of->role != GBX_ROLE_OUTPUT,
                         .is_written = of->role != GBX_ROLE_INPUT};
    return NULL;
}

static gbx_status add_slot(plan *p, uint32_t slot, const gbx_call_slot *of) {
    rows r;
    int64_t index[GBX_MAX_DIMS] = {0};
    if (of->kind != GBX_CALL_TENSOR || gbx_tensor_numel(&of->tensor) == 0)
        return NULL;
    find_rows(&of->tensor, &r);
    for (int64_t first = r.first;;) {
        uint32_t d = 0;
        GBX_TRY(add_row(p, slot, of, first, r.length));
        for (; d < r.ndims && ++index[d] == r.shape[d]; ++d) {
            first -= (r.shape[d] - 1) * r.strides[d];
            index[d] = 0;
        }
        if (d == r.ndims)
            return NULL;
        first += r.strides[d];
    }
}

gbx_status gbx_sanitize_write_plan(const gbx_call_file *call, int fd) {
    plan p = {0};
    gbx_status status = NULL;
    for (uint32_t i = 0; i < GBX_CALL_SLOTS && !status; ++i)
        status = add_slot(&p, i, &call->slots[i]);
    int error = status ? 0 : gbx_write_all(fd, p.items, p.count * sizeof *p.items);
    free(p.items);
    return error ? gbx_fail(GBX_IO, "planning a call: %s", strerror(error)) : status;
}
