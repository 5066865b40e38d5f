/* Heap memory on the host: arrays that grow, and the message for running out of memory. */
#ifndef GBX_BASE_MEMORY_H
#define GBX_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* GBX_EXHAUSTED with what was being done: gbx_fail_memory("reading %s", path) is
 * "reading PATH: out of memory". */
#define gbx_fail_memory(...)                                                                       \
    gbx_status_never_null(gbx_status_make_memory(__FILE__, __LINE__, __VA_ARGS__))

GBX_MUST_USE gbx_status gbx_status_make_memory(const char *file, int line, const char *format, ...)
    GBX_PRINTF(3, 4);

/*
 * Makes room for `needed` items in an array from malloc, which at least doubles when it grows.
 * `array` is the address of the pointer to its first item; that pointer and *capacity change
 * together. False, with everything as it was, when out of memory or when the size does not fit in
 * 64 bits.
 */
GBX_MUST_USE bool gbx_array_grow(void *array, uint64_t *capacity, uint64_t needed,
                                 size_t item_bytes);

/*
 * The same with a status, for arrays of a known type:
 *
 *     GBX_TRY(gbx_array_reserve(&list->items, &list->capacity, list->count + 1, "listing
 * kernels"));
 *
 * `what` says what was being done: a string literal, without formats.
 */
#define gbx_array_reserve(array, capacity, needed, what)                                           \
    (gbx_array_grow((array), (capacity), (needed), sizeof **(array))                               \
         ? NULL                                                                                    \
         : gbx_fail_memory("%s", what))

#endif
