/*
 * Dumps made by hand, byte by byte, with the layout of store/format.h and without the writer's
 * code: a correct dump of two tasks. A test may change its records before they are written, with
 * valid checksums, and damage its files afterwards.
 */
#ifndef GBX_TESTS_HAND_MADE_DUMP_H
#define GBX_TESTS_HAND_MADE_DUMP_H

#include "checks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <glassbox/orchestration.h>

#include "base/hash.h"
#include "store/journal/format.h"

enum { MADE_RECORDS_MAX = 64, MADE_BYTES_MAX = 1 << 16, MADE_BLOCKS_MAX = 16 };

/* Records of the correct dump, by position. */
enum {
    MADE_RUN = 0,
    MADE_TASK_0 = 1,
    MADE_SCALAR = 2, /* task 0, arg 2 */
    MADE_INPUT = 3,  /* task 0, arg 0: float32 [2, 3] */
    MADE_OUTPUT = 4, /* task 0, arg 1: float32 [2, 3] */
    MADE_DONE_0 = 5,
    MADE_TASK_1 = 6,
    MADE_EDGES = 7,      /* of task 1: task 0 */
    MADE_DUPLICATE = 8,  /* task 1, arg 0: the output of task 0 */
    MADE_INOUT = 9,      /* task 1, arg 1, before: int4 [2, 3], not contiguous */
    MADE_EMPTY = 10,     /* task 1, arg 2: uint8 [0, 4] */
    MADE_TRUNCATED = 11, /* task 1, arg 1, after: int16 [100], 64 bytes kept */
    MADE_DONE_1 = 12,
    MADE_END = 13
};

/* Where payload is in the correct dump. */
enum {
    MADE_INPUT_AT = 0,
    MADE_OUTPUT_AT = 64,
    MADE_INOUT_AT = 4096,
    MADE_TRUNCATED_AT = 8192,
    MADE_BIN_BYTES = 12288
};

static const char made_run_json[] =
    "{\"generator\": \"hand\", \"run\": {\"run_id\": \"r\", \"scene\": \"s\", \"case\": \"c\", "
    "\"platform\": \"a2a3sim\", \"runtime\": \"host_build_graph\", \"rank\": 0, \"round\": 0, "
    "\"started_at\": \"2026-01-01T00:00:00Z\"}, \"dump_level\": \"full\", \"has_args\": false, "
    "\"kernels\": [{\"func_id\": 0, \"name\": \"scale\", \"core_type\": \"aiv\", "
    "\"signature\": [\"in\", \"out\", \"scalar:float32\"]}, {\"func_id\": 1, \"name\": \"fold\", "
    "\"core_type\": \"aic\", \"signature\": [\"in\", \"inout\", \"in\"]}]}";

typedef struct made_dump {
    char directory[64];
    _Alignas(64) unsigned char records[MADE_BYTES_MAX];
    size_t used;
    size_t starts[MADE_RECORDS_MAX + 1];
    size_t count;
    size_t block_ends[MADE_BLOCKS_MAX];       /* in records */
    size_t block_starts[MADE_BLOCKS_MAX + 1]; /* in the file, once it is written */
    size_t block_count;
    unsigned char payload[MADE_BIN_BYTES];
} made_dump;

/* --- records --- */

static inline void *made_append(made_dump *dump, gbx_record_type type, size_t fixed_bytes,
                                size_t more_bytes) {
    size_t bytes = (fixed_bytes + more_bytes + 7) / 8 * 8;
    assert_true(dump->count < MADE_RECORDS_MAX && dump->used + bytes <= sizeof dump->records);
    gbx_record *record = (gbx_record *)(void *)(dump->records + dump->used);
    memset(record, 0, bytes);
    record->type = (uint8_t)type;
    record->words = (uint32_t)(bytes / 8);
    dump->starts[dump->count++] = dump->used;
    dump->used += bytes;
    return record;
}

static inline void made_end_block(made_dump *dump) {
    dump->block_ends[dump->block_count++] = dump->count;
}

static inline void *made_record(made_dump *dump, size_t place) {
    return dump->records + dump->starts[place];
}

static inline gbx_record_tensor *made_tensor_at(made_dump *dump, size_t place) {
    return made_record(dump, place);
}

static inline void made_run(made_dump *dump, const char *json) {
    gbx_record_run *run = made_append(dump, GBX_RECORD_RUN, sizeof *run, strlen(json));
    run->bytes = strlen(json);
    memcpy(run + 1, json, strlen(json));
}

