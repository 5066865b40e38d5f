/* A dump of many small records, as a long run of small tasks leaves it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "store/writer.h"
#include "view.h"

enum {
    SLOTS = 4096, /* payloads that differ; all others are equal to one of them */
    SLOT_BYTES = 1024,
    UNIT_BYTES = 64, /* a payload has 1 to 16 of them */
    IN_FLIGHT = 4,   /* so many tasks at a time: outputs come after inputs of later tasks */
    RARE_EVERY = 10007,
    TASK_NS = 1500
};

typedef struct kernel {
    const char *name;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t scalars;
    const char *signature;
    const char *arg_names;
} kernel;

static const kernel kernels[] = {
    {"matmul", 2, 1, 0, "\"in\",\"in\",\"out\"", "\"a\",\"b\",\"c\""},
    {"matmul_bias", 3, 1, 0, "\"in\",\"in\",\"in\",\"out\"", "\"a\",\"b\",\"bias\",\"c\""},
    {"softmax_prepare", 2, 2, 1, "\"in\",\"in\",\"out\",\"out\",\"scalar:float32\"",
     "\"scores\",\"mask\",\"weights\",\"sums\",\"scale\""},
    {"online_update", 3, 2, 2,
     "\"in\",\"in\",\"in\",\"out\",\"out\",\"scalar:int32\",\"scalar:int32\"",
     "\"part\",\"maximum\",\"sum\",\"out\",\"state\",\"is_first\",\"is_last\""},
    {"layer_norm", 2, 1, 1, "\"in\",\"in\",\"out\",\"scalar:float32\"",
     "\"x\",\"gain\",\"y\",\"epsilon\""},
    {"add", 2, 1, 0, "\"in\",\"in\",\"out\"", "\"x\",\"y\",\"z\""},
    {RARE_KERNEL, 2, RARE_OUTPUTS, 1, "\"in\",\"in\",\"out\",\"out\",\"scalar:int32\"",
     "\"x\",\"y\",\"place\",\"value\",\"axis\""},
};
enum { KERNELS = sizeof kernels / sizeof kernels[0], RARE = KERNELS - 1 };

static uint64_t mix(uint64_t value) {
    value *= UINT64_C(0x9e3779b97f4a7c15);
    value ^= value >> 29;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ value >> 32;
}

static bool is_rare(uint64_t task) {
    return task % RARE_EVERY == RARE_EVERY / 20;
}

static uint32_t kernel_of(uint64_t task) {
    return is_rare(task) ? RARE : (uint32_t)(mix(task) % RARE);
}

static uint32_t entries_of(const kernel *k) {
    return k->inputs + k->outputs + k->scalars;
}

uint64_t count_task_entries(uint64_t task, uint64_t *out_first) {
    *out_first = 0;
    for (uint64_t i = 0; i < task; ++i)
        *out_first += entries_of(&kernels[kernel_of(i)]);
    return entries_of(&kernels[kernel_of(task)]);
}

/* --- payload --- */

static uint32_t slot_of(uint64_t task, uint32_t arg) {
    return (uint32_t)(mix(task * GBX_ARG_LOCAL_CONTEXT + arg) % SLOTS);
}

static uint32_t slot_units(uint32_t slot) {
    return slot % (SLOT_BYTES / UNIT_BYTES) + 1;
}

/* Numbers from 0.5 to 2, as float32 and as bfloat16. */
static void fill_slot(uint32_t slot, uint32_t words[SLOT_BYTES / 4]) {
    for (uint32_t i = 0; i < SLOT_BYTES / 4; ++i)
        words[i] = ((uint32_t)mix((uint64_t)slot << 32 | i) & 0x80ff80ffu) | 0x3f003f00u;
}

static gbx_hash128 slot_hash(uint32_t slot) {
    uint32_t words[SLOT_BYTES / 4];
    fill_slot(slot, words);
    return gbx_hash_bytes(words, (size_t)slot_units(slot) * UNIT_BYTES);
}

/* What is kept while the dump is made. */
typedef struct maker {
    gbx_store *store;
    gbx_hash128 hashes[SLOTS];
    bool is_used[SLOTS];
    gbx_record_end end;
} maker;

static gbx_status write_slots(maker *m) {
    uint64_t bytes = (uint64_t)SLOTS * SLOT_BYTES;
    unsigned char *pages = aligned_alloc(GBX_STORE_PAGE_BYTES, bytes);
    if (!pages)
        return gbx_fail(GBX_EXHAUSTED, "making a dump: no memory for its payload");
    for (uint32_t i = 0; i < SLOTS; ++i) {
        uint32_t words[SLOT_BYTES / 4];
        fill_slot(i, words);
        memcpy(pages + (size_t)i * SLOT_BYTES, words, SLOT_BYTES);
        m->hashes[i] = slot_hash(i);
    }
    uint64_t offset = gbx_store_reserve(m->store, bytes);
    gbx_status status = gbx_store_write(m->store, offset, pages, bytes);
    free(pages);
    return status;
}

