/*
 * Shared by the files of the comparison: one set of kernels for each level of the processor. All
 * leave the same bits in a block.
 */
#ifndef GBX_TENSOR_COMPARE_COMPARE_KERNELS_H
#define GBX_TENSOR_COMPARE_COMPARE_KERNELS_H

#include "tensor/compare/compare.h"
#include "tensor/copy/strided_copy.h"

/* All kernels but the plain one take multiples of this many elements. */
#define GBX_COMPARE_GROUP 16

/* Sums are kept in this many lanes: element i of a block goes to lane i modulo this. */
#define GBX_COMPARE_LANES 8

#define GBX_COMPARE_NONE UINT64_MAX

/* A tolerance, ready for use: no field is negative, NaN or infinite. If rtol and atol were both
 * 0, is_exact is set and atol is 1: then no difference is near by tolerance, and the excess,
 * which is the difference divided by the tolerance, is the difference itself. */
typedef struct gbx_compare_rule {
    uint32_t dtype;
    bool is_strict_nan;
    bool is_exact;
    double rtol;
    double atol;
    uint64_t ulp;
    uint64_t sign_bit; /* of a float; 0 where it has none */
} gbx_compare_rule;

typedef enum gbx_compare_sum {
    GBX_SUM_SQUARE_DIFFERENCE,
    GBX_SUM_SQUARE_GOT,
    GBX_SUM_SQUARE_WANT,
    GBX_SUM_PRODUCT,
    GBX_COMPARE_SUMS
} gbx_compare_sum;

/*
 * At most GBX_COMPARISON_STEP elements. The extremes start with those of the previous blocks. A
 * square or product is rounded before it is added, or needs no rounding.
 */
typedef struct gbx_compare_block {
    uint64_t unequal;
    uint64_t mismatches;
    uint64_t not_finite;
    double max_abs;
    double max_rel;
    uint64_t max_ulp;
    uint64_t first_bad;  /* element of the block; GBX_COMPARE_NONE if there is none, */
    uint64_t worst;      /* or none worse than those of the previous blocks */
    double worst_excess; /* negative before the first mismatch of all */
    double sums[GBX_COMPARE_SUMS][GBX_COMPARE_LANES];
} gbx_compare_block;

/* Adds elements `from` to `end` of a block to what the block holds. `from` is a multiple of
 * GBX_COMPARE_GROUP, except for the plain kernel. The pointers point at the first element of the
 * block. */
typedef void gbx_compare_kernel(const gbx_compare_rule *rule, const unsigned char *got,
                                const unsigned char *want, size_t from, size_t end,
                                gbx_compare_block *block);

/* For every dtype. */
gbx_compare_kernel gbx_compare_plain;

/* With 32-byte vectors: dtypes of GBX_COMPARE_BYTES. */
gbx_compare_kernel gbx_compare_bytes;

/* By dtype. */
extern gbx_compare_kernel *const gbx_compare_avx2[GBX_DTYPE_COUNT];
extern gbx_compare_kernel *const gbx_compare_avx512[GBX_DTYPE_COUNT];

/* The highest level whose kernels this processor runs. */
gbx_cpu_level gbx_compare_level_detect(void);

/* gbx_comparison_add with the instructions of one level. */
void gbx_comparison_add_at(gbx_cpu_level level, gbx_comparison *comparison, const void *got,
                           const void *want, size_t count);

/* Makes an element the worst one if it is worse, or as bad and earlier. */
static inline void gbx_compare_take_worst(gbx_compare_block *block, double excess, uint64_t index) {
    if (excess > block->worst_excess || (excess == block->worst_excess && index < block->worst &&
                                         block->worst != GBX_COMPARE_NONE)) {
        block->worst_excess = excess;
        block->worst = index;
    }
}

#endif
