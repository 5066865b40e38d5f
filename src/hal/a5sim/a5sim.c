#include "hal/a5sim/a5sim.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "hal/sim.h"

static gbx_status open_chip(const gbx_hal_config *config, gbx_hal **out_hal) {
    return gbx_sim_open(&gbx_a5sim_ops, false, config, out_hal);
}

/* Linux moves at most 2 GiB a call. */
#define COPY_BYTES (UINT64_C(1) << 30)

static gbx_status copy_failed(const char *doing, uint64_t address, ssize_t moved) {
    return gbx_fail(GBX_IO, "%s 0x%" PRIx64 ": %s", doing, address,
                    moved < 0 ? strerror(errno) : "the memory file ends there");
}

static gbx_status copy_in(gbx_hal *hal, uint64_t to, const void *from, uint64_t bytes) {
    gbx_sim *sim = (gbx_sim *)hal;
    GBX_TRY(gbx_sim_check_range(sim, "copying in to", to, bytes));
    const char *source = from;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t rest = bytes - done;
        ssize_t moved = pwrite(sim->gm_fd, source + done, rest < COPY_BYTES ? rest : COPY_BYTES,
                               (off_t)(to - sim->gm_base + done));
        if (moved > 0)
            done += (uint64_t)moved;
        else if (moved == 0 || errno != EINTR)
            return copy_failed("copying in to", to + done, moved);
    }
    return NULL;
}

static gbx_status copy_out(gbx_hal *hal, void *to, uint64_t from, uint64_t bytes) {
    gbx_sim *sim = (gbx_sim *)hal;
    GBX_TRY(gbx_sim_check_range(sim, "copying out from", from, bytes));
    char *target = to;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t rest = bytes - done;
        ssize_t moved = pread(sim->gm_fd, target + done, rest < COPY_BYTES ? rest : COPY_BYTES,
                              (off_t)(from - sim->gm_base + done));
        if (moved > 0)
            done += (uint64_t)moved;
        else if (moved == 0 || errno != EINTR)
            return copy_failed("copying out from", from + done, moved);
    }
    return NULL;
}

const gbx_hal_ops gbx_a5sim_ops = {
    .name = "a5sim",
    .description = "the host has no mapping of global memory; bytes move by copies",
    .open = open_chip,
    .close = gbx_sim_close,
    .alloc = gbx_sim_alloc,
    .free = gbx_sim_free,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .map = NULL,
    .launch = gbx_sim_launch,
    .wait = gbx_sim_wait,
    .caps = gbx_sim_caps,
};
