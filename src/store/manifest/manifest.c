#include "store/manifest/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/manifest/internal.h"
#include "text/json_writer.h"

#define PUT(m, literal) gbx_manifest_file_put((m)->file, (literal), sizeof(literal) - 1)

#define PUT_ENTRY(fields)                                                                          \
    bool is_first = true;                                                                          \
    char *at = m->file->at;                                                                        \
    fields(GBX_PUT_ROW) m->file->at = GBX_PUT(at, "}");

#define RETURN_OBJECT(fields)                                                                      \
    bool is_first = true;                                                                          \
    fields(GBX_PUT_ROW) return GBX_PUT(at, "}");

gbx_status gbx_manifest_make_inexact(const char *field, const char *format, ...) {
    char what[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return gbx_fail(
        GBX_OUT_OF_RANGE,
        "writing the manifest: %s of %s is 2^53 or more, which JSON readers do not keep exact",
        field, what);
}

/* --- names --- */

typedef struct text_buffer {
    char *text;
    uint64_t capacity;
    size_t size;
} text_buffer;

static gbx_status append(void *context, const void *bytes, size_t size) {
    text_buffer *buffer = context;
    GBX_TRY(gbx_array_reserve(&buffer->text, &buffer->capacity, buffer->size + size,
                              "writing a name as JSON"));
    memcpy(buffer->text + buffer->size, bytes, size);
    buffer->size += size;
    return NULL;
}

/* A string as JSON; the caller frees the text. */
static gbx_status quote(const char *text, gbx_quoted *out_quoted) {
    gbx_json_writer json;
    text_buffer buffer = {0};
    gbx_json_start(&json, append, &buffer, GBX_JSON_ONE_LINE);
    gbx_json_string(&json, text);
    gbx_status status = gbx_json_finish(&json);
    if (status) {
        free(buffer.text);
        return status;
    }
    *out_quoted = (gbx_quoted){buffer.text, buffer.size - 1}; /* without the final newline */
    return NULL;
}

static void free_quoted(gbx_quoted *quoted) {
    free((char *)(uintptr_t)quoted->text);
}

static gbx_status fill_names(gbx_manifest_names *names, const gbx_run_info *run) {
    names->kernels = calloc(run->kernel_count + 1, sizeof *names->kernels);
    if (!names->kernels)
        return gbx_fail_memory("writing the names of %zu kernels", run->kernel_count);
    for (size_t i = 0; i < run->kernel_count; ++i) {
        const gbx_run_kernel *kernel = &run->kernels[i];
        struct gbx_kernel_names *to = &names->kernels[i];
        names->kernel_count = i + 1;
        GBX_TRY(quote(kernel->name, &to->name));
        for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            if (kernel->slot_names[slot])
                GBX_TRY(quote(kernel->slot_names[slot], &to->slots[slot]));
        if (!names->by_func_id[kernel->func_id])
            names->by_func_id[kernel->func_id] = to;
    }
    return NULL;
}

static void free_names(gbx_manifest_names *names) {
    for (size_t i = 0; i < names->kernel_count; ++i) {
        free_quoted(&names->kernels[i].name);
        for (size_t slot = 0; slot < GBX_RUN_KERNEL_SLOTS; ++slot)
            free_quoted(&names->kernels[i].slots[slot]);
    }
    free(names->kernels);
}

gbx_quoted gbx_manifest_kernel_name(const gbx_manifest_names *names, uint32_t func_id) {
    const gbx_quoted none = {"null", 4};
    bool is_known = func_id < GBX_MAX_KERNELS && names->by_func_id[func_id];
    return is_known ? names->by_func_id[func_id]->name : none;
}

/* --- puts --- */

char *put_string(gbx_manifest *m, char *at, const char *text) {
    gbx_quoted quoted = {0};
    gbx_status status = quote(text, &quoted);
    if (status) {
        m->failure = gbx_status_first(m->failure, status);
        return at;
    }
    at = put_quoted(m, at, quoted);
    free_quoted(&quoted);
    return at;
}

char *put_strings(gbx_manifest *m, char *at, const char *const *texts, size_t count) {
    *at++ = '[';
    for (size_t i = 0; i < count; ++i) {
        at = i ? GBX_PUT(at, ",") : at;
        at = put_string(m, at, texts[i]);
        m->file->at = at; /* there may be any number of them: make room */
        gbx_manifest_file_room(m->file);
        at = m->file->at;
    }
    *at++ = ']';
    return at;
}

#define PUT_SUBTASKS(put)                                                                          \
    *at++ = '[';                                                                                   \
    bool is_first = true;                                                                          \
    for (uint32_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {                                             \
        if (func_ids[i] == GBX_NO_KERNEL)                                                          \
            continue;                                                                              \
        at = is_first ? at : GBX_PUT(at, ",");                                                     \
        at = put;                                                                                  \
        is_first = false;                                                                          \
    }                                                                                              \
    *at++ = ']';                                                                                   \
    return at;

char *put_func_ids(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]) {
    PUT_SUBTASKS(put_u64(m, at, func_ids[i]))
}

char *put_kernels(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]) {
    PUT_SUBTASKS(put_quoted(m, at, gbx_manifest_kernel_name(&m->names, func_ids[i])))
}

