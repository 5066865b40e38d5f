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

/* One call of pread or pwrite, with the shape of the latter. */
typedef ssize_t move_call(int fd, const void *bytes, size_t size, off_t offset);

static ssize_t read_at(int fd, const void *bytes, size_t size, off_t offset) {
    return pread(fd, (void *)(uintptr_t)bytes, size, offset);
}

static gbx_status move(gbx_hal *hal, move_call *call, const char *doing, uint64_t address,
                       const void *host, uint64_t bytes) {
    gbx_sim *sim = (gbx_sim *)hal;
    GBX_TRY(gbx_sim_check_range(sim, doing, address, bytes));
    for (uint64_t done = 0; done < bytes;) {
        uint64_t rest = bytes - done;
        ssize_t moved =
            call(sim->gm_fd, (const char *)host + done, rest < COPY_BYTES ? rest : COPY_BYTES,
                 (off_t)(address - sim->gm_base + done));
        if (moved > 0)
            done += (uint64_t)moved;
        else if (moved == 0 || errno != EINTR)
            return gbx_fail(GBX_IO, "%s 0x%" PRIx64 ": %s", doing, address + done,
                            moved < 0 ? strerror(errno) : "the memory file ends there");
    }
    return NULL;
}

static gbx_status copy_in(gbx_hal *hal, uint64_t to, const void *from, uint64_t bytes) {
    return move(hal, pwrite, "copying in to", to, from, bytes);
}

static gbx_status copy_out(gbx_hal *hal, void *to, uint64_t from, uint64_t bytes) {
    return move(hal, read_at, "copying out from", from, to, bytes);
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
