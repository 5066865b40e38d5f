/*
 * Log lines to stderr: "glassbox: warning: ...". The level is the only global mutable state of
 * the host; it starts from GLASSBOX_LOG (error, warning, info, debug), warning when unset.
 */
#ifndef GBX_BASE_LOG_H
#define GBX_BASE_LOG_H

#include <stdbool.h>

#include <glassbox/status.h>

typedef enum gbx_log_level {
    GBX_LOG_ERROR = 0,
    GBX_LOG_WARNING = 1,
    GBX_LOG_INFO = 2,
    GBX_LOG_DEBUG = 3
} gbx_log_level;

/* Any thread. */
void gbx_log_set_level(gbx_log_level level);
gbx_log_level gbx_log_get_level(void);

/* False, and nothing changed, when no level has that name. */
bool gbx_log_parse_level(const char *name, gbx_log_level *out_level);

/* One line, written with one call so that lines of different threads and processes do not mix. */
void gbx_log_write(gbx_log_level level, const char *format, ...) GBX_PRINTF(2, 3);

#define gbx_log_error(...) gbx_log_write(GBX_LOG_ERROR, __VA_ARGS__)
#define gbx_log_warning(...) gbx_log_write(GBX_LOG_WARNING, __VA_ARGS__)
#define gbx_log_info(...) gbx_log_write(GBX_LOG_INFO, __VA_ARGS__)
#define gbx_log_debug(...) gbx_log_write(GBX_LOG_DEBUG, __VA_ARGS__)

#endif
