/* One entry of a manifest as a record of a journal. */
#ifndef GBX_STORE_IMPORT_IMPORT_ENTRY_H
#define GBX_STORE_IMPORT_IMPORT_ENTRY_H

#include <glassbox/kernel.h>

#include "store/import/import_fields.h"
#include "store/journal/format.h"

enum { GBX_IMPORT_KERNELS_MAX = 3 };

typedef struct gbx_import_entry {
    bool has_task_id;
    bool has_task_seq;
    bool has_block_num;
    bool has_subtasks; /* func_ids stand at the place of their subtask */
    bool is_ambiguous; /* it says that arg_index may be another one */
    uint64_t task_id;
    uint64_t task_seq;
    uint32_t block_num;
    uint32_t func_ids[GBX_IMPORT_KERNELS_MAX];      /* UINT32_MAX for none */
    gbx_scan_value kernels[GBX_IMPORT_KERNELS_MAX]; /* their names; null where not told */
    gbx_scan_value arg_name;                        /* null where not told */
    unsigned told;                                  /* GBX_TOLD_... */

    /* SCALAR or TENSOR, but for head.task and GBX_FLAG_DUPLICATE. */
    union {
        gbx_record head;
        gbx_record_scalar scalar;
        gbx_record_tensor tensor;
        uint64_t
            words[sizeof(gbx_record_tensor) / 8 + 2 * GBX_MAX_DIMS + sizeof(gbx_record_stats) / 8];
    } record;
} gbx_import_entry;

/* Fails with GBX_BAD_FORMAT, with entry and field, where anything of it is wrong. What points at
 * text points into that of `fields`. */
GBX_MUST_USE gbx_status gbx_import_entry_read(const gbx_import_fields *fields,
                                              gbx_import_entry *out_entry);

#endif
