#include "store/verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glassbox/orchestration.h>
#include <glassbox/tensor.h>

#include "base/memory.h"
#include "store/journal/journal_file.h"
#include "store/verify/internal.h"
#include "tensor/view.h"

/* What was seen so far of the current task. */
typedef struct task_check {
    uint64_t task;
    uint64_t task_records;
    uint64_t argument_records[2]; /* by stage */
    uint64_t predecessors;
    uint64_t dispatches;
    uint64_t executions; /* 0 in dumps of versions without such records */
    uint64_t dones;
    gbx_record_task about; /* valid if task_records is not 0 */
    gbx_record_announced announced;
    bool has_announced;
} task_check;

typedef struct journal_check {
    gbx_verification *out;
    gbx_reader *reader;
    gbx_findings *findings;
    gbx_verify_list payloads;
    gbx_sums_check sums;
    task_check task;
    bool has_task;
    bool is_own;         /* as gbx_verify_is_own says */
    bool is_ok;          /* the run also went well: every task must have completed */
    gbx_record previous; /* the argument before; type 0 at first */
} journal_check;

/* --- one argument --- */

/* `head` is a copy: the reader reuses its own. */
static gbx_status add_finding(journal_check *check, const gbx_record *head, gbx_finding_kind kind,
                              const char *what, const char *expected, const char *got) {
    if (head->type == GBX_RECORD_RESULT) {
        gbx_findings_add_result(check->findings, kind, head->arg_index, what, expected, got);
        return NULL;
    }
    gbx_finding_place place = {check->out->records, head->task, head->arg_index, head->stage};
    return gbx_findings_add_at(check->findings, kind, check->reader, &place, what, expected, got);
}

static gbx_status compare_sizes(journal_check *check, const gbx_record *head, const char *what,
                                uint64_t expected, uint64_t got) {
    char texts[2][24];
    if (expected == got)
        return NULL;
    snprintf(texts[0], sizeof texts[0], "%" PRIu64, expected);
    snprintf(texts[1], sizeof texts[1], "%" PRIu64, got);
    return add_finding(check, head, GBX_FINDING_SIZE, what, texts[0], texts[1]);
}

static bool is_same_argument(const gbx_record *a, const gbx_record *b) {
    return a->type != 0 && a->task == b->task && a->stage == b->stage &&
           a->arg_index == b->arg_index && ((a->flags ^ b->flags) & GBX_FLAG_IN_FLIGHT) == 0;
}

/* Inputs and scalars are taken before, outputs after, inouts at both. */
static gbx_status check_stage(journal_check *check, const gbx_record *head) {
    bool is_scalar = head->type == GBX_RECORD_SCALAR;
    bool is_input = !is_scalar && head->role == GBX_ROLE_INPUT;
    uint8_t stage = is_scalar || is_input ? GBX_STAGE_BEFORE : GBX_STAGE_AFTER;
    if (head->stage == stage || (!is_scalar && head->role == GBX_ROLE_INOUT))
        return NULL;
    const char *what = is_scalar  ? "stage of a scalar"
                       : is_input ? "stage of an input"
                                  : "stage of an output";
    return add_finding(check, head, GBX_FINDING_RECORD, what, gbx_name_of(&gbx_stages, stage),
                       gbx_name_of(&gbx_stages, head->stage));
}

static gbx_status check_size(journal_check *check, const gbx_record_tensor *record,
                             const gbx_tensor *view) {
    char expected[48], got[24];
    const gbx_record *head = &record->head;
    uint64_t whole = gbx_tensor_payload_bytes(view);
    if (!(head->flags & GBX_FLAG_HAS_PAYLOAD))
        return compare_sizes(check, head, "bin_size of a record without payload", 0,
                             record->bin_size);
    if (!(head->flags & GBX_FLAG_TRUNCATED))
        return compare_sizes(check, head, "bin_size", whole, record->bin_size);
    if (record->bin_size < whole)
        return NULL;
    snprintf(expected, sizeof expected, "less than %" PRIu64, whole);
    snprintf(got, sizeof got, "%" PRIu64, record->bin_size);
    return add_finding(check, head, GBX_FINDING_SIZE, "bin_size of a truncated tensor", expected,
                       got);
}

