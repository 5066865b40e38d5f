/*
 * Writes manual pages and completions from the tables of the commands, while glassbox is built.
 *
 * usage: generate-docs man DIRECTORY OUTPUT...      one page for each OUTPUT: .../glassbox-view.1
 *        generate-docs completion TEMPLATE OUTPUT
 *
 * DIRECTORY holds what pages say beside their tables, in roff: NAME.roff, where there is something.
 * What comes before its first section belongs to DESCRIPTION. In a template @NAME@ at the end
 * of a line stands for what is generated.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glassbox/glassbox.h>

#include "analysis/export/export.h"
#include "cli/command.h"
#include "cli/filters.h"

static _Noreturn void fail(const char *doing, const char *what) {
    fprintf(stderr, "generate-docs: %s %s: %s\n", doing, what, strerror(errno));
    exit(GBX_EXIT_USAGE);
}

/* All of a file; NULL where there is none. */
static char *read_file(const char *path) {
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    if (!in)
        return NULL;
    if (getdelim(&text, &capacity, '\0', in) < 0)
        fail("reading", path);
    fclose(in);
    return text;
}

/* Calls `each` for every option of a command, with the heading above it. */
typedef void (*option_visitor)(FILE *out, const gbx_command *command, const gbx_option *option,
                               const char *heading);

static void visit_options(FILE *out, const gbx_command *command, option_visitor each) {
    for (size_t g = 0; g < GBX_GROUPS_MAX && command->groups[g].options; ++g)
        for (const gbx_option *o = command->groups[g].options; o->name; ++o)
            each(out, command, o,
                 o == command->groups[g].options ? command->groups[g].heading : NULL);
}

/* --- manual pages --- */

static bool is_option_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '-';
}

/* Plain text as roff, up to `end`; options in bold. */
static void put_roff_part(FILE *out, const char *text, const char *end) {
    bool is_bold = false;
    for (const char *at = text; at < end; ++at) {
        bool begins = *at == '-' && at[1] == '-' && (at == text || strchr(" ([", at[-1]));
        if (begins)
            fputs("\\fB", out);
        is_bold |= begins;
        if (is_bold && !is_option_letter(*at)) {
            fputs("\\fR", out);
            is_bold = false;
        }
        if (*at == '-')
            fputs("\\-", out);
        else if (*at == '\\')
            fputs("\\e", out);
        else if (*at == '\'')
            fputs("\\(aq", out);
        else if (*at == '.' && (at == text || at[-1] == '\n'))
            fputs("\\&.", out);
        else
            fputc(*at, out);
    }
    if (is_bold)
        fputs("\\fR", out);
}

static void put_roff(FILE *out, const char *text) {
    put_roff_part(out, text, text + strlen(text));
}

/* A sentence: with a period at its end. */
static void put_sentence(FILE *out, const char *text) {
    put_roff(out, text);
    fputs(text[strlen(text) - 1] == '.' ? "\n" : ".\n", out);
}

