/* Dumps of large tensors: one of holes, and some that share their bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "store/writer.h"
#include "view.h"

static const char run_text[] =
    "{\"generator\":\"bench_view\",\"run\":{\"run_id\":\"bench\",\"scene\":\"tensors\",\"case\":"
    "\"large\",\"platform\":\"a2a3sim\",\"runtime\":\"host_build_graph\",\"rank\":0,\"round\":0,"
    "\"started_at\":\"2026-01-02T03:04:05Z\"},\"dump_level\":\"full\",\"has_args\":false,"
    "\"filters\":[],\"kernels\":[{\"func_id\":0,\"name\":\"read\",\"core_type\":\"aiv\","
    "\"signature\":[\"in\"],\"arg_names\":[\"x\"]}],\"run_args\":[]}";

/* A dump whose tensor i is the only argument of task i, and lies at i times `bytes`. */
typedef struct maker {
    gbx_store *store;
    uint64_t count;
    uint64_t bytes; /* of a tensor */
    uint32_t dtype;
    int64_t shape[2];
} maker;

static gbx_status put_task(const maker *m, uint64_t task) {
    gbx_record_task *record = gbx_store_append(m->store, GBX_RECORD_TASK, sizeof *record / 8);
    if (!record)
        return gbx_fail(GBX_LOST, "making a dump: the journal has failed");
    record->head.stage = GBX_STAGE_NONE;
    record->head.arg_index = GBX_ARG_NONE;
    record->head.task = task;
    record->task_id = task;
    record->func_ids[0] = UINT32_MAX;
    record->func_ids[2] = UINT32_MAX;
    record->block_num = 1;
    return NULL;
}

/* Without a hash, for which the bytes would have to be read. */
static gbx_status put_tensor(const maker *m, uint64_t task) {
    gbx_record_tensor *record =
        gbx_store_append(m->store, GBX_RECORD_TENSOR, sizeof *record / 8 + 4);
    if (!record)
        return gbx_fail(GBX_LOST, "making a dump: the journal has failed");
    record->head.role = GBX_ROLE_INPUT;
    record->head.dtype = (uint8_t)m->dtype;
    record->head.ndims = 2;
    record->head.flags = GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_CONTIGUOUS;
    record->head.task = task;
    record->bin_offset = task * m->bytes;
    record->bin_size = m->bytes;
    int64_t *shape = (int64_t *)(void *)(record + 1);
    shape[0] = m->shape[0];
    shape[1] = m->shape[1];
    shape[2] = m->shape[1]; /* the strides */
    shape[3] = 1;
    return NULL;
}

static gbx_status put_records(const maker *m) {
    for (uint64_t i = 0; i < m->count; ++i) {
        GBX_TRY(put_task(m, i));
        GBX_TRY(put_tensor(m, i));
    }
    gbx_record_end end = {
        .head = {.stage = GBX_STAGE_NONE, .arg_index = GBX_ARG_NONE, .flags = GBX_FLAG_COMPLETE},
        .record_count = m->count,
        .task_count = m->count,
        .payload_bytes = m->count * m->bytes,
        .stored_bytes = m->count * m->bytes};
    return gbx_store_finish(m->store, &end, "ok", NULL);
}

/* --- holes --- */

/* The last one too: the file ends there. */
bool is_sparse_written(const setting *how, uint64_t tensor) {
    return tensor == 0 || tensor == how->sparse_count / 2 || tensor == how->sparse_count - 1;
}

float sparse_value(uint64_t tensor, uint64_t element) {
    return (float)((element * 7 + tensor) % 1000);
}

static gbx_status write_tensor(const maker *m, uint64_t tensor) {
    float *values = aligned_alloc(GBX_STORE_PAGE_BYTES, m->bytes);
    if (!values)
        return gbx_fail(GBX_EXHAUSTED, "making a dump: no memory for a tensor");
    for (uint64_t i = 0; i < m->bytes / sizeof *values; ++i)
        values[i] = sparse_value(tensor, i);
    gbx_status status = gbx_store_write(m->store, tensor * m->bytes, values, m->bytes);
    free(values);
    return status;
}

static gbx_status write_sparse(const maker *m, const setting *how) {
    gbx_store_reserve(m->store, m->count * m->bytes);
    for (uint64_t i = 0; i < m->count; ++i)
        if (is_sparse_written(how, i))
            GBX_TRY(write_tensor(m, i));
    return put_records(m);
}

gbx_status make_sparse_dump(const setting *how, const char *directory) {
    gbx_store_config config = {.directory = directory, .run_json = run_text, .has_tensors = true};
    maker m = {.count = how->sparse_count,
               .bytes = MIB,
               .dtype = GBX_FLOAT32,
               .shape = {SPARSE_ROWS, SPARSE_COLUMNS}};
    GBX_TRY(gbx_store_create(&config, &m.store));
    gbx_status status = write_sparse(&m, how);
    gbx_store_destroy(m.store);
    return status;
}

/* --- bytes for statistics --- */

uint32_t payload_word(uint64_t at) {
    uint64_t value = at * UINT64_C(0x9e3779b97f4a7c15);
    return ((uint32_t)(value >> 32) & 0x80ff80ffu) | 0x3f003f00u;
}

static bool write_words(FILE *file, uint64_t count) {
    uint32_t words[4096];
    size_t filled = 0;
    for (uint64_t i = 0; i < count; ++i) {
        words[filled++] = payload_word(i);
        if (filled < sizeof words / sizeof words[0] && i + 1 < count)
            continue;
        if (fwrite(words, sizeof words[0], filled, file) != filled)
            return false;
        filled = 0;
    }
    return true;
}

gbx_status write_payload(const setting *how, const char *path) {
    FILE *file = fopen(path, "wbe");
    bool is_written = file && write_words(file, how->payload_bytes / 4);
    int error = errno;
    if (file && fclose(file) != 0 && is_written) {
        error = errno;
        is_written = false;
    }
    return is_written ? NULL
                      : gbx_fail(GBX_IO, "writing %s: %s; choose another --directory", path,
                                 strerror(error));
}

gbx_status make_payload_dump(const setting *how, const char *directory, const char *payload,
                             uint32_t dtype, uint64_t tensor_bytes) {
    gbx_store_config config = {.directory = directory, .run_json = run_text};
    uint64_t elements = tensor_bytes * 8 / gbx_dtype_bits(dtype);
    char path[PATH_BYTES];
    maker m = {.count = how->payload_bytes / tensor_bytes,
               .bytes = tensor_bytes,
               .dtype = dtype,
               .shape = {(int64_t)elements / 64, 64}};
    GBX_TRY(gbx_store_create(&config, &m.store));
    gbx_status status = put_records(&m);
    gbx_store_destroy(m.store);
    GBX_TRY(status);
    snprintf(path, sizeof path, "%s/tensor_dump/tensor_dump.bin", directory);
    if (link(payload, path) != 0)
        return gbx_fail(GBX_IO, "linking %s to %s: %s", payload, path, strerror(errno));
    return NULL;
}
