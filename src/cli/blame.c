#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"
#include "store/run/golden_result.h"

enum { DEPTH_MAX = 1000 };

typedef struct command_line {
    const char *given[2];
    uint32_t depth;
    bool is_nan;
    bool as_json;
} command_line;

/* --- what is asked --- */

/* "out[3,17]" and "task:7/x" are elements. */
static bool is_element(const char *text) {
    size_t length = strlen(text);
    return strncmp(text, "task:", 5) == 0 || (length > 0 && text[length - 1] == ']');
}

/* One argument may be either. */
static void read_arguments(const command_line *line, const char **out_dump,
                           const char **out_element) {
    bool is_only_element = line->given[0] && !line->given[1] && is_element(line->given[0]);
    *out_dump = is_only_element ? NULL : line->given[0];
    *out_element = is_only_element ? line->given[0] : line->given[1];
}

static void check(struct argp_state *state, void *context) {
    const command_line *line = context;
    const char *dump, *element;
    read_arguments(line, &dump, &element);
    if (line->is_nan && element)
        argp_error(state, "--nan looks at all elements, but %s is given", element);
    if (line->is_nan && line->depth > 0)
        argp_error(state, "--depth cannot be combined with --nan");
}

/* --- running --- */

/* The first element that a golden found wrong; freed by the caller. */
static gbx_status find_wrong_element(const gbx_opened_dump *dump, char **out_text) {
    gbx_golden_result golden;
    gbx_status status = gbx_golden_result_read(dump->directory, &golden);
    bool has_some = golden.count > 0;
    *out_text = !status && has_some ? strdup(golden.elements[0]) : NULL;
    gbx_golden_result_free(&golden);
    if (status || *out_text)
        return status;
    if (has_some)
        return gbx_fail_memory("reading what the golden found wrong");
    return gbx_fail(GBX_INVALID_ARGUMENT,
                    "%s has no output that a golden found wrong; name an element, such as "
                    "out[3,17], or give --nan",
                    dump->directory);
}

static gbx_status blame_element(const command_line *line, const gbx_opened_dump *dump,
                                const char *text, gbx_invocation *invocation) {
    gbx_blame_report report = {0};
    const char *given, *element;
    read_arguments(line, &given, &element);
    gbx_progress *progress = gbx_progress_start("reading the graph");
    gbx_status status = gbx_blame_report_make(dump, text, line->depth, progress, &report);
    gbx_progress_stop(progress);
    if (!status)
        status = gbx_blame_print(invocation->sink, dump, given, &report, line->as_json);
    invocation->exit_code = report.answer.writer_count > 0 ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    gbx_blame_inputs_free(&report.inputs);
    return status;
}

static gbx_status blame_nan(const command_line *line, const gbx_opened_dump *dump,
                            gbx_invocation *invocation) {
    gbx_first_nan found;
    GBX_TRY(gbx_first_nan_search(dump, NULL, &found));
    invocation->exit_code = found.has_first ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    return gbx_first_nan_print(invocation->sink, dump, line->given[0], &found, line->as_json);
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    gbx_opened_dump dump;
    const char *given, *element;
    char *wrong = NULL;
    read_arguments(line, &given, &element);
    GBX_TRY(gbx_opened_dump_open(given, GBX_INDEX_GRAPH, &dump));
    gbx_status status = NULL;
    if (!line->is_nan && !element)
        status = find_wrong_element(&dump, &wrong);
    if (!status)
        status = line->is_nan ? blame_nan(line, &dump, invocation)
                              : blame_element(line, &dump, element ? element : wrong, invocation);
    free(wrong);
    gbx_opened_dump_close(&dump);
    return status;
}

static const gbx_option options[] = {
    {"nan",
     .help = "Find the first output with a NaN or Inf whose task read none, in the order in which "
             "tasks completed",
     GBX_STORE(FLAG, command_line, is_nan)},
    {"depth", "N",
     .help = "Also list the inputs of the task that wrote the element and who wrote these, N steps "
             "back",
     GBX_STORE(INTEGER, command_line, depth), .min = 1, .max = DEPTH_MAX},
    {"json", .help = "Print one JSON document", GBX_STORE(FLAG, command_line, as_json)},
    {0}};

const gbx_command gbx_command_blame = {
    .name = "blame",
    .summary = "say which task wrote an element last, or made the first NaN",
    .arguments = "[DUMP] [ELEMENT]",
    .takes = "one dump and one element",
    .most = 2,
    .arguments_offset = offsetof(command_line, given),
    .line_bytes = sizeof(command_line),
    .groups = {{NULL, options, 0}},
    .description =
        "Say which task wrote an element last, and what it left there. ELEMENT is an element of an "
        "argument of the run at its end, such as out[3,17]; or of an argument of a task, by name or "
        "slot, as that task read or left it, such as task:7/x[3,17]. Without one: the first element "
        "that the golden of the run found wrong. " GBX_DUMP_IS ".",
    .examples = "glassbox blame\n"
                "glassbox blame outputs/before 'out[3,7,17]'\n"
                "glassbox blame 'task:7/out[0,17]' --depth 2 --json\n"
                "glassbox blame --nan\n",
    .exits = {{GBX_EXIT_OK, "an answer"},
              {GBX_EXIT_DIFFERS, "no task wrote it, or no output has a NaN or Inf"},
              {GBX_EXIT_USAGE,
               "usage, an unknown name, or a dump that cannot be read or lacks what "
               "is needed"}},
    .check = check,
    .run = run,
};