static gbx_status check_view(journal_check *check, const gbx_record_tensor *record,
                             const gbx_tensor *view) {
    int64_t first, end;
    if (!gbx_tensor_is_valid(view, &first, &end))
        return add_finding(check, &record->head, GBX_FINDING_RECORD,
                           "shape, strides and start_offset do not describe a valid tensor", NULL,
                           NULL);
    bool is_contiguous = gbx_tensor_is_contiguous(view);
    bool is_said = (record->head.flags & GBX_FLAG_CONTIGUOUS) != 0;
    if (is_contiguous != is_said)
        GBX_TRY(add_finding(check, &record->head, GBX_FINDING_RECORD, "is_contiguous",
                            is_contiguous ? "true" : "false", is_said ? "true" : "false"));
    return check_size(check, record, view);
}

/* Its bytes are checked later, in the order of the file. */
static gbx_status keep_payload(journal_check *check, const gbx_record_tensor *record,
                               uint64_t position) {
    gbx_verify_entry entry = {.offset = record->bin_offset,
                              .bytes = record->bin_size,
                              .hash = {.low = record->hash_low, .high = record->hash_high},
                              .position = position,
                              .index = check->out->records & (UINT64_MAX >> 3),
                              .is_result = record->head.type == GBX_RECORD_RESULT,
                              .is_duplicate = (record->head.flags & GBX_FLAG_DUPLICATE) != 0,
                              .has_hash = (record->head.flags & GBX_FLAG_HAS_HASH) != 0};
    check->out->hashed_records += entry.has_hash;
    gbx_verify_list *list = &check->payloads;
    GBX_TRY(
        gbx_array_reserve(&list->entries, &list->capacity, list->count + 1, "listing payloads"));
    list->entries[list->count++] = entry;
    return NULL;
}

static gbx_status check_tensor(journal_check *check, const gbx_record *head, uint64_t position) {
    gbx_record_tensor record;
    gbx_tensor view;
    memcpy(&record, head, sizeof record);
    gbx_record_view((const gbx_record_tensor *)(const void *)head, &view);
    GBX_TRY(check_view(check, &record, &view));
    if (!(record.head.flags & GBX_FLAG_HAS_PAYLOAD)) {
        ++check->out->unhashed_tensors;
        return NULL;
    }
    if (!(record.head.flags & GBX_FLAG_HAS_HASH)) {
        if (gbx_reader_get_origin(check->reader)->is_journal)
            return add_finding(check, &record.head, GBX_FINDING_RECORD, "has payload, but no hash",
                               NULL, NULL);
        ++check->out->unchecked_tensors;
    }
    return keep_payload(check, &record, position);
}

static gbx_status check_argument(journal_check *check, const gbx_record *head, uint64_t position) {
    gbx_record kept = *head;
    if (kept.type == GBX_RECORD_TENSOR)
        GBX_TRY(check_tensor(check, head, position));
    if (check->is_own) {
        GBX_TRY(check_stage(check, &kept));
        if (is_same_argument(&check->previous, &kept))
            GBX_TRY(add_finding(check, &kept, GBX_FINDING_TASK, "is recorded twice", NULL, NULL));
    }
    check->previous = kept;
    ++check->task.argument_records[kept.stage == GBX_STAGE_AFTER];
    ++check->out->records;
    return NULL;
}

/* --- results of the run --- */

static gbx_status check_pieces(journal_check *check, const gbx_result *result,
                               const gbx_record_tensor *record, uint64_t bytes) {
    uint64_t count = result->piece_count;
    const gbx_record_piece *last = count ? &result->pieces[count - 1] : NULL;
    bool is_whole = count == 1 && last->bytes == bytes;
    bool is_beyond = last && last->offset + last->bytes > bytes;
    uint64_t address = is_whole ? last->address : 0;
    char expected[24], got[24];
    if (is_beyond)
        return add_finding(check, &record->head, GBX_FINDING_RECORD,
                           "a piece ends after the last byte of the tensor", NULL, NULL);
    if (address == record->buffer_addr || (count == 0 && !check->is_own))
        return NULL;
    snprintf(expected, sizeof expected, "0x%" PRIx64, address);
    snprintf(got, sizeof got, "0x%" PRIx64, record->buffer_addr);
    return add_finding(check, &record->head, GBX_FINDING_RECORD, "buffer_addr", expected, got);
}

