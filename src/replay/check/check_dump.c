/* Checks the tasks of a dump, many at a time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "analysis/graph.h"
#include "base/memory.h"
#include "replay/check/internal.h"

static const char doing[] = "checking the dump's tasks";

/* A task that is being checked: its kernels and its references are called again. */
typedef struct asked {
    gbx_check_job job;
    gbx_replay_job kernels;
    bool asks_kernels;
    gbx_status refusal; /* why its kernels are not called */
} asked;

enum { MAX_ASKED = 512 };

typedef struct flow {
    const gbx_check_request *request;
    gbx_replay_session session;
    gbx_task_graph *graph;
    gbx_references *references;
    gbx_check_report *report;
    asked *items[MAX_ASKED]; /* in order: a ring; its memory is used again */
    uint32_t first;
    uint32_t count;
} flow;

/* --- selecting tasks --- */

static bool is_named(const gbx_check_filter *filter, const gbx_run_info *run, uint32_t func_id) {
    const gbx_run_kernel *kernel =
        func_id == GBX_NO_KERNEL ? NULL : gbx_run_info_kernel(run, func_id);
    return kernel && gbx_selection_has_name(&filter->kernels, kernel->name);
}

/* A task without record has no kernel and no id. */
static gbx_status match(const flow *f, uint64_t task, bool *out_is_chosen) {
    const gbx_check_filter *filter = f->request->filter;
    gbx_record_task record;
    bool is_found = false;
    bool is_any = filter->numbers.count == 0 && filter->ids.count == 0;
    bool is_named_so = filter->kernels.count == 0;
    *out_is_chosen = is_any && is_named_so;
    if (*out_is_chosen)
        return NULL;
    GBX_TRY(gbx_reader_find_task(f->report->reader, task, &record, &is_found));
    for (size_t i = 0; is_found && i < GBX_SUBTASK_COUNT && !is_named_so; ++i)
        is_named_so = is_named(filter, gbx_reader_run(f->report->reader), record.func_ids[i]);
    *out_is_chosen =
        is_named_so && (is_any || gbx_selection_has_number(&filter->numbers, task) ||
                        (is_found && gbx_selection_has_number(&filter->ids, record.task_id)));
    return NULL;
}

/* --- checking tasks --- */

static void report_progress(const flow *f, gbx_check_step step, uint64_t count) {
    if (f->request->progress)
        f->request->progress(f->request->progress_context, step, count);
}

static void end_asked(asked *one) {
    gbx_check_job_free(&one->job);
    gbx_status_free(one->refusal);
}

/* Keeps the failure of a task's kernels; any other ends the check. */
static gbx_status refuse_kernels(asked *one, gbx_status status) {
    gbx_code code = gbx_status_code(status);
    if (code != GBX_OUT_OF_RANGE && code != GBX_EXHAUSTED && code != GBX_BAD_KERNEL)
        return status;
    one->refusal = status;
    return NULL;
}

/* Kernels that cannot be called do not keep references from being compared. */
static gbx_status ask_kernels(flow *f, asked *one) {
    if (one->job.task.dispatch_count == 0 || !one->job.task.did_complete)
        return NULL;
    one->refusal = gbx_replay_session_job(&f->session, &one->job.task, &one->kernels);
    if (one->refusal)
        return NULL;
    GBX_TRY(refuse_kernels(one, gbx_replay_submit(f->session.engine, &one->kernels.request)));
    one->asks_kernels = !one->refusal;
    return NULL;
}

static gbx_status ask(flow *f, uint64_t task) {
    asked **place = &f->items[(f->first + f->count) % MAX_ASKED];
    if (!*place)
        *place = malloc(sizeof **place);
    if (!*place)
        return gbx_fail_memory("checking task %" PRIu64, task);
    asked *one = *place;
    gbx_check_job_init(&one->job);
    one->asks_kernels = false;
    one->refusal = NULL;
    f->count++;
    GBX_TRY(gbx_check_prepare(&one->job, f->request->entries, task, f->references->items,
                              f->references->count));
    GBX_TRY(ask_kernels(f, one));
    if (!one->job.is_asked)
        return NULL;
    gbx_status status = gbx_replay_submit(f->session.engine, &one->job.request);
    return status ? gbx_check_refuse(&one->job, status) : NULL;
}

static void count_skipped(const flow *f, gbx_check_skipped *skipped) {
    if (skipped->count++ == 0)
        skipped->first = f->report->count;
}

/* Thousands of tasks may leave elements unwritten: of those that only have notes, nothing but the
 * notes is kept. */
