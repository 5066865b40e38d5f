#include "store/import/import_journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"

/* Blocks as large as the writer of runs makes them. The first one has the room of the largest. */
enum { BLOCK_BYTES = 256 << 10, FIRST_BLOCK_AT = sizeof(gbx_journal_header) };

static gbx_status fail_memory(int error) {
    return gbx_fail(GBX_EXHAUSTED, "reading a manifest: the host has no memory for its records: %s",
                    strerror(error));
}

gbx_status gbx_import_journal_open(gbx_import_journal *journal) {
    *journal = (gbx_import_journal){.fd = -1, .sequence = 1};
    journal->file_bytes = FIRST_BLOCK_AT + sizeof(gbx_block_header) + GBX_BLOCK_MAX_BYTES;
    journal->buffer = malloc(sizeof(gbx_block_header) + GBX_BLOCK_MAX_BYTES);
    if (!journal->buffer)
        return fail_memory(ENOMEM);
    journal->fd = memfd_create("glassbox records", MFD_CLOEXEC);
    return journal->fd >= 0 ? NULL : fail_memory(errno);
}

void gbx_import_journal_close(gbx_import_journal *journal) {
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->buffer);
    *journal = (gbx_import_journal){.fd = -1};
}

/* A block of what is in the buffer. */
static gbx_status write_block(gbx_import_journal *journal, uint32_t sequence, uint64_t offset) {
    unsigned char *records = journal->buffer + sizeof(gbx_block_header);
    gbx_block_header header = {.magic = GBX_BLOCK_MAGIC,
                               .record_bytes = journal->used_bytes,
                               .record_count = journal->record_count,
                               .sequence = sequence,
                               .checksum = XXH3_64bits(records, journal->used_bytes)};
    header.head_check = XXH3_64bits(&header, offsetof(gbx_block_header, head_check));
    memcpy(journal->buffer, &header, sizeof header);
    size_t written;
    int error = gbx_pwrite_all(journal->fd, journal->buffer, sizeof header + journal->used_bytes,
                               offset, &written);
    return error ? fail_memory(error) : NULL;
}

static gbx_status flush(gbx_import_journal *journal) {
    if (journal->used_bytes == 0)
        return NULL;
    GBX_TRY(write_block(journal, journal->sequence, journal->file_bytes));
    journal->file_bytes += sizeof(gbx_block_header) + journal->used_bytes;
    journal->sequence += 1;
    journal->used_bytes = 0;
    journal->record_count = 0;
    return NULL;
}

gbx_status gbx_import_journal_add(gbx_import_journal *journal, const gbx_record *record) {
    uint32_t bytes = record->words * 8;
    if (journal->used_bytes + bytes > BLOCK_BYTES)
        GBX_TRY(flush(journal));
    memcpy(journal->buffer + sizeof(gbx_block_header) + journal->used_bytes, record, bytes);
    journal->used_bytes += bytes;
    journal->record_count += 1;
    gbx_reader_totals_count(&journal->totals, record);
    return NULL;
}

static gbx_status write_header(const gbx_import_journal *journal) {
    gbx_journal_header header = {.version = GBX_JOURNAL_VERSION, .header_bytes = sizeof header};
    memcpy(header.magic, GBX_JOURNAL_MAGIC, sizeof header.magic);
    size_t written;
    int error = gbx_pwrite_all(journal->fd, &header, sizeof header, 0, &written);
    return error ? fail_memory(error) : NULL;
}

gbx_status gbx_import_journal_finish(gbx_import_journal *journal, const char *run_text,
                                     size_t size) {
    GBX_TRY(flush(journal));
    gbx_record_run run = {.head = {.type = GBX_RECORD_RUN,
                                   .stage = GBX_STAGE_NONE,
                                   .arg_index = GBX_ARG_NONE,
                                   .words = GBX_BLOCK_MAX_BYTES / 8},
                          .bytes = size};
    unsigned char *records = journal->buffer + sizeof(gbx_block_header);
    memset(records, 0, GBX_BLOCK_MAX_BYTES);
    memcpy(records, &run, sizeof run);
    memcpy(records + sizeof run, run_text, size);
    journal->used_bytes = GBX_BLOCK_MAX_BYTES;
    journal->record_count = 1;
    GBX_TRY(write_block(journal, 0, FIRST_BLOCK_AT));
    journal->used_bytes = 0;
    journal->record_count = 0;
    return write_header(journal);
}