static void put_option(FILE *out, const gbx_command *command, const gbx_option *option,
                       const char *heading) {
    (void)command;
    if (heading)
        fprintf(out, ".SS \"%.*s\"\n", (int)strcspn(heading, ":"), heading);
    fputs(".TP\n", out);
    if (option->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    put_roff(out, option->name);
    fputs("\\fR", out);
    if (option->value)
        fprintf(out, option->may_lack_text ? "[=\\fI%s\\fR]" : " \\fI%s\\fR", option->value);
    fputc('\n', out);
    put_sentence(out, option->help);
    if (option->manual)
        put_sentence(out, option->manual);
}

static void put_exits(FILE *out, const gbx_command *command) {
    fputs(".SH EXIT STATUS\n", out);
    for (const gbx_exit_meaning *exit = command->exits; exit->meaning; ++exit) {
        fprintf(out, ".TP\n.B %d\n%c", exit->code, toupper((unsigned char)exit->meaning[0]));
        put_sentence(out, exit->meaning + 1);
    }
}

static void put_examples(FILE *out, const char *examples) {
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_roff(out, examples);
    fputs(".fi\n", out);
}

static bool has_page(const gbx_command *command) {
    return strcmp(command->name, "help") != 0;
}

/* All other pages. */
static void put_see_also(FILE *out, const gbx_command *command) {
    const char *comma = "";
    fputs(".SH SEE ALSO\n", out);
    if (command)
        fputs(".BR glassbox (1)", out);
    for (size_t i = 0; gbx_commands[i]; ++i) {
        if (gbx_commands[i] == command || !has_page(gbx_commands[i]))
            continue;
        comma = command || i > 0 ? ",\n" : "";
        fprintf(out, "%s.BR glassbox\\-%s (1)", comma, gbx_commands[i]->name);
    }
    fputc('\n', out);
}

/* The text before the first section of a prose file, with a request before it, and the sections. */
static void put_lead(FILE *out, const char *before, const char *prose) {
    const char *sections = prose ? strstr(prose, ".SH ") : NULL;
    if (prose && sections != prose)
        fprintf(out, "%s%.*s", before, (int)(sections ? sections - prose : (long)strlen(prose)),
                prose);
}

static void put_sections(FILE *out, const char *prose) {
    const char *sections = prose ? strstr(prose, ".SH ") : NULL;
    if (sections)
        fputs(sections, out);
}

static void put_title(FILE *out, const char *name, const char *summary) {
    fprintf(out, ".TH GLASSBOX%s", name ? "\\-" : "");
    for (const char *at = name ? name : ""; *at; ++at)
        fputc(toupper((unsigned char)*at), out);
    fprintf(out, " 1 \"\" \"glassbox %s\" \"User Commands\"\n", gbx_version());
    fprintf(out, ".SH NAME\nglassbox%s%s \\- ", name ? "\\-" : "", name ? name : "");
    put_roff(out, summary);
    fputc('\n', out);
}

static void put_page(FILE *out, const gbx_command *command, const char *prose) {
    put_title(out, command->name, command->summary);
    fprintf(out, ".SH SYNOPSIS\n.B glassbox %s\n.RI [ OPTIONS ]\n", command->name);
    if (command->arguments)
        fprintf(out, ".I %s\n", command->arguments);
    fputs(".SH DESCRIPTION\n", out);
    put_sentence(out, command->description);
    put_lead(out, ".PP\n", prose);
    fputs(".SH OPTIONS\n", out);
    visit_options(out, command, put_option);
    fputs(".SS \"Every command\"\n"
          ".TP\n\\fB\\-?\\fR, \\fB\\-\\-help\\fR\nPrint the options and examples.\n"
          ".TP\n\\fB\\-\\-usage\\fR\nPrint one line of usage.\n",
          out);
    put_exits(out, command);
    put_sections(out, prose);
    put_examples(out, command->examples);
    put_see_also(out, command);
}

/* The page of glassbox itself; the list of commands comes behind DESCRIPTION. */
static void put_overview(FILE *out, const char *prose) {
    put_title(out, NULL, "task graphs of kernels on a simulated accelerator");
    fputs(".SH SYNOPSIS\n.B glassbox\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n", out);
    put_lead(out, "", prose);
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; gbx_commands[i]; ++i) {
        const char *arguments = gbx_commands[i]->arguments;
        fprintf(out, ".TP\n\\fBglassbox %s\\fR%s%s%s\n", gbx_commands[i]->name,
                arguments ? " \\fI" : "", arguments ? arguments : "", arguments ? "\\fR" : "");
        fputc(toupper((unsigned char)gbx_commands[i]->summary[0]), out);
        put_sentence(out, gbx_commands[i]->summary + 1);
    }
    put_sections(out, prose);
    put_see_also(out, NULL);
}

/* "glassbox-view.1" is that of view, "glassbox.1" that of all. */
static void write_page(const char *directory, const char *path) {
    char prose_path[4096], name[64] = "";
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    sscanf(base, "glassbox-%63[a-z].1", name);
    snprintf(prose_path, sizeof prose_path, "%s/%s.roff", directory, name[0] ? name : "glassbox");
    char *prose = read_file(prose_path);
    FILE *out = fopen(path, "w");
    if (!out)
        fail("writing", path);
    const gbx_command *command = NULL;
    for (size_t i = 0; gbx_commands[i]; ++i)
        command = strcmp(gbx_commands[i]->name, name) == 0 ? gbx_commands[i] : command;
    if (command)
        put_page(out, command, prose);
    else
        put_overview(out, prose);
    if (fclose(out) != 0)
        fail("writing", path);
    free(prose);
}

/* --- completions --- */

