#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/internal.h"
#include "replay/save/save.h"
#include "replay/session.h"
#include "store/dump_path.h"
#include "text/filter_values.h"

typedef struct command_line {
    const char *dump; /* NULL: the latest */
    const char *task; /* as the user wrote it */
    uint64_t first;   /* task_seq; of an id the id itself */
    uint64_t last;
    bool is_id;
    bool is_list;     /* a range or all: a line a task */
    int64_t dispatch; /* -1 for all */
    gbx_replay_kernel_files kernels;
    uint64_t runs;
    const char *save; /* NULL */
    uint32_t timeout_ms;
    bool has_gdb;
    bool is_trusted;
    bool as_json;
} command_line;

/* --- options --- */

enum {
    KEY_TASK = 0x100, /* no letters: the long names alone */
    KEY_DISPATCH,
    KEY_KERNEL,
    KEY_GDB,
    KEY_REPEAT,
    KEY_SAVE,
    KEY_TRUST,
    KEY_TIMEOUT,
    KEY_JSON,
    MAX_RUNS = 1000000,
    DEFAULT_TIMEOUT_MS = 10000
};

static const struct argp_option options[] = {
    {"task", KEY_TASK, "TASK", 0,
     "The task of this number in order of submission, 17, or of this id, 0x11; several: a range, "
     "10..20, or all",
     0},
    {"dispatch", KEY_DISPATCH, "N", 0,
     "One of the task's calls alone, by block, then subtask, 0 first", 0},
    {"kernel", KEY_KERNEL, "FILE", 0,
     "Run this source or shared object instead, and show old and new side by side; of a mix "
     "NAME=FILE, which may be given several times",
     0},
    {"gdb", KEY_GDB, NULL, 0, "Start gdb, stopped at kernel_entry", 0},
    {"repeat", KEY_REPEAT, "N", 0, "Run it N times, and show how long it takes", 0},
    {"save", KEY_SAVE, "DIR", 0, "Write a C program with its data that makes the same call", 0},
    {"trust", KEY_TRUST, NULL, 0,
     "Run the kernels that the dump keeps, though they are not found outside of it", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "Seconds after which a kernel is taken for hung (10)", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON document", 0},
    {0}};

static void parse_task(command_line *line, const char *text, struct argp_state *state) {
    bool is_id = gbx_option_is_id(text);
    line->task = text;
    line->is_id = is_id;
    line->is_list = !is_id && (strcmp(text, "all") == 0 || strstr(text, ".."));
    line->first = 0;
    line->last = UINT64_MAX - 1;
    if (strcmp(text, "all") == 0)
        return;
    bool is_good = gbx_filter_read_range(text, UINT64_MAX - !is_id, &line->first, &line->last);
    if (!is_good || (is_id && line->first != line->last))
        argp_error(state,
                   "--task: \"%s\" is not expected; a number such as 17, an id such as 0x11, a "
                   "range such as 10..20, or all is",
                   text);
}

/* Options that say nothing together. */
static void check_options(struct argp_state *state, const command_line *line) {
    const char *alone = line->has_gdb ? "--gdb" : line->save ? "--save" : NULL;
    if (!line->task)
        argp_error(state, "--task is expected: which task to replay; glassbox view lists them");
    if (line->has_gdb && line->save)
        argp_error(state, "--gdb and --save exclude each other");
    if (alone && (line->as_json || line->runs > 1 || line->is_list))
        argp_error(state, "%s is of one task, and without %s", alone,
                   line->as_json    ? "--json"
                   : line->runs > 1 ? "--repeat"
                                    : "a range");
    if (line->save && line->kernels.count > 0)
        argp_error(state, "--save and --kernel exclude each other: what ran is saved");
    if (line->is_list && (line->dispatch >= 0 || line->kernels.count > 0))
        argp_error(state, "%s is of one task, and --task %s may be several",
                   line->dispatch >= 0 ? "--dispatch" : "--kernel", line->task);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    switch (key) {
    case KEY_TASK:
        parse_task(line, argument, state);
        return 0;
    case KEY_DISPATCH:
        line->dispatch = (int64_t)gbx_option_integer(state, "--dispatch", argument, 0, UINT32_MAX);
        return 0;
    case KEY_KERNEL:
        if (line->kernels.count == GBX_REPLAY_KERNEL_FILES)
            argp_error(state, "--kernel: more than %d are not expected", GBX_REPLAY_KERNEL_FILES);
        line->kernels.items[line->kernels.count++] = argument;
        return 0;
    case KEY_REPEAT:
        line->runs = gbx_option_integer(state, "--repeat", argument, 1, MAX_RUNS);
        return 0;
    case KEY_SAVE:
        line->save = argument;
        return 0;
    case KEY_TIMEOUT:
        line->timeout_ms = gbx_option_seconds(state, "--timeout", argument);
        return 0;
    case KEY_GDB:
        line->has_gdb = true;
        return 0;
    case KEY_TRUST:
        line->is_trusted = true;
        return 0;
    case KEY_JSON:
        line->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        gbx_option_dump(state, &line->dump, argument, "replayed");
        return 0;
    case ARGP_KEY_END:
        check_options(state, line);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .args_doc = "[DUMP]",
    .doc =
        "Runs one task of a dump again, alone, in a process of its own: tensors where they were, "
        "inputs as they were before it was dispatched, outputs poisoned, and compares what it "
        "leaves with what the dump holds, bit for bit. DUMP is a dump directory, its parent or its "
        "tensor_dump (default: " GBX_DUMP_PATH_DEFAULT
        "). Kernels that came with a dump are code: they run without asking only where the same "
        "bytes are in this user's cache of kernels, or come out of the source that they were made "
        "of.\v"
        "exit codes: 0 bit exact, or, with --kernel, right by the reference; 1 it differs; 2 usage, "
        "a task that is not all in the dump, a kernel that does not compile or is not trusted; 3 it "
        "crashed or hung; 4 the disk failed while saving.\n\n"
        "examples:\n  glassbox replay --task 29\n"
        "  glassbox replay outputs/latest --task all\n"
        "  glassbox replay --task 29 \\\n"
        "    --kernel examples/paged_attention/kernels/softmax_prepare.c\n"
        "  glassbox replay --task 29 --repeat 100 --json\n"
        "  glassbox replay --task 29 --save task29",
};

/* --- one task --- */

static gbx_status show_replay(const command_line *line, const gbx_replay_job *job,
                              int *out_exit_code) {
    gbx_replay_payloads payloads;
    gbx_replay_result result;
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "replaying");
    gbx_status status = gbx_replay_execute(job, &payloads, &result);
    gbx_progress_stop(progress);
    gbx_replay_payloads_free(&payloads);
    if (!status)
        status = line->as_json ? gbx_replay_json_print(&result, 1, false)
                               : gbx_replay_report_print(&result, job->run_end);
    *out_exit_code = gbx_replay_exit_code(&result);
    gbx_replay_result_free(&result);
    return status;
}

static gbx_status show_swap(const command_line *line, const gbx_replay_session *s,
                            const gbx_replay_job *job, int *out_exit_code) {
    gbx_replay_swap swap;
    char files[1024] = "";
    for (size_t i = 0; i < line->kernels.count; ++i) {
        size_t length = strlen(files);
        snprintf(files + length, sizeof files - length, "%s%s", i ? ", " : "",
                 line->kernels.items[i]);
    }
    const gbx_swap_scene scene = {s->config.directory, s->kept, s->config.is_trusted};
    gbx_status status = gbx_replay_swap_run(job, &scene, &swap);
    if (status && gbx_status_code(status) == GBX_BAD_KERNEL)
        status = gbx_status_annotate(status, "--kernel %s", files);
    if (!status)
        status = line->as_json ? gbx_replay_swap_print_json(&swap)
                               : gbx_replay_swap_print(&swap, files, job->run_end);
    *out_exit_code = gbx_replay_swap_exit_code(&swap);
    gbx_replay_swap_free(&swap);
    return status;
}

static gbx_status save(const command_line *line, const gbx_replay_session *s,
                       const gbx_replay_task *task) {
    static gbx_saved_kernels kernels; /* too large for a stack */
    char title[GBX_REPLAY_TITLE_BYTES];
    const gbx_replay_saving saving = {s->engine,      s->config.entries, task,
                                      line->dispatch, s->kept,           s->config.directory};
    GBX_TRY(gbx_replay_session_check_dispatch(s, task));
    GBX_TRY(gbx_replay_save(&saving, line->save, &kernels));
    char *word = gbx_shell_quote(line->save, true);
    gbx_terminal_put(gbx_replay_task_title(task, title));
    gbx_terminal_quote(": saved as a program; make -C ", word ? word : line->save, " run\n");
    free(word);
    for (size_t i = 0; i < kernels.count; ++i)
        if (kernels.items[i].why_object[0])
            printf("kernel %s is saved as a shared object: %s\n", kernels.items[i].name,
                   kernels.items[i].why_object);
    return NULL;
}

static gbx_status show_task(const command_line *line, const gbx_replay_session *s,
                            const gbx_replay_task *task, int *out_exit_code) {
    gbx_replay_job job;
    GBX_TRY(gbx_replay_session_job(s, task, &job));
    if (line->has_gdb)
        return gbx_replay_gdb(&job, s->kept, out_exit_code);
    if (line->kernels.count > 0)
        return show_swap(line, s, &job, out_exit_code);
    return show_replay(line, &job, out_exit_code);
}

static gbx_status replay_one(const command_line *line, const gbx_replay_session *s,
                             int *out_exit_code) {
    gbx_replay_task task;
    uint64_t number = line->first;
    if (line->is_id) {
        gbx_status found = gbx_replay_session_find_id(s, line->first, &number);
        if (found)
            return gbx_status_annotate(found, "--task %s", line->task);
    }
    gbx_status status = gbx_replay_task_read(s->config.entries, number, &task);
    if (status)
        return gbx_replay_task_explain(&task, status, true);
    status = line->save ? save(line, s, &task) : show_task(line, s, &task, out_exit_code);
    gbx_replay_task_free(&task);
    return status;
}

/* --- several tasks --- */

static void count_tasks(void *context, uint64_t count) {
    gbx_progress_tasks(context, count);
}

static gbx_status replay_all(const command_line *line, gbx_replay_session *s, int *out_exit_code) {
    gbx_replay_results results;
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "replaying");
    gbx_status status =
        gbx_replay_session_run(s, line->first, line->last, count_tasks, progress, &results);
    gbx_progress_stop(progress);
    if (status && gbx_status_code(status) == GBX_OUT_OF_RANGE)
        status = gbx_status_annotate(status, "--task %s", line->task);
    if (!status)
        status = line->as_json
                     ? gbx_replay_json_print(results.items, results.count, true)
                     : gbx_replay_report_print_all(results.items, results.count, s->run_end);
    for (uint64_t i = 0; i < results.count; ++i) { /* the most severe of all: 2, then 3, then 1 */
        int code = gbx_replay_exit_code(&results.items[i]);
        if (*out_exit_code != GBX_EXIT_USAGE && (code == GBX_EXIT_USAGE || code > *out_exit_code))
            *out_exit_code = code;
    }
    gbx_replay_results_free(&results);
    return status;
}

