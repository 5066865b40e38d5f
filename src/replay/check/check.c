#include "replay/check/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "base/hash.h"
#include "base/memory.h"
#include "replay/replay_result.h"

/* One task that is being checked. */
typedef struct checking {
    gbx_entries *entries;
    const gbx_replay_task *task;
    const void *const *got; /* NULL: the outputs in the dump */
    const gbx_check_reference *references;
    size_t reference_count;
    gbx_check_job *job;
    gbx_check_result *result;
} checking;

static void not_checked(gbx_check_result *result, const char *format, ...) GBX_PRINTF(2, 3);
static void not_checked(gbx_check_result *result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->reason, sizeof result->reason, format, arguments);
    va_end(arguments);
    result->verdict = GBX_CHECK_NOT_CHECKED;
}

/* Sets all but the outputs, which are many. */
static void begin_result(gbx_check_result *result) {
    result->verdict = GBX_CHECK_RIGHT;
    result->reason[0] = '\0';
    memset((char *)result + offsetof(gbx_check_result, output_count), 0,
           offsetof(gbx_check_result, outputs) - offsetof(gbx_check_result, output_count));
}

/* --- references --- */

static const gbx_check_reference *find_reference(const checking *c, uint32_t func_id) {
    for (size_t i = 0; i < c->reference_count; ++i)
        if (c->references[i].func_id == func_id)
            return &c->references[i];
    return NULL;
}

/* Finds the objects of the task's kernels; false, with the reason set, if one has none. */
static bool find_objects(checking *c) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        if (c->task->func_ids[i] == GBX_NO_KERNEL)
            continue;
        const gbx_check_reference *reference = find_reference(c, c->task->func_ids[i]);
        const char *name = c->task->kernel_names[i];
        if (!reference)
            not_checked(c->result, "the scene has no kernel %s, func_id %" PRIu32, name,
                        c->task->func_ids[i]);
        else if (!reference->object)
            not_checked(c->result, "kernel %s has no reference in scene.json", name);
        else
            c->job->request.objects[i] = reference->object;
        if (!c->job->request.objects[i])
            return false;
    }
    return true;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static gbx_tolerance tolerance_of(const checking *c, uint32_t dtype) {
    gbx_tolerance loosest = {0};
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i) {
        const gbx_check_reference *reference =
            c->task->func_ids[i] == GBX_NO_KERNEL ? NULL : find_reference(c, c->task->func_ids[i]);
        if (!reference)
            continue;
        gbx_tolerance own = {.rtol = larger(reference->rtol, 0.0),
                             .atol = larger(reference->atol, 0.0)};
        if (reference->rtol < 0.0 && reference->atol < 0.0)
            own = gbx_tolerance_default(dtype);
        loosest.rtol = larger(loosest.rtol, own.rtol);
        loosest.atol = larger(loosest.atol, own.atol);
        loosest.ulp = loosest.ulp > own.ulp ? loosest.ulp : own.ulp;
    }
    return loosest;
}

/* --- outputs --- */

/* "y (argument 1)", "argument 1" */
enum { ARGUMENT_BYTES = 256 };
static const char *argument_text(const char *name, uint32_t slot, char out_text[ARGUMENT_BYTES]) {
    if (name)
        snprintf(out_text, ARGUMENT_BYTES, "%.200s (argument %" PRIu32 ")", name, slot);
    else
        snprintf(out_text, ARGUMENT_BYTES, "argument %" PRIu32, slot);
    return out_text;
}

