#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/internal.h"
#include "text/names.h"

/* --- options of dumps: a parser of its own, child of the command's --- */

/* What the parser gets as its input, with `run` set and all else zero. */
typedef struct dump_arguments {
    gbx_scene_options *run; /* what the options go into */
    const char *filters[GBX_MAX_DUMP_FILTERS];
    const char *needs_dump;   /* an option that was given and means nothing without a dump */
    const char *needs_tensor; /* ...without --dump-tensor */
} dump_arguments;

enum {
    KEY_DUMP_TENSOR = 0x200, /* apart from those of the command */
    KEY_DUMP_ARGS,
    KEY_DUMP_FILTER,
    KEY_DUMP_STATS,
    KEY_DUMP_ARENA,
    KEY_DUMP_BUFFERS,
    KEY_DUMP_MAX_TENSOR,
    KEY_DUMP_STALL_TIMEOUT,
    KEY_NO_DEDUP
};

static const struct argp_option dump_options[] = {
    {"dump-tensor", KEY_DUMP_TENSOR, "LEVEL", OPTION_ARG_OPTIONAL,
     "Record the arguments of tasks: full (default): all, with their bytes; partial: those that "
     "are marked or match a filter; hybrid: all, with bytes of those; stats: all, with statistics "
     "and hash instead of bytes",
     1},
    {"dump-args", KEY_DUMP_ARGS, NULL, 0,
     "Record what the orchestration and every dispatch was called with", 1},
    {"dump-filter", KEY_DUMP_FILTER, "KEY=VALUE,...", 0,
     "Record only what matches; may be repeated, any may match. Keys: kernel (name or glob), func, "
     "task (17, 10..20 or 0x11), arg, role (input, output, inout), stage (before_dispatch, "
     "after_completion), kind (tensor, scalar), dtype",
     1},
    {"dump-stats", KEY_DUMP_STATS, NULL, 0, "Statistics of every tensor, at every level", 1},
    {"dump-max-tensor", KEY_DUMP_MAX_TENSOR, "SIZE", 0, "Cut off the rest of larger tensors", 1},
    {"no-dedup", KEY_NO_DEDUP, NULL, 0, "Store equal payloads each time", 1},
    {"output", 'o', "DIR", 0,
     "Where the dump goes (default: outputs/SCENE_CASE_TIME, with a link outputs/latest); with "
     "several cases or rounds DIR/CASE, DIR/CASE_r1...",
     1},
    {NULL, 0, NULL, 0, "Room for what is not on disk yet:", 2},
    {"dump-arena", KEY_DUMP_ARENA, "SIZE", 0,
     "Room for payload on the chip, for each AICPU thread: 64K to 4G (default 16M)", 2},
    {"dump-buffers", KEY_DUMP_BUFFERS, "N", 0,
     "Buffers of records for each AICPU thread, 2 to 64 (default 16)", 2},
    {"dump-stall-timeout", KEY_DUMP_STALL_TIMEOUT, "S", 0,
     "Seconds that a capture may wait for room before its record is lost (default 30)", 2},
    {0}};

/* Whether a word is a level of --dump-tensor, which takes it after a "=" alone. */
static bool is_level(const char *text) {
    uint32_t level;
    return gbx_name_find(&gbx_dump_levels, text, &level);
}

