/*
 * Journals for tests, built byte by byte from docs/format.md. Does not use format.h, so that an
 * accidental change of the layout is noticed.
 */
#ifndef GBX_STORE_JOURNAL_TEST_BUILDER_H
#define GBX_STORE_JOURNAL_TEST_BUILDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct builder {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
    size_t block;  /* where the open one begins; 0 for none */
    size_t record; /* where the open one begins; 0 for none */
    size_t range;  /* where the RANGE of the open block begins; 0 for none */
    uint32_t sequence;
    uint32_t record_count;
} builder;

static inline void put_bytes(builder *b, const void *bytes, size_t size) {
    if (b->size + size > b->capacity) {
        b->capacity = (b->size + size) * 2;
        b->bytes = realloc(b->bytes, b->capacity);
        assert_non_null(b->bytes);
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static inline void put_number(builder *b, uint64_t value, size_t width) {
    unsigned char bytes[8];
    for (size_t i = 0; i < 8; ++i)
        bytes[i] = (unsigned char)(value >> (8 * i));
    put_bytes(b, bytes, width);
}

static inline void put_u8(builder *b, uint64_t value) {
    put_number(b, value, 1);
}
static inline void put_u16(builder *b, uint64_t value) {
    put_number(b, value, 2);
}
static inline void put_u32(builder *b, uint64_t value) {
    put_number(b, value, 4);
}
static inline void put_u64(builder *b, uint64_t value) {
    put_number(b, value, 8);
}

static inline void put_double(builder *b, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    put_u64(b, bits);
}

static inline void set_number(builder *b, size_t at, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i)
        b->bytes[at + i] = (unsigned char)(value >> (8 * i));
}

static inline void begin_journal(builder *b) {
    memset(b, 0, sizeof *b);
    put_bytes(b, "GBXJRNL1", 8);
    put_u32(b, 2);
    put_u32(b, 64);
    for (int i = 0; i < 6; ++i)
        put_u64(b, 0);
}

/* Pads the open record to words and sets its length. */
static inline void end_record(builder *b) {
    if (!b->record)
        return;
    while ((b->size - b->record) % 8 != 0)
        put_u8(b, 0);
    set_number(b, b->record + 8, (b->size - b->record) / 8, 4);
    b->record = 0;
    b->record_count++;
}

static inline uint64_t get_number(const builder *b, size_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i)
        value |= (uint64_t)b->bytes[at + i] << (8 * i);
    return value;
}

/* Sets what the RANGE of the open block says: all records after it, up to the end. */
static inline void set_range(builder *b) {
    uint64_t first = 1, last = 0, types = 0;
    bool is_any = false;
    for (size_t at = b->range + 56; at < b->size; at += get_number(b, at + 8, 4) * 8) {
        unsigned type = b->bytes[at];
        uint64_t task = get_number(b, at + 16, 8);
        types |= (uint64_t)1 << (type < 64 ? type : 0);
        if ((type < 3 || type > 8) && type != 12)
            continue;
        first = !is_any || task < first ? task : first;
        last = !is_any || task > last ? task : last;
        is_any = true;
    }
    set_number(b, b->range + 16, first, 8);
    set_number(b, b->range + 32, last, 8);
    set_number(b, b->range + 40, types, 8);
    set_number(b, b->range + 48, XXH3_64bits(b->bytes + b->range, 48), 8);
    b->range = 0;
}

static inline void end_block(builder *b) {
    end_record(b);
    if (!b->block)
        return;
    if (b->range)
        set_range(b);
    size_t records = b->block + 32;
    set_number(b, b->block, 0x42584247, 4);
    set_number(b, b->block + 4, b->size - records, 4);
    set_number(b, b->block + 8, b->record_count, 4);
    set_number(b, b->block + 12, b->sequence++, 4);
    set_number(b, b->block + 16, XXH3_64bits(b->bytes + records, b->size - records), 8);
    set_number(b, b->block + 24, XXH3_64bits(b->bytes + b->block, 24), 8);
    b->block = 0;
    b->record_count = 0;
}

/* The head of a record; fields that are not named are zero. */
typedef struct head {
    unsigned type, stage, role, arg_index, dtype, ndims, flags, thread;
    uint64_t task, time_ns;
} head;

/* Begins a record, in a new block if none is open. Its fields follow. */
static inline void begin_record(builder *b, head h) {
    end_record(b);
    if (!b->block) {
        b->block = b->size;
        for (int i = 0; i < 4; ++i)
            put_u64(b, 0);
    }
    b->record = b->size;
    put_u8(b, h.type);
    put_u8(b, h.stage);
    put_u8(b, h.role);
    put_u8(b, h.arg_index);
    put_u8(b, h.dtype);
    put_u8(b, h.ndims);
    put_u16(b, h.flags);
    put_u32(b, 0);
    put_u16(b, h.thread);
    put_u16(b, 0);
    put_u64(b, h.task);
    put_u64(b, h.time_ns);
}

