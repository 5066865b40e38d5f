/* Names of kernels and of their arguments, as the entries of a manifest tell them one by one. */
#ifndef GBX_STORE_IMPORT_KERNELS_H
#define GBX_STORE_IMPORT_KERNELS_H

#include <jansson.h>

#include <glassbox/chip.h>

#include "base/status.h"
#include "store/import_entry.h"
#include "store/import_fields.h"

struct gbx_import_kernel;

/* Zero before its first use. */
typedef struct gbx_import_kernels {
    struct gbx_import_kernel *by_func_id[GBX_MAX_KERNELS];
} gbx_import_kernels;

/* Remembers what an entry says; fails where another one gave a kernel another name. An arg_name
 * that differs between tasks of one kernel is that of none. */
GBX_MUST_USE gbx_status gbx_import_kernels_learn(gbx_import_kernels *kernels,
                                                 const gbx_import_fields *fields,
                                                 const gbx_import_entry *entry);

/*
 * The kernels of the record of the run: those of the manifest's own table, NULL where it has none,
 * and those that entries name beside it. Fails where the two disagree; `path` stands for the
 * manifest. The caller json_decrefs them.
 */
GBX_MUST_USE gbx_status gbx_import_kernels_merge(const gbx_import_kernels *kernels,
                                                 const char *path, const json_t *table,
                                                 json_t **out_merged);

void gbx_import_kernels_free(gbx_import_kernels *kernels);

#endif
