/*
 * Manifests for tests, in their own directory, and what a reader gets from them. Include scratch.h
 * of the tests' support first.
 */
#ifndef GBX_STORE_IMPORT_IMPORT_TEST_DUMP_H
#define GBX_STORE_IMPORT_IMPORT_TEST_DUMP_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/reader.h"

static inline int enter(void **state) {
    (void)state;
    return scratch_enter(NULL) ? 0 : -1;
}

static inline int leave(void **state) {
    (void)state;
    return scratch_leave() ? 0 : -1;
}

/* --- writing manifests --- */

enum { TEXT_BYTES = 1 << 16, PAYLOAD_BYTES = 4096 };

static inline unsigned char payload_byte(size_t at) {
    return (unsigned char)(at * 7 + at / 256);
}

static inline void write_manifest(const char *name, const char *text) {
    char path[64];
    unsigned char bytes[PAYLOAD_BYTES];
    (void)mkdir("d", 0777);
    snprintf(path, sizeof path, "d/%s", name);
    scratch_write(path, text, strlen(text));
    for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = payload_byte(i);
    scratch_write("d/b.bin", bytes, sizeof bytes);
}

static inline void write_entries(const char *entries) {
    static char text[TEXT_BYTES];
    snprintf(text, sizeof text, "{\"bin_file\": \"b.bin\", \"tensors\": [%s]}", entries);
    write_manifest("tensor_dump.json", text);
}

static inline gbx_reader *open_dump(const char *directory) {
    gbx_reader *reader = NULL;
    assert_ok(gbx_reader_open(directory, GBX_INDEX_ARGUMENTS | GBX_INDEX_EXECUTIONS, &reader));
    assert_int_equal(gbx_reader_get_extent(reader)->stop, GBX_STOP_END);
    return reader;
}

static inline gbx_reader *open_entries(const char *entries) {
    write_entries(entries);
    return open_dump("d");
}

/* The argument number `index`, copied: the reader reuses its own. */
static inline const gbx_record *argument_at(gbx_reader *reader, uint64_t index) {
    static uint64_t copy[64];
    for (uint64_t i = 0; i < gbx_reader_count(reader); ++i) {
        const gbx_record *record = NULL;
        if (gbx_reader_kind(reader, i) != GBX_INDEX_ARGUMENTS || index-- > 0)
            continue;
        assert_ok(gbx_reader_at(reader, i, &record));
        assert_true(record->words <= sizeof copy / 8);
        memcpy(copy, record, (size_t)record->words * 8);
        return (const gbx_record *)copy;
    }
    fail_msg("no argument has that index");
    return NULL;
}

static inline const gbx_record_tensor *tensor_at(gbx_reader *reader, uint64_t index) {
    const gbx_record *record = argument_at(reader, index);
    assert_int_equal(record->type, GBX_RECORD_TENSOR);
    return (const gbx_record_tensor *)record;
}

static inline uint64_t scalar_bits(gbx_reader *reader, uint64_t index) {
    const gbx_record *record = argument_at(reader, index);
    assert_int_equal(record->type, GBX_RECORD_SCALAR);
    return ((const gbx_record_scalar *)record)->bits;
}

#endif
