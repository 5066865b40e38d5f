#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/memory.h"
#include "report/ending.h"

enum { FIRST_KEY = 0x100, OPTIONS_MAX = 64 }; /* keys that are not letters: long names only */

/* --- values --- */

/* Digits only: no sign, no blank, nothing after them but what *out_end points at. */
static bool read_digits(const char *text, uint64_t *out_value, const char **out_end) {
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *out_value = strtoull(text, &end, 10);
    *out_end = end;
    return errno == 0;
}

uint64_t gbx_option_integer(struct argp_state *state, const gbx_option *option, const char *text,
                            uint64_t min, uint64_t max) {
    uint64_t value = 0;
    const char *end = text;
    if (!read_digits(text, &value, &end) || *end || value < min || value > max)
        argp_error(state, "--%s: \"%s\" is not an integer from %" PRIu64 " to %" PRIu64,
                   option->name, text, min, max);
    return value;
}

/* The power of two that "", "K", "MiB"... stand for; -1 for anything else. */
static int suffix_shift(const char *suffix) {
    static const char letters[] = "KMGT";
    if (!suffix[0] || strcasecmp(suffix, "B") == 0)
        return 0;
    const char *letter = strchr(letters, toupper((unsigned char)suffix[0]));
    const char *rest = suffix + 1;
    if (!letter || (rest[0] && strcasecmp(rest, "iB") != 0 && strcasecmp(rest, "B") != 0))
        return -1;
    return 10 * (int)(letter - letters + 1);
}

static uint64_t read_size(struct argp_state *state, const gbx_option *option, const char *text) {
    uint64_t value = 0;
    const char *end = text;
    bool is_number = read_digits(text, &value, &end);
    int shift = is_number ? suffix_shift(end) : -1;
    if (shift < 0 || !gbx_checked_mul_u64(value, UINT64_C(1) << shift, &value) ||
        value < option->min || value > option->max)
        argp_error(state,
                   "--%s: \"%s\" is not a size from %" PRIu64 " to %" PRIu64
                   " bytes; write a number, with K, M or G for powers of 1024",
                   option->name, text, option->min, option->max);
    return value;
}

static uint32_t read_seconds(struct argp_state *state, const gbx_option *option, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0.001 && seconds <= UINT32_MAX / 1000.0))
        argp_error(state, "--%s: \"%s\" is not a number of seconds from 0.001 to %.0f",
                   option->name, text, UINT32_MAX / 1000.0);
    return (uint32_t)(seconds * 1000.0);
}

double gbx_option_real(struct argp_state *state, const gbx_option *option, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0.0)
        argp_error(state, "--%s: \"%s\" is not a finite number of 0 or more", option->name, text);
    return value;
}

const char *gbx_option_next_word(const gbx_option *option, uint32_t *number) {
    uint32_t i = (*number)++;
    if (option->choices)
        return option->choices[i];
    if (option->choice_name)
        return option->choice_name(i);
    while (option->names && i < option->names->count && !option->names->rows[i].name)
        i = (*number)++;
    return option->names && i < option->names->count ? option->names->rows[i].name : NULL;
}

uint32_t gbx_option_choice(struct argp_state *state, const gbx_option *option, const char *text) {
    char known[512] = "";
    size_t used = 0;
    uint32_t number = 0;
    const char *last = NULL;
    if (option->names && gbx_name_find(option->names, text, &number))
        return number;
    number = 0;
    for (const char *word; (word = gbx_option_next_word(option, &number)); last = word) {
        if (strcmp(word, text) == 0)
            return number - 1;
        if (last && used < sizeof known)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", last);
    }
    argp_error(state, "--%s: unknown value \"%s\"; expected %s%s%s", option->name, text, known,
               used ? " or " : "", last ? last : "");
    return 0;
}

/* --- parsing --- */

/* An option where it lies in the struct of its command. */
typedef struct placed_option {
    const gbx_option *option;
    char *group; /* the struct that its offset counts in */
} placed_option;

typedef struct parsing {
    const gbx_command *command;
    void *line;
    size_t argument_count;
    placed_option options[OPTIONS_MAX];
    size_t count;
} parsing;

static void read_option(struct argp_state *state, const placed_option *placed, char *text) {
    const gbx_option *option = placed->option;
    uint64_t value = true; /* of a flag */
    switch (option->kind) {
    case GBX_OPTION_FLAG:
        break;
    case GBX_OPTION_TEXT:
        if (!text[0])
            argp_error(state, "--%s: the name is empty", option->name);
        value = (uintptr_t)text;
        break;
    case GBX_OPTION_INTEGER:
        value = gbx_option_integer(state, option, text, option->min, option->max);
        break;
    case GBX_OPTION_SIZE:
        value = read_size(state, option, text);
        break;
    case GBX_OPTION_SECONDS:
        value = read_seconds(state, option, text);
        break;
    case GBX_OPTION_CHOICE:
        value = gbx_option_choice(state, option, text);
        break;
    case GBX_OPTION_CUSTOM:
        option->read(state, option, text, placed->group);
        return;
    }
    memcpy(placed->group + option->offset, &value, option->bytes); /* little-endian */
}

