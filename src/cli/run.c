#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "report/progress.h"
#include "report/reports.h"

enum { CASES_MAX = 256, ROUNDS_MAX = 1000000 };

typedef struct command_line {
    const char *scene;
    const char *surplus; /* a second argument: an error with a sentence of its own */
    const char *case_names[CASES_MAX];
    size_t case_name_count;
    uint32_t platform; /* by number, like the runtime */
    uint32_t runtime;
    gbx_scene_options run;
    const char *filters[GBX_MAX_DUMP_FILTERS];
    bool as_json;
    bool diagnoses;
    bool is_verbose;
    bool lists_cases;
} command_line;

/* --- options --- */

static void read_case(struct argp_state *state, const gbx_option *option, const char *text,
                      void *group) {
    command_line *line = group;
    if (line->case_name_count == CASES_MAX)
        argp_error(state, "--%s: more than %d cases", option->name, CASES_MAX);
    line->case_names[line->case_name_count++] = text;
}

static void read_level(struct argp_state *state, const gbx_option *option, const char *text,
                       void *group) {
    command_line *line = group;
    line->run.call.enable_dump_tensor =
        text ? (gbx_dump_level)gbx_option_choice(state, option, text) : GBX_DUMP_FULL;
}

/* By gbx_guard_mode, without its default. */
static const char *const guard_modes[] = {"off", "report", "stop", NULL};

static void read_guard(struct argp_state *state, const gbx_option *option, const char *text,
                       void *group) {
    command_line *line = group;
    line->run.call.guard =
        text ? (gbx_guard_mode)(GBX_GUARD_OFF + gbx_option_choice(state, option, text))
             : GBX_GUARD_REPORT;
}

static void read_filter(struct argp_state *state, const gbx_option *option, const char *text,
                        void *group) {
    command_line *line = group;
    size_t *count = &line->run.call.dump.filter_count;
    if (*count == GBX_MAX_DUMP_FILTERS)
        argp_error(state, "--%s: more than %d filters", option->name, GBX_MAX_DUMP_FILTERS);
    line->filters[(*count)++] = text;
}