static void trim(gbx_replay_result *result, bool has_notes_only) {
    size_t bytes = result->finding_count * sizeof *result->findings;
    gbx_replay_finding *fitting = bytes > 0 ? realloc(result->findings, bytes) : NULL;
    if (fitting)
        result->findings = fitting;
    if (!has_notes_only)
        return;
    free(result->outputs);
    free(result->ranges);
    result->outputs = NULL;
    result->ranges = NULL;
    result->output_count = 0;
    result->range_count = 0;
}

/* Keeps a result that says something about its kernels. */
static gbx_status keep_result(flow *f, gbx_replay_result *result, gbx_check_kernels *kernels) {
    gbx_check_report *report = f->report;
    if (!kernels->is_accused && !(report->keeps_notes && result->note_count > 0))
        return NULL;
    GBX_TRY(gbx_array_reserve(&report->results, &report->result_capacity, report->result_count + 1,
                              doing));
    kernels->result = (int64_t)report->result_count;
    trim(result, !kernels->is_accused);
    report->results[report->result_count++] = *result;
    *result = (gbx_replay_result){0};
    return NULL;
}

static void count_mismatches(const gbx_replay_result *result, gbx_check_kernels *kernels) {
    for (size_t i = 0; i < result->output_count; ++i) {
        const gbx_replay_compared *output = &result->outputs[i];
        if (!output->is_compared || output->bits.mismatches == 0)
            continue;
        double max_abs = gbx_dtype_is_float(output->tensor.dtype) ? output->bits.max_abs : INFINITY;
        kernels->max_abs = max_abs > kernels->max_abs ? max_abs : kernels->max_abs;
        kernels->mismatches += output->bits.mismatches;
        kernels->slots |= output->slot < 64 ? UINT64_C(1) << output->slot : 0;
    }
}

static gbx_status judge_kernels(flow *f, const asked *one, gbx_replay_outcome *outcome,
                                gbx_check_kernels *kernels) {
    gbx_replay_result result = {0};
    kernels->is_called = true;
    kernels->verdict = GBX_REPLAY_EXACT;
    if (outcome->is_clean)
        return NULL; /* most are: there is nothing to describe */
    gbx_status status = gbx_replay_result_make(&one->kernels, outcome, &result);
    if (!status) {
        kernels->verdict = result.verdict;
        kernels->differs = result.verdict == GBX_REPLAY_DIFFERS;
        kernels->is_accused = result.finding_count > result.note_count || result.fault;
        count_mismatches(&result, kernels);
        if (result.order <= GBX_ORDER_NOT_ASKED)
            count_skipped(f, &f->report->orders[result.order]);
        if (result.stray_is_unknown)
            count_skipped(f, &f->report->stray_unknown);
        status = keep_result(f, &result, kernels);
    }
    gbx_replay_result_free(&result);
    return status;
}

static gbx_status take_kernels(flow *f, asked *one, gbx_check_kernels *kernels) {
    *kernels = (gbx_check_kernels){.result = -1};
    if (one->asks_kernels) {
        gbx_replay_taken taken;
        bool is_there;
        GBX_TRY(gbx_replay_take(f->session.engine, true, &taken, &is_there));
        gbx_status status = taken.status ? refuse_kernels(one, taken.status)
                                         : judge_kernels(f, one, &taken.outcome, kernels);
        gbx_replay_outcome_free(&taken.outcome);
        GBX_TRY(status);
    }
    if (kernels->is_called)
        return NULL;
    const char *why = one->refusal ? gbx_status_message(one->refusal)
                      : one->job.task.dispatch_count > 0
                          ? "the task did not complete"
                          : "the dump lacks data that the task needs";
    return gbx_check_report_keep(f->report, why, &kernels->why_not);
}

static gbx_status take_references(flow *f, asked *one) {
    gbx_replay_taken taken = {0};
    bool is_there;
    if (!one->job.is_asked)
        return NULL;
    GBX_TRY(gbx_replay_take(f->session.engine, true, &taken, &is_there));
    gbx_status status = taken.status ? gbx_check_refuse(&one->job, taken.status)
                                     : gbx_check_conclude(&one->job, &taken.outcome);
    gbx_replay_outcome_free(&taken.outcome);
    return status;
}

static gbx_status take_first(flow *f) {
    asked *one = f->items[f->first];
    f->first = (f->first + 1) % MAX_ASKED;
    --f->count;
    gbx_check_kernels kernels;
    gbx_status status = take_kernels(f, one, &kernels);
    if (!status)
        status = take_references(f, one);
    if (!status) {
        kernels.differs &= !one->job.result.is_damaged;
        status = gbx_check_report_add(f->report, &one->job.task, &one->job.result, &kernels);
    }
    end_asked(one);
    report_progress(f, GBX_CHECK_GOES_ON, f->report->count + f->report->left_out);
    return status;
}

