#include "replay/check/check_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "analysis/graph.h"
#include "base/memory.h"
#include "replay/internal.h"
#include "replay/session.h"

enum { RECENT_REASONS = 16 };
static const char doing[] = "reporting on the dump's tasks";

/* --- tasks --- */

/* Thousands of tasks share a few reasons: only the last few are searched. */
static gbx_status keep_reason(gbx_check_report *report, const char *text, const char **out_reason) {
    uint64_t count = report->reason_count;
    for (uint64_t i = 0; i < RECENT_REASONS && i < count; ++i)
        if (strcmp(report->reasons[count - 1 - i], text) == 0) {
            *out_reason = report->reasons[count - 1 - i];
            return NULL;
        }
    GBX_TRY(gbx_array_reserve(&report->reasons, &report->reason_capacity, count + 1, doing));
    char *copy = strdup(text);
    if (!copy)
        return gbx_fail_memory("%s", doing);
    report->reasons[report->reason_count++] = copy;
    *out_reason = copy;
    return NULL;
}

static gbx_status fill_line(gbx_check_report *report, uint64_t task, const gbx_check_result *result,
                            gbx_check_line *line) {
    gbx_record_task record;
    bool is_found = false;
    *line = (gbx_check_line){.task = task,
                             .func_ids = {GBX_NO_KERNEL, GBX_NO_KERNEL, GBX_NO_KERNEL},
                             .verdict = result->verdict,
                             .worst_output = result->worst_output,
                             .missing_outputs = result->missing_outputs,
                             .stray_bytes = result->stray_bytes,
                             .stray_address = result->stray_address,
                             .stray_is_unknown = result->stray_is_unknown,
                             .accused = -1,
                             .replayed = -1};
    GBX_TRY(gbx_reader_find_task(report->reader, task, &record, &is_found));
    if (is_found) {
        line->task_id = record.task_id;
        memcpy(line->func_ids, record.func_ids, sizeof line->func_ids);
    }
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const gbx_comparison *comparison = &result->outputs[i].comparison;
        line->not_written += result->outputs[i].not_written;
        line->wrong_outputs += comparison->mismatches > 0;
        line->max_abs = comparison->max_abs > line->max_abs ? comparison->max_abs : line->max_abs;
        line->max_rel = comparison->max_rel > line->max_rel ? comparison->max_rel : line->max_rel;
    }
    if (result->verdict == GBX_CHECK_NOT_CHECKED)
        GBX_TRY(keep_reason(report, result->reason, &line->reason));
    bool is_listed = result->verdict == GBX_CHECK_INTRODUCED &&
                     report->verdicts[GBX_CHECK_INTRODUCED] < GBX_CHECK_LINES_MAX;
    if (result->output_count == 0 || (!report->keeps_all && !is_listed))
        return NULL;
    size_t bytes = result->output_count * sizeof *line->outputs;
    line->outputs = malloc(bytes);
    if (!line->outputs)
        return gbx_fail_memory("%s", doing);
    memcpy(line->outputs, result->outputs, bytes);
    line->output_count = result->output_count;
    return NULL;
}

gbx_status gbx_check_report_add(gbx_check_report *report, uint64_t task,
                                const gbx_check_result *result) {
    GBX_TRY(gbx_array_reserve(&report->lines, &report->capacity, report->count + 1, doing));
    GBX_TRY(fill_line(report, task, result, &report->lines[report->count]));
    ++report->count;
    ++report->verdicts[result->verdict];
    return NULL;
}

void gbx_check_report_free(gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        free(report->lines[i].outputs);
    for (uint64_t i = 0; i < report->reason_count; ++i)
        free(report->reasons[i]);
    for (uint64_t i = 0; i < report->accused_count; ++i)
        gbx_replay_result_free(&report->accused[i]);
    free(report->accused);
    free(report->lines);
    free(report->reasons);
    free(report->scene);
}

const gbx_check_line *gbx_check_report_first(const gbx_check_report *report) {
    for (uint64_t i = 0; i < report->count; ++i)
        if (report->lines[i].verdict == GBX_CHECK_INTRODUCED)
            return &report->lines[i];
    return NULL;
}

