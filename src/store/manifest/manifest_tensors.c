/*
 * tensor_dump.json: an entry for each argument at each stage. What is the same for all arguments
 * of a task is made once a task, what is the same for all of a kind once a file.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/checked.h"
#include "base/hash.h"
#include "store/manifest/manifest_parts.h"

enum {
    KIND_COUNT = 2, /* scalar, tensor */
    STAGE_COUNT = 2,
    ROLE_COUNT = 3,
    KIND_TEXT_BYTES = 112
};

/* ,"role":...,"stage":...,"kind":...,"dtype":... and the key that comes then. */
typedef struct kind_text {
    char text[KIND_TEXT_BYTES];
    size_t size;
} kind_text;

typedef struct text_buffer {
    char *text;
    size_t size;
    size_t capacity;
} text_buffer;

typedef struct entry_writer {
    gbx_manifest *manifest;
    gbx_manifest_file *file;
    kind_text kinds[KIND_COUNT][STAGE_COUNT][ROLE_COUNT][GBX_DTYPE_COUNT];
    unsigned told;     /* GBX_TOLD_... */
    bool has_kernels;  /* names are told */
    uint64_t position; /* `index` of the next entry */
    uint64_t written;  /* entries so far */
    uint64_t task;     /* the one that the texts are of; UINT64_MAX for none */
    uint32_t func_ids[GBX_SUBTASK_COUNT];
    text_buffer front; /* ,"task_id":... to "arg_index": */
    text_buffer back;  /* ,"block_num":... to the end of the entry, without its bracket */
    gbx_quoted names[GBX_RUN_KERNEL_SLOTS]; /* of the slots of the task; borrowed */
} entry_writer;

/* --- once a file --- */

static void fill_kind(kind_text *kind, bool is_tensor, uint32_t stage, uint32_t role,
                      uint32_t dtype) {
    const char *const pieces[] = {",\"role\":\"",
                                  gbx_manifest_role(role),
                                  "\",\"stage\":\"",
                                  gbx_manifest_stage(stage),
                                  "\",\"kind\":\"",
                                  is_tensor ? "tensor" : "scalar",
                                  "\",\"dtype\":\"",
                                  gbx_dtype_name(dtype),
                                  is_tensor ? "\",\"shape\":" : "\",\"value\":"};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; ++i) {
        size_t size = strlen(pieces[i]);
        memcpy(kind->text + kind->size, pieces[i], size);
        kind->size += size;
    }
}

static void fill_kinds(entry_writer *writer) {
    for (uint32_t stage = 0; stage < STAGE_COUNT; ++stage)
        for (uint32_t role = 0; role < ROLE_COUNT; ++role)
            for (uint32_t dtype = 1; dtype < GBX_DTYPE_COUNT; ++dtype) {
                fill_kind(&writer->kinds[0][stage][role][dtype], false, stage, role, dtype);
                fill_kind(&writer->kinds[1][stage][role][dtype], true, stage, role, dtype);
            }
}

/* --- once a task --- */

static gbx_status reserve(text_buffer *buffer, size_t capacity) {
    buffer->size = 0;
    if (capacity <= buffer->capacity)
        return NULL;
    char *text = realloc(buffer->text, capacity);
    if (!text)
        return gbx_fail(GBX_EXHAUSTED, "no memory for the names of a task");
    buffer->text = text;
    buffer->capacity = capacity;
    return NULL;
}

static char *put_func_ids(char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]) {
    bool is_first = true;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (func_ids[i] == GBX_NO_KERNEL)
            continue;
        at = is_first ? at : GBX_PUT(at, ",");
        at = gbx_put_u64(at, func_ids[i]);
        is_first = false;
    }
    return at;
}

static char *put_kernels(const entry_writer *writer, char *at) {
    bool is_first = true;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (writer->func_ids[i] == GBX_NO_KERNEL)
            continue;
        gbx_quoted name = gbx_manifest_kernel_name(&writer->manifest->names, writer->func_ids[i]);
        at = is_first ? at : GBX_PUT(at, ",");
        memcpy(at, name.text, name.size);
        at += name.size;
        is_first = false;
    }
    return at;
}

