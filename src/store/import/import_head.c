#include <stdlib.h>
#include <string.h>

#include <glassbox/kernel.h>

#include "base/memory.h"
#include "store/import/internal.h"
#include "store/journal/format.h"
#include "store/journal/record.h"
#include "text/json_reader.h"
#include "text/names.h"
#include "text/plain_text.h"

enum { NAMES_MAX = 8 }; /* of a set */

#define HEAD_ROW(name, ...) HEAD_##name,
#define HEAD_NAME(name, ...) #name,
enum { GBX_TENSORS_HEAD_FIELDS(HEAD_ROW) GBX_FOREIGN_HEAD_FIELDS(HEAD_ROW) HEAD_COUNT };
static const char *const head_names[HEAD_COUNT] = {GBX_TENSORS_HEAD_FIELDS(HEAD_NAME)
                                                       GBX_FOREIGN_HEAD_FIELDS(HEAD_NAME)};

/* Only names of fields in manifest_fields.h compile here. */
#define LOSS_ROW(name, ...) LOSS_##name,
enum { GBX_LOSS_FIELDS(LOSS_ROW) LOSS_COUNT };
#define SKIPPED_ROW(name, ...) SKIPPED_##name,
enum { GBX_SKIPPED_FIELDS(SKIPPED_ROW) SKIPPED_COUNT };
#define FINDING_ROW(name, ...) FINDING_##name,
enum { GBX_FINDING_FIELDS(FINDING_ROW) FINDING_COUNT };
#define CANDIDATE_ROW(name, ...) CANDIDATE_##name,
enum { GBX_CANDIDATE_FIELDS(CANDIDATE_ROW) CANDIDATE_COUNT };
#define BIN_FORMAT_ROW(name, ...) BIN_FORMAT_##name,
enum { GBX_BIN_FORMAT_FIELDS(BIN_FORMAT_ROW) BIN_FORMAT_COUNT };
#define NAME_IN(list, name) (list##_##name < list##_COUNT ? #name : NULL)

/* Their names in the two forms of manifests. */
static const struct {
    uint8_t fields[2];
} total_members[GBX_TOTAL_COUNT] = {
    [GBX_TOTAL_RECORDS] = {{HEAD_total_tensors, HEAD_total_args}},
    [GBX_TOTAL_BEFORE] = {{HEAD_before_dispatch, HEAD_COUNT}},
    [GBX_TOTAL_AFTER] = {{HEAD_after_completion, HEAD_COUNT}},
    [GBX_TOTAL_INPUTS] = {{HEAD_input_tensors, HEAD_input_args}},
    [GBX_TOTAL_OUTPUTS] = {{HEAD_output_tensors, HEAD_output_args}},
    [GBX_TOTAL_INOUTS] = {{HEAD_inout_tensors, HEAD_inout_args}},
    [GBX_TOTAL_IN_FLIGHT] = {{HEAD_in_flight_tensors, HEAD_COUNT}},
    [GBX_TOTAL_TRUNCATED] = {{HEAD_truncated_tensors, HEAD_truncated_args}},
    [GBX_TOTAL_DEDUPLICATED] = {{HEAD_deduplicated_tensors, HEAD_COUNT}},
    [GBX_TOTAL_PAYLOAD_BYTES] = {{HEAD_payload_bytes, HEAD_COUNT}},
    [GBX_TOTAL_STORED_BYTES] = {{HEAD_stored_bytes, HEAD_COUNT}},
    [GBX_TOTAL_RESULTS] = {{HEAD_total_results, HEAD_COUNT}},
    [GBX_TOTAL_RESULT_PAYLOAD_BYTES] = {{HEAD_result_payload_bytes, HEAD_COUNT}},
    [GBX_TOTAL_RESULT_STORED_BYTES] = {{HEAD_result_stored_bytes, HEAD_COUNT}},
    [GBX_TOTAL_DROPPED] = {{HEAD_dropped_records, HEAD_COUNT}},
    [GBX_TOTAL_OVERWRITTEN] = {{HEAD_dropped_overwrite, HEAD_COUNT}},
    [GBX_TOTAL_STALL_NS] = {{HEAD_stall_ns, HEAD_COUNT}},
};