static const gbx_option options[] = {
    {"case", "NAME",
     .help = "The case to run; may be repeated; all: every case (default: the first)",
     GBX_STORE(CUSTOM, command_line, case_names), .read = read_case,
     .choices = (const char *const[]){"all", NULL}, .may_repeat = true,
     .completion = GBX_COMPLETE_CASE},
    {"list-cases", .help = "Print the names of the scene's cases, one a line, and run nothing",
     GBX_STORE(FLAG, command_line, lists_cases)},
    {"platform", "NAME", .letter = 'p', .help = "a2a3sim (default) or a5sim",
     .manual = "See glassbox-platforms(1).", GBX_STORE(CHOICE, command_line, platform),
     .choice_name = gbx_platform_name},
    {"runtime", "NAME",
     .help = "tensormap_and_ringbuffer (default), aicpu_build_graph or host_build_graph",
     GBX_STORE(CHOICE, command_line, runtime), .choice_name = gbx_runtime_name},
    {"blocks", "N", .help = "Blocks of the chip, 1 to 24 (default 8)",
     GBX_STORE(INTEGER, command_line, run.chip.blocks), .min = 1, .max = GBX_MAX_BLOCKS},
    {"threads", "N", .help = "AICPU threads, 1 to 8 (default 2)",
     GBX_STORE(INTEGER, command_line, run.chip.aicpu_threads), .min = 1,
     .max = GBX_MAX_AICPU_THREADS},
    {"device", "WHERE",
     .help = "Where the chip runs: in its own process (default), or as a thread of this one",
     GBX_STORE(CHOICE, command_line, run.chip.device),
     .choices = (const char *const[]){"process", "thread", NULL}},
    {"build", "HOW",
     .help = "aicpu_build_graph: concurrent (default), or sequential: run tasks once all are built",
     GBX_STORE(CHOICE, command_line, run.call.build),
     .choices = (const char *const[]){"concurrent", "sequential", NULL}},
    {"window", "N", .help = "tensormap_and_ringbuffer: tasks at a time (default 16384)",
     GBX_STORE(INTEGER, command_line, run.call.window), .min = 1, .max = GBX_MAX_WINDOW},
    {"gm", "SIZE", .help = "Global memory of the chip: 512M, 4G... (default 8G)",
     GBX_STORE(SIZE, command_line, run.chip.gm_bytes), .min = 1, .max = GBX_MAX_GM_BYTES},
    {"guard", "MODE", .may_lack_text = true,
     .help = "Find writes outside of buffers, with red zones around them, and fill new memory with "
             "NaN: report (default with a dump): the run goes on, and ends with exit status 1; "
             "stop: the first one ends it with 3; off (default without a dump)",
     .manual = "Findings are lines that begin with \"finding:\", and are in the dump.",
     GBX_STORE(CUSTOM, command_line, run.call.guard), .read = read_guard, .choices = guard_modes},
    {"loose-signatures",
     .help = "Warn of tasks that break the signature of a kernel, and run them all the same",
     GBX_STORE(FLAG, command_line, run.call.has_loose_signatures)},
    {"no-golden", .help = "Do not compare the outputs",
     GBX_STORE(FLAG, command_line, run.skips_golden)},
    {"rounds", "N", .help = "Run each case N times on the open chip",
     GBX_STORE(INTEGER, command_line, run.rounds), .min = 1, .max = ROUNDS_MAX},
    {"timeout", "S", .help = "Seconds without progress that count as a hang (default 10)",
     GBX_STORE(SECONDS, command_line, run.call.timeout_ms)},
    {"diagnose",
     .help =
         "Diagnose each run that is wrong or refused, as glassbox diagnose does; records everything "
         "(--dump-tensor), unless another level is given",
     .manual = "The verdicts follow the results; with --json they are only kept in the dumps, as "
               "diagnosis.json.",
     GBX_STORE(FLAG, command_line, diagnoses)},
    {"json", .help = "Print one JSON document",
     .manual =
         "Its members are scene, platform, runtime, blocks, threads and cases: an array of "
         "objects with name, round, status (ok, differs, failed, not_compared), error, "
         "tasks, seconds, dump (its path, or null), dump_totals, signature_warnings (how many), "
         "signature_sentences (the first of each sort), outputs, finding_count, findings and "
         "diagnose (a command, or null).",
     GBX_STORE(FLAG, command_line, as_json)},
    {"verbose", .letter = 'v', .help = "Also report outputs that are right",
     GBX_STORE(FLAG, command_line, is_verbose)},
    {0}};

static const gbx_option dump_options[] = {
    {"dump-tensor", "LEVEL", .may_lack_text = true,
     .help =
         "Record the arguments of tasks: full (default): all, with their bytes; partial: only "
         "those that are marked or match a filter; hybrid: all, but bytes only of those; stats: "
         "all, with statistics and hash instead of bytes",
     GBX_STORE(CUSTOM, command_line, run.call.enable_dump_tensor), .read = read_level,
     .names = &gbx_dump_levels},
    {"dump-args", .help = "Record what the orchestration and every dispatch was called with",
     GBX_STORE(FLAG, command_line, run.call.enable_dump_args)},
    {"dump-filter", "KEY=VALUE,...", .may_repeat = true,
     .help = "Record only what matches one of the filters given. Keys: kernel (name or "
             "glob), func, task (17, 10..20 or 0x11), arg, role (input, output, inout), stage "
             "(before_dispatch, after_completion), kind (tensor, scalar), dtype",
     .manual =
         "A filter that names no kernel of the scene is exit status 2, before the run; one that "
         "matches nothing, exit status 1.",
     GBX_STORE(CUSTOM, command_line, filters), .read = read_filter,
     .completion = GBX_COMPLETE_FILTER},
    {"dump-stats", .help = "Record statistics of every tensor, at every level",
     GBX_STORE(FLAG, command_line, run.call.dump.has_stats)},
    {"dump-max-tensor", "SIZE", .help = "Keep only the first SIZE bytes of larger tensors",
     GBX_STORE(SIZE, command_line, run.call.dump.max_tensor_bytes), .min = 1,
     .max = GBX_MAX_GM_BYTES},
    {"no-dedup", .help = "Store equal payloads each time",
     GBX_STORE(FLAG, command_line, run.call.dump.keeps_duplicates)},
    {"output", "DIR", .letter = 'o',
     .help = "Where the dump goes (default: outputs/SCENE_CASE_TIME, with a link outputs/latest); "
             "with several cases or rounds DIR/CASE, DIR/CASE_r1...",
     GBX_STORE(TEXT, command_line, run.output), .completion = GBX_COMPLETE_DIRECTORY},
    {0}};