/* Sets the reason for the first missing output. */
static gbx_status note_missing(const checking *c, const gbx_replay_argument *argument) {
    char text[ARGUMENT_BYTES];
    const char *why = "is not in the dump";
    if (c->result->missing_outputs++ > 0)
        return NULL;
    uint64_t count = gbx_entries_count(c->entries);
    for (uint64_t i = gbx_entries_find(c->entries, c->task->task); i < count; ++i) {
        gbx_entry entry;
        GBX_TRY(gbx_entries_at(c->entries, i, &entry));
        if (entry.head->task != c->task->task)
            break;
        if (entry.head->arg_index != argument->slot || entry.head->stage != GBX_STAGE_AFTER)
            continue;
        if (entry.head->flags & GBX_FLAG_IN_FLIGHT)
            why = "was recorded before the task completed";
        else if (entry.head->flags & GBX_FLAG_TRUNCATED)
            why = "is truncated in the dump (--dump-max-tensor)";
        else if (entry.head->flags & GBX_FLAG_OVERWRITTEN)
            why = "was overwritten before it was recorded";
        else
            why = "has no payload in the dump";
    }
    not_checked(c->result, "output %s %s; run with --dump-tensor=full",
                argument_text(argument->name, argument->slot, text), why);
    return NULL;
}

/* --- running --- */

/* Which reference of a mix hung in another task is unknown. */
static void note_hung_before(const checking *c, const char *name) {
    uint32_t kernels = 0;
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        kernels += c->task->func_ids[i] != GBX_NO_KERNEL;
    if (kernels > 1)
        not_checked(c->result, "its references hung together in an earlier task and were not run "
                               "again");
    else
        not_checked(c->result,
                    "the reference of kernel %s hung in an earlier task and was not run again",
                    name);
}

static void note_fault(const checking *c, const gbx_replay_fault *fault) {
    uint32_t subtask = c->task->dispatches[fault->dispatch].subtask;
    const char *name = c->task->kernel_names[subtask];
    const char *word = fault->signal > 0 ? sigabbrev_np(fault->signal) : NULL;
    if (fault->is_known) {
        note_hung_before(c, name);
    } else if (fault->is_stuck) {
        not_checked(c->result, "the reference of kernel %s waits for a flag that nothing sets",
                    name);
    } else if (fault->is_hang) {
        not_checked(c->result, "the reference of kernel %s hung: it took longer than --timeout",
                    name);
    } else if (word) {
        not_checked(c->result, "the reference of kernel %s crashed with SIG%s", name, word);
    } else {
        not_checked(c->result, "the reference of kernel %s crashed: it ended its process", name);
    }
}

/* --- damage --- */

static gbx_status look_for_hash(gbx_entries *entries, uint64_t index, bool *out_is_damaged) {
    gbx_entry entry;
    *out_is_damaged = false;
    if (index == GBX_REPLAY_NO_ENTRY)
        return NULL;
    GBX_TRY(gbx_entries_at(entries, index, &entry));
    bool has_hash = entry.tensor && entry.head->flags & GBX_FLAG_HAS_HASH;
    if (!has_hash || gbx_entry_stored_bytes(&entry) == 0)
        return NULL;
    gbx_record_tensor record = *entry.tensor;
    uint64_t bytes = record.bin_size;
    void *payload = malloc(bytes);
    if (!payload)
        return gbx_fail_memory("reading a tensor of %" PRIu64 " bytes", bytes);
    gbx_status status =
        gbx_reader_read_payload(gbx_entries_reader(entries), record.bin_offset, payload, bytes);
    if (!status) {
        gbx_hash128 hash = gbx_hash_bytes(payload, bytes);
        *out_is_damaged = hash.low != record.hash_low || hash.high != record.hash_high;
    }
    free(payload);
    return status;
}

/* --- checking --- */