static size_t names_bytes(const entry_writer *writer) {
    size_t size = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        size += gbx_manifest_kernel_name(&writer->manifest->names, writer->func_ids[i]).size;
    return size;
}

/* `task` is NULL where the task has no record: its id is not known then. */
static gbx_status fill_front(entry_writer *writer, const gbx_record_task *task) {
    GBX_TRY(reserve(&writer->front, 256 + names_bytes(writer)));
    char *at = GBX_PUT(writer->front.text, ",\"task_id\":");
    at = task ? gbx_put_hex(at, task->task_id) : GBX_PUT(at, "null");
    at = GBX_PUT(at, ",\"task_seq\":");
    at = gbx_put_u64(at, writer->task);
    at = GBX_PUT(at, ",\"func_id\":[");
    at = put_func_ids(at, writer->func_ids);
    if (writer->has_kernels) {
        at = GBX_PUT(at, "],\"kernel\":[");
        at = put_kernels(writer, at);
    }
    at = GBX_PUT(at, "],\"arg_index\":");
    writer->front.size = (size_t)(at - writer->front.text);
    return NULL;
}

static gbx_status fill_back(entry_writer *writer, const gbx_record_task *task) {
    static const char *const subtasks[GBX_SUBTASK_COUNT] = {"\"aic\"", "\"aiv0\"", "\"aiv1\""};
    GBX_TRY(reserve(&writer->back, 128));
    if (!(writer->told & GBX_TOLD_SUBTASKS))
        return NULL;
    char *at = GBX_PUT(writer->back.text, ",\"block_num\":");
    at = task ? gbx_put_u64(at, task->block_num) : GBX_PUT(at, "null");
    at = GBX_PUT(at, ",\"subtasks\":[");
    bool is_first = true;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (writer->func_ids[i] == GBX_NO_KERNEL)
            continue;
        at = is_first ? at : GBX_PUT(at, ",");
        memcpy(at, subtasks[i], strlen(subtasks[i]));
        at += strlen(subtasks[i]);
        is_first = false;
    }
    *at++ = ']';
    writer->back.size = (size_t)(at - writer->back.text);
    return NULL;
}

