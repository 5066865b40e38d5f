#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/filters.h"
#include "report/ending.h"
#include "report/progress.h"
#include "report/reports.h"

typedef struct command_line {
    const char *dump;
    const char *scene;
    gbx_check_filter filter;
    uint32_t timeout_ms; /* 0: the default */
    uint64_t jobs;       /* 0: one for each processor */
    bool is_trusted;
    bool is_first_nan;
    bool as_json;
} command_line;

typedef struct step_context {
    gbx_progress *progress;
    uint64_t tasks;
} step_context;

static void on_step(void *context, gbx_check_step step, uint64_t count) {
    step_context *c = context;
    if (step == GBX_CHECK_GOES_ON) {
        gbx_progress_count(c->progress, count, c->tasks, "task");
        return;
    }
    c->tasks = count;
    gbx_progress_phase(c->progress, NULL,
                       step == GBX_CHECK_COMPILES ? "compiling references" : "checking");
}

static gbx_status check_dump(const command_line *line, gbx_opened_dump *out_dump,
                             gbx_check_report *out_report) {
    step_context context = {.progress = gbx_progress_start("reading the dump")};
    gbx_status status =
        gbx_opened_dump_open(line->dump, GBX_INDEX_GRAPH | GBX_INDEX_DISPATCHES, out_dump);
    if (!status)
        status = gbx_check_dump(&(const gbx_check_request){.entries = out_dump->entries,
                                                           .directory = out_dump->directory,
                                                           .scene = line->scene,
                                                           .filter = &line->filter,
                                                           .timeout_ms = line->timeout_ms,
                                                           .jobs = (uint32_t)line->jobs,
                                                           .is_trusted = line->is_trusted,
                                                           .keeps_all = line->as_json,
                                                           .progress = on_step,
                                                           .progress_context = &context},
                                out_report);
    gbx_progress_stop(context.progress);
    return status;
}

/* Without references: an output with a NaN or Inf is wrong if the task read none. */
static gbx_status check_nan(const command_line *line, gbx_invocation *invocation) {
    gbx_opened_dump dump;
    gbx_first_nan found;
    gbx_selected selected = {0};
    gbx_selection *selection = calloc(1, sizeof *selection);
    if (!selection)
        return gbx_fail_memory("checking the dump");
    selection->kernels = line->filter.kernels;
    selection->task_numbers = line->filter.numbers;
    selection->task_ids = line->filter.ids;
    gbx_status status = gbx_opened_dump_open(line->dump, GBX_INDEX_GRAPH, &dump);
    if (!status)
        status = gbx_filter_apply(selection, dump.entries, &selected);
    if (!status)
        status = gbx_first_nan_search(&dump, &selected, &found);
    if (!status) {
        bool is_good = !found.has_first && found.outputs > found.unknown;
        invocation->exit_code = is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
        status = gbx_first_nan_print(invocation->sink, &dump, line->dump, &found, line->as_json);
    }
    free(selected.indices);
    free(selection);
    gbx_opened_dump_close(&dump);
    return status;
}

static void check_options(struct argp_state *state, void *context) {
    const command_line *line = context;
    if (line->is_first_nan && (line->scene || line->timeout_ms))
        argp_error(state, "--first-nan uses no references: --%s has no effect",
                   line->scene ? "scene" : "timeout");
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    const command_line *line = context;
    if (line->is_first_nan)
        return check_nan(line, invocation);
    gbx_opened_dump dump = {0};
    gbx_check_report report = {0};
    gbx_texts *texts = &invocation->sink->texts;
    gbx_status status = check_dump(line, &dump, &report);
    bool is_empty = report.count == 0 && report.left_out > 0;
    if (!status && is_empty)
        gbx_command_say("check", "none of the %s tasks of %s matches the filters%s",
                        gbx_text_count(texts, report.left_out), dump.directory,
                        gbx_text_unknown_kernel(texts, &dump, &line->filter.kernels));
    if (!status && (line->as_json || !is_empty))
        status = gbx_check_print(invocation->sink, &dump, line->dump, &report, line->as_json);
    /* To have checked nothing is not a success. */
    bool is_good = report.verdicts[GBX_CHECK_RIGHT] > 0 &&
                   report.verdicts[GBX_CHECK_INTRODUCED] == 0 &&
                   report.verdicts[GBX_CHECK_OVERWRITTEN] == 0 &&
                   report.verdicts[GBX_CHECK_NOT_REPEATED] == 0 && report.accused == 0 &&
                   report.differing == 0;
    invocation->exit_code = is_good ? GBX_EXIT_OK : GBX_EXIT_DIFFERS;
    gbx_check_report_free(&report);
    gbx_opened_dump_close(&dump);
    return status;
}

