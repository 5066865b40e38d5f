/* The members of a manifest beside its entries: what was run, totals, and what is missing. */
#ifndef GBX_STORE_IMPORT_IMPORT_HEAD_H
#define GBX_STORE_IMPORT_IMPORT_HEAD_H

#include <jansson.h>

#include "store/import/import.h"
#include "store/import/import_journal.h"
#include "store/import/import_kernels.h"
#include "store/import/json_pull.h"

typedef struct gbx_import_head {
    const char *path; /* of the manifest */
    json_t *members;  /* those that are known, by name */
} gbx_import_head;

/* Takes the value of a member from the file; one that is not known is only checked to be JSON. */
GBX_MUST_USE gbx_status gbx_import_head_take(gbx_import_head *head, const char *key,
                                             gbx_json_pull *pull);

/* Checks what says how the rest is to be read, and gives the name of the payload's file; NULL where
 * there is none. It lives as long as the head. */
GBX_MUST_USE gbx_status gbx_import_head_check(const gbx_import_head *head,
                                              const char **out_bin_file);

/* The totals that the manifest tells. */
GBX_MUST_USE gbx_status gbx_import_head_get_said(const gbx_import_head *head,
                                                 gbx_import_said *out_said);

/* Whether it tells how the run ended. */
bool gbx_import_head_has_status(const gbx_import_head *head);

/* LOSS, SKIPPED and END records, after all others, and after gbx_import_kernels_merge. */
GBX_MUST_USE gbx_status gbx_import_head_add_rest(const gbx_import_head *head,
                                                 const gbx_import_said *said,
                                                 gbx_import_journal *journal);

/* The text of the record of the run, after gbx_import_kernels_merge; freed by the caller. */
GBX_MUST_USE gbx_status gbx_import_head_run(const gbx_import_head *head, char **out_text);

#endif
