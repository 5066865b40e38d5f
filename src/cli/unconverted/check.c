#include <stdio.h>
#include <stdlib.h>

#include "cli/internal.h"
#include "replay/check/check_report.h"
#include "store/dump_path.h"
#include "text/filter_values.h"

enum {
    KEY_SCENE = 0x100, /* no letters: the long names alone */
    KEY_KERNEL,
    KEY_TASK,
    KEY_TIMEOUT,
    KEY_JSON
};

typedef struct command_line {
    const char *dump;
    const char *scene;
    gbx_check_filter filter;
    uint32_t timeout_ms; /* 0: the default */
    bool as_json;
} command_line;

/* --- options --- */

static const struct argp_option options[] = {
    {"scene", KEY_SCENE, "DIR", 0,
     "The scene with the references (default: where the scene was when it ran)", 0},
    {"kernel", KEY_KERNEL, "NAME", 0, "Check tasks with a kernel of this name or glob alone", 0},
    {"task", KEY_TASK, "TASK", 0,
     "Check the task of this number, or range, alone: 17, 10..20; or of this id: 0x11", 0},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "Seconds after which a reference is taken for hung (default 10)", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON document, with every task", 0},
    {0}};

static void add_task(gbx_check_filter *filter, struct argp_state *state, const char *text) {
    gbx_selection_ranges *ranges = gbx_option_is_id(text) ? &filter->ids : &filter->numbers;
    gbx_selection_range range;
    if (!gbx_filter_read_range(text, UINT64_MAX, &range.first, &range.last))
        argp_error(state,
                   "--task: \"%s\" is not expected; a number such as 17, a range such as 10..20, "
                   "or an id such as 0x11 is",
                   text);
    else if (ranges->count == GBX_SELECTION_VALUES_MAX)
        argp_error(state, "--task: more than %d values; take a range", GBX_SELECTION_VALUES_MAX);
    else
        ranges->items[ranges->count++] = range;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        gbx_option_dump(state, &line->dump, argument, "checked");
        return 0;
    case KEY_SCENE:
        line->scene = argument;
        return 0;
    case KEY_KERNEL:
        if (line->filter.kernels.count == GBX_SELECTION_VALUES_MAX)
            argp_error(state, "--kernel: more than %d values; take a glob such as 'soft*'",
                       GBX_SELECTION_VALUES_MAX);
        line->filter.kernels.items[line->filter.kernels.count++] = argument;
        return 0;
    case KEY_TASK:
        add_task(&line->filter, state, argument);
        return 0;
    case KEY_TIMEOUT:
        line->timeout_ms = gbx_option_seconds(state, "--timeout", argument);
        return 0;
    case KEY_JSON:
        line->as_json = true;
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
        "Runs the reference of each task's kernel on the inputs that the dump holds and compares "
        "with the outputs that the dump holds: which task is the first that is wrong for its own "
        "inputs? An error that a task only inherits does not count. DUMP is a dump directory, its "
        "parent or its tensor_dump (default: " GBX_DUMP_PATH_DEFAULT "). --kernel and --task may "
        "be given several times.\v"
        "exit codes: 0 all that was checked is right; 1 some task is wrong, or nothing was "
        "checked; 2 usage, or there is no dump, no scene or no reference that can be used.\n\n"
        "examples:\n  glassbox check\n"
        "  glassbox check outputs/before --scene examples/paged_attention\n"
        "  glassbox check --kernel 'softmax*' --task 0..99\n"
        "  glassbox check --json",
};

static void show_progress(void *context, gbx_check_step step, uint64_t count) {
    char text[80], number[GBX_COUNT_TEXT_BYTES];
    switch (step) {
    case GBX_CHECK_COMPILES:
        gbx_progress_phase(context, NULL, "compiling references");
        break;
    case GBX_CHECK_STARTS:
        snprintf(text, sizeof text, "checking %s tasks", gbx_text_count(count, number));
        gbx_progress_phase(context, NULL, text);
        break;
    case GBX_CHECK_GOES_ON:
        gbx_progress_tasks(context, count);
        break;
    }
}

/* --- the command --- */

static gbx_status print(const command_line *line, const gbx_opened_dump *dump,
                        const gbx_check_report *report) {
    char count[GBX_COUNT_TEXT_BYTES], task[GBX_CHECK_TASK_BYTES];
    const gbx_check_line *first = gbx_check_report_first(report);
    char *replay = NULL;
    gbx_status status = NULL;
    if (report->count == 0 && report->left_out > 0)
        gbx_command_say("check", "none of the %s tasks of %s matches the filters",
                        gbx_text_count(report->left_out, count), dump->directory);
    if (first)
        GBX_TRY(
            gbx_replay_line(dump, line->dump, gbx_check_task_text(report, first, task), &replay));
    if (line->as_json)
        status = gbx_check_print_json(report, dump->directory, replay);
    else if (report->count > 0 || report->left_out == 0)
        status = gbx_check_print_text(report, replay);
    free(replay);
    return status;
}

static gbx_status check(const command_line *line, int *out_exit_code) {
    gbx_opened_dump dump = {0};
    gbx_check_report report = {0};
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "reading the dump");
    gbx_status status =
        gbx_opened_dump_open(line->dump, GBX_INDEX_GRAPH | GBX_INDEX_DISPATCHES, &dump);
    if (!status) {
        const gbx_check_request request = {.entries = dump.entries,
                                           .directory = dump.directory,
                                           .scene = line->scene,
                                           .filter = &line->filter,
                                           .timeout_ms = line->timeout_ms,
                                           .keeps_all = line->as_json,
                                           .progress = show_progress,
                                           .progress_context = progress};
        status = gbx_check_dump(&request, &report);
    }
    gbx_progress_stop(progress);
    if (!status) { /* nothing that was checked is not a success */
        bool is_good =
            report.verdicts[GBX_CHECK_RIGHT] > 0 && report.verdicts[GBX_CHECK_INTRODUCED] == 0;
        *out_exit_code = is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
        status = print(line, &dump, &report);
    }
    gbx_check_report_free(&report);
    gbx_opened_dump_close(&dump);
    return status;
}

int gbx_command_check(int argc, char **argv) {
    static command_line line; /* too large for a stack */
    int exit_code = GBX_EXIT_OK;
    gbx_command_parse(&parser, "check", argc, argv, &line);
    gbx_status status = check(&line, &exit_code);
    return gbx_command_end("check", status, exit_code);
}
