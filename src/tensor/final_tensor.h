/*
 * The output and in-out tensors of a run when it has ended, and where their bytes are: on the chip
 * in one piece, or in pieces that the orchestration copies back one by one.
 */
#ifndef GBX_TENSOR_FINAL_TENSOR_H
#define GBX_TENSOR_FINAL_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/orchestration.h>

#include "base/status.h"

/* Bytes of a tensor that lie in global memory. */
typedef struct gbx_tensor_piece {
    uint64_t offset;  /* of the first in the tensor */
    uint64_t address; /* of the first in global memory */
    uint64_t bytes;
} gbx_tensor_piece;

typedef struct gbx_final_tensor {
    uint32_t arg_index; /* of the run */
    gbx_role role;      /* output or inout */
    /* Row-major; `data` is the host's memory, which holds the bytes that lie in no piece. */
    gbx_tensor tensor;
    const gbx_tensor_piece *pieces; /* ascending and disjoint, none empty */
    size_t piece_count;
} gbx_final_tensor;

/*
 * What a series of copies into a tensor leaves behind, where a later copy
 * overwrites an earlier one; adjacent pieces are joined. The caller
 * frees *out_pieces, which is NULL without any.
 */
GBX_MUST_USE gbx_status gbx_tensor_pieces_of(const gbx_tensor_piece *copies, size_t count,
                                             gbx_tensor_piece **out_pieces,
                                             size_t *out_piece_count);

#endif
