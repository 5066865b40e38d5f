#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { FIRST_CAPACITY = 16 };

gbx_status gbx_status_make_memory(const char *file, int line, const char *format, ...) {
    char doing[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
    return gbx_status_make(file, line, GBX_EXHAUSTED, "%s: out of memory", doing);
}

bool gbx_array_grow(void *array, uint64_t *capacity, uint64_t needed, size_t item_bytes) {
    if (needed <= *capacity)
        return true;
    uint64_t wanted = *capacity < FIRST_CAPACITY / 2 ? FIRST_CAPACITY : *capacity * 2;
    if (wanted < needed)
        wanted = needed;
    uint64_t bytes;
    if (!gbx_checked_mul_u64(wanted, item_bytes, &bytes))
        return false;
    /* The pointer is of another type than void *, so it is copied as bytes. */
    void *items;
    memcpy(&items, array, sizeof items);
    items = realloc(items, bytes);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = wanted;
    return true;
}
