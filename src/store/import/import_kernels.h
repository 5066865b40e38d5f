/* Names of kernels and of their arguments, as the entries of a manifest tell them one by one. */
#ifndef GBX_STORE_IMPORT_IMPORT_KERNELS_H
#define GBX_STORE_IMPORT_IMPORT_KERNELS_H

#include <jansson.h>

#include <glassbox/chip.h>

#include "base/status.h"
#include "store/import/import_entry.h"
#include "store/import/import_fields.h"

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
 * Makes "kernels" of a manifest's members the kernels of the record of the run: its own table,
 * where it has one, and those that entries name beside it. Fails where the table is none, has more
 * than GBX_MAX_KERNELS, or two names for one func_id, and where entries disagree; `path` stands for
 * the manifest.
 */
GBX_MUST_USE gbx_status gbx_import_kernels_merge(const gbx_import_kernels *kernels,
                                                 const char *path, json_t *members);

void gbx_import_kernels_free(gbx_import_kernels *kernels);

/* --- by name --- */

typedef struct gbx_import_name {
    const char *text;
    uint32_t func_id;
} gbx_import_name;

typedef struct gbx_import_names {
    gbx_import_name *items; /* sorted by text, which is borrowed */
    size_t count;
} gbx_import_names;

/* Of what gbx_import_kernels_merge made, which has to outlive them. */
GBX_MUST_USE gbx_status gbx_import_names_make(const json_t *kernels, gbx_import_names *out_names);

/* The func_id of the kernel of that name; UINT32_MAX where there is none, or where two have it. */
uint32_t gbx_import_names_find(const gbx_import_names *names, const char *text);

void gbx_import_names_free(gbx_import_names *names);

#endif
