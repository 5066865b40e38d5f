/*
 * `tensors` of tensor_dump.json: an entry for each argument at each stage. Text that is the same
 * for all arguments of a task is made once per task; text that is the same for all of a form, once
 * per file.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memory.h"
#include "store/manifest/internal.h"

enum { RECORD, TASK, FORM }; /* how long a value is kept */
enum { FORM_TEXT_BYTES = 96 };

#define NUMBER_ROW(name, ...) FIELD_##name,
enum { GBX_TENSOR_FIELDS(NUMBER_ROW) FIELD_COUNT };

#define KEPT_ROW(name, rule, kept, ...) kept,
static const uint8_t kept_by_field[FIELD_COUNT] = {GBX_TENSOR_FIELDS(KEPT_ROW)};

/* Adjacent fields that are kept equally long make one text, put with the first of them. */
#define BEGINS_GROUP(name)                                                                         \
    (FIELD_##name == 0 || kept_by_field[FIELD_##name] != kept_by_field[FIELD_##name - 1])

/* ,"role":...,"dtype":... */
typedef struct form_text {
    char text[FORM_TEXT_BYTES];
    size_t size;
} form_text;

struct gbx_tensors_list {
    gbx_task_entry task;    /* the task of the texts... */
    bool has_texts;         /* ...once they are made */
    gbx_manifest_file file; /* in memory: of the groups of the task */
    const char *text;
    struct {
        size_t start; /* in `text` */
        size_t size;
    } groups[FIELD_COUNT]; /* by the first of their fields */
    uint64_t index;        /* of the next entry */
    form_text forms[GBX_KIND_COUNT][GBX_STAGE_COUNT][GBX_PARAMETER_SCALAR][GBX_DTYPE_COUNT];
};

/* --- once per file --- */

#define FORM_FORM(name, kind, present, ...)                                                        \
    if (present) {                                                                                 \
        GBX_PUT_KEY(name)                                                                          \
        at = put_##kind(m, at, __VA_ARGS__);                                                       \
    }
#define FORM_TASK(...)
#define FORM_RECORD(...)
#define FORM_ROW(name, rule, kept, ...) FORM_##kept(name, __VA_ARGS__)

static gbx_status fill_form(gbx_manifest *m, const gbx_argument_entry *e, bool is_tensor,
                            form_text *form) {
    char text[4 * FORM_TEXT_BYTES];
    char *at = text;
    bool is_first = false;
    GBX_TENSOR_FIELDS(FORM_ROW)
    form->size = (size_t)(at - text);
    if (form->size > sizeof form->text)
        return gbx_fail(GBX_INTERNAL,
                        "a form has %zu bytes, more than there is room for; report this",
                        form->size);
    memcpy(form->text, text, form->size);
    return NULL;
}

static gbx_status fill_forms(gbx_manifest *m) {
    gbx_argument_entry e = {0};
    for (e.stage = 0; e.stage < GBX_STAGE_COUNT; ++e.stage)
        for (e.role = 0; e.role < GBX_PARAMETER_SCALAR; ++e.role)
            for (e.dtype = 1; e.dtype < GBX_DTYPE_COUNT; ++e.dtype) {
                form_text *to = &m->tensors->forms[0][e.stage][e.role][e.dtype];
                size_t apart = sizeof m->tensors->forms[0] / sizeof *to;
                GBX_TRY(fill_form(m, &e, true, to));
                GBX_TRY(fill_form(m, &e, false, to + apart));
            }
    return NULL;
}

gbx_status gbx_tensors_list_make(gbx_manifest *m) {
    gbx_tensors_list *list = calloc(1, sizeof *list);
    if (!list)
        return gbx_fail_memory("writing a manifest");
    m->tensors = list;
    list->task.number = UINT64_MAX;
    memset(list->task.func_ids, 0xff, sizeof list->task.func_ids);
    GBX_TRY(gbx_manifest_file_stream(NULL, NULL, "the texts of a task", &list->file));
    return fill_forms(m);
}

void gbx_tensors_list_free(gbx_manifest *m) {
    if (m->tensors && m->tensors->file.writer)
        gbx_status_free(gbx_manifest_file_finish(&m->tensors->file, NULL));
    free(m->tensors);
    m->tensors = NULL;
}

/* --- once per task --- */

#define FILL_TASK(name, kind, present, ...)                                                        \
    if (BEGINS_GROUP(name)) {                                                                      \
        first = FIELD_##name;                                                                      \
        list->groups[first].start = (size_t)(at - m->file->start);                                 \
    }                                                                                              \
    if (present) {                                                                                 \
        GBX_PUT_KEY(name)                                                                          \
        at = put_##kind(m, at, __VA_ARGS__);                                                       \
    }                                                                                              \
    list->groups[first].size = (size_t)(at - m->file->start) - list->groups[first].start;
#define FILL_FORM(...)
#define FILL_RECORD(...)
#define FILL_ROW(name, rule, kept, ...) FILL_##kept(name, __VA_ARGS__)

static gbx_status fill_groups(gbx_manifest *m, const gbx_task_entry *t) {
    gbx_tensors_list *list = m->tensors;
    gbx_manifest_file *whole = m->file;
    size_t first = 0;
    size_t size = 0;
    bool is_first = false;
    m->file = &list->file;
    char *at = m->file->at;
    GBX_TENSOR_FIELDS(FILL_ROW)
    m->file->at = at;
    m->file = whole;
    list->has_texts = true;
    return gbx_manifest_file_take(&list->file, &list->text, &size);
}

/* A slot has the name from the first kernel that names it. */
static void fill_slot_names(const gbx_manifest *m, gbx_task_entry *task) {
    memset(task->slot_names, 0, sizeof task->slot_names);
    for (size_t i = GBX_SUBTASK_COUNT; i-- > 0;) {
        uint32_t func_id = task->func_ids[i];
        const struct gbx_kernel_names *kernel =
            func_id < GBX_MAX_KERNELS ? m->names.by_func_id[func_id] : NULL;
        for (size_t slot = 0; kernel && slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            if (kernel->slots[slot].size)
                task->slot_names[slot] = kernel->slots[slot];
    }
}

/* `record` is NULL when the task has none. Its executions follow; then its texts are made. */
static void begin_task(gbx_manifest *m, uint64_t number, const gbx_record_task *record) {
    static const uint32_t none[GBX_SUBTASK_COUNT] = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL};
    gbx_task_entry *task = &m->tensors->task;
    const uint32_t *func_ids = record ? record->func_ids : none;
    if (memcmp(task->func_ids, func_ids, sizeof none) != 0) {
        memcpy(task->func_ids, func_ids, sizeof none);
        fill_slot_names(m, task);
    }
    task->number = number;
    task->is_known = true;
    task->has_record = record != NULL;
    task->id = record ? record->task_id : 0;
    task->block_num = record ? record->block_num : 0;
    task->span.has_start = task->span.has_end = false;
    m->tensors->has_texts = false;
}

/* --- once per argument --- */

#define CHECK_RECORD(name, kind, present, ...) GBX_CHECK_ROW(name, , kind, present, __VA_ARGS__)
#define CHECK_TASK(...)
#define CHECK_FORM(...)
#define CHECK_ROW(name, rule, kept, ...) CHECK_##kept(name, __VA_ARGS__)

static inline __attribute__((always_inline)) const char *find_inexact(const gbx_manifest *m,
                                                                      const gbx_task_entry *t,
                                                                      const gbx_argument_entry *e,
                                                                      const bool is_tensor) {
    GBX_TENSOR_FIELDS(CHECK_ROW)
    (void)t;
    return NULL;
}

#define PUT_RECORD(name, kind, present, ...) GBX_PUT_ROW(name, , kind, present, __VA_ARGS__)
#define PUT_TASK(name, ...)                                                                        \
    if (BEGINS_GROUP(name))                                                                        \
        at = put_quoted(m, at,                                                                     \
                        (gbx_quoted){list->text + list->groups[FIELD_##name].start,                \
                                     list->groups[FIELD_##name].size});
#define PUT_FORM(name, ...)                                                                        \
    if (BEGINS_GROUP(name)) {                                                                      \
        memcpy(at, form->text, FORM_TEXT_BYTES);                                                   \
        at += form->size;                                                                          \
    }
#define PUT_ROW(name, rule, kept, ...) PUT_##kept(name, __VA_ARGS__)

static inline __attribute__((always_inline)) gbx_status
put_entry(gbx_manifest *m, const gbx_argument_entry *e, const bool is_tensor) {
    gbx_tensors_list *list = m->tensors;
    const gbx_task_entry *t = &list->task;
    const char *inexact = find_inexact(m, t, e, is_tensor);
    if (__builtin_expect(inexact != NULL, 0))
        return gbx_fail_inexact(inexact, "argument %u of task %" PRIu64, e->head->arg_index,
                                e->head->task);
    const form_text *form = &list->forms[is_tensor ? 0 : 1][e->stage][e->role][e->dtype];
    bool is_first = true;
    char *at = m->file->at;
    GBX_TENSOR_FIELDS(PUT_ROW)
    *at++ = '}';
    m->file->at = at;
    return NULL;
}

static gbx_status put_scalar(gbx_manifest *m, uint64_t index, const gbx_record_scalar *record) {
    const gbx_record *head = &record->head;
    const gbx_argument_entry e = {.index = index,
                                  .head = head,
                                  .numel = 1,
                                  .bits = record->bits,
                                  .flags = head->flags,
                                  .dtype = gbx_record_scalar_dtype(head->dtype),
                                  .role = head->role,
                                  .stage = head->stage};
    return put_entry(m, &e, false);
}

/* `computed` are statistics for a tensor that has none recorded; NULL for none. */
static gbx_status put_tensor(gbx_manifest *m, uint64_t index, const gbx_record_tensor *record,
                             const gbx_record_stats *computed) {
    const gbx_record *head = &record->head;
    const gbx_record_stats *recorded = gbx_record_statistics(record);
    const int64_t *shape = gbx_record_shape(record);
    const gbx_argument_entry e = {.index = index,
                                  .head = head,
                                  .tensor = record,
                                  .stats = recorded ? recorded : computed,
                                  .shape = shape,
                                  .strides = gbx_record_strides(record),
                                  .numel = gbx_manifest_numel(shape, head->ndims),
                                  .flags = head->flags,
                                  .ndims = head->ndims,
                                  .dtype = head->dtype,
                                  .role = head->role,
                                  .stage = head->stage,
                                  .has_payload = (head->flags & GBX_FLAG_HAS_PAYLOAD) != 0};
    return put_entry(m, &e, true);
}

/* TASK or EXECUTION: only the first TASK of a task counts. */
static gbx_status take_record(gbx_manifest *m, const gbx_record *record) {
    gbx_task_entry *task = &m->tensors->task;
    if (record->type == GBX_RECORD_EXECUTION) {
        if (record->task != task->number)
            begin_task(m, record->task, NULL);
        return gbx_span_entry_add(&task->span, (const gbx_record_execution *)record);
    }
    if (record->task != task->number || !task->has_record)
        begin_task(m, record->task, (const gbx_record_task *)record);
    return NULL;
}

static gbx_status put_argument(gbx_manifest *m, const gbx_record *record,
                               const gbx_record_stats *computed) {
    if (!m->tensors->has_texts)
        GBX_TRY(fill_groups(m, &m->tensors->task));
    uint64_t index = m->tensors->index++;
    if (record->type == GBX_RECORD_SCALAR)
        return put_scalar(m, index, (const gbx_record_scalar *)record);
    return put_tensor(m, index, (const gbx_record_tensor *)record, computed);
}

/* Reads what comes before the arguments of a task. */
static gbx_status take_task(gbx_manifest *m, uint64_t number) {
    uint64_t count = gbx_reader_count(m->reader);
    m->tensors->task.number = UINT64_MAX;
    for (uint64_t i = gbx_reader_find(m->reader, number); i < count; ++i) {
        const gbx_record *record = NULL;
        unsigned kind = gbx_reader_kind(m->reader, i);
        if (kind != 0 && kind != GBX_INDEX_EXECUTIONS)
            break;
        GBX_TRY(gbx_reader_at(m->reader, i, &record));
        if (record->task != number)
            break;
        GBX_TRY(take_record(m, record));
    }
    if (m->tensors->task.number != number)
        begin_task(m, number, NULL);
    return NULL;
}

/* The previous entry may belong to any task, so the task is looked up. */
static gbx_status put_chosen(gbx_manifest *m, const gbx_manifest_choice *choice) {
    const gbx_manifest_chosen *chosen = m->chosen;
    const gbx_record *record = NULL;
    gbx_record_stats stats;
    bool has_stats = false;
    if (chosen->statistics)
        GBX_TRY(chosen->statistics(chosen->context, choice->index, &stats, &has_stats));
    GBX_TRY(gbx_reader_at(m->reader, choice->position, &record));
    if (record->task != m->tensors->task.number) {
        GBX_TRY(take_task(m, record->task));
        GBX_TRY(gbx_reader_at(m->reader, choice->position, &record));
    }
    m->tensors->index = choice->index;
    return put_argument(m, record, has_stats ? &stats : NULL);
}

static gbx_status next_chosen(gbx_manifest *m, bool *out_has_one) {
    uint64_t position = m->positions[GBX_MANIFEST_TENSORS]++;
    *out_has_one = position < m->chosen->count;
    return *out_has_one ? put_chosen(m, &m->chosen->choices[position]) : NULL;
}

gbx_status gbx_tensors_list_next(gbx_manifest *m, bool *out_has_one) {
    if (m->chosen)
        return next_chosen(m, out_has_one);
    uint64_t count = gbx_reader_count(m->reader);
    uint64_t *position = &m->positions[GBX_MANIFEST_TENSORS];
    for (; *position < count; ++*position) {
        unsigned kind = gbx_reader_kind(m->reader, *position);
        if (kind != 0 && kind != GBX_INDEX_EXECUTIONS && kind != GBX_INDEX_ARGUMENTS)
            continue;
        const gbx_record *record = NULL;
        GBX_TRY(gbx_reader_at(m->reader, *position, &record));
        if (kind != GBX_INDEX_ARGUMENTS) {
            GBX_TRY(take_record(m, record));
            continue;
        }
        if (record->task != m->tensors->task.number)
            begin_task(m, record->task, NULL);
        ++*position;
        *out_has_one = true;
        m->place =
            (gbx_manifest_place){m->tensors->index, record->task, record->arg_index, record->stage};
        return put_argument(m, record, NULL);
    }
    *out_has_one = false;
    return NULL;
}
