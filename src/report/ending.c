#include "report/ending.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/sink.h"

void gbx_command_say(const char *name, const char *format, ...) {
    gbx_texts texts = {0};
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    fprintf(stderr, "glassbox %s: %s", name,
            text ? "" : "out of memory while reporting a failure\n");
    for (char *rest = text; rest;) { /* a newline at the end makes no empty line */
        const char *line = strsep(&rest, "\n");
        fprintf(stderr, "%s\n", gbx_text_shown(&texts, line));
        rest = rest && *rest ? rest : NULL;
    }
    free(text);
}

int gbx_command_end(const char *name, gbx_status status, int exit_code) {
    if (!status)
        return exit_code;
    gbx_texts texts = {0};
    gbx_code code = gbx_status_code(status);
    const char *message = gbx_status_message(status);
    if (code == GBX_BAD_KERNEL)
        gbx_command_say(name, "%s", message);
    else
        fprintf(stderr, "glassbox %s: %s\n", name, gbx_text_shown(&texts, message));
    gbx_status_free(status);
    return gbx_code_exit(code);
}
