#include "hal/sim.h"

#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"

/* Spans are multiples of this, so that no two tensors share a cache line or a copy's tail. */
#define GRANULE UINT64_C(512)

typedef struct span {
    uint64_t address;
    uint64_t bytes;  /* a multiple of GRANULE */
    uint64_t wanted; /* of a live span: what was asked for */
} span;

struct gbx_gm_allocator {
    pthread_mutex_t mutex;
    uint64_t base;
    uint64_t bytes;
    uint64_t free_bytes;
    void *live;          /* tree of span by address */
    void *free_by_place; /* tree of span by address; the same spans as in free_by_size */
    void *free_by_size;
};

/* Spans of one tree never overlap, so "overlaps" serves as "equal" and finds a span by any byte. */
static int compare_place(const void *a, const void *b) {
    const span *left = a;
    const span *right = b;
    if (left->address + left->bytes <= right->address)
        return -1;
    return left->address >= right->address + right->bytes;
}

static int compare_size(const void *a, const void *b) {
    const span *left = a;
    const span *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? -1 : 1;
    return (left->address > right->address) - (left->address < right->address);
}

typedef struct fit_query {
    uint64_t bytes;
    const span *best;
} fit_query;

/* Never says "equal": walks down to where `bytes` would be; keeps the smallest span that holds it.
 */
static int compare_fit(const void *a, const void *b) {
    fit_query *query = (fit_query *)(uintptr_t)a;
    const span *candidate = b;
    if (candidate->bytes < query->bytes)
        return 1;
    query->best = candidate;
    return -1;
}

static span *best_fit(const gbx_gm_allocator *allocator, uint64_t bytes) {
    fit_query query = {.bytes = bytes, .best = NULL};
    tfind(&query, &allocator->free_by_size, compare_fit);
    return (span *)(uintptr_t)query.best;
}

static span *find_at(void *const *tree, uint64_t address) {
    span key = {.address = address, .bytes = 1};
    void *node = tfind(&key, tree, compare_place);
    return node ? *(span **)node : NULL;
}

static bool insert_free(gbx_gm_allocator *allocator, span *free_span) {
    if (!tsearch(free_span, &allocator->free_by_place, compare_place))
        return false;
    if (tsearch(free_span, &allocator->free_by_size, compare_size))
        return true;
    tdelete(free_span, &allocator->free_by_place, compare_place);
    return false;
}

static void remove_free(gbx_gm_allocator *allocator, span *free_span) {
    tdelete(free_span, &allocator->free_by_place, compare_place);
    tdelete(free_span, &allocator->free_by_size, compare_size);
}

static span *span_create(uint64_t address, uint64_t bytes, uint64_t wanted) {
    span *created = malloc(sizeof *created);
    if (created)
        *created = (span){.address = address, .bytes = bytes, .wanted = wanted};
    return created;
}

static gbx_status out_of_host_memory(void) {
    return gbx_fail_memory("keeping track of global memory");
}

gbx_status gbx_gm_allocator_create(uint64_t base, uint64_t bytes,
                                   gbx_gm_allocator **out_allocator) {
    *out_allocator = NULL;
    gbx_gm_allocator *allocator = calloc(1, sizeof *allocator);
    span *whole = span_create(base, bytes & ~(GRANULE - 1), 0);
    if (!allocator || !whole || !insert_free(allocator, whole)) {
        free(whole);
        free(allocator);
        return out_of_host_memory();
    }
    pthread_mutex_init(&allocator->mutex, NULL);
    allocator->base = base;
    allocator->bytes = bytes;
    allocator->free_bytes = whole->bytes;
    *out_allocator = allocator;
    return NULL;
}

static void keep_span(void *unused) {
    (void)unused;
}

void gbx_gm_allocator_destroy(gbx_gm_allocator *allocator) {
    if (!allocator)
        return;
    tdestroy(allocator->free_by_size, keep_span); /* the other tree frees the spans */
    tdestroy(allocator->free_by_place, free);
    tdestroy(allocator->live, free);
    pthread_mutex_destroy(&allocator->mutex);
    free(allocator);
}

static uint64_t largest_piece(const gbx_gm_allocator *allocator) {
    uint64_t largest = 0;
    for (uint64_t step = UINT64_C(1) << 63; step >= GRANULE; step >>= 1)
        if (best_fit(allocator, largest + step))
            largest += step;
    return largest;
}

/* Puts the rest of a free span back. False when there is no host memory for that: the rest of this
 * span is then lost. */
static bool keep_rest(gbx_gm_allocator *allocator, span *rest) {
    if (rest->bytes > 0 && insert_free(allocator, rest))
        return true;
    bool is_empty = rest->bytes == 0;
    free(rest);
    return is_empty;
}

/* Cuts [address, address + bytes) out of a free span; the rests before and after stay free. */
static gbx_status carve(gbx_gm_allocator *allocator, span *from, uint64_t address, uint64_t bytes,
                        uint64_t wanted) {
    span *live = span_create(address, bytes, wanted);
    uint64_t end = address + bytes;
    uint64_t from_end = from->address + from->bytes;
    span *after = from_end > end ? span_create(end, from_end - end, 0) : NULL;
    if (!live || (from_end > end && !after) || !tsearch(live, &allocator->live, compare_place)) {
        free(live);
        free(after);
        return out_of_host_memory();
    }
    remove_free(allocator, from);
    from->bytes = address - from->address;
    allocator->free_bytes -= bytes;
    bool is_kept = keep_rest(allocator, from);
    is_kept = (!after || keep_rest(allocator, after)) && is_kept;
    return is_kept ? NULL : out_of_host_memory();
}

