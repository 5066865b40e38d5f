#include "runtime/tensormap_and_ringbuffer/buffer_table.h"

void gbx_buffer_table_init(gbx_buffer_table *table, uint32_t heap_capacity, uint32_t cache_count) {
    table->cache_shift = 64 - (uint32_t)__builtin_ctz(cache_count);
    table->heap_capacity = heap_capacity;
    table->buffers[GBX_STRAYS].end = UINT64_MAX;
}

bool gbx_buffer_table_add(gbx_buffer_table *table, uint64_t base, uint64_t bytes) {
    uint32_t at = table->fixed_count;
    if (bytes == 0 || at == GBX_TENSOR_MAP_MAX_BUFFERS)
        return false;
    uint32_t number = ++table->fixed_count;
    table->buffers[number] = (gbx_buffer){.base = base, .end = base + bytes};
    for (; at > 0 && table->buffers[table->fixed[at - 1]].base > base; --at)
        table->fixed[at] = table->fixed[at - 1];
    table->fixed[at] = number;
    return true;
}

/* The last buffer that begins at or before an address. */
static uint32_t search_fixed(const gbx_buffer_table *table, uint64_t address) {
    uint32_t low = 0, high = table->fixed_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->buffers[table->fixed[middle]].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? table->fixed[low - 1] : GBX_STRAYS;
}

/* The same for the heap, where bases ascend from the oldest allocation on, around its end. */
static uint32_t search_heap(const gbx_buffer_table *table, uint64_t address) {
    uint64_t oldest = table->heap_count ? table->buffers[gbx_buffer_table_heap(table, 0)].base : 0;
    uint64_t wanted = address - oldest + (address < oldest ? table->heap_bytes : 0);
    uint32_t low = 0, high = table->heap_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t base = table->buffers[gbx_buffer_table_heap(table, middle)].base;
        if (base - oldest + (base < oldest ? table->heap_bytes : 0) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? gbx_buffer_table_heap(table, low - 1) : GBX_STRAYS;
}

uint32_t gbx_buffer_table_search(const gbx_buffer_table *table, uint64_t first, uint64_t end) {
    bool is_heap = first - table->heap_base < table->heap_bytes;
    uint32_t number = is_heap ? search_heap(table, first) : search_fixed(table, first);
    const gbx_buffer *b = &table->buffers[number];
    return first < b->base || end > b->end ? GBX_STRAYS : number;
}