static error_t parse_dump(int key, char *argument, struct argp_state *state) {
    dump_arguments *dump = state->input;
    gbx_call_config *call = &dump->run->call;
    uint32_t level = GBX_DUMP_FULL;
    char known[64];
    switch (key) {
    case KEY_DUMP_TENSOR:
        gbx_name_list(&gbx_dump_levels, known, sizeof known);
        if (argument && !gbx_name_find(&gbx_dump_levels, argument, &level))
            argp_error(state, "--dump-tensor: \"%s\" is none of %s", argument, known);
        call->enable_dump_tensor = (gbx_dump_level)level;
        return 0;
    case KEY_DUMP_ARGS:
        call->enable_dump_args = true;
        return 0;
    case 'o':
        if (!argument[0])
            argp_error(state, "--output: an empty name; a directory is expected");
        dump->run->output = argument;
        dump->needs_dump = "--output";
        return 0;
    case KEY_DUMP_ARENA:
        call->dump.arena_bytes = gbx_option_size(
            state, "--dump-arena", argument, GBX_MIN_DUMP_ARENA_BYTES, GBX_MAX_DUMP_ARENA_BYTES);
        dump->needs_dump = "--dump-arena";
        return 0;
    case KEY_DUMP_BUFFERS:
        call->dump.buffer_count = (uint32_t)gbx_option_integer(
            state, "--dump-buffers", argument, GBX_MIN_DUMP_BUFFERS, GBX_MAX_DUMP_BUFFERS);
        dump->needs_dump = "--dump-buffers";
        return 0;
    case KEY_DUMP_STALL_TIMEOUT:
        call->dump.stall_timeout_ms = gbx_option_seconds(state, "--dump-stall-timeout", argument);
        dump->needs_dump = "--dump-stall-timeout";
        return 0;
    case KEY_DUMP_FILTER:
        if (call->dump.filter_count == GBX_MAX_DUMP_FILTERS)
            argp_error(state, "--dump-filter: more than %d filters", GBX_MAX_DUMP_FILTERS);
        dump->filters[call->dump.filter_count++] = argument;
        call->dump.filters = dump->filters;
        dump->needs_tensor = "--dump-filter";
        return 0;
    case KEY_DUMP_STATS:
        call->dump.has_stats = true;
        dump->needs_tensor = "--dump-stats";
        return 0;
    case KEY_DUMP_MAX_TENSOR:
        call->dump.max_tensor_bytes =
            gbx_option_size(state, "--dump-max-tensor", argument, 1, GBX_MAX_GM_BYTES);
        dump->needs_tensor = "--dump-max-tensor";
        return 0;
    case KEY_NO_DEDUP:
        call->dump.keeps_duplicates = true;
        dump->needs_tensor = "--no-dedup";
        return 0;
    case ARGP_KEY_END: /* options that mean nothing without others would be taken for granted */
        if (dump->needs_tensor && call->enable_dump_tensor == GBX_DUMP_OFF)
            argp_error(state, "%s means nothing without --dump-tensor", dump->needs_tensor);
        if (dump->needs_dump && call->enable_dump_tensor == GBX_DUMP_OFF && !call->enable_dump_args)
            argp_error(state, "%s means nothing without --dump-tensor or --dump-args",
                       dump->needs_dump);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp dump_parser = {.options = dump_options, .parser = parse_dump};

/* --- the command line --- */

/* The command line as it can be given to a shell again: "glassbox run ..."; the caller frees it,
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

/* --- options of the command --- */

enum { CASES_MAX = 256, ROUNDS_MAX = 1000000 };

enum {
    KEY_CASE = 0x100, /* no letters: the long names alone */
    KEY_RUNTIME,
    KEY_BLOCKS,
    KEY_THREADS,
    KEY_DEVICE,
    KEY_BUILD,
    KEY_WINDOW,
    KEY_GM,
    KEY_NO_GOLDEN,
    KEY_ROUNDS,
    KEY_TIMEOUT,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"case", KEY_CASE, "NAME", 0,
     "The case to run; may be repeated; all: every one (default: the first)", 0},
    {"platform", 'p', "NAME", 0, "a2a3sim (default) or a5sim", 0},
    {"runtime", KEY_RUNTIME, "NAME", 0,
     "tensormap_and_ringbuffer (default), aicpu_build_graph or host_build_graph", 0},
    {"blocks", KEY_BLOCKS, "N", 0, "Blocks of the chip, 1 to 24 (default 8)", 0},
    {"threads", KEY_THREADS, "N", 0, "AICPU threads, 1 to 8 (default 2)", 0},
    {"device", KEY_DEVICE, "WHERE", 0,
     "The chip is a process (default), or thread: inside this one", 0},
    {"build", KEY_BUILD, "HOW", 0,
     "aicpu_build_graph: concurrent (default), or sequential: tasks run once all are built", 0},
    {"window", KEY_WINDOW, "N", 0, "tensormap_and_ringbuffer: tasks at a time (default 16384)", 0},
    {"gm", KEY_GM, "SIZE", 0, "Global memory of the chip: 512M, 4G... (default 8G)", 0},
    {"no-golden", KEY_NO_GOLDEN, NULL, 0, "Do not compare the outputs", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "Run each case N times on the open chip", 0},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "Seconds without progress that are taken for a hang (default 10)", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON document", 0},
    {"verbose", 'v', NULL, 0, "Tell about outputs that are right, too", 0},
    {0}};

typedef struct command_line {
    const char *scene;
    const char *case_names[CASES_MAX];
    size_t case_name_count;
    gbx_scene_options run;
    dump_arguments dump;
    bool as_json;
    bool is_verbose;
} command_line;

/* What the observer gets. */
typedef struct run_output {
    gbx_progress *progress;
    gbx_run_layout layout;
    gbx_run_report *report; /* NULL for text */
    gbx_status failure;     /* of keeping a result */
} run_output;

static const char *choose_name(struct argp_state *state, const char *option, const char *text,
                               const char *(*name_of)(uint32_t)) {
    const char *names[GBX_SCENE_MAX_RUNTIMES + 1] = {NULL};
    for (uint32_t i = 0; i < GBX_SCENE_MAX_RUNTIMES && name_of(i); ++i)
        names[i] = name_of(i);
    return names[gbx_option_choice(state, option, text, names)];
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    static const char *const devices[] = {"process", "thread", NULL};
    static const char *const builds[] = {"concurrent", "sequential", NULL};
    command_line *line = state->input;
    gbx_scene_options *run = &line->run;
    const char *level;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &line->dump;
        return 0;
    case ARGP_KEY_ARG:
        level = line->scene && is_level(line->scene) ? line->scene : argument;
        if (line->scene && is_level(level))
            argp_error(state, "\"%s\" is not expected; a level is written --dump-tensor=%s", level,
                       level);
        else if (line->scene)
            argp_error(state, "\"%s\" is not expected; one scene is run at a time", argument);
        line->scene = argument;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which scene? A directory with a scene.json is expected");
        return EINVAL;
    case KEY_CASE:
        if (line->case_name_count == CASES_MAX)
            argp_error(state, "--case: more than %d cases", CASES_MAX);
        line->case_names[line->case_name_count++] = argument;
        return 0;
    case KEY_JSON:
        line->as_json = true;
        return 0;
    case 'v':
        line->is_verbose = true;
        return 0;
    case 'p':
        run->chip.platform = choose_name(state, "--platform", argument, gbx_platform_name);
        return 0;
    case KEY_RUNTIME:
        run->runtime = choose_name(state, "--runtime", argument, gbx_runtime_name);
        return 0;
    case KEY_BLOCKS:
        run->chip.blocks =
            (uint32_t)gbx_option_integer(state, "--blocks", argument, 1, GBX_MAX_BLOCKS);
        return 0;
    case KEY_THREADS:
        run->chip.aicpu_threads =
            (uint32_t)gbx_option_integer(state, "--threads", argument, 1, GBX_MAX_AICPU_THREADS);
        return 0;
    case KEY_DEVICE:
        run->chip.device = (gbx_device_mode)gbx_option_choice(state, "--device", argument, devices);
        return 0;
    case KEY_BUILD:
        run->call.build = (gbx_build_mode)gbx_option_choice(state, "--build", argument, builds);
        return 0;
    case KEY_WINDOW:
        run->call.window =
            (uint32_t)gbx_option_integer(state, "--window", argument, 1, GBX_MAX_WINDOW);
        return 0;
    case KEY_GM:
        run->chip.gm_bytes = gbx_option_size(state, "--gm", argument, 1, GBX_MAX_GM_BYTES);
        return 0;
    case KEY_ROUNDS:
        run->rounds = (uint32_t)gbx_option_integer(state, "--rounds", argument, 1, ROUNDS_MAX);
        return 0;
    case KEY_TIMEOUT:
        run->call.timeout_ms = gbx_option_seconds(state, "--timeout", argument);
        return 0;
    case KEY_NO_GOLDEN:
        run->skips_golden = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&dump_parser, 0, "Dumps:", 1}, {0}};

