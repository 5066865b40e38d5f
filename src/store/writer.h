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
#include "store/journal/format.h"

#define GBX_STORE_PAGE_BYTES 4096u

typedef struct gbx_store gbx_store;

typedef struct gbx_store_config {
    const char *directory; /* of the dump; tensor_dump/ is made inside, with all parents */
    const char *run_json;  /* text of the RUN record: a JSON object, see docs/format.md */
    bool has_tensors;      /* tensor_dump.bin and tensor_dump.json are wanted */
    bool has_args;         /* args_dump.json and kernel_args_dump.json are wanted */
    bool is_deduplicated;
} gbx_store_config;

/*
 * Makes the files, the RUN record in the journal. A file that is there is never overwritten: fails
 * with GBX_INVALID_ARGUMENT when tensor_dump/ holds a dump already, or when run_json does not fit a
 * block of the journal (1 MiB). GBX_IO when the system refuses, GBX_EXHAUSTED when memory is out.
 * The strings of `config` are not needed afterwards. Takes 9.1 MiB of memory, touched as it is
 * used.
 */
GBX_MUST_USE gbx_status gbx_store_create(const gbx_store_config *config, gbx_store **out_store);
/* Closes what is open; without a finish the journal stays as it is, for gbx_dump_recover. */
void gbx_store_destroy(gbx_store *store);

/* Destroys it, and removes what it has made. */
void gbx_store_discard(gbx_store *store);

/* --- payload --- */

/* A range of the payload file of its own, `bytes` rounded up to pages; a multiple of pages. Never
 * fails: room on the disk is taken by the write. */
uint64_t gbx_store_reserve(gbx_store *store, uint64_t bytes);

/*
 * Whole pages, from page-aligned memory to a page-aligned offset of a reserved range. After it
 * returns they are in the file, though not yet durable, and the memory is free for anything else.
 * At the speed of the disk when `bytes` is 1 MiB or more. The file ends with the last page written.
 *
 * GBX_LOST when the disk refuses: parts may be in the file. That stops nothing: later writes are
 * tried, and the journal goes on.
 */
GBX_MUST_USE gbx_status gbx_store_write(gbx_store *store, uint64_t offset, const void *pages,
                                        uint64_t bytes);

/* Where equal bytes lie already; false when they are not known to. Best effort: the table is
 * bounded. With is_deduplicated false it finds nothing. */
bool gbx_store_find(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset);
void gbx_store_remember(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t offset);

/* --- journal --- */

/*
 * Room for a record of `words`, 4 to GBX_BLOCK_MAX_BYTES / 8, filled in by the caller before the
 * next call. It is zero but for head.type and head.words. May write the block before it, so all
 * payload of earlier records is written by now. NULL after a failure of the journal, which stays
 * (gbx_store_failure); the journal then ends with the last block that went out.
 */
void *gbx_store_append(gbx_store *store, gbx_record_type type, uint32_t words);

/* To be called before a record is appended that uses a dtype: announces it where readers have to
 * know it (docs/format.md). */
void gbx_store_announce_dtype(gbx_store *store, uint32_t dtype);

/* Hands all records to the system: what was appended before survives the death of this process.
 * GBX_LOST after a failure of the journal. */
GBX_MUST_USE gbx_status gbx_store_flush(gbx_store *store);

/* The first failure of the journal or of the payload, borrowed; NULL for none. */
gbx_status gbx_store_failure(const gbx_store *store);

/* --- the end --- */

/*
 * The END record, all bytes durable, then the manifests (each a temporary file, synced and
 * renamed). `end->head` is filled in but for type and words, `end->bytes` is ignored; `status` is
 * its text, and `outcome` says the same for programs, NULL where that is not known. Once, as the
 * last call before destroy.
 *
 * Fails with GBX_LOST when the journal failed before or something cannot be made durable (END then
 * lacks GBX_FLAG_COMPLETE) or the manifests cannot be written; all of it is tried nevertheless.
 * Writes of payload that failed before are no failure here.
 */
GBX_MUST_USE gbx_status gbx_store_finish(gbx_store *store, const gbx_record_end *end,
                                         const char *status, const gbx_record_outcome *outcome);

#endif
