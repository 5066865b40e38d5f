#include "replay/replay_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/names.h"

/* --- describing --- */

/* Not by printf, because it is done for every task. */
void gbx_replay_result_name(gbx_replay_result *result, const gbx_replay_task *task) {
    size_t used = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const char *name = task->kernel_names[i];
        size_t length = name ? strlen(name) : 0;
        if (!name || used + length + 2 > sizeof result->kernel)
            continue;
        if (used > 0)
            result->kernel[used++] = '+';
        memcpy(result->kernel + used, name, length);
        used += length;
    }
    result->kernel[used] = '\0';
}

static bool has_core_ids(const gbx_replay_task *task) {
    for (uint32_t i = 0; i < task->dispatch_count; ++i)
        if (task->dispatches[i].core_id == GBX_REPLAY_NO_CORE)
            return false;
    return true;
}

/* `has_title`: somebody may want to print it. */
static gbx_status describe(const gbx_replay_task *task, int64_t dispatch, bool has_title,
                           gbx_replay_result *out_result) {
    *out_result = (gbx_replay_result){.task = task->task,
                                      .task_id = task->task_id,
                                      .dispatch = dispatch,
                                      .dispatch_count = task->dispatch_count,
                                      .has_core_ids = has_core_ids(task),
                                      .did_complete = task->did_complete,
                                      .stray_argument = -1};
    if (has_title)
        gbx_replay_task_title(task, out_result->title);
    if (has_title && dispatch >= 0) {
        size_t length = strlen(out_result->title);
        const gbx_replay_dispatch *one = &task->dispatches[dispatch];
        snprintf(out_result->title + length, GBX_REPLAY_TITLE_BYTES - length,
                 ", dispatch %" PRId64 " (block %" PRIu32 ", %s)", dispatch, one->block_idx,
                 gbx_name_of(&gbx_subtasks, one->subtask));
    }
    gbx_replay_result_name(out_result, task);
    out_result->outputs = calloc(task->argument_count + 1, sizeof *out_result->outputs);
    if (!out_result->outputs)
        return gbx_fail_memory("replaying task %" PRIu64, task->task);
    for (uint32_t i = 0; i < task->argument_count; ++i) {
        const gbx_replay_argument *argument = &task->arguments[i];
        if (!argument->is_tensor || argument->role == GBX_ROLE_INPUT)
            continue;
        out_result->outputs[out_result->output_count++] = (gbx_replay_compared){
            .argument = i,
            .slot = argument->slot,
            .name = argument->name,
            .tensor = argument->tensor,
            .is_compared = task->did_complete && argument->after != GBX_REPLAY_NO_ENTRY};
    }
    return NULL;
}

void gbx_replay_result_free(gbx_replay_result *result) {
    free(result->outputs);
    free(result->fault);
    free(result->findings);
    free(result->ranges);
    free(result->refusal.reason);
    free(result->refusal.sentence);
    *result = (gbx_replay_result){0};
}

/* Notes whether the recorded run ended in this task. */
static void note_end(const gbx_replay_job *job, gbx_replay_result *result) {
    const gbx_record_outcome *outcome = gbx_reader_outcome(gbx_entries_reader(job->entries));
    if (result->did_complete)
        return;
    result->is_end_unknown = !outcome && job->run_end[0];
    result->is_end_of_run =
        outcome && outcome->func_id != GBX_OUTCOME_NO_KERNEL && outcome->task_id == result->task_id;
}

/* --- payloads --- */

void gbx_replay_payloads_free(gbx_replay_payloads *payloads) {
    for (size_t i = 0; i < GBX_REPLAY_MAX_ARGUMENTS; ++i) {
        free(payloads->dump[i]);
        for (size_t k = 0; k < GBX_KEPT_COUNT; ++k)
            free(payloads->kept[k][i]);
    }
    *payloads = (gbx_replay_payloads){0};
}

static gbx_status make_room(const gbx_replay_job *job, const gbx_tensor *tensor,
                            unsigned char **out_payload) {
    *out_payload = malloc(gbx_tensor_payload_bytes(tensor) + 1);
    return *out_payload ? NULL
                        : gbx_fail_memory("replaying task %" PRIu64, job->request.task->task);
}

/* The complete payload of an entry. */
static gbx_status read_entry(gbx_entries *entries, uint64_t entry, const gbx_tensor *tensor,
                             void *out_payload) {
    gbx_entry found;
    uint64_t bytes = gbx_tensor_payload_bytes(tensor);
    GBX_TRY(gbx_entries_at(entries, entry, &found));
    if (!found.tensor || gbx_entry_stored_bytes(&found) != bytes)
        return gbx_fail(GBX_BAD_FORMAT,
                        "reading entry %" PRIu64 " of the dump: its payload does not have the "
                        "%" PRIu64 " bytes of its tensor; run glassbox verify",
                        entry, bytes);
    return gbx_reader_read_payload(gbx_entries_reader(entries), found.tensor->bin_offset,
                                   out_payload, bytes);
}