/* --- records --- */

static gbx_status fail_append(const maker *m) {
    return gbx_fail(GBX_LOST, "making a dump: %s", gbx_status_message(gbx_store_failure(m->store)));
}

static void put_head(gbx_record *head, uint64_t task, uint32_t arg, bool is_output) {
    head->stage = is_output ? GBX_STAGE_AFTER : GBX_STAGE_BEFORE;
    head->role = is_output ? GBX_ROLE_OUTPUT : GBX_ROLE_INPUT;
    head->arg_index = (uint8_t)arg;
    head->thread = (uint16_t)(task % 2);
    head->task = task;
    head->time_ns = (task + (is_output ? IN_FLIGHT : 0)) * TASK_NS;
}

/* float32 of [units, 16], or bfloat16 of [2, units, 16]. */
static void put_geometry(gbx_record_tensor *record, uint32_t slot) {
    int64_t *shape = (int64_t *)(void *)(record + 1);
    uint32_t ndims = record->head.ndims;
    int64_t *strides = shape + ndims;
    shape[ndims - 1] = 16;
    shape[ndims - 2] = slot_units(slot);
    strides[ndims - 1] = 1;
    strides[ndims - 2] = 16;
    if (ndims < 3)
        return;
    shape[0] = 2;
    strides[0] = 16 * shape[1];
}

static gbx_status put_tensor(maker *m, uint64_t task, uint32_t arg, bool is_output) {
    uint32_t slot = slot_of(task, arg);
    bool is_half = slot / 16 % 2 == 1;
    uint32_t ndims = is_half ? 3 : 2;
    gbx_record_tensor *record =
        gbx_store_append(m->store, GBX_RECORD_TENSOR, (uint32_t)sizeof *record / 8 + 2 * ndims);
    if (!record)
        return fail_append(m);
    put_head(&record->head, task, arg, is_output);
    unsigned flags = GBX_FLAG_HAS_PAYLOAD | GBX_FLAG_HAS_HASH | GBX_FLAG_CONTIGUOUS;
    record->head.flags = (uint16_t)(flags | (m->is_used[slot] ? GBX_FLAG_DUPLICATE : 0));
    record->head.dtype = is_half ? GBX_BFLOAT16 : GBX_FLOAT32;
    record->head.ndims = (uint8_t)ndims;
    record->buffer_addr = UINT64_C(0x7e0000000000) + mix(task) % GIB / UNIT_BYTES * UNIT_BYTES;
    record->bin_offset = (uint64_t)slot * SLOT_BYTES;
    record->bin_size = (uint64_t)slot_units(slot) * UNIT_BYTES;
    record->hash_low = m->hashes[slot].low;
    record->hash_high = m->hashes[slot].high;
    put_geometry(record, slot);
    m->end.payload_bytes += record->bin_size;
    m->end.stored_bytes += m->is_used[slot] ? 0 : record->bin_size;
    m->end.deduplicated += m->is_used[slot];
    m->end.record_count++;
    m->is_used[slot] = true;
    return NULL;
}

static gbx_status put_scalar(maker *m, uint64_t task, const kernel *k, uint32_t arg) {
    gbx_record_scalar *record = gbx_store_append(m->store, GBX_RECORD_SCALAR, sizeof *record / 8);
    if (!record)
        return fail_append(m);
    bool is_float = strstr(k->signature, "scalar:float32") != NULL;
    put_head(&record->head, task, arg, false);
    record->head.dtype = is_float ? GBX_FLOAT32 : GBX_INT32;
    record->bits = is_float ? 0x3e000000u : task % 100; /* 0.125 */
    m->end.record_count++;
    return NULL;
}

static gbx_status put_task(maker *m, uint64_t task) {
    gbx_record_task *record = gbx_store_append(m->store, GBX_RECORD_TASK, sizeof *record / 8);
    if (!record)
        return fail_append(m);
    record->head.stage = GBX_STAGE_NONE;
    record->head.arg_index = GBX_ARG_NONE;
    record->head.thread = (uint16_t)(task % 2);
    record->head.task = task;
    record->head.time_ns = task * TASK_NS;
    record->task_id = task;
    record->func_ids[0] = UINT32_MAX;
    record->func_ids[1] = kernel_of(task);
    record->func_ids[2] = UINT32_MAX;
    record->block_num = 1;
    m->end.task_count++;
    return NULL;
}

