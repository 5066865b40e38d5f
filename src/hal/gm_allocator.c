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
    uint64_t bytes; /* a multiple of GRANULE */
    /* Of a live span: what was asked for, the same in granules, and how much of that counts. */
    uint64_t wanted;
    uint64_t rounded;
    uint64_t counted;
    uint64_t spare_bytes;
    uint64_t kept_first; /* what the host wrote, from its first byte to its last */
    uint64_t kept_end;
    uint64_t number;
    gbx_hal_use use;
} span;

struct gbx_gm_allocator {
    pthread_mutex_t mutex;
    uint64_t base;
    uint64_t bytes;
    uint64_t space_bytes;
    uint64_t zone_bytes;
    uint64_t free_bytes; /* of `bytes` */
    uint64_t free_space; /* addresses that are not taken; what exceeds free_bytes is for zones */
    uint64_t next_number;
    uint64_t first_new;  /* allocations before this one were there at a launch */
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

static span *span_create(uint64_t address, uint64_t bytes) {
    span *created = malloc(sizeof *created);
    if (created)
        *created = (span){.address = address, .bytes = bytes};
    return created;
}

static gbx_status out_of_host_memory(void) {
    return gbx_fail_memory("keeping track of global memory");
}

gbx_status gbx_gm_allocator_create(uint64_t base, uint64_t bytes, uint64_t space_bytes,
                                   gbx_gm_allocator **out_allocator) {
    *out_allocator = NULL;
    gbx_gm_allocator *allocator = calloc(1, sizeof *allocator);
    span *whole = span_create(base, space_bytes & ~(GRANULE - 1));
    if (!allocator || !whole || !insert_free(allocator, whole)) {
        free(whole);
        free(allocator);
        return out_of_host_memory();
    }
    pthread_mutex_init(&allocator->mutex, NULL);
    allocator->base = base;
    allocator->bytes = bytes;
    allocator->space_bytes = space_bytes;
    allocator->zone_bytes = space_bytes > bytes ? GBX_HAL_ZONE_BYTES : 0;
    allocator->free_bytes = bytes & ~(GRANULE - 1);
    allocator->free_space = space_bytes & ~(GRANULE - 1);
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

/* Cuts a live span out of a free one; the rests before and after stay free. */
static gbx_status carve(gbx_gm_allocator *allocator, span *from, const span *wanted) {
    uint64_t address = wanted->address;
    span *live = span_create(address, wanted->bytes);
    uint64_t end = address + wanted->bytes;
    uint64_t from_end = from->address + from->bytes;
    span *after = from_end > end ? span_create(end, from_end - end) : NULL;
    if (live)
        *live = *wanted;
    if (!live || (from_end > end && !after) || !tsearch(live, &allocator->live, compare_place)) {
        free(live);
        free(after);
        return out_of_host_memory();
    }
    remove_free(allocator, from);
    from->bytes = address - from->address;
    allocator->free_bytes -= wanted->counted;
    allocator->free_space -= wanted->bytes;
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

/* The most that can be allocated in one piece. */
static uint64_t largest_allocation(const gbx_gm_allocator *allocator) {
    uint64_t largest = largest_piece(allocator);
    largest -= largest < allocator->zone_bytes ? largest : allocator->zone_bytes;
    return largest < allocator->free_bytes ? largest : allocator->free_bytes;
}

/* With zone and spare bytes; with fewer, then without them, where there is too little space: they
 * never take addresses that allocations need. */
static span *find_room(const gbx_gm_allocator *allocator, const gbx_hal_memory *memory,
                       uint64_t alignment, span *wanted) {
    uint64_t spare = memory->spare_bytes & ~(GRANULE - 1);
    bool has_extra = allocator->free_space > allocator->free_bytes;
    uint64_t extra = has_extra ? allocator->free_space - allocator->free_bytes : 0;
    for (;; spare = spare / 2 & ~(GRANULE - 1)) {
        span *found = NULL;
        if (allocator->zone_bytes + spare <= extra &&
            gbx_checked_add_u64(wanted->rounded, allocator->zone_bytes + spare, &wanted->bytes))
            found = best_aligned_fit(allocator, wanted->bytes, alignment);
        wanted->spare_bytes = spare;
        if (found)
            return found;
        if (spare == 0)
            break;
    }
    wanted->bytes = wanted->rounded;
    return best_aligned_fit(allocator, wanted->rounded, alignment);
}

static gbx_status alloc_locked(gbx_gm_allocator *allocator, gbx_hal_memory *memory,
                               uint64_t *out_address) {
    uint64_t bytes = memory->bytes;
    uint64_t alignment = memory->alignment < GRANULE ? GRANULE : memory->alignment;
    span wanted = {.wanted = bytes, .number = allocator->next_number, .use = memory->use};
    span *found = NULL;
    /* An allocation of 0 bytes has an address of its own, too. */
    if (gbx_checked_align_up(bytes ? bytes : 1, GRANULE, &wanted.rounded)) {
        wanted.counted = wanted.rounded - (memory->uncounted_bytes & ~(GRANULE - 1));
        if (wanted.counted <= allocator->free_bytes)
            found = find_room(allocator, memory, alignment, &wanted);
    }
    if (!found)
        return gbx_fail(GBX_EXHAUSTED,
                        "allocating %" PRIu64 " bytes (aligned to %" PRIu64
                        ") of global memory: %" PRIu64 " of %" PRIu64 " bytes are free, %" PRIu64
                        " in one piece; free something or open the chip with more",
                        bytes - memory->uncounted_bytes, alignment, allocator->free_bytes,
                        allocator->bytes, largest_allocation(allocator));
    wanted.address = aligned_start(found, alignment);
    GBX_TRY(carve(allocator, found, &wanted));
    ++allocator->next_number;
    *out_address = wanted.address;
    memory->spare_bytes = wanted.spare_bytes;
    return NULL;
}

gbx_status gbx_gm_allocator_alloc(gbx_gm_allocator *allocator, gbx_hal_memory *wanted,
                                  uint64_t *out_address) {
    uint64_t alignment = wanted->alignment;
    *out_address = 0;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "allocating global memory: an alignment of %" PRIu64
                        " is not a power of two",
                        alignment);
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = alloc_locked(allocator, wanted, out_address);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

/* Says what is at an address that should have been the start of an allocation. */
static gbx_status not_allocated(const gbx_gm_allocator *allocator, const char *doing,
                                uint64_t address) {
    if (address < allocator->base || address - allocator->base >= allocator->space_bytes)
        return gbx_fail(GBX_OUT_OF_RANGE,
                        "%s 0x%" PRIx64 ": outside of the chip's global memory (0x%" PRIx64
                        " to 0x%" PRIx64 ")",
                        doing, address, allocator->base, allocator->base + allocator->space_bytes);
    const span *inside = find_at(&allocator->live, address);
    if (inside && address - inside->address < inside->rounded)
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
    allocator->free_bytes += found->counted;
    allocator->free_space += found->bytes;
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

/* `is_write`: the bytes are data of the host from now on. */
static gbx_status check_locked(const gbx_gm_allocator *allocator, const char *doing,
                               uint64_t address, uint64_t bytes, bool is_write) {
    span *found = find_at(&allocator->live, address);
    if (!found || address - found->address >= found->rounded)
        return not_allocated(allocator, doing, address);
    uint64_t offset = address - found->address;
    if (gbx_range_is_inside(offset, bytes, found->wanted)) {
        bool is_first = found->kept_end == 0;
        if (is_write && (is_first || offset < found->kept_first))
            found->kept_first = offset;
        if (is_write && offset + bytes > found->kept_end)
            found->kept_end = offset + bytes;
        return NULL;
    }
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "%s 0x%" PRIx64 ": %" PRIu64 " bytes from there go beyond the %" PRIu64
                    " bytes allocated at 0x%" PRIx64,
                    doing, address, bytes, found->wanted, found->address);
}

gbx_status gbx_gm_allocator_check(gbx_gm_allocator *allocator, const char *doing, uint64_t address,
                                  uint64_t bytes) {
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = check_locked(allocator, doing, address, bytes, false);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

gbx_status gbx_gm_allocator_check_write(gbx_gm_allocator *allocator, const char *doing,
                                        uint64_t address, uint64_t bytes) {
    pthread_mutex_lock(&allocator->mutex);
    gbx_status status = check_locked(allocator, doing, address, bytes, true);
    pthread_mutex_unlock(&allocator->mutex);
    return status;
}

typedef struct visitor {
    const gbx_gm_allocator *allocator;
    gbx_hal_visit visit;
    void *context;
} visitor;

static void visit_span(const void *node, VISIT order, void *closure) {
    const visitor *to = closure;
    const span *live = *(span *const *)node;
    if (order != postorder && order != leaf)
        return;
    bool is_new = live->number >= to->allocator->first_new;
    to->visit(to->context, &(gbx_hal_live){.address = live->address,
                                           .bytes = live->wanted,
                                           .spare_bytes = live->spare_bytes,
                                           .zone_end = live->address + live->bytes,
                                           .kept_first = is_new ? live->kept_first : 0,
                                           .kept_end = is_new ? live->kept_end : live->wanted,
                                           .number = live->number,
                                           .use = live->use});
}

void gbx_gm_allocator_visit(gbx_gm_allocator *allocator, gbx_hal_visit visit, void *context) {
    visitor to = {allocator, visit, context};
    pthread_mutex_lock(&allocator->mutex);
    if (visit)
        twalk_r(allocator->live, visit_span, &to);
    allocator->first_new = allocator->next_number;
    pthread_mutex_unlock(&allocator->mutex);
}

void gbx_gm_allocator_room(gbx_gm_allocator *allocator, uint64_t *out_free, uint64_t *out_largest) {
    pthread_mutex_lock(&allocator->mutex);
    *out_free = allocator->free_bytes;
    *out_largest = largest_allocation(allocator);
    pthread_mutex_unlock(&allocator->mutex);
}
