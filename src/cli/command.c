#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/internal.h"

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

/* Each line of `message`, or all of it as one; a newline at its end makes no empty line. */
static void print_failure(const char *name, const char *message, bool has_lines) {
    size_t capacity = 4 * strlen(message) + 1; /* "\xNN" for every byte */
    char *text = strdup(message);
    char *escaped = malloc(capacity);
    fprintf(stderr, "glassbox %s: ", name);
    if (!text || !escaped)
        fputs("it failed, and no memory is left to say why\n", stderr);
    for (char *rest = escaped ? text : NULL; rest;) {
        char *end = has_lines ? strchr(rest, '\n') : NULL;
        if (end)
            *end = '\0';
        gbx_terminal_escape(rest, escaped, capacity);
        fprintf(stderr, "%s\n", escaped);
        rest = end && end[1] ? end + 1 : NULL;
    }
    free(text);
    free(escaped);
}

int gbx_command_end(const char *name, gbx_status status, int exit_code) {
    if (!status)
        return exit_code;
    gbx_code code = gbx_status_code(status);
    print_failure(name, gbx_status_message(status), code == GBX_BAD_KERNEL);
    gbx_status_free(status);
    return gbx_code_exit(code);
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
