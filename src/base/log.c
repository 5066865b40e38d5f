#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};

enum {
    LEVEL_COUNT = sizeof level_names / sizeof level_names[0],
    LEVEL_UNSET = -1,
    LINE_BYTES = 2048
};

static _Atomic int current_level = LEVEL_UNSET;

bool gbx_log_parse_level(const char *name, gbx_log_level *out_level) {
    for (int i = 0; i < LEVEL_COUNT; ++i) {
        if (strcmp(name, level_names[i]) == 0) {
            *out_level = (gbx_log_level)i;
            return true;
        }
    }
    return false;
}

void gbx_log_set_level(gbx_log_level level) {
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

gbx_log_level gbx_log_get_level(void) {
    int level = atomic_load_explicit(&current_level, memory_order_relaxed);
    if (level != LEVEL_UNSET)
        return (gbx_log_level)level;
    gbx_log_level chosen = GBX_LOG_WARNING;
    const char *wanted = getenv("GLASSBOX_LOG");
    bool is_known = !wanted || gbx_log_parse_level(wanted, &chosen);
    gbx_log_set_level(chosen);
    if (!is_known)
        gbx_log_warning(
            "GLASSBOX_LOG=%s is unknown; expected error, warning, info or debug; using warning",
            wanted);
    return chosen;
}

void gbx_log_write(gbx_log_level level, const char *format, ...) {
    if (level > gbx_log_get_level())
        return;
    char line[LINE_BYTES];
    int used = snprintf(line, sizeof line, "glassbox: %s: ", level_names[level]);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    if (added < 0)
        return;
    size_t length = (size_t)used + (size_t)added;
    if (length > sizeof line - 2) {
        length = sizeof line - 2;
        memcpy(line + length - 3, "...", 3);
    }
    line[length] = '\n';
    /* A log line that cannot be written has nowhere else to be reported. */
    ssize_t written = write(STDERR_FILENO, line, length + 1);
    (void)written;
}