/* Lists the outputs to compare, unless the task cannot be checked. */
static gbx_status prepare(checking *c) {
    gbx_check_job *job = c->job;
    gbx_check_result *result = c->result;
    job->request = (gbx_replay_request){
        .task = c->task, .dispatch = -1, .tolerances = job->tolerances, .got = c->got};
    if (!find_objects(c))
        return NULL;
    for (uint32_t i = 0; i < c->task->argument_count; ++i) {
        const gbx_replay_argument *argument = &c->task->arguments[i];
        job->tolerances[i] = (gbx_tolerance){0};
        if (!argument->is_tensor || argument->role == GBX_ROLE_INPUT || (c->got && !c->got[i]))
            continue;
        if (!c->got && argument->after == GBX_REPLAY_NO_ENTRY) {
            GBX_TRY(note_missing(c, argument));
        } else if (result->output_count < GBX_MAX_TENSOR_ARGS) {
            gbx_check_output *output = &result->outputs[result->output_count++];
            output->argument = i;
            output->slot = argument->slot;
            output->name = argument->name;
            output->tensor = argument->tensor;
            output->not_written = 0;
            job->tolerances[i] = tolerance_of(c, argument->tensor.dtype);
        }
    }
    if (result->output_count == 0 && result->missing_outputs == 0)
        not_checked(result, "it has no outputs to compare");
    job->is_asked = result->output_count > 0;
    return NULL;
}

static void judge(const checking *c, bool is_unsteady) {
    gbx_check_result *result = c->result;
    const gbx_check_output *unwritten = NULL;
    uint64_t compared = 0;
    char text[ARGUMENT_BYTES];
    for (uint32_t i = result->output_count; i-- > 0;) {
        const gbx_check_output *output = &result->outputs[i];
        compared += output->comparison.elements;
        if (output->comparison.elements == 0 && output->not_written > 0)
            unwritten = output;
        if (output->comparison.mismatches > 0) {
            result->verdict = GBX_CHECK_INTRODUCED;
            result->worst_output = i;
        }
    }
    if (is_unsteady) {
        not_checked(result, "its reference gives different results each time: it reads an output "
                            "before writing it, or uninitialized values");
        result->output_count = 0;
    } else if (result->verdict == GBX_CHECK_INTRODUCED) {
        result->reason[0] = '\0';
    } else if (result->verdict == GBX_CHECK_RIGHT && unwritten) {
        not_checked(result, "its reference writes no element of output %s",
                    argument_text(unwritten->name, unwritten->slot, text));
    } else if (result->verdict == GBX_CHECK_RIGHT && compared == 0) {
        not_checked(result, "its outputs have no elements");
    }
}

/* Data that changed on disk is not the kernel's fault. */
static gbx_status look_for_damage(const checking *c) {
    for (uint32_t i = 0; i < c->task->argument_count; ++i) {
        const gbx_replay_argument *argument = &c->task->arguments[i];
        char text[ARGUMENT_BYTES];
        bool is_damaged;
        GBX_TRY(look_for_hash(c->entries, argument->before, &is_damaged));
        if (!is_damaged && !c->got)
            GBX_TRY(look_for_hash(c->entries, argument->after, &is_damaged));
        if (!is_damaged)
            continue;
        not_checked(c->result,
                    "%s is damaged in the dump: its hash no longer matches; run glassbox verify",
                    argument_text(argument->name, argument->slot, text));
        c->result->output_count = 0;
        c->result->is_damaged = true;
        return NULL;
    }
    return NULL;
}

/* A task is only wrong if its reference gives the same result twice. */
static gbx_status conclude(const checking *c, const gbx_replay_outcome *outcome) {
    gbx_check_result *result = c->result;
    const gbx_answer *answer = outcome->answer;
    if (outcome->fault) {
        note_fault(c, outcome->fault);
        result->output_count = 0;
        return NULL;
    }
    for (uint32_t i = 0; i < result->output_count; ++i) {
        gbx_check_output *output = &result->outputs[i];
        output->comparison = answer->outputs[output->argument].comparison;
        output->not_written = answer->outputs[output->argument].not_written;
    }
    result->stray_bytes = answer->stray_bytes;
    result->stray_address = answer->stray_address;
    result->stray_is_unknown = answer->stray_is_unknown;
    judge(c, answer->is_unsteady);
    return result->verdict == GBX_CHECK_INTRODUCED ? look_for_damage(c) : NULL;
}

/* --- a task of the dump --- */

/* Tensors that do not fit into memory concern only this task; so do records that are missing or
 * contradict each other, while the task is read. */
