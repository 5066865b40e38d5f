/*
 * Which buffer an address lies in. Buffers never overlap; they are fixed, or allocations of a heap,
 * which are freed in the order they were made. A view that does not lie in one buffer is a stray.
 * Used by one thread; allocates nothing.
 */
#ifndef GBX_RUNTIME_BUFFER_TABLE_H
#define GBX_RUNTIME_BUFFER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/tensormap_and_ringbuffer/tensor_map.h"

/* The buffer of strays; its base is address 0. */
#define GBX_STRAYS 0
#define GBX_FIRST_HEAP_BUFFER (1 + GBX_TENSOR_MAP_MAX_BUFFERS)

typedef struct gbx_buffer {
    uint64_t base;
    uint64_t end; /* 0 while the number is free */
    /* For the tensor map; 0 in a new buffer, and again before its number is reused. */
    uint32_t groups; /* the first of the list */
    uint32_t recent; /* the group that was found last */
} gbx_buffer;

typedef struct gbx_buffer_table {
    gbx_buffer *buffers;     /* strays, fixed ones, ring of the heap's */
    uint32_t *address_cache; /* by tensor.data: the buffer that it was last found in */
    uint32_t cache_shift;
    uint32_t heap_capacity, heap_oldest, heap_count;
    uint64_t heap_base, heap_bytes;
    uint32_t fixed_count;
    uint32_t fixed[GBX_TENSOR_MAP_MAX_BUFFERS]; /* numbers of buffers by ascending base */
} gbx_buffer_table;

/* `table` is zero but for its two arrays, which are zeroed: GBX_FIRST_HEAP_BUFFER + heap_capacity
 * buffers, and a cache whose length is a power of two from 2 on. */
void gbx_buffer_table_init(gbx_buffer_table *table, uint32_t heap_capacity, uint32_t cache_count);

/* Adds a fixed buffer; false when there is no room or it is empty. */
bool gbx_buffer_table_add(gbx_buffer_table *table, uint64_t base, uint64_t bytes);

/* The buffer that holds all of [first, end), without the cache. */
uint32_t gbx_buffer_table_search(const gbx_buffer_table *table, uint64_t first, uint64_t end);

/* The number of the n-th oldest allocation of the heap. */
static inline uint32_t gbx_buffer_table_heap(const gbx_buffer_table *table, uint32_t n) {
    uint32_t at = table->heap_oldest + n;
    return GBX_FIRST_HEAP_BUFFER + (at < table->heap_capacity ? at : at - table->heap_capacity);
}

static inline uint32_t *gbx_buffer_table_slot(const gbx_buffer_table *table, uint64_t data) {
    return &table->address_cache[data * UINT64_C(0x9e3779b97f4a7c15) >> table->cache_shift];
}

/* False when heap_capacity are alive. */
static inline bool gbx_buffer_table_push(gbx_buffer_table *table, uint64_t base, uint64_t bytes) {
    if (table->heap_count == table->heap_capacity)
        return false;
    uint32_t number = gbx_buffer_table_heap(table, table->heap_count++);
    table->buffers[number] = (gbx_buffer){.base = base, .end = base + bytes};
    *gbx_buffer_table_slot(table, base) = number;
    return true;
}

/* Drops the oldest allocation and returns its number. There is at least one. */
static inline uint32_t gbx_buffer_table_pop(gbx_buffer_table *table) {
    uint32_t number = gbx_buffer_table_heap(table, 0);
    table->buffers[number].base = table->buffers[number].end = 0;
    --table->heap_count;
    if (++table->heap_oldest == table->heap_capacity)
        table->heap_oldest = 0;
    return number;
}

/* The buffer that holds all of [first, end), or GBX_STRAYS, for a tensor with this `data`. */
static inline uint32_t gbx_buffer_table_find(gbx_buffer_table *table, uint64_t data, uint64_t first,
                                             uint64_t end) {
    uint32_t *slot = gbx_buffer_table_slot(table, data);
    const gbx_buffer *cached = &table->buffers[*slot];
    if (*slot && first >= cached->base && end <= cached->end)
        return *slot;
    uint32_t number = gbx_buffer_table_search(table, first, end);
    if (number != GBX_STRAYS)
        *slot = number;
    return number;
}

#endif