char *put_subtasks(gbx_manifest *m, char *at, const uint32_t func_ids[GBX_SUBTASK_COUNT]) {
    PUT_SUBTASKS(put_word(m, at, gbx_name_of(&gbx_subtasks, i)))
}

char *put_cores(gbx_manifest *m, char *at, const gbx_span_entry *span) {
    if (!span->has_start)
        return GBX_PUT(at, "null");
    bool is_first = true;
    *at++ = '[';
    for (uint32_t word = 0; word < GBX_RECORD_CORE_END / 64; ++word)
        for (uint64_t bits = span->cores[word]; bits; bits &= bits - 1) {
            at = is_first ? at : GBX_PUT(at, ",");
            at = put_u64(m, at, word * 64 + (uint64_t)__builtin_ctzll(bits));
            is_first = false;
        }
    *at++ = ']';
    return at;
}

gbx_status gbx_span_entry_add(gbx_span_entry *span, const gbx_record_execution *e) {
    uint64_t start_ns = e->head.time_ns;
    bool has_end = e->end_ns != GBX_NO_END_NS;
    if (!is_exact_u64(start_ns) || (has_end && !is_exact_u64(e->end_ns)))
        return gbx_fail_inexact(is_exact_u64(start_ns) ? "end_ns" : "start_ns",
                                "a dispatch of task %" PRIu64, e->head.task);
    if (!span->has_start) {
        *span = (gbx_span_entry){.has_start = true, .has_end = true, .start_ns = start_ns};
    } else if (start_ns < span->start_ns) {
        span->start_ns = start_ns;
    }
    span->has_end &= has_end;
    if (has_end && e->end_ns > span->end_ns)
        span->end_ns = e->end_ns;
    span->cores[e->core_id / 64] |= UINT64_C(1) << e->core_id % 64;
    return NULL;
}

char *put_run(gbx_manifest *m, char *at, const gbx_run_info *run) {
    RETURN_OBJECT(GBX_RUN_FIELDS)
}

char *put_bin_format(gbx_manifest *m, char *at, const gbx_manifest *same) {
    (void)same;
    RETURN_OBJECT(GBX_BIN_FORMAT_FIELDS)
}

char *put_stats(gbx_manifest *m, char *at, uint32_t dtype, const gbx_record_stats *e) {
    RETURN_OBJECT(GBX_STATS_FIELDS)
}

static const char *find_inexact_stat(uint32_t dtype, const gbx_record_stats *e) {
    GBX_STATS_FIELDS(GBX_CHECK_ROW)
    return NULL;
}

bool is_exact_stats(uint32_t dtype, const gbx_record_stats *stats) {
    return find_inexact_stat(dtype, stats) == NULL;
}

static bool is_exact_piece(const gbx_record_piece *piece) {
    return is_exact_u64(piece->offset) && is_exact_u64(piece->bytes);
}

bool is_exact_pieces(const gbx_result *result) {
    bool is_exact = true;
    for (uint64_t i = 0; i < result->piece_count; ++i)
        is_exact &= is_exact_piece(&result->pieces[i]);
    return is_exact;
}

