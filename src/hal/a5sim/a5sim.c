#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "hal/sim.h"

static gbx_status open_chip(const gbx_hal_config *config, gbx_hal **out_hal) {
    return gbx_sim_open(&gbx_a5sim_ops, false, config, out_hal);
}

/* Fails where a copy of `bytes` at `address` failed with an errno, or moved fewer. */
static gbx_status check_moved(const char *doing, uint64_t address, uint64_t bytes, int error,
                              size_t moved) {
    if (!error && moved == bytes)
        return NULL;
    return gbx_fail(GBX_IO, "%s 0x%" PRIx64 ": %s", doing, address + moved,
                    error ? strerror(error) : "the memory file ends there");
}

static gbx_status copy_in(gbx_hal *hal, uint64_t to, const void *from, uint64_t bytes) {
    static const char doing[] = "copying in to";
    gbx_sim *sim = (gbx_sim *)hal;
    size_t moved;
    GBX_TRY(gbx_gm_allocator_check_write(sim->allocator, doing, to, bytes));
    int error = gbx_pwrite_all(sim->gm_fd, from, bytes, to - sim->gm_base, &moved);
    return check_moved(doing, to, bytes, error, moved);
}

static gbx_status copy_out(gbx_hal *hal, void *to, uint64_t from, uint64_t bytes) {
    static const char doing[] = "copying out from";
    gbx_sim *sim = (gbx_sim *)hal;
    size_t moved;
    GBX_TRY(gbx_gm_allocator_check(sim->allocator, doing, from, bytes));
    int error = gbx_pread_all(sim->gm_fd, to, bytes, from - sim->gm_base, &moved);
    return check_moved(doing, from, bytes, error, moved);
}

const gbx_hal_ops gbx_a5sim_ops = {
    .name = "a5sim",
    .description = "the host cannot map global memory; bytes are copied",
    .open = open_chip,
    .close = gbx_sim_close,
    .alloc = gbx_sim_alloc,
    .alloc_with = gbx_sim_alloc_with,
    .free = gbx_sim_free,
    .visit = gbx_sim_visit,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .map = NULL,
    .launch = gbx_sim_launch,
    .wait = gbx_sim_wait,
    .caps = gbx_sim_caps,
};
