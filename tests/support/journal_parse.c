#include "journal_parse.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "scratch.h"

enum { FILE_HEAD_BYTES = 64, BLOCK_HEAD_BYTES = 32, RECORD_HEAD_BYTES = 32, RANGE = 16 };

uint32_t journal_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t journal_u64(const unsigned char *at) {
    return journal_u32(at) | (uint64_t)journal_u32(at + 4) << 32;
}

unsigned journal_record_type(const unsigned char *record) {
    return record[0];
}

size_t journal_record_bytes(const unsigned char *record) {
    return (size_t)journal_u32(record + 8) * 8;
}

static void check_file_head(const parsed_journal *journal) {
    static const unsigned char zeros[48];
    assert_true(journal->file_bytes >= FILE_HEAD_BYTES);
    assert_memory_equal(journal->file, "GBXJRNL1", 8);
    assert_int_equal(journal_u32(journal->file + 8), 2);
    assert_int_equal(journal_u32(journal->file + 12), FILE_HEAD_BYTES);
    assert_memory_equal(journal->file + 16, zeros, sizeof zeros);
}

static bool is_whole(const parsed_journal *journal, size_t offset, uint32_t sequence) {
    size_t left = journal->file_bytes - offset;
    const unsigned char *head = journal->file + offset;
    if (left < BLOCK_HEAD_BYTES || memcmp(head, "GBXB", 4) != 0)
        return false;
    uint32_t bytes = journal_u32(head + 4);
    return bytes <= left - BLOCK_HEAD_BYTES && journal_u32(head + 12) == sequence &&
           journal_u64(head + 24) == XXH3_64bits(head, 24) &&
           journal_u64(head + 16) == XXH3_64bits(head + BLOCK_HEAD_BYTES, bytes);
}

static void add_record(parsed_journal *journal, const unsigned char *record) {
    if ((journal->record_count & (journal->record_count + 1)) == 0) {
        size_t room = 2 * (journal->record_count + 1);
        journal->records = realloc(journal->records, room * sizeof *journal->records);
        assert_non_null(journal->records);
    }
    journal->records[journal->record_count++] = record;
}

static bool is_of_task(unsigned type) {
    return (type >= 3 && type <= 8) || type == 12;
}

/* The records from `first` on are those of the block. */
static void check_range(const parsed_journal *journal, size_t first, const unsigned char *range) {
    uint64_t types = 0, least = UINT64_MAX, most = 0;
    for (size_t i = first; i < journal->record_count; ++i) {
        const unsigned char *record = journal->records[i];
        uint64_t task = journal_u64(record + 16);
        types |= (uint64_t)1 << (record[0] < 64 ? record[0] : 0);
        if (is_of_task(record[0])) {
            least = task < least ? task : least;
            most = task > most ? task : most;
        }
    }
    assert_int_equal(journal_record_bytes(range), 56);
    assert_int_equal(journal_u64(range + 40), types);
    assert_int_equal(journal_u64(range + 48), XXH3_64bits(range, 48));
    if (least == UINT64_MAX) {
        assert_true(journal_u64(range + 16) > journal_u64(range + 32));
    } else {
        assert_int_equal(journal_u64(range + 16), least);
        assert_int_equal(journal_u64(range + 32), most);
    }
}

static void add_block(parsed_journal *journal, size_t offset) {
    const unsigned char *head = journal->file + offset;
    parsed_block block = {.offset = offset,
                          .record_bytes = journal_u32(head + 4),
                          .record_count = journal_u32(head + 8)};
    const unsigned char *records = head + BLOCK_HEAD_BYTES;
    size_t count = 0, first = journal->record_count;
    for (size_t at = 0; at < block.record_bytes; ++count) {
        const unsigned char *record = records + at;
        assert_true(block.record_bytes - at >= RECORD_HEAD_BYTES);
        assert_true(journal_record_bytes(record) >= RECORD_HEAD_BYTES);
        assert_true(journal_record_bytes(record) <= block.record_bytes - at);
        block.has_range |= record[0] == RANGE;
        if (record[0] == RANGE)
            assert_int_equal(at, 0);
        else
            add_record(journal, record);
        at += journal_record_bytes(record);
    }
    assert_int_equal(count, block.record_count);
    block.record_count -= block.has_range;
    if (block.has_range)
        check_range(journal, first, records);
    journal->blocks =
        realloc(journal->blocks, (journal->block_count + 1) * sizeof *journal->blocks);
    assert_non_null(journal->blocks);
    journal->blocks[journal->block_count++] = block;
    journal->good_bytes = offset + BLOCK_HEAD_BYTES + block.record_bytes;
}

void journal_parse(const char *path, parsed_journal *out_journal) {
    *out_journal = (parsed_journal){.good_bytes = FILE_HEAD_BYTES};
    out_journal->file = scratch_read(path, &out_journal->file_bytes);
    check_file_head(out_journal);
    while (is_whole(out_journal, out_journal->good_bytes, (uint32_t)out_journal->block_count))
        add_block(out_journal, out_journal->good_bytes);
}

void journal_parse_free(parsed_journal *journal) {
    free(journal->file);
    free(journal->blocks);
    free(journal->records);
}