static char *put_piece(gbx_manifest *m, char *at, const gbx_record_piece *e) {
    RETURN_OBJECT(GBX_PIECE_FIELDS)
}

char *put_pieces(gbx_manifest *m, char *at, const gbx_result *result) {
    *at++ = '[';
    for (uint64_t i = 0; i < result->piece_count; ++i) {
        at = i ? GBX_PUT(at, ",") : at;
        m->file->at = put_piece(m, at, &result->pieces[i]);
        gbx_manifest_file_room(m->file); /* there may be many */
        at = m->file->at;
    }
    *at++ = ']';
    return at;
}

static char *put_context(gbx_manifest *m, char *at, uint32_t arg_index, const char *name,
                         uint64_t bits) {
    RETURN_OBJECT(GBX_CONTEXT_FIELDS)
}

static char *put_contexts(gbx_manifest *m, char *at, const gbx_record_dispatch *e) {
    at = GBX_PUT(at, "[");
    at = put_context(m, at, GBX_ARG_LOCAL_CONTEXT, "local_context", e->local_context);
    at = GBX_PUT(at, ",");
    at = put_context(m, at, GBX_ARG_GLOBAL_CONTEXT, "global_context", e->global_context);
    return GBX_PUT(at, "]");
}

static const char *find_inexact_slot(const gbx_slot_view *e, uint32_t ndims) {
    const uint32_t dtype = 0;
    GBX_SLOT_FIELDS(GBX_CHECK_ROW)
    (void)dtype;
    return NULL;
}

static char *put_slot(gbx_manifest *m, char *at, const gbx_slot_view *e, uint32_t ndims) {
    uint32_t dtype = e->slot->dtype;
    RETURN_OBJECT(GBX_SLOT_FIELDS)
}

static char *put_slots(gbx_manifest *m, char *at, const gbx_record_dispatch *record) {
    const void *next = record + 1;
    *at++ = '[';
    for (uint32_t i = 0; i < record->slot_count; ++i) {
        gbx_slot_view view;
        next = gbx_record_next_slot(next, &view);
        uint32_t ndims = view.slot->is_tensor ? view.slot->ndims : 0;
        const char *inexact = find_inexact_slot(&view, ndims);
        if (inexact && !m->failure)
            m->failure = gbx_fail_inexact(inexact, "slot %u of a dispatch of task %" PRIu64,
                                          view.slot->arg_index, record->head.task);
        at = i ? GBX_PUT(at, ",") : at;
        at = put_slot(m, at, &view, ndims);
    }
    *at++ = ']';
    return at;
}

/* --- lists --- */

/* Each puts the next entry of its list; after the last, *out_has_one is false and nothing is
 * put. */

static gbx_status next_kernel(gbx_manifest *m, bool *out_has_one) {
    uint64_t position = m->positions[GBX_MANIFEST_KERNELS]++;
    *out_has_one = position < m->run->kernel_count;
    if (!*out_has_one)
        return NULL;
    const gbx_run_kernel *e = &m->run->kernels[position];
    PUT_ENTRY(GBX_KERNEL_FIELDS)
    return NULL;
}

/* The next record of a list of the reader. */
static gbx_status next_listed(gbx_manifest *m, gbx_manifest_list list, gbx_reader_list read,
                              const gbx_record **out_record, bool *out_has_one) {
    uint64_t position = m->positions[list]++;
    *out_has_one = position < gbx_reader_list_count(m->reader, read);
    return *out_has_one ? gbx_reader_list_at(m->reader, read, position, out_record) : NULL;
}

static gbx_status find_task(gbx_manifest *m, const gbx_record *head, gbx_task_entry *out_task) {
    gbx_record_task record = {0};
    out_task->is_known = head->type != GBX_RECORD_LOSS || head->arg_index != GBX_ARG_NONE ||
                         head->stage != GBX_STAGE_NONE;
    out_task->has_record = false;
    if (out_task->is_known)
        GBX_TRY(gbx_reader_find_task(m->reader, head->task, &record, &out_task->has_record));
    out_task->id = record.task_id;
    return NULL;
}