static const struct argp parser = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "SCENE",
    .doc =
        "Runs the task graph of a scene and compares its outputs with what is expected. SCENE is "
        "a directory with a scene.json, or the file itself.\v"
        "exit codes: 0 done, and outputs are as expected; 1 some differ, or a filter matched "
        "nothing; 2 usage, the scene, a kernel or the graph is wrong; 3 the device failed; 4 "
        "records of a dump were lost, or the disk failed.\n\n"
        "examples:\n  glassbox run examples/vector_example\n"
        "  glassbox run examples/vector_example --case all --runtime host_build_graph\n"
        "  glassbox run examples/vector_example -p a5sim --blocks 24 --rounds 3 --json\n"
        "  glassbox run examples/vector_example --dump-tensor --dump-args -o dumps/one\n"
        "  glassbox run examples/paged_attention --dump-tensor=stats\n"
        "  glassbox run examples/paged_attention --dump-tensor \\\n"
        "      --dump-filter 'kernel=*softmax*,stage=after_completion' \\\n"
        "      --dump-filter task=10..20",
};

/* --- running --- */

static void on_phase(void *context, const gbx_scene_case *of_case, const char *what) {
    run_output *output = context;
    gbx_progress_phase(output->progress, of_case ? of_case->name : NULL, what);
}