static const gbx_option room_options[] = {
    {"dump-arena", "SIZE",
     .help = "Room for payload on the chip, for each AICPU thread: 64K to 4G (default 16M)",
     GBX_STORE(SIZE, command_line, run.call.dump.arena_bytes), .min = GBX_MIN_DUMP_ARENA_BYTES,
     .max = GBX_MAX_DUMP_ARENA_BYTES},
    {"dump-buffers", "N", .help = "Buffers of records for each AICPU thread, 2 to 64 (default 16)",
     GBX_STORE(INTEGER, command_line, run.call.dump.buffer_count), .min = GBX_MIN_DUMP_BUFFERS,
     .max = GBX_MAX_DUMP_BUFFERS},
    {"dump-stall-timeout", "S",
     .help = "Seconds that a capture may wait for room before its record is lost (default 30)",
     GBX_STORE(SECONDS, command_line, run.call.dump.stall_timeout_ms)},
    {0}};

/* A level that was written as a word of its own would be taken for the scene. */
static void check_arguments(struct argp_state *state, const command_line *line) {
    uint32_t number;
    const char *level = NULL;
    if (!line->surplus)
        return;
    for (const char *const *mode = guard_modes; *mode; ++mode)
        if (strcmp(line->scene, *mode) == 0 || strcmp(line->surplus, *mode) == 0)
            argp_error(state, "unexpected argument \"%s\": write --guard=%s", *mode, *mode);
    if (gbx_name_find(&gbx_dump_levels, line->scene, &number))
        level = line->scene;
    else if (gbx_name_find(&gbx_dump_levels, line->surplus, &number))
        level = line->surplus;
    if (level)
        argp_error(state, "unexpected argument \"%s\": write --dump-tensor=%s", level, level);
    else
        argp_error(state, "unexpected argument \"%s\": run takes one scene", line->surplus);
}

/* An option that has no effect without another would be relied on. */
static void check_options(struct argp_state *state, void *context) {
    command_line *line = context;
    gbx_call_config *call = &line->run.call;
    if (line->diagnoses && call->enable_dump_tensor == GBX_DUMP_OFF)
        call->enable_dump_tensor = GBX_DUMP_FULL;
    if (line->lists_cases && line->as_json)
        argp_error(state, "--list-cases cannot be combined with --json");
    bool has_tensors = call->enable_dump_tensor != GBX_DUMP_OFF;
    const struct {
        const char *name;
        bool is_given;
        bool needs_tensors;
    } dependent[] = {{"dump-filter", call->dump.filter_count > 0, true},
                     {"dump-stats", call->dump.has_stats, true},
                     {"dump-max-tensor", call->dump.max_tensor_bytes > 0, true},
                     {"no-dedup", call->dump.keeps_duplicates, true},
                     {"output", line->run.output, false},
                     {"dump-arena", call->dump.arena_bytes > 0, false},
                     {"dump-buffers", call->dump.buffer_count > 0, false},
                     {"dump-stall-timeout", call->dump.stall_timeout_ms > 0, false}};
    check_arguments(state, line);
    for (size_t i = 0; i < sizeof dependent / sizeof dependent[0]; ++i)
        if (dependent[i].is_given && !has_tensors &&
            (dependent[i].needs_tensors || !call->enable_dump_args))
            argp_error(state, "--%s needs --dump-tensor%s", dependent[i].name,
                       dependent[i].needs_tensors ? "" : " or --dump-args");
}

/* The command line, ready to be given to a shell again: "glassbox run ..."; freed by the caller,
 * NULL when memory is out. */
