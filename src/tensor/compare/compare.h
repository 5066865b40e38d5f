/*
 * Tensors against each other, element by element: what run says of an output and its golden, diff
 * of two dumps, check of a kernel and its reference. All functions are pure and for any thread.
 */
#ifndef GBX_TENSOR_COMPARE_COMPARE_H
#define GBX_TENSOR_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/*
 * Two elements are near when |got - want| <= atol + rtol * |want|, or when at most `ulp` values of
 * the dtype lie from one to the other. Zeros are equal whatever their signs, infinities equal
 * only themselves, and NaN equals NaN unless is_strict_nan. Where one of two is NaN, or an
 * infinity that the other is not, they are not near, whatever the tolerance. A tolerance that is
 * negative or NaN is 0, one that is infinite is DBL_MAX. Bools are zero or not, whatever their
 * bits.
 */
typedef struct gbx_tolerance {
    double rtol;
    double atol;
    uint64_t ulp;
    bool is_strict_nan;
} gbx_tolerance;

/* The tolerance for outputs of a dtype if none is given: 0 for integers and bool. */
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
    gbx_compared_element worst;     /* the one that is furthest beyond its tolerance; one of two
                                       that is not finite is furthest; of equals the first */
    double worst_excess; /* how far: |got - want| / (atol + rtol * |want|), at most DBL_MAX, and
                            infinite where one is not finite; where atol and rtol are both 0,
                            |got - want| itself */
} gbx_comparison;

void gbx_comparison_begin(gbx_comparison *comparison, uint32_t dtype,
                          const gbx_tolerance *tolerance);

/* Where all calls but the last take multiples of this many elements, it does not matter how the
 * elements were cut; else the sums may differ in their last bits, and nothing but the sums. */
enum { GBX_COMPARISON_STEP = 4096 };

/*
 * The next `count` elements, as in a row of a tensor (4 bits: two a byte, the first in the low half
 * of the first byte). Need not be aligned. The same calls give the same bits, sums too, on
 * every processor of an architecture. Every dtype is summed in float64, and blocks of float64 whose
 * squares are beyond its range in long doubles.
 */
void gbx_comparison_add(gbx_comparison *comparison, const void *got, const void *want,
                        size_t count);

/* The root of the mean square difference of the finite pairs; NaN where there is none. */
double gbx_comparison_rmse(const gbx_comparison *comparison);

/* 1 where both are all zeros, 0 where one is; NaN where no pair is finite. */
double gbx_comparison_cosine(const gbx_comparison *comparison);

/* Two row-major payloads of a tensor. */
gbx_comparison gbx_compare(const gbx_tensor *tensor, const void *got, const void *want,
                           const gbx_tolerance *tolerance);

/* The index of an element by its row-major number, a number for each dimension. */
void gbx_compare_index(const gbx_tensor *tensor, uint64_t number, int64_t out_index[GBX_MAX_DIMS]);

#endif
