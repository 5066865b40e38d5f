#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/open_dump.h"
#include "cli/progress.h"
#include "cli/replay_json.h"
#include "cli/replay_options.h"
#include "cli/replay_report.h"
#include "cli/replay_save.h"
#include "cli/replay_swap.h"
#include "cli/replay_text.h"
#include "replay/replay_gdb.h"
#include "replay/trust/replay_kernels.h"

/* A dump that is open, and what its tasks run with. */
typedef struct session {
    const gbx_replay_options *options;
    gbx_opened_dump dump;
    gbx_kept_run *kept; /* NULL: there is no run.json */
    gbx_replay_kernels *kernels;
    gbx_replay_engine *engine;
} session;

/* --- opening --- */

static gbx_status read_kept(session *s) {
    gbx_status status = gbx_kept_run_read(s->dump.directory, &s->kept);
    if (status && gbx_status_code(status) == GBX_NOT_FOUND) {
        gbx_status_free(status);
        return NULL;
    }
    return status;
}

static gbx_status open_session(const gbx_replay_options *options, session *s) {
    *s = (session){.options = options};
    GBX_TRY(gbx_opened_dump_open(options->dump, GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH, &s->dump));
    GBX_TRY(read_kept(s));
    GBX_TRY(gbx_replay_kernels_create(s->dump.directory, s->kept, options->is_trusted,
                                      &options->kernels, &s->kernels));
    gbx_replay_engine_config config = {.timeout_ms = options->timeout_ms,
                                       .chip_blocks = s->kept ? s->kept->blocks : 0,
                                       .gm_bytes = s->kept ? s->kept->gm_bytes : 0};
    return gbx_replay_engine_open(&config, &s->engine);
}

static void close_session(session *s) {
    gbx_replay_engine_close(s->engine);
    gbx_replay_kernels_destroy(s->kernels);
    gbx_kept_run_free(s->kept);
    gbx_opened_dump_close(&s->dump);
}

/* How the run ended, where it did not end well. */
static const char *run_end(const session *s) {
    const gbx_reader *reader = s->dump.reader;
    return gbx_reader_has_ended_well(reader) ? "" : gbx_reader_end_text(reader);
}

/* --- which tasks --- */

/* The first task from `from` on; UINT64_MAX where there is none. */
static gbx_status next_task(session *s, uint64_t from, uint64_t *out_task) {
    gbx_reader *reader = s->dump.reader;
    uint64_t position = gbx_reader_find(reader, from);
    const gbx_record *record;
    *out_task = UINT64_MAX;
    if (position >= gbx_reader_count(reader))
        return NULL;
    GBX_TRY(gbx_reader_at(reader, position, &record));
    *out_task = record->task;
    return NULL;
}

static gbx_status find_id(session *s, uint64_t id, uint64_t *out_task) {
    uint64_t found_count = 0;
    for (uint64_t task = 0, from = 0;; from = task + 1) {
        gbx_record_task about;
        bool is_there;
        GBX_TRY(next_task(s, from, &task));
        if (task == UINT64_MAX)
            break;
        GBX_TRY(gbx_reader_find_task(s->dump.reader, task, &about, &is_there));
        if (is_there && about.task_id == id && found_count++ == 0)
            *out_task = task;
    }
    if (found_count == 1)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE, "--task %s: %s of this id; glassbox view lists the tasks",
                    s->options->task,
                    found_count ? "the dump has several tasks" : "the dump has no task");
}

/* --- one task --- */

static gbx_status check_dispatch(const gbx_replay_options *options, const gbx_replay_task *task) {
    if (options->dispatch < (int64_t)task->dispatch_count)
        return NULL;
    return gbx_fail(GBX_OUT_OF_RANGE,
                    "--dispatch %" PRId64 ": the last one of this task is %" PRIu32,
                    options->dispatch, task->dispatch_count - 1);
}

