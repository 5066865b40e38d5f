#include "replay/check/check_report.h"

#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "analysis/graph.h"
#include "base/memory.h"
#include "replay/internal.h"

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
                             .stray_is_unknown = result->stray_is_unknown};
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

enum {
    TASKS_OF_ONE = 32, /* for fewer tasks, starting more processes does not pay */
    PLACES_MAX = 3
};

/* A larger task is checked by itself, so that only one is in memory at a time. */
#define LARGE_BYTES (UINT64_C(64) << 20)

/* An engine, and the task that is being checked on it. */
typedef struct place {
    gbx_replay_engine *engine;
    gbx_check_job *job;
    uint64_t task;
    gbx_check_result result;
} place;

/* Checks a few tasks at a time: while references run, other tasks are compared. */
typedef struct flow {
    const gbx_check_request *request;
    gbx_kept_run *kept; /* NULL where the dump has no run.json */
    gbx_task_graph *graph;
    gbx_references *references;
    gbx_check_report *report;
    place places[PLACES_MAX];
    size_t place_count;
    size_t first;  /* the place of the oldest active task */
    size_t active; /* how many tasks are active, in consecutive places */
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

static gbx_status end_first(flow *f) {
    place *p = &f->places[f->first];
    f->first = (f->first + 1) % f->place_count;
    --f->active;
    GBX_TRY(gbx_check_end(p->job));
    if (p->result.hung_func_id != GBX_NO_KERNEL) {
        /* A reference that hung would hang again in each task of its kernel. */
        for (size_t i = 0; i < f->references->count; ++i)
            if (f->references->items[i].func_id == p->result.hung_func_id) {
                f->references->items[i].object = NULL;
                f->references->items[i].why_not = "hung in an earlier task and was not run again";
            }
    }
    GBX_TRY(gbx_check_report_add(f->report, p->task, &p->result));
    report_progress(f, GBX_CHECK_GOES_ON, f->report->count + f->report->left_out);
    return NULL;
}

static gbx_status finish(flow *f) {
    while (f->active > 0)
        GBX_TRY(end_first(f));
    return NULL;
}

/* If an earlier task fails, too, its failure is returned. */
static gbx_status begin(flow *f, uint64_t task) {
    if (f->active == f->place_count)
        GBX_TRY(end_first(f));
    size_t number = (f->first + f->active) % f->place_count;
    place *p = &f->places[number];
    p->task = task;
    gbx_status status = gbx_check_begin(p->engine, f->request->entries, task, f->references->items,
                                        f->references->count, &p->result, &p->job);
    if (status)
        return gbx_status_first(finish(f), status);
    ++f->active;
    if (gbx_check_job_bytes(p->job) <= LARGE_BYTES)
        return NULL;
    /* The engine keeps the memory until its next use, so it is used next. */
    GBX_TRY(finish(f));
    f->first = number;
    return NULL;
}

static gbx_status check_all(flow *f) {
    uint64_t count = gbx_task_graph_count(f->graph);
    report_progress(f, GBX_CHECK_STARTS, count);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t task = gbx_task_graph_at(f->graph, i)->task;
        bool is_chosen;
        GBX_TRY(match(f, task, &is_chosen));
        if (is_chosen)
            GBX_TRY(begin(f, task));
        else
            ++f->report->left_out;
    }
    return finish(f);
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
        gbx_references_open(f->request->scene, f->request->directory, f->kept,
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
    GBX_TRY(gbx_replay_read_kept(request->directory, &f->kept));
    GBX_TRY(gbx_task_graph_create(f->report->reader, &f->graph));
    report_progress(f, GBX_CHECK_COMPILES, 0);
    GBX_TRY(open_references(f));
    f->report->bad_edges = gbx_task_graph_bad_edges(f->graph);
    f->report->scene = strdup(f->references->scene->path);
    if (!f->report->scene)
        return gbx_fail_memory("checking %s", request->directory);
    gbx_replay_engine_config config = {.timeout_ms = f->request->timeout_ms,
                                       .chip_blocks = f->kept ? f->kept->blocks : 0,
                                       .gm_bytes = f->kept ? f->kept->gm_bytes : 0};
    size_t wanted = gbx_task_graph_count(f->graph) < TASKS_OF_ONE ? 1 : PLACES_MAX;
    for (; f->place_count < wanted; ++f->place_count)
        GBX_TRY(gbx_replay_engine_open(&config, &f->places[f->place_count].engine));
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
    for (; f->active > 0; --f->active) {
        gbx_status_free(gbx_check_end(f->places[f->first].job));
        f->first = (f->first + 1) % f->place_count;
    }
    for (size_t i = 0; i < f->place_count; ++i)
        gbx_replay_engine_close(f->places[i].engine);
    gbx_references_close(f->references);
    gbx_task_graph_destroy(f->graph);
    gbx_kept_run_free(f->kept);
    free(f);
    return status;
}