static gbx_status next_loss(gbx_manifest *m, bool *out_has_one) {
    const gbx_record *record = NULL;
    gbx_task_entry task, *t = &task;
    GBX_TRY(next_listed(m, GBX_MANIFEST_LOSSES, GBX_LIST_LOSSES, &record, out_has_one));
    if (!*out_has_one)
        return NULL;
    const gbx_record_loss loss = *(const gbx_record_loss *)record, *e = &loss;
    uint32_t result = gbx_record_lost_result((const gbx_record_loss *)record);
    GBX_TRY(find_task(m, &loss.head, t));
    if (!is_exact_u64(loss.count))
        return gbx_fail_inexact("count", "a loss");
    PUT_ENTRY(GBX_LOSS_FIELDS)
    return NULL;
}

static gbx_status next_skipped(gbx_manifest *m, bool *out_has_one) {
    const gbx_record *record = NULL;
    gbx_task_entry task, *t = &task;
    GBX_TRY(next_listed(m, GBX_MANIFEST_SKIPPED, GBX_LIST_SKIPPED, &record, out_has_one));
    if (!*out_has_one)
        return NULL;
    const gbx_record_skipped skipped = *(const gbx_record_skipped *)record, *e = &skipped;
    GBX_TRY(find_task(m, &skipped.head, t));
    PUT_ENTRY(GBX_SKIPPED_FIELDS)
    return NULL;
}

static const char *find_inexact_result(const gbx_record_tensor *e, const gbx_result *r,
                                       uint64_t index) {
    GBX_RESULT_FIELDS(GBX_CHECK_ROW)
    return NULL;
}

static gbx_status next_result(gbx_manifest *m, bool *out_has_one) {
    uint64_t index = m->positions[GBX_MANIFEST_RESULTS]++;
    gbx_result result, *r = &result;
    *out_has_one = index < gbx_reader_result_count(m->reader);
    if (!*out_has_one)
        return NULL;
    GBX_TRY(gbx_reader_result(m->reader, index, r));
    const gbx_record_tensor *e = r->record;
    const char *inexact = find_inexact_result(e, r, index);
    if (inexact)
        return gbx_fail_inexact(inexact, "argument %u of the run at its end", r->arg_index);
    PUT_ENTRY(GBX_RESULT_FIELDS)
    return NULL;
}

static char *put_candidate(gbx_manifest *m, char *at, const gbx_run_finding_task *e) {
    RETURN_OBJECT(GBX_CANDIDATE_FIELDS)
}

static char *put_candidates(gbx_manifest *m, char *at, const gbx_run_finding *finding) {
    *at++ = '[';
    for (uint32_t i = 0; i < finding->candidate_count; ++i) {
        at = i ? GBX_PUT(at, ",") : at;
        at = put_candidate(m, at, &finding->candidates[i]);
    }
    *at++ = ']';
    return at;
}

/* Names for the sentence of a finding; `context` is a gbx_run_info. */
static const char *kernel_text(const void *context, uint32_t func_id) {
    const gbx_run_kernel *kernel = gbx_run_info_kernel(context, func_id);
    return kernel ? kernel->name : NULL;
}

static const char *argument_text(const void *context, uint32_t func_id, uint32_t index,
                                 size_t *out_size) {
    const gbx_run_kernel *kernel = gbx_run_info_kernel(context, func_id);
    const char *name = kernel && index < GBX_RUN_KERNEL_SLOTS ? kernel->slot_names[index] : NULL;
    *out_size = name ? strlen(name) : 0;
    return name;
}

static const char *run_argument_text(const void *context, uint32_t index) {
    const gbx_run_info *run = context;
    return index < run->argument_count ? run->arguments[index].name : NULL;
}

void gbx_manifest_finding_text(const gbx_run_info *run, const gbx_run_finding *finding,
                               char out_text[GBX_FINDING_TEXT_BYTES]) {
    const gbx_finding_names names = {run, kernel_text, argument_text, run_argument_text};
    gbx_finding_text(finding, &names, out_text);
}

static gbx_status next_finding(gbx_manifest *m, bool *out_has_one) {
    const gbx_record *record = NULL;
    char text[GBX_FINDING_TEXT_BYTES];
    GBX_TRY(next_listed(m, GBX_MANIFEST_FINDINGS, GBX_LIST_FINDINGS, &record, out_has_one));
    if (!*out_has_one)
        return NULL;
    const gbx_record_finding found = *(const gbx_record_finding *)record;
    const gbx_run_finding *e = &found.finding;
    gbx_manifest_finding_text(m->run, e, text);
    PUT_ENTRY(GBX_FINDING_FIELDS)
    return NULL;
}

