#include "cli/command.h"

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

void gbx_command_parse(const struct argp *parser, const char *name, int argc, char **argv,
                       void *input) {
    char full_name[64];
    snprintf(full_name, sizeof full_name, "glassbox %s", name);
    char *given_name = argv[0];
    argv[0] = full_name;
    argp_err_exit_status = GBX_EXIT_USAGE;
    if (argp_parse(parser, argc, argv, 0, NULL, input) != 0)
        exit(GBX_EXIT_USAGE);
    argv[0] = given_name;
}

error_t gbx_command_reject(int key, char *argument, struct argp_state *state) {
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    argp_error(state, "\"%s\" is not expected; this command takes no argument", argument);
    return EINVAL;
}

/* Each line of `text`, or all of it as one; a newline at its end makes no empty line. */
static void print_escaped(char *text, bool has_lines, char *escaped, size_t capacity) {
    char *rest = text;
    do {
        char *end = has_lines ? strchr(rest, '\n') : NULL;
        if (end)
            *end = '\0';
        gbx_terminal_escape(rest, escaped, capacity);
        fprintf(stderr, "%s\n", escaped);
        rest = end ? end + 1 : NULL;
    } while (rest && *rest);
}

static void print_failure(const char *name, const char *message, bool has_lines) {
    size_t capacity = 4 * strlen(message) + 1; /* "\xNN" for every byte */
    char *text = strdup(message);
    char *escaped = malloc(capacity);
    setlocale(LC_CTYPE, "");
    fprintf(stderr, "glassbox %s: ", name);
    if (text && escaped)
        print_escaped(text, has_lines, escaped, capacity);
    else
        fputs("it failed, and no memory is left to say why\n", stderr);
    free(text);
    free(escaped);
}

void gbx_command_fail(const char *name, gbx_status status) {
    print_failure(name, gbx_status_message(status), gbx_status_code(status) == GBX_BAD_KERNEL);
}

void gbx_command_say(const char *name, const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    bool is_there = vasprintf(&text, format, arguments) >= 0;
    va_end(arguments);
    print_failure(name, is_there ? text : "no memory is left to say what is wrong", true);
    if (is_there)
        free(text);
}