static gbx_status make_job(session *s, const gbx_replay_task *task, gbx_replay_job *out_job) {
    *out_job = (gbx_replay_job){.engine = s->engine,
                                .request = {.entries = s->dump.entries,
                                            .task = task,
                                            .dispatch = s->options->dispatch,
                                            .poison = GBX_REPLAY_POISON},
                                .run_end = run_end(s),
                                .runs = s->options->runs};
    GBX_TRY(check_dispatch(s->options, task));
    return gbx_replay_kernels_find(s->kernels, task, out_job->request.objects);
}

static gbx_status show_replay(session *s, const gbx_replay_job *job, int *out_exit_code) {
    gbx_replay_payloads payloads;
    gbx_replay_result result;
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "replaying");
    gbx_status status = gbx_replay_execute(job, &payloads, &result);
    gbx_progress_stop(progress);
    gbx_replay_payloads_free(&payloads);
    if (!status)
        status = s->options->as_json ? gbx_replay_json_print(&result, 1, false)
                                     : gbx_replay_report_print(&result, run_end(s));
    *out_exit_code = gbx_replay_exit_code(&result);
    gbx_replay_result_free(&result);
    return status;
}

static gbx_status show_swap(session *s, const gbx_replay_job *job, int *out_exit_code) {
    gbx_replay_swap swap;
    char files[1024] = "";
    for (size_t i = 0; i < s->options->kernels.count; ++i) {
        size_t length = strlen(files);
        snprintf(files + length, sizeof files - length, "%s%s", i ? ", " : "",
                 s->options->kernels.items[i]);
    }
    const gbx_swap_scene scene = {s->dump.directory, s->kept, s->options->is_trusted};
    gbx_status status = gbx_replay_swap_run(job, &scene, &swap);
    if (status && gbx_status_code(status) == GBX_BAD_KERNEL)
        status = gbx_status_annotate(status, "--kernel %s", files);
    if (!status)
        status = s->options->as_json ? gbx_replay_swap_print_json(&swap)
                                     : gbx_replay_swap_print(&swap, files, run_end(s));
    *out_exit_code = gbx_replay_swap_exit_code(&swap);
    gbx_replay_swap_free(&swap);
    return status;
}

static gbx_status show_task(session *s, const gbx_replay_task *task, int *out_exit_code) {
    gbx_replay_job job;
    if (s->options->save) {
        GBX_TRY(check_dispatch(s->options, task));
        const gbx_replay_saving saving = {s->engine, s->dump.entries,  task, s->options->dispatch,
                                          s->kept,   s->dump.directory};
        return gbx_replay_save(&saving, s->options->save);
    }
    GBX_TRY(make_job(s, task, &job));
    if (s->options->has_gdb)
        return gbx_replay_gdb(&job, s->kept, out_exit_code);
    if (s->options->kernels.count > 0)
        return show_swap(s, &job, out_exit_code);
    return show_replay(s, &job, out_exit_code);
}

static gbx_status replay_one(session *s, int *out_exit_code) {
    gbx_replay_task task;
    uint64_t number = s->options->first;
    if (s->options->is_id)
        GBX_TRY(find_id(s, s->options->first, &number));
    GBX_TRY(gbx_replay_task_read(s->dump.entries, number, &task));
    gbx_status status = show_task(s, &task, out_exit_code);
    gbx_replay_task_free(&task);
    return status;
}

/* --- several tasks --- */

typedef struct result_list {
    gbx_replay_result *items;
    size_t count;
    size_t capacity;
} result_list;

/* Takes the result over, also where it fails. */
static gbx_status add_result(result_list *list, gbx_replay_result *result) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        gbx_replay_result *grown = realloc(list->items, capacity * sizeof *grown);
        if (!grown) {
            gbx_replay_result_free(result);
            return gbx_fail(GBX_EXHAUSTED, "replaying tasks: the host is out of memory");
        }
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *result;
    return NULL;
}

