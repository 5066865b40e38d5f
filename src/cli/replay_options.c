#include "cli/replay_options.h"

#include <string.h>

#include "cli/command.h"
#include "cli/option_values.h"
#include "store/dump_path.h"
#include "text/filter_values.h"

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

static void parse_task(gbx_replay_options *line, const char *text, struct argp_state *state) {
    bool is_id = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
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

static void add_kernel(gbx_replay_options *line, const char *text, struct argp_state *state) {
    if (line->kernels.count == GBX_REPLAY_KERNEL_FILES)
        argp_error(state, "--kernel: more than %d are not expected", GBX_REPLAY_KERNEL_FILES);
    line->kernels.items[line->kernels.count++] = text;
}

/* Options that say nothing together. */
static void check_options(struct argp_state *state, const gbx_replay_options *line) {
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

static error_t parse_flags(int key, char *argument, struct argp_state *state,
                           gbx_replay_options *line) {
    switch (key) {
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
        if (line->dump)
            argp_error(state, "\"%s\" is not expected; one dump is replayed at a time", argument);
        line->dump = argument;
        return 0;
    case ARGP_KEY_END:
        check_options(state, line);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    gbx_replay_options *line = state->input;
    switch (key) {
    case KEY_TASK:
        parse_task(line, argument, state);
        return 0;
    case KEY_DISPATCH:
        line->dispatch = (int64_t)gbx_option_integer(state, "--dispatch", argument, 0, UINT32_MAX);
        return 0;
    case KEY_KERNEL:
        add_kernel(line, argument, state);
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
    default:
        return parse_flags(key, argument, state, line);
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

void gbx_replay_options_parse(int argc, char **argv, gbx_replay_options *out_options) {
    *out_options =
        (gbx_replay_options){.dispatch = -1, .runs = 1, .timeout_ms = DEFAULT_TIMEOUT_MS};
    gbx_command_parse(&parser, "replay", argc, argv, out_options);
}