static gbx_status finish(flow *f) {
    while (f->count > 0)
        GBX_TRY(take_first(f));
    return NULL;
}

static gbx_status check_all(flow *f) {
    uint64_t count = gbx_task_graph_count(f->graph);
    report_progress(f, GBX_CHECK_STARTS, count);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t task = gbx_task_graph_at(f->graph, i)->task;
        bool is_chosen;
        GBX_TRY(match(f, task, &is_chosen));
        if (f->count == MAX_ASKED)
            GBX_TRY(take_first(f));
        if (is_chosen)
            GBX_TRY(ask(f, task));
        else
            ++f->report->left_out;
    }
    GBX_TRY(finish(f));
    return gbx_check_acquit(&(gbx_check_trial){.session = &f->session,
                                               .references = f->references,
                                               .filter = f->request->filter,
                                               .graph = f->graph,
                                               .report = f->report});
}

/* --- opening --- */

/* Adds advice to the sentence about a scene that cannot be used. */
static gbx_status open_references(flow *f) {
    static const char *const advice[] = {
        [GBX_SCENE_UNKNOWN] = "name it with --scene DIR",
        [GBX_SCENE_FOREIGN] = "if you trust it, name it with --scene",
        [GBX_SCENE_OTHER] = "name another with --scene DIR",
        [GBX_SCENE_CHANGED] = "run again, or name an unchanged copy with --scene DIR",
        [GBX_SCENE_BROKEN] = NULL};
    gbx_scene_trouble trouble;
    gbx_status status =
        gbx_references_open(f->request->scene, f->request->directory, f->session.kept,
                            gbx_reader_run(f->report->reader), &f->references, &trouble);
    if (!status || !advice[trouble])
        return status;
    gbx_status advised =
        gbx_fail(gbx_status_code(status), "%s; %s", gbx_status_message(status), advice[trouble]);
    gbx_status_free(status);
    return advised;
}

/* Without references, no task has one. */
static gbx_status need_references(flow *f) {
    gbx_check_report *report = f->report;
    gbx_status status = open_references(f);
    if (status && (!f->request->may_lack_scene || gbx_status_code(status) == GBX_EXHAUSTED))
        return status;
    char **kept = status ? &report->why_no_scene : &report->scene;
    *kept = strdup(status ? gbx_status_message(status) : f->references->scene->path);
    gbx_status_free(status);
    if (!f->references)
        f->references = calloc(1, sizeof *f->references);
    return *kept && f->references ? NULL : gbx_fail_memory("checking %s", f->request->directory);
}

static gbx_status open_all(flow *f) {
    const gbx_check_request *request = f->request;
    if (request->filter->numbers.count > 0 &&
        !(gbx_reader_get_origin(f->report->reader)->known & GBX_KNOWN_TASK_SEQ))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "--task: this dump does not number its tasks; give an id such as 0x11");
    const gbx_replay_session_config config = {.entries = request->entries,
                                              .directory = request->directory,
                                              .is_trusted = request->is_trusted,
                                              .timeout_ms = request->timeout_ms,
                                              .dispatch = -1,
                                              .runs = 1,
                                              .jobs = request->jobs,
                                              .is_silent = request->is_silent};
    GBX_TRY(gbx_replay_session_open(&config, &f->session));
    GBX_TRY(gbx_task_graph_create(f->report->reader, &f->graph));
    report_progress(f, GBX_CHECK_COMPILES, 0);
    f->report->bad_edges = gbx_task_graph_bad_edges(f->graph);
    return need_references(f);
}

gbx_status gbx_check_dump(const gbx_check_request *request, gbx_check_report *out_report) {
    flow *f = calloc(1, sizeof *f); /* too large for a stack */
    *out_report = (gbx_check_report){.reader = gbx_entries_reader(request->entries),
                                     .keeps_all = request->keeps_all,
                                     .keeps_notes = request->keeps_all || request->keeps_notes};
    if (!f)
        return gbx_fail_memory("checking %s", request->directory);
    f->request = request;
    f->report = out_report;
    gbx_status status = open_all(f);
    if (!status)
        status = check_all(f);
    for (; f->count > 0; --f->count, f->first = (f->first + 1) % MAX_ASKED)
        end_asked(f->items[f->first]);
    for (uint32_t i = 0; i < MAX_ASKED; ++i)
        free(f->items[i]);
    gbx_replay_session_close(&f->session);
    gbx_references_close(f->references);
    gbx_task_graph_destroy(f->graph);
    free(f);
    return status;
}