static gbx_status fail_memory(const char *path) {
    return gbx_fail_memory("reading %s", path);
}

/* --- taking --- */

/* run_dir is not read. */
static bool is_known(const char *key) {
    for (size_t i = 0; i < HEAD_COUNT; ++i)
        if (i != HEAD_run_dir && strcmp(key, head_names[i]) == 0)
            return true;
    return false;
}

gbx_status gbx_import_head_take(gbx_import_head *head, const char *key, gbx_json_file *file) {
    json_t *value = NULL;
    gbx_scan_value ignored;
    if (!is_known(key))
        return gbx_json_file_take(file, &ignored);
    GBX_TRY(gbx_json_file_document(file, &value));
    if (json_object_get(head->members, key)) {
        json_decref(value);
        return gbx_fail(GBX_BAD_FORMAT, "%s: %s: appears twice", head->path, key);
    }
    return json_object_set_new(head->members, key, value) == 0 ? NULL : fail_memory(head->path);
}

static const json_t *member_of(const gbx_import_head *head, unsigned field) {
    return json_object_get(head->members, head_names[field]);
}

static gbx_cursor root_of(const gbx_import_head *head) {
    return gbx_cursor_root(head->members, head->path);
}

/* --- the format --- */

/* A member of bin_format, if present, must have the known value. */
static gbx_status check_word(const gbx_cursor *object, const char *name, const char *word) {
    gbx_cursor member;
    size_t choice;
    GBX_TRY(gbx_cursor_optional(object, name, &member));
    return member.value ? gbx_cursor_choice(&member, &word, 1, &choice) : NULL;
}

static gbx_status check_form(const gbx_cursor *root) {
    gbx_cursor member;
    int64_t version;
    GBX_TRY(gbx_cursor_optional(root, head_names[HEAD_schema_version], &member));
    if (member.value)
        GBX_TRY(gbx_cursor_integer(&member, 1, 1, &version));
    GBX_TRY(gbx_cursor_optional(root, head_names[HEAD_bin_format], &member));
    if (!member.value)
        return NULL;
    GBX_TRY(check_word(&member, NAME_IN(BIN_FORMAT, type), GBX_BIN_FORMAT_TYPE));
    return check_word(&member, NAME_IN(BIN_FORMAT, byte_order), GBX_BIN_FORMAT_BYTE_ORDER);
}

gbx_status gbx_import_head_check(const gbx_import_head *head, const char **out_bin_file) {
    gbx_cursor root = root_of(head);
    gbx_cursor member;
    *out_bin_file = NULL;
    GBX_TRY(check_form(&root));
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_bin_file], &member));
    if (!member.value)
        return NULL;
    const char *name = NULL;
    GBX_TRY(gbx_cursor_string(&member, &name));
    if (name[0] == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        !gbx_text_is_plain(name))
        return gbx_cursor_fail(&member, "\"%.64s\" is not the name of a file beside the manifest",
                               name);
    *out_bin_file = name;
    return NULL;
}

/* --- totals --- */

gbx_status gbx_import_head_get_totals(const gbx_import_head *head, gbx_import_totals *out_totals) {
    gbx_cursor root = root_of(head);
    memset(out_totals, 0, sizeof *out_totals);
    for (size_t i = 0; i < GBX_TOTAL_COUNT; ++i) {
        for (size_t k = 0; k < 2 && total_members[i].fields[k] < HEAD_COUNT; ++k) {
            const char *name = head_names[total_members[i].fields[k]];
            gbx_cursor member;
            int64_t value = 0;
            GBX_TRY(gbx_cursor_optional(&root, name, &member));
            if (!member.value)
                continue;
            GBX_TRY(gbx_cursor_integer(&member, 0, INT64_MAX, &value));
            if (out_totals->names[i])
                return gbx_cursor_fail(&member, "repeats \"%s\": only one of them may be given",
                                       out_totals->names[i]);
            out_totals->names[i] = name;
            out_totals->values[i] = (uint64_t)value;
        }
    }
    gbx_cursor losses;
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_losses], &losses));
    out_totals->has_losses = losses.value != NULL;
    return NULL;
}