/* --- groups --- */

typedef const gbx_check_line *line_pointer;

static int compare_places(line_pointer a, line_pointer b) {
    return a < b ? -1 : a > b;
}

/* 0 for tasks of one group. */
static int compare_groups(line_pointer a, line_pointer b, bool is_unchecked) {
    for (size_t i = 0; i < GBX_SUBTASK_COUNT; ++i)
        if (a->func_ids[i] != b->func_ids[i])
            return a->func_ids[i] < b->func_ids[i] ? -1 : 1;
    return is_unchecked && a->reason != b->reason ? strcmp(a->reason, b->reason) : 0;
}

static int by_group(const void *a, const void *b, void *is_unchecked) {
    const line_pointer left = *(const line_pointer *)a;
    const line_pointer right = *(const line_pointer *)b;
    int order = compare_groups(left, right, *(const bool *)is_unchecked);
    return order ? order : compare_places(left, right);
}

static int by_first(const void *a, const void *b) {
    return compare_places(((const gbx_check_group *)a)->examples[0],
                          ((const gbx_check_group *)b)->examples[0]);
}

static void add_line(gbx_check_group *group, line_pointer line) {
    if (group->tasks < GBX_CHECK_EXAMPLES)
        group->examples[group->tasks] = line;
    ++group->tasks;
    ++group->verdicts[line->verdict];
    group->not_written += line->not_written;
    group->not_written_tasks += line->not_written > 0;
    group->stray_tasks += line->stray_bytes > 0;
    group->stray_unknown_tasks += line->stray_is_unknown;
    if (line->not_written > 0 && !group->first_not_written)
        group->first_not_written = line;
    if (line->stray_bytes > 0 && !group->first_stray)
        group->first_stray = line;
    group->max_abs = line->max_abs > group->max_abs ? line->max_abs : group->max_abs;
    group->max_rel = line->max_rel > group->max_rel ? line->max_rel : group->max_rel;
}

gbx_status gbx_check_report_group(const gbx_check_report *report, bool is_unchecked,
                                  gbx_check_group **out_groups, size_t *out_count) {
    line_pointer *lines = malloc((report->count + 1) * sizeof(line_pointer));
    gbx_check_group *groups = calloc(report->count + 1, sizeof *groups);
    uint64_t count = 0;
    *out_count = 0;
    if (!lines || !groups) {
        free(lines);
        free(groups);
        return gbx_fail_memory("%s", doing);
    }
    for (uint64_t i = 0; i < report->count; ++i)
        if (!is_unchecked || report->lines[i].verdict == GBX_CHECK_NOT_CHECKED)
            lines[count++] = &report->lines[i];
    qsort_r(lines, count, sizeof(line_pointer), by_group, &is_unchecked);
    for (uint64_t i = 0; i < count; ++i) {
        *out_count += i == 0 || compare_groups(lines[i - 1], lines[i], is_unchecked) != 0;
        add_line(&groups[*out_count - 1], lines[i]);
    }
    qsort(groups, *out_count, sizeof *groups, by_first);
    free(lines);
    *out_groups = groups;
    return NULL;
}

/* --- checking a dump --- */

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
    asked *items[MAX_ASKED]; /* in order: a ring */
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

static void free_asked(asked *one) {
    gbx_check_job_free(&one->job);
    gbx_status_free(one->refusal);
    free(one);
}

/* Kernels that cannot be called do not keep references from being compared. */
static gbx_status ask_kernels(flow *f, asked *one) {
    if (one->job.task.dispatch_count == 0 || !one->job.task.did_complete)
        return NULL;
    one->refusal = gbx_replay_session_job(&f->session, &one->job.task, &one->kernels);
    if (!one->refusal)
        one->refusal = gbx_replay_submit(f->session.engine, &one->kernels.request);
    one->asks_kernels = !one->refusal;
    return NULL;
}

