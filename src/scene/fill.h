/*
 * What a tensor holds before a run; the same bytes on every machine.
 *
 * Random element i of seed s is output i of splitmix64 started at s, so that any part of a tensor
 * can be filled on its own. Its upper 53 bits make a u in [0, 1). Floats are low + u * (high -
 * low), integers low + floor(u * (high - low + 1)), both computed in float64 and converted to the
 * dtype once (gbx_dtype_from_f64). docs/scenes.md shows it in numpy.
 */
#ifndef GBX_SCENE_FILL_H
#define GBX_SCENE_FILL_H

#include <glassbox/tensor.h>

#include "base/status.h"

typedef enum gbx_fill_kind {
    GBX_FILL_NONE = 0, /* an output without fill: poisoned */
    GBX_FILL_CONSTANT = 1,
    GBX_FILL_RANDOM = 2,
    GBX_FILL_ARANGE = 3,
    GBX_FILL_FILE = 4
} gbx_fill_kind;

typedef struct gbx_fill {
    gbx_fill_kind kind;
    uint64_t value_bits; /* constant: the raw bits of an element */
    double low;          /* random */
    double high;         /* random: floats stay below it, integers reach it */
    uint64_t seed;       /* random */
    double start;        /* arange: element i is start + i * step, in float64, then converted */
    double step;
    const char *file; /* file: path of a .npy */
} gbx_fill;

/*
 * Fills `bytes`, gbx_tensor_payload_bytes of a row-major tensor; does not use tensor->data. Large
 * tensors are filled by several threads. Only files can fail. GBX_FILL_NONE poisons for a run.
 */
GBX_MUST_USE gbx_status gbx_fill_tensor(const gbx_fill *fill, const gbx_tensor *tensor,
                                        void *bytes);

/*
 * Makes outputs that were never written visible. For a run, floats are NaN (bytes 0xff) and
 * integers bytes 0xab; for a golden, floats are bytes 0xab and integers 0xcd: when both forget the
 * same element, they still differ.
 */
typedef enum gbx_poison { GBX_POISON_RUN = 0, GBX_POISON_GOLDEN = 1 } gbx_poison;
void gbx_poison_tensor(gbx_poison poison, const gbx_tensor *tensor, void *bytes);

#endif