bool gbx_import_head_has_status(const gbx_import_head *head) {
    return json_is_boolean(member_of(head, HEAD_complete)) ||
           json_is_string(member_of(head, HEAD_status));
}

/* --- what is missing --- */

/* An integer, or null: *out_is_null. */
static gbx_status get_or_null(const gbx_cursor *object, const char *name, int64_t max,
                              int64_t *out_value, bool *out_is_null) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_member(object, name, &member));
    *out_is_null = json_is_null(member.value);
    return *out_is_null ? NULL : gbx_cursor_integer(&member, 0, max, out_value);
}

/* The task and argument of a loss or a skipped element. */
static gbx_status get_place(const gbx_cursor *object, gbx_record *out_head) {
    int64_t task = 0;
    int64_t arg_index = GBX_ARG_NONE;
    bool is_null;
    GBX_TRY(get_or_null(object, NAME_IN(LOSS, task_seq), GBX_RECORD_TASK_END - 1, &task, &is_null));
    GBX_TRY(get_or_null(object, NAME_IN(LOSS, arg_index), GBX_ARG_LOCAL_CONTEXT - 1, &arg_index,
                        &is_null));
    out_head->task = (uint64_t)task;
    out_head->arg_index = (uint8_t)arg_index;
    return NULL;
}

/* A required name in a set; null leaves *out_number unchanged. */
static gbx_status get_name(const gbx_cursor *object, const char *name, const gbx_name_set *set,
                           uint32_t *out_number) {
    const char *names[NAMES_MAX];
    size_t choice = 0;
    gbx_cursor member;
    GBX_TRY(gbx_cursor_member(object, name, &member));
    if (json_is_null(member.value))
        return NULL;
    for (uint32_t i = 0; i < set->count; ++i)
        names[i] = gbx_name_of(set, i);
    GBX_TRY(gbx_cursor_choice(&member, names, set->count, &choice));
    *out_number = (uint32_t)choice;
    return NULL;
}

static gbx_status add_loss(gbx_import_journal *journal, const gbx_cursor *object) {
    struct {
        gbx_record_loss loss;
        gbx_record_lost lost;
    } record = {.loss.head = {.type = GBX_RECORD_LOSS, .words = sizeof record.loss / 8}};
    gbx_record_loss *loss = &record.loss;
    uint32_t cause = GBX_LOSS_UNKNOWN;
    uint32_t stage = GBX_STAGE_NONE;
    int64_t count = 0;
    gbx_cursor member;
    GBX_TRY(get_place(object, &loss->head));
    GBX_TRY(get_name(object, NAME_IN(LOSS, stage), &gbx_stages, &stage));
    GBX_TRY(get_name(object, NAME_IN(LOSS, cause), &gbx_loss_causes, &cause));
    GBX_TRY(gbx_cursor_member(object, NAME_IN(LOSS, count), &member));
    GBX_TRY(gbx_cursor_integer(&member, 0, INT64_MAX, &count));
    bool is_least = false;
    GBX_TRY(gbx_cursor_optional(object, NAME_IN(LOSS, is_least), &member));
    if (member.value)
        GBX_TRY(gbx_cursor_bool(&member, &is_least));
    loss->head.stage = (uint8_t)stage;
    loss->is_least = is_least;
    loss->cause = cause;
    loss->count = (uint64_t)count;
    GBX_TRY(gbx_cursor_optional(object, NAME_IN(LOSS, result), &member));
    if (member.value) {
        int64_t arg_index = 0;
        GBX_TRY(gbx_cursor_integer(&member, 0, GBX_MAX_RUN_TENSORS - 1, &arg_index));
        record.lost.result = (uint64_t)arg_index + 1;
        loss->head.words = sizeof record / 8;
    }
    return gbx_import_journal_add(journal, &loss->head);
}

