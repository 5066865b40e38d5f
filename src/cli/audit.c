#include "cli/command.h"
#include "report/progress.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dump;
    bool as_json;
} command_line;

static void on_progress(void *context, uint64_t done, uint64_t all) {
    gbx_progress_phase(context, NULL, "replaying memory");
    gbx_progress_count(context, done, all, "entry");
}

static gbx_status audit_dump(const gbx_opened_dump *dump, gbx_audit *out_audit) {
    gbx_task_graph *graph = NULL;
    gbx_progress *progress = gbx_progress_start("reading the graph");
    gbx_status status = gbx_task_graph_create(dump->reader, &graph);
    if (!status)
        status =
            gbx_audit_run(dump->entries, graph, progress ? on_progress : NULL, progress, out_audit);
    gbx_progress_stop(progress);
    gbx_task_graph_destroy(graph);
    return status;
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    gbx_opened_dump dump;
    gbx_audit audit = {0};
    GBX_TRY(gbx_opened_dump_open(line->dump, GBX_INDEX_GRAPH, &dump));
    gbx_status status = audit_dump(&dump, &audit);
    if (!status)
        status = gbx_audit_print(invocation->sink, &dump, line->dump, &audit, line->as_json);
    bool is_good = audit.finding_count == 0 && audit.counts.records > 0;
    invocation->exit_code = is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    gbx_audit_free(&audit);
    gbx_opened_dump_close(&dump);
    return status;
}

static const gbx_option options[] = {{"json", .help = "Print one JSON document, with all findings",
                                      GBX_STORE(FLAG, command_line, as_json)},
                                     {0}};

const gbx_command gbx_command_audit = {
    .name = "audit",
    .summary = "find undeclared writes and reads that came too early",
    GBX_TAKES_DUMP(command_line, dump),
    .groups = {{NULL, options, 0}},
    .description =
        "Replay memory from the records of a dump. Finds inputs that do not hold what was last "
        "left there (a task wrote without declaring it), inputs that were read before their "
        "producer had completed or that nothing orders after it (a dependency is missing), and "
        "outputs that tasks wrote over each other. " GBX_DUMP_IS ".",
    .examples = "glassbox audit\n"
                "glassbox audit outputs/vector_example_default\n"
                "glassbox audit outputs --json\n",
    .exits = {{GBX_EXIT_OK, "no findings"},
              {GBX_EXIT_DIFFERS, "findings, or nothing to audit"},
              {GBX_EXIT_USAGE,
               "usage, or a dump that cannot be read or lacks what an audit needs"}},
    .run = run,
};