/* What stops one task does not stop the others. */
static void refuse(session *s, uint64_t number, gbx_status status, gbx_replay_result *result) {
    gbx_record_task about;
    bool is_there = false;
    *result = (gbx_replay_result){
        .verdict = GBX_REPLAY_REFUSED, .task = number, .dispatch = -1, .stray_argument = -1};
    result->refusal = strdup(gbx_status_message(status));
    gbx_status_free(status);
    gbx_status_free(gbx_reader_find_task(s->dump.reader, number, &about, &is_there));
    for (size_t i = 0; is_there && i < GBX_SUBTASK_COUNT; ++i) {
        const gbx_run_kernel *kernel =
            gbx_run_info_kernel(gbx_reader_run(s->dump.reader), about.func_ids[i]);
        if (kernel)
            gbx_replay_result_name(result, kernel->name);
    }
    result->task_id = is_there ? about.task_id : 0;
}

static gbx_status try_one(session *s, uint64_t number, gbx_replay_result *result) {
    gbx_replay_task task;
    gbx_replay_payloads payloads;
    gbx_replay_job job;
    GBX_TRY(gbx_replay_task_read(s->dump.entries, number, &task));
    gbx_status status = make_job(s, &task, &job);
    if (!status) {
        status = gbx_replay_execute(&job, &payloads, result);
        gbx_replay_payloads_free(&payloads);
    }
    gbx_replay_task_free(&task);
    return status;
}

static void execute_one(session *s, uint64_t number, gbx_replay_result *result) {
    *result = (gbx_replay_result){0};
    gbx_status status = try_one(s, number, result);
    if (status) {
        gbx_replay_result_free(result);
        refuse(s, number, status, result);
    }
}

static gbx_status execute_all(session *s, result_list *list, gbx_progress *progress) {
    const gbx_replay_options *options = s->options;
    for (uint64_t number, from = options->first; from <= options->last; from = number + 1) {
        GBX_TRY(next_task(s, from, &number));
        if (number > options->last)
            break;
        gbx_replay_result result;
        execute_one(s, number, &result);
        GBX_TRY(add_result(list, &result));
        gbx_progress_tasks(progress, list->count);
    }
    if (list->count == 0)
        return gbx_fail(GBX_OUT_OF_RANGE, "--task %s: the dump has none of these tasks",
                        options->task);
    return NULL;
}

/* The most severe of all: 2, then 3, then 1. */
static int exit_code_of(const result_list *list) {
    int worst = GBX_EXIT_OK;
    for (size_t i = 0; i < list->count; ++i) {
        int code = gbx_replay_exit_code(&list->items[i]);
        if (worst != GBX_EXIT_USAGE && (code == GBX_EXIT_USAGE || code > worst))
            worst = code;
    }
    return worst;
}

static gbx_status replay_all(session *s, int *out_exit_code) {
    result_list list = {0};
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "replaying");
    gbx_status status = execute_all(s, &list, progress);
    gbx_progress_stop(progress);
    if (!status)
        status = s->options->as_json
                     ? gbx_replay_json_print(list.items, list.count, true)
                     : gbx_replay_report_print_all(list.items, list.count, run_end(s));
    *out_exit_code = exit_code_of(&list);
    for (size_t i = 0; i < list.count; ++i)
        gbx_replay_result_free(&list.items[i]);
    free(list.items);
    return status;
}

/* --- the command --- */

static gbx_status replay(const gbx_replay_options *options, int *out_exit_code) {
    session s;
    gbx_status status = open_session(options, &s);
    if (!status)
        status = options->is_list ? replay_all(&s, out_exit_code) : replay_one(&s, out_exit_code);
    close_session(&s);
    return status;
}

int gbx_command_replay(int argc, char **argv) {
    gbx_replay_options options;
    int exit_code = GBX_EXIT_OK;
    setlocale(LC_CTYPE, "");
    gbx_replay_options_parse(argc, argv, &options);
    gbx_status status = replay(&options, &exit_code);
    if (status) {
        gbx_command_fail("replay", status);
        exit_code = gbx_code_exit(gbx_status_code(status));
    }
    gbx_status_free(status);
    return exit_code;
}
