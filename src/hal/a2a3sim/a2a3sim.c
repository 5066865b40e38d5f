#include <stdatomic.h>
#include <string.h>

#include "hal/sim.h"

static gbx_status open_chip(const gbx_hal_config *config, gbx_hal **out_hal) {
    return gbx_sim_open(&gbx_a2a3sim_ops, true, config, out_hal);
}

/* Device address and host pointer are the same number here. */
static void *host_pointer(uint64_t address) {
    return (void *)(uintptr_t)address;
}

static gbx_status copy_in(gbx_hal *hal, uint64_t to, const void *from, uint64_t bytes) {
    GBX_TRY(gbx_gm_allocator_check_write(((gbx_sim *)hal)->allocator, "copying in to", to, bytes));
    if (bytes == sizeof(uint64_t) && to % sizeof(uint64_t) == 0) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        atomic_store_explicit((_Atomic uint64_t *)host_pointer(to), word, memory_order_release);
        return NULL;
    }
    memcpy(host_pointer(to), from, bytes);
    return NULL;
}

static gbx_status copy_out(gbx_hal *hal, void *to, uint64_t from, uint64_t bytes) {
    GBX_TRY(gbx_gm_allocator_check(((gbx_sim *)hal)->allocator, "copying out from", from, bytes));
    if (bytes == sizeof(uint64_t) && from % sizeof(uint64_t) == 0) {
        uint64_t word =
            atomic_load_explicit((_Atomic uint64_t *)host_pointer(from), memory_order_acquire);
        memcpy(to, &word, sizeof word);
        return NULL;
    }
    memcpy(to, host_pointer(from), bytes);
    return NULL;
}

static gbx_status map(gbx_hal *hal, uint64_t address, uint64_t bytes, void **out_pointer) {
    *out_pointer = NULL;
    GBX_TRY(gbx_gm_allocator_check_write(((gbx_sim *)hal)->allocator, "mapping", address, bytes));
    *out_pointer = host_pointer(address);
    return NULL;
}

const gbx_hal_ops gbx_a2a3sim_ops = {
    .name = "a2a3sim",
    .description = "the host maps global memory at the chip's own addresses",
    .open = open_chip,
    .close = gbx_sim_close,
    .alloc = gbx_sim_alloc,
    .alloc_with = gbx_sim_alloc_with,
    .free = gbx_sim_free,
    .visit = gbx_sim_visit,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .map = map,
    .launch = gbx_sim_launch,
    .wait = gbx_sim_wait,
    .caps = gbx_sim_caps,
};
