/* The elements of one tensor or scalar, readable in any order: the source of texts, histograms and
 * exports. */
#ifndef GBX_ANALYSIS_ELEMENTS_H
#define GBX_ANALYSIS_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/kernel.h>

#include "base/status.h"

/* Elements are numbered row-major from 0. */
typedef struct gbx_elements {
    uint32_t dtype;
    uint32_t ndims;
    int64_t shape[GBX_MAX_DIMS];
    uint64_t count;  /* of the shape */
    uint64_t stored; /* how many can be read: fewer than `count` if the tensor is truncated */

    /* Reads `count` raw elements from `first` on, all stored, each into the low bits of a word. */
    gbx_status (*read)(const void *context, uint64_t first, size_t count, uint64_t *out_bits);
    const void *context;
} gbx_elements;

static inline gbx_status gbx_elements_read(const gbx_elements *elements, uint64_t first,
                                           size_t count, uint64_t *out_bits) {
    return elements->read(elements->context, first, count, out_bits);
}

#endif
