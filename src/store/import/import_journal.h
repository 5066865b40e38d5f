/*
 * A journal in memory, written record by record, whose first record, that of the run, is written
 * last: what it says may stand at the end of a manifest.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_JOURNAL_H
#define GBX_STORE_IMPORT_IMPORT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "store/journal/format.h"
#include "store/reader.h"

/* The fields are the functions', but for those that say so. */
typedef struct gbx_import_journal {
    int fd;              /* of the file in memory; -1 for none */
    uint64_t file_bytes; /* of whole blocks; may be read */
    unsigned char *buffer;
    uint32_t used_bytes;
    uint32_t record_count;
    uint32_t sequence;
    gbx_reader_totals totals; /* of all that was added; may be read */
} gbx_import_journal;

GBX_MUST_USE gbx_status gbx_import_journal_open(gbx_import_journal *journal);
void gbx_import_journal_close(gbx_import_journal *journal);

/* Copies a record of head.words words. */
GBX_MUST_USE gbx_status gbx_import_journal_add(gbx_import_journal *journal,
                                               const gbx_record *record);

/* The end: writes what is left, and the record of the run, whose text is GBX_IMPORT_RUN_MAX_BYTES
 * at most. */
enum { GBX_IMPORT_RUN_MAX_BYTES = GBX_BLOCK_MAX_BYTES - sizeof(gbx_record_run) };
GBX_MUST_USE gbx_status gbx_import_journal_finish(gbx_import_journal *journal, const char *run_text,
                                                  size_t size);

#endif
