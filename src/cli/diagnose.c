#include <assert.h>
#include <stddef.h>

#include "cli/command.h"
#include "cli/filters.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dump;
    const char *scene;
    gbx_check_filter filter;
    uint32_t timeout_ms; /* 0: the default */
    uint64_t jobs;       /* 0: one for each processor */
    bool is_trusted;
    bool is_not_saved;
    bool as_json;
} command_line;

static_assert(offsetof(gbx_check_filter, ids) ==
                  offsetof(gbx_check_filter, numbers) + sizeof(gbx_selection_ranges),
              "gbx_filter_read_task stores into both");

/* Then the verdict does not replace one about all tasks. */
static bool has_task_option(const command_line *line) {
    return line->filter.numbers.count > 0 || line->filter.ids.count > 0;
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    const gbx_diagnosis_asking asking = {.command = "diagnose",
                                         .given = line->dump,
                                         .request = {.scene = line->scene,
                                                     .filter = &line->filter,
                                                     .timeout_ms = line->timeout_ms,
                                                     .jobs = (uint32_t)line->jobs,
                                                     .is_trusted = line->is_trusted},
                                         .saves = !line->is_not_saved && !has_task_option(line),
                                         .as_json = line->as_json};
    size_t findings;
    GBX_TRY(gbx_diagnosis_ask(invocation->sink, &asking, &findings));
    invocation->exit_code = findings > 0 ? GBX_EXIT_DIFFERS : GBX_EXIT_OK;
    return NULL;
}

static const gbx_option options[] = {
    {"task", "TASK",
     .help = "Only tasks of this number in order of submission (17), range (10..20) or id (0x11); "
             "the verdict is not kept",
     GBX_STORE(CUSTOM, command_line, filter.numbers), .read = gbx_filter_read_task,
     .may_repeat = true},
    {"scene", "DIR", .help = "The scene with the references (default: where it was when it ran)",
     .manual = "The run.json of the dump says where that was.",
     GBX_STORE(TEXT, command_line, scene), .completion = GBX_COMPLETE_SCENE},
    {"trust", .help = "Call kernels in the dump even if they are not found outside it",
     GBX_STORE(FLAG, command_line, is_trusted)},
    {"jobs", "N", .help = "Processes that call kernels (default: one for each processor)",
     GBX_STORE(INTEGER, command_line, jobs), .min = 1, .max = GBX_REPLAY_MAX_JOBS},
    {"timeout", "S", .help = "Seconds after which a call counts as hung (default 10)",
     GBX_STORE(SECONDS, command_line, timeout_ms)},
    {"no-save", .help = "Do not keep the verdict as diagnosis.json in the dump",
     GBX_STORE(FLAG, command_line, is_not_saved)},
    {"json", .help = "Print one JSON document, the same as diagnosis.json",
     GBX_STORE(FLAG, command_line, as_json)},
    {0}};

const gbx_command gbx_command_diagnose = {
    .name = "diagnose",
    .summary = "name the guilty task, kernel and argument of a run",
    GBX_TAKES_DUMP(command_line, dump),
    .groups = {{NULL, options, 0}},
    .description =
        "Ask a dump every question that there is: what the run noticed by itself, what audit, "
        "replay, check and blame find. The first line names the guilty task, kernel and argument, "
        "and what it did; evidence, victims and the command that shows it again follow. What was "
        "not asked is said. " GBX_DUMP_IS ".",
    .examples = "glassbox diagnose\n"
                "glassbox diagnose outputs/before --scene examples/paged_attention\n"
                "glassbox diagnose --task 17 --json\n",
    .exits = {{GBX_EXIT_OK, "no finding"},
              {GBX_EXIT_DIFFERS, "findings"},
              {GBX_EXIT_USAGE,
               "usage, or no dump that can be read, or no usable scene of --scene"}},
    .run = run,
};