static gbx_status check_result(journal_check *check, const gbx_result *result) {
    gbx_record_tensor record = *result->record;
    gbx_tensor view;
    int64_t first, end;
    gbx_record_view(result->record, &view);
    if (gbx_tensor_is_valid(&view, &first, &end))
        GBX_TRY(check_pieces(check, result, &record, gbx_tensor_payload_bytes(&view)));
    if (is_same_argument(&check->previous, &record.head))
        GBX_TRY(
            add_finding(check, &record.head, GBX_FINDING_RECORD, "is recorded twice", NULL, NULL));
    check->previous = record.head;
    GBX_TRY(check_view(check, &record, &view));
    return record.head.flags & GBX_FLAG_HAS_PAYLOAD
               ? keep_payload(check, &record, record.head.arg_index)
               : NULL;
}

/* A run whose end is recorded has a result for each output and in-out tensor. */
static gbx_status check_results(journal_check *check) {
    const gbx_run_info *run = gbx_reader_run(check->reader);
    uint64_t count = gbx_reader_result_count(check->reader);
    uint64_t expected = 0;
    check->previous = (gbx_record){0};
    for (uint64_t i = 0; i < count; ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(check->reader, i, &result));
        GBX_TRY(check_result(check, &result));
    }
    for (size_t i = 0; i < run->argument_count; ++i)
        expected += strcmp(run->arguments[i].role, "output") == 0 ||
                    strcmp(run->arguments[i].role, "inout") == 0;
    if (count > 0 && check->out->is_strict)
        gbx_findings_compare(check->findings, GBX_FINDING_COUNT,
                             "results: outputs and in-outs of the run", expected, count);
    return NULL;
}

/* --- one task --- */

static uint64_t expected_dispatches(const gbx_record_task *about) {
    uint64_t subtasks = 0;
    for (size_t i = 0; i < 3; ++i)
        subtasks += about->func_ids[i] != UINT32_MAX;
    return subtasks * about->block_num;
}

static void compare_task(journal_check *check, const char *what, uint64_t expected, uint64_t got) {
    char text[128];
    snprintf(text, sizeof text, "task %" PRIu64 ": %s", check->task.task, what);
    gbx_findings_compare(check->findings, GBX_FINDING_TASK, text, expected, got);
}

/* Parts of a task may be missing if the run was killed or lost records. */
static void end_task(journal_check *check) {
    const task_check *task = &check->task;
    if (!check->has_task)
        return;
    if (task->task_records > 1)
        compare_task(check, "TASK records", 1, task->task_records);
    if (task->dones > 1)
        compare_task(check, "completions", 1, task->dones);
    if (task->task_records > 0 && task->predecessors > task->about.predecessor_count)
        compare_task(check, "predecessors", task->about.predecessor_count, task->predecessors);
    if (task->task_records == 1 && task->has_announced)
        gbx_sums_add_task(&check->sums, &task->about, &task->announced, task->argument_records[0],
                          task->argument_records[1], task->dones > 0, check->out->is_strict);
    if (!check->out->is_strict)
        return;
    if (task->task_records == 0) {
        compare_task(check, "TASK records", 1, 0);
        return;
    }
    if (task->predecessors < task->about.predecessor_count)
        compare_task(check, "predecessors", task->about.predecessor_count, task->predecessors);
    if (check->is_ok && task->dones == 0)
        compare_task(check, "completions", 1, 0);
    if (check->is_ok && gbx_reader_run(check->reader)->has_args)
        compare_task(check, "dispatches", expected_dispatches(&task->about), task->dispatches);
    if (check->is_ok && gbx_reader_get_totals(check->reader)->executions &&
        gbx_reader_get_origin(check->reader)->known & GBX_KNOWN_EXECUTIONS)
        compare_task(check, "executions", expected_dispatches(&task->about), task->executions);
}

static void begin_task(journal_check *check, uint64_t task) {
    end_task(check);
    check->task = (task_check){.task = task};
    check->has_task = true;
}

static gbx_status check_record(journal_check *check, const gbx_record *record, uint64_t position) {
    uint64_t edges = 0;
    if (!check->has_task || record->task != check->task.task)
        begin_task(check, record->task);
    switch (record->type) {
    case GBX_RECORD_TASK:
        ++check->task.task_records;
        memcpy(&check->task.about, record, sizeof check->task.about);
        check->task.has_announced = gbx_record_get_announced(
            (const gbx_record_task *)(const void *)record, &check->task.announced);
        return NULL;
    case GBX_RECORD_EDGES:
        (void)gbx_record_edges(record, &edges);
        check->task.predecessors += edges;
        return NULL;
    case GBX_RECORD_DONE:
        ++check->task.dones;
        return NULL;
    case GBX_RECORD_DISPATCH:
        ++check->task.dispatches;
        return NULL;
    case GBX_RECORD_EXECUTION:
        ++check->task.executions;
        return NULL;
    default:
        return check_argument(check, record, position);
    }
}