static char *command_text(int argc, char **argv) {
    char *text = NULL;
    size_t bytes;
    bool is_whole = true;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fputs("glassbox run", out);
    for (int i = 1; i < argc; ++i) {
        char *word = gbx_shell_quote(argv[i], false);
        is_whole = is_whole && word && fprintf(out, " %s", word) > 0;
        free(word);
    }
    if (fclose(out) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

/* --- running --- */

/* What the observer gets. */
typedef struct run_output {
    gbx_progress *progress;
    gbx_run_report report;
    char **wrong; /* dumps to diagnose, with --diagnose */
    uint64_t wrong_count;
    uint64_t wrong_capacity;
    gbx_status status; /* out of memory for one of them */
} run_output;

static void on_phase(void *context, const gbx_scene_case *of_case, const char *what) {
    run_output *output = context;
    gbx_progress_phase(output->progress, of_case ? of_case->name : NULL, what);
}

static void on_progress(void *context, uint64_t tasks) {
    run_output *output = context;
    gbx_progress_count(output->progress, tasks, 0, "task");
}

static gbx_status add_wrong(run_output *output, const char *dump) {
    GBX_TRY(gbx_array_reserve(&output->wrong, &output->wrong_capacity, output->wrong_count + 1,
                              "listing dumps"));
    output->wrong[output->wrong_count] = strdup(dump);
    return output->wrong[output->wrong_count++] ? NULL : gbx_fail_memory("listing dumps");
}

static void on_result(void *context, const gbx_round_result *result) {
    run_output *output = context;
    gbx_progress_hide(output->progress);
    gbx_run_report_add(&output->report, result);
    if (output->report.layout.diagnoses && gbx_run_can_be_diagnosed(result) && !output->status)
        output->status = add_wrong(output, result->dump);
}

/* "all" is every case, unless one has this name. */
static gbx_status add_cases(const gbx_scene *scene, const char *name, const gbx_scene_case **chosen,
                            size_t *count) {
    const gbx_scene_case *one = gbx_scene_find_case(scene, name);
    size_t first = one ? (size_t)(one - scene->cases) : 0;
    size_t end = one ? first + 1 : scene->case_count;
    if (!one && strcmp(name, "all") != 0) {
        char known[256] = "";
        size_t used = 0;
        for (size_t i = 0; i < scene->case_count && used < sizeof known; ++i)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     scene->cases[i].name);
        return gbx_fail(GBX_NOT_FOUND, "%s: unknown case \"%s\"; the scene has %s", scene->path,
                        name, known);
    }
    for (size_t i = first; i < end && *count < CASES_MAX; ++i)
        chosen[(*count)++] = &scene->cases[i];
    return NULL;
}

static gbx_status diagnose_all(const command_line *line, const run_output *output,
                               gbx_invocation *invocation) {
    static const gbx_check_filter all;
    for (uint64_t i = 0; i < output->wrong_count; ++i) {
        size_t findings;
        const gbx_diagnosis_asking asking = {
            .command = "run",
            .given = output->wrong[i],
            .request = {.filter = &all, .timeout_ms = line->run.call.timeout_ms},
            .saves = true,
            .is_quiet = line->as_json};
        if (!line->as_json)
            gbx_sink_print(invocation->sink, "\n");
        GBX_TRY(gbx_diagnosis_ask(invocation->sink, &asking, &findings));
        if (findings > 0)
            invocation->exit_code = gbx_exit_worse(invocation->exit_code, GBX_EXIT_DIFFERS);
    }
    return NULL;
}

static gbx_status run_scene(const command_line *line, const gbx_scene *scene,
                            gbx_invocation *invocation) {
    const gbx_scene_case *chosen[CASES_MAX];
    size_t count = 0;
    run_output output = {0};
    if (line->case_name_count == 0)
        chosen[count++] = &scene->cases[0];
    for (size_t i = 0; i < line->case_name_count; ++i)
        GBX_TRY(add_cases(scene, line->case_names[i], chosen, &count));
    const gbx_run_layout layout = {.scene = scene,
                                   .options = &line->run,
                                   .cases = chosen,
                                   .case_count = count,
                                   .is_verbose = line->is_verbose,
                                   .diagnoses = line->diagnoses,
                                   .as_json = line->as_json};
    gbx_run_report_begin(invocation->sink, &layout, &output.report);
    output.progress = gbx_progress_start(NULL);
    gbx_scene_observer observer = {&output, on_phase, on_progress, on_result};
    gbx_status status =
        gbx_scene_run(scene, chosen, count, &line->run, &observer, &invocation->exit_code);
    gbx_progress_stop(output.progress);
    status = gbx_run_report_end(&output.report, gbx_status_first(status, output.status));
    if (!status)
        status = diagnose_all(line, &output, invocation);
    for (uint64_t i = 0; i < output.wrong_count; ++i)
        free(output.wrong[i]);
    free(output.wrong);
    return status;
}

static void list_cases(const gbx_scene *scene, gbx_sink *sink) {
    for (size_t i = 0; i < scene->case_count; ++i)
        gbx_sink_print(sink, "%s\n", gbx_text_shown(&sink->texts, scene->cases[i].name));
}

/* A JSON document has stdout for itself: what kernels and orchestrations print goes to stderr from
 * now on. Returns the stream of the document; NULL, and nothing has changed, where there is none.
 */
static FILE *reserve_stdout(gbx_sink *sink) {
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    FILE *document = fd < 0 ? NULL : fdopen(fd, "w");
    if (!document || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        if (document)
            fclose(document);
        else if (fd >= 0)
            close(fd);
        return NULL;
    }
    sink->out = document;
    return document;
}

static gbx_status run(void *context, gbx_invocation *invocation) {
    command_line *line = context;
    FILE *document = line->as_json ? reserve_stdout(invocation->sink) : NULL;
    gbx_scene *scene;
    char *command = command_text(invocation->argc, invocation->argv);
    line->run.chip.platform = gbx_platform_name(line->platform);
    line->run.runtime = gbx_runtime_name(line->runtime);
    line->run.call.dump.filters = line->filters;
    line->run.call.dump.about.command = command;
    gbx_status status = gbx_scene_load(line->scene, &scene);
    if (!status && line->lists_cases)
        list_cases(scene, invocation->sink);
    else if (!status)
        status = run_scene(line, scene, invocation);
    gbx_scene_free(scene);
    free(command);
    invocation->sink->out = stdout;
    if (document)
        fclose(document); /* the sink has flushed it, and looked at every write */
    return status;
}

static const command_line defaults = {
    .run = {.chip = {.blocks = GBX_DEFAULT_BLOCKS, .aicpu_threads = GBX_DEFAULT_AICPU_THREADS},
            .rounds = 1}};

const gbx_command gbx_command_run = {
    .name = "run",
    .summary = "run a scene and compare its outputs with what is expected",
    .arguments = "SCENE",
    .takes = "one scene, a directory with a scene.json",
    .least = 1,
    .most = 2,
    .completion = GBX_COMPLETE_SCENE,
    .line_bytes = sizeof(command_line),
    .defaults = &defaults,
    .groups = {{NULL, options, 0},
               {"Dumps:", dump_options, 0},
               {"Room for what is not on disk yet:", room_options, 0}},
    .description = "Run the task graph of a scene and compare its outputs with what is expected. "
                   "SCENE is a directory with a scene.json, or the file itself.",
    .examples = "glassbox run examples/vector_example\n"
                "glassbox run examples/vector_example --case all --runtime host_build_graph\n"
                "glassbox run examples/vector_example -p a5sim --blocks 24 --rounds 3 --json\n"
                "glassbox run examples/vector_example --dump-tensor --dump-args -o dumps/one\n"
                "glassbox run examples/paged_attention --dump-tensor=stats\n"
                "glassbox run examples/paged_attention --dump-tensor \\\n"
                "    --dump-filter 'kernel=*softmax*,stage=after_completion' \\\n"
                "    --dump-filter task=10..20\n",
    .exits = {{GBX_EXIT_OK, "done, and outputs are as expected"},
              {GBX_EXIT_DIFFERS,
               "done, and outputs differ, a kernel wrote outside of its buffers, or a "
               "filter matched nothing"},
              {GBX_EXIT_USAGE,
               "usage, a filter names no kernel, the scene, a kernel or the graph is wrong, or an "
               "output cannot be opened"},
              {GBX_EXIT_DEVICE,
               "the device failed: a kernel crashed or hung, --guard=stop ended the "
               "run, or the chip died; or an orchestration or golden in the "
               "command crashed"},
              {GBX_EXIT_LOST, "done, but records of the dump were lost, or the disk failed"}},
    .check = check_options,
    .run = run,
};
