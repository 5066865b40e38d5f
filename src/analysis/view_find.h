/* Which element of a view lies at a place in memory. */
#ifndef GBX_ANALYSIS_VIEW_FIND_H
#define GBX_ANALYSIS_VIEW_FIND_H

#include <stdint.h>

#include <glassbox/kernel.h>

typedef enum gbx_view_found {
    GBX_VIEW_LACKS_IT,
    GBX_VIEW_HAS_IT,
    GBX_VIEW_UNDECIDED /* dimensions overlap in so many ways that the search was given up */
} gbx_view_found;

typedef struct gbx_view_element {
    uint64_t number;   /* row-major */
    int64_t begin_bit; /* from view->data */
    int64_t end_bit;
} gbx_view_element;

/* An element of a valid view that shares a bit with [begin_bit, end_bit), from view->data. */
gbx_view_found gbx_view_find(const gbx_tensor *view, int64_t begin_bit, int64_t end_bit,
                             gbx_view_element *out_element);

#endif
