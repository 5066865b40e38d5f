/* A part of what gbx_tensor_gather gives. Device code. */
#ifndef GBX_TENSOR_COPY_GATHER_RANGE_H
#define GBX_TENSOR_COPY_GATHER_RANGE_H

#include <stdint.h>

#include <glassbox/kernel.h>

/*
 * Copies `bytes` of the row-major payload of a view, from byte `first` on, to `to`: what
 * gbx_tensor_gather would leave at payload + first. Both are multiples of the element's size (of a
 * byte for 4 bits), and first + bytes is at most gbx_tensor_payload_bytes. `buffer` is where
 * gbx_tensor.data lies for the caller. Large ranges of whole rows are as fast as the whole.
 */
void gbx_tensor_gather_range(const gbx_tensor *tensor, const void *buffer, uint64_t first,
                             uint64_t bytes, void *to);

#endif