static const char *find_inexact_arg(const gbx_record_run_arg *e) {
    const uint32_t dtype = 0;
    const char *const name = NULL;
    GBX_ARG_FIELDS(GBX_CHECK_ROW)
    (void)dtype;
    (void)name;
    return NULL;
}

static gbx_status next_arg(gbx_manifest *m, bool *out_has_one) {
    const gbx_record *head = NULL;
    GBX_TRY(next_listed(m, GBX_MANIFEST_ARGS, GBX_LIST_RUN_ARGS, &head, out_has_one));
    if (!*out_has_one)
        return NULL;
    const gbx_record_run_arg *e = (const gbx_record_run_arg *)head;
    const char *inexact = find_inexact_arg(e);
    if (inexact)
        return gbx_fail_inexact(inexact, "argument %u of the orchestration", head->arg_index);
    bool is_named = head->arg_index < m->run->argument_count;
    const char *name = is_named ? m->run->arguments[head->arg_index].name : NULL;
    uint32_t dtype = head->dtype;
    PUT_ENTRY(GBX_ARG_FIELDS)
    return NULL;
}

static const char *find_inexact_dispatch(const gbx_record_dispatch *e, uint64_t index) {
    GBX_DISPATCH_FIELDS(GBX_CHECK_ROW)
    return NULL;
}

/* The next dispatch, of all or of the chosen ones. */
static bool choose_dispatch(gbx_manifest *m, gbx_manifest_choice *out_choice) {
    uint64_t count = gbx_reader_count(m->reader);
    uint64_t *position = &m->positions[GBX_MANIFEST_DISPATCHES];
    if (m->chosen) {
        bool has_one = *position < m->chosen->count;
        if (has_one)
            *out_choice = m->chosen->choices[(*position)++];
        return has_one;
    }
    while (*position < count && gbx_reader_kind(m->reader, *position) != GBX_INDEX_DISPATCHES)
        ++*position;
    if (*position == count)
        return false;
    *out_choice = (gbx_manifest_choice){m->dispatch_index++, (*position)++};
    return true;
}

static gbx_status next_dispatch(gbx_manifest *m, bool *out_has_one) {
    gbx_manifest_choice choice;
    *out_has_one = choose_dispatch(m, &choice);
    if (!*out_has_one)
        return NULL;
    const gbx_record *record = NULL;
    uint64_t index = choice.index;
    gbx_record_execution execution;
    gbx_span_entry found = {0}, *span = &found;
    bool is_found = false;
    GBX_TRY(gbx_reader_find_execution(m->reader, choice.position, &execution, &is_found));
    if (is_found)
        GBX_TRY(gbx_span_entry_add(span, &execution));
    GBX_TRY(gbx_reader_at(m->reader, choice.position, &record));
    const gbx_record_dispatch *e = (const gbx_record_dispatch *)record;
    const char *inexact = find_inexact_dispatch(e, index);
    if (inexact)
        return gbx_fail_inexact(inexact, "a dispatch of task %" PRIu64, record->task);
    PUT_ENTRY(GBX_DISPATCH_FIELDS)
    return NULL;
}

typedef gbx_status (*next_function)(gbx_manifest *m, bool *out_has_one);

static const next_function next_of[GBX_MANIFEST_LIST_COUNT] = {
    [GBX_MANIFEST_KERNELS] = next_kernel,  [GBX_MANIFEST_LOSSES] = next_loss,
    [GBX_MANIFEST_SKIPPED] = next_skipped, [GBX_MANIFEST_TENSORS] = gbx_tensors_list_next,
    [GBX_MANIFEST_ARGS] = next_arg,        [GBX_MANIFEST_DISPATCHES] = next_dispatch,
    [GBX_MANIFEST_RESULTS] = next_result,  [GBX_MANIFEST_FINDINGS] = next_finding,
};

static gbx_status take_failure(gbx_manifest *m) {
    gbx_status failure = m->failure;
    m->failure = NULL;
    return failure;
}