/* The first kernel that names a slot gives the name. */
static void fill_names(entry_writer *writer) {
    memset(writer->names, 0, sizeof writer->names);
    for (size_t i = GBX_SUBTASK_COUNT; i-- > 0;) {
        uint32_t func_id = writer->func_ids[i];
        const struct gbx_kernel_names *kernel =
            func_id < GBX_MAX_KERNELS ? writer->manifest->names.by_func_id[func_id] : NULL;
        for (size_t slot = 0; kernel && slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            if (kernel->slots[slot].size)
                writer->names[slot] = kernel->slots[slot];
    }
}

static gbx_status begin_task(entry_writer *writer, uint64_t number, const gbx_record_task *task) {
    static const uint32_t none[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL};
    const uint32_t *func_ids = task ? task->func_ids : none;
    if (memcmp(writer->func_ids, func_ids, sizeof none) != 0) {
        memcpy(writer->func_ids, func_ids, sizeof none);
        fill_names(writer);
    }
    writer->task = number;
    GBX_TRY(fill_front(writer, task));
    return fill_back(writer, task);
}

/* --- once an argument --- */

static inline char *put_front(entry_writer *writer, const gbx_record *record, bool is_tensor) {
    gbx_manifest_file *file = writer->file;
    gbx_manifest_file_room(file);
    char *at = gbx_put_separator(file->at, writer->written++);
    at = GBX_PUT(at, "{\"index\":");
    at = gbx_put_u64(at, writer->position++);
    at = gbx_put_text(file, at, writer->front.text, writer->front.size);
    at = gbx_put_u64(at, record->arg_index);
    const gbx_quoted *name = &writer->names[record->arg_index];
    if (name->size) {
        at = GBX_PUT(at, ",\"arg_name\":");
        at = gbx_put_text(file, at, name->text, name->size);
    }
    uint8_t dtype = is_tensor ? record->dtype : gbx_record_scalar_dtype(record->dtype);
    const kind_text *kind = &writer->kinds[is_tensor][record->stage][record->role][dtype];
    memcpy(at, kind->text, KIND_TEXT_BYTES);
    return at + kind->size;
}

static inline char *put_back(const entry_writer *writer, char *at, const gbx_record *record) {
    if (writer->told & GBX_TOLD_TIMES) {
        at = GBX_PUT(at, ",\"time_ns\":");
        at = gbx_put_u64(at, record->time_ns);
        at = GBX_PUT(at, ",\"thread\":");
        at = gbx_put_u64(at, record->thread);
    }
    return gbx_put_text(writer->file, at, writer->back.text, writer->back.size);
}

static inline char *put_flags(char *at, unsigned flags) {
    at = GBX_PUT(at, ",\"truncated\":");
    at = gbx_put_bool(at, flags & GBX_FLAG_TRUNCATED);
    at = GBX_PUT(at, ",\"overwritten\":");
    at = gbx_put_bool(at, flags & GBX_FLAG_OVERWRITTEN);
    at = GBX_PUT(at, ",\"in_flight\":");
    return gbx_put_bool(at, flags & GBX_FLAG_IN_FLIGHT);
}

static gbx_status fail_inexact(const gbx_record *record, const char *what) {
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "writing the manifest: %s of argument %u of task %" PRIu64 " reaches 2^53, "
                    "and readers of JSON are not exact from there on",
                    what, record->arg_index, record->task);
}

static gbx_status put_scalar(entry_writer *writer, const gbx_record_scalar *record) {
    const gbx_record *head = &record->head;
    if (!gbx_is_exact(head->time_ns))
        return fail_inexact(head, "the time");
    char *at = put_front(writer, head, false);
    at = gbx_put_value(at, &writer->manifest->floats, gbx_record_scalar_dtype(head->dtype),
                       record->bits);
    at = GBX_PUT(at, ",\"bits\":");
    at = gbx_put_hex(at, record->bits);
    at = GBX_PUT(at, ",\"shape\":[],\"strides\":[],\"start_offset\":0,\"numel\":1,"
                     "\"is_contiguous\":true,\"bin_offset\":0,\"bin_size\":0");
    at = put_flags(at, head->flags);
    at = put_back(writer, at, head);
    *at++ = '}';
    writer->file->at = at;
    return NULL;
}

/* UINT64_MAX where it does not fit. */
static uint64_t count_elements(const gbx_record_tensor *record) {
    const int64_t *shape = gbx_record_shape(record);
    uint64_t count = 1;
    bool is_exact = true;
    for (uint32_t i = 0; i < record->head.ndims; ++i) {
        if (shape[i] == 0)
            return 0;
        is_exact &= gbx_checked_mul_u64(count, (uint64_t)shape[i], &count);
    }
    return is_exact ? count : UINT64_MAX;
}

/* NULL, or what a reader of JSON would not hold exactly. */
static const char *find_inexact(const gbx_record_tensor *record) {
    const gbx_record *head = &record->head;
    const gbx_record_stats *stats = gbx_record_statistics(record);
    if (!gbx_is_exact(head->time_ns))
        return "the time";
    if (!gbx_are_exact(gbx_record_shape(record), head->ndims) ||
        !gbx_is_exact(count_elements(record)))
        return "the shape";
    if (!gbx_are_exact(gbx_record_strides(record), head->ndims))
        return "a stride";
    if (!gbx_is_exact_signed(record->start_offset))
        return "start_offset";
    if (!gbx_is_exact(record->bin_offset) || !gbx_is_exact(record->bin_size))
        return "the place of the payload";
    bool is_narrow = !gbx_dtype_is_float(head->dtype) && gbx_dtype_bits(head->dtype) < 64;
    if (stats && (!gbx_is_exact(stats->nan_count) || !gbx_is_exact(stats->inf_count) ||
                  !gbx_is_exact(stats->zero_count) || !gbx_is_exact(stats->subnormal_count)))
        return "a count of the statistics";
    if (stats && is_narrow &&
        (!gbx_is_exact_signed((int64_t)stats->min_bits) ||
         !gbx_is_exact_signed((int64_t)stats->max_bits)))
        return "an extreme of the statistics";
    return NULL;
}

