/* Running another program and reading what it says. No shell is involved. */
#ifndef GBX_BASE_PROCESS_H
#define GBX_BASE_PROCESS_H

#include <stddef.h>

#include "base/status.h"

typedef struct gbx_process_result {
    int exit_code;   /* -1 when a signal ended it */
    int signal;      /* that signal, or 0 */
    char *out_text;  /* what it wrote to stdout; never NULL after a success */
    size_t out_size; /* without the terminating zero */
    char *err_text;  /* what it wrote to stderr */
} gbx_process_result;

/*
 * Runs `arguments` (the program, found on PATH, first; NULL last) to its end, without standard
 * input. A program that ends badly is a success with its exit code; one that cannot be started is a
 * failure.
 */
GBX_MUST_USE gbx_status gbx_process_run(char *const *arguments, gbx_process_result *out_result);
void gbx_process_result_free(gbx_process_result *result);

#endif