static gbx_status next_entry(gbx_manifest *m, gbx_manifest_list list, bool *out_has_one) {
    if (list == GBX_MANIFEST_TENSORS && !m->tensors)
        GBX_TRY(gbx_tensors_list_make(m));
    GBX_TRY(next_of[list](m, out_has_one));
    return take_failure(m);
}

/* --- the top: one member per line --- */

static void put_member_name(gbx_manifest *m, const char *name) {
    gbx_manifest_file_put(m->file, m->has_member ? ",\n\"" : "{\n\"", 3);
    gbx_manifest_file_put(m->file, name, strlen(name));
    PUT(m, "\": ");
    m->has_member = true;
}

/* Puts directly into the file, because a list may have any length. */
static char *put_list(gbx_manifest *m, char *at, gbx_manifest_list list) {
    bool has_one = true;
    m->file->at = GBX_PUT(at, "[");
    for (uint64_t i = 0; has_one && !m->failure && !m->file->has_failed; ++i) {
        gbx_manifest_file_room(m->file);
        char *before = m->file->at;
        m->file->at = i ? GBX_PUT(before, ",\n") : GBX_PUT(before, "\n");
        m->failure = gbx_status_first(m->failure, next_entry(m, list, &has_one));
        if (!has_one)
            m->file->at = before;
    }
    return GBX_PUT(m->file->at, "\n]");
}

#define is_exact_run(...) true
#define is_exact_bin_format(...) true
#define is_exact_list(...) true