static inline void made_task(made_dump *dump, uint64_t task, uint32_t func_id,
                             uint32_t predecessors) {
    gbx_record_task *record = made_append(dump, GBX_RECORD_TASK, sizeof *record, 0);
    record->head.task = task;
    record->head.stage = GBX_STAGE_NONE;
    record->task_id = 0x100 + task;
    record->func_ids[0] = func_id == 1 ? func_id : UINT32_MAX;
    record->func_ids[1] = func_id == 1 ? UINT32_MAX : func_id;
    record->func_ids[2] = UINT32_MAX;
    record->block_num = 1;
    record->predecessor_count = predecessors;
}

static inline void made_done(made_dump *dump, uint64_t task) {
    gbx_record *record = made_append(dump, GBX_RECORD_DONE, sizeof *record, 0);
    record->task = task;
    record->time_ns = 1000 + task;
}

/* A contiguous tensor without payload. */
static inline gbx_record_tensor *made_tensor(made_dump *dump, uint64_t task, uint8_t arg_index,
                                             uint8_t stage, gbx_role role, gbx_dtype dtype,
                                             uint8_t ndims, const int64_t *shape) {
    gbx_record_tensor *record = made_append(dump, GBX_RECORD_TENSOR, sizeof *record, 16u * ndims);
    record->head.task = task;
    record->head.arg_index = arg_index;
    record->head.stage = stage;
    record->head.role = (uint8_t)role;
    record->head.dtype = (uint8_t)dtype;
    record->head.ndims = ndims;
    record->head.flags = GBX_FLAG_CONTIGUOUS;
    record->buffer_addr = 0x7e9000001000 + 4096 * task;
    int64_t *words = (int64_t *)(void *)(record + 1);
    int64_t stride = 1;
    for (int d = ndims; d-- > 0;) {
        words[d] = shape[d];
        words[ndims + d] = stride;
        stride *= shape[d];
    }
    return record;
}

/* Gives a tensor `bytes` bytes of payload, computed from `seed`. */
static inline void made_payload(made_dump *dump, gbx_record_tensor *record, uint64_t offset,
                                uint64_t bytes, unsigned seed) {
    for (uint64_t i = 0; i < bytes; ++i)
        dump->payload[offset + i] = (unsigned char)(seed + 37 * i + i / 7);
    gbx_hash128 hash = gbx_hash_bytes(dump->payload + offset, (size_t)bytes);
    record->head.flags |= GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_HAS_HASH;
    record->bin_offset = offset;
    record->bin_size = bytes;
    record->hash_low = hash.low;
    record->hash_high = hash.high;
}

static inline void made_end(made_dump *dump, const gbx_record_end *totals, const char *status) {
    gbx_record_end *end = made_append(dump, GBX_RECORD_END, sizeof *end, strlen(status));
    gbx_record head = end->head;
    *end = *totals;
    end->head.type = head.type;
    end->head.words = head.words;
    end->head.stage = GBX_STAGE_NONE;
    end->head.arg_index = GBX_ARG_NONE;
    end->head.flags = GBX_FLAG_COMPLETE;
    end->bytes = strlen(status);
    memcpy(end + 1, status, strlen(status));
}

static inline void made_first_task(made_dump *dump) {
    static const int64_t shape[] = {2, 3};
    made_task(dump, 0, 0, 0);
    gbx_record_scalar *scalar = made_append(dump, GBX_RECORD_SCALAR, sizeof *scalar, 0);
    scalar->head.arg_index = 2;
    scalar->head.dtype = GBX_FLOAT32;
    scalar->bits = 0x3fc00000;
    gbx_record_tensor *input =
        made_tensor(dump, 0, 0, GBX_STAGE_BEFORE, GBX_ROLE_INPUT, GBX_FLOAT32, 2, shape);
    made_payload(dump, input, MADE_INPUT_AT, 24, 1);
    made_end_block(dump);
    gbx_record_tensor *output =
        made_tensor(dump, 0, 1, GBX_STAGE_AFTER, GBX_ROLE_OUTPUT, GBX_FLOAT32, 2, shape);
    made_payload(dump, output, MADE_OUTPUT_AT, 24, 2);
    made_done(dump, 0);
}

