#include <stdio.h>

#include "cli/internal.h"
#include "store/dump_path.h"

enum { KEY_JSON = 0x100 }; /* no letter: the long name alone */

typedef struct command_line {
    const char *dump;
    bool as_json;
} command_line;

static error_t parse(int key, char *argument, struct argp_state *state) {
    command_line *line = state->input;
    if (key == KEY_JSON)
        line->as_json = true;
    else if (key == ARGP_KEY_ARG)
        gbx_option_dump(state, &line->dump, argument, "audited");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "Print one JSON document, with all findings", 0}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .args_doc = "[DUMP]",
    .doc = "Replays memory from the records of a dump: finds inputs that do not hold what was left "
           "there last (somebody wrote without declaring it), inputs that were read before their "
           "producer had completed or that nothing orders after it (a dependency is missing), and "
           "outputs that tasks wrote over each other. DUMP is a dump directory, its parent or its "
           "tensor_dump (default: " GBX_DUMP_PATH_DEFAULT ").\v"
           "exit codes: 0 no findings; 1 findings, or there is nothing to audit; 2 usage, or "
           "there is no dump that can be read or that tells enough for an audit.\n\n"
           "examples:\n  glassbox audit\n  glassbox audit outputs/vector_example_default\n"
           "  glassbox audit outputs --json",
};

static void on_progress(void *context, uint64_t done, uint64_t all) {
    char text[96], done_text[GBX_COUNT_TEXT_BYTES], all_text[GBX_COUNT_TEXT_BYTES];
    snprintf(text, sizeof text, "replaying memory, %s of %s records",
             gbx_text_count(done, done_text), gbx_text_count(all, all_text));
    gbx_progress_phase(context, NULL, text);
}

static gbx_status audit_and_print(const command_line *line, const gbx_opened_dump *dump,
                                  int *out_exit_code) {
    gbx_audit audit = {0};
    gbx_task_graph *graph = NULL;
    gbx_progress *progress = gbx_progress_start();
    gbx_progress_phase(progress, NULL, "reading the graph");
    gbx_status status = gbx_task_graph_create(dump->reader, &graph);
    if (!status)
        status =
            gbx_audit_run(dump->entries, graph, progress ? on_progress : NULL, progress, &audit);
    gbx_progress_stop(progress);
    gbx_task_graph_destroy(graph);
    GBX_TRY(status);
    status = line->as_json ? gbx_audit_print_json(dump, line->dump, &audit)
                           : gbx_audit_print_text(dump, line->dump, &audit);
    bool is_good = audit.finding_count == 0 && audit.counts.records > 0;
    *out_exit_code = is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    gbx_audit_free(&audit);
    return status;
}

int gbx_command_audit(int argc, char **argv) {
    command_line line = {0};
    gbx_opened_dump dump;
    int exit_code = GBX_EXIT_OK;
    gbx_command_parse(&parser, "audit", argc, argv, &line);
    gbx_status status = gbx_opened_dump_open(line.dump, GBX_INDEX_GRAPH, &dump);
    if (!status)
        status = audit_and_print(&line, &dump, &exit_code);
    gbx_opened_dump_close(&dump);
    return gbx_command_end("audit", status, exit_code);
}