static gbx_status ask(flow *f, uint64_t task) {
    asked *one = malloc(sizeof *one);
    if (!one)
        return gbx_fail_memory("checking task %" PRIu64, task);
    gbx_check_job_init(&one->job);
    one->asks_kernels = false;
    one->refusal = NULL;
    f->items[(f->first + f->count++) % MAX_ASKED] = one;
    GBX_TRY(gbx_check_prepare(&one->job, f->request->entries, task, f->references->items,
                              f->references->count));
    GBX_TRY(ask_kernels(f, one));
    if (!one->job.is_asked)
        return NULL;
    gbx_status status = gbx_replay_submit(f->session.engine, &one->job.request);
    return status ? gbx_check_refuse(&one->job, status) : NULL;
}

/* A reference that hung would hang again in each task of its kernel. */
static void leave_out_hung(const flow *f, uint32_t func_id) {
    for (size_t i = 0; func_id != GBX_NO_KERNEL && i < f->references->count; ++i)
        if (f->references->items[i].func_id == func_id) {
            f->references->items[i].object = NULL;
            f->references->items[i].why_not = GBX_HUNG_BEFORE;
        }
}

/* Keeps the result of the kernels if it accuses them. */
static gbx_status take_kernels(flow *f, asked *one, gbx_check_line *line) {
    gbx_replay_taken taken = {0};
    bool is_there;
    gbx_replay_result result = {0};
    if (one->asks_kernels) {
        GBX_TRY(gbx_replay_take(f->session.engine, true, &taken, &is_there));
        if (taken.status)
            one->refusal = taken.status;
    }
    if (!one->asks_kernels || one->refusal) {
        gbx_replay_outcome_free(&taken.outcome);
        const char *why = one->refusal ? gbx_status_message(one->refusal)
                                       : "it is incomplete in the dump, or did not complete";
        f->report->not_called++;
        return keep_reason(f->report, why, &line->not_called);
    }
    gbx_status status = gbx_replay_result_make(&one->kernels, &taken.outcome, &result);
    gbx_replay_outcome_free(&taken.outcome);
    line->differs = result.verdict == GBX_REPLAY_DIFFERS;
    line->replayed = (int32_t)result.verdict;
    bool is_accused = result.finding_count > result.note_count || result.fault;
    if (!status && is_accused) {
        status = gbx_array_reserve(&f->report->accused, &f->report->accused_capacity,
                                   f->report->accused_count + 1, doing);
        if (!status) {
            line->accused = (int64_t)f->report->accused_count;
            f->report->accused[f->report->accused_count++] = result;
            return NULL;
        }
    }
    gbx_replay_result_free(&result);
    return status;
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
    leave_out_hung(f, one->job.result.hung_func_id);
    return status;
}

static gbx_status take_first(flow *f) {
    asked *one = f->items[f->first];
    f->first = (f->first + 1) % MAX_ASKED;
    --f->count;
    gbx_check_line kernels = {.accused = -1, .replayed = -1};
    gbx_status status = take_kernels(f, one, &kernels);
    if (!status)
        status = take_references(f, one);
    if (!status)
        status = gbx_check_report_add(f->report, one->job.task.task, &one->job.result);
    if (!status) {
        gbx_check_line *line = &f->report->lines[f->report->count - 1];
        line->accused = kernels.accused;
        line->differs = kernels.differs && !one->job.result.is_damaged;
        f->report->differing += line->differs;
        line->replayed = kernels.replayed;
        line->not_called = kernels.not_called;
    }
    free_asked(one);
    report_progress(f, GBX_CHECK_GOES_ON, f->report->count + f->report->left_out);
    return status;
}

static gbx_status finish(flow *f) {
    while (f->count > 0)
        GBX_TRY(take_first(f));
    return NULL;
}

/* --- victims --- */

/* Whether a task's stray writes hit an output of another. */
static bool hits(const gbx_replay_result *result, const gbx_replay_task *task) {
    for (uint32_t i = 0; i < result->range_count; ++i) {
        const gbx_tensor written = {.data = result->ranges[i].address,
                                    .dtype = GBX_UINT8,
                                    .ndims = 1,
                                    .shape = {(int64_t)result->ranges[i].bytes},
                                    .strides = {1}};
        for (uint32_t a = 0; a < task->argument_count; ++a)
            if (task->arguments[a].is_tensor && task->arguments[a].role != GBX_ROLE_INPUT &&
                gbx_tensor_overlaps(&task->arguments[a].tensor, &written))
                return true;
    }
    return false;
}

