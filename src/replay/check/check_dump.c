#include "replay/check/check_dump.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/orchestration.h>

#include "analysis/graph.h"
#include "base/memory.h"
#include "replay/internal.h"

enum {
    TASKS_OF_ONE = 32, /* fewer: to start more processes takes longer than it saves */
    PLACES_MAX = 3
};

/* A task with more than this is checked alone, so that memory holds one such at a time. */
#define LARGE_BYTES (UINT64_C(64) << 20)

/* An engine, and the task that is being checked on it. */
typedef struct place {
    gbx_replay_engine *engine;
    gbx_check_job *job;
    uint64_t task;
    gbx_check_result result;
} place;

/* Task after task, a few at a time: while references run, others are compared. */
typedef struct flow {
    const gbx_check_request *request;
    gbx_reader *reader;
    gbx_kept_run *kept; /* NULL where the dump has no run.json */
    gbx_graph *graph;
    gbx_references *references;
    gbx_check_report *report;
    place places[PLACES_MAX];
    size_t place_count;
    size_t first;  /* the place of the task that began first, of those that are being checked */
    size_t active; /* how many are, in places that follow each other */
} flow;

/* --- which tasks --- */

static bool is_in(const gbx_task_ranges *ranges, uint64_t value) {
    for (size_t i = 0; i < ranges->count; ++i)
        if (value >= ranges->items[i].first && value <= ranges->items[i].last)
            return true;
    return false;
}

static bool is_named(const gbx_check_filter *filter, const gbx_run_info *run, uint32_t func_id) {
    const gbx_run_kernel *kernel =
        func_id == GBX_NO_KERNEL ? NULL : gbx_run_info_kernel(run, func_id);
    for (size_t i = 0; kernel && i < filter->kernel_count; ++i)
        if (fnmatch(filter->kernels[i], kernel->name, 0) == 0)
            return true;
    return false;
}

/* A task without record has no kernel and no id. */
static gbx_status match(const flow *f, uint64_t task, bool *out_is_chosen) {
    const gbx_check_filter *filter = f->request->filter;
    gbx_record_task record;
    bool is_found = false;
    bool is_any = filter->numbers.count == 0 && filter->ids.count == 0;
    bool is_named_so = filter->kernel_count == 0;
    *out_is_chosen = is_any && is_named_so;
    if (*out_is_chosen)
        return NULL;
    GBX_TRY(gbx_reader_find_task(f->reader, task, &record, &is_found));
    for (size_t i = 0; is_found && i < GBX_SUBTASK_COUNT && !is_named_so; ++i)
        is_named_so = is_named(filter, gbx_reader_run(f->reader), record.func_ids[i]);
    *out_is_chosen = is_named_so && (is_any || is_in(&filter->numbers, task) ||
                                     (is_found && is_in(&filter->ids, record.task_id)));
    return NULL;
}

/* --- one after the other --- */

static void tell(const flow *f, gbx_check_step step, uint64_t count) {
    if (f->request->progress)
        f->request->progress(f->request->progress_context, step, count);
}

static gbx_status end_first(flow *f) {
    place *p = &f->places[f->first];
    f->first = (f->first + 1) % f->place_count;
    --f->active;
    GBX_TRY(gbx_check_end(p->job));
    if (p->result.hung_func_id != GBX_NO_KERNEL) {
        /* A reference that hung would hang again, once for each task of its kernel. */
        for (size_t i = 0; i < f->references->count; ++i)
            if (f->references->items[i].func_id == p->result.hung_func_id) {
                f->references->items[i].object = NULL;
                f->references->items[i].why_not = "hung in an earlier task, and was not run again";
            }
    }
    GBX_TRY(gbx_check_report_add(f->report, p->task, &p->result));
    tell(f, GBX_CHECK_GOES_ON, f->report->count + f->report->left_out);
    return NULL;
}

static gbx_status finish(flow *f) {
    while (f->active > 0)
        GBX_TRY(end_first(f));
    return NULL;
}

/* What is wrong with an earlier task is told in place of what is wrong with this one. */
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
    /* What it took stays with its engine until that is used again: it is the next to be used. */
    GBX_TRY(finish(f));
    f->first = number;
    return NULL;
}

static gbx_status check_all(flow *f) {
    uint64_t count = gbx_graph_count(f->graph);
    tell(f, GBX_CHECK_STARTS, count);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t task = gbx_graph_at(f->graph, i)->task;
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

/* What the user can do about a scene that cannot be used, after the sentence that says so. */
static gbx_status open_references(flow *f) {
    static const char *const advice[] = {
        [GBX_SCENE_UNKNOWN] = "name it with --scene DIR",
        [GBX_SCENE_FOREIGN] = "if you trust it, name it with --scene",
        [GBX_SCENE_OTHER] = "--scene DIR names another",
        [GBX_SCENE_CHANGED] = "run again, or name the scene as it was with --scene DIR",
        [GBX_SCENE_BROKEN] = NULL};
    gbx_scene_trouble trouble;
    gbx_status status = gbx_references_open(f->request->scene, f->request->directory, f->kept,
                                            gbx_reader_run(f->reader), &f->references, &trouble);
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
        !(gbx_reader_get_origin(f->reader)->told & GBX_TOLD_TASK_SEQ))
        return gbx_fail(GBX_INVALID_ARGUMENT,
                        "--task: this dump does not tell the numbers of its tasks; take an id such "
                        "as 0x11");
    GBX_TRY(gbx_replay_read_kept(request->directory, &f->kept));
    GBX_TRY(gbx_graph_create(f->reader, &f->graph));
    tell(f, GBX_CHECK_COMPILES, 0);
    GBX_TRY(open_references(f));
    f->report->bad_edges = gbx_graph_bad_edges(f->graph);
    f->report->scene = strdup(f->references->scene->path);
    if (!f->report->scene)
        return gbx_fail_memory("checking %s", request->directory);
    gbx_replay_engine_config config = {.timeout_ms = f->request->timeout_ms,
                                       .chip_blocks = f->kept ? f->kept->blocks : 0,
                                       .gm_bytes = f->kept ? f->kept->gm_bytes : 0};
    size_t wanted = gbx_graph_count(f->graph) < TASKS_OF_ONE ? 1 : PLACES_MAX;
    for (; f->place_count < wanted; ++f->place_count)
        GBX_TRY(gbx_replay_engine_open(&config, &f->places[f->place_count].engine));
    return NULL;
}

gbx_status gbx_check_dump(const gbx_check_request *request, gbx_check_report *out_report) {
    flow *f = calloc(1, sizeof *f); /* too large for a stack */
    gbx_reader *reader = gbx_entries_reader(request->entries);
    *out_report = (gbx_check_report){.reader = reader, .keeps_all = request->keeps_all};
    if (!f)
        return gbx_fail_memory("checking %s", request->directory);
    f->request = request;
    f->reader = reader;
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
    gbx_graph_destroy(f->graph);
    gbx_kept_run_free(f->kept);
    free(f);
    return status;
}
