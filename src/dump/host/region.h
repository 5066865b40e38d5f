/* The memory of dump/abi.h, laid out in the global memory of a chip. */
#ifndef GBX_DUMP_HOST_REGION_H
#define GBX_DUMP_HOST_REGION_H

#include <stdbool.h>

#include "dump/abi.h"
#include "hal/hal.h"

typedef struct gbx_dump_region_config {
    gbx_hal *hal;
    uint32_t flags; /* GBX_DUMP_HAS_..., but for BY_BATCH, which the platform decides */
    gbx_dump_level level;
    uint32_t lane_count;
    uint32_t buffer_count; /* rounded up to a power of two */
    uint64_t arena_bytes;  /* rounded up to pages */
    uint64_t max_tensor_bytes;
    uint64_t stall_timeout_ns;
    const gbx_dump_filter *filters;
    uint32_t filter_count;
    const gbx_dump_scalar_dtypes *scalar_dtypes; /* GBX_MAX_KERNELS */
} gbx_dump_region_config;

typedef struct gbx_dump_region {
    gbx_hal *hal;
    uint64_t address;     /* of the setup; 0: there is none */
    gbx_dump_setup setup; /* as it was written */
} gbx_dump_region;

/* Fails with GBX_EXHAUSTED when global memory has no room for it, naming --dump-arena and --gm. */
GBX_MUST_USE gbx_status gbx_dump_region_create(const gbx_dump_region_config *config,
                                               gbx_dump_region *out_region);
GBX_MUST_USE gbx_status gbx_dump_region_destroy(gbx_dump_region *region);

#endif