static gbx_status take_refusal(gbx_check_result *result, gbx_status status, bool is_reading) {
    gbx_code code = gbx_status_code(status);
    bool is_of_records = is_reading && (code == GBX_NOT_FOUND || code == GBX_BAD_FORMAT);
    if (!is_of_records && code != GBX_OUT_OF_RANGE && code != GBX_EXHAUSTED)
        return status;
    not_checked(result, "%s", gbx_status_message(status));
    result->output_count = 0;
    gbx_status_free(status);
    return NULL;
}

static checking checking_of(gbx_check_job *job) {
    return (checking){
        .entries = job->entries, .task = &job->task, .job = job, .result = &job->result};
}

void gbx_check_job_init(gbx_check_job *job) {
    memset(job, 0, offsetof(gbx_check_job, tolerances));
}

gbx_status gbx_check_prepare(gbx_check_job *job, gbx_entries *entries, uint64_t task,
                             const gbx_check_reference *references, size_t reference_count) {
    job->entries = entries;
    job->is_asked = false;
    checking c = checking_of(job);
    c.references = references;
    c.reference_count = reference_count;
    begin_result(c.result);
    gbx_status status = gbx_replay_task_read(entries, task, &job->task);
    if (status)
        status = gbx_replay_task_explain(&job->task, status, false);
    GBX_TRY(take_refusal(c.result, status, true));
    if (c.result->verdict == GBX_CHECK_NOT_CHECKED)
        return NULL;
    if (job->task.did_complete)
        return prepare(&c);
    not_checked(c.result, "it did not complete: it crashed, hung, or was running when the run "
                          "ended");
    return NULL;
}

gbx_status gbx_check_refuse(gbx_check_job *job, gbx_status status) {
    job->is_asked = false;
    return take_refusal(&job->result, status, false);
}

gbx_status gbx_check_conclude(gbx_check_job *job, const gbx_replay_outcome *outcome) {
    const checking c = checking_of(job);
    return conclude(&c, outcome);
}

void gbx_check_job_free(gbx_check_job *job) {
    gbx_replay_task_free(&job->task);
}

gbx_status gbx_check_task(gbx_replay_engine *engine, gbx_entries *entries, uint64_t task,
                          const gbx_check_reference *references, size_t reference_count,
                          gbx_check_result *out_result) {
    gbx_replay_outcome outcome = {0};
    gbx_check_job *job = calloc(1, sizeof *job);
    if (!job)
        return gbx_fail_memory("checking task %" PRIu64, task);
    gbx_status status = gbx_check_prepare(job, entries, task, references, reference_count);
    if (!status && job->is_asked) {
        status = gbx_replay_run(engine, &job->request, &outcome);
        status = status ? gbx_check_refuse(job, status) : gbx_check_conclude(job, &outcome);
    }
    *out_result = job->result;
    gbx_replay_outcome_free(&outcome);
    gbx_check_job_free(job);
    free(job);
    return status;
}

/* --- payloads --- */

gbx_status gbx_check_payloads(gbx_replay_engine *engine, gbx_entries *entries,
                              const gbx_replay_task *task, const void *const *got,
                              const gbx_check_reference *references, size_t reference_count,
                              gbx_check_result *out_result) {
    gbx_replay_outcome outcome = {0};
    gbx_check_job *job = calloc(1, sizeof *job);
    if (!job)
        return gbx_fail_memory("checking task %" PRIu64, task->task);
    checking c = {.entries = entries,
                  .task = task,
                  .got = got,
                  .references = references,
                  .reference_count = reference_count,
                  .job = job,
                  .result = out_result};
    begin_result(out_result);
    gbx_status status = prepare(&c);
    if (!status && job->is_asked)
        status = gbx_replay_run(engine, &job->request, &outcome);
    if (!status && job->is_asked)
        status = conclude(&c, &outcome);
    gbx_replay_outcome_free(&outcome);
    free(job);
    return status;
}
