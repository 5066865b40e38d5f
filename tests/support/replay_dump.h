/*
 * A dump of one task for tests of replay, built byte by byte: the test gives its arguments, with
 * payload before and after. Its directory is removed with it.
 */
#ifndef GBX_TESTS_REPLAY_DUMP_H
#define GBX_TESTS_REPLAY_DUMP_H

#include "journal_test_builder.h"

#include "checks.h"

#include <glassbox/tensor.h>

#include "replay/task.h"
#include "store/reader.h"

/* One argument of a task. Fields that are not named are zero. */
typedef struct made_argument {
    unsigned role; /* 0 input, 1 output, 2 inout */
    unsigned dtype;
    unsigned ndims;
    bool is_scalar;
    uint64_t bits; /* of a scalar */
    uint64_t address;
    int64_t start_offset;
    int64_t shape[2];
    int64_t strides[2];
    const void *before; /* payload; NULL: a record without payload */
    const void *after;
    bool has_no_before; /* no record at all; likewise the next field */
    bool has_no_after;
    unsigned before_flags; /* in addition to the flags that follow from the other fields */
    unsigned after_flags;
    uint64_t cut_bytes;  /* so many bytes of the payload before are missing: it is truncated */
    bool is_undescribed; /* no records, but it is listed as skipped, and a word of dispatches */
} made_argument;

typedef struct made_task {
    uint32_t func_ids[3];
    uint32_t block_num;
    const made_argument *arguments;
    unsigned argument_count;
    const char *level;   /* "full" for NULL */
    const char *kernels; /* JSON of their table; NULL: func 0, 1, 2 without a signature */
    const char *filters; /* JSON; NULL for none */
    bool has_args;       /* the run was asked to record dispatches */
    bool has_dispatches; /* one per block and subtask, with core_id 3 * block + subtask + 30 */
    bool has_no_done;
    bool has_no_end; /* the run was killed */
    bool is_skipped;
    int lost_argument; /* the argument whose record before is lost; 0 for none (not argument 0) */
    uint64_t unnamed_losses; /* number of lost records of some other task */
    unsigned loss_cause;     /* of that loss */
} made_task;

typedef struct made_replay {
    dump files;
    unsigned char *payload;
    size_t payload_bytes;
    gbx_reader *reader;
    gbx_entries *entries;
} made_replay;

static inline gbx_tensor made_view(const made_argument *argument) {
    gbx_tensor view = {.data = argument->address,
                       .dtype = argument->dtype,
                       .ndims = argument->ndims,
                       .start_offset = argument->start_offset};
    memcpy(view.shape, argument->shape, argument->ndims * sizeof view.shape[0]);
    memcpy(view.strides, argument->strides, argument->ndims * sizeof view.strides[0]);
    return view;
}

/* Payload begins at multiples of 64. */
static inline uint64_t made_store(made_replay *made, const void *bytes, size_t size) {
    size_t at = (made->payload_bytes + 63) / 64 * 64;
    made->payload = realloc(made->payload, at + size + 1);
    assert_non_null(made->payload);
    memset(made->payload + made->payload_bytes, 0xee, at - made->payload_bytes);
    memcpy(made->payload + at, bytes, size);
    made->payload_bytes = at + size;
    return at;
}

static inline void made_record_argument(made_replay *made, builder *b, const made_argument *from,
                                        unsigned slot, unsigned stage) {
    head h = {.stage = stage, .role = from->role, .arg_index = slot, .dtype = from->dtype};
    if (from->is_scalar) {
        add_scalar(b, h, from->bits);
        return;
    }
    gbx_tensor view = made_view(from);
    const void *bytes = stage == 0 ? from->before : from->after;
    uint64_t size = gbx_tensor_payload_bytes(&view);
    tensor_fields fields = {.buffer_addr = from->address,
                            .start_offset = from->start_offset,
                            .shape = from->shape,
                            .strides = from->strides};
    h.ndims = from->ndims;
    h.flags = stage == 0 ? from->before_flags : from->after_flags;
    if (stage == 0 && from->cut_bytes > 0) {
        size -= from->cut_bytes;
        h.flags |= GBX_FLAG_TRUNCATED;
    }
    if (bytes) {
        h.flags |= GBX_FLAG_HAS_PAYLOAD;
        fields.bin_size = size;
        fields.bin_offset = made_store(made, bytes, size);
    }
    add_tensor(b, h, fields);
}

static inline void made_record_arguments(made_replay *made, builder *b, const made_task *task) {
    for (unsigned stage = 0; stage < 2; ++stage)
        for (unsigned i = 0; i < task->argument_count; ++i) {
            const made_argument *from = &task->arguments[i];
            bool is_there = stage == 0 ? from->role != 1 && !from->has_no_before
                                       : from->role != 0 && !from->has_no_after;
            if (is_there && !from->is_undescribed)
                made_record_argument(made, b, from, i, stage);
            if (from->is_undescribed && stage == 0)
                add_skipped(b, (head){.arg_index = i}, 0, 1);
        }
}

