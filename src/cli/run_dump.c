#include "cli/run_dump.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/option_values.h"

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

static const struct argp_option options[] = {
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

static const char *const levels[] = {"full", "partial", "hybrid", "stats", NULL};

bool gbx_run_dump_is_level(const char *text) {
    size_t i = 0;
    while (levels[i] && strcmp(levels[i], text) != 0)
        ++i;
    return levels[i] != NULL;
}

static gbx_dump_level parse_level(struct argp_state *state, const char *text) {
    size_t index = text ? gbx_option_choice(state, "--dump-tensor", text, levels) : 0;
    return (gbx_dump_level)(GBX_DUMP_FULL + index);
}

static void add_filter(struct argp_state *state, gbx_run_dump *dump, const char *text) {
    gbx_dump_options *options_of_dump = &dump->run->call.dump;
    if (options_of_dump->filter_count == GBX_MAX_DUMP_FILTERS)
        argp_error(state, "--dump-filter: more than %d filters", GBX_MAX_DUMP_FILTERS);
    dump->filters[options_of_dump->filter_count++] = text;
    options_of_dump->filters = dump->filters;
}

static void set_output(struct argp_state *state, gbx_run_dump *dump, const char *text) {
    if (!text[0])
        argp_error(state, "--output: an empty name; a directory is expected");
    dump->run->output = text;
}

/* Options that mean nothing without others would be taken for granted, so they are refused. */
static void check_together(struct argp_state *state, const gbx_run_dump *dump) {
    bool has_tensor = dump->run->call.enable_dump_tensor != GBX_DUMP_OFF;
    if (dump->needs_tensor && !has_tensor)
        argp_error(state, "%s means nothing without --dump-tensor", dump->needs_tensor);
    if (dump->needs_dump && !has_tensor && !dump->run->call.enable_dump_args)
        argp_error(state, "%s means nothing without --dump-tensor or --dump-args",
                   dump->needs_dump);
}

/* What is recorded of tensors. */
static error_t parse_tensor(int key, char *argument, struct argp_state *state, gbx_run_dump *dump) {
    gbx_dump_options *out = &dump->run->call.dump;
    switch (key) {
    case KEY_DUMP_FILTER:
        add_filter(state, dump, argument);
        dump->needs_tensor = "--dump-filter";
        return 0;
    case KEY_DUMP_STATS:
        out->has_stats = true;
        dump->needs_tensor = "--dump-stats";
        return 0;
    case KEY_DUMP_MAX_TENSOR:
        out->max_tensor_bytes =
            gbx_option_size(state, "--dump-max-tensor", argument, 1, GBX_MAX_GM_BYTES);
        dump->needs_tensor = "--dump-max-tensor";
        return 0;
    case KEY_NO_DEDUP:
        out->keeps_duplicates = true;
        dump->needs_tensor = "--no-dedup";
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    gbx_run_dump *dump = state->input;
    gbx_call_config *call = &dump->run->call;
    switch (key) {
    case KEY_DUMP_TENSOR:
        call->enable_dump_tensor = parse_level(state, argument);
        return 0;
    case KEY_DUMP_ARGS:
        call->enable_dump_args = true;
        return 0;
    case 'o':
        set_output(state, dump, argument);
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
    case ARGP_KEY_END:
        check_together(state, dump);
        return 0;
    default:
        return parse_tensor(key, argument, state, dump);
    }
}

const struct argp gbx_run_dump_parser = {.options = options, .parser = parse};

/* --- the command line --- */

static bool is_plain(const char *word) {
    for (const char *c = word; *c; ++c)
        if (!isalnum((unsigned char)*c) && !strchr("_-+=@%,./:", *c))
            return false;
    return word[0] != '\0';
}

static void write_quoted(FILE *out, const char *word) {
    fputc('\'', out);
    for (const char *c = word; *c; ++c) {
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    }
    fputc('\'', out);
}

char *gbx_run_command_text(int argc, char **argv) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fputs("glassbox run", out);
    for (int i = 1; i < argc; ++i) {
        fputc(' ', out);
        if (is_plain(argv[i]))
            fputs(argv[i], out);
        else
            write_quoted(out, argv[i]);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
