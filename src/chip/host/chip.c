#include "chip/host/chip.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"

enum { ALLOC_ALIGNMENT = 512, PAGE_BYTES = 4096 };

static gbx_status check_limit(const char *what, uint64_t wanted, uint64_t most) {
    if (wanted <= most)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "opening a chip: %" PRIu64 " %s requested, at most %" PRIu64 " are possible",
                    wanted, what, most);
}

static gbx_status resolve_config(const gbx_chip_config *config, gbx_device_function device_main,
                                 const gbx_hal_ops **out_ops, gbx_hal_config *out_hal_config) {
    if (config->platform)
        GBX_TRY(gbx_status_annotate(gbx_hal_find(config->platform, out_ops), "opening a chip"));
    else
        *out_ops = gbx_hal_platform(0);
    if (config->device != GBX_DEVICE_PROCESS && config->device != GBX_DEVICE_THREAD)
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "opening a chip: device %d is neither GBX_DEVICE_PROCESS nor "
                        "GBX_DEVICE_THREAD",
                        (int)config->device);
    *out_hal_config = (gbx_hal_config){
        .device = config->device,
        .blocks = config->blocks ? config->blocks : GBX_DEFAULT_BLOCKS,
        .aicpu_threads = config->aicpu_threads ? config->aicpu_threads : GBX_DEFAULT_AICPU_THREADS,
        .gm_bytes = config->gm_bytes ? config->gm_bytes : GBX_DEFAULT_GM_BYTES,
        .chip_program = config->chip_program,
        .device_main = device_main,
    };
    GBX_TRY(check_limit("blocks", out_hal_config->blocks, GBX_MAX_BLOCKS));
    GBX_TRY(check_limit("AICPU threads", out_hal_config->aicpu_threads, GBX_MAX_AICPU_THREADS));
    GBX_TRY(check_limit("bytes of global memory", out_hal_config->gm_bytes, GBX_MAX_GM_BYTES));
    gbx_checked_align_up(out_hal_config->gm_bytes, PAGE_BYTES, &out_hal_config->gm_bytes);
    return NULL;
}

/* The control block and the room for a launch's payload: one allocation that the chip owns. */
typedef struct own_memory {
    gbx_control_block control;
    uint64_t payload[GBX_MAX_PAYLOAD_BYTES / sizeof(uint64_t)];
} own_memory;

static gbx_status prepare_control(gbx_chip *chip) {
    const gbx_hal_ops *ops = gbx_chip_ops(chip);
    const uint64_t magic = GBX_CONTROL_MAGIC;
    GBX_TRY(
        gbx_status_annotate(ops->alloc(chip->hal, sizeof(own_memory), PAGE_BYTES, &chip->control),
                            "opening a chip with too little global memory"));
    chip->scratch = chip->control + offsetof(own_memory, payload);
    return ops->copy_in(chip->hal, chip->control + offsetof(gbx_control_block, header.magic),
                        &magic, sizeof magic);
}

gbx_status gbx_chip_open_with(const gbx_chip_config *config, gbx_device_function device_main,
                              gbx_chip **out_chip) {
    static const gbx_chip_config defaults;
    *out_chip = NULL;
    if (!config)
        config = &defaults;
    const gbx_hal_ops *ops;
    gbx_hal_config hal_config;
    GBX_TRY(resolve_config(config, device_main, &ops, &hal_config));
    gbx_chip *chip = calloc(1, sizeof *chip);
    if (!chip)
        return gbx_fail_memory("opening a chip");
    chip->device = config->device;
    chip->blocks = hal_config.blocks;
    chip->aicpu_threads = hal_config.aicpu_threads;
    gbx_status status = ops->open(&hal_config, &chip->hal);
    if (!status)
        status = prepare_control(chip);
    if (status) {
        gbx_chip_close(chip);
        return status;
    }
    *out_chip = chip;
    return NULL;
}

void gbx_chip_close(gbx_chip *chip) {
    if (!chip)
        return;
    if (chip->hal)
        gbx_chip_ops(chip)->close(chip->hal);
    gbx_chip_forget_kernels(chip);
    free(chip);
}

gbx_status gbx_chip_check_alive(const gbx_chip *chip, const char *doing) {
    if (chip->failure == GBX_OK)
        return NULL;
    return gbx_fail(GBX_DEVICE_LOST, "%s: this chip has failed (%s); close it and open another",
                    doing, gbx_code_name(chip->failure));
}

bool gbx_chip_has_failed(const gbx_chip *chip) {
    return chip->failure != GBX_OK;
}

const char *gbx_chip_platform(const gbx_chip *chip) {
    return gbx_chip_ops(chip)->name;
}

const char *gbx_platform_name(uint32_t index) {
    const gbx_hal_ops *ops = gbx_hal_platform(index);
    return ops ? ops->name : NULL;
}

const char *gbx_platform_description(uint32_t index) {
    const gbx_hal_ops *ops = gbx_hal_platform(index);
    return ops ? ops->description : NULL;
}

bool gbx_platform_maps_memory(uint32_t index) {
    const gbx_hal_ops *ops = gbx_hal_platform(index);
    return ops && ops->map != NULL;
}

gbx_status gbx_chip_alloc(gbx_chip *chip, gbx_hal_memory *wanted, uint64_t *out_address) {
    wanted->alignment = ALLOC_ALIGNMENT;
    return gbx_chip_ops(chip)->alloc_with(chip->hal, wanted, out_address);
}

gbx_status gbx_gm_alloc(gbx_chip *chip, uint64_t bytes, uint64_t *out_address) {
    return gbx_chip_alloc(chip, &(gbx_hal_memory){.bytes = bytes, .use = GBX_HAL_BUFFER},
                          out_address);
}

/* Callers may not free or write the chip's own memory. */
static gbx_status check_foreign(const gbx_chip *chip, const char *doing, uint64_t address) {
    if (address < chip->control || address - chip->control >= sizeof(own_memory))
        return NULL;
    return gbx_fail(GBX_INVALID_ARGUMENT, "%s 0x%" PRIx64 ": this is the chip's own control memory",
                    doing, address);
}

gbx_status gbx_gm_free(gbx_chip *chip, uint64_t address) {
    GBX_TRY(check_foreign(chip, "freeing", address));
    return gbx_chip_ops(chip)->free(chip->hal, address);
}

gbx_status gbx_gm_copy_in(gbx_chip *chip, uint64_t to, const void *from, size_t bytes) {
    GBX_TRY(check_foreign(chip, "copying in to", to));
    return gbx_chip_ops(chip)->copy_in(chip->hal, to, from, bytes);
}

gbx_status gbx_gm_copy_out(gbx_chip *chip, void *to, uint64_t from, size_t bytes) {
    return gbx_chip_ops(chip)->copy_out(chip->hal, to, from, bytes);
}

gbx_status gbx_gm_map(gbx_chip *chip, uint64_t address, uint64_t bytes, void **out_pointer) {
    *out_pointer = NULL;
    const gbx_hal_ops *ops = gbx_chip_ops(chip);
    if (!ops->map)
        return gbx_fail(GBX_UNSUPPORTED,
                        "mapping 0x%" PRIx64
                        ": the host of %s cannot map global memory; copy instead",
                        address, ops->name);
    GBX_TRY(check_foreign(chip, "mapping", address));
    return ops->map(chip->hal, address, bytes, out_pointer);
}
