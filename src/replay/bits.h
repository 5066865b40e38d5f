/*
 * Outputs of a replay and of the dump, compared bit for bit.
 *
 * An output holds a pattern before its kernel is called. An element that keeps it in two runs with
 * different patterns was not written. All functions are pure.
 */
#ifndef GBX_REPLAY_BITS_H
#define GBX_REPLAY_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/* Row-major payloads of one tensor; all but `replay` may be NULL. */
typedef struct gbx_bits_payloads {
    const unsigned char *dump;        /* to compare with */
    const unsigned char *replay;      /* of the run with the first pattern */
    const unsigned char *other;       /* of the run with the other pattern */
    const unsigned char *start;       /* what it held before the first run; NULL for an inout */
    const unsigned char *other_start; /* and before the other; equal elements were known */
    const unsigned char *before;      /* the run: an unchanged element counts as not written */
} gbx_bits_payloads;

typedef struct gbx_bits_comparison {
    uint64_t elements;
    uint64_t not_written;    /* the rest is compared */
    uint64_t unstable;       /* written, and different in both runs */
    uint64_t first_unstable; /* where unstable > 0, like the next */
    uint64_t last_unstable;
    uint64_t mismatches; /* written, and different from the dump */
    double max_abs;      /* of mismatches: |dump - replay|; infinite if one is not finite */
    uint64_t first_bad;  /* row-major number of the first mismatch */
    uint64_t last_bad;
    uint64_t dump_bits; /* of the first mismatch */
    uint64_t replay_bits;
} gbx_bits_comparison;

gbx_bits_comparison gbx_bits_compare(const gbx_tensor *tensor, const gbx_bits_payloads *payloads);

/* Whether the kernel wrote an element; without `other`, whether it differs from its start. */
bool gbx_bits_is_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                         uint64_t number);

/* The raw bits of an element by its row-major number. */
uint64_t gbx_bits_element(const gbx_tensor *tensor, const unsigned char *payload, uint64_t number);

/* Whether any element of a payload has the same bits in another. */
bool gbx_bits_share_element(const gbx_tensor *tensor, const void *payload, const void *start);

/*
 * `want` and `again` are results of the same calls with two starts. Sets each element that still
 * holds its start in both, where the starts differ, to 0 in all three payloads, and counts them.
 */
uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const void *const starts[2], void *got);

/* |a - b|: 0 for equal bits, otherwise infinite if one is not finite. */
double gbx_bits_distance(uint32_t dtype, uint64_t a, uint64_t b);

#endif