/* By its code; a manifest of 0.1.0 has only a sentence. */
static gbx_status get_reason(const gbx_cursor *object, uint32_t *out_reason) {
    static const char *const sentences[] = {
        [GBX_SKIP_NOT_DESCRIBED] = "nobody told which words of the task are tensors",
        [GBX_SKIP_MISMATCH] = "what was told of the argument is not what the kernel gets"};
    const char *names[GBX_SKIP_REASON_COUNT];
    gbx_cursor code, member;
    size_t reason = 0;
    GBX_TRY(gbx_cursor_optional(object, NAME_IN(SKIPPED, reason_code), &code));
    GBX_TRY(gbx_cursor_member(object, code.value ? code.name : NAME_IN(SKIPPED, reason), &member));
    size_t count = code.value ? GBX_SKIP_REASON_COUNT : sizeof sentences / sizeof sentences[0];
    for (uint32_t i = 0; i < count; ++i)
        names[i] = code.value ? gbx_name_of(&gbx_skip_reasons, i) : sentences[i];
    GBX_TRY(gbx_cursor_choice(&member, names, count, &reason));
    /* As the journal has it. */
    *out_reason =
        reason == GBX_SKIP_TENSOR_NOT_DESCRIBED ? GBX_SKIP_NOT_DESCRIBED : (uint32_t)reason;
    return NULL;
}

/* `func_ids` are by the names of their kernels. */
static gbx_status add_skipped(gbx_import_journal *journal, const json_t *func_ids,
                              const gbx_cursor *object) {
    gbx_record_skipped skipped = {
        .head = {.type = GBX_RECORD_SKIPPED, .stage = GBX_STAGE_NONE, .words = sizeof skipped / 8}};
    gbx_cursor member;
    const char *kernel = "";
    GBX_TRY(get_place(object, &skipped.head));
    GBX_TRY(get_reason(object, &skipped.reason));
    GBX_TRY(gbx_cursor_optional(object, NAME_IN(SKIPPED, kernel), &member));
    if (member.value)
        GBX_TRY(gbx_cursor_string(&member, &kernel));
    const json_t *func_id = member.value ? json_object_get(func_ids, kernel) : NULL;
    skipped.func_id = func_id ? (uint32_t)json_integer_value(func_id) : UINT32_MAX;
    return gbx_import_journal_add(journal, &skipped.head);
}

/* "skipped" with func_ids, "losses" with NULL. */
static gbx_status add_list(const gbx_import_head *head, gbx_import_journal *journal, unsigned field,
                           const json_t *func_ids) {
    gbx_cursor root = root_of(head);
    gbx_cursor array;
    size_t count = 0;
    GBX_TRY(gbx_cursor_optional(&root, head_names[field], &array));
    if (!array.value)
        return NULL;
    GBX_TRY(gbx_cursor_count(&array, &count));
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor element;
        GBX_TRY(gbx_cursor_element(&array, i, &element));
        GBX_TRY(func_ids ? add_skipped(journal, func_ids, &element) : add_loss(journal, &element));
    }
    return NULL;
}

static gbx_status add_all_skipped(const gbx_import_head *head, gbx_import_journal *journal) {
    const json_t *kernels = member_of(head, HEAD_kernels);
    json_t *func_ids = json_object();
    bool is_made = func_ids != NULL;
    for (size_t i = 0; is_made && i < json_array_size(kernels); ++i) {
        const json_t *kernel = json_array_get(kernels, i);
        const char *name = json_string_value(json_object_get(kernel, "name"));
        json_t *func_id = json_object_get(kernel, "func_id");
        const json_t *other = json_object_get(func_ids, name);
        bool is_clear = !other || json_equal(other, func_id); /* not two kernels with one name */
        is_made =
            json_object_set_new(func_ids, name,
                                is_clear ? json_incref(func_id) : json_integer(UINT32_MAX)) == 0;
    }
    gbx_status status =
        is_made ? add_list(head, journal, HEAD_skipped, func_ids) : fail_memory(head->path);
    json_decref(func_ids);
    return status;
}