static void on_progress(void *context, uint64_t tasks) {
    run_output *output = context;
    gbx_progress_tasks(output->progress, tasks);
}

static void on_result(void *context, const gbx_round_result *result) {
    run_output *output = context;
    gbx_progress_hide(output->progress);
    if (!output->report) {
        gbx_run_print_result(&output->layout, result);
        return;
    }
    gbx_run_print_error(result);
    output->failure = gbx_status_first(output->failure, gbx_run_report_add(output->report, result));
}

/* "all" is every case, unless one is called so. */
static gbx_status add_cases(const gbx_scene *scene, const char *name, const gbx_scene_case **cases,
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
        return gbx_fail(GBX_NOT_FOUND, "%s: there is no case \"%s\"; there are %s", scene->path,
                        name, known);
    }
    for (size_t i = first; i < end && *count < CASES_MAX; ++i)
        cases[(*count)++] = &scene->cases[i];
    return NULL;
}

static gbx_status run_scene(const command_line *line, const gbx_scene *scene, int *out_exit_code) {
    const gbx_scene_case *cases[CASES_MAX];
    size_t count = 0;
    if (line->case_name_count == 0)
        cases[count++] = &scene->cases[0];
    for (size_t i = 0; i < line->case_name_count; ++i)
        GBX_TRY(add_cases(scene, line->case_names[i], cases, &count));
    run_output output = {.layout = {.rounds = line->run.rounds, .is_verbose = line->is_verbose}};
    for (size_t i = 0; i < count; ++i) {
        int width = (int)gbx_terminal_text_width(cases[i]->name);
        if (width > output.layout.name_width)
            output.layout.name_width = width;
    }
    if (line->as_json && !(output.report = gbx_run_report_create()))
        return gbx_fail_memory("running %s", scene->name);
    output.progress = gbx_progress_start();
    gbx_scene_observer observer = {&output, on_phase, on_progress, on_result};
    gbx_status status = gbx_scene_run(scene, cases, count, &line->run, &observer, out_exit_code);
    gbx_progress_stop(output.progress);
    status = gbx_status_first(status, output.failure);
    if (!status && output.report)
        status = gbx_run_report_print(output.report, scene, &line->run);
    gbx_run_report_free(output.report);
    return status;
}

int gbx_command_run(int argc, char **argv) {
    command_line line = {.run = {.chip = {.platform = gbx_platform_name(0),
                                          .blocks = GBX_DEFAULT_BLOCKS,
                                          .aicpu_threads = GBX_DEFAULT_AICPU_THREADS},
                                 .runtime = gbx_runtime_name(0),
                                 .rounds = 1}};
    line.dump.run = &line.run;
    char *command = command_text(argc, argv); /* before options move to the front */
    gbx_command_parse(&parser, "run", argc, argv, &line);
    line.run.call.dump.about.command = command;
    gbx_scene *scene;
    int exit_code = GBX_EXIT_OK;
    gbx_status status = gbx_scene_load(line.scene, &scene);
    if (!status)
        status = run_scene(&line, scene, &exit_code);
    gbx_scene_free(scene);
    free(command);
    return gbx_command_end("run", status, exit_code);
}
