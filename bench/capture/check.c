/* Whether a dump holds what was run, checked by the journal and the bytes. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "capture.h"
#include "store/reader.h"

enum { SAMPLES = 64 };

typedef struct check {
    const setting *how;
    const plan *what;
    gbx_reader *reader;
    int payload_fd;
    unsigned char *bytes; /* room for one payload */
} check;

static gbx_status differs(const gbx_record *record, const char *how) {
    return gbx_fail(GBX_INTERNAL, "the dump is wrong: task %" PRIu64 ", argument %u: %s",
                    record->task, (unsigned)record->arg_index, how);
}

static gbx_status check_tensor(const check *c, const gbx_record_tensor *record) {
    uint64_t size = c->what->tensor_bytes;
    uint64_t index = record->head.task * tensors_a_task(c->what) + record->head.arg_index;
    const unsigned char *expected = c->how->source + window_offset(c->how, size, index);
    gbx_hash128 hash = gbx_hash_bytes(expected, size);
    if (record->bin_size != size || !(record->head.flags & GBX_FLAG_HAS_PAYLOAD))
        return differs(&record->head, "its payload is missing");
    if (hash.low != record->hash_low || hash.high != record->hash_high)
        return differs(&record->head, "its hash differs from that of the source");
    if (pread(c->payload_fd, c->bytes, size, (off_t)record->bin_offset) != (ssize_t)size)
        return differs(&record->head, "its bytes cannot be read");
    if (memcmp(c->bytes, expected, size) != 0)
        return differs(&record->head, "its bytes differ from those of the source");
    return NULL;
}

static gbx_status check_scalar(const check *c, const gbx_record_scalar *record) {
    if (c->what->tensor_bytes)
        return record->bits == c->what->kernel_ns ? NULL : differs(&record->head, "another value");
    bool is_right = record->bits == (record->head.task << 8 | record->head.arg_index);
    return is_right ? NULL : differs(&record->head, "another value");
}

static gbx_status check_at(const check *c, uint64_t position) {
    const gbx_record *record;
    GBX_TRY(gbx_reader_at(c->reader, position, &record));
    if (record->type == GBX_RECORD_TENSOR)
        return check_tensor(c, (const gbx_record_tensor *)record);
    if (record->type == GBX_RECORD_SCALAR)
        return check_scalar(c, (const gbx_record_scalar *)record);
    return NULL;
}

/* As many tasks, tensors and scalars as there were, all stored, none lost. */
static gbx_status check_totals(const check *c) {
    const gbx_reader_totals *totals = gbx_reader_get_totals(c->reader);
    uint64_t size = c->what->tensor_bytes;
    uint64_t tensors = size ? c->what->total_bytes / size : 0;
    uint64_t tasks =
        size ? tensors / tensors_a_task(c->what) : c->how->scalar_records / SCALARS_A_TASK;
    uint64_t scalars = size ? (c->what->kernel_ns ? tasks : 0) : c->how->scalar_records;
    if (totals->tensors != tensors || totals->records != tensors + scalars ||
        totals->tasks != tasks || totals->stored_bytes != tensors * size || totals->dropped ||
        !gbx_reader_is_complete(c->reader))
        return gbx_fail(GBX_INTERNAL,
                        "the dump is incomplete: %" PRIu64 " of %" PRIu64 " tensors, %" PRIu64
                        " of %" PRIu64 " records, %" PRIu64 " of %" PRIu64 " bytes",
                        totals->tensors, tensors, totals->records, tensors + scalars,
                        totals->stored_bytes, tensors * size);
    return NULL;
}

/* The first, the last and others in between. */
static gbx_status check_sample(const check *c) {
    uint64_t count = gbx_reader_count(c->reader);
    uint64_t step = count / SAMPLES + 1;
    for (uint64_t at = 0; at < count; at += step)
        GBX_TRY(check_at(c, at));
    return count ? check_at(c, count - 1) : NULL;
}

gbx_status check_dump(const setting *how, const plan *what, const char *directory) {
    char path[PATH_BYTES + 64];
    check c = {.how = how, .what = what, .bytes = malloc(what->tensor_bytes + 1)};
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.bin", directory);
    c.payload_fd = open(path, O_RDONLY | O_CLOEXEC);
    gbx_status status = c.bytes && c.payload_fd >= 0
                            ? gbx_reader_open(directory, GBX_INDEX_ARGUMENTS, &c.reader)
                            : gbx_fail(GBX_IO, "%s cannot be read", path);
    if (!status)
        status = check_totals(&c);
    if (!status)
        status = check_sample(&c);
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.json", directory);
    if (!status && access(path, R_OK) != 0)
        status = gbx_fail(GBX_INTERNAL, "%s is missing", path);
    gbx_reader_close(c.reader);
    if (c.payload_fd >= 0)
        close(c.payload_fd);
    free(c.bytes);
    return status;
}
