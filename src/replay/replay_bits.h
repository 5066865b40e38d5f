/*
 * What a replay left in an output against what the dump holds, bit for bit. An output is filled
 * with a poison before the kernel runs; where both of two runs with different poisons leave it, the
 * kernel did not write. All functions are pure.
 */
#ifndef GBX_REPLAY_REPLAY_BITS_H
#define GBX_REPLAY_REPLAY_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/tensor.h>

enum { GBX_REPLAY_POISON = 0xa5, GBX_REPLAY_OTHER_POISON = 0x5a };

/* Row-major payloads of one tensor; those marked so may be NULL. */
typedef struct gbx_bits_payloads {
    const unsigned char *dump;   /* NULL: nothing to compare with */
    const unsigned char *replay; /* of the run with GBX_REPLAY_POISON */
    const unsigned char *other;  /* NULL; of the run with GBX_REPLAY_OTHER_POISON */
    const unsigned char *before; /* NULL; what the tensor held before: elements that still do count
                                    as not written */
    bool is_poisoned;            /* false for an inout, which holds its own bytes before */
} gbx_bits_payloads;

typedef struct gbx_bits_comparison {
    uint64_t elements;
    uint64_t not_written; /* the rest is compared */
    uint64_t unstable;    /* written, and not the same in both runs */
    uint64_t mismatches;  /* written, and not what the dump holds */
    double max_abs;       /* of them: |dump - replay|; infinite where one is not finite */
    uint64_t first_bad;   /* row-major number of the first, where there are mismatches */
    uint64_t dump_bits;   /* of it */
    uint64_t replay_bits;
} gbx_bits_comparison;

gbx_bits_comparison gbx_bits_compare(const gbx_tensor *tensor, const gbx_bits_payloads *payloads);

/* Whether the kernel wrote an element; needs `replay`, and `other` where there may be poison. */
bool gbx_bits_is_written(const gbx_tensor *tensor, const gbx_bits_payloads *payloads,
                         uint64_t number);

/* The raw bits of an element by its row-major number. */
uint64_t gbx_bits_element(const gbx_tensor *tensor, const unsigned char *payload, uint64_t number);

/* Whether bits are what an element that was not written holds, with either of the two poisons. */
bool gbx_bits_is_poison(const gbx_tensor *tensor, uint64_t number, uint64_t bits);

/* Whether any element of a row-major payload has all its bytes equal to `poison`. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison);

/*
 * `want` and `again` are what the same calls left over two poisons that differ in every bit. Sets
 * each element that holds its poison in both to 0 in all three, and counts them.
 */
uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const unsigned char poisons[2], void *got);

/* |a - b|: 0 for equal bits, infinite where one of two is not finite. */
double gbx_bits_distance(uint32_t dtype, uint64_t a, uint64_t b);

#endif
