/* One tensor against what was expected of it, element by element. */
#ifndef GBX_SCENE_COMPARE_H
#define GBX_SCENE_COMPARE_H

#include <glassbox/tensor.h>
#include <stdbool.h>

/* Two elements are equal when |got - want| <= atol + rtol * |want|; NaN equals NaN, and infinities
 * equal themselves alone. */
typedef struct gbx_comparison {
    uint64_t elements;
    uint64_t mismatches;
    double max_abs; /* of |got - want| over all elements; infinite where one of two is not finite */
    double max_rel; /* of |got - want| / |want|, likewise, where want is not 0 */
    uint64_t first_bad; /* row-major number of the first mismatch, when there is one */
    uint64_t got_bits;  /* the two elements there */
    uint64_t want_bits;
} gbx_comparison;

/* Compares two row-major payloads of a tensor. 64-bit integers are subtracted exactly. */
gbx_comparison gbx_compare(const gbx_tensor *tensor, const void *got, const void *want, double rtol,
                           double atol);

/* The index of an element by its row-major number, a number for each dimension. */
void gbx_compare_index(const gbx_tensor *tensor, uint64_t number, int64_t out_index[GBX_MAX_DIMS]);

#endif