static void read_argument(struct argp_state *state, parsing *p, const char *text) {
    const gbx_command *command = p->command;
    if (p->argument_count == command->most || !text[0]) {
        argp_error(state, "%s argument \"%s\": %s takes %s", text[0] ? "unexpected" : "empty", text,
                   command->name, command->takes);
        return;
    }
    const char **arguments = (const char **)(void *)((char *)p->line + command->arguments_offset);
    arguments[p->argument_count++] = text;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    parsing *p = state->input;
    if (key == ARGP_KEY_ARG) {
        read_argument(state, p, text);
        return 0;
    }
    if (key == ARGP_KEY_END) {
        if (p->argument_count < p->command->least)
            argp_error(state, "missing argument: %s takes %s", p->command->name, p->command->takes);
        if (p->command->check)
            p->command->check(state, p->line);
        return 0;
    }
    for (size_t i = 0; i < p->count; ++i) {
        char letter = p->options[i].option->letter;
        if (key == FIRST_KEY + (int)i || (letter && key == letter)) {
            read_option(state, &p->options[i], text);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

/* A table of options that is too long for list_options. */
static bool has_too_many(const gbx_command *command) {
    size_t count = 0;
    for (size_t g = 0; g < GBX_GROUPS_MAX && command->groups[g].options; ++g)
        for (const gbx_option *option = command->groups[g].options; option->name; ++option)
            ++count;
    return count > OPTIONS_MAX;
}

/* Lists the options for argp; headings are rows of their own. argp sorts the options of its groups
 * by name: those without a heading are a group each, and so keep their order. */
static void list_options(parsing *p, struct argp_option *out_rows) {
    size_t rows = 0;
    int next = 1;
    for (size_t g = 0; g < GBX_GROUPS_MAX && p->command->groups[g].options; ++g) {
        const gbx_option_group *group = &p->command->groups[g];
        if (group->heading)
            out_rows[rows++] = (struct argp_option){.doc = group->heading, .group = next};
        for (const gbx_option *option = group->options; option->name; ++option, ++p->count) {
            p->options[p->count] = (placed_option){option, (char *)p->line + group->offset};
            out_rows[rows++] = (struct argp_option){
                .name = option->name,
                .key = option->letter ? option->letter : FIRST_KEY + (int)p->count,
                .arg = option->value,
                .flags = option->may_lack_text ? OPTION_ARG_OPTIONAL : 0,
                .doc = option->help,
                .group = group->heading ? next : next++};
        }
        ++next;
    }
    out_rows[rows] = (struct argp_option){0};
}

/* Description, exit codes and examples; freed by the caller, NULL when memory is out. */
static char *help_text(const gbx_command *command) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    fprintf(out, "%s\vexit codes: ", command->description);
    for (const gbx_exit_meaning *exit = command->exits; exit->meaning; ++exit)
        fprintf(out, "%s%d %s", exit > command->exits ? "; " : "", exit->code, exit->meaning);
    fputs("\n\nexamples:", out);
    for (const char *line = command->examples; *line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "\n  %.*s", length, line);
        line += length + (line[length] == '\n');
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Ends the program with GBX_EXIT_USAGE and one sentence where the words are wrong. */
static gbx_status parse_words(const gbx_command *command, void *line, int argc, char **argv) {
    struct argp_option rows[OPTIONS_MAX + GBX_GROUPS_MAX + 1];
    parsing p = {.command = command, .line = line};
    char name[64];
    snprintf(name, sizeof name, "glassbox %s", command->name);
    if (has_too_many(command))
        return gbx_fail(GBX_INTERNAL, "the command has more than %d options", OPTIONS_MAX);
    char *doc = help_text(command);
    if (!doc)
        return gbx_fail_memory("reading the options");
    list_options(&p, rows);
    const struct argp parser = {.options = p.count > 0 ? rows : NULL, /* argp leaks an empty list */
                                .parser = parse,
                                .args_doc = command->arguments,
                                .doc = doc};
    argv[0] = name;
    argp_err_exit_status = GBX_EXIT_USAGE;
    if (argp_parse(&parser, argc, argv, 0, NULL, &p) != 0)
        exit(GBX_EXIT_USAGE);
    free(doc);
    return NULL;
}

int gbx_command_execute(const gbx_command *command, gbx_sink *sink, int argc, char **argv) {
    gbx_invocation invocation = {.sink = sink, .argc = argc, .exit_code = GBX_EXIT_OK};
    size_t words = (size_t)argc + 1;
    void *line = calloc(1, command->line_bytes + 1);
    char **parsed = calloc(words, sizeof *parsed); /* argp moves options to the front */
    gbx_status status = line && parsed ? NULL : gbx_fail_memory("reading the options");
    if (!status) {
        memcpy(parsed, argv, words * sizeof *parsed);
        invocation.argv = argv;
        if (command->defaults)
            memcpy(line, command->defaults, command->line_bytes);
        status = parse_words(command, line, argc, parsed);
    }
    if (!status && command->run)
        status = command->run(line, &invocation);
    free(parsed);
    free(line);
    return gbx_command_end(command->name, status, invocation.exit_code);
}
