/* Whether the RANGE of every block is true: readers of some tasks pass over blocks because of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/journal/block_range.h"
#include "store/journal/journal_file.h"
#include "store/verify/internal.h"

static void compare(gbx_findings *findings, const gbx_journal_block *block, const char *what,
                    uint64_t expected, uint64_t got) {
    char text[80];
    snprintf(text, sizeof text, "%s in the RANGE of block %" PRIu32, what, block->header.sequence);
    gbx_findings_compare(findings, GBX_FINDING_RECORD, text, expected, got);
}

/* The records of the block were read. */
static void check_range(gbx_findings *findings, const gbx_journal_block *block) {
    const gbx_record *first = (const gbx_record *)(const void *)block->records;
    const gbx_record_range *said = (const gbx_record_range *)(const void *)first;
    gbx_record_range is;
    if (first->type != GBX_RECORD_RANGE)
        return;
    gbx_block_range_make(block->records + first->words, block->record_bytes - first->words * 8,
                         &is);
    if (!gbx_block_range_is_intact(said))
        compare(findings, block, "check", gbx_block_range_checksum(said), said->check);
    compare(findings, block, "types", is.types, said->types);
    bool has_tasks = is.types & GBX_TASK_TYPES;
    if (!has_tasks && said->head.task > said->last_task)
        return;
    compare(findings, block, "first task", is.head.task, said->head.task);
    compare(findings, block, "last task", is.last_task, said->last_task);
}

static gbx_status check_blocks(gbx_journal_source *source, uint64_t block_count,
                               gbx_journal_block *block, gbx_findings *findings) {
    uint64_t at;
    GBX_TRY(gbx_journal_check_header(source->fd, source->path, &at));
    for (uint32_t i = 0; i < block_count; ++i) {
        gbx_block_problem problem;
        bool is_good;
        GBX_TRY(gbx_journal_read_head(source, at, i, block, &is_good, &problem));
        if (is_good)
            GBX_TRY(gbx_journal_read_records(source, block, &is_good, &problem));
        if (!is_good)
            return gbx_fail(GBX_BAD_FORMAT,
                            "%s changed while it was being checked: at offset %" PRIu64 ", %s",
                            source->path, problem.offset, problem.text);
        check_range(findings, block);
        at += sizeof block->header + block->record_bytes;
    }
    return NULL;
}

gbx_status gbx_verify_ranges(int journal_fd, const gbx_reader *reader, gbx_findings *findings) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    gbx_journal_source source = {.fd = journal_fd,
                                 .path = gbx_reader_get_origin(reader)->records_path,
                                 .end = extent->good_bytes};
    gbx_journal_block block = {.records = malloc(GBX_BLOCK_MAX_BYTES)};
    if (!block.records)
        return gbx_fail_memory("checking %s", source.path);
    gbx_status status = check_blocks(&source, extent->block_count, &block, findings);
    free(block.records);
    return status;
}