static inline void made_dispatch(builder *b, const made_task *task, uint32_t block,
                                 uint32_t subtask) {
    begin_record(b, (head){.type = 8});
    put_u64(b, 77);
    put_u32(b, task->func_ids[subtask]);
    put_u32(b, 3 * block + subtask + 30);
    put_u32(b, block);
    put_u32(b, task->block_num);
    put_u32(b, subtask);
    put_u32(b, task->argument_count);
    put_u64(b, 1);
    put_u64(b, 2);
    for (unsigned i = 0; i < task->argument_count; ++i) {
        const made_argument *from = &task->arguments[i];
        if (from->is_undescribed) {
            put_bytes(b, (const unsigned char[8]){(unsigned char)i, 0, 0, 0, 0, 1}, 8);
            put_u64(b, 0x123456);
            continue;
        }
        const unsigned char bytes[8] = {(unsigned char)i, !from->is_scalar,
                                        (unsigned char)from->role, (unsigned char)from->dtype,
                                        (unsigned char)from->ndims};
        put_bytes(b, bytes, 8);
        put_u64(b, from->is_scalar ? from->bits : 0x123456);
        if (from->is_scalar)
            continue;
        put_u64(b, from->address);
        put_u64(b, (uint64_t)from->start_offset);
        for (unsigned d = 0; d < from->ndims; ++d)
            put_u64(b, (uint64_t)from->shape[d]);
        for (unsigned d = 0; d < from->ndims; ++d)
            put_u64(b, (uint64_t)from->strides[d]);
    }
}

static inline void made_run_record(builder *b, const made_task *task) {
    static const char kernels[] =
        "[{\"func_id\": 0, \"name\": \"cube\", \"core_type\": \"aic\"}, {\"func_id\": 1, "
        "\"name\": \"left\", \"core_type\": \"aiv\"}, {\"func_id\": 2, \"name\": \"right\", "
        "\"core_type\": \"aiv\"}]";
    char json[2048];
    snprintf(json, sizeof json,
             "{\"generator\": \"made\", \"run\": {}, \"dump_level\": \"%s\", \"has_args\": %s, "
             "\"filters\": %s, \"kernels\": %s}",
             task->level ? task->level : "full", task->has_args ? "true" : "false",
             task->filters ? task->filters : "[]", task->kernels ? task->kernels : kernels);
    add_run(b, json);
}

static inline void made_write_payload(const made_replay *made) {
    char path[256];
    path_in(&made->files, "tensor_dump.bin", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(made->payload, 1, made->payload_bytes, file), made->payload_bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void made_open(made_replay *made) {
    assert_ok(gbx_reader_open(made->files.directory,
                              GBX_INDEX_ARGUMENTS | GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH,
                              &made->reader));
    assert_ok(gbx_reader_open_payload(made->reader));
    assert_ok(gbx_entries_create(made->reader, &made->entries));
}

/* The dump of one task, number 0. */
static inline void made_replay_open(made_replay *made, const made_task *task) {
    builder b;
    memset(made, 0, sizeof *made);
    make_dump(&made->files);
    begin_journal(&b);
    made_run_record(&b, task);
    add_task(&b, 0, 77, task->func_ids, task->block_num);
    if (task->is_skipped)
        add_skipped(&b, (head){.arg_index = 255}, 0, 0);
    else
        made_record_arguments(made, &b, task);
    for (uint32_t block = 0; task->has_dispatches && block < task->block_num; ++block)
        for (uint32_t subtask = 0; subtask < 3; ++subtask)
            if (task->func_ids[subtask] != UINT32_MAX)
                made_dispatch(&b, task, block, subtask);
    if (task->lost_argument)
        add_loss(&b, (head){.arg_index = (unsigned)task->lost_argument}, 1, 1);
    if (task->unnamed_losses)
        add_loss(&b, (head){.task = 9, .arg_index = 2}, task->loss_cause, task->unnamed_losses);
    if (!task->has_no_done)
        begin_record(&b, (head){.type = 5});
    if (!task->has_no_end)
        add_end(&b, 0, (const uint64_t[8]){0}, "made");
    finish_journal(&b, &made->files);
    free(b.bytes);
    made->payload = made->payload ? made->payload : calloc(1, 1);
    made_write_payload(made);
    made_open(made);
}

static inline void made_replay_close(made_replay *made) {
    char path[256];
    gbx_entries_destroy(made->entries);
    gbx_reader_close(made->reader);
    free(made->payload);
    path_in(&made->files, "tensor_dump.bin", path);
    unlink(path);
    remove_dump(&made->files);
}

#endif