static gbx_status check_records(journal_check *check) {
    uint64_t count = gbx_reader_count(check->reader);
    for (uint64_t i = 0; i < count; ++i) {
        const gbx_record *record;
        GBX_TRY(gbx_reader_at(check->reader, i, &record));
        GBX_TRY(check_record(check, record, i));
    }
    end_task(check);
    return NULL;
}

/* --- the journal as a whole --- */

static void compare_total(gbx_findings *findings, const char *name, uint64_t stated,
                          uint64_t counted) {
    char what[64];
    snprintf(what, sizeof what, "%s of the END record", name);
    gbx_findings_compare(findings, GBX_FINDING_COUNT, what, counted, stated);
}

static void check_totals(gbx_findings *findings, const gbx_record_end *end,
                         const gbx_reader_totals *counted) {
    compare_total(findings, "record_count", end->record_count,
                  counted->records + counted->in_flight);
    compare_total(findings, "task_count", end->task_count, counted->tasks);
    compare_total(findings, "dispatch_count", end->dispatch_count, counted->dispatches);
    compare_total(findings, "payload_bytes", end->payload_bytes, counted->payload_bytes);
    compare_total(findings, "stored_bytes", end->stored_bytes, counted->stored_bytes);
    compare_total(findings, "deduplicated", end->deduplicated, counted->deduplicated);
    compare_total(findings, "dropped", end->dropped, counted->dropped);
}

/* A journal without END, or that cannot be read to its end, and how much of it is readable. */
static void check_extent(gbx_findings *findings, const gbx_reader *reader) {
    const gbx_reader_extent *extent = gbx_reader_get_extent(reader);
    char what[GBX_STOP_TEXT_BYTES + 160];
    if (extent->stop != GBX_STOP_END) {
        snprintf(what, sizeof what,
                 "at byte %" PRIu64 ": %s; readable records of the journal before it: %" PRIu64
                 ", readable blocks: %" PRIu64,
                 extent->stop_offset, extent->stop_text, extent->record_count, extent->block_count);
        gbx_findings_add(findings, GBX_FINDING_JOURNAL, what);
    }
    if (!gbx_reader_end(reader)) {
        snprintf(what, sizeof what,
                 "there is no END record: the run was killed, or the end is damaged; readable "
                 "records of the journal: %" PRIu64,
                 extent->record_count);
        gbx_findings_add(findings, GBX_FINDING_JOURNAL, what);
    }
}

/* --- a manifest without a journal --- */

static void check_import_totals(gbx_findings *findings, const gbx_reader *reader) {
    const gbx_import_totals *stated = gbx_reader_get_import_totals(reader);
    const gbx_reader_totals *counted = gbx_reader_get_totals(reader);
    const uint64_t values[GBX_TOTAL_COUNT] = {
        [GBX_TOTAL_RECORDS] = counted->records,
        [GBX_TOTAL_BEFORE] = counted->before_dispatch,
        [GBX_TOTAL_AFTER] = counted->after_completion,
        [GBX_TOTAL_INPUTS] = counted->inputs,
        [GBX_TOTAL_OUTPUTS] = counted->outputs,
        [GBX_TOTAL_INOUTS] = counted->inouts,
        [GBX_TOTAL_IN_FLIGHT] = counted->in_flight,
        [GBX_TOTAL_TRUNCATED] = counted->truncated,
        [GBX_TOTAL_DEDUPLICATED] = counted->deduplicated,
        [GBX_TOTAL_PAYLOAD_BYTES] = counted->payload_bytes,
        [GBX_TOTAL_STORED_BYTES] = counted->stored_bytes,
        [GBX_TOTAL_RESULTS] = counted->results,
        [GBX_TOTAL_RESULT_PAYLOAD_BYTES] = counted->result_payload_bytes,
        [GBX_TOTAL_RESULT_STORED_BYTES] = counted->result_stored_bytes,
        [GBX_TOTAL_DROPPED] = counted->dropped - stated->values[GBX_TOTAL_OVERWRITTEN],
    };
    for (size_t i = 0; i <= GBX_TOTAL_DROPPED; ++i)
        if (stated->names[i] && (i != GBX_TOTAL_DROPPED || stated->has_losses))
            gbx_findings_compare(findings, GBX_FINDING_COUNT, stated->names[i], values[i],
                                 stated->values[i]);
}

