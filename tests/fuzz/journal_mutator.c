/*
 * Mutations of a journal that get past its checksums: half of them keep the fuzzer's bytes, the
 * others repair the checksums, so that the code behind them is reached.
 */
#include <string.h>
#include <xxhash.h>

#include "store/journal/format.h"
#include "target.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

typedef enum repair {
    REPAIR_NOTHING,
    REPAIR_CHECKSUMS, /* sizes, counts and sequence do not change */
    REPAIR_BLOCKS     /* all of the head of every block */
} repair;

/* The number of records in `bytes`, up to the first invalid length. */
static uint32_t count_records(const uint8_t *records, size_t bytes) {
    uint32_t count = 0;
    for (size_t at = 0; at + sizeof(gbx_record) <= bytes; ++count) {
        gbx_record head;
        memcpy(&head, records + at, sizeof head);
        if (head.words == 0 || head.words > (bytes - at) / 8)
            break;
        at += (size_t)head.words * 8;
    }
    return count;
}

static void repair_range(uint8_t *records, size_t bytes) {
    gbx_record_range range;
    if (bytes < sizeof range || records[0] != GBX_RECORD_RANGE)
        return;
    memcpy(&range, records, sizeof range);
    range.check = XXH3_64bits(&range, offsetof(gbx_record_range, check));
    memcpy(records, &range, sizeof range);
}

static void repair_block(gbx_block_header *header, uint8_t *records, size_t room, uint32_t sequence,
                         repair how) {
    if (how == REPAIR_BLOCKS) {
        header->magic = GBX_BLOCK_MAGIC;
        header->sequence = sequence;
        if (header->record_bytes > room || header->record_bytes == 0)
            header->record_bytes = (uint32_t)room;
        header->record_bytes -= header->record_bytes % 8;
        header->record_count = count_records(records, header->record_bytes);
    }
    if (header->record_bytes <= room) {
        repair_range(records, header->record_bytes);
        header->checksum = XXH3_64bits(records, header->record_bytes);
    }
    header->head_check = XXH3_64bits(header, offsetof(gbx_block_header, head_check));
}

static void repair_journal(uint8_t *data, size_t size, repair how) {
    gbx_journal_header start = {.version = GBX_JOURNAL_VERSION, .header_bytes = sizeof start};
    memcpy(start.magic, GBX_JOURNAL_MAGIC, sizeof start.magic);
    if (size < sizeof start)
        return;
    if (how == REPAIR_BLOCKS)
        memcpy(data, &start, sizeof start);
    memcpy(&start, data, sizeof start);
    uint32_t sequence = 0;
    size_t first = start.header_bytes > size ? sizeof start : start.header_bytes;
    for (size_t at = first; size - at > sizeof(gbx_block_header);) {
        gbx_block_header header;
        uint8_t *records = data + at + sizeof header;
        size_t room = size - at - sizeof header;
        memcpy(&header, data + at, sizeof header);
        repair_block(&header, records, room, sequence++, how);
        memcpy(data + at, &header, sizeof header);
        if (header.record_bytes == 0 || header.record_bytes > room)
            return;
        at += sizeof header + header.record_bytes;
    }
}

/* Sets one word of the journal to a value at the limit of a field. */
static void set_word(uint8_t *data, size_t size, unsigned seed) {
    static const uint64_t edges[] = {
        0,
        1,
        2,
        7,
        8,
        64,
        255,
        256,
        65535,
        65536,
        INT32_MAX,
        UINT32_MAX,
        UINT64_C(1) << 32,
        UINT64_C(1) << 43,
        UINT64_C(1) << 44,
        (UINT64_C(1) << 53) - 1,
        UINT64_C(1) << 53,
        UINT64_C(1) << 62,
        INT64_MAX,
        (uint64_t)INT64_MIN,
        UINT64_MAX,
    };
    size_t words = size / 8;
    if (words <= sizeof(gbx_journal_header) / 8)
        return;
    size_t first = sizeof(gbx_journal_header) / 8;
    size_t word = first + (seed >> 8) % (words - first);
    memcpy(data + word * 8, &edges[(seed >> 3) % (sizeof edges / sizeof edges[0])], 8);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    static const repair repairs[] = {REPAIR_NOTHING, REPAIR_CHECKSUMS, REPAIR_BLOCKS,
                                     REPAIR_BLOCKS};
    if (seed % 8 < 2)
        set_word(data, size, seed);
    else
        size = LLVMFuzzerMutate(data, size, max_size);
    repair how = repairs[(seed >> 20) % 4];
    if (how != REPAIR_NOTHING)
        repair_journal(data, size, how);
    return size;
}