/* --- findings --- */

static gbx_status get_number(const gbx_cursor *object, const char *name, int64_t low, int64_t high,
                             int64_t *out_number) {
    gbx_cursor member;
    GBX_TRY(gbx_cursor_member(object, name, &member));
    return gbx_cursor_integer(&member, low, high, out_number);
}

/* A number, or all ones for null. */
static gbx_status get_task(const gbx_cursor *object, const char *name, uint64_t *out_task) {
    int64_t task = -1;
    bool is_null;
    GBX_TRY(get_or_null(object, name, GBX_RECORD_TASK_END - 1, &task, &is_null));
    *out_task = (uint64_t)task;
    return NULL;
}

static gbx_status get_small(const gbx_cursor *object, const char *name, int64_t max,
                            uint32_t *out_number) {
    int64_t number = -1;
    bool is_null;
    GBX_TRY(get_or_null(object, name, max, &number, &is_null));
    *out_number = (uint32_t)number;
    return NULL;
}

static gbx_status get_candidates(const gbx_cursor *object, gbx_run_finding *out_finding) {
    gbx_cursor array, element;
    size_t count = 0;
    GBX_TRY(gbx_cursor_member(object, NAME_IN(FINDING, candidates), &array));
    GBX_TRY(gbx_cursor_count(&array, &count));
    if (count > GBX_FINDING_CANDIDATES)
        return gbx_cursor_fail(&array, "more than %d candidates", (int)GBX_FINDING_CANDIDATES);
    out_finding->candidate_count = (uint32_t)count;
    for (size_t i = 0; i < count; ++i) {
        gbx_run_finding_task *to = &out_finding->candidates[i];
        int64_t task = 0;
        GBX_TRY(gbx_cursor_element(&array, i, &element));
        GBX_TRY(
            get_number(&element, NAME_IN(CANDIDATE, task_seq), 0, GBX_RECORD_TASK_END - 1, &task));
        to->task = (uint64_t)task;
        GBX_TRY(get_small(&element, NAME_IN(CANDIDATE, func_id), UINT32_MAX - 1, &to->func_id));
        GBX_TRY(get_small(&element, NAME_IN(CANDIDATE, arg_index), GBX_ARG_LOCAL_CONTEXT - 1,
                          &to->arg_index));
    }
    return NULL;
}

static gbx_status add_finding(gbx_import_journal *journal, uint64_t run_total,
                              const gbx_cursor *object) {
    const int64_t most = (INT64_C(1) << 53) - 1;
    gbx_record_finding record = {.head = {.type = GBX_RECORD_FINDING,
                                          .stage = GBX_STAGE_NONE,
                                          .arg_index = GBX_ARG_NONE,
                                          .words = sizeof record / 8}};
    gbx_run_finding *f = &record.finding;
    int64_t index = 0, time_ns = 0;
    gbx_cursor address;
    const char *digits = "";
    struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {{NAME_IN(FINDING, buffer_bytes), &f->bytes},
                   {NAME_IN(FINDING, span_bytes), &f->span},
                   {NAME_IN(FINDING, changed_bytes), &f->changed},
                   {NAME_IN(FINDING, candidate_count), &f->candidate_total}};
    GBX_TRY(get_name(object, NAME_IN(FINDING, kind), &gbx_run_finding_kinds, &f->kind));
    GBX_TRY(get_name(object, NAME_IN(FINDING, place), &gbx_run_finding_places, &f->place));
    GBX_TRY(
        get_name(object, NAME_IN(FINDING, certainty), &gbx_run_finding_certainties, &f->certainty));
    GBX_TRY(get_number(object, NAME_IN(FINDING, time_ns), 0, most, &time_ns));
    GBX_TRY(get_number(object, NAME_IN(FINDING, place_index), 0, UINT32_MAX, &index));
    GBX_TRY(get_number(object, NAME_IN(FINDING, first_byte), -most, most, &f->first));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        int64_t number = 0;
        GBX_TRY(get_number(object, numbers[i].name, 0, most, &number));
        *numbers[i].to = (uint64_t)number;
    }
    GBX_TRY(get_task(object, NAME_IN(FINDING, finder_seq), &f->finder));
    GBX_TRY(get_task(object, NAME_IN(FINDING, owner_seq), &f->owner_task));
    GBX_TRY(get_small(object, NAME_IN(FINDING, owner_func_id), UINT32_MAX - 1, &f->owner_func));
    GBX_TRY(gbx_cursor_member(object, NAME_IN(FINDING, buffer_addr), &address));
    GBX_TRY(gbx_cursor_string(&address, &digits));
    GBX_TRY(get_candidates(object, f));
    f->address = strtoull(digits, NULL, 16);
    f->time_ns = record.head.time_ns = (uint64_t)time_ns;
    f->index = (uint32_t)index;
    f->run_total = run_total;
    record.head.task = f->finder == GBX_FINDING_NO_TASK ? 0 : f->finder;
    return gbx_import_journal_add(journal, &record.head);
}

