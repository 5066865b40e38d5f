/* Which element of a view lies at a place in memory. */
#ifndef GBX_ANALYSIS_VIEW_FIND_H
#define GBX_ANALYSIS_VIEW_FIND_H

#include <stdbool.h>
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

/* Likewise for the addresses [begin, end), which lie in the extent of the view; false also where
 * the search is given up. */
bool gbx_view_find_bytes(const gbx_tensor *view, uint64_t begin, uint64_t end,
                         gbx_view_element *out_element);

/* The first such element, row-major. */
bool gbx_view_find_first(const gbx_tensor *view, uint64_t begin, uint64_t end,
                         uint64_t *out_number);

/* Widens an element to all those beside it in a dimension without gaps. */
void gbx_view_widen(const gbx_tensor *view, gbx_view_element *element);

#endif