/* The words that a value may be, each through `format`. */
static void put_words(FILE *out, const gbx_option *option, const char *format) {
    uint32_t number = 0;
    bool is_numpy = option->completion == GBX_COMPLETE_NUMPY_DTYPE;
    for (const char *word; (word = gbx_option_next_word(option, &number));)
        fprintf(out, format, word);
    for (uint32_t dtype = 0; dtype < GBX_DTYPE_COUNT; ++dtype)
        if (is_numpy ? gbx_export_is_target(dtype) : option->completion == GBX_COMPLETE_DTYPE)
            fprintf(out, format, gbx_dtype_name(dtype));
}

static bool has_words(const gbx_option *option) {
    uint32_t number = 0;
    return option->completion == GBX_COMPLETE_DTYPE ||
           option->completion == GBX_COMPLETE_NUMPY_DTYPE || gbx_option_next_word(option, &number);
}

/* What a value is, other than one of some words; NULL. */
static const char *kind_of(gbx_completion completion) {
    switch (completion) {
    case GBX_COMPLETE_FILE:
        return "file";
    case GBX_COMPLETE_DIRECTORY:
        return "directory";
    case GBX_COMPLETE_SCENE:
        return "scene";
    case GBX_COMPLETE_COMMAND:
        return "command";
    case GBX_COMPLETE_KERNEL:
        return "kernel";
    case GBX_COMPLETE_CASE:
        return "case";
    case GBX_COMPLETE_FILTER:
        return "filter";
    default:
        return NULL;
    }
}

static const char *argument_kind(const gbx_command *command) {
    const char *kind = kind_of(command->completion);
    return !command->arguments ? NULL : kind ? kind : "directory";
}

/* bash: "--json", "--limit=", "--dump-tensor[=]" */
static void put_bash_name(FILE *out, const gbx_command *command, const gbx_option *option,
                          const char *heading) {
    const char *form = !option->value ? "" : option->may_lack_text ? "[=]" : "=";
    (void)command;
    (void)heading;
    if (option->letter)
        fprintf(out, " -%c%s", option->letter, form);
    fprintf(out, " --%s%s", option->name, form);
}

/* The head of a case: "    run-p | run--platform) echo"; no command stands for filters. */
static void put_bash_case(FILE *out, const gbx_command *command, const gbx_option *option) {
    const char *name = command ? command->name : "filter";
    fputs("    ", out);
    if (option->letter)
        fprintf(out, "%s-%c | ", name, option->letter);
    fprintf(out, "%s--%s) echo", name, option->name);
}

static void put_bash_words(FILE *out, const gbx_command *command, const gbx_option *option,
                           const char *heading) {
    (void)heading;
    if (!has_words(option))
        return;
    put_bash_case(out, command, option);
    put_words(out, option, " %s");
    fputs(" ;;\n", out);
}

static void put_bash_kind(FILE *out, const gbx_command *command, const gbx_option *option,
                          const char *heading) {
    const char *kind =
        option->completion == GBX_COMPLETE_SORT ? "sort" : kind_of(option->completion);
    (void)heading;
    if (!kind)
        return;
    put_bash_case(out, command, option);
    fprintf(out, " %s ;;\n", kind);
}

/* zsh: a text in single quotes, without what ends a description there, up to the first semicolon.
 */
static void put_zsh_text(FILE *out, const char *text, const char *escaped) {
    for (; *text && *text != ';'; ++text) {
        if (strchr(escaped, *text))
            fputc('\\', out);
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    }
}

/* The function that completes a value, or its words in parentheses. */
static void put_zsh_action(FILE *out, const gbx_option *option) {
    const char *kind = kind_of(option->completion);
    if (option->completion == GBX_COMPLETE_SORT) {
        fputs("_glassbox_sort", out);
        put_words(out, option, " %s");
    } else if (kind) {
        fprintf(out, "_glassbox_%s", kind);
    } else if (has_words(option)) {
        fputs("(", out);
        put_words(out, option, "%s ");
        fputs(")", out);
    } else {
        fputs(" ", out);
    }
}

static void put_zsh_option(FILE *out, const gbx_command *command, const gbx_option *option,
                           const char *heading) {
    const char *form = !option->value ? "" : option->may_lack_text ? "=-" : "=";
    (void)command;
    (void)heading;
    fprintf(out, "        %s", option->may_repeat ? "'*'" : "");
    if (option->letter)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}", option->letter, option->name, option->letter,
                option->value ? "+" : "", option->name, form);
    else
        fprintf(out, "--%s%s", option->name, form);
    fputs("'[", out);
    put_zsh_text(out, option->help, "[]\\");
    fputs("]", out);
    if (option->value) {
        fputs(option->may_lack_text ? "::" : ":", out);
        put_zsh_text(out, option->value, ":\\");
        fputs(":", out);
        put_zsh_action(out, option);
    }
    fputs("'\n", out);
}

