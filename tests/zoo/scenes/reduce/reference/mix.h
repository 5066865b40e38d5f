/* The mix by its definition: each reference computes what it needs from the inputs of the task. */
#ifndef REDUCE_REFERENCE_MIX_H
#define REDUCE_REFERENCE_MIX_H

#include <math.h>

#include "../../element.h"

static inline int64_t first(const uint64_t *args, int64_t block) {
    return extent(args, 0, 0) * block / gbx_local(args)->block_num;
}

static inline double centred_at(const uint64_t *args, int64_t i) {
    return *at1(args, 0, i) - (double)*at1(args, 1, 0) / (double)extent(args, 0, 0);
}

static inline double squares_of(const uint64_t *args, int64_t block) {
    double sum = 0.0;
    for (int64_t i = first(args, block); i < first(args, block + 1); ++i)
        sum += pow(centred_at(args, i), 2.0);
    return sum;
}

static inline void write_y(const uint64_t *args, int64_t begin, int64_t end) {
    int64_t block = gbx_local(args)->block_idx;
    double mean = squares_of(args, block) / (double)(first(args, block + 1) - first(args, block));
    for (int64_t i = begin; i < end; ++i)
        *at1(args, 4, i) = (float)(centred_at(args, i) / sqrt(mean + gbx_arg_f32(args, 6)));
}

static inline void set_flag(const uint64_t *args, int64_t flag) {
    const gbx_tensor *flags = gbx_arg_tensor(args, 5);
    uint32_t *words = gbx_tensor_origin(flags, sizeof *words);
    words[gbx_local(args)->block_idx * flags->strides[0] + flag] = 1;
}

#endif