bool gbx_import_head_has_findings(const gbx_import_head *head) {
    return json_is_array(member_of(head, HEAD_findings));
}

static gbx_status add_findings(const gbx_import_head *head, gbx_import_journal *journal) {
    gbx_cursor root = root_of(head);
    gbx_cursor array, total;
    size_t count = 0;
    int64_t run_total = 0;
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_findings], &array));
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_finding_count], &total));
    if (!array.value)
        return NULL;
    GBX_TRY(gbx_cursor_count(&array, &count));
    if (total.value)
        GBX_TRY(gbx_cursor_integer(&total, (int64_t)count, (INT64_C(1) << 53) - 1, &run_total));
    for (size_t i = 0; i < count; ++i) {
        gbx_cursor element;
        GBX_TRY(gbx_cursor_element(&array, i, &element));
        GBX_TRY(add_finding(journal, (uint64_t)run_total, &element));
    }
    return NULL;
}

/* A loss that is counted but not listed. */
static gbx_status add_unexplained(gbx_import_journal *journal, uint64_t count) {
    gbx_record_loss loss = {.head = {.type = GBX_RECORD_LOSS,
                                     .stage = GBX_STAGE_NONE,
                                     .arg_index = GBX_ARG_NONE,
                                     .words = sizeof loss / 8},
                            .cause = GBX_LOSS_UNKNOWN,
                            .count = count};
    return count > 0 ? gbx_import_journal_add(journal, &loss.head) : NULL;
}

/* --- the end --- */

/* Without both, the run counts as one that went well, complete if nothing is missing. If one is
 * missing, it is inferred from the other and never better. */
static gbx_status get_status(const gbx_cursor *root, bool *out_is_complete,
                             const char **out_status) {
    gbx_cursor complete;
    gbx_cursor status;
    GBX_TRY(gbx_cursor_optional(root, head_names[HEAD_complete], &complete));
    GBX_TRY(gbx_cursor_optional(root, head_names[HEAD_status], &status));
    if (complete.value)
        GBX_TRY(gbx_cursor_bool(&complete, out_is_complete));
    if (status.value)
        GBX_TRY(gbx_cursor_string(&status, out_status));
    else if (!*out_is_complete)
        *out_status = "not told";
    if (!complete.value && strcmp(*out_status, "ok") != 0)
        *out_is_complete = false;
    return NULL;
}