static inline void made_second_task(made_dump *dump) {
    static const int64_t shape[] = {2, 3}, none[] = {0, 4}, row[] = {100};
    made_task(dump, 1, 1, 1);
    gbx_record *edges = made_append(dump, GBX_RECORD_EDGES, sizeof *edges, 8);
    edges->task = 1;
    gbx_record_tensor *same =
        made_tensor(dump, 1, 0, GBX_STAGE_BEFORE, GBX_ROLE_INPUT, GBX_FLOAT32, 2, shape);
    made_payload(dump, same, MADE_OUTPUT_AT, 24, 2);
    same->head.flags |= GBX_FLAG_DUPLICATE;
    gbx_record_tensor *before =
        made_tensor(dump, 1, 1, GBX_STAGE_BEFORE, GBX_ROLE_INOUT, GBX_INT4, 2, shape);
    made_payload(dump, before, MADE_INOUT_AT, 4, 3);
    ((int64_t *)(void *)(before + 1))[2] = 10; /* gaps between rows */
    before->head.flags &= (uint16_t)~GBX_FLAG_CONTIGUOUS;
    made_payload(dump,
                 made_tensor(dump, 1, 2, GBX_STAGE_BEFORE, GBX_ROLE_INPUT, GBX_UINT8, 2, none), 0,
                 0, 0);
    made_end_block(dump);
    gbx_record_tensor *after =
        made_tensor(dump, 1, 1, GBX_STAGE_AFTER, GBX_ROLE_INOUT, GBX_INT16, 1, row);
    made_payload(dump, after, MADE_TRUNCATED_AT, 64, 4);
    after->head.flags |= GBX_FLAG_TRUNCATED;
    made_done(dump, 1);
}

/* A correct dump of two tasks in three blocks. */
static inline void made_good(made_dump *dump) {
    memset(dump, 0, sizeof *dump);
    made_run(dump, made_run_json);
    made_first_task(dump);
    made_second_task(dump);
    made_end(dump,
             &(gbx_record_end){.record_count = 7,
                               .task_count = 2,
                               .payload_bytes = 24 + 24 + 24 + 4 + 64,
                               .stored_bytes = 24 + 24 + 4 + 64,
                               .deduplicated = 1},
             "ok");
    made_end_block(dump);
}

/* --- files --- */

static inline void made_path(const made_dump *dump, const char *name, char out_path[160]) {
    snprintf(out_path, 160, "%s/tensor_dump/%s", dump->directory, name);
}

static inline void made_write_file(const made_dump *dump, const char *name, const void *bytes,
                                   size_t size) {
    char path[160];
    made_path(dump, name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline size_t made_journal(made_dump *dump, unsigned char *out_bytes) {
    gbx_journal_header header = {.version = 2, .header_bytes = 64};
    memcpy(header.magic, GBX_JOURNAL_MAGIC, sizeof header.magic);
    memcpy(out_bytes, &header, sizeof header);
    size_t used = sizeof header;
    size_t first = 0;
    dump->starts[dump->count] = dump->used;
    for (size_t i = 0; i < dump->block_count; ++i) {
        size_t begin = dump->starts[first];
        size_t bytes = dump->starts[dump->block_ends[i]] - begin;
        gbx_block_header block = {.magic = GBX_BLOCK_MAGIC,
                                  .record_bytes = (uint32_t)bytes,
                                  .record_count = (uint32_t)(dump->block_ends[i] - first),
                                  .sequence = (uint32_t)i,
                                  .checksum = XXH3_64bits(dump->records + begin, bytes)};
        block.head_check = XXH3_64bits(&block, 24);
        dump->block_starts[i] = used;
        memcpy(out_bytes + used, &block, sizeof block);
        memcpy(out_bytes + used + sizeof block, dump->records + begin, bytes);
        used += sizeof block + bytes;
        first = dump->block_ends[i];
    }
    dump->block_starts[dump->block_count] = used;
    return used;
}

/* Writes journal and payload into a new directory; the caller writes the manifests. */
static inline void made_write(made_dump *dump) {
    static unsigned char journal[2 * MADE_BYTES_MAX];
    char folder[160];
    snprintf(dump->directory, sizeof dump->directory, "/tmp/glassbox-made-XXXXXX");
    assert_non_null(mkdtemp(dump->directory));
    made_path(dump, "", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    size_t bytes = made_journal(dump, journal);
    made_write_file(dump, "tensor_dump.rec", journal, bytes);
    made_write_file(dump, "tensor_dump.bin", dump->payload, sizeof dump->payload);
}

static inline void made_remove(const made_dump *dump) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dump->directory);
    assert_int_equal(system(command), 0);
}

/* --- damage --- */

static inline uint64_t made_file_bytes(const made_dump *dump, const char *name) {
    struct stat about;
    char path[160];
    made_path(dump, name, path);
    return stat(path, &about) == 0 ? (uint64_t)about.st_size : UINT64_MAX;
}

static inline void made_flip(const made_dump *dump, const char *name, uint64_t offset,
                             unsigned char bits) {
    char path[160];
    unsigned char byte;
    made_path(dump, name, path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

static inline void made_cut(const made_dump *dump, const char *name, uint64_t bytes) {
    char path[160];
    made_path(dump, name, path);
    assert_int_equal(truncate(path, (off_t)bytes), 0);
}

#endif