static gbx_status read_payloads(const gbx_replay_job *job, const gbx_replay_result *result,
                                gbx_replay_payloads *payloads) {
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        const gbx_replay_argument *argument = &job->request.task->arguments[output->argument];
        if (output->is_compared) {
            GBX_TRY(make_room(job, &output->tensor, &payloads->dump[output->argument]));
            GBX_TRY(read_entry(job->entries, argument->after, &output->tensor,
                               payloads->dump[output->argument]));
        }
        for (gbx_replay_kept k = 0; k < GBX_KEPT_COUNT; ++k) {
            bool is_start = k == GBX_KEPT_START || k == GBX_KEPT_OTHER_START;
            if (is_start && argument->role == GBX_ROLE_INOUT)
                continue;
            GBX_TRY(make_room(job, &output->tensor, &payloads->kept[k][output->argument]));
            GBX_TRY(gbx_replay_output(job->engine, output->argument, k,
                                      payloads->kept[k][output->argument]));
        }
    }
    return NULL;
}

/* --- the result --- */

gbx_replay_sums gbx_replay_result_sums(const gbx_replay_result *result) {
    gbx_replay_sums sums = {0};
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        sums.unstable += output->bits.unstable;
        sums.written += output->bits.elements - output->bits.not_written;
        sums.not_compared += !output->is_compared;
        sums.unchanged += output->is_unchanged;
        if (!output->is_compared)
            continue;
        sums.outputs++;
        sums.elements += output->bits.elements;
        sums.not_written += output->bits.not_written;
        sums.mismatches += output->bits.mismatches;
    }
    return sums;
}

static gbx_replay_verdict judge(const gbx_replay_result *result) {
    gbx_replay_sums sums = gbx_replay_result_sums(result);
    if (result->fault)
        return GBX_REPLAY_FAULT;
    if (sums.outputs == 0)
        return GBX_REPLAY_NOT_COMPARED;
    if (sums.mismatches > 0)
        return GBX_REPLAY_DIFFERS;
    if (sums.elements > 0 && sums.not_written == sums.elements)
        return sums.written > 0 ? GBX_REPLAY_NOT_COMPARED : GBX_REPLAY_NOTHING_WRITTEN;
    return sums.not_written > 0 ? GBX_REPLAY_PARTLY : GBX_REPLAY_EXACT;
}

static void take_outputs(const gbx_replay_outcome *outcome, gbx_replay_result *result) {
    for (size_t i = 0; i < result->output_count; ++i) {
        gbx_replay_compared *output = &result->outputs[i];
        if (outcome->is_clean)
            output->bits.elements = (uint64_t)gbx_tensor_numel(&output->tensor);
        else
            output->bits = outcome->answer->outputs[output->argument].bits;
        output->is_exact =
            output->is_compared && output->bits.mismatches == 0 && output->bits.not_written == 0;
        output->is_unchanged = output->is_exact && (outcome->unchanged >> output->argument & 1);
    }
}

gbx_status gbx_replay_result_make(const gbx_replay_job *job, gbx_replay_outcome *outcome,
                                  gbx_replay_result *out_result) {
    const gbx_answer *answer = outcome->answer;
    gbx_replay_result *result = out_result;
    GBX_TRY(describe(job->request.task, job->request.dispatch, !outcome->is_clean, result));
    note_end(job, result);
    result->is_relocated = outcome->is_relocated;
    if (!outcome->fault)
        take_outputs(outcome, result);
    if (outcome->is_clean)
        result->times = (gbx_replay_times){1, outcome->ns, outcome->ns, outcome->ns, 0};
    if (answer) {
        result->times = (gbx_replay_times){answer->runs, answer->min_ns, answer->ns, answer->max_ns,
                                           answer->different};
        result->order = answer->order;
        result->stray_bytes = answer->stray_bytes;
        result->stray_address = answer->stray_address;
        result->stray_is_unknown = answer->stray_is_unknown;
        result->findings_left_out = answer->findings_left_out;
        result->notes_left_out = answer->notes_left_out;
        result->flags_are_unknown = answer->flags_are_unknown;
        if (answer->range_count > 0 && answer->range_count <= GBX_STRAY_RANGES &&
            !outcome->is_relocated) {
            result->ranges = malloc(answer->range_count * sizeof *result->ranges);
            if (!result->ranges)
                return gbx_fail_memory("replaying task %" PRIu64, job->request.task->task);
            result->range_count = answer->range_count;
            memcpy(result->ranges, answer->ranges, answer->range_count * sizeof *result->ranges);
        }
    }
    if (!outcome->is_clean)
        GBX_TRY(gbx_replay_find_aftermath(job, outcome, result));
    result->fault = outcome->fault;
    outcome->fault = NULL;
    if (result->fault) {
        result->order = GBX_ORDER_NOT_ASKED;
        result->is_other_poison = result->fault->step == GBX_STEP_OTHER;
        result->fault_run =
            job->request.runs > 1 && result->fault->step == GBX_STEP_RUN ? result->fault->run : 0;
    }
    result->verdict = judge(result);
    return NULL;
}

gbx_status gbx_replay_execute(const gbx_replay_job *job, gbx_replay_payloads *out_payloads,
                              gbx_replay_result *out_result) {
    gbx_replay_outcome outcome;
    *out_result = (gbx_replay_result){0};
    if (out_payloads)
        *out_payloads = (gbx_replay_payloads){0};
    gbx_status status = gbx_replay_run(job->engine, &job->request, &outcome);
    if (!status)
        status = gbx_replay_result_make(job, &outcome, out_result);
    if (!status && out_payloads && !out_result->fault)
        status = read_payloads(job, out_result, out_payloads);
    gbx_replay_outcome_free(&outcome);
    return status;
}
