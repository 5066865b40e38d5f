#include "store_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "scratch.h"

const char sample_run_json[] =
    "{\"generator\": \"sample\", \"run\": {\"run_id\": \"r\", \"scene\": \"s\", \"case\": \"c\", "
    "\"platform\": \"a2a3sim\", \"runtime\": \"host_build_graph\", \"rank\": 0, \"round\": 0, "
    "\"started_at\": \"2026-01-01T00:00:00Z\"}, \"dump_level\": \"full\", \"has_args\": true, "
    "\"kernels\": [{\"func_id\": 3, \"name\": \"fold\", \"core_type\": \"aiv\", "
    "\"signature\": [\"in\", \"scalar:uint32\"]}]}";

enum { PAGE = 4096, DTYPE_UINT8 = GBX_UINT8, DTYPE_UINT32 = GBX_UINT32 };

static uint64_t mix(uint64_t number) {
    uint64_t z = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 27;
}

/* The task whose payload a task has. */
static uint64_t origin_of(uint64_t task) {
    return task % 5 == 4 ? task - 1 : task;
}

static size_t bytes_of(uint64_t task) {
    return 1 + (size_t)(mix(origin_of(task)) >> 20) % SAMPLE_PAYLOAD_MAX_BYTES;
}

static void fill_payload(uint64_t task, unsigned char *bytes) {
    for (size_t i = 0; i < bytes_of(task); ++i)
        bytes[i] = (unsigned char)(mix(origin_of(task) * 1000003 + i / 8) >> i % 8 * 8);
}

/* False if it is not in the file; out_offset is its position. */
static bool store_payload(gbx_store *store, uint64_t task, gbx_hash128 hash,
                          const unsigned char *pages, uint64_t *out_offset) {
    size_t bytes = bytes_of(task);
    *out_offset = gbx_store_reserve(store, bytes);
    gbx_status status =
        gbx_store_write(store, *out_offset, pages, (bytes + PAGE - 1) / PAGE * PAGE);
    bool is_written = status == NULL;
    gbx_status_free(status);
    if (is_written)
        gbx_store_remember(store, hash, bytes, *out_offset);
    return is_written;
}

static bool append_task(gbx_store *store, uint64_t task) {
    gbx_record_task *record = gbx_store_append(store, GBX_RECORD_TASK, sizeof *record / 8);
    gbx_record_scalar *scalar;
    if (!record)
        return false;
    record->head.stage = GBX_STAGE_NONE;
    record->head.arg_index = GBX_ARG_NONE;
    record->head.task = task;
    record->head.time_ns = task * 10;
    record->task_id = mix(task);
    record->func_ids[0] = UINT32_MAX;
    record->func_ids[1] = 3;
    record->func_ids[2] = UINT32_MAX;
    record->block_num = 1;
    scalar = gbx_store_append(store, GBX_RECORD_SCALAR, sizeof *scalar / 8);
    if (!scalar)
        return false;
    scalar->head.arg_index = 1;
    scalar->head.dtype = DTYPE_UINT32;
    scalar->head.task = task;
    scalar->head.time_ns = task * 10 + 1;
    scalar->bits = mix(task) & UINT32_MAX;
    return true;
}

static bool append_tensor(gbx_store *store, uint64_t task, gbx_hash128 hash, uint64_t offset,
                          bool is_duplicate) {
    gbx_record_tensor *record = gbx_store_append(store, GBX_RECORD_TENSOR, sizeof *record / 8 + 2);
    if (!record)
        return false;
    record->head.dtype = DTYPE_UINT8;
    record->head.ndims = 1;
    record->head.flags = (uint16_t)(GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_HAS_HASH | GBX_FLAG_CONTIGUOUS |
                                    (is_duplicate ? GBX_FLAG_DUPLICATE : 0));
    record->head.task = task;
    record->head.time_ns = task * 10 + 2;
    record->buffer_addr = 0x7e9000000000 + task;
    record->bin_offset = offset;
    record->bin_size = bytes_of(task);
    record->hash_low = hash.low;
    record->hash_high = hash.high;
    uint64_t *geometry = (uint64_t *)(void *)(record + 1);
    geometry[0] = bytes_of(task);
    geometry[1] = 1;
    return true;
}

bool sample_write_task(gbx_store *store, uint64_t task) {
    _Alignas(PAGE) static unsigned char pages[SAMPLE_PAYLOAD_MAX_BYTES + PAGE];
    fill_payload(task, pages);
    gbx_hash128 hash = gbx_hash_bytes(pages, bytes_of(task));
    uint64_t offset;
    bool is_duplicate = gbx_store_find(store, hash, bytes_of(task), &offset);
    if (!is_duplicate && !store_payload(store, task, hash, pages, &offset))
        return false;
    memset(pages, 0xee, sizeof pages); /* the memory is ours again */
    return append_task(store, task) && append_tensor(store, task, hash, offset, is_duplicate);
}

