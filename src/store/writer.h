/*
 * Writes a dump directory: payload, journal, and at the end the manifests. One thread uses a
 * writer.
 *
 *     gbx_store_create -> (reserve, write, append, flush)* -> finish -> destroy
 */
#ifndef GBX_STORE_WRITER_H
#define GBX_STORE_WRITER_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/status.h"
#include "store/format.h"

#define GBX_STORE_PAGE_BYTES 4096u

typedef struct gbx_store gbx_store;

typedef struct gbx_store_config {
    const char *directory;   /* of the dump; tensor_dump/ is made inside, with all parents */
    const char *run_json;    /* text of the RUN record: a JSON object, see docs/format.md */
    bool has_tensors;        /* tensor_dump.bin and tensor_dump.json are wanted */
    bool has_args;           /* args_dump.json and kernel_args_dump.json are wanted */
    bool is_deduplicated;
} gbx_store_config;

/* Fails with GBX_EXISTS... when tensor_dump/ holds a dump already. */
GBX_MUST_USE gbx_status gbx_store_create(const gbx_store_config *config, gbx_store **out_store);
/* Closes what is open; without a finish the journal stays as it is, for gbx_store_recover. */
void gbx_store_destroy(gbx_store *store);

/* --- payload --- */

/* A range of the payload file of its own, `bytes` rounded up to pages; a multiple of pages. Never
 * fails: room on the disk is taken by the write. */
uint64_t gbx_store_reserve(gbx_store *store, uint64_t bytes);

/* Whole pages, from page-aligned memory to a page-aligned offset. After it returns they are in the
 * file, though not yet durable. */
GBX_MUST_USE gbx_status gbx_store_write(gbx_store *store, uint64_t offset, const void *pages,
                                        uint64_t bytes);

/* Where equal bytes lie already; false when they are not known to. Best effort: the table is
 * bounded. With is_deduplicated false it finds nothing. */
bool gbx_store_find(const gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset);
void gbx_store_remember(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t offset);

/* --- journal --- */

/*
 * Room for a record of `words`, filled in by the caller before the next call; head.words is set.
 * May write the block before it, so all payload of earlier records is written by now. NULL after a
 * failure, which stays (gbx_store_failure).
 */
void *gbx_store_append(gbx_store *store, gbx_record_type type, uint32_t words);

/* Hands all records to the system: what was appended before survives the death of this process. */
GBX_MUST_USE gbx_status gbx_store_flush(gbx_store *store);

/* The first failure of the journal or of the payload, borrowed; NULL for none. */
gbx_status gbx_store_failure(const gbx_store *store);

/* --- the end --- */

/*
 * The END record, all bytes durable, then the manifests (each a temporary file, synced and
 * renamed). `end->head` is filled in but for type and words; `status` is its text.
 */
GBX_MUST_USE gbx_status gbx_store_finish(gbx_store *store, const gbx_record_end *end,
                                         const char *status);

#endif