/* --- all of it --- */

static gbx_status check_contents(const gbx_verify_observer *observer, gbx_verification *out) {
    journal_check check = {.out = out,
                           .reader = out->reader,
                           .findings = &out->findings,
                           .is_own = gbx_verify_is_own(out->reader)};
    check.is_ok = gbx_reader_has_ended_well(out->reader);
    gbx_status status = gbx_sums_begin(&check.sums, out->reader, &out->findings);
    if (!status)
        status = check_records(&check);
    if (!status)
        gbx_sums_end(&check.sums);
    gbx_sums_free(&check.sums);
    if (!status)
        status = check_results(&check);
    if (!status)
        status = gbx_verify_payload(out->reader, &check.payloads, &out->findings, observer,
                                    &out->file_bytes);
    out->payload_bytes = gbx_reader_get_totals(out->reader)->payload_bytes;
    free(check.payloads.entries);
    return status;
}

static gbx_status verify_open(const char *directory, int journal_fd, bool has_manifests,
                              const gbx_verify_observer *observer, gbx_verification *out) {
    const gbx_record_end *end = gbx_reader_end(out->reader);
    const gbx_reader_totals *totals = gbx_reader_get_totals(out->reader);
    if (!gbx_reader_get_origin(out->reader)->is_journal) {
        check_import_totals(&out->findings, out->reader);
        return check_contents(observer, out);
    }
    check_extent(&out->findings, out->reader);
    if (end)
        check_totals(&out->findings, end, totals);
    out->is_strict = gbx_reader_is_complete(out->reader) && totals->dropped == 0;
    bool is_missing = false;
    GBX_TRY(gbx_verify_ranges(journal_fd, out->reader, &out->findings));
    gbx_status status = check_contents(observer, out);
    if (!status && has_manifests)
        status =
            gbx_verify_manifests(directory, out->reader, &out->findings, observer, &is_missing);
    gbx_reader_stop stop = gbx_reader_get_extent(out->reader)->stop;
    bool is_refused = stop != GBX_STOP_END && !gbx_reader_stop_is_damage(stop);
    out->can_be_recovered = !is_refused && (is_missing || !end || stop != GBX_STOP_END);
    return status;
}

/* A dump with only a manifest has nothing to lock: no run writes it. */
static gbx_status lock(const char *directory, int *out_fd) {
    char path[PATH_MAX];
    bool is_there = false;
    gbx_status status = gbx_journal_lock(directory, GBX_JOURNAL_READS, out_fd);
    if (!status || gbx_status_code(status) != GBX_NOT_FOUND)
        return status;
    gbx_status looked = gbx_import_find(directory, path, &is_there);
    if (looked || !is_there)
        return gbx_status_first(status, looked);
    gbx_status_free(status);
    return NULL;
}

static gbx_status verify(const char *directory, bool has_manifests,
                         const gbx_verify_observer *observer, gbx_verification *out_verification) {
    *out_verification = (gbx_verification){0};
    int lock_fd;
    GBX_TRY(lock(directory, &lock_fd));
    unsigned indexed =
        GBX_INDEX_ARGUMENTS | GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH | GBX_INDEX_EXECUTIONS;
    gbx_status status = gbx_reader_open(directory, indexed, &out_verification->reader);
    if (!status)
        status = verify_open(directory, lock_fd, has_manifests, observer, out_verification);
    if (!status && out_verification->findings.has_failed)
        status = gbx_fail_memory("checking %s", directory);
    if (status)
        gbx_verification_free(out_verification);
    if (lock_fd >= 0)
        close(lock_fd);
    return status;
}

gbx_status gbx_dump_verify(const char *directory, const gbx_verify_observer *observer,
                           gbx_verification *out_verification) {
    return verify(directory, true, observer, out_verification);
}

gbx_status gbx_dump_verify_journal(const char *directory, const gbx_verify_observer *observer,
                                   gbx_verification *out_verification) {
    return verify(directory, false, observer, out_verification);
}

void gbx_verification_free(gbx_verification *verification) {
    gbx_reader_close(verification->reader);
    gbx_findings_free(&verification->findings);
    *verification = (gbx_verification){0};
}