static char *put_geometry(char *at, const gbx_record_tensor *record) {
    uint8_t ndims = record->head.ndims;
    at = gbx_put_numbers(at, gbx_record_shape(record), ndims);
    at = GBX_PUT(at, ",\"strides\":");
    at = gbx_put_numbers(at, gbx_record_strides(record), ndims);
    at = GBX_PUT(at, ",\"start_offset\":");
    at = gbx_put_i64(at, record->start_offset);
    at = GBX_PUT(at, ",\"numel\":");
    at = gbx_put_u64(at, count_elements(record));
    at = GBX_PUT(at, ",\"is_contiguous\":");
    return gbx_put_bool(at, record->head.flags & GBX_FLAG_CONTIGUOUS);
}

static char *put_payload(const entry_writer *writer, char *at, const gbx_record_tensor *record) {
    unsigned flags = record->head.flags;
    bool has_payload = flags & GBX_FLAG_HAS_PAYLOAD;
    if (writer->told & GBX_TOLD_ADDRESSES) {
        at = GBX_PUT(at, ",\"buffer_addr\":");
        at = gbx_put_hex(at, record->buffer_addr);
    }
    at = GBX_PUT(at, ",\"bin_offset\":");
    at = gbx_put_u64(at, has_payload ? record->bin_offset : 0);
    at = GBX_PUT(at, ",\"bin_size\":");
    at = gbx_put_u64(at, has_payload ? record->bin_size : 0);
    if (flags & GBX_FLAG_HAS_HASH) {
        at = GBX_PUT(at, ",\"hash\":\"");
        gbx_hash_format((gbx_hash128){record->hash_low, record->hash_high}, at);
        at += GBX_HASH_TEXT_BYTES - 1;
        *at++ = '"';
    }
    return put_flags(at, flags);
}

static char *put_statistics(char *at, gbx_float_cache *floats, uint32_t dtype,
                            const gbx_record_stats *stats) {
    at = GBX_PUT(at, ",\"stats\":{\"min\":");
    at = gbx_put_extreme(at, floats, dtype, stats->min_bits);
    at = GBX_PUT(at, ",\"max\":");
    at = gbx_put_extreme(at, floats, dtype, stats->max_bits);
    at = GBX_PUT(at, ",\"mean\":");
    at = gbx_put_f64(at, floats, stats->mean);
    at = GBX_PUT(at, ",\"nan\":");
    at = gbx_put_u64(at, stats->nan_count);
    at = GBX_PUT(at, ",\"inf\":");
    at = gbx_put_u64(at, stats->inf_count);
    at = GBX_PUT(at, ",\"zero\":");
    at = gbx_put_u64(at, stats->zero_count);
    at = GBX_PUT(at, ",\"subnormal\":");
    at = gbx_put_u64(at, stats->subnormal_count);
    *at++ = '}';
    return at;
}

/* `computed` are the statistics of one that has none recorded; NULL for none. */
static gbx_status put_tensor(entry_writer *writer, const gbx_record_tensor *record,
                             const gbx_record_stats *computed) {
    const gbx_record *head = &record->head;
    const char *inexact = find_inexact(record);
    if (inexact)
        return fail_inexact(head, inexact);
    char *at = put_front(writer, head, true);
    at = put_geometry(at, record);
    at = put_payload(writer, at, record);
    at = put_back(writer, at, head);
    const gbx_record_stats *recorded = gbx_record_statistics(record);
    const gbx_record_stats *stats = recorded ? recorded : computed;
    if (stats)
        at = put_statistics(at, &writer->manifest->floats, head->dtype, stats);
    *at++ = '}';
    writer->file->at = at;
    return NULL;
}

