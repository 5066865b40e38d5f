#include "report/ending.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sink.h"

/* Each line of `message`, or all of it as one; a newline at its end makes no empty line. */
static void print_failure(const char *name, char *message, bool has_lines) {
    gbx_texts texts = {0};
    fprintf(stderr, "glassbox %s: ", name);
    for (char *rest = message; rest;) {
        char *end = has_lines ? strchr(rest, '\n') : NULL;
        if (end)
            *end = '\0';
        fprintf(stderr, "%s\n", gbx_text_shown(&texts, rest));
        rest = end && end[1] ? end + 1 : NULL;
    }
}

void gbx_command_say(const char *name, const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    char no_memory[] = "out of memory while reporting a failure";
    va_start(arguments, format);
    bool is_there = vasprintf(&text, format, arguments) >= 0;
    va_end(arguments);
    print_failure(name, is_there ? text : no_memory, true);
    if (is_there)
        free(text);
}

int gbx_command_end(const char *name, gbx_status status, int exit_code) {
    if (!status)
        return exit_code;
    gbx_code code = gbx_status_code(status);
    char no_memory[] = "out of memory while reporting a failure";
    char *message = strdup(gbx_status_message(status));
    print_failure(name, message ? message : no_memory, code == GBX_BAD_KERNEL);
    free(message);
    gbx_status_free(status);
    return gbx_code_exit(code);
}