/* --- reading it back, at byte offsets --- */

static void check_head(const unsigned char *record, const unsigned char head[8], uint64_t words,
                       uint64_t task, uint64_t time_ns) {
    assert_memory_equal(record, head, 8);
    assert_int_equal(journal_u64(record + 8), words); /* thread and reserved are zero */
    assert_int_equal(journal_u64(record + 16), task);
    assert_int_equal(journal_u64(record + 24), time_ns);
}

static void check_run(const unsigned char *record) {
    static const unsigned char head[8] = {1, 0xff, 0, 0xff};
    size_t bytes = strlen(sample_run_json);
    check_head(record, head, 5 + (bytes + 7) / 8, 0, 0);
    assert_int_equal(journal_u64(record + 32), bytes);
    assert_memory_equal(record + 40, sample_run_json, bytes);
    for (size_t i = 40 + bytes; i < journal_record_bytes(record); ++i)
        assert_int_equal(record[i], 0);
}

static void check_task(const unsigned char *record, uint64_t task) {
    static const unsigned char head[8] = {3, 0xff, 0, 0xff};
    check_head(record, head, 8, task, task * 10);
    assert_int_equal(journal_u64(record + 32), mix(task));
    assert_int_equal(journal_u32(record + 40), UINT32_MAX);
    assert_int_equal(journal_u32(record + 44), 3);
    assert_int_equal(journal_u32(record + 48), UINT32_MAX);
    assert_int_equal(journal_u32(record + 52), 1);
    assert_int_equal(journal_u64(record + 56), 0);
}

static void check_scalar(const unsigned char *record, uint64_t task) {
    static const unsigned char head[8] = {6, 0, 0, 1, DTYPE_UINT32};
    check_head(record, head, 5, task, task * 10 + 1);
    assert_int_equal(journal_u64(record + 32), mix(task) & UINT32_MAX);
}

static void check_payload(const unsigned char *record, uint64_t task, const unsigned char *file,
                          size_t file_bytes) {
    static unsigned char expected[SAMPLE_PAYLOAD_MAX_BYTES + PAGE];
    uint64_t offset = journal_u64(record + 40);
    size_t bytes = bytes_of(task);
    fill_payload(task, expected);
    assert_int_equal(offset % 64, 0);
    assert_int_equal(journal_u64(record + 48), bytes);
    assert_true(bytes <= file_bytes && offset <= file_bytes - bytes);
    assert_memory_equal(file + offset, expected, bytes);
    XXH128_hash_t hash = XXH3_128bits(expected, bytes);
    assert_int_equal(journal_u64(record + 56), hash.low64);
    assert_int_equal(journal_u64(record + 64), hash.high64);
}

static bool check_tensor(const unsigned char *record, uint64_t task) {
    bool is_duplicate = record[6] & 1 << 5;
    const unsigned char head[8] = {
        7, 0, 0, 0, DTYPE_UINT8, 1, (unsigned char)(is_duplicate ? 0x63 : 0x43)};
    check_head(record, head, 12, task, task * 10 + 2);
    assert_int_equal(journal_u64(record + 32), 0x7e9000000000 + task);
    assert_int_equal(journal_u64(record + 72), 0);
    assert_int_equal(journal_u64(record + 80), bytes_of(task));
    assert_int_equal(journal_u64(record + 88), 1);
    return is_duplicate;
}

size_t sample_check(const char *directory, const parsed_journal *journal, size_t *out_duplicates) {
    char path[256];
    size_t file_bytes, at = 1;
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.bin", directory);
    unsigned char *file = scratch_read(path, &file_bytes);
    *out_duplicates = 0;
    assert_true(journal->record_count >= 1);
    assert_int_equal(journal->blocks[0].record_count, 1);
    check_run(journal->records[0]);
    for (; at < journal->record_count; ++at) {
        uint64_t task = (at - 1) / SAMPLE_RECORDS_PER_TASK;
        const unsigned char *record = journal->records[at];
        unsigned type = journal_record_type(record);
        if (type != 3 && type != 6 && type != 7)
            break;
        if (at % SAMPLE_RECORDS_PER_TASK == 1) {
            check_task(record, task);
        } else if (at % SAMPLE_RECORDS_PER_TASK == 2) {
            check_scalar(record, task);
        } else {
            *out_duplicates += check_tensor(record, task);
            check_payload(record, task, file, file_bytes);
        }
    }
    free(file);
    return at;
}