/* The task whose stray writes hit an output; NULL if no replay shows one. */
static const gbx_replay_result *find_guilty(const gbx_check_report *report,
                                            const gbx_replay_task *task) {
    for (uint64_t i = 0; i < report->accused_count; ++i)
        if (report->accused[i].task != task->task && hits(&report->accused[i], task))
            return &report->accused[i];
    return NULL;
}

static gbx_status acquit(gbx_check_report *report, gbx_check_line *line,
                         const gbx_replay_result *guilty) {
    char text[GBX_REPLAY_TITLE_BYTES + 128];
    snprintf(text, sizeof text, "%s wrote into its output", guilty->title);
    --report->verdicts[line->verdict];
    line->verdict = GBX_CHECK_OVERWRITTEN;
    ++report->verdicts[line->verdict];
    return keep_reason(report, text, &line->reason);
}

/* Asks whether the kernel of a wrong task leaves right values when it is called again. */
static gbx_status ask_again(flow *f, gbx_check_line *line) {
    gbx_replay_task task;
    gbx_replay_job job;
    gbx_replay_payloads payloads = {0};
    gbx_replay_result result = {0};
    gbx_check_result checked = {.verdict = GBX_CHECK_NOT_CHECKED};
    GBX_TRY(gbx_replay_task_read(f->request->entries, line->task, &task));
    const gbx_replay_result *guilty = find_guilty(f->report, &task);
    gbx_status status = guilty ? gbx_replay_session_job(&f->session, &task, &job) : NULL;
    if (!status && guilty)
        status = gbx_replay_execute(&job, &payloads, &result);
    if (!status && guilty && !result.fault)
        status = gbx_check_payloads(f->session.engine, f->request->entries, &task,
                                    (const void *const *)payloads.kept[GBX_KEPT_FIRST],
                                    f->references->items, f->references->count, &checked);
    if (!status && checked.verdict == GBX_CHECK_RIGHT)
        status = acquit(f->report, line, guilty);
    gbx_replay_payloads_free(&payloads);
    gbx_replay_result_free(&result);
    gbx_replay_task_free(&task);
    return status;
}

/* A task whose kernel leaves other values than the dump has may be the victim of another. */
static gbx_status look_for_victims(flow *f) {
    for (uint64_t i = 0; i < f->report->count; ++i)
        if (f->report->lines[i].verdict == GBX_CHECK_INTRODUCED && f->report->lines[i].differs)
            GBX_TRY(ask_again(f, &f->report->lines[i]));
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
    return look_for_victims(f);
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
                                              .jobs = request->jobs};
    GBX_TRY(gbx_replay_session_open(&config, &f->session));
    GBX_TRY(gbx_task_graph_create(f->report->reader, &f->graph));
    report_progress(f, GBX_CHECK_COMPILES, 0);
    GBX_TRY(open_references(f));
    f->report->bad_edges = gbx_task_graph_bad_edges(f->graph);
    f->report->scene = strdup(f->references->scene->path);
    if (!f->report->scene)
        return gbx_fail_memory("checking %s", request->directory);
    return NULL;
}

gbx_status gbx_check_dump(const gbx_check_request *request, gbx_check_report *out_report) {
    flow *f = calloc(1, sizeof *f); /* too large for a stack */
    *out_report = (gbx_check_report){.reader = gbx_entries_reader(request->entries),
                                     .keeps_all = request->keeps_all};
    if (!f)
        return gbx_fail_memory("checking %s", request->directory);
    f->request = request;
    f->report = out_report;
    gbx_status status = open_all(f);
    if (!status)
        status = check_all(f);
    for (; f->count > 0; --f->count, f->first = (f->first + 1) % MAX_ASKED)
        free_asked(f->items[f->first]);
    gbx_replay_session_close(&f->session);
    gbx_references_close(f->references);
    gbx_task_graph_destroy(f->graph);
    free(f);
    return status;
}