static gbx_status put_record(entry_writer *writer, const gbx_record *record) {
    if (record->type == GBX_RECORD_TASK) {
        if (record->task == writer->task)
            return NULL; /* the first record of a task is the one that counts */
        return begin_task(writer, record->task, (const gbx_record_task *)record);
    }
    if (record->task != writer->task)
        GBX_TRY(begin_task(writer, record->task, NULL));
    if (record->type == GBX_RECORD_SCALAR)
        return put_scalar(writer, (const gbx_record_scalar *)record);
    return put_tensor(writer, (const gbx_record_tensor *)record, NULL);
}

/* The one before it may be of any task: that of a record is looked up. */
static gbx_status put_chosen(entry_writer *writer, const gbx_manifest_choice *choice) {
    const gbx_manifest_chosen *chosen = writer->manifest->chosen;
    gbx_reader *reader = writer->manifest->reader;
    const gbx_record *record = NULL;
    gbx_record_stats stats;
    bool has_stats = false;
    if (chosen->statistics)
        GBX_TRY(chosen->statistics(chosen->context, choice->index, &stats, &has_stats));
    GBX_TRY(gbx_reader_at(reader, choice->position, &record));
    if (record->task != writer->task) {
        gbx_record_task task;
        bool is_found = false;
        uint64_t number = record->task;
        GBX_TRY(gbx_reader_find_task(reader, number, &task, &is_found));
        GBX_TRY(begin_task(writer, number, is_found ? &task : NULL));
        GBX_TRY(gbx_reader_at(reader, choice->position, &record));
    }
    writer->position = choice->index;
    if (record->type == GBX_RECORD_SCALAR)
        return put_scalar(writer, (const gbx_record_scalar *)record);
    return put_tensor(writer, (const gbx_record_tensor *)record, has_stats ? &stats : NULL);
}

static gbx_status put_choices(entry_writer *writer) {
    const gbx_manifest_chosen *chosen = writer->manifest->chosen;
    for (uint64_t i = 0; i < chosen->count && !gbx_manifest_file_has_failed(writer->file); ++i)
        GBX_TRY(put_chosen(writer, &chosen->choices[i]));
    return NULL;
}

static gbx_status put_entries(entry_writer *writer) {
    gbx_reader *reader = writer->manifest->reader;
    uint64_t count = gbx_reader_count(reader);
    for (uint64_t i = 0; i < count; ++i) {
        unsigned kind = gbx_reader_kind(reader, i);
        if (kind != 0 && kind != GBX_INDEX_ARGUMENTS)
            continue;
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_at(reader, i, &record));
        GBX_TRY(put_record(writer, record));
    }
    return NULL;
}

gbx_status gbx_manifest_put_tensors(gbx_manifest *manifest, gbx_manifest_file *file) {
    GBX_TRY(gbx_manifest_put_tensors_head(manifest, file));
    entry_writer *all = calloc(1, sizeof *all);
    if (!all)
        return gbx_fail(GBX_EXHAUSTED, "no memory for writing a manifest");
    all->manifest = manifest;
    all->file = file;
    all->told = gbx_reader_get_origin(manifest->reader)->told;
    all->has_kernels = gbx_reader_get_origin(manifest->reader)->is_journal ||
                       gbx_reader_run(manifest->reader)->kernel_count > 0;
    all->task = UINT64_MAX;
    memset(all->func_ids, 0xff, sizeof all->func_ids);
    fill_kinds(all);
    GBX_MEMBER(file, "\n\"tensors\": [");
    gbx_status status = manifest->chosen ? put_choices(all) : put_entries(all);
    free(all->front.text);
    free(all->back.text);
    free(all);
    GBX_TRY(status);
    gbx_manifest_file_room(file);
    GBX_MEMBER(file, "\n]\n}\n");
    return NULL;
}