static gbx_status add_end(const gbx_import_head *head, const gbx_import_totals *totals,
                          gbx_import_journal *journal) {
    const gbx_reader_totals *counted = &journal->totals;
    gbx_cursor root = root_of(head);
    bool is_complete = counted->dropped == 0;
    const char *status = "ok";
    GBX_TRY(get_status(&root, &is_complete, &status));
    if (!is_complete && strcmp(status, "killed") == 0)
        return NULL; /* its journal had no end either */
    size_t bytes = strlen(status);
    size_t words = sizeof(gbx_record_end) / 8 + (bytes + 7) / 8;
    if (words > GBX_BLOCK_MAX_BYTES / 8)
        return gbx_fail(GBX_BAD_FORMAT, "%s: status: has %zu bytes, more than a record holds",
                        head->path, bytes);
    gbx_record_end *end = calloc(words, 8);
    if (!end)
        return fail_memory(head->path);
    *end = (gbx_record_end){.head = {.type = GBX_RECORD_END,
                                     .stage = GBX_STAGE_NONE,
                                     .arg_index = GBX_ARG_NONE,
                                     .flags = is_complete ? GBX_FLAG_COMPLETE : 0,
                                     .words = (uint32_t)words},
                            .record_count = counted->records + counted->in_flight,
                            .task_count = counted->tasks,
                            .payload_bytes = counted->payload_bytes,
                            .stored_bytes = counted->stored_bytes,
                            .deduplicated = counted->deduplicated,
                            .dropped = counted->dropped,
                            .stall_ns = totals->values[GBX_TOTAL_STALL_NS],
                            .bytes = bytes};
    memcpy(end + 1, status, bytes);
    gbx_status added = gbx_import_journal_add(journal, &end->head);
    free(end);
    return added;
}

gbx_status gbx_import_head_add_rest(const gbx_import_head *head, const gbx_import_totals *totals,
                                    gbx_import_journal *journal) {
    GBX_TRY(add_list(head, journal, HEAD_losses, NULL));
    if (!totals->has_losses)
        GBX_TRY(add_unexplained(journal, totals->values[GBX_TOTAL_DROPPED]));
    GBX_TRY(add_unexplained(journal, totals->values[GBX_TOTAL_OVERWRITTEN]));
    GBX_TRY(add_all_skipped(head, journal));
    GBX_TRY(add_findings(head, journal));
    return add_end(head, totals, journal);
}

/* --- the run --- */

/* "full" and so on, by name or by another tool's number; NULL when unknown. */
static gbx_status get_level(const gbx_import_head *head, const char **out_level) {
    static const char *const names[] = {"full", "partial", "hybrid", "stats"};
    static const char *const by_number[] = {NULL, "partial", "full", "hybrid"};
    gbx_cursor root = root_of(head);
    gbx_cursor name, number;
    int64_t level = 0;
    size_t choice = 0;
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_dump_level], &name));
    GBX_TRY(gbx_cursor_optional(&root, head_names[HEAD_dump_args_level], &number));
    if (name.value)
        GBX_TRY(gbx_cursor_choice(&name, names, sizeof names / sizeof names[0], &choice));
    if (number.value)
        GBX_TRY(gbx_cursor_integer(&number, 0, 3, &level));
    *out_level = name.value ? names[choice] : by_number[level];
    bool is_same = by_number[level] && strcmp(*out_level, by_number[level]) == 0;
    if (name.value && number.value && !is_same)
        return gbx_cursor_fail(&number, "%d does not match dump_level \"%s\"", (int)level,
                               *out_level);
    return NULL;
}

gbx_status gbx_import_head_run(const gbx_import_head *head, json_t *run_args, char **out_text) {
    const char *level = NULL;
    json_t *run = json_object_get(head->members, head_names[HEAD_run]);
    json_t *generator = json_object_get(head->members, head_names[HEAD_generator]);
    GBX_TRY(get_level(head, &level));
    bool has_run = run && !json_is_null(run);
    json_t *document = json_pack(
        "{s:o,s:o,s:s?,s:b,s:o,s:O}", "generator", generator ? json_incref(generator) : json_null(),
        "run", has_run ? json_incref(run) : json_object(), "dump_level", level, "has_args", 0,
        "kernels", json_incref(json_object_get(head->members, head_names[HEAD_kernels])),
        "run_args", run_args);
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(document);
    if (!text)
        return fail_memory(head->path);
    if (strlen(text) > GBX_IMPORT_RUN_MAX_BYTES) {
        free(text);
        return gbx_fail(GBX_BAD_FORMAT, "%s: kernels: their names take more than %d bytes",
                        head->path, (int)GBX_IMPORT_RUN_MAX_BYTES);
    }
    *out_text = text;
    return NULL;
}
