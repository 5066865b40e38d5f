/*
 * Compares tensors element by element: for run an output with its golden, for diff two dumps, for
 * check a kernel with its reference. All functions are pure and may be called from any thread.
 */
#ifndef GBX_TENSOR_COMPARE_COMPARE_H
#define GBX_TENSOR_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/*
 * Two elements are near when |got - want| <= atol + rtol * |want|, or when at most `ulp` values of
 * the dtype lie between them. Zeros are equal whatever their signs, infinities equal only
 * themselves, and NaN equals NaN unless is_strict_nan. If only one of two is NaN, or only one is an
 * infinity, they are not near, whatever the tolerance. A tolerance that is negative or NaN counts
 * as 0, an infinite one as DBL_MAX. Bools are zero or not, whatever their bits.
 */
typedef struct gbx_tolerance {
    double rtol;
    double atol;
    uint64_t ulp;
    bool is_strict_nan;
} gbx_tolerance;

/* The tolerance of a dtype's outputs where nothing else is set: 0 for integers and bool. */
gbx_tolerance gbx_tolerance_default(uint32_t dtype);

typedef struct gbx_compared_element {
    uint64_t index; /* row-major number */
    uint64_t got_bits;
    uint64_t want_bits;
} gbx_compared_element;

/* Sums are over pairs of finite numbers; there are elements - not_finite of them. */
typedef struct gbx_comparison {
    uint32_t dtype;
    gbx_tolerance tolerance;
    uint64_t elements;
    uint64_t unequal;    /* that are not equal, near or not */
    uint64_t mismatches; /* that are not near */
    uint64_t not_finite; /* pairs with a NaN or an infinity in one or both */
    double max_abs;   /* of |got - want|; infinite where one is not finite and they are not equal */
    double max_rel;   /* of |got - want| / |want|, likewise, where want is not 0 */
    uint64_t max_ulp; /* values of the dtype from one to the other; UINT64_MAX where one of two is
                         NaN; |got - want| of integers */
    long double sum_square_difference; /* beyond the range of doubles for large float64 */
    long double sum_square_got;
    long double sum_square_want;
    long double sum_product;
    gbx_compared_element first_bad; /* where mismatches > 0, like the next */
    gbx_compared_element worst; /* the mismatch furthest beyond its tolerance; a pair with a NaN or
                                   an infinity is the furthest; the first of equals */
    double worst_excess; /* how far beyond: |got - want| / (atol + rtol * |want|), at most DBL_MAX,
                            infinite for a pair that is not finite; |got - want| itself where atol
                            and rtol are both 0 */
} gbx_comparison;

void gbx_comparison_begin(gbx_comparison *comparison, uint32_t dtype,
                          const gbx_tolerance *tolerance);

/* If every call but the last takes a multiple of this many elements, the result does not depend
 * on how the elements were cut. Otherwise the sums may differ in their last bits, and only the
 * sums. */
enum { GBX_COMPARISON_STEP = 4096 };

/*
 * The next `count` elements, as in a row of a tensor (4 bits: two a byte, the first in the low half
 * of the first byte). Need not be aligned. The same calls give the same bits, sums too, on
 * every processor of an architecture. Every dtype is summed in float64, and blocks of float64 whose
 * squares are beyond its range in long doubles.
 */
void gbx_comparison_add(gbx_comparison *comparison, const void *got, const void *want,
                        size_t count);

/* The root of the mean square difference of the finite pairs; NaN if there are no such pairs. */
double gbx_comparison_rmse(const gbx_comparison *comparison);

/* 1 if both are all zeros, 0 if only one is; NaN if no pair is finite. */
double gbx_comparison_cosine(const gbx_comparison *comparison);

/* Two row-major payloads of a tensor. */
gbx_comparison gbx_compare(const gbx_tensor *tensor, const void *got, const void *want,
                           const gbx_tolerance *tolerance);

/* The index of an element by its row-major number, a number for each dimension. */
void gbx_compare_index(const gbx_tensor *tensor, uint64_t number, int64_t out_index[GBX_MAX_DIMS]);

#endif
