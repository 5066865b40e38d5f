/* Names of a run in quotes, ready to be put into JSON. */
#ifndef GBX_STORE_MANIFEST_MANIFEST_NAMES_H
#define GBX_STORE_MANIFEST_MANIFEST_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <glassbox/chip.h>

#include "base/status.h"
#include "store/manifest/manifest_file.h"
#include "store/run/run_info.h"

typedef struct gbx_quoted {
    char *text; /* not zero terminated */
    size_t size;
} gbx_quoted;

/* JSON of a string, valid UTF-8 whatever the bytes are; `null` for NULL. The caller frees it. */
GBX_MUST_USE gbx_status gbx_quote(const char *text, gbx_quoted *out_quoted);

typedef struct gbx_manifest_names {
    size_t kernel_count;
    struct gbx_kernel_names {
        gbx_quoted name;
        gbx_quoted slots[GBX_RUN_KERNEL_SLOTS]; /* size 0 where a slot has no name */
    } * kernels;
    const struct gbx_kernel_names *by_func_id[GBX_MAX_KERNELS]; /* NULL where not registered */
} gbx_manifest_names;

/* Zero before. */
GBX_MUST_USE gbx_status gbx_manifest_names_fill(gbx_manifest_names *names, const gbx_run_info *run);
void gbx_manifest_names_free(gbx_manifest_names *names);

/* `null` for a func_id that is not registered. */
gbx_quoted gbx_manifest_kernel_name(const gbx_manifest_names *names, uint32_t func_id);

#endif
