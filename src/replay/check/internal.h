/* What a kernel did not write of an output: elements that still hold the poison from before. */
#ifndef GBX_REPLAY_CHECK_INTERNAL_H
#define GBX_REPLAY_CHECK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <glassbox/tensor.h>

/* Whether any element of a row-major payload has all its bytes equal to `poison`. */
bool gbx_poison_is_in(const gbx_tensor *tensor, const void *payload, unsigned char poison);

/*
 * `want` and `again` are what the same calls left over two poisons that differ in every bit. Sets
 * each element that holds its poison in both to 0 in all three, and counts them.
 */
uint64_t gbx_not_written_clear(const gbx_tensor *tensor, void *want, void *again,
                               const unsigned char poisons[2], void *got);

#endif