/* The first record of a block that has a RANGE. */
static inline void add_range(builder *b) {
    end_block(b);
    begin_record(b, (head){.type = 16, .stage = 255, .arg_index = 255});
    b->range = b->record;
    for (int i = 0; i < 3; ++i)
        put_u64(b, 0);
}

static inline void add_run(builder *b, const char *json) {
    begin_record(b, (head){.type = 1});
    put_u64(b, strlen(json));
    put_bytes(b, json, strlen(json));
}

static inline void add_task(builder *b, uint64_t task, uint64_t task_id, const uint32_t func_ids[3],
                            uint32_t block_num) {
    begin_record(b, (head){.type = 3, .task = task, .time_ns = task});
    put_u64(b, task_id);
    for (int i = 0; i < 3; ++i)
        put_u32(b, func_ids[i]);
    put_u32(b, block_num);
    put_u32(b, 0);
    put_u32(b, 0);
}

static inline void add_scalar(builder *b, head h, uint64_t bits) {
    h.type = 6;
    begin_record(b, h);
    put_u64(b, bits);
}

typedef struct tensor_fields {
    uint64_t buffer_addr, bin_offset, bin_size, hash_low, hash_high;
    int64_t start_offset;
    const int64_t *shape;
    const int64_t *strides;
} tensor_fields;

/* The caller adds statistics, if any, after it. */
static inline void add_tensor(builder *b, head h, tensor_fields t) {
    h.type = 7;
    begin_record(b, h);
    put_u64(b, t.buffer_addr);
    put_u64(b, t.bin_offset);
    put_u64(b, t.bin_size);
    put_u64(b, t.hash_low);
    put_u64(b, t.hash_high);
    put_u64(b, (uint64_t)t.start_offset);
    for (unsigned i = 0; i < h.ndims; ++i)
        put_u64(b, (uint64_t)t.shape[i]);
    for (unsigned i = 0; i < h.ndims; ++i)
        put_u64(b, (uint64_t)t.strides[i]);
}

/* RESULT; `stats` are seven words or NULL, `pieces` three words each. */
static inline void add_result(builder *b, head h, tensor_fields t, const uint64_t *stats,
                              const uint64_t *pieces, uint64_t piece_count) {
    h.stage = 255;
    add_tensor(b, h, t);
    b->bytes[b->record] = 15;
    for (int i = 0; stats && i < 7; ++i)
        put_u64(b, stats[i]);
    put_u64(b, piece_count);
    for (uint64_t i = 0; i < 3 * piece_count; ++i)
        put_u64(b, pieces[i]);
}

static inline void add_loss(builder *b, head h, uint32_t cause, uint64_t count) {
    h.type = 9;
    begin_record(b, h);
    put_u32(b, cause);
    put_u32(b, 0);
    put_u64(b, count);
}

static inline void add_skipped(builder *b, head h, uint32_t reason, uint32_t func_id) {
    h.type = 10;
    begin_record(b, h);
    put_u32(b, reason);
    put_u32(b, func_id);
}

/* counts: record_count, task_count, dispatch_count, payload_bytes, stored_bytes, deduplicated,
 * dropped, stall_ns. */
static inline void add_end(builder *b, unsigned flags, const uint64_t counts[8], const char *text) {
    begin_record(b, (head){.type = 11, .flags = flags});
    for (int i = 0; i < 8; ++i)
        put_u64(b, counts[i]);
    put_u64(b, strlen(text));
    put_bytes(b, text, strlen(text));
}

/* --- a dump directory, in memory if the system has such a file system --- */

typedef struct dump {
    char root[64];
    char directory[128]; /* root/run_1 */
} dump;

static inline void make_dump_in(dump *d, const char *place) {
    snprintf(d->root, sizeof d->root, "%s/gbx_store_XXXXXX", place);
    assert_non_null(mkdtemp(d->root));
    snprintf(d->directory, sizeof d->directory, "%s/run_1", d->root);
    assert_int_equal(mkdir(d->directory, 0777), 0);
    char files[256];
    snprintf(files, sizeof files, "%s/tensor_dump", d->directory);
    assert_int_equal(mkdir(files, 0777), 0);
}

static inline void make_dump(dump *d) {
    make_dump_in(d, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline void path_in(const dump *d, const char *name, char out_path[256]) {
    snprintf(out_path, 256, "%s/tensor_dump/%s", d->directory, name);
}

static inline void remove_dump(const dump *d) {
    static const char *const names[] = {"tensor_dump.rec", "tensor_dump.json", "args_dump.json",
                                        "kernel_args_dump.json"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        path_in(d, names[i], path);
        unlink(path);
    }
    path_in(d, "", path);
    assert_int_equal(rmdir(path), 0); /* no temporary file is left */
    assert_int_equal(rmdir(d->directory), 0);
    assert_int_equal(rmdir(d->root), 0);
}

static inline void write_journal(const dump *d, const void *bytes, size_t size) {
    char path[256];
    path_in(d, "tensor_dump.rec", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static inline void finish_journal(builder *b, const dump *d) {
    end_block(b);
    write_journal(d, b->bytes, b->size);
}

#endif