#define MEMBER_ROW(name, rule, kind, present, ...)                                                 \
    if (present) {                                                                                 \
        if (!is_exact_##kind(__VA_ARGS__))                                                         \
            return gbx_fail_inexact(#name, "the run");                                             \
        put_member_name(m, #name);                                                                 \
        m->file->at = put_##kind(m, m->file->at, __VA_ARGS__);                                     \
        gbx_manifest_file_room(m->file);                                                           \
    }

static gbx_status put_manifest(gbx_manifest *m, gbx_manifest_kind kind) {
    m->has_member = false;
    /* The lists that several files have. */
    m->positions[GBX_MANIFEST_KERNELS] = 0;
    m->positions[GBX_MANIFEST_LOSSES] = 0;
    m->positions[GBX_MANIFEST_SKIPPED] = 0;
    if (kind == GBX_MANIFEST_FILE_TENSORS) {
        GBX_TENSORS_HEAD_FIELDS(MEMBER_ROW)
    } else if (kind == GBX_MANIFEST_FILE_ARGS) {
        GBX_ARGS_HEAD_FIELDS(MEMBER_ROW)
    } else {
        GBX_DISPATCHES_HEAD_FIELDS(MEMBER_ROW)
    }
    PUT(m, "\n}\n");
    return take_failure(m);
}

/* --- fields --- */

#define FIELD_ROW(name, rule, ...) {#name, GBX_RULE_##rule, GBX_MANIFEST_LIST_COUNT},
#define HEAD_ROW(name, rule, kind, present, ...)                                                   \
    {#name, GBX_RULE_##rule, LIST_OF_##kind(__VA_ARGS__)},
#define LIST_OF_list(list) list
#define LIST_OF_u64(...) GBX_MANIFEST_LIST_COUNT
#define LIST_OF_string(...) GBX_MANIFEST_LIST_COUNT
#define LIST_OF_flag(...) GBX_MANIFEST_LIST_COUNT
#define LIST_OF_run(...) GBX_MANIFEST_LIST_COUNT
#define LIST_OF_bin_format(...) GBX_MANIFEST_LIST_COUNT

static const gbx_manifest_field kernel_fields[] = {GBX_KERNEL_FIELDS(FIELD_ROW)};
static const gbx_manifest_field loss_fields[] = {GBX_LOSS_FIELDS(FIELD_ROW)};
static const gbx_manifest_field skipped_fields[] = {GBX_SKIPPED_FIELDS(FIELD_ROW)};
static const gbx_manifest_field finding_fields[] = {GBX_FINDING_FIELDS(FIELD_ROW)};
static const gbx_manifest_field tensor_fields[] = {GBX_TENSOR_FIELDS(FIELD_ROW)};
static const gbx_manifest_field arg_fields[] = {GBX_ARG_FIELDS(FIELD_ROW)};
static const gbx_manifest_field dispatch_fields[] = {GBX_DISPATCH_FIELDS(FIELD_ROW)};
static const gbx_manifest_field result_fields[] = {GBX_RESULT_FIELDS(FIELD_ROW)};
static const gbx_manifest_field tensors_head[] = {GBX_TENSORS_HEAD_FIELDS(HEAD_ROW)};
static const gbx_manifest_field args_head[] = {GBX_ARGS_HEAD_FIELDS(HEAD_ROW)};
static const gbx_manifest_field dispatches_head[] = {GBX_DISPATCHES_HEAD_FIELDS(HEAD_ROW)};

typedef struct field_list {
    const gbx_manifest_field *fields;
    size_t count;
} field_list;

#define LISTED(table)                                                                              \
    { table, sizeof(table) / sizeof *(table) }

const gbx_manifest_field *gbx_manifest_list_fields(gbx_manifest_list list, size_t *out_count) {
    static const field_list lists[GBX_MANIFEST_LIST_COUNT] = {
        [GBX_MANIFEST_KERNELS] = LISTED(kernel_fields),
        [GBX_MANIFEST_LOSSES] = LISTED(loss_fields),
        [GBX_MANIFEST_SKIPPED] = LISTED(skipped_fields),
        [GBX_MANIFEST_TENSORS] = LISTED(tensor_fields),
        [GBX_MANIFEST_FINDINGS] = LISTED(finding_fields),
        [GBX_MANIFEST_ARGS] = LISTED(arg_fields),
        [GBX_MANIFEST_DISPATCHES] = LISTED(dispatch_fields),
        [GBX_MANIFEST_RESULTS] = LISTED(result_fields),
    };
    *out_count = lists[list].count;
    return lists[list].fields;
}

const gbx_manifest_field *gbx_manifest_head_fields(gbx_manifest_kind kind, size_t *out_count) {
    static const field_list heads[] = {
        [GBX_MANIFEST_FILE_TENSORS] = LISTED(tensors_head),
        [GBX_MANIFEST_FILE_ARGS] = LISTED(args_head),
        [GBX_MANIFEST_FILE_DISPATCHES] = LISTED(dispatches_head),
    };
    *out_count = heads[kind].count;
    return heads[kind].fields;
}

/* --- files, streams, pieces --- */

/* Frees nothing when it fails: end() does. */
static gbx_status begin(gbx_manifest *m, gbx_reader *reader, const char *run_directory) {
    const gbx_reader_origin *origin = gbx_reader_get_origin(reader);
    const char *slash = strrchr(origin->payload_path, '/');
    m->reader = reader;
    m->run_directory = run_directory;
    m->run = gbx_reader_run(reader);
    m->totals = gbx_reader_get_totals(reader);
    m->end = gbx_reader_end(reader);
    m->payload_name = slash ? slash + 1 : NULL;
    m->known = origin->known;
    m->has_lists = true;
    m->has_findings = origin->has_findings;
    m->has_kernels = origin->is_journal || m->run->kernel_count > 0;
    return fill_names(&m->names, m->run);
}

static void end(gbx_manifest *m) {
    gbx_tensors_list_free(m);
    gbx_status_free(m->failure);
    free_names(&m->names);
    free(m);
}

static gbx_status write_file(gbx_manifest *m, const char *directory, gbx_manifest_kind kind) {
    gbx_manifest_file file;
    GBX_TRY(gbx_manifest_file_create(directory, gbx_manifest_name(kind), &file));
    m->file = &file;
    gbx_status status = put_manifest(m, kind);
    return gbx_manifest_file_finish(&file, status);
}

static gbx_status write_files(const char *real, gbx_reader *reader, bool has_tensors,
                              bool has_args) {
    char files[PATH_MAX + sizeof "/tensor_dump"];
    gbx_manifest *m = calloc(1, sizeof *m);
    if (!m)
        return gbx_fail_memory("writing the manifest of %s", real);
    snprintf(files, sizeof files, "%s/tensor_dump", real);
    gbx_status status = begin(m, reader, strrchr(real, '/') + 1);
    if (!status && has_tensors)
        status = write_file(m, files, GBX_MANIFEST_FILE_TENSORS);
    if (!status && has_args)
        status = write_file(m, files, GBX_MANIFEST_FILE_ARGS);
    if (!status && has_args)
        status = write_file(m, files, GBX_MANIFEST_FILE_DISPATCHES);
    end(m);
    return status;
}

const char *gbx_manifest_name(gbx_manifest_kind kind) {
    static const char *const names[] = {"tensor_dump.json", "args_dump.json",
                                        "kernel_args_dump.json"};
    return names[kind];
}

gbx_status gbx_manifest_write(const char *directory, bool has_tensors, bool has_args) {
    char real[PATH_MAX];
    gbx_reader *reader = NULL;
    if (!realpath(directory, real))
        return gbx_fail(errno == ENOENT ? GBX_NOT_FOUND : GBX_IO, "cannot open the dump %s: %s",
                        directory, strerror(errno));
    unsigned indexed = GBX_INDEX_EXECUTIONS |
                       (has_tensors ? GBX_INDEX_ARGUMENTS : GBX_INDEX_NOTHING) |
                       (has_args ? GBX_INDEX_DISPATCHES : GBX_INDEX_NOTHING);
    GBX_TRY(gbx_reader_open(real, indexed, &reader));
    gbx_status status = write_files(real, reader, has_tensors, has_args);
    gbx_reader_close(reader);
    return status;
}

gbx_status gbx_manifest_print(gbx_reader *reader, gbx_manifest_kind kind,
                              const gbx_manifest_chosen *chosen, gbx_manifest_sink write,
                              void *to) {
    gbx_manifest_file file;
    gbx_manifest *m = calloc(1, sizeof *m);
    if (!m)
        return gbx_fail_memory("printing a manifest");
    m->chosen = chosen;
    gbx_status status = begin(m, reader, chosen->run_directory);
    if (!status)
        status = gbx_manifest_file_stream(write, to, "a manifest", &file);
    if (!status) {
        m->file = &file;
        status = put_manifest(m, kind);
        status = gbx_manifest_file_finish(&file, status);
    }
    end(m);
    return status;
}

struct gbx_manifest_pieces {
    gbx_manifest *m;
    gbx_manifest_file file; /* in memory */
};

gbx_status gbx_manifest_pieces_open(gbx_reader *reader, gbx_manifest_pieces **out_pieces) {
    gbx_manifest_pieces *pieces = calloc(1, sizeof *pieces);
    if (!pieces || !(pieces->m = calloc(1, sizeof *pieces->m))) {
        free(pieces);
        return gbx_fail_memory("comparing a manifest");
    }
    gbx_status status = begin(pieces->m, reader, "");
    if (!status)
        status = gbx_manifest_file_stream(NULL, NULL, "a manifest", &pieces->file);
    if (status) {
        gbx_manifest_pieces_close(pieces);
        return status;
    }
    pieces->m->file = &pieces->file;
    pieces->m->has_lists = false;
    *out_pieces = pieces;
    return NULL;
}

void gbx_manifest_pieces_close(gbx_manifest_pieces *pieces) {
    if (!pieces)
        return;
    end(pieces->m);
    if (pieces->file.writer)
        gbx_status_free(gbx_manifest_file_finish(&pieces->file, NULL));
    free(pieces);
}

gbx_status gbx_manifest_pieces_head(gbx_manifest_pieces *pieces, gbx_manifest_kind kind,
                                    const char **out_text, size_t *out_size) {
    GBX_TRY(put_manifest(pieces->m, kind));
    return gbx_manifest_file_take(&pieces->file, out_text, out_size);
}

gbx_status gbx_manifest_pieces_next(gbx_manifest_pieces *pieces, gbx_manifest_list list,
                                    const char **out_text, size_t *out_size,
                                    gbx_manifest_place *out_place) {
    bool has_one = false;
    GBX_TRY(next_entry(pieces->m, list, &has_one));
    GBX_TRY(gbx_manifest_file_take(&pieces->file, out_text, out_size));
    if (!has_one)
        *out_text = NULL;
    else if (list == GBX_MANIFEST_TENSORS)
        *out_place = pieces->m->place;
    return NULL;
}
