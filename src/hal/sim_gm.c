#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "hal/sim.h"

/*
 * Each open chip of a host takes one slot of addresses. The first works in plain, address sanitizer
 * and thread sanitizer programs alike; the last ends below where Linux puts shared libraries.
 */
#define FIRST_SLOT UINT64_C(0x7e9000000000)
#define SLOT_BYTES GBX_MAX_GM_BYTES
enum { SLOT_COUNT = 13 };

/*
 * The kernel's own table of mappings says which slots are taken, also for those that the host only
 * reserves: so a device pointer that the host follows faults, and never meets a mapping of others.
 */
static gbx_status take_slot(gbx_sim *sim) {
    int protection = sim->is_mapped ? PROT_READ | PROT_WRITE : PROT_NONE;
    int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    flags |= sim->is_mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    int fd = sim->is_mapped ? sim->gm_fd : -1;
    for (uint64_t slot = 0; slot < SLOT_COUNT; ++slot) {
        uint64_t base = FIRST_SLOT + slot * SLOT_BYTES;
        void *wanted = (void *)(uintptr_t)base;
        void *window = mmap(wanted, sim->gm_bytes, protection, flags, fd, 0);
        if (window == wanted) {
            sim->gm_base = base;
            return NULL;
        }
        if (window == MAP_FAILED && errno != EEXIST)
            return gbx_fail(GBX_IO,
                            "mapping %" PRIu64 " bytes of global memory at 0x%" PRIx64 ": %s",
                            sim->gm_bytes, base, strerror(errno));
        if (window != MAP_FAILED)
            munmap(window, sim->gm_bytes); /* a kernel that takes the address for a hint */
    }
    return gbx_fail(GBX_EXHAUSTED,
                    "opening a chip: all %d address slots for global memory are taken; close "
                    "another chip first",
                    (int)SLOT_COUNT);
}

gbx_status gbx_sim_gm_create(gbx_sim *sim) {
    sim->gm_fd =
        gbx_above_standard_streams(memfd_create("glassbox-gm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (sim->gm_fd < 0)
        return gbx_fail(GBX_IO, "creating global memory: %s", strerror(errno));
    if (ftruncate(sim->gm_fd, (off_t)sim->gm_bytes) != 0)
        return gbx_fail(GBX_IO, "sizing global memory to %" PRIu64 " bytes: %s", sim->gm_bytes,
                        strerror(errno));
    /* A kernel that got hold of the descriptor cannot shrink the file under the host's mapping. */
    if (fcntl(sim->gm_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return gbx_fail(GBX_IO, "sealing the size of global memory: %s", strerror(errno));
    GBX_TRY(take_slot(sim));
    return gbx_gm_allocator_create(sim->gm_base, sim->gm_bytes, &sim->allocator);
}

void gbx_sim_gm_destroy(gbx_sim *sim) {
    gbx_gm_allocator_destroy(sim->allocator);
    if (sim->gm_base)
        munmap((void *)(uintptr_t)sim->gm_base, sim->gm_bytes);
    if (sim->gm_fd >= 0)
        close(sim->gm_fd);
}
