#include "dump/host/region.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Where the parts begin, after the address of the setup. */
typedef struct layout {
    uint64_t scalar_dtypes;
    uint64_t lanes;
    uint64_t buffers;
    uint64_t arenas;
    uint64_t bytes;
} layout;

static uint64_t to_pages(uint64_t bytes) {
    return (bytes + GBX_DUMP_PAGE_BYTES - 1) & ~(uint64_t)(GBX_DUMP_PAGE_BYTES - 1);
}

static layout layout_of(const gbx_dump_setup *setup) {
    layout at = {.scalar_dtypes = to_pages(sizeof *setup)};
    at.lanes = at.scalar_dtypes + sizeof(gbx_dump_scalar_dtypes) * GBX_MAX_KERNELS;
    at.buffers = to_pages(at.lanes + setup->lane_count * sizeof(gbx_dump_lane));
    at.arenas = at.buffers + (uint64_t)setup->lane_count * setup->buffer_count *
                                 GBX_DUMP_BUFFER_LINES * GBX_DUMP_LINE_BYTES;
    at.bytes = at.arenas + setup->lane_count * setup->arena_bytes;
    return at;
}

static void fill_setup(const gbx_dump_region_config *config, gbx_dump_setup *setup) {
    memset(setup, 0, sizeof *setup);
    setup->magic = GBX_DUMP_MAGIC;
    setup->flags = config->flags;
    /* Without a mapping the host must not read what the device is writing. */
    if (!config->hal->ops->map)
        setup->flags |= GBX_DUMP_BY_BATCH;
    setup->level = (uint32_t)config->level;
    setup->lane_count = config->lane_count;
    setup->buffer_count = 1;
    while (setup->buffer_count < config->buffer_count)
        setup->buffer_count *= 2;
    setup->arena_bytes = to_pages(config->arena_bytes);
    setup->max_tensor_bytes = config->max_tensor_bytes;
    setup->stall_timeout_ns = config->stall_timeout_ns;
    setup->filter_count = config->filter_count;
    if (config->filter_count)
        memcpy(setup->filters, config->filters, config->filter_count * sizeof *setup->filters);
}

/* All buffers are free; the rings are empty but for that. */
static gbx_status write_lane(gbx_hal *hal, const gbx_dump_setup *setup, uint32_t index) {
    gbx_dump_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return gbx_fail_memory("preparing a dump");
    gbx_spsc_init(&lane->free);
    gbx_spsc_init(&lane->ready);
    for (uint32_t i = 0; i < setup->buffer_count; ++i)
        gbx_spsc_try_push(&lane->free, lane->free_slots, setup->buffer_count, i);
    atomic_init(&lane->open_item, GBX_DUMP_NO_ITEM);
    gbx_status status =
        hal->ops->copy_in(hal, setup->lanes + index * sizeof *lane, lane, sizeof *lane);
    free(lane);
    return status;
}

static gbx_status write_region(const gbx_dump_region_config *config, gbx_dump_region *region) {
    gbx_hal *hal = region->hal;
    GBX_TRY(hal->ops->copy_in(hal, region->address, &region->setup, sizeof region->setup));
    GBX_TRY(hal->ops->copy_in(hal, region->setup.scalar_dtypes, config->scalar_dtypes,
                              sizeof(gbx_dump_scalar_dtypes) * GBX_MAX_KERNELS));
    for (uint32_t i = 0; i < region->setup.lane_count; ++i)
        GBX_TRY(write_lane(hal, &region->setup, i));
    return NULL;
}

gbx_status gbx_dump_region_create(const gbx_dump_region_config *config,
                                  gbx_dump_region *out_region) {
    gbx_dump_setup *setup = &out_region->setup;
    out_region->hal = config->hal;
    out_region->address = 0;
    fill_setup(config, setup);
    layout at = layout_of(setup);
    gbx_status status =
        config->hal->ops->alloc(config->hal, at.bytes, GBX_DUMP_PAGE_BYTES, &out_region->address);
    if (status)
        return gbx_status_annotate(status,
                                   "making room for a dump on the chip: %" PRIu32
                                   " threads with arenas of %" PRIu64
                                   " bytes; take less (--dump-arena) or open the chip with more "
                                   "memory (--gm)",
                                   setup->lane_count, setup->arena_bytes);
    setup->scalar_dtypes = out_region->address + at.scalar_dtypes;
    setup->lanes = out_region->address + at.lanes;
    setup->buffers = out_region->address + at.buffers;
    setup->arenas = out_region->address + at.arenas;
    status = write_region(config, out_region);
    return status ? gbx_status_first(status, gbx_dump_region_destroy(out_region)) : NULL;
}

gbx_status gbx_dump_region_destroy(gbx_dump_region *region) {
    uint64_t address = region->address;
    region->address = 0;
    return address ? region->hal->ops->free(region->hal, address) : NULL;
}