static_assert(offsetof(gbx_check_filter, ids) ==
                  offsetof(gbx_check_filter, numbers) + sizeof(gbx_selection_ranges),
              "gbx_filter_read_task stores into both");

static const gbx_option options[] = {
    {"scene", "DIR", .help = "The scene with the references (default: where it was when it ran)",
     .manual = "The run.json of the dump says where that was.",
     GBX_STORE(TEXT, command_line, scene), .completion = GBX_COMPLETE_SCENE},
    {"kernel", "NAME", .help = "Check only tasks with a kernel of this name or glob",
     GBX_STORE(CUSTOM, command_line, filter.kernels), .read = gbx_filter_read_name,
     .may_repeat = true, .completion = GBX_COMPLETE_KERNEL},
    {"task", "TASK",
     .help = "Check only tasks of this number in order of submission (17), range (10..20) or id "
             "(0x11)",
     GBX_STORE(CUSTOM, command_line, filter.numbers), .read = gbx_filter_read_task,
     .may_repeat = true},
    {"trust", .help = "Call kernels in the dump again even if they are not found outside it",
     GBX_STORE(FLAG, command_line, is_trusted)},
    {"jobs", "N", .help = "Processes that call kernels (default: one for each processor)",
     GBX_STORE(INTEGER, command_line, jobs), .min = 1, .max = GBX_REPLAY_MAX_JOBS},
    {"timeout", "S", .help = "Seconds after which a call counts as hung (default 10)",
     GBX_STORE(SECONDS, command_line, timeout_ms)},
    {"first-nan",
     .help = "Without references: find the first output with a NaN or Inf whose task read none",
     .manual = "In the order in which tasks completed. The same as glassbox blame --nan, but it is "
               "exit status 1 if there is one.",
     GBX_STORE(FLAG, command_line, is_first_nan)},
    {"json", .help = "Print one JSON document, with every task",
     GBX_STORE(FLAG, command_line, as_json)},
    {0}};

const gbx_command gbx_command_check = {
    .name = "check",
    .summary = "say which task is the first that is wrong for its own inputs",
    GBX_TAKES_DUMP(command_line, dump),
    .groups = {{NULL, options, 0}},
    .description =
        "Run the reference of each task's kernel on the inputs in the dump, and compare with the "
        "outputs in the dump: which task is the first that is wrong for its own inputs? An error "
        "that a task only inherits does not count. The kernels themselves are called again, too, as "
        "glassbox replay does: one that writes outside its outputs is named, and not its victim. " GBX_DUMP_IS
        ".",
    .examples = "glassbox check\n"
                "glassbox check outputs/before --scene examples/paged_attention\n"
                "glassbox check --kernel 'softmax*' --task 0..99\n"
                "glassbox check --first-nan\n"
                "glassbox check --json\n",
    .exits =
        {{GBX_EXIT_OK, "everything that was checked is right"},
         {GBX_EXIT_DIFFERS,
          "a task is wrong, a kernel has a finding or leaves other values when it is called again, or nothing was checked"},
         {GBX_EXIT_USAGE, "usage, or no usable dump, scene or reference"}},
    .check = check_options,
    .run = run,
};
