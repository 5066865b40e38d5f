#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/graph.h"
#include "cli/check_filter.h"
#include "cli/check_flow.h"
#include "cli/command.h"
#include "cli/dump_text.h"
#include "cli/open_dump.h"
#include "cli/option_values.h"
#include "store/dump_path.h"

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

/* What one check needs. */
typedef struct session {
    const command_line *line;
    gbx_opened_dump dump;
    gbx_kept_run *kept; /* NULL where the dump has no run.json */
    gbx_graph *graph;
    gbx_references *references;
    gbx_progress *progress;
    gbx_check_report report;
    gbx_check_flow flow;
} session;

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

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (line->dump)
            argp_error(state, "\"%s\" is not expected; one dump is checked at a time", argument);
        line->dump = argument;
        return 0;
    case KEY_SCENE:
        line->scene = argument;
        return 0;
    case KEY_KERNEL:
        gbx_check_filter_add_kernel(&line->filter, state, argument);
        return 0;
    case KEY_TASK:
        gbx_check_filter_add_task(&line->filter, state, argument);
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

/* --- checking --- */

static gbx_status check_task(session *s, uint64_t task) {
    bool is_chosen;
    GBX_TRY(gbx_check_filter_matches(&s->line->filter, s->dump.reader, task, &is_chosen));
    if (!is_chosen) {
        ++s->report.left_out;
        return NULL;
    }
    return gbx_check_flow_add(&s->flow, task);
}

static gbx_status check_all(session *s) {
    uint64_t count = gbx_graph_count(s->graph);
    char text[80], number[GBX_COUNT_TEXT_BYTES];
    snprintf(text, sizeof text, "checking %s tasks", gbx_text_count(count, number));
    gbx_progress_phase(s->progress, NULL, text);
    for (uint64_t i = 0; i < count; ++i)
        GBX_TRY(check_task(s, gbx_graph_at(s->graph, i)->task));
    return gbx_check_flow_finish(&s->flow);
}

/* --- opening --- */

/* A dump of another tool has no run.json. */
static gbx_status read_kept(session *s) {
    gbx_status status = gbx_kept_run_read(s->dump.directory, &s->kept);
    if (gbx_status_code(status) != GBX_NOT_FOUND)
        return status;
    gbx_status_free(status);
    s->kept = NULL;
    return NULL;
}

static gbx_status open_all(session *s) {
    const command_line *line = s->line;
    gbx_progress_phase(s->progress, NULL, "reading the dump");
    GBX_TRY(gbx_opened_dump_open(line->dump, GBX_INDEX_GRAPH | GBX_INDEX_DISPATCHES, &s->dump));
    GBX_TRY(gbx_check_filter_check(&line->filter, s->dump.reader));
    GBX_TRY(read_kept(s));
    GBX_TRY(gbx_graph_create(s->dump.reader, &s->graph));
    gbx_progress_phase(s->progress, NULL, "compiling references");
    GBX_TRY(gbx_references_open(line->scene, s->dump.directory, s->kept,
                                gbx_reader_run(s->dump.reader), &s->references));
    gbx_replay_engine_config config = {.timeout_ms = line->timeout_ms,
                                       .chip_blocks = s->kept ? s->kept->blocks : 0,
                                       .gm_bytes = s->kept ? s->kept->gm_bytes : 0};
    s->report.dump = &s->dump;
    s->report.given = line->dump;
    s->report.bad_edges = gbx_graph_bad_edges(s->graph);
    s->report.scene = s->references->scene->path;
    s->report.keeps_all = line->as_json;
    s->flow.references = s->references;
    s->flow.report = &s->report;
    s->flow.progress = s->progress;
    return gbx_check_flow_open(&s->flow, &config, gbx_graph_count(s->graph));
}

static void close_all(session *s) {
    gbx_check_flow_close(&s->flow);
    gbx_check_report_free(&s->report);
    gbx_references_close(s->references);
    gbx_graph_destroy(s->graph);
    gbx_kept_run_free(s->kept);
    gbx_opened_dump_close(&s->dump);
}

/* --- the command --- */

/* Nothing that was checked is not a success. */
static int exit_code_of(const gbx_check_report *report) {
    uint64_t checked = report->verdicts[GBX_CHECK_RIGHT] + report->verdicts[GBX_CHECK_INTRODUCED];
    bool is_good = checked > 0 && report->verdicts[GBX_CHECK_INTRODUCED] == 0;
    return is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
}

static gbx_status print(const session *s) {
    char count[GBX_COUNT_TEXT_BYTES];
    if (s->report.count == 0 && s->report.left_out > 0)
        gbx_command_say("check", "none of the %s tasks of %s matches the filters",
                        gbx_text_count(s->report.left_out, count), s->dump.directory);
    if (s->line->as_json)
        return gbx_check_print_json(&s->report);
    if (s->report.count > 0 || s->report.left_out == 0)
        return gbx_check_print_text(&s->report);
    return NULL;
}

static gbx_status check(session *s, int *out_exit_code) {
    s->progress = gbx_progress_start();
    gbx_status status = open_all(s);
    if (!status)
        status = check_all(s);
    gbx_progress_stop(s->progress);
    GBX_TRY(status);
    *out_exit_code = exit_code_of(&s->report);
    return print(s);
}

int gbx_command_check(int argc, char **argv) {
    static command_line line; /* both are too large for a stack */
    static session s;
    int exit_code = GBX_EXIT_OK;
    setlocale(LC_CTYPE, "");
    gbx_command_parse(&parser, "check", argc, argv, &line);
    s.line = &line;
    gbx_status status = check(&s, &exit_code);
    if (status) {
        gbx_command_fail("check", status);
        exit_code = gbx_code_exit(gbx_status_code(status));
    }
    gbx_status_free(status);
    close_all(&s);
    return exit_code;
}