static gbx_status put_dispatched(maker *m, uint64_t task) {
    const kernel *k = &kernels[kernel_of(task)];
    uint32_t tensors = k->inputs + k->outputs;
    GBX_TRY(put_task(m, task));
    for (uint32_t i = 0; i < k->inputs; ++i)
        GBX_TRY(put_tensor(m, task, i, false));
    for (uint32_t i = 0; i < k->scalars; ++i)
        GBX_TRY(put_scalar(m, task, k, tensors + i));
    return NULL;
}

static gbx_status put_completed(maker *m, uint64_t task) {
    const kernel *k = &kernels[kernel_of(task)];
    for (uint32_t i = 0; i < k->outputs; ++i)
        GBX_TRY(put_tensor(m, task, k->inputs + i, true));
    gbx_record *done = gbx_store_append(m->store, GBX_RECORD_DONE, sizeof *done / 8);
    if (!done)
        return fail_append(m);
    done->stage = GBX_STAGE_NONE;
    done->arg_index = GBX_ARG_NONE;
    done->task = task;
    done->time_ns = (task + IN_FLIGHT) * TASK_NS;
    return NULL;
}

static gbx_status put_records(maker *m, const setting *how) {
    uint64_t task = 0;
    GBX_TRY(write_slots(m));
    for (; m->end.record_count < how->record_count; ++task) {
        GBX_TRY(put_dispatched(m, task));
        if (task >= IN_FLIGHT)
            GBX_TRY(put_completed(m, task - IN_FLIGHT));
    }
    for (uint64_t i = task < IN_FLIGHT ? 0 : task - IN_FLIGHT; i < task; ++i)
        GBX_TRY(put_completed(m, i));
    m->end.head = (gbx_record){.stage = GBX_STAGE_NONE,
                               .arg_index = GBX_ARG_NONE,
                               .flags = GBX_FLAG_COMPLETE,
                               .time_ns = (task + IN_FLIGHT) * TASK_NS};
    return gbx_store_finish(m->store, &m->end, "ok", NULL);
}

/* --- the dump --- */

static gbx_status make_run_text(char **out_text) {
    size_t size = 0;
    FILE *stream = open_memstream(out_text, &size);
    if (!stream)
        return gbx_fail(GBX_EXHAUSTED, "making a dump: no memory for its description");
    fprintf(stream, "{\"generator\":\"bench_view\",\"run\":{\"run_id\":\"bench\",\"scene\":"
                    "\"records\",\"case\":\"many\",\"platform\":\"a2a3sim\",\"runtime\":"
                    "\"host_build_graph\",\"rank\":0,\"round\":0,\"started_at\":"
                    "\"2026-01-02T03:04:05Z\"},\"dump_level\":\"full\",\"has_args\":false,"
                    "\"filters\":[],\"kernels\":[");
    for (size_t i = 0; i < KERNELS; ++i)
        fprintf(stream,
                "%s{\"func_id\":%zu,\"name\":\"%s\",\"core_type\":\"aiv\",\"signature\":[%s],"
                "\"arg_names\":[%s]}",
                i ? "," : "", i, kernels[i].name, kernels[i].signature, kernels[i].arg_names);
    fprintf(stream, "],\"run_args\":[]}");
    return fclose(stream) == 0 ? NULL : gbx_fail(GBX_EXHAUSTED, "making a dump: no memory");
}

static gbx_status make_with(maker *m, const setting *how, const char *directory) {
    char *text = NULL;
    GBX_TRY(make_run_text(&text));
    gbx_store_config config = {.directory = directory, .run_json = text, .has_tensors = true};
    gbx_status status = gbx_store_create(&config, &m->store);
    free(text);
    if (!status)
        status = put_records(m, how);
    gbx_store_destroy(m->store);
    return status;
}

gbx_status make_record_dump(const setting *how, const char *directory, record_totals *out_totals) {
    maker *m = calloc(1, sizeof *m);
    if (!m)
        return gbx_fail(GBX_EXHAUSTED, "making a dump: no memory");
    gbx_status status = make_with(m, how, directory);
    *out_totals = (record_totals){.entries = m->end.record_count, .tasks = m->end.task_count};
    for (uint64_t i = 0; i < m->end.task_count; ++i)
        out_totals->rare_tasks += is_rare(i);
    free(m);
    return status;
}

void list_rare_entries(const record_totals *totals, rare_entry *out_entries) {
    const kernel *k = &kernels[RARE];
    uint64_t first = 0;
    for (uint64_t task = 0; task < totals->tasks; ++task) {
        for (uint32_t i = 0; is_rare(task) && i < k->outputs; ++i) {
            out_entries->task = task;
            out_entries->index = first + k->inputs + k->scalars + i;
            gbx_hash_format(slot_hash(slot_of(task, k->inputs + i)), out_entries->hash);
            ++out_entries;
        }
        first += entries_of(&kernels[kernel_of(task)]);
    }
}