static void put_zsh_command(FILE *out, const gbx_command *command) {
    const char *kind = argument_kind(command);
    fprintf(out, "    %s)\n    options+=(\n", command->name);
    visit_options(out, command, put_zsh_option);
    for (size_t i = 1; kind && i <= (command->least > 1 ? command->least : 1); ++i)
        fprintf(out, "        '%zu:%s:_glassbox_%s'\n", i, kind, kind);
    fputs("    )\n    ;;\n", out);
}

/* --- templates --- */

typedef void (*command_writer)(FILE *out, const gbx_command *command);

static void put_bash_options(FILE *out, const gbx_command *command) {
    fprintf(out, "    %s) echo '-? --help --usage", command->name);
    visit_options(out, command, put_bash_name);
    fputs("' ;;\n", out);
}

static void put_bash_command_words(FILE *out, const gbx_command *command) {
    visit_options(out, command, put_bash_words);
}

static void put_bash_command_kinds(FILE *out, const gbx_command *command) {
    visit_options(out, command, put_bash_kind);
    if (argument_kind(command))
        fprintf(out, "    %s) echo %s ;;\n", command->name, argument_kind(command));
}

static void put_names(FILE *out) {
    for (size_t i = 0; gbx_commands[i]; ++i)
        fprintf(out, " %s", gbx_commands[i]->name);
    fputc('\n', out);
}

static void put_zsh_summary(FILE *out, const gbx_command *command) {
    fprintf(out, "        '%s:", command->name);
    put_zsh_text(out, command->summary, ":\\");
    fputs("'\n", out);
}

/* The keys of --dump-filter are the names of the filters. */
static void put_filter_keys(FILE *out) {
    for (const gbx_option *o = gbx_filter_options; o->name; ++o)
        fprintf(out, " %s=", o->name);
    fputc('\n', out);
}

static void put_zsh_filters(FILE *out) {
    for (const gbx_option *o = gbx_filter_options; o->name; ++o) {
        if (!has_words(o))
            continue;
        fprintf(out, "    if compset -P '%s='; then compadd", o->name);
        put_words(out, o, " %s");
        fputs("; return; fi\n", out);
    }
}

/* One of both writes. */
static const struct {
    const char *mark;
    command_writer each;
    void (*once)(FILE *out);
} marks[] = {{"@OPTIONS@", put_bash_options, NULL},     {"@WORDS@", put_bash_command_words, NULL},
             {"@KINDS@", put_bash_command_kinds, NULL}, {"@NAMES@", NULL, put_names},
             {"@ZSH@", put_zsh_command, NULL},          {"@SUMMARIES@", put_zsh_summary, NULL},
             {"@FILTER_KEYS@", NULL, put_filter_keys},  {"@ZSH_FILTERS@", NULL, put_zsh_filters}};

enum { MARK_COUNT = sizeof marks / sizeof marks[0] };

/* The number of the mark that a text begins with; MARK_COUNT for none. */
static size_t find_mark(const char *text) {
    size_t m = 0;
    while (m < MARK_COUNT && strncmp(text, marks[m].mark, strlen(marks[m].mark)) != 0)
        ++m;
    return m;
}

/* A mark ends its line, which it replaces with its end. */
static void write_template(const char *template, const char *path) {
    char *text = read_file(template);
    FILE *out = text ? fopen(path, "w") : NULL;
    if (!text || !out)
        fail(text ? "writing" : "reading", text ? path : template);
    for (const char *at = text; *at;) {
        size_t m = find_mark(at);
        if (m == MARK_COUNT) {
            fputc(*at++, out);
            continue;
        }
        for (size_t i = 0; marks[m].each && gbx_commands[i]; ++i)
            marks[m].each(out, gbx_commands[i]);
        if (marks[m].once)
            marks[m].once(out);
        at += strlen(marks[m].mark) + 1;
    }
    if (fclose(out) != 0)
        fail("writing", path);
    free(text);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr,
                "usage: generate-docs man DIRECTORY OUTPUT... | completion TEMPLATE OUTPUT\n");
        return GBX_EXIT_USAGE;
    }
    for (int i = 3; i < argc; ++i)
        if (strcmp(argv[1], "man") == 0)
            write_page(argv[2], argv[i]);
        else
            write_template(argv[2], argv[i]);
    return GBX_EXIT_OK;
}
