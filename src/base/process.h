/* Running another program and reading what it says, and starting a program of ours that kernels run
 * in. No shell is involved. */
#ifndef GBX_BASE_PROCESS_H
#define GBX_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

enum { GBX_SPAWN_FIRST_FD = 3, GBX_SPAWN_MAX_DESCRIPTORS = 8 };

typedef struct gbx_spawn_order {
    const char *path;
    char *const *arguments; /* its name first, NULL last */
    const int *descriptors; /* open here, whatever their numbers; there GBX_SPAWN_FIRST_FD, ... */
    size_t descriptor_count;
    bool is_output_ours; /* our standard output is not for it: what it prints goes to our standard
                            error, and its input is empty; else it has our standard streams */
} gbx_spawn_order;

/*
 * The child gets the standard streams and the descriptors of the order, and nothing else of this
 * process: no descriptors, no blocked or ignored signals. A process group of its own keeps Ctrl-C
 * for us. Returns 0, or the number of the error.
 */
int gbx_spawn(const gbx_spawn_order *order, pid_t *out_pid);

#endif
