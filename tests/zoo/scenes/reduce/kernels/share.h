/* Which elements of a row a block works on, and the slots and flags of the mix. */
#ifndef REDUCE_SHARE_H
#define REDUCE_SHARE_H

#include <glassbox/kernel.h>

enum {
    MIX_X = 0,
    MIX_TOTAL = 1,
    MIX_CENTRED = 2,
    MIX_SQUARES = 3,
    MIX_Y = 4,
    MIX_FLAGS = 5,
    MIX_EPS = 6
};
enum { CENTRED = 0, SQUARED = 1 };

static inline int64_t share_begin(const uint64_t *args, int64_t length) {
    return length * gbx_local(args)->block_idx / gbx_local(args)->block_num;
}

static inline int64_t share_end(const uint64_t *args, int64_t length) {
    return length * (gbx_local(args)->block_idx + 1) / gbx_local(args)->block_num;
}

static inline uint32_t *flags_of(const uint64_t *args, unsigned slot) {
    return gbx_tensor_origin(gbx_arg_tensor(args, slot), sizeof(uint32_t));
}

/* A flag of this block of the mix. */
static inline uint32_t *mix_flag(const uint64_t *args, int64_t flag) {
    const gbx_tensor *flags = gbx_arg_tensor(args, MIX_FLAGS);
    return flags_of(args, MIX_FLAGS) + gbx_local(args)->block_idx * flags->strides[0] + flag;
}

#endif