/* --- the command --- */

static gbx_status replay(const command_line *line, int *out_exit_code) {
    gbx_opened_dump dump;
    gbx_replay_session session;
    GBX_TRY(gbx_opened_dump_open(line->dump, GBX_INDEX_DISPATCHES | GBX_INDEX_GRAPH, &dump));
    const gbx_replay_session_config config = {.entries = dump.entries,
                                              .directory = dump.directory,
                                              .kernels = line->kernels,
                                              .is_trusted = line->is_trusted,
                                              .timeout_ms = line->timeout_ms,
                                              .dispatch = line->dispatch,
                                              .runs = line->runs};
    gbx_status status = gbx_replay_session_open(&config, &session);
    if (!status)
        status = line->is_list ? replay_all(line, &session, out_exit_code)
                               : replay_one(line, &session, out_exit_code);
    gbx_replay_session_close(&session);
    gbx_opened_dump_close(&dump);
    return status;
}

int gbx_command_replay(int argc, char **argv) {
    command_line line = {.dispatch = -1, .runs = 1, .timeout_ms = DEFAULT_TIMEOUT_MS};
    int exit_code = GBX_EXIT_OK;
    gbx_command_parse(&parser, "replay", argc, argv, &line);
    gbx_status status = replay(&line, &exit_code);
    return gbx_command_end("replay", status, exit_code);
}