static uint64_t aligned_start(const span *free_span, uint64_t alignment) {
    return (free_span->address + alignment - 1) & ~(alignment - 1);
}

/* The best fit if its start is aligned well enough, else the best that fits after any alignment. */
static span *best_aligned_fit(const gbx_gm_allocator *allocator, uint64_t bytes,
                              uint64_t alignment) {
    uint64_t with_slack;
    span *found = best_fit(allocator, bytes);
    if (!found || aligned_start(found, alignment) - found->address + bytes <= found->bytes)
        return found;
    if (!gbx_checked_add_u64(bytes, alignment - GRANULE, &with_slack))
        return NULL;
    return best_fit(allocator, with_slack);
}

static gbx_status alloc_locked(gbx_gm_allocator *allocator, uint64_t bytes, uint64_t alignment,
                               uint64_t *out_address) {
    uint64_t rounded;
    if (alignment < GRANULE)
        alignment = GRANULE;
    span *found = NULL;
    /* An allocation of 0 bytes has an address of its own, too. */
    if (gbx_checked_align_up(bytes ? bytes : 1, GRANULE, &rounded))
        found = best_aligned_fit(allocator, rounded, alignment);
    if (!found)
        return gbx_fail(GBX_EXHAUSTED,
                        "allocating %" PRIu64 " bytes (aligned to %" PRIu64
                        ") of global memory: %" PRIu64 " of %" PRIu64 " bytes are free, %" PRIu64
                        " in one piece; free something or open the chip with more",
                        bytes, alignment, allocator->free_bytes, allocator->bytes,
                        largest_piece(allocator));
    uint64_t address = aligned_start(found, alignment);
    GBX_TRY(carve(allocator, found, address, rounded, bytes));
    *out_address = address;
    return NULL;
}

gbx_status gbx_gm_allocator_alloc(gbx_gm_allocator *allocator, uint64_t bytes, uint64_t alignment,
                                  uint64_t *out_address) {
    *out_address = 0;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "allocating global memory: an alignment of %" PRIu64
                        " is not a power of two",
                        alignment);
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = alloc_locked(allocator, bytes, alignment, out_address);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

/* Says what is at an address that should have been the start of an allocation. */
static gbx_status not_allocated(const gbx_gm_allocator *allocator, const char *doing,
                                uint64_t address) {
    if (address < allocator->base || address - allocator->base >= allocator->bytes)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "%s 0x%" PRIx64 ": outside of the chip's global memory (0x%" PRIx64
                        " to 0x%" PRIx64 ")",
                        doing, address, allocator->base, allocator->base + allocator->bytes);
    const span *inside = find_at(&allocator->live, address);
    if (inside)
        return gbx_fail(GBX_NOT_FOUND,
                        "%s 0x%" PRIx64 ": this is %" PRIu64
                        " bytes into the allocation at 0x%" PRIx64 ", not its start",
                        doing, address, address - inside->address, inside->address);
    return gbx_fail(GBX_NOT_FOUND,
                    "%s 0x%" PRIx64 ": nothing is allocated there; was it freed already?", doing,
                    address);
}

/* Joins a free span with the free one that holds `neighbour`, if there is one. */
static void join(gbx_gm_allocator *allocator, span *freed, uint64_t neighbour) {
    span *other = find_at(&allocator->free_by_place, neighbour);
    if (!other)
        return;
    remove_free(allocator, other);
    if (other->address < freed->address)
        freed->address = other->address;
    freed->bytes += other->bytes;
    free(other);
}

static gbx_status free_locked(gbx_gm_allocator *allocator, uint64_t address) {
    span *found = find_at(&allocator->live, address);
    if (!found || found->address != address)
        return not_allocated(allocator, "freeing", address);
    tdelete(found, &allocator->live, compare_place);
    allocator->free_bytes += found->bytes;
    uint64_t end = found->address + found->bytes;
    if (address > allocator->base)
        join(allocator, found, address - 1);
    join(allocator, found, end);
    return insert_free(allocator, found) ? NULL : out_of_host_memory();
}

gbx_status gbx_gm_allocator_free(gbx_gm_allocator *allocator, uint64_t address) {
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = free_locked(allocator, address);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

static gbx_status check_locked(const gbx_gm_allocator *allocator, const char *doing,
                               uint64_t address, uint64_t bytes) {
    const span *found = find_at(&allocator->live, address);
    if (!found)
        return not_allocated(allocator, doing, address);
    uint64_t offset = address - found->address;
    if (gbx_range_is_inside(offset, bytes, found->wanted))
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "%s 0x%" PRIx64 ": %" PRIu64 " bytes from there go beyond the %" PRIu64
                    " bytes allocated at 0x%" PRIx64,
                    doing, address, bytes, found->wanted, found->address);
}

gbx_status gbx_gm_allocator_check(gbx_gm_allocator *allocator, const char *doing, uint64_t address,
                                  uint64_t bytes) {
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = check_locked(allocator, doing, address, bytes);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

void gbx_gm_allocator_room(gbx_gm_allocator *allocator, uint64_t *out_free, uint64_t *out_largest) {
    pthread_mutex_lock(&allocator->mutex);
    *out_free = allocator->free_bytes;
    *out_largest = largest_piece(allocator);
    pthread_mutex_unlock(&allocator->mutex);
}
