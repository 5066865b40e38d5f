#include "base/status.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gbx_error {
    gbx_code code;
    bool is_static;
    const char *message;
    char site[56];
};

static struct gbx_error out_of_memory = {GBX_EXHAUSTED, true, "the host is out of memory",
                                         "status.c"};

static gbx_status make(const char *site, gbx_code code, const char *suffix, const char *format,
                       va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        length = 0;
    size_t suffix_length = suffix ? strlen(suffix) : 0;
    size_t text_bytes = (size_t)length + 1;
    struct gbx_error *error = malloc(sizeof *error + text_bytes + suffix_length);
    if (!error)
        return &out_of_memory;
    char *text = (char *)(error + 1);
    text[0] = '\0';
    vsnprintf(text, text_bytes, format, arguments);
    if (suffix)
        memcpy(text + length, suffix, suffix_length + 1);
    error->code = code;
    error->is_static = false;
    error->message = text;
    snprintf(error->site, sizeof error->site, "%s", site);
    return error;
}

gbx_status gbx_status_make(const char *file, int line, gbx_code code, const char *format, ...) {
    const char *name = strrchr(file, '/');
    char site[56];
    snprintf(site, sizeof site, "%s:%d", name ? name + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    gbx_status status = make(site, code, NULL, format, arguments);
    va_end(arguments);
    return status;
}

gbx_status gbx_status_annotate(gbx_status status, const char *format, ...) {
    if (!status || status->is_static)
        return status;
    size_t length = strlen(status->message);
    char *tail = malloc(length + 3);
    if (!tail)
        return status;
    snprintf(tail, length + 3, ": %s", status->message);
    va_list arguments;
    va_start(arguments, format);
    gbx_status annotated = make(status->site, status->code, tail, format, arguments);
    va_end(arguments);
    free(tail);
    gbx_status_free(status);
    return annotated;
}

gbx_status gbx_status_first(gbx_status first, gbx_status second) {
    if (!first)
        return second;
    gbx_status_free(second);
    return first;
}

gbx_code gbx_status_code(gbx_status status) {
    return status ? status->code : GBX_OK;
}

const char *gbx_status_message(gbx_status status) {
    return status ? status->message : "";
}

const char *gbx_status_site(gbx_status status) {
    return status ? status->site : "";
}

void gbx_status_free(gbx_status status) {
    if (status && !status->is_static)
        free(status);
}

const char *gbx_code_name(gbx_code code) {
    static const char *const names[] = {
        [GBX_OK] = "ok",
        [GBX_INVALID_ARGUMENT] = "invalid argument",
        [GBX_NOT_FOUND] = "not found",
        [GBX_OUT_OF_RANGE] = "out of range",
        [GBX_EXHAUSTED] = "exhausted",
        [GBX_UNSUPPORTED] = "unsupported",
        [GBX_BAD_KERNEL] = "bad kernel",
        [GBX_IO] = "input or output failed",
        [GBX_BAD_FORMAT] = "bad format",
        [GBX_DEVICE_FAULT] = "device fault",
        [GBX_DEVICE_HUNG] = "device hung",
        [GBX_DEVICE_LOST] = "device lost",
        [GBX_INTERNAL] = "internal error",
        [GBX_BAD_GRAPH] = "bad graph",
        [GBX_LOST] = "records lost",
    };
    static_assert(sizeof names / sizeof names[0] == GBX_LOST + 1, "a name for each code");
    return (size_t)code < sizeof names / sizeof names[0] ? names[code] : "unknown code";
}

int gbx_code_exit(gbx_code code) {
    switch (code) {
    case GBX_OK:
        return GBX_EXIT_OK;
    case GBX_DEVICE_FAULT:
    case GBX_DEVICE_HUNG:
    case GBX_DEVICE_LOST:
        return GBX_EXIT_DEVICE;
    case GBX_LOST:
        return GBX_EXIT_LOST;
    default:
        return GBX_EXIT_USAGE;
    }
}

int gbx_exit_worse(int a, int b) {
    static const int severity[] = {[GBX_EXIT_OK] = 0,
                                   [GBX_EXIT_DIFFERS] = 1,
                                   [GBX_EXIT_LOST] = 2,
                                   [GBX_EXIT_DEVICE] = 3,
                                   [GBX_EXIT_USAGE] = 4};
    return severity[b] > severity[a] ? b : a;
}
