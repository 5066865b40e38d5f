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
    const char *directory; /* of the dump; tensor_dump/ is created in it, with all parents */
    const char *run_json;  /* text of the RUN record: a JSON object, see docs/format.md */
    bool has_tensors;      /* tensor_dump.bin and tensor_dump.json are wanted */
    bool has_args;         /* args_dump.json and kernel_args_dump.json are wanted */
    bool is_deduplicated;
} gbx_store_config;

/*
 * Creates the files, with the RUN record in the journal. Never overwrites a file: fails with
 * GBX_INVALID_ARGUMENT when tensor_dump/ already holds a dump, or when run_json does not fit in a
 * block of the journal (1 MiB). GBX_IO when the system refuses, GBX_EXHAUSTED when out of memory.
 * The strings of `config` are not needed afterwards. Reserves 9.1 MiB of memory, touched as it is
 * used.
 */
GBX_MUST_USE gbx_status gbx_store_create(const gbx_store_config *config, gbx_store **out_store);
/* Closes the files; without a finish the journal stays as it is, for gbx_dump_recover. */
void gbx_store_destroy(gbx_store *store);

/* Destroys it and removes the files it created. */
void gbx_store_discard(gbx_store *store);

/* --- payload --- */

/* Reserves a range of the payload file, `bytes` rounded up to pages, and returns its offset, a
 * multiple of pages. Never fails: the write takes the disk space. */
uint64_t gbx_store_reserve(gbx_store *store, uint64_t bytes);

/*
 * Writes complete pages from page-aligned memory to a page-aligned offset of a reserved range. When
 * it returns they are in the file, though not yet durable, and the memory can be reused. Runs at
 * the speed of the disk when `bytes` is 1 MiB or more. The file ends with the last page written.
 *
 * GBX_LOST when the disk refuses: parts may be in the file. Later writes are still tried, and the
 * journal continues.
 */
GBX_MUST_USE gbx_status gbx_store_write(gbx_store *store, uint64_t offset, const void *pages,
                                        uint64_t bytes);

/* Where equal bytes are already stored; false when none are known. Best effort: the table is
 * bounded. Finds nothing when is_deduplicated is false. */
bool gbx_store_find(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t *out_offset);
void gbx_store_remember(gbx_store *store, gbx_hash128 hash, uint64_t bytes, uint64_t offset);

/* --- journal --- */

/*
 * Room for a record of `words` words, 4 to GBX_BLOCK_MAX_BYTES / 8, which the caller fills before
 * the next call. It is zero except for head.type and head.words. May write the block before it, so
 * the payload of all earlier records must be written by now. NULL after a failure of the journal,
 * which is permanent (gbx_store_failure); the journal then ends with the last block written.
 */
void *gbx_store_append(gbx_store *store, gbx_record_type type, uint32_t words);

/* Call it before appending a record that uses a dtype: announces the dtype if readers must know it
 * (docs/format.md). */
void gbx_store_announce_dtype(gbx_store *store, uint32_t dtype);

/* Hands all records to the system: what was appended so far survives the death of this process.
 * GBX_LOST after a failure of the journal. */
GBX_MUST_USE gbx_status gbx_store_flush(gbx_store *store);

/* The first failure of the journal or of the payload, borrowed; NULL for none. */
gbx_status gbx_store_failure(const gbx_store *store);

/* The errno of the first write that the disk refused; 0 for none. */
int gbx_store_disk_error(const gbx_store *store);

/* Blocks of the journal that are written. When the count changes, all records that were appended
 * before, except the one that an append just returned, are in the file. */
uint32_t gbx_store_block_count(const gbx_store *store);

/* After a failure of the journal: drops the records that were not written, and makes room for a few
 * more, which say what was lost, and END. gbx_store_finish still reports the failure. */
void gbx_store_begin_last(gbx_store *store);

/* --- the end --- */

/* What END says of announced arguments; else, that it is unknown. */
void gbx_store_set_sums(gbx_store *store, const gbx_record_sums *sums);

/*
 * Writes the END record, makes all bytes durable, then writes the manifests (each a temporary file,
 * synced and renamed). The caller fills `end->head` except type and words; `end->bytes` is ignored.
 * `status` is its text, `outcome` the same for programs, or NULL when unknown. Call it once, last
 * before destroy.
 *
 * Fails with GBX_LOST when the journal fails or something cannot be made durable (END then lacks
 * GBX_FLAG_COMPLETE; it is tried in the journal's last block) or the manifests cannot be written;
 * all of it is tried nevertheless. Earlier failed writes of payload are not a failure here.
 */
GBX_MUST_USE gbx_status gbx_store_finish(gbx_store *store, const gbx_record_end *end,
                                         const char *status, const gbx_record_outcome *outcome);

#endif
